//! The tables that workers read: of all zones, and of each view.

use super::ZoneSet;
use super::view_table::{ViewSources, ViewTable};
use crate::views::{View, ViewList};
use std::sync::Arc;
use zonda_engine::zones::ZoneTable;

/// The tables of zones that a snapshot is made of.
pub struct ServedTables {
    /// The table of all zones, and of two zones of a name one.
    pub whole: ZoneTable,
    /// The zones of each view; none where there are no views.
    pub views: Vec<(Arc<View>, ZoneTable)>,
    /// The place of the view of each listener, by the listener's place in the configuration.
    pub of_listener: Vec<u16>,
}

impl ZoneSet {
    /// Puts into force which zones are at which listeners; whether that differs from before.
    pub(super) fn set_views(&mut self, views: ViewList) -> bool {
        if views == self.views {
            return false;
        }
        self.tables.truncate(1);
        for view in &views.views {
            let mut table = ViewTable::new(Some(Arc::clone(view)), self.seed);
            for zone in self.zones.table().iter() {
                table.put(zone, &self.forwards);
            }
            self.tables.push(table);
        }
        self.views = views;
        true
    }

    /// The tables of zones, for whose counting there is room from now on, and whether the names in
    /// them or what upstreams answer differ from the tables before.
    pub fn tables(&mut self, mut names_changed: bool) -> (ServedTables, bool) {
        self.numbers.make_room();
        names_changed |= std::mem::take(&mut self.names_changed);
        let sources = ViewSources {
            zones: self.zones.table(),
            forwards: &self.forwards,
            local_names: &self.local_names,
        };
        let (mut whole, mut views) = (None, Vec::new());
        for table in &mut self.tables {
            let (zones, is_changed) = table.table(sources);
            names_changed |= is_changed;
            match &table.view {
                None => whole = Some(zones),
                Some(view) => views.push((Arc::clone(view), zones)),
            }
        }
        let whole = whole.unwrap_or_else(|| ZoneTable::new(Vec::new(), self.seed));
        let of_listener = self.views.of_listener.clone();
        (ServedTables { whole, views, of_listener }, names_changed)
    }
}
