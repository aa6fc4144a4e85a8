//! The zones of all views as one list, each with the listeners that it is at.

use super::source::Kind;
use super::table::ZoneEntry;
use super::{Directory, Importer, key};
use crate::document::Document;
use crate::document::Effect::Lost;
use crate::error::Place;
use std::collections::HashMap;
use zonda_wire::Name;

/// Names of zones that have data of their own, each with its line and its views.
#[derive(Default)]
struct OwnedNames(HashMap<Name, (Place, Vec<usize>)>);

impl OwnedNames {
    /// Adds names, unless one of them has other data in other views: returns that and its line.
    fn take(&mut self, all: &[Name], views: &[usize], place: &Place) -> Result<(), (Name, Place)> {
        let elsewhere = all.iter().find_map(|name| {
            let (first, their_views) = self.0.get(name)?;
            let is_apart = !views.iter().any(|view| their_views.binary_search(view).is_ok());
            is_apart.then(|| (name.clone(), first.clone()))
        });
        if let Some(found) = elsewhere {
            return Err(found);
        }
        for name in all {
            let entry = self.0.entry(name.clone());
            entry.or_insert_with(|| (place.clone(), views.to_vec()));
        }
        Ok(())
    }
}

impl Importer<'_> {
    /// Joins zones of several views that would be written alike. Of the zones of a name that
    /// differ, one alone may have data of its own: each of the rest is forwarded, or lost.
    pub(super) fn join_views(&mut self) {
        for mut directory in std::mem::take(&mut self.directories) {
            directory.views = self.views_of(directory.block).to_vec();
            if !directory.views.is_empty() || self.views.is_empty() {
                self.directories.push(directory); // else its block is at no address
            }
        }
        if self.views.len() < 2 {
            return;
        }
        let mut numbers: HashMap<(Name, String), usize> = HashMap::new();
        let mut joined: Vec<ZoneEntry> = Vec::new();
        for entry in std::mem::take(&mut self.zones) {
            let id = (entry.name.clone(), self.text_of(&entry));
            match numbers.get(&id).and_then(|at| joined.get_mut(*at)) {
                Some(same) => same.views.extend(entry.views),
                None => {
                    numbers.insert(id, joined.len());
                    joined.push(entry);
                }
            }
        }
        joined.sort_by_cached_key(|entry| (entry.name.label_count(), entry.name.to_string()));
        let mut owned = OwnedNames::default();
        self.join_directories(&mut owned);
        for entry in joined {
            let Some(first) = entry.pieces.first() else { continue };
            if matches!(first.kind, Kind::Forward | Kind::Whoami) {
                self.zones.push(entry);
                continue;
            }
            let place = self.source(first).place.clone();
            let mut names = entry.reverse.clone();
            names.push(entry.name.clone());
            match owned.take(&names, &entry.views, &place) {
                Ok(()) => self.zones.push(entry),
                Err((name, first)) => self.lose_zone(&place, &name, &first),
            }
        }
    }

    /// Reports a zone that has data of its own beside another one of the same name.
    fn lose_zone(&mut self, place: &Place, name: &Name, first: &Place) {
        let why = format!(
            "{first} has other data for the zone at other addresses, and only one of the two can \
             be served here: have another server serve this one, and write `forward` to that \
             server in its place"
        );
        self.leave_at(place, Lost, key::written(name), why);
    }

    /// Joins directories that would be written alike, and reports those with a zone that another
    /// one at other addresses has.
    fn join_directories(&mut self, owned: &mut OwnedNames) {
        let mut numbers: HashMap<String, usize> = HashMap::new();
        let mut joined: Vec<Directory> = Vec::new();
        for directory in std::mem::take(&mut self.directories) {
            let text = self.text_of_directory(&directory);
            match numbers.get(&text).and_then(|at| joined.get_mut(*at)) {
                Some(same) => {
                    same.views.extend(directory.views);
                    same.views.sort_unstable();
                    same.views.dedup();
                }
                None => {
                    numbers.insert(text, joined.len());
                    joined.push(directory);
                }
            }
        }
        for directory in joined {
            let names = self.names_of_directory(&directory);
            match owned.take(&names, &directory.views, &directory.place) {
                Ok(()) => self.directories.push(directory),
                Err((name, first)) => self.lose_zone(&directory.place, &name, &first),
            }
        }
    }

    /// Returns the zones whose files a directory has now.
    fn names_of_directory(&mut self, directory: &Directory) -> Vec<Name> {
        let files = self.files.list(&directory.path).unwrap_or_default();
        let zones = files.iter().filter_map(|file| {
            let zone = file.strip_suffix(".zone").or_else(|| file.strip_suffix(".json"))?;
            zone.parse::<Name>().ok()
        });
        zones.map(|zone| zone.to_lowercase()).collect()
    }

    /// Returns what is written of a zone, without the lines that it comes from.
    fn text_of(&self, entry: &ZoneEntry) -> String {
        let mut document = Document::without_origins();
        match entry.is_whoami() {
            true => self.write_whoami_of(&mut document, entry, None),
            false => self.write_zone(&mut document, entry, None),
        }
        document.into_text()
    }

    /// Returns what is written of a directory, without the lines that it comes from.
    fn text_of_directory(&self, directory: &Directory) -> String {
        let mut document = Document::without_origins();
        self.write_directory(&mut document, directory, None);
        document.into_text()
    }
}
