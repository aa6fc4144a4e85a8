//! Where an upstream is that is given by name, or the member of a pool.
//!
//! Its addresses are asked of bootstrap servers, and asked again when their TTL is over. Until they
//! are known, and while no server tells them, the upstream is asked where it was. This is so of
//! each kind of address: where no server answers for IPv4, those that are known stay, though there
//! is news of IPv6. They are given up only when a server says that there are none.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::{sleep, timeout};
use zonda_client::{Connections, Protocol};
use zonda_upstream::capability::Cookies;
use zonda_upstream::check::{Doubt, Repeat, SentQuery, Verdict, check};
use zonda_upstream::exchange::Form;
use zonda_upstream::query::sent;
use zonda_upstream::{Answer, Question, UDP_BYTES};
use zonda_wire::{Class, Name, Type};

use crate::random::RandomSource;

/// How long an answer is waited for; there is one try for each.
const TRIES: [Duration; 2] = [Duration::from_millis(400), Duration::from_millis(800)];
/// Octets of the longest answer over UDP that is read.
const ANSWER_BYTES: usize = 4096;
/// Messages that may come to the port of a query without answering it, before a forger is taken to
/// know the port.
const MISSES_MAX: u32 = 32;
/// How long nothing is received after an error.
const ERROR_PAUSE: Duration = Duration::from_millis(1);
/// Addresses are not asked again sooner, whatever their TTL.
const REFRESH_MIN: Duration = Duration::from_secs(1);
/// Longest time after which the bootstrap servers are asked again.
const REFRESH_MAX: Duration = Duration::from_secs(3600);
/// The time to wait after no server told them; twice as long each time in a row.
const RETRY_MIN: Duration = Duration::from_millis(500);
/// The longest such time.
const RETRY_MAX: Duration = Duration::from_secs(30);

/// What is looked up, and the servers that are asked for it.
#[derive(Clone, Debug)]
pub struct Bootstrap {
    /// The name of an upstream, or of the member of a pool.
    pub name: Name,
    /// The port of an upstream; 0 for a member.
    pub port: u16,
    /// Servers that are asked for the name's addresses; at least one.
    pub servers: Vec<SocketAddr>,
}

/// The bootstrap servers' answer about a name's addresses of one family.
#[derive(Clone, Debug, PartialEq)]
enum KindAddresses {
    /// The addresses, and how long they hold.
    Found(Vec<IpAddr>, Duration),
    /// The name has no address of the family.
    None,
    /// No answer came, or none of use.
    Failed,
}

impl KindAddresses {
    /// Returns this answer, or the one `before` if that says more.
    fn after(self, before: Self) -> Self {
        match (&before, &self) {
            (Self::Failed, _) | (Self::None, Self::Found(..)) => self,
            (Self::None | Self::Found(..), _) => before,
        }
    }

    /// The addresses that hold now, if `known` did before.
    fn now(&self, known: impl Iterator<Item = IpAddr>) -> Vec<IpAddr> {
        match self {
            Self::Found(addresses, _) => addresses.clone(),
            Self::None => Vec::new(),
            Self::Failed => known.collect(),
        }
    }

    /// For how long it holds, if it tells any address.
    fn ttl(&self) -> Option<Duration> {
        match self {
            Self::Found(_, ttl) => Some(*ttl),
            Self::None | Self::Failed => None,
        }
    }
}

/// The answers about a name's addresses; for one family at least a server has answered.
#[derive(Clone, Debug, PartialEq)]
struct BootstrapResult {
    /// The answer about IPv4 addresses.
    v4: KindAddresses,
    /// The answer about IPv6 addresses.
    v6: KindAddresses,
    /// The addresses of IPv4 come first: a server that is asked over IPv4 has told some, so that
    /// they can be reached.
    is_v4_first: bool,
}

impl BootstrapResult {
    /// The addresses that hold now, if those of `known` did before.
    fn now(&self, known: &[SocketAddr]) -> Vec<IpAddr> {
        let known = |v4: bool| {
            known.iter().map(SocketAddr::ip).filter(move |address| address.is_ipv4() == v4)
        };
        let (v4, v6) = (self.v4.now(known(true)), self.v6.now(known(false)));
        let (first, second) = if self.is_v4_first { (v4, v6) } else { (v6, v4) };
        [first, second].concat()
    }

    /// When to ask again, if one kind that no server has told of is asked for after `retry`.
    fn pause(&self, retry: Duration) -> Duration {
        let ttl = self.v4.ttl().into_iter().chain(self.v6.ttl()).min().unwrap_or_default();
        let ttl = ttl.clamp(REFRESH_MIN, REFRESH_MAX);
        if self.is_whole() { ttl } else { ttl.min(retry) }
    }

    /// Whether there are answers about both families.
    fn is_whole(&self) -> bool {
        self.v4 != KindAddresses::Failed && self.v6 != KindAddresses::Failed
    }
}

impl Bootstrap {
    /// Keeps the addresses of an upstream up to date for as long as a group may ask it.
    pub async fn follow(self, upstream: Weak<Connections>) {
        let mut retry = RETRY_MIN;
        while upstream.strong_count() > 0 {
            let found = self.look_up().await;
            let Some(upstream) = upstream.upgrade() else { return };
            let pause = found.as_ref().map_or(retry, |found| found.pause(retry));
            retry = match &found {
                Some(found) if found.is_whole() => RETRY_MIN,
                _ => (2 * retry).min(RETRY_MAX),
            };
            match &found {
                Some(found) => self.tell(&upstream, found),
                None => {
                    let upstream = tracing::field::display(&self.name);
                    tracing::warn!(upstream, "no bootstrap server has addresses of an upstream");
                }
            }
            drop(upstream);
            sleep(pause).await;
        }
    }

    /// Tells the addresses of the name, in ascending order, and each change of them, until `tell`
    /// returns false. Nothing is told before a server has told some.
    pub async fn watch(self, tell: impl Fn(&[IpAddr]) -> bool) {
        let (mut known, mut retry) = (Vec::<SocketAddr>::new(), RETRY_MIN);
        loop {
            let found = self.look_up().await;
            let pause = found.as_ref().map_or(retry, |found| found.pause(retry));
            retry = match &found {
                Some(found) if found.is_whole() => RETRY_MIN,
                _ => (2 * retry).min(RETRY_MAX),
            };
            if let Some(found) = &found {
                let mut now = found.now(&known);
                now.sort_unstable();
                now.dedup();
                if !now.iter().copied().eq(known.iter().map(SocketAddr::ip)) {
                    if !tell(&now) {
                        return;
                    }
                    known = now.into_iter().map(|it| SocketAddr::new(it, self.port)).collect();
                }
            } else {
                tracing::warn!(name = %self.name, "no server has addresses of a name");
            }
            sleep(pause).await;
        }
    }

    /// Tells where the upstream is, if that is news. The one that is asked stays the first as long
    /// as it is among them.
    fn tell(&self, upstream: &Connections, found: &BootstrapResult) {
        let (known, asked) = (upstream.addresses(), upstream.address());
        let at_port = |address| SocketAddr::new(address, self.port);
        let mut addresses: Vec<_> = found.now(&known).into_iter().map(at_port).collect();
        addresses.sort_by_key(|address| Some(*address) != asked);
        let is_news = addresses.len() != known.len()
            || addresses.iter().any(|address| !known.contains(address));
        if is_news {
            tracing::info!(upstream = %self.name, ?addresses, "an upstream has other addresses");
            upstream.move_to(addresses);
        }
    }

    /// Returns the addresses of each family from the first server that has any; nothing if no
    /// server has.
    async fn look_up(&self) -> Option<BootstrapResult> {
        let (mut v4, mut v6, mut is_v4_first) =
            (KindAddresses::Failed, KindAddresses::Failed, None);
        for &server in &self.servers {
            let told = tokio::join!(self.ask(server, Type::A), self.ask(server, Type::AAAA));
            if is_v4_first.is_none() && (told.0.ttl().is_some() || told.1.ttl().is_some()) {
                is_v4_first = Some(server.is_ipv4());
            }
            (v4, v6) = (told.0.after(v4), told.1.after(v6));
            if is_v4_first.is_some() && v4 != KindAddresses::Failed && v6 != KindAddresses::Failed {
                break;
            }
        }
        is_v4_first.map(|is_v4_first| BootstrapResult { v4, v6, is_v4_first })
    }

    /// Returns the answer of a server about the addresses of a type.
    async fn ask(&self, server: SocketAddr, qtype: Type) -> KindAddresses {
        let question = Question {
            name: self.name.as_wire(),
            qtype,
            qclass: Class::IN,
            dnssec_ok: false,
            checking_disabled: false,
        };
        // Every server understands a query for an address and nothing else.
        let mut form = Form { over_tcp: false, edns: false, mixed_case: true };
        let (mut random, none, mut query) = (RandomSource::new(), Cookies::new([0; 8]), Vec::new());
        for limit in TRIES {
            let (id, case) = (random.next() as u16, random.case_bits(question.name.len()));
            question.write((id, form), &case, &none, UDP_BYTES, &mut query);
            let sent = sent(&query, form, false);
            let mut reply = timeout(limit, ask_over_udp(server, &sent, &query)).await;
            if let Ok(Some(Reply::OverTcp(doubt))) = reply {
                let sent = SentQuery { stream: true, ..sent };
                reply = timeout(limit, ask_over_tcp(server, &sent, &query)).await;
                // Without TCP, it is believed and asked again.
                form.mixed_case &= doubt != Some(Doubt::Case);
            }
            match reply {
                Ok(Some(Reply::Answer(mut message))) => {
                    return addresses(&mut message, &self.name, qtype);
                }
                Ok(Some(Reply::OverTcp(_) | Reply::Failed)) => return KindAddresses::Failed,
                Ok(None) | Err(_) => {}
            }
        }
        KindAddresses::Failed
    }
}

/// The reply of a bootstrap server.
enum Reply {
    /// An answer to the question.
    Answer(Vec<u8>),
    /// The server shall be asked over TCP, perhaps since this may be forged.
    OverTcp(Option<Doubt>),
    /// The server cannot or will not answer.
    Failed,
}

impl Reply {
    /// Reads a message as the reply to a query; none if it answers something else.
    fn read(sent: &SentQuery<'_>, message: &[u8]) -> Option<Self> {
        match check(sent, message) {
            Verdict::Ignore(_) => None,
            Verdict::Accept(_) => Some(Self::Answer(message.to_vec())),
            Verdict::Repeat(Repeat::OverTcp) => Some(Self::OverTcp(None)),
            Verdict::Doubt(doubt) => Some(Self::OverTcp(Some(doubt))),
            Verdict::Repeat(_) | Verdict::Failed(_) => Some(Self::Failed),
        }
    }
}

/// Asks over a socket of its own; none when that is not possible.
async fn ask_over_udp(server: SocketAddr, sent: &SentQuery<'_>, query: &[u8]) -> Option<Reply> {
    let own: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((own, 0)).await.ok()?;
    socket.connect(server).await.ok()?;
    socket.send(query).await.ok()?;
    let (mut buffer, mut missed) = ([0; ANSWER_BYTES], 0);
    while missed <= MISSES_MAX {
        let Ok(len) = socket.recv(&mut buffer).await else {
            sleep(ERROR_PAUSE).await; // the network says something (ICMP), which may be forged
            continue;
        };
        match Reply::read(sent, &buffer[..len]) {
            Some(reply) => return Some(reply),
            None => missed += 1,
        }
    }
    Some(Reply::OverTcp(Some(Doubt::Forged)))
}

/// Asks over a connection of its own; none when that is not possible.
async fn ask_over_tcp(server: SocketAddr, sent: &SentQuery<'_>, query: &[u8]) -> Option<Reply> {
    let message = Connections::new(Protocol::Tcp, vec![server]).ask(query).await.ok()?;
    Reply::read(sent, &message)
}

/// Returns the addresses of a type in an answer.
fn addresses(message: &mut [u8], name: &Name, qtype: Type) -> KindAddresses {
    let mut answer = Answer::default();
    if answer.read(message, name.to_lowercase().as_wire(), false).is_err() {
        return KindAddresses::Failed;
    }
    let records = answer.records().filter(|record| record.rtype == qtype);
    let found: Vec<IpAddr> = records.filter_map(|record| address(record.rdata)).collect();
    match answer.records().map(|record| record.ttl).min() {
        Some(ttl) if !found.is_empty() => {
            KindAddresses::Found(found, Duration::from_secs(ttl.into()))
        }
        _ => KindAddresses::None,
    }
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
        tokio::spawn(answer_over_tcp(tcp));
        assert_eq!(look_up(server).await, all_addresses());
    }

    /// Answers queries over TCP, one a connection.
    async fn answer_over_tcp(tcp: TcpListener) {
        while let Ok((mut stream, _)) = tcp.accept().await {
            let mut query = vec![0; usize::from(stream.read_u16().await.unwrap())];
            stream.read_exact(&mut query).await.unwrap();
            let message = answer(&query, false);
            stream.write_u16(message.len() as u16).await.unwrap();
            stream.write_all(&message).await.unwrap();
        }
    }

    /// What a bootstrap server tells of `dns.example` over IPv4 and IPv6.
    async fn look_up(server: SocketAddr) -> Option<(KindAddresses, KindAddresses)> {
        let name: Name = "dns.example".parse().unwrap();
        let bootstrap = Bootstrap { name, port: 853, servers: vec![server] };
        bootstrap.look_up().await.map(|found| (found.v4, found.v6))
    }

    /// What [`answer`] tells.
    fn all_addresses() -> Option<(KindAddresses, KindAddresses)> {
        let addresses = [[192, 0, 2, 1], [192, 0, 2, 2]].map(IpAddr::from).to_vec();
        Some((KindAddresses::Found(addresses, Duration::from_secs(60)), KindAddresses::None))
    }

    #[tokio::test]
    async fn an_icmp_error_does_not_end_a_try() {
        let udp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let server = udp.local_addr().unwrap();
        drop(udp);
        tokio::spawn(async move {
            sleep(TRIES[0] / 4).await; // the first try was told that nothing listens
            let (udp, mut query) = (UdpSocket::bind(server).await.unwrap(), [0; 512]);
            while let Ok((len, client)) = udp.recv_from(&mut query).await {
                udp.send_to(&answer(&query[..len], false), client).await.unwrap();
            }
        });
        assert_eq!(look_up(server).await, all_addresses());
    }

    #[tokio::test]
    async fn a_server_is_asked_over_tcp_when_its_answers_are_forged() {
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = tcp.local_addr().unwrap();
        let udp = UdpSocket::bind(server).await.unwrap();
        tokio::spawn(async move {
            let mut query = [0; 512];
            while let Ok((len, client)) = udp.recv_from(&mut query).await {
                let mut forged = answer(&query[..len], false);
                forged[0] ^= 1; // the id
                for _ in 0..=MISSES_MAX {
                    udp.send_to(&forged, client).await.unwrap();
                }
            }
        });
        tokio::spawn(answer_over_tcp(tcp));
        assert_eq!(look_up(server).await, all_addresses());
    }

    /// How a scripted bootstrap server treats queries of one type.
    #[derive(Clone, Copy)]
    enum Does {
        /// The server tells the address.
        Tells,
        /// The server says that there is no such address.
        Denies,
        /// The server says nothing.
        Sleeps,
    }

    /// A bootstrap server that tells 192.0.2.1 and 2001:db8::1, or does not.
    async fn server(v4: Does, v6: Does) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        tokio::spawn(async move {
            let mut query = [0; 512];
            while let Ok((len, client)) = socket.recv_from(&mut query).await {
                let query = &query[..len];
                let is_a = query[len - 3] == 1;
                let count = match if is_a { v4 } else { v6 } {
                    Does::Tells => 1,
                    Does::Denies => 0,
                    Does::Sleeps => continue,
                };
                let header = [0x81, 0x80, 0, 1, 0, count, 0, 0, 0, 0];
                let mut message = [&query[..2], &header, &query[12..]].concat();
                if count == 1 {
                    let (qtype, len) = if is_a { (1, 4) } else { (28, 16) };
                    message.extend_from_slice(&[0xc0, 12, 0, qtype, 0, 1, 0, 0, 0, 60, 0, len]);
                    match is_a {
                        true => message.extend_from_slice(&[192, 0, 2, 1]),
                        false => message.extend_from_slice(&V6.octets()),
                    }
                }
                let _ = socket.send_to(&message, client).await;
            }
        });
        address
    }

    const V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    const V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);

    /// Where an upstream is asked that was at 192.0.2.9 and 2001:db8::9, after these were heard.
    async fn places(servers: Vec<SocketAddr>) -> Vec<IpAddr> {
        let before: [IpAddr; 2] = [[192, 0, 2, 9].into(), "2001:db8::9".parse().unwrap()];
        let before = before.map(|address| SocketAddr::new(address, 853)).to_vec();
        let upstream = Connections::new(Protocol::Tcp, before);
        let bootstrap = Bootstrap { name: "dns.example".parse().unwrap(), port: 853, servers };
        if let Some(found) = bootstrap.look_up().await {
            bootstrap.tell(&upstream, &found);
            assert_eq!(found.pause(RETRY_MIN) == RETRY_MIN, !found.is_whole());
        }
        upstream.addresses().iter().map(SocketAddr::ip).collect()
    }

    #[tokio::test]
    async fn an_address_is_given_up_only_when_a_server_says_that_there_is_none() {
        use Does::{Denies, Sleeps, Tells};
        let (kept_v4, kept_v6) = ([192, 0, 2, 9].into(), "2001:db8::9".parse().unwrap());
        let cases: [(Does, Does, &[IpAddr]); 5] = [
            (Tells, Tells, &[V4.into(), V6.into()]),
            (Sleeps, Tells, &[kept_v4, V6.into()]),
            (Tells, Sleeps, &[V4.into(), kept_v6]),
            (Denies, Tells, &[V6.into()]),
            (Denies, Sleeps, &[kept_v4, kept_v6]),
        ];
        for (v4, v6, expected) in cases {
            assert_eq!(places(vec![server(v4, v6).await]).await, expected);
        }
        let second = vec![server(Sleeps, Tells).await, server(Tells, Denies).await];
        assert_eq!(places(second).await, [IpAddr::from(V4), V6.into()], "each of who tells it");
    }
}
