//! Zones, rules and templates that are at some listeners only.

use crate::server::{BINARY, http, wait_until, zone};
use std::net::SocketAddr;
use std::process::{Command, Output};
use zonda_testkit::process::{Folder, Process, free_port};
use zonda_testkit::upstream::{Record, Reply, always, say, when};
use zonda_testkit::{Question, Upstream, ask};

/// A server with three listeners.
struct Server {
    process: Process,
    listeners: [SocketAddr; 3],
    admin: SocketAddr,
    folder: Folder,
}

impl Server {
    /// Starts a server with what `zones` says, where `L0`, `L1` and `L2` stand for the addresses of
    /// its listeners, and with a file of `example.org`.
    fn start(zones: &str) -> Self {
        let (folder, listeners, admin) = Self::place();
        Self::start_in(folder, (listeners, admin), zones)
    }

    /// A folder, the addresses of listeners, and that of the admin interface.
    fn place() -> (Folder, [SocketAddr; 3], SocketAddr) {
        let [first, second, third, admin] =
            [(); 4].map(|()| SocketAddr::from(([127, 0, 0, 1], free_port())));
        (Folder::new("listeners"), [first, second, third], admin)
    }

    /// Starts a server at these addresses, in a folder with files that `zones` names.
    fn start_in(
        folder: Folder,
        (listeners, admin): ([SocketAddr; 3], SocketAddr),
        zones: &str,
    ) -> Self {
        folder.write("example.org.zone", zone(1));
        write(&folder, (&listeners, admin), zones);
        let mut command = Command::new(BINARY);
        command.args(["serve", "--config"]).arg(folder.path().join("zonda.toml"));
        let process = Process::start(&command, &folder.path().join("log")).unwrap();
        let server = Self { process, listeners, admin, folder };
        wait_until("the server is ready", || server.run(&["ready"]).status.success());
        server
    }

    /// Changes what the configuration says of zones, and has the server read it.
    fn reload(&self, zones: &str) {
        write(&self.folder, (&self.listeners, self.admin), zones);
        let output = self.run(&["reload"]);
        assert!(output.status.success(), "{output:?}");
    }

    /// What `zonda` says to a command that the server carries out.
    fn run(&self, arguments: &[&str]) -> Output {
        let socket = self.folder.path().join("admin.sock");
        Command::new(BINARY).args(arguments).arg("--socket").arg(socket).output().unwrap()
    }

    /// What a listener answers, in a word: data of the first record, or the response code.
    fn says(&self, listener: usize, question: &Question) -> String {
        let reply = ask(self.listeners[listener], question).unwrap();
        let last = reply.answer.last().map(|record| record.data.text.clone());
        last.unwrap_or_else(|| reply.rcode_text())
    }

    /// What all listeners answer to a question, asked several times over UDP and once over TCP.
    fn all_say(&self, name: &str, rtype: &str) -> [String; 3] {
        let question = || Question::new(name, rtype).recursive().edns(1232);
        [0, 1, 2].map(|listener| {
            let first = self.says(listener, &question());
            for _ in 0..5 {
                // Its answer is hot or cached by now, and that of other listeners, too.
                assert_eq!(self.says(listener, &question()), first, "{name} {rtype}");
            }
            assert_eq!(self.says(listener, &question().over_tcp()), first, "{name} {rtype}");
            first
        })
    }
}

/// Writes the configuration.
fn write(folder: &Folder, (listeners, admin): (&[SocketAddr; 3], SocketAddr), zones: &str) {
    let mut text = "version = 1\n".to_owned();
    for address in listeners {
        text += &format!("[[listen]]\naddress = \"{address}\"\n");
    }
    let socket = folder.path().join("admin.sock");
    text += &format!("[admin]\naddress = \"{admin}\"\nsocket = {socket:?}\n{zones}");
    for (number, address) in listeners.iter().enumerate() {
        text = text.replace(&format!("\"L{number}\""), &format!("\"{address}\""));
    }
    folder.write("zonda.toml", text);
}

/// An upstream that has this last octet of an address for every name.
fn upstream(octet: u8) -> Upstream {
    Upstream::start([always().then([say(Reply::address(octet))])])
}

/// A forwarded zone at some listeners.
fn forward(name: &str, upstream: &Upstream, listen: &str) -> String {
    let to = upstream.address;
    format!("[[zone]]\nname = \"{name}\"\n{listen}\n[zone.forward]\nto = [\"{to}\"]\n")
}

/// A zone with records at some listeners.
fn own(listen: &str) -> String {
    format!("[[zone]]\nname = \"example.org\"\nfile = \"example.org.zone\"\n{listen}\n")
}

#[test]
fn a_zone_is_there_for_queries_to_its_listeners_only() {
    let [one, other] = [1, 2].map(upstream);
    let zones = own(r#"listen = ["L0", "L1"]"#)
        + &forward(".", &one, r#"listen = ["L0"]"#)
        + &forward(".", &other, r#"listen = ["L1"]"#);
    let server = Server::start(&zones);
    let version = "\"version 1\"";
    assert_eq!(server.all_say("www.example.org", "TXT"), [version, version, "REFUSED"]);
    assert_eq!(server.all_say("a.example.net", "A"), ["192.0.2.1", "192.0.2.2", "REFUSED"]);
    let is_own = |asked: &zonda_testkit::upstream::ReceivedQuery| asked.name == "a.example.net.";
    assert_eq!((one.count(is_own), other.count(is_own)), (1, 1), "the answer of each is cached");
}

#[test]
fn a_zone_with_records_at_one_listener_is_forwarded_at_another() {
    let upstream = upstream(7);
    let zones =
        own(r#"listen = ["L2"]"#) + &forward("example.org", &upstream, r#"listen = ["L0", "L1"]"#);
    let server = Server::start(&zones);
    assert_eq!(server.all_say("ns.example.org", "A"), ["192.0.2.7", "192.0.2.7", "192.0.2.1"]);
    let page = http(server.admin, "GET /metrics HTTP/1.1\r\n").1;
    let series = page.lines().filter(|line| !line.starts_with('#'));
    let mut names: Vec<&str> =
        series.filter_map(|line| line.rsplit_once(' ')).map(|it| it.0).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "no series is there twice");
}

#[test]
fn an_answer_of_upstreams_leads_into_a_zone_where_the_listener_has_that() {
    let alias = Reply::empty()
        .answer(Record::alias("ns.example.org"))
        .answer(Record::address(9).of("ns.example.org"));
    let upstream = Upstream::start([
        when(|asked| asked.name.starts_with("alias")).then([say(alias)]),
        always().then([say(Reply::address(9))]),
    ]);
    let zones = own(r#"listen = ["L1"]"#) + &forward(".", &upstream, "");
    let server = Server::start(&zones);
    assert_eq!(server.all_say("alias.example.net", "A"), ["192.0.2.9", "192.0.2.1", "192.0.2.9"]);
}

#[test]
fn a_reload_moves_a_zone_to_another_listener_at_once() {
    let upstream = upstream(3);
    let zones = |listen: &str| own(listen) + &forward(".", &upstream, "");
    let server = Server::start(&zones(r#"listen = ["L0"]"#));
    let said = |server: &Server| server.all_say("ns.example.org", "A");
    assert_eq!(said(&server), ["192.0.2.1", "192.0.2.3", "192.0.2.3"]);
    server.reload(&zones(r#"listen = ["L1", "L2"]"#));
    assert_eq!(said(&server), ["192.0.2.3", "192.0.2.1", "192.0.2.1"]);
    server.reload(&zones(""));
    assert_eq!(said(&server), ["192.0.2.1", "192.0.2.1", "192.0.2.1"]);
    server.reload(&zones(r#"listen = ["L2"]"#));
    assert_eq!(said(&server), ["192.0.2.3", "192.0.2.3", "192.0.2.1"]);
}

#[test]
fn names_of_a_hosts_file_are_at_the_listeners_of_the_zone_that_they_are_in_front_of() {
    let [one, other] = [1, 2].map(upstream);
    let hosts = "hosts = \"hosts\"\nlisten = [\"L0\"]";
    let zones = forward(".", &one, hosts) + &forward(".", &other, r#"listen = ["L1"]"#);
    let (folder, listeners, admin) = Server::place();
    folder.write("hosts", "192.0.2.77 printer.lan\n");
    let server = Server::start_in(folder, (listeners, admin), &zones);
    assert_eq!(server.all_say("printer.lan", "A"), ["192.0.2.77", "192.0.2.2", "REFUSED"]);
    assert_eq!(server.all_say("a.example.net", "A"), ["192.0.2.1", "192.0.2.2", "REFUSED"]);
}

#[test]
fn a_zone_is_transferred_notified_and_changed_at_its_listeners_only() {
    let keys = "transfer = { to = [\"127.0.0.1\"] }\n\
                update = [{ from = [\"127.0.0.1\"], names = \"zone\" }]\nlisten = [\"L1\"]";
    let server = Server::start(&own(keys));
    let dig = |listener: usize, arguments: &[&str]| {
        let address = server.listeners[listener];
        let (ip, port) = (format!("@{}", address.ip()), address.port().to_string());
        let output = Command::new("dig")
            .args([&*ip, "-p", &*port, "+tries=1", "+time=5"])
            .args(arguments)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(dig(1, &["example.org", "AXFR"]).contains("version 1"));
    let elsewhere = dig(0, &["example.org", "AXFR"]);
    assert!(elsewhere.contains("Transfer failed") && !elsewhere.contains("version 1"));
    let update = |listener: usize| {
        let address = server.listeners[listener];
        let text = format!(
            "server {} {}\nzone example.org\nupdate add new{listener}.example.org 60 A 192.0.2.8\n\
             send\n",
            address.ip(),
            address.port()
        );
        let script = server.folder.write("update", text);
        let output = Command::new("nsupdate").arg(script).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(update(1), "");
    assert_eq!(update(2), "update failed: NOTAUTH\n");
    let (added, refused) = (server.all_say("new1.example.org", "A"), "REFUSED");
    assert_eq!(added, [refused, "192.0.2.8", refused]);
}

#[test]
fn rules_and_templates_are_for_queries_to_their_listeners_only() {
    let rules = "[[rewrite]]\nexact = \"www.example.org\"\nto = \"ns.example.org\"\n\
                 listen = [\"L1\"]\n\
                 [[template]]\nzones = [\"made.test\"]\n\
                 answer = [\"{{ .Name }} 60 IN A 192.0.2.5\"]\n\
                 listen = [\"L2\"]\n";
    let server = Server::start(&(own("") + rules));
    assert_eq!(server.all_say("www.example.org", "A"), ["NOERROR", "192.0.2.1", "NOERROR"]);
    assert_eq!(server.all_say("a.made.test", "A"), ["REFUSED", "REFUSED", "192.0.2.5"]);
}

#[test]
fn explain_tells_what_a_listener_has() {
    let server = Server::start(&own(r#"listen = ["L1"]"#));
    let told = |listener: usize| {
        let address = server.listeners[listener].to_string();
        let output = server.run(&["explain", "www.example.org", "TXT", "--listener", &address]);
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(told(1).contains("example.org. is the longest match"), "{}", told(1));
    assert!(told(0).contains("no zone of this server holds www.example.org."), "{}", told(0));
}

#[test]
fn one_listener_forwards_to_another_one_and_a_loop_of_both_is_found() {
    let upstream = upstream(4);
    let to = |to: &str, listen: &str| {
        let zone = format!("[[zone]]\nname = \".\"\nlisten = [\"{listen}\"]\n");
        zone + &format!("[zone.forward]\nto = [\"{to}\"]\n")
    };
    let zones = |last: &str| to("L1", "L0") + &to(last, "L1");
    let server = Server::start(&zones(&upstream.address.to_string()));
    assert_eq!(server.all_say("a.example.net", "A"), ["192.0.2.4", "192.0.2.4", "REFUSED"]);
    server.reload(&zones("L0"));
    let question = Question::new("b.example.net", "A").recursive().edns(1232);
    assert_eq!(server.says(0, &question), "SERVFAIL");
    wait_until("the loop is found", || server.process.log("loop").contains("loop: questions"));
}

#[test]
fn one_address_has_other_zones_than_all_addresses_of_its_port() {
    let folder = Folder::new("listeners");
    folder.write("example.org.zone", zone(1));
    let port = free_port();
    let text = format!(
        "version = 1\n[[listen]]\naddress = \"0.0.0.0:{port}\"\n\
         [[listen]]\naddress = \"127.0.0.1:{port}\"\n\
         [admin]\naddress = \"off\"\nsocket = \"off\"\n"
    );
    let text = text + &own(&format!("listen = [\"127.0.0.1:{port}\"]"));
    let mut command = Command::new(BINARY);
    command.args(["serve", "--config"]).arg(folder.write("zonda.toml", text));
    let process = Process::start(&command, &folder.path().join("log")).unwrap();
    let says = |last: u8, question: &Question| {
        let reply = ask(SocketAddr::from(([127, 0, 0, last], port)), question);
        reply.map_or_else(|error| error.to_string(), |reply| reply.rcode_text())
    };
    let question = Question::new("ns.example.org", "A").edns(1232);
    wait_until(&format!("the server is up: {}", process.log("")), || {
        says(1, &question) == "NOERROR"
    });
    for question in [question.clone(), question.over_tcp()] {
        assert_eq!([1, 2].map(|last| says(last, &question)), ["NOERROR", "REFUSED"]);
    }
}
