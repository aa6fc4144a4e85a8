//! The server that an app of JavaScript is.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::mpsc;

use zonda_config::Flags;
use zonda_engine::code::Pattern;
use zonda_engine::{AnswerBelow, Peer};
use zonda_runtime::RuntimeConfig;
use zonda_server::{
    Code, CodeChange, ErrorCode, Options, OwnReply, Program, ProgramConfig, ProgramError,
    RouteTable, RuntimeHandle, Server, Stores, Texts, failed_in_code, failed_text, zones_in_code,
};

/// The number of JavaScript's runtime, the only one.
pub const RUNTIME: u16 = 0;

/// What a server is started with.
pub struct Start {
    /// The configuration file.
    pub file: Option<PathBuf>,
    /// What takes the place of it, or comes beside it.
    pub flags: Flags,
    /// Zones that are given as text.
    pub texts: Texts,
    /// Zones that follow stores.
    pub stores: Stores,
    /// Whether the server starts without zones, given as files or as text, that cannot be loaded.
    pub allows_failed_zones: bool,
    /// What is answered on each address of the flags.
    pub answered: Vec<Transports>,
    /// The address of metrics.
    pub metrics: Option<SocketAddr>,
    /// Whether other processes answer on the same addresses.
    pub shares_addresses: bool,
    /// What is called for which names.
    pub code: Code,
    /// How JavaScript is reached.
    pub runtime: RuntimeConfig,
    /// Called when the server has stopped, for whatever reason; not if it could not start.
    pub ended: Box<dyn FnOnce() + Send>,
}

/// A server that has started.
pub struct RunningServer {
    /// Handle of the running server.
    pub server: Server,
    /// What it is configured with.
    pub config: ProgramConfig,
    /// What queries are taken from and answered with.
    pub handle: RuntimeHandle,
}

/// What is answered on an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transports {
    /// Whether UDP is.
    pub udp: bool,
    /// Whether TCP is.
    pub tcp: bool,
}

/// A pattern of names and types.
///
/// # Errors
/// When the text is none.
pub fn pattern(text: &str) -> Result<Pattern, String> {
    text.parse().map_err(|error| format!("route `{text}`: {error}"))
}

/// The code of JavaScript: patterns, by the numbers that it knows their handlers and guards by. If
/// it has middleware for all queries, it is given them.
pub fn route_table(
    added: BTreeMap<u32, Pattern>,
    guards: BTreeMap<u32, Pattern>,
    has_middleware: bool,
) -> RouteTable {
    let mut table = RouteTable::new(RUNTIME);
    table.apply(CodeChange { added, guards, has_middleware, ..CodeChange::default() });
    table
}

/// Starts a server. Waits for its stores, but not for long.
///
/// # Errors
/// What is wrong with the configuration and with zones, or why the server cannot start.
pub fn start(start: Start) -> Result<RunningServer, ProgramError> {
    let Start { file, flags, texts, stores, answered, metrics, .. } = start;
    let mut required_zones = zones_in_code(&flags, &texts);
    if start.allows_failed_zones {
        required_zones.clear();
    }
    let changeable = ProgramConfig::new(file, flags, metrics);
    let own = changeable.clone();
    let read_config = move || {
        let mut config = own.read()?;
        for (listener, Transports { udp, tcp }) in config.listeners.iter_mut().zip(&answered) {
            (listener.udp, listener.tcp) = (*udp, *tcp);
        }
        Ok(config)
    };
    let config = read_config().map_err(|error| {
        let failed = failed_in_code(None, &texts, &required_zones);
        let text = [error, failed_text(&failed)].join("\n");
        ProgramError::new(ErrorCode::Config, text.trim_end())
    })?;
    let (sender, handles) = mpsc::channel();
    let program = Program {
        code: start.code,
        runtimes: vec![start.runtime],
        start: Some(Box::new(move |handles| _ = sender.send(handles))), // it is waited for below
        shares_addresses: start.shares_addresses,
        texts,
        stores,
        required_zones,
        ended: Some(start.ended),
        ..Program::default()
    };
    let read_config = Box::new(read_config);
    let options = Options { config, read_config, take_over: false, program };
    let server = Server::start(options).map_err(|error| ProgramError::from(&error))?;
    let handle = handles.recv().ok().and_then(|handles| handles.into_iter().next());
    let handle = handle.expect("a server that has started has a handle for each runtime");
    Ok(RunningServer { server, config: changeable, handle })
}

/// Reads the configuration and changed zones of a server anew.
///
/// # Errors
/// What is wrong with the configuration, or with zones: all else is then in force.
pub fn reload(server: &Server) -> Result<(), ProgramError> {
    let wrong = |error| ProgramError::new(ErrorCode::Config, error);
    let failed = server.reload().map_err(wrong)?;
    match failed.is_empty() {
        true => Ok(()),
        false => Err(ProgramError::new(ErrorCode::Zone, failed_text(&failed))),
    }
}

/// The reply to a query of the program itself.
pub enum ProgramReply {
    /// The reply; nothing for silence.
    Now(Option<Vec<u8>>),
    /// The reply will come; nothing for silence.
    Later(Pin<Box<dyn Future<Output = Option<Vec<u8>>> + Send>>),
}

/// Asks a server's own queries.
pub fn ask(server: &Server, query: &[u8], address: Option<SocketAddr>) -> ProgramReply {
    match server.query(query, address) {
        OwnReply::Now(reply) => ProgramReply::Now(reply),
        OwnReply::Later(mut reply) => ProgramReply::Later(Box::pin(async move {
            reply.recv().await.filter(|reply| !reply.is_empty())
        })),
    }
}

/// Asks what a server answers to a query of `peer` where the code of JavaScript is left out;
/// `shown` is given the answer, and returns the octets that JavaScript gets to see.
pub fn ask_below(
    server: &Server,
    query: &[u8],
    peer: Peer,
    shown: impl FnOnce(AnswerBelow) -> Vec<u8> + Send + 'static,
) -> ProgramReply {
    match server.query_below(query, peer) {
        OwnReply::Now(below) => ProgramReply::Now(below.map(shown)),
        OwnReply::Later(mut below) => {
            ProgramReply::Later(Box::pin(async move { below.recv().await.map(shown) }))
        }
    }
}
