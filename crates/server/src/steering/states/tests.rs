//! States of members in time, and the answers that follow.

#![allow(clippy::unwrap_used)]
use super::*;
use crate::steering::overrides::{ForcedState, Override};
use zonda_balance::{Dice, Outcome};
use zonda_config::{Config, Flags};

const SECOND: u64 = 1_000_000_000;

/// The pools of a configuration whose zone has `www` steered to the first one.
fn pools(name: &str, text: &str) -> Vec<PoolConfig> {
    let first = text.split('"').nth(1).unwrap();
    let text = format!(
        "version = 1\n{text}\n[[zone]]\nname = \"example\"\nfile = \"example.zone\"\n\
         steer = {{ \"www A\" = \"{first}\" }}\n"
    );
    let directory = std::env::temp_dir().join(format!("zonda-pools-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join(name);
    std::fs::write(&file, text).unwrap();
    let loaded = Config::load(Some(&file), [], &Flags::default());
    std::fs::remove_file(&file).unwrap();
    loaded.unwrap().config.pools
}

/// The last octets of addresses that the first pool answers with, in order, each once.
fn answers(states: &PoolStates) -> Vec<u8> {
    let (plans, mut dice) = (states.plans(), Dice::new(1));
    let client = ClientNetwork::of_address([192, 0, 2, 1].into());
    let mut octets = Vec::new();
    for _ in 0..1000 {
        let mut pool = 0;
        loop {
            match plans[pool].view(Type::A).unwrap().choose(&client, b"\0", &mut dice) {
                Outcome::Pool(next, _) => pool = next as usize,
                Outcome::Members(choice) => break octets.push(choice.rdata(0)[3]),
                Outcome::Without(_) => break,
            }
        }
    }
    octets.sort_unstable();
    octets.dedup();
    octets
}

/// The states of pools that are probed every five seconds.
fn configured(name: &str, text: &str) -> PoolStates {
    let mut states = PoolStates::default();
    assert!(states.configure(&pools(name, text)));
    states
}

const STEADY: Duration = Duration::from_secs(15);

/// Has a member of a pool go up or down at a time in seconds.
fn observe(states: &mut PoolStates, (pool, member): (usize, usize), is_up: bool, at: u64) {
    let id = target_id(states.epoch(), pool, member);
    states.observe(id, (is_up, STEADY), at * SECOND);
}

const TWO: &str = "[[pool]]\nname = \"web\"\ncheck = { tcp = 80 }\nwhen-all-down = \
    \"last-healthy\"\nmembers = [{ address = \"192.0.2.1\" }, { address = \"192.0.2.2\" }]\n";

#[test]
fn a_member_that_goes_down_is_answered_no_more_and_the_last_ones_up_stay() {
    let mut states = configured("down", TWO);
    assert_eq!(answers(&states), [1, 2]);
    observe(&mut states, (0, 0), false, 1);
    assert_eq!(states.take_stale().len(), 1);
    assert_eq!(answers(&states), [2]);
    observe(&mut states, (0, 1), false, 2);
    states.take_stale();
    assert_eq!(answers(&states), [2], "the one that was up last");
    observe(&mut states, (0, 0), true, 3);
    states.take_stale();
    assert_eq!(answers(&states), [1]);
}

#[test]
fn the_ttl_is_the_time_until_the_earliest_change_within_its_bounds() {
    let mut states = configured("ttl", TWO);
    let ttl = |states: &mut PoolStates, earliest: u64| {
        let id = target_id(states.epoch(), 0, 0);
        states.observe(id, (true, Duration::from_secs(earliest)), 0);
        let other = target_id(states.epoch(), 0, 1);
        states.observe(other, (true, Duration::from_secs(3600)), 0);
        states.take_stale();
        states.plans()[0].ttl
    };
    assert_eq!(states.plans()[0].ttl, 5, "before the first probes");
    assert_eq!(ttl(&mut states, 15), 15);
    assert_eq!(ttl(&mut states, 1), 5);
    assert_eq!(ttl(&mut states, 600), 60);
}

#[test]
fn the_ttl_of_a_pool_counts_the_members_of_the_pools_that_are_its_members() {
    let text = "[[pool]]\nname = \"top\"\nchoose = \"failover\"\nmembers = [{ pool = \
        \"all\" }]\n[[pool]]\nname = \"all\"\nchoose = \"failover\"\nmembers = [{ pool = \
        \"fra\" }, { pool = \"nyc\", priority = 2 }]\n[[pool]]\nname = \"fra\"\n\
        check = { tcp = 80 }\nmembers = [{ address = \"192.0.2.1\" }]\n[[pool]]\n\
        name = \"nyc\"\nmembers = [{ address = \"192.0.2.2\" }]\n";
    let mut states = configured("nested-ttl", text);
    let mut told = |is_up, earliest: u64| {
        let id = target_id(states.epoch(), 2, 0);
        states.observe(id, (is_up, Duration::from_secs(earliest)), 0);
        states.take_stale();
        let plans = states.plans();
        [0, 1, 3].map(|pool: usize| plans[pool].ttl)
    };
    assert_eq!(told(true, 30), [30, 30, 60]);
    assert_eq!(told(false, 10), [10, 10, 60], "it could be up again after ten seconds");
    assert_eq!(told(false, 6), [6, 6, 60]);
    assert_eq!(told(true, 15), [15, 15, 60]);
}

#[test]
fn members_keep_their_states_when_the_pools_change_and_former_results_do_not_count() {
    let mut states = configured("keep", TWO);
    observe(&mut states, (0, 0), false, 1);
    let former = states.epoch();
    let more = TWO.replace("[{", "[{ address = \"192.0.2.3\" }, {");
    assert!(states.configure(&pools("keep", &more)));
    assert_eq!(answers(&states), [2, 3]);
    let change = states.observe(target_id(former, 0, 0), (false, STEADY), SECOND);
    assert_eq!(change, None);
    let same = states.configure(&pools("keep", &more));
    assert!(!same);
    let other_check = more.replace("80", "81");
    states.configure(&pools("keep", &other_check));
    assert_eq!(answers(&states), [1, 2, 3], "what another check found does not count");
}

#[test]
fn a_pool_with_too_few_members_is_down_as_a_member() {
    let text = "[[pool]]\nname = \"all\"\nchoose = \"failover\"\nmembers = [{ pool = \
        \"fra\" }, { address = \"192.0.2.9\", priority = 2 }]\n[[pool]]\nname = \"fra\"\n\
        up-min = 2\ncheck = { tcp = 80 }\nmembers = [{ address = \"192.0.2.1\" }, { address = \
        \"192.0.2.2\" }, { address = \"192.0.2.3\" }]\n";
    let mut states = configured("nested", text);
    assert_eq!(answers(&states), [1, 2, 3]);
    observe(&mut states, (1, 0), false, 1);
    states.take_stale();
    assert_eq!(answers(&states), [2, 3]);
    observe(&mut states, (1, 1), false, 1);
    states.take_stale();
    assert_eq!(answers(&states), [9]);
    observe(&mut states, (1, 0), true, 1);
    states.take_stale();
    assert_eq!(answers(&states), [1, 3]);
}

#[test]
fn the_weight_of_a_member_that_comes_back_rises_in_steps() {
    let mut states = configured("slow", &TWO.replace("check", "slow-start = \"32s\"\ncheck"));
    observe(&mut states, (0, 0), false, 1);
    assert_eq!(states.pass_time(2 * SECOND, 0), None);
    observe(&mut states, (0, 0), true, 10);
    let part =
        |states: &PoolStates| states.pools[0].members[0].state().part * 16 / MemberState::WHOLE;
    assert_eq!(part(&states), 1);
    assert_eq!(states.pass_time(26 * SECOND, 0), Some(Duration::from_secs(2)));
    assert_eq!(part(&states), 9);
    assert_eq!(states.pass_time(42 * SECOND, 0), None);
    assert_eq!(part(&states), 16);
}

#[test]
fn the_fastest_members_answer_and_small_changes_change_nothing() {
    let text = TWO.replace("check", "choose = \"latency\"\ncheck");
    let mut states = configured("latency", &text);
    let take = |states: &mut PoolStates, member: usize, millis: u64| {
        let id = target_id(states.epoch(), 0, member);
        states.observe_latency(id, Duration::from_millis(millis));
        states.take_stale().len()
    };
    assert_eq!(take(&mut states, 0, 10), 1);
    assert_eq!(take(&mut states, 1, 40), 1);
    assert_eq!(answers(&states), [1]);
    assert_eq!(take(&mut states, 0, 12), 0, "the average has hardly changed");
    for _ in 0..20 {
        take(&mut states, 0, 90);
    }
    assert_eq!(answers(&states), [2]);
    for _ in 0..20 {
        take(&mut states, 0, 41);
    }
    assert_eq!(answers(&states), [1, 2]);
}

#[test]
fn what_an_operator_says_wins_over_probes_until_it_ends() {
    let mut states = configured("forced", TWO);
    let drain = |state, until| {
        let said = Override { state, since: 0, until, reason: String::new(), by: String::new() };
        let mut overrides = Overrides::default();
        let members = [("web".to_owned(), "192.0.2.1".to_owned())];
        overrides.set(&members, Some(&said), serde_json::Value::Null);
        overrides
    };
    states.set_overrides(drain(ForcedState::Drained, Some(100)), (50, 0));
    states.take_stale();
    assert_eq!(answers(&states), [2]);
    assert_eq!(states.pass_time(0, 60), Some(Duration::from_secs(40)));
    states.pass_time(0, 100);
    states.take_stale();
    assert_eq!(answers(&states), [1, 2]);
    observe(&mut states, (0, 0), false, 1);
    states.set_overrides(drain(ForcedState::Up, None), (100, 0));
    states.take_stale();
    assert_eq!(answers(&states), [1, 2]);
    states.set_overrides(Overrides::default(), (100, 0));
    states.take_stale();
    assert_eq!(answers(&states), [2]);
}

#[test]
fn a_member_that_has_come_back_waits_before_it_is_preferred_again() {
    let text = "[[pool]]\nname = \"web\"\nchoose = \"failover\"\nhold-down = \"1m\"\n\
        check = { tcp = 80 }\nmembers = [{ address = \"192.0.2.1\" }, { address = \"192.0.2.2\", \
        priority = 2 }]\n";
    let mut states = configured("hold-down", text);
    assert_eq!(answers(&states), [1]);
    observe(&mut states, (0, 0), false, 1);
    observe(&mut states, (0, 0), true, 10);
    states.take_stale();
    assert_eq!(answers(&states), [2]);
    assert_eq!(states.pass_time(20 * SECOND, 0), Some(Duration::from_secs(50)));
    observe(&mut states, (0, 1), false, 21);
    states.take_stale();
    assert_eq!(answers(&states), [1], "no other member is up");
    observe(&mut states, (0, 1), true, 22);
    states.take_stale();
    assert_eq!(answers(&states), [1], "both wait, so that neither is left out");
    states.pass_time(70 * SECOND, 0);
    states.take_stale();
    assert_eq!(answers(&states), [1]);
}

#[test]
fn a_first_rise_is_no_coming_back() {
    let text = "[[pool]]\nname = \"web\"\nchoose = \"failover\"\nhold-down = \"1m\"\n\
        check = { tcp = 80, start = \"down\" }\nmembers = [{ address = \"192.0.2.1\" }, \
        { address = \"192.0.2.2\", priority = 2 }]\n";
    let mut states = configured("first-rise", text);
    observe(&mut states, (0, 1), true, 1);
    observe(&mut states, (0, 0), true, 2);
    assert_eq!(answers(&states), [1]);
}

/// Pools of which the first one's members are up when two of three are, or a fourth.
const CALCULATED: &str = "[[pool]]\nname = \"web\"\nmembers = [{ address = \"192.0.2.1\" }, \
    { address = \"192.0.2.2\" }]\ncheck = { calculated = \"2 of (a/{member}, b/{member}, c) or \
    d\" }\n[[pool]]\nname = \"a\"\ncheck = { tcp = 80 }\nmembers = [{ address = \"192.0.2.1\" }, \
    { address = \"192.0.2.2\" }]\n[[pool]]\nname = \"b\"\ncheck = { tcp = 80 }\nmembers = \
    [{ address = \"192.0.2.1\" }, { address = \"192.0.2.2\" }]\n[[pool]]\nname = \"c\"\n\
    check = { tcp = 80 }\nmembers = [{ address = \"192.0.2.9\" }]\n[[pool]]\nname = \"d\"\n\
    check = { tcp = 80, start = \"down\" }\nmembers = [{ pool = \"e\" }]\n[[pool]]\nname = \"e\"\n\
    check = { tcp = 80, start = \"down\" }\nmembers = [{ address = \"192.0.2.9\" }]\n";

#[test]
fn a_calculated_state_follows_those_of_pools_and_members() {
    let mut states = configured("calculated", CALCULATED);
    let mut told = |(pool, member): (usize, usize), is_up: bool| {
        observe(&mut states, (pool, member), is_up, 1);
        states.take_stale();
        answers(&states)
    };
    assert_eq!(told((1, 0), false), [1, 2]);
    assert_eq!(told((3, 0), false), [2], "of the first member, only b is up");
    assert_eq!(told((2, 1), false), [1, 2], "none is up, so that all answer");
    assert_eq!(told((1, 0), true), [1]);
    assert_eq!(told((1, 0), false), [1, 2]);
    assert_eq!(told((5, 0), true), [1, 2], "by way of the pool in between");
    assert_eq!(told((3, 0), true), [1, 2]);
    let derived = states.take_derived();
    let derived = derived.iter().filter(|change| change.pool == "web");
    assert!(derived.map(|it| it.is_up).eq([false, false, true, false, true, true]));
}

#[test]
fn the_ttl_of_a_calculated_state_is_that_of_what_it_depends_on() {
    let mut states = configured("calculated-ttl", CALCULATED);
    let mut ttl = |(pool, member): (usize, usize), seconds: u64| {
        let id = target_id(states.epoch(), pool, member);
        states.observe(id, (true, Duration::from_secs(seconds)), 0);
        states.take_stale();
        states.plans()[0].ttl
    };
    for place in [(1, 0), (1, 1), (2, 0), (2, 1), (3, 0)] {
        assert_eq!(ttl(place, 30), 5, "the probe of e may decide at any time");
    }
    assert_eq!(ttl((5, 0), 50), 30);
    assert_eq!(ttl((2, 1), 20), 20);
    assert_eq!(ttl((2, 1), 40), 30);
}

#[test]
fn a_reload_decides_anew_what_members_depend_on() {
    let text = "[[pool]]\nname = \"all\"\nchoose = \"failover\"\nmembers = [{ pool = \"fra\" }, \
        { address = \"192.0.2.9\", priority = 2 }]\n[[pool]]\nname = \"fra\"\n\
        check = { tcp = 80 }\nmembers = [{ address = \"192.0.2.1\" }]\n";
    let mut states = configured("reload-derived", text);
    observe(&mut states, (1, 0), false, 1);
    states.take_stale();
    assert_eq!(answers(&states), [9]);
    states.configure(&pools("reload-derived", &text.replace("80", "81")));
    assert_eq!(answers(&states), [1], "what another check found does not count");
}

/// Notes the load of the members of a pattern until a time in seconds; their number.
fn set_load(states: &mut PoolStates, (pattern, load): (&str, u32), until: u64) -> usize {
    states.set_loads(&[(pattern.to_owned(), load)], until * SECOND)[0]
}

#[test]
fn a_load_holds_for_its_time_and_small_steps_publish_nothing_where_it_does_not_count() {
    let with_load = TWO.replace("check", "choose = \"load\"\ncheck");
    let mut states = configured("load", &with_load);
    assert_eq!(set_load(&mut states, ("web/192.0.2.1", 100), 60), 1);
    assert_eq!(states.take_stale().len(), 1);
    assert_eq!(answers(&states), [2]);
    set_load(&mut states, ("web/192.0.2.1", 100), 90);
    assert!(states.take_stale().is_empty());
    assert_eq!(states.pass_time(30 * SECOND, 0), Some(Duration::from_secs(60)));
    states.pass_time(90 * SECOND, 0);
    states.take_stale();
    assert_eq!(answers(&states), [1, 2]);
    assert_eq!(set_load(&mut states, ("web/*", 20), 60), 2);
    assert_eq!(set_load(&mut states, ("mail/*", 20), 60), 0);
    let mut states = configured("no-load", TWO);
    assert_eq!(set_load(&mut states, ("*", 100), 60), 2);
    assert!(states.take_stale().is_empty());
}

#[test]
fn a_member_on_hold_is_healthy_and_answers_last() {
    let text = "[[pool]]\nname = \"web\"\nchoose = \"failover\"\nresume = \"manual\"\n\
        check = { tcp = 80 }\nmembers = [{ address = \"192.0.2.1\" }, { address = \"192.0.2.2\", \
        priority = 2 }]\n";
    let mut states = configured("hold", text);
    let said = Override {
        state: ForcedState::Held,
        since: 0,
        until: None,
        reason: String::new(),
        by: String::new(),
    };
    let mut overrides = Overrides::default();
    let members = [("web".to_owned(), "192.0.2.1".to_owned())];
    overrides.set(&members, Some(&said), serde_json::Value::Null);
    states.set_overrides(overrides, (1, 0));
    states.take_stale();
    assert_eq!(answers(&states), [2]);
    let change = states.observe(target_id(states.epoch(), 0, 1), (false, STEADY), SECOND);
    assert!(change.is_some_and(|change| change.is_resumed_by_hand));
    states.take_stale();
    assert_eq!(answers(&states), [1]);
}

#[test]
fn a_pool_whose_members_come_up_after_the_start_has_not_come_back() {
    let text = "[[pool]]\nname = \"all\"\nchoose = \"failover\"\nhold-down = \"1m\"\nmembers = \
        [{ pool = \"fra\" }, { address = \"192.0.2.9\", priority = 2 }]\n[[pool]]\nname = \"fra\"\n\
        check = { tcp = 80, start = \"down\" }\nmembers = [{ address = \"192.0.2.1\" }]\n";
    let mut states = configured("first-rise-derived", text);
    assert_eq!(answers(&states), [9]);
    observe(&mut states, (1, 0), true, 1);
    states.take_stale();
    assert_eq!(answers(&states), [1]);
    observe(&mut states, (1, 0), false, 2);
    observe(&mut states, (1, 0), true, 3);
    states.take_stale();
    assert_eq!(answers(&states), [9], "now it has");
}
