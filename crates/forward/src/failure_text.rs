//! Why there is no answer, in the words of an extended error:
//! `192.0.2.1: timed out; 192.0.2.2: the answer was REFUSED`.

use std::fmt::Display;
use std::net::SocketAddr;

use zonda_engine::TEXT_BYTES_MAX;
use zonda_upstream::{Exchange, Pool};

/// The port that goes without saying.
const PORT: u16 = 53;

/// Returns in words how each upstream failed to answer a question: each with its address, those
/// that were asked and those that could not be, with the reason.
pub fn failure_text(
    addresses: impl Iterator<Item = Option<SocketAddr>>,
    pool: &Pool,
    exchange: &Exchange,
) -> String {
    let mut text = String::new();
    for (place, (address, member)) in addresses.zip(&pool.members).enumerate() {
        match (exchange.last(place), member.health.trouble()) {
            (Some(last), _) => push(&mut text, address, &last),
            (None, Some(trouble)) => push(&mut text, address, &trouble),
            (None, None) => {}
        }
    }
    text
}

/// Appends what is said of an upstream, if that fits.
fn push(text: &mut String, address: Option<SocketAddr>, what: &dyn Display) {
    let before = if text.is_empty() { "" } else { "; " };
    let one = match address {
        Some(address) if address.port() == PORT => format!("{before}{}: {what}", address.ip()),
        Some(address) => format!("{before}{address}: {what}"),
        None => format!("{before}a server of unknown address: {what}"),
    };
    if text.len() + one.len() <= TEXT_BYTES_MAX {
        text.push_str(&one);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zonda_upstream::check::Failure;
    use zonda_upstream::exchange::Outcome;
    use zonda_upstream::{Member, Settings};
    use zonda_wire::Rcode;

    #[test]
    fn each_upstream_is_told_of_as_far_as_there_is_room() {
        let upstreams: Vec<SocketAddr> = (1..10)
            .map(|last| SocketAddr::from(([192, 0, 2, last], if last == 2 { 5353 } else { 53 })))
            .collect();
        let members = vec![Member::new(false, [0; 16]); upstreams.len()];
        let mut pool = Pool::new(members, Settings::default());
        let mut actions = Vec::new();
        let mut exchange = Exchange::start(&mut pool, 0, 0, 0, &mut actions);
        for attempt in 0..8 {
            let outcome = match attempt % 2 {
                0 => Outcome::Failed(Failure::Rcode(Rcode::REFUSED)),
                _ => Outcome::Unreachable,
            };
            exchange.on_outcome(&mut pool, 1, attempt, outcome, 0, &mut actions);
        }
        let text = failure_text(upstreams.iter().copied().map(Some), &pool, &exchange);
        assert!(text.len() <= TEXT_BYTES_MAX && text.len() > TEXT_BYTES_MAX / 2, "{text}");
        assert!(text.contains("192.0.2.1: "), "{text}");
        assert!(text.contains("; 192.0.2.2:5353: "), "{text}");
        assert!(text.contains("the answer was REFUSED") && text.contains("reached"), "{text}");
    }
}
