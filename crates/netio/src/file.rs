//! Files that are opened where they are said to be.

use std::fs::{File, OpenOptions};
use std::io;
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

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
