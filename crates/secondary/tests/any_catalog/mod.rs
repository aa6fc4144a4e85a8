//! Any texts as versions of a catalog: what is read by what has changed is what is read as a whole,
//! and members are restored from what is kept of them.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use zonda_secondary::{Membership, VersionLimits};
use zonda_wire::Name;
use zonda_zone::file::{self, Options};
use zonda_zone::{HashSeed, Records, Zone, build};

/// The records that each version has.
const HEAD: &str = "$TTL 0\n@ SOA invalid. invalid. 1 1 1 1 0\n@ NS invalid.\n";
/// Versions of one input that are looked at.
const VERSIONS_MAX: usize = 8;

/// No limits.
const LIMITS: VersionLimits = VersionLimits { removals_max: None, members_max: usize::MAX };

/// Reads octets as master files of versions with a zero octet between them.
pub fn check(octets: &[u8]) {
    let (apex, seed): (Name, _) = ("c.test".parse().unwrap(), HashSeed::random());
    let new = || {
        let mut membership = Membership::default();
        membership.order(std::slice::from_ref(&apex));
        membership
    };
    let (mut by_changes, mut as_whole) = (new(), new());
    let mut former: Option<Zone> = None;
    for text in octets.split(|octet| *octet == 0).take(VERSIONS_MAX) {
        let Some(zone) = zone(&apex, text, seed) else { continue };
        let judges = (|_: &_, _| false, |_: &_| true);
        let steps = by_changes.take(&apex, (former.as_ref(), &zone), LIMITS, judges);
        assert_eq!(steps, as_whole.take(&apex, (None, &zone), LIMITS, judges));
        let Ok(steps) = steps else { continue };
        for (zone, step) in &steps {
            by_changes.carry_out(zone, step);
            as_whole.carry_out(zone, step);
        }
        assert_eq!(by_changes.waiting().len(), 0, "nothing stands for any zone");
        former = Some(zone);
        let mut restored = new();
        for (zone, step) in restored.restore(&apex, &by_changes.records(&apex).unwrap()) {
            restored.carry_out(&zone, &step);
        }
        assert_eq!(restored.count(&apex), by_changes.count(&apex));
        for (zone, member) in by_changes.members() {
            assert_eq!(restored.member(zone), Some(member));
        }
    }
}

/// The zone of a text, if it is one.
fn zone(apex: &Name, text: &[u8], seed: HashSeed) -> Option<Zone> {
    let text = [HEAD.as_bytes(), text].concat();
    let root = Some("/nonexistent".into());
    let options = Options { root, is_confined: true, generate_max: 64 };
    let path = Path::new("catalog");
    let (records, _) = file::read_opened(&text, path, apex, &options, Records::default());
    build(apex, &records, seed).ok()
}
