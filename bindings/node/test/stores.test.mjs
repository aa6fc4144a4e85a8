// Zones that follow stores, asked over sockets while the stores change, go away and come back.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import zonda from '../index.js';
import { postgres, redis } from './databases.mjs';
import { folder, sleep, started, told, zoneFile } from './helpers.mjs';

const { MemoryStore, PostgresStore, RedbStore, RedisStore, App } = zonda;

/** After how many milliseconds no change is waited for any more: long on a busy machine, and less
 * than the 30 seconds after which Redis is compared. */
const PATIENCE = 20_000;

/** Waits until a question is answered so. */
async function becomes(app, [name, type], expected) {
  const limit = Date.now() + PATIENCE;
  for (;;) {
    const answer = await told(app, name, type);
    if (answer === expected) return;
    if (Date.now() > limit) assert.equal(answer, expected);
    await sleep(3);
  }
}

/** Addresses of `www.example.org`. */
function www(...data) {
  return { owner: 'www.example.org', type: 'A', ttl: 60, data };
}

/** An app that serves `example.org` from a store. */
function following(t, store) {
  return started(t, {}, (app) => app.store('Example.org', store));
}

/** What any store does: what is in it is answered, and so are its changes. */
async function checkStore(t, store) {
  await store.set({ owner: 'Example.org.', type: 'NS', ttl: 3600, data: ['ns.example.net'] });
  await store.set(www('192.0.2.1'));
  await store.set({ owner: 'www.example.com', type: 'A', ttl: 60, data: ['192.0.2.9'] });
  await store.set({ owner: 'elsewhere.example', type: 'A', data: ['192.0.2.1'] });
  const app = await started(t, {}, (app) => {
    app.store('Example.org', store).store('example.com', store);
  });
  const [a, other] = [['www.example.org', 'A'], ['www.example.com', 'A']];
  assert.equal(await told(app, ...a), 'NOERROR www.example.org. A 192.0.2.1');
  assert.equal(await told(app, ...other), 'NOERROR www.example.com. A 192.0.2.9');
  assert.equal(await told(app, 'example.org', 'NS'), 'NOERROR example.org. NS ns.example.net.');
  assert.equal(await told(app, 'elsewhere.example'), 'REFUSED');
  assert.deepEqual(await store.get('elsewhere.example'), [
    { owner: 'elsewhere.example', type: 'A', ttl: 300, data: ['192.0.2.1'] },
  ]);

  await store.set({ ...www('192.0.2.2'), owner: 'WWW.example.org.' });
  await becomes(app, a, 'NOERROR www.example.org. A 192.0.2.2');
  const texts = { owner: '*.www.example.org', type: 'txt', data: ['"a \\"b\\"" c'] };
  await store.set(texts);
  const both = 'NOERROR x.www.example.org. TXT ["a \\"b\\"","c"]';
  await becomes(app, ['x.www.example.org', 'TXT'], both);
  assert.deepEqual(await store.get('www.example.org'), [www('192.0.2.2')]);
  const owners = (await store.load('example.org')).map(({ owner }) => owner);
  assert.ok(owners.includes('example.org') && owners.includes('*.www.example.org'), owners.join());

  assert.equal(await store.remove('www.example.org.', 'A'), true);
  assert.equal(await store.remove('www.example.org', 1), false);
  await becomes(app, a, 'NOERROR'); // the wildcard is below it
  assert.equal(await store.remove('*.www.example.org', 'TXT'), true);
  await becomes(app, a, 'NXDOMAIN');
  assert.deepEqual(await store.get('www.example.org'), []);

  await assert.rejects(store.set(www('192.0.2')), /^Error: www\.example\.org A: `192\.0\.2`: /);
  assert.deepEqual(await store.get('www.example.org'), []);
  assert.equal(await told(app, ...other), 'NOERROR www.example.com. A 192.0.2.9');
}

test('what is in memory is answered as it changes', (t) => checkStore(t, new MemoryStore()));

test('what is in a file is answered as it changes, also when it was closed here', async (t) => {
  const file = join(folder(t), 'records.redb');
  const store = await RedbStore.open(file);
  await checkStore(t, store);
  await store.set(www('192.0.2.7'));
  await assert.rejects(RedbStore.open(file), /records\.redb: /); // it belongs to one at a time
  const app = await following(t, store);
  await store.close();
  await assert.rejects(store.get('www.example.org'), /^Error: the store is closed$/);
  assert.equal(await told(app, 'www.example.org'), 'NOERROR www.example.org. A 192.0.2.7');
  await app.stop();
});

test('a file that was closed can be opened again in the same process', async (t) => {
  const file = join(folder(t), 'records.redb');
  const store = await RedbStore.open(pathToFileURL(file));
  const app = new App({ listen: '127.0.0.1:0', workers: 1, log: 'off' });
  await app.store('example.org', store).start();
  await store.set(www('192.0.2.1'));
  await store.close();
  await app.stop();
  const again = await RedbStore.open(file);
  assert.deepEqual(await again.get('www.example.org'), [www('192.0.2.1')]);
  await again.close();
});

test('redis is a store as others', async (t) => {
  const server = await redis(t);
  if (server === null) return;
  await checkStore(t, new RedisStore(server.url));
  await checkStore(t, new RedisStore(`${server.url}/3`, { prefix: 'dns:' }));
  const value = await server.cli('HGET', 'org:example', 'NS');
  assert.deepEqual(JSON.parse(value), { data: ['ns.example.net'], ttl: 3600 });
});

test('redis is followed through changes of others and a restart', async (t) => {
  const server = await redis(t);
  if (server === null) return;
  await server.cli('HSET', 'org:example:www', 'A', '["192.0.2.1"]');
  const app = await following(t, new RedisStore(server.url));
  const a = ['www.example.org', 'A'];
  assert.equal(await told(app, ...a), 'NOERROR www.example.org. A 192.0.2.1');
  await server.cli('HSET', 'org:example:www', 'A', '["192.0.2.2"]');
  await becomes(app, a, 'NOERROR www.example.org. A 192.0.2.2');
  await server.stop();
  await sleep(300);
  assert.equal(await told(app, ...a), 'NOERROR www.example.org. A 192.0.2.2');
  await server.restart();
  await server.cli('HSET', 'org:example:new', 'A', '["192.0.2.3"]');
  await becomes(app, ['new.example.org', 'A'], 'NOERROR new.example.org. A 192.0.2.3');
});

test('redis that tells nothing is compared from time to time', async (t) => {
  const server = await redis(t);
  if (server === null) return;
  await server.cli('CONFIG', 'SET', 'notify-keyspace-events', '');
  const app = await following(t, new RedisStore(server.url, { compareEvery: 200 }));
  await server.cli('HSET', 'org:example:www', 'A', '["192.0.2.1"]');
  await becomes(app, ['www.example.org', 'A'], 'NOERROR www.example.org. A 192.0.2.1');
});

test('postgresql is a store as others', async (t) => {
  const server = await postgres(t);
  if (server === null) return;
  await checkStore(t, new PostgresStore(server.parameters));
  const first = 'SELECT owner, type, ttl, data FROM zonda_records ORDER BY owner LIMIT 1';
  assert.equal(await server.psql(first), 'elsewhere.example|A|300|192.0.2.1');
});

test('postgresql is followed through changes of others and a restart', async (t) => {
  const server = await postgres(t);
  if (server === null) return;
  const app = await following(t, new PostgresStore(server.parameters));
  const a = ['www.example.org', 'A'];
  const insert = (owner, data) =>
    server.psql(`INSERT INTO zonda_records VALUES ('${owner}', 'A', 60, '${data}')`);
  await insert('WWW.example.org.', '192.0.2.1');
  await becomes(app, a, 'NOERROR www.example.org. A 192.0.2.1');
  await server.psql("UPDATE zonda_records SET data = '192.0.2.2'");
  await becomes(app, a, 'NOERROR www.example.org. A 192.0.2.2');
  await server.stop();
  await sleep(300);
  assert.equal(await told(app, ...a), 'NOERROR www.example.org. A 192.0.2.2');
  await server.restart();
  await insert('new.example.org', '192.0.2.3');
  await becomes(app, ['new.example.org', 'A'], 'NOERROR new.example.org. A 192.0.2.3');
});

test('what is asked of a store is done in that order', async () => {
  const store = new MemoryStore();
  const changes = Array.from({ length: 200 }, (_, last) => store.set(www(`192.0.2.${last}`)));
  const before = store.get('www.example.org');
  const removed = store.remove('www.example.org', 'A');
  const after = store.get('www.example.org');
  await Promise.all(changes);
  assert.deepEqual([await before, await removed, await after], [[www('192.0.2.199')], true, []]);
});

test('data are text, octets, or what records have in replies', async () => {
  const store = new MemoryStore();
  const set = (type, ...data) => store.set({ owner: 'a.example', type, ttl: 1, data });
  await set('MX', { preference: 10, exchange: 'mx.example' }, '20 mx2.example');
  await set('TXT', ['any "text"', 'ü'], 'two strings');
  await set('TYPE65280', Buffer.of(1, 255));
  const sets = await store.get('a.example.');
  const data = Object.fromEntries(sets.map(({ type, data }) => [type, data]));
  assert.deepEqual(data, {
    MX: ['10 mx.example', '20 mx2.example'],
    TXT: ['"any \\"text\\"" "\\195\\188"', 'two strings'],
    TYPE65280: ['\\# 2 01ff'],
  });
});

test('what is wrong with records or a store is an error that says it', async (t) => {
  const store = new MemoryStore();
  const wrong = (set, message) => assert.rejects(store.set(set), message);
  await wrong(www(), /^Error: www\.example\.org A: there are no data$/);
  await wrong({ ...www('::'), owner: 'a..b' }, /^Error: a\.\.b A: the name has an empty label/);
  await wrong({ ...www('x'), type: 'ANY' }, /^Error: .* ANY: no record can have this type$/);
  await wrong(
    { ...www('x'), type: 'NONSENSE' },
    /^TypeError: .* the type of a record must be a text such as .*, not 'NONSENSE'/,
  );
  await wrong(
    { ...www('192.0.2.1'), ttl: 1.5 },
    /^TypeError: .* ttl must be a whole number of seconds from 0 to 2147483647, not 1\.5/,
  );
  await wrong(
    { ...www(), data: '192.0.2.1' },
    /^TypeError: .*: data must be an array with an element for each record, not '192/,
  );
  await wrong(
    { ...www(), owner: 7 },
    /^TypeError: 7 A: owner must be a name such as 'www\.example\.org', not 7$/,
  );
  await wrong(
    null,
    /^TypeError: a record set must be an object with owner, type and data, not null$/,
  );
  await wrong({ ...www(), type: 'MX', data: [{}] }, /^TypeError: .* exchange is missing$/);
  await assert.rejects(store.remove('a..b', 'A'), /^Error: a\.\.b/);
  await assert.rejects(store.load('a..b'), /^Error: zone a\.\.b: /);
  await store.set(www('192.0.2')).catch((error) => assert.match(error.stack, /stores\.test\.mjs/));

  assert.throws(() => new RedisStore('http://127.0.0.1'), /redis:\/\//);
  assert.throws(() => new PostgresStore('nonsense'), Error);
  assert.throws(
    () => new RedbStore('records.redb'),
    /^TypeError: .* is opened by `await RedbStore\.open\(file\)`/,
  );
  await assert.rejects(RedbStore.open(join(folder(t), 'none', 'records.redb')), /records\.redb: /);
  await assert.rejects(new RedisStore('redis://127.0.0.1:1').get('a'), /^Error: Redis at 127\.0\./);

  const app = new App({ listen: '127.0.0.1:0', workers: 1, log: 'off' });
  assert.throws(() => app.store('a..b', store), /^Error: zone a\.\.b: /);
  for (const none of [undefined, null, 'store', {}]) {
    assert.throws(
      () => app.store('example.org', none),
      /^TypeError: the store of zone 'example\.org' must be a Store/,
    );
  }
  await app.start();
  assert.throws(() => app.store('example.org', store), /store\(\) comes before start\(\)/);
  await app.stop();
});

test('a database that is silent keeps neither JavaScript nor the answers waiting', async (t) => {
  const sockets = [];
  const silent = net.createServer((socket) => sockets.push(socket)).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  t.after(() => silent.close());
  const store = new RedisStore(`redis://127.0.0.1:${silent.address().port}`);
  const asked = store.get('www.example.org').then(
    () => 'answered',
    () => 'rejected',
  );
  if (sockets.length === 0) await once(silent, 'connection');
  assert.equal(await Promise.race([asked, sleep(100).then(() => 'silent')]), 'silent');
  for (const socket of sockets) socket.destroy();
  silent.on('connection', (socket) => socket.destroy());
  assert.equal(await asked, 'rejected');
});

/** A store of a program, which can be made to fail. */
class Own {
  sets = [];
  listeners = [];
  asked = [];
  mood = () => {};

  async load(zone) {
    this.asked.push(`load ${zone}`);
    await this.mood();
    return this.sets;
  }

  async get(owner) {
    this.asked.push(`get ${owner}`);
    await this.mood();
    return this.sets.filter((set) => set.owner === owner);
  }

  watch(zone, changed) {
    this.asked.push(`watch ${zone}`);
    this.listeners.push(changed);
  }

  /** Sets an address of `www.example.org`. */
  put(address, ...changed) {
    this.sets = [www(address)];
    for (const tell of this.listeners) tell(...changed);
  }
}

test('a store that is written in JavaScript is followed', async (t) => {
  const store = new Own();
  store.put('192.0.2.1');
  const app = await following(t, store);
  assert.deepEqual(store.asked, ['watch example.org', 'load example.org']);
  const a = ['www.example.org', 'A'];
  assert.equal(await told(app, ...a), 'NOERROR www.example.org. A 192.0.2.1');
  store.put('192.0.2.2', 'WWW.Example.org.');
  await becomes(app, a, 'NOERROR www.example.org. A 192.0.2.2');
  assert.equal(store.asked.at(-1), 'get www.example.org');
  store.put('192.0.2.3');
  await becomes(app, a, 'NOERROR www.example.org. A 192.0.2.3');
  assert.equal(store.asked.at(-1), 'load example.org');
  store.sets = [];
  store.listeners[0]('www.example.org');
  await becomes(app, a, 'NXDOMAIN');
  await app.stop();
  store.put('192.0.2.4'); // nobody listens
  assert.equal(store.asked.filter((call) => call.startsWith('watch')).length, 1);
});

test('a store in JavaScript needs neither get nor watch', async (t) => {
  let tell;
  let sets = [{ ...www('192.0.2.1'), owner: 'Www.Example.org.', ttl: undefined }];
  const app = await started(t, {}, (app) => {
    app.store('example.org', { load: () => sets, watch: (zone, changed) => (tell = changed) });
    app.store('example.net', { load: () => [] });
  });
  const a = ['www.example.org', 'A'];
  assert.equal(await told(app, ...a), 'NOERROR www.example.org. A 192.0.2.1');
  assert.equal(await told(app, 'example.net', 'NS'), 'NOERROR example.net. NS localhost.');
  sets = [www('192.0.2.2')];
  tell('www.example.org');
  await becomes(app, a, 'NOERROR www.example.org. A 192.0.2.2');
});

test('a store in JavaScript that fails leaves its zone as it was until it is back', async (t) => {
  const store = new Own();
  store.deadline = 200;
  store.sets = [www('192.0.2.1')];
  const app = await following(t, store);
  const a = ['www.example.org', 'A'];
  await becomes(app, a, 'NOERROR www.example.org. A 192.0.2.1');
  const moods = {
    throws: () => {
      throw new Error('the database is away');
    },
    rejects: () => Promise.reject(Object.create(null)),
    'never settles': () => new Promise(() => {}),
  };
  let [last, next] = [1, 2];
  for (const [mood, fail] of Object.entries(moods)) {
    const former = `NOERROR www.example.org. A 192.0.2.${last}`;
    store.mood = fail;
    store.put(`192.0.2.${next}`, ...(mood === 'throws' ? [] : ['www.example.org']));
    await sleep(400);
    assert.equal(await told(app, ...a), former, mood);
    store.mood = () => {};
    await becomes(app, a, `NOERROR www.example.org. A 192.0.2.${next}`);
    [last, next] = [next, next + 1];
  }
  store.load = () => 'no list';
  store.listeners[0]();
  await sleep(200);
  assert.equal(await told(app, ...a), `NOERROR www.example.org. A 192.0.2.${last}`);
  assert.equal(store.listeners.length, 1, 'it is watched once');
});

test('a store in JavaScript that never answers keeps neither start nor stop', async (t) => {
  const began = performance.now();
  const app = await started(t, {}, (app) => {
    const load = () => {
      app.handle('late.example', (req, res) => res.answer({ type: 'A', data: '192.0.2.7' }));
      return new Promise(() => {});
    };
    app.store('example.org', { load });
    app.store('example.net', { load: () => [], watch: () => new Promise(() => {}) });
    app.zone('example.com', { text: '@ 60 SOA ns h 1 2 3 4 5\n@ 60 NS ns\nns 60 A 192.0.2.1\n' });
  });
  assert.ok(performance.now() - began < PATIENCE); // methods have 30 seconds
  assert.equal(await told(app, 'www.example.org'), 'SERVFAIL');
  assert.equal(await told(app, 'example.net'), 'SERVFAIL');
  assert.equal(await told(app, 'ns.example.com'), 'NOERROR ns.example.com. A 192.0.2.1');
  assert.equal(await told(app, 'late.example'), 'NOERROR late.example. A 192.0.2.7');
  const stopping = performance.now();
  await app.stop();
  assert.ok(performance.now() - stopping < PATIENCE);
});

test('an app that could not start asks its stores again when it does', async (t) => {
  const store = new Own();
  store.sets = [www('192.0.2.1')];
  const taken = net.createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const { port } = taken.address();
  const app = new App({ listen: `tcp://127.0.0.1:${port}`, workers: 1, log: 'off' });
  app.store('example.org', store);
  await assert.rejects(app.start());
  taken.close();
  await once(taken, 'close');
  await app.start();
  t.after(() => app.stop());
  const reply = await app.query({ name: 'www.example.org' });
  assert.equal(reply.answers[0]?.data, '192.0.2.1');
});

test('wrong records of a store in JavaScript are left out and others are served', async (t) => {
  const owner = 'bad.example.org';
  const sets = [
    www('192.0.2.1'),
    { owner, type: 'A', data: ['192.0.2.1\nevil 60 A 192.0.2.66'] },
    { owner: `${owner}\nevil.example.org 60 A 192.0.2.66 ;`, type: 'A', data: ['192.0.2.1'] },
    { owner, type: 'NONSENSE', data: ['x'] },
    { owner, type: 'MX', data: [{}] },
    { owner, type: 'A', ttl: -1, data: ['192.0.2.1'] },
    { owner, type: 'A' },
    { type: 'A', data: ['192.0.2.1'] },
    null,
    7,
    { owner: 'mail.example.org', type: 'MX', data: [{ exchange: 'mx.example.org' }] },
  ];
  const app = await following(t, { load: async () => sets });
  assert.equal(await told(app, 'www.example.org'), 'NOERROR www.example.org. A 192.0.2.1');
  assert.equal(await told(app, owner), 'NXDOMAIN');
  assert.equal(await told(app, 'evil.example.org'), 'NXDOMAIN');
  assert.match(await told(app, 'mail.example.org', 'MX'), /^NOERROR .*mx\.example\.org/);
});

/** A zone with an address, as text. */
function zoneText(last) {
  return `@ 60 SOA ns h 1 2 3 4 5\n@ 60 NS ns\nns 60 A 192.0.2.${last}\n`;
}

test('zones are set and removed as text while the app runs', async (t) => {
  const app = await started(t, { zones: { 'Example.org': { text: zoneText(1) } } });
  const answers = (name, last) => `NOERROR ${name}. A 192.0.2.${last}`;
  assert.equal(await told(app, 'ns.example.org'), answers('ns.example.org', 1));
  await app.setZoneText('example.ORG.', zoneText(2));
  assert.equal(await told(app, 'ns.example.org'), answers('ns.example.org', 2));
  const wrong = `${zoneText(3)}www 60 A nonsense\nb 60 MX\n`;
  await assert.rejects(app.setZoneText('example.org', wrong), ({ message }) => {
    assert.match(message, /^example\.org\. \(of the program\):4:\d+: .*nonsense/);
    assert.match(message, /\n.*:5:/);
    return true;
  });
  await assert.rejects(app.setZoneText('example.com', wrong), /:4:/);
  assert.equal(await told(app, 'ns.example.org'), answers('ns.example.org', 2));
  assert.equal(await told(app, 'ns.example.com'), 'REFUSED');
  await app.setZoneText('example.net', zoneText(4));
  await app.reload();
  assert.equal(await told(app, 'ns.example.net'), answers('ns.example.net', 4));
  assert.equal(await told(app, 'ns.example.org'), answers('ns.example.org', 2));

  const set = (_, last) => app.setZoneText('a.example', zoneText(last));
  await Promise.all(Array.from({ length: 20 }, set));
  assert.equal(await told(app, 'ns.a.example'), answers('ns.a.example', 19));
  assert.equal(await app.removeZoneText('Example.org'), true);
  assert.equal(await app.removeZoneText('example.org'), false);
  assert.equal(await told(app, 'ns.example.org'), 'REFUSED');
  await assert.rejects(app.setZoneText('a..b', zoneText(1)), /^Error: zone a\.\.b: /);
});

test('zones are given as text only while the app runs, and not what a store has', async (t) => {
  const app = new App({ listen: '127.0.0.1:0', workers: 1, log: 'off' });
  await assert.rejects(app.setZoneText('example.org', zoneText(1)), /has not started/);
  assert.throws(() => app.zone('a..b', { text: zoneText(1) }), /^Error: zone a\.\.b: /);
  const store = new MemoryStore();
  await store.set(www('192.0.2.1'));
  app.store('example.org', store).zone('example.net', { file: zoneFile(t) });
  await app.start();
  await assert.rejects(
    app.setZoneText('Example.org', zoneText(1)),
    /its content comes from a store; change it there/,
  );
  await assert.rejects(
    app.removeZoneText('example.org'),
    /its content comes from a store; change it there/,
  );
  assert.equal(await told(app, 'www.example.org'), 'NOERROR www.example.org. A 192.0.2.1');
  await app.stop();
  await assert.rejects(app.setZoneText('example.org', zoneText(1)), /has stopped/);
});
