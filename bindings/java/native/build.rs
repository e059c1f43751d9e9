//! Link flags of the JNI library, and the list of what it must not export.

#![allow(clippy::expect_used, reason = "a build script's way to say what is wrong")]

use std::fmt::Write as _;

fn main() {
    let root = std::env::var("CARGO_MANIFEST_DIR").expect("set by cargo");
    let exports = format!("{root}/../../../abi/exports.txt");
    println!("cargo::rerun-if-changed={exports}");
    println!("cargo::rerun-if-changed=build.rs");
    // The engine inside is this library's own: its C functions stay inside, or two copies in one process would meet.
    let mut hidden = String::from("core::arch::global_asm!(\n");
    for name in std::fs::read_to_string(&exports).expect("the golden list of exports").lines() {
        writeln!(hidden, "    \".hidden {}\",", name.trim()).expect("a string");
    }
    hidden.push_str(");\n");
    let out = std::env::var("OUT_DIR").expect("set by cargo");
    std::fs::write(format!("{out}/hidden.rs"), hidden).expect("a writable folder");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        // Threads of the engine may outlive the class loader that brought the library.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,relro,-z,now");
    }
}
