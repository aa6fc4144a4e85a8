//! Credentials that a program prints (`client.authentication.k8s.io`, `ExecCredential`).
//!
//! The program runs without a terminal, for a bounded time, and what it prints is bounded. Its
//! credentials are kept by the process until they expire or the API refuses them, so that all that
//! follow objects of a cluster run it once.
//!
//! # Invariants
//! - A program runs once at a time for the same arguments, environment and cluster; one that hangs
//!   keeps no other waiting.

use crate::base64::to_base64;
use crate::decode::time;
use crate::error::{ConnectError, PluginError};
use serde::Deserialize;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::sync::Mutex;

/// How long a program may run.
const RUN_MAX: Duration = Duration::from_secs(60);
/// Octets that a program may print.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;
/// Characters of its errors that are told.
const ERROR_CHARS_MAX: usize = 300;
/// Programs whose credentials are kept; the oldest is forgotten.
const KEPT_MAX: usize = 16;
/// Credentials are taken for expired so long before they do, as a request takes its time.
const EXPIRY_MARGIN: Duration = Duration::from_secs(10);

/// A program that prints credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct Plugin {
    /// The program: a path, or a name that is looked for as the shell does.
    pub command: PathBuf,
    /// The arguments of the program.
    pub arguments: Vec<String>,
    /// What its environment has in addition.
    pub environment: Vec<(String, String)>,
    /// The version of the interface that it speaks.
    pub api_version: String,
    /// How to install it; empty if the kubeconfig does not say.
    pub install_hint: String,
    /// What it is told of the cluster, if it is told.
    pub cluster: Option<ClusterInfo>,
}

/// What a program is told of the cluster.
#[derive(Clone, PartialEq, Eq)]
pub struct ClusterInfo {
    /// The URL of the API server.
    pub server: String,
    /// The name that the server's certificate must have, if it is not the host's.
    pub tls_server_name: Option<String>,
    /// Whether any certificate is accepted.
    pub is_unchecked: bool,
    /// Certificates in PEM form that are trusted.
    pub ca: Option<Vec<u8>>,
}

/// What a program has printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct PluginCredential {
    /// A bearer token; empty if there is none.
    pub token: String,
    /// The certificate of the client and its key in PEM form.
    pub client: Option<(Vec<u8>, Vec<u8>)>,
    /// When it expires; `None` if the program does not say.
    expires: Option<SystemTime>,
}

/// The credential of a program, if it has run; locked while the program runs.
type Slot = Arc<Mutex<Option<PluginCredential>>>;

/// Programs that have run or run now, and their credentials, oldest first.
static KEPT: std::sync::Mutex<Vec<(Plugin, Slot)>> = std::sync::Mutex::new(Vec::new());

#[derive(Deserialize)]
struct Printed {
    kind: String,
    #[serde(rename = "apiVersion")]
    api_version: String,
    #[serde(default)]
    status: PrintedStatus,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PrintedStatus {
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
    expiration_timestamp: Option<String>,
}

impl Plugin {
    /// Returns credentials that have not expired; runs the program if there are none.
    ///
    /// # Errors
    /// When the program fails.
    pub async fn credential(&self) -> Result<PluginCredential, ConnectError> {
        let slot = self.slot();
        let mut kept = slot.lock().await;
        let is_valid = |credential: &PluginCredential| {
            credential.expires.is_none_or(|expires| SystemTime::now() + EXPIRY_MARGIN < expires)
        };
        if let Some(credential) = kept.as_ref().filter(|credential| is_valid(credential)) {
            return Ok(credential.clone());
        }
        *kept = None;
        let failed = |error| ConnectError::Plugin(self.command.clone(), error);
        let credential = self.run().await.map_err(failed)?;
        Ok(kept.insert(credential).clone())
    }

    /// Returns the place of the program's credential.
    fn slot(&self) -> Slot {
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, slot)) = kept.iter().find(|(plugin, _)| plugin == self) {
            return Arc::clone(slot);
        }
        if kept.len() >= KEPT_MAX {
            kept.remove(0);
        }
        let slot = Slot::default();
        kept.push((self.clone(), Arc::clone(&slot)));
        slot
    }

    /// Forgets a credential that the API has refused; one that has replaced it is kept.
    pub async fn forget(&self, refused: &PluginCredential) {
        let slot = self.slot();
        slot.lock().await.take_if(|own| *own == *refused);
    }

    /// Runs the program.
    async fn run(&self) -> Result<PluginCredential, PluginError> {
        let mut child = Command::new(&self.command)
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .env("KUBERNETES_EXEC_INFO", self.info())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| PluginError::Start(error, self.install_hint.clone()))?;
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        let both = async { tokio::join!(read(output), read(errors), child.wait()) };
        let ended = tokio::time::timeout(RUN_MAX, both).await;
        let (output, errors, status) = ended.map_err(|_| PluginError::Timeout(RUN_MAX))?;
        let status = status.map_err(PluginError::Wait)?;
        if output.len() as u64 > OUTPUT_BYTES_MAX {
            return Err(PluginError::TooLong(OUTPUT_BYTES_MAX));
        }
        if !status.success() {
            let text = String::from_utf8_lossy(&errors);
            let text = text.trim().chars().take(ERROR_CHARS_MAX).collect();
            return Err(PluginError::Exit(status, text));
        }
        self.decode(&output)
    }

    /// Decodes what the program printed.
    fn decode(&self, output: &[u8]) -> Result<PluginCredential, PluginError> {
        let printed: Printed = serde_json::from_slice(output).map_err(PluginError::Output)?;
        if printed.kind != "ExecCredential" || printed.api_version != self.api_version {
            return Err(PluginError::Version(printed.api_version, self.api_version.clone()));
        }
        let status = printed.status;
        let expires = status.expiration_timestamp.as_deref();
        let expires = expires.map(|text| time(text).ok_or(PluginError::Expiration));
        let (token, expires) = (status.token.unwrap_or_default(), expires.transpose()?);
        let client = match (status.client_certificate_data, status.client_key_data) {
            (Some(certificate), Some(key)) => Some((certificate.into_bytes(), key.into_bytes())),
            (None, None) if !token.is_empty() => None,
            _ => return Err(PluginError::NoCredential),
        };
        Ok(PluginCredential { token, client, expires })
    }

    /// What the program is told in `KUBERNETES_EXEC_INFO`.
    fn info(&self) -> String {
        let mut spec = serde_json::json!({"interactive": false});
        if let Some(cluster) = &self.cluster {
            let mut told = serde_json::json!({"server": cluster.server});
            if let Some(name) = &cluster.tls_server_name {
                told["tls-server-name"] = name.as_str().into();
            }
            if cluster.is_unchecked {
                told["insecure-skip-tls-verify"] = true.into();
            }
            if let Some(ca) = &cluster.ca {
                told["certificate-authority-data"] = to_base64(ca).into();
            }
            spec["cluster"] = told;
        }
        let (kind, version) = ("ExecCredential", &*self.api_version);
        serde_json::json!({"kind": kind, "apiVersion": version, "spec": spec}).to_string()
    }
}

/// Reads what a program prints: an octet more than it may, at most. The rest ends the program.
async fn read(from: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut octets = Vec::new();
    if let Some(from) = from {
        // What came before an error is all there is.
        let _ = from.take(OUTPUT_BYTES_MAX + 1).read_to_end(&mut octets).await;
    }
    octets
}
