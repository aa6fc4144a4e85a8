//! The address of a Redis server, as a URL.

use crate::escape::{unescaped, unescaped_path};
use crate::tls::Trust;
use std::fmt;
use std::str::FromStr;

/// Where a server listens that says nothing else.
const PORT: u16 = 6379;

/// Address of a server, and the user's credentials.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Address {
    /// The name or the address of the server.
    pub host: String,
    /// The port that it listens on.
    pub port: u16,
    /// The user's name, where it has one.
    pub user: Option<String>,
    /// The user's password, where one is asked for.
    pub password: Option<String>,
    /// The number of the database.
    pub database: u32,
    /// Which server is trusted, where the connection is encrypted.
    pub trust: Option<Trust>,
}

impl fmt::Display for Address {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl FromStr for Address {
    type Err = String;

    /// Reads a URL: `redis://[[user]:password@]host[:port][/database]`, or `rediss://…` with TLS
    /// and perhaps `/[database]?ca=FILE`.
    fn from_str(url: &str) -> Result<Self, String> {
        let scheme = if url.starts_with("rediss://") { "rediss" } else { "redis" };
        let wrong = |why: &str| format!("{scheme}://…: {why}"); // the URL may hold a password
        let rest = url
            .strip_prefix(scheme)
            .and_then(|rest| rest.strip_prefix("://"))
            .ok_or_else(|| wrong("it does not begin with `redis://` or `rediss://`"))?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (database, parameters) = match path.split_once('?') {
            Some((database, parameters)) => (database, Some(parameters)),
            None => (path, None),
        };
        let database = match database {
            "" => 0,
            number => number.parse().map_err(|_| wrong("the database is not a number"))?,
        };
        let (credentials, server) = match authority.rsplit_once('@') {
            Some((credentials, server)) => (Some(credentials), server),
            None => (None, authority),
        };
        if server.contains('?') {
            return Err(wrong("a `/` is missing in front of `?`"));
        }
        let decoded = |text: &str| {
            let text = unescaped(text).and_then(|octets| String::from_utf8(octets).ok());
            text.ok_or_else(|| wrong("a `%` is not followed by two digits of a character"))
        };
        let (mut user, mut password) = (None, None);
        if let Some(credentials) = credentials {
            let (name, secret) = credentials.split_once(':').unwrap_or(("", credentials));
            user = (!name.is_empty()).then(|| decoded(name)).transpose()?;
            password = Some(decoded(secret)?);
        }
        let (host, port) = match server.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| wrong("the port is not a number"))?)
            }
            _ => (server, PORT),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err(wrong("the host is missing"));
        }
        let trust = match (scheme, parameters) {
            ("redis", None) => None,
            ("redis", Some(_)) => return Err(wrong("only rediss:// has parameters")),
            (_, parameters) => Some(trust(parameters).map_err(wrong)?),
        };
        Ok(Self { host, port, user, password, database, trust })
    }
}

/// Reads what stands behind `?`: nothing, or `ca=FILE`.
fn trust(parameters: Option<&str>) -> Result<Trust, &'static str> {
    let Some(parameters) = parameters else { return Ok(Trust::PublicRoots) };
    match parameters.strip_prefix("ca=") {
        Some(file) if !file.is_empty() && !file.contains(['&', '#']) => unescaped_path(file)
            .map(Trust::File)
            .ok_or("a `%` is not followed by two digits of a character"),
        _ => Err("the one parameter is `ca=FILE`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Host, port, user, password and database.
    type Parts = (String, u16, Option<String>, Option<String>, u32);

    fn address(url: &str) -> Result<Parts, String> {
        url.parse::<Address>().map(|it| (it.host, it.port, it.user, it.password, it.database))
    }

    #[test]
    fn a_url_gives_server_credentials_and_database() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(address("redis://db"), Ok(("db".into(), 6379, None, None, 0)));
        assert_eq!(
            address("redis://me:p%40ss:x@[::1]:7000/3"),
            Ok(("::1".into(), 7000, some("me"), some("p@ss:x"), 3))
        );
        assert_eq!(
            address("redis://:secret@db/"),
            Ok(("db".into(), 6379, None, some("secret"), 0))
        );
        assert_eq!(
            address("rediss://:secret@db:7000/3?ca=/etc/ca.pem"),
            Ok(("db".into(), 7000, None, some("secret"), 3))
        );
        assert_eq!(address("redis://[::1]").map(|it| it.0), Ok("::1".into()));
    }

    #[test]
    fn a_url_that_is_none_of_redis_is_refused_without_a_word_of_it() {
        for wrong in [
            "https://db",
            "redis://",
            "rediss://",
            "redis://db:x",
            "redis://db/x",
            "redis://%zz@db",
            "redis://db/0?ca=ca.pem",
            "rediss://db/0?ca=",
            "rediss://db/0?",
            "rediss://db/0?ca=%z",
            "rediss://db/0?ca=a&b=c",
            "rediss://:secret@db?ca=ca.pem",
        ] {
            let error = address(wrong).unwrap_err();
            assert!(error.starts_with("redis") && !error.contains("db"), "{error}");
            assert!(error.contains("://…: ") && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_url_says_whether_the_connection_is_encrypted_and_which_servers_are_trusted() {
        let trust = |url: &str| url.parse::<Address>().unwrap().trust;
        assert_eq!(trust("redis://db"), None);
        assert_eq!(trust("rediss://db"), Some(Trust::PublicRoots));
        assert_eq!(trust("rediss://db/"), Some(Trust::PublicRoots));
        for url in ["rediss://db/?ca=/etc/my%20ca.pem", "rediss://db/0?ca=%2Fetc/my ca.pem"] {
            assert_eq!(trust(url), Some(Trust::File("/etc/my ca.pem".into())));
        }
    }
}
