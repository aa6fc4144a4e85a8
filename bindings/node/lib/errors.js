'use strict';

// Errors with codes, by which programs tell them apart.

const { getSystemErrorMap, inspect } = require('node:util');

/** What each code of Zonda's own says of an error: these are documented. */
const CODES = new Set([
  'ZONDA_CONFIG', // options, functions of the program, the URL of a store, or the configuration file are wrong
  'ZONDA_NO_REPLY', // a query was dropped
  'ZONDA_PATTERN', // a pattern is wrong
  'ZONDA_QUERY', // a question, or the client of a query, is wrong
  'ZONDA_RECORD', // a record, or something else of a reply, is wrong
  'ZONDA_SERVER', // the server had to stop, or a part of it cannot start
  'ZONDA_STATE', // the app does not run, or runs already; or a reply was sent before
  'ZONDA_STORE', // a store cannot be opened, read or written
  'ZONDA_ZONE', // the data of a zone are wrong, or it cannot be loaded
]);

/** An error that programs know by its code. */
function errorWith(code, message, Class = Error) {
  const error = new Class(message);
  error.code = CODES.has(code) ? code : 'ZONDA_SERVER';
  return error;
}

/** An error of a value: what it must be, and what was given. */
function wrongValue(code, wanted, value) {
  return errorWith(code, `${wanted}, not ${brief(value)}`, TypeError);
}

/** A value in one short line. */
function brief(value) {
  return inspect(value, { depth: 1, breakLength: Infinity, maxStringLength: 80 });
}

/** The place of a query in an error: its name and type, and the pattern of its handler. */
function placeOf({ name, type, pattern }) {
  return `the reply to ${name} ${type}${pattern === null ? '' : ` (handler of ${pattern})`}`;
}

/** An error of a record in the reply to a query: the section and the place of the record there, and
 * its data, are fields of the error, as is the pattern of the handler. */
function recordError(query, message, { section, index, value }, Class = Error) {
  const error = errorWith('ZONDA_RECORD', `${placeOf(query)}: ${message}`, Class);
  return Object.assign(error, { section, index, value, pattern: query.pattern });
}

/** An error of the core: of the system if it has its number, else by its code. */
function coreError({ code, message, errno, address, port }) {
  if (!errno) return errorWith(code, message);
  const error = new Error(message);
  const [name] = getSystemErrorMap().get(-errno) ?? ['ZONDA_SERVER'];
  const fields = { code: name, errno: -errno, syscall: 'listen', address, port };
  for (const [field, value] of Object.entries(fields)) {
    if (value !== undefined && value !== null) error[field] = value;
  }
  return error;
}

/** Calls a function of the core, whose errors get a code. */
function withCode(code, function_) {
  try {
    return function_();
  } catch (error) {
    const Class = [TypeError, RangeError].find((it) => error instanceof it) ?? Error;
    throw errorWith(code, error.message, Class);
  }
}

module.exports = {
  brief,
  coreError,
  errorWith,
  placeOf,
  recordError,
  withCode,
  wrongValue,
};
