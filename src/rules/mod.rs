//! Rule languages: text to program.
//!
//! A rule text arrives under a key such as `com.foo.Bar:1.0.0:.condition-router`. Its suffix names the
//! [`RuleKind`], the registry of everything this room can read: a kind is one row there, with its reader, its
//! printer and its lowering onto [`crate::chain::program`].
//!
//! | file | subject |
//! |---|---|
//! | [`dialect`] | the one table of what differs between Dubbo Java 3.3, 2.7, dubbo-go and byway; rule keys |
//! | [`yaml`], [`report`] | YAML with places; problems with places |
//! | [`header`] | what all rule files share |
//! | [`expression`], [`pattern`] | condition strings and their values |
//! | [`condition`], [`destination`] | condition rules: files v3.0 and v3.1, static ones from URLs |
//! | [`affinity`], [`tag`], [`string_match`], [`mock`] | the other kinds |
//! | [`ip`], [`java_ip`] | IP expressions: ours, and Dubbo's own answers |
//! | [`mesh`] | VirtualService and DestinationRule, and the router over them |
//! | [`script`], [`mod@file`] | JavaScript that filters the list, by rule, from a URL, in a file |
//! | [`slot`], `edit` | one key's rule through its updates |
//! | [`lower`], `value_test` | rules to programs |
//! | [`routers`] | the routers a chain has by its dialect, and those from URLs |
//! | [`lint`] | every problem of a text, with line and column |

pub mod affinity;
pub mod condition;
pub mod destination;
pub mod dialect;
mod edit;
pub mod expression;
pub mod file;
pub mod header;
pub mod ip;
pub mod java_ip;
pub mod lint;
pub mod lower;
pub mod mesh;
pub mod mock;
pub mod pattern;
mod print;
pub mod report;
pub mod routers;
pub mod script;
pub mod slot;
pub mod string_match;
pub mod tag;
mod value_test;
pub mod yaml;

use crate::chain::snapshot::Invokers;
use crate::error::{Error, Result, Source, Status};
use affinity::AffinityRule;
use condition::{ConditionRule, Document, Items};
use dialect::Dialect;
use header::Family;
use report::{Problem, Report};
use tag::TagRule;

/// The rule languages. Numbers are fixed for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(i32)]
pub enum RuleKind {
    /// Conditions of a service, application or provider application.
    Condition = 0,
    /// Tags of a provider application.
    Tag = 1,
    /// Affinity of a service or provider application.
    Affinity = 2,
}

impl RuleKind {
    /// Every kind.
    pub const ALL: [RuleKind; 3] = [RuleKind::Condition, RuleKind::Tag, RuleKind::Affinity];

    /// What keys of this kind end with.
    pub const fn suffix(self) -> &'static str {
        match self {
            RuleKind::Condition => ".condition-router",
            RuleKind::Tag => ".tag-router",
            RuleKind::Affinity => ".affinity-router",
        }
    }

    /// The kind of a key, and the key without its suffix.
    pub fn of_key(key: &str) -> Option<(RuleKind, &str)> {
        RuleKind::ALL.into_iter().find_map(|kind| Some((kind, key.strip_suffix(kind.suffix())?)))
    }

    /// The kind of a number from a host.
    pub fn from_number(number: i32) -> Option<RuleKind> {
        RuleKind::ALL.into_iter().find(|&kind| kind as i32 == number)
    }
}

/// The kinds of rule texts a host can ask about: the [`RuleKind`]s, and those whose routers are no programs. Numbers
/// are fixed for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextKind {
    /// Lowered to programs.
    Of(RuleKind),
    /// VirtualService and DestinationRule of a provider application; 3.
    Mesh,
    /// A script of a provider application; 4.
    Script,
}

impl TextKind {
    /// The kind of a number from a host.
    pub fn from_number(number: i32) -> Option<TextKind> {
        match number {
            3 => Some(TextKind::Mesh),
            4 => Some(TextKind::Script),
            number => RuleKind::from_number(number).map(TextKind::Of),
        }
    }

    /// What keys of this kind end with.
    pub fn suffix(self) -> &'static str {
        match self {
            TextKind::Of(kind) => kind.suffix(),
            TextKind::Mesh => mesh::SUFFIX,
            TextKind::Script => script::SUFFIX,
        }
    }

    /// Every problem of a text, see [`lint::check`].
    pub fn check(self, dialect: Dialect, text: &str, providers: Option<&Invokers>) -> Vec<Problem> {
        match self {
            TextKind::Of(kind) => lint::check(kind, dialect, text, providers),
            TextKind::Mesh => mesh::lint(text, dialect, providers),
            TextKind::Script => script::lint(text, dialect),
        }
    }
}

/// A rule of any kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// Conditions.
    Condition(ConditionRule),
    /// Tags.
    Tag(TagRule),
    /// Affinity.
    Affinity(AffinityRule),
}

impl Rule {
    /// The fields every rule has.
    pub fn header(&self) -> &header::Header {
        match self {
            Rule::Condition(rule) => &rule.header,
            Rule::Tag(rule) => &rule.header,
            Rule::Affinity(rule) => &rule.header,
        }
    }

    /// Whether it does anything.
    pub fn in_force(&self) -> bool {
        match self {
            Rule::Condition(rule) => rule.in_force(),
            Rule::Tag(rule) => rule.in_force(),
            Rule::Affinity(rule) => rule.in_force(),
        }
    }

    /// The key under which the rule says it belongs: for rules that come without one, from a file or from code.
    ///
    /// # Errors
    /// `E_RULE`: the text has no `key`, or a `scope` that rules of its kind do not have.
    pub fn declared_key(&self) -> Result<String> {
        let header = self.header();
        let refused = |message: &str| Err(Error::new(Status::E_RULE, message).source(Source::Parser));
        let kind = self.kind();
        match header.scope.as_deref() {
            None | Some("application") => {}
            Some("service") if kind != RuleKind::Tag => {}
            Some("service") => return refused("tag rules belong to an application, not to a service"),
            Some(_) => return refused("'scope' must be service or application"),
        }
        match header.key.as_deref().filter(|key| !key.is_empty()) {
            Some(key) => Ok(format!("{key}{}", kind.suffix())),
            None => refused("the rule has no 'key' that says whom it is for"),
        }
    }

    /// Its language.
    pub fn kind(&self) -> RuleKind {
        match self {
            Rule::Condition(_) => RuleKind::Condition,
            Rule::Tag(_) => RuleKind::Tag,
            Rule::Affinity(_) => RuleKind::Affinity,
        }
    }

    /// The rule as a text that reads back as the same rule.
    pub fn to_yaml(&self) -> String {
        match self {
            Rule::Condition(rule) => rule.to_yaml(),
            Rule::Tag(rule) => rule.to_yaml(),
            Rule::Affinity(rule) => rule.to_yaml(),
        }
    }
}

/// What a text is.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The rule; `None` for a text without content, and after errors.
    pub rule: Option<Rule>,
    /// The schema of a condition rule, known once its YAML is read, even if an expression in it is wrong.
    pub family: Option<Family>,
    /// Everything noticed, in text order; an error among it refuses the text.
    pub problems: Vec<Problem>,
    /// The first error, the others its causes.
    pub error: Option<Error>,
    /// Where the conditions of a v3.0 rule stand: first byte and the one behind the last.
    pub(crate) places: Vec<(usize, usize)>,
}

/// Reads a text of a kind. A [`Rule`] that is not [`Rule::in_force`] is a text that switches the rule off.
pub fn read(kind: RuleKind, dialect: Dialect, text: &str) -> Reading {
    read_with(kind, dialect, text, false)
}

/// [`read`], with the expressions of disabled rules looked at too if asked.
pub(crate) fn read_with(kind: RuleKind, dialect: Dialect, text: &str, disabled_too: bool) -> Reading {
    let mut report = Report::new(text);
    let mut family = None;
    let mut places = Vec::new();
    let node = yaml::read(text, &mut report);
    let rule = node.as_ref().and_then(|node| match kind {
        RuleKind::Condition => {
            let document = Document::read(node, dialect, &mut report)?;
            family = Some(document.family);
            if document.family == Family::Unknown {
                report.warning(
                    node.offset,
                    "this configVersion is newer than the dialect knows; the text is no rule",
                );
                return None;
            }
            if let Some(Items::V30(items)) = &document.items {
                places = items.iter().map(|(node, _)| (node.offset, node.end)).collect();
            }
            document.build(dialect, disabled_too, &mut report).map(Rule::Condition)
        }
        RuleKind::Tag => TagRule::read(node, dialect, &mut report).map(Rule::Tag),
        RuleKind::Affinity => AffinityRule::read(node, dialect, &mut report).map(Rule::Affinity),
    });
    if node.is_none() && !report.failed() && !dialect.table().empty_text_is_no_rule {
        report.error(0, "the text is empty; to remove a rule, remove its key");
    }
    let error = report.to_error();
    let rule = if error.is_some() { None } else { rule };
    Reading { rule, family, error, problems: report.into_problems(), places }
}

/// Reads a text of a kind that must be a rule or nothing.
///
/// # Errors
/// `E_RULE` with line and column; further errors are its causes.
pub fn parse(kind: RuleKind, dialect: Dialect, text: &str) -> Result<Option<Rule>> {
    let reading = read(kind, dialect, text);
    match reading.error {
        Some(error) => Err(error),
        None => Ok(reading.rule),
    }
}
