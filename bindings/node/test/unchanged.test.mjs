import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ask, folder, freePort, placeOf, query, queryWithOptions, started, tcp, udp } from './helpers.mjs';

/** The extended error of a query that upstreams have failed to answer. */
const NETWORK_ERROR = 23;
/** The code of the EDNS option with a cookie. */
const COOKIE = 10;
/** Octets of a client's cookie, and of what a reply adds to it. */
const [CLIENT_COOKIE, SERVER_COOKIE] = [8, 16];
/** Where the size, and the bits, of the OPT record lie, counted from the end of a query without
 * options. */
const [SIZE_FROM_END, BITS_FROM_END] = [8, 4];

/** A zone with answers of all sizes, and aliases that lead out of it. */
const ZONE = [
  '$TTL 300',
  '@ SOA ns hostmaster 1 2 3 4 5',
  '@ NS ns',
  '@ MX 10 ns',
  'ns A 192.0.2.53',
  'www A 192.0.2.80',
  'alias CNAME www',
  'away CNAME www.elsewhere.test.',
  `large TXT ${Array.from({ length: 4 }, (_, place) => `${place}${'x'.repeat(200)}`).join(' ')}`,
  ...Array.from({ length: 60 }, (_, place) => `huge TXT ${place}${'y'.repeat(200)}`),
  'wide A 192.0.2.1',
  'wide AAAA 2001:db8::1',
  'child NS ns.child',
  'ns.child A 192.0.2.54',
  '*.wild A 192.0.2.90',
  '',
].join('\n');

/** Questions for all of it, and for names of upstreams. */
const QUESTIONS = [
  ['www.example.org', 'A'],
  ['wWw.Example.org', 'A'],
  ['www.example.org', 'AAAA'],
  ['none.example.org', 'A'],
  ['alias.example.org', 'A'],
  ['away.example.org', 'A'],
  ['example.org', 'MX'],
  ['large.example.org', 'TXT'],
  ['huge.example.org', 'TXT'],
  ['wide.example.org', 'ANY'],
  ['x.child.example.org', 'A'],
  ['x.wild.example.org', 'A'],
  ['www.elsewhere.test', 'A'],
  ['none.elsewhere.test', 'A'],
];

/** A query without EDNS. */
function plain(name, type) {
  const message = query(name, type).subarray(0, -11);
  message.writeUInt16BE(0, 10);
  return message;
}

/** A query that says which size the client takes, and whether it wants DNSSEC records. */
function sized(name, type, size, isDnssecOk = false) {
  const message = query(name, type);
  message.writeUInt16BE(size, message.length - SIZE_FROM_END);
  message.writeUInt16BE(isDnssecOk ? 0x8000 : 0, message.length - BITS_FROM_END);
  return message;
}

/** A query with a cookie of the client. */
function withCookie(name, type) {
  return queryWithOptions(name, type, [{ code: COOKIE, data: Buffer.alloc(CLIENT_COOKIE, 7) }]);
}

/** All that a client may say in a query, and how it may send it. */
const WAYS = {
  'UDP without EDNS': [plain, udp],
  'UDP 512': [(name, type) => sized(name, type, 512), udp],
  'UDP 1232': [(name, type) => sized(name, type, 1232), udp],
  'UDP 4096': [(name, type) => sized(name, type, 4096), udp],
  'UDP with DO': [(name, type) => sized(name, type, 1232, true), udp],
  'UDP with a cookie': [withCookie, udp],
  TCP: [query, async (place, message) => (await tcp(place, [message]))[0]],
  'TCP with a cookie': [withCookie, async (place, message) => (await tcp(place, [message]))[0]],
};

/** A reply as text, without what a server's cookie has of the time. */
function shown(reply) {
  const octets = Buffer.from(reply);
  const at = octets.indexOf(Buffer.alloc(CLIENT_COOKIE, 7));
  if (at >= 0) octets.fill(0, at + CLIENT_COOKIE, at + CLIENT_COOKIE + SERVER_COOKIE);
  return octets.toString('hex');
}

/** The replies to all questions in all ways, by what was asked. */
async function replies(app) {
  const found = new Map();
  for (const [way, [write, send]] of Object.entries(WAYS)) {
    for (const [name, type] of QUESTIONS) {
      const reply = await send(placeOf(app), write(name, type));
      found.set(`${name} ${type}, ${way}`, reply === null ? 'silence' : shown(reply));
    }
  }
  return found;
}

/** An app with the zone, in front of an upstream that counts its queries and whose answers must not
 * be cached; `prepare` may add to it. */
async function inFrontOfUpstream(t, options = {}, prepare = () => {}) {
  const seen = new Map();
  const upstream = await started(t, {}, (app) => {
    app.handle('*', (req, res) => {
      seen.set(req.name, (seen.get(req.name) ?? 0) + 1);
      if (req.name.startsWith('fails.')) return res.servfail();
      const soa = { name: 'test', type: 'SOA', ttl: 0, data: 'a a 1 2 3 4 0' };
      if (req.name.startsWith('none.')) return res.nxdomain().authority(soa);
      return res.answer({ type: 'A', ttl: 0, data: '192.0.2.77' });
    });
  });
  const file = join(folder(t), 'example.org.zone');
  writeFileSync(file, ZONE);
  const app = await started(t, options, (app) => {
    app.zone('example.org', { file });
    app.forward(upstream.addresses[0]);
    prepare(app);
  });
  return { app, seen };
}

/** Middleware that leaves each reply as it is. */
const LEAVES = {
  'is not looked at': (req, res, next) => next(),
  'is looked at': async (req, res, next) => {
    await next();
    assert.ok(res.answered && res.rcode && res.answers && res.authorities && res.additionals);
  },
  'is written anew as it was': async (req, res, next) => {
    await next();
    res.answers = res.answers.map((record) => Object.assign(record, { ttl: record.ttl }));
    res.authoritative = res.authoritative;
  },
  'comes late': async (req, res, next) => {
    await next();
    await new Promise((resolve) => setImmediate(resolve));
  },
};

for (const [how, middleware] of Object.entries(LEAVES)) {
  test(`a reply that ${how} is, octet for octet, the one without middleware`, async (t) => {
    const { app } = await inFrontOfUpstream(t);
    const expected = await replies(app);
    app.middleware(middleware);
    for (const [asked, reply] of await replies(app)) {
      assert.equal(reply, expected.get(asked), asked);
    }
  });
}

test('upstreams are asked once for a reply that middleware leaves unchanged', async (t) => {
  const { app, seen } = await inFrontOfUpstream(t, {}, (app) => {
    app.middleware(LEAVES['is looked at']);
  });
  for (const name of ['www.elsewhere.test', 'none.elsewhere.test', 'away.example.org']) {
    seen.clear();
    assert.notEqual((await ask(app, name)).rcode, 'SERVFAIL');
    assert.deepEqual([...seen.values()], [1], name);
  }
  const { rcode, error } = await ask(app, 'fails.elsewhere.test');
  assert.equal(rcode, 'SERVFAIL');
  assert.equal(error.code, NETWORK_ERROR, 'not a cached error, as when it is answered once more');
});

test('a reply that middleware leaves unchanged is counted once, as what it is', async (t) => {
  const metrics = `127.0.0.1:${await freePort()}`;
  const { app } = await inFrontOfUpstream(t, { metrics }, (app) => {
    app.middleware(LEAVES['is looked at']);
  });
  for (const name of ['www.example.org', 'none.example.org', 'www.elsewhere.test']) {
    await ask(app, name);
  }
  const page = await (await fetch(`http://${metrics}/metrics`)).text();
  const counted = [...page.matchAll(/^zonda_queries_total\{.*="(\w+)".*\} ([1-9]\d*)$/gm)];
  const sums = Object.fromEntries(counted.map(([, reason, count]) => [reason, Number(count)]));
  assert.deepEqual(sums, { answered: 1, nxdomain: 1, forwarded: 1 });
});

test('a reply that middleware changes for some clients is changed for them alone', async (t) => {
  const { app } = await inFrontOfUpstream(t, {}, (app) => {
    app.middleware(async (req, res, next) => {
      await next();
      if (req.transport === 'tcp') res.answers[0].ttl = 7;
    });
  });
  for (const name of ['www.example.org', 'www.elsewhere.test', 'away.example.org']) {
    const expected = await udp(placeOf(app), query(name));
    const [changed] = await tcp(placeOf(app), [query(name)]);
    assert.equal(changed.readUInt32BE(12 + name.length + 2 + 4 + 6), 7, name);
    assert.notEqual(expected.readUInt32BE(12 + name.length + 2 + 4 + 6), 7, name);
    assert.deepEqual(await udp(placeOf(app), query(name)), expected, 'the next one is not');
  }
});
