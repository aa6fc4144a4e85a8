//! Messages between being read and being answered.

use crate::hot::{Hit, HotTable, Key};
use crate::snapshot::Snapshot;
use crate::steering::Steering;
use crate::upstream_options::ClientFacts;
use crate::zones::{Source, ZoneMatch};
use std::sync::Arc;
use zonda_rewrite::{Change, RewriteRules, Rewritten, replace_question};
use zonda_wire::query::HEADER_BYTES;
use zonda_wire::tsig::QuerySignature;
use zonda_wire::{Class, Fault, Opcode, Query, Type};
use zonda_zone::{LookupName, Start};

/// A message between being read and being answered.
pub struct PreparedQuery {
    pub query: Query,
    pub fault: Option<Fault>,
    pub name: LookupName,
    /// The key of its answer among those given before.
    pub key: Option<Key>,
    pub hit: Option<Hit>,
    pub zone: Option<ZoneMatch>,
    /// The signature of the message, if it has one that was checked.
    pub signature: Option<QuerySignature>,
    /// The place of the sound signature that was cut off.
    pub signed_at: usize,
    /// The end of the last signature that was checked, with which its message ended.
    pub signed_end: usize,
    /// The first pool that the name is steered to, where names are steered.
    pool: Option<u32>,
    /// A value read from the entry, so that the processor loads it into its cache.
    touched: u64,
}

/// A query that rules were met for.
#[derive(Debug)]
pub struct RewrittenQuery {
    /// What has to be done with the reply.
    pub change: Change,
    /// Octets of the message, with its new question.
    pub len: usize,
    /// Whether there is no new question, although a rule says so.
    pub is_invalid: bool,
}

impl Default for PreparedQuery {
    fn default() -> Self {
        let query = Query::default();
        Self {
            query,
            fault: None,
            name: LookupName::default(),
            key: None,
            hit: None,
            zone: None,
            signature: None,
            signed_at: 0,
            signed_end: 0,
            pool: None,
            touched: 0,
        }
    }
}

impl PreparedQuery {
    /// Reads the message of `len` octets and hashes its name.
    #[inline]
    pub fn read(&mut self, buffer: &[u8], len: usize, snapshot: &Snapshot, hot: &HotTable) {
        self.fault = self.query.read(&buffer[..len]).err();
        self.signature = None;
        self.look_up(buffer, snapshot, hot);
    }

    /// Tries rules on the query in the first `len` octets of a buffer. What they make of its
    /// question is written there and read again. `text` is memory for names.
    pub fn rewrite(
        &mut self,
        rules: &Arc<RewriteRules>,
        (buffer, mut len): (&mut [u8], usize),
        (snapshot, hot): (&Snapshot, &HotTable),
        text: &mut Vec<u8>,
    ) -> Option<RewrittenQuery> {
        let question_end = self.query.question_end();
        let is_question = self.query.opcode() == Opcode::QUERY && question_end > HEADER_BYTES;
        // What a transfer says is no matter of rules.
        let is_transfer = matches!(self.query.qtype, Type::AXFR | Type::IXFR);
        if self.fault.is_some() || !is_question || is_transfer {
            return None;
        }
        let asked = &buffer[HEADER_BYTES..question_end];
        let kind = (self.query.qtype, self.query.qclass);
        let rewritten = rules.apply(self.name.as_wire(), asked, kind, text)?;
        let Rewritten { question, mut is_invalid, change } = rewritten;
        if let Some(question) = question {
            match replace_question(buffer, len, question_end, &question) {
                Some(new_len) => {
                    len = new_len;
                    let signature = self.signature.take();
                    self.read(buffer, len, snapshot, hot);
                    // The client is to get a signed reply to what it has signed.
                    self.signature = signature;
                    self.signed_at = if self.signed_at > 0 { len } else { 0 };
                }
                None => is_invalid = true,
            }
        }
        Some(RewrittenQuery { change, len, is_invalid })
    }

    /// Takes a query that was read from `octets` before, and whose zone was found if it is given.
    pub fn recall(
        &mut self,
        (query, octets): (&Query, &[u8]),
        zone: Option<ZoneMatch>,
        snapshot: &Snapshot,
        hot: &HotTable,
    ) {
        debug_assert_eq!(Query::parse(octets).ok(), Some(*query), "the octets have not changed");
        self.signature = None;
        (self.query, self.fault) = (*query, None); // a query with a fault is not deferred
        if zone.is_none() {
            return self.look_up(octets, snapshot, hot);
        }
        self.set_name(octets, snapshot);
        (self.key, self.hit, self.zone) = (None, None, zone);
    }

    /// Hashes the name of the query, which was read from `buffer`.
    #[inline(always)] // a call would make the path of new queries longer
    fn set_name(&mut self, buffer: &[u8], snapshot: &Snapshot) {
        let seed = snapshot.zones.seed();
        match usize::from(self.query.name_end) {
            HEADER_BYTES => self.name.set(&[0], seed),
            end => self.name.set_from(&buffer[HEADER_BYTES..], end - HEADER_BYTES, seed),
        }
    }

    /// Hashes the name of the query, which was read from `buffer`, and finds its zone.
    #[inline(always)] // a call would make the path of new queries longer
    fn look_up(&mut self, buffer: &[u8], snapshot: &Snapshot, hot: &HotTable) {
        self.set_name(buffer, snapshot);
        let is_sound = self.fault.is_none();
        let has_key = is_sound && self.query.qclass == Class::IN;
        self.key = has_key.then(|| Key::new(&self.query, &self.name));
        self.hit = self.key.and_then(|key| hot.lookup(key, &self.name, snapshot.generation));
        self.zone = match self.hit {
            Some(hit) => Some(hit.zone),
            None if is_sound => snapshot.zones.find_answering(&self.name, self.query.qtype),
            None => None,
        };
    }

    /// Brings the slot of the name's node, or of its cached answer, into the processor's cache, and
    /// takes down where the look-up in zone data begins.
    #[inline]
    pub fn touch_slot<'s>(&mut self, snapshot: &'s Snapshot, start: &mut Start<'s>) {
        let Some(zone) = self.zone.filter(|_| self.hit.is_none()) else { return };
        match &snapshot.zones.get(zone.index).source {
            Source::Data(data) => {
                *start = data.start(&self.name);
                self.touched = start.touch_slot();
            }
            Source::Forward(forward) if forward.options.is_none() => {
                let key = forward.cache_key(&self.query, &self.name, &ClientFacts::NONE);
                self.touched = forward.cache.touch(&key);
            }
            Source::Cluster(zone) => self.touched = zone.cluster.touch(&self.name),
            Source::Forward(_) | Source::Local(_) | Source::Excepted | Source::Unavailable(_) => {}
        }
    }

    /// Brings the name's node, or its kept answer, into the processor's cache.
    #[inline]
    pub fn touch_node(&mut self, snapshot: &Snapshot, start: &Start<'_>) {
        let Some(zone) = self.zone.filter(|_| self.hit.is_none()) else { return };
        match &snapshot.zones.get(zone.index).source {
            Source::Data(_) => self.touched = start.touch_node().into(),
            Source::Forward(forward) if forward.options.is_none() => {
                let key = forward.cache_key(&self.query, &self.name, &ClientFacts::NONE);
                self.touched = forward.cache.touch_entry(&key);
            }
            Source::Cluster(zone) => self.touched = zone.cluster.touch_service(&self.name),
            Source::Forward(_) | Source::Local(_) | Source::Excepted | Source::Unavailable(_) => {}
        }
    }

    /// Finds the pool that the name is steered to, and brings its plan into the processor's cache.
    #[inline(never)] // few servers steer names
    pub fn touch_pool(&mut self, steering: &Steering) {
        self.pool = None;
        if self.hit.is_none() && self.zone.is_some() {
            self.pool = steering.names.first_pool(&self.name);
            self.touched = self.pool.map_or(0, |pool| steering.touch(pool));
        }
    }

    /// Brings the members of that pool into the processor's cache.
    #[inline(never)] // few servers steer names
    pub fn touch_members(&mut self, steering: &Steering) {
        if let Some(pool) = self.pool {
            self.touched = steering.touch_members(pool);
        }
    }
}
