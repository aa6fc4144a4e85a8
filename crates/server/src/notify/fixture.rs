//! What the tests of messages have in common: a zone with a receiver, and replies to messages.

use super::compose::unix_secs;
use super::schedule::Target;
use super::shared::Shared;
use super::tcp_queue::TcpQueue;
use arc_swap::ArcSwap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use zonda_engine::access::{AccessList, NotifyReceiver, TransferTerms};
use zonda_engine::zones::{Source, ZoneEntry, ZoneTable};
use zonda_engine::{Settings, Snapshot};
use zonda_netio::Wake;
use zonda_wire::query::flag;
use zonda_wire::tsig::{Algorithm, Key, KeyRing, SignatureRecord};
use zonda_wire::{Fault, Message, Name, Query};
use zonda_zone::file::{Options, read_text};
use zonda_zone::{HashSeed, build};

/// A key with a secret.
pub fn key(secret: &[u8]) -> Key {
    Key::new(&"key.test".parse().unwrap(), Algorithm::HmacSha256, secret)
}

/// The zone of the tests and a receiver.
pub fn target(receiver: SocketAddr) -> Target {
    Target { zone: "a.test".parse().unwrap(), receiver }
}

/// A snapshot with a version of the zone, which has a receiver.
pub fn snapshot(receiver: SocketAddr, key: Option<&Key>, serial: u32) -> Snapshot {
    let apex: Name = "a.test".parse().unwrap();
    let text = format!("@ 60 SOA ns host {serial} 1 1 1 1\n@ 60 NS ns\nns 60 A 192.0.2.1\n");
    let (records, _) = read_text(text.as_bytes(), "text".as_ref(), &apex, &Options::default());
    let zone = Arc::new(build(&apex, &records, HashSeed(7)).unwrap());
    let notify = vec![NotifyReceiver { address: receiver, key: key.map(Key::id) }];
    let transfers = TransferTerms { notify, ..TransferTerms::default() };
    let access = Some(Arc::new(AccessList { transfers, ..AccessList::open() }));
    let entry = ZoneEntry::new(apex, Source::Data(zone), access, 0);
    let keys = Arc::new(KeyRing::new(key.cloned()));
    Snapshot {
        settings: Arc::new(Settings { keys, ..Settings::default() }),
        ..Snapshot::of(ZoneTable::new(vec![Arc::new(entry)], HashSeed(7)))
    }
}

/// What threads share, with version 7 of the zone, which has a receiver.
pub fn shared(receiver: SocketAddr, key: Option<&Key>) -> Arc<Shared> {
    Arc::new(Shared {
        zones: Mutex::default(),
        repeated: Mutex::default(),
        snapshot: Arc::new(ArcSwap::from_pointee(snapshot(receiver, key, 7))),
        wake: Wake::new().unwrap(),
        is_closed: false.into(),
        counts: Arc::default(),
        tcp: TcpQueue::default(),
    })
}

/// The serial of a message.
pub fn serial(message: &[u8]) -> u32 {
    let message = Message::parse(message).unwrap();
    let soa = &message.records[0].rdata;
    u32::from_be_bytes(*soa[soa.len() - 20..].first_chunk().unwrap())
}

/// The reply to a message that is not signed.
pub fn reply(message: &[u8]) -> Vec<u8> {
    let mut reply = Message::parse(message).unwrap();
    reply.flags |= flag::QR;
    reply.records.clear();
    reply.to_wire()
}

/// The reply to a message that `key` has signed, signed with another one.
pub fn signed_reply(message: &[u8], key: &Key, by: &Key) -> Vec<u8> {
    let Err((_, Fault::Signed(at))) = Query::parse(message) else { panic!("not signed") };
    let (at, keys) = (usize::from(at), KeyRing::new([key.clone()]));
    let signature = SignatureRecord::default().verify(message, at, &keys, unix_secs()).unwrap();
    assert_eq!(signature.proven_key(), Some(key.id()));
    let mut reply = message[..at].to_vec();
    reply[2] |= 0x80;
    reply[11] -= 1;
    let len = reply.len();
    reply.resize(len + 512, 0);
    let end = signature.sign(by, &mut reply, len, unix_secs()).unwrap();
    reply.truncate(end);
    reply
}

/// Reads a message from a connection.
pub fn read(stream: &mut TcpStream) -> Vec<u8> {
    let mut len = [0; 2];
    stream.read_exact(&mut len).unwrap();
    let mut message = vec![0; usize::from(u16::from_be_bytes(len))];
    stream.read_exact(&mut message).unwrap();
    message
}

/// Writes a message to a connection.
pub fn write(stream: &mut TcpStream, message: &[u8]) {
    let len = u16::try_from(message.len()).unwrap().to_be_bytes();
    stream.write_all(&[&len, message].concat()).unwrap();
}
