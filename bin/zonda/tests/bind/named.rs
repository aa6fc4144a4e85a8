//! A named with a configuration of the test's own, and a Zonda that was given the same.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use zonda_testkit::process::{Folder, Process, installed, start_on_free_port};

pub const ZONDA: &str = env!("CARGO_BIN_EXE_zonda");

/// A running server and the folder that holds its files.
pub struct Server {
    pub address: SocketAddr,
    pub folder: Folder,
    _process: Process,
}

/// Starts named; `files` makes its files, of which one is `named.conf`, of its folder and port.
///
/// Debian confines `/usr/sbin/named` to its own folders (AppArmor), so a copy is run.
pub fn start_named(zones: &[&str], files: impl Fn(&Path, u16) -> Vec<(String, String)>) -> Server {
    let program = installed("named").expect("`make packages` installs named");
    let folder = Folder::new("named");
    fs::copy(program, folder.path().join("named")).unwrap();
    let (process, address) = start_on_free_port("named", &folder, zones, |folder, port| {
        for (name, content) in files(folder.path(), port) {
            folder.write(&name, content);
        }
        let mut command = Command::new(folder.path().join("named"));
        command.args(["-g", "-n", "1", "-c"]).arg(folder.path().join("named.conf"));
        command
    });
    Server { address, folder, _process: process }
}

/// Imports a configuration, checks what came of it, and serves that on an address of its own;
/// `statistics` takes the place of the address that named has.
pub fn start_imported(named_conf: &Path, zones: &[&str], statistics: &str) -> Server {
    start_edited(named_conf, zones, statistics, |toml| toml)
}

/// Starts Zonda with the imported configuration as a user has edited it.
pub fn start_edited(
    named_conf: &Path,
    zones: &[&str],
    statistics: &str,
    edit: impl FnOnce(String) -> String,
) -> Server {
    let folder = Folder::new("imported");
    let toml = folder.path().join("zonda.toml");
    let mut import = Command::new(ZONDA);
    import.arg("import").arg(named_conf).arg("-o").arg(&toml);
    let output = import.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    fs::write(&toml, edit(fs::read_to_string(&toml).unwrap())).unwrap();
    let check = Command::new(ZONDA).args(["check", "--config"]).arg(&toml).output().unwrap();
    let text = fs::read_to_string(&toml).unwrap();
    let said = String::from_utf8_lossy(&check.stdout);
    assert!(check.status.success(), "{said}\n{text}");
    let (process, address) = start_on_free_port("zonda", &folder, zones, |_, port| {
        let mut command = Command::new(ZONDA);
        command.args(["serve", "--config"]).arg(&toml);
        command.args(["--listen", &format!("127.0.0.1:{port}")]);
        command.env("ZONDA_ADMIN_ADDRESS", "off").env("ZONDA_ADMIN_SOCKET", "off");
        command.env("ZONDA_ADMIN_BIND_STATISTICS", statistics);
        command
    });
    Server { address, folder, _process: process }
}

/// Asks for a page; its status and its body.
pub fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), body.to_owned())
}
