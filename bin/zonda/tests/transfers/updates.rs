//! Messages that change zones: response codes, rights, durability, and what follows a change.

use crate::primary::{KEY, Primary, client, records, wait_until};
use crate::update_clients::ZONE;
use crate::update_messages::Update;
use std::collections::HashSet;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use zonda_testkit::Question;
use zonda_testkit::client::exchange;
use zonda_testkit::paced::ask_at_pace;
use zonda_testkit::process::{Folder, start_on_free_port};
use zonda_wire::tsig::{Algorithm, Key, ReplySignature};
use zonda_wire::{Class, Message, Opcode, Rcode, Type};

/// All rights, for this address.
const OPEN: &str = "update = [{ from = \"127.0.0.1\", names = \"zone\" }, \
    { from = \"127.0.0.1\", names = \"zone\", types = [\"SOA\", \"NS\"] }]\n\
    transfer = { to = [\"127.0.0.1\"] }";

/// A server whose zone `up.test` has these keys in its section.
fn primary(keys: &str) -> Primary {
    Primary::start_with(&[("up.test", ZONE, keys)], "")
}

/// A server whose zone this address may change.
fn open() -> Primary {
    primary(OPEN)
}

/// A message for the zone.
fn update() -> Update {
    Update::new("up.test")
}

/// The records of a name and type, as dig prints them.
fn short(address: SocketAddr, name: &str, rtype: &str) -> String {
    client("dig", address, &["+short", "+norec", name, rtype]).trim().to_owned()
}

/// The serial of the zone.
fn serial(address: SocketAddr) -> u32 {
    short(address, "up.test", "SOA").split(' ').nth(2).unwrap().parse().unwrap()
}

#[test]
fn a_message_for_no_zone_of_this_server_is_notauth_and_one_without_a_sound_zone_section_formerr() {
    let primary = open();
    let to = primary.address;
    let notauth = Update::new("other.test").change("IN a.other.test 60 A 192.0.2.7");
    let (rcode, ede, _) = notauth.explained(to);
    assert_eq!((rcode, ede), (Rcode::NOTAUTH, 20));
    assert_eq!(Update::new("www.up.test").send(to), Rcode::NOTAUTH, "a name in the zone is none");
    let with = |change: fn(&mut Message)| {
        let mut update = update().change("IN new.up.test 60 A 192.0.2.7");
        change(&mut update.0);
        update.send(to)
    };
    assert_eq!(with(|it| it.questions[0].qtype = Type::A), Rcode::FORMERR);
    assert_eq!(with(|it| it.questions[0].qtype = Type::ANY), Rcode::FORMERR);
    assert_eq!(with(|it| it.questions[0].qclass = Class::ANY), Rcode::FORMERR);
    assert_eq!(with(|it| it.questions[0].qclass = Class::NONE), Rcode::FORMERR);
    assert_eq!(with(|it| it.questions[0].qclass = Class::CH), Rcode::NOTAUTH);
    assert_eq!(with(|it| it.questions.clear()), Rcode::FORMERR);
    assert_eq!(with(|it| it.questions.push(it.questions[0].clone())), Rcode::FORMERR);
    assert_eq!(with(|it| it.records[0].rdata.truncate(3)), Rcode::FORMERR);
    assert_eq!(with(|it| it.records[0].rtype = Type::OPT), Rcode::FORMERR);
    assert_eq!(serial(to), 7);
}

#[test]
fn each_prerequisite_that_is_not_met_has_its_code_and_is_explained() {
    let primary = open();
    let to = primary.address;
    for (need, code) in [
        ("ANY none.up.test 0 ANY", Rcode::NXDOMAIN),
        ("NONE www.up.test 0 ANY", Rcode::YXDOMAIN),
        ("ANY www.up.test 0 AAAA", Rcode::NXRRSET),
        ("NONE www.up.test 0 A", Rcode::YXRRSET),
        ("IN www.up.test 0 A 192.0.2.9", Rcode::NXRRSET),
        ("ANY elsewhere.test 0 ANY", Rcode::NOTZONE),
        ("ANY www.up.test 5 ANY", Rcode::FORMERR),
    ] {
        let message = update().need(need).change("IN new.up.test 60 A 192.0.2.7");
        assert_eq!(message.send(to), code, "{need}");
        assert_eq!(message.reply(to, true).rcode(), code, "{need}");
    }
    let (_, ede, text) = update().need("NONE www.up.test 0 A").explained(to);
    assert_eq!((ede, &*text), (0, "www.up.test. has A records"));
    assert_eq!((serial(to), short(to, "new.up.test", "A")), (7, String::new()));
    let met = update().need("ANY www.up.test 0 A").change("IN new.up.test 60 A 192.0.2.7");
    assert_eq!(met.send(to), Rcode::NOERROR);
    assert_eq!((serial(to), &*short(to, "new.up.test", "A")), (8, "192.0.2.7"));
    let unmet = primary.metric("zonda_queries_total{reason=\"update_unmet\"}");
    assert_eq!(unmet, 11.0);
}

#[test]
fn a_message_takes_effect_whole_or_not_at_all() {
    let primary = open();
    let to = primary.address;
    let first = update().change("IN one.up.test 60 A 192.0.2.7");
    assert_eq!(first.clone().change("IN two.test 60 A 192.0.2.7").send(to), Rcode::NOTZONE);
    assert_eq!(first.clone().change("IN two.up.test 60 ANY").send(to), Rcode::FORMERR);
    let signature = "IN two.up.test 60 NSEC up.test. A";
    assert_eq!(first.change(signature).send(to), Rcode::REFUSED);
    assert_eq!((serial(to), short(to, "one.up.test", "A")), (7, String::new()));
}

#[test]
fn what_changes_nothing_is_noerror_and_leaves_the_serial() {
    let primary = open();
    let to = primary.address;
    for changes in [
        &["IN www.up.test 60 A 192.0.2.2"][..],
        &["ANY none.up.test 0 ANY"],
        &["ANY www.up.test 0 A", "IN www.up.test 60 A 192.0.2.2"],
        &["IN www.up.test 60 CNAME ns.up.test"],
        &["ANY up.test 0 SOA"],
        &[],
    ] {
        let message = changes.iter().fold(update(), |message, change| message.change(change));
        assert_eq!(message.send(to), Rcode::NOERROR, "{changes:?}");
    }
    assert_eq!(serial(to), 7);
    assert_eq!(primary.metric("zonda_updates_total{result=\"unchanged\"}"), 6.0);
    let soa = "IN up.test 60 SOA ns.up.test host.up.test 70 7200 3600 1209600 60";
    assert_eq!(update().change(soa).send(to), Rcode::NOERROR);
    assert_eq!(serial(to), 70);
}

#[test]
fn rights_are_judged_by_name_type_ttl_and_number() {
    let rights = "[[zone.update]]\nfrom = \"127.0.0.1\"\nnames = [\"name www.up.test\", \
        \"subdomain dyn.up.test\", \"wildcard wild.up.test\"]\ntypes = [\"A\", \"AAAA\"]\n\
        records-per-type = 2\nttl-min = \"1m\"\nttl-max = \"1h\"\n[[zone.update]]\n\
        from = \"127.0.0.1\"\npreset = \"acme\"";
    let primary = primary(rights);
    let to = primary.address;
    let code = |changes: &[&str]| {
        let message = changes.iter().fold(update(), |message, change| message.change(change));
        message.send(to)
    };
    for allowed in [
        "IN dyn.up.test 60 A 192.0.2.7",
        "IN x.dyn.up.test 3600 AAAA 2001:db8::1",
        "IN a.wild.up.test 60 A 192.0.2.7",
        "IN www.up.test 60 A 192.0.2.7",
        "ANY x.dyn.up.test 0 AAAA",
        "ANY dyn.up.test 0 ANY",
        "ANY none.dyn.up.test 0 ANY",
        "IN _acme-challenge.up.test 120 TXT token",
        "IN _acme-challenge.www.up.test 300 TXT token",
        "ANY _acme-challenge.up.test 0 TXT",
    ] {
        assert_eq!(code(&[allowed]), Rcode::NOERROR, "{allowed}");
    }
    for refused in [
        "IN up.test 60 A 192.0.2.7",
        "IN x.www.up.test 60 A 192.0.2.7",
        "IN wild.up.test 60 A 192.0.2.7",
        "IN dyn.up.test 60 TXT text",
        "IN dyn.up.test 59 A 192.0.2.7",
        "IN dyn.up.test 3601 A 192.0.2.7",
        "ANY www.up.test 0 ANY",
        "ANY www.up.test 0 TXT",
        "ANY ns.up.test 0 ANY",
        "ANY none.up.test 0 ANY",
        "NONE ns.up.test 0 A 192.0.2.1",
        "IN _acme-challenge.up.test 301 TXT token",
        "IN _acme-challenge.up.test 60 CNAME www.up.test",
        "IN www.up.test 60 TXT token",
        "IN dyn.up.test 60 RRSIG A 13 2 60 20300101000000 20200101000000 1 up.test. AAAA",
    ] {
        assert_eq!(code(&[refused]), Rcode::REFUSED, "{refused}");
    }
    let third = "IN www.up.test 60 A 192.0.2.8";
    assert_eq!(code(&[third]), Rcode::REFUSED, "it would be the third");
    assert_eq!(code(&["NONE www.up.test 0 A 192.0.2.7", third]), Rcode::NOERROR);
    let (_, ede, text) = update().change("IN up.test 60 TXT t").explained(to);
    let why = "up.test. TXT: this client may not change these records";
    assert_eq!((ede, &*text), (18, why));
}

#[test]
fn an_acknowledged_change_survives_a_crash_and_is_in_the_file_after_a_stop() {
    let mut primary = open();
    for number in 0..20 {
        let message = update().change(&format!("IN n{number}.up.test 60 A 192.0.2.7"));
        assert_eq!(message.send(primary.address), Rcode::NOERROR);
    }
    primary.crash();
    assert_eq!(serial(primary.address), 27);
    assert_eq!(short(primary.address, "n19.up.test", "A"), "192.0.2.7");
    primary.restart();
    let file = fs::read_to_string(primary.folder.path().join("0.zone")).unwrap();
    assert!(file.contains("n19.up.test."), "{file}");
    assert_eq!(serial(primary.address), 27);
}

#[test]
fn what_the_disk_does_not_take_is_servfail_and_is_not_answered() {
    let primary = open();
    let to = primary.address;
    assert_eq!(update().change("IN one.up.test 60 A 192.0.2.7").send(to), Rcode::NOERROR);
    fs::remove_dir_all(primary.folder.path().join("state")).unwrap();
    let (rcode, _, text) = update().change("IN two.up.test 60 A 192.0.2.7").explained(to);
    assert_eq!(rcode, Rcode::SERVFAIL);
    assert!(text.contains("could not be written"), "{text}");
    assert_eq!((serial(to), short(to, "two.up.test", "A")), (8, String::new()));
    assert_eq!(short(to, "one.up.test", "A"), "192.0.2.7");
    assert_eq!(primary.metric("zonda_updates_total{result=\"failed\"}"), 1.0);
}

#[test]
fn nothing_acknowledged_is_lost_when_the_server_is_killed_under_updates_again_and_again() {
    let mut primary = open();
    let (mut acknowledged, mut last) = (Vec::<String>::new(), 7);
    for round in 0..8_u32 {
        let to = primary.address;
        let clients = (0..4).map(|client| {
            thread::spawn(move || {
                let mut done = Vec::new();
                for number in 0..10_000_u32 {
                    let name = format!("r{round}c{client}n{number}.up.test");
                    let change = format!("IN {name} 60 A 192.0.2.7");
                    let message = update().id(number as u16).change(&change).0.to_wire();
                    match exchange(to, &message, true) {
                        Ok(reply) if reply[3] & 0xf == 0 => done.push(name),
                        _ => break,
                    }
                }
                done
            })
        });
        let clients: Vec<_> = clients.collect();
        thread::sleep(Duration::from_millis(u64::from(40 + 37 * round)));
        primary.crash();
        clients.into_iter().for_each(|client| acknowledged.extend(client.join().unwrap()));
        let now = serial(primary.address);
        assert!(now >= last, "the serial went from {last} to {now}");
        last = now;
        let zone = records(primary.address, "up.test", &[]);
        let owners = zone.iter().filter_map(|record| record.split_once(". "));
        let owners: HashSet<&str> = owners.map(|(owner, _)| owner).collect();
        let is_missing = |name: &&String| !owners.contains(&***name);
        let lost: Vec<&String> = acknowledged.iter().filter(is_missing).collect();
        assert!(lost.is_empty(), "{} of {}: {lost:?}", lost.len(), acknowledged.len());
    }
    assert!(acknowledged.len() > 50, "{}", acknowledged.len());
}

#[test]
fn a_change_is_notified_and_in_the_history_for_ixfr() {
    let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    receiver.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let notify = format!("\"127.0.0.1\"], notify = [\"{}\"] }}", receiver.local_addr().unwrap());
    let keys = OPEN.replace("\"127.0.0.1\"] }", &notify);
    let primary = primary(&keys);
    let notified = || {
        let mut octets = [0; 512];
        let (len, from) = receiver.recv_from(&mut octets).unwrap();
        let mut message = Message::parse(&octets[..len]).unwrap();
        assert_eq!(message.opcode(), Opcode::NOTIFY);
        let soa = message.records[0].rdata.clone();
        message.flags |= 0x8000;
        receiver.send_to(&message.to_wire(), from).unwrap();
        u32::from_be_bytes(soa[soa.len() - 20..][..4].try_into().unwrap())
    };
    assert_eq!(notified(), 7);
    let message = update().change("IN new.up.test 60 A 192.0.2.7").change("ANY www.up.test 0 TXT");
    assert_eq!(message.send(primary.address), Rcode::NOERROR);
    assert_eq!(notified(), 8);
    let said = client("dig", primary.address, &["+noall", "+answer", "up.test", "IXFR=7"]);
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = said.lines().map(words).collect();
    assert_eq!(lines.len(), 6, "{said}");
    assert_eq!(lines[2], "www.up.test. 60 IN TXT \"text\"");
    assert_eq!(lines[4], "new.up.test. 60 IN A 192.0.2.7");
    assert!(records(primary.address, "up.test", &[]).iter().any(|it| it.contains("new.up.test.")));
}

#[test]
fn a_message_that_is_sent_twice_over_udp_is_carried_out_once() {
    let primary = open();
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket.connect(primary.address).unwrap();
    let message = update().need("NONE new.up.test 0 ANY").change("IN new.up.test 60 A 192.0.2.7");
    let send = |message: &Update| {
        socket.send(&message.0.to_wire()).unwrap();
        let mut octets = [0; 512];
        let len = socket.recv(&mut octets).unwrap();
        Message::parse(&octets[..len]).unwrap().rcode()
    };
    let codes = [send(&message), send(&message), send(&message.clone().id(7))];
    assert_eq!(codes, [Rcode::NOERROR, Rcode::NOERROR, Rcode::YXDOMAIN], "the last is another");
    assert_eq!(primary.metric("zonda_updates_total{result=\"repeated\"}"), 1.0);
    assert_eq!(serial(primary.address), 8);
}

#[test]
fn a_copy_of_a_signed_message_is_not_carried_out_wherever_it_comes_from() {
    let keyed = format!("update = [{{ from = \"key {}\", names = \"zone\" }}]", KEY.0);
    let primary = primary(&keyed);
    let to = primary.address;
    let secret = b"0123456789abcdef0123456789abcdef";
    let key = Key::new(&KEY.0.parse().unwrap(), Algorithm::HmacSha256, secret);
    let key = Arc::new(key);
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let sign_at = |message: Update, secs: u64| {
        let mut octets = message.0.to_wire();
        ReplySignature::sign_query(Arc::clone(&key), &mut octets, secs).unwrap();
        octets
    };
    let send =
        |octets: &[u8], tcp: bool| Rcode(u16::from(exchange(to, octets, tcp).unwrap()[3] & 15));
    let first = sign_at(update().change("IN www.up.test 60 A 192.0.2.7"), now());
    let second = update().change("ANY www.up.test 0 A").change("IN www.up.test 60 A 192.0.2.8");
    assert_eq!(send(&first, false), Rcode::NOERROR);
    assert_eq!(send(&sign_at(second, now()), true), Rcode::NOERROR);
    let mut other_id = first.clone();
    other_id[0] ^= 1;
    for (copy, tcp) in [(&first, false), (&first, true), (&other_id, false), (&other_id, true)] {
        assert_eq!(send(copy, tcp), Rcode::NOERROR, "as the first was told");
    }
    assert_eq!((serial(to), &*short(to, "www.up.test", "A")), (9, "192.0.2.8"));
    assert_eq!(primary.metric("zonda_updates_total{result=\"repeated\"}"), 4.0);
    let unmet = update().need("NONE new.up.test 0 ANY").change("IN new.up.test 60 A 192.0.2.7");
    let unmet = sign_at(unmet, now());
    assert_eq!([send(&unmet, false), send(&unmet, true)], [Rcode::NOERROR; 2]);
    let old = sign_at(update().change("IN old.up.test 60 A 192.0.2.7"), now() - 310);
    assert_eq!(send(&old, false), Rcode::NOTAUTH);
}

#[test]
fn messages_that_wait_are_carried_out_together_with_one_result_each() {
    const CLIENTS: u32 = 40;
    const EACH: u32 = 10;
    let primary = open();
    let to = primary.address;
    let clients = (0..CLIENTS).map(|client| {
        thread::spawn(move || {
            for number in 0..EACH {
                let own = format!("c{client}n{number}.up.test");
                let message = update()
                    .id((client * EACH + number) as u16)
                    .need(&format!("NONE {own} 0 ANY"))
                    .change(&format!("IN {own} 60 A 192.0.2.7"));
                let tcp = client % 2 == 0;
                assert_eq!(message.reply(to, tcp).rcode(), Rcode::NOERROR);
                let again = message.id(0x8000).reply(to, tcp);
                assert_eq!(again.rcode(), Rcode::YXDOMAIN, "its own result");
            }
        })
    });
    let clients: Vec<_> = clients.collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    let changed = primary.metric("zonda_updates_total{result=\"changed\"}");
    assert_eq!(changed, f64::from(CLIENTS * EACH));
    assert_eq!(primary.metric("zonda_updates_total{result=\"unmet\"}"), changed);
    let batches = primary.metric("zonda_update_batches_total");
    assert!(batches < changed, "{batches} batches for {changed} changes: none waited");
    assert!(serial(to) <= 7 + changed as u32);
    for number in [0, CLIENTS - 1] {
        assert_eq!(short(to, &format!("c{number}n{}.up.test", EACH - 1), "A"), "192.0.2.7");
    }
}

#[test]
fn a_flood_of_messages_costs_no_answer_and_what_has_no_room_is_servfail() {
    let primary = open();
    let to = primary.address;
    let stop = Arc::new(AtomicBool::new(false));
    let burst = Arc::new(AtomicU32::new(50));
    let floods = (0..2_u16).map(|flood| {
        let (stop, burst) = (Arc::clone(&stop), Arc::clone(&burst));
        thread::spawn(move || {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            socket.connect(to).unwrap();
            socket.set_nonblocking(true).unwrap();
            let (mut number, mut busy) = (0_u16, 0);
            let mut octets = [0; 512];
            while !stop.load(Relaxed) {
                for _ in 0..burst.load(Relaxed) {
                    number = number.wrapping_add(1);
                    let change = format!("IN f{flood}-{}.up.test 60 A 192.0.2.7", number % 512);
                    let _ = socket.send(&update().id(number).change(&change).0.to_wire());
                }
                thread::sleep(Duration::from_millis(2));
                while let Ok(len) = socket.recv(&mut octets) {
                    busy += usize::from(octets[..len][3] & 0xf == 2);
                }
            }
            busy
        })
    });
    let floods: Vec<_> = floods.collect();
    let question = || Question::new("www.up.test", "A");
    let results = ask_at_pace(to, Ipv4Addr::LOCALHOST, 200, (0..400).map(|_| question()));
    // A machine that is fast has answered all of them; more would cost queries in the kernel.
    burst.store(1000, Relaxed);
    wait_until("the queue has no room", || {
        primary.metric("zonda_updates_total{result=\"busy\"}") > 0.0
    });
    stop.store(true, Relaxed);
    let busy: usize = floods.into_iter().map(|flood| flood.join().unwrap()).sum();
    results.check_all_answered();
    wait_until("all are answered", || primary.metric("zonda_updates_waiting") == 0.0);
    let counted = primary.metric("zonda_updates_total{result=\"busy\"}");
    assert!(counted >= busy as f64, "{counted} counted, {busy} seen");
    assert_eq!(counted, primary.metric("zonda_queries_total{reason=\"update_busy\"}"));
}

#[test]
fn one_line_of_the_log_tells_an_update_and_what_became_of_it() {
    let primary = open();
    let to = primary.address;
    let message = update().need("ANY www.up.test 0 A").change("IN new.up.test 60 A 192.0.2.7");
    assert_eq!(message.send(to), Rcode::NOERROR);
    assert_eq!(update().need("ANY none.up.test 0 A").send(to), Rcode::NXRRSET);
    wait_until("the log has both", || primary.log().contains("an update was not carried out"));
    let log = primary.log();
    let line = log.lines().find(|line| line.contains("an update has changed a zone")).unwrap();
    for fact in [
        "zone=up.test.",
        "peer=127.0.0.1:",
        "key=\"none\"",
        "transport=\"udp\"",
        "prerequisites=1",
        "updates=1",
        "removed=1",
        "added=2",
        "from=7",
        "serial=8",
        "seconds=",
    ] {
        assert!(line.contains(fact), "{fact} in {line}");
    }
    let line = log.lines().find(|line| line.contains("an update was not carried out")).unwrap();
    assert!(line.contains("rcode=NXRRSET") && line.contains("has no A records"), "{line}");
}

#[test]
fn a_right_of_a_reload_is_in_force_at_once_and_so_is_the_loss_of_one() {
    let primary = open();
    let to = primary.address;
    let add = |name: &str| update().change(&format!("IN {name}.up.test 60 A 192.0.2.7")).send(to);
    assert_eq!(add("one"), Rcode::NOERROR);
    let path = primary.folder.path().join("zonda.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("from = \"127.0.0.1\"", "from = \"192.0.2.0/24\"")).unwrap();
    primary.reload();
    assert_eq!(add("two"), Rcode::REFUSED);
    fs::write(&path, text.replace("names = \"zone\"", "names = \"name three.up.test\"")).unwrap();
    primary.reload();
    assert_eq!([add("two"), add("three")], [Rcode::REFUSED, Rcode::NOERROR]);
    assert_eq!(serial(to), 9, "what was changed before stays");
}

#[test]
fn a_secondary_refuses_and_says_where_to_send_the_message() {
    let primary = primary("transfer = { to = [\"127.0.0.1\"] }");
    let folder = Folder::new("updated-secondary");
    let config = format!(
        "version = 1\nstate = \"state\"\n[[zone]]\nname = \"up.test\"\n[zone.secondary]\n\
         from = [\"{}\"]\n",
        primary.address
    );
    let config = folder.write("zonda.toml", config);
    let start = |_: &Folder, port: u16| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_zonda"));
        command.arg("serve").arg("--config").arg(&config);
        command.args(["--listen", &format!("127.0.0.1:{port}")]);
        command
    };
    let (_process, address) = start_on_free_port("zonda", &folder, &["up.test."], start);
    let message = update().change("IN new.up.test 60 A 192.0.2.7");
    let (rcode, ede, text) = message.explained(address);
    assert_eq!((rcode, ede), (Rcode::REFUSED, 18));
    assert!(text.contains("send the update to its primary"), "{text}");
}
