// Packets of DinoDNS, as dns-packet has them, and the serializers that read and write them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import zonda from '../index.js';
import dinodns from '../dinodns/index.js';
import { ask, serve, told } from './dino.mjs';
import { placeOf, query, queryWithOptions, udp } from './helpers.mjs';

const { decodeMessage } = zonda;
const { DNSPacketSerializer, DNSRequest, ModifiedAfterSentError, PacketWrapper } = dinodns;
const { TCPSerializer, Trie, TypedEventEmitter, UDPSerializer, domainToRegexp, match } = dinodns;

const plain = new DNSPacketSerializer();
const octets = Buffer.from('octets');

/** Data of each type that dns-packet has fields for, and of one that it has none for. */
const DATA = {
  A: '192.0.2.1',
  AAAA: '2001:db8::1:0:0:1',
  CNAME: 'www.example',
  DNAME: 'other.example',
  NS: 'ns.example',
  PTR: 'host.example',
  TXT: [octets, Buffer.from([0, 255])],
  SPF: [Buffer.from('v=spf1 -all')],
  MX: { preference: 10, exchange: 'mx.example' },
  SOA: {
    ...{ mname: 'ns.example', rname: 'a\\.b.example' },
    ...{ serial: 4294967295, refresh: 2, retry: 3, expire: 4, minimum: 5 },
  },
  SRV: { priority: 1, weight: 2, port: 53, target: 'ns.example' },
  CAA: { flags: 128, tag: 'issue', value: 'ca.example; a=b', issuerCritical: true },
  HINFO: { cpu: 'RFC8482', os: '' },
  RP: { mbox: 'admin.example', txt: '.' },
  NAPTR: {
    ...{ order: 1, preference: 2, flags: 'u', services: 'E2U+sip' },
    ...{ regexp: '!^.*$!sip:a@b!', replacement: '.' },
  },
  DS: { keyTag: 1, algorithm: 13, digestType: 2, digest: Buffer.alloc(32, 7) },
  DNSKEY: { flags: 257, algorithm: 13, key: octets },
  RRSIG: {
    ...{ typeCovered: 'A', algorithm: 13, labels: 2, originalTTL: 60, expiration: 1_700_000_000 },
    ...{ inception: 1_600_000_000, keyTag: 7, signersName: 'example', signature: octets },
  },
  NSEC: { nextDomain: 'b.example', rrtypes: ['A', 'TXT', 'CAA'] },
  NSEC3: {
    ...{ algorithm: 1, flags: 0, iterations: 0, salt: Buffer.of(1) },
    ...{ nextDomain: Buffer.alloc(20, 1), rrtypes: [] },
  },
  SSHFP: { algorithm: 4, hash: 2, fingerprint: 'AB'.repeat(32) },
  TLSA: { usage: 3, selector: 1, matchingType: 1, certificate: Buffer.alloc(32, 1) },
  OPENPGPKEY: octets,
  NULL: octets,
};

/** A response with records. */
function response(answers, rest = {}) {
  const questions = [{ name: 'a.example', type: 'ANY', class: 'IN' }];
  return { id: 7, type: 'response', flags: 0x0500, questions, answers, ...rest };
}

test('serializers write what the core reads, and read what they have written', () => {
  for (const [type, data] of Object.entries(DATA)) {
    const name = 'a.\\"b\\".example';
    const packet = response([{ name, type, ttl: 9, class: 'IN', data }]);
    const written = plain.encode(packet);
    const [read] = plain.decode(written).answers;
    assert.deepEqual(read, { ...packet.answers[0], flush: false }, type);
    const byCore = decodeMessage(written);
    assert.deepEqual([byCore.id, byCore.aa, byCore.rd, byCore.tc], [7, true, true, false]);
    const [{ name: owner, type: itsType, ttl }] = byCore.answers;
    assert.deepEqual([owner, itsType, ttl], [`${name}.`, type, 9]);
  }
});

test('serializers write the data that handlers send', async (t) => {
  const server = await serve(t, (server) => {
    server.handle('*', (req, res) => {
      const { type } = req.packet.questions[0];
      res.answer({ type, data: DATA[type] });
    });
  });
  for (const type of Object.keys(DATA)) {
    const sent = await udp(placeOf(server), query('a.example', type));
    const own = plain.encode(response([{ name: 'a.example', type, ttl: 300, data: DATA[type] }]));
    const [byCore] = decodeMessage(sent).answers;
    assert.deepEqual({ ...decodeMessage(own).answers[0] }, { ...byCore }, type);
    assert.deepEqual(plain.decode(sent).answers, plain.decode(own).answers, type);
  }
});

test('an OPT record is read and written with its options', () => {
  const options = [
    { code: 'CLIENT_SUBNET', ip: '192.0.2.0', sourcePrefixLength: 24 },
    { code: 8, ip: '2001:db8::', sourcePrefixLength: 32 },
    { code: 'TCP_KEEPALIVE', timeout: 150 },
    { code: 'PADDING', length: 3 },
    { code: 'KEY_TAG', tags: [1, 2] },
    { code: 10, data: Buffer.alloc(8, 1) },
  ];
  const opt = { name: '.', type: 'OPT', udpPayloadSize: 1232, flags: 0x8000, options };
  const { additionals } = plain.decode(plain.encode({ additionals: [opt] }));
  const [{ flag_do, options: read, udpPayloadSize }] = additionals;
  assert.deepEqual([flag_do, udpPayloadSize], [true, 1232]);
  assert.deepEqual(
    read.map(({ type, data: { length }, ip, timeout, tags }) => [type, length, ip, timeout, tags]),
    [
      ['CLIENT_SUBNET', 7, '192.0.2.0', undefined, undefined],
      ['CLIENT_SUBNET', 8, '2001:db8::', undefined, undefined],
      ['TCP_KEEPALIVE', 2, undefined, 150, undefined],
      ['PADDING', 3, undefined, undefined, undefined],
      ['KEY_TAG', 4, undefined, undefined, [1, 2]],
      ['COOKIE', 8, undefined, undefined, undefined],
    ],
  );
});

test('over UDP a message is cut to 512 octets, over TCP it has its length', () => {
  const record = (n) => ({ name: 'a.example', type: 'A', ttl: 1, data: `192.0.2.${n}` });
  const records = Array.from({ length: 40 }, (_, n) => record(n));
  const more = { additionals: [record(41)], authorities: records.slice(0, 3) };
  const whole = response(records, more);
  const cut = new UDPSerializer().encode(whole);
  const read = plain.decode(cut);
  assert.deepEqual([cut.length <= 512, read.flag_tc], [true, true]);
  assert.deepEqual([read.answers.length, read.authorities, read.additionals], [19, [], []]);
  assert.equal(whole.flags & 0x0200, 0); // it is not changed
  const short = new UDPSerializer().encode(response(records.slice(0, 16), more));
  assert.deepEqual(
    ['answers', 'authorities', 'additionals'].map((part) => plain.decode(short)[part].length),
    [16, 3, 0],
  );
  const framed = new TCPSerializer().encode(whole);
  assert.equal(framed.readUInt16BE(0), framed.length - 2);
  assert.equal(new TCPSerializer().decode(framed).answers.length, 40);
  assert.throws(() => new TCPSerializer().decode(framed.subarray(0, -1)), RangeError);
});

test('octets that are no message, and data that cannot be written, are errors', () => {
  const header = (...rest) => Buffer.from(`0000000000010000000000${rest.join('')}`, 'hex');
  for (const wrong of [
    Buffer.alloc(11),
    header('00'), // no question
    header('00', 'c00c', '00010001'), // a name that leads to itself
    header('00', '40', '00010001'), // no length of a label
    header('00', '3f61'.repeat(5)), // a name that ends early
  ]) {
    assert.throws(() => plain.decode(wrong), RangeError, wrong.toString('hex'));
  }
  for (const [type, data] of [
    ['A', '192.0.2'],
    ['AAAA', 'a'],
    ['MX', {}],
    ['A', undefined],
    ['NS', 'a'.repeat(64)],
    ['CNAME', 'a.'.repeat(130)],
    ['NOTHING', octets],
    ['NULL', Buffer.alloc(65_536)],
  ]) {
    assert.throws(() => plain.encode(response([{ name: 'a', type, data }])), type);
  }
});

test('a request has the flags and options that dns-packet reads', async (t) => {
  let raw;
  let copy;
  const server = await serve(t, (server) => {
    server.use((req, res, next) => {
      copy = req.packet.copy();
      ({ raw } = req.packet);
      next();
    });
  });
  const subnet = Buffer.from([0, 1, 24, 0, 192, 0, 2]);
  const message = queryWithOptions('a.example', 'A', [{ code: 8, data: subnet }]);
  message.writeUInt16BE(0x0130, 2); // RD, AD and CD
  await udp(placeOf(server), message);
  const { additionals, ...expected } = plain.decode(message);
  assert.deepEqual({ ...raw }, expected);
  assert.deepEqual([raw.flag_rd, raw.flag_ad, raw.flag_cd, raw.flag_aa], [true, true, true, false]);
  assert.deepEqual([raw.opcode, raw.rcode], ['QUERY', 'NOERROR']);
  assert.deepEqual(raw.additionals, additionals);
  const [{ family, ip, sourcePrefixLength }] = raw.additionals[0].options;
  assert.deepEqual([family, ip, sourcePrefixLength], [1, '192.0.2.0', 24]);
  assert.deepEqual(copy.additionals, additionals);
});

test('packets are copied, frozen and changed, and what is written into them is sent', async (t) => {
  const server = await serve(t, (server) => {
    server.handle('flags.example', (req, res) => {
      res.packet.addFlag(0x0020);
      res.packet.removeFlag(0x0400);
      res.answer({ type: 'A', data: '192.0.2.1' });
    });
    server.handle('raw.example', (req, res) => {
      const answers = [{ name: 'raw.example', type: 'A', ttl: 7, data: '192.0.2.2' }];
      res.packet.raw = { ...res.packet.raw, flags: 0x0400 | 3, answers };
      res.resolve();
    });
    server.handle('part.example', (req, res) => {
      res.packet.raw.answers.push({ type: 'A', data: '192.0.2.3' });
      res.resolve();
      assert.throws(() => res.packet.answers.push('another'), TypeError);
    });
  });
  const { aa, ad } = await ask(server, 'flags.example');
  assert.deepEqual([aa, ad], [false, true]);
  assert.equal(await told(server, 'raw.example'), 'NXDOMAIN 192.0.2.2');
  assert.equal(await told(server, 'part.example'), 'NOERROR 192.0.2.3');
  const packet = new PacketWrapper({ flags: 1, answers: [] });
  const [copy, frozen] = [packet.copy(), packet.freeze()];
  copy.flags = 2;
  assert.deepEqual([packet.flags, packet.frozen, frozen.frozen], [1, false, true]);
  assert.throws(() => frozen.removeFlag(1), ModifiedAfterSentError);
});

test('the networks of a server answer packets without sockets', async (t) => {
  const server = await serve(t, (server) => {
    server.handle('a.example', (req, res) => res.answer({ type: 'A', data: '192.0.2.1' }));
  });
  const connection = { remoteAddress: '192.0.2.9', remotePort: 1, type: 'UDP' };
  const request = new DNSRequest(plain.decode(query('a.example')), connection);
  const { packet } = await server.networks[0].handler(request);
  assert.equal(packet.answers[0].data, '192.0.2.1');
});

test('the parts of which DinoDNS is made are there', () => {
  const trie = new Trie();
  trie.add('*.example', 'A', '192.0.2.1');
  trie.append('a.example', 'A', '192.0.2.2');
  assert.deepEqual(trie.get('b.example', 'A'), ['192.0.2.1']);
  assert.equal(trie.get('b.example', 'A', false), null);
  const { resolve } = Trie.prototype;
  const names = ['a.example', 'b.c.example', 'example'].map((name) => resolve.call(trie, name));
  assert.deepEqual(names, ['a.example', '*.example', null]);
  trie.delete('a.example', 'A');
  assert.deepEqual(Trie.fromString(String(trie)).get('a.example'), ['192.0.2.1']);
  const stars = domainToRegexp('*.example/A');
  assert.deepEqual([match('a.example', stars), match('axexample', stars)], [true, false]);
  assert.ok(new TypedEventEmitter().on('a', () => {}).emit('a'));
});
