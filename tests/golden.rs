//! What a released header has promised stays promised: exports, numbers and layouts against the lists in `abi/`.
//! `make header` rewrites the lists; numbers that are gone stay in them, marked as retired.
#![allow(unsafe_code, reason = "calls the boundary as a host does")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;
use std::fmt::Write;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn file(path: &str) -> String {
    std::fs::read_to_string(format!("{ROOT}/{path}")).unwrap_or_default()
}

fn blessing() -> bool {
    std::env::var_os("BYWAY_BLESS").is_some()
}

/// Compares a golden list with what it should be, or rewrites it.
fn check(path: &str, fresh: &str) {
    if blessing() {
        std::fs::write(format!("{ROOT}/{path}"), fresh).expect("a writable list");
    }
    assert_eq!(file(path), fresh, "{path} is stale: run `make header` and read what it changes");
}

/// Names of the header's functions, sorted.
fn functions(header: &str) -> Vec<String> {
    let mut names: Vec<String> = header
        .split("\nBYWAY_API")
        .skip(1)
        .filter_map(|text| {
            let head = text.split('(').next()?;
            Some(head[head.rfind("byway_")?..].trim().to_owned())
        })
        .collect();
    names.sort_unstable();
    names
}

/// `(struct, fields)` in the header's order.
fn structs(header: &str) -> Vec<(String, Vec<String>)> {
    let mut all = Vec::new();
    for text in header.split("\ntypedef struct ").skip(1) {
        let Some((name, rest)) = text.split_once(" {\n") else { continue };
        if name.contains(';') {
            continue;
        }
        let body = rest.split("\n}").next().unwrap_or_default();
        let lines = body.lines().map(str::trim).filter(|line| !line.starts_with(['/', '*']));
        let code = lines.collect::<Vec<_>>().join(" ");
        let fields = code.split(';').map(str::trim).filter(|text| !text.is_empty()).map(|text| {
            let name = match text.split_once("(*") {
                Some((_, rest)) => rest.split(')').next().unwrap_or_default(),
                None => text.rsplit([' ', '*']).next().unwrap_or_default(),
            };
            name.split('[').next().unwrap_or_default().to_owned()
        });
        all.push((name.to_owned(), fields.collect()));
    }
    all
}

#[test]
fn exports_are_the_headers_functions() {
    let names = functions(&file("include/byway.h"));
    assert!(names.len() > 40, "the header has functions");
    check("abi/exports.txt", &(names.join("\n") + "\n"));
}

#[test]
fn numbers_are_never_changed_and_retired_ones_stay_listed() {
    let header = file("include/byway.h");
    let mut now = Vec::new();
    for line in header.lines() {
        let Some((name, value)) = line.strip_prefix("#define ").and_then(|rest| rest.split_once(' ')) else {
            continue;
        };
        let version = name.starts_with("BYWAY_VERSION_");
        if let (true, false, Ok(value)) = (name.starts_with("BYWAY_"), version, value.trim().parse::<i64>()) {
            now.push((name.to_owned(), value));
        }
    }
    let mut listed = BTreeMap::new();
    let mut fresh = String::new();
    for line in file("abi/enums.txt").lines() {
        let mut words = line.split_whitespace();
        let (name, value) = (words.next().unwrap().to_owned(), words.next().unwrap().parse::<i64>().unwrap());
        let current = now.iter().find(|(other, _)| *other == name);
        if let Some((_, current)) = current {
            assert_eq!(*current, value, "{name} has been renumbered: numbers are fixed for ever");
        }
        let retired = if current.is_none() { " retired" } else { "" };
        writeln!(fresh, "{name} {value}{retired}").unwrap();
        listed.insert(name, value);
    }
    for (name, value) in now.iter().filter(|(name, _)| !listed.contains_key(name)) {
        writeln!(fresh, "{name} {value}").unwrap();
    }
    check("abi/enums.txt", &fresh);
}

#[test]
fn the_library_describes_every_struct_of_the_header() {
    use byway::ffi::arguments::byway_str;
    use byway::ffi::library::byway_layout;
    let in_header = structs(&file("include/byway.h"));
    let mut fresh = String::new();
    let mut described = Vec::new();
    for index in 0.. {
        let mut name = byway_str { data: core::ptr::null(), len: 0 };
        let (mut size, mut offsets, mut total) = (0, [0; 128], 0);
        // SAFETY: every pointer is a place for what the function writes.
        let status =
            unsafe { byway_layout(index, &mut name, &mut size, offsets.as_mut_ptr(), 128, &mut total) };
        if status == 1 {
            break;
        }
        // SAFETY: the function lends a static text.
        let name = unsafe { core::slice::from_raw_parts(name.data.cast::<u8>(), name.len) };
        let name = String::from_utf8(name.to_vec()).unwrap();
        let fields = in_header.iter().find(|(other, _)| *other == name).map(|(_, fields)| fields);
        let fields = fields.unwrap_or_else(|| panic!("{name} is described but not in the header"));
        assert_eq!(fields.len(), total, "{name}: the description forgets a field");
        write!(fresh, "{name} {size}:").unwrap();
        for (field, offset) in fields.iter().zip(offsets) {
            write!(fresh, " {field}@{offset}").unwrap();
        }
        fresh.push('\n');
        described.push(name);
    }
    for (name, _) in &in_header {
        assert!(described.contains(name), "{name} is in the header, but byway_layout does not describe it");
    }
    check("abi/layout.txt", &fresh);
}

/// Structs with a size that the library fills for the host's callbacks to read.
fn is_shown(name: &str) -> bool {
    name.ends_with("_event") || name.ends_with("_request")
}

#[test]
fn every_struct_that_grows_has_an_initialiser_that_names_its_fields() {
    let header = file("include/byway.h");
    for (name, fields) in structs(&header) {
        if fields.first().map(String::as_str) != Some("struct_size") || is_shown(&name) {
            continue;
        }
        let macro_name = format!("#define {}_INIT", name.to_uppercase());
        let at = header.find(&macro_name).unwrap_or_else(|| panic!("no {macro_name}"));
        let text = header[at..].split("\n#").next().unwrap();
        let commas = text.matches(',').count();
        assert!(commas + 1 >= fields.len(), "{macro_name} has fewer values than {name} has fields");
    }
}

#[test]
fn one_version_everywhere() {
    let version = env!("CARGO_PKG_VERSION");
    let header = file("include/byway.h");
    assert!(header.contains(&format!("#define BYWAY_VERSION_STRING \"{version}\"")));
    for (word, part) in ["MAJOR", "MINOR", "PATCH"].iter().zip(version.split('.')) {
        assert!(header.contains(&format!("#define BYWAY_VERSION_{word} {part}\n")), "{word}");
    }
    assert!(file("CHANGELOG.md").contains(&format!("## {version}")), "CHANGELOG.md names {version}");
}

/// The text of each export's body in `src/ffi`, by name.
fn bodies() -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut folders = vec![format!("{ROOT}/src/ffi")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path.to_str().unwrap().to_owned());
                continue;
            }
            if path.ends_with("failpoint.rs") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for export in text.split("#[unsafe(no_mangle)]\n").skip(1) {
                let head = export.find("fn ").map(|at| &export[at + 3..]).unwrap();
                let name = head.split('(').next().unwrap().to_owned();
                let body = &head[head.find("{\n").unwrap() + 2..];
                let body = body.split("\n}\n").next().unwrap();
                all.push((name, body.to_owned()));
            }
        }
    }
    all
}

/// Exports that answer a constant or look into a static table: nothing in them can panic.
const UNGUARDED: &[&str] = &[
    "byway_abi_version",
    "byway_version",
    "byway_version_number",
    "byway_status_name",
    "byway_status_message",
];

/// What may stand around an export's body: the guards of `guard.rs`.
const GUARDS: &[&str] = &["call(", "call_quiet(", "call_or(", "call_bare(", "status_bare("];

#[test]
fn every_export_is_one_call_of_a_guard() {
    let bodies = bodies();
    let mut names: Vec<_> = bodies.iter().map(|(name, _)| name.clone()).collect();
    names.sort_unstable();
    assert_eq!(names, functions(&file("include/byway.h")), "exports in src/ffi = functions of the header");
    // Functions private to a file that are nothing but a guard around a closure, such as `read` in error.rs.
    let mut wrappers = Vec::new();
    for entry in std::fs::read_dir(format!("{ROOT}/src/ffi")).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for function in text.split("\nfn ").skip(1) {
            let name: String = function.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let body = function.split("{\n").nth(1).unwrap_or_default();
            let code = function.split("\n}\n").next().unwrap_or_default();
            if code.contains("impl FnOnce")
                && (GUARDS.iter().any(|guard| body.contains(guard)) || body.contains("= read("))
            {
                wrappers.push(format!("{name}("));
            }
        }
    }
    for (name, body) in bodies.iter().filter(|(name, _)| !UNGUARDED.contains(&name.as_str())) {
        let code =
            body.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
        let first = code.trim_start();
        // What a guard gives may be looked at before it is handed on.
        let first = match first.strip_prefix("let ").and_then(|rest| rest.split_once(" = ")) {
            Some((_, rest)) => rest,
            None => first,
        };
        let first =
            first.strip_prefix("super::guard::").or_else(|| first.strip_prefix("guard::")).unwrap_or(first);
        let guarded = GUARDS.iter().any(|guard| first.starts_with(guard))
            || wrappers.iter().any(|wrapper| first.starts_with(wrapper.as_str()));
        assert!(guarded, "{name}: its body must be one call of a guard, but is:\n{body}");
    }
}

/// The header's comment above each function.
fn documented(header: &str) -> Vec<(String, String, String)> {
    let mut all = Vec::new();
    for (at, _) in header.match_indices("\nBYWAY_API") {
        let before = &header[..at];
        let comment = if before.ends_with("*/") { &before[before.rfind("/**").unwrap()..] } else { "" };
        let signature = header[at..].split(';').next().unwrap();
        let head = signature.split('(').next().unwrap();
        let name = head[head.rfind("byway_").unwrap()..].trim().to_owned();
        all.push((name, comment.to_owned(), signature.to_owned()));
    }
    all
}

#[test]
fn every_function_says_what_a_caller_must_know() {
    let header = file("include/byway.h");
    let mut wrong = String::new();
    for (name, comment, signature) in documented(&header) {
        let mut needs = |present: bool, what: &str| {
            if !present {
                writeln!(wrong, "{name}: {what}").unwrap();
            }
        };
        let sentence = comment.lines().nth(1).unwrap_or_default().trim_start_matches(" *").trim();
        needs(
            sentence.starts_with(|c: char| c.is_alphanumeric() || c == '`') && comment.contains('.'),
            "no sentence",
        );
        let arguments = signature.split_once('(').unwrap().1;
        let ends = name.ends_with("_free") || name.ends_with("_release");
        let gives = signature.contains("**out") || arguments.contains("struct byway_str *out");
        let returns = signature.split('(').next().unwrap().contains('*') && !name.ends_with("_retain");
        needs(
            !(gives || returns) || comment.contains("Ownership:"),
            "hands something out without `Ownership:`",
        );
        let fails =
            signature.split('(').next().unwrap().contains("byway_status ") && name != "byway_error_code";
        needs(!fails || comment.contains("Errors:"), "answers a status, no `Errors:`");
        let words = comment.replace("\n * ", " ");
        needs(!ends || words.contains("NULL is fine"), "must say that NULL is fine");
        needs(
            !arguments.contains("timeout_ms") || comment.contains("`timeout_ms`"),
            "says nothing of `timeout_ms`",
        );
        for leftover in ["# Safety", "# Errors", "[`", "crate::", "Option<", "rustdoc"] {
            needs(!comment.contains(leftover), "has words for Rust programmers");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
