'use strict';

// Patterns of names and types, as far as JavaScript reads them: the core's code/pattern.rs has what
// they mean. A canonical pattern is in lower case, without final dot, with its types in order.

const { withCode, wrongValue } = require('./errors.js');
const native = require('./native.js');
const { splitLabels } = require('./request.js');

/** The one text of all patterns that mean the same as this one. */
function canonicalPattern(pattern) {
  if (typeof pattern !== 'string') {
    throw wrongValue('ZONDA_PATTERN', "a pattern must be a text such as '*.example.org'", pattern);
  }
  return withCode('ZONDA_PATTERN', () => native.checkPattern(pattern));
}

/** The names of a pattern, and `/` with its types, if it has some. */
function splitTypes(pattern) {
  const [names] = /^(?:\\.|[^\\/])*/.exec(pattern);
  return [names, pattern.slice(names.length)];
}

/** The labels of a pattern, its `*` among them. */
function patternLabels(pattern) {
  return splitLabels(splitTypes(pattern)[0]).filter((label) => label !== '');
}

/** The words that a pattern captures, and the places of their labels from the right. */
function captures(pattern) {
  const labels = patternLabels(pattern);
  const captures = [];
  labels.forEach((label, place) => {
    if (label.startsWith(':')) captures.push([label.slice(1), labels.length - place]);
  });
  return captures;
}

/** What a pattern spells out behind its captures and `*`, with its final dot; nothing if that is all
 * of it, or none of it. */
function zoneOf(pattern) {
  const labels = patternLabels(pattern);
  const place = labels.findLastIndex((label) => label === '*' || label.startsWith(':'));
  if (place < 0 || place === labels.length - 1) return undefined;
  return `${labels.slice(place + 1).join('.')}.`;
}

/** Throws what is wrong with a suffix that patterns leave out. */
function checkSuffix(suffix) {
  canonicalPattern(suffix);
  withCode('ZONDA_PATTERN', () => native.checkSuffix(suffix));
}

/** The labels of a suffix as names of queries have them: in lower case. */
function suffixLabels(suffix) {
  return patternLabels(canonicalPattern(suffix));
}

/** Whether a query's name is a suffix, or below it; a label that the suffix captures may be any. */
function isBelow(name, suffix) {
  if (suffix.length === 0) return true;
  const labels = splitLabels(name);
  const skip = labels.length - suffix.length;
  const isSame = (label, place) => label.startsWith(':') || label === labels[skip + place];
  return skip >= 0 && suffix.every(isSame);
}

/** A pattern below a suffix: `www` and `www/A` become `www.eu.example` and `www.eu.example/A`; `@` is
 * the suffix itself. */
function below(pattern, suffix) {
  if (typeof pattern !== 'string') canonicalPattern(pattern); // which throws
  const [names, types] = splitTypes(pattern);
  return names === '@' ? `${suffix}${types}` : `${names.replace(/\.$/, '')}.${suffix}${types}`;
}

module.exports = { below, canonicalPattern, captures, checkSuffix, isBelow, suffixLabels, zoneOf };
