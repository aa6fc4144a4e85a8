//! One watch of several names that are watched each by itself.

use crate::{Changes, StoreError, Watch};
use std::time::{Duration, Instant};
use zonda_wire::Name;

/// How long one watch is waited for while there are more watches.
const TURN: Duration = Duration::from_millis(50);

/// Watches of several names, asked in turn.
struct Watches(Vec<Box<dyn Watch>>);

/// Watches each name by itself.
pub fn watch_each(
    zones: &[Name],
    watch: impl Fn(&Name) -> Result<Box<dyn Watch>, StoreError>,
) -> Result<Box<dyn Watch>, StoreError> {
    match zones {
        [zone] => watch(zone),
        zones => Ok(Box::new(Watches(zones.iter().map(watch).collect::<Result<_, _>>()?))),
    }
}

impl Watch for Watches {
    fn wait(&mut self, patience: Duration) -> Result<Changes, StoreError> {
        let limit = Instant::now() + patience;
        loop {
            let mut changes = Changes::none();
            for watch in &mut self.0 {
                changes.merge(watch.wait(Duration::ZERO)?);
            }
            let left = limit.saturating_duration_since(Instant::now());
            if !changes.is_none() || left.is_zero() {
                return Ok(changes);
            }
            match self.0.first_mut() {
                Some(first) => changes.merge(first.wait(left.min(TURN))?),
                None => std::thread::sleep(left.min(TURN)),
            }
            if !changes.is_none() {
                return Ok(changes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Announcer;

    #[test]
    fn a_change_of_any_of_several_names_is_noticed() {
        let announcers = [Announcer::default(), Announcer::default(), Announcer::default()];
        let zones = ["a", "b", "c"].map(|name| name.parse::<Name>().unwrap());
        let place = |zone: &Name| zones.iter().position(|other| other == zone).unwrap();
        let mut watch = watch_each(&zones, |zone| Ok(announcers[place(zone)].watch())).unwrap();
        assert!(watch.wait(Duration::ZERO).unwrap().is_none());
        for (announcer, owner) in announcers.iter().zip(["x.a", "x.b", "x.c"]) {
            announcer.announce(owner);
            let changes = watch.wait(Duration::from_secs(5)).unwrap();
            assert!(changes.owners().unwrap().iter().eq([owner]), "{changes:?}");
        }
        let asked = Instant::now();
        assert!(watch.wait(Duration::from_millis(80)).unwrap().is_none());
        assert!(asked.elapsed() >= Duration::from_millis(80));
    }
}
