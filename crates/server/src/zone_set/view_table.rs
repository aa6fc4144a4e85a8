//! The zones of a view, as the workers read them.

use crate::forwards::{Forwards, KnownForward};
use crate::local::LocalNames;
use crate::units::Content;
use crate::views::{ListenerSet, View};
use crate::zone_set_view::KnownZone;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use zonda_engine::name_table::NameTable;
use zonda_engine::zones::{ZoneEntry, ZoneTable, ZoneTableOwner};
use zonda_wire::Name;
use zonda_zone::HashSeed;

/// The zones that are answered at some listeners.
pub struct ViewTable {
    /// The listeners; none: the table has all zones, and of two zones of a name one.
    pub view: Option<Arc<View>>,
    /// The table that workers read.
    table: ZoneTableOwner,
    /// Whether forwarded zones, or what depends on them, changed since the table was made.
    is_stale: bool,
    /// Names that the table has because zones are forwarded.
    forwarded: Vec<Name>,
    /// Zones with data of which the table has copies, for names that forwarded zones except.
    lent: HashSet<Name>,
    /// Names at which a zone that comes or goes changes what the table has because zones are
    /// forwarded.
    local_above: HashSet<Name>,
}

/// What the tables of all views are made of.
#[derive(Clone, Copy)]
pub struct ViewSources<'z> {
    /// The zones of the server.
    pub zones: &'z NameTable<KnownZone>,
    /// Zones that upstreams answer for.
    pub forwards: &'z Forwards,
    /// Names that upstreams do not answer for.
    pub local_names: &'z LocalNames,
}

impl ViewTable {
    /// A table without zones, of a view or of all listeners.
    pub fn new(view: Option<Arc<View>>, seed: HashSeed) -> Self {
        Self {
            view,
            table: ZoneTableOwner::new(seed),
            is_stale: true,
            forwarded: Vec::new(),
            lent: HashSet::new(),
            local_above: HashSet::new(),
        }
    }

    /// Has the next table made as if all that is forwarded had changed.
    pub fn note_forwards(&mut self) {
        self.is_stale = true;
    }

    /// Puts a zone of the server into the table if the view has it, or takes it out; whether the
    /// table has other names then.
    pub fn put(&mut self, zone: &KnownZone, forwards: &Forwards) -> bool {
        let apex = &zone.entry.apex;
        if !self.has(&zone.entry) {
            return self.is_own(apex) && self.remove(zone, forwards);
        }
        let is_in_front = self.is_in_front(zone, forwards);
        let is_new = !self.is_own(apex);
        self.is_stale |=
            is_in_front || self.lent.contains(apex) || is_new && self.local_above.contains(apex);
        if !is_in_front {
            self.table.put(Arc::clone(&zone.entry));
        }
        is_new
    }

    /// Takes a zone of the server out of the table; whether it was there.
    pub fn remove(&mut self, zone: &KnownZone, forwards: &Forwards) -> bool {
        let apex = &zone.entry.apex;
        let is_there = self.is_own(apex);
        if is_there {
            self.table.remove(apex);
        }
        self.is_stale |= self.is_in_front(zone, forwards) || self.local_above.contains(apex);
        is_there
    }

    /// Whether the table has a zone of this name that is not there because zones are forwarded.
    fn is_own(&self, apex: &Name) -> bool {
        let is_added = self.local_above.contains(apex) && self.forwarded.contains(apex);
        !is_added && self.table.get(apex.as_wire()).is_some()
    }

    /// The listeners at which the zones of the view are, if there are zones elsewhere.
    fn zones(&self) -> Option<&ListenerSet> {
        self.view.as_ref()?.zones.as_deref()
    }

    /// Whether a zone is at the listeners of the view.
    fn has(&self, entry: &ZoneEntry) -> bool {
        self.view.as_ref().is_none_or(|view| view.listeners.has(entry.listeners()))
    }

    /// Whether a zone has single names in front of a forwarded one of the view, which has its name.
    fn is_in_front(&self, zone: &KnownZone, forwards: &Forwards) -> bool {
        let is_hosts = matches!(zone.unit.content, Content::Hosts(_));
        let is_at_place = |it: &KnownForward| {
            it.entry.apex == zone.entry.apex && it.entry.listeners() == zone.entry.listeners()
        };
        is_hosts && forwards.of_view(self.zones()).any(is_at_place)
    }

    /// The table as it is now, and whether what is forwarded differs from the one before.
    pub fn table(&mut self, sources: ViewSources<'_>) -> (ZoneTable, bool) {
        let forwards = sources.forwards;
        let is_stale = std::mem::take(&mut self.is_stale);
        let is_forwarding = forwards.of_view(self.zones()).next().is_some();
        if is_stale && (is_forwarding || !self.forwarded.is_empty()) {
            self.renew_forwarded(sources);
        }
        self.table.set_alias_resolver(forwards.alias_resolver().is_some());
        (self.table.table(), is_stale)
    }

    /// Makes anew what the table has because zones are forwarded.
    fn renew_forwarded(&mut self, sources: ViewSources<'_>) {
        let ViewSources { zones, forwards, local_names } = sources;
        for name in std::mem::take(&mut self.forwarded) {
            let zone = zones.value(&name).filter(|zone| self.has(&zone.entry));
            match zone.filter(|zone| !self.is_in_front(zone, forwards)) {
                Some(zone) => self.table.put(Arc::clone(&zone.entry)),
                None => self.table.remove(&name),
            };
        }
        let view = self.view.clone();
        let at = view.as_ref().and_then(|view| view.zones.as_deref());
        let forwarded: Vec<&KnownForward> = forwards.of_view(at).collect();
        let in_front = forwarded.iter().filter_map(|it| zones.value(&it.entry.apex));
        let in_front =
            in_front.filter(|zone| self.has(&zone.entry) && self.is_in_front(zone, forwards));
        let in_front: Vec<_> = in_front.collect();
        in_front.iter().for_each(|zone| drop(self.table.remove(&zone.entry.apex)));
        let hosts =
            in_front.iter().filter_map(|zone| Some((&zone.entry.apex, zone.data()?.clone())));
        let hosts: HashMap<_, _> = hosts.collect();
        let added = local_names.add_forwards(&mut self.table, &forwarded, &hosts);
        (self.forwarded, self.lent) = added;
        self.local_above = local_names.at_or_above(&forwarded);
    }
}
