//! Files and standard input, unpacked if they are compressed, and their lines.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::QueriesError;

/// What a file of gzip begins with (rfc1952#2.3.1).
const GZIP: &[u8] = &[0x1f, 0x8b];

/// Octets read by one call.
const BUFFER_OCTETS: usize = 1 << 16;

/// Octets of the longest line; a name whose octets are all escaped takes a quarter of it.
const LINE_OCTETS_MAX: usize = 4096;

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

/// Returns the first octets of what can be read, fewer if it ends before, and a reader of all of
/// it.
pub fn peek<R: BufRead>(mut reader: R, count: usize) -> io::Result<(Vec<u8>, impl BufRead)> {
    let mut start = Vec::with_capacity(count);
    reader.by_ref().take(count as u64).read_to_end(&mut start)?;
    let whole = Cursor::new(start.clone()).chain(reader);
    Ok((start, whole))
}

/// Hands each line that comes from `path` to `take`, which says what is wrong with it; `on_bad`
/// decides whether it goes on behind a line that is wrong, too long or no text.
///
/// # Errors
/// What `on_bad` does not pass over, and what cannot be read.
pub fn each_line(
    mut lines: impl BufRead,
    path: &Path,
    mut take: impl FnMut(&str) -> Result<(), String>,
    mut on_bad: impl FnMut(QueriesError) -> Result<(), QueriesError>,
) -> Result<(), QueriesError> {
    let mut line = Vec::with_capacity(LINE_OCTETS_MAX + 1);
    for number in 1.. {
        let fail = |what| QueriesError::Line(path.to_owned(), number, what);
        line.clear();
        match lines.by_ref().take(LINE_OCTETS_MAX as u64 + 1).read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(len) if len > LINE_OCTETS_MAX => {
                on_bad(fail(format!("longer than {LINE_OCTETS_MAX} octets")))?;
                if line.last() != Some(&b'\n') {
                    lines.skip_until(b'\n').map_err(|error| fail(error.to_string()))?;
                }
                continue;
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(fail("the compressed file is cut short".to_owned()));
            }
            Err(error) => return Err(fail(error.to_string())),
        }
        let text = std::str::from_utf8(&line);
        let text = text.map_err(|_| "not UTF-8: neither lines of text nor a capture".to_owned());
        if let Err(what) = text.and_then(&mut take) {
            on_bad(fail(what))?;
        }
    }
    Ok(())
}
