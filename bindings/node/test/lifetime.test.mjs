// From start to stop, and what an app tells of it.

import assert from 'node:assert/strict';
import test from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import zonda from '../index.js';
import { started } from './helpers.mjs';

const { RedisStore, App } = zonda;

/** A port that no server answers on. */
const ABSENT = 'redis://127.0.0.1:9';

test('an app tells when it has stopped', async () => {
  const app = new App({ listen: '127.0.0.1:0', log: 'off' });
  let isClosed = false;
  app.closed.then(() => (isClosed = true));
  await app.start();
  await sleep(50);
  assert.equal(isClosed, false);
  await app.stop();
  await app.closed;
  assert.equal(isClosed, true);
});

test('serve() ends when the app stops', async () => {
  const app = new App({ listen: '127.0.0.1:0', log: 'off' });
  const served = app.serve();
  await sleep(300);
  await app.stop();
  await served;
});

test('serve() is rejected when the app cannot start', async () => {
  const app = new App({ listen: '192.0.2.77:5300', log: 'off' });
  await assert.rejects(app.serve(), /192\.0\.2\.77/);
});

test('an app that is stopped while it starts does not run', async () => {
  const app = new App({ listen: '127.0.0.1:0', log: 'off' });
  app.store('example.org', new RedisStore(ABSENT)); // takes 3 s to start
  const starting = app.start();
  const refused = assert.rejects(starting, /was stopped while it started/);
  await app.stop();
  await refused;
  assert.throws(() => app.addresses, /has not started, or has stopped/);
});

test('an app starts once', async (t) => {
  const app = await started(t, {});
  await assert.rejects(app.start(), /an app starts once/);
  await app.stop();
  await assert.rejects(app.start(), /an app starts once/);
});

test('a handler may stop the app, and its reply is sent', async () => {
  const app = new App({ listen: [], log: 'off', deadline: 4000 });
  app.handle('stop.example', async (req, res) => {
    await app.stop();
    res.answer({ type: 'TXT', data: 'stopped' });
  });
  await app.start();
  const begun = Date.now();
  const reply = await app.query({ name: 'stop.example', type: 'TXT' });
  await app.closed;
  assert.deepEqual(reply.answers[0].data, ['stopped']);
  assert.ok(Date.now() - begun < 2000, `it took ${Date.now() - begun} ms`);
});

test('records that a handler puts into an array itself are sent', async (t) => {
  const app = await started(t, { listen: [] }, (app) => {
    app.handle('push.example', (req, res) => {
      res.answers.push({ type: 'A', data: '192.0.2.1' });
    });
    app.handle('passed.example', (req, res) => {
      res.answer({ type: 'A', data: '192.0.2.1' }).pass();
    });
  });
  const reply = await app.query({ name: 'push.example' });
  assert.equal(reply.answers.length, 1);
  assert.equal(reply.aa, true);
  assert.equal((await app.query({ name: 'passed.example' })).answers.length, 0);
});

test('next is there however a handler declares its arguments', async (t) => {
  const wrap =
    (handler) =>
    (...args) =>
      handler(...args);
  const app = await started(
    t,
    { listen: [], zones: { 'example.org': { text: '@ SOA x x 1 1 1 1 1\n@ NS x\nx A 192.0.2.9' } } },
    (app) => app.handle('x.example.org', wrap((req, res, next) => next())),
  );
  const reply = await app.query({ name: 'x.example.org' });
  assert.equal(reply.answers[0].data, '192.0.2.9');
});

test('an error that is given to next() is SERVFAIL, and is told', async (t) => {
  const errors = [];
  const app = await started(t, { listen: [], onError: (error) => errors.push(error.message) }, (app) => {
    app.handle('one.example', (req, res, next) => {
      next(new Error('one'));
    });
    app.handle(
      'two.example',
      async (req, res, next) => {
        await sleep(5);
        next(new Error('two'));
      },
      (req, res) => res.answer({ type: 'A', data: '192.0.2.1' }),
    );
    app.handle('text.example', (req, res, next) => next('three'));
  });
  for (const name of ['one.example', 'two.example', 'text.example']) {
    assert.equal((await app.query({ name })).rcode, 'SERVFAIL', name);
  }
  assert.deepEqual(errors, ['one', 'two', 'three']);
});

test('an error that is given to next() reaches middleware that waits for it', async (t) => {
  const app = await started(t, { listen: [] }, (app) => {
    app.middleware(async (req, res, next) => {
      try {
        await next();
      } catch (error) {
        res.answer({ type: 'TXT', data: error.message });
      }
    });
    app.handle('one.example', (req, res, next) => {
      next(new Error('one'));
    });
  });
  const reply = await app.query({ name: 'one.example', type: 'TXT' });
  assert.deepEqual(reply.answers[0].data, ['one']);
});

test('options that are none are refused', () => {
  const wrong = (options, message) => assert.throws(() => new App(options), { name: 'TypeError', message });
  wrong({ lisen: '127.0.0.1:0' }, /there is no option lisen; the options are listen, /);
  wrong({ toString: 1 }, /there is no option toString/);
  wrong({ workers: -1 }, /workers must be a whole number from 1 on, not -1/);
  wrong({ waitingMax: 1.5 }, /waitingMax must be a whole number/);
  wrong({ onError: 'x' }, /onError must be a function, not 'x'/);
  wrong(5300, /the options must be an object/);
});

test('an address alone is listened on', async (t) => {
  const app = new App('127.0.0.1:0');
  await app.start();
  t.after(() => app.stop());
  assert.match(app.addresses[0], /^127\.0\.0\.1:\d+$/);
  assert.doesNotMatch(app.addresses[0], /:53$/);
});

test('a question may be a name, and needs one', async (t) => {
  const app = await started(t, { listen: [] }, (app) => {
    app.handle('a.example', (req, res) => res.answer({ type: 'A', data: '192.0.2.1' }));
  });
  assert.equal((await app.query('a.example')).answers.length, 1);
  await assert.rejects(app.query({}), { name: 'TypeError', message: /a question needs a name/ });
  await assert.rejects(app.query(), { name: 'TypeError' });
});

test('a zone has a file or a text', () => {
  const app = new App({ listen: [] });
  assert.throws(() => app.zone('example.org', { file: 'x.zone', text: '' }), /not both/);
  assert.throws(() => app.zone('example.org'), /needs a file or a text/);
});

test('fields and classes that would be left out are told', async (t) => {
  const errors = [];
  const app = await started(t, { listen: [], onError: (error) => errors.push(error.message) }, (app) => {
    app.handle('field.example', (req, res) => {
      res.answer({ type: 'MX', data: { preferense: 10, exchange: 'mail.example' } });
    });
    app.handle('class.example', (req, res) => {
      res.answer({ type: 'A', class: 'CH', data: '192.0.2.1' });
    });
    app.handle('vary.example', (req, res) => res.cache({ ttl: 1, vary: 'toString' }));
  });
  for (const name of ['field.example', 'class.example', 'vary.example']) {
    assert.equal((await app.query({ name, type: 'MX' })).rcode, 'SERVFAIL', name);
  }
  assert.match(errors[0], /MX record: there is no field preferense; its fields are preference, exchange/);
  assert.match(errors[1], /A record: class CH: only records of class IN are served/);
  assert.match(errors[2], /vary: 'client' or 'subnet'/);
  const { MemoryStore } = zonda;
  const store = new MemoryStore();
  await assert.rejects(
    store.set({ owner: 'a.example', type: 'MX', data: [{ preferense: 1, exchange: 'b.example' }] }),
    /there is no field preferense/,
  );
  await store.close();
});

test('a handler is replaced and removed however its pattern is written', async (t) => {
  const text = (data) => (req, res) => res.answer({ type: 'TXT', data });
  const app = await started(t, { listen: [] }, (app) => {
    app.handle('Example.ORG/A|TXT', text('first'));
    app.handle('example.org./TXT|A', text('second'));
  });
  const reply = await app.query({ name: 'example.org', type: 'TXT' });
  assert.deepEqual(reply.answers[0].data, ['second']);
  assert.equal(app.removeHandler('EXAMPLE.org/TXT|A'), true);
  assert.equal(app.removeHandler('example.org/A|TXT'), false);
  assert.equal((await app.query({ name: 'example.org', type: 'TXT' })).answers.length, 0);
});
