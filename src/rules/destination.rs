//! The v3.1 part of condition rules: `from` and weighted `to` destinations. A `from` without `to` switches the
//! traffic it matches off.

use super::dialect::Dialect;
use super::expression::Tests;
use super::header::{Fields, place_in};
use super::report::Report;
use super::yaml::{Node, Value};
use std::fmt;

/// What a destination weighs that does not say, or says less than 1.
pub const DEFAULT_WEIGHT: u32 = 100;

/// One condition of a v3.1 rule.
#[derive(Clone, Debug, PartialEq)]
pub struct DestinationCondition {
    /// Which calls it is about.
    pub from: Tests,
    /// Who may get them, one of these; none switches the traffic off.
    pub to: Vec<Destination>,
    /// Draw by the hash of this attachment or argument, so that one caller always gets the same destination
    /// (byway only): `attachments[user]`, `arguments[0]`, `method`.
    pub hash_key: Option<String>,
}

/// One destination.
#[derive(Clone, Debug, PartialEq)]
pub struct Destination {
    /// Its providers; `None` is nobody.
    pub rows: Option<Tests>,
    /// Its share of the calls.
    pub weight: u32,
    /// Smaller ones first; larger ones only serve when no smaller one has a provider (byway only).
    pub priority: i32,
}

impl DestinationCondition {
    /// Whether it switches traffic off: no destination at all, or none that is anybody.
    pub fn blocks(&self) -> bool {
        self.to.iter().all(|one| one.rows.is_none())
    }
}

impl fmt::Display for DestinationCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.from.keys.is_empty() {
            write!(f, "{} ", self.from)?;
        }
        f.write_str("=>")?;
        for (i, one) in self.to.iter().enumerate() {
            f.write_str(if i == 0 { " " } else { " | " })?;
            match &one.rows {
                None => f.write_str("nobody")?,
                Some(tests) if tests.keys.is_empty() => f.write_str("everybody")?,
                Some(tests) => write!(f, "{tests}")?,
            }
            write!(f, " ({})", one.weight)?;
        }
        Ok(())
    }
}

/// One condition as it stands in the text, before its `match` strings are read.
#[derive(Clone, Debug, PartialEq)]
pub struct RawCondition<'n> {
    /// `from.match`.
    pub from: Option<&'n Node>,
    /// `to`.
    pub to: Vec<RawDestination<'n>>,
    /// `hashKey`.
    pub hash_key: Option<&'n Node>,
    offset: usize,
}

/// One destination as it stands in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct RawDestination<'n> {
    /// `match`.
    pub rows: Option<&'n Node>,
    /// `weight`.
    pub weight: Option<&'n Node>,
    /// `priority`.
    pub priority: Option<i32>,
    offset: usize,
}

/// Fields of an unreleased draft of v3.1 that rules in the wild still carry.
const DRAFT: [&str; 4] = ["priority", "trafficDisable", "force", "ratio"];

impl<'n> RawCondition<'n> {
    /// Reads one item of `conditions`.
    pub(super) fn read(
        node: &'n Node,
        dialect: Dialect,
        report: &mut Report<'_>,
    ) -> Option<RawCondition<'n>> {
        let extra: &[&str] = if dialect == Dialect::Byway { &["hashKey"] } else { &[] };
        let what = "a v3.1 condition";
        let fields = Fields::of(node, what, &[&["from", "to"], &DRAFT, extra], dialect, report)?;
        for name in DRAFT {
            if fields.get(name).is_some() {
                let message = format!("'{name}' of a condition was dropped from v3.1 and is not looked at");
                report.warning(fields.place(name), message);
            }
        }
        let from = match fields.get("from") {
            None => None,
            Some(node) => {
                Fields::of(node, "'from'", &[&["match"]], dialect, report)?.scalar("match", report)?
            }
        };
        let mut to = Vec::new();
        if let Some(node) = fields.get("to") {
            let Value::List(items) = &node.value else {
                report.error(
                    node.offset,
                    format!("'to' must be a list of destinations; found {}", node.kind()),
                );
                return None;
            };
            for item in items {
                to.push(RawDestination::read(item, dialect, report)?);
            }
        }
        let hash_key = if extra.is_empty() { None } else { fields.scalar("hashKey", report)? };
        Some(RawCondition { from, to, hash_key, offset: node.offset })
    }

    /// Where it begins.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Reads the `match` strings and weights.
    pub(super) fn build(&self, dialect: Dialect, report: &mut Report<'_>) -> Option<DestinationCondition> {
        let from = match self.from {
            None => Tests::default(),
            Some(node) => placed(node, report, |text| Tests::parse_from(text, dialect))?,
        };
        let to = self.to.iter().map(|raw| raw.build(dialect, report)).collect::<Vec<_>>();
        let hash_key = match self.hash_key {
            None => None,
            Some(node) => {
                let text = node.as_scalar().unwrap_or_default();
                if super::lower::hash_key(text).is_none() {
                    let expected = "expected method, arguments[0] or attachments[name]";
                    report.error(node.offset, format!("'{text}' is nothing a call has; {expected}"));
                    return None;
                }
                Some(text.to_owned())
            }
        };
        Some(DestinationCondition { from, to: to.into_iter().collect::<Option<_>>()?, hash_key })
    }
}

impl<'n> RawDestination<'n> {
    fn read(node: &'n Node, dialect: Dialect, report: &mut Report<'_>) -> Option<RawDestination<'n>> {
        let extra: &[&str] = if dialect == Dialect::Byway { &["priority"] } else { &[] };
        let fields = Fields::of(node, "a destination", &[&["match", "weight"], extra], dialect, report)?;
        Some(RawDestination {
            rows: fields.scalar("match", report)?,
            weight: fields.scalar("weight", report)?,
            priority: if extra.is_empty() { None } else { fields.number("priority", report) },
            offset: node.offset,
        })
    }

    fn build(&self, dialect: Dialect, report: &mut Report<'_>) -> Option<Destination> {
        let rows = match self.rows {
            None => Some(Tests::default()),
            Some(node) => placed(node, report, |text| Tests::parse_to(text, dialect))?,
        };
        let weight = match self.weight {
            None => DEFAULT_WEIGHT,
            Some(node) => {
                let text = node.as_scalar().unwrap_or_default();
                match text.trim().parse::<i32>() {
                    Ok(weight) => match u32::try_from(weight) {
                        Ok(weight) if weight > 0 => weight,
                        _ => {
                            let message = format!(
                                "weight {weight} counts as {DEFAULT_WEIGHT}; leave the destination out"
                            );
                            report.warning(node.offset, message);
                            DEFAULT_WEIGHT
                        }
                    },
                    Err(_) => {
                        report
                            .error(node.offset, format!("weight '{text}' is not a whole number of 32 bits"));
                        return None;
                    }
                }
            }
        };
        Some(Destination { rows, weight, priority: self.priority.unwrap_or(0) })
    }

    /// Where it begins.
    pub fn offset(&self) -> usize {
        self.offset
    }
}

impl<'n> Fields<'n> {
    /// A field that holds any scalar; `Some(None)` when it is not there.
    fn scalar(&self, name: &str, report: &mut Report<'_>) -> Option<Option<&'n Node>> {
        match self.get(name) {
            None => Some(None),
            Some(node) if node.as_scalar().is_some() => Some(Some(node)),
            Some(node) => {
                report.error(node.offset, format!("'{name}' must be one value; found {}", node.kind()));
                None
            }
        }
    }
}

/// Parses a scalar's text and reports its faults where they stand in the rule text.
pub(super) fn placed<T>(
    node: &Node,
    report: &mut Report<'_>,
    parse: impl FnOnce(&str) -> super::expression::Noted<T>,
) -> Option<T> {
    let content = node.as_scalar().unwrap_or_default();
    let (value, faults) = parse(content);
    report.faults(faults, node, content);
    value
}

impl Report<'_> {
    /// Takes over the faults of an expression that is the content of a node.
    fn faults(&mut self, faults: Vec<super::expression::Fault>, node: &Node, content: &str) {
        for fault in faults {
            let at = place_in(node, content, fault.at, self.text());
            self.add(fault.severity, at, fault.message);
        }
    }
}
