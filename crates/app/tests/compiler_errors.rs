//! What the compiler says of programs that use the library wrongly is in the library's own words.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// Prefix of the names of the crates that a program does not see.
const INTERNAL: &str = "zonda_";

/// A program's lines, and what the compiler must say of them.
struct Mistake {
    lines: &'static str,
    said: &'static str,
}

/// Mistakes with code and types that the user's program has to bring.
const MISTAKES: &[Mistake] = &[
    Mistake {
        lines: r#"app.handle("a", |_: &Query, _: &mut Reply| 5_u8);"#,
        said: "a handler cannot return `u8`",
    },
    Mistake {
        lines: r#"app.handle("a", |_: &Query, _: String| {});"#,
        said: "cannot be used as a handler or as middleware",
    },
    Mistake {
        lines: r#"app.handle("a", |_: &Query, _: &Reply| {});"#,
        said: "cannot be used as a handler or as middleware",
    },
    Mistake {
        lines: r#"app.handle("a", |_: &Query, reply: &mut Reply| reply.answer("192.0.2.1"));"#,
        said: "`str` cannot be used as a record of a reply",
    },
    Mistake {
        lines: r#"app.handle("a", |query: &Query, _: &mut Reply| {
            let _: String = query.name();
        });"#,
        said: "mismatched types",
    },
    Mistake {
        lines: r#"app.handle("a", |query: &Query, reply: &mut Reply| reply.nope(query));"#,
        said: "no method named `nope`",
    },
    Mistake {
        lines: r#"app.handle("a", |_: zonda::State<u8>, _: &Query| {});"#,
        said: "cannot be used as a handler or as middleware",
    },
    Mistake {
        lines: r#"app.handle_async("a", |_: zonda::OwnedQuery| async { 5_u8 });"#,
        said: "a handler cannot return `u8`",
    },
    Mistake {
        lines: r#"app.handle_async("a", |_: &Query| async { Reply::default() });"#,
        said: "cannot be used as an asynchronous handler",
    },
    Mistake {
        lines: "app.middleware(5_u8);",
        said: "`u8` cannot be used as a handler or as middleware",
    },
    Mistake {
        lines: "struct Own; impl zonda::Stage for Own {} app.middleware(Own);",
        said: "code that implements `zonda::Stage` is added by `App::stage`",
    },
    Mistake { lines: "app.stage(5_u8);", said: "`u8` cannot be used as a stage" },
    Mistake {
        lines: r#"app.source("a", 5_u8);"#,
        said: "`u8` cannot be used as a source of answers",
    },
    Mistake { lines: "app.cache(5_u8);", said: "`u8` cannot be used as a cache of replies" },
    Mistake { lines: "app.logger(5_u8);", said: "`u8` cannot be used as a logger" },
    Mistake {
        lines: r#"app.store("a", 5_u8);"#,
        said: "`u8` cannot be used as a store of records",
    },
    Mistake {
        lines: r#"app.handle("a", |_: &Query, reply: &mut Reply| reply.nxdomain_with("60"));"#,
        said: "`&str` does not say how long resolvers cache a negative reply",
    },
    Mistake {
        lines: "struct Own; impl zonda::Source for Own {} app.source(\"a\", Own);",
        said: "missing `answer` in implementation",
    },
    Mistake {
        lines: "struct Own; impl zonda::Logger for Own { fn log(&self, _: u8) {} }",
        said: "incompatible type for trait",
    },
    Mistake {
        lines: "let _: u8 = app.start_blocking().unwrap_err();",
        said: "expected `u8`, found `Error`",
    },
    Mistake {
        lines: "let zonda::Error::Serve(error) = app.start_blocking().unwrap_err() else { return };
                let _: u8 = error;",
        said: "expected `u8`, found `ServeError`",
    },
    Mistake {
        lines: "let _: zonda::Error = 5_u8.into();",
        said: "the trait bound `zonda::Error: From<u8>` is not satisfied",
    },
    Mistake {
        lines: "app.logger(|event: &zonda::Event| { let _: u8 = event.qtype(); });",
        said: "expected `u8`, found `Type`",
    },
    Mistake {
        lines: "app.logger(|event: &zonda::Event| { let _: u8 = event; });",
        said: "expected `u8`, found `&Event<'_>`",
    },
    Mistake {
        lines: r#"app.handle("a", |query: &Query, _: &mut Reply| {
            std::thread::scope(|threads| { threads.spawn(|| query.qtype()); });
        });"#,
        said: "cannot be shared between threads safely",
    },
    Mistake {
        lines: r#"app.handle_async("a", |_: zonda::OwnedQuery| async {
            let count = std::rc::Rc::new(5);
            std::future::ready(()).await;
            drop(count);
            Reply::default()
        });"#,
        said: "future cannot be sent between threads safely",
    },
    Mistake {
        lines: "match zonda::Reason::Answered { zonda::Reason::Cached => {} }",
        said: "non-exhaustive patterns",
    },
    Mistake {
        lines: "struct Own; impl zonda::Record for Own {}",
        said: "missing: `rtype`, `ttl_secs`, `owner`, `write_rdata`",
    },
    Mistake {
        lines: "let _: u8 = zonda::Message::parse(b\"\").unwrap().records;",
        said: "found `Vec<Record>`",
    },
    Mistake {
        lines: "let _: u8 = zonda::Message::parse(b\"\").unwrap_err();",
        said: "expected `u8`, found `Malformed`",
    },
    Mistake {
        lines: "let _: u8 = \"A\".parse::<zonda::Type>().unwrap_err();",
        said: "expected `u8`, found `UnknownMnemonic`",
    },
];

/// Further mistakes, whose errors are the compiler's own.
const MORE_MISTAKES: &[&str] = &[
    r#"let n: zonda::Name = "a".into();"#,
    r#"app.zone(5, "x");"#,
    "app.forward(std::rc::Rc::new(std::cell::Cell::new(5)));",
    r#"app.metrics("127.0.0.1:80");"#,
    r#"app.handle("a", |_: &Query, reply: &mut Reply| { reply.rcode = 5; });"#,
    r#"app.handle("a", |_: &Query, reply: &mut Reply| { reply.answers(vec![1]); });"#,
    r#"app.handle("a", |_: &Query, reply: &mut Reply| { reply.defer_to(5); });"#,
    r#"app.handle("a", |_: &Query, reply: &mut Reply| { reply.cache(5, 5); });"#,
    r#"app.handle("a", |_: &Query, reply: &mut Reply| { reply.extended_error(5, ""); });"#,
    r#"app.handle("a", |_: &Query, reply: &mut Reply| { reply.retain(|x| true); });"#,
    r#"app.handle("a", |_: &Query, reply: &mut Reply| { let _: u8 = reply.tags(); });"#,
    r#"app.handle("a", |_: &Query, reply: &mut Reply| for r in reply.records() { r.nope() });"#,
    r#"app.handle("a", |query: &Query, _: &mut Reply| { let _: u8 = query.options(); });"#,
    r#"app.handle("a", |query: &Query, _: &mut Reply| { let _: u8 = query.cookie(); });"#,
    r#"app.handle("a", |query: &Query, _: &mut Reply| { let _: u8 = query.peer(); });"#,
    r#"app.handle("a", |query: &Query, _: &mut Reply| { query.pattern().nope(); });"#,
    r#"app.handle("a", |query, reply| { reply.nope(); });"#,
    r#"let n = std::cell::Cell::new(5); app.handle("a", |_: &Query, _: &mut Reply| n.set(6));"#,
    "let _ = Reply { rcode: 5 };",
    r#"app.handle_async("a", |_| async { Reply::default() });"#,
    r#"app.handle_async("a", 5);"#,
    "app.middleware(|_: Query, _: Reply| {});",
    r#"app.source("a", || {});"#,
    "app.after(5);",
    "app.logger(|| {});",
    "app.logger(|_: Query| {});",
    "app.logger(|event: &zonda::Event| { let _: u8 = event.tags(); });",
    "app.logger(|event: &zonda::Event| event.peer.nope());",
    r#"app.store("a", std::sync::Arc::new(5));"#,
    "app.cache(std::sync::Arc::new(5));",
    "let _: u8 = app.run();",
    "let _: u8 = app.serve();",
    r#"app.handle("a", |_: zonda::Captures<u8>| {});"#,
    r#"app.handle("a", || std::rc::Rc::new(5));"#,
    "struct Own; impl zonda::FromQuery for Own {}",
    "struct Own; impl zonda::IntoReply for Own {}",
    "let _ = zonda::MemoryStore::new().nope();",
    r#"let _ = zonda::RecordSet::new("a", 5);"#,
    "struct Own; impl zonda::Store for Own {}",
    "struct Own; impl zonda::Cache for Own {}",
    "struct Own; impl zonda::Stage for Own { fn before(&self, _: u8) {} }",
    "match app.start_blocking().err().unwrap() { zonda::Error::Silence => {} }",
    "let _: zonda::Error = std::io::Error::last_os_error().into();",
    "let _: zonda::A = zonda::Aaaa::new([0; 16]);",
    "let _ = zonda::A::new([1, 2, 3, 4]) == zonda::Aaaa::new([0; 16]);",
    "let _ = zonda::Type::A == 1;",
    "let _: zonda::Record = 5;",
    "fn takes<T: Send + Copy>() {} takes::<Query>(); takes::<Reply>(); takes::<zonda::Event>();",
    "fn takes<T: Clone>() {} takes::<App>(); takes::<zonda::Running>();",
];

/// Returns the directory with the library that this test is linked with, and the library.
fn library() -> (PathBuf, PathBuf) {
    let test = std::env::current_exe().unwrap();
    let directory = test.parent().unwrap().to_owned();
    let is_library = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("libzonda-") && name.ends_with(".rlib")
    };
    let changed = |path: &PathBuf| -> SystemTime { path.metadata().unwrap().modified().unwrap() };
    let files = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
    let newest = files.filter(is_library).max_by_key(changed).expect("cargo builds the library");
    (directory, newest)
}

/// Returns the errors of a program that depends on nothing but the library.
fn errors(lines: &str, file: &Path) -> String {
    let (directory, library) = library();
    let program = format!(
        "#![allow(unused)]\nuse zonda::{{App, Query, Reply}};\nfn main() {{\n    \
         let mut app = App::new();\n    {lines}\n}}\n"
    );
    fs::write(file, program).unwrap();
    let compiler = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args(["--edition", "2024", "--emit", "metadata", "--crate-name", "program", "-o"])
        .arg(file.with_extension("rmeta"))
        .arg("--extern")
        .arg(format!("zonda={}", library.display()))
        .arg("-L")
        .arg(format!("dependency={}", directory.display()))
        .arg(file)
        .output()
        .unwrap();
    assert!(!compiler.status.success(), "the program compiles: {lines}");
    String::from_utf8(compiler.stderr).unwrap()
}

/// Returns the lines of errors that name a crate or a type which programs do not see. Lines with
/// source text of the library and its place are left out.
fn foreign(errors: &str) -> Vec<&str> {
    let is_source = |line: &str| {
        let line = line.trim_start();
        line.starts_with("-->")
            || line.starts_with(":::")
            || line.starts_with(|c: char| c.is_ascii_digit())
    };
    let is_foreign = |line: &&str| {
        let names = ["HandlerQuery", "HandlerReply"];
        !is_source(line)
            && (line.contains(INTERNAL) || names.iter().any(|name| line.contains(name)))
    };
    errors.lines().filter(is_foreign).collect()
}

#[test]
fn compiler_errors_name_no_crate_that_the_program_does_not_depend_on() {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let mut wrong = String::new();
    for (number, Mistake { lines, said }) in MISTAKES.iter().enumerate() {
        let errors = errors(lines, &directory.join(format!("mistake{number}.rs")));
        if !errors.contains(said) || !foreign(&errors).is_empty() {
            wrong += &format!("{lines}\nforeign: {:#?}\n{errors}\n", foreign(&errors));
        }
    }
    for (number, lines) in MORE_MISTAKES.iter().enumerate() {
        let errors = errors(lines, &directory.join(format!("more{number}.rs")));
        if !foreign(&errors).is_empty() {
            wrong += &format!("{lines}\nforeign: {:#?}\n", foreign(&errors));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
