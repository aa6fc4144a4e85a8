//! A node's own DNS cache, in a network that each test has to itself: its interface, TCP to the
//! cluster's DNS, stale answers, and the ConfigMap of kube-dns.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use zonda_testkit::network::{ip, is_own_network};
use zonda_testkit::process::{Folder, Process};
use zonda_testkit::{Peer, PeerKind};

const ZONDA: &str = env!("CARGO_BIN_EXE_zonda");
/// The address of the node's cache.
const ADDRESS: &str = "169.254.20.10";
/// A cluster's zone whose records have a short TTL.
const CLUSTER: &str = "$TTL 1\n@ SOA ns.dns hostmaster 1 2h 30m 2w 5\n  NS ns.dns\n\
                       ns.dns A 10.96.0.10\nweb.shop.svc A 10.96.0.20\n*.many.svc A 10.96.0.21\n";
/// How long what is expected may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(20);
/// Time after which answers of the zone have expired.
const EXPIRY: Duration = Duration::from_millis(2200);

/// Runs a program; returns what it prints.
fn run(program: &str, words: &str) -> String {
    let output = Command::new(program).args(words.split_whitespace()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Waits until a program prints a text.
fn wait_for(program: &str, words: &str, text: &str) -> String {
    let limit = Instant::now() + LIMIT;
    loop {
        let printed = run(program, words);
        if printed.contains(text) {
            return printed;
        }
        assert!(Instant::now() < limit, "`{program} {words}` has no {text}:\n{printed}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// What `dig` prints of a question to the node's cache.
fn dig(words: &str) -> String {
    run("dig", &format!("@{ADDRESS} +time=2 +tries=1 {words}"))
}

/// Waits until `dig` prints a text of a question to the node's cache.
fn dig_until(words: &str, text: &str) -> String {
    wait_for("dig", &format!("@{ADDRESS} +time=2 +tries=1 {words}"), text)
}

/// Whether there is an interface of the usual name.
fn has_interface() -> bool {
    ip("link").contains("nodelocaldns")
}

/// A server that is configured by lines in a folder.
fn serve(folder: &Folder, log: &str, lines: &str, flags: &[&str]) -> Process {
    let socket = folder.path().join("zonda.sock");
    let text = format!(
        "version = 1\nworkers = 1\nwatch-interval = \"100 ms\"\n{lines}\n[admin]\n\
         address = \"127.0.0.1:9153\"\nsocket = \"{}\"\n",
        socket.display()
    );
    let file = folder.write("zonda.toml", text);
    let mut command = Command::new(ZONDA);
    command.args(["serve", "--config"]).arg(file).args(flags);
    Process::start(&command, &folder.path().join(log)).unwrap()
}

/// The lines of a server that answers for the cluster itself, on its own interface.
fn with_zone(folder: &Folder, addresses: &str) -> String {
    let zone = folder.write("cluster.zone", CLUSTER);
    let zone = zone.display();
    format!(
        "[[zone]]\nname = \"cluster.local\"\nfile = \"{zone}\"\n[node-local]\n\
         address = [{addresses}]"
    )
}

/// The value of a metric.
fn metric(name: &str) -> String {
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], 9153));
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
    let page = std::io::read_to_string(stream).unwrap();
    let line = page.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    line.rsplit(' ').next().unwrap_or_default().to_owned()
}

/// Waits until a process has ended, which another one replaces.
fn await_end(former: &mut Process, next: &Process) {
    let limit = Instant::now() + LIMIT;
    while !former.ended() {
        assert!(Instant::now() < limit, "{}\n{}", former.log(""), next.log(""));
        thread::sleep(Duration::from_millis(5));
    }
}

/// Checks that the node's cache answers at all of its addresses, over UDP and TCP.
fn assert_answers() {
    for words in [
        "@169.254.20.10 web.shop.svc.cluster.local +short",
        "@169.254.20.10 +tcp web.shop.svc.cluster.local +short",
        "@fd00::10 web.shop.svc.cluster.local +short",
        "@fd00::10 +tcp web.shop.svc.cluster.local +short",
    ] {
        assert_eq!(wait_for("kdig", words, "10.96.0.20").trim(), "10.96.0.20", "{words}");
    }
}

#[test]
fn the_interface_is_made_kept_after_kill_made_again_and_removed_at_the_end() {
    let test = "the_interface_is_made_kept_after_kill_made_again_and_removed_at_the_end";
    if !is_own_network(&format!("node_local::{test}")) {
        return;
    }
    let folder = Folder::new("node-local");
    let lines = with_zone(&folder, "\"169.254.20.10\", \"fd00::10\"");
    let mut first = serve(&folder, "first.log", &lines, &[]);
    assert_answers();

    ip("link delete dev nodelocaldns");
    assert_answers();
    ip("address delete 169.254.20.10/32 dev nodelocaldns");
    assert_answers();
    assert!(!first.log_soon("the interface was gone and is made again").is_empty());
    assert!(!first.log_soon("parts of the interface were gone and are back").is_empty());
    assert_eq!(metric("zonda_interface_repairs_total{result=\"made\"}"), "2");

    first.signal("KILL");
    while !first.ended() {
        thread::sleep(Duration::from_millis(5));
    }
    assert!(has_interface(), "what a process left that was killed");
    let mut second = serve(&folder, "second.log", &lines, &[]);
    assert_answers();
    assert!(!second.log_soon("interface taken over").is_empty(), "{}", second.log(""));

    second.signal("TERM");
    let limit = Instant::now() + LIMIT;
    while !second.ended() {
        assert!(Instant::now() < limit, "{}", second.log(""));
        thread::sleep(Duration::from_millis(5));
    }
    assert!(!has_interface(), "{}", second.log(""));
}

#[test]
fn a_successor_keeps_the_interface_and_one_that_does_not_start_changes_nothing() {
    let test = "a_successor_keeps_the_interface_and_one_that_does_not_start_changes_nothing";
    if !is_own_network(&format!("node_local::{test}")) {
        return;
    }
    let folder = Folder::new("node-local");
    let lines = with_zone(&folder, "\"169.254.20.10\", \"fd00::10\"");
    let mut first = serve(&folder, "first.log", &lines, &[]);
    assert_answers();
    let alias = || ip("link show dev nodelocaldns").lines().last().unwrap().to_owned();
    let all = || ip("address show dev nodelocaldns");
    let (before, addresses) = (alias(), all());

    let other = with_zone(&folder, "\"169.254.20.10\", \"169.254.20.11\"");
    let mut failing = serve(&folder, "failing.log", &other, &[]);
    let limit = Instant::now() + LIMIT;
    while !failing.ended() {
        assert!(Instant::now() < limit, "two servers have the same addresses");
        thread::sleep(Duration::from_millis(5));
    }
    assert!(!failing.log("interface taken over").is_empty(), "{}", failing.log(""));
    assert!(!failing.log("the server ends").is_empty(), "{}", failing.log(""));
    assert_eq!((alias(), all()), (before.clone(), addresses));
    assert_answers();

    let mut second = serve(&folder, "second.log", &lines, &["--take-over"]);
    await_end(&mut first, &second);
    assert_answers();
    assert_ne!(alias(), before);

    // One address less, and then another name of the interface.
    let shown = || ip("address show");
    let fewer = with_zone(&folder, "\"169.254.20.10\"");
    let mut third = serve(&folder, "third.log", &fewer, &["--take-over"]);
    await_end(&mut second, &third);
    assert!(!shown().contains("fd00::10"), "{}", shown());
    let renamed = format!("{fewer}\ninterface = \"dns0\"");
    let mut fourth = serve(&folder, "fourth.log", &renamed, &["--take-over"]);
    await_end(&mut third, &fourth);
    assert!(!has_interface(), "{}", shown());
    assert_eq!(dig("web.shop.svc.cluster.local +short").trim(), "10.96.0.20");
    fourth.signal("TERM");
    while !fourth.ended() {
        thread::sleep(Duration::from_millis(5));
    }
    assert!(!shown().contains(ADDRESS), "{}", shown());
}

#[test]
fn a_start_without_the_right_to_make_interfaces_tells_which_one_is_missing() {
    let test = "a_start_without_the_right_to_make_interfaces_tells_which_one_is_missing";
    if !is_own_network(&format!("node_local::{test}")) {
        return;
    }
    let folder = Folder::new("node-local");
    let lines = with_zone(&folder, "\"169.254.20.10\"");
    let file = folder.write("zonda.toml", format!("version = 1\n{lines}\n"));
    let start = |command: &mut Command| {
        command.args([ZONDA, "serve", "--config"]).arg(&file);
        let output = command.output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let told = start(Command::new("setpriv").arg("--bounding-set=-net_admin"));
    assert!(told.contains("give it CAP_NET_ADMIN"), "{told}");
    ip("link add nodelocaldns type bridge");
    let told = start(Command::new("env").arg("LC_ALL=C"));
    assert!(told.contains("which is no dummy interface (kind bridge)"), "{told}");
    assert!(has_interface(), "it is not Zonda's");
}

/// A number of the kernel's about the network of the test: of `/proc/net/snmp`.
fn counter(protocol: &str, name: &str) -> u64 {
    let text = fs::read_to_string("/proc/net/snmp").unwrap();
    let mut rows = text.lines().filter_map(|line| line.strip_prefix(protocol)?.strip_prefix(':'));
    let (names, values) = (rows.next().unwrap(), rows.next().unwrap());
    let place = names.split_whitespace().position(|it| it == name).unwrap();
    values.split_whitespace().nth(place).unwrap().parse().unwrap()
}

#[test]
fn the_cluster_dns_is_asked_over_one_tcp_connection_and_its_answers_outlive_it() {
    let test = "the_cluster_dns_is_asked_over_one_tcp_connection_and_its_answers_outlive_it";
    if !is_own_network(&format!("node_local::{test}")) {
        return;
    }
    let cluster_dns = Peer::start(PeerKind::Knot, &[("cluster.local.", CLUSTER)]);
    let folder = Folder::new("node-local");
    let upstream = cluster_dns.address;
    let lines = format!(
        "[node-local]\naddress = [\"{ADDRESS}\"]\n[[zone]]\nname = \"cluster.local\"\n\
         [zone.forward]\nto = [\"tcp://{upstream}\"]"
    );
    let _node = serve(&folder, "log", &lines, &[]);
    dig_until("web.shop.svc.cluster.local +short", "10.96.0.20");

    let (connections, datagrams) = (counter("Tcp", "ActiveOpens"), counter("Udp", "OutDatagrams"));
    for number in 0..20 {
        let answer = dig(&format!("{number}.many.svc.cluster.local +short"));
        assert_eq!(answer.trim(), "10.96.0.21");
    }
    let opened = counter("Tcp", "ActiveOpens") - connections;
    assert!(opened <= 1, "{opened} connections for 20 questions one after the other");
    let sent = counter("Udp", "OutDatagrams") - datagrams;
    assert_eq!(sent, 40, "questions to the node's cache and its replies, and no others");

    drop(cluster_dns);
    thread::sleep(EXPIRY);
    let stale = dig("web.shop.svc.cluster.local");
    assert!(stale.contains("10.96.0.20") && stale.contains("EDE: 3 (Stale Answer)"), "{stale}");
    assert!(dig("other.shop.svc.cluster.local +time=10").contains("SERVFAIL"));
}

/// Replaces the files of a ConfigMap as the kubelet does.
fn mount(directory: &Path, version: u32, files: &[(&str, &str)]) {
    let own = directory.join(format!("..version_{version}"));
    fs::create_dir_all(&own).unwrap();
    for (name, text) in files {
        fs::write(own.join(name), text).unwrap();
        let link = directory.join(name);
        let _ = std::os::unix::fs::symlink(Path::new("..data").join(name), link);
    }
    std::os::unix::fs::symlink(&own, directory.join("..data_tmp")).unwrap();
    fs::rename(directory.join("..data_tmp"), directory.join("..data")).unwrap();
}

#[test]
fn stub_domains_and_upstreams_of_a_config_map_come_and_go_while_the_node_answers() {
    let test = "stub_domains_and_upstreams_of_a_config_map_come_and_go_while_the_node_answers";
    if !is_own_network(&format!("node_local::{test}")) {
        return;
    }
    let zone = |address: &str| format!("$TTL 60\n@ SOA ns hostmaster 1 1 1 1 1\nwww A {address}\n");
    let acme = Peer::start(PeerKind::Nsd, &[("acme.local.", &zone("10.1.0.1"))]);
    let (first, second) = (
        Peer::start(PeerKind::Knot, &[("example.", &zone("10.1.0.2"))]),
        Peer::start(PeerKind::Knot, &[("example.", &zone("10.1.0.3"))]),
    );
    let folder = Folder::new("node-local");
    let directory = folder.path().join("kube-dns");
    mount(&directory, 1, &[]);
    let lines = format!(
        "[node-local]\naddress = [\"{ADDRESS}\"]\n[kube-dns]\nconfig-map = \"{}\"\n\
         [[zone]]\nname = \".\"\n[zone.forward]\nto = [\"{}\"]",
        directory.display(),
        first.address
    );
    let node = serve(&folder, "log", &lines, &[]);
    dig_until("www.example +short", "10.1.0.2");
    assert!(dig("www.acme.local").contains("NXDOMAIN"), "the names of `local` are special");

    let stubs = format!("{{\"acme.local\": [\"{}\"]}}", acme.address);
    let upstreams = format!("[\"{}\"]", second.address);
    mount(&directory, 2, &[("stubDomains", &stubs), ("upstreamNameservers", &upstreams)]);
    dig_until("www.acme.local +short", "10.1.0.1");
    dig_until("www.example +short", "10.1.0.3");
    assert_eq!(metric("zonda_config_map_in_force"), "1");

    mount(&directory, 3, &[("stubDomains", "{\n  \"acme.local\": [\"10.1.0.1\",]\n}")]);
    assert!(node.log_soon("stubDomains:2:29: expected value").contains("ERROR"));
    let mut reload = Command::new(ZONDA); // the whole configuration is read anew
    reload.arg("reload").env("ZONDA_ADMIN_SOCKET", folder.path().join("zonda.sock"));
    let reloaded = reload.output().unwrap();
    assert!(reloaded.status.success(), "{}", String::from_utf8_lossy(&reloaded.stderr));
    assert_eq!(dig("www.acme.local +short").trim(), "10.1.0.1");
    assert_eq!(dig("www.example +short").trim(), "10.1.0.3");
    assert_eq!(metric("zonda_config_map_in_force"), "0");

    mount(&directory, 4, &[]);
    dig_until("www.example +short", "10.1.0.2");
    dig_until("www.acme.local", "NXDOMAIN");
    assert_eq!(metric("zonda_config_map_in_force"), "1");
}

/// Starts a server of one zone on port 53 of an address.
fn serve_zone(folder: &Folder, address: &str, zone: &str, text: &str) -> Process {
    ip(&format!("address add {address}/32 dev lo"));
    let file = format!("{zone}={}", folder.write("0.zone", text).display());
    let mut command = Command::new(ZONDA);
    command.args(["serve", "--workers", "1", "--listen", &format!("{address}:53")]);
    command.args(["--zone", &file]).env("ZONDA_ADMIN_SOCKET", "off");
    command.env("ZONDA_ADMIN_ADDRESS", "off");
    Process::start(&command, &folder.path().join("log")).unwrap()
}

/// A zone outside of the cluster.
const OUTSIDE: &str = "@ 60 SOA ns hostmaster 1 1 1 1 1\nwww 60 A 192.0.2.1\n";

#[test]
fn the_example_of_the_page_is_a_whole_node_cache() {
    if !is_own_network("node_local::the_example_of_the_page_is_a_whole_node_cache") {
        return;
    }
    let (cluster, outside) = (Folder::new("cluster-dns"), Folder::new("outside"));
    let _cluster = serve_zone(&cluster, "10.96.0.10", "cluster.local", CLUSTER);
    let _outside = serve_zone(&outside, "192.0.2.53", "example.org", OUTSIDE);
    let page = include_str!("../../../../docs/node-local.md");
    let example = page.split_once("```toml zonda.toml\n").unwrap().1.split_once("```").unwrap().0;
    let folder = Folder::new("node-local");
    let map = folder.path().join("kube-dns");
    mount(&map, 1, &[]);
    let text = example.replace("/etc/kube-dns", map.to_str().unwrap());
    assert_ne!(text, example);
    let file = folder.write("zonda.toml", text);
    let mut command = Command::new(ZONDA);
    command.args(["serve", "--config"]).arg(file);
    let _node = Process::start(&command, &folder.path().join("log")).unwrap();
    dig_until("web.shop.svc.cluster.local +short", "10.96.0.20");
    dig_until("www.example.org +short", "192.0.2.1");
    mount(&map, 2, &[("upstreamNameservers", "[\"192.0.2.54\"]")]);
    let other = Folder::new("other");
    let _other = serve_zone(&other, "192.0.2.54", "example.net", OUTSIDE);
    dig_until("www.example.net +short", "192.0.2.1");
}

#[test]
fn an_imported_corefile_of_nodelocal_with_its_addresses_is_a_whole_node_cache() {
    let test = "an_imported_corefile_of_nodelocal_with_its_addresses_is_a_whole_node_cache";
    if !is_own_network(&format!("node_local::{test}")) {
        return;
    }
    let (cluster, outside) = (Folder::new("cluster-dns"), Folder::new("outside"));
    let _cluster = serve_zone(&cluster, "10.96.0.11", "cluster.local", CLUSTER);
    let _outside = serve_zone(&outside, "10.96.0.12", "example.org", OUTSIDE);
    let folder = Folder::new("node-local");
    let template = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../crates/import/tests/corefile/nodelocal.corefile"
    );
    let corefile = folder.path().join("Corefile");
    fs::copy(template, &corefile).unwrap();
    let output = Command::new(ZONDA)
        .args(["import"])
        .arg(&corefile)
        .args(["--output"])
        .arg(folder.path().join("imported.toml"))
        .env("__PILLAR__LOCAL__DNS__", ADDRESS)
        .env("__PILLAR__DNS__SERVER__", "10.96.0.10")
        .env("__PILLAR__CLUSTER__DNS__", "10.96.0.11")
        .env("__PILLAR__UPSTREAM__SERVERS__", "10.96.0.12")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    let imported = fs::read_to_string(folder.path().join("imported.toml"));
    let imported = imported.unwrap_or_else(|error| panic!("{error}: {told}"));
    let file = folder.write(
        "zonda.toml",
        format!("{imported}\n[node-local]\naddress = [\"{ADDRESS}\", \"10.96.0.10\"]\n"),
    );
    let mut command = Command::new(ZONDA);
    command.args(["serve", "--config"]).arg(file);
    let mut node = Process::start(&command, &folder.path().join("log")).unwrap();
    for address in [ADDRESS, "10.96.0.10"] {
        let server = format!("@{address} +time=2 +tries=1 +short");
        wait_for("dig", &format!("{server} web.shop.svc.cluster.local"), "10.96.0.20");
        wait_for("dig", &format!("{server} www.example.org"), "192.0.2.1");
    }
    node.signal("TERM");
    while !node.ended() {
        thread::sleep(Duration::from_millis(5));
    }
    assert!(!has_interface());
}
