'use strict';

// Records as lines of a zone file.

const { encode } = require('./data.js');
const { withCode } = require('./errors.js');
const { record, wireOf } = require('./message.js');
const native = require('./native.js');
const { checkNames } = require('./options.js');
const { TTL, check, notARecord, secondsOf } = require('./record.js');
const { typeNumber } = require('./tables.js');

/** A record of a line of a zone file, such as `www 300 IN A 192.0.2.1`. */
function parseRecord(text, options = {}) {
  checkNames('ZONDA_RECORD', Object(options), ['origin', 'ttl']);
  const { origin, ttl = TTL } = options;
  const seconds = secondsOf({ type: 'a' }, ttl);
  const of = origin === undefined ? undefined : String(origin);
  const read = withCode('ZONDA_RECORD', () => native.readRecord(String(text), of, seconds));
  return record(JSON.parse(read));
}

/** The line of a zone file for a record; the owner of one without a name is `@`. */
function recordText(given) {
  if (Object(given) !== given) throw notARecord(given);
  const number = typeNumber(given.type);
  check(given);
  const { name, ttl = TTL } = given;
  const encoded = wireOf(given) ?? encode(number, given.data);
  const isText = typeof encoded === 'string';
  const octets = isText ? Buffer.from(encoded) : encoded;
  const owner = name === undefined ? undefined : String(name);
  const seconds = secondsOf(given, ttl);
  return withCode('ZONDA_RECORD', () => native.recordLine(owner, number, seconds, isText, octets));
}

module.exports = { parseRecord, recordText };
