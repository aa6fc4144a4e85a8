//! Signatures of messages: a query's is checked and cut off before anything looks at the query, a
//! reply's is added when nothing changes the reply any more (rfc8945#5).

use crate::epilogue;
use crate::hot::HotTable;
use crate::message::{Now, Transport};
use crate::prepared::PreparedQuery;
use crate::snapshot::Snapshot;
use crate::update::UPDATE_FUDGE_SECS;
use zonda_wire::Opcode;
use zonda_wire::query::HEADER_BYTES;
use zonda_wire::tsig::{QuerySignature, SignatureCheck, SignatureRecord};

/// Checks the signature of a message of `len` octets, whose TSIG record begins at `at`. If it is
/// sound, the record is cut off, and the message is read again as if it had come without.
#[cold]
pub fn check(
    prepared: &mut PreparedQuery,
    (buffer, len): (&mut [u8], &mut usize),
    at: usize,
    (snapshot, hot): (&Snapshot, &HotTable),
    record: &mut SignatureRecord,
    now: Now,
) {
    prepared.signed_end = *len;
    let message = buffer.get(..*len).unwrap_or_default();
    let keys = &snapshot.settings.keys;
    let now_secs = now.unix_secs.into();
    let Some(mut signature) = record.verify(message, at, keys, now_secs) else { return };
    if prepared.query.opcode() == Opcode::UPDATE {
        signature.narrow(UPDATE_FUDGE_SECS, now_secs);
    }
    if signature.check == SignatureCheck::Sound {
        *len = at;
        uncount(buffer);
        prepared.read(buffer, at, snapshot, hot);
        prepared.signed_at = at;
    }
    prepared.signature = Some(signature);
}

/// Counts one additional record fewer in the header of a message.
pub fn uncount(message: &mut [u8]) {
    if let Some([high, low]) = message.get_mut(10..HEADER_BYTES) {
        let count = u16::from_be_bytes([*high, *low]).saturating_sub(1);
        [*high, *low] = count.to_be_bytes();
    }
}

/// The largest reply to a message that may be sent, without its signature.
#[inline]
pub fn reply_bytes_max(
    prepared: &PreparedQuery,
    snapshot: &Snapshot,
    transport: Transport,
) -> usize {
    let limit = epilogue::reply_bytes_max(&prepared.query, &snapshot.settings, transport);
    match &prepared.signature {
        None => limit,
        Some(it) => limit.saturating_sub(reserved_bytes(it, snapshot)),
    }
}

/// Octets to leave free in a reply for its signature.
#[cold]
fn reserved_bytes(signature: &QuerySignature, snapshot: &Snapshot) -> usize {
    if !signature.check.is_answered_signed() {
        return 0;
    }
    let key = signature.key.and_then(|id| snapshot.settings.keys.get(id));
    key.map_or(0, |key| signature.reply_bytes(key))
}

/// Signs the reply of `len` octets in a buffer, if the key is still known; returns its length then.
#[cold]
pub fn sign(
    signature: &QuerySignature,
    snapshot: &Snapshot,
    (buffer, len): (&mut [u8], usize),
    now: Now,
) -> usize {
    let key = signature.key.and_then(|id| snapshot.settings.keys.get(id));
    let signed = key
        .filter(|_| signature.check.is_answered_signed())
        .and_then(|key| signature.sign(key, buffer, len, now.unix_secs.into()));
    signed.unwrap_or(len)
}
