//! Databases of locations in MaxMind's format, read once.
//!
//! | module | what it holds |
//! |---|---|
//! | `tree` | from networks to the places of records |
//! | `record` | from the data of a record to a location |
//!
//! Everything is read when a database is opened, so that a damaged file is an error of loading and
//! never one of a look-up.

mod record;
mod tree;

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::net::IpAddr;
use std::path::Path;

use maxminddb::{MaxMindDbError, Reader};

use crate::table::{Address, AddressValues, Ranges};
use crate::{Location, PREFIXES_MAX};
use record::Data;
use tree::{SearchTree, TreeError};

/// Most octets of a file; the largest that are sold have some 500 MB.
pub const DATABASE_OCTETS_MAX: u64 = 1 << 30;
/// Most values that the records of a file may have for each of its octets: records point to parts
/// that they share, and a file that was made to take time does little else.
const VALUES_PER_OCTET_MAX: usize = 64;
/// The number of the location that nothing is known of.
const UNKNOWN: u32 = 0;

/// The locations of all addresses.
#[derive(Debug)]
pub struct Database {
    /// Number of the location of every address.
    values: AddressValues,
    /// The locations without repetition; the first one is unknown in every field.
    locations: Vec<Location>,
    /// What the file says it is: `GeoLite2-City`.
    kind: String,
    /// When the file was made, in seconds since 1970; of two, the older one.
    built_at_secs: u64,
}

impl Database {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, is damaged, or tells no location. The error names it and says what
    /// to do.
    pub fn open(path: &Path) -> Result<Self, DatabaseError> {
        let error = |problem| DatabaseError { file: path.display().to_string(), problem };
        let octets = read_bounded(path).map_err(error)?;
        Self::read(&octets).map_err(error)
    }

    /// Reads the octets of a file, which errors call `name`.
    ///
    /// # Errors
    /// As those of [`Database::open`].
    pub fn from_bytes(name: &str, octets: &[u8]) -> Result<Self, DatabaseError> {
        Self::read(octets).map_err(|problem| DatabaseError { file: name.to_owned(), problem })
    }

    /// Reads the octets of a file.
    fn read(octets: &[u8]) -> Result<Self, Problem> {
        let reader = Reader::from_source(octets).map_err(Problem::Damaged)?;
        let metadata = reader.metadata();
        let mut tree = SearchTree::new(octets, metadata.node_count, metadata.record_size)?;
        let (v4, v6) = if metadata.ip_version == 4 {
            let mut v6 = Ranges::empty();
            v6.push(0, tree::NO_DATA);
            (tree.v4()?, v6)
        } else {
            tree.both_families()?
        };
        if v4.len() + v6.len() > PREFIXES_MAX {
            return Err(Problem::TooManyNetworks);
        }
        let mut records = Records::new(&reader, octets.len());
        let v4 = records.located(&v4, |start| IpAddr::V4(start.into()))?;
        let v6 = records.located(&v6, |start| IpAddr::V6(start.into()))?;
        if records.locations.len() == 1 {
            return Err(Problem::NoLocations { kind: metadata.database_type.clone() });
        }
        Ok(Self {
            values: AddressValues { v4, v6 },
            locations: records.locations,
            kind: metadata.database_type.clone(),
            built_at_secs: metadata.build_epoch,
        })
    }

    /// Returns the database of what two tell together, as one of cities and one of autonomous
    /// systems: what both know, this one decides.
    pub fn joined(&self, other: &Self) -> Self {
        let mut numbers = HashMap::from([((UNKNOWN, UNKNOWN), UNKNOWN)]);
        let mut by_location = HashMap::from([(Location::default(), UNKNOWN)]);
        let mut locations = vec![Location::default()];
        let values = self.values.combined(&other.values, |mine, theirs| {
            *numbers.entry((mine, theirs)).or_insert_with(|| {
                let (mine, theirs) = (mine as usize, theirs as usize);
                let location = self.locations[mine].or(&other.locations[theirs]);
                *by_location.entry(location).or_insert_with_key(|location| {
                    locations.push(location.clone());
                    locations.len() as u32 - 1
                })
            })
        });
        Self {
            values,
            locations,
            kind: format!("{} and {}", self.kind, other.kind),
            built_at_secs: self.built_at_secs.min(other.built_at_secs),
        }
    }

    /// Returns the location of an address, unknown in every field if the database has none, and the
    /// length of the widest prefix around the address with that location.
    pub fn locate(&self, address: IpAddr) -> (&Location, u8) {
        let (value, scope) = self.values.find(address);
        (&self.locations[value as usize], scope)
    }

    /// Returns what the file says it is: `GeoLite2-City`.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Returns when the file was made, in seconds since 1970; of two, the older one.
    pub fn built_at_secs(&self) -> u64 {
        self.built_at_secs
    }

    /// Returns the locations without repetition, which the values of `values` count; the first one
    /// is unknown in every field.
    pub(crate) fn locations(&self) -> &[Location] {
        &self.locations
    }

    /// Returns the number of the location of every address.
    pub(crate) fn values(&self) -> &AddressValues {
        &self.values
    }

    /// Returns the octets of memory of the ranges of addresses, without those of the locations.
    pub fn memory(&self) -> usize {
        self.values.memory()
    }
}

/// Reads a file of at most [`DATABASE_OCTETS_MAX`] octets.
fn read_bounded(path: &Path) -> Result<Vec<u8>, Problem> {
    let file = File::open(path).map_err(Problem::Unreadable)?;
    let mut octets = Vec::new();
    // A bound on what is read: the length of the file may change meanwhile.
    file.take(DATABASE_OCTETS_MAX + 1).read_to_end(&mut octets).map_err(Problem::Unreadable)?;
    if octets.len() as u64 > DATABASE_OCTETS_MAX {
        return Err(Problem::TooLarge);
    }
    Ok(octets)
}

/// The records that were read so far.
struct Records<'a> {
    /// Decodes a record.
    reader: &'a Reader<&'a [u8]>,
    /// Values that may still be decoded.
    values_left: usize,
    /// Number of the location of each record, by its place in the file.
    by_place: HashMap<u32, u32>,
    /// Number of each location.
    by_location: HashMap<Location, u32>,
    /// The locations without repetition.
    locations: Vec<Location>,
}

impl<'a> Records<'a> {
    /// Begins without a record.
    fn new(reader: &'a Reader<&'a [u8]>, octets: usize) -> Self {
        Self {
            reader,
            values_left: octets.saturating_mul(VALUES_PER_OCTET_MAX),
            by_place: HashMap::from([(tree::NO_DATA, UNKNOWN)]),
            by_location: HashMap::from([(Location::default(), UNKNOWN)]),
            locations: vec![Location::default()],
        }
    }

    /// Replaces the places of records by the numbers of their locations.
    fn located<A: Address>(
        &mut self,
        places: &Ranges<A>,
        address: impl Fn(A) -> IpAddr,
    ) -> Result<Ranges<A>, Problem> {
        let mut ranges = Ranges::empty();
        for range in 0..places.len() {
            let (place, start) = (places.value(range), places.start(range));
            let number = match self.by_place.get(&place) {
                Some(number) => *number,
                None => {
                    let number = self.read(address(start))?;
                    self.by_place.insert(place, number);
                    number
                }
            };
            ranges.push(start, number);
        }
        Ok(ranges.complete())
    }

    /// Reads the record of an address and returns the number of its location.
    fn read(&mut self, address: IpAddr) -> Result<u32, Problem> {
        let found = self.reader.lookup(address).map_err(Problem::Damaged)?;
        let Some(data) = found.decode::<Data<'_>>().map_err(Problem::Damaged)? else {
            return Ok(UNKNOWN);
        };
        self.values_left =
            self.values_left.checked_sub(data.count()).ok_or(Problem::TooManyValues)?;
        let location = data.location();
        if let Some(number) = self.by_location.get(&location) {
            return Ok(*number);
        }
        // Below the number of networks, which `PREFIXES_MAX` bounds.
        let number = self.locations.len() as u32;
        self.locations.push(location.clone());
        self.by_location.insert(location, number);
        Ok(number)
    }
}

/// Why a database cannot be used.
#[derive(Debug)]
pub struct DatabaseError {
    /// Name of the file.
    file: String,
    /// What is wrong with it.
    problem: Problem,
}

/// What is wrong with the file of a database.
#[derive(Debug)]
enum Problem {
    /// The system does not hand it out.
    Unreadable(io::Error),
    /// A file of more than [`DATABASE_OCTETS_MAX`] octets.
    TooLarge,
    /// A file in another format, or with octets missing or changed.
    Damaged(MaxMindDbError),
    /// A search tree that is none.
    DamagedTree(TreeError),
    /// A tree of more than [`PREFIXES_MAX`] networks.
    TooManyNetworks,
    /// Records that refer to the same data over and over.
    TooManyValues,
    /// A whole file whose records tell nothing that a location has.
    NoLocations {
        /// What the file says it is.
        kind: String,
    },
}

impl From<TreeError> for Problem {
    fn from(error: TreeError) -> Self {
        Self::DamagedTree(error)
    }
}

impl fmt::Display for DatabaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file)?;
        match &self.problem {
            Problem::Unreadable(error) => {
                write!(f, "cannot be read: {error}; check the path and its permissions")
            }
            Problem::TooLarge => {
                write!(f, "has more than {DATABASE_OCTETS_MAX} octets; use a smaller database")
            }
            Problem::Damaged(error) => {
                write!(f, "no MaxMind database, or a damaged one: {error}; fetch it again")
            }
            Problem::DamagedTree(error) => {
                f.write_str(match error {
                    TreeError::Truncated => "the search tree is cut off",
                    TreeError::SharedNode => "the search tree leads to a node twice",
                    TreeError::TooDeep => "the search tree is deeper than an address has bits",
                })?;
                f.write_str("; fetch the database again")
            }
            Problem::TooManyNetworks => {
                write!(f, "has more than {PREFIXES_MAX} networks; use a smaller database")
            }
            Problem::TooManyValues => f.write_str(
                "the records refer to the same data too often; fetch the database again",
            ),
            Problem::NoLocations { kind } => write!(
                f,
                "a database of type {kind} without countries, cities, coordinates and AS numbers; \
                 use one of type City, Country or ASN"
            ),
        }
    }
}

impl std::error::Error for DatabaseError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.problem {
            Problem::Unreadable(error) => Some(error),
            Problem::Damaged(error) => Some(error),
            _ => None,
        }
    }
}
