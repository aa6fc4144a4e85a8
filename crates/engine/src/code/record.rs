//! Records as code gives them, and what replies are made of them.

use super::elsewhere::Elsewhere;
use super::keep::{Keep, Vary};
use super::reply::{Ending, HandlerReply};
use zonda_wire::query::flag;
use zonda_wire::{Ede, Name, Rcode, Section, Type};

/// A record that a reply can hold.
pub trait Record {
    /// Its type.
    fn rtype(&self) -> Type;

    /// Its time to live, seconds.
    fn ttl_secs(&self) -> u32;

    /// Whose it is; nothing stands for the name asked for.
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

impl HandlerReply {
    /// Adds a record to the answer.
    pub fn answer(&mut self, record: impl Record) {
        self.add(Section::Answer, &record);
    }

    /// Adds records to the answer.
    pub fn answers<R: Record>(&mut self, records: impl IntoIterator<Item = R>) {
        for record in records {
            self.add(Section::Answer, &record);
        }
        self.reply(self.rcode);
    }

    /// Adds a record to the authority section: SOA beside a negative answer, NS in a referral.
    pub fn authority(&mut self, record: impl Record) {
        self.add(Section::Authority, &record);
    }

    /// Adds a record to the additional section, which is sent if there is room for it.
    pub fn additional(&mut self, record: impl Record) {
        self.add(Section::Additional, &record);
    }

    /// Adds a record. A reply that grows too long for any message becomes SERVFAIL without records,
    /// and stays that until it is cleared.
    fn add(&mut self, section: Section, record: &dyn Record) {
        self.ending = Ending::Reply;
        if self.is_overfull() {
            return;
        }
        let owner = record.owner().map_or(&[][..], Name::as_wire);
        let fixed = (record.rtype(), record.ttl_secs());
        let pushed = self.push_with(section, owner, fixed, |out| record.write_rdata(out));
        if let Err(overfull) = pushed {
            self.servfail(&overfull.to_string());
            self.note_overfull();
        }
    }

    /// Makes it a reply with a response code, and with the records that were added; SERVFAIL if
    /// those were too many for any message.
    pub fn reply(&mut self, rcode: Rcode) {
        let rcode = if self.is_overfull() { Rcode::SERVFAIL } else { rcode };
        (self.rcode, self.ending) = (rcode, Ending::Reply);
    }

    /// Says that the name exists, but has no records of the type.
    pub fn no_data(&mut self) {
        self.reply(Rcode::NOERROR);
    }

    /// Says that there is no such name.
    pub fn nxdomain(&mut self) {
        self.reply(Rcode::NXDOMAIN);
    }

    /// Refuses to answer.
    pub fn refused(&mut self) {
        self.flags &= !flag::AA;
        self.reply(Rcode::REFUSED);
    }

    /// Says that the answer cannot be had, and why; the client may ask another server.
    pub fn servfail(&mut self, why: &str) {
        self.clear_records();
        self.flags &= !flag::AA;
        self.extended_error(Ede::OTHER, why);
        self.reply(Rcode::SERVFAIL);
    }

    /// Has the same answer given to the same question for so many seconds, without asking the code
    /// again: to all clients, or as `vary` says. Without that, an answer is not kept if the code
    /// has read the client's data.
    pub fn cache(&mut self, ttl_secs: u32, vary: Vary) {
        self.keep = Some(Keep { ttl_secs, vary });
    }

    /// Sends nothing.
    #[expect(clippy::should_implement_trait, reason = "the word of all three languages")]
    pub fn drop(&mut self) {
        self.ending = Ending::Drop;
    }

    /// Former name of [`servfail`](Self::servfail).
    #[deprecated(note = "it is called `servfail`")]
    pub fn fail(&mut self, why: &str) {
        self.servfail(why);
    }

    /// Former name of [`drop`](Self::drop).
    #[deprecated(note = "it is called `drop`")]
    pub fn silence(&mut self) {
        self.drop();
    }

    /// Former name of [`extended_error`](Self::extended_error).
    #[deprecated(note = "it is called `extended_error`")]
    pub fn set_error(&mut self, code: Ede, text: &str) {
        self.extended_error(code, text);
    }

    /// Leaves the query to the zones, as if there were no handler.
    pub fn pass_on(&mut self) {
        self.ending = Ending::PassOn;
    }

    /// Has code elsewhere answer, which may wait. What that leaves as it is, goes on from here: a
    /// middleware's query at what follows it, a handler's at the zones. What is in this reply is
    /// not sent. Code that has waited itself cannot say so: its answer is SERVFAIL then.
    pub fn defer_to(&mut self, code: Elsewhere) {
        self.ending = Ending::Defer(code);
    }

    /// Whether the reply has AA: it has unless this was set otherwise, and REFUSED and SERVFAIL
    /// have not.
    pub fn authoritative(&mut self, is_authoritative: bool) {
        self.flags = if is_authoritative { self.flags | flag::AA } else { self.flags & !flag::AA };
    }
}
