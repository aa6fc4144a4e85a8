//! Servers that are installed without root's rights: into a folder of the bench, by the command
//! that their file says.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::{env, fs};

use super::Kind;

/// Returns where they are put: `zonda/bench` in `$XDG_CACHE_HOME`, else in `~/.cache`.
pub fn folder() -> Option<PathBuf> {
    folder_in(env::var_os("XDG_CACHE_HOME"), env::var_os("HOME"))
}

/// Returns the folder by the values of these variables; one that is no absolute path counts as not
/// set, as the XDG base directory specification has it.
fn folder_in(cache_home: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let cache = cache_home.map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = cache.or_else(|| Some(PathBuf::from(home?).join(".cache")))?;
    Some(cache.join("zonda/bench"))
}

/// Returns where `go install` puts programs.
pub fn go_folder() -> Option<PathBuf> {
    folder().map(|folder| folder.join("bin"))
}

/// Returns the folders into which `scripts/install-cluster-peers` builds CoreDNS, etcd and
/// kube-apiserver: one for each set of versions.
pub fn cluster_folders() -> Vec<PathBuf> {
    let named = env::var_os("CLUSTER_PEERS").map(PathBuf::from);
    let built = folder().map(|folder| folder.with_file_name("cluster-peers"));
    let built = built.and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    named.into_iter().chain(built.map(|entry| entry.path())).collect()
}

impl Kind {
    /// Returns the command that installs it, as it is typed.
    pub fn install_command(&self) -> String {
        let folder = folder().unwrap_or_default();
        self.install.replace("${cache}", &folder.display().to_string())
    }
}

/// Runs a kind's command. What it says goes to standard error.
///
/// # Errors
/// A line for people.
pub fn install(kind: &Kind) -> Result<(), String> {
    let Kind { name, .. } = kind;
    let command_line = kind.install_command();
    let folder =
        folder().ok_or_else(|| format!("{name}: neither XDG_CACHE_HOME nor HOME is set"))?;
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut words = command_line.split_whitespace();
    let program = words.next().unwrap_or_default();
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).current_dir(&folder);
    command.env("GOBIN", folder.join("bin"));
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{name}: `{command_line}` ended with {status}")),
        Err(error) => Err(format!("{name}: `{program}`: {error}: {command_line}")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_failing_command_is_reported_with_its_name() {
        let mut kind = Kind::named("coredns").unwrap();
        kind.install = "false ${cache}".to_owned();
        let said = install(&kind).unwrap_err();
        assert!(said.starts_with("coredns: `false /") && said.contains("exit status"), "{said}");
        kind.install = "no-such-program".to_owned();
        assert!(install(&kind).unwrap_err().contains("No such file"));
    }

    #[test]
    fn the_folder_is_in_the_cache_of_the_user_unless_that_is_elsewhere() {
        for (cache_home, folder) in [
            (None, "/u/.cache/zonda/bench"),
            (Some(""), "/u/.cache/zonda/bench"),
            (Some("here"), "/u/.cache/zonda/bench"),
            (Some("/var/cache"), "/var/cache/zonda/bench"),
        ] {
            let found = folder_in(cache_home.map(OsString::from), Some("/u".into()));
            assert_eq!(found, Some(PathBuf::from(folder)), "{cache_home:?}");
        }
    }

    #[test]
    fn only_commands_without_root_s_rights_may_be_run() {
        for kind in Kind::shipped().into_iter().filter(|kind| kind.fetch) {
            assert!(!kind.install.contains("apt-get"), "{}", kind.name);
        }
    }
}
