// What functions of a program return: records, however they are gathered, or nothing; all else is
// an error.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { started, told } from './helpers.mjs';

const a = (data) => ({ type: 'A', data });
const [one, two] = [a('192.0.2.1'), a('192.0.2.2')];

/** A record that a class of a program's makes. */
class Address {
  #address = '192.0.2.1';
  note = 'of the program';
  get type() {
    return 'A';
  }
  get data() {
    return this.#address;
  }
}

async function* both() {
  yield one;
  await undefined;
  yield two;
}

/** What functions return, each with the answer that it is. */
const RETURNED = {
  record: [() => one, [one]],
  array: [() => [one, [two]], [one, two]],
  set: [() => new Set([one, two]), [one, two]],
  values: [() => new Map([['a', one]]).values(), [one]],
  instance: [() => new Address(), [one]],
  bare: [() => Object.assign(Object.create(null), one), [one]],
  and: [() => true && one, [one]],
  *generator() {
    yield one;
    yield [two];
  },
  both,
  iterated: [() => both(), [one, two]],
  awaited: [async () => new Set([one]), [one]],
  later: [async () => ({ [Symbol.asyncIterator]: both }), [one, two]],
};
RETURNED.generator = [RETURNED.generator, [one, two]];
RETURNED.both = [RETURNED.both, [one, two]];

/** Fails, so that functions for errors are asked. */
function fails() {
  throw new Error('broken');
}

test('iterables of records are the answer, of handlers, middleware and functions for errors', async (t) => {
  const app = await started(t, {}, (app) => {
    for (const [word, [function_]] of Object.entries(RETURNED)) {
      app.handle(`${word}.handler.example`, function_);
      app.handle(`${word}.chain.example`, (req, res, next) => next(), function_);
      app.middleware(`${word}.middleware.example`, function_);
      app.handle(`${word}.error.example`, fails);
      app.route(`${word}.error.example`).onError(function_);
    }
  });
  for (const [word, [, expected]] of Object.entries(RETURNED)) {
    for (const place of ['handler', 'chain', 'middleware', 'error']) {
      const name = `${word}.${place}.example.`;
      const answer = expected.map(({ data }) => ` ${name} A ${data}`).join('');
      assert.equal(await told(app, name), `NOERROR${answer}`);
    }
  }
});

test('what is returned that says nothing leaves the reply as it is', async (t) => {
  const values = [undefined, null, false, true, 0, 7, 7n, Number.NaN, [], new Set()];
  const app = await started(t, {}, (app) => {
    values.forEach((value, place) => {
      app.handle(`${place}.example`, (req, res) => {
        res.answer(one);
        return value;
      });
      app.handle(`later.${place}.example`, async (req, res) => {
        res.answer(one);
        return value;
      });
    });
    app.handle('reply.example', async (req, res) => res.answer(one));
    app.handle('empty.example', function* () {}).handle('*', (req, res) => res.refused());
  });
  const names = values.flatMap((_, place) => [`${place}.example.`, `later.${place}.example.`]);
  for (const name of [...names, 'reply.example.']) {
    assert.equal(await told(app, name), `NOERROR ${name} A 192.0.2.1`);
  }
  assert.equal(await told(app, 'empty.example'), 'REFUSED');
});

/** What is no answer, and what the error of it says. */
const WRONG = [
  [{ typ: 'A', data: '192.0.2.1' }, /answers\[0\]: there is no field typ; the fields of a record are name, type, ttl, class, data/],
  [{ data: 'x' }, /answers\[0\]: a record must be an object such as .*, not { data: 'x' }/],
  ['192.0.2.1', /answers\[0\]: a record must be an object such as .*, not '192\.0\.2\.1'/],
  [new Set([one, '192.0.2.2']), /answers\[1\]: a record must be an object such as/],
  [new Date(0), /a record must be an object such as .*, not 1970/],
  [Buffer.of(1), /answers\[0\]: a record must be an object such as .*, not <Buffer 01>/],
  [() => one, /a record must be an object such as .*, not \[Function/],
  [Symbol('no'), /a record must be an object such as .*, not Symbol\(no\)/],
  [{ type: undefined, data: 'x' }, /a record must be an object such as/],
  ['NXDOMAIN', /a record must be an object such as .*, not 'NXDOMAIN'/],
];

test('what is returned that is no answer is an error, and is not lost', async (t) => {
  const errors = [];
  const onError = (error) => errors.push(error);
  const app = await started(t, { onError }, (app) => {
    WRONG.forEach(([value], place) => {
      app.handle(`${place}.handler.example`, () => value);
      app.handle(`${place}.promise.example`, async () => value);
      app.handle(`${place}.chain.example`, (req, res, next) => next(), () => value);
      app.middleware(`${place}.middleware.example`, () => value);
    });
  });
  for (const [place, [, expected]] of WRONG.entries()) {
    for (const kind of ['handler', 'promise', 'chain', 'middleware']) {
      assert.equal(await told(app, `${place}.${kind}.example`), 'SERVFAIL');
      assert.equal(errors.length, 1, `${place} ${kind}`);
      const { code, message, section } = errors.pop();
      assert.deepEqual([code, section], ['ZONDA_RECORD', 'answers'], message);
      assert.match(message, expected);
    }
  }
});

test('what a function for errors returns that is no answer is logged, and the next one is asked', async (t) => {
  const records = [];
  const logger = ({ level, error }) => level === 'error' && records.push(error.message);
  const app = await started(t, { log: 'error', logger }, (app) => {
    app.handle('*', fails);
    WRONG.forEach(([value], place) => {
      app.route(`${place}.example`).onError(() => value);
      app.route(`${place}.later.example`).onError(async () => value);
    });
    app.onError((error, req, res) => res.refused());
  });
  for (const [place, [, expected]] of WRONG.entries()) {
    for (const name of [`${place}.example`, `${place}.later.example`]) {
      assert.equal(await told(app, name), 'REFUSED');
      const [first, second, ...more] = records.splice(0);
      assert.deepEqual([first, more], ['broken', []]);
      assert.match(second, expected);
    }
  }
});

test('generators may go on, wait, and fail', async (t) => {
  const errors = [];
  const onError = (error) => errors.push(error.message);
  const app = await started(t, { onError }, (app) => {
    app.middleware('*.on.example', async function* (req, res, next) {
      await next();
      if (!res.answered) yield one;
    });
    app.handle('a.on.example', () => two);
    app.handle(
      'sync.example',
      function* (req, res, next) {
        next();
      },
      () => two,
    );
    app.handle('fails.example', async function* () {
      yield one;
      throw new Error('in the middle');
    });
    app.handle('errs.example', function* (req, res, next) {
      next(new Error('passed'));
    });
    app.handle('said.example', function* (req, res) {
      res.refused();
    });
    app.middleware(':user.captured.example', function* (req) {
      yield { type: 'TXT', data: req.captures.user };
    });
  });
  assert.equal(await told(app, 'a.on.example'), 'NOERROR a.on.example. A 192.0.2.2');
  assert.equal(await told(app, 'sync.example'), 'NOERROR sync.example. A 192.0.2.2');
  assert.equal(await told(app, 'said.example'), 'REFUSED');
  assert.equal(await told(app, 'ann.captured.example'), 'NOERROR ann.captured.example. TXT ["ann"]');
  assert.equal(await told(app, 'fails.example'), 'SERVFAIL');
  assert.equal(await told(app, 'errs.example'), 'SERVFAIL');
  assert.deepEqual(errors, ['in the middle', 'passed']);
});
