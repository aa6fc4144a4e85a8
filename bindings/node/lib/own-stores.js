'use strict';

// Stores that programs write themselves: answers what the core asks them.

const { inspect } = require('node:util');

const { wrongValue } = require('./errors.js');
const { MILLISECONDS, checkOption } = require('./options.js');
const { portable } = require('./store.js');

/** The stores of an app, by the numbers that the core knows them by. */
class OwnStores {
  #core;
  #stores = new Map();

  constructor(core) {
    this.#core = core;
  }

  /** Serves a zone from a store. */
  add(zone, store) {
    checkStore(zone, store);
    const number = this.#core.addOwnStore(zone, store.deadline);
    this.#stores.set(number, store);
  }

  /** Serves a zone from a store while the app runs; an event of a token tells the end of that. */
  set(zone, store, token) {
    checkStore(zone, store);
    const number = this.#core.setOwnStore(zone, store.deadline, token);
    this.#stores.set(number, store);
  }

  /** Answers what the core asks for, sooner or later, and forgets stores that no zone follows. */
  answer() {
    if (this.#stores.size === 0) return;
    for (const number of this.#core.releasedStores()) this.#stores.delete(number);
    for (const call of this.#core.storeCalls()) this.#answer(call);
  }

  /** Answers a call; what the store throws is an answer, too. */
  async #answer({ token, store, method, argument }) {
    try {
      const sets = await this.#call(store, method, argument);
      this.#core.answerStore(token, undefined, JSON.stringify(sets));
    } catch (error) {
      this.#core.answerStore(token, words(error));
    }
  }

  /** Calls a method of a store. */
  async #call(number, method, argument) {
    const store = this.#stores.get(number);
    if (store === undefined) return []; // the core asks no longer
    if (method === 'watch') {
      await store.watch?.(argument, (owner) => this.#changed(number, owner));
      return [];
    }
    const sets = await store[method](argument);
    if (!Array.isArray(sets)) {
      const wanted = `${method}() of a store must return an array of record sets`;
      throw wrongValue('ZONDA_STORE', wanted, sets);
    }
    return sets.map(portable);
  }

  /** Has the core read an owner of a store, or all that it has. */
  #changed(number, owner) {
    const isOne = owner !== undefined && typeof this.#stores.get(number)?.get === 'function';
    this.#core.storeChanged(number, isOne ? String(owner) : undefined);
  }
}

/** Throws where something is no store. */
function checkStore(zone, store) {
  if (typeof store?.load !== 'function') {
    const wanted = `the store of zone '${zone}' must be a Store, or an object with load(zone)`;
    throw wrongValue('ZONDA_ZONE', wanted, store);
  }
  const { deadline } = store;
  if (deadline === undefined) return;
  checkOption('ZONDA_ZONE', 'deadline of a store', MILLISECONDS, deadline);
}

/** What was thrown, with its stack; even what cannot be shown ends nothing. */
function words(error) {
  try {
    return inspect(error);
  } catch {
    return 'it threw what cannot be shown';
  }
}

module.exports = { OwnStores };
