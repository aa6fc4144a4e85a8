//! Answers that are read as records of one type.

use zonda_engine::code::Reply;
use zonda_wire::{Message, Name, Section, Type};

/// Is shown records: owner, if it is not the name asked for, time to live in seconds, and data.
type SeeRecord<'s> = &'s mut dyn FnMut(Option<Name>, u32, &[u8]);

/// What has records in its answer, of which each type of record reads its own by `all_in`: a
/// [`Message`], and the [`Reply`] that [`App::after`](crate::App::after) sees.
pub trait Answers {
    /// Shows the records of a type in the answer: owner, if it is not the name asked for, time to
    /// live and data.
    #[doc(hidden)]
    fn each(&self, rtype: Type, see: SeeRecord<'_>);
}

impl Answers for Message {
    fn each(&self, rtype: Type, see: SeeRecord<'_>) {
        let own = self.section(Section::Answer).filter(|record| record.rtype == rtype);
        own.for_each(|record| see(Some(record.owner.clone()), record.ttl, &record.rdata));
    }
}

impl Answers for Reply {
    fn each(&self, rtype: Type, see: SeeRecord<'_>) {
        for (section, owner, own, ttl_secs, rdata) in self.records() {
            if (section, own) == (Section::Answer, rtype) {
                see(Name::from_wire(owner).ok(), ttl_secs, rdata); // none if it is empty
            }
        }
    }
}
