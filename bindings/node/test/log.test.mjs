// The core's log: to a function, to listeners, and else to standard error.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import net from 'node:net';
import { test } from 'node:test';
import zonda from '../index.js';
import { freePort, sleep } from './helpers.mjs';

const { App } = zonda;
const index = createRequire(import.meta.url).resolve('../index.js');

/** Whether a record says that the app has read its zones anew. */
const isReload = ({ event }) => event === 'zones reloaded';

/** An app that listens nowhere and logs from a level on. */
function appWith(options) {
  return new App({ listen: [], workers: 1, log: 'info', ...options });
}

/** Waits until something holds, at most 5 seconds. */
async function until(holds) {
  for (let tries = 0; !holds(); tries++) {
    assert.ok(tries < 500, 'it does not come to hold');
    await sleep(10);
  }
}

test('a logger gets the events of the core, with their fields', async () => {
  const records = [];
  const app = appWith({ logger: (record) => records.push(record) });
  const before = Date.now();
  await app.start();
  await app.reload();
  await until(() => records.some(isReload));
  await app.stop();
  assert.ok(records.some(({ event }) => event === 'serving'), 'what is logged at the start comes, too');
  const { level, message, fields, time } = records.find(isReload);
  assert.equal(level, 'info');
  assert.equal(message, 'zones reloaded loaded=0 unchanged=0 removed=0 failed=0');
  assert.deepEqual(fields, { loaded: '0', unchanged: '0', removed: '0', failed: '0' });
  assert.ok(time instanceof Date && Math.abs(time - before) < 60_000);
});

test('a logger has only the levels that its option says', async () => {
  const records = [];
  const app = appWith({ log: 'error', logger: (record) => records.push(record) });
  await app.start();
  await app.reload();
  await app.stop();
  assert.deepEqual(records, []);
});

test('listeners of the event log come and go while the app runs', async () => {
  const app = appWith();
  const records = [];
  const listener = (record) => records.push(record);
  app.on('log', listener);
  await app.start();
  await app.reload();
  await until(() => records.some(isReload));
  app.off('log', listener);
  const before = records.length;
  await app.reload();
  app.on('log', listener);
  await app.stop();
  assert.deepEqual(records.slice(before).filter(isReload), []);
});

test('a logger that throws stops neither the app nor the other events', async (t) => {
  const said = t.mock.method(console, 'error', () => {});
  let calls = 0;
  const app = appWith({
    logger: () => {
      calls++;
      throw new Error('the disk is full');
    },
  });
  app.handle('a.example', () => ({ type: 'A', data: '192.0.2.1' }));
  await app.start();
  await app.reload();
  await app.reload();
  await until(() => calls > 1);
  assert.equal((await app.query('a.example')).rcode, 'NOERROR');
  await app.stop();
  assert.match(String(said.mock.calls[0].arguments[1]), /the disk is full/);
});

test('what handlers throw goes to the logger, with what it is about', async (t) => {
  const said = t.mock.method(console, 'error', () => {});
  const [records, heard] = [[], []];
  const app = appWith({ log: 'error', logger: (record) => records.push(record) });
  app.on('log', (record) => heard.push(record));
  const thrown = new TypeError('no "database"');
  app.handle(':host.example/A', () => {
    throw thrown;
  });
  app.handle('rejects.example', async () => {
    throw Object.create(null);
  });
  await app.start();
  assert.equal((await app.query('a.example')).rcode, 'SERVFAIL');
  assert.equal((await app.query('rejects.example', 'TXT')).rcode, 'SERVFAIL');
  await app.stop();
  const [first, second] = records;
  const event = 'code of the program has failed';
  const { error, fields, level, message, time } = first;
  assert.deepEqual([level, first.event, error], ['error', event, thrown]);
  const about = { name: 'a.example.', type: 'A', handler: ':host.example/A' };
  assert.deepEqual(fields, { ...about, error: 'TypeError: no "database"' });
  const words = 'name=a.example. type=A handler=:host.example/A error="TypeError: no \\"database\\""';
  assert.equal(message, `${event} ${words}`);
  assert.ok(time instanceof Date);
  assert.equal(second.fields.error, '[Object: null prototype] {}');
  assert.deepEqual([heard, said.mock.callCount()], [records, 0]);
});

test('what handlers throw does not go to the logger where onError is there for it', async () => {
  const [records, errors] = [[], []];
  const logger = (record) => records.push(record);
  const app = appWith({ log: 'error', logger, onError: (error) => void errors.push(error.message) });
  app.handle('a.example', () => {
    throw new Error('no database');
  });
  await app.start();
  assert.equal((await app.query('a.example')).rcode, 'SERVFAIL');
  await app.stop();
  assert.deepEqual([records, errors], [[], ['no database']]);
});

test('what handlers throw is on standard error where the logger throws, too, or is rejected', async (t) => {
  const said = t.mock.method(console, 'error', () => {});
  const fail = () => {
    throw new Error('the disk is full');
  };
  for (const logger of [fail, async () => fail()]) {
    said.mock.resetCalls();
    const app = appWith({ log: 'error', logger });
    app.handle('a.example', () => {
      throw new Error('no database');
    });
    await app.start();
    assert.equal((await app.query('a.example')).rcode, 'SERVFAIL');
    await app.stop();
    const words = said.mock.calls.map(({ arguments: [, error] }) => error.message);
    assert.deepEqual(words, ['the disk is full', 'no database']);
  }
});

test('a start that fails ends the reading of the log, and another one begins it anew', async (t) => {
  const records = [];
  const port = await freePort();
  const other = net.createServer().listen(port, '127.0.0.1');
  t.after(() => other.close());
  await once(other, 'listening');
  const logger = (record) => records.push(record);
  const app = appWith({ listen: `tcp://127.0.0.1:${port}`, logger });
  await assert.rejects(app.start(), { code: 'EADDRINUSE' });
  other.close();
  await once(other, 'close');
  await app.start();
  await app.stop();
  assert.equal(records.filter(({ event }) => event === 'serving').length, 1);
});

/** What a program writes to standard error. */
function standardError(program) {
  const { NODE_TEST_CONTEXT, ...env } = process.env;
  const { status, stderr } = spawnSync(process.execPath, ['-e', program, index], {
    env,
    encoding: 'utf8',
  });
  assert.equal(status, 0, stderr);
  return stderr;
}

/** A program in which an app with options starts and stops, once for each of some options. */
function program(...apps) {
  const run = (options) => `
      {
        const app = new App({ listen: [], workers: 1, log: 'info', ${options} });
        await app.start();
        await app.stop();
      }`;
  return `const { App } = require(process.argv[1]); (async () => {${apps.map(run).join('')}})();`;
}

test('without a logger the log is lines on standard error, and with one nothing is there', () => {
  assert.match(standardError(program('')), /serving zones=0/);
  assert.equal(standardError(program('logger() {}')), '');
});

test('an app that has stopped leaves the log to standard error', () => {
  const lines = standardError(program('logger() {}', '')).match(/serving zones=0/g);
  assert.equal(lines.length, 1);
});

test("with log: 'off' a logger gets what handlers throw alone, and leaves the log of other apps", () => {
  const said = standardError(`
    const { App } = require(process.argv[1]);
    (async () => {
      const other = new App({ listen: [], workers: 1, log: 'info' });
      const told = [];
      const app = new App({ listen: [], workers: 1, log: 'off', logger: ({ event }) => told.push(event) });
      app.handle('a.example', () => {
        throw new Error('no database');
      });
      await app.start();
      await other.start();
      await app.query('a.example');
      await other.stop();
      await app.stop();
      console.error('told ' + told);
    })();`);
  assert.match(said, /serving zones=0/);
  assert.match(said, /^told code of the program has failed$/m);
});
