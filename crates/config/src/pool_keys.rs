//! The sections and keys of pools and of the names that are steered to them.

use crate::pool_value::{
    AllDownPolicy, AnswerCount, CheckRcode, ChoiceStep, ResumePolicy, StartState, StatusRange,
};
use crate::section::{EffectTime, Key, Kind, Section, section};
use crate::value::{ServerAddress, Value};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use zonda_wire::Name;

/// Names of a zone that pools answer for; each is the name of a pool.
pub const STEER: Section = Section {
    name: "zone.steer",
    kind: Kind::NestedOpen,
    takes: EffectTime::Reload,
    doc: &[
        " Names of a zone with data whose records a pool chooses. All else at the names, and in",
        " the zone, is the zone's. Follows its `[[zone]]`, or stands in it as a table on one line:",
        " `steer = { \"www A,AAAA\" = \"web\" }`.",
    ],
    keys: &[Key {
        name: "NAME TYPES",
        doc: &[
            " The pool that answers for a name, relative to the zone, and types that are separated",
            " by commas, in quotes: `\"www A,AAAA\"`; `@` is the name of the zone, and `*` stands",
            " for names that are not in the zone.",
        ],
        default: None,
        example: Some("web"),
        range: None,
        form: <String as Value>::form,
        shape: <String as Value>::SHAPE,
        many: false,
        secret: false,
    }],
};

section! {
    /// A pool: members, of which those that are up answer for the names that are steered to it. It
    /// can be written in one line for each member:
    /// `members = [{ address = "192.0.2.1" }, { address = "192.0.2.2", weight = 3 }]`.
    pub struct PoolKeys: Array "pool", Reload;

    /// The name of the pool.
    name: String, like "web";
    /// How members are chosen: filters, of which each leaves fewer of them, and last an order in
    /// which those that are left answer. The filter `failover` leaves the members with the lowest
    /// `priority` among those that are up; `latency`, those whose checks are answered within 1 ms
    /// and a quarter of the fastest; `geo`, those at the sites that serve the client's place;
    /// `nearest`, those at the site that is nearest to the client; `learned-latency`, those at the
    /// site that the client reaches soonest; `load` has members with a load above `load-low` take
    /// fewer queries, and those with one of `load-high` none. The orders: `round-robin`, each is
    /// the first equally often; `weighted`, one is drawn by `weight`; `hash`, the network of the
    /// client decides, /24 or /56, so that a client keeps its member; `hash-name`, the name asked
    /// for decides; `in-order`, the order in the file. Without an order: `round-robin`.
    choose: Vec<ChoiceStep> = "round-robin";
    /// How many members a query is answered with, at most 32, or `all` that the filters leave. Of
    /// members that are pools, one is chosen.
    answers: AnswerCount = "1";
    /// What happens when no member is up that has a record of the type: `all`, they count as up;
    /// `last-healthy`, those count as up that were up last; `pool:NAME`, another pool answers;
    /// `servfail`, `nodata` or `refused`, that is the reply.
    when_all_down: AllDownPolicy = "all";
    /// Members that must be up for the pool itself to count as up, where it is a member of another
    /// pool.
    up_min: u32 = "1", from "1" to "1000000";
    /// Time in which the weight of a member that has come back rises to the whole, in 16 steps; 0:
    /// it has all of it at once.
    slow_start: Duration = "0 s", from "0 s" to "1d";
    /// Time for which a member that has come back answers only when no other member is up.
    hold_down: Duration = "0 s", from "0 s" to "7d";
    /// Whether a member that was down answers again by itself once it is up: `automatic`, or
    /// `manual`, then it answers only when no other member is up, until `zonda pool resume`.
    resume: ResumePolicy = "automatic";
    /// The load of a member, in percent, up to which `load` leaves it all of its queries.
    load_low: u32 = "70", from "0" to "1000000";
    /// The load of a member, in percent, from which on `load` leaves it none; between the two, the
    /// part falls evenly.
    load_high: u32 = "95", from "1" to "1000000";
    /// DNS servers that are asked for the addresses of members that are given by `name`, and asked
    /// again when their TTL is over.
    bootstrap: Vec<ServerAddress>, like "192.0.2.53, 192.0.2.54:5353";
    /// The least TTL of records. A TTL is the time until the earliest change of state that probes
    /// could bring, between this and `ttl-max`: fewer seconds while a member is failing.
    ttl_min: Duration = "5s", from "1s" to "1d";
    /// The greatest TTL of records: that of a pool without `check`.
    ttl_max: Duration = "1m", from "1s" to "7d";
}

section! {
    /// A member of a pool: an address, the data of a record, or another pool. Follows its
    /// `[[pool]]`, or stands in the list `members` there.
    pub struct MemberKeys: NestedArray "pool.members", Reload;

    /// The address, for names that are steered for A or AAAA; and what is checked.
    address: Option<IpAddr>, like "192.0.2.10";
    /// The data of the record, as in a zone file, for names that are steered for other types. Names
    /// in it are complete.
    data: Option<String>, like "10 mail.example.com.";
    /// The pool that is the member: what it answers with is the answer.
    pool: Option<String>, like "web-fra";
    /// The name whose addresses are the member, which answers with all of those that are up, as an
    /// ALIAS record would with all. They are looked up at the servers of `bootstrap`.
    name: Option<Name>, like "lb.example.net";
    /// The member's share of the queries, relative to the other members; 0: only when no other is
    /// up.
    weight: u32 = "1", from "0" to "1000000";
    /// The site that the member is at, for `geo`, `nearest` and `learned-latency`: a name in
    /// `sites` of `[geo]`, or the IATA code of a city.
    site: Option<String>, like "fra";
    /// The rank for `failover`: members with the lowest number among those that are up answer.
    priority: u32 = "1", from "0" to "65535";
}

section! {
    /// How the members of a pool are checked; without it, all of them are up. Give exactly one
    /// kind: `tcp`, `tls`, `http`, `https`, `grpc`, `icmp`, `dns`, `udp`, `program`, `file`,
    /// `pushed` or `calculated`.
    /// Follows its `[[pool]]`, or stands in it as a table on one line:
    /// `check = { https = "/health", host = "www.example.com" }`. Members that are pools, or data
    /// without an `address`, are not checked. A target that several pools check in one way is
    /// probed once.
    pub struct CheckKeys: Nested "pool.check", Reload;

    /// The port that must accept a TCP connection; with `send` or `expect`, also what comes back.
    tcp: Option<u16>, like "443";
    /// The port with which a TLS handshake must succeed: for the certificate alone.
    tls: Option<u16>, like "443";
    /// The path that is requested by HTTP; the response must have a status of 2xx or 3xx.
    http: Option<String>, like "/health";
    /// The path that is requested by HTTPS. The certificate must be valid for `host`, or for the
    /// address where that is unset.
    https: Option<String>, like "/health";
    /// The port whose gRPC health service must say that it serves.
    grpc: Option<u16>, like "50051";
    /// Whether an ICMP echo request must be answered. The process needs no rights where the
    /// system's `net.ipv4.ping_group_range` has its group.
    icmp: bool = "false";
    /// The question, a name and a type, that a DNS server must answer with NOERROR.
    dns: Option<String>, like "www.example.com A";
    /// The port that must answer a datagram with the octets of `send`.
    udp: Option<u16>, like "5060";
    /// The program that must end with the status 0, and its arguments, in which `{address}` and
    /// `{port}` are replaced. No shell is involved.
    program: Vec<String>, like "/usr/local/bin/check-web, {address}";
    /// The file whose first line must be `up`; in its path, `{address}` is replaced.
    file: Option<PathBuf>, like "/run/web/{address}";
    /// Whether `POST /v1/checks` tells the states of members; one that it has not told of for the
    /// time that it said is down.
    pushed: bool = "false";
    /// A formula of pools, as `POOL`, and of members, as `POOL/MEMBER`, that must be up: with
    /// `and`, `or`, `not`, `N of (…, …)` and parentheses. In a name, `{member}` stands for the
    /// member's own; names with spaces, commas or parentheses stand in single quotes.
    calculated: Option<String>, like "2 of (from-fra/{member}, from-nyc/{member}, lb)";
    /// The port of `http`, `https`, `dns` and `program`. Unset: 80, 443, 53 and 0.
    port: Option<u16>, like "8080";
    /// The host of a request, and the name that the certificate must have. Unset: the address.
    host: Option<String>, like "www.example.com";
    /// The method of an HTTP request.
    method: String = "GET";
    /// Headers of an HTTP request.
    headers: Vec<String>, like "X-Check: zonda";
    /// The statuses of HTTP that are a success.
    status: Vec<StatusRange> = "200-399";
    /// A text that the first 5,120 octets of the body of an HTTP response must have.
    contains: Option<String>, like "ready";
    /// Whether HTTP/2 is spoken: over TLS agreed on by ALPN, without TLS taken for granted.
    http2: bool = "false";
    /// The gRPC service that is asked for. Unset: the server as a whole.
    service: Option<String>, like "example.Web";
    /// What is sent over a connection of `tcp`, or in the datagram of `udp`.
    send: Option<String>, like "PING";
    /// A text that the first 5,120 octets of the reply must have.
    expect: Option<String>, like "PONG";
    /// Whether the connection of `tcp` or `grpc` uses TLS.
    over_tls: bool = "false";
    /// Response codes of `dns` that are a success.
    rcodes: Vec<CheckRcode> = "NOERROR";
    /// An address that the answer to `dns` must have.
    answer: Option<IpAddr>, like "192.0.2.10";
    /// Whether the query of `dns` desires recursion: for resolvers.
    recursion: bool = "false";
    /// A PEM file of the certificates to which those of the members must chain. Unset: the public
    /// roots that Mozilla trusts, which are built in.
    ca_file: Option<PathBuf>, like "private-ca.pem";
    /// Whether the certificates are verified. Without that, any machine that is reached at the
    /// address passes.
    verify: bool = "true";
    /// Fewest days until a member's certificate ends; with fewer it is down. 0: it must not have
    /// ended.
    certificate_days: u16 = "0", from "0" to "3650";
    /// A PEM file with the certificate that probes show to members that ask for one.
    client_certificate: Option<PathBuf>, like "probe.pem";
    /// The PEM file of its private key.
    client_key: Option<PathBuf>, like "probe.key";
    /// Addresses that probes come from: one of IPv4, one of IPv6. Unset: as the system chooses.
    source: Vec<IpAddr>, like "192.0.2.1";
    /// An address that is probed in place of each member's.
    probe_address: Option<IpAddr>, like "192.0.2.99";
    /// Time between two probes of a member.
    interval: Duration = "5s", from "100 ms" to "1d";
    /// Time after which a probe has failed.
    timeout: Duration = "2s", from "10 ms" to "1m";
    /// Successes in a row that bring a member up.
    rise: u32 = "2", from "1" to "1000";
    /// Failures in a row that bring a member down.
    fall: u32 = "3", from "1" to "1000";
    /// What a member counts as before its probes have decided.
    start: StartState = "up";
}
