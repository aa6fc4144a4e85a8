//! Files of networks and latencies, which programs change.

use crate::error::GeoMistake;
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zonda_balance::geography::{GeoFiles, Geography, Latencies, NetworkKey};
use zonda_geo::{Prefix, SiteId};

/// Most milliseconds of a latency: more is no answer.
const LATENCY_MAX_MILLIS: f64 = 60_000.0;

/// A number that is another one when a file was written or replaced.
pub(crate) fn stamp(paths: &[PathBuf]) -> u64 {
    let state = |path: &Path| {
        let metadata = std::fs::metadata(path).ok()?;
        let changed = (metadata.mtime(), metadata.mtime_nsec(), metadata.ctime());
        Some((metadata.dev(), metadata.ino(), metadata.len(), changed, metadata.ctime_nsec()))
    };
    let mut hasher = DefaultHasher::new();
    paths.iter().for_each(|path| state(path).hash(&mut hasher));
    hasher.finish()
}

/// The state that files have now.
pub(super) trait PresentStamp {
    /// A number that is another one after each change of the files.
    fn present_stamp(&self) -> u64;
}

impl PresentStamp for GeoFiles {
    fn present_stamp(&self) -> u64 {
        let paths = [&self.networks, &self.latencies].into_iter().flatten();
        let paths: Vec<PathBuf> = paths.cloned().collect();
        if paths.is_empty() { 0 } else { stamp(&paths) }
    }
}

/// Reading what files say of networks.
pub(super) trait ReadFiles {
    /// Takes over what files say now, beside what is listed in the configuration.
    fn read_files(&mut self, files: GeoFiles) -> Result<(), GeoMistake>;
}

impl ReadFiles for Geography {
    fn read_files(&mut self, mut files: GeoFiles) -> Result<(), GeoMistake> {
        files.stamp = files.present_stamp(); // a change from now on is another state
        let numbers: HashMap<&str, u16> = self.sites.iter().map(|it| &*it.name).zip(0..).collect();
        let mut networks = files.listed.clone();
        if let Some(path) = &files.networks {
            each_line(path, |words| {
                let &[prefix, site] = words else {
                    return Err("write a prefix and a site, as in `10.1.0.0/16 fra`".to_owned());
                };
                networks.push((prefix_of(prefix)?, SiteId(site_of(&numbers, site)?.into())));
                Ok(())
            })?;
        }
        let mut rows = BTreeMap::<NetworkKey, Vec<(u16, u32)>>::new();
        if let Some(path) = &files.latencies {
            each_line(path, |words| {
                let (prefix, site, micros) = latency(&numbers, words)?;
                let row = rows.entry(NetworkKey::from(prefix)).or_default();
                row.retain(|(known, _)| *known != site); // the last line counts
                row.push((site, micros));
                Ok(())
            })?;
        }
        (self.networks, self.latencies) = (networks, Arc::new(Latencies { networks: rows }));
        self.files = files;
        Ok(())
    }
}

/// Calls a function with the words of each line of a file; a file that is not there is empty.
fn each_line(
    path: &Path,
    mut take: impl FnMut(&[&str]) -> Result<(), String>,
) -> Result<(), GeoMistake> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(GeoMistake::Unreadable(path.to_owned(), error.to_string())),
    };
    for (line, number) in text.lines().zip(1..) {
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        if !words.is_empty() {
            take(&words).map_err(|why| GeoMistake::Line(path.to_owned(), number, why))?;
        }
    }
    Ok(())
}

/// The network, the site and the microseconds of a line.
fn latency(numbers: &HashMap<&str, u16>, words: &[&str]) -> Result<(Prefix, u16, u32), String> {
    let &[prefix, site, millis] = words else {
        let form = "write a prefix, a site and milliseconds, as in `10.1.0.0/16 fra 12.5`";
        return Err(form.to_owned());
    };
    let is_sound = |millis: &f64| (0.0..=LATENCY_MAX_MILLIS).contains(millis);
    let parsed = millis.parse().ok().filter(is_sound);
    let form = || format!("`{millis}` is no latency; write milliseconds up to 60000");
    let micros = (parsed.ok_or_else(form)? * 1000.0) as u32; // at most 60 million
    Ok((prefix_of(prefix)?, site_of(numbers, site)?, micros))
}

/// The network of a text.
fn prefix_of(text: &str) -> Result<Prefix, String> {
    text.parse().map_err(|error| format!("`{text}`: {error}"))
}

/// The number of a site.
fn site_of(numbers: &HashMap<&str, u16>, name: &str) -> Result<u16, String> {
    let unknown = || format!("no site `{name}`; name it in `sites` of [geo], or at a member");
    numbers.get(name).copied().ok_or_else(unknown)
}
