//! The checked-in header is what src/ffi says. `BYWAY_BLESS=1 cargo test --test header` rewrites it.
#![allow(clippy::expect_used, reason = "a test")]

include!("../abi/header.rs");

#[test]
fn header_is_up_to_date() {
    let root = env!("CARGO_MANIFEST_DIR");
    let path = format!("{root}/include/byway.h");
    let fresh = generate(root);
    if std::env::var_os("BYWAY_BLESS").is_some() {
        std::fs::write(&path, &fresh).expect("a writable header");
    }
    let checked_in = std::fs::read_to_string(&path).expect("include/byway.h");
    assert!(fresh == checked_in, "include/byway.h is stale: run `make header`");
}

#[test]
fn every_boundary_file_is_in_the_header() {
    let root = env!("CARGO_MANIFEST_DIR");
    let inside = ["mod", "guard", "handle", "failpoint", "proxy_script_on", "proxy_script_off"];
    for entry in std::fs::read_dir(format!("{root}/src/ffi")).expect("src/ffi") {
        let name = entry.expect("an entry").file_name().to_string_lossy().trim_end_matches(".rs").to_owned();
        assert!(FILES.contains(&name.as_str()) || inside.contains(&name.as_str()), "{name} is in no list");
    }
}
