import { EventEmitter } from 'node:events';

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

export type SupportedRecordType = string;

export interface SupportedQuestion {
  name: string;
  type: SupportedRecordType;
  class?: string;
}

/** A record as dns-packet writes it. */
export interface SupportedAnswer {
  name?: string;
  type: SupportedRecordType;
  class?: string;
  ttl?: number;
  data?: any;
  [field: string]: any;
}

/** The data of records by their types. */
export type ZoneData = Record<SupportedRecordType, any>;

/** A message as dns-packet reads it. */
export interface Packet {
  id?: number;
  type?: 'query' | 'response';
  flags?: number;
  questions?: SupportedQuestion[];
  answers?: SupportedAnswer[];
  authorities?: SupportedAnswer[];
  additionals?: SupportedAnswer[];
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
  get answers(): ReadonlyArray<SupportedAnswer>;
  set answers(answers: SupportedAnswer[]);
  get authorities(): ReadonlyArray<SupportedAnswer>;
  set authorities(authorities: SupportedAnswer[]);
  get additionals(): ReadonlyArray<SupportedAnswer>;
  set additionals(additionals: SupportedAnswer[]);
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

export declare class DNSResponse extends EventEmitter {
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
  on(event: 'answer' | 'done', listener: (res: DNSResponse) => void): this;
  once(event: 'answer' | 'done', listener: (res: DNSResponse) => void): this;
  off(event: 'answer' | 'done', listener: (res: DNSResponse) => void): this;
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

export interface SSLConfig {
  key: Buffer | string;
  cert: Buffer | string;
}

declare class CoreNetwork extends EventEmitter implements Network {
  networkType: SupportedNetworkType;
  address: string;
  port: number;
  serializer?: Serializer<Packet>;
  handler?: NetworkHandler;
  /** Throws: the server's `start()` opens it. */
  listen(): never;
  close(): Promise<void>;
}

export interface DNSOverUDPProps {
  address: string;
  port: number;
  serializer?: Serializer<Packet>;
}

export declare class DNSOverUDP extends CoreNetwork {
  constructor(options: DNSOverUDPProps);
  constructor(address: string, port: number);
}

export interface DNSOverTCPProps {
  address: string;
  port: number;
  /** Key and certificate: DNS over TLS, in Node.js. */
  ssl?: SSLConfig;
  serializer?: Serializer<Packet>;
  /** These three are for TLS; the core has bounds of its own for TCP. */
  maxConnections?: number;
  keepAlive?: boolean;
  timeout?: number;
}

export declare class DNSOverTCP extends CoreNetwork {
  constructor(options: DNSOverTCPProps);
  constructor(address: string, port: number);
}

export interface DoHProps {
  address: string;
  port: number;
  ssl?: SSLConfig;
  maxConnections?: number;
}

export declare class DNSOverHTTP extends CoreNetwork {
  constructor(options: DoHProps);
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

export declare class DefaultServer {
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

export declare abstract class Store extends EventEmitter {
  abstract get(zone: string, type?: SupportedRecordType): Awaitable<any[] | null>;
  abstract set(zone: string, type: SupportedRecordType, data: any): Awaitable<void>;
  abstract append(zone: string, type: SupportedRecordType, data: any): Awaitable<void>;
  abstract delete(zone: string, type?: SupportedRecordType, data?: any): Awaitable<void>;
  abstract handler: Handler;
}

export declare class DefaultStore extends EventEmitter implements Store {
  constructor(options?: { shouldCache?: boolean });
  shouldCache: boolean;
  data: Map<string, Map<SupportedRecordType, any[]>>;
  get(zone: string, type?: SupportedRecordType, wildcards?: boolean): any[] | null;
  set(zone: string, type: SupportedRecordType, data: any): void;
  append(zone: string, type: SupportedRecordType, data: any): void;
  delete(zone: string, type?: SupportedRecordType, data?: any): void;
  handler: Handler;
  emitCacheRequest(zone: string, type: SupportedRecordType, records: any[]): Promise<void>;
  toString(): string;
  static fromString(text: string): DefaultStore;
}

export declare abstract class Cache {
  abstract get(zone: string, type: SupportedRecordType): Awaitable<any[] | null>;
  /** `ttl` is how long the data may be kept, seconds. */
  abstract set(zone: string, type: SupportedRecordType, data: any, ttl?: number): Awaitable<void>;
  abstract append(zone: string, type: SupportedRecordType, data: any): Awaitable<void>;
  abstract delete(zone: string, type: SupportedRecordType, data?: any): Awaitable<void>;
  abstract clear(): Awaitable<void>;
  abstract handler: Handler;
}

export interface DefaultCacheOptions {
  maxEntries?: number;
}

export declare class DefaultCache extends Cache {
  constructor(options?: DefaultCacheOptions);
  cache: Map<string, { data: any[]; until: number }>;
  maxEntries: number | undefined;
  get size(): number;
  get(zone: string, type: SupportedRecordType): any[] | null;
  set(zone: string, type: SupportedRecordType, data: any, ttl?: number): void;
  append(zone: string, type: SupportedRecordType, data: any): void;
  delete(zone: string, type: SupportedRecordType, data?: any): void;
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
    DefaultRouter,
    DefaultServer,
    SupportedNetworkType,
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
export declare namespace plugins {
  export import cache = caches;
  export import storage = stores;
  export import logging = loggers;
}
