import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { test } from 'node:test';
import zonda from '../index.js';
import {
  ask,
  placeOf,
  query,
  queryWithOptions,
  sleep,
  started,
  tcp,
  told,
  udp,
  zoneFile,
} from './helpers.mjs';

const { App, decodeMessage } = zonda;

test('an app that listens nowhere is asked without sockets', async (t) => {
  const app = await started(t, { listen: [] }, (app) => {
    app.handle('a.example', (req, res) => res.answer({ type: 'A', data: '192.0.2.1' }));
  });
  assert.deepEqual(app.addresses, []);
  const { answers } = await app.query({ name: 'a.example' });
  assert.equal(answers[0].data, '192.0.2.1');
});

test('a handler answers its names and leaves others to the zones', async (t) => {
  const file = zoneFile(t);
  const seen = [];
  const app = await started(t, {}, (app) => {
    app.zone('example.org', { file });
    app.handle('www.example.org/A', (req, res) => {
      seen.push(req.name);
      res.answer({ type: 'A', ttl: 60, data: '192.0.2.1' });
    });
    app.handle('example.com', (req, res) => res.answer({ type: 'TXT', data: 'Hello' }));
    app.handle('*.pass.example.com', () => {});
  });
  assert.equal(await told(app, 'www.example.org'), 'NOERROR www.example.org. A 192.0.2.1');
  assert.equal(await told(app, 'www.example.org', 'TXT'), 'NOERROR www.example.org. TXT ["zone"]');
  assert.equal(await told(app, 'ns.example.org'), 'NOERROR ns.example.org. A 192.0.2.53');
  assert.equal(await told(app, 'example.com', 'TXT'), 'NOERROR example.com. TXT ["Hello"]');
  assert.equal(await told(app, 'a.pass.example.com'), 'NOERROR', 'the name is of the app');
  assert.equal(await told(app, 'nowhere.example'), 'REFUSED');
  assert.deepEqual(seen, ['www.example.org.'], 'what no route has never reaches JavaScript');
});

test('a reply says what the handler says', async (t) => {
  const app = await started(t, {}, (app) => {
    app.handle('nx.example', (req, res) => res.nxdomain());
    app.handle('nodata.example', (req, res) => res.noData());
    app.handle('refused.example', (req, res) => res.refused());
    app.handle('yx.example', (req, res) => (res.rcode = 'YXDOMAIN')); // returns what it sets
    app.handle('fails.example', (req, res) => res.servfail('the database is away'));
    app.handle('blocked.example', (req, res) => res.extendedError('Blocked', 'on the list').nxdomain());
    app.handle('dropped.example', (req, res) => res.drop());
    app.handle('referral.example', (req, res) => {
      res.authoritative = false;
      res.authority({ type: 'NS', data: 'ns.referral.example' });
      res.additional({ name: 'ns.referral.example', type: 'A', ttl: 5, data: '192.0.2.2' });
    });
    app.handle('two.example', (req, res) => {
      res.answer([
        { type: 'A', data: '192.0.2.1' },
        { type: 'A', data: '192.0.2.2' },
      ]);
    });
  });
  const rcode = async (name) => (await ask(app, name)).rcode;
  assert.equal(await rcode('nx.example'), 'NXDOMAIN');
  assert.equal(await rcode('nodata.example'), 'NOERROR');
  assert.equal(await rcode('refused.example'), 'REFUSED');
  assert.equal(await rcode('yx.example'), 'YXDOMAIN');
  const fails = await ask(app, 'fails.example');
  assert.deepEqual(
    [fails.rcode, fails.aa, fails.error.text],
    ['SERVFAIL', false, 'the database is away'],
  );
  const blocked = await ask(app, 'blocked.example');
  assert.deepEqual([blocked.rcode, blocked.error], ['NXDOMAIN', { code: 15, text: 'on the list' }]);
  assert.equal(await udp(placeOf(app), query('dropped.example'), 200), null);
  const referral = await ask(app, 'referral.example');
  assert.equal(referral.aa, false);
  assert.equal(referral.authorities[0].data, 'ns.referral.example.');
  assert.deepEqual(
    { ...referral.additionals[0] },
    {
      name: 'ns.referral.example.',
      type: 'A',
      class: 'IN',
      ttl: 5,
      data: '192.0.2.2',
    },
  );
  const two = await ask(app, 'two.example');
  assert.equal(two.aa, true);
  assert.deepEqual(
    two.answers.map((record) => record.ttl),
    [300, 300],
  );
});

test('returned records are the answer, once, of handlers and middleware', async (t) => {
  const a = (data) => ({ type: 'A', data });
  const app = await started(t, {}, (app) => {
    app.handle('one.example', () => a('192.0.2.1'));
    app.handle('two.example', async () => [a('192.0.2.1'), a('192.0.2.2')]);
    app.handle('more.example', (req, res) => {
      res.answer(a('192.0.2.1'));
      return a('192.0.2.2');
    });
    app.handle('set.example', (req, res) => (res.answers = [a('192.0.2.1')]));
    app.handle('none.example', () => []);
    app.handle('chain.example', (req, res, next) => next(), () => a('192.0.2.1'));
    app.handle('other.example', () => new Map());
  });
  assert.equal(await told(app, 'one.example'), 'NOERROR one.example. A 192.0.2.1');
  const both = 'NOERROR NAME A 192.0.2.1 NAME A 192.0.2.2';
  assert.equal(await told(app, 'two.example'), both.replaceAll('NAME', 'two.example.'));
  assert.equal(await told(app, 'more.example'), both.replaceAll('NAME', 'more.example.'));
  assert.equal(await told(app, 'set.example'), 'NOERROR set.example. A 192.0.2.1');
  assert.equal((await app.query('none.example')).rcode, 'NOERROR');
  assert.equal(await told(app, 'chain.example'), 'NOERROR chain.example. A 192.0.2.1');
  assert.equal((await app.query('other.example')).answers.length, 0);
  app.middleware((req, res, next) => (req.name === 'mid.example.' ? a('192.0.2.9') : next()));
  assert.equal(await told(app, 'mid.example'), 'NOERROR mid.example. A 192.0.2.9');
  assert.equal(await told(app, 'one.example'), 'NOERROR one.example. A 192.0.2.1');
});

test('records of a handler are read as those of a message', async (t) => {
  const seen = [];
  const app = await started(t, {}, (app) => {
    app.middleware(async (req, res, next) => {
      await next();
      const { preference } = res.of('MX')[0].data;
      for (const { name, ttl, type, class: of, data } of res.answers) {
        seen.push({ name, ttl, type, of, data });
      }
      res.answers[0].ttl = preference; // so that the reply is made anew
      res.answers.push({ type: 'A', data: '192.0.2.1' });
    });
    app.handle('a.example', (req, res) => {
      res.answer({ type: 'mx', data: '10 mx.example.' });
      res.answer({ name: 'B.example.', type: 'TXT', ttl: 5, data: 'text' });
    });
  });
  const reply = await app.query('a.example', 'MX');
  assert.deepEqual(seen, [
    {
      name: 'a.example.',
      ttl: 300,
      type: 'MX',
      of: 'IN',
      data: { preference: 10, exchange: 'mx.example.' },
    },
    { name: 'B.example.', ttl: 5, type: 'TXT', of: 'IN', data: ['text'] },
  ]);
  assert.deepEqual(
    reply.answers.map(({ type, ttl }) => [type, ttl]),
    [
      ['MX', 10],
      ['TXT', 5],
      ['A', 300],
    ],
  );
  assert.deepEqual(reply.of('TXT')[0].data, ['text']);
  assert.deepEqual(reply.of('AAAA'), []);
});

test('an error is SERVFAIL, is told with its stack, and the next query is answered', async (t) => {
  const errors = [];
  const app = await started(
    t,
    { onError: (error, req) => errors.push([req.name, error]) },
    (app) => {
      app.handle('throws.example', function namedInTheStack() {
        throw new Error('a mistake');
      });
      app.handle('rejects.example', async () => {
        await sleep(1);
        throw new Error('a late mistake');
      });
      app.handle('wrong.example', (req, res) =>
        res.answer({ type: 'MX', data: 'mx without preference' }),
      );
      app.handle('lacks.example', (req, res) =>
        res.answer({ type: 'MX', data: { preference: 1 } }),
      );
      app.handle('type.example', (req, res) => res.answer({ type: 'NOSUCH', data: '1' }));
      app.handle('ttl.example', (req, res) =>
        res.answer({ type: 'A', ttl: -1, data: '192.0.2.1' }),
      );
      app.handle('good.example', (req, res) => res.answer({ type: 'A', data: '192.0.2.1' }));
    },
  );
  const bad = ['throws', 'rejects', 'wrong', 'lacks', 'type', 'ttl'].map(
    (label) => `${label}.example`,
  );
  for (const name of bad) {
    const reply = await ask(app, name);
    assert.deepEqual([reply.rcode, reply.answers.length], ['SERVFAIL', 0], name);
    assert.equal(await told(app, 'good.example'), 'NOERROR good.example. A 192.0.2.1');
  }
  assert.deepEqual(
    errors.map(([name]) => name),
    bad.map((name) => `${name}.`),
  );
  const said = Object.fromEntries(errors.map(([name, error]) => [name, error]));
  assert.match(said['throws.example.'].stack, /namedInTheStack/);
  assert.match(said['wrong.example.'].message, /MX record: /);
  assert.match(said['lacks.example.'].message, /exchange is missing/);
  assert.match(said['type.example.'].message, /NOSUCH/);
  assert.match(said['ttl.example.'].message, /-1/);
});

test('an error in what is told of errors does not end the process', async (t) => {
  const written = t.mock.method(console, 'error', () => {});
  const onError = () => {
    throw new Error('another mistake');
  };
  const app = await started(t, { onError }, (app) => {
    app.handle('throws.example', () => {
      throw new Error('a mistake');
    });
  });
  assert.equal(await told(app, 'throws.example'), 'SERVFAIL');
  const texts = written.mock.calls.map((call) => String(call.arguments[1]));
  assert.match(texts[0], /Error: a mistake/);
  assert.match(texts[1], /another mistake/);
});

test('a handler that never answers is cut off', async (t) => {
  let answerLate;
  const errors = [];
  const app = await started(t, { deadline: 150, onError: (error) => errors.push(error) }, (app) => {
    app.handle('never.example', () => new Promise(() => {}));
    app.handle('late.example', async (req, res) => {
      await new Promise((resolve) => (answerLate = resolve));
      res.answer({ type: 'A', data: '192.0.2.1' });
    });
    app.handle('after.example', (req, res) => {
      setTimeout(() => res.answer({ type: 'A', data: '192.0.2.1' }), 1);
    });
  });
  const start = performance.now();
  assert.equal(await told(app, 'never.example'), 'SERVFAIL');
  assert.equal(await told(app, 'late.example'), 'SERVFAIL');
  assert.ok(performance.now() - start < 2500);
  answerLate();
  await sleep(20);
  assert.equal(errors.length, 0, 'a late answer is nothing to be told');
  assert.equal(await told(app, 'after.example'), 'NOERROR');
  await sleep(20);
  assert.match(errors[0].message, /after it had been sent/);
});

test('more queries than may wait are SERVFAIL', async (t) => {
  const app = await started(t, { waitingMax: 2, deadline: 60_000 }, (app) => {
    app.handle('*.example', () => new Promise(() => {}));
  });
  const place = placeOf(app);
  assert.deepEqual(
    await Promise.all(['a', 'b'].map((label) => udp(place, query(`${label}.example`), 200))),
    [null, null],
  );
  assert.equal(await told(app, 'c.example'), 'SERVFAIL');
});

test('many queries at once are each answered with their own answer', async (t) => {
  const app = await started(t, {}, (app) => {
    app.handle(':number.sync.example', (req, res) => {
      res.answer({ type: 'TXT', data: req.captures.number });
    });
    app.handle(':number.async.example', async (req, res) => {
      await sleep(Number(req.captures.number) % 7);
      res.answer({ type: 'TXT', data: req.captures.number });
    });
  });
  for (const kind of ['sync', 'async']) {
    const messages = Array.from({ length: 700 }, (_, id) =>
      query(`${id}.${kind}.example`, 'TXT', { id }),
    );
    const replies = (await tcp(placeOf(app), messages)).map((reply) => decodeMessage(reply));
    assert.equal(replies.length, 700);
    for (const reply of replies) {
      assert.equal(reply.rcode, 'NOERROR');
      assert.deepEqual(reply.answers[0].data, [String(reply.id)]);
    }
  }
});

test('a request tells all that the query says', async (t) => {
  let seen;
  const app = await started(t, {}, (app) => {
    app.handle(':user.:group.example/TXT', (req, res) => {
      const { captures, client, clientSubnet, cookie, dnssecOk, id, name, originalName, transport, type } =
        req;
      const { checkingDisabled, options, recursionDesired, udpSize } = req;
      seen = { captures, client, clientSubnet, cookie, dnssecOk, id, name, originalName, transport, type };
      Object.assign(seen, { checkingDisabled, options, recursionDesired, udpSize });
      res.noData();
    });
  });
  const options = [
    { code: 8, data: Buffer.from([0, 1, 24, 0, 198, 51, 100]) },
    { code: 10, data: Buffer.from('0102030405060708', 'hex') },
  ];
  const reply = await udp(placeOf(app), queryWithOptions('Ann.Staff.EXAMPLE', 'TXT', options));
  assert.equal(decodeMessage(reply).questions[0].name, 'Ann.Staff.EXAMPLE.');
  assert.equal(seen.client.address, '127.0.0.1');
  assert.ok(seen.client.port > 0);
  delete seen.client;
  assert.deepEqual(seen, {
    cookie: { client: Buffer.from('0102030405060708', 'hex'), server: Buffer.alloc(0) },
    dnssecOk: false,
    id: 0x1234,
    name: 'ann.staff.example.',
    originalName: 'Ann.Staff.EXAMPLE.',
    captures: { user: 'ann', group: 'staff' },
    clientSubnet: { family: 4, address: '198.51.100.0', prefix: 24, scope: 0 },
    transport: 'udp',
    type: 'TXT',
    checkingDisabled: false,
    options,
    recursionDesired: true,
    udpSize: 1232,
  });
});

test('a query without EDNS has neither options nor a size, and one with CD says so', async (t) => {
  const app = await started(t, {}, (app) => {
    app.handle('a.example', (req, res) => {
      const data = JSON.stringify([req.checkingDisabled, req.udpSize, req.options]);
      return res.answer({ type: 'TXT', data });
    });
  });
  const message = query('a.example', 'TXT').subarray(0, -11);
  message.writeUInt16BE(0, 10); // without its OPT record
  message[3] |= 0x10;
  const { answers } = decodeMessage(await app.queryMessage(message));
  assert.deepEqual(JSON.parse(answers[0].data[0]), [true, null, []]);
});

test('a reply that is cleared sends nothing of what was put into it before', async (t) => {
  const app = await started(t, {}, (app) => {
    app.zone('example.org', { text: '@ 60 SOA ns h 1 2 3 4 5\n@ 60 NS ns\nns 60 A 192.0.2.53\n' });
    const put = (res) => res.answer({ type: 'A', data: '192.0.2.1' }).extendedError('Blocked');
    app.handle('ns.example.org', (req, res) => void put(res).clear());
    app.handle('a.example', (req, res) => put(res).clear().refused());
  });
  assert.equal(await told(app, 'ns.example.org'), 'NOERROR ns.example.org. A 192.0.2.53');
  const { answers, error, rcode } = await ask(app, 'a.example');
  assert.deepEqual([answers, error, rcode], [[], null, 'REFUSED']);
});

/** The octets of the reply to a query for TXT of a client in 198.51.N.0/24, and its scope. */
async function scopeOf(app, name, octet = 100) {
  const data = Buffer.from([0, 1, 24, 0, 198, octet, 100]);
  const octets = await app.queryMessage(queryWithOptions(name, 'TXT', [{ code: 8, data }]));
  const reply = decodeMessage(octets);
  const [option] = reply.edns.options.filter(({ code }) => code === 8);
  assert.deepEqual([...option.data.subarray(4)], [198, octet, 100]);
  assert.ok(reply.answers.length > 0);
  return option.data[3];
}

test('a reply has the scope that code says, or that of what it looked at', async (t) => {
  const calls = [];
  const app = await started(t, { listen: [] }, (app) => {
    app.handle('*.example', (req, res) => {
      calls.push(req.name);
      res.answer({ type: 'TXT', data: 'x' });
      if (req.name === 'looks.example.') assert.notEqual(req.clientSubnet, null);
      if (req.name === 'logs.example.') res.clientSubnetScope(0).rcode = req.clientAddress && 'NOERROR';
      if (req.name === 'says.example.') res.clientSubnetScope(8).cache({ ttl: 60 });
      if (req.name === 'finer.example.') res.clientSubnetScope(24).cache({ ttl: 60 });
      for (const bits of [-1, 129, 1.5, '16']) {
        assert.throws(() => res.clientSubnetScope(bits), RangeError);
      }
    });
  });
  assert.equal(await scopeOf(app, 'blind.example'), 0);
  assert.equal(await scopeOf(app, 'looks.example'), 24);
  assert.equal(await scopeOf(app, 'logs.example'), 0);
  calls.length = 0;
  for (const octet of [100, 101, 100]) {
    assert.equal(await scopeOf(app, 'says.example', octet), 8);
    assert.equal(await scopeOf(app, 'finer.example', octet), 24);
  }
  assert.deepEqual(calls, ['says.example.', 'finer.example.', 'finer.example.']);
});

test('an answer of the zone has the scope of what middleware looked at', async (t) => {
  const app = await started(t, { listen: [] }, (app) => {
    app.use(async (req, res, next) => {
      if (req.name === 'says.zone.') res.clientSubnetScope(20);
      if (req.name !== 'blind.zone.') assert.ok(req.clientAddress);
      await next();
      if (req.name === 'changed.zone.') res.additional({ type: 'TXT', data: 'x' });
    });
    app.zone('zone', { text: '@ 60 SOA a a 1 2 3 4 5\n@ NS a\n* TXT x\n' });
  });
  assert.equal(await scopeOf(app, 'blind.zone'), 0);
  assert.equal(await scopeOf(app, 'looks.zone'), 24);
  assert.equal(await scopeOf(app, 'changed.zone'), 24);
  assert.equal(await scopeOf(app, 'says.zone'), 20);
});

test('a network is read, and an option that holds none is a format error', async (t) => {
  const app = await started(t, { listen: [] }, (app) => {
    app.handle('a.example', (req, res) => {
      const { address, prefix } = req.clientSubnet ?? {};
      const data = req.clientSubnet === null ? 'none' : `${address}/${prefix}`;
      res.answer({ type: 'TXT', data }).cache({ ttl: 60, vary: 'subnet' });
    });
  });
  const long = [0, 2, 56, 0, 0x20, 1, 0xd, 0xb8, 0, 0, 1];
  for (const [data, expected] of [
    [[0, 1, 24, 0, 192, 0, 2], '192.0.2.0/24'],
    [[0, 1, 23, 0, 192, 0, 2], '192.0.2.0/23'],
    [[0, 1, 32, 0, 192, 0, 2, 1], '192.0.2.1/32'],
    [[0, 1, 0, 0], '0.0.0.0/0'],
    [[0, 2, 0, 0], '::/0'],
    [long, '2001:db8:0:100::/56'],
    [[], 'FORMERR'],
    [[0, 1, 24], 'FORMERR'],
    [[0, 0, 0, 0], 'none'],
    [[0, 7, 24, 0, 192, 0, 2], 'FORMERR'],
    [[0, 1, 33, 0, 192, 0, 2, 1, 1], 'FORMERR'],
    [[0, 1, 99, 0, 192, 0, 2, 1], 'FORMERR'],
    [[0, 2, 129, 0, ...new Array(17).fill(0)], 'FORMERR'],
    [[0, 1, 24, 0, 192, 0], 'FORMERR'],
    [[0, 1, 24, 0, 192, 0, 2, 0], 'FORMERR'],
    [[0, 1, 23, 0, 192, 0, 3], 'FORMERR'],
    [[0, 2, 57, 0, ...long.slice(4), 0x40], 'FORMERR'],
  ]) {
    const message = queryWithOptions('a.example', 'TXT', [{ code: 8, data: Buffer.from(data) }]);
    const { answers, rcode } = decodeMessage(await app.queryMessage(message));
    assert.equal(answers[0]?.data[0] ?? rcode, expected, String(data));
  }
});

test('addresses of clients are written as usual', async (t) => {
  const app = await started(t, {}, (app) => {
    app.handle('who.example', (req, res) => res.answer({ type: 'TXT', data: req.clientText }));
  });
  for (const client of [
    '192.0.2.7:53',
    '[2001:db8::1]:5353',
    '[::1]:1',
    '[2001:db8:0:1:0:0:0:1]:2',
    '[10:0:5::1]:3',
  ]) {
    const reply = await app.query({ name: 'who.example', type: 'TXT' }, { client });
    assert.deepEqual(reply.answers[0].data, [client.replace('0:0:0:1]', ':1]')]);
  }
});

test('unusual names reach handlers as in zone files', async (t) => {
  const app = await started(t, {}, (app) => {
    app.handle(':label.example', (req, res) =>
      res.answer({ type: 'TXT', data: [req.name, req.captures.label] }),
    );
    app.handle('.', (req, res) => res.answer({ type: 'TXT', data: req.name }));
  });
  const data = async (name) => (await app.query({ name, type: 'TXT' })).answers[0].data;
  assert.deepEqual(await data('a\\.b.example'), ['a\\.b.example.', 'a\\.b']);
  assert.deepEqual(await data('\\000\\255.example'), ['\\000\\255.example.', '\\000\\255']);
  assert.deepEqual(await data('.'), ['.']);
});

test('a long answer is cut over UDP and whole over TCP', async (t) => {
  const app = await started(t, {}, (app) => {
    app.handle('long.example', (req, res) => res.answer({ type: 'TXT', data: 'x'.repeat(3000) }));
    app.handle('endless.example', (req, res) => {
      for (let count = 0; count < 40; count++) res.answer({ type: 'TXT', data: 'x'.repeat(3000) });
    });
  });
  const cut = await ask(app, 'long.example', 'TXT');
  assert.deepEqual([cut.tc, cut.answers.length], [true, 0]);
  const [reply] = await tcp(placeOf(app), [query('long.example', 'TXT')]);
  const { data } = decodeMessage(reply).answers[0];
  assert.deepEqual(
    data.map((part) => part.length),
    [...Array(11).fill(255), 195],
  );
  t.mock.method(console, 'error', () => {});
  assert.equal(await told(app, 'endless.example', 'TXT'), 'SERVFAIL');
});

test('an answer that may be kept is given again without JavaScript, unless who asks was looked at', async (t) => {
  const calls = {};
  const app = await started(t, {}, (app) => {
    const handle = (name, options, look = () => 'all') => {
      app.handle(name, (req, res) => {
        calls[name] = (calls[name] ?? 0) + 1;
        res.answer({ type: 'TXT', ttl: 60, data: String(look(req)) }).cache(options);
      });
    };
    handle('kept.example', { ttl: 60 });
    handle('looks.example', { ttl: 60 }, (req) => req.client.address);
    handle('varies.example', { ttl: 60, vary: 'client' }, (req) => req.client.address);
    handle('both.example', { ttl: 60, vary: ['client', 'subnet'] }, (req) => req.client.address);
    app.handle('wrong.example', (req, res) => {
      assert.throws(() => res.cache({ ttl: 60, vary: 'moon' }), /'client' or 'subnet'/);
      assert.throws(() => res.cache({ ttl: 60, vary: ['client', 'moon'] }), /'client' or 'subnet'/);
      assert.throws(() => res.cache({ ttl: 1.5 }), /ttl/);
      res.noData();
    });
  });
  const ask = async (name, client) =>
    (await app.query({ name, type: 'TXT' }, { client })).answers[0].data[0];
  for (const client of ['192.0.2.1:1', '192.0.2.1:2', '192.0.2.2:1']) {
    assert.equal(await ask('kept.example', client), 'all');
    assert.equal(await ask('looks.example', client), client.split(':')[0]);
    assert.equal(await ask('varies.example', client), client.split(':')[0]);
    assert.equal(await ask('both.example', client), client.split(':')[0]);
  }
  const once = { 'kept.example': 1, 'looks.example': 3, 'varies.example': 2, 'both.example': 2 };
  assert.deepEqual(calls, once);
  assert.equal((await app.query({ name: 'wrong.example' })).rcode, 'NOERROR');
});

test('an answer for which anything was read that other queries have otherwise is not kept', async (t) => {
  const looks = ['originalName', 'transport', 'id', 'flags', 'recursionDesired', 'message'];
  const app = await started(t, {}, (app) => {
    for (const look of looks) {
      app.handle(`${look}.example`, (req, res) => {
        const data = String(look === 'message' ? req.message.readUInt16BE(0) : req[look]);
        res.answer({ type: 'TXT', data }).cache({ ttl: 60 });
      });
    }
  });
  for (const look of looks) {
    const other = query(look.toUpperCase() + '.example', 'TXT', { id: 7 });
    other[2] = 0; // no recursion is desired
    const reply = await udp(placeOf(app), query(`${look}.example`, 'TXT'));
    const [again] = await tcp(placeOf(app), [other]);
    const [first, second] = [reply, again].map((octets) => decodeMessage(octets).answers[0].data);
    assert.notDeepEqual(second, first, look);
  }
});

test('metrics count what handlers answer', async (t) => {
  const taken = net.createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const metrics = `127.0.0.1:${taken.address().port}`;
  taken.close();
  await once(taken, 'close');
  const app = await started(t, { metrics }, (app) => {
    app.handle('a.example', (req, res) => res.answer({ type: 'A', data: '192.0.2.1' }));
  });
  await told(app, 'a.example');
  await told(app, 'b.example');
  await sleep(50);
  const text = await (await fetch(`http://${metrics}/metrics`)).text();
  assert.match(text, /^zonda_queries_total\{reason="handled"\} 1$/m);
});

test('an address of metrics takes no orders, and is no public one without a token', async (t) => {
  const taken = net.createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const { port } = taken.address();
  taken.close();
  await once(taken, 'close');
  const open = new App({ listen: [], metrics: `0.0.0.0:${port}` });
  await assert.rejects(open.start(), /others can reach 0\.0\.0\.0/);
  const app = await started(t, { metrics: `127.0.0.1:${port}` }, (app) => {
    app.handle('a.example', (req, res) => res.answer({ type: 'A', data: '192.0.2.1' }));
  });
  for (const [method, path, status] of [
    ['GET', '/health', 200],
    ['GET', '/v1/status', 404],
    ['POST', '/v1/reload', 404],
    ['POST', '/v1/stop', 404],
  ]) {
    const reply = await fetch(`http://127.0.0.1:${port}${path}`, { method });
    assert.equal(reply.status, status, path);
  }
  assert.equal(await told(app, 'a.example'), 'NOERROR a.example. A 192.0.2.1');
});

test('handlers are replaced, added and removed while the app runs', async (t) => {
  const app = await started(t, {}, (app) => {
    app.handle('a.example', (req, res) => res.answer({ type: 'A', data: '192.0.2.1' }));
  });
  assert.equal(await told(app, 'a.example'), 'NOERROR a.example. A 192.0.2.1');
  app.handle('a.example', (req, res) => res.answer({ type: 'A', data: '192.0.2.2' }));
  app.handle('b.example', (req, res) => res.answer({ type: 'A', data: '192.0.2.3' }));
  assert.equal(await told(app, 'a.example'), 'NOERROR a.example. A 192.0.2.2');
  assert.equal(await told(app, 'b.example'), 'NOERROR b.example. A 192.0.2.3');
  assert.equal(app.removeHandler('a.example'), true);
  assert.equal(app.removeHandler('a.example'), false);
  assert.equal(await told(app, 'a.example'), 'REFUSED');
});

test('an app is asked without sockets, by its own handlers too', async (t) => {
  const app = await started(t, {}, (app) => {
    app.handle('inner.example', (req, res) => res.answer({ type: 'A', data: '192.0.2.1' }));
    app.handle('outer.example', async (req, res) => {
      const { answers } = await app.query({ name: 'inner.example' });
      res.answer(answers.map(({ data }) => ({ type: 'A', data })));
    });
    app.handle('dropped.example', (req, res) => res.drop());
  });
  assert.equal(await told(app, 'outer.example'), 'NOERROR outer.example. A 192.0.2.1');
  const asked = app.query({ name: 'dropped.example' });
  await assert.rejects(asked, { code: 'ZONDA_NO_REPLY', message: /dropped\.example A/ });
  const raw = await app.queryMessage(query('inner.example'));
  assert.equal(decodeMessage(raw).id, 0x1234);
  await assert.rejects(app.query({ name: 'a..example' }), /empty label/);
  await assert.rejects(app.query({ name: 'a.example' }, { client: 'nobody' }), /nobody/);
});

test('the client of a question is an address, with or without a port', async (t) => {
  const app = await started(t, { listen: [] }, (app) => {
    app.handle('a.example/TXT', ({ clientText }) => ({ type: 'TXT', data: clientText }));
  });
  const told = async (client) => (await app.query('a.example', 'TXT', { client })).answers[0].data[0];
  assert.equal(await told('192.0.2.7'), '192.0.2.7:0');
  assert.equal(await told('192.0.2.7:53'), '192.0.2.7:53');
  assert.equal(await told('2001:db8::1'), '[2001:db8::1]:0');
  assert.equal(await told('[2001:db8::1]:53'), '[2001:db8::1]:53');
  await assert.rejects(told('192.0.2.7:'), { code: 'ZONDA_QUERY', message: /an address such as .* or, with a port, / });
});

test('mistakes are told where they are made', async () => {
  const app = new App({ listen: '127.0.0.1:0', log: 'off' });
  assert.throws(() => app.handle('a.*.example', () => {}), /a\.\*\.example/);
  assert.throws(() => app.handle('a.example/NOSUCH', () => {}), /NOSUCH/);
  assert.throws(() => app.handle('a.example'), /needs a function/);
  assert.throws(
    () => app.handle('a.example', 'text'),
    /handle\('a\.example'\) needs a function, not 'text'/,
  );
  assert.throws(() => app.middleware({}), /middleware\(\) needs a function, not {}/);
  await assert.rejects(new App({ listen: 'nowhere', log: 'off' }).start(), /nowhere/);
  assert.throws(() => new App({ log: 'loud' }), /loud/);
  await assert.rejects(app.query({ name: 'a.example' }), /has not started/);
});

test('an app that cannot start says why, and can be started later', async (t) => {
  const first = await started(t, {});
  const second = new App({ listen: first.addresses[0], workers: 1, log: 'off' });
  await assert.rejects(second.start(), /cannot listen on/);
  await first.stop();
  await second.start();
  await second.stop();
});

test('udp:// and tcp:// leave the other out', async (t) => {
  const app = await started(t, { listen: ['udp://127.0.0.1:0', 'tcp://127.0.0.1:0'] }, (app) => {
    app.handle('a.example', (req, res) => res.answer({ type: 'TXT', data: req.transport }));
  });
  assert.equal(await told(app, 'a.example'), 'NOERROR a.example. TXT ["udp"]');
  await assert.rejects(tcp(placeOf(app), [query('a.example')]), /ECONNREFUSED/);
  const [address, port] = app.addresses[1].split(':');
  const [reply] = await tcp({ address, port: Number(port) }, [query('a.example')]);
  assert.deepEqual(decodeMessage(reply).answers[0].data, ['tcp']);
});

test('stopping waits for handlers that still answer', async (t) => {
  const app = await started(t, {}, (app) => {
    app.handle('slow.example', async (req, res) => {
      await sleep(300);
      res.answer({ type: 'A', data: '192.0.2.1' });
    });
  });
  const asked = told(app, 'slow.example');
  await sleep(100);
  await app.stop();
  assert.equal(await asked, 'NOERROR slow.example. A 192.0.2.1');
});

test('stopping waits for middleware that still passes on, and for what handlers ask the app', async (t) => {
  const file = zoneFile(t);
  const app = await started(t, {}, (app) => {
    app.zone('example.org', { file });
    app.middleware(async (req, res, next) => {
      await sleep(300);
      await next();
    });
    app.handle('own.example', async (req, res) => {
      const { answers } = await app.query({ name: 'ns.example.org' });
      res.answer({ type: 'A', data: answers[0].data });
    });
  });
  const asked = ['www.example.org', 'own.example'].map((name) => told(app, name));
  await sleep(100);
  const stopping = app.stop();
  await app.stop(); // the second time says nothing
  await stopping;
  assert.deepEqual(await Promise.all(asked), [
    'NOERROR www.example.org. A 192.0.2.80',
    'NOERROR own.example. A 192.0.2.53',
  ]);
  await assert.rejects(app.query({ name: 'www.example.org' }), /has stopped/);
});

test('errors have codes, and none has the words of another program', async (t) => {
  const taken = await started(t);
  const { port } = placeOf(taken);
  const make = (options) => new App({ log: 'off', ...options });
  const starts = (options) => make(options).start();
  const inUse = { code: 'EADDRINUSE', errno: -98, syscall: 'listen', address: '127.0.0.1', port };
  await assert.rejects(starts({ listen: `127.0.0.1:${port}` }), (error) => {
    assert.ok(error instanceof Error);
    const { code, errno, syscall, address, port } = error;
    assert.deepEqual({ code, errno, syscall, address, port }, inUse);
    assert.doesNotMatch(error.message, /--/);
    return true;
  });
  await assert.rejects(starts({ listen: '5300' }), {
    code: 'ZONDA_CONFIG',
    message: /^listen: (?!.*--)/,
  });
  await assert.rejects(starts({ listen: [], forward: 'nowhere at all' }), {
    code: 'ZONDA_CONFIG',
    message: /^forward: (?!.*--)/,
  });
  await assert.rejects(starts({ listen: [], zones: { 'example.org': 'no.zone' } }), {
    code: 'ZONDA_ZONE',
  });
  for (const options of [{ listen: 70_000 }, { deadline: 'soon' }, { log: 'loud' }, { lisen: [] }]) {
    assert.throws(() => make(options), { code: 'ZONDA_CONFIG', name: 'TypeError' });
  }
  assert.throws(() => taken.handle('a..b', () => {}), { code: 'ZONDA_PATTERN' });
  assert.throws(() => taken.handle(undefined, () => {}), { code: 'ZONDA_PATTERN' });
  assert.throws(() => taken.zone('example.org', { text: '' }), { code: 'ZONDA_STATE' });
  assert.throws(() => make().addresses, { code: 'ZONDA_STATE' });
  await assert.rejects(make().query('a.example'), { code: 'ZONDA_STATE' });
  await assert.rejects(taken.query('a..b'), { code: 'ZONDA_QUERY' });
  await assert.rejects(taken.query('a.b', { client: 'nowhere' }), { code: 'ZONDA_QUERY' });
  await assert.rejects(taken.setZoneText('example.org', 'wrong'), { code: 'ZONDA_ZONE' });
});

test('a wrong record is told with its place, its data, its code and the pattern', async (t) => {
  const told = [];
  const onError = (error, query) => told.push([error.code, error.message, query.pattern]);
  const app = await started(t, { onError }, (app) => {
    app.handle(':host.example/A', (req, res) => {
      const good = { type: 'A', data: '192.0.2.1' };
      res.answer(good, good).additional({ type: 'A', data: '999.1.1.1' });
    });
    app.handle('ttl.example/TXT', (req, res) => res.authority({ type: 'TXT', ttl: -1, data: 'a' }));
    app.handle('thrown.example', () => {
      throw new Error('of the program');
    });
  });
  assert.equal((await app.query('a.example')).rcode, 'SERVFAIL');
  assert.equal((await app.query('ttl.example', 'TXT')).rcode, 'SERVFAIL');
  assert.equal((await app.query('thrown.example')).rcode, 'SERVFAIL');
  const [[code, message, pattern], second, third] = told;
  assert.deepEqual([code, pattern], ['ZONDA_RECORD', ':host.example/A']);
  assert.match(
    message,
    /the reply to a\.example\. A \(handler of :host\.example\/A\): additionals\[0\]: .*'999\.1\.1\.1'/,
  );
  assert.deepEqual([second[0], second[2]], ['ZONDA_RECORD', 'ttl.example/TXT']);
  assert.match(
    second[1],
    /authorities\[0\]: TXT record: ttl must be a number of seconds from 0 to 2147483647, not -1/,
  );
  assert.deepEqual(third, [undefined, 'of the program', 'thrown.example']);
});

test('a handler among ten thousand is added in no time, and in force when the app is asked', async (t) => {
  const a = (data) => (req, res) => res.answer({ type: 'A', data });
  const app = await started(t, { listen: [] }, (app) => {
    for (let number = 0; number < 10_000; number++) {
      app.handle(`n${number}.example`, a('192.0.2.1'));
    }
  });
  const millis = [];
  for (let number = 0; number < 41; number++) {
    const start = performance.now();
    app.handle(`live${number}.example`, a('192.0.2.2'));
    await undefined; // the end of the turn
    await undefined;
    millis.push(performance.now() - start);
  }
  const median = millis.sort((a, b) => a - b)[20];
  t.diagnostic(`median ${(median * 1000).toFixed(0)} µs`);
  assert.ok(median < 2, `${median} ms: with all routes at each call, it is 100 ms`);
  assert.equal((await app.query('live0.example')).answers[0].data, '192.0.2.2');
  assert.equal((await app.query('live40.example')).answers[0].data, '192.0.2.2');
  assert.equal((await app.query('n9999.example')).answers[0].data, '192.0.2.1');
  app.handle('live1.example', a('192.0.2.3'));
  assert.equal(app.removeHandler('n9999.example'), true);
  assert.equal((await app.query('live1.example')).answers[0].data, '192.0.2.3');
  assert.equal((await app.query('n9999.example')).rcode, 'REFUSED');
  app.middleware((req, res) => res.nxdomain());
  assert.equal((await app.query('live1.example')).rcode, 'NXDOMAIN');
});

test('handlers that are added and removed in one turn are published together', async (t) => {
  const app = await started(t, {});
  app.handle('a.example', () => ({ type: 'A', data: '192.0.2.1' }));
  app.handle('a.example', () => ({ type: 'A', data: '192.0.2.2' }));
  app.handle('b.example', () => ({ type: 'A', data: '192.0.2.3' }));
  app.removeHandler('b.example');
  assert.equal(await told(app, 'a.example'), 'NOERROR a.example. A 192.0.2.2');
  assert.equal(await told(app, 'b.example'), 'REFUSED');
});

test('onError answers where code has failed, and what it leaves is SERVFAIL', async (t) => {
  const written = t.mock.method(console, 'error', () => {});
  const onError = (error, req, res) => {
    if (error.message === 'none') res.nxdomain();
    if (error.message === 'later') return sleep(5).then(() => res.answer({ type: 'A', data: '192.0.2.9' }));
    if (error.message === 'wrong') res.answer({ type: 'A', data: '192.0.2' });
    if (error.message === 'fails') return Promise.reject(new Error('another mistake'));
    if (error.message === 'returned') return { type: 'A', data: '192.0.2.8' };
    return 5; // means nothing
  };
  const app = await started(t, { onError }, (app) => {
    for (const word of ['none', 'later', 'returned', 'wrong', 'fails', 'left']) {
      app.handle(`${word}.example`, (req, res) => {
        res.answer({ type: 'A', data: '192.0.2.1' }); // is not sent
        throw new Error(word);
      });
    }
    app.handle('rejects.example', async () => {
      await sleep(1);
      throw new Error('none');
    });
    app.middleware('guarded.example', async () => {
      throw new Error('none');
    });
  });
  assert.equal(await told(app, 'none.example'), 'NXDOMAIN');
  assert.equal(await told(app, 'rejects.example'), 'NXDOMAIN');
  assert.equal(await told(app, 'guarded.example'), 'NXDOMAIN');
  assert.equal(await told(app, 'later.example'), 'NOERROR later.example. A 192.0.2.9');
  assert.equal(await told(app, 'returned.example'), 'NOERROR returned.example. A 192.0.2.8');
  for (const word of ['wrong', 'fails', 'left']) {
    assert.equal(await told(app, `${word}.example`), 'SERVFAIL', word);
  }
  const logged = written.mock.calls.map(({ arguments: [, error] }) => String(error));
  assert.ok(logged.some((line) => line.includes('another mistake')), logged.join('\n'));
});
