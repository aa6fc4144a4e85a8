import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';
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
  const timer = setTimeout(() => child.kill('SIGKILL'), 30_000);
  await whileItRuns(said, child);
  const [code, signal] = await exited;
  clearTimeout(timer);
  rmSync(scratch, { recursive: true, force: true });
  return { ...said, code, signal };
}

/** Waits until a program has said something. */
async function heard(said, pattern) {
  for (let count = 0; count < 500; count++) {
    const found = pattern.exec(said.out);
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`not said: ${pattern}; but ${said.out}${said.err}`);
}

test('an app keeps its process alive until it has stopped, and no longer', async () => {
  const { code, err, out } = await run(`
    const { Zonda } = require('./index.js');
    const app = new Zonda({ listen: '127.0.0.1:0', workers: 1 });
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
    const { Zonda } = require('./index.js');
    const app = new Zonda({ listen: '127.0.0.1:0', workers: 1 });
    app.handle('a.example', () => new Promise(() => {}));
    app.start().then(() => { app.query({ name: 'a.example' }); setTimeout(() => process.exit(3), 50); });
  `);
  assert.deepEqual([code, err], [3, '']);
});

test('nothing that handlers throw ends the process', async () => {
  const { code, err, out } = await run(`
    const { Zonda } = require('./index.js');
    const app = new Zonda({ listen: '127.0.0.1:0', workers: 1 });
    app.use((req, res, next) => { next(); });
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
  assert.match(err, /throws\.example A: Error: a mistake\n\s+at /);
});

test('an app runs in a worker thread that ends before the process', async () => {
  const { code, err, out } = await run(`
    const { Worker } = require('node:worker_threads');
    const worker = new Worker(\`
      const { Zonda } = require('./index.js');
      const { parentPort } = require('node:worker_threads');
      const app = new Zonda({ listen: '127.0.0.1:0', workers: 1 });
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
    const { Zonda, makeQuery } = require('./index.js');
    const app = new Zonda({ listen: '127.0.0.1:0', workers: 1 });
    app.handle('sync.example', (req, res) => res.answer({ type: 'A', data: '192.0.2.1' }));
    app.handle('async.example', async (req, res) => {
      await null;
      res.answer({ type: 'TXT', data: req.name + req.clientText });
    });
    const messages = ['sync.example', 'async.example'].map((name) => makeQuery({ name }));
    async function rounds(count) {
      for (let round = 0; round < count; round++) {
        const replies = Array.from({ length: 250 }, (_, place) => app.query(messages[place & 1]));
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
