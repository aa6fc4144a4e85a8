//! What is counted, as the JSON of BIND's statistics channel.
//!
//! Every figure has the name, place and type that named gives it; one that Zonda does not count is
//! absent, and so are counters that are 0 where named leaves those out. Which they are is told in
//! `docs/coming-from-bind.md`, and held against a real named in `bin/zonda/tests/bind`.

use super::metrics::usage;
use super::reply::{Reply, json_reply, text};
use super::sums::sum;
use super::upstreams::{KnownUpstream, survey};
use crate::control::Control;
use crate::query_log::Rfc3339;
use hyper::body::Incoming;
use hyper::{Method, Request, StatusCode};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use zonda_cache::{Cache, Contents, Kind};
use zonda_deferral::SharedCounter;
use zonda_engine::counters::{Counter, Counters, OPCODES, RCODES, TYPES};
use zonda_engine::{Reason, Transport};
use zonda_forward::ForwarderCounters;
use zonda_wire::{Rcode, Type};

/// The form of named 9.18.
const FORM: &str = "1.7";
/// Names of operations by their code.
const OPCODE_NAMES: [&str; OPCODES] = [
    "QUERY",
    "IQUERY",
    "STATUS",
    "RESERVED3",
    "NOTIFY",
    "UPDATE",
    "RESERVED6",
    "RESERVED7",
    "RESERVED8",
    "RESERVED9",
    "RESERVED10",
    "RESERVED11",
    "RESERVED12",
    "RESERVED13",
    "RESERVED14",
    "RESERVED15",
];
/// Classes of times, and the nanoseconds below which Zonda's buckets put an answer into each: those
/// nearest to 10, 100, 500, 800 and 1600 ms.
const TIMES: [(&str, u64); 6] = [
    ("QryRTT10", 10_485_760),
    ("QryRTT100", 100_663_296),
    ("QryRTT500", 536_870_912),
    ("QryRTT800", 805_306_368),
    ("QryRTT1600", 1_610_612_736),
    ("QryRTT1600+", u64::MAX),
];

/// Response codes of replies that are sent before the question is read.
const EARLY: [Rcode; 3] = [Rcode::FORMERR, Rcode::NOTIMP, Rcode::BADVERS];

/// Answers a request.
pub async fn answer(request: Request<Incoming>, control: Arc<Control>) -> Reply {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return text(StatusCode::METHOD_NOT_ALLOWED, "statistics can only be read\n".into());
    }
    let work = move || page(request.uri().path(), &control);
    match tokio::task::spawn_blocking(work).await {
        Ok(Some(page)) => json_reply(&page),
        Ok(None) => text(StatusCode::NOT_FOUND, "No such URL.".into()),
        Err(_) => text(StatusCode::INTERNAL_SERVER_ERROR, "the request failed\n".into()),
    }
}

/// The page at a path.
fn page(path: &str, control: &Control) -> Option<Value> {
    let mut page = head(control);
    let parts = match path.strip_prefix("/json/v1").or_else(|| path.strip_prefix("/json"))? {
        "" | "/" => vec![server(control), zones(control), network(), memory(), tasks()],
        "/server" => vec![server(control)],
        "/zones" => vec![zones(control)],
        "/net" => vec![network()],
        "/mem" => vec![memory()],
        "/tasks" => vec![tasks()],
        "/status" => Vec::new(),
        _ => return None,
    };
    parts.into_iter().for_each(|part| merge(&mut page, part));
    Some(page)
}

/// Puts the members of one object into another, and objects of the same name together.
fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

/// Returns the beginning of every page.
fn head(control: &Control) -> Value {
    let configured = control.state().history.last.unwrap_or(control.started_at);
    json!({
        "json-stats-version": FORM,
        "boot-time": moment(control.started_at),
        "config-time": moment(configured),
        "current-time": moment(SystemTime::now()),
        "version": crate::VERSION,
    })
}

/// A moment with its milliseconds.
fn moment(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = Rfc3339(u32::try_from(since.as_secs()).unwrap_or(u32::MAX)).to_string();
    format!("{}.{:03}Z", seconds.trim_end_matches('Z'), since.subsec_millis())
}

/// Counters by name, without those that are 0; those of the same name are added up.
fn counted<N: Into<String>>(counters: impl IntoIterator<Item = (N, u64)>) -> Value {
    let mut sums = BTreeMap::<String, u64>::new();
    for (name, count) in counters.into_iter().filter(|(_, count)| *count > 0) {
        *sums.entry(name.into()).or_default() += count;
    }
    Value::Object(sums.into_iter().map(|(name, count)| (name, count.into())).collect())
}

/// Counters by type, of which one has the place.
fn by_type(count: impl Fn(usize) -> u64) -> Value {
    counted((0..=TYPES.len()).map(|place| (type_name(TYPES.get(place).copied()), count(place))))
}

/// Whether the type with a place is one of transfers.
fn is_transfer(place: usize) -> bool {
    TYPES.get(place).is_some_and(|it| [Type::AXFR, Type::IXFR].contains(it))
}

/// The name of a type, of which named knows 255; `None` is any other.
fn type_name(rtype: Option<Type>) -> String {
    let known = rtype.filter(|rtype| rtype.0 <= Type::ANY.0);
    known.map_or("Others".to_owned(), |rtype| rtype.to_string())
}

/// Returns the figures of the server about clients and upstreams.
fn server(control: &Control) -> Value {
    let engines = control.counters.all();
    let figures = Figures { engines: &engines, forwarders: &control.forwarders };
    let cache = Arc::clone(control.state().zone_set().forwards().cache());
    json!({
        "opcodes": figures.opcodes(),
        "rcodes": figures.rcodes(),
        "qtypes": figures.types(),
        "nsstats": figures.server(),
        "views": { "_default": { "resolver": {
            "stats": resolver(&survey(control), &figures),
            "qtypes": figures.sent_types(),
            "cache": contents(&cache.contents()),
            "cachestats": cache_statistics(&cache, &figures),
        }}},
    })
}

/// The zones that are served from data.
fn zones(control: &Control) -> Value {
    let state = control.state();
    let served = state.zone_set().zones().filter_map(|zone| Some((zone, zone.data()?)));
    let mut zones: Vec<_> = served.collect();
    zones.sort_unstable_by(|(a, _), (b, _)| a.entry.apex.as_wire().cmp(b.entry.apex.as_wire()));
    let zones = zones.into_iter().map(|(zone, data)| {
        let name = zone.entry.apex.to_string();
        let loaded = zone.loaded.map_or(String::new(), |loaded| moment(loaded.time()));
        let seconds = loaded.split('.').next().unwrap_or_default();
        json!({
            "name": if name == "." { &*name } else { name.trim_end_matches('.') },
            "class": "IN",
            "serial": data.serial(),
            "type": "primary",
            "loaded": format!("{seconds}Z"),
        })
    });
    json!({ "views": { "_default": { "zones": zones.collect::<Vec<_>>() } } })
}

/// Returns an empty list of sockets, which are not counted: readers of BIND's statistics would take
/// a page without it for a failure.
fn network() -> Value {
    json!({ "sockstats": {} })
}

/// The process's resident memory.
fn memory() -> Value {
    let bytes = usage().map_or(0, |(_, resident_bytes)| resident_bytes);
    json!({ "memory": { "TotalUse": bytes } })
}

/// How the server runs.
fn tasks() -> Value {
    json!({ "taskmgr": { "thread-model": "threaded" } })
}

/// The counters of all threads.
struct Figures<'c> {
    engines: &'c [Arc<Counters>],
    forwarders: &'c [Arc<ForwarderCounters>],
}

impl Figures<'_> {
    /// Messages with this end.
    fn reason(&self, reason: Reason) -> u64 {
        sum(self.engines, |counters| &counters.reasons[reason as usize])
    }

    /// Messages with one of these ends.
    fn reasons(&self, reasons: &[Reason]) -> u64 {
        reasons.iter().map(|reason| self.reason(*reason)).sum()
    }

    /// The sum of a counter over all engines.
    fn sum(&self, one: impl Fn(&Counters) -> &Counter) -> u64 {
        self.engines.iter().map(|counters| one(counters).get()).sum()
    }

    /// The sum of a counter over all forwarder threads.
    fn forwarders(&self, one: fn(&ForwarderCounters) -> &SharedCounter) -> u64 {
        self.forwarders.iter().map(|counters| one(counters).get()).sum()
    }

    /// Replies to questions whose type has a place.
    fn questions(&self, place: usize) -> u64 {
        self.replies(|_, qtype, rcode| qtype == place && !EARLY.contains(&RCODES[rcode]))
    }

    /// Replies whose place in the counters is among these.
    fn replies(&self, is_meant: impl Fn(usize, usize, usize) -> bool) -> u64 {
        let mut count = 0;
        for transport in 0..Transport::ALL.len() {
            for qtype in 0..=TYPES.len() {
                for rcode in 0..RCODES.len() {
                    if is_meant(transport, qtype, rcode) {
                        count += self.sum(|counters| &counters.replies[transport][qtype][rcode]);
                    }
                }
            }
        }
        count
    }

    /// Replies with this response code.
    fn rcode(&self, wanted: Rcode) -> u64 {
        self.questions_with(wanted, |_| true)
    }

    /// Replies with this response code to questions whose place among the types is one of these.
    fn questions_with(&self, wanted: Rcode, is_meant: impl Fn(usize) -> bool) -> u64 {
        self.replies(|_, qtype, rcode| RCODES[rcode] == wanted && is_meant(qtype))
    }

    /// Questions that were refused, either for transfers or for all else.
    fn refused(&self, transfers: bool) -> u64 {
        self.questions_with(Rcode::REFUSED, |qtype| is_transfer(qtype) == transfers)
    }

    /// Questions over a transport that an answer was looked for.
    fn looked_up(&self, transport: Transport) -> u64 {
        self.replies(|over, qtype, rcode| {
            let is_early = EARLY.contains(&RCODES[rcode]) || RCODES[rcode] == Rcode::REFUSED;
            over == transport as usize && !is_early && !is_transfer(qtype)
        })
    }

    /// Messages that were looked at.
    fn requests(&self) -> u64 {
        let silent = [Reason::NotAQuery, Reason::AccessDropped];
        self.reasons(Reason::ALL) - self.reasons(&silent)
    }

    /// Operations.
    fn opcodes(&self) -> Value {
        let code = |code: usize| self.sum(|counters| &counters.opcodes[code]);
        let others: u64 = (1..OPCODES).map(code).sum();
        let queries = self.requests().saturating_sub(others);
        let counts = (0..OPCODES).map(|number| if number == 0 { queries } else { code(number) });
        let all = OPCODE_NAMES.iter().zip(counts);
        Value::Object(all.map(|(name, count)| ((*name).to_owned(), count.into())).collect())
    }

    /// Replies by response code.
    fn rcodes(&self) -> Value {
        let all = RCODES.iter().map(|rcode| (rcode.to_string(), self.rcode(*rcode).into()));
        Value::Object(all.collect::<Map<_, _>>())
    }

    /// Questions by type.
    fn types(&self) -> Value {
        by_type(|place| self.questions(place))
    }

    /// Queries to other servers by type.
    fn sent_types(&self) -> Value {
        by_type(|place| self.forwarders.iter().map(|it| it.sent_types[place].get()).sum())
    }

    /// What the server has done for clients.
    fn server(&self) -> Value {
        use Reason::{
            Answered, BadVersion, Cached, CookieOnly, Forwarded, Identity, NameError, NameTooLong,
            NoData, RateDropped, RateSlipped, Referral, Stale,
        };
        let from_v6 = self.sum(|counters| &counters.from_v6);
        let nodata = self.reason(NoData) + self.sum(|counters| &counters.forwarded_nodata);
        let others = self.reasons(&[Referral, CookieOnly, RateSlipped]);
        let over_tcp = self.replies(|transport, _, _| transport == Transport::Tcp as usize);
        let limited = |counters: &ForwarderCounters| {
            counters.dropped_own.get() + counters.dropped_other.get()
        };
        counted([
            ("Requestv4", self.requests().saturating_sub(from_v6)),
            ("Requestv6", from_v6),
            ("ReqBadEDNSVer", self.reason(BadVersion)),
            ("ReqTCP", over_tcp),
            ("Response", self.replies(|_, _, _| true)),
            ("TruncatedResp", self.sum(|counters| &counters.truncated)),
            ("QrySuccess", self.rcode(Rcode::NOERROR).saturating_sub(nodata + others)),
            ("QryAuthAns", self.reasons(&[Answered, NoData, NameError, NameTooLong, Identity])),
            ("QryNoauthAns", self.reasons(&[Cached, Forwarded, Stale, Referral])),
            ("QryReferral", self.reason(Referral)),
            ("QryNxrrset", nodata),
            ("QrySERVFAIL", self.rcode(Rcode::SERVFAIL)),
            ("QryNXDOMAIN", self.rcode(Rcode::NXDOMAIN)),
            ("QryFailure", self.refused(false)),
            ("XfrRej", self.refused(true)),
            (
                "QryRecursion",
                self.forwarders(|it| &it.fetched) + self.forwarders(|it| &it.coalesced),
            ),
            ("RecursClients", self.forwarders(|it| &it.waiting)),
            ("QryUsedStale", self.reason(Stale)),
            ("RecLimitDropped", self.forwarders.iter().map(|it| limited(it)).sum()),
            ("Prefetch", self.forwarders(|it| &it.prefetched)),
            ("RateDropped", self.reason(RateDropped)),
            ("RateSlipped", self.reason(RateSlipped)),
            ("QryUDP", self.looked_up(Transport::Udp) + self.reason(RateDropped)),
            ("QryTCP", self.looked_up(Transport::Tcp)),
        ])
    }
}

/// Whether a server is asked at an IPv6 address; of several, the first is told for all.
fn is_v6(upstream: &KnownUpstream) -> bool {
    upstream.addresses.first().is_some_and(SocketAddr::is_ipv6)
}

/// Returns the figures of queries to upstreams.
fn resolver(upstreams: &[KnownUpstream], figures: &Figures<'_>) -> Value {
    let all = |one: &dyn Fn(&KnownUpstream) -> u64| upstreams.iter().map(one).sum::<u64>();
    let answers = |upstream: &KnownUpstream| upstream.rcodes.values().sum::<u64>();
    let heard = |upstream: &KnownUpstream| answers(upstream) + upstream.counters.redirected;
    let rcode = |wanted: Rcode| all(&|it| it.rcodes.get(&wanted.0).copied().unwrap_or_default());
    let named = [Rcode::NXDOMAIN, Rcode::SERVFAIL, Rcode::FORMERR, Rcode::REFUSED];
    let other = all(&answers)
        - rcode(Rcode::NOERROR)
        - named.iter().map(|wanted| rcode(*wanted)).sum::<u64>();
    let counters = [
        ("Queryv4", all(&|it| if is_v6(it) { 0 } else { it.counters.sent })),
        ("Queryv6", all(&|it| if is_v6(it) { it.counters.sent } else { 0 })),
        ("Responsev4", all(&|it| if is_v6(it) { 0 } else { heard(it) })),
        ("Responsev6", all(&|it| if is_v6(it) { heard(it) } else { 0 })),
        ("NXDOMAIN", rcode(Rcode::NXDOMAIN)),
        ("SERVFAIL", rcode(Rcode::SERVFAIL)),
        ("FORMERR", rcode(Rcode::FORMERR)),
        ("REFUSED", rcode(Rcode::REFUSED)),
        ("OtherError", other),
        ("Mismatch", figures.forwarders(|it| &it.ignored)),
        ("Truncated", all(&|it| it.counters.truncated)),
        ("EDNS0Fail", all(&|it| it.counters.edns_failed)),
        ("NumFetch", figures.forwarders(|it| &it.fetching)),
        ("Retry", all(&|it| it.counters.repeats + it.counters.redirected)),
        ("QueryTimeout", all(&|it| it.counters.lost)),
    ];
    let times = TIMES.iter().enumerate().map(|(place, (name, below))| {
        let above = place.checked_sub(1).map_or(0, |before| TIMES[before].1);
        let times = |it: &KnownUpstream| -> u64 {
            it.times.range(above + 1..=*below).map(|(_, n)| n).sum()
        };
        (*name, all(&times))
    });
    counted(counters.into_iter().chain(times))
}

/// The answers in the cache by the type that was asked for, where named has sets of records. Names
/// that do not exist have no type there either, and failures are kept elsewhere.
fn contents(contents: &Contents) -> Value {
    let of_use = contents.iter().filter(|content| content.kind != Kind::Failure);
    counted(of_use.map(|content| {
        let name = match content.kind {
            Kind::NoData => format!("!{}", type_name(content.qtype)),
            Kind::NxDomain => "NXDOMAIN".to_owned(),
            Kind::Positive | Kind::Failure => type_name(content.qtype),
        };
        (name, content.answers)
    }))
}

/// How often the cache had an answer, and what it takes. Each query looks for its answer once, so
/// that what named counts in two ways is the same here.
fn cache_statistics(cache: &Cache, figures: &Figures<'_>) -> Value {
    let stats = cache.stats();
    let hits = figures.reasons(&[Reason::Cached, Reason::Stale, Reason::CachedFailure]);
    let misses = figures.forwarders(|it| &it.fetched) + figures.forwarders(|it| &it.coalesced);
    json!({
        "CacheHits": hits,
        "CacheMisses": misses,
        "QueryHits": hits,
        "QueryMisses": misses,
        "DeleteLRU": stats.evictions,
        "DeleteTTL": stats.expired,
        "CacheBuckets": cache.buckets(),
        "CacheNodes": stats.entries,
        "TreeMemInUse": stats.bytes,
    })
}
