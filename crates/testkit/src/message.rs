//! A reply as a test sees it: read strictly, without compression, printed as dig prints.

use std::fmt;

use crate::rdata::{self, RecordData, type_text};

/// What is wrong with the bytes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed message: {}", self.0)
    }
}

impl std::error::Error for Malformed {}

/// One record of the answer, authority or additional section.
#[derive(Clone, Debug)]
pub struct Record {
    /// Wire form, in lower case.
    pub owner: Vec<u8>,
    /// Number of the type.
    pub record_type: u16,
    /// Number of the class.
    pub class: u16,
    /// Time to live, seconds.
    pub ttl: u32,
    /// The data, without compression.
    pub data: RecordData,
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = if self.class == 1 { "IN".to_owned() } else { format!("CLASS{}", self.class) };
        let (owner, ttl) = (name_text(&self.owner), self.ttl);
        write!(f, "{owner} {ttl} {class} {} {}", type_text(self.record_type), self.data.text)
    }
}

/// The OPT record (rfc6891#6.1.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edns {
    /// The largest message that the sender takes over UDP.
    pub udp_size: u16,
    /// Upper eight bits of the response code.
    pub rcode_high: u8,
    /// EDNS version; only 0 exists.
    pub version: u8,
    /// The DO bit.
    pub dnssec_ok: bool,
    /// Options as (code, data).
    pub options: Vec<(u16, Vec<u8>)>,
}

/// A whole reply.
#[derive(Clone, Debug)]
pub struct Message {
    /// The header's second to fourth byte pair: id, flags with opcode and rcode.
    pub id: u16,
    /// Flags, opcode and the lower response code as they stand in the header.
    pub flags: u16,
    /// Name in wire form with its case, type, class.
    pub questions: Vec<(Vec<u8>, u16, u16)>,
    /// Records of the answer section.
    pub answer: Vec<Record>,
    /// Records of the authority section.
    pub authority: Vec<Record>,
    /// Additional section without OPT.
    pub additional: Vec<Record>,
    /// The OPT record, if there is one.
    pub edns: Option<Edns>,
    /// Bytes on the wire.
    pub length: usize,
}

/// Flags with the names that dig gives them.
const FLAGS: &[(u16, &str)] = &[
    (0x8000, "qr"),
    (0x0400, "aa"),
    (0x0200, "tc"),
    (0x0100, "rd"),
    (0x0080, "ra"),
    (0x0020, "ad"),
    (0x0010, "cd"),
];

impl Message {
    /// Reads a message and insists that it ends where its last record ends.
    ///
    /// # Errors
    /// When the bytes are no message.
    pub fn parse(message: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader { message, position: 0 };
        let [id, flags] = [reader.u16()?, reader.u16()?];
        let counts = [reader.u16()?, reader.u16()?, reader.u16()?, reader.u16()?];
        let question = |_| Ok((reader.name()?, reader.u16()?, reader.u16()?));
        let questions = (0..counts[0]).map(question).collect::<Result<_, _>>()?;
        let mut edns = None;
        let mut section = |count| {
            let records = (0..count).map(|_| reader.record(&mut edns));
            records.filter_map(Result::transpose).collect::<Result<Vec<_>, _>>()
        };
        let [answer, authority, additional] =
            [section(counts[1])?, section(counts[2])?, section(counts[3])?];
        if reader.position != message.len() {
            return Err(Malformed("bytes after the last record"));
        }
        let length = message.len();
        Ok(Self { id, flags, questions, answer, authority, additional, edns, length })
    }

    /// Returns the response code with the upper bits that OPT carries.
    pub fn rcode(&self) -> u16 {
        let high = self.edns.as_ref().map_or(0, |edns| u16::from(edns.rcode_high));
        high << 4 | self.flags & 0xf
    }

    /// Returns the response code as text.
    pub fn rcode_text(&self) -> String {
        let names = ["NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED", "YXDOMAIN"];
        let rcode = self.rcode();
        names.get(usize::from(rcode)).map_or_else(|| format!("RCODE{rcode}"), |n| (*n).to_owned())
    }

    /// Whether the reply was cut off.
    pub fn truncated(&self) -> bool {
        self.flags & 0x0200 != 0
    }

    /// Returns the flags that are set, as dig lists them.
    pub fn flags_text(&self) -> String {
        let set = FLAGS.iter().filter(|(bit, _)| self.flags & bit != 0);
        set.map(|(_, name)| *name).collect::<Vec<_>>().join(" ")
    }

    /// Returns the OPT record in one line, or nothing.
    pub fn edns_text(&self) -> String {
        let Some(edns) = &self.edns else { return String::new() };
        let flags = if edns.dnssec_ok { " do" } else { "" };
        let codes: Vec<String> = edns.options.iter().map(|(code, _)| code.to_string()).collect();
        let size = edns.udp_size;
        format!("version: {}, flags:{flags}; udp: {size}; options: {codes:?}", edns.version)
    }

    /// Returns the question section, one line a question, case kept.
    pub fn question_text(&self) -> String {
        let line = |(name, record_type, class): &(Vec<u8>, u16, u16)| {
            format!("{} CLASS{class} {}\n", name_text(name), type_text(*record_type))
        };
        self.questions.iter().map(line).collect()
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, ";; opcode: {}, status: {}", self.flags >> 11 & 0xf, self.rcode_text())?;
        writeln!(f, ";; flags: {}", self.flags_text())?;
        if self.edns.is_some() {
            writeln!(f, ";; EDNS: {}", self.edns_text())?;
        }
        write!(f, ";; QUESTION\n{}", self.question_text())?;
        let sections = [
            ("ANSWER", &self.answer),
            ("AUTHORITY", &self.authority),
            ("ADDITIONAL", &self.additional),
        ];
        for (title, records) in sections.iter().filter(|(_, records)| !records.is_empty()) {
            writeln!(f, ";; {title}")?;
            let mut lines: Vec<String> = records.iter().map(ToString::to_string).collect();
            lines.sort();
            for line in lines {
                writeln!(f, "{line}")?;
            }
        }
        Ok(())
    }
}

/// Returns a name in wire form as text, with special bytes escaped (rfc1035#5.1).
pub fn name_text(name: &[u8]) -> String {
    let mut text = String::new();
    let mut rest = name;
    while let [count @ 1..=63, tail @ ..] = rest {
        let (label, tail) = tail.split_at(usize::from(*count).min(tail.len()));
        for byte in label {
            match byte {
                b'.' | b'\\' | b'"' | b';' | b'(' | b')' | b'@' | b'$' => {
                    text.extend(['\\', char::from(*byte)]);
                }
                b'!'..=b'~' => text.push(char::from(*byte)),
                _ => text.push_str(&format!("\\{byte:03}")),
            }
        }
        text.push('.');
        rest = tail;
    }
    if text.is_empty() { ".".to_owned() } else { text }
}

/// Reads a message from front to back.
pub(crate) struct Reader<'a> {
    pub(crate) message: &'a [u8],
    pub(crate) position: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let end = self.position + count;
        let bytes = self.message.get(self.position..end).ok_or(Malformed("ends early"))?;
        self.position = end;
        Ok(bytes)
    }

    pub(crate) fn peek(&self) -> Result<u8, Malformed> {
        self.message.get(self.position).copied().ok_or(Malformed("ends early"))
    }

    fn u16(&mut self) -> Result<u16, Malformed> {
        let bytes = self.take(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from(self.u16()?) << 16 | u32::from(self.u16()?))
    }

    /// Returns a name in wire form, pointers followed; each must point backwards (rfc1035#4.1.4).
    pub(crate) fn name(&mut self) -> Result<Vec<u8>, Malformed> {
        let mut name = Vec::new();
        let mut behind = None;
        loop {
            let start = self.position;
            let count = self.take(1)?[0];
            match count {
                0 => break,
                1..=63 => {
                    name.push(count);
                    name.extend_from_slice(self.take(usize::from(count))?);
                }
                0xc0.. => {
                    let target = usize::from(count & 0x3f) << 8 | usize::from(self.take(1)?[0]);
                    if target >= start {
                        return Err(Malformed("a pointer that leads forwards"));
                    }
                    behind.get_or_insert(self.position);
                    self.position = target;
                }
                _ => return Err(Malformed("a label of an unknown kind")),
            }
            if name.len() > 254 {
                return Err(Malformed("a name of more than 255 bytes"));
            }
        }
        name.push(0);
        self.position = behind.unwrap_or(self.position);
        Ok(name)
    }

    /// Returns a record; OPT is put aside into `edns` and gives none.
    fn record(&mut self, edns: &mut Option<Edns>) -> Result<Option<Record>, Malformed> {
        let owner = self.name()?.to_ascii_lowercase();
        let (record_type, class, ttl) = (self.u16()?, self.u16()?, self.u32()?);
        let length = usize::from(self.u16()?);
        if record_type != 41 {
            let data = rdata::read(self, record_type, length)?;
            return Ok(Some(Record { owner, record_type, class, ttl, data }));
        }
        let end = self.position + length;
        let [rcode_high, version, flags, _] = ttl.to_be_bytes();
        let mut options = Vec::new();
        while self.position < end {
            let (code, count) = (self.u16()?, self.u16()?);
            options.push((code, self.take(usize::from(count))?.to_vec()));
        }
        let dnssec_ok = flags & 0x80 != 0;
        let opt = Edns { udp_size: class, rcode_high, version, dnssec_ok, options };
        match edns.replace(opt) {
            None if self.position == end && owner == [0] => Ok(None),
            _ => Err(Malformed("an OPT record that is not alone, not at the root, or too long")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Header, the question `A.example. A`, one answer that points to it, and OPT with a cookie.
    const REPLY: &[u8] = b"\x12\x34\x84\x00\x00\x01\x00\x01\x00\x00\x00\x01\
        \x01A\x07example\x00\x00\x01\x00\x01\
        \xc0\x0c\x00\x01\x00\x01\x00\x00\x0e\x10\x00\x04\xc0\x00\x02\x01\
        \x00\x00\x29\x04\xd0\x00\x00\x80\x00\x00\x06\x00\x0a\x00\x02\xab\xcd";

    #[test]
    fn a_reply_is_printed_as_dig_prints_it() {
        let text = Message::parse(REPLY).unwrap().to_string();
        let expected = ";; opcode: 0, status: NOERROR\n\
            ;; flags: qr aa\n\
            ;; EDNS: version: 0, flags: do; udp: 1232; options: [\"10\"]\n\
            ;; QUESTION\nA.example. CLASS1 A\n\
            ;; ANSWER\na.example. 3600 IN A 192.0.2.1\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn every_prefix_of_a_reply_is_malformed() {
        for length in 0..REPLY.len() {
            assert!(Message::parse(&REPLY[..length]).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn a_pointer_to_itself_is_malformed() {
        let message = b"\x00\x00\x80\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x0c\x00\x01\x00\x01";
        assert!(Message::parse(message).is_err());
    }
}
