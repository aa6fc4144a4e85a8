//! Pools whose members are chosen by the place of the client, with MaxMind's test databases.

use crate::server::{Server, wait_until};
use serde_json::Value;
use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;
use zonda_testkit::process::Folder;
use zonda_testkit::{Question, ask};

const ZONE: &str = "$TTL 60\n@ SOA ns h 1 7200 3600 1209600 60\n@ NS ns\nns A 192.0.2.1\n";

/// A server whose name `www.sited.test` is answered by members in London, New York and Tokyo.
struct Sited {
    server: Server,
    folder: Folder,
}

/// One of MaxMind's databases for tests.
fn database(name: &str) -> PathBuf {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/geo/tests/data");
    PathBuf::from(folder).join(name)
}

impl Sited {
    /// Starts one that chooses by these steps, with this in `[geo]`.
    fn start(choose: &str, geo: &str) -> Self {
        let folder = Folder::new("sited");
        folder.write("sited.zone", ZONE);
        fs::copy(database("GeoLite2-City-Test.mmdb"), folder.path().join("city.mmdb")).unwrap();
        let text = Self::text(&folder, choose, geo);
        let server = Server::start(&[], &text);
        Self { server, folder }
    }

    fn text(folder: &Folder, choose: &str, geo: &str) -> String {
        let path = folder.path();
        let (file, state) = (path.join("sited.zone"), path.join("state"));
        let root = std::env::temp_dir(); // the test server has a zone of its own beside it
        let member =
            |last: u8, site: &str| format!("{{ address = \"192.0.2.{last}\", site = \"{site}\" }}");
        let members = [member(1, "lon"), member(2, "nyc"), member(3, "tyo")].join(", ");
        format!(
            "root = {root:?}\nstate = {state:?}\nwatch-interval = \"100 ms\"\n[geo]\n\
             database = {:?}\n{geo}\n\
             [[pool]]\nname = \"web\"\nchoose = {choose}\nmembers = [{members}]\n[[zone]]\n\
             name = \"sited.test\"\nfile = {file:?}\nsteer = {{ \"www A\" = \"web\" }}\n",
            path.join("city.mmdb")
        )
    }

    /// The address that the clients of a network get, and the network that the answer holds for.
    fn answer(&self, network: &str) -> String {
        let (address, prefix) = network.split_once('/').unwrap();
        let (family, octets) = match address.parse().unwrap() {
            IpAddr::V4(address) => (1, address.octets().to_vec()),
            IpAddr::V6(address) => (2, address.octets().to_vec()),
        };
        let prefix: u8 = prefix.parse().unwrap();
        let mut option = vec![0, family, prefix, 0];
        option.extend(&octets[..usize::from(prefix.div_ceil(8))]);
        let question = Question::new("www.sited.test", "A").option(8, &option);
        let reply = ask(self.server.zonda.address, &question).unwrap();
        let options = reply.edns.unwrap().options;
        let (_, data) = options.into_iter().find(|(code, _)| *code == 8).unwrap();
        let answers = reply.answer.into_iter().map(|record| record.data.text);
        format!("{} for /{}", answers.collect::<Vec<_>>().join(" "), data[3])
    }

    /// Replaces the database by the content of a file, at once.
    fn replace_database(&self, content: &[u8]) {
        let path = self.folder.path().join("city.mmdb");
        let next = path.with_extension("next");
        fs::write(&next, content).unwrap();
        fs::rename(next, path).unwrap();
    }

    fn reload(&self, choose: &str, geo: &str) {
        self.server.configure(&Self::text(&self.folder, choose, geo));
        let (status, answer) = self.server.post("/v1/reload");
        assert_eq!(status, 200, "{answer}");
    }
}

#[test]
fn clients_get_the_nearest_member_and_the_widest_network_that_does() {
    let sited = Sited::start("\"nearest\"", "default-site = \"nyc\"");
    assert_eq!(sited.answer("81.2.69.142/32"), "192.0.2.1 for /31"); // London
    assert_eq!(sited.answer("89.160.20.112/28"), "192.0.2.1 for /28"); // Linköping
    assert_eq!(sited.answer("2001:218::/32"), "192.0.2.3 for /32"); // Japan
    assert_eq!(sited.answer("192.0.2.0/24").split(' ').next(), Some("192.0.2.2"), "unknown");
    assert_eq!(sited.answer("0.0.0.0/0"), "192.0.2.2 for /0", "from loopback, for no subnet");
    let pool: Value = serde_json::from_str(&sited.server.get("/v1/pools/web").1).unwrap();
    assert_eq!(pool["members"][2]["site"], "tyo");
}

#[test]
fn own_networks_win_over_the_database() {
    let networks = "networks = [{ prefix = \"81.2.0.0/16\", site = \"tyo\" }, { prefix = \
        \"81.2.69.128/25\", site = \"nyc\" }]";
    let sited = Sited::start("[\"geo\", \"nearest\"]", networks);
    assert_eq!(sited.answer("81.2.69.142/32"), "192.0.2.2 for /25");
    assert_eq!(sited.answer("81.2.70.0/24"), "192.0.2.3 for /23");
    sited.reload("[\"geo\", \"nearest\"]", "");
    assert_eq!(sited.answer("81.2.69.142/32").split(' ').next(), Some("192.0.2.1"));
}

#[test]
fn a_database_is_taken_over_when_its_file_changes_unless_it_is_damaged() {
    let sited = Sited::start("\"nearest\"", "default-site = \"nyc\"");
    let to = |address: &'static str| {
        move |sited: &Sited| sited.answer("81.2.69.142/32").starts_with(address)
    };
    assert!(to("192.0.2.1 ")(&sited));
    // It has countries and no coordinates.
    sited.replace_database(&fs::read(database("GeoLite2-Country-Test.mmdb")).unwrap());
    wait_until("the location is not known any more", || to("192.0.2.2 ")(&sited));
    sited.replace_database(b"no database");
    let line = "what is known of locations stays in force";
    wait_until("the damage is told", || !sited.server.zonda.process.log(line).is_empty());
    assert!(to("192.0.2.2 ")(&sited));
    sited.replace_database(&fs::read(database("GeoLite2-City-Test.mmdb")).unwrap());
    wait_until("the location is known again", || to("192.0.2.1 ")(&sited));
}

#[test]
fn members_at_the_clients_site_that_are_down_leave_the_next_site() {
    let sited = Sited::start("[\"geo\", \"nearest\"]", "");
    let socket = sited.server.socket();
    let output = crate::server::run(&["pool", "down", "web/192.0.2.1", "--socket", &*socket]);
    assert!(output.status.success());
    assert!(sited.answer("81.2.69.142/32").starts_with("192.0.2.2 for /"), "New York");
}

#[test]
fn programs_tell_networks_and_latencies_and_all_is_kept_in_files() {
    let sited = Sited::start(
        "[\"learned-latency\"]",
        "default-site = \"nyc\"\nnetworks-file = \
        \"networks.txt\"\nlatencies-file = \"latencies.txt\"",
    );
    assert!(sited.answer("81.2.69.142/32").starts_with("192.0.2.1 "), "London, by its place");
    let post = |path: &str, body: &str| {
        let (status, answer) = sited.server.post_json(path, body);
        (status, answer)
    };
    let told = r#"{"set": [{"prefix": "81.2.0.0/16", "site": "nyc", "ms": 3},
                {"prefix": "81.2.69.0/24", "site": "tyo", "ms": 1.5}]}"#;
    assert_eq!(post("/v1/geo/latencies", told).0, 200);
    assert!(sited.answer("81.2.69.142/32").starts_with("192.0.2.3 "), "1.5 ms, and 2 to London");
    assert!(sited.answer("81.2.1.0/24").starts_with("192.0.2.2 "));
    let kept = fs::read_to_string(sited.server.folder.path().join("latencies.txt")).unwrap();
    assert!(kept.contains("81.2.69.0/24 tyo 1.500\n"), "{kept}");
    assert_eq!(post("/v1/geo/latencies", "{\"remove\": [\"81.2.69.0/24\"]}").0, 200);
    assert!(sited.answer("81.2.69.142/32").starts_with("192.0.2.1 "), "2 ms to London, 3 to nyc");
    let told = "{\"set\": [{\"prefix\": \"192.0.2.0/24\", \"site\": \"tyo\"}]}";
    assert_eq!(post("/v1/geo/networks", told).0, 200);
    assert!(sited.answer("192.0.2.0/24").starts_with("192.0.2.3 "));
    let listed: Value = serde_json::from_str(&sited.server.get("/v1/geo/networks").1).unwrap();
    assert_eq!(listed["networks"][0]["site"], "tyo");
    let (status, answer) = post("/v1/geo/networks", &told.replace("tyo", "mars"));
    assert_eq!(status, 400);
    assert!(answer.contains("no site `mars`"), "{answer}");
    fs::write(sited.server.folder.path().join("latencies.txt"), "10.0.0.0/8 fra\n").unwrap();
    let line = "what is known of locations stays in force";
    wait_until("the mistake is told", || {
        sited.server.zonda.process.log(line).contains("latencies.txt:1")
    });
}
