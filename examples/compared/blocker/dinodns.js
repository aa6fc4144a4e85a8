const { common } = require('dinodns');
const dgram = require('node:dgram');
const packets = require('dns-packet');

const blocked = /^(.*\.)?(ads|tracker)\.example$/i;
const [host, upstreamPort] = process.argv[3].split(':');
const [address, port] = process.argv[2].split(':');
const at = { address, port: Number(port) };
const server = new common.DefaultServer({
  networks: [new common.DNSOverUDP(at), new common.DNSOverTCP(at)],
  defaultHandler: forward,
});

function forward(req, res) {
  const socket = dgram.createSocket('udp4');
  const end = (act) => {
    clearTimeout(timer);
    socket.close();
    act();
  };
  const timer = setTimeout(() => end(() => res.errors.serverFailure()), 5000);
  socket.on('error', () => end(() => res.errors.serverFailure()));
  socket.on('message', (octets) => {
    const { answers, authorities, additionals, flags } = packets.decode(octets);
    Object.assign(res.packet, { authorities, additionals, flags });
    end(() => res.answer(answers));
  });
  const { id, flags, questions, additionals } = req.packet.raw;
  socket.send(packets.encode({ type: 'query', id, flags, questions, additionals }), upstreamPort, host);
}

function block(req, res) {
  const [{ name, type }] = req.packet.questions;
  if (type === 'A') return res.answer({ name, type, ttl: 60, data: '0.0.0.0' });
  res.packet.authorities = [{
    name: name, type: 'SOA', ttl: 60,
    data: { mname: 'ns.invalid', rname: 'hostmaster.invalid', serial: 1, refresh: 3600, retry: 600, expire: 86400, minimum: 60 },
  }];
  res.resolve();
}

server.use((req, res, next) => (blocked.test(req.packet.questions[0].name) ? block(req, res) : next()));
server.start();
