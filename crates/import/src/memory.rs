//! Files in memory, for tests.

use crate::Files;
use std::io;
use std::path::Path;

/// Files by their paths; folders are what lies around them.
pub struct Memory<'t>(pub &'t [(&'t str, &'t str)]);

impl Files for Memory<'_> {
    fn read(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        let file = self.0.iter().find(|(name, _)| path == Path::new(name));
        Ok(file.ok_or(io::ErrorKind::NotFound)?.1.as_bytes().to_vec())
    }

    fn list(&mut self, folder: &Path) -> io::Result<Vec<String>> {
        let inside =
            self.0.iter().filter_map(|(name, _)| Path::new(name).strip_prefix(folder).ok());
        let name = |path: &Path| Some(path.components().next()?.as_os_str().to_str()?.to_owned());
        let mut names: Vec<String> = inside.filter_map(name).collect();
        names.sort();
        names.dedup();
        if names.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(names) }
    }
}
