//! CoreDNS's Corefile.
//!
//! ```text
//! Corefile ─► lexer ─► parser ─► plugins of each server block ─► listeners, in views of the same
//!     zones ─► table of zones of each view ─► one list of zones ─► zonda.toml
//! ```
//!
//! | module | what it reads |
//! |---|---|
//! | [`parser`], [`key`] | the grammar, with imports, snippets and variables; names and networks |
//! | [`server`], [`cache`], [`acl`] | plugins that become keys of the whole server |
//! | [`rewrite`], [`edns`], [`template`], [`change`] | plugins that change questions and replies |
//! | [`transfer`], [`whoami`] | clients that zones are transferred to; addresses of clients |
//! | [`forward`], [`kubernetes`], [`hosts`], [`data`] | plugins that have answers |
//! | [`listeners`] | which blocks are at which addresses: the views |
//! | [`table`], [`cluster_zones`] | which plugin answers for which names of a view |
//! | [`scope`] | which names of a view the rules and templates of a block are for |
//! | [`join`], [`unreached`] | zones of all views as one list; plugins that are in none |
//!
//! A line that Zonda cannot do is in the report as [`Effect::Lost`]: without it, the result is not
//! what the Corefile says. `/etc/resolv.conf` and `/etc/hostname` are read when the file is.
//!
//! Deliberately absent: plugins that are not in CoreDNS's own list.

mod acl;
mod autopath;
mod cache;
mod change;
mod cluster_zones;
mod data;
mod edns;
mod external;
mod forward;
mod hosts;
mod join;
mod key;
mod kubernetes;
mod lexer;
mod listeners;
mod parser;
mod plugins;
mod query_log;
mod rewrite;
mod scope;
mod server;
mod setting;
mod source;
mod table;
mod template;
mod transfer;
mod unreached;
mod whoami;
mod write;

use crate::document::{Effect, ReportLine};
use crate::error::{ImportError, Place};
use crate::{Files, Import, NewFile};
use change::BlockChange;
use edns::QueryOption;
use key::Key;
use listeners::View;
use parser::{Line, ServerBlock, Sources};
use query_log::LoggedQueries;
use scope::Scope;
use setting::Setting;
use source::{AccessRule, Source};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use table::{SourceId, ZoneEntry};
use transfer::TransferRule;
use zonda_wire::Name;

/// Tells the value of a variable of the environment; none if it is not set.
pub type Environment<'e> = dyn Fn(&str) -> Option<String> + 'e;

/// Makes a `zonda.toml` of a Corefile, which relative paths in it start from.
///
/// # Errors
/// The first thing that CoreDNS would not take either, and files that cannot be read.
pub fn import(
    path: &Path,
    files: &mut dyn Files,
    environment: &Environment<'_>,
) -> Result<Import, ImportError> {
    let (blocks, left) = parser::read(path, &mut Sources { files, environment })?;
    let mut importer = Importer {
        files,
        base: path.parent().unwrap_or(Path::new("")).to_owned(),
        left,
        settings: Vec::new(),
        blocks: Vec::new(),
        listeners: Vec::new(),
        views: Vec::new(),
        block_views: BTreeMap::new(),
        reached: HashMap::new(),
        scopes: Vec::new(),
        directories: Vec::new(),
        uncached: Vec::new(),
        zones: Vec::new(),
        new_files: Vec::new(),
        is_followed: false,
    };
    for block in &blocks {
        importer.block(block)?;
    }
    importer.settle_cache_times();
    importer.settle_log();
    importer.listeners()?;
    importer.zones()?;
    importer.whole_server_settings();
    Ok(importer.finish(path))
}

/// A Corefile being carried over.
struct Importer<'f> {
    files: &'f mut dyn Files,
    /// Directory at which relative paths start.
    base: PathBuf,
    left: Vec<ReportLine>,
    settings: Vec<Setting>,
    blocks: Vec<Block>,
    listeners: Vec<(SocketAddr, Place)>,
    /// Zones of the listeners, in the order of their first listeners.
    views: Vec<View>,
    /// Numbers of the views that blocks have zones in, in ascending order.
    block_views: BTreeMap<usize, Vec<usize>>,
    /// Zones of sources that queries reach.
    reached: HashMap<SourceId, HashSet<Name>>,
    /// Zones of rules and templates, in the order of these.
    scopes: Vec<Scope>,
    /// Directories of zone files.
    directories: Vec<Directory>,
    /// Zones whose answers must not be cached, each with its block, line and words.
    uncached: Vec<(Vec<Name>, usize, Place, String)>,
    zones: Vec<ZoneEntry>,
    new_files: Vec<NewFile>,
    /// Whether a block says that the Corefile is read anew when it changes.
    is_followed: bool,
}

/// A directory of zone files.
struct Directory {
    /// Path of the directory.
    path: PathBuf,
    /// Line that names it.
    place: Place,
    /// Number of the server block.
    block: usize,
    /// Numbers of the views that it is in, in ascending order, once these are known.
    views: Vec<usize>,
}

/// A server block being carried over.
struct Block {
    keys: Vec<Key>,
    /// Addresses at which its queries are answered; none: all of the machine.
    addresses: Vec<IpAddr>,
    /// Sources of answers, in the order in which they are asked.
    sources: Vec<Source>,
    /// Rules that change questions and replies, and templates, in the order of the lines.
    changes: Vec<BlockChange>,
    /// Rules about clients, of which the first that matches decides.
    access: Vec<AccessRule>,
    /// Clients that zones are transferred to.
    transfers: Vec<TransferRule>,
    /// Plugins by name, each with the line of the first.
    plugins: BTreeMap<String, Place>,
    /// Directory at which relative paths of zone files start.
    root: PathBuf,
    /// Time after which expired answers are given.
    stale_after: Option<(Duration, Place)>,
    /// Queries that are logged.
    logged: Vec<LoggedQueries>,
    /// How long answers are cached: keys and their values.
    cache_times: Vec<(&'static str, Duration, Place)>,
    /// Octets of the largest answer that upstreams are asked for.
    buffer_size: Option<(u64, Place)>,
    /// EDNS options of queries to upstreams.
    options: Vec<QueryOption>,
    /// Codes of options that rules have taken out of queries.
    unset_options: Vec<u16>,
    /// Line of a rule that is for all queries, so that those behind it are for none.
    last_rule: Option<Place>,
    /// Line and words of a rule that is the last for queries that have an option.
    replacing_rule: Option<(Place, String)>,
}

impl Block {
    /// Returns the zones of all keys; one that is at several ports, once.
    fn zones(&self) -> Vec<Name> {
        let mut known: HashSet<&Name> = HashSet::new();
        let zones = self.keys.iter().flat_map(|key| &key.zones);
        zones.filter(|zone| known.insert(zone)).cloned().collect()
    }
}

impl Importer<'_> {
    /// Reads a server block.
    fn block(&mut self, block: &ServerBlock) -> Result<(), ImportError> {
        let keys: Result<Vec<Key>, ImportError> = block.keys.iter().map(key::key).collect();
        self.blocks.push(Block {
            keys: keys?,
            addresses: Vec::new(),
            sources: Vec::new(),
            access: Vec::new(),
            transfers: Vec::new(),
            changes: Vec::new(),
            plugins: BTreeMap::new(),
            root: self.base.clone(),
            stale_after: None,
            logged: Vec::new(),
            cache_times: Vec::new(),
            buffer_size: None,
            options: Vec::new(),
            unset_options: Vec::new(),
            last_rule: None,
            replacing_rule: None,
        });
        let is_first = |line: &&Line| matches!(line.name(), "root" | "bind");
        let (first, rest): (Vec<&Line>, Vec<&Line>) = block.lines.iter().partition(is_first);
        // These speak of other lines.
        let is_last = |line: &&Line| matches!(line.name(), "autopath" | "k8s_external");
        let (last, rest): (Vec<&Line>, Vec<&Line>) = rest.into_iter().partition(is_last);
        for line in first.into_iter().chain(rest).chain(last) {
            let place = line.place().clone();
            self.current().plugins.entry(line.name().to_owned()).or_insert(place);
            self.plugin(line)?;
        }
        self.current().sources.sort_by_key(|source| source.kind);
        Ok(())
    }

    /// Returns the block that is being read.
    fn current(&mut self) -> &mut Block {
        self.blocks.last_mut().expect("a block is added before its lines are read")
    }

    /// Notes what became of a line.
    fn leave(&mut self, line: &Line, effect: Effect, why: impl Into<String>) {
        self.leave_at(line.place(), effect, line.summary(), why);
    }

    /// Notes what became of something at a place.
    fn leave_at(
        &mut self,
        place: &Place,
        effect: Effect,
        what: impl Into<String>,
        why: impl Into<String>,
    ) {
        let (place, what, why) = (place.clone(), what.into(), why.into());
        self.left.push(ReportLine { place, effect, what, why });
    }

    /// Notes that an option is not known.
    fn lose_option(&mut self, line: &Line) {
        self.leave(line, Effect::Lost, "this import does not know the option");
    }

    /// Ends with what is to be written.
    fn finish(mut self, path: &Path) -> Import {
        let order = |it: &ReportLine| (it.place.file.clone(), it.place.line, it.place.column);
        self.left.sort_by_key(order);
        let mut told: HashSet<(Place, String)> = HashSet::new();
        self.left.retain(|it| told.insert((it.place.clone(), it.why.clone())));
        let toml = self.write(path);
        let is_followed = self.is_followed;
        Import { toml, files: self.new_files, report: self.left, is_followed }
    }
}

#[cfg(test)]
mod tests;
