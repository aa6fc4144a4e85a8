'use strict';

// Serializers, for networks that programs write themselves: the core needs none.

const { FLAGS } = require('../lib/message.js');
const { decode, encode } = require('./codec.js');

/** Octets that a message over UDP has without EDNS (rfc1035#4.2.1). */
const UDP_OCTETS_MAX = 512;
/** Octets of a message that has nothing. */
const HEADER_OCTETS = 12;

/** A message as it is. */
class DNSPacketSerializer {
  encode(packet) {
    return encode(packet);
  }

  decode(octets) {
    return decode(octets);
  }
}

/** A message of at most 512 octets: one that is longer loses what is least important, and says so.
 * */
class UDPSerializer extends DNSPacketSerializer {
  encode(packet) {
    const octets = encode(packet);
    if (octets.length <= UDP_OCTETS_MAX) return octets;
    const isOpt = (record) => record.type === 'OPT';
    const cut = { ...packet, flags: (packet.flags ?? 0) | FLAGS.tc, answers: [] };
    cut.additionals = (packet.additionals ?? []).filter(isOpt);
    const { answers = [] } = packet;
    const lengths = answers.map((answer) => encode({ answers: [answer] }).length - HEADER_OCTETS);
    const all = lengths.reduce((sum, length) => sum + length, 0);
    if (encode(cut).length + all > UDP_OCTETS_MAX) cut.authorities = [];
    let left = UDP_OCTETS_MAX - encode(cut).length;
    const firstLeftOut = lengths.findIndex((length) => (left -= length) < 0);
    cut.answers = firstLeftOut < 0 ? answers : answers.slice(0, firstLeftOut);
    return encode(cut);
  }
}

/** A message behind its length (rfc1035#4.2.2). */
class TCPSerializer extends DNSPacketSerializer {
  encode(packet) {
    const octets = encode(packet);
    const length = Buffer.alloc(2);
    length.writeUInt16BE(octets.length);
    return Buffer.concat([length, octets]);
  }

  decode(octets) {
    const end = 2 + octets.readUInt16BE(0);
    if (octets.length < end) throw new RangeError('the message ends early');
    return decode(octets.subarray(2, end));
  }
}

module.exports = { DNSPacketSerializer, TCPSerializer, UDPSerializer };
