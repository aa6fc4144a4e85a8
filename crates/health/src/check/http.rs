//! Checks by HTTP.

use std::net::SocketAddr;
use std::ops::RangeInclusive;

use http::header::{
    CONNECTION, CONTENT_LENGTH, HOST, HeaderName, HeaderValue, TE, TRANSFER_ENCODING, UPGRADE,
    USER_AGENT,
};
use http::uri::{Authority, PathAndQuery};
use http::{Method, Request, Uri};

use super::{CheckError, TEXT_BYTES_MAX, TlsSettings};
use crate::outcome::Fault;

/// The user agent of probes, unless a header says otherwise.
const AGENT: &str = concat!("zonda/", env!("CARGO_PKG_VERSION"), " health check");
/// Headers that the probe writes itself, or that would change how the response is sent.
const OWN_HEADERS: [HeaderName; 6] =
    [HOST, CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING, UPGRADE, TE];

/// The version of HTTP that a check speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HttpVersion {
    /// HTTP/1.1, with a connection for each probe.
    Http1,
    /// HTTP/2: agreed on by ALPN over TLS, without TLS taken for granted.
    Http2,
}

/// An HTTP request and what its response must be.
///
/// Without further ado: GET, over TCP without TLS, HTTP/1.1, the target's address as host, and a
/// status of 200 to 399. Redirections are not followed, so that one counts as a success: the target
/// itself has answered.
///
/// ```
/// use zonda_health::{HttpCheck, TlsSettings};
///
/// let check = HttpCheck::new("/health")?
///     .with_host("www.example.com")?
///     .with_statuses(&[200..=299, 404..=404])?
///     .with_text("ready")?
///     .with_tls(TlsSettings::default());
/// assert!(HttpCheck::new("health").is_err());
/// # Ok::<(), zonda_health::CheckError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HttpCheck {
    version: HttpVersion,
    tls: Option<TlsSettings>,
    method: Method,
    path: PathAndQuery,
    /// Host of the request and name for TLS; `None` for the target's address.
    host: Option<Authority>,
    headers: Vec<(HeaderName, HeaderValue)>,
    statuses: Vec<RangeInclusive<u16>>,
    /// Text that must be in the body; empty for any body.
    text: Box<[u8]>,
}

impl HttpCheck {
    /// Returns a check by GET of this path, perhaps with a query behind `?`.
    ///
    /// # Errors
    /// When this can be no path.
    pub fn new(path: &str) -> Result<Self, CheckError> {
        let path = match path.starts_with('/') {
            true => path.parse().map_err(|_| CheckError::Path)?,
            false => return Err(CheckError::Path),
        };
        Ok(Self {
            version: HttpVersion::Http1,
            tls: None,
            method: Method::GET,
            path,
            host: None,
            headers: Vec::new(),
            statuses: vec![200..=399],
            text: Box::default(),
        })
    }

    /// Sets the version of HTTP.
    #[must_use]
    pub fn with_version(self, version: HttpVersion) -> Self {
        Self { version, ..self }
    }

    /// Lets the check use TLS.
    #[must_use]
    pub fn with_tls(self, tls: TlsSettings) -> Self {
        Self { tls: Some(tls), ..self }
    }

    /// Sets the method; CONNECT is none of a check.
    ///
    /// # Errors
    /// When this can be no method.
    pub fn with_method(self, method: &str) -> Result<Self, CheckError> {
        let method: Method = method.parse().map_err(|_| CheckError::Method)?;
        if method == Method::CONNECT {
            return Err(CheckError::Method);
        }
        Ok(Self { method, ..self })
    }

    /// Sets the host of the request, with a port if it is to have one. Over TLS this is the name
    /// that the certificate must show, too, unless [`TlsSettings`] have another.
    ///
    /// # Errors
    /// When this can be no host.
    pub fn with_host(self, host: &str) -> Result<Self, CheckError> {
        let host: Authority = host.parse().map_err(|_| CheckError::Host)?;
        if host.host().is_empty() || host.as_str().contains('@') {
            return Err(CheckError::Host);
        }
        Ok(Self { host: Some(host), ..self })
    }

    /// Adds a header.
    ///
    /// # Errors
    /// When this can be no header, or it is one that the probe writes itself.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, CheckError> {
        let name: HeaderName = name.parse().map_err(|_| CheckError::Header)?;
        let value: HeaderValue = value.parse().map_err(|_| CheckError::Header)?;
        if OWN_HEADERS.contains(&name) {
            return Err(CheckError::OwnHeader);
        }
        self.headers.push((name, value));
        Ok(self)
    }

    /// Sets the statuses that are a success.
    ///
    /// # Errors
    /// When there is none, or one that no final response has.
    pub fn with_statuses(self, statuses: &[RangeInclusive<u16>]) -> Result<Self, CheckError> {
        let is_good = |range: &RangeInclusive<u16>| {
            !range.is_empty() && *range.start() >= 100 && *range.end() <= 599
        };
        if statuses.is_empty() || !statuses.iter().all(is_good) {
            return Err(CheckError::Statuses);
        }
        Ok(Self { statuses: statuses.to_vec(), ..self })
    }

    /// Sets a text that must lie in the first [`TEXT_BYTES_MAX`] octets of the body.
    ///
    /// # Errors
    /// When it is longer than that.
    pub fn with_text(self, text: &str) -> Result<Self, CheckError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(CheckError::TextTooLong);
        }
        Ok(Self { text: text.as_bytes().into(), ..self })
    }

    /// Returns the version of HTTP.
    #[must_use]
    pub fn version(&self) -> HttpVersion {
        self.version
    }

    /// Returns the settings of TLS, if the check uses it.
    #[must_use]
    pub fn tls(&self) -> Option<&TlsSettings> {
        self.tls.as_ref()
    }

    /// Returns whether the check is by HTTP/1.1 without TLS.
    pub(crate) fn is_plain(&self) -> bool {
        self.version == HttpVersion::Http1 && self.tls.is_none()
    }

    /// Returns the host without its port and brackets, if it is set.
    pub(crate) fn host_name(&self) -> Option<&str> {
        self.host.as_ref().map(host_name)
    }

    /// Returns the text that must be in the body; empty for any body.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Judges the status of a response.
    pub(crate) fn judge_status(&self, status: u16) -> Result<(), Fault> {
        match self.statuses.iter().any(|range| range.contains(&status)) {
            true => Ok(()),
            false => Err(Fault::Status(status)),
        }
    }

    /// Returns the method of the request.
    pub(crate) fn method(&self) -> &Method {
        &self.method
    }

    /// Returns the request for a target as HTTP/1.1 has it.
    pub(crate) fn http1_request(&self, target: SocketAddr) -> Vec<u8> {
        let mut request = format!(
            "{} {} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n",
            self.method,
            self.path,
            self.authority(target)
        )
        .into_bytes();
        if [Method::POST, Method::PUT, Method::PATCH].contains(&self.method) {
            request.extend_from_slice(b"content-length: 0\r\n");
        }
        self.each_header(|name, value| {
            for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
                request.extend_from_slice(part);
            }
        });
        request.extend_from_slice(b"\r\n");
        request
    }

    /// Returns the request for a target as HTTP/2 has it.
    pub(crate) fn http2_request(&self, target: SocketAddr) -> Request<()> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let uri = Uri::builder().scheme(scheme).authority(self.authority(target));
        let uri = uri.path_and_query(self.path.clone());
        let mut request = Request::new(());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = uri.build().expect("all parts are valid on their own");
        let headers = request.headers_mut();
        self.each_header(|name, value| {
            headers.append(name, value.clone());
        });
        request
    }

    /// Returns the host, or the target's address where there is none.
    fn authority(&self, target: SocketAddr) -> String {
        match &self.host {
            Some(host) => host.as_str().to_owned(),
            None => target.to_string(), // [2001:db8::1]:80 has its brackets
        }
    }

    /// Calls a function for every header but those of the connection.
    fn each_header(&self, mut visit: impl FnMut(&HeaderName, &HeaderValue)) {
        if !self.headers.iter().any(|(name, _)| *name == USER_AGENT) {
            visit(&USER_AGENT, &HeaderValue::from_static(AGENT));
        }
        self.headers.iter().for_each(|(name, value)| visit(name, value));
    }
}

/// Returns the host of an authority, an address of IPv6 without its brackets.
pub(crate) fn host_name(authority: &Authority) -> &str {
    let host = authority.host();
    host.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_cannot_be_sent_is_refused() {
        for path in ["", "health", "/a b", "/a\r\nX: y", "http://a/"] {
            assert_eq!(HttpCheck::new(path).err(), Some(CheckError::Path), "{path:?}");
        }
        let check = || HttpCheck::new("/").unwrap();
        for method in ["", "GET /", "CONNECT"] {
            assert_eq!(check().with_method(method).err(), Some(CheckError::Method));
        }
        for host in ["", "a b", "user@a", "a/b", ":80"] {
            assert_eq!(check().with_host(host).err(), Some(CheckError::Host), "{host:?}");
        }
        assert_eq!(check().with_header("a b", "").err(), Some(CheckError::Header));
        assert_eq!(check().with_header("a", "b\r\nc: d").err(), Some(CheckError::Header));
        assert_eq!(check().with_header("Host", "a").err(), Some(CheckError::OwnHeader));
        #[allow(clippy::reversed_empty_ranges, reason = "this is what must be refused")]
        for statuses in [&[][..], &[300..=200], &[0..=99], &[200..=600]] {
            assert_eq!(check().with_statuses(statuses).err(), Some(CheckError::Statuses));
        }
        let long = "x".repeat(TEXT_BYTES_MAX + 1);
        assert_eq!(check().with_text(&long).err(), Some(CheckError::TextTooLong));
    }

    /// Returns the request for a target as text.
    fn http1(check: &HttpCheck, target: &str) -> String {
        String::from_utf8(check.http1_request(target.parse().unwrap())).unwrap()
    }

    #[test]
    fn the_request_names_the_host_or_the_address_with_its_port() {
        let check = HttpCheck::new("/a?b=c").unwrap();
        let request = http1(&check, "[2001:db8::1]:80");
        let beginning = "GET /a?b=c HTTP/1.1\r\nhost: [2001:db8::1]:80\r\nconnection: close\r\n";
        assert!(request.starts_with(beginning), "{request}");
        assert!(request.ends_with("\r\n\r\n") && !request.contains("content-length"));
        let named = check.with_host("www.example.com:8080").unwrap();
        assert!(http1(&named, "192.0.2.1:80").contains("\r\nhost: www.example.com:8080\r\n"));
        assert_eq!(named.host_name(), Some("www.example.com"));
        let request = named.http2_request("192.0.2.1:80".parse().unwrap());
        assert_eq!(request.uri(), "http://www.example.com:8080/a?b=c");
        let posting = named.with_method("POST").unwrap();
        assert!(http1(&posting, "192.0.2.1:80").contains("\r\ncontent-length: 0\r\n"));
    }

    #[test]
    fn headers_of_the_check_take_the_place_of_those_of_the_probe() {
        let check = HttpCheck::new("/").unwrap();
        assert!(http1(&check, "[::1]:1").contains("\r\nuser-agent: zonda/"));
        let check = check.with_header("User-Agent", "a").unwrap().with_header("x", "1").unwrap();
        let check = check.with_header("x", "2").unwrap();
        let request = http1(&check, "[::1]:1");
        assert!(request.ends_with("\r\nuser-agent: a\r\nx: 1\r\nx: 2\r\n\r\n"), "{request}");
        let headers = check.http2_request("[::1]:1".parse().unwrap()).headers().clone();
        assert_eq!(headers.get_all("x").iter().count(), 2);
    }
}
