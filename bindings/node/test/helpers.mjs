// What tests share: clients over real sockets, and apps that stop when their test ends.

import dgram from 'node:dgram';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import zonda from '../index.js';

const { App, decodeMessage, makeQuery } = zonda;

/** An app on a free port that a function prepares; it stops when its test ends. */
export async function started(test, options, prepare = () => {}) {
  const app = new App({ listen: '127.0.0.1:0', workers: 1, log: 'off', ...options });
  await prepare(app);
  await app.start();
  test.after(() => app.stop());
  return app;
}

/** Address and port of an app or server. */
export function placeOf(app) {
  const [address, port] = app.addresses[0].split(':');
  return { address, port: Number(port) };
}

/** The reply to a message over UDP; `null` when there is none in time. */
export function udp({ address, port }, message, millis = 3000) {
  return new Promise((resolve, reject) => {
    const socket = dgram.createSocket('udp4');
    const timer = setTimeout(() => {
      socket.close();
      resolve(null);
    }, millis);
    socket.on('error', reject);
    socket.once('message', (reply) => {
      clearTimeout(timer);
      socket.close();
      resolve(reply);
    });
    socket.send(message, port, address);
  });
}

/** The replies to messages over one TCP connection, in the order in which they come. */
export function tcp({ address, port }, messages, connect = net.connect) {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: address, port, rejectUnauthorized: false });
    const replies = [];
    let received = Buffer.alloc(0);
    socket.on('error', reject);
    socket.on('data', (octets) => {
      received = Buffer.concat([received, octets]);
      while (received.length >= 2 && received.length >= 2 + received.readUInt16BE(0)) {
        const end = 2 + received.readUInt16BE(0);
        replies.push(Buffer.from(received.subarray(2, end)));
        received = received.subarray(end);
      }
      if (replies.length === messages.length) {
        socket.destroy();
        resolve(replies);
      }
    });
    const length = (message) => Buffer.from([message.length >> 8, message.length & 255]);
    socket.write(Buffer.concat(messages.flatMap((message) => [length(message), message])));
  });
}

/** A query with a number of its own, in the case in which it is written. */
export function query(name, type = 'A', { id = 0x1234 } = {}) {
  const message = makeQuery({ name, type });
  message.writeUInt16BE(id, 0);
  return message;
}

/** A query with EDNS options. */
export function queryWithOptions(name, type, options) {
  const message = query(name, type);
  const parts = options.map(({ code, data }) => {
    const head = Buffer.alloc(4);
    head.writeUInt16BE(code, 0);
    head.writeUInt16BE(data.length, 2);
    return Buffer.concat([head, data]);
  });
  const octets = Buffer.concat(parts);
  message.writeUInt16BE(octets.length, message.length - 2);
  return Buffer.concat([message, octets]);
}

/** The reply to a question over UDP, read. */
export async function ask(app, name, type = 'A') {
  const reply = await udp(placeOf(app), query(name, type));
  return reply && decodeMessage(reply);
}

/** A reply in a few words: the response code, and name, type and data of the answer. */
export async function told(app, name, type = 'A') {
  const reply = await ask(app, name, type);
  if (reply === null) return 'silence';
  const records = reply.answers.map(({ name, type, data }) => {
    return `${name} ${type} ${typeof data === 'string' ? data : JSON.stringify(data)}`;
  });
  return [reply.rcode, ...records].join(' ');
}

/** Below the ports that Linux gives, by default, to whoever asks for any: no client has these. */
const [FIRST_PORT, PORTS] = [10_000, 22_000];
let nextPort = process.pid * 13_841; // other processes begin far from here

/** A port of 127.0.0.1 that is free now, over UDP and TCP. */
export async function freePort() {
  for (let tries = 0; tries < PORTS; tries++) {
    const port = FIRST_PORT + (nextPort++ % PORTS);
    const tcp = net.createServer().listen(port, '127.0.0.1');
    const udp = dgram.createSocket('udp4').bind(port, '127.0.0.1');
    const sockets = [tcp, udp];
    const opened = await Promise.allSettled(sockets.map((socket) => once(socket, 'listening')));
    const isOpen = ({ status }) => status === 'fulfilled';
    for (const socket of sockets.filter((_, place) => isOpen(opened[place]))) {
      socket.close();
      await once(socket, 'close');
    }
    if (opened.every(isOpen)) return port;
  }
  throw new Error('no port of 127.0.0.1 is free');
}

/** A folder that is gone when the test ends. */
export function folder(test) {
  const path = mkdtempSync(join(tmpdir(), 'zonda-node-'));
  test.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** A file with the zone example.org. */
export function zoneFile(test) {
  const file = join(folder(test), 'example.org.zone');
  const records = ['@ 300 SOA ns hostmaster 1 2 3 4 5', '@ 300 NS ns', 'ns 300 A 192.0.2.53'];
  writeFileSync(file, [...records, 'www 300 A 192.0.2.80', 'www 300 TXT zone', ''].join('\n'));
  return file;
}

/** Whether a test does without a program, because `TEST_WITHOUT` names it. One that is missing
 * otherwise is an error: a test that looks at nothing must not look passed. */
export function isSpared(test, program) {
  const found = (process.env.PATH ?? '').split(':').some((at) => existsSync(join(at, program)));
  const without = (process.env.TEST_WITHOUT ?? '').split(',').map((name) => name.trim());
  if (!found && !without.includes(program)) {
    throw new Error(`${program} is not installed: \`make packages\` installs what the tests need`);
  }
  if (!found) test.skip(`${program} is not installed`);
  return !found;
}

/** Waits. */
export function sleep(millis) {
  return new Promise((resolve) => setTimeout(resolve, millis));
}
