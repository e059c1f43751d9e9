//! Affinity rules (`<key>.affinity-router`): prefer providers whose value of one key is the consumer's, unless
//! they are too few.

use super::dialect::Dialect;
use super::header::{Fields, HEADER, Header};
use super::print::{Printer, quoted};
use super::report::Report;
use super::yaml::{Meaning, Node, Value};

/// An affinity rule.
#[derive(Clone, Debug, PartialEq)]
pub struct AffinityRule {
    /// The common fields.
    pub header: Header,
    /// The key both sides are compared by.
    pub key: String,
    /// The least share of matching providers, in per cent.
    pub ratio: f64,
}

impl AffinityRule {
    /// Reads the YAML of a rule. `Some` with `valid` false is a text that is no rule.
    pub fn read(node: &Node, dialect: Dialect, report: &mut Report<'_>) -> Option<AffinityRule> {
        let table = dialect.table();
        let before = report.errors();
        let fields = Fields::of(node, "an affinity rule", &[&HEADER, &["affinityAware"]], dialect, report)?;
        let mut header = fields.header(table.enabled_default_v31, report);
        if table.affinity_wants_v31
            && !header.version.as_deref().is_some_and(|version| version.starts_with("v3.1"))
        {
            let message = match &header.version {
                Some(version) => format!("affinity rules are configVersion v3.1; found '{version}'"),
                None => "affinity rules must say configVersion: v3.1".to_owned(),
            };
            report.error(fields.place("configVersion"), message);
        }
        let Some(aware) = fields.get("affinityAware") else {
            if dialect == Dialect::Byway && header.enabled && header.valid {
                report.error(node.offset, "'affinityAware' with 'key' and 'ratio' is missing");
            }
            header.valid = false;
            return (report.errors() == before).then(|| AffinityRule {
                header,
                key: String::new(),
                ratio: 0.0,
            });
        };
        let aware = Fields::of(aware, "'affinityAware'", &[&["key", "ratio"]], dialect, report)?;
        let key = aware.text("key", report).unwrap_or_default();
        if key.is_empty() {
            report
                .error(aware.place("key"), "'key' of affinityAware is empty; it names the value to compare");
        }
        let ratio = match aware.get("ratio") {
            None => 0.0,
            Some(node) => match &node.value {
                Value::Scalar(_, Meaning::Integer(value)) => *value as f64,
                Value::Scalar(_, Meaning::Float(value)) if table.affinity_whole_ratio => value.trunc(),
                Value::Scalar(_, Meaning::Float(value)) => *value,
                Value::Scalar(text, Meaning::Text) => text.trim().parse().unwrap_or(f64::NAN),
                _ => f64::NAN,
            },
        };
        if !(0.0..=100.0).contains(&ratio) {
            report.error(aware.place("ratio"), "'ratio' must be a number from 0 to 100 (per cent)");
        }
        (report.errors() == before).then_some(AffinityRule { header, key, ratio })
    }

    /// Whether it does anything.
    pub fn in_force(&self) -> bool {
        self.header.enabled && self.header.valid && !self.key.is_empty()
    }

    /// The rule as a text that reads back as the same rule.
    pub fn to_yaml(&self) -> String {
        let mut out = Printer::of(&self.header);
        if !self.key.is_empty() {
            out.line("affinityAware:");
            out.line(&format!("  key: {}", quoted(&self.key)));
            out.line(&format!("  ratio: {:?}", self.ratio));
        }
        out.finish()
    }
}
