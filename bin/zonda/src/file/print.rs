//! `zonda file print`.

use super::input::Input;
use crate::output::{self, Failure};
use clap::Args;
use std::process::ExitCode;
use zonda_zone::print;

/// Print a zone file in canonical form
///
/// One record a line with tabs between its fields, in canonical order, SOA first, without
/// duplicates, all names written out and all times in seconds. Two files that print the same hold
/// the same zone.
#[derive(Args)]
#[command(after_help = "\
Examples:
  zonda file print example.com.zone
  diff <(zonda file print old.zone) <(zonda file print new.zone)")]
pub struct Print {
    #[command(flatten)]
    input: Input,
}

impl Print {
    /// Prints.
    ///
    /// # Errors
    /// When the file cannot be read in whole.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let zones = self.input.read_whole()?;
        output::print(|out| zones.iter().try_for_each(|zone| print::print(&zone.records, out)))?;
        Ok(ExitCode::SUCCESS)
    }
}
