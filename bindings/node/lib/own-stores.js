'use strict';

// Stores that programs write themselves: answers what the core asks them.

const { inspect } = require('node:util');
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
    if (!Array.isArray(sets)) throw new TypeError('it gave no array of record sets');
    return sets.map(portable);
  }

  /** Has the core read an owner of a store, or all that it has. */
  #changed(number, owner) {
    const isOne = owner !== undefined && typeof this.#stores.get(number)?.get === 'function';
    this.#core.storeChanged(number, isOne ? String(owner) : undefined);
  }
}

/** Throws what is no store. */
function checkStore(zone, store) {
  if (typeof store?.load !== 'function') {
    throw new TypeError(`store('${zone}') needs a store, which has load(zone)`);
  }
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
