//! One connection to a server, whatever its transport.

use crate::fault::Fault;
#[cfg(feature = "encrypted")]
use crate::https::HttpsSession;
#[cfg(feature = "encrypted")]
use crate::quic::QuicSession;
use crate::stream::StreamSession;
use crate::target::{Protocol, Target};
#[cfg(not(feature = "encrypted"))]
use crate::tls::{NoSession as HttpsSession, NoSession as QuicSession};

/// Octets of the longest message.
pub(crate) const MESSAGE_BYTES_MAX: usize = u16::MAX as usize;

/// A connection to a server. Dropping it closes it.
#[derive(Debug)]
pub enum Session {
    /// A connection over TCP or TLS.
    Stream(StreamSession),
    /// A connection over HTTPS.
    Https(HttpsSession),
    /// A connection over QUIC.
    Quic(QuicSession),
}

impl Session {
    /// Connects. The caller limits how long that may take.
    ///
    /// # Errors
    /// Why there is no connection.
    pub async fn open(target: &Target) -> Result<Self, Fault> {
        match &target.protocol {
            Protocol::Tcp => Ok(Self::Stream(StreamSession::open(target.address, None).await?)),
            Protocol::Tls(tls) => {
                Ok(Self::Stream(StreamSession::open(target.address, Some(tls)).await?))
            }
            #[cfg(feature = "encrypted")]
            Protocol::Https { tls, url } => {
                Ok(Self::Https(HttpsSession::open(target.address, tls, url).await?))
            }
            #[cfg(feature = "encrypted")]
            Protocol::Quic(tls) => Ok(Self::Quic(QuicSession::open(target.address, tls).await?)),
            #[cfg(not(feature = "encrypted"))]
            Protocol::Https { tls, .. } | Protocol::Quic(tls) => tls.never(),
        }
    }

    /// Sends a query, beside other queries, and returns the answer under the query's id. Whether it
    /// is for the query's question is not looked at. The caller limits how long that may take, and
    /// may drop the future at any time.
    ///
    /// # Errors
    /// Why there is no answer: [`Fault::Closed`] when the connection ended meanwhile.
    pub async fn ask(&self, query: &[u8]) -> Result<Vec<u8>, Fault> {
        let answer = match self {
            Self::Stream(session) => session.ask(query).await,
            Self::Https(session) => session.ask(query).await,
            Self::Quic(session) => session.ask(query).await,
        };
        // What reads says only that the connection has ended.
        answer.map_err(|fault| if self.is_flooded() { Fault::Flood } else { fault })
    }

    /// Whether the server has sent unsolicited data, so that the connection is closed.
    pub fn is_flooded(&self) -> bool {
        match self {
            Self::Stream(session) => session.is_flooded(),
            Self::Https(session) => session.is_flooded(),
            Self::Quic(session) => session.is_flooded(),
        }
    }

    /// Answers to abandoned queries, as far as the transport can distinguish them from other
    /// messages.
    pub fn late(&self) -> u64 {
        match self {
            Self::Stream(session) => session.late(),
            Self::Https(_) | Self::Quic(_) => 0, // an abandoned query is cancelled there
        }
    }

    /// Whether the session takes queries: neither side has closed it, and the server does not seem
    /// to be dead.
    pub fn is_open(&self) -> bool {
        match self {
            Self::Stream(session) => session.is_open(),
            Self::Https(session) => session.is_open(),
            Self::Quic(session) => session.is_open(),
        }
    }

    /// Whether neither side has closed it, but it seems to be dead.
    pub fn is_stalled(&self) -> bool {
        match self {
            Self::Stream(session) => session.is_stalled(),
            Self::Https(session) => session.is_stalled(),
            Self::Quic(session) => session.is_stalled(),
        }
    }

    /// Counts the queries that wait for their answers.
    pub fn waiting(&self) -> usize {
        match self {
            Self::Stream(session) => session.waiting(),
            Self::Https(session) => session.waiting(),
            Self::Quic(session) => session.waiting(),
        }
    }

    /// Whether TLS has resumed an earlier session.
    pub fn is_resumed(&self) -> bool {
        match self {
            Self::Stream(session) => session.is_resumed(),
            Self::Https(session) => session.is_resumed(),
            Self::Quic(session) => session.is_resumed(),
        }
    }
}

/// Puts an id into a message and returns the one that was there.
pub(crate) fn replace_id(message: &mut [u8], id: [u8; 2]) -> Result<[u8; 2], Fault> {
    let place = message.first_chunk_mut().ok_or(Fault::Malformed)?;
    Ok(std::mem::replace(place, id))
}
