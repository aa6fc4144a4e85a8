//! What commands have in common: how they print, and the exit codes that they end with.
//!
//! | exit code | meaning |
//! |---|---|
//! | 0 | done, and what was to be checked is so |
//! | 1 | a check failed, or a limit was broken |
//! | 2 | the command could not be run: a mistake in it, a file or server that cannot be reached |
//!
//! A reader of standard output or standard error that has gone away, as `head` does, loses the rest
//! of the text and changes nothing else: the exit code says what it would have said. Nothing else
//! in this program prints, which clippy sees to.

use std::fmt::Display;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

/// Why a command has not succeeded.
#[derive(Debug)]
pub enum Failure {
    /// The command ran, and what it checked is not as it should be.
    Failed(String),
    /// The command could not be run.
    NotRun(String),
}

impl From<String> for Failure {
    /// Most errors are of files and words, without which a command cannot be run.
    fn from(error: String) -> Self {
        Self::NotRun(error)
    }
}

/// What a command ends with, an error being told in a line.
pub fn end(result: Result<ExitCode, Failure>) -> ExitCode {
    let (error, code) = match result {
        Ok(code) => return code,
        Err(Failure::Failed(error)) => (error, 1),
        Err(Failure::NotRun(error)) => (error, 2),
    };
    line(format_args!("zonda: {error}"));
    ExitCode::from(code)
}

/// Writes a line to standard error; what cannot be written there is lost.
pub fn line(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{text}"); // there is nowhere to say that it failed
}

/// Writes to standard output. A reader that has gone away is no error.
///
/// # Errors
/// When the output cannot be written to, as on a full disk.
pub fn print(
    write: impl FnOnce(&mut BufWriter<io::StdoutLock<'static>>) -> io::Result<()>,
) -> Result<(), String> {
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("standard output: {error}"))
        }
        _ => Ok(()),
    }
}
