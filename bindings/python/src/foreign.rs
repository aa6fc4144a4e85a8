//! Records of dnspython, for programs that have some.
//!
//! They are recognised by their attributes, so that dnspython need not be installed: a set of
//! records has `rdtype` and `ttl` and can be iterated over, one with a `name` is for that name; a
//! single record has `rdtype` and `to_wire`.

use pyo3::intern;
use pyo3::prelude::*;
use zonda_wire::{Name, Type};

use crate::number::{RecordError, RecordTypeError, TTL_SECS_MAX, whole};
use crate::record::{Record, TTL_SECS};

/// Whether an object is a record of dnspython, or a set of them.
pub fn is_one(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    object.hasattr(intern!(object.py(), "rdtype"))
}

/// The records that an object of dnspython stands for, with `ttl` or else its own time to live.
pub fn records(object: &Bound<'_, PyAny>, ttl: Option<u32>) -> PyResult<Vec<Record>> {
    let Ok(rtype) = object.getattr("rdtype").and_then(|it| it.extract::<u16>()) else {
        return Err(RecordTypeError::new_err("expected a record such as zonda.A"));
    };
    let Ok(own_ttl) = object.getattr("ttl") else {
        return Ok(vec![record(object, rtype, ttl.unwrap_or(TTL_SECS), None)?]);
    };
    let own_ttl = || whole(&own_ttl, "the ttl", TTL_SECS_MAX).map_err(PyErr::from);
    let ttl = ttl.map_or_else(own_ttl, Ok)?;
    let owner = object.getattr("name").ok().map(|name| wire_name(&name)).transpose()?;
    let one = |rdata: PyResult<Bound<'_, PyAny>>| record(&rdata?, rtype, ttl, owner.clone());
    object.try_iter()?.map(one).collect()
}

/// Reads a single record.
fn record(rdata: &Bound<'_, PyAny>, rtype: u16, ttl: u32, owner: Option<Name>) -> PyResult<Record> {
    let wire: Vec<u8> = rdata.call_method0("to_wire")?.extract()?;
    Record::of(Type(rtype), wire, ttl, owner)
}

/// Reads a name.
fn wire_name(name: &Bound<'_, PyAny>) -> PyResult<Name> {
    let wire: Vec<u8> = name.call_method0("to_wire")?.extract()?;
    Name::from_wire(&wire).map_err(|error| RecordError::new_err(error.to_string()))
}
