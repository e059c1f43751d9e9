//! Script rules: JavaScript that filters the list, under `<provider application>.script-router`, in a URL
//! (`script://...?type=javascript&rule=...`) or in a file ([`super::file`]).
//!
//! The script sees `invokers`, `invocation` and `context` with the getters that published scripts use; its last
//! expression is the answer: an array or `java.util.List` of the given invokers. The answer filters: order and
//! repetitions do not matter, what is no invoker of the list is ignored. Anything else (null, a number, a script
//! that throws or takes too long) leaves the list unchanged and is reported; upstream's null result empties the
//! list. `function route(invokers) {...} (invokers)` does not call the function, there as here: its answer is
//! `invokers`.
//!
//! A script that says of itself that it is pure (`pure: true`, in a URL `pure=true`) promises that its answer depends
//! on nothing but what it is given: no clock, no chance, no memory of earlier calls. Its answers are kept and given
//! again to calls that do not differ in anything it has looked at so far.
//!
//! Running needs the feature `script`; reading does not.

#[cfg(feature = "script")]
mod kept;
#[cfg(feature = "script")]
mod program;
#[cfg(feature = "script")]
mod router;
#[cfg(feature = "script")]
mod split;

#[cfg(feature = "script")]
pub use program::{Call, Program};
#[cfg(feature = "script")]
pub use router::{Observer, ScriptLanguage, ScriptRouter, slot};

use super::dialect::Dialect;
use super::header::{Fields, HEADER, Header};
use super::report::Report;
use super::yaml;
use crate::error::{Error, Result, Status};

/// What keys of script rules end with.
pub const SUFFIX: &str = ".script-router";

/// Name of script routers in chains and URLs.
pub const NAME: &str = "script";

/// A parsed script rule.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptRule {
    /// What every rule has.
    pub header: Header,
    /// `javascript`; the only language there is.
    pub language: String,
    /// The text; `None`: no rule.
    pub script: Option<String>,
    /// Its answers may be kept. No system but this one looks at it.
    pub pure: bool,
    /// Where the text's node begins in the rule.
    #[cfg_attr(not(feature = "script"), allow(dead_code, reason = "only a compiler's errors are placed"))]
    offset: usize,
}

/// The languages that mean JavaScript: names by which Java finds its engine, in any case in dubbo-go.
pub fn check_language(name: &str) -> Result<()> {
    let known = ["javascript", "js", "ecmascript", "rhino", "nashorn", "graal.js"];
    if known.iter().any(|known| known.eq_ignore_ascii_case(name)) {
        return Ok(());
    }
    Err(Error::new(Status::E_UNSUPPORTED, format!("unsupported route engine type: {name}")).subject("type"))
}

impl ScriptRule {
    /// Reads a text. `None`: no rule; problems are in `report`, and after an error the answer is not to be used.
    pub fn read(text: &str, dialect: Dialect, report: &mut Report<'_>) -> Option<ScriptRule> {
        let node = yaml::read(text, report)?;
        let fields =
            Fields::of(&node, "a script rule", &[&HEADER, &["type", "script", "pure"]], dialect, report)?;
        let header = fields.header(true, report);
        let language = fields.text("type", report).unwrap_or_else(|| "javascript".to_owned());
        if let Err(error) = check_language(&language) {
            report.error(fields.place("type"), error.message());
        }
        let script = fields.text("script", report).filter(|script| !script.trim().is_empty());
        if script.is_none() {
            report.warning(node.offset, "a script rule without 'script' does nothing");
        }
        let pure = fields.flag("pure", report).unwrap_or(false);
        Some(ScriptRule { header, language, script, pure, offset: fields.place("script") })
    }

    /// It is there and does something.
    pub fn in_force(&self) -> bool {
        self.header.enabled && self.header.valid && self.script.is_some()
    }
}

/// Every problem of a text, in text order, what is wrong with the script itself among them, at its place in the text.
pub fn lint(text: &str, dialect: Dialect) -> Vec<super::report::Problem> {
    let mut report = Report::new(text);
    #[cfg_attr(not(feature = "script"), allow(unused_variables, reason = "nothing compiles it"))]
    let rule = ScriptRule::read(text, dialect, &mut report);
    #[cfg(feature = "script")]
    if let Some(rule) = &rule
        && !report.failed()
        && let Some(Err(error)) = rule.script.as_deref().map(|script| {
            let pool =
                crate::script::Pool::new(crate::script::PoolLimits { threads: 1, stuck: 1, waiting: 1 });
            Program::check(script, crate::script::Limits::default(), &pool)
        })
    {
        rule.report_unusable(&error, &mut report);
    }
    report.into_problems()
}

#[cfg(feature = "script")]
impl ScriptRule {
    /// Adds what a compiler says, at its place in the rule's text.
    fn report_unusable(&self, error: &Error, report: &mut Report<'_>) {
        let place = error.position().and_then(|at| self.place_of(report.text(), at.line, at.column));
        let why = match (place, error.position()) {
            // The text is quoted or folded: the place is the script's own.
            (None, Some(at)) => {
                format!("line {}, column {} of the script: {}", at.line, at.column, error.message())
            }
            _ => error.message().to_owned(),
        };
        report.error(place.unwrap_or(self.offset), format!("the script does not parse: {why}"));
    }

    /// Where a place in the script stands in the rule's text: the line that looks like the script's, with its own
    /// indent.
    fn place_of(&self, text: &str, line: u32, column: u32) -> Option<usize> {
        let wanted = self.script.as_deref()?.lines().nth(usize::try_from(line).ok()?.checked_sub(1)?)?;
        let mut start = text.get(..self.offset)?.rfind('\n').map_or(0, |at| at + 1);
        for found in text.get(start..)?.split_inclusive('\n') {
            let at = found.trim_end().len().checked_sub(wanted.trim_end().len());
            if let Some(at) = at
                && !wanted.trim().is_empty()
                && found.get(at..).is_some_and(|tail| tail.trim_end() == wanted.trim_end())
            {
                let within = wanted.char_indices().nth(usize::try_from(column).ok()?.saturating_sub(1));
                return Some(start + at + within.map_or(wanted.len(), |(at, _)| at));
            }
            start += found.len();
        }
        None
    }
}
