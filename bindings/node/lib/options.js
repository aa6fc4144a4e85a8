'use strict';

// The options of an app: what they are, and what the core is told of them.

const { deprecate, inspect } = require('node:util');

const { errorWith } = require('./errors.js');

const LOG_LEVELS = ['off', 'error', 'warn', 'info', 'debug'];

/** A kind of value: what it must be, and whether something is that. */
const ADDRESSES = [
  "an address and port such as '127.0.0.1:5300', or an array of them",
  (it) => [it].flat().every((text) => typeof text === 'string'),
];
const SERVERS = ["a server such as '192.0.2.53', or an array of them", ADDRESSES[1]];
const FILE = ['the path of a file', (it) => typeof it === 'string'];
const ADDRESS = ["an address and port such as '127.0.0.1:9153'", (it) => typeof it === 'string'];
const OBJECT = ['an object', (it) => Object(it) === it];
const FUNCTION = ['a function', (it) => typeof it === 'function'];
const YES_OR_NO = ['true or false', (it) => typeof it === 'boolean'];
const LEVEL = [`one of ${LOG_LEVELS.join(', ')}`, (it) => LOG_LEVELS.includes(it)];
const MILLISECONDS = ['a number of milliseconds', (it) => Number.isFinite(it) && it >= 0];
const COUNT = [
  'a whole number from 1 on',
  (it) => Number.isInteger(it) && it > 0 && it <= 0xffffffff,
];

/** The options that an app has, and what their values must be. */
const OPTIONS = {
  listen: ADDRESSES,
  config: FILE,
  zones: OBJECT,
  forward: SERVERS,
  workers: COUNT,
  deadline: MILLISECONDS,
  waitingMax: COUNT,
  metrics: ADDRESS,
  log: LEVEL,
  logger: FUNCTION,
  sharesAddresses: YES_OR_NO,
  allowFailedZones: YES_OR_NO,
  onError: FUNCTION,
};

/** Options as they were given, an address alone as the one that is listened on; throws what is wrong
 * with them. */
function checkedOptions(given) {
  if (typeof given === 'string' || Array.isArray(given)) return checkedOptions({ listen: given });
  if (Object(given) !== given) {
    throw wrong(`the options must be an object, not ${inspect(given)}`);
  }
  if (Object.hasOwn(given, 'allowsFailedZones')) return checkedOptions(withoutFormer(given));
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(OPTIONS, name)) {
      const names = Object.keys(OPTIONS).join(', ');
      throw wrong(`there is no option ${name}; the options are ${names}`);
    }
    const [what, isThat] = OPTIONS[name];
    if (value !== undefined && !isThat(value)) {
      throw wrong(`${name} must be ${what}, not ${inspect(value)}`);
    }
  }
  return given;
}

/** An error of the options. */
function wrong(what) {
  return errorWith('ZONDA_CONFIG', what, TypeError);
}

/** Options with the name of today for one that has another name since. */
const withoutFormer = deprecate(
  ({ allowsFailedZones, ...given }) => ({ allowFailedZones: allowsFailedZones, ...given }),
  'the option allowsFailedZones is called allowFailedZones',
  'ZONDA_OPTION_ALLOWSFAILEDZONES',
);

/** What the core is told of an app's options. */
function coreOptions(options) {
  const list = (value) => (value === undefined ? [] : [value].flat().map(String));
  const text = (value) => (value === undefined ? undefined : String(value));
  return {
    listen: list(options.listen),
    listensNowhere: Array.isArray(options.listen) && options.listen.length === 0,
    config: text(options.config),
    zones: [],
    forward: list(options.forward),
    workers: options.workers,
    deadline: options.deadline,
    waitingMax: options.waitingMax,
    metrics: text(options.metrics),
    log: text(options.log),
    sharesAddresses: options.sharesAddresses ?? false,
    allowsFailedZones: options.allowFailedZones ?? false,
  };
}

module.exports = { checkedOptions, coreOptions };
