//! Sources: notifications as a registry sends them, files that change, sequences of rules and losses.

use crate::Outcome;
use byway::chain::invocation::Invocation;
use byway::chain::url::Url;
use byway::engine::routing::{ChainWish, RoutingChain};
use byway::engine::{Engine, EngineOptions};
use byway::error::{Error, Status};
use byway::rules::dialect::Dialect;
use byway::runtime::clock::Clock;
use byway::runtime::queue::{Queue, QueueOptions};
use byway::runtime::random::RandomSource;
use byway::source::Source;
use byway::source::bind::{BindEvent, BindOptions, Binding};
use byway::source::board::{Board, Publication, WatchId, Watcher};
use byway::source::file::{FileOptions, FileSource};
use byway::source::memory::MemorySource;
use byway::source::providers::{Notification, Said, category};
use byway::source::topic::{Topic, Value as State};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(120);

fn engine(dialect: Dialect) -> Arc<Engine> {
    Engine::new(EngineOptions {
        queue: Queue::new(QueueOptions::default()),
        clock: Clock::system(),
        random: Arc::new(RandomSource::seeded(7)),
        dialect,
        database: Default::default(),
        compat: byway::net::compat::Compat::Byway,
        settings: Default::default(),
        dns_cache_ms: 0,
        bad_proxy_ms: 0,
        default_timeout: PATIENCE,
        callbacks_any_thread: false,
    })
}

fn chain(engine: &Engine, consumer: &str) -> Arc<RoutingChain> {
    let consumer = Url::parse(consumer).expect("a consumer URL");
    engine.chain(consumer, &ChainWish::default()).expect("a chain")
}

fn urls(list: &Value) -> Vec<&str> {
    list.as_array()
        .map(|list| list.iter().filter_map(|one| one["url"].as_str().or_else(|| one.as_str())).collect())
        .unwrap_or_default()
}

/// Kind `notify`: where entries belong, and what an empty notification does to a chain that had a provider and a
/// static router.
pub(crate) fn notify(case: &Value) -> Outcome {
    let (entries, expect) = (urls(&case["invokers"]), &case["expect"]);
    let known = ["category", "dropped", "forbidden", "invokers", "call", "url_routers", "note"];
    if let Some(key) =
        expect.as_object().and_then(|map| map.keys().find(|key| !known.contains(&key.as_str())))
    {
        return Outcome::Fail(format!("nobody compares '{key}'"));
    }
    if let Some(want) = expect["category"].as_str() {
        return match category(entries.first().copied().unwrap_or_default()) {
            Ok(Some(found)) => Outcome::equal(found.name(), want),
            other => Outcome::Fail(format!("{other:?}, want {want}")),
        };
    }
    if expect["dropped"] == json!(true) {
        let read = Notification::read(entries.iter().copied());
        let nothing =
            [&read.providers, &read.routers, &read.configurators].map(|said| *said == Said::Nothing);
        return Outcome::equal((nothing, read.refused.len()), ([true; 3], 0));
    }
    // The rest acts on a chain. dubbo-3 loads no static routers; what they do is the older line's.
    let routers = !expect["url_routers"].is_null();
    let engine = engine(if routers { Dialect::Dubbo27 } else { Dialect::Dubbo3 });
    let chain = chain(&engine, "consumer://10.0.0.9/S");
    let source = MemorySource::new();
    let rule = "route://0.0.0.0/S?router=condition&force=true&rule=%3D%3E%20host%3D10.0.0.1";
    let put = |key: &str, text: &str| source.put(key, text).expect("a key");
    put("S/providers", "dubbo://10.0.0.1:20880/S\ndubbo://10.0.0.2:20880/S");
    put("S/routers", rule);
    let binding = chain.bind(Arc::clone(&source) as Arc<dyn Source>, BindOptions::default());
    let count =
        || chain.chain().route(&Invocation::new(b"m")).map(|choice| choice.len()).unwrap_or(usize::MAX);
    let before = count();
    let read = Notification::read(entries.iter().copied());
    // A category that a notification says nothing about is not touched.
    for (said, key) in [(&read.providers, "S/providers"), (&read.routers, "S/routers")] {
        match said {
            Said::Nothing if entries.is_empty() && key == "S/providers" => source.remove(key).expect("a key"),
            Said::Nothing => {}
            Said::None => put(key, &format!("empty://0.0.0.0/S?category={}", &key[2..])),
            Said::These(list) => put(key, &list.join("\n")),
        }
    }
    if routers {
        let left = chain.chain().status().iter().filter(|router| &*router.name == "condition").count();
        return Outcome::equal((before, count(), left), (1, 2, 0));
    }
    match &expect["invokers"] {
        Value::Number(number) => {
            // "Forbidden": every call finds nobody, which Dubbo tells with an exception of its own.
            let forbidden = expect["forbidden"] == json!(true);
            Outcome::equal((before, count(), forbidden), (2, number.as_u64().unwrap_or(9) as usize, true))
        }
        Value::String(text) if text.starts_with("previous ones kept") => {
            Outcome::equal((before, count(), binding.status().kept), (2, 2, true))
        }
        other => Outcome::Fail(format!("unknown expectation {other}")),
    }
}

/// Rings when something it follows has changed.
struct Bell(Mutex<Sender<()>>);

impl Watcher for Bell {
    fn changed(&self) {
        let _ = self.0.lock().map(|sender| sender.send(()));
    }
}

struct Follower {
    source: Arc<FileSource>,
    bell: Receiver<()>,
    _bell: Arc<Bell>,
}

impl Follower {
    fn new(source: Arc<FileSource>, topics: &[&Topic]) -> Follower {
        let (sender, bell) = channel();
        let keep = Arc::new(Bell(Mutex::new(sender)));
        let weak: Weak<dyn Watcher> = Arc::downgrade(&(Arc::clone(&keep) as Arc<dyn Watcher>));
        let mut id: Option<WatchId> = None;
        for topic in topics {
            id = Some(source.watch(topic, id, weak.clone()));
        }
        Follower { source, bell, _bell: keep }
    }

    fn text(&self, topic: &Topic) -> Option<String> {
        match self.source.board().look(topic) {
            Some(Ok(State::Text(text))) => Some(text.to_string()),
            _ => None,
        }
    }

    /// Every text seen until the wanted one; `None` when it does not come.
    fn until(&self, topic: &Topic, want: &str) -> Option<Vec<String>> {
        let end = Instant::now() + PATIENCE;
        let mut seen = Vec::new();
        loop {
            if let Some(text) = self.text(topic) {
                let done = text == want;
                seen.push(text);
                if done {
                    return Some(seen);
                }
            }
            self.bell.recv_timeout(end.saturating_duration_since(Instant::now())).ok()?;
        }
    }
}

/// Kind `file_watch`: each way to change a file.
pub(crate) fn file_watch(case: &Value) -> Outcome {
    let variants: Vec<&str> = case["input"]["variants"]
        .as_array()
        .map(|list| list.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let want: Vec<bool> = case["expect"]["reloaded"]
        .as_array()
        .map(|list| list.iter().filter_map(Value::as_bool).collect())
        .unwrap_or_default();
    let mut reloaded = Vec::new();
    let mut partial = Vec::new();
    for (at, variant) in variants.iter().enumerate() {
        let folder = std::env::temp_dir().join(format!("byway-conform-{}-{at}", std::process::id()));
        let outcome = fs::create_dir_all(&folder).map_err(|error| error.to_string()).and_then(|()| {
            let outcome = one_variant(variant, &folder);
            let _ = fs::remove_dir_all(&folder);
            outcome
        });
        match outcome {
            Ok((changed, texts)) => {
                reloaded.push(changed);
                partial.extend(texts.into_iter().filter(|text| !WHOLE.contains(&text.as_str())));
            }
            Err(why) => return Outcome::Fail(format!("{variant}: {why}")),
        }
    }
    let never = case["expect"]["never_sees_partial"].as_bool().unwrap_or(true);
    Outcome::equal((reloaded, partial.is_empty()), (want, never))
}

const OLD: &str = "# the old rule\nkey: a\ntags: []\n";
const NEW: &str = "# the new rule\nkey: a\ntags: [{name: gray, addresses: ['10.0.0.1:20880']}]\n";
const WHOLE: [&str; 2] = [OLD, NEW];

/// Whether the change was seen, and every text that was.
fn one_variant(variant: &str, folder: &Path) -> Result<(bool, Vec<String>), String> {
    let io = |error: std::io::Error| error.to_string();
    let (rule, marker) = (Topic::rule("a.tag-router"), Topic::rule("z.tag-router"));
    let file = folder.join("a.tag-router");
    let data = |name: &str, text: &str| -> std::io::Result<PathBuf> {
        let place = folder.join(name);
        fs::create_dir_all(&place)?;
        fs::write(place.join("a.tag-router"), text)?;
        Ok(place)
    };
    let link = |target: &str| -> std::io::Result<()> {
        std::os::unix::fs::symlink(target, folder.join("..tmp"))?;
        fs::rename(folder.join("..tmp"), folder.join("..data"))
    };
    if variant == "symlink_dir_swap" {
        data("..1", OLD).map_err(io)?;
        link("..1").map_err(io)?;
        std::os::unix::fs::symlink("..data/a.tag-router", &file).map_err(io)?;
    } else {
        fs::write(&file, OLD).map_err(io)?;
    }
    // A writer at work is waited for however long this machine takes to go on with it.
    let options = FileOptions { settle: PATIENCE, ..FileOptions::new(folder) };
    let source = FileSource::new(options).map_err(|error| error.to_string())?;
    let follower = Follower::new(source, &[&rule, &marker]);
    follower.until(&rule, OLD).ok_or("the old text is not seen")?;
    // That there is none is a publication too, in the same look or a later one.
    follower.source.get(&marker, PATIENCE).map_err(|error| error.to_string())?;
    let half = |text: &str, rest: &str| -> std::io::Result<()> {
        let mut open = fs::OpenOptions::new().write(true).truncate(true).open(&file)?;
        open.write_all(text.as_bytes())?;
        open.sync_all()?;
        // A look happens in between: another file has been seen by then.
        fs::write(folder.join("z.tmp"), "half")?;
        fs::rename(folder.join("z.tmp"), folder.join("z.tag-router"))?;
        follower.until(&marker, "half");
        open.write_all(rest.as_bytes())
    };
    let (head, tail) = NEW.split_at(20);
    match variant {
        "write_in_place" => fs::write(&file, NEW),
        "rename_over" => {
            fs::write(folder.join("a.tmp"), NEW).and_then(|()| fs::rename(folder.join("a.tmp"), &file))
        }
        "symlink_dir_swap" => data("..2", NEW).and_then(|_| link("..2")),
        "delete_create" => fs::remove_file(&file).and_then(|()| fs::write(&file, NEW)),
        "truncate_then_write" => half(head, tail),
        "touch_only" => fs::File::options()
            .append(true)
            .open(&file)
            .and_then(|open| open.set_modified(std::time::SystemTime::now())),
        other => return Err(format!("unknown variant {other}")),
    }
    .map_err(io)?;
    if variant == "touch_only" {
        let before = follower.source.status().generation;
        fs::write(folder.join("z.tmp"), "after")
            .and_then(|()| fs::rename(folder.join("z.tmp"), folder.join("z.tag-router")))
            .map_err(io)?;
        let seen = follower.until(&marker, "after").ok_or("the marker is not seen")?;
        let only_the_marker = follower.source.status().generation == before + 1;
        return Ok((!only_the_marker, Vec::from_iter(seen.is_empty().then(String::new))));
    }
    match follower.until(&rule, NEW) {
        Some(seen) => Ok((true, seen)),
        None => Ok((false, follower.text(&rule).into_iter().collect())),
    }
}

/// A source that can be lost.
#[derive(Debug, Default)]
struct Centre {
    board: Arc<Board>,
    up: Mutex<bool>,
    texts: Mutex<BTreeMap<Topic, String>>,
}

impl Centre {
    fn publish(&self, topics: &[Topic]) {
        let texts = self.texts.lock().map(|texts| texts.clone()).unwrap_or_default();
        self.board.publish(topics.iter().map(|topic| {
            let text = texts.get(topic).map(|text| State::Text(text.as_str().into()));
            Publication { topic: topic.clone(), state: Ok(text.unwrap_or(State::Absent)) }
        }));
    }

    fn is_up(&self) -> bool {
        self.up.lock().is_ok_and(|up| *up)
    }

    fn set_up(&self, up: bool) {
        if let Ok(mut place) = self.up.lock() {
            *place = up;
        }
        let why = (!up).then(|| Error::new(Status::E_SOURCE, "lost"));
        self.board.set_connected(up, why);
        if up {
            // As every source does after a connection: everything again.
            self.publish(&self.board.topics());
        }
    }

    fn change(&self, key: &str, text: &str) {
        let topic = Topic::rule(key);
        if let Ok(mut texts) = self.texts.lock() {
            texts.insert(topic.clone(), text.to_owned());
        }
        if self.is_up() {
            self.publish(&[topic]);
        }
    }
}

impl Source for Centre {
    fn kind(&self) -> &'static str {
        "test"
    }

    fn board(&self) -> &Arc<Board> {
        &self.board
    }

    fn follow(&self, topic: &Topic) {
        if self.is_up() {
            self.publish(std::slice::from_ref(topic));
        }
    }

    fn unfollow(&self, _: &Topic) {}

    fn stop(&self, _: Duration) -> bool {
        true
    }
}

struct Sequence {
    engine: Arc<Engine>,
    chain: Option<Arc<RoutingChain>>,
    binding: Option<Binding>,
    memory: Arc<MemorySource>,
    centre: Arc<Centre>,
    events: Arc<Mutex<Vec<String>>>,
    listeners: BTreeMap<String, (Arc<Bell>, Receiver<()>, WatchId)>,
    got: serde_json::Map<String, Value>,
}

/// Kind `sequence`, areas chain and condition: rules, lists and losses in order.
pub(crate) fn sequence(case: &Value) -> Outcome {
    let engine = engine(Dialect::Byway);
    let events: Arc<Mutex<Vec<String>>> = Arc::default();
    let mut run = Sequence {
        chain: Some(chain(&engine, "consumer://10.20.3.1/com.foo.BarService")),
        engine,
        binding: None,
        memory: MemorySource::new(),
        centre: Arc::default(),
        events,
        listeners: BTreeMap::new(),
        got: serde_json::Map::new(),
    };
    let steps = case["input"]["steps"].as_array().cloned().unwrap_or_default();
    let away = steps.iter().any(|step| step[0] == json!("source_down"));
    run.bind(away);
    for step in &steps {
        if let Err(why) = run.step(step) {
            return Outcome::Fail(why);
        }
    }
    let mut want = case["expect"].as_object().cloned().unwrap_or_default();
    // The runner catches panics of every case, so that one is a failure without being asked for.
    want.remove("panic");
    if want.contains_key("events") {
        let told = run.events.lock().map(|events| events.clone()).unwrap_or_default();
        run.got.insert("events".to_owned(), json!(told));
    }
    if want.contains_key("errors") {
        run.got.entry("errors").or_insert(json!(0));
    }
    if want.contains_key("called") {
        let called: Vec<&String> = run
            .listeners
            .iter()
            .filter(|(_, (_, bell, _))| bell.try_recv().is_ok())
            .map(|(name, _)| name)
            .collect();
        run.got.insert("called".to_owned(), json!(called));
    }
    Outcome::equal(Value::Object(run.got), Value::Object(want))
}

const KEY: &str = "com.foo.BarService::.condition-router";

impl Sequence {
    fn bind(&mut self, away: bool) {
        let events = Arc::clone(&self.events);
        let told = move |event: &BindEvent| {
            if let (BindEvent::Refused(_), Ok(mut events)) = (event, events.lock()) {
                events.push("rule_error".to_owned());
            }
        };
        let options =
            BindOptions { rules_only: true, events: Some(Arc::new(told)), ..BindOptions::default() };
        let source: Arc<dyn Source> = if away {
            self.centre.set_up(true);
            Arc::clone(&self.centre) as Arc<dyn Source>
        } else {
            Arc::clone(&self.memory) as Arc<dyn Source>
        };
        self.binding = self.chain.as_ref().map(|chain| chain.bind(source, options));
    }

    fn step(&mut self, step: &Value) -> Result<(), String> {
        let word = step[0].as_str().unwrap_or_default();
        let argument = |at: usize| step[at].as_str().unwrap_or_default();
        let said = |error: Error| error.to_string();
        match word {
            "push_rule" => self.memory.put(KEY, argument(1)).map_err(said)?,
            "push_event" => match (step[1]["type"].as_str(), &step[1]["value"]) {
                (Some("delete"), _) => self.memory.remove(KEY).map_err(said)?,
                (_, Value::String(text)) => self.memory.put(KEY, text).map_err(said)?,
                // Not a text: what arrives is how it is written.
                (_, other) => self.memory.put(KEY, &other.to_string()).map_err(said)?,
            },
            "push" | "change_while_down" => self.centre.change(KEY, &rule(argument(2))),
            "source_down" => self.centre.set_up(false),
            "source_up" => self.centre.set_up(true),
            "active" => {
                let texts = self.chain.as_ref().and_then(|chain| chain.chain().rules().text(KEY));
                let names = ["A", "B"].into_iter().find(|name| texts.as_deref() == Some(&rule(name)));
                self.got.insert("active".to_owned(), json!(names));
            }
            "create" => {}
            "set_invokers" | "route" => return self.route(word, &step[1]),
            "destroy" => {
                self.binding = None;
                self.chain = None;
                self.engine.shutdown(PATIENCE).map_err(|status| status.to_string())?;
            }
            "add_listener" => {
                let (sender, bell) = channel();
                let keep = Arc::new(Bell(Mutex::new(sender)));
                let weak: Weak<dyn Watcher> = Arc::downgrade(&(Arc::clone(&keep) as Arc<dyn Watcher>));
                let id = self.memory.watch(&Topic::rule(argument(1)), None, weak);
                while bell.try_recv().is_ok() {}
                self.listeners.insert(argument(2).to_owned(), (keep, bell, id));
            }
            "remove_listener" => {
                let Some((.., id)) = self.listeners.get(argument(2)) else {
                    return Err("no such listener".into());
                };
                self.memory.unwatch(&Topic::rule(argument(1)), *id);
            }
            "publish" => {
                for (_, bell, _) in self.listeners.values() {
                    while bell.try_recv().is_ok() {}
                }
                self.memory.put(argument(1), argument(2)).map_err(said)?;
            }
            other => return Err(format!("unknown step {other}")),
        }
        Ok(())
    }

    fn route(&mut self, word: &str, list: &Value) -> Result<(), String> {
        if let Err(status) = self.engine.check_open() {
            // In Rust a chain that is gone cannot be named; what every call of the boundary asks first can.
            self.got
                .insert("error".to_owned(), json!(if status == Status::E_SHUTDOWN { "closed" } else { "?" }));
            return Ok(());
        }
        let Some(chain) = &self.chain else { return Err("no chain".to_owned()) };
        let names: Vec<&str> = urls(list);
        let texts: Vec<String> = names
            .iter()
            .map(|name| if name.contains("://") { (*name).to_owned() } else { format!("dubbo://{name}:1/S") })
            .collect();
        let invokers = byway::chain::snapshot::Invokers::from_urls(texts.iter().map(String::as_str))
            .map_err(|error| error.to_string())?;
        chain.chain().set_invokers(invokers);
        if word == "set_invokers" {
            return Ok(());
        }
        let choice = chain.chain().route(&Invocation::new(b"m")).map_err(|error| error.to_string())?;
        let kept: Vec<Value> = choice
            .to_tags()
            .iter()
            .map(|tag| match names.get(*tag as usize) {
                Some(name) if !name.contains("://") => json!(name),
                _ => json!(tag),
            })
            .collect();
        self.got.insert("kept".to_owned(), json!(kept));
        Ok(())
    }
}

/// A rule of this name.
fn rule(name: &str) -> String {
    format!("conditions: ['method={name} => host={name}']")
}
