'use strict';

const { fileURLToPath } = require('node:url');

/** A path, which may be a URL of a file. */
function pathOf(file) {
  return file instanceof URL ? fileURLToPath(file) : String(file);
}

module.exports = { pathOf };
