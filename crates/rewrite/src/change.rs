//! A question that was changed, and how the reply becomes one to the question of the client.

use crate::name_match::NewText;
use crate::regex::bytes::Regex;
use crate::rule::{CompiledRule, RewriteRule};
use crate::rules::RewriteRules;
use crate::text;
use std::sync::Arc;
use zonda_wire::query::{HEADER_BYTES, flag};
use zonda_wire::response::RecordView;
use zonda_wire::{Class, Owner, Places, Query, Rcode, Reply, Response, Section, Type};
use zonda_wire::{name, rdata};

/// Octets of an OPT record without options (rfc6891#6.1.2).
const OPT_BYTES: usize = 11;
/// Bits of the flags word that are not the query's: AA, TC, RA and AD.
const REPLY_FLAGS: u16 = flag::AA | flag::TC | flag::RA | flag::AD;

/// What rules have made of a question, and what has to be done with its reply.
///
/// Rules that are for flags alone make a change without rules, question and steps, which neither
/// allocates nor counts references.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The rules, of which the steps name some.
    pub(crate) rules: Option<Arc<RewriteRules>>,
    /// The question as the client has sent it: name, type and class; empty if flags of the reply
    /// are all that is changed.
    pub(crate) question: Box<[u8]>,
    /// The steps that the rules have taken, in their order.
    pub(crate) steps: Vec<Step>,
    /// The flags of the reply that are changed where nothing else is.
    pub(crate) flags: FlagChange,
}

/// Flags of a reply that rules set and clear; what is cleared counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlagChange {
    /// The flags that are set.
    pub set: u16,
    /// The flags that are cleared.
    pub clear: u16,
}

impl FlagChange {
    /// Returns the change of a rule and of those before it, which are undone after it.
    pub fn after(self, rule: &RewriteRule) -> Self {
        Self { set: self.set | rule.set_flags, clear: self.clear | rule.clear_flags & !self.set }
    }

    /// Returns a flags word as it is after the change.
    fn apply(self, flags: u16) -> u16 {
        (flags | self.set) & !self.clear
    }
}

/// The answer of a record that cannot be sent to the client as it has become.
enum Unsendable {
    /// The records that must be sent have no room.
    Full,
    /// A name has become longer than names can be.
    LongName,
}

/// A step from the question of the client to the one that is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A name has another one in its place, and names below it.
    Remap {
        /// The name in the reply, in wire form.
        from: Box<[u8]>,
        /// Name that takes its place, in wire form.
        to: Box<[u8]>,
    },
    /// The rule of this number was met.
    Rule(u16),
}

/// A name that has become longer than names can be, or is none any more.
struct NoName;

/// Memory for replies that are changed, kept so that few of them allocate.
#[derive(Default)]
pub struct Revert {
    /// The reply as it was made.
    message: Vec<u8>,
    /// The owner of a record, then its new one.
    owner: Vec<u8>,
    /// Data of a record.
    rdata: Vec<u8>,
    /// Text of a name.
    text: Vec<u8>,
    /// A name under way, in wire form.
    wire: Vec<u8>,
    /// The places of names in the new reply.
    places: Places,
}

impl Change {
    /// Whether more than flags of the reply is changed, so that the client's question is kept.
    #[must_use]
    pub fn has_question(&self) -> bool {
        !self.question.is_empty()
    }

    /// Returns the question as the client has sent it: name, type and class.
    #[must_use]
    pub fn question(&self) -> &[u8] {
        &self.question
    }

    /// Returns the name that the client asks for, in wire form and the case that it came in.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.question[..self.question.len().saturating_sub(4)]
    }

    /// Returns the type that the client asks for.
    #[must_use]
    pub fn qtype(&self) -> Type {
        let at = self.question.len().saturating_sub(4);
        let word = self.question.get(at..).and_then(|rest| rest.first_chunk());
        Type(word.map_or(0, |word| u16::from_be_bytes(*word)))
    }

    /// Puts the client's question into a message in place of the one that ends at `question_end`.
    pub fn restore_question(&self, message: &mut Vec<u8>, question_end: usize) {
        if self.has_question() && (HEADER_BYTES..=message.len()).contains(&question_end) {
            message.splice(HEADER_BYTES..question_end, self.question.iter().copied());
        }
    }

    /// Turns the reply in the first `len` octets of a buffer, whose question ends at
    /// `question_end`, into one to the client's question, of at most `limit` octets; returns its
    /// length.
    pub fn revert(
        &self,
        buffer: &mut [u8],
        len: usize,
        limit: usize,
        memory: &mut Revert,
    ) -> usize {
        if !self.has_question() {
            if let Some(word) = buffer.get_mut(2..4) {
                let flags = self.flags.apply(u16::from_be_bytes([word[0], word[1]]));
                word.copy_from_slice(&flags.to_be_bytes());
            }
            return len;
        }
        let mut message = std::mem::take(&mut memory.message);
        message.clear();
        message.extend_from_slice(&buffer[..len]);
        let written = self.write(&message, buffer, limit, memory);
        memory.message = message;
        written
    }

    /// Writes the reply that another one becomes.
    fn write(&self, message: &[u8], buffer: &mut [u8], limit: usize, memory: &mut Revert) -> usize {
        let flags = message.get(2..4).map_or(0, |it| u16::from_be_bytes([it[0], it[1]]));
        let question_end = HEADER_BYTES + self.question.len();
        if question_end > limit.min(buffer.len()) {
            return 0; // no message is so short, and no buffer
        }
        buffer[HEADER_BYTES..question_end].copy_from_slice(&self.question);
        let query = Query {
            flags: flags & !(REPLY_FLAGS | flag::QR),
            name_end: (question_end - 4) as u16, // a name has at most 255 octets
            qtype: self.qtype(),
            ..Query::default()
        };
        let mut places = std::mem::take(&mut memory.places);
        let mut reply = Reply::new(buffer, &query, limit, &mut places);
        let mut kept = flags & (REPLY_FLAGS | flag::RD);
        if self.changes_what_is_signed() {
            kept &= !flag::AD; // no signature covers what the client gets (rfc4035#3.2.3)
        }
        let mut rcode = Rcode(flags & 0xf);
        let mut is_extended = false; // then this is only the lower half of the code
        match Response::parse(message) {
            Ok(response) => {
                let opt = response.records().find(|record| record.rtype == Type::OPT);
                is_extended = opt.is_some_and(|opt| opt.ttl >> 24 != 0); // rfc6891#6.1.3
                let opt = opt.map(opt_record);
                let room = opt.as_ref().map_or(0, Vec::len);
                reply.set_limit(limit.saturating_sub(room));
                match self.records(&response, &mut reply, memory) {
                    Ok(()) => {}
                    Err(Unsendable::Full) => {
                        reply.clear();
                        kept |= flag::TC;
                    }
                    Err(Unsendable::LongName) => {
                        reply.clear();
                        kept &= !(flag::AA | flag::AD);
                        rcode = Rcode::SERVFAIL;
                    }
                }
                reply.set_limit(limit);
                if let Some(opt) = opt {
                    let _ = reply.raw_record(Section::Additional, &opt); // there is room
                }
            }
            Err(_) => rcode = Rcode::SERVFAIL, // the engine writes none such
        }
        for rule in self.met_rules() {
            kept = (kept | rule.rule.set_flags) & !rule.rule.clear_flags;
            rcode = match rule.rule.rcode {
                Some((from, to)) if from == rcode && !is_extended => to,
                _ => rcode,
            };
        }
        let query = Query { flags: query.flags & !flag::RD, ..query };
        let written = reply.finish(&query, kept, rcode);
        memory.places = places;
        written
    }

    /// Writes all records but OPT, unless those of the answer and the authority section cannot be
    /// sent.
    fn records(
        &self,
        response: &Response<'_>,
        reply: &mut Reply<'_>,
        memory: &mut Revert,
    ) -> Result<(), Unsendable> {
        let keeps_signatures = self.fits_signatures(response, memory);
        for record in response.records().filter(|record| record.rtype != Type::OPT) {
            if !keeps_signatures && proves(record.rtype) {
                continue;
            }
            let ttl = match self.change_record(&record, memory) {
                Some(Ok((ttl, _))) => ttl,
                Some(Err(NoName)) if record.section != Section::Additional => {
                    return Err(Unsendable::LongName);
                }
                // Nothing needs an additional record, and the engine writes none that is wrong.
                Some(Err(NoName)) | None => continue,
            };
            let fixed: (Type, Class, u32) = (record.rtype, record.class, ttl);
            let owner = Owner::Name(&memory.owner);
            let written = reply.record(record.section, owner, fixed, &memory.rdata);
            if record.section != Section::Additional {
                written.map_err(|_| Unsendable::Full)?;
            }
        }
        Ok(())
    }

    /// Whether what signatures and proofs in the reply say, if there are any, is also true of the
    /// reply to the client's question: neither that nor a record is changed but in its TTL.
    fn fits_signatures(&self, response: &Response<'_>, memory: &mut Revert) -> bool {
        if !response.records().any(|record| proves(record.rtype)) {
            return true;
        }
        let is_other_question = self.met_rules().any(|it| {
            let it = &it.rule;
            it.to.is_some() || it.to_type.is_some() || it.to_class.is_some() || it.rcode.is_some()
        });
        let is_changed =
            |record| !matches!(self.change_record(&record, memory), Some(Ok((_, false))) | None);
        !is_other_question && !response.records().any(is_changed)
    }

    /// Reads a record into `memory` and changes its owner and data there, the last step first;
    /// returns its TTL, and whether a name has changed. Nothing if the record cannot be read.
    fn change_record(
        &self,
        record: &RecordView<'_>,
        memory: &mut Revert,
    ) -> Option<Result<(u32, bool), NoName>> {
        memory.owner.clear();
        memory.rdata.clear();
        record.owner_into(&mut memory.owner).ok()?;
        record.rdata_into(&mut memory.rdata).ok()?;
        Some(self.change_names(record, memory))
    }

    /// Changes the owner and the data of a record in `memory`.
    fn change_names(
        &self,
        record: &RecordView<'_>,
        memory: &mut Revert,
    ) -> Result<(u32, bool), NoName> {
        let (mut ttl, mut is_changed) = (record.ttl, false);
        for step in self.steps.iter().rev() {
            match step {
                Step::Remap { from, to } => {
                    if remap(&memory.owner, (from, to), &mut memory.wire)? {
                        std::mem::swap(&mut memory.owner, &mut memory.wire);
                        is_changed = true;
                    }
                    is_changed |= change_target(record.rtype, memory, |name, _, made| {
                        remap(name, (from, to), made)
                    })?;
                }
                Step::Rule(place) => {
                    let Some(rule) = self.rule(*place) else { continue };
                    is_changed |= change_by_rule(rule, record.rtype, memory)?;
                    if let Some((least, most)) = rule.rule.ttl {
                        ttl = ttl.clamp(least, most);
                    }
                }
            }
        }
        Ok((ttl, is_changed))
    }

    /// Returns a rule by its place.
    fn rule(&self, place: u16) -> Option<&CompiledRule> {
        self.rules.as_ref()?.get(place)
    }

    /// Returns the rules that were met, the last one first.
    fn met_rules(&self) -> impl Iterator<Item = &CompiledRule> {
        self.steps.iter().rev().filter_map(|step| match step {
            Step::Rule(place) => self.rule(*place),
            Step::Remap { .. } => None,
        })
    }

    /// Whether the question, the names of the reply or its response code are changed.
    fn changes_what_is_signed(&self) -> bool {
        self.met_rules().any(|it| {
            let of_question = it.rule.to_type.is_some() || it.rule.to_class.is_some();
            let of_names = it.to.is_some() || !it.owners.is_empty() || !it.targets.is_empty();
            of_question || of_names || it.rule.rcode.is_some()
        })
    }
}

/// Writes another question into a message of `len` octets in place of the one that ends at
/// `question_end`; returns the new length, or nothing if there is no room.
#[must_use]
pub fn replace_question(
    buffer: &mut [u8],
    len: usize,
    question_end: usize,
    question: &[u8],
) -> Option<usize> {
    let behind = len.checked_sub(question_end)?;
    let end = HEADER_BYTES + question.len();
    if end + behind > buffer.len() || question_end < HEADER_BYTES {
        return None;
    }
    buffer.copy_within(question_end..len, end);
    buffer[HEADER_BYTES..end].copy_from_slice(question);
    Some(end + behind)
}

/// Whether records of a type prove what other records of a reply say, or that there are none.
fn proves(rtype: Type) -> bool {
    matches!(rtype, Type::RRSIG | Type::NSEC | Type::NSEC3)
}

/// Changes owner and target of a record as a rule says for replies; returns whether it has.
fn change_by_rule(rule: &CompiledRule, rtype: Type, memory: &mut Revert) -> Result<bool, NoName> {
    let mut is_changed = false;
    for (regex, to) in rule.targets.iter().rev() {
        is_changed |= change_target(rtype, memory, |name, text, made| {
            replace(name, (regex, to), text, made)
        })?;
    }
    for (regex, to) in rule.owners.iter().rev() {
        let Revert { owner, text, wire, .. } = memory;
        if replace(owner, (regex, to), text, wire)? {
            std::mem::swap(&mut memory.owner, &mut memory.wire);
            is_changed = true;
        }
    }
    if let Some((from, to)) = &rule.suffix {
        is_changed |= change_target(rtype, memory, |name, text, made| {
            replace_end(name, (from, to), text, made)
        })?;
        let Revert { owner, text, wire, .. } = memory;
        if replace_end(owner, (from, to), text, wire)? {
            std::mem::swap(&mut memory.owner, &mut memory.wire);
            is_changed = true;
        }
    }
    Ok(is_changed)
}

/// Has `change` make another name of the one that a record's data lead to, if they do; returns
/// whether it has.
fn change_target(
    rtype: Type,
    memory: &mut Revert,
    change: impl FnOnce(&[u8], &mut Vec<u8>, &mut Vec<u8>) -> Result<bool, NoName>,
) -> Result<bool, NoName> {
    let leads = matches!(
        rtype,
        Type::SRV
            | Type::MX
            | Type::CNAME
            | Type::NS
            | Type::DNAME
            | Type::NAPTR
            | Type::SOA
            | Type::PTR
    );
    if !leads {
        return Ok(false);
    }
    let Some(found) = rdata::names(rtype, &memory.rdata).next() else { return Ok(false) };
    let place = found.offset..found.offset + found.len;
    let Revert { rdata, text, wire, .. } = memory;
    let is_changed = change(&rdata[place.clone()], text, wire)?;
    if is_changed {
        rdata.splice(place, wire.iter().copied());
    }
    Ok(is_changed)
}

/// Writes over `made` what a name becomes whose end is `from`; returns whether it is.
fn remap(name: &[u8], (from, to): (&[u8], &[u8]), made: &mut Vec<u8>) -> Result<bool, NoName> {
    if !name::is_at_or_below(name, from) {
        return Ok(false);
    }
    made.clear();
    made.extend_from_slice(&name[..name.len() - from.len()]);
    made.extend_from_slice(to);
    if name::wire_len(made) == Some(made.len()) { Ok(true) } else { Err(NoName) }
}

/// Writes over `made` what a name becomes that a regular expression matches; returns whether it
/// does.
fn replace(
    name: &[u8],
    (regex, to): (&Regex, &NewText),
    text: &mut Vec<u8>,
    made: &mut Vec<u8>,
) -> Result<bool, NoName> {
    text::write(name, text);
    let Some(groups) = regex.captures(text) else { return Ok(false) };
    if text::read(&to.filled(&groups), made) { Ok(true) } else { Err(NoName) }
}

/// Writes over `made` what a name becomes whose text ends with another; returns whether it does.
fn replace_end(
    name: &[u8],
    (from, to): (&[u8], &[u8]),
    text: &mut Vec<u8>,
    made: &mut Vec<u8>,
) -> Result<bool, NoName> {
    text::write(name, text);
    let Some(rest) = text.strip_suffix(from) else { return Ok(false) };
    if text::read(&[rest, to].concat(), made) { Ok(true) } else { Err(NoName) }
}

/// Returns an OPT record in wire form.
fn opt_record(record: RecordView<'_>) -> Vec<u8> {
    let mut made = Vec::with_capacity(OPT_BYTES + record.raw.len());
    made.push(0);
    made.extend(Type::OPT.0.to_be_bytes());
    made.extend(record.class.0.to_be_bytes());
    made.extend(record.ttl.to_be_bytes());
    made.extend((record.raw.len() as u16).to_be_bytes()); // as it was read
    made.extend_from_slice(record.raw);
    made
}
