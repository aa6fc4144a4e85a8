//! OPT records: how large they are, and how options are put into them (rfc6891#6.1.2).

use zonda_wire::SubnetOption;

/// Octets of an OPT record without options.
pub const OPT_BYTES: usize = 11;
/// Octets of an option's code and length.
pub const OPTION_HEADER: usize = 4;
/// The largest OPT record of a reply: an identifier of 128 octets, cookie, client subnet, timeout,
/// expiry, extended error.
pub const OPT_BYTES_MAX: usize = OPT_BYTES
    + (OPTION_HEADER + NSID_BYTES_MAX)
    + (OPTION_HEADER + 24)
    + (OPTION_HEADER + SubnetOption::BYTES_MAX)
    + (OPTION_HEADER + 2)
    + (OPTION_HEADER + 4)
    + (OPTION_HEADER + 2 + TEXT_BYTES_MAX);
/// Most octets of an extended error's text that are sent.
pub const TEXT_BYTES_MAX: usize = zonda_cache::FAILURE_TEXT_BYTES_MAX;
/// The largest name server identifier that is sent.
pub const NSID_BYTES_MAX: usize = 128;

/// An OPT record under way.
pub struct Opt<'o> {
    /// The record's octets, as far as they are written.
    pub octets: &'o mut [u8; OPT_BYTES_MAX],
    /// The number of octets written.
    pub len: usize,
}

impl Opt<'_> {
    /// Appends an option whose data, of at most 255 octets, is in two parts.
    pub fn option(&mut self, code: u16, [first, second]: [&[u8]; 2]) {
        let (start, len) = (self.len + OPTION_HEADER, first.len() + second.len());
        self.octets[self.len..self.len + 2].copy_from_slice(&code.to_be_bytes());
        self.octets[self.len + 2..start].copy_from_slice(&[0, len as u8]);
        self.octets[start..start + first.len()].copy_from_slice(first);
        self.octets[start + first.len()..start + len].copy_from_slice(second);
        self.len = start + len;
    }
}
