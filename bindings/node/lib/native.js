'use strict';

/** The native half, which `npm run build` puts here. */
try {
  module.exports = require('../zonda.node');
} catch (cause) {
  const here = `${process.platform} on ${process.arch}, Node.js ${process.version}`;
  throw new Error(
    `the native half of zonda, zonda.node, cannot be loaded on ${here}: ${cause.message}. ` +
      'It is built for one system and processor: install the package that was built for this one, ' +
      'or build it with `npm run build`',
    { cause },
  );
}
