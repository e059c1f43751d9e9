//! Routes during changes see exactly one world, and nothing is left behind.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use byway::chain::bits::Bits;
use byway::chain::builder::InvokersBuilder;
use byway::chain::chain::{Chain, ChainOptions};
use byway::chain::invocation::Invocation;
use byway::chain::live::{Kind, count};
use byway::chain::program::*;
use byway::chain::router::{RouterSlot, SlotBody, SlotKey};
use byway::chain::snapshot::Invokers;
use byway::chain::store::{Language, RuleState, RuleStore};
use byway::chain::url::Url;
use byway::error::{Result, Status};
use byway::runtime::random::RandomSource;

/// A rule is a number: keep the invokers whose parameter `world` is that number, by force.
struct Worlds;

struct WorldState(Option<Arc<dyn Rule>>);

struct WorldRule(String);

struct Is(String);

impl ValueTest for Is {
    fn test(&self, value: Option<&str>) -> bool {
        value == Some(&self.0)
    }
    fn cache_key(&self) -> &str {
        &self.0
    }
    fn shape(&self) -> Shape<'_> {
        Shape::Exact(&self.0)
    }
}

impl Language for Worlds {
    fn suffix(&self) -> &str {
        ".condition-router"
    }
    fn open(&self, _: u8) -> Box<dyn RuleState> {
        Box::new(WorldState(None))
    }
}

impl RuleState for WorldState {
    fn set(&mut self, text: &str) -> Result<()> {
        self.0 = Some(Arc::new(WorldRule(text.into())));
        Ok(())
    }
    fn remove(&mut self) {
        self.0 = None;
    }
    fn active(&self) -> Option<Arc<dyn Rule>> {
        self.0.clone()
    }
}

impl Rule for WorldRule {
    fn lower(&self, _: &Lowering<'_>) -> Result<Program> {
        Ok(Program::new(vec![Step::Condition(Condition {
            when: CallTest::Always,
            then: Then::Keep(RowTest::Value(Column::parameter("world"), Arc::new(Is(self.0.clone())))),
            force: true,
            text: "world".into(),
        })]))
    }
}

fn chain(rules: &Arc<RuleStore>, random: &Arc<RandomSource>) -> Chain {
    let slot = |name: &str, key: SlotKey| RouterSlot::new(name, 1, SlotBody::Rule { key, otherwise: None });
    let routers = vec![slot(
        "provider",
        SlotKey::ProviderApplication { suffix: ".condition-router".into(), except: None },
    )];
    let consumer = Url::parse("consumer://1.1.1.1/S").unwrap();
    Chain::new(ChainOptions::new(consumer, routers), Arc::clone(rules), Arc::clone(random))
}

/// A list of world `n`: all its tags are `n * 1000 + i + 1`, its application is `app<n % 7>`, and only the first half of
/// its rows carries `world=n`; the rule of that application says `n` too when the world is consistent.
fn list(n: u64, rows: u64) -> Arc<Invokers> {
    let mut builder = InvokersBuilder::new();
    for i in 0..rows {
        let world = if i < rows / 2 { n % 7 } else { 99 };
        let url = format!("dubbo://10.0.0.{}:20880/S?application=app{}&world={world}", i % 250, n % 7);
        builder.add(&url, Some(n * 1000 + i + 1)).unwrap();
    }
    builder.finish().unwrap()
}

#[test]
fn a_route_sees_one_world() {
    let rules = RuleStore::new(vec![Arc::new(Worlds)], 0);
    for app in 0..7 {
        rules.put(&format!("app{app}.condition-router"), &app.to_string()).unwrap();
    }
    let random = Arc::new(RandomSource::seeded(3));
    let chain = chain(&rules, &random);
    const ROWS: u64 = 40;
    chain.set_invokers(list(0, ROWS));
    let stop = AtomicBool::new(false);
    let routed = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for reader in 0..2 {
            let (chain, stop, routed) = (&chain, &stop, &routed);
            scope.spawn(move || {
                let mut session = chain.session();
                let call = Invocation::new(b"hello");
                let mut last = 0;
                let mut tags = vec![0; ROWS as usize];
                while !stop.load(Ordering::Relaxed) {
                    let generation = if reader == 0 {
                        let view = session.route(&call).unwrap();
                        tags.resize(view.len(), 0);
                        view.tags_into(&mut tags);
                        view.generation()
                    } else {
                        tags.resize(ROWS as usize, 0);
                        let (total, generation) = chain.route_tags(&call, &mut tags).unwrap();
                        tags.truncate(total);
                        generation
                    };
                    // All tags from one list; all of the half that the rule of that list's application keeps. A rule
                    // of another world's application would keep nothing.
                    assert_eq!(tags.len() as u64, ROWS / 2, "{tags:?}");
                    let world = tags[0] / 1000;
                    assert!(
                        tags.iter().enumerate().all(|(i, tag)| *tag == world * 1000 + i as u64 + 1),
                        "{tags:?}"
                    );
                    assert!(generation >= last, "generations never go back");
                    last = generation;
                    routed.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut n = 1;
        while n < 1000 || routed.load(Ordering::Relaxed) < 1000 {
            chain.set_invokers(list(n, ROWS));
            let app = n % 7;
            rules.put(&format!("app{app}.condition-router"), &app.to_string()).unwrap();
            n += 1;
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn sessions_belong_to_a_thread() {
    let rules = RuleStore::new(Vec::new(), 0);
    let chain = chain(&rules, &Arc::new(RandomSource::seeded(1)));
    chain.set_invokers(list(0, 4));
    let mut session = chain.session();
    let call = Invocation::new(b"m");
    assert_eq!(session.route(&call).unwrap().len(), 4);
    let mut session = std::thread::spawn(move || {
        let call = Invocation::new(b"m");
        assert_eq!(session.route(&call).unwrap_err().status(), Status::E_BUSY);
        session.adopt();
        assert_eq!(session.route(&call).unwrap().len(), 4);
        session
    })
    .join()
    .unwrap();
    assert_eq!(session.route(&call).unwrap_err().status(), Status::E_BUSY);
    session.adopt();
    assert_eq!(session.route(&call).unwrap().len(), 4);
}

#[test]
fn a_mask_for_another_list_is_refused() {
    let rules = RuleStore::new(Vec::new(), 0);
    let chain = chain(&rules, &Arc::new(RandomSource::seeded(1)));
    let old = list(0, 4);
    chain.set_invokers(list(1, 4));
    let mask = Bits::full(4);
    let call = Invocation::new(b"m");
    let mut session = chain.session();
    assert_eq!(session.route_masked(&call, &old, &mask).unwrap_err().status(), Status::E_STATE);
    assert_eq!(chain.route_masked(&call, &old, &mask).unwrap_err().status(), Status::E_STATE);
    let now = chain.invokers();
    assert_eq!(session.route_masked(&call, &now, &mask).unwrap().len(), 4);
}

/// Told when it is dropped.
struct Flag(Arc<AtomicU64>);

impl Drop for Flag {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn an_idle_session_pins_nothing() {
    let rules = RuleStore::new(Vec::new(), 0);
    let chain = chain(&rules, &Arc::new(RandomSource::seeded(1)));
    let dropped = Arc::new(AtomicU64::new(0));
    let mut builder = InvokersBuilder::new().keep(Arc::new(Flag(Arc::clone(&dropped))));
    builder.add("dubbo://h:1/S", Some(5)).unwrap();
    chain.set_invokers(builder.finish().unwrap());
    let mut session = chain.session();
    let call = Invocation::new(b"m");
    assert_eq!(session.route(&call).unwrap().tag_at(0), Some(5));
    let choice = chain.route(&call).unwrap();
    chain.set_invokers(Invokers::none());
    assert_eq!(dropped.load(Ordering::SeqCst), 0);
    session.idle();
    assert_eq!((dropped.load(Ordering::SeqCst), choice.tag_at(0)), (0, Some(5)));
    drop(choice);
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    assert_eq!(session.route(&call).unwrap().len(), 0);
}

/// In a process of its own: other tests of this file count too.
#[test]
fn nothing_is_left_behind() {
    if std::env::var_os("BYWAY_ALONE").is_none() {
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["nothing_is_left_behind", "--exact", "--test-threads=1"])
            .env("BYWAY_ALONE", "1")
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    const KINDS: [Kind; 6] =
        [Kind::Invokers, Kind::Plan, Kind::Outcome, Kind::Chain, Kind::Session, Kind::Selection];
    let before = KINDS.map(count);
    {
        let rules = RuleStore::new(vec![Arc::new(Worlds)], 0);
        let random = Arc::new(RandomSource::seeded(1));
        let one = chain(&rules, &random);
        let mut session = one.session();
        let mut invokers = list(0, 20);
        let call = Invocation::new(b"m");
        let mut settled = KINDS.map(|_| 0);
        for n in 0..10_000u64 {
            match n % 3 {
                0 => rules.put("app0.condition-router", &(n % 5).to_string()).unwrap(),
                1 => {
                    let mut update = invokers.update();
                    let url = format!(
                        "dubbo://10.1.{}.{}:1/S?application=app0&world={}",
                        n / 250 % 250,
                        n % 250,
                        n % 5
                    );
                    update.set(&url, n % 20 + 1).unwrap();
                    invokers = update.finish().unwrap();
                    one.set_invokers(Arc::clone(&invokers));
                }
                _ => one.set_invokers(list(n / 3 % 4, 20)),
            }
            session.route(&call).unwrap();
            if n == 99 {
                settled = KINDS.map(count);
            }
        }
        for (kind, settled) in KINDS.iter().zip(settled) {
            assert!(count(*kind) <= settled + 8, "{kind:?}: {settled} -> {}", count(*kind));
        }
        let chains: Vec<Chain> = (0..1000).map(|_| chain(&rules, &random)).collect();
        for chain in &chains {
            chain.set_invokers(Arc::clone(&invokers));
            chain.route(&call).unwrap();
        }
        rules.put("app0.condition-router", "3").unwrap();
    }
    assert_eq!(KINDS.map(count), before);
}
