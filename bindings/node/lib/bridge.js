'use strict';

// The border to the core: takes batches of queries, gathers the replies of a turn, and keeps
// account of what was asked of the core and has not ended.

const { ENDING, QueryBatches, ReplyBatch } = require('./batch.js');
const { coreError, placeOf, errorWith, recordError, withCode } = require('./errors.js');
const native = require('./native.js');
const { OwnStores } = require('./own-stores.js');
const { Query, SAW_BELOW, TICKET_HIGH, TICKET_LOW } = require('./request.js');
const { handleOf } = require('./store.js');

/** What the core returns in place of a reply to a request that it has answered SERVFAIL, as it was
 * late. */
const WAITS_NO_LONGER = 2;

/** One core, and what waits on either side of it. */
class Bridge {
  #core;
  #ownStores;
  #dispatch;
  #complain;
  #queries = new QueryBatches();
  #replies = new ReplyBatch();
  /** The requests whose replies lie in the batch, these replies (nothing for a failure), and what is
   * to be called when they are sent. */
  #written = [];
  #responses = [];
  #sentCallbacks = [];
  /** Told of each record of the core's log, while that is read. */
  #tellLog;
  /** Whether records are being given, and whether reading ends after that. */
  #isGivingLog = false;
  #isLogEndDue = false;
  /** Whether replies that are written now are sent without more ado. */
  #inTurn = false;
  #isFlushDue = false;
  /** What the core was asked for: functions to call at its end, by number. */
  #asked = new Map();
  #nextToken = 0;

  /** `dispatch` is given requests, each with the batch that it lies in, `complain` errors and the
   * requests that they are about. */
  constructor(options, dispatch, complain) {
    this.#core = withCode('ZONDA_CONFIG', () => new native.Core(options));
    this.#ownStores = new OwnStores(this.#core);
    this.#dispatch = dispatch;
    this.#complain = complain;
  }

  /** The core's methods that need nothing else. */
  get core() {
    return this.#core;
  }

  /** Starts the server. `closed` is called once, when it has stopped: with an error if it had to. */
  async start(closed = () => {}) {
    const end = (why) => {
      this.#wake(); // what has ended before
      closed(why === null || why === undefined ? undefined : coreError(why));
    };
    const wake = () => this.#wake();
    await this.#ask('ZONDA_CONFIG', (token) => this.#core.start(wake, end, token));
    this.#wake(); // for queries that came before
  }

  /** Stops the server. */
  async stop() {
    this.#flush();
    await this.#ask('ZONDA_STATE', (token) => this.#core.stop(token));
  }

  /** Has each record of the core's log given to a function, in place of standard error. */
  readLog(tell) {
    if (this.#tellLog === undefined) withCode('ZONDA_CONFIG', () => this.#core.readLog());
    this.#tellLog = tell;
    this.#isLogEndDue = false;
  }

  /** Gives the records that wait, and reads the log no longer. */
  endLog() {
    if (this.#tellLog === undefined) return;
    if (this.#isGivingLog) {
      this.#isLogEndDue = true; // the records that were taken are given first
      return;
    }
    this.#giveLog();
    this.#tellLog = undefined;
    this.#core.endLog();
  }

  #giveLog() {
    const tell = this.#tellLog;
    this.#isGivingLog = true;
    for (const { level, event, message, fields, time } of this.#core.logRecords()) {
      const record = { level, event, message, fields: Object.fromEntries(fields) };
      try {
        tell({ ...record, time: new Date(time) });
      } catch (error) {
        console.error('zonda: the logger has failed:', error);
      }
    }
    this.#isGivingLog = false;
    if (this.#isLogEndDue) {
      this.#isLogEndDue = false;
      this.endLog();
    }
  }

  /** Reads the configuration and changed zones anew. */
  async reload() {
    await this.#ask('ZONDA_STATE', (token) => this.#core.reload(token));
  }

  /** Adds routes and guards, and removes the routes of handlers' numbers; a promise if that takes a
   * while. */
  changeCode(removed, added, guards, hasMiddleware) {
    const token = this.#token();
    if (this.#core.changeCode(removed, added, guards, hasMiddleware, token)) return undefined;
    return this.#expected(1, token);
  }

  /** The number of the handler for a request that the handler of a pattern has passed on; of the
   * first one, without a pattern. Nothing if there is no further one, or the server has stopped. */
  nextHandler({ name, typeNumber }, pattern) {
    if (!this.#core.isRunning()) return undefined;
    return this.#core.nextHandler(name, typeNumber, pattern) ?? undefined;
  }

  /** The name and data of the SOA record of the server's zone that holds a name, for a time to live;
   * `null` if there is none. */
  negativeSoa(name, ttl) {
    return this.#core.isRunning() ? this.#core.negativeSoa(name, ttl) ?? null : null;
  }

  /** Serves a zone from a store: the core's, or one that is written in JavaScript. */
  addStore(zone, store) {
    const handle = handleOf(store);
    if (handle === undefined) withCode('ZONDA_ZONE', () => this.#ownStores.add(zone, store));
    else withCode('ZONDA_ZONE', () => this.#core.addStore(zone, handle));
  }

  /** Serves a zone from other text. */
  async setZoneText(name, text) {
    const code = this.#stateOr('ZONDA_ZONE');
    await this.#ask(code, (token) => this.#core.setZoneText(name, text, token));
  }

  /** Takes a zone that is given as text out of service; tells whether there was one. */
  async removeZoneText(name) {
    const code = this.#stateOr('ZONDA_ZONE');
    const removed = await this.#ask(code, (token) => this.#core.removeZoneText(name, token));
    return removed !== null;
  }

  /** Serves a zone from a file while the server runs. */
  async setZoneFile(name, file) {
    const code = this.#stateOr('ZONDA_ZONE');
    await this.#ask(code, (token) => this.#core.setZoneFile(name, file, token));
  }

  /** Serves a zone from a store while the server runs. */
  async setZoneStore(zone, store) {
    const [code, handle] = [this.#stateOr('ZONDA_ZONE'), handleOf(store)];
    await this.#ask(code, (token) => {
      if (handle === undefined) this.#ownStores.set(zone, store, token);
      else this.#core.setZoneStore(zone, handle, token);
    });
  }

  /** Takes a zone of the program out of service; tells whether there was one. */
  async removeZone(name) {
    const code = this.#stateOr('ZONDA_ZONE');
    return (await this.#ask(code, (token) => this.#core.removeZone(name, token))) !== null;
  }

  /** Asks these servers for all other names. */
  async setForwards(servers) {
    const code = this.#stateOr('ZONDA_CONFIG');
    await this.#ask(code, (token) => this.#core.setForwards(servers, token));
  }

  /** The reply to a message: octets, `null` for silence, or a promise of either. */
  query(message, client) {
    const token = this.#token();
    const code = this.#stateOr('ZONDA_QUERY');
    return this.#expected(withCode(code, () => this.#core.query(message, client, token)), token);
  }

  /** What the core answers to a request without JavaScript, as `query` returns it. The core keeps it
   * with the request, and sends it if that is passed on. */
  queryBelow(request) {
    const token = this.#token();
    request[SAW_BELOW] = true; // access lists may have another answer for another client
    let reply = this.#core.queryBelow(request[TICKET_LOW], request[TICKET_HIGH], token);
    if (reply === WAITS_NO_LONGER) {
      reply = this.#core.queryLate(request.message, request.clientText, token);
    }
    return this.#expected(reply, token);
  }

  /** A reply of the core, or `null` for silence, or a promise of either if an event of `token` brings
   * it. */
  #expected(reply, token) {
    if (typeof reply !== 'number') return reply;
    if (reply === 0) return null;
    return new Promise((resolve, reject) => this.#asked.set(token, { resolve, reject }));
  }

  /** A number for something that is asked for. */
  #token() {
    this.#nextToken = (this.#nextToken + 1) >>> 0;
    return this.#nextToken;
  }

  /** What an error of the core is about: a code, if the server runs. */
  #stateOr(code) {
    return this.#core.isRunning() ? code : 'ZONDA_STATE';
  }

  /** A promise of the end of what a function asks the core for; `code` is that of its errors. */
  #ask(code, function_) {
    return new Promise((resolve, reject) => {
      const token = this.#token();
      withCode(code, () => function_(token));
      this.#asked.set(token, { resolve, reject });
    });
  }

  /** Called by the core, when queries wait or something has ended. */
  #wake() {
    if (this.#tellLog !== undefined) this.#giveLog();
    if (this.#asked.size > 0) {
      for (const { token, error, reply } of this.#core.events()) {
        const asked = this.#asked.get(token);
        this.#asked.delete(token);
        if (error === undefined || error === null) asked?.resolve(reply ?? null);
        else asked?.reject(coreError(error));
      }
    }
    this.#ownStores.answer();
    const batch = this.#queries.take(this.#core);
    const { words, start, end, hasMore } = batch;
    this.#inTurn = true;
    for (let at = start; at < end; at += words[at] >> 2) {
      this.#dispatch(new Query(batch, at), batch);
    }
    this.#inTurn = false;
    this.#flush();
    if (hasMore) setImmediate(() => this.#wake()); // after what the event loop has queued
  }

  /** Has `write` write a response to a request into the batch of this turn; one that cannot be
   * written is SERVFAIL. `sent` is called when it has left. */
  reply(request, write, response, sent) {
    try {
      write(this.#replies, response);
    } catch (error) {
      this.#replies.abandon();
      this.#failInto(request);
      this.#complain(error, request);
    }
    this.#note(request, response, sent);
  }

  /** Answers a request SERVFAIL. */
  fail(request) {
    this.#failInto(request);
    this.#note(request);
  }

  #failInto(request) {
    const [low, high] = [request[TICKET_LOW], request[TICKET_HIGH]];
    this.#replies.begin(low, high, ENDING.FAILED, 0, 0, null, null, 0);
    this.#replies.end();
  }

  /** Takes note of a written reply. */
  #note(request, response, sent) {
    this.#written.push(request);
    this.#responses.push(response);
    if (sent) this.#sentCallbacks.push(sent);
    if (this.#replies.isLong) this.#flush();
    if (this.#inTurn || this.#isFlushDue) return;
    this.#isFlushDue = true;
    process.nextTick(() => this.#flush()); // behind all promises that are settled now
  }

  /** Gives the replies to the core. */
  #flush() {
    this.#isFlushDue = false;
    if (this.#written.length === 0) return;
    const [written, responses, callbacks] = [this.#written, this.#responses, this.#sentCallbacks];
    [this.#written, this.#responses, this.#sentCallbacks] = [[], [], []];
    const mistakes = this.#core.complete(this.#replies.take());
    for (const mistake of mistakes ?? []) {
      const { place } = mistake;
      this.#complain(mistakeError(written[place], responses[place], mistake), written[place]);
    }
    for (const callback of callbacks) callback();
  }
}

/** An error of a reply that the core could not send. */
function mistakeError(request, response, { what, section, index }) {
  const isOfRecord = typeof section === 'number' && typeof response?.recordAt === 'function';
  if (!isOfRecord) return errorWith('ZONDA_RECORD', `${placeOf(request)}: ${what}`);
  const place = response.recordAt(section, index);
  const words = what.replace(`[${index}]`, `[${place.index}]`); // the core counts no OPT records
  return recordError(request, words, place);
}

module.exports = { Bridge };
