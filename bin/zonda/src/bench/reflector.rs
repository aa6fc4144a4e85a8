//! `zonda bench reflector`: the floor under every server.

use clap::Args;
use std::net::SocketAddr;
use std::process::ExitCode;
use zonda_bench::reflector;

/// Answer every UDP query with one A record, without looking at the name
///
/// What this costs is what the kernel costs; a server's own work is what it costs above it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  zonda bench reflector --listen 127.0.0.1:5300 --threads 2")]
pub struct Reflector {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:5300")]
    listen: SocketAddr,
    /// Threads, each with a socket of its own
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
}

impl Reflector {
    /// Answers until the process is ended.
    pub fn run(self) -> ExitCode {
        let reflector = reflector::Reflector::bind(self.listen, self.threads);
        let result = reflector.and_then(reflector::Reflector::run);
        let failed = |error| format!("{}: {error}", self.listen);
        super::exit_code(result.map(|()| ExitCode::SUCCESS).map_err(failed))
    }
}
