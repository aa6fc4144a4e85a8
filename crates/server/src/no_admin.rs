//! The administrative interface in a server without the feature `whole`: there is none.

use crate::control::Control;
use crate::listen::InheritedSockets;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use zonda_config::Admin;

/// What is counted of connections: nothing.
#[derive(Default)]
pub struct Counters(());

impl Counters {
    /// Ends all waits: there are none.
    pub fn end_waits(&self) {}
}

/// The addresses at which pages are answered: none.
#[derive(Default)]
pub struct PageServers(());

/// The pages of a configuration: none.
pub struct BoundPages;

impl PageServers {
    /// Binds nothing.
    ///
    /// # Errors
    /// None.
    pub fn bind(
        &self,
        _: &Admin,
        _running: &Admin,
        _is_offered: bool,
    ) -> Result<BoundPages, String> {
        Ok(BoundPages)
    }

    /// Answers nothing.
    pub fn follow(&self, _bound: BoundPages, _admin: &Admin) {}

    /// No descriptors.
    ///
    /// # Errors
    /// None.
    pub fn descriptors(&self) -> io::Result<Vec<OwnedFd>> {
        Ok(Vec::new())
    }

    /// Accepts no connections, as before.
    pub fn stop(&self) {}

    /// Has no socket, as before.
    pub fn end(&self) {}
}

/// Sockets that are bound: none.
pub struct AdminSockets;

/// The interface at work: none.
pub struct AdminInterface {
    /// The HTTP address.
    pub address: Option<SocketAddr>,
}

/// Binds nothing.
///
/// # Errors
/// When something is to be bound.
pub fn bind(config: &Admin, _found: &mut InheritedSockets) -> Result<AdminSockets, String> {
    let is_asked_for = config.address.is_some() || config.socket.is_some();
    match is_asked_for {
        true => Err("this program was built without metrics and the administrative interface: \
                     switch on the feature `server`"
            .to_owned()),
        false => Ok(AdminSockets),
    }
}

/// Serves nothing.
///
/// # Errors
/// None.
pub fn serve(_bound: AdminSockets, _control: &Arc<Control>) -> io::Result<AdminInterface> {
    Ok(AdminInterface { address: None })
}

impl AdminInterface {
    /// Accepts no connections, as before.
    pub fn stop(&self) {}

    /// Removes no sockets.
    pub fn remove_sockets(&self) {}
}
