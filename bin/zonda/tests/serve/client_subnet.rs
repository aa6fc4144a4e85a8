//! The client subnet that queries tell, over real sockets and with the tools of other servers
//! (rfc7871).

use super::server::{BINARY, Server, text, wait_until};
use std::process::Command;
use zonda_testkit::{Question, ask};

/// A network of a client: family 1, 24 bits, no scope.
const SUBNET: [u8; 7] = [0, 1, 24, 0, 198, 51, 100];

/// The CLIENT-SUBNET option of the reply to a query that has one.
fn option(server: &Server, question: Question) -> Option<Vec<u8>> {
    let reply = ask(server.zonda.address, &question.option(8, &SUBNET)).unwrap();
    let options = reply.edns.unwrap().options;
    options.into_iter().find(|(code, _)| *code == 8).map(|(_, data)| data)
}

#[test]
fn a_reply_repeats_the_client_subnet_over_udp_and_tcp() {
    let server = Server::start(&[], "");
    for name in ["www.example.org", "none.example.org", "other.test"] {
        let question = || Question::new(name, "TXT");
        assert_eq!(option(&server, question()).as_deref(), Some(&SUBNET[..]), "{name}");
        assert_eq!(option(&server, question().over_tcp()).as_deref(), Some(&SUBNET[..]), "{name}");
    }
    let without = ask(server.zonda.address, &Question::new("www.example.org", "TXT").dnssec());
    assert!(without.unwrap().edns.unwrap().options.iter().all(|(code, _)| *code != 8));
}

#[test]
fn the_client_subnet_of_a_resolver_that_is_not_listed_is_ignored_from_the_next_reload_on() {
    let server = Server::start(&[], "[edns]\nclient-subnet-from = [\"127.0.0.0/8\"]");
    let told = || option(&server, Question::new("www.example.org", "TXT")).is_some();
    assert!(told());
    server.configure("[edns]\nclient-subnet-from = [\"192.0.2.0/24\"]");
    server.post("/v1/reload");
    wait_until("the option is ignored", || !told());
    server.configure("[edns]\nclient-subnet-from = []");
    server.post("/v1/reload");
    wait_until("all are believed", told);
    server.configure("[edns]\nclient-subnet = false");
    server.post("/v1/reload");
    wait_until("none is believed", || !told());
}

#[test]
fn dig_kdig_and_zonda_query_show_the_client_subnet_of_a_reply() {
    let server = Server::start(&[], "");
    let (ip, port) = (server.zonda.address.ip(), server.zonda.address.port());
    let shown = |command: &str, options: &str| {
        let line = format!("{options} @{ip} -p {port} www.example.org TXT");
        let output = Command::new(command).args(line.split_ascii_whitespace()).output();
        let output = output.unwrap_or_else(|error| panic!("{command}: {error}"));
        assert!(output.status.success(), "{command} {line}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    for (network, as_dig, as_kdig) in [
        ("198.51.100.0/24", "198.51.100.0/24/0", "198.51.100.0/24/0"),
        ("198.51.100.7/32", "198.51.100.7/32/0", "198.51.100.7/32/0"),
        ("2001:db8:1::/48", "2001:db8:1::/48/0", "2001:db8:1::/48/0"),
        ("0.0.0.0/0", "0.0.0.0/0/0", "0.0.0.0/0/0"),
    ] {
        let by_dig = shown("dig", &format!("+subnet={network}"));
        assert!(by_dig.contains(&format!("CLIENT-SUBNET: {as_dig}")), "{network}: {by_dig}");
        let by_kdig = shown("kdig", &format!("+subnet={network}"));
        assert!(by_kdig.contains(as_kdig), "{network}: {by_kdig}");
        let line = shown(BINARY, &format!("query +subnet={network}"));
        assert!(line.contains(&format!(";; client subnet {network}, scope 0")), "{line}");
        let json = shown(BINARY, &format!("query +json +subnet={network}"));
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["edns"]["client_subnet"]["network"], network);
        assert_eq!(json["edns"]["client_subnet"]["scope"], 0);
    }
}
