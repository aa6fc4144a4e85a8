//! Chains of aliases that lead from one forwarded zone into another: each upstream is believed in
//! what it says of its own zone only.

use super::hostile::recursive;
use super::server::Server;
use std::net::UdpSocket;
use std::time::{Duration, Instant};
use zonda_testkit::client::{name_bytes, receive};
use zonda_testkit::message::name_text;
use zonda_testkit::process::Folder;
use zonda_testkit::upstream::{Record, Reply, always, say, tell, wait, when};
use zonda_testkit::{Message, Question, Resolver, Upstream, ask};

/// Forwards `.` to one server and `corp.example.net` to another, with these further keys of the
/// latter.
fn start(all: &Upstream, corp: &Upstream, keys: &str) -> Server {
    start_with(all, corp, "", keys)
}

/// Starts the server, with further keys of the zone of all names.
fn start_with(all: &Upstream, corp: &Upstream, keys_of_all: &str, keys: &str) -> Server {
    let config = format!(
        "[[zone]]\nname = \".\"\nforward.to = \"{}\"\n{keys_of_all}\n\
         [[zone]]\nname = \"corp.example.net\"\n{keys}\nforward.to = \"{}\"\n\
         forward.timeout = \"500 ms\"\n",
        all.address, corp.address
    );
    Server::start(&[("zone.example", OWN)], &config)
}

/// A zone with data of this server, with aliases of names that are forwarded.
const OWN: &str = "$TTL 60\n@ SOA ns host 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n\
                   out CNAME www.example.com.\nback CNAME home.example.com.\n\
                   circle CNAME ring.example.com.\n";

/// Says that names are aliases of `host.corp.example.net`, or what a longer name says, and lies
/// about what is there.
fn aliases() -> Upstream {
    let target = |name: &str| match name.split('.').next().unwrap() {
        "missing" => "missing.corp.example.net".to_owned(),
        "home" => "ns.zone.example".to_owned(),
        "ring" => "circle.zone.example".to_owned(),
        "loop" => "loop.corp.example.net".to_owned(),
        first if first.starts_with("leg") => format!("{first}.corp.example.net"),
        _ => "host.corp.example.net".to_owned(),
    };
    Upstream::start([always().then([tell(move |asked| {
        let target = target(&asked.name);
        let lie = Record::address(66).of(&target);
        Reply::empty().answer(Record::alias(&target)).answer(lie)
    })])])
}

/// Knows the names of `corp.example.net`.
fn corp() -> Upstream {
    let leads_back = |asked: &zonda_testkit::upstream::ReceivedQuery| {
        let first = asked.name.split('.').next().unwrap().to_owned();
        let target = match first.strip_prefix("leg") {
            Some(number) => format!("leg{}.example.com", number.parse::<u32>().unwrap() + 1),
            None => format!("{first}.example.com"),
        };
        Reply::empty().answer(Record::alias(&target))
    };
    Upstream::start([
        when(|asked| asked.name.starts_with("missing."))
            .then([say(Reply::rcode(3).authority(Record::soa("corp.example.net", 60)))]),
        when(|asked| asked.name.starts_with("leg") || asked.name.starts_with("loop"))
            .then([tell(leads_back)]),
        always().then([say(Reply::address(8))]),
    ])
}

/// The reply to a client that wants recursion.
fn reply(server: &Server, name: &str) -> Message {
    ask(server.zonda.address, &recursive(name, "A")).unwrap()
}

/// The data of the answer.
fn data(message: &Message) -> Vec<&str> {
    message.answer.iter().map(|record| &*record.data.text).collect()
}

#[test]
fn what_lies_in_another_forwarded_zone_is_asked_of_its_own_servers() {
    let (all, corp) = (aliases(), corp());
    let server = start(&all, &corp, "");
    for reason in ["just fetched", "kept"] {
        let reply = reply(&server, "WWW.example.com");
        assert_eq!(data(&reply), ["host.corp.example.net.", "192.0.2.8"], "{reason}");
        let owners: Vec<_> = reply.answer.iter().map(|record| name_text(&record.owner)).collect();
        assert_eq!(owners, ["www.example.com.", "host.corp.example.net."], "{reason}");
        assert_eq!(reply.flags & 0x04a0, 0x0080, "RA, neither AA nor AD");
    }
    assert_eq!((all.asked(), corp.asked()), (1, 1));
    let other = reply(&server, "other.example.com");
    assert_eq!(data(&other), ["host.corp.example.net.", "192.0.2.8"]);
    assert_eq!((all.asked(), corp.asked()), (2, 1), "the target is kept for itself");
    let direct = reply(&server, "host.corp.example.net");
    assert_eq!((data(&direct), corp.asked()), (vec!["192.0.2.8"], 1));
    let alone = ask(server.zonda.address, &Question::new("www.example.com", "A")).unwrap();
    assert_eq!(data(&alone), ["host.corp.example.net."], "nobody is asked without RD");
}

#[test]
fn the_last_name_of_a_chain_over_zones_decides_the_response_code() {
    let (all, corp) = (aliases(), corp());
    let server = start(&all, &corp, "");
    for reason in ["just fetched", "kept"] {
        let missing = reply(&server, "missing.example.com");
        let counts = (missing.answer.len(), missing.authority.len());
        assert_eq!((missing.rcode_text(), counts), ("NXDOMAIN".to_owned(), (1, 1)), "{reason}");
    }
    assert_eq!((all.asked(), corp.asked()), (1, 1));
    corp.now_does([]);
    let start = Instant::now();
    let failed = reply(&server, "www.example.com");
    assert_eq!((failed.rcode_text(), failed.answer.len()), ("SERVFAIL".to_owned(), 0));
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
}

#[test]
fn a_circle_over_zones_and_a_chain_without_end_are_failures() {
    let (all, corp) = (aliases(), corp());
    let server = start(&all, &corp, "");
    for (name, asked) in [("loop.example.com", 2), ("leg0.example.com", 8)] {
        let before = all.asked() + corp.asked();
        let failed = reply(&server, name);
        assert_eq!((failed.rcode_text(), failed.answer.len()), ("SERVFAIL".to_owned(), 0));
        let options = &failed.edns.as_ref().unwrap().options;
        let is_invalid_data = |(code, data): &(u16, Vec<u8>)| *code == 15 && data[..2] == [0, 24];
        assert!(options.iter().any(is_invalid_data), "{name}: {options:?}");
        assert_eq!(all.asked() + corp.asked() - before, asked, "{name}");
    }
}

#[test]
fn as_many_answers_are_put_together_as_the_configuration_says() {
    for (chain_max, is_whole) in [(1, false), (2, true), (3, true)] {
        let (all, corp) = (aliases(), corp());
        let config = format!(
            "forwarding.chain-max = {chain_max}\n[[zone]]\nname = \".\"\nforward.to = \"{}\"\n\
             [[zone]]\nname = \"corp.example.net\"\nforward.to = \"{}\"\n",
            all.address, corp.address
        );
        let server = Server::start(&[], &config);
        let www = reply(&server, "www.example.com");
        let expected = if is_whole { "NOERROR" } else { "SERVFAIL" };
        assert_eq!((&*www.rcode_text(), www.answer.len()), (expected, 2 * usize::from(is_whole)));
        let before = all.asked() + corp.asked();
        assert_eq!(reply(&server, "leg0.example.com").rcode_text(), "SERVFAIL");
        assert_eq!(all.asked() + corp.asked() - before, chain_max);
    }
}

#[test]
fn a_client_that_may_not_ask_for_the_other_zone_gets_the_alias_alone() {
    let (all, corp) = (aliases(), corp());
    let server = start(&all, &corp, "access = [\"refuse any\"]");
    for _ in 0..2 {
        let alone = reply(&server, "www.example.com");
        assert_eq!(alone.rcode_text(), "NOERROR");
        assert_eq!(data(&alone), ["host.corp.example.net."]);
    }
    assert_eq!(corp.asked(), 0);
}

#[test]
fn a_chain_goes_on_from_our_data_over_the_zones_of_others_and_back() {
    let (all, corp) = (aliases(), corp());
    let server = start(&all, &corp, "");
    for reason in ["just fetched", "kept"] {
        let out = reply(&server, "out.zone.example");
        let chain = ["www.example.com.", "host.corp.example.net.", "192.0.2.8"];
        assert_eq!(data(&out), chain, "{reason}");
        let back = reply(&server, "back.zone.example");
        let chain = ["home.example.com.", "ns.zone.example.", "192.0.2.1"];
        assert_eq!(data(&back), chain, "{reason}");
        let circle = reply(&server, "circle.zone.example");
        let chain = ["ring.example.com.", "circle.zone.example."];
        assert_eq!((circle.rcode_text(), data(&circle)), ("NOERROR".to_owned(), chain.to_vec()));
        let ring = reply(&server, "ring.example.com");
        let chain = ["circle.zone.example.", "ring.example.com."];
        assert_eq!((ring.rcode_text(), data(&ring)), ("NOERROR".to_owned(), chain.to_vec()));
    }
}

#[test]
fn an_answer_that_led_into_a_zone_that_is_gone_is_fetched_anew() {
    let (all, corp) = (aliases(), corp());
    let server = start(&all, &corp, "");
    assert_eq!(data(&reply(&server, "www.example.com")).last(), Some(&"192.0.2.8"));
    server.configure(&format!("[[zone]]\nname = \".\"\nforward.to = \"{}\"\n", all.address));
    assert_eq!(server.post("/v1/reload").0, 200);
    let chain = ["host.corp.example.net.", "192.0.2.66"];
    assert_eq!(data(&reply(&server, "www.example.com")), chain);
}

#[test]
fn an_answer_that_led_into_a_zone_of_ours_that_is_gone_is_fetched_anew() {
    let (all, folder) = (aliases(), Folder::new("own"));
    let path = folder.write("zone.example.zone", OWN);
    let forward = format!("[[zone]]\nname = \".\"\nforward.to = \"{}\"\n", all.address);
    let root = folder.path().parent().unwrap();
    let own =
        format!("root = {root:?}\n{forward}[[zone]]\nname = \"zone.example\"\nfile = {path:?}\n");
    let server = Server::start(&[], &own);
    for reason in ["just fetched", "kept"] {
        let chain = ["ns.zone.example.", "192.0.2.1"];
        assert_eq!(data(&reply(&server, "home.example.com")), chain, "{reason}");
    }
    server.configure(&forward);
    assert_eq!(server.post("/v1/reload").0, 200);
    let chain = ["ns.zone.example.", "192.0.2.66"];
    assert_eq!(data(&reply(&server, "home.example.com")), chain);
    assert_eq!(all.asked(), 2);
}

#[test]
fn servers_of_others_are_not_believed_about_any_name_that_they_are_not_asked_for() {
    let targets = [
        ("special", "nas.home.arpa."),
        ("lent", "www.dev.zone.example."),
        ("nobodys", "www.nobody.example.com."),
        ("broken", "www.broken.example."),
    ];
    let all = Upstream::start([always().then([tell(move |asked| {
        let first = asked.name.split('.').next().unwrap();
        let found = targets.iter().find(|(name, _)| *name == first);
        let target = found.unwrap().1.trim_end_matches('.');
        let lie = Record::address(66).of(target);
        Reply::empty().answer(Record::alias(target)).answer(lie)
    })])]);
    let folder = Folder::new("own");
    let own = folder.write("own", format!("{OWN}www.dev A 192.0.2.5\nlent CNAME www.dev\n"));
    let broken = folder.write("broken", "nonsense");
    let config = format!(
        "root = {root:?}\nanswers.cross-zone = true\n\
         [[zone]]\nname = \"zone.example\"\nfile = {own:?}\n\
         [[zone]]\nname = \"broken.example\"\nfile = {broken:?}\n\
         [[zone]]\nname = \"dev.zone.example\"\nforward.to = \"{to}\"\n\
         forward.except = [\"www.dev.zone.example\"]\n\
         [[zone]]\nname = \".\"\nforward.to = \"{to}\"\n\
         forward.except = [\"nobody.example.com\"]\n",
        root = folder.path().parent().unwrap(),
        to = all.address
    );
    let server = Server::start(&[], &config);
    let ends = [("NXDOMAIN", None), ("NOERROR", Some("192.0.2.5")), ("NOERROR", None)];
    for reason in ["just fetched", "kept"] {
        for ((name, target), (rcode, address)) in
            targets.iter().zip(ends.into_iter().chain([("SERVFAIL", None)]))
        {
            let reply = reply(&server, &format!("{name}.example.com"));
            let chain: Vec<_> = [*target].into_iter().chain(address).collect();
            let found = (reply.rcode_text(), data(&reply));
            assert_eq!(found, (rcode.to_owned(), chain), "{reason}: {name}");
        }
    }
    assert_eq!(all.asked(), 4);
    assert_eq!(data(&reply(&server, "lent.zone.example")), ["www.dev.zone.example.", "192.0.2.5"]);
}

#[test]
fn an_alias_of_ours_leads_out_of_an_excepted_name_too() {
    let all = Upstream::start([always().then([say(Reply::address(7))])]);
    let folder = Folder::new("own");
    let own = folder.write("own", format!("{OWN}www.dev CNAME www.example.com.\n"));
    let config = format!(
        "root = {root:?}\n[[zone]]\nname = \"zone.example\"\nfile = {own:?}\n\
         [[zone]]\nname = \".\"\nforward.to = \"{to}\"\n\
         [[zone]]\nname = \"dev.zone.example\"\nforward.to = \"{to}\"\n\
         forward.except = [\"www.dev.zone.example\"]\n",
        root = folder.path().parent().unwrap(),
        to = all.address
    );
    let server = Server::start(&[], &config);
    let chain = ["www.example.com.", "192.0.2.7"];
    assert_eq!(data(&reply(&server, "www.dev.zone.example")), chain);
}

#[test]
fn a_public_name_leads_to_no_private_address_in_another_zone() {
    let private = Reply::empty().answer(Record::new("A", [192, 168, 1, 5]));
    let (all, corp) = (aliases(), Upstream::start([always().then([say(private)])]));
    let keys = "forward.rebinding-protection = true\nforward.private-names = [\"own.example.com\"]";
    let server = start_with(&all, &corp, keys, "");
    for _ in 0..2 {
        let blocked = reply(&server, "www.example.com");
        assert_eq!((blocked.rcode_text(), blocked.answer.len()), ("NOERROR".to_owned(), 0));
        let options = &blocked.edns.as_ref().unwrap().options;
        assert!(options.iter().any(|(code, data)| *code == 15 && data[..2] == [0, 15]));
    }
    assert_eq!(data(&reply(&server, "own.example.com")).last(), Some(&"192.168.1.5"));
    assert_eq!(data(&reply(&server, "host.corp.example.net")), ["192.168.1.5"]);
}

#[test]
fn nobody_waits_for_what_is_fetched_anew_while_it_is_still_good() {
    let lasting = |record: Record| Reply::empty().answer(record.ttl(6));
    let all = Upstream::start([always().then([tell(move |asked| {
        lasting(Record::alias("host.corp.example.net").of(&asked.name))
    })])]);
    let corp = Upstream::start([always().then([say(Reply::address(8))])]);
    let server = start(&all, &corp, "");
    let start = Instant::now();
    for _ in 0..30 {
        assert_eq!(data(&reply(&server, "www.example.com")).last(), Some(&"192.0.2.8"));
    }
    all.now_does([]); // before the alias is due, which it is after some five seconds
    let asked = all.asked();
    while all.asked() == asked && start.elapsed() < Duration::from_secs(8) {
        reply(&server, "www.example.com");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(all.asked() > asked, "the alias is fetched anew");
    for _ in 0..20 {
        let asked_at = Instant::now();
        let reply = reply(&server, "www.example.com");
        let took = asked_at.elapsed();
        assert_eq!(data(&reply).last(), Some(&"192.0.2.8"));
        assert!(took < Duration::from_millis(150), "{took:?} after {:?}", start.elapsed());
    }
}

#[test]
fn a_stop_waits_for_answers_that_lead_into_another_zone() {
    let alias = tell(|asked| {
        let alias =
            Record::alias(&format!("host-{}", asked.name.replace("com.", "corp.example.net")));
        Reply::empty().answer(alias)
    });
    let all = Upstream::start([always().then([wait(100..900), alias])]);
    let corp = corp();
    let server = start(&all, &corp, "");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server.zonda.address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    for number in 0..40 {
        let query = recursive(&format!("name{number}.example.com"), "A").to_bytes(number);
        socket.send(&query).unwrap();
    }
    super::server::wait_until("all are asked for", || all.asked() >= 40);
    assert_eq!(server.post("/v1/stop").0, 200);
    let mut reply = [0; 512];
    for number in 0..40 {
        let len = receive(&socket, &mut reply).unwrap_or_else(|_| panic!("only {number} replies"));
        let reply = Message::parse(&reply[..len]).unwrap();
        assert_eq!(data(&reply).last(), Some(&"192.0.2.8"), "{reply}");
    }
}

/// Answers for `evil.net`, and speaks of `net` and the root.
fn above() -> Upstream {
    let dname = || Record::new("DNAME", name_bytes("victim.com")).of("net");
    let alias = Reply::empty().answer(dname()).answer(Record::alias("dnameup.evil.victim.com"));
    let first = |label: &'static str| when(move |asked| asked.name.starts_with(label));
    let denial = |zone| Reply::rcode(3).authority(Record::soa(zone, 60));
    Upstream::start([
        first("dnameup.").then([say(alias)]),
        first("dnameonly.").then([say(Reply::empty().answer(dname()))]),
        first("nxup.").then([say(denial("net"))]),
        first("nxroot.").then([say(denial("."))]),
        always().then([say(denial("evil.net"))]),
    ])
}

/// Forwards `evil.net` to one server and all else to another.
fn start_above(evil: &Upstream, honest: &Upstream) -> Server {
    let config = format!(
        "[[zone]]\nname = \"evil.net\"\nforward.to = \"{}\"\n\
         [[zone]]\nname = \".\"\nforward.to = \"{}\"\n",
        evil.address, honest.address
    );
    Server::start(&[], &config)
}

#[test]
fn a_zones_servers_are_not_believed_about_names_above_it() {
    let (evil, honest) = (above(), Upstream::start([always().then([say(Reply::address(8))])]));
    let server = start_above(&evil, &honest);
    for reason in ["just fetched", "kept"] {
        let up = reply(&server, "dnameup.evil.net");
        assert_eq!(data(&up), ["dnameup.evil.victim.com.", "192.0.2.8"], "{reason}: {up}");
        for name in ["nxup.evil.net", "nxroot.evil.net"] {
            let denied = reply(&server, name);
            let found = (denied.rcode_text(), denied.authority.len());
            assert_eq!(found, ("NXDOMAIN".to_owned(), 0), "{reason}: {denied}");
        }
        let own = reply(&server, "nx.evil.net");
        assert_eq!((own.rcode_text(), own.authority.len()), ("NXDOMAIN".to_owned(), 1), "{reason}");
    }
    assert_eq!((evil.asked(), honest.asked()), (4, 1), "a denial holds as long as they say");
    let only = reply(&server, "dnameonly.evil.net");
    assert_eq!((only.rcode_text(), only.answer.len()), ("SERVFAIL".to_owned(), 0), "{only}");
}

#[test]
fn a_bind_behind_is_not_led_astray_by_a_dname_above_the_zone_of_its_sender() {
    let (evil, honest) = (above(), Upstream::start([always().then([say(Reply::address(8))])]));
    let server = start_above(&evil, &honest);
    let bind = Resolver::bind(server.zonda.address, "start.com");
    let ask = |name: &str| ask(bind.address, &recursive(name, "A")).unwrap();
    assert_eq!(data(&ask("dnameup.evil.net")).last(), Some(&"192.0.2.8"));
    assert_eq!(data(&ask("bank.net")), ["192.0.2.8"], "an answer without an alias");
}
