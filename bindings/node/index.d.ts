/// <reference types="node" />

import { EventEmitter } from 'node:events';
import type { KnownExtendedError, KnownResponseCode, KnownType } from './records.js';
import type { ReadData, SvcParams, TypedData } from './records.js';

export type { KnownExtendedError, KnownResponseCode, KnownType, ReadData, SvcParams, TypedData };

/** The word of a record type: a mnemonic, or `TYPE` and a number. */
export type RecordTypeWord = KnownType | `TYPE${number}`;

/** A record type: a mnemonic, `TYPE` and a number, or the number. A text of which TypeScript knows no
 * more than that it is a text is given as `text as RecordType`. */
export type RecordType = RecordTypeWord | Lowercase<KnownType> | number;

/** The word of a response code such as `NXDOMAIN`, or `RCODE` and a number. */
export type ResponseCodeWord = KnownResponseCode | `RCODE${number}`;

/** A response code: a mnemonic such as `NXDOMAIN`, `RCODE` and a number, or the number. */
export type ResponseCode = ResponseCodeWord | number;

/** An extended error (rfc8914): a name such as `Blocked`, or the number. */
export type ExtendedError = KnownExtendedError | number;

/** Data that any type takes: text as in a zone file, or octets as on the wire. */
export type AnyData = string | Uint8Array;

/** Data of any type by their fields. */
export type FieldData = Record<
  string,
  string | number | boolean | Uint8Array | readonly string[] | SvcParams
>;

interface RecordBase {
  /** Whose it is; by default the name asked for. */
  name?: string;
  /** Only `IN`. */
  class?: 'IN' | (string & {});
  /** Time to live, 0 to 2147483647 seconds; by default 300. */
  ttl?: number;
}

/** A record: with fields for a type that is spelled out, with text or octets for any. */
export type ResourceRecord =
  | { [T in keyof TypedData]: RecordBase & { type: T; data: TypedData[T] } }[keyof TypedData]
  | (RecordBase & { type: RecordType; data: AnyData });

/** A record of one type as it is read. */
export interface AnswerOf<T extends string> {
  /** The owner, with its final dot. */
  name: string;
  class: string;
  /** Time to live, seconds. */
  ttl: number;
  type: T;
  /** An object with fields, text, or strings, as the type has it; text as in a zone file for a type
   * without fields. Names have their final dot. What is read is not changed: other data are given in
   * place of it. */
  data: T extends keyof ReadData ? ReadData[T] : string;
}

/** A record as it is read. Its `type` tells which `data` it has:
 * `if (it.type === 'MX') it.data.preference`. */
export type Answer = { [T in KnownType]: AnswerOf<T> }[KnownType] | AnswerOf<`TYPE${number}`>;

/** Records of a section: read with all that they have, and added as programs write them. */
export interface Records extends Array<Answer> {
  push(...records: ResourceRecord[]): number;
  unshift(...records: ResourceRecord[]): number;
}

/** An EDNS option. */
export interface EdnsOption {
  code: number;
  data: Buffer;
}

/** What an EDNS record says. */
export interface Edns {
  /** The longest message that the sender takes over UDP, octets. */
  udpSize: number;
  dnssecOk: boolean;
  options: EdnsOption[];
}

/** A message. */
export declare class Message {
  private constructor();
  id: number;
  /** The flags of the header as one number, and by their names. */
  flags: number;
  aa: boolean;
  tc: boolean;
  rd: boolean;
  ra: boolean;
  ad: boolean;
  cd: boolean;
  rcode: ResponseCodeWord;
  /** What is asked; a name has its final dot. */
  questions: Array<{ name: string; type: RecordTypeWord; class: string }>;
  answers: Answer[];
  authorities: Answer[];
  additionals: Answer[];
  edns: Edns | null;
  /** The extended error (rfc8914). */
  error: { code: number; text: string } | null;
  /** The records of the answer that have a type: `reply.of('MX')[0].data.preference`. */
  of<T extends KnownType | `TYPE${number}`>(type: T): AnswerOf<T>[];
}

/** Labels that a query's name has in the places that a pattern captures. */
export type Captures = Record<string, string>;

/** The words that the labels of a pattern capture. */
type Words<P extends string> = P extends `${infer Label}.${infer Rest}`
  ? Word<Label> | Words<Rest>
  : Word<P>;
type Word<Label extends string> = Label extends `:${infer Word}` ? Word : never;

/** The captures of a pattern: `{ user: string }` for `':user.users.example/TXT'`; any for one that
 * is not spelled out, or has escapes. */
export type CapturesOf<P extends string> = string extends P
  ? Captures
  : P extends `${string}\\${string}`
    ? Captures
    : { [W in Words<P extends `${infer Names}/${string}` ? Names : P>]: string };

/** A query. `C` is what its route captures. */
export declare class Query<C = Captures> {
  private constructor();
  /** The name asked for, in lower case and with its final dot: `example.com.`; the root is `.`. */
  readonly name: string;
  /** The name as it was asked for, capitals included, with its final dot. */
  readonly originalName: string;
  /** The type asked for, such as `A`. */
  readonly type: RecordTypeWord;
  readonly typeNumber: number;
  readonly transport: 'udp' | 'tcp';
  /** Who asks. */
  readonly client: { address: string; port: number };
  readonly clientAddress: string;
  readonly clientPort: number;
  /** Address and port, such as `192.0.2.1:53` and `[2001:db8::1]:53`. */
  readonly clientText: string;
  /** The message as it came; of one of more than 4,096 octets, which only TCP brings, without
   * padding, without records but OPT, and with as many options as fit into 4,096 octets. */
  readonly message: Buffer;
  readonly id: number;
  readonly flags: number;
  readonly recursionDesired: boolean;
  /** Whether the client wants data that failed DNSSEC validation, too (CD). */
  readonly checkingDisabled: boolean;
  readonly edns: Edns | null;
  /** The longest message that the client takes over UDP, octets; `null` without EDNS. */
  readonly udpSize: number | null;
  /** The options of its EDNS record; none without one. */
  readonly options: EdnsOption[];
  readonly dnssecOk: boolean;
  /** For whom the client asks (rfc7871). */
  readonly clientSubnet: { family: 4 | 6; address: string; prefix: number; scope: number } | null;
  /** The cookies of client and server (rfc7873). */
  readonly cookie: { client: Buffer; server: Buffer } | null;
  /** The labels that the route captures with `:word`, in lower case. */
  readonly captures: Readonly<C>;
  /** As `captures`, by the name that programs for web servers know. */
  readonly params: Readonly<C>;
  /** The pattern of the route that answers; `null` if there is none. */
  readonly pattern: string | null;
  /** What middleware wants to tell handlers. */
  state: any;
  /** What a log has of it: name, type, client, transport, DNSSEC, network, pattern and captures. The
   * client counts as looked at; it does not when `console.log` shows the query. */
  toJSON(): object;
  /** @deprecated It is called `clientSubnet`. */
  readonly subnet: Query['clientSubnet'];
  /** @deprecated It is called `state`. */
  extra: any;
}

/** How long resolvers cache that there is no name, or are no records: for `ttl` seconds, or as the
 * SOA record `soa` says. Without both, they do not cache it. */
export type NegativeCaching =
  | { ttl?: number; soa?: undefined }
  | { soa: { name: string; ttl?: number; data: TypedData['SOA'] }; ttl?: undefined };

/** The reply to a query. It leaves when all functions that see it have returned, or their promises
 * are settled. */
export declare class Reply {
  private constructor();
  /** Adds records to the answer. */
  answer(...records: Array<ResourceRecord | readonly ResourceRecord[]>): this;
  /** Adds records to the authority section. */
  authority(...records: Array<ResourceRecord | readonly ResourceRecord[]>): this;
  /** Adds records to the additional section, which are sent if there is room. */
  additional(...records: Array<ResourceRecord | readonly ResourceRecord[]>): this;
  /** Makes it a reply with a response code, and the records that were added. */
  reply(rcode?: ResponseCode): this;
  /** Says that the name exists, but has no records of the type. Of the records so far only aliases
   * that lead to the name stay, and the SOA record if there is no other one. */
  noData(cached?: NegativeCaching): this;
  /** Says that there is no such name. Of the records so far only aliases that lead to the name stay,
   * and the SOA record if there is no other one. */
  nxdomain(cached?: NegativeCaching): this;
  /** Refuses to answer. */
  refused(): this;
  /** Says that the answer cannot be had, and to the client why. */
  servfail(why?: string): this;
  /** Sends nothing. */
  drop(): this;
  /** Leaves the query to the handlers of the next wider pattern, or the zones, as if there were no
   * handler; records that were added are not sent. */
  passOn(): this;
  /** Makes it as new: what was put into it is not sent, and the query is left as by `passOn`, unless
   * more is put into it. */
  clear(): this;
  /** Says more about what is wrong (rfc8914): a number or a name such as `Blocked`, and a text. */
  extendedError(code: ExtendedError, text?: string): this;
  /** Notes a value about the query under a key, for the query log (`[query-log]` of the configuration
   * file), in place of one that was noted under that key before. Clients do not get to see it. It is
   * the query's: neither `clear` nor `passOn` takes it away, and it is lost only where the query
   * fails, and no function for errors answers it. */
  tag(key: string, value: unknown): this;
  /** Has the same answer given to the same question for so many seconds, without asking JavaScript
   * again: to all clients or, with `vary`, to the same client, or to its network. Without that, an
   * answer is not kept if who asks was looked at. Has no effect beside middleware. */
  cache(options: { ttl: number; vary?: 'client' | 'subnet' | ('client' | 'subnet')[] }): this;
  /** Says that the reply depends on the first bits of the client's network alone, 0 to 128: the
   * scope with which it repeats the client subnet of the query (rfc7871), and for which the core
   * keeps it. 0: it is the same for all. Without this, it depends on all that the query tells if
   * the code has looked at the client. */
  clientSubnetScope(bits: number): this;
  /** Whether there is an answer: from a handler or, behind the last `next()`, from the core. */
  readonly answered: boolean;
  /** Whether it was sent, so that nothing can be changed any more. */
  readonly sent: boolean;
  /** The response code. */
  get rcode(): ResponseCodeWord;
  set rcode(rcode: ResponseCode);
  /** Whether the reply says that this server is responsible for the name (AA). */
  authoritative: boolean;
  /** Whether the reply says that it was validated (AD). */
  authenticData: boolean;
  /** The records of the sections, as they are read; the arrays may be changed. */
  get answers(): Records;
  set answers(records: readonly ResourceRecord[]);
  get authorities(): Records;
  set authorities(records: readonly ResourceRecord[]);
  get additionals(): Records;
  set additionals(records: readonly ResourceRecord[]);
  /** The records of the answer that have a type: `res.of('MX')[0].data.preference`. */
  of<T extends KnownType | `TYPE${number}`>(type: T): AnswerOf<T>[];
  /** What middleware notes for later middleware and handlers. */
  state: any;
  /** What a log has of it: whether there is an answer, response code, flags, extended error and
   * records, those of the handler as it gave them. */
  toJSON(): object;
  /** @deprecated It is called `noData`. */
  nodata(): this;
  /** @deprecated It is called `servfail`. */
  fail(why?: string): this;
  /** @deprecated It is called `passOn`. */
  pass(): this;
  /** @deprecated It is called `extendedError`. */
  error(code: ExtendedError, text?: string): this;
  /** @deprecated It is called `state`. */
  extra: any;
}

/** Goes on with what is behind a function; the promise is settled when that is done. With an error,
 * the query fails when the function ends, as if it had thrown the error. */
export type Next = (error?: unknown) => Promise<void>;
/** What a function may return: the reply, nothing (also `false`, of `condition && record`), a record,
 * or an array or another collection of records, such as a set, which are added to the answer. An
 * empty one is an answer without records. Any other value is a {@link RecordError}. */
export type HandlerResult =
  | void
  | null
  | undefined
  | false
  | Reply
  | ResourceRecord
  | readonly ResourceRecord[]
  | (Iterable<ResourceRecord> & { next?: never });
/** Answers names, or leaves the reply as it is. `C` is what the pattern captures. */
export type Handler<C = Captures> = (
  query: Query<C>,
  reply: Reply,
  next: Next,
) => HandlerResult | Promise<HandlerResult>;
/** Sees all queries and, after `await next()`, their replies. One that neither answers nor calls
 * `next()` has the query answered SERVFAIL. `C` is what its pattern captures, if it has one. */
export type Middleware<C = Captures> = Handler<C>;
/** What a function for errors may return: what handlers may; numbers and `true`, of
 * `errors.push(error)`, say nothing either. */
export type ErrorHandlerResult = HandlerResult | boolean | number;
/** Is told of what handlers and middleware throw. What it puts into the reply is sent, and so are
 * records that it returns; a query that it does not answer is left to the next such function, and is
 * SERVFAIL behind the last one. If it returns a promise, that is waited for. There is no reply where
 * one cannot be sent, as it has a wrong record, or was sent before. */
export type ErrorHandler = (
  error: Error,
  query: Query,
  reply?: Reply,
) => ErrorHandlerResult | Promise<ErrorHandlerResult>;

/** What is wrong with a record of a reply: the code is `ZONDA_RECORD`. */
export interface RecordError extends Error {
  code: 'ZONDA_RECORD';
  /** The section that has the record, and its place there, from 0 on. */
  section: 'answers' | 'authorities' | 'additionals';
  index: number;
  /** The data of the record; what is no record, as a whole. */
  value: unknown;
  /** The pattern of the handler; `null` where there is only middleware. */
  pattern: string | null;
}

/** A zone and where its data are. */
export type ZoneOptions =
  /** A master file, or JSON if its name ends in `.json`. */
  | { file: string | URL }
  /** What a master file would hold. */
  | { text: string };

/** A zone, or a file or directory of zones, that could not be loaded. */
export interface FailedZone {
  /** The zone's name, with its final dot; none for a file or directory of zones that could not be
   * read so far that the names of its zones are known. */
  name?: string;
  /** Whether a former version is served. */
  isServed: boolean;
  /** What is wrong, behind its place. */
  error: string;
}

/** All records of one name and type, as a store has them. */
export interface RecordSet {
  /** The name, which is always complete, with or without a final dot. */
  owner: string;
  type: RecordType;
  /** Time to live, seconds; by default 300. */
  ttl?: number;
  /** The data of each record: text as in a zone file, also for TXT (`'"two words"'`), octets, or an
   * object with fields; for TXT also an array of strings. Names in it are complete. */
  data: Array<AnyData | FieldData | Array<string | Uint8Array>>;
}

/** A record set that a store of yours gives, whose type may be any text: it is read when it runs. */
export interface OwnRecordSet extends Omit<RecordSet, 'type'> {
  type: string | number;
}

/** A record set as the stores here give it. */
export interface StoredRecordSet {
  /** In lower case and without its final dot, unless another program has written it. */
  owner: string;
  type: RecordTypeWord;
  ttl: number;
  /** As in a zone file; none, if the store has something else there than records. */
  data: string[];
}

/** What an object of yours has that is a store. Nothing need be inherited. Its methods may be
 * `async`. When one throws, or takes too long, the zone keeps what it had; the log says so, and all
 * is read again after a moment. */
export interface OwnStore {
  /** All record sets of a zone, whose name is in lower case and without its final dot. Sets
   * of further names are passed over; those that are wrong are left out, and the log names them. */
  load(zone: string): readonly OwnRecordSet[] | Promise<readonly OwnRecordSet[]>;
  /** All record sets of an owner that was said to have changed, in lower case and without its final
   * dot. By default all is loaded. */
  get?(owner: string): readonly OwnRecordSet[] | Promise<readonly OwnRecordSet[]>;
  /** Told once for each zone, and before `load`, what is to be called when records of an owner have
   * changed (`changed(owner)`), or when any may have (`changed()`). By default, nothing changes. */
  watch?(zone: string, changed: (owner?: string) => void): unknown;
  /** How long each method has time, milliseconds; by default 30,000. */
  deadline?: number;
}

/** What the stores here have in common. A thread does what is asked of one, in that order. Promises
 * are rejected with what the store says. */
export declare abstract class Store implements OwnStore {
  protected constructor();
  /** All record sets of a zone, and perhaps those of further names. */
  load(zone: string): Promise<StoredRecordSet[]>;
  /** All record sets of an owner. */
  get(owner: string): Promise<StoredRecordSet[]>;
  /** Puts records in place of all that the owner has of that type, in one step; refuses what is wrong
   * by itself. What cannot be beside other records of the owner, such as a CNAME beside a TXT, is
   * taken, and left out of the zone. Zones have them some 20 ms after the promise is settled. */
  set(records: RecordSet): Promise<void>;
  /** Puts each of several record sets in place of all that its owner has of its type, all in one
   * step; with one that is refused, nothing is changed. */
  setMany(sets: Iterable<RecordSet>): Promise<void>;
  /** Takes the records of an owner and a type away; tells whether there were any. */
  remove(owner: string, type: RecordType): Promise<boolean>;
  /** Gives its file or its connections back, once no app that runs serves it. Nothing can be asked
   * of it then. */
  close(): Promise<void>;
}

/** A store that forgets all when the process ends. */
export declare class MemoryStore extends Store {
  constructor();
}

/** A store in a file, which belongs to one process at a time. What `set` has written is on the disk
 * when its promise is settled. */
export declare class RedbStore extends Store {
  private constructor();
  /** Opens a file, or makes it. */
  static open(file: string | URL): Promise<RedbStore>;
}

/** A store in a Redis or Valkey server. */
export declare class RedisStore extends Store {
  /** In the server at `redis://user:password@host:port/database`, of which all but the host may be
   * left out. `rediss://…` has the connection encrypted and the server's certificate verified, by
   * public roots or, with `rediss://host/?ca=FILE`, those of a file in PEM form. It is connected to
   * when it is needed.
   *
   * `prefix` stands before each key. All is compared after each `compareEvery` milliseconds, by
   * default 30,000, for changes that nobody told. */
  constructor(url: string, options?: { prefix?: string; compareEvery?: number });
}

/** A store in a PostgreSQL database, in the table `zonda_records`. */
export declare class PostgresStore extends Store {
  /** In the database that these parameters name, such as
   * `postgresql://user:password@127.0.0.1/database`. It is connected to when it is needed, and the
   * table is made if it is missing. With `?sslmode=verify-full` the connection is encrypted and the
   * server's certificate verified, by public roots or those of `&sslrootcert=FILE`; by default it
   * is encrypted if the server offers that, and no certificate is verified.
   *
   * All is compared after each `compareEvery` milliseconds, by default 30,000, for changes that no
   * trigger told. */
  constructor(parameters: string, options?: { compareEvery?: number });
}

/** An address and port to listen on: `127.0.0.1:5300`, `[::1]:5300`, with `udp://` or `tcp://` before
 * it for one of both alone; a port of 127.0.0.1; or an object. Port 0 is a free one. */
export type ListenAddress =
  | string
  | number
  | {
      /** An address; by default `127.0.0.1`. All of the machine are `0.0.0.0` and `::`. */
      host?: string;
      port: number;
      /** Whether queries over UDP, and over TCP, are answered; by default both. */
      udp?: boolean;
      tcp?: boolean;
    };

/** What an app is told when it is made. */
export interface AppOptions {
  /** Addresses and ports. By default those of the configuration file; with none, `[]`, nothing is
   * listened on, and queries come by `query` alone. */
  listen?: ListenAddress | ListenAddress[];
  /** A configuration file, as `zonda serve --config` reads it. */
  config?: string;
  /** Zones by their names. */
  zones?: Record<string, string | ZoneOptions>;
  /** Servers that are asked for all other names. */
  forward?: string | string[];
  /** Threads that answer UDP; by default one for each CPU. */
  workers?: number;
  /** How long handlers have time, milliseconds; by default 5000. */
  deadline?: number;
  /** Queries that may wait for handlers; by default 65,536. */
  waitingMax?: number;
  /**
   * Where metrics for Prometheus, `/health`, `/ready` and `/v1/version` are offered: a loopback
   * address, unless the configuration file has a token.
   */
  metrics?: string;
  /** From which level on the core logs: to `logger` and to listeners of the event `log`, or else to
   * standard error, for which the first app of a process decides. By default `warn`. With `off`, an
   * app reads nothing of the core's log, and its logger gets only what its own code throws. */
  log?: 'off' | 'error' | 'warn' | 'info' | 'debug';
  /** Told of each event of the core's log, in place of standard error, from `start` until the app has
   * stopped; and of what handlers and middleware throw, unless `onError` or a listener of the event
   * `error` is there for that. The log is that of the process: while an app reads it, none of it goes to standard
   * error, and each app that reads it has all of it. 10,000 records wait at most; of further ones,
   * their number is told. */
  logger?: (record: LogRecord) => void;
  /** Whether other processes answer on the same addresses, as those of a cluster do. */
  reusePort?: boolean;
  /** @deprecated It is called `reusePort`. */
  sharesAddresses?: boolean;
  /** Whether the app starts also if zones that are given as files or texts cannot be loaded. Their
   * names are SERVFAIL then, and `failedZones` tells which they are. By default it does not. */
  allowFailedZones?: boolean;
  /** @deprecated It is called `allowFailedZones`. */
  allowsFailedZones?: boolean;
  /** Told of what handlers and middleware throw, in place of the log; as {@link App.onError}, before
   * those that are added by that. */
  onError?: ErrorHandler;
}

/** An event of the core's log, or what code of the program has thrown. */
export interface LogRecord {
  level: 'error' | 'warn' | 'info' | 'debug';
  /** What has happened, in words that are the same for all events of a kind. */
  event: string;
  /** The whole line: the event and its fields. */
  message: string;
  /** What it is about, by names such as `zone` and `error`. */
  fields: Record<string, string>;
  /** When it has happened. */
  time: Date;
  /** What code of the program has thrown, with its stack if it is an error; else it is not there. */
  error?: unknown;
}

/** A question for {@link App.query}. */
export interface Question {
  name: string;
  /** By default `A`. */
  type?: RecordType;
  /** Whether DNSSEC records are wanted. */
  dnssecOk?: boolean;
}

/** What a function sees below a suffix `S`: the labels that its pattern captures, and those that the
 * suffix captures. */
type CapturesBelow<P extends string, S extends string> = CapturesOf<P> & CapturesOf<S>;

/** Options of {@link App.query}. */
export interface QueryOptions {
  /** The address of the client, or one with a port: `192.0.2.7`, `192.0.2.7:53`. Without it, the query
   * counts as one of this machine. */
  client?: string;
  /** Whether DNSSEC records are wanted. */
  dnssecOk?: boolean;
}

/** Names below a suffix `S`, which patterns leave out: `www`, `*`, `:user/TXT`; `@` is the suffix. */
export declare class Router<S extends string = string> {
  private constructor();
  /** As {@link App.handle}, below the suffix. */
  handle<P extends string>(
    patterns: P | readonly P[],
    ...handlers: Handler<CapturesBelow<P, S>>[]
  ): this;
  /** As {@link App.removeHandler}, below the suffix. */
  removeHandler(pattern: string): boolean;
  /** Has queries for the suffix and all names below it pass functions; with a pattern first, those
   * for the names of that. */
  middleware(...middleware: Middleware<CapturesOf<S>>[]): this;
  middleware<P extends string>(
    pattern: P,
    ...middleware: Middleware<CapturesBelow<P, S>>[]
  ): this;
  /** As `middleware`, by the name that programs for web servers know. */
  use(...middleware: Middleware<CapturesOf<S>>[]): this;
  use<P extends string>(pattern: P, ...middleware: Middleware<CapturesBelow<P, S>>[]): this;
  /** As {@link App.onError}, for the suffix and all names below it; its functions come before those
   * for all queries, and those of a longer suffix first. */
  onError(handler: ErrorHandler): this;
  /** The names below a suffix that is itself below this one. */
  route<T extends string>(suffix: T): Router<T extends '@' ? S : `${T}.${S}`>;
}

/** A DNS server: zones, forwarding, and your own code. */
export declare class App extends EventEmitter {
  /** With options, or with the addresses to listen on. A name that is no option is a `TypeError`. */
  constructor(options?: AppOptions | string | number | ListenAddress[]);
  /** Has all queries and replies pass functions, behind those that were added before; with a pattern
   * first, those for the names of that alone: other queries do not reach JavaScript for it. What is
   * for all queries comes first, then what is for the widest pattern. */
  middleware(...middleware: Middleware[]): this;
  middleware<P extends string>(pattern: P, ...middleware: Middleware<CapturesOf<P>>[]): this;
  /** As `middleware`, by the name that programs for web servers know. */
  use(...middleware: Middleware[]): this;
  use<P extends string>(pattern: P, ...middleware: Middleware<CapturesOf<P>>[]): this;
  /** The names below a suffix, whose patterns leave the suffix out. */
  route<S extends string>(suffix: S): Router<S>;
  /** Answers the names of a pattern, or of each of several, with functions; those that it had before
   * are replaced. */
  handle<P extends string>(
    patterns: P | readonly P[],
    ...handlers: Handler<CapturesOf<P>>[]
  ): this;
  /** Tells a function of what handlers and middleware throw, in place of the log. Several are asked
   * one after the other, until one has answered: first those of routers, the longest suffix first,
   * then these in the order in which they were added. */
  onError(handler: ErrorHandler): this;
  /** Listens also on an address and port, before the app starts: `listen(5300)`,
   * `listen('[::1]:5300')`, `listen({ host: '::', port: 53, tcp: false })`. */
  listen(where: ListenAddress): this;
  /** Answers the names of a pattern no longer; tells whether it did. */
  removeHandler(pattern: string): boolean;
  /** Serves a zone from a file, or from a text as a file has it. A zone that was given before is an
   * error, until `start` was rejected: then one that was wrong may be given anew. */
  zone(name: string, options: ZoneOptions): this;
  /** Serves a zone that has what a store has, and follows its changes. One that cannot be reached
   * within 3 seconds when the app starts is SERVFAIL until it can; later it keeps what it had. */
  store(zone: string, store: Store | OwnStore): this;
  /** Asks servers for all names that neither handlers nor zones have. */
  forward(...servers: string[]): this;
  /** Starts the server, which then answers. An app starts once. Rejected with all that is wrong with the configuration,
   * and with zones that are given as files or texts, a line each. */
  start(): Promise<this>;
  /** Starts the server, and waits until it has stopped, by `stop()`, SIGINT or SIGTERM; rejected if
   * it had to stop. */
  serve(): Promise<void>;
  /** Calls a function when the app listens, has stopped, or an error has made a query fail: with a
   * listener for that, it is not logged; or for each record of the core's log, as `logger`. */
  on(event: 'listening', listener: (addresses: string[]) => void): this;
  on(event: 'closed', listener: (error?: Error) => void): this;
  on(event: 'error', listener: (error: Error, query: Query) => void): this;
  on(event: 'log', listener: (record: LogRecord) => void): this;
  /** Calls a function once. */
  once(event: 'listening', listener: (addresses: string[]) => void): this;
  once(event: 'closed', listener: (error?: Error) => void): this;
  once(event: 'error', listener: (error: Error, query: Query) => void): this;
  once(event: 'log', listener: (record: LogRecord) => void): this;
  /** Settled when the server has stopped, by `stop()` or through the admin interface; rejected if it
   * had to stop. Nothing keeps the process alive then. */
  readonly closed: Promise<void>;
  /** Answers what was received, and stops. While the app starts, `start()` is rejected. Called by a
   * function that answers a query, before that has waited for anything, it does not wait for the
   * end, which would wait for the function: await `closed` elsewhere. */
  stop(): Promise<void>;
  /** As `stop`, at the end of a block that has `await using app = await new App().start()`. */
  [Symbol.asyncDispose](): Promise<void>;
  /** Reads the configuration and changed zones anew. Rejected with what is wrong with the
   * configuration, which then stays in force; or with all zones that cannot be loaded, whose former
   * versions are served on: all else is in force then. */
  reload(): Promise<void>;
  /** Serves a zone from the text of a master file instead of a former text, or for the first time;
   * comes back when it is served. What is wrong with it rejects the promise, a line each, and
   * leaves the former one in service. */
  setZoneText(name: string, text: string): Promise<void>;
  /** Takes a zone that is given as text out of service; tells whether there was one. */
  removeZoneText(name: string): Promise<boolean>;
  /** Serves a zone from a master file, or JSON, in place of a former file, or for the first time,
   * and reads what `reload` does. Rejected with what is wrong; the former version stays in service. */
  setZoneFile(name: string, file: string | URL): Promise<void>;
  /** Serves a zone that has what a store has, in place of a former store, or for the first time; comes
   * back when the store was read, after 3 seconds at most. Until it has records of a zone, the zone is
   * SERVFAIL, or keeps those of the former store. */
  setZoneStore(zone: string, store: Store | OwnStore): Promise<void>;
  /** Takes a zone out of service that the program has given as a file, a text or a store; tells
   * whether there was one. */
  removeZone(name: string): Promise<boolean>;
  /** Asks these servers for all names that neither handlers nor zones have, in place of all those that
   * were given before; without any, those of the configuration file. Reads what `reload` does, too. */
  setForwards(...servers: string[]): Promise<void>;
  /** The addresses that are answered on, in the order in which they were given. */
  readonly addresses: string[];
  /** The zones that could not be loaded when that was last tried, but for those of stores. */
  readonly failedZones: FailedZone[];
  /** Asks the app itself, without sockets, as if a client at `client` had, which is an address, or
   * one with a port: `192.0.2.7`, `192.0.2.7:53`. If no reply is sent, it
   * is rejected with the code `ZONDA_NO_REPLY`. */
  query(question: Question | string, options?: QueryOptions): Promise<Message>;
  query(name: string, type: RecordType, options?: QueryOptions): Promise<Message>;
  /** @deprecated It is called `queryMessage`. */
  query(message: Uint8Array, options?: { client?: string }): Promise<Buffer | null>;
  /** As `query`, in wire form; `null` if no reply is sent. */
  queryMessage(message: Uint8Array, options?: { client?: string }): Promise<Buffer | null>;
  /** @deprecated It is called `removeHandler`. */
  unhandle(pattern: string): boolean;
}

/** A message read from its octets; `null` for octets that are not a message. */
export declare function decodeMessage(octets: Uint8Array): Message | null;
/** The line of a zone file for a record, such as `www.example.org. 300 IN A 192.0.2.1`; the owner of
 * one without a name is `@`. Throws a `TypeError`, `RangeError` or `Error` that says what is wrong. */
export declare function recordText(record: ResourceRecord | Answer): string;
/** A record of the line of a zone file, as it is read. Names without a final dot end at `origin`, or
 * at the root; a record without a time to live has `ttl`, by default 300 seconds. Throws what is wrong
 * with the line, with the code `ZONDA_RECORD`; so does `@` without an origin. */
export declare function parseRecord(
  text: string,
  options?: { origin?: string; ttl?: number },
): Answer;
/** A query in wire form. */
export declare function makeQuery(question: Question | string): Buffer;

/** @deprecated It is called `App`. */
export declare const Zonda: typeof App;
/** @deprecated It is called `App`. */
export type Zonda = App;
/** @deprecated It is called `AppOptions`. */
export type ZondaOptions = AppOptions;
/** @deprecated It is called `Query`. */
export declare const Request: typeof Query;
/** @deprecated It is called `Query`. */
export type Request = Query;
/** @deprecated It is called `Reply`. */
export declare const Response: typeof Reply;
/** @deprecated It is called `Reply`. */
export type Response = Reply;
