// Routers, middleware for some names, negative answers that resolvers cache, and events.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import zonda from '../index.js';
import pattern from '../lib/pattern.js';
import { started, told, zoneFile } from './helpers.mjs';

const { App } = zonda;
const a = (data) => ({ type: 'A', data });

test('a router has the names below a suffix', async (t) => {
  const app = await started(t, { listen: [] });
  const passed = [];
  const eu = app.route('eu.example');
  eu.handle('www', () => a('192.0.2.1'))
    .handle('@/A', () => a('192.0.2.2'))
    .handle(':user.users/A', (req) => a(`192.0.2.${req.captures.user}`))
    .middleware((req, res, next) => {
      passed.push(req.name);
      return next();
    });
  const inner = eu.route('inner');
  inner.handle('*', () => a('192.0.2.4'));
  const ip = async (name) => (await app.query(name)).answers[0]?.data;
  assert.equal(await ip('www.eu.example'), '192.0.2.1');
  assert.equal(await ip('eu.example'), '192.0.2.2');
  assert.equal(await ip('3.users.eu.example'), '192.0.2.3');
  assert.equal(await ip('a.b.inner.eu.example'), '192.0.2.4');
  assert.equal((await app.query('www.us.example')).rcode, 'REFUSED');
  const below = ['www.eu.example', 'eu.example', '3.users.eu.example', 'a.b.inner.eu.example'];
  assert.deepEqual(passed, below);
  assert.equal(inner.removeHandler('*'), true);
  assert.equal(await ip('a.b.inner.eu.example'), undefined);
  assert.equal(passed.at(-1), 'a.b.inner.eu.example', 'middleware is still passed');
  assert.throws(() => app.route('a..b'), { code: 'ZONDA_PATTERN' });
});

test('a reply that a handler has the core keep passes middleware for a pattern each time', async (t) => {
  const passed = [];
  const app = await started(t, {}, (app) => {
    app.handle('*.example', (req, res) => res.cache({ ttl: 60 }).answer(a('192.0.2.1')));
    app.use('*.corp.example', (req, res, next) => {
      passed.push(req.name);
      return next();
    });
    app.handle('db.corp.example', (req, res) => res.cache({ ttl: 60 }).answer(a('192.0.2.2')));
  });
  for (let time = 1; time <= 3; time++) {
    assert.match(await told(app, 'db.corp.example'), /192\.0\.2\.2/);
    assert.equal(passed.length, time);
  }
});

test('a name as long as names may be gets a negative answer that is cached', async (t) => {
  const app = await started(t, { listen: [] }, (app) => {
    app.handle('*', (req, res) => res.nxdomain({ ttl: 60 }));
  });
  const name = ['x', 'a'.repeat(63), 'b'.repeat(63), 'c'.repeat(63), 'd'.repeat(58)].join('.');
  const reply = await app.query(name);
  assert.equal(reply.rcode, 'NXDOMAIN');
  assert.equal(reply.authorities[0].type, 'SOA');
});

test('middleware for a pattern is passed by the names of that alone', async (t) => {
  const file = zoneFile(t);
  const passed = [];
  const app = await started(t, { listen: [] }, (app) => {
    app.zone('example.org', { file });
    app.handle('*.a.example', () => a('192.0.2.1'));
    app.handle('x.b.a.example', () => a('192.0.2.2'));
    app.use('*.b.a.example/A', async (req, res, next) => {
      passed.push(`${req.name} ${req.pattern}`);
      await next();
      for (const record of res.answers) record.ttl = 7;
    });
    app.middleware('www.example.org', (req, res, next) => {
      passed.push(req.name);
      return next();
    });
  });
  const ttl = async (name, type) => (await app.query(name, type)).answers[0]?.ttl;
  assert.equal(await ttl('y.a.example'), 300);
  assert.equal(await ttl('x.b.a.example'), 7);
  assert.equal((await app.query('www.example.org')).answers[0].data, '192.0.2.80');
  assert.equal((await app.query('ns.example.org')).answers[0].data, '192.0.2.53');
  assert.deepEqual(passed, ['x.b.a.example x.b.a.example', 'www.example.org']);
  app.handle('www.example.org', () => a('192.0.2.9'));
  assert.equal((await app.query('www.example.org')).answers[0].data, '192.0.2.9');
  assert.equal(app.removeHandler('www.example.org'), true);
  assert.equal(app.removeHandler('www.example.org'), false);
  assert.equal((await app.query('www.example.org')).answers[0].data, '192.0.2.80');
  assert.deepEqual(passed.slice(2), ['www.example.org', 'www.example.org']);
});

test('JavaScript and the core agree on what a pattern is for', async (t) => {
  const patterns = [
    '*',
    '*.example',
    'a.example',
    ':x.example',
    '*.:x.example',
    'a.:x.b.example/TXT',
    'a.example/A|MX',
    String.raw`a\.b.example`,
    String.raw`\*.example`,
    String.raw`\:x\/y.example`,
  ];
  const names = [
    'example',
    'a.example',
    'b.a.example',
    'a.c.b.example',
    String.raw`a\.b.example`,
    '*.example',
    ':x/y.example',
    'other',
  ];
  for (const text of patterns) {
    const matches = pattern.matcher(pattern.canonicalPattern(text));
    const seen = [];
    const app = await started(t, { listen: [] }, (app) =>
      app.handle(text, (req, res) => {
        seen.push(`${req.name} ${req.type}`);
        res.noData();
      }),
    );
    const expected = [];
    for (const name of names) {
      for (const type of ['A', 'TXT']) {
        if (matches({ name, type })) expected.push(`${name} ${type}`);
        await app.query(name, type);
      }
    }
    assert.deepEqual(seen, expected, text);
  }
});

test('negative answers have the SOA record by which resolvers cache them', async (t) => {
  const app = await started(t, { listen: [] }, (app) => {
    app.handle('*.users.example', (req, res) => res.nxdomain({ ttl: 60 }));
    app.handle(':x.:y.deep.example', (req, res) => res.noData({ ttl: 5 }));
    app.handle('gone.exact.example', (req, res) => res.nxdomain({ ttl: 9 }));
    app.handle('*', (req, res) => res.nxdomain({ ttl: 1 }));
    app.handle('soa.example', (req, res) => {
      const data = 'ns.example. h.example. 1 2 3 4 30';
      return res.nxdomain({ soa: { name: 'example', ttl: 30, data } });
    });
    app.handle('plain.example', (req, res) => res.nxdomain());
  });
  const soa = async (name) => {
    const { rcode, authorities } = await app.query(name);
    return [rcode, ...authorities.map(({ name, ttl, data }) => [name, ttl, data.minimum])];
  };
  assert.deepEqual(await soa('a.b.users.example'), ['NXDOMAIN', ['users.example', 60, 60]]);
  assert.deepEqual(await soa('a.b.deep.example'), ['NOERROR', ['deep.example', 5, 5]]);
  assert.deepEqual(await soa('gone.exact.example'), ['NXDOMAIN', ['exact.example', 9, 9]]);
  assert.deepEqual(await soa('www.test'), ['NXDOMAIN', ['test', 1, 1]]);
  assert.deepEqual(await soa('soa.example'), ['NXDOMAIN', ['example', 30, 30]]);
  assert.deepEqual(await soa('plain.example'), ['NXDOMAIN']);
});

test('an app tells when it listens, when it has stopped, and what fails', async () => {
  const told = [];
  const app = new App({ listen: '127.0.0.1:0', workers: 1, log: 'off' });
  app.once('listening', ([address]) => told.push(`listening ${address.replace(/\d+$/, 'PORT')}`));
  app.on('error', (error, query) => told.push(`${query.name}: ${error.message}`));
  app.on('closed', (error) => told.push(`closed ${error}`));
  app.handle('a.example', () => {
    throw new Error('no database');
  });
  await app.start();
  assert.equal((await app.query('a.example')).rcode, 'SERVFAIL');
  await app.stop();
  await app.closed;
  const expected = ['listening 127.0.0.1:PORT', 'a.example: no database', 'closed undefined'];
  assert.deepEqual(told, expected);
});
