//! Functions of LUA records, and the pools that stand for them.
//!
//! | function | pool |
//! |---|---|
//! | `pickrandom`, `pickrandomsample` | `round-robin`, one answer or several |
//! | `pickwrandom` | `weighted` |
//! | `pickhashed`, `pickchashed`, `pickwhashed`, `picknamehashed` | `hash`, `hash-name` |
//! | `pickclosest` | `round-robin`, as members have no site |
//! | `all`, a text, a table of texts | all members |
//! | `ifportup`, `ifurlup` | a check, `failover` between sets, and what the selector says |
//! | `ifurlextup` | a pool of its own for each address, with its check |
//! | `view` | `geo`, by networks of `[geo]` |

use super::lua::{Expression, Table};
use super::url::Url;
use crate::document::Effect;
use crate::error::Place;
use crate::steering::keys::{filter, when_all_down};
use crate::steering::{Check, Configuration, Member, Network, Pool, Probe, Target};
use std::net::IpAddr;
use std::time::Duration;

/// Highest number of answers, as a pool can have it.
const ANSWERS_MAX: u32 = 32;
/// Highest weight of a member.
const WEIGHT_MAX: f64 = 1_000_000.0;

/// Networks of the first record with `view`, which all records share.
#[derive(Default)]
pub struct Views(Option<Vec<Vec<String>>>);

/// What it takes to make the pool of a record.
pub struct Context<'c> {
    /// Type of the record.
    pub rtype: &'c str,
    /// Name of the pool.
    pub name: &'c str,
    /// Place of the record.
    pub place: &'c Place,
    /// Configuration that pools and networks are added to.
    pub configuration: &'c mut Configuration,
    /// Networks of records with `view`.
    pub views: &'c mut Views,
    /// Lines for the report: effect, what, and why.
    pub notes: Vec<(Effect, String, String)>,
}

/// What a selector asks for: the last steps of the choice, and the number of answers.
type Selection = (Vec<&'static str>, Option<u32>);

impl Context<'_> {
    /// Makes the pool of an expression.
    ///
    /// # Errors
    /// Why no pool can stand for it.
    pub fn pool(&mut self, expression: &Expression) -> Result<Pool, String> {
        let (name, arguments) = match expression {
            Expression::Call(name, arguments) => (name.as_str(), &arguments[..]),
            Expression::Text(_) => ("all", std::slice::from_ref(expression)),
            Expression::Table(_) => ("all", std::slice::from_ref(expression)),
            _ => return Err("this is no answer".to_owned()),
        };
        let one = Some(1);
        let in_turn = filter::ROUND_ROBIN;
        match (name, arguments) {
            ("pickrandom", [values]) => self.plain(values, in_turn, one),
            ("all", [values]) => self.plain(values, in_turn, None),
            ("pickhashed" | "pickchashed", [values]) if !is_weighted(values) => {
                self.plain(values, filter::HASH, one)
            }
            ("picknamehashed", [values]) if !is_weighted(values) => {
                self.plain(values, filter::HASH_NAME, one)
            }
            ("pickclosest", [values]) => {
                self.tell_sites();
                self.plain(values, in_turn, one)
            }
            ("pickrandomsample", [Expression::Number(count), values]) => {
                let count = whole(*count, "the number of answers")?.clamp(1, ANSWERS_MAX);
                self.plain(values, in_turn, Some(count))
            }
            ("pickwrandom", [values]) => self.weighted(values, filter::WEIGHTED),
            ("pickwhashed" | "pickchashed", [values]) => self.weighted(values, filter::HASH),
            ("picknamehashed", [values]) => self.weighted(values, filter::HASH_NAME),
            ("ifportup", [Expression::Number(port), addresses, options @ ..]) => {
                let port = u16::try_from(whole(*port, "the port")?);
                let port = port.map_err(|_| "the port is above 65535".to_owned())?;
                self.checked(Check::new(Probe::Tcp(port)), addresses, options)
            }
            ("ifurlup", [Expression::Text(url), addresses, options @ ..]) => {
                let url = Url::read(url).ok_or("the URL is none of HTTP")?;
                self.checked(check_of(url), addresses, options)
            }
            ("ifurlextup", [groups, options @ ..]) => self.checked_elsewhere(groups, options),
            ("view", [pairs]) => self.view(pairs),
            _ => Err(format!("no pool stands for `{}` with such arguments", name.escape_debug())),
        }
    }

    /// Adds a line to the report.
    fn note(&mut self, effect: Effect, what: &str, why: &str) {
        self.notes.push((effect, what.to_owned(), why.to_owned()));
    }

    /// Reports that members need sites where a location decides.
    fn tell_sites(&mut self) {
        let why = "a member's place does not follow from its address, so that members take turns: \
            give each a `site`, and write `nearest` in `choose`";
        self.note(Effect::Lost, "pickclosest", why);
    }

    /// Makes a pool of values that are not checked.
    fn plain(
        &mut self,
        values: &Expression,
        order: &'static str,
        answers: Option<u32>,
    ) -> Result<Pool, String> {
        let mut members = Vec::new();
        for value in texts(values)? {
            members.push(self.member(value)?);
        }
        self.of_members(members, vec![order], answers)
    }

    /// Makes a pool of values with weights.
    fn weighted(&mut self, values: &Expression, order: &'static str) -> Result<Pool, String> {
        let Expression::Table(table) = values else { return Err(no_list()) };
        let mut members = Vec::new();
        for pair in &table.list {
            let parts = match pair {
                Expression::Table(Table { list, .. }) => &list[..],
                _ => &[],
            };
            let (weight, value) = match parts {
                [Expression::Number(weight), Expression::Text(value)] => (*weight, value),
                [Expression::Text(weight), Expression::Text(value)] => {
                    (weight.parse().map_err(|_| "a weight is no number".to_owned())?, value)
                }
                _ => return Err("expected pairs of a weight and a text".to_owned()),
            };
            let mut member = self.member(value)?;
            if weight > WEIGHT_MAX {
                let why = format!("the highest weight is {WEIGHT_MAX}");
                self.note(Effect::Differs, &weight.to_string(), &why);
            }
            member.weight = Some(whole(weight.min(WEIGHT_MAX), "a weight")?);
            members.push(member);
        }
        self.of_members(members, vec![order], Some(1))
    }

    /// Makes a pool whose members are checked, of a list of addresses or of several, of which the
    /// first with an address that is up answers.
    fn checked(
        &mut self,
        check: Check,
        addresses: &Expression,
        options: &[Expression],
    ) -> Result<Pool, String> {
        let Expression::Table(table) = addresses else { return Err(no_list()) };
        let sets = match table.list.first() {
            Some(Expression::Table(_)) => table.list.iter().map(texts).collect::<Result<_, _>>()?,
            _ => vec![texts(addresses)?],
        };
        let mut members = Vec::new();
        for (set, rank) in sets.iter().zip(1..) {
            for value in set {
                let mut member = self.member(value)?;
                member.priority = Some(rank).filter(|_| sets.len() > 1);
                members.push(member);
            }
        }
        let mut pool = self.of_members(members, Vec::new(), Some(1))?;
        let options = table_of(options)?;
        self.selectors(&mut pool, &options, sets.len() > 1)?;
        pool.check = Some(self.check_options(check, &options)?);
        Ok(pool)
    }

    /// Makes a pool of a pool for each address, whose check goes elsewhere.
    fn checked_elsewhere(
        &mut self,
        groups: &Expression,
        options: &[Expression],
    ) -> Result<Pool, String> {
        let Expression::Table(groups) = groups else { return Err(no_list()) };
        let mut found = Vec::new();
        for (group, rank) in groups.list.iter().zip(1..) {
            let Expression::Table(group) = group else { return Err(no_list()) };
            for pair in &group.keys {
                let (Expression::Text(value), Expression::Text(url)) = pair else {
                    return Err("expected addresses with a URL each".to_owned());
                };
                let url = Url::read(url).ok_or("the URL is none of HTTP")?;
                let Some(address) = url.address() else {
                    let host = url.host.escape_debug();
                    return Err(format!("a check goes to an address, and {host} is a name"));
                };
                let member = self.member(value)?;
                let is_own = member.target == Target::Address(address);
                let mut check = check_of(url);
                check.address = Some(address).filter(|_| !is_own);
                found.push((member, check, rank));
            }
        }
        let options = table_of(options)?;
        let has_sets = groups.list.len() > 1;
        let members = found.iter().map(|(member, ..)| member.clone()).collect();
        let mut pool = self.of_members(members, Vec::new(), Some(1))?;
        self.selectors(&mut pool, &options, has_sets)?;
        if pool.answers.is_none() {
            pool.answers = Some(1);
            let why = "of members that are pools, one is answered";
            self.note(Effect::Differs, "selector", why);
        }
        // The options are judged once, and are the same for all.
        let common = Check::new(Probe::Http("/".to_owned()));
        let common = self.check_options(common, &options)?;
        pool.members.clear();
        for (member, check, rank) in found {
            let Check { probe, port, address, .. } = check;
            let check = Check { probe, port, address, host: None, ..common.clone() };
            let name = match &member.target {
                Target::Address(address) => format!("{}-{address}", self.name),
                _ => self.name.to_owned(),
            };
            let mut inner = Pool::new(&name, self.place, vec![member]);
            inner.check = Some(check);
            inner.when_all_down = pool.when_all_down;
            let inner = Target::Pool(self.configuration.pools.add(inner));
            let mut member = Member::new(inner, self.place);
            member.priority = Some(rank).filter(|_| has_sets);
            pool.members.push(member);
        }
        Ok(pool)
    }

    /// Makes a pool of members by the network of the client.
    fn view(&mut self, pairs: &Expression) -> Result<Pool, String> {
        let Expression::Table(pairs) = pairs else { return Err(no_list()) };
        let (mut networks, mut members) = (Vec::new(), Vec::new());
        for (pair, number) in pairs.list.iter().zip(1..) {
            let parts = match pair {
                Expression::Table(Table { list, .. }) => &list[..],
                _ => &[],
            };
            let [nets, values] = parts else {
                return Err("expected pairs of networks and values".to_owned());
            };
            let mut own = Vec::new();
            for net in texts(nets)? {
                own.push(
                    network(net)
                        .ok_or_else(|| format!("`{}` is no network", net.escape_debug()))?,
                );
            }
            networks.push(own);
            for value in texts(values)? {
                let mut member = self.member(value)?;
                member.site = Some(format!("view-{number}"));
                members.push(member);
            }
        }
        let shown: Vec<Vec<String>> = networks
            .iter()
            .map(|own| own.iter().map(|(address, length)| format!("{address}/{length}")).collect())
            .collect();
        match &self.views.0 {
            Some(first) if *first == shown => {}
            Some(_) => {
                let why = "[geo] has one list of networks, and another record with `view` has \
                    other ones";
                return Err(why.to_owned());
            }
            None => self.add_networks(&networks, shown)?,
        }
        self.of_members(members, vec![filter::GEO], None)
    }

    /// Adds the networks of the first record with `view`.
    fn add_networks(
        &mut self,
        networks: &[Vec<(IpAddr, u8)>],
        shown: Vec<Vec<String>>,
    ) -> Result<(), String> {
        let mut all: Vec<(IpAddr, u8)> = Vec::new();
        let mut is_shadowed = false;
        for net in networks.iter().flatten() {
            if all.contains(net) {
                return Err("a network stands in two places".to_owned());
            }
            is_shadowed |= all.iter().any(|earlier| contains(*earlier, *net));
            all.push(*net);
        }
        for (own, number) in shown.iter().zip(1..) {
            for prefix in own {
                self.configuration.geo.networks.push(Network {
                    prefix: prefix.clone(),
                    site: format!("view-{number}"),
                    origin: self.place.clone(),
                });
            }
        }
        if is_shadowed {
            let why = "the longest network that has the client decides; there, the first one did";
            self.note(Effect::Differs, "view", why);
        }
        if !all.iter().any(|(_, length)| *length == 0) {
            let why = "clients outside of all networks get any of the values; there, none";
            self.note(Effect::Differs, "view", why);
        }
        self.views.0 = Some(shown);
        Ok(())
    }

    /// Makes a pool of members, of which there is at least one.
    fn of_members(
        &self,
        members: Vec<Member>,
        choose: Vec<&'static str>,
        answers: Option<u32>,
    ) -> Result<Pool, String> {
        if members.is_empty() {
            return Err("there are no values".to_owned());
        }
        let mut pool = Pool::new(self.name, self.place, members);
        pool.choose = choose;
        pool.answers = answers;
        Ok(pool)
    }

    /// Makes a member of a value, which must suit the type.
    fn member(&self, value: &str) -> Result<Member, String> {
        let wrong = || format!("`{}` is no data of type {}", value.escape_debug(), self.rtype);
        let target = match (self.rtype, value.parse::<IpAddr>()) {
            ("A", Ok(address)) if address.is_ipv4() => Target::Address(address),
            ("AAAA", Ok(address)) if address.is_ipv6() => Target::Address(address),
            ("A" | "AAAA", _) => return Err(wrong()),
            ("TXT" | "SPF", _) if !value.starts_with('"') => {
                let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
                Target::Data(format!("\"{escaped}\""))
            }
            ("CNAME" | "PTR", _) => {
                let name = value.trim_end_matches('.');
                name.parse::<zonda_wire::Name>().map_err(|_| wrong())?;
                Target::Data(format!("{name}."))
            }
            _ => Target::Data(value.to_owned()),
        };
        Ok(Member::new(target, self.place))
    }

    /// Applies the options that choose among members.
    fn selectors(
        &mut self,
        pool: &mut Pool,
        options: &Table,
        has_sets: bool,
    ) -> Result<(), String> {
        let word = |key: &str| match options.get(key) {
            None => Ok("random"),
            Some(Expression::Text(word)) => Ok(word.as_str()),
            Some(_) => Err(format!("expected a text for `{key}`")),
        };
        let (selector, backup) = (word("selector")?, word("backupSelector")?);
        let (steps, answers) = self.selection(selector)?;
        pool.choose = if has_sets { vec![filter::FAILOVER] } else { Vec::new() };
        pool.choose.extend(steps);
        pool.answers = answers;
        if backup == "empty" {
            pool.when_all_down = when_all_down::NODATA;
            return Ok(());
        }
        if backup != selector {
            self.selection(backup)?;
            let why = format!("when no address is up, `{selector}` chooses as well");
            self.note(Effect::Differs, &format!("backupSelector {backup}"), &why);
        }
        if has_sets {
            let why = "when no address is up, the first set answers; there, one of all";
            self.note(Effect::Differs, "backupSelector", why);
        }
        Ok(())
    }

    /// Applies the options of a check: intervals, thresholds, what HTTP must answer.
    fn check_options(&mut self, mut check: Check, options: &Table) -> Result<Check, String> {
        check.timeout = Some(seconds(options, "timeout", 2.0)?);
        check.interval = Some(seconds(options, "interval", 5.0)?);
        check.rise = Some(1);
        check.fall = Some(match options.get("minimumFailures") {
            None => 1,
            Some(Expression::Number(count)) => whole(*count, "`minimumFailures`")?.max(1),
            Some(_) => return Err("expected a number for `minimumFailures`".to_owned()),
        });
        for (key, value) in &options.keys {
            self.option(&mut check, key, value)?;
        }
        let is_http = matches!(check.probe, Probe::Http(_) | Probe::Https(_));
        if is_http && check.status.is_empty() {
            check.status = vec!["200".to_owned()];
        }
        Ok(check)
    }

    /// Applies one option of a check.
    fn option(
        &mut self,
        check: &mut Check,
        key: &Expression,
        value: &Expression,
    ) -> Result<(), String> {
        let Expression::Text(key) = key else { return Err("an option has no name".to_owned()) };
        match (key.as_str(), value) {
            ("selector" | "backupSelector" | "timeout" | "interval" | "minimumFailures", _) => {}
            ("source", Expression::Text(text)) => {
                let source = text.parse().map_err(|_| "`source` is no address".to_owned())?;
                check.source = Some(source);
            }
            ("stringmatch", Expression::Text(text)) => check.contains = Some(text.clone()),
            ("useragent", Expression::Text(text)) => {
                check.headers.push(format!("User-Agent: {text}"));
            }
            ("httpcode", Expression::Number(code)) => {
                check.status = vec![whole(*code, "`httpcode`")?.to_string()];
            }
            ("httpcode", Expression::Text(code)) => check.status = vec![code.clone()],
            ("failOnIncompleteCheck", _) => {
                let why = "until the first result, members count as up or down by the server's \
                    default";
                self.note(Effect::Differs, key, why);
            }
            ("byteslimit", _) => {
                let why = "the beginning of a reply is read, whose length is the server's";
                self.note(Effect::Differs, key, why);
            }
            _ => {
                let why = "there is no counterpart that this import knows";
                self.note(Effect::Lost, key, why);
            }
        }
        Ok(())
    }

    /// Returns what a selector asks for.
    fn selection(&mut self, selector: &str) -> Result<Selection, String> {
        match selector {
            "random" => Ok((vec![filter::ROUND_ROBIN], Some(1))),
            "hashed" => Ok((vec![filter::HASH], Some(1))),
            "all" => Ok((vec![filter::ROUND_ROBIN], None)),
            "pickclosest" => {
                self.tell_sites();
                Ok((vec![filter::ROUND_ROBIN], Some(1)))
            }
            other => Err(format!("there is no selector `{}`", other.escape_debug())),
        }
    }
}

/// Returns the table of options, which may be left out.
fn table_of(options: &[Expression]) -> Result<Table, String> {
    match options {
        [] | [Expression::Nil] => Ok(Table::default()),
        [Expression::Table(table)] => Ok(table.clone()),
        _ => Err("expected a table of options".to_owned()),
    }
}

/// Returns the check of a URL.
fn check_of(url: Url) -> Check {
    let probe = if url.is_https { Probe::Https(url.path) } else { Probe::Http(url.path) };
    Check { port: url.port, host: Some(url.host), ..Check::new(probe) }
}

/// Returns the texts of a list, or the single one in place of a list.
fn texts(values: &Expression) -> Result<Vec<&String>, String> {
    fn text(value: &Expression) -> Option<&String> {
        if let Expression::Text(text) = value { Some(text) } else { None }
    }
    match values {
        Expression::Text(text) => Ok(vec![text]),
        Expression::Table(Table { list, keys }) if keys.is_empty() => {
            let texts: Option<Vec<&String>> = list.iter().map(text).collect();
            texts.ok_or_else(no_list)
        }
        _ => Err(no_list()),
    }
}

/// Whether values are pairs of a weight and a text.
fn is_weighted(values: &Expression) -> bool {
    matches!(values, Expression::Table(Table { list, .. })
        if matches!(list.first(), Some(Expression::Table(_))))
}

/// Says that there is no list of texts.
fn no_list() -> String {
    "expected a list of texts".to_owned()
}

/// Returns a number that must be whole and not negative.
fn whole(number: f64, what: &str) -> Result<u32, String> {
    let is_whole = number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number);
    if is_whole { Ok(number as u32) } else { Err(format!("{what} is no whole number: {number}")) }
}

/// Returns the time of an option in seconds.
fn seconds(options: &Table, key: &str, default: f64) -> Result<Duration, String> {
    let secs = match options.get(key) {
        None => default,
        Some(Expression::Number(secs)) => *secs,
        Some(Expression::Text(secs)) => {
            secs.parse().map_err(|_| format!("`{key}` is no number"))?
        }
        Some(_) => return Err(format!("expected a number for `{key}`")),
    };
    let duration = Duration::try_from_secs_f64(secs).ok().filter(|it| !it.is_zero());
    duration.ok_or_else(|| format!("`{key}` is no time: {secs}"))
}

/// Reads a network: an address, perhaps with the length of its prefix.
fn network(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = text.split_once('/').unwrap_or((text, ""));
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let length = if text.contains('/') { length.parse().ok()? } else { most };
    (length <= most).then_some((address, length))
}

/// Whether a network has all addresses of another, longer one.
fn contains((outer, length): (IpAddr, u8), (inner, inner_length): (IpAddr, u8)) -> bool {
    let bits = |address| match address {
        IpAddr::V4(address) => (u128::from(u32::from(address)) << 96, true),
        IpAddr::V6(address) => (u128::from(address), false),
    };
    let ((outer, outer_v4), (inner, inner_v4)) = (bits(outer), bits(inner));
    let same = |length: u8| {
        outer.checked_shr(128 - u32::from(length)).unwrap_or(0)
            == inner.checked_shr(128 - u32::from(length)).unwrap_or(0)
    };
    outer_v4 == inner_v4 && length < inner_length && same(length)
}
