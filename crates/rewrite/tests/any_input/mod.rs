//! What must hold for any octets that come as a query, as a reply, and as the text of a template.

use std::sync::{Arc, LazyLock};
use zonda_rewrite::template::{Outcome, TemplateQuestion};
use zonda_rewrite::{
    FallThrough, MatchKind, NameMatch, Replacement, Revert, RewriteRule, RewriteRules, Scope,
    Template, Templates,
};
use zonda_wire::message::Message;
use zonda_wire::query::HEADER_BYTES;
use zonda_wire::{Query, Rcode, name};

/// Octets of the largest reply that is made.
const LIMIT: usize = 1232;

/// Rules of each kind, all of which go on.
static RULES: LazyLock<Arc<RewriteRules>> = LazyLock::new(|| {
    let kinds = [
        (MatchKind::Substring, "b", "longer-than-before"),
        (MatchKind::Suffix, "a", "b.a"),
        (MatchKind::Prefix, "a.", "c."),
        (MatchKind::Regex, "^(.)(.*)\\.$", "{2}{1}{2}."),
        (MatchKind::Exact, ".", "root."),
    ];
    let rule = |(kind, text, to): (MatchKind, &str, &str)| RewriteRule {
        name: Some(NameMatch { kind, text: text.to_owned() }),
        to: Some(to.to_owned()),
        maps_back: true,
        owners: vec![Replacement { pattern: "(.)a".to_owned(), to: "{0}{1}".to_owned() }],
        targets: vec![Replacement { pattern: "^(.*)\\.$".to_owned(), to: "{1}.x".to_owned() }],
        ttl: Some((5, 10)),
        goes_on: true,
        ..RewriteRule::new()
    };
    Arc::new(RewriteRules::new(kinds.map(rule)).expect("the rules are right"))
});

/// Checks all uses of the octets.
pub fn check(octets: &[u8]) {
    check_messages(octets);
    if let Ok(text) = std::str::from_utf8(octets) {
        check_template(text);
    }
}

/// Rewrites the octets as a query, and turns them back as a reply.
fn check_messages(octets: &[u8]) {
    let Ok(query) = Query::parse(octets) else { return };
    if query.question_end() == HEADER_BYTES {
        return;
    }
    let asked = &octets[HEADER_BYTES..query.question_end()];
    let lower = octets[HEADER_BYTES..usize::from(query.name_end)].to_ascii_lowercase();
    let kind = (query.qtype, query.qclass);
    let Some(rewritten) = RULES.apply(&lower, asked, kind, &mut Vec::new()) else { return };
    assert_eq!(rewritten.change.question(), asked);
    if let Some(question) = &rewritten.question {
        assert_eq!(name::wire_len(question), Some(question.len() - 4), "it is a name");
    }
    let mut reply = octets.to_vec();
    reply[2] |= 0x80;
    let len = reply.len();
    reply.resize(len.max(LIMIT), 0);
    let made = rewritten.change.revert(&mut reply, len, LIMIT, &mut Revert::default());
    assert!(made <= LIMIT, "{made} octets");
    let message = Message::parse(&reply[..made]).expect("it is a message");
    assert_eq!(message.questions[0].name.as_wire(), &asked[..asked.len() - 4]);
}

/// Compiles the text as a template, and has it answer.
fn check_template(text: &str) {
    let template = Template {
        scopes: vec![Scope::all()],
        qtype: None,
        patterns: vec!["(?P<a>.)(.*)".to_owned()],
        answer: vec![text.to_owned()],
        authority: Vec::new(),
        additional: Vec::new(),
        rcode: Rcode::NOERROR,
        error: None,
        fall_through: FallThrough::No,
        listeners: Vec::new(),
    };
    let Ok(templates) = Templates::new([template]) else { return };
    let (name, qtype) = (&b"\x02a.\x01b\0"[..], zonda_wire::Type::A);
    let client = ([192, 0, 2, 1], 5353).into();
    let question = TemplateQuestion { name, qtype, client, protocol: "udp" };
    let Some(Outcome::Reply { records, .. }) = templates.answer(question, &mut Vec::new()) else {
        return;
    };
    for record in records {
        assert_eq!(name::wire_len(&record.owner), Some(record.owner.len()));
    }
}
