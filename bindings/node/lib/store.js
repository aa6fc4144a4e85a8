'use strict';

// Stores of the core, as programs hold them, and records as they cross the border.

const { checkFields, text } = require('./data.js');
const { errorWith, withCode, wrongValue } = require('./errors.js');
const native = require('./native.js');
const { MILLISECONDS, checkNames, checkOption } = require('./options.js');
const { pathOf } = require('./path.js');
const { TTL, TTL_MAX } = require('./record.js');
const { custom, shown } = require('./shown.js');
const { typeNumber, typeWord } = require('./tables.js');

/** The core's half of a store; nothing if that is all JavaScript. */
let handleOf;

/** What the stores of the core have in common. What is asked of one is done in that order, by a
 * thread of its own. */
class Store {
  #handle;
  /** What `util.inspect` shows of it: where the records are, and no password. */
  #place;
  #isClosed = false;

  static {
    handleOf = (store) => (Object(store) === store && #handle in store ? store.#handle : undefined);
  }

  constructor(handle, place = {}) {
    if (!(handle instanceof native.StoreHandle)) {
      const why = 'a store in a file is opened by `await RedbStore.open(file)`, not by `new`';
      throw errorWith('ZONDA_CONFIG', why, TypeError);
    }
    this.#handle = handle;
    this.#place = place;
  }

  [custom](depth, options) {
    const fields = this.#isClosed ? { ...this.#place, isClosed: true } : this.#place;
    return shown(this.constructor.name, fields, depth, options);
  }

  /** All record sets of a zone, and perhaps those of further names. */
  async load(zone) {
    return await result(this.#handle.load(String(zone)));
  }

  /** All record sets of an owner. */
  async get(owner) {
    return await result(this.#handle.get(String(owner)));
  }

  /** Puts records in place of all that the owner has of that type, in one step. */
  async set(records) {
    await this.setMany([records]);
  }

  /** Puts each of several record sets in place of all that its owner has of its type, all in one
   * step. */
  async setMany(sets) {
    if (typeof sets?.[Symbol.iterator] !== 'function') {
      throw wrongValue('ZONDA_RECORD', 'setMany() needs an array of record sets', sets);
    }
    const checkedSets = Array.from(sets, (records) => {
      const { wrong, ...set } = portable(records);
      if (wrong === undefined) return set;
      const place = Object(records) === records ? `${set.owner} ${set.type}: ` : '';
      throw errorWith('ZONDA_RECORD', `${place}${wrong}`, TypeError);
    });
    await result(this.#handle.set(JSON.stringify(checkedSets)));
  }

  /** Takes the records of an owner and a type away; tells whether there were any. */
  async remove(owner, type) {
    const number = withCode('ZONDA_RECORD', () => typeNumber(type));
    return await result(this.#handle.remove(String(owner), number));
  }

  /** Gives its file or its connections back, once no app that runs serves it. */
  async close() {
    this.#isClosed = true;
    await result(this.#handle.close());
  }
}

/** A store that forgets all when the process ends. */
class MemoryStore extends Store {
  constructor() {
    super(native.StoreHandle.memory());
  }
}

/** A store in a file that belongs to one process at a time. */
class RedbStore extends Store {
  /** Opens a file, or makes it. */
  static async open(file) {
    const handle = native.StoreHandle.unopened();
    const path = pathOf(file);
    await result(handle.openFile(path));
    return new this(handle, { file: path });
  }
}

/** A store in a Redis or Valkey server. */
class RedisStore extends Store {
  constructor(url, options = {}) {
    const { prefix = '', compareEvery } = checkedOptions(options, ['prefix', 'compareEvery']);
    const of = [String(url), String(prefix), compareEvery];
    const handle = withCode('ZONDA_CONFIG', () => native.StoreHandle.redis(...of));
    super(handle, { server: handle.place(), prefix: String(prefix) });
  }
}

/** A store in a PostgreSQL database. */
class PostgresStore extends Store {
  constructor(parameters, options = {}) {
    const { compareEvery } = checkedOptions(options, ['compareEvery']);
    const of = [String(parameters), compareEvery];
    let handle;
    try {
      handle = native.StoreHandle.postgres(...of);
    } catch ({ message }) {
      const wanted = "parameters must be such as 'postgresql://user:password@host/database'";
      throw errorWith('ZONDA_CONFIG', `${wanted}: ${message}`);
    }
    super(handle, { server: handle.place() });
  }
}

/** Options of a store, which has those of some names; throws what is wrong with them. */
function checkedOptions(options, names) {
  if (Object(options) !== options) {
    throw wrongValue('ZONDA_CONFIG', 'the options of a store must be an object', options);
  }
  checkNames('ZONDA_CONFIG', options, names);
  const { compareEvery } = options;
  if (compareEvery !== undefined) {
    checkOption('ZONDA_CONFIG', 'compareEvery', MILLISECONDS, compareEvery);
  }
  return options;
}

/** What the core has done, from its JSON; its errors are JSON, too. An error gets the stack of the
 * program that has asked. */
async function result(promise) {
  let json;
  try {
    json = await promise;
  } catch (error) {
    const { code, message } = JSON.parse(error.message);
    throw errorWith(code, message);
  }
  return JSON.parse(json);
}

/** A record set as it crosses the border, or what is wrong with it, as far as that can be told. */
function portable(set) {
  try {
    return checked(set);
  } catch (error) {
    const [owner, type] = [String(set?.owner ?? '?'), String(set?.type ?? '?')];
    return { owner, type, wrong: error.message };
  }
}

/** A record set with all that it may leave out; throws what is wrong with it. */
function checked(set) {
  if (Object(set) !== set) {
    throw wrong('a record set must be an object with owner, type and data', set);
  }
  const { owner, type, ttl = TTL, data } = set;
  if (typeof owner !== 'string') {
    throw wrong("owner must be a name such as 'www.example.org'", owner);
  }
  const number = typeNumber(type);
  if (!Number.isInteger(ttl) || ttl < 0 || ttl > TTL_MAX) {
    throw wrong(`ttl must be a whole number of seconds from 0 to ${TTL_MAX}`, ttl);
  }
  if (!Array.isArray(data)) {
    throw wrong('data must be an array with an element for each record', data);
  }
  data.forEach((data) => checkFields(number, data));
  return { owner, type: typeWord(number), ttl, data: data.map((data) => text(number, data)) };
}

/** An error of a record set: what a part of it must be, and what it is. */
function wrong(wanted, value) {
  return wrongValue('ZONDA_RECORD', wanted, value);
}

module.exports = { MemoryStore, PostgresStore, RedbStore, RedisStore, Store, handleOf, portable };
