//! `autopath [ZONES…] @kubernetes` and `autopath [ZONES…] FILE`.

use super::Importer;
use super::key;
use super::parser::Line;
use super::source::{Kind, Source};
use crate::document::Effect::{Differs, Lost};
use crate::error::{ImportError, Problem};
use crate::tree::fail;
use zonda_wire::Name;

/// What is different about search paths of clusters.
const BY_NAME: &str = "the namespace is read from the name, whatever pod asks; a namespace opts \
    out by the annotation zonda/autopath: \"false\"";

impl Importer<'_> {
    /// Reads `autopath`, after all other lines of its block.
    pub(super) fn autopath(&mut self, line: &Line) -> Result<(), ImportError> {
        line.without_block()?;
        let Some((path, zones)) = line.arguments().split_last() else {
            return Err(line.expected("`@kubernetes` or the path of a file"));
        };
        let zones = key::all_zones(zones)?;
        let domains = match path.text.strip_prefix('@') {
            Some("kubernetes") => None,
            Some(_) => {
                self.leave(line, Lost, "search paths are followed for clusters only");
                return Ok(());
            }
            None => Some(self.search_domains(line, &path.text)?),
        };
        let (place, mut has_any) = (line.place().clone(), false);
        let is_cluster = |it: &&mut Source| it.kind == Kind::Kubernetes && !it.is_external();
        for source in self.current().sources.iter_mut().filter(is_cluster) {
            let own: Vec<Name> =
                source.zones.iter().filter(|zone| !key::is_reverse(zone)).cloned().collect();
            let is_named = |own: &Name| zones.iter().any(|zone| key::is_in(own, zone));
            let is_for = zones.is_empty() || own.iter().any(is_named);
            // Zonda refuses both: it could not be told which of them a name is for.
            if !is_for || own.iter().any(|zone| source.fall_through.has(zone)) {
                continue;
            }
            has_any = true;
            source.keys.push(("autopath", true.into(), place.clone()));
            if let Some(domains) = &domains {
                let is_outside = |it: &&Name| !own.iter().any(|zone| key::is_in(it, zone));
                let outside: Vec<String> =
                    domains.iter().filter(is_outside).map(key::written).collect();
                let outside = if outside.is_empty() { vec![".".to_owned()] } else { outside };
                source.keys.push(("search-domains", outside[..].into(), place.clone()));
            }
        }
        match has_any {
            true => self.leave(line, Differs, BY_NAME),
            false => self.leave(line, Lost, "there is no cluster here whose names end there"),
        }
        Ok(())
    }

    /// Returns the search domains that a file such as `/etc/resolv.conf` has now.
    fn search_domains(&mut self, line: &Line, path: &str) -> Result<Vec<Name>, ImportError> {
        let path = self.base.join(path);
        let octets = self.files.read(&path);
        let octets = octets.map_err(|error| {
            fail(line.place().clone(), Problem::Unreadable(path.clone(), error))
        })?;
        let text = String::from_utf8_lossy(&octets);
        let mut rows = text.lines().map(|row| row.split_ascii_whitespace().collect::<Vec<_>>());
        let row = rows.rfind(|row| row.first() == Some(&"search"));
        let words = row.unwrap_or_default();
        Ok(words.iter().skip(1).filter_map(|word| word.parse().ok()).collect())
    }
}
