//! dig, kdig and knsupdate as clients, and clients that only harm.

use crate::primary::{KEY, PLAIN, Primary, RECORDS, client, key_argument, records, wait_until};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use zonda_testkit::client::name_bytes;
use zonda_testkit::process::{bounded, required};
use zonda_testkit::{Question, ask};

/// A server with a zone for the key, one for the address, and one for no client.
fn primary() -> Primary {
    let keyed = format!("\"127.0.0.1 key {}\"", KEY.0);
    let zones = [
        ("keyed.test", PLAIN, &*keyed),
        ("open.test", PLAIN, "\"127.0.0.1\""),
        ("elsewhere.test", PLAIN, "\"192.0.2.0/24\", \"key other\""),
        ("closed.test", PLAIN, ""),
    ];
    let others =
        [("other", "sha512"), ("sha1", "sha1"), ("sha224", "sha224"), ("sha384", "sha384")];
    let more = others.map(|(name, hash)| {
        let secret = "secret = \"b3RoZXJvdGhlcg==\"";
        format!("[[key]]\nname = \"{name}\"\nalgorithm = \"hmac-{hash}\"\n{secret}\n")
    });
    Primary::start(&zones, &more.concat())
}

/// Keys as `-y` takes them.
const OTHERS: [&str; 4] = [
    "hmac-sha512:other:b3RoZXJvdGhlcg==",
    "hmac-sha1:sha1:b3RoZXJvdGhlcg==",
    "hmac-sha224:sha224:b3RoZXJvdGhlcg==",
    "hmac-sha384:sha384:b3RoZXJvdGhlcg==",
];

/// Whether a client has a signed reply that it could not verify, as dig and kdig say.
fn is_doubted(said: &str) -> bool {
    said.contains("could not be validated") || said.contains("reply verification")
}

#[test]
fn dig_and_kdig_verify_replies_signed_with_each_algorithm_over_udp_and_tcp() {
    let primary = primary();
    let key = key_argument();
    for key in OTHERS.iter().copied().chain([&*key]) {
        for transport in ["+notcp", "+tcp"] {
            for question in [["www.open.test", "A"], ["no.open.test", "A"], ["open.test", "ANY"]] {
                for program in ["dig", "kdig"] {
                    let arguments = [&question[..], &["-y", key, transport, "+dnssec"]].concat();
                    let said = primary.ask(program, &arguments);
                    assert!(said.contains("TSIG") && !is_doubted(&said), "{said}");
                    assert!(!said.contains("NOTAUTH"), "{said}");
                }
            }
        }
    }
}

/// What `zonda query` prints and its exit code.
fn zonda_query(primary: &Primary, arguments: &[&str]) -> (String, Option<i32>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zonda"));
    command.args(["query", &format!("@{}", primary.address)]).args(arguments);
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (String::from_utf8_lossy(&said).into_owned(), output.status.code())
}

#[test]
fn zonda_query_signs_verifies_the_reply_and_says_what_is_wrong_with_it() {
    let primary = primary();
    let ask = |options: &[&str]| zonda_query(&primary, &[&["www.open.test"], options].concat());
    let key = key_argument();
    for key in OTHERS.iter().copied().chain([&*key]) {
        for option in [&["-y", key][..], &[&format!("+tsig={key}")], &["-y", key, "+tcp"]] {
            let (said, code) = ask(option);
            assert!(said.contains(";; signature verified") && said.contains("192.0.2.2"), "{said}");
            assert_eq!(code, Some(0));
        }
    }
    let (said, code) = ask(&["-y", &format!("{}:{}", KEY.0, KEY.1), "+json"]);
    assert!(said.contains("\"signature\": \"verified\""), "{said}");
    assert_eq!(code, Some(0));
    for (key, error) in [
        ("hmac-sha512:other:b3RoZXJvdGhlcw==", "(BADSIG)"),
        ("hmac-sha256:unknown:b3RoZXJvdGhlcg==", "(BADKEY)"),
    ] {
        let (said, code) = ask(&["-y", key]);
        assert!(said.contains("SIGNATURE NOT VERIFIED") && said.contains(error), "{said}");
        assert_eq!(code, Some(1));
    }
    let (said, code) = ask(&["-y", "hmac-md5:other:c2VjcmV0"]);
    assert!(said.contains("there is no algorithm hmac-md5") && !said.contains("c2V"), "{said}");
    assert_eq!(code, Some(2));
}

#[test]
fn a_signature_that_proves_nothing_is_answered_notauth_with_its_error() {
    let primary = primary();
    for (key, error) in [
        ("hmac-sha512:other:b3RoZXJvdGhlcw==", "BADSIG"),
        ("hmac-sha256:other:b3RoZXJvdGhlcg==", "BADKEY"),
        ("hmac-sha256:unknown:b3RoZXJvdGhlcg==", "BADKEY"),
    ] {
        let said = primary.ask("dig", &["www.open.test", "A", "-y", key]);
        assert!(said.contains("NOTAUTH") && said.contains(error), "{key}: {said}");
        assert!(!said.contains("192.0.2.2"), "{said}");
    }
    assert_eq!(primary.metric("zonda_queries_total{reason=\"bad_signature\"}"), 1.0);
    assert_eq!(primary.metric("zonda_queries_total{reason=\"unknown_key\"}"), 2.0);
}

#[test]
fn knsupdate_takes_the_signed_refusal_of_an_update() {
    let Some(path) = required("knsupdate") else { return };
    let primary = primary();
    let mut command = bounded(path);
    command.args(["-y", &key_argument()]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let script = format!(
        "server 127.0.0.1 {}\nzone open.test.\nupdate add new.open.test. 60 A 192.0.2.7\nsend\n",
        primary.address.port()
    );
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(said.contains("REFUSED") && !said.contains("verification"), "{said}");
}

#[test]
fn dig_and_kdig_transfer_a_zone_with_and_without_a_key_and_agree() {
    let primary = primary();
    let lines = RECORDS;
    assert_eq!(records(primary.address, "open.test", &[]).len(), lines);
    let keyed = records(primary.address, "keyed.test", &["-y", &key_argument()]);
    assert_eq!(keyed.len(), lines);
    assert!(keyed.iter().any(|record| record.contains("Mail.Example.Test.")), "{keyed:?}");
    let said = primary.ask("kdig", &["keyed.test", "AXFR", "-y", &key_argument()]);
    let count = format!("{} records)", lines + 1);
    assert!(said.contains(&count) && !is_doubted(&said), "{said}");
    let said = primary.ask("dig", &["keyed.test", "AXFR", "-y", &key_argument()]);
    assert!(
        said.contains(&format!("XFR size: {} records", lines + 1)) && !is_doubted(&said),
        "{said}"
    );
}

#[test]
fn a_transfer_is_refused_to_all_clients_but_those_of_the_zone() {
    let primary = primary();
    for (zone, key) in [
        ("closed.test", None),
        ("elsewhere.test", None),
        ("keyed.test", None),
        ("keyed.test", Some(OTHERS[0])),
    ] {
        let signed = key.map_or_else(Vec::new, |key| vec!["-y", key]);
        let said = primary.ask("kdig", &[&[zone, "AXFR"][..], &signed].concat());
        assert!(said.contains("REFUSED"), "{zone}: {said}");
    }
    let question = Question::new("closed.test", "AXFR").edns(1232).over_tcp();
    let reply = ask(primary.address, &question).unwrap();
    let (code, data) = reply.edns.unwrap().options.pop().unwrap();
    assert_eq!((code, &data[..2]), (15, &[0, 18][..]), "Prohibited");
    assert_eq!(records(primary.address, "elsewhere.test", &["-y", OTHERS[0]]).len(), RECORDS);
    assert_eq!(primary.metric("zonda_transfers_total{result=\"refused\"}"), 5.0);
    for name in ["www.open.test", "unknown.test"] {
        let said = primary.ask("kdig", &[name, "AXFR"]);
        assert!(said.contains("NOTAUTH"), "{name}: {said}");
    }
}

#[test]
fn over_udp_a_transfer_has_to_be_asked_for_over_tcp() {
    let primary = primary();
    let reply = ask(primary.address, &Question::new("open.test", "AXFR")).unwrap();
    assert!(reply.truncated() && reply.answer.is_empty());
    let reply = ask(primary.address, &Question::new("closed.test", "AXFR")).unwrap();
    assert_eq!((reply.truncated(), &*reply.rcode_text()), (false, "REFUSED"));
}

#[test]
fn a_client_that_asks_for_changes_gets_the_soa_record_if_it_has_the_version_and_else_the_zone() {
    let primary = primary();
    let count = |serial: &str| {
        let said = primary.ask("dig", &["open.test", &format!("IXFR={serial}")]);
        let line = said.lines().find(|line| line.contains("XFR size")).map(str::to_owned);
        line.unwrap_or(said)
    };
    let whole = format!("size: {} records", RECORDS + 1);
    assert!(count("7").contains("size: 1 records"), "{}", count("7"));
    assert!(count("8").contains("size: 1 records"), "{}", count("8"));
    assert!(count("6").contains(&whole), "{}", count("6"));
    let without_soa =
        ask(primary.address, &Question::new("open.test", "TYPE251").over_tcp()).unwrap();
    assert_eq!(without_soa.rcode_text(), "FORMERR");
    let said = primary.ask("dig", &["+notcp", "open.test", "IXFR=3"]);
    assert_eq!(said.matches("\tSOA\t").count(), 1, "{said}");
}

/// The octets of a question for a transfer, with their length.
pub fn question(zone: &str) -> Vec<u8> {
    let mut message = vec![0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    message.extend(name_bytes(zone));
    message.extend([0, 252, 0, 1]);
    [&(message.len() as u16).to_be_bytes()[..], &message].concat()
}

/// A zone of some megabytes, so that no transfer of it fits into the buffers of a connection.
pub fn large() -> String {
    let names = (0..60_000).map(|number| format!("h{number} TXT \"{}\"\n", "x".repeat(200)));
    names.fold(PLAIN.to_owned(), |text, name| text + &name)
}

#[test]
fn a_client_that_takes_nothing_holds_up_no_query_and_loses_its_connection() {
    let large = large();
    let more = "[tcp]\nwrite-timeout = \"1s\"\n[transfers]\nat-once = 1\n";
    let primary = Primary::start(&[("large.test", &large, "\"127.0.0.1\"")], more);
    let mut idle = TcpStream::connect(primary.address).unwrap();
    idle.write_all(&question("large.test")).unwrap();
    let running = || primary.metric("zonda_transfers_running");
    wait_until("the transfer begins", || running() == 1.0);
    let said = primary.ask("kdig", &["large.test", "AXFR"]);
    assert!(said.contains("SERVFAIL"), "one at once: {said}");
    let with_edns = Question::new("large.test", "AXFR").edns(1232).over_tcp();
    let options = ask(primary.address, &with_edns).unwrap().edns.unwrap().options;
    let is_not_ready = |(code, data): &(u16, Vec<u8>)| *code == 15 && data.starts_with(&[0, 14]);
    assert!(options.iter().any(is_not_ready), "{options:?}"); // rfc8914#4.15
    for over_tcp in [false, true] {
        let question = Question::new("www.large.test", "A");
        let question = if over_tcp { question.over_tcp() } else { question };
        let before = Instant::now();
        assert_eq!(ask(primary.address, &question).unwrap().answer.len(), 2);
        assert!(before.elapsed() < Duration::from_secs(1));
    }
    wait_until("the connection is closed", || running() == 0.0);
    assert_eq!(primary.metric("zonda_transfers_total{result=\"failed\"}"), 1.0);
    assert_eq!(primary.metric("zonda_transfers_total{result=\"busy\"}"), 2.0);
    wait_until("the log says so", || primary.log().contains("the client has taken nothing"));
    drop(idle);
    let whole = client("dig", primary.address, &["large.test", "AXFR"]);
    assert!(whole.contains("XFR size: 60018 records"), "{}", whole.len());
}

#[test]
fn a_client_with_as_many_transfers_as_it_may_have_leaves_places_to_others() {
    let large = large();
    let more = "[transfers]\nat-once = 3\nat-once-per-client = 2\n";
    let zones =
        [("large.test", &*large, "\"127.0.0.0/8\""), ("open.test", PLAIN, "\"127.0.0.0/8\"")];
    let primary = Primary::start(&zones, more);
    let idle = [(); 2].map(|()| {
        let mut idle = TcpStream::connect(primary.address).unwrap();
        idle.write_all(&question("large.test")).unwrap();
        idle
    });
    let running = || primary.metric("zonda_transfers_running");
    wait_until("the transfers begin", || running() == 2.0);
    let said = primary.ask("kdig", &["open.test", "AXFR"]);
    assert!(said.contains("SERVFAIL"), "two of one client: {said}");
    let said = primary.ask("kdig", &["-b", "127.0.0.2", "open.test", "AXFR"]);
    assert!(said.contains(&format!("{} records)", RECORDS + 1)), "another client: {said}");
    assert_eq!(primary.metric("zonda_transfers_total{result=\"client_busy\"}"), 1.0);
    assert_eq!(primary.metric("zonda_transfers_total{result=\"busy\"}"), 0.0);
    let log = primary.log();
    let line = log.lines().find(|line| line.contains("a transfer was refused")).unwrap();
    for fact in
        ["WARN", "zone=open.test.", "peer=127.0.0.1:", "`at-once-per-client` of [transfers]"]
    {
        assert!(line.contains(fact), "{fact} in {line}");
    }
    drop(idle);
    wait_until("they have ended", || running() == 0.0);
    assert_eq!(records(primary.address, "open.test", &[]).len(), RECORDS);
}

#[test]
fn a_transfer_is_of_one_version_though_the_zone_changes_meanwhile() {
    let large = large();
    let primary = Primary::start(&[("large.test", &large, "\"127.0.0.1\"")], "");
    let mut slow = TcpStream::connect(primary.address).unwrap();
    slow.write_all(&question("large.test")).unwrap();
    let mut octets = vec![0; 10_000];
    slow.read_exact(&mut octets).unwrap();
    let changed = large.replacen("host 7 ", "host 8 ", 1).replace("h7 TXT", "new TXT");
    fs::write(primary.folder.path().join("0.zone"), changed).unwrap();
    primary.reload();
    let said = primary.ask("dig", &["+short", "large.test", "SOA"]);
    assert!(said.contains(" 8 7200"), "{said}");
    slow.set_read_timeout(Some(Duration::from_millis(1500))).unwrap();
    // The last record is the SOA record that the first was.
    let mut chunk = vec![0; 65_536];
    while let Ok(count @ 1..) = slow.read(&mut chunk) {
        octets.extend_from_slice(&chunk[..count]);
    }
    let numbers = [7u32, 7200, 3600, 1_209_600, 60].map(u32::to_be_bytes).concat();
    let found = octets.windows(numbers.len()).filter(|it| *it == numbers).count();
    assert_eq!(found, 2);
    assert!(octets.ends_with(&numbers), "{} octets", octets.len());
}

#[test]
fn a_reload_reads_the_file_of_a_key_again() {
    let primary = primary();
    let new = "bmV3bmV3bmV3bmV3bmV3bmV3bmV3";
    primary.folder.write("transfer.key", new);
    primary.reload();
    let key = format!("hmac-sha256:{}:{new}", KEY.0);
    assert_eq!(records(primary.address, "keyed.test", &["-y", &key]).len(), RECORDS);
    let said = primary.ask("dig", &["www.open.test", "A", "-y", &key_argument()]);
    assert!(said.contains("BADSIG"), "{said}");
}

#[test]
fn zones_of_json_of_a_directory_and_those_that_can_be_changed_are_transferred() {
    let json = r#"{"name": "json.test", "records": [
        {"name": "json.test", "type": "SOA", "ttl": 60, "data": {"mname": "ns.json.test",
         "rname": "host.json.test", "serial": 1, "refresh": 2, "retry": 3, "expire": 4,
         "minimum": 5}},
        {"name": "json.test", "type": "NS", "ttl": 60, "data": {"dname": "ns.json.test"}},
        {"name": "www.json.test", "type": "A", "ttl": 60, "data": {"ip": "192.0.2.1"}}]}"#;
    let primary = Primary::start(&[("open.test", PLAIN, "\"127.0.0.1\"")], "state = \"state\"");
    let folder = primary.folder.path();
    primary.folder.write("json.json", format!("[{json}]"));
    fs::create_dir(folder.join("many")).unwrap();
    fs::write(folder.join("many/one.test.zone"), PLAIN).unwrap();
    fs::write(folder.join("write.zone"), PLAIN).unwrap();
    let config = fs::read_to_string(folder.join("zonda.toml")).unwrap();
    let to = "transfer = { to = [\"127.0.0.1\"] }";
    let more = format!(
        "{config}[[zone]]\nname = \"json.test\"\njson = \"json.json\"\n{to}\n\
         [[zone]]\ndirectory = \"many\"\n{to}\n\
         [[zone]]\nname = \"write.test\"\nfile = \"write.zone\"\nwritable = true\n{to}\n"
    );
    fs::write(folder.join("zonda.toml"), more).unwrap();
    primary.reload();
    let count = |zone| records(primary.address, zone, &[]).len();
    assert_eq!((count("json.test"), count("one.test"), count("write.test")), (3, RECORDS, RECORDS));
    let mut command = Command::new(env!("CARGO_BIN_EXE_zonda"));
    command.args(["zone", "set", "new.write.test", "60", "A", "192.0.2.7", "--socket"]);
    let output = command.arg(folder.join("admin.sock")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let after = records(primary.address, "write.test", &[]);
    assert!(after.iter().any(|record| record.starts_with("new.write.test. 60 IN A")), "{after:?}");
}

#[test]
fn rules_for_other_questions_are_not_tried_on_transfers() {
    let rule = "[[rewrite]]\nttl = \"600-900\"\n";
    let primary = Primary::start(&[("open.test", PLAIN, "\"127.0.0.1\"")], rule);
    let sent = records(primary.address, "open.test", &[]);
    assert_eq!(sent.len(), RECORDS, "{sent:?}");
    assert!(sent.iter().any(|record| record.starts_with("www.open.test. 60 ")), "{sent:?}");
    let said = primary.ask("dig", &["www.open.test", "A"]);
    assert!(said.contains("\t600\tIN\tA\t"), "the rule is in force\n{said}");
}

#[test]
fn a_load_of_signed_queries_is_answered_and_one_with_a_wrong_secret_is_told_so() {
    let primary = Primary::start(&[("open.test", PLAIN, "\"127.0.0.1\"")], "");
    let queries = primary.folder.write("queries.txt", "www.open.test A\n".repeat(50));
    let wrong = format!("{}:d3Jvbmc=", KEY.0);
    for (key, refused) in [(&*key_argument(), 0.0), (&*wrong, 100.0)] {
        for transport in ["udp", "tcp"] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_zonda"));
            command.args(["bench", "load", "--max-loss", "0", "-m", transport, "-y", key]);
            command.args(["-p", &primary.address.port().to_string(), "-d"]).arg(&queries);
            let output = command.output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        let reason = "zonda_queries_total{reason=\"bad_signature\"}";
        assert_eq!(primary.metric(reason), refused);
    }
}
