//! The requests that the interface answers, in the order of the table in docs/admin.md.

use super::call::Scope;
use super::reply::{about_name, json_reply, parameter};
use super::route::Route;
use super::{api, cache, checks, edits, explain, geo, loads, metrics, pools, rrsets, transfers};
use super::{powerdns, upstreams, zone_commands};
use hyper::Method;
use serde_json::json;

/// All requests. A path stands once for each method.
const ROUTES: &[Route] = &[
    Route {
        method: Method::GET,
        path: "health",
        parameters: "",
        scope: Scope::Open,
        has_body: false,
        doc: "200 while the process answers",
        command: "",
        answer: |_| api::health(),
    },
    Route {
        method: Method::GET,
        path: "ready",
        parameters: "",
        scope: Scope::Open,
        has_body: false,
        doc: "200 when every zone is served and no [thread](operating.md#threads) is down, else \
              503 and a line for each problem; over the socket or with a token also its reason",
        command: "`zonda ready`",
        answer: |call| api::ready(call.control, call.tells_all, "ready\n"),
    },
    Route {
        method: Method::GET,
        path: "metrics",
        parameters: "",
        scope: Scope::Open,
        has_body: false,
        doc: "[metrics](metrics.md) for Prometheus",
        command: "",
        answer: |call| api::metrics_page(call.control),
    },
    Route {
        method: Method::GET,
        path: "v1",
        parameters: "",
        scope: Scope::Read,
        has_body: false,
        doc: "this list, with what a client must be allowed for each request",
        command: "",
        answer: |_| {
            json_reply(
                &json!({ "requests": ROUTES.iter().map(Route::to_json).collect::<Vec<_>>() }),
            )
        },
    },
    Route {
        method: Method::GET,
        path: "v1/version",
        parameters: "",
        scope: Scope::Open,
        has_body: false,
        doc: "the version",
        command: "",
        answer: |_| api::version(),
    },
    Route {
        method: Method::GET,
        path: "v1/status",
        parameters: "",
        scope: Scope::Read,
        has_body: false,
        doc: "the version, uptime, listeners, zones, reloads",
        command: "`zonda status`",
        answer: |call| json_reply(&api::status(call.control)),
    },
    Route {
        method: Method::GET,
        path: "v1/stats",
        parameters: "",
        scope: Scope::Read,
        has_body: false,
        doc: "sums of the counters",
        command: "`zonda stats`",
        answer: |call| json_reply(&metrics::summary(call.control)),
    },
    Route {
        method: Method::GET,
        path: "v1/upstreams",
        parameters: "",
        scope: Scope::Read,
        has_body: false,
        doc: "the [upstreams](forwarding.md) of forwarded zones, with their states",
        command: "`zonda upstream list`",
        answer: |call| json_reply(&upstreams::list(call.control)),
    },
    Route {
        method: Method::GET,
        path: "v1/pools",
        parameters: "",
        scope: Scope::Read,
        has_body: false,
        doc: "the [pools](steering.md#states), with the states of their members",
        command: "`zonda pool list`",
        answer: |call| json_reply(&pools::list(call.control)),
    },
    Route {
        method: Method::GET,
        path: "v1/pools/NAME",
        parameters: "",
        scope: Scope::Read,
        has_body: false,
        doc: "one pool, with the last 100 changes of each member",
        command: "`zonda pool show NAME`",
        answer: pools::one,
    },
    Route {
        method: Method::POST,
        path: "v1/pool-overrides",
        parameters: "",
        scope: Scope::Write,
        has_body: true,
        doc: "has members count as an operator says, [whatever their probes \
              find](steering.md#overrides)",
        command: "`zonda pool drain`, `up`, `down`, `hold`, `resume`",
        answer: pools::force,
    },
    Route {
        method: Method::GET,
        path: "v1/pool-overrides",
        parameters: "",
        scope: Scope::Read,
        has_body: false,
        doc: "the last 1,000 such requests",
        command: "`zonda pool log`",
        answer: |call| json_reply(&pools::actions(call.control)),
    },
    Route {
        method: Method::GET,
        path: "v1/checks",
        parameters: "",
        scope: Scope::Read,
        has_body: false,
        doc: "the targets that are [probed](steering.md#checks), with their last result and the \
              last 100 changes",
        command: "",
        answer: |call| json_reply(&checks::list(call.control)),
    },
    Route {
        method: Method::POST,
        path: "v1/checks",
        parameters: "",
        scope: Scope::Write,
        has_body: true,
        doc: "says the state of members whose check is [`pushed`](steering.md#checks)",
        command: "`zonda pool push MEMBER up`",
        answer: checks::push,
    },
    Route {
        method: Method::POST,
        path: "v1/loads",
        parameters: "",
        scope: Scope::Write,
        has_body: true,
        doc: "says the [loads](steering.md#load) of members, in percent",
        command: "`zonda pool load MEMBER 83`",
        answer: loads::tell,
    },
    Route {
        method: Method::GET,
        path: "v1/geo/networks",
        parameters: "",
        scope: Scope::Read,
        has_body: false,
        doc: "the [networks](steering.md#where-clients-are) whose site is known",
        command: "",
        answer: |call| json_reply(&geo::networks(call.control)),
    },
    Route {
        method: Method::POST,
        path: "v1/geo/networks",
        parameters: "",
        scope: Scope::Write,
        has_body: true,
        doc: "sets and removes networks in `networks-file`",
        command: "",
        answer: geo::change_networks,
    },
    Route {
        method: Method::GET,
        path: "v1/geo/latencies",
        parameters: "",
        scope: Scope::Read,
        has_body: false,
        doc: "the [latencies](steering.md#latencies) from networks to sites",
        command: "",
        answer: |call| json_reply(&geo::latencies(call.control)),
    },
    Route {
        method: Method::POST,
        path: "v1/geo/latencies",
        parameters: "",
        scope: Scope::Write,
        has_body: true,
        doc: "sets and removes latencies in `latencies-file`",
        command: "",
        answer: geo::change_latencies,
    },
    Route {
        method: Method::POST,
        path: "v1/explain",
        parameters: "",
        scope: Scope::Read,
        has_body: true,
        doc: "[why a client gets the answer](explain.md) that it gets, step by step",
        command: "`zonda explain`",
        answer: explain::answer,
    },
    Route {
        method: Method::GET,
        path: "v1/zones",
        parameters: "?limit=N&after=NAME",
        scope: Scope::Read,
        has_body: false,
        doc: "zones in canonical order, 1000 at once by default",
        command: "`zonda zone list`",
        answer: |call| api::zones(call.query, call.control),
    },
    Route {
        method: Method::GET,
        path: "v1/zones/NAME",
        parameters: "",
        scope: Scope::Read,
        has_body: false,
        doc: "one zone",
        command: "`zonda zone show NAME`",
        answer: |call| api::zone(call.argument(), call.control),
    },
    Route {
        method: Method::GET,
        path: "v1/zones/ZONE/rrsets",
        parameters: "?limit=N&after=NAME",
        scope: Scope::Read,
        has_body: false,
        doc: "the [records](#records) of a zone in canonical order, some 1000 at once by default",
        command: "`zonda zone get`",
        answer: rrsets::list,
    },
    Route {
        method: Method::GET,
        path: "v1/zones/ZONE/rrsets/NAME",
        parameters: "",
        scope: Scope::Read,
        has_body: false,
        doc: "the records of a name",
        command: "`zonda zone get NAME`",
        answer: rrsets::of_name,
    },
    Route {
        method: Method::GET,
        path: "v1/zones/ZONE/rrsets/NAME/TYPE",
        parameters: "",
        scope: Scope::Read,
        has_body: false,
        doc: "the records of a name and a type",
        command: "`zonda zone get NAME TYPE`",
        answer: rrsets::of_name,
    },
    Route {
        method: Method::POST,
        path: "v1/zones",
        parameters: "",
        scope: Scope::Write,
        has_body: true,
        doc: "a [zone](#zones) is created, where `admin.zones` names a directory",
        command: "",
        answer: edits::create_zone,
    },
    Route {
        method: Method::DELETE,
        path: "v1/zones/NAME",
        parameters: "",
        scope: Scope::Write,
        has_body: false,
        doc: "a zone that was created so is removed, with its file",
        command: "",
        answer: edits::remove_zone,
    },
    Route {
        method: Method::PATCH,
        path: "v1/zones/ZONE/rrsets",
        parameters: "[?dry-run or ?wait=secondaries]",
        scope: Scope::Write,
        has_body: true,
        doc: "[changes](#changes) of several sets of a [writable](editing.md) zone, all or none",
        command: "",
        answer: edits::change,
    },
    Route {
        method: Method::PUT,
        path: "v1/zones/ZONE/rrsets/NAME/TYPE",
        parameters: "[?dry-run or ?wait=secondaries]",
        scope: Scope::Write,
        has_body: true,
        doc: "the set has these records",
        command: "`zonda zone set NAME TTL TYPE DATA…`",
        answer: edits::put,
    },
    Route {
        method: Method::DELETE,
        path: "v1/zones/ZONE/rrsets/NAME/TYPE",
        parameters: "[?dry-run or ?wait=secondaries]",
        scope: Scope::Write,
        has_body: false,
        doc: "the set is removed",
        command: "`zonda zone unset NAME TYPE`",
        answer: edits::remove,
    },
    Route {
        method: Method::DELETE,
        path: "v1/zones/ZONE/rrsets/NAME",
        parameters: "[?dry-run or ?wait=secondaries]",
        scope: Scope::Write,
        has_body: false,
        doc: "all records of the name are removed",
        command: "`zonda zone unset NAME`",
        answer: edits::remove_name,
    },
    Route {
        method: Method::GET,
        path: "v1/zones/ZONE/diff",
        parameters: "",
        scope: Scope::Read,
        has_body: false,
        doc: "the changes that the zone's file lacks",
        command: "`zonda zone diff ZONE`",
        answer: edits::unflushed,
    },
    Route {
        method: Method::POST,
        path: "v1/flush",
        parameters: "[?zone=NAME]",
        scope: Scope::Write,
        has_body: false,
        doc: "changes of writable zones are written to the zones' files",
        command: "`zonda zone flush`",
        answer: |call| edits::flush(call.query, call.control),
    },
    Route {
        method: Method::GET,
        path: "v1/zones/ZONE/history",
        parameters: "",
        scope: Scope::Read,
        has_body: false,
        doc: "the [versions](#versions) of a zone that are held",
        command: "`zonda zone history ZONE`",
        answer: zone_commands::history,
    },
    Route {
        method: Method::POST,
        path: "v1/zones/ZONE/rollback/SERIAL",
        parameters: "[?dry-run or ?wait=secondaries]",
        scope: Scope::Write,
        has_body: false,
        doc: "the zone gets the records that this version had, as an edit",
        command: "`zonda zone rollback ZONE SERIAL`",
        answer: zone_commands::rollback,
    },
    Route {
        method: Method::POST,
        path: "v1/zones/ZONE/confirm/SERIAL",
        parameters: "",
        scope: Scope::Write,
        has_body: false,
        doc: "the version of a catalog is taken [though it removes many \
            members](replication.md#serving-what-a-catalog-lists)",
        command: "`zonda zone confirm ZONE SERIAL`",
        answer: zone_commands::confirm,
    },
    Route {
        method: Method::POST,
        path: "v1/zones/ZONE/freeze",
        parameters: "",
        scope: Scope::Write,
        has_body: false,
        doc: "the zone takes [no updates and edits](editing.md#freezing-a-zone)",
        command: "`zonda zone freeze ZONE`",
        answer: zone_commands::freeze,
    },
    Route {
        method: Method::POST,
        path: "v1/zones/ZONE/thaw",
        parameters: "",
        scope: Scope::Write,
        has_body: false,
        doc: "it takes them again",
        command: "`zonda zone thaw ZONE`",
        answer: zone_commands::thaw,
    },
    Route {
        method: Method::POST,
        path: "v1/zones/ZONE/notify",
        parameters: "",
        scope: Scope::Write,
        has_body: false,
        doc: "the servers of `notify` are told of the version in force once more",
        command: "`zonda zone notify ZONE`",
        answer: zone_commands::notify,
    },
    Route {
        method: Method::POST,
        path: "v1/zones/ZONE/refresh",
        parameters: "",
        scope: Scope::Write,
        has_body: false,
        doc: "the [primaries](replication.md#zones-from-a-primary) of the zone are asked at once",
        command: "`zonda zone refresh ZONE`",
        answer: zone_commands::refresh,
    },
    Route {
        method: Method::POST,
        path: "v1/zones/ZONE/retransfer",
        parameters: "",
        scope: Scope::Write,
        has_body: false,
        doc: "the whole zone is transferred from its primary, whatever its serial",
        command: "`zonda zone retransfer ZONE`",
        answer: zone_commands::retransfer,
    },
    Route {
        method: Method::GET,
        path: "v1/transfers",
        parameters: "",
        scope: Scope::Read,
        has_body: false,
        doc: "the [transfers](#transfers) that run",
        command: "`zonda transfer ls`",
        answer: |call| json_reply(&transfers::list(call.control)),
    },
    Route {
        method: Method::GET,
        path: "v1/cache",
        parameters: "?name=NAME",
        scope: Scope::Read,
        has_body: false,
        doc: "the cached answers for a name",
        command: "`zonda cache show NAME`",
        answer: |call| {
            let name = parameter(call.query, "name").unwrap_or_default();
            about_name(&name, |name| cache::show(name, call.control))
        },
    },
    Route {
        method: Method::DELETE,
        path: "v1/cache/NAME",
        parameters: "[?tree]",
        scope: Scope::Write,
        has_body: false,
        doc: "removes them; with `tree`, those for all names below it, too",
        command: "`zonda cache flush NAME [--tree]`",
        answer: |call| {
            let tree = call.query.split('&').any(|pair| pair == "tree");
            about_name(call.argument(), |name| cache::flush(name, tree, call.control))
        },
    },
    Route {
        method: Method::POST,
        path: "v1/reload",
        parameters: "[?zone=NAME]",
        scope: Scope::Write,
        has_body: false,
        doc: "reloads what changed; with `zone`, that zone, changed or not",
        command: "`zonda reload`, `zonda zone reload NAME`",
        answer: |call| api::reload(call.query, call.control),
    },
    Route {
        method: Method::POST,
        path: "v1/stop",
        parameters: "",
        scope: Scope::Write,
        has_body: false,
        doc: "stops the server",
        command: "`zonda stop`",
        answer: |call| {
            call.control.stop();
            json_reply(&json!({ "stopping": true }))
        },
    },
];

/// What a method and a path lead to.
pub enum Match {
    /// A request that is answered.
    Route(&'static Route),
    /// A path that takes other methods: these, as the header `Allow` lists them (rfc9110#10.2.1).
    OtherMethods(String),
    /// A path that does not exist.
    NoPath,
}

impl Match {
    /// Finds what a method and the decoded segments of a path lead to.
    pub fn of(method: &Method, segments: &[&str], has_powerdns: bool) -> Self {
        let mut methods = Vec::new();
        let powerdns = if has_powerdns { powerdns::ROUTES } else { &[] };
        let routes = ROUTES.iter().chain(powerdns);
        for route in routes.filter(|route| route.has_path(segments)) {
            if route.method == method {
                return Self::Route(route);
            }
            methods.push(route.method.as_str());
        }
        if methods.is_empty() { Self::NoPath } else { Self::OtherMethods(methods.join(", ")) }
    }

    /// What a client must be allowed to be told more than that it may not.
    pub fn scope(&self, segments: &[&str]) -> Scope {
        match self {
            Self::Route(route) => route.scope,
            // Which paths exist is documented; what stands below `/v1` is for clients with a token.
            _ if segments.first() == Some(&"v1") => Scope::Read,
            _ => Scope::Open,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;

    /// The page with the table of requests.
    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/admin.md");
    /// The head of the table.
    const HEAD: &str = "| request | what it does | command |\n|---|---|---|\n";

    fn table() -> String {
        let row = |route: &Route| {
            let Route { method, path, parameters, doc, command, .. } = route;
            format!("| `{method} /{path}{parameters}` | {doc} | {command} |\n")
                .replace("|  |", "| |")
        };
        ROUTES.iter().map(row).collect()
    }

    #[test]
    fn the_documentation_lists_each_request() {
        let page = fs::read_to_string(PAGE).unwrap();
        let (before, rest) = page.split_once(HEAD).unwrap();
        let end = rest.find("\n\n").unwrap() + 1;
        if std::env::var_os("UPDATE").is_some() {
            fs::write(PAGE, [before, HEAD, &table(), &rest[end..]].concat()).unwrap();
            return;
        }
        assert_eq!(&rest[..end], table(), "run this test with UPDATE=1 to renew {PAGE}");
    }

    #[test]
    fn a_path_stands_once_for_each_method() {
        for (place, route) in ROUTES.iter().enumerate() {
            let segments: Vec<&str> = route.path.split('/').collect();
            let is_same = |other: &Route| {
                other.method == route.method && other.path.split('/').eq(segments.iter().copied())
            };
            assert_eq!(ROUTES.iter().position(is_same), Some(place), "{}", route.path);
        }
    }

    #[test]
    fn a_path_with_another_method_is_told_from_one_that_does_not_exist() {
        let found = |method: Method, path: &str| {
            let segments: Vec<&str> = path.split('/').collect();
            match Match::of(&method, &segments, false) {
                Match::Route(route) => route.arguments(&segments).join(","),
                Match::OtherMethods(methods) => format!("only {methods}"),
                Match::NoPath => "nothing".to_owned(),
            }
        };
        assert_eq!(found(Method::GET, "v1/zones/example.com"), "example.com");
        assert_eq!(found(Method::POST, "v1/zones/example.com"), "only GET, DELETE");
        assert_eq!(found(Method::GET, "v1/zones/example.com/nothing"), "nothing");
        assert_eq!(found(Method::GET, "v2"), "nothing");
        assert_eq!(found(Method::PUT, "v1/cache/a"), "only DELETE");
    }

    #[test]
    fn requests_that_change_something_need_the_write_scope() {
        for route in ROUTES {
            let is_question = route.path == "v1/explain"; // which is too long for a path
            let changes = route.method != Method::GET && !is_question;
            assert_eq!(route.scope == Scope::Write, changes, "{}", route.path);
        }
    }
}
