//! States of files, by which a change is noticed.

use std::fs::{self, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use zonda_netio::FileStatus;

/// The kernel's clock for files may lag behind by a tick, so that two writes in a row can carry the
/// same time; a file that is as young as that when it is read is read once more.
const TICK: Duration = Duration::from_millis(20);

/// A state of a file: a hash of what differs when the file was written, replaced, or made readable.
/// Another state has the same hash by chance once in 10¹⁹ times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp(NonZero<u64>);

impl Stamp {
    /// The state of a file that cannot be looked at.
    const MISSING: Self = Self(NonZero::<u64>::MIN);
    /// The stamp of a file that changed, or may have changed, while it was read: no file ever has
    /// it.
    const UNCERTAIN: Self = Self(NonZero::<u64>::MAX);

    /// The present state of a file, to be compared with a former one.
    fn now(status: Option<&FileStatus>) -> Self {
        let Some(status) = status else { return Self::MISSING };
        let mut hasher = DefaultHasher::new();
        status.hash(&mut hasher);
        // Neither of the constants.
        Self(NonZero::new((hasher.finish() & !1).max(2)).unwrap_or(NonZero::<u64>::MIN))
    }

    /// The state of a file of which reading began at `started`.
    pub fn of(path: &Path, started: SystemTime) -> Self {
        Self::of_read(fs::metadata(path).ok().as_ref(), started)
    }

    /// Returns the stamp of a file that was read.
    pub fn of_read(metadata: Option<&Metadata>, started: SystemTime) -> Self {
        let Some(status) = metadata.map(FileStatus::of) else { return Self::MISSING };
        let changed = time(status.changed);
        // A time in the future comes from elsewhere and says nothing.
        match started - TICK <= changed && changed <= SystemTime::now() {
            true => Self::UNCERTAIN,
            false => Self::now(Some(&status)),
        }
    }

    /// The state of a file that the server itself has just written.
    pub fn of_written(path: &Path) -> Self {
        Self::now(fs::metadata(path).ok().map(|it| FileStatus::of(&it)).as_ref())
    }

    /// Whether the file is as it was when it was read.
    pub fn is_current(self, path: &Path) -> bool {
        self.is(fs::metadata(path).ok().map(|it| FileStatus::of(&it)).as_ref())
    }

    /// Whether a file that is looked at again is as it was when it was read.
    pub fn is(self, status: Option<&FileStatus>) -> bool {
        self != Self::UNCERTAIN && self == Self::now(status)
    }
}

/// A time in seconds since 1970 and nanoseconds.
fn time((secs, nanos): (i64, i64)) -> SystemTime {
    let secs = Duration::from_secs(u64::try_from(secs).unwrap_or_default());
    UNIX_EPOCH + secs + Duration::from_nanos(u64::try_from(nanos).unwrap_or_default())
}

/// The states of the files that a unit was read from.
#[derive(Clone, Debug)]
pub struct Stamps {
    /// The state of the unit's own file; `None` if it has none.
    pub own: Option<Stamp>,
    /// Other files that were read or wanted.
    pub included: Vec<(PathBuf, Stamp)>,
}

impl Stamps {
    /// The states of the files of a unit that has none.
    pub const NONE: Self = Self { own: None, included: Vec::new() };
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_stamp_notices_new_content_new_rights_and_a_change_during_reading() {
        let path = std::env::temp_dir().join(format!("zonda-stamp-{}", std::process::id()));
        fs::write(&path, "one").unwrap();
        let young = Stamp::of(&path, SystemTime::now());
        assert!(!young.is_current(&path), "it may have changed while it was read");
        let later = SystemTime::now() + TICK * 2;
        let settled = Stamp::of(&path, later);
        assert!(settled.is_current(&path));
        std::thread::sleep(TICK);
        let mut rights = fs::metadata(&path).unwrap().permissions();
        rights.set_readonly(true);
        fs::set_permissions(&path, rights).unwrap();
        assert!(!settled.is_current(&path), "its rights changed");
        fs::remove_file(&path).unwrap();
        assert_ne!(Stamp::of(Path::new("/"), later), Stamp::UNCERTAIN);
        let gone = Stamp::of(&path, later);
        assert!(gone.is_current(&path), "it is still missing");
        fs::write(&path, "two").unwrap();
        assert!(!gone.is_current(&path), "it is there again");
        fs::remove_file(&path).unwrap();
    }
}
