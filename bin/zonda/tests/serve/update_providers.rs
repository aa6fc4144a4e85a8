//! Programs that change zones through messages of DNS: lego, which gets a certificate with the
//! rights of an ACME client, and octoDNS, which plans once.

use super::powerdns_clients::{LEGO, WANTED, authority, octodns};
use super::server::Server;
use zonda_testkit::process::{Folder, bounded, has_required, required};

/// The secret of both keys.
pub const SECRET: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

/// The zone. A provider of octoDNS replaces sets, and no message takes all NS records of the apex
/// away (rfc2136#3.4.2.3), so that these are those that it wants.
const ZONE: &str = "$TTL 60\n@ SOA ns1 host 1 7200 3600 1209600 60\n@ 3600 NS ns1\n\
    @ 3600 NS ns2\nns1 A 192.0.2.1\nns2 A 192.0.2.2\nwww TXT \"text\"\nonly1 A 192.0.2.3\n";

/// A server whose zone `example.net` the key `acme.test` may change for certificates, and the key
/// `dns.test` as it likes. It has another zone besides.
pub fn server(folder: &Folder) -> Server {
    let file = folder.write("example.net.zone", ZONE);
    let (state, root) = (folder.path().join("state"), std::env::temp_dir());
    let dns = "from = \"key dns.test\", names = \"zone\"";
    let keys = format!(
        "state = {state:?}\nroot = {root:?}\n[[key]]\nname = \"acme.test\"\nsecret = \"{SECRET}\"\n\
         [[key]]\nname = \"dns.test\"\nsecret = \"{SECRET}\"\n\
         [[zone]]\nname = \"example.net\"\nfile = {file:?}\n\
         transfer = {{ to = [\"key dns.test\"] }}\n\
         update = [{{ from = \"key acme.test\", preset = \"acme\" }}, {{ {dns} }}, \
         {{ {dns}, types = [\"NS\", \"DS\"] }}]\n"
    );
    Server::start(&[], &keys)
}

#[test]
fn real_peers_lego_gets_a_certificate_by_updates_with_the_rights_of_an_acme_client() {
    if !has_required(&LEGO) {
        return;
    }
    let folder = Folder::new("lego-updates");
    let server = server(&folder);
    let (_authority, port, certificate) = authority(&folder, &server);
    let ended = bounded(required("lego").unwrap())
        .args(["--accept-tos", "--email", "you@example.net", "--domains", "example.net"])
        .args(["--domains", "*.example.net", "--dns", "rfc2136", "--dns.disable-cp", "--path"])
        .arg(folder.path().join("lego"))
        .args(["--server", &format!("https://127.0.0.1:{port}/dir")])
        .args(["--dns.resolvers", &server.zonda.address.to_string(), "run"])
        .env("LEGO_CA_CERTIFICATES", certificate)
        .env("RFC2136_NAMESERVER", server.zonda.address.to_string())
        .env("RFC2136_TSIG_ALGORITHM", "hmac-sha256.")
        .env("RFC2136_TSIG_KEY", "acme.test.")
        .env("RFC2136_TSIG_SECRET", SECRET)
        .env("RFC2136_POLLING_INTERVAL", "1")
        .env("RFC2136_SEQUENCE_INTERVAL", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}");
    let issued = folder.path().join("lego/certificates/example.net.crt");
    assert!(std::fs::read_to_string(issued).unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
    assert_eq!(server.rcode("_acme-challenge.example.net", "TXT"), "NXDOMAIN", "it has cleaned up");
}

#[test]
fn real_peers_octodns_bind_writes_a_zone_by_updates_and_plans_nothing_more() {
    let program = octodns();
    let folder = Folder::new("octodns-bind");
    let server = server(&folder);
    std::fs::create_dir(folder.path().join("wanted")).unwrap();
    // The provider knows no URI records, and reads no LOC record whose sizes are the usual ones, as
    // dnspython leaves them out.
    let lines = WANTED.lines().filter(|line| !line.contains("type: URI"));
    let wanted = lines.collect::<Vec<_>>().join("\n").replace("size: 1,", "size: 2,");
    let wanted = wanted.replace("LONG", &"x".repeat(400)) + "\n";
    folder.write("wanted/example.net.yaml", &wanted);
    let config = format!(
        "providers:\n  wanted: {{ class: octodns.provider.yaml.YamlProvider, directory: {}, \
         enforce_order: false, default_ttl: 120 }}\n  zonda: {{ class: \
         octodns_bind.Rfc2136Provider, host: 127.0.0.1, port: {}, key_name: dns.test., \
         key_secret: {SECRET}, key_algorithm: hmac-sha256 }}\nzones:\n  \
         example.net.: {{ sources: [wanted], targets: [zonda], lenient: true }}\n",
        folder.path().join("wanted").display(),
        server.zonda.address.port()
    );
    let config = folder.write("octodns.yaml", config);
    let run = || {
        let mut octodns = bounded(&program);
        octodns.args(["--doit", "--force", "--config-file"]).arg(&config);
        let ended = octodns.output().unwrap();
        let said = [ended.stdout, ended.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(ended.status.success(), "{said}");
        said
    };
    let first = run();
    assert!(first.contains("* zonda (Rfc2136Provider)"), "{first}");
    assert_eq!(server.rcode("_443._tcp.example.net", "TLSA"), "NOERROR");
    assert_eq!(server.rcode("only1.example.net", "A"), "NXDOMAIN", "no file wants it");
    let again = run();
    assert!(again.contains("No changes were planned"), "{again}");
    folder.write("wanted/example.net.yaml", wanted.replace("192.0.2.2]", "192.0.2.22]"));
    let changed = run();
    assert!(changed.contains("Update"), "{changed}");
    let again = run();
    assert!(again.contains("No changes were planned"), "{again}");
}
