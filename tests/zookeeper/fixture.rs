//! An engine, a chain, a source, a binding, and what came of them.

use byway::chain::invocation::Invocation;
use byway::engine::routing::{ChainWish, RoutingChain};
use byway::engine::{Engine, EngineOptions};
use byway::error::Error;
use byway::rules::dialect::Dialect;
use byway::runtime::clock::Clock;
use byway::runtime::queue::{Queue, QueueOptions};
use byway::runtime::random::RandomSource;
use byway::source::Source;
use byway::source::bind::{BindEvent, BindOptions, Binding};
use byway::source::zookeeper::{ZooKeeperOptions, ZooKeeperSource};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

pub const PATIENCE: Duration = Duration::from_secs(120);
pub const SERVICE: &str = "com.foo.Bar";
pub const CONSUMER: &str = "consumer://10.1.1.1/com.foo.Bar?application=shop&side=consumer";
pub const RULE: &str = "/dubbo/config/dubbo/com.foo.Bar::.condition-router";
pub const PROVIDERS: &str = "/dubbo/com.foo.Bar/providers";

pub fn engine() -> Arc<Engine> {
    Engine::new(EngineOptions {
        queue: Queue::new(QueueOptions::default()),
        clock: Clock::system(),
        random: Arc::new(RandomSource::seeded(7)),
        dialect: Dialect::Byway,
        database: Default::default(),
        compat: byway::net::compat::Compat::Byway,
        settings: Default::default(),
        dns_cache_ms: 0,
        bad_proxy_ms: 0,
        default_timeout: Duration::from_secs(30),
        callbacks_any_thread: false,
    })
}

pub fn chain(engine: &Engine) -> Arc<RoutingChain> {
    let consumer = byway::chain::url::Url::parse(CONSUMER).unwrap();
    engine.chain(consumer, &ChainWish::default()).unwrap()
}

#[derive(Default)]
pub struct Log {
    events: Mutex<Vec<BindEvent>>,
    rang: Condvar,
}

impl Log {
    pub fn refusals(&self) -> Vec<Error> {
        let events = self.events.lock().unwrap();
        events
            .iter()
            .filter_map(|event| match event {
                BindEvent::Refused(error) => Some(error.clone()),
                _ => None,
            })
            .collect()
    }

    pub fn losses(&self) -> Vec<Error> {
        let events = self.events.lock().unwrap();
        events
            .iter()
            .filter_map(|event| match event {
                BindEvent::Disconnected(error) => error.clone(),
                _ => None,
            })
            .collect()
    }
}

pub struct Bound {
    pub engine: Arc<Engine>,
    pub chain: Arc<RoutingChain>,
    pub source: Arc<ZooKeeperSource>,
    pub binding: Binding,
    pub log: Arc<Log>,
}

pub fn options(text: &str) -> ZooKeeperOptions {
    ZooKeeperOptions {
        session_timeout: Duration::from_millis(3000),
        connect_timeout: Duration::from_millis(2000),
        retry_first: Duration::from_millis(20),
        retry_longest: Duration::from_millis(300),
        ..ZooKeeperOptions::parse(text).unwrap()
    }
}

impl Bound {
    pub fn new(text: &str) -> Bound {
        Bound::with(options(text), BindOptions::default())
    }

    pub fn with(zookeeper: ZooKeeperOptions, options: BindOptions) -> Bound {
        let engine = engine();
        let chain = chain(&engine);
        let source = ZooKeeperSource::new(zookeeper).unwrap();
        let shared: Arc<dyn Source> = Arc::clone(&source) as Arc<dyn Source>;
        engine.adopt_source(&shared).unwrap();
        let log: Arc<Log> = Arc::default();
        let told = Arc::clone(&log);
        let options = BindOptions {
            events: Some(Arc::new(move |event: &BindEvent| {
                told.events.lock().unwrap().push(event.clone());
                told.rang.notify_all();
            })),
            ..options
        };
        let binding = chain.bind(shared, options);
        Bound { engine, chain, source, binding, log }
    }

    pub fn ready(self) -> Bound {
        self.binding.wait_ready(PATIENCE).unwrap();
        self
    }

    /// Ports of the providers a call of a method may go to.
    pub fn route(&self, method: &str) -> Vec<u16> {
        let choice = self.chain.chain().route(&Invocation::new(method.as_bytes())).unwrap();
        let invokers = choice.invokers();
        let mut ports: Vec<u16> = choice
            .to_tags()
            .iter()
            .map(|tag| {
                let row = invokers.row_of(*tag).unwrap();
                invokers.address(row).rsplit_once(':').unwrap().1.parse().unwrap()
            })
            .collect();
        ports.sort_unstable();
        ports
    }

    /// Waits, woken by events, until something holds.
    pub fn until(&self, what: &str, holds: impl Fn(&Bound) -> bool) {
        let end = Instant::now() + PATIENCE;
        let mut events = self.log.events.lock().unwrap();
        loop {
            drop(events);
            if holds(self) {
                return;
            }
            assert!(Instant::now() < end, "never: {what}; {:?}", self.binding.status());
            events = self.log.events.lock().unwrap();
            // Some things, such as the age of data, change without an event.
            events = self.log.rang.wait_timeout(events, Duration::from_millis(20)).unwrap().0;
        }
    }

    pub fn until_route(&self, method: &str, ports: &[u16]) {
        self.until(&format!("{method} goes to {ports:?}, not {:?}", self.route(method)), |bound| {
            bound.route(method) == ports
        });
    }
}

pub fn provider(port: u16, more: &str) -> String {
    format!("tri://10.0.0.1:{port}/{SERVICE}?application=stock&side=provider{more}")
}

/// The path of a provider's node.
pub fn node(port: u16, more: &str) -> String {
    format!("{PROVIDERS}/{}", byway::source::providers::encode(&provider(port, more)))
}

pub fn only(port: u16) -> String {
    format!("enabled: true\nforce: true\nruntime: true\nconditions:\n- 'method=hello => address=*:{port}'\n")
}

/// Waits until `holds`: what a thread has held is given back a little after it has been joined.
pub fn soon(holds: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Names of this process's threads that byway has started.
pub fn own_threads() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir("/proc/self/task")
        .unwrap()
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("comm")).ok())
        .map(|name| name.trim().to_owned())
        .filter(|name| name.starts_with("byway-"))
        .collect();
    names.sort();
    names
}
