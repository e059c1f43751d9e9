//! What is wrong with a rule text, with places: the one list that parsers write, errors are made from, and lint
//! shows.

use crate::error::{Error, Position, Source, Status};

/// How bad a [`Problem`] is. Numbers are fixed for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i32)]
pub enum Severity {
    /// The rule does what it says, though there is a better way to say it.
    Hint = 0,
    /// The rule is taken, but some of it does not do what it seems to say.
    Warning = 1,
    /// The rule is refused.
    Error = 2,
}

/// One thing that is wrong with a rule text.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// Where it is.
    pub at: Position,
    /// One sentence: what was found, what was expected.
    pub message: String,
    /// The text is no YAML, so nothing of it was read.
    pub syntax: bool,
}

impl Problem {
    /// The problem as the error of a refused rule.
    pub fn to_error(&self) -> Error {
        let status = if self.syntax { Status::E_SYNTAX } else { Status::E_RULE };
        Error::new(status, self.message.clone()).at(self.at).source(Source::Parser)
    }
}

impl Severity {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Hint => "hint",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// Problems for people, one a line, as compilers write them.
pub fn to_text(problems: &[Problem]) -> String {
    let line = |problem: &Problem| {
        let (line, column) = (problem.at.line, problem.at.column);
        format!("{line}:{column}: {}: {}\n", problem.severity.name(), problem.message)
    };
    problems.iter().map(line).collect()
}

/// No text has more problems worth listing.
const MAX_PROBLEMS: usize = 200;

/// Problems of one text, as they are found.
#[derive(Debug)]
pub struct Report<'t> {
    text: &'t str,
    problems: Vec<Problem>,
    errors: usize,
    /// Bytes of memory that the compiled patterns of this text may still take.
    patterns: usize,
}

/// Memory that all compiled patterns of one text may take, in bytes; the time to compile them goes with it.
const MAX_PATTERNS: usize = 32 << 20;

impl<'t> Report<'t> {
    /// An empty list about `text`.
    pub fn new(text: &'t str) -> Report<'t> {
        Report { text, problems: Vec::new(), errors: 0, patterns: MAX_PATTERNS }
    }

    /// The text all this is about.
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// Sets memory aside for one more compiled pattern; false when the text has used up its share.
    pub fn set_aside(&mut self, bytes: usize) -> bool {
        let left = self.patterns.checked_sub(bytes);
        self.patterns = left.unwrap_or(0);
        left.is_some()
    }

    /// Adds an error at a byte offset.
    pub fn error(&mut self, offset: usize, message: impl Into<String>) {
        self.add(Severity::Error, offset, message.into());
    }

    /// Adds the error that the text is no YAML.
    pub fn syntax(&mut self, offset: usize, message: impl Into<String>) {
        self.error(offset, message);
        if let Some(problem) = self.problems.last_mut() {
            problem.syntax = true;
        }
    }

    /// Adds a warning at a byte offset.
    pub fn warning(&mut self, offset: usize, message: impl Into<String>) {
        self.add(Severity::Warning, offset, message.into());
    }

    /// Adds a hint at a byte offset.
    pub fn hint(&mut self, offset: usize, message: impl Into<String>) {
        self.add(Severity::Hint, offset, message.into());
    }

    /// Adds a problem at a byte offset.
    pub fn add(&mut self, severity: Severity, offset: usize, mut message: String) {
        if severity == Severity::Error {
            self.errors += 1;
        }
        if let Some((end, _)) = message.char_indices().nth(400) {
            message.truncate(end);
            message.push('…');
        }
        // The first error always stays: it is the one a host gets to see.
        let first_error = severity == Severity::Error && self.errors == 1;
        if self.problems.len() < MAX_PROBLEMS || first_error {
            let at = Position::in_text(self.text, offset);
            self.problems.push(Problem { severity, at, message, syntax: false });
        }
    }

    /// Whether anything so far refuses the rule.
    pub fn failed(&self) -> bool {
        self.errors > 0
    }

    /// The number of errors so far, to tell which part of the work found them.
    pub fn errors(&self) -> usize {
        self.errors
    }

    /// What was found, in the order it was found.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The first error as what the host gets; the further ones are its causes.
    pub fn to_error(&self) -> Option<Error> {
        let mut errors = self.problems.iter().filter(|problem| problem.severity == Severity::Error);
        let first = errors.next()?.to_error();
        Some(first.causes(errors.map(Problem::to_error)))
    }

    /// The list in text order.
    pub fn into_problems(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|problem| problem.at.offset);
        self.problems
    }
}
