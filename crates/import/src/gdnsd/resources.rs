//! Resources of plugins, each made into one pool or two.
//!
//! A resource is first an [`AnswerSet`] for each kind of record that it answers with; only those
//! that records refer to get into the file. IPv4 and IPv6 addresses that are treated alike share a
//! pool.

use super::services::Services;
use super::{Report, addresses, datacenters, text_of};
use crate::Files;
use crate::document::Effect;
use crate::error::{ImportError, Place, Problem};
use crate::steering::{Configuration, Pool, Target};
use crate::tree::{Content, Node, fail};
use crate::value::{get, pairs};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

/// Resources that may refer to each other in a row; a circle ends here.
const DEPTH_MAX: usize = 16;

/// Types of records, such as `A,AAAA`, and the name of the pool for them.
pub type TypesAndPool = (&'static str, String);

/// The resources of all plugins.
pub struct Resources<'t> {
    plugins: Option<&'t Node>,
    /// Service types, by which members are checked.
    pub services: Services,
    /// Folder of the files of geoip.
    pub geo_folder: PathBuf,
    /// Name of the map of geoip that `[geo]` is made of.
    pub map: Option<String>,
    /// Pools that were made: for plugin, resource and TTLs, the types and the name of each pool.
    made: HashMap<(String, String, (u32, u32)), Vec<TypesAndPool>>,
    /// Plugins and resources that are referred to.
    used: HashSet<(String, String)>,
}

/// A kind of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Records of type A.
    V4,
    /// Records of type AAAA.
    V6,
    /// Records of type CNAME.
    Alias,
}

/// What a resource answers with in records of one kind: a pool that is not in the file yet.
#[derive(Clone, Debug)]
pub struct AnswerSet {
    /// Kind of the records.
    pub family: Family,
    /// Pool of the records.
    pub pool: Pool,
}

/// What it takes to make pools of resources.
pub struct Builder<'b, 't> {
    /// Resources of all plugins.
    pub resources: &'b mut Resources<'t>,
    /// Configuration that pools are added to.
    pub configuration: &'b mut Configuration,
    /// Report of what has no counterpart.
    pub report: &'b mut Report,
    /// Files that maps name.
    pub files: &'b mut dyn Files,
    /// Lowest and highest TTL of the record that refers to the resource, seconds.
    pub ttl: (u32, u32),
    /// Resources that refer to each other around the present one.
    pub depth: usize,
}

/// The nodes in which a key of a resource may stand, the innermost last.
#[derive(Clone)]
pub struct Scope<'t>(pub Vec<&'t Node>);

impl<'t> Scope<'t> {
    /// Returns the node of a key, from the innermost node that has it.
    pub fn get(&self, key: &str) -> Result<Option<&'t Node>, ImportError> {
        let maps = self.0.iter().rev().filter(|node| matches!(node.content, Content::Map(_)));
        for node in maps {
            if let Some(found) = get(node, key)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Returns whether a key is there and `true`.
    pub fn is_true(&self, key: &str) -> Result<bool, ImportError> {
        let text = self.get(key)?.and_then(text_of);
        Ok(text.is_some_and(|text| text.eq_ignore_ascii_case("true")))
    }

    /// Returns the scope of a node inside of it.
    pub fn inside(&self, node: &'t Node) -> Self {
        let mut nodes = self.0.clone();
        nodes.push(node);
        Self(nodes)
    }
}

impl<'t> Resources<'t> {
    /// Makes the resources of the plugins, none of which is referred to yet.
    pub fn new(plugins: Option<&'t Node>, services: Services, geo_folder: PathBuf) -> Self {
        let (made, used) = (HashMap::new(), HashSet::new());
        Self { plugins, services, geo_folder, map: None, made, used }
    }

    /// Returns the types of records that a resource answers with, and the pool for each.
    pub fn pools(
        &mut self,
        (plugin, resource): (&str, &str),
        ttl: (u32, u32),
        place: &Place,
        configuration: &mut Configuration,
        report: &mut Report,
        files: &mut dyn Files,
    ) -> Result<Vec<TypesAndPool>, ImportError> {
        let key = (plugin.to_owned(), resource.to_owned(), ttl);
        if let Some(made) = self.made.get(&key) {
            return Ok(made.clone());
        }
        let mut builder = Builder { resources: self, configuration, report, files, ttl, depth: 0 };
        let mut sets = builder.resource(plugin, resource, place)?;
        for set in &mut sets {
            if set.pool.up_min.take().is_some() {
                let why = "addresses that are up are the answer, however few; there, all were with \
                    fewer than this share";
                builder.report.tell(&set.pool.origin, Effect::Differs, "up_thresh", why);
            }
        }
        let made = builder.add(sets, resource);
        self.made.insert(key, made.clone());
        Ok(made)
    }

    /// Returns the configuration of a plugin.
    pub fn plugin(&self, name: &str) -> Result<Option<&'t Node>, ImportError> {
        match self.plugins {
            Some(plugins) => get(plugins, name),
            None => Ok(None),
        }
    }

    /// Reports resources that nothing refers to.
    pub fn tell_unused(&self, report: &mut Report) -> Result<(), ImportError> {
        for (plugin, _, node) in self.plugins.map(pairs).transpose()?.unwrap_or_default() {
            let resources = match plugin.as_str() {
                "metafo" | "geoip" => get(node, "resources")?,
                "multifo" | "weighted" | "simplefo" | "static" => Some(node),
                _ => None,
            };
            for (name, place, _) in resources.map(pairs).transpose()?.unwrap_or_default() {
                let is_resource = !addresses::PARAMETERS.contains(&name.as_str());
                if is_resource && !self.used.contains(&(plugin.clone(), name.clone())) {
                    let what = format!("{plugin}!{name}");
                    report.tell(place, Effect::Needless, &what, "no record refers to it");
                }
            }
        }
        Ok(())
    }
}

impl<'t> Builder<'_, 't> {
    /// Returns what a resource answers with; nothing if that is reported as lost.
    pub fn resource(
        &mut self,
        plugin: &str,
        resource: &str,
        place: &Place,
    ) -> Result<Vec<AnswerSet>, ImportError> {
        if self.depth >= DEPTH_MAX {
            let problem = Problem::TooMuch("resources that refer to each other", DEPTH_MAX);
            return Err(fail(place.clone(), problem));
        }
        let shown = match resource {
            "" => plugin.to_owned(),
            resource => format!("{plugin}!{resource}"),
        };
        if matches!(plugin, "reflect" | "null") {
            let why = "no pool answers with the address of the client, or with none";
            self.report.tell(place, Effect::Lost, &shown, why);
            return Ok(Vec::new());
        }
        let known = ["multifo", "weighted", "simplefo", "static", "metafo", "geoip"];
        let node = self.resources.plugin(plugin)?.filter(|_| known.contains(&plugin));
        let is_meta = matches!(plugin, "metafo" | "geoip");
        let (name, datacenter) = match resource.split_once('/') {
            Some((name, datacenter)) if is_meta => (name, Some(datacenter)),
            _ => (resource, None),
        };
        let all = match node {
            Some(node) if is_meta => get(node, "resources")?,
            node => node,
        };
        let found = all.map(|all| get(all, name)).transpose()?.flatten();
        let is_parameter = addresses::PARAMETERS.contains(&name);
        let (Some(top), Some(found)) = (node, found.filter(|_| !is_parameter)) else {
            let wanted = "a resource of a plugin in the configuration".to_owned();
            let found = format!("`{}`", shown.escape_debug());
            return Err(fail(place.clone(), Problem::Expected { wanted, found }));
        };
        self.resources.used.insert((plugin.to_owned(), name.to_owned()));
        let scope = Scope(vec![top, found]);
        self.depth += 1;
        let sets = match plugin {
            "metafo" => datacenters::metafo(self, name, &scope, datacenter, place),
            "geoip" => datacenters::geoip(self, name, &scope, datacenter, place),
            _ => addresses::resource(self, plugin, name, &scope),
        };
        self.depth -= 1;
        sets
    }

    /// Adds the pools of a resource to the file; returns the types of each with its name. Sets of
    /// both families share a pool where they are alike.
    pub fn add(&mut self, sets: Vec<AnswerSet>, name: &str) -> Vec<TypesAndPool> {
        let mut sets = sets;
        sets.retain(|set| !set.pool.members.is_empty());
        for set in &mut sets {
            set.pool.ttl = Some(self.ttl);
            name.clone_into(&mut set.pool.name);
        }
        let (mut first, mut second) = (None, None);
        let mut made = Vec::new();
        for set in sets {
            match set.family {
                Family::V4 => first = Some(set.pool),
                Family::V6 => second = Some(set.pool),
                Family::Alias => made.push(("CNAME", self.configuration.pools.add(set.pool))),
            }
        }
        let has_pools = |pool: &Pool| {
            pool.members.iter().any(|member| matches!(member.target, Target::Pool(_)))
        };
        match (first, second) {
            (Some(mut v4), Some(v6))
                if v4.is_like(&v6) && v4.up_min.is_none() && !has_pools(&v4) && !has_pools(&v6) =>
            {
                v4.members.extend(v6.members);
                made.push(("A,AAAA", self.configuration.pools.add(v4)));
            }
            (Some(mut v4), Some(mut v6)) => {
                v4.name.push_str("-v4");
                v6.name.push_str("-v6");
                made.push(("A", self.configuration.pools.add(v4)));
                made.push(("AAAA", self.configuration.pools.add(v6)));
            }
            // A question for the other family is answered with NODATA, as there.
            (Some(v4), None) => made.push(("A,AAAA", self.configuration.pools.add(v4))),
            (None, Some(v6)) => made.push(("A,AAAA", self.configuration.pools.add(v6))),
            (None, None) => {}
        }
        made
    }
}
