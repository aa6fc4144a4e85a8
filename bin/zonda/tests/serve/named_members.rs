//! Members of pools that are names, whose addresses another server has.

use crate::server::{Server, wait_until};
use crate::steering::Steered;
use std::collections::BTreeSet;
use zonda_testkit::{Question, ask};

/// A server of `example.org` that has these addresses for `lb`, each for a second.
struct Target(Server);

impl Target {
    fn start(addresses: &[&str]) -> Self {
        let target = Self(Server::start(&[], ""));
        target.set(1, addresses);
        target
    }

    /// Has other addresses from now on.
    fn set(&self, version: u32, addresses: &[&str]) {
        let mut text = crate::server::zone(version);
        for address in addresses {
            let rtype = if address.contains(':') { "AAAA" } else { "A" };
            text += &format!("\nlb 1 {rtype} {address}");
        }
        self.0.write_zone(&(text + "\n"));
        assert_eq!(self.0.post("/v1/reload").0, 200);
    }

    /// The keys of a pool that has `lb` as its first member.
    fn keys(&self, more: &str) -> String {
        let address = self.0.zonda.address;
        format!("bootstrap = [\"{address}\"]\nmembers = [{{ name = \"lb.example.org\" }}{more}]")
    }
}

/// The addresses of a type in an answer to a question for the zone's own name.
fn at_apex(steered: &Steered, rtype: &str) -> BTreeSet<String> {
    let question = Question::new("steered.test", rtype);
    let reply = ask(steered.server.zonda.address, &question).unwrap();
    assert_eq!(reply.rcode_text(), "NOERROR");
    reply.answer.iter().map(|record| record.data.text.clone()).collect()
}

fn set(addresses: &[&str]) -> BTreeSet<String> {
    addresses.iter().map(|it| (*it).to_owned()).collect()
}

#[test]
fn the_zones_own_name_has_the_addresses_of_another_name_and_follows_them() {
    let target = Target::start(&["192.0.2.50", "192.0.2.51", "2001:db8::50"]);
    let steered = Steered::start(&target.keys(""));
    steered.reload(&target.keys(""), "@ A,AAAA");
    wait_until("the addresses are known", || {
        at_apex(&steered, "A") == set(&["192.0.2.50", "192.0.2.51"])
    });
    assert_eq!(at_apex(&steered, "AAAA"), set(&["2001:db8::50"]));
    target.set(2, &["192.0.2.52"]);
    wait_until("the new address answers", || at_apex(&steered, "A") == set(&["192.0.2.52"]));
    assert_eq!(at_apex(&steered, "AAAA"), set(&[]), "there is none any more");
    steered.reload(&format!("ttl-max = \"2m\"\n{}", target.keys("")), "@ A,AAAA");
    assert_eq!(at_apex(&steered, "A"), set(&["192.0.2.52"]), "a reload does not forget it");
    let listed = steered.command(&["list"]);
    assert!(listed.contains("web/lb.example.org") && listed.contains("192.0.2.52"), "{listed}");
    drop(target);
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(at_apex(&steered, "A"), set(&["192.0.2.52"]), "nothing else is known");
}

#[test]
fn a_name_without_addresses_is_down_and_has_no_family_that_it_lacks() {
    let target = Target::start(&[]);
    let more = ", { address = \"192.0.2.9\", priority = 2 }, { address = \"2001:db8::9\", \
                priority = 2 }";
    let keys = format!("choose = \"failover\"\n{}", target.keys(more));
    let steered = Steered::start(&keys);
    steered.reload(&keys, "@ A,AAAA");
    assert_eq!(at_apex(&steered, "A"), set(&["192.0.2.9"]));
    target.set(2, &["192.0.2.50"]);
    wait_until("the name has an address", || at_apex(&steered, "A") == set(&["192.0.2.50"]));
    assert_eq!(at_apex(&steered, "AAAA"), set(&["2001:db8::9"]), "the name has none of IPv6");
}
