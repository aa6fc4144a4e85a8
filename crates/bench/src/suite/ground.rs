//! Where a suite runs: its CPUs, and a folder for its files.

use std::path::{Path, PathBuf};
use std::{env, fs, io, process};

use super::run::Options;

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
    /// What the options say, or halves of the CPUs that this process may use; a CPU that is the
    /// only one serves both.
    pub fn of(options: &Options) -> io::Result<Self> {
        let cpus = zonda_netio::process::allowed_cpus()?;
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
