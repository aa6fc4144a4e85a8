//! A reply that Python's code puts together.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};
use zonda_engine::code::{Ending, HandlerReply, Keep, Vary};
use zonda_runtime::Ticket;
use zonda_wire::query::flag;
use zonda_wire::{Ede, Message, Rcode, Section, Type};

use crate::batch::TicketReply;
use crate::flatten::flattened;
use crate::foreign;
use crate::number::{
    RecordError, RecordTypeError, TTL_SECS_MAX, Text, Ttl, known, shown, whole, yes_or_no,
};
use crate::query::Query;
use crate::record::{self, Record};

pyo3::import_exception!(zonda.errors, StateError);

/// The option that says why there is no, or another, answer (rfc8914#2).
const EXTENDED_ERROR: u16 = 15;
/// The largest response code, which has twelve bits (rfc6891#6.1.3).
const RCODE_MAX: u16 = 0xfff;
/// The bits of a reply's header that are kept of one that was received.
const FLAGS: u16 = flag::AA | flag::RA | flag::AD | flag::TC;

/// A reply. Until something is put into it, the query is left to the zones.
#[pyclass(module = "zonda")]
pub struct Reply {
    /// Query that the reply is for, and its ticket; none when the reply was received.
    query: Option<(Ticket, Py<Query>)>,
    draft: HandlerReply,
    /// The message of the core that the draft was read from, if it was.
    below: Option<Vec<u8>>,
    /// Whether a change of the draft has begun since.
    is_touched: bool,
    /// Whether the code failed.
    has_failed: bool,
    /// Whether what is left is not for further handlers, as middleware has called them, or has
    /// left them out.
    has_passed_handlers: bool,
    /// Whether the reply can no longer be changed.
    is_sent: bool,
}

impl Reply {
    /// An empty one for a query.
    pub fn new(ticket: Ticket, query: Py<Query>) -> Self {
        let query = Some((ticket, query));
        Self { query, ..Self::with_draft(HandlerReply::default()) }
    }

    /// One of a draft, to no query.
    fn with_draft(draft: HandlerReply) -> Self {
        let (query, below, is_touched, has_failed) = (None, None, false, false);
        let (has_passed_handlers, is_sent) = (false, false);
        Self { query, draft, below, is_touched, has_failed, has_passed_handlers, is_sent }
    }

    /// One that was received.
    pub fn received(message: &[u8]) -> PyResult<Self> {
        let mut draft = HandlerReply::default();
        read(message, &mut draft)?;
        Ok(Self { is_sent: true, ..Self::with_draft(draft) })
    }

    /// The ticket of the query, until the reply was taken out.
    pub fn ticket(&self) -> Option<Ticket> {
        self.query.as_ref().map(|(ticket, _)| *ticket)
    }

    /// The query, if its handler has left it, and it may go on to another handler.
    pub fn query_left<'py>(&self, py: Python<'py>) -> Option<Bound<'py, Query>> {
        let is_left = self.draft.ending == Ending::PassOn && self.below.is_none();
        let (_, query) = self.query.as_ref().filter(|_| is_left && !self.has_failed)?;
        (!self.has_passed_handlers).then(|| query.bind(py).clone())
    }

    /// Takes out what is to be sent; nothing if that was done before. A reply of the core that was
    /// not changed passes the query on: the core has kept it.
    pub fn give(&mut self) -> Option<TicketReply> {
        let (ticket, query) = self.query.take()?; // so that they do not hold each other
        self.is_sent = true;
        let scope = self.draft.scope;
        if self.is_as_the_core_has_it() {
            self.draft.clear();
        }
        let mut draft = std::mem::take(&mut self.draft);
        // A handler that has left the query need not do so the next time.
        draft.keep = draft.keep.filter(|_| !query.get().has_gone_on());
        // A reply made with knowledge of the client is not for every client.
        (draft.scope, draft.saw_client) = (scope, query.get().saw_client());
        Some((ticket, (!self.has_failed).then_some(draft)))
    }

    /// Whether the draft still says what the core answers.
    fn is_as_the_core_has_it(&self) -> bool {
        let Some(below) = &self.below else { return false };
        if !self.is_touched {
            return true;
        }
        let (now, mut then) = (&self.draft, HandlerReply::default());
        read(below, &mut then).is_ok()
            && (now.ending, now.rcode, now.flags) == (then.ending, then.rcode, then.flags)
            && now.error() == then.error()
            && now.records().eq(then.records())
    }

    /// Takes over what the core answers; nothing is silence.
    pub fn take_over(&mut self, message: Option<Vec<u8>>) -> PyResult<()> {
        let draft = self.open()?;
        let Some(message) = message else {
            draft.drop();
            return Ok(());
        };
        let scope = draft.scope;
        read(&message, draft)?;
        draft.scope = scope;
        (self.below, self.is_touched) = (Some(message), false);
        Ok(())
    }

    /// The draft, if it may still be changed.
    fn open(&mut self) -> PyResult<&mut HandlerReply> {
        match self.is_sent {
            true => Err(StateError::new_err("the reply was sent: it cannot be changed")),
            false => {
                self.is_touched = true;
                Ok(&mut self.draft)
            }
        }
    }

    /// Adds records to a section. What is iterated over is code of Python's, which may use the
    /// reply: so that comes before the reply is borrowed.
    fn add(
        slf: &Bound<'_, Self>,
        section: Section,
        records: &Bound<'_, PyTuple>,
        ttl: Option<Ttl>,
    ) -> PyResult<()> {
        let ttl = ttl.map(Ttl::secs).transpose()?;
        if records.iter().all(|record| record.is_instance_of::<Record>()) {
            return slf.try_borrow_mut()?.push_all(section, records, ttl);
        }
        let flat = flattened(records.iter().map(Ok))?;
        if flat.is_nothing {
            return Ok(()); // as `None` that is returned: the code has said what it wants, or not
        }
        slf.try_borrow_mut()?.push_all(section, flat.records, ttl)
    }

    /// Adds records, or objects of dnspython, to a section.
    fn push_all<'py>(
        &mut self,
        section: Section,
        records: impl IntoIterator<Item = Bound<'py, PyAny>>,
        ttl: Option<u32>,
    ) -> PyResult<()> {
        self.open()?;
        for record in records {
            let added = add(&mut self.draft, section, &record, ttl);
            added.map_err(|error| self.named(error, section, &record))?;
        }
        self.draft.ending = Ending::Reply;
        Ok(())
    }

    /// The error of a record that cannot be added, with its place in the reply, its value and the
    /// handler's pattern: `answers[1]: expected a record such as zonda.A; it is 42 (int)`. What is
    /// no `TypeError` or `ValueError`, such as an exception of the object's own code, stays as it
    /// is.
    fn named(&self, error: PyErr, section: Section, record: &Bound<'_, PyAny>) -> PyErr {
        let py = record.py();
        let is_type_error = error.is_instance_of::<PyTypeError>(py);
        let class = error.get_type(py);
        let is_ours =
            class.is(py.get_type::<PyValueError>()) || class.is(py.get_type::<RecordError>());
        if !is_type_error && !is_ours {
            return error;
        }
        let name = match section {
            Section::Answer => "answers",
            Section::Authority => "authorities",
            _ => "additionals", // the last of the sections that records can be in
        };
        let index = self.draft.records().filter(|(of, ..)| *of == section).count();
        let class = record.get_type().name().map_or_else(|_| "?".to_owned(), |it| it.to_string());
        let value = shown(record);
        let pattern = self.query.as_ref().and_then(|(_, query)| query.get().pattern_now());
        let pattern = pattern.map(|pattern| pattern.canonical());
        let of = pattern.as_ref().map(|it| format!(" (handler of {it})")).unwrap_or_default();
        let what = format!("{name}[{index}]: {}; it is {value} ({class}){of}", error.value(py));
        let named = match is_type_error {
            true => RecordTypeError::new_err(what),
            false => RecordError::new_err(what),
        };
        let fields = named.value(py);
        let set = fields
            .setattr(intern!(py, "section"), name)
            .and_then(|()| fields.setattr(intern!(py, "index"), index))
            .and_then(|()| fields.setattr(intern!(py, "value"), record))
            .and_then(|()| fields.setattr(intern!(py, "pattern"), pattern));
        named.set_cause(py, error.cause(py));
        set.err().unwrap_or(named)
    }

    /// The records of a section, in a tuple, as what is added to it would not be in the reply.
    fn tuple<'py>(&self, py: Python<'py>, wanted: Section) -> PyResult<Bound<'py, PyTuple>> {
        let mut found = Vec::new();
        for (section, owner, rtype, ttl, rdata) in self.draft.records() {
            if section == wanted {
                found.push(record::make(py, owner, (rtype, ttl), rdata)?);
            }
        }
        PyTuple::new(py, found)
    }

    /// Puts other records into a section.
    fn replace(
        slf: &Bound<'_, Self>,
        section: Section,
        records: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let flat = flattened(records.try_iter()?)?;
        let mut reply = slf.try_borrow_mut()?;
        reply.open()?.retain(|known, _, _| known != section);
        reply.push_all(section, flat.records, None)
    }

    /// Says that there are no such records, and for how long resolvers cache that.
    fn negative(
        &mut self,
        rcode: Rcode,
        ttl: Option<Ttl>,
        soa: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let ttl = ttl.map(Ttl::secs).transpose()?;
        let query = self.query.as_ref().map(|(_, query)| query.get());
        let qtype = query.map_or(Type(0), |query| query.question().1);
        let made = ttl.filter(|_| soa.is_none()).zip(query);
        let known = made.and_then(|(ttl, query)| query.negative_soa(ttl));
        let zone = made.map(|(ttl, query)| (ttl, query.zone()));
        let draft = self.open()?;
        draft.deny(rcode, qtype);
        match (soa, ttl, known, zone) {
            (Some(soa), ttl, ..) => {
                draft.clear_authority();
                let added = add(draft, Section::Authority, soa, ttl);
                added.map_err(|error| self.named(error, Section::Authority, soa))
            }
            (None, Some(ttl), Some((zone, rdata)), _) => {
                draft.clear_authority();
                let fixed = (Type::SOA, ttl);
                let pushed = draft.push(Section::Authority, zone.as_wire(), fixed, &rdata);
                pushed.map_err(|error| PyValueError::new_err(error.to_string()))
            }
            (None, Some(_), None, Some((ttl, zone))) => {
                draft.push_soa_of(&zone, ttl);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Sets or clears a bit of the header's flags.
    fn set(&mut self, flag: u16, name: &str, is_set: &Bound<'_, PyAny>) -> PyResult<()> {
        let is_set = yes_or_no(is_set, name).map_err(RecordTypeError::new_err)?;
        let draft = self.open()?;
        draft.flags = if is_set { draft.flags | flag } else { draft.flags & !flag };
        Ok(())
    }
}

#[pymethods]
impl Reply {
    /// Adds records to the answer.
    #[pyo3(signature = (*records, ttl=None))]
    fn answer(
        slf: &Bound<'_, Self>,
        records: &Bound<'_, PyTuple>,
        ttl: Option<Ttl>,
    ) -> PyResult<()> {
        Self::add(slf, Section::Answer, records, ttl)
    }

    /// Adds records to the authority section: SOA beside a negative answer, NS in a referral.
    #[pyo3(signature = (*records, ttl=None))]
    fn authority(
        slf: &Bound<'_, Self>,
        records: &Bound<'_, PyTuple>,
        ttl: Option<Ttl>,
    ) -> PyResult<()> {
        Self::add(slf, Section::Authority, records, ttl)
    }

    /// Adds records to the additional section, which is sent if there is room for it.
    #[pyo3(signature = (*records, ttl=None))]
    fn additional(
        slf: &Bound<'_, Self>,
        records: &Bound<'_, PyTuple>,
        ttl: Option<Ttl>,
    ) -> PyResult<()> {
        Self::add(slf, Section::Additional, records, ttl)
    }

    /// The records of the answer.
    #[getter]
    fn answers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.tuple(py, Section::Answer)
    }

    #[setter]
    fn set_answers(slf: &Bound<'_, Self>, records: &Bound<'_, PyAny>) -> PyResult<()> {
        Self::replace(slf, Section::Answer, records)
    }

    /// The records of the authority section.
    #[getter]
    fn authorities<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.tuple(py, Section::Authority)
    }

    #[setter]
    fn set_authorities(slf: &Bound<'_, Self>, records: &Bound<'_, PyAny>) -> PyResult<()> {
        Self::replace(slf, Section::Authority, records)
    }

    /// The records of the additional section without EDNS.
    #[getter]
    fn additionals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.tuple(py, Section::Additional)
    }

    #[setter]
    fn set_additionals(slf: &Bound<'_, Self>, records: &Bound<'_, PyAny>) -> PyResult<()> {
        Self::replace(slf, Section::Additional, records)
    }

    /// The records of the answer that are of a class.
    fn of<'py>(&self, py: Python<'py>, kind: &Bound<'py, PyType>) -> PyResult<Bound<'py, PyTuple>> {
        let mut found = Vec::new();
        for record in &self.tuple(py, Section::Answer)? {
            if record.is_instance(kind)? {
                found.push(record);
            }
        }
        PyTuple::new(py, found)
    }

    /// The response code, such as `"NOERROR"`.
    #[getter]
    fn rcode(&self) -> String {
        self.draft.rcode.to_string()
    }

    #[setter]
    fn set_rcode(&mut self, rcode: &Bound<'_, PyAny>) -> PyResult<()> {
        let by_number = (Rcode as fn(u16) -> Rcode, RCODE_MAX);
        let words = ("a response code", "NXDOMAIN");
        let rcode = known(rcode, Rcode::from_mnemonic, by_number, words)?;
        self.open()?.reply(rcode);
        Ok(())
    }

    /// Says that the name exists, but has no records of the type. Resolvers cache that for `ttl`
    /// seconds, or as the record `soa` says. Of the records so far only aliases that lead to the
    /// name stay, and the SOA record if there is no other one.
    #[pyo3(signature = (*, ttl=None, soa=None))]
    fn no_data(&mut self, ttl: Option<Ttl>, soa: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        self.negative(Rcode::NOERROR, ttl, soa)
    }

    /// Says that there is no such name. Resolvers cache that for `ttl` seconds, or as the record
    /// `soa` says. Of the records so far only aliases that lead to the name stay, and the SOA
    /// record if there is no other one.
    #[pyo3(signature = (*, ttl=None, soa=None))]
    fn nxdomain(&mut self, ttl: Option<Ttl>, soa: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        self.negative(Rcode::NXDOMAIN, ttl, soa)
    }

    /// Refuses to answer.
    fn refused(&mut self) -> PyResult<()> {
        self.open().map(HandlerReply::refused)
    }

    /// Says that this kind of question is not answered here.
    fn not_implemented(&mut self) -> PyResult<()> {
        self.open().map(|draft| draft.reply(Rcode::NOTIMP))
    }

    /// Says that the answer cannot be had, and why; the client may ask another server.
    // `help` shows the text.
    #[pyo3(signature = (why=Text::EMPTY), text_signature = "($self, why='')")]
    fn servfail(&mut self, why: Text) -> PyResult<()> {
        let why = why.named("the reason")?;
        self.open().map(|draft| draft.servfail(&why))
    }

    /// Has no reply sent.
    fn drop(&mut self) -> PyResult<()> {
        self.open().map(HandlerReply::drop)
    }

    /// Leaves the query to the handler of the next wider pattern, and behind the last one to the
    /// zones, as if there were no handler.
    fn pass_on(&mut self) -> PyResult<()> {
        self.open().map(HandlerReply::pass_on)
    }

    /// Makes it as new.
    pub fn clear(&mut self) -> PyResult<()> {
        self.open().map(HandlerReply::clear)
    }

    /// Says why there is no, or another, answer (rfc8914): a number or a name such as `"Blocked"`,
    /// and a text.
    // `help` shows the text.
    #[pyo3(signature = (code, text=Text::EMPTY), text_signature = "($self, code, text='')")]
    fn extended_error(&mut self, code: &Bound<'_, PyAny>, text: Text) -> PyResult<()> {
        let by_number = (Ede as fn(u16) -> Ede, u16::MAX);
        let code = known(code, Ede::from_mnemonic, by_number, ("an extended error", "Blocked"))?;
        let text = text.named("the text of an extended error")?;
        self.open()?.extended_error(code, &text);
        Ok(())
    }

    /// Lets the core send the reply again for so many seconds, without calling the handler, where
    /// there is no middleware: to every client, or with `vary` to the same `"client"` or
    /// `"subnet"`. A reply of a handler that looked at the client is not kept without `vary`.
    #[pyo3(signature = (ttl, vary=None))]
    fn cache(&mut self, ttl: &Bound<'_, PyAny>, vary: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let ttl_secs = whole(ttl, "the ttl", TTL_SECS_MAX)?;
        let vary = match vary.map(|vary| (vary, vary.extract::<&str>())) {
            None => Vary::Nothing,
            Some((_, Ok("client"))) => Vary::Client,
            Some((_, Ok("subnet"))) => Vary::Subnet,
            Some((other, _)) => {
                let text = format!("vary must be \"client\" or \"subnet\", not {}", shown(other));
                return Err(RecordError::new_err(text));
            }
        };
        self.open()?.keep = Some(Keep { ttl_secs, vary });
        Ok(())
    }

    /// Says that the reply depends on the first bits of the client's network alone: the scope with
    /// which it repeats the client subnet of the query (rfc7871#7.2.1). 0: it is the same for all.
    fn client_subnet_scope(&mut self, bits: &Bound<'_, PyAny>) -> PyResult<()> {
        let bits = whole(bits, "the bits of a scope", 128)? as u8; // at most 128
        self.open().map(|draft| draft.client_subnet_scope(bits))
    }

    /// Notes a value about the query under a key, for the query log, instead of what was noted
    /// under that key before; clients do not see it. The value is noted as `str()` shows it.
    fn tag(slf: &Bound<'_, Self>, key: Text, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let key = key.named("the key of a tag")?;
        // Code of Python's may use the reply: so that comes before the reply is borrowed.
        let value = value.str()?.to_string_lossy().into_owned();
        slf.try_borrow_mut()?.open()?.tag(key, value);
        Ok(())
    }

    /// The number and the text of the extended error.
    #[getter]
    fn error(&self) -> Option<(u16, &str)> {
        self.draft.error().map(|(code, text)| (code.0, text))
    }

    /// Whether it is authoritative.
    #[getter]
    fn aa(&self) -> bool {
        self.draft.flags & flag::AA != 0
    }

    #[setter]
    fn set_aa(&mut self, is_set: &Bound<'_, PyAny>) -> PyResult<()> {
        self.set(flag::AA, "aa", is_set)
    }

    /// Whether its data are authentic.
    #[getter]
    fn ad(&self) -> bool {
        self.draft.flags & flag::AD != 0
    }

    #[setter]
    fn set_ad(&mut self, is_set: &Bound<'_, PyAny>) -> PyResult<()> {
        self.set(flag::AD, "ad", is_set)
    }

    /// Whether any name may be asked for.
    #[getter]
    fn ra(&self) -> bool {
        self.draft.flags & flag::RA != 0
    }

    #[setter]
    fn set_ra(&mut self, is_set: &Bound<'_, PyAny>) -> PyResult<()> {
        self.set(flag::RA, "ra", is_set)
    }

    /// Whether the client is to ask again over TCP.
    #[getter]
    fn tc(&self) -> bool {
        self.draft.flags & flag::TC != 0
    }

    #[setter]
    fn set_tc(&mut self, is_set: &Bound<'_, PyAny>) -> PyResult<()> {
        self.set(flag::TC, "tc", is_set)
    }

    /// Whether something was said: if not, the query is left to the zones.
    #[getter]
    fn is_answered(&self) -> bool {
        self.draft.ending != Ending::PassOn
    }

    /// Whether nothing is sent.
    #[getter]
    fn is_dropped(&self) -> bool {
        self.draft.ending == Ending::Drop
    }

    /// Answers SERVFAIL, as code that raised an exception does.
    fn _fail(&mut self) {
        self.has_failed = true;
    }

    /// Has no handler called for the query, if that is left.
    fn _pass_handlers(&mut self) {
        self.has_passed_handlers = true;
    }

    /// Takes over what the core answers.
    #[pyo3(signature = (message))]
    fn _take_over(&mut self, message: Option<Vec<u8>>) -> PyResult<()> {
        self.take_over(message)
    }

    fn __repr__(&self) -> String {
        match self.draft.ending {
            Ending::PassOn | Ending::Defer(_) => "<zonda.Reply left to the zones>".to_owned(),
            Ending::Drop => "<zonda.Reply dropped>".to_owned(),
            Ending::Reply => {
                let count = self.draft.records().count();
                format!("<zonda.Reply {}, records: {count}>", self.draft.rcode)
            }
        }
    }
}

/// Adds a `Record`, or what an object of dnspython stands for.
fn add(
    draft: &mut HandlerReply,
    section: Section,
    record: &Bound<'_, PyAny>,
    ttl: Option<u32>,
) -> PyResult<()> {
    match record.cast::<Record>() {
        Ok(known) => known.get().push(draft, section, ttl),
        Err(_) => {
            let records = foreign::records(record, ttl)?;
            records.iter().try_for_each(|record| record.push(draft, section, None))
        }
    }
}

/// Reads a message into a draft.
fn read(message: &[u8], draft: &mut HandlerReply) -> PyResult<()> {
    let message =
        Message::parse(message).map_err(|error| PyValueError::new_err(error.to_string()))?;
    draft.clear();
    for record in &message.records {
        let fixed = (record.rtype, record.ttl);
        draft
            .push(record.section, record.owner.as_wire(), fixed, &record.rdata)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
    }
    let options = message.opt.iter().flat_map(|opt| &opt.options);
    for (_, data) in options.filter(|(code, _)| *code == EXTENDED_ERROR) {
        if let Some((code, text)) = data.split_first_chunk() {
            let text = String::from_utf8_lossy(text);
            draft.extended_error(Ede(u16::from_be_bytes(*code)), text.trim_end_matches('\0'));
        }
    }
    draft.flags = message.flags & FLAGS;
    draft.reply(message.rcode());
    Ok(())
}
