//! Whether a message answers what was sent.
//!
//! - [`Verdict::Ignore`]: the message is not for this query: wrong id, question, QR, opcode or
//!   client cookie. It is as if it had not come, so that a forger gains nothing.
//! - [`Verdict::Doubt`]: it says something that makes queries less safe, and has less in it than an
//!   answer: a forger need not know the case of the name, or not the name. Go on waiting for a
//!   better one, and ask over TCP.
//! - [`Verdict::Repeat`]: the query should have been sent otherwise; ask the same upstream so.
//! - [`Verdict::Failed`]: the upstream cannot or will not answer; ask another.
//! - [`Verdict::Accept`]: it answers.
//!
//! Over UDP a message without the query's cookie is doubted if its name comes back in another case:
//! there are servers that flatten it, and some that repeat it as another client wrote it. A failure
//! without the question is doubted as well, which old servers say to what they do not understand,
//! and a message without a cookie of a server that has sent one before (rfc7873#5.3): servers
//! behind one address seldom agree on it.
//!
//! Before this, the caller has matched source address, port and transport, without which nothing
//! here is worth much (rfc5452#9.1). Behind it, [`Answer`](crate::Answer) takes what belongs to the
//! question.

use crate::answer::AnswerError;
use std::fmt;
use zonda_wire::query::{HEADER_BYTES, flag, option};
use zonda_wire::response::Response;
use zonda_wire::{Class, Opcode, Rcode, Section, Type};

/// A query as it was sent, to check answers against.
#[derive(Clone, Copy, Debug)]
pub struct SentQuery<'q> {
    /// Id in the header.
    pub id: u16,
    /// Name in the case that was sent, type and class, as they stood behind the header.
    pub question: &'q [u8],
    /// Whether the case of the name was mixed at random and must come back the same.
    pub mixed_case: bool,
    /// Whether the query has an OPT record.
    pub edns: bool,
    /// Client cookie of the query, if it has one (rfc7873#4.1).
    pub cookie: Option<[u8; 8]>,
    /// Whether the query has a server cookie, too: the upstream knows cookies, and its answers
    /// should have the client cookie of the query.
    pub expects_cookie: bool,
    /// Data of the query's CLIENT-SUBNET option, none without one.
    pub client_subnet: &'q [u8],
    /// Whether the query was sent over a stream, where nothing is truncated.
    pub stream: bool,
}

/// What to make of a message.
#[derive(Clone, Copy, Debug)]
pub enum Verdict<'m> {
    /// An answer; its code is NOERROR, NXDOMAIN or YXDOMAIN.
    Accept(Response<'m>),
    /// Not for this query: ignore the message and go on waiting.
    Ignore(Mismatch),
    /// Perhaps forged: query over TCP, and go on waiting. Over a stream nothing is doubted.
    Doubt(Doubt),
    /// The query should be sent again to the same upstream, in another form.
    Repeat(Repeat<'m>),
    /// The upstream cannot or will not answer.
    Failed(Failure),
}

/// Why a message does not answer a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// The message is shorter than a header.
    Short,
    /// QR is not set.
    NotAResponse,
    /// The message has another id.
    Id,
    /// The operation code is not that of the query.
    Opcode,
    /// The question is another one, or missing where there must be one.
    Question,
    /// The client cookie is not that of the query (rfc7873#5.3).
    Cookie,
}

/// What makes a message doubtful.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The name came back in another case than it was sent.
    Case,
    /// A failure with this code, without the question.
    NoQuestion(Rcode),
    /// The cookie is missing that was to be expected (rfc7873#5.3).
    NoCookie,
    /// Too many unexpected messages came to the port of a query: a forger may know it, so that
    /// answers to that port are ignored from then on. Never a verdict of [`check`].
    Forged,
}

/// How a query should be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat<'m> {
    /// Over TCP: the answer was truncated.
    OverTcp,
    /// Without OPT, which the upstream does not understand (rfc6891#7).
    WithoutEdns,
    /// With this server cookie, 8–32 octets (rfc7873#5.3).
    WithCookie(&'m [u8]),
}

/// Why an upstream did not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A response code other than NOERROR, NXDOMAIN and YXDOMAIN.
    Rcode(Rcode),
    /// The upstream refers to other servers instead of querying them.
    Lame,
    /// A part of the message ends early, or something follows the last record.
    Malformed,
    /// The message is truncated although it came over a stream.
    Truncated,
    /// The answer is for another network of clients than the query tells (rfc7871#7.3).
    OtherNetwork,
    /// The answer cannot be used; never a verdict of [`check`].
    Unfit(AnswerError),
    /// The upstream's certificate is not trusted, so that no query was sent; never a verdict of
    /// [`check`].
    Untrusted,
    /// The upstream answered with this status of HTTP; never a verdict of [`check`].
    Http(u16),
    /// The upstream sent so many unsolicited octets that its connection was closed; never a verdict
    /// of [`check`].
    Flood,
    /// The upstream's address leads back to this server, so that no query was sent; never a verdict
    /// of [`check`].
    Loop,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rcode(rcode) => write!(f, "the answer was {rcode}"),
            Self::Lame => f.write_str("the answer was a referral"),
            Self::Malformed => f.write_str("the answer was malformed"),
            Self::Truncated => f.write_str("the answer was truncated over a stream"),
            Self::OtherNetwork => {
                f.write_str("the answer was for another network of clients than the query told")
            }
            Self::Unfit(unfit) => write!(f, "{unfit}"),
            Self::Untrusted => f.write_str("the certificate is not trusted"),
            Self::Http(status @ 300..400) => {
                write!(f, "HTTP status {status}: redirections are not followed")
            }
            Self::Http(status) => write!(f, "HTTP status {status}"),
            Self::Flood => f.write_str("it sent too much unsolicited data"),
            Self::Loop => f.write_str("queries to it come back to this server"),
        }
    }
}

/// Judges a message from the upstream's address against what was sent there.
#[must_use]
pub fn check<'m>(sent: &SentQuery<'_>, message: &'m [u8]) -> Verdict<'m> {
    match is_ours(sent, message) {
        Err(mismatch) => return Verdict::Ignore(mismatch),
        Ok(Some(doubt)) if !sent.stream && !has_our_cookie(sent, message) => {
            return Verdict::Doubt(doubt);
        }
        Ok(_) => {}
    }
    let flags = u16::from_be_bytes([message[2], message[3]]); // is_ours has seen a header
    if flags & flag::TC != 0 {
        // A truncated message may be cut anywhere, so that its records are not read.
        return if sent.stream {
            Verdict::Failed(Failure::Truncated)
        } else {
            Verdict::Repeat(Repeat::OverTcp)
        };
    }
    match Response::parse(message) {
        Ok(response) => judge(sent, response),
        Err(_) if sent.expects_cookie && !sent.stream => Verdict::Doubt(Doubt::NoCookie),
        Err(_) => Verdict::Failed(Failure::Malformed),
    }
}

/// Whether a message that answers what was sent has the name as it was written there.
#[must_use]
pub fn keeps_case(sent: &SentQuery<'_>, message: &[u8]) -> bool {
    message[HEADER_BYTES.min(message.len())..].starts_with(sent.question)
}

/// Whether the sender of a message that answers what was sent has seen the query, which an off-path
/// forger has not: it came over a stream, or with the query's cookie.
#[must_use]
pub fn is_confirmed(sent: &SentQuery<'_>, response: &Response<'_>) -> bool {
    sent.stream || holds_our_cookie(sent, response)
}

/// Whether the header and the question are those of the query; then, what is doubtful about them.
fn is_ours(sent: &SentQuery<'_>, message: &[u8]) -> Result<Option<Doubt>, Mismatch> {
    let header = message.first_chunk::<HEADER_BYTES>().ok_or(Mismatch::Short)?;
    let [id, flags, questions] =
        [0, 2, 4].map(|at| u16::from_be_bytes([header[at], header[at + 1]]));
    if flags & flag::QR == 0 {
        return Err(Mismatch::NotAResponse);
    }
    if id != sent.id {
        return Err(Mismatch::Id);
    }
    if Opcode(((flags & flag::OPCODE) >> 11) as u8) != Opcode::QUERY {
        return Err(Mismatch::Opcode);
    }
    let rcode = Rcode(flags & 0x000f);
    if questions == 0 && may_lack_question(rcode) {
        return Ok(Some(Doubt::NoQuestion(rcode)));
    }
    let len = sent.question.len();
    let question = message.get(HEADER_BYTES..HEADER_BYTES + len).ok_or(Mismatch::Question)?;
    let name = len.saturating_sub(4);
    let same = question[name..] == sent.question[name..]
        && question[..name].eq_ignore_ascii_case(&sent.question[..name]);
    if questions != 1 || !same {
        return Err(Mismatch::Question);
    }
    let is_other_case = sent.mixed_case && question != sent.question;
    Ok(is_other_case.then_some(Doubt::Case))
}

/// Whether the query's cookie is in a message, so that its sender has seen the query.
fn has_our_cookie(sent: &SentQuery<'_>, message: &[u8]) -> bool {
    Response::parse(message).is_ok_and(|response| holds_our_cookie(sent, &response))
}

/// Whether the query's cookie is in a message that was read already.
fn holds_our_cookie(sent: &SentQuery<'_>, response: &Response<'_>) -> bool {
    let client = cookie(response).map(|(client, _)| *client);
    client.is_some() && client == sent.cookie
}

/// Whether some servers send this code with a bare header, as they cannot or will not read more.
fn may_lack_question(rcode: Rcode) -> bool {
    matches!(rcode, Rcode::FORMERR | Rcode::NOTIMP | Rcode::SERVFAIL | Rcode::REFUSED)
}

/// Judges a whole message that is for the query.
fn judge<'m>(sent: &SentQuery<'_>, response: Response<'m>) -> Verdict<'m> {
    match (sent.cookie, cookie(&response)) {
        (Some(ours), Some((client, _))) if ours != *client => {
            return Verdict::Ignore(Mismatch::Cookie);
        }
        (Some(_), None) if sent.expects_cookie && !sent.stream => {
            return Verdict::Doubt(Doubt::NoCookie);
        }
        _ => {}
    }
    if is_for_other_network(sent, &response) {
        return Verdict::Failed(Failure::OtherNetwork);
    }
    match response.rcode() {
        Rcode::NOERROR if is_referral(&response) => Verdict::Failed(Failure::Lame),
        // rfc6672#2.2: YXDOMAIN answers with the DNAME that makes the name too long.
        Rcode::NOERROR | Rcode::NXDOMAIN | Rcode::YXDOMAIN => Verdict::Accept(response),
        Rcode::BADCOOKIE => match server_cookie(&response) {
            Some(cookie) if sent.cookie.is_some() => Verdict::Repeat(Repeat::WithCookie(cookie)),
            _ => Verdict::Failed(Failure::Rcode(Rcode::BADCOOKIE)),
        },
        // An upstream that answers with OPT understands it, so that something else is wrong
        // (rfc6891#7).
        Rcode::FORMERR | Rcode::NOTIMP if sent.edns && response.opt.is_none() => {
            Verdict::Repeat(Repeat::WithoutEdns)
        }
        Rcode::BADVERS if sent.edns => Verdict::Repeat(Repeat::WithoutEdns),
        rcode => Verdict::Failed(Failure::Rcode(rcode)),
    }
}

/// Whether a response is for another network than the query tells: all but the scope is repeated in
/// it, if the upstream knows the option (rfc7871#7.3).
fn is_for_other_network(sent: &SentQuery<'_>, response: &Response<'_>) -> bool {
    const SCOPE_AT: usize = 3;
    let repeated = response.opt.and_then(|opt| opt.option(option::CLIENT_SUBNET));
    let (Some(repeated), false) = (repeated, sent.client_subnet.is_empty()) else { return false };
    let is_same = |(place, (ours, theirs))| place == SCOPE_AT || ours == theirs;
    let mut octets = sent.client_subnet.iter().zip(repeated).enumerate();
    repeated.len() != sent.client_subnet.len() || !octets.all(is_same)
}

/// Returns the server cookie in a response, 8–32 octets, to be sent with the next query
/// (rfc7873#5.3).
#[must_use]
pub fn server_cookie<'m>(response: &Response<'m>) -> Option<&'m [u8]> {
    cookie(response).map(|cookie| cookie.1).filter(|server| (8..=32).contains(&server.len()))
}

/// Returns the COOKIE option in a response: the client's part and the server's, which may be empty.
fn cookie<'m>(response: &Response<'m>) -> Option<(&'m [u8; 8], &'m [u8])> {
    response.opt.and_then(|opt| opt.cookie()).and_then(<[u8]>::split_first_chunk)
}

/// Whether the response is nothing but a referral to other servers (rfc2308#2.1).
fn is_referral(response: &Response<'_>) -> bool {
    let (mut soa, mut ns) = (false, false);
    for record in response.records().filter(|record| record.class == Class::IN) {
        match (record.section, record.rtype) {
            (Section::Answer, _) => return false,
            (Section::Authority, Type::SOA) => soa = true,
            (Section::Authority, Type::NS) => ns = true,
            _ => {}
        }
    }
    ns && !soa
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `WWW.example. A`, the case mixed.
    const QUESTION: &[u8] = b"\x03WWw\x07exAmple\0\0\x01\0\x01";
    const SENT: SentQuery<'_> = SentQuery {
        id: 0x1234,
        question: QUESTION,
        mixed_case: true,
        edns: true,
        cookie: Some(*b"client01"),
        expects_cookie: false,
        client_subnet: &[],
        stream: false,
    };

    /// Returns a message with these flags and numbers of questions and other records.
    fn message(flags: u16, counts: [u16; 4], tail: &[&[u8]]) -> Vec<u8> {
        let words = [0x1234, flags].into_iter().chain(counts);
        let mut octets: Vec<u8> = words.flat_map(u16::to_be_bytes).collect();
        octets.extend(tail.concat());
        octets
    }

    /// Returns an OPT record with the high bits of a response code and a COOKIE option.
    fn opt(rcode_high: u8, cookie: &[u8]) -> Vec<u8> {
        let len = cookie.len() as u8;
        let head = [0, 0, 41, 4, 208, rcode_high, 0, 0, 0, 0, len + 4, 0, 10, 0, len];
        [&head[..], cookie].concat()
    }

    /// Returns the verdict over a message, as text without what is in an accepted response.
    fn verdict(sent: &SentQuery<'_>, octets: &[u8]) -> String {
        match check(sent, octets) {
            Verdict::Accept(_) => "Accept".to_owned(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn only_an_answer_to_this_very_query_is_looked_at() {
        let good = message(0x8180, [1, 0, 0, 0], &[QUESTION]);
        assert_eq!(verdict(&SENT, &good), "Accept");
        let with = |at: usize, octet: u8| {
            let mut octets = good.clone();
            octets[at] = octet;
            octets
        };
        for (octets, why) in [
            (good[..11].to_vec(), "Short"),
            (with(2, 0x01), "NotAResponse"),
            (with(0, 0), "Id"),
            (with(2, 0xa1), "Opcode"),
            (with(14, b'x'), "Question"),
            (with(good.len() - 3, 28), "Question"),
            (with(good.len() - 1, 3), "Question"),
            (with(5, 0), "Question"),
            (with(5, 2), "Question"),
            (good[..20].to_vec(), "Question"),
        ] {
            assert_eq!(verdict(&SENT, &octets), format!("Ignore({why})"));
        }
    }

    #[test]
    fn the_case_of_a_name_counts_where_it_was_mixed() {
        for other in [QUESTION.to_ascii_lowercase(), b"\x03WWW\x07exAmple\0\0\x01\0\x01".to_vec()] {
            let octets = message(0x8180, [1, 0, 0, 0], &[&other]);
            assert_eq!(verdict(&SENT, &octets), "Doubt(Case)");
            assert!(
                !keeps_case(&SENT, &octets) && keeps_case(&SENT, &[&[0; 12], QUESTION].concat())
            );
            let without = SentQuery { mixed_case: false, ..SENT };
            for sent in [without, SentQuery { stream: true, ..SENT }] {
                assert_eq!(verdict(&sent, &octets), "Accept");
            }
            let proof = message(0x8180, [1, 0, 0, 1], &[&other, &opt(0, b"client01")]);
            assert_eq!(verdict(&SENT, &proof), "Accept", "who has our cookie has seen the query");
            let forged = message(0x8180, [1, 0, 0, 1], &[&other, &opt(0, b"client02")]);
            assert_eq!(verdict(&SENT, &forged), "Doubt(Case)");
        }
    }

    #[test]
    fn an_answer_is_confirmed_by_a_stream_or_by_our_cookie() {
        let plain = message(0x8180, [1, 0, 0, 0], &[QUESTION]);
        let ours = message(0x8180, [1, 0, 0, 1], &[QUESTION, &opt(0, b"client01")]);
        let other = message(0x8180, [1, 0, 0, 1], &[QUESTION, &opt(0, b"client02")]);
        let [plain, ours, other] =
            [&plain, &ours, &other].map(|octets| Response::parse(octets).expect("a response"));
        let confirmed = [&plain, &ours, &other].map(|response| is_confirmed(&SENT, response));
        assert_eq!(confirmed, [false, true, false]);
        let no_cookie = SentQuery { cookie: None, ..SENT };
        assert!(!is_confirmed(&no_cookie, &plain) && !is_confirmed(&no_cookie, &ours));
        assert!(is_confirmed(&SentQuery { stream: true, ..no_cookie }, &plain));
    }

    #[test]
    fn a_failure_without_the_question_is_believed_over_a_stream_or_with_our_cookie() {
        for (code, said) in [(1, "FORMERR"), (2, "SERVFAIL"), (4, "NOTIMP"), (5, "REFUSED")] {
            let bare = message(0x8180 | code, [0; 4], &[]);
            assert_eq!(verdict(&SENT, &bare), format!("Doubt(NoQuestion({said}))"));
            let no_edns = SentQuery { edns: false, cookie: None, ..SENT };
            assert_eq!(verdict(&no_edns, &bare), format!("Doubt(NoQuestion({said}))"));
            let over_stream = verdict(&SentQuery { stream: true, ..SENT }, &bare);
            let proof = message(0x8180 | code, [0, 0, 0, 1], &[&opt(0, b"client01")]);
            assert_eq!(verdict(&SENT, &proof), format!("Failed(Rcode({said}))"));
            match code {
                1 | 4 => assert_eq!(over_stream, "Repeat(WithoutEdns)"),
                _ => assert_eq!(over_stream, format!("Failed(Rcode({said}))")),
            }
        }
        assert_eq!(verdict(&SENT, &message(0x8180, [0; 4], &[])), "Ignore(Question)");
    }

    #[test]
    fn an_upstream_that_sent_cookies_before_is_doubted_without_one() {
        let expecting = SentQuery { expects_cookie: true, ..SENT };
        for (octets, said) in [
            (message(0x8180, [1, 0, 0, 0], &[QUESTION]), "Doubt(NoCookie)"),
            (message(0x8182, [1, 0, 0, 0], &[QUESTION]), "Doubt(NoCookie)"),
            (message(0x8181, [1, 0, 0, 0], &[QUESTION]), "Doubt(NoCookie)"),
            (message(0x8180, [1, 9, 0, 0], &[QUESTION, b"cut"]), "Doubt(NoCookie)"),
            (message(0x8180, [1, 0, 0, 1], &[QUESTION, &opt(0, b"client01")]), "Accept"),
            (message(0x8180, [1, 0, 0, 1], &[QUESTION, &opt(0, b"client02")]), "Ignore(Cookie)"),
        ] {
            assert_eq!(verdict(&expecting, &octets), said);
        }
        let without = message(0x8180, [1, 0, 0, 0], &[QUESTION]);
        assert_eq!(verdict(&SentQuery { stream: true, ..expecting }, &without), "Accept");
    }

    #[test]
    fn each_code_has_its_consequence() {
        let plain = |rcode: u16| message(0x8180 | rcode, [1, 0, 0, 0], &[QUESTION]);
        let with_opt = |rcode: u16, high: u8, cookie: &[u8]| {
            message(0x8180 | rcode, [1, 0, 0, 1], &[QUESTION, &opt(high, cookie)])
        };
        let no_edns = SentQuery { edns: false, cookie: None, ..SENT };
        for (sent, octets, said) in [
            (SENT, plain(1), "Repeat(WithoutEdns)"),
            (no_edns, plain(1), "Failed(Rcode(FORMERR))"),
            (SENT, plain(4), "Repeat(WithoutEdns)"),
            (SENT, with_opt(1, 0, b"client01"), "Failed(Rcode(FORMERR))"),
            (SENT, with_opt(0, 1, b"client01"), "Repeat(WithoutEdns)"),
            (SENT, plain(2), "Failed(Rcode(SERVFAIL))"),
            (SENT, plain(5), "Failed(Rcode(REFUSED))"),
            (SENT, with_opt(3, 0, b"client01"), "Accept"),
            (SENT, with_opt(0, 0, b"client02"), "Ignore(Cookie)"),
            (no_edns, with_opt(0, 0, b"client02"), "Accept"),
            (SENT, with_opt(7, 1, b"client01"), "Failed(Rcode(BADCOOKIE))"),
        ] {
            assert_eq!(verdict(&sent, &octets), said);
        }
        let octets = with_opt(7, 1, b"client01server-8");
        let Verdict::Repeat(Repeat::WithCookie(cookie)) = check(&SENT, &octets) else {
            panic!("{}", verdict(&SENT, &octets))
        };
        assert_eq!(cookie, b"server-8");
    }

    #[test]
    fn an_answer_for_another_network_is_a_failure() {
        let opt = |subnet: &[u8]| {
            let len = subnet.len() as u8;
            let head = [0, 0, 41, 4, 208, 0, 0, 0, 0, 0, len + 4, 0, 8, 0, len];
            message(0x8180, [1, 0, 0, 1], &[QUESTION, &head, subnet])
        };
        let sent = SentQuery { client_subnet: &[0, 1, 24, 0, 192, 0, 2], ..SENT };
        let plain = message(0x8180, [1, 0, 0, 0], &[QUESTION]);
        for (sent, octets, said) in [
            (sent, opt(&[0, 1, 24, 20, 192, 0, 2]), "Accept"),
            (sent, plain, "Accept"),
            (sent, opt(&[0, 1, 24, 20, 192, 0, 3]), "Failed(OtherNetwork)"),
            (sent, opt(&[0, 1, 16, 16, 192, 0]), "Failed(OtherNetwork)"),
            (SENT, opt(&[0, 1, 16, 16, 192, 0]), "Accept"),
        ] {
            assert_eq!(verdict(&sent, &octets), said);
        }
    }

    #[test]
    fn records_of_a_truncated_message_are_ignored() {
        let octets = message(0x8380, [1, 9, 0, 0], &[QUESTION, b"cut"]);
        assert_eq!(verdict(&SENT, &octets), "Repeat(OverTcp)");
        assert_eq!(verdict(&SentQuery { stream: true, ..SENT }, &octets), "Failed(Truncated)");
        let octets = message(0x8180, [1, 9, 0, 0], &[QUESTION, b"cut"]);
        assert_eq!(verdict(&SENT, &octets), "Failed(Malformed)");
    }

    #[test]
    fn a_referral_is_lame_and_an_empty_answer_is_not() {
        let ns = b"\xc0\x0c\0\x02\0\x01\0\0\0\x3c\0\x02\xc0\x0c";
        let referral = message(0x8180, [1, 0, 1, 0], &[QUESTION, ns]);
        assert_eq!(verdict(&SENT, &referral), "Failed(Lame)");
        let empty = message(0x8180, [1, 0, 0, 0], &[QUESTION]);
        assert_eq!(verdict(&SENT, &empty), "Accept");
    }
}
