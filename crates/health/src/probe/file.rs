//! Files that say whether a target is up.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::outcome::Fault;

/// Files that are read at a time. A file system that hangs keeps as many threads and no more.
static READS: Semaphore = Semaphore::const_new(8);
/// Octets that are read of a file.
const FILE_BYTES_MAX: u64 = 64;

/// Reads the file.
///
/// # Errors
/// When it does not say `up`.
pub async fn ask(path: &Path) -> Result<(), Fault> {
    let permit = READS.acquire().await.expect("the semaphore is never closed");
    let path = path.to_owned();
    let read = spawn_blocking(move || {
        let _permit = permit;
        read(&path)
    });
    let octets = match read.await {
        Ok(octets) => octets.map_err(|error| Fault::NoFile(error.kind()))?,
        Err(error) => return Err(Fault::Local(error.to_string().into())),
    };
    judge(&octets)
}

/// Reads the first octets of a regular file; a pipe would let the reader wait.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut octets = Vec::new();
    File::open(path)?.take(FILE_BYTES_MAX).read_to_end(&mut octets)?;
    Ok(octets)
}

/// Judges the first line of a file.
fn judge(octets: &[u8]) -> Result<(), Fault> {
    let line = octets.split(|octet| *octet == b'\n').next().unwrap_or_default().trim_ascii();
    match line.to_ascii_lowercase().as_slice() {
        b"up" => Ok(()),
        b"down" => Err(Fault::File),
        _ => Err(Fault::FileContent),
    }
}
