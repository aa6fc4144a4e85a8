//! `zonda file convert`.

use super::input::Input;
use crate::output::{self, Failure};
use clap::{Args, ValueEnum};
use std::process::ExitCode;
use zonda_zone::{json, print};

/// Turn a zone file into JSON, or JSON into a zone file
///
/// JSON is the format of erldns (DNSimple). Nothing is lost either way: data that JSON cannot say
/// field by field is written under the type's number, in base 64.
#[derive(Args)]
#[command(after_help = "\
Examples:
  zonda file convert --to json example.com.zone > example.com.json
  zonda file convert --to zone --origin example.com zones.json > example.com.zone")]
pub struct Convert {
    #[command(flatten)]
    input: Input,
    /// The format to convert to
    #[arg(long, value_name = "FORM")]
    to: Form,
}

/// The forms of a zone file.
#[derive(Clone, Copy, ValueEnum)]
enum Form {
    /// Zones of erldns
    Json,
    /// A master file (RFC 1035) in canonical form
    Zone,
}

impl Convert {
    /// Converts.
    ///
    /// # Errors
    /// When the file cannot be read in whole, or several zones should become one file.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let zones = self.input.read_whole()?;
        match self.to {
            Form::Json => output::print(|out| json::write(&zones, out))?,
            Form::Zone => {
                let [zone] = &zones[..] else {
                    let names: Vec<_> = zones.iter().map(|zone| zone.name.to_string()).collect();
                    let names = names.join(" ");
                    let choose = format!("choose one of the zones with --origin: {names}");
                    return Err(Failure::NotRun(choose));
                };
                output::print(|out| print::print(&zone.records, out))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
