//! What a session's call came to, borrowed from the world it pins.

use std::fmt;
use std::sync::Arc;

use super::bits::Rows;
use super::choice::copy_tags;
use super::memo::{Node, NodeKind, Outcome};
use super::plan::Plan;
use super::snapshot::Invokers;

/// A routing result, borrowed: valid until the session's next call.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub(crate) plan: Option<&'a Plan>,
    pub(super) rows: Rows<'a>,
    pub(super) invokers: &'a Arc<Invokers>,
    pub(super) outcome: Option<&'a Outcome>,
    pub(super) generation: u64,
    pub(super) emptied_by: Option<&'a Arc<str>>,
}

impl<'a> View<'a> {
    #[inline(always)]
    pub(crate) fn of(plan: &'a Plan, outcome: &'a Outcome) -> View<'a> {
        View {
            plan: Some(plan),
            rows: outcome.rows(),
            invokers: &plan.invokers,
            outcome: Some(outcome),
            generation: plan.generation,
            emptied_by: if outcome.emptied_by.is_some() { plan.stage_name(outcome.emptied_by) } else { None },
        }
    }

    /// How many invokers may serve the call.
    #[inline]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// True when none may.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Their rows in the list, ascending.
    #[inline]
    pub fn rows(&self) -> Rows<'a> {
        self.rows
    }

    /// The tag of the `n`-th.
    #[inline]
    pub fn tag_at(&self, n: usize) -> Option<u64> {
        self.invokers.tag(self.rows.nth(n)?)
    }

    /// The tags as a borrowed array, when that takes no copy: memoised results of up to 16 384 invokers, and whole
    /// lists that were given tags. Otherwise use [`tags_into`](Self::tags_into).
    #[inline]
    pub fn tags(&self) -> Option<&'a [u64]> {
        match (self.outcome, self.rows, self.invokers.tags()) {
            (_, Rows::All(_), Some(tags)) => Some(tags),
            (Some(outcome), ..) => outcome.tags(self.invokers),
            _ => None,
        }
    }

    /// Copies as many tags as fit and answers how many there are.
    #[inline]
    pub fn tags_into(&self, out: &mut [u64]) -> usize {
        copy_tags(self.rows, self.invokers, out);
        self.rows.len()
    }

    /// The list the rows belong to.
    #[inline]
    pub fn invokers(&self) -> &'a Arc<Invokers> {
        self.invokers
    }

    /// Number of the world that answered.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The router that left nothing; `None` when something is left or there was nothing to begin with.
    #[inline]
    pub fn emptied_by(&self) -> Option<&'a str> {
        self.emptied_by.map(|name| &**name)
    }
}

impl fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "View({} of {})", self.len(), self.invokers.len())
    }
}

/// Follows drawn destinations to the rows.
#[inline(always)]
pub(super) fn view_of<'a>(plan: Option<&'a Plan>, root: Option<&'a Node>, path: &[u32]) -> View<'a> {
    let mut node = root;
    for chosen in path {
        node = match node.map(|node| &node.kind) {
            Some(NodeKind::Draw { children, .. }) => {
                children.get(*chosen as usize).and_then(|child| child.get()).map(|child| &**child)
            }
            _ => node,
        };
    }
    match (plan, node.map(|node| &node.kind)) {
        (Some(plan), Some(NodeKind::Rows(outcome))) => View::of(plan, outcome),
        _ => View {
            plan: None,
            rows: Rows::List(&[]),
            invokers: nobody(),
            outcome: None,
            generation: 0,
            emptied_by: None,
        },
    }
}

#[cold]
fn nobody() -> &'static Arc<Invokers> {
    static NOBODY: once_cell::sync::Lazy<Arc<Invokers>> = once_cell::sync::Lazy::new(Invokers::none);
    &NOBODY
}
