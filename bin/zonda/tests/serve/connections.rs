//! Names that servers answer for which are asked over connections, with Unbound as the server.

use super::https_server::{ELSEWHERE, Head, HttpsServer};
use super::quic_server::QuicServer;
use super::server::Server;
use rcgen::{
    BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, PublicKeyData, date_time_ymd,
};
use std::net::SocketAddr;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use zonda_testkit::generate::Zone;
use zonda_testkit::process::{Folder, Process, free_port, installed, start_on_free_port};
use zonda_testkit::sign::{Denial, sign};
use zonda_testkit::upstream::{Reply, always, say};
use zonda_testkit::{Message, Question, Upstream, ask};

/// Unbound with `example.net` of its own, over UDP, TCP, TLS and HTTPS.
struct Unbound {
    _process: Process,
    address: SocketAddr,
    tls_port: u16,
    https_port: u16,
    folder: Folder,
}

/// How a certificate of a test is made.
struct Certificate {
    /// The name or address that it is for.
    subject: &'static str,
    /// The year in which it ends.
    last_year: i32,
}

const SOUND: Certificate = Certificate { subject: "dns.example.net", last_year: 2999 };

impl Unbound {
    /// Starts it with a certificate and these lines in its configuration.
    fn start(certificate: &Certificate, lines: &str) -> Self {
        let folder = Folder::new("unbound");
        certificate.write(&folder);
        let (tls_port, https_port) = (free_port(), free_port());
        let path = installed("unbound").expect("`make packages` installs unbound");
        let start = |folder: &Folder, port: u16| {
            let directory = folder.path().display();
            let text = format!(
                "server:\n directory: \"{directory}\"\n chroot: \"\"\n username: \"\"\n pidfile: \
                 \"\"\n use-syslog: no\n logfile: \"\"\n do-daemonize: no\n module-config: \
                 iterator\n interface: 127.0.0.1@{port}\n interface: 127.0.0.1@{tls_port}\n \
                 tls-port: {tls_port}\n interface: 127.0.0.1@{https_port}\n https-port: \
                 {https_port}\n http-endpoint: /dns-query\n tls-service-key: key.pem\n \
                 tls-service-pem: cert.pem\n \
                 local-zone: example.net redirect\n local-data: 'example.net 60 A 192.0.2.7'\n \
                 local-data: 'example.net 60 SOA ns host 1 2 3 4 5'\n {lines}\n\
                 remote-control:\n control-enable: no\n"
            );
            let mut command = Command::new(&path);
            command.arg("-d").arg("-c").arg(folder.write("unbound.conf", text));
            command
        };
        let (process, address) = start_on_free_port("unbound", &folder, &["example.net"], start);
        Self { _process: process, address, tls_port, https_port, folder }
    }

    /// A path in its folder, as a configuration writes it.
    fn file(&self, name: &str) -> String {
        format!("{:?}", self.folder.path().join(name))
    }
}

impl Certificate {
    /// Writes `key.pem`, `cert.pem`, `ca.pem`, and `pin`.
    fn write(&self, folder: &Folder) {
        let ca_key = KeyPair::generate().unwrap();
        let mut ca = CertificateParams::new(Vec::new()).unwrap();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        folder.write("ca.pem", ca.self_signed(&ca_key).unwrap().pem());
        let key = KeyPair::generate().unwrap();
        let mut own = CertificateParams::new(vec![self.subject.to_owned()]).unwrap();
        own.not_before = date_time_ymd(2020, 1, 1);
        own.not_after = date_time_ymd(self.last_year, 1, 1);
        let own = own.signed_by(&key, &Issuer::new(ca, ca_key)).unwrap();
        folder.write("cert.pem", own.pem());
        folder.write("key.pem", key.serialize_pem());
        folder.write("key.der", key.subject_public_key_info());
    }
}

/// A server that forwards all names with these keys of `[zone.forward]`.
fn forwarder(keys: &str) -> Server {
    Server::start(&[], &format!("[[zone]]\nname = \".\"\n[zone.forward]\n{keys}\n"))
}

fn question(server: &Server, number: u32) -> Message {
    let name = format!("name{number}.example.net");
    let question = Question::new(&name, "A").recursive().edns(1232);
    ask(server.zonda.address, &question).unwrap()
}

/// Asks for a name that is not known yet, and expects its answer.
fn expect(server: &Server, number: u32) {
    let reply = question(server, number);
    let data: Vec<_> = reply.answer.iter().map(|record| &*record.data.text).collect();
    assert_eq!(data, ["192.0.2.7"], "{number}: {reply:?}");
}

/// The hash of Unbound's key, as OpenSSL makes it.
fn pin(unbound: &Unbound) -> String {
    let script = format!("openssl dgst -sha256 -binary {} | base64", unbound.file("key.der"));
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    format!("sha256/{}", String::from_utf8(output.stdout).unwrap().trim())
}

#[test]
fn queries_share_connections_over_tcp_tls_https_and_quic() {
    let unbound = Unbound::start(&SOUND, "");
    let quic_server = QuicServer::start(unbound.folder.path());
    let quic = quic_server.address;
    let Unbound { address, tls_port, https_port, .. } = unbound;
    let ca = unbound.file("ca.pem");
    for keys in [
        format!("to = \"tcp://{address}\""),
        format!("to = \"tls://127.0.0.1:{tls_port}#dns.example.net\"\nca-file = {ca}"),
        format!("to = \"tls://127.0.0.1:{tls_port}\"\npins = \"{}\"", pin(&unbound)),
        format!("to = \"https://127.0.0.1:{https_port}#dns.example.net\"\nca-file = {ca}"),
        format!("to = \"https://127.0.0.1:{https_port}\"\npins = \"{}\"", pin(&unbound)),
        format!("to = \"quic://{quic}#dns.example.net\"\nca-file = {ca}"),
        format!("to = \"quic://{quic}\"\npins = \"{}\"", pin(&unbound)),
    ] {
        let server = forwarder(&keys);
        (0..50).for_each(|number| expect(&server, number));
        let list = server.get("/v1/upstreams").1;
        for part in ["\"opened\": 1,", "\"reused\": 49", "\"failure\": null", "\"answered\": 50"] {
            assert!(list.contains(part), "no {part} in {list} with {keys}");
        }
    }
}

#[test]
fn a_path_that_is_not_there_is_told_to_clients_and_to_who_looks_after_the_server() {
    let unbound = Unbound::start(&SOUND, "");
    let (port, ca) = (unbound.https_port, unbound.file("ca.pem"));
    let keys = format!("to = \"https://127.0.0.1:{port}/q#dns.example.net\"\nca-file = {ca}");
    let server = forwarder(&keys);
    let reply = question(&server, 0);
    assert_eq!(reply.rcode_text(), "SERVFAIL");
    let texts = &reply.edns.as_ref().unwrap().options;
    let texts: Vec<_> = texts.iter().map(|(_, data)| String::from_utf8_lossy(data)).collect();
    assert!(texts.iter().any(|text| text.contains("HTTP status 404")), "{texts:?}");
    let list = server.get("/v1/upstreams").1;
    assert!(list.contains("\"failure\": \"HTTP status 404\""), "{list}");
}

/// The key that has a server asked over HTTPS whose certificate is in a folder.
fn over_https(server: &HttpsServer, folder: &Folder) -> (String, String) {
    let ca = format!("ca-file = {:?}", folder.path().join("ca.pem"));
    (format!("https://127.0.0.1:{}#dns.example.net", server.address.port()), ca)
}

/// The extended errors of a reply, as text.
fn extended_errors(reply: &Message) -> String {
    let options = &reply.edns.as_ref().unwrap().options;
    options.iter().map(|(_, data)| String::from_utf8_lossy(data).into_owned()).collect()
}

#[test]
fn a_status_of_http_that_is_no_answer_is_made_good_by_another_server_and_else_told() {
    let folder = Folder::new("https");
    SOUND.write(&folder);
    let sound = Upstream::start([always().then([say(Reply::address(7))])]);
    let heads: [Head; 4] = [
        (500, &[]),
        (429, &[("retry-after", "60")]),
        (302, &[("location", ELSEWHERE)]),
        (307, &[("location", ELSEWHERE)]),
    ];
    for head in heads {
        let https = HttpsServer::start(folder.path(), head);
        let (to, ca) = over_https(&https, &folder);
        let both = format!("to = [\"{to}\", \"{}\"]\npolicy = \"in-order\"\n{ca}", sound.address);
        let server = forwarder(&both);
        let asked_at = Instant::now();
        (0..10).for_each(|number| expect(&server, number));
        assert!(asked_at.elapsed() < Duration::from_secs(2), "{head:?}");
        assert!(https.requests() >= 1, "{head:?}");
        let alone = forwarder(&format!("to = \"{to}\"\n{ca}"));
        let reply = question(&alone, 0);
        assert_eq!(reply.rcode_text(), "SERVFAIL", "{head:?}");
        let told = extended_errors(&reply);
        assert!(told.contains(&format!("HTTP status {}", head.0)), "{told}");
        assert_eq!(https.strayed(), 0, "{head:?}: a redirection is not followed");
    }
}

#[test]
fn a_server_that_wants_to_be_left_alone_for_a_time_is_asked_after_it() {
    let folder = Folder::new("https");
    SOUND.write(&folder);
    let https = HttpsServer::start(folder.path(), (429, &[("retry-after", "3")]));
    let (to, ca) = over_https(&https, &folder);
    let server = forwarder(&format!("to = \"{to}\"\n{ca}"));
    assert_eq!(question(&server, 0).rcode_text(), "SERVFAIL");
    let (left_alone_at, requests) = (Instant::now(), https.requests());
    https.now_says((200, &[]));
    for number in 1..20 {
        let reply = question(&server, number);
        if left_alone_at.elapsed() > Duration::from_millis(2500) {
            break;
        }
        assert_eq!(reply.rcode_text(), "SERVFAIL");
        assert_eq!(https.requests(), requests, "it is left alone");
    }
    thread::sleep(Duration::from_millis(3100).saturating_sub(left_alone_at.elapsed()));
    expect(&server, 20);
    assert!(https.requests() > requests);
}

#[test]
fn connections_that_the_server_closes_between_queries_lose_none() {
    let unbound = Unbound::start(&SOUND, "tcp-idle-timeout: 200");
    let keys = format!(
        "to = \"tls://127.0.0.1:{}#dns.example.net\"\nca-file = {}",
        unbound.tls_port,
        unbound.file("ca.pem")
    );
    let server = forwarder(&keys);
    for number in 0..10 {
        expect(&server, number);
        thread::sleep(Duration::from_millis(194 + 3 * u64::from(number)));
    }
    let labels =
        format!("zone=\".\",upstream=\"tls://127.0.0.1:{}#dns.example.net\"", unbound.tls_port);
    let dials = |result: &str| {
        let name = "zonda_upstream_connections_total";
        server.metric(&format!("{name}{{{labels},result=\"{result}\"}}"))
    };
    assert!(dials("resumed") >= 1.0 && dials("failed") == 0.0, "{}", server.get("/v1/upstreams").1);
}

/// Unbound that validates `example.com`, which it knows from the files in the folder.
fn validating() -> (Folder, Unbound) {
    let text = "$TTL 60\n@ SOA ns host 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\nwww A 192.0.2.8\n";
    let zone = Zone { name: "example.com.".into(), text: text.into(), names: Vec::new() };
    let signed = sign(&zone, Denial::Nsec).text;
    let anchor = signed.lines().find(|line| line.contains("\tDNSKEY\t257 ")).unwrap();
    let folder = Folder::new("signed");
    let (zone, anchor) = (folder.write("zone", &signed), folder.write("anchor", anchor));
    let validating = format!(
        "module-config: \"validator iterator\"\n trust-anchor-file: {anchor:?}\n\
         auth-zone:\n name: example.com\n zonefile: {zone:?}\n for-downstream: no"
    );
    let unbound = Unbound::start(&SOUND, &validating);
    (folder, unbound)
}

/// The keys that have it asked over TLS.
fn over_tls(unbound: &Unbound) -> String {
    let (port, ca) = (unbound.tls_port, unbound.file("ca.pem"));
    format!("to = \"tls://127.0.0.1:{port}#dns.example.net\"\nca-file = {ca}\n")
}

/// Whether a server says that the address of `www.example.com` was validated.
fn says_validated(server: &Server) -> bool {
    let question = Question::new("www.example.com", "A").recursive().dnssec();
    let reply = ask(server.zonda.address, &question).unwrap();
    assert_eq!(reply.rcode_text(), "NOERROR");
    reply.flags & 0x0020 != 0
}

#[test]
fn that_an_answer_was_validated_is_believed_of_trusted_servers_over_tls_only() {
    let (_folder, unbound) = validating();
    let tls = over_tls(&unbound);
    let tcp = format!("to = [\"tcp://{}\", \"tls://192.0.2.1\"]\n", unbound.address);
    let in_order = "policy = \"in-order\"\n";
    for (keys, told) in [
        (format!("{tls}trust-ad = true"), true),
        (tls, false),
        (format!("{tcp}{in_order}trust-ad = true"), false),
    ] {
        let server = forwarder(&keys);
        for _ in 0..2 {
            assert_eq!(says_validated(&server), told, "{keys}");
        }
        let question = Question::new("www.example.com", "A").recursive().edns(1232);
        assert_eq!(ask(server.zonda.address, &question).unwrap().flags & 0x0020, 0);
    }
}

#[test]
fn that_an_answer_was_validated_is_forgotten_with_the_trust_in_who_said_so() {
    let (folder, unbound) = validating();
    let file = folder.path().join("cache");
    let keys = |trust_ad: bool| {
        let tls = over_tls(&unbound);
        format!(
            "[cache]\npersist = {file:?}\npersist-interval = \"1s\"\n[[zone]]\nname = \".\"\n\
             [zone.forward]\n{tls}trust-ad = {trust_ad}\n"
        )
    };
    let mut server = Server::start(&[], &keys(true));
    let fetched = |server: &Server| server.metric("zonda_forward_queries_total{led_to=\"fetch\"}");
    assert!(says_validated(&server));
    server.restart();
    assert!(says_validated(&server));
    assert_eq!(fetched(&server), 0.0, "it was kept in the file");
    server.configure(&keys(false));
    server.restart();
    assert!(!says_validated(&server), "what is in the file is not believed");
    assert_eq!(fetched(&server), 1.0);
    for trust_ad in [true, false] {
        server.configure(&keys(trust_ad));
        assert_eq!(server.post("/v1/reload").0, 200);
        assert_eq!(says_validated(&server), trust_ad, "what is in memory is not believed either");
    }
}

#[test]
fn a_server_that_does_not_prove_who_it_is_is_not_asked_and_it_is_told_why() {
    let unbound = Unbound::start(&SOUND, "");
    let expired = Unbound::start(&Certificate { last_year: 2021, ..SOUND }, "");
    let to = |of: &Unbound, name: &str| format!("to = \"tls://127.0.0.1:{}#{name}\"", of.tls_port);
    let right = |of: &Unbound, name| format!("{}\nca-file = {}", to(of, name), of.file("ca.pem"));
    let other_key = format!("sha256/{}=", "A".repeat(43));
    for (keys, why) in [
        (to(&unbound, "dns.example.net"), "is signed by no trusted authority"),
        (right(&unbound, "dns.example.org"), "is for another name"),
        (right(&expired, "dns.example.net"), "has expired"),
        (
            format!("{}\npins = \"{other_key}\"", to(&unbound, "dns.example.net")),
            "has none of the pinned keys",
        ),
    ] {
        let server = forwarder(&keys);
        let reply = question(&server, 0);
        assert_eq!(reply.rcode_text(), "SERVFAIL");
        let options = &reply.edns.as_ref().unwrap().options;
        let says_why = |(code, data): &(u16, Vec<u8>)| {
            *code == 15 && data[..2] == [0, 23] && data.ends_with(b"the certificate is not trusted")
        };
        assert!(options.iter().any(says_why), "{options:?}");
        (1..20).for_each(|number| _ = question(&server, number));
        let list = server.get("/v1/upstreams").1;
        assert!(list.contains(&format!("its certificate {why}")), "no {why} in {list}");
        let trouble = "\"trouble\": \"its certificate is not trusted\"";
        assert!(list.contains(trouble), "no {trouble} in {list}");
        let said = server.zonda.process.log_soon(&format!("its certificate {why}"));
        assert!(said.contains("WARN") && said.contains("tls://127.0.0.1"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn servers_that_are_given_by_name_are_asked_over_tls_https_and_quic_where_that_is() {
    let lines = "local-zone: dns.example.net static\n local-data: 'dns.example.net 60 A 127.0.0.1'";
    let unbound = Unbound::start(&SOUND, lines);
    let quic_server = QuicServer::start(unbound.folder.path());
    let quic_port = quic_server.address.port();
    let Unbound { address, tls_port, https_port, .. } = unbound;
    let ca = unbound.file("ca.pem");
    for to in [
        format!("tls://dns.example.net:{tls_port}"),
        format!("https://dns.example.net:{https_port}/dns-query"),
        format!("quic://dns.example.net:{quic_port}"),
    ] {
        let keys = format!("to = \"{to}\"\nbootstrap = \"{address}\"\nca-file = {ca}");
        let server = forwarder(&keys);
        (0..10).for_each(|number| expect(&server, number));
        let list = server.get("/v1/upstreams").1;
        let at = format!(
            "\"127.0.0.1:{}\"",
            to.trim_end_matches("/dns-query").rsplit(':').next().unwrap()
        );
        for part in [&*at, "\"answered\": 10", "\"failure\": null"] {
            assert!(list.contains(part), "no {part} in {list}");
        }
        let page = server.get("/metrics").1;
        let reused = page.lines().find(|line| line.starts_with("zonda_upstream_reused_total{"));
        let count = reused.and_then(|line| line.rsplit(' ').next()?.parse::<u32>().ok());
        assert!(count.is_some_and(|count| count >= 9), "{reused:?} with {to}");
    }
}
