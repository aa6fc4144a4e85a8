// A certificate for tests, made by openssl.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isSpared } from './helpers.mjs';

/** Key and certificate; `null` if tests may do without openssl. */
export function certificate(test) {
  if (isSpared(test, 'openssl')) return null;
  const folder = mkdtempSync(join(tmpdir(), 'zonda-node-'));
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'];
  const files = ['-keyout', key, '-out', cert];
  try {
    execFileSync(
      'openssl',
      ['req', '-x509', ...curve, '-nodes', '-subj', '/CN=localhost', ...files],
      {
        stdio: 'ignore',
      },
    );
    return { key: readFileSync(key), cert: readFileSync(cert) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
