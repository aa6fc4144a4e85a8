'use strict';

// Where a server answers. UDP and TCP are the core's; TLS and HTTP are Node.js's, and ask the core.

const { EventEmitter } = require('node:events');
const http2 = require('node:http2');
const net = require('node:net');
const tls = require('node:tls');
const { decodeMessage, makeQuery } = require('../index.js');
const { SupportedNetworkType } = require('./utils.js');

/** Octets of the longest message. */
const MESSAGE_MAX = 65_535;
/** How long a connection over TLS may be idle, if it is not said, milliseconds. */
const IDLE_MILLIS = 10_000;

/** A place where queries come in. */
class CoreNetwork extends EventEmitter {
  constructor(networkType, address, port) {
    super();
    this.networkType = networkType;
    this.address = address;
    this.port = port;
    this.handler = undefined;
    this.server = undefined;
  }

  /** The address as the core is told it. */
  get listener() {
    return `${net.isIPv6(this.address) ? `[${this.address}]` : this.address}:${this.port}`;
  }

  /** The port that a server of Node.js has, which for port 0 is a free one. */
  get boundPort() {
    return this.server?.address()?.port;
  }

  /** Starts a server of Node.js; the core starts its own. */
  async open() {}

  /** Ends it. */
  async close() {}

  listen() {
    throw new Error(`${this.networkType} on port ${this.port} is opened by its server's start()`);
  }
}

/** Address and port, given as an object or, as in older programs, one after the other. */
function place(first, second) {
  return typeof first === 'object' ? first : { address: first, port: second };
}

/** DNS over UDP. */
class DNSOverUDP extends CoreNetwork {
  constructor(options, portNumber) {
    const { address, port, serializer } = place(options, portNumber);
    super(SupportedNetworkType.UDP, address, port);
    this.serializer = serializer;
  }
}

/** DNS over TCP, or TLS with `ssl`. */
class DNSOverTCP extends CoreNetwork {
  constructor(options, portNumber) {
    const { address, port, ssl, ...rest } = place(options, portNumber);
    super(ssl ? SupportedNetworkType.TLS : SupportedNetworkType.TCP, address, port);
    this.ssl = ssl;
    this.maxConnections = rest.maxConnections ?? Infinity;
    this.keepAlive = rest.keepAlive ?? true;
    this.timeout = rest.timeout ?? IDLE_MILLIS;
    this.serializer = rest.serializer;
  }

  async open(ask) {
    if (!this.ssl) return;
    const { cert, key } = this.ssl;
    this.server = tls.createServer({ cert, key, ALPNProtocols: ['dot'] }, (socket) => {
      answerFrames(socket, this, ask);
    });
    await listening(this.server, this);
  }

  async close() {
    await closed(this.server);
  }
}

/** Answers messages behind their lengths (rfc1035#4.2.2), in the order in which replies are there.
 * */
function answerFrames(socket, network, ask) {
  let received = Buffer.alloc(0);
  socket.setTimeout(network.timeout, () => socket.destroy());
  socket.on('error', () => socket.destroy());
  socket.on('data', (octets) => {
    received = received.length ? Buffer.concat([received, octets]) : octets;
    while (received.length >= 2 && received.length >= 2 + received.readUInt16BE(0)) {
      const end = 2 + received.readUInt16BE(0);
      const query = received.subarray(2, end);
      received = received.subarray(end);
      const answered = (reply) => {
        if (reply === null || socket.destroyed) return;
        const length = Buffer.alloc(2);
        length.writeUInt16BE(reply.length);
        socket.write(Buffer.concat([length, reply]));
      };
      ask(query, socket, network.networkType).then(answered, () => socket.destroy());
    }
  });
}

/** DNS over HTTP, or HTTPS with `ssl` (rfc8484). */
class DNSOverHTTP extends CoreNetwork {
  constructor({ address, port, ssl, maxConnections = Infinity }) {
    super(ssl ? SupportedNetworkType.HTTPS : SupportedNetworkType.HTTP, address, port);
    this.ssl = ssl;
    this.maxConnections = maxConnections;
  }

  async open(ask) {
    const answer = (request, response) => {
      this.#answer(request, response, ask).catch((error) => end(response, error.status ?? 500));
    };
    this.server = this.ssl
      ? http2.createSecureServer(
          { cert: this.ssl.cert, key: this.ssl.key, allowHTTP1: true },
          answer,
        )
      : http2.createServer(answer);
    await listening(this.server, this);
  }

  async close() {
    await closed(this.server);
  }

  async #answer(request, response, ask) {
    const query = await message(request);
    const reply = await ask(query, request.socket, this.networkType);
    if (reply === null) throw status(400);
    const head = { 'content-type': 'application/dns-message', 'content-length': reply.length };
    response.writeHead(200, { ...head, 'cache-control': `max-age=${leastTtl(reply)}` });
    response.end(request.method === 'HEAD' ? undefined : reply);
  }
}

/** An error that HTTP has a number for. */
function status(number) {
  return Object.assign(new Error(`status ${number}`), { status: number });
}

/** Ends a response without content. */
function end(response, number) {
  if (response.headersSent) return response.end();
  response.writeHead(number);
  return response.end();
}

/** The query in a request. */
async function message(request) {
  const { pathname, searchParams } = new URL(request.url, 'http://localhost');
  if (pathname !== '/dns-query') throw status(404);
  if (request.method === 'POST') return body(request);
  if (request.method !== 'GET' && request.method !== 'HEAD') throw status(405);
  const dns = searchParams.get('dns');
  if (dns) return Buffer.from(dns, 'base64url');
  const name = searchParams.get('name');
  if (!name) throw status(400);
  try {
    return makeQuery({ name, type: searchParams.get('type') ?? 'A' });
  } catch {
    throw status(400);
  }
}

/** The content of a request. */
async function body(request) {
  const parts = [];
  let octets = 0;
  for await (const part of request) {
    octets += part.length;
    if (octets > MESSAGE_MAX) throw status(413);
    parts.push(part);
  }
  return Buffer.concat(parts);
}

/** How long a reply may be kept, seconds: as long as the record that may be kept least. */
function leastTtl(reply) {
  const message = decodeMessage(reply);
  const records = message ? [...message.answers, ...message.authorities] : [];
  return records.length ? Math.min(...records.map((record) => record.ttl)) : 0;
}

/** Waits until a server listens. */
async function listening(server, { address, maxConnections, port }) {
  server.maxConnections = maxConnections;
  await new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, address, resolve);
  });
  server.on('error', (error) => console.error(error));
}

/** Waits until a server has closed. */
async function closed(server) {
  if (!server?.listening) return;
  server.close();
  server.closeAllConnections?.();
}

module.exports = { CoreNetwork, DNSOverHTTP, DNSOverTCP, DNSOverUDP };
