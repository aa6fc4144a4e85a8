//! Files by their names in an open directory: the kernel does not walk their paths again.

use crate::check;
use std::ffi::{CStr, CString};
use std::fs::{File, Metadata};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// An open directory.
#[derive(Debug)]
pub struct Directory(OwnedFd);

/// A file as the file system describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileStatus {
    /// The device that the file lies on.
    pub device: u64,
    /// The file's number on its device.
    pub inode: u64,
    /// The file's length in octets.
    pub bytes: u64,
    /// When content or rights changed last, in seconds since 1970 and nanoseconds.
    pub changed: (i64, i64),
}

impl FileStatus {
    /// The status in the library's form.
    #[must_use]
    pub fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl Directory {
    /// Opens a directory.
    ///
    /// # Errors
    /// When there is none, or it cannot be had.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = CString::new(path.as_os_str().as_bytes())?;
        let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
        // SAFETY: the path ends with a zero octet and lives until the call returns.
        owned(unsafe { libc::open(path.as_ptr(), flags) }).map(Self)
    }

    /// Opens a file of the directory for reading; does not wait for the writer of a pipe.
    ///
    /// # Errors
    /// When there is no such file, it cannot be read, or it is a symbolic link, which may lead out
    /// of the directory.
    pub fn open_file(&self, name: &CStr) -> io::Result<File> {
        let flags = libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
        // SAFETY: the name ends with a zero octet and lives until the call returns.
        owned(unsafe { libc::openat(self.0.as_raw_fd(), name.as_ptr(), flags) }).map(File::from)
    }

    /// Returns the status of a file, symbolic links followed.
    ///
    /// # Errors
    /// When there is no such file, or it cannot be looked at.
    pub fn status(&self, name: &CStr) -> io::Result<FileStatus> {
        let mut status = MaybeUninit::<libc::stat>::uninit();
        // SAFETY: the name ends with a zero octet, and there is room for the status; both live
        // until the call returns.
        check(unsafe { libc::fstatat(self.0.as_raw_fd(), name.as_ptr(), status.as_mut_ptr(), 0) })?;
        // SAFETY: the call has succeeded, and so has written the status.
        let status = unsafe { status.assume_init() };
        #[allow(clippy::unnecessary_cast)] // types differ between systems
        Ok(FileStatus {
            device: status.st_dev as u64,
            inode: status.st_ino as u64,
            bytes: status.st_size as u64,
            changed: (status.st_ctime as i64, status.st_ctime_nsec as i64),
        })
    }
}

/// The descriptor that a call has returned.
fn owned(descriptor: libc::c_int) -> io::Result<OwnedFd> {
    let descriptor = check(descriptor)?;
    // SAFETY: the call has just opened the descriptor, which nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_file_is_read_and_described_by_its_name_and_a_link_is_described_alone() {
        let path = std::env::temp_dir().join(format!("zonda-directory-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("file"), "text").unwrap();
        let _ = fs::remove_file(path.join("link"));
        symlink("file", path.join("link")).unwrap();
        let directory = Directory::open(&path).unwrap();
        let mut text = String::new();
        directory.open_file(c"file").unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
        let status = directory.status(c"file").unwrap();
        assert_eq!(status, FileStatus::of(&fs::metadata(path.join("file")).unwrap()));
        assert_eq!(directory.status(c"link").unwrap(), status);
        assert!(directory.open_file(c"link").is_err(), "it may lead anywhere");
        assert_eq!(directory.open_file(c"no").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(Directory::open(&path.join("file")).is_err());
        fs::remove_dir_all(&path).unwrap();
    }
}
