//! API servers that are slow, wrong or gone: nothing hangs, nothing is taken for a whole list, and
//! objects are listed again only where they must be.

#![allow(clippy::unwrap_used)]

mod scripted;

use scripted::{
    end_of_list, follow_of, follow_script, hang, is_stream, is_watch, line, page, request_head,
    write as respond, write_and_keep,
};
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};
use zonda_kubernetes::Place;

/// The events of a streamed list of one namespace, `a`.
const LISTED: &[&str] = &["begin", "+a", "synced", "connected"];

/// The body of a streamed list of one namespace, `a`, at version 5.
fn streamed() -> String {
    line("ADDED", "a", "4") + &end_of_list("5")
}

#[test]
fn a_watch_that_is_cut_resumes_at_its_version_without_a_list() {
    let mut followed = follow_script(|number, _, stream| match number {
        0 => {
            respond(stream, "200 OK", &(streamed() + &line("ADDED", "b", "7") + "{\"type\":\"ADD"))
        }
        _ => {
            respond(stream, "200 OK", &line("DELETED", "a", "9"));
            hang();
        }
    });
    followed.expect(LISTED);
    followed.expect(&["+b"]);
    followed.expect_failure("a watch ended at once");
    followed.expect(&["connected", "-a"]);
    let paths = followed.paths();
    assert!(paths[1].contains("resourceVersion=7&") && !is_stream(&paths[1]), "{paths:?}");
}

#[test]
fn a_bookmark_moves_the_version_at_which_a_watch_resumes() {
    let mut followed = follow_script(|number, _, stream| match number {
        0 => respond(stream, "200 OK", &(streamed() + &line("BOOKMARK", "", "88"))),
        _ => hang(),
    });
    followed.expect(LISTED);
    followed.expect_failure("ended at once");
    followed.expect_failure("no response in time");
    assert!(followed.paths()[1].contains("resourceVersion=88&"));
}

#[test]
fn a_version_that_is_too_old_has_objects_listed_again_by_event_and_by_status() {
    let mut followed = follow_script(|number, _, stream| match number {
        0 => {
            let gone = "{\"type\":\"ERROR\",\"object\":{\"code\":410,\"message\":\"too old\"}}\n";
            respond(stream, "200 OK", &(streamed() + gone));
        }
        1 => respond(stream, "200 OK", &streamed()),
        2 => respond(stream, "410 Gone", "{\"code\":410}"),
        _ => {
            respond(stream, "200 OK", &streamed());
            hang();
        }
    });
    followed.expect(LISTED);
    followed.expect_failure("too old");
    followed.expect(LISTED);
    followed.expect_failure("ended at once");
    followed.expect_failure("too old");
    followed.expect(LISTED);
}

#[test]
fn a_list_that_is_cut_off_is_never_taken_for_a_whole_one() {
    let mut followed = follow_script(|number, _, stream| match number {
        0 => respond(stream, "200 OK", &line("ADDED", "a", "4")),
        1 => respond(stream, "422 Unprocessable Entity", "{}"),
        2 => {
            let whole = page("5", "", &["a", "b"]);
            respond(stream, "200 OK", whole.strip_suffix("]}").unwrap());
        }
        _ => hang(),
    });
    followed.expect(&["begin", "+a"]);
    followed.expect_failure("a streamed list was cut off");
    followed.expect(&["begin", "+a", "+b"]);
    followed.expect_failure("a list was cut off before its end");
}

#[test]
fn a_server_without_streamed_lists_is_asked_for_pages_and_then_watched() {
    let mut followed = follow_script(|_, path, stream| match path {
        path if is_stream(path) => respond(stream, "400 Bad Request", "{}"),
        path if is_watch(path) => {
            respond(stream, "200 OK", &line("ADDED", "c", "6"));
            hang();
        }
        path if path.contains("continue=x") => respond(stream, "200 OK", &page("5", "", &["b"])),
        _ => respond(stream, "200 OK", &page("5", "x", &["a"])),
    });
    followed.expect(&["begin", "+a", "+b", "synced", "connected", "+c"]);
    let paths = followed.paths();
    assert!(paths[1].ends_with("?limit=500") && paths[3].contains("resourceVersion=5&"));
}

#[test]
fn pages_of_a_list_come_over_one_connection_while_the_server_keeps_it() {
    let mut followed = follow_script(|_, path, stream| match path {
        path if is_stream(path) => respond(stream, "400 Bad Request", "{}"),
        path if is_watch(path) => hang(),
        _ => {
            write_and_keep(stream, &page("5", "x", &["a"]));
            let head = request_head(stream).unwrap();
            assert!(head.contains("continue=x"), "{head}");
            write_and_keep(stream, &page("5", "y", &["b"]));
            let head = request_head(stream).unwrap();
            assert!(head.contains("continue=y"), "{head}");
            respond(stream, "200 OK", &page("5", "", &["c"]));
        }
    });
    followed.expect(&["begin", "+a", "+b", "+c", "synced"]);
}

#[test]
fn a_page_that_expired_begins_the_list_anew() {
    let mut followed = follow_script(|number, path, stream| match path {
        path if is_stream(path) => respond(stream, "400 Bad Request", "{}"),
        path if is_watch(path) => hang(),
        path if path.contains("continue=x") => respond(stream, "410 Gone", "{}"),
        _ if number == 1 => respond(stream, "200 OK", &page("5", "x", &["a"])),
        _ => respond(stream, "200 OK", &page("6", "", &["b"])),
    });
    followed.expect(&["begin", "+a"]);
    followed.expect_failure("too old");
    followed.expect(&["begin", "+b", "synced"]);
}

#[test]
fn a_server_that_streams_but_never_ends_the_list_is_asked_for_pages() {
    let mut followed = follow_script(|_, path, stream| match path {
        path if is_stream(path) => {
            respond(stream, "200 OK", &line("ADDED", "a", "4"));
            hang();
        }
        path if is_watch(path) => hang(),
        _ => respond(stream, "200 OK", &page("5", "", &["a"])),
    });
    followed.expect(&["begin", "+a"]);
    followed.expect_failure("no end of a list in time");
    followed.expect(&["begin", "+a", "synced"]);
}

#[test]
fn a_namespace_that_the_account_may_not_read_is_taken_for_one_that_is_there() {
    let place = |url: &str| Place::Endpoint { url: url.to_owned(), ca: None, client: None };
    let script = |number, _: &str, stream: &mut TcpStream| match number {
        0 => respond(stream, "403 Forbidden", "{\"message\":\"may not list\"}"),
        _ => {
            respond(stream, "200 OK", &streamed());
            hang();
        }
    };
    let mut followed = follow_of("shop", script, place);
    followed.expect(&["begin", "+shop", "synced", "connected"]);
    // Once it may, it has what is there.
    followed.expect(LISTED);
    assert!(followed.paths()[1].contains("fieldSelector=metadata.name%3Dshop"));
}

#[test]
fn a_refusal_is_told_with_its_text_and_asked_again_more_and_more_slowly() {
    let began = Instant::now();
    let mut followed = follow_script(|number, _, stream| match number {
        0 => respond(stream, "200 OK", &streamed()),
        1 => respond(stream, "401 Unauthorized", "{\"message\":\"who is it\"}"),
        2 => respond(stream, "403 Forbidden", "{\"message\":\"may not list\"}"),
        3 => respond(stream, "429 Too Many Requests", "slow down"),
        4..7 => respond(stream, "503 Service Unavailable", ""),
        _ => {
            respond(stream, "200 OK", &streamed());
            hang();
        }
    });
    followed.expect(LISTED);
    followed.expect_failure("a watch ended at once");
    followed.expect_failure("does not know this client (401): who is it");
    followed.expect_failure("see the roles of the account: may not list");
    followed.expect_failure("answers 429: slow down");
    for _ in 0..3 {
        followed.expect_failure("answers 503");
    }
    followed.expect(&["connected", "+a"]);
    // 20 + 40 + 80 + 160 + 200 + 200 + 200 ms, and what is added at random.
    assert!(began.elapsed() >= Duration::from_millis(900));
}

#[test]
fn a_server_that_fails_with_500_is_asked_for_pages() {
    let mut followed = follow_script(|_, path, stream| match path {
        path if is_stream(path) => respond(stream, "500 Internal Server Error", "etcd is too old"),
        path if is_watch(path) => hang(),
        _ => respond(stream, "200 OK", &page("5", "", &["a"])),
    });
    followed.expect(&["begin", "+a", "synced"]);
}

#[test]
fn a_failure_with_500_does_not_end_streamed_lists() {
    let mut followed = follow_script(|number, path, stream| match number {
        0 => respond(stream, "500 Internal Server Error", "for once"),
        1 => respond(stream, "200 OK", &page("5", "", &["a"])),
        2 => respond(stream, "410 Gone", "{}"),
        3 if is_stream(path) => {
            respond(stream, "200 OK", &streamed());
            hang();
        }
        _ => {}
    });
    followed.expect(&["begin", "+a", "synced"]);
    followed.expect_failure("too old");
    followed.expect(LISTED);
}

/// A namespace whose labels are no labels, in JSON.
const UNDECODABLE: &str = r#"{"metadata":{"name":"bad","resourceVersion":"6","labels":7}}"#;

#[test]
fn an_object_that_cannot_be_decoded_is_told_and_stalls_neither_lists_nor_watches() {
    let added = format!("{{\"type\":\"ADDED\",\"object\":{UNDECODABLE}}}\n");
    let list = page("5", "", &["a", "b"]).replacen(
        "{\"metadata\":{\"name\":\"b\"}}",
        &format!("{UNDECODABLE},{{\"metadata\":{{\"name\":\"b\"}}}}"),
        1,
    );
    let mut followed = follow_script(move |number, path, stream| match number {
        0 => respond(stream, "200 OK", &(added.clone() + &streamed() + &added)),
        1 => respond(stream, "410 Gone", "{}"),
        _ if is_stream(path) => respond(stream, "422 Unprocessable Entity", "{}"),
        _ if is_watch(path) => hang(),
        _ => respond(stream, "200 OK", &list),
    });
    followed.expect(&["begin"]);
    followed.expect_undecodable("bad");
    followed.expect(&["+a", "synced", "connected"]);
    followed.expect_undecodable("bad");
    followed.expect_failure("ended at once");
    followed.expect_failure("too old");
    assert!(followed.paths()[1].contains("resourceVersion=6&"), "the watch goes on behind it");
    followed.expect(&["begin", "+a"]);
    followed.expect_undecodable("bad");
    followed.expect(&["+b", "synced"]);
}

#[test]
fn what_is_no_json_or_no_http_fails_and_is_asked_again() {
    let mut followed = follow_script(|number, _, stream| match number {
        0 => respond(stream, "200 OK", "<html>a captive portal</html>\n"),
        1 => respond(stream, "200 OK", "{\"type\":\"ADDED\",\"object\":[1]}\n"),
        2 => drop(stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n")),
        3 => {}
        _ => {
            respond(stream, "200 OK", &streamed());
            hang();
        }
    });
    followed.expect(&["begin"]);
    followed.expect_failure("what is no object");
    followed.expect(&["begin"]);
    followed.expect_failure("what is no object");
    followed.expect_failure("no connection");
    followed.expect_failure("no connection");
    followed.expect(LISTED);
}

#[test]
fn a_line_without_end_is_refused_at_the_bound_of_an_object() {
    let mut followed = follow_script(|number, _, stream| match number {
        0 => {
            respond(stream, "200 OK", "{\"type\":\"");
            // Until the client has had enough.
            while stream.write_all(&[b'x'; 64 << 10]).is_ok() {}
        }
        _ => {
            respond(stream, "200 OK", &streamed());
            hang();
        }
    });
    followed.expect(&["begin"]);
    followed.expect_failure("more than 4194304 octets");
    followed.expect(LISTED);
}

#[test]
fn a_head_without_end_is_refused() {
    let mut followed = follow_script(|number, _, stream| match number {
        0 => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nX: ");
            while stream.write_all(&[b'x'; 64 << 10]).is_ok() {}
        }
        _ => {
            respond(stream, "200 OK", &streamed());
            hang();
        }
    });
    followed.expect_failure("no connection");
    followed.expect(LISTED);
}

/// Sends a text without end, an octet at a time.
fn trickle(stream: &mut impl Write) {
    while stream.write_all(b" ").is_ok() {
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_list_that_trickles_is_cut_when_its_time_is_over() {
    let began = Instant::now();
    let mut followed = follow_script(|_, path, stream| match is_stream(path) {
        true => respond(stream, "400 Bad Request", "{}"),
        false => {
            respond(stream, "200 OK", "{\"items\":[");
            trickle(stream);
        }
    });
    followed.expect(&["begin"]);
    followed.expect_failure("no data in time");
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_refusal_that_trickles_is_cut_when_its_time_is_over() {
    let began = Instant::now();
    let mut followed = follow_script(|_, _, stream| {
        respond(stream, "403 Forbidden", "never");
        trickle(stream);
    });
    followed.expect_failure("never");
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_watch_that_brings_nothing_is_cut_and_resumed_at_its_version() {
    let mut followed = follow_script(|_, _, stream| {
        respond(stream, "200 OK", &streamed());
        hang();
    });
    followed.expect(LISTED);
    followed.expect_failure("no data in time");
    followed.expect(&["connected"]);
    assert!(followed.paths()[1].contains("resourceVersion=5&"));
}

#[test]
fn a_receiver_that_is_slow_holds_the_server_back_and_loses_nothing() {
    let mut followed = follow_script(|_, _, stream| {
        respond(stream, "200 OK", "");
        for number in 0..5000 {
            let _ = stream.write_all(line("ADDED", &format!("n{number}"), "4").as_bytes());
        }
        let _ = stream.write_all(end_of_list("5").as_bytes());
        hang();
    });
    followed.expect(&["begin"]);
    std::thread::sleep(Duration::from_millis(300));
    for number in 0..5000 {
        assert_eq!(followed.next(), format!("+n{number}"));
    }
    followed.expect(&["synced", "connected"]);
}
