// Written by scripts/types.mjs, of the table of fields that the core has.

import type { AnyData } from './index.js';

/** Types that have a word. */
export type KnownType =
  | 'A'
  | 'NS'
  | 'MD'
  | 'MF'
  | 'CNAME'
  | 'SOA'
  | 'MB'
  | 'MG'
  | 'MR'
  | 'NULL'
  | 'WKS'
  | 'PTR'
  | 'HINFO'
  | 'MINFO'
  | 'MX'
  | 'TXT'
  | 'RP'
  | 'AFSDB'
  | 'X25'
  | 'ISDN'
  | 'RT'
  | 'NSAP'
  | 'NSAP-PTR'
  | 'SIG'
  | 'KEY'
  | 'PX'
  | 'GPOS'
  | 'AAAA'
  | 'LOC'
  | 'NXT'
  | 'EID'
  | 'NIMLOC'
  | 'SRV'
  | 'ATMA'
  | 'NAPTR'
  | 'KX'
  | 'CERT'
  | 'A6'
  | 'DNAME'
  | 'SINK'
  | 'OPT'
  | 'APL'
  | 'DS'
  | 'SSHFP'
  | 'IPSECKEY'
  | 'RRSIG'
  | 'NSEC'
  | 'DNSKEY'
  | 'DHCID'
  | 'NSEC3'
  | 'NSEC3PARAM'
  | 'TLSA'
  | 'SMIMEA'
  | 'HIP'
  | 'NINFO'
  | 'RKEY'
  | 'TALINK'
  | 'CDS'
  | 'CDNSKEY'
  | 'OPENPGPKEY'
  | 'CSYNC'
  | 'ZONEMD'
  | 'SVCB'
  | 'HTTPS'
  | 'DSYNC'
  | 'HHIT'
  | 'BRID'
  | 'SPF'
  | 'UINFO'
  | 'UID'
  | 'GID'
  | 'UNSPEC'
  | 'NID'
  | 'L32'
  | 'L64'
  | 'LP'
  | 'EUI48'
  | 'EUI64'
  | 'NXNAME'
  | 'TKEY'
  | 'TSIG'
  | 'IXFR'
  | 'AXFR'
  | 'MAILB'
  | 'MAILA'
  | 'ANY'
  | 'URI'
  | 'CAA'
  | 'AVC'
  | 'DOA'
  | 'AMTRELAY'
  | 'RESINFO'
  | 'WALLET'
  | 'CLA'
  | 'IPN'
  | 'TA'
  | 'DLV'
  | 'ALIAS';

/** Response codes that have a word. */
export type KnownResponseCode =
  | 'NOERROR'
  | 'FORMERR'
  | 'SERVFAIL'
  | 'NXDOMAIN'
  | 'NOTIMP'
  | 'REFUSED'
  | 'YXDOMAIN'
  | 'YXRRSET'
  | 'NXRRSET'
  | 'NOTAUTH'
  | 'NOTZONE'
  | 'BADVERS'
  | 'BADKEY'
  | 'BADTIME'
  | 'BADMODE'
  | 'BADNAME'
  | 'BADALG'
  | 'BADTRUNC'
  | 'BADCOOKIE';

/** Extended errors that have a name (rfc8914). */
export type KnownExtendedError =
  | 'Other Error'
  | 'OtherError'
  | 'Stale Answer'
  | 'StaleAnswer'
  | 'Forged Answer'
  | 'ForgedAnswer'
  | 'Cached Error'
  | 'CachedError'
  | 'Not Ready'
  | 'NotReady'
  | 'Blocked'
  | 'Censored'
  | 'Filtered'
  | 'Prohibited'
  | 'Stale NXDOMAIN Answer'
  | 'StaleNXDOMAINAnswer'
  | 'Not Authoritative'
  | 'NotAuthoritative'
  | 'Not Supported'
  | 'NotSupported'
  | 'No Reachable Authority'
  | 'NoReachableAuthority'
  | 'Network Error'
  | 'NetworkError'
  | 'Invalid Data'
  | 'InvalidData';

/** Parameters of SVCB and HTTPS: `{ alpn: ["h2", "h3"], port: 443 }`. */
export type SvcParams = Record<string, string | number | true | readonly string[]>;

/** Data of the types that have fields, which may be called as in the table, in camel case, or
 * as dns-packet calls them. A field is optional that may be left out, or has several names. */
export interface TypedData {
  A: AnyData;
  NS: AnyData;
  MD: AnyData;
  MF: AnyData;
  CNAME: AnyData;
  SOA: AnyData | {
    mname?: string;
    primary?: string;
    rname?: string;
    mailbox?: string;
    serial: number | string;
    refresh: number | string;
    retry: number | string;
    expire: number | string;
    minimum: number | string;
  };
  MB: AnyData;
  MG: AnyData;
  MR: AnyData;
  WKS: AnyData | {
    address: number | string;
    services: number | string;
  };
  PTR: AnyData;
  HINFO: AnyData | {
    cpu: string | Uint8Array;
    os: string | Uint8Array;
  };
  MINFO: AnyData | {
    rmailbx: string;
    emailbx: string;
  };
  MX: AnyData | {
    preference?: number | string;
    exchange: string;
  };
  TXT: AnyData | ReadonlyArray<string | Uint8Array>;
  RP: AnyData | {
    mbox: string;
    txt: string;
  };
  AFSDB: AnyData | {
    subtype: number | string;
    hostname: string;
  };
  X25: AnyData | ReadonlyArray<string | Uint8Array>;
  ISDN: AnyData | {
    address: string | Uint8Array;
    subaddress: string | Uint8Array;
  };
  RT: AnyData | {
    preference?: number | string;
    host: string;
  };
  NSAP: AnyData;
  'NSAP-PTR': AnyData;
  SIG: AnyData | {
    type_covered?: number | string;
    typeCovered?: number | string;
    alg?: number | string;
    algorithm?: number | string;
    labels: number | string;
    original_ttl?: number | string;
    originalTtl?: number | string;
    originalTTL?: number | string;
    expiration: number | string;
    inception: number | string;
    keytag?: number | string;
    keyTag?: number | string;
    signers_name?: string;
    signersName?: string;
    signerName?: string;
    signature?: string | Uint8Array;
  };
  KEY: AnyData | {
    flags?: number | string;
    protocol?: number | string;
    alg?: number | string;
    algorithm?: number | string;
    public_key?: string | Uint8Array;
    publicKey?: string | Uint8Array;
    key?: string | Uint8Array;
  };
  PX: AnyData | {
    preference?: number | string;
    map822: string;
    mapx400: string;
  };
  GPOS: AnyData | {
    longitude: string | Uint8Array;
    latitude: string | Uint8Array;
    altitude: string | Uint8Array;
  };
  AAAA: AnyData;
  LOC: AnyData;
  NXT: AnyData | {
    dname: string;
    types?: string | readonly string[];
    rrtypes?: string | readonly string[];
  };
  EID: AnyData | ReadonlyArray<string | Uint8Array>;
  NIMLOC: AnyData | ReadonlyArray<string | Uint8Array>;
  SRV: AnyData | {
    priority?: number | string;
    weight?: number | string;
    port: number | string;
    target: string;
  };
  ATMA: AnyData;
  NAPTR: AnyData | {
    order: number | string;
    preference?: number | string;
    flags?: string | Uint8Array;
    services: string | Uint8Array;
    regexp: string | Uint8Array;
    replacement: string;
  };
  KX: AnyData | {
    preference?: number | string;
    exchange: string;
  };
  CERT: AnyData | {
    type: number | string;
    keytag?: number | string;
    keyTag?: number | string;
    alg?: number | string;
    algorithm?: number | string;
    cert?: string | Uint8Array;
  };
  A6: AnyData;
  DNAME: AnyData;
  SINK: AnyData | {
    meaning: number | string;
    coding: number | string;
    subcoding: number | string;
    data?: string | Uint8Array;
  };
  APL: AnyData | ReadonlyArray<string | Uint8Array>;
  DS: AnyData | {
    keytag?: number | string;
    keyTag?: number | string;
    alg?: number | string;
    algorithm?: number | string;
    digest_type?: number | string;
    digestType?: number | string;
    digest: string | Uint8Array;
  };
  SSHFP: AnyData | {
    alg?: number | string;
    algorithm?: number | string;
    fptype?: number | string;
    hash?: number | string;
    fingerprintType?: number | string;
    fp?: string | Uint8Array;
    fingerprint?: string | Uint8Array;
  };
  IPSECKEY: AnyData | {
    precedence: number | string;
    gateway_type?: number | string;
    gatewayType?: number | string;
    alg?: number | string;
    algorithm?: number | string;
    gateway: number | string;
    public_key?: string | Uint8Array;
    publicKey?: string | Uint8Array;
    key?: string | Uint8Array;
  };
  RRSIG: AnyData | {
    type_covered?: number | string;
    typeCovered?: number | string;
    alg?: number | string;
    algorithm?: number | string;
    labels: number | string;
    original_ttl?: number | string;
    originalTtl?: number | string;
    originalTTL?: number | string;
    expiration: number | string;
    inception: number | string;
    keytag?: number | string;
    keyTag?: number | string;
    signers_name?: string;
    signersName?: string;
    signerName?: string;
    signature?: string | Uint8Array;
  };
  NSEC: AnyData | {
    next_dname?: string;
    nextDname?: string;
    nextDomain?: string;
    nextName?: string;
    types?: string | readonly string[];
    rrtypes?: string | readonly string[];
  };
  DNSKEY: AnyData | {
    flags?: number | string;
    protocol?: number | string;
    alg?: number | string;
    algorithm?: number | string;
    public_key?: string | Uint8Array;
    publicKey?: string | Uint8Array;
    key?: string | Uint8Array;
  };
  DHCID: AnyData | ReadonlyArray<string | Uint8Array>;
  NSEC3: AnyData | {
    hash_alg?: number | string;
    hashAlg?: number | string;
    algorithm?: number | string;
    hashAlgorithm?: number | string;
    flags?: number | string;
    iterations: number | string;
    salt: string | Uint8Array;
    hash?: string | Uint8Array;
    nextDomain?: string | Uint8Array;
    digest?: string | Uint8Array;
    types?: string | readonly string[];
    rrtypes?: string | readonly string[];
  };
  NSEC3PARAM: AnyData | {
    hash_alg?: number | string;
    hashAlg?: number | string;
    algorithm?: number | string;
    hashAlgorithm?: number | string;
    flags?: number | string;
    iterations: number | string;
    salt: string | Uint8Array;
  };
  TLSA: AnyData | {
    usage: number | string;
    selector: number | string;
    matching_type?: number | string;
    matchingType?: number | string;
    certificate: string | Uint8Array;
  };
  SMIMEA: AnyData | {
    usage: number | string;
    selector: number | string;
    matching_type?: number | string;
    matchingType?: number | string;
    certificate: string | Uint8Array;
  };
  HIP: AnyData | {
    identity: number | string;
    rendezvous_servers?: string | readonly string[];
    rendezvousServers?: string | readonly string[];
  };
  NINFO: AnyData | ReadonlyArray<string | Uint8Array>;
  RKEY: AnyData | {
    flags?: number | string;
    protocol?: number | string;
    alg?: number | string;
    algorithm?: number | string;
    public_key?: string | Uint8Array;
    publicKey?: string | Uint8Array;
    key?: string | Uint8Array;
  };
  TALINK: AnyData | {
    previous: string;
    next: string;
  };
  CDS: AnyData | {
    keytag?: number | string;
    keyTag?: number | string;
    alg?: number | string;
    algorithm?: number | string;
    digest_type?: number | string;
    digestType?: number | string;
    digest: string | Uint8Array;
  };
  CDNSKEY: AnyData | {
    flags?: number | string;
    protocol?: number | string;
    alg?: number | string;
    algorithm?: number | string;
    public_key?: string | Uint8Array;
    publicKey?: string | Uint8Array;
    key?: string | Uint8Array;
  };
  OPENPGPKEY: AnyData | ReadonlyArray<string | Uint8Array>;
  CSYNC: AnyData | {
    soa_serial?: number | string;
    soaSerial?: number | string;
    flags?: number | string;
    types?: string | readonly string[];
    rrtypes?: string | readonly string[];
  };
  ZONEMD: AnyData | {
    serial: number | string;
    scheme: number | string;
    algorithm: number | string;
    hash?: string | Uint8Array;
    nextDomain?: string | Uint8Array;
    digest?: string | Uint8Array;
  };
  SVCB: AnyData | {
    svc_priority?: number | string;
    svcPriority?: number | string;
    priority?: number | string;
    target_name?: string;
    targetName?: string;
    target?: string;
    svc_params?: string | readonly string[] | SvcParams;
    svcParams?: string | readonly string[] | SvcParams;
    params?: string | readonly string[] | SvcParams;
  };
  HTTPS: AnyData | {
    svc_priority?: number | string;
    svcPriority?: number | string;
    priority?: number | string;
    target_name?: string;
    targetName?: string;
    target?: string;
    svc_params?: string | readonly string[] | SvcParams;
    svcParams?: string | readonly string[] | SvcParams;
    params?: string | readonly string[] | SvcParams;
  };
  DSYNC: AnyData | {
    rrtype: number | string;
    scheme: number | string;
    port: number | string;
    target: string;
  };
  HHIT: AnyData | ReadonlyArray<string | Uint8Array>;
  BRID: AnyData | ReadonlyArray<string | Uint8Array>;
  SPF: AnyData | ReadonlyArray<string | Uint8Array>;
  NID: AnyData | {
    preference?: number | string;
    node_id?: number | string;
    nodeId?: number | string;
  };
  L32: AnyData | {
    preference?: number | string;
    locator32: number | string;
  };
  L64: AnyData | {
    preference?: number | string;
    locator64: number | string;
  };
  LP: AnyData | {
    preference?: number | string;
    fqdn: string;
  };
  EUI48: AnyData;
  EUI64: AnyData;
  URI: AnyData | {
    priority?: number | string;
    weight?: number | string;
    target: string | Uint8Array;
  };
  CAA: AnyData | {
    flags?: number | string;
    tag: number | string;
    issuerCritical?: boolean;
    value: string | Uint8Array;
  };
  AVC: AnyData | ReadonlyArray<string | Uint8Array>;
  DOA: AnyData | {
    enterprise: number | string;
    type: number | string;
    location: number | string;
    media_type?: string | Uint8Array;
    mediaType?: string | Uint8Array;
    data?: string | Uint8Array;
  };
  AMTRELAY: AnyData | {
    precedence: number | string;
    relay_type?: number | string;
    relayType?: number | string;
    relay: number | string;
  };
  RESINFO: AnyData | ReadonlyArray<string | Uint8Array>;
  WALLET: AnyData | ReadonlyArray<string | Uint8Array>;
  CLA: AnyData | ReadonlyArray<string | Uint8Array>;
  IPN: AnyData;
  TA: AnyData | {
    keytag?: number | string;
    keyTag?: number | string;
    alg?: number | string;
    algorithm?: number | string;
    digest_type?: number | string;
    digestType?: number | string;
    digest: string | Uint8Array;
  };
  DLV: AnyData | {
    keytag?: number | string;
    keyTag?: number | string;
    alg?: number | string;
    algorithm?: number | string;
    digest_type?: number | string;
    digestType?: number | string;
    digest: string | Uint8Array;
  };
  ALIAS: AnyData;
}

/** Data of the same types where a record was read: text for types with one field, an array of
 * strings for TXT, and an object with the fields for all others. */
export interface ReadData {
  A: string;
  NS: string;
  MD: string;
  MF: string;
  CNAME: string;
  SOA: {
    readonly mname: string;
    readonly rname: string;
    readonly serial: number;
    readonly refresh: number;
    readonly retry: number;
    readonly expire: number;
    readonly minimum: number;
  };
  MB: string;
  MG: string;
  MR: string;
  WKS: {
    readonly address: string;
    readonly services: string;
  };
  PTR: string;
  HINFO: {
    readonly cpu: string;
    readonly os: string;
  };
  MINFO: {
    readonly rmailbx: string;
    readonly emailbx: string;
  };
  MX: {
    readonly preference: number;
    readonly exchange: string;
  };
  TXT: readonly string[];
  RP: {
    readonly mbox: string;
    readonly txt: string;
  };
  AFSDB: {
    readonly subtype: number;
    readonly hostname: string;
  };
  X25: string;
  ISDN: {
    readonly address: string;
    readonly subaddress: string;
  };
  RT: {
    readonly preference: number;
    readonly host: string;
  };
  NSAP: string;
  'NSAP-PTR': string;
  SIG: {
    readonly type_covered: string;
    readonly alg: number;
    readonly labels: number;
    readonly original_ttl: number;
    readonly expiration: string;
    readonly inception: string;
    readonly keytag: number;
    readonly signers_name: string;
    readonly signature: string;
  };
  KEY: {
    readonly flags: number;
    readonly protocol: number;
    readonly alg: number;
    readonly public_key: string;
  };
  PX: {
    readonly preference: number;
    readonly map822: string;
    readonly mapx400: string;
  };
  GPOS: {
    readonly longitude: string;
    readonly latitude: string;
    readonly altitude: string;
  };
  AAAA: string;
  LOC: string;
  NXT: {
    readonly dname: string;
    readonly types: readonly string[];
  };
  EID: string;
  NIMLOC: string;
  SRV: {
    readonly priority: number;
    readonly weight: number;
    readonly port: number;
    readonly target: string;
  };
  ATMA: string;
  NAPTR: {
    readonly order: number;
    readonly preference: number;
    readonly flags: string;
    readonly services: string;
    readonly regexp: string;
    readonly replacement: string;
  };
  KX: {
    readonly preference: number;
    readonly exchange: string;
  };
  CERT: {
    readonly type: string;
    readonly keytag: number;
    readonly alg: number;
    readonly cert: string;
  };
  A6: string;
  DNAME: string;
  SINK: {
    readonly meaning: number;
    readonly coding: number;
    readonly subcoding: number;
    readonly data: string;
  };
  APL: readonly string[];
  DS: {
    readonly keytag: number;
    readonly alg: number;
    readonly digest_type: number;
    readonly digest: string;
  };
  SSHFP: {
    readonly alg: number;
    readonly fptype: number;
    readonly fp: string;
  };
  IPSECKEY: {
    readonly precedence: number;
    readonly gateway_type: number;
    readonly alg: number;
    readonly gateway: string;
    readonly public_key: string;
  };
  RRSIG: {
    readonly type_covered: string;
    readonly alg: number;
    readonly labels: number;
    readonly original_ttl: number;
    readonly expiration: string;
    readonly inception: string;
    readonly keytag: number;
    readonly signers_name: string;
    readonly signature: string;
  };
  NSEC: {
    readonly next_dname: string;
    readonly types: readonly string[];
  };
  DNSKEY: {
    readonly flags: number;
    readonly protocol: number;
    readonly alg: number;
    readonly public_key: string;
  };
  DHCID: string;
  NSEC3: {
    readonly hash_alg: number;
    readonly flags: number;
    readonly iterations: number;
    readonly salt: string;
    readonly hash: string;
    readonly types: readonly string[];
  };
  NSEC3PARAM: {
    readonly hash_alg: number;
    readonly flags: number;
    readonly iterations: number;
    readonly salt: string;
  };
  TLSA: {
    readonly usage: number;
    readonly selector: number;
    readonly matching_type: number;
    readonly certificate: string;
  };
  SMIMEA: {
    readonly usage: number;
    readonly selector: number;
    readonly matching_type: number;
    readonly certificate: string;
  };
  HIP: {
    readonly identity: string;
    readonly rendezvous_servers: readonly string[];
  };
  NINFO: readonly string[];
  RKEY: {
    readonly flags: number;
    readonly protocol: number;
    readonly alg: number;
    readonly public_key: string;
  };
  TALINK: {
    readonly previous: string;
    readonly next: string;
  };
  CDS: {
    readonly keytag: number;
    readonly alg: number;
    readonly digest_type: number;
    readonly digest: string;
  };
  CDNSKEY: {
    readonly flags: number;
    readonly protocol: number;
    readonly alg: number;
    readonly public_key: string;
  };
  OPENPGPKEY: string;
  CSYNC: {
    readonly soa_serial: number;
    readonly flags: number;
    readonly types: readonly string[];
  };
  ZONEMD: {
    readonly serial: number;
    readonly scheme: number;
    readonly algorithm: number;
    readonly hash: string;
  };
  SVCB: {
    readonly svc_priority: number;
    readonly target_name: string;
    readonly svc_params: readonly string[];
  };
  HTTPS: {
    readonly svc_priority: number;
    readonly target_name: string;
    readonly svc_params: readonly string[];
  };
  DSYNC: {
    readonly rrtype: string;
    readonly scheme: string;
    readonly port: number;
    readonly target: string;
  };
  HHIT: string;
  BRID: string;
  SPF: readonly string[];
  NID: {
    readonly preference: number;
    readonly node_id: string;
  };
  L32: {
    readonly preference: number;
    readonly locator32: string;
  };
  L64: {
    readonly preference: number;
    readonly locator64: string;
  };
  LP: {
    readonly preference: number;
    readonly fqdn: string;
  };
  EUI48: string;
  EUI64: string;
  URI: {
    readonly priority: number;
    readonly weight: number;
    readonly target: string;
  };
  CAA: {
    readonly flags: number;
    readonly tag: string;
    readonly value: string;
  };
  AVC: readonly string[];
  DOA: {
    readonly enterprise: number;
    readonly type: number;
    readonly location: number;
    readonly media_type: string;
    readonly data: string;
  };
  AMTRELAY: {
    readonly precedence: number;
    readonly relay_type: string;
    readonly relay: string;
  };
  RESINFO: readonly string[];
  WALLET: readonly string[];
  CLA: readonly string[];
  IPN: string;
  TA: {
    readonly keytag: number;
    readonly alg: number;
    readonly digest_type: number;
    readonly digest: string;
  };
  DLV: {
    readonly keytag: number;
    readonly alg: number;
    readonly digest_type: number;
    readonly digest: string;
  };
  ALIAS: string;
}
