//! Which queries are logged.

use zonda_config::{LogOutcome, QueryLog as Config};
use zonda_engine::{Event, Reason};
use zonda_wire::{Name, Opcode, Rcode, name};

/// Which queries are logged.
pub struct Filter {
    outcomes: Vec<LogOutcome>,
    /// Names in lower case, and those below them, that are logged; none: all.
    zones: Vec<Name>,
    /// Names in lower case, and those below them, that are not, unless a name in `zones` is nearer.
    except: Vec<Name>,
}

impl Filter {
    /// What a configuration says.
    pub fn new(config: &Config) -> Self {
        let lower = |names: &[Name]| names.iter().map(Name::to_lowercase).collect();
        let (zones, except) = (lower(&config.zones), lower(&config.except));
        Self { outcomes: config.outcomes.clone(), zones, except }
    }

    /// Whether a query is logged.
    pub fn admits(&self, event: &Event<'_>) -> bool {
        let asks = event.query.opcode() == Opcode::QUERY;
        let may_have_more = !asks || event.answer.is_truncated;
        let outcome = outcome(event.rcode, (event.answer.records, may_have_more), event.reason);
        self.outcomes.contains(&outcome) && self.has_name(event.name)
    }

    /// Whether queries for a name, in wire form and lower case, are logged.
    fn has_name(&self, name: &[u8]) -> bool {
        let nearest = |names: &[Name]| {
            let above = names.iter().filter(|it| name::is_at_or_below(name, it.as_wire()));
            above.map(|it| it.as_wire().len()).max()
        };
        let zone = if self.zones.is_empty() { Some(0) } else { nearest(&self.zones) };
        zone.is_some_and(|zone| nearest(&self.except).is_none_or(|except| except <= zone))
    }
}

/// What became of a query, by the response code, the records of the answer and whether there may be
/// more than the reply has, and the reason.
fn outcome(
    rcode: Option<Rcode>,
    (answers, may_have_more): (u16, bool),
    reason: Reason,
) -> LogOutcome {
    let has_answer =
        answers > 0 || may_have_more || matches!(reason, Reason::Referral | Reason::Transferred);
    match rcode {
        Some(Rcode::NOERROR) if has_answer => LogOutcome::Success,
        Some(Rcode::NOERROR | Rcode::NXDOMAIN) => LogOutcome::Denial,
        _ => LogOutcome::Error,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_nearest_name_decides_whether_a_query_is_logged() {
        let names = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect();
        let filter = |zones: &[&str], except: &[&str]| Filter {
            outcomes: Vec::new(),
            zones: names(zones),
            except: names(except),
        };
        for (zones, except, logged, left_out) in [
            (&[][..], &[][..], &[".", "a.b"][..], &[][..]),
            (&[], &["b"], &[".", "c"], &["b", "a.b"]),
            (&["b"], &[], &["b", "a.b"], &[".", "c"]),
            (&["b", "x.a.b"], &["a.b"], &["b", "c.b", "x.a.b", "y.x.a.b"], &["a.b", "y.a.b"]),
            (&["b"], &["."], &["a.b"], &["c"]),
        ] {
            let filter = filter(zones, except);
            for (name, expected) in
                logged.iter().map(|it| (it, true)).chain(left_out.iter().map(|it| (it, false)))
            {
                let wire: Name = name.parse().unwrap();
                assert_eq!(
                    filter.has_name(wire.as_wire()),
                    expected,
                    "{name} {zones:?} {except:?}"
                );
            }
        }
    }

    #[test]
    fn what_became_of_a_query_is_told_by_code_and_records() {
        for (rcode, answers, reason, expected) in [
            (Some(Rcode::NOERROR), 1, Reason::Answered, LogOutcome::Success),
            (Some(Rcode::NOERROR), 0, Reason::Referral, LogOutcome::Success),
            (Some(Rcode::NOERROR), 0, Reason::Forwarded, LogOutcome::Denial),
            (Some(Rcode::NXDOMAIN), 1, Reason::Forwarded, LogOutcome::Denial),
            (Some(Rcode::SERVFAIL), 0, Reason::UpstreamFailed, LogOutcome::Error),
            (Some(Rcode::REFUSED), 0, Reason::Forwarded, LogOutcome::Error),
            (Some(Rcode::NOERROR), 0, Reason::Transferred, LogOutcome::Success),
            (None, 0, Reason::NotAQuery, LogOutcome::Error),
        ] {
            let found = outcome(rcode, (answers, false), reason);
            assert_eq!(found, expected, "{rcode:?} {answers}");
        }
        let updated = outcome(Some(Rcode::NOERROR), (0, true), Reason::Updated);
        assert_eq!(updated, LogOutcome::Success);
    }
}
