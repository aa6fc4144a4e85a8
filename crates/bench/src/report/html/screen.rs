//! The page in a real browser: nothing on its console, and nothing wider than the screen.
//!
//! A frame of the wanted width shows a copy of the page that tells its own width to the page
//! around it, because the browser's windows cannot be as narrow as a phone.

use super::html;
use crate::report::sample::run;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Renders the page in a frame of this width and gives the DOM after it and the console's lines.
fn render(directory: &Path, width: u32, dark: bool) -> (String, String) {
    let probe = "<script>onload = () => parent.postMessage(\
                 [Math.max(0, document.documentElement.scrollWidth - innerWidth),\
                  matchMedia('(prefers-color-scheme: dark)').matches].join(), '*')</script>";
    let page = html(&run()).replace("</body>", &format!("{probe}</body>"));
    fs::write(directory.join("page.html"), page).unwrap();
    let around = format!(
        "<!doctype html><link rel=icon href=data:,><script>onmessage = event => \
         document.title = 'told ' + event.data</script>\
         <iframe src=page.html style='border:0;width:{width}px;height:900px'></iframe>"
    );
    fs::write(directory.join("around.html"), around).unwrap();
    let output = Command::new("timeout")
        .args(["60", "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"])
        .args(["--no-first-run", "--disable-background-networking", "--disable-component-update"])
        .args(["--disable-sync", "--enable-logging=stderr", "--window-size=1500,1000"])
        .arg(format!("--blink-settings=preferredColorScheme={}", if dark { 0 } else { 1 }))
        .arg(format!("--user-data-dir={}", directory.join("profile").display()))
        .args(["--virtual-time-budget=2000", "--dump-dom"])
        .arg(format!("file://{}", directory.join("around.html").display()))
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_page_fits_phone_and_desk_in_both_schemes_without_a_word_on_the_console() {
    if Command::new("chromium").arg("--version").output().is_err() {
        return;
    }
    let directory = std::env::temp_dir().join(format!("zonda-report-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    for width in [400, 1400] {
        for dark in [false, true] {
            let (dom, log) = render(&directory, width, dark);
            assert!(dom.contains(&format!("<title>told 0,{dark}</title>")), "{width}: {dom}{log}");
            assert!(!log.contains("CONSOLE"), "{log}");
        }
    }
    fs::remove_dir_all(&directory).unwrap();
}
