// What functions of a program return: records, however they are gathered, or nothing; all else is
// an error.

import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
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

/** What functions return, each with the answer that it is. */
const RETURNED = {
  record: [() => one, [one]],
  array: [() => [one, [two]], [one, two]],
  set: [() => new Set([one, two]), [one, two]],
  instance: [() => new Address(), [one]],
  bare: [() => Object.assign(Object.create(null), one), [one]],
  and: [() => true && one, [one]],
  empty: [() => new Set(), []],
  collection: [() => ({ *[Symbol.iterator]() { yield one; yield two; } }), [one, two]],
  awaited: [async () => new Set([one]), [one]],
};

/** Fails, so that functions for errors are asked. */
function fails() {
  throw new Error('broken');
}

test('collections of records are the answer, of handlers, middleware and functions for errors', async (t) => {
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
  const values = [undefined, null, false, true, 0, 7, 7n, Number.NaN, '', [], new Set(), new EventEmitter()];
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
  });
  const names = values.flatMap((_, place) => [`${place}.example.`, `later.${place}.example.`]);
  for (const name of [...names, 'reply.example.']) {
    assert.equal(await told(app, name), `NOERROR ${name} A 192.0.2.1`);
  }
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

/** A collection that does not end. */
const ENDLESS = {
  *[Symbol.iterator]() {
    for (;;) yield one;
  },
};

test('generators, and collections that do not end, are errors', async (t) => {
  const errors = [];
  const generator = function* () {
    yield one;
  };
  const app = await started(t, { onError: (error) => errors.push(`${error.code} ${error.message}`) }, (app) => {
    app.handle('iterator.example', () => generator());
    app.handle('later.example', async () => new Set([one]).values());
    app.handle('endless.example', () => ENDLESS);
    for (const method of ['handle', 'middleware']) {
      assert.throws(() => app[method]('a.example', generator), {
        code: 'ZONDA_CONFIG',
        message: /put those of a generator into an array, not \[GeneratorFunction/,
      });
    }
  });
  for (const name of ['iterator', 'later', 'endless']) {
    assert.equal(await told(app, `${name}.example`), 'SERVFAIL');
  }
  assert.match(errors[0], /^ZONDA_RECORD .*answers\[0\]: a record must be an object such as .*, not Object \[Generator\]/);
  assert.match(errors[1], /answers\[0\]: a record must be an object such as .*, not \[Set Iterator\]/);
  assert.match(errors[2], /^ZONDA_RECORD .* more than 65535 records/);
});
