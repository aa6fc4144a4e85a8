//! Which code answers for a name.
//!
//! Routes lie over the zones: a name that none of them has, or has for another type, is answered
//! from the zone that holds it.
//!
//! Of several routes for a name and type that one is taken which describes the name best:
//! 1. one without `*` before one with it; of those with it, the one with most labels;
//! 2. one that spells a label out before one that captures it, where they differ first from the
//!    right;
//! 3. one that says for which types it is;
//! 4. the one that was added last.
//!
//! A query that the code of one route passes on goes to the next one in this order.
//!
//! # Invariants
//! - Routes never change: other ones are another snapshot's.
//! - A look-up takes one probe for each number of labels that some pattern's last, literal part
//!   has, and one comparison for each pattern that shares that part.

use super::pattern::{Pattern, Rank};
use std::collections::{HashMap, HashSet};
use zonda_wire::{Name, Type};
use zonda_zone::snapshot::Slots;
use zonda_zone::{HashSeed, LookupName};

/// Patterns of names, each with what answers for them.
pub struct Routes<H> {
    routes: Vec<Route<H>>,
    /// Places of [`Routes::suffixes`] by the hash of their name.
    slots: Slots,
    suffixes: Vec<Suffix>,
    /// Bit *n*: there is a suffix of *n* labels.
    depths: u128,
    /// The names above the suffixes.
    above: Above,
    /// The seed that names are hashed with.
    seed: HashSeed,
}

/// A pattern and what answers for it.
#[derive(Clone)]
pub struct Route<H> {
    /// The names that the route answers.
    pub pattern: Pattern,
    /// The code that answers.
    pub handler: H,
}

/// The last labels of patterns, behind their `*` and captures.
struct Suffix {
    /// The labels, in lower case.
    name: Name,
    /// The patterns that are just this name, by falling rank.
    exact: Vec<RouteEntry>,
    /// Routes for many names, by falling rank.
    open: Vec<RouteEntry>,
}

/// A route in the order in which they are tried.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RouteEntry {
    rank: Rank,
    /// The route's place; the later one of two equals wins.
    place: usize,
}

/// A route that a query has passed: its place in the order in which routes are tried, which later
/// routes have as well. Kept with queries that wait, so it is as small as can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassedRoute {
    /// The upper and the lower half of the rank's literals.
    literals: [u64; 2],
    /// The place of the route among those that describe names as well.
    place: u32,
    /// The rank's labels.
    labels: u8,
    /// Whether the route says which types it is for.
    has_types: bool,
}

impl PassedRoute {
    /// The route of an entry.
    fn new(RouteEntry { rank, place }: RouteEntry) -> Self {
        let Rank { labels, literals, has_types } = rank;
        let literals = [(literals >> 64) as u64, literals as u64];
        Self { literals, place: u32::try_from(place).unwrap_or(u32::MAX), labels, has_types }
    }

    /// The entry that was passed.
    fn entry(self) -> RouteEntry {
        let Self { literals: [upper, lower], place, labels, has_types } = self;
        let literals = u128::from(upper) << 64 | u128::from(lower);
        RouteEntry { rank: Rank { labels, literals, has_types }, place: place as usize }
    }
}

impl<H> Routes<H> {
    /// Routes in the order in which they were added, for names that are hashed with `seed`.
    #[must_use]
    pub fn new(routes: Vec<Route<H>>, seed: HashSeed) -> Self {
        let mut suffixes: Vec<Suffix> = Vec::new();
        let mut places: HashMap<Name, usize> = HashMap::new(); // lists to block are long
        for (place, Route { pattern, .. }) in routes.iter().enumerate() {
            let name = pattern.literal_suffix();
            let known = *places.entry(name).or_insert_with_key(|name| {
                suffixes.push(Suffix { name: name.clone(), exact: Vec::new(), open: Vec::new() });
                suffixes.len() - 1
            });
            let Suffix { exact, open, .. } = &mut suffixes[known];
            let tried = if pattern.is_exact() { exact } else { open };
            tried.push(RouteEntry { rank: pattern.rank(), place });
        }
        let (mut depths, mut hashes) = (0, Vec::with_capacity(suffixes.len()));
        for suffix in &mut suffixes {
            suffix.exact.sort_unstable_by(|a, b| b.cmp(a));
            suffix.open.sort_unstable_by(|a, b| b.cmp(a));
            let name = LookupName::new(suffix.name.as_wire(), seed);
            depths |= 1 << name.label_count();
            hashes.push(name.hash(0));
        }
        let slots = Slots::with_all(suffixes.len(), hashes.into_iter().zip(0..));
        let above = Above::new(&suffixes, seed);
        Self { routes, slots, suffixes, depths, above, seed }
    }

    /// Returns the number of routes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.routes.len()
    }

    /// Whether there are no routes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    /// All of them, in the order in which they were added.
    #[must_use]
    pub fn as_slice(&self) -> &[Route<H>] {
        &self.routes
    }

    /// The route for a name and type, and its place.
    #[inline]
    #[must_use]
    pub fn find(&self, name: &LookupName, qtype: Type) -> Option<(usize, &Route<H>)> {
        let count = name.label_count();
        let mut depths = self.depths & (u128::MAX >> (127 - count));
        let mut best: Option<RouteEntry> = None;
        while depths != 0 {
            let labels = 127 - depths.leading_zeros() as usize;
            depths &= !(1 << labels);
            let Some(suffix) = self.suffix(name, count - labels) else { continue };
            if labels == count {
                let exact = suffix.exact.iter().find(|route| self.takes(route, qtype));
                if let Some(route) = exact {
                    return Some((route.place, &self.routes[route.place]));
                }
            }
            let matches = |route: &&RouteEntry| {
                self.takes(route, qtype) && self.routes[route.place].pattern.matches(name)
            };
            best = best.max(suffix.open.iter().find(matches).copied());
        }
        best.map(|route| (route.place, &self.routes[route.place]))
    }

    /// Returns a route as one that a query has passed; `place` is the route's.
    ///
    /// # Panics
    /// When there is no route at the place.
    #[must_use]
    pub fn passed(&self, place: usize) -> PassedRoute {
        PassedRoute::new(RouteEntry { rank: self.routes[place].pattern.rank(), place })
    }

    /// Returns the route with this pattern as one that a query has passed; if there is none any
    /// more, all routes that describe names as well as the pattern count as passed.
    #[must_use]
    pub fn passed_by(&self, pattern: &Pattern) -> PassedRoute {
        let rank = pattern.rank();
        let name = pattern.literal_suffix();
        let name = LookupName::new(name.as_wire(), self.seed);
        let suffix = self.suffix(&name, 0);
        let mut entries = suffix.into_iter().flat_map(|it| it.exact.iter().chain(&it.open));
        let is_it = |entry: &&RouteEntry| self.routes[entry.place].pattern == *pattern;
        let place = entries.find(is_it).map_or(0, |entry| entry.place);
        PassedRoute::new(RouteEntry { rank, place })
    }

    /// Returns the route for a name and type that is next behind one that a query has passed, and
    /// its place; the first one if the query has passed none.
    #[must_use]
    pub fn find_behind(
        &self,
        name: &LookupName,
        qtype: Type,
        passed: Option<PassedRoute>,
    ) -> Option<(usize, &Route<H>)> {
        let passed = passed.map(PassedRoute::entry);
        let mut best: Option<RouteEntry> = None;
        self.each(name, qtype, |list, index| {
            let entry = list[index];
            let is_behind = passed.is_none_or(|passed| entry < passed);
            if is_behind && best < Some(entry) && !self.is_replaced(list, index) {
                best = Some(entry);
            }
        });
        best.map(|route| (route.place, &self.routes[route.place]))
    }

    /// Puts the places of all routes for a name and type into `places`, that of the route that
    /// describes the name best last.
    pub fn find_all(&self, name: &LookupName, qtype: Type, places: &mut Vec<usize>) {
        places.clear();
        self.each(name, qtype, |list, index| places.push(list[index].place));
        let entry = |place: usize| RouteEntry { rank: self.routes[place].pattern.rank(), place };
        places.sort_unstable_by_key(|&place| entry(place)); // few, and without memory of its own
    }

    /// Shows `see` each route for a name and type, in no order: the list that it is in, and where.
    fn each(&self, name: &LookupName, qtype: Type, mut see: impl FnMut(&[RouteEntry], usize)) {
        let count = name.label_count();
        let mut depths = self.depths & (u128::MAX >> (127 - count));
        while depths != 0 {
            let labels = 127 - depths.leading_zeros() as usize;
            depths &= !(1 << labels);
            let Some(suffix) = self.suffix(name, count - labels) else { continue };
            let exact = if labels == count { &suffix.exact[..] } else { &[] };
            for list in [exact, &suffix.open[..]] {
                for (index, route) in list.iter().enumerate() {
                    if self.takes(route, qtype) && self.routes[route.place].pattern.matches(name) {
                        see(list, index);
                    }
                }
            }
        }
    }

    /// Whether a later route of the same list has the pattern of one.
    fn is_replaced(&self, list: &[RouteEntry], index: usize) -> bool {
        let RouteEntry { rank, place } = list[index];
        let pattern = &self.routes[place].pattern;
        let mut later = list[..index].iter().rev().take_while(|other| other.rank == rank);
        later.any(|other| self.routes[other.place].pattern == *pattern)
    }

    /// Returns what the routes say about a name and type for which no code has answered.
    #[cold]
    #[must_use]
    pub fn claim(&self, name: &LookupName, qtype: Type) -> Claim {
        let count = name.label_count();
        let mut depths = self.depths & (u128::MAX >> (127 - count));
        let exists = self.above.has(&self.suffixes, name);
        let mut claim = Claim { exists, ..Claim::default() };
        while depths != 0 {
            let labels = 127 - depths.leading_zeros() as usize;
            depths &= !(1 << labels);
            let Some(suffix) = self.suffix(name, count - labels) else { continue };
            if labels == count && !suffix.exact.is_empty() {
                return Claim { exists: true, is_own: true, label: 0 };
            }
            for route in suffix.open.iter().filter(|_| labels > 0) {
                let pattern = &self.routes[route.place].pattern;
                let is_matched = pattern.matches(name);
                if is_matched || pattern.is_below(name) {
                    claim.exists |= !is_matched || !pattern.takes(qtype);
                    claim.is_own |= is_matched || labels == count;
                    claim.label = claim.label.max(count - labels);
                }
            }
        }
        claim
    }

    /// Whether a route is for a type.
    fn takes(&self, route: &RouteEntry, qtype: Type) -> bool {
        self.routes[route.place].pattern.takes(qtype)
    }

    /// The suffix that is the part of a name from label `label` on.
    fn suffix(&self, name: &LookupName, label: usize) -> Option<&Suffix> {
        let octets = name.suffix(label);
        let is_it = |place: u32| self.suffixes[place as usize].name.as_wire() == octets;
        let place = self.slots.find(name.hash(label), is_it)?;
        Some(&self.suffixes[place as usize])
    }
}

/// What routes say about a name that no code answered for. Those for all names (`*`), and those
/// with captures alone, say nothing: they are for looking at names, not for having them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// The name exists, if the zone does that it would be in: a route spells it out, has it for
    /// other types, or has names below it (rfc8020#2). Code for many names that was asked and has
    /// left this one does not have it.
    pub exists: bool,
    /// The name is one of a route's, or the one that all of them end in.
    pub is_own: bool,
    /// The label at which the part begins that the route's pattern spells out.
    pub label: usize,
}

/// Names above suffixes: their ends. The root is none of them.
struct Above {
    /// Places of [`Above::ends`] by the hash of the name.
    slots: Slots,
    /// The place of a suffix, and how many of its octets stand before the name.
    ends: Vec<(u32, u8)>,
}

impl Above {
    /// The names above suffixes, for names that are hashed with `seed`.
    fn new(suffixes: &[Suffix], seed: HashSeed) -> Self {
        let mut known: HashSet<&[u8]> = HashSet::new();
        let (mut ends, mut hashes) = (Vec::new(), Vec::new());
        for (place, suffix) in (0..).zip(suffixes) {
            let wire = suffix.name.as_wire();
            let name = LookupName::new(wire, seed);
            for label in 1..name.label_count() {
                let skip = wire.len() - name.suffix(label).len();
                if !known.insert(&wire[skip..]) {
                    break; // so are those above it
                }
                ends.push((place, skip as u8)); // a name has at most 255 octets
                hashes.push(name.hash(label));
            }
        }
        let slots = Slots::with_all(ends.len(), hashes.into_iter().zip(0..));
        Self { slots, ends }
    }

    /// Whether a name is above one of the suffixes.
    fn has(&self, suffixes: &[Suffix], name: &LookupName) -> bool {
        let is_it = |place: u32| {
            let (suffix, skip) = self.ends[place as usize];
            suffixes[suffix as usize].name.as_wire()[usize::from(skip)..] == *name.as_wire()
        };
        self.slots.find(name.hash(0), is_it).is_some()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::code::PatternError;
    use zonda_wire::NameError;

    const SEED: HashSeed = HashSeed(3);

    /// The pattern that is found for a question, with what it captured.
    fn found(patterns: &[&str], name: &str, qtype: &str) -> String {
        let route = |text: &&str| Route { pattern: text.parse().unwrap(), handler: () };
        let routes = Routes::new(patterns.iter().map(route).collect(), SEED);
        let name = LookupName::new(name.parse::<Name>().unwrap().as_wire(), SEED);
        let Some((_, route)) = routes.find(&name, qtype.parse().unwrap()) else {
            return "-".into();
        };
        let mut text = route.pattern.as_str().to_owned();
        for (word, label) in route.pattern.captures(&name) {
            text += &format!(" {word}={}", String::from_utf8_lossy(label));
        }
        text
    }

    /// Checks which of `patterns` each question finds.
    fn check(patterns: &[&str], questions: &[(&str, &str, &str)]) {
        for (name, qtype, expected) in questions {
            assert_eq!(found(patterns, name, qtype), *expected, "{name} {qtype}, of {patterns:?}");
        }
    }

    #[test]
    fn a_name_is_matched_in_any_case() {
        check(
            &["Example.ORG"],
            &[
                ("example.org", "A", "Example.ORG"),
                ("EXAMPLE.org", "TXT", "Example.ORG"),
                ("www.example.org", "A", "-"),
                ("org", "A", "-"),
                (".", "A", "-"),
            ],
        );
    }

    #[test]
    fn a_star_has_all_names_below_at_any_depth_but_not_the_name() {
        check(
            &["*.example.org"],
            &[
                ("a.example.org", "A", "*.example.org"),
                ("c.b.a.example.org", "A", "*.example.org"),
                ("example.org", "A", "-"),
                ("aexample.org", "A", "-"),
            ],
        );
        check(&["*"], &[("a.b", "A", "*"), (".", "NS", "*")]);
        check(&["."], &[("a", "A", "-"), (".", "NS", ".")]);
    }

    #[test]
    fn a_capture_has_names_of_just_one_label_in_its_place() {
        let patterns = [":user.:team.example.org"];
        check(
            &patterns,
            &[
                ("Ann.red.example.org", "A", ":user.:team.example.org user=ann team=red"),
                ("red.example.org", "A", "-"),
                ("x.ann.red.example.org", "A", "-"),
            ],
        );
        check(
            &["*.:user.example.org"],
            &[
                ("ann.example.org", "A", "-"),
                ("a.b.ann.example.org", "A", "*.:user.example.org user=ann"),
            ],
        );
    }

    #[test]
    fn the_pattern_that_describes_a_name_best_wins_in_whatever_order_they_were_added() {
        let mut patterns = vec![
            "*",
            "*.example.org",
            "*.b.example.org",
            ":x.b.example.org",
            "a.:y.example.org",
            "a.b.example.org",
        ];
        for _ in 0..2 {
            check(
                &patterns,
                &[
                    ("a.b.example.org", "A", "a.b.example.org"),
                    ("c.b.example.org", "A", ":x.b.example.org x=c"),
                    ("a.c.example.org", "A", "a.:y.example.org y=c"),
                    ("d.c.b.example.org", "A", "*.b.example.org"),
                    ("d.c.example.org", "A", "*.example.org"),
                    ("example.org", "A", "*"),
                ],
            );
            patterns.reverse();
        }
        let both = [":x.b.example.org", "a.:y.example.org"];
        check(&both, &[("a.b.example.org", "A", ":x.b.example.org x=a")]);
    }

    #[test]
    fn a_route_is_not_asked_for_other_types_than_its_own() {
        let patterns =
            ["a.example.org/a|AAAA", "*.example.org/TXT", "*/TYPE65280", "a.example.org"];
        check(
            &patterns,
            &[
                ("a.example.org", "AAAA", "a.example.org/a|AAAA"),
                ("a.example.org", "MX", "a.example.org"),
                ("b.example.org", "A", "-"),
                ("b.example.org", "TXT", "*.example.org/TXT"),
                ("b.example.org", "TYPE65280", "*/TYPE65280"),
            ],
        );
        check(&["*.example.org/TXT", "*/A"], &[("b.example.org", "A", "*/A")]);
    }

    #[test]
    fn what_was_added_last_replaces_what_was_added_before() {
        let route = |text: &str, handler| Route { pattern: text.parse().unwrap(), handler };
        let routes = Routes::new(vec![route("*.org/A", 1), route("*.org/A|MX", 2)], SEED);
        let name = LookupName::new(b"\x01a\x03org\0", SEED);
        assert_eq!(routes.find(&name, Type::A).map(|(_, route)| route.handler), Some(2));
    }

    /// With a search of all suffixes for each route, this takes minutes.
    #[test]
    fn a_list_of_a_hundred_thousand_names_is_taken_in_a_moment() {
        let pattern = |number: u32| [format!("n{number}.example"), format!("*.n{number}.example")];
        let patterns = (0..100_000).flat_map(pattern);
        let route = |text: String| Route { pattern: text.parse().unwrap(), handler: () };
        let routes = Routes::new(patterns.map(route).collect(), SEED);
        let found = |name: &str| {
            let name = LookupName::new(name.parse::<Name>().unwrap().as_wire(), SEED);
            routes.find(&name, Type::A).map(|(place, _)| place)
        };
        assert_eq!(found("n99999.example"), Some(199_998));
        assert_eq!(found("a.b.n99999.example"), Some(199_999));
        assert_eq!(found("n100000.example"), None);
    }

    #[test]
    fn escaped_characters_stand_for_themselves() {
        check(
            &[r"\*.example.org", r"\:a.example.org", r"a\/b.example.org/A", r"a\.b.example.org"],
            &[
                (r"\*.example.org", "A", r"\*.example.org"),
                ("x.example.org", "A", "-"),
                (":a.example.org", "A", r"\:a.example.org"),
                ("a/b.example.org", "A", r"a\/b.example.org/A"),
                (r"a\.b.example.org", "A", r"a\.b.example.org"),
                ("a.b.example.org", "A", "-"),
            ],
        );
        check(&[r"a\*.:b.example.org"], &[("a*.c.example.org", "A", r"a\*.:b.example.org b=c")]);
    }

    #[test]
    fn patterns_that_mean_the_same_are_equal_and_have_one_canonical_form() {
        let long = format!("{}.example", "a".repeat(63));
        for (canonical, spellings) in [
            ("example.org", &["example.org", "Example.ORG", "example.org.", r"ex\097mple.org"][..]),
            (
                "a.example/A|TXT",
                &["a.example/A|TXT", "A.example./TXT|A", "a.example/ txt | a|TYPE1"],
            ),
            ("*", &["*", "*."]),
            ("*/AAAA", &["*/AAAA", "*./aaaa"]),
            (".", &["."]),
            ("*.example.org", &["*.example.org", "*.EXAMPLE.org."]),
            (":user.users.example/A", &[":user.users.example/a"]),
            (r"\*.example.org", &[r"\*.example.org", r"\042.example.org"]),
            (r"a*.\:b.c\/d.e\.f", &[r"a\*.\:b.c\/d.e\.f", r"A*.\058b.c\047d.e\046f"]),
            (r"\195\188bung.e\\", &["\u{fc}bung.e\\\\", r"\195\188bung.e\\"]),
            (&long, &[&long.to_uppercase()]),
        ] {
            for spelling in spellings {
                let pattern: Pattern = spelling.parse().unwrap();
                assert_eq!(pattern.canonical(), *canonical, "{spelling}");
                assert_eq!(pattern.canonical().parse::<Pattern>().unwrap(), pattern, "{spelling}");
                assert_eq!(pattern.as_str(), *spelling);
            }
        }
        let distinct = [
            "example.org",
            "*.example.org",
            r"\*.example.org",
            ":a.example.org",
            ":A.example.org",
            r"\:a.example.org",
            "example.org/A",
            "example.org/A|AAAA",
            ".",
            "*",
            "*/A",
        ];
        let patterns = distinct.map(|text| text.parse::<Pattern>().unwrap());
        for (place, pattern) in patterns.iter().enumerate() {
            let others = patterns.iter().enumerate().filter(|(other, _)| *other != place);
            for (_, other) in others {
                assert_ne!(pattern, other);
                assert_ne!(pattern.canonical(), other.canonical());
            }
        }
    }

    #[test]
    fn a_negative_reply_is_from_what_the_pattern_spells_out_or_from_the_name_itself() {
        for (pattern, name, zone) in [
            ("*.users.example", "a.b.users.example", "users.example"),
            ("*.:x.deep.example/A", "a.b.deep.example", "deep.example"),
            ("gone.example", "gone.example", "gone.example"),
            ("*", "www.test", "www.test"),
            (":x", "test", "test"),
            ("*", ".", "."),
        ] {
            let pattern: Pattern = pattern.parse().unwrap();
            let name: Name = name.parse().unwrap();
            let zone: Name = zone.parse().unwrap();
            assert_eq!(Pattern::zone_of(Some(&pattern), name.as_wire()), zone, "{name}");
            assert!(pattern.matches_wire(name.as_wire()) || name.as_wire().len() == 1, "{name}");
        }
        let name: Name = "a.example".parse().unwrap();
        assert_eq!(Pattern::zone_of(None, name.as_wire()), name);
        assert!(!"b.example".parse::<Pattern>().unwrap().matches_wire(name.as_wire()));
    }

    #[test]
    fn a_pattern_tells_the_words_that_it_captures_under() {
        let pattern: Pattern = "*.:a.x.:b.example.org/A".parse().unwrap();
        assert_eq!(pattern.words().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn a_suffix_that_no_pattern_can_stand_in_front_of_is_refused_with_what_to_write() {
        for text in ["eu.example", "eu.example.", ":tenant.example", r"\*.example"] {
            assert_eq!(Pattern::check_suffix(text), Ok(()), "{text}");
        }
        let error = |text: &str| Pattern::check_suffix(text).unwrap_err().to_string();
        assert!(error("*.example").contains("leave `*.` out"), "{}", error("*.example"));
        assert!(error("*").contains("leave `*.` out"));
        assert!(error("eu.example/A").contains("`www/A`"), "{}", error("eu.example/A"));
        assert!(error(".").contains("`eu.example`"), "{}", error("."));
        let long = format!(
            "{}.{}",
            "a".repeat(61),
            "b".repeat(63) + &format!(".{}", "c".repeat(63)).repeat(2)
        );
        assert_eq!(long.len() + 2, 255);
        assert_eq!(Pattern::check_suffix(&long), Err(PatternError::Name(NameError::TooLong)));
        assert!(Pattern::check_suffix("a..b").is_err());
    }

    #[test]
    fn what_is_no_pattern_is_refused_with_what_to_write() {
        let error = |text: &str| text.parse::<Pattern>().unwrap_err().to_string();
        assert!(error("a.*.example.org").contains(r"`\*`"), "{}", error("a.*.example.org"));
        assert!(error(":.example.org").contains(r"`\:`"));
        assert!(error(":a b.example.org").contains(":a b"));
        assert!(error(":a.:a.example.org").contains("`:a`"));
        assert!(error("example.org/A|BOGUS").contains("`BOGUS`"));
        assert!(error("example.org/").contains("type"));
        for text in ["", "a..b", ".a", "a..", &format!("{}.org", "a".repeat(64)), "/A", "*..org"] {
            assert!(matches!(text.parse::<Pattern>(), Err(PatternError::Name(_))), "{text}");
        }
        let long = ":x.".to_owned() + &format!("{}.", "a".repeat(63)).repeat(4);
        assert_eq!(long.parse::<Pattern>(), Err(PatternError::Name(NameError::TooLong)));
    }

    /// What the routes of `patterns` say about a name and type that no code answered for.
    fn claimed(patterns: &[&str], name: &str, qtype: Type) -> Claim {
        let route = |text: &&str| Route { pattern: text.parse().unwrap(), handler: () };
        let routes = Routes::new(patterns.iter().map(route).collect(), SEED);
        routes.claim(&LookupName::new(name.parse::<Name>().unwrap().as_wire(), SEED), qtype)
    }

    #[test]
    fn a_name_exists_that_a_route_has_for_another_type_and_so_do_those_above_it() {
        let patterns = [
            "www.a.example/A",
            "*.open.b.example/A",
            ":user.users.example",
            "x.:y.deep.example",
            "*.x.:y.low.example",
        ];
        let none = Claim::default();
        let own = |label| Claim { exists: true, is_own: true, label };
        let left = |label| Claim { exists: false, is_own: true, label };
        let above = |label| Claim { exists: true, is_own: false, label };
        for (name, qtype, claim) in [
            ("www.a.example", Type::A, own(0)),
            ("www.a.example", Type::TXT, own(0)),
            ("a.example", Type::A, above(0)),
            ("example", Type::A, above(0)),
            (".", Type::A, none),
            ("b.a.example", Type::A, none),
            ("x.www.a.example", Type::A, none),
            ("open.b.example", Type::A, own(0)),
            ("y.x.open.b.example", Type::TXT, own(2)),
            ("y.x.open.b.example", Type::A, left(2)),
            ("b.example", Type::A, above(0)),
            ("users.example", Type::A, own(0)),
            ("ann.users.example", Type::A, left(1)),
            ("x.ann.users.example", Type::A, none),
            ("deep.example", Type::A, own(0)),
            ("b.deep.example", Type::A, above(1)),
            ("x.b.deep.example", Type::A, left(2)),
            ("y.b.deep.example", Type::A, none),
            ("x.b.low.example", Type::A, above(2)),
            ("w.x.b.low.example", Type::A, left(3)),
            ("w.y.b.low.example", Type::A, none),
            ("other", Type::A, none),
        ] {
            assert_eq!(claimed(&patterns, name, qtype), claim, "{name} {qtype}");
        }
    }

    #[test]
    fn what_looks_at_all_names_has_none_of_them() {
        for pattern in ["*", "*/A", ":name", "*.:name/MX", "a.:name"] {
            for name in [".", "example", "a.example", "c.b.a.example"] {
                let claim = claimed(&[pattern], name, Type::TXT);
                assert_eq!(claim, Claim::default(), "{pattern} {name}");
            }
        }
        assert!(claimed(&["."], ".", Type::TXT).exists);
    }
}
