'use strict';

// Functions that programs have for the errors of their handlers and middleware.

const { checkedFunctions } = require('./functions.js');
const { isBelow, suffixLabels } = require('./pattern.js');

/** The functions of an app and of its routers. */
class ErrorHandlers {
  /** The labels of suffixes, and what is for these: the longest suffix first, and what is for all
   * queries last; in the order in which they were added for one suffix. */
  #handlers = [];

  /** Adds a function for the names below a suffix; for all queries, if that is empty. */
  add(suffix, handler) {
    const [function_] = checkedFunctions('onError()', [handler]);
    this.#handlers.push({ labels: suffix === '' ? [] : suffixLabels(suffix), function_ });
    this.#handlers.sort((one, other) => other.labels.length - one.labels.length); // it is stable
  }

  /** The functions that are for a query, in the order in which they are asked. */
  of({ name }) {
    const those = this.#handlers.filter(({ labels }) => isBelow(name, labels));
    return those.map(({ function_ }) => function_);
  }
}

/** Tells functions about an error until one of them has answered; a promise where one returns one.
 * Without a reply, all are told. Where one fails, both errors go to a log, and the next one is told. */
function tell(functions, error, request, response, log) {
  let hasFailed = false;
  const from = (place) => {
    if (place === functions.length || response?.answered) return undefined;
    const ended = (returned) => {
      response?.addReturned(returned);
      return from(place + 1);
    };
    const failed = (another) => {
      if (!hasFailed) log(error);
      hasFailed = true;
      log(another);
      response?.reset();
      return from(place + 1);
    };
    try {
      const result = functions[place](error, request, response);
      if (typeof result?.then === 'function') return result.then(ended).then(undefined, failed);
      return ended(result);
    } catch (another) {
      return failed(another);
    }
  };
  return from(0);
}

module.exports = { ErrorHandlers, tell };
