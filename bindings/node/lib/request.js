'use strict';

// A query as handlers see it: read from the batch that brought it, each part when it is asked for.

const { addFormerNames } = require('./former.js');
const { decodeMessage } = require('./message.js');
const { custom, shown } = require('./shown.js');
const { typeWord } = require('./tables.js');

// What the server alone asks of a query: symbols, so that programs do not come across it.

/** The halves of the number that the core knows it by. */
const TICKET_LOW = Symbol('ticketLow');
const TICKET_HIGH = Symbol('ticketHigh');
/** The number of its handler, and the numbers of the guards that it passes. */
const HANDLER = Symbol('handler');
const GUARDS = Symbol('guards');
/** The route or the guard that it has come to last, and what tells it these. */
const ROUTE = Symbol('route');
const SET_ROUTE = Symbol('setRoute');
const ENTER_GUARD = Symbol('enterGuard');
/** The zone that a negative reply is from. */
const ZONE = Symbol('zone');
/** Whether something was read that other clients may have otherwise, whether what the core answers
 * was asked for, and whether a handler has left it to another one. */
const SAW_CLIENT = Symbol('sawClient');
const SAW_BELOW = Symbol('sawBelow');
const HAS_GONE_ON = Symbol('hasGoneOn');
/** What code has noted about it for the query log: values by their keys; nothing without any. */
const TAGS = Symbol('tags');

/** The handler of a query that only passes middleware. */
const NO_HANDLER = 0xffffffff;
/** Numbers in front of a query's octets. */
const WORDS = 11;
/** The bit that tells of a query that it passes guards. */
const GUARDED = 1 << 17;
/** The guards of a query that passes none. */
const NO_GUARDS = [];
/** Bits of the header's flags. */
const FLAG_RD = 0x0100;
const FLAG_CD = 0x0010;
/** Bits of the number of names that are remembered. */
const NAME_BITS = 11;
/** Spreads the bits of names: 2³² divided by the golden ratio. */
const MULTIPLIER = 0x9e3779b1;
/** Codes of EDNS options. */
const OPTION_SUBNET = 8;
const OPTION_COOKIE = 10;

/** A query. */
class Query {
  #batch;
  #at;
  #name;
  #message;
  #edns;
  #state;
  #labels;
  /** What the route captures: words, and the places of their labels from the right. */
  #route;
  #captures;
  /** What the pattern of its route spells out behind its captures, if that is not all. */
  #zone;
  /** The pattern of its route; `null` if it has none. */
  pattern = null;
  [SAW_CLIENT] = false;
  [SAW_BELOW] = false;
  [HAS_GONE_ON] = false;
  [TAGS] = undefined;

  constructor(batch, at) {
    this.#batch = batch;
    this.#at = at;
  }

  get [TICKET_LOW]() {
    return this.#batch.words[this.#at + 1];
  }

  get [TICKET_HIGH]() {
    return this.#batch.words[this.#at + 2];
  }

  get [HANDLER]() {
    return this.#batch.words[this.#at + 3];
  }

  /** The numbers of the guards that it passes, in this order. */
  get [GUARDS]() {
    const { words } = this.#batch;
    const at = this.#at;
    if ((words[at + 4] & GUARDED) === 0) return NO_GUARDS;
    const end = at + (words[at] >> 2) - 1;
    return Array.from(words.subarray(end - words[end], end));
  }

  /** The name asked for, in lower case and with its final dot. */
  get name() {
    if (this.#name === undefined) {
      this.#name = nameAt(this.#batch, this.#at + WORDS, this.#nameOctets);
    }
    return this.#name;
  }

  get #nameOctets() {
    return this.#batch.words[this.#at + 5] >>> 16;
  }

  /** The name as it was asked for, capitals included, with its final dot. */
  get originalName() {
    this[SAW_CLIENT] = true;
    const octets = this.#octets;
    let text = '';
    for (let at = 12; octets[at]; at += octets[at] + 1) text += `${labelText(octets, at)}.`;
    return text || '.';
  }

  /** The type asked for, such as `A`. */
  get type() {
    return typeWord(this.typeNumber);
  }

  /** Its number. */
  get typeNumber() {
    return this.#batch.words[this.#at + 4] & 0xffff;
  }

  /** How it came. */
  get transport() {
    this[SAW_CLIENT] = true;
    return (this.#batch.words[this.#at + 4] >>> 16) & 1 ? 'tcp' : 'udp';
  }

  /** Who asks. */
  get client() {
    return { address: this.clientAddress, port: this.clientPort };
  }

  /** The client's address. */
  get clientAddress() {
    this[SAW_CLIENT] = true;
    const at = (this.#at + 7) * 4;
    const { octets } = this.#batch;
    if (!(this.#batch.words[this.#at + 4] >>> 24)) {
      return `${octets[at]}.${octets[at + 1]}.${octets[at + 2]}.${octets[at + 3]}`;
    }
    return ipv6Text(octets.subarray(at, at + 16));
  }

  /** The client's port. */
  get clientPort() {
    this[SAW_CLIENT] = true;
    return this.#batch.words[this.#at + 5] & 0xffff;
  }

  /** Address and port in one text. */
  get clientText() {
    const address = this.clientAddress;
    return `${address.includes(':') ? `[${address}]` : address}:${this.clientPort}`;
  }

  /** The message as it came. */
  get message() {
    this[SAW_CLIENT] = true;
    return this.#octets;
  }

  get #octets() {
    if (this.#message === undefined) {
      const start = this.#start;
      this.#message = this.#batch.octets.subarray(start, start + this.#batch.words[this.#at + 6]);
    }
    return this.#message;
  }

  /** Where the message begins in its batch. */
  get #start() {
    return (this.#at + WORDS) * 4 + ((this.#nameOctets + 3) & ~3);
  }

  /** A number of 16 bits in its header. */
  #header(place) {
    const at = this.#start + place;
    const { octets } = this.#batch;
    return (octets[at] << 8) | octets[at + 1];
  }

  /** The number that the client gave it. */
  get id() {
    this[SAW_CLIENT] = true;
    return this.#header(0);
  }

  /** The flags of its header. */
  get flags() {
    this[SAW_CLIENT] = true;
    return this.#header(2);
  }

  /** Whether the client wants other servers to be asked. */
  get recursionDesired() {
    return (this.flags & FLAG_RD) !== 0;
  }

  /** Whether the client wants data that failed DNSSEC validation, too. */
  get checkingDisabled() {
    return (this.#header(2) & FLAG_CD) !== 0; // the core keeps replies for each value
  }

  /** What its EDNS record says; `null` if it has none. */
  get edns() {
    this[SAW_CLIENT] = true;
    return this.#ednsRecord;
  }

  get #ednsRecord() {
    if (this.#edns === undefined) this.#edns = decodeMessage(this.#octets)?.edns ?? null;
    return this.#edns;
  }

  /** Whether the client wants DNSSEC records. */
  get dnssecOk() {
    return this.#ednsRecord?.dnssecOk ?? false;
  }

  /** The longest message that the client takes over UDP, octets; `null` without EDNS. */
  get udpSize() {
    return this.edns?.udpSize ?? null;
  }

  /** The options of its EDNS record. */
  get options() {
    return this.edns?.options ?? [];
  }

  /** For whom the client asks (rfc7871#6); `null` if it says nothing, or no network. */
  get clientSubnet() {
    const data = this.#option(OPTION_SUBNET);
    return data === undefined ? null : subnetOf(data);
  }

  /** The cookies of client and server (rfc7873); `null` if there are none. */
  get cookie() {
    const data = this.#option(OPTION_COOKIE);
    return data ? { client: data.subarray(0, 8), server: data.subarray(8) } : null;
  }

  #option(code) {
    this[SAW_CLIENT] = true;
    return this.options.find((option) => option.code === code)?.data;
  }

  /** The zone that a negative reply is from if no zone of the server holds the name: a name above
   * could be another server's. */
  get [ZONE]() {
    return this.#zone ?? this.name;
  }

  /** The labels that the route captures with `:word`, in lower case. */
  get captures() {
    if (this.#labels === undefined) {
      this.#labels = {};
      const labels = this.#captures?.length ? splitLabels(this.name) : [];
      for (const [word, fromRight] of this.#captures ?? []) {
        this.#labels[word] = labels[labels.length - fromRight];
      }
    }
    return this.#labels;
  }

  /** As `captures`, by the name that programs for web servers know. */
  get params() {
    return this.captures;
  }

  /** Tells which route it has come to, and so which labels of the name are captured. */
  [SET_ROUTE](route) {
    this.#route = route;
    this.pattern = route?.pattern ?? null;
    this.#zone = route?.zone;
    this.#captures = route?.captures;
    this.#labels = undefined;
  }

  /** Tells which guard it passes, whose pattern captures labels as long as that runs. */
  [ENTER_GUARD](guard) {
    this.#route = guard;
    this.#zone = guard.zone;
    this.#captures = guard.captures;
    this.#labels = undefined;
  }

  /** The route or the guard that was told last; `undefined` without any. */
  get [ROUTE]() {
    return this.#route;
  }

  /** What middleware wants to tell handlers. */
  get state() {
    return (this.#state ??= {});
  }

  set state(state) {
    this.#state = state;
  }

  /** What a log has of it. The client counts as looked at, as for all that reads its address. */
  toJSON() {
    const { name, type, client, transport, dnssecOk, clientSubnet, pattern, captures } = this;
    return { name, type, client, transport, dnssecOk, clientSubnet, pattern, captures };
  }

  /** What `util.inspect` shows: the same, which does not count as looking at the client. */
  [custom](depth, options) {
    const sawClient = this[SAW_CLIENT];
    try {
      return shown('Query', this.toJSON(), depth, options);
    } finally {
      this[SAW_CLIENT] = sawClient;
    }
  }
}

addFormerNames(Query, {
  subnet: 'clientSubnet',
  extra: 'state',
});

/** The network of an option's data; `null` if they are none. */
function subnetOf(data) {
  if (data.length < 4) return null;
  const family = { 1: 4, 2: 6 }[data.readUInt16BE(0)];
  if (family === undefined) return null;
  const [prefix, scope] = data.subarray(2);
  const octets = Buffer.alloc(family === 6 ? 16 : 4);
  if (prefix > octets.length * 8 || data.length !== 4 + Math.ceil(prefix / 8)) return null;
  data.copy(octets, 0, 4);
  if (prefix % 8 !== 0 && ((data[data.length - 1] << prefix % 8) & 255) !== 0) return null;
  const address = family === 6 ? ipv6Text(octets) : [...octets].join('.');
  return { family, address, prefix, scope };
}

/** Names that were read last: most names are asked for again, and to compare a text with octets
 * costs less than to make it. */
const names = new Array(1 << NAME_BITS).fill('');

/** The name that lies at a place among the numbers of a batch, filled up with zeros. */
function nameAt({ octets, words }, place, length) {
  const end = place + ((length + 3) >> 2);
  let hash = length;
  for (let at = place; at < end; at++) hash = Math.imul(hash ^ words[at], MULTIPLIER);
  const slot = hash >>> (32 - NAME_BITS);
  const start = place * 4;
  if (!isAt(names[slot], octets, start, length)) {
    names[slot] = octets.latin1Slice(start, start + length);
  }
  return names[slot];
}

/** Whether a text has these octets. */
function isAt(text, octets, start, length) {
  if (text.length !== length) return false;
  for (let index = 0; index < length; index++) {
    if (text.charCodeAt(index) !== octets[start + index]) return false;
  }
  return true;
}

/** The text of the label whose length stands at a place, as in a zone file. */
function labelText(octets, at) {
  let text = '';
  for (const octet of octets.subarray(at + 1, at + 1 + octets[at])) {
    const character = String.fromCharCode(octet);
    if ('."\\;()@$'.includes(character)) text += `\\${character}`;
    else if (octet > 0x20 && octet < 0x7f) text += character;
    else text += `\\${String(octet).padStart(3, '0')}`;
  }
  return text;
}

/** The labels of a name, with or without its final dot, the first one first. */
function splitLabels(name) {
  if (name.includes('\\')) return name.match(/(?:\\.|[^.\\])+/g) ?? [];
  const labels = name.split('.');
  if (labels.at(-1) === '') labels.pop();
  return labels;
}

/** An IPv6 address, written as usual (rfc5952). */
function ipv6Text(octets) {
  const groups = [];
  for (let at = 0; at < 16; at += 2) groups.push(((octets[at] << 8) | octets[at + 1]).toString(16));
  const text = groups.join(':');
  let longest = { 0: '', index: 0 };
  for (const run of text.matchAll(/\b0(?::0)+\b/g)) {
    if (run[0].length > longest[0].length) longest = run;
  }
  if (!longest[0]) return text;
  const end = longest.index + longest[0].length;
  return `${text.slice(0, longest.index)}::${text.slice(end)}`.replace(/:{3,}/, '::');
}

module.exports = {
  ENTER_GUARD,
  GUARDS,
  HANDLER,
  HAS_GONE_ON,
  NO_HANDLER,
  Query,
  ROUTE,
  SAW_BELOW,
  SAW_CLIENT,
  SET_ROUTE,
  TAGS,
  TICKET_HIGH,
  TICKET_LOW,
  ZONE,
  ipv6Text,
  labelText,
  splitLabels,
};
