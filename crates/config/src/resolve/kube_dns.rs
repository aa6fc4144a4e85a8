//! The ConfigMap of kube-dns that is followed.

use crate::error::{Contradiction, Origin, PlaceMistake};
use crate::keys::KubeDnsKeys;
use crate::kube_dns::KubeDns;
use crate::reader::Reader;
use crate::section::Keys;
use crate::{Listener, Zone};
use zonda_wire::Name;

/// Reads where the ConfigMap is, and the place of that key; none within, if none is followed.
pub(super) fn read(
    reader: &mut Reader<'_, '_>,
    listeners: &[(Listener, Origin)],
    zones: &[Zone],
) -> Option<Option<(KubeDns, Origin)>> {
    let KubeDnsKeys { config_map, bootstrap } = KubeDnsKeys::read(reader)?;
    let Some(directory) = config_map else {
        if !bootstrap.is_empty() {
            let needs = Contradiction::Needs("bootstrap", "config-map");
            reader.contradict(Some("bootstrap"), needs);
        }
        return Some(None);
    };
    let is_root = |zone: &&Zone| zone.name.as_ref() == Some(&Name::root());
    if zones.iter().filter(is_root).count() > 1 {
        let mistake = PlaceMistake::SeveralRoots;
        reader.contradict(Some("config-map"), Contradiction::Place(mistake));
    }
    let listens_on = listeners.iter().map(|(listener, _)| listener.address).collect();
    let kube_dns = KubeDns::new(directory, bootstrap, listens_on);
    Some(Some((kube_dns, reader.origin_of("config-map"))))
}
