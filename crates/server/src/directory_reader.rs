//! Files of directories of zones, by their names in the directory: a small one is read with four
//! system calls, and looked at with one.

use crate::stamp::Stamp;
use crate::units::{Content, UnitKey};
use std::ffi::CStr;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use zonda_netio::Directory;
use zonda_zone::Records;

/// Octets up to which a file is read at once.
const BYTES_MAX: u64 = 256 << 10;

/// Reads files of one directory after the other, with one buffer for all.
#[derive(Default)]
pub struct DirectoryReader {
    /// The directory of the last file; nothing if it could not be opened.
    directory: Option<(Arc<Path>, Option<Directory>)>,
    /// The name of the last file, with a zero octet behind it.
    name: String,
    /// The text of the last file, and what is left of longer ones before.
    text: Vec<u8>,
    /// The records of the last file, for their memory.
    records: Records,
}

impl DirectoryReader {
    /// Reads the master file of a zone after which it is named; returns its text, what was known
    /// of it before it was read, and records whose memory can be used again. Nothing if it is to be
    /// read as any other file: it is large or is none, a link, which may lead out of the directory,
    /// or there is something wrong with it.
    pub fn read(&mut self, key: &UnitKey) -> Option<(&[u8], Metadata, &mut Records)> {
        let Content::Master(_) = key.content else { return None };
        let (directory, name) = self.place(key)?;
        let file = directory.open_file(name).ok()?;
        let metadata = file.metadata().ok().filter(|it| it.is_file() && it.len() <= BYTES_MAX)?;
        let len = usize::try_from(metadata.len()).ok()?;
        let read = read_whole(&file, len, &mut self.text).ok()?;
        Some((self.text.get(..read)?, metadata, &mut self.records))
    }

    /// Takes records whose memory can be used again, unless there is much of it.
    pub fn recycle(&mut self, records: Records) {
        if records.capacity() <= 2 * BYTES_MAX as usize {
            self.records = records;
        }
    }

    /// Whether the file of a unit is as it was when it was read. Allocates nothing for a file that
    /// is named after its zone.
    pub fn is_current(&mut self, key: &UnitKey, stamp: Stamp) -> bool {
        match self.place(key) {
            Some((directory, name)) => stamp.is(directory.status(name).ok().as_ref()),
            None => stamp.is_current(&key.path()),
        }
    }

    /// The directory of a unit's file, opened once for neighbouring files, and the file's name.
    fn place(&mut self, key: &UnitKey) -> Option<(&Directory, &CStr)> {
        let path = key.place(&mut self.name)?;
        self.name.push('\0');
        let is_same =
            |known: &Arc<Path>| Arc::ptr_eq(known, path) || known.as_os_str() == path.as_os_str();
        if !self.directory.as_ref().is_some_and(|(known, _)| is_same(known)) {
            self.directory = Some((Arc::clone(path), Directory::open(path).ok()));
        }
        let directory = self.directory.as_ref()?.1.as_ref()?;
        Some((directory, CStr::from_bytes_with_nul(self.name.as_bytes()).ok()?))
    }
}

/// Reads a file of a known length into a buffer that may be longer; returns how many octets it had.
/// One call suffices, since a file that ends where it is said to end does not end in the middle.
fn read_whole(mut file: &File, len: usize, buffer: &mut Vec<u8>) -> io::Result<usize> {
    if buffer.len() <= len {
        buffer.resize(len + 1, 0); // an octet more shows that the file has grown
    }
    let mut read = 0;
    loop {
        match file.read(&mut buffer[read..=len]) {
            Ok(0) => return Ok(read),
            Ok(count) => read += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        match read {
            it if it == len => return Ok(read),
            it if it > len => return Err(io::ErrorKind::InvalidData.into()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;

    #[test]
    fn a_file_is_read_up_to_its_end_and_not_if_it_has_grown() {
        let path = std::env::temp_dir().join(format!("zonda-read-whole-{}", std::process::id()));
        fs::write(&path, "text").unwrap();
        let read = |len, buffer: &mut Vec<u8>| {
            let read = read_whole(&File::open(&path).unwrap(), len, buffer)?;
            io::Result::Ok(buffer[..read].to_vec())
        };
        let mut buffer = Vec::new();
        assert_eq!(read(4, &mut buffer).unwrap(), b"text");
        assert_eq!(read(9, &mut buffer).unwrap(), b"text", "it has become shorter");
        assert_eq!(read(4, &mut buffer).unwrap(), b"text", "the buffer is longer");
        assert!(read(3, &mut buffer).is_err(), "it has grown");
        fs::remove_file(&path).unwrap();
    }
}
