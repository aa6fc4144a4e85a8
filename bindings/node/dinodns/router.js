'use strict';

// DinoDNS's router: every match in the order in which it was added, behind all middleware.

const { typeNumber, typeWord } = require('../lib/tables.js');
const { FAILED } = require('./packet.js');
const { plainName } = require('./utils.js');

/** Names whose handlers are remembered: more than most servers have, and few of strangers'. */
const REMEMBERED_MAX = 4096;

/** Routes names to handlers. */
class DefaultRouter {
  #middleware = [];
  /** What was found for the names that were asked for last. */
  #remembered = new Map();
  /** Handlers of names without `*`, and of names with one, each with its place among all. */
  #exact = new Map();
  #patterns = [];
  #count = 0;

  use(handler) {
    this.#middleware.push(handler);
    this.#remembered.clear();
  }

  /** The only handler of all names; nothing if there are several. */
  get only() {
    return this.#count === 0 && this.#middleware.length === 1 ? this.#middleware[0] : undefined;
  }

  /** Adds a handler for the names of a pattern, in which `*` stands for any characters, and for the
   * types behind a slash. */
  handle(pattern, handler) {
    const [names, types] = pattern.split('/');
    const entry = { place: this.#count++, handler: filtered(handler, types) };
    const name = plainName(names);
    if (name.includes('*')) {
      this.#patterns.push({ ...entry, covers: matcher(name) });
    } else if (this.#exact.has(name)) {
      this.#exact.get(name).push(entry);
    } else {
      this.#exact.set(name, [entry]);
    }
    this.#remembered.clear();
  }

  /** A handler that calls all that a name has. */
  match(domain) {
    const known = this.#remembered.get(domain);
    if (known !== undefined) return known;
    const found = this.#find(plainName(domain));
    if (this.#remembered.size >= REMEMBERED_MAX) this.#remembered.clear();
    this.#remembered.set(domain, found);
    return found;
  }

  #find(name) {
    const exact = this.#exact.get(name);
    const entries = exact === undefined ? [] : [...exact];
    for (const entry of this.#patterns) {
      if (entry.covers(name)) entries.push(entry);
    }
    if (entries.length > 1) entries.sort((a, b) => a.place - b.place);
    return chained([...this.#middleware, ...entries.map((entry) => entry.handler)]);
  }
}

/** Tells whether a name is one of a pattern's. */
function matcher(pattern) {
  const [before, suffix, ...more] = pattern.split('*');
  if (before === '' && more.length === 0) return (name) => name.endsWith(suffix);
  const names = domainToRegexp(pattern);
  return (name) => match(name, names);
}

/** The names of a pattern, in which `*` stands for any characters, as a regular expression. */
function domainToRegexp(pattern) {
  const [names] = pattern.split('/');
  return { regexp: new RegExp(`^${names.split('*').map(escaped).join('.*')}$`) };
}

/** Whether a name is one of those. */
function match(name, { regexp }) {
  return regexp.test(name);
}

/** A text in which nothing has a meaning for a regular expression. */
function escaped(text) {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}

/** A handler that is called for some types only. */
function filtered(handler, types) {
  if (!types) return handler;
  const words = new Set(types.split('|').map((type) => typeWord(typeNumber(type.trim()))));
  return (req, res, next) => {
    if (words.has(req.packet.questions[0]?.type)) return handler(req, res, next);
    return next();
  };
}

/** Handlers as one, each of which calls the next. An error goes on with the next one, too. */
function chained(handlers) {
  return (req, res, last) => {
    let place = 0;
    const next = (error) => {
      if (error) res[FAILED] = true;
      if (place >= handlers.length) return last(error);
      const handler = handlers[place++];
      let result;
      try {
        result = handler(req, res, next);
      } catch (thrown) {
        return next(failure(res, thrown));
      }
      // What a promise is rejected with ends the query: nobody knows whether it has called next.
      if (typeof result?.then === 'function') {
        result.then(undefined, (rejected) => last(failure(res, rejected)));
      }
    };
    next();
  };
}

/** What was thrown, as an error; takes note that a handler has failed. */
function failure(res, thrown) {
  res[FAILED] = true;
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

module.exports = { DefaultRouter, domainToRegexp, match };
