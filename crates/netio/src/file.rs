//! Files that are opened where they are said to be, and locks between processes.

use crate::check;
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
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

/// Returns whether a file has no name any more: it is gone once it is closed. Asks for nothing
/// else where the system allows that, since Linux gives a file whose times were asked for a new
/// time with the next write, which costs `fdatasync` a write of the inode besides (multigrain
/// timestamps, Linux 6.13).
///
/// # Errors
/// Those of the system.
pub fn is_unlinked(file: &File) -> io::Result<bool> {
    match names(file) {
        Some(count) => Ok(count == 0),
        None => file.metadata().map(|metadata| metadata.nlink() == 0),
    }
}

/// The number of names of a file; none where the system or the file system does not tell that
/// alone, as in a sandbox of before statx(2).
fn names(file: &File) -> Option<u32> {
    let mut found = MaybeUninit::<libc::statx>::zeroed();
    // SAFETY: the path is an empty C string; the kernel writes one `statx`, which outlives the
    // call; the descriptor is open as long as `file` is borrowed.
    let asked = check(unsafe {
        libc::statx(
            file.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            libc::STATX_NLINK,
            found.as_mut_ptr(),
        )
    });
    asked.ok()?;
    // SAFETY: all zeros are a `statx`, and so is what the kernel has made of them.
    let found = unsafe { found.assume_init() };
    (found.stx_mask & libc::STATX_NLINK != 0).then_some(found.stx_nlink)
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
    fn a_file_is_unlinked_once_its_last_name_is_gone() {
        let path = std::env::temp_dir().join(format!("zonda-names-{}", std::process::id()));
        let other = path.with_extension("other");
        let file = append(&path, 0o600).unwrap();
        fs::hard_link(&path, &other).unwrap();
        fs::remove_file(&path).unwrap();
        assert!(!is_unlinked(&file).unwrap());
        fs::remove_file(&other).unwrap();
        assert!(is_unlinked(&file).unwrap());
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
