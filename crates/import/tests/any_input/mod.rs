//! What holds for any octets read as a configuration of gdnsd or OpenGSLB, as a Corefile or as a
//! zone with LUA records: an error in a place, or a whole document.

use std::io;
use std::path::{Path, PathBuf};
use zonda_import::{Files, Import, ImportError, corefile, gdnsd, opengslb, powerdns};

/// The file that the octets are.
const OWN: &str = "/etc/own.yaml";
/// A zone beside it, which refers to the resources of the corpus.
const ZONE: &str = "@ SOA a b 1 2 3 4 5\nw 60/30 DYNA multifo!w\nx 60 DYNC weighted!w\n\
    y DYNA simplefo!w\nz 60 DYNC metafo!w\n@ 60 DYNA geoip!w\nv 60 DYNA geoip!w/a\n";

/// A folder with the file, and a folder with the zone.
struct Folder<'t>(&'t [u8]);

impl Files for Folder<'_> {
    fn read(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        match path.to_str() {
            Some(OWN) => Ok(self.0.to_vec()),
            Some("/etc/zones/example.com") => Ok(ZONE.as_bytes().to_vec()),
            Some("/etc/resolv.conf") => Ok(b"nameserver 192.0.2.53\n".to_vec()),
            Some("/etc/hostname") => Ok(b"node\n".to_vec()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn list(&mut self, folder: &Path) -> io::Result<Vec<String>> {
        match folder.to_str() {
            Some("/etc") => Ok(vec!["own.yaml".to_owned(), "zones".to_owned()]),
            Some("/etc/zones") => Ok(vec!["example.com".to_owned()]),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

/// A reader of a format: of a path and files.
pub type Reader = fn(&Path, &mut dyn Files) -> Result<Import, ImportError>;

/// Reads a zone file with LUA records.
fn lua_records(path: &Path, files: &mut dyn Files) -> Result<Import, ImportError> {
    powerdns::import(&[path.to_owned()], None, files)
}

/// Reads a Corefile, in an environment with one variable.
fn core_dns(path: &Path, files: &mut dyn Files) -> Result<Import, ImportError> {
    corefile::import(path, files, &|name| (name == "UP").then(|| "192.0.2.9".to_owned()))
}

/// The formats, each with the folder of its corpus.
pub const FORMATS: &[(&str, Reader)] = &[
    ("gdnsd", gdnsd::import),
    ("lua_records", lua_records),
    ("opengslb", opengslb::import),
    ("corefile", core_dns),
];

/// Reads octets in a format; returns the document that came of them.
pub fn check(read: Reader, text: &[u8]) -> Option<String> {
    match read(Path::new(OWN), &mut Folder(text)) {
        Ok(import) => {
            let lines = text.split(|octet| *octet == b'\n' || *octet == b'\r').count() + 1;
            let lines = lines.max(ZONE.lines().count() + 1);
            for line in &import.report {
                assert!((1..=lines).contains(&(line.place.line as usize)), "{line}");
                assert!(!line.to_string().contains('\n'), "{line:?}");
            }
            let is_in = |path: &PathBuf| path.starts_with("zones") || path.starts_with("hosts");
            let is_below = |path: &PathBuf| is_in(path) && path.iter().count() == 2;
            assert!(import.files.iter().all(|file| is_below(&file.path)), "{:?}", import.files);
            Some(import.toml)
        }
        Err(error) => {
            assert!(!error.to_string().contains('\n'), "{error:?}");
            None
        }
    }
}
