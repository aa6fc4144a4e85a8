//! Names that pools answer for, with members that are really checked.

use crate::server::{Server, run, text, wait_until};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use zonda_testkit::process::{Folder, Process, free_port};
use zonda_testkit::{Message, Question, ask};

/// A web server on an address of the loopback network that answers all requests with a status, or
/// resets the connection where that is 0.
pub struct Member {
    status: Arc<AtomicU16>,
}

impl Member {
    /// Starts one on 127.0.0.`last` that answers with 200.
    pub fn start(last: u8, port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::new(127, 0, 0, last), port)).unwrap();
        let status = Arc::new(AtomicU16::new(200));
        let told = Arc::clone(&status);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                answer(stream, told.load(SeqCst));
            }
        });
        Self { status }
    }

    /// Answers with another status from now on.
    pub fn set(&self, status: u16) {
        self.status.store(status, SeqCst);
    }
}

/// Answers one request.
fn answer(mut stream: TcpStream, status: u16) {
    let mut request = [0; 1024];
    let _ = stream.set_read_timeout(Some(Duration::from_secs(1)));
    if status == 0 || stream.read(&mut request).is_err() {
        return;
    }
    let reply = format!("HTTP/1.1 {status} -\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    let _ = stream.write_all(reply.as_bytes()); // the probe may be gone
}

const ZONE: &str = "$TTL 60\n@ SOA ns h 1 7200 3600 1209600 60\n@ NS ns\nns A 192.0.2.1\n\
                    other A 192.0.2.2\n";

/// A server whose name `www.steered.test` a pool answers for, and the folder of its files.
pub struct Steered {
    pub server: Server,
    pub folder: Folder,
}

impl Steered {
    /// Starts one with a pool `web` of these keys.
    pub fn start(keys: &str) -> Self {
        let folder = Folder::new("steered");
        folder.write("steered.zone", ZONE);
        let server = Server::start(&[], &Self::text(&folder, keys, "www A,AAAA"));
        Self { server, folder }
    }

    /// The configuration with these keys of the pool, and this name and these types steered.
    pub fn text(folder: &Folder, keys: &str, steered: &str) -> String {
        let path = folder.path();
        let (file, state) = (path.join("steered.zone"), path.join("state"));
        let root = std::env::temp_dir(); // the test server has a zone of its own beside it
        format!(
            "root = {root:?}\nstate = {state:?}\n[[pool]]\nname = \"web\"\n{keys}\n[[zone]]\n\
             name = \"steered.test\"\nfile = {file:?}\nsteer = {{ {steered:?} = \"web\" }}\n"
        )
    }

    /// Reloads with other keys of the pool, and this name and these types steered.
    pub fn reload(&self, keys: &str, steered: &str) {
        self.server.configure(&Self::text(&self.folder, keys, steered));
        let (status, answer) = self.server.post("/v1/reload");
        assert_eq!(status, 200, "{answer}");
    }

    /// The reply to a question for the address of a name in the zone.
    pub fn ask(&self, name: &str) -> Message {
        let name = format!("{name}.steered.test");
        ask(self.server.zonda.address, &Question::new(&name, "A")).unwrap()
    }

    /// The addresses that twenty queries in a row get.
    pub fn answers(&self) -> BTreeSet<String> {
        let replies = (0..20).map(|_| self.ask("www"));
        replies.flat_map(|reply| reply.answer).map(|it| it.data.text).collect()
    }

    /// Waits until twenty queries in a row get these addresses.
    pub fn await_answers(&self, expected: &[&str]) {
        let expected: BTreeSet<String> = expected.iter().map(|it| (*it).to_owned()).collect();
        wait_until(&format!("the answers are {expected:?}"), || self.answers() == expected);
    }

    /// The pool as the admin interface shows it.
    pub fn pool(&self) -> Value {
        serde_json::from_str(&self.server.get("/v1/pools/web").1).unwrap()
    }

    /// What a command about pools prints; an error is part of it.
    pub fn command(&self, words: &[&str]) -> String {
        let socket = self.server.socket();
        let output = run(&[&["pool"], words, &["--socket", &*socket]].concat());
        text(&output.stdout) + &text(&output.stderr)
    }
}

/// The keys of a pool of two members that are checked ten times a second.
pub fn two_checked(port: u16, more: &str) -> String {
    format!(
        "{more}\nmembers = [{{ address = \"127.0.0.1\" }}, {{ address = \"127.0.0.2\" }}]\n\
         check = {{ http = \"/health\", port = {port}, interval = \"100 ms\", timeout = \"1s\" }}"
    )
}

#[test]
fn members_that_fail_their_checks_are_answered_no_more() {
    let port = free_port();
    let [first, second] = [1, 2].map(|it| Member::start(it, port));
    let steered = Steered::start(&two_checked(port, "when-all-down = \"servfail\""));
    steered.await_answers(&["127.0.0.1", "127.0.0.2"]);
    first.set(503);
    steered.await_answers(&["127.0.0.2"]);
    assert!(steered.pool().to_string().contains("HTTP status 503"));
    second.set(0);
    steered.await_answers(&[]);
    assert_eq!(steered.ask("www").rcode_text(), "SERVFAIL");
    first.set(204);
    steered.await_answers(&["127.0.0.1"]);
}

#[test]
fn one_lost_probe_changes_nothing() {
    let port = free_port();
    let [first, _second] = [1, 2].map(|it| Member::start(it, port));
    let check = two_checked(port, "").replace("100 ms", "1s"); // so that one probe can be met
    let steered = Steered::start(&check.replace("timeout", "fall = 2, timeout"));
    let succeeds = |expected| {
        wait_until("the last probe has ended so", || {
            steered.pool()["members"][0]["last"]["success"] == expected
        });
    };
    succeeds(true);
    first.set(500);
    succeeds(false);
    assert_eq!(steered.answers().len(), 2);
    first.set(200);
    succeeds(true);
    let changes = steered.pool()["members"][0]["changes"].clone();
    assert!(changes.as_array().unwrap().iter().all(|it| it["to"] == "up"), "{changes}");
}

#[test]
fn a_change_of_state_is_answered_a_tenth_of_a_second_after_the_probe_that_decides() {
    let port = free_port();
    let [first, _second] = [1, 2].map(|it| Member::start(it, port));
    let steered = Steered::start(&two_checked(port, "answers = \"all\""));
    wait_until("both answer", || steered.ask("www").answer.len() == 2);
    first.set(500);
    let seconds = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
    let mut asked = seconds();
    wait_until("one answers", || {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(500) {
            asked = seconds();
            if steered.ask("www").answer.len() == 1 {
                return true;
            }
        }
        false
    });
    let changes = steered.pool()["members"][0]["changes"].clone();
    let down = changes.as_array().unwrap().iter().find(|it| it["to"] == "down").unwrap();
    let after = asked - down["at"].as_f64().unwrap();
    assert!(after < 0.1, "{after} s after the probe");
}

#[test]
fn what_an_operator_says_holds_through_a_reload_and_a_kill_until_it_is_taken_back() {
    let port = free_port();
    let _members = [1, 2].map(|it| Member::start(it, port));
    let mut steered = Steered::start(&two_checked(port, ""));
    let drained =
        steered.command(&["drain", "web/127.0.0.1", "--for", "1h", "--reason", "new kernel"]);
    assert!(drained.contains("web/127.0.0.1: drain"), "{drained}");
    let rest = BTreeSet::from(["127.0.0.2".to_owned()]);
    assert_eq!(steered.answers(), rest);
    steered.reload(&two_checked(port, "ttl-max = \"2m\""), "www A");
    assert_eq!(steered.answers(), rest);
    steered.server.zonda.process.signal("KILL");
    wait_until("the server has ended", || steered.server.zonda.process.ended());
    let log = steered.folder.path().join("second.log");
    let second = Process::start(&steered.server.command(&[]), &log).unwrap();
    steered.server.zonda.process = second;
    wait_until("the server has started again", || {
        ask(steered.server.zonda.address, &Question::new("www.steered.test", "A")).is_ok()
    });
    assert_eq!(steered.answers(), rest);
    assert!(steered.command(&["list"]).contains("down (drain)"));
    assert!(steered.command(&["log"]).contains("new kernel"));
    let resumed = steered.command(&["resume", "*/127.0.0.?"]);
    assert!(resumed.contains("web/127.0.0.2: resume"), "{resumed}");
    assert_eq!(steered.answers().len(), 2);
    let wrong = steered.command(&["drain", "web/127.0.0.9"]);
    assert!(wrong.contains("no member is called web/127.0.0.9"), "{wrong}");
}

#[test]
fn a_reload_takes_over_pools_and_names() {
    let member = |last: u8| format!("members = [{{ address = \"192.0.2.{last}\" }}]");
    let steered = Steered::start(&member(10));
    steered.await_answers(&["192.0.2.10"]);
    steered.reload(&member(11), "www A,AAAA");
    steered.await_answers(&["192.0.2.11"]);
    steered.reload(&member(11), "other A");
    assert_eq!(steered.ask("www").rcode_text(), "NXDOMAIN");
    assert_eq!(steered.ask("other").answer[0].data.text, "192.0.2.11");
}

#[test]
fn metrics_tell_the_states_of_members_and_pools() {
    let port = free_port();
    let [first, _second] = [1, 2].map(|it| Member::start(it, port));
    let steered = Steered::start(&two_checked(port, ""));
    wait_until("probes have found both up", || {
        let pool = steered.pool();
        [0, 1].iter().all(|member: &usize| pool["members"][*member]["state"] == "up")
    });
    first.set(500);
    steered.await_answers(&["127.0.0.2"]);
    let metric = |name: &str| steered.server.metric(name);
    assert_eq!(metric("zonda_pool_up{pool=\"web\"}"), 1.0);
    assert_eq!(metric("zonda_pool_member_up{pool=\"web\",member=\"127.0.0.1\"}"), 0.0);
    assert_eq!(metric("zonda_pool_member_healthy{pool=\"web\",member=\"127.0.0.2\"}"), 1.0);
    assert!(metric("zonda_probes_total") >= 6.0);
    let check = "pool=\"web\",member=\"127.0.0.1\",kind=\"http\"";
    assert_eq!(metric(&format!("zonda_check_changes_total{{{check}}}")), 2.0, "up, then down");
    assert!(metric(&format!("zonda_check_last_seconds{{{check}}}")) < 1.0);
}

/// The names of metrics in a text that begin so.
fn metric_names(text: &str, beginnings: &[&str]) -> BTreeSet<String> {
    let is_name = |letter: char| letter.is_ascii_lowercase() || letter == '_';
    let words = text.split(|letter| !is_name(letter));
    let meant = words.filter(|word| beginnings.iter().any(|it| word.starts_with(it)));
    meant.map(str::to_owned).collect()
}

#[test]
fn the_grafana_board_shows_each_metric_of_pools_and_no_other() {
    let port = free_port();
    let _member = Member::start(1, port);
    let steered = Steered::start(&two_checked(port, ""));
    wait_until("a member was probed", || {
        steered.server.get("/metrics").1.contains("zonda_check_last_seconds{")
    });
    steered.command(&["load", "web/127.0.0.1", "20"]);
    let page = steered.server.get("/metrics").1;
    let beginnings = ["zonda_pool_", "zonda_probes_", "zonda_check_"];
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/grafana-pools.json");
    let text = std::fs::read_to_string(path).unwrap();
    let board: Value = serde_json::from_str(&text).unwrap();
    let panels = board["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let shown: String = targets.map(|it| format!("{} ", it["expr"])).collect();
    assert_eq!(metric_names(&shown, &["zonda_"]), metric_names(&page, &beginnings));
}

#[test]
fn flags_steer_a_name_in_a_zone_of_its_own_or_in_one_that_there_is() {
    let port = free_port();
    let [_first, second] = [1, 2].map(|it| Member::start(it, port));
    let alone = format!("www.alone.test=127.0.0.1:{port},127.0.0.2:{port},[::1]:{port}");
    let within = format!("www.example.org=127.0.0.1:{port},127.0.0.2:{port}");
    let arguments = ["--steer", &alone, "--steer", &within, "--check", "http:/health"];
    let server = Server::start_with(&[], "", &arguments);
    let question =
        |name: &str, rtype: &str| ask(server.zonda.address, &Question::new(name, rtype)).unwrap();
    let addresses = |name: &str| -> BTreeSet<String> {
        let replies = (0..20).map(|_| question(name, "A"));
        replies.flat_map(|reply| reply.answer).map(|it| it.data.text).collect()
    };
    assert_eq!(addresses("www.alone.test").len(), 2);
    assert_eq!(question("www.alone.test", "AAAA").answer[0].data.text, "::1");
    assert!(question("www.alone.test", "SOA").answer[0].data.text.starts_with("ns.invalid."));
    assert_eq!(question("no.alone.test", "A").rcode_text(), "REFUSED");
    assert_eq!(question("no.www.alone.test", "A").rcode_text(), "NXDOMAIN");
    assert_eq!(addresses("www.example.org").len(), 2);
    assert!(!question("www.example.org", "TXT").answer.is_empty(), "the zone's own");
    second.set(500);
    for name in ["www.alone.test", "www.example.org"] {
        wait_until("the member is down", || addresses(name).len() == 1);
    }
}

#[test]
fn a_signed_zone_is_not_steered_and_the_log_and_the_check_say_so() {
    let steered = Steered::start("members = [{ address = \"192.0.2.10\" }]");
    assert_eq!(steered.ask("www").answer[0].data.text, "192.0.2.10");
    let key = format!("@ DNSKEY 257 3 13 {}==\n", "A".repeat(86));
    steered.folder.write("steered.zone", format!("{ZONE}{key}").replace("h 1 ", "h 2 "));
    steered.reload("members = [{ address = \"192.0.2.10\" }]", "www A,AAAA");
    wait_until("the zone's own records answer", || steered.ask("www").rcode_text() == "NXDOMAIN");
    let log = steered.server.zonda.process.log_soon("zone is signed: its names are not steered");
    assert!(log.contains("zone=steered.test."), "{log}");
    let file = steered.folder.path().join("check.toml");
    let keys = "members = [{ address = \"192.0.2.10\" }]";
    let config = Steered::text(&steered.folder, keys, "www A");
    std::fs::write(&file, format!("version = 1\n{config}")).unwrap();
    let output = run(&["check", "--config", &*file.to_string_lossy()]);
    let told = text(&output.stdout) + &text(&output.stderr);
    assert!(
        told.contains("warning: zone steered.test. is signed, so that `steer` has no"),
        "{told}"
    );
}

#[test]
fn a_client_that_asks_is_told_which_member_of_which_pool_answers() {
    let keys = "members = [{ address = \"192.0.2.10\" }, { address = \"2001:db8::10\" }]";
    let steered = Steered::start(keys);
    let reason = |name: &str| {
        let question =
            Question::new(&format!("{name}.steered.test"), "A").edns(1232).option(15, &[0, 0]);
        let reply = ask(steered.server.zonda.address, &question).unwrap();
        reply.edns.unwrap().options.iter().find(|(code, _)| *code == 15).map(|(_, data)| {
            assert_eq!(data[..2], [0, 0]);
            String::from_utf8(data[2..].to_vec()).unwrap()
        })
    };
    assert_eq!(reason("www"), None, "no client is told unless the configuration says so");
    steered.reload(&format!("{keys}\n[edns]\nreasons-to = [\"127.0.0.0/8\"]"), "www A,AAAA");
    assert_eq!(reason("www").unwrap(), "pool web: 192.0.2.10; steered; zone steered.test.");
    assert_eq!(reason("other").unwrap(), "answered; zone steered.test.");
    assert_eq!(reason("nothing").unwrap(), "nxdomain; zone steered.test.");
    let plain = Question::new("www.steered.test", "A").edns(1232);
    let plain = ask(steered.server.zonda.address, &plain).unwrap().edns.unwrap().options;
    assert!(plain.iter().all(|(code, _)| *code != 15), "a query that does not ask is not told");
    steered.reload(&format!("{keys}\n[edns]\nreasons-to = [\"192.0.2.0/24\"]"), "www A,AAAA");
    assert_eq!(reason("www"), None);
}
