'use strict';

// The app as programs see it.

const { EventEmitter } = require('node:events');
const { deprecate } = require('node:util');

const { Bridge } = require('./bridge.js');
const { errorRecord, printError } = require('./code-errors.js');
const { ErrorHandlers, tell } = require('./error-handlers.js');
const { errorWith, withCode } = require('./errors.js');
const { addFormerNames } = require('./former.js');
const { checkedFunctions } = require('./functions.js');
const { completeName, decodeMessage } = require('./message.js');
const { decisive, inGuard } = require('./middleware.js');
const { checkedOptions, coreOptions, placeText } = require('./options.js');
const { asError, isNothing, pass } = require('./pass.js');
const { pathOf } = require('./path.js');
const { canonicalPattern, captures, zoneOf } = require('./pattern.js');
const { checkMessage, makeQuery, questionOf, queryOptions } = require('./questions.js');
const { GUARDS, HANDLER, HAS_GONE_ON, NO_HANDLER, SET_ROUTE } = require('./request.js');
const { Reply, writeResponse } = require('./response.js');
const { ADD_ERROR_HANDLER, Router } = require('./router.js');
const { custom, shown } = require('./shown.js');
const { withResolvers } = require('./with-resolvers.js');

/** How long a route is kept for queries that wait already. */
const FORGET_MILLIS = 10_000;

/** A DNS server: zones, forwarding, and your own code. */
class App extends EventEmitter {
  #bridge;
  #errorHandlers = new ErrorHandlers();
  #logger;
  /** Whether the app has no log of the core's. */
  #isLogOff;
  /** Functions that all queries pass. */
  #middleware = [];
  /** Functions that queries for the names of a pattern pass: its guard, by the number that the core
   * knows it by; and these numbers by the canonical forms of patterns. */
  #guards = [];
  #guardNumbers = new Map();
  /** Routes by the canonical forms of their patterns, and by the numbers that the core knows them
   * by. */
  #routes = new Map();
  #numbered = new Map();
  #nextNumber = 0;
  /** What the core is still to be told of routes and guards, once in a turn. */
  #added = new Map();
  #removed = [];
  #addedGuards = [];
  #isPublishDue = false;
  /** Settled when the routes that the core was told of last are in force. */
  #published;
  /** Those that are not in force yet. */
  #publications = new Set();
  /** The names of the zones that were given since the app was made, or could not start: in lower
   * case and with their final dot. */
  #zoneNames = new Set();
  #state = 'new';
  /** Settled when the app has started, or could not; while it starts. */
  #startup = Promise.resolve();
  /** Whether the synchronous part of a function of the program's runs at this moment. */
  #isInFunction = false;
  #closed = withResolvers();
  /** Fulfilled when the server has stopped, for whatever reason. */
  #ended = this.#closed.promise.catch(() => {}); // a program need not look at the reason
  /** Settled when all changes of zones that were asked for are made. */
  #changes = Promise.resolve();
  #tell = (error, request) => this.#complain(error, request);
  #soaFor = (name, ttl) => this.#bridge.negativeSoa(name, ttl);

  constructor(given = {}) {
    super();
    const options = checkedOptions(given);
    if (options.onError !== undefined) this.onError(options.onError);
    this.#logger = options.logger;
    this.#isLogOff = options.log === 'off';
    // Listeners of the log come and go also while the app runs.
    this.on('newListener', (event) => event === 'log' && this.#isUp() && this.#readLog());
    this.on('removeListener', (event) => {
      if (event === 'log' && !this.#hasLogger()) this.#bridge.endLog();
    });
    const dispatch = (request) => this.#dispatch(request);
    this.#bridge = new Bridge(coreOptions(options), dispatch, this.#tell);
    for (const [name, zone] of Object.entries(options.zones ?? {})) {
      this.zone(name, typeof zone === 'string' ? { file: zone } : zone);
    }
  }

  /** Has all queries and replies pass functions, behind those that were added before; with a
   * pattern first, those for the names of that alone, behind those for all. */
  middleware(...middleware) {
    const pattern = typeof middleware[0] === 'string' ? middleware.shift() : undefined;
    const functions = checkedFunctions('middleware()', middleware).map(decisive);
    if (pattern === undefined) this.#middleware.push(...functions);
    else {
      const guard = this.#guardFor(pattern);
      guard.functions.push(...functions.map((it) => inGuard(guard, it)));
    }
    this.#publish();
    return this;
  }

  /** The functions that queries for the names of a pattern pass, and what these see of it. */
  #guardFor(pattern) {
    const canonical = canonicalPattern(pattern);
    if (!this.#guardNumbers.has(canonical)) {
      const route = { captures: captures(pattern), zone: zoneOf(canonical) };
      const number = this.#guards.push({ ...route, functions: [] }) - 1;
      this.#guardNumbers.set(canonical, number);
      this.#addedGuards.push({ pattern: canonical, handler: number });
    }
    return this.#guards[this.#guardNumbers.get(canonical)];
  }

  /** The names below a suffix, whose patterns leave the suffix out. */
  route(suffix) {
    return new Router(this, suffix);
  }

  /** As `middleware`, by the name that programs for web servers know. */
  use(...middleware) {
    return this.middleware(...middleware);
  }

  /** Answers the names of a pattern, or of each of several, with functions; those that it had before
   * are replaced. */
  handle(patterns, ...handlers) {
    const routes = [patterns].flat().map((pattern) => [pattern, canonicalPattern(pattern)]);
    if (routes.length === 0) throw errorWith('ZONDA_PATTERN', 'handle() needs a pattern', TypeError);
    const method = `handle('${routes.map(([it]) => it).join("', '")}')`;
    const functions = checkedFunctions(method, handlers);
    for (const [pattern, canonical] of routes) this.#addRoute(pattern, canonical, functions);
    this.#publish();
    return this;
  }

  /** Tells a function of the errors of handlers and middleware, in place of the log. What it puts
   * into the reply is sent; a query that it does not answer is left to the next such function. */
  onError(handler) {
    return this[ADD_ERROR_HANDLER]('', handler);
  }

  /** As `onError`, for the names below a suffix. */
  [ADD_ERROR_HANDLER](suffix, handler) {
    this.#errorHandlers.add(suffix, handler);
    return this;
  }

  /** Listens also on an address and port; a port alone is one of 127.0.0.1. */
  listen(where, ...more) {
    this.#beforeStart('listen');
    if (more.length > 0) {
      const why = 'listen() takes one address, and listens once `await app.start()` is called';
      throw errorWith('ZONDA_CONFIG', why, TypeError);
    }
    this.#bridge.core.addListen(placeText(where));
    return this;
  }

  /** Answers the names of a pattern no longer; tells whether it did. */
  removeHandler(pattern) {
    const wasThere = this.#takeOut(canonicalPattern(pattern));
    if (wasThere) this.#publish();
    return wasThere;
  }

  /** Adds a route in place of one for the same pattern. */
  #addRoute(pattern, canonical, handlers) {
    const number = this.#nextNumber++;
    const route = { pattern, number, handlers };
    Object.assign(route, { captures: captures(pattern), zone: zoneOf(canonical) });
    this.#takeOut(canonical);
    this.#routes.set(canonical, route);
    this.#numbered.set(number, route);
    this.#added.set(number, pattern);
  }

  /** Takes the route of a canonical pattern out; tells whether there was one. */
  #takeOut(canonical) {
    const route = this.#routes.get(canonical);
    if (route === undefined) return false;
    this.#routes.delete(canonical);
    if (!this.#added.delete(route.number)) this.#removed.push(route.number);
    this.#forget(route);
    return true;
  }

  /** Forgets a route that no new query has; those that wait already keep it. */
  #forget(route) {
    if (this.#state !== 'running') this.#numbered.delete(route.number);
    else setTimeout(() => this.#numbered.delete(route.number), FORGET_MILLIS).unref();
  }

  /** Serves a zone from a file, or from a text as a file has it. */
  zone(name, options) {
    this.#beforeStart('zone');
    const key = this.#newZone('zone', name);
    const { file, text } = Object(options);
    if (file !== undefined && text !== undefined) {
      throw errorWith('ZONDA_ZONE', `zone('${name}') takes a file or a text, not both`, TypeError);
    }
    const { core } = this.#bridge;
    if (text !== undefined) {
      withCode('ZONDA_ZONE', () => core.addZoneText(String(name), String(text)));
    } else if (file !== undefined) {
      core.addZone(String(name), pathOf(file));
    } else {
      throw errorWith('ZONDA_ZONE', `zone('${name}') needs a file or a text`, TypeError);
    }
    this.#zoneNames.add(key);
    return this;
  }

  /** Serves a zone that has what a store has, and follows its changes. */
  store(zone, store) {
    this.#beforeStart('store');
    const key = this.#newZone('store', zone);
    this.#bridge.addStore(String(zone), store);
    this.#zoneNames.add(key);
    return this;
  }

  /** The name of a zone as names of zones are compared; throws where there is one of that name. */
  #newZone(method, name) {
    const key = completeName(String(name).replace(/[A-Z]/g, (it) => it.toLowerCase()));
    if (!this.#zoneNames.has(key)) return key;
    const later = 'setZoneText(), setZoneFile() or setZoneStore() once the app runs';
    const why = `is given twice: keep one, or replace it by ${later}`;
    throw errorWith('ZONDA_ZONE', `${method}('${name}') ${why}`);
  }

  /** Asks servers for all names that neither handlers nor zones have. */
  forward(...servers) {
    this.#beforeStart('forward');
    for (const server of servers.flat()) this.#bridge.core.addForward(String(server));
    return this;
  }

  #beforeStart(method) {
    if (this.#state !== 'new') throw errorWith('ZONDA_STATE', `${method}() comes before start()`);
  }

  /** Starts the server, which then answers. */
  async start() {
    if (this.#state !== 'new') {
      const why = 'an app starts once: make another one to start again';
      throw errorWith('ZONDA_STATE', why);
    }
    this.#state = 'starting';
    this.#startup = this.#startCore();
    await this.#startup;
    if (this.#state !== 'running') {
      throw errorWith('ZONDA_STATE', 'the app was stopped while it started');
    }
    return this;
  }

  async #startCore() {
    try {
      if (this.#hasLogger()) this.#readLog();
      this.#setCode();
      await this.#bridge.start((error) => this.#end(error));
    } catch (error) {
      this.#bridge.endLog();
      this.#state = this.#state === 'starting' ? 'new' : 'stopped';
      this.#zoneNames.clear(); // one that was wrong may be given anew
      throw error;
    }
    if (this.#state !== 'starting') return; // it is to stop, which waits for this
    this.#state = 'running';
    this.#putIntoForce(); // what was added meanwhile
    try {
      this.emit('listening', this.addresses);
    } catch (error) {
      await this.stop(); // nothing runs when start() is rejected
      throw error;
    }
  }

  /** Whether there is a server, which may still start, or stop. */
  #isUp() {
    return this.#state !== 'new' && this.#state !== 'stopped';
  }

  /** Whether the program has a log of its own. */
  #hasLogger() {
    return this.#logger !== undefined || this.listenerCount('log') > 0;
  }

  /** Has the core's log given to the program, unless it is to have none: that of other apps then goes
   * where it went. */
  #readLog() {
    if (!this.#isLogOff) this.#bridge.readLog((record) => this.#log(record));
  }

  /** Gives a record to the logger and to those that listen to the event; calls `onFailure` with the
   * reason where the promise of the logger is rejected. */
  #log(record, onFailure = (reason) => console.error(reason)) {
    try {
      // A logger that waits is not waited for, but its failure is told.
      const told = this.#logger?.(record);
      if (typeof told?.then === 'function') told.then(undefined, onFailure);
    } finally {
      this.emit('log', record);
    }
  }

  /** Writes an error of the program's code to the log of the program or, without one, with its stack
   * to standard error. */
  #logError(error, request) {
    if (!this.#hasLogger()) return printError(error, request);
    const onFailure = (failure) => {
      console.error('zonda: the logger has failed:', failure);
      return printError(error, request);
    };
    try {
      return this.#log(errorRecord(error, request), onFailure);
    } catch (failure) {
      return onFailure(failure);
    }
  }

  /** Takes note that the server has stopped, because it was asked to, here or through its admin
   * interface, or because it had to. */
  #end(error) {
    this.#bridge.endLog();
    this.#state = 'stopped';
    this.#publications.forEach((published) => published.resolve());
    if (error === undefined) this.#closed.resolve();
    else this.#closed.reject(error);
    this.emit('closed', error);
  }

  /** Starts the server, and waits until it has stopped: by `stop()`, or by SIGINT or SIGTERM, which
   * do not end the process meanwhile. Rejected if it cannot start, or had to stop. */
  async serve() {
    let isTold = false;
    const stop = () => {
      isTold = true;
      this.stop().catch(() => {}); // `closed` tells
    };
    const signals = ['SIGINT', 'SIGTERM'];
    signals.forEach((signal) => process.on(signal, stop));
    try {
      await this.start();
      await this.#closed.promise;
    } catch (error) {
      if (!isTold || error.code !== 'ZONDA_STATE') throw error; // it was told so while it started
    } finally {
      signals.forEach((signal) => process.off(signal, stop));
    }
  }

  /** Settled when the server has stopped: rejected if it had to. */
  get closed() {
    return this.#closed.promise;
  }

  /** Answers what was received, and stops; also while it starts. Called by a function that answers a
   * query, before that has waited for anything, it does not wait for the end, which would wait for
   * the function. */
  async stop() {
    if (this.#state === 'starting') {
      this.#state = 'stopping';
      try {
        await this.#startup;
      } catch {
        return; // nothing runs; start() tells why
      }
    } else if (this.#state === 'stopping' || this.#state === 'stopped') {
      return this.#isInFunction ? undefined : await this.#ended;
    } else if (this.#state !== 'running') {
      return;
    }
    this.#state = 'stopping';
    const stopped = this.#bridge.stop();
    if (!this.#isInFunction) await stopped;
    else stopped.catch(() => {}); // `closed` tells
  }

  /** As `stop`, at the end of a block that has `await using app = …`. */
  async [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() {
    await this.stop();
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

  /** Serves a zone from a file, in place of a former file, or for the first time. */
  async setZoneFile(name, file) {
    const path = pathOf(file);
    await this.#inTurn(() => this.#bridge.setZoneFile(String(name), path));
  }

  /** Serves a zone that has what a store has, in place of a former store, or for the first time. */
  async setZoneStore(zone, store) {
    await this.#inTurn(() => this.#bridge.setZoneStore(String(zone), store));
  }

  /** Takes a zone that the program has given out of service; tells whether there was one. */
  async removeZone(name) {
    return await this.#inTurn(() => this.#bridge.removeZone(String(name)));
  }

  /** Asks these servers for all names that neither handlers nor zones have, in place of former
   * ones. */
  async setForwards(...servers) {
    await this.#inTurn(() => this.#bridge.setForwards(servers.flat().map(String)));
  }

  /** Makes a change behind those that were asked for before, so that the last one holds. */
  #inTurn(change) {
    const changed = this.#changes.then(change);
    this.#changes = changed.catch(() => {}); // who has asked for it is told
    return changed;
  }

  /** The addresses that are answered on, in the order in which they were given. */
  get addresses() {
    return withCode('ZONDA_STATE', () => this.#bridge.core.addresses());
  }

  /** The zones that could not be loaded when that was last tried. */
  get failedZones() {
    return withCode('ZONDA_STATE', () => this.#bridge.core.failedZones());
  }

  /** What `util.inspect` shows: what it does, and for which patterns. */
  [custom](depth, options) {
    let addresses = {};
    try {
      addresses = { addresses: this.addresses };
    } catch {
      // It does not run.
    }
    const handlers = Array.from(this.#routes.values(), ({ pattern }) => pattern);
    const guards = [...this.#guardNumbers.keys()];
    const middleware = [...this.#middleware.map(({ name }) => name || '(anonymous)'), ...guards];
    const fields = { state: this.#state, ...addresses, handlers, middleware };
    return shown('App', fields, depth, options);
  }

  /** Asks the app itself, without sockets. Without a reply, it is an error. */
  async query(question, type, options) {
    if (Object(type) === type) return await this.query(question, undefined, type);
    if (question instanceof Uint8Array) return await queryOctets(this, question, options);
    const { dnssecOk, ...ofClient } = queryOptions(options, ['client', 'dnssecOk']);
    const of = Object(question) === question ? question : { name: question };
    const asked = { ...questionOf(of) };
    if (type !== undefined) asked.type = type;
    if (dnssecOk !== undefined) asked.dnssecOk = dnssecOk;
    const reply = await this.queryMessage(makeQuery(asked), ofClient);
    if (reply !== null) return decodeMessage(reply);
    const { name, type: wanted = 'A' } = asked;
    const what = `${name} ${wanted}`;
    throw errorWith('ZONDA_NO_REPLY', `no reply was sent to ${what}: the query was dropped`);
  }

  /** As `query`, in wire form. */
  async queryMessage(message, options) {
    const { client } = queryOptions(options, ['client']);
    checkMessage('queryMessage()', message);
    if (this.#isPublishDue) this.#putIntoForce();
    await this.#published?.promise;
    return await this.#bridge.query(message, client);
  }

  /** Has the code put into force at the end of this turn, if the server runs. */
  #publish() {
    if (this.#state !== 'running' || this.#isPublishDue) return;
    this.#isPublishDue = true;
    queueMicrotask(() => this.#isPublishDue && this.#putIntoForce());
  }

  /** Tells the core what has been added and removed since it was told last. */
  #putIntoForce() {
    this.#isPublishDue = false;
    if (this.#state !== 'running') return;
    const added = Array.from(this.#added, ([handler, pattern]) => ({ pattern, handler }));
    const [removed, guards] = [this.#removed, this.#addedGuards];
    [this.#added, this.#removed, this.#addedGuards] = [new Map(), [], []];
    const hasMiddleware = this.#middleware.length > 0;
    const changed = this.#bridge.changeCode(removed, added, guards, hasMiddleware);
    this.#published = undefined; // what was under way before is in force no later
    if (changed === undefined) return;
    // The core says nothing of what is not in force when it ends: then this is settled there.
    const published = withResolvers();
    this.#published = published;
    this.#publications.add(published);
    const settle = (error) => {
      this.#publications.delete(published);
      if (this.#published === published) this.#published = undefined;
      if (error === undefined) published.resolve();
      else published.reject(error);
    };
    published.promise.catch(() => {}); // a query is told, if one waits
    changed.then(() => settle(), settle);
  }

  #setCode() {
    const routes = [...this.#routes.values()];
    const numbered = routes.map(({ pattern, number }) => ({ pattern, handler: number }));
    const guards = Array.from(this.#guardNumbers, ([pattern, handler]) => ({ pattern, handler }));
    [this.#added, this.#removed, this.#addedGuards] = [new Map(), [], []];
    this.#bridge.core.setCode(numbered, this.#middleware.length > 0, guards);
  }

  /** Has code answer a query. */
  #dispatch(request) {
    const handler = request[HANDLER];
    // One that is gone has left the query to the next one.
    const found = () => this.#numbered.get(handler) ?? this.#next(undefined, request);
    const route = handler === NO_HANDLER ? undefined : found();
    if (route !== undefined) request[SET_ROUTE](route);
    const response = new Reply(request, this.#tell, this.#soaFor);
    let result;
    this.#isInFunction = true;
    try {
      result = this.#run(route, request, response);
    } catch (error) {
      this.#fail(error, request);
      return;
    } finally {
      this.#isInFunction = false;
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

  /** Calls middleware, guards, and the handlers of a route; returns a promise if they want to be
   * waited for. */
  #run(route, request, response) {
    const guards = request[GUARDS];
    if (this.#middleware.length === 0 && guards.length === 0) {
      if (route?.handlers.length === 1) return this.#call(route, request, response);
      return this.#handle(route, request, response);
    }
    const ofGuards = guards.flatMap((number) => this.#guards[number]?.functions ?? []);
    const inner = async () => {
      await this.#handle(route, request, response);
      if (!response.answered) await this.#below(request, response);
    };
    return pass([...this.#middleware, ...ofGuards], request, response, inner);
  }

  /** Calls the handlers of a route, if there is one, and of those for wider patterns, until one
   * answers. */
  async #handle(route, request, response) {
    let now = route;
    while (now !== undefined && !response.answered) {
      const called = now;
      request[SET_ROUTE](called);
      const behind = () => this.#behind(called, request, response);
      await pass(called.handlers, request, response, behind);
      now = response.answered ? undefined : this.#next(called, request);
      if (now !== undefined) response.reset();
    }
  }

  /** Has the handlers for wider patterns than a route's answer, or else the core. */
  async #behind(route, request, response) {
    if (response.answered) return;
    try {
      await this.#leave(route, request, response);
    } finally {
      request[SET_ROUTE](route); // what the functions of the route see behind `next()`
    }
    await this.#below(request, response);
  }

  /** The route for the next wider pattern than another one's that is for a request; the first one,
   * without another. */
  #next(route, request) {
    if (this.#routes.size < (route === undefined ? 1 : 2)) return undefined;
    const next = this.#numbered.get(this.#bridge.nextHandler(request, route?.pattern));
    if (next !== undefined) request[HAS_GONE_ON] = true;
    return next;
  }

  /** Calls the only function of a query: the usual case, mostly without anything that could be waited
   * for. */
  #call(route, request, response) {
    let behind;
    let isSettled = false;
    let failed = false;
    let failure;
    let passed;
    const next = (error) => {
      if (behind !== undefined) throw new Error('next() was called twice');
      behind = isNothing(error) ? this.#behind(route, request, response) : Promise.resolve();
      const settled = () => (isSettled = true);
      behind.then(settled, (thrown) => {
        settled();
        [failed, failure] = [true, thrown];
      });
      passed = error;
      return behind;
    };
    const result = route.handlers[0](request, response, next);
    if (typeof result?.then !== 'function' && behind === undefined) {
      response.addReturned(result);
      return response.answered ? undefined : this.#leave(route, request, response);
    }
    return (async () => {
      const returned = await result;
      if (!isSettled) await behind; // else the function has waited for it, and has seen its error
      if (!isNothing(passed)) throw asError(passed);
      response.addReturned(returned);
      if (response.answered) return;
      if (failed) throw failure; // it was caught, or not waited for, without an answer instead
      await this.#leave(route, request, response);
    })();
  }

  /** Leaves a query to the handlers for wider patterns than a route's, if there are any; behind them,
   * the core answers. */
  #leave(route, request, response) {
    const next = this.#next(route, request);
    if (next === undefined) return undefined;
    response.reset();
    return this.#handle(next, request, response);
  }

  /** Asks the core for what it would answer. */
  async #below(request, response) {
    if (response.answered) return;
    response.setBelow(await this.#bridge.queryBelow(request));
  }

  /** Has `onError` answer a request whose code has failed, or answers it SERVFAIL. */
  #fail(error, request) {
    const response = new Reply(request, this.#tell, this.#soaFor);
    const end = () => {
      if (response.answered) this.#bridge.reply(request, writeResponse, response);
      else this.#bridge.fail(request);
    };
    const giveUp = (another) => {
      this.#bridge.fail(request);
      this.#logError(another, request);
    };
    try {
      const result = this.#told(error, request, response);
      if (typeof result?.then === 'function') result.then(end).catch(giveUp);
      else end(result);
    } catch (another) {
      giveUp(another);
    }
  }

  /** Tells the program about an error that no reply can tell of, which must not end it. */
  #complain(error, request) {
    const log = (another) => this.#logError(another, request);
    try {
      const result = this.#told(error, request);
      if (typeof result?.then === 'function') result.then(undefined, log);
    } catch (another) {
      log(another);
    }
  }


  /** Tells the program about an error; a promise where a function that is told returns one. */
  #told(error, request, response) {
    const isHeard = this.listenerCount('error') > 0;
    if (isHeard) this.emit('error', error, request);
    const handlers = this.#errorHandlers.of(request);
    if (handlers.length > 0) {
      return tell(handlers, error, request, response, (one) => this.#logError(one, request));
    }
    if (!isHeard) this.#logError(error, request);
    return undefined;
  }
}

addFormerNames(App, { unhandle: 'removeHandler' });

/** Asks an app in wire form, as `query` did formerly. */
const queryOctets = deprecate(
  (app, message, options) => app.queryMessage(message, options),
  'App.query of octets is called queryMessage',
  'ZONDA_APP_QUERY',
);

module.exports = { App };
