//! Signatures over a whole message, by a key that both sides have (rfc8945).
//!
//! ```text
//! query ─ SignatureRecord::read ─► verify(keys, time) ─► QuerySignature ─► sign(reply)
//!                   │                    └ check: what is wrong with it, if anything is
//!                   └► rejection: the unsigned record of the reply to one that proves nothing
//! transfer ─ StreamSigner::sign(message), each over the former one's signature
//! client ─ ReplySignature::sign_query(query) ─► check(message), for each message of the reply
//! ```
//!
//! Deliberately absent: HMAC-MD5, which is broken, GSS-TSIG, SIG(0), clocks.

mod client;
#[cfg(feature = "tsig")]
mod hmac;
#[cfg(not(feature = "tsig"))]
#[path = "no_hmac.rs"]
mod hmac;
mod key;
mod record;
mod sign;

pub use client::{ReplySignature, SignatureFault};
pub use key::{Algorithm, Key, KeyId, KeyRing};
pub use record::SignatureRecord;
pub use sign::{QuerySignature, SignatureCheck, StreamSigner};

use crate::code::{Class, Rcode};
use crate::name;

/// Octets of the longest MAC: that of SHA-512.
const MAC_BYTES_MAX: usize = 64;
/// Octets of a TSIG record's data behind the name of the algorithm when MAC and other data are
/// empty: time, fudge, length of the MAC, original id, error, length of the other data.
const FIXED_BYTES: usize = 6 + 2 + 2 + 2 + 2 + 2;
/// Octets of the time and the fudge, which stand in front of the MAC.
const TIME_BYTES: usize = 6 + 2;
/// Octets of the other data of a reply that tells the server's time.
const OTHER_BYTES_MAX: usize = 6;
/// How many seconds the clocks of the two sides may differ, as replies say (rfc8945#10).
const FUDGE_SECS: u16 = 300;

/// The error of a signature that is not the key's (rfc8945#3); in EDNS the same number is BADVERS.
pub const BADSIG: Rcode = Rcode(16);

/// Whether what lies behind the type of a TSIG record is as it should be: class ANY, a TTL of 0,
/// and data whose parts have the lengths that they say (rfc8945#4.2).
pub(crate) fn has_valid_layout(behind_type: &[u8]) -> bool {
    let [high, low] = Class::ANY.0.to_be_bytes();
    let Some(&[a, b, 0, 0, 0, 0, _, _]) = behind_type.first_chunk() else { return false };
    [a, b] == [high, low] && split(&behind_type[8..]).is_some()
}

/// The parts of a TSIG record's data.
struct Parts<'m> {
    /// The name of the algorithm.
    algorithm: &'m [u8],
    /// The time of the signature with the fudge.
    time: &'m [u8],
    /// The message authentication code.
    mac: &'m [u8],
    /// The id that the message had when it was signed.
    id: [u8; 2],
    /// The error that a reply tells.
    error: Rcode,
    /// The other data, which a client sends none of (rfc8945#4.2).
    other: &'m [u8],
}

/// Returns the parts of a record's data.
fn split(rdata: &[u8]) -> Option<Parts<'_>> {
    let (algorithm, behind) = rdata.split_at_checked(name::wire_len(rdata)?)?;
    let (time, behind) = behind.split_at_checked(TIME_BYTES)?;
    let counted = |octets: &[u8]| Some(usize::from(u16::from_be_bytes(*octets.first_chunk()?)));
    let (mac, behind_mac) = behind.get(2..)?.split_at_checked(counted(behind)?)?;
    let id = *behind_mac.first_chunk()?;
    let error = Rcode(u16::from_be_bytes(*behind_mac.get(2..)?.first_chunk()?));
    let other = behind_mac.get(4..)?;
    let is_whole = other.len() == 2 + counted(other)?;
    is_whole.then_some(Parts { algorithm, time, mac, id, error, other: &other[2..] })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The record behind its type: class, TTL, length, algorithm `a`, time, fudge, MAC, id, error,
    /// other data.
    const SOUND: &[u8] = b"\0\xff\0\0\0\0\0\x18\x01a\0\0\0\x65\0\0\0\x01\x2c\0\x05macmaHI\0\0\0\0";

    #[test]
    fn a_signature_has_the_lengths_that_it_says() {
        assert!(has_valid_layout(SOUND));
        for end in 0..SOUND.len() {
            assert!(!has_valid_layout(&SOUND[..end]), "{end}");
        }
        assert!(!has_valid_layout(&[SOUND, b"x"].concat()));
        assert!(!has_valid_layout(&[b"\0\x01", &SOUND[2..]].concat()));
        assert!(!has_valid_layout(&[b"\0\xff\0\0\0\x01", &SOUND[6..]].concat()));
    }
}
