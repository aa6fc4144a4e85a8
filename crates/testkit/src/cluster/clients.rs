//! Helm and kubectl, which install what a test is about, and external-dns.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::cluster::{ApiServer, built, peers_folder, required_version};

/// Module of Helm and kubectl, with their versions.
const CLIENTS_MODULE: &str = include_str!("../../../../tests/cluster/clients/go.mod");

/// Runs `helm` and `kubectl` with the rights of an API server's administrator.
pub struct ClusterClients {
    programs: PathBuf,
    kubeconfig: PathBuf,
    directory: PathBuf,
}

impl ClusterClients {
    /// Makes clients of an API server, which run in this directory and keep their caches there.
    ///
    /// # Panics
    /// When a program is not built.
    pub fn new(api: &ApiServer, directory: &Path) -> Self {
        let programs = programs_folder();
        let kubeconfig = api.kubeconfig_file().to_owned();
        Self { programs, kubeconfig, directory: directory.to_owned() }
    }

    /// Runs a script in a shell that finds both programs.
    ///
    /// # Panics
    /// When there is no shell.
    pub fn run(&self, script: &str) -> Output {
        let path = env::var("PATH").unwrap_or_default();
        let mut shell = Command::new("sh");
        shell.args(["-euc", script]).current_dir(&self.directory);
        shell.env("PATH", format!("{}:{path}", self.programs.display()));
        shell.env("KUBECONFIG", &self.kubeconfig).env("HOME", &self.directory);
        for variable in ["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
            shell.env_remove(variable);
        }
        shell.output().expect("every machine has sh")
    }

    /// Runs a script that has to succeed, and returns what it prints.
    ///
    /// # Panics
    /// When it fails; the message has what it says.
    pub fn output(&self, script: &str) -> String {
        let output = self.run(script);
        let [printed, said] =
            [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
        assert!(output.status.success(), "{script}\n{}\n{printed}{said}", output.status);
        printed.into_owned()
    }
}

/// Returns the folder of both programs.
fn programs_folder() -> PathBuf {
    let helm = required_version(CLIENTS_MODULE, "helm.sh/helm/v3");
    let kubectl = required_version(CLIENTS_MODULE, "k8s.io/kubectl");
    let name = format!("clients-helm-{helm}-kubectl-{kubectl}");
    for program in ["helm", "kubectl"] {
        built(&format!("{name}/{program}"));
    }
    peers_folder().join(name)
}

/// Module of external-dns, with its version.
const EXTERNAL_DNS_MODULE: &str = include_str!("../../../../tests/cluster/external-dns/go.mod");

/// Returns the path of a program that brings names to a DNS server once, as external-dns does.
///
/// # Panics
/// When it is not built.
pub fn external_dns() -> PathBuf {
    let version = required_version(EXTERNAL_DNS_MODULE, "sigs.k8s.io/external-dns");
    built(&format!("external-dns-{version}/external-dns"))
}
