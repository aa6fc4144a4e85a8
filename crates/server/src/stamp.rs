//! States of files, by which a change is noticed.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The kernel's clock for files may lag behind by a tick, so that two writes in a row can carry the
/// same time; a file that is as young as that when it is read is read once more.
const TICK: Duration = Duration::from_millis(20);

/// A state of a file.
#[derive(Clone, Debug)]
pub struct Stamp {
    path: PathBuf,
    /// `None` when the file could not be looked at.
    state: Option<State>,
    /// Whether the file changed while it was read, or as good as that.
    is_uncertain: bool,
}

/// What differs when a file was written, replaced, or made readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    device: u64,
    inode: u64,
    bytes: u64,
    /// When content or rights changed last, in seconds since 1970 and nanoseconds.
    changed: (i64, i64),
}

impl State {
    /// The present state of a file.
    fn of(path: &Path) -> Option<Self> {
        let it = fs::metadata(path).ok()?;
        let changed = (it.ctime(), it.ctime_nsec());
        Some(Self { device: it.dev(), inode: it.ino(), bytes: it.len(), changed })
    }

    /// When the file changed last.
    fn time(self) -> SystemTime {
        let (secs, nanos) = self.changed;
        let secs = Duration::from_secs(u64::try_from(secs).unwrap_or_default());
        UNIX_EPOCH + secs + Duration::from_nanos(u64::try_from(nanos).unwrap_or_default())
    }
}

impl Stamp {
    /// The state of a file of which reading began at `started`.
    pub fn of(path: &Path, started: SystemTime) -> Self {
        let state = State::of(path);
        let is_uncertain = state.is_some_and(|state| {
            let changed = state.time();
            // A time in the future comes from elsewhere and says nothing.
            started - TICK <= changed && changed <= SystemTime::now()
        });
        Self { path: path.to_owned(), state, is_uncertain }
    }

    /// The state of a file that the server itself has just written.
    pub fn of_written(path: &Path) -> Self {
        Self { path: path.to_owned(), state: State::of(path), is_uncertain: false }
    }

    /// Whether the file is as it was when it was read.
    pub fn is_current(&self) -> bool {
        !self.is_uncertain && self.state == State::of(&self.path)
    }
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
        assert!(!young.is_current(), "it may have changed while it was read");
        let later = SystemTime::now() + TICK * 2;
        let settled = Stamp::of(&path, later);
        assert!(settled.is_current());
        std::thread::sleep(TICK);
        let mut rights = fs::metadata(&path).unwrap().permissions();
        rights.set_readonly(true);
        fs::set_permissions(&path, rights).unwrap();
        assert!(!settled.is_current(), "its rights changed");
        fs::remove_file(&path).unwrap();
        assert!(!Stamp::of(Path::new("/"), later).is_uncertain);
        let gone = Stamp::of(&path, later);
        assert!(gone.is_current(), "it is still missing");
        fs::write(&path, "two").unwrap();
        assert!(!gone.is_current(), "it is there again");
        fs::remove_file(&path).unwrap();
    }
}
