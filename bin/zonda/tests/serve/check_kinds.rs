//! Checks that use TLS, HTTP/2, gRPC or ICMP, as a configuration names them.

use crate::checks::Checked;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use serde_json::Value;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio_rustls::TlsAcceptor;
use zonda_testkit::process::Folder;

/// The name of the target.
const NAME: &str = "web.example.com";

/// An authority with certificates of a target and of a probe, in a folder.
struct Certificates {
    issuer: Issuer<'static, KeyPair>,
}

impl Certificates {
    /// Writes `ca.pem`, `web.pem`, `web.key`, `probe.pem` and `probe.key`.
    fn write(folder: &Path) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "An authority of tests");
        fs::write(folder.join("ca.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
        let certificates = Self { issuer: Issuer::new(params, key) };
        certificates.sign(folder, "web", NAME);
        certificates.sign(folder, "probe", "probe.example.com");
    }

    /// Writes a certificate for a name, which ends in the year 2099.
    fn sign(&self, folder: &Path, file: &str, name: &str) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(2099, 12, 31);
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        fs::write(folder.join(format!("{file}.pem")), certificate).unwrap();
        fs::write(folder.join(format!("{file}.key")), key.serialize_pem()).unwrap();
    }
}

/// A web server with the certificate `web.pem` of a folder, which requires one of its clients if
/// that is wanted.
fn acceptor(folder: &Path, protocol: &[u8], requires_certificate: bool) -> TlsAcceptor {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain = vec![CertificateDer::from_pem_file(folder.join("web.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(folder.join("web.key")).unwrap();
    let builder = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = if requires_certificate {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(folder.join("ca.pem")).unwrap()).unwrap();
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
        builder.with_client_cert_verifier(verifier.build().unwrap())
    } else {
        builder.with_no_client_auth()
    };
    let mut config = builder.with_single_cert(chain, key).unwrap();
    config.alpn_protocols = vec![protocol.to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

/// Servers that are well, until they are told that they are not.
struct Targets {
    runtime: Runtime,
    is_well: Arc<AtomicBool>,
}

impl Targets {
    fn new() -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        Self { runtime, is_well: Arc::new(AtomicBool::new(true)) }
    }

    /// Starts a server of a protocol, over TLS if it is given; returns its port.
    fn start(&self, protocol: Protocol, tls: Option<TlsAcceptor>) -> u16 {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = self.runtime.block_on(TcpListener::bind(address)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let is_well = Arc::clone(&self.is_well);
        self.runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (is_well, tls) = (Arc::clone(&is_well), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => protocol.converse(stream, &is_well).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                protocol.converse(stream, &is_well).await;
                            }
                        }
                    }
                });
            }
        });
        port
    }
}

/// What a target speaks.
#[derive(Clone, Copy)]
enum Protocol {
    Http1,
    Http2,
    Grpc,
}

impl Protocol {
    /// Answers a connection's requests.
    async fn converse(self, stream: impl AsyncRead + AsyncWrite + Unpin, is_well: &AtomicBool) {
        match self {
            Self::Http1 => http1(stream, is_well).await,
            Self::Http2 => http2(stream, is_well).await,
            Self::Grpc => grpc(stream, is_well).await,
        }
    }
}

/// Answers one request of HTTP/1.1.
async fn http1(mut stream: impl AsyncRead + AsyncWrite + Unpin, is_well: &AtomicBool) {
    let mut request = [0; 1024];
    let Ok(1..) = stream.read(&mut request).await else { return };
    let status = if is_well.load(SeqCst) { 200 } else { 503 };
    let reply = format!("HTTP/1.1 {status} -\r\ncontent-length: 5\r\n\r\nready");
    let _ = stream.write_all(reply.as_bytes()).await; // the probe may be gone
    let _ = stream.shutdown().await;
}

/// Answers requests of HTTP/2.
async fn http2(stream: impl AsyncRead + AsyncWrite + Unpin, is_well: &AtomicBool) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    while let Some(Ok((_, mut respond))) = connection.accept().await {
        let status = if is_well.load(SeqCst) { 204 } else { 503 };
        let response = http::Response::builder().status(status).body(()).unwrap();
        let _ = respond.send_response(response, true);
    }
}

/// Answers calls of the health service.
async fn grpc(stream: impl AsyncRead + AsyncWrite + Unpin, is_well: &AtomicBool) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        assert_eq!(request.uri().path(), "/grpc.health.v1.Health/Check");
        let serving = if is_well.load(SeqCst) { 1 } else { 2 };
        let Ok(mut body) = respond.send_response(http::Response::new(()), false) else { return };
        let _ = body.send_data(vec![0, 0, 0, 0, 2, 8, serving].into(), false);
        let mut trailers = http::HeaderMap::new();
        trailers.insert("grpc-status", 0.into());
        let _ = body.send_trailers(trailers);
    }
}

/// What the last probe of the member of a pool has found, in words.
fn result(checked: &Checked, pool: &str) -> String {
    let text = checked.server.get(&format!("/v1/pools/{pool}")).1;
    let pool: Value = serde_json::from_str(&text).unwrap();
    pool["members"][0]["last"]["result"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn servers_of_http2_grpc_and_tls_are_up_as_long_as_they_are_well() {
    let folder = Folder::new("kinds");
    Certificates::write(folder.path());
    let targets = Targets::new();
    let tls = |protocol: &[u8]| Some(acceptor(folder.path(), protocol, false));
    let [http1, http2, clear, grpc, secret] = [
        targets.start(Protocol::Http1, tls(b"http/1.1")),
        targets.start(Protocol::Http2, tls(b"h2")),
        targets.start(Protocol::Http2, None),
        targets.start(Protocol::Grpc, None),
        targets.start(Protocol::Grpc, tls(b"h2")),
    ];
    let trust = format!("host = \"{NAME}\", ca-file = {:?}", folder.path().join("ca.pem"));
    let checks = [
        ("https", format!("https = \"/\", port = {http1}, {trust}, contains = \"ready\"")),
        ("http2", format!("https = \"/\", port = {http2}, {trust}, http2 = true, status = 204")),
        ("clear", format!("http = \"/\", port = {clear}, http2 = true")),
        ("grpc", format!("grpc = {grpc}, service = \"example.Web\"")),
        ("secret", format!("grpc = {secret}, {trust}, over-tls = true")),
    ];
    let checked = Checked::start(&checks);
    checks.iter().for_each(|(pool, _)| checked.await_state(pool, true));
    targets.is_well.store(false, SeqCst);
    checks.iter().for_each(|(pool, _)| checked.await_state(pool, false));
    assert!(result(&checked, "http2").contains("503"), "{}", result(&checked, "http2"));
    assert!(result(&checked, "grpc").contains("not serving"), "{}", result(&checked, "grpc"));
}

#[test]
fn a_certificate_that_is_not_as_it_must_be_brings_a_member_down() {
    let folder = Folder::new("kinds");
    Certificates::write(folder.path());
    let targets = Targets::new();
    let port = targets.start(Protocol::Http1, Some(acceptor(folder.path(), b"http/1.1", false)));
    let strict = targets.start(Protocol::Http1, Some(acceptor(folder.path(), b"http/1.1", true)));
    let file = |name: &str| folder.path().join(name);
    let ca = format!("ca-file = {:?}", file("ca.pem"));
    let probe = format!(
        "client-certificate = {:?}, client-key = {:?}",
        file("probe.pem"),
        file("probe.key")
    );
    let checked = Checked::start(&[
        ("right", format!("tls = {port}, host = \"{NAME}\", {ca}, certificate-days = 3650")),
        ("other-name", format!("tls = {port}, host = \"www.example.net\", {ca}")),
        ("unknown", format!("tls = {port}, host = \"{NAME}\"")),
        ("any", format!("tls = {port}, verify = false")),
        ("nobody", format!("https = \"/\", port = {strict}, host = \"{NAME}\", {ca}")),
        ("known", format!("https = \"/\", port = {strict}, host = \"{NAME}\", {ca}, {probe}")),
    ]);
    for pool in ["right", "any", "known"] {
        checked.await_state(pool, true);
    }
    for (pool, reason) in [("other-name", "name"), ("unknown", "certificate"), ("nobody", "ertif")]
    {
        assert!(!checked.is_up(pool), "{pool}");
        let told = result(&checked, pool);
        assert!(told.contains(reason), "{pool}: {told}");
    }
}

#[test]
fn a_member_that_answers_echo_requests_is_up_where_the_system_permits_these() {
    let checked = Checked::start(&[("ping", "icmp = true".to_owned())]);
    let range = fs::read_to_string("/proc/sys/net/ipv4/ping_group_range").unwrap();
    let range: Vec<u32> = range.split_whitespace().map(|it| it.parse().unwrap()).collect();
    if range[0] <= range[1] {
        checked.await_state("ping", true);
    } else {
        crate::server::wait_until("the reason is told", || {
            result(&checked, "ping").contains("net.ipv4.ping_group_range")
        });
    }
}
