'use strict';

// What functions of a program return in place of an array of records.

const { errorWith } = require('./errors.js');

/** Records of a reply at most: more do not fit into a message. */
const RECORDS_MAX = 65_535;

/** The elements of a collection, such as a set, as an array; `undefined` for another value. A generator
 * is none: what it gives depends on what was asked of it before, and it runs code of the program. */
function listOf(value) {
  if (value instanceof Uint8Array) return undefined; // octets are no records
  if (typeof value[Symbol.iterator] !== 'function') return undefined;
  const iterator = value[Symbol.iterator]();
  if (iterator === value) return undefined;
  const list = [];
  for (let next = iterator.next(); !next.done; next = iterator.next()) {
    if (list.length === RECORDS_MAX) {
      const why = `a function has returned more than ${RECORDS_MAX} records`;
      throw errorWith('ZONDA_RECORD', why, RangeError);
    }
    list.push(next.value);
  }
  return list;
}

module.exports = { listOf };
