//! Interfaces that are made, found, completed and removed, in a network of the test's own.
#![allow(clippy::unwrap_used)]

use std::net::{IpAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};
use zonda_netio::interface::{
    FormerInterface, InterfaceError, InterfaceWatch, LocalInterface, Repair,
};
use zonda_testkit::network::{ip, is_own_network};

/// The name of the interface in all tests.
const NAME: &str = "nodelocaldns";

/// The interface with these addresses, as it is wanted by a process.
fn interface(addresses: &[&str], process: &str) -> LocalInterface {
    let addresses = addresses.iter().map(|it| it.parse::<IpAddr>().unwrap());
    LocalInterface::new(NAME.to_owned(), addresses.collect(), process)
}

#[test]
fn an_interface_is_made_with_addresses_that_can_be_bound_at_once_and_is_removed() {
    if !is_own_network(
        "an_interface_is_made_with_addresses_that_can_be_bound_at_once_and_is_removed",
    ) {
        return;
    }
    let own = interface(&["169.254.20.10", "fd00::10"], "one");
    assert_eq!(own.claim().unwrap(), FormerInterface::Absent);
    for address in ["169.254.20.10:53", "[fd00::10]:53"] {
        UdpSocket::bind(address).unwrap();
    }
    let shown = ip("address show dev nodelocaldns");
    assert!(shown.contains(" 169.254.20.10/32 ") && shown.contains(" fd00::10/128 "), "{shown}");
    assert_eq!(own.repair().unwrap(), Repair::Whole);
    assert!(own.remove().unwrap());
    assert!(!own.remove().unwrap());
    assert!(!ip("link").contains(NAME));
}

#[test]
fn an_interface_with_addresses_of_ipv4_alone_stays_down_as_no_address_of_the_machine_is_on_it() {
    let test = "an_interface_with_addresses_of_ipv4_alone_stays_down_as_no_address_of_the_machine_\
                is_on_it";
    if !is_own_network(test) {
        return;
    }
    let own = interface(&["169.254.20.10"], "one");
    own.claim().unwrap();
    UdpSocket::bind("169.254.20.10:53").unwrap();
    let shown = ip("link show dev nodelocaldns");
    assert!(shown.contains("state DOWN"), "{shown}");
}

#[test]
fn the_next_process_takes_the_interface_over_and_the_former_one_leaves_it_alone() {
    if !is_own_network(
        "the_next_process_takes_the_interface_over_and_the_former_one_leaves_it_alone",
    ) {
        return;
    }
    let (first, second) =
        (interface(&["169.254.20.10", "10.96.0.10"], "one"), interface(&["169.254.20.10"], "two"));
    first.claim().unwrap();
    let has_both = || ip("address show dev nodelocaldns").contains("10.96.0.10");
    let former = second.claim().unwrap();
    assert!(has_both(), "until the second process runs");
    assert_eq!(first.repair().unwrap(), Repair::Foreign);
    assert_eq!((first.remove_foreign().unwrap(), second.remove_foreign().unwrap()), (0, 1));
    assert!(!has_both());
    assert_eq!(first.repair().unwrap(), Repair::Foreign);
    assert!(!has_both(), "the first process leaves alone what it has no more");
    assert_eq!(second.repair().unwrap(), Repair::Whole);
    assert!(!first.remove().unwrap(), "it is the second one's");
    second.give_back(&former); // it does not start after all
    assert!(first.remove().unwrap());

    let former = second.claim().unwrap();
    second.give_back(&former);
    assert!(!ip("link").contains(NAME), "what a process made and does not use is removed");
}

#[test]
fn a_process_that_does_not_start_leaves_an_interface_as_it_was() {
    if !is_own_network("a_process_that_does_not_start_leaves_an_interface_as_it_was") {
        return;
    }
    // The queue of an interface is made when it is set up, and stays.
    let shown = || ip("address show dev nodelocaldns").replace("qdisc noop ", "qdisc noqueue ");
    interface(&["169.254.20.10", "10.96.0.10"], "one").claim().unwrap();
    let before = shown();
    let second = interface(&["169.254.20.10", "169.254.20.11", "fd00::10"], "two");
    let former = second.claim().unwrap();
    assert!(shown().contains("fd00::10") && shown().contains("10.96.0.10"), "{}", shown());
    second.give_back(&former);
    assert_eq!(shown(), before);

    // Nor does a claim that fails half-way.
    std::fs::write("/proc/sys/net/ipv6/conf/nodelocaldns/disable_ipv6", "1").unwrap();
    let error = second.claim().unwrap_err();
    assert!(matches!(error, InterfaceError::NoIpv6(_)), "{error}");
    assert_eq!(shown(), before);
}

#[test]
fn what_is_missing_is_made_again_and_the_kernel_tells_of_it() {
    if !is_own_network("what_is_missing_is_made_again_and_the_kernel_tells_of_it") {
        return;
    }
    let own = interface(&["169.254.20.10", "fd00::10"], "one");
    own.claim().unwrap();
    let watch = InterfaceWatch::open().unwrap();
    for (loss, repair) in [
        ("address delete 169.254.20.10/32 dev nodelocaldns", Repair::Completed(1)),
        ("link delete nodelocaldns", Repair::Made),
        ("link set nodelocaldns down", Repair::Completed(2)), // and its IPv6 address is lost
    ] {
        watch.take();
        ip(loss);
        let limit = Instant::now() + Duration::from_secs(5);
        while !watch.take() {
            assert!(Instant::now() < limit, "no notice of `{loss}`");
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(own.repair().unwrap(), repair, "{loss}");
        assert_eq!(own.repair().unwrap(), Repair::Whole, "{loss}");
    }
    assert!(own.remove().unwrap());
}

#[test]
fn an_interface_of_another_kind_is_refused_and_left_as_it_is() {
    if !is_own_network("an_interface_of_another_kind_is_refused_and_left_as_it_is") {
        return;
    }
    ip("link add nodelocaldns type bridge");
    let own = interface(&["169.254.20.10"], "one");
    for refused in [own.claim().map(drop), own.repair().map(drop)] {
        let error = refused.unwrap_err();
        assert!(matches!(error, InterfaceError::OtherKind(_)), "{error}");
        assert!(error.to_string().contains("kind bridge"), "{error}");
    }
    assert!(!own.remove().unwrap());
    assert!(!ip("address show dev nodelocaldns").contains("169.254"));
}

#[test]
fn without_ipv6_an_address_of_it_is_refused_and_nothing_stays() {
    if !is_own_network("without_ipv6_an_address_of_it_is_refused_and_nothing_stays") {
        return;
    }
    std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").unwrap();
    let error = interface(&["169.254.20.10", "fd00::10"], "one").claim().unwrap_err();
    assert!(matches!(error, InterfaceError::NoIpv6(_)), "{error}");
    assert!(!ip("link").contains(NAME));
}
