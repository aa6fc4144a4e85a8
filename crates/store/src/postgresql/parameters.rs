//! The parameters of a connection to PostgreSQL: those that its client knows, and those of TLS.

use crate::StoreError;
use crate::escape::{unescaped, unescaped_path};
use crate::tls::Trust;
use postgres::Config;
use postgres::config::SslMode;
use std::ops::Range;
use std::path::PathBuf;

/// How connections are encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Encryption {
    /// Connections are not encrypted.
    Disabled,
    /// Connections are encrypted where the server offers it, and no certificate is verified.
    Preferred,
    /// Connections are encrypted, and the server's certificate is verified.
    Required(Trust),
}

/// Reads parameters, as a URL or as words `name=value`.
///
/// # Errors
/// When they are neither, or contradict one another.
pub(super) fn read(text: &str) -> Result<(Config, Encryption), StoreError> {
    let is_url = text.starts_with("postgres://") || text.starts_with("postgresql://");
    let mut found = TlsParameters::default();
    let rest = if is_url { of_url(text, &mut found)? } else { of_words(text, &mut found) };
    let mut config = rest.parse::<Config>().map_err(StoreError::config)?;
    if found.mode.is_none() && config.get_ssl_mode() != SslMode::Prefer {
        // A name with `%`, say.
        return Err(StoreError::config("write `sslmode` as it stands, without `%`"));
    }
    let encryption = found.encryption()?;
    config.ssl_mode(match encryption {
        Encryption::Disabled => SslMode::Disable,
        Encryption::Preferred => SslMode::Prefer,
        Encryption::Required(_) => SslMode::Require,
    });
    if config.get_hosts().is_empty() {
        // The name of a server that has an address only is its address.
        for address in config.get_hostaddrs().to_vec() {
            config.host(&address.to_string());
        }
    }
    Ok((config, encryption))
}

/// The parameters that the client does not know, or knows in part.
#[derive(Default)]
struct TlsParameters {
    /// The value of `sslmode`.
    mode: Option<String>,
    /// The value of `sslrootcert`, a file.
    roots: Option<PathBuf>,
}

impl TlsParameters {
    /// Returns what is meant.
    fn encryption(self) -> Result<Encryption, StoreError> {
        let mode = self.mode.as_deref().unwrap_or("prefer");
        match (mode, self.roots) {
            ("disable", None) => Ok(Encryption::Disabled),
            ("prefer", None) => Ok(Encryption::Preferred),
            ("disable" | "prefer", Some(_)) => Err(StoreError::config(format!(
                "`sslrootcert` means nothing with sslmode={mode}, which verifies no certificate; \
                 write sslmode=verify-full"
            ))),
            ("require" | "verify-full", None) => Ok(Encryption::Required(Trust::PublicRoots)),
            ("require" | "verify-full", Some(file)) => Ok(Encryption::Required(Trust::File(file))),
            _ => Err(StoreError::config(
                "`sslmode` must be `disable`, `prefer`, `require` or `verify-full`",
            )),
        }
    }
}

/// Takes the parameters of TLS out of a URL, and returns the rest of it.
fn of_url(url: &str, found: &mut TlsParameters) -> Result<String, StoreError> {
    let host = url.find('@').map_or(0, |at| at + 1); // a password may have a `?`
    let Some(mark) = url[host..].find('?').map(|mark| host + mark) else {
        return Ok(url.to_owned());
    };
    let malformed = |name| StoreError::config(format!("`{name}` has a `%` without two digits"));
    let mut others = Vec::new();
    for parameter in url[mark + 1..].split('&') {
        match parameter.split_once('=') {
            Some(("sslmode", value)) => {
                let mode = unescaped(value).ok_or_else(|| malformed("sslmode"))?;
                found.mode = Some(String::from_utf8_lossy(&mode).into_owned());
            }
            Some(("sslrootcert", value)) => {
                let file = unescaped_path(value).ok_or_else(|| malformed("sslrootcert"))?;
                found.roots = Some(file);
            }
            _ => others.push(parameter),
        }
    }
    let mark = if others.is_empty() { mark } else { mark + 1 };
    Ok(format!("{}{}", &url[..mark], others.join("&")))
}

/// Takes the parameters of TLS out of words, and returns the rest of these.
fn of_words(text: &str, found: &mut TlsParameters) -> String {
    let mut rest = text.to_owned();
    let words: Vec<_> = Words { text, at: 0 }.collect();
    for (range, name, value) in words.into_iter().rev() {
        // Of two, the last counts, as in the client.
        match name {
            "sslmode" if found.mode.is_none() => found.mode = Some(value),
            "sslrootcert" if found.roots.is_none() => found.roots = Some(value.into()),
            "sslmode" | "sslrootcert" => {}
            _ => continue,
        }
        rest.replace_range(range, "");
    }
    rest
}

/// Words `name=value`, each with where it stands. A value may be within quotes, and `\` takes the
/// special meaning of the next character away. The words end where something else follows, which
/// the client finds as well.
struct Words<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for Words<'a> {
    type Item = (Range<usize>, &'a str, String);

    fn next(&mut self) -> Option<Self::Item> {
        self.skip_space();
        let start = self.at;
        let rest = &self.text[start..];
        let end = rest.find(|it: char| it.is_whitespace() || it == '=').filter(|end| *end > 0)?;
        self.at += end;
        self.skip_space();
        self.take('=').then_some(())?;
        self.skip_space();
        let value = self.value()?;
        Some((start..self.at, &rest[..end], value))
    }
}

impl Words<'_> {
    /// Passes white space.
    fn skip_space(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Passes a character if it is there; returns whether it is.
    fn take(&mut self, expected: char) -> bool {
        let is_there = self.text[self.at..].starts_with(expected);
        self.at += if is_there { expected.len_utf8() } else { 0 };
        is_there
    }

    /// Passes a value; nothing if there is none, or if a quote is missing behind it.
    fn value(&mut self) -> Option<String> {
        let is_quoted = self.take('\'');
        let mut value = String::new();
        let mut characters = self.text[self.at..].char_indices();
        let mut end = self.text.len() - self.at;
        let mut is_closed = !is_quoted;
        while let Some((at, character)) = characters.next() {
            match character {
                '\'' if is_quoted => {
                    (end, is_closed) = (at + 1, true);
                    break;
                }
                space if !is_quoted && space.is_whitespace() => {
                    end = at;
                    break;
                }
                '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
                other => value.push(other),
            }
        }
        self.at += end;
        is_closed.then_some(value)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use postgres::config::Host;

    /// Returns how connections are encrypted with these parameters; of an error, its text.
    fn encryption(parameters: &str) -> Result<Encryption, String> {
        read(parameters).map(|(_, encryption)| encryption).map_err(|error| error.to_string())
    }

    #[test]
    fn each_mode_says_whether_connections_are_encrypted_and_verified() {
        for (mode, expected) in [
            ("", Encryption::Preferred),
            ("sslmode=prefer", Encryption::Preferred),
            ("sslmode=disable", Encryption::Disabled),
            ("sslmode=require", Encryption::Required(Trust::PublicRoots)),
            ("sslmode=verify-full", Encryption::Required(Trust::PublicRoots)),
            ("sslmode=verify%2dfull", Encryption::Required(Trust::PublicRoots)),
        ] {
            let url = format!("postgres://me:a?b@db/dns?{mode}");
            assert_eq!(encryption(&url), Ok(expected.clone()), "{url}");
            let words = format!("host=db {}", mode.replace("%2d", "-"));
            assert_eq!(encryption(&words), Ok(expected), "{words}");
        }
    }

    #[test]
    fn a_file_of_roots_is_read_from_a_url_and_from_words() {
        let file = Encryption::Required(Trust::File("/etc/my ca'.pem".into()));
        for parameters in [
            "postgresql://db/dns?sslmode=require&connect_timeout=2&sslrootcert=/etc/my%20ca'.pem",
            "postgresql://db?sslrootcert=%2Fetc/my ca'.pem&sslmode=verify-full",
            r"host=db sslrootcert = '/etc/my ca\'.pem' sslmode=require connect_timeout=2",
            r"sslmode='verify-full' sslrootcert=/etc/my\ ca\'.pem host=db",
        ] {
            assert_eq!(encryption(parameters), Ok(file.clone()), "{parameters}");
        }
    }

    #[test]
    fn the_other_parameters_are_left_as_they_are() {
        for parameters in [
            "postgres://me:p%40ss@db:7000/dns?sslmode=require&connect_timeout=2",
            "postgres://me:p%40ss@db:7000/dns?connect_timeout=2&sslmode=require",
            r"user=me password='p@ss' sslmode = require host=db port=7000 dbname=dns
              connect_timeout=2",
            r"sslmode=disable user=me password=p\@ss host=db port=7000 dbname=dns sslmode=require
              connect_timeout=2",
        ] {
            let (config, encryption) = read(parameters).unwrap();
            assert_eq!(config.get_hosts(), [Host::Tcp("db".into())], "{parameters}");
            assert_eq!(config.get_ports(), [7000]);
            assert_eq!((config.get_user(), config.get_dbname()), (Some("me"), Some("dns")));
            assert_eq!(config.get_password(), Some(&b"p@ss"[..]), "{parameters}");
            assert_eq!(config.get_connect_timeout().unwrap().as_secs(), 2);
            assert_eq!(config.get_ssl_mode(), SslMode::Require);
            assert_eq!(encryption, Encryption::Required(Trust::PublicRoots));
        }
    }

    #[test]
    fn an_unknown_mode_is_refused_and_so_is_a_file_of_roots_that_would_not_be_read() {
        for parameters in ["host=db sslmode=verify-ca", "postgres://db?sslmode=allow"] {
            let error = encryption(parameters).unwrap_err();
            assert!(error.contains("`disable`, `prefer`, `require` or `verify-full`"), "{error}");
        }
        for parameters in ["host=db sslrootcert=a", "postgres://db?sslmode=disable&sslrootcert=a"] {
            let error = encryption(parameters).unwrap_err();
            assert!(error.contains("`sslrootcert` means nothing with sslmode="), "{error}");
        }
        for parameters in ["host=db sslmode", "host=db sslmode='require", "postgres://db?sslmode"] {
            assert!(read(parameters).is_err(), "{parameters}");
        }
        assert!(encryption("postgres://db?sslmode=%zz").is_err());
    }

    #[test]
    fn the_name_of_a_server_that_has_an_address_alone_is_the_address() {
        let (config, _) = read("hostaddr=192.0.2.1,2001:db8::1 user=me").unwrap();
        let names = ["192.0.2.1", "2001:db8::1"].map(|name| Host::Tcp(name.into()));
        assert_eq!(config.get_hosts(), names);
    }
}
