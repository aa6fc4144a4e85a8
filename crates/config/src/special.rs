//! Names that are not forwarded unless configured: special-use names and locally served reverse
//! zones, as IANA lists them.
//!
//! Deliberately absent: `test`, `example` and the like, which people forward to servers that have
//! them; `ipv4only.arpa`, which leads clients to a DNS64 upstream only if forwarded (rfc8880#7.1);
//! and names of other purposes that resolvers have nothing to do with.

use zonda_wire::Name;

/// Special-use names given one by one, not as a family.
const NAMES: [&str; 25] = [
    "alt",                          // rfc9476: names of other systems
    "home.arpa",                    // rfc8375: of a home network
    "invalid",                      // rfc6761#6.4: never exist
    "local",                        // rfc6762#22.1: asked for over multicast
    "localhost",                    // rfc6761#6.3: this very machine
    "onion",                        // rfc7686#2: of Tor
    "resolver.arpa",                // rfc9462#6.4: of the resolver that is asked
    "service.arpa",                 // rfc9665: of a local service registry
    "10.in-addr.arpa",              // rfc1918
    "168.192.in-addr.arpa",         // rfc1918
    "0.in-addr.arpa",               // rfc6303#4.2, as all below
    "127.in-addr.arpa",             // loopback
    "254.169.in-addr.arpa",         // link-local
    "2.0.192.in-addr.arpa",         // documentation
    "100.51.198.in-addr.arpa",      // documentation
    "113.0.203.in-addr.arpa",       // documentation
    "255.255.255.255.in-addr.arpa", // broadcast
    "0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa", // unspecified
    "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa", // loopback
    "d.f.ip6.arpa",                 // unique local, rfc4193
    "8.e.f.ip6.arpa",               // link-local, as the three below
    "9.e.f.ip6.arpa",
    "a.e.f.ip6.arpa",
    "b.e.f.ip6.arpa",
    "8.b.d.0.1.0.0.2.ip6.arpa", // documentation
];

/// The networks that have several reverse zones, one for each second octet.
const NETWORKS: [(u8, std::ops::RangeInclusive<u8>); 2] = [
    (172, 16..=31),  // rfc1918
    (100, 64..=127), // rfc7793: shared between carriers and customers
];

/// Returns all special-use names, in lower case.
pub(crate) fn all() -> impl Iterator<Item = Name> {
    let single = NAMES.iter().map(|name| (*name).to_owned());
    let reverse = NETWORKS.into_iter().flat_map(|(first, seconds)| {
        seconds.map(move |second| format!("{second}.{first}.in-addr.arpa"))
    });
    single.chain(reverse).map(|name| name.parse().expect("the names above are names"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_name_is_there_once_in_lower_case() {
        let mut names: Vec<Name> = all().collect();
        assert_eq!(names.len(), 25 + 16 + 64);
        assert!(names.iter().all(|name| *name == name.to_lowercase()));
        names.sort_by_key(|name| name.as_wire().to_vec());
        names.dedup();
        assert_eq!(names.len(), 25 + 16 + 64);
        assert!(names.contains(&"31.172.in-addr.arpa".parse().unwrap()));
    }
}
