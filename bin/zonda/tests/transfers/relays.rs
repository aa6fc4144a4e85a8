//! Updates that a secondary forwards to the primary of their zone.

use crate::primaries::{Secondary, zone};
use crate::primary::{KEY, Primary, client, key_argument, wait_until};
use crate::update_clients::{ZONE, send_to};
use crate::update_messages::Update;
use std::fs;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};
use zonda_testkit::process::{
    Folder, Process, free_port, has_required, required, start_on_free_port,
};
use zonda_wire::Rcode;

/// A key that the primary alone knows, and its secret.
const OWN_KEY: (&str, &str) = ("own.example", "b3duIGtleSBvZiB0aGUgcHJpbWFyeSwgMzIgb2N0ZXQ=");

/// The section of a zone with primaries that forwards updates of some clients.
fn forwarding(primaries: &str, clients: &str) -> String {
    zone("up.test", primaries, &format!("refresh-max = \"1s\"\nupdate-from = [{clients}]\n"))
}

/// A primary that this address and both keys may change, and that notifies no server.
fn primary() -> Primary {
    let keys = format!(
        "update = [{{ from = [\"127.0.0.1\", \"key {}\", \"key {}\"], names = \"zone\" }}]\n\
         transfer = {{ to = [\"127.0.0.1\"] }}",
        KEY.0, OWN_KEY.0
    );
    let own = format!("[[key]]\nname = \"{}\"\nsecret = \"{}\"", OWN_KEY.0, OWN_KEY.1);
    Primary::start_with(&[("up.test", ZONE, &keys)], &own)
}

/// The section of the key that both servers know.
fn key() -> String {
    format!("[[key]]\nname = \"{}\"\nsecret = \"{}\"\n", KEY.0, KEY.1)
}

/// The records of a name and type, as dig prints them.
fn short(address: SocketAddr, name: &str, rtype: &str) -> String {
    client("dig", address, &["+short", "+norec", name, rtype]).trim().to_owned()
}

/// The option of nsupdate for a key.
fn option(key: (&str, &str)) -> String {
    format!("hmac-sha256:{}:{}", key.0, key.1)
}

#[test]
fn an_update_is_forwarded_as_it_came_and_its_client_gets_the_reply_of_the_primary() {
    if !has_required(&["nsupdate"]) {
        return;
    }
    let primary = primary();
    let from = format!("\"{}\"", primary.address);
    let server = Secondary::start(&(key() + &forwarding(&from, "\"127.0.0.1\"")));
    wait_until("the first transfer", || server.serial("up.test") == Some(7));
    for (number, tcp) in [false, true].into_iter().enumerate() {
        let (name, id) = (format!("n{number}.up.test"), 0x4711 + number as u16);
        let add = format!("IN {name} 60 A 192.0.2.7");
        let update = Update::new("up.test").need(&format!("ANY {name} 0 ANY")).id(id);
        assert_eq!(update.change(&add).reply(server.address, tcp).rcode(), Rcode::NXDOMAIN);
        let update = Update::new("up.test").need(&format!("NONE {name} 0 ANY")).id(id);
        assert_eq!(update.change(&add).reply(server.address, tcp).rcode(), Rcode::NOERROR);
        assert_eq!(short(primary.address, &name, "A"), "192.0.2.7");
        wait_until("its transfer", || !short(server.address, &name, "A").is_empty());
    }
    // nsupdate verifies that the reply is signed with its key, be it known here or not.
    for (number, signer) in [KEY, OWN_KEY].into_iter().enumerate() {
        for tcp in ["", "-v"] {
            let name = format!("k{number}{tcp}.up.test.");
            let signer = option(signer);
            let options = [&["-y", &*signer][..], &[tcp][usize::from(tcp.is_empty())..]].concat();
            let lines = ["zone up.test.", &*format!("update add {name} 60 A 192.0.2.8")];
            let (said, is_done) = send_to("nsupdate", server.address, &options, &lines);
            assert!(is_done && said.contains("NOERROR"), "{options:?}: {said}");
            assert_eq!(short(primary.address, &name, "A"), "192.0.2.8");
        }
    }
    let log = server.log();
    assert!(log.contains("an update was forwarded"), "{log}");
}

#[test]
fn updates_of_clients_that_are_not_named_are_refused_and_forwarded_nowhere() {
    if !has_required(&["nsupdate"]) {
        return;
    }
    let primary = primary();
    let from = format!("\"{}\"", primary.address);
    let keyed = format!("\"key {}\"", KEY.0);
    let server = Secondary::start(&(key() + &forwarding(&from, &keyed)));
    wait_until("the first transfer", || server.serial("up.test") == Some(7));
    let update = Update::new("up.test").change("IN new.up.test 60 A 192.0.2.7");
    let (rcode, ede, text) = update.explained(server.address);
    assert_eq!((rcode, ede), (Rcode::REFUSED, 18));
    assert!(text.contains("send the update to its primary"), "{text}");
    let lines = ["zone up.test.", "update add new.up.test. 60 A 192.0.2.8"];
    let own = option(OWN_KEY);
    let (said, is_done) = send_to("nsupdate", server.address, &["-y", &own], &lines);
    assert!(!is_done && said.contains("BADKEY"), "{said}");
    let wrong = format!("hmac-sha256:{}:{}", KEY.0, OWN_KEY.1);
    let (said, is_done) = send_to("nsupdate", server.address, &["-y", &wrong], &lines);
    assert!(!is_done && said.contains("BADSIG"), "{said}");
    assert_eq!(short(primary.address, "new.up.test", "A"), "");
    let (said, is_done) = send_to("nsupdate", server.address, &["-y", &key_argument()], &lines);
    assert!(is_done, "{said}");
    assert_eq!(short(primary.address, "new.up.test", "A"), "192.0.2.8");
}

#[test]
fn an_update_that_no_primary_replies_to_is_servfail_and_the_next_primary_is_tried() {
    if !has_required(&["nsupdate"]) {
        return;
    }
    let (primary, nowhere) = (primary(), free_port());
    let absent = format!("\"127.0.0.1:{nowhere}\"");
    let server = Secondary::start(&(key() + &forwarding(&absent, "\"127.0.0.1\"")));
    let update = Update::new("up.test").change("IN new.up.test 60 A 192.0.2.7");
    let (rcode, _, text) = update.explained(server.address);
    assert_eq!((rcode, &*text), (Rcode::SERVFAIL, "no primary of the zone has replied"));
    let lines = ["zone up.test.", "update add new.up.test. 60 A 192.0.2.8"];
    let (said, is_done) = send_to("nsupdate", server.address, &["-y", &key_argument()], &lines);
    assert!(!is_done && said.contains("SERVFAIL") && !said.contains("TSIG error"), "{said}");
    let config = server.folder.path().join("zonda.toml");
    let text = fs::read_to_string(&config).unwrap();
    let both = format!("{absent}, \"{}\"", primary.address);
    fs::write(&config, text.replace(&absent, &both)).unwrap();
    server.reload();
    wait_until("the first transfer", || server.serial("up.test") == Some(7));
    assert_eq!(update.id(0x4712).send(server.address), Rcode::NOERROR);
    assert_eq!(short(primary.address, "new.up.test", "A"), "192.0.2.7");
}

#[test]
fn a_primary_that_is_silent_leaves_threads_to_updates_for_the_other_ones() {
    let primary = primary();
    // It takes connections, and never replies.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let of_silent = zone(
        "silent.test",
        &format!("\"{}\"", silent.local_addr().unwrap()),
        "update-from = [\"127.0.0.1\"]\n",
    );
    let from = format!("\"{}\"", primary.address);
    let own = forwarding(&from, "\"127.0.0.1\"");
    let server = Secondary::start(&(key() + &of_silent + &own));
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    for id in 0..600 {
        let update = Update::new("silent.test").change("IN a.silent.test 60 A 192.0.2.7").id(id);
        client.send_to(&update.0.to_wire(), server.address).unwrap();
    }
    let began = Instant::now();
    let update = Update::new("up.test").change("IN new.up.test 60 A 192.0.2.7");
    assert_eq!(update.send(server.address), Rcode::NOERROR, "{}", server.log());
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

#[test]
fn an_update_that_two_servers_forward_to_each_other_is_refused_when_it_comes_back() {
    let nowhere = format!("\"127.0.0.1:{}\"", free_port());
    let one = Secondary::start(&forwarding(&nowhere, "\"127.0.0.1\""));
    let from = format!("\"{}\"", one.address);
    let other = Secondary::start(&forwarding(&from, "\"127.0.0.1\""));
    let path = one.folder.path().join("zonda.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace(&nowhere, &format!("\"{}\"", other.address))).unwrap();
    one.reload();
    wait_until("it is reloaded", || one.log().contains("zones reloaded"));
    for tcp in [false, true] {
        let began = Instant::now();
        let update = Update::new("up.test").change("IN new.up.test 60 A 192.0.2.7");
        let reply = update.id(0x4700 + u16::from(tcp)).reply(one.address, tcp);
        assert_eq!(reply.rcode(), Rcode::SERVFAIL);
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    }
    assert!(one.log().contains("an update has come back"), "{}", one.log());
}

/// Starts BIND as the primary of `up.test`, which both keys may change.
fn named() -> (Process, SocketAddr, Folder) {
    let (path, folder) = (required("named").unwrap(), Folder::new("named"));
    folder.write("up.zone", format!("$ORIGIN up.test.\n{ZONE}"));
    // Debian confines `/usr/sbin/named` to its own folders (AppArmor), so a copy is run.
    let copy = folder.path().join("named");
    fs::copy(path, &copy).unwrap();
    let own = folder.path().display().to_string();
    let keys = [KEY, OWN_KEY].map(|(name, secret)| {
        format!("key \"{name}\" {{ algorithm hmac-sha256; secret \"{secret}\"; }};\n")
    });
    let (process, address) = start_on_free_port("named", &folder, &["up.test."], |folder, port| {
        let text = format!(
            "options {{ directory \"{own}\"; listen-on port {port} {{ 127.0.0.1; }}; \
             listen-on-v6 {{ none; }}; recursion no; pid-file \"{own}/named.pid\"; \
             session-keyfile \"{own}/session.key\"; dnssec-validation no; notify no; \
             empty-zones-enable no; }}; controls {{}};\n{}zone \"up.test\" {{ type primary; \
             file \"up.zone\"; allow-update {{ key \"{}\"; key \"{}\"; }}; \
             allow-transfer {{ 127.0.0.1; }}; }};\n",
            keys.concat(),
            KEY.0,
            OWN_KEY.0,
        );
        let mut command = Command::new(&copy);
        command.args(["-g", "-n", "1", "-c"]).arg(folder.write("named.conf", text));
        command
    });
    (process, address, folder)
}

#[test]
fn real_peers_bind_takes_updates_that_zonda_forwards_and_nsupdate_can_verify_its_replies() {
    if !has_required(&["named", "nsupdate"]) {
        return;
    }
    let (_process, primary, _folder) = named();
    let more = forwarding(&format!("\"{primary}\""), "\"127.0.0.1\"");
    let server = Secondary::start(&(key() + &more));
    wait_until("the first transfer", || server.serial("up.test") == Some(7));
    for (number, signer) in [KEY, OWN_KEY].into_iter().enumerate() {
        let name = format!("k{number}.up.test.");
        let add = format!("update add {name} 60 A 192.0.2.8");
        let lines = ["zone up.test.", &*format!("prereq nxdomain {name}"), &*add];
        let signer = option(signer);
        let options = ["-y", &*signer];
        let (said, is_done) = send_to("nsupdate", server.address, &options, &lines);
        assert!(is_done && said.contains("NOERROR"), "{said}");
        assert_eq!(short(primary, &name, "A"), "192.0.2.8");
        wait_until("its transfer", || !short(server.address, &name, "A").is_empty());
        let (said, is_done) = send_to("nsupdate", server.address, &options, &lines);
        assert!(!is_done && said.contains("YXDOMAIN"), "{said}");
    }
    let lines = ["zone up.test.", "update add new.up.test. 60 A 192.0.2.8"];
    let (said, is_done) = send_to("nsupdate", server.address, &[], &lines);
    assert!(!is_done && said.contains("REFUSED"), "without a key: {said}");
}
