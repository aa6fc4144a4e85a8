'use strict';

// The native half: beside the JavaScript where it was built here, or else from the package of this
// system, which npm installs with this one.

const { existsSync } = require('node:fs');
const { join } = require('node:path');
const { packageName } = require('./platform.js');

/** The native half of this system. */
function load() {
  const built = join(__dirname, '..', 'zonda.node');
  if (existsSync(built)) return require(built);
  const name = packageName();
  if (name === undefined) throw new Error('zonda runs on Linux only');
  return require(name);
}

try {
  module.exports = load();
} catch (cause) {
  const here = `${process.platform} on ${process.arch}, Node.js ${process.version}`;
  const name = packageName();
  const remedy =
    name === undefined
      ? ''
      : `. It is built for one system and processor: install ${name}, which npm leaves out with ` +
        '--omit=optional, or build it with `npm run build`';
  const message = `the native half of zonda cannot be loaded on ${here}: ${cause.message}${remedy}`;
  throw new Error(message, { cause });
}
