//! Condition rules: the YAML of `<key>.condition-router`, v3.0 (strings) and v3.1 (destinations), and static rules
//! from the parameters of a `condition://` or `route://` URL.

use super::destination::{DestinationCondition, RawCondition, placed};
use super::dialect::{Coercion, Dialect};
use super::expression::Condition;
use super::header::{Family, Fields, HEADER, Header, choose_family, parse_flag};
use super::print::Printer;
use super::report::Report;
use super::yaml::{Meaning, Node, Value};
use crate::error::{Error, Position, Result, Source, Status};
use std::sync::Arc;

/// A condition rule, read completely.
#[derive(Clone, Debug, PartialEq)]
pub struct ConditionRule {
    /// The common fields.
    pub header: Header,
    /// Its conditions, in text order; not read while the rule is disabled.
    pub conditions: Conditions,
}

/// The conditions of a rule.
#[derive(Clone, Debug, PartialEq)]
pub enum Conditions {
    /// Strings.
    V30(Vec<Arc<Condition>>),
    /// Destinations.
    V31(Vec<DestinationCondition>),
}

/// A condition rule whose YAML has been read, though not the expressions in it. Dubbo's Java parsers stop here
/// first, and what they have done by then shows when an expression turns out wrong.
#[derive(Clone, Debug)]
pub struct Document<'n> {
    /// The common fields; `valid` is false when there are no conditions.
    pub header: Header,
    /// Which schema it follows.
    pub family: Family,
    /// Its conditions; `None` when there is no such list.
    pub items: Option<Items<'n>>,
    conditions_at: usize,
}

/// The conditions of a [`Document`].
#[derive(Clone, Debug)]
pub enum Items<'n> {
    /// v3.0: each text with its node.
    V30(Vec<(&'n Node, String)>),
    /// v3.1.
    V31(Vec<RawCondition<'n>>),
}

impl<'n> Document<'n> {
    /// Reads the YAML of a rule.
    pub fn read(node: &'n Node, dialect: Dialect, report: &mut Report<'_>) -> Option<Document<'n>> {
        let table = dialect.table();
        let before = report.errors();
        let fields = Fields::of(node, "a condition rule", &[&HEADER, &["conditions"]], dialect, report)?;
        let version = fields.text("configVersion", report);
        let family = match choose_family(version.as_deref(), dialect) {
            Ok(family) => family,
            Err(message) => {
                report.error(fields.place("configVersion"), message);
                return None;
            }
        };
        let enabled = if family == Family::V31 { table.enabled_default_v31 } else { true };
        let mut header = fields.header(enabled, report);
        if table.flags_required && family == Family::V30 {
            for name in ["force", "enabled"] {
                if fields.get(name).is_none() {
                    report.error(
                        node.offset,
                        format!("'{name}' is missing; dubbo-go's v3.0 rules must say it"),
                    );
                }
            }
        }
        let conditions_at = fields.place("conditions");
        let items = match family {
            Family::V31 => match fields.get("conditions") {
                None if table.coercion == Coercion::Java3 => {
                    report.error(node.offset, "a v3.1 rule needs 'conditions', a list of from and to");
                    None
                }
                None => None,
                Some(Node { value: Value::List(items), .. }) => {
                    let items: Option<Vec<_>> =
                        items.iter().map(|item| RawCondition::read(item, dialect, report)).collect();
                    items.map(Items::V31)
                }
                Some(node) => {
                    let message =
                        format!("'conditions' must be a list of from and to; found {}", node.kind());
                    report.error(node.offset, message);
                    None
                }
            },
            _ => fields.list("conditions", report).map(|items| {
                Items::V30(
                    items.iter().filter_map(|item| Some((item, item_text(item, dialect, report)?))).collect(),
                )
            }),
        };
        let count = match &items {
            Some(Items::V30(list)) => list.len(),
            Some(Items::V31(list)) => list.len(),
            None => 0,
        };
        header.valid &= count > 0;
        (report.errors() == before).then_some(Document { header, family, items, conditions_at })
    }

    /// Reads the expressions. A disabled rule's are not looked at, unless `disabled_too`.
    pub fn build(
        &self,
        dialect: Dialect,
        disabled_too: bool,
        report: &mut Report<'_>,
    ) -> Option<ConditionRule> {
        let before = report.errors();
        let read = self.header.enabled || disabled_too;
        let conditions = match &self.items {
            Some(Items::V31(items)) => Conditions::V31(
                // dubbo-go overlooks conditions that say nothing at all; in Java they block everybody.
                items
                    .iter()
                    .filter(|raw| {
                        read && !(dialect == Dialect::DubboGo && raw.from.is_none() && raw.to.is_empty())
                    })
                    .filter_map(|raw| raw.build(dialect, report))
                    .collect(),
            ),
            Some(Items::V30(items)) => Conditions::V30(
                items
                    .iter()
                    .filter(|_| read)
                    .filter_map(|(node, text)| build_item(node, text, dialect, report))
                    .map(Arc::new)
                    .collect(),
            ),
            None => Conditions::V30(Vec::new()),
        };
        (report.errors() == before).then(|| ConditionRule { header: self.header.clone(), conditions })
    }

    /// Where `conditions` stands.
    pub fn conditions_at(&self) -> usize {
        self.conditions_at
    }
}

fn build_item(node: &Node, text: &str, dialect: Dialect, report: &mut Report<'_>) -> Option<Condition> {
    if node.as_scalar() == Some(text) {
        return placed(node, report, |text| Condition::parse(text, dialect));
    }
    // Java's rendering of something that is no scalar: only its beginning has a place.
    let (condition, faults) = Condition::parse(text, dialect);
    for fault in faults {
        report.add(fault.severity, node.offset, fault.message);
    }
    condition
}

/// What a v3.0 parser makes of one list item.
fn item_text(item: &Node, dialect: Dialect, report: &mut Report<'_>) -> Option<String> {
    let text = match (&item.value, dialect.table().coercion) {
        (Value::Scalar(text, Meaning::Text), _) => Some(text.clone()),
        (_, Coercion::Java3) => Some(item.java_text()),
        (Value::Null, Coercion::Go) => Some(String::new()),
        (Value::Scalar(text, _), Coercion::Java27 | Coercion::Go) => Some(text.clone()),
        _ => None,
    };
    if text.is_none() {
        report.error(
            item.offset,
            format!("a condition must be text such as \"a=b => c=d\"; found {}", item.kind()),
        );
    }
    text
}

impl ConditionRule {
    /// Whether it does anything.
    pub fn in_force(&self) -> bool {
        let empty = match &self.conditions {
            Conditions::V30(list) => list.is_empty(),
            Conditions::V31(list) => list.is_empty(),
        };
        self.header.enabled && self.header.valid && !empty
    }

    /// The rule as a text that reads back as the same rule.
    pub fn to_yaml(&self) -> String {
        let mut out = Printer::of(&self.header);
        out.line("conditions:");
        match &self.conditions {
            Conditions::V30(list) => {
                for condition in list {
                    out.item(&condition.to_string());
                }
            }
            Conditions::V31(list) => {
                for condition in list {
                    let from = if condition.from.keys.is_empty() {
                        String::new()
                    } else {
                        condition.from.to_string()
                    };
                    out.line("- from:");
                    out.field(3, "match", &from);
                    if let Some(key) = &condition.hash_key {
                        out.field(1, "hashKey", key);
                    }
                    if condition.to.is_empty() {
                        continue;
                    }
                    out.line("  to:");
                    for one in &condition.to {
                        let rows = match &one.rows {
                            None => "false".to_owned(),
                            Some(tests) if tests.keys.is_empty() => String::new(),
                            Some(tests) => tests.to_string(),
                        };
                        out.line(&format!("  - weight: {}", one.weight));
                        out.field(2, "match", &rows);
                        if one.priority != 0 {
                            out.line(&format!("    priority: {}", one.priority));
                        }
                    }
                }
            }
        }
        out.finish()
    }
}

/// A condition rule from the parameters of a URL, with its place in the chain.
#[derive(Clone, Debug, PartialEq)]
pub struct StaticRule {
    /// The rule; one condition.
    pub rule: ConditionRule,
    /// Its place among the routers.
    pub order: i64,
}

impl StaticRule {
    /// Reads `rule`, `force`, `enabled`, `runtime` and `priority`. `parameter` answers for a name; `rule` must be
    /// URL-decoded already. A disabled rule's text is not looked at.
    ///
    /// # Errors
    /// `E_RULE` naming the parameter, for `rule` with its place in the decoded text.
    pub fn read<'u>(parameter: impl Fn(&str) -> Option<&'u str>, dialect: Dialect) -> Result<StaticRule> {
        let flag = |name: &str, default: bool| match parameter(name).filter(|text| !text.is_empty()) {
            None => Ok(default),
            Some(text) => match parse_flag(text) {
                Some(flag) => Ok(flag),
                // Java: everything that is not the word true is false.
                None if dialect != Dialect::Byway => Ok(false),
                None => Err(refused(name, format!("'{text}' is neither true nor false"))),
            },
        };
        let order = match parameter("priority").filter(|text| !text.is_empty()) {
            None => dialect.table().static_order,
            Some(text) => {
                let order = text.parse::<i32>();
                order
                    .map(i64::from)
                    .map_err(|_| refused("priority", format!("'{text}' is not a whole number")))?
            }
        };
        let header = Header {
            force: flag("force", false)?,
            enabled: flag("enabled", true)?,
            runtime: flag("runtime", false)?,
            priority: i32::try_from(order).unwrap_or(0),
            ..Header::default()
        };
        let mut list = Vec::new();
        if header.enabled {
            let text = parameter("rule").unwrap_or_default();
            let (condition, faults) = Condition::parse(text, dialect);
            let Some(condition) = condition else {
                let fault = faults.into_iter().find(|fault| fault.severity == super::report::Severity::Error);
                let fault = fault.map(|fault| (fault.message, fault.at)).unwrap_or_default();
                return Err(refused("rule", fault.0).at(Position::in_text(text, fault.1)));
            };
            list.push(Arc::new(condition));
        }
        Ok(StaticRule { rule: ConditionRule { header, conditions: Conditions::V30(list) }, order })
    }
}

fn refused(parameter: &str, message: String) -> Error {
    Error::new(Status::E_RULE, message).subject(parameter).source(Source::Parser)
}
