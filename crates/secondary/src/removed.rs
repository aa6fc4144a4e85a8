//! Files of zones that are no members of a catalog any more, kept for a while (rfc9432#5.3).
//!
//! ```text
//! DIRECTORY/example.com.secondary ─ set_aside ─► DIRECTORY/removed/example.com.secondary.TAG
//!               ▲                                            │ age: since the file was set aside
//!               └──────────────── take_back ─────────────────┴─ sweep: removed after KEPT
//! ```
//! A catalog that lists a zone again under the same id means the same zone, so that its file is
//! taken back; the tag tells ids apart.

use crate::catalog::MemberId;
use crate::zone_file::{checksum_of, file_name};
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use zonda_wire::Name;

/// How long a file that was set aside is kept.
pub const KEPT: Duration = Duration::from_secs(3600);
/// The directory of such files, in the directory of the files of zones.
const DIRECTORY: &str = "removed";

/// What a zone was a member as: its catalog and its id there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberTag([u8; 8]);

impl MemberTag {
    /// The tag of a member of a catalog.
    #[must_use]
    pub fn new(catalog: &Name, id: &MemberId) -> Self {
        let catalog = catalog.to_lowercase();
        Self(checksum_of(&[catalog.as_wire(), id].concat()))
    }
}

/// Sets the file of a zone aside, if there is one, in place of another of the same tag; the
/// directory of zones is not synced.
///
/// # Errors
/// When it cannot be moved; it is where it was.
pub fn set_aside(directory: &Path, apex: &Name, tag: MemberTag) -> io::Result<()> {
    let file = match File::open(directory.join(file_name(apex))) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        file => file?,
    };
    let aside = directory.join(DIRECTORY);
    DirBuilder::new().recursive(true).mode(0o700).create(&aside)?;
    file.set_modified(SystemTime::now())?; // the age counts from here
    fs::rename(directory.join(file_name(apex)), path(&aside, apex, tag))
}

/// Makes a file that was set aside that of its zone again, unless the zone has a file, or that was
/// too long ago; whether it does.
///
/// # Errors
/// When it cannot be moved.
pub fn take_back(directory: &Path, apex: &Name, tag: MemberTag) -> io::Result<bool> {
    let (aside, own) = (directory.join(DIRECTORY), directory.join(file_name(apex)));
    let aside = path(&aside, apex, tag);
    let metadata = match fs::metadata(&aside) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        metadata => metadata?,
    };
    if is_old(&metadata)? || fs::exists(&own)? {
        return Ok(false);
    }
    fs::rename(aside, own).map(|()| true)
}

/// Removes the files that were set aside too long ago; returns their number.
///
/// # Errors
/// When the directory cannot be read, or one of them not be removed.
pub fn sweep(directory: &Path) -> io::Result<usize> {
    let entries = match fs::read_dir(directory.join(DIRECTORY)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let mut removed = 0;
    for entry in entries {
        let entry = entry?;
        if is_old(&entry.metadata()?)? {
            fs::remove_file(entry.path())?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// Whether a file was set aside too long ago. One of the future is not: the clock was set back.
fn is_old(metadata: &fs::Metadata) -> io::Result<bool> {
    Ok(metadata.modified()?.elapsed().is_ok_and(|age| age >= KEPT))
}

/// The path of a file that was set aside.
fn path(aside: &Path, apex: &Name, MemberTag(tag): MemberTag) -> PathBuf {
    aside.join(format!("{}.{:016x}", file_name(apex), u64::from_be_bytes(tag)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A directory with the file of a zone, the zone, and two tags.
    fn written(name: &str) -> (PathBuf, Name, [MemberTag; 2]) {
        let folder = std::env::temp_dir().join(format!("zonda-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let apex = "example.com".parse().unwrap();
        fs::write(folder.join(file_name(&apex)), "one").unwrap();
        let catalog = "catalog.test".parse().unwrap();
        let tags = [&b"m1"[..], b"m2"].map(|id| MemberTag::new(&catalog, &id.into()));
        (folder, apex, tags)
    }

    #[test]
    fn a_file_is_taken_back_by_the_same_member_once_and_by_no_other() {
        let (folder, apex, [tag, other]) = written("aside");
        set_aside(&folder, &apex, tag).unwrap();
        set_aside(&folder, &apex, tag).unwrap(); // as after a crash
        assert!(!folder.join(file_name(&apex)).exists());
        assert!(!take_back(&folder, &apex, other).unwrap(), "another id is another zone");
        assert!(take_back(&folder, &apex, tag).unwrap());
        assert_eq!(fs::read(folder.join(file_name(&apex))).unwrap(), b"one");
        assert!(!take_back(&folder, &apex, tag).unwrap(), "it is there already");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_that_a_zone_has_meanwhile_stays() {
        let (folder, apex, [tag, _]) = written("meanwhile");
        set_aside(&folder, &apex, tag).unwrap();
        fs::write(folder.join(file_name(&apex)), "two").unwrap();
        assert!(!take_back(&folder, &apex, tag).unwrap());
        assert_eq!(fs::read(folder.join(file_name(&apex))).unwrap(), b"two");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_is_kept_for_an_hour() {
        let (folder, apex, [tag, other]) = written("hour");
        set_aside(&folder, &apex, tag).unwrap();
        let aside = path(&folder.join(DIRECTORY), &apex, tag);
        let age = |secs: u64| {
            let at = SystemTime::now() - Duration::from_secs(secs);
            File::options().append(true).open(&aside).unwrap().set_modified(at).unwrap();
        };
        age(3500);
        assert_eq!(sweep(&folder).unwrap(), 0);
        age(3600);
        assert!(!take_back(&folder, &apex, tag).unwrap(), "though it was not swept yet");
        fs::write(path(&folder.join(DIRECTORY), &apex, other), "young").unwrap();
        assert_eq!(sweep(&folder).unwrap(), 1);
        assert!(!aside.exists());
        assert!(take_back(&folder, &apex, other).unwrap());
        fs::remove_dir_all(folder).unwrap();
    }
}
