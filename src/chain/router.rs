//! Routers: what a chain is made of, and the order they run in.
//!
//! A router is a program (built in or lowered from a rule) or foreign code behind [`Router`]: a host's callback, a
//! script, a mesh rule. Programs are compiled together; foreign code is called per call and ends the memo. Foreign
//! code that follows rules ([`RuleRouter`]) is made anew for every world, from the rules that hold in it.

use std::fmt;
use std::sync::Arc;

use super::bits::Rows;
use super::invocation::Invocation;
use super::program::{Program, Rule};
use super::snapshot::Invokers;
use super::url::Url;
use crate::error::{Error, Result};

/// A router that is not a program. Called per call, on the routing thread; must not block.
pub trait Router: Send + Sync {
    /// Decides which rows stay. An error fails the route call.
    fn route(&self, request: &mut Request<'_>) -> Result<Verdict>;

    /// What went wrong while it decided calls it then passed on unchanged, for the status.
    fn trouble(&self) -> Option<Trouble> {
        None
    }
}

/// What went wrong in a router that does not fail the call.
#[derive(Clone, Debug, PartialEq)]
pub struct Trouble {
    /// The last error.
    pub error: Error,
    /// How many there were since the rule was set.
    pub count: u64,
}

/// A rule in force, its key, and how many texts the key was given.
pub struct ActiveRule {
    /// The key.
    pub key: Arc<str>,
    /// The rule.
    pub rule: Arc<dyn Rule>,
    /// Revision of the key.
    pub revision: u64,
}

/// A router that is no program and whose rules lie in the chain's store. It is made anew for every world, from the
/// rules that hold in it, so a world's routers never change: list and rules take effect as one, and a call is
/// explained by the rules that answered it.
pub trait RuleRouter: Send + Sync {
    /// Keys of the rules it follows over this list.
    fn keys(&self, invokers: &Invokers) -> Vec<Arc<str>>;

    /// The router over this list, by those of its rules that are in force, at least one, in the order of the keys.
    /// `None`: it would pass every call. `trial`: for a dry run, whose troubles are nobody's.
    fn bind(&self, invokers: &Arc<Invokers>, rules: &[ActiveRule], trial: bool) -> Option<Arc<dyn Router>>;
}

/// What a [`Router`] decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The list passes unchanged; what was kept is ignored.
    Pass,
    /// The rows given to [`Request::keep`] stay, possibly none.
    Kept,
}

/// One question to a [`Router`].
pub struct Request<'a> {
    /// The whole list. Row numbers mean rows of it.
    pub invokers: &'a Arc<Invokers>,
    /// The rows that came out of the router before.
    pub rows: Rows<'a>,
    /// The call.
    pub call: &'a Invocation<'a>,
    /// The chain's consumer URL.
    pub consumer: &'a Arc<Url>,
    /// Asked for an explanation: nothing is sent anywhere with the answer, and counters should not move.
    pub explaining: bool,
    /// Draws a number below its argument from the caller's stream.
    pub draw: &'a mut dyn FnMut(u64) -> u64,
    /// Said by the router for explanations, in words.
    pub message: Option<String>,
    pub(crate) kept: &'a mut Vec<u32>,
}

impl Request<'_> {
    /// Keeps a row. Rows that did not come in are ignored; order and repetitions do not matter.
    pub fn keep(&mut self, row: usize) {
        if let Ok(row) = u32::try_from(row) {
            self.kept.push(row);
        }
    }
}

/// A router of one chain and its place.
#[derive(Clone)]
pub struct RouterSlot {
    /// Name in `router=` lists, explanations and status.
    pub name: Arc<str>,
    /// Routers run in ascending order; equal ones in the order they were added.
    pub priority: i64,
    /// What it is.
    pub body: SlotBody,
    /// Runs without being asked for. False: only when `router=` names it.
    pub by_default: bool,
}

/// What a router is made of.
#[derive(Clone)]
pub enum SlotBody {
    /// A program that never changes: mock selector, address router, a static rule.
    Program(Arc<Program>),
    /// The rule with this key, as it is at the moment.
    Rule {
        /// Where the key comes from.
        key: SlotKey,
        /// Decides while no rule is in force; `None`: the list passes.
        otherwise: Option<Arc<Program>>,
    },
    /// Foreign code.
    Foreign(Arc<dyn Router>),
    /// Foreign code over rules.
    Rules(Arc<dyn RuleRouter>),
}

/// The key a chain's rule is found by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlotKey {
    /// Does not depend on the providers: service and consumer application rules.
    Fixed(Arc<str>),
    /// The application of the first provider, followed by the suffix. None while there is no provider, it names no
    /// application, or the application is `except`.
    ProviderApplication {
        /// For example `.tag-router`.
        suffix: Arc<str>,
        /// The consumer's own application, where its rule is applied by another router already.
        except: Option<Arc<str>>,
    },
}

impl SlotKey {
    /// The key at the moment.
    pub fn resolve(&self, invokers: &Invokers) -> Option<Arc<str>> {
        match self {
            SlotKey::Fixed(key) => Some(Arc::clone(key)),
            SlotKey::ProviderApplication { suffix, except } => {
                let application = invokers.column(0, &super::program::Column::Application)?;
                if except.as_deref() == Some(&*application) {
                    return None;
                }
                Some(format!("{application}{suffix}").into())
            }
        }
    }
}

impl RouterSlot {
    /// A router that runs by default.
    pub fn new(name: impl Into<Arc<str>>, priority: i64, body: SlotBody) -> RouterSlot {
        RouterSlot { name: name.into(), priority, body, by_default: true }
    }

    /// A router that only runs when `router=` names it.
    #[must_use]
    pub fn on_request(mut self) -> RouterSlot {
        self.by_default = false;
        self
    }
}

impl fmt::Debug for RouterSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name, self.priority)
    }
}

/// Picks and orders the routers of a chain.
///
/// `selection` is the consumer's `router=` parameter, a comma separated list as Dubbo reads it: a name adds a router
/// that is not there by default, `-name` takes one away, `-default` takes all defaults away, and `default` marks
/// where the defaults go. Names in front of `default` run before all defaults, and names behind it, or without it,
/// by their priority. A name that no router has is ignored.
pub fn select(slots: &[RouterSlot], selection: Option<&str>) -> Vec<RouterSlot> {
    let words: Vec<&str> =
        selection.unwrap_or_default().split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
    let excluded = |name: &str| words.iter().any(|word| word.strip_prefix('-') == Some(name));
    let named = |name: &str| words.contains(&name);
    let front: Vec<&str> = match words.iter().position(|word| *word == "default") {
        Some(at) => words.iter().take(at).copied().filter(|word| !word.starts_with('-')).collect(),
        None => Vec::new(),
    };
    let mut chosen: Vec<(usize, RouterSlot)> = slots
        .iter()
        .filter(|slot| !excluded(&slot.name))
        .filter(|slot| named(&slot.name) || slot.by_default && !excluded("default"))
        .map(|slot| {
            let place = front.iter().position(|name| *name == &*slot.name);
            (place.unwrap_or(usize::MAX), slot.clone())
        })
        .collect();
    chosen.sort_by_key(|(place, slot)| (*place, if *place == usize::MAX { slot.priority } else { i64::MIN }));
    chosen.into_iter().map(|(_, slot)| slot).collect()
}

/// A fixed program as a rule, for places that take a rule.
impl Rule for Program {
    fn lower(&self, _at: &super::program::Lowering<'_>) -> Result<Program> {
        Ok(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_router_parameter_selects_and_orders() {
        let body = || SlotBody::Program(Arc::new(Program::new(Vec::new())));
        let slots = [
            RouterSlot::new("service", 140, body()),
            RouterSlot::new("mock", -100, body()),
            RouterSlot::new("tag", 100, body()),
            RouterSlot::new("address", 180, body()).on_request(),
            RouterSlot::new("mine", 100, body()),
        ];
        let table: &[(Option<&str>, &[&str])] = &[
            (None, &["mock", "tag", "mine", "service"]),
            (Some(""), &["mock", "tag", "mine", "service"]),
            (Some("-tag"), &["mock", "mine", "service"]),
            (Some("-default,tag"), &["tag"]),
            (Some("service,default"), &["service", "mock", "tag", "mine"]),
            (Some("mine , service, default"), &["mine", "service", "mock", "tag"]),
            (Some("address"), &["mock", "tag", "mine", "service", "address"]),
            (Some("default,address,-mock"), &["tag", "mine", "service", "address"]),
            (Some("unknown"), &["mock", "tag", "mine", "service"]),
            (Some("-default"), &[]),
        ];
        for (selection, expect) in table {
            let names: Vec<String> =
                select(&slots, *selection).iter().map(|slot| slot.name.to_string()).collect();
            assert_eq!(names, *expect, "{selection:?}");
        }
    }
}
