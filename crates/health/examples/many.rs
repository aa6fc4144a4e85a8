//! What it costs to probe many targets: CPU and memory of this process.
//!
//! `cargo run --release -p zonda-health --example many -- [KIND] [TARGETS] [SECONDS]`
//!
//! The kind is tcp, http, https or silent; the targets of `silent` accept connections and never
//! answer, so that each probe takes the whole timeout of 2 s.
//!
//! Without arguments 10,000 targets are probed every 5 s for 30 s, by HTTP. They are addresses of
//! 127.0.0.0/8, which a second process listens on, so that its CPU is not counted; what the kernel
//! does on loopback for both sides of a connection mostly is.

#![allow(clippy::unwrap_used, reason = "a measurement that cannot be made ends with its reason")]

use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio_rustls::TlsAcceptor;
use zonda_health::{
    Assignment, Check, HttpCheck, Kind, Limits, Observation, Prober, Target, TargetId, Timing,
    TlsSettings, Trust,
};

/// Ticks of the CPU times in `/proc`, each second.
const TICKS: f64 = 100.0;
/// Probing before the measurement begins.
const WARM_UP: Duration = Duration::from_secs(6);

fn main() {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().unwrap_or_else(|| "http".to_owned());
    if kind == "serve" {
        return serve(&arguments.next().unwrap_or_default());
    }
    let count: u32 = arguments.next().map_or(10_000, |it| it.parse().unwrap());
    let seconds: u64 = arguments.next().map_or(30, |it| it.parse().unwrap());

    let mut server = Command::new(std::env::current_exe().unwrap())
        .args(["serve", &kind])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let port = line.trim().parse().unwrap();

    let runtime = runtime();
    let failed = Arc::new(AtomicU64::new(0));
    let failures = Arc::clone(&failed);
    let observer = move |it: &Observation| {
        failures.fetch_add(it.outcome.is_err().into(), Relaxed);
    };
    let prober = Prober::new(runtime.handle(), Limits::default(), observer);
    let check = Arc::new(Check::from(check(&kind)));
    let assign = |id: u32| {
        let address = Ipv4Addr::from_bits(Ipv4Addr::new(127, 1, 0, 0).to_bits() + id).into();
        let target = Target { address, port, check: Arc::clone(&check) };
        Assignment { id: TargetId(id.into()), target, timing: Timing::default() }
    };
    prober.set_targets((0..count).map(assign).collect()).unwrap();
    thread::spawn(move || runtime.block_on(std::future::pending::<()>()));

    thread::sleep(WARM_UP);
    let (begun, cpu, probes) = (Instant::now(), cpu_seconds(), prober.counts().started);
    thread::sleep(Duration::from_secs(seconds));
    let (elapsed, cpu) = (begun.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    let counts = prober.counts();
    let probes = (counts.started - probes) as f64;
    println!("{count} targets by {kind}, every 5 s: {:.0} probes/s", probes / elapsed);
    println!("CPU: {:.1} % of a core, {:.1} us a probe", 100.0 * cpu / elapsed, 1e6 * cpu / probes);
    println!("memory: {} now, {} at most", status("VmRSS"), status("VmHWM"));
    println!("failed: {}, skipped: {}", failed.load(Relaxed), counts.skipped);
    server.kill().unwrap();
    server.wait().unwrap();
}

/// Returns the check of a kind.
fn check(kind: &str) -> Kind {
    let http = HttpCheck::new("/health").unwrap();
    match kind {
        "tcp" => Kind::Tcp,
        "https" => Kind::Http(http.with_tls(TlsSettings::new(Trust::Any))),
        _ => Kind::Http(http),
    }
}

/// Makes a runtime of one thread.
fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Answers every connection to a port, whose number is printed.
fn serve(kind: &str) {
    let (with_tls, is_silent) = (kind == "https", kind == "silent");
    runtime().block_on(async {
        let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
        println!("{}", listener.local_addr().unwrap().port());
        let acceptor = with_tls.then(acceptor);
        loop {
            let Ok((stream, _)) = listener.accept().await else { continue };
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                if is_silent {
                    return tokio::time::sleep(Duration::from_secs(3)).await;
                }
                match acceptor {
                    None => answer(stream).await,
                    Some(acceptor) => {
                        if let Ok(stream) = acceptor.accept(stream).await {
                            answer(stream).await;
                        }
                    }
                }
            });
        }
    });
}

/// Answers a request, if one comes.
async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let mut request = [0; 1024];
    if matches!(stream.read(&mut request).await, Ok(1..)) {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
        let _ = stream.shutdown().await;
    }
}

/// Returns how TLS is spoken with a certificate that is made for the measurement.
fn acceptor() -> TlsAcceptor {
    let certified = rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// Returns the CPU time of this process, seconds.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: f64 = fields[11..13].iter().map(|it| it.parse::<f64>().unwrap()).sum();
    ticks / TICKS
}

/// Returns a line of the process's status.
fn status(key: &str) -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    line.unwrap_or("?").trim().to_owned()
}
