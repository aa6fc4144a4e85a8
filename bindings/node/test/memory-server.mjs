// What `memory.test.mjs` asks: code of all kinds, through both interfaces. Says the ports first,
// and then, whenever it is asked, how much memory it has once garbage is collected.

import { setImmediate as turn } from 'node:timers/promises';
import zonda from '../index.js';
import dinodns from '../dinodns/index.js';

const record = { type: 'A', ttl: 60, data: '192.0.2.1' };
const fail = () => {
  throw new Error('a mistake');
};

const app = new zonda.App({ listen: '127.0.0.1:0', workers: 1, log: 'off', onError: () => {} });
app.handle('*.now.example', (req, res) => res.answer({ ...record, name: req.name }));
app.handle('*.later.example', async (req, res) => {
  await turn();
  res.answer(record);
});
app.handle('*.denies.example', (req, res) => res.nxdomain());
app.handle('*.throws.example', fail);
app.handle(':label.listens.example', (req, res) => {
  res.answer({ type: 'A', data: req.captures.label && req.client.address });
});
await app.start();

const network = new dinodns.DNSOverUDP({ address: '127.0.0.1', port: 0 });
const tcp = new dinodns.DNSOverTCP({ address: '127.0.0.1', port: 0 });
const server = new dinodns.DefaultServer({ networks: [tcp, network] });
console.error = () => {}; // where mistakes of handlers are written
server.handle('*.now.example', (req, res) => {
  res.answer({ ...record, name: req.packet.questions[0].name });
});
server.handle('*.later.example', async (req, res) => {
  await turn();
  res.answer(record);
});
server.handle('*.denies.example', (req, res, next) => next());
server.handle('*.denies.example', (req, res) => res.errors.nxDomain());
server.handle('*.throws.example', fail);
server.handle('*.listens.example', (req, res) => {
  res.once('done', (res) => res.data());
  res.answer({ ...record, data: req.connection.remoteAddress });
});
await server.start();

const port = (address) => Number(address.split(':').at(-1));
process.send([port(app.addresses[0]), port(server.addresses[0])]);
process.on('message', async () => {
  for (let round = 0; round < 3; round++) {
    global.gc();
    await turn(); // finalizers run between turns
  }
  process.send(process.memoryUsage.rss());
});
