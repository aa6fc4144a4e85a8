// What `console.log` and a log show of queries, replies, apps and stores.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { inspect } from 'node:util';
import zonda from '../index.js';
import { ask, folder, placeOf, started } from './helpers.mjs';

const { App, MemoryStore, PostgresStore, RedbStore, RedisStore } = zonda;

test('a query shows what the client asks, and nothing that only the server knows', async (t) => {
  const shown = [];
  const app = await started(t, {}, (app) => {
    app.handle(':user.example/TXT', (req, res) => {
      const [before, json] = [inspect(req), JSON.stringify(req)];
      shown.push(before, json, Object.keys(req), inspect({ a: { b: { req } } }));
      return res.answer({ type: 'TXT', data: 'a' });
    });
  });
  await ask(app, 'Ann.example', 'TXT');
  const [text, json, keys, deep] = shown;
  assert.match(text, /^Query \{\n {2}name: 'ann\.example\.',\n {2}type: 'TXT',\n/);
  assert.match(text, /captures: \{ user: 'ann' \}\n\}$/);
  const { client, ...rest } = JSON.parse(json);
  assert.equal(client.address, '127.0.0.1');
  assert.deepEqual(rest, {
    name: 'ann.example.',
    type: 'TXT',
    transport: 'udp',
    dnssecOk: false,
    clientSubnet: null,
    pattern: ':user.example/TXT',
    captures: { user: 'ann' },
  });
  assert.deepEqual(keys, ['pattern']);
  assert.match(deep, /\{ req: \[Query\] \}/);
});

test('a query that is inspected does not count as one whose client was looked at', async (t) => {
  let calls = 0;
  const app = await started(t, {}, (app) => {
    app.handle('*.example', (req, res) => {
      calls++;
      if (req.name === 'inspected.example.') inspect(req);
      else JSON.stringify(req);
      return res.answer({ type: 'TXT', data: 'a' }).cache({ ttl: 60 });
    });
  });
  for (let times = 0; times < 3; times++) await ask(app, 'inspected.example', 'TXT');
  assert.equal(calls, 1, 'the answer is kept');
  for (let times = 0; times < 3; times++) await ask(app, 'written.example', 'TXT');
  assert.equal(calls, 4, 'JSON has the address of the client, so that the answer is not kept');
});

test('a reply shows what it says, also with a record that is none', async (t) => {
  const shown = [];
  const app = await started(t, {}, (app) => {
    app.handle('new.example', (req, res) => void shown.push(inspect(res)));
    app.handle('dropped.example', (req, res) => void shown.push(inspect(res.drop())));
    app.handle('a.example', (req, res) => {
      res.answer({ type: 'A', data: '192.0.2.1' }).extendedError('Blocked', 'why');
      shown.push(inspect(res), res.toJSON());
    });
    app.handle('wrong.example', (req, res) => {
      res.answer({ type: 'A', data: 'no address' });
      shown.push(inspect(res), JSON.stringify(res));
    });
  });
  const calls = ['new', 'dropped', 'a', 'wrong'].map((name) => {
    return app.query(`${name}.example`).catch(() => {});
  });
  await Promise.all(calls);
  const [fresh, dropped, text, json, wrong, wrongJson] = shown;
  assert.equal(fresh, 'Reply { answered: false }');
  assert.equal(dropped, 'Reply { answered: true, isDropped: true }');
  assert.match(text, /^Reply \{\n {2}answered: true,\n {2}rcode: 'NOERROR',\n/);
  assert.match(text, /answers: \[ \{ type: 'A', data: '192\.0\.2\.1' \} \]/);
  assert.deepEqual(json, {
    answered: true,
    rcode: 'NOERROR',
    authoritative: true,
    authenticData: false,
    error: { code: 15, text: 'why' },
    answers: [{ type: 'A', data: '192.0.2.1' }],
    authorities: [],
    additionals: [],
  });
  assert.match(wrong, /no address/);
  assert.match(wrongJson, /no address/);
});

test('a reply of a zone that is inspected behind next() is sent as it was', async (t) => {
  let shown;
  const app = await started(t, {}, (app) => {
    const text = '@ 60 SOA ns h 1 2 3 4 5\n@ 60 NS ns.example.net.\nwww 60 A 192.0.2.1\n';
    app.zone('example.org', { text });
    app.middleware(async (req, res, next) => {
      await next();
      shown = inspect(res, { depth: 4 });
    });
  });
  const reply = await ask(app, 'www.example.org');
  assert.equal(reply.of('A')[0].data, '192.0.2.1');
  assert.match(shown, /data: '192\.0\.2\.1'/);
});

test('an app and a router show their patterns', async (t) => {
  const app = new App({ listen: '127.0.0.1:0', workers: 1, log: 'off' });
  app.handle('a.example/A', () => {});
  app.middleware('*.example', (req, res, next) => next());
  app.middleware(function guard(req, res, next) {
    return next();
  });
  const rest = "handlers: [ 'a.example/A' ], middleware: [ 'guard', '*.example' ]";
  assert.equal(inspect(app, { breakLength: Infinity }), `App { state: 'new', ${rest} }`);
  assert.equal(inspect(app.route('eu.example')), "Router { suffix: 'eu.example' }");
  await app.start();
  t.after(() => app.stop());
  const { port } = placeOf(app);
  const running = `App { state: 'running', addresses: [ '127.0.0.1:${port}' ], ${rest} }`;
  assert.equal(inspect(app, { breakLength: Infinity }), running);
});

test('stores show where their records are, and no password', async (t) => {
  const file = join(folder(t), 'records.redb');
  const redb = await RedbStore.open(file);
  assert.equal(inspect(redb), `RedbStore { file: '${file}' }`);
  await redb.close();
  assert.equal(inspect(redb), `RedbStore { file: '${file}', isClosed: true }`);
  assert.equal(inspect(new MemoryStore()), 'MemoryStore {}');
  const redis = new RedisStore('redis://ann:secret@127.0.0.1:6380/3', { prefix: 'eu:' });
  assert.equal(inspect(redis), "RedisStore { server: '127.0.0.1:6380', prefix: 'eu:' }");
  for (const parameters of [
    'postgresql://ann:secret@127.0.0.1/zones',
    "host=127.0.0.1 user=ann password='secret' dbname=zones",
  ]) {
    const postgres = new PostgresStore(parameters);
    assert.equal(inspect(postgres), "PostgresStore { server: '127.0.0.1/zones' }");
  }
});
