//! What must hold of any octets that an upstream sends; shared with the fuzz target.

use zonda_upstream::answer::{LINKS_MAX, OCTETS_MAX, RECORDS_MAX, Record, Scope};
use zonda_upstream::{Answer, SentQuery, Verdict, check};
use zonda_wire::query::flag;
use zonda_wire::{Message, Owner, Places, Query, Reply, Response, Type, name, rdata};

/// Judges the octets as the answer to a query that asked just what they say, and what it was not
/// meant for, and takes the answer from them.
///
/// # Panics
/// When something does not hold.
pub fn check_any(octets: &[u8]) {
    let other = SentQuery {
        id: 0,
        question: b"\x01a\0\0\x01\0\x01",
        mixed_case: true,
        edns: true,
        cookie: Some([0; 8]),
        expects_cookie: true,
        client_subnet: &[0, 1, 8, 0, 192],
        stream: false,
    };
    let _ = check(&other, octets);
    let Ok(response) = Response::parse(octets) else { return };
    for record in response.records() {
        let ttl = octets[record.ttl_at()..].first_chunk().map(|ttl| u32::from_be_bytes(*ttl));
        assert!(ttl == Some(record.ttl) || ttl > Some(i32::MAX as u32) && record.ttl == 0);
    }
    let id = u16::from_be_bytes([octets[0], octets[1]]);
    let question = response.question();
    let sent = SentQuery { id, question, edns: false, cookie: None, stream: true, ..other };
    if !matches!(check(&sent, octets), Verdict::Accept(_)) {
        return;
    }
    let asked = question[..question.len() - 4].to_ascii_lowercase();
    for dnssec_ok in [false, true] {
        for apex in [&[0][..], name::parent(&asked).unwrap_or(&[0]), &asked] {
            let (mut octets, mut answer) = (octets.to_vec(), Answer::default());
            let scope = Scope { apex, is_elsewhere: &|_| false };
            if answer.read_within(&mut octets, &asked, dnssec_ok, scope).is_ok() {
                check_answer(&answer, &asked);
                check_scope(&answer, apex);
                check_reply(&answer, &octets);
            }
        }
    }
}

/// Checks that each owner is at or below the apex of the zone that the upstream is asked for, or a
/// target of the chain; and what speaks of more names than its owner is at or below the apex in any
/// case.
fn check_scope(answer: &Answer, apex: &[u8]) {
    let is_alias = |record: &Record<'_>| record.rtype == Type::CNAME;
    let aliases = || answer.records().filter(is_alias);
    for record in answer.records() {
        let is_target = || aliases().any(|it| it.rdata.eq_ignore_ascii_case(record.owner));
        let about = match (record.rtype, record.rdata.first_chunk()) {
            (Type::RRSIG, Some(covered)) => Type(u16::from_be_bytes(*covered)),
            (rtype, _) => rtype,
        };
        let of_others = [Type::DNAME, Type::SOA, Type::NS, Type::NSEC, Type::NSEC3];
        let may_be_outside = !of_others.contains(&about) && is_target();
        let owner = name::Presentation(record.owner);
        assert!(name::is_at_or_below(record.owner, apex) || may_be_outside, "{owner} {about}");
    }
}

/// Checks that the records are whole, within bounds, and hang together.
fn check_answer(answer: &Answer, asked: &[u8]) {
    assert!(answer.records().len() <= RECORDS_MAX);
    let mut links = vec![asked.to_ascii_lowercase()];
    let mut octets = 0;
    for record in answer.records() {
        assert_eq!(name::wire_len(record.owner), Some(record.owner.len()));
        assert!(record.ttl <= i32::MAX as u32);
        octets += record.rdata.len();
        let names = rdata::names(record.rtype, record.rdata);
        assert!(names.map(|name| name.offset + name.len).all(|end| end <= record.rdata.len()));
        if record.rtype == Type::CNAME {
            links.push(record.rdata.to_ascii_lowercase());
        }
    }
    assert!(octets <= 2 * OCTETS_MAX && links.len() <= LINKS_MAX + 2);
    for record in answer.records().filter(|record| record.section as usize == 0) {
        let owner = record.owner.to_ascii_lowercase();
        let below = |link: &Vec<u8>| name::is_at_or_below(link, &owner);
        assert!(links.iter().any(below), "{}", name::Presentation(&owner));
    }
}

/// Checks that the accepted records can be written into a reply with the same records.
fn check_reply(answer: &Answer, octets: &[u8]) {
    let mut buffer = octets.to_vec();
    buffer[2..4].copy_from_slice(&flag::RD.to_be_bytes());
    buffer[6..12].fill(0);
    let end = 12 + Response::parse(octets).expect("it was read").question().len();
    let query = Query::parse(&buffer[..end]).expect("a header and a question");
    buffer.resize(u16::MAX.into(), 0);
    let mut places = Places::default();
    let mut reply = Reply::new(&mut buffer, &query, usize::MAX, &mut places);
    for record in answer.records() {
        let fixed = (record.rtype, record.class, record.ttl);
        if reply.record(record.section, Owner::Name(record.owner), fixed, record.rdata).is_err() {
            return;
        }
    }
    let len = reply.finish(&query, flag::RA, zonda_wire::Rcode::NOERROR);
    let message = Message::parse(&buffer[..len]).expect("a reply is a message");
    assert_eq!(message.records.len(), answer.records().len());
    for (written, kept) in message.records.iter().zip(answer.records()) {
        assert!(written.owner.as_wire().eq_ignore_ascii_case(kept.owner));
        assert!(written.rdata.eq_ignore_ascii_case(kept.rdata), "{}", kept.rtype);
    }
}
