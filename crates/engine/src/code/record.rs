//! Records as code gives them.

use zonda_wire::{Name, Type};

/// A record that a reply can hold.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be used as a record of a reply",
    label = "expected a record, such as `zonda::A` or `zonda::Txt`",
    note = "implement `zonda::Record` for types of your own"
)]
pub trait Record {
    /// Returns the type of the record.
    fn rtype(&self) -> Type;

    /// Returns the time to live, seconds.
    fn ttl_secs(&self) -> u32;

    /// Returns the owner; none stands for the name asked for.
    fn owner(&self) -> Option<&Name>;

    /// Appends its data in uncompressed wire form, which must be as the type's are.
    fn write_rdata(&self, out: &mut Vec<u8>);
}

impl<R: Record + ?Sized> Record for &R {
    fn rtype(&self) -> Type {
        (**self).rtype()
    }

    fn ttl_secs(&self) -> u32 {
        (**self).ttl_secs()
    }

    fn owner(&self) -> Option<&Name> {
        (**self).owner()
    }

    fn write_rdata(&self, out: &mut Vec<u8>) {
        (**self).write_rdata(out);
    }
}
