//! The program that the README shows is one that answers, also where there is nothing but packages.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use zonda::Message;
use zonda_testkit::process::{Folder, free_port};

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

/// Waits while another process uses the address for the same test; a permanent occupant fails the
/// test.
fn wait_for_the_address() {
    let limit = Instant::now() + Duration::from_secs(20);
    while let Err(error) = UdpSocket::bind(ADDRESS).and(TcpListener::bind(ADDRESS)) {
        assert!(
            Instant::now() < limit,
            "the README's program cannot be tried: it listens on {ADDRESS}, and so \
             does another process ({error}). Stop that one, such as a `make run`, and test again"
        );
        thread::sleep(Duration::from_millis(100));
    }
}

/// Starts a program and asks it for `hello.example TXT` until it answers.
fn check_that_it_answers(program: &Path, address: &str) {
    let started = Command::new(program).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut running = Running(started.unwrap());
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    socket.connect(address).unwrap();
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

#[test]
fn the_hello_world_answers() {
    wait_for_the_address();
    let tests = std::env::current_exe().unwrap();
    let program = tests.ancestors().nth(2).unwrap().join("examples/hello");
    assert!(program.exists(), "`cargo build -p zonda --examples` makes {}", program.display());
    check_that_it_answers(&program, ADDRESS);
}

/// Runs a program; returns what it has written.
fn run(folder: &Path, program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    command.env_remove("CARGO_BUILD_TARGET"); // it would have a folder of its own
    let output = command.current_dir(folder).args(arguments).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}:\n{told}");
    String::from_utf8(output.stdout).unwrap()
}

/// Packs the crate and the crates of this workspace that it needs, and unpacks them into a folder;
/// returns the name of each.
fn unpack_packages(folder: &Path) -> Vec<String> {
    let cargo = env!("CARGO");
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let tree = "tree --edges normal --prefix none --locked --all-features --format {p}";
    let tree = run(here, cargo, &tree.split(' ').collect::<Vec<_>>());
    let ours = tree.lines().filter(|line| line.starts_with("zonda"));
    let ours: BTreeSet<_> = ours.map(|line| line.split(' ').next().unwrap()).collect();
    let packed = folder.join("packed");
    let package = "package --no-verify --allow-dirty --offline --exclude-lockfile --target-dir";
    let mut arguments = package.split(' ').collect::<Vec<_>>();
    arguments.push(packed.to_str().unwrap());
    ours.iter().for_each(|name| arguments.extend(["--package", name]));
    run(here, cargo, &arguments);
    for name in &ours {
        let file = format!("packed/package/{name}-{}.crate", env!("CARGO_PKG_VERSION"));
        run(folder, "tar", &["--extract", "--gzip", "--file", &file]);
    }
    ours.into_iter().map(str::to_owned).collect()
}

/// A program that asks for what needs a feature, and prints why it does not start, a line each.
const REFUSED: &str = r#"
use zonda::App;

const SIGNED: &str = "@ 60 SOA ns hostmaster 1 2 3 4 5\n@ 60 NS ns\nns 60 A 192.0.2.1\n\
                      @ 60 DNSKEY 257 3 13 AAAA\n@ 60 NSEC3PARAM 1 0 0 -\n";

fn main() {
    let apps = [
        App::new().config("zonda.toml"),
        App::new().metrics(([127, 0, 0, 1], 0)),
        App::new().forward("tls://192.0.2.1"),
        App::new().zone("example", "example.json"),
        App::new().zone_text("example", SIGNED),
    ];
    for app in apps {
        let started = app.listen_nowhere().start_blocking();
        println!("{}", started.map_or_else(|error| error.to_string(), |_| "it starts".to_owned()));
    }
}
"#;

/// The manifest of a program in a folder that has the packages with these names.
fn manifest(names: &[String], dependency: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let places = names.iter().map(|name| format!("{name} = {{ path = \"{name}-{version}\" }}\n"));
    format!(
        "[package]\nname = \"hello\"\nedition = \"2024\"\ndefault-run = \"hello\"\n[workspace]\n\
         [profile.dev]\ndebug = 0\n[dependencies]\nzonda = {dependency}\n\
         tokio = {{ version = \"1\", features = [\"macros\", \"rt-multi-thread\"] }}\n\
         [patch.crates-io]\n{}",
        places.collect::<String>()
    )
}

#[test]
fn the_hello_world_builds_in_an_empty_folder_from_the_packages_alone_and_answers() {
    let folder = Folder::new("package");
    let version = env!("CARGO_PKG_VERSION");
    let names = unpack_packages(folder.path());
    // The lock file's versions, which this crate is tested with and which are there already.
    let lock = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock")).unwrap();
    folder.write("Cargo.lock", &lock);
    let address = format!("127.0.0.1:{}", free_port());
    fs::create_dir_all(folder.path().join("src/bin")).unwrap();
    folder.write("src/main.rs", EXAMPLE.replace(ADDRESS, &address));
    folder.write("src/bin/refused.rs", REFUSED);
    // Handlers need none of the features, and a third of the crates.
    let bare = format!("{{ version = \"{version}\", default-features = false }}");
    folder.write("Cargo.toml", manifest(&names, &bare));
    run(folder.path(), env!("CARGO"), &["build", "--offline", "--target-dir", "target"]);
    check_that_it_answers(&folder.path().join("target/debug/hello"), &address);
    let told = run(folder.path(), "target/debug/refused", &[]);
    let features = ["server", "server", "encrypted", "json", "dnssec"];
    assert_eq!(told.lines().count(), features.len(), "{told}");
    for (line, feature) in told.lines().zip(features) {
        assert!(line.ends_with(&format!("`{feature}`")) || line.contains(&format!("`{feature}`,")));
    }
    // With the features of a program that names none, the packages are whole as well.
    folder.write("Cargo.lock", &lock);
    folder.write("Cargo.toml", manifest(&names, &format!("\"{version}\"")));
    run(folder.path(), env!("CARGO"), &["check", "--offline", "--target-dir", "target"]);
}
