//! What all rule files share: reading fields with the dialect's idea of types, and the fields every rule has.

use super::dialect::{Coercion, Dialect, VersionChoice};
use super::report::Report;
use super::yaml::{Meaning, Node, Value};

/// The fields that every rule file has.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// `configVersion`.
    pub version: Option<String>,
    /// `scope`, informative.
    pub scope: Option<String>,
    /// `key`, informative: the key under which the text was found decides.
    pub key: Option<String>,
    /// A rule that leaves nobody leaves nobody.
    pub force: bool,
    /// Switched on.
    pub enabled: bool,
    /// Read and shown; every rule is applied to every call.
    pub runtime: bool,
    /// Read and shown; routers have fixed places.
    pub priority: i32,
    /// False: the text counts as no rule.
    pub valid: bool,
    /// Read and shown.
    pub dynamic: bool,
}

impl Default for Header {
    fn default() -> Self {
        Header {
            version: None,
            scope: None,
            key: None,
            force: false,
            enabled: true,
            runtime: true,
            priority: 0,
            valid: true,
            dynamic: false,
        }
    }
}

/// Names of [`Header`]'s fields in a text.
pub(super) const HEADER: [&str; 10] = [
    "configVersion",
    "scope",
    "key",
    "force",
    "enabled",
    "runtime",
    "priority",
    "valid",
    "dynamic",
    "rawRule",
];

/// Which schema a condition rule follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Conditions as strings.
    V30,
    /// Conditions with destinations.
    V31,
    /// Newer than the dialect knows: no rule.
    Unknown,
}

/// Most keys of one mapping: no schema has a twentieth of it.
const MAX_ENTRIES: usize = 512;

/// One mapping, asked for its fields.
pub(super) struct Fields<'n> {
    entries: Vec<(&'n str, &'n Node)>,
    dialect: Dialect,
    /// Where the mapping begins, for what is missing.
    pub(super) offset: usize,
}

impl<'n> Fields<'n> {
    /// The fields of a mapping. `what` names it in messages; `known` are the names that mean something.
    pub(super) fn of(
        node: &'n Node,
        what: &str,
        known: &[&[&str]],
        dialect: Dialect,
        report: &mut Report<'_>,
    ) -> Option<Fields<'n>> {
        let Value::Map(pairs) = &node.value else {
            report.error(node.offset, format!("{what} must be a mapping; found {}", node.kind()));
            return None;
        };
        if pairs.len() > MAX_ENTRIES {
            report.error(node.offset, format!("{what} with more than {MAX_ENTRIES} keys"));
            return None;
        }
        let mut entries: Vec<(&str, &Node)> = Vec::with_capacity(pairs.len());
        for (key, value) in pairs {
            let name = key.as_scalar().unwrap_or("null");
            if let Some(entry) = entries.iter_mut().find(|(other, _)| *other == name) {
                if dialect.table().duplicate_keys_fail {
                    report.error(key.offset, format!("'{name}' is there twice"));
                } else {
                    report.warning(key.offset, format!("'{name}' is there twice; this one counts"));
                }
                entry.1 = value;
                continue;
            }
            entries.push((name, value));
            if !known.iter().any(|names| names.contains(&name)) {
                let near = known
                    .iter()
                    .flat_map(|names| names.iter())
                    .find(|known| known.eq_ignore_ascii_case(name));
                let hint = near.map(|near| format!("; '{near}' is meant?")).unwrap_or_default();
                report.warning(key.offset, format!("'{name}' means nothing in {what}{hint}"));
            }
        }
        Some(Fields { entries, dialect, offset: node.offset })
    }

    /// A field that is there and not null.
    pub(super) fn get(&self, name: &str) -> Option<&'n Node> {
        let (_, node) = self.entries.iter().find(|(key, _)| *key == name)?;
        (node.value != Value::Null).then_some(*node)
    }

    /// Where a field is, else the mapping.
    pub(super) fn place(&self, name: &str) -> usize {
        self.entries.iter().find(|(key, _)| *key == name).map_or(self.offset, |(_, node)| node.offset)
    }

    /// A field that holds text.
    pub(super) fn text(&self, name: &str, report: &mut Report<'_>) -> Option<String> {
        let node = self.get(name)?;
        let any_scalar = matches!(self.dialect.table().coercion, Coercion::Java27 | Coercion::Go);
        let text = if any_scalar { node.as_scalar() } else { node.as_text() };
        if text.is_none() {
            let quote = node.as_scalar().map(|text| format!("; write \"{text}\"")).unwrap_or_default();
            report.error(node.offset, format!("'{name}' must be text; found {}{quote}", node.kind()));
        }
        text.map(str::to_owned)
    }

    /// A field that holds a boolean; `None` when it is not there.
    pub(super) fn flag(&self, name: &str, report: &mut Report<'_>) -> Option<bool> {
        let node = self.get(name)?;
        let flag = match (&node.value, self.dialect.table().coercion) {
            (Value::Scalar(_, Meaning::Bool(value)), _) => Some(*value),
            (Value::Scalar(text, Meaning::Text), Coercion::Strict) => parse_flag(text),
            (value, Coercion::Java3) => {
                let value = matches!(value, Value::Scalar(text, _) if text.eq_ignore_ascii_case("true"));
                if !value {
                    report.warning(
                        node.offset,
                        format!("'{name}' is not the word true and so counts as false"),
                    );
                }
                Some(value)
            }
            _ => None,
        };
        if flag.is_none() {
            report.error(node.offset, format!("'{name}' must be true or false; found {}", node.kind()));
        }
        flag
    }

    /// A field that holds a whole number.
    pub(super) fn number(&self, name: &str, report: &mut Report<'_>) -> Option<i32> {
        let node = self.get(name)?;
        let number = match (&node.value, self.dialect.table().coercion) {
            (Value::Scalar(_, Meaning::Integer(value)), _) => i32::try_from(*value).ok(),
            (Value::Scalar(text, Meaning::Text), Coercion::Strict | Coercion::Java3) => {
                text.trim().parse().ok()
            }
            _ => None,
        };
        if number.is_none() {
            report.error(
                node.offset,
                format!("'{name}' must be a whole number of 32 bits; found {}", node.kind()),
            );
        }
        number
    }

    /// A field that holds a list; other things are an error, or nothing where the dialect overlooks them.
    pub(super) fn list(&self, name: &str, report: &mut Report<'_>) -> Option<&'n [Node]> {
        let node = self.get(name)?;
        match &node.value {
            Value::List(items) => Some(items),
            _ => {
                let message = format!("'{name}' must be a list; found {}", node.kind());
                if matches!(self.dialect.table().coercion, Coercion::Java3 | Coercion::Java27) {
                    report.warning(node.offset, message);
                } else {
                    report.error(node.offset, message);
                }
                None
            }
        }
    }

    /// The fields of every rule. `enabled` is what a missing one means.
    pub(super) fn header(&self, enabled: bool, report: &mut Report<'_>) -> Header {
        let dubbo_default = Header::default();
        Header {
            version: self.text("configVersion", report),
            scope: self.text("scope", report),
            key: self.text("key", report),
            force: self.flag("force", report).unwrap_or(false),
            enabled: self.flag("enabled", report).unwrap_or(enabled),
            runtime: self.flag("runtime", report).unwrap_or(dubbo_default.runtime),
            priority: self.number("priority", report).unwrap_or(0),
            valid: self.flag("valid", report).unwrap_or(true),
            dynamic: self.flag("dynamic", report).unwrap_or(false),
        }
    }
}

/// `true` or `false` in any case.
pub fn parse_flag(text: &str) -> Option<bool> {
    if text.eq_ignore_ascii_case("true") {
        Some(true)
    } else if text.eq_ignore_ascii_case("false") {
        Some(false)
    } else {
        None
    }
}

/// Which schema a condition rule of this version follows. `Err` says why there is none.
pub(super) fn choose_family(version: Option<&str>, dialect: Dialect) -> Result<Family, String> {
    let numbers = |version: &str| -> Option<Vec<u32>> {
        version.strip_prefix(['v', 'V']).unwrap_or(version).split('.').map(|part| part.parse().ok()).collect()
    };
    match dialect.table().version {
        VersionChoice::Ignored => Ok(Family::V30),
        VersionChoice::Java => {
            let Some(version) = version else { return Ok(Family::V30) };
            let lower = version.to_ascii_lowercase();
            Ok(if lower.starts_with("v3.1") {
                Family::V31
            } else if lower.as_str() < "v3.1" {
                Family::V30
            } else {
                Family::Unknown
            })
        }
        VersionChoice::Go => {
            let Some(version) = version else {
                return Err("'configVersion' is missing; dubbo-go takes no rule without it".to_owned());
            };
            match numbers(version).filter(|_| version.starts_with(['v', 'V'])) {
                Some(numbers) if numbers.as_slice() < [3, 1].as_slice() => Ok(Family::V30),
                Some(_) => Ok(Family::V31),
                None => Err(format!("configVersion '{version}' is not of the form v3.0")),
            }
        }
        VersionChoice::Strict => {
            let Some(version) = version else { return Ok(Family::V30) };
            match numbers(version) {
                Some(numbers) if numbers.as_slice() < [3, 1].as_slice() => Ok(Family::V30),
                Some(numbers) if numbers.starts_with(&[3, 1]) => Ok(Family::V31),
                _ => Err(format!("configVersion '{version}' is not known; conditions are v3.0 or v3.1")),
            }
        }
    }
}

/// Where byte `at` of a scalar's content stands in the text. Exact for scalars written in one piece; escapes and
/// folded lines are found by the word that stands there.
pub(super) fn place_in(node: &Node, content: &str, at: usize, text: &str) -> usize {
    for base in [node.offset, node.offset + 1] {
        if text.get(base..).is_some_and(|rest| rest.starts_with(content)) {
            return base + at;
        }
    }
    let word: String =
        content.get(at..).unwrap_or_default().chars().take_while(|c| !c.is_whitespace()).take(12).collect();
    let inside = text.get(node.offset..node.end.max(node.offset)).unwrap_or_default();
    let found = if word.is_empty() { None } else { inside.find(word.as_str()) };
    node.offset + found.unwrap_or(0)
}
