//! The producer and the consumer of a catalog whose members come, change and go, killed in turn.

use super::server::{Victim, compare, wait_for};
use super::{ROUND, kills};
use crate::primaries::reload;
use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;
use zonda_testkit::generate::Random;
use zonda_wire::Rcode;

/// The name of the catalog whose members come and go.
pub const CATALOG: &str = "c.test";
/// Members that there are at a time, at most.
const MEMBERS: usize = 12;

/// The configuration of the server that makes the catalog of the zones in a directory.
pub fn producer(notify: SocketAddr) -> String {
    let transfer = format!("transfer = {{ to = [\"127.0.0.1\"], notify = [\"{notify}\"] }}");
    format!(
        "[[zone]]\ndirectory = \"zones\"\n{transfer}\ncatalog = \"{CATALOG}\"\n[[zone]]\n\
         name = \"{CATALOG}\"\naccess = [\"allow 127.0.0.1\", \"refuse any\"]\n{transfer}\n\
         [zone.members]\n"
    )
}

/// The configuration of the server that serves what the catalog lists.
pub fn consumer(from: SocketAddr) -> String {
    let times =
        "refresh-min = \"1s\"\nrefresh-max = \"1s\"\nretry-min = \"1s\"\nretry-max = \"1s\"";
    let transfer = "transfer = { to = [\"127.0.0.1\"] }";
    format!(
        "[[zone]]\nname = \"{CATALOG}\"\n{transfer}\n[zone.secondary]\nfrom = [\"{from}\"]\n\
         {times}\n[[catalog]]\nname = \"{CATALOG}\"\nremovals-max = \"100 %\"\n{transfer}\n\
         [catalog.secondary]\nfrom = [\"{from}\"]\n{times}\n"
    )
}

/// The zones of the producer.
struct Zones {
    folder: PathBuf,
    /// The serial of each zone.
    serials: BTreeMap<String, u32>,
    /// Zones that were removed since the servers were compared.
    removed: Vec<String>,
    /// The number of zones that there have been.
    count: usize,
}

impl Zones {
    /// Adds, changes or removes a zone.
    fn change(&mut self, random: &mut Random) {
        let names: Vec<String> = self.serials.keys().cloned().collect();
        if names.len() < MEMBERS && (names.is_empty() || random.one_in(2)) {
            self.count += 1;
            return self.write(format!("z{}.test", self.count), 1);
        }
        let name = random.pick(&names).clone();
        if random.one_in(2) {
            let serial = self.serials[&name] + 1;
            return self.write(name, serial);
        }
        fs::remove_file(self.folder.join(format!("zones/{name}.zone"))).unwrap();
        self.serials.remove(&name);
        self.removed.push(name);
    }

    /// Puts a version of a zone into its file.
    fn write(&mut self, name: String, serial: u32) {
        let text = format!(
            "$TTL 60\n@ SOA ns host {serial} 1 1 1209600 60\n@ NS ns\nns A 192.0.2.1\n\
             www TXT \"version {serial}\"\n"
        );
        let new = self.folder.join("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, self.folder.join(format!("zones/{name}.zone"))).unwrap();
        self.serials.insert(name, serial);
    }
}

/// The id that each member has in the catalog of a server.
fn ids(server: &Victim) -> BTreeMap<String, String> {
    let records = server.records(CATALOG);
    let fields = records.iter().map(|record| record.split(' ').collect::<Vec<_>>());
    let members = fields.filter(|fields| fields.get(3) == Some(&"PTR"));
    members.map(|fields| (fields[4].to_owned(), fields[0].to_owned())).collect()
}

/// Waits until both servers have what the files say, and compares them; returns the ids.
fn check(zones: &mut Zones, producer: &Victim, consumer: &Victim) -> BTreeMap<String, String> {
    reload(producer.process());
    let names = || -> Vec<String> { zones.serials.keys().map(|name| format!("{name}.")).collect() };
    let listed = |ids: BTreeMap<String, String>| ids.into_keys().collect::<Vec<_>>();
    wait_for("the catalog lists the files", producer, || {
        let mut names = names();
        names.sort();
        listed(ids(producer)) == names
    });
    compare(producer, consumer, CATALOG);
    for (name, serial) in &zones.serials {
        wait_for(name, consumer, || consumer.serial(name) == Some(*serial));
        compare(producer, consumer, name);
    }
    for name in zones.removed.drain(..) {
        wait_for("a member is gone", consumer, || consumer.rcode(&name) == Some(Rcode::REFUSED));
    }
    ids(producer)
}

#[test]
fn a_catalog_whose_servers_are_killed_again_and_again_is_followed_with_the_ids_it_had() {
    let (address, other) = (Victim::address(), Victim::address());
    let mut server = Victim::start(address, &producer(other), &[]);
    let folder = server.folder.path().to_owned();
    let serials = BTreeMap::new();
    let mut zones = Zones { folder, serials, removed: Vec::new(), count: 0 };
    let mut random = Random::new(3);
    (0..MEMBERS / 2).for_each(|_| zones.change(&mut random));
    reload(server.process());
    let mut follower = Victim::start(other, &consumer(address), &[]);
    let mut known = check(&mut zones, &server, &follower);
    let mut last = server.serial(CATALOG).unwrap();
    for kill in 1..=kills() {
        (0..=random.below(3)).for_each(|_| zones.change(&mut random));
        reload(server.process());
        thread::sleep(Duration::from_micros(random.below(250_000) as u64));
        let seen = server.serial(CATALOG).max(follower.serial(CATALOG)).unwrap();
        if random.one_in(2) { &mut server } else { &mut follower }.crash(&mut random);
        wait_for("the catalog is served", &server, || server.serial(CATALOG).is_some());
        wait_for("the copy is served", &follower, || follower.serial(CATALOG).is_some());
        let copied = follower.serial(CATALOG).unwrap();
        let now = server.serial(CATALOG).unwrap();
        assert!(now >= seen && seen >= last, "serials {last}, {seen}, {now} behind {kill}");
        assert!(copied <= now, "the consumer has {copied}, which the producer has lost: {now}");
        last = now;
        if kill % ROUND == 0 || kill == kills() {
            let found = check(&mut zones, &server, &follower);
            for (zone, id) in &found {
                assert_eq!(known.get(zone).unwrap_or(id), id, "the id of {zone} stays");
            }
            known = found;
        }
    }
}
