'use strict';

// Stores, caches and loggers.

const { EventEmitter } = require('node:events');
const { isDeepStrictEqual } = require('node:util');
const { DNSRequest, NAME_EXISTS } = require('./packet.js');
const { plainName } = require('./utils.js');

/** The store that a handler belongs to. */
const STORE = Symbol('store');

/** A store of records; see `DefaultStore` for what its methods do. */
class Store extends EventEmitter {}

/** Records in memory, by name and type; `*.example.com` has what names below have not. */
class DefaultStore extends Store {
  #data = new Map();
  /** Told of each name that changes, and of `undefined` when nobody can tell any more. */
  #watchers = new Set();

  /** Whether `get` gives records by their types, as from 0.0.14 on, instead of an array. */
  #byType;

  constructor({ shouldCache = false, byType = false } = {}) {
    super();
    this.#byType = byType;
    this.shouldCache = shouldCache;
    this.handler = this.handler.bind(this);
    this.handler[STORE] = this;
  }

  /** All records. Who has asked for them may change them unseen, so that the core no longer
   * answers. */
  get data() {
    this.#changed(undefined);
    this.#watchers = null;
    return this.#data;
  }

  /** Has a function told of all names, now and when they change; `false` if that cannot be known.
   * */
  watch(watcher) {
    if (this.#watchers === null || this.shouldCache) return false;
    this.#watchers.add(watcher);
    for (const [name, records] of this.#data) watcher(name, records);
    return true;
  }

  unwatch(watcher) {
    this.#watchers?.delete(watcher);
  }

  #changed(name) {
    for (const watcher of this.#watchers ?? []) watcher(name, this.#data.get(name));
  }

  /** The records of a name, made if there are none. */
  #records(name) {
    if (!this.#data.has(name)) this.#data.set(name, new Map());
    return this.#data.get(name);
  }

  set(domain, type, data) {
    const name = plainName(domain);
    this.#records(name).set(type, Array.isArray(data) ? [...data] : [data]);
    this.#changed(name);
  }

  append(domain, type, data) {
    const name = plainName(domain);
    const records = this.#records(name);
    records.set(type, [...(records.get(type) ?? []), data]);
    this.#changed(name);
  }

  get(domain, type, wildcards = true) {
    const records = this.#find(plainName(domain), wildcards);
    if (records === undefined) return null;
    const all = !type || type === 'ANY';
    if (this.#byType) {
      const found = all ? [...records] : [...records].filter(([known]) => known === type);
      return found.length > 0 ? Object.fromEntries(found) : null;
    }
    if (!all) return records.get(type) ?? null;
    return [...records.values()].flat();
  }

  /** The records of a name, or of the `*` that is closest to it. */
  #find(name, wildcards = true) {
    return this.#data.get(this.#nameOf(name, wildcards));
  }

  /** The name that has the records of a name: itself, or the `*` that is closest to it. */
  #nameOf(name, wildcards = true) {
    const has = (candidate) => this.#data.get(candidate)?.size > 0;
    if (has(name)) return name;
    if (!wildcards) return undefined;
    for (let dot = name.indexOf('.'); dot >= 0; dot = name.indexOf('.', dot + 1)) {
      const star = `*${name.slice(dot)}`;
      if (has(star)) return star;
    }
    return has('*') ? '*' : undefined;
  }

  /** The name under which the records of a name are kept; `null` if there are none. */
  resolve(domain) {
    return this.#nameOf(plainName(domain)) ?? null;
  }

  delete(domain, type, data) {
    const name = plainName(domain);
    const records = this.#data.get(name);
    if (records === undefined) return;
    const left = type && data !== undefined ? without(records.get(type), data) : [];
    if (!type) records.clear();
    else if (left.length > 0) records.set(type, left);
    else records.delete(type);
    if (records.size === 0) this.#data.delete(name);
    this.#changed(name);
  }

  handler(req, res, next) {
    if (res.finished) return next();
    const { name, type } = req.packet.questions[0];
    const records = this.#find(plainName(name));
    if (records === undefined) return next();
    res[NAME_EXISTS] = true;
    const types = type === 'ANY' ? [...records.keys()] : [type];
    const answers = types.flatMap((type) => {
      return (records.get(type) ?? []).map((data) => ({ name, type, data }));
    });
    if (answers.length > 0) {
      res.answer(answers);
      if (this.shouldCache)
        this.emitCacheRequest(
          name,
          type,
          answers.map(({ data }) => data),
        );
    }
    return next();
  }

  async emitCacheRequest(zoneName, recordType, records) {
    this.emit('cacheRequest', { zoneName, recordType, records });
  }

  toString() {
    const entries = [...this.#data].map(([name, records]) => [name, Object.fromEntries(records)]);
    return JSON.stringify(Object.fromEntries(entries));
  }

  static fromString(text) {
    const store = new DefaultStore();
    const revive = (_, value) => {
      return value?.type === 'Buffer' && Array.isArray(value.data)
        ? Buffer.from(value.data)
        : value;
    };
    for (const [name, records] of Object.entries(JSON.parse(text, revive))) {
      for (const [type, data] of Object.entries(records)) store.set(name, type, data);
    }
    return store;
  }
}

/** A tree of records by name and type: a store, whose `add` sets. */
class Trie {
  #store = new DefaultStore();

  add(domain, type, data) {
    this.#store.set(domain, type, data);
  }

  append(domain, type, data) {
    this.#store.append(domain, type, data);
  }

  get(domain, type, wildcards = true) {
    return this.#store.get(domain, type, wildcards);
  }

  delete(domain, type, data) {
    this.#store.delete(domain, type, data);
  }

  resolve(domain) {
    return this.#store.resolve(domain);
  }

  toString() {
    return this.#store.toString();
  }

  static fromString(text) {
    const trie = new Trie();
    trie.#store = DefaultStore.fromString(text);
    return trie;
  }
}

/** Data without those that are equal to some. */
function without(all, data) {
  return (all ?? []).filter((other) => !isDeepStrictEqual(other, data));
}

/** A cache of records; see `DefaultCache` for what its methods do. */
class Cache {}

/** A cache in memory. What is put into it with a time to live is forgotten after that. */
/** Entries of a cache for which no other number is given: clients choose the names that fill it. */
const MAX_ENTRIES = 100_000;

class DefaultCache extends Cache {
  constructor({ maxEntries = MAX_ENTRIES } = {}) {
    super();
    this.cache = new Map();
    this.maxEntries = maxEntries;
    this.handler = this.handler.bind(this);
  }

  static getKey(zone, type) {
    return `${plainName(zone)}:${type}`;
  }

  /** What is kept and has not expired. */
  #entry(zone, type) {
    const key = DefaultCache.getKey(zone, type);
    const entry = this.cache.get(key);
    if (entry === undefined || entry.until > Date.now()) return entry;
    this.cache.delete(key);
    return undefined;
  }

  get(zone, type) {
    return this.#entry(zone, type)?.data ?? null;
  }

  set(zone, type, data, ttl = Infinity) {
    if (this.maxEntries === 0) return;
    const key = DefaultCache.getKey(zone, type);
    if (!this.cache.has(key) && this.cache.size >= this.maxEntries) {
      this.evictRandomMember();
    }
    const until = Date.now() + ttl * 1000;
    this.cache.set(key, { data: Array.isArray(data) ? data : [data], until });
  }

  append(zone, type, data) {
    const entry = this.#entry(zone, type);
    if (entry === undefined) this.set(zone, type, data);
    else entry.data = [...entry.data, data];
  }

  delete(zone, type, data) {
    const entry = this.#entry(zone, type);
    if (entry === undefined) return;
    const left = data === undefined ? [] : without(entry.data, data);
    if (left.length > 0) entry.data = left;
    else this.cache.delete(DefaultCache.getKey(zone, type));
  }

  get size() {
    return this.cache.size;
  }

  clear() {
    this.cache.clear();
  }

  handler(req, res, next) {
    if (res.finished) return next();
    const { name, type } = req.packet.questions[0];
    const entry = this.#entry(name, type);
    if (entry !== undefined) {
      const left = Math.ceil((entry.until - Date.now()) / 1000);
      const ttl = Number.isFinite(left) ? { ttl: left } : {};
      res.answer(entry.data.map((data) => ({ name, type, ...ttl, data })));
    }
    return next();
  }

  /** Forgets the oldest entry: any will do, and this one is found at once. */
  evictRandomMember() {
    for (const key of this.cache.keys()) return void this.cache.delete(key);
  }
}

/** A handler that puts answers into a cache when they were sent. */
function registerCache(cache) {
  return (req, res, next) => {
    const { name, type } = req.packet.questions[0];
    res.once('done', () => {
      const { answers, rcode } = res.packet;
      const isPlain = (record) =>
        record.type === type && plainName(record.name ?? name) === plainName(name);
      if (rcode !== 'NO_ERROR' || answers.length === 0 || !answers.every(isPlain)) return;
      const ttl = Math.min(...answers.map((record) => record.ttl ?? Infinity));
      Promise.resolve(
        cache.set(
          name,
          type,
          answers.map(({ data }) => data),
          ttl,
        ),
      ).catch(console.error);
    });
    next();
  };
}

/** How much a message matters. */
const LogLevel = { DEBUG: 'DEBUG', INFO: 'INFO', WARN: 'WARN', ERROR: 'ERROR' };

/** What `DefaultReplacer` writes. */
const DEFAULT_LOG_FORMAT =
  '{remote}:{port}-> - {operation} {id} "{type} {class} {name} {proto}" {rcode} {rflags} {duration}s';

/** Writes requests and responses by a format. */
class DefaultReplacer {
  constructor({ format = DEFAULT_LOG_FORMAT } = {}) {
    this.format = format;
    this.replacerMap = {
      remote: (message) => message.connection.remoteAddress,
      port: (message) => message.connection.remotePort,
      id: (message) => message.packet.id,
      type: (message) => message.packet.questions[0].type,
      class: (message) => message.packet.questions[0].class,
      name: (message) => message.packet.questions[0].name,
      proto: (message) => message.connection.type,
      rcode: (message) => (message instanceof DNSRequest ? undefined : message.packet.rcode),
      rflags: (message) => message.packet.flagsArray.join(','),
      duration: ({ metadata: { ts } }) => {
        if (ts.requestTimeNs === undefined || ts.responseTimeNs === undefined) return undefined;
        return Number(ts.responseTimeNs - ts.requestTimeNs) / 1e9;
      },
      operation: (message) => message.packet.type,
    };
  }

  replace(message) {
    return this.format.replace(/\{(\w+)\}/g, (all, key) => {
      return key in this.replacerMap ? this.default(key, message) : all;
    });
  }

  /** What stands for a word of the format. */
  default(key, message) {
    try {
      return String(this.replacerMap[key](message) ?? '--');
    } catch {
      return '--';
    }
  }
}

/** Writes requests and responses to the console. */
class ConsoleLogger {
  constructor({ logRequests = true, logResponses = true, replacer = new DefaultReplacer() } = {}) {
    this.logRequests = logRequests;
    this.logResponses = logResponses;
    this.replacer = replacer;
    this.handler = this.handler.bind(this);
  }

  register(res) {
    res.once('done', () => this.log(LogLevel.INFO, this.replacer.replace(res)));
  }

  handler(req, res, next) {
    if (this.logRequests) this.log(LogLevel.INFO, this.replacer.replace(req));
    if (this.logResponses) this.register(res);
    next();
  }

  log(level, message) {
    const write = { DEBUG: 'debug', INFO: 'info', WARN: 'warn', ERROR: 'error' }[level] ?? 'log';
    console[write](`[${level}] ${message}`);
  }

  error(message) {
    this.log(LogLevel.ERROR, message);
  }

  warn(message) {
    this.log(LogLevel.WARN, message);
  }

  debug(message) {
    this.log(LogLevel.DEBUG, message);
  }

  info(message) {
    this.log(LogLevel.INFO, message);
  }
}

module.exports = {
  Cache,
  ConsoleLogger,
  DEFAULT_LOG_FORMAT,
  DefaultCache,
  DefaultReplacer,
  DefaultStore,
  LogLevel,
  STORE,
  Store,
  Trie,
  registerCache,
};
