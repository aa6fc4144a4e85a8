// Says in package.json, while a package is packed, for which system the native half was built: npm
// then refuses to install it elsewhere, where it could not be loaded. The file in the repository does
// not say so, since the sources build everywhere.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { libraryName } from '../lib/platform.js';

const file = join(dirname(dirname(fileURLToPath(import.meta.url))), 'package.json');
const manifest = JSON.parse(readFileSync(file, 'utf8'));
delete manifest.cpu;
delete manifest.libc;
if (process.argv[2] === 'add') {
  manifest.cpu = [process.arch];
  manifest.libc = [libraryName() === 'gnu' ? 'glibc' : 'musl'];
}
writeFileSync(file, `${JSON.stringify(manifest, null, 2)}\n`);
