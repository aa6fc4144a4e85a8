//! The requests of the API, in the order of the table in docs/powerdns-api.md.

use super::{commands, new_zone, search, server, settings, zones};
use crate::admin::call::{Call, Scope};
use crate::admin::reply::Reply;
use crate::admin::route::Route;
use hyper::Method;

/// What answers a request.
type Answer = fn(&Call<'_>) -> Reply;

/// A request that changes nothing.
const fn read(
    path: &'static str,
    parameters: &'static str,
    doc: &'static str,
    answer: Answer,
) -> Route {
    let (method, scope) = (Method::GET, Scope::Read);
    Route { method, path, parameters, scope, has_body: false, doc, command: "", answer }
}

/// A request with a body.
const fn change(method: Method, path: &'static str, doc: &'static str, answer: Answer) -> Route {
    let (scope, parameters) = (Scope::Write, "");
    Route { method, path, parameters, scope, has_body: true, doc, command: "", answer }
}

/// A request that changes something, without a body.
const fn command(
    method: Method,
    path: &'static str,
    parameters: &'static str,
    doc: &'static str,
    answer: Answer,
) -> Route {
    let scope = Scope::Write;
    Route { method, path, parameters, scope, has_body: false, doc, command: "", answer }
}

/// All requests. A path stands once for each method.
pub const ROUTES: &[Route] = &[
    read("api", "", "the versions of the API", server::versions),
    read("api/v1", "", "where servers are listed", server::version),
    read("api/v1/servers", "", "the servers: one, `localhost`", server::list),
    read("api/v1/servers/localhost", "", "the server; `version` is 4.9.12", server::show),
    read(
        "api/v1/servers/localhost/zones",
        "?zone=NAME&dnssec=false",
        "the zones, or the one of this name, in canonical order",
        zones::list,
    ),
    change(
        Method::POST,
        "api/v1/servers/localhost/zones",
        "a zone is created where `admin.zones` names a directory, from `nameservers`, `rrsets` and \
         `zone`, which is the text of a master file without `$INCLUDE` and `$GENERATE`",
        new_zone::create,
    ),
    read(
        "api/v1/servers/localhost/zones/ID",
        "?rrsets=false&rrset_name=NAME&rrset_type=TYPE",
        "a zone with its RRsets in canonical order",
        zones::show,
    ),
    change(
        Method::PATCH,
        "api/v1/servers/localhost/zones/ID",
        "RRsets are changed: REPLACE, DELETE, EXTEND, PRUNE",
        zones::patch,
    ),
    change(
        Method::PUT,
        "api/v1/servers/localhost/zones/ID",
        "settings that say what is so already are taken, others refused",
        settings::put,
    ),
    command(
        Method::DELETE,
        "api/v1/servers/localhost/zones/ID",
        "",
        "a zone that a client has created is removed",
        new_zone::remove,
    ),
    read(
        "api/v1/servers/localhost/zones/ID/export",
        "",
        "the zone as a master file; with `Accept: application/json`, as a string",
        zones::export,
    ),
    command(
        Method::PUT,
        "api/v1/servers/localhost/zones/ID/notify",
        "",
        "the servers of `notify`, if there are such, are told of the version in force once more",
        commands::notify,
    ),
    command(
        Method::PUT,
        "api/v1/servers/localhost/zones/ID/axfr-retrieve",
        "",
        "the whole zone is transferred from its primary",
        commands::retrieve,
    ),
    command(
        Method::PUT,
        "api/v1/servers/localhost/zones/ID/rectify",
        "",
        "nothing: no zone needs it here",
        commands::rectify,
    ),
    read(
        "api/v1/servers/localhost/zones/ID/metadata",
        "",
        "an empty list",
        commands::nothing_of_zone,
    ),
    read(
        "api/v1/servers/localhost/zones/ID/metadata/KIND",
        "",
        "an empty list of values",
        commands::no_metadata,
    ),
    change(
        Method::POST,
        "api/v1/servers/localhost/zones/ID/metadata",
        "refused",
        commands::refuse_metadata,
    ),
    change(
        Method::PUT,
        "api/v1/servers/localhost/zones/ID/metadata/KIND",
        "refused",
        commands::refuse_metadata,
    ),
    command(
        Method::DELETE,
        "api/v1/servers/localhost/zones/ID/metadata/KIND",
        "",
        "refused",
        commands::refuse_metadata,
    ),
    read(
        "api/v1/servers/localhost/zones/ID/cryptokeys",
        "",
        "an empty list: the server does not sign",
        commands::nothing_of_zone,
    ),
    read("api/v1/servers/localhost/zones/ID/cryptokeys/KEY", "", "404", commands::no_key),
    change(
        Method::POST,
        "api/v1/servers/localhost/zones/ID/cryptokeys",
        "refused",
        commands::refuse_key,
    ),
    change(
        Method::PUT,
        "api/v1/servers/localhost/zones/ID/cryptokeys/KEY",
        "404",
        commands::no_key,
    ),
    command(
        Method::DELETE,
        "api/v1/servers/localhost/zones/ID/cryptokeys/KEY",
        "",
        "404",
        commands::no_key,
    ),
    read(
        "api/v1/servers/localhost/search-data",
        "?q=PATTERN&max=N&object_type=TYPE",
        "zones and records whose name or data match, `*` and `?` being wildcards",
        search::answer,
    ),
    read(
        "api/v1/servers/localhost/statistics",
        "?statistic=NAME",
        "some figures under PowerDNS's names; [metrics](metrics.md) has all",
        server::statistics,
    ),
    read("api/v1/servers/localhost/config", "", "an empty list", server::nothing),
    read("api/v1/servers/localhost/autoprimaries", "", "an empty list", server::nothing),
    read(
        "api/v1/servers/localhost/tsigkeys",
        "",
        "the keys of `[[key]]` sections, without their secrets",
        server::keys,
    ),
    read(
        "api/v1/servers/localhost/tsigkeys/ID",
        "",
        "one of them, without its secret",
        server::key,
    ),
    change(Method::POST, "api/v1/servers/localhost/tsigkeys", "refused", server::refuse_key),
    change(Method::PUT, "api/v1/servers/localhost/tsigkeys/ID", "refused", server::refuse_key),
    command(
        Method::DELETE,
        "api/v1/servers/localhost/tsigkeys/ID",
        "",
        "refused",
        server::refuse_key,
    ),
    command(
        Method::PUT,
        "api/v1/servers/localhost/cache/flush",
        "?domain=NAME",
        "the cached answers for a forwarded name are removed",
        commands::flush,
    ),
];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;

    /// The page with the table of requests.
    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/powerdns-api.md");
    /// The head of the table.
    const HEAD: &str = "| request | what it does |\n|---|---|\n";

    /// The table of the page: `…` stands for the path of the server.
    fn table() -> String {
        let row = |route: &Route| {
            let Route { method, path, parameters, doc, .. } = route;
            let path = format!("/{path}").replace("/api/v1/servers/localhost/", "…/");
            format!("| `{method} {path}{parameters}` | {doc} |\n")
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
        let key = |route: &Route| (route.method.clone(), route.path);
        for (place, route) in ROUTES.iter().enumerate() {
            let first = ROUTES.iter().position(|other| key(other) == key(route));
            assert_eq!(first, Some(place), "{} {}", route.method, route.path);
        }
    }
}
