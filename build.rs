//! Gives the shared library its name for the dynamic linker; with feature `header` also writes include/byway.h.

#[cfg(feature = "header")]
include!("abi/header.rs");

/// First number of the soname. It changes when a program linked to an older library would break.
const ABI: &str = "0";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let os = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if os == "linux" {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libbyway.so.{ABI}");
        // A thread stuck in getaddrinfo must find its code when the host has closed the library.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,relro,-z,now");
    }
    #[cfg(feature = "header")]
    {
        println!("cargo::rerun-if-changed=src/ffi");
        println!("cargo::rerun-if-changed=cbindgen.toml");
        let root = std::env::var("CARGO_MANIFEST_DIR").expect("set by cargo");
        std::fs::write(format!("{root}/include/byway.h"), generate(&root)).expect("a writable header");
    }
}
