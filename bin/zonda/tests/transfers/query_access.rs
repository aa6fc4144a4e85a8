//! Access lists with keys: which clients may ask, by the signature of their queries.

use crate::primary::{KEY, PLAIN, Primary, client, key_argument};
use crate::update_clients::send_to;
use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use zonda_testkit::process::{Folder, Process, free_port, has_required, start_on_free_port};

/// A second key, as `-y` takes it, and its section.
const OTHER: &str = "hmac-sha256:other.example:b3RoZXJvdGhlcg==";
const OTHER_SECTION: &str = "[[key]]\nname = \"other.example\"\nsecret = \"b3RoZXJvdGhlcg==\"\n";

/// The access list that a key opens.
fn keyed() -> String {
    format!("access = [\"allow key {}\", \"refuse any\"]", KEY.0)
}

/// A server of `open.test`, where `alias` leads to `www.keyed.test`, and of zones that the key, and
/// an address without or with a key, open.
fn server(more: &str) -> Primary {
    let open = PLAIN.to_owned() + "alias CNAME www.keyed.test.\n";
    let zone = |name: &str, access: &str| {
        format!("[[zone]]\nname = \"{name}\"\nfile = \"0.zone\"\n{access}\n")
    };
    let both = format!("access = [\"allow 127.0.0.0/8 key {}\", \"refuse any\"]", KEY.0);
    let elsewhere = both.replace("127.0.0.0/8", "192.0.2.0/24");
    let more = [
        zone("keyed.test", &keyed()),
        zone("both.test", &both),
        zone("elsewhere.test", &elsewhere),
        OTHER_SECTION.to_owned(),
        more.to_owned(),
    ];
    Primary::start_with(&[("open.test", &open, "")], &more.concat())
}

/// The response code that dig prints, whether it found the address of `www`, and whether the reply
/// is signed, soundly.
fn outcome(said: &str) -> (String, bool, bool) {
    let status = said.split("status: ").nth(1).unwrap_or(said);
    let rcode = status.split(',').next().unwrap_or_default().to_owned();
    let is_doubted = said.contains("could not be validated");
    (rcode, said.contains("192.0.2.2"), said.contains("TSIG PSEUDOSECTION") && !is_doubted)
}

/// What dig gets that asks for an address, with a key if it is given.
fn ask(address: SocketAddr, name: &str, key: Option<&str>, more: &[&str]) -> (String, bool, bool) {
    let signed = key.map_or_else(Vec::new, |key| vec!["-y", key]);
    outcome(&client("dig", address, &[&[name, "A"], &signed[..], more].concat()))
}

#[test]
fn a_zone_that_a_key_opens_is_answered_to_queries_with_it_and_refused_to_all_others() {
    let server = server("");
    let key = key_argument();
    let refused = |is_signed| ("REFUSED".to_owned(), false, is_signed);
    let answered = ("NOERROR".to_owned(), true, true);
    // Often enough for a worker to keep what it would keep.
    for round in 0..20 {
        for transport in ["+notcp", "+tcp"] {
            let ask = |name, key| ask(server.address, name, key, &[transport]);
            for name in ["www.keyed.test", "www.both.test"] {
                assert_eq!(ask(name, Some(&key)), answered, "{name} {round}");
                assert_eq!(ask(name, None), refused(false), "{name} {round}");
                assert_eq!(ask(name, Some(OTHER)), refused(true), "{name} {round}");
            }
            assert_eq!(ask("www.elsewhere.test", Some(&key)), refused(true), "another network");
        }
    }
    let wrong = ask(server.address, "www.keyed.test", Some("transfer.example:d3Jvbmc="), &[]);
    assert_eq!((&*wrong.0, wrong.1), ("NOTAUTH", false));
}

#[test]
fn an_alias_is_followed_into_a_zone_that_a_key_opens_for_clients_with_the_key_alone() {
    let server = server("[answers]\ncross-zone = true\n");
    let key = key_argument();
    for _ in 0..10 {
        let signed = ask(server.address, "alias.open.test", Some(&key), &[]);
        assert_eq!(signed, ("NOERROR".to_owned(), true, true));
        let unsigned = ask(server.address, "alias.open.test", None, &[]);
        assert_eq!(unsigned, ("NOERROR".to_owned(), false, false), "the alias alone");
    }
}

#[test]
fn names_are_forwarded_for_clients_with_the_key_which_are_told_that_they_are() {
    let upstream = server("");
    let forward = format!(
        "[[zone]]\nname = \".\"\n{}\n[zone.forward]\nto = [\"{}\"]\n",
        keyed(),
        upstream.address
    );
    let server = Primary::start_with(&[("own.test", PLAIN, "")], &forward);
    let key = key_argument();
    let signed = ask(server.address, "www.open.test", Some(&key), &[]);
    assert_eq!(signed, ("NOERROR".to_owned(), true, true), "{}", server.log());
    for _ in 0..3 {
        let unsigned = ask(server.address, "www.open.test", None, &[]);
        assert_eq!(unsigned, ("REFUSED".to_owned(), false, false), "also when it is cached");
    }
    let flags = |arguments: &[&str]| {
        let said = server.ask("dig", &[&["www.own.test", "A"], arguments].concat());
        said.split("flags: ").nth(1).and_then(|it| it.split(';').next()).unwrap().to_owned()
    };
    assert!(flags(&["-y", &key]).contains("ra"), "{}", flags(&["-y", &key]));
    assert!(!flags(&[]).contains("ra"), "{}", flags(&[]));
}

/// A server of `open.test` and of more zones with a listener that a key opens, and the address of
/// that.
fn keyed_listener(folder: &Folder, more: &str) -> (Process, SocketAddr) {
    folder.write("open.zone", PLAIN);
    let ports = |port: u16, keyed: u16| {
        format!(
            "version = 1\nstate = \"state\"\n{OTHER_SECTION}\
         [[key]]\nname = \"{}\"\nsecret = \"{}\"\n\
         [[listen]]\naddress = \"127.0.0.1:{port}\"\n[[listen]]\naddress = \"127.0.0.1:{keyed}\"\n\
         {}\n[admin]\naddress = \"off\"\nsocket = \"admin.sock\"\n\
         [[zone]]\nname = \"open.test\"\nfile = \"open.zone\"\n\
         transfer = {{ to = [\"127.0.0.1\"] }}\n{more}",
            KEY.0,
            KEY.1,
            self::keyed()
        )
    };
    let keyed_port = std::cell::Cell::new(0);
    let (server, _) = start_on_free_port("zonda", folder, &["open.test."], |folder, port| {
        keyed_port.set(free_port());
        let config = folder.write("zonda.toml", ports(port, keyed_port.get()));
        let mut command = Command::new(env!("CARGO_BIN_EXE_zonda"));
        command.arg("serve").arg("--config").arg(config);
        command
    });
    (server, SocketAddr::from(([127, 0, 0, 1], keyed_port.get())))
}

#[test]
fn a_listener_that_a_key_opens_forwards_no_update_by_another_key() {
    if !has_required(&["nsupdate"]) {
        return;
    }
    let folder = Folder::new("relaying");
    // Nothing listens there any more.
    let primary = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let more = format!(
        "[[zone]]\nname = \"up.test\"\n[zone.secondary]\n\
         from = [\"{primary}\"]\nupdate-from = [\"127.0.0.1\"]\n"
    );
    let (_server, address) = keyed_listener(&folder, &more);
    let lines = ["zone up.test.", "update add new.up.test. 60 A 192.0.2.8"];
    let unknown = "hmac-sha256:unknown.example:d3Jvbmc=";
    let (said, is_done) = send_to("nsupdate", address, &["-y", unknown], &lines);
    assert!(!is_done && said.contains("BADKEY"), "{said}");
}

#[test]
fn a_listener_that_a_key_opens_says_what_is_wrong_with_a_signature() {
    let folder = Folder::new("keyed");
    let (_server, address) = keyed_listener(&folder, "");
    let key = key_argument();
    let ask = |key, more: &[&str]| ask(address, "www.open.test", key, more);
    for transport in ["+notcp", "+tcp"] {
        let ask = |key| ask(key, &[transport]);
        assert_eq!(ask(Some(&key)), ("NOERROR".to_owned(), true, true));
        assert_eq!(ask(None), ("REFUSED".to_owned(), false, false));
        assert_eq!(ask(Some(OTHER)), ("REFUSED".to_owned(), false, true));
        for (wrong, error) in [
            ("hmac-sha256:transfer.example:d3Jvbmc=", "BADSIG"),
            ("hmac-sha256:unknown.example:d3Jvbmc=", "BADKEY"),
        ] {
            let said = client("dig", address, &["www.open.test", "A", "-y", wrong, transport]);
            assert!(said.contains("NOTAUTH") && said.contains(error), "{said}");
        }
    }
    let transfer =
        |arguments: &[&str]| client("dig", address, &[&["open.test", "AXFR"], arguments].concat());
    assert!(transfer(&[]).contains("Transfer failed"), "{}", transfer(&[]));
    assert!(transfer(&["-y", &key]).contains("XFR size"), "{}", transfer(&["-y", &key]));
}
