//! Queries that the program itself has, and those for which its middleware wants the answer below.

use std::net::SocketAddr;
use std::sync::Arc;

use napi::bindgen_prelude::{Buffer, Either};
use napi_derive::napi;
use zonda_engine::{AnswerBelow, Peer, Transport};
use zonda_runtime::Ticket;

use super::options::parsed;
use super::{Core, CoreEvent, error};
use crate::server::{self, ProgramReply};

#[napi]
impl Core {
    /// Answers a query in wire form, as if a client at `address` had asked over TCP. A number
    /// stands for no reply: 0 for silence, and 1 for one that an event of `token` brings.
    ///
    /// # Errors
    /// When the server does not run, or the address is none.
    #[napi(catch_unwind)]
    pub fn query(
        &self,
        query: &[u8],
        address: Option<String>,
        token: u32,
    ) -> napi::Result<Either<Buffer, u32>> {
        let address = address.map(|text| client(&text));
        let running = self.shared.running()?;
        self.expect(server::ask(&running, query, address.transpose()?), token)
    }

    /// Answers a query that waits under a ticket, whose halves are given, where the code of
    /// JavaScript is left out. The answer is kept with the query, and sent if JavaScript passes
    /// that on. As [`query`](Self::query); 2 stands for no reply to a query that waits no longer.
    ///
    /// # Errors
    /// When the server does not run.
    #[napi(catch_unwind)]
    pub fn query_below(
        &self,
        ticket_low: u32,
        ticket_high: u32,
        token: u32,
    ) -> napi::Result<Either<Buffer, u32>> {
        let ticket = Ticket(u64::from(ticket_high) << 32 | u64::from(ticket_low));
        let (running, runtime) = self.shared.running_and_runtime()?;
        let Some((query, peer)) = runtime.waiting_query(ticket) else { return Ok(Either::B(2)) };
        let keep = move |below: AnswerBelow| {
            let message = below.message.clone();
            runtime.keep(ticket, below);
            message
        };
        self.expect(server::ask_below(&running, &query, peer, keep), token)
    }

    /// As [`query`](Self::query), where the code of JavaScript is left out: for a query that waits
    /// no longer, whose code has not ended.
    ///
    /// # Errors
    /// When the server does not run, or the address is none.
    #[napi(catch_unwind)]
    pub fn query_late(
        &self,
        query: &[u8],
        address: String,
        token: u32,
    ) -> napi::Result<Either<Buffer, u32>> {
        let address = parsed::<SocketAddr>(&address, "a client must be an address and port")?;
        let peer = Peer::new(address, Transport::Tcp, u16::MAX);
        let running = self.shared.running()?;
        self.expect(server::ask_below(&running, query, peer, |below| below.message), token)
    }
}

/// What the client of a query must be.
const CLIENT: &str =
    "the client of a query must be an address such as 192.0.2.7 or, with a port, 192.0.2.7:53";

/// A client's address, with or without a port.
fn client(text: &str) -> napi::Result<SocketAddr> {
    match text.parse() {
        Ok(ip) => Ok(SocketAddr::new(ip, 0)),
        Err(_) => parsed(text, CLIENT),
    }
}

impl Core {
    /// A reply as JavaScript gets it, or a number where there is none, or none yet.
    fn expect(&self, reply: ProgramReply, token: u32) -> napi::Result<Either<Buffer, u32>> {
        let reply = match reply {
            ProgramReply::Now(Some(reply)) => return Ok(Either::A(reply.into())),
            ProgramReply::Now(None) => return Ok(Either::B(0)),
            ProgramReply::Later(reply) => reply,
        };
        let shared = Arc::clone(&self.shared);
        self.waiting()?.spawn(async move {
            let reply = reply.await;
            shared.tell(CoreEvent { token, error: None, reply });
        });
        Ok(Either::B(1))
    }

    /// What waits for replies to the program's own queries.
    fn waiting(&self) -> napi::Result<&tokio::runtime::Runtime> {
        if let Some(runtime) = self.waiting.get() {
            return Ok(runtime);
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("own-queries")
            .build()
            .map_err(error)?;
        Ok(self.waiting.get_or_init(|| runtime))
    }
}
