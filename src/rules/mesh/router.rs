//! The mesh router of a chain: the rules of every application its providers belong to, put together with the list
//! when either changes.

use super::matchers::Asked;
use super::route::Compiled;
use super::{MeshRules, SUFFIX};
use crate::chain::router::{ActiveRule, Request, Router, RouterSlot, RuleRouter, SlotBody, Verdict};
use crate::chain::snapshot::Invokers;
use crate::error::{Error, Result, Source, Status};
use crate::rules::dialect::{Dialect, Role};
use crate::rules::routers;
use std::fmt;
use std::sync::Arc;

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

/// Makes the mesh routers of a chain's worlds.
#[derive(Clone)]
pub struct MeshRouter {
    dialect: Dialect,
    unmatched: Unmatched,
    tracing: Option<Tracing>,
}

impl fmt::Debug for MeshRouter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeshRouter").field("dialect", &self.dialect).finish_non_exhaustive()
    }
}

impl MeshRouter {
    /// For chains of a dialect.
    pub fn new(dialect: Dialect, unmatched: Unmatched, tracing: Option<Tracing>) -> MeshRouter {
        MeshRouter { dialect, unmatched, tracing }
    }

    /// The router's place in a chain; `None` in dialects without mesh rules.
    pub fn slot(dialect: Dialect) -> Option<RouterSlot> {
        let (name, order) = routers::place(dialect, Role::Mesh)?;
        let router = MeshRouter::new(dialect, Unmatched::Pass, None);
        Some(RouterSlot::new(name, order, SlotBody::Rules(Arc::new(router))))
    }
}

impl RuleRouter for MeshRouter {
    fn keys(&self, invokers: &Invokers) -> Vec<Arc<str>> {
        let names = invokers.applications().into_iter().filter(|name| *name != "unknown");
        names.map(|name| format!("{name}{SUFFIX}").into()).collect()
    }

    fn bind(&self, invokers: &Arc<Invokers>, rules: &[ActiveRule], _: bool) -> Option<Arc<dyn Router>> {
        let of = |application: &str| {
            let one = rules.iter().find(|one| one.key.strip_suffix(SUFFIX) == Some(application))?;
            one.rule.as_any()?.downcast_ref::<MeshRules>().cloned().map(Arc::new)
        };
        let compiled = Compiled::new(invokers, of);
        if compiled.is_empty() {
            return None;
        }
        Some(Arc::new(BoundMesh { compiled, of: self.clone() }))
    }
}

/// The router of one world.
struct BoundMesh {
    compiled: Compiled,
    of: MeshRouter,
}

impl Router for BoundMesh {
    fn route(&self, request: &mut Request<'_>) -> Result<Verdict> {
        let consumer = request.consumer;
        let label = |name: &str| consumer.parameter(name).map(str::to_owned);
        let none = |_: &str| Vec::new();
        let tracing: &dyn Fn(&str) -> Vec<Option<String>> = match &self.of.tracing {
            Some(tracing) => &**tracing,
            None => &none,
        };
        let asked = Asked { call: request.call, label: &label, tracing };
        let rows = request.rows;
        let usable = |row: usize| rows.contains(row);
        let routed = self
            .compiled
            .route(consumer.interface(), &asked, &usable, request.draw, self.of.dialect)
            .map_err(|fault| Error::new(Status::E_RULE, fault.0).subject("mesh").source(Source::Parser))?;
        if request.explaining {
            let mut sentences = routed.sentences();
            if routed.rows.is_none() {
                sentences.push("nobody was found by these rules, so all stay".to_owned());
            }
            request.message = Some(sentences.join("; "));
        }
        match routed.rows {
            Some(rows) => {
                for row in rows {
                    request.keep(row as usize);
                }
                Ok(Verdict::Kept)
            }
            None if self.of.unmatched == Unmatched::Nobody => Ok(Verdict::Kept),
            None => Ok(Verdict::Pass),
        }
    }
}
