//! Secret files that too many users of the machine can read or change.

use crate::error::{Advice, Origin, Warning};
use crate::keys::{AdminKeys, TsigKeys, ZoneKeys};
use crate::load::Layers;
use crate::section::Keys;
use crate::store::StoreUrl;
use crate::value::Value;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The keys whose values are secrets, by their sections.
const SECRETS: [(&str, &str); 4] = [
    ("admin", "token"),
    ("admin", "read-token"),
    ("admin", "powerdns-api-key"),
    ("edns", "cookie-secrets"),
];
/// Mode bits of users that are neither the owner nor of the group.
const OTHERS_READ: u32 = 0o004;
const OTHERS_WRITE: u32 = 0o002;

/// Warns of the configuration file and of the files with tokens and keys, by their modes.
pub(super) fn warnings(layers: &Layers<'_>, secret_files: &[PathBuf]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if let Some((source, table)) = layers.file {
        let is_set = |(section, key): &(&str, &str)| {
            let section = table.get(*section).and_then(|value| value.get_ref().as_table());
            section.is_some_and(|section| section.contains_key(*key))
        };
        let has_secret = SECRETS.iter().any(is_set) || has_password(layers) || has_key(layers);
        warnings.extend(warning(source.path(), source.origin(0), has_secret));
    }
    for path in secret_files {
        let (_, origin) = layers.section(&AdminKeys::SECTION);
        warnings.extend(warning(path, origin, true));
    }
    warnings
}

/// Whether the file has the password of a database.
fn has_password(layers: &Layers<'_>) -> bool {
    let urls = layers.tables(&ZoneKeys::SECTION).filter_map(|(zone, _)| {
        let store = zone.get("store")?.get_ref().as_table()?;
        StoreUrl::from_text(store.get("url")?.get_ref().as_str()?)
    });
    urls.into_iter().any(|url| url.has_password())
}

/// Whether the file has the secret of a key.
fn has_key(layers: &Layers<'_>) -> bool {
    layers.tables(&TsigKeys::SECTION).any(|(key, _)| key.contains_key("secret"))
}

/// Returns what is to be said of a file; of one that is not there, or no file, nothing.
fn warning(path: &Path, origin: Origin, has_secret: bool) -> Option<Warning> {
    let about = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let advice = if about.mode() & OTHERS_WRITE != 0 {
        Advice::WritableFile(path.to_owned())
    } else if about.mode() & OTHERS_READ != 0 && has_secret {
        Advice::ReadableSecret(path.to_owned())
    } else {
        return None;
    };
    Some(Warning { origin, advice })
}
