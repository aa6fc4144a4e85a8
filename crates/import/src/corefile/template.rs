//! `template CLASS TYPE [ZONES…] { … }`: records that are made from the question.

use super::Importer;
use super::change::{BlockChange, Target};
use super::key;
use super::parser::Line;
use crate::document::Effect::{Differs, Lost, Needless};
use crate::document::Value;
use crate::error::ImportError;
use zonda_rewrite::{FallThrough, Scope, Template, Templates};
use zonda_wire::{Class, Name, Rcode, Type};

impl Importer<'_> {
    /// Reads `template`.
    pub(super) fn template(&mut self, line: &Line) -> Result<(), ImportError> {
        let [class, kind, zones @ ..] = line.arguments() else {
            return Err(line.expected("a class and a type"));
        };
        let qclass: Class = class.text.parse().map_err(|_| class.expected("a class"))?;
        let qtype: Type = kind.text.parse().map_err(|_| kind.expected("a type"))?;
        let zones = match zones {
            [] => self.current().zones(),
            zones => key::all_zones(zones)?,
        };
        let mut template = Template {
            scopes: vec![Scope::all()],
            qtype: Some(qtype).filter(|qtype| *qtype != Type::ANY),
            patterns: Vec::new(),
            answer: Vec::new(),
            authority: Vec::new(),
            additional: Vec::new(),
            rcode: Rcode::NOERROR,
            error: None,
            fall_through: FallThrough::No,
            listeners: Vec::new(),
        };
        for option in &line.block {
            self.template_option(option, &mut template)?;
        }
        if qclass != Class::IN && qclass != Class::ANY {
            self.leave(line, Lost, "templates are for class IN");
        } else if template.rcode.0 > 0xf {
            self.leave(line, Lost, "a template has no response codes above 15");
        } else if let Err((_, error)) = Templates::new([template.clone()]) {
            self.leave(line, Lost, error.to_string());
        } else {
            if is_alias_beside_others(&template) {
                let why = "the target of an alias that a template makes is not looked up beside \
                    authority or additional records";
                self.leave(line, Lost, why);
            }
            if qclass == Class::ANY {
                self.leave(line, Differs, "it answers queries of class IN alone");
            }
            self.add_template(line, template, zones);
        }
        Ok(())
    }

    /// Reads a line of a template.
    fn template_option(&mut self, line: &Line, template: &mut Template) -> Result<(), ImportError> {
        let words = || line.arguments().iter().map(|word| word.text.clone());
        let is_list = matches!(line.name(), "match" | "answer" | "additional" | "authority");
        if is_list && line.arguments().is_empty() {
            return Err(line.expected("a text"));
        }
        match line.name() {
            "match" => template.patterns.extend(words()),
            "answer" => template.answer.extend(words()),
            "additional" => template.additional.extend(words()),
            "authority" => template.authority.extend(words()),
            "rcode" => {
                let code = line.argument("a response code")?;
                let known = Rcode::from_mnemonic(&code.text);
                template.rcode = known.ok_or_else(|| code.expected("a response code"))?;
            }
            "ederror" => {
                let (code, text) = match line.arguments() {
                    [code] => (code, String::new()),
                    [code, text] => (code, text.text.clone()),
                    _ => return Err(line.expected("a number and a text")),
                };
                let number = code.text.parse().map_err(|_| code.expected("a number"))?;
                template.error = Some((number, text));
            }
            "fallthrough" => {
                template.fall_through = match key::all_zones(line.arguments())? {
                    zones if zones.is_empty() => FallThrough::All,
                    zones => FallThrough::Zones(zones),
                };
            }
            "upstream" => self.leave(line, Needless, "it has had no effect for long"),
            _ => self.lose_option(line),
        }
        Ok(())
    }

    /// Adds a template to the block that is being read.
    fn add_template(&mut self, line: &Line, template: Template, zones: Vec<Name>) {
        let mut keys: Vec<(&'static str, Value)> = Vec::new();
        if let Some(qtype) = template.qtype {
            keys.push(("qtype", Value::from(qtype.to_string().as_str())));
        }
        for (key, texts) in [
            ("regex", &template.patterns),
            ("answer", &template.answer),
            ("authority", &template.authority),
            ("additional", &template.additional),
        ] {
            if !texts.is_empty() {
                keys.push((key, Value::from(&texts[..])));
            }
        }
        if template.rcode != Rcode::NOERROR {
            keys.push(("rcode", Value::from(template.rcode.to_string().as_str())));
        }
        if let Some((code, text)) = &template.error {
            keys.push(("extended-error", Value::from(u64::from(*code))));
            if !text.is_empty() {
                keys.push(("extended-error-text", Value::from(text.as_str())));
            }
        }
        if template.fall_through != FallThrough::No {
            keys.push(("fall-through", Value::from(true)));
        }
        if let FallThrough::Zones(zones) = &template.fall_through {
            let zones: Vec<String> = zones.iter().map(key::written).collect();
            keys.push(("fall-through-zones", Value::from(&zones[..])));
        }
        let texts = [&template.answer, &template.authority, &template.additional];
        let has_zone = texts.into_iter().flatten().any(|text| text.contains(".Zone"));
        let (place, what) = (line.place().clone(), line.summary());
        self.current().changes.push(BlockChange {
            section: "template",
            keys,
            zones: Some(zones),
            target: Target::Unchanged,
            is_header: false,
            has_zone,
            place,
            what,
        });
    }
}

/// Whether a template answers for addresses by an alias, whose target CoreDNS looks up, and has
/// records behind the answer, so that it is not looked up here.
fn is_alias_beside_others(template: &Template) -> bool {
    let is_of_addresses = template.qtype.is_none_or(|it| it == Type::A || it == Type::AAAA);
    let is_alias =
        |text: &String| text.split_whitespace().any(|word| word.eq_ignore_ascii_case("CNAME"));
    let has_others = !template.authority.is_empty() || !template.additional.is_empty();
    is_of_addresses && has_others && template.answer.iter().any(is_alias)
}
