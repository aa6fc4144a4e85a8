//! The place of a database whose records a zone follows.

use crate::section::Shape;
use crate::value::Value;
use std::fmt;
use std::path::{Path, PathBuf};

/// A database.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum StoreUrl {
    /// A PostgreSQL server: its URL, which may hold a password.
    Postgres(String),
    /// A Redis or Valkey server: its URL, which may hold a password.
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
        None if url.starts_with("redis:") => Some(start..at).filter(|range| !range.is_empty()),
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
        "postgres://USER:PASSWORD@HOST/DATABASE, redis://USER:PASSWORD@HOST:PORT/NUMBER or \
         redb:FILE"
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
            "redis" => {
                let is_number = path.is_empty() || path.parse::<u32>().is_ok();
                is_number.then(|| Self::Redis(text.to_owned()))
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
            server => server,
        }
    }
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
    }
}
