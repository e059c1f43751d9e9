//! What mesh rules can ask of a call: numbers, booleans, addresses, methods, attachments.

use super::{items, labels};
use crate::chain::invocation::Invocation;
use crate::rules::dialect::Dialect;
use crate::rules::header::Fields;
use crate::rules::report::Report;
use crate::rules::string_match::StringMatch;
use crate::rules::yaml::{Meaning, Node, Value};
use crate::rules::{ip, java_ip};
use std::borrow::Cow;

/// A value the matcher cannot judge: Java throws here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault(pub &'static str);

/// What a call is asked about, with what is not part of it.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// The call.
    pub call: &'a Invocation<'a>,
    /// Parameters of the consumer's URL.
    pub label: &'a dyn Fn(&str) -> Option<String>,
    /// Values of tracing contexts by key, one per provider of them; without a provider no tracing condition holds.
    pub tracing: &'a dyn Fn(&str) -> Vec<Option<String>>,
}

/// `exact`, `range` (start inclusive, end exclusive), or `exact` of the remainder by `mod`. A range beats the
/// others; `mod` alone never matches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DoubleMatch {
    /// Equal to this.
    pub exact: Option<f64>,
    /// Lower bound, upper bound; `None`: no range given.
    pub range: Option<(Option<f64>, Option<f64>)>,
    /// Divisor.
    pub modulus: Option<f64>,
}

impl DoubleMatch {
    /// Reads the mapping of operators.
    pub fn read(node: &Node, dialect: Dialect, report: &mut Report<'_>) -> Option<DoubleMatch> {
        let fields = Fields::of(node, "a number match", &[&["exact", "range", "mod"]], dialect, report)?;
        let range = match fields.get("range") {
            None => None,
            Some(node) => {
                let fields = Fields::of(node, "a range", &[&["start", "end"]], dialect, report)?;
                Some((number(&fields, "start", dialect, report), number(&fields, "end", dialect, report)))
            }
        };
        Some(DoubleMatch {
            exact: number(&fields, "exact", dialect, report),
            range,
            modulus: number(&fields, "mod", dialect, report),
        })
    }

    /// Whether a number fits; `None` is null.
    pub fn matches(&self, value: Option<f64>) -> Result<bool, Fault> {
        // As Double.equals: -0.0 is not 0.0.
        let same = |a: f64, b: f64| a.to_bits() == b.to_bits();
        if let (Some(exact), None) = (self.exact, self.modulus) {
            return Ok(value.is_some_and(|value| same(value, exact)));
        }
        let Some(value) = value else {
            return if self.range.is_some() || self.exact.is_some() {
                Err(Fault("NullPointerException"))
            } else {
                Ok(false)
            };
        };
        if let Some((start, end)) = self.range {
            let bounded = start.is_some() || end.is_some();
            return Ok(bounded && start.is_none_or(|s| value >= s) && end.is_none_or(|e| value < e));
        }
        match (self.exact, self.modulus) {
            (Some(exact), Some(modulus)) => Ok(same(value % modulus, exact)),
            _ => Ok(false),
        }
    }
}

/// A number field. Java takes only texts with a point or exponent for numbers here.
fn number(fields: &Fields<'_>, name: &str, dialect: Dialect, report: &mut Report<'_>) -> Option<f64> {
    let node = fields.get(name)?;
    match node.value {
        Value::Scalar(_, Meaning::Float(value)) => Some(value),
        Value::Scalar(ref text, Meaning::Integer(_)) if dialect.table().mesh_lenient => {
            text.replace('_', "").parse().ok()
        }
        Value::Scalar(ref text, Meaning::Integer(_)) => {
            report.warning(node.offset, format!("'{name}: {text}' is dropped; write {text}.0"));
            None
        }
        _ => {
            report.warning(node.offset, format!("'{name}' must be a number; found {}", node.kind()));
            None
        }
    }
}

/// `exact`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BoolMatch {
    /// Equal to this.
    pub exact: Option<bool>,
}

impl BoolMatch {
    /// Reads the mapping of operators.
    pub fn read(node: &Node, dialect: Dialect, report: &mut Report<'_>) -> Option<BoolMatch> {
        let fields = Fields::of(node, "a boolean match", &[&["exact"]], dialect, report)?;
        let exact = fields.get("exact").and_then(|node| match node.value {
            Value::Scalar(_, Meaning::Bool(value)) => Some(value),
            _ => {
                report.warning(node.offset, format!("'exact' must be true or false; found {}", node.kind()));
                None
            }
        });
        Some(BoolMatch { exact })
    }

    /// Whether a boolean fits.
    pub fn matches(&self, value: bool) -> bool {
        self.exact == Some(value)
    }
}

/// `cird` (sic), `wildcard`, `exact` over an address, in this order; the first that says yes counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressMatch {
    /// Equal, or a network the address is in.
    pub cird: Option<String>,
    /// `*` and `0.0.0.0` fit all; else one star, the last.
    pub wildcard: Option<String>,
    /// Equal.
    pub exact: Option<String>,
    /// dubbo-go looks at the value being `*` or `0.0.0.0`, and at the first star.
    pub go: bool,
}

impl AddressMatch {
    /// Whether an address fits; `None` is null.
    pub fn matches(&self, value: Option<&str>) -> bool {
        let Some(value) = value else { return false };
        if self.go && value.is_empty() {
            return false;
        }
        if let Some(network) = &self.cird
            && (network == value || java_ip::match_network(network, value).unwrap_or(false))
        {
            return true;
        }
        if let Some(pattern) = &self.wildcard {
            let every = if self.go { value } else { pattern };
            if matches!(every, "*" | "0.0.0.0") || self.one_star(pattern, value) {
                return true;
            }
        }
        self.exact.as_deref() == Some(value)
    }

    fn one_star(&self, pattern: &str, value: &str) -> bool {
        let at = if self.go { pattern.find('*') } else { pattern.rfind('*') };
        match at.and_then(|at| pattern.split_at_checked(at)) {
            None => pattern == value,
            Some((head, tail)) => {
                let tail = tail.strip_prefix('*').unwrap_or(tail);
                value.len() >= head.len() + tail.len() && value.starts_with(head) && value.ends_with(tail)
            }
        }
    }

    /// The address part of `host:port`, for callers that have both.
    pub fn host_of(address: &str) -> &str {
        ip::split_address(address).0
    }
}

/// One matcher of these fits; an empty list fits nothing.
pub fn one_of<M, V: Copy>(list: &[M], value: V, matches: impl Fn(&M, V) -> bool) -> bool {
    list.iter().any(|matcher| matches(matcher, value))
}

/// What a call must look like to be routed by a detail. Parts that are missing fit everything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestMatch {
    /// Name of the entry.
    pub name: Option<String>,
    /// Method and arguments.
    pub method: Option<MethodMatch>,
    /// Parameters of the consumer's URL, compared exactly.
    pub source_labels: Vec<(String, String)>,
    /// Attachments and tracing contexts.
    pub attachments: Option<AttachmentMatch>,
}

impl RequestMatch {
    /// Reads one block of `match`.
    pub fn read(node: &Node, dialect: Dialect, report: &mut Report<'_>) -> Option<RequestMatch> {
        let known: &[&[&str]] = &[&["name", "method", "sourceLabels", "attachments", "headers"]];
        let fields = Fields::of(node, "a request match", known, dialect, report)?;
        if fields.get("headers").is_some() {
            report.warning(fields.place("headers"), "'headers' is read and never looked at");
        }
        Some(RequestMatch {
            name: fields.get("name").and_then(Node::as_scalar).map(str::to_owned),
            method: match fields.get("method") {
                Some(node) => Some(MethodMatch::read(node, dialect, report)?),
                None => None,
            },
            source_labels: labels(fields.get("sourceLabels"), "sourceLabels", report),
            attachments: match fields.get("attachments") {
                Some(node) => Some(AttachmentMatch::read(node, dialect, report)?),
                None => None,
            },
        })
    }

    /// Whether a call fits.
    pub fn matches(&self, asked: &Asked<'_>) -> Result<bool, Fault> {
        if let Some(method) = &self.method
            && !method.matches(asked.call)?
        {
            return Ok(false);
        }
        if self.source_labels.iter().any(|(name, value)| (asked.label)(name).as_deref() != Some(value)) {
            return Ok(false);
        }
        Ok(self.attachments.as_ref().is_none_or(|attachments| attachments.matches(asked)))
    }
}

/// Attachments by key, and tracing contexts by key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AttachmentMatch {
    /// All must fit the call's attachments.
    pub dubbo_context: Vec<(String, StringMatch)>,
    /// Each must fit a value of at least one provider of tracing contexts.
    pub tracing_context: Vec<(String, StringMatch)>,
}

impl AttachmentMatch {
    /// Reads the two mappings.
    pub fn read(node: &Node, dialect: Dialect, report: &mut Report<'_>) -> Option<AttachmentMatch> {
        let known: &[&[&str]] = &[&["dubboContext", "tracingContext"]];
        let fields = Fields::of(node, "an attachment match", known, dialect, report)?;
        Some(AttachmentMatch {
            dubbo_context: by_key(fields.get("dubboContext"), dialect, report),
            tracing_context: by_key(fields.get("tracingContext"), dialect, report),
        })
    }

    /// Whether a call fits.
    pub fn matches(&self, asked: &Asked<'_>) -> bool {
        let context = self.dubbo_context.iter().all(|(key, matcher)| {
            let value = asked.call.attachment(key.as_bytes()).map(text);
            matcher.matches(value.as_deref())
        });
        context
            && self.tracing_context.iter().all(|(key, matcher)| {
                (asked.tracing)(key).iter().any(|value| matcher.matches(value.as_deref()))
            })
    }
}

fn by_key(node: Option<&Node>, dialect: Dialect, report: &mut Report<'_>) -> Vec<(String, StringMatch)> {
    let Some(node) = node else { return Vec::new() };
    let Value::Map(pairs) = &node.value else {
        report.error(node.offset, format!("expected a mapping of keys to matches; found {}", node.kind()));
        return Vec::new();
    };
    let read = |(key, value): &(Node, Node), report: &mut Report<'_>| {
        Some((key.as_scalar()?.to_owned(), StringMatch::read(value, dialect, report)?))
    };
    pairs.iter().filter_map(|pair| read(pair, report)).collect()
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// The method's name, its number of arguments, their types and values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MethodMatch {
    /// The name.
    pub name: Option<StringMatch>,
    /// The number of arguments.
    pub argc: Option<i32>,
    /// The parameters' type names, all of them, each by its full or its simple name.
    pub argp: Vec<StringMatch>,
    /// Values of single arguments.
    pub args: Vec<ArgumentMatch>,
    /// Java's errors are answers (of the Java dialects).
    pub faults: bool,
}

/// One argument's value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArgumentMatch {
    /// From 0.
    pub index: i32,
    /// For texts: one of these.
    pub strings: Option<Vec<StringMatch>>,
    /// For numbers and texts that are numbers: one of these.
    pub numbers: Option<Vec<DoubleMatch>>,
    /// For booleans.
    pub boolean: Option<BoolMatch>,
}

impl MethodMatch {
    /// Reads the mapping.
    pub fn read(node: &Node, dialect: Dialect, report: &mut Report<'_>) -> Option<MethodMatch> {
        let known: &[&[&str]] = &[&["name_match", "argc", "argp", "args", "headers"]];
        let fields = Fields::of(node, "a method match", known, dialect, report)?;
        let name = match fields.get("name_match") {
            Some(node) => Some(StringMatch::read(node, dialect, report)?),
            None => None,
        };
        let argp = items(fields.get("argp"), "argp", report);
        let argp = argp.iter().filter_map(|node| StringMatch::read(node, dialect, report)).collect();
        let args = items(fields.get("args"), "args", report);
        let args = args.iter().filter_map(|node| ArgumentMatch::read(node, dialect, report)).collect();
        let argc = fields.number("argc", report);
        Some(MethodMatch { name, argc, argp, args, faults: dialect.table().mesh_faults })
    }

    /// Whether a call fits.
    pub fn matches(&self, call: &Invocation<'_>) -> Result<bool, Fault> {
        if let Some(name) = &self.name
            && !name.matches(Some(&text(call.effective_method())))
        {
            return Ok(false);
        }
        if let Some(argc) = self.argc
            && usize::try_from(argc) != Ok(call.arguments.len())
        {
            return Ok(false);
        }
        if !self.argp.is_empty() {
            let fits = |(matcher, name): (&StringMatch, &&[u8])| {
                let full = text(name);
                let simple = full.rsplit(['.', '$']).next().unwrap_or_default();
                matcher.matches(Some(&full)) || matcher.matches(Some(simple))
            };
            if self.argp.len() != call.types.len() || !self.argp.iter().zip(call.types).all(fits) {
                return Ok(false);
            }
        }
        for argument in &self.args {
            match argument.matches(call) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(fault) if self.faults => return Err(fault),
                Err(_) => return Ok(false),
            }
        }
        Ok(true)
    }
}

/// What an argument is, by its declared type; without one a text can be anything it reads as.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Bool,
    Other,
    Unknown,
}

fn kind_of(name: Option<&&[u8]>) -> Kind {
    match name {
        None => Kind::Unknown,
        Some(&(b"java.lang.String" | b"Ljava/lang/String;" | b"String" | b"string" | b"str")) => Kind::Text,
        Some(&(b"boolean" | b"Z" | b"java.lang.Boolean" | b"Ljava/lang/Boolean;" | b"bool")) => Kind::Bool,
        Some(_) => Kind::Other,
    }
}

impl ArgumentMatch {
    fn read(node: &Node, dialect: Dialect, report: &mut Report<'_>) -> Option<ArgumentMatch> {
        let known: &[&[&str]] = &[&["index", "type", "str_value", "num_value", "bool_value"]];
        let fields = Fields::of(node, "an argument match", known, dialect, report)?;
        let list = |name: &str, report: &mut Report<'_>| -> Option<Option<Vec<Node>>> {
            let Some(node) = fields.get(name) else { return Some(None) };
            let inner = Fields::of(node, "a list of matches", &[&["oneof"]], dialect, report)?;
            Some(Some(items(inner.get("oneof"), "oneof", report).to_vec()))
        };
        let strings = list("str_value", report)?;
        let numbers = list("num_value", report)?;
        let boolean = match fields.get("bool_value") {
            Some(node) => Some(BoolMatch::read(node, dialect, report)?),
            None => None,
        };
        if strings.is_none() && numbers.is_none() && boolean.is_none() {
            report.warning(node.offset, "an argument match without a value never matches");
        }
        Some(ArgumentMatch {
            index: fields.number("index", report).unwrap_or(0),
            strings: strings
                .map(|list| list.iter().filter_map(|n| StringMatch::read(n, dialect, report)).collect()),
            numbers: numbers
                .map(|list| list.iter().filter_map(|n| DoubleMatch::read(n, dialect, report)).collect()),
            boolean,
        })
    }

    fn matches(&self, call: &Invocation<'_>) -> Result<bool, Fault> {
        let index = usize::try_from(self.index).unwrap_or(usize::MAX);
        let Some(value) = call.arguments.get(index) else {
            return Err(Fault("IndexOutOfBoundsException: DubboMethodArg index >= parameters.length"));
        };
        let kind = kind_of(call.types.get(index));
        let value = value.map(text);
        if let Some(strings) = &self.strings {
            return Ok(match &value {
                Some(value) if matches!(kind, Kind::Text | Kind::Unknown) => {
                    one_of(strings, &**value, |matcher, value| matcher.matches(Some(value)))
                }
                _ => false,
            });
        }
        if let Some(boolean) = &self.boolean {
            let value = value.filter(|_| matches!(kind, Kind::Bool | Kind::Unknown));
            return Ok(match value.as_deref() {
                Some("true") => boolean.matches(true),
                Some("false") => boolean.matches(false),
                _ => false,
            });
        }
        let Some(numbers) = &self.numbers else { return Ok(false) };
        let Some(value) = value else { return Err(Fault("NullPointerException")) };
        let Ok(number) = value.trim().parse::<f64>() else { return Err(Fault("NumberFormatException")) };
        for matcher in numbers {
            if matcher.matches(Some(number))? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
