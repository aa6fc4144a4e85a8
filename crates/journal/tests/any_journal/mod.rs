//! What must hold for any octets that are read as a journal; shared with the fuzz target.

use std::io;
use zonda_journal::scan::{Extent, Fault, Source, read};

/// Reads octets as a journal, and as the records of one.
///
/// # Panics
/// When something does not hold.
pub fn check(octets: &[u8]) {
    check_file(octets);
    check_file(&file(octets));
}

/// What is read whole lies within the octets, in order, and is read again from that part alone.
fn check_file(octets: &[u8]) {
    let mut records = Vec::new();
    match records_of(octets, &mut records) {
        Ok(extent) => {
            let torn = extent.torn.map_or(0, |torn| torn.octets);
            let last = octets.iter().rposition(|octet| *octet != 0);
            let end = extent.octets.max(last.map_or(0, |last| last as u64 + 1));
            assert_eq!(extent.octets + torn, end, "behind it there are zeros");
            let mut again = Vec::new();
            let whole = records_of(&octets[..extent.octets as usize], &mut again);
            assert_eq!(whole.ok(), Some(Extent { torn: None, ..extent }));
            assert_eq!(again, records);
        }
        Err(Fault::Damaged { offset, .. }) => assert!(offset <= octets.len() as u64),
        Err(Fault::OtherFormat) => {}
        Err(Fault::Io(error)) => panic!("memory can be read: {error}"),
    }
    // The same octets in small pieces are read alike.
    let mut pieces = Vec::new();
    let _ = read(&Pieces(octets), |place| {
        pieces.push((place.offset, place.octets));
        Ok(())
    });
    assert_eq!(pieces, records);
}

fn records_of(octets: &[u8], records: &mut Vec<(u64, u64)>) -> Result<Extent, Fault> {
    read(octets, |place| {
        let end = records.last().map_or(24, |(offset, octets)| offset + octets);
        assert!(place.offset >= end, "records do not overlap");
        records.push((place.offset, place.octets));
        Ok(())
    })
}

/// Octets that are read seven at a time at most.
struct Pieces<'o>(&'o [u8]);

impl Source for Pieces<'_> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let max = buffer.len().min(7);
        self.0.read_at(&mut buffer[..max], offset)
    }
}

/// Makes a journal whose records have right checksums around the octets: for each record eleven
/// octets of numbers, then as many octets of content as they say.
pub fn file(mut octets: &[u8]) -> Vec<u8> {
    const ID: u64 = 7;
    let mut file = [&b"zondajr1"[..], &ID.to_be_bytes()].concat();
    let head = checksum(0, &file);
    file.extend_from_slice(&head.to_be_bytes());
    while let Some((numbers, rest)) = octets.split_first_chunk::<11>() {
        let payload = usize::from(numbers[10]);
        let content = &rest[..rest.len().min(usize::from(numbers[1]) + payload)];
        octets = &rest[content.len()..];
        let offset = file.len() as u64;
        let mut header = b"\xe5ZJ\n".to_vec();
        header.extend_from_slice(&[numbers[0], numbers[1], 0, 0, numbers[2], numbers[3]]);
        header.extend_from_slice(&[0, 0, numbers[4], numbers[5], 0, 0, numbers[6], numbers[7]]);
        header.extend_from_slice(&[0, 0, 0, payload as u8]);
        let sum = checksum(ID, &[&offset.to_be_bytes()[..], &header].concat());
        file.extend_from_slice(&header);
        file.extend_from_slice(&sum.to_be_bytes());
        file.extend_from_slice(content);
        file.extend_from_slice(&checksum(sum, content).to_be_bytes());
    }
    file.extend_from_slice(octets);
    file
}

/// The checksum of the format, octet by octet.
fn checksum(seed: u64, octets: &[u8]) -> u64 {
    let step = |sum: u64, word: u64| {
        let product = (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        product ^ product >> 32
    };
    let mut sum = step(0x9e37_79b9_7f4a_7c15, seed);
    let mut words = octets.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        (chunk.len(), u64::from_be_bytes(word))
    });
    let mut last = 0;
    for (len, word) in &mut words {
        if len == 8 { sum = step(sum, word) } else { last = word }
    }
    step(step(sum, last), octets.len() as u64)
}
