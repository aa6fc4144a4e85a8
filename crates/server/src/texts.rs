//! Zones whose master files are texts of a program.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use zonda_wire::Name;
use zonda_zone::{Diagnostics, Records, file};

/// Zones whose master files are texts of a program, by their names in lower case.
pub type Texts = HashMap<Name, Arc<str>>;

/// The name of the text of a program's zone in messages.
pub fn text_label(name: &Name) -> PathBuf {
    format!("{name} (of the program)").into()
}

/// Reads a zone whose master file is a text of the program.
pub fn read_text(name: &Name, text: &str) -> (Records, Diagnostics) {
    let options = file::Options::default(); // without a root, nothing can be included
    file::read_text(text.as_bytes(), &text_label(name), name, &options)
}
