// Former names work as those of today, and warn once.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { test } from 'node:test';

const index = createRequire(import.meta.url).resolve('../index.js');

const PROGRAM = `
const { App, Query, Reply, Zonda, Request, Response, makeQuery } = require(process.argv[1]);
const warnings = [];
process.on('warning', ({ name, code }) => warnings.push(name + ' ' + code));
(async () => {
  const former = { allowsFailedZones: true, sharesAddresses: false };
  const app = new Zonda({ listen: [], workers: 1, log: 'off', ...former });
  const seen = {};
  app.use((req, res, next) => {
    req.extra.note = 'noted';
    return next();
  });
  app.handle(':user.example', (req, res) => {
    seen.params = { ...req.params };
    seen.note = req.state.note;
    seen.subnet = req.subnet;
    return res.error('Blocked', 'listed').nodata();
  });
  app.handle('fails.example', (req, res) => res.fail('no database'));
  app.handle('passes.example', (req, res) => res.pass());
  app.handle('gone.example', (req, res) => res.nxdomain());
  seen.isRemoved = app.unhandle('gone.example');
  await app.start();
  const { error } = await app.query('Ann.example');
  await app.query('bob.example');
  seen.error = error;
  seen.fails = (await app.query('fails.example')).rcode;
  seen.passes = (await app.query('passes.example')).rcode;
  seen.octets = (await app.query(makeQuery('ann.example'))) instanceof Uint8Array;
  seen.classes = [app instanceof App, Request === Query, Response === Reply];
  await app.stop();
  setImmediate(() => console.log(JSON.stringify({ seen, warnings: warnings.sort() })));
})();
`;

test('former names work as those of today, and warn once', () => {
  const output = execFileSync(process.execPath, ['--no-warnings', '-e', PROGRAM, index]);
  const { seen, warnings } = JSON.parse(output);
  assert.deepEqual(seen, {
    params: { user: 'ann' },
    note: 'noted',
    subnet: null,
    error: { code: 15, text: 'listed' },
    isRemoved: true,
    fails: 'SERVFAIL',
    passes: 'NOERROR',
    octets: true,
    classes: [true, true, true],
  });
  assert.deepEqual(warnings, [
    'DeprecationWarning ZONDA_APP_QUERY',
    'DeprecationWarning ZONDA_APP_UNHANDLE',
    'DeprecationWarning ZONDA_OPTION_ALLOWSFAILEDZONES',
    'DeprecationWarning ZONDA_OPTION_SHARESADDRESSES',
    'DeprecationWarning ZONDA_QUERY_EXTRA',
    'DeprecationWarning ZONDA_QUERY_SUBNET',
    'DeprecationWarning ZONDA_REPLY_ERROR',
    'DeprecationWarning ZONDA_REPLY_FAIL',
    'DeprecationWarning ZONDA_REPLY_NODATA',
    'DeprecationWarning ZONDA_REPLY_PASS',
  ]);
});
