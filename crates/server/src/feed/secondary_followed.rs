//! The zones of primaries that are followed: those of the configuration, and members of catalogs.

use super::secondary_schedule::{Prompt, Schedule};
use super::secondary_zone::{FileFate, FollowTerms, SecondaryZone};
use super::secondary_zones::SecondaryZones;
use super::store_feed::NEXT_NUMBER;
use crate::zone_set::fed_zone::{FedOwner, NewFedZone};
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::time::Duration;
use zonda_config::{MemberTemplate, SecondaryKeys};
use zonda_secondary::{MemberTag, Primary};
use zonda_wire::Name;
use zonda_wire::tsig::Key;

/// A member of a catalog that is followed from now on, or with other settings: its name in lower
/// case, where it comes from as messages call it, and how it is served.
pub type NewMember = (Name, Arc<str>, MemberTemplate);

/// What changes of the members of catalogs.
#[derive(Default)]
pub struct MemberChange {
    /// The zones that are members no more, by their names in lower case, and what becomes of their
    /// files.
    pub removed: Vec<(Name, FileFate)>,
    /// The zones that are members from now on and were none, and what as: files that were set aside
    /// are taken back.
    pub returned: Vec<(Name, MemberTag)>,
    /// The zones that are members from now on, or have other settings.
    pub added: Vec<NewMember>,
}

/// The zones that are followed.
#[derive(Default)]
pub struct Followed {
    /// Which zone is due when.
    pub schedule: Schedule,
    /// The zones that are followed.
    pub zones: SecondaryZones,
    /// The requests of operators that wait for a refresh which has not begun, by apex.
    pub waiters: HashMap<Name, Vec<Waiter>>,
}

/// What a thread is to do.
pub enum Job {
    /// Read the file of a zone.
    Read(Arc<SecondaryZone>),
    /// Refresh a zone; with what has asked for that out of turn, and the requests of operators that
    /// wait for the result.
    Refresh(Arc<SecondaryZone>, Option<Prompt>, Vec<Waiter>),
}

/// A request of an operator that waits for the result of a refresh.
pub struct Waiter {
    sender: SyncSender<RefreshReport>,
    /// Is gone once nothing awaits the result any more.
    awaits: Weak<()>,
}

/// The result of a refresh that an operator has asked for, once there is one.
pub struct PendingReport {
    receiver: Receiver<RefreshReport>,
    /// Is gone with this, which the sender sees.
    _awaits: Arc<()>,
}

/// What tells an operator of the result of a refresh, and what receives it.
pub fn report_channel() -> (Waiter, PendingReport) {
    let ((sender, receiver), awaits) = (sync_channel(1), Arc::new(()));
    let waiter = Waiter { sender, awaits: Arc::downgrade(&awaits) };
    (waiter, PendingReport { receiver, _awaits: awaits })
}

impl Waiter {
    /// Tells the result.
    pub fn tell(&self, report: RefreshReport) {
        let _ = self.sender.try_send(report); // a request that is gone needs none
    }

    /// Whether the result is still awaited.
    fn is_awaited(&self) -> bool {
        self.awaits.strong_count() > 0
    }
}

impl PendingReport {
    /// Waits for the result for so long.
    ///
    /// # Errors
    /// When there is none by then, or the zone is followed no more.
    pub fn recv_timeout(&self, wait: Duration) -> Result<RefreshReport, RecvTimeoutError> {
        self.receiver.recv_timeout(wait)
    }
}

/// What came of a refresh that an operator has asked for.
#[derive(Clone, Debug)]
pub struct RefreshReport {
    /// The serial before the refresh; none where the zone was not served.
    pub former: Option<u32>,
    /// The serial after the refresh; none where the zone is not served.
    pub serial: Option<u32>,
    /// Whether a version was transferred.
    pub is_transferred: bool,
    /// The primary that the version came from, or that it is in step with.
    pub primary: Option<String>,
    /// Why no primary has a version that can be taken, in words.
    pub error: Option<String>,
}

impl Followed {
    /// Has zones looked after that are new, or have other settings.
    pub fn add_due(&mut self, zones: &[Name]) {
        for apex in zones {
            let primary = self.zones.get(apex).and_then(|it| it.terms.primaries.first());
            if let Some(address) = primary.map(|it| it.address) {
                self.schedule.add(apex, address);
            }
        }
    }

    /// Follows members no more, and has those told that wait for them; returns the zones that are
    /// taken out of service, and those of them whose files do not stay: also those that are
    /// not followed, as no section is for their groups, and that were before. Zones that the
    /// configuration has followed are left to that.
    pub fn remove_members(
        &mut self,
        zones: Vec<(Name, FileFate)>,
    ) -> (Vec<Name>, Vec<(Name, FileFate)>) {
        let (mut removed, mut forgotten) = (Vec::new(), Vec::new());
        for (apex, fate) in zones {
            match self.zones.get(&apex) {
                Some(zone) if !zone.terms.is_member => continue,
                Some(zone) => zone.is_gone.store(true, Relaxed),
                None => {}
            }
            self.zones.remove(&apex);
            self.schedule.remove(&apex);
            self.waiters.remove(&apex); // which tells them
            forgotten.extend((fate != FileFate::Stays).then(|| (apex.clone(), fate)));
            removed.push(apex);
        }
        (removed, forgotten)
    }

    /// Follows members; returns what the publisher is to serve of what feed, and the zones that are
    /// new or have other settings.
    pub fn add_members(
        &mut self,
        members: Vec<NewMember>,
        keys: &HashMap<Name, Arc<Key>>,
        first: &SyncSender<()>,
    ) -> (Vec<(u64, NewFedZone)>, Vec<Name>) {
        let mut terms = TermsOfFeed::new(keys, true);
        let first = Arc::new(first.clone());
        let (mut added, mut adopted) = (Vec::new(), Vec::new());
        for (apex, source, MemberTemplate { secondary, access, .. }) in members {
            let kept = self.zones.get(&apex).cloned();
            if kept.as_ref().is_some_and(|kept| !kept.terms.is_member) {
                continue;
            }
            let new = SecondaryZone::new(&apex, terms.of(&secondary), &first);
            let (zone, is_new) = next_of(kept, new);
            let (name, owner) = (apex.clone(), FedOwner::Catalog);
            let new = NewFedZone { name, source, access, owner, hosts_first: false };
            added.push((zone.terms.number, new));
            adopted.extend(is_new.then(|| apex.clone()));
            self.zones.insert(zone);
        }
        (added, adopted)
    }

    /// Has the next refresh of a zone be for what has asked for the one that was to do something
    /// and waits for memory.
    pub fn keep_asked(&mut self, job: Job) {
        if let Job::Refresh(zone, prompt, waiters) = job
            && self.zones.contains(&zone.apex)
        {
            prompt.iter().for_each(|prompt| self.schedule.keep_prompt(&zone.apex, *prompt));
            waiters.into_iter().for_each(|waiter| self.add_waiter(&zone.apex, waiter));
        }
    }

    /// Has a request wait for the next refresh of a zone that an operator has asked for; those that
    /// have been given up meanwhile are forgotten, as a zone may wait for memory for long.
    pub fn add_waiter(&mut self, apex: &Name, waiter: Waiter) {
        let waiters = self.waiters.entry(apex.clone()).or_default();
        waiters.push(waiter);
        waiters.retain(Waiter::is_awaited);
        if waiters.is_empty() {
            self.waiters.remove(apex);
        }
    }

    /// Takes something to do: files are read first, which no primary can delay.
    pub fn take(&mut self, now: u64, is_reader: bool) -> Option<Job> {
        if let Some(apex) = self.schedule.take_unread() {
            return self.zones.get(&apex).map(|zone| Job::Read(Arc::clone(zone)));
        }
        if is_reader {
            return None;
        }
        let (apex, prompt) = self.schedule.take(now)?;
        let is_of_operator = matches!(prompt, Some(Prompt::Refresh | Prompt::Retransfer));
        let waiters = if is_of_operator { self.waiters.remove(&apex) } else { None };
        let waiters = waiters.unwrap_or_default();
        self.zones.get(&apex).map(|zone| Job::Refresh(Arc::clone(zone), prompt, waiters))
    }
}

/// Makes the terms of zones that one feed follows. Zones in a row mostly share them.
pub struct TermsOfFeed<'k> {
    keys: &'k HashMap<Name, Arc<Key>>,
    is_member: bool,
    /// The number by which the publisher knows the feed.
    pub number: u64,
    /// The terms of the zone before.
    last: Option<Arc<FollowTerms>>,
}

impl<'k> TermsOfFeed<'k> {
    /// The terms of zones of a new feed, whose primaries may have these keys.
    pub fn new(keys: &'k HashMap<Name, Arc<Key>>, is_member: bool) -> Self {
        let number = NEXT_NUMBER.fetch_add(1, Relaxed);
        Self { keys, is_member, number, last: None }
    }

    /// The terms of the next zone.
    pub fn of(&mut self, secondary: &Arc<SecondaryKeys>) -> Arc<FollowTerms> {
        let last = self.last.take().filter(|last| Arc::ptr_eq(&last.keys, secondary));
        let terms = last.unwrap_or_else(|| {
            let (number, is_member) = (self.number, self.is_member);
            let (keys, primaries) = (Arc::clone(secondary), primaries(secondary, self.keys));
            Arc::new(FollowTerms { number, keys, is_member, primaries })
        });
        Arc::clone(self.last.insert(terms))
    }
}

/// The primaries of a zone, with their keys.
fn primaries(keys: &SecondaryKeys, all: &HashMap<Name, Arc<Key>>) -> Arc<[Primary]> {
    let primary = |it: &zonda_config::RemoteServer| Primary {
        address: it.address,
        key: it.key.as_ref().and_then(|name| all.get(name)).map(Arc::clone),
    };
    keys.from.iter().map(primary).collect()
}

/// A zone in place of the one that is followed, which stays where nothing differs; and whether it
/// is new.
pub fn next_of(kept: Option<Arc<SecondaryZone>>, new: SecondaryZone) -> (Arc<SecondaryZone>, bool) {
    match kept {
        Some(kept) if is_same(&kept.terms, &new.terms) => (kept, false),
        Some(kept) => (Arc::new(kept.replaced_by(new)), true),
        None => (Arc::new(new), true),
    }
}

/// Whether zones are followed alike under two terms.
fn is_same(terms: &FollowTerms, other: &FollowTerms) -> bool {
    let is_equal = |(one, other): (&Primary, &Primary)| match (&one.key, &other.key) {
        (None, None) => true,
        (Some(one), Some(other)) => one.is_same(other),
        _ => false,
    };
    let has_same_keys = || terms.primaries.iter().zip(&*other.primaries).all(is_equal);
    terms.is_member == other.is_member && terms.keys == other.keys && has_same_keys()
}

#[cfg(all(test, feature = "whole"))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::path::Path;
    use zonda_config::{Config, Flags};

    /// A zone of primaries that nothing looks after.
    fn zone(apex: &Name, is_member: bool) -> Arc<SecondaryZone> {
        let text =
            "version = 1\n[[zone]]\nname = \"a\"\n[zone.secondary]\nfrom = [\"192.0.2.1\"]\n";
        let text = (Path::new("/zonda.toml"), text.to_owned());
        let config = Config::load_text(text, [], &Flags::default()).unwrap().config;
        let keys = Arc::clone(config.secondaries().next().unwrap().1);
        let terms = FollowTerms { number: 1, keys, is_member, primaries: Arc::default() };
        Arc::new(SecondaryZone::new(apex, terms.into(), &Arc::new(sync_channel(0).0)))
    }

    #[test]
    fn an_operator_that_waits_for_a_member_is_told_when_it_is_a_member_no_more() {
        let (apex, mut followed) = ("one.test".parse::<Name>().unwrap(), Followed::default());
        followed.zones.insert(zone(&apex, true));
        let (waiter, report) = report_channel();
        followed.add_waiter(&apex, waiter);
        followed.remove_members(vec![(apex, FileFate::Removed)]);
        let told = report.recv_timeout(Duration::from_millis(1));
        assert_eq!(told.err(), Some(RecvTimeoutError::Disconnected));
        assert!(followed.waiters.is_empty());
    }

    #[test]
    fn operators_that_have_given_up_leave_nothing_at_a_zone_that_waits_and_the_others_are_told() {
        let (apex, mut followed) = ("one.test".parse::<Name>().unwrap(), Followed::default());
        let zone = zone(&apex, false);
        followed.zones.insert(Arc::clone(&zone));
        let (kept, report) = report_channel();
        let mut waiters = vec![kept];
        for _ in 0..1000 {
            waiters.push(report_channel().0);
            followed.keep_asked(Job::Refresh(Arc::clone(&zone), Some(Prompt::Refresh), waiters));
            waiters = followed.waiters.remove(&apex).unwrap();
            assert_eq!(waiters.len(), 1);
        }
        let (former, serial, is_transferred) = (None, Some(7), true);
        let told = RefreshReport { former, serial, is_transferred, primary: None, error: None };
        waiters.iter().for_each(|waiter| waiter.tell(told.clone()));
        assert_eq!(report.recv_timeout(Duration::ZERO).unwrap().serial, Some(7));
        drop(report);
        followed.keep_asked(Job::Refresh(zone, Some(Prompt::Refresh), waiters));
        assert!(followed.waiters.is_empty());
    }

    #[test]
    fn files_are_removed_of_members_that_no_section_is_for_and_of_no_zone_of_the_configuration() {
        let names = ["own.test", "followed.test", "none.test"];
        let [own, member, none] = names.map(|name| name.parse::<Name>().unwrap());
        let mut followed = Followed::default();
        followed.zones.insert(zone(&own, false));
        followed.zones.insert(zone(&member, true));
        let gone = [&own, &member, &none].map(|name| (name.clone(), FileFate::Removed)).to_vec();
        let (removed, forgotten) = followed.remove_members(gone);
        assert_eq!(removed, [member.clone(), none.clone()]);
        assert_eq!(forgotten, [member, none].map(|name| (name, FileFate::Removed)));
        assert!(followed.zones.contains(&own));
    }
}
