//! From the words of the command line to a message and how to send it.

use super::Query;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::net::IpAddr;
use std::time::Duration;
use zonda_wire::message::{Message, Opt, Question};
use zonda_wire::query::{flag, option};
use zonda_wire::{Class, Name, Type};

/// Where the system's name servers are listed.
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// What to ask, whom, and how.
pub struct Request {
    /// The message.
    pub message: Message,
    /// An address or a name.
    pub server: String,
    /// Where it listens.
    pub port: u16,
    /// TCP from the beginning.
    pub tcp: bool,
    /// A reply that was cut off is shown as it is.
    pub ignore_truncation: bool,
    /// How long to wait for each reply.
    pub timeout: Duration,
    /// How often to ask over UDP, at least once.
    pub tries: u32,
    /// How to show the reply.
    pub form: Form,
}

/// How a reply is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// All sections, a line for each record.
    Text,
    /// The data of the answer.
    Short,
    /// An object.
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
        }
    }
}

/// An option behind `+`.
pub struct QueryOption {
    /// What stands behind `+`.
    pub name: &'static str,
    /// `=` and what stands for the value; empty for an option that is on or off.
    pub value: &'static str,
    /// What it does, in a line.
    pub help: &'static str,
    /// What it changes.
    set: Set,
}

/// What an option changes.
enum Set {
    /// Turned on, or off by `no` before its name.
    Flag(fn(&mut Settings, bool)),
    /// A number within a range.
    Number(u16, u16, fn(&mut Settings, u16)),
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
];

impl Request {
    /// Reads the command line.
    ///
    /// # Errors
    /// The first word that is wrong.
    pub fn new(query: &Query) -> Result<Self, String> {
        let mut settings = Settings::default();
        let mut server = None;
        let mut name = query.reverse.map(|address| Ok(reverse_name(address)));
        let (mut qtype, mut class) = (query.qtype, query.class);
        for word in &query.words {
            if let Some(option) = word.strip_prefix('+') {
                settings.apply(option)?;
            } else if let Some(address) = word.strip_prefix('@') {
                server = Some(address.to_owned());
            } else if name.is_none() {
                name = Some(word.parse().map_err(|error| format!("{word}: {error}")));
            } else if let (None, Ok(found)) = (qtype, word.parse()) {
                qtype = Some(found);
            } else if let (None, Ok(found)) = (class, word.parse()) {
                class = Some(found);
            } else {
                return Err(format!("expected a record type or class, found {word}"));
            }
        }
        let usual = if query.reverse.is_some() { Type::PTR } else { Type::A };
        let question = Question {
            name: name.ok_or("give a name to ask for, or an address with -x")??,
            qtype: qtype.unwrap_or(usual),
            qclass: class.unwrap_or(Class::IN),
        };
        if matches!(question.qtype, Type::AXFR | Type::IXFR) {
            return Err(format!("{}: transfers of zones are not supported", question.qtype));
        }
        Ok(Self {
            message: settings.message(question),
            server: server.unwrap_or_else(usual_server),
            port: query.port,
            tcp: settings.tcp,
            ignore_truncation: settings.ignore_truncation,
            timeout: Duration::from_secs(settings.timeout_secs),
            tries: settings.tries,
            form: settings.form,
        })
    }
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
        let flags = if self.dnssec { 0x8000 } else { 0 };
        let opt = Opt { udp_bytes: self.bufsize, rcode_high: 0, version: 0, flags, options };
        let is_due = self.edns || self.dnssec || self.nsid || self.cookie;
        Message {
            id: random() as u16,
            flags: if self.recursion { flag::RD } else { 0 },
            questions: vec![question],
            records: Vec::new(),
            opt: is_due.then_some(opt),
        }
    }
}

/// A number that others cannot guess: the standard library's hash keys come from the system.
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
    fn addresses_have_names_with_their_parts_reversed() {
        let name = |text: &str| reverse_name(text.parse().unwrap()).to_string();
        assert_eq!(name("192.0.2.10"), "10.2.0.192.in-addr.arpa.");
        assert_eq!(
            name("2001:db8::1"),
            "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa."
        );
    }
}
