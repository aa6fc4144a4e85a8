//! One probe of a target, over real sockets.
//!
//! What a target sends is hostile until it has been judged: every read has a bound, and a target
//! that sends for ever is cut off by the timeout.

mod command;
mod connect;
mod dns;
mod exchange;
mod file;
mod grpc;
mod http1;
mod http2;
mod icmp;
mod tls;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::check::{HttpCheck, HttpVersion, Kind, Target, TlsError};
use crate::outcome::{Fault, Outcome, Proof, Step, Success};
use connect::Endpoint;
use tls::Connector;

pub(crate) use tls::TlsConfigs;

/// A probe that is ready to run, any number of times: a target, with what TLS needs.
#[derive(Clone, Debug)]
pub struct Probe {
    target: Target,
    /// TLS of the check; `None` where it uses none.
    connector: Option<Arc<Connector>>,
}

impl Probe {
    /// Makes a probe.
    ///
    /// # Errors
    /// When the settings of TLS cannot be used for this target.
    pub fn new(target: &Target) -> Result<Self, TlsError> {
        Self::with_configs(target, &mut TlsConfigs::default())
    }

    /// Makes a probe that shares the configuration of TLS with other probes of the same settings.
    pub(crate) fn with_configs(
        target: &Target,
        configs: &mut TlsConfigs,
    ) -> Result<Self, TlsError> {
        let connector = Connector::of(target, configs)?.map(Arc::new);
        Ok(Self { target: target.clone(), connector })
    }

    /// Returns the target.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Probes once, on the caller's tokio runtime with time and I/O. A check of a pushed value has
    /// nothing to probe: [`Prober::push`](crate::Prober::push) brings its results.
    pub async fn run(&self, time_max: Duration) -> Outcome {
        let progress = Progress::default();
        match timeout(time_max, self.attempt(&progress)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Fault::Timeout(progress.step())),
        }
    }

    /// Probes without a limit of time.
    ///
    /// Only the cheapest checks have their state in place; the state of the rest is allocated, so
    /// that it is not moved with each probe of those.
    async fn attempt(&self, progress: &Progress) -> Outcome {
        let (target, endpoint) = (&self.target, Endpoint::of(&self.target));
        match &target.check.kind {
            Kind::Tcp => endpoint.connect().await.map(|_| Proof::Connection.into()),
            Kind::Http(check) if check.is_plain() => {
                let stream = endpoint.connect().await?;
                progress.enter(Step::Reply);
                let status = http1::ask(check, target, stream).await?;
                Ok(Proof::Status(status).into())
            }
            Kind::Icmp => {
                progress.enter(Step::Reply);
                icmp::ask(&endpoint).await.map(|()| Proof::Echo.into())
            }
            Kind::UdpExchange(check) => {
                progress.enter(Step::Reply);
                Box::pin(exchange::over_udp(check, &endpoint)).await.map(|()| Proof::Reply.into())
            }
            Kind::Dns(check) => {
                progress.enter(Step::Reply);
                let rcode = Box::pin(dns::ask(check, &endpoint)).await?;
                Ok(Proof::Dns(rcode).into())
            }
            Kind::Command(check) => {
                progress.enter(Step::Reply);
                let line = Box::pin(command::run(check, target)).await?;
                Ok(Proof::Exit(line).into())
            }
            Kind::File(check) => {
                progress.enter(Step::Reply);
                Box::pin(file::ask(&check.path)).await.map(|()| Proof::File.into())
            }
            Kind::Push(_) => Err(Fault::NeverPushed),
            Kind::Tls(_) | Kind::Http(_) | Kind::Grpc(_) | Kind::TcpExchange(_) => {
                let stream = endpoint.connect().await?;
                Box::pin(self.converse(stream, progress)).await
            }
        }
    }

    /// Does what a check does over a connection, with TLS if the check has settings of it.
    async fn converse(&self, stream: TcpStream, progress: &Progress) -> Outcome {
        let Some(connector) = &self.connector else {
            progress.enter(Step::Reply);
            return self.ask(stream).await.map(Success::from);
        };
        let (stream, days) = connector.handshake(stream, progress).await?;
        progress.enter(Step::Reply);
        let proof = self.ask(stream).await?;
        Ok(Success { proof, certificate_days: Some(days) })
    }

    /// Asks what the check asks over a stream.
    async fn ask(&self, stream: impl AsyncRead + AsyncWrite + Unpin) -> Result<Proof, Fault> {
        let target = &self.target;
        match &target.check.kind {
            Kind::Http(check) => http(check, target, stream).await.map(Proof::Status),
            Kind::Grpc(check) => grpc::ask(check, target, stream).await.map(|()| Proof::Serving),
            Kind::TcpExchange(check) => {
                exchange::over_tcp(check, stream).await.map(|()| Proof::Reply)
            }
            Kind::Tls(_) => Ok(Proof::Handshake),
            _ => Ok(Proof::Connection),
        }
    }
}

/// Sends the request of a check in its version of HTTP; returns the status of the response.
async fn http(
    check: &HttpCheck,
    target: &Target,
    stream: impl AsyncRead + AsyncWrite + Unpin,
) -> Result<u16, Fault> {
    match check.version() {
        HttpVersion::Http1 => http1::ask(check, target, stream).await,
        HttpVersion::Http2 => http2::ask(check, target, stream).await,
    }
}

/// The step that a probe has come to, for the words of its timeout.
#[derive(Debug, Default)]
struct Progress(AtomicU8);

impl Progress {
    /// Records that a step begins.
    fn enter(&self, step: Step) {
        self.0.store(step as u8, Relaxed);
    }

    /// Returns the step that is under way.
    fn step(&self) -> Step {
        [Step::Connect, Step::Handshake, Step::Reply]
            .into_iter()
            .find(|step| *step as u8 == self.0.load(Relaxed))
            .unwrap_or(Step::Connect)
    }
}
