'use strict';

// Where a server answers. UDP and TCP are the core's; TLS and HTTP are Node.js's, and ask the core.

const dns = require('node:dns/promises');
const { EventEmitter } = require('node:events');
const net = require('node:net');
const { NodeServer, httpServer, tlsServer } = require('./node-server.js');
const { DNSPacketSerializer, TCPSerializer, UDPSerializer } = require('./serializers.js');
const { SupportedNetworkType } = require('./utils.js');

/** How long a connection over TLS or HTTP may be idle, if it is not said, milliseconds. */
const IDLE_MILLIS = 10_000;
/** Where a network listens that has no address. */
const ALL_ADDRESSES = '0.0.0.0';
/** Methods for listeners, which a server of Node.js has, too. */
const LISTENER_METHODS = ['addListener', 'on', 'once', 'off', 'removeListener'];

/** A place where queries come in. Emits `listening`, `error` and `close`; with a server of Node.js
 * all that this emits. */
class CoreNetwork extends EventEmitter {
  /** The server of Node.js, for TLS and HTTP. */
  #node;
  /** The address that a name stands for, once it is known. */
  #numeric = undefined;
  handler = undefined;

  /** `place` is what a program gives. */
  constructor(networkType, { address, port, serializer }, node) {
    super();
    this.networkType = networkType;
    this.address = address;
    this.port = port;
    this.serializer = serializer;
    this.#node = node;
  }

  /** The server of Node.js; nothing for UDP and TCP, which are the core's. */
  get server() {
    return this.#node?.server;
  }

  /** Learns the address that a name such as `localhost` stands for, an IPv4 one if there is one; no
   * name is all addresses. The core listens on addresses only. */
  async resolve() {
    if (this.isOfNode || net.isIP(this.address)) return;
    if (this.address === undefined || this.address === '') {
      this.#numeric = ALL_ADDRESSES;
      return;
    }
    const found = await dns.lookup(this.address, { all: true });
    this.#numeric = (found.find(({ family }) => family === 4) ?? found[0]).address;
  }

  /** The address as the core is told it. */
  get listener() {
    const address = this.#numeric ?? this.address;
    return `${net.isIPv6(address) ? `[${address}]` : address}:${this.port}`;
  }

  /** The port that a server of Node.js has, which for port 0 is a free one. */
  get boundPort() {
    return this.server?.address()?.port;
  }

  /** Starts a server of Node.js, which asks a function; the core starts its own. */
  async open(ask) {
    await this.#node?.open(this, ask);
  }

  /** Tells that it is listened on, for the core's. */
  tellListening() {
    if (!this.isOfNode) this.emit('listening');
  }

  /** Whether an error of the core is about this network. */
  isNamedIn(error) {
    return error.message.includes(` ${this.listener} (${this.networkType})`);
  }

  /** Whether this network has a server of Node.js, which tells of its errors itself. */
  get isOfNode() {
    return this.#node !== undefined;
  }

  /** Whether that has told somebody of an error. */
  hasTold(error) {
    return this.#node?.hasTold(error) ?? false;
  }

  /** Answers what was received over a server of Node.js, and ends it. */
  async close() {
    if (this.isOfNode) await this.#node.close();
    else this.emit('close');
  }

  listen() {
    throw new Error(`${this.networkType} on port ${this.port} is opened by its server's start()`);
  }
}

for (const method of LISTENER_METHODS) {
  CoreNetwork.prototype[method] = function (event, listener) {
    const emitter = this.server ?? this;
    (this.server ?? EventEmitter.prototype)[method].call(emitter, event, listener);
    return this;
  };
}

/** Address and port, given as an object or, as in older programs, one after the other. */
function place(first, second) {
  return typeof first === 'object' ? first : { address: first, port: second };
}

/** DNS over UDP. */
class DNSOverUDP extends CoreNetwork {
  constructor(options, portNumber) {
    const { serializer = new UDPSerializer(), ...rest } = place(options, portNumber);
    super(SupportedNetworkType.UDP, { ...rest, serializer });
  }
}

/** What is said of connections, or else holds for them. */
function limits({ maxConnections = Infinity, keepAlive = true, timeout = IDLE_MILLIS }) {
  return { maxConnections, keepAlive, timeout };
}

/** DNS over TCP, or TLS with `ssl`. */
class DNSOverTCP extends CoreNetwork {
  constructor(options, portNumber) {
    const { ssl, serializer = new TCPSerializer(), ...rest } = place(options, portNumber);
    const type = ssl ? SupportedNetworkType.TLS : SupportedNetworkType.TCP;
    super(type, { ...rest, serializer }, ssl && new NodeServer(tlsServer(ssl)));
    Object.assign(this, { ssl }, limits(rest));
  }
}

/** DNS over HTTP, or HTTPS with `ssl` (rfc8484). */
class DNSOverHTTP extends CoreNetwork {
  constructor({ ssl, ...rest }) {
    const type = ssl ? SupportedNetworkType.HTTPS : SupportedNetworkType.HTTP;
    const serializer = new DNSPacketSerializer();
    super(type, { ...rest, serializer }, new NodeServer(httpServer(ssl)));
    Object.assign(this, { ssl }, limits(rest));
  }
}

module.exports = { CoreNetwork, DNSOverHTTP, DNSOverTCP, DNSOverUDP };
