//! Files that are opened where they are said to be, and locks between processes.

use crate::check;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a file to be appended to, which is made with `mode` if it is not there. A symbolic link at
/// its path is not followed.
///
/// # Errors
/// Those of the system; a symbolic link is `ELOOP`.
pub fn append(path: &Path, mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true).mode(mode).custom_flags(libc::O_NOFOLLOW).open(path)
}

/// Locks a file for this descriptor and its copies, unless another descriptor holds the lock. The
/// lock ends when the last copy is closed, also by the end of the process. Returns whether this
/// descriptor holds it now.
///
/// # Errors
/// Those of the system, as of a file system without locks.
pub fn try_lock(file: &File) -> io::Result<bool> {
    // SAFETY: takes integers; the descriptor is open as long as `file` is borrowed.
    match check(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        result => result.map(|_| true),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_lock_holds_until_its_file_is_closed() {
        let path = std::env::temp_dir().join(format!("zonda-lock-{}", std::process::id()));
        let [first, second] = [(); 2].map(|()| append(&path, 0o600).unwrap());
        assert!(try_lock(&first).unwrap() && try_lock(&first).unwrap());
        assert!(!try_lock(&second).unwrap());
        drop(first);
        assert!(try_lock(&second).unwrap());
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_file_is_made_with_its_mode_and_no_link_is_followed() {
        let directory = std::env::temp_dir().join(format!("zonda-file-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let [path, link] = ["file", "link"].map(|name| directory.join(name));
        let mode = append(&path, 0o640).unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o137, 0, "{mode:o}");
        symlink(&path, &link).unwrap();
        assert_eq!(append(&link, 0o640).unwrap_err().raw_os_error(), Some(libc::ELOOP));
        fs::remove_dir_all(directory).unwrap();
    }
}
