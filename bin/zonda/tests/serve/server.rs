//! A running server and clients of it.

use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use zonda_testkit::client::receive;
use zonda_testkit::process::{Folder, free_port};
use zonda_testkit::{Question, Zonda, ask};

pub const BINARY: &str = env!("CARGO_BIN_EXE_zonda");

/// A zone whose every record tells its version.
pub fn zone(version: u32) -> String {
    format!(
        "$TTL 60\n@ SOA ns host {version} 7200 3600 1209600 60\n@ NS ns\nns A 192.0.2.1\n\
         www TXT \"version {version}\"\nonly{version} A 192.0.2.2\n"
    )
}

/// A server with one zone, its admin interface and its statistics on ports of their own.
pub struct Server {
    pub zonda: Zonda,
    pub admin: SocketAddr,
    /// Address of the page with BIND's statistics.
    pub statistics: SocketAddr,
    /// Holds the configuration file, which is read again at a reload, and the admin socket.
    pub folder: Folder,
}

impl Server {
    pub fn start(more: &[(&str, &str)], keys: &str) -> Self {
        Self::start_with(more, keys, &[])
    }

    /// Starts the server with more arguments.
    pub fn start_with(more: &[(&str, &str)], keys: &str, arguments: &[&str]) -> Self {
        Self::start_program(BINARY, more, keys, arguments)
    }

    /// Starts a program that becomes the server.
    pub fn start_program(
        program: &str,
        more: &[(&str, &str)],
        keys: &str,
        arguments: &[&str],
    ) -> Self {
        let [admin, statistics] = [(); 2].map(|()| SocketAddr::from(([127, 0, 0, 1], free_port())));
        let folder = Folder::new("config");
        let config = write_config(&folder, admin, statistics, keys);
        let first = zone(1);
        let zones = [&[("example.org", &*first)], more].concat();
        let arguments = [&["--config", config.to_str().unwrap()], arguments].concat();
        let zonda = Zonda::start(program, &zones, &arguments);
        Self { zonda, admin, statistics, folder }
    }

    /// Changes the configuration file.
    pub fn configure(&self, keys: &str) {
        write_config(&self.folder, self.admin, self.statistics, keys);
    }

    /// The admin socket.
    pub fn socket(&self) -> String {
        self.folder.path().join("admin.sock").to_str().unwrap().to_owned()
    }

    /// The command that starts a server with the same configuration.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command.args(["serve", "--config"]).arg(self.folder.path().join("zonda.toml"));
        command.arg("--zone").arg(format!("example.org={}", self.zone_file().display()));
        command.args(["--listen", &self.zonda.address.to_string()]).args(arguments);
        command
    }

    /// The response code of a question.
    pub fn rcode(&self, name: &str, rtype: &str) -> String {
        let question = Question::new(name, rtype).edns(1232);
        ask(self.zonda.address, &question).unwrap().rcode_text()
    }

    pub fn zone_file(&self) -> PathBuf {
        self.zonda.folder.path().join("0.zone")
    }

    /// Replaces the zone's file as an editor does.
    pub fn write_zone(&self, text: &str) {
        let new = self.zonda.folder.path().join("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, self.zone_file()).unwrap();
    }

    /// What the admin socket answers.
    pub fn get(&self, path: &str) -> (u16, String) {
        self.request("GET", path)
    }

    pub fn post(&self, path: &str) -> (u16, String) {
        self.request("POST", path)
    }

    /// What the admin socket answers to any method.
    pub fn request(&self, method: &str, path: &str) -> (u16, String) {
        let stream = UnixStream::connect(self.socket()).unwrap();
        exchange(stream, &format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n"))
    }

    /// What the admin socket answers to a request with a JSON body.
    pub fn post_json(&self, path: &str, body: &str) -> (u16, String) {
        let mut stream = UnixStream::connect(self.socket()).unwrap();
        let length = body.len();
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), body.to_owned())
    }

    /// The value of a metric, labels included in its name.
    pub fn metric(&self, name: &str) -> f64 {
        let page = self.get("/metrics").1;
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in\n{page}")).parse().unwrap()
    }

    /// A number among BIND's statistics, 0 if it is not there, as BIND leaves out what is 0.
    pub fn bind_count(&self, place: &str) -> u64 {
        let (status, page) = http(self.statistics, "GET /json/v1 HTTP/1.1\r\n");
        assert_eq!(status, 200, "{page}");
        let page: Value = serde_json::from_str(&page).unwrap();
        let (above, _) = place.rsplit_once('/').unwrap();
        assert!(page.pointer(above).is_some(), "there is no {above} in {page:#}");
        page.pointer(place).map_or(0, |count| count.as_u64().unwrap())
    }

    /// A line of what the system says about the process, such as `VmRSS`, as a number.
    pub fn process_status(&self, line: &str) -> u64 {
        let status = self.get("/v1/status").1;
        let pid = status.lines().find_map(|line| line.trim().strip_prefix("\"pid\": ")).unwrap();
        let path = format!("/proc/{}/status", pid.trim_end_matches(','));
        let text = fs::read_to_string(path).unwrap();
        let value = text.lines().find_map(|it| it.strip_prefix(line)?.strip_prefix(':')).unwrap();
        value.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// The text that `www.example.org` answers.
    pub fn version(&self) -> String {
        let reply = ask(self.zonda.address, &Question::new("www.example.org", "TXT")).unwrap();
        reply.answer[0].data.text.clone()
    }
}

/// Writes the configuration file of a server; `keys` come before the section `[admin]`, and what
/// they have behind its header into it.
fn write_config(folder: &Folder, admin: SocketAddr, statistics: SocketAddr, keys: &str) -> PathBuf {
    let socket = folder.path().join("admin.sock");
    let (keys, of_admin) = keys.split_once("[admin]\n").unwrap_or((keys, ""));
    let text = format!(
        "version = 1\n{keys}\n[admin]\naddress = \"{admin}\"\nsocket = {socket:?}\n\
         bind-statistics = \"{statistics}\"\n{of_admin}"
    );
    folder.write("zonda.toml", text)
}

/// Sends a request to this machine over TCP and returns status and body.
pub fn http(address: SocketAddr, head: &str) -> (u16, String) {
    http_to("localhost", address, head)
}

/// Sends a request with a `Host` of another name.
pub fn http_to(host: &str, address: SocketAddr, head: &str) -> (u16, String) {
    exchange(TcpStream::connect(address).unwrap(), &format!("{head}host: {host}\r\n"))
}

/// Sends a request over a connection that ends with it; returns status and body.
fn exchange(mut stream: impl Read + Write, head: &str) -> (u16, String) {
    write!(stream, "{head}connection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), body.to_owned())
}

/// Asks without pause in the background; counts what is not as it should be.
pub struct Load {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<(u64, Vec<String>)>,
}

impl Load {
    /// `wrong` says what is wrong with a pair of replies: to `www TXT` and to the zone's SOA.
    pub fn start(server: SocketAddr, tcp: bool) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let (mut asked, mut wrong) = (0, Vec::new());
            let question = Question::new("www.example.org", "TXT");
            let question = if tcp { question.over_tcp() } else { question };
            while !stopped.load(Relaxed) {
                asked += 1;
                match ask_once(server, &question) {
                    Ok(0) => {}
                    Ok(rcode) => wrong.push(format!("query {asked}: rcode {rcode}")),
                    Err(error) => wrong.push(format!("query {asked}: {error}")),
                }
            }
            (asked, wrong)
        });
        Self { stop, thread }
    }

    /// Ends it; every query must have been answered.
    pub fn finish(self, asked_min: u64) {
        self.stop.store(true, Relaxed);
        let (asked, wrong) = self.thread.join().unwrap();
        assert!(wrong.is_empty(), "of {asked} queries: {wrong:?}");
        assert!(asked >= asked_min, "only {asked} queries were asked");
    }
}

/// Sends one query without trying again; returns the response code.
pub fn ask_once(server: SocketAddr, question: &Question) -> std::io::Result<u16> {
    let query = question.to_bytes(7);
    if question.tcp {
        return Ok(ask(server, question)?.rcode());
    }
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(Duration::from_secs(3)))?;
    socket.send(&query)?;
    let mut reply = [0; 4096];
    let len = receive(&socket, &mut reply)?;
    let answers = u16::from_be_bytes([reply[6], reply[7]]);
    assert!(len > 12 && answers <= 1);
    Ok(u16::from(reply[3] & 15) + if answers == 1 { 0 } else { 100 })
}

/// Waits until something is so.
pub fn wait_until(what: &str, mut so: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(20);
    while !so() {
        assert!(Instant::now() < limit, "still not so: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

pub fn run(arguments: &[&str]) -> Output {
    Command::new(BINARY).args(arguments).output().unwrap()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
