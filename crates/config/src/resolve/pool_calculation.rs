//! States of members that are calculated from those of other pools and members.

use super::pools::{Pools, fail};
use crate::error::{DerivedMistake, PoolMistake};
use crate::reader::Session;
use crate::unknown::nearest;
use crate::{Calculation, StateSource};
use std::convert::Infallible;
use zonda_health::Formula;

impl Pools {
    /// Has the members of pools know the states that their own are calculated from.
    pub(super) fn calculate(&mut self, session: &mut Session<'_>) {
        for number in 0..self.pools.len() {
            let Some((formula, origin)) = self.pools[number].formula.take() else { continue };
            for member in 0..self.pools[number].config.members.len() {
                let config = &self.pools[number].config;
                if config.pool.members[member].pool.is_some() {
                    continue; // its state is the pool's
                }
                match self.calculation(&formula, &config.members[member].name) {
                    Ok(found) => {
                        self.pools[number].config.members[member].calculation = Some(found);
                    }
                    Err(mistake) => {
                        fail(session, &origin, mistake);
                        break;
                    }
                }
            }
        }
    }

    /// The calculation of a member's state by a formula.
    fn calculation(
        &self,
        formula: &Formula<String>,
        member: &str,
    ) -> Result<Calculation, PoolMistake> {
        /// What stands for the member in a formula.
        const MEMBER: &str = "{member}";
        let named = formula.try_map(&mut |name| Ok(name.replace(MEMBER, member)));
        let named: Formula<String> = named.unwrap_or_else(|never: Infallible| match never {});
        let formula = named.try_map(&mut |name| self.state_source(name))?;
        Ok(Calculation { text: named.to_string(), formula })
    }

    /// The pool of a name, or the member of a pool.
    fn state_source(&self, name: &str) -> Result<StateSource, PoolMistake> {
        if let Some(pool) = self.by_name.get(name) {
            return Ok(StateSource { pool: *pool, member: None });
        }
        let found = name.split_once('/').and_then(|(pool, member)| {
            self.by_name.get(pool).map(|number| (*number, pool, member))
        });
        let Some((number, pool, member)) = found else {
            let name = name.split('/').next().unwrap_or(name);
            let near = nearest(name, self.by_name.keys().map(String::as_str)).map(str::to_owned);
            return Err(PoolMistake::Unknown(name.to_owned(), near));
        };
        let members = &self.pools[number as usize].config.members;
        match members.iter().position(|it| it.name == member) {
            Some(place) => Ok(StateSource { pool: number, member: Some(place as u32) }),
            None => Err(DerivedMistake::UnknownMember(pool.to_owned(), member.to_owned()).into()),
        }
    }
}
