const { common } = require('dinodns');

const users = new Map([['ann', '192.0.2.10'], ['bob', '192.0.2.11']]);
const [address, port] = process.argv[2].split(':');
const at = { address, port: Number(port) };
const server = new common.DefaultServer({
  networks: [new common.DNSOverUDP(at), new common.DNSOverTCP(at)],
  defaultHandler: (req, res) => res.errors.refused(),
});
server.handle('*.users.example', (req, res) => {
  const [{ name, type }] = req.packet.questions;
  const address = users.get(name.toLowerCase().split('.')[0]);
  if (address && type === 'A') return res.answer({ name, type, ttl: 60, data: address });
  res.packet.authorities = [{
    name: 'users.example', type: 'SOA', ttl: 60,
    data: { mname: 'ns.users.example', rname: 'hostmaster.users.example', serial: 1, refresh: 3600, retry: 600, expire: 86400, minimum: 60 },
  }];
  if (address) res.resolve();
  else res.errors.nxDomain();
});
server.start();
