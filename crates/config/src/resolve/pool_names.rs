//! Members that are names, whose addresses are looked up.

use super::pool_check::WrittenCheck;
use super::pools::{NewMember, fail, member_name};
use crate::AddressLookup;
use crate::error::{DerivedMistake, Origin};
use crate::keys::PoolKeys;
use crate::pool_value::{AllDownPolicy, AnswerCount};
use crate::reader::Session;
use zonda_balance::Answers;

/// A pool as it was read.
pub(super) struct ReadPool {
    pub(super) keys: PoolKeys,
    pub(super) check: Option<WrittenCheck>,
    pub(super) members: Vec<NewMember>,
    /// Where the pool stands.
    pub(super) origin: Origin,
    /// The name whose addresses are the members.
    pub(super) lookup: Option<AddressLookup>,
}

/// Adds a pool for each member that is given by name, whose members are the name's addresses. It
/// is checked as the pool of that member is, and answers with all that are up.
pub(super) fn with_pools_of_names(
    session: &mut Session<'_>,
    mut read: Vec<ReadPool>,
) -> Vec<ReadPool> {
    let mut of_names = Vec::new();
    for pool in &mut read {
        let servers: Vec<_> = pool.keys.bootstrap.iter().map(|server| server.0).collect();
        for member in &mut pool.members {
            let Some(name) = &member.keys.name else { continue };
            if servers.is_empty() {
                fail(session, &member.origin, DerivedMistake::NoBootstrap(name.clone()).into());
                continue;
            }
            let keys = PoolKeys {
                name: format!("{}/{}", pool.keys.name, member_name(&member.keys)),
                choose: Vec::new(),
                answers: AnswerCount(Answers::All),
                when_all_down: AllDownPolicy::All,
                up_min: 1,
                ..pool.keys.clone()
            };
            let check = match &pool.check {
                Some(WrittenCheck::Probe(check)) => Some(WrittenCheck::Probe(check.clone())),
                Some(WrittenCheck::Calculated(..)) | None => None,
            };
            let lookup = AddressLookup { name: name.clone(), servers: servers.clone() };
            let (origin, lookup) = (member.origin.clone(), Some(lookup));
            member.keys.pool = Some(keys.name.clone());
            of_names.push(ReadPool { keys, check, members: Vec::new(), origin, lookup });
        }
    }
    read.extend(of_names);
    read
}
