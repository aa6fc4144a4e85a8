//! Which members answer, and for which clients, where no plugin looks at the client.

use super::beside::{ServerPair, wait_until};
use super::clients::{Answers, Differences, random_case, random_subnet};
use super::resources::{Builder, DOWN, Rule, SteeredName};
use super::tally::{ANSWERS_MIN, Tally};
use std::collections::{BTreeMap, BTreeSet};
use zonda_testkit::Message;
use zonda_testkit::differential::Part;
use zonda_testkit::generate::Random;

/// How many clients ask both servers.
const CLIENTS: usize = 50_000;
/// What a reply has in common with gdnsd's whatever is drawn.
const FRAME: [Part; 6] =
    [Part::Rcode, Part::Flags, Part::Question, Part::Edns, Part::Authority, Part::Additional];
/// Names of the zone that no pool answers for, or that are not there.
const UNSTEERED: [&str; 6] = ["wild", "other", "ns", "missing", "x.multifo3", "below.any.missing"];
/// Types that are asked for beside addresses.
const OTHER_TYPES: [&str; 4] = ["TXT", "MX", "SOA", "SRV"];

/// Both servers with the pools of all plugins, whose members are in the same states.
fn start() -> (ServerPair, Vec<SteeredName>) {
    let Builder { configurations, names } = Builder::all();
    let beside = ServerPair::start(&configurations);
    for glob in DOWN {
        beside.pool(&["down", glob]);
    }
    (beside, names)
}

/// A random question of a random client: a steered name mostly, and an address mostly.
fn random_question<'n>(
    names: &'n [SteeredName],
    random: &mut Random,
) -> (Option<&'n SteeredName>, String, &'static str) {
    let record_type = match random.below(100) {
        0..60 => "A",
        60..92 => "AAAA",
        _ => random.pick(&OTHER_TYPES),
    };
    if random.one_in(20) {
        return (None, (*random.pick(&UNSTEERED)).to_owned(), record_type);
    }
    let steered = random.pick(names);
    (Some(steered), steered.name.clone(), record_type)
}

/// The records of an answer's data, in their order.
fn data(reply: &Message) -> Vec<String> {
    reply.answer.iter().map(|record| record.data.text.clone()).collect()
}

/// The TTLs of an answer's records, each once.
fn ttls(reply: &Message) -> BTreeSet<u32> {
    reply.answer.iter().map(|record| record.ttl).collect()
}

/// What random clients have got, by name and type.
#[derive(Default)]
struct Tallies {
    /// The whole answers.
    sets: BTreeMap<(String, &'static str), Tally>,
    /// The first records.
    firsts: BTreeMap<(String, &'static str), Tally>,
}

impl Tallies {
    fn add(&mut self, name: &str, record_type: &'static str, answers: &Answers) {
        let key = (name.to_owned(), record_type);
        let [ours, theirs] = [&answers.ours, &answers.theirs].map(data);
        let first = |data: &[String]| data.first().cloned().unwrap_or_default();
        self.firsts.entry(key.clone()).or_default().add(first(&ours), first(&theirs));
        let sorted = |mut data: Vec<String>| {
            data.sort();
            data.join(" ")
        };
        self.sets.entry(key).or_default().add(sorted(ours), sorted(theirs));
    }
}

#[test]
fn real_peers_agree_with_the_answers_ttls_and_scopes_of_pools_in_all_states() {
    let (beside, names) = start();
    let mut random = Random::new(1);
    let (mut differences, mut tallies) = (Differences::default(), Tallies::default());
    for _ in 0..CLIENTS {
        let (steered, name, record_type) = random_question(&names, &mut random);
        let subnet = random_subnet(&mut random);
        let cased = random_case(&name, &mut random);
        let answers = Answers::of(&beside, &cased, record_type, subnet.as_deref());
        let rule = steered.map_or(Rule::Same, |it| it.rule);
        let mut differing = answers.differing(&FRAME);
        if rule == Rule::Same {
            differing.extend(answers.differing(&[Part::Answer]));
        }
        let [ours, theirs] = [&answers.ours, &answers.theirs];
        if !differing.is_empty() || ttls(ours) != ttls(theirs) {
            differences.add(|| format!("{differing:?} {}", answers.shown()));
        }
        // No plugin here looks at the client, so that a resolver may keep the answer for all.
        let echoed = subnet.as_deref();
        if Answers::subnet_of(ours) != echoed || Answers::subnet_of(theirs) != echoed {
            differences.add(|| format!("client subnet: {}", answers.shown()));
        }
        match steered {
            Some(steered) if rule == Rule::Fewer => {
                check_fewer(steered, &answers, &mut differences);
            }
            Some(steered) => tallies.add(&steered.name, record_type, &answers),
            None => {}
        }
    }
    differences.assert_none();
    check_tallies(&tallies);
}

/// Where no data centre has enough members that are up, gdnsd answers with all of the first, and
/// Zonda with the one that is up.
fn check_fewer(steered: &SteeredName, answers: &Answers, differences: &mut Differences) {
    let [ours, theirs] = [&answers.ours, &answers.theirs].map(data);
    let is_up = |address: &&String| address.rsplit('.').next().unwrap().len() < 3;
    let up: Vec<&String> = theirs.iter().filter(is_up).collect();
    let is_address = !theirs.is_empty();
    if is_address && (theirs.len() != 4 || ours.iter().collect::<Vec<_>>() != up) {
        differences.add(|| format!("{}: {}", steered.name, answers.shown()));
    }
}

/// Answers that are drawn are from one distribution, and so are the first records of all answers.
fn check_tallies(tallies: &Tallies) {
    let told = tallies.sets.values().filter(|tally| tally.total() >= ANSWERS_MIN).count();
    assert!(told > 200, "only {told} names and types were asked for often enough");
    let both = tallies.sets.iter().chain(&tallies.firsts);
    let faults: Vec<String> =
        both.filter_map(|(key, tally)| Some(format!("{key:?}: {}", tally.fault()?))).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let weights = |name: &str, record_type: &'static str, shares: &[(&str, f64)]| {
        let shares = shares.iter().map(|(answer, share)| ((*answer).to_owned(), *share)).collect();
        let tally = &tallies.sets[&(name.to_owned(), record_type)];
        for server in [0, 1] {
            assert_eq!(tally.fault_of(server, &shares), None);
        }
    };
    weights("weighted0", "A", &[("10.2.0.1", 1.0), ("10.2.0.2", 3.0), ("10.2.0.3", 6.0)]);
    weights("weighted0", "AAAA", &[("fd00::2:0:1", 2.0), ("fd00::2:0:2", 5.0)]);
    weights("weighted2", "A", &[("10.2.2.1", 1.0), ("10.2.2.3", 6.0)]);
}

#[test]
fn real_peers_agree_about_weights_in_20_000_answers() {
    let (beside, _) = start();
    for (name, record_type) in [("weighted0", "A"), ("weighted7", "A"), ("alias0", "A")] {
        let mut tally = Tally::default();
        for _ in 0..20_000 {
            let answers = Answers::of(&beside, &format!("{name}.steered.test"), record_type, None);
            let [ours, theirs] = [&answers.ours, &answers.theirs].map(|it| data(it).join(" "));
            tally.add(ours, theirs);
        }
        assert_eq!(tally.fault(), None, "{name}");
    }
}

#[test]
fn real_peers_agree_after_each_change_of_states() {
    let (beside, names) = start();
    let simple: Vec<&SteeredName> = names.iter().filter(|it| it.rule == Rule::Same).collect();
    // All that is down comes up, then the first members of all go down, then nothing is said.
    for (ours, theirs) in [
        (vec!["up", "*/10.*"], "10.*/told => UP\nfd00::*/told => UP\n"),
        (vec!["down", "*/10.*.1"], "10.*/told => UP\nfd00::*/told => UP\n10.*.1/told => DOWN\n"),
        (vec!["resume", "*/10.*"], ""),
    ] {
        beside.pool(&ours);
        if ours[0] == "up" {
            beside.pool(&["up", "*/fd00:*"]);
        } else if ours[0] == "resume" {
            beside.pool(&["resume", "*/fd00:*"]);
            for glob in DOWN {
                beside.pool(&["down", glob]);
            }
        }
        beside.gdnsd.override_states(theirs);
        let agree = |steered: &&SteeredName| {
            ["A", "AAAA"].iter().all(|record_type| {
                let name = format!("{}.steered.test", steered.name);
                let answers = Answers::of(&beside, &name, record_type, None);
                answers.differing(&[Part::Rcode, Part::Answer, Part::Authority]).is_empty()
            })
        };
        wait_until("gdnsd has read the states", || simple.iter().all(agree));
        let one = |name: &str| data(&Answers::of(&beside, name, "A", None).ours);
        let found = ["simplefo0.steered.test", "simplefo1.steered.test"].map(one).concat();
        let expected = match ours[0] {
            "up" => ["10.3.0.1", "10.3.1.101"],
            "down" => ["10.3.0.2", "10.3.1.101"],
            _ => ["10.3.0.1", "10.3.1.2"],
        };
        assert_eq!(found, expected);
    }
}
