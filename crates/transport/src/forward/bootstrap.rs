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
use zonda_upstream::check::{Repeat, Verdict, check};
use zonda_upstream::exchange::Form;
use zonda_upstream::{Answer, Question};
use zonda_wire::{Class, Name, Type};

use super::dice::Dice;

/// How long an answer is waited for; there is one try for each.
const TRIES: [Duration; 3] =
    [Duration::from_millis(400), Duration::from_millis(800), Duration::from_millis(1600)];
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
        let mut dice = Dice::new();
        let mut retry = RETRY_MIN;
        while upstream.strong_count() > 0 {
            let found = self.look_up(&mut dice).await;
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
    async fn look_up(&self, dice: &mut Dice) -> Option<Found> {
        for server in &self.servers {
            let mut found: Option<Found> = None;
            let types = match server.ip() {
                IpAddr::V4(_) => [Type::A, Type::AAAA],
                IpAddr::V6(_) => [Type::AAAA, Type::A],
            };
            for qtype in types {
                let Some((addresses, ttl)) = self.ask(*server, qtype, dice).await else { continue };
                let (all, least) = found.get_or_insert_with(|| (Vec::new(), ttl));
                all.extend(addresses);
                *least = ttl.min(*least);
            }
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// The addresses of a type that a server tells; none if it tells none.
    async fn ask(&self, server: SocketAddr, qtype: Type, dice: &mut Dice) -> Option<Found> {
        let question = Question {
            name: self.name.as_wire(),
            qtype,
            qclass: Class::IN,
            dnssec_ok: false,
            checking_disabled: false,
        };
        // Whoever is asked for an address and nothing else is understood by everyone.
        let mut form = Form { over_tcp: false, edns: false, mixed_case: true };
        let (none, mut query) = (Cookies::new([0; 8]), Vec::new());
        for limit in TRIES {
            let (id, case) = (dice.roll() as u16, dice.case_bits());
            question.write(id, form, &case, &none, &mut query);
            let over_udp = timeout(limit, ask_over_udp(server, &question, form, &query)).await;
            let mut message = match over_udp {
                Ok(Some(Reply::Message(message))) => message,
                Ok(Some(Reply::Truncated)) => {
                    let connections = Connections::new(Protocol::Tcp, vec![server]);
                    timeout(limit, connections.ask(&query)).await.ok()?.ok()?
                }
                Ok(Some(Reply::OtherCase)) => {
                    form.mixed_case = false;
                    continue;
                }
                Ok(None) | Err(_) => continue,
            };
            return addresses(&mut message, &self.name, qtype);
        }
        None
    }
}

/// What comes back over UDP.
enum Reply {
    /// An answer, good or bad.
    Message(Vec<u8>),
    /// It shall be asked over TCP.
    Truncated,
    /// It shall be asked without mixed case.
    OtherCase,
}

/// Asks over a socket of its own; none when that is not possible.
async fn ask_over_udp(
    server: SocketAddr,
    question: &Question<'_>,
    form: Form,
    query: &[u8],
) -> Option<Reply> {
    let own: IpAddr = match server.ip() {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((own, 0)).await.ok()?;
    socket.connect(server).await.ok()?;
    socket.send(query).await.ok()?;
    let sent = question.sent(query, form, [0; 8], false);
    let mut buffer = vec![0; ANSWER_BYTES];
    loop {
        let len = socket.recv(&mut buffer).await.ok()?;
        match check(&sent, &buffer[..len]) {
            Verdict::Ignore(_) => {}
            Verdict::Repeat(Repeat::OverTcp) => return Some(Reply::Truncated),
            Verdict::Repeat(Repeat::WithoutMixedCase) => return Some(Reply::OtherCase),
            Verdict::Accept(_) | Verdict::Repeat(_) | Verdict::Failed(_) => {
                buffer.truncate(len);
                return Some(Reply::Message(buffer));
            }
        }
    }
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
