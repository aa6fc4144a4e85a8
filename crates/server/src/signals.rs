//! The signals of the process.

use std::io;
use std::pin::Pin;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Sleep;

/// Whether the process's signals are for the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signals {
    /// SIGHUP reloads, SIGTERM and SIGINT stop.
    Handled,
    /// The program that the server runs in handles them.
    Ignored,
}

/// The signals that the server listens to.
pub struct SignalStreams {
    /// SIGHUP, which reloads.
    pub hangup: Option<Signal>,
    /// SIGTERM, which stops.
    pub terminate: Option<Signal>,
    /// SIGINT, which stops.
    pub interrupt: Option<Signal>,
}

impl SignalStreams {
    /// Catches all signals, or none.
    ///
    /// # Errors
    /// When the system refuses to deliver one.
    pub fn of(signals: Signals) -> io::Result<Self> {
        if signals == Signals::Ignored {
            return Ok(Self { hangup: None, terminate: None, interrupt: None });
        }
        Ok(Self {
            hangup: Some(signal(SignalKind::hangup())?),
            terminate: Some(signal(SignalKind::terminate())?),
            interrupt: Some(signal(SignalKind::interrupt())?),
        })
    }
}

/// Waits until a time has passed; forever, if there is none.
pub async fn passed(time: Option<Pin<&mut Sleep>>) {
    match time {
        Some(time) => time.await,
        None => std::future::pending().await,
    }
}

/// Waits for a signal; forever, if it is not listened to.
pub async fn caught(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => _ = signal.recv().await,
        None => std::future::pending().await,
    }
}
