//! Metrics of catalogs whose members are served.

use super::page::Page;
use crate::control::Control;

/// Writes how many members catalogs have, if there are any.
pub fn write(page: &mut Page, control: &Control) {
    let states = control.stores.catalogs.states();
    if states.is_empty() {
        return;
    }
    let mut states: Vec<_> = states.iter().map(|(name, it)| (name.to_string(), it)).collect();
    states.sort_by(|(one, _), (other, _)| one.cmp(other));
    let name = "zonda_catalog_members";
    page.metric(name, "gauge", "Zones that are members of a catalog.");
    for (catalog, state) in &states {
        page.value(name, &[("catalog", catalog)], state.members);
    }
    let name = "zonda_catalog_left_out";
    page.metric(name, "gauge", "Zones that a catalog lists and that are not its members.");
    for (catalog, state) in &states {
        page.value(name, &[("catalog", catalog)], state.left_out);
    }
    let name = "zonda_catalog_refused";
    page.metric(name, "gauge", "Whether the version in force of a catalog is not taken.");
    for (catalog, state) in &states {
        page.value(name, &[("catalog", catalog)], u8::from(state.error.is_some()));
    }
}
