//! What a server answers, as people read it.
//!
//! The answers are those of the HTTP interface (docs/admin.md); what a former or later server
//! leaves out is shown as a dash.

use super::table;
use serde_json::Value;
use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

/// Writes an answer for people.
pub type Show = fn(&Value, &mut dyn Write) -> io::Result<()>;

/// Records of a kept answer that are shown.
const RECORDS_MAX: usize = 20;

/// Prints the server's version, state and figures.
pub fn status(answer: &Value, mut out: &mut dyn Write) -> io::Result<()> {
    let zones = aside(
        number(answer, "zones"),
        &[
            (count(answer, "zones_not_served"), "not served"),
            (count(answer, "zones_with_errors"), "with errors"),
        ],
    );
    let failed = (count(answer, "failed_reloads"), "failed");
    let mut reloads = aside(number(answer, "reloads"), &[failed]);
    if let Some(last) = answer["last_reload"].as_str() {
        reloads += &format!(", the last at {last}");
    }
    let problems = match lines(&answer["problems"]) {
        none if none.is_empty() => "none".to_owned(),
        problems => problems,
    };
    table::write_fields(
        &mut out,
        &[
            ("version", text(answer, "version")),
            ("pid", number(answer, "pid")),
            ("up for", table::duration(count(answer, "uptime_seconds"))),
            ("listeners", lines(&answer["listeners"])),
            ("workers", number(answer, "workers")),
            ("zones", zones),
            ("TCP connections", number(answer, "tcp_connections")),
            ("reloads", reloads),
            ("problems", problems),
        ],
    )
}

/// What a server has counted.
pub fn stats(answer: &Value, mut out: &mut dyn Write) -> io::Result<()> {
    let all = count(answer, "queries");
    table::write_fields(
        &mut out,
        &[
            ("up for", table::duration(count(answer, "uptime_seconds"))),
            ("received", table::octets(count(answer, "received_bytes"))),
            ("sent", table::octets(count(answer, "sent_bytes"))),
            ("truncated replies", number(answer, "truncated")),
            ("TCP connections", number(answer, "tcp_connections")),
            ("queries", all.to_string()),
        ],
    )?;
    let reasons = answer["by_reason"].as_object();
    let mut reasons: Vec<(&String, u64)> = reasons
        .into_iter()
        .flatten()
        .map(|(reason, count)| (reason, count.as_u64().unwrap_or(0)))
        .collect();
    if reasons.is_empty() {
        return Ok(());
    }
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let head = ["what became of them", "queries", "share"].map(str::to_owned).to_vec();
    let rows = reasons
        .into_iter()
        .map(|(reason, count)| vec![reason.clone(), count.to_string(), table::share(count, all)]);
    writeln!(out)?;
    table::write(&mut out, &[head].into_iter().chain(rows).collect::<Vec<_>>())
}

/// A page of zones.
pub fn zones(answer: &Value, mut out: &mut dyn Write) -> io::Result<()> {
    let zones = items(&answer["zones"]);
    let head = ["zone", "serial", "records", "memory", "state", "role", "source"];
    let rows = zones.iter().map(|zone| {
        vec![
            text(zone, "name"),
            number(zone, "serial"),
            number(zone, "records"),
            zone["memory_bytes"].as_u64().map_or_else(dash, table::octets),
            state(zone).to_owned(),
            text(zone, "role"),
            text(zone, "source"),
        ]
    });
    let head = head.map(str::to_owned).to_vec();
    table::write(&mut out, &[head].into_iter().chain(rows).collect::<Vec<_>>())?;
    let secondaries = zones.iter().filter(|zone| zone["secondary"].is_object());
    let mut rows: Vec<Vec<String>> = secondaries.map(secondary_row).collect();
    if !rows.is_empty() {
        let head = ["secondary", "serial", "at the primaries", "next refresh", "expires"];
        rows.insert(0, head.map(str::to_owned).to_vec());
        writeln!(out)?;
        table::write(&mut out, &rows)?;
    }
    for zone in zones.iter().filter(|zone| zone["error"].is_string()) {
        writeln!(out, "{}: {}", text(zone, "name"), text(zone, "error"))?;
    }
    let (shown, total) = (zones.len() as u64, count(answer, "total"));
    match zones.last() {
        Some(last) if shown < total => {
            let last = text(last, "name");
            writeln!(out, "{shown} of {total} zones; more behind --after {last}")
        }
        _ => Ok(()),
    }
}

/// Returns the row of a zone from primaries: the serial that each of them has answered last, and
/// the moments that follow.
fn secondary_row(zone: &Value) -> Vec<String> {
    let secondary = &zone["secondary"];
    let primaries = items(&secondary["primaries"]).iter();
    let primaries: Vec<String> = primaries
        .map(|primary| format!("{} at {}", number(primary, "serial"), text(primary, "address")))
        .collect();
    vec![
        text(zone, "name"),
        number(zone, "serial"),
        if primaries.is_empty() { dash() } else { primaries.join(", ") },
        text(secondary, "next_refresh"),
        text(secondary, "expires"),
    ]
}

/// Returns the fields of a zone from primaries.
fn secondary_fields(secondary: &Value) -> Vec<(&'static str, String)> {
    let primary = |primary: &Value| {
        let (address, serial) = (text(primary, "address"), number(primary, "serial"));
        let error = primary["error"].as_str().map(|error| format!(": {error}"));
        let answered = text(primary, "answered");
        format!("{address}, serial {serial} at {answered}{}", error.unwrap_or_default())
    };
    let primaries: Vec<String> = items(&secondary["primaries"]).iter().map(primary).collect();
    let mut fields = vec![
        ("primaries", primaries.join("\n")),
        ("in step", text(secondary, "in_step")),
        ("next refresh", text(secondary, "next_refresh")),
        ("expires", text(secondary, "expires")),
    ];
    let wait = &secondary["memory_wait"];
    if let Some(bytes) = wait["bytes"].as_u64() {
        let waits = format!("for {} since {}", table::octets(bytes), text(wait, "since"));
        fields.push(("waits for memory", waits));
    }
    for (name, key) in [("last error", "error"), ("disk error", "disk_error")] {
        if secondary[key].is_string() {
            fields.push((name, text(secondary, key)));
        }
    }
    fields
}

/// Prints one zone.
pub fn zone(answer: &Value, mut out: &mut dyn Write) -> io::Result<()> {
    let mut fields = vec![
        ("zone", text(answer, "name")),
        ("role", text(answer, "role")),
        ("state", state(answer).to_owned()),
        ("serial", number(answer, "serial")),
        ("records", number(answer, "records")),
        ("memory", answer["memory_bytes"].as_u64().map_or_else(dash, table::octets)),
        ("source", text(answer, "source")),
        ("loaded", text(answer, "loaded")),
    ];
    if answer["error"].is_string() {
        fields.push(("error", text(answer, "error")));
    }
    if answer["frozen"].is_string() {
        fields.push(("frozen", format!("since {}", text(answer, "frozen"))));
    }
    if answer["secondary"].is_object() {
        fields.extend(secondary_fields(&answer["secondary"]));
    }
    if let receivers @ [_, ..] = items(&answer["notify"]) {
        let lines: Vec<String> = receivers.iter().map(receiver).collect();
        fields.push(("notifies", lines.join("\n")));
    }
    let store = &answer["store"];
    if store.is_object() {
        let reachable = if store["reachable"] == true { "reachable" } else { "not reachable" };
        let in_step = text(store, "in_step");
        fields.push(("store", format!("{reachable}, in step at {in_step}")));
    }
    let cluster = &answer["cluster"];
    if cluster.is_object() {
        fields.push(("objects", followed(cluster)));
        if cluster["snapshot_written"].is_string() {
            fields.push(("snapshot", text(cluster, "snapshot_written")));
        }
    }
    table::write_fields(&mut out, &fields)
}

/// Says what a server that is notified of new versions knows.
fn receiver(receiver: &Value) -> String {
    let (address, waiting) = (text(receiver, "address"), &receiver["waiting"]);
    if !waiting.is_object() {
        return format!("{address}, acknowledged");
    }
    let (serial, attempts) = (number(waiting, "serial"), number(waiting, "attempts"));
    let refused = if waiting["refused"] == true { ", refused" } else { "" };
    format!("{address}, serial {serial} not acknowledged, sent {attempts} times{refused}")
}

/// Says which objects of a cluster are followed.
fn followed(cluster: &Value) -> String {
    let kinds = cluster["kinds"].as_array().map_or(&[][..], Vec::as_slice);
    let kinds = kinds.iter().map(|kind| {
        let state = if kind["followed"] == true { "followed" } else { "not followed" };
        format!("{} {state}", text(kind, "kind"))
    });
    kinds.collect::<Vec<_>>().join(", ")
}

/// Returns in a word or two whether a zone is served, and may be changed.
fn state(zone: &Value) -> &'static str {
    match (zone["served"] == true, zone["error"].is_string()) {
        (true, false) if zone["frozen"].is_string() => "served, frozen",
        (true, false) => "served",
        (true, true) => "stale",
        (false, _) => "not served",
    }
}

/// What a reload did.
pub fn reload(answer: &Value, out: &mut dyn Write) -> io::Result<()> {
    for (key, what) in [("loaded", "loaded"), ("removed", "removed")] {
        let names = items(&answer[key]);
        if !names.is_empty() {
            let list: Vec<&str> = names.iter().take(10).filter_map(Value::as_str).collect();
            let more = if names.len() > list.len() { " …" } else { "" };
            writeln!(out, "{what}, {}: {}{more}", names.len(), list.join(" "))?;
        }
    }
    let failed = items(&answer["failed"]);
    failed.iter().filter_map(Value::as_str).try_for_each(|it| writeln!(out, "failed: {it}"))?;
    let is_unchanged =
        ["loaded", "removed", "failed"].iter().all(|it| items(&answer[*it]).is_empty());
    if is_unchanged { writeln!(out, "no zone has changed") } else { Ok(()) }
}

/// The servers that names are forwarded to.
pub fn upstreams(answer: &Value, mut out: &mut dyn Write) -> io::Result<()> {
    let upstreams = items(&answer["upstreams"]);
    if upstreams.is_empty() {
        return writeln!(out, "no names are forwarded");
    }
    let head =
        ["zone", "upstream", "state", "RTT ms", "sent", "answered", "failed", "lost", "waiting"];
    let rows = upstreams.iter().map(|one| {
        vec![
            text(one, "zone"),
            text(one, "upstream"),
            upstream_state(one),
            one["rtt_ms"].as_f64().map_or_else(dash, |millis| format!("{millis:.1}")),
            number(one, "sent"),
            number(one, "answered"),
            number(one, "failed"),
            number(one, "lost"),
            number(one, "outstanding"),
        ]
    });
    let head = head.map(str::to_owned).to_vec();
    table::write(&mut out, &[head].into_iter().chain(rows).collect::<Vec<_>>())?;
    for one in upstreams {
        let failure = &one["connections"]["failure"];
        for trouble in [&one["trouble"], failure].into_iter().filter_map(Value::as_str) {
            writeln!(out, "{}: {trouble}", text(one, "upstream"))?;
        }
    }
    Ok(())
}

/// The state in which the threads that forward see an upstream.
fn upstream_state(one: &Value) -> String {
    let threads = one["threads"].as_object();
    let states: Vec<(&String, u64)> = threads
        .into_iter()
        .flatten()
        .map(|(state, threads)| (state, threads.as_u64().unwrap_or(0)))
        .filter(|(_, threads)| *threads > 0)
        .collect();
    match &states[..] {
        [] => dash(),
        [(state, _)] => (*state).clone(),
        several => {
            let each = several.iter().map(|(state, threads)| format!("{state} {threads}"));
            each.collect::<Vec<_>>().join(", ")
        }
    }
}

/// Prints the cached answers for a name.
pub fn kept_answers(answer: &Value, out: &mut dyn Write) -> io::Result<()> {
    let answers = items(&answer["answers"]);
    if answers.is_empty() {
        return writeln!(out, "no answers are cached for {}", text(answer, "name"));
    }
    for one in answers {
        let rtype = one["type"].as_str().unwrap_or("all types");
        let life = if one["stale"] == true {
            format!("stale, given until {}", text(one, "stale_until"))
        } else {
            format!("for {} s", number(one, "ttl"))
        };
        let (name, kind, rcode) = (text(one, "name"), text(one, "kind"), text(one, "rcode"));
        let mut notes = Vec::new();
        for (key, note) in
            [("dnssec_ok", "DO"), ("checking_disabled", "CD"), ("of_client", "for some clients")]
        {
            notes.extend((one[key] == true).then_some(note));
        }
        let notes = if notes.is_empty() { String::new() } else { format!(", {}", notes.join(" ")) };
        let zone = text(one, "zone");
        writeln!(out, "{name} {rtype}: {kind}, {rcode}, {life}{notes}; zone {zone}")?;
        if let Some(text) = one["text"].as_str().filter(|text| !text.is_empty()) {
            writeln!(out, "  {text}")?;
        }
        let records = items(&one["records"]);
        let shown = records.iter().filter_map(Value::as_str).take(RECORDS_MAX);
        shown.map(|record| format!("  {record}")).try_for_each(|line| writeln!(out, "{line}"))?;
        if records.len() > RECORDS_MAX {
            writeln!(out, "  and {} more", records.len() - RECORDS_MAX)?;
        }
    }
    Ok(())
}

/// How many answers were forgotten.
pub fn forgotten(answer: &Value, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "answers forgotten: {}", number(answer, "removed"))
}

/// Prints that the server stops.
pub fn stopping(_: &Value, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "stopping")
}

/// A number, and in brackets those of it that are anything else than 0.
fn aside(number: String, parts: &[(u64, &str)]) -> String {
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, what)| format!("{count} {what}")).collect();
    if parts.is_empty() { number } else { format!("{number} ({})", parts.join(", ")) }
}

/// What stands for a value that is not there.
pub fn dash() -> String {
    "–".to_owned()
}

/// The text of a key.
pub fn text(object: &Value, key: &str) -> String {
    object[key].as_str().map_or_else(dash, str::to_owned)
}

/// The number of a key, as text.
pub fn number(object: &Value, key: &str) -> String {
    object[key].as_u64().map_or_else(dash, |number| number.to_string())
}

/// The number of a key, 0 if it is not there.
fn count(object: &Value, key: &str) -> u64 {
    object[key].as_u64().unwrap_or(0)
}

/// The items of a list.
pub fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The texts of a list, a line each.
fn lines(value: &Value) -> String {
    items(value).iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
}

/// A moment in seconds since 1970, as the time from now.
pub fn moment(seconds: f64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let distance = (now - seconds).abs() as u64;
    let text = match distance {
        0..60 => format!("{distance}s"),
        60..3600 => format!("{}m {}s", distance / 60, distance % 60),
        3600..86400 => format!("{}h {}m", distance / 3600, distance / 60 % 60),
        _ => format!("{}d {}h", distance / 86400, distance / 3600 % 24),
    };
    if seconds > now { format!("in {text}") } else { format!("{text} ago") }
}
