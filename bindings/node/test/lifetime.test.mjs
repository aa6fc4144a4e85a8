// From start to stop, and what an app tells of it.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import zonda from '../index.js';
import { folder, started } from './helpers.mjs';

const { RedisStore, App } = zonda;

/** The package, for programs of their own. */
const index = fileURLToPath(new URL('../index.js', import.meta.url));

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
  wrong(null, /the options must be an object/);
  wrong(70000, /listen must be/);
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
  await assert.rejects(app.query({}), { name: 'TypeError', message: /a question must have a name/ });
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
  assert.match(errors[1], /A record: class must be 'IN', not 'CH'/);
  assert.match(errors[2], /as vary 'client' or 'subnet', not { ttl: 1, vary: 'toString' }/);
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

/** A zone with one address. */
const zoneText = (last) =>
  `@ 300 SOA ns hostmaster 1 2 3 4 5\n@ 300 NS ns\nns 300 A 192.0.2.${last}\n`;

/** The address that an app has for a name, or else the response code. */
async function address(app, name) {
  const { rcode, answers } = await app.query(name);
  return answers[0]?.data ?? rcode;
}

test('zones and upstreams come, change and go while the app runs', async (t) => {
  const place = folder(t);
  const file = (name, last) => {
    writeFileSync(join(place, name), zoneText(last));
    return join(place, name);
  };
  const upstream = await started(t, {}, (app) => {
    app.handle('*', () => ({ type: 'A', ttl: 0, data: '192.0.2.80' }));
  });
  const app = await started(t, { listen: [] }, (app) => {
    app.zone('first.example', { file: file('first.zone', 1) });
  });
  await app.setZoneFile('file.example', file('one.zone', 2));
  assert.equal(await address(app, 'ns.file.example'), '192.0.2.2');
  await app.setZoneFile('FILE.example.', pathToFileURL(file('two.zone', 3)));
  assert.equal(await address(app, 'ns.file.example'), '192.0.2.3');
  const broken = app.setZoneFile('file.example', join(place, 'missing.zone'));
  await assert.rejects(broken, { code: 'ZONDA_ZONE', message: /missing\.zone/ });
  assert.equal(await address(app, 'ns.file.example'), '192.0.2.3');

  const { MemoryStore } = zonda;
  const store = new MemoryStore();
  t.after(() => store.close());
  const sets = (last) => [
    { owner: 'store.example', type: 'NS', data: ['ns.store.example'] },
    { owner: 'ns.store.example', type: 'A', data: [`192.0.2.${last}`] },
  ];
  await store.setMany(sets(4));
  await app.setZoneStore('store.example', store);
  assert.equal(await address(app, 'ns.store.example'), '192.0.2.4');
  await app.setZoneStore('store.example', { load: async () => sets(5) });
  assert.equal(await address(app, 'ns.store.example'), '192.0.2.5');
  await assert.rejects(app.setZoneStore('file.example', store), { code: 'ZONDA_ZONE' });
  await assert.rejects(app.setZoneStore('own.example', {}), { name: 'TypeError' });

  assert.equal(await address(app, 'a.example'), 'REFUSED');
  await app.setForwards(upstream.addresses[0]);
  assert.equal(await address(app, 'a.example'), '192.0.2.80');
  await assert.rejects(app.setForwards('nowhere'), { code: 'ZONDA_CONFIG' });
  await app.setForwards();
  assert.equal(await address(app, 'b.example'), 'REFUSED');

  for (const name of ['first.example', 'file.example', 'store.example']) {
    assert.equal(await app.removeZone(name), true, name);
    assert.equal(await app.removeZone(name), false, name);
    assert.equal(await address(app, `ns.${name}`), 'REFUSED');
  }
  await app.setZoneText('store.example', zoneText(6)); // its name is free
  assert.equal(await address(app, 'ns.store.example'), '192.0.2.6');
  await app.stop();
  await assert.rejects(app.setForwards('192.0.2.1'), { code: 'ZONDA_STATE' });
  await assert.rejects(app.removeZone('a.example'), { code: 'ZONDA_STATE' });
});

test('several record sets are put in one step, and a wrong one changes nothing', async () => {
  const { MemoryStore } = zonda;
  const store = new MemoryStore();
  const set = (owner, data) => ({ owner, type: 'A', data: [data] });
  await store.setMany(new Set([set('a.example', '192.0.2.1'), set('b.example', '192.0.2.2')]));
  assert.deepEqual((await store.get('b.example'))[0].data, ['192.0.2.2']);
  const wrong = [set('a.example', '192.0.2.3'), set('b.example', '192.0.2')];
  await assert.rejects(store.setMany(wrong));
  assert.deepEqual((await store.get('a.example'))[0].data, ['192.0.2.1']);
  await store.close();
});

test('serve ends by a signal, which ends no process that serves', async () => {
  const program = `
    const { App } = require(${JSON.stringify(index)});
    const app = new App({ listen: [], log: 'off' });
    app.on('listening', () => process.kill(process.pid, process.argv[1]));
    app.serve().then(() => console.log('served'));`;
  for (const signal of ['SIGTERM', 'SIGINT']) {
    const run = promisify(execFile)(process.execPath, ['-e', program, signal], { timeout: 30_000 });
    assert.equal((await run).stdout, 'served\n', signal);
  }
});

test('stores of JavaScript are forgotten when no zone follows them', async (t) => {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc');
  const stores = [];
  const make = () => {
    const store = { load: async () => [] };
    stores.push(new WeakRef(store));
    return store;
  };
  const app = await started(t, { listen: [] }, (app) => app.store('first.example', make()));
  await app.setZoneText('text.example', zoneText(1));
  for (const name of ['a.example', 'a.example', 'text.example', 'a..b']) {
    await app.setZoneStore(name, make()).catch(() => {}); // the last two are refused
  }
  await app.removeZone('first.example');
  await app.removeZone('a.example');
  const kept = () => stores.filter((store) => store.deref() !== undefined).length;
  for (let count = 0; count < 1000 && kept() > 0; count++) {
    await sleep(20);
    gc();
  }
  assert.deepEqual([stores.length, kept()], [5, 0]);
});
