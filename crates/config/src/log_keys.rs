//! The sections and keys of logs.

use crate::section::section;
use crate::value::{LogFormat, LogLevel, Output, Toggle};

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
    /// Log one query in so many.
    sample: u32 = "1", from "1" to "1000000";
    /// Lines that may wait to be written.
    capacity: u32 = "65536", from "64" to "16777216";
}
