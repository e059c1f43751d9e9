//! The mesh router of a chain: the rules of every application its providers belong to, kept with the list they
//! were put together for.

use super::matchers::Asked;
use super::route::Compiled;
use super::{MeshRules, SUFFIX};
use crate::chain::program::Column;
use crate::chain::router::{Request, Router, RouterSlot, SlotBody, Verdict};
use crate::chain::snapshot::Invokers;
use crate::chain::store::{RuleStore, Subscriber};
use crate::chain::url::Url;
use crate::error::{Error, Result, Source, Status};
use crate::rules::dialect::{Dialect, Role};
use crate::rules::routers;
use arc_swap::ArcSwapOption;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What happens to a call that no route matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Unmatched {
    /// The list passes, as upstream.
    #[default]
    Pass,
    /// Nobody may serve it.
    Nobody,
}

/// Values of tracing contexts by key, one per provider of them.
pub type Tracing = Arc<dyn Fn(&str) -> Vec<Option<String>> + Send + Sync>;

/// The router.
pub struct MeshRouter {
    store: Arc<RuleStore>,
    dialect: Dialect,
    unmatched: Unmatched,
    tracing: Option<Tracing>,
    /// Counts changes of mesh rules.
    revision: AtomicU64,
    compiled: ArcSwapOption<Kept>,
}

/// Rules and list put together, and what they were.
struct Kept {
    revision: u64,
    invokers: u64,
    compiled: Compiled,
}

impl fmt::Debug for MeshRouter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeshRouter").field("dialect", &self.dialect).finish_non_exhaustive()
    }
}

impl MeshRouter {
    /// A router over the mesh rules of a store; it follows their changes.
    pub fn new(
        store: Arc<RuleStore>,
        dialect: Dialect,
        unmatched: Unmatched,
        tracing: Option<Tracing>,
    ) -> Arc<Self> {
        let router = Arc::new(MeshRouter {
            store: store.clone(),
            dialect,
            unmatched,
            tracing,
            revision: AtomicU64::new(0),
            compiled: ArcSwapOption::empty(),
        });
        let weak = Arc::downgrade(&router);
        store.subscribe(weak);
        router
    }

    /// The router's place in a chain; `None` in dialects without mesh rules.
    pub fn slot(store: Arc<RuleStore>, dialect: Dialect) -> Option<RouterSlot> {
        let (name, order) = routers::place(dialect, Role::Mesh)?;
        let router = MeshRouter::new(store, dialect, Unmatched::Pass, None);
        Some(RouterSlot::new(name, order, SlotBody::Foreign(router)))
    }

    fn compiled(&self, invokers: &Invokers) -> Arc<Kept> {
        let revision = self.revision.load(Ordering::Acquire);
        let known = self.compiled.load_full();
        if let Some(kept) = known.filter(|kept| kept.revision == revision && kept.invokers == invokers.id()) {
            return kept;
        }
        let rules = |application: &str| {
            let (rule, _) = self.store.active(&format!("{application}{SUFFIX}"), self.dialect as u8)?;
            let rules = rule.as_any()?.downcast_ref::<MeshRules>()?;
            rules.is_complete().then(|| Arc::new(rules.clone()))
        };
        let kept =
            Arc::new(Kept { revision, invokers: invokers.id(), compiled: Compiled::new(invokers, rules) });
        self.compiled.store(Some(kept.clone()));
        kept
    }
}

impl Subscriber for MeshRouter {
    fn rule_changed(&self, key: &str) {
        if key.ends_with(SUFFIX) {
            self.revision.fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl Router for MeshRouter {
    fn keys(&self, invokers: &Invokers) -> Vec<Arc<str>> {
        let mut names: Vec<String> = Vec::new();
        for row in 0..invokers.len() {
            let Some(name) = invokers.column(row, &Column::Application) else { continue };
            if !name.is_empty() && name != "unknown" && !names.iter().any(|known| *known == *name) {
                names.push(name.into_owned());
            }
        }
        names.into_iter().map(|name| format!("{name}{SUFFIX}").into()).collect()
    }

    fn is_idle(&self, invokers: &Invokers) -> bool {
        let in_force = |key: &Arc<str>| {
            self.store.active(key, self.dialect as u8).is_some_and(|(rule, _)| rule.in_force())
        };
        !self.keys(invokers).iter().any(in_force)
    }

    fn route(&self, request: &mut Request<'_>) -> Result<Verdict> {
        let kept = self.compiled(request.invokers);
        if kept.compiled.is_empty() {
            return Ok(Verdict::Pass);
        }
        let consumer: &Url = request.consumer;
        let label = |name: &str| consumer.parameter(name).map(str::to_owned);
        let none = |_: &str| Vec::new();
        let tracing: &dyn Fn(&str) -> Vec<Option<String>> = match &self.tracing {
            Some(tracing) => &**tracing,
            None => &none,
        };
        let asked = Asked { call: request.call, label: &label, tracing };
        let rows = request.rows;
        let usable = |row: usize| rows.contains(row);
        let routed =
            kept.compiled.route(consumer.interface(), &asked, &usable, request.draw, self.dialect).map_err(
                |fault| Error::new(Status::E_RULE, fault.0).subject("mesh").source(Source::Parser),
            )?;
        if request.explaining {
            request.message = Some(routed.message);
        }
        match routed.rows {
            Some(rows) => {
                for row in rows {
                    request.keep(row as usize);
                }
                Ok(Verdict::Kept)
            }
            None if self.unmatched == Unmatched::Nobody => Ok(Verdict::Kept),
            None => Ok(Verdict::Pass),
        }
    }
}
