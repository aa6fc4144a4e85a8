//! Search for zones and records by patterns: `*` stands for any text, `?` for one character.

use super::api_error::{ApiError, reply_of};
use super::content::to_text;
use super::names::id_of;
use super::zone_object::is_shown;
use crate::admin::call::Call;
use crate::admin::reply::{Reply, json_reply, parameter};
use serde_json::{Value, json};
use zonda_wire::{Name, name};
use zonda_zone::{Zone, ZoneRecord};

/// Results, if a request does not say how many.
const RESULTS: usize = 100;
/// Most results of a request.
const RESULTS_MAX: usize = 100_000;
/// Octets of a pattern at most: some more than a name has.
const PATTERN_OCTETS_MAX: usize = 1024;
/// Records that a request looks at at most: some seconds.
const RECORDS_MAX: usize = 5_000_000;
/// Work of a request at most, in octets of text and steps along the pattern: some seconds. A text
/// costs its length, and that times the length of the pattern at worst.
const WORK_MAX: u64 = 4_000_000_000;
/// Octets of text in the results of a request at most.
const FOUND_OCTETS_MAX: usize = 64 << 20;

/// Searches zones, then the records of all zones.
pub fn answer(call: &Call<'_>) -> Reply {
    reply_of(|| {
        let pattern = parameter(call.query, "q").unwrap_or_default().to_ascii_lowercase();
        if pattern.is_empty() {
            return Err(ApiError::refused("Query q can't be blank"));
        }
        if pattern.len() > PATTERN_OCTETS_MAX {
            let text = format!("q is longer than {PATTERN_OCTETS_MAX} octets");
            return Err(ApiError::refused(text));
        }
        let most = parameter(call.query, "max").filter(|most| !most.is_empty());
        let most = most.map_or(Ok(RESULTS), |most| most.parse::<usize>());
        let most = most.map_err(|_| ApiError::refused("max must be a number"))?;
        if most == 0 {
            return Err(ApiError::refused("Maximum entries must be larger than 0"));
        }
        let kind = parameter(call.query, "object_type").unwrap_or_default();
        let (of_zones, of_records) = match &*kind {
            "" | "all" => (true, true),
            "zone" => (true, false),
            "record" => (false, true),
            "comment" => (false, false),
            _ => {
                return Err(ApiError::refused(
                    "object_type must be one of the following options: all, zone, record, comment",
                ));
            }
        };
        let mut search = Search { pattern, most: most.min(RESULTS_MAX), ..Search::default() };
        let state = call.control.state();
        let zones = || state.zone_set().zones().filter(|zone| is_shown(zone));
        if of_zones {
            zones().try_for_each(|zone| search.look_at_zone(&zone.entry.apex))?;
        }
        if of_records {
            for data in zones().filter_map(|zone| zone.data()) {
                search.look_at_records(data)?;
            }
        }
        Ok(json_reply(&Value::from(search.found)))
    })
}

/// A search under way.
#[derive(Default)]
struct Search {
    /// The pattern in lower case.
    pattern: String,
    /// Most results that are wanted.
    most: usize,
    /// Records that were looked at.
    seen: usize,
    /// Work that was done, in the unit of [`WORK_MAX`].
    work: u64,
    /// Octets of the texts in `found`.
    found_octets: usize,
    found: Vec<Value>,
}

impl Search {
    /// Whether there is room for another result.
    fn has_room(&self) -> bool {
        self.found.len() < self.most
    }

    /// Adds a zone whose name matches.
    fn look_at_zone(&mut self, apex: &Name) -> Result<(), ApiError> {
        let name = apex.to_lowercase().to_string();
        if !self.has_room() || !self.matches(&name) {
            return self.check_work();
        }
        let id = id_of(apex);
        let octets = name.len() + id.len();
        self.add(octets, json!({ "name": name, "object_type": "zone", "zone_id": id }))
    }

    /// Adds records whose name or data match.
    fn look_at_records(&mut self, data: &Zone) -> Result<(), ApiError> {
        for record in data.records() {
            if !self.has_room() {
                return Ok(());
            }
            self.seen += 1;
            if self.seen > RECORDS_MAX {
                return Err(ApiError::refused(format!(
                    "the search would look at over {RECORDS_MAX} records: search for zones by \
                     object_type=zone, and read those that are of interest"
                )));
            }
            self.look_at_record(data.apex_name(), &record)?;
        }
        Ok(())
    }

    /// Adds a record if its name or data match.
    fn look_at_record(&mut self, apex: &Name, record: &ZoneRecord<'_>) -> Result<(), ApiError> {
        let owner = name::Presentation(record.owner.as_wire()).to_string();
        let content = to_text(record.rtype, record.rdata);
        if !self.matches(&owner) && !self.matches(&content) {
            return self.check_work();
        }
        let (zone, id) = (apex.to_lowercase().to_string(), id_of(apex));
        let octets = owner.len() + content.len() + zone.len() + id.len();
        let found = json!({
            "content": content, "disabled": false, "name": owner, "object_type": "record",
            "ttl": record.ttl, "type": record.rtype.to_string(), "zone": zone, "zone_id": id,
        });
        self.add(octets, found)
    }

    /// Adds a result whose texts have so many octets.
    fn add(&mut self, octets: usize, found: Value) -> Result<(), ApiError> {
        self.found_octets += octets;
        if self.found_octets > FOUND_OCTETS_MAX {
            return Err(ApiError::refused(format!(
                "the search finds over {FOUND_OCTETS_MAX} octets: give a pattern that fits less, \
                 or a smaller max"
            )));
        }
        self.found.push(found);
        self.check_work()
    }

    /// Refuses the search once it has taken too much work.
    fn check_work(&self) -> Result<(), ApiError> {
        match self.work > WORK_MAX {
            true => Err(ApiError::refused(
                "the search takes too long: give a pattern with fewer asterisks, or search for \
                 zones by object_type=zone, and read those that are of interest",
            )),
            false => Ok(()),
        }
    }

    /// Whether a text matches, with or without a final dot.
    fn matches(&mut self, text: &str) -> bool {
        self.work += text.len() as u64; // usize is no more
        let without_dot = text.strip_suffix('.').filter(|rest| !rest.is_empty());
        let Self { pattern, work, .. } = self;
        let mut is_match = |text: &str| matches(pattern.as_bytes(), text.as_bytes(), work);
        is_match(text) || without_dot.is_some_and(is_match)
    }
}

/// Whether a whole text in ASCII letters of any case matches a pattern in lower case. Takes at most
/// the product of the two lengths, and adds to `steps` what it takes.
fn matches(pattern: &[u8], text: &[u8], steps: &mut u64) -> bool {
    let (mut at, mut in_text) = (0, 0);
    // Where the last asterisk stands, and how much of the text it takes so far.
    let mut asterisk = None;
    while let Some(octet) = text.get(in_text) {
        *steps += 1;
        match pattern.get(at) {
            Some(b'*') => {
                asterisk = Some((at, in_text));
                at += 1;
            }
            Some(wanted) if *wanted == b'?' || *wanted == octet.to_ascii_lowercase() => {
                (at, in_text) = (at + 1, in_text + 1);
            }
            _ => {
                let Some((place, taken)) = asterisk else { return false };
                asterisk = Some((place, taken + 1));
                (at, in_text) = (place + 1, taken + 1);
            }
        }
    }
    pattern.iter().skip(at).all(|rest| *rest == b'*')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use zonda_zone::file::{Options, read_text};
    use zonda_zone::{HashSeed, build};

    #[test]
    fn a_pattern_matches_a_whole_text_in_any_case() {
        for (pattern, text, expected) in [
            ("www.example.org", "WWW.example.org", true),
            ("www", "www.example.org", false),
            ("www*", "www.example.org", true),
            ("*org", "www.example.org", true),
            ("*exam*o?g", "www.example.org", true),
            ("*", "", true),
            ("**", "x", true),
            ("?", "", false),
            ("?", "xy", false),
            ("*a", "aab", false),
            ("*ab", "aaab", true),
            ("a*b*c", "axxbyybzzc", true),
            ("", "", true),
        ] {
            let is_match = matches(pattern.as_bytes(), text.as_bytes(), &mut 0);
            assert_eq!(is_match, expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_name_matches_with_and_without_its_final_dot() {
        for (pattern, expected) in
            [("example.org", true), ("example.org.", true), ("*.org", true), ("example", false)]
        {
            let mut search = Search { pattern: pattern.to_owned(), most: 1, ..Search::default() };
            assert_eq!(search.matches("example.org."), expected, "{pattern}");
        }
    }

    #[test]
    fn a_search_that_finds_too_many_octets_is_refused() {
        let apex: Name = "example.org".parse().unwrap();
        let text = "@ 60 SOA ns host 7 1 1 1 1\n@ 60 NS server\nn1 60 TXT \"x\"\nn2 60 TXT \"x\"\n";
        let (records, _) = read_text(text.as_bytes(), "text".as_ref(), &apex, &Options::default());
        let zone = build(&apex, &records, HashSeed::random()).unwrap();
        let search_with = |found_octets| {
            let pattern = "n?.example.org".to_owned();
            let mut search = Search { pattern, most: 10, found_octets, ..Search::default() };
            search.look_at_records(&zone).map(|()| search.found.len())
        };
        let each = "n1.example.org.".len() + "\"x\"".len() + 2 * "example.org.".len();
        assert_eq!(search_with(FOUND_OCTETS_MAX - 2 * each), Ok(2));
        let error = search_with(FOUND_OCTETS_MAX - 2 * each + 1).unwrap_err();
        assert!(error.text.contains("over 67108864 octets"), "{}", error.text);
    }

    #[test]
    fn the_work_of_a_search_is_bounded_by_the_steps_along_its_pattern() {
        let pattern = format!("*{}b", "a".repeat(200));
        let work = |pattern: &str| {
            let mut search = Search { pattern: pattern.to_owned(), ..Search::default() };
            assert!(!search.matches(&"a".repeat(10_000)));
            search.work
        };
        assert_eq!(work("b"), 10_001);
        let hard = work(&pattern);
        assert!((1_900_000..2_100_000).contains(&hard), "{hard}");
        let apex = "example.org".parse().unwrap();
        let mut search = Search { pattern, most: 1, work: WORK_MAX - 30, ..Search::default() };
        assert_eq!(search.look_at_zone(&"a.org".parse().unwrap()), Ok(()));
        assert!(search.look_at_zone(&apex).unwrap_err().text.contains("too long"));
    }
}
