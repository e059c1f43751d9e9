//! `StringMatch`: the operators `exact`, `prefix`, `regex`, `wildcard`, `empty`, `noempty` of tag (and mesh) rules.
//!
//! The first operator that applies decides: exact, prefix, regex and wildcard in this order, each only for a value
//! that is there; then empty, then noempty; else no. Regular expressions run in time linear in the value and are
//! compiled once, under a size limit.

use super::dialect::{Coercion, Dialect};
use super::header::Fields;
use super::print::quoted;
use super::report::Report;
use super::yaml::Node;
use regex::{Regex, RegexBuilder};

/// Longest regular expression in bytes.
const REGEX_TEXT: usize = 4096;
/// Largest compiled regular expression in bytes.
const REGEX_SIZE: usize = 1 << 20;
/// What is enough for almost every one.
const REGEX_USUAL: usize = 1 << 17;

/// A parsed `StringMatch`.
#[derive(Clone, Debug, Default)]
pub struct StringMatch {
    /// Equal to this.
    pub exact: Option<String>,
    /// Begins with this.
    pub prefix: Option<String>,
    /// Matches this: the whole value, in dubbo-go any part.
    pub regex: Option<String>,
    /// Equal to this, or anything if this is `*`; no glob.
    pub wildcard: Option<String>,
    /// Absent or empty; the text is not looked at.
    pub empty: Option<String>,
    /// Present and not empty; the text is not looked at.
    pub noempty: Option<String>,
    compiled: Option<Regex>,
    empty_is_unset: bool,
}

impl PartialEq for StringMatch {
    fn eq(&self, other: &Self) -> bool {
        self.operators() == other.operators() && self.empty_is_unset == other.empty_is_unset
    }
}

const OPERATORS: [&str; 6] = ["exact", "prefix", "regex", "wildcard", "empty", "noempty"];

impl StringMatch {
    /// Reads the mapping of operators.
    pub fn read(node: &Node, dialect: Dialect, report: &mut Report<'_>) -> Option<StringMatch> {
        let before = report.errors();
        let fields = Fields::of(node, "a string match", &[&OPERATORS], dialect, report)?;
        let operator = |name: &str, report: &mut Report<'_>| -> Option<String> {
            let node = fields.get(name)?;
            // Numbers and booleans are texts here in every implementation.
            if node.as_scalar().is_none() {
                let message = format!("'{name}' must be text; found {}", node.kind());
                if matches!(dialect.table().coercion, Coercion::Java3 | Coercion::Java27) {
                    report.warning(node.offset, message);
                } else {
                    report.error(node.offset, message);
                }
            }
            node.as_scalar().map(str::to_owned)
        };
        let mut read = StringMatch {
            exact: operator("exact", report),
            prefix: operator("prefix", report),
            regex: operator("regex", report),
            wildcard: operator("wildcard", report),
            empty: operator("empty", report),
            noempty: operator("noempty", report),
            compiled: None,
            empty_is_unset: dialect.table().string_match_empty_is_unset,
        };
        if let Err(message) = read.compile(dialect, report) {
            report.error(fields.place("regex"), message);
        }
        if read.operators().iter().all(|operator| operator.is_none()) {
            report.warning(node.offset, "a match without a known operator matches nobody");
        }
        (report.errors() == before).then_some(read)
    }

    fn compile(&mut self, dialect: Dialect, report: &mut Report<'_>) -> Result<(), String> {
        let Some(text) = &self.regex else { return Ok(()) };
        if text.len() > REGEX_TEXT {
            return Err(format!(
                "a regular expression of {} bytes; at most {REGEX_TEXT} are taken",
                text.len()
            ));
        }
        let unanchored = dialect.table().regex_unanchored;
        let pattern = if unanchored { text.clone() } else { format!("^(?:{text})$") };
        let compile =
            |text: &str, size: usize| RegexBuilder::new(text).size_limit(size).dfa_size_limit(size).build();
        let room = |report: &mut Report<'_>, size: usize| match report.set_aside(size) {
            true => Ok(()),
            false => {
                Err("the regular expressions of this text are too many or too large together".to_owned())
            }
        };
        // Wrapping could make sense of unbalanced brackets, `a)(b`: the text is looked at alone too.
        let both = |size: usize| compile(text, size).and_then(|_| compile(&pattern, size));
        room(report, REGEX_USUAL)?;
        let mut built = both(REGEX_USUAL);
        if matches!(built, Err(regex::Error::CompiledTooBig(_))) {
            room(report, REGEX_SIZE)?;
            built = both(REGEX_SIZE);
        }
        match built {
            Ok(built) => {
                self.compiled = Some(built);
                Ok(())
            }
            // dubbo-go logs and lets it match nothing.
            Err(_) if unanchored => Ok(()),
            Err(error) => {
                let reason = error.to_string();
                let reason =
                    reason.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
                Err(format!(
                    "'{text}' is not a regular expression without look-around or references: {reason}"
                ))
            }
        }
    }

    fn operators(&self) -> [Option<&str>; 6] {
        [&self.exact, &self.prefix, &self.regex, &self.wildcard, &self.empty, &self.noempty]
            .map(Option::as_deref)
    }

    /// Whether a value fits; `None` is an absent one.
    pub fn matches(&self, value: Option<&str>) -> bool {
        let set = |operator: &'_ Option<String>| {
            operator.as_ref().is_some_and(|text| !(self.empty_is_unset && text.is_empty()))
        };
        if let Some(value) = value {
            if set(&self.exact) {
                return self.exact.as_deref() == Some(value);
            }
            if set(&self.prefix) {
                return self.prefix.as_deref().is_some_and(|prefix| value.starts_with(prefix));
            }
            if set(&self.regex) {
                return self.compiled.as_ref().is_some_and(|regex| regex.is_match(value));
            }
            if set(&self.wildcard) {
                return self.wildcard.as_deref().is_some_and(|text| text == "*" || text == value);
            }
        }
        let nothing = value.is_none_or(str::is_empty);
        if set(&self.empty) {
            return nothing;
        }
        set(&self.noempty) && !nothing
    }

    /// The operators as a YAML flow mapping.
    pub(super) fn to_flow(&self) -> String {
        let pairs: Vec<String> = OPERATORS
            .iter()
            .zip(self.operators())
            .filter_map(|(name, text)| Some(format!("{name}: {}", quoted(text?))))
            .collect();
        format!("{{{}}}", pairs.join(", "))
    }
}
