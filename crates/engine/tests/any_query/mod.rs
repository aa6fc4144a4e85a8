//! What must hold for any octets that are sent as a query.

use arc_swap::ArcSwap;
use std::path::Path;
use std::sync::Arc;
use zonda_engine::code::{HandlerQuery, HandlerReply, Handlers, Stage};
use zonda_engine::counters::Counters;
use zonda_engine::gate::cookie::Secrets;
use zonda_engine::zones::{Source, ZoneEntry, ZoneTable};
use zonda_engine::{Engine, Now, Peer, Settings, Snapshot, Transport};
use zonda_wire::message::Message;
use zonda_wire::{Fault, Name, Query, Section};
use zonda_zone::{HashSeed, build, file};

const SEED: HashSeed = HashSeed(1);
/// The zone has a bit of everything, so that every path can be reached with names of few octets.
const ZONE: &str = "$TTL 60\n@ SOA a a 1 2 3 4 5\n@ NS a\na A 192.0.2.1\na AAAA ::1\nb CNAME a\n\
    c CNAME d\nd CNAME c\n* TXT x\ne NS a.e\na.e A 192.0.2.2\nf DNAME g\ng DNAME f\n*.h CNAME a\n\
    i MX 1 a\ni SRV 1 2 3 a\nj NS a\nj DS 1 13 2 00\n$GENERATE 1-60 k A 192.0.2.$\n\
    a NSEC b A\n@ NSEC a SOA\n";

/// An engine to send queries to.
pub fn engine() -> Engine {
    let apex = Name::root();
    let options = file::Options::default();
    let (records, _) = file::read_text(ZONE.as_bytes(), Path::new("zone"), &apex, &options);
    let source = Source::Data(Arc::new(build(&apex, &records, SEED).expect("the zone is whole")));
    let entry = Arc::new(ZoneEntry::new(apex, source, None, 0));
    let settings = Settings {
        cookies: Some(Secrets { current: [1; 16], accepted: Vec::new() }),
        nsid: Some(b"here".as_slice().into()),
        version: Some("v".into()),
        rotate: true,
        cross_zone: true,
        keepalive: Some(100),
        ..Settings::default()
    };
    let zones = ZoneTable::new(vec![entry], SEED);
    let handlers = Some(Arc::new(Handlers::new(Vec::new(), vec![Arc::new(Reader)], None, SEED)));
    let snapshot = Snapshot { handlers, settings: Arc::new(settings), ..Snapshot::of(zones) };
    Engine::new(Arc::new(ArcSwap::from_pointee(snapshot)), Arc::<Counters>::default())
}

/// Code that reads all of each query and reply, and changes some replies.
struct Reader;

impl Stage for Reader {
    fn before(&self, asked: &HandlerQuery<'_>, _: &mut HandlerReply) {
        assert!(asked.options().map(|(_, data)| data.len()).sum::<usize>() <= 4096);
        assert!(asked.capture("none").is_none());
    }

    fn after(&self, asked: &HandlerQuery<'_>, draft: &mut HandlerReply) {
        assert_eq!(asked.options().count(), 0);
        if draft.records().count() == 2 {
            draft.retain(|section, _, _| section == Section::Answer);
        }
    }
}

/// Sends octets over both transports and looks at the replies.
pub fn check(engine: &mut Engine, octets: &[u8]) {
    let octets = &octets[..octets.len().min(4096)];
    for transport in Transport::ALL {
        let address = ([192, 0, 2, 99], 53).into();
        let peer = Peer::new(address, transport, 0);
        let now = Now::new(7_000_000_000, 7);
        let mut buffer = [0; 65_535];
        buffer[..octets.len()].copy_from_slice(octets);
        let len = engine.answer(now, &peer, &mut buffer, octets.len()).reply_bytes();
        let query = Query::parse(octets);
        if matches!(query, Err((_, Fault::NotAQuery))) {
            assert_eq!(len, 0, "silence is due");
            continue;
        }
        let reply = Message::parse(&buffer[..len]).expect("a reply is a message");
        assert_eq!(buffer[..2], octets[..2], "the id is kept");
        assert!(reply.has(0x8000), "it is a response");
        let (Ok(query) | Err((query, _))) = query;
        let limit = match (transport, query.edns) {
            (Transport::Udp, None) => 512,
            (Transport::Udp, Some(edns)) => usize::from(edns.udp_bytes.clamp(512, 1232)),
            _ => 65_535,
        };
        assert!(len <= limit, "{len} octets for a client that takes {limit}");
        assert_eq!(reply.opt.is_some(), query.edns.is_some(), "OPT is echoed if it was sent");
        let question = &octets[12..query.question_end()];
        assert_eq!(&buffer[12..query.question_end()], question, "the question is kept");
    }
}
