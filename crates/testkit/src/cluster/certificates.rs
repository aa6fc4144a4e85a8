//! Certificates of an API server: an authority, and what it signed.

use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};

use crate::process::Folder;

/// Names and addresses that the server's certificate is for.
const SERVER_NAMES: &[&str] = &["127.0.0.1", "localhost", "kubernetes.default.svc"];

/// Files of an authority and of a server, and the client that trusts them.
pub(super) struct Certificates {
    /// Certificate of the authority.
    pub(super) authority: PathBuf,
    /// Certificate of the server.
    pub(super) server: PathBuf,
    /// Private key of the server.
    pub(super) server_key: PathBuf,
    /// Private key that signs tokens of service accounts.
    pub(super) account_key: PathBuf,
    /// Public key of the one that signs tokens of service accounts.
    pub(super) account_public_key: PathBuf,
    /// TLS of a client that trusts the authority.
    pub(super) client: Arc<ClientConfig>,
}

impl Certificates {
    /// Makes new ones in a folder.
    ///
    /// # Panics
    /// When the folder cannot be written.
    pub(super) fn make(folder: &Folder) -> Self {
        let (authority, issuer) = authority();
        let key = new_key();
        let names: Vec<String> = SERVER_NAMES.iter().map(|name| (*name).to_owned()).collect();
        let params = CertificateParams::new(names).expect("the names are names");
        let server = params.signed_by(&key, &issuer).expect("the authority may sign");
        let account = new_key();
        Self {
            authority: folder.write("ca.crt", authority.pem()),
            server: folder.write("server.crt", server.pem()),
            server_key: folder.write("server.key", key.serialize_pem()),
            account_key: folder.write("account.key", account.serialize_pem()),
            account_public_key: folder.write("account.pub", account.public_key_pem()),
            client: client(authority.der().clone()),
        }
    }
}

/// Returns a private key.
fn new_key() -> KeyPair {
    KeyPair::generate().expect("the system has random numbers")
}

/// Makes an authority.
fn authority() -> (rcgen::Certificate, Issuer<'static, KeyPair>) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let key = new_key();
    let certificate = params.self_signed(&key).expect("the parameters are complete");
    (certificate, Issuer::new(params, key))
}

/// Returns the TLS of a client that trusts this authority only.
fn client(authority: CertificateDer<'static>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(authority).expect("the authority was made a moment ago");
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().expect("ring has TLS 1.3");
    Arc::new(builder.with_root_certificates(roots).with_no_client_auth())
}
