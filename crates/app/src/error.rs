//! Why an app cannot run.

use crate::serve_error::{ListenError, ServeError};
use std::fmt;
use std::io;
use std::path::PathBuf;
use zonda_engine::code::PatternError;
use zonda_server::{FailedZone, ProgramError, ServeError as ServerError, failed_text};
use zonda_wire::NameError;

/// Why an app cannot start, or had to stop.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The pattern of a route is not valid.
    Pattern(String, PatternError),
    /// The handler of a pattern takes what its app or the pattern lacks; what that is, and what to
    /// do.
    Handler(String, String),
    /// The name of a zone is not valid.
    Name(String, NameError),
    /// The name that a query asks for is not valid.
    QueryName(String, NameError),
    /// The client for which a query asks is a text that is not an address.
    Client(String),
    /// A zone cannot be served from its text, or from a store, while the app runs: what is wrong
    /// with the text, a line each, after its place, `example.org. (of the program):3:5: error: …`;
    /// or what the zone is served from instead.
    ZoneText(String),
    /// The file of a zone cannot be read.
    ZoneFile(PathBuf, io::Error),
    /// No reply to a query was sent.
    Silence,
    /// The configuration is wrong; all that is wrong with it, a line each.
    Config(String),
    /// Zones could not be loaded.
    Zones(Vec<FailedZone>),
    /// More than one thing is wrong.
    Mistakes(Vec<Error>),
    /// The server could not start, or had to stop.
    Serve(ServeError),
    /// A thread could not be started.
    Thread(io::Error),
    /// The app has stopped, because the program asked for that.
    Stopped,
    /// A change could not be put into force, as the thread that does so has failed; the log says
    /// why.
    Publisher,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pattern(pattern, error) => write!(f, "route `{pattern}`: {error}"),
            Self::Handler(pattern, lack) => write!(f, "route `{pattern}`: {lack}"),
            Self::Name(name, error) => write!(f, "zone `{name}`: {error}"),
            Self::QueryName(name, error) => write!(f, "name `{name}`: {error}"),
            Self::Client(text) => write!(
                f,
                "client `{text}`: this is not an address; write one such as `192.0.2.7` or \
                 `[2001:db8::7]:5353`"
            ),
            Self::ZoneFile(file, error) => write!(f, "zone file {}: {error}", file.display()),
            Self::Silence => f.write_str(
                "the query was dropped, and no reply sent: by a handler, a rule or an access list",
            ),
            Self::Stopped => f.write_str("the app has stopped; start another one"),
            Self::Publisher => f.write_str(
                "the change is not in force: the thread that puts changes into force has failed; \
                 see the log",
            ),
            Self::ZoneText(errors) | Self::Config(errors) => f.write_str(errors),
            Self::Zones(failed) => f.write_str(&failed_text(failed)),
            Self::Mistakes(mistakes) => {
                for (place, mistake) in mistakes.iter().enumerate() {
                    let separator = if place == 0 { "" } else { "\n" };
                    write!(f, "{separator}{mistake}")?;
                }
                Ok(())
            }
            Self::Serve(error) => error.fmt(f),
            Self::Thread(error) => write!(f, "cannot start: {error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Pattern(_, error) => Some(error),
            Self::Name(_, error) | Self::QueryName(_, error) => Some(error),
            Self::ZoneFile(_, error) | Self::Thread(error) => Some(error),
            Self::Serve(error) => error.source(), // its text is this one's
            Self::Handler(..)
            | Self::Client(_)
            | Self::ZoneText(_)
            | Self::Silence
            | Self::Stopped
            | Self::Publisher
            | Self::Config(_)
            | Self::Zones(_)
            | Self::Mistakes(_) => None,
        }
    }
}

impl Error {
    /// Returns the code of the error, which is the same in Rust, Node.js and Python:
    /// `ZONDA_CONFIG`, `ZONDA_NO_REPLY`, `ZONDA_PATTERN`, `ZONDA_QUERY`, `ZONDA_SERVER`,
    /// `ZONDA_STATE` (the app has stopped) or `ZONDA_ZONE`, or `EADDRINUSE`, `EADDRNOTAVAIL` or
    /// `EACCES` for an address that cannot be listened on. Several mistakes have the code of the
    /// first. [`DataError::code`](crate::DataError::code) and
    /// [`StoreError::code`](crate::store::StoreError::code) have `ZONDA_RECORD` and `ZONDA_STORE`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Pattern(..) => "ZONDA_PATTERN",
            Self::Name(..) | Self::ZoneText(_) | Self::ZoneFile(..) | Self::Zones(_) => {
                "ZONDA_ZONE"
            }
            Self::QueryName(..) | Self::Client(_) => "ZONDA_QUERY",
            Self::Silence => "ZONDA_NO_REPLY",
            Self::Config(_) | Self::Handler(..) => "ZONDA_CONFIG",
            Self::Mistakes(mistakes) => mistakes.first().map_or("ZONDA_CONFIG", Self::code),
            Self::Serve(error) => error.code(),
            Self::Stopped => "ZONDA_STATE",
            Self::Thread(_) | Self::Publisher => "ZONDA_SERVER",
        }
    }

    /// Makes the error of the server's.
    pub(crate) fn of_server(error: &ServerError) -> Self {
        let ProgramError { text, listen, .. } = error.into();
        let system =
            listen.map(|(address, number)| (address, io::Error::from_raw_os_error(number)));
        Self::Serve(match error {
            ServerError::Zones(failed) => return Self::Zones(failed.clone()),
            ServerError::Listen(_) | ServerError::NodeLocal(_) => {
                ServeError::Listen(ListenError { text, system })
            }
            ServerError::HandOver(_) => ServeError::HandOver(text),
            ServerError::Descriptors(_) => ServeError::Descriptors(text),
            ServerError::Privileges(_) => ServeError::Privileges(text),
            ServerError::Admin(_) => ServeError::Admin(text),
            ServerError::State(_) => ServeError::State(text),
            ServerError::Start(error) => ServeError::Start(copy_of(error)),
            ServerError::Worker(name) => ServeError::Worker(name.clone()),
            ServerError::Down(names) => ServeError::Down(names.clone()),
        })
    }

    /// Returns all mistakes in one error.
    pub(crate) fn all(mut mistakes: Vec<Self>) -> Self {
        match mistakes.pop() {
            Some(mistake) if mistakes.is_empty() => mistake,
            last => {
                mistakes.extend(last);
                Self::Mistakes(mistakes)
            }
        }
    }
}

impl From<ServeError> for Error {
    fn from(error: ServeError) -> Self {
        Self::Serve(error)
    }
}

/// Returns an error of the system once more.
fn copy_of(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(number) => io::Error::from_raw_os_error(number),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_failure_that_stops_a_server_is_told_by_its_kind_and_code_as_often_as_asked() {
        let worker = ServerError::Worker("udp-0".to_owned());
        let start = ServerError::Start(io::Error::from_raw_os_error(24)); // too many open files
        for _ in 0..2 {
            let error = Error::of_server(&worker);
            assert_eq!(error.code(), "ZONDA_SERVER");
            assert_eq!(error.to_string(), "udp-0 failed too often; the server has stopped");
            let Error::Serve(ServeError::Start(error)) = Error::of_server(&start) else {
                panic!("{start}");
            };
            assert_eq!(error.raw_os_error(), Some(24));
        }
    }
}
