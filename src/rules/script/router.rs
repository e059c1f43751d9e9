//! Script routers in chains: by rule of the providers' application, from a URL, and over a text of one's own.

use super::program::{Call, Program};
use super::{NAME, SUFFIX, ScriptRule, check_language};
use crate::chain::program;
use crate::chain::router::{Request, Router, RouterSlot, SlotBody, SlotKey, Verdict};
use crate::chain::snapshot::Invokers;
use crate::chain::store::{Language, RuleState, RuleStore, Subscriber};
use crate::chain::url::Url;
use crate::error::{Error, Result, Status};
use crate::rules::dialect::{Dialect, Role};
use crate::rules::report::Report;
use crate::rules::routers;
use crate::script::{Limits, Pool};
use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A rule with its program.
#[derive(Debug)]
pub(super) struct Compiled {
    rule: ScriptRule,
    program: Option<Arc<Program>>,
}

impl program::Rule for Compiled {
    /// Scripts are no program: their router runs them.
    fn lower(&self, _: &program::Lowering<'_>) -> Result<program::Program> {
        Ok(program::Program::new(Vec::new()))
    }

    fn version(&self) -> &str {
        self.rule.header.version.as_deref().unwrap_or_default()
    }

    fn in_force(&self) -> bool {
        self.rule.in_force() && self.program.is_some()
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

/// The language of script rules for a store of rules.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScriptLanguage {
    /// What each script may use.
    pub limits: Limits,
}

impl Language for ScriptLanguage {
    fn suffix(&self) -> &str {
        SUFFIX
    }

    fn open(&self, dialect: u8) -> Box<dyn RuleState> {
        let dialect = Dialect::from_number(i32::from(dialect)).unwrap_or_default();
        Box::new(State { dialect, limits: self.limits, active: None })
    }
}

/// One key's script through its updates: the last good one stays.
struct State {
    dialect: Dialect,
    limits: Limits,
    active: Option<Arc<Compiled>>,
}

impl RuleState for State {
    fn set(&mut self, text: &str) -> Result<()> {
        let mut report = Report::new(text);
        let rule = ScriptRule::read(text, self.dialect, &mut report);
        if let Some(error) = report.to_error() {
            return Err(error);
        }
        let Some(rule) = rule else {
            self.active = None;
            return Ok(());
        };
        let program = match &rule.script {
            Some(script) => Some(Arc::new(Program::new(script.clone(), self.limits)?)),
            None => None,
        };
        self.active = Some(Arc::new(Compiled { rule, program }));
        Ok(())
    }

    fn remove(&mut self) {
        self.active = None;
    }

    fn active(&self) -> Option<Arc<dyn program::Rule>> {
        self.active.clone().map(|compiled| compiled as Arc<dyn program::Rule>)
    }
}

/// Where a router's script comes from.
enum Origin {
    /// One program for ever, or until [`ScriptRouter::replace`].
    Own(ArcSwapOption<Program>),
    /// The rule of the first provider's application.
    Rule {
        store: Arc<RuleStore>,
        key: SlotKey,
        dialect: Dialect,
        revision: AtomicU64,
        kept: ArcSwapOption<Kept>,
    },
}

struct Kept {
    revision: u64,
    invokers: u64,
    program: Option<Arc<Program>>,
}

/// A router that asks a script. Errors leave the list as it is, are told to the observer, and stand in
/// [`ScriptRouter::last_error`].
pub struct ScriptRouter {
    pool: Pool,
    origin: Origin,
    last_error: Mutex<Option<Error>>,
    errors: AtomicU64,
    observer: Option<Observer>,
}

/// Told about every script error, on the routing thread.
pub type Observer = Arc<dyn Fn(&Error) + Send + Sync>;

impl fmt::Debug for ScriptRouter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptRouter").field("errors", &self.errors).finish_non_exhaustive()
    }
}

impl ScriptRouter {
    /// A router over one program.
    pub fn new(program: Option<Arc<Program>>, pool: Pool, observer: Option<Observer>) -> Arc<ScriptRouter> {
        let origin = Origin::Own(ArcSwapOption::new(program));
        Arc::new(ScriptRouter {
            pool,
            origin,
            last_error: Mutex::default(),
            errors: AtomicU64::new(0),
            observer,
        })
    }

    /// A router over the rules of a store; it follows their changes.
    pub fn of_rules(
        store: Arc<RuleStore>,
        dialect: Dialect,
        pool: Pool,
        observer: Option<Observer>,
    ) -> Arc<Self> {
        let key = SlotKey::ProviderApplication { suffix: SUFFIX.into(), except: None };
        let origin = Origin::Rule {
            store: store.clone(),
            key,
            dialect,
            revision: AtomicU64::new(0),
            kept: ArcSwapOption::empty(),
        };
        let router = Arc::new(ScriptRouter {
            pool,
            origin,
            last_error: Mutex::default(),
            errors: AtomicU64::new(0),
            observer,
        });
        let weak = Arc::downgrade(&router);
        store.subscribe(weak);
        router
    }

    /// Puts another program in force; calls under way end with the old one.
    pub fn replace(&self, program: Option<Arc<Program>>) {
        if let Origin::Own(own) = &self.origin {
            own.store(program);
        }
    }

    /// The last error, and how many there were.
    pub fn last_error(&self) -> (Option<Error>, u64) {
        (self.last_error.lock().clone(), self.errors.load(Ordering::Relaxed))
    }

    fn program(&self, request: &Request<'_>) -> Option<Arc<Program>> {
        let (store, key, dialect, revision, kept) = match &self.origin {
            Origin::Own(own) => return own.load_full(),
            Origin::Rule { store, key, dialect, revision, kept } => (store, key, dialect, revision, kept),
        };
        let now = revision.load(Ordering::Acquire);
        let invokers = request.invokers.id();
        if let Some(kept) = kept.load_full().filter(|kept| kept.revision == now && kept.invokers == invokers)
        {
            return kept.program.clone();
        }
        let find = || {
            let key = key.resolve(request.invokers)?;
            let (rule, _) = store.active(&key, *dialect as u8)?;
            let compiled = rule.as_any()?.downcast_ref::<Compiled>()?;
            compiled.program.clone().filter(|_| compiled.rule.in_force())
        };
        let program = find();
        kept.store(Some(Arc::new(Kept { revision: now, invokers, program: program.clone() })));
        program
    }
}

impl Subscriber for ScriptRouter {
    fn rule_changed(&self, key: &str) {
        if let Origin::Rule { revision, .. } = &self.origin
            && key.ends_with(SUFFIX)
        {
            revision.fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl Router for ScriptRouter {
    fn keys(&self, invokers: &Invokers) -> Vec<Arc<str>> {
        match &self.origin {
            Origin::Own(_) => Vec::new(),
            Origin::Rule { key, .. } => key.resolve(invokers).into_iter().collect(),
        }
    }

    fn is_idle(&self, invokers: &Invokers) -> bool {
        let Origin::Rule { store, dialect, .. } = &self.origin else { return false };
        let in_force =
            |key: &Arc<str>| store.active(key, *dialect as u8).is_some_and(|(rule, _)| rule.in_force());
        !self.keys(invokers).iter().any(in_force)
    }

    fn route(&self, request: &mut Request<'_>) -> Result<Verdict> {
        let Some(program) = self.program(request) else {
            if request.explaining {
                request.message = Some("no script rule is in force".to_owned());
            }
            return Ok(Verdict::Pass);
        };
        let rows: Vec<u32> = request.rows.iter().filter_map(|row| u32::try_from(row).ok()).collect();
        let consumer = Arc::new(request.consumer.clone());
        let call = Call::new(request.invokers.clone(), rows, request.call, consumer);
        match program.route(&self.pool, call) {
            Ok(kept) => {
                for row in kept {
                    request.keep(row as usize);
                }
                Ok(Verdict::Kept)
            }
            Err(error) => {
                if request.explaining {
                    request.message = Some(format!("the list is unchanged: {error}"));
                } else {
                    self.errors.fetch_add(1, Ordering::Relaxed);
                    *self.last_error.lock() = Some(error.clone());
                    if let Some(observer) = &self.observer {
                        observer(&error);
                    }
                }
                Ok(Verdict::Pass)
            }
        }
    }
}

/// The script router's place in a chain; `None` in dialects without script rules.
pub fn slot(
    store: Arc<RuleStore>,
    dialect: Dialect,
    pool: Pool,
    observer: Option<Observer>,
) -> Option<RouterSlot> {
    let (name, order) = routers::place(dialect, Role::Script)?;
    let router = ScriptRouter::of_rules(store, dialect, pool, observer);
    Some(RouterSlot::new(name, order, SlotBody::Foreign(router)))
}

/// A router from a URL: `script://0.0.0.0/com.foo.Bar?type=javascript&rule=...&priority=0`. The URL reader has
/// decoded `rule` once already.
///
/// # Errors
/// `E_UNSUPPORTED` for another `type`, `E_ARGUMENT` for an empty rule.
pub fn static_router(url: &Url, pool: Pool, observer: Option<Observer>) -> Result<RouterSlot> {
    check_language(url.given("type").unwrap_or("javascript"))?;
    let source = url.parameter("rule").unwrap_or_default();
    let program = Program::new(source.to_owned(), Limits::default())?;
    let priority = url.given("priority").unwrap_or("0");
    let priority = priority.parse().map_err(|_| {
        Error::new(Status::E_ARGUMENT, format!("priority '{priority}' is not a number")).subject("priority")
    })?;
    let router = ScriptRouter::new(Some(Arc::new(program)), pool, observer);
    Ok(RouterSlot::new(NAME, priority, SlotBody::Foreign(router)))
}
