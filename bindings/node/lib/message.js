'use strict';

// Messages, read whole.

const { encode } = require('./data.js');
const { wrongValue } = require('./errors.js');
const native = require('./native.js');
const { typeNumber, typeWord } = require('./tables.js');

/** Bits of the header's flags. */
const FLAGS = { aa: 0x0400, tc: 0x0200, rd: 0x0100, ra: 0x0080, ad: 0x0020, cd: 0x0010 };
/** The code of the EDNS option that holds an extended error. */
const OPTION_EXTENDED_ERROR = 15;

/** The octets that a record was read from, and what was read from them. */
const WIRE = Symbol('wire');

/** A message. */
class Message {
  /** The records of the answer that have a type. */
  of(type) {
    return recordsOf(this.answers, type);
  }
}

/** Those of some records, as they are read, that have a type. */
function recordsOf(records, type) {
  const word = typeWord(typeNumber(type));
  return records.filter((record) => record.type === word);
}

/** A message, or `null` if the octets are none. */
function decodeMessage(octets) {
  if (!(octets instanceof Uint8Array)) {
    throw wrongValue('ZONDA_QUERY', 'decodeMessage() needs the octets of a message', octets);
  }
  const text = native.readMessage(octets);
  if (text === null || text === undefined) return null;
  const message = Object.assign(new Message(), JSON.parse(text));
  for (const name of Object.keys(FLAGS)) message[name] = (message.flags & FLAGS[name]) !== 0;
  for (const section of ['answers', 'authorities', 'additionals']) {
    message[section] = message[section].map(record);
  }
  if (message.edns) {
    message.edns.options = message.edns.options.map(([code, data]) => ({
      code,
      data: Buffer.from(data, 'hex'),
    }));
  }
  const error = message.edns?.options.find(({ code }) => code === OPTION_EXTENDED_ERROR)?.data;
  message.error =
    error?.length >= 2 ? { code: error.readUInt16BE(0), text: error.toString('utf8', 2) } : null;
  return message;
}

/** A record that remembers its octets, so that it can be sent as it came. */
function record({ name, type, class: ofClass, ttl, data, wire }) {
  const frozen = typeof data === 'object' ? Object.freeze(data) : data;
  const record = { name, type, class: ofClass, ttl, data: frozen };
  Object.defineProperty(record, WIRE, { value: { type, data: frozen, wire } });
  return record;
}

/** A record as it is read, of one that a program has made, whose `name` and `ttl` are there. */
function readable({ type, name, ttl, data }) {
  const number = typeNumber(type);
  const encoded = encode(number, data);
  const isText = typeof encoded === 'string';
  const read = native.readData(number, isText, isText ? Buffer.from(encoded) : encoded);
  const owner = { name: completeName(name), type: typeWord(number), class: 'IN', ttl };
  return record({ ...owner, ...JSON.parse(read) });
}

/** A name with its final dot, which is not one that a label has. */
function completeName(name) {
  return /(?<!\\)(?:\\\\)*\.$/.test(name) ? name : `${name}.`;
}

/** The octets of a record's data, if they are still what was read. */
function wireOf(record) {
  return isAsRead(record) ? Buffer.from(record[WIRE].wire, 'hex') : null;
}

/** Whether a record has the data that were read. */
function isAsRead(record) {
  const known = record?.[WIRE];
  return known !== undefined && known.data === record.data && known.type === record.type;
}

module.exports = {
  FLAGS,
  Message,
  completeName,
  decodeMessage,
  isAsRead,
  record,
  readable,
  recordsOf,
  wireOf,
};
