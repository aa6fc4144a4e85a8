//! What a zone can look like, one function a shape.

use super::Random;
use super::builder::Builder;

/// A way in which a zone can be interesting.
pub struct Shape {
    /// Adds records of this shape.
    pub add: fn(&mut Builder, &mut Random),
}

/// All shapes.
pub const SHAPES: &[Shape] = &[
    Shape { add: addresses },
    Shape { add: wildcards },
    Shape { add: wildcard_aliases },
    Shape { add: wildcard_between_names },
    Shape { add: asterisk_in_the_middle },
    Shape { add: wildcard_and_delegation },
    Shape { add: empty_non_terminals },
    Shape { add: alias_chain },
    Shape { add: alias_loops },
    Shape { add: aliases_that_leave },
    Shape { add: dname },
    Shape { add: dname_chain },
    Shape { add: dname_to_long_names },
    Shape { add: delegation_with_glue },
    Shape { add: delegation_without_glue },
    Shape { add: delegation_with_sibling_glue },
    Shape { add: delegation_beside_data },
    Shape { add: delegation_below_delegation },
    Shape { add: signed_delegation },
    Shape { add: additional_data },
    Shape { add: mixed_case },
    Shape { add: escaped_labels },
    Shape { add: long_names },
    Shape { add: many_strings },
    Shape { add: large_address_set },
    Shape { add: large_texts },
    Shape { add: modern_types },
    Shape { add: unknown_types },
    Shape { add: apex_wildcard },
    Shape { add: own_servers_below_cuts },
    Shape { add: servers_by_wildcard },
    Shape { add: delegation_to_many_servers },
    Shape { add: wildcard_chain },
    Shape { add: services },
    Shape { add: soup },
];

/// Returns an address that depends on chance.
fn address(random: &mut Random) -> String {
    format!("192.0.2.{}", 1 + random.below(250))
}

fn addresses(zone: &mut Builder, random: &mut Random) {
    let host = zone.fresh("host");
    for _ in 0..1 + random.below(4) {
        zone.add_with_ttl(&host, "A", 60, &address(random));
    }
    zone.add(&host, "AAAA", "2001:db8::1");
    zone.add(&host, "TXT", "\"a host\"");
    zone.add("", "A", &address(random));
    zone.add("", "MX", &format!("10 {host}"));
}

fn wildcards(zone: &mut Builder, random: &mut Random) {
    let base = zone.fresh("wild");
    zone.add(&format!("*.{base}"), "A", &address(random));
    zone.add(&format!("*.{base}"), "MX", "10 ns1");
    zone.add(&format!("*.{base}"), "TXT", "\"any name\"");
}

fn wildcard_aliases(zone: &mut Builder, random: &mut Random) {
    let (base, target) = (zone.fresh("wild"), zone.fresh("target"));
    let goal = random.pick(&[target.clone(), format!("x.{base}"), "ns1".to_owned()]).clone();
    zone.add(&format!("*.{base}"), "CNAME", &goal);
    zone.add(&target, "A", &address(random));
    // An alias into a wildcard that is an alias itself.
    let second = zone.fresh("wild");
    zone.add(&format!("*.{second}"), "CNAME", &format!("y.{base}"));
}

/// Names that exist below and beside the wildcard hide it (rfc4592#2.2.1).
fn wildcard_between_names(zone: &mut Builder, random: &mut Random) {
    let base = zone.fresh("wild");
    zone.add(&format!("*.{base}"), "A", &address(random));
    zone.add(&format!("*.{base}"), "TXT", "\"wildcard\"");
    zone.add(&format!("host.{base}"), "AAAA", "2001:db8::2");
    zone.add(&format!("deep.er.{base}"), "TXT", "\"below an empty non-terminal\"");
    zone.add(&format!("sub.*.{base}"), "TXT", "\"below the asterisk\"");
    zone.add(&base, "TXT", "\"the closest encloser\"");
}

/// `*` that is not the first label is an ordinary label (rfc4592#2.1.2).
fn asterisk_in_the_middle(zone: &mut Builder, random: &mut Random) {
    let base = zone.fresh("star");
    zone.add(&format!("left.*.{base}"), "A", &address(random));
    zone.add(&format!("*.*.{base}"), "TXT", "\"two asterisks\"");
    zone.add(&format!("a*.{base}"), "A", &address(random));
    let empty = zone.fresh("star");
    zone.add(&format!("only.*.{empty}"), "A", &address(random));
}

fn wildcard_and_delegation(zone: &mut Builder, random: &mut Random) {
    let base = zone.fresh("wild");
    zone.add(&format!("*.{base}"), "A", &address(random));
    zone.add(&format!("cut.{base}"), "NS", &format!("ns.cut.{base}"));
    zone.add(&format!("ns.cut.{base}"), "A", &address(random));
    // Below the cut, so that the server must not answer for it.
    zone.add(&format!("*.cut.{base}"), "A", &address(random));
}

fn empty_non_terminals(zone: &mut Builder, random: &mut Random) {
    let base = zone.fresh("empty");
    zone.add(&format!("a.b.c.{base}"), "A", &address(random));
    zone.add(&format!("a.x.c.{base}"), "TXT", "\"another branch\"");
    zone.add(&format!("_sip._tcp.{base}"), "SRV", "1 2 5060 ns1");
}

fn alias_chain(zone: &mut Builder, random: &mut Random) {
    let base = zone.fresh("chain");
    let links = 2 + random.below(8);
    for link in 0..links {
        zone.add(&format!("l{link}.{base}"), "CNAME", &format!("l{}.{base}", link + 1));
    }
    match random.below(4) {
        0 => zone.add(&format!("l{links}.{base}"), "A", &address(random)),
        1 => zone.add(&format!("l{links}.{base}"), "TXT", "\"no address at the end\""),
        2 => zone.add(&format!("below.l{links}.{base}"), "A", &address(random)),
        _ => {}
    }
}

fn alias_loops(zone: &mut Builder, _: &mut Random) {
    let base = zone.fresh("loop");
    zone.add(&format!("self.{base}"), "CNAME", &format!("self.{base}"));
    zone.add(&format!("one.{base}"), "CNAME", &format!("two.{base}"));
    zone.add(&format!("two.{base}"), "CNAME", &format!("one.{base}"));
    zone.add(&format!("into.{base}"), "CNAME", &format!("one.{base}"));
    zone.add(&format!("*.wild.{base}"), "CNAME", &format!("again.wild.{base}"));
}

fn aliases_that_leave(zone: &mut Builder, random: &mut Random) {
    let base = zone.fresh("away");
    zone.add(&format!("out.{base}"), "CNAME", "www.elsewhere.invalid.");
    zone.add(&format!("up.{base}"), "CNAME", "invalid.");
    zone.add(&format!("nowhere.{base}"), "CNAME", &format!("missing.{base}"));
    zone.add(&format!("cut.{base}"), "NS", &format!("ns.cut.{base}"));
    zone.add(&format!("ns.cut.{base}"), "A", &address(random));
    zone.add(&format!("into.{base}"), "CNAME", &format!("www.cut.{base}"));
    zone.add(&format!("at.{base}"), "CNAME", &format!("cut.{base}"));
    zone.add(&format!("glue.{base}"), "CNAME", &format!("ns.cut.{base}"));
}

fn dname(zone: &mut Builder, random: &mut Random) {
    let (old, new) = (zone.fresh("old"), zone.fresh("new"));
    zone.add(&old, "DNAME", &new);
    zone.add(&old, "TXT", "\"beside the DNAME\"");
    zone.add(&format!("www.{new}"), "A", &address(random));
    zone.add(&format!("*.wild.{new}"), "A", &address(random));
    let away = zone.fresh("old");
    zone.add(&away, "DNAME", "elsewhere.invalid.");
}

fn dname_chain(zone: &mut Builder, random: &mut Random) {
    let (one, two, three) = (zone.fresh("one"), zone.fresh("two"), zone.fresh("three"));
    zone.add(&one, "DNAME", &two);
    zone.add(&two, "DNAME", &three);
    zone.add(&format!("www.{three}"), "A", &address(random));
    zone.add(&format!("alias.{three}"), "CNAME", &format!("www.{one}"));
    let alias = zone.fresh("alias");
    zone.add(&alias, "CNAME", &format!("www.{one}"));
    // A DNAME to a name below itself grows until the name is too long.
    let growing = zone.fresh("growing");
    zone.add(&growing, "DNAME", &format!("more.{growing}"));
}

/// Adds a DNAME whose new names may be longer than a name can be: YXDOMAIN (rfc6672#2.2).
fn dname_to_long_names(zone: &mut Builder, _: &mut Random) {
    let short = zone.fresh("short");
    let label = "l".repeat(60);
    zone.add(&short, "DNAME", &format!("{label}.{label}.{label}.{short}t"));
}

fn delegation_with_glue(zone: &mut Builder, random: &mut Random) {
    let cut = zone.fresh("cut");
    zone.add(&cut, "NS", &format!("ns.{cut}"));
    zone.add(&cut, "NS", &cut);
    zone.add(&cut, "A", &address(random));
    zone.add(&format!("ns.{cut}"), "A", &address(random));
    zone.add(&format!("ns.{cut}"), "AAAA", "2001:db8::53");
}

fn delegation_without_glue(zone: &mut Builder, _: &mut Random) {
    let cut = zone.fresh("cut");
    zone.add(&cut, "NS", "ns.elsewhere.invalid.");
    zone.add(&cut, "NS", "ns1");
    let second = zone.fresh("deep");
    zone.add(&format!("a.b.{second}"), "NS", "ns2.elsewhere.invalid.");
}

/// Glue that lies below another cut of the same zone (rfc9471#3.2).
fn delegation_with_sibling_glue(zone: &mut Builder, random: &mut Random) {
    let (left, right) = (zone.fresh("left"), zone.fresh("right"));
    zone.add(&left, "NS", &format!("ns.{right}"));
    zone.add(&right, "NS", &format!("ns.{left}"));
    zone.add(&right, "NS", &format!("ns.{right}"));
    zone.add(&format!("ns.{left}"), "A", &address(random));
    zone.add(&format!("ns.{right}"), "A", &address(random));
}

/// Data at and below a cut is hidden, glue apart.
fn delegation_beside_data(zone: &mut Builder, random: &mut Random) {
    let cut = zone.fresh("cut");
    zone.add(&cut, "NS", &format!("ns.{cut}"));
    zone.add(&cut, "TXT", "\"hidden at the cut\"");
    zone.add(&cut, "MX", &format!("10 ns.{cut}"));
    zone.add(&format!("ns.{cut}"), "A", &address(random));
    zone.add(&format!("ns.{cut}"), "TXT", "\"hidden at the glue\"");
    zone.add(&format!("www.{cut}"), "A", &address(random));
    zone.add(&format!("alias.{cut}"), "CNAME", &format!("www.{cut}"));
}

fn delegation_below_delegation(zone: &mut Builder, random: &mut Random) {
    let cut = zone.fresh("cut");
    zone.add(&cut, "NS", &format!("ns.{cut}"));
    zone.add(&format!("ns.{cut}"), "A", &address(random));
    zone.add(&format!("sub.{cut}"), "NS", &format!("ns.sub.{cut}"));
    zone.add(&format!("ns.sub.{cut}"), "A", &address(random));
}

fn signed_delegation(zone: &mut Builder, random: &mut Random) {
    let cut = zone.fresh("secure");
    zone.add(&cut, "NS", &format!("ns.{cut}"));
    zone.add(&format!("ns.{cut}"), "A", &address(random));
    let digest = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    zone.add_with_ttl(&cut, "DS", 600, &format!("60485 13 2 {digest}"));
    zone.add_with_ttl(&cut, "DS", 600, &format!("60486 8 2 {digest}"));
}

fn additional_data(zone: &mut Builder, random: &mut Random) {
    let host = zone.fresh("mail");
    zone.add(&host, "A", &address(random));
    zone.add(&host, "AAAA", "2001:db8::25");
    let (alias, wild, base) = (zone.fresh("alias"), zone.fresh("wild"), zone.fresh("svc"));
    zone.add(&alias, "CNAME", &host);
    zone.add(&format!("*.{wild}"), "A", &address(random));
    zone.add(&base, "MX", &format!("10 {host}"));
    zone.add(&base, "MX", &format!("20 {alias}"));
    zone.add(&base, "MX", &format!("30 any.{wild}"));
    zone.add(&base, "MX", "40 mail.elsewhere.invalid.");
    zone.add(&base, "MX", &format!("50 {base}"));
    zone.add(&base, "AAAA", "2001:db8::26");
    let null = zone.fresh("nomail");
    zone.add(&null, "MX", "0 .");
    zone.add(&format!("_ldap._tcp.{base}"), "SRV", &format!("0 5 389 {host}"));
    zone.add(&format!("_ldap._tcp.{base}"), "SRV", &format!("1 5 389 any.{wild}"));
    zone.add(&format!("_none._tcp.{base}"), "SRV", "0 0 0 .");
}

/// Puts the zone's own servers below its delegations, as those of the root are.
fn own_servers_below_cuts(zone: &mut Builder, random: &mut Random) {
    let cut = zone.fresh("cut");
    zone.add("", "NS", &format!("ns.{cut}"));
    zone.add("", "NS", &format!("a.b.{cut}"));
    zone.add("", "NS", &format!("none.{cut}"));
    zone.add(&cut, "NS", &format!("ns.{cut}"));
    zone.add(&format!("ns.{cut}"), "A", &address(random));
    zone.add(&format!("ns.{cut}"), "AAAA", "2001:db8::53");
    zone.add(&format!("a.b.{cut}"), "A", &address(random));
    let at = zone.fresh("cut");
    zone.add("", "NS", &at);
    zone.add(&at, "NS", &at);
    zone.add(&at, "A", &address(random));
}

/// Servers of the zone and of a delegation that have no name of their own.
fn servers_by_wildcard(zone: &mut Builder, random: &mut Random) {
    let (wild, cut) = (zone.fresh("wild"), zone.fresh("cut"));
    zone.add(&format!("*.{wild}"), "A", &address(random));
    zone.add(&format!("*.{wild}"), "AAAA", "2001:db8::54");
    zone.add("", "NS", &format!("one.{wild}"));
    zone.add(&cut, "NS", &format!("one.{wild}"));
    zone.add(&cut, "NS", &format!("two.{wild}"));
    zone.add(&cut, "NS", "ns1");
}

/// More servers than a reply of a usual size has room for.
fn delegation_to_many_servers(zone: &mut Builder, random: &mut Random) {
    let cut = zone.fresh("crowd");
    for number in 0..33 + random.below(16) {
        zone.add(&cut, "NS", &format!("n{number}.{cut}"));
        zone.add(&format!("n{number}.{cut}"), "A", &format!("10.2.0.{number}"));
        zone.add(&format!("n{number}.{cut}"), "AAAA", &format!("2001:db8:2::{number:x}"));
    }
}

/// Five wildcards, each an alias of a name of the next, and nothing of most types at the end: Knot
/// follows five aliases. Their proofs need TCP, over which few questions go, so that many lead to
/// them.
fn wildcard_chain(zone: &mut Builder, _: &mut Random) {
    let base = zone.fresh("links");
    for number in 0..40 {
        zone.add(&format!("*.s{number}.{base}"), "CNAME", &format!("x.w5.{base}"));
    }
    for link in (2..=5).rev() {
        zone.add(&format!("*.w{link}.{base}"), "CNAME", &format!("x.w{}.{base}", link - 1));
    }
    zone.add(&format!("x.w1.{base}"), "TXT", "\"the end\"");
}

/// Services and where they lead.
fn services(zone: &mut Builder, random: &mut Random) {
    let (base, wild, cut) = (zone.fresh("svc"), zone.fresh("wild"), zone.fresh("cut"));
    zone.add(&format!("host.{base}"), "A", &address(random));
    zone.add(&format!("host.{base}"), "AAAA", "2001:db8::443");
    zone.add(&format!("host.{base}"), "SVCB", "1 . alpn=h2");
    zone.add(&format!("_one.{base}"), "SVCB", &format!("1 host.{base} alpn=dot"));
    zone.add(&format!("_two.{base}"), "SVCB", &format!("0 host.{base}"));
    zone.add(&format!("self.{base}"), "HTTPS", "1 . alpn=h2");
    zone.add(&format!("self.{base}"), "A", &address(random));
    zone.add(&format!("*.{wild}"), "A", &address(random));
    zone.add(&format!("_three.{base}"), "SVCB", &format!("1 any.{wild} alpn=dot"));
    zone.add(&format!("_mail.{base}"), "SRV", &format!("0 0 25 any.{wild}"));
    zone.add(&cut, "NS", &format!("ns.{cut}"));
    zone.add(&format!("ns.{cut}"), "A", &address(random));
    zone.add(&format!("behind.{base}"), "MX", &format!("10 ns.{cut}"));
}

fn mixed_case(zone: &mut Builder, random: &mut Random) {
    let base = zone.fresh("MiXeD");
    zone.add(&base, "A", &address(random));
    zone.add(&format!("WWW.{base}"), "CNAME", &base.to_uppercase());
    zone.add(&format!("mail.{base}"), "MX", &format!("10 {}", base.to_lowercase()));
    zone.add(&format!("*.Wild.{base}"), "TXT", "\"Case Kept\"");
}

fn escaped_labels(zone: &mut Builder, random: &mut Random) {
    let base = zone.fresh("esc");
    for label in
        ["dot\\.ted", "nul\\000byte", "high\\200\\255", "sp\\032ace", "semi\\;colon", "a\\\\b"]
    {
        zone.add(&format!("{label}.{base}"), "A", &address(random));
    }
    zone.add(
        &format!("\\042quoted\\042.{base}"),
        "TXT",
        "\"a \\\"quote\\\" and a \\\\ and \\007\"",
    );
    zone.add(&format!("user\\.name.{base}"), "RP", &format!("first\\.last.{base} ns1"));
}

fn long_names(zone: &mut Builder, random: &mut Random) {
    let base = zone.fresh("long");
    let label = "x".repeat(63);
    zone.add(&format!("{label}.{base}"), "A", &address(random));
    // As long as a name may be: 255 bytes on the wire.
    let mut name = base;
    let mut room = 253 - zone.full(&name).len();
    while room > 1 {
        let count = (room - 1).min(63);
        name = format!("{}.{name}", "y".repeat(count));
        room -= count + 1;
    }
    zone.add(&name, "A", &address(random));
    let many = zone.fresh("labels");
    zone.add(&format!("{}{many}", "a.".repeat(100)), "TXT", "\"a hundred labels\"");
}

fn many_strings(zone: &mut Builder, random: &mut Random) {
    let host = zone.fresh("text");
    let strings: Vec<String> = (0..2 + random.below(12)).map(|n| format!("\"s{n}\"")).collect();
    zone.add(&host, "TXT", &strings.join(" "));
    zone.add(&host, "TXT", "\"\"");
    zone.add(&host, "TXT", &format!("\"{}\"", "t".repeat(255)));
    zone.add(&host, "HINFO", "\"PDP 11\" \"\"");
}

/// BIND takes at most 100 records a set.
fn large_address_set(zone: &mut Builder, random: &mut Random) {
    let host = zone.fresh("many");
    for number in 0..20 + random.below(79) {
        zone.add(&host, "A", &format!("10.0.0.{number}"));
        zone.add(&host, "AAAA", &format!("2001:db8::{number:x}"));
    }
    let alias = zone.fresh("alias");
    zone.add(&alias, "CNAME", &host);
    zone.add(&alias, "CNAME", &host);
    let mail = zone.fresh("mail");
    zone.add(&mail, "MX", &format!("10 {host}"));
}

fn large_texts(zone: &mut Builder, random: &mut Random) {
    let host = zone.fresh("big");
    for number in 0..2 + random.below(18) {
        let filler = "z".repeat(100 + random.below(150));
        zone.add(&host, "TXT", &format!("\"{number} {filler}\""));
    }
    let cut = zone.fresh("wide");
    for number in 0..13 {
        let label = "n".repeat(1 + random.below(50));
        zone.add(&cut, "NS", &format!("{label}{number}.{cut}"));
        zone.add(&format!("{label}{number}.{cut}"), "A", &format!("10.1.0.{number}"));
        zone.add(&format!("{label}{number}.{cut}"), "AAAA", &format!("2001:db8:1::{number:x}"));
    }
}

fn modern_types(zone: &mut Builder, random: &mut Random) {
    let host = zone.fresh("svc");
    zone.add(&host, "A", &address(random));
    zone.add(&host, "HTTPS", &format!("1 . alpn=h2,h3 port=8443 ipv4hint={}", address(random)));
    zone.add(&host, "HTTPS", &format!("2 {host} alpn=h2"));
    zone.add(&format!("_dns.{host}"), "SVCB", &format!("1 {host} alpn=dot"));
    let alias = zone.fresh("svcalias");
    zone.add(&alias, "HTTPS", &format!("0 {host}"));
    zone.add(&host, "CAA", "0 issue \"ca.example.net; account=1\"");
    zone.add(&host, "CAA", "128 iodef \"mailto:security@example.com\"");
    zone.add(&host, "NAPTR", "100 10 \"u\" \"E2U+sip\" \"!^.*$!sip:info@example.com!\" .");
    zone.add(&host, "NAPTR", &format!("100 20 \"s\" \"SIP+D2U\" \"\" _sip._udp.{host}"));
    zone.add(&format!("_443._tcp.{host}"), "TLSA", &format!("3 1 1 {}", "ab".repeat(32)));
    zone.add(&host, "SSHFP", &format!("1 1 {}", "cd".repeat(20)));
    zone.add(&host, "LOC", "52 22 23.000 N 4 53 32.000 E -2.00m 1m 10000m 10m");
    zone.add(&host, "URI", "10 1 \"https://www.example.com/path\"");
    zone.add(&host, "AFSDB", "1 ns1");
}

/// Types without a mnemonic (rfc3597).
fn unknown_types(zone: &mut Builder, _: &mut Random) {
    let host = zone.fresh("unknown");
    zone.add(&host, "TYPE65280", "\\# 4 0a000001");
    zone.add(&host, "TYPE65280", "\\# 0");
    zone.add(&host, "TYPE731", "\\# 6 abcdef 012345");
    zone.add(&host, "A", "192.0.2.77");
    zone.add(&format!("*.{host}"), "TYPE65281", "\\# 1 00");
}

fn apex_wildcard(zone: &mut Builder, random: &mut Random) {
    if random.one_in(3) {
        zone.add("*", "CNAME", "ns1");
    } else {
        zone.add("*", "A", &address(random));
        zone.add("*", "TXT", "\"everything\"");
    }
    zone.add("exists", "TXT", "\"stops the wildcard\"");
}

/// Random types at random names over a small alphabet, so that everything meets everything.
fn soup(zone: &mut Builder, random: &mut Random) {
    let name = |random: &mut Random| {
        let labels = 1 + random.below(3);
        let picked: Vec<&str> = (0..labels).map(|_| *random.pick(&["a", "b", "c", "*"])).collect();
        picked.join(".")
    };
    for _ in 0..8 + random.below(16) {
        let (owner, target) = (name(random), name(random));
        match random.below(12) {
            0..=3 => zone.add(&owner, "A", &address(random)),
            4 => zone.add(&owner, "TXT", "\"soup\""),
            5 => zone.add(&owner, "MX", &format!("10 {target}")),
            6 | 7 => zone.add(&owner, "CNAME", &target),
            8 => zone.add(&owner, "NS", &target),
            9 => zone.add(&owner, "NS", &format!("ns.{owner}")),
            10 => zone.add(&owner, "DNAME", &target),
            _ => zone.add(&owner, "SRV", &format!("1 1 80 {target}")),
        }
    }
}
