//! Static rules of a chain, from URLs and from files that change.
#![cfg(feature = "script")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

use byway::chain::invocation::Invocation;
use byway::chain::snapshot::Invokers;
use byway::chain::url::Url;
use byway::engine::routes::listen::{Listener, Notice, NoticeKind};
use byway::engine::routing::{ChainWish, RoutingChain};
use byway::engine::{Engine, EngineOptions};
use byway::error::Status;
use byway::net::Event;
use byway::rules::dialect::Dialect;
use byway::runtime::clock::Clock;
use byway::runtime::queue::{Queue, QueueOptions};
use byway::runtime::random::RandomSource;
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

struct World {
    engine: Arc<Engine>,
    chain: Arc<RoutingChain>,
    heard: Arc<Heard>,
}

#[derive(Default)]
struct Heard(Mutex<Vec<Notice>>);

impl Listener for Heard {
    fn mask(&self) -> u64 {
        1 << NoticeKind::Rule as i32 | 1 << NoticeKind::RuleFailed as i32
    }

    fn event(&self, _: &Event<'_>, _: u64) {}

    fn notice(&self, notice: &Notice) {
        self.0.lock().push(notice.clone());
    }
}

impl World {
    fn new() -> World {
        let engine = Engine::new(EngineOptions {
            queue: Queue::new(QueueOptions::default()),
            clock: Clock::system(),
            random: Arc::new(RandomSource::seeded(7)),
            dialect: Dialect::Byway,
            database: Default::default(),
            compat: byway::net::compat::Compat::Byway,
            settings: Default::default(),
            dns_cache_ms: 0,
            bad_proxy_ms: 0,
            default_timeout: PATIENCE,
            callbacks_any_thread: false,
        });
        let heard = Arc::new(Heard::default());
        engine.listeners().add(1, &(Arc::clone(&heard) as Arc<dyn Listener>));
        let consumer = Url::parse("consumer://10.1.1.1/com.foo.Bar?application=web").unwrap();
        let chain = engine.chain(consumer, &ChainWish::default()).unwrap();
        let urls = (1..=3).map(|n| format!("dubbo://10.0.0.{n}:20880/com.foo.Bar?application=shop&n={n}"));
        let urls: Vec<String> = urls.collect();
        chain.chain().set_invokers(Invokers::from_urls(urls.iter().map(String::as_str)).unwrap());
        World { engine, chain, heard }
    }

    fn kept(&self) -> Vec<u64> {
        self.chain.chain().route(&Invocation::new(b"hello")).unwrap().to_tags()
    }

    /// The next notice about a subject, waited for.
    fn notice(&self, kind: NoticeKind, subject: &str) -> Notice {
        let end = Instant::now() + PATIENCE;
        loop {
            let mut heard = self.heard.0.lock();
            if let Some(at) = heard.iter().position(|one| one.kind == kind && *one.subject == *subject) {
                return heard.remove(at);
            }
            drop(heard);
            assert!(Instant::now() < end, "no notice about {subject}");
            self.engine.queue().poll(Some(Duration::from_millis(100)), 16, |_| {}).unwrap();
        }
    }
}

/// A directory that goes with its owner.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("byway-static-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// Puts a file in place at once.
    fn put(&self, name: &str, text: &str) -> PathBuf {
        let (path, new) = (self.0.join(name), self.0.join(format!("{name}.new")));
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, &path).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn file_url(path: &Path, query: &str) -> String {
    format!("file://{}{query}", path.display())
}

#[test]
fn a_script_url_filters_in_its_place_and_a_bad_one_changes_nothing() {
    let world = World::new();
    // Percent-encoded as Dubbo's registries write them; `+` is a space.
    let last = "script://0.0.0.0/com.foo.Bar?rule=%5Binvokers.get(invokers.size()-1)%5D&priority=9";
    let not_last = "route://0.0.0.0/com.foo.Bar?router=script&rule=invokers.remove(invokers.size()-1)%3B+invokers&priority=3";
    world.chain.set_rule_urls([last]).unwrap();
    assert_eq!(world.kept(), [2]);
    world.chain.set_rule_urls([last, not_last]).unwrap();
    assert_eq!(world.kept(), [1], "the smaller priority runs first");
    for (url, status, words) in [
        ("script://0.0.0.0/S", Status::E_ARGUMENT, "can not be empty"),
        ("script://0.0.0.0/S?rule=a%0Ab+c", Status::E_SCRIPT, ""),
        ("script://0.0.0.0/S?rule=a%zz", Status::E_RULE, "hexadecimal"),
        (
            "script://0.0.0.0/S?rule=a&type=groovy",
            Status::E_UNSUPPORTED,
            "unsupported route engine type: groovy",
        ),
        ("script://0.0.0.0/S?rule=a&priority=x", Status::E_RULE, "whole number"),
        ("script://0.0.0.0/S?rule=a&pure=maybe", Status::E_RULE, "neither true nor false"),
        ("file:///no/such/rule.js", Status::E_OS, "No such file"),
        ("file://host/rule.js", Status::E_INVALID_URL, "names no host"),
        ("file:///dev/null", Status::E_ARGUMENT, "not a regular file"),
        ("route://0.0.0.0/S?router=tag&rule=a", Status::E_UNSUPPORTED, "no static router 'tag'"),
    ] {
        let error = world.chain.set_rule_urls([last, url]).unwrap_err();
        assert_eq!((error.status(), error.about()), (status, "urls[1]"), "{url}: {error}");
        assert!(error.message().contains(words), "{url}: {error}");
        if status == Status::E_SCRIPT {
            assert_eq!(error.position().map(|at| at.line), Some(2), "{error}");
        }
        assert_eq!(world.kept(), [1], "{url}");
    }
    world.chain.set_rule_urls([]).unwrap();
    assert_eq!(world.kept(), [0, 1, 2]);
}

#[test]
fn a_failing_static_script_leaves_the_list_and_is_told_with_its_place() {
    let world = World::new();
    let url = "script://0.0.0.0/S?rule=var+a%3B%0A++a.b.c";
    world.chain.set_rule_urls([url]).unwrap();
    assert_eq!(world.kept(), [0, 1, 2]);
    let error = world.notice(NoticeKind::RuleFailed, url).error.unwrap();
    assert_eq!((error.status(), error.position().map(|at| at.line)), (Status::E_SCRIPT, Some(2)), "{error}");
    let status = world.chain.status_json();
    assert!(status.contains("\"failed\"") && status.contains("\"count\":1"), "{status}");
}

#[test]
fn a_rule_in_a_file_follows_the_file_and_keeps_the_last_good_content() {
    let world = World::new();
    let folder = Folder::new("script");
    let path = folder.put("route.js", "[invokers.get(0)]");
    let url = file_url(&path, "");
    world.chain.set_rule_urls([url.as_str()]).unwrap();
    assert_eq!(world.kept(), [0]);
    let changed = |text: &str| {
        folder.put("route.js", text);
        world.notice(NoticeKind::Rule, &url).error
    };
    assert_eq!(changed("[invokers.get(1)]"), None);
    assert_eq!(world.kept(), [1]);
    let refused = changed("[invokers.get(2)\n  oops").unwrap();
    assert_eq!(
        (refused.status(), refused.position().map(|at| at.line)),
        (Status::E_SCRIPT, Some(2)),
        "{refused}"
    );
    assert_eq!(world.kept(), [1], "the last good content stays");
    assert!(world.chain.status_json().contains("\"error\""));
    assert_eq!(changed("[invokers.get(2)]"), None);
    assert_eq!(world.kept(), [2]);
    assert!(!world.chain.status_json().contains("\"error\""));
    std::fs::remove_file(&path).unwrap();
    let gone = world.notice(NoticeKind::Rule, &url).error.unwrap();
    assert_eq!(gone.status(), Status::E_NOT_FOUND, "{gone}");
    assert_eq!(world.kept(), [2]);
    assert_eq!(changed("[invokers.get(2)]"), None, "it is back as it was");
}

#[test]
fn a_condition_in_a_file_is_followed_beside_a_script_and_not_after_it_was_taken_away() {
    let world = World::new();
    let folder = Folder::new("condition");
    let script = file_url(&folder.put("a.js", "invokers"), "");
    let condition = file_url(&folder.put("b.rule", "=> n=1"), "?router=condition&force=true&priority=5");
    world.chain.set_rule_urls([script.as_str(), condition.as_str()]).unwrap();
    assert_eq!(world.kept(), [0]);
    folder.put("b.rule", "=> n=2,3");
    assert_eq!(world.notice(NoticeKind::Rule, &condition).error, None);
    assert_eq!(world.kept(), [1, 2]);
    folder.put("a.js", "[invokers.get(2)]");
    assert_eq!(world.notice(NoticeKind::Rule, &script).error, None);
    assert_eq!(world.kept(), [2]);
    // The condition alone: what happens to the other file is nobody's business any more.
    world.chain.set_rule_urls([condition.as_str()]).unwrap();
    folder.put("a.js", "[]");
    folder.put("b.rule", "=> n=3");
    assert_eq!(world.notice(NoticeKind::Rule, &condition).error, None);
    assert_eq!(world.kept(), [2]);
    assert!(world.heard.0.lock().iter().all(|one| *one.subject != *script));
}

#[test]
fn the_watching_thread_ends_with_the_engine() {
    let world = World::new();
    let folder = Folder::new("end");
    let url = file_url(&folder.put("a.js", "invokers"), "");
    world.chain.set_rule_urls([url.as_str()]).unwrap();
    assert_eq!(world.engine.shutdown(PATIENCE), Ok(Status::OK));
    assert!(
        world.chain.set_rule_urls([url.as_str()]).is_err_and(|error| error.status() == Status::E_SHUTDOWN)
    );
}
