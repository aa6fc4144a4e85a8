//! Rules that change questions and replies, and templates.

use super::zone_names::check_listeners;
use crate::Listener;
use crate::error::{Contradiction, Origin};
use crate::load::Layers;
use crate::reader::{Reader, Session};
use crate::rewrite_keys::{RewriteKeys, TemplateKeys};
use crate::section::Keys;
use std::net::SocketAddr;
use std::sync::Arc;
use zonda_rewrite::{
    FallThrough, MatchKind, NameMatch, RewriteRule, RewriteRules, RuleError, Scope, Template,
    Templates,
};
use zonda_wire::Name;

/// Reads all rules and templates.
pub(super) fn read<'a>(
    layers: &Layers<'a>,
    session: &mut Session<'a>,
    listeners: &[(Listener, Origin)],
) -> (Option<Arc<RewriteRules>>, Option<Arc<Templates>>) {
    let listens_on: Vec<_> = listeners.iter().map(|(listener, _)| listener.address).collect();
    (rules(layers, session, &listens_on), templates(layers, session, &listens_on))
}

/// Reads the elements of `[[rewrite]]`.
fn rules<'a>(
    layers: &Layers<'a>,
    session: &mut Session<'a>,
    listens_on: &[SocketAddr],
) -> Option<Arc<RewriteRules>> {
    let mut rules = Vec::new();
    for (table, origin) in layers.tables(&RewriteKeys::SECTION) {
        let mut reader =
            Reader::new(session, &RewriteKeys::SECTION, Some(table), Vec::new(), origin);
        let Some(keys) = RewriteKeys::read(&mut reader) else { continue };
        check_listeners(&mut reader, &keys.listen, listens_on);
        let Some((rule, key)) = rule(&mut reader, keys) else { continue };
        match RewriteRules::new([rule.clone()]) {
            Ok(_) => rules.push(rule),
            Err((_, error)) => {
                let key = if matches!(error, RuleError::Group(_)) { Some("to") } else { key };
                reader.contradict(key, Contradiction::Rewrite(error));
            }
        }
    }
    if rules.is_empty() {
        return None;
    }
    match RewriteRules::new(rules) {
        Ok(rules) => Some(Arc::new(rules)),
        Err((_, error)) => {
            let (_, origin) = layers.tables(&RewriteKeys::SECTION).next()?;
            Reader::new(session, &RewriteKeys::SECTION, None, Vec::new(), origin)
                .contradict(None, Contradiction::Rewrite(error));
            None
        }
    }
}

/// Makes a rule of what was read, and returns the key that has its pattern.
fn rule(
    reader: &mut Reader<'_, '_>,
    keys: RewriteKeys,
) -> Option<(RewriteRule, Option<&'static str>)> {
    let patterns = [
        ("exact", keys.exact, MatchKind::Exact),
        ("prefix", keys.prefix, MatchKind::Prefix),
        ("suffix", keys.suffix, MatchKind::Suffix),
        ("substring", keys.substring, MatchKind::Substring),
        ("regex", keys.regex, MatchKind::Regex),
    ];
    let mut given = patterns.into_iter().filter_map(|(key, text, kind)| Some((key, text?, kind)));
    let first = given.next();
    if let (Some((key, ..)), Some((other, ..))) = (&first, given.next()) {
        reader.contradict(Some(other), Contradiction::Excludes(key, other));
        return None;
    }
    let key = first.as_ref().map(|(key, ..)| *key);
    let name = first.map(|(_, text, kind)| NameMatch { kind, text: text.0 });
    let rcode = match (keys.rcode, keys.to_rcode) {
        (Some(from), Some(to)) => Some((from.0, to.0)),
        (None, None) => None,
        (Some(_), None) => {
            reader.contradict(Some("rcode"), Contradiction::Needs("rcode", "to-rcode"));
            return None;
        }
        (None, Some(_)) => {
            reader.contradict(Some("to-rcode"), Contradiction::Needs("to-rcode", "rcode"));
            return None;
        }
    };
    let flags = |all: &[crate::rewrite_value::ReplyFlag]| all.iter().fold(0, |all, it| all | it.0);
    let rule = RewriteRule {
        scope: scope(keys.zone, &keys.except),
        name,
        qtype: keys.qtype.map(|it| it.0),
        qclass: keys.qclass.map(|it| it.0),
        maps_back: keys.restore && keys.to.is_some(),
        to: keys.to.map(|it| it.0),
        to_type: keys.to_qtype.map(|it| it.0),
        to_class: keys.to_qclass.map(|it| it.0),
        owners: keys.owners.into_iter().map(|it| it.0).collect(),
        targets: keys.targets.into_iter().map(|it| it.0).collect(),
        ttl: keys.ttl.map(|it| it.0),
        rcode,
        set_flags: flags(&keys.set_flags),
        clear_flags: flags(&keys.clear_flags),
        goes_on: !keys.stop,
        listeners: keys.listen,
    };
    Some((rule, key))
}

/// Reads the elements of `[[template]]`.
fn templates<'a>(
    layers: &Layers<'a>,
    session: &mut Session<'a>,
    listens_on: &[SocketAddr],
) -> Option<Arc<Templates>> {
    let mut templates = Vec::new();
    for (table, origin) in layers.tables(&TemplateKeys::SECTION) {
        let mut reader =
            Reader::new(session, &TemplateKeys::SECTION, Some(table), Vec::new(), origin);
        let Some(keys) = TemplateKeys::read(&mut reader) else { continue };
        check_listeners(&mut reader, &keys.listen, listens_on);
        if !keys.fall_through && !keys.fall_through_zones.is_empty() {
            let needs = Contradiction::Needs("fall-through-zones", "fall-through");
            reader.contradict(Some("fall-through-zones"), needs);
        }
        if keys.extended_error.is_none() && keys.extended_error_text.is_some() {
            let needs = Contradiction::Needs("extended-error-text", "extended-error");
            reader.contradict(Some("extended-error-text"), needs);
        }
        let template = template(keys);
        match Templates::new([template.clone()]) {
            Ok(_) => templates.push(template),
            Err((_, error)) => {
                let key = matches!(error, RuleError::Pattern(_)).then_some("regex");
                reader.contradict(key, Contradiction::Rewrite(error));
            }
        }
    }
    if templates.is_empty() {
        return None;
    }
    match Templates::new(templates) {
        Ok(templates) => Some(Arc::new(templates)),
        Err((_, error)) => {
            let (_, origin) = layers.tables(&TemplateKeys::SECTION).next()?;
            Reader::new(session, &TemplateKeys::SECTION, None, Vec::new(), origin)
                .contradict(None, Contradiction::Rewrite(error));
            None
        }
    }
}

/// Makes a template of what was read.
fn template(keys: TemplateKeys) -> Template {
    let zones = lower(&keys.fall_through_zones);
    Template {
        scopes: keys.zones.into_iter().map(|zone| scope(zone, &keys.except)).collect(),
        qtype: keys.qtype.map(|it| it.0),
        patterns: keys.regex.into_iter().map(|it| it.0).collect(),
        answer: keys.answer.into_iter().map(|it| it.0).collect(),
        authority: keys.authority.into_iter().map(|it| it.0).collect(),
        additional: keys.additional.into_iter().map(|it| it.0).collect(),
        rcode: keys.rcode.0,
        error: keys.extended_error.map(|code| (code, keys.extended_error_text.unwrap_or_default())),
        fall_through: match (keys.fall_through, zones.is_empty()) {
            (false, _) => FallThrough::No,
            (true, true) => FallThrough::All,
            (true, false) => FallThrough::Zones(zones),
        },
        listeners: keys.listen,
    }
}

/// Returns a zone without some names.
fn scope(zone: Name, except: &[Name]) -> Scope {
    Scope { zone: zone.to_lowercase(), except: lower(except) }
}

/// Returns names in lower case.
fn lower(names: &[Name]) -> Vec<Name> {
    names.iter().map(Name::to_lowercase).collect()
}
