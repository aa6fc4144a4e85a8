//! Zones whose master files are texts of a program.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use zonda_config::Config;
use zonda_wire::Name;
use zonda_zone::{Diagnostics, Records, file};

/// Zones whose master files are texts of a program, by their names in lower case.
pub type Texts = HashMap<Name, Arc<str>>;

/// The name of the text of a program's zone in messages.
pub fn text_label(name: &Name) -> PathBuf {
    format!("{name} (of the program)").into()
}

/// The texts of a program, and those of the zones of names that flags steer. These have what a zone
/// must have: a SOA record, and a name server that there is not (rfc6761#6.4).
pub fn with_steered(mut texts: Texts, config: &Config) -> Texts {
    for (zone, _) in &config.steered {
        let text = "$TTL 3600\n@ SOA ns.invalid. hostmaster.invalid. 1 3600 600 86400 60\n\
                    @ NS ns.invalid.\n";
        texts.entry(zone.clone()).or_insert_with(|| text.into());
    }
    texts
}

/// Reads a zone whose master file is a text of the program.
pub fn read_text(name: &Name, text: &str) -> (Records, Diagnostics) {
    let options = file::Options::default(); // without a root, nothing can be included
    file::read_text(text.as_bytes(), &text_label(name), name, &options)
}
