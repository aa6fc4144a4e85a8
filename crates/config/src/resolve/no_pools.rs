//! Pools in a program without the feature `file`: only files and flags of the command line name
//! some.

use super::geo::Sites;
use crate::load::Layers;
use crate::reader::{Reader, Session};
use crate::{PoolConfig, SteerRule};
use std::sync::Arc;
use zonda_balance::geography::Geography;
use zonda_wire::Name;

/// All pools: none.
pub(super) struct Pools;

impl Pools {
    /// Reads no pools.
    pub fn read<'a>(_: &Layers<'a>, _: &mut Session<'a>, _: &mut Sites) -> Self {
        Self
    }

    /// Returns what is known of sites.
    pub fn map_sites(&mut self, session: &mut Session<'_>, sites: Sites) -> Arc<Geography> {
        sites.into_maps(session).geography()
    }

    /// Returns no names of a zone that are steered.
    pub fn rules(&mut self, _reader: &mut Reader<'_, '_>, _zone: &Name) -> Vec<SteerRule> {
        Vec::new()
    }

    /// Returns no configurations.
    pub fn into_configs(self) -> Vec<PoolConfig> {
        Vec::new()
    }
}

/// Names that flags steer: each is reported.
pub(super) mod steer_flag {
    use super::{Layers, Name, Pools, Session, Sites, SteerRule};
    use crate::Zone;
    use crate::error::{Contradiction, Origin, Problem, SteerMistake};

    /// A name that a flag steers, of which there is none.
    pub enum SteeredName {}

    /// Reports the flags that steer a name.
    pub fn read<'a>(
        layers: &Layers<'a>,
        session: &mut Session<'a>,
        _: (&mut Pools, &mut Sites),
    ) -> Vec<SteeredName> {
        for text in &layers.flags.steer {
            let mistake = SteerMistake::Flag(text.clone());
            let problem = Problem::Together(Contradiction::Pool(mistake.into()));
            session.fail(Origin::Flag("--steer"), problem);
        }
        Vec::new()
    }

    /// Returns no rules.
    pub fn place(
        _: &mut Session<'_>,
        _: &mut Pools,
        _: Vec<SteeredName>,
        _: &mut [Zone],
    ) -> Vec<(Name, SteerRule)> {
        Vec::new()
    }
}
