//! Errors of the journal.

use crate::scan::Fault;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use zonda_wire::Name;

/// Why something could not be done with the journal. Each names the file or zone, and what to do.
#[derive(Debug)]
pub enum Error {
    /// The file cannot be opened, read or written. What was committed before is untouched.
    Io {
        /// The path of the journal.
        path: PathBuf,
        /// The action that failed, such as `opened`.
        action: &'static str,
        /// The error of the system.
        error: io::Error,
    },
    /// Another process has the journal open, or this one has it twice.
    Locked(PathBuf),
    /// The path does not lead to a journal of this version.
    OtherFormat(PathBuf),
    /// What was committed at this offset is damaged.
    Damaged {
        /// The path of the journal.
        path: PathBuf,
        /// The offset of the first record that is damaged.
        offset: u64,
        /// What is wrong at the offset.
        what: &'static str,
    },
    /// The file has been removed or replaced while it is open: what is written to it is lost.
    Removed(PathBuf),
    /// An earlier error left unknown what is on the disk.
    Failed(PathBuf),
    /// The entry does not begin with the serial that the zone's last entry ends with.
    Gap {
        /// The zone of the entry.
        zone: Name,
        /// The serial that the last entry ends with.
        last: u32,
        /// The serial that the new entry begins with.
        from: u32,
    },
    /// The entry's payload is longer than [`crate::PAYLOAD_OCTETS_MAX`].
    TooLong {
        /// The zone of the entry.
        zone: Name,
        /// The octets of the payload.
        octets: usize,
    },
    /// The group would be longer than [`crate::GROUP_OCTETS_MAX`]: commit it, then append again.
    GroupFull,
}

impl Error {
    /// Makes the error of something that was to be done with a file.
    pub(crate) fn io(path: &Path, action: &'static str, error: io::Error) -> Self {
        Self::Io { path: path.to_owned(), action, error }
    }

    /// Makes the error of a file that cannot be used.
    pub(crate) fn from_fault(path: &Path, fault: Fault) -> Self {
        match fault {
            Fault::Io(error) => Self::io(path, "read", error),
            Fault::OtherFormat => Self::OtherFormat(path.to_owned()),
            Fault::Damaged { offset, what } => {
                Self::Damaged { path: path.to_owned(), offset, what }
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, action, error } => {
                write!(f, "journal {}: it cannot be {action}: {error}", path.display())
            }
            Self::Locked(path) => write!(
                f,
                "journal {}: in use by another process; stop that one, or give this one a \
                 directory of its own",
                path.display()
            ),
            Self::OtherFormat(path) => write!(
                f,
                "{}: not a journal of this version; move the file away, or start the version of \
                 Zonda that wrote it",
                path.display()
            ),
            Self::Damaged { path, offset: 0, what } => write!(
                f,
                "journal {}: damaged at octet 0: {what}; restore the file from a copy, or move it \
                 away to go on without the changes in it",
                path.display()
            ),
            Self::Damaged { path, offset, what } => write!(
                f,
                "journal {path}: damaged at octet {offset}: {what}; restore the file from a copy, \
                 or, to go on with the changes before the damage and lose those behind it, keep a \
                 copy and run `truncate -s {offset} {path}`",
                path = path.display()
            ),
            Self::Removed(path) => write!(
                f,
                "journal {}: removed or replaced while it is in use; write the changes to the \
                 zones' files with `zonda zone flush`, then restart the server",
                path.display()
            ),
            Self::Failed(path) => write!(
                f,
                "journal {}: nothing is written any more, as an earlier error left unknown what \
                 is on the disk; check the disk, then restart the server",
                path.display()
            ),
            Self::Gap { zone, last, from } => write!(
                f,
                "the journal's last change of zone {zone} ends with serial {last}, and the new \
                 one begins with {from}"
            ),
            Self::TooLong { zone, octets } => write!(
                f,
                "a change of zone {zone} has {octets} octets; the journal takes {}",
                crate::PAYLOAD_OCTETS_MAX
            ),
            Self::GroupFull => f.write_str("too many changes wait for the journal's disk"),
        }
    }
}

impl std::error::Error for Error {}
