//! The place of a database whose records a zone follows.

use crate::section::Shape;
use crate::value::Value;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A database.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum StoreUrl {
    /// A PostgreSQL server: its URL, which may hold a password.
    Postgres(String),
    /// A Redis or Valkey server: its URL, which may hold a password. `rediss` is encrypted.
    Redis(String),
    /// A file of redb.
    Redb(PathBuf),
}

impl StoreUrl {
    /// Returns whether a password stands in the URL.
    #[must_use]
    pub fn has_password(&self) -> bool {
        match self {
            Self::Postgres(url) | Self::Redis(url) => {
                password_range(url).is_some() || url.contains("password=")
            }
            Self::Redb(_) => false,
        }
    }

    /// Returns the first word of the URL, by which the kind of database is known.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        match self {
            Self::Postgres(_) => "postgres",
            Self::Redis(_) => "redis",
            Self::Redb(_) => "redb",
        }
    }
}

/// Returns where in a URL the password stands: behind the user, or without one in front of the `@`.
fn password_range(url: &str) -> Option<std::ops::Range<usize>> {
    let start = url.find("://")? + 3;
    let end = start + url[start..].find('/').unwrap_or(url.len() - start);
    let at = start + url[start..end].rfind('@')?;
    match url[start..at].find(':') {
        Some(colon) => Some(start + colon + 1..at).filter(|range| !range.is_empty()),
        None if url.starts_with("redis") => Some(start..at).filter(|range| !range.is_empty()),
        None => None,
    }
}

impl fmt::Display for StoreUrl {
    /// Writes the URL with `hidden` for a password, and without parameters, which may hold one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Postgres(url) | Self::Redis(url) => {
                let url = &url[..url.find('?').unwrap_or(url.len())];
                match password_range(url) {
                    Some(range) => {
                        write!(f, "{}hidden{}", &url[..range.start], &url[range.end..])
                    }
                    None => f.write_str(url),
                }
            }
            Self::Redb(file) => write!(f, "redb:{}", file.display()),
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Value for StoreUrl {
    const SECRET: bool = true;
    const SHAPE: Shape = Shape::Text;

    fn form() -> String {
        "postgres://USER:PASSWORD@HOST/DATABASE, redis://USER:PASSWORD@HOST:PORT/NUMBER, \
         rediss://USER:PASSWORD@HOST:PORT/NUMBER or redb:FILE"
            .into()
    }

    fn from_text(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once(':')?;
        if scheme == "redb" {
            return (!rest.is_empty()).then(|| Self::Redb(rest.into()));
        }
        let rest = rest.strip_prefix("//")?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        // What other programs read as part of a password must not be shown as a path.
        if path.contains('@') || authority.contains(['?', '#']) {
            return None;
        }
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let port = match host.rsplit_once(':') {
            Some((_, port)) if !port.ends_with(']') => Some(port),
            _ => None,
        };
        if host.is_empty() || host.starts_with(':') {
            return None;
        }
        port.map_or(Ok(0), str::parse::<u16>).ok()?;
        match scheme {
            "postgres" | "postgresql" => Some(Self::Postgres(text.to_owned())),
            "redis" | "rediss" => {
                let (number, parameters) = path.split_once('?').unwrap_or((path, ""));
                let is_number = number.is_empty() || number.parse::<u32>().is_ok();
                let may_have = scheme == "rediss" || parameters.is_empty();
                (is_number && may_have).then(|| Self::Redis(text.to_owned()))
            }
            _ => None,
        }
    }

    fn relative_to(self, directory: &Path) -> Self {
        match self {
            Self::Redb(file) => {
                let file = directory.join(file);
                // One file has one name here, however it is spelled.
                Self::Redb(file.canonicalize().unwrap_or(file))
            }
            Self::Redis(url) => Self::Redis(with_file_in(&url, "ca", directory)),
            Self::Postgres(url) => Self::Postgres(with_file_in(&url, "sslrootcert", directory)),
        }
    }
}

/// Returns a URL whose parameter of this name, a file, lies in a directory if its path is
/// relative. A parameter that is no file stays as it is, for the store to refuse.
fn with_file_in(url: &str, name: &str, directory: &Path) -> String {
    let Some((server, parameters)) = url.split_once('?') else { return url.to_owned() };
    let parameters = parameters.split('&').map(|parameter| {
        let value = parameter.strip_prefix(name).and_then(|rest| rest.strip_prefix('='));
        match value.filter(|value| !value.is_empty()).and_then(unescaped) {
            Some(file) => format!("{name}={}", escaped(&directory.join(file))),
            None => parameter.to_owned(),
        }
    });
    format!("{server}?{}", parameters.collect::<Vec<_>>().join("&"))
}

/// Returns the path that text of a URL is, with its `%xx` put back.
fn unescaped(text: &str) -> Option<PathBuf> {
    let mut parts = text.split('%');
    let mut octets = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        octets.push(u8::from_str_radix(digits, 16).ok()?);
        octets.extend_from_slice(rest.as_bytes());
    }
    Some(OsString::from_vec(octets).into())
}

/// Returns the text of a URL that a path is.
fn escaped(path: &Path) -> String {
    let octets = path.as_os_str().as_bytes().iter();
    octets.fold(String::new(), |text, octet| match octet {
        b'/' | b'.' | b'-' | b'_' | b'~' => text + &char::from(*octet).to_string(),
        octet if octet.is_ascii_alphanumeric() => text + &char::from(*octet).to_string(),
        octet => text + &format!("%{octet:02X}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A URL as it is shown; nothing if it is none.
    fn shown(text: &str) -> Option<String> {
        StoreUrl::from_text(text).map(|url| url.to_string())
    }

    #[test]
    fn a_password_is_never_shown() {
        for (text, expected) in [
            ("postgres://dns:secret@127.0.0.1/dns", "postgres://dns:hidden@127.0.0.1/dns"),
            ("postgresql://dns@[::1]:5432/dns", "postgresql://dns@[::1]:5432/dns"),
            ("postgres://dns:a@b@db/dns?password=x", "postgres://dns:hidden@db/dns"),
            ("redis://:secret@localhost:6379/1", "redis://:hidden@localhost:6379/1"),
            ("redis://secret@localhost", "redis://hidden@localhost"),
            ("redis://localhost", "redis://localhost"),
            ("rediss://secret@localhost/", "rediss://hidden@localhost/"),
            ("rediss://u:secret@h:1/3?ca=/etc/ca.pem", "rediss://u:hidden@h:1/3"),
            ("rediss://localhost", "rediss://localhost"),
            ("redb:zones.redb", "redb:zones.redb"),
        ] {
            assert_eq!(shown(text).as_deref(), Some(expected));
            let url = StoreUrl::from_text(text).unwrap();
            assert_eq!(url.has_password(), expected.contains("hidden"), "{text}");
            assert!(!format!("{url:?}").contains("secret"));
        }
    }

    #[test]
    fn what_is_no_database_is_refused() {
        for text in [
            "postgres://dns:12/3@h/d",
            "redis://:a?b@h",
            "postgres://u:a#b@h/d",
            "",
            "redis",
            "redis:localhost",
            "redis://",
            "redis://localhost:x",
            "redis://a/b",
            "redis://a/0?ca=b",
            "rediss://a/b",
            "rediss://a?ca=b",
            "rediss://:secret",
            "postgres:///dns",
            "postgres://u:p@/dns",
            "mysql://localhost/dns",
            "redb:",
        ] {
            assert_eq!(shown(text), None, "{text}");
        }
    }

    #[test]
    fn a_relative_file_lies_beside_the_configuration() {
        let url = StoreUrl::from_text("redb:zones.redb").unwrap();
        assert_eq!(
            url.relative_to(Path::new("/etc/zonda")).to_string(),
            "redb:/etc/zonda/zones.redb"
        );
        let beside = |text: &str| {
            let url = StoreUrl::from_text(text).unwrap();
            let (StoreUrl::Postgres(url) | StoreUrl::Redis(url)) =
                url.relative_to(Path::new("/etc/zo nda"))
            else {
                panic!("{text} is a file")
            };
            url
        };
        for (text, expected) in [
            ("rediss://db/?ca=my%26ca.pem", "rediss://db/?ca=/etc/zo%20nda/my%26ca.pem"),
            ("rediss://db/0?ca=/ca.pem", "rediss://db/0?ca=/ca.pem"),
            ("rediss://db/?ca=", "rediss://db/?ca="),
            ("rediss://db/?ca=%z", "rediss://db/?ca=%z"),
            (
                "postgres://db/dns?sslmode=require&sslrootcert=ca.pem&connect_timeout=1",
                "postgres://db/dns?sslmode=require&sslrootcert=/etc/zo%20nda/ca.pem&\
                 connect_timeout=1",
            ),
        ] {
            assert_eq!(beside(text), expected);
        }
    }
}
