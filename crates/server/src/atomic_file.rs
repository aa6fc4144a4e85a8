//! Files that are replaced at once: whatever happens meanwhile, the former content or the next is
//! there.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Replaces the content of a file, which its owner alone may read if it is new.
///
/// # Errors
/// When it cannot be written; the former content is there still.
pub fn write(path: &Path, octets: &[u8]) -> io::Result<()> {
    let unfinished = unfinished(path);
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    if let Ok(former) = fs::metadata(path) {
        file.set_permissions(former.permissions())?;
    }
    file.write_all(octets)?;
    file.sync_all()?;
    fs::rename(&unfinished, path)?;
    match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(directory) => File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}

/// The path of the next content until it is complete.
fn unfinished(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".new");
    name.into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_file_is_replaced_with_its_permissions_and_nothing_is_left_beside_it() {
        let name = format!("zonda-atomic-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("file");
        write(&path, b"first").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        write(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
        assert!(write(&directory.join("no/file"), b"").is_err());
        fs::remove_dir_all(directory).unwrap();
    }
}
