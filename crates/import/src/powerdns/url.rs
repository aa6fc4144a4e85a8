//! URLs of checks.

use std::net::IpAddr;

/// The parts of a URL that a check needs.
#[derive(Debug, PartialEq, Eq)]
pub struct Url {
    /// Whether the scheme is `https`.
    pub is_https: bool,
    /// Name or address of the server, without brackets.
    pub host: String,
    /// Port, if it is not the scheme's.
    pub port: Option<u16>,
    /// Path and query, which begin with `/`.
    pub path: String,
}

impl Url {
    /// Reads a URL of HTTP; none if it is another one.
    pub fn read(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let is_https = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let path = path.split('#').next().unwrap_or_default();
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let (host, port) = match authority.strip_prefix('[') {
            Some(inner) => {
                let (host, port) = inner.split_once(']')?;
                (host, port.strip_prefix(':'))
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        let port = match port {
            Some(port) => Some(port.parse().ok()?),
            None => None,
        };
        let default = if is_https { 443 } else { 80 };
        let is_host = !host.is_empty() && !host.contains('@');
        let port = port.filter(|port| *port != default);
        is_host.then(|| Self { is_https, host: host.to_owned(), port, path })
    }

    /// Returns the host, if it is an address.
    pub fn address(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_scheme_host_port_and_path() {
        let url = |is_https, host: &str, port, path: &str| {
            Some(Url { is_https, host: host.to_owned(), port, path: path.to_owned() })
        };
        for (text, expected) in [
            ("https://www.example.com/", url(true, "www.example.com", None, "/")),
            ("http://example.com:8080/a?b#c", url(false, "example.com", Some(8080), "/a?b")),
            ("HTTPS://[2001:db8::1]:443", url(true, "2001:db8::1", None, "/")),
            ("http://192.0.2.1?x", url(false, "192.0.2.1", None, "/?x")),
            ("ftp://example.com/", None),
            ("https://user@example.com/", None),
            ("https:///", None),
            ("http://a:b/", None),
        ] {
            assert_eq!(Url::read(text), expected, "{text}");
        }
    }
}
