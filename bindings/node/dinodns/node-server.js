'use strict';

// Servers of Node.js, for TLS and HTTP, which have the core answer what they receive.

const http2 = require('node:http2');
const tls = require('node:tls');
const { decodeMessage, makeQuery } = require('../index.js');
const { MESSAGE_MAX } = require('./octets.js');

/** How long clients have time to close connections when a server ends, milliseconds. */
const CLOSE_MILLIS = 500;

/** A server, its connections, and what it waits for. */
class NodeServer {
  server;
  /** The network that it is a part of, and what answers queries. */
  #network;
  #ask;
  /** Connections, what TLS makes of them, and the sessions of HTTP/2 over them. */
  #connections = new Set();
  #secure = new Set();
  #sessions = new Set();
  /** Promises of replies. */
  #awaited = new Set();
  /** The error that listeners of the server were told of. */
  #told;

  /** `make` makes a server that has a function answer queries. */
  constructor(make) {
    this.server = make((query, socket) => this.#reply(query, socket));
    const noted = (open, begin) => (it) => {
      open.add(it);
      it.on('close', () => open.delete(it));
      begin?.(it);
    };
    const begin = (socket) => {
      socket.setNoDelay(true);
      socket.setKeepAlive(this.#network.keepAlive);
    };
    const isIdle = (socket) => {
      socket.setTimeout(this.#network.timeout);
      socket.on('timeout', () => socket.destroy());
    };
    this.server.on('connection', noted(this.#connections, begin));
    this.server.on('session', noted(this.#sessions));
    if (!isHttp(this.server)) this.server.on('secureConnection', noted(this.#secure, isIdle));
  }

  /** Waits until it listens. */
  async open(network, ask) {
    [this.#network, this.#ask] = [network, ask];
    const { server } = this;
    server.maxConnections = network.maxConnections;
    if (isHttp(server)) server.timeout = network.timeout; // of sessions, and of HTTP/1.1
    await new Promise((resolve, reject) => {
      const isHeard = server.listenerCount('error') > 0;
      const failed = (error) => {
        if (isHeard) this.#told = error;
        reject(error);
      };
      server.once('error', failed);
      server.listen(network.port, network.address, () => {
        server.off('error', failed);
        resolve();
      });
    });
    server.on('error', logError);
  }

  /** Whether listeners of the server were told of an error. */
  hasTold(error) {
    return this.#told === error;
  }

  /** The core's reply to a query from a socket. */
  async #reply(query, socket) {
    const reply = this.#ask(query, socket, this.#network.networkType);
    this.#awaited.add(reply);
    try {
      return await reply;
    } finally {
      this.#awaited.delete(reply);
    }
  }

  /** Takes no more connections, answers what was received, and closes those that there are. */
  async close() {
    const { server } = this;
    if (!server.listening) return;
    server.off('error', logError);
    const closed = new Promise((resolve) => server.close(resolve));
    await Promise.allSettled(this.#awaited);
    await new Promise((resolve) => setImmediate(resolve)); // until the replies are written
    for (const session of this.#sessions) session.close();
    for (const socket of this.#secure) socket.destroySoon();
    const timer = setTimeout(() => {
      for (const it of [...this.#sessions, ...this.#connections]) it.destroy();
    }, CLOSE_MILLIS);
    await closed;
    clearTimeout(timer);
  }
}

/** Whether a server speaks HTTP. */
function isHttp(server) {
  return 'updateSettings' in server;
}

/** Writes an error that nobody waits for. */
function logError(error) {
  console.error(error);
}

/** What makes a server for TLS with a certificate. */
function tlsServer({ cert, key }) {
  return (ask) => {
    const options = { cert, key, ALPNProtocols: ['dot'] };
    return tls.createServer(options, (socket) => answerFrames(socket, ask));
  };
}

/** Answers messages behind their lengths (rfc1035#4.2.2), in the order in which replies are there.
 * */
function answerFrames(socket, ask) {
  let received = Buffer.alloc(0);
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
      ask(query, socket).then(answered, () => socket.destroy());
    }
  });
}

/** What makes a server for HTTP/2, or with a certificate for HTTPS, also over HTTP/1.1. */
function httpServer(ssl) {
  return (ask) => {
    const answer = (request, response) => {
      const failed = (error) => end(response, error.status ?? 500);
      answerRequest(request, response, ask).catch(failed);
    };
    if (!ssl) return http2.createServer(answer);
    const { cert, key } = ssl;
    return http2.createSecureServer({ cert, key, allowHTTP1: true }, answer);
  };
}

/** Answers a request (rfc8484). */
async function answerRequest(request, response, ask) {
  const query = await message(request);
  const reply = await ask(query, request.socket);
  if (reply === null) throw status(400);
  const head = { 'content-type': 'application/dns-message', 'content-length': reply.length };
  response.writeHead(200, { ...head, 'cache-control': `max-age=${leastTtl(reply)}` });
  response.end(request.method === 'HEAD' ? undefined : reply);
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

module.exports = { NodeServer, httpServer, tlsServer };
