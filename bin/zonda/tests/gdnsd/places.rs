//! Which members answer clients at which places: the plugin `geoip`, with maps of places, by
//! distance, and with networks, beside the steps `geo` and `nearest` of pools.

use super::beside::{Configurations, ServerPair, ZONE};
use super::clients::{Answers, Differences, subnet};
use super::resources::{DOWN, Member};
use std::fmt::Write as _;
use std::net::IpAddr;
use zonda_testkit::Message;
use zonda_testkit::differential::Part;
use zonda_testkit::generate::Random;

/// How many clients ask both servers.
const CLIENTS: usize = 50_000;
/// A database that both servers have, of MaxMind's test data.
const DATABASE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/geo/tests/data/GeoLite2-City-Test.mmdb");
/// The networks that the database knows the location of.
const NETWORKS: &str = include_str!("networks.txt");
/// Where gdnsd looks for an IPv4 address in one of IPv6, so that no scope of another answer spans
/// such a space: compatible, mapped, translated, NAT64, Teredo, 6to4.
const TUNNELS: [&str; 6] =
    ["::/96", "::ffff:0.0.0.0/96", "::ffff:0:0:0/96", "64:ff9b::/96", "2001::/32", "2002::/16"];
/// Clients within a scope that is wider than gdnsd's that are asked for whether it is right.
const WITHIN: usize = 24;

/// The sites of Zonda's, in TOML. Each serves what the map of places says of it below: a site
/// serves a country before another one serves the continent.
const SITES: &str = r#"[geo]
default-site = "de"
networks = [
  { prefix = "10.0.0.0/8", site = "us" }, { prefix = "10.1.0.0/16", site = "jp" },
  { prefix = "10.1.2.0/24", site = "gb" }, { prefix = "89.160.20.192/26", site = "jp" },
  { prefix = "2001:db8:1::/48", site = "jp" }, { prefix = "2a02:d500::/29", site = "us" },
]
[[geo.sites]]
name = "us"
latitude = 38.9
longitude = -77.0
countries = ["US"]
continents = ["NA", "SA"]
[[geo.sites]]
name = "de"
latitude = 50.1
longitude = 8.7
continents = ["EU", "AF"]
[[geo.sites]]
name = "gb"
latitude = 51.5
longitude = -0.1
countries = ["GB", "IE"]
subdivisions = ["SE-E"]
[[geo.sites]]
name = "jp"
latitude = 35.7
longitude = 139.7
countries = ["JP", "RU"]
continents = ["AS", "OC"]
"#;
/// What gdnsd's maps have in common: where no location is known, the site that Zonda has as the
/// default comes first, and then all in the order of their priorities.
const CENTRES: &str = "datacenters => [ de, us, gb, jp ]";
/// The map of places: the site that serves the smallest part of the place, those that serve larger
/// parts, the default site, and all.
const PLACES: &str = "map => {
        default => [ de, us, gb, jp ], NA => [ us, de, gb, jp ], SA => [ us, de, gb, jp ],
        AF => [ de, us, gb, jp ], AS => [ jp, de, us, gb ], OC => [ jp, de, us, gb ],
        EU => {
          default => [ de, us, gb, jp ], GB => [ gb, de, us, jp ], IE => [ gb, de, us, jp ],
          RU => [ jp, de, us, gb ],
          SE => { default => [ de, us, gb, jp ], E => [ gb, de, us, jp ] }
        }
      }";
/// Clients of networks, in the map of places: as clients of the place of their site.
const NETS_BY_PLACE: &str = "nets => {
        10.0.0.0/8 => [ us, de, gb, jp ], 10.1.0.0/16 => [ jp, de, us, gb ],
        10.1.2.0/24 => [ gb, de, us, jp ], 89.160.20.192/26 => [ jp, de, us, gb ],
        2001:db8:1::/48 => [ jp, de, us, gb ], 2a02:d500::/29 => [ us, de, gb, jp ]
      }";
/// The places of the sites; all of them answer in the order of their distances.
const DISTANCES: &str = "auto_dc_limit => 0, auto_dc_coords => {
        us => [ 38.9, -77.0 ], de => [ 50.1, 8.7 ], gb => [ 51.5, -0.1 ], jp => [ 35.7, 139.7 ]
      }";
/// Clients of networks, by distance: their site, and then those that are near to it.
const NETS_BY_DISTANCE: &str = "nets => {
        10.0.0.0/8 => [ us, gb, de, jp ], 10.1.0.0/16 => [ jp, de, gb, us ],
        10.1.2.0/24 => [ gb, de, us, jp ], 89.160.20.192/26 => [ jp, de, gb, us ],
        2001:db8:1::/48 => [ jp, de, gb, us ], 2a02:d500::/29 => [ us, gb, de, jp ]
      }";

/// A name whose members are at the four sites.
#[derive(Clone)]
struct PlaceName {
    name: String,
    /// Whether members of one site alone are up: then all clients get the same answer.
    has_one_site: bool,
    /// Whether the members at a site are a pool that may draw one of them.
    draws: bool,
}

/// Adds names whose members are at the four sites, two of them at one, for every combination of
/// their states. Filters behind `step` order the members within the site, and all members where no
/// site is left.
fn add_names(
    configurations: &mut Configurations,
    (kind, step, map): (&str, &str, &str),
    plugin: u8,
) -> Vec<PlaceName> {
    let mut names = Vec::new();
    for states in 0..32_u32 {
        let name = format!("{kind}{states}");
        let members: Vec<Member> =
            (0..5).map(|it| Member::v4(plugin, states as usize, it)).collect();
        note_states(configurations, &members);
        let [first, second, de, gb, jp] = [0, 1, 2, 3, 4].map(|it| &*members[it].address);
        configurations.resource(
            "geoip",
            &format!(
                "{name} => {{ map => {map}, service_types => told, up_thresh => 0.01, dcmap => {{ \
                 us => {{ a => {first}, b => {second} }}, de => {de}, gb => {gb}, jp => {jp} }} }}"
            ),
        );
        let sites = [("us", 1), ("us", 1), ("de", 2), ("gb", 3), ("jp", 4)];
        let member = |(it, (site, rank)): (&Member, (&str, u32))| {
            format!("{{ address = \"{}\", site = \"{site}\", priority = {rank} }}", it.address)
        };
        let members: Vec<String> = members.iter().zip(sites).map(member).collect();
        let keys = format!("choose = [\"{step}\", \"failover\"]\nanswers = \"all\"");
        configurations.pool(&name, (60, 5), &keys, &members);
        configurations.steer(&name, (60, 5), &format!("DYNA geoip!{name}"));
        let up = [states & 3 != 3, states & 4 == 0, states & 8 == 0, states & 16 == 0];
        let has_one_site = up.iter().filter(|is_up| **is_up).count() == 1;
        names.push(PlaceName { name, has_one_site, draws: false });
    }
    names
}

/// Adds names whose members at two of the sites are pools: one draws by weight, one fails over.
fn add_trees(configurations: &mut Configurations, step: &str, map: &str) -> Vec<PlaceName> {
    let mut names = Vec::new();
    for states in 0..64_u32 {
        let name = format!("tree{states}");
        let members: Vec<Member> = (0..6).map(|it| Member::v4(8, states as usize, it)).collect();
        note_states(configurations, &members);
        let [us, us_too, de, de_too, gb, jp] = [0, 1, 2, 3, 4, 5].map(|it| &*members[it].address);
        configurations.resource(
            "weighted",
            &format!(
                "{name}us => {{ service_types => told, up_thresh => 0.01, a => [ {us}, 1 ], \
                 b => [ {us_too}, 3 ] }}"
            ),
        );
        configurations.resource(
            "simplefo",
            &format!(
                "{name}de => {{ service_types => told, primary => {de}, secondary => {de_too} }}"
            ),
        );
        configurations.resource(
            "geoip",
            &format!(
                "{name} => {{ map => {map}, service_types => told, up_thresh => 0.01, dcmap => {{ \
                 us => %weighted!{name}us, de => %simplefo!{name}de, gb => {gb}, jp => {jp} }} }}"
            ),
        );
        let (weighted, failover) = ("choose = [\"weighted\"]", "choose = [\"failover\"]");
        let pair = |members: [&str; 2], keys: [&str; 2]| {
            let member = |(it, key)| format!("{{ address = \"{it}\", {key} }}");
            members.into_iter().zip(keys).map(member).collect::<Vec<_>>()
        };
        let of_us = pair([us, us_too], ["weight = 1", "weight = 3"]);
        configurations.pool(&format!("{name}us"), (60, 5), weighted, &of_us);
        let of_de = pair([de, de_too], ["priority = 1", "priority = 2"]);
        configurations.pool(&format!("{name}de"), (60, 5), failover, &of_de);
        let list = [
            format!("{{ pool = \"{name}us\", site = \"us\", priority = 1 }}"),
            format!("{{ pool = \"{name}de\", site = \"de\", priority = 2 }}"),
            format!("{{ address = \"{gb}\", site = \"gb\", priority = 3 }}"),
            format!("{{ address = \"{jp}\", site = \"jp\", priority = 4 }}"),
        ];
        let keys = format!("choose = [\"{step}\", \"failover\"]");
        configurations.pool(&name, (60, 5), &keys, &list);
        configurations.steer(&name, (60, 5), &format!("DYNA geoip!{name}"));
        let up = [states & 3 != 3, states & 12 != 12, states & 16 == 0, states & 32 == 0];
        let has_one_site = up.iter().filter(|is_up| **is_up).count() == 1;
        names.push(PlaceName { name, has_one_site, draws: true });
    }
    names
}

/// Tells gdnsd which members are down.
fn note_states(configurations: &mut Configurations, members: &[Member]) {
    for member in members.iter().filter(|it| it.is_down) {
        let _ = writeln!(configurations.states, "{} => DOWN", member.address);
    }
}

/// What an answer must have in common with gdnsd's: all of it, or of the pool that may draw, the
/// first two members of [`add_trees`], that it is one of them and in which state; and the TTLs.
fn answer_of(reply: &Message, draws: bool) -> String {
    let whole = || Part::Answer.of(reply).unwrap_or_default();
    let [record] = &reply.answer[..] else { return whole() };
    let last: usize = record.data.text.rsplit('.').next().unwrap().parse().unwrap();
    match draws && last % 100 <= 2 {
        true => format!("{} of those that draw, down: {}", record.ttl, last > 100),
        false => whole(),
    }
}

/// Both servers with these names of pools of places.
fn start(configurations: &Configurations) -> ServerPair {
    let pair = ServerPair::start(configurations);
    pair.pool(&["down", DOWN[0]]);
    pair
}

/// A network of clients: an address from its highest bit on, and a length.
#[derive(Clone, Copy)]
struct Network {
    is_v4: bool,
    address: u128,
    length: u8,
}

impl Network {
    fn parse(text: &str) -> Self {
        let (address, length) = text.trim().split_once('/').unwrap();
        let length = length.parse().unwrap();
        match address.parse().unwrap() {
            IpAddr::V4(it) => {
                Self { is_v4: true, address: u128::from(u32::from(it)) << 96, length }
            }
            IpAddr::V6(it) => Self { is_v4: false, address: it.into(), length },
        }
    }

    /// The bits of an address of the family.
    fn bits(self) -> u8 {
        if self.is_v4 { 32 } else { 128 }
    }

    /// A random client in the network or beside it, and the length of the network that is told of
    /// it.
    fn client(self, random: &mut Random) -> Self {
        let noise = u128::from(random.bits()) << 64 | u128::from(random.bits());
        let below = noise.checked_shr(self.length.into()).unwrap_or(0);
        // Now and then one of the last bits of the prefix is another one.
        let last_bits = random.below(self.length.clamp(1, 8).into()) as u32;
        let beside = match random.one_in(3) && self.length > 0 {
            true => 1 << (128 - u32::from(self.length) + last_bits),
            false => 0,
        };
        let length = match random.below(4) {
            0 => self.bits(),
            1 => random.below(usize::from(self.bits()) + 1) as u8,
            _ if self.is_v4 => 24,
            _ => 56,
        };
        Self { address: (self.address | below) ^ beside, length, ..self }
    }

    /// The address as the option CLIENT-SUBNET has it: 0 behind the prefix.
    fn told(self) -> u128 {
        match self.length {
            0 => 0,
            length => self.address & u128::MAX << (128 - u32::from(length)),
        }
    }

    /// Whether another network is part of it.
    fn contains(self, other: Self) -> bool {
        let first_bits = |it: Self| Self { length: self.length, ..it }.told();
        self.is_v4 == other.is_v4
            && self.length <= other.length
            && first_bits(self) == first_bits(other)
    }

    /// The data of the option CLIENT-SUBNET.
    fn subnet(self) -> Vec<u8> {
        subnet(if self.is_v4 { 1 } else { 2 }, self.length, self.address)
    }
}

/// The networks of the database, and those that the configurations name.
fn networks() -> Vec<Network> {
    let named = SITES.split('"').filter(|text| text.contains('/'));
    NETWORKS.lines().chain(named).map(Network::parse).collect()
}

/// A random client: mostly of a network that something is known of.
fn random_client(networks: &[Network], random: &mut Random) -> Network {
    if random.one_in(5) {
        let is_v4 = random.one_in(2);
        return Network { is_v4, address: 0, length: 0 }.client(random);
    }
    random.pick(networks).client(random)
}

/// The scope of a reply; that of the query must be in it unchanged.
fn scope(answers: &Answers, subnet: &[u8]) -> [u8; 2] {
    [&answers.ours, &answers.theirs].map(|reply| {
        let told = Answers::subnet_of(reply).unwrap_or_else(|| panic!("{}", answers.shown()));
        assert_eq!((&told[..3], &told[4..]), (&subnet[..3], &subnet[4..]), "{}", answers.shown());
        told[3]
    })
}

/// What is compared of each reply.
const PARTS: [Part; 4] = [Part::Rcode, Part::Flags, Part::Question, Part::Authority];

/// Has clients ask both servers for names; the answers must be the same, and so must the scopes,
/// but for two kinds of Zonda's that are wider: 0 while one site alone is up, and those of IPv6
/// that span spaces in which gdnsd looks for IPv4 addresses. In these, too, all clients must get
/// the answer from gdnsd.
fn compare(pair: &ServerPair, names: &[PlaceName], networks: &[Network], seed: u64) {
    let mut random = Random::new(seed);
    let mut differences = Differences::default();
    let tunnels = TUNNELS.map(Network::parse);
    for _ in 0..CLIENTS {
        let client = random_client(networks, &mut random);
        let PlaceName { name, has_one_site, draws } = random.pick(names);
        let name = format!("{name}.{ZONE}");
        let told = client.subnet();
        let answers = Answers::of(pair, &name, "A", Some(&told));
        let differing = answers.differing(&PARTS);
        let [ours, theirs] = [&answers.ours, &answers.theirs].map(|it| answer_of(it, *draws));
        if !differing.is_empty() || ours != theirs {
            differences.add(|| format!("{differing:?} {}", answers.shown()));
            continue;
        }
        let theirs_said = theirs;
        let [ours, theirs] = scope(&answers, &told);
        if ours == theirs {
            continue;
        }
        let network = Network { length: ours, address: client.told(), ..client };
        let is_right = match has_one_site {
            true => ours == 0,
            false => ours < theirs && tunnels.iter().any(|it| network.contains(*it)),
        };
        if !is_right {
            differences.add(|| format!("scope: {}", answers.shown()));
        }
        for other in (0..WITHIN).map(|_| within(network, &mut random)) {
            let there = Answers::of(pair, &name, "A", Some(&other.subnet()));
            let is_in_tunnel = tunnels.iter().any(|it| it.contains(other));
            if !is_in_tunnel && answer_of(&there.theirs, *draws) != theirs_said {
                differences.add(|| format!("too wide: {}{}", answers.shown(), there.shown()));
            }
        }
    }
    differences.assert_none();
}

/// A random client in a network.
fn within(network: Network, random: &mut Random) -> Network {
    let noise = u128::from(random.bits()) << 64 | u128::from(random.bits());
    let below = noise.checked_shr(network.length.into()).unwrap_or(0);
    Network { address: network.told() | below, length: network.bits(), ..network }
}

/// Names whose members are chosen by place, by distance, and pools by distance; with the database
/// or without.
fn all_kinds(with_database: bool) -> (Configurations, Vec<PlaceName>) {
    let mut configurations = Configurations::default();
    let (ours, theirs) = match with_database {
        true => (format!("[geo]\ndatabase = {DATABASE:?}"), format!("geoip2_db => {DATABASE}, ")),
        false => ("[geo]".to_owned(), String::new()),
    };
    configurations.pools = SITES.replace("[geo]", &ours);
    for (map, rules, nets) in
        [("places", PLACES, NETS_BY_PLACE), ("distances", DISTANCES, NETS_BY_DISTANCE)]
    {
        let rules = if with_database { format!("{rules}, ") } else { String::new() };
        let text = format!("    {map} => {{ {theirs}{CENTRES}, {rules}{nets} }}\n");
        configurations.maps.push_str(&text);
    }
    let by_place = add_names(&mut configurations, ("place", "geo", "places"), 6);
    let by_distance = add_names(&mut configurations, ("near", "nearest", "distances"), 7);
    let trees = add_trees(&mut configurations, "nearest", "distances");
    (configurations, [by_place, by_distance, trees].concat())
}

#[test]
fn real_peers_agree_about_clients_by_place_and_by_distance() {
    let (configurations, names) = all_kinds(true);
    compare(&start(&configurations), &names, &networks(), 1);
}

#[test]
fn real_peers_agree_about_clients_of_networks_without_a_database() {
    let (configurations, names) = all_kinds(false);
    compare(&start(&configurations), &names, &networks(), 2);
}

#[test]
fn real_peers_agree_about_ipv4_addresses_in_ipv6_but_for_those_of_tunnels() {
    let (configurations, _) = all_kinds(true);
    let pair = start(&configurations);
    let asked = |network: &str| {
        let told = Network::parse(network).subnet();
        let answers = Answers::of(&pair, &format!("place0.{ZONE}"), "A", Some(&told));
        let scopes = scope(&answers, &told);
        let [ours, theirs] =
            [&answers.ours, &answers.theirs].map(|reply| reply.answer[0].data.text.clone());
        (ours, theirs, scopes)
    };
    let (gb, de) = ("10.6.0.4".to_owned(), "10.6.0.3".to_owned());
    assert_eq!(asked("81.2.69.160/32"), (gb.clone(), gb.clone(), [27, 27]));
    assert_eq!(asked("::ffff:81.2.69.160/128"), (gb.clone(), gb.clone(), [123, 123]));
    assert_eq!(asked("::ffff:10.1.2.3/128"), (gb.clone(), gb.clone(), [120, 120]));
    assert_eq!(asked("::ffff:0.0.0.0/96"), (de.clone(), de.clone(), [103, 103]));
    // 6to4, Teredo and NAT64 addresses: gdnsd looks for the IPv4 address in them, and Zonda for the
    // place of the network, which nothing is known of.
    for tunnel in [
        "2002:5102:45a0::/48",
        "2001:0:1234:5678:9abc:def0:aefd:ba5f/128",
        "64:ff9b::81.2.69.160/128",
    ] {
        let (ours, theirs, _) = asked(tunnel);
        assert_eq!((ours, theirs), (de.clone(), gb.clone()), "{tunnel}");
    }
}
