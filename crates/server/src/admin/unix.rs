//! The Unix sockets of the administrative interface.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use zonda_netio::local;

/// Paths of Unix sockets, each with its inode, so that only sockets of this process are removed.
#[derive(Default)]
pub struct SocketFiles(Vec<(PathBuf, u64)>);

impl SocketFiles {
    /// Adds the socket that is at a path now.
    pub fn add(&mut self, path: &Path) {
        let inode = fs::symlink_metadata(path).map_or(0, |it| it.ino());
        self.0.push((path.to_owned(), inode));
    }

    /// Removes them, but for those that were replaced meanwhile.
    pub fn remove(&self) {
        for (path, inode) in &self.0 {
            if fs::symlink_metadata(path).is_ok_and(|now| now.ino() == *inode) {
                let _ = fs::remove_file(path); // what stays is replaced at the next start
            }
        }
    }
}

/// Sockets that this start made, which are removed again if it fails: dropped, that is.
#[derive(Default)]
pub struct MadeSockets(SocketFiles);

impl MadeSockets {
    /// Lets the sockets stay.
    pub fn keep(mut self) {
        self.0 = SocketFiles::default();
    }

    /// Binds the admin socket, unless another server answers on it. Where nothing can be written,
    /// as in many containers, there is none.
    pub fn bind_admin(&mut self, path: &Path) -> Result<Option<UnixListener>, String> {
        if UnixStream::connect(path).is_ok() {
            return Err(format!(
                "another server answers on {}: stop it, start with --take-over to replace it, or \
                 give this one another admin.socket",
                path.display()
            ));
        }
        match self.bind(path) {
            Ok(listener) => Ok(Some(listener)),
            Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                let path = path.display();
                tracing::warn!(%path, %error, "commands cannot reach the server: set admin.socket");
                Ok(None)
            }
            Err(error) => {
                let path = path.display();
                Err(format!("cannot bind the admin socket {path}: {error}; set admin.socket"))
            }
        }
    }

    /// Binds a socket that only its owner may use, in place of one on which no process answers.
    pub fn bind(&mut self, path: &Path) -> io::Result<UnixListener> {
        let directory = path.parent().filter(|it| !it.as_os_str().is_empty() && !it.exists());
        if let Some(directory) = directory {
            fs::DirBuilder::new().recursive(true).mode(0o755).create(directory)?;
        }
        match fs::symlink_metadata(path) {
            Ok(there) if !there.file_type().is_socket() => {
                return Err(io::Error::other("what is there is not a socket, and stays"));
            }
            Ok(_) => fs::remove_file(path)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let listener = local::listen(path)?;
        self.0.add(path);
        Ok(listener)
    }
}

impl Drop for MadeSockets {
    fn drop(&mut self) {
        self.0.remove();
    }
}
