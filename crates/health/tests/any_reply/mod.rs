//! What must hold of any octets that a target sends; shared with the fuzz target.

use zonda_health::decode::{
    Family, HttpResponse, dns_answers, dns_judge, dns_query, echo_reply, echo_request,
    health_response, not_after_days,
};
use zonda_health::{DnsCheck, Fault, HttpCheck};
use zonda_wire::{Name, Rcode, Type};

/// The payload of echo requests.
const PAYLOAD: [u8; 16] = *b"zonda echo probe";

/// Reads the octets as everything that a target may send.
///
/// # Panics
/// When something does not hold.
pub fn check(octets: &[u8]) {
    check_certificate(octets);
    check_grpc(octets);
    check_echo(octets);
    check_dns(octets);
    check_http(octets);
}

/// A response of HTTP is read alike in parts and whole.
fn check_http(octets: &[u8]) {
    let check = HttpCheck::new("/").expect("a path");
    for check in [check.clone().with_text("ready").expect("a short text"), check] {
        let read = |part: usize| {
            let mut response = HttpResponse::new(&check);
            octets.chunks(part).find_map(|it| response.read(it)).unwrap_or_else(|| response.end())
        };
        let whole = read(usize::MAX);
        assert_eq!(read(1), whole);
        assert_eq!(read(5), whole);
        if let Ok(status) = whole {
            assert!((200..=399).contains(&status) && octets.starts_with(b"HTTP/"));
        }
    }
}

/// A certificate ends within the years that can be written.
fn check_certificate(octets: &[u8]) {
    const YEAR_0: i64 = -719_528;
    const YEAR_10000: i64 = 2_932_897;
    if let Some(days) = not_after_days(octets) {
        assert!((YEAR_0..YEAR_10000).contains(&days), "{days}");
    }
}

/// A message of gRPC is as long as it says.
fn check_grpc(octets: &[u8]) {
    if health_response(octets).is_some() {
        let len = u32::from_be_bytes(octets[1..5].try_into().expect("four octets"));
        assert_eq!((octets[0], octets.len() - 5), (0, len as usize));
    }
}

/// A reply has the payload, and a request is no reply.
fn check_echo(octets: &[u8]) {
    for family in [Family::V4, Family::V6] {
        if echo_reply(family, PAYLOAD, octets) {
            assert!(octets.ends_with(&PAYLOAD) && octets.len() == 24);
            assert_ne!(octets[0], echo_request(family, PAYLOAD)[0]);
        }
    }
}

/// A response that is judged a success has the code and the address that were expected.
fn check_dns(octets: &[u8]) {
    let name = Name::parse(b"www.example.com.", b"\0").expect("a name");
    let mut check = DnsCheck::new(name, Type::A);
    let query = dns_query(&check, 0x1234);
    assert!(!dns_answers(&query, &query));
    if !dns_answers(&query, octets) {
        return;
    }
    let without_address = dns_judge(&check, octets);
    check.address = Some([192, 0, 2, 1].into());
    match dns_judge(&check, octets) {
        Ok(rcode) => assert_eq!((without_address.as_ref(), &*rcode), (Ok(&rcode), "NOERROR")),
        Err(Fault::NoAddress) => assert!(without_address.is_ok()),
        Err(fault) => assert_eq!(without_address, Err(fault)),
    }
    check.rcodes = (0..16).map(Rcode).collect();
    check.address = None;
    let any_rcode = dns_judge(&check, octets);
    assert!(any_rcode.is_ok() || matches!(any_rcode, Err(Fault::Protocol(_) | Fault::Rcode(_))));
}
