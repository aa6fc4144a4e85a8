'use strict';

// Requests and responses as DinoDNS's handlers see them.

const { EventEmitter } = require('node:events');
const { FLAGS } = require('../lib/message.js');
const { CombineFlags, HasFlag, RCode, SupportedNetworkType } = require('./utils.js');

/** Flags of a query that its response has, too. */
const ECHOED = FLAGS.rd | FLAGS.cd;
/** Called when a response is ready, by what is to send it. */
const SINK = Symbol('sink');
/** Whether a store has the name, so that there is no NXDOMAIN. */
const NAME_EXISTS = Symbol('name exists');
/** Whether a handler has failed. */
const FAILED = Symbol('failed');

/** A response was changed after it had been sent. */
class ModifiedAfterSentError extends Error {
  constructor() {
    super('Cannot modify response after it has been sent');
    this.name = 'ModifiedAfterSentError';
  }
}

/** A request was answered twice. */
class DuplicateAnswerForRequest extends Error {
  constructor() {
    super('Cannot send more than one answer for an already-resolved query');
    this.name = 'DuplicateAnswerForRequest';
  }
}

/** A message as dns-packet writes it, made when it is looked at. */
class PacketWrapper {
  #raw;
  #make;
  frozen = false;

  constructor(packet) {
    if (typeof packet === 'function') this.#make = packet;
    else this.#raw = packet;
  }

  get raw() {
    return (this.#raw ??= this.#make());
  }

  set raw(raw) {
    this.#change();
    this.#raw = raw;
  }

  #change() {
    if (this.frozen) throw new ModifiedAfterSentError();
  }

  get id() {
    return this.raw.id ?? 0;
  }

  get type() {
    return this.raw.type;
  }

  set type(type) {
    this.#change();
    this.raw.type = type;
  }

  get flags() {
    return this.raw.flags ?? 0;
  }

  set flags(flags) {
    this.#change();
    this.raw.flags = flags;
  }

  get flagsArray() {
    const { flags } = this;
    const words = ['aa', 'tc', 'rd', 'ra', 'ad', 'cd'].filter((word) =>
      HasFlag(flags, FLAGS[word]),
    );
    return this.type === 'response' ? ['qr', ...words] : words;
  }

  get rcode() {
    return RCode[this.flags & 0xf];
  }

  set rcode(rcode) {
    this.#change();
    if (typeof rcode !== 'number' || RCode[rcode] === undefined) throw new Error('Invalid rcode');
    this.raw.flags = CombineFlags([this.flags & ~0xf, rcode]);
  }

  addFlag(flag) {
    this.flags |= flag;
  }

  removeFlag(flag) {
    this.flags &= ~flag;
  }

  get questions() {
    return this.raw.questions ?? [];
  }

  set questions(questions) {
    this.#change();
    this.raw.questions = questions;
  }

  get answers() {
    return this.#section(this.raw.answers);
  }

  set answers(answers) {
    this.#change();
    this.raw.answers = answers;
  }

  get authorities() {
    return this.#section(this.raw.authorities);
  }

  set authorities(authorities) {
    this.#change();
    this.raw.authorities = authorities;
  }

  get additionals() {
    return this.#section(this.raw.additionals);
  }

  set additionals(additionals) {
    this.#change();
    this.raw.additionals = additionals;
  }

  /** A section, which cannot be changed once the message was sent. */
  #section(records = []) {
    return this.frozen ? Object.freeze(records) : records;
  }

  copy() {
    return new PacketWrapper({ ...this.raw });
  }

  freeze() {
    const copy = this.copy();
    copy.frozen = true;
    return copy;
  }
}

/** The response to a request. Emits `answer` when it is ready, and `done` when it was sent. */
class DNSResponse extends EventEmitter {
  #connection;
  #finished = false;
  #errors;

  constructor(packet, connection, metadata) {
    super();
    this.packet = new PacketWrapper(packet);
    this.#connection = connection;
    this.metadata = metadata ?? { ts: {} };
    this.extra = undefined;
    this[SINK] = undefined;
    this[NAME_EXISTS] = false;
    this[FAILED] = false;
  }

  get connection() {
    if (typeof this.#connection === 'function') this.#connection = this.#connection();
    return this.#connection;
  }

  /** Takes the response as it is. */
  done() {
    this.packet.frozen = true;
    this.#finished = true;
    this[SINK]?.(this);
    this.emit('answer', this);
  }

  get finished() {
    return this.#finished;
  }

  answer(answer) {
    if (this.#finished) throw new DuplicateAnswerForRequest();
    this.packet.answers = Array.isArray(answer) ? answer : [answer];
    this.done();
  }

  resolve() {
    if (this.#finished) throw new DuplicateAnswerForRequest();
    this.done();
  }

  /** Methods that answer with a response code. */
  get errors() {
    return (this.#errors ??= {
      formatError: () => this.#fail(RCode.FORMAT_ERROR),
      serverFailure: () => this.#fail(RCode.SERVER_FAILURE),
      nxDomain: () => this.#fail(RCode.NX_DOMAIN),
      notImplemented: () => this.#fail(RCode.NOT_IMPLEMENTED),
      refused: () => this.#fail(RCode.REFUSED),
      yxDomain: () => this.#fail(RCode.YX_DOMAIN),
      yxRRSet: () => this.#fail(RCode.YX_RR_SET),
      notAuth: () => this.#fail(RCode.NOT_AUTH),
      notZone: () => this.#fail(RCode.NOT_ZONE),
    });
  }

  #fail(rcode) {
    if (this.#finished) throw new DuplicateAnswerForRequest();
    this.packet.rcode = rcode;
    if (rcode !== RCode.NX_DOMAIN) this.packet.removeFlag(FLAGS.aa); // it says nothing of the name
    this.done();
  }

  data() {
    const { connection, extra, metadata, packet } = this;
    return { packet: packet.raw, connection, metadata, ...(extra ? { extra } : {}) };
  }
}

/** A request. */
class DNSRequest {
  #connection;
  #metadata;

  /** `packet` and `connection` may be functions that make them. */
  constructor(packet, connection) {
    this.packet = new PacketWrapper(packet);
    this.#connection = connection;
    this.#metadata = {
      ts: { requestTimeMs: Date.now(), requestTimeNs: process.hrtime.bigint() },
    };
    this.extra = undefined;
  }

  get connection() {
    if (typeof this.#connection === 'function') this.#connection = this.#connection();
    return this.#connection;
  }

  set connection(connection) {
    this.#connection = connection;
  }

  get metadata() {
    return this.#metadata;
  }

  set metadata(metadata) {
    this.#metadata = metadata;
  }

  toAnswer() {
    const { packet } = this;
    const response = {
      id: packet.id,
      type: 'response',
      flags: (packet.flags & ECHOED) | FLAGS.aa,
      questions: packet.questions,
      answers: [],
      authorities: [],
      additionals: [],
    };
    return new DNSResponse(response, () => this.connection, this.metadata);
  }

  data() {
    const { connection, extra, metadata, packet } = this;
    return { packet: packet.raw, connection, metadata, ...(extra ? { extra } : {}) };
  }
}

/** The request that a query of the core is. */
function fromCore(request, type) {
  const connection = () => ({
    remoteAddress: request.clientAddress,
    remotePort: request.clientPort,
    type:
      type ?? (request.transport === 'tcp' ? SupportedNetworkType.TCP : SupportedNetworkType.UDP),
  });
  return new DNSRequest(() => new RawQuery(request), connection);
}

/** A query as dns-packet reads it; its OPT record is read when it is asked for. */
class RawQuery {
  #request;
  #additionals;

  constructor(request) {
    this.#request = request;
    this.id = request.id;
    this.type = 'query';
    this.flags = request.flags & 0x7fff;
    this.opcode = 'QUERY';
    this.questions = [{ name: request.name, type: request.type, class: 'IN' }];
    this.answers = [];
    this.authorities = [];
  }

  get additionals() {
    return (this.#additionals ??= opt(this.#request.edns));
  }

  set additionals(records) {
    this.#additionals = records;
  }
}

/** The OPT record of a query. */
function opt(edns) {
  if (edns === null) return [];
  const { dnssecOk, options, udpSize } = edns;
  const flags = dnssecOk ? 0x8000 : 0;
  const rest = { extendedRcode: 0, ednsVersion: 0, flags, flag_do: dnssecOk, options };
  return [{ name: '.', type: 'OPT', udpPayloadSize: udpSize, ...rest }];
}

module.exports = {
  DNSRequest,
  DNSResponse,
  DuplicateAnswerForRequest,
  FAILED,
  ModifiedAfterSentError,
  NAME_EXISTS,
  PacketWrapper,
  SINK,
  fromCore,
};
