//! BIND's named.conf.
//!
//! What is read: `options`, `acl`, `key`, zones with their sources, primaries, forwarders, access
//! and transfers, listeners, the cache's limits, rate limiting, the query log and the statistics
//! channel; a single `view` counts as none. Everything else is listed ([`left`] says why).
//!
//! Deliberately absent: several views, of which no counterpart exists, and a look at the files that
//! the configuration names.

mod acl;
mod clauses;
mod left;
mod lexer;
mod logging;
mod options;
mod servers;
mod sockets;
mod special;
mod statement;
mod transfers;
mod updates;
mod value;
mod write;
mod zones;

use crate::document::{Effect, ReportLine, Value};
use crate::error::{ImportError, Place};
use crate::{Files, Import};
use acl::Acls;
use clauses::Clauses;
use servers::Certificates;
use statement::{Cursor, Statement};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use transfers::{Key, RemoteServers};
use zonda_wire::Name;
use zones::Zone;

/// Makes a `zonda.toml` of a named.conf, which relative paths in it start from.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn import(path: &Path, files: &mut dyn Files) -> Result<Import, ImportError> {
    let statements = statement::read(path, files)?;
    let mut top = Clauses::new(&statements);
    let acls = Acls::new(top.take_all("acl").into_iter())?;
    let mut importer = Importer {
        acls,
        left: Vec::new(),
        base: path.parent().unwrap_or(Path::new("")).to_owned(),
        settings: Vec::new(),
        listeners: Vec::new(),
        zones: Vec::new(),
        zone_places: HashMap::new(),
        view_clients: None,
        excepted: Vec::new(),
        certificates: HashMap::new(),
        keys: BTreeMap::new(),
        remote_servers: HashMap::new(),
    };
    importer.configuration(top)?;
    Ok(importer.finish(path))
}

/// A configuration being carried over.
struct Importer<'s> {
    acls: Acls<'s>,
    left: Vec<ReportLine>,
    /// Directory at which relative paths start.
    base: PathBuf,
    settings: Vec<Setting>,
    listeners: Vec<Listener>,
    zones: Vec<Zone>,
    /// Places of the zones of these names.
    zone_places: HashMap<String, Place>,
    /// The clients that the only view is for, and where that is said; none: all.
    view_clients: Option<(Vec<String>, Place)>,
    /// Names that are not forwarded, in lower case; some perhaps twice.
    excepted: Vec<Name>,
    /// Requirements on certificates, by the name of their `tls` statement.
    certificates: HashMap<&'s str, Certificates<'s>>,
    /// Keys that messages are signed with, by name.
    keys: BTreeMap<String, Key<'s>>,
    /// Named lists of servers.
    remote_servers: RemoteServers<'s>,
}

/// A key of a section that exists once.
struct Setting {
    section: &'static str,
    key: &'static str,
    value: Value,
    origin: Place,
}

/// An address on which queries are answered.
struct Listener {
    address: SocketAddr,
    /// Place of the statement; none if the value is BIND's default.
    origin: Option<Place>,
    /// Rules of the clients that are answered, and where they are written; none: all clients.
    access: Option<(Vec<String>, Place)>,
}

impl<'s> Importer<'s> {
    /// Reads the whole configuration.
    fn configuration(&mut self, mut top: Clauses<'s>) -> Result<(), ImportError> {
        let views = top.take_all("view");
        let mut options = Vec::new();
        for mut cursor in top.take_all("options") {
            options.extend(cursor.block("`{`")?);
            cursor.end()?;
        }
        let mut zones = top.take_all("zone");
        if let [view] = views[..] {
            self.only_view(view, &mut options, &mut zones)?;
        } else {
            for view in &views {
                self.lose_view(*view)?;
            }
        }
        let mut options = Clauses::new(options);
        self.directory(&mut options)?;
        self.listeners(&mut options)?;
        self.statistics_channels(&mut top)?;
        self.name_of_view(&views);
        self.tls(&mut top)?;
        self.keys_and_remote_servers(&mut top)?;
        let defaults = self.zone_defaults(&mut options)?;
        for zone in zones {
            self.zone(zone, &defaults)?;
        }
        self.everything_else(&defaults)?;
        self.special_names(&mut options)?;
        self.options(&mut options)?;
        self.query_log(&mut options, &mut top)?;
        self.leave_other_keys();
        self.left.extend(options.rest().chain(top.rest()).map(left::explain));
        Ok(())
    }

    /// Takes the statements of the only view as if they stood outside of it.
    fn only_view(
        &mut self,
        mut view: Cursor<'s>,
        options: &mut Vec<&'s Statement>,
        zones: &mut Vec<Cursor<'s>>,
    ) -> Result<(), ImportError> {
        let whole = view;
        view.word("the name of a view")?;
        if view.peek().is_some_and(|(element, _)| element.is_word()) {
            view.word("a class")?;
        }
        let mut inner = Clauses::new(view.block("`{`")?);
        view.end()?;
        if self.is_for_some_questions_only(&mut inner)? {
            return self.lose_view(whole);
        }
        self.view_clients = self.access(inner.take("match-clients")?)?;
        zones.extend(inner.take_all("zone"));
        let inner: Vec<_> = inner.rest().collect();
        // What a view says takes the place of what the options say.
        let replaced = |old: &&Statement| inner.iter().any(|new| new.keyword() == old.keyword());
        options.retain(|old| !replaced(old));
        options.extend(inner);
        Ok(())
    }

    /// Whether a view is for some addresses of the server or for recursive questions only, which is
    /// then reported: served to all, its zones would reach clients that must not see them.
    fn is_for_some_questions_only(&mut self, view: &mut Clauses<'s>) -> Result<bool, ImportError> {
        let mut is_limited = false;
        if let Some(mut cursor) = view.take("match-destinations")? {
            let list = cursor.block("`{`")?;
            cursor.end()?;
            let rules = self.acls.rules(list)?;
            let is_any = |rule: &acl::Rule| rule.matches && matches!(rule.who, acl::Clients::Any);
            if !rules.first().is_some_and(is_any) {
                let why = "run a server of its own that listens on these addresses";
                self.leave(cursor, Effect::Lost, why);
                is_limited = true;
            }
        }
        if let Some(mut cursor) = view.take("match-recursive-only")? {
            let is_recursive_only = cursor.value("`yes` or `no`", value::yes_or_no)?;
            cursor.end()?;
            if is_recursive_only {
                let why = "zones are served whether recursion is desired or not";
                self.leave(cursor, Effect::Lost, why);
                is_limited = true;
            }
        }
        Ok(is_limited)
    }

    /// Reports that statistics have another name for the only view.
    fn name_of_view(&mut self, views: &[Cursor<'s>]) {
        let has_statistics = self.settings.iter().any(|it| it.key == "bind-statistics");
        if let ([view], true) = (views, has_statistics)
            && !view.statement().elements.get(1).is_some_and(|(name, _)| name.is("_default"))
        {
            let why = "its statistics are those of the view `_default`";
            self.leave(*view, Effect::Differs, why);
        }
    }

    /// Sets where relative paths start.
    fn directory(&mut self, options: &mut Clauses<'s>) -> Result<(), ImportError> {
        if let Some(mut cursor) = options.take("directory")? {
            self.base = self.base.join(cursor.word("a directory")?);
            cursor.end()?;
        }
        Ok(())
    }

    /// Notes a key of a section that exists once.
    fn set(
        &mut self,
        (section, key): (&'static str, &'static str),
        value: impl Into<Value>,
        from: Cursor<'s>,
    ) {
        let origin = from.statement().place().clone();
        self.settings.push(Setting { section, key, value: value.into(), origin });
    }

    /// Notes that a statement stays behind.
    fn leave(&mut self, cursor: Cursor<'s>, effect: Effect, why: &str) {
        self.left.push(left::because(cursor.statement(), effect, why));
    }

    /// Ends with what is to be written.
    fn finish(mut self, path: &Path) -> Import {
        self.left.append(&mut self.acls.left);
        let order =
            |left: &ReportLine| (left.place.file.clone(), left.place.line, left.place.column);
        self.left.sort_by_key(order);
        self.left.dedup_by(|a, b| a.place == b.place && a.why == b.why);
        let toml = self.write(path);
        Import { toml, files: Vec::new(), report: self.left, is_followed: false }
    }
}

#[cfg(test)]
mod tests;
