import { App } from 'zonda';
import { createInterface } from 'node:readline';

const tokens = new Map();
const app = new App({ listen: process.argv[2] });
app.handle(':account.auth.example/TXT', (req) => {
  const own = tokens.get(req.captures.account) ?? [];
  return [...own].map((token) => ({ type: 'TXT', ttl: 0, data: token }));
});
createInterface({ input: process.stdin }).on('line', (line) => {
  const [verb, account, token] = line.split(' ');
  const own = tokens.get(account) ?? new Set();
  tokens.set(account, own);
  if (verb === 'set') own.add(token);
  else own.delete(token);
});
await app.serve();
