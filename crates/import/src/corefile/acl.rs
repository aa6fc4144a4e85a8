//! `acl [ZONES…] { ACTION [type TYPE…] [net SOURCE…] }`.

use super::Importer;
use super::key;
use super::parser::Line;
use super::source::AccessRule;
use crate::document::Effect::Differs;
use crate::error::ImportError;
use std::net::IpAddr;
use zonda_wire::Type;

impl Importer<'_> {
    /// Reads `acl`.
    pub(super) fn acl(&mut self, line: &Line) -> Result<(), ImportError> {
        let zones = match line.arguments() {
            [] => self.current().zones(),
            zones => key::all_zones(zones)?,
        };
        for option in &line.block {
            let Some(action) = action(option.name()) else {
                return Err(option.words[0].expected("`allow`, `block`, `filter` or `drop`"));
            };
            let (rule, place) =
                (format!("{action} {}", self.clients(option)?), option.place().clone());
            self.current().access.push(AccessRule { zones: zones.clone(), rule, place });
        }
        Ok(())
    }

    /// Returns the clients of a rule as `access` has them, and the types that it is for, unless it
    /// is for all.
    fn clients(&mut self, option: &Line) -> Result<String, ImportError> {
        let (mut clients, mut types) = (Vec::new(), Vec::new());
        let mut section = "";
        let mut is_of_all_types = false;
        for argument in option.arguments() {
            match (section, argument.text.as_str()) {
                (_, "type") => section = "type",
                (_, "net") => section = "net",
                ("type", "*" | "ANY") => is_of_all_types = true,
                ("type", text) => {
                    let name = text.to_ascii_uppercase();
                    let known = Type::from_text(name.as_bytes());
                    types.push(known.ok_or_else(|| argument.expected("a type"))?.to_string());
                }
                ("net", "*") => clients.push("any".to_owned()),
                ("net", network) => {
                    let network = self.network(option, network);
                    clients.push(network.ok_or_else(|| argument.expected("a network"))?);
                }
                _ => return Err(argument.expected("`type` or `net`")),
            }
        }
        let is_for_any = clients.is_empty() || clients.iter().any(|it| it == "any");
        let clients = if is_for_any { "any".to_owned() } else { clients.join(" ") };
        if types.is_empty() || is_of_all_types {
            return Ok(clients);
        }
        Ok(format!("{clients} type {}", types.join(" ")))
    }

    /// Returns a network with the bits behind its prefix zero.
    fn network(&mut self, option: &Line, text: &str) -> Option<String> {
        let Some((address, length)) = text.split_once('/') else {
            return text.parse().ok().map(|address: IpAddr| address.to_string());
        };
        let (address, length): (IpAddr, u32) = (address.parse().ok()?, length.parse().ok()?);
        let masked: IpAddr = match address {
            IpAddr::V4(it) => {
                let spare = 32_u32.checked_sub(length)?;
                let mask = u32::MAX.checked_shl(spare).unwrap_or(0);
                IpAddr::V4((u32::from(it) & mask).into())
            }
            IpAddr::V6(it) => {
                let spare = 128_u32.checked_sub(length)?;
                let mask = u128::MAX.checked_shl(spare).unwrap_or(0);
                IpAddr::V6((u128::from(it) & mask).into())
            }
        };
        if masked != address {
            self.leave(option, Differs, format!("the network is {masked}/{length}"));
        }
        Some(format!("{masked}/{length}"))
    }
}

/// Returns the word of `access` for an action.
fn action(name: &str) -> Option<&'static str> {
    Some(match name {
        "allow" => "allow",
        "block" => "refuse",
        "filter" => "filter",
        "drop" => "drop",
        _ => return None,
    })
}
