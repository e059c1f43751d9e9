//! Rules as YAML text: block mappings, every value quoted, so that nothing depends on how a plain word reads.

use super::header::Header;
use std::fmt::Write;

pub(super) struct Printer {
    out: String,
}

impl Printer {
    /// Begins with the common fields, as far as they say something.
    pub(super) fn of(header: &Header) -> Printer {
        let mut printer = Printer { out: String::new() };
        let texts = [("configVersion", &header.version), ("scope", &header.scope), ("key", &header.key)];
        for (name, text) in texts {
            if let Some(text) = text {
                printer.field(0, name, text);
            }
        }
        let flags = [
            ("force", header.force),
            ("enabled", header.enabled),
            ("runtime", header.runtime),
            ("valid", header.valid),
            ("dynamic", header.dynamic),
        ];
        for (name, flag) in flags {
            printer.line(&format!("{name}: {flag}"));
        }
        printer.line(&format!("priority: {}", header.priority));
        printer
    }

    pub(super) fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }

    /// `name: "value"`, indented by `depth` times two spaces.
    pub(super) fn field(&mut self, depth: usize, name: &str, value: &str) {
        let line = format!("{:indent$}{name}: {}", "", quoted(value), indent = 2 * depth);
        self.line(&line);
    }

    /// `- "value"`.
    pub(super) fn item(&mut self, value: &str) {
        let line = format!("- {}", quoted(value));
        self.line(&line);
    }

    /// `- name: "value"`.
    pub(super) fn item_field(&mut self, name: &str, value: &str) {
        let line = format!("- {name}: {}", quoted(value));
        self.line(&line);
    }

    pub(super) fn finish(self) -> String {
        self.out
    }
}

/// A double-quoted scalar; everything beyond printable ASCII that YAML might take amiss is escaped.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                let _ = write!(out, "\\u{:04X}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
