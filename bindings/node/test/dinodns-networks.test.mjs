// Networks of DinoDNS: those of Node.js, and what all of them tell.

import assert from 'node:assert/strict';
import dgram from 'node:dgram';
import { once } from 'node:events';
import http2 from 'node:http2';
import https from 'node:https';
import net from 'node:net';
import { test } from 'node:test';
import tls from 'node:tls';
import zonda from '../index.js';
import dinodns from '../dinodns/index.js';
import { certificate } from './certificate.mjs';
import { address, serve, told } from './dino.mjs';
import { query, sleep, tcp as overTcp } from './helpers.mjs';

const { decodeMessage, makeQuery } = zonda;
const { DNSOverHTTP, DNSOverTCP, DNSOverUDP } = dinodns;

test('HTTP answers GET, GET by name, and POST', async (t) => {
  const http = new DNSOverHTTP({ address, port: 0 });
  const types = [];
  await serve(
    t,
    (server) => {
      server.handle('a.example', (req, res) => {
        types.push(req.connection.type);
        res.answer({ type: 'A', ttl: 60, data: '192.0.2.1' });
      });
    },
    { networks: [http] },
  );
  const client = http2.connect(`http://${address}:${http.boundPort}`);
  t.after(() => client.close());
  const request = async (headers, body) => {
    const stream = client.request(headers);
    stream.end(body);
    const [head] = await once(stream, 'response');
    const parts = [];
    for await (const part of stream) parts.push(part);
    return { status: head[':status'], head, body: Buffer.concat(parts) };
  };
  const message = makeQuery({ name: 'a.example' });
  const get = await request({ ':path': `/dns-query?dns=${message.toString('base64url')}` });
  assert.equal(get.head['content-type'], 'application/dns-message');
  assert.equal(get.head['cache-control'], 'max-age=60');
  const post = await request({ ':path': '/dns-query', ':method': 'POST' }, message);
  const byName = await request({ ':path': '/dns-query?name=a.example&type=A' });
  for (const { body, status } of [get, post, byName]) {
    assert.deepEqual([status, decodeMessage(body).answers[0].data], [200, '192.0.2.1']);
  }
  assert.deepEqual(types, ['HTTP', 'HTTP', 'HTTP']);
  assert.equal((await request({ ':path': '/other' })).status, 404);
  assert.equal((await request({ ':path': '/dns-query' })).status, 400);
  assert.equal((await request({ ':path': '/dns-query', ':method': 'PUT' })).status, 405);
  assert.equal(
    (await request({ ':path': '/dns-query', ':method': 'POST' }, Buffer.from([1]))).status,
    400,
  );
});

test('TLS answers, next to UDP', async (t) => {
  const ssl = certificate(t);
  if (ssl === null) return;
  const secure = new DNSOverTCP({ address, port: 0, ssl });
  const server = await serve(
    t,
    (server) =>
      server.handle('*', (req, res) => res.answer({ type: 'TXT', data: req.connection.type })),
    { networks: [secure, new DNSOverUDP({ address, port: 0 })] },
  );
  const place = { address, port: secure.boundPort };
  const replies = await overTcp(
    place,
    [query('a.example', 'TXT'), query('b.example', 'TXT')],
    tls.connect,
  );
  assert.deepEqual(
    replies.map((reply) => decodeMessage(reply).answers[0].data[0]),
    ['TLS', 'TLS'],
  );
  assert.equal(await told(server, 'a.example', 'TXT'), 'NOERROR ["UDP"]');
});

/** Answers `TXT` questions with how they came, after some milliseconds. */
function way(server, millis = 0) {
  server.handle('*', async (req, res) => {
    if (millis > 0) await sleep(millis);
    res.answer({ type: 'TXT', data: req.connection.type });
  });
}

/** What the reply to a question over HTTP/2 says. */
async function overSession(session, name) {
  const dns = query(name, 'TXT').toString('base64url');
  const stream = session.request({ ':path': `/dns-query?dns=${dns}` });
  const parts = [];
  for await (const part of stream) parts.push(part);
  return decodeMessage(Buffer.concat(parts))?.answers[0].data[0];
}

test('HTTPS answers over HTTP/2 and HTTP/1.1', async (t) => {
  const ssl = certificate(t);
  if (ssl === null) return;
  const secure = new DNSOverHTTP({ address, port: 0, ssl });
  await serve(t, way, { networks: [secure] });
  const place = `https://${address}:${secure.boundPort}`;
  const session = http2.connect(place, { rejectUnauthorized: false });
  t.after(() => session.destroy());
  assert.equal(await overSession(session, 'a.example'), 'HTTPS');
  const dns = query('b.example', 'TXT').toString('base64url');
  const get = https.get(`${place}/dns-query?dns=${dns}`, { rejectUnauthorized: false });
  const [reply] = await once(get, 'response');
  const parts = [];
  for await (const part of reply) parts.push(part);
  const { answers } = decodeMessage(Buffer.concat(parts));
  assert.deepEqual([reply.httpVersion, answers[0].data], ['1.1', ['HTTPS']]);
});

test('a server that stops answers what it has received, and closes what is open', async (t) => {
  const ssl = certificate(t);
  if (ssl === null) return;
  const networks = [
    new DNSOverHTTP({ address, port: 0 }),
    new DNSOverHTTP({ address, port: 0, ssl }),
    new DNSOverTCP({ address, port: 0, ssl }),
  ];
  const server = await serve(t, (server) => way(server, 150), { networks });
  const [http, secureHttp, overTls] = networks.map(({ boundPort }) => boundPort);
  const sessions = [
    http2.connect(`http://${address}:${http}`),
    http2.connect(`https://${address}:${secureHttp}`, { rejectUnauthorized: false }),
  ];
  const kept = tls.connect({ host: address, port: overTls, rejectUnauthorized: false });
  const agent = new https.Agent({ keepAlive: true, rejectUnauthorized: false });
  const idle = https.get(`https://${address}:${secureHttp}/other`, { agent });
  (await once(idle, 'response'))[0].resume();
  const asked = sessions.map((session) => overSession(session, 'a.example'));
  const framed = once(kept, 'data');
  kept.resume();
  const message = query('a.example', 'TXT');
  kept.write(Buffer.concat([Buffer.of(0, message.length), message]));
  const closed = [...sessions, kept].map((it) => once(it, 'close'));
  await sleep(100); // all has come, and nothing is answered
  const before = Date.now();
  await server.stop();
  assert.ok(Date.now() - before < 3000);
  assert.deepEqual(await Promise.all(asked), ['HTTP', 'HTTPS']);
  const [octets] = await framed;
  assert.deepEqual(decodeMessage(octets.subarray(2)).answers[0].data, ['TLS']);
  await Promise.all(closed);
  assert.deepEqual(
    networks.map(({ server }) => server.listening),
    [false, false, false],
  );
  await server.start(); // on other free ports
  assert.ok(networks.every(({ server }) => server.listening));
});

test('networks tell that they are listened on, and closed', async (t) => {
  const ssl = certificate(t);
  if (ssl === null) return;
  const told = [];
  const networks = [
    new DNSOverUDP({ address, port: 0 }),
    new DNSOverTCP({ address, port: 0 }),
    new DNSOverTCP({ address, port: 0, ssl }),
    new DNSOverHTTP({ address, port: 0 }),
  ];
  for (const network of networks) {
    for (const event of ['listening', 'close']) {
      network.on(event, () => told.push(`${network.networkType} ${event}`));
    }
    network.off('close', () => {});
  }
  const server = new dinodns.DefaultServer({ networks });
  await server.start(() => told.push('started'));
  assert.equal(told.pop(), 'started');
  const all = (event) => ['HTTP', 'TCP', 'TLS', 'UDP'].map((type) => `${type} ${event}`);
  assert.deepEqual(told.splice(0).sort(), all('listening'));
  assert.deepEqual(
    networks.map(({ server }) => server !== undefined),
    [false, false, true, true],
  );
  await server.stop();
  assert.deepEqual(told.sort(), all('close'));
});

/** Returns a UDP socket whose port no TCP socket has. */
async function udpAlone() {
  for (;;) {
    const udp = dgram.createSocket('udp4').bind(0, address);
    await once(udp, 'listening');
    const tcp = net.createServer().listen(udp.address().port, address);
    try {
      await once(tcp, 'listening');
      tcp.close();
      await once(tcp, 'close');
      return udp;
    } catch {
      udp.close();
    }
  }
}

test('a network that cannot be listened on tells it, and the server can be started later', async (t) => {
  const udp = await udpAlone();
  const tcp = net.createServer().listen(0, address);
  await once(tcp, 'listening');
  const place = { address, port: udp.address().port };
  const http = new DNSOverHTTP({ address, port: tcp.address().port });
  const store = new dinodns.DefaultStore();
  store.set('a.example', 'A', '192.0.2.1');
  for (const [network, others, taken] of [
    [new DNSOverUDP(place), [new DNSOverTCP(place)], udp],
    [http, [new DNSOverUDP({ address, port: 0 })], tcp],
  ]) {
    const server = new dinodns.DefaultServer({ networks: [...others, network] });
    server.use(store.handler);
    others[0].on('error', () => assert.fail('another network has the error'));
    await assert.rejects(server.start(), { code: 'EADDRINUSE' });
    const errors = [];
    network.on('error', ({ code }) => errors.push(code));
    server.start(() => assert.fail('it has started')); // whose promise nobody looks at
    while (errors.length === 0) await sleep(5);
    assert.deepEqual(errors, ['EADDRINUSE']);
    taken.close();
    await once(taken, 'close');
    await server.start();
    t.after(() => server.stop());
    assert.equal(await told(server, 'a.example'), 'NOERROR 192.0.2.1');
  }
});

test('connections over TLS and HTTP are limited, end when they are idle, and are looked after', async (t) => {
  const ssl = certificate(t);
  if (ssl === null) return;
  const kept = t.mock.method(net.Socket.prototype, 'setKeepAlive');
  const limits = { maxConnections: 1, timeout: 100, keepAlive: false };
  const overTls = new DNSOverTCP({ address, port: 0, ssl, ...limits });
  const http = new DNSOverHTTP({ address, port: 0, ...limits });
  const other = new DNSOverHTTP({ address, port: 0 });
  await serve(t, way, { networks: [overTls, http, other] });
  const place = { host: address, port: overTls.boundPort, rejectUnauthorized: false };
  const secure = tls.connect(place);
  await once(secure, 'secureConnect');
  const second = tls.connect(place);
  second.on('error', () => {});
  const session = http2.connect(`http://${address}:${http.boundPort}`);
  session.on('error', () => {});
  const lasting = http2.connect(`http://${address}:${other.boundPort}`);
  t.after(() => lasting.destroy());
  const isOver = (it) => new Promise((resolve) => it.once('close', resolve));
  await Promise.all([once(session, 'connect'), once(lasting, 'connect')]);
  await Promise.all([isOver(second), isOver(secure.resume()), isOver(session)]);
  assert.equal(await overSession(lasting, 'a.example'), 'HTTP');
  const said = kept.mock.calls.map(({ arguments: [is] }) => is);
  assert.deepEqual(said.sort(), [false, false, true]);
});
