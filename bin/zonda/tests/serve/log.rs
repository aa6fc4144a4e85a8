//! What becomes of the server when its log cannot be written.

use crate::server::{BINARY, http, run, text, wait_until, zone};
use std::fs::{self, File};
use std::io::{PipeReader, Write, pipe};
use std::net::SocketAddr;
use std::ops::RangeBounds;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use zonda_testkit::process::{Folder, free_port};
use zonda_testkit::{Question, ask};

/// A server whose standard error the test has, with a watched zone, its admin interface and a query
/// log.
struct Logging {
    child: Child,
    dns: SocketAddr,
    admin: SocketAddr,
    folder: Folder,
}

impl Logging {
    fn start(standard_error: impl Into<Stdio>, keys: &str) -> Self {
        let folder = Folder::new("log");
        let [dns, admin] = [(); 2].map(|()| SocketAddr::from(([127, 0, 0, 1], free_port())));
        let file = folder.write("example.org.zone", zone(1));
        let config = format!(
            "version = 1\nwatch = true\nwatch-interval = \"100 ms\"\n{keys}\n\
             [[listen]]\naddress = \"{dns}\"\n[[zone]]\nname = \"example.org\"\nfile = {file:?}\n\
             [admin]\naddress = \"{admin}\"\nsocket = {:?}\n",
            folder.path().join("admin.sock")
        );
        let config = folder.write("zonda.toml", config);
        let mut command = Command::new(BINARY);
        command.args(["serve", "--config"]).arg(config).stdin(Stdio::null());
        let child = command.stderr(standard_error).spawn().unwrap();
        let mut server = Self { child, dns, admin, folder };
        wait_until("it answers", || {
            assert!(server.child.try_wait().unwrap().is_none(), "it has ended");
            server.version().is_some_and(|version| version == "\"version 1\"")
        });
        server
    }

    /// The text that `www.example.org` answers.
    fn version(&self) -> Option<String> {
        let reply = ask(self.dns, &Question::new("www.example.org", "TXT")).ok()?;
        reply.answer.first().map(|record| record.data.text.clone())
    }

    /// Replaces the zone's file as an editor does.
    fn write_zone(&self, version: u32) {
        let new = self.folder.write("new", zone(version));
        fs::rename(new, self.folder.path().join("example.org.zone")).unwrap();
    }

    fn metric(&self, name: &str) -> f64 {
        let page = http(self.admin, "GET /metrics HTTP/1.1\r\n").1;
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in\n{page}")).parse().unwrap()
    }

    /// Watches, reloads and stops as if each line were read. So many of its lines are lost.
    fn works_to_its_end(mut self, expected_lost: impl RangeBounds<f64>) {
        for version in 2..5 {
            self.write_zone(version);
            let served = format!("\"version {version}\"");
            wait_until("a watched file is served", || self.version().as_ref() == Some(&served));
        }
        let socket = self.folder.path().join("admin.sock");
        let socket = ["--socket", socket.to_str().unwrap()];
        let reload = run(&[&["reload"], &socket[..]].concat());
        assert_eq!(reload.status.code(), Some(0), "{}", text(&reload.stderr));
        let lost = self.metric("zonda_log_lines_lost_total");
        assert!(expected_lost.contains(&lost), "{lost}");
        assert!(run(&[&["stop"], &socket[..]].concat()).status.success());
        let mut status = None;
        wait_until("it has stopped", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        assert_eq!(status.unwrap().code(), Some(0));
    }
}

impl Drop for Logging {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_log_reader_that_goes_away_costs_lines_and_nothing_else() {
    let (reader, writer) = pipe().unwrap();
    let server = Logging::start(writer, "");
    drop(reader);
    server.works_to_its_end(3.0..);
}

#[test]
fn a_log_on_a_full_disk_costs_lines_and_nothing_else() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    Logging::start(full, "").works_to_its_end(3.0..);
}

#[test]
fn a_log_reader_that_reads_no_more_costs_lines_and_nothing_else() {
    let (reader, mut writer) = full_pipe();
    writer.flush().unwrap();
    let server = Logging::start(writer, "");
    server.works_to_its_end(..3.0); // lines wait for it
    drop(reader);
}

/// A pipe that has no room.
fn full_pipe() -> (PipeReader, impl Write + Into<Stdio>) {
    let (reader, mut writer) = pipe().unwrap();
    let capacity = 1 << 16; // pipe(7)
    writer.write_all(&vec![b'\n'; capacity]).unwrap();
    (reader, writer)
}

#[test]
fn a_query_log_on_a_full_disk_costs_lines_that_are_counted() {
    let (reader, writer) = pipe().unwrap();
    let server = Logging::start(writer, "[query-log]\noutput = \"/dev/full\"");
    wait_until("lines are dropped", || {
        server.version().unwrap();
        server.metric("zonda_query_log_drops_total") > 0.0
    });
    drop(reader);
    server.works_to_its_end(3.0..);
}

#[test]
fn a_query_log_to_a_named_pipe_that_nobody_reads_hinders_neither_start_nor_reload() {
    let folder = Folder::new("fifo");
    let path = folder.path().join("queries");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let (reader, writer) = pipe().unwrap();
    let keys = format!("[query-log]\noutput = {path:?}\ncapacity = 64");
    let server = Logging::start(writer, &keys);
    wait_until("the pipe is full and lines are dropped", || {
        (0..100).for_each(|_| drop(server.version()));
        server.metric("zonda_query_log_drops_total") > 0.0
    });
    for version in [7, 8] {
        server.write_zone(version);
        let pid = server.child.id().to_string();
        assert!(Command::new("kill").args(["-s", "HUP", &pid]).status().unwrap().success());
        std::thread::sleep(Duration::from_millis(300));
        let served = format!("\"version {version}\"");
        wait_until("it is served", || server.version().as_ref() == Some(&served));
    }
    drop(reader);
    server.works_to_its_end(3.0..);
}
