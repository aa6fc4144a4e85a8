'use strict';

/** The native half, which `npm run build` puts here. */
module.exports = require('../zonda.node');
