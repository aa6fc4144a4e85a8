//! What code sees of queries and leaves with them, and what programs read of replies and errors.

#![allow(clippy::unwrap_used)]

use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use zonda::store::StoreError;
use zonda::{
    A, Any, App, Captures, ClientAddress, Error, Message, Mx, Name, OwnedQuery, Query, Rcode,
    RecordSet, Reply, Running, Section, Soa, State, Txt, Type, Vary,
};
use zonda_testkit::process::Folder;

/// The reply to a query of a client.
async fn ask_from(running: &Running, client: impl ClientAddress, name: &str) -> Message {
    running.query_from(client, name, Type::TXT).await.unwrap()
}

/// The text of a reply's answer; its response code where it has none.
async fn text_for(running: &Running, client: &str, name: &str) -> String {
    let reply = ask_from(running, client, name).await;
    match Txt::all_in(&reply).first() {
        Some(record) => String::from_utf8_lossy(&record.strings[0]).into_owned(),
        None => reply.rcode().to_string(),
    }
}

/// The text of a label.
fn text_of(label: &[u8]) -> String {
    String::from_utf8_lossy(label).into_owned()
}

#[tokio::test]
async fn both_kinds_of_query_say_the_same_by_the_same_words() {
    let sync = |query: &Query| {
        let params: Vec<String> =
            query.params().map(|(word, it)| format!("{word}={}", text_of(it))).collect();
        Txt::new(format!(
            "{} {} {} {:?} {params:?} {}",
            query.name(),
            query.original_name(),
            query.transport().name(),
            query.pattern().map(|it| it.as_str()),
            text_of(query.name().label(0)),
        ))
    };
    let waiting = async |query: OwnedQuery| {
        let params: Vec<String> =
            query.params().map(|(word, it)| format!("{word}={}", text_of(it))).collect();
        Txt::new(format!(
            "{} {} {} {:?} {params:?} {}",
            query.name(),
            query.original_name(),
            query.transport().name(),
            query.pattern().map(|it| it.as_str()),
            text_of(query.name().label(0)),
        ))
    };
    let app = App::new().listen_nowhere();
    let app =
        app.handle(":user.:team.a.example", sync).handle_async(":user.:team.b.example", waiting);
    let running = app.start().await.unwrap();
    for zone in ["a", "b"] {
        let text = text_for(&running, "192.0.2.7", &format!("Ann.DNS.{zone}.example")).await;
        let expected = format!(
            "ann.dns.{zone}.example. Ann.DNS.{zone}.example. tcp \
             Some(\":user.:team.{zone}.example\") [\"user=ann\", \"team=dns\"] ann"
        );
        assert_eq!(text, expected);
    }
    running.stop().await.unwrap();
}

#[tokio::test]
async fn middleware_has_no_pattern_where_it_is_for_all_names() {
    let app = App::new()
        .listen_nowhere()
        .middleware(|query: &Query| query.pattern().map(|it| Txt::new(it.as_str())))
        .middleware_async(async |query: OwnedQuery| query.pattern().map(|it| Txt::new(it.as_str())))
        .middleware_for(":host.example", |query: &Query| {
            query.pattern().map(|it| Txt::new(it.as_str()))
        })
        .handle("*", || Txt::new("handled"));
    let running = app.start().await.unwrap();
    assert_eq!(text_for(&running, "192.0.2.7", "a.test").await, "handled");
    assert_eq!(text_for(&running, "192.0.2.7", "a.example").await, ":host.example");
    running.stop().await.unwrap();
}

/// A failure of middleware.
struct Closed;

impl std::fmt::Display for Closed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("closed")
    }
}

#[tokio::test]
async fn middleware_takes_and_returns_what_handlers_do() {
    let blocked = HashSet::<Name>::from(["ads.example".parse().unwrap()]);
    let app = App::new()
        .listen_nowhere()
        .state(blocked)
        .middleware(|name: Name, blocked: State<HashSet<Name>>| {
            blocked.contains(&name).then(|| Txt::new("blocked"))
        })
        .middleware_for(":user.users.example", |Captures([user]): Captures<1>| match &*user {
            "eve" => Err(Closed),
            "bob" => Ok(Some(Rcode::REFUSED)),
            _ => Ok(None),
        })
        .on_error(|_: &Closed, _: &zonda::Context, _: &mut Reply| Rcode::NOTIMP)
        .route(":team.teams.example", |teams| {
            teams
                .middleware(|Captures([team]): Captures<1>| {
                    (team == "red").then_some(Rcode::REFUSED)
                })
                .middleware_for("closed", |query: &Query, reply: &mut Reply| {
                    reply.answer(Txt::new(query.capture("team").unwrap()));
                })
                .stage_for("@", |_: &Query, reply: &mut Reply| reply.drop())
        })
        .handle("*", || Txt::new("handled"));
    let running = app.start().await.unwrap();
    for (name, expected) in [
        ("ads.example", "blocked"),
        ("www.example", "handled"),
        ("ann.users.example", "handled"),
        ("bob.users.example", "REFUSED"),
        ("eve.users.example", "NOTIMP"),
        ("a.red.teams.example", "REFUSED"),
        ("a.blue.teams.example", "handled"),
        ("closed.blue.teams.example", "blue"),
    ] {
        assert_eq!(text_for(&running, "192.0.2.7", name).await, expected, "{name}");
    }
    let dropped = running.query("blue.teams.example", Type::TXT).await;
    assert!(matches!(dropped, Err(Error::Silence)));
    running.stop().await.unwrap();
}

#[tokio::test]
async fn what_middleware_takes_and_the_app_lacks_is_told_at_the_start() {
    let lacking = [
        App::new().middleware(|_: State<u16>| {}),
        App::new().middleware_for("a.example", |_: State<u16>| {}),
        App::new().middleware_for("a.example", |_: Captures<1>| {}),
        App::new().route("a.example", |router| router.middleware(|_: Captures<1>| {})),
    ];
    for app in lacking {
        let error = app.listen_nowhere().start().await.unwrap_err();
        assert_eq!(error.code(), "ZONDA_CONFIG", "{error}");
    }
    let wrong = App::new().listen_nowhere().middleware_for("a..b", || {}).start().await;
    assert_eq!(wrong.unwrap_err().code(), "ZONDA_PATTERN");
}

/// The account of a client, which middleware finds.
struct Account(String);

/// A number that asynchronous code leaves.
struct Number(u32);

#[tokio::test]
async fn middleware_leaves_values_for_all_code_behind_it_and_for_this_query_alone() {
    let app = App::new()
        .listen_nowhere()
        .middleware(|query: &Query| {
            if query.client().ip() == Ipv4Addr::new(192, 0, 2, 7) {
                query.set_state(Account("eve".to_owned()));
                query.set_state(Account("ann".to_owned()));
            }
        })
        .after(|query: &Query, reply: &mut Reply| {
            let account = query.state::<Account>().map_or("none".to_owned(), |it| it.0.clone());
            let number = query.state::<Number>().map_or(0, |it| it.0);
            reply.clear_records();
            reply.answer(Txt::new(format!("{account} {number}")));
        })
        .handle("sync.example", |query: &Query| {
            let account = query.state::<Account>()?;
            query.set_state(Number(account.0.len() as u32));
            Some(Txt::new("seen by `after`"))
        })
        .handle_async("async.example", async |query: OwnedQuery| {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            let account = query.state::<Account>()?;
            query.set_state(Number(1 + account.0.len() as u32));
            Some(Txt::new("seen by `after`"))
        })
        .handle_async("left.passed.example", async |query: OwnedQuery| {
            query.set_state(Number(7));
        })
        .handle("*.passed.example", |query: &Query| {
            let number = query.state::<Number>()?;
            query.set_state(Number(number.0 * 6));
            Some(Txt::new("seen by `after`"))
        })
        .handle("*", || Txt::new("seen by `after`"));
    let running = app.start().await.unwrap();
    for (client, name, expected) in [
        ("192.0.2.7", "sync.example", "ann 3"),
        ("192.0.2.7", "async.example", "ann 4"),
        ("192.0.2.7", "left.passed.example", "ann 42"),
        ("192.0.2.7", "www.example", "ann 0"),
        ("192.0.2.8", "www.example", "none 0"),
        ("192.0.2.8", "sync.example", "none 0"),
        ("192.0.2.8", "async.example", "none 0"),
    ] {
        assert_eq!(text_for(&running, client, name).await, expected, "{client} {name}");
    }
    running.stop().await.unwrap();
}

#[tokio::test]
async fn a_reply_that_depends_on_what_middleware_has_left_is_not_cached_for_other_clients() {
    let app = App::new()
        .listen_nowhere()
        .middleware(|query: &Query, client: IpAddr| query.set_state(Account(client.to_string())))
        .handle("whoami.example", |query: &Query, reply: &mut Reply| {
            reply.cache(60, Vary::Nothing);
            query.state::<Account>().map(|account| Txt::new(&account.0))
        });
    let running = app.start().await.unwrap();
    for client in ["192.0.2.7", "192.0.2.8"] {
        assert_eq!(text_for(&running, client, "whoami.example").await, client);
    }
    running.stop().await.unwrap();
}

#[tokio::test]
async fn the_client_of_a_query_is_an_address_with_or_without_a_port() {
    let app =
        App::new().listen_nowhere().handle("*", |client: SocketAddr| Txt::new(client.to_string()));
    let running = app.start().await.unwrap();
    assert_eq!(text_for(&running, "192.0.2.7", "a.example").await, "192.0.2.7:0");
    assert_eq!(text_for(&running, "192.0.2.7:53", "a.example").await, "192.0.2.7:53");
    assert_eq!(text_for(&running, "2001:db8::7", "a.example").await, "[2001:db8::7]:0");
    let address = Ipv4Addr::new(192, 0, 2, 7);
    for reply in [
        ask_from(&running, address, "a.example").await,
        ask_from(&running, IpAddr::V4(address), "a.example").await,
        ask_from(&running, SocketAddr::from((address, 0)), "a.example").await,
    ] {
        assert_eq!(Txt::all_in(&reply)[0].strings, [b"192.0.2.7:0"]);
    }
    let wrong = running.query_from("nowhere", "a.example", Type::A).await.unwrap_err();
    assert_eq!(wrong.code(), "ZONDA_QUERY");
    assert!(wrong.to_string().contains("`nowhere`"), "{wrong}");
    running.stop().await.unwrap();
}

#[tokio::test]
async fn a_negative_reply_says_by_one_word_how_long_it_is_cached() {
    let soa = || Soa::new("ns.example", "mail.example", 1, 2, 3, 4, 5).unwrap();
    let app = App::new()
        .listen_nowhere()
        .handle("a.users.example", |_: &Query, reply: &mut Reply| reply.nxdomain_with(60))
        .handle("b.users.example", |_: &Query, reply: &mut Reply| reply.no_data_with(70))
        .handle("c.users.example", move |_: &Query, reply: &mut Reply| {
            reply.cache_negative(80);
            reply.nxdomain_with(soa().of("example".parse().unwrap()).ttl(90));
        })
        .handle("d.users.example", |_: &Query, reply: &mut Reply| reply.no_data_with(u32::MAX));
    let running = app.start().await.unwrap();
    for (name, rcode, owner, ttl) in [
        ("a", Rcode::NXDOMAIN, "a.users.example.", 60),
        ("b", Rcode::NOERROR, "b.users.example.", 70),
        ("c", Rcode::NXDOMAIN, "example.", 90),
        ("d", Rcode::NOERROR, "d.users.example.", 0x7fff_ffff),
    ] {
        let reply = running.query(&format!("{name}.users.example"), Type::A).await.unwrap();
        let authority: Vec<_> = reply.section(Section::Authority).collect();
        assert_eq!((reply.rcode(), authority.len(), authority[0].rtype), (rcode, 1, Type::SOA));
        assert_eq!((&*authority[0].owner.to_string(), authority[0].ttl), (owner, ttl), "{name}");
    }
    running.stop().await.unwrap();
}

#[test]
fn records_are_lines_of_zone_files_and_are_read_from_them() {
    let origin: Name = "example.org".parse().unwrap();
    let mail = Mx::new(10, "mail.example.org").unwrap();
    assert_eq!(mail.to_line(), "@ 300 IN MX 10 mail.example.org.");
    let owned = mail.clone().of(origin.clone()).ttl(60);
    assert_eq!(owned.to_line(), "example.org. 60 IN MX 10 mail.example.org.");
    assert_eq!(Mx::parse_line(&owned.to_line(), None).unwrap(), owned);
    assert_eq!(Mx::parse_line("@ 60 IN MX 10 mail", Some(&origin)).unwrap(), owned);
    assert_eq!(Mx::parse_line("@ MX 10 mail.example.org.", None).unwrap(), mail);
    assert_eq!(Any::parse_line(&owned.to_line(), None).unwrap().to_line(), owned.to_line());
    let wrong = |line| Mx::parse_line(line, None).unwrap_err().to_string();
    assert_eq!(wrong("a A 192.0.2.1"), "MX record: the line has a record of type A");
    assert_eq!(wrong(""), "the text has no record");
    assert!(Any::parse_line("a 2147483648 A 192.0.2.1", None).is_err());
    let all = HashSet::from([mail.clone(), owned, mail]);
    assert_eq!(all.len(), 2, "records have a hash");
}

#[test]
fn a_time_to_live_is_at_most_what_the_protocol_allows() {
    let record = A::new([192, 0, 2, 1]).ttl(u32::MAX);
    assert_eq!(record.to_line(), "@ 2147483647 IN A 192.0.2.1");
    let mut reply = Reply::default();
    reply.answer(record);
    assert_eq!(reply.shortest_ttl_secs(), Some(0x7fff_ffff));
}

#[test]
fn a_reply_is_read_by_types_of_records_and_its_debug_text_is_one_of_zone_files() {
    let mut reply = Reply::default();
    reply.answers([Txt::new("one"), Txt::new("two").ttl(5)]);
    reply.answer(A::new([192, 0, 2, 1]).of("a.example".parse().unwrap()));
    reply.authority(Txt::new("not in the answer"));
    let texts: Vec<_> = Txt::all_in(&reply).into_iter().map(|it| it.to_line()).collect();
    assert_eq!(texts, ["@ 300 IN TXT \"one\"", "@ 5 IN TXT \"two\""]);
    assert_eq!(A::all_in(&reply)[0].to_line(), "a.example. 300 IN A 192.0.2.1");
    let shown = format!("{reply:?}");
    for part in ["a.example. 300 IN A 192.0.2.1", "authority", "rcode: NOERROR"] {
        assert!(shown.contains(part), "{shown}");
    }
}

#[tokio::test]
async fn errors_have_the_codes_of_all_three_languages() {
    let running = App::new().listen_nowhere().start().await.unwrap();
    running.stop().await.unwrap();
    assert_eq!(running.reload().await.unwrap_err().code(), "ZONDA_STATE");
    let unreachable = StoreError::failed(io::Error::from(io::ErrorKind::ConnectionRefused));
    assert_eq!(unreachable.code(), "ZONDA_STORE");
    assert_eq!(StoreError::config("the URL is wrong").code(), "ZONDA_CONFIG");
    let wrong = RecordSet::new("a", "NONSENSE", 60, ["x"]).normal().unwrap_err();
    assert_eq!(StoreError::from(wrong).code(), "ZONDA_RECORD");
    assert_eq!(Any::new(Type::A, "x").unwrap_err().code(), "ZONDA_RECORD");
}

#[tokio::test]
async fn an_error_of_the_library_names_no_flag_of_the_program() {
    let folder = Folder::new("flags");
    let zone = folder.write("example.zone", "@ 300 SOA ns h 1 2 3 4 5\n@ 300 NS ns\n");
    let error = App::new().config(zone).start().await.unwrap_err();
    assert_eq!(error.code(), "ZONDA_CONFIG");
    assert!(error.to_string().contains("give it to `zone`"), "{error}");
    assert!(!error.to_string().contains("--"), "{error}");
}
