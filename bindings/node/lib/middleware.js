'use strict';

// Functions that stand in front of all queries, or of those for a pattern.

const { ENTER_GUARD, ROUTE, SET_ROUTE } = require('./request.js');

/** Middleware for a pattern, which has the captures of that for as long as it runs itself; what is
 * behind it has those of its own route. */
function inGuard(guard, function_) {
  return (request, response, next) => {
    const own = request[ROUTE];
    // What is behind may still run, with a route of its own.
    const leave = () => {
      if (request[ROUTE] === guard) request[SET_ROUTE](own);
    };
    const goOn = (error) => {
      leave();
      const behind = next(error);
      const back = () => request[ENTER_GUARD](guard);
      const returned = behind.then(back, (thrown) => {
        back();
        throw thrown;
      });
      returned.catch(() => {}); // the error is that of `behind`, which is waited for in any case
      return returned;
    };
    request[ENTER_GUARD](guard);
    let result;
    try {
      result = function_(request, response, goOn);
    } catch (error) {
      leave();
      throw error;
    }
    if (typeof result?.then !== 'function') {
      leave();
      return result;
    }
    return result.then(
      (value) => (leave(), value),
      (error) => {
        leave();
        throw error;
      },
    );
  };
}

/** What is wrong with middleware that does nothing. */
const UNDECIDED =
  'it ended without an answer, and without next(): answer, or return next() to leave the query to what ' +
  'is behind it';

/** Middleware that fails where it decides nothing: what it left out would open what it guards. */
function decisive(function_) {
  const checked = (request, response, next) => {
    let isNextCalled = false;
    const goOn = (error) => {
      isNextCalled = true;
      return next(error);
    };
    const ended = (returned) => {
      response.addReturned(returned);
      if (isNextCalled || response.answered) return;
      throw new Error(`middleware ${function_.name || '(anonymous)'}: ${UNDECIDED}`);
    };
    const result = function_(request, response, goOn);
    return typeof result?.then === 'function' ? result.then(ended) : ended(result);
  };
  return Object.defineProperty(checked, 'name', { value: function_.name }); // what an app shows
}

module.exports = { decisive, inGuard };
