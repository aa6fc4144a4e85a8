//! Where queries come from: files, compressed or not.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use zonda_bench::load::{Form, Lines, Queries};
use zonda_testkit::process::Folder;

/// Lines as many a dnsperf user keeps them.
const LINES: &str = "; the usual\nwww.example.com A\nexample.com AAAA\n";

/// Returns what gzip makes of octets.
fn gzip(octets: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(octets).unwrap();
    encoder.finish().unwrap()
}

/// Reads a file that holds these octets.
fn read(path: &Path) -> Result<Queries, String> {
    Queries::read(path, &Form::default()).map_err(|error| error.to_string())
}

#[test]
fn a_compressed_file_is_the_same_queries_whatever_it_is_called() {
    let folder = Folder::new("gzip");
    let plain = read(&folder.write("queries.txt", LINES)).unwrap();
    assert_eq!(plain.count(), 2);
    let packed = gzip(LINES.as_bytes());
    assert_eq!(read(&folder.write("queries.gz", &packed)).unwrap(), plain);
    assert_eq!(read(&folder.write("packed.txt", &packed)).unwrap(), plain);
    let parts = LINES.split_at(20);
    let members = [gzip(parts.0.as_bytes()), gzip(parts.1.as_bytes())].concat();
    assert_eq!(read(&folder.write("members.gz", members)).unwrap(), plain);
}

#[test]
fn mistakes_in_a_file_are_reported_with_their_line() {
    let folder = Folder::new("wrong-queries");
    let complaint = |name, octets: &[u8]| {
        let path = folder.write(name, octets);
        let text = read(&path).unwrap_err();
        fs::remove_file(&path).unwrap();
        text.strip_prefix(&path.display().to_string()).unwrap().to_owned()
    };
    let wrong = gzip(b"a.example A\nb.example\n");
    assert_eq!(complaint("wrong.gz", &wrong), ":2: expected a type after b.example");
    assert_eq!(complaint("empty.gz", &gzip(b"# none\n")), ": holds no query");
    assert_eq!(complaint("empty", b""), ": holds no query");
    let whole = gzip(&LINES.repeat(1000).into_bytes());
    let cut = complaint("cut.gz", &whole[..whole.len() / 2]);
    assert!(cut.starts_with(':') && cut.lines().count() == 1, "{cut}");
    let missing = read(&folder.path().join("missing")).unwrap_err();
    assert!(missing.ends_with("missing: No such file or directory (os error 2)"), "{missing}");
    assert!(read(folder.path()).unwrap_err().contains("Is a directory"));
}

#[test]
fn a_capture_whose_writer_was_killed_loses_its_last_packet_only() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/capture");
    let folder = Folder::new("cut-capture");
    for file in fs::read_dir(corpus).unwrap() {
        let octets = fs::read(file.unwrap().path()).unwrap();
        let path = folder.write("cut.pcap", &octets[..octets.len() - 1]);
        let (queries, left_out) =
            Queries::read_some(&path, &Form::default(), Lines::AllGood).unwrap();
        assert!((1..=2).contains(&queries.count()), "{}", queries.count());
        assert!(left_out.cut_packet.is_some_and(|number| number >= 2), "{left_out:?}");
    }
}

/// Returns a capture of raw IPv4 packets, each a protocol and what it carries.
fn capture_of(packets: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut capture = 0xa1b2_c3d4_u32.to_be_bytes().to_vec();
    capture.extend([0; 16]);
    capture.extend(101_u32.to_be_bytes()); // raw IP
    for (protocol, carried) in packets {
        let len = 20 + carried.len() as u16;
        capture.extend([0; 8]);
        capture.extend([u32::from(len), u32::from(len)].map(u32::to_be_bytes).concat());
        capture.extend([0x45, 0]);
        capture.extend(len.to_be_bytes());
        capture.extend([0, 0, 0, 0, 64, *protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
        capture.extend(carried);
    }
    capture
}

#[test]
fn packets_of_queries_over_tcp_are_counted_as_left_out_of_a_capture() {
    let (udp, tcp) = (17, 6);
    let query = b"\0\x07\x01\0\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01";
    let datagram = [&b"\x30\x39\0\x35\0\x1b\0\0"[..], query].concat();
    // To or from port 53, without options.
    let segment =
        |ports: &[u8; 4], data: &[u8]| [&ports[..], &[0; 8], &[0x50, 0x18], &[0; 6], data].concat();
    let (ask, answer) = (b"\x30\x39\0\x35", b"\0\x35\x30\x39");
    let over_tcp = [&[0, query.len() as u8][..], query].concat();
    let packets = [
        (tcp, segment(ask, b"")), // opens the connection
        (tcp, segment(ask, &over_tcp)),
        (tcp, segment(answer, &over_tcp)),
        (tcp, segment(ask, &over_tcp)),
    ];
    let folder = Folder::new("tcp-capture");
    let read = |packets: &[(u8, Vec<u8>)]| {
        let file = folder.write("some.pcap", capture_of(packets));
        Queries::read_some(&file, &Form::default(), Lines::AllGood)
    };
    let (queries, left_out) = read(&[&packets[..], &[(udp, datagram)]].concat()).unwrap();
    assert_eq!((queries.count(), left_out.tcp_packets), (1, 2));
    let error = read(&packets).unwrap_err().to_string();
    assert!(error.ends_with("its 2 packets to port 53 over TCP are not read"), "{error}");
}
