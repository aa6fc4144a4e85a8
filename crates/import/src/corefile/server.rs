//! Plugins that say something about the whole server: logs, health, identity, limits.

use super::Importer;
use super::key;
use super::parser::Line;
use super::setting::Scalar;
use crate::document::Effect::{Differs, Lost, Needless};
use crate::error::{ImportError, Problem};
use crate::tree::fail;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;
use zonda_wire::Name;

/// Octets that a reply over UDP may have.
const UDP_BYTES: (u64, u64) = (512, 4096);
/// Octets of replies over UDP that `bufsize` has by default.
const UDP_BYTES_DEFAULT: u64 = 1232;
/// Octets of a text about the server.
const TEXT_BYTES_MAX: usize = 128;
/// Longest time for which a server that stops goes on answering.
const LAMEDUCK_MAX: Duration = Duration::from_secs(3600);
/// Threads of a listener.
const WORKERS: (u64, u64) = (0, 1024);
/// The file of the machine's name.
const HOST_NAME_FILE: &str = "/etc/hostname";

impl Importer<'_> {
    /// Reads `errors`: errors are always logged.
    pub(super) fn errors(&mut self, line: &Line) -> Result<(), ImportError> {
        line.alone()?;
        for option in &line.block {
            match option.name() {
                "stacktrace" => self.leave(option, Needless, "errors say where they come from"),
                "consolidate" => {
                    self.leave(option, Differs, "each error is logged, at the least `log.level`");
                }
                _ => self.lose_option(option),
            }
        }
        Ok(())
    }

    /// Whether zones hold all names of the block that is being read.
    pub(super) fn covers_block(&mut self, zones: &[Name]) -> bool {
        let own = self.current().zones();
        own.iter().all(|own| zones.iter().any(|zone| key::is_in(own, zone)))
    }

    /// Reads `reload [INTERVAL [JITTER]]`.
    pub(super) fn reload(&mut self, line: &Line) -> Result<(), ImportError> {
        line.without_block()?;
        for argument in line.arguments() {
            let is_time = crate::value::read_duration(&argument.text).is_some();
            if !is_time && !argument.is("off") {
                return Err(argument.expected("a duration such as `30s`"));
            }
        }
        self.is_followed = !line.arguments().iter().any(|argument| argument.is("off"));
        let why = "`zonda serve --corefile` looks at the files every `watch-interval`, 2 seconds; \
            a zonda.toml is read anew by `zonda reload`";
        self.leave(line, Differs, why);
        Ok(())
    }

    /// Reads `debug`.
    pub(super) fn debug(&mut self, line: &Line) -> Result<(), ImportError> {
        line.alone()?;
        self.set(("log", "level"), Scalar::Text("debug".to_owned()), line);
        Ok(())
    }

    /// Reads `health [ADDRESS] { lameduck DURATION }`.
    pub(super) fn health(&mut self, line: &Line) -> Result<(), ImportError> {
        self.admin_page(line, "health", ":8080")?;
        for option in &line.block {
            match option.name() {
                "lameduck" => {
                    let time = option.duration()?;
                    let range = (Duration::ZERO, LAMEDUCK_MAX);
                    let time = self.time_within(option, time, range);
                    self.set(("admin", "lameduck"), Scalar::Time(time), option);
                }
                _ => self.lose_option(option),
            }
        }
        Ok(())
    }

    /// Reads `ready [ADDRESS] { monitor … }`.
    pub(super) fn ready(&mut self, line: &Line) -> Result<(), ImportError> {
        self.admin_page(line, "ready", ":8181")?;
        for option in &line.block {
            match option.name() {
                "monitor" => self.leave(option, Needless, "/ready always tells the present state"),
                _ => self.lose_option(option),
            }
        }
        Ok(())
    }

    /// Reads `prometheus [ADDRESS] { … }`.
    pub(super) fn prometheus(&mut self, line: &Line) -> Result<(), ImportError> {
        for option in &line.block {
            match option.name() {
                "runtime_metrics" => {
                    option.alone()?;
                    self.leave(option, Differs, "metrics of the Go runtime have no counterpart");
                }
                "tls" => {
                    let why = "the page is answered over HTTP: let a proxy before it speak TLS";
                    self.leave(option, Lost, why);
                }
                _ => self.lose_option(option),
            }
        }
        self.admin_page(line, "metrics", "localhost:9153")?;
        self.set(("metrics", "coredns-names"), Scalar::Flag(true), line);
        // The page is at this port in the place of Zonda's own.
        self.set(("admin", "address"), Scalar::Text("off".to_owned()), line);
        let why = "what Zonda does not count is missing: see docs/coming-from-coredns.md";
        self.leave(line, Differs, why);
        Ok(())
    }

    /// Adds the addresses at which a page is answered; without a host, that is all of the machine.
    fn admin_page(
        &mut self,
        line: &Line,
        page: &'static str,
        default: &str,
    ) -> Result<(), ImportError> {
        let text = line.optional()?.map_or(default, |it| it.text.as_str());
        let host_and_port = text.rsplit_once(':');
        let port = host_and_port.and_then(|(_, port)| port.parse().ok()).filter(|it| *it > 0);
        let (Some((host, _)), Some(port)) = (host_and_port, port) else {
            return Err(line.expected("an address such as `:8080`"));
        };
        let addresses = match host {
            "" => super::listeners::ALL.map(|ip| SocketAddr::new(ip, port)).to_vec(),
            "localhost" => vec![SocketAddr::from(([127, 0, 0, 1], port))],
            _ => text.parse().into_iter().collect(),
        };
        if addresses.is_empty() {
            self.leave(line, Lost, "the page is answered at addresses: write that of the name");
            return Ok(());
        }
        let addresses = addresses.iter().map(SocketAddr::to_string).collect();
        self.set(("admin", page), Scalar::List(addresses), line);
        Ok(())
    }

    /// Reads `bufsize [SIZE]`.
    pub(super) fn buffer_size(&mut self, line: &Line) -> Result<(), ImportError> {
        let size = match line.optional()? {
            Some(_) => line.parsed("a number of octets")?,
            None => UDP_BYTES_DEFAULT,
        };
        let size = self.within(line, size, UDP_BYTES);
        self.set(("edns", "buffer-size"), Scalar::Number(size), line);
        self.current().buffer_size = Some((size, line.place().clone()));
        Ok(())
    }

    /// Reads `chaos [VERSION] [AUTHORS…]`, as far as the block has the names.
    pub(super) fn chaos(&mut self, line: &Line) -> Result<(), ImportError> {
        line.without_block()?;
        let zones = self.current().zones();
        let has = |name: &str| {
            let name: Option<Name> = name.parse().ok();
            name.is_some_and(|name| zones.iter().any(|zone| key::is_in(&name, zone)))
        };
        if has("version.bind") || has("version.server") {
            let version = line.arguments().first().map_or("zonda", |it| it.text.as_str());
            self.set_text(("identity", "version"), version, line);
        }
        if has("hostname.bind") || has("id.server") {
            self.set_host_name(("identity", "server-id"), line)?;
        }
        if has("authors.bind") {
            match line.arguments() {
                [_, authors @ ..] if !authors.is_empty() => {
                    let authors = authors.iter().map(|author| author.text.clone()).collect();
                    self.set(("identity", "authors"), Scalar::List(authors), line);
                }
                _ => self.leave(line, Differs, "CoreDNS's authors are not told for authors.bind"),
            }
        }
        Ok(())
    }

    /// Reads `nsid [DATA]`.
    pub(super) fn nsid(&mut self, line: &Line) -> Result<(), ImportError> {
        line.without_block()?;
        match line.arguments() {
            [] => self.set_host_name(("edns", "nsid"), line),
            words => {
                let words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
                self.set_text(("edns", "nsid"), &words.join(" "), line);
                Ok(())
            }
        }
    }

    /// Sets a key to a text that goes into one string of a record.
    fn set_text(&mut self, key: (&'static str, &'static str), text: &str, line: &Line) {
        if (1..=TEXT_BYTES_MAX).contains(&text.len()) {
            self.set(key, Scalar::Text(text.to_owned()), line);
        } else {
            let why = format!("1 to {TEXT_BYTES_MAX} octets can be sent");
            self.leave(line, Lost, why);
        }
    }

    /// Sets a key to the name of this machine.
    fn set_host_name(
        &mut self,
        key: (&'static str, &'static str),
        line: &Line,
    ) -> Result<(), ImportError> {
        let path = Path::new(HOST_NAME_FILE);
        let octets = self.files.read(path).map_err(|error| {
            fail(line.place().clone(), Problem::Unreadable(path.to_owned(), error))
        })?;
        let text = String::from_utf8_lossy(&octets);
        let name: String = text.trim().chars().filter(|c| c.is_ascii_graphic()).collect();
        self.set_text(key, &name, line);
        let why = format!("the name of the machine, read from {HOST_NAME_FILE} now: {name}");
        self.leave(line, Differs, why);
        Ok(())
    }

    /// Reads `local`: names of the machine itself are answered, all other special names forwarded.
    pub(super) fn local(&mut self, line: &Line) -> Result<(), ImportError> {
        line.alone()?;
        let mut has_prefix = true;
        for option in &line.block {
            match option.name() {
                "localhost_prefix" => match option.argument("`on` or `off`")? {
                    word if word.text == "on" => has_prefix = true,
                    word if word.text == "off" => has_prefix = false,
                    word => return Err(word.expected("`on` or `off`")),
                },
                _ => self.lose_option(option),
            }
        }
        if has_prefix {
            let why = "`localhost.NAME` outside `localhost` is a name as any, unless a \
                [[template]] gives it 127.0.0.1";
            self.leave(line, Differs, why);
        }
        let why = "255.255.255.255.in-addr.arpa is answered, other names in 255.in-addr.arpa are \
            forwarded";
        self.leave(line, Differs, why);
        Ok(())
    }

    /// Reads `loadbalance [round_robin | weighted FILE …]`.
    pub(super) fn load_balance(&mut self, line: &Line) -> Result<(), ImportError> {
        match line.arguments().first().map(|it| it.text.as_str()) {
            None | Some("round_robin") => {
                self.set(("answers", "rotate"), Scalar::Flag(true), line);
                for option in &line.block {
                    self.lose_option(option);
                }
            }
            Some(_) => {
                let why = "addresses are not weighted here: a [[pool]] does that";
                self.leave(line, Lost, why);
            }
        }
        Ok(())
    }

    /// Reads `multisocket [NUMBER]`.
    pub(super) fn sockets(&mut self, line: &Line) -> Result<(), ImportError> {
        line.without_block()?;
        if line.optional()?.is_some() {
            let number = self.within(line, line.parsed("a number of sockets")?, WORKERS);
            self.set(("", "workers"), Scalar::Number(number), line);
        }
        Ok(())
    }

    /// Reads `timeouts { read … write … idle … }`.
    pub(super) fn timeouts(&mut self, line: &Line) -> Result<(), ImportError> {
        line.alone()?;
        let range =
            |least: u64, most: u64| (Duration::from_millis(least), Duration::from_secs(most));
        for option in &line.block {
            let (key, range) = match option.name() {
                "read" => ("message-timeout", range(100, 60)),
                "write" => ("write-timeout", range(100, 60)),
                "idle" => ("idle-timeout", range(1000, 3600)),
                _ => {
                    self.lose_option(option);
                    continue;
                }
            };
            let time = self.time_within(option, option.duration()?, range);
            self.set(("tcp", key), Scalar::Time(time), option);
        }
        Ok(())
    }

    /// Reads `root DIRECTORY`.
    pub(super) fn root(&mut self, line: &Line) -> Result<(), ImportError> {
        line.without_block()?;
        let directory = self.base.join(&line.argument("a directory")?.text);
        self.current().root = directory;
        Ok(())
    }

    /// Reads `bind ADDRESS… { except ADDRESS }`.
    pub(super) fn bind(&mut self, line: &Line) -> Result<(), ImportError> {
        if line.arguments().is_empty() {
            return Err(line.expected("an address"));
        }
        for argument in line.arguments() {
            match argument.text.parse::<IpAddr>() {
                Ok(address) => self.current().addresses.push(address),
                Err(_) => {
                    let why = "[[listen]] has addresses: write those of the interface";
                    self.leave(line, Lost, why);
                }
            }
        }
        for option in &line.block {
            match option.name() {
                "except" => self.leave(option, Lost, "write the addresses that remain"),
                _ => self.lose_option(option),
            }
        }
        Ok(())
    }
}
