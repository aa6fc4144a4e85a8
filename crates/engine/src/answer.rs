//! The reply under way, which gates and sources write one after the other.

use crate::opt::TEXT_BYTES_MAX;
use std::fmt;
use std::io::Write;
use zonda_wire::{Ede, Reply};

/// The reply under way, and what goes with it.
pub struct Answer<'a> {
    /// The records of the reply.
    pub reply: Reply<'a>,
    /// Flags of the header besides those that every reply has.
    pub flags: u16,
    /// The cookie to send, client's and server's part (rfc7873#4).
    pub cookie: Option<[u8; 24]>,
    /// Whether the client has shown that it receives what is sent to its address.
    pub is_address_proven: bool,
    /// The label of the name at which the owner of what answers begins: a wildcard's closest
    /// encloser, a DNAME; 0 where the name itself does.
    pub answering_label: u8,
    /// The extended error, where it is not the one that goes with the reason.
    pub ede: Option<Ede>,
    /// Octets at the start of the worker's body that say in words why there is no answer.
    pub text_bytes: usize,
    /// The number of first bits of the client's network that the source has answered by; none if
    /// the source has not looked at the client.
    pub client_scope: Option<u8>,
    /// The number of first bits of the client's network that the user's code has looked at, also
    /// code that has left the answer to a source.
    pub code_scope: u8,
}

impl<'a> Answer<'a> {
    /// An answer without records to a client whose address is proven or not.
    #[inline]
    pub fn new(reply: Reply<'a>, is_address_proven: bool) -> Self {
        Self {
            reply,
            flags: 0,
            cookie: None,
            is_address_proven,
            answering_label: 0,
            ede: None,
            text_bytes: 0,
            client_scope: None,
            code_scope: 0,
        }
    }

    /// Notes that the answer holds for the clients that share the first `bits` bits of the
    /// [network](crate::ask::Ask::client_network) that is asked for; of several such parts of an
    /// answer, the one for the fewest clients counts (rfc7871#7.2.1). A reply with a scope is not
    /// put into the hot table: the source says so by [`NotReused::Client`].
    ///
    /// [`NotReused::Client`]: crate::NotReused::Client
    pub fn set_scope(&mut self, bits: u8) {
        self.client_scope = self.client_scope.max(Some(bits));
    }

    /// Notes that the user's code has looked at the first `bits` bits of the client's network.
    /// Other than a [source's](Self::set_scope), its look does not keep the answer of a source from
    /// the hot table: the code looks at each query anew.
    #[inline]
    pub fn note_code(&mut self, bits: u8) {
        self.code_scope = self.code_scope.max(bits);
    }

    /// Returns the number of bits of the client's network that source and code have looked at.
    pub fn bits_looked_at(&self) -> u8 {
        self.code_scope.max(self.client_scope.unwrap_or(0))
    }

    /// Returns the scope of the reply: none that matters without an answer, as resolvers keep
    /// denials and referrals for all of their clients (rfc7871#7.4).
    pub fn scope(&self) -> u8 {
        match self.reply.counts() {
            [0, ..] => 0,
            _ => self.bits_looked_at(),
        }
    }

    /// Adds to the text of the extended error, as far as there is room.
    pub fn add_text(&mut self, body: &mut [u8], words: fmt::Arguments<'_>) {
        let mut room = &mut body[self.text_bytes..TEXT_BYTES_MAX];
        let before = room.len();
        let _ = room.write_fmt(words); // what there is no room for is left out
        self.text_bytes += before - room.len();
    }

    /// Puts the text of the extended error, as far as it is sent, into the worker's body.
    pub fn set_text(&mut self, body: &mut [u8], text: &[u8]) {
        self.text_bytes = text.len().min(TEXT_BYTES_MAX);
        body[..self.text_bytes].copy_from_slice(&text[..self.text_bytes]);
    }
}
