//! What the configuration's reader does not know is taken out, and reported.

use super::keys::{self, NOT_READ, check, filter, geo};
use super::{Configuration, Geo, Pool, Probe};
use crate::document::{Effect, ReportLine};
use crate::error::Place;

impl Configuration {
    /// Takes out what the reader does not know; returns a line for each thing that is lost by that.
    pub fn make_readable(&mut self) -> Vec<ReportLine> {
        // The tests of this crate look at all that is translated.
        self.leave_out(if cfg!(test) { &[] } else { NOT_READ })
    }

    /// Takes out what needs one of these words.
    fn leave_out(&mut self, words: &[&str]) -> Vec<ReportLine> {
        let mut lines = Vec::new();
        if words.contains(&geo::SECTION) {
            lines.extend(self.geo.first_place().map(|place| lost(&place, keys::GEO)));
            self.geo = Geo::default();
        }
        for pool in self.pools.all_mut() {
            pool.leave_out(words, &mut lines);
        }
        lines
    }
}

impl Geo {
    /// Returns a place that something of the section comes from.
    fn first_place(&self) -> Option<Place> {
        let single = self.database.iter().chain(&self.default_site).map(|(_, place)| place);
        let networks = self.networks.iter().map(|network| &network.origin);
        let sites = self.sites.iter().filter_map(|site| site.origin.as_ref());
        single.chain(networks).chain(sites).next().cloned()
    }
}

impl Pool {
    /// Takes out what needs one of these words.
    fn leave_out(&mut self, words: &[&str], lines: &mut Vec<ReportLine>) {
        for word in self.choose.extract_if(.., |word| words.contains(word)) {
            lines.push(lost(&self.origin, word));
        }
        if self.choose.is_empty() {
            self.choose.push(filter::ROUND_ROBIN);
        }
        let Some(own) = &mut self.check else { return };
        if own.source.is_some() && words.contains(&check::SOURCE) {
            own.source = None;
            lines.push(lost(&self.origin, check::SOURCE));
        }
        let needed = match own.probe {
            Probe::Program(_) => Some(check::PROGRAM),
            Probe::File(_) => Some(check::FILE),
            _ => own.address.map(|_| check::ADDRESS),
        };
        if let Some(word) = needed.filter(|word| words.contains(word)) {
            self.check = None;
            lines.push(lost(&self.origin, word));
        }
    }
}

/// Returns the line of something that the reader does not know.
fn lost(place: &Place, word: &str) -> ReportLine {
    let why = match word {
        keys::GEO => "where clients are cannot be configured yet",
        check::PROGRAM | check::FILE | check::ADDRESS => {
            "such a check cannot be configured yet: the members of the pool are up"
        }
        check::SOURCE => "checks leave from the address that the system chooses",
        _ => "members cannot be chosen by that yet",
    };
    let (effect, what) = (Effect::Lost, word.to_owned());
    ReportLine { place: place.clone(), effect, what, why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steering::{Check, Member, Target};
    use std::net::{IpAddr, Ipv4Addr};
    use std::path::Path;

    #[test]
    fn what_is_not_read_is_taken_out_and_reported_once_each() {
        let place = Place { file: Path::new("/x").into(), line: 7, column: 1 };
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let member = Member::new(Target::Address(address), &place);
        let mut pool = Pool::new("web", &place, vec![member]);
        pool.choose = vec![filter::GEO, filter::FAILOVER];
        let program = Probe::Program(vec!["/bin/true".to_owned()]);
        pool.check = Some(Check { source: Some(address), ..Check::new(program) });
        let mut configuration = Configuration::default();
        configuration.geo.database = Some(("x.mmdb".to_owned(), place));
        configuration.pools.add(pool);
        assert!(configuration.leave_out(&[]).is_empty());
        let words = [geo::SECTION, filter::GEO, check::PROGRAM, check::SOURCE];
        let lines = configuration.leave_out(&words);
        let told: Vec<&str> = lines.iter().map(|line| &*line.what).collect();
        assert_eq!(told, ["[geo]", "geo", "source", "program"]);
        let pool = &configuration.pools.all()[0];
        assert_eq!(pool.choose, [filter::FAILOVER]);
        assert!(pool.check.is_none() && configuration.geo.database.is_none());
        assert!(configuration.leave_out(&words).is_empty());
    }
}
