//! SOA records that no zone has, for negative replies of code (rfc2308#5).

use zonda_wire::name;

/// Serial, refresh, retry and expire of a record that is made: no server transfers the zone.
const TIMES: [u32; 4] = [1, 7200, 900, 1_209_600];

/// The SOA record of a negative reply.
#[derive(Clone, Copy, Debug)]
pub struct NegativeSoa<'a> {
    /// Name of the zone, in wire form.
    pub apex: &'a [u8],
    /// Seconds for which resolvers cache the reply.
    pub ttl_secs: u32,
    /// Data of the record.
    pub rdata: &'a [u8],
}

/// Appends the data of an SOA record that is made for a zone of this name, in wire form.
pub(super) fn write_made_soa(zone: &[u8], ttl_secs: u32, out: &mut Vec<u8>) {
    const LABEL: &[u8] = b"\x0ahostmaster";
    out.extend_from_slice(zone);
    if LABEL.len() + zone.len() <= name::NAME_BYTES_MAX {
        out.extend_from_slice(LABEL);
    }
    out.extend_from_slice(zone);
    let numbers = TIMES.into_iter().chain([ttl_secs]);
    numbers.for_each(|number| out.extend_from_slice(&number.to_be_bytes()));
}
