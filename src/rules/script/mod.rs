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
//! Running needs the feature `script`; reading does not.

#[cfg(feature = "script")]
mod program;
#[cfg(feature = "script")]
mod router;
#[cfg(feature = "script")]
mod split;

#[cfg(feature = "script")]
pub use program::{Call, Program};
#[cfg(feature = "script")]
pub use router::{Observer, ScriptLanguage, ScriptRouter, slot, static_router};

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
        let fields = Fields::of(&node, "a script rule", &[&HEADER, &["type", "script"]], dialect, report)?;
        let header = fields.header(true, report);
        let language = fields.text("type", report).unwrap_or_else(|| "javascript".to_owned());
        if let Err(error) = check_language(&language) {
            report.error(fields.place("type"), error.message());
        }
        let script = fields.text("script", report).filter(|script| !script.trim().is_empty());
        if script.is_none() {
            report.warning(node.offset, "a script rule without 'script' does nothing");
        }
        Some(ScriptRule { header, language, script })
    }

    /// It is there and does something.
    pub fn in_force(&self) -> bool {
        self.header.enabled && self.header.valid && self.script.is_some()
    }
}

/// Every problem of a text, in text order; the script's own place of a syntax error among them.
pub fn lint(text: &str, dialect: Dialect) -> Vec<super::report::Problem> {
    let mut report = Report::new(text);
    let rule = ScriptRule::read(text, dialect, &mut report);
    #[cfg(feature = "script")]
    if let Some(script) = rule.as_ref().and_then(|rule| rule.script.as_deref())
        && let Err(error) = program::check(script)
    {
        // The script's own line and column; where it stands in the rule's text depends on YAML's quoting.
        let place = text.find("script").unwrap_or(0);
        report.error(place, format!("the script does not parse: {error}"));
    }
    let _ = rule;
    report.into_problems()
}
