//! Errors of a server as programs in other languages tell them apart.

use crate::serve_error::ServeError;
use std::fmt;
use std::net::SocketAddr;

/// Why the server of a program cannot do what the program asked for, or had to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramError {
    /// Kind of the error.
    pub code: ErrorCode,
    /// What is wrong and what to do, a line for each mistake.
    pub text: String,
    /// The address that cannot be listened on, and the system's number of the error.
    pub listen: Option<(SocketAddr, i32)>,
}

/// Kinds of errors that programs tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    /// The configuration, or an option of the app, is wrong.
    Config,
    /// A zone cannot be loaded.
    Zone,
    /// The server cannot start for another reason, or had to stop.
    Server,
}

impl ErrorCode {
    /// Returns the code as programs see it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Config => "ZONDA_CONFIG",
            Self::Zone => "ZONDA_ZONE",
            Self::Server => "ZONDA_SERVER",
        }
    }
}

impl ProgramError {
    /// Makes an error of a kind.
    #[must_use]
    pub fn new(code: ErrorCode, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), listen: None }
    }
}

impl From<&ServeError> for ProgramError {
    fn from(error: &ServeError) -> Self {
        let code = match error {
            ServeError::Zones(_) => ErrorCode::Zone,
            _ => ErrorCode::Server,
        };
        let listen = match error {
            ServeError::Listen(error) => error.system_error(),
            _ => None,
        };
        Self { code, text: error.to_string(), listen }
    }
}

impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for ProgramError {}
