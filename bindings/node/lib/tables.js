'use strict';

// Numbers and words of the protocol, as the core knows them.

const { wrongValue } = require('./errors.js');
const native = require('./native.js');

const { types, rcodes, errors } = JSON.parse(native.tables());

/** Words by their numbers, and the other way round. */
function both(rows) {
  const words = new Map();
  const numbers = new Map();
  for (const [number, word] of rows) {
    words.set(number, word);
    numbers.set(word, number);
  }
  return { words, numbers };
}

const byType = both(types);
const byRcode = both(rcodes);
const byError = both(errors);

/** The fields of each type's data, by its number: pairs of name and kind. */
const fieldsOf = new Map(
  types.filter(([, , fields]) => fields).map(([n, , fields]) => [n, fields]),
);

/** A type's word, `TYPE` and its number if it has none. */
function typeWord(number) {
  return byType.words.get(number) ?? `TYPE${number}`;
}

/** A type's number. Throws if there is no such type. */
function typeNumber(type) {
  const known = byType.numbers.get(type);
  return known === undefined ? unusualType(type) : known;
}

/** The number of a type that is not written as usual: in lower case, by its number, or as DinoDNS
 * does. */
function unusualType(type) {
  if (Number.isInteger(type) && type >= 0 && type <= 0xffff) return type;
  const word = String(type).toUpperCase();
  const known = byType.numbers.get(word);
  if (known !== undefined) return known;
  const number = /^(?:TYPE|UNKNOWN_)(\d{1,5})$/.exec(word);
  if (number && Number(number[1]) <= 0xffff) return Number(number[1]);
  const wanted = 'a text such as "MX" or "TYPE65280", or a number up to 65535';
  throw wrongValue('ZONDA_RECORD', `the type of a record must be ${wanted}`, type);
}

/** A response code's word. */
function rcodeWord(number) {
  return byRcode.words.get(number) ?? `RCODE${number}`;
}

/** A response code's number. Throws if there is no such code. */
function rcodeNumber(rcode) {
  const known = byRcode.numbers.get(rcode);
  if (known !== undefined) return known;
  if (Number.isInteger(rcode) && rcode >= 0 && rcode <= 0xfff) return rcode;
  const number = /^RCODE(\d{1,4})$/.exec(String(rcode));
  if (number && Number(number[1]) <= 0xfff) return Number(number[1]);
  const wanted = 'a response code must be a text such as "NXDOMAIN", or a number up to 4095';
  throw wrongValue('ZONDA_RECORD', wanted, rcode);
}

/** An extended error's number, which may be given as its text, such as `Blocked`. */
function errorNumber(code) {
  if (Number.isInteger(code) && code >= 0 && code <= 0xffff) return code;
  const wanted = plain(code);
  for (const [word, number] of byError.numbers) {
    if (plain(word) === wanted) return number;
  }
  const must = 'an extended error must be a text such as "Blocked", or a number up to 65535';
  throw wrongValue('ZONDA_RECORD', must, code);
}

/** A text without what people write differently. */
function plain(text) {
  return String(text)
    .toLowerCase()
    .replace(/[^a-z0-9]/g, '');
}

/** The words of all types. */
const words = [...byType.numbers.keys()];
/** The words of all response codes, and of all extended errors. */
const rcodeWords = [...byRcode.numbers.keys()];
const errorWords = [...byError.numbers.keys()];

module.exports = {
  words,
  rcodeWords,
  errorWords,
  fieldsOf,
  typeWord,
  typeNumber,
  rcodeWord,
  rcodeNumber,
  errorNumber,
  plain,
};
