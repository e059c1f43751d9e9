//! The second half inside an engine: rules by key, host routers by name, counters of picks, and the making of chains.

use super::Engine;
use super::routes::listen::{Notice, NoticeKind};
use super::static_rules::{Files, StaticRule, Watching};
use crate::chain::chain::{Chain, ChainOptions, RouterStatus};
use crate::chain::pick::CallStats;
use crate::chain::picking::PickOptions;
use crate::chain::router::{Router, RouterSlot, SlotBody, Trouble};
use crate::chain::snapshot::Invokers;
use crate::chain::store::RuleStore;
use crate::chain::url::Url;
use crate::error::{Error, Result, Status};
use crate::rules::dialect::Dialect;
use crate::rules::mesh::router::MeshRouter;
use crate::rules::routers;
use crate::source::bind::Owners;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Weak};

/// What an engine keeps for its chains.
pub struct Routing {
    dialect: Dialect,
    rules: Arc<RuleStore>,
    stats: Arc<CallStats>,
    pub(super) owners: Arc<Owners>,
    named: Mutex<Vec<Named>>,
    files: Files,
    /// Threads of script rules; none until a script runs.
    #[cfg(feature = "script")]
    scripts: crate::script::Pool,
}

/// A host router known by name to every chain made from now on.
struct Named {
    name: Arc<str>,
    priority: i64,
    by_default: bool,
    router: Weak<dyn Router>,
}

impl Routing {
    pub(super) fn new(dialect: Dialect) -> Routing {
        #[cfg(feature = "script")]
        let scripts = crate::script::Pool::default();
        #[cfg(feature = "script")]
        let languages = routers::languages_with(crate::rules::script::ScriptLanguage {
            pool: scripts.clone(),
            ..Default::default()
        });
        #[cfg(not(feature = "script"))]
        let languages = routers::languages();
        Routing {
            dialect,
            rules: RuleStore::new(languages, dialect as u8),
            stats: CallStats::new(),
            owners: Arc::default(),
            named: Mutex::default(),
            files: Files::default(),
            #[cfg(feature = "script")]
            scripts,
        }
    }

    pub(super) fn files(&self) -> &Files {
        &self.files
    }

    /// The threads scripts of this engine run on.
    #[cfg(feature = "script")]
    pub(super) fn scripts(&self) -> crate::script::Pool {
        self.scripts.clone()
    }

    /// Whose reading of rules is wanted where a chain does not say.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Rules by key.
    pub fn rules(&self) -> &Arc<RuleStore> {
        &self.rules
    }

    /// Counters of picks.
    pub fn stats(&self) -> &Arc<CallStats> {
        &self.stats
    }

    /// Makes a router known by name: chains made from now on have it, all of them or those whose `router=` names it,
    /// for as long as somebody holds it.
    ///
    /// # Errors
    /// `E_DUPLICATE` when the name is a built-in router's or taken by one that is still held.
    pub fn register(&self, slot: &RouterSlot, router: &Arc<dyn Router>) -> Result<()> {
        let taken = |name: &str| {
            let message = format!("a router of the name {name} exists already");
            Error::new(Status::E_DUPLICATE, message).subject("name")
        };
        let built_in = Dialect::ALL.iter().flat_map(|dialect| dialect.table().routers);
        if built_in.into_iter().any(|place| place.name == &*slot.name) || &*slot.name == "condition" {
            return Err(taken(&slot.name));
        }
        let mut named = self.named.lock();
        named.retain(|one| one.router.strong_count() > 0);
        if named.iter().any(|one| one.name == slot.name) {
            return Err(taken(&slot.name));
        }
        let RouterSlot { name, priority, by_default, .. } = slot.clone();
        named.push(Named { name, priority, by_default, router: Arc::downgrade(router) });
        Ok(())
    }

    fn named(&self) -> Vec<RouterSlot> {
        let slot = |one: &Named| {
            let body = SlotBody::Foreign(one.router.upgrade()?);
            Some(RouterSlot {
                name: Arc::clone(&one.name),
                priority: one.priority,
                body,
                by_default: one.by_default,
            })
        };
        self.named.lock().iter().filter_map(slot).collect()
    }
}

/// How a chain differs from what its engine says.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChainWish {
    /// Another dialect.
    pub dialect: Option<Dialect>,
    /// What an empty list does, where it is not the dialect's.
    pub fail_fast: Option<bool>,
    /// Bytes of memoised results one world may keep; 0 switches the memo off.
    pub memo_bytes: Option<usize>,
    /// The last calls are kept to be explained.
    pub keep_recent: bool,
}

/// A chain and the routers it was given, so that more can be added.
pub struct RoutingChain {
    own: Weak<RoutingChain>,
    engine: Weak<Engine>,
    chain: Chain,
    dialect: Dialect,
    slots: Mutex<Slots>,
    pub(super) owners: Arc<Owners>,
}

#[derive(Default)]
pub(super) struct Slots {
    built_in: Vec<RouterSlot>,
    pub(super) from_urls: Vec<StaticRule>,
    pub(super) watching: Option<Watching>,
    /// The binding whose source gave `from_urls`, 0 for the host.
    pub(super) giver: u64,
    /// The newest binding that has put a world in force: what an older one still brings comes too late.
    pub(super) newest_binding: u64,
    /// The list that a binding gave last, and that binding.
    pub(super) given: Option<(u64, Weak<Invokers>)>,
    added: Vec<RouterSlot>,
}

impl Engine {
    /// Has listeners told when a rule is set, refused or removed.
    pub(super) fn tell_of_rules(&self) {
        let engine = self.own.clone();
        self.routing().rules().observe(move |event| {
            if let Some(engine) = engine.upgrade() {
                engine.announce(NoticeKind::Rule, &event.key, event.error.clone());
            }
        });
    }

    /// Has listeners told when a script fails while it routes.
    #[cfg(feature = "script")]
    pub(super) fn script_observer(&self) -> crate::rules::script::Observer {
        let engine = self.own.clone();
        Arc::new(move |subject, error| {
            if let Some(engine) = engine.upgrade() {
                engine.announce(NoticeKind::RuleFailed, subject, Some(error.clone()));
            }
        })
    }

    /// Tells listeners through their queues; a notice about the same subject that still waits there is replaced.
    pub(super) fn announce(&self, kind: NoticeKind, subject: &Arc<str>, error: Option<Error>) {
        if !self.listeners().wants(kind) {
            return;
        }
        for (listener, queue) in self.listeners().inboxes(kind) {
            let mut hasher = DefaultHasher::new();
            (self.id(), listener, kind as i32, &**subject).hash(&mut hasher);
            let notice = Notice { kind, subject: Arc::clone(subject), error: error.clone() };
            let engine = self.own.clone();
            let job = move || {
                if let Some(engine) = engine.upgrade() {
                    engine.listeners().notify(listener, &notice);
                }
            };
            self.tell_later(queue.as_ref().unwrap_or(self.queue()), hasher.finish() | 1, Box::new(job));
        }
    }

    /// A chain for a consumer, with the dialect's built-in routers and the engine's named ones, without providers.
    ///
    /// # Errors
    /// `E_SHUTDOWN`; an unusable static rule in the consumer URL.
    pub fn chain(&self, consumer: Url, wish: &ChainWish) -> Result<Arc<RoutingChain>> {
        self.check_open()?;
        let routing = self.routing();
        let dialect = wish.dialect.unwrap_or(routing.dialect);
        let mut built_in = routers::built_in(dialect, &consumer)?;
        // Routers that are no programs; idle, and left out of the way, until one of their rules is in force.
        built_in.extend(MeshRouter::slot(dialect));
        #[cfg(feature = "script")]
        {
            let observer = Some(self.script_observer());
            built_in.extend(crate::rules::script::slot(dialect, routing.scripts(), observer));
        }
        built_in.extend(routing.named());
        let table = dialect.table();
        let mut options = ChainOptions::new(consumer, built_in.clone());
        options.dialect = dialect as u8;
        options.fail_fast = wish.fail_fast.unwrap_or(table.fail_fast);
        options.keep_recent = wish.keep_recent;
        options.memo_bytes = wish.memo_bytes.unwrap_or(options.memo_bytes);
        options.picks = PickOptions {
            stats: Arc::clone(&routing.stats),
            clock: self.clock().clone(),
            quirks: table.pick,
        };
        let (engine, subject): (_, Arc<str>) = (self.own.clone(), options.consumer.text().into());
        let chain = Chain::new(options, Arc::clone(&routing.rules), Arc::clone(&self.options().random));
        chain.observe_keys(move |_| {
            if let Some(engine) = engine.upgrade() {
                engine.announce(NoticeKind::ChainKeys, &subject, None);
            }
        });
        let slots = Mutex::new(Slots { built_in, ..Slots::default() });
        let (engine, owners) = (self.own.clone(), Arc::clone(&routing.owners));
        Ok(Arc::new_cyclic(|own| RoutingChain { own: own.clone(), engine, chain, dialect, slots, owners }))
    }
}

impl RoutingChain {
    /// The chain itself.
    #[inline]
    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    /// Its dialect.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    pub(super) fn own(&self) -> Weak<RoutingChain> {
        self.own.clone()
    }

    /// # Errors
    /// `E_SHUTDOWN` when it is gone.
    pub(super) fn engine(&self) -> Result<Arc<Engine>> {
        self.engine.upgrade().ok_or_else(|| Status::E_SHUTDOWN.into())
    }

    /// Adds a router; takes effect before this returns.
    ///
    /// # Errors
    /// `E_DUPLICATE` when the chain has one of this name.
    pub fn add_router(&self, slot: RouterSlot) -> Result<()> {
        let mut slots = self.slots.lock();
        if slots.built_in.iter().chain(&slots.added).any(|own| own.name == slot.name) {
            let message = format!("the chain has a router {}", slot.name);
            return Err(Error::new(Status::E_DUPLICATE, message).subject("router"));
        }
        slots.added.push(slot);
        self.install(&slots);
        Ok(())
    }

    /// Replaces the static rules from URLs (`condition://`, `script://`, `file://`, `route://`). An `empty://` URL
    /// among them is skipped, so one that stands alone takes all away. Nothing changes when one of the others is
    /// unusable. Files are read here, and again whenever they change.
    ///
    /// # Errors
    /// The first unusable URL, named by its index.
    pub fn set_rule_urls<'u>(&self, urls: impl IntoIterator<Item = &'u str>) -> Result<()> {
        let mut rules = Vec::new();
        for (index, text) in urls.into_iter().enumerate() {
            let named = |cause: Error| {
                let message = format!("URL {index} is no usable rule: {}", cause.message());
                let error = Error::new(cause.status(), message).subject(format!("urls[{index}]"));
                match cause.position() {
                    Some(at) => error.at(at).cause(cause),
                    None => error.cause(cause),
                }
            };
            rules.extend(self.static_rule(text).map_err(named)?);
        }
        self.replace_static(rules, 0)
    }

    /// Looks at the routers.
    pub(super) fn with_slots<R>(&self, look: impl FnOnce(&mut Slots) -> R) -> R {
        look(&mut self.slots.lock())
    }

    /// Changes the routers and makes a world of it.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut Slots) -> R) -> R {
        let mut slots = self.slots.lock();
        let result = change(&mut slots);
        self.install(&slots);
        result
    }

    fn install(&self, slots: &Slots) {
        let from_urls = slots.from_urls.iter().map(|rule| &rule.slot);
        let all: Vec<RouterSlot> =
            slots.built_in.iter().chain(from_urls).chain(&slots.added).cloned().collect();
        self.chain.set_routers(&all);
    }
}

impl RoutingChain {
    /// How each router stands, as JSON.
    pub fn status_json(&self) -> String {
        let routers: Vec<Value> = self.chain.status().iter().map(router_json).collect();
        json!({
            "consumer": self.chain.consumer().text(),
            "dialect": self.dialect.table().name,
            "generation": self.chain.generation(),
            "invokers": self.chain.invokers().len(),
            "routers": routers,
            "static": self.static_json(),
        })
        .to_string()
    }
}

fn router_json(router: &RouterStatus) -> Value {
    let mut value = json!({
        "name": &*router.name,
        "priority": router.priority,
        "in_force": router.in_force,
    });
    if let (Some(key), Some(object)) = (&router.key, value.as_object_mut()) {
        object.insert("key".into(), json!(&**key));
        object.insert("revision".into(), json!(router.revision));
        object.insert("version".into(), json!(router.version));
    }
    add_errors(&mut value, router.error.as_ref(), router.trouble.as_ref());
    value
}

/// Why a rule's present text is not in force, and what went wrong while it routed.
pub(super) fn add_errors(value: &mut Value, error: Option<&Error>, trouble: Option<&Trouble>) {
    let Some(object) = value.as_object_mut() else { return };
    if let Some(error) = error {
        object.insert("error".into(), error_json(error));
    }
    if let Some(Trouble { error, count }) = trouble {
        let mut last = error_json(error);
        if let Some(last) = last.as_object_mut() {
            last.insert("count".into(), json!(count));
        }
        object.insert("failed".into(), last);
    }
}

fn error_json(error: &Error) -> Value {
    let place = error.position();
    json!({
        "status": error.status().name(),
        "message": error.message(),
        "line": place.map(|at| at.line),
        "column": place.map(|at| at.column),
    })
}
