use super::*;
use crate::engine::EngineOptions;
use crate::engine::routes::listen::{Listener, Notice as StateNotice};
use crate::engine::routes::select::Patience;
use crate::net::EventSink;
use crate::net::HostsTable;
use crate::net::address::AddressSpec;
use crate::proxies::OwnedTarget;
use crate::rules::dialect::Dialect;
use crate::runtime::clock::Clock;
use crate::runtime::queue::{Queue, QueueOptions};
use crate::runtime::random::RandomSource;
use std::sync::Mutex as StdMutex;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

const SCRIPT: &str = "function FindProxyForURL(url, host) {
    return isResolvable('a.example') && !isResolvable('b.example') && dnsResolve('192.0.2.9') ? 'PROXY p:1' : 'DIRECT';
}";

#[derive(Default)]
struct Log(StdMutex<Vec<String>>);

impl EventSink for Log {
    fn event(&self, event: &Event<'_>) {
        let ips: Vec<String> = event.ips.iter().map(|ip| ip.to_string()).collect();
        let error = event.error.map_or("", |error| error.status().name());
        let line = format!(
            "{} {} {} {}{error} for {}",
            event.selector,
            event.kind.name(),
            event.subject,
            ips.join(" "),
            event.address.host().text()
        );
        self.0.lock().unwrap().push(line);
    }
}

impl Listener for Log {
    fn mask(&self) -> u64 {
        u64::MAX
    }
    fn event(&self, event: &Event<'_>, _: u64) {
        EventSink::event(self, event);
    }
    fn notice(&self, _: &StateNotice) {}
}

impl Log {
    fn take(&self) -> Vec<String> {
        core::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// Says no to `b.example`, knows every other name.
struct Refusing;

impl dns::HostDns for Refusing {
    fn lookup(&self, request: &Shared<DnsRequest>, name: &str, _: &Serving) -> Status {
        if name.starts_with("b.") {
            return Status::E_UNKNOWN_HOST;
        }
        request
            .add(|answer| answer.add(&[Ip::parse("192.0.2.1").unwrap()]))
            .map_or_else(|status| status, |()| Status::OK)
    }
    fn canceled(&self, _: u64) {}
}

fn world() -> (Arc<Engine>, Arc<ProxySource>) {
    let engine = Engine::new(EngineOptions {
        queue: Queue::new(QueueOptions::default()),
        clock: Clock::system(),
        random: Arc::new(RandomSource::seeded(7)),
        dialect: Dialect::Byway,
        database: Default::default(),
        compat: Compat::Byway,
        settings: Default::default(),
        dns_cache_ms: 0,
        bad_proxy_ms: 0,
        default_timeout: PATIENCE,
        callbacks_any_thread: false,
    });
    let settings = ScriptSettings {
        options: PacOptions::default(),
        resolver: None,
        own_addresses: None,
        host: None,
        refresh_ms: 0,
        engine: Arc::downgrade(&engine),
    };
    let script = ScriptProxies::with_text("", SCRIPT.to_owned(), settings).unwrap();
    (engine, ProxySource::new(Choosing::Script(script)))
}

/// What listeners hear while the script decides for a selector with the number 7.
fn heard(compat: Compat, resolver: Resolving) -> Vec<String> {
    let (engine, source) = world();
    let log = Log::default();
    let url = OwnedTarget::parse("http://target.example/").unwrap();
    let spec = AddressSpec { scheme: "http", host: "target.example", port: 80, ..AddressSpec::default() };
    let address = Arc::new(Address::new(spec, Compat::Byway, &|_| None).unwrap());
    let resolver = Resolver::new(resolver);
    let serving = Serving { tag: 0, id: 7, left: None, engine: 0 };
    let asker = Asker {
        engine: &engine,
        resolver: Some(&resolver),
        serving: &serving,
        object: 0,
        in_place: true,
        hearing: Hearing {
            listening: Listening::to(&log, u64::MAX),
            selector: 7,
            address: Some(&address),
            compat,
        },
    };
    let mut question = ScriptQuestion::new(source, &url.borrow());
    let choice = question.drive(&asker).unwrap().expect("nothing is awaited").unwrap();
    assert!(matches!(choice.proxies.first(), Some(crate::net::Listed::Proxy(_))));
    log.take()
}

const A: [&str; 2] =
    ["7 dns_start a.example  for target.example", "7 dns_end a.example 192.0.2.1 for target.example"];
const B: &str = "7 dns_start b.example  for target.example";
const B_FAILED: &str = "7 dns_end b.example BYWAY_E_UNKNOWN_HOST for target.example";

#[test]
fn names_a_script_asks_for_are_events_of_the_selector() {
    let table = || Resolving::Hosts(HostsTable::parse("192.0.2.1 a.example").unwrap());
    assert_eq!(heard(Compat::Byway, table()), [A[0], A[1], B, B_FAILED]);
    assert_eq!(heard(Compat::Byway, Resolving::Host(Arc::new(Refusing))), [A[0], A[1], B, B_FAILED]);
    assert_eq!(heard(Compat::OkHttp5, table()), [A[0], A[1], B], "OkHttp tells of no failed lookup");
}

#[test]
fn outside_a_connection_they_have_the_number_0() {
    let (engine, source) = world();
    let log: Arc<Log> = Arc::default();
    let url = OwnedTarget::parse("http://target.example/").unwrap();
    let resolver = Resolver::new(Resolving::Hosts(HostsTable::parse("192.0.2.1 a.example").unwrap()));
    let ask = || engine.proxies_for_url(&source, Some(&resolver), &url, Patience::lasting(PATIENCE));
    ask().unwrap();
    assert_eq!(log.take(), [""; 0], "nobody listens");
    engine.listeners().add(1, &(Arc::clone(&log) as Arc<dyn Listener>));
    ask().unwrap();
    let want: Vec<String> = [A[0], A[1], B, B_FAILED].iter().map(|line| line.replacen('7', "0", 1)).collect();
    assert_eq!(log.take(), want);
}
