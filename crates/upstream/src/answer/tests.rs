#![allow(clippy::unwrap_used)]
use super::*;
use zonda_wire::message::{Message, Question, Record as Full};
use zonda_wire::query::flag;
use zonda_wire::{Name, rdata};

/// Octets of a response to a question with records as a zone file has them; `>` stands before those
/// of the authority section.
fn response(asked: (&str, Type), rcode: Rcode, records: &[&str]) -> Vec<u8> {
    let question = Question::new(asked.0.parse().unwrap(), asked.1);
    let flags = flag::QR | flag::RD | flag::RA | rcode.0;
    let mut response = Message::new(1, flags, question);
    response.records.extend(records.iter().map(|line| record(line)));
    response.to_wire()
}

/// Returns a record: `OWNER TTL TYPE DATA`.
fn record(text: &str) -> Full {
    let (section, text) = match text.strip_prefix('>') {
        Some(rest) => (Section::Authority, rest),
        None => (Section::Answer, text),
    };
    let mut words = text.split_whitespace();
    let owner: Name = words.next().unwrap().parse().unwrap();
    let ttl = words.next().unwrap().parse().unwrap();
    let rtype: Type = words.next().unwrap().parse().unwrap();
    let token = |word: &'static str| rdata::Token {
        text: word.as_bytes(),
        quoted: false,
        glued: false,
        at: 0,
    };
    let text: &'static str = words.collect::<Vec<_>>().join(" ").leak();
    let tokens: Vec<_> = text.split(' ').map(token).collect();
    let mut data = Vec::new();
    rdata::parse(rtype, &tokens, &[0], &mut data).unwrap();
    Full::new(section, owner, rtype, ttl, data)
}

/// Returns what is kept of a response: the kind, then the records in the notation of [`response`].
fn kept(asked: (&str, Type), rcode: Rcode, dnssec_ok: bool, records: &[&str]) -> Vec<String> {
    read(&mut response(asked, rcode, records), asked.0, dnssec_ok)
}

/// Returns what is kept of a message.
fn read(message: &mut [u8], name: &str, dnssec_ok: bool) -> Vec<String> {
    read_within(".", message, name, dnssec_ok)
}

/// Returns what is kept of a message of servers that are asked for the zone of an apex.
fn read_within(apex: &str, message: &mut [u8], name: &str, dnssec_ok: bool) -> Vec<String> {
    let mut answer = Answer::default();
    let [name, apex]: [Name; 2] = [name, apex].map(|it| it.parse().unwrap());
    let scope = Scope { apex: apex.as_wire(), is_elsewhere: &|_| false };
    match answer.read_within(message, name.as_wire(), dnssec_ok, scope) {
        Ok(kind) => {
            let lines = answer.records().map(|record| line(&record));
            [format!("{kind:?}")].into_iter().chain(lines).collect()
        }
        Err(unfit) => {
            assert_eq!(answer.records().len(), 0);
            vec![format!("{unfit:?}")]
        }
    }
}

/// Returns a record in the notation of [`response`].
fn line(record: &Record<'_>) -> String {
    let Record { section, rtype, ttl, rdata, .. } = *record;
    let mark = if section == Section::Authority { ">" } else { "" };
    let owner = name::Presentation(record.owner);
    let data = rdata::Presentation { rtype, rdata };
    format!("{mark}{owner} {ttl} {rtype} {data}")
}

const SOA: &str = ">example. 300 SOA ns.example. h.example. 1 2 3 4 5";
const SIG: &str = "8 1 60 20300101000000 20200101000000 1 example. AAAA";

/// Returns a signature over a type.
fn sig(owner: &str, rtype: &str) -> String {
    format!("{owner} 60 RRSIG {rtype} {SIG}")
}

#[test]
fn only_records_that_belong_to_the_question_are_accepted() {
    let records = [
        "bank.example. 60 A 192.0.2.66",
        "www.example. 60 A 192.0.2.1",
        "www.example. 60 AAAA 2001:db8::66",
        "www.example. 60 A 192.0.2.2",
        ">example. 60 NS ns.evil.",
        SOA,
    ];
    let expected = ["Positive", "www.example. 60 A 192.0.2.1", "www.example. 60 A 192.0.2.2"];
    assert_eq!(kept(("www.example", Type::A), Rcode::NOERROR, true, &records), expected);
}

#[test]
fn a_chain_is_followed_in_whatever_order_it_comes() {
    let records = [
        "c.test. 60 A 192.0.2.1",
        "b.example. 50 CNAME c.test.",
        "z.example. 50 CNAME c.test.",
        "a.example. 40 CNAME b.example.",
        "a.example. 40 CNAME z.example.",
    ];
    let expected = [
        "Positive",
        "a.example. 40 CNAME b.example.",
        "b.example. 50 CNAME c.test.",
        "c.test. 60 A 192.0.2.1",
    ];
    assert_eq!(kept(("a.example", Type::A), Rcode::NOERROR, false, &records), expected);
    let one = kept(("a.example", Type::CNAME), Rcode::NOERROR, false, &records);
    assert_eq!(one, expected[..2]);
}

#[test]
fn a_chain_that_ends_in_nothing_keeps_the_soa_that_encloses_its_last_name() {
    let records = [
        "a.example. 40 CNAME b.sub.test.",
        ">test. 60 SOA ns.test. h.test. 1 2 3 4 5",
        ">sub.test. 60 SOA ns.test. h.test. 6 2 3 4 5",
        ">sub.test. 60 SOA ns.test. h.test. 7 2 3 4 5",
        SOA,
    ];
    let expected = [
        "NameError",
        "a.example. 40 CNAME b.sub.test.",
        ">sub.test. 60 SOA ns.test. h.test. 6 2 3 4 5",
    ];
    assert_eq!(kept(("a.example", Type::A), Rcode::NXDOMAIN, false, &records), expected);
    let foreign = kept(("a.test", Type::A), Rcode::NXDOMAIN, false, &[SOA]);
    assert_eq!(foreign, ["NameError"]);
    assert_eq!(kept(("a.test", Type::A), Rcode::NOERROR, false, &[]), ["NoData"]);
}

#[test]
fn a_cname_that_follows_from_a_dname_is_made_here() {
    let records = [
        "old.example. 40 DNAME new.test.",
        "a.old.example. 40 CNAME evil.test.",
        "a.new.test. 60 A 192.0.2.1",
    ];
    let expected = [
        "Positive",
        "old.example. 40 DNAME new.test.",
        "a.old.example. 40 CNAME a.new.test.",
        "a.new.test. 60 A 192.0.2.1",
    ];
    assert_eq!(kept(("a.old.example", Type::A), Rcode::NOERROR, false, &records), expected);
    assert_eq!(
        kept(("a.old.example", Type::CNAME), Rcode::NOERROR, false, &records),
        expected[..3]
    );
    let own = kept(("old.example", Type::DNAME), Rcode::NOERROR, false, &records);
    assert_eq!(own, expected[..2]);
}

#[test]
fn a_name_that_a_dname_makes_too_long_ends_the_chain() {
    let label = "a".repeat(63);
    let name = format!("{label}.{label}.{label}.old");
    let dname = format!("old. 40 DNAME {label}.test.");
    for rcode in [Rcode::YXDOMAIN, Rcode::NOERROR] {
        let said = kept((&name, Type::A), rcode, false, &[&dname]);
        assert_eq!(said, ["NameTooLong", &dname]);
    }
}

#[test]
fn with_do_signatures_and_proofs_of_accepted_zones_are_accepted() {
    let (cname, a, nsec) =
        (sig("a.example.", "CNAME"), sig("b.example.", "A"), "NSEC c.example. A");
    let proof = format!(">b.example. 60 {nsec}");
    let proof_sig = sig(">b.example.", "NSEC");
    let foreign = format!(">b.test. 60 {nsec}");
    let records = [
        "a.example. 60 CNAME b.example.",
        &cname,
        "b.example. 60 A 192.0.2.1",
        &a,
        &foreign,
        &proof,
        &proof_sig,
        &sig(">b.example.", "NS"),
        SOA,
    ];
    let all = kept(("a.example", Type::A), Rcode::NOERROR, true, &records);
    let shortened: Vec<&str> = all.iter().map(|line| &line[..line.len().min(28)]).collect();
    let expected = [
        "Positive",
        "a.example. 60 CNAME b.exampl",
        "a.example. 60 RRSIG CNAME 8 ",
        "b.example. 60 A 192.0.2.1",
        "b.example. 60 RRSIG A 8 1 60",
        ">b.example. 60 NSEC c.exampl",
        ">b.example. 60 RRSIG NSEC 8 ",
    ];
    assert_eq!(shortened, expected);
    let without = kept(("a.example", Type::A), Rcode::NOERROR, false, &records);
    assert_eq!(without, ["Positive", records[0], records[2]]);
    let negative = kept(("z.example", Type::A), Rcode::NXDOMAIN, true, &records);
    assert_eq!(negative.len(), 4, "{negative:?}"); // SOA, NSEC and its signature
}

#[test]
fn any_and_rrsig_can_be_queried() {
    let signature = sig("a.example.", "A");
    let records = ["a.example. 60 A 192.0.2.1", &signature, "a.example. 60 AAAA ::1"];
    assert_eq!(kept(("a.example", Type::ANY), Rcode::NOERROR, false, &records).len(), 4);
    assert_eq!(kept(("a.example", Type::RRSIG), Rcode::NOERROR, false, &records).len(), 2);
}

#[test]
fn circles_and_endless_chains_are_refused() {
    let circle = ["a. 60 CNAME b.", "b. 60 CNAME A."];
    assert_eq!(kept(("a", Type::A), Rcode::NOERROR, false, &circle), ["Loop"]);
    assert_eq!(kept(("a", Type::A), Rcode::NOERROR, false, &["a. 1 CNAME a."]), ["Loop"]);
    assert_eq!(kept(("x.a", Type::A), Rcode::NOERROR, false, &["a. 1 DNAME x.a."]), ["LongChain"]);
    let chain = |links: usize| {
        let links: Vec<String> =
            (0..links).map(|link| format!("n{link}. 60 CNAME n{}.", link + 1)).collect();
        let links: Vec<&str> = links.iter().map(String::as_str).collect();
        kept(("n0", Type::A), Rcode::NOERROR, false, &links).len()
    };
    assert_eq!(chain(LINKS_MAX), 1 + LINKS_MAX);
    assert_eq!(chain(LINKS_MAX + 1), 1); // nothing but the reason
}

#[test]
fn huge_answers_are_refused() {
    let sets = |count: usize| {
        let records = vec!["a. 60 A 192.0.2.1"; count];
        kept(("a", Type::A), Rcode::NOERROR, false, &records).len()
    };
    assert_eq!(sets(RECORDS_MAX), 1 + RECORDS_MAX);
    assert_eq!(sets(RECORDS_MAX + 1), 1);
    let mut octets = response(("a", Type::MX), Rcode::NOERROR, &[]);
    let long = [&[63; 1][..], &[b'x'; 63]].concat().repeat(3);
    let first = [b"\xc0\x0c\0\x0f\0\x01\0\0\0\x3c\0\xc3\0\x0a", &long[..], b"\0"].concat();
    let more = b"\xc0\x0c\0\x0f\0\x01\0\0\0\x3c\0\x04\0\x0a\xc0\x21".repeat(1000);
    octets[7] = (1001 & 0xff) as u8;
    octets[6] = (1001 >> 8) as u8;
    octets.extend([&first[..], &more].concat());
    assert_eq!(read(&mut octets, "a", false), ["TooLarge"]);
}

#[test]
fn rdata_that_breaks_its_type_and_rcodes_that_contradict_records_are_refused() {
    let mut octets = response(("a", Type::A), Rcode::NOERROR, &["a. 60 A 192.0.2.1"]);
    octets[3] |= 3;
    assert_eq!(read(&mut octets, "a", false), ["Contradiction"]);
    octets[3] &= 0xf0;
    let end = octets.len();
    octets[end - 5] = 3;
    octets.pop();
    assert_eq!(read(&mut octets, "a", false), ["Malformed"]);
    assert_eq!(read(&mut octets, "b", false), ["Malformed"]);
}

#[test]
fn names_come_out_in_the_case_that_the_client_sent() {
    let mut octets = response(("wWw.eXample", Type::A), Rcode::NOERROR, &[]);
    octets[7] = 1;
    octets.extend(b"\xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x04\x01x\xc0\x10");
    let expected = ["NoData", "www.Example. 60 CNAME x.Example."];
    assert_eq!(read(&mut octets, "www.Example", false), expected);
}

/// Returns a chain of aliases behind a thousand records whose owners are long, in as many pieces as
/// can be.
fn laborious() -> Vec<u8> {
    let mut message = vec![0, 1, 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0];
    message.extend_from_slice(b"\x02l0\0\0\x01\0\x01");
    let fixed = |rtype: u8, len: usize| [0, rtype, 0, 1, 0, 0, 0, 60, (len >> 8) as u8, len as u8];
    let pointer = |at: usize| (0xc000 | at as u16).to_be_bytes();
    let pieces = 126;
    message.push(0);
    message.extend_from_slice(&fixed(99, 4 * pieces - 1));
    message.extend_from_slice(b"\x01x\0");
    let mut last = message.len() - 3;
    for _ in 1..pieces {
        message.extend_from_slice(b"\x01x");
        message.extend_from_slice(&pointer(last));
        last = message.len() - 4;
    }
    let many = RECORDS_MAX - 1 - LINKS_MAX;
    for _ in 0..many {
        message.extend_from_slice(&pointer(last));
        message.extend_from_slice(&fixed(5, 2));
        message.extend_from_slice(&pointer(last));
    }
    for link in 0..LINKS_MAX as u8 {
        message.extend_from_slice(&[2, b'l', b'0' + link, 0]);
        message.extend_from_slice(&fixed(5, 4));
        message.extend_from_slice(&[2, b'l', b'1' + link, 0]);
    }
    message[6..8].copy_from_slice(&(RECORDS_MAX as u16).to_be_bytes());
    message
}

/// The CPU time of this thread so far, as the kernel counts it (`/proc/thread-self/schedstat`).
fn cpu_time() -> std::time::Duration {
    let line = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanos = line.split_whitespace().next().unwrap().parse().unwrap();
    std::time::Duration::from_nanos(nanos)
}

#[test]
fn an_answer_that_is_made_to_cost_time_costs_little() {
    let before = cpu_time();
    let lines = read(&mut laborious(), "l0", false);
    let took = cpu_time() - before;
    assert_eq!((lines.len(), &*lines[0]), (1 + LINKS_MAX, "NoData"));
    // Some 5 ms; 50 ms when each link reads all names anew.
    assert!(took < std::time::Duration::from_millis(100), "{took:?}");
}

#[test]
fn a_chain_ends_at_the_first_alias_whose_owner_is_outside_the_zone() {
    let records = [
        "a.example 60 CNAME b.example",
        "b.example 60 CNAME host.our.test",
        "host.our.test 60 A 192.0.2.66",
    ];
    let ours: Name = "our.test".parse().unwrap();
    let is_ours = |name: &[u8]| name::is_at_or_below(name, ours.as_wire());
    for rcode in [Rcode::NOERROR, Rcode::NXDOMAIN] {
        let mut message = response(("a.example", Type::A), rcode, &records);
        let (mut answer, asked) = (Answer::default(), "a.example".parse::<Name>().unwrap());
        let scope = Scope { is_elsewhere: &is_ours, ..Scope::ALL };
        let kind = answer.read_within(&mut message, asked.as_wire(), false, scope);
        assert_eq!(kind, Ok(Kind::Elsewhere));
        let kept: Vec<_> = answer.records().map(|record| line(&record)).collect();
        assert_eq!(kept, ["a.example. 60 CNAME b.example.", "b.example. 60 CNAME host.our.test."]);
    }
}

/// Returns what is kept of an answer of the servers of `evil.test`, with DO.
fn kept_of_evil(asked: (&str, Type), rcode: Rcode, records: &[&str]) -> Vec<String> {
    read_within("evil.test", &mut response(asked, rcode, records), asked.0, true)
}

#[test]
fn a_dname_above_the_zone_is_left_out_and_the_alias_of_the_name_itself_is_followed() {
    let signature = sig("test.", "DNAME");
    let records = [
        "test. 60 DNAME victim.example.",
        &signature,
        "a.evil.test. 50 CNAME a.evil.victim.example.",
        "a.evil.victim.example. 60 A 192.0.2.1",
    ];
    let expected = ["Positive", records[2], records[3]];
    let asked = ("a.evil.test", Type::A);
    assert_eq!(kept_of_evil(asked, Rcode::NOERROR, &records), expected);
    for owner in ["test.", "."] {
        let dname = format!("{owner} 60 DNAME victim.example.");
        assert_eq!(kept_of_evil(asked, Rcode::NOERROR, &[&dname]), ["AboveZone"], "{owner}");
    }
    let own = "evil.test. 60 DNAME victim.example.";
    let made = "a.evil.test. 60 CNAME a.victim.example.";
    assert_eq!(kept_of_evil(asked, Rcode::NOERROR, &[own]), ["NoData", own, made]);
}

#[test]
fn a_denial_by_a_parent_zone_is_cached_without_records_and_for_its_ttl() {
    let proof = sig(">test.", "NSEC");
    let records = [
        ">test. 300 SOA ns.test. h.test. 1 2 3 4 50",
        ">test. 60 NSEC zz.test. A",
        &proof,
        ">evil.test. 60 NSEC z.evil.test. A",
    ];
    let (name, mut answer) = ("a.evil.test".parse::<Name>().unwrap(), Answer::default());
    for (apex, kept, secs) in [("evil.test", 0, Some(50)), ("test", 4, None), (".", 4, None)] {
        let mut message = response(("a.evil.test", Type::A), Rcode::NXDOMAIN, &records);
        let apex: Name = apex.parse().unwrap();
        let scope = Scope { apex: apex.as_wire(), is_elsewhere: &|_| false };
        let kind = answer.read_within(&mut message, name.as_wire(), true, scope);
        assert_eq!((kind, answer.records().len()), (Ok(Kind::NameError), kept), "{apex}");
        assert_eq!(answer.denied_secs(), secs, "{apex}");
    }
}

#[test]
fn records_of_another_zone_behind_an_alias_cover_their_owner_only() {
    let alias = "a.evil.test. 60 CNAME test.";
    for (qtype, record) in [
        (Type::DNAME, "test. 60 DNAME victim.example."),
        (Type::NS, "test. 60 NS ns.evil.test."),
        (Type::SOA, "test. 300 SOA ns.test. h.test. 1 2 3 4 5"),
        (Type::NSEC, "test. 60 NSEC zz.test. A"),
    ] {
        let records = [alias, record];
        let told = kept_of_evil(("a.evil.test", qtype), Rcode::NOERROR, &records);
        assert_eq!(told, ["Elsewhere", alias], "{record}");
        let told = kept(("a.evil.test", qtype), Rcode::NOERROR, true, &records);
        assert_eq!(told.len(), 3, "{record}");
    }
    let address = "test. 60 A 192.0.2.1";
    let told = kept_of_evil(("a.evil.test", Type::ANY), Rcode::NOERROR, &[alias, address]);
    assert_eq!(told, ["Positive", alias], "an alias is all that the name has");
    let told = kept_of_evil(("a.evil.test", Type::A), Rcode::NOERROR, &[alias, address]);
    assert_eq!(told, ["Positive", alias, address]);
}

#[test]
fn a_record_of_another_class_than_the_question_makes_an_answer_malformed() {
    for records in [
        &["a.example. 60 A 192.0.2.1"][..],
        &["a.example. 60 A 192.0.2.1", "a.example. 60 A 192.0.2.2"],
        &["a.example. 60 A 192.0.2.1", SOA],
    ] {
        let mut octets = response(("a.example", Type::A), Rcode::NOERROR, records);
        let fixed = b"\0\x01\0\x01\0\0\0\x3c"; // A, IN and a minute
        let at = octets.windows(8).rposition(|octets| octets == fixed).unwrap();
        assert_eq!(read(&mut octets.clone(), "a.example", false)[0], "Positive");
        octets[at + 3] = 3;
        assert_eq!(read(&mut octets, "a.example", false), ["Malformed"]);
    }
    let denial = || response(("a.example", Type::A), Rcode::NXDOMAIN, &[SOA]);
    let mut octets = denial();
    let at = octets.windows(4).rposition(|octets| octets == b"\0\x06\0\x01").unwrap();
    octets[at + 3] = 3;
    assert_eq!(read(&mut octets, "a.example", false), ["Malformed"]);
}

/// Type, class and section of a record.
type Fixed = (Type, Class, Section);

/// Returns a response to `www.example. A` whose records have pointers to the question for owners,
/// or the owner written out.
fn by_hand(owner: &[u8], rcode: u8, records: &[Fixed]) -> Vec<u8> {
    let count = |section| records.iter().filter(|record| record.2 == section).count() as u8;
    let counts = [Section::Answer, Section::Authority, Section::Additional].map(count);
    let mut octets = vec![0, 1, 0x81, 0x80 | rcode, 0, 1, 0, counts[0], 0, counts[1], 0, counts[2]];
    octets.extend_from_slice(b"\x03WWW\x07example\0\0\x01\0\x01");
    for (number, (rtype, class, _)) in records.iter().enumerate() {
        octets.extend_from_slice(owner);
        let fixed = [rtype.0, class.0, 0, 300, 4].map(u16::to_be_bytes).concat();
        octets.extend_from_slice(&fixed);
        octets.extend_from_slice(&[192, 0, 2, number as u8]);
    }
    octets
}

#[test]
fn an_rrset_is_read_alike_however_its_owners_are_compressed() {
    use Section::{Additional, Answer, Authority};
    let (a, null, ch) = (Type::A, Type(10), Class(3));
    let cases: [(u8, &[Fixed], usize); 9] = [
        (0, &[(a, Class::IN, Answer)], 2),
        (0, &[(a, Class::IN, Answer), (a, Class::IN, Answer)], 3),
        (0, &[(a, Class::IN, Answer), (null, Class::IN, Authority)], 2),
        (0, &[(a, Class::IN, Answer), (null, ch, Additional)], 2),
        (0, &[(a, Class::IN, Answer), (null, Class::IN, Answer)], 2),
        (0, &[(a, ch, Answer)], 1),
        (0, &[(a, Class::IN, Answer), (null, ch, Authority)], 1),
        (3, &[(a, Class::IN, Answer)], 1),
        (0, &[(null, Class::IN, Authority)], 1),
    ];
    for (rcode, records, lines) in cases {
        let pointers = by_hand(b"\xc0\x0c", rcode, records);
        let written_out = by_hand(b"\x03wWw\x07example\0", rcode, records);
        for dnssec_ok in [false, true] {
            let [first, second] = [&pointers, &written_out]
                .map(|octets| read(&mut octets.clone(), "www.example.", dnssec_ok));
            assert_eq!(first, second, "{records:?}");
            assert_eq!(first.len(), lines, "{first:?}");
        }
    }
}

#[test]
fn the_closest_enclosing_zone_gives_the_negative_ttl() {
    let test = ">test. 300 SOA ns.test. h.test. 1 2 3 4 50";
    let sub = ">sub.test. 300 SOA ns.test. h.test. 1 2 3 4 40";
    let shorter = ">sub.test. 30 SOA ns.test. h.test. 2 2 3 4 40";
    let beside = ">other.test. 300 SOA ns.test. h.test. 1 2 3 4 7";
    for (records, secs) in [
        (&[sub, test][..], 40),
        (&[test, sub], 40),
        (&[test, sub, beside], 40),
        (&[shorter, sub, test], 30),
        (&[sub, shorter], 30),
    ] {
        let [name, apex]: [Name; 2] = ["a.b.sub.test", "b.sub.test"].map(|it| it.parse().unwrap());
        let mut message = response(("a.b.sub.test", Type::A), Rcode::NXDOMAIN, records);
        let scope = Scope { apex: apex.as_wire(), is_elsewhere: &|_| false };
        let mut answer = Answer::default();
        let kind = answer.read_within(&mut message, name.as_wire(), false, scope);
        assert_eq!((kind, answer.denied_secs()), (Ok(Kind::NameError), Some(secs)), "{records:?}");
    }
}
