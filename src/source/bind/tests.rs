use super::*;
use crate::chain::snapshot::Invokers;
use crate::chain::url::Url;
use crate::rules::dialect::Dialect;
use crate::source::memory::MemorySource;
use std::collections::BTreeMap;

/// Remembers what it was given.
struct Recorder {
    consumer: Url,
    invokers: Mutex<Arc<Invokers>>,
    rules: Mutex<BTreeMap<String, String>>,
    routers: Mutex<Vec<String>>,
    worlds: AtomicUsize,
    owners: Owners,
}

impl Recorder {
    fn new(consumer: &str) -> Arc<Recorder> {
        Arc::new(Recorder {
            consumer: Url::parse(consumer).unwrap(),
            invokers: Mutex::new(Invokers::none()),
            rules: Mutex::default(),
            routers: Mutex::default(),
            worlds: AtomicUsize::new(0),
            owners: Owners::default(),
        })
    }

    fn ports(&self) -> Vec<u16> {
        let invokers = self.invokers();
        (0..invokers.len())
            .map(|row| invokers.address(row).rsplit_once(':').unwrap().1.parse().unwrap())
            .collect()
    }

    fn rule(&self, key: &str) -> Option<String> {
        self.rules.lock().get(key).cloned()
    }
}

impl Target for Recorder {
    fn consumer(&self) -> &Url {
        &self.consumer
    }

    fn dialect(&self) -> Dialect {
        Dialect::Byway
    }

    fn keys_with(&self, invokers: &Invokers) -> Vec<Arc<str>> {
        let application = invokers.column(0, &crate::chain::program::Column::Application);
        let mut keys = vec![Arc::from("S::.condition-router")];
        keys.extend(application.map(|name| Arc::from(format!("{name}.tag-router"))));
        keys
    }

    fn invokers(&self) -> Arc<Invokers> {
        Arc::clone(&self.invokers.lock())
    }

    fn apply(&self, world: World, binding: u64) -> Vec<Refusal> {
        self.worlds.fetch_add(1, Ordering::SeqCst);
        if let Some(list) = world.invokers {
            *self.invokers.lock() = list;
        }
        if let Some(routers) = world.routers {
            *self.routers.lock() = routers.iter().map(|url| url.to_string()).collect();
        }
        let mut refusals = Vec::new();
        for (key, text) in world.rules {
            match text {
                Some(text) if &*text == "bad" => {
                    refusals.push(Refusal { key, error: Error::new(Status::E_RULE, "bad") });
                }
                Some(text) => {
                    self.owners.hold(&key, binding);
                    self.rules.lock().insert(key.to_string(), text.to_string());
                }
                None => {
                    if self.owners.release(&key, binding) {
                        self.rules.lock().remove(&*key);
                    }
                }
            }
        }
        refusals
    }

    fn withdraw(&self, binding: u64, keep_list: bool) {
        for key in self.owners.release_all(binding) {
            self.rules.lock().remove(&*key);
        }
        if !keep_list {
            *self.invokers.lock() = Invokers::none();
        }
    }

    fn owners(&self) -> Option<&Owners> {
        Some(&self.owners)
    }
}

const CONSUMER: &str = "consumer://1.1.1.1/S?application=shop";
const NOW: Duration = Duration::ZERO;

fn bind(source: &Arc<MemorySource>, target: &Arc<Recorder>, options: BindOptions) -> Binding {
    Binding::new(Arc::clone(source) as Arc<dyn Source>, Arc::clone(target) as Arc<dyn Target>, options)
}

#[test]
fn providers_and_the_rules_they_ask_for_come_as_one_world() {
    let (source, target) = (MemorySource::new(), Recorder::new(CONSUMER));
    source.put("stock.tag-router", "tags: one").unwrap();
    source.put("S/providers", "dubbo://h:1/S?application=stock\ndubbo://h:2/S?application=stock").unwrap();
    let binding = bind(&source, &target, BindOptions::default());
    binding.wait_ready(NOW).unwrap();
    assert_eq!(target.worlds.load(Ordering::SeqCst), 1);
    assert_eq!((target.ports(), target.rule("stock.tag-router")), (vec![1, 2], Some("tags: one".into())));
    // Another application: its rule comes with it, the old one goes.
    source.put("other.tag-router", "tags: two").unwrap();
    source.put("S/providers", "dubbo://h:3/S?application=other").unwrap();
    assert_eq!(target.worlds.load(Ordering::SeqCst), 2, "the list and both rules are one world");
    assert_eq!(
        (target.rule("stock.tag-router"), target.rule("other.tag-router")),
        (None, Some("tags: two".into()))
    );
    assert!(!binding.status().topics.contains(&Topic::rule("stock.tag-router")));
    drop(binding);
    assert!(target.ports().is_empty() && target.rules.lock().is_empty() && target.owners.is_empty());
    assert_eq!((source.board().topics().len(), source.board().watchers()), (0, 0));
}

#[test]
fn what_an_empty_list_does_is_a_policy() {
    use EmptyProtection::{Off, On, Vanished};
    // What the centre says, and whether the list is kept under each policy.
    let table: [(Option<&str>, [bool; 3]); 5] = [
        (None, [true, true, false]),
        (Some(""), [false, true, false]),
        (Some("empty://0.0.0.0/S?category=providers"), [false, false, false]),
        (Some("garbage://h:port/S"), [true, true, false]),
        (Some("dubbo://h:9/Other"), [false, false, false]),
    ];
    for (text, expect) in table {
        for (policy, kept) in [Vanished, On, Off].into_iter().zip(expect) {
            let (source, target) = (MemorySource::new(), Recorder::new(CONSUMER));
            source.put("S/providers", "dubbo://h:1/S").unwrap();
            let options = BindOptions { empty_protection: policy, ..BindOptions::default() };
            let binding = bind(&source, &target, options);
            source.apply(&[("S/providers", text)]).unwrap();
            assert_eq!(target.ports().len(), usize::from(kept), "{text:?} {policy:?}");
            assert_eq!(binding.status().kept, kept, "{text:?} {policy:?}");
            source.put("S/providers", "dubbo://h:2/S").unwrap();
            assert_eq!((target.ports(), binding.status().kept), (vec![2], false));
        }
    }
}

#[test]
fn overrides_of_all_three_places_are_followed() {
    let (source, target) = (MemorySource::new(), Recorder::new(CONSUMER));
    source.put("S/providers", "dubbo://h:1/S?weight=1\ndubbo://h:2/S?weight=1").unwrap();
    let _binding = bind(&source, &target, BindOptions::default());
    let weights = || {
        let invokers = target.invokers();
        let weight = crate::chain::program::Column::Parameter("weight".into());
        (0..invokers.len()).map(|row| invokers.column(row, &weight).unwrap().into_owned()).collect::<Vec<_>>()
    };
    let text = |weight: u8| {
        format!("configVersion: v2.7\nconfigs:\n- side: consumer\n  parameters: {{weight: {weight}}}\n")
    };
    source.put("S/configurators", "override://h:1/S?weight=2").unwrap();
    assert_eq!(weights(), ["2", "1"]);
    source.put("shop.configurators", &text(3)).unwrap();
    assert_eq!(weights(), ["3", "3"]);
    source.put("S::.configurators", &text(4)).unwrap();
    assert_eq!(weights(), ["4", "4"]);
    source.put("S::.configurators", "configs: 5").unwrap();
    assert_eq!(weights(), ["4", "4"], "a text that is refused leaves its predecessor");
    source.remove("S::.configurators").unwrap();
    source.remove("shop.configurators").unwrap();
    assert_eq!(weights(), ["2", "1"]);
}

#[test]
fn instances_of_applications_stand_in_when_nobody_is_under_the_interface() {
    let (source, target) = (MemorySource::new(), Recorder::new(CONSUMER));
    let instance = |port: u16| {
        format!(
            r#"{{"address":"h","port":{port},"payload":{{"metadata":{{"dubbo.metadata.revision":"r","dubbo.endpoints":"[{{\"port\":{port},\"protocol\":\"tri\"}}]"}}}}}}"#
        )
    };
    let metadata = r#"{"services":{"S:tri":{"name":"S","protocol":"tri"}}}"#;
    source.put("mapping/S", "stock,other").unwrap();
    source.put("/services/stock", &format!("{}\n{}\nnot json", instance(1), instance(2))).unwrap();
    source.put("/services/other", &instance(3)).unwrap();
    source.put("metadata/stock/r", metadata).unwrap();
    source.put("metadata/other/r", r#"{"services":{}}"#).unwrap();
    let binding = bind(&source, &target, BindOptions::default());
    assert_eq!(target.ports(), [1, 2]);
    assert!(binding.status().last_refusal.is_some());
    source.put("metadata/other/r", metadata).unwrap();
    assert_eq!(target.ports(), [3, 1, 2], "applications in order of their names");
    // A provider under the interface takes over, and the applications are no longer followed.
    source.put("S/providers", "tri://h:9/S").unwrap();
    assert_eq!(target.ports(), [9]);
    assert!(!binding.status().topics.iter().any(|topic| matches!(topic, Topic::Instances(_))));
    source.remove("S/providers").unwrap();
    assert_eq!(target.ports(), [3, 1, 2], "applications in order of their names");
}

#[test]
fn a_rule_that_is_refused_is_told_and_another_binding_keeps_its_rules() {
    let (source, target) = (MemorySource::new(), Recorder::new(CONSUMER));
    source.put("S/providers", "dubbo://h:1/S").unwrap();
    source.put("S::.condition-router", "bad").unwrap();
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&told);
    let events: EventSink = Arc::new(move |event: &BindEvent| log.lock().push(format!("{event:?}")));
    let first = bind(&source, &target, BindOptions { events: Some(events), ..BindOptions::default() });
    assert!(
        told.lock()
            .iter()
            .any(|event| event.starts_with("Refused") && event.contains("S::.condition-router"))
    );
    source.put("S::.condition-router", "good").unwrap();
    let second = bind(&source, &target, BindOptions { rules_only: true, ..BindOptions::default() });
    drop(first);
    assert_eq!(target.rule("S::.condition-router"), Some("good".into()));
    second.unbind(true);
    assert_eq!(target.rule("S::.condition-router"), None);
}

#[test]
fn many_notifications_at_once_are_few_worlds() {
    let (source, target) = (MemorySource::new(), Recorder::new(CONSUMER));
    let _binding = bind(&source, &target, BindOptions::default());
    let changes: Vec<(String, String)> =
        (0..1000).map(|at| ("S/providers".to_owned(), format!("dubbo://h:{}/S", at + 1))).collect();
    let changes: Vec<(&str, Option<&str>)> =
        changes.iter().map(|(key, text)| (key.as_str(), Some(text.as_str()))).collect();
    let before = target.worlds.load(Ordering::SeqCst);
    source.apply(&changes).unwrap();
    assert_eq!(target.worlds.load(Ordering::SeqCst) - before, 1);
    assert_eq!(target.ports(), [1000]);
}

#[test]
fn threads_that_publish_at_once_reach_the_last_state() {
    let (source, target) = (MemorySource::new(), Recorder::new(CONSUMER));
    let _binding = bind(&source, &target, BindOptions::default());
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let source = &source;
            scope.spawn(move || {
                for round in 0..200 {
                    let port = thread * 1000 + round + 1;
                    source.put("S/providers", &format!("dubbo://h:{port}/S")).unwrap();
                    source.put("S::.condition-router", &format!("{port}")).unwrap();
                }
            });
        }
    });
    let want = source.get(&Topic::parse("S/providers").unwrap(), NOW).unwrap();
    let rule = source.get(&Topic::rule("S::.condition-router"), NOW).unwrap();
    assert_eq!(format!("dubbo://h:{}/S", target.ports()[0]), *want.list()[0]);
    assert_eq!(target.rule("S::.condition-router").as_deref(), rule.text().map(|text| &**text));
}

/// Knows nothing and complains.
#[derive(Debug, Default)]
struct Away(Arc<crate::source::board::Board>);

impl Source for Away {
    fn kind(&self) -> &'static str {
        "away"
    }

    fn board(&self) -> &Arc<crate::source::board::Board> {
        &self.0
    }

    fn follow(&self, _: &Topic) {}

    fn unfollow(&self, _: &Topic) {}

    fn stop(&self, _: Duration) -> bool {
        true
    }
}

#[test]
fn a_source_that_is_never_reached_is_told_to_be_away_once_and_then_when_it_turns() {
    let away = Arc::new(Away::default());
    let board = Arc::clone(&away.0);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&heard);
    let events: EventSink = Arc::new(move |event| {
        sink.lock().push(match event {
            BindEvent::Connected => "connected".to_owned(),
            BindEvent::Disconnected(why) => format!("away: {}", why.as_ref().map_or("", |why| why.message())),
            other => format!("{other:?}"),
        });
    });
    let options = BindOptions { events: Some(events), ..BindOptions::default() };
    let binding = Binding::new(away, Recorder::new(CONSUMER), options);
    let fail = |server: &str| board.set_connected(false, Some(Error::new(Status::E_SOURCE, server)));
    fail("one");
    assert!(heard.lock().is_empty(), "another server may be there");
    for _ in 0..3 {
        fail("one");
        fail("two");
        board.not_found();
    }
    assert_eq!(*heard.lock(), ["away: two"]);
    board.set_connected(true, None);
    board.not_found();
    fail("lost");
    board.not_found();
    assert_eq!(*heard.lock(), ["away: two", "connected", "away: lost"]);
    drop(binding);
}

#[test]
fn who_is_bound_while_its_source_is_away_hears_so() {
    let away = Arc::new(Away::default());
    away.0.not_found();
    let heard = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&heard);
    let events: EventSink = Arc::new(move |event| {
        count.fetch_add(usize::from(matches!(event, BindEvent::Disconnected(None))), Ordering::SeqCst);
    });
    let options = BindOptions { events: Some(events), ..BindOptions::default() };
    let binding = Binding::new(away, Recorder::new(CONSUMER), options);
    assert_eq!(heard.load(Ordering::SeqCst), 1);
    drop(binding);
}

#[test]
fn a_binding_without_a_first_world_is_abandoned_as_if_it_had_never_been() {
    let target = Recorder::new(CONSUMER);
    let memory = MemorySource::new();
    memory.put("S/providers", "dubbo://h:1/S").unwrap();
    let first = bind(&memory, &target, BindOptions::default());
    let away = Arc::new(Away::default());
    let board = Arc::clone(&away.0);
    let second = Binding::new(away, Arc::clone(&target) as Arc<dyn Target>, BindOptions::default());
    assert!(!board.topics().is_empty());
    second.abandon().unwrap();
    assert_eq!((target.ports(), board.topics().len()), (vec![1], 0));
    let first = first.abandon().expect_err("it has its world");
    assert_eq!(target.ports(), [1]);
    drop(first);
}

#[test]
fn without_a_first_state_waiting_says_why() {
    let away = Arc::new(Away::default());
    away.0.set_connected(false, Some(Error::new(Status::E_SOURCE, "nobody answers")));
    let binding = Binding::new(away, Recorder::new(CONSUMER), BindOptions::default());
    let error = binding.wait_ready(NOW).unwrap_err();
    assert_eq!(error.status(), Status::E_TIMEOUT);
    assert_eq!(error.all_causes()[0].message(), "nobody answers");
}
