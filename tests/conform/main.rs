//! Conformance runner: every case of every file in `BYWAY_VECTORS` (default `tests/vectors`).
//!
//! One line per failing case, then `rust: N passed, N failed[, N skipped (kinds …)]`. A kind nobody runs is
//! counted and named, never passed over in silence.
#![allow(clippy::print_stdout, clippy::panic, clippy::unwrap_used, clippy::expect_used)]

mod chains;
mod condition;
mod dial;
mod mesh;
mod net;
mod okhttp;
mod pac;
#[cfg(feature = "script")]
mod pac_script;
mod pick;
mod proxy;
mod race;
mod routing;
#[cfg(feature = "script")]
mod script;
mod source;
mod tag;

#[path = "../engines/mod.rs"]
mod engines;
#[path = "../naive/mod.rs"]
mod naive;

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What came of one case.
pub enum Outcome {
    /// Everything the case expects holds.
    Pass,
    /// What was expected and what came instead.
    Fail(String),
    /// No runner for this kind yet, or byway has no such concept.
    Skip,
}

impl Outcome {
    /// Pass when both are equal, else a failure that shows both.
    pub fn equal<T: PartialEq + std::fmt::Debug>(got: T, want: T) -> Outcome {
        if got == want { Outcome::Pass } else { Outcome::Fail(format!("got {got:?}, want {want:?}")) }
    }
}

/// Runs one case of one file; the file's stem tells kinds of the same name apart.
fn run(file: &str, kind: &str, case: &Value) -> Outcome {
    match (file, kind) {
        (
            "dubbo_chain",
            "tag" | "tag-parse" | "tag-level" | "tag-lifecycle" | "tag-static-config" | "string_match"
            | "param_match" | "mock" | "ip",
        ) => tag::run(kind, case),
        (
            "dubbo_chain",
            "chain" | "chain-cache" | "chain-order" | "chain-snapshot" | "chain-sharing" | "snapshot-switch"
            | "bitlist",
        ) => chains::run(kind, case),
        ("bugs", "list_ops" | "concurrency") => chains::report(kind, case),
        ("bugs", "tag_route" | "tag_level") => tag::report(kind, case),
        ("dubbo_condition", "condition") => condition::run(case),
        (
            "bugs",
            "condition_when"
            | "condition_when_list"
            | "condition_route"
            | "condition_config"
            | "rule_parse_list"
            | "affinity"
            | "rule_keys",
        ) => condition::report(kind, case),
        ("connect", "order") => net::order(case),
        ("connect", "postpone") => net::postpone(case),
        ("bugs", "make_proxy") => net::make_proxy(case),
        ("bugs", "route_selector") => net::route_selector(case),
        ("bugs", "sequence") if matches!(case["area"].as_str(), Some("db" | "selector" | "dns")) => {
            net::sequence(case)
        }
        ("bugs", "sequence") if matches!(case["area"].as_str(), Some("chain" | "condition")) => {
            source::sequence(case)
        }
        ("bugs", "file_watch") => source::file_watch(case),
        ("dubbo_chain", "notify") => source::notify(case),
        ("connect", "socks") => dial::socks(case),
        ("connect", "connect") => dial::connect(case),
        ("connect" | "bugs", "connect_request") => dial::connect_request(case),
        ("connect", "connect_flow") => dial::connect_flow(case),
        ("okhttp", "connect_tunnel") => dial::connect_tunnel(case),
        ("bugs", "connect_reply") => dial::connect_reply(case),
        ("bugs", "socks5_auth") => dial::socks5_auth(case),
        ("bugs", "socks5_reply") => dial::socks5_reply(case),
        ("connect", "race") => race::connect(case),
        ("okhttp", "race") => race::upstream(case),
        ("bugs", "race") => race::report(case),
        (
            "dubbo_chain",
            "address_match" | "double_match" | "bool_match" | "method_match" | "attachment_match",
        )
        | ("dubbo_chain", "list_bool_match" | "list_double_match" | "list_string_match" | "match_request") => {
            mesh::matcher(kind, case)
        }
        ("dubbo_chain", "mesh") => mesh::mesh(case),
        ("dubbo_chain", "mesh-labels") => mesh::labels(case),
        ("dubbo_chain", "mesh-cache") => mesh::cache(case),
        ("dubbo_chain", "mesh-listener") => mesh::listener(case),
        ("dubbo_chain", "mesh-lifecycle") => mesh::lifecycle(case),
        ("dubbo_chain", "mesh-parse") => mesh::parse(case),
        ("bugs", "mesh_match") => mesh::bug_match(case),
        ("bugs", "subset") => mesh::bug_subset(case),
        ("bugs", "mesh_lint") => mesh::bug_lint(case),
        #[cfg(feature = "script")]
        ("dubbo_chain", "script") => script::script(case),
        #[cfg(feature = "script")]
        ("dubbo_chain", "file") => script::file(case),
        #[cfg(feature = "script")]
        ("dubbo_chain", "script-app") => script::rule(case),
        #[cfg(feature = "script")]
        ("dubbo_chain", "script-app-lifecycle") => script::lifecycle(case),
        #[cfg(feature = "script")]
        ("bugs", "script_route" | "script_route_list") => script::bug(case),
        ("proxy", _) => proxy::run(kind, case),
        (
            "bugs",
            "no_proxy" | "no_proxy_list" | "proxy_for_url" | "proxy_for_url_list" | "libproxy_ignore",
        )
        | (
            "bugs",
            "win_proxy_server" | "win_bypass" | "mac_exceptions" | "jvm_non_proxy_hosts" | "desktop_config",
        )
        | ("bugs", "pac" | "wpad_names") => proxy::run_bug(kind, case),
        ("dubbo_chain", "lb") => pick::balance(case),
        ("dubbo_chain", "lb-warmup") => pick::warmup(case),
        ("dubbo_chain", "lb-weight") => pick::weight(case),
        ("dubbo_chain", "sticky") => pick::sticky(case),
        ("dubbo_chain", "cluster-select") => pick::select(case),
        ("dubbo_chain", "directory") => pick::directory(case),
        ("okhttp", kind) if kind != "race" => okhttp::run(kind, case),
        _ => Outcome::Skip,
    }
}

/// Where that can be seen of which nothing shows below the boundary.
fn elsewhere(file: &str, kind: &str) -> Option<&'static str> {
    Some(match (file, kind) {
        ("bugs", "ffi_null") => "tests/c/misuse.c calls every function so",
        ("bugs", "ffi_sequence") => {
            "tests/c/conform/boundary.c, tests/c/copies.c and the bindings' own tests"
        }
        ("bugs", "load") => "Java's own tests",
        ("bugs", "artifact") => "Android is no platform",
        // Only the case of the area pac is left out; the others run.
        ("bugs", "sequence") => {
            "no selector looks for wpad by names; bugs.jsonl wpad_names shows which would be asked"
        }
        ("dubbo_chain", "chain") => "described in words",
        ("dubbo_chain", "polaris") => "byway has no such router",
        ("dubbo_chain", "mesh-dispatch" | "mesh-listener" | "mesh-manager") => "counts upstream's listeners",
        _ => return None,
    })
}

fn main() {
    let folder = std::env::var_os("BYWAY_VECTORS")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors"), PathBuf::from);
    let only = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "jsonl"))
        .collect();
    files.sort();

    let (mut passed, mut failed) = (0, 0);
    let mut skipped: BTreeMap<String, usize> = BTreeMap::new();
    for path in &files {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).expect("a readable file");
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let case: Value = serde_json::from_str(line)
                .unwrap_or_else(|error| panic!("{}:{}: {error}", path.display(), number + 1));
            let id = case["id"].as_str().unwrap_or("?");
            let kind = case["kind"].as_str().unwrap_or("?");
            if only.as_deref().is_some_and(|only| only != id && only != kind && only != stem) {
                continue;
            }
            let outcome = std::panic::catch_unwind(|| run(&stem, kind, &case));
            match outcome.unwrap_or_else(|_| Outcome::Fail("panicked".into())) {
                Outcome::Pass => passed += 1,
                Outcome::Fail(why) => {
                    failed += 1;
                    println!("FAIL {stem} {id} ({kind}): {why}");
                }
                Outcome::Skip => {
                    let why = elsewhere(&stem, kind).map(|why| format!(": {why}")).unwrap_or_default();
                    *skipped.entry(format!("{stem}/{kind}{why}")).or_default() += 1;
                }
            }
        }
    }
    let mut last = format!("rust: {passed} passed, {failed} failed");
    if !skipped.is_empty() {
        let count: usize = skipped.values().sum();
        let kinds: Vec<_> = skipped.iter().map(|(kind, n)| format!("{kind} {n}")).collect();
        last += &format!(", {count} skipped (kinds {})", kinds.join(", "));
    }
    println!("{last}");
    std::process::exit(i32::from(failed > 0));
}
