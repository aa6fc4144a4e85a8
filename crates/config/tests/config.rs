//! What administrators see of the configuration: errors, warnings, the effective values, the
//! generated pages.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use zonda_config::{
    Action, Config, ConfigError, Flags, LoadedConfig, SECTIONS, Source, generated_files,
};

/// Loads a file of this text from an empty directory named after the test.
fn load(test: &str, text: &str) -> Result<LoadedConfig, Vec<ConfigError>> {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("zonda.toml");
    std::fs::write(&file, text).unwrap();
    Config::load(Some(&file), [], &Flags { print_config: true, ..Flags::default() })
}

/// Loads a configuration given by flags alone.
fn load_flags(listen: &[&str], zones: &[&str]) -> Result<LoadedConfig, Vec<ConfigError>> {
    let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    let flags = Flags { listen: owned(listen), zones: owned(zones), ..Flags::default() };
    Config::load(None, [], &flags)
}

/// Loads a configuration given by the environment alone.
fn load_environment(variables: &[(&str, &str)]) -> Result<LoadedConfig, Vec<ConfigError>> {
    let owned = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Config::load(None, owned, &Flags::default())
}

/// Returns all errors, a line each.
fn lines(errors: &[ConfigError]) -> String {
    errors.iter().map(|error| format!("{error}\n")).collect()
}

/// Compares with a golden file, or writes it when UPDATE is set.
fn check_golden(path: &Path, found: &str) {
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, found).unwrap();
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(found, expected, "{} differs; UPDATE=1 rewrites it", path.display());
}

/// `tests/errors/NAME.toml` is wrong in the ways that `NAME.txt` says. Its lines
/// `#! env NAME=VALUE` and `#! flag --NAME VALUE` add to what is given.
#[test]
fn every_mistake_is_reported_with_its_place_and_its_remedy() {
    let directory = Path::new("tests/errors");
    let mut cases = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let (mut environment, mut flags) = (BTreeMap::new(), Flags::default());
        for setting in text.lines().filter_map(|line| line.strip_prefix("#! ")) {
            match setting.split(' ').collect::<Vec<_>>()[..] {
                ["env", variable] => {
                    let (name, value) = variable.split_once('=').unwrap();
                    environment.insert(name.to_owned(), value.to_owned());
                }
                ["flag", "--listen", value] => flags.listen.push(value.to_owned()),
                ["flag", "--zone", value] => flags.zones.push(value.to_owned()),
                ["flag", "--steer", value] => flags.steer.push(value.to_owned()),
                ["flag", "--check", value] => flags.check = Some(value.to_owned()),
                ["flag", "--workers", value] => flags.workers = Some(value.to_owned()),
                _ => panic!("{}: {setting}", path.display()),
            }
        }
        let errors = Config::load(Some(&path), environment, &flags).unwrap_err();
        let root = std::path::absolute(directory).unwrap();
        let found = lines(&errors).replace(root.to_str().unwrap(), "ROOT");
        check_golden(&path.with_extension("txt"), &found);
        cases += 1;
    }
    assert!(cases >= 8, "only {cases} cases found");
}

#[test]
fn a_missing_file_is_reported_with_its_path() {
    let errors = Config::load(Some(Path::new("no/zonda.toml")), [], &Flags::default());
    assert_eq!(
        lines(&errors.unwrap_err()),
        "--config: cannot read no/zonda.toml: No such file or directory (os error 2); correct the \
         path, or let the server's user read the file\n"
    );
}

#[test]
fn generated_files_are_current() {
    for (path, content) in generated_files() {
        let path = Path::new("../..").join(path);
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(found == content, "{} is stale: cargo xtask generate", path.display());
    }
}

#[test]
fn the_sample_says_nothing_but_defaults() {
    let [_, (_, sample)] = generated_files();
    let sample = load("sample", &sample).unwrap().config;
    let bare = load("sample", "version = 1").unwrap().config;
    assert_eq!(sample, bare);
}

/// Whether a line begins with any of some keys.
fn begins(line: &str, keys: &[&str]) -> bool {
    keys.iter().any(|key| line.starts_with(key))
}

#[test]
fn the_sample_with_its_comments_removed_is_a_valid_configuration() {
    let [_, (_, sample)] = generated_files();
    let uncommented: String = sample
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(setting) if !setting.starts_with(' ') => format!("{setting}\n"),
            _ => format!("{line}\n"),
        })
        // of sources and tokens a file must choose one
        .filter(|line| {
            !begins(line, &["json =", "directory =", "hosts =", "catalog =", "token =", "root ="])
        })
        // these must be there, or need servers that are given by name, or another key
        .filter(|line| {
            let needy = [
                "token-file =",
                "secret-file =",
                "read-token",
                "powerdns-api-key",
                "ca-file =",
                "database =",
                "bootstrap =",
                "resolv-conf =",
                "private-names =",
                "\"NAME TYPES\"",
                "data =",
                "pool =",
                "preset =",
                "address = [\"169.254",
            ];
            !begins(line, &needy)
        })
        .collect();
    // Of the kinds of a check and the sources of a zone one must be chosen, too.
    let check = uncommented.find("[pool.check]").unwrap();
    let end = check + uncommented[check..].find("\n[").unwrap();
    let kept = ["[pool.check]", "https", "interval", "timeout", "rise", "fall", "start", "host"];
    let lines = uncommented[check..end].lines();
    let lines: Vec<_> = lines.filter(|it| kept.iter().any(|key| it.starts_with(key))).collect();
    let uncommented = [&uncommented[..check], &lines.join("\n"), &uncommented[end..]].concat();
    // A rule has one pattern, and names fall through where that is said.
    let patterns =
        ["prefix = \"old", "suffix =", "substring =", "regex = \"", "fall-through-zones ="];
    let is_kept = |line: &&str| !patterns.iter().any(|key| line.starts_with(key));
    let uncommented: String =
        uncommented.lines().filter(is_kept).map(|line| format!("{line}\n")).collect();
    // A member is an address or a name.
    let member = uncommented.find("[[pool.members]]").unwrap();
    let (before, members) = uncommented.split_at(member);
    let uncommented = before.to_owned() + &members.replacen("name = \"lb.example.net\"\n", "", 1);
    let load_with = |source: &str| {
        let mut text = uncommented.clone();
        // Of these sources no zone is changed, and none is transferred but that of a store.
        let own = ["[zone.transfer]", "[zone.history]", "[[zone.update]]"].map(str::to_owned);
        let transfer = own.into_iter().filter(|_| source != "file");
        let sources = ["forward", "store", "secondary", "members", "kubernetes", "steer"]
            .map(|word| format!("[zone.{word}]"));
        for header in sources.into_iter().filter(|it| *it != source).chain(transfer) {
            let start = text.find(&format!("\n{header}\n")).unwrap() + 1;
            let end = start + 1 + text[start + 1..].find("\n[").unwrap();
            text.replace_range(start..end, "");
        }
        // A catalog is a zone, which there is none of.
        let (start, end) = (text.find("\n[[catalog]]\n").unwrap(), text.find("\n[geo]\n").unwrap());
        text.replace_range(start..end, "");
        // The API of a cluster is reached by one of two keys, and namespaces are told by one.
        let excluded =
            ["endpoint =", "certificate-file =", "key-file =", "namespace-labels =", "pods ="];
        let lines = text.lines().filter(|line| source == "file" || !line.starts_with("file ="));
        let lines = lines.filter(|line| !excluded.iter().any(|key| line.starts_with(key)));
        load("uncommented", &lines.collect::<Vec<_>>().join("\n")).unwrap().config
    };
    let counts = |it: &Config| (it.zones.len(), it.forwards().count(), it.stores().count());
    let config = load_with("file");
    assert_eq!(counts(&config), (2, 0, 0));
    assert_eq!(config.tcp, load("uncommented", "version = 1").unwrap().config.tcp);
    assert_eq!(counts(&load_with("[zone.forward]")), (2, 1, 0));
    assert_eq!(counts(&load_with("[zone.store]")), (2, 0, 1));
    assert_eq!(load_with("[zone.kubernetes]").clusters().count(), 1);
}

#[test]
fn every_default_example_and_bound_is_sound() {
    for section in SECTIONS {
        for key in section.keys {
            assert!(!key.doc.is_empty(), "{} has no description", key.name);
            let variable = section.variable(key).filter(|it| *it != "ZONDA_GEO_DATABASE"); // a file
            let Some(variable) = variable else { continue };
            let bounds = key.range.map(|(low, high)| [low, high]).into_iter().flatten();
            for text in bounds.chain(key.default).chain(key.example) {
                let errors = load_environment(&[(&variable, text)]).err().unwrap_or_default();
                assert!(!lines(&errors).contains("cannot be"), "{}", lines(&errors));
            }
        }
    }
}

#[test]
fn pools_at_the_same_sites_share_a_map_and_a_reload_keeps_it() {
    let database = Path::new("../geo/tests/data/GeoLite2-City-Test.mmdb");
    let database = std::path::absolute(database).unwrap();
    let pool = |name: &str, steps: &str| {
        format!(
            "[[pool]]\nname = \"{name}\"\nchoose = {steps}\nmembers = [{{ address = \
             \"192.0.2.1\", site = \"fra\" }}, {{ address = \"192.0.2.2\", site = \"nyc\" }}]\n"
        )
    };
    let pools = [
        pool("a", "[\"failover\", \"nearest\", \"weighted\"]"),
        pool("b", "\"nearest\""),
        pool("c", "[\"geo\", \"nearest\"]"),
    ];
    let text = format!("version = 1\n[geo]\ndatabase = {database:?}\n{}", pools.concat());
    let maps = |config: &Config| {
        let maps = config.pools.iter().map(|pool| {
            let filters = pool.pool.filters.iter();
            let maps = filters.filter_map(|filter| match filter {
                zonda_balance::Filter::Sites(map) => Some(std::sync::Arc::as_ptr(map)),
                _ => None,
            });
            maps.collect::<Vec<_>>()
        });
        maps.collect::<Vec<_>>()
    };
    let first = load("maps", &text).unwrap().config;
    let found = maps(&first);
    assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 1]);
    assert!(found[0] == found[1] && found[1] != found[2]);
    let again = load("maps", &text).unwrap().config;
    assert_eq!(maps(&again), found);
    assert_eq!(again, first);
    assert_eq!(first.changed_locations(), None);
    let other = text.replace("[geo]", "[geo]\ndefault-site = \"nyc\"");
    assert_ne!(maps(&load("maps", &other).unwrap().config)[0], found[0]);
}

#[test]
fn variables_that_kubernetes_sets_for_a_service_are_passed_over() {
    let set = [
        ("ZONDA_SERVICE_HOST", "10.0.0.10"),
        ("ZONDA_SERVICE_PORT_DNS_TCP", "53"),
        ("ZONDA_PORT", "udp://10.0.0.10:53"),
        ("ZONDA_PORT_53_UDP_ADDR", "10.0.0.10"),
        ("ZONDA_DNS_SERVICE_HOST", "10.0.0.11"),
        ("ZONDA_DNS_PORT_53_TCP", "tcp://10.0.0.11:53"),
    ];
    assert!(load_environment(&set).is_ok());
    let slips = [("ZONDA_PORT", "53"), ("ZONDA_ADMIN_PORT", "9153"), ("ZONDA_SERVICE", "x")];
    assert_eq!(load_environment(&slips).unwrap_err().len(), 3);
}

#[test]
fn no_two_keys_share_a_variable() {
    let keys = SECTIONS.iter().flat_map(|section| section.keys.iter().map(move |k| (section, k)));
    let mut variables: Vec<String> = keys.filter_map(|(section, k)| section.variable(k)).collect();
    let all = variables.len();
    variables.sort();
    variables.dedup();
    assert_eq!(variables.len(), all);
}

#[test]
fn zones_and_listeners_as_flags_are_a_complete_configuration() {
    let zones = ["example.com=./example.com.zone", "example.org=/srv/example.org.json"];
    let config = load_flags(&["127.0.0.1:5300"], &zones).unwrap().config;
    assert_eq!(config.listeners.len(), 1);
    assert_eq!(config.listeners[0].address, "127.0.0.1:5300".parse::<SocketAddr>().unwrap());
    assert_eq!(
        config.zones.into_iter().map(|zone| (zone.name.unwrap(), zone.source)).collect::<Vec<_>>(),
        [
            ("example.com".parse().unwrap(), Source::File("./example.com.zone".into())),
            ("example.org".parse().unwrap(), Source::Json("/srv/example.org.json".into())),
        ]
    );
}

#[test]
fn an_empty_list_of_listeners_is_none_and_a_missing_one_is_the_default() {
    let addresses = |name: &str, text: &str, flags: Flags| {
        load(name, text).unwrap();
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name).join("zonda.toml");
        let loaded = Config::load(Some(&file), [], &flags).unwrap();
        let listeners = loaded.config.listeners.into_iter();
        listeners.map(|listener| listener.address.to_string()).collect::<Vec<_>>()
    };
    let none = "version = 1\nlisten = []\n";
    let one = "version = 1\n[[listen]]\naddress = \"127.0.0.1:1\"\n";
    let nowhere = || Flags { listen_nowhere: true, ..Flags::default() };
    let somewhere = || vec!["127.0.0.1:2".to_owned()];
    assert_eq!(addresses("listen-none", none, Flags::default()), [""; 0]);
    assert_eq!(addresses("listen-default", "version = 1\n", Flags::default()), ["127.0.0.1:53"]);
    assert_eq!(addresses("listen-one", one, nowhere()), [""; 0]);
    let flags = Flags { listen: somewhere(), ..nowhere() };
    assert_eq!(addresses("listen-flag", none, flags), ["127.0.0.1:2"]);
    let printed = load("listen-printed", none).unwrap().effective.unwrap().to_string();
    assert!(printed.contains("\nlisten = [] "), "{printed}");
    let printed: String = printed.lines().filter(|line| !line.starts_with("socket")).collect();
    assert!(!printed.contains("[[listen]]"), "{printed}");
}

#[test]
fn flags_win_over_the_environment_and_both_over_the_file() {
    let text = "version = 1\nworkers = 1\n[tcp]\nidle-timeout = \"3s\"\n[[zone]]\nname = \"a\"\n\
                file = \"file.zone\"\n[[listen]]\naddress = \"127.0.0.1:1\"\n";
    load("precedence", text).unwrap();
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("precedence/zonda.toml");
    let environment = [
        ("ZONDA_WORKERS", "2"),
        ("ZONDA_TCP_IDLE_TIMEOUT", "4s"),
        ("ZONDA_LISTEN", "127.0.0.1:2,127.0.0.1:3"),
    ];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let flags = Flags {
        zones: vec!["A=flag.zone".to_owned()],
        workers: Some("3".to_owned()),
        ..Flags::default()
    };
    let config = Config::load(Some(&file), environment, &flags).unwrap().config;
    let ports = config.listeners.iter().map(|listener| listener.address.port());
    assert_eq!(ports.collect::<Vec<_>>(), [2, 3]);
    assert_eq!(config.listeners[0].workers, 3);
    assert_eq!(config.tcp.idle_timeout.as_secs(), 4);
    assert_eq!(config.zones.len(), 1);
    assert_eq!(config.zones[0].source, Source::File("flag.zone".into()));
}

#[test]
fn access_lists_stand_for_their_rules() {
    let text = r#"
        version = 1
        [[listen]]
        address = "127.0.0.1:53"
        access = ["drop 192.0.2.128/25", "office"]
        [access]
        office = ["allow 192.0.2.0/24 2001:db8::/32", "refuse any"]
    "#;
    let config = load("access", text).unwrap().config;
    let access = config.listeners[0].access.as_ref().unwrap();
    let rules: Vec<_> =
        access.rules.iter().map(|rule| (rule.network.to_string(), rule.action)).collect();
    assert_eq!(
        rules,
        [
            ("192.0.2.128/25".to_owned(), Action::Drop),
            ("192.0.2.0/24".to_owned(), Action::Allow),
            ("2001:db8::/32".to_owned(), Action::Allow),
        ]
    );
    assert_eq!(access.otherwise, Action::Refuse);
}

#[test]
fn a_public_listener_without_rate_limit_is_advised_to_set_one() {
    let loaded = load_flags(&["0.0.0.0:53", "127.0.0.1:53", "10.0.0.1:53"], &[]).unwrap();
    let warnings: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "--listen: 0.0.0.0:53 can be reached from the Internet and used to flood others; \
             write `responses-per-second = 20` in [rate-limit]",
            "default: there is no zone, so every query is refused; write a [[zone]]",
        ]
    );
}

#[test]
fn a_secret_that_every_user_can_read_is_warned_about() {
    use std::os::unix::fs::PermissionsExt;
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readable");
    std::fs::create_dir_all(&directory).unwrap();
    let (file, token) = (directory.join("zonda.toml"), directory.join("token"));
    std::fs::write(&token, "correct-horse-battery\n").unwrap();
    let (in_file, beside) =
        ("token = \"correct-horse-battery\"".to_owned(), format!("token-file = {token:?}"));
    let readable = |path: &Path| format!("can read {}, which holds a secret", path.display());
    let writable = |path: &Path| format!("can change {}", path.display());
    for (text, modes, expected) in [
        (String::new(), [0o644, 0o644], vec![]),
        (in_file.clone(), [0o640, 0o644], vec![]),
        (in_file, [0o644, 0o644], vec![readable(&file)]),
        (beside.clone(), [0o644, 0o400], vec![]),
        (beside.clone(), [0o644, 0o444], vec![readable(&token)]),
        (beside, [0o666, 0o602], vec![writable(&file), writable(&token)]),
    ] {
        std::fs::write(&file, format!("version = 1\n[admin]\n{text}\n")).unwrap();
        for (path, mode) in [&file, &token].into_iter().zip(modes) {
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        }
        let loaded = Config::load(Some(&file), [], &Flags::default()).unwrap();
        let told: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
        let told: Vec<_> = told.iter().filter(|line| line.contains("every user of")).collect();
        assert_eq!(told.len(), expected.len(), "{told:?}");
        for (line, part) in told.iter().zip(&expected) {
            assert!(line.contains(part), "{line}: {part}");
        }
    }
}

#[test]
fn a_server_without_listeners_is_warned_about() {
    let loaded = load("nowhere", "version = 1\nlisten = []\n").unwrap();
    let warnings: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    let nobody = "default: `listen = []` lets nobody ask; write a [[listen]] with";
    assert!(warnings[0].starts_with(nobody), "{warnings:?}");
}

#[test]
fn a_catalog_that_any_client_may_ask_for_is_warned_about() {
    let followed = "[[zone]]\nname = \"C.example\"\nKEY[zone.secondary]\nfrom = [\"192.0.2.1\"]\n\
         [[catalog]]\nname = \"c.example\"\n";
    let made = "[[zone]]\nname = \"C.example\"\nKEY[zone.members]\n";
    let plain = "[[zone]]\nname = \"C.example\"\nKEY[zone.secondary]\nfrom = [\"192.0.2.1\"]\n";
    let closed =
        "[[listen]]\naddress = \"127.0.0.1:53\"\naccess = [\"allow ::1\", \"refuse any\"]\n";
    let warned = |more: &str, text: &str, key: &str| {
        let text = format!("version = 1\n{more}{}", text.replace("KEY", key));
        let loaded = load("open-catalog", &text).unwrap();
        let told = loaded.warnings.iter().map(ToString::to_string);
        told.filter(|it| it.contains("which zones the catalog c.example. lists")).count()
    };
    for text in [followed, made] {
        assert_eq!(warned("", text, ""), 1, "{text}");
        assert_eq!(warned("", text, "access = \"refuse any\"\n"), 0, "{text}");
        assert_eq!(warned("", text, "access = \"allow any\"\n"), 0, "it is meant: {text}");
        assert_eq!(warned(closed, text, ""), 0, "the listener says who may ask: {text}");
    }
    assert_eq!(warned("", plain, ""), 0);
}

#[test]
fn the_effective_configuration_names_each_origin_and_hides_secrets() {
    let text = r#"
version = 1
workers = 2
[[listen]]
address = "127.0.0.1:5300"
udp = false
[edns]
cookie-secrets = ["000102030405060708090a0b0c0d0e0f"]
[access]
office = "allow any"
[admin]
socket = "/run/zonda/zonda.sock"
"#;
    let printed = load("effective", text).unwrap().effective.unwrap().to_string();
    let directory = format!("{}/effective/", env!("CARGO_TARGET_TMPDIR"));
    check_golden(Path::new("tests/effective.txt"), &printed.replace(&directory, ""));
    assert!(!printed.contains("0001020304"));
}

#[test]
fn a_printed_configuration_loads_as_it_was() {
    let text = "version = 1\n[[listen]]\naddress = \"[::1]:53\"\nsend-buffer = \"2 MiB\"\n\
                access = [\"allow ::1\", \"drop any\"]\n[identity]\nversion = 'a \"quoted\" \\'\n\
                server-id = \"a\\nb\"\n\
                [metrics]\nzones = [\"a\", \"b\"]\n";
    let once = load("printed", text).unwrap();
    let twice = load("printed", &once.effective.unwrap().to_string()).unwrap();
    assert_eq!(once.config, twice.config);
}

#[test]
fn a_reload_takes_over_zones_and_names_the_sections_that_wait_for_a_restart() {
    let zone = |name: &str| format!("[[zone]]\nname = \"{name}\"\nfile = \"{name}.zone\"\n");
    let before = format!("version = 1\n{}{}", zone("a"), zone("b"));
    let after = format!("version = 1\n{}{}[log]\nformat = \"json\"\n", zone("b"), zone("c"));
    let mut config = load("changes", &before).unwrap().config;
    let after = load("changes", &after).unwrap().config;
    let format = config.log.format;
    assert_eq!(config.restart_sections(&after), ["[log]"]);
    config.take_over(after.clone());
    assert_eq!(config.zones, after.zones);
    assert_eq!(config.log.format, format);
}

#[test]
fn a_reload_takes_over_the_level_of_the_log_the_query_log_and_the_bounds_of_tcp() {
    let mut config = load("logs", "version = 1\n").unwrap().config;
    let after = "version = 1\n[log]\nlevel = \"debug\"\n[query-log]\noutput = \"stdout\"\n\
                 [tcp]\nidle-timeout = \"3s\"\n";
    let after = load("logs", after).unwrap().config;
    assert!(config.restart_sections(&after).is_empty());
    config.take_over(after.clone());
    assert_eq!((&config.log, &config.query_log), (&after.log, &after.query_log));
    assert_eq!(config.tcp, after.tcp);
}

#[test]
fn of_the_cache_a_restart_is_needed_for_its_memory_and_its_file_alone() {
    let load = |keys: &str| load("cache", &format!("version = 1\n[cache]\n{keys}")).unwrap().config;
    let mut config = load("bytes = \"2 MiB\"\nttl-max = \"1h\"");
    let after = load("bytes = \"2 MiB\"\nttl-max = \"2h\"\nnxdomain-cut = false");
    assert!(config.restart_sections(&after).is_empty());
    let resized = load("ttl-max = \"2h\"\nnxdomain-cut = false");
    assert_eq!(config.restart_sections(&resized), ["[cache]"]);
    config.take_over(resized);
    assert_eq!(config.cache, after.cache, "the memory stays");
}

#[test]
fn a_reload_takes_over_some_keys_of_the_top_and_of_the_interface_and_names_the_others() {
    let load = |keys: &str| load("keys", &format!("version = 1\n{keys}\n")).unwrap().config;
    for keys in [
        "watch = true",
        "watch-interval = \"1h\"",
        "[admin]\nhealth = [\"127.0.0.1:8080\"]",
        "[admin]\nready = [\"127.0.0.1:8181\"]",
        "[admin]\nmetrics = [\"127.0.0.1:9154\"]",
        "[admin]\nlameduck = \"5s\"",
    ] {
        let (mut config, after) = (load(""), load(keys));
        assert!(config != after && config.restart_sections(&after).is_empty(), "{keys}");
        config.take_over(after.clone());
        assert!(config == after, "{keys}");
    }
    for (keys, section) in [
        ("user = \"nobody\"", ""),
        ("flush-interval = \"1h\"", ""),
        ("state = \"/var/lib/other\"", ""),
        ("[admin]\naddress = \"127.0.0.1:9154\"", "[admin]"),
        ("[admin]\ntoken = \"0123456789abcdef\"", "[admin]"),
        ("[admin]\nbind-statistics = \"127.0.0.1:8053\"", "[admin]"),
        ("[admin]\nsocket = \"/run/other.sock\"", "[admin]"),
    ] {
        let (mut config, after) = (load(""), load(keys));
        assert_eq!(config.restart_sections(&after), [section], "{keys}");
        config.take_over(after);
        assert!(config == load(""), "{keys}");
    }
}

/// Returns how the first forwarded zone is forwarded.
fn upstream_keys(config: &Config) -> &zonda_config::ForwardKeys {
    &config.forwards().next().unwrap().1.keys
}

#[test]
fn a_zone_may_be_answered_by_other_servers() {
    let text = "version = 1\n[[zone]]\nname = \"Example.com\"\nforward.to = \"192.0.2.1:5353\"\n\
                [[zone]]\nname = \".\"\naccess = \"allow any\"\n[zone.forward]\n\
                to = [\"192.0.2.2\", \"2001:db8::1\"]\ntimeout = \"2s\"\n";
    let config = load("forward", text).unwrap().config;
    let forwards: Vec<_> = config.forwards().collect();
    let [(example, to_one), (root, to_two)] = forwards[..] else { panic!("{:?}", config.zones) };
    assert_eq!(example.name, Some("example.com".parse().unwrap()));
    assert_eq!(to_one.keys.to, ["192.0.2.1:5353".parse().unwrap()]);
    let access = example.access.as_ref().unwrap();
    assert_eq!(access.otherwise, Action::Refuse, "other clients are refused by default");
    assert!(access.rules.iter().all(|rule| rule.action == Action::Allow));
    assert_eq!(to_two.keys.to.len(), 2);
    assert_eq!(to_two.keys.timeout, std::time::Duration::from_secs(2));
    assert_eq!(root.access.as_ref().unwrap().otherwise, Action::Allow);
}

#[test]
fn forwarded_zones_answer_private_networks_only_by_default() {
    let text = "version = 1\n[[zone]]\nname = \".\"\nforward.to = \"192.0.2.1\"\n";
    let access = load("strangers", text).unwrap().config.zones[0].access.clone().unwrap();
    let action = |client: &str| {
        let client = client.parse().unwrap();
        let rule = access.rules.iter().find(|rule| rule.network.contains(client));
        rule.map_or(access.otherwise, |rule| rule.action)
    };
    // The first and the last address of each network.
    for client in [
        "10.0.0.0",
        "10.255.255.255",
        "127.0.0.0",
        "127.255.255.255",
        "169.254.0.0",
        "169.254.255.255",
        "172.16.0.0",
        "172.31.255.255",
        "192.168.0.0",
        "192.168.255.255",
        "::1",
        "fc00::",
        "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        "fe80::",
        "febf:ffff::1",
    ] {
        assert_eq!(action(client), Action::Allow, "{client}");
    }
    // Neighbouring networks, and other ones.
    for client in [
        "9.255.255.255",
        "11.0.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.1",
        "192.167.255.255",
        "192.169.0.0",
        "0.0.0.0",
        "8.8.8.8",
        "100.64.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::2",
        "fbff:ffff::1",
        "fe00::",
        "fe7f:ffff::1",
        "fec0::",
        "2001:db8::",
        "ff02::1",
    ] {
        assert_eq!(action(client), Action::Refuse, "{client}");
    }
}

#[test]
fn no_server_of_a_list_is_left_out_in_silence() {
    let servers = |count: u8| {
        let forward = (1..=count).map(|octet| format!("192.0.2.{octet},")).collect::<String>();
        Config::load(None, [], &Flags { forward: Some(forward), ..Flags::default() })
    };
    assert_eq!(upstream_keys(&servers(64).unwrap().config).to.len(), 64);
    assert!(servers(65).unwrap_err()[0].to_string().contains("at most 64"));
}

#[test]
fn servers_to_forward_to_can_be_given_without_a_file() {
    let forward = Some("192.0.2.1,192.0.2.2:54".to_owned());
    let by_flag = Config::load(None, [], &Flags { forward, ..Flags::default() }).unwrap().config;
    let by_variable = load_environment(&[("ZONDA_FORWARD", "192.0.2.1,192.0.2.2:54")]).unwrap();
    assert_eq!(by_flag.zones, by_variable.config.zones);
    assert_eq!(by_flag.zones[0].name, Some(".".parse().unwrap()));
    assert_eq!(upstream_keys(&by_flag).to.len(), 2);
}

#[test]
fn files_that_name_servers_stand_beside_addresses_in_a_flag_and_follow_changes() {
    let file = std::env::temp_dir().join(format!("zonda-servers-{}", std::process::id()));
    std::fs::write(&file, "nameserver 192.0.2.1\nnameserver 192.0.2.7 # twice\n").unwrap();
    let forward = Some(format!("192.0.2.1,{}", file.display()));
    let flags = Flags { forward, ..Flags::default() };
    let config = Config::load(None, [], &flags).unwrap().config;
    let servers = |config: &Config| {
        let to = upstream_keys(config).to.iter().map(ToString::to_string);
        to.collect::<Vec<_>>()
    };
    assert_eq!(servers(&config), ["192.0.2.1", "192.0.2.7"]);
    assert_eq!(config.changed_server_files(), None);
    for (text, wrong) in
        [("nameserver 192.0.2.8\n", 0), ("nameserver\n", 1), ("nameserver 127.0.0.1", 1)]
    {
        std::fs::write(&file, format!("# {text}{text}")).unwrap();
        assert!(config.changed_server_files().is_some());
        let (present, errors) = config.with_present_servers();
        assert_eq!(errors.len(), wrong, "{errors:?}");
        let expected = if wrong == 0 { "192.0.2.8" } else { "192.0.2.7" };
        assert_eq!(servers(&present), ["192.0.2.1", expected]);
    }
    std::fs::remove_file(&file).unwrap();
    assert!(!config.with_present_servers().1.is_empty());
}

#[test]
fn a_cluster_is_named_by_a_flag_and_listens_on_all_addresses_in_a_pod() {
    let flags = Flags { kubernetes: Some("cluster.local".to_owned()), ..Flags::default() };
    let load = |variables: &[(&str, &str)]| {
        let variables = variables.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        Config::load(None, variables, &flags).unwrap().config
    };
    let addresses = |config: &Config| {
        config.listeners.iter().map(|it| it.address.to_string()).collect::<Vec<_>>()
    };
    let in_pod = load(&[("KUBERNETES_SERVICE_HOST", "10.0.0.1")]);
    assert_eq!(addresses(&in_pod), ["0.0.0.0:53", "[::]:53"]);
    assert_eq!(addresses(&load(&[])), ["127.0.0.1:53"]);
    let (zone, cluster) = in_pod.clusters().next().unwrap();
    assert_eq!(zone.name, Some("cluster.local".parse().unwrap()));
    assert!(cluster.reverse.len() == 5 && cluster.fall_through);
    let by_variable = load_environment(&[("ZONDA_KUBERNETES", "cluster.local")]).unwrap();
    assert_eq!(by_variable.config.zones, in_pod.zones);
}

#[test]
fn a_server_that_is_given_twice_is_an_error_also_in_a_flag() {
    let forward = Some("192.0.2.1,192.0.2.1:53".to_owned());
    let errors = Config::load(None, [], &Flags { forward, ..Flags::default() }).unwrap_err();
    let told = "--forward: 192.0.2.1 is given twice, but is one server; keep one of them\n";
    assert_eq!(lines(&errors), told);
}

#[test]
fn a_bound_of_all_that_wait_may_be_below_the_default_of_those_for_one_answer() {
    let text = "version = 1\n[forwarding]\nwaiting-max = 500\n";
    let forwarding = load("waiting", text).unwrap().config.forwarding;
    assert_eq!((forwarding.waiting_max, forwarding.waiting_per_answer_max), (500, 1024));
    let errors = load("waiting", &format!("{text}waiting-per-answer-max = 501\n")).unwrap_err();
    assert!(lines(&errors).contains("`waiting-per-answer-max` is above `waiting-max`"));
    let given = [("ZONDA_FORWARDING_WAITING_PER_ANSWER_MAX", "20000")];
    assert!(lines(&load_environment(&given).unwrap_err()).contains("is above `waiting-max`"));
}

#[test]
fn nested_tables_are_printed_behind_their_element() {
    let text = "version = 1\n[[zone]]\nname = \"a\"\nforward.to = \"192.0.2.1\"\n\
                [[zone]]\nname = \"b\"\nforward.to = \"192.0.2.2\"\n";
    let loaded = load("nested", text).unwrap();
    let printed = loaded.effective.unwrap().to_string();
    let places: Vec<_> = ["\"a\"", "192.0.2.1", "\"b\"", "192.0.2.2", "[tcp]"]
        .map(|text| printed.find(text).unwrap())
        .into();
    assert!(places.is_sorted(), "{printed}");
    let again = load("nested-again", &printed).unwrap().config;
    let sources = |config: &Config| {
        config.zones.iter().map(|zone| (zone.name.clone(), zone.source.clone())).collect::<Vec<_>>()
    };
    assert_eq!(sources(&again), sources(&loaded.config));
}

#[test]
fn the_secret_of_a_key_is_printed_nowhere() {
    let text = "version = 1\n[[key]]\nname = \"Transfer.Example\"\nsecret = \"c2VjcmV0c2VjcmV0\"\n\
                [[zone]]\nname = \"example.com\"\nfile = \"zone\"\n\
                transfer = { to = [\"192.0.2.0/24 key TRANSFER.example\"] }\n";
    let loaded = load("secret", text).unwrap();
    let config = &loaded.config;
    assert_eq!(config.keys[0].secret.reveal(), b"secretsecret");
    let transfers = &config.zones[0].access.as_ref().unwrap().transfers;
    assert_eq!((transfers.history.versions, transfers.history.bytes), (100, 64 << 20));
    assert_eq!(transfers.to[0].key.as_ref(), Some(&config.keys[0].name));
    let printed = loaded.effective.unwrap().to_string();
    let warned: String = loaded.warnings.iter().map(|it| format!("{it:?}")).collect();
    for text in [printed, warned, format!("{config:?}")] {
        assert!(!text.contains("c2VjcmV0") && !text.contains("secretsecret"), "{text}");
    }
}

/// The limits of a catalog with a section for all members and one for a group, each with more keys.
fn catalog_limits(all: &str, group: &str) -> (u8, u32) {
    let text = format!(
        "version = 1\n[[zone]]\nname = \"c.example\"\n[zone.secondary]\nfrom = [\"192.0.2.1\"]\n\
         [[catalog]]\nname = \"c.example\"\n{all}\n[[catalog]]\nname = \"C.example\"\n\
         groups = [\"g\"]\n{group}\n"
    );
    let catalogs = load("catalog-limits", &text).unwrap().config.catalogs;
    assert_eq!((catalogs.len(), catalogs[0].templates.len()), (1, 2));
    (catalogs[0].removals_max, catalogs[0].members_max)
}

#[test]
fn what_one_section_of_a_catalog_says_of_the_whole_outranks_the_defaults_of_the_rest() {
    assert_eq!(catalog_limits("", ""), (10, 200_000));
    for keys in [("removals-max = \"5 %\"\nmembers-max = 7", ""), ("", "removals-max = \"5 %\"")] {
        assert_eq!(catalog_limits(keys.0, keys.1).0, 5, "{keys:?}");
        assert_eq!(catalog_limits(keys.1, keys.0).0, 5, "{keys:?}");
    }
    let both = "removals-max = \"40 %\"\nmembers-max = 9";
    assert_eq!(catalog_limits(both, "members-max = 9"), (40, 9));
}
