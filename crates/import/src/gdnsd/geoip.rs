//! Maps of geoip: which datacenter is for which clients. There is one `[geo]`, made of the first
//! map that a record leads to.

use super::datacenters::names;
use super::resources::Builder;
use super::{text_of, vscf};
use crate::document::Effect;
use crate::error::{ImportError, Place, Problem};
use crate::steering::Network;
use crate::steering::keys::filter;
use crate::tree::{Content, Node, expected, fail};
use crate::value::{boolean, elements, get, pairs, required};

/// What a resource needs to know of its map.
pub struct Map {
    /// Datacenters in their default order.
    pub order: Vec<String>,
    /// Filters that choose a datacenter.
    pub choose: Vec<&'static str>,
}

/// Codes of the continents.
const CONTINENTS: &[&str] = &["AF", "AN", "AS", "EU", "NA", "OC", "SA"];

/// Returns the map of a resource, which becomes `[geo]` if none has yet.
pub fn take(builder: &mut Builder<'_, '_>, resource: &Node) -> Result<Map, ImportError> {
    let (name, place) = required(resource, "map")?;
    let maps =
        builder.resources.plugin("geoip")?.map(|top| get(top, "maps")).transpose()?.flatten();
    let Some(map) = maps.map(|maps| get(maps, &name)).transpose()?.flatten() else {
        let found = format!("`{}`", name.escape_debug());
        let wanted = "the name of a map".to_owned();
        return Err(fail(place, Problem::Expected { wanted, found }));
    };
    let order = get(map, "datacenters")?.ok_or_else(|| expected(map, "`datacenters`"))?;
    let order = names(order)?;
    let has = |key| get(map, key).map(|node| node.is_some());
    let mut choose = Vec::new();
    if has("map")? || has("nets")? {
        choose.push(filter::GEO);
    }
    if has("auto_dc_coords")? {
        choose.push(filter::NEAREST);
    }
    match &builder.resources.map {
        None => {
            builder.resources.map = Some(name);
            Reader { builder, order: &order, place: Vec::new() }.map(map)?;
        }
        Some(first) if *first == name => {}
        Some(first) => {
            // Coordinates do not contradict a map by places.
            let is_auto = choose == [filter::NEAREST];
            let why = match is_auto {
                true => format!("networks of the map {first} decide here, too"),
                false => format!("[geo] is made of the map {first}: there is one for all pools"),
            };
            let effect = if is_auto { Effect::Differs } else { Effect::Lost };
            builder.report.tell(&place, effect, &name, &why);
            match get(map, "auto_dc_coords")?.filter(|_| is_auto) {
                Some(coordinates) => {
                    let place = Vec::new();
                    Reader { builder, order: &order, place }.coordinates(coordinates)?;
                }
                None => choose.clear(),
            }
        }
    }
    choose.push(filter::FAILOVER);
    Ok(Map { order, choose })
}

/// Reads a map into `[geo]`.
struct Reader<'r, 'b, 't> {
    builder: &'r mut Builder<'b, 't>,
    /// Datacenters in their default order.
    order: &'r [String],
    /// Codes and names of the place that is being read: continent, country, and so on.
    place: Vec<String>,
}

impl Reader<'_, '_, '_> {
    /// Reads a whole map.
    fn map(&mut self, map: &Node) -> Result<(), ImportError> {
        for (key, place, node) in pairs(map)? {
            match key.as_str() {
                "datacenters" => {}
                "geoip2_db" => {
                    let file = text_of(node).ok_or_else(|| expected(node, "a file"))?;
                    let path = self.builder.resources.geo_folder.join(file);
                    let path = path.to_string_lossy().into_owned();
                    self.builder.configuration.geo.database = Some((path, place.clone()));
                }
                "nets" => self.networks(node)?,
                "map" => self.level(node)?,
                "auto_dc_coords" => self.coordinates(node)?,
                "auto_dc_limit" => {
                    let why = "all sites are tried, the nearest first";
                    self.tell(place, Effect::Needless, key, why);
                }
                "ignore_ecs" => {
                    if boolean(map, key)?.is_some_and(|(is_on, _)| is_on) {
                        let why = "`client-subnet` in [edns] is for all pools";
                        self.tell(place, Effect::Differs, key, why);
                    }
                }
                _ => {
                    let why = "there is no counterpart that this import knows";
                    self.tell(place, Effect::Lost, key, why);
                }
            }
        }
        Ok(())
    }

    /// Reports what became of a key.
    fn tell(&mut self, place: &Place, effect: Effect, what: &str, why: &str) {
        self.builder.report.tell(place, effect, what, why);
    }

    /// Reads networks, in place or from a file.
    fn networks(&mut self, node: &Node) -> Result<(), ImportError> {
        let file;
        let node = match text_of(node) {
            Some(name) => {
                let path = self.builder.resources.geo_folder.join(name);
                file = vscf::read(&path, self.builder.files).map_err(|error| {
                    let place = error.place.or_else(|| Some(node.place.clone()));
                    ImportError { place, ..error }
                })?;
                let why = "the networks of the file were copied; changes of it have no effect";
                self.tell(&node.place, Effect::Differs, name, why);
                &file
            }
            None => node,
        };
        for (prefix, place, list) in pairs(node)? {
            if let Some(site) = self.first(list, prefix)? {
                let (prefix, origin) = (prefix.clone(), place.clone());
                let network = Network { prefix, site, origin };
                self.builder.configuration.geo.networks.push(network);
            }
        }
        Ok(())
    }

    /// Reads where sites are.
    fn coordinates(&mut self, node: &Node) -> Result<(), ImportError> {
        for (name, place, node) in pairs(node)? {
            let wanted = "latitude and longitude";
            let degrees: Vec<f64> = elements(node)
                .iter()
                .filter_map(|node| text_of(node)?.parse().ok().filter(|it: &f64| it.is_finite()))
                .collect();
            let [latitude, longitude] = degrees[..] else { return Err(expected(node, wanted)) };
            let site = self.builder.configuration.geo.site(name);
            site.at = Some((latitude, longitude));
            site.origin.get_or_insert_with(|| place.clone());
        }
        Ok(())
    }

    /// Reads the places of one level, and those below them.
    fn level(&mut self, node: &Node) -> Result<(), ImportError> {
        for (code, place, node) in pairs(node)? {
            if code == "default" {
                self.set(node, place)?;
                continue;
            }
            if self.place.is_empty() && !CONTINENTS.contains(&code.as_str()) {
                return Err(fail(
                    place.clone(),
                    Problem::Expected {
                        wanted: "the code of a continent".to_owned(),
                        found: format!("`{}`", code.escape_debug()),
                    },
                ));
            }
            self.place.push(code.clone());
            match node.content {
                Content::Map(_) => self.level(node)?,
                _ => self.set(node, place)?,
            }
            self.place.pop();
        }
        Ok(())
    }

    /// Gives the present place to the first datacenter of a list.
    fn set(&mut self, list: &Node, place: &Place) -> Result<(), ImportError> {
        let shown = if self.place.is_empty() { "default".to_owned() } else { self.place.join(" ") };
        if text_of(list) == Some("auto") {
            if self.place.len() > 1 {
                let why = "the place belongs to the sites of what is around it";
                self.tell(place, Effect::Differs, &shown, why);
            }
            return Ok(());
        }
        let Some(name) = self.first(list, &shown)? else { return Ok(()) };
        let geo = &mut self.builder.configuration.geo;
        let path: Vec<&str> = self.place.iter().map(String::as_str).collect();
        if path.is_empty() {
            geo.default_site = Some((name, place.clone()));
            return Ok(());
        }
        let site = geo.site(&name);
        site.origin.get_or_insert_with(|| place.clone());
        match path[..] {
            [continent] => site.continents.push(continent.to_owned()),
            [_, country] => site.countries.push(country.to_owned()),
            [_, country, .., last] if is_code(last) => {
                site.subdivisions.push(format!("{country}-{last}"));
            }
            [_, country, .., last] => site.cities.push(format!("{country}-{last}")),
            [] => {}
        }
        Ok(())
    }

    /// Returns the first datacenter of a list; those behind it are tried in their default order,
    /// which is reported if the list has another.
    fn first(&mut self, list: &Node, what: &str) -> Result<Option<String>, ImportError> {
        let list_names = names(list)?;
        let Some((first, behind)) = list_names.split_first() else {
            let why = "no answer is nothing: clients there get the first datacenter that is up";
            self.tell(&list.place, Effect::Lost, what, why);
            return Ok(None);
        };
        let others: Vec<&String> = self.order.iter().filter(|name| *name != first).collect();
        if !behind.is_empty() && behind.iter().ne(others.iter().copied()) {
            let why = format!(
                "when {first} is down, the order is that of `datacenters`: {}",
                others.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ")
            );
            self.tell(&list.place, Effect::Differs, what, &why);
        } else if behind.is_empty() && !others.is_empty() {
            let why = format!(
                "when {first} is down, the rest answers in the order of \
                `datacenters`; there, {first} went on"
            );
            self.tell(&list.place, Effect::Differs, what, &why);
        }
        Ok(Some(first.clone()))
    }
}

/// Whether a name below a country is the code of a subdivision, not a city.
fn is_code(name: &str) -> bool {
    name.len() <= 3
        && name.bytes().all(|octet| octet.is_ascii_uppercase() || octet.is_ascii_digit())
}
