//! How a server starts, and what it says when it cannot.

use crate::server::{BINARY, Server, run, text, wait_until, zone};
use std::fs::{self, File};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Stdio};
use zonda_testkit::process::{Folder, free_port};
use zonda_testkit::{Question, ask};

#[test]
fn a_zone_that_never_loaded_is_servfail_while_the_others_serve() {
    let server = Server::start(&[], "[[zone]]\nname = \"broken.test\"\nfile = \"missing.zone\"");
    assert_eq!(server.version(), "\"version 1\"");
    let reply = ask(server.zonda.address, &Question::new("www.broken.test", "A").edns(1232));
    assert_eq!(reply.unwrap().rcode_text(), "SERVFAIL");
    let (status, reasons) = server.get("/ready");
    assert_eq!(status, 503);
    assert!(reasons.contains("broken.test.") && reasons.contains("missing.zone"), "{reasons}");
}

#[test]
fn a_bad_zone_in_a_json_file_leaves_the_others_of_that_file_alone() {
    let zone = |name, address| {
        format!(
            r#"{{"name": "{name}", "records": [
                 {{"name": "{name}", "type": "SOA", "ttl": 60, "data": {{"mname": "ns.test",
                   "rname": "x.test", "serial": 1, "refresh": 2, "retry": 3, "expire": 4,
                   "minimum": 5}}}},
                 {{"name": "{name}", "type": "A", "ttl": 60, "data": {{"ip": "{address}"}}}}]}}"#
        )
    };
    let [good, bad] = [zone("good.test", "192.0.2.1"), zone("bad.test", "192.0.2.256")];
    let folder = Folder::new("json");
    let root = std::env::temp_dir();
    let file = folder.write("two.json", format!("[{good},{bad}]"));
    let only = folder.write("only.json", format!("[{},{bad}]", good.replace("good", "only")));
    let keys = format!(
        "root = {root:?}\n[[zone]]\njson = {file:?}\n\
         [[zone]]\nname = \"only.test\"\njson = {only:?}"
    );
    let server = Server::start(&[], &keys);
    assert_eq!(server.rcode("good.test", "A"), "NOERROR");
    assert_eq!(server.rcode("only.test", "A"), "NOERROR");
    assert_eq!(server.rcode("bad.test", "A"), "SERVFAIL");
    assert!(server.zonda.process.log_soon("not_loaded=1").contains("zones=3"));
    let (_, reasons) = server.get("/ready");
    assert!(reasons.contains("bad.test.") && !reasons.contains("good.test."), "{reasons}");

    folder.write("two.json", format!("[{good},{}]", zone("bad.test", "192.0.2.2")));
    assert_eq!(server.post("/v1/reload").0, 200);
    folder.write("two.json", format!("[{},{{\"records\": []}}]", good.replace("2.1", "2.3")));
    let (status, body) = server.post("/v1/reload");
    assert!(status == 422 && body.contains(r#"[1]: expected a member \"name\""#), "{body}");
    assert!(body.contains("good.test."), "what has a name is loaded: {body}");
    assert_eq!(server.rcode("bad.test", "A"), "NOERROR", "it may be the one without a name");
    assert_eq!(server.get("/ready").0, 200);
}

#[test]
fn a_json_file_that_cannot_be_read_is_told_where_the_zones_are_counted() {
    let folder = Folder::new("json");
    let file = folder.write("zones.json", "[{]");
    let keys = format!("root = {:?}\n[[zone]]\njson = {file:?}", std::env::temp_dir());
    let server = Server::start(&[], &keys);
    let log = server.zonda.process.log_soon("serving; the errors above");
    assert!(log.contains("zones=1 files_with_errors=1"), "{log}");
    assert_eq!(server.get("/ready").0, 503);
}

#[test]
fn without_anything_to_serve_it_says_what_to_do_in_six_lines() {
    let output = run(&["serve"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stderr).lines().count(), 6);
    assert!(text(&output.stderr).contains("zonda serve --zone"));
}

#[test]
fn a_server_that_keeps_the_rights_of_root_says_so() {
    use std::os::unix::fs::MetadataExt;
    let server = Server::start(&[], "");
    let is_root = fs::metadata("/proc/self").is_ok_and(|entry| entry.uid() == 0);
    let warning = "the server keeps the rights of root";
    assert_eq!(server.zonda.process.log("").contains(warning), is_root);
    if is_root {
        let server = Server::start(&[], "user = \"nobody\"");
        assert!(!server.zonda.process.log("").contains(warning));
    }
}

#[test]
fn a_failed_start_leaves_no_sockets_behind() {
    let folder = Folder::new("failed");
    let config = folder.write("zonda.toml", "version = 1\n[admin]\naddress = \"off\"\n");
    let file = folder.write("example.org.zone", zone(1));
    let output = Command::new("timeout")
        .args([
            "20",
            BINARY,
            "serve",
            "--listen",
            "192.0.2.77:5300",
            "--config",
            config.to_str().unwrap(),
        ])
        .args(["--zone", &format!("example.org={}", file.display())])
        .env("ZONDA_ADMIN_SOCKET", folder.path().join("admin.sock"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    let mut left: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().path()).collect();
    left.sort();
    assert_eq!(left, [file, config]);
}

#[test]
fn a_file_that_is_no_socket_is_left_where_an_admin_socket_is_to_be() {
    let folder = Folder::new("no-socket");
    let file = folder.write("important.conf", "keep me");
    let zone = folder.write("example.org.zone", zone(1));
    let output = Command::new("timeout")
        .args(["20", BINARY, "serve", "--listen", "127.0.0.1:0"])
        .args(["--zone", &format!("example.org={}", zone.display())])
        .env("ZONDA_ADMIN_ADDRESS", "off")
        .env("ZONDA_ADMIN_SOCKET", &file)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(fs::read_to_string(file).unwrap(), "keep me");
    assert!(text(&output.stderr).contains("is not a socket"), "{}", text(&output.stderr));
}

#[test]
fn an_address_that_is_taken_is_named_with_what_to_do() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = Folder::new("taken");
    let file = folder.write("zone", zone(1));
    let zone = format!("example.org={}", file.display());
    let output = run(&["serve", "--listen", &address, "--zone", &zone]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains(&format!("cannot listen on {address} (UDP)")), "{said}");
    assert!(said.contains("choose another address (`listen`)"), "{said}");
}

#[test]
fn a_check_tells_all_errors_with_their_places() {
    let folder = Folder::new("check");
    folder.write("a.zone", "@ SOA ns host 1 2 3 4 5\n@ NS ns\nns A 192.0.2.256\nns AAAA x\n");
    let config = folder
        .write("zonda.toml", "version = 1\n[[zone]]\nname = \"example.org\"\nfile = \"a.zone\"\n");
    let config = config.to_str().unwrap();
    let output = run(&["check", "--config", config]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stdout);
    assert!(said.contains("a.zone:3:") && said.contains("a.zone:4:"), "{said}");
    folder.write("a.zone", zone(1));
    let output = run(&["check", "--config", config]);
    assert!(output.status.success(), "{}", text(&output.stdout));
}

#[test]
fn a_check_tells_of_a_file_that_cannot_be_read_once_and_of_an_empty_one_by_its_name() {
    let folder = Folder::new("check");
    let path = folder.path().join("missing.zone");
    let path = path.to_str().unwrap();
    let config = format!("version = 1\n[[zone]]\nname = \"example.org\"\nfile = {path:?}\n");
    let config = folder.write("zonda.toml", config);
    let config = config.to_str().unwrap();
    let said = text(&run(&["check", "--config", config]).stdout);
    assert!(said.contains("missing.zone: error: cannot be read"), "{said}");
    assert!(said.ends_with("1 zone, 1 error, 0 warnings\n"), "{said}");
    folder.write("missing.zone", "");
    let of_zone = ["file", "check", "--origin", "example.org", path];
    for arguments in [&of_zone[..], &["check", "--config", config]] {
        let said = text(&run(arguments).stdout);
        assert!(said.contains("missing.zone: error: "), "{said}");
        assert!(said.lines().all(|line| !line.starts_with(':')), "{said}");
    }
}

#[test]
fn a_check_counts_zones_that_are_forwarded_too() {
    let folder = Folder::new("check");
    let own = folder.write("example.org.zone", zone(1));
    let hosts = folder.write("hosts", "192.0.2.1 printer.example.net\n");
    let config = format!(
        "version = 1\n[[zone]]\nname = \"example.org\"\nfile = {own:?}\n\
         [[zone]]\nname = \"Example.net\"\nhosts = {hosts:?}\nforward.to = \"192.0.2.1\"\n\
         [[zone]]\nname = \".\"\nforward.to = \"192.0.2.1\"\n"
    );
    let config = folder.write("zonda.toml", config);
    let said = text(&run(&["check", "--config", config.to_str().unwrap()]).stdout);
    assert_eq!(said, "3 zones, 0 errors, 0 warnings\n");
    let said = text(&run(&["check", "--forward", "192.0.2.1"]).stdout);
    assert_eq!(said, "1 zone, 0 errors, 0 warnings\n");
}

#[test]
fn a_check_tells_of_files_that_are_left_out_and_directories_that_are_missing() {
    let folder = Folder::new("check");
    let file = folder.write("example.org.zone", zone(1));
    folder.write("no..name.zone", "");
    folder.write(
        "zonda.toml",
        format!(
            "version = 1\n[[zone]]\ndirectory = \".\"\n[[zone]]\ndirectory = \"missing\"\n\
             [[zone]]\nname = \"EXAMPLE.org\"\nfile = {file:?}\n"
        ),
    );
    let config = folder.path().join("zonda.toml");
    let output = run(&["check", "--config", config.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stdout);
    assert!(said.contains("no..name is not the name of a zone"), "{said}");
    assert!(said.contains("missing: cannot read the directory"), "{said}");
    assert!(said.contains("zone EXAMPLE.org. is already served from"), "{said}");
    assert!(said.ends_with("1 zone, 1 error, 2 warnings\n"), "{said}");
}

#[test]
fn without_arguments_the_configuration_in_its_usual_place_is_read_and_said_so() {
    let folder = Folder::new("usual");
    let command = |arguments: &[&str]| {
        let mut command = Command::new(BINARY);
        command.args(arguments).current_dir(folder.path()).stdin(Stdio::null());
        command
    };
    let run = |arguments: &[&str]| command(arguments).output().unwrap();
    if !Path::new("/etc/zonda/zonda.toml").exists() {
        for arguments in ["serve", "check"] {
            let nothing = run(&[arguments]);
            assert_eq!(nothing.status.code(), Some(2), "{arguments}");
            assert!(text(&nothing.stderr).contains("./zonda.toml"), "{}", text(&nothing.stderr));
        }
    }
    folder.write("example.org.zone", zone(1));
    let listen = format!("127.0.0.1:{}", free_port());
    let config = format!(
        "version = 1\n[admin]\naddress = \"off\"\nsocket = \"admin.sock\"\n\
         [[listen]]\naddress = \"{listen}\"\n\
         [[zone]]\nname = \"example.org\"\nfile = \"example.org.zone\"\n"
    );
    folder.write("zonda.toml", config);
    let checked = run(&["check"]);
    assert_eq!(checked.status.code(), Some(0));
    assert_eq!(text(&checked.stdout), "1 zone, 0 errors, 0 warnings\n");
    let said = "zonda: reading ./zonda.toml, as no --config was given\n";
    assert_eq!(text(&checked.stderr), said);
    let other = run(&["check", "--forward", "192.0.2.1"]);
    assert_eq!(text(&other.stderr), "", "what is given takes the place of the file");
    let log = folder.path().join("log");
    let mut server = command(&["serve"]).stderr(File::create(&log).unwrap()).spawn().unwrap();
    let question = Question::new("www.example.org", "TXT");
    wait_until("it serves", || ask(listen.parse().unwrap(), &question).is_ok());
    assert!(run(&["stop", "--socket", "admin.sock"]).status.success());
    assert_eq!(server.wait().unwrap().code(), Some(0));
    assert!(fs::read_to_string(log).unwrap().starts_with(said));
}
