//! A process of a server, from its start to its end.
//!
//! # Invariants
//! - A process group of its own; nothing of it is left when a [`RunningServer`] is dropped, and it
//!   is ended when the thread that started it ends in any other way.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use std::{env, fmt, io};

use zonda_netio::child;
use zonda_wire::{Name, NameError, Type};

use super::{Kind, LocatedProgram, Role};
use crate::procfs;
use crate::template::{TemplateError, Values};

/// How long a server has between being asked to end and being ended.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// How variables begin that override settings of Zonda.
const SETTINGS: &[u8] = b"ZONDA_";
/// Lines of a server's log that are shown when it does not come up.
const LOG_LINES: usize = 5;

/// A server at work.
pub struct RunningServer {
    /// The group's leader.
    child: Child,
    /// File for the server's output.
    log: PathBuf,
    /// The command with its arguments.
    pub command: Vec<String>,
    /// Configuration files: name and text.
    pub files: Vec<(String, String)>,
    /// Moment of the start.
    began: Instant,
}

impl RunningServer {
    /// Writes the files of a role into `folder` and starts the server on these CPUs.
    ///
    /// Call it from a thread that stays: the server ends with it.
    pub fn start(
        kind: &Kind,
        located: &LocatedProgram,
        role: &Role,
        values: &Values,
        folder: &Path,
        cpus: &[usize],
    ) -> Result<Self, StartError> {
        let mut values = values.clone();
        values.set("folder", folder.display());
        if let Some(package) = &located.package {
            values.set("package", package.display());
        }
        let files = role.write_files(&values, folder)?;
        let program = program_to_run(kind, located, folder)?;
        let arguments: Vec<String> =
            role.arguments.iter().map(|text| values.fill(text)).collect::<Result<_, _>>()?;
        let log = folder.join("log");
        let output = File::create(&log)?;
        let mut command = Command::new(&program);
        command.args(&arguments).stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        // Settings of the shell's are not those of the suite.
        let settings = env::vars_os().map(|(name, _)| name);
        for name in settings.filter(|name| name.as_encoded_bytes().starts_with(SETTINGS)) {
            command.env_remove(name);
        }
        for (name, text) in &role.environment {
            command.env(name, values.fill(text)?);
        }
        let began = Instant::now();
        let child = child::spawn(&mut command, cpus)?;
        let command = [kind.program.clone()].into_iter().chain(arguments).collect();
        Ok(Self { child, log, command, files, began })
    }

    /// Returns the process that leads the group.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Waits until each question is answered with NOERROR, and the server has nothing else to do;
    /// returns the time from start to the last of these answers.
    pub fn wait_until_ready(
        &mut self,
        address: SocketAddr,
        questions: &[Question],
        limit: Duration,
    ) -> Result<Duration, StartError> {
        let ready = self.wait_for_answers(address, questions, limit)?;
        self.wait_until_idle(limit);
        Ok(ready)
    }

    /// Waits until each question is answered with NOERROR; returns the time from start to the last
    /// of these answers.
    pub fn wait_for_answers(
        &mut self,
        address: SocketAddr,
        questions: &[Question],
        limit: Duration,
    ) -> Result<Duration, StartError> {
        for question in questions {
            while !question.is_answered_by(address)? {
                if self.has_ended() {
                    return Err(StartError::Ended(self.last_words()));
                }
                if self.began.elapsed() > limit {
                    return Err(StartError::Silent(limit, self.last_words()));
                }
                thread::sleep(Duration::from_millis(5));
            }
        }
        Ok(self.began.elapsed())
    }

    /// Waits until the server uses less than a tenth of a CPU: some load zones while they answer
    /// from other zones.
    pub fn wait_until_idle(&self, limit: Duration) {
        const INTERVAL: Duration = Duration::from_millis(200);
        let used = || procfs::usage(self.process()).cpu_secs();
        let mut before = used();
        while self.began.elapsed() < limit {
            thread::sleep(INTERVAL);
            let now = used();
            if now - before < INTERVAL.as_secs_f64() / 10.0 {
                return;
            }
            before = now;
        }
    }

    /// Whether the server has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Returns the last lines of what it has said.
    pub fn last_words(&self) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join(" / ")
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        let _ = child::end_group(&self.child);
        let limit = Instant::now() + STOP_TIMEOUT;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < limit {
            thread::sleep(Duration::from_millis(2));
        }
        let _ = child::kill_group(&self.child);
        let _ = self.child.wait();
        // Processes of the group whose parent is gone are reaped by init, at its own time.
        while child::group_exists(&self.child) && Instant::now() < limit {
            thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Returns the installed program, or a copy in `folder` where the system confines the installed
/// one.
fn program_to_run(kind: &Kind, located: &LocatedProgram, folder: &Path) -> io::Result<PathBuf> {
    if !kind.confined {
        return Ok(located.program.clone());
    }
    let copy = folder.join(&kind.program);
    fs::copy(&located.program, &copy)?;
    Ok(copy)
}

/// A question that shows whether a server is up.
#[derive(Clone, Debug)]
pub struct Question {
    /// The whole query, with id 0.
    query: Vec<u8>,
}

impl Question {
    /// Reads `NAME TYPE`.
    pub fn parse(text: &str) -> Result<Self, QuestionError> {
        let (name, kind) = text.trim().split_once(' ').ok_or(QuestionError::Form)?;
        let name: Name = name.parse().map_err(QuestionError::Name)?;
        let kind = Type::from_text(kind.trim().as_bytes()).ok_or(QuestionError::Type)?;
        let mut query = b"\0\0\x01\0\0\x01\0\0\0\0\0\0".to_vec();
        query.extend(name.as_wire());
        query.extend(kind.0.to_be_bytes());
        query.extend([0, 1]);
        Ok(Self { query })
    }

    /// Asks once; whether the reply is NOERROR. No reply within a moment is no.
    fn is_answered_by(&self, address: SocketAddr) -> io::Result<bool> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.set_read_timeout(Some(Duration::from_millis(500)))?;
        socket.connect(address)?;
        let mut reply = [0; 4096];
        // A port without a socket refuses the first or the second call.
        let heard = socket.send(&self.query).and_then(|_| socket.recv(&mut reply));
        Ok(heard.is_ok_and(|len| len >= 12 && reply[2] & 0x80 != 0 && reply[3] & 0x0f == 0))
    }
}

/// A fault of a question.
#[derive(Debug)]
pub enum QuestionError {
    /// The question has not two words.
    Form,
    /// The first is no name.
    Name(NameError),
    /// The second is no type.
    Type,
}

impl fmt::Display for QuestionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form => f.write_str("write `NAME TYPE`"),
            Self::Name(error) => error.fmt(f),
            Self::Type => f.write_str("unknown type"),
        }
    }
}

/// Ports that [`free_port`] picks from: below those that Linux gives, by default, to every program
/// that asks for any, of which a generator with many clients takes thousands.
const PORTS: Range<u32> = 10_000..32_000;

/// Returns a port of 127.0.0.1 that is free at the moment, over UDP and TCP. Each process begins
/// its search at another port.
pub fn free_port() -> io::Result<u16> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let is_free = |port: &u16| {
        let address = (Ipv4Addr::LOCALHOST, *port);
        TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok()
    };
    let begin = std::process::id().wrapping_mul(13_841); // neighbours are far apart
    let next = || begin.wrapping_add(COUNT.fetch_add(1, Ordering::Relaxed));
    let mut ports = PORTS.map(|_| (PORTS.start + next() % PORTS.len() as u32) as u16);
    ports.find(is_free).ok_or_else(|| io::ErrorKind::AddrInUse.into())
}

/// Why a server does not run.
#[derive(Debug)]
pub enum StartError {
    /// A template names a value that does not exist.
    Template(TemplateError),
    /// A file or the process of the server failed.
    System(io::Error),
    /// The server ended by itself, with these last words.
    Ended(String),
    /// The server did not answer within this time; its last words.
    Silent(Duration, String),
}

impl From<TemplateError> for StartError {
    fn from(error: TemplateError) -> Self {
        Self::Template(error)
    }
}

impl From<io::Error> for StartError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Template(error) => write!(f, "its template: {error}"),
            Self::System(error) => write!(f, "cannot be started: {error}"),
            Self::Ended(log) => write!(f, "ended by itself; its log: {log}"),
            Self::Silent(limit, log) => {
                write!(f, "no answer within {} s; its log: {log}", limit.as_secs())
            }
        }
    }
}

impl std::error::Error for StartError {}
