import { App } from 'zonda';

const users = new Map([['ann', '192.0.2.10'], ['bob', '192.0.2.11']]);
const app = new App({ listen: process.argv[2] });
app.handle(':user.users.example', (req, res) => {
  const address = users.get(req.captures.user);
  if (!address) return res.nxdomain({ ttl: 60 });
  if (req.type !== 'A') return res.noData({ ttl: 60 });
  return { type: 'A', ttl: 60, data: address };
});
await app.serve();
