const { Packet, UDPClient, createServer } = require('dns2');

const blocked = /^(.*\.)?(ads|tracker)\.example$/i;
const words = new Map(Object.entries(Packet.TYPE).map(([word, number]) => [number, word]));
const [host, upstreamPort] = process.argv[3].split(':');
const ask = UDPClient({ dns: host, port: Number(upstreamPort), timeout: 5000 });
const [address, port] = process.argv[2].split(':');
const at = { address, port: Number(port) };

async function forward(response, { name, type }) {
  try {
    const { answers, authorities, header } = await ask(name, words.get(type));
    Object.assign(response, { answers, authorities });
    response.header.rcode = header.rcode;
    response.header.ra = header.ra;
  } catch {
    response.header.rcode = Packet.RCODE.SERVFAIL;
  }
}

const server = createServer({
  udp: true,
  tcp: true,
  handle: async (request, send) => {
    const response = Packet.createResponseFromRequest(request);
    const [{ name, type }] = request.questions;
    const fixed = { name, class: Packet.CLASS.IN, ttl: 60 };
    if (!blocked.test(name)) {
      await forward(response, request.questions[0]);
    } else if (type === Packet.TYPE.A) {
      response.answers.push({ ...fixed, type, address: '0.0.0.0' });
    } else {
      response.authorities.push({
        ...fixed, type: Packet.TYPE.SOA,
        primary: 'ns.invalid', admin: 'hostmaster.invalid', serial: 1, refresh: 3600, retry: 600, expiration: 86400, minimum: 60,
      });
    }
    send(response);
  },
});
server.listen({ udp: at, tcp: at });
