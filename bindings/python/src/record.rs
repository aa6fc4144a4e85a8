//! Records as Python's code makes and sees them.
//!
//! A record holds its data in wire form, made and checked when it is constructed, so that a mistake
//! is reported where it was made. Python has a class for each type of the schema, all of them made
//! of this one (`python/zonda/records.py`).

use std::fmt::Write;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyInt, PyString, PyTuple, PyType};
use zonda_engine::code::HandlerReply;
use zonda_server::RecordLine;
use zonda_wire::rdata::schema::{self, Schema};
use zonda_wire::rdata::{self, Field, Presentation, tokens};
use zonda_wire::{Name, Section, Type};

use crate::field::{self, FieldError};
use crate::number::{RecordError, RecordTypeError, Ttl, shown, whole_u16, with_value};
use crate::query::type_text;

/// The time to live of a record that says nothing else, seconds.
pub const TTL_SECS: u32 = 300;

/// The classes of types, by number.
static CLASSES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();

/// A record of any type: `Record("CAA", '0 issue "ca.example.net"', ttl=60)`.
#[pyclass(frozen, subclass, eq, hash, module = "zonda")]
#[derive(PartialEq, Eq, Hash)]
pub struct Record {
    rtype: Type,
    ttl: u32,
    /// Whose it is; nothing stands for the name asked for.
    owner: Option<Name>,
    rdata: Box<[u8]>,
}

impl Record {
    /// One with data in wire form.
    pub fn of(rtype: Type, rdata: Vec<u8>, ttl: u32, owner: Option<Name>) -> PyResult<Self> {
        let wrong = |what: String| RecordError::new_err(format!("{rtype} record: {what}"));
        if rtype.is_meta() || rtype.0 == 0 {
            return Err(wrong("no record has this type".to_owned()));
        }
        if rdata.len() > usize::from(u16::MAX) {
            return Err(wrong(rdata::Fault::TooLong.to_string()));
        }
        rdata::validate(rtype, &rdata).map_err(|error| wrong(error.to_string()))?;
        Ok(Self { rtype, ttl, owner, rdata: rdata.into() })
    }

    /// Adds it to a reply, with another time to live if there is one.
    pub fn push(
        &self,
        draft: &mut HandlerReply,
        section: Section,
        ttl: Option<u32>,
    ) -> PyResult<()> {
        let owner = self.owner.as_ref().map_or(&[][..], Name::as_wire);
        let fixed = (self.rtype, ttl.unwrap_or(self.ttl));
        let pushed = draft.push(section, owner, fixed, &self.rdata);
        pushed.map_err(|error| RecordError::new_err(error.to_string()))
    }

    /// The fields of its data and what they hold.
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Vec<(&'static str, Bound<'py, PyAny>)>> {
        let Some(schema) = schema::of(self.rtype) else { return Ok(Vec::new()) };
        rdata::values(schema, &self.rdata)
            .map_while(Result::ok)
            .map(|value| Ok((value.field.name, field::decode(py, value, &self.rdata)?)))
            .collect()
    }

    /// The data in presentation format.
    fn presentation(&self) -> Presentation<'_> {
        Presentation { rtype: self.rtype, rdata: &self.rdata }
    }
}

#[pymethods]
impl Record {
    /// The number of the class's type; 0 for records of any type.
    #[classattr]
    fn _number() -> u16 {
        0
    }

    #[new]
    #[classmethod]
    #[pyo3(signature = (*arguments, ttl=Ttl::DEFAULT, owner=None, rdata=None, **fields))]
    fn new(
        cls: &Bound<'_, PyType>,
        arguments: &Bound<'_, PyTuple>,
        ttl: Ttl,
        owner: Option<&Bound<'_, PyAny>>,
        rdata: Option<&[u8]>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let owner = owner.map(owner_name).transpose()?;
        let number: u16 = cls.getattr(intern!(cls.py(), "_number"))?.extract()?;
        let (rtype, rdata) = match (number, rdata) {
            (0, _) => any(arguments, rdata, fields)?,
            (_, Some(rdata)) => (Type(number), rdata.to_vec()),
            (_, None) => (Type(number), typed(Type(number), arguments, fields)?),
        };
        Self::of(rtype, rdata, ttl.secs_of(rtype)?, owner)
    }

    /// The type, such as `"AAAA"` or `"TYPE65280"`.
    #[getter]
    fn rtype<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        type_text(py, self.rtype)
    }

    /// The time to live, seconds.
    #[getter]
    fn ttl(&self) -> u32 {
        self.ttl
    }

    /// Whose it is; `None` stands for the name asked for.
    #[getter]
    fn owner(&self) -> Option<String> {
        self.owner.as_ref().map(ToString::to_string)
    }

    /// The data in uncompressed wire form.
    #[getter]
    fn rdata<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.rdata)
    }

    /// The data in presentation format.
    #[getter]
    fn text(&self) -> String {
        self.presentation().to_string()
    }

    /// Returns the record with another time to live or owner.
    #[pyo3(signature = (*, ttl=None, owner=None))]
    fn replace<'py>(
        &self,
        py: Python<'py>,
        ttl: Option<Ttl>,
        owner: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let owner = owner.map(owner_name).transpose()?.or_else(|| self.owner.clone());
        let owner = owner.as_ref().map_or(&[][..], Name::as_wire);
        let ttl = ttl.map_or(Ok(self.ttl), |ttl| ttl.secs_of(self.rtype))?;
        make(py, owner, (self.rtype, ttl), &self.rdata)
    }

    /// The field at a place of its data; `None` if it is left out.
    fn _field<'py>(&self, py: Python<'py>, place: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        let schema = schema::of(self.rtype);
        let mut values = schema.into_iter().flat_map(|it| rdata::values(it, &self.rdata));
        let Some(Ok(value)) = values.nth(place) else { return Ok(None) };
        field::decode(py, value, &self.rdata).map(Some)
    }

    /// Returns the arguments with which `pickle` and `copy` make the record again.
    fn __getnewargs_ex__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let (py, record) = (slf.py(), slf.get());
        let number: u16 = slf.get_type().getattr(intern!(py, "_number"))?.extract()?;
        let of_any_type = (number == 0).then(|| type_text(py, record.rtype));
        let named = PyDict::new(py);
        named.set_item(intern!(py, "rdata"), record.rdata(py))?;
        named.set_item(intern!(py, "ttl"), record.ttl)?;
        named.set_item(intern!(py, "owner"), record.owner())?;
        Ok((PyTuple::new(py, of_any_type)?, named))
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let (record, class) = (slf.get(), slf.get_type().name()?);
        let mut text = format!("{class}(");
        let typed = !slf.is_exact_instance_of::<Self>();
        let fields = if typed { record.fields(slf.py())? } else { Vec::new() };
        for (name, value) in fields {
            let _ = write!(text, "{name}={}, ", value.repr()?); // a String takes everything
        }
        if !typed {
            let data = PyString::new(slf.py(), &record.text());
            let _ = write!(text, "'{}', {}, ", record.rtype, data.repr()?);
        }
        if let Some(owner) = record.owner() {
            let _ = write!(text, "owner={}, ", PyString::new(slf.py(), &owner).repr()?);
        }
        let _ = write!(text, "ttl={})", record.ttl);
        Ok(text)
    }

    /// Reads the line of a zone file, as `str()` writes one.
    #[classmethod]
    // `help` shows the number.
    #[pyo3(signature = (line, *, origin=None, ttl=Ttl::DEFAULT))]
    #[pyo3(text_signature = "(line, *, origin=None, ttl=300)")]
    fn parse<'py>(
        cls: &Bound<'py, PyType>,
        line: &str,
        origin: Option<&Bound<'py, PyAny>>,
        ttl: Ttl,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, ttl) = (cls.py(), ttl.secs()?);
        let origin = origin.map(owner_name).transpose()?;
        let read = RecordLine::read(line, origin.as_ref(), ttl)
            .map_err(|error| RecordError::new_err(error.to_string()))?;
        let number: u16 = cls.getattr(intern!(py, "_number"))?.extract()?;
        if number != 0 && number != read.rtype.0 {
            let what = format!("expected a {} record, not {}", Type(number), read.rtype);
            return Err(RecordError::new_err(what));
        }
        let owner = read.owner.as_ref().map_or(&[][..], Name::as_wire);
        make(py, owner, (read.rtype, read.ttl_secs), &read.rdata)
    }

    fn __str__(&self) -> String {
        let owner = self.owner().unwrap_or_else(|| "@".to_owned());
        format!("{owner} {} IN {} {}", self.ttl, self.rtype, self.presentation())
    }
}

/// Has records of a type be of a class.
#[pyfunction]
pub fn register(py: Python<'_>, number: u16, class: &Bound<'_, PyType>) -> PyResult<()> {
    classes(py).set_item(number, class)
}

/// A type: mnemonic, number, and the names and kinds of its fields.
type RecordType = (String, u16, Vec<(&'static str, String)>);

/// The types that have a class: mnemonic, number, and the names and kinds of the fields.
#[pyfunction]
#[pyo3(name = "schema")]
pub fn record_types() -> Vec<RecordType> {
    let fields = |schema: &'static Schema| {
        schema.fields.iter().map(|field| (field.name, format!("{:?}", field.kind))).collect()
    };
    schema::all().map(|it| (it.rtype.to_string(), it.rtype.0, fields(it))).collect()
}

/// An object for a record, of its type's class if there is one. An empty owner is the name asked
/// for.
pub fn make<'py>(
    py: Python<'py>,
    owner: &[u8],
    (rtype, ttl): (Type, u32),
    rdata: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    let is_sound = rdata::validate(rtype, rdata).is_ok();
    if let Some(class) = classes(py).get_item(rtype.0)?.filter(|_| is_sound) {
        let arguments = PyDict::new(py);
        arguments.set_item(intern!(py, "rdata"), PyBytes::new(py, rdata))?;
        arguments.set_item(intern!(py, "ttl"), ttl)?;
        if !owner.is_empty() {
            arguments.set_item(intern!(py, "owner"), PyBytes::new(py, owner))?;
        }
        return class.call((), Some(&arguments));
    }
    let owner = Name::from_wire(owner).ok();
    let record = Record { rtype, ttl, owner, rdata: rdata.into() };
    Ok(Bound::new(py, record)?.into_any())
}

/// The classes of types.
fn classes(py: Python<'_>) -> &Bound<'_, PyDict> {
    CLASSES.get_or_init(py, || PyDict::new(py).unbind()).bind(py)
}

/// A name from its text, its wire form, or what `str()` makes a name's text of.
fn owner_name(owner: &Bound<'_, PyAny>) -> PyResult<Name> {
    let name = match owner.cast::<PyBytes>() {
        Ok(wire) => Name::from_wire(wire.as_bytes()),
        Err(_) => owner.str()?.to_str()?.parse(),
    };
    name.map_err(|error| {
        let text = format!("owner: {error}; it is {}", shown(owner));
        with_value(RecordError::new_err(text), owner)
    })
}

/// Type and data of `Record(type, text)` or `Record(type, rdata=octets)`.
fn any(
    arguments: &Bound<'_, PyTuple>,
    rdata: Option<&[u8]>,
    fields: Option<&Bound<'_, PyDict>>,
) -> PyResult<(Type, Vec<u8>)> {
    let usage =
        || RecordTypeError::new_err("expected a type and the text of the data, or rdata=octets");
    if fields.is_some_and(|fields| !fields.is_empty()) {
        return Err(usage());
    }
    let rtype = parse_type(&arguments.get_item(0).map_err(|_| usage())?)?;
    match (rdata, arguments.len()) {
        (Some(rdata), 1) => Ok((rtype, rdata.to_vec())),
        (None, 2) => {
            let text = arguments.get_item(1)?;
            let text = text.cast::<PyString>().map_err(|_| usage())?.to_str()?;
            let wrong = |what: String| RecordError::new_err(format!("{rtype} record: {what}"));
            let words =
                tokens(text.as_bytes()).ok_or_else(|| wrong(FieldError::OPEN_QUOTE.to_owned()))?;
            let mut rdata = Vec::new();
            rdata::parse(rtype, &words, &[0], &mut rdata).map_err(|e| wrong(e.to_string()))?;
            Ok((rtype, rdata))
        }
        _ => Err(usage()),
    }
}

/// A type from its mnemonic or number.
fn parse_type(rtype: &Bound<'_, PyAny>) -> PyResult<Type> {
    read_type(rtype).map_err(RecordError::new_err)
}

/// A type from its mnemonic or number, or what is wrong with it.
pub fn read_type(rtype: &Bound<'_, PyAny>) -> Result<Type, String> {
    if rtype.is_instance_of::<PyInt>() {
        return whole_u16(rtype, "the number of a record type")
            .map(Type)
            .map_err(|e| e.to_string());
    }
    let text = rtype.str().ok().and_then(|text| text.to_str().ok()?.parse().ok());
    text.ok_or_else(|| format!("{} is not a record type such as \"MX\"", shown(rtype)))
}

/// The data of a type from its fields, by place or by name.
fn typed(
    rtype: Type,
    arguments: &Bound<'_, PyTuple>,
    named: Option<&Bound<'_, PyDict>>,
) -> PyResult<Vec<u8>> {
    let Some(schema) = schema::of(rtype) else {
        return Err(RecordTypeError::new_err(format!("{rtype} has no fields: give rdata=octets")));
    };
    let wrong = |what: String| RecordTypeError::new_err(format!("{rtype} record: {what}"));
    let last = schema.fields.len() - 1;
    for name in named.into_iter().flat_map(PyDictMethods::keys) {
        let is_name = |field: &Field| name.eq(field.name).unwrap_or(false);
        match schema.fields.iter().position(is_name) {
            Some(place) if place < arguments.len() => {
                return Err(wrong(format!("{name} is given twice")));
            }
            Some(_) => {}
            None => {
                let names = names(schema);
                return Err(wrong(format!(
                    "there is no field {name}; its fields are {names}, owner, ttl"
                )));
            }
        }
    }
    let mut out = Vec::with_capacity(16);
    for (place, field) in schema.fields.iter().enumerate() {
        let value = if place == last && arguments.len() > last + 1 && field::is_list(field.kind) {
            Some(arguments.get_slice(last, arguments.len()).into_any())
        } else if place < arguments.len() {
            Some(arguments.get_item(place)?)
        } else {
            named.map(|named| named.get_item(field.name)).transpose()?.flatten()
        };
        match value.filter(|value| !value.is_none()) {
            Some(value) => field::encode(field, &value, &mut out)
                .map_err(|error| error.into_error(rtype, field.name, &value))?,
            None if field::is_optional(field.kind) => {}
            None => return Err(wrong(format!("{} is missing", field.name))),
        }
    }
    if arguments.len() > last + 1 && !field::is_list(schema.fields[last].kind) {
        return Err(wrong(format!("expected {} and no more", names(schema))));
    }
    Ok(out)
}

/// The names of a type's fields, for messages.
fn names(schema: &Schema) -> String {
    schema.fields.iter().map(|field| field.name).collect::<Vec<_>>().join(", ")
}
