'use strict';

// Octets that are read and written one after the other.

/** Octets of the longest message (rfc1035#4.2.2). */
const MESSAGE_MAX = 65_535;

/** Reads octets of a message up to an end. */
class Reader {
  #octets;
  #end;
  /** Where it reads next. */
  at;

  constructor(octets, at = 0, end = octets.length) {
    this.#octets = octets;
    this.at = at;
    this.#end = end;
  }

  get isAtEnd() {
    return this.at >= this.#end;
  }

  /** So many octets, which are the caller's. */
  take(count) {
    if (this.at + count > this.#end) throw new RangeError('the message ends early');
    this.at += count;
    return Buffer.from(this.#octets.subarray(this.at - count, this.at));
  }

  /** All that are left. */
  rest() {
    return this.take(this.#end - this.at);
  }

  /** Those behind their number. */
  counted() {
    return this.take(this.u8());
  }

  u8() {
    return this.take(1)[0];
  }

  u16() {
    return this.take(2).readUInt16BE();
  }

  u32() {
    return this.take(4).readUInt32BE();
  }

  /** A reader of the next octets, which are passed over. */
  part(count) {
    const start = this.at;
    if (start + count > this.#end) throw new RangeError('the message ends early');
    this.at += count;
    return new Reader(this.#octets, start, this.at);
  }

  /** A reader of another place of the same message. */
  elsewhere(at) {
    return new Reader(this.#octets, at);
  }
}

/** Writes a message. */
class Writer {
  #octets = Buffer.alloc(512);
  #length = 0;

  /** Makes room, perhaps in another buffer; returns where it is. */
  #reserve(count) {
    const at = this.#length;
    if (at + count > MESSAGE_MAX) throw new RangeError('the message is longer than 65,535 octets');
    if (at + count > this.#octets.length) {
      this.#octets = Buffer.concat([this.#octets, Buffer.alloc(at + count)]);
    }
    this.#length += count;
    return at;
  }

  u8(number) {
    const at = this.#reserve(1);
    this.#octets.writeUInt8(number, at);
  }

  u16(number) {
    const at = this.#reserve(2);
    this.#octets.writeUInt16BE(number, at);
  }

  u32(number) {
    const at = this.#reserve(4);
    this.#octets.writeUInt32BE(number, at);
  }

  /** Octets, or the text that they are. */
  octets(value) {
    const octets = value instanceof Uint8Array ? value : Buffer.from(String(value));
    const at = this.#reserve(octets.length);
    this.#octets.set(octets, at);
  }

  /** Octets, or a text, behind their number. */
  counted(value) {
    const octets = value instanceof Uint8Array ? value : Buffer.from(String(value));
    this.u8(octets.length);
    this.octets(octets);
  }

  /** What a function writes, behind its length. */
  withLength(write) {
    const at = this.#reserve(2);
    write();
    this.#octets.writeUInt16BE(this.#length - at - 2, at);
  }

  /** All that was written. */
  end() {
    return Buffer.from(this.#octets.subarray(0, this.#length));
  }
}

module.exports = { MESSAGE_MAX, Reader, Writer };
