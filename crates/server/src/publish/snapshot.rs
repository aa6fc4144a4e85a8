//! Snapshots, made of the tables of zones and of all else that workers answer from.

use crate::settings::ServedSettings;
use crate::views::ViewPlaces;
use crate::zone_set::tables::ServedTables;
use std::sync::Arc;
use zonda_engine::code::Handlers;
use zonda_engine::steering::Steering;
use zonda_engine::zones::ZoneTable;
use zonda_engine::{Settings, Snapshot, Views};

/// The first bit of a generation that has the place of a view: there are fewer changes than would
/// reach it.
const VIEW_SHIFT: u32 = 48;

/// A snapshot, of which no other has the generation.
pub fn snapshot(
    tables: ServedTables,
    (handlers, steering, settings): (
        &Option<Arc<Handlers>>,
        Option<Arc<Steering>>,
        &ServedSettings,
    ),
    generation: u64,
) -> Snapshot {
    let make = |zones: ZoneTable, settings: &Arc<Settings>| Snapshot {
        zones,
        handlers: handlers.clone(),
        steering: steering.clone(),
        settings: Arc::clone(settings),
        generation,
        view: 0,
        views: None,
    };
    let ServedTables { whole, views, places } = tables;
    let snapshots: Box<[Snapshot]> = views
        .into_iter()
        .zip(1_u64..)
        .map(|((view, zones), place)| Snapshot {
            generation: generation | place << VIEW_SHIFT,
            view: view.listeners.number(),
            handlers: handlers.clone().filter(|_| !view.listeners.is_closed()),
            ..make(zones, &settings.of_view(&view))
        })
        .collect();
    let has_views = !snapshots.is_empty();
    let ViewPlaces { of_listener, of_closed } = places;
    let of_listener = of_listener.into();
    let views = has_views.then(|| Box::new(Views { of_listener, snapshots, of_closed }));
    Snapshot { views, ..make(whole, &settings.whole) }
}
