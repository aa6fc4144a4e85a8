//! DNS queries to targets.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use zonda_wire::query::flag;

use super::connect::{self, Endpoint};
use super::exchange::socket;
use crate::check::{DnsCheck, Transport};
use crate::decode::{dns_answers, dns_judge, dns_query};
use crate::outcome::{Fault, Step};
use crate::random::Random;

/// The largest response over UDP to a query without EDNS, and room to notice a larger one.
const UDP_BYTES_MAX: usize = 4096;
/// Messages over UDP that are no response to the query, before the probe gives up.
const STRAY_MAX: usize = 64;

/// Sends the query and judges the response; returns its code in words.
///
/// # Errors
/// Why the target is not healthy.
pub async fn ask(check: &DnsCheck, endpoint: &Endpoint) -> Result<Box<str>, Fault> {
    let id = Random::new().below(1 << 16) as u16;
    let query = dns_query(check, id);
    let mut response = match check.transport {
        Transport::Udp => over_udp(&query, endpoint).await?,
        Transport::Tcp => over_tcp(&query, endpoint).await?,
    };
    let is_truncated = response.get(2).is_some_and(|octet| octet & (flag::TC >> 8) as u8 != 0);
    if is_truncated && check.transport == Transport::Udp {
        response = over_tcp(&query, endpoint).await?;
    }
    dns_judge(check, &response)
}

/// Asks over UDP; returns the first message that answers.
async fn over_udp(query: &[u8], endpoint: &Endpoint) -> Result<Vec<u8>, Fault> {
    let socket = socket(endpoint).await?;
    let failed = |error| connect::fault(&error, Step::Reply);
    socket.send(query).await.map_err(failed)?;
    let mut message = vec![0; UDP_BYTES_MAX];
    for _ in 0..STRAY_MAX {
        let len = socket.recv(&mut message).await.map_err(failed)?;
        if dns_answers(query, &message[..len]) {
            message.truncate(len);
            return Ok(message);
        }
    }
    Err(Fault::Protocol("DNS"))
}

/// Asks over TCP.
async fn over_tcp(query: &[u8], endpoint: &Endpoint) -> Result<Vec<u8>, Fault> {
    let mut stream = endpoint.connect().await?;
    let failed = |error| connect::fault(&error, Step::Reply);
    let len = u16::try_from(query.len()).expect("a query has 512 octets at most");
    stream.write_all(&[&len.to_be_bytes(), query].concat()).await.map_err(failed)?;
    let len = stream.read_u16().await.map_err(failed)?;
    let mut message = vec![0; len.into()];
    stream.read_exact(&mut message).await.map_err(failed)?;
    if dns_answers(query, &message) { Ok(message) } else { Err(Fault::Protocol("DNS")) }
}
