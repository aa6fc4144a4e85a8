// A million handled queries, after which the process has as much memory as after the first of them.
// Longer runs are kept in bench/runs.

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { query } from './helpers.mjs';

/** Queries in all. */
const QUERIES = 1_000_000;
/** Those by which all buffers and the heap have grown. */
const WARM_UP = 200_000;
/** By how much resident memory may grow behind them: ten octets a query, less than any object that
 * could be forgotten. */
const GROWTH_MAX = 8 << 20;
/** Queries of a connection that wait for replies at once. */
const WINDOW = 100;
/** A server of its own: this process has memory, too. */
const SERVER = fileURLToPath(new URL('memory-server.mjs', import.meta.url));

/** Asks queries over a connection, some at a time; the response codes of all replies, counted. */
async function ask(port, names, count) {
  const socket = net.connect({ host: '127.0.0.1', port, noDelay: true });
  await once(socket, 'connect');
  const messages = names.map((name, id) => {
    const message = query(name, 'A', { id });
    return Buffer.concat([Buffer.of(message.length >> 8, message.length & 255), message]);
  });
  const rcodes = {};
  let [asked, waiting] = [0, 0];
  let rest = Buffer.alloc(0);
  const send = () => {
    const window = [];
    for (; waiting < WINDOW && asked < count; waiting++) {
      window.push(messages[asked++ % messages.length]);
    }
    if (window.length > 0) socket.write(Buffer.concat(window));
  };
  const ended = new Promise((resolve, reject) => {
    socket.on('error', reject);
    socket.on('data', (octets) => {
      const received = rest.length > 0 ? Buffer.concat([rest, octets]) : octets;
      let at = 0;
      while (at + 2 <= received.length) {
        const end = at + 2 + ((received[at] << 8) | received[at + 1]);
        if (end > received.length) break;
        const rcode = received[at + 5] & 0xf;
        rcodes[rcode] = (rcodes[rcode] ?? 0) + 1;
        waiting--;
        at = end;
      }
      rest = received.subarray(at);
      if (waiting < WINDOW / 2) send();
      if (waiting === 0 && asked === count) resolve();
    });
  });
  send();
  await ended;
  socket.destroy();
  return rcodes;
}

test('a million handled queries leave nothing behind', { timeout: 300_000 }, async (t) => {
  const server = fork(SERVER, { execArgv: ['--expose-gc'] });
  t.after(() => server.kill());
  const [ports] = await once(server, 'message');
  const told = async () => {
    server.send('memory');
    return (await once(server, 'message'))[0];
  };
  // A reply of each kind: in turn, and as often in the one interface as in the other.
  const kinds = ['now', 'later', 'denies', 'throws', 'listens'];
  const names = Array.from({ length: 5000 }, (_, n) => `h${n}.${kinds[n % 5]}.example`);
  const expected = (count) => ({ 0: (count * 3) / 5, 2: count / 5, 3: count / 5 });
  const half = async (count) => {
    const replies = await Promise.all(ports.map((port) => ask(port, names, count)));
    for (const rcodes of replies) assert.deepEqual(rcodes, expected(count));
  };
  await half(WARM_UP / 2);
  const before = await told();
  await half((QUERIES - WARM_UP) / 2);
  const after = await told();
  const said = `${before} octets, ${after} after ${QUERIES} queries`;
  assert.ok(after <= before + GROWTH_MAX, said);
  t.diagnostic(said);
});
