//! Which crate may depend on which, so that the rooms of the plan stay rooms.

use std::process::Command;

use serde_json::Value;

use super::{Finding, Tree};

/// Each crate and the crates of this workspace that it may use. A new edge is a decision: write it
/// down here.
const ALLOWED: &[(&str, &[&str])] = &[
    ("zonda-wire", &[]),
    ("zonda-zone", &["zonda-wire"]),
    ("zonda-upstream", &["zonda-wire"]),
    ("zonda-cache", &["zonda-wire"]),
    // What questions and replies become; knows neither sockets nor where answers come from.
    ("zonda-rewrite", &["zonda-wire"]),
    // Which member of a pool answers; knows nothing of zones, clocks and checks.
    ("zonda-balance", &["zonda-geo", "zonda-wire"]),
    // What a change is, the owner of the journal says. One process at a time locks its file.
    ("zonda-journal", &["zonda-netio", "zonda-wire"]),
    (
        "zonda-engine",
        // Only the workloads of an example make sites.
        &[
            "zonda-balance",
            "zonda-cache",
            "zonda-cluster",
            "zonda-geo",
            "zonda-rewrite",
            "zonda-wire",
            "zonda-zone",
        ],
    ),
    // What names answer; knows neither the API nor messages.
    ("zonda-cluster", &["zonda-wire", "zonda-zone"]),
    // Decodes the API's objects into those of names.
    ("zonda-kubernetes", &["zonda-cluster", "zonda-netio"]),
    ("zonda-netio", &[]),
    // Networks and where they are; knows neither pools nor zones.
    ("zonda-geo", &[]),
    // Knows neither zones nor pools.
    ("zonda-health", &["zonda-netio", "zonda-wire"]),
    // Makes zones of the records of databases.
    ("zonda-store", &["zonda-wire", "zonda-zone"]),
    // Keeps zones in files with the journal's checksums; knows neither threads nor the publisher.
    ("zonda-secondary", &["zonda-journal", "zonda-wire", "zonda-zone"]),
    ("zonda-client", &["zonda-wire"]),
    // Knows no queue by name: forwarder threads and code are behind a trait.
    ("zonda-deferral", &["zonda-engine", "zonda-netio", "zonda-wire"]),
    (
        "zonda-forward",
        &[
            "zonda-cache",
            "zonda-client",
            "zonda-deferral",
            "zonda-engine",
            "zonda-netio",
            "zonda-upstream",
            "zonda-wire",
            // Octets that cannot be foreseen.
            "zonda-zone",
        ],
    ),
    // Its tests bring queries by UDP.
    ("zonda-runtime", &["zonda-deferral", "zonda-engine", "zonda-netio", "zonda-transport"]),
    ("zonda-transport", &["zonda-deferral", "zonda-engine", "zonda-netio"]),
    // Names in the file are read as names, so that a wrong one is reported with its line.
    // The same holds for upstreams and their certificates.
    (
        "zonda-config",
        &[
            "zonda-balance",
            "zonda-client",
            "zonda-geo",
            "zonda-health",
            "zonda-rewrite",
            "zonda-upstream",
            "zonda-wire",
        ],
    ),
    (
        "zonda-server",
        &[
            "zonda-balance",
            "zonda-cache",
            // Objects of Kubernetes clusters, whose names zones have.
            "zonda-cluster",
            "zonda-kubernetes",
            "zonda-config",
            "zonda-engine",
            "zonda-netio",
            "zonda-client",
            "zonda-deferral",
            "zonda-forward",
            "zonda-geo",
            "zonda-health",
            "zonda-journal",
            "zonda-runtime",
            // Databases that zones of a configuration follow.
            "zonda-secondary",
            "zonda-store",
            "zonda-transport",
            "zonda-upstream",
            "zonda-wire",
            "zonda-zone",
        ],
    ),
    // Tests load what it writes.
    ("zonda-import", &["zonda-config", "zonda-rewrite", "zonda-wire"]),
    // Suites wait until a Kubernetes API server sends its objects.
    ("zonda-bench", &["zonda-cluster", "zonda-kubernetes", "zonda-netio", "zonda-wire"]),
    (
        "zonda-cli",
        &[
            "zonda-bench",
            "zonda-config",
            "zonda-import",
            "zonda-server",
            // Tests write what servers follow.
            "zonda-store",
            "zonda-wire",
            "zonda-zone",
        ],
    ),
    (
        "zonda",
        &[
            "zonda-config",
            "zonda-deferral",
            "zonda-engine",
            "zonda-netio",
            "zonda-runtime",
            "zonda-server",
            "zonda-store",
            "zonda-wire",
        ],
    ),
    // What Node.js's programs hold: the server, and queries and replies in batches.
    (
        "zonda-node",
        &[
            "zonda",
            "zonda-config",
            "zonda-deferral",
            "zonda-engine",
            "zonda-runtime",
            "zonda-server",
            "zonda-wire",
        ],
    ),
    // What Python's programs hold: the server, queries and records as objects, and the stores of
    // the Rust library.
    (
        "zonda-python",
        &["zonda", "zonda-config", "zonda-engine", "zonda-runtime", "zonda-server", "zonda-wire"],
    ),
    ("zonda-testkit", &[]),
    // Generates the reference pages from the types that they describe.
    ("xtask", &["zonda-config"]),
];

/// Dependencies from outside that only some crates may use, so that the answer path stays free of
/// runtimes and libraries of the control side.
const CONFINED: &[(&str, &[&str])] = &[
    (
        "tokio",
        &[
            "zonda-client",
            "zonda-deferral",
            "zonda-forward",
            "zonda-health",
            "zonda-kubernetes",
            // The streams of PostgreSQL's client, which TLS wraps.
            "zonda-store",
            "zonda-transport",
            "zonda-server",
            "zonda-cli",
            "zonda",
            "zonda-node",
            "zonda-python",
        ],
    ),
    ("libc", &["zonda-netio"]),
    // Probes by ICMP need a socket that neither std nor tokio has.
    // A connection to the API of a cluster is probed, so that a cut network is noticed.
    ("socket2", &["zonda-health", "zonda-kubernetes", "zonda-netio", "zonda-testkit"]),
    ("clap", &["zonda-cli", "xtask"]),
    ("anyhow", &["zonda-cli", "xtask"]),
    ("redb", &["zonda-store"]),
    ("postgres", &["zonda-store"]),
];

/// Asks cargo for the workspace's packages and judges their dependencies.
pub fn check(tree: &Tree) -> Vec<Finding> {
    match metadata(tree) {
        Ok(metadata) => judge(&metadata).into_iter().chain(unused(&metadata)).collect(),
        Err(finding) => vec![finding],
    }
}

/// Returns the output of `cargo metadata --no-deps`, or a finding that says why there is none.
pub fn metadata(tree: &Tree) -> Result<Value, Finding> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(&tree.root)
        .output()
        .expect("cargo ran this program, so it is there");
    serde_json::from_slice(&output.stdout)
        .map_err(|error| Finding::new("Cargo.toml", 0, format!("cargo metadata: {error}")))
}

/// Returns a finding for each edge of the table that no package has, so that the table stays what
/// is there.
fn unused(metadata: &Value) -> Vec<Finding> {
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let has = |from: &str, to: &str| {
        let package = packages.iter().find(|it| it["name"] == from);
        let dependencies = package.and_then(|it| it["dependencies"].as_array());
        dependencies.is_some_and(|list| list.iter().any(|it| it["name"] == to))
    };
    ALLOWED
        .iter()
        .flat_map(|(from, allowed)| allowed.iter().map(move |to| (*from, *to)))
        .filter(|(from, to)| !has(from, to))
        .map(|(from, to)| {
            let what = format!("does not depend on {to}: take it out of xtask/src/tidy/edges.rs");
            Finding::new(&format!("package {from}"), 0, what)
        })
        .collect()
}

/// Returns the findings in the output of `cargo metadata --no-deps`.
fn judge(metadata: &Value) -> Vec<Finding> {
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    packages.iter().flat_map(judge_package).collect()
}

fn judge_package(package: &Value) -> Vec<Finding> {
    let name = package["name"].as_str().unwrap_or_default();
    let finding = |what: String| Finding::new(&format!("package {name}"), 0, what);
    let Some((_, allowed)) = ALLOWED.iter().find(|(crate_name, _)| *crate_name == name) else {
        return vec![finding("is not in the table of xtask/src/tidy/edges.rs".to_owned())];
    };
    let dependencies = package["dependencies"].as_array().map_or(&[][..], Vec::as_slice);
    let mut findings = Vec::new();
    for dependency in dependencies {
        let to = dependency["name"].as_str().unwrap_or_default();
        let for_tests = dependency["kind"] == "dev";
        if for_tests && to == "zonda-testkit" {
            continue;
        }
        if !dependency["path"].is_null() && !allowed.contains(&to) {
            findings.push(finding(format!("may not depend on {to}: see xtask/src/tidy/edges.rs")));
        }
        let confined = CONFINED.iter().find(|(crate_name, _)| *crate_name == to);
        if !for_tests && confined.is_some_and(|(_, users)| !users.contains(&name)) {
            findings.push(finding(format!(
                "may not depend on {to}: see CONFINED in xtask/src/tidy/edges.rs"
            )));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn complaints(name: &str, dependency: &Value) -> Vec<String> {
        let metadata = json!({"packages": [{"name": name, "dependencies": [dependency]}]});
        judge(&metadata).into_iter().map(|finding| finding.to_string()).collect()
    }

    #[test]
    fn an_edge_against_the_direction_is_named() {
        let edge = json!({"name": "zonda-engine", "kind": null, "path": "x"});
        let said = complaints("zonda-wire", &edge);
        assert_eq!(said.len(), 1);
        assert!(said[0].contains("zonda-wire: may not depend on zonda-engine"), "{said:?}");
        assert!(complaints("zonda-transport", &edge).is_empty());
    }

    #[test]
    fn an_edge_of_the_table_that_no_package_has_is_named() {
        let edge = json!({"name": "zonda-wire", "kind": null, "path": "x"});
        let packages = json!([
            {"name": "zonda-cache", "dependencies": [edge]},
            {"name": "zonda-zone", "dependencies": []},
        ]);
        let said: Vec<_> =
            unused(&json!({"packages": packages})).iter().map(ToString::to_string).collect();
        assert!(said.iter().any(|it| it.starts_with("package zonda-zone: does not depend on")));
        assert!(!said.iter().any(|it| it.starts_with("package zonda-cache")), "{said:?}");
    }

    #[test]
    fn the_testkit_is_for_tests_only() {
        let edge = |kind| json!({"name": "zonda-testkit", "kind": kind, "path": "x"});
        assert!(complaints("zonda-cli", &edge(Some("dev"))).is_empty());
        assert_eq!(complaints("zonda-cli", &edge(None)).len(), 1);
    }

    #[test]
    fn the_answer_path_has_no_tokio() {
        let edge = json!({"name": "tokio", "kind": null});
        assert_eq!(complaints("zonda-engine", &edge).len(), 1);
        assert!(complaints("zonda-server", &edge).is_empty());
    }
}
