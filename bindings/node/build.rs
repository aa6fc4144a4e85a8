//! Keeps the library loaded once it is: its threads outlive the thread of Node.js that loads it.

/// Passes options to the linker.
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
