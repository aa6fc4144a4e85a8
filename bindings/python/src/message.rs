//! Messages in wire form, which Python asks with and reads.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use zonda_wire::Name;

use crate::number::{shown, whole_u16};
use crate::record::read_type;
use crate::reply::Reply;

pyo3::import_exception!(zonda.errors, QueryError);

/// A reply in wire form.
#[pyfunction]
pub fn read_reply(message: &[u8]) -> PyResult<Reply> {
    Reply::received(message)
}

/// A query in wire form, with EDNS.
#[pyfunction]
#[pyo3(signature = (name, rtype, dnssec_ok=false, options=Vec::new()))]
pub fn question<'py>(
    py: Python<'py>,
    name: &Bound<'py, PyAny>,
    rtype: &Bound<'py, PyAny>,
    dnssec_ok: bool,
    options: Vec<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyBytes>> {
    const UDP_BYTES: u16 = 1232;
    let text = name.extract::<&str>().map_err(|_| {
        let given = shown(name);
        let text = format!("the name must be a text such as \"www.example.org\", not {given}");
        QueryError::new_err(text)
    })?;
    let name: Name =
        text.parse().map_err(|error| QueryError::new_err(format!("name {text:?}: {error}")))?;
    let rtype = read_type(rtype).map_err(QueryError::new_err)?;
    let mut message = b"\0\0\x01\0\0\x01\0\0\0\0\0\x01".to_vec(); // RD, a question, an OPT record
    message.extend_from_slice(name.as_wire());
    message.extend_from_slice(&rtype.0.to_be_bytes());
    message.extend_from_slice(b"\0\x01\0\0\x29");
    message.extend_from_slice(&UDP_BYTES.to_be_bytes());
    message.extend_from_slice(&[0, 0, u8::from(dnssec_ok) << 7, 0]);
    let mut data = Vec::new();
    for option in options {
        let wrong = |_| {
            let given = shown(&option);
            QueryError::new_err(format!("an option must be a pair of code and octets, not {given}"))
        };
        let (code, octets): (Bound<'_, PyAny>, Vec<u8>) = option.extract().map_err(wrong)?;
        let code = whole_u16(&code, "the code of an option");
        let code = code.map_err(|error| QueryError::new_err(error.to_string()))?;
        let len = u16::try_from(octets.len())
            .map_err(|_| QueryError::new_err("an option has at most 65,535 octets"))?;
        data.extend_from_slice(&code.to_be_bytes());
        data.extend_from_slice(&len.to_be_bytes());
        data.extend_from_slice(&octets);
    }
    let len = u16::try_from(data.len())
        .map_err(|_| QueryError::new_err("options have at most 65,535 octets"))?;
    message.extend_from_slice(&len.to_be_bytes());
    message.extend_from_slice(&data);
    Ok(PyBytes::new(py, &message))
}
