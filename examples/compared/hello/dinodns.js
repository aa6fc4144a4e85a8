const { common } = require('dinodns');

const [address, port] = process.argv[2].split(':');
const at = { address, port: Number(port) };
const server = new common.DefaultServer({
  networks: [new common.DNSOverUDP(at), new common.DNSOverTCP(at)],
  defaultHandler: (req, res) => res.errors.refused(),
});
server.handle('hello.example', (req, res) => {
  const [{ name, type }] = req.packet.questions;
  if (type === 'TXT') res.answer({ name, type, ttl: 60, data: 'Hello, world!' });
  else res.resolve();
});
server.start();
