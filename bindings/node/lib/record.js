'use strict';

// Records as programs give them: what each may have, and what is wrong with one.

const { checkFields } = require('./data.js');
const { brief, errorWith, wrongValue } = require('./errors.js');
const { wireOf } = require('./message.js');
const { typeNumber } = require('./tables.js');

/** The time to live of a record that says nothing else, seconds. */
const TTL = 300;
/** The longest time to live, seconds (rfc2181#8). */
const TTL_MAX = 0x7fffffff;
/** The number of the type that the core itself adds to replies. */
const OPT = 41;
/** The fields of a record. */
const FIELDS = ['name', 'type', 'ttl', 'class', 'data'];

/** Throws where something has no type of a record; most of what is no record has none. */
function checkType(record) {
  if (Object(record) !== record) throw notARecord(record);
  if (record.type === undefined) {
    checkNames(record); // `typ` is a better reason than a type that is missing
    throw notARecord(record);
  }
  typeNumber(record.type);
}

/** Throws what would be served otherwise than a record says. */
function check(record) {
  const { type, class: of = 'IN', data } = record;
  checkNames(record);
  if (of !== 'IN' && of !== 1) {
    throw wrongValue('ZONDA_RECORD', `${type} record: class must be 'IN'`, of);
  }
  if (wireOf(record) === null) checkFields(typeNumber(type), data);
}

/** Throws where a record has a field that no record has: a misspelt one would be left out. A loop
 * over names makes no array of them: each record of each reply comes here. */
function checkNames(record) {
  for (const name in record) {
    switch (name) {
      case 'type':
      case 'data':
      case 'ttl':
      case 'name':
      case 'class':
        continue;
      default:
        checkUnknown(record, name);
    }
  }
}

/** Throws where a name is no field of a record. Instances of classes may have fields of their own,
 * and records that dns-packet has read have `flush`, and those of OPT. */
function checkUnknown(record, name) {
  if (name === 'flush' || !Object.hasOwn(record, name)) return;
  const { type } = record;
  if (type !== undefined && typeNumber(type) === OPT) return; // it is not sent
  const prototype = Object.getPrototypeOf(record);
  if (prototype !== Object.prototype && prototype !== null) return;
  const place = type === undefined ? '' : `${type} record: `;
  const known = `the fields of a record are ${FIELDS.join(', ')}`;
  throw errorWith('ZONDA_RECORD', `${place}there is no field ${name}; ${known}`, TypeError);
}

/** The time to live of a record, if it is one. */
function secondsOf({ type }, ttl) {
  const seconds = Number(ttl);
  if (seconds >= 0 && seconds <= TTL_MAX) return seconds;
  const wanted = `${type} record: ttl must be a number of seconds from 0 to ${TTL_MAX}`;
  throw errorWith('ZONDA_RECORD', `${wanted}, not ${brief(ttl)}`, RangeError);
}

/** An error for what is given in place of a record. */
function notARecord(value) {
  const example = "{ type: 'A', data: '192.0.2.1' }";
  return wrongValue('ZONDA_RECORD', `a record must be an object such as ${example}`, value);
}

module.exports = { OPT, TTL, TTL_MAX, check, checkType, notARecord, secondsOf };
