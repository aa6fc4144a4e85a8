//! What a server does that may open few descriptors.

use super::hostile::recursive;
use super::server::{BINARY, Server, text};
use std::fs::{self, Permissions};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;
use zonda_testkit::paced::ask_at_pace;
use zonda_testkit::process::Folder;
use zonda_testkit::upstream::{Reply, always, say};
use zonda_testkit::{Question, Upstream, ask};

/// A program that becomes a server which may have so many descriptors, and may not allow itself
/// more, as root may.
fn server_with(folder: &Folder, descriptors: u32) -> PathBuf {
    let text = format!(
        "#!/bin/sh\nulimit -n {descriptors}\nif [ \"$(id -u)\" = 0 ]; then\n\
         exec setpriv --inh-caps=-sys_resource --bounding-set=-sys_resource {BINARY} \"$@\"\n\
         fi\nexec {BINARY} \"$@\"\n"
    );
    let program = folder.write("zonda", text);
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    program
}

#[test]
fn a_server_that_may_open_few_descriptors_forwards_from_fewer_ports_and_says_so() {
    let folder = Folder::new("descriptors");
    let program = server_with(&folder, 200);
    let silent = Upstream::start([]);
    let keys = format!("[[zone]]\nname = \".\"\n[zone.forward]\nto = [\"{}\"]", silent.address);
    let server = Server::start_program(program.to_str().unwrap(), &[], &keys, &[]);
    let address = server.zonda.address;
    let questions = (0..1000).map(|it| recursive(&format!("name{it}.example.net"), "A"));
    thread::scope(|scope| {
        let asking =
            scope.spawn(|| ask_at_pace(address, Ipv4Addr::LOCALHOST, 1000, questions).lost());
        while !asking.is_finished() {
            let open = server.metric("zonda_forward_ports");
            assert!(open <= 50.0, "{open} ports, a quarter of the descriptors at most");
            thread::sleep(Duration::from_millis(50));
        }
    });
    let question = Question::new("www.example.org", "TXT").over_tcp();
    assert_eq!(ask(address, &question).unwrap().rcode_text(), "NOERROR");
    let log = server.zonda.process.log("descriptors");
    assert!(log.contains("LimitNOFILE") && log.contains("ports=50"), "{log}");
}

#[test]
fn a_server_without_descriptors_for_ports_holds_that_against_no_upstream() {
    let folder = Folder::new("descriptors");
    let program = server_with(&folder, 100);
    let upstream = Upstream::start([always().then([say(Reply::address(7))])]);
    let to = upstream.address;
    let keys = format!("[[zone]]\nname = \".\"\n[zone.forward]\nto = [\"{to}\"]");
    let server = Server::start_program(program.to_str().unwrap(), &[], &keys, &[]);
    let address = server.zonda.address;
    // It answers before it has opened all that it needs.
    assert!(!server.zonda.process.log_soon("listening").is_empty());
    let connections: Vec<_> = (0..120).map(|_| TcpStream::connect(address).unwrap()).collect();
    thread::sleep(Duration::from_millis(200)); // until as many as possible are accepted
    let questions = (0..20).map(|it| recursive(&format!("name{it}.example.net"), "A"));
    let seen = thread::scope(|scope| {
        let asking = scope.spawn(|| ask_at_pace(address, Ipv4Addr::LOCALHOST, 1000, questions));
        thread::sleep(Duration::from_millis(1000));
        assert_eq!(upstream.log().len(), 0, "there is no descriptor for a port");
        drop(connections);
        asking.join().unwrap()
    });
    seen.check_all_answered();
    let labels = format!("zone=\".\",upstream=\"{to}\"");
    let results = |result: &str| {
        server.metric(&format!("zonda_upstream_results_total{{{labels},result=\"{result}\"}}"))
    };
    assert_eq!((results("answered"), results("failed")), (20.0, 0.0));
    assert!(server.metric("zonda_forward_without_port_total") >= 20.0);
    assert!(!server.zonda.process.log("").contains("suspect"));
}

#[test]
fn a_server_that_may_open_too_few_descriptors_does_not_start_and_says_why() {
    let folder = Folder::new("descriptors");
    let mut command = Command::new("timeout");
    command.arg("10").arg(server_with(&folder, 50));
    command.args(["serve", "--listen", "127.0.0.1:0", "--forward", "127.0.0.1:9"]);
    command.env("ZONDA_ADMIN_ADDRESS", "off").env("ZONDA_ADMIN_SOCKET", "off");
    let output = command.output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("50 open descriptors") && said.contains("LimitNOFILE"), "{said}");
}
