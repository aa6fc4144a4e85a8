//! What a stream of DNS over QUIC carries: a message under id 0, its length before it
//! (rfc9250#4.2, #4.2.1).

use zonda_wire::query::HEADER_BYTES;

use crate::fault::Fault;
use crate::session::replace_id;

/// The fault of a server that breaks the rules of DNS over QUIC: it sends too little, too much, or
/// something else.
pub(crate) const RULES: Fault = Fault::Rules("DNS over QUIC");

/// Returns a query as a stream carries it, and the id that it had.
///
/// # Errors
/// When it is no query.
pub fn frame(query: &[u8]) -> Result<(Vec<u8>, [u8; 2]), Fault> {
    let len = u16::try_from(query.len()).map_err(|_| Fault::Malformed)?;
    let mut query = query.to_vec();
    let id = replace_id(&mut query, [0; 2])?;
    Ok(([&len.to_be_bytes(), &query[..]].concat(), id))
}

/// Returns the message of a whole stream, under another id than 0.
///
/// # Errors
/// When the stream has not just one message, whole and under id 0.
pub fn unframe(octets: &[u8], id: [u8; 2]) -> Result<Vec<u8>, Fault> {
    let (len, message) = octets.split_first_chunk::<2>().ok_or(RULES)?;
    let mut message = message.to_vec();
    let is_whole =
        message.len() >= HEADER_BYTES && message.len() == usize::from(u16::from_be_bytes(*len));
    match replace_id(&mut message, id) {
        Ok([0, 0]) if is_whole => Ok(message),
        _ => Err(RULES),
    }
}
