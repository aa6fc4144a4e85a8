//! Signed transfers of which something is changed on their way.

use crate::primaries::{Secondary, zone};
use crate::primary::{KEY, Primary, client, wait_until};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// The message of each transfer that is changed, the first being 1; of some forty.
const CHANGED: usize = 20;
/// Nothing is changed.
const NOTHING: usize = usize::MAX;
/// Octets of the TSIG record behind the signature: an id, an error, the length of what follows.
const BEHIND_MAC_BYTES: usize = 6;

/// What stands between both servers, and changes one octet of a message over TCP.
struct Forger {
    address: SocketAddr,
    /// How many octets before the end of the message the octet is.
    from_end: Arc<AtomicUsize>,
    /// Messages that were changed so far.
    forged: Arc<AtomicUsize>,
}

impl Forger {
    fn start(server: SocketAddr) -> Self {
        let (udp, tcp) = std::iter::repeat_with(|| UdpSocket::bind("127.0.0.1:0").unwrap())
            .find_map(|udp| Some((TcpListener::bind(udp.local_addr().unwrap()).ok()?, udp)))
            .map(|(tcp, udp)| (udp, tcp))
            .unwrap();
        let address = tcp.local_addr().unwrap();
        let (from_end, forged) = (Arc::new(AtomicUsize::new(NOTHING)), Arc::default());
        thread::spawn(move || relay_datagrams(&udp, server));
        let forger = Self { address, from_end, forged };
        let (from_end, forged) = (Arc::clone(&forger.from_end), Arc::clone(&forger.forged));
        thread::spawn(move || {
            for client in tcp.incoming().flatten() {
                let (from_end, forged) = (Arc::clone(&from_end), Arc::clone(&forged));
                thread::spawn(move || relay(client, server, &from_end, &forged));
            }
        });
        forger
    }
}

/// Has each datagram answered by a server.
fn relay_datagrams(udp: &UdpSocket, server: SocketAddr) {
    let mut buffer = [0; 65_535];
    while let Ok((len, client)) = udp.recv_from(&mut buffer) {
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        other.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        let _ = other.send_to(&buffer[..len], server);
        if let Ok((len, _)) = other.recv_from(&mut buffer) {
            let _ = udp.send_to(&buffer[..len], client);
        }
    }
}

/// Relays one question and the messages of its reply, one of which is changed.
fn relay(
    mut client: TcpStream,
    server: SocketAddr,
    from_end: &AtomicUsize,
    forged: &AtomicUsize,
) -> Option<()> {
    let mut server = TcpStream::connect(server).ok()?;
    server.write_all(&message(&mut client)?).ok()?;
    for number in 1.. {
        let mut octets = message(&mut server)?;
        let place = octets.len().checked_sub(from_end.load(SeqCst));
        if let (CHANGED, Some(octet)) = (number, place.and_then(|it| octets.get_mut(it))) {
            *octet ^= 1;
            forged.fetch_add(1, SeqCst);
        }
        client.write_all(&octets).ok()?;
    }
    Some(())
}

/// A message with its length.
fn message(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut octets = vec![0; 2];
    stream.read_exact(&mut octets).ok()?;
    let len = usize::from(u16::from_be_bytes([octets[0], octets[1]]));
    octets.resize(2 + len, 0);
    stream.read_exact(&mut octets[2..]).ok()?;
    Some(octets)
}

/// A version of a zone of some 600 KB, each record of which has its serial.
fn version(serial: u32) -> String {
    let head = format!("$TTL 60\n@ SOA ns host {serial} 1 1 3600 60\n@ NS ns\nns A 192.0.2.1\n");
    let text = "x".repeat(200);
    (0..3000).fold(head, |zone, number| zone + &format!("t{number} TXT \"{serial} {text}\"\n"))
}

#[test]
fn a_signature_that_is_wrong_in_the_middle_of_a_transfer_leaves_the_former_version_in_force() {
    let keyed = format!("\"127.0.0.1 key {}\"", KEY.0);
    let primary = Primary::start(&[("signed.test", &version(1), &keyed)], "");
    let forger = Forger::start(primary.address);
    let key = format!("[[key]]\nname = \"{}\"\nsecret = \"{}\"\n", KEY.0, KEY.1);
    let from = format!("\"{} key {}\"", forger.address, KEY.0);
    let server = Secondary::start(&(key + &zone("signed.test", &from, "")));
    wait_until("the first transfer", || server.serial("signed.test") == Some(1));
    let text = || client("dig", server.address, &["+short", "t2999.signed.test", "TXT"]);
    for (serial, from_end) in [(2, BEHIND_MAC_BYTES + 10), (3, 1000)] {
        let before = forger.forged.load(SeqCst);
        forger.from_end.store(from_end, SeqCst);
        fs::write(primary.folder.path().join("0.zone"), version(serial)).unwrap();
        primary.reload();
        wait_until("two attempts", || forger.forged.load(SeqCst) > before + 1);
        let log = server.log();
        assert_eq!(server.serial("signed.test"), Some(serial - 1), "{log}");
        assert!(text().contains(&format!("\"{} x", serial - 1)), "{}", text());
        let failed = "a zone was not transferred from its primary";
        let line = log.lines().rfind(|line| line.contains(failed)).unwrap();
        for fact in ["the signature of a message is wrong", "messages=19", "from=1"] {
            let fact = fact.replace("from=1", &format!("from={}", serial - 1));
            assert!(line.contains(&fact), "{fact} in {line}");
        }
        forger.from_end.store(NOTHING, SeqCst);
        wait_until("the sound version", || server.serial("signed.test") == Some(serial));
        assert!(text().contains(&format!("\"{serial} x")), "{}", text());
    }
}
