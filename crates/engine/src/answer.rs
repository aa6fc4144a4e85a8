//! The reply under way, which gates and sources write one after the other.

use crate::opt::TEXT_BYTES_MAX;
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
        }
    }

    /// Puts the text of the extended error, as far as it is sent, into the worker's body.
    pub fn set_text(&mut self, body: &mut [u8], text: &[u8]) {
        self.text_bytes = text.len().min(TEXT_BYTES_MAX);
        body[..self.text_bytes].copy_from_slice(&text[..self.text_bytes]);
    }
}
