//! `zonda zone get`, `set`, `unset`, `diff` and `flush`: the records of zones that are served.

use super::{Target, printable};
use crate::output::{self, Failure};
use crate::query::idn;
use clap::Args;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::process::ExitCode;
use zonda_server::client::{Answer, ask, ask_with, encoded};
use zonda_wire::{Name, Type, name, rdata};
use zonda_zone::SetChange;
use zonda_zone::json::read_changes;
use zonda_zone::print::print_record;
use zonda_zone::{Record, Records};

/// Names of zones that an error lists.
const LISTED_MAX: usize = 5;

/// Which server is asked, and how the answer is shown.
#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    target: Target,
    /// The zone of the name, where it is not the one whose name is longest
    #[arg(long, value_name = "NAME")]
    zone: Option<String>,
    /// Print what the server answers as it is: JSON, as described in docs/admin.md
    #[arg(long)]
    json: bool,
}

/// Under which conditions records are changed.
#[derive(Args)]
pub struct Conditions {
    /// Change nothing unless the zone has this serial
    #[arg(long, value_name = "N")]
    if_serial: Option<u32>,
    #[command(flatten)]
    version: VersionOptions,
}

/// Whether a version is made, and where it must be when the command returns.
#[derive(Args)]
pub struct VersionOptions {
    /// Show what would differ, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Return when the servers that are notified of the zone have the change, after so many seconds
    /// at most; the exit code is 1 if one has not
    #[arg(
        long,
        value_name = "SECONDS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "10",
        value_parser = clap::value_parser!(u8).range(1..=60),
        conflicts_with = "dry_run"
    )]
    wait: Option<u8>,
}

impl VersionOptions {
    /// The query string of a request.
    pub fn parameters(&self) -> String {
        match self.wait {
            Some(seconds) => format!("?wait=secondaries&wait-max={seconds}"),
            None if self.dry_run => "?dry-run".to_owned(),
            None => String::new(),
        }
    }
}

/// Shows the records of a name, or of a whole zone.
pub fn get(given: Option<&str>, rtype: Option<&str>, options: &Options) -> ExitCode {
    output::end(try_get(given, rtype, options))
}

fn try_get(
    given: Option<&str>,
    rtype: Option<&str>,
    options: &Options,
) -> Result<ExitCode, Failure> {
    let server = Server::find(options)?;
    let path = match given {
        Some(given) => {
            let owner = ascii(given)?;
            let zone = server.zone_of(&owner, rtype)?;
            let rtype = rtype.map(|rtype| format!("/{}", encoded(rtype))).unwrap_or_default();
            format!("{}/rrsets/{}{rtype}", zone_path(&zone), encoded(&owner))
        }
        None => format!("{}/rrsets?limit={}", zone_path(&server.only_zone()?), usize::MAX),
    };
    let answer = server.ask("GET", &path)?;
    server.show(&answer, |value, mut out| {
        let records = records(&value["rrsets"])?;
        records
            .iter()
            .try_for_each(|record| print_record(&record, &mut out))
            .map_err(|it| it.to_string())
    })
}

/// Gives a name these records, in place of all that it has of the type.
pub fn set(
    (owner, ttl, rtype): (&str, u32, &str),
    data: &[String],
    conditions: &Conditions,
    options: &Options,
) -> ExitCode {
    output::end(try_set((owner, ttl, rtype), data, conditions, options))
}

fn try_set(
    (owner, ttl, rtype): (&str, u32, &str),
    data: &[String],
    conditions: &Conditions,
    options: &Options,
) -> Result<ExitCode, Failure> {
    let records: Vec<String> = data.iter().map(|data| as_written(rtype, data)).collect();
    let body = json!({ "ttl": ttl, "records": records }).to_string();
    let (server, mut answer) = change("PUT", (owner, Some(rtype)), &body, conditions, options)?;
    if let Some(body) = with_argument(&answer.body, data).filter(|_| !options.json) {
        answer.body = body;
    }
    server.show(&answer, show_difference)
}

/// Returns the answer to a wrong record with the argument that it was written as, instead of its
/// place in the request; nothing for another answer.
fn with_argument(body: &str, data: &[String]) -> Option<String> {
    let mut value: Value = serde_json::from_str(body).ok()?;
    let (number, what) = value["detail"].as_str()?.strip_prefix("records[")?.split_once(']')?;
    let argument = data.get(number.parse::<usize>().ok()?)?;
    let what = what.trim_start_matches(['.', ':', ' ']);
    let is_in_parts = data.len() > 1 && !data.iter().any(|it| it.contains(' '));
    let hint = match is_in_parts && what.ends_with("found the end of the record") {
        true => "; each DATA is a record: write one of several words in quotation marks",
        false => "",
    };
    value["detail"] = format!("`{argument}`: {what}{hint}").into();
    Some(value.to_string())
}

/// Takes records from a name: all, or those of a type.
pub fn unset(
    owner: &str,
    rtype: Option<&str>,
    conditions: &Conditions,
    options: &Options,
) -> ExitCode {
    let answer = change("DELETE", (owner, rtype), "", conditions, options);
    output::end(answer.and_then(|(server, answer)| server.show(&answer, show_difference)))
}

/// The name that an argument stands for: letters beyond ASCII are written as registries have them.
fn ascii(given: &str) -> Result<String, Failure> {
    let name = idn::to_ascii(given);
    name.ok_or_else(|| Failure::NotRun(format!("{given} is not a name of a domain")))
}

/// The data of a record as a master file has them. An argument of TXT records without quotation
/// marks is one character-string, or as many as it takes.
fn as_written(rtype: &str, data: &str) -> String {
    /// Octets of a character-string at most (rfc1035#3.3).
    const STRING_MAX: usize = 255;
    let is_text = ["TXT", "SPF"].iter().any(|text| rtype.eq_ignore_ascii_case(text));
    if !is_text || data.contains('"') {
        return data.to_owned();
    }
    let chunks = data.as_bytes().chunks(STRING_MAX);
    let strings = chunks.map(|octets| {
        let text = octets.iter().map(|octet| match octet {
            b'\\' => "\\\\".to_owned(),
            b' '..=b'~' => char::from(*octet).to_string(),
            other => format!("\\{other:03}"),
        });
        format!("\"{}\"", text.collect::<String>())
    });
    let strings: Vec<String> = strings.collect();
    if strings.is_empty() { "\"\"".to_owned() } else { strings.join(" ") }
}

/// Changes a set, or all of a name; returns the server that was asked, and its answer.
fn change<'o>(
    method: &str,
    (owner, rtype): (&str, Option<&str>),
    body: &str,
    conditions: &Conditions,
    options: &'o Options,
) -> Result<(Server<'o>, Answer), Failure> {
    let server = Server::find(options)?;
    let owner = &ascii(owner)?;
    let zone = server.zone_of(owner, rtype)?;
    let rtype = rtype.map(|rtype| format!("/{}", encoded(rtype))).unwrap_or_default();
    let parameters = conditions.version.parameters();
    let path = format!("{}/rrsets/{}{rtype}{parameters}", zone_path(&zone), encoded(owner));
    let serial = conditions.if_serial.map(|serial| serial.to_string());
    let headers: Vec<(&str, &str)> =
        serial.iter().map(|serial| ("if-match", serial.as_str())).collect();
    let answer = ask_with(&server.socket, (method, &path), &headers, body);
    let answer = answer.map_err(|error| error.to_string())?;
    Ok((server, answer))
}

/// Shows what the files of zones lack: of one zone, or of all that the server has.
pub fn diff(zone: Option<&str>, options: &Options) -> ExitCode {
    output::end(try_diff(zone, options))
}

fn try_diff(zone: Option<&str>, options: &Options) -> Result<ExitCode, Failure> {
    let server = Server::find(options)?;
    let zone = named(zone, options)?.map_or_else(|| server.only_zone(), Ok)?;
    let answer = server.ask("GET", &format!("{}/diff", zone_path(&zone)))?;
    server.show(&answer, show_difference)
}

/// Writes changes to the files of zones: of one zone, or of all.
pub fn flush(zone: Option<&str>, options: &Options) -> ExitCode {
    output::end(try_flush(zone, options))
}

fn try_flush(zone: Option<&str>, options: &Options) -> Result<ExitCode, Failure> {
    let server = Server::find(options)?;
    let zone = named(zone, options)?;
    let zone = zone.map(|zone| format!("?zone={}", encoded(&zone))).unwrap_or_default();
    let answer = server.ask("POST", &format!("/v1/flush{zone}"))?;
    server.show(&answer, |value, out| {
        let flushed = value["flushed"].as_array().map_or(&[][..], Vec::as_slice);
        let mut lines: Vec<String> = flushed
            .iter()
            .map(|it| format!("{} {}", it["zone"].as_str().unwrap_or_default(), it["serial"]))
            .collect();
        let failed = value["failed"].as_array().map_or(&[][..], Vec::as_slice);
        lines.extend(failed.iter().filter_map(Value::as_str).map(str::to_owned));
        if lines.is_empty() {
            lines.push("the files of all zones have all changes".to_owned());
        }
        lines.iter().try_for_each(|line| writeln!(out, "{line}")).map_err(|error| error.to_string())
    })
}

/// The zone that is named, as an argument or by `--zone`.
fn named(zone: Option<&str>, options: &Options) -> Result<Option<String>, Failure> {
    match (zone, options.zone.as_deref()) {
        (Some(_), Some(_)) => Err(Failure::NotRun("name the zone once, without --zone".to_owned())),
        (Some(zone), None) | (None, Some(zone)) => ascii(zone).map(Some),
        (None, None) => Ok(None),
    }
}

/// The path of a zone in the HTTP interface.
fn zone_path(zone: &str) -> String {
    format!("/v1/zones/{}", encoded(zone))
}

/// Shows a difference: the records that are gone and those that are new, and the serials.
fn show_difference(value: &Value, out: &mut dyn Write) -> Result<(), String> {
    let failed = |error: io::Error| error.to_string();
    let (from, to) = (&value["from"], &value["to"]);
    if from == to {
        writeln!(out, "nothing differs; the serial is {from}").map_err(failed)?;
        return show_secondaries(&value["secondaries"], out).map_err(failed);
    }
    for (sign, sets) in [('-', &value["removed"]), ('+', &value["added"])] {
        for Record { owner, rtype, ttl, rdata } in records(sets)?.iter() {
            let owner = name::Presentation(owner);
            let data = rdata::Presentation { rtype, rdata };
            writeln!(out, "{sign} {owner} {ttl} {rtype} {data}").map_err(failed)?;
        }
    }
    let dry_run = value["dry_run"] == true;
    let verb = if dry_run { "the serial would rise" } else { "the serial rose" };
    writeln!(out, "{verb} from {from} to {to}").map_err(failed)?;
    show_secondaries(&value["secondaries"], out).map_err(failed)
}

/// Shows which version the servers have that are notified of a zone, if that was asked for.
fn show_secondaries(secondaries: &Value, out: &mut dyn Write) -> io::Result<()> {
    let Some(secondaries) = secondaries.as_array() else { return Ok(()) };
    if secondaries.is_empty() {
        return writeln!(out, "no server is notified of the zone: there is none to wait for");
    }
    for server in secondaries {
        let address = server["address"].as_str().unwrap_or_default();
        let error = server["error"].as_str().unwrap_or_default();
        match (&server["has_version"], &server["serial"]) {
            (Value::Bool(true), serial) => writeln!(out, "{address} has serial {serial}")?,
            (_, Value::Null) => writeln!(out, "{address} does not have it: {error}")?,
            (_, serial) => writeln!(out, "{address} has serial {serial}: {error}")?,
        }
    }
    Ok(())
}

/// Writes a difference that a command has made.
pub fn difference(value: &Value, out: &mut dyn Write) -> io::Result<()> {
    show_difference(value, out).map_err(io::Error::other)
}

/// The records of sets in JSON.
fn records(sets: &Value) -> Result<Records, String> {
    let body = json!({ "changes": sets }).to_string();
    let unknown = |error: &dyn std::fmt::Display| {
        format!("the server's answer is not understood ({error}); --json shows it as it is")
    };
    let sets = read_changes(body.as_bytes()).map_err(|error| unknown(&error))?;
    let mut records = Records::default();
    for set in sets {
        let SetChange::Put { owner, rtype, ttl, data } = set else { continue };
        for rdata in &data {
            let record = Record { owner: owner.as_wire(), rtype, ttl, rdata };
            records.push(record, 0).map_err(|_| unknown(&"too many records"))?;
        }
    }
    Ok(records)
}

/// The server that is asked.
struct Server<'o> {
    socket: std::path::PathBuf,
    options: &'o Options,
}

impl<'o> Server<'o> {
    /// Finds the server.
    fn find(options: &'o Options) -> Result<Self, Failure> {
        let socket = options.target.path()?;
        Ok(Self { socket, options })
    }

    /// Sends a request without a body.
    fn ask(&self, method: &str, path: &str) -> Result<Answer, Failure> {
        Ok(ask(&self.socket, method, path).map_err(|error| error.to_string())?)
    }

    /// The zone of a name: the longest that the server has, unless it is given. DS records of a
    /// name that is a zone are in the zone above (rfc4035#2.4), where the server has that.
    fn zone_of(&self, given: &str, rtype: Option<&str>) -> Result<String, Failure> {
        if let Some(zone) = &self.options.zone {
            return ascii(zone);
        }
        let name: Name =
            given.parse().map_err(|error| format!("{given} is not a name: {error}"))?;
        let is_ds = rtype.is_some_and(|rtype| rtype.parse() == Ok(Type::DS));
        let (mut wire, mut own) = (name.as_wire(), None);
        loop {
            let zone = Name::from_wire(wire).map_err(|error| error.to_string())?.to_string();
            let is_served = self.ask("GET", &zone_path(&zone))?.status == 200;
            if is_served && is_ds && wire.len() == name.as_wire().len() {
                own = Some(zone);
            } else if is_served {
                return Ok(zone);
            }
            let len = usize::from(wire[0]);
            if let (0, Some(own)) = (len, &own) {
                return Ok(own.clone());
            }
            if len == 0 {
                let served = self.zones()?;
                return Err(Failure::NotRun(format!(
                    "the server has no zone with the name {given}; it has {}",
                    listed(&served)
                )));
            }
            wire = &wire[1 + len..];
        }
    }

    /// The zone, where the server has one.
    fn only_zone(&self) -> Result<String, Failure> {
        if let Some(zone) = &self.options.zone {
            return ascii(zone);
        }
        let mut zones = self.zones()?;
        match zones.len() {
            1 => Ok(zones.remove(0)),
            _ => Err(Failure::NotRun(format!("name the zone: the server has {}", listed(&zones)))),
        }
    }

    /// The first zones of the server.
    fn zones(&self) -> Result<Vec<String>, Failure> {
        let answer = self.ask("GET", &format!("/v1/zones?limit={}", LISTED_MAX + 1))?;
        let value: Value = serde_json::from_str(&answer.body).unwrap_or_default();
        let zones = value["zones"].as_array().map_or(&[][..], Vec::as_slice);
        let names = zones.iter().filter_map(|zone| Some(zone["name"].as_str()?.to_owned()));
        Ok(names.collect())
    }

    /// Shows an answer, or tells on standard error why there is none.
    fn show(
        &self,
        answer: &Answer,
        show: impl FnOnce(&Value, &mut dyn Write) -> Result<(), String>,
    ) -> Result<ExitCode, Failure> {
        let value: Option<Value> = serde_json::from_str(&answer.body).ok();
        let is_success = (200..300).contains(&answer.status);
        let is_done = is_success && answer.status != 202; // 202: a secondary lacks the change
        let mut text = Vec::new();
        match value.filter(|_| !self.options.json) {
            Some(value) if value["detail"].is_string() => {
                text.extend(value["detail"].as_str().unwrap_or_default().as_bytes());
            }
            Some(value) => show(&value, &mut text)?,
            None => text.extend(answer.body.as_bytes()),
        }
        let text = printable(&String::from_utf8_lossy(&text));
        match is_success {
            true => output::print(|out| out.write_all(text.as_bytes()))?,
            false => text.lines().for_each(output::line),
        }
        Ok(ExitCode::from(u8::from(!is_done)))
    }
}

/// Names of zones for a message.
fn listed(zones: &[String]) -> String {
    let shown = zones.iter().take(LISTED_MAX).cloned().collect::<Vec<_>>().join(", ");
    match zones.len() {
        0 => "none".to_owned(),
        count if count > LISTED_MAX => format!("{shown} and more: `zonda zone list`"),
        _ => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_of_txt_without_quotation_marks_is_one_character_string() {
        assert_eq!(as_written("txt", "v=spf1 -all"), "\"v=spf1 -all\"");
        assert_eq!(as_written("TXT", "\"one\" \"two\""), "\"one\" \"two\"");
        assert_eq!(as_written("TXT", "a\\b é"), "\"a\\\\b \\195\\169\"");
        assert_eq!(as_written("TXT", ""), "\"\"");
        assert_eq!(as_written("MX", "10 mail.example.com"), "10 mail.example.com");
        let long = as_written("TXT", &"x".repeat(300));
        assert_eq!(long, format!("\"{}\" \"{}\"", "x".repeat(255), "x".repeat(45)));
    }
}
