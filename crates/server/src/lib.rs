//! Builds and runs the server: sockets, zones, reload, metrics, control.
//!
//! ```text
//! Config ─► listen ─► Sockets ─► workers, TCP ◄── snapshot ── publish ◄─ zone set ◄─ load ◄─ files
//!                                                                ▲
//!                       signals, watch, admin interface ─► control
//! ```
//!
//! Deliberately absent: what an answer is (engine), and the command line.

#![cfg_attr(
    not(feature = "whole"),
    allow(
        dead_code,
        unused_imports,
        reason = "much is there for the administrative interface alone"
    )
)]

#[cfg(feature = "whole")]
mod admin;
#[cfg(not(feature = "whole"))]
#[path = "no_admin.rs"]
mod admin;
mod alias_expansion;
mod alias_targets;
mod atomic_file;
mod cache_file;
mod check;
pub mod client;
mod code_updates;
mod control;
mod delegations;
mod directory_reader;
mod edit;
mod engine_counters;
mod engines;
#[cfg(feature = "whole")]
mod explain;
mod failed_zones;
mod feed;
mod forwards;
mod handover;
mod listen;
mod listeners;
mod load;
mod load_error;
mod load_time;
mod local;
mod log;
mod log_budget;
mod log_events;
mod look_schedule;
#[cfg(feature = "whole")]
mod node_local;
#[cfg(not(feature = "whole"))]
#[path = "no_node_local.rs"]
mod node_local;
mod notify;
mod numbers;
mod overrides;
mod program;
mod program_config;
mod program_error;
mod publish;
mod query_log;
mod record_line;
mod rights;
mod run;
mod running;
mod serve_error;
mod settings;
mod settle;
mod shared_ports;
mod signals;
#[cfg(test)]
mod small_zones;
mod stamp;
mod state_directory;
#[cfg(feature = "whole")]
mod steering;
#[cfg(not(feature = "whole"))]
#[path = "no_steering.rs"]
mod steering;
mod stop;
mod texts;
mod threads;
mod unit_states;
mod units;
mod update;
mod views;
mod watchdog;
mod zone_commands;
mod zone_set;
mod zone_set_view;

pub use check::{CheckReport, check, check_text};
pub use code_updates::{CodeChange, CodeTable, CodeUpdates, RouteTable};
pub use edit::flush::FlushError;
pub use edit::{Edit, EditError};
pub use failed_zones::{FailedZone, failed_text};
pub use feed::stores::Stores;
pub use log::{StandardError, flush_log, flush_log_to_reader};
pub use log_budget::LogBudget;
pub use log_events::{LogCollector, LogEvent, LogReader};
pub use program::{
    Code, ConfigWatch, LastReading, Logger, OwnReply, Program, RuntimeHandle, SetLogLevel,
    failed_in_code, read_config, zones_in_code,
};
pub use program_config::{ConfigChangeError, ProgramConfig};
pub use program_error::{ErrorCode, ProgramError};
pub use publish::{PublisherFailed, Publishing};
pub use query_log::Rfc3339;
pub use record_line::{RecordLine, RecordLineError};
pub use run::{Options, serve};
pub use running::Server;
pub use serve_error::ServeError;
pub use texts::Texts;
pub use zonda_engine::VersionOrigin;
pub use zonda_netio::MemoryFile;

/// The version of the server.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
