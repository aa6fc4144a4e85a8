//! The program that the README shows is one that answers.

#![allow(clippy::unwrap_used)]

use std::net::{TcpListener, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use zonda::Message;

const README: &str = include_str!("../../../README.md");
const EXAMPLE: &str = include_str!("../examples/hello.rs");
/// Where the program listens.
const ADDRESS: &str = "127.0.0.1:5300";
/// `hello.example TXT`.
const QUERY: &[u8] = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x05hello\x07example\0\0\x10\0\x01";

/// A program that ends with its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_hello_world_of_the_readme_is_the_example() {
    let code = &EXAMPLE[EXAMPLE.find("use zonda").unwrap()..]; // behind its own documentation
    assert!(README.contains(&format!("```rust\n{code}```\n")), "the README shows another program");
}

/// Waits while somebody else tries the same; whoever stays there is no reason to pass over it.
fn wait_for_the_address() {
    let limit = Instant::now() + Duration::from_secs(20);
    while let Err(error) = UdpSocket::bind(ADDRESS).and(TcpListener::bind(ADDRESS)) {
        assert!(
            Instant::now() < limit,
            "the README's program cannot be tried: it listens on {ADDRESS}, and somebody else \
             does ({error}). Stop that, such as a `make run`, and test again"
        );
        thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn the_hello_world_answers() {
    wait_for_the_address();
    let tests = std::env::current_exe().unwrap();
    let program: PathBuf = tests.ancestors().nth(2).unwrap().join("examples/hello");
    assert!(program.exists(), "`cargo build -p zonda --examples` makes {}", program.display());
    let started = Command::new(program).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut running = Running(started.unwrap());
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    socket.connect(ADDRESS).unwrap();
    let limit = Instant::now() + Duration::from_secs(20);
    let mut buffer = [0; 512];
    let len = loop {
        let _ = socket.send(QUERY); // refused until it listens
        match socket.recv(&mut buffer) {
            Ok(len) => break len,
            Err(_) if running.0.try_wait().unwrap().is_some() => panic!("it has ended"),
            Err(error) => assert!(Instant::now() < limit, "{error}"),
        }
    };
    let reply = Message::parse(&buffer[..len]).unwrap();
    assert_eq!(reply.records[0].rdata, b"\x0dHello, world!");
}
