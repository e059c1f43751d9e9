//! Condition strings: `method=find*,get* & host!=10.0.0.9 => region=$region`.
//!
//! Left of the first `=>` stands when, right of it who. A side is a list of keys joined by `&`; a key has values
//! behind `=` (any of them fits) and behind `!=` (none may fit). Blank or `true` on the left is always; blank or
//! `false` on the right is nobody. The tokenizer is Dubbo's: text that fits nowhere is passed over (with a
//! warning here), separators in an impossible place are errors. The `match` strings of v3.1 rules are single
//! sides.

use super::dialect::{AttachmentKey, Dialect, FalseDestination, Prefixes};
use super::pattern::{Pattern, Side};
use super::report::Severity;
use std::fmt;

/// A parsed condition string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Which calls it is about.
    pub when: Tests,
    /// Which providers they get; `None` blocks them.
    pub then: Option<Tests>,
}

/// The keys of one side, all of which must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tests {
    /// In text order, each key once.
    pub keys: Vec<KeyTest>,
}

/// One key with its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyTest {
    /// The key as written, prefix taken off.
    pub name: String,
    /// What the key reads.
    pub key: Key,
    /// Values behind `=`.
    pub wanted: Vec<Value>,
    /// Values behind `!=`.
    pub unwanted: Vec<Value>,
}

/// One value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// As written.
    pub text: String,
    /// What it means.
    pub pattern: Pattern,
}

/// What a key reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// A URL parameter or part of the URL.
    Parameter,
    /// The called method (`method`, `methods`); without a call, and on the right side, the parameter.
    Method,
    /// The text of an argument, counted from 0.
    Argument(u32),
    /// An attachment.
    Attachment(String),
    /// Begins like an argument or attachment but names none.
    Malformed,
}

/// What is wrong with a condition string, or looks wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// How bad it is.
    pub severity: Severity,
    /// What it is.
    pub kind: FaultKind,
    /// Byte offset in the text that was parsed.
    pub at: usize,
    /// One sentence.
    pub message: String,
}

/// The kinds of [`Fault`] that callers tell apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// No text at all.
    Empty,
    /// A separator where none of its kind may stand.
    Separator {
        /// The side it stands in, trimmed.
        half: String,
        /// The separator.
        separator: String,
        /// The text behind it.
        before: String,
        /// Where it begins in `half`, in UTF-16 units as Dubbo counts.
        index: usize,
    },
    /// A value that is no pattern.
    Value,
    /// Anything else.
    Other,
}

/// A result with everything that was noticed on the way; `None` if there is an error among it.
pub type Noted<T> = (Option<T>, Vec<Fault>);

impl Condition {
    /// Reads a condition string (rules up to v3.0, and `rule=` of static routers).
    pub fn parse(text: &str, dialect: Dialect) -> Noted<Condition> {
        let mut scan = Scan { dialect, strip: false, faults: Vec::new(), cuts: Vec::new() };
        if text.trim_matches(java_space).is_empty() {
            scan.fault(
                Severity::Error,
                FaultKind::Empty,
                0,
                "the rule is empty; write `when => who`".to_owned(),
            );
            return (None, scan.faults);
        }
        let stripped;
        let text = match dialect.table().prefixes {
            Prefixes::BeforeKeys => {
                scan.strip = true;
                text
            }
            Prefixes::Anywhere => {
                stripped = scan.cut_prefixes(text);
                &stripped
            }
        };
        let (when_text, then_text, then_at) = match text.find("=>") {
            Some(at) => (&text[..at], &text[at + 2..], at + 2),
            None => ("", text, 0),
        };
        let (when_half, when_at) = trimmed(when_text, 0);
        let (then_half, then_at) = trimmed(then_text, then_at);
        let when = if matches!(when_half, "" | "true") {
            Tests::default()
        } else {
            scan.side(when_half, when_at, Side::When)
        };
        let then = if matches!(then_half, "" | "false") {
            None
        } else {
            Some(scan.side(then_half, then_at, Side::Then))
        };
        scan.finish(Condition { when, then })
    }
}

impl Tests {
    /// Reads `from.match` of a v3.1 rule: blank is always, and so is `true` except in dubbo-go.
    pub fn parse_from(text: &str, dialect: Dialect) -> Noted<Tests> {
        let mut scan = Scan { dialect, strip: false, faults: Vec::new(), cuts: Vec::new() };
        let (half, at) = trimmed(text, 0);
        let word = dialect.table().false_destination == FalseDestination::Key;
        let tests = if half.is_empty() || (half == "true" && !word) {
            Tests::default()
        } else {
            scan.side(half, at, Side::When)
        };
        scan.finish(tests)
    }

    /// Reads `to[].match` of a v3.1 rule: blank is everybody; what `false` is depends on the dialect. `None`
    /// inside stands for nobody.
    pub fn parse_to(text: &str, dialect: Dialect) -> Noted<Option<Tests>> {
        let mut scan = Scan { dialect, strip: false, faults: Vec::new(), cuts: Vec::new() };
        let (half, at) = trimmed(text, 0);
        let tests = match (half, dialect.table().false_destination) {
            ("", _) => Some(Tests::default()),
            ("false", FalseDestination::Nobody) => None,
            ("false", FalseDestination::Everybody) => Some(Tests::default()),
            _ => Some(scan.side(half, at, Side::Then)),
        };
        scan.finish(tests)
    }
}

/// Java's `trim`: everything up to the space character.
fn java_space(c: char) -> bool {
    c <= ' '
}

fn trimmed(text: &str, at: usize) -> (&str, usize) {
    let start = text.trim_start_matches(java_space);
    (start.trim_end_matches(java_space), at + text.len() - start.len())
}

/// Most keys of a side: far beyond what people write, and it keeps the work in proportion.
const MAX_KEYS: usize = 1024;
/// Warnings of one expression that are worth listing.
const MAX_FAULTS: usize = 50;
/// Errors of one expression that are worth finding.
const MAX_ERRORS: usize = 20;

struct Scan {
    dialect: Dialect,
    /// Take `consumer.` and `provider.` off the front of keys.
    strip: bool,
    faults: Vec<Fault>,
    /// Where text was cut out before scanning: offset in the cut text, bytes cut there.
    cuts: Vec<(usize, usize)>,
}

const PREFIXES: [&str; 2] = ["consumer.", "provider."];

impl Scan {
    fn finish<T>(self, value: T) -> Noted<T> {
        let failed = self.faults.iter().any(|fault| fault.severity == Severity::Error);
        (if failed { None } else { Some(value) }, self.faults)
    }

    fn fault(&mut self, severity: Severity, kind: FaultKind, at: usize, message: String) {
        if severity != Severity::Error && self.faults.len() >= MAX_FAULTS {
            return;
        }
        let cut: usize = self.cuts.iter().filter(|(place, _)| *place <= at).map(|(_, bytes)| bytes).sum();
        self.faults.push(Fault { severity, kind, at: at + cut, message });
    }

    fn cut_prefixes(&mut self, text: &str) -> String {
        let mut out = text.to_owned();
        for prefix in PREFIXES {
            let mut kept = String::with_capacity(out.len());
            let mut rest = out.as_str();
            while let Some(at) = rest.find(prefix) {
                kept.push_str(&rest[..at]);
                self.cuts.push((kept.len(), prefix.len()));
                rest = &rest[at + prefix.len()..];
            }
            kept.push_str(rest);
            out = kept;
        }
        out
    }

    /// One side. `half` begins at byte `at` of the whole text.
    fn side(&mut self, half: &str, at: usize, side: Side) -> Tests {
        // A replaced key stays in `all`, so that values that still go to it go nowhere visible.
        let mut all: Vec<KeyTest> = Vec::new();
        let mut live: Vec<usize> = Vec::new();
        let mut key: Option<usize> = None;
        let mut values: Option<(usize, bool)> = None;
        let mut skipped_until = 0;
        let mut errors = 0;
        for token in tokens(half) {
            if all.len() > MAX_KEYS || errors > MAX_ERRORS {
                let message =
                    format!("more than {MAX_KEYS} keys, or too many errors, on one side of a condition");
                self.fault(Severity::Error, FaultKind::Other, at + token.start, message);
                return Tests::default();
            }
            errors = self.faults.iter().filter(|fault| fault.severity == Severity::Error).count();
            let place = at + token.start;
            self.note_skipped(half, at, skipped_until, token.start);
            skipped_until = token.end;
            let content_at = at + token.end - token.content.len();
            match token.separator {
                "" | "&" => {
                    let name = self.key_name(token.content, content_at);
                    let known =
                        live.iter().copied().find(|&index| all.get(index).is_some_and(|k| k.name == name));
                    if let (Some(index), "&") = (known, token.separator) {
                        key = Some(index);
                        continue;
                    }
                    if token.separator.is_empty() && !all.is_empty() {
                        let message = format!(
                            "'{}' begins a key of its own here; separate keys with & and values with ,",
                            shown(token.content)
                        );
                        self.fault(Severity::Warning, FaultKind::Other, content_at, message);
                    }
                    live.retain(|&index| Some(index) != known);
                    live.push(all.len());
                    key = Some(all.len());
                    let read = self.read_key(&name, content_at, side);
                    all.push(KeyTest { name, key: read, wanted: Vec::new(), unwanted: Vec::new() });
                }
                "=" | "!=" if key.is_some() => {
                    values = key.map(|key| (key, token.separator == "="));
                    self.value(&mut all, values, token.content, content_at, side);
                }
                "," if values.is_some() => {
                    if values.map(|(index, _)| index) != key {
                        let message =
                            format!("'{}' is a value of the key before this one", shown(token.content));
                        self.fault(Severity::Warning, FaultKind::Other, content_at, message);
                    }
                    self.value(&mut all, values, token.content, content_at, side);
                }
                separator => {
                    let index = half[..token.start].encode_utf16().count();
                    let message = format!(
                        "'{}' may not stand before '{}' (character {index} of \"{}\"); expected a key, then = or \
                         !=, then values joined by , and the next key behind &",
                        shown(separator),
                        shown(token.content),
                        shown(half)
                    );
                    let kind = FaultKind::Separator {
                        half: half.to_owned(),
                        separator: separator.to_owned(),
                        before: token.content.to_owned(),
                        index,
                    };
                    self.fault(Severity::Error, kind, place, message);
                    return Tests::default();
                }
            }
        }
        self.note_skipped(half, at, skipped_until, half.len());
        let mut slots: Vec<Option<KeyTest>> = all.into_iter().map(Some).collect();
        let keys: Vec<KeyTest> =
            live.into_iter().filter_map(|index| slots.get_mut(index).and_then(Option::take)).collect();
        // What is wrong with a refused value is said already.
        let refused = self.faults.iter().any(|fault| fault.kind == FaultKind::Value && fault.at >= at);
        let empty = |test: &&KeyTest| test.wanted.is_empty() && test.unwanted.is_empty();
        for test in keys.iter().filter(empty).filter(|_| !refused) {
            let message =
                format!("key '{}' has no values; write {0}=* if any value will do", shown(&test.name));
            self.fault(Severity::Warning, FaultKind::Other, at, message);
        }
        Tests { keys }
    }

    /// Separators that no content follows are passed over, as upstream does, though nobody means them.
    fn note_skipped(&mut self, half: &str, at: usize, from: usize, to: usize) {
        let text = half.get(from..to).unwrap_or_default();
        if let Some(place) = text.find(is_separator) {
            let message = format!("'{}' has nothing behind it and is passed over", shown(text.trim()));
            self.fault(Severity::Warning, FaultKind::Other, at + from + place, message);
        }
    }

    fn key_name(&mut self, content: &str, at: usize) -> String {
        let mut name = content;
        if self.strip {
            while let Some(rest) = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)) {
                name = rest;
            }
        }
        if name.is_empty() {
            let message = format!("'{}' is a prefix without a key", shown(content));
            self.fault(Severity::Error, FaultKind::Other, at, message);
        }
        name.to_owned()
    }

    fn read_key(&mut self, name: &str, at: usize, side: Side) -> Key {
        let (key, note) = read_key(name, self.dialect);
        if let Some(note) = note {
            self.fault(Severity::Warning, FaultKind::Other, at, note);
        } else if side == Side::Then && matches!(key, Key::Argument(_) | Key::Attachment(_)) {
            let message =
                format!("'{name}' belongs to the call and has no value on the side of the providers");
            self.fault(Severity::Warning, FaultKind::Other, at, message);
        }
        key
    }

    fn value(&mut self, all: &mut [KeyTest], to: Option<(usize, bool)>, text: &str, at: usize, side: Side) {
        let Some((index, wanted)) = to else { return };
        let Some(test) = all.get_mut(index) else { return };
        match Pattern::parse(text, &test.name, side, self.dialect) {
            Ok(pattern) => {
                let list = if wanted { &mut test.wanted } else { &mut test.unwanted };
                list.push(Value { text: text.to_owned(), pattern });
            }
            Err(message) => self.fault(Severity::Error, FaultKind::Value, at, message),
        }
    }
}

/// Text as messages quote it: not more than fits a line.
pub(super) fn shown(text: &str) -> String {
    match text.char_indices().nth(60) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

/// What a key reads, and what is odd about it.
fn read_key(name: &str, dialect: Dialect) -> (Key, Option<String>) {
    let style = dialect.table().attachment_key;
    if style != AttachmentKey::Parameter && name.starts_with("attachments") {
        let text =
            if style == AttachmentKey::CutAtDot { name.split('.').next().unwrap_or(name) } else { name };
        let inner = text.strip_prefix("attachments[").and_then(|rest| {
            if style == AttachmentKey::Word { rest.split_once(']') } else { rest.rsplit_once(']') }
        });
        let word = |inner: &str| inner.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        return match inner {
            Some((inner, _)) if !inner.is_empty() && (style != AttachmentKey::Word || word(inner)) => {
                (Key::Attachment(inner.to_owned()), None)
            }
            _ => (
                Key::Malformed,
                Some(format!("'{}' names no attachment; write attachments[name]", shown(name))),
            ),
        };
    }
    if name.starts_with("arguments") {
        let text = name.split('.').next().unwrap_or(name);
        let index =
            text.strip_prefix("arguments[").and_then(|rest| rest.split_once(']')).and_then(|(digits, _)| {
                if digits.bytes().all(|b| b.is_ascii_digit()) { digits.parse().ok() } else { None }
            });
        return match index {
            Some(index) => {
                let path = (text.len() < name.len())
                    .then(|| format!("the path behind the argument in '{name}' is not looked at"));
                (Key::Argument(index), path)
            }
            None => {
                (Key::Malformed, Some(format!("'{}' names no argument; write arguments[0]", shown(name))))
            }
        };
    }
    if matches!(name, "method" | "methods") { (Key::Method, None) } else { (Key::Parameter, None) }
}

fn is_separator(c: char) -> bool {
    matches!(c, '&' | '!' | '=' | ',')
}

/// White space of Java's `\s`.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\u{b}' | '\u{c}' | '\r')
}

struct Token<'t> {
    separator: &'t str,
    content: &'t str,
    start: usize,
    end: usize,
}

/// The matches of `([&!=,]*)\s*([^&!=,\s]+)`, one after the other.
fn tokens(half: &str) -> impl Iterator<Item = Token<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = half.get(at..)?;
            let separator_len = rest.find(|c| !is_separator(c)).unwrap_or(rest.len());
            let behind = rest[separator_len..].trim_start_matches(is_space);
            let content_at = at + rest.len() - behind.len();
            let content_len = behind.find(|c| is_separator(c) || is_space(c)).unwrap_or(behind.len());
            if content_len > 0 {
                let end = content_at + content_len;
                let token = Token {
                    separator: &rest[..separator_len],
                    content: &behind[..content_len],
                    start: at,
                    end,
                };
                at = end;
                // White space in front belongs to no separator.
                return Some(token);
            }
            if behind.is_empty() {
                return None;
            }
            at = content_at;
        }
    })
}

impl fmt::Display for Tests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        for test in &self.keys {
            let before = parts.len();
            for (operator, values) in [("=", &test.wanted), ("!=", &test.unwanted)] {
                if !values.is_empty() {
                    let texts: Vec<&str> = values.iter().map(|value| value.text.as_str()).collect();
                    // `=>` must not arise from `=` and a value.
                    let gap = if texts.first().is_some_and(|text| text.starts_with('>')) { " " } else { "" };
                    parts.push(format!("{}{operator}{gap}{}", test.name, texts.join(",")));
                }
            }
            if parts.len() == before {
                parts.push(test.name.clone());
            }
        }
        let text = parts.join(" & ");
        match text.as_str() {
            // A lone word that would read as something else, and "no keys", which is not "nothing".
            "true" | "false" | "" => write!(f, "{text} &"),
            _ => f.write_str(&text),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.when.keys.is_empty() {
            write!(f, "{} ", self.when)?;
        }
        f.write_str("=>")?;
        if let Some(then) = &self.then {
            write!(f, " {then}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_taken_off_keys_only() {
        let (condition, _) =
            Condition::parse("consumer.application=my-consumer.app => provider.host=a", Dialect::Byway);
        assert_eq!(condition.unwrap().to_string(), "application=my-consumer.app => host=a");
        let (condition, _) = Condition::parse("consumer.application=my-consumer.app =>", Dialect::Dubbo3);
        assert_eq!(condition.unwrap().to_string(), "application=my-app =>");
    }

    #[test]
    fn faults_point_at_the_text_as_written() {
        for (text, dialect, at) in [
            ("consumer.host==1 => x=y", Dialect::Dubbo3, 13),
            ("host=1 => consumer.a=b && c=d", Dialect::Dubbo3, 23),
            ("host=10.0.0.0/99 => a=b", Dialect::Byway, 5),
            ("é=1 => port=9~1", Dialect::Byway, 13),
        ] {
            let (condition, faults) = Condition::parse(text, dialect);
            assert!(condition.is_none(), "{text}");
            let fault = faults.iter().find(|fault| fault.severity == Severity::Error).unwrap();
            assert_eq!(fault.at, at, "{text}: {}", fault.message);
        }
    }

    #[test]
    fn printing_keeps_the_meaning() {
        for text in [
            "a=b,c & a!=d => x=$y & z",
            "=> false &",
            "a= >b => c",
            "=> &",
            "=>",
            "arguments[0]=x & attachments[a.b]!=* => host=10.0.0.0/8",
        ] {
            let first = Condition::parse(text, Dialect::Byway).0.unwrap();
            let second = Condition::parse(&first.to_string(), Dialect::Byway).0.unwrap();
            assert_eq!(first, second, "{text} -> {first}");
        }
    }
}
