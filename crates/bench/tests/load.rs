//! The generator against a server that misbehaves by script: every count is exact.

#![allow(clippy::unwrap_used)]

mod scripted;

use scripted::{Act, ScriptedServer};
use std::sync::Arc;
use std::time::Duration;
use zonda_bench::data::Latency;
use zonda_bench::load::limits::{BrokenLimit, Ceiling, Limits};
use zonda_bench::load::{
    self, End, ExpectedReplies, Form, LoadError, Mode, Outcome, Pace, Plan, Queries,
};
use zonda_bench::ramp::{self, Event, Ramp};
use zonda_testkit::process::Folder;

/// Returns a plan for `count` queries, ten outstanding. Times are far from those of the scripts, so
/// that a busy machine changes no count.
fn plan(server: &ScriptedServer, count: u64) -> Plan {
    let queries = Queries::from_lines("a.example A\nlonger.b.example AAAA\n", &Form::default());
    let mut plan = Plan::new(server.address(), queries.unwrap());
    plan.mode = Mode::Closed { outstanding: 10, rate_max: None };
    plan.end = End { count: Some(count), ..End::default() };
    plan.timeout = Duration::from_secs(1);
    plan
}

/// Runs a plan that can be followed.
fn run(plan: &Plan) -> Outcome {
    load::run(plan, None).unwrap()
}

/// Counts of a run: sent, completed, lost; unexpected, duplicate, late, wrong, truncated.
fn counts(outcome: &Outcome) -> ([u64; 3], [u64; 5]) {
    let traffic = &outcome.traffic;
    let main = [traffic.sent, traffic.completed, traffic.lost];
    let odd = [traffic.unexpected, traffic.duplicate, traffic.late, traffic.wrong];
    (main, [odd[0], odd[1], odd[2], odd[3], outcome.truncated])
}

#[test]
fn a_sound_server_answers_everything() {
    let server = ScriptedServer::start(vec![Act::Answer]);
    let outcome = run(&plan(&server, 1000));
    assert_eq!(counts(&outcome), ([1000, 1000, 0], [0; 5]));
    assert_eq!(outcome.traffic.rcodes["NOERROR"], 1000);
    assert_eq!(outcome.histogram.len(), 1000);
    assert!(outcome.latency.min > 0.0 && outcome.latency.max <= 1_000_000.0);
    assert_eq!(outcome.by_second.iter().map(|second| second.completed).sum::<u64>(), 1000);
}

#[test]
fn queries_are_shared_by_threads_clients_and_ways_to_send() {
    for (pace, segment) in [(Pace::Dnsperf, false), (Pace::Batch, false), (Pace::Batch, true)] {
        let server = ScriptedServer::start(vec![Act::Answer]);
        let mut plan = plan(&server, 999);
        (plan.threads, plan.sockets, plan.pace, plan.segment) = (3, 7, pace, segment);
        assert_eq!(counts(&run(&plan)), ([999, 999, 0], [0; 5]));
        assert_eq!(server.clients(), 7);
    }
}

#[test]
fn clients_take_turns_when_there_are_more_of_them_than_queries_outstanding() {
    let server = ScriptedServer::start(vec![Act::Answer]);
    let mut plan = plan(&server, 200);
    plan.sockets = 50;
    assert_eq!(counts(&run(&plan)), ([200, 200, 0], [0; 5]));
    assert_eq!(server.clients(), 50);
}

#[test]
fn dropped_queries_are_lost() {
    let server = ScriptedServer::start(vec![Act::Answer, Act::Answer, Act::Drop, Act::Answer]);
    assert_eq!(counts(&run(&plan(&server, 80))), ([80, 60, 20], [0; 5]));
}

#[test]
fn second_replies_are_duplicates_even_after_the_last_query_was_answered() {
    let server = ScriptedServer::start(vec![Act::Answer, Act::Twice]);
    let mut plan = plan(&server, 100);
    plan.linger = Duration::from_secs(1);
    assert_eq!(counts(&run(&plan)), ([100, 100, 0], [0, 50, 0, 0, 0]));
}

#[test]
fn second_replies_are_duplicates_though_tens_of_thousands_of_queries_lie_between() {
    let mut script = vec![Act::Keep; 10];
    script.extend(std::iter::repeat_n(Act::Answer, 49_989));
    script.push(Act::SendKept);
    let server = ScriptedServer::start(script);
    let mut plan = plan(&server, 100_000);
    (plan.timeout, plan.linger) = (Duration::from_secs(5), Duration::from_secs(1));
    assert_eq!(counts(&run(&plan)), ([100_000, 100_000, 0], [0, 20, 0, 0, 0]));
}

#[test]
fn replies_after_the_timeout_are_late_and_their_queries_lost() {
    let server = ScriptedServer::start(vec![Act::Answer, Act::Delay(Duration::from_secs(2))]);
    let mut plan = plan(&server, 10);
    plan.linger = Duration::from_secs(3);
    let outcome = run(&plan);
    assert_eq!(counts(&outcome), ([10, 5, 5], [0, 0, 5, 0, 0]));
    assert!(outcome.seconds < 1.0, "waiting is no part of the run: {}", outcome.seconds);
}

#[test]
fn replies_in_another_order_find_their_queries() {
    let mut script = vec![Act::Hold; 9];
    script.push(Act::Answer);
    let server = ScriptedServer::start(script);
    assert_eq!(counts(&run(&plan(&server, 30))), ([30, 30, 0], [0; 5]));
    let script = (1..=10).rev().map(|tens| Act::Delay(Duration::from_millis(10 * tens)));
    let server = ScriptedServer::start(script.collect());
    let outcome = run(&plan(&server, 30));
    assert_eq!(counts(&outcome), ([30, 30, 0], [0; 5]));
    assert!(outcome.latency.min >= 9_990.0, "{:?}", outcome.latency);
    assert!(outcome.latency.max >= 99_900.0, "{:?}", outcome.latency);
}

#[test]
fn what_is_cut_or_corrupt_or_to_another_question_is_wrong_and_its_query_lost() {
    let wrong = [Act::Cut(5), Act::Cut(20), Act::Cut(40), Act::OtherName, Act::NoReply];
    for act in wrong {
        let server = ScriptedServer::start(vec![Act::Answer, act]);
        let outcome = run(&plan(&server, 10));
        assert_eq!(counts(&outcome), ([10, 5, 5], [0, 0, 0, 5, 0]), "{act:?}");
    }
}

#[test]
fn every_count_is_exact_when_everything_goes_wrong_at_once() {
    let script = vec![
        Act::Answer,
        Act::Twice,
        Act::Drop,
        Act::Cut(20),
        Act::OtherName,
        Act::Stray,
        Act::Truncated,
        Act::Hold,
        Act::Delay(Duration::from_millis(100)),
        Act::Delay(Duration::from_secs(2)),
    ];
    let server = ScriptedServer::start(script);
    let mut plan = plan(&server, 200);
    (plan.threads, plan.sockets, plan.linger) = (2, 4, Duration::from_secs(3));
    plan.mode = Mode::Closed { outstanding: 200, rate_max: None };
    let outcome = run(&plan);
    assert_eq!(counts(&outcome), ([200, 120, 80], [20, 20, 20, 40, 20]));
    assert_eq!(outcome.traffic.rcodes["NOERROR"], 120);
    assert_eq!(outcome.histogram.len(), 120);
    assert_eq!(outcome.by_second.iter().map(|second| second.lost).sum::<u64>(), 80);
}

#[test]
fn a_reply_to_no_query_is_unexpected_and_a_truncated_one_an_answer() {
    let server = ScriptedServer::start(vec![Act::Stray, Act::Truncated]);
    assert_eq!(counts(&run(&plan(&server, 20))), ([20, 20, 0], [10, 0, 0, 0, 10]));
}

#[test]
fn a_stall_of_the_server_shows_in_the_latency_of_a_schedule() {
    let mut script = vec![Act::Stall(Duration::from_millis(200))];
    script.extend([Act::Answer; 999]);
    let slow_with = |mode| {
        let server = ScriptedServer::start(script.clone());
        let mut plan = plan(&server, 500);
        (plan.mode, plan.timeout) = (mode, Duration::from_secs(10));
        let outcome = run(&plan);
        assert_eq!(counts(&outcome).0, [500, 500, 0]);
        let over_100_ms = outcome.histogram.iter_recorded().map(|bucket| {
            let is_slow = bucket.value_iterated_to() >= 100_000_000;
            if is_slow { bucket.count_since_last_iteration() } else { 0 }
        });
        over_100_ms.sum::<u64>()
    };
    // A query was due each millisecond, so that 100 of them waited for at least 100 ms.
    assert!(slow_with(Mode::Open { rate: 1000.0 }) >= 100);
    // The rest are those that a busy machine delays.
    assert!(slow_with(Mode::Closed { outstanding: 1, rate_max: None }) < 50);
}

#[test]
fn a_generator_that_was_late_says_so() {
    let server = ScriptedServer::start(vec![Act::Answer]);
    let mut plan = plan(&server, 200);
    (plan.mode, plan.timeout) = (Mode::Open { rate: 1000.0 }, Duration::from_secs(10));
    let outcome = run(&plan);
    let lateness = outcome.lateness.clone().unwrap();
    assert!(outcome.latency.max >= lateness.max, "{lateness:?}");
    let with_tail =
        |micros| Some(Latency { percentiles: vec![(99.9, micros)], ..lateness.clone() });
    let with = |tail| Outcome { lateness: tail, ..outcome.clone() }.is_generator_late();
    let tail = outcome.latency.percentile(99.9).unwrap();
    assert!(with(with_tail(tail)) && !with(with_tail(tail / 3.0)) && !with(None));
    plan.mode = Mode::Closed { outstanding: 1, rate_max: Some(1000.0) };
    assert_eq!(run(&plan).lateness, None);
}

#[test]
fn spinning_needs_a_cpu_for_each_thread() {
    let server = ScriptedServer::start(vec![Act::Answer]);
    let mut plan = plan(&server, 100);
    (plan.mode, plan.spin) = (Mode::Open { rate: 1000.0 }, true);
    assert!(matches!(load::run(&plan, None), Err(LoadError::Plan(_))));
    plan.cpus = zonda_netio::process::allowed_cpus().unwrap();
    assert_eq!(counts(&run(&plan)), ([100, 100, 0], [0; 5]));
}

#[test]
fn a_run_ends_at_its_duration_and_keeps_to_its_rate() {
    let server = ScriptedServer::start(vec![Act::Answer]);
    let mut plan = plan(&server, u64::MAX);
    plan.end = End { after: Some(Duration::from_millis(400)), ..End::default() };
    plan.mode = Mode::Closed { outstanding: 10, rate_max: Some(500.0) };
    let outcome = run(&plan);
    assert!((1..=200).contains(&outcome.traffic.sent), "{:?}", outcome.traffic);
    assert!(outcome.seconds <= 0.4);
    assert!(outcome.cpu_secs > 0.0);
}

#[test]
fn the_generator_sleeps_while_it_waits_for_the_last_replies() {
    let server = ScriptedServer::start(vec![Act::Drop]);
    let mut plan = plan(&server, u64::MAX);
    plan.end = End { after: Some(Duration::from_millis(100)), ..End::default() };
    let outcome = run(&plan);
    assert_eq!(counts(&outcome), ([10, 0, 10], [0; 5]));
    assert!(outcome.cpu_secs < 0.5, "{} of about a second", outcome.cpu_secs);
}

#[test]
fn progress_is_reported_every_second() {
    let server = ScriptedServer::start(vec![Act::Answer]);
    let mut plan = plan(&server, 130);
    plan.mode = Mode::Open { rate: 100.0 };
    let mut seen = Vec::new();
    load::run(&plan, Some(&mut |progress| seen.push(progress.clone()))).unwrap();
    assert!(seen.len() >= 2);
    assert!(seen.is_sorted_by(|one, next| one.second.second < next.second.second));
    let mut sent = 0;
    for progress in &seen {
        sent += progress.second.sent;
        assert_eq!(progress.sent, sent);
    }
    assert_eq!((seen[0].second.second, sent), (0, 130));
}

#[test]
fn a_foreign_server_is_not_loaded() {
    let queries = Queries::from_lines("a.example A", &Form::default()).unwrap();
    let plan = Plan::new("192.0.2.1:53".parse().unwrap(), queries);
    let error = load::run(&plan, None).unwrap_err().to_string();
    assert!(error.contains("--i-own-this-server"), "{error}");
}

#[test]
fn dnsperf_layout_has_its_lines() {
    let server = ScriptedServer::start(vec![Act::Answer, Act::Answer, Act::Answer, Act::Drop]);
    let mut outcome = run(&plan(&server, 8));
    outcome.seconds = 0.5;
    outcome.latency.mean = 73.0;
    outcome.latency.min = 38.0;
    outcome.latency.max = 159.0;
    outcome.latency.deviation = 58.0;
    let mut text = Vec::new();
    load::dnsperf::print_end(&plan(&server, 8), &outcome, &mut text).unwrap();
    let expected = "\
[Status] Testing complete (end of file)

Statistics:

  Queries sent:         8
  Queries completed:    6 (75.00%)
  Queries lost:         2 (25.00%)

  Response codes:       NOERROR 6 (100.00%)
  Average packet size:  request 30, response 45
  Run time (s):         0.500000
  Queries per second:   12.000000

  Average Latency (s):  0.000073 (min 0.000038, max 0.000159)
  Latency StdDev (s):   0.000058

";
    assert_eq!(String::from_utf8(text).unwrap(), expected);
}

#[test]
fn json_lines_are_the_seconds_and_the_whole() {
    let server = ScriptedServer::start(vec![Act::Answer]);
    let mut text = Vec::new();
    load::json::print(&run(&plan(&server, 10)), &mut text).unwrap();
    let lines = String::from_utf8(text).unwrap();
    let lines = lines.lines().map(|line| serde_json::from_str(line).unwrap());
    let mut lines: Vec<serde_json::Value> = lines.collect();
    let whole = lines.pop().unwrap();
    let completed = lines.iter().map(|second| second["completed"].as_u64().unwrap());
    assert_eq!((lines[0]["second"].as_u64(), completed.sum::<u64>()), (Some(0), 10));
    assert_eq!(whole["traffic"]["rcodes"]["NOERROR"], 10);
    assert!(whole["latency_micros_by_rcode"]["NOERROR"]["mean"].is_number());
}

#[test]
fn exceeded_limits_are_reported() {
    let server = ScriptedServer::start(vec![Act::Answer, Act::Drop]);
    let outcome = run(&plan(&server, 20));
    let hour = Duration::from_secs(3600);
    let wrong_max = Some(Ceiling::Count(0));
    let kept = Limits { loss_max: Some(0.5), p99_max: None, wrong_max };
    assert_eq!(kept.broken_by(&outcome), []);
    let strict = Limits { loss_max: Some(0.49), ..kept };
    assert_eq!(strict.broken_by(&outcome), [BrokenLimit::Loss(0.5, 0.49)]);
    // Half of them had no reply at all, and so none within an hour.
    let broken = Limits { p99_max: Some(hour), ..kept }.broken_by(&outcome);
    assert_eq!(broken, [BrokenLimit::Unanswered(0.5, hour)]);
    let sound = run(&plan(&ScriptedServer::start(vec![Act::Answer]), 20));
    assert_eq!(Limits { p99_max: Some(hour), ..kept }.broken_by(&sound), []);
    let p99_max = Some(Duration::from_nanos(1));
    let broken = Limits { p99_max, ..kept }.broken_by(&sound);
    assert!(matches!(broken[..], [BrokenLimit::P99(..)]), "{broken:?}");
}

#[test]
fn what_has_no_reply_is_slower_than_any_percentile_that_it_reaches() {
    // Two of a hundred answers take their time, and one more query has none.
    let mut script = vec![Act::Answer; 97];
    script.extend([Act::Delay(Duration::from_millis(300)); 2]);
    script.push(Act::Drop);
    let outcome = run(&plan(&ScriptedServer::start(script), 100));
    assert_eq!(counts(&outcome).0, [100, 99, 1]);
    let millis = |percent| outcome.percentile_of_all(percent).map(|time| time.as_millis());
    assert!(millis(50.0) < Some(300) && millis(98.0) >= Some(300) && millis(99.0) >= Some(300));
    assert_eq!(millis(99.5), None);
}

#[test]
fn no_limit_is_kept_by_a_server_that_never_answers() {
    let silent = run(&plan(&ScriptedServer::start(vec![Act::Drop]), 2));
    let none = Limits::default();
    assert_eq!(none.broken_by(&silent), []);
    for limits in [
        Limits { loss_max: Some(1.0), ..none },
        Limits { p99_max: Some(Duration::from_secs(3600)), ..none },
        Limits { wrong_max: Some(Ceiling::Count(0)), ..none },
    ] {
        assert_eq!(limits.broken_by(&silent), [BrokenLimit::NoReply], "{limits:?}");
    }
}

#[test]
fn a_schedule_is_sent_to_its_last_query() {
    let server = ScriptedServer::start(vec![Act::Answer]);
    let mut plan = plan(&server, u64::MAX);
    plan.end = End { after: Some(Duration::from_millis(300)), ..End::default() };
    (plan.mode, plan.sockets) = (Mode::Open { rate: 1000.0 }, 4);
    let outcome = run(&plan);
    assert_eq!(counts(&outcome), ([300, 300, 0], [0; 5]));
    assert_eq!((outcome.traffic.unsent, outcome.loss()), (0, 0.0));
}

#[test]
fn replies_dropped_by_the_generator_are_no_loss_of_the_server() {
    let mut script = vec![Act::Hold; 199];
    script.push(Act::Answer);
    let server = ScriptedServer::start(script);
    let mut plan = plan(&server, 200);
    plan.mode = Mode::Closed { outstanding: 200, rate_max: None };
    plan.buffer_octets = 4096;
    // It has room for ten of a burst of 200, but may be quick enough to take them as they come.
    let has_dropped = (0..20).any(|_| {
        let traffic = run(&plan).traffic;
        assert_eq!((traffic.sent, traffic.dropped_by_server), (200, 0));
        assert_eq!(traffic.lost, traffic.dropped_by_generator, "{traffic:?}");
        traffic.lost > 0
    });
    assert!(has_dropped);
}

#[test]
fn buffers_reduced_by_the_kernel_are_reported() {
    let server = ScriptedServer::start(vec![Act::Answer]);
    let mut plan = plan(&server, 10);
    plan.buffer_octets = 1 << 30; // more than any process gets
    let outcome = run(&plan);
    let octets = outcome.small_buffer_octets.unwrap();
    assert!((1024..1 << 30).contains(&octets));
    let mut text = Vec::new();
    load::text::print(&outcome, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains(&format!("{octets} octets")) && text.contains("rmem_max"), "{text}");
    plan.buffer_octets = 1 << 14;
    assert_eq!(run(&plan).small_buffer_octets, None);
}

#[test]
fn what_cannot_be_done_is_refused_before_anything_is_sent() {
    let server = ScriptedServer::start(vec![Act::Answer]);
    let is_refused = |change: fn(&mut Plan)| {
        let mut plan = plan(&server, 100);
        change(&mut plan);
        matches!(load::run(&plan, None), Err(LoadError::Plan(_)))
    };
    let refused: [fn(&mut Plan); 4] = [
        |plan| plan.end.after = Some(Duration::MAX),
        |plan| plan.timeout = Duration::MAX,
        |plan| plan.linger = Duration::MAX,
        |plan| (plan.sockets, plan.local) = (2, Some("127.0.0.1:65535".parse().unwrap())),
    ];
    assert_eq!(refused.map(is_refused), [true; 4]);
    let mut plan = plan(&server, 100);
    (plan.threads, plan.sockets) = (2, 2);
    plan.cpus = vec![zonda_netio::process::allowed_cpus().unwrap()[0], 1023];
    let error = load::run(&plan, None).unwrap_err();
    assert!(matches!(error, LoadError::Pin(1023, _)), "{error}");
    assert_eq!(server.clients(), 0);
}

#[test]
fn answers_are_held_to_a_file() {
    let folder = Folder::new("expect");
    let right = "a.example A NOERROR\n a.example A 127.0.0.1\n";
    let other = "longer.b.example AAAA NOERROR\n longer.b.example AAAA ::1\n";
    let file = folder.write("answers.txt", format!("{right}{other}"));
    let server = ScriptedServer::start(vec![Act::Answer]);
    let mut plan = plan(&server, 100);
    plan.expected = Some(Arc::new(ExpectedReplies::read(&file).unwrap()));
    let outcome = run(&plan);
    assert_eq!(counts(&outcome), ([100, 100, 0], [0; 5]));
    assert_eq!(outcome.traffic.incorrect, 50);
    let broken_by =
        |most| Limits { wrong_max: Some(most), ..Limits::default() }.broken_by(&outcome);
    assert_eq!(broken_by(Ceiling::Count(50)), []);
    assert_eq!(broken_by(Ceiling::Count(49)), [BrokenLimit::Wrong(50, Ceiling::Count(49))]);
    assert_eq!(broken_by(Ceiling::Share(0.5)), []);
    assert_eq!(broken_by(Ceiling::Share(0.49)), [BrokenLimit::Wrong(50, Ceiling::Share(0.49))]);
}

#[test]
fn a_ramp_finds_a_rate_between_what_is_held_and_what_is_not() {
    // Gone after the steps of 100, 200 and 400 queries a second, and in the midst of that of 800.
    let mut script = vec![Act::Answer; 50 + 100 + 200 + 150];
    script.extend([Act::Drop; 10_000]);
    let server = ScriptedServer::start(script);
    let ramp = Ramp {
        from: 100.0,
        to: 6400.0,
        step: Duration::from_millis(500),
        limits: Limits { loss_max: Some(0.5), ..Limits::default() },
        precision: 0.5,
    };
    let mut seen = 0;
    let steps = ramp::run(&plan(&server, 1), &ramp, &mut |event| {
        seen += usize::from(matches!(event, Event::Step(_)));
    });
    let steps = steps.unwrap();
    let rates: Vec<f64> = steps.iter().map(|step| step.rate).collect();
    assert_eq!(rates, [100.0, 200.0, 400.0, 600.0, 800.0]);
    assert_eq!(seen, 5);
    assert_eq!(ramp::highest_held(&steps), Some(400.0));
}
