//! What the records of one name must keep to, whatever else the zone holds.
//!
//! One function for whatever makes or changes a zone: the loader, changes, checks.

use std::fmt;
use zonda_wire::Type;

/// Types of which a name has one record at most (rfc2181#10.1, rfc1035#6.1, rfc6672#2.4); ALIAS is
/// of no RFC, and has the rule of what it stands in for.
pub const SINGLE_TYPES: [Type; 4] = [Type::CNAME, Type::SOA, Type::DNAME, Type::ALIAS];

/// Types that may stand beside a CNAME (rfc4034#2.5, rfc3007#4.2, rfc2535#2.3.5).
const BESIDE_CNAME: [Type; 5] = [Type::RRSIG, Type::NSEC, Type::KEY, Type::SIG, Type::NXT];

/// Whether records of a type may stand beside a CNAME, or are one.
#[must_use]
pub(crate) fn may_stand_beside_cname(rtype: Type) -> bool {
    rtype == Type::CNAME || BESIDE_CNAME.contains(&rtype)
}

/// A name of a zone, as far as rules depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnerKind {
    /// Whether the name is the zone's apex.
    pub is_apex: bool,
    /// Whether the name's first label is an asterisk.
    pub is_wildcard: bool,
}

/// A rule that the records of a name break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerRule {
    /// Records of this type stand beside a CNAME.
    BesideCname(Type),
    /// A name has several records of this type, and may have one.
    SeveralOfOne(Type),
    /// A SOA record stands below the apex.
    SoaNotAtApex,
    /// A DS record stands at the apex (rfc4035#2.4).
    DsAtApex,
    /// A DS record stands where no delegation is.
    DsWithoutNs,
    /// A wildcard has records of this type, which has no meaning (rfc4592#4.2, rfc6672#3.3).
    Wildcard(Type),
}

impl OwnerRule {
    /// The type of the records that break the rule.
    #[must_use]
    pub fn rtype(self) -> Type {
        match self {
            Self::BesideCname(rtype) | Self::SeveralOfOne(rtype) | Self::Wildcard(rtype) => rtype,
            Self::SoaNotAtApex => Type::SOA,
            Self::DsAtApex | Self::DsWithoutNs => Type::DS,
        }
    }

    /// Whether no zone may break the rule, because its answers would be ambiguous. The loader and
    /// changes refuse such records; `zonda check` reports the other rules as well.
    #[must_use]
    pub fn is_binding(self) -> bool {
        matches!(self, Self::BesideCname(_) | Self::SeveralOfOne(_))
    }
}

impl fmt::Display for OwnerRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SeveralOfOne(rtype) => write!(f, "a name can have one {rtype} record only"),
            Self::BesideCname(rtype) => {
                write!(f, "a name with a CNAME cannot have other records, such as this {rtype}")
            }
            Self::SoaNotAtApex => f.write_str("a SOA record may stand at the apex only"),
            Self::DsAtApex => f.write_str("DS belongs into the zone above, not at the apex"),
            Self::DsWithoutNs => f.write_str("DS without NS: there is no delegation here"),
            Self::Wildcard(rtype) => write!(f, "a wildcard cannot have {rtype} records"),
        }
    }
}

/// Reports each rule that the records of a name break. `sets` has each type of the name once, with
/// the number of its records, none counted twice.
#[inline]
pub fn owner_rules(
    owner: OwnerKind,
    sets: impl Iterator<Item = (Type, usize)> + Clone,
    mut report: impl FnMut(OwnerRule),
) {
    let has = |wanted: Type| sets.clone().any(|(rtype, _)| rtype == wanted);
    let mut cname = None;
    for (rtype, count) in sets.clone() {
        if count > 1 && SINGLE_TYPES.contains(&rtype) {
            report(OwnerRule::SeveralOfOne(rtype));
        }
        match rtype {
            Type::CNAME => cname = Some(count),
            Type::SOA if !owner.is_apex => report(OwnerRule::SoaNotAtApex),
            Type::DS if owner.is_apex => report(OwnerRule::DsAtApex),
            Type::DS if !has(Type::NS) => report(OwnerRule::DsWithoutNs),
            Type::NS | Type::DNAME if owner.is_wildcard => report(OwnerRule::Wildcard(rtype)),
            _ => {}
        }
    }
    if cname.is_some() {
        let beside = sets.filter(|(rtype, _)| *rtype != Type::CNAME);
        for (rtype, _) in beside.filter(|(rtype, _)| !BESIDE_CNAME.contains(rtype)) {
            report(OwnerRule::BesideCname(rtype));
        }
    }
}

/// The first binding rule that the records of a name break; arguments as for [`owner_rules`].
#[inline]
pub(crate) fn binding_rule(
    owner: OwnerKind,
    sets: impl Iterator<Item = (Type, usize)> + Clone,
) -> Option<OwnerRule> {
    let mut broken: Option<OwnerRule> = None;
    owner_rules(owner, sets, |rule| {
        let is_cname = |rule: OwnerRule| {
            matches!(rule, OwnerRule::BesideCname(_) | OwnerRule::SeveralOfOne(Type::CNAME))
        };
        if rule.is_binding() && broken.is_none_or(|first| is_cname(rule) && !is_cname(first)) {
            broken = Some(rule);
        }
    });
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules that a name with these sets breaks.
    fn broken(owner: OwnerKind, sets: &[(Type, usize)]) -> Vec<OwnerRule> {
        let mut broken = Vec::new();
        owner_rules(owner, sets.iter().copied(), |rule| broken.push(rule));
        broken
    }

    #[test]
    fn each_rule_names_the_type_that_breaks_it() {
        use OwnerRule::{BesideCname, DsAtApex, DsWithoutNs, SeveralOfOne, SoaNotAtApex, Wildcard};
        let apex = OwnerKind { is_apex: true, is_wildcard: false };
        let wildcard = OwnerKind { is_apex: false, is_wildcard: true };
        let host = OwnerKind::default();
        for (owner, sets, expected) in [
            (host, &[(Type::A, 3), (Type::MX, 2)][..], &[][..]),
            (host, &[(Type::CNAME, 1), (Type::RRSIG, 2), (Type::NSEC, 1)], &[]),
            (host, &[(Type::A, 1), (Type::CNAME, 1)], &[BesideCname(Type::A)]),
            (host, &[(Type::CNAME, 2)], &[SeveralOfOne(Type::CNAME)]),
            (host, &[(Type::ALIAS, 2), (Type::A, 2)], &[SeveralOfOne(Type::ALIAS)]),
            (host, &[(Type::CNAME, 1), (Type::ALIAS, 1)], &[BesideCname(Type::ALIAS)]),
            (apex, &[(Type::SOA, 2), (Type::DNAME, 1)], &[SeveralOfOne(Type::SOA)]),
            (host, &[(Type::SOA, 1)], &[SoaNotAtApex]),
            (apex, &[(Type::DS, 1), (Type::NS, 2)], &[DsAtApex]),
            (host, &[(Type::DS, 1)], &[DsWithoutNs]),
            (host, &[(Type::NS, 2), (Type::DS, 1)], &[]),
            (
                wildcard,
                &[(Type::NS, 1), (Type::DNAME, 1)],
                &[Wildcard(Type::NS), Wildcard(Type::DNAME)],
            ),
        ] {
            assert_eq!(broken(owner, sets), expected, "{owner:?} {sets:?}");
        }
    }
}
