//! The file of a configuration and those that it includes.

use super::yaml;
use crate::Files;
use crate::error::{ImportError, Place, Problem};
use crate::pattern::{expand_deep, is_pattern};
use crate::tree::{Content, Node, expected, fail};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files that may include each other.
const DEPTH_MAX: usize = 10;
/// Files that are read.
const FILES_MAX: usize = 1000;
/// Octets that are read, all files together.
const BYTES_MAX: usize = 64 << 20;

/// A file that was read.
pub struct File {
    /// Top of the file's tree, which is a map.
    pub root: Node,
    /// Whether another file includes it.
    pub is_included: bool,
}

/// Reads a file and those that it includes, each behind the file that includes it.
///
/// # Errors
/// The first thing that is wrong.
pub fn read(path: &Path, files: &mut dyn Files) -> Result<Vec<File>, ImportError> {
    let mut reader = Reader { files, around: Vec::new(), all: Vec::new(), count: 0, bytes: 0 };
    reader.read(path, None)?;
    Ok(reader.all)
}

/// Reads files.
struct Reader<'r> {
    files: &'r mut dyn Files,
    /// The file that is being read, behind those that include it.
    around: Vec<PathBuf>,
    all: Vec<File>,
    /// Files read so far.
    count: usize,
    /// Octets of the files read so far.
    bytes: usize,
}

impl Reader<'_> {
    /// Reads a file, which is named at a place of another.
    fn read(&mut self, path: &Path, named: Option<&Place>) -> Result<(), ImportError> {
        let wrong = |problem| ImportError { place: named.cloned(), problem };
        if self.around.iter().any(|file| file == path) {
            return Err(wrong(Problem::Circle(path.to_owned())));
        }
        if self.around.len() > DEPTH_MAX {
            return Err(wrong(Problem::TooMuch("files that include each other", DEPTH_MAX)));
        }
        self.count += 1;
        if self.count > FILES_MAX {
            return Err(wrong(Problem::TooMuch("included files", FILES_MAX)));
        }
        let octets = self.files.read(path);
        let octets = octets.map_err(|error| wrong(Problem::Unreadable(path.to_owned(), error)))?;
        self.bytes += octets.len();
        if self.bytes > BYTES_MAX {
            return Err(wrong(Problem::TooMuch("octets of configuration", BYTES_MAX)));
        }
        let file: Arc<Path> = path.into();
        let text = text(octets, &file)?;
        let Some(root) = yaml::read(&text, &file)?.filter(|root| !root.is_null()) else {
            return Ok(());
        };
        let Content::Map(pairs) = &root.content else { return Err(expected(&root, "keys")) };
        let includes = pairs.iter().find(|(key, ..)| key == "includes");
        let includes = includes.map(|(_, _, node)| patterns(node)).transpose()?;
        self.all.push(File { root, is_included: named.is_some() });
        self.around.push(path.to_owned());
        for (pattern, place) in includes.unwrap_or_default() {
            self.include(&pattern, &place)?;
        }
        self.around.pop();
        Ok(())
    }

    /// Reads the files that a pattern stands for, which starts at the folder of this file.
    fn include(&mut self, pattern: &str, place: &Place) -> Result<(), ImportError> {
        let base = self.around.last().and_then(|path| path.parent()).unwrap_or(Path::new(""));
        let base = base.to_owned();
        let paths = match expand_deep(&base, pattern, self.files, FILES_MAX) {
            Ok(paths) => paths,
            // A folder without such files is no mistake.
            Err(_) if is_pattern(pattern) => return Ok(()),
            Err(error) => {
                return Err(fail(place.clone(), Problem::Unreadable(base.join(pattern), error)));
            }
        };
        paths.iter().try_for_each(|path| self.read(path, Some(place)))
    }
}

/// Returns the text of a file.
fn text(octets: Vec<u8>, file: &Arc<Path>) -> Result<String, ImportError> {
    String::from_utf8(octets).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.iter().filter(|octet| **octet == b'\n').count() + 1;
        let line = u32::try_from(line).unwrap_or(u32::MAX);
        fail(Place { file: Arc::clone(file), line, column: 1 }, Problem::NotText)
    })
}

/// Returns the patterns of `includes`.
fn patterns(node: &Node) -> Result<Vec<(String, Place)>, ImportError> {
    match &node.content {
        _ if node.is_null() => Ok(Vec::new()),
        Content::List(nodes) => nodes
            .iter()
            .map(|node| match &node.content {
                Content::Scalar(text, _) => Ok((text.clone(), node.place.clone())),
                _ => Err(expected(node, "the path of a file")),
            })
            .collect(),
        _ => Err(expected(node, "a list of files")),
    }
}
