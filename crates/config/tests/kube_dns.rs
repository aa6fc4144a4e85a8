//! The ConfigMap of kube-dns: what of it is in force, and how it is followed.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use zonda_config::{Config, Flags};

/// A ConfigMap as Kubernetes mounts it, and a configuration that follows it.
struct Mount {
    directory: PathBuf,
    version: u32,
}

impl Mount {
    /// An empty ConfigMap in a directory named after the test.
    fn new(test: &str) -> Self {
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).unwrap();
        let mut mount = Self { directory, version: 0 };
        mount.put(&[]);
        mount
    }

    /// Replaces the files as the kubelet does: by one rename of a symbolic link.
    fn put(&mut self, files: &[(&str, &str)]) {
        self.version += 1;
        let version = format!("..version_{}", self.version);
        fs::create_dir(self.directory.join(&version)).unwrap();
        for (name, text) in files {
            fs::write(self.directory.join(&version).join(name), text).unwrap();
            let _ = symlink(Path::new("..data").join(name), self.directory.join(name));
        }
        symlink(&version, self.directory.join("..data_tmp")).unwrap();
        fs::rename(self.directory.join("..data_tmp"), self.directory.join("..data")).unwrap();
    }

    /// Loads a configuration that follows the ConfigMap, with these lines; its warnings as well.
    fn load(&self, more: &str) -> (Config, Vec<String>) {
        let file = self.directory.with_extension("toml");
        let directory = self.directory.display();
        let text = format!("version = 1\n[kube-dns]\nconfig-map = \"{directory}\"\n{more}\n");
        fs::write(&file, text).unwrap();
        let loaded = Config::load(Some(&file), [], &Flags::default()).unwrap();
        let own = format!("{directory}");
        let told = loaded.warnings.iter().map(ToString::to_string);
        let told = told.filter_map(|line| Some(line.split_once(&own)?.1.to_owned()));
        (loaded.config, told.collect())
    }

    /// Reads the ConfigMap again; what of it is not in force as well.
    fn read_again(&self, config: &Config) -> (Config, Vec<String>) {
        assert!(config.has_changed_config_map());
        let (config, errors) = config.with_present_config_map();
        assert!(!config.has_changed_config_map());
        let own = self.directory.display().to_string();
        (config, errors.iter().map(|error| error.to_string().replace(&own, "")).collect())
    }
}

/// The forwarded zones and their upstreams.
fn forwards(config: &Config) -> Vec<String> {
    let mut all: Vec<String> = config
        .forwards()
        .map(|(zone, forward)| {
            let to: Vec<String> = forward.keys.to.iter().map(ToString::to_string).collect();
            format!("{} {}", zone.name.as_ref().unwrap(), to.join(" "))
        })
        .collect();
    all.sort();
    all
}

const STUBS: &str =
    "{\"acme.local\": [\"10.0.0.1\"], \"Corp.Example\": [\"10.0.0.2:5353\", \"fd00::1\"]}";

#[test]
fn stub_domains_are_forwarded_and_upstreams_replace_those_of_all_other_names() {
    let mut mount = Mount::new("stub_domains");
    mount.put(&[("stubDomains", STUBS), ("upstreamNameservers", "[\"192.0.2.1\", \"192.0.2.2\"]")]);
    let (config, told) = mount.load(
        "[[zone]]\nname = \".\"\naccess = [\"allow any\"]\n[zone.forward]\nto = [\"192.0.2.9\"]\n\
         timeout = \"3s\"",
    );
    assert!(told.is_empty(), "{told:?}");
    let all =
        [". 192.0.2.1 192.0.2.2", "acme.local. 10.0.0.1", "corp.example. 10.0.0.2:5353 fd00::1"];
    assert_eq!(forwards(&config), all);
    let root = config.forwards().find(|(_, it)| it.keys.to[0].to_string() == "192.0.2.1").unwrap();
    assert_eq!(root.1.keys.timeout.as_secs(), 3, "how upstreams are asked stays");
    assert!(config.zones.iter().all(|zone| zone.access == root.0.access));

    mount.put(&[("stubDomains", "{\"acme.local\": [\"10.0.0.3\"]}")]);
    let (config, told) = mount.read_again(&config);
    assert!(told.is_empty(), "{told:?}");
    assert_eq!(forwards(&config), [". 192.0.2.9", "acme.local. 10.0.0.3"]);
    mount.put(&[]);
    let (config, _) = mount.read_again(&config);
    assert_eq!(forwards(&config), [". 192.0.2.9"]);
}

#[test]
fn a_config_map_that_cannot_be_used_changes_nothing_and_is_told_with_its_place() {
    let mut mount = Mount::new("broken");
    mount.put(&[("stubDomains", STUBS), ("upstreamNameservers", "[\"192.0.2.1\"]")]);
    let (config, _) = mount.load("");
    let before = forwards(&config);
    for (file, text, error) in [
        ("stubDomains", "{\n  \"a.local\": [\"10.0.0.1\"],\n}", "/stubDomains:3:1: trailing comma"),
        ("stubDomains", "{\"a.local\": \"10.0.0.1\"}", "/stubDomains:1:22: invalid type"),
        ("stubDomains", "{\n\"a.local\": [\n \"10.0.0.1\", 7]}", "/stubDomains:3:14: invalid type"),
        ("stubDomains", "{\n \"ä..b\": [\"10.0.0.1\"]}", "/stubDomains:2:10: \"ä..b\" is no zone"),
        ("stubDomains", "{\".\": [\"10.0.0.1\"]}", "/stubDomains:1:7: \".\" is no zone to forward"),
        ("stubDomains", "{\"a\": [\"1.1.1.1\"], \"A\": [\"1.1.1.1\"]}", "is given twice"),
        ("stubDomains", "{\"a\": []}", "/stubDomains:1:7: "),
        ("stubDomains", "{\"a\": [\"10.0.0.1:x\"]}", "/stubDomains:1:7: `to` cannot be"),
        ("stubDomains", "{\"a\": [\"127.0.0.1\"]}", "/stubDomains:1:7: 127.0.0.1 is this server"),
        ("stubDomains", "{\"a\": [\"dns.example\"]}", "`bootstrap`"),
        ("stubDomains", "{\"a\": [\"1.1.1.1,1.1.1.2\"]}", "is not one server"),
        ("upstreamNameservers", "[\"1.1.1.1\"", "/upstreamNameservers:1:10: EOF"),
        (
            "upstreamNameservers",
            " [\"1.1.1.1\",\"1.1.1.2\",\"1.1.1.3\",\"1.1.1.4\"]",
            "/upstreamNameservers:1:2: keep at most 3 upstreams",
        ),
    ] {
        mount.put(&[(file, text)]);
        let (now, told) = mount.read_again(&config);
        assert_eq!(told.len(), 1, "{text}: {told:?}");
        assert!(told[0].contains(error), "{text}: {told:?}");
        assert_eq!(forwards(&now), before, "{text}");
        assert!(now.kube_dns.as_ref().unwrap().is_broken());

        // A reload reads the whole configuration anew, and has what was in force as well.
        let (mut reloaded, told) = mount.load("");
        assert!(told[0].contains(error), "{text}: {told:?}");
        assert!(forwards(&reloaded).is_empty());
        reloaded.keep_config_map_of(&now);
        assert_eq!(forwards(&reloaded), before, "{text}");
    }
    mount.put(&[("upstreamNameservers", "  \n")]);
    let (config, told) = mount.read_again(&config);
    assert!(told.is_empty() && forwards(&config).is_empty(), "{told:?}");
}

#[test]
fn a_zone_of_the_configuration_itself_counts_and_the_rest_of_the_config_map_is_in_force() {
    let mut mount = Mount::new("taken");
    mount.put(&[("stubDomains", STUBS)]);
    let zone = "[[zone]]\nname = \"ACME.local\"\n[zone.forward]\nto = [\"192.0.2.9\"]";
    let (config, told) = mount.load(zone);
    let taken = "/stubDomains:1:16: acme.local. is a zone of the server's own configuration";
    assert!(told.len() == 1 && told[0].contains(taken), "{told:?}");
    let all = ["acme.local. 192.0.2.9", "corp.example. 10.0.0.2:5353 fd00::1"];
    assert_eq!(forwards(&config), all);
}

#[test]
fn servers_that_are_given_by_name_are_looked_up_at_the_bootstrap_servers() {
    let mut mount = Mount::new("named");
    let text =
        "{\"acme.local\": [\"consul.default.svc.cluster.local\"], \"b.local\": [\"10.0.0.1\"]}";
    mount.put(&[("stubDomains", text)]);
    let (config, told) = mount.load("bootstrap = [\"10.96.0.10\"]");
    assert!(told.is_empty(), "{told:?}");
    let bootstraps: Vec<usize> =
        config.forwards().map(|(_, forward)| forward.keys.bootstrap.len()).collect();
    assert_eq!(bootstraps, [1, 0]);
}
