import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import zonda from '../index.js';
import dinodns from '../dinodns/index.js';
import { address, ask, serve, told } from './dino.mjs';
import { placeOf, query, queryWithOptions, sleep, tcp, udp } from './helpers.mjs';

const { decodeMessage } = zonda;
const { DefaultCache, DefaultServer, DefaultStore, DinoDNS, DNSOverTCP, DNSOverUDP } = dinodns;
const { ConsoleLogger, DNSRequest, DuplicateAnswerForRequest, ModifiedAfterSentError, RCode } =
  dinodns;

test('the hello world of DinoDNS answers', async (t) => {
  const server = await serve(t, (server) => {
    server.handle('example.com', (req, res) => {
      const { type } = req.packet.questions[0];
      switch (type) {
        case 'TXT':
          return res.answer({
            name: 'example.com',
            type: 'TXT',
            class: 'IN',
            ttl: 300,
            data: 'Hello, World!',
          });
        default:
          return res.errors.notImplemented();
      }
    });
  });
  assert.equal(await told(server, 'example.com', 'TXT'), 'NOERROR ["Hello, World!"]');
  assert.equal(await told(server, 'example.com', 'A'), 'NOTIMP');
  assert.equal(await told(server, 'other.example', 'A'), 'NXDOMAIN');
});

test('all matches are called in order, behind all middleware', async (t) => {
  const order = [];
  const note = (word) => (req, res, next) => {
    order.push(word);
    next();
  };
  const server = await serve(t, (server) => {
    server.handle('*.example.com', note('star'));
    server.use(note('middleware'));
    server.handle('www.example.com', note('exact'));
    server.handle('*', note('all'));
    server.handle('*.example.com', note('star again'));
    server.handle('ww*.example.com', note('inside'));
    server.handle('xwww.example.com', note('never'));
    server.handle('www.example.com/MX|TXT', note('other types'));
    server.handle('www.example.com/A|AAAA', (req, res) =>
      res.answer({ type: 'A', data: '192.0.2.1' }),
    );
  });
  assert.equal(await told(server, 'www.example.com'), 'NOERROR 192.0.2.1');
  assert.deepEqual(order, ['middleware', 'star', 'exact', 'all', 'star again', 'inside']);
  order.length = 0;
  assert.equal(await told(server, 'www.example.com', 'TXT'), 'NXDOMAIN');
  assert.equal(order.at(-1), 'other types');
});

test('a malformed packet, a response and another operation do no harm', async (t) => {
  const seen = [];
  const server = await serve(t, (server) => {
    server.use((req, res, next) => {
      seen.push(req.packet.questions[0].name);
      next();
    });
  });
  const place = placeOf(server);
  const isResponse = query('a.example');
  isResponse[2] |= 0x80;
  const notify = query('a.example');
  notify[2] |= 0x20;
  assert.equal(await udp(place, Buffer.from([1, 2, 3]), 200), null);
  assert.equal(await udp(place, isResponse, 200), null);
  await udp(place, notify, 200);
  assert.deepEqual(seen, []);
  assert.equal(await told(server, 'b.example'), 'NXDOMAIN');
});

test('the name of a question has no final dot, as in DinoDNS, but for the root', async (t) => {
  const seen = [];
  const server = await serve(t, (server) => {
    server.use((req, res) => {
      const [{ name }] = req.packet.questions;
      seen.push(name);
      return res.answer({ name, type: 'A', data: '192.0.2.1' });
    });
  });
  const owners = [];
  for (const name of ['A.example', '.']) owners.push((await ask(server, name)).answers[0].name);
  assert.deepEqual(seen, ['a.example', '.']);
  assert.deepEqual(owners, ['A.example.', '.'], 'it is the name asked for');
});

test('a store answers without regard to case, with NODATA, ANY, AA and a time to live', async (t) => {
  const store = new DefaultStore();
  store.set('Example.com', 'A', ['192.0.2.1', '192.0.2.2']);
  store.append('example.com', 'A', '192.0.2.3');
  store.set('example.com', 'MX', { preference: 10, exchange: 'mx.example.com' });
  store.set('*.example.com', 'TXT', 'star');
  store.set('gone.example.com', 'A', '192.0.2.9');
  store.delete('gone.example.com', 'A', '192.0.2.9');
  const server = await serve(t, (server) => server.use(store.handler));
  const reply = await ask(server, 'ExAmPlE.cOm');
  assert.equal(reply.questions[0].name, 'ExAmPlE.cOm.');
  assert.deepEqual(
    reply.answers.map(({ data }) => data),
    ['192.0.2.1', '192.0.2.2', '192.0.2.3'],
  );
  assert.deepEqual([reply.aa, reply.answers[0].ttl], [true, 300]);
  assert.equal(await told(server, 'example.com', 'AAAA'), 'NOERROR');
  assert.equal(await told(server, 'a.b.example.com', 'TXT'), 'NOERROR ["star"]');
  assert.equal(await told(server, 'a.b.example.com'), 'NOERROR');
  assert.equal(await told(server, 'gone.example.com', 'TXT'), 'NOERROR ["star"]');
  assert.equal(await told(server, 'example.net'), 'NXDOMAIN');
  const again = DefaultStore.fromString(store.toString());
  assert.deepEqual(again.get('example.com', 'MX'), [
    { preference: 10, exchange: 'mx.example.com' },
  ]);
  assert.equal(again.get('nobody.example'), null);
});

test('a store alone is answered while JavaScript is busy, and changes at once', async (t) => {
  const store = new DefaultStore();
  store.set('a.example', 'A', '192.0.2.1');
  store.set('*.star.example', 'TXT', ['one', 'two']);
  const server = await serve(t, (server) => server.use(store.handler));
  const { port } = placeOf(server);
  const shared = new Int32Array(new SharedArrayBuffer(8));
  const workerData = { message: query('a.example'), port, shared };
  const program = `
    const { workerData: { message, port, shared } } = require('node:worker_threads');
    const socket = require('node:dgram').createSocket('udp4');
    socket.on('message', (reply) => {
      shared[1] = reply.readUInt16BE(6);
      Atomics.store(shared, 0, 1);
      Atomics.notify(shared, 0);
      socket.close();
    });
    socket.send(message, port, '127.0.0.1');
  `;
  const worker = new Worker(program, { eval: true, workerData });
  Atomics.wait(shared, 0, 0, 5000); // JavaScript of this thread stands still
  assert.deepEqual([...shared], [1, 1]);
  await once(worker, 'exit');
  assert.equal(await told(server, 'x.y.star.example', 'TXT'), 'NOERROR ["one"] ["two"]');
  assert.equal(await told(server, 'a.example', 'TXT'), 'NOERROR');
  assert.equal(await told(server, 'b.example'), 'NXDOMAIN');
  assert.equal(await told(server, 'a.example', 'ANY'), 'NOERROR 192.0.2.1');
  store.append('b.example', 'A', '192.0.2.2');
  store.delete('a.example');
  assert.equal(await told(server, 'B.example'), 'NOERROR 192.0.2.2');
  assert.equal(await told(server, 'a.example'), 'NXDOMAIN');
  server.handle('*', (req, res) => res.finished || res.answer({ type: 'A', data: '192.0.2.3' }));
  assert.equal(await told(server, 'c.example'), 'NOERROR 192.0.2.3');
  assert.equal(await told(server, 'b.example'), 'NOERROR 192.0.2.2');
});

test('a store that the core cannot hold is answered by JavaScript', async (t) => {
  t.mock.method(console, 'error', () => {});
  const wrong = new DefaultStore();
  wrong.set('wrong.example', 'A', 'no address');
  wrong.set('right.example', 'A', '192.0.2.1');
  const server = await serve(t, (server) => server.use(wrong.handler));
  assert.equal(await told(server, 'right.example'), 'NOERROR 192.0.2.1');
  assert.equal(await told(server, 'wrong.example'), 'SERVFAIL');
  const open = new DefaultStore();
  open.set('a.example', 'A', '192.0.2.1');
  const other = await serve(t, (server) => server.use(open.handler));
  assert.equal(await told(other, 'a.example'), 'NOERROR 192.0.2.1');
  open.data.set('b.example', new Map([['A', ['192.0.2.2']]]));
  assert.equal(await told(other, 'b.example'), 'NOERROR 192.0.2.2');
});

test('DinoDNS keeps answers in its cache, whole and for their time', async (t) => {
  const cache = new DefaultCache({ maxEntries: 2 });
  let asked = 0;
  const server = await serve(
    t,
    (server) => {
      server.handle('*.example.com', (req, res) => {
        asked++;
        if (!res.finished) res.answer({ ...req.packet.questions[0], ttl: 1, data: '192.0.2.1' });
      });
    },
    { Server: DinoDNS, cache },
  );
  assert.equal(await told(server, 'a.example.com'), 'NOERROR 192.0.2.1');
  assert.equal(cache.size, 1);
  assert.equal(await told(server, 'a.example.com'), 'NOERROR 192.0.2.1');
  assert.deepEqual(cache.get('A.example.com', 'A'), ['192.0.2.1']);
  await told(server, 'b.example.com');
  await told(server, 'c.example.com');
  assert.equal(cache.size, 2);
  await sleep(1050);
  assert.equal(cache.get('c.example.com', 'A'), null);
  assert.ok(asked >= 3);
});

test('a cache of DinoDNS that is given no size is bounded, as clients choose the names in it', () => {
  const cache = new DefaultCache();
  for (let number = 0; number < 100_001; number++) cache.set(`${number}.example`, 'A', '192.0.2.1');
  assert.equal(cache.size, 100_000);
  assert.equal(cache.get('0.example', 'A'), null);
  assert.deepEqual(cache.get('100000.example', 'A'), ['192.0.2.1']);
  const other = new DefaultCache({ maxEntries: Infinity });
  assert.equal(other.maxEntries, Infinity);
});

test('events, metadata and extra tell what handlers want to know', async (t) => {
  const events = [];
  let data;
  const server = await serve(t, (server) => {
    server.use((req, res, next) => {
      req.extra = { from: 'middleware' };
      res.on('answer', () => events.push('answer'));
      res.on('done', (res) => {
        events.push('done');
        data = res.data();
      });
      next();
    });
    server.handle('a.example', (req, res) => {
      assert.deepEqual(req.extra, { from: 'middleware' });
      assert.equal(req.connection.remoteAddress, '127.0.0.1');
      assert.equal(req.connection.type, 'UDP');
      assert.equal(req.packet.rcode, 'NO_ERROR');
      assert.deepEqual(req.packet.flagsArray, ['rd']);
      assert.equal(req.packet.additionals[0].udpPayloadSize, 1232);
      res.extra = { mark: 1 };
      res.packet.authorities = [{ name: 'example', type: 'NS', ttl: 9, data: 'ns.example' }];
      res.packet.additionals = [
        {
          type: 'OPT',
          name: '.',
          options: [{ code: 15, data: Buffer.from('\0\x11why', 'latin1') }],
        },
        { name: 'ns.example', type: 'A', ttl: 9, data: '192.0.2.53' },
      ];
      res.answer([{ name: 'a.example', type: 'A', class: 'IN', ttl: 5, data: '192.0.2.1' }]);
    });
  });
  const reply = await ask(server, 'a.example');
  assert.equal(reply.authorities[0].data, 'ns.example.');
  assert.equal(reply.additionals[0].data, '192.0.2.53');
  assert.deepEqual(reply.error, { code: 17, text: 'why' });
  await sleep(5);
  assert.deepEqual(events, ['answer', 'done']);
  assert.deepEqual(data.extra, { mark: 1 });
  assert.ok(data.metadata.ts.responseTimeNs > data.metadata.ts.requestTimeNs);
});

test('answers that were sent cannot be changed or sent again', async (t) => {
  const errors = [];
  const tried = (name, function_) => {
    try {
      function_();
    } catch (error) {
      errors.push([name, error.constructor]);
    }
  };
  const server = await serve(t, (server) => {
    server.handle('a.example', (req, res) => {
      res.answer({ type: 'A', data: '192.0.2.1' });
      tried('answer', () => res.answer({ type: 'A', data: '192.0.2.2' }));
      tried('resolve', () => res.resolve());
      tried('answers', () => (res.packet.answers = []));
      tried('flags', () => res.packet.addFlag(0x20));
      tried('rcode', () => (res.packet.rcode = RCode.REFUSED));
    });
  });
  assert.equal(await told(server, 'a.example'), 'NOERROR 192.0.2.1');
  assert.deepEqual(errors, [
    ['answer', DuplicateAnswerForRequest],
    ['resolve', DuplicateAnswerForRequest],
    ['answers', ModifiedAfterSentError],
    ['flags', ModifiedAfterSentError],
    ['rcode', ModifiedAfterSentError],
  ]);
});

test('every error of the response has its own code', async (t) => {
  const codes = {
    formatError: 'FORMERR',
    serverFailure: 'SERVFAIL',
    nxDomain: 'NXDOMAIN',
    notImplemented: 'NOTIMP',
    refused: 'REFUSED',
    yxDomain: 'YXDOMAIN',
    yxRRSet: 'YXRRSET',
    notAuth: 'NOTAUTH',
    notZone: 'NOTZONE',
  };
  const server = await serve(t, (server) => {
    for (const method of Object.keys(codes)) {
      server.handle(`${method}.example`, (req, res) => {
        res.packet.rcode = RCode.FORMAT_ERROR; // another one before
        res.errors[method]();
      });
    }
  });
  for (const [method, rcode] of Object.entries(codes)) {
    assert.equal((await ask(server, `${method}.example`)).rcode, rcode);
  }
});

test('what handlers throw goes to the next one, and ends as SERVFAIL, not as NXDOMAIN', async (t) => {
  const written = t.mock.method(console, 'error', () => {});
  const server = await serve(t, (server) => {
    const fail = () => {
      throw new Error('a mistake');
    };
    server.handle('next.example', fail);
    server.handle('next.example', (req, res) => res.answer({ type: 'A', data: '192.0.2.1' }));
    server.handle('throws.example', fail);
    server.handle('rejects.example', async () => fail());
    server.handle('late.example', async (req, res, next) => {
      next();
      await sleep(1);
      fail();
    });
  });
  assert.equal(await told(server, 'next.example'), 'NOERROR 192.0.2.1');
  assert.equal(await told(server, 'throws.example'), 'SERVFAIL');
  assert.equal(await told(server, 'rejects.example'), 'SERVFAIL');
  assert.equal(await told(server, 'late.example'), 'NXDOMAIN');
  await sleep(10);
  assert.match(written.mock.calls.at(-1).arguments[0].stack, /a mistake/);
});

test('other default handlers, routers and networks take the place of the usual ones', async (t) => {
  const network = Object.assign(new EventEmitter(), {
    address,
    port: 1,
    networkType: 'UDP',
    listen: () => {},
    close: () => {},
  });
  const router = {
    handlers: [],
    use: () => {},
    handle: (name, handler) => router.handlers.push(handler),
    match: () => router.handlers[0] ?? ((req, res, next) => next()),
  };
  const options = {
    networks: [new DNSOverUDP({ address, port: 0 }), network],
    router,
    defaultHandler: (req, res) => res.errors.refused(),
  };
  const server = await serve(t, () => {}, options);
  assert.equal(await told(server, 'a.example'), 'REFUSED');
  server.handle('any', (req, res) => res.answer({ type: 'A', data: '192.0.2.1' }));
  assert.equal(await told(server, 'a.example'), 'NOERROR 192.0.2.1');
  const packet = {
    id: 7,
    type: 'query',
    flags: 0x100,
    questions: [{ name: 'a.example', type: 'A', class: 'IN' }],
  };
  const res = await network.handler(
    new DNSRequest(packet, { remoteAddress: address, remotePort: 1, type: 'UDP' }),
  );
  assert.deepEqual([res.packet.id, res.packet.answers[0].data], [7, '192.0.2.1']);
});

test('TCP answers several queries of one segment, and long answers whole', async (t) => {
  const networks = [new DNSOverTCP(address, 0)];
  const server = await serve(
    t,
    (server) => {
      server.handle('*', (req, res) => res.answer({ type: 'TXT', ttl: 1, data: 'x'.repeat(2000) }));
    },
    { networks },
  );
  const messages = [1, 2, 3].map((id) => query(`n${id}.example`, 'TXT', { id }));
  const replies = (await tcp(placeOf(server), messages)).map((reply) => decodeMessage(reply));
  assert.deepEqual(replies.map(({ id }) => id).sort(), [1, 2, 3]);
  assert.ok(replies.every(({ answers, tc }) => !tc && answers[0].data.join('').length === 2000));
});

test('the console logger writes queries and replies', async (t) => {
  const lines = [];
  t.mock.method(console, 'info', (line) => lines.push(line));
  const logger = new ConsoleLogger();
  const server = await serve(t, () => {}, { Server: DinoDNS, logger });
  await ask(server, 'a.example');
  await sleep(5);
  assert.equal(lines.length, 2);
  assert.match(
    lines[0],
    /^\[INFO\] 127\.0\.0\.1:\d+-> - query 4660 "A IN a\.example UDP" -- rd --s$/,
  );
  assert.match(lines[1], /response 4660 "A IN a\.example UDP" NX_DOMAIN aa,rd [\d.e-]+s$/);
});

test('the reply to a query with EDNS has EDNS, and its size is kept to', async (t) => {
  const server = await serve(t, (server) => {
    server.handle('*', (req, res) => {
      res.answer(Array.from({ length: 30 }, (_, n) => ({ type: 'A', data: `192.0.2.${n}` })));
    });
  });
  const reply = decodeMessage(await udp(placeOf(server), queryWithOptions('a.example', 'A', [])));
  assert.deepEqual([reply.tc, reply.answers.length], [false, 30]);
  assert.ok(reply.edns.udpSize >= 512);
});

test('small tools are there', () => {
  const { CombineFlags, HasFlag, getPacketFlags, overrideFlags, overrideId, resolveWildcards } =
    dinodns;
  assert.equal(CombineFlags([1, 4]), 5);
  assert.equal(HasFlag(5, 4), true);
  assert.equal(HasFlag(5, 6), false);
  const message = query('a.example');
  assert.equal(getPacketFlags(overrideFlags(message, 0x8180)), 0x8180);
  assert.equal(overrideId(message, 9).readUInt16BE(0), 9);
  assert.equal(resolveWildcards('a', '*.example'), 'a.example');
  assert.equal(resolveWildcards('', '*.example'), 'example');
  assert.equal(RCode[3], 'NX_DOMAIN');
  assert.equal(dinodns.common.DefaultServer, DefaultServer);
  assert.equal(dinodns.plugins.storage.DefaultStore, DefaultStore);
});
