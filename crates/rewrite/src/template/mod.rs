//! Records that are made from the question.
//!
//! A template has the fields and conditions of Go's text templates that CoreDNS has, without loops
//! and variables. Its text becomes pieces when the configuration is loaded.

mod expression;
mod lexer;
mod pieces;

use crate::error::RuleError;
use crate::name_match::compile;
use crate::regex::bytes::Regex;
use crate::rule::RULES_MAX;
use crate::scope::Scope;
use crate::text as name_text;
use expression::Facts;
use pieces::Pieces;
use std::fmt;
use std::net::SocketAddr;
use zonda_wire::{Class, Name, Rcode, Section, Type, name, rdata};

/// The TTL of a record without one.
const TTL_DEFAULT: u32 = 3600;

/// A template: questions that it is for, and the reply to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// The zones whose names it is for; at least one.
    pub scopes: Vec<Scope>,
    /// The type asked for; none: all types.
    pub qtype: Option<Type>,
    /// Regular expressions, of which the name matches one; none: all names.
    pub patterns: Vec<String>,
    /// Texts of records of the answer.
    pub answer: Vec<String>,
    /// Texts of records of the authority section.
    pub authority: Vec<String>,
    /// Texts of additional records.
    pub additional: Vec<String>,
    /// The response code.
    pub rcode: Rcode,
    /// The extended error, and its text.
    pub error: Option<(u16, String)>,
    /// What happens to names of the zones that match no pattern.
    pub fall_through: FallThrough,
    /// The listeners whose queries the template is for; none: all of them.
    pub listeners: Vec<SocketAddr>,
}

/// What happens to names of a template's zones that match none of its patterns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FallThrough {
    /// All of them are answered SERVFAIL.
    #[default]
    No,
    /// All of them are answered as if there were no template.
    All,
    /// Names of some zones are answered as if there were no template, all else SERVFAIL.
    Zones(Vec<Name>),
}

/// A question, and the client that asks it.
#[derive(Clone, Copy, Debug)]
pub struct TemplateQuestion<'a> {
    /// The name in wire form and lower case.
    pub name: &'a [u8],
    /// The type asked for.
    pub qtype: Type,
    /// The client that asks.
    pub client: SocketAddr,
    /// The word for the protocol that carries the query: `udp` or `tcp`.
    pub protocol: &'a str,
}

/// A record that was made from a template.
#[derive(Debug)]
pub struct MadeRecord {
    /// Section of the record.
    pub section: Section,
    /// The owner in wire form.
    pub owner: Vec<u8>,
    /// The record's type.
    pub rtype: Type,
    /// Time to live, seconds.
    pub ttl: u32,
    /// Record data in uncompressed wire form.
    pub rdata: Vec<u8>,
}

/// The outcome of the templates for a question that one of them is for.
#[derive(Debug)]
pub enum Outcome<'t> {
    /// The reply of a template.
    Reply {
        /// The response code.
        rcode: Rcode,
        /// The extended error, and its text.
        error: Option<(u16, &'t str)>,
        /// The records, section after section.
        records: Vec<MadeRecord>,
    },
    /// There is no reply: no pattern matches, or what was made is no record.
    Failure,
}

/// Templates that were compiled, in the order in which they are tried.
pub struct Templates(Vec<CompiledTemplate>);

/// A template that was compiled.
struct CompiledTemplate {
    /// The template as it was given.
    template: Template,
    /// Patterns, of which the name matches one.
    patterns: Vec<Regex>,
    /// The texts of records, each with its section.
    records: Vec<(Section, Pieces)>,
}

impl CompiledTemplate {
    /// Compiles a template.
    fn new(template: Template) -> Result<Self, RuleError> {
        let patterns: Result<Vec<Regex>, RuleError> =
            template.patterns.iter().map(|it| compile(it)).collect();
        let patterns = match patterns? {
            patterns if patterns.is_empty() => vec![compile(".*")?],
            patterns => patterns,
        };
        let sections = [
            (Section::Answer, &template.answer),
            (Section::Authority, &template.authority),
            (Section::Additional, &template.additional),
        ];
        let mut records = Vec::new();
        for (section, texts) in sections {
            for text in texts {
                let pieces = Pieces::parse(text)?;
                pieces.check(&patterns)?;
                if pieces.is_constant() && record(section, text).is_none() {
                    return Err(RuleError::Record(text.as_str().into()));
                }
                records.push((section, pieces));
            }
        }
        if template.rcode == Rcode::SERVFAIL && !records.is_empty() {
            return Err(RuleError::RecordsOfFailure);
        }
        Ok(Self { template, patterns, records })
    }

    /// Returns the zone of the template that holds a name: the longest of several.
    fn zone(&self, name: &[u8]) -> Option<&Name> {
        let scopes = self.template.scopes.iter().filter(|scope| scope.holds(name));
        scopes.map(|scope| &scope.zone).max_by_key(|zone| zone.as_wire().len())
    }

    /// Whether the template is for a type.
    fn is_for(&self, qtype: Type) -> bool {
        qtype == Type::ANY || self.template.qtype.is_none_or(|it| it == qtype)
    }

    /// Whether a name that matches no pattern goes on.
    fn falls_through(&self, name: &[u8]) -> bool {
        match &self.template.fall_through {
            FallThrough::No => false,
            FallThrough::All => true,
            FallThrough::Zones(zones) => {
                zones.iter().any(|zone| name::is_at_or_below(name, zone.as_wire()))
            }
        }
    }

    /// Makes the reply to a question for a name that a pattern matches.
    fn reply(&self, facts: &Facts<'_, '_>) -> Outcome<'_> {
        let mut records = Vec::with_capacity(self.records.len());
        let mut text = Vec::new();
        for (section, pieces) in &self.records {
            text.clear();
            let made = pieces.write(facts, &mut text);
            let made = made.and_then(|()| std::str::from_utf8(&text).ok());
            if made.is_some_and(|text| text.trim().is_empty()) {
                continue; // no condition of it holds
            }
            match made.and_then(|text| record(*section, text)) {
                Some(made) => records.push(made),
                None => return Outcome::Failure,
            }
        }
        let error = self.template.error.as_ref().map(|(code, text)| (*code, text.as_str()));
        match self.template.rcode {
            Rcode::SERVFAIL if error.is_none() => Outcome::Failure,
            rcode => Outcome::Reply { rcode, error, records },
        }
    }
}

impl Templates {
    /// Compiles templates.
    ///
    /// # Errors
    /// The place of the first one that is wrong, and what is wrong.
    pub fn new(templates: impl IntoIterator<Item = Template>) -> Result<Self, (usize, RuleError)> {
        let mut compiled = Vec::new();
        for (place, template) in templates.into_iter().enumerate() {
            if place == RULES_MAX {
                return Err((place, RuleError::Many(RULES_MAX)));
            }
            compiled.push(CompiledTemplate::new(template).map_err(|error| (place, error))?);
        }
        Ok(Self(compiled))
    }

    /// The lists of listeners of the templates that are for the queries of some listeners only.
    pub fn listeners(&self) -> impl Iterator<Item = &[SocketAddr]> {
        self.0.iter().map(|it| &*it.template.listeners).filter(|listeners| !listeners.is_empty())
    }

    /// Returns the templates that are for the queries of all listeners, or of such as `has` says;
    /// none if there are none.
    #[must_use]
    pub fn of_listeners(&self, has: impl Fn(&[SocketAddr]) -> bool) -> Option<Self> {
        let templates = self.0.iter().map(|it| &it.template);
        let templates: Vec<_> =
            templates.filter(|it| it.listeners.is_empty() || has(&it.listeners)).cloned().collect();
        // Each was compiled before.
        if templates.is_empty() { None } else { Self::new(templates).ok() }
    }

    /// Returns what the templates make of a question of class IN; nothing if none is for it.
    /// `text` is memory for the text of the name.
    pub fn answer(
        &self,
        question: TemplateQuestion<'_>,
        text: &mut Vec<u8>,
    ) -> Option<Outcome<'_>> {
        let mut is_written = false;
        for template in self.0.iter().filter(|template| template.is_for(question.qtype)) {
            let Some(zone) = template.zone(question.name) else { continue };
            if !is_written {
                name_text::write(question.name, text);
                is_written = true;
            }
            for pattern in &template.patterns {
                let Some(groups) = pattern.captures(text) else { continue };
                let qtype = match question.qtype {
                    Type::ANY => template.template.qtype.unwrap_or(Type::ANY),
                    qtype => qtype,
                };
                let TemplateQuestion { client, protocol, .. } = question;
                let facts = Facts { name: text, zone, qtype, client, protocol, groups: &groups };
                return Some(template.reply(&facts));
            }
            if !template.falls_through(question.name) {
                return Some(Outcome::Failure);
            }
        }
        None
    }
}

impl PartialEq for Templates {
    fn eq(&self, other: &Self) -> bool {
        self.0.iter().map(|it| &it.template).eq(other.0.iter().map(|it| &it.template))
    }
}

impl Eq for Templates {}

impl fmt::Debug for Templates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} templates", self.0.len())
    }
}

/// Reads a record of class IN: owner, TTL and class in any order, type and data.
fn record(section: Section, text: &str) -> Option<MadeRecord> {
    let tokens = rdata::tokens(text.as_bytes())?;
    let [first, rest @ ..] = &tokens[..] else { return None };
    let mut owner = Vec::new();
    if first.quoted || !name_text::read(first.text, &mut owner) {
        return None;
    }
    let (mut ttl, mut rest) = (None, rest);
    loop {
        let [word, behind @ ..] = rest else { return None };
        rest = behind;
        if word.text.eq_ignore_ascii_case(Class::IN.mnemonic()?.as_bytes()) {
            continue;
        }
        let number = word.text.first().is_some_and(u8::is_ascii_digit);
        match rdata::number::ttl(word.text).filter(|_| number && ttl.is_none()) {
            Some(number) => ttl = Some(number),
            None => {
                let rtype = Type::from_text(&word.text.to_ascii_uppercase())?;
                let mut data = Vec::new();
                rdata::parse(rtype, rest, &[0], &mut data).ok()?;
                let ttl = ttl.unwrap_or(TTL_DEFAULT);
                return Some(MadeRecord { section, owner, rtype, ttl, rdata: data });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a template for names of a zone.
    fn template(zone: &str, qtype: Type, pattern: &str, answer: &str) -> Template {
        Template {
            scopes: vec![Scope { zone: zone.parse().unwrap(), except: Vec::new() }],
            qtype: Some(qtype),
            patterns: Some(pattern.to_owned()).into_iter().filter(|it| !it.is_empty()).collect(),
            answer: vec![answer.to_owned()],
            authority: Vec::new(),
            additional: Vec::new(),
            rcode: Rcode::NOERROR,
            error: None,
            fall_through: FallThrough::No,
            listeners: Vec::new(),
        }
    }

    /// Returns the answer's records in words, or what there is instead.
    fn answered(templates: &Templates, name: &str, qtype: Type) -> String {
        let wire: Name = name.parse().unwrap();
        let (client, protocol) = ("192.0.2.9:5353".parse().unwrap(), "udp");
        let question = TemplateQuestion { name: wire.as_wire(), qtype, client, protocol };
        match templates.answer(question, &mut Vec::new()) {
            None => "none".to_owned(),
            Some(Outcome::Failure) => "failure".to_owned(),
            Some(Outcome::Reply { records, .. }) => {
                let text = |it: &MadeRecord| {
                    let data = rdata::Presentation { rtype: it.rtype, rdata: &it.rdata };
                    let owner = Name::from_wire(&it.owner).unwrap();
                    format!("{owner} {} {} {data}", it.ttl, it.rtype)
                };
                records.iter().map(text).collect::<Vec<_>>().join("; ")
            }
        }
    }

    #[test]
    fn records_are_made_of_the_parts_of_the_name() {
        let ip = r"^ip-(?P<a>[0-9]+)-(?P<b>[0-9]+)\.example\.$";
        let text = "{{ .Name }} 60 IN A 10.0.{{ .Group.a }}.{{- index .Match 2 }}";
        let txt = "{{.Name}} IN TXT \"{{ .Type }} {{.Class}} {{ .Zone }}\" {{ .Remote }}";
        let templates = [
            template("example", Type::A, ip, text),
            template("text.test", Type::TXT, "", txt),
            template("whole.test", Type::TXT, "", "{{ .Name }} 5 IN TXT {{ index .Match 0 }}"),
        ];
        let templates = Templates::new(templates).unwrap();
        for (name, qtype, expected) in [
            ("ip-1-2.example", Type::A, "ip-1-2.example. 60 A 10.0.1.2"),
            ("ip-1-200.example", Type::ANY, "ip-1-200.example. 60 A 10.0.1.200"),
            ("ip-1-400.example", Type::A, "failure"),
            ("ip-x.example", Type::A, "failure"),
            ("a.whole.test", Type::TXT, "a.whole.test. 5 TXT \"a.whole.test.\""),
            ("ip-1-2.example", Type::AAAA, "none"),
            ("example.org", Type::A, "none"),
            ("x.text.test", Type::TXT, "x.text.test. 3600 TXT \"TXT IN text.test.\" \"192.0.2.9\""),
        ] {
            assert_eq!(answered(&templates, name, qtype), expected, "{name} {qtype}");
        }
    }

    #[test]
    fn names_without_a_match_fall_through_where_the_template_says_so() {
        let fixed = "a.example. 5 IN A 192.0.2.1";
        let mut falls = template("example", Type::A, "^a", fixed);
        falls.fall_through = FallThrough::Zones(vec!["sub.example".parse().unwrap()]);
        let templates = Templates::new([falls]).unwrap();
        assert_eq!(answered(&templates, "a.sub.example", Type::A), "a.example. 5 A 192.0.2.1");
        assert_eq!(answered(&templates, "b.sub.example", Type::A), "none");
        assert_eq!(answered(&templates, "b.example", Type::A), "failure");
    }

    /// Returns what a template of TXT records answers for a name that its pattern matches.
    fn txt(pattern: &str, text: &str, name: &str) -> String {
        let text = format!("{{{{ .Name }}}} 5 IN TXT \"{text}\"");
        let templates = Templates::new([template("example", Type::TXT, pattern, &text)]).unwrap();
        let answer = answered(&templates, name, Type::TXT);
        answer.trim_start_matches(&format!("{name}. 5 TXT ")).replace('"', "")
    }

    #[test]
    fn conditions_choose_the_text_whose_expression_holds() {
        let pattern = "^(?P<a>[a-z]*)-(?P<n>[0-9]*)";
        for (text, name, expected) in [
            ("{{ if .Group.a }}yes{{ else }}no{{ end }}", "x-.example", "yes"),
            ("{{ if .Group.a }}yes{{ else }}no{{ end }}", "-.example", "no"),
            (
                "{{if eq .Group.a `x` `y`}}1{{else if eq .Group.a `z`}}2{{else}}3{{end}}",
                "y-.example",
                "1",
            ),
            (
                "{{if eq .Group.a `x` `y`}}1{{else if eq .Group.a `z`}}2{{else}}3{{end}}",
                "z-.example",
                "2",
            ),
            (
                "{{if eq .Group.a `x` `y`}}1{{else if eq .Group.a `z`}}2{{else}}3{{end}}",
                "v-.example",
                "3",
            ),
            ("{{ if and .Group.a (not (eq .Type `A`)) }}a{{ end }}.", "x-.example", "a."),
            ("{{ or .Group.a `none` }}", "-.example", "none"),
            (
                "{{ if ne .Group.a `x` }}{{ if .Group.n }}both{{ end }}{{ end }}.",
                "y-1.example",
                "both.",
            ),
            (
                "{{ if lt (parseInt .Group.n 10 8) 7 }}low{{ else }}high{{ end }}",
                "-6.example",
                "low",
            ),
            (
                "{{ if lt (parseInt .Group.n 10 8) 7 }}low{{ else }}high{{ end }}",
                "-7.example",
                "high",
            ),
            ("{{ parseInt .Group.n 16 8 }}", "-10.example", "16"),
            ("{{ parseInt .Group.n 10 8 }}", "-256.example", "failure"),
            ("{{ parseInt .Group.n 10 8 }}", "-.example", "failure"),
            ("{{ if ge .RemotePort 5000 }}{{ .RemotePort }}{{ end }}", "-.example", "5353"),
            ("{{ .Protocol }} {{ .RemoteType }} {{ eq 1 1 }}", "-.example", "udp A true"),
        ] {
            assert_eq!(txt(pattern, text, name), expected, "{text} {name}");
        }
    }

    #[test]
    fn a_text_of_which_no_condition_holds_is_no_record() {
        let text = "{{ if .Group.a }}{{ .Name }} 60 IN A 10.0.0.1{{ end }}";
        let pattern = r"^ip-(?P<a>[0-9]*)\.example\.$";
        let templates = Templates::new([template("example", Type::A, pattern, text)]).unwrap();
        assert_eq!(answered(&templates, "ip-1.example", Type::A), "ip-1.example. 60 A 10.0.0.1");
        assert_eq!(answered(&templates, "ip-.example", Type::A), "");
    }

    #[test]
    fn a_condition_may_ask_for_a_group_that_one_of_the_patterns_has() {
        let text = "{{ .Name }} 60 IN A 10.0.0.{{ if .Group.a }}{{ .Group.a }}{{ else }}9{{ end }}";
        let mut either = template("example", Type::A, r"^ip-(?P<a>[0-9]+)\.", text);
        either.patterns.push(r"^any\.".to_owned());
        let templates = Templates::new([either.clone()]).unwrap();
        assert_eq!(answered(&templates, "ip-1.example", Type::A), "ip-1.example. 60 A 10.0.0.1");
        assert_eq!(answered(&templates, "any.example", Type::A), "any.example. 60 A 10.0.0.9");
        either.answer = vec!["{{ .Name }} 60 IN A 10.0.0.{{ .Group.a }}".to_owned()];
        assert!(Templates::new([either]).is_err());
    }

    #[test]
    fn the_port_of_the_client_can_stand_in_a_service_record() {
        let text = "_{{ .Protocol }}{{ if ne .Name \".\" }}.{{ end }}{{ .Name }} 0 IN SRV 0 0 \
            {{ .RemotePort }} .";
        let templates = Templates::new([template(".", Type::SRV, "", text)]).unwrap();
        for (name, expected) in
            [("a.example", "_udp.a.example. 0 SRV 0 0 5353 ."), (".", "_udp. 0 SRV 0 0 5353 .")]
        {
            assert_eq!(answered(&templates, name, Type::SRV), expected);
        }
    }

    #[test]
    fn mistakes_are_found_before_any_question_comes() {
        let deep = format!("{}{}", "{{ if .Name }}".repeat(33), "{{ end }}".repeat(33));
        let parentheses = format!("{{{{ not {}.Name{} }}}}", "(".repeat(40), ")".repeat(40));
        let inner = parentheses.trim_matches(['{', '}', ' ']);
        for (pattern, text, error) in [
            ("", "{{ .Name }} IN A {{", RuleError::OpenAction),
            ("", "{{ .Nome }} IN A 192.0.2.1", RuleError::Action(".Nome".into())),
            ("(?P<a>.)", "{{ .Group.b }} IN A 192.0.2.1", RuleError::NamedGroup("b".into())),
            ("(.)", "{{ index .Match 2 }} IN A 192.0.2.1", RuleError::Group(2)),
            ("", "example. IN A x", RuleError::Record("example. IN A x".into())),
            ("", "{{ if .Name }}x", RuleError::OpenCondition),
            ("", "{{ if .Name }}x{{ else }}y", RuleError::OpenCondition),
            ("", "{{ end }}", RuleError::StrayAction("end")),
            ("", "{{ if .Name }}{{ else }}{{ else }}{{ end }}", RuleError::StrayAction("else")),
            ("", &deep, RuleError::DeepConditions(32)),
            ("", &parentheses, RuleError::Action(inner.into())),
            ("", "{{ if lt .Name 3 }}{{ end }}", RuleError::Kinds("lt .Name 3".into())),
            ("", "{{ if eq .Name }}{{ end }}", RuleError::Action("eq .Name".into())),
            ("", "{{ parseInt .Name 99 8 }}", RuleError::Action("parseInt .Name 99 8".into())),
            ("", "{{ range .Match }}{{ end }}", RuleError::Action("range .Match".into())),
            ("", "{{ .Meta \"a\" }}", RuleError::Action(".Meta \"a\"".into())),
            ("", "{{ if .Group.b }}{{ end }}", RuleError::NamedGroup("b".into())),
        ] {
            let found = Templates::new([template("example", Type::A, pattern, text)]);
            assert_eq!(found.unwrap_err(), (0, error), "{text}");
        }
    }
}
