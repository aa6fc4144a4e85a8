'use strict';

// The app as programs see it.

const { Bridge } = require('./bridge.js');
const { decodeMessage } = require('./message.js');
const native = require('./native.js');
const { pathOf } = require('./path.js');
const { NO_HANDLER, splitLabels } = require('./request.js');
const { Response, writeResponse } = require('./response.js');
const { typeNumber } = require('./tables.js');

/** How long a route is kept for queries that wait already. */
const FORGET_MILLIS = 10_000;

/** A DNS server: zones, forwarding, and your own code. */
class Zonda {
  #bridge;
  #onError;
  #middleware = [];
  /** Routes by their patterns, and by the numbers that the core knows them by. */
  #routes = new Map();
  #numbered = new Map();
  #nextNumber = 0;
  #state = 'new';
  /** Settled when all changes of zones that were asked for are made. */
  #changes = Promise.resolve();
  #tell = (error, request) => this.#complain(error, request);

  constructor(options = {}) {
    this.#onError = options.onError ?? logError;
    const dispatch = (request) => this.#dispatch(request);
    this.#bridge = new Bridge(coreOptions(options), dispatch, this.#tell);
    for (const [name, zone] of Object.entries(options.zones ?? {})) {
      this.zone(name, typeof zone === 'string' ? { file: zone } : zone);
    }
  }

  /** Has all queries and replies pass functions, behind those that were added before. */
  use(...middleware) {
    for (const function_ of middleware.flat()) this.#middleware.push(checked(function_));
    this.#publish();
    return this;
  }

  /** Answers the names of a pattern with functions; those that it had before are replaced. */
  handle(pattern, ...handlers) {
    native.checkPattern(pattern);
    if (handlers.length === 0) throw new TypeError(`handle('${pattern}') needs a function`);
    const number = this.#nextNumber++;
    const route = {
      pattern,
      number,
      handlers: handlers.flat().map(checked),
      captures: captures(pattern),
    };
    const former = this.#routes.get(pattern);
    this.#routes.delete(pattern);
    this.#routes.set(pattern, route);
    this.#numbered.set(number, route);
    this.#publish();
    this.#forget(former);
    return this;
  }

  /** Answers the names of a pattern no longer; tells whether it did. */
  unhandle(pattern) {
    const route = this.#routes.get(pattern);
    if (route === undefined) return false;
    this.#routes.delete(pattern);
    this.#publish();
    this.#forget(route);
    return true;
  }

  /** Forgets a route that no new query has; those that wait already keep it. */
  #forget(route) {
    if (route === undefined) return;
    if (this.#state !== 'running') this.#numbered.delete(route.number);
    else setTimeout(() => this.#numbered.delete(route.number), FORGET_MILLIS).unref();
  }

  /** Serves a zone from a file, or from a text as a file has it. */
  zone(name, { file, text }) {
    this.#beforeStart('zone');
    if (text !== undefined) this.#bridge.core.addZoneText(String(name), String(text));
    else if (file !== undefined) this.#bridge.core.addZone(String(name), pathOf(file));
    else throw new TypeError(`zone('${name}') needs a file or a text`);
    return this;
  }

  /** Serves a zone that has what a store has, and follows its changes. */
  store(zone, store) {
    this.#beforeStart('store');
    this.#bridge.addStore(String(zone), store);
    return this;
  }

  /** Asks servers for all names that neither handlers nor zones have. */
  forward(...servers) {
    this.#beforeStart('forward');
    for (const server of servers.flat()) this.#bridge.core.addForward(String(server));
    return this;
  }

  #beforeStart(method) {
    if (this.#state !== 'new') throw new Error(`${method}() comes before start()`);
  }

  /** Starts the server, which then answers. */
  async start() {
    this.#beforeStart('start');
    this.#state = 'starting';
    try {
      this.#setCode();
      await this.#bridge.start();
      this.#state = 'running';
      this.#setCode(); // with what was added meanwhile
    } catch (error) {
      this.#state = 'new';
      throw error;
    }
    return this;
  }

  /** Answers what was received, and stops. */
  async stop() {
    if (this.#state !== 'running') return;
    this.#state = 'stopped';
    await this.#bridge.stop();
  }

  /** Reads the configuration and changed zones anew. */
  async reload() {
    await this.#bridge.reload();
  }

  /** Serves a zone from other text, or from text for the first time. */
  async setZoneText(name, text) {
    await this.#inTurn(() => this.#bridge.setZoneText(String(name), String(text)));
  }

  /** Takes a zone that is given as text out of service; tells whether there was one. */
  async removeZoneText(name) {
    return await this.#inTurn(() => this.#bridge.removeZoneText(String(name)));
  }

  /** Makes a change behind those that were asked for before, so that the last one holds. */
  #inTurn(change) {
    const changed = this.#changes.then(change);
    this.#changes = changed.catch(() => {}); // who has asked for it is told
    return changed;
  }

  /** The addresses that are answered on, in the order in which they were given. */
  get addresses() {
    return this.#bridge.core.addresses();
  }

  /** The zones that could not be loaded when that was last tried. */
  get failedZones() {
    return this.#bridge.core.failedZones();
  }

  /** Asks the app itself, without sockets. `null` is silence. */
  async query(question, { client } = {}) {
    const isRaw = question instanceof Uint8Array;
    const message = isRaw ? question : makeQuery(question);
    const reply = await this.#bridge.query(message, client, false);
    return isRaw || reply === null ? reply : decodeMessage(reply);
  }

  /** Puts the code into force, if the server runs. */
  #publish() {
    if (this.#state === 'running') this.#setCode();
  }

  #setCode() {
    const routes = [...this.#routes.values()];
    const numbered = routes.map(({ pattern, number }) => ({ pattern, handler: number }));
    this.#bridge.core.setCode(numbered, this.#middleware.length > 0);
  }

  /** Has code answer a query. */
  #dispatch(request) {
    const { handler } = request;
    const route = handler === NO_HANDLER ? undefined : this.#numbered.get(handler);
    if (route !== undefined) request.setCaptures(route.captures);
    const response = new Response(request, this.#tell);
    let result;
    try {
      result = this.#run(route, request, response);
    } catch (error) {
      this.#fail(error, request);
      return;
    }
    if (typeof result?.then !== 'function') {
      this.#bridge.reply(request, writeResponse, response);
      return;
    }
    result.then(
      () => this.#bridge.reply(request, writeResponse, response),
      (error) => this.#fail(error, request),
    );
  }

  /** Calls middleware and the handlers of a route; returns a promise if they want to be waited for.
   * */
  #run(route, request, response) {
    const handlers = route?.handlers ?? [];
    if (this.#middleware.length === 0) {
      // The usual case, without anything that could be waited for.
      if (handlers.length === 1 && handlers[0].length < 3) return handlers[0](request, response);
      return handlers.length === 0 ? undefined : this.#pass(handlers, request, response);
    }
    return this.#pass(this.#middleware, request, response, async () => {
      if (handlers.length > 0) await this.#pass(handlers, request, response);
      if (!response.answered) await this.#below(request, response);
    });
  }

  /** Calls functions, each of which may call the next one; `last` is what is behind them. */
  async #pass(functions, request, response, last = () => this.#below(request, response)) {
    const floating = new Set();
    const call = (place) => {
      if (place === functions.length) return response.answered ? undefined : last();
      let isCalled = false;
      const next = () => {
        if (isCalled) throw new Error('next() was called twice');
        isCalled = true;
        const behind = (async () => call(place + 1))();
        floating.add(behind);
        const settled = () => floating.delete(behind);
        behind.then(settled, settled);
        return behind;
      };
      return functions[place](request, response, next);
    };
    await call(0);
    // What a function has begun with next(), but not waited for.
    while (floating.size > 0) await Promise.all(floating);
  }

  /** Asks the core for what it would answer. */
  async #below(request, response) {
    if (response.answered) return;
    response.setBelow(await this.#bridge.query(request.message, request.clientText, true));
  }

  /** Answers SERVFAIL. */
  #fail(error, request) {
    this.#bridge.fail(request);
    this.#complain(error, request);
  }

  /** Tells the program about an error, which must not end it. */
  #complain(error, request) {
    try {
      this.#onError(error, request);
    } catch (another) {
      logError(another, request);
    }
  }
}

/** Writes an error, with its stack, to standard error. */
function logError(error, request) {
  console.error(`zonda: ${request.name} ${request.type}:`, error);
}

/** A function, or an error that says that it is none. */
function checked(function_) {
  if (typeof function_ !== 'function') throw new TypeError(`${function_} is no function`);
  return function_;
}

/** What the core is told of an app's options. */
function coreOptions(options) {
  const list = (value) => (value === undefined ? [] : [value].flat().map(String));
  const text = (value) => (value === undefined ? undefined : String(value));
  return {
    listen: list(options.listen),
    listensNowhere: Array.isArray(options.listen) && options.listen.length === 0,
    config: text(options.config),
    zones: [],
    forward: list(options.forward),
    workers: options.workers,
    deadline: options.deadline,
    waitingMax: options.waitingMax,
    metrics: text(options.metrics),
    log: text(options.log),
    sharesAddresses: options.sharesAddresses ?? false,
    allowsFailedZones: options.allowsFailedZones ?? false,
  };
}

/** The words that a pattern captures, and the places of their labels from the right. */
function captures(pattern) {
  const names = pattern.replace(/(^|[^\\])\/.*$/, '$1');
  const labels = splitLabels(names).filter((label) => label !== '');
  const captures = [];
  labels.forEach((label, place) => {
    if (label.startsWith(':')) captures.push([label.slice(1), labels.length - place]);
  });
  return captures;
}

/** A query in wire form. */
function makeQuery({ name, type = 'A', dnssecOk = false }) {
  return native.makeQuery(String(name), typeNumber(type), dnssecOk);
}

module.exports = { Zonda, makeQuery };
