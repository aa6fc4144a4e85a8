// Aliases whose targets handlers answer for.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ask, placeOf, query, started, told, udp } from './helpers.mjs';

/** A zone whose aliases lead to names that handlers have, and to one of the zone. */
const ZONE = {
  text:
    '@ 60 SOA ns.example.org. h.example.org. 7 2 3 4 5\n@ 60 NS ns\nns 60 A 192.0.2.9\n' +
    'to-here 60 CNAME here.test.\nto-later 60 CNAME later.test.\nto-user 60 CNAME ann.users\n' +
    'to-chain 60 CNAME first.test.\nto-absent 60 CNAME absent.test.\nto-ns 60 CNAME ns\n' +
    'to-failed 60 CNAME failed.test.\nto-passed 60 CNAME a.passed.test.\n' +
    'to-left 60 CNAME left.test.\nto-loop 60 CNAME loop.test.\n' +
    'to-dropped 60 CNAME dropped.test.\nbelow 60 DNAME test.\n',
};
const a = (data) => ({ type: 'A', ttl: 60, data });
const alias = (data) => ({ type: 'CNAME', ttl: 60, data });

/** Serves the zone, with handlers for the targets of its aliases. */
function withAliases(app) {
  app.zone('example.org', ZONE);
  app.handle('here.test', () => a('192.0.2.1'));
  app.handle('later.test', async () => {
    await new Promise(setImmediate);
    return a('192.0.2.2');
  });
  app.handle(':user.users.example.org', (req) => ({ type: 'TXT', data: req.captures.user }));
  app.handle('first.test', () => alias('second.test'));
  app.handle('second.test', async () => alias('to-later.example.org'));
  app.handle('absent.test', (req, res) => res.nxdomain({ ttl: 30 }));
  app.handle('failed.test', (req, res) => res.servfail('the database is away'));
  app.handle('a.passed.test', (req, res, next) => next());
  app.handle('*.passed.test', () => a('192.0.2.4'));
  app.handle('left.test', (req, res, next) => next());
  app.handle('loop.test', () => alias('to-loop.example.org'));
  app.handle('dropped.test', (req, res) => res.drop());
}

test('a reply has an alias and what the handler says of its target', async (t) => {
  const app = await started(t, {}, withAliases);
  const later = 'later.test. later.test. A 192.0.2.2';
  for (const [name, answer, type] of [
    ['to-here', 'CNAME here.test. here.test. A 192.0.2.1'],
    ['to-later', `CNAME ${later}`],
    ['to-user', 'CNAME ann.users.example.org. ann.users.example.org. TXT ["ann"]', 'TXT'],
    ['to-passed', 'CNAME a.passed.test. a.passed.test. A 192.0.2.4'],
    ['to-ns', 'CNAME ns.example.org. ns.example.org. A 192.0.2.9'],
    [
      'to-chain',
      'CNAME first.test. first.test. CNAME second.test. second.test. CNAME ' +
        `to-later.example.org. to-later.example.org. CNAME ${later}`,
    ],
  ]) {
    const owner = `${name}.example.org`;
    assert.equal(await told(app, owner, type), `NOERROR ${owner}. ${answer}`);
  }
  const below = 'below.example.org. DNAME test. later.below.example.org. CNAME';
  assert.equal(await told(app, 'later.below.example.org'), `NOERROR ${below} ${later}`);
});

test('the response code behind an alias is that of the handler for its target', async (t) => {
  const app = await started(t, {}, withAliases);
  for (const [name, rcode, rest] of [
    ['to-absent', 'NXDOMAIN', 'absent.test.'],
    ['to-failed', 'SERVFAIL', 'failed.test.'],
    ['to-left', 'NOERROR', 'left.test.'], // no zone has the name
    ['to-loop', 'NOERROR', 'loop.test. loop.test. CNAME to-loop.example.org.'],
  ]) {
    const owner = `${name}.example.org`;
    assert.equal(await told(app, owner), `${rcode} ${owner}. CNAME ${rest}`);
  }
  const { aa, authorities } = await ask(app, 'to-absent.example.org');
  assert.deepEqual([aa, authorities.map(({ type, ttl }) => `${type} ${ttl}`)], [true, ['SOA 30']]);
  assert.equal(await udp(placeOf(app), query('to-dropped.example.org'), 200), null);
});

test('middleware sees the target of an alias as it sees a query', async (t) => {
  const seen = [];
  const app = await started(t, { listen: [] }, (app) => {
    withAliases(app);
    app.middleware(async (req, res, next) => {
      await next();
      seen.push(`${req.name} ${res.answers.length}`);
    });
  });
  const { answers } = await app.query('to-later.example.org');
  assert.deepEqual(answers.map(({ type }) => type), ['CNAME', 'A']);
  assert.deepEqual(seen, ['later.test. 1', 'to-later.example.org. 2']);
});
