// A DNS server in JavaScript. `node server.mjs`, then:
//
//   dig @127.0.0.1 -p 5300 hello.example TXT
//   dig @127.0.0.1 -p 5300 ann.users.example TXT
//   dig @127.0.0.1 -p 5300 time.example TXT
//   dig @127.0.0.1 -p 5300 ads.example
//
// Another address may follow: `node server.mjs 127.0.0.1:53`.

import { App } from 'zonda';

const app = new App({ listen: process.argv[2] ?? '127.0.0.1:5300' });
const blocked = new Set(['ads.example.', 'tracker.example.']); // as names of queries are: complete

// Middleware sees every query and, behind next(), its reply: here, a list of names that do not
// exist.
app.middleware(async (req, res, next) => {
  if (blocked.has(req.name)) return res.extendedError('Blocked', 'on the list').nxdomain();
  const start = performance.now();
  await next();
  console.log(`${req.name} ${req.type} ${res.rcode} ${(performance.now() - start).toFixed(2)} ms`);
});

// One name.
app.handle('hello.example/TXT', (req, res) => {
  res.answer({ type: 'TXT', ttl: 300, data: 'Hello, world!' });
});

// A name for each user.
app.handle(':user.users.example/TXT', (req, res) => {
  res.answer({ type: 'TXT', ttl: 60, data: `Hello, ${req.captures.user}!` });
});

// Handlers may wait: for a database, or another service.
app.handle('time.example/TXT', async (req, res) => {
  await new Promise((resolve) => setTimeout(resolve, 5));
  res.answer({ type: 'TXT', ttl: 0, data: new Date().toISOString() });
});

await app.start();
console.log(`answering on ${app.addresses.join(', ')}`);

for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => app.stop());
await app.closed; // rejected, and the process ends with an error, if the server had to stop
