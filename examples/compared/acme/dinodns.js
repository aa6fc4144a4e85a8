const { common } = require('dinodns');
const { createInterface } = require('node:readline');

const tokens = new Set();
const [address, port] = process.argv[2].split(':');
const at = { address, port: Number(port) };
const server = new common.DefaultServer({
  networks: [new common.DNSOverUDP(at), new common.DNSOverTCP(at)],
  defaultHandler: (req, res) => res.errors.refused(),
});
server.handle('*.auth.example', (req, res) => {
  const [{ name, type }] = req.packet.questions;
  const account = name.toLowerCase().split('.')[0];
  const own = [...tokens].filter((token) => token.startsWith(`${account} `));
  if (type !== 'TXT') return res.resolve();
  res.answer(own.map((token) => ({ name, type, ttl: 0, data: token.split(' ')[1] })));
});
createInterface({ input: process.stdin }).on('line', (line) => {
  const [verb, ...token] = line.split(' ');
  if (verb === 'set') tokens.add(token.join(' '));
  if (verb === 'clear') tokens.delete(token.join(' '));
});
server.start();
