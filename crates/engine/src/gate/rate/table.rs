//! The counts of replies, and how many a client prefix may have.

use crate::access::Network;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Words that are searched for a key: what one cache line holds.
const WAYS: usize = 8;
/// Bits of a word that hold the moment.
const MOMENT_BITS: u32 = 40;
/// A moment is a number of nanoseconds shifted right by this: units of about 16 µs, which wrap
/// after half a year.
pub(super) const MOMENT_SHIFT: u32 = 14;
/// Moments further ahead than this are taken for ones long past.
const HORIZON: u64 = 1 << (MOMENT_BITS - 1);

/// Response rate limiting as configured.
#[derive(Clone)]
pub struct RateSettings {
    /// Units of time that one reply uses up.
    pub(super) interval: u64,
    /// Units of time that a prefix may be ahead.
    pub(super) burst: u64,
    /// Every how many dropped replies one is sent truncated; 0 never, 1 always.
    pub(super) slip: u32,
    /// Bits of a client's address that make its prefix.
    prefix_bits: (u8, u8),
    /// Clients without a limit.
    pub(super) exempt: Vec<Network>,
    pub(super) table: Arc<RateTable>,
}

/// The counts.
pub struct RateTable {
    words: Box<[AtomicU64]>,
}

impl RateTable {
    /// A table with room for about `keys` counts, eight octets each.
    #[must_use]
    pub fn new(keys: usize) -> Arc<Self> {
        let words = keys.next_power_of_two().max(WAYS);
        Arc::new(Self { words: (0..words).map(|_| AtomicU64::new(0)).collect() })
    }

    /// Adds `interval` to the count of a key; whether it is then within `burst` of `now`.
    #[inline]
    pub(super) fn admit(&self, key: u64, now: u64, interval: u64, burst: u64) -> bool {
        const MOMENT: u64 = (1 << MOMENT_BITS) - 1;
        let tag = key >> MOMENT_BITS | 1; // 0 marks a free word
        let first = (key as usize & (self.words.len() - 1)) & !(WAYS - 1);
        let ahead = |word: u64| match word.wrapping_sub(now) & MOMENT {
            used if used < HORIZON => used,
            _ => 0,
        };
        let (mut at, mut least) = (first, u64::MAX);
        for way in first..first + WAYS {
            let word = self.words[way].load(Relaxed);
            if word >> MOMENT_BITS == tag {
                (at, least) = (way, ahead(word));
                break;
            }
            let used = if word == 0 { 0 } else { ahead(word) };
            if used < least {
                (at, least) = (way, used);
            }
        }
        let same_key = self.words[at].load(Relaxed) >> MOMENT_BITS == tag;
        let used = if same_key { least } else { 0 };
        let admitted = used + interval <= burst;
        let kept = if admitted { used + interval } else { used }; // a flood still gets its share
        self.words[at].store(tag << MOMENT_BITS | (now.wrapping_add(kept) & MOMENT), Relaxed);
        admitted
    }
}

impl RateSettings {
    /// Limits each key to `per_second` replies, and `window_secs` times as many at once; prefixes
    /// are of (IPv4, IPv6) `prefix_bits`.
    #[must_use]
    pub fn new(
        per_second: u32,
        window_secs: u32,
        slip: u32,
        prefix_bits: (u8, u8),
        exempt: Vec<Network>,
        table: Arc<RateTable>,
    ) -> Self {
        let second = 1_000_000_000_u64 >> MOMENT_SHIFT;
        let interval = (second / u64::from(per_second.max(1))).max(1);
        let burst = second * u64::from(window_secs.max(1));
        Self { interval, burst, slip, prefix_bits, exempt, table }
    }

    /// The key of a client's prefix and a kind of reply.
    #[inline]
    pub(super) fn key(&self, client: IpAddr, kind: u64) -> u64 {
        let prefix = match client.to_canonical() {
            IpAddr::V4(a) => {
                u128::from(a.to_bits())
                    & (u128::MAX << (32 - u32::from(self.prefix_bits.0.min(32))))
            }
            IpAddr::V6(a) => {
                a.to_bits()
                    & u128::MAX
                        .checked_shl(128 - u32::from(self.prefix_bits.1.min(128)))
                        .unwrap_or(0)
            }
        };
        let mut key = kind;
        for half in [prefix as u64, (prefix >> 64) as u64] {
            let product = u128::from(key ^ half ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
            key = (product as u64) ^ ((product >> 64) as u64);
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_gets_its_burst_and_then_its_share() {
        let table = RateTable::new(64);
        let settings = RateSettings::new(10, 1, 2, (24, 56), Vec::new(), Arc::clone(&table));
        let second = 1_000_000_000_u64 >> MOMENT_SHIFT;
        let mut now = 5;
        let admit = |now| table.admit(77, now, settings.interval, settings.burst);
        assert_eq!((0..100).filter(|_| admit(now)).count(), 10);
        let mut admitted = 0;
        for _ in 0..1000 {
            now += second / 100; // ten seconds, 100 replies a second
            admitted += usize::from(admit(now));
        }
        assert!((99..=101).contains(&admitted), "{admitted}");
    }

    #[test]
    fn a_full_set_gives_up_its_idlest_key() {
        let table = RateTable::new(WAYS);
        for key in 0..20_u64 {
            assert!(table.admit(key << MOMENT_BITS << 1, 1000 + key, 100, 200));
        }
        assert!(table.admit(19 << MOMENT_BITS << 1, 1020, 100, 200));
        assert!(!table.admit(19 << MOMENT_BITS << 1, 1021, 100, 200));
    }

    #[test]
    fn clients_of_one_prefix_share_a_key() {
        let settings = RateSettings::new(10, 1, 2, (24, 56), Vec::new(), RateTable::new(8));
        let key = |client: &str| settings.key(client.parse().expect("an address"), 1);
        assert_eq!(key("192.0.2.1"), key("192.0.2.254"));
        assert_ne!(key("192.0.2.1"), key("192.0.3.1"));
        assert_eq!(key("2001:db8::1"), key("2001:db8:0:ff::1"));
        assert_ne!(key("2001:db8::1"), key("2001:db8:0:100::1"));
    }
}
