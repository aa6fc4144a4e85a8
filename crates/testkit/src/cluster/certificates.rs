//! Certificates of an API server: an authority, and what it signed.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};

use crate::authority::{Authority, new_key};
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
        let authority = Authority::new("authority of a cluster");
        let (server, key) = authority.sign(SERVER_NAMES);
        let account = new_key();
        Self {
            authority: folder.write("ca.crt", authority.certificate.pem()),
            server: folder.write("server.crt", server.pem()),
            server_key: folder.write("server.key", key.serialize_pem()),
            account_key: folder.write("account.key", account.serialize_pem()),
            account_public_key: folder.write("account.pub", account.public_key_pem()),
            client: client(authority.certificate.der().clone()),
        }
    }
}

/// Returns the TLS of a client that trusts this authority only.
fn client(authority: CertificateDer<'static>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(authority).expect("the authority was made a moment ago");
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().expect("ring has TLS 1.3");
    Arc::new(builder.with_root_certificates(roots).with_no_client_auth())
}
