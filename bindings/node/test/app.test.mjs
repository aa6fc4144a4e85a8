// What an app and its routers have beside handlers: addresses, several patterns, captures below
// suffixes, tags, and blocks that stop it.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import zonda from '../index.js';
import { folder, freePort, placeOf, query, sleep, started, tcp, told, udp } from './helpers.mjs';

const { App, decodeMessage } = zonda;

/** A handler that answers with a text. */
const text = (data) => (req, res) => res.answer({ type: 'TXT', data: String(data) });

test('listen adds addresses: a port, a text, or host and port with one protocol', async (t) => {
  const port = await freePort();
  const app = new App({ listen: [], workers: 1, log: 'off' });
  app.listen(port).listen('[::1]:0').listen({ host: '127.0.0.2', port: 0, udp: false });
  app.handle('a.example', (req, res) => text(req.transport)(req, res));
  await app.start();
  t.after(() => app.stop());
  const [first, second, third] = app.addresses;
  assert.equal(first, `127.0.0.1:${port}`);
  assert.match(second, /^\[::1\]:\d+$/);
  assert.match(third, /^127\.0\.0\.2:\d+$/);
  assert.equal(await told(app, 'a.example', 'TXT'), 'NOERROR a.example. TXT ["udp"]');
  const other = { address: '127.0.0.2', port: Number(third.split(':')[1]) };
  assert.equal(await udp(other, query('a.example', 'TXT'), 200), null);
  const [reply] = await tcp(other, [query('a.example', 'TXT')]);
  assert.deepEqual(decodeMessage(reply).answers[0].data, ['tcp']);
});

test('the option listen takes what the method takes', async (t) => {
  const port = await freePort();
  const app = await started(t, { listen: [port, { host: '::1', port: 0, tcp: false }] });
  assert.equal(placeOf(app).port, port);
  assert.match(app.addresses[1], /^\[::1\]:\d+$/);
  const none = await started(t, { listen: [] });
  assert.deepEqual(none.addresses, []);
});

test('one call of handle is for several patterns, all of them or none', async (t) => {
  const app = await started(t, { listen: [] }, (app) => {
    app.handle(['a.example', ':user.example/TXT'], (req, res) => text(req.pattern)(req, res));
    app.route('below.example').handle(['@', 'www'], (req, res) => text(req.pattern)(req, res));
    assert.throws(() => app.handle(['c.test', 'a..b'], () => {}), { code: 'ZONDA_PATTERN' });
  });
  const pattern = async (name) => (await app.query(name, 'TXT')).answers[0]?.data[0];
  assert.equal(await pattern('a.example'), 'a.example');
  assert.equal(await pattern('b.example'), ':user.example/TXT');
  assert.equal(await pattern('below.example'), 'below.example');
  assert.equal(await pattern('www.below.example'), 'www.below.example');
  assert.equal((await app.query('c.test')).rcode, 'REFUSED');
  assert.equal(app.removeHandler('a.example'), true);
  assert.equal(await pattern('a.example'), ':user.example/TXT');
});

test('params and captures are the same labels, also those that the suffix of a router captures', async (t) => {
  const app = await started(t, { listen: [] }, (app) => {
    app.route(':user.example').handle(':host/TXT', ({ params, captures }) => {
      assert.deepEqual(params, captures);
      return { type: 'TXT', data: [params.host, params.user] };
    });
  });
  const { answers } = await app.query('www.ann.example', 'TXT');
  assert.deepEqual(answers[0].data, ['www', 'ann']);
});

test('options of a query say whether DNSSEC records are wanted', async (t) => {
  const app = await started(t, { listen: [] }, (app) => {
    app.handle('a.example', (req, res) => text(`${req.dnssecOk} ${req.clientAddress}`)(req, res));
  });
  const told = async (...args) => (await app.query(...args)).answers[0].data[0];
  const client = '192.0.2.7';
  assert.equal(await told('a.example', 'TXT', { client, dnssecOk: true }), 'true 192.0.2.7');
  assert.equal(await told('a.example', { client, dnssecOk: true }), 'true 192.0.2.7');
  assert.equal(await told({ name: 'a.example', dnssecOk: true }, { client }), 'true 192.0.2.7');
  assert.equal(await told({ name: 'a.example', dnssecOk: true }, { dnssecOk: false, client }), 'false 192.0.2.7');
});

test('an app stops at the end of a block that disposes of it', async () => {
  const app = await new App({ listen: [], workers: 1, log: 'off' }).start();
  await app[Symbol.asyncDispose]();
  await app.closed;
  await assert.rejects(app.query('a.example'), { code: 'ZONDA_STATE' });
});

test('apps answer on the same address with reusePort', async (t) => {
  const first = await started(t, { reusePort: true }, (app) => app.handle('a.example', text(1)));
  const listen = first.addresses[0];
  const second = await started(t, { listen, reusePort: true }, (app) => app.handle('a.example', text(1)));
  assert.deepEqual(second.addresses, first.addresses);
  assert.equal(await told(first, 'a.example', 'TXT'), 'NOERROR a.example. TXT ["1"]');
});

test('tags stand in the query log, whatever becomes of the query', async (t) => {
  const place = folder(t);
  const log = join(place, 'queries.log');
  const config = join(place, 'zonda.toml');
  writeFileSync(config, `version = 1\n[query-log]\noutput = "${log}"\nformat = "json"\n`);
  const app = await started(t, { config }, (app) => {
    app.middleware(async (req, res, next) => {
      if (req.name === 'passed.test.') res.tag('before', 1);
      await next();
      if (req.name !== 'none.example.') res.tag('after', `${res.rcode} "ü"\n`);
    });
    app.handle('a.example', (req, res) => {
      return res.tag('user', 'first').tag('user', 'ann').tag('empty', '').clear().refused();
    });
    app.handle('b.example', (req, res) => res.tag('user', 'bob').passOn());
    app.handle('fails.example', (req, res) => {
      res.tag('user', 'carl');
      throw new Error('broken');
    });
    app.handle('none.example', text('x'));
    app.onError((error, req, res) => res?.tag('error', error.message).nxdomain());
    assert.throws(() => app.onError(), { code: 'ZONDA_CONFIG' });
  });
  const names = ['a.example', 'b.example', 'fails.example', 'passed.test', 'none.example'];
  for (const name of names) await told(app, name, 'TXT');
  let lines = [];
  for (let tries = 0; lines.length < names.length && tries < 500; tries++) {
    await sleep(10);
    lines = readFileSync(log, 'utf8').split('\n').filter((line) => line !== '');
  }
  const tags = Object.fromEntries(lines.map(JSON.parse).map(({ name, tags }) => [name, tags]));
  assert.deepEqual(tags, {
    'a.example.': { user: 'ann', empty: '', after: 'REFUSED "ü"\n' },
    'b.example.': { user: 'bob', after: 'NOERROR "ü"\n' },
    'fails.example.': { user: 'carl', error: 'broken' },
    'passed.test.': { before: '1', after: 'REFUSED "ü"\n' },
    'none.example.': undefined,
  });
});

test('the key of a tag is a text', async (t) => {
  const errors = [];
  const app = await started(t, { listen: [], onError: ({ code, message }) => errors.push([code, message]) });
  app.handle('a.example', (req, res) => res.tag(7, 'seven'));
  await app.query('a.example');
  assert.deepEqual(errors, [['ZONDA_RECORD', "the key of a tag must be a text such as 'user', not 7"]]);
});
