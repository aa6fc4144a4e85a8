//! Queries over QUIC: a stream for each (rfc9250).
//!
//! A query is sent under id 0, its length before it, and its stream ended; the answer comes the
//! same way. An abandoned query stops its stream. A server that breaks the rules loses the
//! connection (rfc9250#4.3.3), but one that stops a query which has been sent whole does not: some
//! servers do so once they have read as much as its length says.
//!
//! Deliberately absent: 0-RTT, since an attacker can replay what is sent with it (rfc9250#4.5), and
//! the round trip is spared by keeping connections open; responses in more than one message, which
//! only zone transfers need.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use crate::doq::{self, RULES};
use crate::fault::Fault;
use crate::intake::Intake;
use crate::session::MESSAGE_BYTES_MAX;
use crate::tls::Tls;
use crate::usage::Usage;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{
    ClientConfig, Connection, ConnectionError, Endpoint, ReadError, ReadToEndError, RecvStream,
    TransportConfig, TransportErrorCode, VarInt, WriteError,
};
use rustls::AlertDescription;
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// What TLS calls DNS over QUIC (rfc9250#4.1.1).
const ALPN: &[u8] = b"doq";
/// How long a connection stays open unused; servers may say less.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// Octets of answers under way at a time, in all streams: a few of the largest.
const WINDOW_BYTES: u32 = 1 << 20;
/// Octets of a stream's answer, with its length.
const STREAM_BYTES_MAX: usize = 2 + MESSAGE_BYTES_MAX;
/// The peer has broken the rules: DOQ_PROTOCOL_ERROR (rfc9250#8.4).
const PROTOCOL_ERROR: VarInt = VarInt::from_u32(2);
/// A query is not waited for any more: DOQ_REQUEST_CANCELLED.
const REQUEST_CANCELLED: VarInt = VarInt::from_u32(3);

/// The peer sends more than is asked for: DOQ_EXCESSIVE_LOAD.
const EXCESSIVE_LOAD: VarInt = VarInt::from_u32(4);
/// The shortest round-trip time that is expected of a server which was asked before.
const ROUND_TRIP_MIN: Duration = Duration::from_millis(20);
/// The longest round trip, which is assumed at first (rfc9002#6.2.2).
const ROUND_TRIP_MAX: Duration = Duration::from_millis(333);
/// How often it is looked at how much was received. QUIC reads on its own.
const WATCH_EVERY: Duration = Duration::from_millis(250);

/// A QUIC connection.
#[derive(Debug)]
pub struct QuicSession {
    connection: Connection,
    /// Configuration that notes the round-trip time.
    tls: Arc<Tls>,
    usage: Usage,
    /// Count of received octets.
    intake: Arc<Intake>,
    /// Task that closes the connection when that is too much.
    watcher: JoinHandle<()>,
    /// Whether TLS has resumed an earlier session.
    is_resumed: bool,
}

impl QuicSession {
    /// Connects.
    ///
    /// # Errors
    /// Why there is no connection.
    pub async fn open(address: SocketAddr, tls: &Arc<Tls>) -> Result<Self, Fault> {
        let any: IpAddr = match address {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        // A port for each connection, which an attacker has to guess to disturb it.
        let endpoint = Endpoint::client((any, 0).into())?;
        // What is left of an earlier connection. While two addresses are dialed at a time, one may
        // get what was found for the other, which then errs in words and counters only.
        let _ = tls.take_verdict();
        let connecting = endpoint
            .connect_with(client_config(tls), address, &tls.name().to_str())
            .map_err(|_| Fault::Unreachable(io::ErrorKind::AddrNotAvailable))?;
        match (connecting.await, tls.take_verdict()) {
            (Ok(connection), verdict) => {
                let (intake, usage) = (Arc::new(Intake::default()), Usage::new());
                let _ = intake.receive_in_all(connection.stats().udp_rx.bytes);
                intake.begin();
                let watcher = tokio::spawn(watch(connection.clone(), Arc::clone(&intake)));
                let is_resumed = verdict.is_none();
                let tls = Arc::clone(tls);
                Ok(Self { connection, tls, usage, intake, watcher, is_resumed })
            }
            (Err(_), Some(Err(distrust))) => Err(distrust.into()),
            (Err(error), _) => Err(error.into()),
        }
    }

    /// Sends a query; see [`Session::ask`](crate::Session::ask).
    pub async fn ask(&self, query: &[u8]) -> Result<Vec<u8>, Fault> {
        let (asked, mut asking) = (self.usage.ask()?, self.intake.ask());
        let (query, id) = doq::frame(query)?;
        let answer = self.exchange(&query).await;
        let answer = answer.and_then(|octets| doq::unframe(&octets, id));
        // Before it pays for its answer, that must have been received; the watcher sees the rest.
        let _ = self.intake.receive_in_all(self.connection.stats().udp_rx.bytes);
        asking.answered(answer.as_ref().map_or(0, Vec::len));
        match answer {
            Err(Fault::Rules(_)) => self.connection.close(PROTOCOL_ERROR, b""),
            Err(Fault::Closed) => {}
            _ => {
                self.tls.note_round_trip(self.connection.rtt());
                asked.answered();
            }
        }
        answer
    }

    /// Sends octets over a stream of their own, and returns all that comes back.
    async fn exchange(&self, octets: &[u8]) -> Result<Vec<u8>, Fault> {
        let streams = self.connection.open_bi().await;
        let (mut sending, receiving) = streams.map_err(|_| Fault::Closed)?;
        let mut receiving = AnswerStream(receiving);
        sending.write_all(octets).await?;
        let _ = sending.finish(); // only a stream that was stopped cannot be
        Ok(receiving.0.read_to_end(STREAM_BYTES_MAX).await?)
    }

    /// Says whether queries are taken; see [`Session::is_open`](crate::Session::is_open).
    pub fn is_open(&self) -> bool {
        self.connection.close_reason().is_none() && self.usage.is_open()
    }

    /// Says whether the server seems dead; see [`Session::is_stalled`](crate::Session::is_stalled).
    pub fn is_stalled(&self) -> bool {
        self.connection.close_reason().is_none() && self.usage.is_stalled()
    }

    /// Counts waiting queries; see [`Session::waiting`](crate::Session::waiting).
    pub fn waiting(&self) -> usize {
        self.usage.waiting()
    }

    /// Says whether the server sent too much; see
    /// [`Session::is_flooded`](crate::Session::is_flooded).
    pub fn is_flooded(&self) -> bool {
        self.intake.is_flooded()
    }

    /// Says whether TLS resumed a session; see [`Session::is_resumed`](crate::Session::is_resumed).
    pub fn is_resumed(&self) -> bool {
        self.is_resumed
    }
}

impl Drop for QuicSession {
    fn drop(&mut self) {
        self.watcher.abort(); // it holds the connection open
    }
}

/// Closes a connection when more has come than its queries need.
async fn watch(connection: Connection, intake: Arc<Intake>) {
    loop {
        tokio::select! {
            _ = connection.closed() => return,
            () = sleep(WATCH_EVERY) => {}
        }
        if intake.receive_in_all(connection.stats().udp_rx.bytes).is_err() {
            return connection.close(EXCESSIVE_LOAD, b"");
        }
    }
}

/// Returns the QUIC configuration for a server, which may open no streams of its own
/// (rfc9250#4.3.3).
fn client_config(tls: &Tls) -> ClientConfig {
    let crypto = QuicClientConfig::try_from(tls.config_for(ALPN))
        .expect("the provider has the cipher that QUIC begins with");
    let idle_max = IDLE_MAX.try_into().expect("seconds are few enough for QUIC");
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(0_u32.into())
        .max_concurrent_uni_streams(0_u32.into())
        .datagram_receive_buffer_size(None)
        .receive_window(WINDOW_BYTES.into())
        .max_idle_timeout(Some(idle_max));
    if let Some(time) = tls.round_trip() {
        // The first packet is repeated after three times this (rfc9002#6.2.2): a server that
        // restarts hears the next one soon.
        transport.initial_rtt(time.clamp(ROUND_TRIP_MIN, ROUND_TRIP_MAX));
    }
    let mut config = ClientConfig::new(Arc::new(crypto));
    config.transport_config(Arc::new(transport));
    config
}

/// A stream that is stopped, when its answer is not waited for any more (rfc9250#4.3.1).
struct AnswerStream(RecvStream);

impl Drop for AnswerStream {
    fn drop(&mut self) {
        let _ = self.0.stop(REQUEST_CANCELLED); // it may have ended
    }
}

impl From<ConnectionError> for Fault {
    fn from(error: ConnectionError) -> Self {
        match error {
            ConnectionError::TimedOut => Self::Late,
            ConnectionError::TransportError(error) => match alert(error.code) {
                Some(_) => Self::Handshake(rustls::Error::General(error.reason)),
                None => Self::Rules("QUIC"),
            },
            ConnectionError::ConnectionClosed(close) => match alert(close.error_code) {
                Some(alert) => Self::Handshake(rustls::Error::AlertReceived(alert)),
                None => Self::Closed,
            },
            ConnectionError::VersionMismatch => Self::Rules("QUIC"),
            _ => Self::Closed,
        }
    }
}

impl From<WriteError> for Fault {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Stopped(code) => Self::Aborted(code.into_inner()),
            WriteError::ConnectionLost(error) => error.into(),
            _ => Self::Closed,
        }
    }
}

impl From<ReadToEndError> for Fault {
    fn from(error: ReadToEndError) -> Self {
        match error {
            ReadToEndError::TooLong => RULES,
            ReadToEndError::Read(ReadError::Reset(code)) => Self::Aborted(code.into_inner()),
            ReadToEndError::Read(ReadError::ConnectionLost(error)) => error.into(),
            ReadToEndError::Read(_) => Self::Closed,
        }
    }
}

/// Returns the alert of TLS in a code of QUIC.
fn alert(code: TransportErrorCode) -> Option<AlertDescription> {
    match u64::from(code) {
        code @ 0x100..=0x1ff => Some((code as u8).into()),
        _ => None,
    }
}
