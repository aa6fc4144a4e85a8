// The pages for Node.js: every block of JavaScript in them is run, every block of TypeScript is
// compiled, and they leave nothing out.
//
// The blocks of JavaScript below one heading are one program. What it does not say itself stands
// before it: the imports of zonda and of assert, and an app. An app that it neither starts nor stops
// is started and stopped. Ports 5300 and 8053 are free ones. Lines keep their numbers, so that an
// error names that of the page.
//
// A block of `js server` is a whole program that ends at SIGTERM: it is started, asked, and stopped.

import assert from 'node:assert/strict';
import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import zonda from '../index.js';
import { folder, freePort, query, sleep, udp } from './helpers.mjs';

const { decodeMessage } = zonda;
const here = fileURLToPath(new URL('..', import.meta.url));
const root = fileURLToPath(new URL('../../..', import.meta.url));

const PAGES = [
  'README.md',
  'bindings/node/README.md',
  'docs/nodejs.md',
  'docs/cookbook-nodejs.md',
  'docs/coming-from-dinodns.md',
  'docs/stores.md',
];
/** How long a program may take, milliseconds. */
const PROGRAM_MILLIS = 30_000;

/** A file of the repository. */
function read(path) {
  return readFileSync(join(root, path), 'utf8');
}

/** The programs of a page in a language, or of a kind in it: the line of the first block, and all
 * lines, empty where the page has something else. */
function programs(page, wanted) {
  const programs = [];
  let program;
  let language;
  for (const [index, line] of read(page).split('\n').entries()) {
    if (line.startsWith('```')) {
      language = language === undefined ? line.slice(3) : undefined;
      if (language?.includes(' ')) program = undefined; // a block of a kind is a program by itself
    } else if (language === undefined && line.startsWith('## ')) {
      program = undefined;
    } else if (language === wanted) {
      if (program === undefined) programs.push((program = { line: index, lines: [] }));
      program.lines[index] = line;
    }
  }
  return programs;
}

/** A program with what it leaves to its reader. */
function whole({ lines }) {
  const text = Array.from(lines, (line) => line ?? '').join('\n');
  const before = [];
  if (!/\bApp\b.* from 'zonda'/.test(text)) before.push("import { App } from 'zonda';");
  if (!/import assert/.test(text)) before.push("import assert from 'node:assert/strict';");
  const hasServer = /const server = new /.test(text);
  if (!hasServer && !/const app = new /.test(text)) {
    before.push("const app = new App({ listen: '127.0.0.1:5300', workers: 1 });");
  }
  const after = [];
  if (!hasServer && !/app\.(start|serve)\(/.test(text)) after.push('await app.start();');
  if (!hasServer && !text.includes('app.stop(')) after.push('await app.stop();');
  return [before.join(' ') + text, ...after, ''].join('\n').replace(/\b(5300|8053)\b/g, '0');
}

/** The text of a program. */
function textOf({ lines }) {
  return Array.from(lines, (line) => line ?? '').join('\n');
}

/** A folder in which programs find the package, and the zones that they name. */
function workplace(t) {
  const place = folder(t);
  mkdirSync(join(place, 'node_modules'));
  symlinkSync(here, join(place, 'node_modules', 'zonda'));
  cpSync(join(root, 'examples', 'zones'), join(place, 'zones'), { recursive: true });
  cpSync(join(place, 'zones', 'example.org.zone'), join(place, 'example.org.zone'));
  return place;
}

/** Starts a program in a folder, outside the test that runs this. */
function begin(place, file) {
  const { NODE_TEST_CONTEXT, ...env } = process.env;
  const child = spawn(process.execPath, [file], { cwd: place, env });
  child.said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (octets) => (child.said += octets));
  }
  return child;
}

for (const page of PAGES) {
  for (const program of programs(page, 'js')) {
    test(`${page}:${program.line} runs`, async (t) => {
      const place = workplace(t);
      const file = `${page.replaceAll('/', '-')}.mjs`;
      writeFileSync(join(place, file), whole(program));
      const child = begin(place, file);
      const timer = setTimeout(() => child.kill('SIGKILL'), PROGRAM_MILLIS);
      const [code, signal] = await once(child, 'exit');
      clearTimeout(timer);
      assert.deepEqual([code, signal], [0, null], child.said);
    });
  }
}

/** The reply to the text of hello.example, once a program answers on a port of 127.0.0.1. */
async function helloOf(child, port) {
  let reply = null;
  for (let tries = 0; reply === null && tries < 200; tries++) {
    const asked = udp({ address: '127.0.0.1', port }, query('hello.example', 'TXT'), 100);
    reply = await asked.catch(() => sleep(50).then(() => null));
  }
  assert.ok(reply, child.said);
  return decodeMessage(reply).answers[0].data[0];
}

const SERVERS = PAGES.flatMap((page) =>
  programs(page, 'js server').map((program) => ({ page, program })),
);

test('there are programs that run until they are stopped', () => {
  assert.ok(SERVERS.length >= 2, String(SERVERS.length));
});

for (const { page, program } of SERVERS) {
  test(`${page}:${program.line} answers until SIGTERM`, async (t) => {
    const place = workplace(t);
    const port = await freePort();
    writeFileSync(join(place, 'server.mjs'), textOf(program).replaceAll('5300', String(port)));
    const child = begin(place, 'server.mjs');
    t.after(() => child.kill('SIGKILL'));
    assert.match(await helloOf(child, port), /^Hello/);
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), PROGRAM_MILLIS);
    assert.deepEqual(await ended, [0, null], child.said);
    clearTimeout(timer);
  });
}

test('systemd finds nothing wrong with the unit', (t) => {
  const folders = (process.env.PATH ?? '').split(':');
  const isThere = folders.some((at) => existsSync(join(at, 'systemd-analyze')));
  if (!isThere) return t.skip('systemd-analyze is not installed');
  const text = textOf(programs('docs/nodejs.md', 'ini')[0]);
  const file = join(folder(t), 'dns.service');
  assert.match(text, /^ExecStart=\/usr\/bin\/node \/opt\/dns\/server\.mjs$/m);
  writeFileSync(file, text.replace('/usr/bin/node', process.execPath));
  const { status, stderr } = spawnSync('systemd-analyze', ['verify', file], { encoding: 'utf8' });
  const ofUnit = stderr.split('\n').filter((line) => line.includes('dns.service'));
  assert.deepEqual([status, ofUnit], [0, []], stderr);
});

test('the container runs the program that the page shows, and has all that it copies', () => {
  const text = textOf(programs('docs/nodejs.md', 'dockerfile')[0]);
  const servers = programs('docs/nodejs.md', 'js server').map(textOf);
  const [, program] = /^CMD \["node", "(.+)"\]$/m.exec(text);
  assert.ok(servers.some((it) => it.includes(`// ${program}\n`)), program);
  assert.match(text, new RegExp(`^COPY ${program} `, 'm'));
  const { name, version } = JSON.parse(read('bindings/node/package.json'));
  assert.match(text, new RegExp(`^COPY package.json package-lock.json ${name}-${version}.tgz `, 'm'));
});

/** The ways in which TypeScript finds the types of a package. */
const RESOLUTIONS = [
  ['--module', 'nodenext'],
  ['--module', 'esnext', '--moduleResolution', 'bundler'],
  ['--module', 'esnext', '--moduleResolution', 'node10', '--esModuleInterop'],
];

/** What TypeScript says of programs in a folder, whichever way it finds types; nothing, if they are
 * right. */
async function compiled(place, files, ...more) {
  const tsc = join(here, 'node_modules', '.bin', 'tsc');
  const types = join(here, 'node_modules', '@types');
  let said = '';
  for (const resolution of RESOLUTIONS) {
    const options = ['--noEmit', '--strict', '--target', 'es2022', ...resolution, ...more];
    const args = [...options, '--typeRoots', types, '--types', 'node', ...files];
    const { stdout } = await promisify(execFile)(tsc, args, { cwd: place }).catch((error) => error);
    said += stdout;
  }
  return said;
}

// What TypeScript cannot know from a program in JavaScript, its comments say, as JSDoc.
test('all programs in JavaScript hold to the types', async (t) => {
  const place = workplace(t);
  const files = PAGES.flatMap((page) =>
    ['js', 'js server'].flatMap((kind) =>
      programs(page, kind).map((program) => {
        const file = `${page.replaceAll('/', '-')}-${program.line}.mjs`;
        writeFileSync(join(place, file), kind === 'js' ? whole(program) : textOf(program));
        return file;
      }),
    ),
  );
  assert.ok(files.length > 20, String(files.length));
  assert.equal(await compiled(place, files, '--allowJs', '--checkJs'), '');
});

for (const page of PAGES) {
  for (const { line, lines } of programs(page, 'ts')) {
    test(`${page}:${line} compiles`, async (t) => {
      const place = workplace(t);
      const file = `${page.replaceAll('/', '-')}.mts`;
      writeFileSync(join(place, file), textOf({ lines }));
      assert.equal(await compiled(place, [file]), '');
    });
  }
}

test('the hello world of the README is the example, and answers', async (t) => {
  const example = read('bindings/node/examples/hello.mjs');
  assert.ok(read('README.md').includes(`\`\`\`js\n${example}\`\`\`\n`), 'the README shows another');
  const place = workplace(t);
  const port = await freePort();
  writeFileSync(join(place, 'hello.mjs'), example.replace('5300', String(port)));
  const child = begin(place, 'hello.mjs');
  t.after(() => child.kill());
  assert.equal(await helloOf(child, port), 'Hello, world!');
});

/** The names of all that a class or an interface of `index.d.ts` has. */
function members(name) {
  const [, body] = new RegExp(
    `(?:class|interface) ${name}(?:<[^>]*>)?(?: extends \\w+)?(?: implements \\w+)? \\{\n([^]*?)\n\\}`,
  ).exec(read('bindings/node/index.d.ts'));
  const found = body.matchAll(/^ {2}(?:readonly |get |set )?(\w+)\??[(:<]/gm);
  return new Set([...found].map(([, member]) => member).filter((it) => it !== 'private'));
}

test('the reference names every option, method and property', () => {
  const page = read('docs/nodejs.md');
  const missing = [];
  const apps = ['AppOptions', 'App', 'Query', 'Reply', 'Question', 'Message'];
  for (const name of [...apps, 'RecordSet', 'Store', 'OwnStore']) {
    const all = members(name);
    assert.ok(all.size > 2, name);
    for (const member of all) {
      if (member === 'constructor') continue;
      if (!new RegExp(`\`[^\`\n]*\\b${member}\\b[^\`\n]*\``).test(page)) {
        missing.push(`${name}.${member}`);
      }
    }
  }
  assert.deepEqual(missing, []);
});
