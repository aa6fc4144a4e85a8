//! A Corefile in place of a configuration file.
//!
//! It is imported whenever the configuration is read. A line that would be lost is an error, as
//! the server would not be what the Corefile says.

use crate::cli::{LoadError, environment};
use crate::import::Disk;
use std::collections::HashSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zonda_config::{Config, ConfigError, Flags, LoadedConfig, Origin};
use zonda_import::{Effect, Files, Import, NewFile, ReportLine, corefile};
use zonda_server::{LastReading, MemoryFile};

/// A Corefile that is served, and what is known of it from one reading to the next.
#[derive(Debug, Default)]
pub struct CorefileSource(Mutex<Facts>);

/// Facts about the files that a configuration was made of.
#[derive(Debug, Default)]
struct Facts {
    /// Files and directories that were read, each with a hash of what was found.
    read: Vec<(Input, u64)>,
    /// Files that the import has made for the configuration that was read last.
    made: Vec<MadeFile>,
    /// Files of the configurations before, which zones may still be loaded from: from the one
    /// before that in force on, if later ones could not be put into force.
    former_made: Vec<Vec<MadeFile>>,
    /// Lines of reports that were told already.
    told: HashSet<String>,
    /// Whether the Corefile says that changes of it are followed.
    is_followed: bool,
}

/// A file that the import makes: its content, and where it is in memory.
type MadeFile = (String, Arc<MemoryFile>);

/// Something that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Input {
    /// The content of a file.
    File(PathBuf),
    /// The names in a directory.
    Directory(PathBuf),
}

impl CorefileSource {
    /// Reads the Corefile at a path, and all that it imports.
    ///
    /// # Errors
    /// The first error of the Corefile, all lines that would be lost, or all that is wrong with the
    /// result; each with file and line.
    pub fn load(&self, path: &Path, flags: &Flags) -> Result<LoadOutcome, LoadError> {
        let error = |text: String| LoadError { text, is_of_the_command_line: false };
        let path = std::path::absolute(path).map_err(|why| error(why.to_string()))?;
        let mut files = Recorder::default();
        let variable = |name: &str| std::env::var(name).ok();
        let import = corefile::import(&path, &mut files, &variable);
        let mut known = self.known();
        known.note(files.read, import.is_ok());
        let import = import.map_err(|why| error(why.to_string()))?;
        if import.losses().next().is_some() {
            let mut lines: Vec<String> = import.losses().map(ToString::to_string).collect();
            lines.push("a server without these lines is not what the Corefile says".to_owned());
            return Err(error(lines.join("\n")));
        }
        let (toml, made) = known.place_files(&import).map_err(|why| error(why.to_string()))?;
        let text = (path.as_path(), toml.clone());
        let loaded = Config::load_text(text, environment(), flags);
        let mut loaded = loaded.map_err(|errors| LoadError {
            is_of_the_command_line: errors.iter().any(|it| matches!(it.origin, Origin::Flag(_))),
            text: told_by_line(errors, &toml),
        })?;
        known.is_followed = import.is_followed;
        let former = std::mem::replace(&mut known.made, made);
        known.keep_former(former);
        for warning in &mut loaded.warnings {
            place(&mut warning.origin, &toml);
        }
        loaded.config.admin.page_origins.iter_mut().for_each(|origin| place(origin, &toml));
        let is_new = |line: &ReportLine| known.told.insert(line.to_string());
        let report = import.report.into_iter().filter(|it| it.effect != Effect::Taken);
        Ok(LoadOutcome { loaded, report: report.filter(is_new).collect() })
    }

    /// Whether the Corefile is to be read again, if it is to be followed: a file has changed since
    /// it was read last, or what was read, and not put into force, is due.
    pub fn is_to_be_read(&self, last: LastReading) -> bool {
        let mut known = self.known();
        if last == LastReading::InForce {
            known.forget_former();
        }
        let has_changed = |(found, hash): &(Input, u64)| found.present_hash() != *hash;
        known.is_followed && (last == LastReading::Due || known.read.iter().any(has_changed))
    }

    fn known(&self) -> MutexGuard<'_, Facts> {
        // A panic while it was read left at worst what was known before.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A Corefile as it was read.
pub struct LoadOutcome {
    /// The configuration that it amounts to.
    pub loaded: LoadedConfig,
    /// What became of lines, as far as it was not told before.
    pub report: Vec<ReportLine>,
}

impl Facts {
    /// Notes what was read. Of a reading that failed half-way, files that were not reached are
    /// known from before, and looked at as they are now.
    fn note(&mut self, mut read: Vec<(Input, u64)>, is_whole: bool) {
        let former = std::mem::take(&mut self.read).into_iter().map(|(found, _)| found);
        let left: Vec<Input> =
            former.filter(|found| !is_whole && !read.iter().any(|(now, _)| now == found)).collect();
        read.extend(left.into_iter().map(|found| {
            let hash = found.present_hash();
            (found, hash)
        }));
        read.truncate(FILES_MAX);
        self.read = read;
    }

    /// Keeps the files of the configuration that was read before.
    fn keep_former(&mut self, former: Vec<MadeFile>) {
        if self.former_made.len() >= FORMER_MAX {
            self.former_made.remove(2); // behind those of the configuration in force
        }
        self.former_made.push(former);
    }

    /// Forgets the files of former configurations, but for the last one, whose zones may be about
    /// to be replaced.
    fn forget_former(&mut self) {
        self.former_made.drain(..self.former_made.len().saturating_sub(1));
    }

    /// Puts the files that an import makes into memory, and returns the configuration with their
    /// paths. A file with the same content stays as it is.
    fn place_files(&self, import: &Import) -> io::Result<(String, Vec<MadeFile>)> {
        let mut made: Vec<MadeFile> = Vec::new();
        for NewFile { text, .. } in &import.files {
            let is_taken =
                |known: &MadeFile| made.iter().any(|(_, file)| Arc::ptr_eq(file, &known.1));
            let mut known = self.made.iter().chain(self.former_made.iter().flatten());
            let file = match known.find(|it| it.0 == *text && !is_taken(it)) {
                Some((_, known)) => Arc::clone(known),
                None => Arc::new(MemoryFile::new(text.as_bytes())?),
            };
            made.push((text.clone(), file));
        }
        let mut paths = made.iter().map(|(_, file)| file.path());
        let toml = import.toml_with_files(|_| paths.next().unwrap_or_default());
        drop(paths);
        Ok((toml, made))
    }
}

/// Files of one Corefile that are watched, at most.
const FILES_MAX: usize = 10_000;
/// Former configurations whose files are kept, at most.
const FORMER_MAX: usize = 16;

impl Input {
    /// Returns a hash of what is found now.
    fn present_hash(&self) -> u64 {
        match self {
            Self::File(path) => hash_of(&fs::read(path)),
            Self::Directory(path) => hash_of(&Disk.list(path).map(sorted)),
        }
    }
}

/// Returns names in an order that does not depend on the directory.
fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort_unstable();
    names
}

/// Returns a hash of a content, or of the reason why there is none.
fn hash_of<T: Hash>(content: &io::Result<T>) -> u64 {
    let mut hasher = DefaultHasher::new();
    match content {
        Ok(content) => content.hash(&mut hasher),
        Err(error) => error.kind().hash(&mut hasher),
    }
    hasher.finish()
}

/// The files of this machine, noting what is read of them.
#[derive(Default)]
struct Recorder {
    read: Vec<(Input, u64)>,
}

impl Files for Recorder {
    fn read(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        let content = Disk.read(path);
        self.read.push((Input::File(path.to_owned()), hash_of(&content)));
        content
    }

    fn list(&mut self, folder: &Path) -> io::Result<Vec<String>> {
        let names = Disk.list(folder).map(sorted);
        self.read.push((Input::Directory(folder.to_owned()), hash_of(&names)));
        names
    }
}

/// Returns errors of the configuration that was made of a Corefile, each with the Corefile's line.
fn told_by_line(errors: Vec<ConfigError>, toml: &str) -> String {
    let told = errors.into_iter().map(|mut error| {
        place(&mut error.origin, toml);
        error.to_string()
    });
    told.collect::<Vec<_>>().join("\n")
}

/// Replaces a place in the configuration by that of the Corefile which stands behind its key, or
/// behind the nearest key before it, or after it.
fn place(origin: &mut Origin, toml: &str) {
    let Origin::File { line, .. } = origin else { return };
    let lines: Vec<&str> = toml.lines().collect();
    let (before, after) = lines.split_at((*line).min(lines.len()));
    let mut nearest = before.iter().rev().chain(after);
    let Some((file, line)) = nearest.find_map(|text| place_behind(text)) else { return };
    *origin = Origin::File { path: Path::new(file).into(), line, column: 1 };
}

/// Returns the file and line that the comment at the end of a line names.
fn place_behind(text: &str) -> Option<(&str, usize)> {
    let (file, line) = text.rsplit_once("  # ")?.1.rsplit_once(':')?;
    Some((file, line.parse().ok()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use zonda_testkit::process::Folder;

    /// Reads the Corefile of a folder; what is wrong with it.
    fn load(source: &CorefileSource, folder: &Folder) -> Result<LoadedConfig, String> {
        let path = folder.path().join("Corefile");
        let outcome = source.load(&path, &Flags::default());
        outcome.map(|outcome| outcome.loaded).map_err(|error| error.text)
    }

    #[test]
    fn files_that_were_not_read_are_looked_at_as_they_are_now() {
        let (folder, source) = (Folder::new("corefile"), CorefileSource::default());
        let whole = ".:53 {\n import custom/*.conf\n reload\n forward . 192.0.2.1\n}\n";
        let custom = folder.path().join("custom");
        fs::create_dir(&custom).unwrap();
        let (first, second) = (custom.join("a.conf"), custom.join("b.conf"));
        fs::write(&first, "errors\n").unwrap();
        fs::write(&second, "health\n").unwrap();
        folder.write("Corefile", whole);
        load(&source, &folder).unwrap();
        assert!(!source.is_to_be_read(LastReading::InForce));
        fs::remove_file(&second).unwrap();
        assert!(source.is_to_be_read(LastReading::InForce));
        load(&source, &folder).unwrap();
        assert!(
            !source.is_to_be_read(LastReading::InForce),
            "a file that is imported no more is of no interest"
        );

        // A mistake before the import hides the files from the reading.
        folder.write("Corefile", whole.replace(".:53 {", ".:53 {\n } }"));
        fs::write(&first, "health\n").unwrap();
        load(&source, &folder).unwrap_err();
        assert!(!source.is_to_be_read(LastReading::InForce));
        folder.write("Corefile", whole);
        assert!(source.is_to_be_read(LastReading::InForce));
        load(&source, &folder).unwrap();
        fs::write(&first, "errors\n").unwrap();
        assert!(source.is_to_be_read(LastReading::InForce));
    }

    #[test]
    fn a_reading_that_is_refused_does_not_decide_whether_changes_are_followed() {
        let (folder, source) = (Folder::new("corefile"), CorefileSource::default());
        folder.write("Corefile", ".:53 {\n reload\n forward . 192.0.2.1\n}\n");
        load(&source, &folder).unwrap();
        for refused in ["192.0.2.1\n erratic", "tls://192.0.2.1 {\n  tls none.pem\n }"] {
            folder.write("Corefile", format!(".:53 {{\n forward . {refused}\n}}\n"));
            assert!(source.is_to_be_read(LastReading::InForce));
            load(&source, &folder).unwrap_err();
            assert!(!source.is_to_be_read(LastReading::InForce));
        }
        folder.write("Corefile", ".:53 {\n forward . 192.0.2.2\n}\n");
        assert!(
            source.is_to_be_read(LastReading::InForce),
            "the configuration in force says `reload`"
        );
        load(&source, &folder).unwrap();
        folder.write("Corefile", ".:53 {\n forward . 192.0.2.3\n}\n");
        assert!(!source.is_to_be_read(LastReading::InForce));
    }

    #[test]
    fn files_in_memory_stay_while_the_configuration_that_names_them_is_in_force() {
        let (folder, source) = (Folder::new("corefile"), CorefileSource::default());
        let text = |octet: u8, more: &str| {
            format!(
                ".:53 {{\n hosts {{\n  203.0.113.{octet} nas.lan\n  fallthrough\n }}\n \
                 forward . tls://192.0.2.1 {{\n  tls_servername a.example\n{more} }}\n}}\n"
            )
        };
        folder.write("Corefile", text(5, ""));
        let config = load(&source, &folder).unwrap().config;
        let path = config.zones.iter().find_map(|zone| zone.terms.hosts.clone()).unwrap();
        let content = fs::read(&path).unwrap();
        for octet in 6..9 {
            folder.write("Corefile", text(octet, "  tls none.pem\n"));
            load(&source, &folder).unwrap_err();
            assert_eq!(fs::read(&path).unwrap(), content);
        }
        folder.write("Corefile", text(5, ""));
        let config = load(&source, &folder).unwrap().config;
        assert!(config.zones.iter().any(|zone| zone.terms.hosts.as_ref() == Some(&path)));
    }

    #[test]
    fn a_configuration_that_was_refused_is_read_again_when_it_is_due_if_it_is_followed() {
        let (folder, source) = (Folder::new("corefile"), CorefileSource::default());
        for (reload, is_followed) in [("", false), (" reload\n", true)] {
            folder.write("Corefile", format!(".:53 {{\n{reload} forward . 192.0.2.1\n}}\n"));
            load(&source, &folder).unwrap();
            assert!(!source.is_to_be_read(LastReading::Refused));
            assert_eq!(source.is_to_be_read(LastReading::Due), is_followed);
        }
    }

    #[test]
    fn files_of_the_configuration_in_force_stay_while_later_ones_are_refused() {
        let (folder, source) = (Folder::new("corefile"), CorefileSource::default());
        let text = |octet: u8| {
            let hosts = format!("hosts {{\n  203.0.113.{octet} nas.lan\n  fallthrough\n }}");
            format!(".:53 {{\n {hosts}\n forward . 192.0.2.1\n reload\n}}\n")
        };
        let hosts = |octet: u8| {
            folder.write("Corefile", text(octet));
            let config = load(&source, &folder).unwrap().config;
            config.zones.iter().find_map(|zone| zone.terms.hosts.clone()).unwrap()
        };
        let path = hosts(1);
        assert!(!source.is_to_be_read(LastReading::InForce));
        let content = fs::read(&path).unwrap();
        for octet in (2..30).flat_map(|octet| [octet; 2]) {
            hosts(octet);
            assert!(!source.is_to_be_read(LastReading::Refused));
            assert_eq!(fs::read(&path).ok().as_ref(), Some(&content), "{octet}");
        }
        assert_eq!(hosts(1), path, "so that it is not loaded anew");
    }

    #[test]
    fn an_error_is_placed_at_the_line_that_its_key_comes_from() {
        let toml = "# Made\nversion = 1\n\n[[zone]]\nname = \"a\"  # /etc/Corefile:7\n\
                    access = [\"x\"]\n";
        for (line, expected) in [(4, 7), (5, 7), (6, 7), (1, 7)] {
            let path = Path::new("/etc/Corefile").into();
            let mut origin = Origin::File { path, line, column: 3 };
            place(&mut origin, toml);
            assert_eq!(origin.to_string(), format!("/etc/Corefile:{expected}:1"));
        }
    }
}
