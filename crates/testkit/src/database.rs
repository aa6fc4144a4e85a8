//! Real databases, which can go away and come back with what they had.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

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

/// Redis, which announces what happens to keys.
pub struct Redis {
    database: RestartableServer,
    program: PathBuf,
}

impl Redis {
    /// Starts an empty one; nothing if tests may do without.
    ///
    /// # Panics
    /// When it is not installed or does not come up.
    pub fn start() -> Option<Self> {
        let program = required("redis-server")?;
        let command = |folder: &Folder, port| Self::command(&program, folder, port);
        let database =
            RestartableServer::start("redis", Folder::new("redis"), command, Self::is_up);
        Some(Self { database, program })
    }

    /// Returns how it is run: it has written to its file before it says so.
    fn command(program: &Path, folder: &Folder, port: u16) -> Command {
        let mut command = Command::new(program);
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.arg("--dir").arg(folder.path()).args(["--requirepass", PASSWORD]);
        command.args(["--appendonly", "yes", "--appendfsync", "always"]);
        command.args(["--notify-keyspace-events", "Kghx"]);
        command
    }

    /// Whether the database answers on this port.
    fn is_up(port: u16) -> bool {
        cli(port, &["PING"]).is_ok_and(|said| said == "PONG")
    }

    /// Returns the URL of the database, with its password.
    pub fn url(&self) -> String {
        format!("redis://:{}@127.0.0.1:{}", PASSWORD.replace('/', "%2F"), self.database.port)
    }

    /// Returns what a command of its own client says.
    ///
    /// # Panics
    /// When it fails.
    pub fn cli(&self, command: &[&str]) -> String {
        cli(self.database.port, command).unwrap_or_else(|error| panic!("{command:?}: {error}"))
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
        let command = |folder: &Folder, port| Self::command(&self.program, folder, port);
        let is_up = self.database.restart(command, Self::is_up);
        assert!(is_up, "redis does not come back:\n{}", self.database.log());
    }
}

/// Returns what a command of Redis's client says.
fn cli(port: u16, command: &[&str]) -> Result<String, String> {
    let mut cli = Command::new("redis-cli");
    cli.args(["-e", "--no-auth-warning", "-h", "127.0.0.1", "-p", &port.to_string()]);
    output(cli.args(["-a", PASSWORD]).args(command))
}

/// PostgreSQL with an empty database, run by a user without rights.
pub struct Postgres {
    database: RestartableServer,
    programs: PathBuf,
}

impl Postgres {
    /// Starts a database; nothing if its programs are missing and tests may do without them.
    ///
    /// # Panics
    /// When it is not installed or does not come up.
    pub fn start() -> Option<Self> {
        required("psql")?;
        let programs = newest_programs().expect("`make packages` installs PostgreSQL's server");
        let folder = Folder::new("postgres");
        let password = folder.write("password", PASSWORD);
        if is_root() {
            let path = folder.path().display().to_string();
            output(Command::new("chown").args(["-R", POSTGRES_USER, &path])).expect("root may");
        }
        let mut initdb = unprivileged(&programs.join("initdb"));
        initdb.arg("-D").arg(folder.path().join("data")).arg("--pwfile").arg(password);
        initdb.args(["-U", "zonda", "-A", "scram-sha-256", "-E", "UTF8", "--locale=C"]);
        output(initdb.arg("--no-sync")).expect("initdb needs an empty folder of its own");
        let command = |folder: &Folder, port| Self::command(&programs, folder, port);
        let database = RestartableServer::start("postgres", folder, command, Self::is_up);
        Some(Self { database, programs })
    }

    /// Returns the command that runs the database.
    fn command(programs: &Path, folder: &Folder, port: u16) -> Command {
        let mut command = unprivileged(&programs.join("postgres"));
        command.arg("-D").arg(folder.path().join("data")).args(["-p", &port.to_string()]);
        command.args(["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]);
        command.args(["-c", "fsync=off"]);
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
        let command = |folder: &Folder, port| Self::command(&self.programs, folder, port);
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
