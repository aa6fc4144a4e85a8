'use strict';

// A reply as handlers put it together.

const { addFormerNames } = require('./former.js');
const { ENDING, LOOKS } = require('./batch.js');
const { brief, errorWith, placeOf, recordError, wrongValue } = require('./errors.js');
const { FLAGS, decodeMessage, isAsRead, readable, recordsOf, wireOf } = require('./message.js');
const { checkNames } = require('./options.js');
const { OPT, TTL, TTL_MAX, check, checkType, notARecord, secondsOf } = require('./record.js');
const {
  HAS_GONE_ON,
  SAW_BELOW,
  SAW_CLIENT,
  TAGS,
  TICKET_HIGH,
  TICKET_LOW,
  ZONE,
} = require('./request.js');
const { listOf } = require('./returned.js');
const { custom, shown } = require('./shown.js');
const { errorNumber, rcodeNumber, rcodeWord, typeNumber, typeWord } = require('./tables.js');

/** What a kept answer depends on, by the core's numbers. */
const VARY = { client: 1, subnet: 2 };
/** The longest name as text, with the dot at its end (rfc1035#2.3.4). */
const NAME_LENGTH_MAX = 254;
/** The extended error that has no number of its own. */
const EXTENDED_OTHER = 0;
/** The longest scope: all bits of an IPv6 address. */
const SCOPE_MAX = 128;
/** The types of records that lead to another name. */
const ALIASES = new Set(['CNAME', 'DNAME']);
/** The options of a negative reply, and of one that is kept. */
const NEGATIVE_OPTIONS = ['ttl', 'soa'];
const CACHE_OPTIONS = ['ttl', 'vary'];
const NO_OPTIONS = {};
/** The sections, in the order of their numbers. */
const SECTIONS = ['answers', 'authorities', 'additionals'];

/** The reply to a query. */
class Reply {
  #request;
  #ending = ENDING.PASS_ON;
  #rcode = 0;
  #flags = FLAGS.aa;
  #error = null;
  #kept = null;
  #scope = null;
  #sections = [null, null, null];
  /** What the core would answer, if it was asked. */
  #below = null;
  /** The same as it was read, to tell whether it was changed. */
  #read = null;
  #state;
  #sent = false;
  #complain;
  /** Gives the SOA record of the zone of the server that holds a name, for a time to live. */
  #soaFor;

  constructor(request, complain, soaFor = () => null) {
    this.#request = request;
    this.#complain = complain;
    this.#soaFor = soaFor;
  }

  /** Adds records to the answer. */
  answer(...records) {
    return this.#add(0, records);
  }

  /** Adds records to the authority section: SOA beside a negative answer, NS in a referral. */
  authority(...records) {
    return this.#add(1, records);
  }

  /** Adds records to the additional section, which are sent if there is room. */
  additional(...records) {
    return this.#add(2, records);
  }

  #add(section, records) {
    if (!this.#change()) return this;
    this.#ending = ENDING.REPLY;
    const into = (this.#sections[section] ??= []);
    for (const record of records) {
      if (Array.isArray(record)) {
        this.#add(section, record);
      } else {
        try {
          checkType(record); // tells the mistake where it is made
        } catch (error) {
          throw this.#named(error, section, into.length, record);
        }
        into.push(record);
      }
    }
    return this;
  }

  /** Adds what a function has returned to the answer: a record, or an array or another collection of
   * records. Those that the answer has already are not added again: a function that is one expression
   * may return what it has set, as it may a response code. What such expressions give is ignored, too:
   * numbers, `true` and `false`, an empty text, and what emits events, as a logger that returns itself;
   * all else throws. */
  addReturned(value) {
    if (value === undefined || value === null || value === this) return;
    if (Array.isArray(value)) {
      const known = this.#sections[0] ?? [];
      this.#add(0, value.flat(Infinity).filter((record) => !known.includes(record)));
      return;
    }
    switch (typeof value) {
      case 'boolean':
      case 'number':
      case 'bigint':
        return;
      case 'string':
        if (value === '' || this.#hasRcode(value)) return;
        break;
      case 'object':
        if (value.type === undefined) {
          if (typeof value.on === 'function') return;
          const list = listOf(value);
          if (list !== undefined) {
            this.addReturned(list);
            return;
          }
        }
    }
    if (!this.#sections[0]?.includes(value)) this.#add(0, [value]);
  }

  /** Whether a text is the word of the response code that a function has set. */
  #hasRcode(word) {
    if (this.#ending !== ENDING.REPLY) return false;
    return word === rcodeWord(this.#rcode) || word === `RCODE${this.#rcode}`;
  }

  /** Makes it a reply with a response code, and the records that were added. */
  reply(rcode = 'NOERROR') {
    const number = rcodeNumber(rcode);
    if (this.#change()) {
      this.#ending = ENDING.REPLY;
      this.#rcode = number;
    }
    return this;
  }

  /** Says that the name exists, but has no records of the type. Resolvers cache that for `ttl`
   * seconds, or as the record `soa` says. Of the records so far only aliases that lead to the name
   * stay, and the SOA record if there is no other one. */
  noData(cached) {
    return this.#deny('NOERROR', cached);
  }

  /** Says that there is no such name. Resolvers cache that for `ttl` seconds, or as the record `soa`
   * says. Of the records so far only aliases that lead to the name stay, and the SOA record if there
   * is no other one. */
  nxdomain(cached) {
    return this.#deny('NXDOMAIN', cached);
  }

  /** Makes it a negative reply. */
  #deny(rcode, cached) {
    const { ttl, soa } = cached === undefined ? NO_OPTIONS : negativeOptions(rcode, cached);
    if (!this.#change()) return this;
    const [answers, authorities] = this.#sections;
    const isReplaced = ttl !== undefined || soa !== undefined;
    this.#sections = [
      answers === null ? null : aliasesOf(answers, this.#request),
      authorities === null || isReplaced ? null : authorities.filter((it) => isOfType(it, 'SOA')),
      null,
    ];
    this.reply(rcode);
    if (soa !== undefined) return this.authority({ type: 'SOA', ...soa });
    return ttl === undefined ? this : this.authority(this.#makeSoa(ttl));
  }

  /** The record by which resolvers cache a negative reply for some seconds (rfc2308#5). */
  #makeSoa(ttl) {
    const isTtl = Number.isInteger(ttl) && ttl >= 0 && ttl <= TTL_MAX; // it is told when it is sent
    const known = isTtl ? this.#soaFor(this.#request.name, ttl) : null;
    if (known !== null) return { type: 'SOA', ttl, ...known };
    const name = this.#request[ZONE];
    const below = `hostmaster.${name === '.' ? '' : name}`;
    const mailbox = below.length <= NAME_LENGTH_MAX ? below : name;
    const times = { serial: 1, refresh: 7200, retry: 900, expire: 1_209_600, minimum: ttl };
    return { type: 'SOA', name, ttl, data: { mname: name, rname: mailbox, ...times } };
  }

  /** Refuses to answer. */
  refused() {
    if (this.#change()) this.#flags &= ~FLAGS.aa;
    return this.reply('REFUSED');
  }

  /** Says that the answer cannot be had, and to the client why. */
  servfail(why = '') {
    if (this.#change()) {
      this.#sections = [null, null, null];
      this.#flags &= ~FLAGS.aa;
      if (why) this.extendedError(EXTENDED_OTHER, why);
    }
    return this.reply('SERVFAIL');
  }

  /** Sends nothing. */
  drop() {
    if (this.#change()) this.#ending = ENDING.DROP;
    return this;
  }

  /** Leaves the query to the handler of the next wider pattern, and behind the last one to the zones,
   * as if there were no handler; records that were added are not sent. */
  passOn() {
    if (this.#change()) {
      this.#sections = [null, null, null];
      this.#ending = ENDING.PASS_ON;
    }
    return this;
  }

  /** Makes it as new: what was put into it is not sent. */
  clear() {
    if (this.#change()) this.reset();
    return this;
  }

  /** The same, without a word if it was sent: what a handler has put into it before it left the query
   * is not the next one's. */
  reset() {
    if (this.#sent) return;
    this.#sections = [null, null, null];
    this.#ending = ENDING.PASS_ON;
    [this.#rcode, this.#flags] = [0, FLAGS.aa];
    [this.#error, this.#kept, this.#scope] = [null, null, null];
  }

  /** Says more about what is wrong (rfc8914): a number or a name such as `Blocked`, and a text. */
  extendedError(code, text = '') {
    const number = errorNumber(code);
    if (this.#change()) this.#error = { code: number, text: String(text) };
    return this;
  }

  /** Has the same answer given to the same question for so many seconds, without asking JavaScript
   * again: to all clients or, with `vary`, to the same client, or to its network. Without that, an
   * answer is not kept if who asks was looked at.
   *
   * Of both, in an array, `'client'` counts, which is the finer of the two. */
  cache(options) {
    const { ttl, vary } = checkedOptions('cache()', options, CACHE_OPTIONS);
    const varies = vary === undefined ? [] : [vary].flat();
    if (!Number.isInteger(ttl) || ttl < 0 || !varies.every((it) => Object.hasOwn(VARY, it))) {
      const wanted = "cache() needs whole seconds as ttl, and as vary 'client' or 'subnet'";
      throw wrongValue('ZONDA_RECORD', wanted, { ttl, vary });
    }
    const number = varies.includes('client') ? VARY.client : varies.length && VARY.subnet;
    if (this.#change()) this.#kept = { ttl: Math.min(ttl, TTL_MAX), vary: number };
    return this;
  }

  /** Says that the reply depends on the first bits of the client's network alone: the scope with
   * which it repeats the client subnet of the query (rfc7871#7.2.1). 0: it is the same for all. */
  clientSubnetScope(bits) {
    if (!Number.isInteger(bits) || bits < 0 || bits > SCOPE_MAX) {
      const wanted = `clientSubnetScope() needs a whole number of bits from 0 to ${SCOPE_MAX}`;
      throw errorWith('ZONDA_RECORD', `${wanted}, not ${brief(bits)}`, RangeError);
    }
    if (this.#change()) this.#scope = bits;
    return this;
  }

  /** Notes a value about the query under a key, for the query log, in place of one that was noted
   * under that key before. Clients do not get to see it; neither `clear()` nor `passOn()` takes it
   * away. */
  tag(key, value) {
    if (typeof key !== 'string' || key === '') {
      throw wrongValue('ZONDA_RECORD', "the key of a tag must be a text such as 'user'", key);
    }
    if (this.#change()) (this.#request[TAGS] ??= new Map()).set(key, String(value));
    return this;
  }

  /** Whether there is an answer: from a handler or, behind the last `next()`, from the core. */
  get answered() {
    return this.#ending !== ENDING.PASS_ON || this.#below !== null || this.#hasRecords();
  }

  /** Whether there are records, also such as a program has put into an array itself. */
  #hasRecords() {
    return this.#sections.some((records) => records !== null && records.length > 0);
  }

  /** Whether it was sent, so that nothing can be changed any more. */
  get sent() {
    return this.#sent;
  }

  /** The response code, such as `NXDOMAIN`. */
  get rcode() {
    this.#look();
    return rcodeWord(this.#rcode);
  }

  set rcode(rcode) {
    this.reply(rcode);
  }

  /** Whether the reply says that this server is responsible for the name. */
  get authoritative() {
    return this.#flag(FLAGS.aa);
  }

  set authoritative(is) {
    this.#setFlag(FLAGS.aa, is);
  }

  /** Whether the reply says that it was validated. */
  get authenticData() {
    return this.#flag(FLAGS.ad);
  }

  set authenticData(is) {
    this.#setFlag(FLAGS.ad, is);
  }

  #flag(flag) {
    this.#look();
    return (this.#flags & flag) !== 0;
  }

  #setFlag(flag, is) {
    if (this.#change()) this.#flags = is ? this.#flags | flag : this.#flags & ~flag;
  }

  /** The records of the answer; the array may be changed. */
  get answers() {
    return this.#section(0);
  }

  set answers(records) {
    this.#setSection(0, records);
  }

  /** The records of the authority section. */
  get authorities() {
    return this.#section(1);
  }

  set authorities(records) {
    this.#setSection(1, records);
  }

  /** The records of the additional section, OPT left out. */
  get additionals() {
    return this.#section(2);
  }

  set additionals(records) {
    this.#setSection(2, records);
  }

  /** The records of a section, each as it is read. */
  #section(section) {
    this.#look();
    const records = (this.#sections[section] ??= []);
    for (let place = 0; place < records.length; place++) {
      if (isAsRead(records[place])) continue;
      try {
        records[place] = asRead(records[place], this.#request.name);
      } catch (error) {
        throw this.#named(error, section, place, records[place]);
      }
    }
    return records;
  }

  /** An error of a record, which names where that is in the reply, and its data. */
  #named(error, section, index, record) {
    const isObject = Object(record) === record;
    const value = isObject ? record.data : record;
    const shown = isObject ? `; its data are ${brief(value)}` : '';
    const message = `${SECTIONS[section]}[${index}]: ${error.message}${shown}`;
    const Class = error instanceof RangeError ? RangeError : TypeError;
    return recordError(this.#request, message, { section: SECTIONS[section], index, value }, Class);
  }

  /** The section, the place there, and the data of a record that was written, by the numbers that
   * the core knows section and place by. */
  recordAt(section, place) {
    const isSent = (record) => typeNumber(record.type) !== OPT;
    const records = this.#sections[section] ?? [];
    const record = records.filter(isSent)[place];
    return { section: SECTIONS[section], index: records.indexOf(record), value: record?.data };
  }

  /** The records of the answer that have a type. */
  of(type) {
    return recordsOf(this.answers, type);
  }

  #setSection(section, records) {
    if (this.#change()) {
      this.#sections[section] = [...records];
      this.#ending = ENDING.REPLY;
    }
  }

  /** What middleware notes for later middleware and handlers. */
  get state() {
    return (this.#state ??= {});
  }

  set state(state) {
    this.#state = state;
  }

  /** What a log has of it. Records that the handler has added are as it gave them. */
  toJSON() {
    this.#look();
    const { answered } = this;
    if (!answered) return { answered };
    if (this.#ending === ENDING.DROP) return { answered, isDropped: true };
    const { rcode, authoritative, authenticData } = this;
    const [answers, authorities, additionals] = this.#sections.map((records) => records ?? []);
    const flags = { authoritative, authenticData };
    const error = this.#error === null ? {} : { error: { ...this.#error } };
    return { answered, rcode, ...flags, ...error, answers, authorities, additionals };
  }

  /** What `util.inspect` shows: the same. */
  [custom](depth, options) {
    return shown('Reply', this.toJSON(), depth, options);
  }

  /** Takes note of what the core would answer; `null` is silence. */
  setBelow(octets) {
    if (octets === null) this.#ending = ENDING.DROP;
    else this.#below = octets;
  }

  /** Reads what the core would answer. */
  #look() {
    if (this.#below === null || this.#read !== null) return;
    const message = decodeMessage(this.#below);
    if (message === null) return; // the core writes no such messages
    this.#rcode = rcodeNumber(message.rcode);
    this.#flags = message.flags & (FLAGS.aa | FLAGS.ra | FLAGS.ad | FLAGS.tc);
    this.#error = message.error;
    this.#sections = SECTIONS.map((section) => message[section]);
    this.#ending = ENDING.REPLY;
    this.#read = this.#changeable();
  }

  /** All that can be changed, as one text. */
  #changeable() {
    const [answers, authorities, additionals] = this.#sections;
    const parts = [this.#ending, this.#rcode, this.#flags, this.#error];
    return JSON.stringify([...parts, answers ?? [], authorities ?? [], additionals ?? []]);
  }

  /** Whether a change is still possible; who comes too late is told. */
  #change() {
    if (this.#sent) {
      const why =
        'was changed after it had been sent: return a promise, or await what is waited for';
      const error = errorWith('ZONDA_STATE', `${placeOf(this.#request)} ${why}`);
      this.#complain(error, this.#request);
      return false;
    }
    this.#look();
    return true;
  }

  /** Writes the reply into a batch. */
  write(batch) {
    this.#sent = true;
    const { [TICKET_LOW]: low, [TICKET_HIGH]: high, [SAW_CLIENT]: sawClient } = this.#request;
    const { [SAW_BELOW]: sawBelow, [HAS_GONE_ON]: hasGoneOn, [TAGS]: tags } = this.#request;
    const scope = this.#scope === null ? 0 : LOOKS.scope | this.#scope;
    const looks = scope | (sawClient ? LOOKS.client : 0);
    const isUnchanged = this.#read !== null && this.#read === this.#changeable();
    if (this.#ending === ENDING.PASS_ON && this.#hasRecords()) {
      this.#ending = ENDING.REPLY; // `res.answers.push(record)`
    }
    if (this.#ending !== ENDING.REPLY || isUnchanged) {
      const ending = isUnchanged ? ENDING.PASS_ON : this.#ending;
      batch.begin(low, high, ending, 0, 0, null, null, looks, tags);
      batch.end();
      return;
    }
    const isOfClient = this.#kept?.vary === 0 && (sawClient || sawBelow);
    // A handler that has left the query need not do so the next time.
    const kept = isOfClient || hasGoneOn ? null : this.#kept;
    const [rcode, flags, error] = [this.#rcode, this.#flags, this.#error];
    batch.begin(low, high, ENDING.REPLY, rcode, flags, error, kept, looks, tags);
    for (let section = 0; section < 3; section++) {
      const records = this.#sections[section];
      if (records === null) continue;
      for (let place = 0; place < records.length; place++) {
        const record = records[place];
        try {
          check(record);
          writeRecord(batch, section, record, this.#request);
        } catch (error) {
          throw this.#named(error, section, place, record);
        }
      }
    }
    batch.end();
  }
}

addFormerNames(Reply, {
  nodata: 'noData',
  fail: 'servfail',
  pass: 'passOn',
  error: 'extendedError',
  extra: 'state',
});

/** The options of a method of a reply; throws where one has none of the names that are known. */
function checkedOptions(method, options, names) {
  if (Object(options) === options) {
    checkNames('ZONDA_RECORD', options, names);
    return options;
  }
  throw wrongValue('ZONDA_RECORD', `${method} needs options such as { ttl: 60 }`, options);
}

/** The options of a negative reply; throws what is wrong with them. */
function negativeOptions(rcode, options) {
  const method = rcode === 'NXDOMAIN' ? 'nxdomain()' : 'noData()';
  const { soa } = checkedOptions(method, options, NEGATIVE_OPTIONS);
  if (soa === undefined || Object(soa) === soa) return options;
  throw wrongValue('ZONDA_RECORD', `${method} needs as soa an object such as { name, data }`, soa);
}

/** Writes a response into a batch. */
function writeResponse(batch, response) {
  response.write(batch);
}

/** Writes a record of the reply to a request into a batch. */
function writeRecord(batch, section, record, request) {
  const type = typeNumber(record.type);
  if (type === OPT) return; // the core adds its own
  const { name, ttl = TTL } = record;
  // The name asked for is read only to be compared: most handlers never ask for it.
  const owner = name === undefined || isSame(name, request.name) ? '' : String(name);
  batch.record(section, type, secondsOf(record, ttl), owner, record.data, wireOf(record));
}

/** A record of a program's as it is read, in the reply to a query for a name. */
function asRead(record, asked) {
  if (Object(record) !== record) throw notARecord(record);
  if (typeNumber(record.type) === OPT) return record; // it is not sent
  check(record);
  const { name, ttl = TTL } = record;
  const owner = name === undefined || name === '' ? asked : String(name); // as writeRecord() has it
  return readable({ ...record, name: owner, ttl: secondsOf(record, ttl) });
}

/** The records of an answer by which an alias leads to the name that is denied (rfc2308#2.1): CNAME
 * and DNAME with their signatures, unless they are what is asked for. */
function aliasesOf(answers, { type: asked }) {
  if (asked === 'ANY') return [];
  const isAlias = (type) => ALIASES.has(type) && type !== asked;
  return answers.filter((record) => {
    const type = isOfType(record, 'RRSIG') ? record.data?.typeCovered : record?.type;
    return type !== undefined && isAlias(typeWord(typeNumber(type)));
  });
}

/** Whether a record, or what stands in its place, has a type. */
function isOfType(record, type) {
  return record?.type !== undefined && typeWord(typeNumber(record.type)) === type;
}

/** Whether a name, with or without its final dot, is the one asked for, which is in lower case and
 * with its final dot. */
function isSame(name, asked) {
  if (name === asked) return true;
  const text = String(name);
  const left = asked.length - text.length;
  return (left === 0 || left === 1) && asked.startsWith(text.toLowerCase());
}

module.exports = { Reply, writeRecord, writeResponse };
