'use strict';

// Handlers and middleware of the names below a suffix.

const { below, checkSuffix } = require('./pattern.js');
const { custom, shown } = require('./shown.js');

/** What adds a function for errors to an app, for the names below a suffix. */
const ADD_ERROR_HANDLER = Symbol('addErrorHandler');

/** Names below a suffix, which patterns leave out. */
class Router {
  #app;
  #suffix;

  constructor(app, suffix) {
    checkSuffix(suffix); // tells the mistake where it is made
    this.#app = app;
    this.#suffix = suffix;
  }

  /** Answers names below the suffix with functions: `www`, `*`, `:user/TXT`; `@` is the suffix. */
  handle(patterns, ...handlers) {
    const all = [patterns].flat().map((pattern) => below(pattern, this.#suffix));
    this.#app.handle(all, ...handlers);
    return this;
  }

  /** Answers the names of a pattern no longer; tells whether it did. */
  removeHandler(pattern) {
    return this.#app.removeHandler(below(pattern, this.#suffix));
  }

  /** Has queries for the suffix and all names below it pass functions; with a pattern first, those
   * for the names of that. */
  middleware(...middleware) {
    if (typeof middleware[0] === 'string') {
      const [pattern, ...functions] = middleware;
      this.#app.middleware(below(pattern, this.#suffix), ...functions);
    } else {
      for (const pattern of ['@', '*']) {
        this.#app.middleware(below(pattern, this.#suffix), ...middleware);
      }
    }
    return this;
  }

  /** As `middleware`, by the name that programs for web servers know. */
  use(...middleware) {
    return this.middleware(...middleware);
  }

  /** Tells a function of the errors of queries for the suffix and all names below it, before those
   * that the app has for all queries. */
  onError(handler) {
    this.#app[ADD_ERROR_HANDLER](this.#suffix, handler);
    return this;
  }

  /** The names below a suffix that is itself below this one. */
  route(suffix) {
    return this.#app.route(below(suffix, this.#suffix));
  }

  /** What `util.inspect` shows. */
  [custom](depth, options) {
    return shown('Router', { suffix: this.#suffix }, depth, options);
  }
}

module.exports = { ADD_ERROR_HANDLER, Router };
