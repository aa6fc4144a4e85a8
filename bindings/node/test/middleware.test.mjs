import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { ask, placeOf, query, sleep, started, told, udp, zoneFile } from './helpers.mjs';

test('middleware wraps handlers and zone data, and sees the real reply behind next()', async (t) => {
  const seen = [];
  const file = zoneFile(t);
  const app = await started(t, {}, (app) => {
    app.zone('example.org', { file });
    app.middleware(async (req, res, next) => {
      assert.equal(res.answered, false);
      await next();
      assert.equal(res.answered, true);
      const answers = res.answers.map(({ data }) => data);
      seen.push([req.name, res.rcode, res.authoritative, answers, res.authorities.length]);
    });
    app.handle('handled.example', (req, res) => res.answer({ type: 'A', data: '192.0.2.1' }));
  });
  assert.equal(await told(app, 'handled.example'), 'NOERROR handled.example. A 192.0.2.1');
  assert.equal(await told(app, 'www.example.org'), 'NOERROR www.example.org. A 192.0.2.80');
  assert.equal(await told(app, 'none.example.org'), 'NXDOMAIN');
  assert.equal(await told(app, 'elsewhere.example'), 'REFUSED');
  assert.deepEqual(seen, [
    ['handled.example.', 'NOERROR', true, ['192.0.2.1'], 0],
    ['www.example.org.', 'NOERROR', true, ['192.0.2.80'], 0],
    ['none.example.org.', 'NXDOMAIN', true, [], 1],
    ['elsewhere.example.', 'REFUSED', false, [], 0],
  ]);
});

test('records that middleware pushes into a reply that it has cleared are sent', async (t) => {
  const app = await started(t, {}, (app) => {
    app.middleware('a.example', async (req, res, next) => {
      await next();
      res.clear();
      res.answers.push({ name: req.name, type: 'A', ttl: 60, data: '192.0.2.9' });
    });
    app.handle('a.example', (req, res) => res.answer({ type: 'A', data: '192.0.2.1' }));
  });
  assert.equal(await told(app, 'a.example'), 'NOERROR a.example. A 192.0.2.9');
});

test('middleware changes replies of zones and handlers', async (t) => {
  const file = zoneFile(t);
  const app = await started(t, {}, (app) => {
    app.zone('example.org', { file });
    app.middleware(async (req, res, next) => {
      await next();
      if (req.name === 'ns.example.org.') res.answers[0].ttl = 7;
      else if (res.rcode === 'NXDOMAIN') res.extendedError('Filtered', 'not here');
      else res.additional({ type: 'TXT', data: 'seen' });
    });
    app.handle('handled.example', (req, res) => res.answer({ type: 'A', data: '192.0.2.1' }));
  });
  for (const name of ['handled.example', 'www.example.org']) {
    const reply = await ask(app, name);
    assert.equal(reply.answers.length, 1);
    assert.deepEqual(reply.additionals[0].data, ['seen']);
  }
  const texts = await told(app, 'www.example.org', 'TXT');
  assert.equal(texts, 'NOERROR www.example.org. TXT ["zone"]', 'strings are as they came');
  const { answers } = await ask(app, 'ns.example.org');
  assert.deepEqual([answers[0].ttl, answers[0].data], [7, '192.0.2.53']);
  const reply = await ask(app, 'none.example.org');
  assert.deepEqual([reply.rcode, reply.error], ['NXDOMAIN', { code: 17, text: 'not here' }]);
  assert.equal(reply.authorities[0].type, 'SOA');
  assert.equal(reply.authorities[0].data.serial, 1);
});

test('middleware that decides nothing fails, and opens nothing', async (t) => {
  const told_ = [];
  const file = zoneFile(t);
  const app = await started(t, { onError: (error) => told_.push(error.message) }, (app) => {
    app.zone('example.org', { file });
    app.handle('*.example', () => ({ type: 'A', data: '192.0.2.1' }));
    app.middleware('www.example.org', function allowed(req, res, next) {
      if (req.clientAddress === '192.0.2.7') return next();
    });
    app.middleware('late.example', async () => {});
    app.middleware('passed.example', (req, res) => res.passOn());
    for (const [name, guard] of [
      ['thrown.example', () => assert.fail('not allowed')],
      ['undecided.example', () => {}],
      ['told.example', (req, res, next) => void next(new Error('not allowed'))],
    ]) {
      app.middleware(name, (req, res, next) => void next());
      app.middleware(name, guard);
    }
    app.handle('one.example', (req, res, next) => void next(new Error('not allowed')));
    app.middleware('caught.example', async (req, res, next) => {
      await next().catch(() => {});
    });
    app.middleware('caught.example', () => {
      throw new Error('not allowed');
    });
  });
  assert.equal(await told(app, 'www.example.org'), 'SERVFAIL');
  assert.match(told_.pop(), /^middleware allowed: it ended without an answer, and without next\(\)/);
  const { rcode } = await app.query({ name: 'www.example.org' }, { client: '192.0.2.7:53' });
  assert.equal(rcode, 'NOERROR');
  assert.equal(await told(app, 'late.example'), 'SERVFAIL');
  assert.match(told_.pop(), /^middleware \(anonymous\): it ended/);
  for (const name of ['thrown', 'undecided', 'told', 'one']) {
    assert.equal(await told(app, `${name}.example`), 'SERVFAIL', name);
    assert.match(told_.pop(), /not allowed|ended without an answer/);
  }
  assert.equal(await told(app, 'caught.example'), 'SERVFAIL');
  assert.equal(told_.pop(), 'not allowed');
  assert.equal(await told(app, 'passed.example'), 'SERVFAIL');
  assert.match(told_.pop(), /without next\(\)/);
  assert.deepEqual(told_, []);
});

test('middleware answers, drops, and tags', async (t) => {
  const app = await started(t, {}, (app) => {
    app.middleware((req, res, next) => {
      if (req.name === 'blocked.example.') return res.nxdomain();
      if (req.name === 'dropped.example.') return res.drop();
      req.state.tag = 'first';
      return next();
    });
    app.middleware(async (req, res, next) => {
      req.state.tag += ' second';
      await next();
    });
    app.handle('*.example', (req, res) => res.answer({ type: 'TXT', data: req.state.tag }));
  });
  assert.equal(await told(app, 'blocked.example'), 'NXDOMAIN');
  assert.equal(await udp(placeOf(app), query('dropped.example'), 200), null);
  assert.equal(await told(app, 'a.example', 'TXT'), 'NOERROR a.example. TXT ["first second"]');
});

test('middleware that does not wait for next() has no less to say', async (t) => {
  const errors = [];
  const app = await started(t, { onError: (error) => errors.push(error.message) }, (app) => {
    app.middleware((req, res, next) => {
      next();
    });
    app.handle('slow.example', async (req, res) => {
      await sleep(5);
      res.answer({ type: 'A', data: '192.0.2.1' });
    });
    app.handle('fails.example', async () => {
      await sleep(5);
      throw new Error('a mistake');
    });
    app.handle('throws.example', () => {
      throw new Error('a quick mistake');
    });
  });
  assert.equal(await told(app, 'slow.example'), 'NOERROR slow.example. A 192.0.2.1');
  assert.equal(await told(app, 'fails.example'), 'SERVFAIL');
  assert.equal(await told(app, 'throws.example'), 'SERVFAIL');
  assert.deepEqual(errors, ['a mistake', 'a quick mistake']);
});

test('middleware may catch what a handler throws', async (t) => {
  const app = await started(t, {}, (app) => {
    app.middleware(async (req, res, next) => {
      try {
        await next();
      } catch (error) {
        res.answer({ type: 'TXT', data: error.message });
      }
    });
    app.handle('throws.example', () => {
      throw new Error('caught');
    });
  });
  assert.equal(await told(app, 'throws.example', 'TXT'), 'NOERROR throws.example. TXT ["caught"]');
});

test('several handlers of a route are called one by next() of the other, and the zone behind them', async (t) => {
  const file = zoneFile(t);
  const order = [];
  const app = await started(t, {}, (app) => {
    app.zone('example.org', { file });
    const first = async (req, res, next) => {
      order.push('first');
      await next();
      order.push(res.answers[0].data);
    };
    const second = (req, res, next) => {
      order.push('second');
      return next();
    };
    app.handle('www.example.org', first, second);
  });
  assert.equal(await told(app, 'www.example.org'), 'NOERROR www.example.org. A 192.0.2.80');
  assert.deepEqual(order, ['first', 'second', '192.0.2.80']);
});

test('next() is called once', async (t) => {
  const errors = [];
  const app = await started(t, { onError: (error) => errors.push(error.message) }, (app) => {
    app.middleware(async (req, res, next) => {
      await next();
      await next();
    });
  });
  assert.equal(await told(app, 'a.example'), 'SERVFAIL');
  assert.deepEqual(errors, ['next() was called twice']);
});

test('the configuration file is extended by code', async (t) => {
  const zone = zoneFile(t);
  const config = join(dirname(zone), 'zonda.toml');
  writeFileSync(
    config,
    `version = 1\n[admin]\naddress = "off"\nsocket = "off"\n[[zone]]\nname = "example.org"\nfile = "${zone}"\n`,
  );
  const app = await started(t, { config }, (app) => {
    app.handle('code.example.org', (req, res) => res.answer({ type: 'A', data: '192.0.2.1' }));
  });
  assert.equal(await told(app, 'www.example.org'), 'NOERROR www.example.org. A 192.0.2.80');
  assert.equal(await told(app, 'code.example.org'), 'NOERROR code.example.org. A 192.0.2.1');
  const records = '@ 300 SOA ns hostmaster 2 2 3 4 5\n@ 300 NS ns\nns 300 A 192.0.2.54\n';
  writeFileSync(zone, records);
  await app.reload();
  assert.equal(await told(app, 'ns.example.org'), 'NOERROR ns.example.org. A 192.0.2.54');
});

test('a zone is given as text, and in the options', async (t) => {
  const file = zoneFile(t);
  const zones = {
    'example.org': file,
    'Example.net': { text: '@ 60 SOA ns h 1 2 3 4 5\n@ 60 NS ns\nns 60 A 192.0.2.54' },
  };
  const app = await started(t, { zones });
  assert.equal(await told(app, 'www.example.org'), 'NOERROR www.example.org. A 192.0.2.80');
  assert.equal(await told(app, 'ns.example.net'), 'NOERROR ns.example.net. A 192.0.2.54');
  assert.throws(() => app.zone('example.com', { file }), /comes before start/);
});

test('what zones and handlers do not have is forwarded, and middleware sees that too', async (t) => {
  const upstream = await started(t, {}, (app) => {
    app.handle('far.example', (req, res) => res.answer({ type: 'A', data: '192.0.2.99' }));
  });
  const seen = [];
  const app = await started(t, {}, (app) => {
    app.forward(upstream.addresses[0]);
    app.middleware(async (req, res, next) => {
      await next();
      seen.push(res.answers[0]?.data);
    });
    app.handle('near.example', (req, res) => res.answer({ type: 'A', data: '192.0.2.1' }));
  });
  assert.equal(await told(app, 'far.example'), 'NOERROR far.example. A 192.0.2.99');
  assert.equal(await told(app, 'near.example'), 'NOERROR near.example. A 192.0.2.1');
  assert.deepEqual(seen, ['192.0.2.99', '192.0.2.1']);
});
