//! What to ask about a zone: names that exist, beside, below and above them, and ways of asking.

use std::collections::BTreeSet;

use super::{Random, Zone};
use crate::client::{Question, name_bytes};
use crate::rdata::type_number;

/// Types that are asked at every name that exists, whether they are there or not.
const TYPES: &[&str] = &["A", "NS", "SOA", "TXT", "MX", "CNAME", "DS", "ANY"];
/// Types of which one is asked at every name.
const RARE_TYPES: &[&str] =
    &["AAAA", "DNAME", "PTR", "SRV", "RRSIG", "NSEC", "DNSKEY", "TYPE65280", "HTTPS", "NSEC3"];
/// Buffer sizes: the least, the recommended, a generous one.
const SIZES: &[u16] = &[512, 1232, 4096];
/// Bytes of the longest name (rfc1035#2.3.4).
const NAME_BYTES_MAX: usize = 255;

/// How many types are asked at a name that owns nothing.
const TYPES_BESIDE: usize = 2;

/// Questions about a zone, in an order that depends on the seed alone.
pub fn questions(zone: &Zone, random: &mut Random) -> Vec<Question> {
    let mut questions = Vec::new();
    for name in names(zone) {
        let mut types: BTreeSet<&str> = [*random.pick(RARE_TYPES)].into();
        match zone.names.iter().find(|(owner, _)| owner.eq_ignore_ascii_case(&name)) {
            Some((_, own)) => types.extend(TYPES.iter().chain(own)),
            None => types.extend((0..TYPES_BESIDE).map(|_| *random.pick(TYPES))),
        }
        questions.extend(types.into_iter().map(|t| question(&name, t, random)));
    }
    questions
}

/// Names worth asking about: owners, the names above them, and names beside and below all these.
fn names(zone: &Zone) -> BTreeSet<String> {
    let mut names = BTreeSet::from([parent(&zone.name)]);
    for (owner, _) in &zone.names {
        for name in [owner.as_str()].into_iter().chain(above(owner, &zone.name)) {
            let dotted = if name == "." { "" } else { name };
            names.insert(name.to_owned());
            names.extend(["0", "nx", "*", "nx.nx"].map(|beside| format!("{beside}.{dotted}")));
        }
    }
    names.retain(|name| name_bytes(name).len() <= NAME_BYTES_MAX);
    names
}

/// Returns the name above the apex, which is not the zone's to answer.
fn parent(apex: &str) -> String {
    let (_, rest) = apex.split_once('.').unwrap_or_default();
    if rest.is_empty() { ".".to_owned() } else { rest.to_owned() }
}

/// Returns the names above a name, up to and with the apex.
fn above<'a>(name: &'a str, apex: &'a str) -> impl Iterator<Item = &'a str> {
    let unescaped = |at: usize| at == 0 || name.as_bytes()[at - 1] != b'\\';
    let cuts = name.match_indices('.').filter(move |(at, _)| unescaped(*at));
    cuts.map(move |(at, _)| &name[at + 1..])
        .take_while(move |rest| rest.len() >= apex.len() && !rest.is_empty())
}

/// Returns the question in one of the ways of asking, chosen by chance.
fn question(name: &str, record_type: &str, random: &mut Random) -> Question {
    let mixed = random.one_in(4);
    let name: String = match mixed {
        // rfc1035 escapes hold no letters, so any letter may change its case (0x20).
        true => name.chars().map(|c| if random.one_in(2) { flip(c) } else { c }).collect(),
        false => name.to_owned(),
    };
    let question = Question { record_type: type_number(record_type), ..Question::new(&name, "A") };
    let question = match random.below(8) {
        0 => question,
        way => question.edns(SIZES[way % SIZES.len()]),
    };
    let question =
        if question.udp_size.is_some() && random.one_in(2) { question.dnssec() } else { question };
    if random.one_in(16) { question.over_tcp() } else { question }
}

fn flip(c: char) -> char {
    if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_above_end_at_the_apex() {
        let found: Vec<&str> = above("a.b\\.c.z.example.", "z.example.").collect();
        assert_eq!(found, ["b\\.c.z.example.", "z.example."]);
        assert_eq!(above("com.", ".").count(), 0);
    }
}
