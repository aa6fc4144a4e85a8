'use strict';

// Former names of methods and properties: they work as before for one version, and a process is
// warned of each once.

const { deprecate } = require('node:util');

/** Has former names of a class stand for its names of today. */
function addFormerNames(class_, names) {
  for (const [former, today] of Object.entries(names)) {
    const text = `${class_.name}.${former} is called ${today}`;
    const code = `ZONDA_${class_.name.toUpperCase()}_${former.toUpperCase()}`;
    const { value, get, set } = Object.getOwnPropertyDescriptor(class_.prototype, today);
    const warned = (function_) => function_ && deprecate(function_, text, code);
    const property =
      value === undefined
        ? { get: warned(get), set: warned(set) }
        : { value: warned(value), writable: true };
    Object.defineProperty(class_.prototype, former, { ...property, configurable: true });
  }
}

module.exports = { addFormerNames };
