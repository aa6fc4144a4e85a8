//! What a popular name costs its clients when its answer expires: with prefetch, with expired
//! answers, and with neither. `--nocapture` prints the table of docs/performance.md.

use super::hostile::recursive;
use super::server::Server;
use std::net::Ipv4Addr;
use std::thread;
use std::time::Duration;
use zonda_testkit::paced::{QueryResults, ask_at_pace};
use zonda_testkit::upstream::{Record, Reply, always, say, wait};
use zonda_testkit::{Upstream, ask};

/// Questions a second, and in all. Those of 1.8 s are answered at once, and a client's socket has
/// room for some 250 answers.
const PACE: (u32, usize) = (100, 1200);
/// When an upstream dies that does, since the first question.
const DIES_AT: Duration = Duration::from_secs(3);
/// What is no delay at all, on a machine that does much else.
const AT_ONCE: Duration = Duration::from_millis(100);

/// What a way to keep answers is called, and the lines of its configuration.
type Way = (&'static str, &'static str);

const NEITHER: Way = ("neither", "[cache]\nprefetch = \"0 %\"\nstale = \"0s\"");
const PREFETCH: Way = ("prefetch", "[cache]\nprefetch-ttl-min = \"2s\"\nstale = \"0s\"");
const STALE: Way = ("expired after 1.8 s", "[cache]\nprefetch = \"0 %\"");
const STALE_AT_ONCE: Way =
    ("expired at once", "stale-after = \"0 ms\"\n[cache]\nprefetch = \"0 %\"");

/// What clients see of a name with a TTL of 2 s, whose upstream answers after 250 ms and perhaps
/// dies, and how often that is asked.
fn measure((name, lines): Way, dies: bool) -> (QueryResults, usize) {
    let reply = Reply::empty().answer(Record::address(7).ttl(2));
    let upstream = Upstream::start([always().then([wait(250..251), say(reply)])]);
    let keys = format!(
        "[[zone]]\nname = \".\"\n[zone.forward]\nto = \"{}\"\ntimeout = \"2s\"\n{lines}",
        upstream.address
    );
    let server = Server::start(&[], &keys);
    let question = recursive("www.example.net", "A");
    let address = server.zonda.address;
    assert_eq!(ask(address, &question).unwrap().rcode_text(), "NOERROR");
    let (a_second, count) = PACE;
    let questions = (0..count).map(|_| recursive("www.example.net", "A"));
    let seen = thread::scope(|scope| {
        if dies {
            scope.spawn(|| {
                thread::sleep(DIES_AT);
                upstream.now_does([]);
            });
        }
        ask_at_pace(address, Ipv4Addr::LOCALHOST, a_second, questions)
    });
    let [half, most, all] = [50, 99, 100].map(|percent| seen.within(percent).as_secs_f64() * 1e3);
    let what = if dies { "dies" } else { "is slow" };
    println!(
        "| {what} | {name} | {} | {half:.2} | {most:.1} | {all:.1} | {} |",
        seen.lost(),
        upstream.asked()
    );
    (seen, upstream.asked())
}

#[test]
fn prefetch_and_expired_answers_spare_clients_the_wait_for_a_slow_upstream() {
    thread::scope(|scope| {
        let [neither, prefetch, stale] =
            [NEITHER, PREFETCH, STALE_AT_ONCE].map(|way| scope.spawn(move || measure(way, false)));
        let (neither, asked) = neither.join().unwrap();
        neither.check_all_answered();
        assert!(neither.within(98) > AT_ONCE, "a tenth of the clients wait: {:?}", neither.0);
        for way in [prefetch, stale] {
            let (seen, asked_here) = way.join().unwrap();
            seen.check_all_answered();
            assert!(seen.within(99) < AT_ONCE, "{:?}", seen.within(99));
            assert!(asked_here <= 3 * asked, "{asked_here} queries, and {asked} with neither");
        }
    });
}

#[test]
fn expired_answers_are_given_when_an_upstream_dies() {
    thread::scope(|scope| {
        let [neither, stale, at_once] =
            [NEITHER, STALE, STALE_AT_ONCE].map(|way| scope.spawn(move || measure(way, true)));
        assert!(neither.join().unwrap().0.lost() > PACE.1 / 4);
        let stale = stale.join().unwrap().0;
        stale.check_all_answered();
        assert!(stale.within(100) < Duration::from_millis(2500), "{:?}", stale.within(100));
        let at_once = at_once.join().unwrap().0;
        at_once.check_all_answered();
        assert!(at_once.within(99) < AT_ONCE, "{:?}", at_once.within(99));
    });
}
