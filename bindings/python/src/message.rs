//! Messages in wire form, which Python asks with and reads.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use zonda_wire::Name;

use crate::record::parse_type;
use crate::reply::Reply;

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
    name: &str,
    rtype: &Bound<'py, PyAny>,
    dnssec_ok: bool,
    options: Vec<(u16, Vec<u8>)>,
) -> PyResult<Bound<'py, PyBytes>> {
    const UDP_BYTES: u16 = 1232;
    let wrong = |error| PyValueError::new_err(format!("{name:?}: {error}"));
    let name: Name = name.parse().map_err(wrong)?;
    let mut message = b"\0\0\x01\0\0\x01\0\0\0\0\0\x01".to_vec(); // RD, a question, an OPT record
    message.extend_from_slice(name.as_wire());
    message.extend_from_slice(&parse_type(rtype)?.0.to_be_bytes());
    message.extend_from_slice(b"\0\x01\0\0\x29");
    message.extend_from_slice(&UDP_BYTES.to_be_bytes());
    message.extend_from_slice(&[0, 0, u8::from(dnssec_ok) << 7, 0]);
    let mut data = Vec::new();
    for (code, octets) in options {
        let len = u16::try_from(octets.len())
            .map_err(|_| PyValueError::new_err("an option has at most 65,535 octets"))?;
        data.extend_from_slice(&code.to_be_bytes());
        data.extend_from_slice(&len.to_be_bytes());
        data.extend_from_slice(&octets);
    }
    let len = u16::try_from(data.len())
        .map_err(|_| PyValueError::new_err("options have at most 65,535 octets"))?;
    message.extend_from_slice(&len.to_be_bytes());
    message.extend_from_slice(&data);
    Ok(PyBytes::new(py, &message))
}
