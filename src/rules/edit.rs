//! A text that differs from the one before in a single condition: only that condition is read.
//!
//! Rule files of a thousand conditions change one line at a time. Where the line before was one item of a block list
//! and the new one is, by itself, the same, nothing else in the text can mean anything else than it did: the
//! conditions around it are taken over as they are. Whatever is not that simple is read from the beginning.

use super::condition::Conditions;
use super::dialect::Dialect;
use super::expression::Condition;
use super::report::Report;
use super::yaml::{self, MAX_TEXT, Meaning, Value};
use super::{Rule, yaml::Node};
use std::sync::Arc;

/// A v3.0 text that was read without a remark.
#[derive(Clone, Debug)]
pub(super) struct Known {
    text: Box<str>,
    /// Where each condition stands: first byte and the one behind the last.
    places: Vec<(usize, usize)>,
    rule: Arc<Rule>,
}

impl Known {
    /// What is known after reading `text`; `None` when there is nothing to take over.
    pub(super) fn of(text: &str, rule: &Arc<Rule>, places: Vec<(usize, usize)>) -> Option<Known> {
        let Rule::Condition(conditions) = &**rule else { return None };
        let Conditions::V30(list) = &conditions.conditions else { return None };
        let known = Known { text: text.into(), places, rule: Arc::clone(rule) };
        (list.len() == known.places.len()).then_some(known)
    }

    /// The rule of the text.
    pub(super) fn rule(&self) -> &Arc<Rule> {
        &self.rule
    }

    /// The same for a text that differs in at most one condition; `None` for all others, and for those that there is
    /// something to remark about.
    pub(super) fn edited(&self, text: &str, dialect: Dialect) -> Option<Known> {
        if *self.text == *text {
            return Some(self.clone());
        }
        if text.len() > MAX_TEXT {
            return None;
        }
        let (old, new) = (self.text.as_bytes(), text.as_bytes());
        let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
        let (old_rest, new_rest) = (old.get(head..)?, new.get(head..)?);
        let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
        let changed_to = old.len() - tail;
        // The last condition that begins at or before the change must also end behind it.
        let index = self.places.partition_point(|(from, _)| *from <= head).checked_sub(1)?;
        let (from, to) = *self.places.get(index)?;
        if changed_to > to {
            return None;
        }
        let line_from = self.text.get(..from)?.rfind('\n').map_or(0, |at| at + 1);
        let line_to = self.text.get(to..)?.find('\n').map_or(old.len(), |at| to + at);
        let is_item = self.text.get(line_from..from)?.trim_start_matches(' ').strip_prefix("- ");
        let is_alone = is_item.is_some_and(|gap| gap.bytes().all(|byte| byte == b' '))
            && !self.text.get(from..to)?.contains('\n')
            && self.text.get(to..line_to)?.bytes().all(|byte| byte == b' ');
        if !is_alone {
            return None;
        }
        let new_line_to = text.len() - (old.len() - line_to);
        let line = text.get(line_from..new_line_to)?;
        if line.contains(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']) {
            return None;
        }
        let (node, condition) = item(line, dialect)?;
        let Rule::Condition(rule) = &*self.rule else { return None };
        let Conditions::V30(list) = &rule.conditions else { return None };
        let mut list = list.clone();
        *list.get_mut(index)? = Arc::new(condition);
        let mut places = self.places.clone();
        *places.get_mut(index)? = (line_from + node.offset, line_from + node.end);
        for (from, to) in places.get_mut(index + 1..)? {
            // Both texts are the same from the change on.
            *from = text.len() - (old.len() - *from);
            *to = text.len() - (old.len() - *to);
        }
        let rule = super::condition::ConditionRule {
            header: rule.header.clone(),
            conditions: Conditions::V30(list),
        };
        Some(Known { text: text.into(), places, rule: Arc::new(Rule::Condition(rule)) })
    }
}

/// A line that is one item of a block list, and the item a condition that there is nothing to remark about.
fn item(line: &str, dialect: Dialect) -> Option<(Node, Condition)> {
    let mut report = Report::new(line);
    let Value::List(mut items) = yaml::read(line, &mut report)?.value else { return None };
    let (Some(node), true, true) = (items.pop(), items.is_empty(), report.problems().is_empty()) else {
        return None;
    };
    let Value::Scalar(text, Meaning::Text) = &node.value else { return None };
    let (condition, faults) = Condition::parse(text, dialect);
    let condition = condition.filter(|_| faults.is_empty())?;
    Some((node, condition))
}

#[cfg(test)]
mod tests {
    use super::super::{RuleKind, read, slot::Slot};
    use super::*;

    const BEFORE: &str = "configVersion: v3.0\nconditions:\n  - method=a => region=x\n  - \"method=b => zone=ü\"\n\
                          \x20 -   host=1.* =>\n  # end\n  - => region=y  \nforce: true\n";

    /// The known text after `BEFORE`, and whether `text` is taken as an edit of it.
    fn edit(text: &str, dialect: Dialect) -> Option<Known> {
        let reading = read(RuleKind::Condition, dialect, BEFORE);
        assert!(reading.problems.is_empty(), "{:?}", reading.problems);
        Known::of(BEFORE, &Arc::new(reading.rule?), reading.places)?.edited(text, dialect)
    }

    #[test]
    fn an_edit_reads_as_the_whole_text_does() {
        for (from, to, taken) in [
            ("region=x", "region=xyz", true),
            ("region=x", "", true),
            ("method=a", "method!=é", true),
            ("zone=ü", "zone=ä & port=1", true),
            ("\"method=b => zone=ü\"", "method=b => zone=ü", true),
            ("host=1.* =>", "method=q => zone=z # new", true),
            ("region=y", "region=z", true),
            // Another structure, or something to say about it.
            ("region=x", "region=x\n  - a => b", false),
            ("region=x", "region=x: 1", false),
            ("method=a => region=x", "[method=a]", false),
            ("method=a => region=x", "\"method=a", false),
            ("method=a => region=x", "", false),
            ("method=a => region=x", "12", false),
            ("method=a => region=x", "*alias", false),
            ("region=x", "=region=x", false),
            ("host=1.* =>", "false => false # nobody", false),
            ("  - method=a", "- method=a", false),
            ("force: true", "force: false", false),
            ("conditions:", "conditions: ", false),
            ("region=y  ", "region=z", false),
        ] {
            let text = BEFORE.replacen(from, to, 1);
            let edited = edit(&text, Dialect::Byway);
            assert_eq!(edited.is_some(), taken, "{from} to {to}: {edited:?}");
            if let Some(edited) = edited {
                let whole = read(RuleKind::Condition, Dialect::Byway, &text);
                assert_eq!(Some(&*edited.rule), whole.rule.as_ref(), "{from} to {to}");
                assert_eq!(edited.places, whole.places, "{from} to {to}");
            }
        }
    }

    #[test]
    fn conditions_that_stay_are_the_same_objects() {
        let mut slot = Slot::new(RuleKind::Condition, Dialect::Byway);
        let list = |slot: &Slot| match slot.active().map(|rule| &**rule) {
            Some(Rule::Condition(rule)) => match &rule.conditions {
                Conditions::V30(list) => list.clone(),
                Conditions::V31(_) => Vec::new(),
            },
            _ => Vec::new(),
        };
        assert!(slot.set(Some(BEFORE)).changed);
        let before = list(&slot);
        assert!(slot.set(Some("conditions: [")).error.is_some());
        assert!(slot.set(Some(&BEFORE.replacen("zone=ü", "zone=u", 1))).changed);
        let same: Vec<bool> = list(&slot).iter().zip(&before).map(|(a, b)| Arc::ptr_eq(a, b)).collect();
        assert_eq!(same, [true, false, true, true]);
        assert!(!slot.set(Some(&BEFORE.replacen("zone=ü", "zone=u", 1))).changed);
    }
}
