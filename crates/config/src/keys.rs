//! Every section and key there is, with its default, range and description.
//!
//! The reference page, the sample and `--print-config` follow the order of [`SECTIONS`].

use crate::access::{AccessRule, Network};
pub use crate::cache_keys::CacheKeys;
pub use crate::catalog_keys::{
    CATALOG_HISTORY, CATALOG_SECONDARY, CATALOG_TRANSFER, CatalogKeys, CatalogPlace, MembersKeys,
};
pub use crate::cluster_keys::KubernetesKeys;
pub use crate::geo_keys::{GeoKeys, GeoNetworkKeys, GeoSiteKeys};
pub use crate::log_keys::{Log, QueryLog};
pub use crate::node_keys::{KubeDnsKeys, NodeLocalKeys};
use crate::option_value::UpstreamOption;
pub use crate::pool_keys::{CheckKeys, MemberKeys, PoolKeys, STEER};
pub use crate::rewrite_keys::{RewriteKeys, TemplateKeys};
use crate::section::{EffectTime, Key, Keys, Kind, Section, section};
use crate::store::StoreUrl;
pub use crate::transfer_keys::{HistoryKeys, SecondaryKeys, TransferKeys, TransfersKeys, TsigKeys};
use crate::transfer_value::AliasTransfer;
pub use crate::update_keys::UpdateKeys;
use crate::value::{
    CookieSecret, Nsid, Percent, PinnedKey, SerialRule, ServerAddress, Size, Toggle, Token, Value,
    Version,
};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use zonda_upstream::{Policy, Upstream};
use zonda_wire::Name;

/// All sections, in the order in which they are documented and read.
pub const SECTIONS: &[&Section] = &[
    &Top::SECTION,
    &NodeLocalKeys::SECTION,
    &ListenKeys::SECTION,
    &ZoneKeys::SECTION,
    &TransferKeys::SECTION,
    &HistoryKeys::SECTION,
    &UpdateKeys::SECTION,
    &ForwardKeys::SECTION,
    &StoreKeys::SECTION,
    &SecondaryKeys::SECTION,
    &MembersKeys::SECTION,
    &KubernetesKeys::SECTION,
    &STEER,
    &CatalogKeys::SECTION,
    &CATALOG_SECONDARY,
    &CATALOG_TRANSFER,
    &CATALOG_HISTORY,
    &GeoKeys::SECTION,
    &GeoNetworkKeys::SECTION,
    &GeoSiteKeys::SECTION,
    &PoolKeys::SECTION,
    &MemberKeys::SECTION,
    &CheckKeys::SECTION,
    &KubeDnsKeys::SECTION,
    &Forwarding::SECTION,
    &SpecialNames::SECTION,
    &OVERRIDE,
    &RewriteKeys::SECTION,
    &TemplateKeys::SECTION,
    &ACCESS,
    &TsigKeys::SECTION,
    &TransfersKeys::SECTION,
    &Tcp::SECTION,
    &Answers::SECTION,
    &CacheKeys::SECTION,
    &Edns::SECTION,
    &Identity::SECTION,
    &RateLimit::SECTION,
    &AdminKeys::SECTION,
    &Metrics::SECTION,
    &Log::SECTION,
    &QueryLog::SECTION,
];

section! {
    /// Keys of the whole server. They stand before the first header. `user`, `state`
    /// and `flush-interval` change at a restart only, and so does `workers` for addresses that are
    /// answered on.
    pub struct Top: Top "", Reload;

    /// The version of the file format. Every file states it.
    version: Version = "1";
    /// Threads that answer UDP queries, for each listener.
    /// 0: one for each CPU that the cgroup's quota and the affinity mask leave to the server.
    workers: u16 = "0", from "0" to "1024";
    /// The user to which the server changes once its sockets are bound, when started as root.
    user: Option<String>, like "zonda";
    /// The directory that zone files must not leave by the paths written for them, nor their
    /// `$INCLUDE`s by any link that they follow.
    /// Unset: the configuration file's directory; for a zone given as a flag, that of its file.
    root: Option<PathBuf>, like "/var/lib/zonda";
    /// Reload a zone when its file changes, and not only at a command. The files of a `directory`
    /// are always watched.
    watch: bool = "false";
    /// Interval at which watched files are checked.
    watch_interval: Duration = "2s", from "100 ms" to "1h";
    /// The directory of what the server keeps from one start to the next: changes of writable zones
    /// that their files lack. `--state DIR` names it as well. It is made when it is needed, for
    /// its owner alone, and one server at a time uses it. Unset: `$STATE_DIRECTORY`, as systemd
    /// sets it; else `/var/lib/zonda` for root, and `$XDG_STATE_HOME/zonda` or
    /// `~/.local/state/zonda` for other users.
    state: Option<PathBuf>, like "/var/lib/zonda";
    /// Interval at which changes of writable zones are written to their files. They are also
    /// written when the server stops, and by `zonda zone flush`.
    flush_interval: Duration = "10m", from "1s" to "1d";
}

section! {
    /// An address on which queries are answered; repeat the section for more.
    /// `ZONDA_LISTEN="ADDRESS,ADDRESS"` and `--listen ADDRESS` replace all of them. Without any,
    /// the server listens on the addresses of `[node-local]`, or else on 127.0.0.1:53; with
    /// `listen = []` at the top of the file, it has no listeners, for programs that embed the
    /// server and pass it their own queries.
    pub struct ListenKeys: Array "listen", Reload;

    /// Address and port. A wildcard address costs each query some 2 % against a concrete one.
    address: SocketAddr, like "127.0.0.1:53";
    /// Answer over UDP. For an address that is answered on, changes take effect at a restart, as do
    /// those of the four keys behind this one.
    udp: bool = "true";
    /// Answer over TCP (rfc7766).
    tcp: bool = "true";
    /// Threads that answer this listener's UDP queries; 0: as many as the server's `workers`.
    workers: u16 = "0", from "0" to "1024";
    /// Receive buffer requested for each UDP socket. The kernel's default holds only some 250
    /// queries.
    receive_buffer: Size = "4 MiB", from "64 KiB" to "1 GiB";
    /// Send buffer requested for each UDP socket.
    send_buffer: Size = "1 MiB", from "64 KiB" to "1 GiB";
    /// Access list of this listener: rules, of which the first that matches the client decides, or
    /// names of lists in `[access]`. A rule is for addresses and networks, for `key` and the name
    /// of a key that messages are signed with, or for both; only zones have rules with `type`. The
    /// last must be for `any`. Unset: all are answered.
    access: Vec<AccessRule>, like "allow 192.0.2.0/24, refuse any";
}

section! {
    /// A zone: a name and a source of answers. Give exactly one source: `file`, `json`,
    /// `directory`, `hosts`, `forward`, `store`, `secondary`, `members` or `kubernetes`; only
    /// `hosts` and `forward` go together.
    /// `--zone NAME=FILE` (else `ZONDA_ZONE="NAME=FILE,NAME=FILE"`) adds zones, and replaces zones
    /// of the same name here; a FILE that ends in `.json` is read as `json`.
    pub struct ZoneKeys: Array "zone", Reload;

    /// The name of the zone's apex. Goes with `file`, `hosts`, `forward`, `store`, `secondary` and
    /// `kubernetes`, and with `json` to pick one zone.
    name: Option<Name>, like "example.com";
    /// A master file (rfc1035#5).
    file: Option<PathBuf>, like "zones/example.com.zone";
    /// A file of zones in the JSON form of erldns; without `name`, all of them are served.
    json: Option<PathBuf>, like "zones/example.com.json";
    /// A directory in which every `NAME.zone` and `NAME.json` is a zone of that name, loaded,
    /// reloaded and removed with its file.
    directory: Option<PathBuf>, like "zones";
    /// A file of addresses and their names, such as `/etc/hosts`, inside the zone's name. It may be
    /// anywhere, and is always watched. With `forward`, other names are forwarded.
    hosts: Option<PathBuf>, like "/etc/hosts";
    /// The TTL of the records of `hosts`.
    hosts_ttl: Duration = "60s", from "0s" to "7d";
    /// Whether the addresses of `hosts` have names (PTR), each the first that the file has for it.
    hosts_reverse: bool = "true";
    /// Whether records of the zone can be changed while it is served, by `zonda zone set` and the
    /// HTTP interface. Goes with `file`, with `json` and a `name`, and with `directory`. The file
    /// is rewritten: its comments are lost. `--writable` says so of zones that flags give.
    writable: bool = "false";
    /// How the serial rises with each change of a writable zone: by 1, to the seconds since 1970,
    /// or to the day as YYYYMMDD and two digits; by at least 1 in any case.
    serial: SerialRule = "increment";
    /// The catalog zone of this server that lists the zone, of `[zone.members]`, and perhaps the
    /// group that the zone has there. Goes with `file`, `json`, `directory`, `store` and
    /// `secondary`.
    catalog: Option<CatalogPlace>, like "catalog.example group signed";
    /// How ALIAS records are transferred: as they stand, or as the addresses that their targets
    /// have then (`expanded`); such a zone is always sent whole. Goes with `transfer`.
    alias_transfer: AliasTransfer = "record";
    /// Access list of this zone, behind that of the listener; as in `[[listen]]`, and with rules
    /// for types: `filter any type AAAA`. Unset: all clients may ask; of zones with `forward`, only
    /// loopback, private and link-local addresses, so that no other client uses the upstreams.
    access: Vec<AccessRule>, like "allow any";
    /// The listeners that the zone is at, by their addresses as `[[listen]]` has them; queries to
    /// other listeners are answered as if it was not there. Unset: all of them. Zones of one name
    /// are allowed at different listeners, all but one of them with `forward`.
    listen: Vec<SocketAddr>, like "127.0.0.1:53";
}

section! {
    /// The source of a forwarded zone, whose answers come from other servers. Follows its
    /// `[[zone]]`. `--forward ADDRESS` (else `ZONDA_FORWARD="ADDRESS,ADDRESS"`) makes such a zone
    /// for `.`, all names that no other zone holds. What begins with `/` or `./` there is a file,
    /// as in `resolv-conf`.
    pub struct ForwardKeys: Nested "zone.forward", Reload;

    /// The upstreams. An address, with a port if that is not 53, is queried over UDP, and over TCP
    /// when an answer was truncated; `tcp://ADDRESS` over TCP only; `tls://ADDRESS#NAME` over TLS,
    /// port 853, with a certificate for NAME or, without `#NAME`, for the address itself;
    /// `quic://ADDRESS#NAME` likewise over QUIC, and `https://ADDRESS/PATH#NAME` over HTTPS, port
    /// 443, with the default PATH `dns-query`. With `bootstrap`, a name can replace any ADDRESS.
    to: Vec<Upstream>, like "192.0.2.1, 192.0.2.2:5353, tls://192.0.2.4#dns.example.net";
    /// Files that name more upstreams by lines `nameserver ADDRESS` (resolv.conf(5)). They are
    /// followed: a file that cannot be used leaves the upstreams that it had, and the log says why.
    /// An address may have a port; those of one interface (`fe80::1%eth0`) are passed over.
    resolv_conf: Vec<PathBuf>, like "/etc/resolv.conf";
    /// Whether the upstreams in `resolv-conf` are queried over TCP only.
    resolv_conf_tcp: bool = "false";
    /// The addresses of servers that resolve the names of upstreams given by name. They are queried
    /// over UDP, and again when the TTL has expired.
    bootstrap: Vec<ServerAddress>, like "192.0.2.53, 192.0.2.54:5353";
    /// A PEM file of the certificates to which those of the upstreams must chain. Unset: the public
    /// roots that Mozilla trusts, which are built in.
    ca_file: Option<PathBuf>, like "private-ca.pem";
    /// The keys that the upstreams may have, instead of certificates that chain to a root and have
    /// the right name: SHA-256 hashes as in rfc7858#4.2. Add the next key before it is used.
    pins: Vec<PinnedKey>, like "sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
    /// Trust the AD bit of upstreams over an encrypted transport, which says that they have
    /// validated the answer, and pass it on (rfc6840#5.8). Otherwise AD is never set.
    trust_ad: bool = "false";
    /// Which upstream is queried first: the one that is expected to answer first, all in turn, any,
    /// the first of the list, or one by the name in the question, so that the caches of the
    /// upstreams hold different names. With each policy, upstreams that do not answer are not
    /// queried, and another one is queried, too, when the first is slower than usual or a query is
    /// lost.
    policy: Policy = "fastest";
    /// Names that are not forwarded, with all names below them, as if they were outside the zone:
    /// another zone that holds them answers, else they are REFUSED.
    except: Vec<Name>, like "internal.example.com";
    /// Block answers with a loopback, private or link-local address: by such an address, the owner
    /// of a name on the Internet lets browsers connect to machines behind a firewall (DNS
    /// rebinding). Such an answer is passed on empty, with extended error 15.
    rebinding_protection: bool = "false";
    /// Names that may have private addresses nevertheless, with all names below them.
    private_names: Vec<Name>, like "plex.direct, home.example.com";
    /// Queries that may wait for one upstream at a time. The forwarder threads have equal shares,
    /// and at least one each.
    outstanding_max: u32 = "1000000", from "1" to "1000000";
    /// Time without an answer after which a client gets SERVFAIL. The server waits twice as long
    /// for the answer, to cache it.
    timeout: Duration = "5s", from "100 ms" to "1m";
    /// Time without an answer after which a client gets an expired one, if there is one (rfc8767).
    stale_after: Duration = "1800 ms", from "0 ms" to "1m";
    /// Queries in addition to those that questions need, as a share of the questions: copies to a
    /// second upstream when the first is slower than usual, and early repeats of overdue queries. 0
    /// %: none, so that a query is repeated only after 150 ms without an answer.
    extra_queries: Percent = "5 %", from "0 %" to "100 %";
    /// The earliest repeat of a query without an answer. The smoothed time of the upstream and four
    /// times its variance apply, if that is longer.
    repeat_after_min: Duration = "20 ms", from "1 ms" to "1s";
    /// Number of overdue answers, without any message in between, after which an upstream is
    /// suspect: it is queried only if no other one is up, and probed.
    suspect_after: u32 = "3", from "1" to "100";
    /// Silence after which a suspect upstream is down, and gets probes only.
    down_after: Duration = "3s", from "100 ms" to "5m";
    /// Time between probes of an upstream that does not answer. While it is down, each interval is
    /// twice as long as the one before.
    probe_interval: Duration = "500 ms", from "100 ms" to "1m";
    /// The longest time between probes; if all upstreams of a zone are down, a second, unless
    /// `probe-interval` is longer.
    probe_interval_max: Duration = "16s", from "100 ms" to "5m";
    /// Octets of the largest answer over UDP that the server requests from upstreams (EDNS); larger
    /// answers come over TCP.
    buffer_size: u16 = "1232", from "512" to "4096";
    /// EDNS options that each query to an upstream has, at most 8: the code of each, and its data.
    /// `{client-address}`, `{client-port}`, `{transport}` (`udp` or `tcp`), `{server-address}` and
    /// `{server-port}` are those of the client's query, `{name}` and `{type}` those that the
    /// upstream is asked for, and
    /// `8 {client-subnet 24 56}` has the first 24 bits of the client's IPv4 address, or 56 of its
    /// IPv6 address (rfc7871). Clients share a cached answer only if the upstream is told the same
    /// of them. ` if-present` behind the data: only if the client's query has an option of the
    /// code. Options of clients are never passed on.
    options: Vec<UpstreamOption>, like "65518 0x61626364";
    /// The least time for which answers of the zone are cached, whatever their TTL, unless that is
    /// 0, and no longer than `ttl-max`. Unset: that of `[cache]`.
    ttl_min: Option<Duration>, like "5s", from "0s" to "1h";
    /// The longest time for which answers of the zone are cached; 0 s: none is, so that ALIAS
    /// records with targets in the zone fail, unless `answers.alias-resolver` looks them up. It
    /// holds for answers that come from then on. Unset: that of `[cache]`.
    ttl_max: Option<Duration>, like "1h", from "0s" to "30d";
    /// The least time for negative answers of the zone (rfc2308#5), unless their TTL is 0. Unset:
    /// that of `[cache]`.
    negative_ttl_min: Option<Duration>, like "5s", from "0s" to "1h";
    /// The longest time for negative answers of the zone; 0 s: none is cached. Unset: that of
    /// `[cache]`.
    negative_ttl_max: Option<Duration>, like "30m", from "0s" to "1d";
    /// Time after its expiry for which an answer of the zone may still be used, when no upstream
    /// answers (rfc8767). 0 s: never. Unset: that of `[cache]`.
    stale: Option<Duration>, like "1h", from "0s" to "30d";
    /// Most ports of each thread to an upstream at a time, each chosen at random and closed with
    /// the last answer. From half of them on, up to 64 queries of a second leave from the same
    /// port; when all are open, the oldest is closed for the next.
    ports: u16 = "1024", from "16" to "4096";
    /// Most queries that leave from the same port if they are sent together. With fewer, forging
    /// answers is harder, and costs of CPU time are higher.
    queries_per_port: u16 = "4", from "1" to "64";
    /// Connections to an upstream at a time.
    connections_max: u16 = "8", from "1" to "64";
    /// Queries that wait on each connection before another one is opened. At `connections-max`,
    /// more may wait.
    pipeline_max: u16 = "128", from "1" to "16384";
}

section! {
    /// The source of a zone whose records are in a database, and are followed there: changes are
    /// served as they are made. Follows its `[[zone]]`. `--store NAME=URL` (else
    /// `ZONDA_STORE="NAME=URL,NAME=URL"`) adds such zones, and replaces zones of the same name.
    pub struct StoreKeys: Nested "zone.store", Reload;

    /// The database: a URL of PostgreSQL, or of Redis or Valkey, or a file of redb. It is never
    /// printed, as it may hold a password. Zones with the same database and options share its
    /// connections. `rediss://…` is Redis over TLS, and `?sslmode=verify-full` has a connection to
    /// PostgreSQL encrypted and its server verified, by public roots or those of a file:
    /// `rediss://HOST/?ca=FILE`, `postgres://HOST/DATABASE?sslmode=verify-full&sslrootcert=FILE`.
    url: StoreUrl, like "redis://127.0.0.1:6379/0";
    /// Beginning of each key of Redis.
    prefix: Option<String>, like "dns:";
    /// Interval at which all records are compared, for changes that PostgreSQL or Redis does not
    /// announce.
    compare_interval: Duration = "30s", from "1s" to "1d";
    /// Octets that are read from the database at a time at most. While it has more, the zone keeps
    /// the records that it has, and the log says so. The server needs several times as many octets
    /// of memory while it reads.
    read_max: Size = "1 GiB", from "1 KiB" to "3 GiB";
    /// How long the zone is served after the last moment at which it had what its database has;
    /// after that it is SERVFAIL until it has it again. Unset: as long as the server runs.
    expire: Option<Duration>, like "7d", from "1s" to "365d";
}

section! {
    /// Limits for all forwarded zones together.
    pub struct Forwarding: Table "forwarding", Reload;

    /// Queries that wait at once. The forwarder threads have equal shares, and at least one each.
    /// When one more comes, the oldest of a client that has more than its share is answered
    /// SERVFAIL. Up to four times as many fetches are under way at a time, since a fetch continues
    /// when no query waits for it any more.
    waiting_max: u32 = "16384", from "1" to "1000000";
    /// Queries that wait for the same answer, and so in the same thread, up to its share of
    /// `waiting-max`.
    waiting_per_answer_max: u32 = "1024", from "1" to "100000";
    /// Answers of upstreams that one reply combines, where aliases lead from one forwarded zone
    /// into another. A longer chain is SERVFAIL.
    chain_max: u8 = "8", from "1" to "16";
}

section! {
    /// Names that have a meaning on the local network or on the machine only, such as `localhost`,
    /// `home.arpa` or `168.192.in-addr.arpa`. Where `.` is forwarded, this server answers them,
    /// unless there is a zone for them or for names above them.
    pub struct SpecialNames: Table "special-names", Reload;

    /// Special names that are forwarded like any other, with all names below them; `.` means all.
    forward: Vec<Name>, like "home.arpa, 168.192.in-addr.arpa";
    /// More names that do not exist, with all names below them. Those that are reserved for tests
    /// and examples are forwarded unless they are listed here.
    answer: Vec<Name>, like "test, example";
}

/// Names that have other addresses here; each is a list to read as `Vec<IpAddr>`.
pub const OVERRIDE: Section = Section {
    name: "override",
    kind: Kind::Open,
    takes: EffectTime::Reload,
    doc: &[
        " Names that have other addresses here than in the DNS, for clients of the zones that are",
        " forwarded. They have no records of other types.",
    ],
    keys: &[Key {
        name: "NAME",
        doc: &[
            " The name, in quotes; `\"*.example.com\"` stands for all names below `example.com`",
            " that have no line of their own, but not for itself.",
        ],
        default: None,
        example: Some("192.0.2.7, 2001:db8::7"),
        range: None,
        form: <IpAddr as Value>::form,
        shape: <IpAddr as Value>::SHAPE,
        many: true,
        secret: false,
    }],
};

/// A section whose keys the user names; each is a list to read as `Vec<AccessRule>`.
pub const ACCESS: Section = Section {
    name: "access",
    kind: Kind::Open,
    takes: EffectTime::Reload,
    doc: &[" Named access lists, for the `access` of listeners and zones."],
    keys: &[Key {
        name: "NAME",
        doc: &[" Any name; the rules stand in for it, in order. A list cannot name another list."],
        default: None,
        example: Some("allow 192.0.2.0/24 2001:db8::/32, drop any"),
        range: None,
        form: AccessRule::form,
        shape: AccessRule::SHAPE,
        many: true,
        secret: false,
    }],
};

section! {
    /// Limits of DNS over TCP (rfc7766, rfc9210).
    pub struct Tcp: Table "tcp", Reload;

    /// Connections open at once, all listeners together. At the limit, connections with an
    /// incomplete message are closed first, then those that have been idle longest.
    connections_max: u32 = "10000", from "1" to "1000000";
    /// Connections open at once from one client: an IPv4 address or an IPv6 /64. An IPv6 /48 may
    /// have ten times as many.
    connections_per_client: u32 = "100", from "1" to "1000000";
    /// A connection without a query for this long is closed, and sooner when `connections-max` are
    /// open and it is the one that has been idle longest.
    idle_timeout: Duration = "10s", from "1s" to "1h";
    /// Time in which a message must arrive completely, once its first octet came.
    message_timeout: Duration = "5s", from "100 ms" to "1m";
    /// Time in which a client must take a reply.
    write_timeout: Duration = "5s", from "100 ms" to "1m";
    /// Queries answered on one connection before it is closed; 0: no limit.
    queries_per_connection: u32 = "0", from "0" to "1000000000";
    /// Tell clients with the keepalive option how long they may stay idle (rfc7828).
    keepalive: bool = "true";
}

section! {
    /// Options of answers.
    pub struct Answers: Table "answers", Reload;

    /// Follow a CNAME into another zone of this server.
    cross_zone: bool = "false";
    /// Rotate the addresses of an RRset from one answer to the next.
    rotate: bool = "false";
    /// The upstreams that look up the targets of ALIAS records for which this server has no zone
    /// data, written as in `to` of `[zone.forward]`, whose defaults they have; by address, not by
    /// name. Unset: those of the forwarded zone that holds the target.
    alias_resolver: Vec<Upstream>, like "192.0.2.1, tls://192.0.2.4#dns.example.net";
    /// Look up the targets of ALIAS records, and again before their answers expire, although no
    /// client asks for them: of 10,000 names at most.
    alias_refresh: bool = "true";
}

section! {
    /// Extension mechanisms (rfc6891).
    pub struct Edns: Table "edns", Reload;

    /// Most octets of a UDP reply, and the size advertised to clients.
    buffer_size: u16 = "1232", from "512" to "4096";
    /// Answer DNS cookies with cookies (rfc7873, rfc9018).
    cookies: bool = "true";
    /// Secrets shared by the servers of an anycast set. The first makes cookies, the rest are still
    /// accepted: to roll over, add the new one last everywhere, then move it first, then drop the
    /// old. Unset: made at random at each start.
    cookie_secrets: Vec<CookieSecret>;
    /// Name server identifier, sent to clients with the NSID option (rfc5001). Unset: none is sent.
    nsid: Option<Nsid>, like "ns1.example.com";
    /// Use the network of its client that a resolver tells in a query (EDNS Client Subnet,
    /// rfc7871), where answers depend on the client, and repeat it in the reply with the scope of
    /// the answer, by which resolvers cache it. Otherwise the option is ignored: answers depend on
    /// the address of the resolver, and have no scope.
    client_subnet: bool = "true";
    /// The resolvers whose client subnet is used; from any other client the option is ignored.
    /// Unset: all.
    client_subnet_from: Vec<Network>, like "192.0.2.0/24, 2001:db8::/32";
    /// The clients that are told why an answer is what it is, if a query of theirs asks for it by
    /// an extended error (rfc8914): the reason, the zone, and the pool and members that it chose.
    /// Unset: none is told.
    reasons_to: Vec<Network>, like "127.0.0.0/8, ::1/128";
}

section! {
    /// The identity of the server. Unset, such queries are refused.
    pub struct Identity: Table "identity", Reload;

    /// The answer to `version.bind` and `version.server`, class CH, type TXT.
    version: Option<String>, like "zonda";
    /// The answer to `hostname.bind` and `id.server`, class CH, type TXT (rfc4892).
    server_id: Option<String>, like "ns1.example.com";
    /// The answers to `authors.bind`, class CH, type TXT: a record for each.
    authors: Vec<String>, like "Example Networks";
}

section! {
    /// Response rate limiting, so that attackers cannot use the server to flood a victim.
    pub struct RateLimit: Table "rate-limit", Reload;

    /// Responses of one kind to one client network in a second. Unset: no limit.
    responses_per_second: Option<u32>, like "20", from "1" to "1000000";
    /// One in so many of the responses above the limit is sent truncated, so that a real client can
    /// repeat the query over TCP; 0: none, 1: all.
    slip: u8 = "2", from "0" to "10";
    /// Seconds of responses that a network may get at once after a silence.
    window: Duration = "15s", from "1s" to "1h";
    /// Length of the prefix that makes a client network of IPv4 addresses.
    prefix_v4: u8 = "24", from "8" to "32";
    /// Length of the prefix that makes a client network of IPv6 addresses.
    prefix_v6: u8 = "56", from "16" to "128";
    /// Networks that are never limited.
    exempt: Vec<Network>, like "192.0.2.0/24, 2001:db8::/32";
    /// Client networks and kinds of response remembered at once; each takes 8 octets.
    table_size: u32 = "131072", from "1024" to "16777216";
}

section! {
    /// The administrative interface: metrics, health and control, over HTTP. All keys but `health`,
    /// `ready`, `metrics` and `lameduck` change at a restart only.
    pub struct AdminKeys: Table "admin", Reload;

    /// Address and port of the interface. Anything but a loopback address needs a token.
    address: Toggle<SocketAddr> = "127.0.0.1:9153";
    /// Addresses at which `/health` is answered, without a token, and nothing else: 200 and `OK`
    /// while the process answers. Those of `ready` and `metrics` may be the same.
    health: Vec<SocketAddr>, like "0.0.0.0:8080";
    /// Addresses at which `/ready` is answered: 200 and `OK`, or 503 and a line for each problem.
    ready: Vec<SocketAddr>, like "0.0.0.0:8181";
    /// Addresses at which `/metrics` is answered, which has the names of zones.
    metrics: Vec<SocketAddr>, like "192.0.2.1:9153";
    /// Time for which the server answers on after SIGTERM or SIGINT, while `/ready` says 503, so
    /// that load balancers leave it. SIGINT (Ctrl-C) then ends it at once.
    lameduck: Duration = "0s", from "0s" to "1h";
    /// The bearer token with which all requests over TCP are answered. Unset: only `/metrics`,
    /// `/health`, `/ready` and `/v1/version` are answered there, and all requests on the Unix
    /// socket. If it or `read-token` is set, every request over TCP needs one of the two.
    token: Option<Token>;
    /// A file that holds the token, read at start; in place of `token`.
    token_file: Option<PathBuf>, like "/etc/zonda/token";
    /// A bearer token with which requests over TCP are answered that change nothing.
    read_token: Option<Token>;
    /// A file that holds the read token, read at start; in place of `read-token`.
    read_token_file: Option<PathBuf>, like "/etc/zonda/read-token";
    /// The key that clients of PowerDNS's HTTP API send as `X-API-Key`: with it, and with nothing
    /// else, the requests below `/api` are answered over TCP, those that change zones included.
    /// Unset: there is nothing below `/api`.
    powerdns_api_key: Option<Token>;
    /// A file that holds that key, read at start; in place of `powerdns-api-key`.
    powerdns_api_key_file: Option<PathBuf>, like "/etc/zonda/powerdns-api-key";
    /// The Unix socket on which `zonda reload`, `status` and other commands reach the server.
    /// Unset: `zonda-ADDRESS.sock`, after the first listener, in `$RUNTIME_DIRECTORY` (systemd sets
    /// it), else in `/run/zonda` for root, else in `$XDG_RUNTIME_DIR/zonda`, else in the working
    /// directory.
    socket: Option<Toggle<PathBuf>>, like "/run/zonda/zonda.sock";
    /// A directory of zones that clients create and remove by `POST /v1/zones` and `DELETE
    /// /v1/zones/NAME`: every `NAME.zone` in it is a writable zone, and is served like those of a
    /// `directory`. It is made if it is not there. Unset: zones come from the configuration only.
    zones: Option<PathBuf>, like "/var/lib/zonda/zones";
    /// Address and port of BIND's JSON statistics, as in `statistics-channels`;
    /// docs/coming-from-bind.md lists them.
    bind_statistics: Toggle<SocketAddr> = "off";
    /// Networks that may read the statistics, besides loopback addresses.
    bind_statistics_clients: Vec<Network>, like "192.0.2.0/24, 2001:db8::/32";
}

section! {
    /// Metrics for Prometheus, at `/metrics` of the administrative interface.
    pub struct Metrics: Table "metrics", Reload;

    /// Zones that are counted one by one. Unset: the `busiest`. Any other zone counts as `other`.
    zones: Vec<Name>, like "example.com, example.org";
    /// How many of the busiest zones are counted one by one, when none are listed.
    busiest: u32 = "1000", from "0" to "100000";
    /// Write metrics under CoreDNS's names as well; docs/coming-from-coredns.md has a table.
    coredns_names: bool = "false";
    /// The zones that the label `zone` of CoreDNS's names tells apart: those of its server blocks.
    /// The longest that holds a query's name counts, and `dropped` if none does. Unset: the root,
    /// which holds all names. The first 16 while the server runs are told apart, and zones beyond
    /// the first 64 do not count.
    coredns_zones: Vec<Name>, like "., cluster.local";
}
