//! A chain bound to a real ZooKeeper, and what can happen to it: crashes, expiry, half-open connections, an empty
//! server in its place, floods, garbage, thousands of providers, wrong credentials.
//!
//! `cargo test --test zookeeper [-- NAME]`. Needs Java and Debian's package `zookeeper`; without them every test is
//! counted as skipped and named.
#![allow(clippy::print_stdout, clippy::panic, clippy::unwrap_used, clippy::expect_used)]
#![allow(unreachable_pub, reason = "modules of one test program")]

mod admin;
mod fixture;
mod proxy;
mod server;
mod trouble;
mod world;

type Test = (&'static str, fn());

fn main() {
    let tests: Vec<Test> = world::TESTS.iter().chain(trouble::TESTS).copied().collect();
    let only = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let chosen: Vec<Test> = tests
        .into_iter()
        .filter(|(name, _)| only.as_deref().is_none_or(|only| name.contains(only)))
        .collect();
    let (mut passed, mut failed) = (0, Vec::new());
    let missing = server::missing();
    for (name, test) in chosen {
        if let Some(why) = &missing {
            println!("skipped: zookeeper {name}: {why}");
            continue;
        }
        let begin = std::time::Instant::now();
        let outcome = std::panic::catch_unwind(test);
        let word = if outcome.is_ok() { "ok" } else { "FAILED" };
        println!("test {name} ... {word} ({:.1} s)", begin.elapsed().as_secs_f64());
        match outcome {
            Ok(()) => passed += 1,
            Err(_) => failed.push(name),
        }
    }
    if !failed.is_empty() {
        println!("failed: {}", failed.join(", "));
    }
    let word = if failed.is_empty() { "ok" } else { "FAILED" };
    println!("test result: {word}. {passed} passed; {} failed; 0 ignored", failed.len());
    std::process::exit(i32::from(!failed.is_empty()));
}
