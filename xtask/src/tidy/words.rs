//! Plain English in comments and pages, nouns for types.
//!
//! Held here: the doc of a field or variant makes sense without its neighbours (three words at
//! least, none of them a pronoun at the beginning); comments and pages name an actor (the client,
//! the upstream, the worker) where a pronoun would stand for one, and the thing where `we` or `our`
//! would; no doc begins by pointing to the one above it ("its …", "the same with …"); a type is not
//! named by a participle that a reader would have to translate. Not held: whether a text is right,
//! and comments in JavaScript and Python.

use super::{Finding, Tree};

/// The fewest words that say what a field or variant is.
const DOC_WORDS_MIN: usize = 3;

/// First words that point to the doc of a neighbour.
const PRONOUNS: &[&str] = &["he", "it", "its", "such", "their", "them", "they", "those"];

/// Beginnings of several words that point to the doc of a neighbour. "The same zone" does not.
const BACK_REFERENCES: &[&str] = &[
    "as above",
    "as before",
    "how many there are",
    "like above",
    "the same as",
    "the same by",
    "the same for",
    "the same in",
    "the same of",
    "the same over",
    "the same to",
    "the same where",
    "the same while",
    "the same with",
    "the same without",
    "the same, ",
];

/// A word that is kept out of texts.
struct Ban {
    word: &'static str,
    /// Whether pages may use it: they speak to people and of people.
    pages_may: bool,
    /// What to write in its place.
    instead: &'static str,
}

/// Words that hide the actor, and images that stand for a mechanism.
const BANS: &[Ban] = &[
    Ban { word: "anybody", pages_may: false, instead: ACTOR },
    Ban { word: "everybody", pages_may: false, instead: ACTOR },
    Ban { word: "nobody", pages_may: false, instead: ACTOR },
    Ban { word: "somebody", pages_may: false, instead: ACTOR },
    Ban { word: "someone", pages_may: true, instead: ACTOR },
    Ban { word: "who", pages_may: true, instead: ACTOR },
    Ban { word: "whoever", pages_may: false, instead: ACTOR },
    Ban { word: "whom", pages_may: true, instead: ACTOR },
    Ban { word: "he", pages_may: false, instead: ACTOR },
    Ban { word: "him", pages_may: false, instead: ACTOR },
    Ban { word: "his", pages_may: false, instead: ACTOR },
    Ban { word: "she", pages_may: false, instead: ACTOR },
    Ban { word: "we", pages_may: false, instead: THING },
    Ban { word: "our", pages_may: false, instead: THING },
    Ban { word: "ours", pages_may: false, instead: THING },
    Ban { word: "ourselves", pages_may: false, instead: THING },
    Ban { word: "us", pages_may: false, instead: THING },
    Ban { word: "others", pages_may: true, instead: "name them: other zones, other threads" },
    Ban { word: "acquaintance", pages_may: false, instead: "say what is added to what" },
    Ban { word: "farewell", pages_may: false, instead: "say what is sent before the end" },
    Ban { word: "heed", pages_may: false, instead: "say what is done with it" },
    Ban { word: "heeds", pages_may: false, instead: "say what is done with it" },
    Ban { word: "leavings", pages_may: false, instead: "say what is left of what" },
    Ban { word: "rim", pages_may: false, instead: "the I/O runtime" },
];

/// What to write for a pronoun that stands for an actor.
const ACTOR: &str = "name the actor: the client, the upstream, the worker, the administrator";

/// What to write for a pronoun of the authors.
const THING: &str = "name what is meant: the server, this crate, the test";

/// Participles and other words that are no nouns of the field, as names of types.
const BAD_TYPES: &[&str] = &[
    "Absent",
    "Allocated",
    "Answered",
    "Answering",
    "Arrived",
    "Asked",
    "Asking",
    "Begun",
    "Below",
    "Beside",
    "Bound",
    "Caught",
    "Certified",
    "Compacted",
    "Copied",
    "Delayed",
    "Dialed",
    "Draft",
    "Due",
    "Ended",
    "Exceeded",
    "Fetched",
    "Finished",
    "Following",
    "Found",
    "Gathering",
    "Given",
    "Inherited",
    "Keeps",
    "Kept",
    "Keyed",
    "Known",
    "Lasting",
    "Later",
    "Left",
    "LeftOut",
    "Listening",
    "Loaded",
    "Loading",
    "Located",
    "Measured",
    "Merged",
    "Metered",
    "Missing",
    "Moody",
    "Named",
    "NotRecords",
    "Overtaken",
    "Placed",
    "Prepared",
    "Ranked",
    "Reading",
    "Received",
    "Receiving",
    "Refused",
    "Rim",
    "Saving",
    "Seen",
    "Sent",
    "Settle",
    "Shown",
    "Skipped",
    "Soaked",
    "Standing",
    "Started",
    "Supplied",
    "Switched",
    "Taken",
    "Takes",
    "Then",
    "There",
    "Told",
    "Unfit",
    "Unkept",
    "Unsent",
    "Waiting",
    "Wanted",
    "Who",
    "Writing",
    "Written",
    "Wrong",
];

/// Looks at the comments and types of every Rust file, and at the text of every page.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.ending(".rs") {
        check_comments(path, text, &mut findings);
        check_docs(path, text, &mut findings);
        check_types(path, text, &mut findings);
    }
    for (path, text) in tree.ending(".md").filter(|(path, _)| is_page(path)) {
        check_page(path, text, &mut findings);
    }
    findings
}

/// Whether a Markdown file is written for users.
fn is_page(path: &str) -> bool {
    path.starts_with("docs/") || path.ends_with("README.md")
}

/// Finds banned words in the comments of a Rust file.
fn check_comments(path: &str, text: &str, findings: &mut Vec<Finding>) {
    for (index, line) in text.lines().enumerate() {
        let Some(comment) = comment_of(line) else { continue };
        for ban in banned(comment) {
            findings.push(Finding::new(path, index + 1, complaint(ban)));
        }
    }
}

/// Returns the comment of a line, whether it stands alone or behind code.
fn comment_of(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("//").or_else(|| {
        // Slashes in a string of the code are no comment: the quotes before it are not in pairs.
        let (code, comment) = line.rsplit_once(" // ")?;
        code.matches('"').count().is_multiple_of(2).then_some(comment)
    })
}

/// Finds banned words in a page, not those in its blocks of code.
fn check_page(path: &str, text: &str, findings: &mut Vec<Finding>) {
    let mut is_code = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if is_code {
            continue;
        }
        for ban in banned(line).filter(|ban| !ban.pages_may) {
            findings.push(Finding::new(path, index + 1, complaint(ban)));
        }
    }
}

fn complaint(ban: &Ban) -> String {
    format!("\"{}\": {}", ban.word, ban.instead)
}

/// Returns the bans that a line breaks outside of its `code`.
fn banned(line: &str) -> impl Iterator<Item = &'static Ban> {
    let prose: Vec<String> = line
        .split('`')
        .step_by(2)
        .flat_map(|text| text.split(|c: char| !c.is_alphanumeric() && !"-_'".contains(c)))
        .map(|word| word.trim_end_matches("'s").to_lowercase())
        .collect();
    BANS.iter().filter(move |ban| prose.iter().any(|word| word == ban.word))
}

/// Finds docs that point to a neighbour, and those of fields and variants that say too little.
fn check_docs(path: &str, text: &str, findings: &mut Vec<Finding>) {
    let mut doc = String::new();
    let mut begin = 0;
    for (index, line) in text.lines().map(str::trim).enumerate() {
        if let Some(part) = line.strip_prefix("///") {
            if doc.is_empty() {
                begin = index + 1;
            }
            doc.push_str(part);
            continue;
        }
        if line.starts_with("#[") && !doc.is_empty() {
            continue;
        }
        let words: Vec<&str> = doc.split_whitespace().collect();
        if !words.is_empty() && words.len() < DOC_WORDS_MIN && is_field_or_variant(line) {
            let what = format!("a doc of {} words: say what it is alone", words.len());
            findings.push(Finding::new(path, begin, what));
        } else if let Some(first) = back_reference(&words) {
            let what = format!("a doc that begins with \"{first}\": name what is meant");
            findings.push(Finding::new(path, begin, what));
        }
        doc.clear();
    }
}

/// Returns the beginning of a doc that points to a neighbour.
fn back_reference(words: &[&str]) -> Option<String> {
    let doc = words.join(" ").to_lowercase();
    let first = words.first()?.to_lowercase();
    let phrase = BACK_REFERENCES.iter().find(|phrase| {
        let rest = doc.strip_prefix(**phrase);
        rest.is_some_and(|rest| phrase.ends_with(' ') || !rest.starts_with(char::is_alphanumeric))
    });
    match phrase {
        Some(phrase) => Some(phrase.trim_end_matches([',', ' ']).to_owned()),
        None => PRONOUNS.contains(&first.as_str()).then_some(first),
    }
}

/// Whether a line begins a field (`name: Type`) or a variant (`Name`, `Name(…)`, `Name { … }`).
fn is_field_or_variant(line: &str) -> bool {
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(')').map_or("", |(_, rest)| rest),
        Some(rest) if rest.starts_with(' ') => rest,
        _ => line,
    };
    let line = line.trim_start();
    let end = line.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    let is_field = rest.starts_with(": ");
    let is_variant = name.starts_with(|c: char| c.is_ascii_uppercase())
        && (rest.is_empty() || rest.starts_with([',', '(', ' ']))
        && !rest.starts_with(" =>");
    !name.is_empty() && (is_field || is_variant)
}

/// Finds types that are named by a participle.
fn check_types(path: &str, text: &str, findings: &mut Vec<Finding>) {
    for (index, line) in text.lines().enumerate() {
        let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub"));
        let declares = words.next().is_some_and(|word| KINDS.contains(&word));
        let name = words.next().unwrap_or_default();
        let name = name.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        if declares && BAD_TYPES.contains(&name) {
            let what = format!("type {name}: name it by a noun, as `HandlerReply` is");
            findings.push(Finding::new(path, index + 1, what));
        }
    }
}

/// Keywords that declare a type.
const KINDS: &[&str] = &["struct", "enum", "type", "trait", "union"];

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the findings for a file of that path.
    fn complaints(path: &str, text: &str) -> Vec<String> {
        check(&Tree::of(&[(path, text)])).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_field_or_variant_whose_doc_needs_its_neighbour_is_found() {
        let bad = "struct A {\n    /// Where.\n    pub at: u8,\n    /// The place.\n    \
                   #[x]\n    pub(super) to: u8,\n    /// Its length in octets.\n    len: u8,\n}\n\
                   enum B {\n    /// Two.\n    C(u8),\n    /// It is not asked.\n    Down,\n}\n";
        assert_eq!(
            complaints("crates/wire/src/a.rs", bad),
            [
                "crates/wire/src/a.rs:2: a doc of 1 words: say what it is alone",
                "crates/wire/src/a.rs:4: a doc of 2 words: say what it is alone",
                "crates/wire/src/a.rs:7: a doc that begins with \"its\": name what is meant",
                "crates/wire/src/a.rs:11: a doc of 1 words: say what it is alone",
                "crates/wire/src/a.rs:13: a doc that begins with \"it\": name what is meant",
            ]
        );
        let good = "struct A {\n    /// Length of the name\n    /// in octets.\n    len: u8,\n}\n\
                    /// Two octets.\nfn b() {}\n/// A message.\npub struct C;\n";
        assert_eq!(complaints("crates/wire/src/a.rs", good), [""; 0]);
    }

    #[test]
    fn a_pronoun_for_an_actor_is_found_in_comments_but_not_in_code() {
        let bad = "// Nobody asks.\nfn a() {} // who\n/// The client `who` asks, he waits.\n\
                   const WHO: &str = \"nobody\";\n//! The rim's thread.\n//! The rim\n\
                   const URL: &str = \"https:// who\";\n";
        assert_eq!(
            complaints("crates/wire/src/a.rs", bad)
                .iter()
                .map(|line| line.rsplit_once(": name").map_or(&line[..], |(head, _)| head))
                .collect::<Vec<_>>(),
            [
                "crates/wire/src/a.rs:1: \"nobody\"",
                "crates/wire/src/a.rs:2: \"who\"",
                "crates/wire/src/a.rs:3: \"he\"",
                "crates/wire/src/a.rs:5: \"rim\": the I/O runtime",
                "crates/wire/src/a.rs:6: \"rim\": the I/O runtime",
            ]
        );
    }

    #[test]
    fn we_and_others_are_found_where_a_thing_has_a_name() {
        let bad = "//! Our cookie, which we send.\n/// The others.\nfn a() {} // 10 `us` for us\n";
        let found = complaints("crates/wire/src/a.rs", bad);
        let words: Vec<&str> = found.iter().filter_map(|line| line.split('"').nth(1)).collect();
        assert_eq!(words, ["we", "our", "others", "us"]);
        assert_eq!(complaints("docs/a.md", "The others wait.\n"), [""; 0]);
        assert_eq!(complaints("docs/a.md", "Our server.\n").len(), 1);
    }

    #[test]
    fn a_doc_that_points_to_the_one_above_it_is_found_on_any_item() {
        let bad = "/// Its name.\nfn a() {}\n/// The same with settings.\nfn b() {}\n/// The same, \
                   for\n/// two.\nstruct C;\n/// As before, but late.\nfn d() {}\n";
        let found = complaints("crates/wire/src/a.rs", bad);
        let words: Vec<&str> = found.iter().filter_map(|line| line.split('"').nth(1)).collect();
        assert_eq!(words, ["its", "the same with", "the same", "as before"]);
        let good = "/// The same zone in less memory.\nfn a() {}\n/// The same form.\nfn b() {}\n";
        assert_eq!(complaints("crates/wire/src/a.rs", good), [""; 0]);
    }

    #[test]
    fn a_page_may_speak_of_people_but_names_actors() {
        let page = "People who run DNS.\n\n```sh\nid nobody\n```\nRun as `nobody`: whoever asks.\n";
        let found = complaints("docs/a.md", page);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("docs/a.md:6: \"whoever\""), "{found:?}");
        assert_eq!(complaints("CHANGELOG.md", "whoever"), [""; 0]);
    }

    #[test]
    fn a_type_named_by_a_participle_is_found() {
        let bad = "pub struct Asked<'a> {}\nenum Told {}\npub(crate) type Given = u8;\n";
        let good = "struct AskedZone;\nlet Told = 1;\n// struct Told\n";
        assert_eq!(complaints("crates/wire/src/a.rs", bad).len(), 3);
        assert_eq!(complaints("crates/wire/src/a.rs", good), [""; 0]);
    }
}
