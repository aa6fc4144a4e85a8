'use strict';

// Messages as dns-packet has them, from and to octets: what serializers of programs are made of.
// The core reads and writes what it receives itself.

const { encode: encodeData } = require('../lib/data.js');
const { ipv6Text, labelText, splitLabels } = require('../lib/request.js');
const { rcodeWord, typeNumber, typeWord } = require('../lib/tables.js');
const { Reader, Writer } = require('./octets.js');

/** Bits of the header's flags, by the names that dns-packet gives them. */
const HEADER_FLAGS = {
  flag_qr: 0x8000,
  flag_aa: 0x0400,
  flag_tc: 0x0200,
  flag_rd: 0x0100,
  flag_ra: 0x0080,
  flag_z: 0x0040,
  flag_ad: 0x0020,
  flag_cd: 0x0010,
};
/** The bit of the flags that makes a response of a message. */
const RESPONSE = 0x8000;
/** The bit of an OPT record's flags that asks for DNSSEC records. */
const DNSSEC_OK = 0x8000;
/** The bit of a class that has other records of a cache forgotten (rfc6762#10.2). */
const FLUSH = 0x8000;
/** The size of messages that an OPT record tells, if a program does not, octets. */
const UDP_SIZE = 4096;
/** The highest response code that has a word. */
const RCODE_MAX = 10;
/** Octets of the longest label and the longest name (rfc1035#2.3.4). */
const LABEL_MAX = 63;
const NAME_MAX = 255;

const OPCODES = ['QUERY', 'IQUERY', 'STATUS', undefined, 'NOTIFY', 'UPDATE'];
const CLASSES = new Map([
  ['IN', 1],
  ['CS', 2],
  ['CH', 3],
  ['HS', 4],
  ['ANY', 255],
]);
/** Codes of EDNS options. */
const OPTIONS = new Map([
  ['LLQ', 1],
  ['UL', 2],
  ['NSID', 3],
  ['DAU', 5],
  ['DHU', 6],
  ['N3U', 7],
  ['CLIENT_SUBNET', 8],
  ['EXPIRE', 9],
  ['COOKIE', 10],
  ['TCP_KEEPALIVE', 11],
  ['PADDING', 12],
  ['CHAIN', 13],
  ['KEY_TAG', 14],
  ['DEVICEID', 26946],
]);

/** Fields of data by their types, in the order of the wire: a text for data without fields. Types
 * that are not here have octets, as in dns-packet. */
const LAYOUTS = {
  A: 'ipv4',
  AAAA: 'ipv6',
  CNAME: 'name',
  DNAME: 'name',
  NS: 'name',
  PTR: 'name',
  TXT: 'strings',
  SPF: 'strings',
  MX: { preference: 'u16', exchange: 'name' },
  SOA: {
    ...{ mname: 'name', rname: 'name' },
    ...{ serial: 'u32', refresh: 'u32', retry: 'u32', expire: 'u32', minimum: 'u32' },
  },
  SRV: { priority: 'u16', weight: 'u16', port: 'u16', target: 'name' },
  CAA: { flags: 'u8', tag: 'string', value: 'text' },
  HINFO: { cpu: 'string', os: 'string' },
  RP: { mbox: 'name', txt: 'name' },
  NAPTR: {
    ...{ order: 'u16', preference: 'u16' },
    ...{ flags: 'string', services: 'string', regexp: 'string', replacement: 'name' },
  },
  DS: { keyTag: 'u16', algorithm: 'u8', digestType: 'u8', digest: 'octets' },
  DNSKEY: { flags: 'u16', protocol: 'u8', algorithm: 'u8', key: 'octets' },
  RRSIG: {
    ...{ typeCovered: 'type', algorithm: 'u8', labels: 'u8', originalTTL: 'u32' },
    ...{ expiration: 'u32', inception: 'u32', keyTag: 'u16', signersName: 'name' },
    signature: 'octets',
  },
  NSEC: { nextDomain: 'name', rrtypes: 'types' },
  NSEC3: {
    ...{ algorithm: 'u8', flags: 'u8', iterations: 'u16' },
    ...{ salt: 'counted', nextDomain: 'counted', rrtypes: 'types' },
  },
  SSHFP: { algorithm: 'u8', hash: 'u8', fingerprint: 'hex' },
  TLSA: { usage: 'u8', selector: 'u8', matchingType: 'u8', certificate: 'octets' },
};
/** Fields of numbers that programs may leave out, and what they are then; a field that is not listed is 0. */
const DEFAULTS = { protocol: 3 };

/** How each kind of field is read, up to the end of its record, and written. */
const KINDS = {
  u8: { read: (from) => from.u8(), write: (into, value = 0) => into.u8(value) },
  u16: { read: (from) => from.u16(), write: (into, value = 0) => into.u16(value) },
  u32: { read: (from) => from.u32(), write: (into, value = 0) => into.u32(value) },
  type: {
    read: (from) => typeWord(from.u16()),
    write: (into, value) => into.u16(typeNumber(value)),
  },
  name: { read: readName, write: writeName },
  string: { read: (from) => text(from.counted()), write: (into, value) => into.counted(value) },
  strings: { read: readStrings, write: writeStrings },
  text: { read: (from) => text(from.rest()), write: (into, value) => into.octets(value) },
  hex: {
    read: (from) => from.rest().toString('hex').toUpperCase(),
    write: (into, value) => into.octets(Buffer.from(value, 'hex')),
  },
  octets: { read: (from) => from.rest(), write: (into, value) => into.octets(value) },
  counted: { read: (from) => from.counted(), write: (into, value) => into.counted(value) },
  types: { read: readTypes, write: writeTypes },
  ipv4: { read: (from) => [...from.take(4)].join('.'), write: writeIpv4 },
  ipv6: { read: (from) => ipv6Text(from.take(16)), write: writeIpv6 },
};

/** A message that octets are. Throws if they are none. */
function decode(octets) {
  const from = new Reader(octets);
  const id = from.u16();
  const flags = from.u16();
  const counts = [from.u16(), from.u16(), from.u16(), from.u16()];
  const list = (count, read) => Array.from({ length: count }, () => read(from));
  return {
    ...{ id, ...headerOf(flags) },
    questions: list(counts[0], readQuestion),
    answers: list(counts[1], readRecord),
    authorities: list(counts[2], readRecord),
    additionals: list(counts[3], readRecord),
  };
}

/** The octets of a message. Throws if it cannot be written. */
function encode(packet) {
  const { questions = [], answers = [], authorities = [], additionals = [] } = packet;
  const into = new Writer();
  into.u16(packet.id ?? 0);
  into.u16(((packet.flags ?? 0) & ~RESPONSE) | (packet.type === 'response' ? RESPONSE : 0));
  for (const list of [questions, answers, authorities, additionals]) into.u16(list.length);
  for (const { name, type, class: ofClass } of questions) {
    writeName(into, name);
    into.u16(typeNumber(type));
    into.u16(classNumber(ofClass));
  }
  for (const record of [...answers, ...authorities, ...additionals]) writeRecord(into, record);
  return into.end();
}

/** What dns-packet says of a header's flags. */
function headerOf(flags) {
  const opcode = (flags >> 11) & 0xf;
  const header = {
    type: flags & RESPONSE ? 'response' : 'query',
    flags: flags & ~RESPONSE,
    opcode: OPCODES[opcode] ?? `OPCODE_${opcode}`,
    rcode: (flags & 0xf) <= RCODE_MAX ? rcodeWord(flags & 0xf) : `RCODE_${flags & 0xf}`,
  };
  for (const [name, bit] of Object.entries(HEADER_FLAGS)) header[name] = (flags & bit) !== 0;
  return header;
}

function readQuestion(from) {
  return { name: readName(from), type: typeWord(from.u16()), class: classWord(from.u16()) };
}

function readRecord(from) {
  const name = readName(from);
  const type = typeWord(from.u16());
  const [ofClass, ttl, length] = [from.u16(), from.u32(), from.u16()];
  const data = from.part(length);
  if (type === 'OPT') return optOf(ofClass, ttl, data);
  const [known, flush] = [classWord(ofClass & ~FLUSH), (ofClass & FLUSH) !== 0];
  return { name, type, ttl, class: known, flush, data: readData(type, data) };
}

/** An OPT record, whose class and time to live mean something else (rfc6891#6.1). */
function optOf(udpPayloadSize, ttl, data) {
  const options = [];
  while (!data.isAtEnd) options.push(optionOf(data.u16(), data.take(data.u16())));
  const flags = ttl & 0xffff;
  return {
    ...{ name: '.', type: 'OPT', udpPayloadSize, extendedRcode: ttl >>> 24 },
    ...{ ednsVersion: (ttl >>> 16) & 0xff, flags, flag_do: (flags & DNSSEC_OK) !== 0, options },
  };
}

/** An EDNS option with what its data say. */
function optionOf(code, data) {
  const [type = `OPTION_${code}`] = [...OPTIONS].find(([, known]) => known === code) ?? [];
  const option = { code, type, data };
  if (type === 'CLIENT_SUBNET' && data.length >= 4) {
    option.family = data.readUInt16BE(0);
    [option.sourcePrefixLength, option.scopePrefixLength] = [data[2], data[3]];
    const address = Buffer.alloc(option.family === 1 ? 4 : 16);
    data.copy(address, 0, 4);
    option.ip = option.family === 1 ? [...address].join('.') : ipv6Text(address);
  } else if (type === 'TCP_KEEPALIVE' && data.length >= 2) {
    option.timeout = data.readUInt16BE(0);
  } else if (type === 'KEY_TAG') {
    option.tags = [];
    for (let at = 0; at + 2 <= data.length; at += 2) option.tags.push(data.readUInt16BE(at));
  }
  return option;
}

/** Code and data of an EDNS option, whose data may be given by what they say. */
function optionOctets(option) {
  const { data, ip, sourcePrefixLength = 0, scopePrefixLength = 0, tags, timeout } = option;
  const code = OPTIONS.get(option.code) ?? Number(option.code);
  const into = new Writer();
  if (data) {
    into.octets(data);
  } else if (ip !== undefined) {
    const address = new Writer();
    KINDS[ip.includes(':') ? 'ipv6' : 'ipv4'].write(address, ip);
    into.u16(ip.includes(':') ? 2 : 1);
    into.u8(sourcePrefixLength);
    into.u8(scopePrefixLength);
    into.octets(address.end().subarray(0, Math.ceil(sourcePrefixLength / 8)));
  } else if (timeout !== undefined) {
    into.u16(timeout);
  } else {
    for (const tag of tags ?? []) into.u16(tag);
    into.octets(Buffer.alloc(option.length ?? 0)); // padding
  }
  return [code, into.end()];
}

function readData(type, from) {
  const layout = LAYOUTS[type] ?? 'octets';
  if (typeof layout === 'string') return KINDS[layout].read(from);
  const data = {};
  for (const [field, kind] of Object.entries(layout)) data[field] = KINDS[kind].read(from);
  if (type === 'CAA') data.issuerCritical = (data.flags & 0x80) !== 0;
  if (type === 'DNSKEY') delete data.protocol; // it is always the same (rfc4034#2.1.2)
  return data;
}

function writeRecord(into, record) {
  const { name, type, class: ofClass, ttl = 0, flush, data } = record;
  writeName(into, name);
  const number = typeNumber(type);
  into.u16(number);
  if (typeWord(number) === 'OPT') return writeOpt(into, record);
  into.u16(classNumber(ofClass) | (flush ? FLUSH : 0));
  into.u32(ttl);
  return into.withLength(() => writeData(into, typeWord(number), data));
}

function writeOpt(into, record) {
  const { udpPayloadSize = UDP_SIZE, extendedRcode = 0, ednsVersion = 0, flags = 0 } = record;
  into.u16(udpPayloadSize);
  into.u8(extendedRcode);
  into.u8(ednsVersion);
  into.u16(flags);
  into.withLength(() => {
    for (const [code, data] of (record.options ?? []).map(optionOctets)) {
      into.u16(code);
      into.withLength(() => into.octets(data));
    }
  });
}

function writeData(into, type, data) {
  if (data === undefined || data === null) throw new TypeError(`${type} record: data is missing`);
  const layout = LAYOUTS[type] ?? 'octets';
  if (typeof layout === 'string') return KINDS[layout].write(into, data);
  if (data instanceof Uint8Array) return into.octets(data);
  for (const [field, kind] of Object.entries(layout)) {
    let value = data[field] ?? DEFAULTS[field];
    if (field === 'flags' && data.issuerCritical) value = 0x80;
    if (value === undefined && !kind.startsWith('u')) {
      throw new TypeError(`${type} record: ${field} is missing`);
    }
    KINDS[kind].write(into, value);
  }
  return undefined;
}

/** A name, which may go on at a place in front of it (rfc1035#4.1.4). */
function readName(from) {
  const labels = [];
  let octets = 1;
  let before = from.at;
  let reader = from;
  for (;;) {
    const length = reader.u8();
    if (length === 0) return labels.join('.') || '.';
    if (length >= 0xc0) {
      const place = ((length & 0x3f) << 8) | reader.u8();
      if (place >= before) throw new RangeError('a name does not go on in front of itself');
      before = place;
      reader = from.elsewhere(place);
    } else if (length > LABEL_MAX || (octets += length + 1) > NAME_MAX) {
      throw new RangeError('a name is malformed');
    } else {
      reader.at--;
      labels.push(labelText(reader.take(length + 1), 0));
    }
  }
}

function writeName(into, name) {
  const labels = splitLabels(String(name)).filter((label) => label !== '');
  const octets = labels.map(unescaped);
  const length = octets.reduce((all, label) => all + label.length + 1, 1);
  if (length > NAME_MAX || octets.some((label) => label.length > LABEL_MAX)) {
    throw new RangeError(`${name}: a label has at most 63 octets, a name 255`);
  }
  for (const label of octets) into.counted(label);
  into.u8(0);
}

/** The octets of a label as zone files have it. */
function unescaped(label) {
  if (!label.includes('\\')) return Buffer.from(label);
  const parts = label.match(/\\\d{3}|\\?[^]/gu) ?? [];
  const octets = (part) => {
    if (!part.startsWith('\\') || part === '\\') return Buffer.from(part);
    return part.length === 4 ? Buffer.of(Number(part.slice(1))) : Buffer.from(part.slice(1));
  };
  return Buffer.concat(parts.map(octets));
}

function readStrings(from) {
  const strings = [];
  while (!from.isAtEnd) strings.push(from.counted());
  return strings;
}

function writeStrings(into, value) {
  into.octets(encodeData(typeNumber('TXT'), value)); // longer ones as several
}

/** Types in windows of 256 (rfc4034#4.1.2). */
function readTypes(from) {
  const types = [];
  while (!from.isAtEnd) {
    const window = from.u8() << 8;
    from.counted().forEach((octet, at) => {
      for (let bit = 0; bit < 8; bit++) {
        if (octet & (0x80 >> bit)) types.push(typeWord(window | (at << 3) | bit));
      }
    });
  }
  return types;
}

function writeTypes(into, types) {
  const numbers = types.map(typeNumber).sort((one, other) => one - other);
  for (const window of new Set(numbers.map((number) => number >> 8))) {
    const low = numbers.filter((it) => it >> 8 === window).map((it) => it & 0xff);
    const bits = Buffer.alloc((low.at(-1) >> 3) + 1);
    for (const number of low) bits[number >> 3] |= 0x80 >> (number & 7);
    into.u8(window);
    into.counted(bits);
  }
}

function writeIpv4(into, text) {
  const numbers = String(text).split('.').map(Number);
  const isNumber = (number) => Number.isInteger(number) && number >= 0 && number <= 255;
  if (numbers.length !== 4 || !numbers.every(isNumber)) {
    throw new TypeError(`${text} is no address`);
  }
  into.octets(Buffer.from(numbers));
}

function writeIpv6(into, text) {
  let plain;
  try {
    plain = new URL(`http://[${text}]`).hostname.slice(1, -1); // without an IPv4 address in it
  } catch {
    throw new TypeError(`${text} is no address`);
  }
  const [front, back = ''] = plain.split('::');
  const groups = (part) => part.split(':').filter(Boolean);
  const zeros = plain.includes('::') ? 8 - groups(front).length - groups(back).length : 0;
  for (const group of [...groups(front), ...Array(zeros).fill('0'), ...groups(back)]) {
    into.u16(Number.parseInt(group, 16));
  }
}

function classWord(number) {
  for (const [word, known] of CLASSES) if (known === number) return word;
  return `UNKNOWN_${number}`;
}

function classNumber(word = 'IN') {
  const number = CLASSES.get(word) ?? Number(/^UNKNOWN_(\d+)$/.exec(word)?.[1] ?? Number.NaN);
  if (Number.isNaN(number)) throw new TypeError(`there is no class ${word}`);
  return number;
}

function text(octets) {
  return octets.toString();
}

module.exports = { HEADER_FLAGS, decode, encode, headerOf, optionOf };
