//! What commands about one zone have done, as people read it.

use super::show::{items, number, text};
use super::table;
use serde_json::Value;
use std::io::{self, Write};

/// Prints what came of a refresh.
pub fn refreshed(answer: &Value, out: &mut dyn Write) -> io::Result<()> {
    let (zone, serial) = (text(answer, "zone"), number(answer, "serial"));
    let (from, primary) = (number(answer, "from"), text(answer, "primary"));
    match answer["state"].as_str() {
        Some("transferred") => {
            writeln!(out, "{zone} was transferred from {primary}: serial {from} -> {serial}")
        }
        Some("in step") => writeln!(out, "{zone} is in step with {primary}: serial {serial}"),
        _ => writeln!(out, "the refresh of {zone} goes on: `zonda zone show {zone}` tells the end"),
    }
}

/// Prints which servers are told of a version.
pub fn notified(answer: &Value, out: &mut dyn Write) -> io::Result<()> {
    let receivers = items(&answer["receivers"]).iter().filter_map(Value::as_str);
    let receivers = receivers.collect::<Vec<_>>().join(", ");
    let (zone, serial) = (text(answer, "zone"), number(answer, "serial"));
    writeln!(out, "{receivers} are told that {zone} has serial {serial}")
}

/// Prints whether a zone takes updates and edits.
pub fn frozen(answer: &Value, out: &mut dyn Write) -> io::Result<()> {
    let already = if answer["changed"] == true { "" } else { ", as before" };
    let zone = text(answer, "zone");
    match answer["frozen"] == true {
        true => writeln!(out, "{zone} takes no updates and edits{already}"),
        false => writeln!(out, "{zone} takes updates and edits{already}"),
    }
}

/// Prints how many members a catalog has with the version that was confirmed.
pub fn confirmed(answer: &Value, out: &mut dyn Write) -> io::Result<()> {
    let (zone, serial) = (text(answer, "zone"), number(answer, "serial"));
    writeln!(out, "{zone} has serial {serial} in force: {} members", number(answer, "members"))
}

/// Prints the versions of a zone that are held.
pub fn history(answer: &Value, mut out: &mut dyn Write) -> io::Result<()> {
    let rows = items(&answer["versions"]).iter().map(|version| {
        vec![
            number(version, "serial"),
            text(version, "made"),
            text(version, "origin"),
            number(version, "removed"),
            number(version, "added"),
        ]
    });
    let head = ["serial", "made", "origin", "removed", "added"].map(str::to_owned).to_vec();
    table::write(&mut out, &[head].into_iter().chain(rows).collect::<Vec<_>>())
}
