//! The names that a rule or a template is for.

use zonda_wire::{Name, name};

/// A zone, without other zones in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The zone, in lower case.
    pub zone: Name,
    /// Names that do not belong to it, with all below them; in lower case.
    pub except: Vec<Name>,
}

impl Scope {
    /// Returns the scope of all names.
    #[must_use]
    pub fn all() -> Self {
        Self { zone: Name::root(), except: Vec::new() }
    }

    /// Whether a name, in wire form, belongs to the scope.
    #[must_use]
    pub fn holds(&self, wire: &[u8]) -> bool {
        name::is_at_or_below(wire, self.zone.as_wire())
            && !self.except.iter().any(|it| name::is_at_or_below(wire, it.as_wire()))
    }
}
