//! When a zone expires, as clients are told that ask with the option EXPIRE of EDNS (rfc7314).

use crate::primaries::{Secondary, zone};
use crate::primary::{Primary, wait_until};
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;
use zonda_testkit::{Question, ask};

/// The code of the option.
const EXPIRE: u16 = 9;

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
