//! What an operator has said about members of pools, in place of their probes.
//!
//! All of it is in one file of the state directory, which is replaced at once, so that it holds
//! after a restart, a reload and a crash.

use crate::atomic_file;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The name of the file.
pub const FILE: &str = "pools.json";
/// Actions that are remembered; the oldest goes first.
const ACTIONS_MAX: usize = 1000;
/// Octets of the file that are read: a hundred times what the actions and overrides of 10,000
/// members take.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// What an operator says a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForcedState {
    /// The member gets no more clients, as it is to be taken away.
    Drained,
    /// The member counts as up.
    Up,
    /// The member counts as down.
    Down,
    /// The member answers only when no other member is up.
    Held,
}

impl ForcedState {
    /// All states, with their words in requests and replies.
    const WORDS: [(&'static str, Self); 4] =
        [("drain", Self::Drained), ("up", Self::Up), ("down", Self::Down), ("hold", Self::Held)];

    /// The state of a word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(known, _)| *known == word).map(|(_, state)| *state)
    }

    /// The word for the state.
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, state)| *state == self).map_or("", |(word, _)| word)
    }

    /// Whether the member counts as up, which its probes say that it is or is not.
    pub fn counts_as_up(self, is_healthy: bool) -> bool {
        match self {
            Self::Up => true,
            Self::Drained | Self::Down => false,
            Self::Held => is_healthy,
        }
    }
}

/// What an operator has said about a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// What the member is.
    pub state: ForcedState,
    /// When that was said, seconds since 1970.
    pub since: u64,
    /// Until when it holds, seconds since 1970; none: until it is taken back.
    pub until: Option<u64>,
    /// Why, in the operator's words.
    pub reason: String,
    /// By which way it was said.
    pub by: String,
}

/// A member by the names of its pool and its own.
pub type MemberName = (String, String);

/// All that operators have said, and their latest actions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    members: BTreeMap<MemberName, Override>,
    /// The actions, the oldest first, as they are shown.
    actions: VecDeque<Value>,
}

impl Overrides {
    /// What was said about a member that still holds at a time in seconds since 1970.
    pub fn of(&self, (pool, member): (&str, &str), now: u64) -> Option<&Override> {
        let found = self.members.get(&(pool.to_owned(), member.to_owned()))?;
        found.until.is_none_or(|until| now < until).then_some(found)
    }

    /// Notes what an operator says about members, or takes back what was said.
    pub fn set(&mut self, members: &[MemberName], said: Option<&Override>, action: Value) {
        for member in members {
            match said {
                Some(said) => drop(self.members.insert(member.clone(), said.clone())),
                None => drop(self.members.remove(member)),
            }
        }
        self.actions.push_back(action);
        while self.actions.len() > ACTIONS_MAX {
            self.actions.pop_front();
        }
    }

    /// The time, in seconds since 1970, at which the next override ends.
    pub fn next_end(&self, now: u64) -> Option<u64> {
        self.members.values().filter_map(|it| it.until).filter(|until| *until > now).min()
    }

    /// The latest actions, the oldest first.
    pub fn actions(&self) -> impl Iterator<Item = &Value> {
        self.actions.iter()
    }

    /// Reads the file of a state directory; nothing is said if it is not there.
    ///
    /// # Errors
    /// When it cannot be read, or is not such a file.
    pub fn read(directory: &Path) -> io::Result<Self> {
        let path = directory.join(FILE);
        match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error),
            Ok(found) if found.len() > FILE_BYTES_MAX => return Err(wrong()),
            Ok(_) => {}
        }
        Self::from_json(&serde_json::from_slice(&fs::read(path)?)?).ok_or_else(wrong)
    }

    /// Replaces the file of a state directory at once.
    ///
    /// # Errors
    /// When it cannot be written; the former one is there still.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        let text = format!("{:#}\n", self.to_json());
        atomic_file::write(&directory.join(FILE), text.as_bytes())
    }

    /// The content of the file.
    fn to_json(&self) -> Value {
        let members = self.members.iter().map(|((pool, member), said)| {
            json!({
                "pool": pool,
                "member": member,
                "state": said.state.word(),
                "since": said.since,
                "until": said.until,
                "reason": said.reason,
                "by": said.by,
            })
        });
        json!({ "overrides": members.collect::<Vec<_>>(), "actions": self.actions })
    }

    /// What the content of a file says; none if it is wrong.
    fn from_json(content: &Value) -> Option<Self> {
        let mut overrides = Self::default();
        for one in content["overrides"].as_array()? {
            let text = |key: &str| one[key].as_str().map(str::to_owned);
            let said = Override {
                state: ForcedState::of_word(one["state"].as_str()?)?,
                since: one["since"].as_u64()?,
                until: one["until"].as_u64(),
                reason: text("reason")?,
                by: text("by")?,
            };
            overrides.members.insert((text("pool")?, text("member")?), said);
        }
        let actions = content["actions"].as_array()?;
        overrides.actions = actions.iter().rev().take(ACTIONS_MAX).rev().cloned().collect();
        Some(overrides)
    }
}

/// The error of a file with other content.
fn wrong() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it is no file of overrides")
}

/// The seconds since 1970.
pub fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Whether a text matches a pattern in which `*` stands for any characters and `?` for one.
pub fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut from) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while from < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(one) if *one == '?' || *one == text[from] => (at, from) = (at + 1, from + 1),
            // The last star takes one character more.
            _ => match star {
                Some((star_at, taken)) => {
                    star = Some((star_at, taken + 1));
                    (at, from) = (star_at + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|one| *one == '*')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn said(state: ForcedState, until: Option<u64>) -> Override {
        Override { state, since: 5, until, reason: "moved".into(), by: "socket".into() }
    }

    fn member(pool: &str, name: &str) -> MemberName {
        (pool.to_owned(), name.to_owned())
    }

    #[test]
    fn an_override_holds_until_its_end_or_until_it_is_taken_back() {
        let mut overrides = Overrides::default();
        let both = [member("web", "192.0.2.1"), member("web", "192.0.2.2")];
        overrides.set(&both, Some(&said(ForcedState::Drained, Some(100))), json!(1));
        let of = |overrides: &Overrides, now| overrides.of(("web", "192.0.2.1"), now).cloned();
        assert_eq!(of(&overrides, 99).unwrap().state, ForcedState::Drained);
        assert_eq!(of(&overrides, 100), None);
        assert_eq!((overrides.next_end(50), overrides.next_end(100)), (Some(100), None));
        overrides.set(&both[..1], None, json!(2));
        assert_eq!(of(&overrides, 50), None);
        assert!(overrides.of(("web", "192.0.2.2"), 50).is_some());
    }

    #[test]
    fn a_file_that_is_read_says_what_was_written_and_a_broken_one_is_refused() {
        let directory = std::env::temp_dir().join(format!("zonda-said-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        assert_eq!(Overrides::read(&directory).unwrap(), Overrides::default());
        let mut overrides = Overrides::default();
        for number in 0..1100 {
            let one = [member("web", &number.to_string())];
            overrides.set(&one, Some(&said(ForcedState::Down, None)), json!({ "at": number }));
        }
        overrides.write(&directory).unwrap();
        let read = Overrides::read(&directory).unwrap();
        assert_eq!(read, overrides);
        assert_eq!((read.members.len(), read.actions.len()), (1100, 1000));
        for broken in ["", "{}", "{\"overrides\": [{}], \"actions\": []}", "[1"] {
            fs::write(directory.join(FILE), broken).unwrap();
            assert!(Overrides::read(&directory).is_err(), "{broken:?}");
        }
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn patterns_stand_for_members() {
        for (pattern, text, expected) in [
            ("web/192.0.2.1", "web/192.0.2.1", true),
            ("web/*", "web/192.0.2.1", true),
            ("*/192.0.2.?", "web/192.0.2.1", true),
            ("*/192.0.2.?", "web/192.0.2.10", false),
            ("*", "", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("web", "web/1", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
