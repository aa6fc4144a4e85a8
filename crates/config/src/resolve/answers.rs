//! Options of answers, and the upstreams that look up targets of ALIAS records.

use super::{forward, open};
use crate::error::{ConfigError, Contradiction, Origin};
use crate::keys::{Answers, ForwardKeys};
use crate::load::Layers;
use crate::mistake::Mistake;
use crate::reader::{RawValue, Reader, Session};
use crate::section::Keys;
use crate::{Forward, Listener};
use std::sync::Arc;
use zonda_upstream::Host;

/// The key of the upstreams.
const RESOLVER: &str = "alias-resolver";

/// Reads `[answers]`, and how its upstreams are asked if there are any.
pub(super) fn read<'a>(
    layers: &Layers<'a>,
    session: &mut Session<'a>,
    listeners: &[(Listener, Origin)],
) -> Option<(Answers, Option<Arc<Forward>>)> {
    let mut reader = open::<Answers>(layers, session);
    let answers = Answers::read(&mut reader)?;
    if answers.alias_resolver.is_empty() {
        return Some((answers, None));
    }
    let by_name = answers.alias_resolver.iter().find_map(|it| match &it.host {
        Host::Name(name) => Some(name.clone()),
        Host::Address(_) => None,
    });
    if let Some(name) = by_name {
        let mistake = Mistake::ResolverByName(name);
        reader.contradict(Some(RESOLVER), Contradiction::Servers(mistake));
        return None;
    }
    match resolver(&answers, listeners) {
        Ok(resolver) => Some((answers, Some(Arc::new(resolver)))),
        Err(errors) => {
            errors.into_iter().for_each(|error| reader.fail(Some(RESOLVER), error.problem));
            None
        }
    }
}

/// Returns how the upstreams are asked, as if they were those of a forwarded zone.
///
/// # Errors
/// What is wrong with them.
fn resolver(
    answers: &Answers,
    listeners: &[(Listener, Origin)],
) -> Result<Forward, Vec<ConfigError>> {
    let to: Vec<String> = answers.alias_resolver.iter().map(ToString::to_string).collect();
    let to = to.join(",");
    let given = vec![("to", RawValue { text: &to, origin: Origin::Default })];
    let listens_on: Vec<_> = listeners.iter().map(|(listener, _)| listener.address).collect();
    let mut session = Session::new(None, Vec::new(), None);
    let section = &ForwardKeys::SECTION;
    let mut reader = Reader::new(&mut session, section, None, given, Origin::Default);
    let read = forward::read(&mut reader, None, &listens_on);
    read.filter(|_| session.errors.is_empty()).ok_or(session.errors)
}
