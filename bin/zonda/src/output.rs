//! What commands have in common: how they print and how they fail.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

/// Prints an error as one line, or gives the exit code that a command ends with.
pub fn exit_code(result: Result<ExitCode, String>) -> ExitCode {
    result.unwrap_or_else(|error| {
        eprintln!("zonda: {error}");
        ExitCode::FAILURE
    })
}

/// Writes to standard output. A reader that has gone away, as `head` does, is no error.
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
