const { Packet, createServer } = require('dns2');
const { createInterface } = require('node:readline');

const tokens = new Set();
const [address, port] = process.argv[2].split(':');
const at = { address, port: Number(port) };
const server = createServer({
  udp: true,
  tcp: true,
  handle: (request, send) => {
    const response = Packet.createResponseFromRequest(request);
    const [{ name, type }] = request.questions;
    const [account, ...zone] = name.toLowerCase().split('.');
    if (zone.join('.') !== 'auth.example') {
      response.header.rcode = Packet.RCODE.REFUSED;
    } else if (type === Packet.TYPE.TXT) {
      for (const token of tokens) {
        const [of, data] = token.split(' ');
        if (of === account) response.answers.push({ name, type, class: Packet.CLASS.IN, ttl: 0, data });
      }
    }
    send(response);
  },
});
createInterface({ input: process.stdin }).on('line', (line) => {
  const [verb, ...token] = line.split(' ');
  if (verb === 'set') tokens.add(token.join(' '));
  if (verb === 'clear') tokens.delete(token.join(' '));
});
server.listen({ udp: at, tcp: at });
