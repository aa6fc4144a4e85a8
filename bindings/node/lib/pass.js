'use strict';

// Functions that call one another by `next()`.

/** Functions that are called by `next()` of one another on one stack. */
const STACKED_MAX = 256;

/** Calls functions, each of which may call the next one; `last` is what is behind them. */
async function pass(functions, request, response, last) {
  const floating = new Set();
  const failures = [];
  const call = (place) => {
    if (place === functions.length) return response.answered ? undefined : last();
    let isCalled = false;
    let passed;
    const next = (error) => {
      if (isCalled) throw new Error('next() was called twice');
      isCalled = true;
      passed = error;
      if (!isNothing(error)) return Promise.resolve();
      const isDeep = place % STACKED_MAX === STACKED_MAX - 1;
      const behind = (async () => {
        if (isDeep) await undefined; // begins with an empty stack
        return call(place + 1);
      })();
      floating.add(behind);
      const settled = () => floating.delete(behind);
      behind.then(settled, (error) => {
        settled();
        failures.push(error);
      });
      return behind;
    };
    // `next(error)` is as if the function had thrown the error when it ends.
    const ended = (returned) => {
      if (!isNothing(passed)) throw asError(passed);
      response.addReturned(returned);
    };
    const result = functions[place](request, response, next);
    return typeof result?.then === 'function' ? result.then(ended) : ended(result);
  };
  await call(0);
  // What a function has begun with next(), but not waited for.
  while (floating.size > 0) await Promise.all(floating);
  // A failure that a function has caught, or has not waited for, without an answer instead.
  if (!response.answered && failures.length > 0) throw failures[0];
}

/** Whether `next()` was given no error. */
function isNothing(error) {
  return error === undefined || error === null;
}

/** What was given to `next()`, as an error. */
function asError(given) {
  return given instanceof Error ? given : new Error(String(given));
}

module.exports = { asError, isNothing, pass };
