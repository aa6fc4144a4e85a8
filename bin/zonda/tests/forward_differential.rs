//! Zonda forwards as Unbound does: asked for 10,000 names that NSD has, or has not, both say the
//! same, first when they have to ask and then from their caches, but for the differences below.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use zonda_testkit::differential::{AcceptedDifference, Contestant, Outcome, Part, QuestionSet};
use zonda_testkit::generate::{Random, Zone, questions, zones};
use zonda_testkit::message::{Message, Record, name_text};
use zonda_testkit::rdata::type_number;
use zonda_testkit::sign::sign_in_turn;
use zonda_testkit::{Peer, PeerKind, Question, Resolver, Zonda, ask};

/// Zones, of which every fourth is signed: enough for so many names.
const ZONES: usize = 84;
/// Names that must be asked for at least.
const NAMES_MIN: usize = 10_000;
/// Types that are not asked for. To ANY a server may answer any part of the records (rfc8482), and
/// clients have no reason to ask for the rest.
const LEFT_OUT: [&str; 4] = ["ANY", "RRSIG", "NSEC", "NSEC3"];
/// The TTLs of the generated zones, seconds.
const TTLS: [u32; 6] = [0, 60, 300, 600, 900, 3600];

/// Differences that are intended.
const ACCEPTED: &[AcceptedDifference] = &[
    // rfc6672#3.1; Unbound gives such an alias a TTL of 0 now and then.
    AcceptedDifference {
        name: "an_alias_made_of_a_dname_lives_as_long_as_that",
        applies: |found, part| {
            let timeless = |reply: &Message| {
                let mut records: Vec<_> = reply.answer.iter().map(without_ttl_of_alias).collect();
                records.sort();
                records
            };
            part == Part::Answer
                && has_dname(&found.theirs)
                && timeless(&found.ours) == timeless(&found.theirs)
        },
    },
    // Unbound asks again for the name that a DNAME leads to, and adds what proves that it is not.
    AcceptedDifference {
        name: "a_proof_is_passed_on_as_it_came",
        applies: |found, part| {
            let theirs: Vec<String> =
                found.theirs.authority.iter().map(Record::to_string).collect();
            let mut ours = found.ours.authority.iter().map(Record::to_string);
            part == Part::Authority
                && has_dname(&found.theirs)
                && ours.all(|record| theirs.contains(&record))
        },
    },
    // Where DNAME itself is asked for, Unbound takes those that lead to the name for the answer.
    AcceptedDifference {
        name: "a_missing_dname_behind_a_dname_is_proven",
        applies: |found, part| {
            part == Part::Authority
                && found.question.record_type == type_number("DNAME")
                && has_dname(&found.theirs)
                && found.theirs.authority.is_empty()
        },
    },
    // A DNAME to itself makes an alias of itself, and one to a name below itself a chain that grows
    // until no name can hold it.
    AcceptedDifference {
        name: "a_chain_of_more_than_16_links_is_a_failure",
        applies: |found, _| {
            let grows = |record: &Record| {
                let target = format!(".{}", name_text(&record.owner));
                record.record_type == type_number("DNAME")
                    && format!(".{}", record.data.text).ends_with(&target)
            };
            found.ours.rcode_text() == "SERVFAIL" && found.theirs.answer.iter().any(grows)
        },
    },
    // Records of upstreams for local names are not accepted; Unbound does so for QNAMEs only.
    AcceptedDifference {
        name: "the_target_of_an_alias_that_is_a_special_name_is_answered_locally",
        applies: |found, part| {
            let is_special = |record: &Record| {
                record.record_type == type_number("CNAME")
                    && format!(".{}", record.data.text).ends_with(".invalid.")
            };
            matches!(part, Part::Answer | Part::Authority)
                && found.theirs.answer.iter().any(is_special)
        },
    },
];

#[test]
fn every_accepted_difference_is_explained_in_the_docs() {
    let page = include_str!("../../../docs/differences.md");
    for AcceptedDifference { name, .. } in ACCEPTED {
        assert!(page.contains(&format!("| `{name}` |")), "docs/differences.md lacks {name}");
    }
}

/// Whether an answer leads over a DNAME.
fn has_dname(reply: &Message) -> bool {
    reply.answer.iter().any(|record| record.record_type == type_number("DNAME"))
}

/// A record as text, without its TTL if it is a CNAME.
fn without_ttl_of_alias(record: &Record) -> String {
    let is_alias = record.record_type == type_number("CNAME");
    let ttl = if is_alias { 0 } else { record.ttl };
    Record { ttl, ..record.clone() }.to_string()
}

/// What is compared of a reply: of the records beside the answer only what proves that there is
/// none, and TTLs as they were before they aged.
fn view(mut reply: Message) -> Message {
    let proofs = ["SOA", "NSEC", "NSEC3"].map(type_number);
    let covered = |record: &Record| record.data.text.split(' ').next().map(type_number);
    reply.authority.retain(|record| {
        let is_signature = record.record_type == type_number("RRSIG");
        let about = if is_signature { covered(record) } else { Some(record.record_type) };
        about.is_some_and(|about| proofs.contains(&about))
    });
    reply.additional.clear();
    for record in reply.answer.iter_mut().chain(&mut reply.authority) {
        record.ttl = TTLS.into_iter().find(|&whole| record.ttl <= whole).unwrap_or(record.ttl);
    }
    reply
}

/// Zones of all shapes, some of them signed, and the root zone above them.
fn hierarchy() -> Vec<Zone> {
    let (mut signed, mut plain) = (Vec::new(), Vec::new());
    for (number, zone) in zones(1, ZONES).into_iter().enumerate() {
        if number % 4 == 3 { signed.push(zone) } else { plain.push(zone) }
    }
    let mut all = [plain, sign_in_turn(&signed)].concat();
    let is_below = |zone: &Zone, other: &Zone| zone.name.ends_with(&format!(".{}", other.name));
    let on_top = all.iter().filter(|zone| !all.iter().any(|other| is_below(zone, other)));
    let delegations: String =
        on_top.map(|zone| format!("{} 3600 IN NS ns.invalid.\n", zone.name)).collect();
    let soa = ". 900 IN SOA ns.invalid. host.invalid. 1 7200 1800 1209600 300";
    let text =
        format!("{soa}\n. 3600 IN NS ns.invalid.\nns.invalid. 3600 IN A 192.0.2.53\n{delegations}");
    all.push(Zone { name: ".".to_owned(), text, names: Vec::new() });
    all
}

/// Questions about a zone, without those that its server refers elsewhere: no server answers these.
fn answerable(zone: &Zone, upstream: SocketAddr, random: &mut Random) -> Vec<Question> {
    let left_out = LEFT_OUT.map(type_number);
    let asked =
        questions(zone, random).into_iter().filter(|it| !left_out.contains(&it.record_type));
    let is_referred = |question: &Question| {
        let reply = ask(upstream, &question.clone().edns(1232)).expect("NSD answers");
        let ends_in = |record_type| reply.authority.iter().any(|it| it.record_type == record_type);
        reply.answer.last().is_none_or(|last| last.record_type == type_number("CNAME"))
            && ends_in(type_number("NS"))
            && !ends_in(type_number("SOA"))
    };
    asked.map(Question::recursive).filter(|question| !is_referred(question)).collect()
}

#[test]
fn real_peers_agree_with_what_is_forwarded() {
    let zones = hierarchy();
    let pairs: Vec<_> = zones.iter().map(|zone| (&*zone.name, &*zone.text)).collect();
    let upstream = Peer::start(PeerKind::Nsd, &pairs);
    let unbound = Resolver::unbound(upstream.address, ".");
    let own =
        [("own.invalid", "@ 60 IN SOA ns host 1 2 3 4 5\n@ 60 IN NS ns\nns 60 IN A 192.0.2.1")];
    let to = upstream.address.to_string();
    let zonda = Zonda::start(env!("CARGO_BIN_EXE_zonda"), &own, &["--forward", &to]);
    let ours = Contestant { name: "Zonda".into(), address: zonda.address };
    let mut random = Random::new(1);
    let (mut outcome, mut names) = (Outcome::default(), BTreeSet::new());
    for zone in &zones {
        let questions = answerable(zone, upstream.address, &mut random);
        names.extend(questions.iter().map(|question| question.name.to_ascii_lowercase()));
        let asked = QuestionSet { zone: &zone.name, questions: &questions, view };
        for _ in ["asked", "kept"] {
            asked.of(&ours, &[unbound.contestant()], 1, ACCEPTED, &mut outcome);
        }
    }
    println!("{} questions about {} names", outcome.questions, names.len());
    println!("{} parts of replies compared", outcome.decided);
    println!("accepted differences: {:?}", outcome.accepted);
    let count = outcome.differences.len();
    assert!(count == 0, "{count} answers differ\n{}", outcome.report());
    assert!(names.len() >= NAMES_MIN);
}
