//! `zonda file check`.

use super::input::Input;
use crate::output::{self, Failure};
use clap::Args;
use std::io::Write;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};
use zonda_wire::Type;
use zonda_zone::{JsonZone, check};

/// Say what is wrong with a zone file
///
/// Looks at each record and at how they fit together: aliases beside other data, servers without
/// address or glue, records hidden by delegations, signatures that have expired, and so on. An
/// error is what keeps the file from being read, or what makes BIND or Knot refuse the zone.
#[derive(Args)]
#[command(after_help = "\
Exit code: 0 without errors, 1 with errors, 2 when there is no such file.

Examples:
  zonda file check example.com.zone
  zonda file check --origin example.com db.example
  zonda file check zones.json")]
pub struct Check {
    #[command(flatten)]
    input: Input,
    /// Check signatures as of this time, in seconds since 1970, instead of now
    #[arg(long, value_name = "SECONDS")]
    now: Option<u32>,
}

impl Check {
    /// Checks.
    ///
    /// # Errors
    /// When the file cannot be read at all.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let now = self.now.unwrap_or_else(unix_secs);
        let (zones, mut diagnostics) = self.input.read()?;
        for zone in zones.iter().filter(|zone| !zone.is_lost()) {
            diagnostics.append(check::check(&zone.name, &zone.records, now));
        }
        output::print(|out| {
            write!(out, "{diagnostics}")?;
            zones.iter().try_for_each(|zone| writeln!(out, "{}", summary(zone)))?;
            let (errors, warnings) = (diagnostics.error_count(), diagnostics.warning_count());
            writeln!(out, "{}, {}", count(errors, "error"), count(warnings, "warning"))
        })?;
        Ok(if diagnostics.has_errors() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

/// A zone in one line.
fn summary(zone: &JsonZone) -> String {
    let records = count(zone.records.len() as u64, "record");
    match serial(zone) {
        Some(serial) => format!("{}: serial {serial}, {records}", zone.name),
        None => format!("{}: {records}", zone.name),
    }
}

/// The serial number of a zone's SOA record.
pub fn serial(zone: &JsonZone) -> Option<u32> {
    let soa = zone.records.iter().find(|record| record.rtype == Type::SOA)?;
    let numbers = soa.rdata.last_chunk::<20>()?;
    numbers.first_chunk().map(|serial| u32::from_be_bytes(*serial))
}

/// A number of things.
pub fn count(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// Returns the seconds since 1970, as signatures count them.
fn unix_secs() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs() as u32 // signatures count modulo 2³² (rfc4034#3.1.5)
}
