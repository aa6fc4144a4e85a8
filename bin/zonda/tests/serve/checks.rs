//! Checks of every kind that a configuration can name, with targets that are really probed.

use crate::server::{Server, run, text, wait_until};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use zonda_testkit::process::{Folder, free_port};
use zonda_testkit::{Question, ask};

const ZONE: &str = "$TTL 60\n@ SOA ns h 1 7200 3600 1209600 60\n@ NS ns\nns A 192.0.2.1\n";

/// A server that names a pool of one member, 127.0.0.1, for each check: up as long as the name is
/// answered.
pub struct Checked {
    pub server: Server,
    folder: Folder,
}

impl Checked {
    /// Starts one; the checks are given a folder for their files.
    pub fn start(checks: &[(&str, String)]) -> Self {
        let folder = Folder::new("checked");
        folder.write("checked.zone", ZONE);
        Self::start_in(folder, checks)
    }

    fn start_in(folder: Folder, checks: &[(&str, String)]) -> Self {
        let pool = |(name, check): &(&str, String)| {
            format!(
                "[[pool]]\nname = \"{name}\"\nwhen-all-down = \"servfail\"\nmembers = [{{ address \
                 = \"127.0.0.1\" }}]\ncheck = {{ {check}, interval = \"100 ms\", timeout = \"1s\", \
                 rise = 1, fall = 1, start = \"down\" }}\n"
            )
        };
        let pools: String = checks.iter().map(pool).collect();
        let steer = checks.iter().map(|(name, _)| format!("\"{name} A\" = \"{name}\""));
        let (path, root) = (folder.path(), std::env::temp_dir());
        let keys = format!(
            "root = {root:?}\nstate = {:?}\n{pools}[[zone]]\nname = \"checked.test\"\nfile = \
             {:?}\nsteer = {{ {} }}\n",
            path.join("state"),
            path.join("checked.zone"),
            steer.collect::<Vec<_>>().join(", ")
        );
        Self { server: Server::start(&[], &keys), folder }
    }

    /// Whether the member of a pool is up.
    pub fn is_up(&self, pool: &str) -> bool {
        let question = Question::new(&format!("{pool}.checked.test"), "A");
        ask(self.server.zonda.address, &question).unwrap().rcode_text() == "NOERROR"
    }

    pub fn await_state(&self, pool: &str, is_up: bool) {
        let what = format!("{pool} is {}", if is_up { "up" } else { "down" });
        wait_until(&what, || self.is_up(pool) == is_up);
    }

    fn command(&self, words: &[&str]) -> String {
        let socket = self.server.socket();
        let output = run(&[&["pool"], words, &["--socket", &*socket]].concat());
        text(&output.stdout) + &text(&output.stderr)
    }
}

#[test]
fn programs_and_files_decide_about_members() {
    let folder = Folder::new("checked");
    folder.write("checked.zone", ZONE);
    let (marker, state) = (folder.path().join("marker"), folder.path().join("127.0.0.1.state"));
    fs::write(&state, "up\n").unwrap();
    let pattern = folder.path().join("{address}.state");
    let checks = [
        ("program", format!("program = [\"/usr/bin/test\", \"-e\", {marker:?}]")),
        ("file", format!("file = {pattern:?}")),
    ];
    let checked = Checked::start_in(folder, &checks);
    checked.await_state("file", true);
    assert!(!checked.is_up("program"));
    fs::write(&marker, "").unwrap();
    checked.await_state("program", true);
    fs::remove_file(&marker).unwrap();
    fs::write(&state, "down\n").unwrap();
    checked.await_state("program", false);
    checked.await_state("file", false);
    assert!(checked.folder.path().exists());
}

#[test]
fn a_pushed_state_holds_for_its_time_and_a_silent_program_is_down() {
    let checked = Checked::start(&[("pushed", "pushed = true".to_owned())]);
    assert!(!checked.is_up("pushed"));
    let said = checked.command(&["push", "pushed/127.0.0.1", "up", "--for", "1m"]);
    assert_eq!(said, "members that take it, for 60.0 s: 1\n");
    checked.await_state("pushed", true);
    checked.command(&["push", "pushed/*", "down", "--reason", "disk is full"]);
    checked.await_state("pushed", false);
    assert!(checked.command(&["show", "pushed"]).contains("disk is full"));
    checked.command(&["push", "pushed/127.0.0.1", "up", "--for", "1s"]);
    checked.await_state("pushed", true);
    checked.await_state("pushed", false);
    assert!(checked.command(&["push", "nothing/*", "up"]).contains("no pool `nothing`"));
    assert!(checked.command(&["push", "pushed/x", "up"]).contains("POOL/ADDRESS"));
}

#[test]
fn replies_over_tcp_and_udp_and_echoes_decide_about_members() {
    let (tcp, udp) = (free_port(), free_port());
    let is_well = Arc::new(AtomicBool::new(true));
    let listener = TcpListener::bind(("127.0.0.1", tcp)).unwrap();
    let told = Arc::clone(&is_well);
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut sent = [0; 4];
            if stream.read_exact(&mut sent).is_ok() && told.load(SeqCst) && &sent == b"PING" {
                let _ = stream.write_all(b"+PONG\r\n"); // the probe may be gone
            }
        }
    });
    let socket = UdpSocket::bind(("127.0.0.1", udp)).unwrap();
    let told = Arc::clone(&is_well);
    thread::spawn(move || {
        let mut octets = [0; 64];
        while let Ok((count, from)) = socket.recv_from(&mut octets) {
            if told.load(SeqCst) {
                let _ = socket.send_to(&octets[..count], from);
            }
        }
    });
    let checked = Checked::start(&[
        ("tcp", format!("tcp = {tcp}, send = \"PING\", expect = \"PONG\"")),
        ("udp", format!("udp = {udp}, send = \"hello\", expect = \"ell\"")),
    ]);
    for pool in ["tcp", "udp"] {
        checked.await_state(pool, true);
    }
    is_well.store(false, SeqCst);
    for pool in ["tcp", "udp"] {
        checked.await_state(pool, false);
    }
}

#[test]
fn answers_of_dns_servers_decide_about_members() {
    let target = Server::start(&[], "");
    let port = target.zonda.address.port();
    let checked = Checked::start(&[
        ("name", format!("dns = \"www.example.org TXT\", port = {port}")),
        ("nothing", format!("dns = \"nothing.example.org A\", port = {port}")),
        ("denied", format!("dns = \"n.example.org A\", port = {port}, rcodes = \"NXDOMAIN\"")),
    ]);
    checked.await_state("name", true);
    checked.await_state("denied", true);
    assert!(!checked.is_up("nothing"));
    let listed: Value = serde_json::from_str(&checked.server.get("/v1/checks").1).unwrap();
    let checks = listed["checks"].as_array().unwrap();
    assert_eq!(checks.len(), 3, "{listed:#}");
    let of = |member: &str| {
        let has = |it: &&Value| it["members"].as_array().unwrap().contains(&member.into());
        checks.iter().find(has).unwrap().clone()
    };
    let nothing = of("nothing/127.0.0.1");
    assert_eq!((&nothing["kind"], &nothing["state"]), (&"dns".into(), &"down".into()));
    assert!(nothing["last"]["result"].as_str().unwrap().contains("NXDOMAIN"), "{nothing:#}");
    drop(target);
    checked.await_state("name", false);
}

#[test]
fn a_target_of_several_pools_is_probed_once_and_tells_all_of_its_members() {
    let port = free_port();
    let _listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let check = format!("tcp = {port}");
    let checked = Checked::start(&[("first", check.clone()), ("second", check)]);
    checked.await_state("first", true);
    checked.await_state("second", true);
    let listed: Value = serde_json::from_str(&checked.server.get("/v1/checks").1).unwrap();
    let checks = listed["checks"].as_array().unwrap();
    assert_eq!(checks.len(), 1, "{listed:#}");
    assert_eq!(checks[0]["members"], serde_json::json!(["first/127.0.0.1", "second/127.0.0.1"]));
}
