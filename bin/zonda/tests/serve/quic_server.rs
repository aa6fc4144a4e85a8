//! A server of DNS over QUIC, since Debian 12 has none.

use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Connection, Endpoint, ServerConfig};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};

/// A running server, which answers each question with 192.0.2.7.
pub struct QuicServer {
    /// Address on which the server listens.
    pub address: SocketAddr,
    _runtime: Runtime,
}

impl QuicServer {
    /// Starts one with the certificate in `cert.pem` and its key in `key.pem`.
    pub fn start(folder: &Path) -> Self {
        let certificate = CertificateDer::from_pem_file(folder.join("cert.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_file(folder.join("key.pem")).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        tls.alpn_protocols = vec![b"doq".to_vec()];
        let config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls).unwrap()));
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let _within = runtime.enter();
        let endpoint = Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let address = endpoint.local_addr().unwrap();
        runtime.spawn(async move {
            while let Some(incoming) = endpoint.accept().await {
                tokio::spawn(async move { serve(incoming.await.ok()?).await });
            }
        });
        Self { address, _runtime: runtime }
    }
}

/// Answers all queries of a connection, until it ends.
async fn serve(connection: Connection) -> Option<()> {
    loop {
        let (mut sending, mut receiving) = connection.accept_bi().await.ok()?;
        let framed = receiving.read_to_end(65_537).await.ok()?;
        let message = answer(framed.get(2..)?);
        sending.write_all(&(message.len() as u16).to_be_bytes()).await.ok()?;
        sending.write_all(&message).await.ok()?;
        sending.finish().ok()?;
    }
}

/// What is answered to a query: an address, without EDNS.
pub fn answer(query: &[u8]) -> Vec<u8> {
    let name = query[12..].iter().position(|octet| *octet == 0).unwrap();
    let mut message = query[..12 + name + 5].to_vec();
    message[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
    message.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 7]);
    message
}
