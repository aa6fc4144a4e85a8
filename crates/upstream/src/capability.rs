//! What an upstream is known not to understand, and its cookie.
//!
//! An upstream that once stumbles over EDNS or mixed case is asked again without, for this question
//! only. When it does so twice in a row, it is spared for an hour, then tried again.

use crate::SECOND_NANOS;

/// Failures in a row after which something is left out: one can be a forged or garbled answer.
const FAILURES_MAX: u8 = 2;
/// For how long it is left out, nanoseconds.
const RELEARN_NANOS: u64 = 3600 * SECOND_NANOS;

/// Something that queries have by default and that an upstream may not understand.
#[derive(Clone, Copy, Debug, Default)]
pub struct Capability {
    /// Failures in a row.
    failures: u8,
    /// Left out until this time.
    off_until: u64,
}

impl Capability {
    /// Whether queries shall have it.
    #[must_use]
    pub fn is_on(&self, now: u64) -> bool {
        now >= self.off_until
    }

    /// It was understood.
    pub fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// It was not understood.
    pub fn failed(&mut self, now: u64) {
        self.failures += 1;
        if self.failures >= FAILURES_MAX {
            *self = Self { failures: FAILURES_MAX - 1, off_until: now + RELEARN_NANOS };
        }
    }
}

/// Most octets of a server cookie (rfc7873#4.2).
const SERVER_COOKIE_BYTES_MAX: usize = 32;

/// The cookies exchanged with an upstream (rfc7873).
#[derive(Clone, Copy, Debug)]
pub struct Cookies {
    /// Ours, which only this upstream gets to see.
    client: [u8; 8],
    /// The upstream's.
    server: [u8; SERVER_COOKIE_BYTES_MAX],
    /// Octets of it; 0 while none is known.
    server_len: u8,
}

impl Cookies {
    /// Starts with a client cookie only.
    #[must_use]
    pub fn new(client: [u8; 8]) -> Self {
        Self { client, server: [0; SERVER_COOKIE_BYTES_MAX], server_len: 0 }
    }

    /// The client cookie.
    #[must_use]
    pub fn client(&self) -> [u8; 8] {
        self.client
    }

    /// The server cookie; empty while none is known.
    #[must_use]
    pub fn server(&self) -> &[u8] {
        &self.server[..usize::from(self.server_len)]
    }

    /// Remembers a server cookie of 8–32 octets; others are no server cookies.
    pub fn remember(&mut self, server: &[u8]) {
        if (8..=SERVER_COOKIE_BYTES_MAX).contains(&server.len()) {
            self.server[..server.len()].copy_from_slice(server);
            self.server_len = server.len() as u8; // at most 32
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_failures_in_a_row_turn_it_off_for_an_hour_and_one_more_again() {
        let mut capability = Capability::default();
        capability.failed(0);
        capability.succeeded();
        capability.failed(0);
        assert!(capability.is_on(0));
        capability.failed(5);
        assert!(!capability.is_on(5 + RELEARN_NANOS - 1) && capability.is_on(5 + RELEARN_NANOS));
        capability.failed(2 * RELEARN_NANOS);
        assert!(!capability.is_on(2 * RELEARN_NANOS));
    }

    #[test]
    fn only_server_cookies_of_a_right_length_are_remembered() {
        let mut cookies = Cookies::new([1; 8]);
        for (cookie, len) in [(&[2; 7][..], 0), (&[3; 8], 8), (&[4; 33], 8), (&[5; 32], 32)] {
            cookies.remember(cookie);
            assert_eq!(cookies.server().len(), len);
        }
    }
}
