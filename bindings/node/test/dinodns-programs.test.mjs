// Programs for DinoDNS, of the shape of those that it comes with, but for their ports: only what
// they import has another name.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import http2 from 'node:http2';
import { join } from 'node:path';
import { test } from 'node:test';
import tls from 'node:tls';
import { fileURLToPath } from 'node:url';
import zonda from '../index.js';
import { certificate } from './certificate.mjs';
import { folder, freePort, query, sleep, tcp, udp } from './helpers.mjs';

const { decodeMessage } = zonda;
const here = fileURLToPath(new URL('..', import.meta.url));
const address = '127.0.0.1';

/** Several sorts of network in front of a store, and a log of replies. */
const EVERY_NETWORK = `
  import fs from 'node:fs';
  import { DefaultServer, DNSOverHTTP, DNSOverTCP, DNSOverUDP } from 'dinodns/common';
  import { ConsoleLogger } from 'dinodns/plugins/loggers';
  import { DefaultStore } from 'dinodns/plugins/storage';

  const logger = new ConsoleLogger({ logRequests: false });
  const store = new DefaultStore();
  store.set('*', 'TXT', 'Hello from all names');
  const ssl = { cert: fs.readFileSync('cert.pem'), key: fs.readFileSync('key.pem') };
  const place = (port) => ({ address: '127.0.0.1', port });
  const server = new DefaultServer({
    networks: [
      new DNSOverTCP(place(PORT0)),
      new DNSOverUDP(place(PORT0)),
      new DNSOverTCP({ ...place(PORT1), ssl }),
      new DNSOverHTTP(place(PORT2)),
      new DNSOverHTTP({ ...place(PORT3), ssl }),
    ],
  });
  server.use(logger.handler);
  server.use(store.handler);
  server.start(() => {
    for (const { address, networkType, port } of server.networks) {
      console.log(networkType + ' on ' + address + ':' + port);
    }
    console.log('started');
  });
`;

/** Cache, logger and store together. */
const ALL_PLUGINS = `
  import { DinoDNS } from 'dinodns';
  import { DNSOverTCP, DNSOverUDP } from 'dinodns/common';
  import { DefaultCache } from 'dinodns/plugins/cache';
  import { ConsoleLogger } from 'dinodns/plugins/loggers';
  import { DefaultStore } from 'dinodns/plugins/storage';

  const cache = new DefaultCache({ maxEntries: 2 });
  const storage = new DefaultStore();
  storage.set('example.com', 'A', '192.0.2.1');
  storage.set('example.com', 'AAAA', '2001:db8::1');
  storage.set('example.com', 'TXT', 'Hello');
  const place = { address: '127.0.0.1', port: PORT0 };
  const server = new DinoDNS({
    cache,
    logger: new ConsoleLogger(),
    storage,
    networks: [new DNSOverTCP(place), new DNSOverUDP(place)],
  });
  server.use((req, res, next) => {
    console.log('kept: ' + cache.size);
    next();
  });
  server.start(() => console.log('started'));
`;

/** Several processes. */
const CLUSTER = `
  const process = require('node:process');
  const { DefaultServer, DNSOverHTTP, DNSOverTCP, DNSOverUDP } = require('dinodns/common');
  const { DefaultStore } = require('dinodns/plugins/storage');

  const store = new DefaultStore();
  store.set('example.com', 'A', '192.0.2.1');
  const place = { address: '127.0.0.1', port: PORT0 };
  const server = new DefaultServer({
    networks: [
      new DNSOverUDP(place),
      new DNSOverTCP(place),
      new DNSOverHTTP({ ...place, port: PORT1 }),
    ],
    multithreaded: true,
  });
  server.use((req, res, next) => {
    console.log('[' + process.pid + '] ' + req.packet.questions[0].name);
    next();
  });
  server.use(store.handler);
  server.start(() => console.log('started in ' + process.pid));
`;

/** Starts a program, which ends with its test; what it says, and its ports. */
async function begin(t, program, file, count, ssl) {
  const place = folder(t);
  mkdirSync(join(place, 'node_modules'));
  symlinkSync(here, join(place, 'node_modules', 'zonda'));
  if (ssl) for (const part of ['cert', 'key']) writeFileSync(join(place, `${part}.pem`), ssl[part]);
  const ports = await Promise.all(Array.from({ length: count }, freePort));
  const text = program.replace(/PORT(\d)/g, (_, n) => ports[n]);
  writeFileSync(join(place, file), text.replaceAll("'dinodns", "'zonda/dinodns"));
  const { NODE_TEST_CONTEXT, ...env } = process.env;
  const child = spawn(process.execPath, [file], { cwd: place, env });
  const said = { text: '' };
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (octets) => (said.text += octets));
  }
  t.after(async () => {
    child.kill();
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  });
  await heard(said, 'started');
  return { ports, said };
}

/** Waits until a program has said something. */
async function heard(said, word) {
  for (let tries = 0; !said.text.includes(word); tries++) {
    assert.ok(tries < 1000, `${word} is not said, but ${said.text}`);
    await sleep(10);
  }
}

/** The data of a reply. */
function dataOf(reply) {
  return decodeMessage(reply).answers.map(({ data }) => [data].flat().join());
}

/** The reply over HTTP/2. */
async function overHttp(t, place, message) {
  const session = http2.connect(place, { rejectUnauthorized: false });
  t.after(() => session.destroy());
  const dns = message.toString('base64url');
  const parts = [];
  for await (const part of session.request({ ':path': `/dns-query?dns=${dns}` })) parts.push(part);
  return Buffer.concat(parts);
}

test('a program with every sort of network answers over each', async (t) => {
  const ssl = certificate(t);
  if (ssl === null) return;
  const { ports, said } = await begin(t, EVERY_NETWORK, 'every.mjs', 4, ssl);
  const message = query('any.name.example', 'TXT');
  const replies = [
    await udp({ address, port: ports[0] }, message),
    ...(await tcp({ address, port: ports[0] }, [message])),
    ...(await tcp({ address, port: ports[1] }, [message], tls.connect)),
    await overHttp(t, `http://${address}:${ports[2]}`, message),
    await overHttp(t, `https://${address}:${ports[3]}`, message),
  ];
  for (const reply of replies) assert.deepEqual(dataOf(reply), ['Hello from all names']);
  await heard(said, 'any.name.example HTTPS"');
  for (const type of ['TCP', 'UDP', 'TLS', 'HTTP', 'HTTPS']) {
    assert.match(said.text, new RegExp(`^${type} on 127.0.0.1:\\d+$`, 'm'));
    assert.match(said.text, new RegExp(`response 4660 "TXT IN any.name.example ${type}" NO_ERROR`));
  }
  assert.doesNotMatch(said.text, / query \d/);
});

test('a program with a cache, a logger and a store answers, and keeps two answers', async (t) => {
  const { ports, said } = await begin(t, ALL_PLUGINS, 'plugins.mjs', 1);
  const place = { address, port: ports[0] };
  const expected = { A: '192.0.2.1', AAAA: '2001:db8::1', TXT: 'Hello' };
  for (const round of [1, 2]) {
    for (const [type, data] of Object.entries(expected)) {
      assert.deepEqual(dataOf(await udp(place, query('example.com', type))), [data], String(round));
    }
  }
  assert.equal(decodeMessage(await udp(place, query('example.net'))).rcode, 'NXDOMAIN');
  await heard(said, 'NX_DOMAIN');
  const sizes = [...said.text.matchAll(/kept: (\d)/g)].map(([, size]) => Number(size));
  assert.deepEqual([sizes.length, sizes[0], Math.max(...sizes)], [7, 0, 2]);
  assert.match(said.text, / query 4660 "A IN example.com UDP"/);
});

test('a program of several processes answers over UDP, TCP and HTTP', async (t) => {
  const { ports, said } = await begin(t, CLUSTER, 'cluster.cjs', 2);
  const place = { address, port: ports[0] };
  const message = query('example.com');
  assert.deepEqual(dataOf(await udp(place, message)), ['192.0.2.1']);
  assert.deepEqual(dataOf((await tcp(place, [message]))[0]), ['192.0.2.1']);
  const reply = await overHttp(t, `http://${address}:${ports[1]}`, message);
  assert.deepEqual(dataOf(reply), ['192.0.2.1']);
  await heard(said, '] example.com');
});
