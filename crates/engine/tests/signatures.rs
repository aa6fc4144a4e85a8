//! Signed queries as the engine sees them: the corpus of the fuzzer, without sockets.
#![allow(clippy::unwrap_used)]

use arc_swap::ArcSwap;
use std::path::Path;
use std::sync::Arc;
use zonda_engine::access::{Access, AccessList};
use zonda_engine::zones::ZoneTable;
use zonda_engine::{Engine, Now, Peer, Settings, Snapshot, Transport};
use zonda_rewrite::{MatchKind, NameMatch, RewriteRule, RewriteRules};
use zonda_wire::tsig::{Algorithm, Key, KeyRing};
use zonda_wire::{Message, Type};
use zonda_zone::HashSeed;

const SEED: HashSeed = HashSeed(1);
/// The time at which the corpus was signed.
const NOW: Now = Now::new(1, 1_700_000_000);

/// The response code of the reply to a query that is signed with a key of the server, and whether
/// the reply is signed.
fn ask_signed(otherwise: Access, rewrites: Option<Arc<RewriteRules>>) -> (String, bool) {
    let key = Key::new(&"key.example".parse().unwrap(), Algorithm::HmacSha256, b"0123456789abcdef");
    let list = AccessList { otherwise, ..AccessList::open() };
    let settings = Settings {
        keys: Arc::new(KeyRing::new([key])),
        listener_access: vec![Some(list)],
        rewrites,
        ..Settings::default()
    };
    let snapshot =
        Snapshot { settings: Arc::new(settings), ..Snapshot::of(ZoneTable::new(Vec::new(), SEED)) };
    let mut engine = Engine::new(Arc::new(ArcSwap::from_pointee(snapshot)), Arc::default());
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/signature");
    let query = std::fs::read(corpus.join("sha256")).unwrap();
    let mut buffer = vec![0; 1232];
    buffer[..query.len()].copy_from_slice(&query);
    let address = "192.0.2.7:53".parse().unwrap();
    let peer = Peer::new(address, Transport::Udp, 0);
    let len = engine.answer(NOW, &peer, &mut buffer, query.len()).reply_bytes();
    let reply = Message::parse(&buffer[..len]).unwrap();
    let is_signed = reply.records.iter().any(|record| record.rtype == Type::TSIG);
    (reply.rcode().to_string(), is_signed)
}

#[test]
fn the_signature_of_a_client_that_the_listener_refuses_is_not_computed() {
    let signed = ask_signed(Access::Allow, None);
    assert_eq!(signed, ("REFUSED".to_owned(), true), "there are no zones");
    assert_eq!(ask_signed(Access::Refuse, None), ("REFUSED".to_owned(), false));
}

#[test]
fn the_reply_to_a_signed_query_whose_question_a_rule_rewrites_is_signed() {
    let name = NameMatch { kind: MatchKind::Regex, text: "(.*)".to_owned() };
    let to = Some("rewritten.example".to_owned());
    let rule = RewriteRule { name: Some(name), to, maps_back: true, ..RewriteRule::new() };
    let rules = RewriteRules::new(vec![rule]).unwrap();
    let reply = ask_signed(Access::Allow, Some(Arc::new(rules)));
    assert_eq!(reply, ("REFUSED".to_owned(), true));
}
