//! The pages in a real browser: nothing on its console, and nothing wider than the screen.
//!
//! Frames of the wanted widths show copies of the pages that report their own width to the page
//! around them, because the browser's windows cannot be as narrow as a phone.

use super::{html, index};
use crate::data::{Cell, Run, Traffic};
use crate::report::sample::run;
use std::fs;
use std::path::Path;
use std::process::Command;
use zonda_testkit::process::required;

/// Widths of a phone and of a desk, in pixels.
const WIDTHS: [u32; 2] = [400, 1400];

/// Pages for every kind of cell.
fn pages() -> Vec<String> {
    let empty = Run { cells: Vec::new(), ..run() };
    vec![html(&run()), html(&odd()), html(&empty), index(&[("a.html".to_owned(), odd())])]
}

/// Returns a run in which everything is missing somewhere, and names and reasons are long.
fn odd() -> Run {
    let mut run = run();
    let spoil: [fn(&mut Cell); 8] = [
        |cell| cell.rounds.clear(),
        |cell| cell.rounds.truncate(1),
        |cell| cell.latency_at.clear(),
        |cell| cell.start = None,
        |cell| cell.unranked = Some("it answers REFUSED_and_more".repeat(30)),
        |cell| cell.rounds[0].traffic = Traffic::default(),
        |cell| cell.rounds[0].cpu_system_secs *= 40.0,
        |cell| cell.rounds.iter_mut().for_each(|round| round.foreign_cpu = 0.4),
    ];
    run.cells.retain(|cell| cell.server != "knot");
    for (index, cell) in run.cells.iter_mut().enumerate() {
        spoil[index % spoil.len()](cell);
        if cell.server == "bind" {
            cell.server = "an-uncommonly-long-name-of-a-server".to_owned();
        }
    }
    run.environment.command = vec!["/a/very/long/path".repeat(20)];
    run
}

/// What a copy of a page reports: how far it is too wide, and whether it is dark.
const PROBE: &str = "<script>onload = () => parent.postMessage(\
    [Math.max(0, document.documentElement.scrollWidth - innerWidth),\
     matchMedia('(prefers-color-scheme: dark)').matches].join(), '*')</script></body>";

/// Renders all pages in frames of all widths; the DOM after it and the console's lines.
fn render(folder: &Path, dark: bool) -> (String, String) {
    let mut around = "<!doctype html><link rel=icon href=data:,><title>told</title><script>\
                      onmessage = event => document.title += ' ' + event.data</script>"
        .to_owned();
    for (number, page) in pages().iter().enumerate() {
        let page = page.replace("<details", "<details open").replace("</body>", PROBE);
        fs::write(folder.join(format!("{number}.html")), page).unwrap();
        for width in WIDTHS {
            around += &format!("<iframe src={number}.html width={width} height=900></iframe>");
        }
    }
    fs::write(folder.join("around.html"), around).unwrap();
    let output = Command::new("timeout")
        .args(["60", "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"])
        .args(["--no-first-run", "--disable-background-networking", "--disable-component-update"])
        .args(["--disable-sync", "--enable-logging=stderr", "--window-size=1500,1000"])
        .arg(format!("--blink-settings=preferredColorScheme={}", if dark { 0 } else { 1 }))
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .args(["--virtual-time-budget=5000", "--dump-dom"])
        .arg(format!("file://{}", folder.join("around.html").display()))
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_pages_fit_phone_and_desk_in_both_schemes_without_a_word_on_the_console() {
    if required("chromium").is_none() {
        return;
    }
    let folder = std::env::temp_dir().join(format!("zonda-report-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    for dark in [false, true] {
        let (dom, log) = render(&folder, dark);
        let title = dom.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
        let told = title.map_or("", |(title, _)| title).trim_start_matches("told");
        let expected = format!(" 0,{dark}").repeat(pages().len() * WIDTHS.len());
        assert_eq!(told, expected, "{log}");
        assert!(!log.contains("CONSOLE"), "{log}");
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn no_number_of_any_page_is_undefined() {
    for page in pages() {
        assert!(!page.contains("NaN") && !page.contains("inf\"") && !page.contains("inf "));
    }
}
