//! Zones: their sources, and the clients that they answer.

use super::clauses::Clauses;
use super::left;
use super::servers::Servers;
use super::statement::{Cursor, Element, Statement};
use super::transfers::{Primaries, TransferClauses, Transfers};
use super::updates::Updates;
use super::{Importer, value};
use crate::document::Effect;
use crate::error::{ImportError, Place, Problem};
use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};
use zonda_wire::{Name, name};

/// A zone to be written.
pub struct Zone {
    /// Name as it is written.
    pub name: String,
    /// Place of the name.
    pub origin: Place,
    /// Source of the zone's answers.
    pub source: Source,
    /// Rules of the clients that are answered, and where they are written.
    pub access: Option<(Vec<String>, Place)>,
    /// Terms of its transfers, if there are any.
    pub transfers: Option<Transfers>,
    /// Rights to change it, if there are any.
    pub updates: Option<Updates>,
}

/// Where answers come from, and where that is said.
pub enum Source {
    /// A master file.
    File(PathBuf, Place),
    /// Servers to forward to.
    Servers(Servers, Place),
    /// Servers that the zone is transferred from.
    Primaries(Primaries, Place),
}

/// The options that hold for all zones.
pub struct Defaults<'s> {
    /// Whether questions of any client are forwarded.
    is_recursive: bool,
    /// The statement that allows or denies recursion.
    recursion: Option<Cursor<'s>>,
    /// Clients that may query the server's zones.
    query: Option<Access>,
    /// Clients that may query names that other servers answer for.
    forwarded: Option<Access>,
    /// The servers for names that no zone holds.
    forwarders: Option<Cursor<'s>>,
    /// Whether queries go to these servers only.
    only: Option<bool>,
    /// The format of zone files.
    format: Option<&'s str>,
    /// The statements about transfers.
    pub transfers: TransferClauses<'s>,
    /// The clients that may change zones.
    pub allow_update: Option<Cursor<'s>>,
}

impl Defaults<'_> {
    /// The clients that may query the server's zones, as far as that is said.
    pub fn query(&self) -> Option<Access> {
        self.query.clone()
    }
}

/// Access rules, and the place of their statement.
type Access = (Vec<String>, Place);

impl<'s> Importer<'s> {
    /// Reads what the options say about all zones.
    pub(super) fn zone_defaults(
        &mut self,
        options: &mut Clauses<'s>,
    ) -> Result<Defaults<'s>, ImportError> {
        let recursion = options.take("recursion")?;
        let is_recursive = match recursion {
            Some(mut cursor) => {
                let yes = cursor.value("`yes` or `no`", value::yes_or_no)?;
                cursor.end()?;
                yes
            }
            None => true,
        };
        let query = self.access(options.take("allow-query")?)?;
        let recursive = options.take("allow-recursion")?;
        let cache = options.take("allow-query-cache")?;
        let forwarded = match (recursive, cache) {
            (Some(recursive), Some(cache)) => Some(self.access_of_both(recursive, cache)?),
            (one, other) => self.access(one.or(other))?,
        };
        Ok(Defaults {
            is_recursive,
            recursion,
            forwarded: forwarded.or_else(|| query.clone()),
            query,
            forwarders: options.take("forwarders")?,
            only: self.forward_only(options.take("forward")?)?,
            format: format(options)?,
            transfers: TransferClauses::take(options)?,
            allow_update: options.take("allow-update")?,
        })
    }

    /// Reads an access list.
    pub(super) fn access(
        &mut self,
        cursor: Option<Cursor<'s>>,
    ) -> Result<Option<Access>, ImportError> {
        let Some(mut cursor) = cursor else { return Ok(None) };
        let list = cursor.block("`{`")?;
        cursor.end()?;
        let place = cursor.statement().place().clone();
        Ok(Some((self.acls.access(list)?, place)))
    }

    /// Reads two access lists: only clients in both are served.
    fn access_of_both(
        &mut self,
        mut first: Cursor<'s>,
        mut second: Cursor<'s>,
    ) -> Result<Access, ImportError> {
        let (at, place) = (first, first.statement().place().clone());
        let lists = [first.block("`{`")?, second.block("`{`")?];
        first.end()?;
        second.end()?;
        let rules = self.acls.access_of_both(lists, &at)?;
        if rules != self.acls.access(lists[1])? {
            let why =
                "clients not in `allow-recursion` are refused; BIND answers them from its cache";
            self.leave(second, Effect::Differs, why);
        }
        Ok((rules, place))
    }

    /// Reads `forward only` or `forward first`.
    fn forward_only(&mut self, cursor: Option<Cursor<'s>>) -> Result<Option<bool>, ImportError> {
        let Some(mut cursor) = cursor else { return Ok(None) };
        let only = cursor.value("`only` or `first`", |word| match word {
            "only" => Some(true),
            "first" => Some(false),
            _ => None,
        })?;
        cursor.end()?;
        if !only {
            let why = "Zonda does not resolve when its servers fail: it asks them only";
            self.leave(cursor, Effect::Differs, why);
        }
        Ok(Some(only))
    }

    /// Reads a zone.
    pub(super) fn zone(
        &mut self,
        mut zone: Cursor<'s>,
        defaults: &Defaults<'s>,
    ) -> Result<(), ImportError> {
        let statement = zone.statement();
        let name: Name = zone.parsed("the name of a zone")?;
        let class = if zone.peek().is_some_and(|(element, _)| element.is_word()) {
            zone.word("a class")?
        } else {
            "in"
        };
        let mut clauses = Clauses::new(zone.block("`{`")?);
        zone.end()?;
        if !class.eq_ignore_ascii_case("in") {
            self.leave(zone, Effect::Lost, "zones are of class IN");
            return Ok(());
        }
        let Some(mut kind) = clauses.take("type")? else {
            self.lose_zone(zone, &name, "a zone without a type: its data are elsewhere");
            return Ok(());
        };
        let before = kind;
        match kind.word("the type of a zone")?.to_ascii_lowercase().as_str() {
            "primary" | "master" => self.primary(statement, &name, &mut clauses, defaults)?,
            "secondary" | "slave" => self.secondary(statement, &name, &mut clauses, defaults)?,
            "forward" => self.forwarded(statement, &name, &mut clauses, defaults)?,
            "static-stub" => self.static_stub(statement, &name, &mut clauses, defaults)?,
            kind => return self.other_zone(zone, &name, kind, before),
        }
        kind.end()?;
        self.left.extend(clauses.rest().map(left::explain));
        Ok(())
    }

    /// Reports a zone of a type that has no counterpart.
    fn other_zone(
        &mut self,
        zone: Cursor<'s>,
        name: &Name,
        kind: &str,
        at: Cursor<'s>,
    ) -> Result<(), ImportError> {
        const RESOLVING: &str = "zones of this type are a matter of resolving";
        match kind {
            "hint" => {
                let why = "Zonda does not resolve: names that no zone holds are refused";
                self.leave(zone, Effect::Differs, why);
            }
            "mirror" => {
                let why = "what is transferred is not validated: copy its file, and serve that";
                self.lose_zone(zone, name, why);
            }
            "stub" => self.lose_zone(zone, name, RESOLVING),
            "redirect" | "delegation-only" => self.leave(zone, Effect::Lost, RESOLVING),
            _ => return Err(at.expected("the type of a zone, such as `primary` or `forward`")),
        }
        Ok(())
    }

    /// Notes that a zone is lost. Its names may be private, so they are not forwarded to the
    /// servers of zones around it.
    pub(super) fn lose_zone(&mut self, zone: Cursor<'s>, name: &Name, why: &str) {
        if *name == Name::root() {
            return self.leave(zone, Effect::Lost, why); // the options give the servers for all
        }
        let why = format!("{why}; its names are refused, and not forwarded");
        self.leave(zone, Effect::Lost, &why);
        self.except(name);
    }

    /// Notes that a name is not forwarded.
    fn except(&mut self, name: &Name) {
        self.excepted.push(name.to_lowercase());
    }

    /// Notes that the names of zones in a lost view are not forwarded.
    pub(super) fn lose_view(&mut self, mut view: Cursor<'s>) -> Result<(), ImportError> {
        let why = "there are no views: run a server for each; \
            names of its zones are refused here, and not forwarded";
        self.leave(view, Effect::Lost, why);
        while view.peek().is_some_and(|(element, _)| element.is_word()) {
            view.word("the name of a view")?;
        }
        for mut zone in Clauses::new(view.block("`{`")?).take_all("zone") {
            let name: Name = zone.parsed("the name of a zone")?;
            let is_own = |(element, _): &(Element, Place)| match element {
                Element::Block(clauses) => !clauses.iter().any(is_of_all_names),
                _ => false,
            };
            if zone.statement().elements.iter().any(is_own) {
                self.except(&name);
            }
        }
        view.end()
    }

    /// Imports a zone that is read from a file.
    fn primary(
        &mut self,
        statement: &'s Statement,
        name: &Name,
        clauses: &mut Clauses<'s>,
        defaults: &Defaults<'s>,
    ) -> Result<(), ImportError> {
        for cursor in clauses.take_all("forwarders") {
            let asks = |(element, _): &(Element, Place)| match element {
                Element::Block(servers) => !servers.is_empty(),
                _ => false,
            };
            if cursor.statement().elements.iter().any(asks) {
                let why = "below delegations clients get referrals: write a zone of that name with \
                    forward";
                self.leave(cursor, Effect::Differs, why);
            }
        }
        let format = format(clauses)?.or(defaults.format);
        let Some(mut file) = clauses.take("file")? else {
            let why = "a zone without a file: its data are elsewhere";
            self.lose_zone(statement.cursor(), name, why);
            return Ok(());
        };
        if format.is_some_and(|format| !format.eq_ignore_ascii_case("text")) {
            let why = "zones are read from text: use named-compilezone -F text";
            self.lose_zone(statement.cursor(), name, why);
            return Ok(());
        }
        let path = clean(&self.base.join(file.word("the path of a file")?));
        file.end()?;
        let access = self.access(clauses.take("allow-query")?)?.or_else(|| defaults.query());
        let access = access.filter(|(rules, _)| rules != &["allow any"]);
        let transfers = self.transfers(TransferClauses::take(clauses)?, defaults)?;
        let updates = self.updates(name, clauses, defaults)?;
        let source = Source::File(path, file.statement().place().clone());
        self.add_zone(statement, name, source, access, transfers)?;
        if let Some(zone) = self.zones.last_mut() {
            zone.updates = updates;
        }
        Ok(())
    }

    /// Imports a zone that is forwarded.
    fn forwarded(
        &mut self,
        statement: &'s Statement,
        name: &Name,
        clauses: &mut Clauses<'s>,
        defaults: &Defaults<'s>,
    ) -> Result<(), ImportError> {
        let only = self.forward_only(clauses.take("forward")?)?;
        let forwarders = clauses.take("forwarders")?;
        let (servers, place) = match forwarders {
            Some(cursor) => (self.servers(cursor)?, cursor.statement().place().clone()),
            None => (Servers::default(), statement.place().clone()),
        };
        if servers.to.is_empty() {
            let why = "no servers are left to ask for it, and Zonda does not resolve; \
                those of zones around it are not asked either";
            self.left.push(left::because(statement, Effect::Lost, why));
            self.except(name);
            self.take_name(name, statement.place())?;
            return Ok(());
        }
        if only.or(defaults.only).is_none() {
            let why = "`forward first`, BIND's default: Zonda asks its servers only";
            self.left.push(left::because(statement, Effect::Differs, why));
        }
        if name == &Name::root() && only.or(defaults.only) == Some(true) && defaults.is_recursive {
            self.forward_special_names(statement.cursor());
        }
        self.add_forward(statement, name, Source::Servers(servers, place), defaults)
    }

    /// Imports a zone whose queries go to servers that hold it.
    fn static_stub(
        &mut self,
        statement: &'s Statement,
        name: &Name,
        clauses: &mut Clauses<'s>,
        defaults: &Defaults<'s>,
    ) -> Result<(), ImportError> {
        let Some(addresses) = clauses.take("server-addresses")? else {
            let why = "servers are given by address: write `server-addresses`";
            self.lose_zone(statement.cursor(), name, why);
            return Ok(());
        };
        let servers = self.servers(addresses)?;
        let why = "its servers are forwarded to: where they refer to others, nobody follows";
        self.left.push(left::because(statement, Effect::Differs, why));
        let source = Source::Servers(servers, addresses.statement().place().clone());
        self.add_forward(statement, name, source, defaults)
    }

    /// Forwards all names that no zone holds, as the options say.
    pub(super) fn everything_else(&mut self, defaults: &Defaults<'s>) -> Result<(), ImportError> {
        if self.zone_places.contains_key(".") {
            return Ok(()); // that zone takes the place of the options' forwarders
        }
        let servers = match defaults.forwarders {
            Some(cursor) => self.servers(cursor)?,
            None => Servers::default(),
        };
        let Some(cursor) = defaults.forwarders.filter(|_| !servers.to.is_empty()) else {
            if let Some(cursor) = defaults.recursion.filter(|_| defaults.is_recursive) {
                let why = "Zonda does not resolve: names that no zone holds are refused, \
                    unless you tell it whom to ask (docs/forwarding.md)";
                self.leave(cursor, Effect::Lost, why);
            }
            return Ok(());
        };
        if defaults.only.is_none() {
            let why = "`forward first`, BIND's default: Zonda asks its servers only";
            self.leave(cursor, Effect::Differs, why);
        }
        if defaults.only == Some(true) && defaults.is_recursive {
            self.forward_special_names(cursor);
        }
        let statement = cursor.statement();
        let source = Source::Servers(servers, statement.place().clone());
        self.add_forward(statement, &Name::root(), source, defaults)
    }

    /// Adds a forwarded zone, if any client may query it.
    fn add_forward(
        &mut self,
        statement: &'s Statement,
        name: &Name,
        source: Source,
        defaults: &Defaults<'s>,
    ) -> Result<(), ImportError> {
        if !defaults.is_recursive {
            let why = "with `recursion no`, nothing is forwarded";
            self.left.push(left::because(statement, Effect::Needless, why));
            return Ok(());
        }
        self.add_zone(statement, name, source, defaults.forwarded.clone(), None)
    }

    /// Adds a zone.
    pub(super) fn add_zone(
        &mut self,
        statement: &'s Statement,
        name: &Name,
        source: Source,
        access: Option<Access>,
        transfers: Option<Transfers>,
    ) -> Result<(), ImportError> {
        let place = statement.place();
        let name = self.take_name(name, place)?;
        let (origin, updates) = (place.clone(), None);
        self.zones.push(Zone { name, origin, source, access, transfers, updates });
        Ok(())
    }

    /// Notes where the zone of a name is, which no other may have; returns it as it is written.
    fn take_name(&mut self, name: &Name, place: &Place) -> Result<String, ImportError> {
        let name = written(name);
        if let Some(first) = self.zone_places.insert(name.clone(), place.clone()) {
            let problem = Problem::Twice(format!("the zone {name}"), first);
            return Err(ImportError { place: Some(place.clone()), problem });
        }
        Ok(name)
    }

    /// Returns the names that servers of a zone are not asked for, as they are written: all that
    /// were given no servers of their own.
    pub(super) fn excepted_from(&self, zone: &str) -> Vec<String> {
        let Ok(apex) = zone.parse::<Name>() else { return Vec::new() };
        let is_in =
            |name: &&Name| **name != apex && name::is_at_or_below(name.as_wire(), apex.as_wire());
        let mut seen = HashSet::new();
        let all = self.excepted.iter().filter(|name| seen.insert(*name));
        all.filter(is_in).map(written).collect()
    }
}

/// Whether a statement says that its zone has no names of its own, but is a matter of resolving.
fn is_of_all_names(clause: &Statement) -> bool {
    let says = |kind: &&str| clause.says(kind);
    clause.keyword().eq_ignore_ascii_case("type")
        && ["hint", "redirect", "delegation-only"].iter().any(says)
}

/// Returns the format of zone files that is said.
fn format<'s>(clauses: &mut Clauses<'s>) -> Result<Option<&'s str>, ImportError> {
    let Some(mut cursor) = clauses.take("masterfile-format")? else { return Ok(None) };
    let format = cursor.word("a format")?;
    cursor.end()?;
    Ok(Some(format))
}

/// Returns a name as the configuration has it.
pub(super) fn written(name: &Name) -> String {
    let text = name.to_lowercase().to_string();
    if text == "." { text } else { text.trim_end_matches('.').to_owned() }
}

/// Returns the least directory that holds all of these files.
pub fn common_directory<'p>(mut files: impl Iterator<Item = &'p Path>) -> Option<PathBuf> {
    let mut common = files.next()?.parent()?.to_owned();
    for file in files {
        while !file.starts_with(&common) {
            common.pop();
        }
    }
    Some(common)
}

/// Returns a path without `.` and `..`, made so without asking the file system.
fn clean(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => _ = clean.pop(),
            Component::CurDir => {}
            component => clean.push(component),
        }
    }
    clean
}
