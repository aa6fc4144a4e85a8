const { Packet, createServer } = require('dns2');

const [address, port] = process.argv[2].split(':');
const at = { address, port: Number(port) };
const server = createServer({
  udp: true,
  tcp: true,
  handle: (request, send) => {
    const response = Packet.createResponseFromRequest(request);
    const [{ name, type }] = request.questions;
    if (name.toLowerCase() !== 'hello.example') {
      response.header.rcode = Packet.RCODE.REFUSED;
    } else if (type === Packet.TYPE.TXT) {
      response.answers.push({ name, type, class: Packet.CLASS.IN, ttl: 60, data: 'Hello, world!' });
    }
    send(response);
  },
});
server.listen({ udp: at, tcp: at });
