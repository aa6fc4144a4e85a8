//! Where the names of a cluster are kept for the next start.

use super::store_feed::lock;
use crate::state_directory;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use zonda_config::{Config, KubernetesKeys, SnapshotPlace};
use zonda_wire::Name;

/// Characters of a zone's name that its file is called by, at most.
const NAME_CHARS_MAX: usize = 100;

/// The places where the names of clusters are kept.
#[derive(Default)]
pub struct SnapshotPlaces {
    /// Whether it was told that names cannot be kept.
    is_told: AtomicBool,
    /// The directories in which files could be made.
    writable: Mutex<HashSet<PathBuf>>,
}

impl SnapshotPlaces {
    /// Returns the file of a zone, if it has one. Where the state directory cannot be used, it has
    /// none, which is logged once.
    pub fn file(&self, config: &Config, (apex, keys): (&Name, &KubernetesKeys)) -> Option<PathBuf> {
        match keys.snapshot.as_ref()? {
            SnapshotPlace::File(path) => Some(path.clone()),
            SnapshotPlace::StateDirectory => match self.in_state_directory(config, apex, keys) {
                Ok(path) => Some(path),
                Err(error) => {
                    if !self.is_told.swap(true, Relaxed) {
                        tracing::warn!(zone = %apex, error, "names of clusters are not kept for a \
                            start without the API server");
                    }
                    None
                }
            },
        }
    }

    /// Returns the file in the state directory, which is made if it is not there.
    fn in_state_directory(
        &self,
        config: &Config,
        apex: &Name,
        keys: &KubernetesKeys,
    ) -> Result<PathBuf, String> {
        let directory = state_directory::path(config)?;
        let mut writable = lock(&self.writable);
        if !writable.contains(&directory) {
            state_directory::make(&directory)?;
            state_directory::check(&directory)?;
            writable.insert(directory.clone());
        }
        Ok(directory.join(file_name(apex, keys, &|name| std::env::var(name).ok())))
    }
}

/// Returns the name of a zone's file. Clusters that are reached in other ways have other files, as
/// the API of one may be away while that of another is asked.
fn file_name(
    apex: &Name,
    keys: &KubernetesKeys,
    variable: &dyn Fn(&str) -> Option<String>,
) -> String {
    let text = apex.to_string();
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_.".contains(it);
    let plain = text.chars().map(|it| if is_plain(it) { it } else { '_' });
    let plain: String = plain.take(NAME_CHARS_MAX).collect();
    let place = |path: &Option<PathBuf>| path.as_ref().map(|it| it.display().to_string());
    let mut parts = vec![Some(text.clone()), place(&keys.kubeconfig)];
    parts.extend([keys.context.clone(), keys.endpoint.as_ref().map(ToString::to_string)]);
    let variables = ["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"]; // those of a pod
    parts.extend(variables.map(variable));
    let hash = parts.iter().fold(FNV_BASIS, |hash, part| {
        let octets = part.as_deref().unwrap_or_default().bytes().chain([0xff]);
        octets.fold(hash, |hash, octet| (hash ^ u64::from(octet)).wrapping_mul(FNV_PRIME))
    });
    format!("cluster-{}-{hash:016x}.snapshot", plain.trim_end_matches('.'))
}

/// Start and factor of the hash FNV-1a, which is the same in all versions.
const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::feed::cluster_file::tests::own_keys as keys;
    use std::fs;
    use std::path::Path;
    use zonda_config::Flags;

    #[test]
    fn clusters_that_are_reached_in_other_ways_have_files_of_their_own() {
        let name = |zone: &str, more: &str, host: &str| {
            let host = host.to_owned();
            let variable = |name: &str| (name == "KUBERNETES_SERVICE_HOST").then(|| host.clone());
            file_name(&zone.parse().unwrap(), &keys(more), &variable)
        };
        let first = name("cluster.local", "", "10.96.0.1");
        assert_eq!(first, name("cluster.local", "", "10.96.0.1"));
        assert!(first.starts_with("cluster-cluster.local-"), "{first}");
        for other in [
            name("cluster.local", "", "10.97.0.1"),
            name("cluster.local", "kubeconfig = \"/other\"", "10.96.0.1"),
            name("cluster.example", "", "10.96.0.1"),
        ] {
            assert_ne!(first, other);
        }
        assert!(!name("a\\/b.example", "", "").contains('/'));
    }

    #[test]
    fn a_directory_that_cannot_be_written_to_is_told_once_and_keeps_nothing() {
        let name = format!("zonda-cluster-place-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        let state = folder.join("state");
        fs::write(&state, "a file").unwrap();
        let keys = keys("snapshot = \"state-directory\"");
        let text = (Path::new("/zonda.toml"), "version = 1\n".to_owned());
        let mut config = Config::load_text(text, [], &Flags::default()).unwrap().config;
        config.state = Some(state.join("below"));
        let places = SnapshotPlaces::default();
        let apex: Name = "cluster.local".parse().unwrap();
        assert_eq!(places.file(&config, (&apex, &keys)), None);
        assert!(places.is_told.load(Relaxed));
        let made = folder.join("made");
        config.state = Some(made.clone());
        let path = places.file(&config, (&apex, &keys)).unwrap();
        assert!(path.starts_with(&made));
        assert_eq!(fs::read_dir(&made).unwrap().count(), 0, "no probe is left");
        // A reload looks no more: nothing is written beside the files of a successor.
        fs::remove_dir(&made).unwrap();
        assert_eq!(places.file(&config, (&apex, &keys)), Some(path));
        assert!(!made.exists());
        fs::remove_dir_all(folder).unwrap();
    }
}
