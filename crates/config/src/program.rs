//! The data of a zone that a program gives; no file says so.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use zonda_zone::Records;

/// The data of a zone.
///
/// Texts are equal where they are the same; records only where they are the same list, so that no
/// comparison takes longer the more there are. A program gives another list for each version.
#[derive(Clone, Default)]
pub enum ProgramContent {
    /// No data yet: their source has not delivered them, such as a store that cannot be reached.
    #[default]
    Awaited,
    /// The text of a master file.
    Text(Arc<str>),
    /// Records that have been read already.
    Records(Arc<Records>),
}

impl PartialEq for ProgramContent {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(one), Self::Text(other)) => one == other,
            (Self::Records(one), Self::Records(other)) => Arc::ptr_eq(one, other),
            (Self::Awaited, Self::Awaited) => true,
            _ => false,
        }
    }
}

impl Eq for ProgramContent {}

impl Hash for ProgramContent {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Awaited => {}
            Self::Text(text) => text.hash(state),
            Self::Records(records) => Arc::as_ptr(records).hash(state),
        }
    }
}

impl fmt::Debug for ProgramContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Awaited => f.write_str("nothing yet"),
            Self::Text(text) => text.fmt(f),
            Self::Records(records) => write!(f, "{} records", records.len()),
        }
    }
}

impl<T: Into<Arc<str>>> From<T> for ProgramContent {
    fn from(text: T) -> Self {
        Self::Text(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_compare_by_content_and_records_by_identity_of_their_list() {
        assert_eq!(ProgramContent::from("a"), ProgramContent::from("a".to_owned()));
        assert_ne!(ProgramContent::from("a"), ProgramContent::from("b"));
        let records = Arc::new(Records::default());
        let given = ProgramContent::Records(Arc::clone(&records));
        assert_eq!(given, ProgramContent::Records(records));
        assert_ne!(given, ProgramContent::Records(Arc::default()));
        assert_ne!(given, ProgramContent::default());
        assert_eq!(ProgramContent::default(), ProgramContent::Awaited);
        assert_ne!(ProgramContent::default(), ProgramContent::from(""));
        assert_eq!(format!("{given:?}"), "0 records");
    }
}
