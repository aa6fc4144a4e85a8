//! When a zone expires, as clients are told that ask with the option EXPIRE of EDNS (rfc7314).

use crate::primaries::{Secondary, zone};
use crate::primary::{Primary, wait_until};
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;
use zonda_testkit::client::exchange;
use zonda_testkit::{Message, Question, ask};

/// The code of the option.
const EXPIRE: u16 = 9;
/// The number of the type by which changes are asked for.
const IXFR: u16 = 251;

/// A zone that is checked each second, and expires after ten minutes.
const ZONE: &str =
    "$TTL 60\n@ SOA ns host 7 1 1 600 60\n@ NS ns\nns A 192.0.2.1\nwww A 192.0.2.2\n";

/// The seconds that the reply to a question for a name and type has, if it has any; asked for with
/// these data in the option.
fn expire(server: SocketAddr, (name, rtype): (&str, &str), data: &[u8]) -> Option<u32> {
    let question = Question::new(name, rtype).edns(1232).option(EXPIRE, data);
    let question = if rtype == "SOA" { question } else { question.over_tcp() };
    let options = ask(server, &question).unwrap().edns.unwrap().options;
    let (_, data) = options.into_iter().find(|(code, _)| *code == EXPIRE)?;
    Some(u32::from_be_bytes(data.try_into().unwrap()))
}

#[test]
fn a_primary_tells_the_expire_time_of_its_soa_record_to_clients_that_ask_for_the_zone() {
    let primary = Primary::start(&[("one.test", ZONE, "\"127.0.0.1\"")], "");
    for rtype in ["SOA", "AXFR"] {
        assert_eq!(expire(primary.address, ("one.test", rtype), &[]), Some(600), "{rtype}");
    }
    for (name, rtype) in
        [("one.test", "NS"), ("www.one.test", "A"), ("www.one.test", "SOA"), ("two.test", "SOA")]
    {
        assert_eq!(expire(primary.address, (name, rtype), &[]), None, "{name} {rtype}");
    }
    assert_eq!(expire(primary.address, ("one.test", "SOA"), &[0; 4]), None, "it is not empty");
    let without = Question::new("one.test", "SOA").edns(1232);
    assert_eq!(ask(primary.address, &without).unwrap().edns.unwrap().options, []);
}

#[test]
fn a_secondary_tells_the_time_that_is_left_and_so_does_one_behind_it() {
    let primary = Primary::start(&[("one.test", ZONE, "\"127.0.0.1\"")], "");
    let from = |address: SocketAddr| zone("one.test", &format!("\"{address}\""), "");
    let first = Secondary::start(&from(primary.address));
    wait_until("the first transfer", || first.serial("one.test") == Some(7));
    let second = Secondary::start(&from(first.address));
    wait_until("the second transfer", || second.serial("one.test") == Some(7));
    let left = |server: &Secondary, rtype| {
        expire(server.address, ("one.test", rtype), &[]).expect("it tells the time")
    };
    assert!((540..=600).contains(&left(&first, "SOA")), "{}", left(&first, "SOA"));
    drop(primary);
    let begin = left(&first, "SOA");
    wait_until("time passes", || left(&first, "SOA") + 8 <= begin);
    // The second one is in step with the first, but has no more time than that.
    thread::sleep(Duration::from_millis(1500));
    for rtype in ["SOA", "AXFR"] {
        let (of_first, of_second) = (left(&first, rtype), left(&second, rtype));
        assert!(of_first <= begin - 8, "{rtype}: {of_first} of {begin}");
        assert!(of_second <= of_first + 6, "{rtype}: {of_second} in place of {of_first}");
    }
}

/// The number of records, and the seconds until the zone expires, in the first message of the reply
/// to a question for the changes of `one.test` since a serial.
fn changes(server: SocketAddr, serial: u32, tcp: bool) -> (usize, Option<u32>) {
    let question = Question::new("one.test", "SOA").edns(1232).option(EXPIRE, &[]);
    let mut query = Question { record_type: IXFR, ..question }.to_bytes(1);
    let numbers = [serial, 0, 0, 0, 0].map(u32::to_be_bytes).concat();
    let soa = [b"\xc0\x0c\0\x06\0\x01\0\0\0\0\0\x16\0\0", &numbers[..]].concat();
    let question_end = query.len() - 15; // in front of OPT with an empty option
    query.splice(question_end..question_end, soa);
    query[9] = 1;
    let message = Message::parse(&exchange(server, &query, tcp).unwrap()).unwrap();
    let options = message.edns.unwrap().options;
    let data = options.into_iter().find_map(|(code, data)| (code == EXPIRE).then_some(data));
    (message.answer.len(), data.map(|data| u32::from_be_bytes(data.try_into().unwrap())))
}

#[test]
fn replies_to_questions_for_changes_tell_the_time_whatever_is_sent() {
    let primary = Primary::start(&[("one.test", ZONE, "\"127.0.0.1\"")], "");
    let newer = ZONE.replace("host 7", "host 8") + "new A 192.0.2.3\n";
    primary.folder.write("0.zone", newer);
    primary.reload();
    wait_until("the next version", || changes(primary.address, 8, true).0 == 1);
    assert_eq!(changes(primary.address, 8, false), (1, Some(600)), "over UDP");
    assert_eq!(changes(primary.address, 8, true), (1, Some(600)), "the client is up to date");
    assert_eq!(changes(primary.address, 7, true), (5, Some(600)), "what has changed");
    assert_eq!(changes(primary.address, 6, true), (6, Some(600)), "the whole zone");
}

#[test]
fn a_zone_that_had_a_file_tells_the_time_that_is_left_before_a_primary_is_heard() {
    let primary = Primary::start(&[("one.test", ZONE, "\"127.0.0.1\"")], "");
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let of_file = "[[zone]]\nname = \"one.test\"\nfile = \"one.zone\"\n\
                   transfer = { to = [\"127.0.0.1\"] }\n";
    let server = Secondary::start_with(of_file, &[("one.zone", ZONE)]);
    let times = || ["SOA", "AXFR"].map(|it| expire(server.address, ("one.test", it), &[]));
    assert_eq!(times(), [Some(600); 2]);
    let path = server.folder.path().join("zonda.toml");
    let first = fs::read_to_string(&path).unwrap();
    let follow = |address: SocketAddr| {
        let of_primaries = zone("one.test", &format!("\"{address}\""), "");
        server.folder.write("zonda.toml", first.replace(of_file, &of_primaries));
        server.reload();
    };
    follow(silent.local_addr().unwrap());
    let is_less = |left: Option<u32>| left.is_some_and(|left| (540..=597).contains(&left));
    wait_until("time passes", || times().into_iter().all(is_less));
    assert!(is_less(changes(server.address, 7, false).1));
    assert_eq!(server.serial("one.test"), Some(7), "it is served as it was");
    follow(primary.address);
    wait_until("it is in step with a primary", || times().iter().all(|it| *it > Some(597)));
}

#[test]
fn a_zone_whose_rights_change_still_tells_the_time_that_is_left() {
    let primary = Primary::start(&[("one.test", ZONE, "\"127.0.0.1\"")], "");
    let text = zone("one.test", &format!("\"{}\"", primary.address), "");
    let server = Secondary::start(&text);
    wait_until("the first transfer", || server.serial("one.test") == Some(7));
    drop(primary);
    let left = |rtype| expire(server.address, ("one.test", rtype), &[]);
    wait_until("time passes", || left("SOA").unwrap() <= 596);
    let path = server.folder.path().join("zonda.toml");
    let changed =
        fs::read_to_string(&path).unwrap().replace("to = [\"127.0.0.1\"]", "to = [\"192.0.2.1\"]");
    server.folder.write("zonda.toml", changed);
    server.reload();
    wait_until("transfers are refused", || left("AXFR").is_none());
    assert!(left("SOA").unwrap() <= 596, "{:?}", left("SOA"));
}
