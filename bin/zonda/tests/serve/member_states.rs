//! Members that wait after they have come back, have a load, or a state that is calculated.

use crate::server::{run, text, wait_until};
use crate::steering::{Member, Steered, two_checked};
use std::collections::BTreeSet;
use zonda_testkit::process::{Process, free_port};
use zonda_testkit::{Question, ask};

/// The keys of a pool whose second member answers only when the first does not.
fn failover(port: u16, more: &str) -> String {
    two_checked(port, &format!("choose = \"failover\"\n{more}"))
        .replace("{ address = \"127.0.0.2\" }", "{ address = \"127.0.0.2\", priority = 2 }")
}

#[test]
fn a_member_that_is_resumed_by_hand_waits_through_a_reload_and_a_kill() {
    let port = free_port();
    let [first, second] = [1, 2].map(|it| Member::start(it, port));
    let mut steered = Steered::start(&failover(port, "resume = \"manual\""));
    steered.await_answers(&["127.0.0.1"]);
    first.set(503);
    steered.await_answers(&["127.0.0.2"]);
    first.set(200);
    wait_until("the member is up again", || {
        steered.pool()["members"][0]["up"] == true && steered.pool()["members"][0]["held"] == true
    });
    let only_second = BTreeSet::from(["127.0.0.2".to_owned()]);
    assert_eq!(steered.answers(), only_second);
    steered.reload(&failover(port, "resume = \"manual\"\nttl-max = \"2m\""), "www A");
    assert_eq!(steered.answers(), only_second);
    steered.server.zonda.process.signal("KILL");
    wait_until("the server has ended", || steered.server.zonda.process.ended());
    let log = steered.folder.path().join("second.log");
    steered.server.zonda.process = Process::start(&steered.server.command(&[]), &log).unwrap();
    wait_until("the server has started again", || {
        ask(steered.server.zonda.address, &Question::new("www.steered.test", "A")).is_ok()
    });
    assert_eq!(steered.answers(), only_second);
    let log = steered.command(&["log"]);
    assert!(log.contains("web/127.0.0.1") && log.contains("it went down"), "{log}");
    second.set(503);
    steered.await_answers(&["127.0.0.1"]);
    second.set(200);
    wait_until("the other one waits, too", || steered.pool()["members"][1]["held"] == true);
    steered.command(&["resume", "web/*"]);
    steered.await_answers(&["127.0.0.1"]);
    assert!(!steered.command(&["show", "web"]).contains("went down"));
}

#[test]
fn a_member_waits_for_the_time_of_hold_down_after_it_has_come_back() {
    let port = free_port();
    let [first, _second] = [1, 2].map(|it| Member::start(it, port));
    let steered = Steered::start(&failover(port, "hold-down = \"1s\""));
    steered.await_answers(&["127.0.0.1"]);
    first.set(503);
    steered.await_answers(&["127.0.0.2"]);
    first.set(200);
    wait_until("the member waits", || steered.pool()["members"][0]["held"] == true);
    assert!(steered.command(&["list"]).contains("up (waits)"));
    assert_eq!(steered.answers(), BTreeSet::from(["127.0.0.2".to_owned()]));
    steered.await_answers(&["127.0.0.1"]);
}

#[test]
fn an_operator_has_a_member_answer_last() {
    let steered =
        Steered::start("members = [{ address = \"192.0.2.1\" }, { address = \"192.0.2.2\" }]");
    steered.command(&["hold", "web/192.0.2.1", "--for", "1h"]);
    steered.await_answers(&["192.0.2.2"]);
    steered.command(&["down", "web/192.0.2.2"]);
    steered.await_answers(&["192.0.2.1"]);
}

#[test]
fn a_state_is_calculated_from_those_of_other_pools() {
    let port = free_port();
    let [first, second] = [1, 2].map(|it| Member::start(it, port));
    let probed = two_checked(port, "");
    let probes = format!("[[pool]]\nname = \"probes\"\n{probed}");
    let keys = format!(
        "members = [{{ address = \"192.0.2.1\" }}, {{ address = \"192.0.2.2\" }}]\n\
         when-all-down = \"nodata\"\n\
         check = {{ calculated = \"2 of (probes/127.0.0.1, probes/127.0.0.2) and probes\" }}\n\
         {probes}"
    );
    let steered = Steered::start(&keys);
    steered.await_answers(&["192.0.2.1", "192.0.2.2"]);
    first.set(503);
    steered.await_answers(&[]);
    let checks = steered.server.get("/v1/checks").1;
    let formula = "all of [at least 2 of [probes/127.0.0.1, probes/127.0.0.2], probes]";
    assert!(checks.contains(formula), "{checks}");
    first.set(200);
    steered.await_answers(&["192.0.2.1", "192.0.2.2"]);
    second.set(500);
    steered.await_answers(&[]);
    assert!(steered.command(&["up", "probes/127.0.0.2"]).contains("probes/127.0.0.2: up"));
    steered.await_answers(&["192.0.2.1", "192.0.2.2"]);
}

#[test]
fn a_loaded_member_sheds_queries_until_its_load_is_no_longer_known() {
    let steered = Steered::start(
        "choose = [\"load\", \"failover\"]\nload-low = 50\nload-high = 90\nmembers = \
         [{ address = \"192.0.2.1\" }, { address = \"192.0.2.2\", priority = 2 }]",
    );
    steered.await_answers(&["192.0.2.1"]);
    let told = steered.command(&["load", "web/192.0.2.1", "70", "--for", "9s"]);
    assert!(told.contains("members that have it, for 9.0 s: 1"), "{told}");
    steered.await_answers(&["192.0.2.1", "192.0.2.2"]);
    let socket = steered.server.socket();
    let told = run(&["explain", "www.steered.test", "--client", "10.0.0.1", "--socket", &socket]);
    let told = text(&told.stdout);
    for part in ["192.0.2.1 takes 50 %", "priority 1, and 2 for what it sheds", "192.0.2.2 50 %"] {
        assert!(told.contains(part), "{part} in {told}");
    }
    let told = steered.command(&["load", "*/192.0.2.1", "95", "--for", "2s"]);
    assert!(told.contains("for 2.0 s: 1"), "{told}");
    steered.await_answers(&["192.0.2.2"]);
    let load = "zonda_pool_member_load_percent{pool=\"web\",member=\"192.0.2.1\"}";
    assert_eq!(steered.server.metric(load), 95.0);
    steered.await_answers(&["192.0.2.1"]);
    let wrong = steered.command(&["load", "web/192.0.2.9", "70"]);
    assert!(wrong.contains("no member is called web/192.0.2.9"), "{wrong}");
}
