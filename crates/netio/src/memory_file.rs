//! Files without a place on any disk.

use crate::check;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;

/// A file in memory, which this process finds by a path as long as the value lives: also where no
/// file system can be written to.
#[derive(Debug)]
pub struct MemoryFile(File);

impl MemoryFile {
    /// Makes a file with a content.
    ///
    /// # Errors
    /// When the system has no memory or descriptor for it.
    pub fn new(content: &[u8]) -> io::Result<Self> {
        let name = c"zonda";
        // SAFETY: the name is a string that ends with 0, and lives during the call.
        let descriptor = check(unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) })?;
        // SAFETY: the call has just made this descriptor; nothing else owns it.
        let mut file = File::from(unsafe { OwnedFd::from_raw_fd(descriptor) });
        file.write_all(content)?;
        Ok(Self(file))
    }

    /// Returns the path of the file for this process.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_file_in_memory_is_read_by_its_path_as_often_as_wanted() {
        let file = MemoryFile::new(b"content").unwrap();
        for _ in 0..2 {
            assert_eq!(std::fs::read(file.path()).unwrap(), b"content");
        }
        let path = file.path();
        drop(file);
        assert!(std::fs::read(path).map_or(true, |now| now != b"content"));
    }
}
