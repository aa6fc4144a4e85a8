//! Programs that say whether a target is up.

use std::env;
use std::ffi::OsString;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;
use zonda_netio::child::kill_group_of;

use crate::check::{CommandCheck, Target};
use crate::outcome::Fault;

/// Octets of a program's output that are looked at; what follows is thrown away.
const OUTPUT_BYTES_MAX: usize = 4096;
/// Characters of the output's first line that are told.
const LINE_CHARS_MAX: usize = 200;
/// Time for the last output of a program that has ended, in case a program of its own lives on.
const LAST_OUTPUT: Duration = Duration::from_millis(50);
/// Where programs are looked for if this process does not know.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Runs the program; returns the first line of its output. Where this is dropped early, as at the
/// timeout, the program and all it has started are killed.
///
/// # Errors
/// When it ends otherwise than with exit status 0, or cannot be started.
pub async fn run(check: &CommandCheck, target: &Target) -> Result<Box<str>, Fault> {
    let mut group = Group::start(command(check, target)).map_err(|error| {
        let program = check.words().next().unwrap_or_default();
        Fault::Local(format!("{program:?} cannot be started: {error}").into())
    })?;
    let (mut output, mut errors) = (Vec::new(), Vec::new());
    let status = {
        let (stdout, stderr) = (group.child.stdout.take(), group.child.stderr.take());
        let read =
            async { tokio::join!(collect(stdout, &mut output), collect(stderr, &mut errors)) };
        let mut read = std::pin::pin!(read);
        let mut has_read = false;
        let status = loop {
            tokio::select! {
                status = group.wait() => break status,
                _ = &mut read, if !has_read => has_read = true,
            }
        };
        if !has_read {
            let _ = timeout(LAST_OUTPUT, read).await;
        }
        status
    };
    let status = status.map_err(|error| Fault::Local(error.to_string().into()))?;
    let line = if output.is_empty() { first_line(&errors) } else { first_line(&output) };
    match status.success() {
        true => Ok(line.into()),
        false => Err(Fault::Exit(told(status, &line).into())),
    }
}

/// Returns the program with its arguments and environment.
fn command(check: &CommandCheck, target: &Target) -> Command {
    let (address, port) = (target.address.to_string(), target.port.to_string());
    let mut words = check.words();
    let mut command = Command::new(words.next().unwrap_or_default());
    command
        .args(words.map(|word| word.replace("{address}", &address).replace("{port}", &port)))
        .env_clear()
        .env("PATH", env::var_os("PATH").unwrap_or_else(|| OsString::from(PATH)))
        .env("ZONDA_ADDRESS", &address)
        .env("ZONDA_PORT", &port)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    command
}

/// A program and all that it has started, which are killed when this is dropped before the program
/// has ended.
struct Group {
    child: Child,
}

impl Group {
    /// Starts the program.
    fn start(mut command: Command) -> std::io::Result<Self> {
        Ok(Self { child: command.spawn()? })
    }

    /// Waits for the end of the program.
    async fn wait(&mut self) -> std::io::Result<ExitStatus> {
        self.child.wait().await
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The id is there until the end of the program was noticed, so that it is of no other.
        if let Some(leader) = self.child.id() {
            let _ = kill_group_of(leader); // the program may have ended this moment
        }
    }
}

/// Collects the first octets of an output, and reads on to its end so that the program can write.
async fn collect(from: Option<impl AsyncRead + Unpin>, octets: &mut Vec<u8>) {
    let Some(mut from) = from else { return };
    let mut part = [0; 1024];
    while let Ok(len @ 1..) = from.read(&mut part).await {
        let room = OUTPUT_BYTES_MAX - octets.len();
        octets.extend_from_slice(&part[..len.min(room)]);
    }
}

/// Returns the first line of an output, without control characters.
fn first_line(output: &[u8]) -> String {
    let line = output.split(|octet| *octet == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    line.trim().chars().filter(|c| !c.is_control()).take(LINE_CHARS_MAX).collect()
}

/// Returns how a program has ended, in words.
fn told(status: ExitStatus, line: &str) -> String {
    let how = match status.code() {
        Some(code) => format!("exit status {code}"),
        None => status.to_string(), // which signal it was
    };
    if line.is_empty() { how } else { format!("{how}: {line}") }
}
