'use strict';

// What `util.inspect`, and so `console.log`, shows of objects of this package.

const { inspect } = require('node:util');

/** What `util.inspect` shows of an object of a class that has such fields: as it shows an object
 * whose own properties they are. */
function shown(name, fields, depth, options) {
  if (depth !== null && depth < 0) return options.stylize(`[${name}]`, 'special');
  return `${name} ${inspect(fields, { ...options, depth })}`;
}

module.exports = { custom: inspect.custom, shown };
