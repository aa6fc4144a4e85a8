//! The sections and keys of logs.

use crate::section::section;
use crate::value::{LogFormat, LogLevel, LogOutcome, Output, Toggle};
use zonda_wire::Name;

section! {
    /// The server's log, on standard error.
    pub struct Log: Table "log", Reload;

    /// How a line is written. Changes take effect at a restart.
    format: LogFormat = "text";
    /// The least important events that are logged.
    level: LogLevel = "info";
}

section! {
    /// One line for each query. Lines that cannot be written in time are dropped and counted, so
    /// that the log never slows an answer.
    pub struct QueryLog: Table "query-log", Reload;

    /// Where the lines go.
    output: Toggle<Output> = "off";
    /// How a line is written.
    format: LogFormat = "text";
    /// Queries that are logged, by what became of them: `success` is NOERROR with records, or to
    /// what asks for none; `denial` is NXDOMAIN, or NOERROR without records; `error` is any other
    /// code, or no reply.
    outcomes: Vec<LogOutcome> = "success, denial, error";
    /// Names that are logged, with all names below them. Unset: all.
    zones: Vec<Name>, like "example.com";
    /// Names that are not logged, with all names below them, but for those in `zones` below.
    except: Vec<Name>, like "cluster.local";
    /// Log one query in so many of these.
    sample: u32 = "1", from "1" to "1000000";
    /// Lines that may wait to be written.
    capacity: u32 = "65536", from "64" to "16777216";
}
