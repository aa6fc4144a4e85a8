//! `$INCLUDE file [origin]` (rfc1035#5.1), kept inside one directory.

use super::directive::{argument, end, origin};
use super::problem::DirectiveProblem;
use super::{Entry, FileState, LocatedProblem, Options, Reader};
use crate::disk::{Unreadable, open_below};
use std::fs;
use std::path::{Path, PathBuf};
use zonda_wire::rdata::string;

/// How deep files may include files.
const DEPTH_MAX: usize = 16;
/// How many files may be included in all: 16 files that each include the next one twice would
/// otherwise make 2^16.
const FILES_MAX: usize = 10_000;

/// Which files may be read, and which are being read.
pub(super) struct Includes {
    /// Where included files must lie, with symbolic links resolved; `None`: nowhere.
    root: Option<PathBuf>,
    /// The files that are being read, links resolved, the innermost last.
    open: Vec<PathBuf>,
    /// Number of files included so far.
    count: usize,
}

impl Includes {
    /// The includes of the file `top`, or of a text that is not a file.
    fn new(top: Option<&Path>, options: &Options) -> Self {
        let top = top.and_then(|path| fs::canonicalize(path).ok());
        let root = match &options.root {
            Some(root) => fs::canonicalize(root).ok(),
            None => top.as_deref().and_then(Path::parent).map(Path::to_owned),
        };
        Self { root, open: top.into_iter().collect(), count: 0 }
    }

    /// The file to read for `named`, if it may be read.
    fn admit(&self, named: &Path) -> Result<PathBuf, DirectiveProblem> {
        let root = self.root.as_ref().ok_or(DirectiveProblem::IncludeForbidden)?;
        if self.open.len() > DEPTH_MAX {
            return Err(DirectiveProblem::IncludeTooDeep(DEPTH_MAX));
        }
        if self.count >= FILES_MAX {
            return Err(DirectiveProblem::TooManyIncludes(FILES_MAX));
        }
        let resolved = fs::canonicalize(named)
            .map_err(|error| DirectiveProblem::Included(named.to_owned(), error.into()))?;
        if !resolved.starts_with(root) {
            return Err(DirectiveProblem::IncludeOutside);
        }
        if self.open.contains(&resolved) {
            return Err(DirectiveProblem::IncludeCycle);
        }
        Ok(resolved)
    }

    /// The path that a name stands for: relative ones begin at the including file's directory, or
    /// at the root if there is no such file.
    fn path_of(&self, named: &[u8], including: &Path) -> PathBuf {
        let mut unescaped = Vec::new();
        if string::unescape_into(named, &mut unescaped).is_err() {
            unescaped = named.to_vec();
        }
        let named = PathBuf::from(String::from_utf8_lossy(&unescaped).into_owned());
        let directory = match (&self.open[..], &self.root) {
            ([], Some(root)) => root,
            _ => including.parent().unwrap_or(Path::new("")),
        };
        directory.join(named)
    }
}

impl Reader<'_> {
    /// Reads another file. Origin and owner are afterwards what they were; `$TTL` stays.
    pub(super) fn include(
        &mut self,
        entry: Entry<'_, '_>,
        file: &mut FileState,
    ) -> Result<(), LocatedProblem> {
        let named = argument(entry, 1, "a file name")?;
        end(entry, 3)?;
        let wrong = |problem| LocatedProblem::new(named.at, problem);
        let path = self.includes().path_of(named.text, &file.path);
        // It counts as a file of the zone even if it cannot be read: it may be there later.
        self.records.begin_file(&path);
        self.records.begin_file(&file.path);
        let resolved = self.includes().admit(&path).map_err(wrong)?;
        let mut inner = FileState::new(&path, &file.origin);
        inner.owner.clone_from(&file.owner);
        inner.owner_is_wrong = file.owner_is_wrong;
        if let Some(&token) = entry.tokens.get(2) {
            inner.origin = origin(token, &file.origin)?;
            inner.owner_is_stale = !inner.owner.is_empty();
        }
        let root = self.includes().root.clone().unwrap_or_default();
        let (opened, len) = open_below(&resolved, &[&root]).map_err(|why| match why {
            Unreadable::Outside => wrong(DirectiveProblem::IncludeOutside),
            why => wrong(DirectiveProblem::Included(path.clone(), why)),
        })?;
        self.includes().count += 1;
        self.includes().open.push(resolved);
        self.read_file(opened, len, &mut inner);
        self.includes().open.pop();
        self.records.begin_file(&file.path);
        Ok(())
    }

    /// Which files may be read; the file system is asked when a zone first includes one, as most
    /// zones never do.
    fn includes(&mut self) -> &mut Includes {
        let (top, options) = (self.top, self.options);
        self.includes.get_or_insert_with(|| Includes::new(top, options))
    }
}
