//! A zone file copied, without the records of some types.

use super::entry::{Entries, Entry, Word};
use super::ttl_secs;
use crate::Files;
use crate::error::{ImportError, Place, Problem};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zonda_wire::{Name, NameError};

/// Files that may include each other.
const DEPTH_MAX: usize = 16;
/// Files of one zone.
const FILES_MAX: usize = 1000;
/// Octets of one zone, all files together.
const BYTES_MAX: usize = 256 << 20;

/// What zone files of a server have beyond the standard.
pub struct Dialect {
    /// Types of records that are taken out.
    pub types: &'static [&'static str],
    /// Whether `@Z` and `@F` stand for the origins of the zone and the file, and strings of TXT
    /// records are cut where they are too long.
    pub is_gdnsd: bool,
    /// TTL of records before the first `$TTL`, seconds; none: that of the file.
    pub default_ttl: Option<u32>,
}

/// A record that was taken out.
pub struct SpecialRecord {
    /// Owner of the record.
    pub owner: Name,
    /// TTL as it is written, or that of `$TTL`.
    pub ttl: Option<String>,
    /// Type of the record, in upper case.
    pub rtype: String,
    /// Words of the data with whether they are quoted, and their places.
    pub data: Vec<(String, bool, Place)>,
    /// Place of the record.
    pub place: Place,
}

/// The copy of a zone file.
pub struct ZoneCopy {
    /// Text of the new file.
    pub text: String,
    /// Name of the zone.
    pub zone: Name,
    /// Records that were taken out, in the order of the file.
    pub special: Vec<SpecialRecord>,
}

/// Copies the file of a zone with those that it includes. Without `zone`, its name is the owner of
/// the SOA record, which must be whole.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn copy(
    path: &Path,
    zone: Option<&Name>,
    dialect: &Dialect,
    files: &mut dyn Files,
) -> Result<ZoneCopy, ImportError> {
    let mut copier = Copier {
        files,
        dialect,
        zone: zone.cloned(),
        origin: zone.cloned(),
        file_origin: zone.cloned(),
        ttl: dialect.default_ttl.map(|ttl| ttl.to_string()),
        owner: None,
        written_owner: None,
        apex: None,
        around: Vec::new(),
        text: String::new(),
        special: Vec::new(),
        count: 0,
        bytes: 0,
    };
    if let Some(ttl) = dialect.default_ttl {
        copier.text = format!("$TTL {ttl}\n");
    }
    copier.file(path, None)?;
    let zone = copier.zone.or(copier.apex).ok_or(ImportError {
        place: Some(Place { file: path.into(), line: 1, column: 1 }),
        problem: Problem::NoOrigin,
    })?;
    Ok(ZoneCopy { text: copier.text, zone, special: copier.special })
}

/// Copies files.
struct Copier<'c> {
    files: &'c mut dyn Files,
    dialect: &'c Dialect,
    /// Name of the zone, if it was given.
    zone: Option<Name>,
    /// Origin of names that are not whole.
    origin: Option<Name>,
    /// Origin with which the present file began.
    file_origin: Option<Name>,
    /// Default of TTLs, as it is written.
    ttl: Option<String>,
    /// Owner of the entry before.
    owner: Option<Name>,
    /// Owner that an entry without one would have in the copy.
    written_owner: Option<Name>,
    /// Owner of the SOA record.
    apex: Option<Name>,
    /// The file that is being read, behind those that include it.
    around: Vec<PathBuf>,
    text: String,
    special: Vec<SpecialRecord>,
    /// Files read so far.
    count: usize,
    /// Octets read so far.
    bytes: usize,
}

/// The parts of a record's entry.
struct Parts<'e, 't> {
    ttl: Option<&'t str>,
    rtype: &'t str,
    data: &'e [Word<'t>],
}

impl Copier<'_> {
    /// Copies a file, which is named at a place of another.
    fn file(&mut self, path: &Path, named: Option<&Place>) -> Result<(), ImportError> {
        let wrong = |problem| ImportError { place: named.cloned(), problem };
        if self.around.iter().any(|file| file == path) {
            return Err(wrong(Problem::Circle(path.to_owned())));
        }
        if self.around.len() >= DEPTH_MAX {
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
            return Err(wrong(Problem::TooMuch("octets of a zone", BYTES_MAX)));
        }
        let file: Arc<Path> = path.into();
        // Old comments may be in any encoding.
        let text = String::from_utf8_lossy(&octets);
        self.around.push(path.to_owned());
        let mut entries = Entries::new(&text);
        loop {
            let entry = entries.next().map_err(|(problem, line, column)| {
                let place = Place { file: Arc::clone(&file), line, column };
                ImportError { place: Some(place), problem }
            })?;
            match entry {
                Some(entry) => self.entry(&entry, &file)?,
                None => break,
            }
        }
        if !self.text.ends_with('\n') && !self.text.is_empty() {
            self.text.push('\n');
        }
        self.around.pop();
        Ok(())
    }

    /// Copies an entry, or takes it out.
    fn entry(&mut self, entry: &Entry<'_>, file: &Arc<Path>) -> Result<(), ImportError> {
        let Some(first) = entry.words.first() else {
            self.text.push_str(entry.text);
            return Ok(());
        };
        let place = |word: &Word<'_>| Place {
            file: Arc::clone(file),
            line: word.line,
            column: word.column,
        };
        if first.text.starts_with('$') && !first.is_quoted {
            return self.directive(entry, &place);
        }
        let owner = match entry.has_owner() {
            true => Some(self.name(first).map_err(|why| not_a_name(first, why, place(first)))?),
            false => None,
        };
        let words = &entry.words[usize::from(owner.is_some())..];
        if let Some(owner) = owner {
            self.owner = owner;
        }
        let Some(parts) = parts(words) else {
            self.copy_record(entry);
            return Ok(());
        };
        if parts.rtype.eq_ignore_ascii_case("SOA") && self.apex.is_none() {
            self.apex.clone_from(&self.owner);
        }
        if !self.dialect.types.iter().any(|known| known.eq_ignore_ascii_case(parts.rtype)) {
            self.copy_record(entry);
            return Ok(());
        }
        let Some(owner) = self.owner.clone() else {
            return Err(ImportError { place: Some(place(first)), problem: Problem::NoOrigin });
        };
        let data =
            parts.data.iter().map(|word| (word.text.to_owned(), word.is_quoted, place(word)));
        self.special.push(SpecialRecord {
            owner,
            ttl: parts.ttl.map(str::to_owned).or_else(|| self.ttl.clone()),
            rtype: parts.rtype.to_ascii_uppercase(),
            data: data.collect(),
            place: place(first),
        });
        for line in entry.text.lines() {
            self.text.push_str("; taken out: ");
            self.text.push_str(line);
            self.text.push('\n');
        }
        Ok(())
    }

    /// Carries out a directive, and copies it or what it includes.
    fn directive(
        &mut self,
        entry: &Entry<'_>,
        place: &impl Fn(&Word<'_>) -> Place,
    ) -> Result<(), ImportError> {
        let words = &entry.words;
        let Some(argument) = words.get(1) else {
            self.text.push_str(entry.text);
            return Ok(());
        };
        if words[0].text.eq_ignore_ascii_case("$INCLUDE") {
            return self.include(argument, words.get(2), place);
        }
        if words[0].text.eq_ignore_ascii_case("$ORIGIN") {
            let origin = self.name(argument);
            self.origin = origin.map_err(|why| not_a_name(argument, why, place(argument)))?;
        } else if words[0].text.eq_ignore_ascii_case("$TTL") {
            self.ttl = Some(argument.text.to_owned());
        }
        self.copy_words(entry);
        Ok(())
    }

    /// Copies an included file in place. Its origin and TTL end with it.
    fn include(
        &mut self,
        path: &Word<'_>,
        origin: Option<&Word<'_>>,
        place: &impl Fn(&Word<'_>) -> Place,
    ) -> Result<(), ImportError> {
        let own = match origin {
            Some(word) => self.name(word).map_err(|why| not_a_name(word, why, place(word)))?,
            None => self.origin.clone(),
        };
        let folder = self.around.last().and_then(|file| file.parent()).unwrap_or(Path::new(""));
        let file = folder.join(path.text);
        let before = (self.origin.clone(), self.file_origin.clone(), self.ttl.clone());
        let owner = self.owner.clone();
        self.text.push_str(&format!("; from {}\n", path.text.escape_debug()));
        (self.origin, self.file_origin) = (own.clone(), own);
        self.write_origin(before.0.as_ref());
        self.file(&file, Some(&place(path)))?;
        let (inner_origin, inner_ttl) = (self.origin.clone(), self.ttl.clone());
        (self.origin, self.file_origin, self.ttl) = before;
        self.owner = owner;
        self.write_origin(inner_origin.as_ref());
        if let Some(ttl) = self.ttl.as_ref().filter(|ttl| inner_ttl.as_ref() != Some(*ttl)) {
            self.text.push_str(&format!("$TTL {ttl}\n"));
        }
        Ok(())
    }

    /// Writes the origin, if another one held before.
    fn write_origin(&mut self, before: Option<&Name>) {
        if let Some(origin) = self.origin.as_ref().filter(|origin| before != Some(*origin)) {
            self.text.push_str(&format!("$ORIGIN {origin}\n"));
        }
    }

    /// Copies the entry of a record, with its owner if the copy lacks the entry that has it.
    fn copy_record(&mut self, entry: &Entry<'_>) {
        if let Some(owner) = self
            .owner
            .as_ref()
            .filter(|owner| !entry.has_owner() && self.written_owner.as_ref() != Some(*owner))
        {
            self.text.push_str(&owner.to_string());
        }
        self.written_owner.clone_from(&self.owner);
        self.copy_words(entry);
    }

    /// Copies an entry; of gdnsd's, special names and long strings are written out.
    fn copy_words(&mut self, entry: &Entry<'_>) {
        if !self.dialect.is_gdnsd {
            self.text.push_str(entry.text);
            return;
        }
        let mut copied = 0;
        let is_text = entry.words.iter().any(|word| word.text.eq_ignore_ascii_case("TXT"));
        for word in &entry.words {
            let new = match word.is_quoted {
                false => self.special_name(word.text),
                true if is_text => cut_string(word.text),
                true => None,
            };
            if let Some(new) = new {
                self.text.push_str(&entry.text[copied..word.start]);
                self.text.push_str(&new);
                copied = word.start + word.text.len() + if word.is_quoted { 2 } else { 0 };
            }
        }
        self.text.push_str(&entry.text[copied..]);
    }

    /// Returns a name that ends with `@Z` or `@F`, with the origin in place of that.
    fn special_name(&self, word: &str) -> Option<String> {
        let (labels, origin) = match (word.strip_suffix("@Z"), word.strip_suffix("@F")) {
            (Some(labels), _) => (labels, self.zone.as_ref()?),
            (_, Some(labels)) => (labels, self.file_origin.as_ref()?),
            (None, None) => return None,
        };
        let is_label = labels.is_empty() || labels.ends_with('.') && !labels.ends_with("\\.");
        is_label.then(|| format!("{labels}{origin}"))
    }

    /// Reads a name; none if it is not whole, and there is no origin.
    fn name(&self, word: &Word<'_>) -> Result<Option<Name>, NameError> {
        let special = self.dialect.is_gdnsd.then(|| self.special_name(word.text)).flatten();
        let text = special.as_deref().unwrap_or(word.text);
        if text == "@" && !word.is_quoted {
            return Ok(self.origin.clone());
        }
        match &self.origin {
            Some(origin) => Name::parse(text.as_bytes(), origin.as_wire()).map(Some),
            None if text.ends_with('.') && !text.ends_with("\\.") => text.parse().map(Some),
            None => Ok(None),
        }
    }
}

/// Returns TTL, type and data of a record's words behind its owner; none if there is no type.
fn parts<'e, 't>(words: &'e [Word<'t>]) -> Option<Parts<'e, 't>> {
    let mut ttl = None;
    for (index, word) in words.iter().enumerate() {
        let is_class = ["IN", "CH", "HS"].iter().any(|it| it.eq_ignore_ascii_case(word.text));
        let starts_with_digit = word.text.starts_with(|c: char| c.is_ascii_digit());
        if starts_with_digit && ttl.is_none() && word.text.split('/').all(is_ttl) {
            ttl = Some(word.text);
        } else if !is_class {
            return Some(Parts { ttl, rtype: word.text, data: &words[index + 1..] });
        }
    }
    None
}

/// Whether a text is a TTL.
fn is_ttl(text: &str) -> bool {
    ttl_secs(text).is_some()
}

/// Returns a string that is longer than 255 octets as several; none if it is not.
fn cut_string(text: &str) -> Option<String> {
    /// Octets of a string (rfc1035#3.3).
    const OCTETS_MAX: usize = 255;
    let mut pieces = vec![String::new()];
    let (mut octets, mut rest) = (0, text);
    while let Some(c) = rest.chars().next() {
        let len = match (c, rest.as_bytes()) {
            ('\\', [_, b'0'..=b'9', b'0'..=b'9', b'0'..=b'9', ..]) => 4,
            ('\\', _) => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            _ => c.len_utf8(),
        };
        let weight = if c == '\\' { 1 } else { len };
        if octets + weight > OCTETS_MAX {
            pieces.push(String::new());
            octets = 0;
        }
        octets += weight;
        if let Some(piece) = pieces.last_mut() {
            piece.push_str(&rest[..len]);
        }
        rest = &rest[len..];
    }
    (pieces.len() > 1).then(|| format!("\"{}\"", pieces.join("\" \"")))
}

/// Returns the error of a word that is not a name.
fn not_a_name(word: &Word<'_>, why: NameError, place: Place) -> ImportError {
    ImportError { place: Some(place), problem: Problem::NotAName(word.text.to_owned(), why) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::memory::Memory;

    fn copied(files: &[(&str, &str)], zone: Option<&str>) -> ZoneCopy {
        let dialect = Dialect { types: &["DYNA"], is_gdnsd: true, default_ttl: None };
        let zone = zone.map(|zone| zone.parse().unwrap());
        copy(Path::new(files[0].0), zone.as_ref(), &dialect, &mut Memory(files)).unwrap()
    }

    #[test]
    fn a_record_that_had_its_owner_from_a_steered_one_gets_it_written() {
        let zone =
            "$TTL 60\nmail A 192.0.2.1\nwww 300/60 DYNA multifo!web\n  MX 10 mail\n  TXT a\n";
        let copy = copied(&[("/z", zone)], Some("example.com"));
        let expected = "$TTL 60\nmail A 192.0.2.1\n; taken out: www 300/60 DYNA multifo!web\n\
            www.example.com.  MX 10 mail\n  TXT a\n";
        assert_eq!(copy.text, expected);
        let record = &copy.special[0];
        assert_eq!(record.owner.to_string(), "www.example.com.");
        assert_eq!((record.ttl.as_deref(), record.place.line), (Some("300/60"), 3));
        assert_eq!(record.data[0].0, "multifo!web");
    }

    #[test]
    fn an_included_file_stands_in_place_with_its_own_origin() {
        let zone = "$TTL 1h\n@ NS ns\n$INCLUDE inc sub\n  A 192.0.2.1\n";
        let inc = "$TTL 60\n$ORIGIN x\na A 192.0.2.2\nb.@F CNAME c.@Z\nd DYNA m!e\n";
        let copy = copied(&[("/z", zone), ("/inc", inc)], Some("example.com"));
        let expected = "$TTL 1h\n@ NS ns\n; from inc\n$ORIGIN sub.example.com.\n$TTL 60\n\
            $ORIGIN x\na A 192.0.2.2\nb.sub.example.com. CNAME c.example.com.\n\
            ; taken out: d DYNA m!e\n$ORIGIN example.com.\n$TTL 1h\nexample.com.  A 192.0.2.1\n";
        assert_eq!(copy.text, expected);
        assert_eq!(copy.special[0].owner.to_string(), "d.x.sub.example.com.");
        assert_eq!(copy.special[0].ttl.as_deref(), Some("60"));
    }

    #[test]
    fn without_a_name_the_zone_is_that_of_the_soa() {
        let zone = "example.com. 60 IN SOA a. b. 1 2 3 4 5\nwww.example.com. 60 IN DYNA m!e\n";
        assert_eq!(copied(&[("/z", zone)], None).zone.to_string(), "example.com.");
    }

    #[test]
    fn long_strings_of_gdnsd_are_cut() {
        let long = format!("a{}\\065z", "é".repeat(127));
        let cut = cut_string(&long).unwrap();
        assert_eq!(cut, format!("\"a{}\" \"\\065z\"", "é".repeat(127)));
        assert!(cut_string(&"x".repeat(255)).is_none());
    }
}
