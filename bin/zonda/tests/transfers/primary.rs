//! A server whose zones are transferred, and what clients of it print.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use zonda_testkit::process::{Folder, Process, bounded, free_port, required, start_on_free_port};

/// The key that secondaries have, and its secret.
pub const KEY: (&str, &str) = ("transfer.example", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=");

/// A zone with delegations, occluded names, glue, a wildcard, a DNAME and names in upper case.
pub const PLAIN: &str = "$TTL 60\n@ SOA ns host 7 7200 3600 1209600 60\n@ NS ns\n@ NS NS.Sub\n\
    @ MX 10 Mail.Example.Test.\nns A 192.0.2.1\nwww A 192.0.2.2\nwww A 192.0.2.3\n\
    www 300 TXT \"Text\" \"two\"\n*.wild TXT w\nsub NS ns.sub\nsub DS 1 13 2 \
    00112233445566778899AABBCCDDEEFF00112233445566778899AABBCCDDEEFF\nns.sub A 192.0.2.9\n\
    below.sub TXT occluded\ndname DNAME elsewhere.test.\ndeep.ent.ent2 A 192.0.2.4\n\
    svc SVCB 1 . alpn=h2\n\
    _s._tcp SRV 1 2 3 Www.Example.test.\n";

/// Records of that zone.
pub const RECORDS: usize = 17;

/// A running server with `[[key]]` and transfers.
pub struct Primary {
    /// Ends with the test; none while the server is started again.
    process: Option<Process>,
    /// The names of the zones, with a dot behind them.
    names: Vec<String>,
    pub address: SocketAddr,
    pub admin: SocketAddr,
    pub folder: Folder,
}

impl Primary {
    /// Starts a server with zones, given as name, text and the clients in `to`, and more of a
    /// configuration.
    pub fn start(zones: &[(&str, &str, &str)], more: &str) -> Self {
        let (folder, admin) = (Folder::new("primary"), free_port());
        let admin = SocketAddr::from(([127, 0, 0, 1], admin));
        folder.write("transfer.key", format!("{}\n", KEY.1));
        let mut text = format!(
            "version = 1\n{more}\n[admin]\naddress = \"{admin}\"\nsocket = \"admin.sock\"\n\
             [[key]]\nname = \"{}\"\nsecret-file = \"transfer.key\"\n",
            KEY.0
        );
        for (number, (name, zone, to)) in zones.iter().enumerate() {
            folder.write(&format!("{number}.zone"), zone);
            text += &format!("[[zone]]\nname = \"{name}\"\nfile = \"{number}.zone\"\n");
            if !to.is_empty() {
                text += &format!("transfer = {{ to = [{to}] }}\n");
            }
        }
        Self::with_config(folder, admin, &text, zones.iter().map(|(name, ..)| *name))
    }

    /// Starts a server with the key and zones, given as name, text and more keys of their section,
    /// and a state directory.
    pub fn start_with(zones: &[(&str, &str, &str)], more: &str) -> Self {
        let (folder, admin) = (Folder::new("updated"), free_port());
        let admin = SocketAddr::from(([127, 0, 0, 1], admin));
        folder.write("transfer.key", format!("{}\n", KEY.1));
        let mut text = format!(
            "version = 1\nstate = \"state\"\n[admin]\naddress = \"{admin}\"\n\
             socket = \"admin.sock\"\n[[key]]\nname = \"{}\"\nsecret-file = \"transfer.key\"\n\
             {more}\n",
            KEY.0
        );
        for (number, (name, zone, keys)) in zones.iter().enumerate() {
            folder.write(&format!("{number}.zone"), zone);
            text += &format!("[[zone]]\nname = \"{name}\"\nfile = \"{number}.zone\"\n{keys}\n");
        }
        Self::with_config(folder, admin, &text, zones.iter().map(|(name, ..)| *name))
    }

    /// Starts a server with a configuration in a folder that has all files, and zones of these
    /// names.
    fn with_config<'n>(
        folder: Folder,
        admin: SocketAddr,
        config: &str,
        zones: impl Iterator<Item = &'n str>,
    ) -> Self {
        folder.write("zonda.toml", config);
        let names: Vec<String> = zones.map(|name| format!("{name}.")).collect();
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut primary = Self { process: None, names, address, admin, folder };
        primary.restart();
        primary
    }

    /// Kills the server, as a crash would, and starts it again, on another port.
    pub fn crash(&mut self) {
        self.process.iter().for_each(|process| process.signal("KILL"));
        self.restart();
    }

    /// Ends the server and starts it again, on another port.
    pub fn restart(&mut self) {
        self.process = None;
        let config = self.folder.path().join("zonda.toml");
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let (process, address) = start_on_free_port("zonda", &self.folder, &names, |_, port| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_zonda"));
            command.arg("serve").arg("--config").arg(&config);
            command.args(["--listen", &format!("127.0.0.1:{port}")]);
            command
        });
        (self.process, self.address) = (Some(process), address);
    }

    /// What a client prints that is asked for something of this server.
    pub fn ask(&self, program: &str, arguments: &[&str]) -> String {
        client(program, self.address, arguments)
    }

    /// Runs the command that reloads the server.
    pub fn reload(&self) {
        let (is_done, said) = self.try_reload();
        assert!(is_done, "{said}");
    }

    /// Runs the command that reloads the server; returns whether all was loaded, and what the
    /// command says.
    pub fn try_reload(&self) -> (bool, String) {
        let socket = self.folder.path().join("admin.sock");
        let mut command = Command::new(env!("CARGO_BIN_EXE_zonda"));
        let output = command.arg("reload").arg("--socket").arg(socket).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// The value of a metric, labels included in its name.
    pub fn metric(&self, name: &str) -> f64 {
        metric(self.admin, name)
    }

    /// What the server has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }
}

/// The value of a metric of the server with this administrative interface, labels included in its
/// name.
pub fn metric(admin: SocketAddr, name: &str) -> f64 {
    let mut stream = TcpStream::connect(admin).unwrap();
    let request = "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in\n{page}")).parse().unwrap()
}

/// What dig or kdig prints, with the number of the port as each wants it.
pub fn client(program: &str, address: SocketAddr, arguments: &[&str]) -> String {
    let path = required(program).unwrap();
    let mut command = bounded(path);
    command.arg(format!("@{}", address.ip())).args(["-p", &address.port().to_string()]);
    let output = command.args(arguments).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&said).into_owned()
}

/// The key as `-y` of dig and kdig takes it.
pub fn key_argument() -> String {
    format!("hmac-sha256:{}:{}", KEY.0, KEY.1)
}

/// The records that a server has of a zone, as dig prints them, sorted; each once.
pub fn records(address: SocketAddr, zone: &str, arguments: &[&str]) -> Vec<String> {
    let arguments = [&["+noall", "+answer", "+onesoa", zone, "AXFR"], arguments].concat();
    let text = client("dig", address, &arguments);
    let is_record = |line: &&str| !line.starts_with(';') && !line.contains("\tTSIG\t");
    let records = text.lines().filter(is_record);
    let words = records.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let mut records: Vec<String> = words.filter(|line| !line.is_empty()).collect();
    records.sort();
    records
}

/// Waits until something holds, for 20 seconds.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < limit, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}
