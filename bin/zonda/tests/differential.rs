//! Zonda answers as real servers do: what at least three of NSD, Knot, BIND and PowerDNS say about
//! generated zones, it says too, but for the differences below.

use zonda_testkit::differential::{AcceptedDifference, Part};
use zonda_testkit::message::name_text;
use zonda_testkit::rdata::type_number;
use zonda_testkit::{Suite, Zonda};

/// Differences that are intended; `docs/differences.md` explains each under its name.
const ACCEPTED: &[AcceptedDifference] = &[
    AcceptedDifference {
        name: "any_is_one_set_without_additional_data",
        applies: |found, part| {
            part == Part::Additional && found.question.record_type == type_number("ANY")
        },
    },
    AcceptedDifference {
        name: "a_dropped_authority_section_sets_tc",
        applies: |found, part| {
            part == Part::Flags
                && found.ours.flags & !TC == found.theirs.flags
                && found.theirs.authority.is_empty()
        },
    },
    AcceptedDifference {
        name: "services_bring_addresses_into_small_replies_too",
        applies: |found, part| {
            let asked = found.question.record_type;
            part == Part::Additional
                && [type_number("SVCB"), type_number("HTTPS")].contains(&asked)
                && found.theirs.additional.is_empty()
        },
    },
    AcceptedDifference {
        name: "names_below_the_target_of_a_dname_are_written_whole",
        applies: |found, part| {
            let mut answer = found.theirs.answer.iter();
            part == Part::Flags
                && found.ours.flags == found.theirs.flags | TC
                && answer.any(|record| record.record_type == type_number("DNAME"))
        },
    },
    AcceptedDifference {
        name: "names_of_many_labels_are_compressed_less",
        applies: |found, part| {
            part == Part::Flags
                && found.ours.flags & !TC == found.theirs.flags & !TC
                && found.theirs.authority.iter().any(|record| labels(&record.owner) > MANY_LABELS)
        },
    },
];

/// How many labels a name in wire form has.
fn labels(name: &[u8]) -> usize {
    name_text(name).matches('.').count()
}

/// The header's bit for a truncated reply.
const TC: u16 = 0x0200;
/// Labels beyond which the writer of replies may not remember every suffix of two names.
const MANY_LABELS: usize = 60;

/// Judges the program as it is built.
fn judge(suite: Suite) {
    suite.judge(ACCEPTED, |zones| {
        let zonda = Zonda::start(env!("CARGO_BIN_EXE_zonda"), zones, &["--workers", "1"]);
        let address = zonda.address;
        (zonda, address)
    });
}

#[test]
fn real_peers_agree_about_zones_of_every_shape() {
    judge(Suite::Plain);
}

#[test]
fn real_peers_agree_about_the_root_zone() {
    judge(Suite::Root);
}

#[test]
fn real_peers_agree_about_signed_zones() {
    judge(Suite::Signed);
}

#[test]
fn every_accepted_difference_is_explained_in_the_docs() {
    let page = include_str!("../../../docs/differences.md");
    for AcceptedDifference { name, .. } in ACCEPTED {
        assert!(page.contains(&format!("`{name}`")), "docs/differences.md lacks {name}");
    }
}
