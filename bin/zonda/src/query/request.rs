//! From the words of the command line to a message and how to send it.

use super::key::key_of;
use super::{Query, idn};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;
use zonda_wire::message::{Message, Opt, Question};
use zonda_wire::query::{flag, option};
use zonda_wire::tsig::Key;
use zonda_wire::{Class, Name, Type};

/// Where the system's name servers are listed.
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// A query to send: the message, the server, and how to send it.
pub struct Request {
    /// The message to send.
    pub message: Message,
    /// The key that the message is signed with, if it is.
    pub key: Option<Arc<Key>>,
    /// The address or name of the server.
    pub server: String,
    /// The port on which the server listens.
    pub port: u16,
    /// TCP from the beginning.
    pub tcp: bool,
    /// A reply that was cut off is shown as it is.
    pub ignore_truncation: bool,
    /// How long to wait for each reply.
    pub timeout: Duration,
    /// How often to ask over UDP, at least once.
    pub tries: u32,
    /// Whether the server has an IPv4 (true) or IPv6 (false) address; none: either.
    pub is_ipv4: Option<bool>,
    /// How to show the reply.
    pub form: Form,
    /// Which parts of the reply are shown as text.
    pub shown: DisplayOptions,
}

/// The parts of a reply that are shown as text.
#[derive(Clone)]
pub struct DisplayOptions {
    /// What the header and the OPT record say, and the titles of sections.
    pub comments: bool,
    /// The question of the reply.
    pub question: bool,
    /// The sections of records, in their order.
    pub sections: [bool; 3],
    /// Where the reply came from, and when.
    pub stats: bool,
}

impl DisplayOptions {
    /// All parts, or none.
    fn all(on: bool) -> Self {
        Self { comments: on, question: on, sections: [on; 3], stats: on }
    }
}

/// How a reply is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// All sections, a line for each record.
    Text,
    /// The data of the answer.
    Short,
    /// An object of JSON.
    Json,
}

/// What the options behind `+` decide.
struct Settings {
    tcp: bool,
    ignore_truncation: bool,
    recursion: bool,
    edns: bool,
    dnssec: bool,
    cookie: bool,
    nsid: bool,
    /// The largest UDP reply to take, octets.
    bufsize: u16,
    timeout_secs: u64,
    tries: u32,
    form: Form,
    shown: DisplayOptions,
    /// The client's network, and how many of its bits are told (rfc7871).
    subnet: Option<(IpAddr, u8)>,
    /// The key that the query is signed with, if it is.
    key: Option<Arc<Key>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            tcp: false,
            ignore_truncation: false,
            recursion: true,
            edns: true,
            dnssec: false,
            cookie: false,
            nsid: false,
            bufsize: 1232,
            timeout_secs: 5,
            tries: 3,
            form: Form::Text,
            shown: DisplayOptions::all(true),
            subnet: None,
            key: None,
        }
    }
}

/// An option behind `+`.
pub struct QueryOption {
    /// What stands behind `+`.
    pub name: &'static str,
    /// `=` and what stands for the value; empty for an option that is on or off.
    pub value: &'static str,
    /// One line that says what the option does.
    pub help: &'static str,
    /// The part of the request that the option changes.
    set: Set,
}

/// What an option changes.
enum Set {
    /// Turned on, or off by `no` before its name.
    Flag(fn(&mut Settings, bool)),
    /// A number within a range.
    Number(u16, u16, fn(&mut Settings, u16)),
    /// The network of a client (rfc7871).
    Network(fn(&mut Settings, Option<(IpAddr, u8)>)),
    /// A key to sign with.
    Key(fn(&mut Settings, Option<Arc<Key>>)),
}

/// All options, in the order of the help.
pub const OPTIONS: &[QueryOption] = &[
    QueryOption {
        name: "tcp",
        value: "",
        help: "ask over TCP from the beginning",
        set: Set::Flag(|settings, on| settings.tcp = on),
    },
    QueryOption {
        name: "ignore",
        value: "",
        help: "show a reply that was cut off instead of asking over TCP",
        set: Set::Flag(|settings, on| settings.ignore_truncation = on),
    },
    QueryOption {
        name: "rec",
        value: "",
        help: "ask the server to ask others (on unless +norec)",
        set: Set::Flag(|settings, on| settings.recursion = on),
    },
    QueryOption {
        name: "edns",
        value: "",
        help: "send an OPT record (on unless +noedns)",
        set: Set::Flag(|settings, on| settings.edns = on),
    },
    QueryOption {
        name: "dnssec",
        value: "",
        help: "ask for signatures and proofs",
        set: Set::Flag(|settings, on| settings.dnssec = on),
    },
    QueryOption {
        name: "cookie",
        value: "",
        help: "send a cookie",
        set: Set::Flag(|settings, on| settings.cookie = on),
    },
    QueryOption {
        name: "nsid",
        value: "",
        help: "ask which server it is",
        set: Set::Flag(|settings, on| settings.nsid = on),
    },
    QueryOption {
        name: "subnet",
        value: "=ADDRESS/N",
        help: "say that the client is in this network; =0 that it is not to be said",
        set: Set::Network(|settings, network| settings.subnet = network),
    },
    QueryOption {
        name: "tsig",
        value: "=KEY",
        help: "sign the query, as -y KEY does",
        set: Set::Key(|settings, key| settings.key = key),
    },
    QueryOption {
        name: "bufsize",
        value: "=N",
        help: "take UDP replies of up to N octets (1232)",
        set: Set::Number(0, u16::MAX, |settings, octets| settings.bufsize = octets),
    },
    QueryOption {
        name: "time",
        value: "=SECONDS",
        help: "wait this long for each reply (5)",
        set: Set::Number(1, 3600, |settings, secs| settings.timeout_secs = secs.into()),
    },
    QueryOption {
        name: "tries",
        value: "=N",
        help: "ask this often over UDP (3)",
        set: Set::Number(1, 100, |settings, tries| settings.tries = tries.into()),
    },
    QueryOption {
        name: "short",
        value: "",
        help: "show the data of the answer only",
        set: Set::Flag(|settings, on| settings.form = if on { Form::Short } else { Form::Text }),
    },
    QueryOption {
        name: "json",
        value: "",
        help: "show the reply as a JSON object",
        set: Set::Flag(|settings, on| settings.form = if on { Form::Json } else { Form::Text }),
    },
    QueryOption {
        name: "all",
        value: "",
        help: "show every part of the reply (on unless +noall)",
        set: Set::Flag(|settings, on| settings.shown = DisplayOptions::all(on)),
    },
    QueryOption {
        name: "comments",
        value: "",
        help: "show what the header says, and titles",
        set: Set::Flag(|settings, on| settings.shown.comments = on),
    },
    QueryOption {
        name: "question",
        value: "",
        help: "show the question",
        set: Set::Flag(|settings, on| settings.shown.question = on),
    },
    QueryOption {
        name: "answer",
        value: "",
        help: "show the answer",
        set: Set::Flag(|settings, on| settings.shown.sections[0] = on),
    },
    QueryOption {
        name: "authority",
        value: "",
        help: "show the authority section",
        set: Set::Flag(|settings, on| settings.shown.sections[1] = on),
    },
    QueryOption {
        name: "additional",
        value: "",
        help: "show the additional section",
        set: Set::Flag(|settings, on| settings.shown.sections[2] = on),
    },
    QueryOption {
        name: "stats",
        value: "",
        help: "show where the reply came from, and how soon",
        set: Set::Flag(|settings, on| settings.shown.stats = on),
    },
];

impl Request {
    /// Reads the command line.
    ///
    /// # Errors
    /// The first word that is wrong.
    pub fn new(query: &Query) -> Result<Self, String> {
        let key = query.key.as_deref().map(key_of).transpose()?.map(Arc::new);
        let mut settings = Settings { key, ..Settings::default() };
        let (mut server, mut port, mut named) = (None, query.port, None);
        let mut name = query.reverse.map(|address| Ok(reverse_name(address)));
        let (mut qtype, mut class) = (query.qtype, query.class);
        for word in &query.words {
            if let Some(option) = word.strip_prefix('+') {
                settings.apply(option)?;
            } else if let Some(address) = word.strip_prefix('@') {
                let (address, own_port) = server_of(address)?;
                server = Some(address.to_owned());
                port = own_port.unwrap_or(port);
            } else if name.is_none() {
                name = Some(name_of(word));
                named = Some(word);
            } else if let (None, Ok(found)) = (qtype, word.parse()) {
                qtype = Some(found);
            } else if let (None, Ok(found)) = (class, word.parse()) {
                class = Some(found);
            } else {
                return Err(unexpected(word, named));
            }
        }
        let usual = if query.reverse.is_some() { Type::PTR } else { Type::A };
        let name = name.ok_or("give a name to ask for, or an address with -x")??;
        let mut question = Question::new(name, qtype.unwrap_or(usual));
        question.qclass = class.unwrap_or(Class::IN);
        if matches!(question.qtype, Type::AXFR | Type::IXFR) {
            return Err(format!("{}: transfers of zones are not supported", question.qtype));
        }
        Ok(Self {
            message: settings.message(question),
            key: settings.key,
            server: server.unwrap_or_else(usual_server),
            port,
            is_ipv4: (query.only_ipv4 || query.only_ipv6).then_some(query.only_ipv4),
            tcp: settings.tcp,
            ignore_truncation: settings.ignore_truncation,
            timeout: Duration::from_secs(settings.timeout_secs),
            tries: settings.tries,
            form: settings.form,
            shown: settings.shown,
        })
    }
}

/// A word that is neither type nor class; `named` is the one that was taken for the name.
fn unexpected(word: &str, named: Option<&String>) -> String {
    let plain = format!("expected a record type or class, found {word}");
    match named {
        Some(name) if name.parse::<IpAddr>().is_ok() => format!(
            "{plain}; {name} was taken for the name to ask for: write @{name} if it is the server"
        ),
        Some(name) if word.contains('.') => {
            format!("{plain}; the name to ask for is {name}, and a server begins with @")
        }
        _ => plain,
    }
}

/// The name that a word stands for.
fn name_of(word: &str) -> Result<Name, String> {
    let ascii = idn::to_ascii(word).ok_or_else(|| format!("{word}: not a name of a domain"))?;
    ascii.parse().map_err(|error| format!("{word}: {error}"))
}

/// A server's address or name, and the port behind it if there is one: `192.0.2.1:53`,
/// `192.0.2.1#53`, `[2001:db8::1]:53`, `ns.example.org:53`.
fn server_of(word: &str) -> Result<(&str, Option<u16>), String> {
    if word.parse::<IpAddr>().is_ok() {
        return Ok((word, None));
    }
    let (address, port) = match (word.strip_prefix('['), word.rsplit_once('#')) {
        (Some(inner), _) => match inner.split_once(']') {
            Some((address, "")) => return Ok((address, None)),
            Some((address, rest)) => (address, rest.strip_prefix(':').unwrap_or("")),
            None => return Err(format!("@{word}: the bracket does not end")),
        },
        (None, Some(parts)) => parts,
        (None, None) => match word.split_once(':') {
            Some(parts) => parts,
            None => return Ok((word, None)),
        },
    };
    let wrong = || format!("@{word}: expected a port behind the address, as in @192.0.2.1:53");
    Ok((address, Some(port.parse().ok().filter(|port| *port != 0).ok_or_else(wrong)?)))
}

/// A network as `192.0.2.0/24`; an address alone stands for itself, and 0 for no network at all.
fn network_of(text: &str) -> Option<(IpAddr, u8)> {
    if text == "0" {
        return Some((Ipv4Addr::UNSPECIFIED.into(), 0));
    }
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Some(most), |bits| bits.parse().ok())?;
    (bits <= most).then_some((address, bits))
}

/// The option that tells the client's network (rfc7871#6): family, bits, bits that the answer is
/// for (0 in a question), and as many octets as hold them, the rest of the last one being 0.
fn subnet_option((address, bits): (IpAddr, u8)) -> Vec<u8> {
    let (family, mut octets) = match address {
        IpAddr::V4(v4) => (1, v4.octets().to_vec()),
        IpAddr::V6(v6) => (2, v6.octets().to_vec()),
    };
    octets.truncate(usize::from(bits.div_ceil(8)));
    if let (Some(last), unused @ 1..) = (octets.last_mut(), (8 - bits % 8) % 8) {
        *last = *last >> unused << unused;
    }
    [&[0, family, bits, 0], &*octets].concat()
}

impl Settings {
    /// Applies an option: `name`, `noname` or `name=value`.
    fn apply(&mut self, text: &str) -> Result<(), String> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let known = |name: &str| OPTIONS.iter().find(|option| option.name == name);
        let negated = name.strip_prefix("no").and_then(known);
        match (known(name), negated, value) {
            (Some(QueryOption { set: Set::Flag(set), .. }), _, None) => set(self, true),
            (None, Some(QueryOption { set: Set::Flag(set), .. }), None) => set(self, false),
            (Some(QueryOption { set: Set::Number(min, max, set), .. }), _, Some(value)) => {
                let number = value.parse().ok().filter(|number| (min..=max).contains(&number));
                set(self, number.ok_or(format!("+{name}= takes a number from {min} to {max}"))?);
            }
            (Some(QueryOption { set: Set::Number(..), .. }), _, None) => {
                return Err(format!("+{name} needs a number, as in +{name}=1"));
            }
            (Some(QueryOption { set: Set::Network(set), .. }), _, value) => {
                let network = value.and_then(network_of);
                let wrong = || format!("+{name} needs a network, as in +{name}=192.0.2.0/24");
                set(self, Some(network.ok_or_else(wrong)?));
            }
            (None, Some(QueryOption { set: Set::Network(set), .. }), None) => set(self, None),
            (Some(QueryOption { set: Set::Key(set), .. }), _, value) => {
                let form = format!("+{name} needs a key, as in +{name}={}", super::key::FORM);
                set(self, Some(Arc::new(key_of(value.ok_or(form)?)?)));
            }
            (None, Some(QueryOption { set: Set::Key(set), .. }), None) => set(self, None),
            (Some(_), ..) | (_, Some(_), _) => return Err(format!("+{name} takes no value")),
            _ => return Err(format!("there is no option +{name}; --help lists them")),
        }
        Ok(())
    }

    /// The message that asks.
    fn message(&self, question: Question) -> Message {
        let mut options = Vec::new();
        if self.nsid {
            options.push((option::NSID, Vec::new()));
        }
        if self.cookie {
            options.push((option::COOKIE, random().to_be_bytes().to_vec())); // rfc7873#4.1
        }
        options.extend(self.subnet.map(|it| (option::CLIENT_SUBNET, subnet_option(it))));
        let mut opt = Opt::new(self.bufsize);
        opt.flags = if self.dnssec { 0x8000 } else { 0 };
        opt.options = options;
        let is_due = self.edns || self.dnssec || self.nsid || self.cookie || self.subnet.is_some();
        let flags = if self.recursion { flag::RD } else { 0 };
        let mut query = Message::new(random() as u16, flags, question);
        query.opt = is_due.then_some(opt);
        query
    }
}

/// A number that an attacker cannot guess: the standard library's hash keys come from the system.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// The name under which an address has its PTR record (rfc1035#3.5, rfc3596#2.5).
fn reverse_name(address: IpAddr) -> Name {
    let text = match address {
        IpAddr::V4(v4) => {
            let [a, b, c, d] = v4.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa")
        }
        IpAddr::V6(v6) => {
            let nibbles = v6.octets().into_iter().rev().flat_map(|octet| [octet & 15, octet >> 4]);
            nibbles.map(|nibble| format!("{nibble:x}.")).collect::<String>() + "ip6.arpa"
        }
    };
    text.parse().expect("an address makes a name of at most 74 octets")
}

/// The first name server of the system, or this machine.
fn usual_server() -> String {
    let text = std::fs::read_to_string(RESOLV_CONF).unwrap_or_default();
    let first = text.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        words.next().filter(|keyword| *keyword == "nameserver").and_then(|_| words.next())
    });
    first.unwrap_or("127.0.0.1").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_may_be_written_with_its_port() {
        for (word, server) in [
            ("192.0.2.1", Some(("192.0.2.1", None))),
            ("192.0.2.1:5300", Some(("192.0.2.1", Some(5300)))),
            ("192.0.2.1#5300", Some(("192.0.2.1", Some(5300)))),
            ("2001:db8::1", Some(("2001:db8::1", None))),
            ("2001:db8::1#53", Some(("2001:db8::1", Some(53)))),
            ("[2001:db8::1]:53", Some(("2001:db8::1", Some(53)))),
            ("[2001:db8::1]", Some(("2001:db8::1", None))),
            ("ns.example.org:53", Some(("ns.example.org", Some(53)))),
            ("ns.example.org:0", None),
            ("ns.example.org:dns", None),
            ("[2001:db8::1", None),
            ("[2001:db8::1]53", None),
        ] {
            assert_eq!(server_of(word).ok(), server, "{word}");
        }
    }

    #[test]
    fn a_network_is_told_by_as_many_octets_as_its_bits_need() {
        let option = |text| network_of(text).map(subnet_option);
        assert_eq!(option("192.0.2.255/25").unwrap(), [0, 1, 25, 0, 192, 0, 2, 128]);
        assert_eq!(option("192.0.2.7").unwrap(), [0, 1, 32, 0, 192, 0, 2, 7]);
        assert_eq!(option("2001:db8:ffff::/40").unwrap(), [0, 2, 40, 0, 0x20, 1, 0xd, 0xb8, 0xff]);
        assert_eq!(option("0").unwrap(), [0, 1, 0, 0]);
        assert!(
            ["", "192.0.2.0/33", "192.0.2.0/", "192.0.2"].iter().all(|it| option(it).is_none())
        );
    }

    #[test]
    fn addresses_have_names_with_their_parts_reversed() {
        let name = |text: &str| reverse_name(text.parse().unwrap()).to_string();
        assert_eq!(name("192.0.2.10"), "10.2.0.192.in-addr.arpa.");
        assert_eq!(
            name("2001:db8::1"),
            "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa."
        );
    }
}
