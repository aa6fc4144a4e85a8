//! Databases of locations in a program without the feature `databases`: none can be opened.

use crate::Location;
use crate::table::AddressValues;
use std::convert::Infallible;
use std::fmt;
use std::net::IpAddr;
use std::path::Path;

/// Most octets of a file.
pub const DATABASE_OCTETS_MAX: u64 = 0;

/// The locations of all addresses, of which there is no instance.
#[derive(Debug)]
pub struct Database(Infallible);

/// Why a database cannot be used: this program was built without databases.
#[derive(Debug)]
pub struct DatabaseError {
    /// Name of the file.
    file: String,
}

impl Database {
    /// Opens no file.
    ///
    /// # Errors
    /// Always: the feature is not there.
    pub fn open(path: &Path) -> Result<Self, DatabaseError> {
        Err(DatabaseError { file: path.display().to_string() })
    }

    /// Reads no octets.
    ///
    /// # Errors
    /// Always: the feature is not there.
    pub fn from_bytes(name: &str, _octets: &[u8]) -> Result<Self, DatabaseError> {
        Err(DatabaseError { file: name.to_owned() })
    }

    /// Returns the database of what two tell together.
    pub fn joined(&self, _other: &Self) -> Self {
        match self.0 {}
    }

    /// Returns the location of an address.
    pub fn locate(&self, _address: IpAddr) -> (&Location, u8) {
        match self.0 {}
    }

    /// Returns what the file says it is.
    pub fn kind(&self) -> &str {
        match self.0 {}
    }

    /// Returns when the file was made, in seconds since 1970.
    pub fn built_at_secs(&self) -> u64 {
        match self.0 {}
    }

    /// Returns the locations without repetition.
    pub(crate) fn locations(&self) -> &[Location] {
        match self.0 {}
    }

    /// Returns the number of the location of every address.
    pub(crate) fn values(&self) -> &AddressValues {
        match self.0 {}
    }

    /// Returns the octets of memory of the ranges of addresses.
    pub fn memory(&self) -> usize {
        match self.0 {}
    }
}

impl fmt::Display for DatabaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: this program was built without the feature `server`", self.file)
    }
}

impl std::error::Error for DatabaseError {}
