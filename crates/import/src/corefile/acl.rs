//! `acl [ZONES…] { ACTION [type TYPE…] [net SOURCE…] }`.

use super::Importer;
use super::key;
use super::parser::Line;
use super::source::AccessRule;
use crate::document::Effect::{Differs, Lost};
use crate::error::ImportError;
use std::net::IpAddr;
use zonda_wire::Type;

/// Why rules for types and rules that rewrite types are not kept together.
pub(super) const REWRITTEN: &str =
    "`access` sees the types that `rewrite type` has made, and not those that clients ask for";

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
            let (clients, types) = self.clients(option)?;
            if let Some(why) = self.unfit(&types) {
                self.leave(option, Lost, why);
                continue;
            }
            let types: String = types.iter().map(|rtype| format!(" {rtype}")).collect();
            let types = if types.is_empty() { types } else { format!(" type{types}") };
            let (rule, place) = (format!("{action} {clients}{types}"), option.place().clone());
            self.current().access.push(AccessRule { zones: zones.clone(), rule, place });
        }
        Ok(())
    }

    /// Why a rule for some types is not kept.
    fn unfit(&mut self, types: &[Type]) -> Option<&'static str> {
        if types.iter().any(|it| matches!(*it, Type::AXFR | Type::IXFR)) {
            return Some("`transfer` alone says which clients may transfer a zone");
        }
        let is_rewritten = self.current().changes.iter().any(|it| it.sets_type());
        (is_rewritten && !types.is_empty()).then_some(REWRITTEN)
    }

    /// Returns the clients of a rule as `access` has them, and the types that it is for; none if it
    /// is for all.
    fn clients(&mut self, option: &Line) -> Result<(String, Vec<Type>), ImportError> {
        let (mut clients, mut types) = (Vec::new(), Vec::new());
        let mut section = "";
        let mut is_of_all_types = false;
        for argument in option.arguments() {
            match (section, argument.text.as_str()) {
                (_, "type") => section = "type",
                (_, "net") => section = "net",
                ("type", "*") => is_of_all_types = true,
                ("type", text) => {
                    let name = text.to_ascii_uppercase();
                    let known = Type::from_text(name.as_bytes());
                    types.push(known.ok_or_else(|| argument.expected("a type"))?);
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
        Ok((clients, if is_of_all_types { Vec::new() } else { types }))
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
