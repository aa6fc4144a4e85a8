//! Domains and their servers, made into pools, sites and zones.

use super::Importer;
use super::source::{self, Algorithm, Domain, Region, Server, lower, unknown_region};
use crate::NewFile;
use crate::document::Effect;
use crate::error::{ImportError, Place, Problem};
use crate::steering::keys::{filter, when_all_down};
use crate::steering::{Member, Pool, Target, Zone, zone_file};
use crate::value::{at, boolean, parsed, texts};
use std::collections::HashSet;
use zonda_wire::{Name, name};

/// TTL of answers that is not given otherwise, seconds.
const TTL: u32 = 60;

/// What holds for all pools.
struct Defaults {
    ttl: u32,
    when_all_down: &'static str,
}

impl Importer<'_> {
    /// Carries over regions and domains.
    pub(super) fn pools(&mut self) -> Result<(), ImportError> {
        let regions = source::regions(self.sources)?;
        let mut domains = source::domains(self.sources)?;
        if domains.is_empty() {
            domains = domains_of_agent(&regions);
        }
        self.sites(&regions);
        self.servers_without_domain(&regions, &domains);
        let defaults = self.defaults()?;
        let zones = self.zone_names()?;
        for domain in &domains {
            let pools = self.domain(domain, &regions, &defaults)?;
            self.steer(domain, pools, &zones);
        }
        Ok(())
    }

    /// Returns what holds for all pools.
    fn defaults(&self) -> Result<Defaults, ImportError> {
        let mut defaults = Defaults { ttl: TTL, when_all_down: when_all_down::SERVFAIL };
        let dns = self.sources.first().map(|file| at(&file.root, &["dns"])).transpose()?.flatten();
        let Some(dns) = dns else { return Ok(defaults) };
        if let Some((ttl, _)) = parsed(dns, "default_ttl", "a number of seconds")? {
            defaults.ttl = ttl;
        }
        if boolean(dns, "return_last_healthy")?.is_some_and(|(is_on, _)| is_on) {
            defaults.when_all_down = when_all_down::LAST_HEALTHY;
        }
        Ok(defaults)
    }

    /// Returns the names of `dns.zones`.
    fn zone_names(&self) -> Result<Vec<Name>, ImportError> {
        let dns = self.sources.first().map(|file| at(&file.root, &["dns"])).transpose()?.flatten();
        let texts = dns.map(|dns| texts(dns, "zones")).transpose()?.unwrap_or_default();
        let read = |(text, place): (String, Place)| {
            lower(&text).parse::<Name>().map_err(|why| ImportError {
                place: Some(place),
                problem: Problem::NotAName(text, why),
            })
        };
        texts.into_iter().map(read).collect()
    }

    /// Makes a site of each region that serves places; of two regions with the same place, the last
    /// one has it, as there.
    fn sites(&mut self, regions: &[Region]) {
        let mut taken = HashSet::new();
        let mut shadowed = Vec::new();
        for region in regions.iter().rev() {
            let mut keep = |list: &[(String, Place)]| {
                let mut kept = Vec::new();
                for (code, place) in list {
                    let code = code.to_ascii_uppercase();
                    match taken.insert(code.clone()) {
                        true => kept.push(code),
                        false => shadowed.push((code, place.clone())),
                    }
                }
                kept
            };
            let (countries, continents) = (keep(&region.countries), keep(&region.continents));
            if !countries.is_empty() || !continents.is_empty() {
                let site = self.configuration.geo.site(&region.name.0);
                (site.countries, site.continents) = (countries, continents);
                site.origin = Some(region.name.1.clone());
            }
        }
        self.configuration.geo.sites.reverse();
        for (code, place) in shadowed {
            self.tell(&place, Effect::Needless, &code, "a later region has this place, as there");
        }
        let is_region = |name: &str| regions.iter().any(|region| region.name.0 == name);
        let geo = &mut self.configuration.geo;
        let unknown: Vec<_> = geo.networks.extract_if(.., |it| !is_region(&it.site)).collect();
        let default = geo.default_site.take_if(|(site, _)| !is_region(site));
        let unknown = unknown.into_iter().map(|it| (it.site, it.origin)).chain(default);
        for (site, place) in unknown.collect::<Vec<_>>() {
            self.tell(&place, Effect::Lost, &site, "there is no region of this name");
        }
    }

    /// Reports servers that no domain answers with.
    fn servers_without_domain(&mut self, regions: &[Region], domains: &[Domain]) {
        let names: HashSet<&str> = domains.iter().map(|domain| &*domain.name.0).collect();
        for server in regions.iter().flat_map(|region| &region.servers) {
            let (service, place) = &server.service;
            if !names.contains(&**service) {
                self.tell(place, Effect::Lost, service, "there is no domain of this name");
            }
        }
    }

    /// Makes the pools of a domain, each with the types of records that it is for; none if it has
    /// no server.
    fn domain(
        &mut self,
        domain: &Domain,
        regions: &[Region],
        defaults: &Defaults,
    ) -> Result<Vec<(&'static str, String)>, ImportError> {
        for (name, place) in &domain.regions {
            if !regions.iter().any(|region| region.name.0 == *name) {
                return Err(unknown_region(name, place));
            }
        }
        let is_of =
            |region: &&Region| domain.regions.iter().any(|(name, _)| *name == region.name.0);
        let servers = regions.iter().filter(is_of).flat_map(|region| &region.servers);
        let servers: Vec<&Server> =
            servers.filter(|server| server.service.0 == domain.name.0).collect();
        if servers.is_empty() {
            let why = "no server in its regions has this service: there, it was answered with \
                SERVFAIL";
            self.tell(&domain.name.1, Effect::Differs, &domain.name.0, why);
            return Ok(Vec::new());
        }
        if domain.algorithm.0 == Algorithm::LearnedLatency {
            self.learn_latencies(&domain.algorithm.1, &servers);
        }
        if domain.algorithm.0 == Algorithm::Weighted {
            for server in servers.iter().filter(|server| server.weight.0 == 0) {
                let why = "with weight 0, a member answers only when no other is up; there, it \
                    counted as 1";
                let what = format!("weight of {}", server.address.0);
                self.tell(&server.weight.1, Effect::Works, &what, why);
            }
        }
        let (v4, v6): (Vec<_>, Vec<_>) =
            servers.iter().copied().partition(|server| server.address.0.is_ipv4());
        if v4.is_empty() || v6.is_empty() || groups(&servers, domain.algorithm.0).len() == 1 {
            return Ok(vec![("A,AAAA", self.pool(domain, "", &servers, defaults))]);
        }
        // A pool that is a member answers for both types, also where it has addresses of one only.
        Ok(vec![
            ("A", self.pool(domain, "-v4", &v4, defaults)),
            ("AAAA", self.pool(domain, "-v6", &v6, defaults)),
        ])
    }

    /// Has members at these servers' regions chosen by latencies, which a new file is to hold.
    fn learn_latencies(&mut self, origin: &Place, servers: &[&Server]) {
        const FILE: &str = "latencies.txt";
        let geo = &mut self.configuration.geo;
        for server in servers {
            let site = geo.site(&server.region);
            site.origin.get_or_insert_with(|| server.address.1.clone());
        }
        if geo.latencies.is_none() {
            geo.latencies = Some((FILE.to_owned(), origin.clone()));
            let text = "# A network, a site and milliseconds on each line, such as:\n\
                        # 10.1.0.0/16 eu-west 12.5\n";
            self.files.push(NewFile { path: FILE.into(), text: text.to_owned() });
        }
        let why = "nothing measures latencies here: a program must write them to latencies.txt, or \
            send them by POST /v1/geo/latencies; until then the distance counts";
        self.tell(origin, Effect::Differs, "learned_latency", why);
    }

    /// Adds the pool of a domain, of several pools if its servers are checked in several ways.
    fn pool(
        &mut self,
        domain: &Domain,
        suffix: &str,
        servers: &[&Server],
        defaults: &Defaults,
    ) -> String {
        let ttl = domain.ttl.as_ref().map_or(defaults.ttl, |(ttl, _)| *ttl);
        let algorithm = domain.algorithm.0;
        let finish = |mut pool: Pool, choose: Vec<&'static str>| {
            pool.choose = choose;
            pool.ttl = Some((ttl, ttl));
            pool.when_all_down = defaults.when_all_down;
            pool
        };
        let groups = groups(servers, algorithm);
        let (name, origin) = (&format!("{}{suffix}", domain.name.0), &domain.name.1);
        if let [group] = &groups[..] {
            let mut pool =
                finish(Pool::new(name, origin, members(group, algorithm)), choose(algorithm));
            pool.check = Some(group[0].check.clone());
            return self.configuration.pools.add(pool);
        }
        let mut outer = Vec::new();
        for (group, rank) in groups.iter().zip(1..) {
            let region = &group[0].region;
            let inner = Pool::new(&format!("{name}-{region}"), origin, members(group, algorithm));
            let mut inner = finish(inner, choose_inside(algorithm));
            inner.check = Some(group[0].check.clone());
            let inner = self.configuration.pools.add(inner);
            let mut member = Member::new(Target::Pool(inner), &group[0].address.1);
            member.site = Some(region.clone());
            match algorithm {
                Algorithm::Failover => member.priority = Some(rank),
                Algorithm::Weighted => {
                    member.weight = Some(group.iter().map(|server| server.weight.0).sum());
                }
                Algorithm::RoundRobin | Algorithm::Geolocation => {
                    member.weight = u32::try_from(group.len()).ok();
                }
                Algorithm::Latency | Algorithm::LearnedLatency => {}
            }
            outer.push(member);
        }
        let why = "its servers are checked in several ways, and a pool has one check: each way has \
            a pool, whose share stays the same while some of its servers are down";
        self.tell(origin, Effect::Differs, &domain.name.0, why);
        let pool = finish(Pool::new(name, origin, outer), choose_between(algorithm));
        self.configuration.pools.add(pool)
    }

    /// Adds the name of a domain to its zone.
    fn steer(&mut self, domain: &Domain, pools: Vec<(&str, String)>, zones: &[Name]) {
        let (text, origin) = &domain.name;
        let Ok(own) = text.parse::<Name>() else { return }; // it was read before
        let around = |zone: &&Name| name::is_at_or_below(own.as_wire(), zone.as_wire());
        let apex = zones.iter().filter(around).max_by_key(|zone| zone.label_count());
        let apex = apex.unwrap_or(&own);
        let zone_name = lower(&apex.to_string());
        let known = self.configuration.zones.iter().position(|zone| zone.name == zone_name);
        let index = known.unwrap_or_else(|| {
            let file = zone_file(&zone_name);
            self.files.push(NewFile { path: file.clone().into(), text: zone_text() });
            let why = format!(
                "a zone has name servers, which were nowhere there: write theirs in place of \
                 `ns.invalid.` in {file}"
            );
            self.tell(origin, Effect::Differs, &zone_name, &why);
            let zone = Zone { name: zone_name, origin: origin.clone(), file, steer: Vec::new() };
            self.configuration.zones.push(zone);
            self.configuration.zones.len() - 1
        });
        let relative = crate::master::relative(&own, apex);
        let steer = pools.into_iter().map(|(types, pool)| (format!("{relative} {types}"), pool));
        self.configuration.zones[index].steer.extend(steer);
    }
}

/// Returns a domain for each service of an agent's backends.
fn domains_of_agent(regions: &[Region]) -> Vec<Domain> {
    let mut domains: Vec<Domain> = Vec::new();
    for region in regions {
        for server in &region.servers {
            let is_valid = server.service.0.parse::<Name>().is_ok();
            if is_valid && !domains.iter().any(|domain| domain.name.0 == server.service.0) {
                domains.push(Domain {
                    name: server.service.clone(),
                    algorithm: (Algorithm::RoundRobin, server.service.1.clone()),
                    regions: vec![region.name.clone()],
                    ttl: None,
                });
            }
        }
    }
    domains
}

/// Returns servers in groups that are checked alike; for some algorithms also of one region, or of
/// one rank after the other.
fn groups<'s>(servers: &[&'s Server], algorithm: Algorithm) -> Vec<Vec<&'s Server>> {
    let is_one = servers.iter().all(|server| server.check == servers[0].check);
    let mut groups: Vec<Vec<&Server>> = Vec::new();
    for server in servers {
        let belongs = |group: &&mut Vec<&Server>| {
            let same_region = group[0].region == server.region;
            let by_region = matches!(algorithm, Algorithm::Geolocation | Algorithm::LearnedLatency);
            is_one || group[0].check == server.check && (same_region || !by_region)
        };
        let found = match algorithm {
            Algorithm::Failover => groups.last_mut().filter(|group| belongs(group)),
            _ => groups.iter_mut().find(|group| belongs(group)),
        };
        match found {
            Some(group) => group.push(server),
            None => groups.push(vec![server]),
        }
    }
    groups
}

/// Returns servers as members of a pool.
fn members(servers: &[&Server], algorithm: Algorithm) -> Vec<Member> {
    let member = |(server, rank): (&&Server, u32)| {
        let mut member = Member::new(Target::Address(server.address.0), &server.address.1);
        member.site = Some(server.region.clone());
        member.weight = Some(server.weight.0).filter(|_| algorithm == Algorithm::Weighted);
        member.priority = Some(rank).filter(|_| algorithm == Algorithm::Failover);
        member
    };
    servers.iter().zip(1..).map(member).collect()
}

/// Returns the filters of a pool that is all of a domain.
fn choose(algorithm: Algorithm) -> Vec<&'static str> {
    match algorithm {
        Algorithm::RoundRobin => vec![filter::ROUND_ROBIN],
        Algorithm::Weighted => vec![filter::WEIGHTED],
        Algorithm::Failover => vec![filter::FAILOVER],
        Algorithm::Geolocation => vec![filter::GEO, filter::ROUND_ROBIN],
        Algorithm::Latency => vec![filter::LATENCY],
        Algorithm::LearnedLatency => vec![filter::LEARNED_LATENCY],
    }
}

/// Returns the filters of a pool that is one of several of a domain.
fn choose_inside(algorithm: Algorithm) -> Vec<&'static str> {
    match algorithm {
        Algorithm::Geolocation => vec![filter::ROUND_ROBIN],
        other => choose(other),
    }
}

/// Returns the filters that choose between several pools of a domain.
fn choose_between(algorithm: Algorithm) -> Vec<&'static str> {
    match algorithm {
        Algorithm::RoundRobin => vec![filter::WEIGHTED],
        Algorithm::Geolocation => vec![filter::GEO, filter::WEIGHTED],
        other => choose(other),
    }
}

/// Returns the text of a new zone, which had no file.
fn zone_text() -> String {
    "; Made by `zonda import`: put the names of your servers in place of ns.invalid.\n\
     $TTL 3600\n\
     @ SOA ns.invalid. hostmaster.invalid. 1 7200 3600 1209600 60\n\
     @ NS ns.invalid.\n"
        .to_owned()
}
