//! Keys of sections that exist once, which server blocks may set differently.

use super::Importer;
use super::parser::Line;
use super::source::Kind;
use crate::document::{Effect, Value};
use crate::error::Place;
use std::time::Duration;

/// The section and name of a key.
pub type KeyName = (&'static str, &'static str);

/// A value of a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// A text, of which there can be one.
    Text(String),
    /// A list, to which each block adds.
    List(Vec<String>),
    /// A switch, which one block turns on for all.
    Flag(bool),
    /// A number, of which the smallest counts.
    Number(u64),
    /// A time, of which the shortest counts.
    Time(Duration),
}

impl Scalar {
    /// Returns the value as it is written.
    pub fn written(&self) -> Value {
        match self {
            Self::Text(text) => text.as_str().into(),
            Self::List(texts) => texts[..].into(),
            Self::Flag(flag) => (*flag).into(),
            Self::Number(number) => (*number).into(),
            Self::Time(time) => duration(*time).as_str().into(),
        }
    }
}

/// Returns a time as it is written: in seconds where that is exact.
pub fn duration(time: Duration) -> String {
    let millis = time.as_millis();
    match millis % 1000 {
        0 => format!("{}s", millis / 1000),
        _ => format!("{millis} ms"),
    }
}

/// A key, its value and the line that it comes from.
pub struct Setting {
    /// Section and name of the key.
    pub key: KeyName,
    /// Value of the key.
    pub value: Scalar,
    /// Line of the Corefile.
    pub origin: Place,
}

impl Importer<'_> {
    /// Sets a key of the whole server. Of several values, the smallest counts, or the first.
    pub(super) fn set(&mut self, key: KeyName, value: Scalar, line: &Line) {
        let origin = line.place().clone();
        let Some(at) = self.settings.iter().position(|it| it.key == key) else {
            return self.settings.push(Setting { key, value, origin });
        };
        let old = &mut self.settings[at];
        if old.value == value {
            return;
        }
        if let (Scalar::List(old), Scalar::List(new)) = (&mut old.value, &value) {
            let more: Vec<String> = new.iter().filter(|it| !old.contains(it)).cloned().collect();
            return old.extend(more);
        }
        let smaller = match (&old.value, &value) {
            (Scalar::Number(old), Scalar::Number(new)) => Some(new < old),
            (Scalar::Time(old), Scalar::Time(new)) => Some(new < old),
            _ => None,
        };
        let first = old.origin.clone();
        let (effect, why) = match smaller {
            Some(is_smaller) => {
                if is_smaller {
                    *old = Setting { key, value, origin };
                }
                let name = format!("{}.{}", key.0, key.1);
                let name = name.trim_start_matches('.');
                (
                    Effect::Differs,
                    format!(
                        "one {name} is for all blocks, as {first} has it too: \
                    the smaller one counts"
                    ),
                )
            }
            None => (Effect::Lost, format!("one value is for all blocks, which {first} has set")),
        };
        self.leave(line, effect, why);
    }

    /// Returns a number, or the nearest one that Zonda takes, which is reported.
    pub(super) fn within(&mut self, line: &Line, number: u64, range: (u64, u64)) -> u64 {
        let (least, most) = range;
        let taken = number.clamp(least, most);
        if taken != number {
            self.leave(line, Effect::Differs, format!("Zonda takes {least} to {most}"));
        }
        taken
    }

    /// Returns a time, or the nearest one that Zonda takes, which is reported.
    pub(super) fn time_within(
        &mut self,
        line: &Line,
        time: Duration,
        range: (Duration, Duration),
    ) -> Duration {
        let (least, most) = range;
        let taken = time.clamp(least, most);
        if taken != time {
            let why = format!("Zonda takes {} to {}", duration(least), duration(most));
            self.leave(line, Effect::Differs, why);
        }
        Duration::from_millis(u64::try_from(taken.as_millis()).unwrap_or(u64::MAX))
    }

    /// Has metrics under CoreDNS's names tell the zones of server blocks apart, if there are other
    /// zones than the root, which needs no key.
    fn label_zones(&mut self) {
        let key = ("metrics", "coredns-names");
        let Some(named) = self.settings.iter().find(|it| it.key == key) else { return };
        let origin = named.origin.clone();
        let mut zones: Vec<String> = Vec::new();
        for zone in self.blocks.iter().flat_map(super::Block::zones) {
            let zone = super::key::written(&zone);
            if !zones.contains(&zone) {
                zones.push(zone);
            }
        }
        if zones != ["."] {
            let key = ("metrics", "coredns-zones");
            self.settings.push(Setting { key, value: Scalar::List(zones), origin });
        }
    }

    /// Reports settings of some blocks that count for all of them.
    pub(super) fn whole_server_settings(&mut self) {
        const ALL: [&str; 2] = ["loadbalance", "nsid"];
        for plugin in ALL {
            let has_it = |it: &super::Block| it.plugins.contains_key(plugin);
            let is_missing = self.blocks.iter().any(|it| !it.sources.is_empty() && !has_it(it));
            let place = self.blocks.iter().find_map(|it| it.plugins.get(plugin)).cloned();
            if let (true, Some(place)) = (is_missing, place) {
                self.leave_at(&place, Effect::Differs, plugin, "it counts for all server blocks");
            }
        }
        self.label_zones();
        let forwards =
            |it: &&super::Block| it.sources.iter().any(|source| source.kind == Kind::Forward);
        let mut uncached = Vec::new();
        for block in self.blocks.iter().filter(forwards) {
            let is_forward = |it: &&super::source::Source| it.kind == Kind::Forward;
            let is_cached = block.plugins.contains_key("cache");
            let source = block.sources.iter().rfind(is_forward).filter(|_| !is_cached);
            uncached.extend(source.map(|source| (source.place.clone(), source.what.clone())));
        }
        for (place, what) in uncached {
            let why = "answers are cached for their TTL, as far as [cache] allows, although the \
                block has no `cache`";
            self.leave_at(&place, Effect::Differs, what, why);
        }
    }
}
