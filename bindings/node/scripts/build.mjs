// Builds the native half and puts it beside the JavaScript. `--debug` builds faster what runs
// slower.
import { copyFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { buildNative, folder } from './native.mjs';

const built = buildNative(process.argv.includes('--debug') ? 'dev' : 'binding');
// By a new name first: a process that has the former one loaded keeps it whole.
const place = join(folder, 'zonda.node');
copyFileSync(built, `${place}.new`);
renameSync(`${place}.new`, place);
