//! Whether and how often files are looked at, which a reload changes.

use super::{Server, address, listeners};
use crate::server::{wait_until, zone};
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;
use zonda_testkit::{Question, ask};

/// The version of the zone that an address answers from.
fn version(dns: SocketAddr) -> String {
    let reply = ask(dns, &Question::new("www.example.org", "TXT")).unwrap();
    reply.answer[0].data.text.clone()
}

/// Whether this version of the zone is answered from.
fn has_version(dns: SocketAddr, number: u32) -> bool {
    version(dns).contains(&format!("version {number}"))
}

#[test]
fn a_reload_takes_over_whether_and_how_often_files_are_watched() {
    let dns = address();
    let server = Server::start(&[dns]);
    let reload = |keys: &str| {
        let output = server.try_reload(&(keys.to_owned() + &listeners(&[dns])));
        assert!(output.status.success(), "{output:?}");
    };
    let write = |number: u32| drop(server.folder.write("example.org.zone", zone(number)));
    let watched = "watch = true\nwatch-interval = \"100 ms\"\n";
    reload(watched);
    write(2);
    wait_until("the zone is loaded again", || has_version(dns, 2));
    reload("watch-interval = \"100 ms\"\n");
    write(3);
    thread::sleep(Duration::from_secs(1));
    assert!(has_version(dns, 2), "no file is watched");
    reload(watched);
    assert!(has_version(dns, 3), "the reload itself loads what has changed");
    reload("watch = true\nwatch-interval = \"1h\"\n");
    thread::sleep(Duration::from_millis(300)); // a look that was due already
    write(4);
    thread::sleep(Duration::from_secs(1));
    assert!(has_version(dns, 3), "the next look is in an hour");
    reload(watched);
    write(5);
    wait_until("files are looked at again", || has_version(dns, 5));
    let log = server.process.log("");
    assert!(!log.contains("next start"), "{log}");
}

#[test]
fn files_are_looked_at_every_second_beside_a_secondary_zone() {
    let [dns, primary] = [(); 2].map(|()| address());
    let server = Server::start(&[dns]);
    // A zone that is awaited from its primary is told as an error.
    let _ = server.try_reload(&format!(
        "watch = true\nwatch-interval = \"1s\"\n{}[[zone]]\nname = \"example.org\"\n\
         file = \"example.org.zone\"\n[[zone]]\nname = \"example.net\"\n[zone.secondary]\n\
         from = [\"{primary}\"]\n",
        listeners(&[dns])
    ));
    let log = server.process.log("");
    assert!(!log.contains("the former stays in force"), "{log}");
    assert!(has_version(dns, 1));
    server.folder.write("example.org.zone", zone(2));
    wait_until("the zone is loaded again", || has_version(dns, 2));
}
