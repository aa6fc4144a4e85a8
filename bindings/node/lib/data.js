'use strict';

// The data of records: from what programs write to octets on the wire, or to the text of a zone
// file, which the core reads.

const { brief, errorWith } = require('./errors.js');
const { fieldsOf, typeWord, plain } = require('./tables.js');

/** Octets of a character string (rfc1035#3.3). */
const STRING_OCTETS_MAX = 255;

/** What else the fields of the core are called, for example by programs for dns-packet. */
const ALIASES = {
  alg: ['algorithm'],
  keytag: ['keyTag'],
  public_key: ['key'],
  digest_type: ['digestType'],
  type_covered: ['typeCovered'],
  original_ttl: ['originalTTL'],
  signers_name: ['signersName', 'signerName'],
  next_dname: ['nextDomain', 'nextName'],
  types: ['rrtypes'],
  hash_alg: ['algorithm', 'hashAlgorithm'],
  mname: ['primary'],
  rname: ['mailbox'],
  fptype: ['hash', 'fingerprintType'],
  fp: ['fingerprint'],
  matching_type: ['matchingType'],
  svc_priority: ['priority'],
  target_name: ['target'],
  svc_params: ['params'],
  hash: ['nextDomain', 'digest'],
};

/** Fields that programs may leave out. */
const DEFAULTS = { protocol: 3, preference: 0, priority: 0, weight: 0 };

/** Kinds of fields that may be empty. */
const OPTIONAL = new Set(['names', 'words', 'base64']);

/** For each type, its fields: kind, and the names under which an object may have it. */
const known = new Map();
for (const [number, fields] of fieldsOf) {
  const entry = ([name, kind]) => ({
    name,
    kind,
    names: [name, camel(name), ...(ALIASES[name] ?? [])],
  });
  known.set(number, fields.map(entry));
}

/** `some_name` as `someName`. */
function camel(name) {
  return name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
}

/** The kind of the only field of a type; nothing if it has several. */
function onlyKind(type) {
  const fields = known.get(type);
  return fields?.length === 1 ? fields[0].kind : undefined;
}

/** The data of a record: text for the core to read, or octets as on the wire. */
function encode(type, data) {
  if (typeof data === 'string') return onlyKind(type) === 'strings' ? strings([data]) : data;
  if (data instanceof Uint8Array) return onlyKind(type) === 'strings' ? strings([data]) : data;
  if (data === undefined || data === null) throw missing(type, 'data');
  const fields = known.get(type);
  if (Array.isArray(data) && onlyKind(type) === 'strings') return strings(data);
  if (typeof data !== 'object' || fields === undefined) {
    const fieldNames = fields?.map(({ name }) => camel(name)).join(', ');
    const hasFields = fields !== undefined && fields.length > 1;
    const wanted = hasFields ? `text, octets, or an object with ${fieldNames}` : 'text or octets';
    throw wrong(`${typeWord(type)} record: data must be ${wanted}, not ${brief(data)}`);
  }
  if (Array.isArray(data) && fields.length === 1) return field(fields[0], data);
  return fields.map((known) => field(known, value(type, known, data))).join(' ');
}

/** The data of a record as text, as stores keep them. Text is taken as that of a zone file. */
function text(type, data) {
  if (typeof data === 'string') return data;
  if (data instanceof Uint8Array) {
    return `\\# ${data.length} ${octetsText(data, 'hex')}`.trimEnd(); // rfc3597#5
  }
  if (Array.isArray(data) && onlyKind(type) === 'strings') return data.map(quoted).join(' ');
  return encode(type, data);
}

/** An error that names what a record lacks. */
function missing(type, what) {
  return wrong(`${typeWord(type)} record: ${what} is missing`);
}

/** An error of the data of a record. */
function wrong(message) {
  return errorWith('ZONDA_RECORD', message, TypeError);
}

/** Whether a field of some name and kind may be left out. */
function mayBeMissing(name, kind) {
  return DEFAULTS[name] !== undefined || name === 'flags' || OPTIONAL.has(kind);
}

/** Names that some type's objects may have beside those of its fields. */
const BESIDE = new Set(['issuerCritical', 'tag']);
/** For each type, the names that objects may have. */
const allowed = new Map(
  [...known].map(([number, fields]) => [number, new Set(fields.flatMap(({ names }) => names))]),
);

/** Throws where the data of a record have a name that is no field of the type: a misspelt field
 * would be left out. */
function checkFields(type, data) {
  if (data === null || typeof data !== 'object' || Array.isArray(data)) return;
  if (data instanceof Uint8Array) return;
  const names = allowed.get(type);
  if (names === undefined) return; // what it is, encode() says
  for (const name in data) {
    if (names.has(name) || BESIDE.has(name)) continue;
    const fields = known.get(type).map((field) => camel(field.name));
    throw wrong(
      `${typeWord(type)} record: there is no field ${name}; its fields are ${fields.join(', ')}`,
    );
  }
}

/** A field's value in an object. */
function value(type, { name, kind, names }, data) {
  for (const known of names) {
    if (data[known] !== undefined && data[known] !== null) return data[known];
  }
  if (name === 'flags' && data.issuerCritical !== undefined) return data.issuerCritical ? 128 : 0;
  if (name === 'flags' && data.tag !== undefined) return 0;
  if (DEFAULTS[name] !== undefined) return DEFAULTS[name];
  if (OPTIONAL.has(kind)) return [];
  throw missing(type, name);
}

/** The text of a field. */
function field({ kind }, value) {
  switch (kind) {
    case 'strings':
      return (Array.isArray(value) ? value : [value]).map(quoted).join(' ');
    case 'string':
      return quoted(value);
    case 'name':
      return value === '' ? '.' : String(value);
    case 'hex':
      return octetsText(value, 'hex') || '-';
    case 'base64':
      return Array.isArray(value) ? '' : octetsText(value, 'base64');
    case 'base32':
      return value instanceof Uint8Array ? base32(value) : String(value);
    case 'words':
      return words(value);
    case 'names':
      return Array.isArray(value) ? value.join(' ') : String(value);
    default:
      return String(value);
  }
}

/** Octets as text. */
function octetsText(value, encoding) {
  return value instanceof Uint8Array ? Buffer.from(value).toString(encoding) : String(value);
}

/** Words, or parameters and their values as SVCB has them. */
function words(value) {
  if (Array.isArray(value)) return value.join(' ');
  if (typeof value !== 'object') return String(value);
  const parameter = ([key, of]) => {
    if (of === true || of === null) return key;
    return `${key}=${quoted(Array.isArray(of) ? of.join(',') : String(of))}`;
  };
  return Object.entries(value).map(parameter).join(' ');
}

/** A character string in quotes. */
function quoted(value) {
  const octets = value instanceof Uint8Array ? value : Buffer.from(String(value));
  let text = '"';
  for (const octet of octets) {
    if (octet === 0x22 || octet === 0x5c) text += `\\${String.fromCharCode(octet)}`;
    else if (octet >= 0x20 && octet <= 0x7e) text += String.fromCharCode(octet);
    else text += `\\${String(octet).padStart(3, '0')}`;
  }
  return `${text}"`;
}

/** Base 32 with the alphabet of rfc4648#7, without padding. */
function base32(octets) {
  let text = '';
  let bits = 0;
  let held = 0;
  for (const octet of octets) {
    held = (held << 8) | octet;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text += ((held >> bits) & 31).toString(32);
    }
    held &= 31;
  }
  return bits ? text + ((held << (5 - bits)) & 31).toString(32) : text;
}

/** Character strings on the wire; longer ones as several. */
function strings(values) {
  const parts = [];
  for (const value of values) {
    const octets = value instanceof Uint8Array ? value : Buffer.from(String(value));
    let at = 0;
    do {
      const part = octets.subarray(at, at + STRING_OCTETS_MAX);
      parts.push(Uint8Array.of(part.length), part);
      at += STRING_OCTETS_MAX;
    } while (at < octets.length);
  }
  return parts.length ? Buffer.concat(parts) : Buffer.of(0);
}

module.exports = { checkFields, encode, known, mayBeMissing, plain, text };
