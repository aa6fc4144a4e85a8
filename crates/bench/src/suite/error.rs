//! Why a suite did not run.

use std::{fmt, io};

use super::bed::BedError;
use super::place::SettingError;
use crate::server::KindError;

/// Why a suite did not run.
#[derive(Debug)]
pub enum SuiteError {
    /// A server of an unknown kind.
    Kind(KindError),
    /// A setting of the suite that is no number.
    Setting(SettingError),
    /// Zones and queries cannot be written.
    Stock(BedError),
    /// A failure of the system.
    System(io::Error),
    /// An unknown workload, and the known ones.
    Workload(String, Vec<String>),
    /// A CPU that this process may not use, and the ones that it may.
    Cpu(usize, Vec<usize>),
    /// dnsperf shall ask, and is not there.
    NoDnsperf,
    /// No workload, place or server is left.
    Nothing,
}

impl From<KindError> for SuiteError {
    fn from(error: KindError) -> Self {
        Self::Kind(error)
    }
}

impl From<SettingError> for SuiteError {
    fn from(error: SettingError) -> Self {
        Self::Setting(error)
    }
}

impl From<BedError> for SuiteError {
    fn from(error: BedError) -> Self {
        Self::Stock(error)
    }
}

impl From<io::Error> for SuiteError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl fmt::Display for SuiteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(error) => error.fmt(f),
            Self::Setting(error) => error.fmt(f),
            Self::Stock(error) => error.fmt(f),
            Self::System(error) => error.fmt(f),
            Self::Workload(name, known) => {
                write!(f, "no workload `{name}`; there are {}", known.join(", "))
            }
            Self::Cpu(cpu, allowed) => {
                let allowed: Vec<String> = allowed.iter().map(usize::to_string).collect();
                write!(f, "there is no CPU {cpu} to use; there are {}", allowed.join(", "))
            }
            Self::NoDnsperf => f.write_str("`dnsperf` is not installed: apt-get install dnsperf"),
            Self::Nothing => f.write_str("nothing is left to measure"),
        }
    }
}

impl std::error::Error for SuiteError {}
