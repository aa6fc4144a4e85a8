const { Packet, createServer } = require('dns2');

const users = new Map([['ann', '192.0.2.10'], ['bob', '192.0.2.11']]);
const soa = {
  name: 'users.example', type: Packet.TYPE.SOA, class: Packet.CLASS.IN, ttl: 60,
  primary: 'ns.users.example', admin: 'hostmaster.users.example', serial: 1, refresh: 3600, retry: 600, expiration: 86400, minimum: 60,
};
const [address, port] = process.argv[2].split(':');
const at = { address, port: Number(port) };
const server = createServer({
  udp: true,
  tcp: true,
  handle: (request, send) => {
    const response = Packet.createResponseFromRequest(request);
    const [{ name, type }] = request.questions;
    const [user, ...zone] = name.toLowerCase().split('.');
    const address = users.get(user);
    if (zone.join('.') !== 'users.example') {
      response.header.rcode = Packet.RCODE.REFUSED;
    } else if (address && type === Packet.TYPE.A) {
      response.answers.push({ name, type, class: Packet.CLASS.IN, ttl: 60, address });
    } else {
      if (!address) response.header.rcode = Packet.RCODE.NXDOMAIN;
      response.authorities.push(soa);
    }
    send(response);
  },
});
server.listen({ udp: at, tcp: at });
