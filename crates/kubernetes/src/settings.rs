//! Where the API server is, and how this server proves to it what it is.

use crate::error::ConnectError;
use crate::exec::{Plugin, PluginCredential};
use crate::kubeconfig;
use crate::tls::tls_config;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The directory in which a pod finds what its service account has.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Where the settings of a connection come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// What a pod has: the environment, and the files of its service account.
    Pod,
    /// A kubeconfig file, and a context of it; the current one if none is named.
    Kubeconfig(PathBuf, Option<String>),
    /// A URL, and files in PEM form: the certificates that are trusted, and those of the client
    /// with their key.
    Endpoint {
        /// The URL of the API server.
        url: String,
        /// The file of the certificates that are trusted.
        ca: Option<PathBuf>,
        /// The files of the client's certificate and key.
        client: Option<(PathBuf, PathBuf)>,
    },
}

/// How a request proves what its sender is.
#[derive(Clone)]
pub enum Credential {
    /// Nothing, or a certificate of TLS.
    None,
    /// A bearer token.
    Token(String),
    /// A file that holds a bearer token, and that is replaced from time to time.
    TokenFile(PathBuf),
    /// A program that prints credentials, and what is trusted beside them.
    Plugin(Box<(Plugin, Trust)>),
}

/// The settings of connections to an API server.
#[derive(Clone)]
pub struct Settings {
    /// The host's name or address, without brackets.
    pub host: String,
    /// The port of the API server.
    pub port: u16,
    /// The path in front of each path of the API, without a slash at the end.
    pub path: String,
    /// The settings of TLS, and the name that the certificate must have; none for plain HTTP.
    pub tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    /// How requests prove what this server is.
    pub credential: Credential,
    /// What a program has printed, and the program; none if the credential is from elsewhere.
    printed: Option<Box<(Plugin, PluginCredential)>>,
}

impl Settings {
    /// Reads the settings; files are read each time, as they may have changed.
    ///
    /// # Errors
    /// When something is missing or cannot be read.
    pub fn read(place: &Place) -> Result<Self, ConnectError> {
        match place {
            Place::Pod => Self::of_pod(),
            Place::Kubeconfig(file, context) => kubeconfig::read(file, context.as_deref()),
            Place::Endpoint { url, ca, client } => {
                let ca = ca.as_deref().map(read).transpose()?;
                let client = match client {
                    Some((certificate, key)) => Some((read(certificate)?, read(key)?)),
                    None => None,
                };
                let trust = Trust { ca, is_unchecked: false, name: None, client };
                Self::of_url(url, trust, Credential::None)
            }
        }
    }

    /// The settings of a pod.
    fn of_pod() -> Result<Self, ConnectError> {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let host = variable("KUBERNETES_SERVICE_HOST").ok_or(ConnectError::NotInPod)?;
        let port = variable("KUBERNETES_SERVICE_PORT").and_then(|port| port.parse().ok());
        let directory = Path::new(SERVICE_ACCOUNT);
        let ca = Some(read(&directory.join("ca.crt"))?);
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        let url = format!("https://{host}:{}", port.unwrap_or(443_u16));
        let trust = Trust { ca, is_unchecked: false, name: None, client: None };
        Self::of_url(&url, trust, Credential::TokenFile(directory.join("token")))
    }

    /// The settings for a URL.
    ///
    /// # Errors
    /// When the text is no URL, certificates cannot be read, or a token would be sent to another
    /// machine without TLS.
    pub fn of_url(url: &str, trust: Trust, credential: Credential) -> Result<Self, ConnectError> {
        let malformed = || ConnectError::Url(url.to_owned());
        let uri: http::Uri = url.parse().map_err(|_| malformed())?;
        let host = uri.host().ok_or_else(malformed)?.trim_matches(['[', ']']).to_owned();
        let is_plain = match uri.scheme_str() {
            Some("https") => false,
            Some("http") => true,
            _ => return Err(malformed()),
        };
        let has_token = !matches!(credential, Credential::None);
        if is_plain && has_token && !is_loopback(&host) {
            return Err(ConnectError::PlainToken(url.to_owned()));
        }
        let port = uri.port_u16().unwrap_or(if is_plain { 80 } else { 443 });
        let path = uri.path().trim_end_matches('/').to_owned();
        let tls = match is_plain {
            true => None,
            false => {
                let name = trust.name.clone().unwrap_or_else(|| host.clone());
                let name = ServerName::try_from(name).map_err(|_| malformed())?;
                Some((tls_config(trust)?, name))
            }
        };
        Ok(Self { host, port, path, tls, credential, printed: None })
    }

    /// Returns the settings with what a program prints, if they name one.
    ///
    /// # Errors
    /// When the program fails, or the certificate that it prints cannot be read.
    pub async fn with_credential(mut self) -> Result<Self, ConnectError> {
        let Credential::Plugin(both) = self.credential else { return Ok(self) };
        let (plugin, mut trust) = *both;
        let printed = plugin.credential().await?;
        if let (Some(client), Some((config, _))) = (&printed.client, &mut self.tls) {
            trust.client = Some(client.clone());
            *config = tls_config(trust)?;
        }
        self.credential = match printed.token.is_empty() {
            true => Credential::None,
            false => Credential::Token(printed.token.clone()),
        };
        self.printed = Some(Box::new((plugin, printed)));
        Ok(self)
    }

    /// Has the program print new credentials the next time, as the API refuses those.
    pub async fn forget_credential(&self) {
        if let Some((plugin, printed)) = self.printed.as_deref() {
            plugin.forget(printed).await;
        }
    }

    /// Returns the header that proves what this server is, if there is one.
    ///
    /// # Errors
    /// When the file of the token cannot be read.
    pub fn authorization(&self) -> Result<Option<String>, ConnectError> {
        let token = match &self.credential {
            // What a program prints is a token by now.
            Credential::None | Credential::Plugin(_) => return Ok(None),
            Credential::Token(token) => token.clone(),
            Credential::TokenFile(file) => String::from_utf8_lossy(&read(file)?).trim().to_owned(),
        };
        Ok(Some(format!("Bearer {token}")))
    }
}

/// Which server is trusted, and the certificate that this one shows.
#[derive(Clone)]
pub struct Trust {
    /// Certificates in PEM form that are trusted.
    pub ca: Option<Vec<u8>>,
    /// Whether any certificate is accepted.
    pub is_unchecked: bool,
    /// The name that the certificate must have, if it is not the host's.
    pub name: Option<String>,
    /// The certificate and the key of the client in PEM form.
    pub client: Option<(Vec<u8>, Vec<u8>)>,
}

/// Whether a host is this machine, so that nothing that is sent there leaves it.
fn is_loopback(host: &str) -> bool {
    let address = host.parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|it| it.is_loopback())
}

/// Reads a file.
///
/// # Errors
/// When it cannot be read.
pub fn read(file: &Path) -> Result<Vec<u8>, ConnectError> {
    std::fs::read(file).map_err(|error| ConnectError::File(file.to_owned(), error.to_string()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_token_is_sent_without_tls_to_this_machine_only() {
        let settings = |url: &str, credential| {
            let trust = Trust { ca: None, is_unchecked: false, name: None, client: None };
            Settings::of_url(url, trust, credential)
        };
        let token = || Credential::Token("secret".to_owned());
        for url in ["http://127.0.0.1:8001", "http://[::1]:8001", "http://localhost:8001"] {
            assert!(settings(url, token()).is_ok(), "{url}");
        }
        for url in ["http://192.0.2.1:8080", "http://api.example.org", "http://127.example.org"] {
            let refused = settings(url, token()).err().unwrap().to_string();
            assert!(refused.contains("write `https://`") && !refused.contains("secret"));
            assert!(settings(url, Credential::None).is_ok(), "{url} without a token");
        }
    }
}
