//! Replies that depend on the client's network: the server's caches and the caches of resolvers
//! give each client what the code would say for it (rfc7871).
#![allow(clippy::unwrap_used)]

use arc_swap::ArcSwap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use zonda_balance::geography::{Geography, Site};
use zonda_balance::{
    Answers, Filter, MapSource, Member, MemberState, Order, Pool, Records, SiteMap, WhenAllDown,
};
use zonda_engine::access::{Access, AccessList, AccessRule, Network};
use zonda_engine::code::{
    Elsewhere, Handler, HandlerQuery, HandlerReply, Handlers, History, Route, Stage, Vary,
};
use zonda_engine::steering::{SteeredNames, SteeredSet, Steering};
use zonda_engine::zones::{Source, ZoneEntry, ZoneTable};
use zonda_engine::{
    AnswerBelow, Deferral, DeferredQuery, Engine, HandlerOutcome, Now, Outcome, Peer, Resumption,
    Settings, Snapshot, To, Transport,
};
use zonda_geo::SiteId;
use zonda_wire::message::Message;
use zonda_wire::{ClientSubnet, Name, Query, Rcode, Section, Type};
use zonda_zone::{HashSeed, build, file};

const SEED: HashSeed = HashSeed(1);
const NOW: Now = Now::new(1, 1);
/// Code of the CLIENT-SUBNET option.
const CLIENT_SUBNET: u16 = 8;

/// Numbers that are the same in each run (SplitMix64).
struct Random(u64);

impl Random {
    /// A number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0) % end
    }

    /// One of several.
    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// The first bits of an address: its family, how many, and what they are.
fn network(address: IpAddr, bits: u8) -> (u8, u8, u128) {
    let (family, number) = match address {
        IpAddr::V4(address) => (4, u128::from(address.to_bits()) << 96),
        IpAddr::V6(address) => (6, address.to_bits()),
    };
    (family, bits, number & u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0))
}

/// A division of all addresses into regions, none of which overlaps another: what is said for a
/// network, and of how many bits of it that depends, given how many are known.
fn region(address: IpAddr, known: u8) -> (String, u8) {
    let mut depth = if address.is_ipv4() { 8 } else { 24 };
    while depth <= known {
        let (family, _, bits) = network(address, depth);
        let place =
            mixed(bits as u64 ^ (bits >> 64) as u64 ^ u64::from(depth) << 8 ^ u64::from(family));
        if place.is_multiple_of(3) {
            return (format!("{}/{depth} whole", bits >> 96), depth);
        }
        depth += 4;
    }
    // Too little is known to find the region: more bits would do.
    let (_, _, bits) = network(address, known);
    (format!("{}/{known} part", bits >> 64), known + 4)
}

/// A client as its query shows it: the address it comes from, and the network it tells.
#[derive(Clone, Copy, Debug)]
struct Client {
    address: IpAddr,
    told: Option<(IpAddr, u8)>,
}

/// A few addresses that share first bits of all lengths.
fn address(random: &mut Random) -> IpAddr {
    let low = random.below(1 << 8) as u128;
    match random.below(3) {
        0 => {
            let bits = 0x2001_0db8_u128 << 96 | (low & 31) << 91 | (low >> 5) << 70 | low & 3;
            Ipv6Addr::from_bits(bits).into()
        }
        _ => {
            let bits = 10 << 24 | (low & 7) << 19 | (low >> 3 & 7) << 12 | (low >> 6) << 7;
            Ipv4Addr::from_bits(bits as u32).into()
        }
    }
}

impl Client {
    fn random(random: &mut Random) -> Self {
        let own = [
            Ipv4Addr::new(192, 0, 2, random.below(3) as u8).into(),
            Ipv4Addr::new(198, 51, 100, 53).into(),
            "2001:db8:f::53".parse().unwrap(),
            address(random),
        ];
        let own = random.one_of(&own);
        let told = (random.below(5) > 0).then(|| {
            let told = address(random);
            let lengths: &[u8] = match told {
                IpAddr::V4(_) => &[0, 8, 11, 16, 20, 24, 24, 24, 32],
                IpAddr::V6(_) => &[0, 32, 36, 48, 56, 56, 64, 128],
            };
            (told, random.one_of(lengths))
        });
        Self { address: own, told }
    }

    /// The data of the option that tells the network, with a scope.
    fn option(&self, scope: u8) -> Option<Vec<u8>> {
        let (address, bits) = self.told?;
        let (family, _, number) = network(address, bits);
        let octets = &number.to_be_bytes()[..usize::from(bits.div_ceil(8))];
        Some([&[0, if family == 4 { 1 } else { 2 }, bits, scope], octets].concat())
    }

    /// The octets of a query for TXT.
    fn query(&self, name: &str) -> Vec<u8> {
        let name: Name = name.parse().unwrap();
        let header = [7_u16, 0x0100, 1, 0, 0, 1].map(u16::to_be_bytes).concat();
        let option = self.option(0).map_or(Vec::new(), |data| {
            [&CLIENT_SUBNET.to_be_bytes()[..], &(data.len() as u16).to_be_bytes(), &data].concat()
        });
        let opt = [&[0, 0, 41, 4, 208, 0, 0, 0, 0, 0, option.len() as u8], &option[..]].concat();
        [&header, name.as_wire(), &Type::TXT.0.to_be_bytes(), &[0, 1], &opt].concat()
    }
}

/// A reply: the text of its answer, and the data of its CLIENT-SUBNET option.
type TextAndOption = (Option<String>, Option<Vec<u8>>);

/// Asks, and has `code` answer where the query is deferred to code elsewhere.
fn ask(
    engine: &mut Engine,
    (client, name): (Client, &str),
    code: impl Fn(Option<ClientSubnet>, IpAddr) -> HandlerReply,
) -> TextAndOption {
    let query = client.query(name);
    let mut buffer = vec![0; 4096];
    buffer[..query.len()].copy_from_slice(&query);
    let address = (client.address, 5300).into();
    let peer = Peer::new(address, Transport::Udp, 0);
    let outcome = match engine.answer(NOW, &peer, &mut buffer, query.len()) {
        Outcome::Deferred(deferral) => {
            let reply = code(deferral.query.client_subnet(&query), client.address);
            let (peer, history, len) = (&peer, &deferral.history, query.len());
            let waiting = DeferredQuery { query: None, peer, history, buffer: &mut buffer, len };
            engine.resume(NOW, waiting, Resumption::Code(HandlerOutcome::Reply(&reply)))
        }
        outcome => outcome,
    };
    read(outcome, &buffer)
}

fn read(outcome: Outcome, buffer: &[u8]) -> TextAndOption {
    let Outcome::Reply(len) = outcome else { panic!("{outcome:?}") };
    let reply = Message::parse(&buffer[..len]).unwrap();
    let text = reply.section(Section::Answer).last();
    let text = text.map(|record| String::from_utf8(record.rdata[1..].to_vec()).unwrap());
    let options = reply.opt.unwrap().options;
    (text, options.into_iter().find(|(code, _)| *code == CLIENT_SUBNET).map(|(_, data)| data))
}

fn engine(
    routes: Vec<Route<Handler>>,
    middleware: Vec<Arc<dyn Stage>>,
    settings: Settings,
) -> Engine {
    let apex: Name = "example".parse().unwrap();
    let text = "$TTL 60\n@ SOA a a 1 2 3 4 5\n@ NS a\ntext TXT zone\nalias CNAME text\n";
    let options = file::Options::default();
    let (records, _) = file::read_text(text.as_bytes(), Path::new("zone"), &apex, &options);
    let source = Source::Data(Arc::new(build(&apex, &records, SEED).unwrap()));
    let zones = ZoneTable::new(vec![Arc::new(ZoneEntry::new(apex, source, None, 0))], SEED);
    let handlers = Some(Arc::new(Handlers::new(routes, middleware, None, SEED)));
    let snapshot = Snapshot { handlers, settings: Arc::new(settings), ..Snapshot::of(zones) };
    Engine::new(Arc::new(ArcSwap::from_pointee(snapshot)), Arc::default())
}

/// A pool whose members answer with these TXT records, or have the pool of a number answer; `alias`
/// is the target of the CNAME records that it has instead.
fn pool(order: Order, options: &[Result<&str, u32>], alias: bool) -> Pool {
    let rtype = if alias { Type::CNAME } else { Type::TXT };
    let rdata = |text: &str| match alias {
        true => text.parse::<Name>().unwrap().as_wire().into(),
        false => [&[text.len() as u8], text.as_bytes()].concat().into_boxed_slice(),
    };
    let member = |(number, option): (usize, &Result<&str, u32>)| Member {
        identity: number as u64 + 1,
        weight: 1,
        priority: 1 + number as u32 % 2,
        pool: option.err(),
        site: None,
    };
    let rdatas = options.iter().map(|option| option.ok().map(rdata)).collect();
    Pool {
        members: options.iter().enumerate().map(member).collect(),
        filters: Vec::new(),
        order,
        answers: Answers::Some(1),
        when_all_down: WhenAllDown::ServFail,
        records: vec![Records { rtype, rdatas }],
    }
}

/// The sites that clients prefer: those of their networks, which lie in one another, and the
/// default one.
fn sites() -> Filter {
    let site = |number: u16| Site { name: format!("s{number}").into(), ..Site::default() };
    let networks = [
        ("10.0.0.0/9", 0),
        ("10.8.0.0/13", 3),
        ("10.32.0.0/11", 1),
        ("10.33.64.0/19", 2),
        ("10.33.64.128/25", 0),
        ("192.0.2.1/32", 3),
        ("2001:db8::/36", 1),
        ("2001:db8:2000::/35", 2),
        ("2001:db8:3000:40::/58", 0),
    ];
    let network = |(text, site): &(&str, u32)| (text.parse().unwrap(), SiteId(*site));
    let geography = Arc::new(Geography {
        sites: (0..4).map(site).collect(),
        networks: networks.iter().map(network).collect(),
        default_site: Some(2),
        ..Geography::default()
    });
    let (sites, [by_place, by_distance, by_latency]) = ((0..4).collect(), [true, false, false]);
    let source = MapSource { geography, sites, by_place, by_distance, by_latency };
    Filter::Sites(Arc::new(SiteMap::compile(source).unwrap()))
}

/// A pool whose members are at the sites in turn, and pass these filters.
fn pool_by_place(order: Order, options: &[Result<&str, u32>], filters: &[Filter]) -> Pool {
    let mut pool = pool(order, options, false);
    pool.filters = filters.to_vec();
    for (number, member) in pool.members.iter_mut().enumerate() {
        member.site = Some(number as u16 % 4);
    }
    pool
}

/// The names of [`steered`], but for the last one of TXT records of the zone.
const STEERED: [&str; 9] = [
    "coarse.example",
    "fine.example",
    "tree.example",
    "cdn.example",
    "place.example",
    "first.example",
    "later.example",
    "forest.example",
    "alias.example",
];

/// A snapshot with names that are steered by the hash of the client's network or by its place,
/// straight, by way of other pools, and by aliases. Which members are up depends on a number; all
/// are with 0.
fn steered_with(states: u64) -> Snapshot {
    let hash = |v4, v6| Order::HashClient { v4, v6 };
    let all = ["p", "q", "r", "s", "t", "u", "v", "w"].map(Ok);
    let pools = [
        pool(hash(12, 40), &[Ok("a"), Ok("b"), Ok("c"), Ok("d")], false),
        pool(hash(20, 52), &[Ok("e"), Ok("f"), Ok("g")], false),
        pool(hash(16, 36), &[Err(0), Err(1), Ok("h"), Err(9)], false),
        pool(hash(14, 32), &[Ok("fine.example"), Ok("zone.example"), Ok("tree.example")], true),
        pool_by_place(hash(18, 44), &all, &[sites()]),
        pool_by_place(hash(10, 34), &all, &[sites(), Filter::Failover]),
        pool_by_place(Order::HashName, &all, &[Filter::Failover, sites()]),
        pool_by_place(Order::AsConfigured, &[Err(0), Err(4), Ok("x"), Err(2)], &[sites()]),
        pool(hash(24, 56), &[Err(3), Err(3)], false),
        pool(Order::AsConfigured, &[Ok("k")], false),
    ];
    let plan = |(number, pool): (usize, &Pool)| {
        let is_up = |member: usize| {
            let chance = mixed(states ^ (number * 64 + member) as u64) % 3;
            states == 0 || chance > 0 || member == 0
        };
        let state = |member| if is_up(member) { MemberState::UP } else { MemberState::DOWN };
        let states: Vec<MemberState> = (0..pool.members.len()).map(state).collect();
        Arc::new(pool.compile(&states, 30, None))
    };
    let pools = pools.iter().enumerate().map(plan).collect();
    let apex: Name = "example".parse().unwrap();
    let text = "$TTL 60\n@ SOA a a 1 2 3 4 5\n@ NS a\nzone TXT zone\nalias CNAME fine\n";
    let options = file::Options::default();
    let (records, _) = file::read_text(text.as_bytes(), Path::new("zone"), &apex, &options);
    let source = Source::Data(Arc::new(build(&apex, &records, SEED).unwrap()));
    let entry = ZoneEntry::new(apex.clone(), source, None, 0);
    let zones = ZoneTable::new(vec![Arc::new(entry)], SEED);
    let set = |(pool, name): (usize, &&str)| SteeredSet {
        name: name.parse().unwrap(),
        zone: apex.clone(),
        rtype: if pool == 3 { Type::CNAME } else { Type::TXT },
        pool: pool as u32,
    };
    let sets = STEERED[..8].iter().enumerate().chain([(8, &"bare.example")]);
    let sets: Vec<_> = sets.map(set).collect();
    let names = Arc::new(SteeredNames::new(&sets, SEED));
    let steering = Some(Arc::new(Steering { names, pools, labels: None }));
    Snapshot { steering, ..Snapshot::of(zones) }
}

/// An engine that steers names, all of whose pools' members are up.
fn steered() -> Engine {
    Engine::new(Arc::new(ArcSwap::from_pointee(steered_with(0))), Arc::default())
}

#[test]
fn a_resolver_that_caches_by_scope_gives_each_client_what_the_pool_chooses_for_it() {
    for states in 0..3 {
        let snapshot = Arc::new(ArcSwap::from_pointee(steered_with(states)));
        let never = |_: &str, _, _| panic!("no code elsewhere");
        resolvers_keep_clients_apart(Engine::new(snapshot, Arc::default()), &STEERED, never);
    }
}

#[test]
fn a_pool_without_the_type_that_the_clients_network_leads_to_is_for_all_and_not_kept() {
    let mut engine = steered();
    for _ in 0..4 {
        assert_eq!(scope_of(&mut engine, "bare.example"), (None, 0), "rfc7871#7.4");
    }
}

#[test]
fn a_client_gets_what_the_pool_chooses_for_it_whatever_was_asked_and_went_up_or_down_before() {
    let published = Arc::new(ArcSwap::from_pointee(steered_with(0)));
    let mut asked_before = Engine::new(Arc::clone(&published), Arc::default());
    let (mut random, mut states) = (Random(7), 0);
    for round in 0..8000 {
        if round % 40 == 39 {
            states = random.below(50);
            published.store(Arc::new(steered_with(states)));
        }
        let (client, name) = (Client::random(&mut random), random.one_of(&STEERED));
        let never = |_, _| panic!("no code elsewhere");
        let told = ask(&mut asked_before, (client, name), never);
        let mut fresh = Engine::new(Arc::clone(&published), Arc::default());
        let expected = ask(&mut fresh, (client, name), never);
        assert_eq!(told, expected, "{name} for {client:?} in the states {states}");
        assert!(told.0.is_some() || states > 0, "{name} for {client:?}");
    }
}

/// What a handler says of its replies besides what they hold.
#[derive(Clone, Copy, Debug)]
struct Manner {
    /// How the replies are cached; none are without it.
    vary: Option<Vary>,
    /// Whether it says the scope.
    says_scope: bool,
}

const MANNERS: [(&str, Manner); 8] = {
    const fn manner(vary: Option<Vary>, says_scope: bool) -> Manner {
        Manner { vary, says_scope }
    }
    [
        ("plain.example", manner(None, false)),
        ("scope.example", manner(None, true)),
        ("all.example", manner(Some(Vary::Nothing), false)),
        ("all-scope.example", manner(Some(Vary::Nothing), true)),
        ("client.example", manner(Some(Vary::Client), false)),
        ("client-scope.example", manner(Some(Vary::Client), true)),
        ("subnet.example", manner(Some(Vary::Subnet), false)),
        ("subnet-scope.example", manner(Some(Vary::Subnet), true)),
    ]
};

impl Manner {
    /// Answers by the network that is told, else by as much of the client's address as the replies
    /// may depend on. One whose replies vary says the address as well, as they may depend on it.
    fn answer(self, told: Option<ClientSubnet>, client: IpAddr, reply: &mut HandlerReply) {
        let own_bits = match (self.vary, client) {
            (Some(Vary::Subnet), IpAddr::V4(_)) => 24,
            (Some(Vary::Subnet), IpAddr::V6(_)) => 56,
            (_, IpAddr::V4(_)) => 32,
            (_, IpAddr::V6(_)) => 128,
        };
        let (mut text, scope) = match told {
            Some(told) => region(told.address, told.prefix_len),
            None => region(client, own_bits),
        };
        if matches!(self.vary, Some(Vary::Client | Vary::Subnet)) {
            text += &format!(" for {}", network(client, own_bits).2 >> 64);
        }
        let rdata = [&[text.len() as u8], text.as_bytes()].concat();
        reply.push(Section::Answer, &[], (Type::TXT, 60), &rdata).unwrap();
        reply.reply(Rcode::NOERROR);
        if self.says_scope {
            reply.client_subnet_scope(scope);
        }
        if let Some(vary) = self.vary {
            reply.cache(60, vary);
        }
    }

    /// What the handler says for a client, and the option that its reply has.
    fn expected(self, client: Client) -> TextAndOption {
        let told = client.told.map(|(address, prefix_len)| {
            let (_, _, bits) = network(address, prefix_len);
            let address = match address {
                IpAddr::V4(_) => Ipv4Addr::from_bits((bits >> 96) as u32).into(),
                IpAddr::V6(_) => Ipv6Addr::from_bits(bits).into(),
            };
            ClientSubnet { address, prefix_len, scope_len: 0 }
        });
        let mut reply = HandlerReply::default();
        self.answer(told, client.address, &mut reply);
        let text = reply.records().next().map(|(.., rdata)| rdata[1..].to_vec());
        let scope = match told {
            Some(told) if told.prefix_len > 0 && self.says_scope => {
                region(told.address, told.prefix_len).1.min(match told.address {
                    IpAddr::V4(_) => 32,
                    IpAddr::V6(_) => 128,
                })
            }
            Some(told) => told.prefix_len,
            None => 0,
        };
        (text.map(|text| String::from_utf8(text).unwrap()), client.option(scope))
    }
}

/// Routes to handlers of all manners, in the worker and elsewhere, which count their calls.
fn routes(calls: &Arc<AtomicU32>) -> Vec<Route<Handler>> {
    let here = |(name, manner): (&str, Manner)| {
        let calls = Arc::clone(calls);
        let code = move |query: &HandlerQuery<'_>, reply: &mut HandlerReply| {
            calls.fetch_add(1, Ordering::Relaxed);
            manner.answer(query.client_subnet(), query.client().ip(), reply);
        };
        let handler = Handler::Here(Arc::new(code));
        Route { pattern: name.parse().unwrap(), handler }
    };
    let elsewhere = |(number, (name, _)): (usize, (&str, Manner))| {
        let handler = Handler::Elsewhere(Elsewhere { runtime: 0, handler: number as u32 });
        Route { pattern: format!("async.{name}").parse().unwrap(), handler }
    };
    MANNERS.into_iter().map(here).chain(MANNERS.into_iter().enumerate().map(elsewhere)).collect()
}

#[test]
fn a_client_gets_what_the_handler_would_say_for_it_whatever_was_asked_before() {
    for seed in 0..24 {
        let (mut random, calls) = (Random(seed), Arc::default());
        let mut engine = engine(routes(&calls), Vec::new(), Settings::default());
        let asked = 8000;
        for _ in 0..asked {
            let (client, (name, manner)) = (Client::random(&mut random), random.one_of(&MANNERS));
            let name = if random.below(2) > 0 { name.into() } else { format!("async.{name}") };
            let told = ask(&mut engine, (client, &name), |told, address| {
                calls.fetch_add(1, Ordering::Relaxed);
                let mut reply = HandlerReply::default();
                manner.answer(told, address, &mut reply);
                reply.saw_client = true;
                reply
            });
            assert_eq!(told, manner.expected(client), "seed {seed}: {name} for {client:?}");
        }
        let called = calls.load(Ordering::Relaxed);
        assert!(called * 5 < asked * 4, "seed {seed}: {called} calls for {asked} queries");
    }
}

/// A resolver's cache of one name (rfc7871#7.3.1): networks, and the replies for them.
#[derive(Default)]
struct ResolverCache(Vec<(IpAddr, u8, Option<String>)>);

impl ResolverCache {
    /// The text that the resolver has for a client's network.
    fn find(&self, (address, bits): (IpAddr, u8)) -> Option<&Option<String>> {
        let holds = |(first, scope, _): &&(IpAddr, u8, _)| {
            *scope <= bits && network(*first, *scope) == network(address, *scope)
        };
        self.0.iter().find(holds).map(|(.., text)| text)
    }

    /// Keeps a reply for the network that it is for, or for the one asked for, if that is smaller.
    fn insert(&mut self, (address, bits): (IpAddr, u8), (text, option): TextAndOption) {
        let scope = option.expect("the reply has the option")[3];
        self.0.push((address, scope.min(bits), text));
    }
}

/// Has resolvers with caches ask for many clients: each gets what it would get without a cache.
fn resolvers_keep_clients_apart(
    mut engine: Engine,
    names: &[&str],
    code: impl Fn(&str, Option<ClientSubnet>, IpAddr) -> HandlerReply,
) {
    let resolver = Ipv4Addr::new(192, 0, 2, 53).into();
    for seed in 0..8 {
        for name in names {
            let (mut random, mut cache) = (Random(seed), ResolverCache::default());
            for _ in 0..400 {
                let address = address(&mut random);
                let told = (address, if address.is_ipv4() { 24 } else { 56 });
                let client = Client { address: resolver, told: Some(told) };
                let direct = ask(&mut engine, (client, name), |told, peer| code(name, told, peer));
                match cache.find(told) {
                    Some(text) => assert_eq!(*text, direct.0, "seed {seed}: {name}, {told:?}"),
                    None => cache.insert(told, direct),
                }
            }
        }
    }
}

#[test]
fn a_resolver_that_caches_by_scope_gives_each_client_what_the_handler_says_for_it() {
    let engine = engine(routes(&Arc::default()), Vec::new(), Settings::default());
    let names: Vec<String> =
        MANNERS.iter().flat_map(|(name, _)| [(*name).into(), format!("async.{name}")]).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    resolvers_keep_clients_apart(engine, &names, |name, told, address| {
        let known = MANNERS.iter().find(|(known, _)| name.ends_with(&format!(".{known}")));
        let mut reply = HandlerReply::default();
        reply.saw_client = true;
        known.unwrap().1.answer(told, address, &mut reply);
        reply
    });
}

/// Middleware that answers, or changes the reply, for a part of all networks.
struct ForSome {
    answers: bool,
}

impl ForSome {
    fn chooses(query: &HandlerQuery<'_>) -> bool {
        query.client_subnet().is_some_and(|told| told.address.to_string().contains("10.2"))
    }
}

impl Stage for ForSome {
    fn before(&self, query: &HandlerQuery<'_>, reply: &mut HandlerReply) {
        if self.answers && Self::chooses(query) {
            reply.push(Section::Answer, &[], (Type::TXT, 60), b"\x06before").unwrap();
            reply.reply(Rcode::NOERROR);
        }
    }

    fn after(&self, query: &HandlerQuery<'_>, reply: &mut HandlerReply) {
        if !self.answers && Self::chooses(query) {
            reply.push(Section::Answer, &[], (Type::TXT, 60), b"\x05after").unwrap();
        }
    }
}

#[test]
fn what_middleware_leaves_as_it_is_for_one_network_is_not_kept_for_another() {
    for answers in [true, false] {
        let middleware: Vec<Arc<dyn Stage>> = vec![Arc::new(ForSome { answers })];
        let engine = engine(Vec::new(), middleware, Settings::default());
        let never = |_: &str, _, _| panic!("no code elsewhere");
        resolvers_keep_clients_apart(engine, &["text.example", "alias.example"], never);
    }
}

/// Asks for a client in 198.51.100.0/24; the text of the answer, and the scope.
fn scope_of(engine: &mut Engine, name: &str) -> (Option<String>, u8) {
    let told = Some((Ipv4Addr::new(198, 51, 100, 0).into(), 24));
    let client = Client { address: Ipv4Addr::new(192, 0, 2, 53).into(), told };
    let (text, option) = ask(engine, (client, name), |_, _| panic!("no code elsewhere"));
    (text, option.unwrap()[3])
}

/// A route to code in the worker.
fn here(
    pattern: &str,
    code: impl Fn(&HandlerQuery<'_>, &mut HandlerReply) + Send + Sync + 'static,
) -> Route<Handler> {
    Route { pattern: pattern.parse().unwrap(), handler: Handler::Here(Arc::new(code)) }
}

fn say(reply: &mut HandlerReply) {
    reply.push(Section::Answer, &[], (Type::TXT, 60), b"\x04code").unwrap();
    reply.reply(Rcode::NOERROR);
}

#[test]
fn the_scope_is_what_code_says_else_what_it_may_have_looked_at() {
    let routes = vec![
        here("blind.example", |_, reply| say(reply)),
        here("looks.example", |query, reply| {
            let _ = query.client_subnet();
            say(reply);
        }),
        here("logs.example", |query, reply| {
            let _ = query.client();
            say(reply);
            reply.client_subnet_scope(0);
        }),
        here("wider.example", |_, reply| {
            say(reply);
            reply.client_subnet_scope(16);
        }),
        here("longer.example", |_, reply| {
            say(reply);
            reply.client_subnet_scope(255);
        }),
        here("denies.example", |query, reply| {
            let _ = query.client_subnet();
            reply.nxdomain();
            reply.client_subnet_scope(16);
        }),
        here("text.example", |query, _| _ = query.client_subnet()),
    ];
    let mut engine = engine(routes, Vec::new(), Settings::default());
    let mut scope = |name| scope_of(&mut engine, name);
    let code = || Some("code".to_owned());
    for _ in 0..3 {
        assert_eq!(scope("blind.example"), (code(), 0));
        assert_eq!(scope("looks.example"), (code(), 24));
        assert_eq!(scope("logs.example"), (code(), 0));
        assert_eq!(scope("wider.example"), (code(), 16));
        assert_eq!(scope("longer.example"), (code(), 32), "no longer than an address");
        assert_eq!(scope("denies.example"), (None, 0), "rfc7871#7.4");
        let zone = Some("zone".to_owned());
        assert_eq!(
            scope("text.example"),
            (zone.clone(), 24),
            "the handler has left it, and looked"
        );
        assert_eq!(scope("alias.example"), (zone, 0));
    }
}

/// The option of the reply to a query for `text.example` that code elsewhere has answered.
fn resume(
    engine: &mut Engine,
    (client, history): (Client, &History),
    supplied: HandlerOutcome<'_>,
) -> Option<Vec<u8>> {
    let (query, mut buffer) = (client.query("text.example"), vec![0; 4096]);
    buffer[..query.len()].copy_from_slice(&query);
    let address = (client.address, 5300).into();
    let peer = &Peer::new(address, Transport::Udp, 0);
    let (buffer_of, len) = (&mut buffer, query.len());
    let waiting = DeferredQuery { query: None, peer, history, buffer: buffer_of, len };
    let outcome = engine.resume(NOW, waiting, Resumption::Code(supplied));
    read(outcome, &buffer).1
}

#[test]
fn a_reply_with_a_scope_is_kept_for_the_networks_in_it_where_code_has_not_looked_at_the_client() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let route = here("text.example", move |_, reply| {
        counted.fetch_add(1, Ordering::Relaxed);
        say(reply);
        reply.client_subnet_scope(16);
        reply.cache(60, Vary::Nothing);
    });
    let mut engine = engine(vec![route], Vec::new(), Settings::default());
    let own = |a, b, c, d| Ipv4Addr::new(a, b, c, d).into();
    let resolver = own(192, 0, 2, 53);
    for (address, told, call) in [
        (resolver, Some((own(198, 51, 100, 0), 24)), 1),
        (resolver, Some((own(198, 51, 7, 0), 24)), 1),
        (own(203, 0, 113, 53), Some((own(198, 51, 7, 0), 32)), 1),
        (resolver, Some((own(198, 52, 7, 0), 24)), 2),
        (resolver, Some((own(198, 51, 0, 0), 12)), 3), // 12 bits are too few to tell
        (own(198, 51, 9, 9), None, 4),                 // and what is told is no address
        (own(198, 51, 8, 8), None, 4),
        (own(198, 52, 8, 8), None, 5),
        (resolver, Some((own(198, 51, 100, 0), 24)), 5),
    ] {
        let client = Client { address, told };
        let told = ask(&mut engine, (client, "text.example"), |_, _| panic!("no code elsewhere"));
        assert_eq!(told, (Some("code".to_owned()), client.option(16)), "{client:?}");
        assert_eq!(calls.load(Ordering::Relaxed), call, "{client:?}");
    }
}

#[test]
fn an_answer_that_code_elsewhere_was_shown_keeps_its_scope() {
    let looks = here("text.example", |query, _| _ = query.client_subnet());
    let mut engine = engine(vec![looks], Vec::new(), Settings::default());
    let told = Some((Ipv4Addr::new(198, 51, 100, 0).into(), 24));
    let client = Client { address: Ipv4Addr::new(192, 0, 2, 53).into(), told };
    let (query, mut buffer) = (client.query("text.example"), vec![0; 4096]);
    buffer[..query.len()].copy_from_slice(&query);
    let address = (client.address, 5300).into();
    let peer = Peer::new(address, Transport::Udp, 0);
    let Outcome::Reply(len) = engine.answer_below(NOW, &peer, &mut buffer, query.len()) else {
        panic!("the zone answers")
    };
    let shown = AnswerBelow::new(buffer[..len].to_vec(), engine.take_facts());
    assert_eq!(read(Outcome::Reply(len), &buffer).1, client.option(24), "what the code sees");
    let mut deferral = Deferral::new(To::Forward(0), 0);
    deferral.note_below(&shown);
    assert_eq!(deferral.history.code_scope, 24);
    let unknown = AnswerBelow::new(Vec::new(), None); // the answer is made again
    for (code_scope, sent) in [(0, 24), (20, 24), (28, 28)] {
        // What middleware of the worker has looked at before the query waited.
        let history = History { code_scope, ..History::default() };
        for below in [&shown, &unknown] {
            let option = resume(&mut engine, (client, &history), HandlerOutcome::AsAnswered(below));
            assert_eq!(option, client.option(sent), "{code_scope}");
        }
    }
}

#[test]
fn a_reply_of_code_elsewhere_is_for_as_few_clients_as_one_of_code_in_the_worker() {
    let mut engine = engine(Vec::new(), Vec::new(), Settings::default());
    let told = Some((Ipv4Addr::new(198, 51, 100, 0).into(), 24));
    let client = Client { address: Ipv4Addr::new(192, 0, 2, 53).into(), told };
    let history = History { code_scope: 20, ..History::default() };
    for (saw_client, scope, sent) in
        [(false, None, 20), (true, None, 24), (true, Some(0), 20), (true, Some(28), 28)]
    {
        let mut reply = HandlerReply::default();
        (reply.saw_client, reply.scope) = (saw_client, scope);
        say(&mut reply);
        let option = resume(&mut engine, (client, &history), HandlerOutcome::Reply(&reply));
        assert_eq!(option, client.option(sent), "{scope:?}");
        let mut deferral = Deferral::new(To::Forward(0), 0);
        let query = client.query("text.example");
        deferral.query = Query::parse(&query).unwrap();
        deferral.note_code(&query, &reply);
        assert_eq!(deferral.history.code_scope.max(20), sent, "{scope:?}");
    }
}

#[test]
fn a_resolver_that_is_not_believed_is_answered_as_if_it_told_nothing() {
    let listed = Network::new(Ipv4Addr::new(192, 0, 2, 0).into(), 24).unwrap();
    let list = AccessList {
        rules: vec![AccessRule { network: listed, key: None, types: None, access: Access::Allow }],
        otherwise: Access::Refuse,
        ..AccessList::open()
    };
    let settings = Settings { client_subnet: Some(list), ..Settings::default() };
    let (_, manner) = MANNERS[1];
    let mut engine = engine(routes(&Arc::default()), Vec::new(), settings);
    let told = Some((Ipv4Addr::new(10, 1, 2, 0).into(), 24));
    for (address, is_believed) in [([192, 0, 2, 53], true), ([198, 51, 100, 53], false)] {
        let client = Client { address: Ipv4Addr::from(address).into(), told };
        let seen = Client { told: told.filter(|_| is_believed), ..client };
        for name in ["scope.example", "text.example"] {
            let reply = ask(&mut engine, (client, name), |_, _| panic!("no code elsewhere"));
            assert_eq!(reply.1.is_some(), is_believed, "{name} of {address:?}");
            if name == "scope.example" {
                assert_eq!(reply, manner.expected(seen));
            }
        }
    }
}
