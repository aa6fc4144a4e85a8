'use strict';

// The options of an app: what they are, and what the core is told of them.

const { deprecate } = require('node:util');

const { errorWith, wrongValue } = require('./errors.js');

const LOG_LEVELS = ['off', 'error', 'warn', 'info', 'debug'];

/** The highest number of a port. */
const PORT_MAX = 0xffff;

/** A kind of value: what it must be, and whether something is that. */
const ADDRESSES = [
  "an address and port such as '127.0.0.1:5300', a port, { host, port }, or an array of them",
  (it) => [it].flat().every(isPlace),
];
const SERVERS = [
  "a server such as '192.0.2.53', or an array of them",
  (it) => [it].flat().every((text) => typeof text === 'string'),
];
const FILE = ['the path of a file', (it) => typeof it === 'string'];
const ADDRESS = ["an address and port such as '127.0.0.1:9153'", (it) => typeof it === 'string'];
const OBJECT = ['an object', (it) => Object(it) === it];
const FUNCTION = ['a function', (it) => typeof it === 'function'];
const YES_OR_NO = ['true or false', (it) => typeof it === 'boolean'];
const LEVEL = [`one of ${LOG_LEVELS.join(', ')}`, (it) => LOG_LEVELS.includes(it)];
const MILLISECONDS = [
  'a number of milliseconds such as 5000',
  (it) => Number.isFinite(it) && it >= 0 && it <= Number.MAX_SAFE_INTEGER,
];
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
  reusePort: YES_OR_NO,
  allowFailedZones: YES_OR_NO,
  onError: FUNCTION,
};

/** Options as they were given, an address alone as the one that is listened on; throws what is wrong
 * with them. */
function checkedOptions(given) {
  if (['string', 'number'].includes(typeof given) || Array.isArray(given)) {
    return checkedOptions({ listen: given });
  }
  if (Object(given) !== given) {
    throw wrongValue('ZONDA_CONFIG', 'the options must be an object', given);
  }
  for (const [former, today] of FORMER) {
    if (Object.hasOwn(given, former)) return checkedOptions(today(given));
  }
  checkNames('ZONDA_CONFIG', given, Object.keys(OPTIONS));
  for (const [name, value] of Object.entries(given)) {
    if (value !== undefined) checkOption('ZONDA_CONFIG', name, OPTIONS[name], value);
  }
  return given;
}

/** Throws where an object has a name that is not one of those that are known. */
function checkNames(code, given, names) {
  for (const name in given) {
    if (names.includes(name) || !Object.hasOwn(given, name)) continue;
    const known = `the options are ${names.join(', ')}`;
    throw errorWith(code, `there is no option ${name}; ${known}`, TypeError);
  }
}

/** Throws where the value of an option is not of its kind. */
function checkOption(code, name, [what, isThat], value) {
  if (!isThat(value)) throw wrongValue(code, `${name} must be ${what}`, value);
}

/** Former names of options, each with a function that gives options with the name of today. */
const FORMER = Object.entries({
  allowsFailedZones: 'allowFailedZones',
  sharesAddresses: 'reusePort',
}).map(([former, today]) => {
  const renamed = ({ [former]: value, ...given }) => ({ [today]: value, ...given });
  const text = `the option ${former} is called ${today}`;
  return [former, deprecate(renamed, text, `ZONDA_OPTION_${former.toUpperCase()}`)];
});

/** Whether something is an address and port: a text, a port of this machine, or an object. */
function isPlace(where) {
  if (typeof where === 'string') return true;
  if (typeof where === 'number') return isPort(where);
  if (Object(where) !== where || Array.isArray(where) || !isPort(where.port)) return false;
  const { host, port, udp = true, tcp = true, ...more } = where;
  const areKinds = typeof udp === 'boolean' && typeof tcp === 'boolean' && (udp || tcp);
  const isHost = host === undefined || (typeof host === 'string' && host !== '');
  return isHost && areKinds && Object.keys(more).length === 0;
}

/** Whether something is the number of a port. */
function isPort(port) {
  return Number.isInteger(port) && port >= 0 && port <= PORT_MAX;
}

/** An address and port as the core reads it; throws if something is none. */
function placeText(where) {
  if (Array.isArray(where) || !isPlace(where)) {
    const forms = "an address and port such as '127.0.0.1:5300', a port, or { host, port, udp, tcp }";
    throw wrongValue('ZONDA_CONFIG', `listen() needs ${forms}`, where);
  }
  if (typeof where === 'string') return where;
  if (typeof where === 'number') return placeText({ port: where });
  const { host = '127.0.0.1', port, udp = true, tcp = true } = where;
  const protocol = udp && tcp ? '' : `${udp ? 'udp' : 'tcp'}://`;
  const isBare = host.includes(':') && !host.startsWith('[');
  return `${protocol}${isBare ? `[${host}]` : host}:${port}`;
}

/** What the core is told of an app's options. */
function coreOptions(options) {
  const list = (value) => (value === undefined ? [] : [value].flat().map(String));
  const text = (value) => (value === undefined ? undefined : String(value));
  return {
    listen: options.listen === undefined ? [] : [options.listen].flat().map(placeText),
    listensNowhere: Array.isArray(options.listen) && options.listen.length === 0,
    config: text(options.config),
    zones: [],
    forward: list(options.forward),
    workers: options.workers,
    deadline: options.deadline,
    waitingMax: options.waitingMax,
    metrics: text(options.metrics),
    log: text(options.log),
    sharesAddresses: options.reusePort ?? false,
    allowsFailedZones: options.allowFailedZones ?? false,
  };
}

module.exports = {
  MILLISECONDS,
  YES_OR_NO,
  checkNames,
  checkOption,
  checkedOptions,
  coreOptions,
  placeText,
};
