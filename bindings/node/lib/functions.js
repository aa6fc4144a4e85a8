'use strict';

// Functions that methods of apps are given.

const { types } = require('node:util');
const { errorWith, wrongValue } = require('./errors.js');

/** The functions that a method of an app was given, also in arrays; throws where one is none, or
 * where there are none. */
function checkedFunctions(method, given) {
  const functions = given.flat(Infinity);
  if (functions.length === 0) {
    throw errorWith('ZONDA_CONFIG', `${method} needs a function`, TypeError);
  }
  for (const it of functions) {
    if (typeof it !== 'function') throw wrongValue('ZONDA_CONFIG', `${method} needs a function`, it);
    if (types.isGeneratorFunction(it)) {
      const wanted = `${method} needs a function that returns records; put those of a generator into an array`;
      throw wrongValue('ZONDA_CONFIG', wanted, it);
    }
  }
  return functions;
}

module.exports = { checkedFunctions };
