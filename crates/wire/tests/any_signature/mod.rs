//! What must hold of any octets read as a signed query; shared with the fuzz target.

use std::sync::Arc;
use zonda_wire::stream::ixfr_base;
use zonda_wire::tsig::{Algorithm, Key, KeyRing, ReplySignature, SignatureCheck, SignatureRecord};
use zonda_wire::{Fault, Query};

/// The time of the server, which the corpus was signed at.
const NOW: u64 = 1_700_000_000;

/// Reads the octets as a query, checks its signature by keys that it may name, and signs a reply.
/// Returns what is to be said of the signature, if there is one.
///
/// # Panics
/// When something does not hold.
pub fn check(octets: &[u8]) -> Option<SignatureCheck> {
    check_as_reply(octets);
    let (query, fault) = match Query::parse(octets) {
        Ok(query) => {
            let _ = ixfr_base(&query, octets);
            return None;
        }
        Err(wrong) => wrong,
    };
    let Fault::Signed(at) = fault else { return None };
    let name = "key.example".parse().ok()?;
    let algorithms = [Algorithm::HmacSha1, Algorithm::HmacSha256, Algorithm::HmacSha512];
    let mut found = None;
    for algorithm in algorithms {
        let key = Key::new(&name, algorithm, b"0123456789abcdef");
        let keys = KeyRing::new([key.clone()]);
        let mut record = SignatureRecord::default();
        let Some(signature) = record.verify(octets, usize::from(at), &keys, NOW) else { continue };
        if let Some(error) = signature.check.error() {
            let _ = record.reject(octets, usize::from(at), error);
        }
        if signature.check.is_answered_signed() {
            let (end, room) = (query.question_end(), signature.reply_bytes(&key));
            let mut buffer = vec![0; end + room];
            buffer[..end].copy_from_slice(&octets[..end]);
            assert!(signature.sign(&key, &mut buffer, end, NOW).is_some());
        }
        if signature.check != SignatureCheck::UnknownKey {
            found = Some(signature.check);
        }
    }
    found
}

/// Reads the octets as the reply to another query, which they cannot be, and signs them as a query.
fn check_as_reply(octets: &[u8]) {
    let Ok(name) = "key.example".parse() else { return };
    let key = Arc::new(Key::new(&name, Algorithm::HmacSha256, b"0123456789abcdef"));
    let mut query = vec![7; 12];
    let Some(client) = ReplySignature::sign_query(Arc::clone(&key), &mut query, NOW) else {
        panic!("a query of 12 octets is signed");
    };
    assert!(client.check_reply(octets, NOW).is_err());
    let mut query = octets.to_vec();
    if ReplySignature::sign_query(key, &mut query, NOW).is_some() {
        assert!(query.len() > octets.len());
    }
}
