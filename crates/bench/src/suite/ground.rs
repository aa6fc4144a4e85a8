//! Where a suite runs: its CPUs, and a folder for its files.

use std::path::{Path, PathBuf};
use std::{env, fs, process};

use super::error::SuiteError;
use super::place::Place;
use super::run::Options;
use crate::data::CpusUsed;

/// The name of the folder for files, before the number of the process.
const FOLDER: &str = "zonda-bench-";

/// Where things run.
#[derive(Clone, Debug)]
pub struct Ground {
    /// CPUs of the servers.
    pub server_cpus: Vec<usize>,
    /// CPUs of the generator, the relay and the upstream.
    pub load_cpus: Vec<usize>,
    /// A folder for files, empty at first.
    pub folder: PathBuf,
}

impl Ground {
    /// Returns what the options say, or halves of the CPUs that this process may use; a CPU that is
    /// the only one serves both.
    pub fn of(options: &Options) -> Result<Self, SuiteError> {
        let cpus = zonda_netio::process::allowed_cpus()?;
        let mut wanted = options.server_cpus.iter().chain(&options.load_cpus);
        if let Some(cpu) = wanted.find(|cpu| !cpus.contains(cpu)) {
            return Err(SuiteError::Cpu(*cpu, cpus));
        }
        let (servers, load) = cpus.split_at(cpus.len() / 2);
        let chosen = |given: &[usize], half: &[usize]| {
            if given.is_empty() { half.to_vec() } else { given.to_vec() }
        };
        remove_left_folders();
        let folder = env::temp_dir().join(format!("{FOLDER}{}", process::id()));
        fs::create_dir_all(&folder)?;
        let servers = if servers.is_empty() { load } else { servers };
        Ok(Self {
            server_cpus: chosen(&options.server_cpus, servers),
            load_cpus: chosen(&options.load_cpus, load),
            folder,
        })
    }
}

impl Ground {
    /// Returns how many of the CPUs can be busy at a place.
    pub fn cpus_used(&self, place: &Place) -> CpusUsed {
        CpusUsed {
            server: self.server_cpus.len().min(place.cpus()).max(1),
            load: self.load_cpus.len().min(place.clients).min(place.outstanding).max(1),
        }
    }
}

/// Removes what interrupted runs have left: it can be the files of a million zones.
fn remove_left_folders() {
    for entry in fs::read_dir(env::temp_dir()).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(FOLDER)?.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::suite::spec::Suite;

    #[test]
    fn threads_and_clients_bound_the_cpus_that_can_be_busy() {
        let suites = Suite::shipped();
        let suite = suites.iter().find(|suite| suite.name == "dinodns-coredns").unwrap();
        let mut places = Place::all(&suite.workloads[0]).unwrap();
        let ground = |cpus: usize| {
            let [server_cpus, load_cpus] = [(0..cpus).collect(), (cpus..2 * cpus).collect()];
            Ground { server_cpus, load_cpus, folder: PathBuf::new() }
        };
        assert_eq!(ground(8).cpus_used(&places[0]), CpusUsed { server: 1, load: 8 });
        assert_eq!(ground(8).cpus_used(&places[2]), CpusUsed { server: 2, load: 8 });
        assert_eq!(ground(1).cpus_used(&places[2]), CpusUsed { server: 1, load: 1 });
        places[0].clients = 3;
        assert_eq!(ground(8).cpus_used(&places[0]).load, 3);
    }
}
