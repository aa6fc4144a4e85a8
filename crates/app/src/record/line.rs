//! Records as lines of zone files.

use super::{Any, DataError, TTL_SECS};
use zonda_engine::code::Record;
use zonda_server::RecordLine;
use zonda_wire::Name;
use zonda_wire::rdata::Presentation;

/// Returns the line of a zone file that has a record: owner, time to live, class, type and data.
pub(super) fn to_line(record: &dyn Record) -> String {
    let mut rdata = Vec::new();
    record.write_rdata(&mut rdata);
    let owner = record.owner().map_or_else(|| "@".to_owned(), Name::to_string);
    let (ttl_secs, rtype) = (record.ttl_secs(), record.rtype());
    format!("{owner} {ttl_secs} IN {rtype} {}", Presentation { rtype, rdata: &rdata })
}

/// Reads a record from a line of a zone file.
///
/// # Errors
/// When the text is not one record.
pub(super) fn read(line: &str, origin: Option<&Name>) -> Result<Any, DataError> {
    let RecordLine { owner, rtype, ttl_secs, rdata } = RecordLine::read(line, origin, TTL_SECS)
        .map_err(|error| DataError { rtype: None, error: error.to_string() })?;
    Ok(Any { rtype, rdata, owner, ttl_secs })
}

impl Any {
    /// Returns the record as a line of a zone file, such as `www.example. 300 IN A 192.0.2.1`; the
    /// owner is `@` if the record has none, and so stands for the name asked for.
    #[must_use]
    pub fn to_line(&self) -> String {
        to_line(self)
    }

    /// Reads a record of any type from a line of a zone file, such as `www 60 IN A 192.0.2.1`. The
    /// class may be left out, and so may the time to live, which is 300 seconds then. Names without
    /// a final dot end at `origin`, or at the root; without an origin, `@` stands for the name
    /// asked for.
    ///
    /// ```
    /// # use zonda::{A, Any, Name, Record, Type};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let origin: Name = "example.org".parse()?;
    /// let record = Any::parse_line("www 60 MX 10 mail", Some(&origin))?;
    /// assert_eq!(record.rtype(), Type::MX);
    /// assert_eq!(record.to_line(), "www.example.org. 60 IN MX 10 mail.example.org.");
    /// let address = A::parse_line("www.example.org. A 192.0.2.1", None)?;
    /// assert_eq!(address.to_line(), "www.example.org. 300 IN A 192.0.2.1");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the text is not one record.
    pub fn parse_line(line: &str, origin: Option<&Name>) -> Result<Self, DataError> {
        read(line, origin)
    }
}
