'use strict';

// Queries and replies as they cross the border to the core, many at once: src/batch.rs says how
// they lie.

const { encode } = require('./data.js');

/** What is to become of a query. */
const ENDING = { PASS_ON: 0, REPLY: 1, DROP: 2, FAILED: 3 };

/** What tells the core at how much of the client's network was looked: that a scope is said, which
 * stands beside it, and that something of the client was read; and that there are tags. */
const LOOKS = { scope: 0x100, client: 0x200, tags: 0x400 };

/** Octets of the buffers that queries are written into: a few hundred queries each. */
const QUERY_OCTETS = 64 * 1024;
/** Octets of the first buffer: a few hundred replies of one record. */
const OCTETS_FIRST = 64 * 1024;
/** Octets above which a batch is sent before its turn ends. */
const OCTETS_MAX = 1024 * 1024;
/** Characters up to which a loop copies text faster than a call does. */
const SHORT = 48;

/** Queries as they come, one batch behind another in a buffer until it is full: what was written is
 * never written again, so that a handler that waits can still read its query. */
class QueryBatches {
  #octets;
  #words;
  #used;

  constructor() {
    this.#renew(QUERY_OCTETS);
  }

  #renew(octets) {
    this.#octets = Buffer.allocUnsafeSlow(octets);
    this.#words = new Uint32Array(this.#octets.buffer, 0, octets >> 2);
    this.#used = 0;
  }

  /** Takes queries of a core that wait: where they begin and end among the numbers, and whether
   * there are more. */
  take(core) {
    let taken = core.take(this.#octets, this.#used);
    if (taken < 0) {
      this.#renew(Math.max(QUERY_OCTETS, -taken));
      taken = core.take(this.#octets, 0);
    }
    const start = this.#used >> 2;
    this.#used += taken & ~3;
    const [octets, words, end] = [this.#octets, this.#words, this.#used >> 2];
    return { octets, words, start, end, hasMore: (taken & 1) !== 0, received: undefined };
  }
}

/** Replies of a turn. */
class ReplyBatch {
  constructor() {
    this.length = 0;
    this.start = 0;
    this.grow(OCTETS_FIRST);
  }

  /** Makes room for so many octets in all. */
  grow(octets) {
    const former = this.octets;
    this.octets = Buffer.allocUnsafeSlow(octets);
    this.words = new Uint32Array(this.octets.buffer, 0, octets >> 2);
    if (former) this.octets.set(former.subarray(0, this.length));
  }

  /** Makes sure that there is room for so many octets more. */
  reserve(octets) {
    const needed = this.length + octets;
    if (needed > this.octets.length) this.grow(Math.max((needed + 3) & ~3, this.octets.length * 2));
  }

  /** Whether it should be sent now. */
  get isLong() {
    return this.length > OCTETS_MAX;
  }

  /** Appends a text, filled up to whole numbers; returns its octets. */
  text(text) {
    const { length } = text;
    this.reserve(length * 3 + 4);
    const { octets } = this;
    const start = this.length;
    let at = start;
    if (length <= SHORT) {
      for (let index = 0; index < length; index++) {
        const code = text.charCodeAt(index);
        if (code > 0x7f) {
          at = start + octets.utf8Write(text, start);
          break;
        }
        octets[at++] = code;
      }
    } else {
      at += octets.utf8Write(text, start);
    }
    this.length = (at + 3) & ~3;
    return at - start;
  }

  /** Appends octets, filled up to whole numbers. */
  bytes(octets) {
    this.reserve(octets.length + 4);
    this.octets.set(octets, this.length);
    this.length = (this.length + octets.length + 3) & ~3;
    return octets.length;
  }

  /** Begins a reply; `error` is an extended one: its code and text, and `kept` says for how many
   * seconds the reply may be given again, and what it depends on. `looks` tells at how much of the
   * client's network was looked, as src/batch.rs has it. `tags` are values by their keys, if there
   * are any. */
  begin(low, high, ending, rcode, flags, error, kept, looks, tags) {
    this.reserve(32);
    this.start = this.length;
    const { words } = this;
    let at = this.length >> 2;
    words[++at] = low;
    words[++at] = high;
    words[++at] = ending | (rcode << 8) | (error ? 1 << 24 : 0) | (kept ? kept.vary << 25 : 0);
    words[++at] = kept ? kept.ttl : 0;
    words[++at] = flags | (error ? error.code << 16 : 0);
    words[++at] = tags === undefined ? looks : looks | LOOKS.tags;
    words[++at] = 0;
    this.length += 32;
    if (error) {
      const octets = this.text(error.text);
      this.words[(this.start >> 2) + 7] = octets;
    }
    if (tags === undefined) return;
    this.word(tags.size);
    for (const text of [...tags].flat()) {
      const place = this.length >> 2;
      this.word(0);
      const octets = this.text(text);
      this.words[place] = octets;
    }
  }

  /** Appends a number. */
  word(number) {
    this.reserve(4);
    this.words[this.length >> 2] = number;
    this.length += 4;
  }

  /** Appends a record of the reply; an empty owner is the name asked for. `wire` are its data as on
   * the wire, if they are known. */
  record(section, type, ttl, owner, data, wire) {
    const encoded = wire ?? encode(type, data);
    this.reserve(12);
    const at = this.length >> 2;
    this.length += 12;
    const ownerOctets = owner === '' ? 0 : this.text(owner);
    const isText = typeof encoded === 'string';
    const dataOctets = isText ? this.text(encoded) : this.bytes(encoded);
    if (dataOctets > 0xffff || ownerOctets > 0xffff) {
      throw new RangeError('the data of a record have at most 65,535 octets');
    }
    this.words[at] = type | (section << 16) | (isText ? 1 << 24 : 0);
    this.words[at + 1] = ttl;
    this.words[at + 2] = ownerOctets | (dataOctets << 16);
  }

  /** Ends the reply. */
  end() {
    this.words[this.start >> 2] = this.length - this.start;
  }

  /** Forgets the reply that was begun. */
  abandon() {
    this.length = this.start;
  }

  /** The whole batch; valid until the next reply begins. */
  take() {
    const octets = this.octets.subarray(0, this.length);
    this.length = 0;
    return octets;
  }
}

module.exports = { ENDING, LOOKS, QueryBatches, ReplyBatch };
