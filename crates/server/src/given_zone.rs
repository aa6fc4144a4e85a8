//! A zone that a program gives, as the configuration has it.

use std::path::{Path, PathBuf};
use zonda_config::{ProgramContent, Source, Zone};
use zonda_wire::Name;

/// A zone that a program gives.
#[must_use]
pub fn given_zone(name: &Name, given: ProgramContent) -> Zone {
    let path = PathBuf::from(format!("{name} (of the program)"));
    let source = Source::Program { path, content: given };
    let root = Path::new("/").into(); // no text includes a file
    Zone { name: Some(name.clone()), source, hosts: None, root, writable: None, access: None }
}
