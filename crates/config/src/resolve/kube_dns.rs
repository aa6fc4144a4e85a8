//! The ConfigMap of kube-dns that is followed.

use crate::Listener;
use crate::error::{Contradiction, Origin};
use crate::keys::KubeDnsKeys;
use crate::kube_dns::KubeDns;
use crate::reader::Reader;
use crate::section::Keys;

/// Reads where the ConfigMap is, and the place of that key; none within, if none is followed.
pub(super) fn read(
    reader: &mut Reader<'_, '_>,
    listeners: &[(Listener, Origin)],
) -> Option<Option<(KubeDns, Origin)>> {
    let KubeDnsKeys { config_map, bootstrap } = KubeDnsKeys::read(reader)?;
    let Some(directory) = config_map else {
        if !bootstrap.is_empty() {
            let needs = Contradiction::Needs("bootstrap", "config-map");
            reader.contradict(Some("bootstrap"), needs);
        }
        return Some(None);
    };
    let listens_on = listeners.iter().map(|(listener, _)| listener.address).collect();
    let kube_dns = KubeDns::new(directory, bootstrap, listens_on);
    Some(Some((kube_dns, reader.origin_of("config-map"))))
}
