//! The directory of what the server keeps from one start to the next.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use zonda_config::Config;
use zonda_netio::process;

/// The directory of the configuration, or else that of the system.
///
/// # Errors
/// When the system names none; the text says what to do.
pub fn path(config: &Config) -> Result<PathBuf, String> {
    if let Some(path) = &config.state {
        return Ok(path.clone());
    }
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(list) = variable("STATE_DIRECTORY") {
        // systemd separates several directories by colons.
        return Ok(std::env::split_paths(&list).next().unwrap_or_default());
    }
    if process::effective_user() == 0 || config.user.is_some() {
        return Ok(PathBuf::from("/var/lib/zonda"));
    }
    let home = || variable("HOME").map(|home| Path::new(&home).join(".local/state"));
    let base = variable("XDG_STATE_HOME").map(PathBuf::from).or_else(home);
    let base = base.filter(|path| path.is_absolute()).ok_or_else(|| {
        "there is no directory for the changes of writable zones: write `state = \"DIR\"`, or \
         start the server with --state DIR"
            .to_owned()
    })?;
    Ok(base.join("zonda"))
}

/// Makes the directory for its owner alone, if it is not there.
///
/// # Errors
/// When it cannot be made; the text says what to do.
pub fn make(path: &Path) -> Result<(), String> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.or_else(|error| if path.is_dir() { Ok(()) } else { Err(error) }).map_err(
        |error: io::Error| {
            let path = path.display();
            format!(
                "the state directory {path} cannot be made: {error}; make it for the server's \
                 user with `install -d -m 700 -o USER {path}`, or name another one with `state` or \
                 --state"
            )
        },
    )
}

/// Checks that files can be made in the directory, by one that no other process and no other server
/// of this one makes.
///
/// # Errors
/// When that is not so; the text says what to do.
pub fn check(path: &Path) -> Result<(), String> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let (process, number) = (std::process::id(), NUMBER.fetch_add(1, Relaxed));
    let probe = path.join(format!("probe-{process}-{number}"));
    let checked = File::create(&probe).and_then(|_| fs::remove_file(&probe));
    checked.map_err(|error| {
        let path = path.display();
        format!(
            "the state directory {path} cannot be written to: {error}; name another one with \
             `state` or --state"
        )
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn servers_that_check_one_directory_at_a_time_are_in_the_way_of_none() {
        let path = std::env::temp_dir().join(format!("zonda-state-check-{}", std::process::id()));
        make(&path).unwrap();
        std::thread::scope(|scope| {
            let all: Vec<_> =
                (0..4).map(|_| scope.spawn(|| (0..200).try_for_each(|_| check(&path)))).collect();
            all.into_iter().for_each(|it| it.join().unwrap().unwrap());
        });
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
        fs::remove_dir(&path).unwrap();
        assert!(check(&path).unwrap_err().contains("cannot be written to"));
    }
}
