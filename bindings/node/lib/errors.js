'use strict';

// Errors with codes, by which programs tell them apart.

const { getSystemErrorMap } = require('node:util');

/** What each code of Zonda's own says of an error: these are documented. */
const CODES = new Set([
  'ZONDA_CONFIG', // options or the configuration file are wrong
  'ZONDA_NO_REPLY', // a query was dropped
  'ZONDA_PATTERN', // a pattern is wrong
  'ZONDA_QUERY', // a question, or the client of a query, is wrong
  'ZONDA_RECORD', // a record of a reply is wrong
  'ZONDA_SERVER', // the server had to stop, or a part of it cannot start
  'ZONDA_STATE', // the app does not run, or runs already
  'ZONDA_ZONE', // the data of a zone are wrong, or it cannot be loaded
]);

/** An error that programs know by its code. */
function errorWith(code, message, Class = Error) {
  const error = new Class(message);
  error.code = CODES.has(code) ? code : 'ZONDA_SERVER';
  return error;
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
    throw errorWith(code, error.message, error instanceof TypeError ? TypeError : Error);
  }
}

module.exports = { coreError, errorWith, withCode };
