//! Files and standard input, unpacked if they are compressed.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

/// What a file of gzip begins with (rfc1952#2.3.1).
const GZIP: &[u8] = &[0x1f, 0x8b];

/// Octets read by one call.
const BUFFER_OCTETS: usize = 1 << 16;

/// Opens a file; `-` is standard input. What is compressed is known by its first octets, whatever
/// it is called.
pub fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let raw: Box<dyn Read> = match path.as_os_str().as_encoded_bytes() {
        b"-" => Box::new(io::stdin()),
        _ => Box::new(File::open(path)?),
    };
    let (start, whole) = peek(BufReader::with_capacity(BUFFER_OCTETS, raw), GZIP.len())?;
    Ok(match start == GZIP {
        true => Box::new(BufReader::with_capacity(BUFFER_OCTETS, MultiGzDecoder::new(whole))),
        false => Box::new(whole),
    })
}

/// The first octets of what can be read, fewer if it ends before, and a reader of all of it.
pub fn peek<R: BufRead>(mut reader: R, count: usize) -> io::Result<(Vec<u8>, impl BufRead)> {
    let mut start = Vec::with_capacity(count);
    reader.by_ref().take(count as u64).read_to_end(&mut start)?;
    let whole = Cursor::new(start.clone()).chain(reader);
    Ok((start, whole))
}
