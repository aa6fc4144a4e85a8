//! gdnsd and Zonda with configurations that mean the same.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};
use zonda_testkit::Gdnsd;
use zonda_testkit::process::{Folder, Process, start_on_free_port};

const BINARY: &str = env!("CARGO_BIN_EXE_zonda");
/// The zone of all names that are steered.
pub const ZONE: &str = "steered.test";
/// What is static in the zone, as a master file of either server.
const STATIC: &str = "$TTL 60\n@ SOA ns host 1 7200 3600 1209600 60\n@ NS ns\nns A 192.0.2.1\n\
                      other TXT \"a name that is not steered\"\n";

/// Configurations of gdnsd and of Zonda that mean the same.
#[derive(Default)]
pub struct Configurations {
    /// Resources of gdnsd, by plugin.
    pub plugins: BTreeMap<&'static str, String>,
    /// Maps of gdnsd's plugin `geoip`.
    pub maps: String,
    /// Service types of gdnsd, beside `told`.
    pub service_types: String,
    /// States of what gdnsd monitors as `told`.
    pub states: String,
    /// Records of gdnsd's zone that plugins answer for.
    pub dynamic: String,
    /// Records that both zones have.
    pub fixed: String,
    /// Pools, and other sections of Zonda's configuration.
    pub pools: String,
    /// Names of Zonda's zone that are steered: a line each.
    pub steer: String,
}

impl Configurations {
    /// Has gdnsd answer for a name with a resource, and Zonda with the pool of that name.
    pub fn steer(&mut self, name: &str, (ttl_max, ttl_min): (u32, u32), resource: &str) {
        let _ = writeln!(self.dynamic, "{name} {ttl_max}/{ttl_min} {resource}");
        let types = if resource.starts_with("DYNC") { "CNAME" } else { "A,AAAA" };
        let pool = name.trim_start_matches("*.");
        let _ = writeln!(self.steer, "\"{name} {types}\" = \"{pool}\"");
    }

    /// Adds a pool of Zonda's with these TTLs and keys, and these members, each in TOML.
    pub fn pool(&mut self, name: &str, ttls: (u32, u32), keys: &str, members: &[String]) {
        let (ttl_max, ttl_min) = ttls;
        let _ = writeln!(
            self.pools,
            "[[pool]]\nname = \"{name}\"\nttl-max = \"{ttl_max}s\"\nttl-min = \"{ttl_min}s\"\n\
             members = [{}]\n{keys}",
            members.join(", ")
        );
    }

    /// Adds a resource of a plugin of gdnsd.
    pub fn resource(&mut self, plugin: &'static str, text: &str) {
        let resources = self.plugins.entry(plugin).or_default();
        let _ = writeln!(resources, "    {text}");
    }
}

/// Both servers at work.
pub struct ServerPair {
    pub gdnsd: Gdnsd,
    pub zonda: SocketAddr,
    /// Keeps Zonda alive.
    _process: Process,
    folder: Folder,
}

impl ServerPair {
    pub fn start(configurations: &Configurations) -> Self {
        let Configurations { plugins, maps, service_types, states, dynamic, fixed, pools, steer } =
            configurations;
        let plugins: String = plugins
            .iter()
            .map(|(plugin, text)| match *plugin {
                "metafo" => format!("  metafo => {{ resources => {{\n{text}  }} }}\n"),
                "geoip" => format!(
                    "  geoip => {{ maps => {{\n{maps}  }}, resources => {{\n{text}  }} }}\n"
                ),
                _ => format!("  {plugin} => {{\n{text}  }}\n"),
            })
            .collect();
        let static_data = [STATIC, fixed].concat();
        let zone = [&*static_data, dynamic].concat();
        let gdnsd = Gdnsd::start((ZONE, &zone), service_types, &plugins, states);
        let folder = Folder::new("beside-gdnsd");
        folder.write("zone", &static_data);
        let own = folder.path().display().to_string();
        let text = format!(
            "version = 1\nworkers = 1\nstate = \"{own}/state\"\n{pools}[[zone]]\n\
             name = \"{ZONE}\"\nfile = \"zone\"\n[zone.steer]\n{steer}\
             [admin]\naddress = \"off\"\nsocket = \"{own}/admin.sock\"\n"
        );
        let file = folder.write("zonda.toml", text);
        let (process, zonda) = start_on_free_port("zonda", &folder, &[ZONE], |_, port| {
            let mut command = Command::new(BINARY);
            command.args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--config"]);
            command.arg(&file);
            command
        });
        Self { gdnsd, zonda, _process: process, folder }
    }

    /// Sends Zonda a command about pools, which must succeed.
    pub fn pool(&self, words: &[&str]) -> String {
        let socket = self.folder.path().join("admin.sock");
        let mut command = Command::new(BINARY);
        let Output { status, stdout, stderr } =
            command.arg("pool").args(words).arg("--socket").arg(socket).output().unwrap();
        let said = String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
        assert!(status.success(), "zonda pool {words:?}: {said}");
        said
    }
}

/// Waits until something is so.
pub fn wait_until(what: &str, mut so: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(40);
    while !so() {
        assert!(Instant::now() < limit, "still not so: {what}");
        thread::sleep(Duration::from_millis(50));
    }
}
