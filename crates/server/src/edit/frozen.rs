//! Zones that take no updates and edits until they are thawed.
//!
//! ```text
//! file    a line for each zone: its name, a space, the seconds since 1970 at which it was frozen
//! ```
//! The file `frozen` of the state directory has them, so that they are frozen after a restart, too.
//! While a successor takes over, the file is the successor's: nothing is frozen or thawed here, so
//! that no zone is frozen in one of the two processes alone.

use super::EditError;
use crate::atomic_file;
use crate::load::unix_secs;
use crate::state_directory;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use zonda_config::Config;
use zonda_wire::Name;

/// The name of the file in the state directory.
const FILE: &str = "frozen";

/// The zones that take no updates and edits for now. The publisher owns them.
#[derive(Default)]
pub struct FrozenZones {
    /// The seconds since 1970 at which each was frozen, by its name in lower case.
    moments: Arc<HashMap<Name, u64>>,
    /// The file that has them; none before the configuration has writable zones, or where there is
    /// no state directory.
    file: Option<PathBuf>,
    /// Whether the file is there and cannot be read: any zone may be frozen then.
    is_unreadable: bool,
    /// Whether a successor has the file.
    is_handed_over: bool,
}

/// Why a zone is not frozen or thawed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FreezeError {
    /// A successor is taking over.
    HandedOver,
    /// The file cannot be read or written, as this text says.
    NotKept(String),
}

impl FrozenZones {
    /// Reads the file if the configuration has writable zones and it was not read yet. Lines that
    /// are not as they should be are told in the log, and left out.
    pub fn open(&mut self, config: &Config) {
        let is_needed = config.zones.iter().any(|zone| zone.terms.writable.is_some());
        if !is_needed || self.file.is_some() {
            return;
        }
        let Ok(directory) = state_directory::path(config) else { return }; // the journal tells why
        let file = directory.join(FILE);
        let path = file.display().to_string();
        match fs::read_to_string(&file) {
            Ok(text) => {
                let (moments, wrong) = parse(&text);
                for line in wrong {
                    tracing::error!(path, line, "a line of the frozen zones cannot be read");
                }
                if !moments.is_empty() {
                    let zones = moments.len();
                    tracing::warn!(zones, "zones are frozen since before the start");
                }
                self.moments = Arc::new(moments);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                tracing::error!(
                    path,
                    %error,
                    "frozen zones cannot be read: no zone takes updates and edits until a reload \
                     reads them"
                );
                self.is_unreadable = true;
                return;
            }
        }
        (self.file, self.is_unreadable) = (Some(file), false);
    }

    /// Leaves the file to a successor, which reads it.
    pub fn hand_over(&mut self) {
        self.is_handed_over = true;
    }

    /// Reads the file again, as the successor has gone away: it may have written it. Where it
    /// cannot be read, the zones that were frozen are.
    pub fn take_back(&mut self, config: &Config) {
        if std::mem::take(&mut self.is_handed_over) && self.file.take().is_some() {
            let former = std::mem::take(&mut self.moments);
            self.open(config);
            if self.is_unreadable {
                self.moments = former;
            }
        }
    }

    /// Fails for a zone that is frozen; its name is in lower case.
    ///
    /// # Errors
    /// When the zone takes no updates and edits.
    pub fn check(&self, zone: &Name) -> Result<(), EditError> {
        match self.is_unreadable || self.moments.contains_key(zone) {
            true => Err(EditError::Frozen(zone.clone())),
            false => Ok(()),
        }
    }

    /// The zones by their names in lower case, and the seconds since 1970 at which each was frozen.
    pub fn moments(&self) -> Arc<HashMap<Name, u64>> {
        Arc::clone(&self.moments)
    }

    /// Has a zone, whose name is in lower case, take no updates and edits, or take them again;
    /// returns whether that is new.
    ///
    /// # Errors
    /// When the file cannot be written, or a successor has it; nothing has changed then.
    pub fn set(&mut self, zone: &Name, is_frozen: bool) -> Result<bool, FreezeError> {
        if self.is_handed_over {
            return Err(FreezeError::HandedOver);
        }
        let not_kept = |text: &str| Err(FreezeError::NotKept(text.to_owned()));
        if self.is_unreadable {
            return not_kept("the file of frozen zones cannot be read: mend it, and reload");
        }
        if self.moments.contains_key(zone) == is_frozen {
            return Ok(false);
        }
        let mut moments = HashMap::clone(&self.moments);
        match is_frozen {
            true => _ = moments.insert(zone.clone(), unix_secs().into()),
            false => _ = moments.remove(zone),
        }
        let Some(file) = &self.file else {
            return not_kept("there is no state directory to keep it in: name one with `state`");
        };
        atomic_file::write(file, text(&moments).as_bytes()).map_err(|error| {
            FreezeError::NotKept(format!("{} cannot be written: {error}", file.display()))
        })?;
        self.moments = Arc::new(moments);
        Ok(true)
    }
}

/// The zones of a file, and the lines that are not as they should be.
fn parse(text: &str) -> (HashMap<Name, u64>, Vec<&str>) {
    let (mut moments, mut wrong) = (HashMap::new(), Vec::new());
    for line in text.lines() {
        let parts = line.rsplit_once(' ');
        let parsed = parts.and_then(|(name, secs)| {
            Some((name.parse::<Name>().ok()?.to_lowercase(), secs.parse::<u64>().ok()?))
        });
        match parsed {
            Some((name, secs)) => _ = moments.insert(name, secs),
            None => wrong.push(line),
        }
    }
    (moments, wrong)
}

/// The text of the file with these zones.
fn text(moments: &HashMap<Name, u64>) -> String {
    let mut lines: Vec<(String, u64)> =
        moments.iter().map(|(name, secs)| (name.to_string(), *secs)).collect();
    lines.sort_unstable();
    lines.iter().fold(String::new(), |mut text, (name, secs)| {
        let _ = writeln!(text, "{name} {secs}"); // a string takes everything
        text
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_wrong_lines_are_told() {
        let names = ["example.org", "a\\ b.test"].map(|name| name.parse::<Name>().unwrap());
        let moments: HashMap<Name, u64> = names.into_iter().zip([1_790_000_000, 7]).collect();
        assert_eq!(parse(&text(&moments)), (moments, Vec::new()));
        let (read, wrong) = parse("example.org. 5\nexample.net.\nexample.com. soon\n");
        assert_eq!((read.len(), wrong), (1, vec!["example.net.", "example.com. soon"]));
    }

    #[test]
    fn no_zone_is_edited_while_the_file_cannot_be_read() {
        let zone: Name = "example.org".parse().unwrap();
        let mut frozen = FrozenZones { is_unreadable: true, ..FrozenZones::default() };
        assert!(frozen.check(&zone).is_err());
        assert!(frozen.set(&zone, true).is_err());
    }
}
