//! What an upstream is known not to understand, and its cookie.
//!
//! An upstream that once stumbles over EDNS or mixed case is asked again without, for this question
//! only. When it does so twice in a row, and answers then, it is spared for an hour, then tried
//! again. What it fails in any case says nothing: some do not know the type that was asked for.
//!
//! Deliberately absent: randomness; a cookie is made of a secret that the caller brings.

use siphasher::sip::SipHasher24;
use std::hash::{Hash, Hasher};
use std::net::SocketAddr;

use crate::SECOND_NANOS;

/// Failures in a row after which something is left out: one can be a forged or garbled answer.
const FAILURES_MAX: u8 = 2;
/// Nanoseconds for which a feature is left out of queries.
const RELEARN_NANOS: u64 = 3600 * SECOND_NANOS;

/// A feature that queries have by default and that an upstream may not understand.
#[derive(Clone, Copy, Debug, Default)]
pub struct Capability {
    /// Failures in a row.
    failures: u8,
    /// Time until which the feature is left out.
    off_until: u64,
}

impl Capability {
    /// Whether queries are to have the feature.
    #[must_use]
    pub fn is_enabled(&self, now: u64) -> bool {
        now >= self.off_until
    }

    /// Records that the feature was understood.
    pub fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// Records that the feature was not understood.
    pub fn failed(&mut self, now: u64) {
        self.failures += 1;
        if self.failures >= FAILURES_MAX {
            *self = Self { failures: FAILURES_MAX - 1, off_until: now + RELEARN_NANOS };
        }
    }
}

/// Most octets of a server cookie (rfc7873#4.2).
const SERVER_COOKIE_BYTES_MAX: usize = 32;

/// Most addresses of an upstream of which cookies are remembered.
const ADDRESSES_MAX: usize = 16;
/// For how long a client cookie is used, nanoseconds: no observer can track this server by it for
/// longer.
const RENEW_NANOS: u64 = 24 * 3600 * SECOND_NANOS;

/// The cookies exchanged with an upstream, at each of its addresses (rfc7873#4.1).
#[derive(Clone, Debug)]
pub struct Jar {
    /// Key of the cookies' hash; never leaves the process.
    secret: [u8; 16],
    /// At most [`ADDRESSES_MAX`], the oldest first; nothing stands for where a connection leads.
    by_address: Vec<(Option<SocketAddr>, Cookies)>,
}

impl Jar {
    /// Makes cookies of a secret.
    #[must_use]
    pub fn new(secret: [u8; 16]) -> Self {
        Self { secret, by_address: Vec::new() }
    }

    /// Returns the cookies for a query to an address.
    pub fn at(&mut self, address: Option<SocketAddr>, now: u64) -> Cookies {
        let is_of_use = |(known, cookies): &(Option<SocketAddr>, Cookies)| {
            *known == address && now.saturating_sub(cookies.made_at) < RENEW_NANOS
        };
        if let Some((_, cookies)) = self.by_address.iter().find(|it| is_of_use(it)) {
            return *cookies;
        }
        self.by_address.retain(|(known, _)| *known != address);
        if self.by_address.len() == ADDRESSES_MAX {
            self.by_address.remove(0);
        }
        // SipHash of what is no secret, with the secret as its key (rfc7873#appendix-A.1).
        let mut hasher = SipHasher24::new_with_key(&self.secret);
        (address, now).hash(&mut hasher);
        let cookies = Cookies { made_at: now, ..Cookies::new(hasher.finish().to_be_bytes()) };
        self.by_address.push((address, cookies));
        cookies
    }

    /// Remembers the server cookie that came back with a client cookie, if it is one: 8–32 octets.
    /// It is not if servers behind that address were found not to agree on cookies.
    pub fn remember(&mut self, client: Option<[u8; 8]>, server: &[u8], now: u64) {
        if let Some(cookies) = self.of(client)
            && cookies.steady.is_enabled(now)
        {
            if cookies.server_len > 0 {
                cookies.steady.succeeded();
            }
            cookies.remember(server);
        }
    }

    /// Remembers the server cookie without which there is no answer.
    pub fn insist(&mut self, client: Option<[u8; 8]>, server: &[u8]) {
        if let Some(cookies) = self.of(client) {
            cookies.remember(server);
        }
    }

    /// Records that a server cookie was sent with a client cookie, and none came back.
    pub fn missed(&mut self, client: Option<[u8; 8]>, now: u64) {
        if let Some(cookies) = self.of(client) {
            cookies.missed(now);
        }
    }

    /// Records that a server cookie was sent somewhere, and none came back.
    pub fn missed_anywhere(&mut self, now: u64) {
        self.by_address.iter_mut().for_each(|(_, cookies)| cookies.missed(now));
    }

    /// Returns the cookies with a client cookie; none if that was renewed meanwhile.
    fn of(&mut self, client: Option<[u8; 8]>) -> Option<&mut Cookies> {
        let all = self.by_address.iter_mut().map(|(_, cookies)| cookies);
        client.and_then(|client| all.into_iter().find(|cookies| cookies.client == client))
    }
}

/// The cookies exchanged with an upstream at one address (rfc7873).
#[derive(Clone, Copy, Debug)]
pub struct Cookies {
    /// The client cookie, which only this address receives.
    client: [u8; 8],
    /// Moment at which the client cookie was made.
    made_at: u64,
    /// The upstream's part of the cookie.
    server: [u8; SERVER_COOKIE_BYTES_MAX],
    /// Octets of the server cookie; 0 while none is known.
    server_len: u8,
    /// Whether a cookie comes back each time.
    steady: Capability,
}

impl Cookies {
    /// Starts with a client cookie only.
    #[must_use]
    pub fn new(client: [u8; 8]) -> Self {
        let (server, steady) = ([0; SERVER_COOKIE_BYTES_MAX], Capability::default());
        Self { client, made_at: 0, server, server_len: 0, steady }
    }

    /// Returns the client cookie.
    #[must_use]
    pub fn client(&self) -> [u8; 8] {
        self.client
    }

    /// Returns the server cookie; empty while none is known.
    #[must_use]
    pub fn server(&self) -> &[u8] {
        &self.server[..usize::from(self.server_len)]
    }

    /// Remembers a server cookie of 8–32 octets; any other length is no server cookie.
    pub(crate) fn remember(&mut self, server: &[u8]) {
        if (8..=SERVER_COOKIE_BYTES_MAX).contains(&server.len()) {
            self.server[..server.len()].copy_from_slice(server);
            self.server_len = server.len() as u8; // at most 32
        }
    }

    /// Records that no cookie came back though one was expected: none is expected any longer.
    fn missed(&mut self, now: u64) {
        if self.server_len > 0 {
            self.steady.failed(now);
            self.server_len = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_failures_in_a_row_disable_a_capability_for_an_hour_and_one_more_again() {
        let mut capability = Capability::default();
        capability.failed(0);
        capability.succeeded();
        capability.failed(0);
        assert!(capability.is_enabled(0));
        capability.failed(5);
        assert!(
            !capability.is_enabled(5 + RELEARN_NANOS - 1)
                && capability.is_enabled(5 + RELEARN_NANOS)
        );
        capability.failed(2 * RELEARN_NANOS);
        assert!(!capability.is_enabled(2 * RELEARN_NANOS));
    }

    #[test]
    fn only_server_cookies_of_a_right_length_are_remembered() {
        let mut cookies = Cookies::new([1; 8]);
        for (cookie, len) in [(&[2; 7][..], 0), (&[3; 8], 8), (&[4; 33], 8), (&[5; 32], 32)] {
            cookies.remember(cookie);
            assert_eq!(cookies.server().len(), len);
        }
    }

    #[test]
    fn each_address_sees_a_client_cookie_of_its_own_and_a_new_one_after_a_day() {
        let mut jar = Jar::new([7; 16]);
        let address = |last: u8| Some(([192, 0, 2, last], 53).into());
        let cookies = jar.at(address(1), 0);
        jar.remember(Some(cookies.client()), b"server-1", 0);
        assert_eq!(jar.at(address(1), 5).server(), b"server-1");
        assert_eq!(jar.at(address(1), 5).client(), cookies.client());
        let other = jar.at(address(2), 5);
        assert!(other.client() != cookies.client() && other.server().is_empty());
        let later = jar.at(address(1), RENEW_NANOS);
        assert!(later.client() != cookies.client() && later.server().is_empty());
        jar.remember(Some(cookies.client()), b"server-2", 0);
        assert!(jar.at(address(1), RENEW_NANOS).server().is_empty(), "it is for the former one");
        for last in 0..100 {
            jar.at(address(last), 0);
        }
        assert_eq!(jar.by_address.len(), ADDRESSES_MAX);
    }

    #[test]
    fn an_upstream_that_omits_cookies_twice_in_a_row_may_omit_them_for_an_hour() {
        let mut jar = Jar::new([7; 16]);
        let client = Some(jar.at(None, 0).client());
        let knows = |jar: &mut Jar, now: u64| {
            jar.remember(client, b"server-1", now);
            !jar.at(None, now).server().is_empty()
        };
        assert!(knows(&mut jar, 0));
        jar.missed(client, 1);
        assert!(jar.at(None, 1).server().is_empty() && knows(&mut jar, 1));
        assert!(knows(&mut jar, 2), "one that came back makes good");
        jar.missed(client, 3);
        jar.missed_anywhere(3); // nothing was expected any more
        assert!(knows(&mut jar, 4));
        jar.missed_anywhere(5);
        assert!(!knows(&mut jar, 6) && knows(&mut jar, 5 + RELEARN_NANOS));
    }
}
