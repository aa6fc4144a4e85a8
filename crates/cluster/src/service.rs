//! Services and endpoint slices as a snapshot holds them.

use crate::address::{self, DASHED_BYTES_MAX, to_dashed};
use crate::object::{EndpointSlice, Port, Protocol};
use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;
use zonda_wire::name::LABEL_BYTES_MAX;

/// The addresses of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// The service is not known, but slices of it are.
    Unknown,
    /// The addresses of the service itself.
    Own(Box<[IpAddr]>),
    /// The addresses of the endpoints that are ready.
    OfEndpoints,
    /// None: the service is an alias, which stands in zone data.
    Alias,
}

/// A port of a service or of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortRecord {
    /// The name of the port in lower case; empty if it has none.
    pub name: Box<[u8]>,
    /// The transport protocol.
    pub protocol: Protocol,
    /// The port's number; none where all ports are meant.
    pub number: Option<u16>,
}

impl From<&Port> for PortRecord {
    fn from(port: &Port) -> Self {
        let name = port.name.to_ascii_lowercase().into_bytes().into();
        Self { name, protocol: port.protocol, number: port.number }
    }
}

impl PortRecord {
    /// Whether this is the record of a port.
    fn is_of(&self, port: &Port) -> bool {
        self.name.eq_ignore_ascii_case(port.name.as_bytes())
            && (self.protocol, self.number) == (port.protocol, port.number)
    }

    /// Returns the records of ports: former ones, if they are the same.
    pub(crate) fn all(ports: &[Port], former: Option<&Arc<[Self]>>) -> Arc<[Self]> {
        let is_same = |it: &&Arc<[Self]>| {
            it.len() == ports.len() && it.iter().zip(ports).all(|(it, port)| it.is_of(port))
        };
        let kept = former.filter(is_same).cloned();
        kept.unwrap_or_else(|| ports.iter().map(Self::from).collect())
    }

    /// Whether two labels, with or without an underscore in front, name the port and its protocol.
    fn is_named(&self, [port, protocol]: [&[u8]; 2]) -> bool {
        *self.name == *plain(port) && self.protocol.label() == plain(protocol)
    }
}

/// Returns a label without the underscore in front of it.
fn plain(label: &[u8]) -> &[u8] {
    label.strip_prefix(b"_").unwrap_or(label)
}

impl Protocol {
    /// Returns the label of the protocol, without its underscore.
    #[must_use]
    pub fn label(self) -> &'static [u8] {
        match self {
            Self::Tcp => b"tcp",
            Self::Udp => b"udp",
            Self::Sctp => b"sctp",
        }
    }
}

/// An address of an endpoint that is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointRecord {
    /// The address of the endpoint.
    pub address: IpAddr,
    /// The place and the length of its label among the names of the slice; no octets where the
    /// label is the address.
    label: (u32, u8),
    /// The place and the length of its topology zone among the names of the slice.
    zone: (u32, u8),
}

/// The endpoints of a slice that are ready.
#[derive(Debug, PartialEq, Eq)]
pub struct SliceRecord {
    /// The cluster that the slice comes from; empty for this one.
    pub cluster: Box<[u8]>,
    /// The ports of every endpoint.
    pub ports: Arc<[PortRecord]>,
    /// The endpoints in the order of their addresses, which are repeated only with other labels or
    /// topology zones.
    pub endpoints: Box<[EndpointRecord]>,
    /// Whether any endpoint is called otherwise than by its address.
    has_hostnames: bool,
    /// The labels and topology zones of the endpoints.
    names: Box<[u8]>,
}

impl SliceRecord {
    /// The part of a slice that names need. Endpoints without a host name are called by their pods
    /// if that is asked for. What is as in the former version shares its memory.
    #[must_use]
    pub fn new(slice: &EndpointSlice, by_pod_names: bool, former: Option<&Self>) -> Self {
        let ready = slice.endpoints.iter().filter(|endpoint| endpoint.ready);
        let mut names = Vec::with_capacity(former.map_or(0, |it| it.names.len() + 16));
        let mut endpoints = Vec::with_capacity(ready.clone().count());
        for endpoint in ready {
            let labels = [endpoint.hostname, if by_pod_names { endpoint.pod } else { "" }];
            let label = labels.into_iter().find(|label| is_label(label)).unwrap_or_default();
            let (label, zone) = (place(&mut names, label), place(&mut names, endpoint.zone));
            endpoints.push(EndpointRecord { address: endpoint.address, label, zone });
        }
        let text = |(start, len): (u32, u8)| {
            let start = start as usize;
            names.get(start..start + usize::from(len)).unwrap_or_default()
        };
        let order = |one: &EndpointRecord, other: &EndpointRecord| {
            let texts = |it: &EndpointRecord| (text(it.label), text(it.zone));
            one.address.cmp(&other.address).then_with(|| texts(one).cmp(&texts(other)))
        };
        endpoints.sort_unstable_by(order);
        endpoints.dedup_by(|one, other| order(one, other).is_eq());
        let has_hostnames = endpoints.iter().any(|endpoint| !text(endpoint.label).is_empty());
        Self {
            cluster: slice.source_cluster.to_ascii_lowercase().into_bytes().into(),
            ports: PortRecord::all(&slice.ports, former.map(|it| &it.ports)),
            endpoints: endpoints.into(),
            has_hostnames,
            names: names.into(),
        }
    }

    /// Whether an endpoint has an address.
    pub(crate) fn has_address(&self, address: IpAddr) -> bool {
        self.endpoints.binary_search_by_key(&address, |endpoint| endpoint.address).is_ok()
    }

    /// Returns the endpoints at an address.
    pub(crate) fn endpoints_at(&self, address: IpAddr) -> std::ops::Range<usize> {
        let start = self.endpoints.partition_point(|it| it.address < address);
        let rest = &self.endpoints[start..];
        start..start + rest.iter().take_while(|it| it.address == address).count()
    }

    /// Whether an endpoint has the labels of one of another slice.
    fn is_called_as(&self, own: &EndpointRecord, other: (&Self, &EndpointRecord)) -> bool {
        if self.cluster != other.0.cluster {
            return false;
        }
        match (self.hostname(own), other.0.hostname(other.1)) {
            ([], []) => own.address == other.1.address,
            ([], label) | (label, []) => {
                let address = if label == self.hostname(own) { other.1 } else { own }.address;
                address::from_dashed(label) == Some(address) && is_dashed(label, address)
            }
            (label, other) => label == other,
        }
    }

    /// Returns the octets at a place among the names.
    fn text(&self, (start, len): (u32, u8)) -> &[u8] {
        let start = start as usize;
        self.names.get(start..start + usize::from(len)).unwrap_or_default()
    }

    /// Returns the host name of an endpoint; no octets if it has none.
    #[must_use]
    pub fn hostname(&self, endpoint: &EndpointRecord) -> &[u8] {
        self.text(endpoint.label)
    }

    /// Returns the topology zone of an endpoint; no octets if it has none.
    #[must_use]
    pub fn zone(&self, endpoint: &EndpointRecord) -> &[u8] {
        self.text(endpoint.zone)
    }

    /// Calls a function with the labels of an endpoint in front of those of its service, in wire
    /// form: its own, and that of its cluster in a set of clusters.
    pub fn with_labels<R>(&self, endpoint: &EndpointRecord, call: impl FnOnce(&[u8]) -> R) -> R {
        let mut wire = [0; 2 * (1 + LABEL_BYTES_MAX)];
        let mut len = 0;
        let mut push = |label: &[u8]| {
            let label = &label[..label.len().min(LABEL_BYTES_MAX)];
            wire[len] = label.len() as u8; // at most 63
            wire[len + 1..][..label.len()].copy_from_slice(label);
            len += 1 + label.len();
        };
        self.with_label(endpoint, &mut push);
        if !self.cluster.is_empty() {
            push(&self.cluster);
        }
        call(&wire[..len])
    }

    /// Calls a function with the label of an endpoint.
    pub fn with_label<R>(&self, endpoint: &EndpointRecord, call: impl FnOnce(&[u8]) -> R) -> R {
        match self.hostname(endpoint) {
            [] => {
                let mut label = [0; DASHED_BYTES_MAX];
                let len = to_dashed(endpoint.address, &mut label);
                call(&label[..len])
            }
            hostname => call(hostname),
        }
    }
}

/// Whether a text is these labels with dots between them.
fn is_dotted(labels: &[u8], text: &[u8]) -> bool {
    let mut rest = text;
    for (number, label) in zonda_wire::name::labels(labels).enumerate() {
        if number > 0 {
            let Some(after) = rest.strip_prefix(b".") else { return false };
            rest = after;
        }
        let Some(after) = rest.strip_prefix(label) else { return false };
        rest = after;
    }
    rest.is_empty()
}

/// Whether a text can be a label of a name.
fn is_label(text: &str) -> bool {
    (1..=LABEL_BYTES_MAX).contains(&text.len()) && !text.contains('.')
}

/// Whether a label is that of an address.
fn is_dashed(label: &[u8], address: IpAddr) -> bool {
    let mut dashed = [0; DASHED_BYTES_MAX];
    let len = to_dashed(address, &mut dashed);
    dashed[..len] == *label
}

/// Adds a text in lower case to names, unless it is the last one there; returns its place.
fn place(names: &mut Vec<u8>, text: &str) -> (u32, u8) {
    let text = text.as_bytes();
    let Ok(len) = u8::try_from(text.len()) else { return (0, 0) };
    // Endpoints of a zone follow each other often.
    let last = names.len().checked_sub(text.len()).and_then(|start| names.get(start..));
    if !last.is_some_and(|last| last.eq_ignore_ascii_case(text)) {
        names.extend(text.iter().map(u8::to_ascii_lowercase));
    }
    let start = names.len() - text.len();
    (u32::try_from(start).unwrap_or(u32::MAX), len)
}

/// A slice of a service, and which of its endpoints may repeat what stands before them.
#[derive(Clone, Debug)]
pub struct ServiceSlice {
    /// The slice of endpoints.
    pub slice: Arc<SliceRecord>,
    /// The place of the slice among those of the service.
    number: usize,
    /// The places of endpoints whose addresses stand before them, in their order.
    repeated_addresses: Box<[u32]>,
    /// The places of endpoints whose labels stand before them, in their order.
    repeated_labels: Box<[u32]>,
}

/// A service and its slices.
#[derive(Clone, Debug)]
pub struct ServiceRecord {
    /// The labels of the service and of its namespace, in wire form and lower case.
    pub labels: Arc<[u8]>,
    /// The addresses of the service.
    pub addresses: Addresses,
    /// The ports of the service.
    pub ports: Arc<[PortRecord]>,
    /// The slices of its endpoints.
    pub slices: Box<[ServiceSlice]>,
}

impl ServiceRecord {
    /// A service of which neither addresses nor slices are known.
    #[must_use]
    pub fn unknown(labels: &[u8]) -> Self {
        let (ports, slices) = (Arc::default(), Box::default());
        Self { labels: labels.into(), addresses: Addresses::Unknown, ports, slices }
    }

    /// Whether nothing is known of the service, so that it need not be kept.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.addresses == Addresses::Unknown && self.slices.is_empty()
    }

    /// Whether any endpoint is ready.
    #[must_use]
    pub fn has_endpoints(&self) -> bool {
        self.slices.iter().any(|it| !it.slice.endpoints.is_empty())
    }

    /// The same service with these slices.
    #[must_use]
    pub fn with_slices(&self, slices: Vec<Arc<SliceRecord>>) -> Self {
        let repeats = |slice: &SliceRecord| {
            let pairs = slice.endpoints.windows(2);
            slice.has_hostnames || { pairs }.any(|pair| pair[0].address == pair[1].address)
        };
        let may_repeat = slices.len() > 1 || slices.iter().any(|slice| repeats(slice));
        let (mut addresses, mut labels) = (HashSet::new(), HashSet::new());
        let mut service_slices = Vec::with_capacity(slices.len());
        for (number, slice) in slices.into_iter().enumerate() {
            let (mut repeated_addresses, mut repeated_labels) = (Vec::new(), Vec::new());
            let records = slice.endpoints.iter().enumerate().filter(|_| may_repeat);
            for (place, endpoint) in records {
                let place = place as u32; // the API allows a thousand
                if !addresses.insert(endpoint.address) {
                    repeated_addresses.push(place);
                }
                if !labels.insert(slice.with_labels(endpoint, |labels| Box::<[u8]>::from(labels))) {
                    repeated_labels.push(place);
                }
            }
            let (repeated_addresses, repeated_labels) =
                (repeated_addresses.into(), repeated_labels.into());
            service_slices.push(ServiceSlice {
                slice,
                number,
                repeated_addresses,
                repeated_labels,
            });
        }
        Self {
            labels: Arc::clone(&self.labels),
            addresses: self.addresses.clone(),
            ports: Arc::clone(&self.ports),
            slices: service_slices.into(),
        }
    }
}

/// Which endpoints of a service a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointFilter<'n> {
    /// All endpoints of the service.
    All,
    /// The endpoints with this label, and the address that it is the label of if it is one.
    Label(&'n [u8], Option<IpAddr>),
    /// The endpoints with this label in the cluster of the second one.
    LabelInCluster(&'n [u8], &'n [u8]),
    /// The endpoints in the topology zone of these labels, in wire form.
    Zone(&'n [u8]),
}

impl<'n> EndpointFilter<'n> {
    /// The endpoints with a label.
    #[must_use]
    pub fn of_label(label: &'n [u8]) -> Self {
        let address = address::from_dashed(label).filter(|address| is_dashed(label, *address));
        Self::Label(label, address)
    }
}

/// An endpoint with its slice and its place in that.
type SelectedEndpoint<'n> = (&'n ServiceSlice, u32, &'n EndpointRecord);

/// The part of a service that a name stands for.
#[derive(Clone, Copy, Debug)]
pub struct Selection<'n> {
    /// The service that has the name.
    pub service: &'n ServiceRecord,
    /// The labels of a port and of its protocol, if the name has them.
    pub port: Option<[&'n [u8]; 2]>,
    /// The endpoints that are meant.
    pub endpoints: EndpointFilter<'n>,
}

impl<'n> Selection<'n> {
    /// Whether a port is meant.
    fn has_port(&self, port: &PortRecord) -> bool {
        self.port.is_none_or(|labels| port.is_named(labels))
    }

    /// Returns the addresses of the service itself, if the name has these.
    #[inline]
    #[must_use]
    pub fn own_addresses(&self) -> Option<&'n [IpAddr]> {
        match &self.service.addresses {
            Addresses::Own(addresses) if self.endpoints == EndpointFilter::All => Some(addresses),
            _ => None,
        }
    }

    /// Whether an endpoint is meant.
    fn has_endpoint(&self, slice: &SliceRecord, endpoint: &EndpointRecord) -> bool {
        match self.endpoints {
            EndpointFilter::All => true,
            EndpointFilter::Label(label, address) => match slice.hostname(endpoint) {
                [] => address == Some(endpoint.address),
                hostname => hostname == label,
            },
            EndpointFilter::LabelInCluster(label, cluster) => {
                *slice.cluster == *cluster && slice.with_label(endpoint, |own| own == label)
            }
            EndpointFilter::Zone(labels) => is_dotted(labels, slice.zone(endpoint)),
        }
    }

    /// Whether the slice's ports include one that is meant; a slice without ports has all.
    fn has_slice(&self, slice: &SliceRecord) -> bool {
        match self.port {
            Some(_) => slice.ports.iter().any(|port| self.has_port(port)),
            None => true,
        }
    }

    /// Where in a slice endpoints may be meant.
    fn places(&self, slice: &SliceRecord) -> std::ops::Range<usize> {
        match self.endpoints {
            EndpointFilter::Label(_, address) if !slice.has_hostnames => {
                address.map_or(0..0, |address| slice.endpoints_at(address))
            }
            _ => 0..slice.endpoints.len(),
        }
    }

    /// Returns the endpoints that are meant, each with its slice and its place in that.
    fn each_endpoint(
        self,
    ) -> impl Iterator<Item = (&'n ServiceSlice, u32, &'n EndpointRecord)> + Clone {
        let slices = self.service.slices.iter().filter(move |it| self.has_slice(&it.slice));
        slices.flat_map(move |of_service| {
            let slice = &*of_service.slice;
            let places = self.places(slice);
            let endpoints = places.clone().zip(&slice.endpoints[places]);
            let endpoints = endpoints.filter(move |(_, it)| self.has_endpoint(slice, it));
            endpoints.map(move |(place, it)| (of_service, place as u32, it))
        })
    }

    /// Returns the slices with endpoints that are meant up to one of them, and how many of the
    /// endpoints of each stand before a place in that one.
    fn before(
        self,
        last: &ServiceSlice,
        place: u32,
    ) -> impl Iterator<Item = (&'n SliceRecord, usize)> {
        let number = last.number;
        let slices = self.service.slices.iter().take(number + 1);
        let slices = slices.filter(move |it| self.has_slice(&it.slice));
        slices.map(move |it| {
            let all = it.slice.endpoints.len();
            (&*it.slice, if it.number == number { place as usize } else { all })
        })
    }

    /// Whether the address of an endpoint is that of one before it that is meant too and, if that
    /// is asked for, has the same label.
    fn is_address_repeated(
        self,
        (of, place, endpoint): SelectedEndpoint<'_>,
        with_label: bool,
    ) -> bool {
        of.repeated_addresses.binary_search(&place).is_ok()
            && self.before(of, place).any(|(slice, count)| {
                let places = slice.endpoints_at(endpoint.address);
                let end = places.end.min(count);
                let before = slice.endpoints.get(places.start..end).unwrap_or_default();
                before.iter().any(|it| {
                    self.has_endpoint(slice, it)
                        && (!with_label || slice.is_called_as(it, (&of.slice, endpoint)))
                })
            })
    }

    /// Whether the label of an endpoint and the number of a port are those of one before it that is
    /// meant too.
    fn is_target_repeated(self, (of, place, endpoint): SelectedEndpoint<'_>, number: u16) -> bool {
        let has_number =
            |it: &&PortRecord| self.has_port(it) && it.number.is_some_and(|it| it == number);
        of.repeated_labels.binary_search(&place).is_ok()
            && self.before(of, place).any(|(slice, count)| {
                slice.ports.iter().any(|port| has_number(&port))
                    && slice.endpoints[..count].iter().any(|it| {
                        self.has_endpoint(slice, it)
                            && slice.is_called_as(it, (&of.slice, endpoint))
                    })
            })
    }

    /// Whether the name exists: whether it stands for anything of the service.
    #[must_use]
    pub fn exists(&self) -> bool {
        if self.own_addresses().is_some() {
            return self.port.is_none() || self.service.ports.iter().any(|it| self.has_port(it));
        }
        self.each_endpoint().next().is_some()
    }

    /// Returns the addresses of a family that the endpoints which are meant have, each once; those
    /// of the name unless the service has [its own](Self::own_addresses).
    pub fn endpoint_addresses(self, is_v6: bool) -> impl Iterator<Item = IpAddr> + Clone {
        let meant = self.each_endpoint().filter(move |found| {
            found.0.repeated_addresses.is_empty() || !self.is_address_repeated(*found, false)
        });
        let addresses = meant.map(|(_, _, endpoint)| endpoint.address);
        addresses.filter(move |address| address.is_ipv6() == is_v6)
    }

    /// Calls a function with the labels in front of the service's (none for the service itself), in
    /// wire form, and the number of each port that is meant, each pair once, until the function
    /// returns an error.
    ///
    /// # Errors
    /// That of the function.
    pub fn each_target<E>(
        self,
        mut call: impl FnMut(&[u8], u16) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.own_addresses().is_some() {
            return self.each_number(&self.service.ports, |number| call(&[], number));
        }
        for found in self.each_endpoint() {
            let (of_service, _, endpoint) = found;
            let slice = &*of_service.slice;
            slice.with_labels(endpoint, |labels| {
                self.each_number(&slice.ports, |number| {
                    match self.is_target_repeated(found, number) {
                        true => Ok(()),
                        false => call(labels, number),
                    }
                })
            })?;
        }
        Ok(())
    }

    /// Calls a function with the labels in front of the service's (none for the service itself) and
    /// each address of the targets, until the function returns an error.
    ///
    /// # Errors
    /// That of the function.
    pub fn each_target_address<E>(
        self,
        mut call: impl FnMut(&[u8], IpAddr) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Some(own) = self.own_addresses() {
            return own.iter().try_for_each(|address| call(&[], *address));
        }
        for found in self.each_endpoint() {
            let (of_service, _, endpoint) = found;
            if !self.is_address_repeated(found, true) {
                of_service.slice.with_labels(endpoint, |it| call(it, endpoint.address))?;
            }
        }
        Ok(())
    }

    /// Calls a function with the number of each port that is meant, each once.
    fn each_number<E>(
        self,
        ports: &[PortRecord],
        mut call: impl FnMut(u16) -> Result<(), E>,
    ) -> Result<(), E> {
        for (place, port) in ports.iter().enumerate().filter(|(_, port)| self.has_port(port)) {
            let Some(number) = port.number else { continue };
            let is_repeated = |it: &PortRecord| self.has_port(it) && it.number == port.number;
            if !ports[..place].iter().any(is_repeated) {
                call(number)?;
            }
        }
        Ok(())
    }

    /// Returns the weight that each of the targets has: a hundred is shared by all pairs of an
    /// address and a port, those included that are named twice.
    #[must_use]
    pub fn weight(self) -> u16 {
        let numbered = |ports: &[PortRecord]| {
            ports.iter().filter(|it| self.has_port(it) && it.number.is_some()).count()
        };
        let pairs: usize = match self.own_addresses() {
            Some(own) => own.len() * numbered(&self.service.ports),
            None => self.each_endpoint().map(|(it, ..)| numbered(&it.slice.ports)).sum(),
        };
        u16::try_from(100 / pairs.max(1)).unwrap_or(100).max(1)
    }

    /// Returns the labels of the endpoints at an address, in every slice that has it.
    pub fn slices_at(
        service: &'n ServiceRecord,
        address: IpAddr,
    ) -> impl Iterator<Item = (&'n SliceRecord, &'n EndpointRecord)> {
        service.slices.iter().flat_map(move |it| {
            let endpoints = &it.slice.endpoints[it.slice.endpoints_at(address)];
            endpoints.iter().map(|endpoint| (&*it.slice, endpoint))
        })
    }
}
