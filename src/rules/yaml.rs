//! YAML as rules use it: one document of mappings, sequences and scalars, each node with its place in the text.
//!
//! Rule texts come from config centres, so from anybody who can write there. Aliases are refused (no expansion
//! bombs), nesting ends at [`MAX_DEPTH`], a text at [`MAX_TEXT`]; control characters are errors. Scalars keep
//! their text; what a plain scalar means follows YAML 1.1 (`yes` is true), as in Dubbo's own parsers.

use super::report::Report;
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span};

/// Deepest nesting of mappings and sequences.
pub const MAX_DEPTH: usize = 32;
/// Longest rule text in bytes.
pub const MAX_TEXT: usize = 1 << 20;

/// One node with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Byte offset of its first character.
    pub offset: usize,
    /// Byte offset behind its last character.
    pub end: usize,
    /// What it is.
    pub value: Value,
}

/// The content of a [`Node`].
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing, `~` or `null`.
    Null,
    /// Any other scalar: its text after unquoting, and what it means.
    Scalar(String, Meaning),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping in text order, keys as written; a repeated key is there once for every time.
    Map(Vec<(Node, Node)>),
}

/// What a scalar means under YAML 1.1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Meaning {
    /// Text, because it is quoted or reads as nothing else.
    Text,
    /// A boolean.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Float(f64),
}

impl Node {
    /// The text of a scalar that is text; quoted numbers are text, plain ones are not.
    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar(text, Meaning::Text) => Some(text),
            _ => None,
        }
    }

    /// The text of any scalar.
    pub fn as_scalar(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar(text, _) => Some(text),
            _ => None,
        }
    }

    /// What it is, for "found …" in messages.
    pub fn kind(&self) -> &'static str {
        match &self.value {
            Value::Null => "nothing",
            Value::Scalar(_, Meaning::Text) => "text",
            Value::Scalar(_, Meaning::Bool(_)) => "a boolean",
            Value::Scalar(_, Meaning::Integer(_) | Meaning::Float(_)) => "a number",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }

    /// How Java prints the value, which is what its v3.0 parser makes of list items that are not text.
    pub fn java_text(&self) -> String {
        match &self.value {
            Value::Null => "null".to_owned(),
            Value::Scalar(_, Meaning::Bool(value)) => value.to_string(),
            Value::Scalar(_, Meaning::Integer(value)) => value.to_string(),
            Value::Scalar(text, _) => text.clone(),
            Value::List(items) => {
                format!("[{}]", items.iter().map(Node::java_text).collect::<Vec<_>>().join(", "))
            }
            Value::Map(entries) => {
                let pairs: Vec<_> = entries
                    .iter()
                    .map(|(key, value)| format!("{}={}", key.java_text(), value.java_text()))
                    .collect();
                format!("{{{}}}", pairs.join(", "))
            }
        }
    }
}

/// Reads the one document of `text`. `None` means that there is none (empty, blank, comments only, or an explicit
/// null); problems are in `report`, and after an error the answer is not to be used.
pub fn read(text: &str, report: &mut Report<'_>) -> Option<Node> {
    parse(text, report, false)?.pop()
}

/// Reads a stream of documents, `---` between them. Empty ones are left out; after an error the answer is not to be
/// used.
pub fn read_all(text: &str, report: &mut Report<'_>) -> Vec<Node> {
    parse(text, report, true).unwrap_or_default()
}

fn parse(text: &str, report: &mut Report<'_>, many: bool) -> Option<Vec<Node>> {
    if text.len() > MAX_TEXT {
        report.error(MAX_TEXT, format!("the text is {} bytes long; at most {MAX_TEXT} are read", text.len()));
        return None;
    }
    if let Some((at, bad)) = text.char_indices().find(|&(_, c)| is_forbidden(c)) {
        report.syntax(at, format!("control character U+{:04X} is not allowed in YAML", bad as u32));
        return None;
    }
    let places = Places::of(text);
    let mut builder =
        Builder { places: &places, text, open: Vec::new(), roots: Vec::new(), documents: 0, many };
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        match event {
            Ok((event, span)) => {
                if let Err((at, message)) = builder.take(event, span) {
                    report.error(at, message);
                    return None;
                }
            }
            Err(error) => {
                report.syntax(places.byte(error.marker()), format!("not YAML: {}", error.info()));
                return None;
            }
        }
    }
    builder.roots.retain(|node| node.value != Value::Null);
    Some(builder.roots)
}

/// Characters outside YAML's printable set; NUL in front of all, which parsers take for the end of the text.
fn is_forbidden(c: char) -> bool {
    matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{7f}' | '\u{80}'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}')
}

/// Byte offsets of character indexes: the parser counts characters, errors count bytes.
struct Places {
    /// Byte offset of every 64th character; empty for ASCII, where both are the same.
    marks: Vec<usize>,
    text: Box<str>,
}

impl Places {
    fn of(text: &str) -> Places {
        if text.is_ascii() {
            return Places { marks: Vec::new(), text: text.into() };
        }
        let marks = text.char_indices().step_by(64).map(|(at, _)| at).collect();
        Places { marks, text: text.into() }
    }

    fn byte(&self, marker: &Marker) -> usize {
        let index = marker.index();
        if self.marks.is_empty() {
            return index.min(self.text.len());
        }
        let Some(&from) = self.marks.get(index / 64) else { return self.text.len() };
        let rest = self.text.get(from..).unwrap_or_default();
        rest.char_indices().nth(index % 64).map_or(self.text.len(), |(at, _)| from + at)
    }
}

struct Builder<'t> {
    places: &'t Places,
    text: &'t str,
    open: Vec<Open>,
    /// Top-level nodes, one a document.
    roots: Vec<Node>,
    documents: usize,
    /// More than one document is fine.
    many: bool,
}

/// A collection whose end has not come yet.
enum Open {
    List(usize, Vec<Node>),
    Map(usize, Vec<(Node, Node)>, Option<Node>),
}

impl Builder<'_> {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), (usize, String)> {
        let at = self.places.byte(&span.start);
        let end = self.places.byte(&span.end);
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 && !self.many {
                    return Err((at, "a second document begins here; a rule text is one document".into()));
                }
            }
            Event::Alias(_) => {
                return Err((at, "aliases are not allowed in rule texts; write the value out".into()));
            }
            Event::Scalar(text, style, _, tag) => {
                let tag = tag.as_ref().map(|tag| (tag.is_yaml_core_schema(), tag.suffix.as_str()));
                let value = scalar(&text, style, tag).map_err(|message| (at, message))?;
                self.push(Node { offset: at, end: self.trim_end(at, end), value })?;
            }
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                if self.open.len() >= MAX_DEPTH {
                    return Err((at, format!("nested deeper than {MAX_DEPTH} levels")));
                }
                self.open.push(match event {
                    Event::SequenceStart(..) => Open::List(at, Vec::new()),
                    _ => Open::Map(at, Vec::new(), None),
                });
            }
            Event::SequenceEnd => {
                if let Some(Open::List(offset, items)) = self.open.pop() {
                    self.push(Node {
                        offset,
                        end: self.trim_end(offset, at.max(end)),
                        value: Value::List(items),
                    })?;
                }
            }
            Event::MappingEnd => {
                if let Some(Open::Map(offset, entries, _)) = self.open.pop() {
                    self.push(Node {
                        offset,
                        end: self.trim_end(offset, at.max(end)),
                        value: Value::Map(entries),
                    })?;
                }
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
        Ok(())
    }

    /// Block nodes end where the next one begins; blank lines in between are not theirs.
    fn trim_end(&self, offset: usize, end: usize) -> usize {
        let slice = self.text.get(offset..end).unwrap_or_default();
        offset + slice.trim_end().len()
    }

    fn push(&mut self, node: Node) -> Result<(), (usize, String)> {
        match self.open.last_mut() {
            None => self.roots.push(node),
            Some(Open::List(_, items)) => items.push(node),
            Some(Open::Map(_, entries, key)) => match key.take() {
                Some(key) => entries.push((key, node)),
                None => {
                    if !matches!(node.value, Value::Scalar(..) | Value::Null) {
                        return Err((node.offset, "a mapping key must be a word".into()));
                    }
                    *key = Some(node);
                }
            },
        }
        Ok(())
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<(bool, &str)>) -> Result<Value, String> {
    let plain = style == ScalarStyle::Plain;
    match tag {
        Some((true, "str")) => return Ok(Value::Scalar(text.to_owned(), Meaning::Text)),
        Some((true, "null")) => return Ok(Value::Null),
        Some((true, "bool" | "int" | "float")) => {
            return match meaning(text) {
                Meaning::Text => Err(format!("'{text}' is not of the type its tag names")),
                meaning => Ok(Value::Scalar(text.to_owned(), meaning)),
            };
        }
        // The parser hands quoted scalars out with the non-specific tag `!`.
        Some((false, "")) => return Ok(Value::Scalar(text.to_owned(), Meaning::Text)),
        Some((_, tag)) => return Err(format!("tag '{tag}' is not used in rule texts")),
        None => {}
    }
    if !plain {
        return Ok(Value::Scalar(text.to_owned(), Meaning::Text));
    }
    if matches!(text, "" | "~" | "null" | "Null" | "NULL") {
        return Ok(Value::Null);
    }
    Ok(Value::Scalar(text.to_owned(), meaning(text)))
}

/// YAML 1.1 resolution of a plain scalar.
fn meaning(text: &str) -> Meaning {
    match text {
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => return Meaning::Bool(true),
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => {
            return Meaning::Bool(false);
        }
        ".inf" | ".Inf" | ".INF" | "+.inf" => return Meaning::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Meaning::Float(f64::NEG_INFINITY),
        ".nan" | ".NaN" | ".NAN" => return Meaning::Float(f64::NAN),
        _ => {}
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Meaning::Text;
    }
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let digits = unsigned.replace('_', "");
    let integer = if let Some(hex) = digits.strip_prefix("0x") {
        i64::from_str_radix(hex, 16).ok()
    } else if let Some(octal) = digits.strip_prefix("0o") {
        i64::from_str_radix(octal, 8).ok()
    } else if digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit()) {
        i64::from_str_radix(&digits, 8).ok()
    } else {
        digits.parse().ok()
    };
    if let Some(value) = integer {
        return Meaning::Integer(sign * value);
    }
    let numeric = digits.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
    match digits.parse::<f64>() {
        Ok(value) if numeric && digits.bytes().any(|b| b.is_ascii_digit()) => {
            Meaning::Float(if sign < 0 { -value } else { value })
        }
        _ => Meaning::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::report::Severity;

    fn fault(text: &str) -> (String, u32, u32) {
        let mut report = Report::new(text);
        let node = read(text, &mut report);
        let problem = report.problems().iter().find(|problem| problem.severity == Severity::Error);
        let problem = problem.unwrap_or_else(|| panic!("{text:?} reads as {node:?}"));
        (problem.message.clone(), problem.at.line, problem.at.column)
    }

    #[test]
    fn hostile_texts_are_errors_with_a_place() {
        let deep = "[".repeat(MAX_DEPTH + 1);
        let cases: &[(&str, &str, u32, u32)] = &[
            ("a: &x [1]\nb: *x\n", "aliases", 2, 4),
            (&deep, "deeper", 1, 33),
            ("a: 1\n\u{0}", "U+0000", 2, 1),
            ("a: 1\n---\nb: 2\n", "second document", 2, 1),
            ("a: [b\n", "not YAML", 2, 1),
            ("é: !!java/object x\n", "tag", 1, 4),
            ("? [a]\n: b\n", "key", 1, 3),
        ];
        for (text, words, line, column) in cases {
            let (message, l, c) = fault(text);
            assert!(message.contains(words), "{text:?}: {message}");
            assert_eq!((l, c), (*line, *column), "{text:?}: {message}");
        }
    }

    #[test]
    fn scalars_mean_what_yaml_1_1_says() {
        let mut report = Report::new("");
        for (text, want) in [
            ("yes", Meaning::Bool(true)),
            ("'yes'", Meaning::Text),
            ("12", Meaning::Integer(12)),
            ("-0x10", Meaning::Integer(-16)),
            ("1.5", Meaning::Float(1.5)),
            ("1.2.3", Meaning::Text),
            ("10.0.0.1:20880", Meaning::Text),
            ("v3.0", Meaning::Text),
            ("!!str 5", Meaning::Text),
        ] {
            let node = read(text, &mut report).map(|node| node.value);
            assert!(matches!(&node, Some(Value::Scalar(_, got)) if *got == want), "{text}: {node:?}");
        }
        for text in ["", "  ", "# c", "null", "~", "---\n...\n"] {
            assert_eq!(read(text, &mut report), None, "{text:?}");
        }
        assert!(report.problems().is_empty());
    }
}
