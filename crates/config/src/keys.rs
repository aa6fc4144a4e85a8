//! Every section and key there is, with its default, range and description.
//!
//! The reference page, the sample and `--print-config` follow the order of [`SECTIONS`].

use crate::access::{AccessRule, Network};
use crate::section::{Key, Keys, Kind, Section, Takes, section};
use crate::value::{
    CookieSecret, LogFormat, LogLevel, Nsid, Output, Percent, PinnedKey, ServerAddress, Size,
    Toggle, Token, Value, Version,
};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use zonda_upstream::{Policy, Upstream};
use zonda_wire::Name;

/// All sections, in the order in which they are documented and read.
pub const SECTIONS: &[&Section] = &[
    &Top::SECTION,
    &ListenKeys::SECTION,
    &ZoneKeys::SECTION,
    &ForwardKeys::SECTION,
    &Forwarding::SECTION,
    &SpecialNames::SECTION,
    &OVERRIDE,
    &ACCESS,
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
    /// Keys of the whole server. They stand before the first header.
    pub struct Top: Top "", Restart;

    /// The version of the file format. Every file states it.
    version: Version = "1";
    /// Threads that answer UDP queries, for each listener.
    /// 0: one for each CPU that the cgroup's quota and the affinity mask leave to the server.
    workers: u16 = "0", from "0" to "1024";
    /// The user whose rights the server keeps once its sockets are bound, when started as root.
    user: Option<String>, like "zonda";
    /// The directory that zone files must not leave by the paths written for them, nor their
    /// `$INCLUDE`s by any link that they follow.
    /// Unset: the configuration file's directory; for a zone given as a flag, that of its file.
    root: Option<PathBuf>, like "/var/lib/zonda";
    /// Reload a zone when its file changes, not only when told to.
    /// The files of a `directory` are always watched.
    watch: bool = "false";
    /// How often watched files are looked at.
    watch_interval: Duration = "2s", from "100 ms" to "1h";
}

section! {
    /// An address on which queries are answered; repeat the section for more.
    /// `ZONDA_LISTEN="ADDRESS,ADDRESS"` and `--listen ADDRESS` take the place of all of them.
    /// Without any, the server listens on 127.0.0.1:53; `listen = []` at the top of the file lets
    /// it listen nowhere, for programs that hold it and ask it themselves.
    pub struct ListenKeys: Array "listen", Restart;

    /// Address and port. A wildcard address costs each query some 2 % against a concrete one.
    address: SocketAddr, like "127.0.0.1:53";
    /// Answer over UDP.
    udp: bool = "true";
    /// Answer over TCP (rfc7766).
    tcp: bool = "true";
    /// Threads that answer this listener's UDP queries; 0: as many as the server's `workers`.
    workers: u16 = "0", from "0" to "1024";
    /// Receive buffer asked for each UDP socket. The kernel's default holds only some 250 queries.
    receive_buffer: Size = "4 MiB", from "64 KiB" to "1 GiB";
    /// Send buffer asked for each UDP socket.
    send_buffer: Size = "1 MiB", from "64 KiB" to "1 GiB";
    /// Who is answered here: rules, of which the first that matches decides, or names of lists in
    /// `[access]`. The last rule must be for `any`. Unset: everyone is answered. Changes of this
    /// key take effect at a reload.
    access: Vec<AccessRule>, like "allow 192.0.2.0/24, refuse any";
}

section! {
    /// A zone: a name and a source of answers. Give exactly one source: `file`, `json`,
    /// `directory`, `hosts` or `forward`; only `hosts` and `forward` go together.
    /// `--zone NAME=FILE` (else `ZONDA_ZONE="NAME=FILE,NAME=FILE"`) adds zones, and replaces zones
    /// of the same name here; a FILE that ends in `.json` is read as `json`.
    pub struct ZoneKeys: Array "zone", Reload;

    /// The name of its apex. Goes with `file`, `hosts` and `forward`, and with `json` to pick one
    /// zone.
    name: Option<Name>, like "example.com";
    /// A master file (rfc1035#5).
    file: Option<PathBuf>, like "zones/example.com.zone";
    /// A file of zones in the JSON form of erldns; without `name`, all of them are served.
    json: Option<PathBuf>, like "zones/example.com.json";
    /// A directory in which every `NAME.zone` and `NAME.json` is a zone of that name. They are
    /// picked up as they appear, change and vanish.
    directory: Option<PathBuf>, like "zones";
    /// A file of addresses and their names, such as `/etc/hosts`, inside the zone's name. It may
    /// lie anywhere, and is always watched. With `forward`, what it lacks is forwarded.
    hosts: Option<PathBuf>, like "/etc/hosts";
    /// Who is answered from here, after the listener let the query pass; as in `[[listen]]`.
    /// Unset: everyone, but for zones with `forward`: they are for clients with loopback, private
    /// and link-local addresses, so that no stranger can make the server ask others.
    access: Vec<AccessRule>, like "allow any";
}

section! {
    /// The source of a zone whose answers other servers give. Stands behind its `[[zone]]`.
    /// `--forward ADDRESS` (else `ZONDA_FORWARD="ADDRESS,ADDRESS"`) makes such a zone for `.`, all
    /// names that no other zone holds.
    pub struct ForwardKeys: Nested "zone.forward", Reload;

    /// The servers. An address, with a port if that is not 53, is asked over UDP, and over TCP when
    /// an answer was truncated; `tcp://ADDRESS` over TCP from the first; `tls://ADDRESS#NAME` over
    /// TLS, port 853, with a certificate for NAME or, without `#NAME`, for the address itself;
    /// `quic://ADDRESS#NAME` likewise over QUIC, and `https://ADDRESS/PATH#NAME` over HTTPS, port
    /// 443, where PATH is `dns-query` if none is given. With `bootstrap`, a name can stand in place
    /// of any ADDRESS.
    to: Vec<Upstream>, like "192.0.2.1, 192.0.2.2:5353, tls://192.0.2.4#dns.example.net";
    /// The addresses of servers that know those of the servers that are given by name. They are
    /// asked over UDP, and again when the TTL is over.
    bootstrap: Vec<ServerAddress>, like "192.0.2.53, 192.0.2.54:5353";
    /// A PEM file of the certificates that those of the servers must lead to. Unset: the public
    /// roots that Mozilla trusts, which are built in.
    ca_file: Option<PathBuf>, like "private-ca.pem";
    /// The keys that the servers may have, in place of certificates that lead to a root and show
    /// the right name: SHA-256 hashes as in rfc7858#4.2. Give the next key, too, before it is used.
    pins: Vec<PinnedKey>, like "sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
    /// Believe servers that are asked over an encrypted transport when they say that they have
    /// validated an answer, and pass that on (AD, rfc6840#5.8). Otherwise AD is never set.
    trust_ad: bool = "false";
    /// Which of them is asked first: the one that is expected to answer first, all in turn, any,
    /// the first of the list, or one by the question's name, so that the caches of the servers hold
    /// different names. Those that do not answer are passed over; a server that is slow today, or
    /// has lost a query, is helped out by another in any case.
    policy: Policy = "fastest";
    /// Names that are not forwarded, nor any below them, as if the zone did not hold them: another
    /// zone that does answers, else they are REFUSED.
    except: Vec<Name>, like "internal.example.com";
    /// Keep answers from clients that hold a loopback, private or link-local address: by giving one
    /// to a name of the Internet, its owner has browsers talk to machines behind a firewall (DNS
    /// rebinding). Such an answer is passed on empty, with extended error 15.
    rebinding_protection: bool = "false";
    /// Names that may have such addresses nevertheless, and all below them.
    private_names: Vec<Name>, like "plex.direct, home.example.com";
    /// Queries that may wait for one server at a time. The threads that ask have equal shares, and
    /// at least one each.
    outstanding_max: u32 = "1000000", from "1" to "1000000";
    /// After how long without answer a client gets SERVFAIL. An answer is waited for twice as long,
    /// to be kept for the next.
    timeout: Duration = "5s", from "100 ms" to "1m";
    /// After how long without answer it gets one that has expired, if there is one (rfc8767).
    stale_after: Duration = "1800 ms", from "0 ms" to "1m";
    /// Queries sent beside those that questions need, as a share of the questions: copies to a
    /// second server where the first is slower than usual, and early repeats of what is overdue.
    /// 0 %: none, so that only what has no answer after 150 ms is repeated.
    extra_queries: Percent = "5 %", from "0 %" to "100 %";
    /// The earliest repeat of a query that has no answer. The smoothed time of the server and four
    /// times its variance decide, if that is longer.
    repeat_after_min: Duration = "20 ms", from "1 ms" to "1s";
    /// After how many overdue answers, with nothing heard meanwhile, a server is suspect: it is
    /// asked only where no other is up, and probed.
    suspect_after: u32 = "3", from "1" to "100";
    /// After how long without a word a suspect is down, and asked by probes only.
    down_after: Duration = "3s", from "100 ms" to "5m";
    /// Time between probes of a server that does not answer. While it is down, each is twice as
    /// long as the one before.
    probe_interval: Duration = "500 ms", from "100 ms" to "1m";
    /// The longest such time; where all servers of a zone are down, a second, unless
    /// `probe-interval` is longer.
    probe_interval_max: Duration = "16s", from "100 ms" to "5m";
    /// Octets of the largest answer over UDP that servers are asked for (EDNS); what is larger
    /// comes over TCP.
    buffer_size: u16 = "1232", from "512" to "4096";
    /// Most ports of each thread to a server at a time, each chosen at random and given back with
    /// the last answer. From half of them on, up to 64 queries of a second leave from the same
    /// port; when all are open, the oldest is closed for the next.
    ports: u16 = "1024", from "16" to "4096";
    /// Most queries that leave from the same port if they are sent together. Fewer make forging
    /// answers harder and cost CPU time.
    queries_per_port: u16 = "4", from "1" to "64";
    /// Connections to a server at a time.
    connections_max: u16 = "8", from "1" to "64";
    /// Queries that wait on each of them before another one is opened. When there are enough, more
    /// may wait.
    pipeline_max: u16 = "128", from "1" to "16384";
}

section! {
    /// How much is taken on for all zones together.
    pub struct Forwarding: Table "forwarding", Reload;

    /// Queries that wait at once. The threads that forward have equal shares, and at least one
    /// each. When one more comes, the oldest of a client that has more than its share is answered
    /// SERVFAIL. Up to four times as many answers are fetched at a time, since a fetch goes on when
    /// nobody waits any more.
    waiting_max: u32 = "16384", from "1" to "1000000";
    /// Those of them that wait for the same answer, and so for the same thread, which bears no more
    /// than its share.
    waiting_per_answer_max: u32 = "1024", from "1" to "100000";
    /// Answers of servers that one answer is put together of, where aliases lead from a zone that
    /// is forwarded into another. A longer chain is SERVFAIL.
    chain_max: u8 = "8", from "1" to "16";
}

section! {
    /// Names that mean something only on the local network or on the machine, such as `localhost`,
    /// `home.arpa` or `168.192.in-addr.arpa`. Where `.` is forwarded, they are answered here,
    /// unless there is a zone for them or for names above them.
    pub struct SpecialNames: Table "special-names", Reload;

    /// Those that are forwarded like any other, with all below them; `.` stands for all.
    forward: Vec<Name>, like "home.arpa, 168.192.in-addr.arpa";
    /// More names that do not exist, nor any below them. Those that are reserved for tests and
    /// examples are forwarded unless they stand here.
    answer: Vec<Name>, like "test, example";
}

/// Names that have other addresses here; each is a list to read as `Vec<IpAddr>`.
pub const OVERRIDE: Section = Section {
    name: "override",
    kind: Kind::Open,
    takes: Takes::Reload,
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
    takes: Takes::Reload,
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
    pub struct Tcp: Table "tcp", Restart;

    /// Connections open at once, all listeners together. When there are more, those go first on
    /// which half a message waits for its rest, then those that have been idle longest.
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
    /// Tell clients that ask for it how long they may stay idle (rfc7828).
    keepalive: bool = "true";
}

section! {
    /// How answers are made.
    pub struct Answers: Table "answers", Reload;

    /// Follow a CNAME into another zone of this server.
    cross_zone: bool = "false";
    /// Rotate the addresses of a set from one answer to the next.
    rotate: bool = "false";
}

section! {
    /// Answers of other servers that are kept.
    pub struct CacheKeys: Table "cache", Restart;

    /// Memory for them; none of it is taken before it is used.
    bytes: Size = "256 MiB", from "1 MiB" to "3 GiB";
    /// Answers are kept at least so long, whatever their TTL, unless that is 0.
    ttl_min: Duration = "0s", from "0s" to "1h";
    /// Answers are kept at most so long.
    ttl_max: Duration = "1d", from "1s" to "30d";
    /// The least for answers that say that something does not exist (rfc2308#5), unless the TTL
    /// is 0.
    negative_ttl_min: Duration = "0s", from "0s" to "1h";
    /// The most for them.
    negative_ttl_max: Duration = "3h", from "1s" to "1d";
    /// How long it is kept that no server would answer a question: the first time. Each time in a
    /// row, it is twice as long (rfc9520#3.2).
    failure_ttl_min: Duration = "1s", from "1s" to "5m";
    /// And at most. Where no server could be reached at all, 5 s, unless the least is longer.
    failure_ttl_max: Duration = "5m", from "1s" to "5m";
    /// How long after it has expired an answer may still be given, when no server answers
    /// (rfc8767). 0 s: never.
    stale: Duration = "1d", from "0s" to "30d";
    /// The TTL that such an answer is given with (rfc8767#4).
    stale_ttl: Duration = "30s", from "1s" to "1h";
    /// In which last part of its TTL an answer that was given repeatedly is fetched anew; nobody
    /// waits for it. 0 %: not before it has expired.
    prefetch: Percent = "10 %", from "0 %" to "50 %";
    /// The shortest TTL of which that is done.
    prefetch_ttl_min: Duration = "5s", from "2s" to "1d";
    /// Where a name is known not to exist, neither does any below it (rfc8020): nobody is asked for
    /// those, if the answer that denied it cannot be forged blindly: it came over TCP, TLS, HTTPS
    /// or QUIC, or with our cookie. Turn it off for servers that deny names which only others lie
    /// below.
    nxdomain_cut: bool = "true";
    /// A file that holds what is kept while the server does not run. Read at the start; written at
    /// the end, at a hand-over, after a flush, and every so often. Its directory must be writable
    /// by the server. Unset: a server that starts has nothing.
    persist: Option<PathBuf>, like "/var/lib/zonda/cache";
    /// How often that file is written, if there is anything new.
    persist_interval: Duration = "5m", from "1s" to "1d";
}

section! {
    /// Extension mechanisms (rfc6891).
    pub struct Edns: Table "edns", Reload;

    /// Most octets of a UDP reply, and the size advertised to clients.
    buffer_size: u16 = "1232", from "512" to "4096";
    /// Answer DNS cookies with cookies (rfc7873, rfc9018).
    cookies: bool = "true";
    /// Secrets shared by the servers of an anycast set. The first makes cookies, the others are
    /// still accepted: to roll over, add the new one last everywhere, then move it first, then drop
    /// the old. Unset: made at random at each start.
    cookie_secrets: Vec<CookieSecret>;
    /// Name server identifier, sent to clients that ask for it (rfc5001). Unset: none is sent.
    nsid: Option<Nsid>, like "ns1.example.com";
}

section! {
    /// What the server tells about itself. Unset, such questions are refused.
    pub struct Identity: Table "identity", Reload;

    /// The answer to `version.bind` and `version.server`, class CH, type TXT.
    version: Option<String>, like "zonda";
    /// The answer to `hostname.bind` and `id.server`, class CH, type TXT (rfc4892).
    server_id: Option<String>, like "ns1.example.com";
}

section! {
    /// Response rate limiting: keeps the server from being used to flood others.
    pub struct RateLimit: Table "rate-limit", Reload;

    /// Responses of one kind to one client network in a second. Unset: no limit.
    responses_per_second: Option<u32>, like "20", from "1" to "1000000";
    /// Of the responses above the limit, one in so many is sent truncated, so that a real client
    /// can ask again over TCP; 0: none, 1: all.
    slip: u8 = "2", from "0" to "10";
    /// Seconds of responses that a network which was silent may get at once.
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
    /// The administrative interface: metrics, health and control, over HTTP.
    pub struct AdminKeys: Table "admin", Restart;

    /// Address and port of the interface. Anything but a loopback address needs a token.
    address: Toggle<SocketAddr> = "127.0.0.1:9153";
    /// The bearer token that every request over TCP must carry. Unset: only `/metrics`, `/health`,
    /// `/ready` and `/v1/version` are answered there, and all requests on the Unix socket.
    token: Option<Token>;
    /// A file that holds the token, read at start; in place of `token`.
    token_file: Option<PathBuf>, like "/etc/zonda/token";
    /// The Unix socket on which `zonda reload`, `status` and their like reach the server.
    /// Unset: `zonda-ADDRESS.sock`, after the first listener, in `$RUNTIME_DIRECTORY` (systemd sets
    /// it), else in `/run/zonda` for root, else in `$XDG_RUNTIME_DIR/zonda`, else in the working
    /// directory.
    socket: Option<Toggle<PathBuf>>, like "/run/zonda/zonda.sock";
    /// Address and port at which BIND's JSON statistics are read, as `statistics-channels` has
    /// them; what is there tells docs/coming-from-bind.md.
    bind_statistics: Toggle<SocketAddr> = "off";
    /// Networks that may read them, besides loopback addresses.
    bind_statistics_clients: Vec<Network>, like "192.0.2.0/24, 2001:db8::/32";
}

section! {
    /// Metrics for Prometheus, at `/metrics` of the administrative interface.
    pub struct Metrics: Table "metrics", Reload;

    /// Zones that are counted one by one. Unset: the `busiest`. All others count as `other`.
    zones: Vec<Name>, like "example.com, example.org";
    /// How many of the busiest zones are counted one by one, when none are listed.
    busiest: u32 = "1000", from "0" to "100000";
}

section! {
    /// The server's log, on standard error.
    pub struct Log: Table "log", Restart;

    /// How a line is written.
    format: LogFormat = "text";
    /// The least important events that are logged.
    level: LogLevel = "info";
}

section! {
    /// One line for each query. Lines that cannot be written in time are dropped and counted, so
    /// that the log never slows an answer.
    pub struct QueryLog: Table "query-log", Restart;

    /// Where the lines go.
    output: Toggle<Output> = "off";
    /// How a line is written.
    format: LogFormat = "text";
    /// Log one query in so many.
    sample: u32 = "1", from "1" to "1000000";
    /// Lines that may wait to be written.
    capacity: u32 = "65536", from "64" to "16777216";
}
