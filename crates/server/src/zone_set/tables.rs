//! The tables that workers read: of all zones, and of each view.

use super::ZoneSet;
use super::view_table::{ViewSources, ViewTable};
use crate::views::{View, ViewList, ViewPlaces};
use std::sync::Arc;
use zonda_engine::zones::ZoneTable;

/// The tables of zones that a snapshot is made of.
pub struct ServedTables {
    /// The table of all zones, and of two zones of a name one.
    pub whole: ZoneTable,
    /// The zones of each view; none where there are no views.
    pub views: Vec<(Arc<View>, ZoneTable)>,
    /// The view that each listener has.
    pub places: ViewPlaces,
}

impl ZoneSet {
    /// Puts into force which zones are at which listeners; whether that differs from before, or a
    /// panic may have kept tables and settings from being what the views say.
    pub(super) fn set_views(&mut self, views: ViewList) -> bool {
        if views == self.views && !self.is_doubtful {
            return false;
        }
        let table_of = |view: &Arc<View>| {
            let mut table = ViewTable::new(Some(Arc::clone(view)), self.seed);
            for zone in self.zones.table().iter() {
                table.put(zone, &self.forwards);
            }
            table
        };
        // All at once: what a panic leaves behind is published.
        let tables: Vec<ViewTable> = views.views.iter().map(table_of).collect();
        self.tables.truncate(1);
        self.tables.extend(tables);
        self.views = views;
        self.is_doubtful = false;
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
        let places = self.views.places.clone();
        (ServedTables { whole, views, places }, names_changed)
    }
}

#[cfg(all(test, feature = "whole"))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::engine_counters::EngineCounters;
    use crate::settings::{ServedSettings, SettingsBuilder};
    use std::path::Path;
    use zonda_config::{Config, Flags};
    use zonda_zone::HashSeed;

    /// A server with a zone and a rule at the second of its listeners.
    fn config() -> Config {
        let text = "version = 1\n[[listen]]\naddress = \"127.0.0.1:1\"\n[[listen]]\n\
                    address = \"127.0.0.1:2\"\n[[zone]]\nname = \".\"\nlisten = [\"127.0.0.1:2\"]\n\
                    [zone.forward]\nto = [\"192.0.2.1\"]\n[[rewrite]]\nexact = \"a\"\nto = \"b\"\n\
                    listen = [\"127.0.0.1:2\"]\n";
        let text = (Path::new("/zonda.toml"), text.to_owned());
        Config::load_text(text, [], &Flags::default()).unwrap().config
    }

    /// The number of zones of each view.
    fn zones(zone_set: &mut ZoneSet) -> Vec<usize> {
        let (tables, _) = zone_set.tables(false);
        tables.views.iter().map(|(_, zones)| zones.iter().count()).collect()
    }

    #[test]
    fn a_reload_after_a_panic_makes_the_tables_of_views_anew() {
        let config = config();
        let mut zone_set = ZoneSet::new(HashSeed(1), EngineCounters::new(0), &config);
        zone_set.set_forwards(&config);
        let sound = zones(&mut zone_set);
        assert!(sound[0] == 0 && sound[1] > 0, "{sound:?}");
        assert!(!zone_set.set_forwards(&config), "nothing differs");
        zone_set.tables.truncate(1); // as a panic might leave them
        zone_set.note_panic();
        assert!(zone_set.set_forwards(&config), "settings are to be made anew, too");
        assert_eq!(zones(&mut zone_set), sound);
    }

    #[test]
    fn a_view_without_settings_of_its_own_has_no_rules() {
        let config = config();
        let mut zone_set = ZoneSet::new(HashSeed(1), EngineCounters::new(0), &config);
        zone_set.set_forwards(&config);
        let settings = zone_set.settings(&mut SettingsBuilder::default(), &config);
        let has_rules = |settings: &ServedSettings, view| settings.of_view(view).rewrites.is_some();
        let views = zone_set.views.views.clone();
        assert!(!has_rules(&settings, &views[0]) && has_rules(&settings, &views[1]));
        zone_set.set_views(ViewList::default());
        let without = zone_set.settings(&mut SettingsBuilder::default(), &config);
        assert!(without.whole.rewrites.is_some() && !has_rules(&without, &views[1]));
    }
}
