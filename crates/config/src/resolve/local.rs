//! What is answered at home although a zone around it is forwarded.

use super::open;
use crate::Override;
use crate::error::{Contradiction, LocalMistake};
use crate::keys::{OVERRIDE, SpecialNames};
use crate::load::Layers;
use crate::reader::{Reader, Session};
use crate::section::Keys;
use crate::special;
use std::collections::HashSet;
use std::net::IpAddr;
use zonda_wire::{Name, name};

/// Reads `[special-names]` and `[override]`.
pub(super) fn read<'a>(
    layers: &Layers<'a>,
    session: &mut Session<'a>,
) -> (Option<Vec<Name>>, Vec<Override>) {
    let special_names = special_names(&mut open::<SpecialNames>(layers, session));
    (special_names, overrides(layers, session))
}

/// Reads `[special-names]`: the names that are answered, each once.
fn special_names(reader: &mut Reader<'_, '_>) -> Option<Vec<Name>> {
    let keys = SpecialNames::read(reader)?;
    let mut answered: Vec<Name> = special::all().collect();
    for forwarded in &keys.forward {
        let is_meant = |it: &Name| name::is_at_or_below(it.as_wire(), forwarded.as_wire());
        if !special::all().any(|it| is_meant(&it)) {
            reader.contradict(
                Some("forward"),
                Contradiction::Local(LocalMistake::NotSpecial(forwarded.clone())),
            );
        }
        answered.retain(|it| !is_meant(it));
    }
    for more in keys.answer.iter().map(Name::to_lowercase) {
        if !answered.contains(&more) {
            answered.push(more);
        }
    }
    Some(answered)
}

/// Reads the elements of `[[override]]`.
fn overrides<'a>(layers: &Layers<'a>, session: &mut Session<'a>) -> Vec<Override> {
    let (table, origin) = layers.section(&OVERRIDE);
    let keys = table.into_iter().flatten().map(|(key, _)| key.get_ref());
    let mut reader = Reader::new(session, &OVERRIDE, table, Vec::new(), origin);
    let (mut overrides, mut taken) = (Vec::new(), HashSet::new());
    for key in keys {
        let [described] = OVERRIDE.keys else { continue };
        let addresses: Option<Vec<IpAddr>> = reader.read_named(key, described);
        let name = match key.parse::<Name>() {
            Ok(name) => name.to_lowercase(),
            Err(error) => {
                reader
                    .contradict(Some(key), Contradiction::Local(LocalMistake::OverrideName(error)));
                continue;
            }
        };
        let Some(addresses) = addresses else { continue };
        if addresses.is_empty() {
            reader
                .contradict(Some(key), Contradiction::Local(LocalMistake::OverrideWithoutAddress));
        }
        if !taken.insert(name.clone()) {
            reader.contradict(
                Some(key),
                Contradiction::Local(LocalMistake::OverrideTwice(name.clone())),
            );
        }
        overrides.push(Override { name, addresses });
    }
    overrides
}
