// Errors: their codes, what they say, and the functions that programs have for them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import zonda from '../index.js';
import { started } from './helpers.mjs';

const { App, MemoryStore, PostgresStore, RedisStore } = zonda;
const { decodeMessage, makeQuery, parseRecord, recordText } = zonda;

/** Words of the libraries by which the core is called, which mean nothing to a program. */
const FOREIGN = /Failed to convert|TypedArray|GenericFailure|InvalidArg|rust type|JavaScript value/;

/** What a function throws, or a promise that it returns is rejected with. */
async function thrownBy(function_) {
  try {
    await function_();
  } catch (error) {
    return error;
  }
  return assert.fail(`nothing is thrown by ${function_}`);
}

test('each mistake has the code of its kind, and says what was given and what is wanted', async (t) => {
  const app = await started(t, { listen: [] });
  const fresh = new App({ listen: [], log: 'off' });
  const store = new MemoryStore();
  const load = () => [];
  const none = () => {};
  const redis = (options) => () => new RedisStore('redis://127.0.0.1', options);
  const set = (set) => () => store.set({ owner: 'a.example', type: 'A', data: [], ...set });
  const cases = [
    ['ZONDA_CONFIG', () => app.handle('a.example'), /^handle\('a\.example'\) needs a function$/],
    ['ZONDA_CONFIG', () => app.middleware(), /^middleware\(\) needs a function$/],
    ['ZONDA_CONFIG', () => app.use('a.example'), /^middleware\(\) needs a function$/],
    ['ZONDA_CONFIG', () => app.route('a.example').middleware(), /needs a function$/],
    ['ZONDA_CONFIG', () => app.onError('log'), /^onError\(\) needs a function, not 'log'$/],
    [
      'ZONDA_CONFIG',
      () => new App({ deadline: 1e300 }),
      /^deadline must be a number of mill.* 1e\+300$/,
    ],
    ['ZONDA_CONFIG', () => new App({ reusePort: 1 }), /^reusePort must be true or false, not 1$/],
    [
      'ZONDA_CONFIG',
      () => fresh.listen({ port: 'x' }),
      /^listen\(\) needs an address and port .* not { port: 'x' }$/,
    ],
    ['ZONDA_CONFIG', () => fresh.listen(5300, none), /await app\.start\(\)/],
    [
      'ZONDA_PATTERN',
      () => app.handle(['a.example', 7], none),
      /^a pattern must be a text .* not 7$/,
    ],
    [
      'ZONDA_PATTERN',
      () => app.route('a.example').handle(7, none),
      /^a pattern must be a text .* not 7$/,
    ],
    ['ZONDA_ZONE', () => fresh.store('a..b', { load }), /^zone a\.\.b: /],
    [
      'ZONDA_ZONE',
      () => fresh.store('a.b', 'redis'),
      /must be a Store, or an object with load\(zone\), not 'redis'/,
    ],
    [
      'ZONDA_ZONE',
      () => fresh.store('a.b', { load, deadline: 'x' }),
      /^deadline of a store must be a number/,
    ],
    [
      'ZONDA_ZONE',
      () => app.setZoneStore('a.b', { load, deadline: 'x' }),
      /^deadline of a store must be/,
    ],
    ['ZONDA_ZONE', () => fresh.zone('a.b', {}), /^zone\('a\.b'\) needs a file or a text$/],
    ['ZONDA_CONFIG', () => new RedisStore('x'), /redis:\/\//],
    [
      'ZONDA_CONFIG',
      redis({ compareEvery: 'x' }),
      /^compareEvery must be a number of mill.* not 'x'$/,
    ],
    ['ZONDA_CONFIG', redis({ prefx: 'a' }), /^there is no option prefx; the options are prefix, /],
    ['ZONDA_CONFIG', () => new PostgresStore('x'), /^parameters must be such as 'postgresql:/],
    [
      'ZONDA_RECORD',
      set({ type: undefined }),
      /the type of a record must be a text such as "MX".* not undefined$/,
    ],
    [
      'ZONDA_RECORD',
      set({ ttl: 2 ** 31 }),
      /^a\.example A: ttl must be .* to 2147483647, not 2147483648$/,
    ],
    ['ZONDA_RECORD', set({ data: ['x'] }), /a\.example A: /],
    ['ZONDA_RECORD', () => store.setMany(7), /^setMany\(\) needs an array of record sets, not 7$/],
    [
      'ZONDA_RECORD',
      () => store.remove('a.example', 'AAAAA'),
      /must be a text such as .* not 'AAAAA'$/,
    ],
    ['ZONDA_ZONE', () => store.load('a..b'), /^zone a\.\.b: /],
    [
      'ZONDA_QUERY',
      () => app.query('a.b', 'A', { client: 5 }),
      /^client must be an address .* not 5$/,
    ],
    ['ZONDA_QUERY', () => app.query('a.b', 'A', { client: 'x' }), /must be an address .* not `x`$/],
    ['ZONDA_QUERY', () => app.query('a.b', 'A', { clint: 'x' }), /^there is no option clint; /],
    [
      'ZONDA_QUERY',
      () => app.query('a.b', 'A', { dnssecOk: 1 }),
      /^dnssecOk must be true or false/,
    ],
    [
      'ZONDA_QUERY',
      () => app.query({ name: 'a.b', dnssecOk: 1 }),
      /^dnssecOk must be true or false/,
    ],
    ['ZONDA_QUERY', () => app.query('a.b', 'AAAAA'), /must be a text such as "MX".* not 'AAAAA'$/],
    ['ZONDA_QUERY', () => app.query(), /^a question must have a name, .* not undefined$/],
    ['ZONDA_QUERY', () => app.queryMessage('text'), /needs the octets of a message, not 'text'$/],
    ['ZONDA_QUERY', () => decodeMessage('text'), /needs the octets of a message, not 'text'$/],
    ['ZONDA_QUERY', () => makeQuery({ name: 5 }), /^a question must have a name, .* not 5$/],
    [
      'ZONDA_RECORD',
      () => recordText({ type: 'MX', data: 5 }),
      /octets, or an object with preference, exchange, not 5$/,
    ],
    [
      'ZONDA_RECORD',
      () => recordText({ type: 'A', ttl: -1, data: '::' }),
      /ttl must be .* not -1$/,
    ],
    ['ZONDA_RECORD', () => recordText(7), /^a record must be an object such as .* not 7$/],
    ['ZONDA_RECORD', () => parseRecord('nothing'), /./],
    ['ZONDA_STATE', () => app.start(), /starts once/],
    ['ZONDA_STATE', () => app.listen(5300), /^listen\(\) comes before start\(\)$/],
    ['ZONDA_STATE', () => fresh.query('a.example'), /has not started/],
  ];
  for (const [code, wrong, text] of cases) {
    const error = await thrownBy(wrong);
    assert.equal(error.code, code, `${wrong}: ${error.message}`);
    assert.match(error.message, text);
    assert.doesNotMatch(`${error}`, FOREIGN);
  }
});

test('a zone that is given twice is an error, unless a start that failed stands between', async (t) => {
  const text = '@ 60 SOA ns h 1 2 3 4 5\n@ 60 NS ns\nns 60 A 192.0.2.1\n';
  const wrong = (name, method = 'zone') => ({
    code: 'ZONDA_ZONE',
    message: `${method}('${name}') is given twice: keep one, or replace it by setZoneText(), setZoneFile() or setZoneStore() once the app runs`,
  });
  const none = { listen: [], log: 'off' };
  const zones = { 'a.example': { text }, 'A.example.': { text } };
  assert.throws(() => new App({ ...none, zones }), wrong('A.example.'));
  const app = new App({ ...none, zones: { 'a.example': { text } } });
  app.zone('b\\..example', { text: 'wrong' }).store('c.example', { load: () => [] });
  assert.throws(() => app.zone('a.example.', { text }), wrong('a.example.'));
  assert.throws(() => app.zone('a.EXAMPLE', { file: 'a.zone' }), wrong('a.EXAMPLE'));
  assert.throws(() => app.store('a.example', { load: () => [] }), wrong('a.example', 'store'));
  assert.throws(() => app.zone('c.example', { text }), wrong('c.example'));
  assert.throws(() => app.zone('d..e', { text }), { code: 'ZONDA_ZONE', message: /empty label/ });
  assert.throws(() => app.zone('d..e', { text }), { code: 'ZONDA_ZONE', message: /empty label/ });
  await assert.rejects(app.start(), { code: 'ZONDA_ZONE' });
  await app.zone('b\\..example', { text }).start();
  t.after(() => app.stop());
  const { answers } = await app.query('ns.b\\..example');
  assert.deepEqual(answers.map(({ data }) => data), ['192.0.2.1']);
});

test('a wrong record has section, place, data and pattern as fields of its error', async (t) => {
  const errors = [];
  const app = await started(t, { listen: [], onError: (error) => errors.push(error) }, (app) => {
    app.handle(':a.wire.example', (req, res) => {
      const good = { type: 'A', data: '192.0.2.1' };
      res.answer({ type: 'OPT', data: '' }, good, { type: 'A', data: '999.1.1.1' });
    });
    app.handle('ttl.example', (req, res) => res.authority({ type: 'A', ttl: -1, data: '192.0.2.1' }));
    app.handle('none.example', (req, res) => res.additional('192.0.2.1'));
    app.handle('type.example', (req, res) => res.answer({ data: '192.0.2.1' }));
    app.handle('returned.example', () => [{ type: 'A', data: '192.0.2.1' }, { type: 'AAAAA', data: '::' }]);
  });
  const told = [];
  for (const name of ['a.wire', 'ttl', 'none', 'type', 'returned']) {
    assert.equal((await app.query(`${name}.example`)).rcode, 'SERVFAIL', name);
    const { code, section, index, value, pattern, message } = errors.pop();
    assert.ok(message.startsWith(`the reply to ${name}.example. A (handler of ${pattern}): `), message);
    assert.ok(message.includes(`${section}[${index}]: `), message);
    told.push([code, section, index, value, pattern]);
  }
  assert.deepEqual(told, [
    ['ZONDA_RECORD', 'answers', 2, '999.1.1.1', ':a.wire.example'],
    ['ZONDA_RECORD', 'authorities', 0, '192.0.2.1', 'ttl.example'],
    ['ZONDA_RECORD', 'additionals', 0, '192.0.2.1', 'none.example'],
    ['ZONDA_RECORD', 'answers', 0, '192.0.2.1', 'type.example'],
    ['ZONDA_RECORD', 'answers', 1, '::', 'returned.example'],
  ]);
});

test('functions for errors are asked until one answers, those of the longest suffix first', async (t) => {
  const asked = [];
  const note = (name, answer) => (error, req, res) => {
    asked.push(name);
    return answer?.(error, req, res);
  };
  const text = (data) => () => ({ type: 'TXT', data });
  const onError = note('option', () => Promise.resolve());
  const app = await started(t, { listen: [], onError }, (app) => {
    app.handle('*', () => {
      throw new Error('broken');
    });
    app.onError(note('all', (error, req, res) => res?.refused()));
    app.onError(note('never'));
    const users = app.route(':user.example');
    users.onError(note('user', (error, req) => req.name.startsWith('ann.') && text('of the router')()));
    users.route('api').onError(note('api', async () => undefined));
  });
  const reply = async (name) => {
    asked.length = 0;
    const { rcode, answers } = await app.query(name, 'TXT');
    return [rcode, ...answers.map(({ data }) => data[0]), ...asked].join(' ');
  };
  assert.equal(await reply('other.test'), 'REFUSED option all');
  assert.equal(await reply('ann.example'), 'NOERROR of the router user');
  assert.equal(await reply('bob.example'), 'REFUSED user option all');
  assert.equal(await reply('x.api.bob.example'), 'REFUSED api user option all');
  assert.equal(await reply('api.bob.example'), 'REFUSED api user option all');
  assert.equal(await reply('example'), 'REFUSED option all');
});

test('a function for errors that fails is logged with what it was told, and the next one is asked', async (t) => {
  const records = [];
  const logged = () => records.splice(0).map(({ error }) => error.message);
  const app = await started(t, { listen: [], logger: (record) => records.push(record) }, (app) => {
    app.handle('a.example', () => Promise.reject(new Error('first')));
    app.onError(async () => {});
    app.onError((error, req, res) => {
      res.extendedError('Blocked', 'what a function that fails has left');
      throw new Error('second');
    });
  });
  assert.equal((await app.query('a.example')).rcode, 'SERVFAIL');
  assert.deepEqual(logged(), ['first', 'second']);
  app.onError((error, req, res) => res.refused());
  const reply = await app.query('a.example');
  assert.deepEqual([reply.rcode, reply.error], ['REFUSED', null]);
  assert.deepEqual(logged(), ['first', 'second']);
});

test('questions of a program may be objects of its own, and name what is wrong', async (t) => {
  const app = await started(t, { listen: [] }, (app) => {
    app.handle(['a.example', 'b.example'], (req) => ({ type: 'TXT', data: req.name }));
  });
  class Question {
    get name() {
      return 'a.example';
    }
    get type() {
      return 'TXT';
    }
  }
  assert.equal((await app.query(new Question())).answers.length, 1);
  assert.equal((await app.query('b.example', 'TXT', { client: null })).rcode, 'NOERROR');
  await assert.rejects(app.query({ name: 'a.example', dnssecOK: true }), { code: 'ZONDA_QUERY' });
  assert.throws(() => app.handle([], () => {}), { code: 'ZONDA_PATTERN' });
});
