'use strict';

// Requests and responses as DinoDNS's handlers see them.

const { EventEmitter } = require('node:events');
const { FLAGS } = require('../lib/message.js');
const { headerOf, optionOf } = require('./codec.js');
const { CombineFlags, HasFlag, RCode, SupportedNetworkType, plainName } = require('./utils.js');

/** Flags of a query that its response has, too. */
const ECHOED = FLAGS.rd | FLAGS.cd;
/** Called when a response is ready, by what is to send it. */
const SINK = Symbol('sink');
/** Whether a store has the name, so that there is no NXDOMAIN. */
const NAME_EXISTS = Symbol('name exists');
/** Whether a handler has failed. */
const FAILED = Symbol('failed');
/** The core's request behind a request of DinoDNS. */
const CORE = Symbol('core');
/** What answers with which response code. */
const ERRORS = {
  formatError: RCode.FORMAT_ERROR,
  serverFailure: RCode.SERVER_FAILURE,
  nxDomain: RCode.NX_DOMAIN,
  notImplemented: RCode.NOT_IMPLEMENTED,
  refused: RCode.REFUSED,
  yxDomain: RCode.YX_DOMAIN,
  yxRRSet: RCode.YX_RR_SET,
  notAuth: RCode.NOT_AUTH,
  notZone: RCode.NOT_ZONE,
};

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
  #request;
  frozen = false;

  /** Of a packet or, without one, of a request of the core. */
  constructor(packet, request) {
    this.#raw = packet;
    this.#request = request;
  }

  get raw() {
    return (this.#raw ??= new RawQuery(this.#request));
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
    return ['aa', 'tc', 'rd', 'ra', 'ad', 'cd'].filter((word) => HasFlag(flags, FLAGS[word]));
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
    const { additionals } = this.raw; // which may not have been read
    return new PacketWrapper({ ...this.raw, ...(additionals && { additionals }) });
  }

  freeze() {
    const copy = this.copy();
    copy.frozen = true;
    return copy;
  }
}

/** An emitter that has no lists of listeners before it has one: most responses never have. */
function Emitter() {}
Object.setPrototypeOf(Emitter.prototype, EventEmitter.prototype);

/** The methods of a response that answer with a response code, each made when it is asked for. */
class ErrorMethods {
  #fail;

  constructor(fail) {
    this.#fail = fail;
  }

  static {
    for (const [name, rcode] of Object.entries(ERRORS)) {
      const get = function () {
        return () => this.#fail(rcode);
      };
      Object.defineProperty(this.prototype, name, { get, enumerable: true });
    }
  }
}

/** The response to a request. Emits `answer` when it is ready, and `done` when it was sent. */
class DNSResponse extends Emitter {
  #connection;
  #metadata;
  #request;
  #finished = false;
  #errors;

  /** Connection and metadata are those of the request unless they are given. */
  constructor(packet, connection, metadata, request) {
    super();
    this.packet = new PacketWrapper(packet);
    this.#connection = connection;
    this.#metadata = metadata;
    this.#request = request;
    this.extra = undefined;
    this[CORE] = request?.[CORE];
    this[SINK] = undefined;
    this[NAME_EXISTS] = false;
    this[FAILED] = false;
  }

  get connection() {
    return this.#connection ?? this.#request?.connection;
  }

  get metadata() {
    return (this.#metadata ??= this.#request?.metadata ?? { ts: {} });
  }

  set metadata(metadata) {
    this.#metadata = metadata;
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
    return (this.#errors ??= new ErrorMethods((rcode) => this.#fail(rcode)));
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
  #received;

  /** Of a packet and a connection or, without them, of a request of the core. */
  constructor(packet, connection, received = clocks(), request = undefined) {
    this.packet = new PacketWrapper(packet, request);
    this.#connection = connection;
    this.#received = received;
    this.extra = undefined;
    this[CORE] = request;
  }

  get connection() {
    return (this.#connection ??= this[CORE] && connectionOf(this[CORE]));
  }

  set connection(connection) {
    this.#connection = connection;
  }

  get metadata() {
    return (this.#metadata ??= { ts: { ...this.#received } });
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
    return new DNSResponse(response, undefined, undefined, this);
  }

  data() {
    const { connection, extra, metadata, packet } = this;
    return { packet: packet.raw, connection, metadata, ...(extra ? { extra } : {}) };
  }
}

/** The time, as the metadata of a request have it. */
function clocks() {
  return { requestTimeMs: Date.now(), requestTimeNs: process.hrtime.bigint() };
}

/** How a request of the core came. */
function connectionOf(request, type) {
  const { TCP, UDP } = SupportedNetworkType;
  return {
    remoteAddress: request.clientAddress,
    remotePort: request.clientPort,
    type: type ?? (request.transport === 'tcp' ? TCP : UDP),
  };
}

/** The request that a query of the core is, which came when a clock said `received` and, unless the
 * core knows how, over `type`. */
function fromCore(request, received, type) {
  const connection = type === undefined ? undefined : connectionOf(request, type);
  return new DNSRequest(undefined, connection, received, request);
}

/** What headers say, by their flags: most queries have one of a few. */
const headers = new Map();

/** What a header says. */
function header(flags) {
  let known = headers.get(flags);
  if (known === undefined) headers.set(flags, (known = headerOf(flags))); // at most 65,536
  return known;
}

/** A query as dns-packet reads it, whose names have no final dot; its OPT record is read when it is
 * asked for. */
class RawQuery {
  #request;
  #additionals;

  constructor(request) {
    this.#request = request;
    const { flags } = request;
    const says = header(flags);
    this.id = request.id;
    this.type = 'query';
    this.flags = flags & 0x7fff;
    this.flag_qr = false; // responses do not come here
    this.opcode = says.opcode;
    this.flag_aa = says.flag_aa;
    this.flag_tc = says.flag_tc;
    this.flag_rd = says.flag_rd;
    this.flag_ra = says.flag_ra;
    this.flag_z = says.flag_z;
    this.flag_ad = says.flag_ad;
    this.flag_cd = says.flag_cd;
    this.rcode = says.rcode;
    this.questions = [{ name: plainName(request.name), type: request.type, class: 'IN' }];
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
  const read = options.map(({ code, data }) => optionOf(code, data));
  const rest = { extendedRcode: 0, ednsVersion: 0, flags, flag_do: dnssecOk, options: read };
  return [{ name: '.', type: 'OPT', udpPayloadSize: udpSize, ...rest }];
}

module.exports = {
  CORE,
  DNSRequest,
  DNSResponse,
  DuplicateAnswerForRequest,
  FAILED,
  ModifiedAfterSentError,
  NAME_EXISTS,
  PacketWrapper,
  SINK,
  clocks,
  fromCore,
};
