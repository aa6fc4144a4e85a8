// Real databases, started on free ports, which can go away and come back with what they had.

import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, openSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { folder, freePort, isSpared, sleep } from './helpers.mjs';

const run = promisify(execFile);
/** What the databases let nobody in without. */
const PASSWORD = 's3cret/';
/** How long one may take to come up, milliseconds. */
const START_MILLIS = 60_000;
/** How often one is started on another port, when somebody else took it meanwhile. */
const START_TRIES = 4;
/** Where Debian keeps the programs of each version of PostgreSQL. */
const POSTGRES_VERSIONS = '/usr/lib/postgresql';
/** Who runs PostgreSQL, which refuses to be run by root. */
const POSTGRES_USER = 'postgres';

/** A server that is started, stopped and started again on one port. */
class Database {
  #command;
  #isUp;
  #log;
  #process;
  port = 0;

  /** `command` gives program and arguments for a port; `isUp` tells whether it answers there. */
  static async start(test, place, command, isUp) {
    const database = new Database();
    [database.#command, database.#isUp, database.#log] = [command, isUp, join(place, 'log')];
    test.after(() => database.stop('SIGINT'));
    for (let tries = 0; tries < START_TRIES; tries++) {
      database.port = await freePort();
      if (await database.restart()) return database;
    }
    throw new Error(`it ends at once: ${readFileSync(database.#log, 'utf8')}`);
  }

  /** Starts it on its port; tells whether it came up. */
  async restart() {
    const [program, ...args] = this.#command(this.port);
    const log = openSync(this.#log, 'a');
    const child = spawn(program, args, { stdio: ['ignore', log, log] });
    this.#process = child;
    const atExit = () => child.kill('SIGKILL');
    process.on('exit', atExit);
    child.on('exit', () => process.off('exit', atExit));
    const limit = Date.now() + START_MILLIS;
    while (child.exitCode === null) {
      if (await this.#isUp(this.port)) return true;
      if (Date.now() > limit) throw new Error(`it is silent: ${readFileSync(this.#log, 'utf8')}`);
      await sleep(20);
    }
    return false;
  }

  /** Ends it. */
  async stop(signal = 'SIGTERM') {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
  }
}

/** What a command prints. */
async function output(program, args, env = {}) {
  const { stdout } = await run(program, args, { env: { ...process.env, ...env } });
  return stdout.trim();
}

/** Redis, empty, which tells what happens to keys; `null` if tests may do without. */
export async function redis(test) {
  if (isSpared(test, 'redis-server')) return null;
  const place = folder(test);
  const command = (port) => [
    ...['redis-server', '--port', String(port), '--bind', '127.0.0.1', '--save', ''],
    ...['--dir', place, '--requirepass', PASSWORD, '--appendonly', 'yes'],
    ...['--appendfsync', 'always', '--notify-keyspace-events', 'Kghx'],
  ];
  const cli = (port, ...args) => {
    const at = ['-e', '--no-auth-warning', '-h', '127.0.0.1', '-p', String(port)];
    return output('redis-cli', [...at, '-a', PASSWORD, ...args]);
  };
  const isUp = (port) => cli(port, 'PING').then(
    (said) => said === 'PONG',
    () => false,
  );
  const database = await Database.start(test, place, command, isUp);
  return {
    url: `redis://:${encodeURIComponent(PASSWORD)}@127.0.0.1:${database.port}`,
    cli: (...args) => cli(database.port, ...args),
    stop: () => database.stop(),
    restart: () => database.restart(),
  };
}

/** PostgreSQL with an empty database; `null` if tests may do without. */
export async function postgres(test) {
  if (isSpared(test, 'psql')) return null;
  const place = folder(test);
  const programs = newestPrograms();
  const isRoot = process.getuid() === 0;
  const unprivileged = (program, ...args) => {
    const command = [join(programs, program), ...args];
    const user = ['--reuid', POSTGRES_USER, '--regid', POSTGRES_USER, '--clear-groups', '--'];
    return isRoot ? ['setpriv', ...user, ...command] : command;
  };
  const [data, password] = [join(place, 'data'), join(place, 'password')];
  writeFileSync(password, PASSWORD);
  if (isRoot) execFileSync('chown', ['-R', POSTGRES_USER, place]);
  const [initdb, ...args] = unprivileged(
    ...['initdb', '-D', data, '--pwfile', password, '-U', 'zonda', '-A', 'scram-sha-256'],
    ...['-E', 'UTF8', '--locale=C', '--no-sync'],
  );
  await run(initdb, args);
  const command = (port) => unprivileged(
    ...['postgres', '-D', data, '-p', String(port), '-c', 'listen_addresses=127.0.0.1'],
    ...['-c', 'unix_socket_directories=', '-c', 'fsync=off'],
  );
  const psql = (port, statement) => {
    const at = ['-h', '127.0.0.1', '-p', String(port), '-U', 'zonda', '-d', 'postgres'];
    const how = ['-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-c', statement];
    return output('psql', [...at, ...how], { PGPASSWORD: PASSWORD, PGCONNECT_TIMEOUT: '2' });
  };
  const isUp = (port) => psql(port, 'SELECT 1').then(
    () => true,
    () => false,
  );
  const database = await Database.start(test, place, command, isUp);
  const { port } = database;
  return {
    parameters: `host=127.0.0.1 port=${port} user=zonda password=${PASSWORD} dbname=postgres`,
    psql: (statement) => psql(port, statement),
    stop: () => database.stop('SIGINT'),
    restart: () => database.restart(),
  };
}

/** The folder with the programs of the newest version of PostgreSQL. */
function newestPrograms() {
  const versions = existsSync(POSTGRES_VERSIONS) ? readdirSync(POSTGRES_VERSIONS) : [];
  const newest = versions.sort((one, other) => Number(other) - Number(one))[0];
  if (newest === undefined) throw new Error("`make packages` installs PostgreSQL's server");
  return join(POSTGRES_VERSIONS, newest, 'bin');
}
