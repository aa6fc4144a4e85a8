//! A run as JSON.

use crate::data::{FORMAT, Run};
use serde::Deserialize;
use std::fmt;
use std::io::{self, Read, Write};

/// Why JSON could not be read as a run.
#[derive(Debug)]
pub enum ReadError {
    /// The file could not be read.
    Io(io::Error),
    /// The text is no run: serde's words, with line and column.
    Malformed(serde_json::Error),
    /// The text is a run of another version of the form.
    Format(u32),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Malformed(error) => write!(f, "this is no benchmark run: {error}"),
            Self::Format(format) => write!(
                f,
                "the run is written in form {format} and this version reads form {FORMAT}; use \
                 the version of zonda that wrote it"
            ),
        }
    }
}

impl std::error::Error for ReadError {}

/// The one field that every version of the form has.
#[derive(Deserialize)]
struct Header {
    /// Version of the form.
    format: u32,
}

/// Reads a run.
///
/// # Errors
/// When reading fails, the text is no run, or its form is another version's.
pub fn read(mut from: impl Read) -> Result<Run, ReadError> {
    let mut text = Vec::new();
    from.read_to_end(&mut text).map_err(ReadError::Io)?;
    let header: Header = serde_json::from_slice(&text).map_err(ReadError::Malformed)?;
    if header.format != FORMAT {
        return Err(ReadError::Format(header.format));
    }
    serde_json::from_slice(&text).map_err(ReadError::Malformed)
}

/// Writes a run, indented, with a newline at its end.
///
/// # Errors
/// When writing fails.
pub fn write(run: &Run, mut to: impl Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut to, run)?;
    to.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::run;
    use std::fs;

    #[test]
    fn what_is_written_is_read_back() {
        let mut text = Vec::new();
        write(&run(), &mut text).unwrap();
        assert!(read(&*text).unwrap() == run(), "{}", String::from_utf8_lossy(&text));
    }

    #[test]
    fn another_version_of_the_form_is_refused_before_its_fields_are_read() {
        let error = read(&br#"{"format": 99}"#[..]).unwrap_err();
        assert!(matches!(error, ReadError::Format(99)), "{error}");
    }

    #[test]
    fn text_that_is_no_run_is_reported_with_its_line() {
        let error = read(&b"{\"format\": 1,\n nonsense"[..]).unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
    }

    #[test]
    fn runs_that_were_kept_are_read_by_every_later_version() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/runs");
        let machines = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let files = machines
            .filter(|path| path.is_dir())
            .flat_map(|path| fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        let mut count = 0;
        for path in files.filter(|path| path.extension().is_some_and(|it| it == "json")) {
            let run = read(fs::File::open(&path).unwrap());
            let run = run.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert!(run.cells.iter().any(|cell| !cell.rounds.is_empty()), "{}", path.display());
            count += 1;
        }
        assert!(count > 0, "{folder}");
    }
}
