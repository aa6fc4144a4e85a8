//! The plan of a pool, and the choice for one query.

use crate::ANSWERS_MAX;
use crate::alias_table::AliasTable;
use crate::client::ClientNetwork;
use crate::dice::{Dice, hash_of, mix};
use crate::site_map::SiteMap;
use crate::slots::Slots;
use std::sync::Arc;
use zonda_wire::Type;

/// A pool compiled for the present states of its members. Never changes.
#[derive(Clone, Debug, Default)]
pub struct PoolPlan {
    /// The TTL of what the pool answers, seconds.
    pub ttl: u32,
    /// What it answers for the first type, here rather than elsewhere in memory.
    pub(crate) first: Option<View>,
    /// What it answers for other types.
    pub(crate) more: Box<[View]>,
}

/// What a pool answers for one type.
#[derive(Clone, Debug)]
pub struct View {
    pub(crate) rtype: Type,
    pub(crate) options: Arc<Options>,
    pub(crate) decision: Decision,
}

/// The members that can answer for one type.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// The RDATA of all that do not hold theirs, one behind the other.
    pub octets: Box<[u8]>,
    /// The members, in the order of the pool.
    pub options: Box<[Opt]>,
}

/// A member that can answer for one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opt {
    /// The number of the member in its pool.
    pub member: u32,
    /// What it answers with.
    pub kind: OptKind,
}

/// Octets of the longest RDATA that an option holds itself: those of an IPv6 address.
pub(crate) const SHORT: usize = 16;

/// What a member answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OptKind {
    /// RDATA of so many octets.
    Short(u8, [u8; SHORT]),
    /// RDATA at this place of the octets of all, of this length.
    Long(u32, u16),
    /// What another pool answers with.
    Pool(u32),
}

/// What is decided before a query comes.
#[derive(Clone, Debug)]
pub(crate) enum Decision {
    /// Some of these members answer.
    Group(Group),
    /// Members at the sites that the client prefers answer.
    Sites(SiteGroups),
    /// Another pool answers.
    Pool(u32),
    /// No member answers.
    Without(EndWithout),
}

/// The members at the sites of each tier.
#[derive(Clone, Debug)]
pub(crate) struct SiteGroups {
    /// The sites that clients prefer.
    pub map: Arc<SiteMap>,
    /// The members by the number of the tier; none where no member of it can answer.
    pub tiers: Box<[Option<Group>]>,
    /// The members where no tier of the client has any.
    pub rest: Group,
}

/// Members that remain behind all filters that know them without the query.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// The members; at least one.
    pub members: Box<[Opt]>,
    /// How the first one is found.
    pub pick: Pick,
    /// How many are chosen; at least one and at most all.
    pub count: usize,
    /// The part of the queries that come to it which it takes, in units of 2⁻¹⁶: of the rest, the
    /// next tier of the client's sites gets its part.
    pub taken: u32,
}

/// How the first member is found.
#[derive(Clone, Debug)]
pub(crate) enum Pick {
    /// Each member is the first equally often.
    Turn,
    /// The first of the group always.
    First,
    /// A draw by weight.
    Weight(AliasTable),
    /// By the hash of the client's network, cut to so many bits of IPv4 and IPv6.
    Client(Slots, u8, u8),
    /// By the hash of the name.
    Name(Slots),
}

/// How a query ends that no member answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndWithout {
    /// The reply is SERVFAIL.
    ServFail,
    /// The reply is NOERROR without records.
    NoData,
    /// The reply is REFUSED.
    Refused,
}

/// What a pool says about a query.
#[derive(Debug)]
pub enum Outcome<'p> {
    /// These members answer.
    Members(Choice<'p>),
    /// The pool with this number answers in place of this one, and so many bits of the client's
    /// network have led to it.
    Pool(u32, u8),
    /// No member answers.
    Without(EndWithout),
}

/// The members that answer a query.
#[derive(Debug)]
pub struct Choice<'p> {
    octets: &'p [u8],
    members: &'p [Opt],
    picks: Picks,
    /// The bits of the client's network that the choice depends on (rfc7871#7.2.1); 0 if it does
    /// not depend on the client.
    pub scope: u8,
}

/// Which members of a group are chosen.
#[derive(Debug)]
enum Picks {
    /// So many from a place on, the first behind the last.
    Turn(usize, usize),
    /// The members at these places, as far as the number goes.
    Several([u32; ANSWERS_MAX], usize),
}

impl PoolPlan {
    /// Whether the pool answers for no type.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Reads what a choice for the first type begins with, so that the processor loads it into its
    /// cache; the value has no meaning.
    #[inline]
    #[must_use]
    pub fn touch(&self) -> u64 {
        match self.first.as_ref().map(|view| &view.decision) {
            Some(Decision::Group(group)) => {
                let first = group.members.first().map_or(0, |member| u64::from(member.member));
                match &group.pick {
                    Pick::Weight(weights) => first ^ weights.touch(),
                    _ => first,
                }
            }
            _ => 0,
        }
    }

    /// What the pool answers for a type; none if it has no records of it.
    #[inline]
    #[must_use]
    pub fn view(&self, rtype: Type) -> Option<&View> {
        match &self.first {
            Some(view) if view.rtype == rtype => Some(view),
            _ => self.more.iter().find(|view| view.rtype == rtype),
        }
    }
}

impl View {
    /// Chooses members for a client's query for a name, which is in lower case and wire form.
    #[inline]
    #[must_use]
    pub fn choose(&self, client: &ClientNetwork, name: &[u8], dice: &mut Dice) -> Outcome<'_> {
        let (group, of_sites) = match &self.decision {
            Decision::Group(group) => (group, 0),
            Decision::Sites(groups) => groups.of(client, dice),
            Decision::Pool(pool) => return Outcome::Pool(*pool, 0),
            Decision::Without(end) => return Outcome::Without(*end),
        };
        let (first, scope) = group.first(client, name, dice);
        let scope = scope.max(of_sites);
        if let OptKind::Pool(pool) = group.members[first].kind {
            return Outcome::Pool(pool, scope);
        }
        let picks = match &group.pick {
            Pick::Weight(weights) if group.count > 1 && group.count < group.members.len() => {
                group.draw_more(first, weights, dice)
            }
            _ => Picks::Turn(first, group.count),
        };
        let (octets, members) = (&*self.options.octets, &*group.members);
        Outcome::Members(Choice { octets, members, picks, scope })
    }

    /// Whether the choice is the same for every query.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        match &self.decision {
            Decision::Group(group) => group.members.len() == 1 || matches!(group.pick, Pick::First),
            Decision::Sites(_) => false,
            Decision::Pool(_) | Decision::Without(_) => true,
        }
    }
}

impl SiteGroups {
    /// The members for a client, and the bits of its network that they depend on.
    #[inline(never)] // it would only make the choice of other pools longer
    fn of(&self, client: &ClientNetwork, dice: &mut Dice) -> (&Group, u8) {
        let (tiers, scope) = self.map.lookup(client.address);
        let groups = || tiers.iter().filter_map(|tier| self.tiers.get(*tier as usize)?.as_ref());
        let takes = |group: &&Group| {
            group.taken == Group::ALL || (dice.roll() >> 48) < u64::from(group.taken)
        };
        let found = groups().find(takes).or_else(|| groups().next());
        (found.unwrap_or(&self.rest), scope)
    }
}

impl Group {
    /// All queries that come to a group.
    pub const ALL: u32 = 1 << 16;

    /// The place of the first member, and the bits of the client's network that it depends on.
    #[inline]
    fn first(&self, client: &ClientNetwork, name: &[u8], dice: &mut Dice) -> (usize, u8) {
        match &self.pick {
            Pick::Turn => (dice.below(self.members.len()), 0),
            Pick::First => (0, 0),
            Pick::Weight(weights) => (weights.choose(dice) as usize, 0),
            Pick::Client(slots, v4, v6) => {
                let (bits, scope) = client.first_bits(*v4, *v6);
                (slots.choose(mix(bits)), scope)
            }
            Pick::Name(slots) => (slots.choose(hash_of(name)), 0),
        }
    }

    /// Chooses more members by weight, none twice.
    #[inline(never)] // most pools answer with one member
    fn draw_more(&self, first: usize, weights: &AliasTable, dice: &mut Dice) -> Picks {
        /// Draws for each member that is wanted, before those behind the last one are taken.
        const DRAWS: usize = 8;
        let (mut picks, mut len) = ([0; ANSWERS_MAX], 1);
        picks[0] = first as u32; // as many as there are members
        let count = self.count.min(ANSWERS_MAX);
        let mut add = |place: usize, len: &mut usize| {
            if !picks[..*len].contains(&(place as u32)) {
                picks[*len] = place as u32;
                *len += 1;
            }
        };
        let mut last = first;
        for _ in 0..DRAWS * count {
            if len == count {
                break;
            }
            last = weights.choose(dice) as usize;
            add(last, &mut len);
        }
        for step in 1..=self.members.len() {
            if len == count {
                break;
            }
            add((last + step) % self.members.len(), &mut len);
        }
        Picks::Several(picks, len)
    }
}

impl<'p> Choice<'p> {
    /// The number of records.
    #[inline]
    #[must_use]
    pub fn count(&self) -> usize {
        match self.picks {
            Picks::Turn(_, count) | Picks::Several(_, count) => count,
        }
    }

    /// The number, in its pool, of the member at `place` of those chosen.
    #[must_use]
    pub fn member(&self, place: usize) -> u32 {
        self.option(place).member
    }

    /// The RDATA of the member at `place` of those chosen.
    ///
    /// # Panics
    /// When fewer are chosen.
    #[inline]
    #[must_use]
    pub fn rdata(&self, place: usize) -> &'p [u8] {
        match &self.option(place).kind {
            OptKind::Short(len, octets) => &octets[..usize::from(*len)],
            OptKind::Long(start, len) => &self.octets[*start as usize..][..usize::from(*len)],
            OptKind::Pool(_) => &[], // a pool of pools answers with one of them
        }
    }

    /// The option at `place` of those chosen.
    #[inline]
    fn option(&self, place: usize) -> &'p Opt {
        let number = match &self.picks {
            Picks::Turn(first, _) => {
                let at = first + place;
                if at < self.members.len() { at } else { at - self.members.len() }
            }
            Picks::Several(picks, count) => picks[..*count][place] as usize,
        };
        &self.members[number]
    }
}
