//! What holds for any octets read as a named.conf: an error in a place, or a whole document.

use std::io;
use std::path::Path;
use zonda_import::Files;
use zonda_import::named_conf::import;

/// Where the file lies.
const OWN: &str = "/etc/named.conf";

/// A folder that holds a single file.
struct Single<'t>(&'t [u8]);

impl Files for Single<'_> {
    fn read(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        match path == Path::new(OWN) {
            true => Ok(self.0.to_vec()),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn list(&mut self, _: &Path) -> io::Result<Vec<String>> {
        Ok(vec!["named.conf".to_owned()])
    }
}

/// Reads octets as a file that may include itself; returns whether a document came of them.
pub fn check(text: &[u8]) -> Option<String> {
    match import(Path::new(OWN), &mut Single(text)) {
        Ok(import) => {
            let lines = text.iter().filter(|octet| **octet == b'\n').count() + 1;
            for left in &import.report {
                assert!((1..=lines).contains(&(left.place.line as usize)), "{left}");
                assert!(!left.to_string().contains('\n'), "{left:?}");
            }
            Some(import.toml)
        }
        Err(error) => {
            assert!(!error.to_string().contains('\n'), "{error:?}");
            None
        }
    }
}
