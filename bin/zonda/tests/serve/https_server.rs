//! A server of DNS over HTTPS that answers, or does as it is told.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio_rustls::TlsAcceptor;

use super::quic_server::answer;

/// A status of HTTP and headers beside the content's type.
pub type Head = (u16, &'static [(&'static str, &'static str)]);

/// A path that no forwarder is configured to ask for, to which a response may redirect.
pub const ELSEWHERE: &str = "/elsewhere";

/// A running server, which answers each question with 192.0.2.7 where the status is 200.
pub struct HttpsServer {
    /// Address on which the server listens.
    pub address: SocketAddr,
    state: Arc<State>,
    _runtime: Runtime,
}

/// What all connections see.
struct State {
    /// The head of the server's responses.
    head: Mutex<Head>,
    /// Requests that were read.
    requests: AtomicUsize,
    /// Requests that were for [`ELSEWHERE`].
    strayed: AtomicUsize,
}

impl HttpsServer {
    /// Starts one with the certificate in `cert.pem` and its key in `key.pem`.
    pub fn start(folder: &Path, head: Head) -> Self {
        let certificate = CertificateDer::from_pem_file(folder.join("cert.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_file(folder.join("key.pem")).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let (requests, strayed) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let state = Arc::new(State { head: Mutex::new(head), requests, strayed });
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::clone(&state);
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // The client may be gone at any time.
                tokio::spawn(converse(acceptor.clone(), stream, Arc::clone(&shared)));
            }
        });
        Self { address, state, _runtime: runtime }
    }

    /// Responds otherwise from now on.
    pub fn now_says(&self, head: Head) {
        *self.state.head.lock().unwrap() = head;
    }

    /// How many requests came.
    pub fn requests(&self) -> usize {
        self.state.requests.load(Ordering::Relaxed)
    }

    /// How many of them followed a redirection to [`ELSEWHERE`].
    pub fn strayed(&self) -> usize {
        self.state.strayed.load(Ordering::Relaxed)
    }
}

/// Responds to all requests of a connection.
async fn converse(acceptor: TlsAcceptor, stream: TcpStream, state: Arc<State>) -> io::Result<()> {
    let stream = acceptor.accept(stream).await?;
    let mut connection = h2::server::handshake(stream).await.map_err(io::Error::other)?;
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let has_strayed = request.uri().path() == ELSEWHERE;
            state.strayed.fetch_add(usize::from(has_strayed), Ordering::Relaxed);
            let mut body = request.into_body();
            let mut query = Vec::new();
            while let Some(Ok(part)) = body.data().await {
                query.extend_from_slice(&part);
            }
            state.requests.fetch_add(1, Ordering::Relaxed);
            let (status, headers) = *state.head.lock().unwrap();
            let response = http::Response::builder().status(status);
            let response = response.header("content-type", "application/dns-message");
            let response =
                headers.iter().fold(response, |it, (name, value)| it.header(*name, *value));
            let message = if status == 200 { answer(&query) } else { b"no".to_vec() };
            if let Ok(mut sending) = respond.send_response(response.body(()).unwrap(), false) {
                let _ = sending.send_data(message.into(), true); // the client may have gone
            }
        });
    }
    Ok(())
}
