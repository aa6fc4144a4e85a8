// Routers, middleware for some names, negative answers that resolvers cache, and events.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import zonda from '../index.js';
import { started, told, zoneFile } from './helpers.mjs';

const { App } = zonda;
const a = (data) => ({ type: 'A', data });

test('a router has the names below a suffix', async (t) => {
  const app = await started(t, { listen: [] });
  const passed = [];
  const eu = app.route('eu.example');
  eu.handle('www', () => a('192.0.2.1'))
    .handle('@/A', () => a('192.0.2.2'))
    .handle(':user.users/A', (req) => a(`192.0.2.${req.captures.user}`))
    .middleware((req, res, next) => {
      passed.push(req.name);
      return next();
    });
  const inner = eu.route('inner');
  inner.handle('*', () => a('192.0.2.4'));
  const ip = async (name) => (await app.query(name)).answers[0]?.data;
  assert.equal(await ip('www.eu.example'), '192.0.2.1');
  assert.equal(await ip('eu.example'), '192.0.2.2');
  assert.equal(await ip('3.users.eu.example'), '192.0.2.3');
  assert.equal(await ip('a.b.inner.eu.example'), '192.0.2.4');
  assert.equal((await app.query('www.us.example')).rcode, 'REFUSED');
  const below = ['www.eu.example.', 'eu.example.', '3.users.eu.example.', 'a.b.inner.eu.example.'];
  assert.deepEqual(passed, below);
  assert.equal(inner.removeHandler('*'), true);
  assert.equal(await ip('a.b.inner.eu.example'), undefined);
  assert.equal(passed.at(-1), 'a.b.inner.eu.example.', 'middleware is still passed');
  for (const suffix of ['a..b', '*.example', '*', '.', 'eu.example/A', undefined]) {
    assert.throws(() => app.route(suffix), { code: 'ZONDA_PATTERN' }, suffix);
  }
  assert.throws(() => eu.route('*'), /leave `\*\.` out of the suffix/);
});

test('a reply that a handler has the core keep passes middleware for a pattern each time', async (t) => {
  const passed = [];
  const app = await started(t, {}, (app) => {
    app.handle('*.example', (req, res) => res.cache({ ttl: 60 }).answer(a('192.0.2.1')));
    app.use('*.corp.example', (req, res, next) => {
      passed.push(req.name);
      return next();
    });
    app.handle('db.corp.example', (req, res) => res.cache({ ttl: 60 }).answer(a('192.0.2.2')));
  });
  for (let time = 1; time <= 3; time++) {
    assert.match(await told(app, 'db.corp.example'), /192\.0\.2\.2/);
    assert.equal(passed.length, time);
  }
});

test('middleware for a pattern hides no handler, zone or other server', async (t) => {
  const upstream = await started(t, {}, (app) => {
    app.handle('far.corp.test', () => a('192.0.2.99'));
  });
  const passed = [];
  const app = await started(t, { listen: [] }, (app) => {
    app.forward(upstream.addresses[0]);
    app.zone('zone.test', { text: '@ 60 SOA a a 1 2 3 4 5\n@ 60 NS a\na 60 A 192.0.2.3\n' });
    app.handle('*.example', () => a('192.0.2.1'));
    app.handle('*.near.example', () => a('192.0.2.2'));
    for (const pattern of ['*.eu.example', '*.near.example', '*.zone.test', 'far.corp.test']) {
      app.use(pattern, (req, res, next) => {
        passed.push(`${pattern} ${req.name} ${req.pattern}`);
        return next();
      });
    }
  });
  const told = async (name, type) => {
    const { rcode, answers } = await app.query(name, type);
    return [rcode, ...answers.map(({ data }) => data)].join(' ');
  };
  assert.equal(await told('www.eu.example'), 'NOERROR 192.0.2.1');
  assert.equal(await told('www.near.example'), 'NOERROR 192.0.2.2');
  assert.equal(await told('a.zone.test'), 'NOERROR 192.0.2.3');
  assert.equal(await told('b.zone.test'), 'NXDOMAIN');
  assert.equal(await told('far.corp.test'), 'NOERROR 192.0.2.99');
  assert.deepEqual(passed, [
    '*.eu.example www.eu.example. *.example',
    '*.near.example www.near.example. *.near.example',
    '*.zone.test a.zone.test. null',
    '*.zone.test b.zone.test. null',
    'far.corp.test far.corp.test. null',
  ]);
});

test('names that only middleware is for exist no more than without it', async (t) => {
  const app = await started(t, { listen: [] }, (app) => {
    app.use('*.corp.example', (req, res, next) => next());
    app.use('gone.corp.example', (req, res, next) => next());
  });
  for (const name of ['www.corp.example', 'corp.example', 'gone.corp.example', 'example']) {
    assert.equal((await app.query(name)).rcode, 'REFUSED', name);
  }
});

test('middleware for all names is passed first, and then that of the widest pattern', async (t) => {
  const order = [];
  const note = (word) => async (req, res, next) => {
    order.push(word);
    await next();
    order.push(`${word} after`);
  };
  const app = await started(t, { listen: [] }, (app) => {
    app.use('a.b.example', note('exact'));
    app.use('*.example', note('wide'), note('wide too'));
    app.use(note('all'));
    app.use('*.b.example', note('close'));
    app.use('*.b.example/TXT', note('TXT'));
    app.handle('*', () => a('192.0.2.1'));
  });
  assert.equal((await app.query('a.b.example')).answers[0].data, '192.0.2.1');
  const words = ['all', 'wide', 'wide too', 'close', 'exact'];
  assert.deepEqual(order, [...words, ...words.reverse().map((word) => `${word} after`)]);
  order.length = 0;
  app.use('*.b.example', note('late'));
  app.use('new.example', note('new'));
  await app.query('new.example');
  assert.deepEqual(order.slice(0, 4), ['all', 'wide', 'wide too', 'new']);
  order.length = 0;
  await app.query('c.b.example');
  assert.deepEqual(order.slice(0, 5), ['all', 'wide', 'wide too', 'close', 'late']);
});

test('a thousand functions of middleware are passed one behind the other', async (t) => {
  let passed = 0;
  const app = await started(t, { listen: [] }, (app) => {
    for (let count = 0; count < 5000; count++) {
      app.use('*.example', async (req, res, next) => {
        passed += 1;
        await next();
      });
    }
    for (let count = 0; count < 500; count++) app.route(`r${count}.test`).use(() => assert.fail());
    app.handle('*', () => a('192.0.2.1'));
  });
  assert.equal((await app.query('a.example')).answers[0].data, '192.0.2.1');
  assert.equal(passed, 5000);
  assert.equal((await app.query('r.test')).answers[0].data, '192.0.2.1');
});

test('a query that a handler leaves goes to that of the next wider pattern', async (t) => {
  const calls = [];
  const app = await started(t, { listen: [] }, (app) => {
    app.zone('zone.example', { text: '@ 60 SOA a a 1 2 3 4 5\n@ 60 NS a\na 60 A 192.0.2.3\n' });
    app.handle('*.example', (req, res) => {
      calls.push(`wide ${req.pattern}`);
      if (!req.name.endsWith('zone.example.')) res.answer(a('192.0.2.1'));
    });
    app.handle(':x.b.example', (req, res, next) => {
      calls.push(`captured ${req.captures.x}`);
      return res.passOn();
    });
    app.handle('a.b.example', async (req, res, next) => {
      calls.push('exact');
      await next();
      calls.push(`${req.pattern} saw ${res.answers[0].data}`);
    });
    app.handle('quiet.b.example', () => calls.push('quiet') && undefined);
    app.handle('waits.b.example', async (req, res) => {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }, () => assert.fail('next() was not called'));
    app.handle('a.zone.example', (req, res, next) => next());
    app.handle('throws.example', async (req, res, next) => {
      throw new Error('told to');
    });
    app.handle('throws.example/A', async (req, res, next) => {
      await assert.rejects(next(), { message: 'told to' });
      return a('192.0.2.5');
    });
  });
  const ip = async (name) => (await app.query(name)).answers[0]?.data;
  assert.equal(await ip('a.b.example'), '192.0.2.1');
  const order = ['exact', 'captured a', 'wide *.example', 'a.b.example saw 192.0.2.1'];
  assert.deepEqual(calls.splice(0), order);
  assert.equal(await ip('quiet.b.example'), '192.0.2.1');
  assert.deepEqual(calls.splice(0), ['quiet', 'captured quiet', 'wide *.example']);
  assert.equal(await ip('waits.b.example'), '192.0.2.1');
  assert.deepEqual(calls.splice(0), ['captured waits', 'wide *.example']);
  assert.equal(await ip('a.zone.example'), '192.0.2.3');
  assert.deepEqual(calls.splice(0), ['wide *.example']);
  assert.equal(await ip('throws.example'), '192.0.2.5');
  app.use(async (req, res, next) => {
    await next();
    calls.push('all');
  });
  assert.equal(await ip('quiet.b.example'), '192.0.2.1');
  assert.deepEqual(calls.splice(0), ['quiet', 'captured quiet', 'wide *.example', 'all']);
});

test('a reply that a handler has the core keep is not given instead of asking a closer one', async (t) => {
  let calls = 0;
  const app = await started(t, {}, (app) => {
    app.handle('*.example', (req, res) => res.cache({ ttl: 60 }).answer(a('192.0.2.1')));
    app.handle('a.example', () => {
      calls += 1;
    });
  });
  for (let time = 1; time <= 3; time++) {
    assert.match(await told(app, 'a.example'), /192\.0\.2\.1/);
    assert.equal(calls, time);
  }
});

test('a denial behind next() takes the place of the answer, but for aliases', async (t) => {
  const app = await started(t, { listen: [] }, (app) => {
    app.zone('zone.test', {
      text:
        '@ 60 SOA ns.zone.test. h.zone.test. 7 2 3 4 5\n@ 60 NS a\na 60 A 192.0.2.3\n' +
        'alias 60 CNAME a\n',
    });
    app.use('*.zone.test', async (req, res, next) => {
      await next();
      if (req.name === 'plain.zone.test.') res.nxdomain();
      else if (req.name === 'alias.zone.test.') res.noData({ ttl: 9 });
      else res.nxdomain({ ttl: 8 });
    });
    app.handle('many.test', (req, res) => {
      const soa = { type: 'SOA', ttl: 3, name: 'test', data: 'a.test. b.test. 1 2 3 4 5' };
      res.answer(a('192.0.2.1')).authority(soa).additional(a('192.0.2.2')).nxdomain();
    });
  });
  const records = ({ answers, authorities, additionals }) =>
    [answers, authorities, additionals].map((section) =>
      section.map(({ name, type, ttl }) => `${name} ${type} ${ttl}`),
    );
  const told = async (name, type) => {
    const reply = await app.query(name, type);
    return [reply.rcode, ...records(reply)];
  };
  assert.deepEqual(await told('a.zone.test'), ['NXDOMAIN', [], ['zone.test. SOA 8'], []]);
  assert.deepEqual(await told('b.zone.test'), ['NXDOMAIN', [], ['zone.test. SOA 8'], []]);
  assert.deepEqual(await told('plain.zone.test'), ['NXDOMAIN', [], ['zone.test. SOA 5'], []]);
  const alias = ['NOERROR', ['alias.zone.test. CNAME 60'], ['zone.test. SOA 9'], []];
  assert.deepEqual(await told('alias.zone.test'), alias);
  const asked = await told('alias.zone.test', 'CNAME');
  assert.deepEqual(asked, ['NOERROR', [], ['zone.test. SOA 9'], []]);
  assert.deepEqual(await told('many.test'), ['NXDOMAIN', [], ['test. SOA 3'], []]);
});

test('the SOA record of a negative answer is that of the zone that holds the name', async (t) => {
  const app = await started(t, { listen: [] }, (app) => {
    app.zone('zone.test', {
      text: '@ 60 SOA ns.zone.test. h.zone.test. 7 2 3 4 5\n@ 60 NS a\na 60 A 192.0.2.3\n',
    });
    app.forward('192.0.2.53');
    app.handle('*.users.zone.test', (req, res) => res.nxdomain({ ttl: 60 }));
    app.handle('zone.test/TXT', (req, res) => res.noData({ ttl: 61 }));
    app.handle('only.test', (req, res) => res.noData({ ttl: 62 }));
  });
  const soa = async (name, type) => {
    const { authorities } = await app.query(name, type);
    return authorities.map(({ name, ttl, data }) => [name, ttl, data.mname, data.serial, data.minimum]);
  };
  assert.deepEqual(await soa('a.users.zone.test'), [['zone.test.', 60, 'ns.zone.test.', 7, 60]]);
  assert.deepEqual(await soa('zone.test', 'TXT'), [['zone.test.', 61, 'ns.zone.test.', 7, 61]]);
  assert.deepEqual(await soa('only.test'), [['only.test.', 62, 'only.test.', 1, 62]]);
});

test('a name as long as names may be gets a negative answer that is cached', async (t) => {
  const app = await started(t, { listen: [] }, (app) => {
    app.handle('*', (req, res) => res.nxdomain({ ttl: 60 }));
  });
  const name = ['x', 'a'.repeat(63), 'b'.repeat(63), 'c'.repeat(63), 'd'.repeat(58)].join('.');
  const reply = await app.query(name);
  assert.equal(reply.rcode, 'NXDOMAIN');
  assert.equal(reply.authorities[0].type, 'SOA');
});

test('middleware for a pattern is passed by the names of that alone', async (t) => {
  const file = zoneFile(t);
  const passed = [];
  const app = await started(t, { listen: [] }, (app) => {
    app.zone('example.org', { file });
    app.handle('*.a.example', () => a('192.0.2.1'));
    app.handle('x.b.a.example', () => a('192.0.2.2'));
    app.use('*.b.a.example/A', async (req, res, next) => {
      passed.push(`${req.name} ${req.pattern}`);
      await next();
      for (const record of res.answers) record.ttl = 7;
    });
    app.middleware('www.example.org', (req, res, next) => {
      passed.push(req.name);
      return next();
    });
  });
  const ttl = async (name, type) => (await app.query(name, type)).answers[0]?.ttl;
  assert.equal(await ttl('y.a.example'), 300);
  assert.equal(await ttl('x.b.a.example'), 7);
  assert.equal((await app.query('www.example.org')).answers[0].data, '192.0.2.80');
  assert.equal((await app.query('ns.example.org')).answers[0].data, '192.0.2.53');
  assert.deepEqual(passed, ['x.b.a.example. x.b.a.example', 'www.example.org.']);
  app.handle('www.example.org', () => a('192.0.2.9'));
  assert.equal((await app.query('www.example.org')).answers[0].data, '192.0.2.9');
  assert.equal(app.removeHandler('www.example.org'), true);
  assert.equal(app.removeHandler('www.example.org'), false);
  assert.equal((await app.query('www.example.org')).answers[0].data, '192.0.2.80');
  assert.deepEqual(passed.slice(2), ['www.example.org.', 'www.example.org.']);
});

test('negative answers have the SOA record by which resolvers cache them', async (t) => {
  const app = await started(t, { listen: [] }, (app) => {
    app.handle('*.users.example', (req, res) => res.nxdomain({ ttl: 60 }));
    app.handle(':x.:y.deep.example', (req, res) => res.noData({ ttl: 5 }));
    app.handle('gone.exact.example', (req, res) => res.nxdomain({ ttl: 9 }));
    app.handle('*', (req, res) => res.nxdomain({ ttl: 1 }));
    app.handle('soa.example', (req, res) => {
      const data = 'ns.example. h.example. 1 2 3 4 30';
      return res.nxdomain({ soa: { name: 'example', ttl: 30, data } });
    });
    app.handle('plain.example', (req, res) => res.nxdomain());
  });
  const soa = async (name) => {
    const { rcode, authorities } = await app.query(name);
    return [rcode, ...authorities.map(({ name, ttl, data }) => [name, ttl, data.minimum])];
  };
  assert.deepEqual(await soa('a.b.users.example'), ['NXDOMAIN', ['users.example.', 60, 60]]);
  assert.deepEqual(await soa('a.b.deep.example'), ['NOERROR', ['deep.example.', 5, 5]]);
  assert.deepEqual(await soa('gone.exact.example'), ['NXDOMAIN', ['gone.exact.example.', 9, 9]]);
  assert.deepEqual(await soa('www.test'), ['NXDOMAIN', ['www.test.', 1, 1]]);
  assert.deepEqual(await soa('soa.example'), ['NXDOMAIN', ['example.', 30, 30]]);
  assert.deepEqual(await soa('plain.example'), ['NXDOMAIN']);
});

test('an app tells when it listens, when it has stopped, and what fails', async () => {
  const told = [];
  const app = new App({ listen: '127.0.0.1:0', workers: 1, log: 'off' });
  app.once('listening', ([address]) => told.push(`listening ${address.replace(/\d+$/, 'PORT')}`));
  app.on('error', (error, query) => told.push(`${query.name}: ${error.message}`));
  app.on('closed', (error) => told.push(`closed ${error}`));
  app.handle('a.example', () => {
    throw new Error('no database');
  });
  await app.start();
  assert.equal((await app.query('a.example')).rcode, 'SERVFAIL');
  await app.stop();
  await app.closed;
  const expected = ['listening 127.0.0.1:PORT', 'a.example.: no database', 'closed undefined'];
  assert.deepEqual(told, expected);
});

test('an app whose listener throws when it listens does not start', async () => {
  const app = new App({ listen: '127.0.0.1:0', workers: 1, log: 'off' });
  app.on('listening', () => {
    throw new Error('no port was written down');
  });
  await assert.rejects(app.start(), { message: 'no port was written down' });
  await app.closed;
  assert.throws(() => app.addresses, { code: 'ZONDA_STATE' });
  await assert.rejects(app.start(), { code: 'ZONDA_STATE' });
});

test('middleware for a pattern has what its own pattern captures, and handlers what theirs do', async (t) => {
  const seen = [];
  const note = (req) => seen.push(`${req.pattern} ${JSON.stringify(req.captures)}`);
  const app = await started(t, {}, (app) => {
    app.use(async (req, res, next) => {
      await next();
      note(req);
    });
    app.use('*.:tenant.example', async (req, res, next) => {
      note(req);
      await next();
      note(req);
    });
    app.use(':user.corp.test', (req, res, next) => {
      note(req);
      return next();
    });
    app.handle(':tenant.:site.example', async (req) => {
      note(req);
      await undefined;
      note(req);
      return a('192.0.2.1');
    });
  });
  await app.query('a.b.example');
  const [guard, handler] = ['{"tenant":"b"}', '{"tenant":"a","site":"b"}'].map(
    (labels) => `:tenant.:site.example ${labels}`,
  );
  assert.deepEqual(seen.splice(0), [guard, handler, handler, guard, handler]);
  await app.query('ann.corp.test');
  assert.deepEqual(seen, ['null {"user":"ann"}', 'null {}'], 'without a handler');
});

test('what a handler has put into a reply before it leaves the query is not the next one\'s', async (t) => {
  const app = await started(t, {}, (app) => {
    app.handle('a.example', (req, res) => {
      res.answer(a('192.0.2.1')).refused().extendedError('Blocked');
      res.cache({ ttl: 9 });
      return res.passOn();
    });
    app.handle('*.example', (req, res) => res.answer(a('192.0.2.2')));
  });
  for (const guarded of [false, true]) {
    if (guarded) app.use('*.example', (req, res, next) => next());
    const reply = await app.query('a.example');
    assert.equal(reply.rcode, 'NOERROR');
    assert.deepEqual(reply.answers.map((it) => it.data), ['192.0.2.2']);
  }
});
