//! Codes of EDNS options that options of queries to upstreams depend on.

use zonda_wire::Query;

/// Most options of a query to an upstream, and codes in [`OptionCodes`].
pub const UPSTREAM_OPTIONS_MAX: usize = 8;

/// Codes of EDNS options, at most [`UPSTREAM_OPTIONS_MAX`]: those for which options of upstreams
/// are sent only if the client's query has one, or those of them that a query has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OptionCodes([u16; UPSTREAM_OPTIONS_MAX]);

impl OptionCodes {
    /// Adds a code, which is not 0; whether there was room, or it was there already.
    pub fn insert(&mut self, code: u16) -> bool {
        let place = self.0.iter_mut().find(|known| matches!(**known, 0) || **known == code);
        place.map(|place| *place = code).is_some()
    }

    /// Whether a code, which is not 0, is among them.
    #[must_use]
    pub fn contains(&self, code: u16) -> bool {
        self.0.contains(&code)
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0[0] == 0
    }

    /// Returns those of the codes that the options of a query have, which lies in `message`.
    #[must_use]
    pub fn in_query(&self, query: &Query, message: &[u8]) -> Self {
        let mut found = Self::default();
        for (code, _) in query.options(message).filter(|(code, _)| self.contains(*code)) {
            found.insert(code);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn codes_are_found_among_the_options_of_a_query() {
        let mut codes = OptionCodes::default();
        (65001..65009).for_each(|code| assert!(codes.insert(code)));
        assert!(!codes.insert(65010), "there is no room");
        let message =
            b"\x12\x34\x01\0\0\x01\0\0\0\0\0\x01\x01a\0\0\x01\0\x01\0\0\x29\x04\xd0\0\0\0\
                        \0\0\x0a\xfd\xeb\0\x02ab\xfd\xf5\0\0";
        let query = Query::parse(message).unwrap();
        let found = codes.in_query(&query, message);
        assert!(found.contains(65003) && !found.contains(65013), "{found:?}");
        assert_eq!(found.0.iter().filter(|code| **code != 0).count(), 1);
    }
}
