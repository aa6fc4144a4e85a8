//! The command line: what there is to type, and which function does it.

use crate::corefile::{CorefileSource, LoadOutcome};
use crate::output::{self, Failure};
use crate::{bench, control, file, former, generate, import, query, serve};
use clap::{Args, Parser, Subcommand};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use zonda_config::{Flags, Origin};

/// A DNS server at the speed of the kernel.
#[derive(Parser)]
#[command(
    name = "zonda",
    version,
    arg_required_else_help = true,
    after_help = "\
Examples:
  zonda serve --zone example.com=./example.com.zone --listen 127.0.0.1:5300
  zonda serve --forward 192.0.2.1 --listen 127.0.0.1:5300
  zonda query @127.0.0.1 -p 5300 example.com SOA
  zonda file check example.com.zone

Each command has more under --help."
)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// What zonda does.
#[derive(Subcommand)]
enum Command {
    Serve(serve::Serve),
    Check(serve::Check),
    Import(import::Import),
    Reload(control::Reload),
    Ready(control::Ready),
    Status(control::Status),
    Stats(control::Stats),
    Zone(control::Zone),
    Transfer(control::Transfer),
    Pool(control::Pool),
    Explain(control::Explain),
    Upstream(control::Upstream),
    Cache(control::Cache),
    Stop(control::Stop),
    Query(query::Query),
    File(file::File),
    Bench(bench::Bench),
    Generate(generate::Generate),
}

/// Does what the process's command line says; `output` says what the exit codes mean.
pub fn run() -> ExitCode {
    let error = match Cli::try_parse() {
        Ok(cli) => return cli.run(),
        Err(error) => error,
    };
    let arguments = std::env::args_os().skip(1);
    let arguments: Vec<String> = arguments.map(|it| it.to_string_lossy().into_owned()).collect();
    // Help that was asked for is an error of the parser, too, and goes to standard output.
    match former::replacement(&arguments).filter(|_| error.use_stderr()) {
        Some(text) => output::end(Err(Failure::NotRun(text))),
        None => error.exit(),
    }
}

impl Cli {
    /// Does what the command says.
    fn run(self) -> ExitCode {
        match self.command {
            Command::Serve(command) => command.run(),
            Command::Check(command) => command.run(),
            Command::Import(command) => command.run(),
            Command::Reload(command) => command.run(),
            Command::Ready(command) => command.run(),
            Command::Status(command) => command.run(),
            Command::Stats(command) => command.run(),
            Command::Zone(command) => command.run(),
            Command::Transfer(command) => command.run(),
            Command::Pool(command) => command.run(),
            Command::Explain(command) => command.run(),
            Command::Upstream(command) => command.run(),
            Command::Cache(command) => command.run(),
            Command::Stop(command) => command.run(),
            Command::Query(command) => command.run(),
            Command::File(command) => command.run(),
            Command::Bench(command) => command.run(),
            Command::Generate(command) => command.run(),
        }
    }
}

/// Where the configuration comes from.
#[derive(Args, Clone)]
pub struct Configuration {
    /// The configuration file; docs/reference/config.md lists its keys. Without any of these
    /// options, ./zonda.toml or else /etc/zonda/zonda.toml is read
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Serve what this Corefile of CoreDNS says, in place of a configuration file: as if `zonda
    /// import` had made one of it. A line that would be lost is an error. With `reload` in it, the
    /// file and all that it imports are followed when they change
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    pub corefile: Option<PathBuf>,
    /// What is known of the Corefile from one reading to the next
    #[arg(skip)]
    pub served_corefile: Arc<CorefileSource>,
    /// Answer on this address instead of those in the file (repeatable)
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Vec<String>,
    /// Serve a zone from a master file, or from JSON if FILE ends in .json (repeatable)
    #[arg(long, value_name = "NAME=FILE")]
    pub zone: Vec<String>,
    /// Let the zones of --zone be changed by `zonda zone set` and over HTTP; their files are then
    /// rewritten
    #[arg(long, requires = "zone")]
    pub writable: bool,
    /// The directory in which changes of writable zones are kept until their files have them
    #[arg(long, value_name = "DIR")]
    pub state: Option<String>,
    /// Serve a zone from a database: postgres://…, redis://… or redb:FILE (repeatable); other users
    /// of the machine can see a password that is given so
    #[arg(long, value_name = "NAME=URL")]
    pub store: Vec<String>,
    /// Answer for a name with those of these members that are up (repeatable); the port is checked
    /// unless --check says otherwise
    #[arg(long, value_name = "NAME=ADDRESS[:PORT],…")]
    pub steer: Vec<String>,
    /// Check the members of --steer so: tcp, http:/PATH or https:/PATH
    #[arg(long, value_name = "KIND:PATH")]
    pub check: Option<String>,
    /// Ask this server for all names that no zone holds (repeatable); the port is 53 unless given.
    /// A path is that of a file with `nameserver ADDRESS` lines, such as /etc/resolv.conf, which is
    /// followed when it changes
    #[arg(long, value_name = "ADDRESS|FILE")]
    pub forward: Vec<String>,
    /// Serve the names of the Kubernetes cluster in which the server runs, in this zone, as CoreDNS
    /// does by default: names of pods without looking (pods = "insecure"), and names of addresses
    /// in private networks, of which --forward is asked for those that the cluster lacks. In a pod,
    /// the server listens on port 53 of all addresses unless told otherwise
    #[arg(long, value_name = "NAME")]
    pub kubernetes: Option<String>,
    /// Threads that answer UDP; 0 is one for each CPU that the process may use
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub workers: Option<String>,
    /// Print every value with its origin, and exit
    #[arg(long)]
    pub print_config: bool,
    /// Catches a file that is named without an option
    #[arg(hide = true, value_name = "FILE")]
    stray: Option<PathBuf>,
}

/// Where a configuration is looked for when nothing is said, in this order.
const DEFAULT_FILES: [&str; 2] = ["./zonda.toml", "/etc/zonda/zonda.toml"];

/// Why there is no configuration.
pub struct LoadError {
    /// All that is wrong, a line each.
    pub text: String,
    /// Whether the command line is wrong, or names a file that cannot be read.
    pub is_of_the_command_line: bool,
}

impl LoadError {
    /// The exit code of a command that checks configurations.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(if self.is_of_the_command_line { 2 } else { 1 })
    }
}

impl Configuration {
    /// Whether nothing was said at all.
    fn is_empty(&self) -> bool {
        self.config.is_none()
            && self.corefile.is_none()
            && self.listen.is_empty()
            && self.zone.is_empty()
            && self.store.is_empty()
            && self.steer.is_empty()
            && self.forward.is_empty()
            && self.kubernetes.is_none()
    }

    /// Takes the file of a usual place if nothing was said at all, neither here nor in the
    /// environment, and says so on standard error; whether there is anything to read now.
    ///
    /// # Errors
    /// When a file was named without an option.
    pub fn complete(&mut self) -> Result<bool, String> {
        if let Some(file) = &self.stray {
            let file = file.display();
            return Err(format!(
                "a configuration file is named by an option: --config {file}; a zone file is \
                 checked by `zonda file check {file}`"
            ));
        }
        if !self.is_empty() || is_in_environment() {
            return Ok(true);
        }
        let found = DEFAULT_FILES.map(Path::new).into_iter().find(|file| file.exists());
        if let Some(file) = found {
            let file = file.display();
            output::line(format_args!("zonda: reading {file}, as no --config was given"));
        }
        self.config = found.map(Path::to_owned);
        Ok(found.is_some())
    }

    /// Reads the configuration.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn load(&self) -> Result<LoadOutcome, LoadError> {
        let flags = Flags {
            listen: self.listen.clone(),
            zones: self.zone.clone(),
            stores: self.store.clone(),
            steer: self.steer.clone(),
            check: self.check.clone(),
            forward: (!self.forward.is_empty()).then(|| self.forward.join(",")),
            kubernetes: self.kubernetes.clone(),
            writable: self.writable,
            state: self.state.clone(),
            workers: self.workers.clone(),
            print_config: self.print_config,
            ..Flags::default()
        };
        if let Some(corefile) = &self.corefile {
            return self.served_corefile.load(corefile, &flags);
        }
        let loaded = zonda_config::Config::load(self.config.as_deref(), environment(), &flags);
        let loaded = loaded.map(|loaded| LoadOutcome { loaded, report: Vec::new() });
        loaded.map_err(|errors| LoadError {
            text: errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
            is_of_the_command_line: errors.iter().any(|it| matches!(it.origin, Origin::Flag(_))),
        })
    }
}

/// Whether the environment names what to serve.
fn is_in_environment() -> bool {
    let keys = ["ZONDA_ZONE", "ZONDA_STORE", "ZONDA_LISTEN", "ZONDA_FORWARD", "ZONDA_KUBERNETES"];
    keys.iter().any(|key| std::env::var_os(key).is_some())
}

/// The process's environment, as far as it is text.
pub fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
}
