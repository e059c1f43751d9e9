//! The second half inside an engine: rules by key, host routers by name, counters of picks, and the making of chains.

use super::Engine;
use super::routes::listen::{Notice, NoticeKind};
use crate::chain::chain::{Chain, ChainOptions, RouterStatus};
use crate::chain::pick::CallStats;
use crate::chain::picking::PickOptions;
use crate::chain::router::{Router, RouterSlot, SlotBody};
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
        Routing {
            dialect,
            rules: RuleStore::new(routers::languages(), dialect as u8),
            stats: CallStats::new(),
            owners: Arc::default(),
            named: Mutex::default(),
            #[cfg(feature = "script")]
            scripts: crate::script::Pool::default(),
        }
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
    chain: Chain,
    dialect: Dialect,
    slots: Mutex<Slots>,
    pub(super) owners: Arc<Owners>,
}

#[derive(Default)]
struct Slots {
    built_in: Vec<RouterSlot>,
    from_urls: Vec<RouterSlot>,
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

    /// Tells listeners through the queue; a notice about the same subject that still waits there is replaced.
    fn announce(&self, kind: NoticeKind, subject: &Arc<str>, error: Option<Error>) {
        if !self.listeners().wants(kind) {
            return;
        }
        let mut hasher = DefaultHasher::new();
        (self.id(), kind as i32, &**subject).hash(&mut hasher);
        let (engine, notice) = (self.own.clone(), Notice { kind, subject: Arc::clone(subject), error });
        let job = move || {
            if let Some(engine) = engine.upgrade() {
                engine.listeners().notify(&notice);
            }
        };
        self.queue().post_latest(hasher.finish() | 1, Box::new(job));
    }

    /// A chain for a consumer, with the dialect's built-in routers and the engine's named ones, without providers.
    ///
    /// # Errors
    /// `E_SHUTDOWN`; an unusable static rule in the consumer URL.
    pub fn chain(&self, consumer: Url, wish: &ChainWish) -> Result<RoutingChain> {
        self.check_open()?;
        let routing = self.routing();
        let dialect = wish.dialect.unwrap_or(routing.dialect);
        let mut built_in = routers::built_in(dialect, &consumer)?;
        // Routers that are no programs; idle, and left out of the way, until one of their rules is in force.
        built_in.extend(MeshRouter::slot(Arc::clone(&routing.rules), dialect));
        #[cfg(feature = "script")]
        {
            let pool = routing.scripts.clone();
            built_in.extend(crate::rules::script::slot(Arc::clone(&routing.rules), dialect, pool, None));
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
        Ok(RoutingChain { chain, dialect, slots, owners: Arc::clone(&routing.owners) })
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

    /// Replaces the static rules from `route://` and `condition://` URLs. An `empty://` URL among them is skipped, so
    /// one that stands alone takes all away. Nothing changes when one of the others is unusable.
    ///
    /// # Errors
    /// The first unusable URL, named by its index.
    pub fn set_rule_urls<'u>(&self, urls: impl IntoIterator<Item = &'u str>) -> Result<()> {
        let mut from_urls = Vec::new();
        for (index, text) in urls.into_iter().enumerate() {
            let router = Url::parse(text).and_then(|url| {
                if url.protocol() == "empty" {
                    return Ok(None);
                }
                routers::static_router(&url, self.chain.consumer(), self.dialect).map(Some)
            });
            let named = |cause: Error| {
                let message = format!("URL {index} is no usable rule: {}", cause.message());
                Error::new(cause.status(), message).subject(format!("urls[{index}]")).cause(cause)
            };
            from_urls.extend(router.map_err(named)?);
        }
        let mut slots = self.slots.lock();
        slots.from_urls = from_urls;
        self.install(&slots);
        Ok(())
    }

    fn install(&self, slots: &Slots) {
        let all: Vec<RouterSlot> =
            slots.built_in.iter().chain(&slots.from_urls).chain(&slots.added).cloned().collect();
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
    if let (Some(error), Some(object)) = (&router.error, value.as_object_mut()) {
        let place = error.position();
        object.insert(
            "error".into(),
            json!({
                "status": error.status().name(),
                "message": error.message(),
                "line": place.map(|at| at.line),
                "column": place.map(|at| at.column),
            }),
        );
    }
    value
}
