//! The recipe of the image: whether the program can run on its base image, as far as that can be
//! told without building it. Deliberately absent: a container runtime.

use std::collections::BTreeSet;
use std::process::Command;

use crate::ZONDA;

/// The recipe of the container image.
const RECIPE: &str = include_str!("../../../../packaging/Dockerfile");
/// The Debian release of the base image, as its name and as that of the build's image have it.
const RELEASE: (&str, &str) = ("12", "bookworm");
/// Version of the C library in that release (package `libc6`), as its symbols have it.
const C_LIBRARY: [u32; 2] = [2, 36];
/// Shared libraries of the base image: those of Debian's `libc6` that programs in Rust are linked
/// with, and that of `libgcc-s1`.
const LIBRARIES: [&str; 7] = [
    "libc.so.6",
    "libm.so.6",
    "libpthread.so.0",
    "libdl.so.2",
    "librt.so.1",
    "libgcc_s.so.1",
    "ld-linux-*",
];

/// Returns what `readelf` (binutils, which the linker belongs to) prints of the program.
fn read_program(flag: &str) -> String {
    let output = Command::new("readelf").args(["--wide", flag, ZONDA]).env("LC_ALL", "C").output();
    let output = output.expect("readelf is installed (binutils)");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Whether the base image has a library of this name.
fn is_in_the_image(library: &str) -> bool {
    LIBRARIES.iter().any(|known| match known.strip_suffix('*') {
        Some(start) => library.starts_with(start),
        None => library == *known,
    })
}

/// Returns the numbers of a version such as `2.36`.
fn numbers(version: &str) -> Vec<u32> {
    version.split('.').map(|number| number.parse().unwrap()).collect()
}

#[test]
fn image_has_every_library_that_the_program_is_linked_with() {
    let text = read_program("--dynamic");
    let needed: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("(NEEDED)"))
        .filter_map(|line| line.split_once('[')?.1.strip_suffix(']'))
        .collect();
    assert!(needed.contains(&"libc.so.6"), "the program is linked with the C library:\n{text}");
    let missing: Vec<_> = needed.iter().filter(|library| !is_in_the_image(library)).collect();
    assert!(missing.is_empty(), "the base image lacks {missing:?} of {needed:?}");
}

#[test]
fn image_is_built_on_the_debian_release_that_its_base_is_of() {
    let (number, name) = RELEASE;
    let images: Vec<&str> = RECIPE.lines().filter_map(|line| line.strip_prefix("FROM ")).collect();
    let [build, base] = images[..] else { panic!("{images:?}") };
    assert!(build.starts_with("rust:") && build.contains(&format!("-{name}@")), "{build}");
    assert!(base.starts_with(&format!("gcr.io/distroless/cc-debian{number}:")), "{base}");
}

/// On a machine whose C library is newer than the image's, the program under test may ask for
/// symbols that one built by the recipe does not: the test then tells so, and looks no further.
#[test]
fn image_has_every_version_of_the_c_library_that_the_program_asks_for() {
    let own = Command::new("getconf").arg("GNU_LIBC_VERSION").output().unwrap().stdout;
    let own = String::from_utf8(own).unwrap();
    let own = own.trim().strip_prefix("glibc ").expect("the C library is glibc");
    if numbers(own)[..] > C_LIBRARY[..] {
        println!("not looked at: the program is linked with glibc {own} here");
        return;
    }
    let text = read_program("--version-info");
    let names = text.split_whitespace().filter_map(|word| word.strip_prefix("GLIBC_"));
    let versions: BTreeSet<&str> = names.filter(|it| it.starts_with(char::is_numeric)).collect();
    assert!(!versions.is_empty(), "{text}");
    let later: Vec<_> = versions.iter().filter(|it| numbers(it)[..] > C_LIBRARY[..]).collect();
    assert!(later.is_empty(), "the C library of Debian {} lacks {later:?}", RELEASE.0);
}
