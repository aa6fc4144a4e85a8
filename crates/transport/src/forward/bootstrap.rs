//! Where an upstream is that is given by name.
//!
//! Its addresses are asked of bootstrap servers, and asked again when their TTL is over. Until they
//! are known, and while nobody tells them, the upstream is asked where it was.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::{sleep, timeout};
use zonda_streams::{Connections, Protocol};
use zonda_upstream::capability::Cookies;
use zonda_upstream::check::{Repeat, Sent, Verdict, check};
use zonda_upstream::exchange::Form;
use zonda_upstream::{Answer, Question, UDP_BYTES};
use zonda_wire::{Class, Name, Type};

use super::dice::Dice;

/// How long an answer is waited for; there is one try for each.
const TRIES: [Duration; 2] = [Duration::from_millis(400), Duration::from_millis(800)];
/// Octets of the longest answer over UDP that is read.
const ANSWER_BYTES: usize = 4096;
/// Addresses are not asked again sooner, whatever their TTL.
const REFRESH_MIN: Duration = Duration::from_secs(1);
/// They are asked again after this at the latest.
const REFRESH_MAX: Duration = Duration::from_secs(3600);
/// How long to wait after nobody told them; twice as long each time in a row.
const RETRY_MIN: Duration = Duration::from_millis(500);
/// The longest such time.
const RETRY_MAX: Duration = Duration::from_secs(30);

/// Who is looked up, and by whom.
#[derive(Clone, Debug)]
pub struct Bootstrap {
    /// The upstream's name.
    pub name: Name,
    /// Its port.
    pub port: u16,
    /// Servers that know its addresses; at least one.
    pub servers: Vec<SocketAddr>,
}

/// Addresses, and for how long they hold.
type Found = (Vec<IpAddr>, Duration);

impl Bootstrap {
    /// Keeps the addresses of an upstream up to date for as long as anybody may ask it.
    pub async fn follow(self, upstream: Weak<Connections>) {
        let mut retry = RETRY_MIN;
        while upstream.strong_count() > 0 {
            let found = self.look_up().await;
            let Some(upstream) = upstream.upgrade() else { return };
            let pause = if let Some((addresses, ttl)) = found {
                self.tell(&upstream, addresses);
                retry = RETRY_MIN;
                ttl.clamp(REFRESH_MIN, REFRESH_MAX)
            } else {
                tracing::warn!("no bootstrap server tells the addresses of {}", self.name);
                retry = (2 * retry).min(RETRY_MAX);
                retry
            };
            drop(upstream);
            sleep(pause).await;
        }
    }

    /// Tells where the upstream is, if that is news. The one that is asked stays the first as long
    /// as it is among them.
    fn tell(&self, upstream: &Connections, addresses: Vec<IpAddr>) {
        let (known, asked) = (upstream.addresses(), upstream.address());
        let mut addresses: Vec<_> =
            addresses.into_iter().map(|address| SocketAddr::new(address, self.port)).collect();
        addresses.sort_by_key(|address| Some(*address) != asked);
        let is_news = addresses.len() != known.len()
            || addresses.iter().any(|address| !known.contains(address));
        if is_news {
            tracing::info!("{} is at {addresses:?}", self.name);
            upstream.move_to(addresses);
        }
    }

    /// The addresses that the first server tells which tells any; those of the kind that the server
    /// itself has come first, since they can be reached.
    async fn look_up(&self) -> Option<Found> {
        for &server in &self.servers {
            let (v4, v6) = tokio::join!(self.ask(server, Type::A), self.ask(server, Type::AAAA));
            let (first, second) = if server.is_ipv4() { (v4, v6) } else { (v6, v4) };
            let found = first.into_iter().chain(second).reduce(|(mut all, ttl), (more, other)| {
                all.extend(more);
                (all, ttl.min(other))
            });
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// The addresses of a type that a server tells; none if it tells none.
    async fn ask(&self, server: SocketAddr, qtype: Type) -> Option<Found> {
        let question = Question {
            name: self.name.as_wire(),
            qtype,
            qclass: Class::IN,
            dnssec_ok: false,
            checking_disabled: false,
        };
        // Whoever is asked for an address and nothing else is understood by everyone.
        let mut form = Form { over_tcp: false, edns: false, mixed_case: true };
        let (mut dice, none, mut query) = (Dice::new(), Cookies::new([0; 8]), Vec::new());
        for limit in TRIES {
            let (id, case) = (dice.roll() as u16, dice.case_bits());
            question.write((id, form), &case, &none, UDP_BYTES, &mut query);
            let sent = question.sent(&query, form, none.client(), false);
            let reply = match timeout(limit, ask_over_udp(server, &sent, &query)).await {
                Ok(Some(Reply::Truncated)) => {
                    let sent = Sent { stream: true, ..sent };
                    timeout(limit, ask_over_tcp(server, &sent, &query)).await
                }
                reply => reply,
            };
            match reply {
                Ok(Some(Reply::Answer(mut message))) => {
                    return addresses(&mut message, &self.name, qtype);
                }
                Ok(Some(Reply::OtherCase)) => form.mixed_case = false,
                Ok(Some(Reply::Truncated | Reply::Failed)) => return None,
                Ok(None) | Err(_) => {}
            }
        }
        None
    }
}

/// What a server says.
enum Reply {
    /// An answer.
    Answer(Vec<u8>),
    /// It shall be asked over TCP.
    Truncated,
    /// It shall be asked without mixed case.
    OtherCase,
    /// It cannot or will not answer.
    Failed,
}

impl Reply {
    /// What a message says to what was sent; none if it is for something else.
    fn read(sent: &Sent<'_>, message: &[u8]) -> Option<Self> {
        match check(sent, message) {
            Verdict::Ignore(_) => None,
            Verdict::Accept(_) => Some(Self::Answer(message.to_vec())),
            Verdict::Repeat(Repeat::OverTcp) => Some(Self::Truncated),
            Verdict::Repeat(Repeat::WithoutMixedCase) => Some(Self::OtherCase),
            Verdict::Repeat(_) | Verdict::Failed(_) => Some(Self::Failed),
        }
    }
}

/// Asks over a socket of its own; none when that is not possible.
async fn ask_over_udp(server: SocketAddr, sent: &Sent<'_>, query: &[u8]) -> Option<Reply> {
    let own: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((own, 0)).await.ok()?;
    socket.connect(server).await.ok()?;
    socket.send(query).await.ok()?;
    let mut buffer = [0; ANSWER_BYTES];
    loop {
        let len = socket.recv(&mut buffer).await.ok()?;
        if let Some(reply) = Reply::read(sent, &buffer[..len]) {
            return Some(reply);
        }
    }
}

/// Asks over a connection of its own; none when that is not possible.
async fn ask_over_tcp(server: SocketAddr, sent: &Sent<'_>, query: &[u8]) -> Option<Reply> {
    let message = Connections::new(Protocol::Tcp, vec![server]).ask(query).await.ok()?;
    Reply::read(sent, &message)
}

/// The addresses in an answer, if there are any.
fn addresses(message: &mut [u8], name: &Name, qtype: Type) -> Option<Found> {
    let mut answer = Answer::default();
    answer.read(message, name.to_lowercase().as_wire(), false).ok()?;
    let ttl = answer.records().map(|record| record.ttl).min()?;
    let records = answer.records().filter(|record| record.rtype == qtype);
    let found: Vec<IpAddr> = records.filter_map(|record| address(record.rdata)).collect();
    let ttl = Duration::from_secs(ttl.into());
    (!found.is_empty()).then_some((found, ttl))
}

/// The address that is the data of an A or AAAA record.
fn address(rdata: &[u8]) -> Option<IpAddr> {
    match rdata.len() {
        4 => Some(IpAddr::from(<[u8; 4]>::try_from(rdata).ok()?)),
        16 => Some(IpAddr::from(<[u8; 16]>::try_from(rdata).ok()?)),
        _ => None,
    }
}

/// Begins to follow where an upstream is.
pub fn follow(bootstrap: Bootstrap, upstream: &Arc<Connections>) {
    tokio::spawn(bootstrap.follow(Arc::downgrade(upstream)));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// The answer to a query for `dns.example`, or its beginning if it is `truncated`: an alias of
    /// `far.example`, which is at 192.0.2.1 and 192.0.2.2, and no other address.
    fn answer(query: &[u8], truncated: bool) -> Vec<u8> {
        let is_a = query[query.len() - 3] == 1;
        let (flags, count) = if truncated { (0x83, 0) } else { (0x81, if is_a { 3 } else { 1 }) };
        let mut message = [&query[..2], &[flags, 0x80, 0, 1, 0, count, 0, 0, 0, 0]].concat();
        message.extend_from_slice(&query[12..]);
        if !truncated {
            message.extend_from_slice(&[0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 90, 0, 6, 3]);
            message.extend_from_slice(b"far\xc0\x10");
        }
        for octet in 1..u8::max(count, 1) {
            let owner = 12 + 13 + 4 + 12; // behind the question and the head of the first record
            message.extend_from_slice(&[0xc0, owner, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
            message.extend_from_slice(&[192, 0, 2, octet]);
        }
        message
    }

    #[tokio::test]
    async fn addresses_are_found_behind_aliases_over_tcp_and_after_a_loss() {
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = tcp.local_addr().unwrap();
        let udp = UdpSocket::bind(server).await.unwrap();
        tokio::spawn(async move {
            let mut query = [0; 512];
            for number in 0.. {
                let (len, client) = udp.recv_from(&mut query).await.unwrap();
                if number > 0 {
                    udp.send_to(&answer(&query[..len], true), client).await.unwrap();
                }
            }
        });
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = tcp.accept().await {
                let mut query = vec![0; usize::from(stream.read_u16().await.unwrap())];
                stream.read_exact(&mut query).await.unwrap();
                let message = answer(&query, false);
                stream.write_u16(message.len() as u16).await.unwrap();
                stream.write_all(&message).await.unwrap();
            }
        });
        let name: Name = "dns.example".parse().unwrap();
        let bootstrap = Bootstrap { name, port: 853, servers: vec![server] };
        let (addresses, ttl) = bootstrap.look_up().await.unwrap();
        assert_eq!(addresses, [[192, 0, 2, 1], [192, 0, 2, 2]].map(IpAddr::from));
        assert_eq!(ttl, Duration::from_secs(60));
    }
}
