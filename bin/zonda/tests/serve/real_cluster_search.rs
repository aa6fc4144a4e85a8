//! Search paths of pods that are followed for them, as the resolvers of C libraries take the
//! answers, beside CoreDNS.

use crate::real_cluster::{await_answers, populate};
use crate::server::{Server, wait_until};
use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use zonda_testkit::cluster::{
    ApiClient, ApiServer, CoreDns, external_service, headless_service, namespace, pod, pod_status,
};
use zonda_testkit::process::{Folder, leave_out_without_namespaces};
use zonda_testkit::upstream::{Record, Reply, always, tell};
use zonda_testkit::{Question, Upstream, ask};

/// The code with which [`WALK`] ends where there can be no namespaces.
const NO_NAMESPACES: i32 = 77;
/// The program that runs another one with a resolver's configuration of its own.
const WALK: &str = "tests/serve/walk/walk.py";
/// The address from which the walks come, as that of a pod.
const CLIENT: &str = "127.0.0.1";

/// Upstreams of three outside names: one with addresses of both families, one of one family, and
/// one that exists below a search domain as well.
fn upstream() -> Upstream {
    Upstream::start([always().then([tell(|asked| {
        let v6 = |last: u8| {
            let mut octets = [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            octets[15] = last;
            Record::new("AAAA", octets)
        };
        let known = match &*asked.name {
            "www.example.com." => (Some(Record::address(1)), Some(v6(1))),
            "four.example.com." => (Some(Record::address(2)), None),
            "six.example.com." => (None, Some(v6(3))),
            "both.example.com." => (Some(Record::address(4)), Some(v6(4))),
            "both.example.com.corp.example." => (Some(Record::address(5)), None),
            _ => return Reply::rcode(3).authority(Record::soa("", 60)),
        };
        let (v4, v6) = known;
        match (asked.record_type, v4, v6) {
            (1, Some(record), _) | (28, _, Some(record)) => Reply::empty().answer(record),
            _ => Reply::empty().authority(Record::soa("", 60)),
        }
    })])])
}

/// A program that looks names up with a C library, made by its compiler.
fn lookup_by(compiler: &str, folder: &Folder) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/serve/walk/lookup.c");
    let program = folder.path().join(compiler);
    let mut command = Command::new(compiler);
    let made = command.arg("-O1").arg(source).arg("-o").arg(&program).status();
    assert!(made.is_ok_and(|it| it.success()), "{compiler}: `make packages` installs it");
    program
}

/// A resolver's configuration, for pods of namespace `shop`.
fn resolver_files() -> Folder {
    let folder = Folder::new("walk");
    let search = "shop.svc.cluster.local svc.cluster.local cluster.local corp.example";
    folder
        .write("resolv.conf", format!("nameserver 127.0.0.1\nsearch {search}\noptions ndots:5\n"));
    folder.write("nsswitch.conf", "hosts: dns\n");
    folder.write("hosts", "127.0.0.1 localhost\n");
    folder
}

/// What a program finds for names, in the form `NAME ADDRESS… | QUERIES`; nothing where there can
/// be no namespaces, and the environment leaves out tests that need them.
fn walk(
    server: SocketAddr,
    (files, program): (&Folder, &Path),
    names: &[&str],
) -> Option<Vec<(String, usize)>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(WALK);
    let mut command = Command::new("python3");
    command.arg(script).arg(server.ip().to_string()).arg(server.port().to_string());
    let output = command.arg(files.path()).arg(program).args(names).output().unwrap();
    if output.status.code() == Some(NO_NAMESPACES) {
        leave_out_without_namespaces("search paths of C libraries");
        return None;
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |line: &str| {
        let (found, count) = line.split_once(" | ")?;
        let mut words: Vec<&str> = found.split(' ').collect();
        words[1..].sort_unstable(); // the order of addresses is the library's and rotates
        Some((words.join(" "), count.parse().ok()?))
    };
    Some(text.lines().filter_map(line).collect())
}

/// The addresses that a walk finds, without the queries.
fn found(walk: &[(String, usize)]) -> Vec<&str> {
    walk.iter().map(|(found, _)| &**found).collect()
}

/// Creates objects whose names search paths lead to, and a pod that asks.
fn populate_paths(client: &ApiClient) {
    populate(client);
    client.create(&namespace("dev"));
    client.create_all(&[
        headless_service("dev", "empty", &[]),
        external_service("dev", "far", "four.example.com"),
    ]);
    let walker = pod("shop", "walker");
    client.create(&walker);
    client.patch_status(&walker, &pod_status(&[CLIENT]));
}

/// A server with the cluster, and more keys of it.
fn zonda(api: &ApiServer, upstream: &Upstream, keys: &str) -> Server {
    let (kubeconfig, to) = (api.kubeconfig_file().display(), upstream.address);
    let config = format!(
        "[[zone]]\nname = \".\"\nforward.to = \"{to}\"\n[[zone]]\nname = \"cluster.local\"\n\
         [zone.kubernetes]\nkubeconfig = \"{kubeconfig}\"\n{keys}\n"
    );
    let server = Server::start(&[], &config);
    await_answers(&server, "db-0.db.shop.svc.cluster.local", "A", &["10.244.0.1"]);
    await_answers(&server, "far.dev.svc.cluster.local", "CNAME", &["four.example.com."]);
    server
}

/// Names as programs of a pod say them.
const NAMES: &[&str] = &[
    "www.example.com",
    "four.example.com",
    "six.example.com",
    "both.example.com",
    "db-0.db.shop",
    "web.shop",
    "db",
    "far.dev",
    "none.example.com",
    "none.dev",
    "dev",
    "www.example.com.",
    "a.b.c.d.e.www.example.com",
];

#[test]
fn c_libraries_find_the_same_addresses_with_two_queries_in_place_of_ten() {
    let api = ApiServer::start();
    populate_paths(api.client());
    let (upstream, files) = (upstream(), resolver_files());
    let domains = "search-domains = [\"corp.example\"]";
    let plain = zonda(&api, &upstream, "");
    let short = zonda(&api, &upstream, &format!("autopath = true\n{domains}"));
    let sure = zonda(&api, &upstream, &format!("autopath = true\npods = \"verified\"\n{domains}"));
    for compiler in ["cc", "musl-gcc"] {
        let program = lookup_by(compiler, &files);
        let ask = |server: &Server| walk(server.zonda.address, (&files, &program), NAMES);
        let Some(without) = ask(&plain) else { return };
        println!("{compiler}, without: {without:#?}");
        for (server, what) in [(&short, "by the name alone"), (&sure, "with the pod known")] {
            let with = ask(server).unwrap();
            println!("{compiler}, {what}: {with:#?}");
            assert_eq!(found(&with), found(&without), "{compiler}, {what}");
            assert_eq!([with[0].1, without[0].1], [2, 10], "{compiler}, {what}");
            let are_fewer = with.iter().zip(&without).all(|(with, without)| with.1 <= without.1);
            assert!(are_fewer, "{compiler}, {what}");
        }
    }
}

/// CoreDNS with the cluster, which forwards all other names, and follows search paths if that is
/// `autopath`.
fn core_dns(api: &ApiServer, upstream: &Upstream, autopath: bool) -> CoreDns {
    let kubeconfig = api.kubeconfig_file().display();
    let autopath = if autopath { "autopath @kubernetes" } else { "" };
    let corefile = format!(
        ".  {{\n  bind 127.0.0.1\n  errors\n  {autopath}\n  cache 30\n  kubernetes cluster.local \
         {{\n    kubeconfig {kubeconfig}\n    pods verified\n  }}\n  forward . {}\n}}\n",
        upstream.address
    );
    CoreDns::start(&corefile, Path::new("/"), &["cluster.local."])
}

/// The domains of the search path of a pod in `shop`, the last one for the name itself.
const PATH: [&str; 4] = [".shop.svc.cluster.local", ".svc.cluster.local", ".cluster.local", ""];

/// How a library goes through a search path.
#[derive(Clone, Copy, Debug)]
enum Library {
    /// A name without addresses is passed over, whatever the response code (glibc).
    Glibc,
    /// A name for which both types are not NXDOMAIN ends the search (musl).
    Musl,
}

/// The addresses of a name that a pod looks up, and the number of queries.
fn look_up(server: SocketAddr, name: &str, library: Library) -> (BTreeSet<String>, usize) {
    let mut queries = 0;
    for domain in PATH {
        let full = format!("{name}{domain}");
        let replies = ["A", "AAAA"].map(|record_type| {
            queries += 1;
            ask(server, &Question::new(&full, record_type).recursive()).unwrap()
        });
        let records = replies.iter().flat_map(|reply| &reply.answer);
        let is_address = |record_type| matches!(record_type, 1 | 28);
        let addresses = records.filter(|it| is_address(it.record_type));
        let addresses: BTreeSet<String> = addresses.map(|it| it.data.text.clone()).collect();
        let is_denied = replies.iter().any(|reply| reply.rcode_text() == "NXDOMAIN");
        match library {
            Library::Glibc if addresses.is_empty() => {}
            Library::Musl if is_denied => {}
            _ => return (addresses, queries),
        }
    }
    (BTreeSet::new(), queries)
}

/// Nanoseconds of CPU that a server has used, which runs below a program that ends it in time.
fn cpu_nanos(process: u32) -> u64 {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    let children = children.unwrap_or_default();
    let of = |id: &str| -> u64 {
        let tasks = fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
        let time = |path: PathBuf| -> Option<u64> {
            fs::read_to_string(path.join("schedstat")).ok()?.split(' ').next()?.parse().ok()
        };
        tasks.filter_map(|task| time(task.path())).sum()
    };
    let ids = children.split_whitespace();
    ids.map(|id| of(id) + cpu_nanos(id.parse().unwrap())).sum()
}

#[test]
fn walks_find_the_addresses_that_coredns_finds_with_its_own_autopath() {
    /// Walks of which the time is measured.
    const WALKS: usize = 3000;
    let api = ApiServer::start();
    populate_paths(api.client());
    let upstream = upstream();
    let none = "search-domains = [\".\"]";
    let plain = zonda(&api, &upstream, "");
    let short = zonda(&api, &upstream, &format!("autopath = true\n{none}"));
    let sure = zonda(&api, &upstream, &format!("autopath = true\npods = \"verified\"\n{none}"));
    let core_plain = core_dns(&api, &upstream, false);
    let core_short = core_dns(&api, &upstream, true);
    let first = Question::new("www.example.com.shop.svc.cluster.local", "A").recursive();
    wait_until("CoreDNS knows the pod", || {
        ask(core_short.address, &first).is_ok_and(|it| it.rcode_text() == "NOERROR")
    });
    let servers = [
        ("Zonda", plain.zonda.address, plain.zonda.process.id()),
        ("Zonda with autopath", short.zonda.address, short.zonda.process.id()),
        ("Zonda with autopath and pods", sure.zonda.address, sure.zonda.process.id()),
        ("CoreDNS", core_plain.address, core_plain.process.id()),
        ("CoreDNS with autopath", core_short.address, core_short.process.id()),
    ];
    let parts = ["www.example.com", "four.example.com", "six.example.com", "web", "shop", "dev"];
    let more =
        ["db-0.db", "db", "far.dev", "none", "empty.dev", "near.shop", "svc", "cluster.local"];
    let mut names: Vec<String> = parts.iter().chain(&more).map(|it| (*it).to_owned()).collect();
    names.extend(parts.iter().flat_map(|one| more.map(|other| format!("{one}.{other}"))));
    names.extend(parts.iter().flat_map(|one| more.map(|other| format!("{other}.{one}"))));
    let mut mistaken = 0;
    for library in [Library::Glibc, Library::Musl] {
        for name in &names {
            let [own, ours, sure, core, theirs] =
                servers.map(|(_, address, _)| look_up(address, name, library));
            assert_eq!(core.0, own.0, "{name} {library:?}, CoreDNS without");
            assert_eq!(theirs.0, sure.0, "{name} {library:?}, CoreDNS with its own");
            // Its second name is the first one of a pod in the namespace that it ends with.
            let is_taken_for_another =
                own.0.is_empty() && [".shop", ".dev"].iter().any(|it| name.ends_with(it));
            if is_taken_for_another {
                mistaken += usize::from(ours.0 != own.0);
            } else {
                assert_eq!(ours.0, own.0, "{name} {library:?}, with and without");
                assert_eq!(sure.0, own.0, "{name} {library:?}, with pods and without");
                assert!(ours.1 <= own.1, "{name} {library:?}");
            }
        }
    }
    println!("{} names, {mistaken} of them taken for others", 2 * names.len());
    for (what, address, process) in servers {
        let before = cpu_nanos(process);
        let queries: usize =
            (0..WALKS).map(|_| look_up(address, "www.example.com", Library::Musl).1).sum();
        let micros = (cpu_nanos(process) - before) / 1000 / WALKS as u64;
        println!("{what}: {} queries and {micros} µs of CPU for a walk", queries / WALKS);
    }
}
