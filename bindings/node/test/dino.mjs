// What tests of the interface of DinoDNS share.

import zonda from '../index.js';
import dinodns from '../dinodns/index.js';
import { placeOf, query, udp } from './helpers.mjs';

const { decodeMessage } = zonda;
const { DefaultServer, DNSOverUDP } = dinodns;

/** Where servers answer. */
export const address = '127.0.0.1';

/** A server on a free port that a function prepares; it stops when its test ends. */
export async function serve(test, prepare, { Server = DefaultServer, networks, ...rest } = {}) {
  const server = new Server({
    networks: networks ?? [new DNSOverUDP({ address, port: 0 })],
    ...rest,
  });
  prepare(server);
  await new Promise((resolve, reject) => server.start(resolve).catch(reject));
  test.after(() => server.stop());
  return server;
}

/** The reply over UDP, read. */
export async function ask(server, name, type = 'A') {
  return decodeMessage(await udp(placeOf(server), query(name, type)));
}

/** A reply in a few words. */
export async function told(server, name, type = 'A') {
  const reply = await ask(server, name, type);
  const data = reply.answers.map(({ data }) =>
    typeof data === 'string' ? data : JSON.stringify(data),
  );
  return [reply.rcode, ...data].join(' ');
}
