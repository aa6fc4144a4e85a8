// Stores, caches and loggers for DinoDNS that programs write themselves, and what they ask of the package.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import zonda from '../index.js';
import dinodns from '../dinodns/index.js';
import { address, ask, serve, told } from './dino.mjs';
import { placeOf, query, sleep, tcp, udp } from './helpers.mjs';

const { decodeMessage } = zonda;
const { Cache, ConsoleLogger, DefaultReplacer, DefaultStore, DinoDNS, Store } = dinodns;
const { DNSOverTCP, DNSOverUDP } = dinodns;

/** A store over an object. */
class OwnStore extends Store {
  records = { 'a.example': { A: ['192.0.2.1'] } };
  asked = 0;

  get(name, type) {
    return this.records[name]?.[type] ?? null;
  }

  set(name, type, data) {
    this.records[name] = { ...this.records[name], [type]: [data].flat() };
  }

  async handler(req, res, next) {
    const { name, type } = req.packet.questions[0];
    this.asked++;
    await sleep(1);
    const data = this.get(name, type);
    if (data !== null) res.answer(data.map((data) => ({ name, type, ttl: 60, data })));
    next();
  }
}

/** A cache over a map. */
class OwnCache extends Cache {
  kept = new Map();

  get(name, type) {
    return this.kept.get(`${name} ${type}`) ?? null;
  }

  async set(name, type, data) {
    this.kept.set(`${name} ${type}`, data);
  }

  handler(req, res, next) {
    const { name, type } = req.packet.questions[0];
    const data = this.get(name, type);
    if (data !== null) res.answer(data.map((data) => ({ name, type, ttl: 1, data })));
    else next();
  }
}

test('a store, a cache and a logger of the program are used in their order', async (t) => {
  const lines = [];
  const logger = {
    log: (level, message) => lines.push(`${level} ${message}`),
    handler(req, res, next) {
      this.log('INFO', req.packet.questions[0].name);
      next();
    },
  };
  const [storage, cache] = [new OwnStore(), new OwnCache()];
  const server = await serve(t, () => {}, { Server: DinoDNS, storage, cache, logger });
  assert.deepEqual([server.storage, server.cache, server.logger], [storage, cache, logger]);
  assert.equal(await told(server, 'a.example'), 'NOERROR 192.0.2.1');
  await sleep(5); // it is kept when it was sent
  storage.set('a.example', 'A', '192.0.2.2');
  assert.equal(await told(server, 'a.example'), 'NOERROR 192.0.2.1');
  assert.equal(await told(server, 'b.example'), 'NXDOMAIN');
  assert.deepEqual([storage.asked, [...cache.kept.keys()]], [2, ['a.example A']]);
  assert.deepEqual(lines, ['INFO a.example', 'INFO a.example', 'INFO b.example']);
});

test('a store that is asked to tells what may be kept', async (t) => {
  const store = new DefaultStore({ shouldCache: true });
  store.set('*.example', 'A', ['192.0.2.1', '192.0.2.2']);
  const requests = [];
  store.on('cacheRequest', (request) => requests.push(request));
  const server = await serve(t, (server) => server.use(store.handler));
  assert.equal(await told(server, 'a.example'), 'NOERROR 192.0.2.1 192.0.2.2');
  assert.equal(await told(server, 'a.example', 'TXT'), 'NOERROR');
  const records = ['192.0.2.1', '192.0.2.2'];
  assert.deepEqual(requests, [{ zoneName: 'a.example', recordType: 'A', records }]);
});

test('the console logger writes as the program wants it to', async (t) => {
  const lines = [];
  t.mock.method(console, 'info', (line) => lines.push(line));
  t.mock.method(console, 'warn', (line) => lines.push(line));
  const replacer = { replace: (message) => `${message.packet.type} of mine` };
  const logger = new ConsoleLogger({ replacer });
  const format = '{name}|{rcode}|{other}|{mine}';
  const formatted = new DefaultReplacer({ format });
  formatted.replacerMap.mine = () => 'own';
  const second = new ConsoleLogger({ logRequests: false, replacer: formatted });
  const server = await serve(t, (server) => {
    server.use(logger.handler);
    server.use(second.handler);
  });
  await ask(server, 'a.example');
  await sleep(5);
  logger.warn('careful');
  assert.deepEqual(lines, [
    '[INFO] query of mine',
    '[INFO] response of mine',
    '[INFO] a.example|NX_DOMAIN|{other}|own',
    '[WARN] careful',
  ]);
});

test('long answers are cut over UDP, and whole over TCP', async (t) => {
  const networks = [new DNSOverUDP({ address, port: 0 }), new DNSOverTCP({ address, port: 0 })];
  const server = await serve(
    t,
    (server) => {
      const records = Array.from({ length: 60 }, (_, n) => ({ type: 'A', data: `192.0.2.${n}` }));
      server.handle('*', (req, res) => res.answer(records));
    },
    { networks },
  );
  const place = placeOf(server);
  const message = query('a.example').subarray(0, -11); // without EDNS
  message.writeUInt16BE(0, 10);
  const cut = await udp(place, message);
  assert.deepEqual([cut.length <= 512, decodeMessage(cut).tc], [true, true]);
  const [whole] = await tcp(place, [message]);
  assert.equal(decodeMessage(whole).answers.length, 60);
});

test('IPv6 is answered, and its clients are told apart', async (t) => {
  const server = await serve(
    t,
    (server) => {
      server.handle('*', (req, res) => {
        res.answer({ type: 'TXT', data: req.connection.remoteAddress });
      });
    },
    { networks: [new DNSOverTCP({ address: '::1', port: 0 })] },
  );
  const [, port] = /^\[::1\]:(\d+)$/.exec(server.addresses[0]);
  const [reply] = await tcp({ address: '::1', port: Number(port) }, [query('a.example', 'TXT')]);
  assert.deepEqual(decodeMessage(reply).answers[0].data, ['::1']);
});

test('a store gives records as an array, or by their types', () => {
  const arrays = new DefaultStore();
  const maps = new DefaultStore({ byType: true });
  for (const store of [arrays, maps]) {
    store.set('a.example', 'A', '192.0.2.1');
    store.set('a.example', 'TXT', ['one', 'two']);
    store.set('*.example', 'A', '192.0.2.2');
  }
  assert.deepEqual(arrays.get('a.example', 'A'), ['192.0.2.1']);
  assert.deepEqual(arrays.get('a.example'), ['192.0.2.1', 'one', 'two']);
  assert.deepEqual(maps.get('a.example', 'A'), { A: ['192.0.2.1'] });
  assert.deepEqual(maps.get('a.example'), { A: ['192.0.2.1'], TXT: ['one', 'two'] });
  assert.deepEqual(maps.get('b.example', 'A'), { A: ['192.0.2.2'] });
  assert.equal(maps.get('a.example', 'MX'), null);
  assert.equal(maps.get('a.test', 'A'), null);
});

test('a network listens on the address of a name, and without one on all', async (t) => {
  for (const address of ['localhost', '', undefined]) {
    const place = { address, port: 0 };
    const server = await serve(t, (server) => server.handle('*', (req, res) => res.answer([])), {
      networks: [new DNSOverTCP(place), new DNSOverUDP(place)],
    });
    const expected = address === 'localhost' ? /^127\.0\.0\.1:\d+$/ : /^0\.0\.0\.0:\d+$/;
    assert.match(server.addresses[0], expected);
  }
});

test('a name that has no address is an error of start()', async () => {
  const place = { address: 'no-such-host.invalid', port: 0 };
  const server = new dinodns.DefaultServer({ networks: [new DNSOverTCP(place)] });
  await assert.rejects(server.start(), /no-such-host\.invalid/);
});

test('the flags of a response are named as dns-packet names them', () => {
  const { PacketWrapper } = dinodns;
  const packet = new PacketWrapper({ type: 'response', id: 1, flags: 0, questions: [], answers: [] });
  packet.addFlag(0x0080);
  packet.addFlag(0x0100);
  assert.deepEqual(packet.flagsArray, ['rd', 'ra']);
});
