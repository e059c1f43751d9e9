//! One key's rule through its updates: what a new text does to the rule in force.
//!
//! A text is read completely before anything changes. What happens when it cannot be used is the dialect's
//! ([`Update`]): byway keeps the last good rule on an error and takes a text without content for a removal;
//! dubbo-go drops the rule whatever is wrong; Java keeps what it has, except that it has by then switched to the
//! schema of the new text, so that the conditions last set under that schema (or none) come into force.

use super::dialect::{Dialect, Update};
use super::edit::Known;
use super::header::Family;
use super::report::Problem;
use super::{Reading, Rule, RuleKind, read};
use crate::error::Error;
use std::sync::Arc;

/// The rule of one key.
#[derive(Clone, Debug)]
pub struct Slot {
    kind: RuleKind,
    dialect: Dialect,
    active: Option<Arc<Rule>>,
    /// Java only: what was last built under each schema; the active rule is one of them.
    built: [Option<Arc<Rule>>; 2],
    /// The last text that could be used, for the next one that differs little.
    known: Option<Known>,
}

/// What a text is to a slot.
struct Text {
    rule: Option<Arc<Rule>>,
    family: Option<Family>,
    problems: Vec<Problem>,
    error: Option<Error>,
}

/// What an update came to.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// The rule in force is another one now, or none.
    pub changed: bool,
    /// Why the text was refused.
    pub error: Option<Error>,
    /// Everything that was noticed in the text.
    pub problems: Vec<Problem>,
}

impl Slot {
    /// A key without a rule.
    pub fn new(kind: RuleKind, dialect: Dialect) -> Slot {
        Slot { kind, dialect, active: None, built: [None, None], known: None }
    }

    /// The rule in force. It may be one that does nothing ([`Rule::in_force`]).
    pub fn active(&self) -> Option<&Arc<Rule>> {
        self.active.as_ref()
    }

    /// The kind of rule this key has.
    pub fn kind(&self) -> RuleKind {
        self.kind
    }

    /// The key was added or its text changed. `None` is a key without content.
    pub fn set(&mut self, text: Option<&str>) -> Change {
        let before = self.active.clone();
        let Text { rule, family, problems, error } = self.read(text.unwrap_or_default());
        match self.dialect.table().update {
            Update::KeepOnError => {
                if error.is_none() {
                    self.active = rule.filter(|rule| rule.header().valid);
                }
            }
            Update::Drop => self.active = rule,
            Update::Java if self.kind == RuleKind::Condition => self.set_java_condition(rule, family, &error),
            Update::Java if self.kind == RuleKind::Affinity => {
                if let Some(rule) = rule.filter(|rule| rule.header().valid) {
                    self.active = Some(rule);
                }
            }
            // Java's tag router takes invalid rules, which then stand for "static tags alone".
            Update::Java => {
                if error.is_none() {
                    self.active = rule;
                }
            }
        }
        Change { changed: before != self.active, error, problems }
    }

    fn read(&mut self, text: &str) -> Text {
        if let Some(known) = self.known.as_ref().and_then(|known| known.edited(text, self.dialect)) {
            let rule = Some(Arc::clone(known.rule()));
            self.known = Some(known);
            return Text { rule, family: Some(Family::V30), problems: Vec::new(), error: None };
        }
        let Reading { rule, family, problems, error, places } = read(self.kind, self.dialect, text);
        let rule = rule.map(Arc::new);
        // A text that is refused is often followed by one that is near the last good one.
        if error.is_none() {
            let good = rule.as_ref().filter(|_| problems.is_empty());
            self.known = good.and_then(|rule| Known::of(text, rule, places));
        }
        Text { rule, family, problems, error }
    }

    /// Java stores the rule object, whose schema decides which list of conditions is used, before it builds the
    /// conditions; an object that is invalid or fails to build leaves the lists alone.
    fn set_java_condition(&mut self, rule: Option<Arc<Rule>>, family: Option<Family>, error: &Option<Error>) {
        let Some(family) = family else { return };
        let list = usize::from(family == Family::V31);
        if let (Some(rule), None) = (rule, error)
            && rule.header().valid
            && let Some(slot) = self.built.get_mut(list)
        {
            *slot = Some(rule);
        }
        self.active = self.built.get(list).cloned().flatten();
    }

    /// The key was removed.
    pub fn remove(&mut self) -> Change {
        let changed = self.active.take().is_some();
        self.built = [None, None];
        self.known = None;
        Change { changed, ..Change::default() }
    }
}
