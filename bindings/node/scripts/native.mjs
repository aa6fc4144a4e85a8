// Builds the native half with cargo.
import { spawnSync } from 'node:child_process';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of the package. */
export const folder = dirname(dirname(fileURLToPath(import.meta.url)));

/** Builds the native half, without symbols, in a profile: the path of the file. Ends the process where
 * that fails. It is for this system, or for `target`, a target of Rust. With `isDynamic`, the C library
 * is that of the system although the target would have it linked in, as musl's does: cargo makes no
 * library of such. With `hasZig`, cargo-zigbuild has the target's linker and C compiler. */
export function buildNative(profile, { target, isDynamic = false, hasZig = false } = {}) {
  const { RUSTFLAGS = '' } = process.env;
  const flags = isDynamic ? `${RUSTFLAGS} -C target-feature=-crt-static`.trim() : RUSTFLAGS;
  const env = flags === '' ? process.env : { ...process.env, RUSTFLAGS: flags };
  const args = ['rustc', '--locked', '--package', 'zonda-node', '--lib', '--profile', profile];
  if (target !== undefined) args.push('--target', target);
  args.push('--message-format', 'json-render-diagnostics');
  // Cargo forgets the `strip` of a profile for a package that the profile has other options for.
  args.push('--', '-C', 'strip=symbols');
  const { status, stdout } = spawnSync(hasZig ? 'cargo-zigbuild' : 'cargo', args, {
    cwd: folder,
    env,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (status !== 0) process.exit(status ?? 1);
  const built = stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))
    .find(
      (message) => message.reason === 'compiler-artifact' && message.target.name === 'zonda_node',
    );
  return built.filenames[0];
}
