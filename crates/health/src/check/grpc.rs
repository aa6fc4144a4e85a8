//! Checks by the gRPC health service.

use http::uri::Authority;

use super::http::host_name;
use super::{CheckError, TlsSettings};

/// Octets that the name of a service can have.
const SERVICE_BYTES_MAX: usize = 255;

/// A call of `grpc.health.v1.Health/Check`, which must say SERVING.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GrpcCheck {
    /// Name of the service; empty for the server as a whole.
    service: Box<str>,
    /// Host of the request and name for TLS; `None` for the target's address.
    host: Option<Authority>,
    /// Settings of TLS; `None` for HTTP/2 without it.
    pub(crate) tls: Option<TlsSettings>,
}

impl GrpcCheck {
    /// Returns a check of a service, or with an empty name of the server as a whole.
    ///
    /// # Errors
    /// When the name is longer than 255 octets.
    pub fn new(service: &str) -> Result<Self, CheckError> {
        if service.len() > SERVICE_BYTES_MAX {
            return Err(CheckError::Service);
        }
        Ok(Self { service: service.into(), host: None, tls: None })
    }

    /// Sets the host of the request, which is the name for TLS, too.
    ///
    /// # Errors
    /// When this can be no host.
    pub fn with_host(self, host: &str) -> Result<Self, CheckError> {
        let host: Authority = host.parse().map_err(|_| CheckError::Host)?;
        if host.host().is_empty() || host.as_str().contains('@') {
            return Err(CheckError::Host);
        }
        Ok(Self { host: Some(host), ..self })
    }

    /// Lets the check use TLS.
    #[must_use]
    pub fn with_tls(self, tls: TlsSettings) -> Self {
        Self { tls: Some(tls), ..self }
    }

    /// Returns the name of the service.
    #[must_use]
    pub fn service(&self) -> &str {
        &self.service
    }

    /// Returns the host without its port and brackets, if it is set.
    pub(crate) fn host_name(&self) -> Option<&str> {
        self.host.as_ref().map(host_name)
    }

    /// Returns the host of the request, if it is set.
    pub(crate) fn host(&self) -> Option<&Authority> {
        self.host.as_ref()
    }
}
