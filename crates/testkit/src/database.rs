//! Real databases, which can go away and come back with what they had.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::authority::Authority;
use crate::process::{Folder, required};
use crate::restartable::RestartableServer;

/// Password that the databases require.
const PASSWORD: &str = "s3cret/";
/// Where Debian keeps the programs of each version of PostgreSQL.
const POSTGRES_VERSIONS: &str = "/usr/lib/postgresql";
/// User that runs PostgreSQL, which refuses to be run by root.
const POSTGRES_USER: &str = "postgres";

/// Returns what a command prints.
fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| error.to_string())?;
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).trim_end().to_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(text(&output.stderr)),
    }
}

/// Files of the certificates of a database and of authorities.
#[derive(Clone)]
pub struct Certificates {
    /// Certificate of the authority, which the clients trust.
    pub authority: PathBuf,
    /// Certificate of another authority, which has signed nothing.
    pub other_authority: PathBuf,
    server: PathBuf,
    key: PathBuf,
}

impl Certificates {
    /// Makes an authority in a folder, and a certificate for names and addresses.
    fn make(folder: &Folder, names: &[&str]) -> Self {
        let authority = Authority::new("authority of databases");
        let other = Authority::new("another authority");
        let (server, key) = authority.sign(names);
        let key = folder.write("server.key", key.serialize_pem());
        let private = fs::Permissions::from_mode(0o600); // PostgreSQL asks for it
        fs::set_permissions(&key, private).expect("the file is ours");
        Self {
            authority: folder.write("ca.pem", authority.certificate.pem()),
            other_authority: folder.write("other-ca.pem", other.certificate.pem()),
            server: folder.write("server.pem", server.pem()),
            key,
        }
    }
}

/// Redis, which announces what happens to keys.
pub struct Redis {
    database: RestartableServer,
    program: PathBuf,
    certificates: Option<Certificates>,
}

impl Redis {
    /// Starts an empty one; nothing if tests may do without.
    ///
    /// # Panics
    /// When it is not installed or does not come up.
    pub fn start() -> Option<Self> {
        Self::start_in(Folder::new("redis"), None)
    }

    /// Starts an empty one, whose connections are all encrypted and which has a certificate for
    /// these names and addresses; nothing if tests may do without.
    ///
    /// # Panics
    /// When it is not installed or does not come up.
    pub fn start_with_tls(names: &[&str]) -> Option<Self> {
        let folder = Folder::new("redis");
        let certificates = Certificates::make(&folder, names);
        Self::start_in(folder, Some(certificates))
    }

    /// Starts an empty one with its files in a folder.
    fn start_in(folder: Folder, certificates: Option<Certificates>) -> Option<Self> {
        let program = required("redis-server")?;
        let tls = certificates.as_ref();
        let command = |folder: &Folder, port| Self::command(&program, folder, port, tls);
        let is_up = |port| cli(port, tls, &["PING"]).is_ok_and(|said| said == "PONG");
        let database = RestartableServer::start("redis", folder, command, is_up);
        Some(Self { database, program, certificates })
    }

    /// Returns how it is run: it has written to its file before it says so.
    fn command(
        program: &Path,
        folder: &Folder,
        port: u16,
        certificates: Option<&Certificates>,
    ) -> Command {
        let mut command = Command::new(program);
        let port = port.to_string();
        match certificates {
            None => command.args(["--port", &port]),
            Some(files) => {
                command.args(["--port", "0", "--tls-port", &port, "--tls-auth-clients", "no"]);
                command.arg("--tls-cert-file").arg(&files.server);
                command.arg("--tls-key-file").arg(&files.key);
                command.arg("--tls-ca-cert-file").arg(&files.authority)
            }
        };
        command.args(["--bind", "127.0.0.1", "--save", ""]);
        command.arg("--dir").arg(folder.path()).args(["--requirepass", PASSWORD]);
        command.args(["--appendonly", "yes", "--appendfsync", "always"]);
        command.args(["--notify-keyspace-events", "Kghx"]);
        command
    }

    /// Returns the URL of the database, with its password; with TLS, without the file of the
    /// authority.
    pub fn url(&self) -> String {
        let scheme = if self.certificates.is_some() { "rediss" } else { "redis" };
        format!("{scheme}://:{}@127.0.0.1:{}", PASSWORD.replace('/', "%2F"), self.database.port)
    }

    /// Returns the certificates of a database with TLS.
    ///
    /// # Panics
    /// When it has none.
    pub fn certificates(&self) -> &Certificates {
        self.certificates.as_ref().expect("the database was started with TLS")
    }

    /// Returns what a command of its own client says.
    ///
    /// # Panics
    /// When it fails.
    pub fn cli(&self, command: &[&str]) -> String {
        let tls = self.certificates.as_ref();
        cli(self.database.port, tls, command).unwrap_or_else(|error| panic!("{command:?}: {error}"))
    }

    /// Ends the server.
    pub fn stop(&mut self) {
        self.database.stop("TERM");
    }

    /// Freezes the database, with its connections open.
    pub fn freeze(&self) {
        self.database.signal("STOP");
    }

    /// Starts the database again with its data.
    ///
    /// # Panics
    /// When it does not come up.
    pub fn restart(&mut self) {
        let tls = self.certificates.as_ref();
        let command = |folder: &Folder, port| Self::command(&self.program, folder, port, tls);
        let is_up = |port| cli(port, tls, &["PING"]).is_ok_and(|said| said == "PONG");
        let is_up = self.database.restart(command, is_up);
        assert!(is_up, "redis does not come back:\n{}", self.database.log());
    }
}

/// Returns what a command of Redis's client says.
fn cli(port: u16, certificates: Option<&Certificates>, command: &[&str]) -> Result<String, String> {
    let mut cli = Command::new("redis-cli");
    if let Some(files) = certificates {
        cli.arg("--tls").arg("--cacert").arg(&files.authority);
    }
    cli.args(["-e", "--no-auth-warning", "-h", "127.0.0.1", "-p", &port.to_string()]);
    output(cli.args(["-a", PASSWORD]).args(command))
}

/// PostgreSQL with an empty database, run by a user without rights.
pub struct Postgres {
    database: RestartableServer,
    programs: PathBuf,
    certificates: Option<Certificates>,
}

impl Postgres {
    /// Starts a database; nothing if its programs are missing and tests may do without them.
    ///
    /// # Panics
    /// When it is not installed or does not come up.
    pub fn start() -> Option<Self> {
        Self::start_in(Folder::new("postgres"), None)
    }

    /// Starts a database that offers TLS and has a certificate for these names and addresses;
    /// nothing if its programs are missing and tests may do without them.
    ///
    /// # Panics
    /// When it is not installed or does not come up.
    pub fn start_with_tls(names: &[&str]) -> Option<Self> {
        let folder = Folder::new("postgres");
        let certificates = Certificates::make(&folder, names);
        Self::start_in(folder, Some(certificates))
    }

    /// Starts a database with its files in a folder.
    fn start_in(folder: Folder, certificates: Option<Certificates>) -> Option<Self> {
        required("psql")?;
        let programs = newest_programs().expect("`make packages` installs PostgreSQL's server");
        let password = folder.write("password", PASSWORD);
        if is_root() {
            let path = folder.path().display().to_string();
            output(Command::new("chown").args(["-R", POSTGRES_USER, &path])).expect("root may");
        }
        let mut initdb = unprivileged(&programs.join("initdb"));
        initdb.arg("-D").arg(folder.path().join("data")).arg("--pwfile").arg(password);
        initdb.args(["-U", "zonda", "-A", "scram-sha-256", "-E", "UTF8", "--locale=C"]);
        output(initdb.arg("--no-sync")).expect("initdb needs an empty folder of its own");
        let tls = certificates.as_ref();
        let command = |folder: &Folder, port| Self::command(&programs, folder, port, tls);
        let database = RestartableServer::start("postgres", folder, command, Self::is_up);
        Some(Self { database, programs, certificates })
    }

    /// Returns the command that runs the database.
    fn command(
        programs: &Path,
        folder: &Folder,
        port: u16,
        certificates: Option<&Certificates>,
    ) -> Command {
        let mut command = unprivileged(&programs.join("postgres"));
        command.arg("-D").arg(folder.path().join("data")).args(["-p", &port.to_string()]);
        command.args(["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]);
        command.args(["-c", "fsync=off"]);
        if let Some(files) = certificates {
            command.args(["-c", "ssl=on"]);
            command.args(["-c", &format!("ssl_cert_file={}", files.server.display())]);
            command.args(["-c", &format!("ssl_key_file={}", files.key.display())]);
        }
        command
    }

    /// Whether the database answers on this port.
    fn is_up(port: u16) -> bool {
        psql(port, "SELECT 1").is_ok()
    }

    /// Returns where it is, and how one gets in.
    pub fn parameters(&self) -> String {
        let port = self.database.port;
        format!("host=127.0.0.1 port={port} user=zonda password={PASSWORD} dbname=postgres")
    }

    /// Returns the same as a URL.
    pub fn url(&self) -> String {
        let (port, password) = (self.database.port, PASSWORD.replace('/', "%2F"));
        format!("postgres://zonda:{password}@127.0.0.1:{port}/postgres")
    }

    /// Returns the certificates of a database with TLS.
    ///
    /// # Panics
    /// When it has none.
    pub fn certificates(&self) -> &Certificates {
        self.certificates.as_ref().expect("the database was started with TLS")
    }

    /// Returns what its own client says to a statement.
    ///
    /// # Panics
    /// When it fails.
    pub fn psql(&self, statement: &str) -> String {
        psql(self.database.port, statement).unwrap_or_else(|error| panic!("{statement}: {error}"))
    }

    /// Ends the database and its connections.
    pub fn stop(&mut self) {
        self.database.stop("INT");
    }

    /// Starts the database again with its data.
    ///
    /// # Panics
    /// When it does not come up.
    pub fn restart(&mut self) {
        let tls = self.certificates.as_ref();
        let command = |folder: &Folder, port| Self::command(&self.programs, folder, port, tls);
        let is_up = self.database.restart(command, Self::is_up);
        assert!(is_up, "postgres does not come back:\n{}", self.database.log());
    }
}

impl Drop for Postgres {
    /// Ends the server by a signal; the one by which other programs end means to wait for all
    /// connections.
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns what PostgreSQL's client says to a statement.
fn psql(port: u16, statement: &str) -> Result<String, String> {
    let mut psql = Command::new("psql");
    psql.args(["-h", "127.0.0.1", "-p", &port.to_string(), "-U", "zonda", "-d", "postgres"]);
    psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", statement]);
    output(psql.env("PGPASSWORD", PASSWORD).env("PGCONNECT_TIMEOUT", "2"))
}

/// Returns the folder with the programs of the newest version.
fn newest_programs() -> Option<PathBuf> {
    let versions = fs::read_dir(POSTGRES_VERSIONS).ok()?.flatten();
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.map(|entry| entry.path()).max_by_key(number)?.join("bin");
    newest.join("postgres").is_file().then_some(newest)
}

/// Whether root runs the tests.
fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// Returns a command that root runs as another user.
fn unprivileged(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", POSTGRES_USER, "--regid", POSTGRES_USER, "--clear-groups", "--"]);
    command.arg(program);
    command
}
