//! Writes databases in MaxMind's format, for tests and measurements: none of full size may be
//! passed on.

use std::net::IpAddr;

use zonda_geo::Prefix;

/// Data of a record.
pub enum Data<'a> {
    /// A map in the order that is given.
    Map(Vec<(&'a str, Data<'a>)>),
    /// A list of data.
    List(Vec<Data<'a>>),
    /// A text in UTF-8.
    Text(&'a str),
    /// A number with a fraction.
    Double(f64),
    /// A whole number of 16 bits.
    U16(u16),
    /// A whole number of 32 bits.
    U32(u32),
    /// A whole number of 64 bits.
    U64(u64),
}

/// A record that leads nowhere; no record leads to the root, which is node 0.
const EMPTY: u32 = 0;
/// The mark of a record that leads to data; the rest is the place of the data.
const DATA: u32 = 1 << 31;

/// A database under construction.
pub struct Writer {
    /// What the file says it is.
    kind: String,
    /// Family of the tree: 4 or 6.
    ip_version: u16,
    /// Bits of a record: 24, 28 or 32.
    record_bits: u16,
    /// The records of each node.
    nodes: Vec<[u32; 2]>,
    /// The section of data.
    data: Vec<u8>,
}

impl Writer {
    /// Begins a database without a network.
    pub fn new(kind: &str, ip_version: u16, record_bits: u16) -> Self {
        let nodes = vec![[EMPTY; 2]];
        Self { kind: kind.to_owned(), ip_version, record_bits, nodes, data: Vec::new() }
    }

    /// Adds a record and returns its place.
    pub fn record(&mut self, data: &Data<'_>) -> u32 {
        let place = self.data.len() as u32;
        encode(data, &mut self.data);
        place
    }

    /// Gives a network a record. Of networks within each other, the wider one has to come first.
    pub fn insert(&mut self, network: Prefix, place: u32) {
        let (number, bits, skipped) = match network.address() {
            IpAddr::V4(v4) if self.ip_version == 6 => (u128::from(u32::from(v4)), 128, 96),
            IpAddr::V4(v4) => (u128::from(u32::from(v4)), 32, 0),
            IpAddr::V6(v6) => (u128::from(v6), 128, 0),
        };
        let bit = |depth: u8| (number >> (bits - 1 - depth) & 1) as usize;
        let length = network.length() + skipped;
        let Some(last) = length.checked_sub(1) else {
            self.nodes[0] = [DATA | place; 2];
            return;
        };
        let mut node = 0;
        for depth in 0..last {
            let record = self.nodes[node][bit(depth)];
            node = if record == EMPTY || record & DATA != 0 {
                self.nodes.push([record; 2]);
                let child = self.nodes.len() - 1;
                self.nodes[node][bit(depth)] = child as u32;
                child
            } else {
                record as usize
            };
        }
        self.nodes[node][bit(last)] = DATA | place;
    }

    /// Lets the root of IPv4 be found below a network of IPv6 too, as MaxMind's 2002::/16 is.
    pub fn alias(&mut self, network: Prefix) {
        let v4_root = (0..96).fold(0, |node, _| self.nodes[node as usize][0]);
        self.insert(network, 0);
        let IpAddr::V6(v6) = network.address() else { return };
        let bit = |depth: u8| (u128::from(v6) >> (127 - depth) & 1) as usize;
        let last = network.length() - 1;
        let node = (0..last).fold(0, |node, depth| self.nodes[node as usize][bit(depth)]);
        self.nodes[node as usize][bit(last)] = v4_root;
    }

    /// Returns the octets of the file.
    pub fn finish(self) -> Vec<u8> {
        let count = self.nodes.len() as u32;
        let mut file = Vec::with_capacity(self.nodes.len() * 8 + self.data.len() + 512);
        let final_record = |record: u32| match record {
            EMPTY => count,
            record if record & DATA != 0 => count + 16 + (record & !DATA),
            node => node,
        };
        for node in &self.nodes {
            let [left, right] = node.map(final_record);
            let (left_octets, right_octets) = (left.to_be_bytes(), right.to_be_bytes());
            match self.record_bits {
                24 => file.extend([&left_octets[1..], &right_octets[1..]].concat()),
                28 => {
                    let between = left_octets[0] << 4 | right_octets[0] & 0x0f;
                    file.extend([&left_octets[1..], &[between], &right_octets[1..]].concat());
                }
                _ => file.extend([left_octets, right_octets].concat()),
            }
        }
        file.extend([0; 16]);
        file.extend(&self.data);
        file.extend(b"\xab\xcd\xefMaxMind.com");
        let metadata = Data::Map(vec![
            ("binary_format_major_version", Data::U16(2)),
            ("binary_format_minor_version", Data::U16(0)),
            ("build_epoch", Data::U64(1_700_000_000)),
            ("database_type", Data::Text(&self.kind)),
            ("description", Data::Map(vec![("en", Data::Text("made for a test"))])),
            ("ip_version", Data::U16(self.ip_version)),
            ("languages", Data::List(vec![Data::Text("en")])),
            ("node_count", Data::U32(count)),
            ("record_size", Data::U16(self.record_bits)),
        ]);
        encode(&metadata, &mut file);
        file
    }
}

/// Appends data as the format has it.
fn encode(data: &Data<'_>, out: &mut Vec<u8>) {
    let whole = |octets: &[u8], kind: u8, out: &mut Vec<u8>| {
        let zeros = octets.iter().take_while(|octet| **octet == 0).count();
        control(kind, octets.len() - zeros, out);
        out.extend(&octets[zeros..]);
    };
    match data {
        Data::Text(text) => {
            control(2, text.len(), out);
            out.extend(text.as_bytes());
        }
        Data::Double(number) => {
            control(3, 8, out);
            out.extend(number.to_be_bytes());
        }
        Data::U16(number) => whole(&number.to_be_bytes(), 5, out),
        Data::U32(number) => whole(&number.to_be_bytes(), 6, out),
        Data::U64(number) => whole(&number.to_be_bytes(), 9, out),
        Data::Map(entries) => {
            control(7, entries.len(), out);
            for (key, value) in entries {
                encode(&Data::Text(key), out);
                encode(value, out);
            }
        }
        Data::List(list) => {
            control(11, list.len(), out);
            list.iter().for_each(|value| encode(value, out));
        }
    }
}

/// Appends the type and size of data; the sizes of tests stay below 285.
fn control(kind: u8, size: usize, out: &mut Vec<u8>) {
    let short = size.min(29) as u8;
    if kind < 8 {
        out.push(kind << 5 | short);
    } else {
        out.extend([short, kind - 7]);
    }
    if size >= 29 {
        out.push(u8::try_from(size - 29).expect("a size below 285"));
    }
}
