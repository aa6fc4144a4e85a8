//! Files that are replaced at once: whatever happens meanwhile, the former content or the next is
//! there.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use zonda_netio::process;

/// Opens a regular file to read it, unless another user may have filled it: what it has would be
/// given to clients. The process's own groups may write to it, as the kubelet has it in volumes of
/// a pod with an `fsGroup`.
///
/// # Errors
/// When it cannot be opened, or another user may write to it.
pub fn open_own(path: &Path) -> io::Result<File> {
    /// Permission to write, for the group.
    const GROUP_WRITING: u32 = 0o020;
    /// Permission to write, for all other users.
    const WRITING: u32 = 0o002;
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file")); // a pipe could be waited for for ever
    }
    let file = File::open(path)?;
    let about = file.metadata()?;
    if ![0, process::effective_user()].contains(&about.uid()) {
        return Err(io::Error::other("the file is another user's"));
    }
    let is_group_foreign = !process::is_in_group(about.gid());
    let writing = if is_group_foreign { WRITING | GROUP_WRITING } else { WRITING };
    if about.mode() & writing != 0 {
        let text = "other users may write to the file: take that from them by `chmod go-w`";
        return Err(io::Error::other(text));
    }
    Ok(file)
}

/// Replaces the content of a file, which its owner alone may read if it is new.
///
/// # Errors
/// When it cannot be written; the former content is there still.
pub fn write(path: &Path, octets: &[u8]) -> io::Result<()> {
    write_with(path, |file| file.write_all(octets))
}

/// Replaces the content of a file by what a function writes, piece by piece. The file's owner alone
/// may read it if it is new.
///
/// # Errors
/// When it cannot be written; the former content is there still.
pub fn write_with(
    path: &Path,
    content: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    let unfinished = unfinished(path);
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    let write = || {
        if let Ok(former) = fs::metadata(path) {
            file.set_permissions(former.permissions())?;
        }
        let mut file = BufWriter::new(file);
        content(&mut file)?;
        file.into_inner()?.sync_all()?;
        fs::rename(&unfinished, path)
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(&unfinished); // it may be what fills the disk
    })?;
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
        let failed = write_with(&path, |file| {
            file.write_all(b"third")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
        assert!(write(&directory.join("no/file"), b"").is_err());
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_file_is_read_unless_users_of_another_group_may_write_to_it() {
        let path = std::env::temp_dir().join(format!("zonda-own-{}", std::process::id()));
        fs::write(&path, "").unwrap();
        let is_readable = |mode: u32| {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            open_own(&path).is_ok()
        };
        let own = [0o600, 0o644, 0o660, 0o602].map(is_readable);
        assert_eq!(own, [true, true, true, false]);
        if process::effective_user() == 0 {
            std::os::unix::fs::chown(&path, None, Some(54_321)).unwrap();
            assert_eq!([0o640, 0o660].map(is_readable), [true, false]);
        }
        fs::remove_file(path).unwrap();
    }
}
