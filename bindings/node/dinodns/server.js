'use strict';

// DinoDNS's servers, on Zonda's core.

const cluster = require('node:cluster');
const os = require('node:os');
const { Bridge } = require('../lib/bridge.js');
const { ENDING, LOOKS, ReplyBatch } = require('../lib/batch.js');
const { FLAGS } = require('../lib/message.js');
const { TICKET_HIGH, TICKET_LOW } = require('../lib/request.js');
const { writeRecord } = require('../lib/response.js');
const { CoreNetwork } = require('./networks.js');
const { CORE, FAILED, NAME_EXISTS, SINK, clocks, fromCore } = require('./packet.js');
const { STORE, registerCache } = require('./plugins.js');
const { DefaultRouter } = require('./router.js');
const { SupportedNetworkType } = require('./utils.js');

/** Bits of the flags that a program decides on. */
const FLAGS_OWN = FLAGS.aa | FLAGS.ra | FLAGS.ad | FLAGS.tc;
/** Writes the records of stores. */
const encoder = new ReplyBatch();
/** The code of the EDNS option that holds an extended error. */
const OPTION_EXTENDED_ERROR = 15;

/** Errors of the core, about networks that it listens on. */
const errorsOfCore = new WeakSet();

/** A server that calls middleware, then all handlers of a name. */
class DefaultServer {
  #bridge;
  #router;
  #isStopping = false;
  /** The store that the core answers from, and what it tells of its changes. */
  #mirrored;
  /** How queries came that Node.js received, by who asks. */
  #ways = new Map();

  constructor({ networks, router = new DefaultRouter(), multithreaded = false, defaultHandler }) {
    this.networks = networks;
    this.multithreaded = multithreaded;
    this.#router = router;
    if (defaultHandler) this.default = defaultHandler;
    for (const network of this.networks) network.handler = (req) => this.#answerOther(req);
  }

  use(handler) {
    this.#router.use(handler);
    this.#publish();
  }

  handle(domain, handler) {
    this.#router.handle(domain, handler);
    this.#publish();
  }

  /** Tells the core who answers: the program or, if all that it has is a store, the core from that.
   * */
  #publish() {
    if (this.#bridge === undefined) return;
    const store = this.#router instanceof DefaultRouter ? this.#router.only?.[STORE] : undefined;
    const isUsual = this.default === DefaultServer.prototype.default;
    if (this.#mirrored?.store === store && store !== undefined && isUsual) return;
    this.#endMirror();
    if (store === undefined || !isUsual || !this.#mirror(store)) {
      this.#bridge.core.setCode([{ pattern: '*', handler: 0 }], false);
    }
  }

  /** Has the core answer from a store; `false` if it cannot. */
  #mirror(store) {
    const { core } = this.#bridge;
    const watcher = (name, records) => {
      try {
        if (name === undefined) throw new Error('the store is changed by others');
        core.setRecords(name, encoded(records ?? new Map()));
      } catch {
        // The program answers instead, and tells what is wrong when it is asked for.
        this.#endMirror();
        core.setCode([{ pattern: '*', handler: 0 }], false);
      }
    };
    this.#mirrored = { store, watcher };
    if (!store.watch(watcher) || this.#mirrored === undefined) {
      this.#endMirror();
      return false;
    }
    core.answerFromTable();
    return true;
  }

  #endMirror() {
    this.#mirrored?.store.unwatch(this.#mirrored.watcher);
    this.#mirrored = undefined;
    this.#bridge.core.clearRecords();
  }

  /** Answers what no handler has answered. */
  default(req, res, next) {
    if (res[NAME_EXISTS]) res.resolve();
    else res.errors.nxDomain();
    next();
  }

  resolveWildcard(domain) {
    return domain.replace(/\*/g, '.*');
  }

  /** Calls all that a request has. */
  handleQueries(req, res) {
    const name = req.packet.questions[0]?.name;
    if (!name) return res.errors.refused();
    const end = (error) => {
      if (error) console.error(error);
      if (res.finished) return;
      // A failure is not the absence of the name.
      if (res[FAILED]) res.errors.serverFailure();
      else this.#default(req, res);
    };
    try {
      this.#router.match(name)(req, res, end);
    } catch (error) {
      res[FAILED] = true;
      end(error);
    }
  }

  #default(req, res) {
    const failed = (error) => {
      console.error(error);
      if (!res.finished) res.errors.serverFailure();
    };
    try {
      const result = this.default(req, res, (error) => error && console.error(error));
      if (typeof result?.then === 'function') result.then(undefined, failed);
    } catch (error) {
      failed(error);
    }
  }

  /** Starts to answer; with several processes, in each of them. */
  start(callback) {
    if (this.multithreaded && cluster.isPrimary) {
      this.#fork();
      return Promise.resolve();
    }
    const started = this.#start().then(callback, async (error) => {
      const isTold = this.#tellError(error);
      if (isTold) started.catch(() => {}); // who listens need not wait, too
      for (const network of this.networks) if (network.server?.listening) await network.close();
      await this.#endCore();
      throw error;
    });
    return started;
  }

  /** Tells networks of an error that kept them from being listened on; whether one was listened to.
   * */
  #tellError(error) {
    const ours = this.networks.filter((network) => network instanceof CoreNetwork);
    if (ours.some((network) => network.hasTold(error))) return true;
    const isOfCore = errorsOfCore.has(error);
    const ofCore = ours.filter((network) => isOfCore && !network.isOfNode);
    const named = ofCore.filter((network) => network.isNamedIn(error));
    const about = named.length > 0 ? named : ofCore;
    const heard = about.filter((network) => network.listenerCount('error') > 0);
    for (const network of heard) network.emit('error', error);
    return heard.length > 0;
  }

  #fork() {
    for (let count = os.availableParallelism(); count > 0; count--) cluster.fork();
    cluster.on('exit', (worker, code, signal) => {
      if (this.#isStopping || worker.exitedAfterDisconnect) return;
      console.log(
        `worker ${worker.process.pid} has ended (${signal ?? code}); another one is started`,
      );
      cluster.fork();
    });
  }

  async #start() {
    for (const network of this.networks) await network.resolve?.();
    const listen = listeners(this.networks);
    const options = {
      listen,
      listensNowhere: listen.length === 0, // what Node.js receives comes by `query`
      zones: [],
      forward: [],
      sharesAddresses: this.multithreaded,
    };
    if (this.multithreaded) options.workers = 1;
    const complain = (error) => console.error(error);
    const dispatch = (request, batch) => this.#dispatch(request, batch);
    this.#bridge = new Bridge(options, dispatch, complain);
    this.#publish();
    await this.#bridge.start().catch((error) => {
      this.#endMirror();
      this.#bridge = undefined;
      errorsOfCore.add(error);
      throw error;
    });
    for (const network of this.networks) {
      if (network instanceof CoreNetwork) await network.open(this.#ask);
      else network.listen();
    }
    for (const network of this.networks) network.tellListening?.();
  }

  /** Ends; what was received is answered. */
  async stop() {
    this.#isStopping = true;
    if (this.multithreaded && cluster.isPrimary) {
      for (const worker of Object.values(cluster.workers)) worker.kill();
    }
    for (const network of this.networks) await network.close();
    await this.#endCore();
  }

  async #endCore() {
    const bridge = this.#bridge;
    if (bridge !== undefined) this.#endMirror();
    this.#bridge = undefined;
    await bridge?.stop();
  }

  /** The addresses that the core answers on. */
  get addresses() {
    return this.#bridge?.core.addresses() ?? [];
  }

  /** Has the core answer a query that Node.js received. */
  #ask = async (query, socket, type) => {
    const { remoteAddress, remotePort } = socket;
    const host = remoteAddress.includes(':') ? `[${remoteAddress}]` : remoteAddress;
    const client = `${host}:${remotePort}`;
    const way = this.#ways.get(client) ?? { type, count: 0 };
    way.count++;
    this.#ways.set(client, way);
    try {
      return await this.#bridge.query(query, client);
    } finally {
      if (--way.count === 0) this.#ways.delete(client);
    }
  };

  /** Answers a query of the core. */
  #dispatch(request, batch) {
    const way = this.#ways.size > 0 ? this.#ways.get(request.clientText)?.type : undefined;
    const req = fromCore(request, (batch.received ??= clocks()), way);
    const res = req.toAnswer();
    res[SINK] = this.#send;
    this.handleQueries(req, res);
  }

  /** Gives a response to the core. */
  #send = (res) => {
    const sent = res.listenerCount('done') > 0 ? () => emitDone(res) : undefined;
    this.#bridge?.reply(res[CORE], writeResponse, res, sent);
  };

  /** Answers a request of a network that the program has written. */
  #answerOther(req) {
    const res = req.toAnswer();
    return new Promise((resolve) => {
      res.once('answer', resolve);
      this.handleQueries(req, res);
    });
  }
}

/** The records of a name as the core reads them. */
function encoded(records) {
  encoder.take(); // what a mistake has left
  for (const [type, all] of records) {
    for (const data of all) writeRecord(encoder, 0, { type, data });
  }
  return encoder.take();
}

/** The addresses of networks as the core is told them: one with UDP and TCP once. */
function listeners(networks) {
  const places = new Map();
  for (const network of networks) {
    if (!(network instanceof CoreNetwork)) continue;
    const { listener, networkType } = network;
    const isCore =
      networkType === SupportedNetworkType.UDP || networkType === SupportedNetworkType.TCP;
    if (isCore) places.set(listener, [...(places.get(listener) ?? []), networkType]);
  }
  return [...places].map(([listener, types]) => {
    return new Set(types).size === 2 ? listener : `${types[0].toLowerCase()}://${listener}`;
  });
}

/** Tells the listeners of a response that it was sent. */
function emitDone(res) {
  const { ts } = res.metadata;
  ts.responseTimeNs = process.hrtime.bigint();
  ts.responseTimeMs = Date.now();
  try {
    res.emit('done', res);
  } catch (error) {
    console.error(error);
  }
  res.removeAllListeners();
}

/** Writes a response into a batch. */
function writeResponse(batch, res) {
  const { raw } = res.packet;
  const request = res[CORE];
  const [low, high] = [request[TICKET_LOW], request[TICKET_HIGH]];
  const flags = raw.flags ?? 0;
  const additionals = raw.additionals ?? [];
  const error = additionals.length > 0 ? extendedError(additionals) : null;
  const [rcode, own] = [flags & 0xf, flags & FLAGS_OWN];
  batch.begin(low, high, ENDING.REPLY, rcode, own, error, null, LOOKS.client);
  for (const record of raw.answers ?? []) writeRecord(batch, 0, record, request);
  for (const record of raw.authorities ?? []) writeRecord(batch, 1, record, request);
  for (const record of additionals) writeRecord(batch, 2, record, request);
  batch.end();
}

/** The extended error in an OPT record that a program has put into a response. */
function extendedError(additionals) {
  const opt = additionals.find((record) => record.type === 'OPT');
  const option = opt?.options?.find(({ code }) => code === OPTION_EXTENDED_ERROR);
  if (!(option?.data?.length >= 2)) return null;
  const data = Buffer.from(option.data);
  return { code: data.readUInt16BE(0), text: data.toString('utf8', 2) };
}

/** A server with a logger, a cache and a store in front of its other handlers. */
class DinoDNS extends DefaultServer {
  constructor({ cache, logger, storage, ...rest }) {
    super(rest);
    this.cache = cache;
    this.logger = logger;
    this.storage = storage;
    if (logger) this.use(bound(logger));
    if (cache) {
      this.use(bound(cache));
      this.use(registerCache(cache));
    }
    if (storage) this.use(bound(storage));
  }
}

/** The handler of a plugin, which may need its `this`. */
function bound(plugin) {
  return plugin.handler[STORE] ? plugin.handler : plugin.handler.bind(plugin);
}

module.exports = { DefaultServer, DinoDNS };
