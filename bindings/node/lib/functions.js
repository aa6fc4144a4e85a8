'use strict';

// Functions that methods of apps are given.

const { errorWith, wrongValue } = require('./errors.js');
const { eager } = require('./returned.js');

/** The functions that a method of an app was given, also in arrays; throws where one is none, or
 * where there are none. */
function checkedFunctions(method, given) {
  const functions = given.flat(Infinity);
  if (functions.length === 0) {
    throw errorWith('ZONDA_CONFIG', `${method} needs a function`, TypeError);
  }
  for (const it of functions) {
    if (typeof it !== 'function') throw wrongValue('ZONDA_CONFIG', `${method} needs a function`, it);
  }
  return functions.map(eager);
}

module.exports = { checkedFunctions };
