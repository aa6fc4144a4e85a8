'use strict';

// What functions of a program return in place of an array of records.

const { types } = require('node:util');

/** What a generator, a set or something else that is iterated over gives, as an array; `null` if it
 * gives nothing. A promise of either where it is waited for. `undefined` for a value that is not
 * iterated over. */
function listOf(value) {
  if (value instanceof Uint8Array) return undefined; // octets are no records
  if (typeof value[Symbol.iterator] === 'function') return orNothing(Array.from(value));
  return typeof value[Symbol.asyncIterator] === 'function' ? awaitedList(value) : undefined;
}

async function awaitedList(values) {
  const list = [];
  for await (const value of values) list.push(value);
  return orNothing(list);
}

/** An empty array is an answer without records; a generator that gives nothing is none. */
function orNothing(list) {
  return list.length === 0 ? null : list;
}

/** A function that runs to its end when it is called, in place of a generator function, which would
 * not have called `next()` before its records are asked for. */
function eager(function_) {
  if (!types.isGeneratorFunction(function_)) return function_; // also for `async function*`
  const whole = (...given) => listOf(function_(...given));
  return Object.defineProperty(whole, 'name', { value: function_.name }); // what an app shows
}

module.exports = { eager, listOf };
