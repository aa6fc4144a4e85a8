// Writes `records.d.ts`: the types of records' data, of the core's table of fields.
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import data from '../lib/data.js';
import tables from '../lib/tables.js';

const OCTETS = 'Uint8Array';
/** What TypeScript calls the kinds of fields. */
const KINDS = {
  number: 'number | string',
  name: 'string',
  names: 'string | readonly string[]',
  string: `string | ${OCTETS}`,
  strings: `string | ${OCTETS} | ReadonlyArray<string | ${OCTETS}>`,
  hex: `string | ${OCTETS}`,
  base64: `string | ${OCTETS}`,
  base32: `string | ${OCTETS}`,
  time: 'number | string',
  words: 'string | readonly string[]',
  word: 'number | string',
};
/** What they are where a record was read, if not text. */
const READ_KINDS = {
  number: 'number',
  names: 'readonly string[]',
  strings: 'readonly string[]',
  words: 'readonly string[]',
};

/** The text of the file. */
export function recordTypes() {
  const union = (words) => `${words.map((word) => `  | '${word}'`).join('\n')};`;
  const types = [...data.known].map(([number, fields]) => {
    return `  ${key(tables.typeWord(number))}: ${dataOf(fields)};`;
  });
  const read = [...data.known].map(([number, fields]) => {
    return `  ${key(tables.typeWord(number))}: ${readDataOf(fields)};`;
  });
  return [
    '// Written by scripts/types.mjs, of the table of fields that the core has.',
    '',
    "import type { AnyData } from './index.js';",
    '',
    '/** Types that have a word. */',
    'export type KnownType =',
    union(tables.words),
    '',
    '/** Response codes that have a word. */',
    'export type KnownResponseCode =',
    union(tables.rcodeWords),
    '',
    '/** Extended errors that have a name (rfc8914). */',
    'export type KnownExtendedError =',
    union([...new Set(tables.errorWords.flatMap((word) => [word, word.replaceAll(' ', '')]))]),
    '',
    '/** Parameters of SVCB and HTTPS: `{ alpn: ["h2", "h3"], port: 443 }`. */',
    'export type SvcParams = Record<string, string | number | true | readonly string[]>;',
    '',
    '/** Data of the types that have fields, which may be called as in the table, in camel case, or',
    ' * as dns-packet calls them. A field is optional that may be left out, or has several names. */',
    'export interface TypedData {',
    ...types,
    '}',
    '',
    '/** Data of the same types where a record was read: text for types with one field, an array of',
    ' * strings for TXT, and an object with the fields for all others. */',
    'export interface ReadData {',
    ...read,
    '}',
    '',
  ].join('\n');
}

/** What data with some fields may be, besides text and octets. */
function dataOf(fields) {
  if (fields.length > 1) return ['AnyData | {', ...fields.flatMap(members), '  }'].join('\n');
  const lists = KINDS[fields[0].kind].split(' | ').filter((type) => /\[\]|Array/.test(type));
  return lists.length > 0 ? `AnyData | ReadonlyArray<string | ${OCTETS}>` : 'AnyData';
}

/** What data with some fields are where a record was read. */
function readDataOf(fields) {
  const types = fields.map(({ name, kind }) => [name, READ_KINDS[kind] ?? 'string']);
  if (types.length === 1) return types[0][1];
  const lines = types.map(([name, type]) => `    readonly ${name}: ${type};`);
  return ['{', ...lines, '  }'].join('\n');
}

/** The members for a field: one for each name. */
function members({ name, kind, names }) {
  const isOptional = data.mayBeMissing(name, kind) || new Set(names).size > 1;
  const type = name === 'svc_params' ? `${KINDS[kind]} | SvcParams` : KINDS[kind];
  const all = [...new Set(names)].map((it) => `    ${it}${isOptional ? '?' : ''}: ${type};`);
  return name === 'tag' ? [...all, '    issuerCritical?: boolean;'] : all;
}

/** A type's word as a member's name. */
function key(word) {
  return /^\w+$/.test(word) ? word : `'${word}'`;
}

/** Where the file is. */
const place = join(dirname(dirname(fileURLToPath(import.meta.url))), 'records.d.ts');
if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(place, recordTypes());
