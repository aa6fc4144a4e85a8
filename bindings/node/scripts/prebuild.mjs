// Makes the packages that a registry has, in the folder `prebuilt`: `zonda`, which is JavaScript, and
// one for each system with the native half for it. npm installs that of its system beside `zonda`.
//
//   node scripts/prebuild.mjs [NAME…]          builds the packages of these systems, such as
//                                              linux-arm64-musl; else that of this one
//   node scripts/prebuild.mjs NAME=FILE …      takes a native half that was built elsewhere
//   node scripts/prebuild.mjs --out FOLDER …   puts the packages into another folder
//
//   node scripts/prebuild.mjs --zig NAME …     builds for any of the systems with Zig, which has a
//                                              linker, a C compiler and the C libraries of all
//
// Each system but this one needs its target of Rust (`rustup target add TARGET`). With `--zig`, that
// and `pip install ziglang cargo-zigbuild` are all. Without it, each needs a linker and a C compiler, such
// as CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER and CC_aarch64_unknown_linux_gnu; or run this in a
// container of the system. For glibc, build where it is the oldest that the package is for; with
// `--zig`, it is GLIBC_OLDEST. For musl, the native half is built with
// `-C target-feature=-crt-static`, as it is loaded into a Node.js that uses musl of the system; flags
// of a configuration file of cargo then do not apply, only those of RUSTFLAGS.
import { copyFileSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { packageName } from '../lib/platform.js';
import { buildNative, folder } from './native.mjs';

/** The systems, by the ends of their packages' names, with Rust's name for each. */
const TARGETS = {
  'linux-x64-gnu': 'x86_64-unknown-linux-gnu',
  'linux-x64-musl': 'x86_64-unknown-linux-musl',
  'linux-arm64-gnu': 'aarch64-unknown-linux-gnu',
  'linux-arm64-musl': 'aarch64-unknown-linux-musl',
};

/** The oldest glibc that packages built with Zig are for. */
const GLIBC_OLDEST = '2.34';

const { values, positionals: systems } = parseArgs({
  options: {
    out: { type: 'string', default: join(folder, 'prebuilt') },
    zig: { type: 'boolean', default: false },
  },
  allowPositionals: true,
});
const { out, zig: hasZig } = values;
const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
const { version, license, engines } = manifest;

/** Writes the description of a package into its folder. */
function describe(place, description) {
  writeFileSync(join(place, 'package.json'), `${JSON.stringify(description, null, 2)}\n`);
}

/** An empty folder for a package. */
function emptyFolder(name) {
  const place = join(out, name);
  rmSync(place, { recursive: true, force: true });
  mkdirSync(place, { recursive: true });
  return place;
}

/** Builds the native half for a target: the path of the file. */
function build(target, isMusl, isHere) {
  if (!hasZig) return buildNative('binding', { target: isHere ? undefined : target, isDynamic: isMusl });
  const versioned = isMusl ? target : `${target}.${GLIBC_OLDEST}`;
  return buildNative('binding', { target: versioned, isDynamic: isMusl, hasZig });
}

/** Makes the package of a system. */
function makeNative(system, file) {
  const target = TARGETS[system];
  if (target === undefined) {
    throw new Error(`${system}: choose one of ${Object.keys(TARGETS).join(', ')}`);
  }
  const name = `zonda-${system}`;
  const [os, cpu, library] = system.split('-');
  const isMusl = library === 'musl';
  const isHere = name === packageName();
  const place = emptyFolder(name);
  copyFileSync(file ?? build(target, isMusl, isHere), join(place, 'zonda.node'));
  const libc = [isMusl ? 'musl' : 'glibc'];
  const description = `The native half of the package zonda for ${system}.`;
  const of = { os: [os], cpu: [cpu], libc, main: 'zonda.node', files: ['zonda.node'] };
  describe(place, { name, version, description, license, type: 'commonjs', engines, ...of });
  console.log(place);
}

/** Makes the package that programs depend on. */
function makeMain() {
  const place = emptyFolder('zonda');
  const files = manifest.files.filter((file) => file !== 'zonda.node');
  for (const file of files) cpSync(join(folder, file), join(place, file), { recursive: true });
  const systems = Object.keys(TARGETS).map((system) => [`zonda-${system}`, version]);
  const rest = { ...manifest };
  // It is for all systems, also where the manifest is that of a package that is made just now.
  const left = ['devDependencies', 'scripts', 'private', 'cpu', 'libc'];
  left.forEach((key) => delete rest[key]);
  describe(place, { ...rest, files, optionalDependencies: Object.fromEntries(systems) });
  console.log(place);
}

if (systems.length === 0) systems.push(packageName().replace(/^zonda-/, ''));
for (const system of systems) makeNative(...system.split('=', 2));
makeMain();
