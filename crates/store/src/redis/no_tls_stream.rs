//! A TLS stream in a program without TLS, of which there is none. The names are those of
//! `tls_stream`.

use std::convert::Infallible;
use std::io::{self, Read, Write};
use std::marker::PhantomData;

use crate::tls::{Trust, not_built};

/// An encrypted stream, of which there is none.
pub(super) struct TlsStream<S>(Infallible, PhantomData<S>);

impl<S> TlsStream<S> {
    /// Connects to no server.
    ///
    /// # Errors
    /// Always.
    pub fn connect(_: &Trust, _: &str, _: S) -> io::Result<Self> {
        Err(not_built())
    }

    /// Is never called, without a stream.
    pub fn get_ref(&self) -> &S {
        match self.0 {}
    }

    /// Is never called, without a stream.
    pub fn get_mut(&mut self) -> &mut S {
        match self.0 {}
    }
}

impl<S> Read for TlsStream<S> {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        match self.0 {}
    }
}

impl<S> Write for TlsStream<S> {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        match self.0 {}
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0 {}
    }
}
