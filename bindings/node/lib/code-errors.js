'use strict';

// What code of the program throws, as a log has it.

const { inspect } = require('node:util');

/** What has happened when code of the program has failed. */
const CODE_FAILED = 'code of the program has failed';

/** The record of an error of the program's code. */
function errorRecord(error, { name, type, pattern }) {
  const fields = { name, type, ...(pattern === null ? {} : { handler: pattern }), error: brief(error) };
  const parts = Object.entries(fields).map(([field, text]) => {
    return field === 'error' ? `${field}=${JSON.stringify(text)}` : `${field}=${text}`;
  });
  const message = [CODE_FAILED, ...parts].join(' ');
  return { level: 'error', event: CODE_FAILED, message, fields, time: new Date(), error };
}

/** What was thrown, without its stack; also what cannot be shown. */
function brief(thrown) {
  try {
    return thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : inspect(thrown);
  } catch {
    return 'it cannot be shown';
  }
}

/** Writes an error, with its stack, to standard error. */
function printError(error, request) {
  const handler = request.pattern === null ? '' : `, handler of ${request.pattern}`;
  console.error(`zonda: ${request.name} ${request.type}${handler}:`, error);
}

module.exports = { errorRecord, printError };
