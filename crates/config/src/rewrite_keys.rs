//! The sections and keys of rules that change questions and replies, and of templates.

use crate::rewrite_value::{
    NamePattern, QueryClass, QueryType, RecordText, ReplyFlag, ReplyRcode, TargetPattern, TtlRange,
};
use crate::section::section;
use std::net::SocketAddr;
use zonda_wire::Name;

section! {
    /// A rule that changes questions before they are answered, and replies before they are sent.
    /// The rules are tried in the order of the file. Give at most one of `exact`, `prefix`,
    /// `suffix`, `substring` and `regex`, which names in lower case and with their final dot are
    /// compared with; without one, the rule is for all names of `zone`. The client gets a reply to
    /// the question that it has asked.
    pub struct RewriteKeys: Array "rewrite", Reload;

    /// The zone whose names, as clients ask for them, the rule is for.
    zone: Name = ".";
    /// Names of the zone that the rule is not for, with all below them.
    except: Vec<Name>, like "cluster.local";
    /// The whole name.
    exact: Option<NamePattern>, like "old.example.com";
    /// The beginning of the name.
    prefix: Option<NamePattern>, like "old-";
    /// The end of the name; `.example.com` is for names below it, `example.com` also for itself,
    /// and for `my-example.com`.
    suffix: Option<NamePattern>, like ".old.example.com";
    /// A part of the name.
    substring: Option<NamePattern>, like ".old.";
    /// A regular expression of the name, in the syntax of RE2; it is compared with any part of the
    /// name, unless it has `^` and `$`.
    regex: Option<NamePattern>, like "^(.*)\\.old\\.example\\.com\\.$";
    /// The type asked for. Unset: all types.
    qtype: Option<QueryType>, like "AAAA";
    /// The class asked for. Unset: all classes.
    qclass: Option<QueryClass>, like "CH";
    /// What takes the place of the part that is given above: with `regex`, of the whole name, and
    /// `{1}` stands for the first group. If no name comes of it, the reply is SERVFAIL.
    to: Option<NamePattern>, like ".new.example.com";
    /// The type to ask for instead.
    to_qtype: Option<QueryType>, like "A";
    /// The class to ask for instead.
    to_qclass: Option<QueryClass>, like "IN";
    /// Whether the new name, and names below it, are changed back to the former one in the owners
    /// of records and in what CNAME, DNAME, MX, NAPTR, NS, PTR, SOA and SRV records lead to.
    restore: bool = "true";
    /// Changes of owners in the reply: a regular expression, a blank, and the new name.
    owners: Vec<TargetPattern>, like "^(.*)\\.new\\.$ {1}.old.";
    /// Changes of the names that records lead to, as those of `owners`.
    targets: Vec<TargetPattern>, like "^(.*)\\.new\\.$ {1}.old.";
    /// The least and the greatest TTL of the reply's records, or the TTL of all.
    ttl: Option<TtlRange>, like "30-300";
    /// A response code that `to-rcode` takes the place of.
    rcode: Option<ReplyRcode>, like "SERVFAIL";
    /// The response code that takes the place of `rcode`.
    to_rcode: Option<ReplyRcode>, like "NXDOMAIN";
    /// Flags of the reply that are set.
    set_flags: Vec<ReplyFlag>, like "RA";
    /// Flags of the reply that are cleared, after that.
    clear_flags: Vec<ReplyFlag>, like "AA";
    /// Whether the rules that follow are left out for a question that this one is for.
    stop: bool = "true";
    /// The listeners whose queries the rule is for, by their addresses as `[[listen]]` has them.
    /// Unset: all of them.
    listen: Vec<SocketAddr>, like "127.0.0.1:53";
}

section! {
    /// Records that are made from the question, in front of all zones. Templates are tried in the
    /// order of the file; the first whose zone, type and pattern fit makes the reply. In a record,
    /// `{{ .Name }}` stands for the name asked for, `{{ .Zone }}`, `{{ .Class }}`, `{{ .Type }}`
    /// and `{{ .Remote }}` for zone, class, type and the client's address, `{{ .Group.x }}` and
    /// `{{ index .Match 1 }}` for groups of the pattern by name and number.
    pub struct TemplateKeys: Array "template", Reload;

    /// The zones whose names it is for.
    zones: Vec<Name> = ".";
    /// Names of the zones that it is not for, with all below them.
    except: Vec<Name>, like "cluster.local";
    /// The type asked for. Unset: all types.
    qtype: Option<QueryType>, like "A";
    /// Regular expressions in the syntax of RE2, of which the name, in lower case and with its
    /// final dot, matches one. Unset: all names.
    regex: Vec<NamePattern>, like "^ip-(?P<last>[0-9]+)\\.example\\.com\\.$";
    /// Records of the answer: owner, TTL, class, type and data.
    answer: Vec<RecordText>, like "{{ .Name }} 60 IN A 192.0.2.{{ .Group.last }}";
    /// Records of the authority section.
    authority: Vec<RecordText>, like "example.com. 60 IN NS ns.example.com.";
    /// Records of the additional section.
    additional: Vec<RecordText>, like "ns.example.com. 60 IN A 192.0.2.53";
    /// The response code.
    rcode: ReplyRcode = "NOERROR";
    /// The code of an extended error (rfc8914).
    extended_error: Option<u16>, like "15";
    /// The text of the extended error.
    extended_error_text: Option<String>, like "blocked here";
    /// Whether names of the zones that match no pattern are answered as if there were no template.
    /// Without that, they are SERVFAIL.
    fall_through: bool = "false";
    /// Zones whose names fall through; unset: all of them.
    fall_through_zones: Vec<Name>, like "example.org";
    /// The listeners whose queries it is for, by their addresses as `[[listen]]` has them. Unset:
    /// all of them.
    listen: Vec<SocketAddr>, like "127.0.0.1:53";
}
