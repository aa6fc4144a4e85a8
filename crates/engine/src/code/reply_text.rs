//! Replies of code as text, for programs that print them.

use super::reply::Reply;
use std::fmt;
use zonda_wire::rdata::Presentation;
use zonda_wire::{Section, Type, name};

impl fmt::Debug for Reply {
    /// Writes response code, records as lines of zone files, and the extended error.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut reply = f.debug_struct("Reply");
        reply.field("ending", &self.ending).field("rcode", &self.rcode);
        for (name, wanted) in [
            ("answer", Section::Answer),
            ("authority", Section::Authority),
            ("additional", Section::Additional),
        ] {
            let own = self.records().filter(|(section, ..)| *section == wanted);
            let lines: Vec<String> = own.map(line_of).collect();
            if !lines.is_empty() {
                reply.field(name, &lines);
            }
        }
        if let Some((code, text)) = self.error() {
            reply.field("extended_error", &format_args!("{code} {text:?}"));
        }
        reply.finish_non_exhaustive()
    }
}

/// Returns a record as a line of a zone file; `@` stands for the name asked for.
fn line_of((_, owner, rtype, ttl, rdata): (Section, &[u8], Type, u32, &[u8])) -> String {
    let data = Presentation { rtype, rdata };
    match owner {
        [] => format!("@ {ttl} IN {rtype} {data}"),
        owner => format!("{} {ttl} IN {rtype} {data}", name::Presentation(owner)),
    }
}
