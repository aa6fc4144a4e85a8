//! The way of a query to its source: listener, access lists, and the zone of its name.

use super::question::ExplainedQuery;
use super::steps::Steps;
use zonda_config::{Access, Action, Config, Forward, Rule, Source, Zone};
use zonda_engine::zones::Source as ServedSource;
use zonda_engine::{Reason, Snapshot};
use zonda_wire::{Name, Type, name};
use zonda_zone::{LookupName, LookupResult, Zone as ZoneData};

/// Where a query comes in.
pub struct Place {
    /// The place of the listener in the configuration.
    pub listener: u16,
}

impl Place {
    /// Finds the listener of a query, and tells which clients it answers.
    ///
    /// # Errors
    /// When there is no such listener.
    pub fn find(
        config: &Config,
        asked: &ExplainedQuery,
        steps: &mut Steps,
    ) -> Result<Self, String> {
        let mut listeners = config.open_listeners();
        let found = match asked.listener {
            None => listeners.next(),
            Some(address) => listeners.find(|(_, listener)| listener.address == address),
        };
        let Some((number, listener)) = found else {
            let known: Vec<_> =
                config.open_listeners().map(|(_, it)| it.address.to_string()).collect();
            let wanted = asked.listener.map_or("any".to_owned(), |address| address.to_string());
            return Err(format!("no listener {wanted}; there are: {}", known.join(", ")));
        };
        steps.add("listener", format!("{} over {}", listener.address, asked.transport.name()));
        let rule = rule(listener.access.as_deref(), asked);
        steps.add("access", format!("the listener {rule}"));
        if let Some(rate) = config.rate_limit.responses_per_second {
            let text = format!(
                "{rate} responses a second for a network; what {} has had of them is not looked at",
                asked.client
            );
            steps.add("rate-limit", text);
        }
        let listener = u16::try_from(number).unwrap_or(u16::MAX);
        Ok(Self { listener })
    }

    /// The zones of the configuration that are at the listener.
    fn zones<'c>(&self, config: &'c Config) -> impl Iterator<Item = &'c Zone> {
        let listener = config.listeners.get(usize::from(self.listener)).map(|it| it.address);
        config.zones.iter().filter(move |zone| {
            zone.listeners()
                .is_none_or(|all| listener.is_some_and(|listener| all.contains(&listener)))
        })
    }

    /// How the zone of a name is forwarded, if it is.
    pub fn forward_of<'c>(&self, config: &'c Config, name: &Name) -> Option<&'c Forward> {
        let wire = name.to_lowercase();
        let holds = |zone: &&Zone| {
            let apex = zone.name.as_ref().map(Name::to_lowercase);
            apex.is_some_and(|apex| name::is_at_or_below(wire.as_wire(), apex.as_wire()))
        };
        let length = |zone: &&Zone| zone.name.as_ref().map(|name| name.as_wire().len());
        match &self.zones(config).filter(holds).max_by_key(length)?.source {
            Source::Forward(forward) => Some(forward),
            _ => None,
        }
    }

    /// Tells which zone the name lies in, and what answers for it.
    pub fn tell_zones(
        &self,
        snapshot: &Snapshot,
        (config, asked): (&Config, &ExplainedQuery),
        reason: Option<Reason>,
        steps: &mut Steps,
    ) {
        let snapshot = snapshot.at(self.listener);
        let wire = asked.name.to_lowercase();
        let lookup = LookupName::new(wire.as_wire(), snapshot.zones.seed());
        let handlers = snapshot.handlers.as_ref();
        if let Some(pattern) = handlers.and_then(|it| it.pattern_for(&lookup, asked.qtype)) {
            steps.add("code", format!("the handler of {pattern} is called in front of all zones"));
        }
        let Some(found) = snapshot.zones.find_answering(&lookup, asked.qtype) else {
            return steps.add("zone", format!("no zone of this server holds {}", asked.name));
        };
        let entry = snapshot.zones.get(found.index);
        let mut shorter = Vec::new();
        let mut labels = usize::from(found.labels);
        while let Some(less) = labels.checked_sub(1) {
            let Some(next) = snapshot.zones.find(&lookup, less) else { break };
            shorter.push(snapshot.zones.get(next.index).apex.to_string());
            labels = usize::from(next.labels);
        }
        let others = match shorter.len() {
            0 => "no other zone holds the name".to_owned(),
            _ => format!("shorter matches: {}", shorter.join(", ")),
        };
        steps.add("zone", format!("{} is the longest match; {others}", entry.apex));
        let configured = self.zones(config).find(|zone| is_named(zone, &entry.apex));
        let access = configured.and_then(|zone| zone.access.as_deref());
        if access.is_some() {
            steps.add("access", format!("the zone {}", rule(access, asked)));
        }
        let text = match &entry.source {
            ServedSource::Data(zone) if zone.is_signed() => {
                "data of the zone, which is signed: no pool chooses among them".to_owned()
            }
            ServedSource::Data(_) => "data of the zone".to_owned(),
            ServedSource::Cluster(_) => "the objects of a Kubernetes cluster".to_owned(),
            ServedSource::Forward(_) => match reason {
                Some(Reason::Cached | Reason::Stale) => "the answer cache".to_owned(),
                _ => "other servers, to which the zone is forwarded".to_owned(),
            },
            _ => "none: the zone could not be loaded, as the log tells".to_owned(),
        };
        steps.add("source", text);
        if let ServedSource::Data(zone) = &entry.source
            && let Some(target) = alias_target(zone, &lookup, asked.qtype)
        {
            let resolver = config.alias_resolver.as_ref().map_or_else(
                || "the upstreams of the forwarded zone that holds it, if there is one".to_owned(),
                |resolver| servers(resolver),
            );
            let text = format!(
                "the ALIAS record leads to {target}; unless a zone of this server has that, it is \
                 looked up at {resolver}"
            );
            steps.add("alias", text);
        }
    }
}

/// What an ALIAS record leads to that answers a question for addresses in zone data.
fn alias_target(zone: &ZoneData, name: &LookupName, qtype: Type) -> Option<Name> {
    let node = match zone.find(name, false) {
        LookupResult::Exact(node) | LookupResult::Wildcard { node, .. } => node,
        _ => return None,
    };
    let is_followed = matches!(qtype, Type::A | Type::AAAA) && node.set(qtype).is_none();
    let alias = node.set(Type::ALIAS).filter(|_| is_followed && !zone.is_signed())?;
    Name::from_wire(alias.first()).ok()
}

/// The upstreams of a forwarded zone, as the configuration writes them.
pub fn servers(forward: &Forward) -> String {
    let to: Vec<_> = forward.keys.to.iter().map(ToString::to_string).collect();
    to.join(", ")
}

/// Whether a zone has this apex.
fn is_named(zone: &Zone, apex: &Name) -> bool {
    zone.name.as_ref().is_some_and(|name| name.to_lowercase() == *apex)
}

/// What an access list says to the client of a query that is not signed, and by which of its rules;
/// and which keys would have it say something else.
fn rule(access: Option<&Access>, asked: &ExplainedQuery) -> String {
    let Some(access) = access else { return "answers all clients".to_owned() };
    let verb = |action| match action {
        Action::Allow => "answers",
        Action::Refuse => "refuses",
        Action::Filter => "keeps records from",
        Action::Drop => "ignores",
    };
    let client = asked.client.to_canonical();
    let is_for_type = |types: &[Type]| types.is_empty() || types.contains(&asked.qtype);
    let is_for = |rule: &&Rule| rule.network.contains(client) && is_for_type(&rule.types);
    let mut rules = access.rules.iter().filter(is_for);
    let mut with_keys = String::new();
    let deciding = rules.find(|rule| match &rule.key {
        Some(key) => {
            with_keys += &format!("; it {} it if the key is {key}", verb(rule.action));
            false
        }
        None => true,
    });
    let said = match deciding {
        Some(rule) => {
            let types = rule.types.iter().map(|rtype| format!(" {rtype}")).collect::<String>();
            let of_types = if types.is_empty() { types } else { format!(" and the types{types}") };
            format!("{} {client} by its rule for {}{of_types}", verb(rule.action), rule.network)
        }
        None => format!("{} {client}, which no rule names", verb(access.otherwise)),
    };
    said + &with_keys
}
