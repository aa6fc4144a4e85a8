//! The example programs do what they say. The README's has a test of its own.

#![allow(clippy::unwrap_used)]

use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use zonda::{Message, Name, Type};
use zonda_testkit::process::free_port;

/// A program that ends with its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the program of an example.
fn program(name: &str) -> Command {
    let tests = std::env::current_exe().unwrap();
    let program: PathBuf = tests.ancestors().nth(2).unwrap().join("examples").join(name);
    assert!(program.exists(), "`cargo build -p zonda --examples` makes {}", program.display());
    let mut command = Command::new(program);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Returns an address that was free a moment ago.
fn free_address() -> String {
    format!("127.0.0.1:{}", free_port())
}

/// Asks a program until it answers: the response code and the data of all answers.
fn ask(running: &mut Running, address: &str, name: &str, qtype: Type) -> (u16, Vec<Vec<u8>>) {
    let name: Name = name.parse().unwrap();
    let header = &b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0"[..];
    let query = [header, name.as_wire(), &qtype.0.to_be_bytes(), &[0, 1]].concat();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    socket.connect(address).unwrap();
    let limit = Instant::now() + Duration::from_secs(20);
    let mut buffer = [0; 512];
    let len = loop {
        let _ = socket.send(&query); // refused until it listens
        match socket.recv(&mut buffer) {
            Ok(len) => break len,
            Err(_) if running.0.try_wait().unwrap().is_some() => panic!("it has ended"),
            Err(error) => assert!(Instant::now() < limit, "{error}"),
        }
    };
    let reply = Message::parse(&buffer[..len]).unwrap();
    (reply.flags & 0xf, reply.records.iter().map(|record| record.rdata.clone()).collect())
}

#[test]
fn the_server_answers_by_each_kind_of_handler() {
    let address = free_address();
    let mut running = Running(program("server").arg(&address).spawn().unwrap());
    let mut answer = |name, qtype| ask(&mut running, &address, name, qtype);
    assert_eq!(answer("a.b.dyn.example", Type::A), (0, vec![vec![192, 0, 2, 1]]));
    assert_eq!(answer("Ann.users.example", Type::TXT), (0, vec![b"\x03ann".to_vec()]));
    assert_eq!(answer("slow.example", Type::TXT), (0, vec![b"\x11worth waiting for".to_vec()]));
    assert_eq!(answer("count.example", Type::TXT), (0, vec![b"\x011".to_vec()]));
    assert_eq!(answer("other.example", Type::A), (5, vec![]));
}

#[test]
fn a_server_ends_well_at_sigterm_and_sigint() {
    for signal in ["-TERM", "-INT"] {
        let address = free_address();
        let mut running = Running(program("server").arg(&address).spawn().unwrap());
        ask(&mut running, &address, "slow.example", Type::TXT);
        let id = running.0.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
        assert!(running.0.wait().unwrap().success(), "{signal}");
    }
}

#[test]
fn a_program_for_which_systemd_opened_sockets_starts_and_binds_its_own() {
    let (address, program) = (free_address(), program("server"));
    let script = "LISTEN_PID=$$ LISTEN_FDS=1; export LISTEN_PID LISTEN_FDS; exec \"$@\" 3<&0";
    let mut supervisor = Command::new("sh");
    supervisor.args(["-c", script, "sh"]).arg(program.get_program()).arg(&address);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    supervisor.stdin(OwnedFd::from(socket)).stdout(Stdio::null()).stderr(Stdio::null());
    let mut running = Running(supervisor.spawn().unwrap());
    let answer = ask(&mut running, &address, "a.dyn.example", Type::A);
    assert_eq!(answer, (0, vec![vec![192, 0, 2, 1]]));
}

#[test]
fn hooks_of_an_acme_client_put_tokens_in_and_take_them_away() {
    let address = free_address();
    let file = std::env::temp_dir().join(format!("zonda-acme-{}.sock", std::process::id()));
    let served = ["serve", &address, "example.org", "example.net"];
    let serve = program("acme").args(served).env("ACME_SOCKET", &file).spawn();
    let mut running = Running(serve.unwrap());
    let hook = |what: &str, domain: &str, token: &str| {
        let mut hook = program("acme");
        hook.arg(what).env("ACME_SOCKET", &file).env("CERTBOT_DOMAIN", domain);
        hook.env("CERTBOT_VALIDATION", token).status().unwrap().success()
    };
    let mut tokens =
        |domain: &str| ask(&mut running, &address, &format!("_acme-challenge.{domain}"), Type::TXT);
    assert_eq!(tokens("example.org"), (0, vec![]));

    assert!(hook("set", "example.org", "one") && hook("set", "example.org", "two"));
    assert!(hook("set", "example.net", "three"));
    let both = vec![b"\x03one".to_vec(), b"\x03two".to_vec()];
    assert_eq!(tokens("example.org"), (0, both), "a domain and its wildcard have a token each");
    assert_eq!(tokens("example.net"), (0, vec![b"\x05three".to_vec()]));
    assert!(hook("clear", "example.org", "one"));
    assert_eq!(tokens("example.org"), (0, vec![b"\x03two".to_vec()]));

    assert!(!hook("set", "example.org", "no token"), "what is wrong, the hook tells certbot");
    drop(running);
    assert!(!hook("set", "example.org", "four"), "nobody serves it");
    std::fs::remove_file(file).unwrap();
}

#[test]
fn the_cookbook_shows_the_acme_helper_as_it_is() {
    let cookbook = include_str!("../../../docs/cookbook.md");
    let example = include_str!("../examples/acme.rs");
    let code = &example[example.find("use std").unwrap()..]; // behind its own documentation
    assert!(cookbook.contains(&format!("```rust,no_run\n{code}```\n")), "it shows another");
}
