//! The API server of Kubernetes and the etcd below it, as processes.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cluster::api_client::ApiClient;
use crate::cluster::built;
use crate::cluster::certificates::Certificates;
use crate::cluster::etcd::{Etcd, EtcdBuild};
use crate::process::Folder;
use crate::restartable::RestartableServer;

/// Token of the administrator.
const TOKEN: &str = "administrator-of-the-test";
/// Ranges from which the server chooses the addresses of services.
const SERVICE_RANGES: &str = "10.96.0.0/12,fd00:10:96::/112";
/// Address that the server would announce, if something announced it.
const ADVERTISE_ADDRESS: &str = "192.0.2.1";

/// What differs between API servers.
#[derive(Clone, Copy, Debug)]
pub struct ApiOptions {
    /// Whether watches come out of the server's memory. Without it they come from etcd, so that
    /// compaction ends them at once, and lists cannot be streamed.
    pub watch_cache: bool,
    /// Whether lists can be streamed as watches (`sendInitialEvents`).
    pub streaming_lists: bool,
    /// Where the etcd below the server is from.
    pub etcd: EtcdBuild,
}

impl Default for ApiOptions {
    fn default() -> Self {
        Self { watch_cache: true, streaming_lists: true, etcd: EtcdBuild::Released }
    }
}

/// A running API server over TLS on 127.0.0.1.
pub struct ApiServer {
    server: RestartableServer,
    etcd: Etcd,
    options: ApiOptions,
    program: PathBuf,
    certificates: Certificates,
    kubeconfig: PathBuf,
    client: ApiClient,
}

impl ApiServer {
    /// Starts an empty cluster and waits until it is ready.
    ///
    /// # Panics
    /// When a program is missing or does not come up; the message has its log.
    pub fn start() -> Self {
        Self::start_with(ApiOptions::default())
    }

    /// Starts an empty cluster with these options and waits until it is ready.
    ///
    /// # Panics
    /// When a program is missing or does not come up; the message has its log.
    pub fn start_with(options: ApiOptions) -> Self {
        let program = built("kube-apiserver");
        let etcd = Etcd::start(options.etcd);
        let folder = Folder::new("kube-apiserver");
        let certificates = Certificates::make(&folder);
        folder.write("tokens", format!("{TOKEN},admin,admin,\"system:masters\"\n"));
        let command = |folder: &Folder, port| {
            command(&program, folder, port, &etcd.url(), &certificates, options)
        };
        let is_up = |port| is_ready(&client(port, &certificates));
        let server = RestartableServer::start("kube-apiserver", folder, command, is_up);
        let client = client(server.port, &certificates);
        let kubeconfig = kubeconfig(&server.folder, server.port, &certificates.authority);
        Self { server, etcd, options, program, certificates, kubeconfig, client }
    }

    /// Returns the server's URL.
    pub fn url(&self) -> String {
        url(self.server.port)
    }

    /// Returns the server's address.
    pub fn address(&self) -> SocketAddr {
        address(self.server.port)
    }

    /// Returns the administrator's token.
    pub fn token(&self) -> &'static str {
        TOKEN
    }

    /// Returns the file with the certificate that the server's is signed with.
    pub fn ca_file(&self) -> &Path {
        &self.certificates.authority
    }

    /// Returns a configuration of clients with the rights of the administrator.
    pub fn kubeconfig_file(&self) -> &Path {
        &self.kubeconfig
    }

    /// Returns a configuration of clients that reach the server on another port, such as a
    /// [`Link`](crate::cluster::Link)'s.
    pub fn kubeconfig_of_port(&self, port: u16) -> PathBuf {
        kubeconfig(&self.server.folder, port, &self.certificates.authority)
    }

    /// Returns a client with the rights of the administrator.
    pub fn client(&self) -> &ApiClient {
        &self.client
    }

    /// Returns the server's log.
    pub fn log(&self) -> String {
        self.server.log()
    }

    /// Ends the API server by a signal; etcd stays. Watches end within a few seconds.
    pub fn stop_api(&mut self) {
        self.server.stop("TERM");
        self.client.disconnect();
    }

    /// Kills the API server, as a lost machine would be; etcd stays.
    pub fn kill_api(&mut self) {
        self.server.stop("KILL");
        self.client.disconnect();
    }

    /// Starts the API server again on its port.
    ///
    /// # Panics
    /// When it does not come up.
    pub fn start_api(&mut self) {
        let etcd = self.etcd.url();
        let command = |folder: &Folder, port| {
            command(&self.program, folder, port, &etcd, &self.certificates, self.options)
        };
        let is_up =
            self.server.restart(command, |port| is_ready(&client(port, &self.certificates)));
        assert!(is_up, "kube-apiserver does not come back:\n{}", self.server.log());
    }

    /// Freezes the API server with its connections open, as a network that is cut does.
    pub fn freeze_api(&self) {
        self.server.signal("STOP");
    }

    /// Ends what [`freeze_api`](Self::freeze_api) began.
    pub fn thaw_api(&self) {
        self.server.signal("CONT");
    }

    /// Ends the API server and etcd and starts both again, with all objects, on their ports.
    ///
    /// # Panics
    /// When one does not come back.
    pub fn restart(&mut self) {
        self.stop_api();
        self.etcd.restart();
        self.start_api();
    }

    /// Makes etcd forget all but the present version of each object. Lists of an exact older
    /// version expire (410). So do watches, if the server keeps no cache for them.
    ///
    /// # Panics
    /// When etcd is away.
    pub fn compact(&self) {
        self.etcd.compact();
    }

    /// Makes every older version expire (410), for lists and for watches: compacts etcd, and starts
    /// the API server again, whose memory of events begins anew.
    ///
    /// # Panics
    /// When it does not come back.
    pub fn expire_versions(&mut self) {
        self.stop_api();
        self.compact();
        self.start_api();
    }
}

/// Returns the address of a port.
fn address(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// Returns the URL of a port.
fn url(port: u16) -> String {
    format!("https://{}", address(port))
}

/// Returns a client of the server on a port.
fn client(port: u16, certificates: &Certificates) -> ApiClient {
    ApiClient::new(address(port), TOKEN, certificates.client.clone())
}

/// Whether the server says that it is ready.
fn is_ready(client: &ApiClient) -> bool {
    client.send("GET", "/readyz", None).is_ok_and(|reply| reply.status == 200)
}

/// Returns how the server is run.
fn command(
    program: &Path,
    folder: &Folder,
    port: u16,
    etcd: &str,
    certificates: &Certificates,
    options: ApiOptions,
) -> Command {
    let file = |path: &Path| path.display().to_string();
    let streaming = options.streaming_lists && options.watch_cache;
    let flags = [
        ("etcd-servers", etcd.to_owned()),
        ("etcd-compaction-interval", "0".to_owned()),
        ("bind-address", "127.0.0.1".to_owned()),
        ("secure-port", port.to_string()),
        ("advertise-address", ADVERTISE_ADDRESS.to_owned()),
        ("endpoint-reconciler-type", "none".to_owned()),
        ("tls-cert-file", file(&certificates.server)),
        ("tls-private-key-file", file(&certificates.server_key)),
        ("token-auth-file", file(&folder.path().join("tokens"))),
        ("authorization-mode", "RBAC".to_owned()),
        ("service-account-issuer", "https://kubernetes.default.svc".to_owned()),
        ("service-account-key-file", file(&certificates.account_public_key)),
        ("service-account-signing-key-file", file(&certificates.account_key)),
        ("service-cluster-ip-range", SERVICE_RANGES.to_owned()),
        // Its controller, which would give each namespace an account, is not there.
        ("disable-admission-plugins", "ServiceAccount".to_owned()),
        ("watch-cache", options.watch_cache.to_string()),
        ("feature-gates", format!("WatchList={streaming}")),
    ];
    let mut command = Command::new(program);
    command.args(flags.map(|(name, value)| format!("--{name}={value}")));
    command
}

/// Writes a configuration of clients.
fn kubeconfig(folder: &Folder, port: u16, authority: &Path) -> PathBuf {
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: test\nclusters:\n- name: test\n  \
         cluster:\n    server: {}\n    certificate-authority: {}\nusers:\n- name: admin\n  \
         user:\n    token: {TOKEN}\ncontexts:\n- name: test\n  context:\n    cluster: test\n    \
         user: admin\n",
        url(port),
        authority.display()
    );
    folder.write(&format!("kubeconfig-{port}"), text)
}
