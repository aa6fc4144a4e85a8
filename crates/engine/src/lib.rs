//! From the bytes of a query to the bytes of its reply.
//!
//! ```text
//! Message ─► Query ─► plan: gates ► sources ► rate ─► epilogue ─► the same buffer
//! ```
//!
//! An [`Engine`] belongs to one thread. It never blocks, reads no clock, allocates nothing once it
//! exists and takes no lock: what workers share is a [`Snapshot`] that is swapped whole, and the
//! table of the rate gate, which is made of atomics.
//!
//! Deliberately absent: sockets, files, and the way snapshots come to be.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod access;
mod alias_expansion;
mod alias_lookup;
mod answer;
mod answer_below;
mod answer_facts;
mod ask;
mod checkpoint;
mod client_rule;
mod client_subnet;
pub mod code;
pub mod counters;
mod defer;
mod deferral;
mod engine;
mod epilogue;
pub mod gate;
pub mod grant;
mod hot;
mod kept_query;
pub mod labels;
mod message;
pub mod name_table;
pub mod notify;
mod observer;
mod opt;
mod option_codes;
mod plan;
mod prelude;
mod prepared;
mod reason;
mod resumption;
mod reuse;
mod sent_reply;
mod signature;
mod snapshot;
mod source;
pub mod steering;
mod target_memory;
mod transfer;
mod update;
mod upstream_options;
mod verdict;
mod worker;
pub mod zones;

pub use alias_lookup::{AliasAddresses, AliasLookup, AliasQuestion};
pub use answer_facts::{AnswerBelow, AnswerFacts};
pub use checkpoint::{Checkpoint, ZoneCheckpoint};
pub use deferral::{Deferral, Outcome, QueueId, To, UpdateOutcome, UpstreamAnswer};
pub use engine::Engine;
pub use message::{Batch, Message, Now, Peer, Single, Transport};
pub use observer::{Event, Observer, SentAnswer};
pub use opt::TEXT_BYTES_MAX;
pub use option_codes::{OptionCodes, UPSTREAM_OPTIONS_MAX};
pub use prelude::Prelude;
pub use reason::Reason;
pub use resumption::{DeferredQuery, HandlerOutcome, Resumption};
pub use reuse::{NotReused, Reuse};
pub use snapshot::{Settings, Snapshot, Views};
pub use source::data::fetched_name;
pub use transfer::{HistoryLimits, VersionMark, VersionOrigin, ZoneHistory};
pub use transfer::{RefusedTransfer, RunningTransfer, Transfer, TransferCounts, TransferError};
pub use transfer::{TransferRefusal, TransferSettings, TransferState, WholeZoneReason};
pub use update::UPDATE_FUDGE_SECS;
pub use upstream_options::{Client, ClientFacts, OptionData, UpstreamOption, UpstreamOptions};
