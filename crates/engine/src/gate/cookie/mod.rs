//! DNS cookies: a client that returns the server's cookie has shown that it receives what the
//! server sends to its address (rfc7873).
//!
//! The server's part is made as rfc9018#4 says, so that all servers of an anycast set that share
//! their secrets accept each other's.
//!
//! ```text
//! client's part 8 octets | version 1 | reserved 000 | seconds u32 | SipHash-2-4 u64
//! ```

mod secrets;

pub use secrets::Secrets;

use crate::answer::Answer;
use crate::ask::Ask;
use crate::reason::Reason;
use crate::reuse::NotReused;
use crate::verdict::{Flow, reply};
use std::ops::ControlFlow::Continue;
use zonda_wire::query::HEADER_BYTES;
use zonda_wire::{Opcode, Rcode};

/// Reads the client's cookie, and prepares the one to send.
#[inline]
pub fn check(ask: &Ask<'_>, answer: &mut Answer<'_>) -> Flow {
    let Some(secrets) = &ask.snapshot.settings.cookies else { return Continue(()) };
    let Some((offset, len @ 1..)) = ask.query.edns.map(|edns| edns.cookie) else {
        return Continue(());
    };
    let sent = answer.reply.not_overwritten(usize::from(offset), usize::from(len));
    if let Some(sent) = sent {
        let (cookie, proven) =
            secrets::answer(secrets, sent, ask.peer.address.ip(), ask.now.unix_secs);
        answer.cookie = Some(cookie);
        answer.is_address_proven = proven;
    }
    Continue(())
}

/// Answers a query without a question, which may ask for a cookie (rfc7873#5.4).
#[inline]
pub fn only(ask: &Ask<'_>, answer: &mut Answer<'_>) -> Flow {
    if usize::from(ask.query.name_end) > HEADER_BYTES || ask.query.opcode() != Opcode::QUERY {
        return Continue(());
    }
    match answer.cookie {
        Some(_) => reply(Rcode::NOERROR, Reason::CookieOnly, NotReused::Gate),
        None => reply(Rcode::FORMERR, Reason::FormatError, NotReused::Gate),
    }
}
