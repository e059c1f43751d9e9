//! Static rules of a chain: conditions and scripts from URLs, and from files, which are watched.
//!
//! The files of all chains of an engine have one watching thread, that of a [`FileSource`]; it is started with the
//! first file rule and ends with the engine. When a file has changed it reads it (never half a text), makes the rule
//! anew and puts it in: one new world, like every change. A text that cannot be used leaves the last good one in
//! force; the error is an event with the URL as its subject, and stands in the status until the file is right again.

use super::Engine;
use super::routes::listen::NoticeKind;
use super::routing::RoutingChain;
use crate::chain::router::{RouterSlot, SlotBody};
use crate::chain::url::Url;
use crate::error::{Error, Result, Status};
use crate::rules::file::FileRule;
use crate::rules::routers::{self, StaticKind};
use crate::source::Source;
use crate::source::board::{WatchId, Watcher};
use crate::source::file::FileSource;
use crate::source::topic::{Topic, Value};
use once_cell::sync::OnceCell;
use serde_json::{Value as Json, json};
use std::sync::{Arc, Weak};

/// One static rule of a chain.
pub(super) struct StaticRule {
    text: Arc<str>,
    url: Url,
    /// The rule in force.
    pub(super) slot: RouterSlot,
    /// For a rule in a file: what was read last.
    file: Option<FileRule>,
    /// Why the file's present content is not in force.
    error: Option<Error>,
}

/// The files that a chain's rules are in.
pub(super) struct Watching {
    source: Arc<FileSource>,
    watcher: Arc<Rereads>,
    /// Not while the files are about to be watched.
    id: Option<WatchId>,
    topics: Vec<Topic>,
}

/// Told by the watching thread.
struct Rereads(Weak<RoutingChain>);

impl Watcher for Rereads {
    fn changed(&self) {
        if let Some(chain) = self.0.upgrade() {
            chain.reread_files();
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.topics.iter().for_each(|topic| self.source.unwatch(topic, id));
        }
    }
}

/// The watching thread of an engine; none until a rule is in a file.
#[derive(Default)]
pub(super) struct Files(OnceCell<Arc<FileSource>>);

impl Engine {
    fn files(&self) -> Result<Arc<FileSource>> {
        self.check_open()?;
        let Files(files) = self.routing().files();
        let source = files.get_or_try_init(|| {
            let source = FileSource::anywhere();
            let shared: Arc<dyn Source> = Arc::clone(&source) as _;
            self.adopt_source(&shared)?;
            Ok::<_, Error>(source)
        })?;
        Ok(Arc::clone(source))
    }
}

fn topic_of(file: &FileRule) -> Topic {
    Topic::rule(file.path().to_string_lossy().as_ref())
}

impl RoutingChain {
    /// A static rule from a URL; `None` for `empty://`, which clears. A file is read here, which may block.
    ///
    /// # Errors
    /// Why the URL, or what it names, is no usable rule.
    pub(super) fn static_rule(&self, text: &str) -> Result<Option<StaticRule>> {
        let url = Url::parse(text)?;
        if url.protocol() == "empty" {
            return Ok(None);
        }
        let file = match routers::static_kind(&url)? {
            StaticKind::File => Some(FileRule::read(&url)?),
            StaticKind::Condition | StaticKind::Script => None,
        };
        let slot = self.static_slot(text, &url, file.as_ref())?;
        Ok(Some(StaticRule { text: text.into(), url, slot, file, error: None }))
    }

    fn static_slot(&self, text: &str, url: &Url, file: Option<&FileRule>) -> Result<RouterSlot> {
        let dialect = self.dialect();
        let (router, rule) = match file {
            Some(file) => (file.router.as_str(), file.text().to_owned()),
            None if routers::static_kind(url)? == StaticKind::Script => ("script", routers::rule_of(url)?),
            None => ("condition", routers::rule_of(url)?),
        };
        match router {
            "condition" => routers::static_condition(url, &rule, self.chain().consumer(), dialect),
            "script" => {
                let language = match file {
                    Some(file) => file.language.as_deref(),
                    None => url.given("type"),
                };
                crate::rules::script::check_language(language.unwrap_or("javascript"))?;
                let priority = routers::priority_of(url, dialect)?;
                let pure = routers::flag_of(url, "pure")?;
                self.script_slot(text, rule, priority, pure)
            }
            other => {
                let message =
                    format!("no file holds a static router '{other}'; script and condition are known");
                Err(Error::new(Status::E_UNSUPPORTED, message).subject("router"))
            }
        }
    }

    #[cfg(feature = "script")]
    fn script_slot(&self, text: &str, rule: String, priority: i64, pure: bool) -> Result<RouterSlot> {
        use crate::rules::script::{NAME, Program, ScriptRouter};
        use crate::script::Limits;
        let engine = self.engine()?;
        let pool = engine.routing().scripts();
        let limits = Limits::default();
        let program = Arc::new(Program::new(rule.clone(), limits)?);
        Program::check(&rule, limits, &pool)?;
        let router = ScriptRouter::new(text, program, pure, pool, Some(engine.script_observer()));
        Ok(RouterSlot::new(NAME, priority, SlotBody::Foreign(Arc::new(router))))
    }

    #[cfg(not(feature = "script"))]
    fn script_slot(&self, _: &str, _: String, _: i64, _: bool) -> Result<RouterSlot> {
        let why = "script rules need a library with the feature script";
        Err(Error::new(Status::E_UNSUPPORTED, why).subject("router"))
    }

    /// Puts these static rules in the place of those before, as one world, and has their files watched. `giver` is the
    /// binding they are from, 0 for the host.
    pub(super) fn replace_static(&self, rules: Vec<StaticRule>, giver: u64) -> Result<()> {
        let topics: Vec<Topic> = rules.iter().filter_map(|rule| rule.file.as_ref().map(topic_of)).collect();
        let watching = match topics.is_empty() {
            true => None,
            false => {
                let (source, watcher) = (self.engine()?.files()?, Arc::new(Rereads(self.own())));
                Some(Watching { source, watcher, id: None, topics })
            }
        };
        let before = self.change(|slots| {
            slots.from_urls = rules;
            slots.giver = giver;
            std::mem::replace(&mut slots.watching, watching)
        });
        self.watch();
        // Without a lock: it may end the last follower of a file.
        drop(before);
        Ok(())
    }

    /// Follows the files of the rules just set. What changed between reading and this is told as the first state.
    fn watch(&self) {
        let Some((source, watcher, topics)) = self.with_slots(|slots| {
            let one = slots.watching.as_ref().filter(|one| one.id.is_none())?;
            Some((Arc::clone(&one.source), Arc::clone(&one.watcher), one.topics.clone()))
        }) else {
            return;
        };
        let mut id = None;
        for topic in &topics {
            let watcher: Weak<dyn Watcher> = Arc::downgrade(&(Arc::clone(&watcher) as _));
            id = Some(source.watch(topic, id, watcher));
        }
        let kept = self.with_slots(|slots| match (&mut slots.watching, id) {
            (Some(one), Some(id)) if Arc::ptr_eq(&one.watcher, &watcher) => {
                one.id = Some(id);
                true
            }
            _ => false,
        });
        // Other rules were set meanwhile.
        if let (false, Some(id)) = (kept, id) {
            topics.iter().for_each(|topic| source.unwatch(topic, id));
        }
    }

    /// Takes in what the watching thread has read.
    fn reread_files(&self) {
        let Some(source) = self.with_slots(|slots| Some(Arc::clone(&slots.watching.as_ref()?.source))) else {
            return;
        };
        let mut told: Vec<(Arc<str>, Option<Error>)> = Vec::new();
        self.change(|slots| {
            for rule in &mut slots.from_urls {
                let Some(file) = &rule.file else { continue };
                let topic = topic_of(file);
                let gone =
                    || Error::new(Status::E_NOT_FOUND, "the file is gone; its last content stays in force");
                let found = match (source.board().look(&topic), source.board().complaint(&topic)) {
                    (_, Some(error)) | (Some(Err(error)), None) => Err(error),
                    (Some(Ok(Value::Text(text))), None) => Ok(text),
                    (Some(Ok(_)), None) => Err(gone()),
                    (None, None) => continue,
                };
                let same = matches!(&found, Ok(text) if **text == *file.text());
                if same && rule.error.is_none() {
                    continue;
                }
                let made = found.and_then(|text| {
                    let file = file.with_text(&text);
                    // The content of the rule in force has come back.
                    let slot = if same {
                        rule.slot.clone()
                    } else {
                        self.static_slot(&rule.text, &rule.url, Some(&file))?
                    };
                    Ok((slot, file))
                });
                let error = match made {
                    Ok((slot, file)) => {
                        (rule.slot, rule.file) = (slot, Some(file));
                        None
                    }
                    Err(error) => Some(error),
                };
                if rule.error != error || error.is_none() {
                    told.push((Arc::clone(&rule.text), error.clone()));
                }
                rule.error = error;
            }
        });
        if let Ok(engine) = self.engine() {
            for (subject, error) in told {
                engine.announce(NoticeKind::Rule, &subject, error);
            }
        }
    }

    /// How the static rules stand, in the order they were set.
    pub(super) fn static_json(&self) -> Vec<Json> {
        self.with_slots(|slots| {
            slots
                .from_urls
                .iter()
                .map(|rule| {
                    let mut value = json!({
                        "url": &*rule.text,
                        "router": &*rule.slot.name,
                        "priority": rule.slot.priority,
                    });
                    let trouble = match &rule.slot.body {
                        SlotBody::Foreign(router) => router.trouble(),
                        _ => None,
                    };
                    super::routing::add_errors(&mut value, rule.error.as_ref(), trouble.as_ref());
                    value
                })
                .collect()
        })
    }
}
