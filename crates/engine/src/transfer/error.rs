//! Why a transfer ends before it is whole.

use crate::reason::Reason;
use std::fmt;
use zonda_wire::{Name, Type};

/// Why a transfer ends before it is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransferError {
    /// A record does not fit into any message.
    TooLarge(Type),
    /// The transfer has taken longer than it may.
    TimeOut,
    /// A cluster has more records than a zone can have.
    TooMany,
    /// The addresses that stand in for an ALIAS record are not known.
    UnknownAddresses {
        /// The name that has the record.
        owner: Name,
        /// The type of the addresses, A or AAAA.
        qtype: Type,
        /// Why a query for them would not be answered; none while they are being fetched.
        reason: Option<Reason>,
    },
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge(rtype) => write!(f, "a record {rtype} does not fit into any message"),
            Self::TimeOut => f.write_str("it has taken longer than `time-max` of [transfers]"),
            Self::TooMany => f.write_str("the cluster has more records than a zone can have"),
            Self::UnknownAddresses { owner, qtype, reason } => {
                write!(
                    f,
                    "the addresses ({qtype}) of the ALIAS record of {owner} are not known: "
                )?;
                f.write_str(
                    reason.map_or(
                        "upstreams have given no answer that is cached in time",
                        Reason::name,
                    ),
                )
            }
        }
    }
}

impl std::error::Error for TransferError {}
