//! `autopath [ZONES…] @kubernetes` and `autopath [ZONES…] FILE`.

use super::Importer;
use super::key;
use super::parser::Line;
use super::source::{Kind, Source};
use crate::document::Effect::{Differs, Lost, Needless};
use crate::error::{ImportError, Problem};
use crate::tree::fail;
use zonda_wire::Name;

/// What is different about search paths of clusters.
const BY_NAME: &str = "the namespace is read from the name, whatever pod asks; a namespace opts \
    out by the annotation zonda/autopath: \"false\"";
/// What is said where no source of the block has search paths.
const NO_CLUSTER: &str = "there is no cluster here whose names end there";

impl Importer<'_> {
    /// Reads `autopath`, after all other lines of its block.
    pub(super) fn autopath(&mut self, line: &Line) -> Result<(), ImportError> {
        line.without_block()?;
        let Some((path, zones)) = line.arguments().split_last() else {
            return Err(line.expected("`@kubernetes` or the path of a file"));
        };
        let zones = match zones {
            [] => self.current().zones(),
            zones => key::all_zones(zones)?,
        };
        match path.text.strip_prefix('@') {
            Some("kubernetes") => self.follow_all(line, &zones),
            Some(_) => self.leave(line, Lost, "search paths are followed for clusters only"),
            None => {
                let domains = self.search_domains(line, &path.text)?;
                self.follow_domains(line, &zones, &domains);
            }
        }
        Ok(())
    }

    /// Has the search paths of pods followed in all clusters with names in `zones`.
    fn follow_all(&mut self, line: &Line, zones: &[Name]) {
        let (place, mut has_any, mut refusal) = (line.place().clone(), false, None);
        for source in self.current().sources.iter_mut().filter(is_cluster) {
            let own = own_zones(source);
            if !own.iter().any(|own| zones.iter().any(|zone| key::is_in(own, zone))) {
                continue;
            }
            match fall_through(source, &own) {
                Some(why) => refusal = Some(why),
                None => {
                    has_any = true;
                    source.keys.push(("autopath", true.into(), place.clone()));
                }
            }
        }
        if has_any {
            self.leave(line, Differs, BY_NAME);
        }
        match refusal {
            Some(why) => self.leave(line, Lost, why),
            None if !has_any => self.leave(line, Lost, NO_CLUSTER),
            None => {}
        }
    }

    /// Has search paths with the domains of a file followed, if these are those of the pods of a
    /// cluster. CoreDNS follows them for names of `zones` below the first domain alone.
    fn follow_domains(&mut self, line: &Line, zones: &[Name], domains: &[Name]) {
        let [first, ..] = domains else {
            return self.leave(line, Lost, "the file has no search domains");
        };
        let is_asked = |zone: &Name| key::is_in(first, zone) || key::is_in(zone, first);
        if !zones.iter().any(is_asked) {
            let why = format!("no name of the line's zones ends in {}", key::written(first));
            return self.leave(line, Needless, why);
        }
        let (place, mut found) = (line.place().clone(), None);
        for source in self.current().sources.iter_mut().filter(is_cluster) {
            let own = own_zones(source);
            let path = own.iter().find_map(|apex| hosts_domains(apex, domains));
            let Some(hosts) = path.filter(|_| zones.iter().any(|zone| key::is_in(first, zone)))
            else {
                continue;
            };
            found = Some(fall_through(source, &own));
            if let Some(None) = found {
                let is_outside = |it: &&Name| !own.iter().any(|zone| key::is_in(it, zone));
                let outside: Vec<String> =
                    hosts.iter().filter(is_outside).map(key::written).collect();
                let outside = if outside.is_empty() { vec![".".to_owned()] } else { outside };
                source.keys.push(("autopath", true.into(), place.clone()));
                source.keys.push(("search-domains", outside[..].into(), place.clone()));
                break;
            }
        }
        match found {
            Some(Some(why)) => self.leave(line, Lost, why),
            Some(None) => {
                let why = format!(
                    "CoreDNS follows the search path of {} alone; here, {BY_NAME}",
                    key::written(first)
                );
                self.leave(line, Differs, why);
            }
            None => {
                let why = "the file's `search` is not that of a pod, NAMESPACE.svc.ZONE svc.ZONE \
                    ZONE: search paths are followed for clusters only";
                self.leave(line, Lost, why);
            }
        }
    }

    /// Returns the search domains that a file such as `/etc/resolv.conf` has now.
    fn search_domains(&mut self, line: &Line, path: &str) -> Result<Vec<Name>, ImportError> {
        let path = self.base.join(path);
        let octets = self.files.read(&path);
        let octets = octets.map_err(|error| {
            fail(line.place().clone(), Problem::Unreadable(path.clone(), error))
        })?;
        let text = String::from_utf8_lossy(&octets);
        let mut domains = Vec::new();
        // The last row of either kind counts.
        for row in text.lines() {
            let mut words = row.split_ascii_whitespace();
            let count = match words.next() {
                Some("search") => usize::MAX,
                Some("domain") => 1,
                _ => continue,
            };
            let names = words.take(count).filter_map(|word| word.parse::<Name>().ok());
            domains = names.map(|name| name.to_lowercase()).collect();
        }
        Ok(domains)
    }
}

/// Whether a source has the names of a cluster's pods.
fn is_cluster(source: &&mut Source) -> bool {
    source.kind == Kind::Kubernetes && !source.is_external()
}

/// Returns the zones of a cluster that are not of reverse names.
fn own_zones(source: &Source) -> Vec<Name> {
    source.zones.iter().filter(|zone| !key::is_reverse(zone)).cloned().collect()
}

/// Returns why search paths cannot be followed in a cluster, if names of its own fall through.
fn fall_through(source: &Source, own: &[Name]) -> Option<String> {
    own.iter().any(|zone| source.fall_through.has(zone)).then(|| {
        format!(
            "the `fallthrough` of {} is for the same names, and names that fall through are not \
             searched: limit it to other zones, such as `fallthrough in-addr.arpa ip6.arpa`",
            source.place
        )
    })
}

/// Returns the search domains behind those of a cluster's pods, if all are the search path of a pod
/// in a namespace of the cluster with this apex.
fn hosts_domains<'d>(apex: &Name, domains: &'d [Name]) -> Option<&'d [Name]> {
    let [first, services, zone, hosts @ ..] = domains else { return None };
    let wanted: Name = match apex.label_count() {
        0 => "svc.".parse().ok()?,
        _ => format!("svc.{apex}").parse().ok()?,
    };
    let above = zonda_wire::name::parent(first.as_wire())?;
    let is_path = *zone == *apex && *services == wanted && above == wanted.as_wire();
    is_path.then_some(hosts)
}
