//! Small zones of every shape that is interesting, and the questions to ask about them.
//!
//! Everything follows from a seed. A zone has one shape or a mixture; the builder leaves out what
//! would make a zone invalid, so that every peer loads all of them.

mod builder;
mod questions;
mod random;
mod shapes;

pub use builder::Zone;
pub use questions::questions;
pub use random::Random;

use builder::Builder;
use shapes::SHAPES;

/// Mixed zones have between this many shapes …
const MIXED_SHAPES_MIN: usize = 3;
/// … and this many.
const MIXED_SHAPES_MAX: usize = 9;

/// Zones that one server holds together: first each shape alone, then mixtures, `count` in all.
pub fn zones(seed: u64, count: usize) -> Vec<Zone> {
    let mut random = Random::new(seed);
    let mut zones = families();
    for number in zones.len()..count {
        let mut zone = Builder::new(&apex(&mut random, number));
        match SHAPES.get(number) {
            Some(shape) => (shape.add)(&mut zone, &mut random),
            None => {
                let spread = MIXED_SHAPES_MAX - MIXED_SHAPES_MIN;
                for _ in 0..MIXED_SHAPES_MIN + random.below(spread) {
                    (random.pick(SHAPES).add)(&mut zone, &mut random);
                }
            }
        }
        zones.push(zone.finish());
    }
    zones
}

/// Returns a name of one to four labels, now and then written in mixed case.
fn apex(random: &mut Random, number: usize) -> String {
    let suffix = random.pick(&["", ".example", ".Example", ".a.example", ".b.c.example"]);
    format!("z{number}{suffix}.")
}

/// Zones of which one is the child of another, on the same server.
fn families() -> Vec<Zone> {
    let mut parent = Builder::new("family.test.");
    parent.add("www", "A", "192.0.2.1");
    parent.add("child", "NS", "ns.child");
    parent.add("ns.child", "A", "192.0.2.53");
    parent.add(
        "child",
        "DS",
        "60485 13 2 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
    );
    parent.add("unsigned", "NS", "ns.unsigned");
    parent.add("unsigned", "NS", "ns.child");
    parent.add("ns.unsigned", "A", "192.0.2.54");
    // The server also has grand.lost, but nothing delegates to it.
    parent.add("x.lost", "TXT", "above");
    let mut child = Builder::new("child.family.test.");
    child.add("ns", "A", "192.0.2.53");
    child.add("www", "CNAME", "www.family.test.");
    child.add("*", "TXT", "wildcard of the child");
    let mut unsigned = Builder::new("unsigned.family.test.");
    unsigned.add("ns", "A", "192.0.2.54");
    unsigned.add("deep.name", "AAAA", "2001:db8::1");
    let mut grand = Builder::new("grand.lost.family.test.");
    grand.add("www", "A", "192.0.2.99");
    [parent, child, unsigned, grand].into_iter().map(Builder::finish).collect()
}

/// Returns a root zone with its delegations, and one of the zones below it on the same server.
pub fn root_zones() -> Vec<Zone> {
    let mut root = Builder::new(".");
    for (name, host, address) in [
        ("com.", "a.servers.net.", "192.0.2.1"),
        ("net.", "a.servers.net.", "192.0.2.1"),
        ("org.", "b.org.", "192.0.2.2"),
        ("example.", "ns.example.", "192.0.2.3"),
    ] {
        root.add(name, "NS", host);
        root.add(host, "A", address);
        root.add(host, "AAAA", "2001:db8::53");
    }
    root.add(
        "org.",
        "DS",
        "7 8 2 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
    );
    let mut example = Builder::new("example.");
    example.add("ns", "A", "192.0.2.3");
    example.add("www", "A", "192.0.2.4");
    vec![root.finish(), example.finish()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_gives_the_same_zones() {
        let text = |seed| zones(seed, 60).into_iter().map(|zone| zone.text).collect::<String>();
        assert_eq!(text(1), text(1));
        assert_ne!(text(1), text(2));
    }

    #[test]
    fn no_name_has_an_alias_beside_other_data() {
        for zone in zones(5, 300) {
            for (owner, types) in &zone.names {
                assert!(types.len() == 1 || !types.contains(&"CNAME"), "{owner} {types:?}");
            }
        }
    }
}
