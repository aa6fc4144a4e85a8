//! The objects of a cluster as changes come, and the snapshots made of them.
//!
//! # Invariants
//! - What an object has brought is remembered by the hash of its name, so that it can be taken
//!   back; the object itself is not kept.
//! - After a list of all objects of a kind, those that it lacked are gone, and none that it had was
//!   gone meanwhile.

use crate::address::{fold, hash, hash_label};
use crate::cluster::{Cluster, Options, PodAddress};
use crate::data::text_of;
use crate::object::{
    EndpointSlice, Namespace, ObjectName, Pod, Service, ServiceImport, ServiceKind,
};
use crate::search::NamespaceRecord;
use crate::service::{Addresses, PortRecord, ServiceRecord, SliceRecord};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;
use zonda_wire::Name;
use zonda_wire::name::{LABEL_BYTES_MAX, NAME_BYTES_MAX};
use zonda_zone::{HashSeed, LookupName};

/// The kinds of objects that names come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Services (`v1`, `Service`).
    Service,
    /// Slices of endpoints (`discovery.k8s.io/v1`).
    EndpointSlice,
    /// Namespaces (`v1`, `Namespace`).
    Namespace,
    /// Pods (`v1`, `Pod`).
    Pod,
    /// Services that are imported from a set of clusters.
    ServiceImport,
}

/// An object, or the news that one is gone.
#[derive(Clone, Debug)]
pub enum Change {
    /// A service that is there.
    Service(Service),
    /// A slice that is there.
    EndpointSlice(EndpointSlice),
    /// A namespace that is there.
    Namespace(Namespace),
    /// A pod that is there.
    Pod(Pod),
    /// An import that is there.
    ServiceImport(ServiceImport),
    /// An object of a kind is gone; a namespace has its name in [`ObjectName::name`].
    Gone(Kind, ObjectName),
}

/// What an object has brought.
struct Contribution {
    /// The list that had it last.
    list: u32,
    /// The number of its namespace among those that are listed one by one; 0 otherwise.
    part: u16,
    /// The hash of the service that it belongs to, and for a slice its endpoints.
    service: u64,
    /// The endpoints of a slice.
    slice: Option<Arc<SliceRecord>>,
    /// The addresses of a service or pod that have names.
    addresses: Box<[IpAddr]>,
    /// The labels of a service or an import, or the label of a namespace.
    label: Arc<[u8]>,
}

impl Contribution {
    /// An object of a service.
    fn of_service(service: u64) -> Self {
        let (slice, addresses, label) = (None, Box::default(), Arc::default());
        Self { list: 0, part: 0, service, slice, addresses, label }
    }
}

/// The labels of a service and of its namespace, in wire form and lower case.
struct ServiceLabels {
    wire: [u8; NAME_BYTES_MAX],
    /// The octets of the labels, which the rest of a name may follow.
    len: usize,
}

impl Deref for ServiceLabels {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.wire[..self.len]
    }
}

/// The objects of a kind.
#[derive(Default)]
struct KindState {
    objects: HashMap<u64, Contribution>,
    /// The numbers of the lists that are under way, or that ended last: one for each namespace
    /// that is listed by itself, or one of all objects.
    lists: Vec<u32>,
}

impl KindState {
    /// Returns the number of the list of a part of the objects.
    fn list(&self, part: u16) -> u32 {
        self.lists.get(usize::from(part)).copied().unwrap_or_default()
    }
}

/// Takes objects of a cluster, and makes snapshots of its names.
pub struct Builder {
    cluster: Cluster,
    services: KindState,
    slices: KindState,
    namespaces: KindState,
    pods: KindState,
    imports: KindState,
    /// The slices of each service, by the hashes of their names, so that their order is the same
    /// whatever came first.
    slices_of: HashMap<u64, BTreeMap<u64, Arc<SliceRecord>>>,
    /// Services whose slices have changed since the last snapshot.
    stale: HashSet<u64>,
    /// Services that are aliases: their names below the apex, and what they are aliases of.
    aliases: BTreeMap<String, String>,
    /// Whether aliases have changed since that was asked last.
    aliases_changed: bool,
    /// Namespaces whose objects are listed one by one; none if all are listed together.
    parts: Vec<String>,
}

impl Builder {
    /// No objects yet, of a cluster with this apex.
    #[must_use]
    pub fn new(apex: &Name, seed: HashSeed, options: Options) -> Self {
        Self {
            cluster: Cluster::new(apex, seed, options),
            services: KindState::default(),
            slices: KindState::default(),
            namespaces: KindState::default(),
            pods: KindState::default(),
            imports: KindState::default(),
            slices_of: HashMap::new(),
            stale: HashSet::new(),
            aliases: BTreeMap::new(),
            aliases_changed: true,
            parts: Vec::new(),
        }
    }

    /// The objects of a kind.
    fn known(&mut self, kind: Kind) -> &mut KindState {
        match kind {
            Kind::Service => &mut self.services,
            Kind::EndpointSlice => &mut self.slices,
            Kind::Namespace => &mut self.namespaces,
            Kind::Pod => &mut self.pods,
            Kind::ServiceImport => &mut self.imports,
        }
    }

    /// The same builder, which gets lists of the objects of each of these namespaces, in lower
    /// case, instead of lists of all objects.
    #[must_use]
    pub fn with_lists_of(mut self, namespaces: Vec<String>) -> Self {
        self.parts = namespaces;
        self
    }

    /// The number of a namespace among those that are listed one by one; 0 if all are listed
    /// together.
    fn part(&self, namespace: &str) -> u16 {
        let place = self.parts.iter().position(|it| it.eq_ignore_ascii_case(namespace));
        place.and_then(|place| u16::try_from(place).ok()).unwrap_or_default()
    }

    /// Notes that a list of all objects of a kind begins: of a namespace, if these are listed one
    /// by one.
    pub fn begin_list(&mut self, kind: Kind, namespace: &str) {
        let part = usize::from(self.part(namespace));
        let lists = &mut self.known(kind).lists;
        if lists.len() <= part {
            lists.resize(part + 1, 0);
        }
        lists[part] = lists[part].wrapping_add(1);
    }

    /// Notes that the list has ended: objects that it has not had are gone.
    pub fn end_list(&mut self, kind: Kind, namespace: &str) {
        let part = self.part(namespace);
        let known = self.known(kind);
        let list = known.list(part);
        let is_gone = |it: &Contribution| it.part == part && it.list != list;
        let gone = known.objects.iter().filter(|(_, brought)| is_gone(brought));
        let gone: Vec<u64> = gone.map(|(id, _)| *id).collect();
        gone.into_iter().for_each(|id| self.take_back(kind, id));
    }

    /// Keeps the version of an object that there is, as the one in the list cannot be read.
    pub fn keep(&mut self, kind: Kind, id: &ObjectName) {
        let id = self.id(id);
        let known = self.known(kind);
        if let Some(part) = known.objects.get(&id).map(|it| it.part) {
            let list = known.list(part);
            known.objects.entry(id).and_modify(|brought| brought.list = list);
        }
    }

    /// Takes a change, whatever comes of it.
    pub fn apply(&mut self, change: Change) {
        self.take(&change);
    }

    /// Takes a change; returns whether names may have changed by it.
    pub fn take(&mut self, change: &Change) -> bool {
        match change {
            Change::Service(service) => self.put_service(service),
            Change::EndpointSlice(slice) => return self.put_slice(slice),
            Change::Namespace(namespace) => self.put_namespace(namespace),
            Change::Pod(pod) => self.put_pod(pod),
            Change::ServiceImport(import) => self.put_import(import),
            Change::Gone(kind, id) => {
                let id = self.id(id);
                self.take_back(*kind, id);
            }
        }
        true
    }

    /// Returns the names of the cluster as they are now.
    pub fn snapshot(&mut self) -> Cluster {
        for hash in std::mem::take(&mut self.stale) {
            let slices = self.slices_of.get(&hash);
            let slices = slices.into_iter().flat_map(BTreeMap::values).cloned().collect();
            let Some(service) = self.cluster.services.all(hash).next() else { continue };
            let service = service.with_slices(slices);
            self.cluster.set_service(hash, service);
        }
        self.cluster.clone()
    }

    /// Notes that the zones' own data have changed, which negative answers have records of.
    pub fn note_new_data(&mut self) {
        self.cluster.versions.change_data();
    }

    /// Whether services that are aliases have changed since that was asked last.
    pub fn has_new_aliases(&mut self) -> bool {
        std::mem::take(&mut self.aliases_changed)
    }

    /// Returns the services that are aliases, as their names below the apex and those that they are
    /// aliases of.
    #[must_use]
    pub fn aliases(&self) -> &BTreeMap<String, String> {
        &self.aliases
    }

    /// The hash of an object's name.
    fn id(&self, id: &ObjectName) -> u64 {
        let seed = self.cluster.frame.seed;
        fold(hash_label(id.namespace.as_bytes(), seed), hash_label(id.name.as_bytes(), seed))
    }

    /// Returns what names of services have between the namespace and the apex, as text.
    pub(crate) fn infix_text(&self) -> &'static str {
        if self.cluster.infix().is_empty() { "." } else { ".svc." }
    }

    /// The labels of a service and the hash of its name; none if it has no name in the DNS.
    fn service_name(&self, namespace: &str, name: &str) -> Option<(ServiceLabels, u64)> {
        let (mut wire, mut len) = ([0; NAME_BYTES_MAX], 0);
        let mut push = |octets: &[u8]| -> Option<usize> {
            wire.get_mut(len..len + octets.len())?.copy_from_slice(octets);
            len += octets.len();
            Some(len)
        };
        for label in [name, namespace] {
            if label.is_empty() || label.len() > LABEL_BYTES_MAX || label.contains('.') {
                return None;
            }
            push(&[label.len() as u8])?; // at most 63
            push(label.as_bytes())?;
        }
        let labels_len = push(&[])?;
        push(self.cluster.infix())?;
        let len = push(self.cluster.frame.apex.as_wire())?;
        wire[..labels_len].make_ascii_lowercase(); // lengths of labels are no letters
        let hash = LookupName::new(&wire[..len], self.cluster.frame.seed).hash(0);
        Some((ServiceLabels { wire, len: labels_len }, hash))
    }

    /// Returns the service of a name without what all names end in, if there is one.
    pub(crate) fn service_of(&self, name: &str) -> Option<&ServiceRecord> {
        let (name, namespace) = name.split_once('.')?;
        let (_, hash) = self.service_name(namespace, name)?;
        self.cluster.services.all(hash).next().map(|it| &**it)
    }

    /// The service with a hash; one that is not known if there is none.
    fn service(&self, hash: u64, labels: &[u8]) -> ServiceRecord {
        let known = self.cluster.services.all(hash).next();
        known.map_or_else(|| ServiceRecord::unknown(labels), |it| ServiceRecord::clone(it))
    }

    /// Puts a service in place of its former version.
    fn put_service(&mut self, service: &Service) {
        let id = self.id(&service.id);
        let (addresses, target) = self.addresses(service);
        // A service of which only endpoints have names has no ports of its own.
        let has_ports = !matches!(&addresses, Addresses::Own(own) if own.is_empty());
        let ports = PortRecord::all(if has_ports { &service.ports } else { &[] }, None);
        if self.cluster.options().external.is_some() && target.is_some() {
            self.aliases_changed = true; // the data have its ports
        }
        self.put_record(Kind::Service, id, &service.id, (addresses, ports));
        let name = format!("{}.{}", service.id.name, service.id.namespace).to_ascii_lowercase();
        let former = match target {
            Some(target) => self.aliases.insert(name.clone(), target),
            None => self.aliases.remove(&name),
        };
        self.aliases_changed |= former != self.aliases.get(&name).cloned();
    }

    /// Returns the addresses that a service has in the zone, and what it is an alias of if it is
    /// one.
    fn addresses(&self, service: &Service) -> (Addresses, Option<String>) {
        let Some(external) = &self.cluster.options().external else {
            return match &service.kind {
                ServiceKind::ClusterIp(own) => (Addresses::Own(own.clone().into()), None),
                ServiceKind::Headless => (Addresses::OfEndpoints, None),
                ServiceKind::ExternalName(target) => (Addresses::Alias, Some(target.clone())),
            };
        };
        let (own, names) = (&service.external_ips, &service.external_names);
        match (&service.kind, names.first()) {
            _ if !own.is_empty() => (Addresses::Own(own.clone().into()), None),
            (_, Some(name)) => (Addresses::Alias, Some(name.clone())),
            (ServiceKind::Headless, None) if external.has_endpoints => {
                (Addresses::OfEndpoints, None)
            }
            (ServiceKind::ClusterIp(_), None) if external.has_endpoints => {
                (Addresses::Own(Box::default()), None)
            }
            _ => (Addresses::Unknown, None),
        }
    }

    /// Puts an import in place of its former version.
    fn put_import(&mut self, import: &ServiceImport) {
        let id = self.id(&import.id);
        let addresses = match import.is_headless {
            true => Addresses::OfEndpoints,
            false => Addresses::Own(import.addresses.clone().into()),
        };
        let ports = PortRecord::all(&import.ports, None);
        self.put_record(Kind::ServiceImport, id, &import.id, (addresses, ports));
    }

    /// Puts what a service or an import has into the snapshot.
    fn put_record(
        &mut self,
        kind: Kind,
        id: u64,
        name: &ObjectName,
        (addresses, ports): (Addresses, Arc<[PortRecord]>),
    ) {
        let Some((labels, hash)) = self.service_name(&name.namespace, &name.name) else { return };
        let own: Box<[IpAddr]> = match &addresses {
            Addresses::Own(own) => own.clone(),
            _ => Box::default(),
        };
        let record = ServiceRecord { addresses, ports, ..self.service(hash, &labels) };
        let mut brought = Contribution::of_service(hash);
        brought.label = Arc::clone(&record.labels);
        brought.addresses.clone_from(&own);
        self.cluster.set_service(hash, record);
        self.stale.insert(hash); // its slices may have come before it
        let former = self.remember(kind, (id, &name.namespace), brought);
        self.move_addresses(hash, former.map(|it| it.addresses).as_deref(), &own);
    }

    /// Remembers what an object has brought, in place of its former version, which it returns.
    fn remember(
        &mut self,
        kind: Kind,
        (id, namespace): (u64, &str),
        brought: Contribution,
    ) -> Option<Contribution> {
        let part = self.part(namespace);
        let known = self.known(kind);
        let list = known.list(part);
        known.objects.insert(id, Contribution { list, part, ..brought })
    }

    /// Puts a slice in place of its former version; returns whether they differ.
    fn put_slice(&mut self, slice: &EndpointSlice) -> bool {
        let id = self.id(&slice.id);
        let options = &self.cluster.frame.options;
        let is_ours = slice.is_imported == options.is_multicluster && !slice.service.is_empty();
        let name = self.service_name(&slice.id.namespace, &slice.service).filter(|_| is_ours);
        let Some((labels, hash)) = name else {
            self.take_back(Kind::EndpointSlice, id); // its label may have been removed
            return true;
        };
        let by_pod_names = options.has_pod_labels;
        let list = self.slices.list(self.part(&slice.id.namespace));
        let former = self.slices.objects.get_mut(&id).filter(|former| former.service == hash);
        let former_slice = former.as_ref().and_then(|it| it.slice.as_deref());
        let record = SliceRecord::new(slice, by_pod_names, former_slice);
        if former_slice.is_some_and(|it| *it == record) {
            former.into_iter().for_each(|it| it.list = list);
            return false;
        }
        if former.is_none() {
            self.take_back(Kind::EndpointSlice, id); // it may have belonged to another service
        }
        let record = Arc::new(record);
        let mut brought = Contribution::of_service(hash);
        brought.slice = Some(Arc::clone(&record));
        let former = self
            .remember(Kind::EndpointSlice, (id, &slice.id.namespace), brought)
            .and_then(|it| it.slice);
        self.slices_of.entry(hash).or_default().insert(id, Arc::clone(&record));
        if self.cluster.services.all(hash).next().is_none() {
            // So that it is found when its slices are put into it.
            let unknown = Arc::new(ServiceRecord::unknown(&labels));
            self.cluster.services.put(hash, unknown, |_| true);
        }
        self.stale.insert(hash);
        self.move_endpoints(hash, former.as_deref(), &record);
        true
    }

    /// Has the addresses of a slice lead to its service, and no more those that it had before.
    fn move_endpoints(&mut self, service: u64, former: Option<&SliceRecord>, now: &SliceRecord) {
        let seed = self.cluster.frame.seed;
        for gone in former.into_iter().flat_map(|it| &it.endpoints) {
            if !now.has_address(gone.address) {
                self.forget_address(service, gone.address);
            }
        }
        for new in now.endpoints.iter().map(|it| it.address) {
            if !former.is_some_and(|former| former.has_address(new)) {
                self.cluster.addresses.put(hash(new, seed), service, |it| *it == service);
            }
        }
    }

    /// Has an address lead to a service no more, unless it still has it otherwise.
    fn forget_address(&mut self, service: u64, address: IpAddr) {
        if !self.is_held(service, address) {
            let hash = hash(address, self.cluster.frame.seed);
            self.cluster.addresses.remove(hash, |it| *it == service);
        }
    }

    /// Has the addresses of an object lead to its service, and no more those that it had before.
    fn move_addresses(&mut self, service: u64, former: Option<&[IpAddr]>, now: &[IpAddr]) {
        let seed = self.cluster.frame.seed;
        let former = former.unwrap_or_default();
        for gone in former.iter().filter(|it| !now.contains(it)) {
            self.forget_address(service, *gone);
        }
        for new in now.iter().filter(|it| !former.contains(it)) {
            self.cluster.addresses.put(hash(*new, seed), service, |it| *it == service);
        }
    }

    /// Whether a service or one of its slices has an address.
    fn is_held(&self, service: u64, address: IpAddr) -> bool {
        let known = self.cluster.services.all(service).next();
        let is_own = known.is_some_and(
            |it| matches!(&it.addresses, Addresses::Own(own) if own.contains(&address)),
        );
        let slices = self.slices_of.get(&service).into_iter().flat_map(BTreeMap::values);
        is_own || slices.into_iter().any(|slice| slice.has_address(address))
    }

    /// Puts a namespace in place of its former version.
    fn put_namespace(&mut self, namespace: &Namespace) {
        let label = namespace.name.to_ascii_lowercase();
        let (label, seed) = (label.as_bytes(), self.cluster.frame.seed);
        let object = ObjectName { namespace: String::new(), name: namespace.name.clone() };
        let id = self.id(&object);
        let opts_out_of_autopath = namespace.opts_out_of_autopath;
        let hash = hash_label(label, seed);
        let known = self.cluster.namespaces.all(hash).find(|it| *it.label == *label);
        if known.is_none_or(|it| it.opts_out_of_autopath != opts_out_of_autopath) {
            let record = NamespaceRecord { label: label.into(), opts_out_of_autopath };
            self.cluster.namespaces.put(hash, record, |it| *it.label == *label);
        }
        let mut brought = Contribution::of_service(0);
        brought.label = label.into();
        self.remember(Kind::Namespace, (id, &namespace.name), brought);
    }

    /// Puts a pod in place of its former version.
    fn put_pod(&mut self, pod: &Pod) {
        let id = self.id(&pod.id);
        self.take_back(Kind::Pod, id);
        let seed = self.cluster.frame.seed;
        let namespace = pod.id.namespace.to_ascii_lowercase();
        let label = hash_label(namespace.as_bytes(), seed);
        for address in &pod.addresses {
            let is_of_host = pod.is_on_host_network;
            let value = PodAddress { namespace: label, address: *address, is_of_host };
            // Pods on the network of a host share an address, each with a value of its own.
            self.cluster.pods.put(hash(*address, seed), value, |_| false);
        }
        let mut brought = Contribution::of_service(label);
        brought.addresses = pod.addresses.clone().into();
        self.remember(Kind::Pod, (id, &pod.id.namespace), brought);
    }

    /// Takes back what an object has brought.
    fn take_back(&mut self, kind: Kind, id: u64) {
        let Some(brought) = self.known(kind).objects.remove(&id) else { return };
        let (hash_of, seed) = (brought.service, self.cluster.frame.seed);
        match kind {
            Kind::Service | Kind::ServiceImport => {
                let labels = &brought.label;
                let unknown = Addresses::Unknown;
                let known = self.service(hash_of, labels);
                let record = ServiceRecord { addresses: unknown, ports: Arc::default(), ..known };
                self.cluster.set_service(hash_of, record);
                self.move_addresses(hash_of, Some(&brought.addresses), &[]);
                self.stale.insert(hash_of);
                self.aliases_changed |= self.aliases.remove(&text_of(labels)).is_some();
            }
            Kind::EndpointSlice => {
                let slices = self.slices_of.entry(hash_of).or_default();
                slices.remove(&id);
                if slices.is_empty() {
                    self.slices_of.remove(&hash_of);
                }
                self.stale.insert(hash_of);
                let endpoints = brought.slice.iter().flat_map(|it| &it.endpoints);
                let gone: Vec<IpAddr> = endpoints.map(|it| it.address).collect();
                self.move_addresses(hash_of, Some(&gone), &[]);
            }
            Kind::Namespace => {
                let label = &brought.label;
                let hash = hash_label(label, seed);
                self.cluster.namespaces.remove(hash, |it| *it.label == **label);
            }
            Kind::Pod => {
                for address in &brought.addresses {
                    self.cluster.pods.remove(hash(*address, seed), |it| {
                        (it.namespace, it.address) == (hash_of, *address)
                    });
                }
            }
        }
    }
}
