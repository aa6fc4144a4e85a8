//! A configuration of named and what was made of it give the same answers.

use super::named::{Server, ZONDA, start_imported, start_named};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;
use zonda_testkit::message::Record;
use zonda_testkit::process::{Folder, free_port};
use zonda_testkit::upstream::{Reply, always, say};
use zonda_testkit::{Message, Peer, PeerKind, Question, Upstream, ask};

/// How much less one TTL may be than the other, seconds: one server had the answer earlier.
const AGE_MAX: u32 = 3;

/// A zone of what resolvers ask for.
fn zone() -> String {
    let mut text = "$TTL 300\n@ SOA ns host 1 7200 3600 1209600 60\n@ NS ns\nns A 192.0.2.1\n\
        @ MX 10 mail\n@ MX 20 mail2\nmail A 192.0.2.2\nmail2 A 192.0.2.3\n\
        alias CNAME www1\nalias2 CNAME alias\nlost CNAME nothing\n*.wild TXT \"wild\"\n\
        empty.non.terminal A 192.0.2.4\nshort 1 A 192.0.2.5\n_sip._udp SRV 1 2 5060 www2\n"
        .to_owned();
    for number in 0..40 {
        let _ =
            writeln!(text, "www{number} A 192.0.2.{number}\nwww{number} AAAA 2001:db8::{number}");
        let _ = writeln!(text, "big TXT \"{number}{}\"", "x".repeat(100));
    }
    text
}

/// A hundred questions about the zones of the test.
fn questions() -> Vec<Question> {
    let mut all = Vec::new();
    let mut add = |name: &str, rtype: &str| {
        all.push(Question::new(name, rtype).recursive().edns(1232));
    };
    for zone in ["corp.example.net", "internal.example"] {
        for number in 0..15 {
            add(&format!("www{number}.{zone}"), "A");
            add(&format!("WWW{number}.{zone}"), "AAAA");
        }
        for name in ["alias", "alias2", "lost", "x.wild", "y.x.wild", "www1", "non.terminal"] {
            add(&format!("{name}.{zone}"), "A");
        }
        for (name, rtype) in [("x.wild", "TXT"), ("_sip._udp", "SRV"), ("alias", "CNAME")] {
            add(&format!("{name}.{zone}"), rtype);
        }
        for rtype in ["MX", "SOA", "NS", "TXT"] {
            add(zone, rtype);
        }
        add(&format!("nothing.{zone}"), "A");
        add(&format!("short.{zone}"), "A");
    }
    for zone in ["corp.example.net", "internal.example"] {
        all.push(Question::new(&format!("big.{zone}"), "TXT").recursive().over_tcp());
    }
    for (name, rtype) in [
        ("localhost", "A"),
        ("localhost", "AAAA"),
        ("localhost", "SOA"),
        ("nothing.localhost", "A"),
        ("1.0.0.127.in-addr.arpa", "PTR"),
        ("2.0.0.127.in-addr.arpa", "PTR"),
    ] {
        all.push(Question::new(name, rtype).recursive().edns(1232));
    }
    assert_eq!(all.len(), 100);
    all
}

/// What of a reply both servers must agree about.
#[derive(PartialEq)]
struct Gist {
    rcode: String,
    flags: u16,
    /// Records in order, and their TTLs.
    answer: Vec<(String, u32)>,
    /// Owners of the SOA records that prove that something does not exist.
    proof: Vec<Vec<u8>>,
}

impl Gist {
    fn of(message: &Message) -> Self {
        const QR_AA_RD_RA: u16 = 0x8580;
        let record = |record: &Record| {
            let text = format!("{:?} {} {}", record.owner, record.record_type, record.data.text);
            (text, record.ttl)
        };
        let mut answer: Vec<_> = message.answer.iter().map(record).collect();
        answer.sort();
        let soa = message.authority.iter().filter(|record| record.record_type == 6);
        let proof = soa.map(|record| record.owner.clone()).collect();
        let flags = message.flags & QR_AA_RD_RA;
        Self { rcode: message.rcode_text(), flags, answer, proof }
    }

    /// Whether the answer is as good as that of named, whose answer may have got less old.
    fn agrees_with(mut self, named: &Self) -> bool {
        for ((_, ttl), (_, known)) in self.answer.iter_mut().zip(&named.answer) {
            *ttl = if ttl.abs_diff(*known) <= AGE_MAX { *known } else { *ttl };
        }
        self == *named
    }
}

/// Asks both servers the same; whatever they do not agree about fails the test.
fn agree(named: &Server, zonda: &Server) {
    let mut wrong = Vec::new();
    for question in questions() {
        let theirs = ask(named.address, &question).unwrap();
        let ours = ask(zonda.address, &question).unwrap();
        if !Gist::of(&ours).agrees_with(&Gist::of(&theirs)) {
            wrong.push(format!("named:\n{theirs}\nzonda:\n{ours}"));
        }
    }
    assert!(wrong.is_empty(), "{} of 100 differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Two servers to forward to: for all names, and for internal ones.
fn upstreams() -> [Peer; 2] {
    let zone = zone();
    ["corp.example.net", "internal.example"]
        .map(|name| Peer::start(PeerKind::Nsd, &[(name, &zone)]))
}

/// The files that Debian puts into `/etc/bind`, their paths in the test's folder; these options
/// and statements are added to them.
fn debian(folder: &Path, options: &str, local: &str) -> Vec<(String, String)> {
    let own = folder.display().to_string();
    let names = ["named.conf", "named.conf.default-zones", "db.0", "db.127", "db.255", "db.local"];
    let read = |name: &str| fs::read_to_string(Path::new("/etc/bind").join(name)).unwrap();
    let mut files: Vec<_> = names
        .iter()
        .map(|name| ((*name).to_owned(), read(name).replace("/etc/bind", &own)))
        .collect();
    let default = read("named.conf.options").replace("/var/cache/bind", &own);
    let default = default.replace("dnssec-validation auto;", options);
    files.push(("named.conf.options".to_owned(), default));
    files.push(("named.conf.local".to_owned(), local.to_owned()));
    files
}

#[test]
fn real_peers_agree_with_the_import_of_debians_configuration() {
    let [all, internal] = upstreams();
    let (all, internal) = (all.address.port(), internal.address.port());
    let files = |folder: &Path, port: u16| {
        let own = folder.display();
        let options = format!(
            "dnssec-validation no; listen-on port {port} {{ 127.0.0.1; }};\n\
             pid-file \"{own}/named.pid\"; session-keyfile \"{own}/session.key\";\n\
             forwarders {{ 127.0.0.1 port {all}; }}; forward only;"
        );
        let options = format!("{options} // listen-on-v6 is below\n");
        let local = format!(
            "controls {{}};\n/* ours */ zone \"internal.example\" {{\n\ttype forward; # only\n\
             \tforwarders {{ 127.0.0.1 port {internal}; }};\n}};\n"
        );
        debian(folder, &options, &local)
            .into_iter()
            .map(|(name, text)| {
                (name, text.replace("listen-on-v6 { any; }", "listen-on-v6 { none; }"))
            })
            .collect()
    };
    let zones = ["localhost", "127.in-addr.arpa"];
    let named = start_named(&zones, files);
    let zonda = start_imported(&named.folder.path().join("named.conf"), &zones, "off");
    agree(&named, &zonda);
}

#[test]
fn real_peers_agree_with_the_import_of_a_configuration_that_only_forwards() {
    let [all, internal] = upstreams();
    let (all, internal) = (all.address.port(), internal.address.port());
    let statistics = free_port();
    let files = |folder: &Path, port: u16| {
        let own = folder.display();
        let text = format!(
            "options {{ allow-recursion {{ any; }}; allow-query {{ any; }};\n\
             allow-transfer {{ none; }}; listen-on port {port} {{ any; }};\n\
             listen-on-v6 {{ none; }};\n\
             dnssec-validation no; querylog yes; directory \"{own}\";\n\
             pid-file \"{own}/named.pid\"; session-keyfile \"{own}/session.key\"; }};\n\
             controls {{}};\n\
             statistics-channels {{ inet 127.0.0.1 port {statistics} allow {{ 127.0.0.1; }}; }};\n\
             logging {{ channel stderr_log {{ stderr; }}; category queries {{ stderr_log; }}; }};\n\
             zone \"localhost\" {{ type master; file \"/etc/bind/db.local\"; }};\n\
             zone \"127.in-addr.arpa\" {{ type master; file \"/etc/bind/db.127\"; }};\n\
             zone \"internal.example\" {{ type forward; forward only;\n\
             forwarders {{ 127.0.0.1 port {internal}; }}; }};\n\
             zone \".\" {{ type forward; forward only;\n\
             forwarders {{ 127.0.0.1 port {all}; }}; }};\n"
        );
        vec![("named.conf".to_owned(), text)]
    };
    let zones = ["localhost", "127.in-addr.arpa"];
    let named = start_named(&zones, files);
    let ours = format!("127.0.0.1:{}", free_port());
    let zonda = start_imported(&named.folder.path().join("named.conf"), &zones, &ours);
    agree(&named, &zonda);
}

#[test]
fn real_peers_agree_about_who_has_others_asked() {
    let [all, _] = upstreams();
    let all = all.address.port();
    for (recursion, cache, expected) in [
        ("any", "127.0.0.2", 0),
        ("127.0.0.2", "any", 0), // named gives what it has, which is nothing
        ("any", "127.0.0.1", 1),
    ] {
        let files = |folder: &Path, port: u16| {
            let own = folder.display();
            let text = format!(
                "options {{ allow-recursion {{ {recursion}; }}; allow-query-cache {{ {cache}; }};\n\
                 listen-on port {port} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }};\n\
                 dnssec-validation no; directory \"{own}\"; pid-file \"{own}/named.pid\";\n\
                 session-keyfile \"{own}/session.key\"; forward only;\n\
                 forwarders {{ 127.0.0.1 port {all}; }}; }};\ncontrols {{}};\n\
                 zone \"localhost\" {{ type master; file \"/etc/bind/db.local\"; }};\n"
            );
            vec![("named.conf".to_owned(), text)]
        };
        let named = start_named(&["localhost"], files);
        let conf = named.folder.path().join("named.conf");
        let zonda = start_imported(&conf, &["localhost"], "off");
        let question = Question::new("www1.corp.example.net", "A").recursive().edns(1232);
        let answers = |server: &Server| ask(server.address, &question).unwrap().answer.len();
        assert_eq!([&named, &zonda].map(answers), [expected; 2], "{recursion} {cache}");
    }
}

#[test]
fn names_of_a_secondary_zone_reach_no_server_outside() {
    const NOT_READY: [u8; 2] = [0, 14]; // rfc8914
    let outside = Upstream::start([always().then([say(Reply::address(7))])]);
    let folder = Folder::new("secondary");
    let text = format!(
        "options {{ forward only; forwarders {{ 127.0.0.1 port {}; }}; }};\n\
         zone \"localhost\" {{ type primary; file \"/etc/bind/db.local\"; }};\n\
         zone \"corp.example\" {{ type secondary; primaries {{ 127.0.0.1 port {}; }}; }};\n",
        outside.address.port(),
        free_port() // of no primary
    );
    let zonda = start_imported(&folder.write("named.conf", text), &["localhost"], "off");
    let asked =
        |name| ask(zonda.address, &Question::new(name, "A").recursive().edns(1232)).unwrap();
    for name in ["corp.example", "secret.corp.example"] {
        let reply = asked(name);
        assert_eq!(reply.rcode_text(), "SERVFAIL", "{reply}");
        let options = &reply.edns.unwrap().options;
        assert!(options.iter().any(|(code, data)| *code == 15 && data[..2] == NOT_READY));
    }
    assert_eq!(asked("www.example").answer.len(), 1);
    assert_eq!(outside.count(|asked| asked.name.ends_with("corp.example.")), 0);
}

#[test]
fn what_is_left_out_goes_to_standard_error_and_a_file_is_not_overwritten() {
    let folder = Folder::new("import");
    let conf = folder.write("named.conf", "options { recursion no;\n dnssec-validation yes; };");
    let run = || {
        Command::new(ZONDA)
            .arg("import")
            .arg(&conf)
            .args(["-o"])
            .arg(folder.path().join("zonda.toml"))
            .output()
            .unwrap()
    };
    let first = run();
    assert!(first.status.success());
    assert_eq!(
        String::from_utf8_lossy(&first.stderr),
        format!(
            "{}:2: differs: dnssec-validation yes: answers are not validated, and AD is not set\n",
            conf.display()
        )
    );
    let second = run();
    assert!(!second.status.success());
    let told = String::from_utf8_lossy(&second.stderr);
    assert!(told.contains("it exists already"), "{told}");
}

#[test]
fn a_broken_configuration_is_told_with_its_line_and_nothing_is_written() {
    let folder = Folder::new("import");
    let conf = folder.write("named.conf", "options {\n recursion no\n};\n");
    let output = folder.path().join("zonda.toml");
    let run = Command::new(ZONDA).arg("import").arg(&conf).arg("-o").arg(&output).output().unwrap();
    assert_eq!(run.status.code(), Some(2));
    let expected = format!("zonda: {}:3:1: expected `;`, found `}}`\n", conf.display());
    assert_eq!(String::from_utf8_lossy(&run.stderr), expected);
    assert!(!output.exists());
}
