import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import zonda from '../index.js';
import message from '../lib/message.js';
import tables from '../lib/tables.js';
import { recordTypes } from '../scripts/types.mjs';
import { started } from './helpers.mjs';

const { decodeMessage, parseRecord, recordText } = zonda;
const digest = 'ab'.repeat(32);

/** Types, their data as programs give them, and as zone files have them. */
const RECORDS = [
  ['A', '192.0.2.1', '192.0.2.1'],
  ['AAAA', '2001:db8::1', '2001:db8::1'],
  ['CNAME', 'www.example.org', 'www.example.org.'],
  ['NS', 'ns.example.org.', 'ns.example.org.'],
  ['PTR', 'host.example.org', 'host.example.org.'],
  ['DNAME', 'other.example', 'other.example.'],
  ['MX', { preference: 10, exchange: 'mx.example.org' }, '10 mx.example.org.'],
  ['MX', { exchange: 'mx.example.org' }, '0 mx.example.org.'],
  ['TXT', 'Hello, "World"; ü\\', '"Hello, \\"World\\"; \\195\\188\\\\"'],
  ['TXT', ['one', Buffer.from([0, 1, 255])], '"one" "\\000\\001\\255"'],
  ['TXT', '', '""'],
  [
    'SOA',
    {
      mname: 'ns.example',
      rname: 'admin.example',
      serial: 1,
      refresh: 2,
      retry: 3,
      expire: 4,
      minimum: 5,
    },
    'ns.example. admin.example. 1 2 3 4 5',
  ],
  ['SRV', { priority: 1, weight: 2, port: 53, target: 'ns.example' }, '1 2 53 ns.example.'],
  ['CAA', { tag: 'issue', value: 'ca.example; a=b' }, '0 issue "ca.example; a=b"'],
  ['CAA', { issuerCritical: true, tag: 'issue', value: '' }, '128 issue ""'],
  [
    'NAPTR',
    {
      order: 1,
      preference: 2,
      flags: 'u',
      services: 'E2U+sip',
      regexp: '!^.*$!sip:a@b!',
      replacement: '.',
    },
    '1 2 "u" "E2U+sip" "!^.*$!sip:a@b!" .',
  ],
  ['HINFO', { cpu: 'RFC8482', os: '' }, '"RFC8482" ""'],
  ['RP', { mbox: 'admin.example', txt: '.' }, 'admin.example. .'],
  [
    'DS',
    { keyTag: 1, algorithm: 13, digestType: 2, digest: Buffer.from(digest, 'hex') },
    `1 13 2 ${digest}`,
  ],
  ['DS', { keytag: 1, alg: 13, digest_type: 2, digest }, `1 13 2 ${digest}`],
  ['DNSKEY', { flags: 257, algorithm: 13, key: Buffer.from('key') }, '257 3 13 a2V5'],
  [
    'RRSIG',
    {
      typeCovered: 'A',
      algorithm: 13,
      labels: 2,
      originalTTL: 60,
      expiration: 1_700_000_000,
      inception: 1_600_000_000,
      keyTag: 7,
      signersName: 'example',
      signature: Buffer.from('sig'),
    },
    'A 13 2 60 1700000000 1600000000 7 example. c2ln',
  ],
  ['NSEC', { nextDomain: 'b.example', rrtypes: ['A', 'TXT'] }, 'b.example. A TXT'],
  [
    'NSEC3',
    {
      algorithm: 1,
      flags: 0,
      iterations: 0,
      salt: Buffer.alloc(0),
      nextDomain: Buffer.from('12345'),
      rrtypes: [],
    },
    '1 0 0 - 64p36d1l',
  ],
  ['SSHFP', { algorithm: 4, hash: 2, fingerprint: digest }, `4 2 ${digest}`],
  [
    'TLSA',
    { usage: 3, selector: 1, matchingType: 1, certificate: Buffer.from(digest, 'hex') },
    `3 1 1 ${digest}`,
  ],
  [
    'HTTPS',
    { priority: 1, target: '.', params: { alpn: ['h2', 'h3'], port: 443 } },
    '1 . alpn=h2,h3 port=443',
  ],
  ['URI', { priority: 1, weight: 2, target: 'https://example.org/' }, '1 2 "https://example.org/"'],
  [
    'LOC',
    '52 22 23.000 N 4 53 32.000 E -2.00m 0.00m 10000m 10m',
    '52 22 23.000 N 4 53 32.000 E -2m 0m 10000m 10m',
  ],
  ['OPENPGPKEY', Buffer.from('key'), 'a2V5'],
  ['TYPE65280', Buffer.from([1, 2]), '\\# 2 0102'],
  [65280, '\\# 1 ff', '\\# 1 ff'],
  ['NULL', Buffer.from([7]), '\\# 1 07'],
];

/** Whether text for a type is the text of its strings, not words of a zone file. */
function isText(type) {
  const fields = tables.fieldsOf.get(tables.typeNumber(type));
  return fields?.length === 1 && fields[0][1] === 'strings';
}

/** A zone that has a record in the text of a zone file. */
function zoneWith(type, text) {
  return `@ 60 SOA ns h 1 2 3 4 5\n@ 60 NS ns.example.net.\nw 60 ${type} ${text}\n`;
}

/** One sample of each type: its text in a zone file, by the type. */
const SAMPLES = new Map(
  readFileSync(new URL('../../../tests/records.txt', import.meta.url), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith(';'))
    .map((line) => [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)]),
);

test('each type that has fields has a sample', () => {
  const types = [...tables.fieldsOf.keys()].map(tables.typeWord);
  assert.deepEqual([...SAMPLES.keys()].sort(), types.sort());
});

test('each type is read with its fields, which are the same record when they are given', async (t) => {
  const texts = [...SAMPLES].filter(([type]) => isText(type));
  const app = await started(t, {}, (app) => {
    for (const [type, text] of texts) {
      app.zone(`${type.toLowerCase()}.zone`, { text: zoneWith(type, text) });
    }
    for (const [type, text] of SAMPLES) {
      app.handle(`text.${type}.example`, (req, res) => res.answer({ type, data: text }));
      app.handle(`typed.${type}.example`, async (req, res) => {
        const data = structuredClone((await sample(type)).data);
        res.answer({ type, data });
      });
    }
  });
  const sample = async (type) => {
    const name = isText(type) ? `w.${type}.zone` : `text.${type}.example`;
    return (await app.query({ name, type })).answers[0];
  };
  for (const type of SAMPLES.keys()) {
    const first = await sample(type);
    const [again] = (await app.query({ name: `typed.${type}.example`, type })).answers;
    const [expected, given] = [first, again].map(message.wireOf);
    assert.ok(given.length > 0, type);
    assert.equal(given.toString('hex'), expected.toString('hex'), type);
    const fields = tables.fieldsOf.get(tables.typeNumber(type)).map(([name]) => name);
    if (fields.length > 1) assert.deepEqual(Object.keys(first.data).sort(), fields.sort(), type);
  }
});

test('the types of TypeScript are those of the core', () => {
  const written = readFileSync(new URL('../records.d.ts', import.meta.url), 'utf8');
  assert.equal(written, recordTypes(), 'npm run types writes them anew');
});

test('typed records are what their text says, and read back as such', async (t) => {
  const app = await started(t, {}, (app) => {
    RECORDS.forEach(([type, data, text], place) => {
      if (isText(type)) app.zone(`${place}.zone`, { text: zoneWith(type, text) });
      app.handle(`typed.${place}.example`, (req, res) =>
        res.answer({ name: 'o.example', type, data }),
      );
      app.handle(`text.${place}.example`, (req, res) =>
        res.answer({ name: 'o.example', type, data: text }),
      );
    });
  });
  const wire = async (name, type) => (await app.query({ name, type })).answers[0];
  for (const [place, [type, data, text]] of RECORDS.entries()) {
    const [typed, written] = isText(type)
      ? [await wire(`typed.${place}.example`), await wire(`w.${place}.zone`, type)]
      : [await wire(`typed.${place}.example`), await wire(`text.${place}.example`)];
    assert.deepEqual(typed.data, written.data, `${type} ${text}`);
    assert.deepEqual(message.wireOf(typed), message.wireOf(written), `${type} ${text}`);
    assert.ok(data !== undefined);
  }
});

test('data that are read can be given again', async (t) => {
  const app = await started(t, {}, (app) => {
    RECORDS.forEach(([type, data], place) => {
      app.handle(`${place}.example`, (req, res) => res.answer({ type, data }));
      app.handle(`again.${place}.example`, async (req, res) => {
        const { answers } = await app.query({ name: `${place}.example` });
        res.answer(...answers.map(({ type, data, ttl }) => ({ type, data, ttl })));
      });
    });
  });
  for (const [place, [type]] of RECORDS.entries()) {
    const [first] = (await app.query({ name: `${place}.example` })).answers;
    const [again] = (await app.query({ name: `again.${place}.example` })).answers;
    if (type === 'TXT' && first.data.some((part) => part.includes('\ufffd'))) continue; // no text
    assert.deepEqual(again.data, first.data, String(type));
  }
});

test('texts are strings of at most 255 octets', async (t) => {
  const app = await started(t, {}, (app) => {
    app.handle('text.example', (req, res) => res.answer({ type: 'TXT', data: 'ü'.repeat(200) }));
  });
  const raw = await app.query(zonda.makeQuery({ name: 'text.example', type: 'TXT' }));
  const { data } = decodeMessage(raw).answers[0];
  assert.equal(data.length, 2);
});

test('each type is read with the data that the types of TypeScript say', async (t) => {
  const source = readFileSync(new URL('../records.d.ts', import.meta.url), 'utf8');
  const [, declared] = /interface ReadData \{\n([^]*?)\n\}/.exec(source);
  const kindOf = (it) => (Array.isArray(it) ? 'readonly string[]' : typeof it);
  const app = await started(t, {}, (app) => {
    for (const [type, text] of SAMPLES) {
      const data = isText(type) ? ['one', 'two'] : text;
      app.handle(`${type}.example`, (req, res) => res.answer({ type, data }));
    }
  });
  for (const type of SAMPLES.keys()) {
    const [{ data }] = (await app.query(`${type}.example`, type)).answers;
    const isObject = typeof data === 'object' && !Array.isArray(data);
    const fields = Object.entries(data).map(([name, it]) => `    readonly ${name}: ${kindOf(it)};`);
    const text = isObject ? ['{', ...fields.sort(), '  }'].join('\n') : kindOf(data);
    const key = /^\w+$/.test(type) ? type : `'${type}'`;
    const lines = new RegExp(`^  ${key}: (\\{\n[^}]*\\}|[^;]*);`, 'm').exec(declared)[1];
    const sorted = lines.split('\n');
    const inner = sorted.slice(1, -1).sort();
    const expected = isObject ? ['{', ...inner, '  }'].join('\n') : lines;
    assert.equal(text, expected, type);
  }
});

test('what is no record is told, with its place and its data', async (t) => {
  const errors = [];
  const cases = [
    [{ type: 'A', data: '192.0.2' }, /answers\[0\]: A record: .*; its data are '192\.0\.2'/],
    [{ type: 'A', data: Buffer.from([1, 2, 3]) }, /A record: /],
    [{ type: 'AAAA', data: '192.0.2.1' }, /AAAA record: /],
    [{ type: 'A' }, /data is missing/],
    [
      { type: 'A', data: 7 },
      /answers\[0\]: A record: data must be text or octets, not 7; its data are 7/,
    ],
    [{ type: 'ANY', data: Buffer.alloc(0) }, /a record cannot have the type ANY/],
    [{ name: 'a..b', type: 'A', data: '192.0.2.1' }, /owner a\.\.b/],
    [
      { type: 'TYPE65280', data: { a: 1 } },
      /TYPE65280 record: data must be text or octets, not { a: 1 }/,
    ],
    [{ type: 'MX', data: { preference: 70_000, exchange: 'a' } }, /MX record: .*'70000 a'/],
    [{ type: 'A', ttl: Number.NaN, data: '192.0.2.1' }, /NaN/],
  ];
  const app = await started(t, { onError: (error) => errors.push(error.message) }, (app) => {
    cases.forEach(([record], place) =>
      app.handle(`${place}.example`, (req, res) => res.answer(record)),
    );
  });
  for (const [place, [, expected]] of cases.entries()) {
    assert.equal(
      (await app.query({ name: `${place}.example` })).rcode,
      'SERVFAIL',
      String(expected),
    );
    assert.match(errors.pop() ?? 'no error', expected);
  }
});

test('a field that no record has is an error, of records that are returned, added, pushed and written', async (t) => {
  const errors = [];
  const record = { type: 'A', data: '192.0.2.1', tll: 5 };
  const others = [
    { owner: 'y.example', type: 'A', data: '192.0.2.1' },
    Object.assign(Object.create(null), record),
  ];
  const app = await started(t, { onError: (error) => errors.push(error) }, (app) => {
    app.handle('returned.example', () => record);
    app.handle('added.example', (req, res) => res.answer(record));
    app.handle('pushed.example', (req, res) => void res.answers.push(record));
    app.handle('owner.example', () => others[0]);
    app.handle('bare.example', () => others[1]);
    app.handle('read.example', (req, res) => void res.answer(record).answers);
    app.handle('soa.example', (req, res) => res.nxdomain({ soa: { owner: 'example', data: '. . 1 2 3 4 5' } }));
  });
  const known = 'the fields of a record are name, type, ttl, class, data';
  const expect = { owner: `A record: there is no field owner; ${known}` };
  expect.soa = `SOA record: there is no field owner; ${known}`;
  for (const word of ['returned', 'added', 'pushed', 'owner', 'bare', 'read', 'soa']) {
    assert.equal((await app.query(`${word}.example`)).rcode, 'SERVFAIL', word);
    const { code, message } = errors.pop();
    assert.equal(code, 'ZONDA_RECORD');
    const text = expect[word] ?? `A record: there is no field tll; ${known}`;
    assert.ok(message.includes(`[0]: ${text}`), message);
  }
  assert.throws(() => recordText(record), { code: 'ZONDA_RECORD', message: /there is no field tll/ });
});

test('copies of records, and those of programs for dns-packet and of classes, have only known fields', async (t) => {
  class Row {
    id = 7;
    type = 'A';
    data = '192.0.2.1';
  }
  const app = await started(t, {}, (app) => {
    app.handle('read.example', async (req, res) => {
      const { answers, additionals } = await app.query('source.example');
      res.answer(answers.map((it) => ({ ...it })), { ...answers[0], data: '192.0.2.3' });
      res.additional(additionals);
    });
    app.handle('source.example', () => ({ type: 'A', data: '192.0.2.1', flush: false }));
    app.handle('row.example', () => new Row());
    app.handle('opt.example', (req, res) => {
      const opt = { name: '.', type: 'OPT', udpPayloadSize: 4096, flags: 0, options: [] };
      res.answer({ name: 'opt.example', type: 'A', ttl: 1, class: 'IN', flush: false, data: '192.0.2.1' });
      res.additional(opt);
    });
  });
  const data = async (name) => (await app.query(name)).answers.map((it) => it.data).join();
  assert.equal(await data('read.example'), '192.0.2.1,192.0.2.3');
  assert.equal(await data('row.example'), '192.0.2.1');
  assert.equal(await data('opt.example'), '192.0.2.1');
});

test('options of a reply are checked, and those of a line', async (t) => {
  const thrown = [];
  const calls = {
    ttls: [(res) => res.nxdomain({ ttls: 60 }), 'there is no option ttls; the options are ttl, soa'],
    data: [(res) => res.noData({ ttl: 1, data: '' }), 'there is no option data; the options are ttl, soa'],
    varry: [(res) => res.cache({ ttl: 1, varry: 'client' }), 'there is no option varry; the options are ttl, vary'],
    seconds: [(res) => res.nxdomain(60), 'nxdomain() needs options such as { ttl: 60 }, not 60'],
    nothing: [(res) => res.noData(null), 'noData() needs options such as { ttl: 60 }, not null'],
    cached: [(res) => res.cache(), 'cache() needs options such as { ttl: 60 }, not undefined'],
    number: [(res) => res.cache(60), 'cache() needs options such as { ttl: 60 }, not 60'],
    soa: [(res) => res.nxdomain({ soa: 'example' }), "nxdomain() needs as soa an object such as { name, data }, not 'example'"],
  };
  const app = await started(t, { onError: (error) => thrown.push(error) }, (app) => {
    for (const [word, [call]] of Object.entries(calls)) app.handle(`${word}.example`, (req, res) => call(res));
  });
  for (const [word, [, message]] of Object.entries(calls)) {
    assert.equal((await app.query(`${word}.example`)).rcode, 'SERVFAIL', word);
    assert.deepEqual(
      thrown.splice(0).map(({ code, name, message }) => [code, name, message]),
      [['ZONDA_RECORD', 'TypeError', message]],
    );
  }
  const wrong = { code: 'ZONDA_RECORD', message: /^there is no option orign; the options are origin, ttl$/ };
  assert.throws(() => parseRecord('www A 192.0.2.1', { orign: 'a.example' }), wrong);
});

test('octets that are no message are null', () => {
  assert.equal(decodeMessage(Buffer.from([1, 2, 3])), null);
});

test('a record of each type is a line of a zone file, and that is the same record', () => {
  for (const [type, text] of SAMPLES) {
    const line = `a\\.b.Example. 60 IN ${type} ${text}`;
    const read = parseRecord(line);
    assert.equal(recordText(read), line);
    const { name, ttl, type: word, data } = read;
    assert.deepEqual([name, ttl, word], ['a\\.b.Example.', 60, type]);
    assert.equal(recordText({ name, ttl, type, data: structuredClone(data) }), line, type);
    assert.deepEqual(parseRecord(recordText(read)), read);
  }
});

test('names in the data of each type are read with their final dot', () => {
  for (const [type, text] of SAMPLES) {
    const { data } = parseRecord(`a.example. 60 IN ${type} ${text}`);
    const fields = tables.fieldsOf.get(tables.typeNumber(type));
    for (const [field, kind] of fields) {
      if (kind !== 'name' && kind !== 'names') continue;
      const names = [fields.length === 1 ? data : data[field]].flat();
      for (const name of names) assert.match(name, /\.$/, `${type} ${field}`);
    }
  }
});

test('a name that is given may lack its final dot, and is the one asked for in any case', async (t) => {
  const read = [];
  const app = await started(t, {}, (app) => {
    app.handle('www.example', (req, res) => {
      for (const name of ['www.example', 'www.example.', 'WWW.Example', 'ww.test', 'a\\.', 'a\\\\.']) {
        res.answer({ name, type: 'A', data: '192.0.2.1' });
      }
      read.push(...res.answers.map(({ name }) => name));
    });
    app.handle('.', (req, res) => res.answer({ name: '.', type: 'A', data: '192.0.2.1' }));
  });
  const { answers } = await app.query('www.EXAMPLE');
  const others = ['ww.test.', 'a\\..', 'a\\\\.'];
  const asked = ['www.EXAMPLE.', 'www.EXAMPLE.', 'www.EXAMPLE.'];
  assert.deepEqual(answers.map(({ name }) => name), [...asked, ...others]);
  assert.deepEqual(read, ['www.example.', 'www.example.', 'WWW.Example.', ...others]);
  assert.equal((await app.query('.')).answers[0].name, '.');
});

test('lines have an origin and a time to live, and records without them have defaults', () => {
  const at = { origin: 'example.org', ttl: 60 };
  assert.equal(recordText(parseRecord('www MX 10 mx', at)), 'www.example.org. 60 IN MX 10 mx.example.org.');
  assert.equal(parseRecord('@ 1h TXT "a b" c', at).name, 'example.org.');
  assert.deepEqual(parseRecord('@ 1h TXT "a b" c', at).data, ['a b', 'c']);
  assert.equal(parseRecord('www A 192.0.2.1').ttl, 300);
  assert.equal(recordText({ type: 'A', data: '192.0.2.1' }), '@ 300 IN A 192.0.2.1');
  const wrong = { code: 'ZONDA_RECORD' };
  assert.throws(() => parseRecord('@ A 192.0.2.1'), { ...wrong, message: /needs an origin/ });
  assert.throws(() => parseRecord('a A 192.0.2'), wrong);
  assert.throws(() => parseRecord('a A 192.0.2.1\nb A 192.0.2.1'), { ...wrong, message: /several/ });
  assert.throws(() => parseRecord(''), { ...wrong, message: /no record/ });
  assert.throws(() => parseRecord('a A 192.0.2.1', { origin: 'a..b' }), { ...wrong, message: /origin/ });
  assert.throws(() => parseRecord('a A 192.0.2.1', { ttl: -1 }), RangeError);
  assert.throws(() => recordText({ type: 'A', data: 'no address' }), wrong);
  assert.throws(() => recordText('a A 192.0.2.1'), TypeError);
});
