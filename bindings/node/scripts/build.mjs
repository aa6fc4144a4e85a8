// Builds the native half and puts it beside the JavaScript. `--debug` builds faster what runs
// slower.
import { spawnSync } from 'node:child_process';
import { copyFileSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = dirname(dirname(fileURLToPath(import.meta.url)));
const profile = process.argv.includes('--debug') ? 'dev' : 'release';
const cargo = ['build', '--locked', '--package', 'zonda-node', '--profile', profile];
const { status, stdout } = spawnSync(
  'cargo',
  [...cargo, '--message-format', 'json-render-diagnostics'],
  {
    cwd: folder,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
    stdio: ['ignore', 'pipe', 'inherit'],
  },
);
if (status !== 0) process.exit(status ?? 1);
const built = stdout
  .split('\n')
  .filter((line) => line.startsWith('{'))
  .map((line) => JSON.parse(line))
  .find(
    (message) => message.reason === 'compiler-artifact' && message.target.name === 'zonda_node',
  );
// By a new name first: a process that has the former one loaded keeps it whole.
const place = join(folder, 'zonda.node');
copyFileSync(built.filenames[0], `${place}.new`);
// What only a debugger reads is five sixths of the file. Without `strip`, it stays.
spawnSync('strip', ['--strip-debug', `${place}.new`], { stdio: 'ignore' });
renameSync(`${place}.new`, place);
