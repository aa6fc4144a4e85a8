//! What is done in a round.

use serde::Deserialize;
use zonda_wire::Opcode;

/// What is done in a round, and what counts as one of its queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// Queries are sent.
    #[default]
    Queries,
    /// Dynamic updates are sent, in the form of [`crate::load::queries`].
    Updates,
    /// A client transfers the zones that are asked for, one after the other.
    TransferOut,
    /// The server is started with empty hands, and transfers its zones.
    TransferIn,
    /// The server is started anew with what it has on its disk.
    Restart,
    /// Updates are sent to the primary, each when the server has the serial of the former one.
    Propagation,
    /// All zones get another serial, of which the server is notified.
    Notify,
}

impl Task {
    /// Returns what one query of a round is, if it is not a query.
    pub fn unit(self) -> Option<&'static str> {
        match self {
            Self::Queries => None,
            Self::Updates => Some("update"),
            Self::TransferOut => Some("transfer"),
            Self::TransferIn | Self::Restart | Self::Notify => Some("zone"),
            Self::Propagation => Some("change"),
        }
    }

    /// Returns the operation of the messages that are sent.
    pub fn operation(self) -> Opcode {
        match self {
            Self::Updates | Self::Propagation => Opcode::UPDATE,
            Self::Notify => Opcode::NOTIFY,
            _ => Opcode::QUERY,
        }
    }

    /// Whether load that does not count may go before a round: it changes no zone.
    pub fn is_warmed_up(self) -> bool {
        self == Self::Queries
    }

    /// Whether a round is a start of the server.
    pub fn is_start(self) -> bool {
        matches!(self, Self::TransferIn | Self::Restart)
    }

    /// Whether servers may write to the files of their zones, so that each has its own.
    pub fn writes_zones(self) -> bool {
        matches!(self, Self::Updates | Self::Propagation)
    }
}
