//! The rights that the process was started with.

use crate::run::Signals;
use zonda_netio::privileges::{self, PrivilegeError};
use zonda_netio::process;

/// Becomes the user of the configuration; warns of rights that stay.
pub(crate) fn give_up(user: Option<&str>, signals: Signals) -> Result<(), PrivilegeError> {
    match user {
        Some(user) => {
            let kept = privileges::drop_privileges(user, None)?;
            if !kept.groups.is_empty() {
                let groups = kept.groups.iter().map(ToString::to_string).collect::<Vec<_>>();
                tracing::warn!(
                    groups = groups.join(" "),
                    "the process keeps groups that are not the user's, as only root can leave \
                     them: start it without them, or as root"
                );
            }
        }
        // A program that holds a server may need its rights itself.
        None if process::effective_user() == 0 && signals == Signals::Heeded => tracing::warn!(
            "the server keeps the rights of root: write `user`, or start it as another user"
        ),
        None => {}
    }
    Ok(())
}
