/// <reference types="node" />

import { EventEmitter } from 'node:events';
import type { Http2SecureServer, Http2Server } from 'node:http2';
import type { Server as TlsServer } from 'node:tls';
import type { KnownType } from '../index.js';

export type Awaitable<T> = T | Promise<T>;

/** Response codes. */
export declare enum RCode {
  NO_ERROR = 0,
  FORMAT_ERROR = 1,
  SERVER_FAILURE = 2,
  NX_DOMAIN = 3,
  NOT_IMPLEMENTED = 4,
  REFUSED = 5,
  YX_DOMAIN = 6,
  YX_RR_SET = 7,
  NX_RR_SET = 8,
  NOT_AUTH = 9,
  NOT_ZONE = 10,
}

export declare enum SupportedNetworkType {
  UDP = 'UDP',
  TCP = 'TCP',
  TLS = 'TLS',
  HTTP = 'HTTP',
  HTTPS = 'HTTPS',
}

export declare function CombineFlags(flags: number[]): number;
export declare function HasFlag(flags: number, flag: number): boolean;
export declare function getPacketFlags(buffer: Buffer): number;
export declare function overrideId(buffer: Buffer, id: number): Buffer;
export declare function overrideFlags(buffer: Buffer, flags: number): Buffer;
export declare function resolveWildcards(label: string, pattern: string): string;

export interface HandlerMatch {
  regexp: RegExp;
}
/** The names of a pattern, in which `*` stands for any characters. */
export declare function domainToRegexp(pattern: string): HandlerMatch;
export declare function match(domain: string, handler: HandlerMatch): boolean;

/** An emitter whose events have types. */
export declare class TypedEventEmitter<T> extends EventEmitter {
  on<K extends keyof T & string>(event: K, listener: (arg: T[K]) => void): this;
  emit<K extends keyof T & string>(event: K, arg: T[K]): boolean;
  off<K extends keyof T & string>(event: K, listener: (arg: T[K]) => void): this;
  once<K extends keyof T & string>(event: K, listener: (arg: T[K]) => void): this;
  addListener<K extends keyof T & string>(event: K, listener: (arg: T[K]) => void): this;
  removeListener<K extends keyof T & string>(event: K, listener: (arg: T[K]) => void): this;
}

/** Types of records that a text says. */
type StringType = 'A' | 'AAAA' | 'CNAME' | 'DNAME' | 'NS' | 'PTR';

/** The data of records by their types, as dns-packet has them: octets for types without fields. */
export type ZoneData = { [T in StringType]: string } & {
  CAA: { issuerCritical?: boolean; flags?: number; tag: string; value: string };
  DNSKEY: { flags: number; algorithm: number; key: Buffer };
  DS: { keyTag: number; algorithm: number; digestType: number; digest: Buffer };
  HINFO: { cpu: string; os: string };
  MX: { preference?: number; exchange: string };
  NAPTR: {
    order: number;
    preference: number;
    flags: string;
    services: string;
    regexp: string;
    replacement: string;
  };
  NSEC: { nextDomain: string; rrtypes: string[] };
  NSEC3: {
    algorithm: number;
    flags: number;
    iterations: number;
    salt: Buffer;
    nextDomain: Buffer;
    rrtypes: string[];
  };
  RP: { mbox: string; txt: string };
  RRSIG: {
    typeCovered: string;
    algorithm: number;
    labels: number;
    originalTTL: number;
    expiration: number;
    inception: number;
    keyTag: number;
    signersName: string;
    signature: Buffer;
  };
  SOA: {
    mname: string;
    rname: string;
    serial?: number;
    refresh?: number;
    retry?: number;
    expire?: number;
    minimum?: number;
  };
  SRV: { port: number; target: string; priority?: number; weight?: number };
  SSHFP: { algorithm: number; hash: number; fingerprint: string };
  TLSA: { usage: number; selector: number; matchingType: number; certificate: Buffer };
  TXT: string | Buffer | Array<string | Buffer>;
  SPF: string | Buffer | Array<string | Buffer>;
} & { [T in Exclude<KnownType, StringType | FieldType | 'OPT'>]: Buffer };

/** Types of records that have fields of their own. */
type FieldType =
  | 'CAA'
  | 'DNSKEY'
  | 'DS'
  | 'HINFO'
  | 'MX'
  | 'NAPTR'
  | 'NSEC'
  | 'NSEC3'
  | 'RP'
  | 'RRSIG'
  | 'SOA'
  | 'SPF'
  | 'SRV'
  | 'SSHFP'
  | 'TLSA'
  | 'TXT';

export type SupportedRecordType = keyof ZoneData;

export interface SupportedQuestion {
  name: string;
  type: SupportedRecordType;
  class?: string;
}

/** A record as dns-packet writes it. */
export type SupportedAnswer = {
  [T in SupportedRecordType]: {
    name?: string;
    type: T;
    class?: string;
    ttl?: number;
    flush?: boolean;
    data: ZoneData[T];
  };
}[SupportedRecordType];

/** Types of records whose data dns-packet leaves as octets. */
type OctetType =
  | 'AFSDB'
  | 'APL'
  | 'AXFR'
  | 'CDNSKEY'
  | 'CDS'
  | 'CERT'
  | 'DHCID'
  | 'DLV'
  | 'HIP'
  | 'IPSECKEY'
  | 'IXFR'
  | 'KEY'
  | 'KX'
  | 'LOC'
  | 'NSEC3PARAM'
  | 'NULL'
  | 'SIG'
  | 'TA'
  | 'TKEY'
  | 'TSIG'
  | 'URI';

/** The data of the types that dns-packet's types have. */
type PacketData = { [T in OctetType]: Buffer } & Pick<
  ZoneData,
  StringType | Exclude<FieldType, 'CAA' | 'SPF'>
> & {
    CAA: {
      issuerCritical?: boolean;
      flags?: number;
      tag: 'issue' | 'issuewild' | 'iodef';
      value: string;
    };
  };

/** A record that is read from a message, as dns-packet's types say it. Records of other types are
 * there, too. */
export type PacketAnswer = {
  [T in keyof PacketData]: {
    name: string;
    type: T;
    class?: 'IN' | 'CS' | 'CH' | 'HS' | 'ANY';
    ttl?: number;
    flush?: boolean;
    data: PacketData[T];
  };
}[keyof PacketData];

/** What tells of EDNS in a message that is read. */
export interface PacketOptAnswer {
  name: string;
  type: 'OPT';
  udpPayloadSize: number;
  extendedRcode: number;
  ednsVersion: number;
  flags: number;
  flag_do: boolean;
  options: any[];
}

/** A record that dns-packet takes, of the types that only it knows, too. */
type GivenAnswer =
  | SupportedAnswer
  | OptAnswer
  | (Omit<SupportedAnswer, 'type' | 'data'> & { type: OctetType; data: Buffer });

/** What tells of EDNS. */
export interface OptAnswer {
  name: string;
  type: 'OPT';
  udpPayloadSize?: number;
  extendedRcode?: number;
  ednsVersion?: number;
  flags?: number;
  flag_do?: boolean;
  options?: Array<{ code: number | string; data?: Buffer; [field: string]: any }>;
}

/** A message as dns-packet reads and writes it: one that has dns-packet's type is taken. */
export interface Packet {
  id?: number;
  type?: 'query' | 'response';
  flags?: number;
  /** The flags by their names, `opcode` and `rcode`: of messages that were read. */
  flag_qr?: boolean;
  flag_aa?: boolean;
  flag_tc?: boolean;
  flag_rd?: boolean;
  flag_ra?: boolean;
  flag_z?: boolean;
  flag_ad?: boolean;
  flag_cd?: boolean;
  opcode?: string;
  rcode?: string;
  questions?: Array<{
    name: string;
    type: SupportedRecordType | OctetType | 'OPT';
    class?: string;
  }>;
  answers?: GivenAnswer[];
  authorities?: GivenAnswer[];
  additionals?: GivenAnswer[];
  [field: string]: any;
}

export interface Connection {
  remoteAddress: string;
  remotePort: number;
  type: SupportedNetworkType;
}

export interface Timings {
  requestTimeMs?: number;
  requestTimeNs?: bigint;
  responseTimeMs?: number;
  responseTimeNs?: bigint;
}

export interface MessageMetadata {
  ts: Timings;
}

export interface NextFunction {
  (error?: Error): void;
}

export interface Handler {
  (req: DNSRequest, res: DNSResponse, next: NextFunction): any;
}

export declare class ModifiedAfterSentError extends Error {}
export declare class DuplicateAnswerForRequest extends Error {}

export declare class PacketWrapper {
  constructor(packet: Packet);
  raw: Packet;
  frozen: boolean;
  get id(): number;
  type: Packet['type'];
  flags: number;
  get flagsArray(): string[];
  get rcode(): keyof typeof RCode;
  set rcode(rcode: RCode);
  addFlag(flag: number): void;
  removeFlag(flag: number): void;
  get questions(): ReadonlyArray<SupportedQuestion>;
  set questions(questions: SupportedQuestion[]);
  get answers(): PacketAnswer[];
  set answers(answers: SupportedAnswer[]);
  get authorities(): PacketAnswer[];
  set authorities(authorities: SupportedAnswer[]);
  get additionals(): Array<PacketAnswer | PacketOptAnswer>;
  set additionals(additionals: Array<SupportedAnswer | OptAnswer>);
  copy(): PacketWrapper;
  freeze(): PacketWrapper;
}

export interface MessageData {
  packet: Packet;
  connection: Connection;
  metadata: MessageMetadata;
  extra?: object;
}

export interface CanAnswer<T> {
  toAnswer(): T;
}

export declare class DNSRequest implements CanAnswer<DNSResponse> {
  constructor(packet: Packet, connection: Connection);
  readonly packet: PacketWrapper;
  connection: Connection;
  metadata: MessageMetadata;
  extra: any;
  toAnswer(): DNSResponse;
  data(): MessageData;
}

export interface DNSResponseEvents {
  answer: DNSResponse;
  done: DNSResponse;
}

export declare class DNSResponse extends TypedEventEmitter<DNSResponseEvents> {
  constructor(packet: Packet, connection: Connection, metadata?: MessageMetadata);
  packet: PacketWrapper;
  readonly connection: Connection;
  metadata: MessageMetadata;
  extra: any;
  get finished(): boolean;
  /** Sends records as the answer. */
  answer(answer: SupportedAnswer | SupportedAnswer[]): void;
  /** Sends the response as it is. */
  resolve(): void;
  errors: {
    formatError(): void;
    serverFailure(): void;
    nxDomain(): void;
    notImplemented(): void;
    refused(): void;
    yxDomain(): void;
    yxRRSet(): void;
    notAuth(): void;
    notZone(): void;
  };
  data(): MessageData;
}

export interface NetworkHandler {
  (request: DNSRequest): Promise<DNSResponse>;
}

export interface Network<T = Packet> {
  networkType: SupportedNetworkType;
  address: string;
  port: number;
  serializer?: Serializer<T>;
  handler?: NetworkHandler;
  listen(callback?: () => void): void;
  close(): any;
  on(event: string, listener: () => void): any;
  off(event: string, listener: () => void): any;
}

/** Not called for what the core receives: it reads and writes messages itself. */
export interface Serializer<T> {
  encode(packet: T): Buffer;
  decode(buffer: Buffer): T;
}

/** Messages as they are. */
export declare class DNSPacketSerializer implements Serializer<Packet> {
  encode(packet: Packet): Buffer;
  decode(buffer: Buffer): Packet;
}
/** Messages of at most 512 octets: one that is longer is cut, and says so. */
export declare class UDPSerializer extends DNSPacketSerializer {}
/** Messages behind their lengths. */
export declare class TCPSerializer extends DNSPacketSerializer {}

export interface SSLConfig {
  key: Buffer | string;
  cert: Buffer | string;
}

declare class CoreNetwork extends EventEmitter implements Network {
  networkType: SupportedNetworkType;
  address: string;
  port: number;
  serializer: Serializer<Packet>;
  /** Has the server of this network answer a request. */
  handler?: NetworkHandler;
  /** Throws: the server's `start()` opens it. */
  listen(): never;
  close(): Promise<void>;
  /** `listening`, `error` and `close`; over TLS and HTTP all that the server of Node.js emits. */
  on(event: string, listener: (...args: any[]) => void): this;
  once(event: string, listener: (...args: any[]) => void): this;
  off(event: string, listener: (...args: any[]) => void): this;
}

export interface DNSOverUDPProps {
  address: string;
  port: number;
  serializer?: Serializer<Packet>;
}

export declare class DNSOverUDP extends CoreNetwork {
  constructor(options: DNSOverUDPProps);
  constructor(address: string, port: number);
  /** The socket is the core's. */
  readonly server: undefined;
}

/** Of connections over TLS and HTTP, which are Node.js's; TCP has the limits of the core. */
export interface ConnectionProps {
  /** By default any number. */
  maxConnections?: number;
  /** Whether TCP looks from time to time whether the other side is still there; by default `true`.
   * */
  keepAlive?: boolean;
  /** How long a connection may be idle, milliseconds; by default 10,000. */
  timeout?: number;
}

export interface DNSOverTCPProps extends ConnectionProps {
  address: string;
  port: number;
  /** Key and certificate: DNS over TLS, in Node.js. */
  ssl?: SSLConfig;
  serializer?: Serializer<Packet>;
}

export declare class DNSOverTCP extends CoreNetwork {
  constructor(options: DNSOverTCPProps);
  constructor(address: string, port: number);
  maxConnections: number;
  keepAlive: boolean;
  timeout: number;
  /** For TLS; without, the sockets are the core's. */
  readonly server: TlsServer | undefined;
}

export interface DoHProps extends ConnectionProps {
  address: string;
  port: number;
  ssl?: SSLConfig;
}

export type DNSOverHTTPProps = DoHProps;

export declare class DNSOverHTTP extends CoreNetwork {
  constructor(options: DoHProps);
  maxConnections: number;
  keepAlive: boolean;
  timeout: number;
  readonly server: Http2Server | Http2SecureServer;
}

export interface MatchedHandlers {
  handlers: Handler[];
  match: HandlerMatch;
}

export interface Router {
  handle(domain: string, handler: Handler): void;
  use(handler: Handler): void;
  match(domain: string): Handler;
}

export declare class DefaultRouter implements Router {
  handle(domain: string, handler: Handler): void;
  use(handler: Handler): void;
  match(domain: string): Handler;
}

export interface DefaultServerProps<T = Packet> {
  networks: Network<T>[];
  router?: Router;
  defaultHandler?: Handler;
  multithreaded?: boolean;
}

/** What a server is at least. */
export interface DNSServer<T = Packet> {
  networks: Network<T>[];
  default(req: DNSRequest, res: DNSResponse, next: NextFunction): void;
  handle(domain: string, handler: Handler): void;
  use(handler: Handler): void;
  start(callback: () => void): void;
  stop(): void;
}

export declare class DefaultServer implements DNSServer {
  constructor(props: DefaultServerProps);
  networks: Network[];
  multithreaded: boolean;
  use(handler: Handler): void;
  handle(domain: string, handler: Handler): void;
  handleQueries(req: DNSRequest, res: DNSResponse): void;
  default(req: DNSRequest, res: DNSResponse, next: NextFunction): void;
  resolveWildcard(domain: string): string;
  start(callback?: () => void): Promise<void>;
  stop(): Promise<void>;
  /** The addresses that the core answers on. */
  readonly addresses: string[];
}

export interface DinoDNSProps extends DefaultServerProps {
  cache?: Cache;
  storage?: Store;
  logger?: Logger;
}

export declare class DinoDNS extends DefaultServer {
  constructor(props: DinoDNSProps);
  cache?: Cache;
  storage?: Store;
  logger?: Logger;
}

/** Data of a type, or of all. */
/** Records of a name by their types. */
export type ZoneDataMap = { [T in SupportedRecordType]?: ZoneData[T][] };

type Found<T extends SupportedRecordType> = ZoneData[T][] | ZoneData[SupportedRecordType][];

export declare abstract class Store extends EventEmitter {
  abstract get<T extends SupportedRecordType>(
    zone: string,
    type?: T,
  ): Awaitable<Found<T> | ZoneDataMap | null>;
  abstract set<T extends SupportedRecordType>(
    zone: string,
    type: T,
    data: ZoneData[T] | ZoneData[T][],
  ): Awaitable<void>;
  abstract append<T extends SupportedRecordType>(zone: string, type: T, data: ZoneData[T]): Awaitable<void>;
  abstract delete<T extends SupportedRecordType>(zone: string, type?: T, data?: ZoneData[T]): Awaitable<void>;
  abstract handler: Handler;
}

export declare class DefaultStore<ByType extends boolean = false>
  extends EventEmitter
  implements Store
{
  /** With `byType`, `get` gives records by their types, as in 0.0.14 and 0.0.15, instead of an
   * array. */
  constructor(options?: { shouldCache?: boolean; byType?: ByType });
  shouldCache: boolean;
  data: Map<string, Map<SupportedRecordType, any[]>>;
  get<T extends SupportedRecordType>(
    zone: string,
    type?: T,
    wildcards?: boolean,
  ): (ByType extends true ? ZoneDataMap : Found<T>) | null;
  set<T extends SupportedRecordType>(
    zone: string,
    type: T,
    data: ZoneData[T] | ZoneData[T][],
  ): void;
  append<T extends SupportedRecordType>(zone: string, type: T, data: ZoneData[T]): void;
  delete<T extends SupportedRecordType>(zone: string, type?: T, data?: ZoneData[T]): void;
  handler: Handler;
  emitCacheRequest<T extends SupportedRecordType>(
    zone: string,
    type: T,
    records: ZoneData[T][],
  ): Promise<void>;
  toString(): string;
  static fromString(text: string): DefaultStore;
}

/** A tree of records by name and type, whose `*` has what names below have not. */
export declare class Trie<T = any> {
  add<K extends keyof T>(domain: string, type: K, data: T[K] | T[K][]): void;
  get<K extends keyof T>(
    domain: string,
    type?: K,
    wildcards?: boolean,
  ): T[keyof T][] | T[K][] | null;
  delete<K extends keyof T>(domain: string, type?: K, data?: T[K]): void;
  append<K extends keyof T>(domain: string, type: K, data: T[K]): void;
  /** The name under which the records of a name are kept. */
  resolve(domain: string): string | null;
  toString(): string;
  static fromString<T>(text: string): Trie<T>;
}

export declare abstract class Cache {
  abstract get<T extends SupportedRecordType>(
    zone: string,
    type: T,
  ): Awaitable<Found<T> | null>;
  /** `ttl` is how long the data may be kept, seconds. */
  abstract set<T extends SupportedRecordType>(
    zone: string,
    type: T,
    data: ZoneData[T] | ZoneData[T][],
    ttl?: number,
  ): Awaitable<void>;
  abstract append<T extends SupportedRecordType>(zone: string, type: T, data: ZoneData[T]): Awaitable<void>;
  abstract delete<T extends SupportedRecordType>(zone: string, type: T, data?: ZoneData[T]): Awaitable<void>;
  abstract clear(): Awaitable<void>;
  abstract handler: Handler;
}

export interface DefaultCacheOptions {
  maxEntries?: number;
}

export declare class DefaultCache extends Cache {
  constructor(options?: DefaultCacheOptions);
  cache: Map<string, { data: any[]; until: number }>;
  maxEntries: number;
  get size(): number;
  get<T extends SupportedRecordType>(zone: string, type: T): Found<T> | null;
  set<T extends SupportedRecordType>(
    zone: string,
    type: T,
    data: ZoneData[T] | ZoneData[T][],
    ttl?: number,
  ): void;
  append<T extends SupportedRecordType>(zone: string, type: T, data: ZoneData[T]): void;
  delete<T extends SupportedRecordType>(zone: string, type: T, data?: ZoneData[T]): void;
  clear(): void;
  handler: Handler;
  evictRandomMember(): void;
  static getKey(zone: string, type: SupportedRecordType): string;
}

export declare function registerCache(cache: Cache): Handler;

export declare enum LogLevel {
  DEBUG = 'DEBUG',
  INFO = 'INFO',
  WARN = 'WARN',
  ERROR = 'ERROR',
}

export interface Logger {
  log(level: string, message: string): void;
  handler: Handler;
}

export interface LogReplacer {
  replace(message: DNSRequest | DNSResponse): string;
}

export declare const DEFAULT_LOG_FORMAT: string;

export declare class DefaultReplacer implements LogReplacer {
  constructor(options?: { format?: string });
  format: string;
  replacerMap: Record<string, (message: DNSRequest | DNSResponse) => any>;
  replace(message: DNSRequest | DNSResponse): string;
  default(key: string, message: DNSRequest | DNSResponse): string;
}

export interface ConsoleLoggerProps {
  logRequests?: boolean;
  logResponses?: boolean;
  replacer?: LogReplacer;
}

export declare class ConsoleLogger implements Logger {
  constructor(props?: ConsoleLoggerProps);
  logRequests: boolean;
  logResponses: boolean;
  replacer: LogReplacer;
  register(res: DNSResponse): void;
  handler: Handler;
  log(level: string, message: string): void;
  error(message: string): void;
  warn(message: string): void;
  debug(message: string): void;
  info(message: string): void;
}

declare namespace parts {
  export {
    DNSOverHTTP,
    DNSOverTCP,
    DNSOverUDP,
    DNSPacketSerializer,
    DefaultRouter,
    DefaultServer,
    SupportedNetworkType,
    TCPSerializer,
    UDPSerializer,
  };
}
declare namespace caches {
  export { Cache, DefaultCache };
}
declare namespace stores {
  export { DefaultStore, Store };
}
declare namespace loggers {
  export { ConsoleLogger, DEFAULT_LOG_FORMAT, DefaultReplacer, LogLevel };
}
declare namespace shapes {
  export {
    DNSRequest,
    DNSResponse,
    DuplicateAnswerForRequest,
    ModifiedAfterSentError,
    PacketWrapper,
  };
}
export import common = parts;
export import types = shapes;
export import cache = caches;
export import storage = stores;
export import logging = loggers;
export declare namespace plugins {
  export import cache = caches;
  export import storage = stores;
  export import logging = loggers;
}
