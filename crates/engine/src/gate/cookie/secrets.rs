//! How server cookies are made and checked.

use siphasher::sip::SipHasher24;
use std::hash::Hasher;
use std::net::IpAddr;

/// A cookie is good for an hour (rfc9018#4.3).
const AGE_SECS_MAX: u32 = 3600;
/// From this age on a fresh one is sent instead of the client's own.
const RENEW_SECS: u32 = 1800;
/// How far the clocks of an anycast set may be apart.
const SKEW_SECS_MAX: u32 = 300;

/// The secrets of server cookies.
#[derive(Clone)]
pub struct Secrets {
    /// Makes new cookies.
    pub current: [u8; 16],
    /// Accepted as well, so that secrets can roll over.
    pub accepted: Vec<[u8; 16]>,
}

/// Returns the cookie to send for the one received, and whether this server, or another with its
/// secrets, had made that one.
pub fn answer(secrets: &Secrets, sent: &[u8], client: IpAddr, now: u32) -> ([u8; 24], bool) {
    let mut client_part = [0; 8];
    client_part.copy_from_slice(&sent[..8]); // the parser lets no shorter one pass
    if let Ok(ours) = <[u8; 24]>::try_from(sent) {
        let made = u32::from_be_bytes([ours[12], ours[13], ours[14], ours[15]]);
        let age = now.wrapping_sub(made) as i32; // serial arithmetic, rfc9018#4.3
        let in_time = age <= AGE_SECS_MAX as i32 && age >= -(SKEW_SECS_MAX as i32);
        let mut all = std::iter::once(&secrets.current).chain(&secrets.accepted);
        if in_time && all.any(|secret| make(secret, client_part, client, made) == ours) {
            let still_fresh = age < RENEW_SECS as i32
                && make(&secrets.current, client_part, client, made) == ours;
            let cookie =
                if still_fresh { ours } else { make(&secrets.current, client_part, client, now) };
            return (cookie, true);
        }
    }
    (make(&secrets.current, client_part, client, now), false)
}

/// A cookie made at a moment, in seconds since 1970.
fn make(secret: &[u8; 16], client_part: [u8; 8], client: IpAddr, made: u32) -> [u8; 24] {
    let mut cookie = [0; 24];
    cookie[..8].copy_from_slice(&client_part);
    cookie[8] = 1;
    cookie[12..16].copy_from_slice(&made.to_be_bytes());
    let mut hasher = SipHasher24::new_with_key(secret);
    hasher.write(&cookie[..16]);
    match client.to_canonical() {
        IpAddr::V4(address) => hasher.write(&address.octets()),
        IpAddr::V6(address) => hasher.write(&address.octets()),
    }
    cookie[16..].copy_from_slice(&hasher.finish().to_le_bytes());
    cookie
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn octets<const N: usize>(hex: &str) -> [u8; N] {
        let digits: Vec<_> =
            (0..N).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16)).collect();
        std::array::from_fn(|i| digits[i].clone().unwrap())
    }

    #[test]
    fn cookies_are_those_of_rfc9018_appendix_a() {
        let secret = octets("e5e973e5a6b2a43f48e7dc849e37bfcf");
        let client = "198.51.100.100".parse().unwrap();
        let cookie = make(&secret, octets("2464c4abcf10c957"), client, 1_559_731_985);
        assert_eq!(cookie, octets("2464c4abcf10c957010000005cf79f111f8130c3eee29480"));
        let client = "2001:db8:220:1:59de:d0f4:8769:82b8".parse().unwrap();
        let secret = octets("dd3bdf9344b678b185a6f5cb60fca715");
        let cookie = make(&secret, octets("22681ab97d52c298"), client, 1_559_741_817);
        assert_eq!(cookie, octets("22681ab97d52c298010000005cf7c57926556bd0934c72f8"));
    }

    #[test]
    fn a_cookie_proves_its_address_until_it_is_an_hour_old() {
        let secrets = Secrets { current: [1; 16], accepted: vec![[2; 16]] };
        let client: IpAddr = "192.0.2.1".parse().unwrap();
        let ours = make(&[1; 16], [7; 8], client, 10_000);
        assert_eq!(answer(&secrets, &ours, client, 10_000 + RENEW_SECS - 1), (ours, true));
        let renewed = make(&[1; 16], [7; 8], client, 13_600);
        assert_eq!(answer(&secrets, &ours, client, 13_600), (renewed, true));
        assert!(!answer(&secrets, &ours, client, 13_601).1);
        assert!(answer(&secrets, &ours, client, 10_000 - SKEW_SECS_MAX).1);
        assert!(!answer(&secrets, &ours, client, 9_999 - SKEW_SECS_MAX).1);
        assert!(!answer(&secrets, &ours, "192.0.2.2".parse().unwrap(), 10_000).1);
    }

    #[test]
    fn a_cookie_of_the_former_secret_is_accepted_and_replaced() {
        let secrets = Secrets { current: [1; 16], accepted: vec![[2; 16]] };
        let client: IpAddr = "2001:db8::1".parse().unwrap();
        let former = make(&[2; 16], [7; 8], client, 500);
        let current = make(&[1; 16], [7; 8], client, 501);
        assert_eq!(answer(&secrets, &former, client, 501), (current, true));
        assert!(!answer(&secrets, &make(&[3; 16], [7; 8], client, 500), client, 501).1);
    }
}
