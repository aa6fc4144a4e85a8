import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';
import { postgres, redis } from './databases.mjs';
import { query, udp } from './helpers.mjs';

const folder = fileURLToPath(new URL('..', import.meta.url));

/** Runs a program in the package's folder; returns its output and how it ended. */
async function run(program, whileItRuns = async () => {}) {
  const scratch = mkdtempSync(join(tmpdir(), 'zonda-process-'));
  const file = join(scratch, 'program.js');
  writeFileSync(file, program.replaceAll("require('./", `require('${folder}`));
  const child = spawn(process.execPath, [file], { cwd: folder });
  const said = { out: '', err: '' };
  child.stdout.on('data', (octets) => (said.out += octets));
  child.stderr.on('data', (octets) => (said.err += octets));
  const exited = once(child, 'exit');
  const timer = setTimeout(() => child.kill('SIGKILL'), 60_000);
  await whileItRuns(said, child);
  const [code, signal] = await exited;
  clearTimeout(timer);
  rmSync(scratch, { recursive: true, force: true });
  return { ...said, code, signal };
}

/** Waits until a program has said something, to its output or, with `err`, to its errors. */
async function heard(said, pattern, where = 'out') {
  for (let count = 0; count < 2500; count++) {
    const found = pattern.exec(said[where]);
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`not said: ${pattern}; but ${said.out}${said.err}`);
}

test('an app keeps its process alive until it has stopped, and no longer', async () => {
  const { code, err, out } = await run(`
    const { App } = require('./index.js');
    const app = new App({ listen: '127.0.0.1:0', workers: 1 });
    app.handle('a.example', (req, res) => res.answer({ type: 'A', data: '192.0.2.1' }));
    app.start().then(() => setTimeout(async () => {
      const { rcode } = await app.query({ name: 'a.example' });
      await app.stop();
      console.log('stopped', rcode);
    }, 50));
  `);
  assert.deepEqual([code, out.trim(), err], [0, 'stopped NOERROR', '']);
});

test('a process ends at once with an app that runs', async () => {
  const { code, err } = await run(`
    const { App } = require('./index.js');
    const app = new App({ listen: '127.0.0.1:0', workers: 1 });
    app.handle('a.example', () => new Promise(() => {}));
    app.start().then(() => { app.query({ name: 'a.example' }); setTimeout(() => process.exit(3), 50); });
  `);
  assert.deepEqual([code, err], [3, '']);
});

test('nothing that handlers throw ends the process', async () => {
  const { code, err, out } = await run(`
    const { App } = require('./index.js');
    const app = new App({ listen: '127.0.0.1:0', workers: 1 });
    app.middleware((req, res, next) => { next(); });
    app.handle('throws.example', () => { throw new Error('a mistake'); });
    app.handle('rejects.example', async () => { throw undefined; });
    (async () => {
      await app.start();
      for (const name of ['throws.example', 'rejects.example']) {
        console.log((await app.query({ name })).rcode);
      }
      await app.stop();
    })();
  `);
  assert.deepEqual([code, out.trim()], [0, 'SERVFAIL\nSERVFAIL']);
  assert.match(err, /throws\.example\. A, handler of throws\.example: Error: a mistake\n\s+at /);
});

test('an app runs in a worker thread that ends before the process', async () => {
  const { code, err, out } = await run(`
    const { Worker } = require('node:worker_threads');
    const worker = new Worker(\`
      const { App } = require('./index.js');
      const { parentPort } = require('node:worker_threads');
      const app = new App({ listen: '127.0.0.1:0', workers: 1 });
      app.handle('a.example', (req, res) => res.answer({ type: 'A', data: '192.0.2.1' }));
      app.start().then(async () => parentPort.postMessage((await app.query({ name: 'a.example' })).rcode));
    \`, { eval: true });
    worker.on('message', async (rcode) => {
      console.log(rcode);
      await worker.terminate();
      setTimeout(() => console.log('alive'), 100);
    });
  `);
  assert.deepEqual([code, out.trim(), err], [0, 'NOERROR\nalive', '']);
});

test('what goes wrong with a store is logged, and ends nothing', async () => {
  const failures = [
    /records of a store zone=example\.org\. fault="bad\.example\.org A: `192\.0\.2`: /,
    /records of a store zone=example\.org\. fault="bad\.example\.org MX: data must be an array with an element for each record, not undefined/,
    /its zones are served as they were .* error=load\(\): Error: the database is away\n\s+at .*load/,
    /its zones are SERVFAIL meanwhile .* error=load\(\) has not ended within 500ms/,
    /its zones are served as they were .* error=get\(\) has not ended within 2s/,
    /its zones are SERVFAIL meanwhile .* error=load\(\): 'no error, but a text'/,
    /zones="hidden\.example\." error=load\(\): it threw what cannot be shown/,
  ];
  const { code, out } = await run(
    `
    const { App } = require('./index.js');
    const app = new App({ listen: '127.0.0.1:0', workers: 1 });
    const sets = [
      { owner: 'www.example.org', type: 'A', data: ['192.0.2.1'] },
      { owner: 'bad.example.org', type: 'A', data: ['192.0.2'] },
      { owner: 'bad.example.org', type: 'MX' },
    ];
    let isAway = false;
    let tell;
    app.store('example.org', {
      async load() {
        if (isAway) throw new Error('the database is away');
        return sets;
      },
      watch(zone, changed) { tell = changed; },
    });
    app.store('example.net', { load: () => new Promise(() => {}), deadline: 500 });
    let tellSilent;
    app.store('example.com', {
      load: () => [{ owner: 'www.example.com', type: 'A', data: ['192.0.2.2'] }],
      get: () => new Promise(() => {}),
      watch(zone, changed) { tellSilent = changed; },
      deadline: 2000,
    });
    app.store('example', { load: () => Promise.reject('no error, but a text') });
    const hidden = { [require('node:util').inspect.custom]() { throw new Error('hidden'); } };
    app.store('hidden.example', { async load() { throw hidden; } });
    app.start().then(async () => {
      isAway = true;
      tell();
      tellSilent('www.example.com');
      await new Promise((resolve) => process.stdin.once('data', resolve));
      for (const name of ['www.example.org', 'example.net', 'www.example.com', 'example']) {
        console.log((await app.query({ name })).rcode);
      }
      await app.stop();
      process.stdin.destroy();
    });
  `,
    async (said, child) => {
      for (const failure of failures) await heard(said, failure, 'err');
      child.stdin.write('end');
    },
  );
  assert.deepEqual([code, out.trim()], [0, 'NOERROR\nSERVFAIL\nNOERROR\nSERVFAIL']);
});

test('a store keeps its process alive for what it was asked, and no longer', async () => {
  const { code, err, out } = await run(`
    const { MemoryStore, RedbStore, RedisStore } = require('./index.js');
    const { mkdtempSync, rmSync } = require('node:fs');
    const folder = mkdtempSync(require('node:path').join(require('node:os').tmpdir(), 'zonda-'));
    process.on('exit', () => rmSync(folder, { recursive: true }));
    new RedisStore('redis://127.0.0.1:1');
    const records = { owner: 'a.example', type: 'A', data: ['192.0.2.1'] };
    (async () => {
      for (const store of [new MemoryStore(), await RedbStore.open(folder + '/records.redb')]) {
        await store.set(records);
        console.log((await store.get('a.example')).length);
      }
    })();
  `);
  assert.deepEqual([code, out.trim(), err], [0, '1\n1', '']);
});

test('a process ends by itself once its app has stopped, whichever store it had', async (t) => {
  const [redisServer, postgresServer] = [await redis(t), await postgres(t)];
  const kinds = ['memory', 'redb', 'own'];
  if (redisServer !== null) kinds.push('redis');
  if (postgresServer !== null) kinds.push('postgres');
  for (const kind of kinds) {
    const { code, err, out } = await run(`
      const { MemoryStore, PostgresStore, RedbStore, RedisStore, App } = require('./index.js');
      const sets = [
        { owner: 'example.org', type: 'NS', ttl: 60, data: ['ns.example.net'] },
        { owner: 'www.example.org', type: 'A', ttl: 60, data: ['192.0.2.1'] },
      ];
      const stores = {
        memory: () => new MemoryStore(),
        redb: () => RedbStore.open(__dirname + '/records.redb'),
        redis: () => new RedisStore(${JSON.stringify(redisServer?.url)}),
        postgres: () => new PostgresStore(${JSON.stringify(postgresServer?.parameters)}),
        own: () => ({ load: () => sets, set() {}, watch() {} }),
      };
      (async () => {
        const store = await stores.${kind}();
        for (const set of sets) await store.set(set);
        const app = new App({ listen: '127.0.0.1:0', workers: 1, log: 'error' });
        app.store('example.org', store);
        await app.start();
        console.log((await app.query({ name: 'www.example.org' })).answers[0].data);
        await app.stop();
      })();
    `);
    assert.deepEqual([kind, code, out.trim(), err], [kind, 0, '192.0.2.1', '']);
  }
});

test('a worker thread that ends while its app starts leaves no server behind', async () => {
  const { code, err, out } = await run(`
    const { Worker } = require('node:worker_threads');
    const socket = require('node:dgram').createSocket('udp4').bind(0, '127.0.0.1', () => {
      const { port } = socket.address();
      socket.close(() => begin(port));
    });
    function begin(port) {
      const worker = new Worker(\`
        const { App } = require('./index.js');
        const { parentPort, workerData } = require('node:worker_threads');
        const app = new App({ listen: '127.0.0.1:' + workerData, workers: 1, log: 'off' });
        app.store('example.org', { load: () => {
          parentPort.postMessage('asked');
          return new Promise(() => {});
        } });
        app.start();
      \`, { eval: true, workerData: port });
      worker.on('message', async (said) => {
        console.log(said);
        await worker.terminate();
        setTimeout(() => look(port), 4000); // a start waits for stores for 3 seconds
      });
    }
    function look(port) {
      const next = require('node:dgram').createSocket('udp4');
      next.on('error', () => next.close(() => setTimeout(look, 100, port)));
      next.bind(port, '127.0.0.1', () => next.close(() => console.log('free')));
    }
  `);
  assert.deepEqual([code, out.trim(), err], [0, 'asked\nfree', '']);
});

test('a worker thread ends while its store is asked', async () => {
  const { code, err, out } = await run(`
    const { Worker } = require('node:worker_threads');
    const worker = new Worker(\`
      const { MemoryStore, RedisStore, App } = require('./index.js');
      const { parentPort } = require('node:worker_threads');
      const app = new App({ listen: '127.0.0.1:0', workers: 1, log: 'off' });
      let tell;
      const forever = new Promise(() => {});
      app.store('example.org', {
        load: () => (tell ? [] : forever),
        get: () => forever,
        watch: (zone, changed) => { tell = changed; },
      });
      app.start().then(() => {
        tell('www.example.org');
        new RedisStore('redis://127.0.0.1:1').get('a.example').catch(() => {});
        const store = new MemoryStore();
        for (let count = 0; count < 10000; count++) store.get('a.example');
        setTimeout(() => parentPort.postMessage('asked'), 20);
      });
    \`, { eval: true });
    worker.on('message', async (said) => {
      console.log(said);
      await worker.terminate();
      setTimeout(() => console.log('alive'), 500);
    });
  `);
  assert.deepEqual([code, out.trim(), err], [0, 'asked\nalive', '']);
});

test('several processes answer on one address, and one that dies is replaced', async () => {
  const { err, out } = await run(
    `
    const cluster = require('node:cluster');
    const { DefaultServer, DNSOverTCP, DNSOverUDP } = require('./dinodns/index.js');
    const place = { address: '127.0.0.1', port: Number(process.env.PORT ?? 0) };
    if (cluster.isPrimary) {
      // A port that is free now, for all of them.
      const socket = require('node:dgram').createSocket('udp4').bind(0, '127.0.0.1', () => {
        process.env.PORT = socket.address().port;
        socket.close(() => begin({ ...place, port: Number(process.env.PORT) }));
      });
    } else {
      begin(place);
    }
    function begin(place) {
      const networks = [new DNSOverUDP(place), new DNSOverTCP(place)];
      const server = new DefaultServer({ networks, multithreaded: true });
      server.handle('pid.example', (req, res) => res.answer({ type: 'TXT', data: String(process.pid) }));
      server.handle('die.example', () => process.exit(1));
      server.start(() => console.log('started', process.pid, 'on', place.port, 'end'));
      if (cluster.isPrimary) process.on('SIGTERM', () => server.stop());
    }
  `,
    async (said, child) => {
      const [, port] = await heard(said, /started \d+ on (\d+) end/);
      const place = { address: '127.0.0.1', port: Number(port) };
      assert.ok(await udp(place, query('pid.example', 'TXT')));
      const before = said.out.match(/started/g).length;
      await udp(place, query('die.example', 'TXT'), 200);
      await heard(said, /another one is started/);
      for (let count = 0; count < 500 && said.out.match(/started \d/g).length <= before; count++) {
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      assert.ok(await udp(place, query('pid.example', 'TXT')));
      child.kill('SIGTERM');
    },
  );
  assert.match(out, /has ended \(1\)/);
  assert.equal(err, '');
});

test('memory does not grow with the queries that were handled', async () => {
  const { err, out } = await run(`
    require('node:v8').setFlagsFromString('--expose-gc');
    const gc = require('node:vm').runInNewContext('gc');
    const { App, makeQuery } = require('./index.js');
    const app = new App({ listen: '127.0.0.1:0', workers: 1 });
    app.handle('sync.example', (req, res) => res.answer({ type: 'A', data: '192.0.2.1' }));
    app.handle('async.example', async (req, res) => {
      await null;
      res.answer({ type: 'TXT', data: req.name + req.clientText });
    });
    const messages = ['sync.example', 'async.example'].map((name) => makeQuery({ name }));
    async function rounds(count) {
      for (let round = 0; round < count; round++) {
        const replies = Array.from({ length: 250 }, (_, place) => app.queryMessage(messages[place & 1]));
        for (const reply of await Promise.all(replies)) if (reply === null) throw new Error('no reply');
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
      gc();
      await new Promise((resolve) => setTimeout(resolve, 20)); // what is freed behind gc
      gc();
      const { heapUsed, external } = process.memoryUsage();
      return (heapUsed + external) / 1e6;
    }
    app.start().then(async () => {
      await rounds(40); // the engine's own buffers and compiled code
      const before = await rounds(40);
      const after = await rounds(120); // thirty thousand queries
      console.log('grown by', after - before);
      await app.stop();
    });
  `);
  assert.equal(err, '');
  assert.ok(Number(/grown by (.*)/.exec(out)[1]) < 6, out); // 200 octets a query
});
