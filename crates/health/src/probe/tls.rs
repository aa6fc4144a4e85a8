//! TLS with targets.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{Progress, connect};
use crate::check::{HttpVersion, Kind, Target, TlsError, TlsSettings, Trust};
use crate::decode::not_after_days;
use crate::outcome::{Distrust, Fault, Step};

/// What ALPN calls HTTP/1.1.
const HTTP1: &[u8] = b"http/1.1";
/// What ALPN calls HTTP/2.
const HTTP2: &[u8] = b"h2";

/// The TLS of one target's check.
#[derive(Clone)]
pub struct Connector {
    config: Arc<ClientConfig>,
    /// Name that is sent and that the certificate must show.
    name: ServerName<'static>,
    /// Fewest days until the certificate ends.
    days_min: u16,
}

impl Connector {
    /// Returns the TLS of a target, if its check uses any.
    ///
    /// # Errors
    /// When the settings cannot be used.
    pub fn of(target: &Target, configs: &mut TlsConfigs) -> Result<Option<Self>, TlsError> {
        let kind = &target.check.kind;
        let Some(settings) = kind.tls() else { return Ok(None) };
        let (host, protocol) = match kind {
            Kind::Http(check) => match check.version() {
                HttpVersion::Http1 => (check.host_name(), Some(HTTP1)),
                HttpVersion::Http2 => (check.host_name(), Some(HTTP2)),
            },
            Kind::Grpc(check) => (check.host_name(), Some(HTTP2)),
            _ => (None, None),
        };
        let name = match settings.name().or(host) {
            Some(name) => ServerName::try_from(name.to_owned()).map_err(|_| TlsError::Name)?,
            None => ServerName::from(target.address),
        };
        let config = configs.find(settings, protocol)?;
        Ok(Some(Self { config, name, days_min: settings.days_min }))
    }

    /// Completes the handshake; returns the days until the target's certificate ends as well.
    ///
    /// # Errors
    /// Why there is no TLS, or that the certificate ends too soon.
    pub async fn handshake(
        &self,
        stream: TcpStream,
        progress: &Progress,
    ) -> Result<(TlsStream<TcpStream>, i32), Fault> {
        progress.enter(Step::Handshake);
        let connector = TlsConnector::from(Arc::clone(&self.config));
        let stream = connector.connect(self.name.clone(), stream).await.map_err(|e| fault(&e))?;
        let (_, state) = stream.get_ref();
        let wanted = &self.config.alpn_protocols;
        if wanted.iter().any(|it| it == HTTP2) && state.alpn_protocol() != Some(HTTP2) {
            return Err(Fault::Handshake("the target does not speak HTTP/2".into()));
        }
        let certificate = state.peer_certificates().and_then(|chain| chain.first());
        let not_after = certificate.and_then(|it| not_after_days(it));
        let not_after = not_after.ok_or_else(|| {
            Fault::Handshake("the end of the certificate's time cannot be read".into())
        })?;
        let days = i32::try_from(not_after - today()).unwrap_or(i32::MAX);
        match self.days_min > 0 && days < i32::from(self.days_min) {
            true => Err(Fault::CertificateEnds(days)),
            false => Ok((stream, days)),
        }
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connector({:?})", self.name)
    }
}

/// Returns the days since 1970.
fn today() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs() / 86_400).unwrap_or(i64::MAX)
}

/// Returns what an error of a handshake means for the target.
fn fault(error: &std::io::Error) -> Fault {
    let cause = error.get_ref().and_then(|it| it.downcast_ref::<Error>());
    match cause {
        Some(Error::InvalidCertificate(error)) => Fault::Certificate(distrust(error)),
        _ => connect::fault(error, Step::Handshake),
    }
}

/// Returns why a certificate is not trusted.
fn distrust(error: &CertificateError) -> Distrust {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => Distrust::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            Distrust::NotYetValid
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            Distrust::OtherName
        }
        CertificateError::UnknownIssuer | CertificateError::BadSignature => Distrust::UnknownIssuer,
        error => Distrust::Other(error.to_string().into()),
    }
}

/// Configurations of rustls that were made already, so that a thousand targets with one check have
/// one.
#[derive(Default)]
pub struct TlsConfigs(HashMap<(TlsSettings, Option<&'static [u8]>), Arc<ClientConfig>>);

impl TlsConfigs {
    /// Returns the configuration for these settings and a protocol of ALPN.
    fn find(
        &mut self,
        settings: &TlsSettings,
        protocol: Option<&'static [u8]>,
    ) -> Result<Arc<ClientConfig>, TlsError> {
        // The name is no part of it.
        let key = (TlsSettings { name: None, ..settings.clone() }, protocol);
        if let Some(config) = self.0.get(&key) {
            return Ok(Arc::clone(config));
        }
        let config = config(settings, protocol)?;
        self.0.insert(key, Arc::clone(&config));
        Ok(config)
    }
}

/// Makes the configuration of rustls. Sessions are not resumed: the certificate of a resumed one is
/// not checked, so that its end would not be noticed.
fn config(settings: &TlsSettings, protocol: Option<&[u8]>) -> Result<Arc<ClientConfig>, TlsError> {
    let provider = provider();
    let builder = ClientConfig::builder_with_provider(Arc::clone(provider))
        .with_safe_default_protocol_versions()
        .expect("the provider has ciphers for all versions that were built in")
        .dangerous() // only because the verifier is made here
        .with_custom_certificate_verifier(verifier(&settings.trust)?);
    let mut config = match &settings.identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let (chain, key) = identity.parts()?;
            builder.with_client_auth_cert(chain, key).map_err(|_| TlsError::OtherKey)?
        }
    };
    config.resumption = Resumption::disabled();
    config.alpn_protocols = protocol.into_iter().map(<[u8]>::to_vec).collect();
    Ok(Arc::new(config))
}

/// Returns the cryptography of all probes.
fn provider() -> &'static Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    PROVIDER.get_or_init(|| Arc::new(rustls::crypto::ring::default_provider()))
}

/// Returns what verifies certificates. That of public roots is one for all checks: its 150 roots
/// take 20 KB.
fn verifier(trust: &Trust) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
    static PUBLIC: OnceLock<Arc<WebPkiServerVerifier>> = OnceLock::new();
    Ok(match trust {
        Trust::PublicRoots => Arc::clone(PUBLIC.get_or_init(|| {
            let roots = webpki_roots::TLS_SERVER_ROOTS.to_vec();
            verifier_of(RootCertStore { roots })
        })) as _,
        Trust::Roots(roots) => verifier_of(roots.store()?),
        Trust::Any => Arc::new(AnyCertificate(Arc::clone(provider()))),
    })
}

/// Returns what verifies that certificates lead to one of these roots.
fn verifier_of(roots: RootCertStore) -> Arc<WebPkiServerVerifier> {
    WebPkiServerVerifier::builder_with_provider(roots.into(), Arc::clone(provider()))
        .build()
        .expect("there is a root, and no revocation list that could be wrong")
}

/// Trusts every certificate. That the target has its key is verified all the same, as TLS demands.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
