'use strict';

// Queries of the program's own.

const { withCode, wrongValue } = require('./errors.js');
const native = require('./native.js');
const { YES_OR_NO, checkNames, checkOption } = require('./options.js');
const { typeNumber } = require('./tables.js');

/** What a question asks: an object of a program's, in which no other name may stand, or a query. */
function questionOf(question) {
  const { name, type, dnssecOk } = question;
  if (Object.getPrototypeOf(question) === Object.prototype) {
    checkNames('ZONDA_QUERY', question, ['name', 'type', 'dnssecOk']);
  }
  return { name, type, dnssecOk };
}

/** A query in wire form. */
function makeQuery(question) {
  const isName = typeof question === 'string';
  const { name, type = 'A', dnssecOk = false } = isName
    ? { name: question }
    : questionOf(Object(question));
  if (typeof name !== 'string') {
    const wanted = "a question must have a name, as in { name: 'www.example.org', type: 'A' }";
    throw wrongValue('ZONDA_QUERY', wanted, name);
  }
  checkOption('ZONDA_QUERY', 'dnssecOk', YES_OR_NO, dnssecOk);
  return withCode('ZONDA_QUERY', () => native.makeQuery(name, typeNumber(type), dnssecOk));
}

/** The options of a query of the program's own, which has those of some names; throws what is wrong
 * with them. */
function queryOptions(options = {}, names) {
  if (Object(options) !== options) {
    throw wrongValue('ZONDA_QUERY', 'the options of a query must be an object', options);
  }
  checkNames('ZONDA_QUERY', options, names);
  const { client, dnssecOk } = options;
  if (client !== undefined && client !== null && typeof client !== 'string') {
    const wanted = "client must be an address such as '192.0.2.7' or '192.0.2.7:53'";
    throw wrongValue('ZONDA_QUERY', wanted, client);
  }
  if (dnssecOk !== undefined) checkOption('ZONDA_QUERY', 'dnssecOk', YES_OR_NO, dnssecOk);
  return options;
}

/** Throws where something is not the octets of a message, which a function needs. */
function checkMessage(function_, octets) {
  if (octets instanceof Uint8Array) return;
  throw wrongValue('ZONDA_QUERY', `${function_} needs the octets of a message`, octets);
}

module.exports = { checkMessage, makeQuery, questionOf, queryOptions };
