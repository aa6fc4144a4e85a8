//! A query as Python's code sees it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyString};
use zonda_engine::Peer;
use zonda_engine::code::Pattern;
use zonda_wire::name::Presentation;
use zonda_wire::query::{HEADER_BYTES, flag};
use zonda_wire::{Name, Query as Parsed, Type};

use crate::batch::WaitingQuery;
use crate::pattern::check_pattern_text;
use crate::server::SharedServer;

/// A query; what it says is read when it is asked for.
#[pyclass(frozen, module = "zonda")]
pub struct Query {
    message: Box<[u8]>,
    parsed: Parsed,
    peer: Peer,
    /// Pattern of the handler that the query has come to.
    pattern: Mutex<Option<Arc<Pattern>>>,
    /// The pattern of the guard that runs, whose labels are captured then.
    guard: Mutex<Option<Arc<Pattern>>>,
    /// The server that has received the query.
    server: SharedServer,
    /// State that code keeps for the query.
    state: PyOnceLock<Py<PyDict>>,
    /// Whether the code has looked at what only this client's queries say.
    saw_client: AtomicBool,
    /// Whether a handler has left the query to another one.
    has_gone_on: AtomicBool,
}

impl Query {
    /// Makes the object of a waiting query. A query that cannot be read never waits.
    pub fn new(taken: WaitingQuery, pattern: Option<Arc<Pattern>>, server: SharedServer) -> Self {
        let WaitingQuery { message, peer, .. } = taken;
        let parsed = Parsed::parse(&message).unwrap_or_else(|(parsed, _)| parsed);
        let (state, saw_client) = (PyOnceLock::new(), AtomicBool::new(false));
        let (pattern, has_gone_on) = (Mutex::new(pattern), AtomicBool::new(false));
        let guard = Mutex::new(None);
        Self { message, parsed, peer, pattern, guard, server, state, saw_client, has_gone_on }
    }

    /// The name asked for in wire form, and the type.
    pub fn question(&self) -> (&[u8], Type) {
        (self.wire_name(), self.parsed.qtype)
    }

    /// The pattern of the handler that the query has come to.
    pub fn pattern_now(&self) -> Option<Arc<Pattern>> {
        self.pattern.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The pattern whose labels are captured: that of the guard that runs, or of the route.
    fn capturing_pattern(&self) -> Option<Arc<Pattern>> {
        let guard = self.guard.lock().unwrap_or_else(PoisonError::into_inner).clone();
        guard.or_else(|| self.pattern_now())
    }

    /// Has the labels of a guard's pattern be captured, or those of the route again.
    pub fn enter_guard(&self, guard: Option<Arc<Pattern>>) {
        *self.guard.lock().unwrap_or_else(PoisonError::into_inner) = guard;
    }

    /// Whether a handler has left the query to another one.
    pub fn has_gone_on(&self) -> bool {
        self.has_gone_on.load(Ordering::Relaxed)
    }

    /// Notes that the query has come to the handler of another pattern.
    pub fn go_on_to(&self, pattern: Arc<Pattern>) {
        self.has_gone_on.store(true, Ordering::Relaxed);
        *self.pattern.lock().unwrap_or_else(PoisonError::into_inner) = Some(pattern);
    }

    /// The message and its sender.
    pub fn asked(&self) -> (&[u8], Peer) {
        (&self.message, self.peer)
    }

    /// Whether the code has looked at what only this client's queries say.
    pub fn saw_client(&self) -> bool {
        self.saw_client.load(Ordering::Relaxed)
    }

    /// Notes that it looks at that.
    fn see_client(&self) {
        self.saw_client.store(true, Ordering::Relaxed);
    }

    /// The zone that a negative reply is from if no zone of the server holds the name.
    pub fn zone(&self) -> Name {
        Pattern::zone_of(self.pattern_now().as_deref(), &self.wire_name().to_ascii_lowercase())
    }

    /// The SOA record of a negative reply, which resolvers are to keep for some seconds, from the
    /// zone of the server that holds the name: the owner and the data.
    pub fn negative_soa(&self, ttl_secs: u32) -> Option<(Name, Vec<u8>)> {
        let server = self.server.read().unwrap_or_else(PoisonError::into_inner);
        server.as_ref()?.negative_soa(self.wire_name(), ttl_secs)
    }

    /// The name asked for in wire form.
    fn wire_name(&self) -> &[u8] {
        self.message.get(HEADER_BYTES..usize::from(self.parsed.name_end)).unwrap_or(&[0])
    }

    /// Whether a bit of the header's flags is set.
    fn has(&self, flag: u16) -> bool {
        self.parsed.flags & flag != 0
    }
}

#[pymethods]
impl Query {
    /// The name asked for, in lower case and with its final dot.
    #[getter]
    fn name(&self) -> String {
        Presentation(&self.wire_name().to_ascii_lowercase()).to_string()
    }

    /// The name asked for in the case it came in.
    #[getter]
    fn original_name(&self) -> String {
        self.see_client();
        Presentation(self.wire_name()).to_string()
    }

    /// The pattern of the handler that answers, in its canonical form; `None` without one.
    #[getter]
    fn pattern(&self) -> Option<String> {
        self.pattern_now().map(|pattern| pattern.canonical())
    }

    /// The type asked for, such as `"AAAA"` or `"TYPE65280"`.
    #[getter]
    fn r#type<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        type_text(py, self.parsed.qtype)
    }

    /// The number of the type asked for.
    #[getter]
    fn type_number(&self) -> u16 {
        self.parsed.qtype.0
    }

    /// The client's address.
    #[getter]
    fn client(&self) -> String {
        self.see_client();
        self.peer.address.ip().to_string()
    }

    /// The client's port.
    #[getter]
    fn client_port(&self) -> u16 {
        self.see_client();
        self.peer.address.port()
    }

    /// The transport of the query: `"udp"` or `"tcp"`.
    #[getter]
    fn transport<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        self.see_client();
        PyString::intern(py, self.peer.transport.name())
    }

    /// What the client numbered it with.
    #[getter]
    fn id(&self) -> u16 {
        self.see_client();
        self.message.first_chunk().map_or(0, |octets| u16::from_be_bytes(*octets))
    }

    /// The message as it came; see `kept_octets` for what is left of a long one.
    #[getter]
    fn message<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        self.see_client();
        PyBytes::new(py, &self.message)
    }

    /// Whether the client wants its question answered for any name.
    #[getter]
    fn recursion_desired(&self) -> bool {
        self.see_client();
        self.has(flag::RD)
    }

    /// Whether the client wants answers that were found wrong, too.
    #[getter]
    fn checking_disabled(&self) -> bool {
        self.has(flag::CD)
    }

    /// Whether the client asks for DNSSEC records.
    #[getter]
    fn dnssec_ok(&self) -> bool {
        self.parsed.dnssec_ok()
    }

    /// The largest UDP message that the client takes; `None` without EDNS.
    #[getter]
    fn udp_size(&self) -> Option<u16> {
        self.see_client();
        self.parsed.edns.map(|edns| edns.udp_bytes)
    }

    /// The options of its EDNS record: codes and data.
    #[getter]
    fn options<'py>(&self, py: Python<'py>) -> Vec<(u16, Bound<'py, PyBytes>)> {
        self.see_client();
        let options = self.parsed.options(&self.message);
        options.map(|(code, data)| (code, PyBytes::new(py, data))).collect()
    }

    /// The network of the client for which a resolver asks, such as `"192.0.2.0/24"`.
    #[getter]
    fn client_subnet(&self) -> Option<String> {
        self.see_client();
        self.parsed.client_subnet(&self.message).map(|subnet| subnet.to_string())
    }

    /// The DNS cookie: 8 octets of the client's, and as many octets of the server's as it sent
    /// back.
    #[getter]
    fn cookie<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.see_client();
        let (at, len) = self.parsed.edns?.cookie;
        let (at, len) = (usize::from(at), usize::from(len));
        let cookie = self.message.get(at..at + len).filter(|cookie| !cookie.is_empty())?;
        Some(PyBytes::new(py, cookie))
    }

    /// The labels that the route's pattern captured, in lower case.
    #[getter]
    fn captures<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (captures, pattern) = (PyDict::new(py), self.capturing_pattern());
        for word in pattern.iter().flat_map(|pattern| pattern.words()) {
            captures.set_item(word, self.capture(word))?;
        }
        Ok(captures)
    }

    /// The labels that the route's pattern captured, in lower case: the same as `captures`.
    #[getter]
    fn params<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.captures(py)
    }

    /// The label, in lower case, that the route's pattern captured under a name.
    fn capture(&self, word: &str) -> Option<String> {
        let label = self.capturing_pattern()?.captured_label(self.wire_name(), word)?;
        let mut name = vec![label.len() as u8]; // at most 63
        name.extend_from_slice(&label);
        name.push(0);
        let mut text = Presentation(&name).to_string();
        text.pop(); // the final dot
        Some(text)
    }

    /// What middleware and handlers want to remember of this query.
    #[getter]
    fn state<'py>(&self, py: Python<'py>) -> &Bound<'py, PyDict> {
        self.state.get_or_init(py, || PyDict::new(py).unbind()).bind(py)
    }

    /// Whether the name is that of a router's suffix, or below it.
    fn _is_below(&self, suffix: &str) -> PyResult<bool> {
        let name = self.wire_name();
        Ok(check_pattern_text(suffix)?.matches_wire(name)
            || check_pattern_text(&format!("*.{suffix}"))?.matches_wire(name))
    }

    fn __repr__(&self) -> String {
        let name = Presentation(self.wire_name());
        let (qtype, client) = (self.parsed.qtype, self.peer.address);
        format!("<zonda.Query {name} {qtype} from {client}>")
    }
}

/// A type's text, which is made once for each.
pub fn type_text(py: Python<'_>, rtype: Type) -> Bound<'_, PyString> {
    match rtype.mnemonic() {
        Some(known) => PyString::intern(py, known),
        None => PyString::new(py, &rtype.to_string()),
    }
}
