//! The YAML form of overrides.

use super::{AddressMatch, Configurator, Match, Side};
use crate::error::Result;
use crate::rules::dialect::Dialect;
use crate::rules::ip::IpPattern;
use crate::rules::report::Report;
use crate::rules::string_match::StringMatch;
use crate::rules::yaml::{self, Meaning, Node, Value};

/// Overrides one text may hold; addresses times applications of each item count.
const MAX_ITEMS: usize = 10_000;

/// Reads a text. A text without content, or switched off, is no override.
///
/// # Errors
/// `E_RULE` or `E_SYNTAX` with line and column, all problems as its causes.
pub fn read(text: &str) -> Result<Vec<Configurator>> {
    let mut report = Report::new(text);
    let mut list = Vec::new();
    if let Some(node) = yaml::read(text, &mut report) {
        match &node.value {
            // The form that config centres without YAML used: a JSON list of override URLs.
            Value::List(items) => {
                for item in items {
                    match item.as_scalar().map(crate::chain::url::Url::parse) {
                        Some(Ok(url)) => list.push(Configurator::from_url(&url)),
                        Some(Err(error)) => report.error(item.offset, error.message()),
                        None => report.error(item.offset, "expected the URL of an override"),
                    }
                }
            }
            Value::Map(pairs) => document(pairs, &node, &mut list, &mut report),
            _ => report.error(node.offset, format!("overrides must be a mapping; found {}", node.kind())),
        }
    }
    match report.to_error() {
        Some(error) => Err(error),
        None => Ok(list),
    }
}

type Pairs = [(Node, Node)];

fn get<'n>(pairs: &'n Pairs, name: &str) -> Option<&'n Node> {
    let (_, node) = pairs.iter().rev().find(|(key, _)| key.as_scalar() == Some(name))?;
    (node.value != Value::Null).then_some(node)
}

fn warn_unknown(pairs: &Pairs, known: &[&str], what: &str, report: &mut Report<'_>) {
    for (key, _) in pairs {
        let name = key.as_scalar().unwrap_or_default();
        if !known.contains(&name) {
            report.warning(key.offset, format!("'{name}' means nothing in {what}"));
        }
    }
}

fn scalar<'n>(pairs: &'n Pairs, name: &str, report: &mut Report<'_>) -> Option<&'n str> {
    let node = get(pairs, name)?;
    let text = node.as_scalar();
    if text.is_none() {
        report.error(node.offset, format!("'{name}' must be text; found {}", node.kind()));
    }
    text
}

fn flag(pairs: &Pairs, name: &str, report: &mut Report<'_>) -> Option<bool> {
    let node = get(pairs, name)?;
    match &node.value {
        Value::Scalar(_, Meaning::Bool(value)) => Some(*value),
        Value::Scalar(text, _) if text.eq_ignore_ascii_case("true") => Some(true),
        Value::Scalar(text, _) if text.eq_ignore_ascii_case("false") => Some(false),
        _ => {
            report.error(node.offset, format!("'{name}' must be true or false; found {}", node.kind()));
            None
        }
    }
}

fn words(pairs: &Pairs, name: &str, report: &mut Report<'_>) -> Vec<String> {
    let Some(node) = get(pairs, name) else { return Vec::new() };
    let items = match &node.value {
        Value::List(items) => items.iter().collect(),
        _ => vec![node],
    };
    let mut list = Vec::with_capacity(items.len());
    for item in items {
        match item.as_scalar() {
            Some(text) => list.push(text.trim().to_owned()),
            None => report.error(item.offset, format!("'{name}' holds texts; found {}", item.kind())),
        }
    }
    list
}

fn document(pairs: &Pairs, node: &Node, list: &mut Vec<Configurator>, report: &mut Report<'_>) {
    warn_unknown(pairs, &["configVersion", "scope", "key", "enabled", "configs"], "overrides", report);
    let scope = scalar(pairs, "scope", report);
    let of_application = match scope {
        Some("application") => true,
        Some("service") | None => false,
        Some(_) => {
            let at = get(pairs, "scope").map_or(node.offset, |node| node.offset);
            report.error(at, "'scope' must be service or application");
            return;
        }
    };
    let enabled = flag(pairs, "enabled", report).unwrap_or(true);
    let configs = match get(pairs, "configs") {
        Some(Node { value: Value::List(items), .. }) => items,
        Some(other) => {
            report.error(other.offset, format!("'configs' must be a list; found {}", other.kind()));
            return;
        }
        None => {
            report.warning(node.offset, "'configs' is missing: nothing is overridden");
            return;
        }
    };
    for item in configs {
        let Value::Map(pairs) = &item.value else {
            report.error(item.offset, format!("an override must be a mapping; found {}", item.kind()));
            continue;
        };
        one(pairs, item, of_application, enabled, list, report);
        if list.len() > MAX_ITEMS {
            report.error(item.offset, format!("more than {MAX_ITEMS} overrides"));
            return;
        }
    }
}

fn one(
    pairs: &Pairs,
    item: &Node,
    of_application: bool,
    enabled: bool,
    list: &mut Vec<Configurator>,
    report: &mut Report<'_>,
) {
    const KNOWN: [&str; 9] = [
        "addresses",
        "providerAddresses",
        "applications",
        "services",
        "side",
        "parameters",
        "enabled",
        "type",
        "match",
    ];
    warn_unknown(pairs, &KNOWN, "an override", report);
    let side = match scalar(pairs, "side", report) {
        Some("consumer") => Some(Side::Consumer),
        Some("provider") => Some(Side::Provider),
        Some(_) => {
            let at = get(pairs, "side").map_or(item.offset, |node| node.offset);
            report.error(at, "'side' must be consumer or provider");
            None
        }
        None => {
            report.warning(item.offset, "without 'side' it applies to nobody");
            None
        }
    };
    // `general` follows the switch of the whole text, every other type its own.
    let general = matches!(scalar(pairs, "type", report), None | Some("general"));
    let own = flag(pairs, "enabled", report);
    let parameters = parameters(pairs, item, report);
    let matching = get(pairs, "match").map(|node| matching(node, report));
    let addresses = words(pairs, "addresses", report);
    let any = vec![super::ANY_HOST.to_owned()];
    let template = Configurator {
        host: String::new(),
        port: 0,
        priority: 0,
        enabled: if general { enabled && own.unwrap_or(true) } else { own.unwrap_or(true) },
        modern: true,
        side,
        absent: false,
        applications: words(pairs, "applications", report),
        services: if of_application { words(pairs, "services", report) } else { Vec::new() },
        providers: words(pairs, "providerAddresses", report),
        wanted: Vec::new(),
        matching,
        parameters,
    };
    for address in if addresses.is_empty() { any } else { addresses } {
        let (host, port) = crate::rules::ip::split_address(&address);
        let host = if host == "*" { super::ANY_HOST } else { host };
        list.push(Configurator { host: host.to_owned(), port, ..template.clone() });
    }
}

fn parameters(pairs: &Pairs, item: &Node, report: &mut Report<'_>) -> Vec<(String, String)> {
    let Some(node) = get(pairs, "parameters") else {
        report.error(item.offset, "an override needs 'parameters'");
        return Vec::new();
    };
    let Value::Map(entries) = &node.value else {
        report.error(node.offset, format!("'parameters' must be a mapping; found {}", node.kind()));
        return Vec::new();
    };
    if entries.is_empty() {
        report.error(node.offset, "'parameters' is empty");
    }
    let mut list = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        match (key.as_scalar(), value.as_scalar()) {
            (Some(key_text), Some(text)) => {
                if key_text.is_empty() || key_text.contains(['=', '&', ';', '?', '#']) {
                    report.error(key.offset, "not the name of a parameter");
                } else if text.contains(['&', ';']) {
                    report.error(value.offset, "the value of a parameter has no '&' or ';'");
                } else {
                    list.push((key_text.to_owned(), text.to_owned()));
                }
            }
            _ => report.error(value.offset, format!("a parameter is text; found {}", value.kind())),
        }
    }
    list
}

fn matching(node: &Node, report: &mut Report<'_>) -> Match {
    let Value::Map(pairs) = &node.value else {
        report.error(node.offset, format!("'match' must be a mapping; found {}", node.kind()));
        return Match::default();
    };
    warn_unknown(pairs, &["address", "providerAddress", "service", "app", "param"], "'match'", report);
    let mut parameters = Vec::new();
    if let Some(node) = get(pairs, "param") {
        match &node.value {
            Value::List(items) => parameters.extend(items.iter().filter_map(|item| parameter(item, report))),
            _ => report.error(node.offset, format!("'param' must be a list; found {}", node.kind())),
        }
    }
    Match {
        address: get(pairs, "address").map(|node| address(node, report)),
        provider_address: get(pairs, "providerAddress").map(|node| address(node, report)),
        service: get(pairs, "service").map(|node| one_of(node, report)),
        application: get(pairs, "app").map(|node| one_of(node, report)),
        parameters,
    }
}

fn parameter(item: &Node, report: &mut Report<'_>) -> Option<(String, StringMatch)> {
    let Value::Map(pairs) = &item.value else {
        report.error(item.offset, format!("a parameter match must be a mapping; found {}", item.kind()));
        return None;
    };
    let key = scalar(pairs, "key", report);
    let value = get(pairs, "value").and_then(|node| StringMatch::read(node, Dialect::Byway, report));
    match (key, value) {
        (Some(key), Some(value)) => Some((key.to_owned(), value)),
        _ => {
            report.error(item.offset, "a parameter match needs 'key' and 'value'");
            None
        }
    }
}

fn one_of(node: &Node, report: &mut Report<'_>) -> Vec<StringMatch> {
    let items = match &node.value {
        Value::Map(pairs) => get(pairs, "oneof"),
        _ => None,
    };
    let Some(Node { value: Value::List(items), .. }) = items else {
        report.error(node.offset, "expected 'oneof' with a list of string matches");
        return Vec::new();
    };
    items.iter().filter_map(|item| StringMatch::read(item, Dialect::Byway, report)).collect()
}

fn address(node: &Node, report: &mut Report<'_>) -> AddressMatch {
    let Value::Map(pairs) = &node.value else {
        report.error(node.offset, format!("an address match must be a mapping; found {}", node.kind()));
        return AddressMatch::default();
    };
    warn_unknown(pairs, &["wildcard", "cird", "cidr", "exact"], "an address match", report);
    let mut pattern = |name: &str| {
        let text = scalar(pairs, name, report)?;
        match IpPattern::parse(text) {
            Ok(pattern) => Some(pattern),
            Err(message) => {
                let at = get(pairs, name).map_or(node.offset, |node| node.offset);
                report.error(at, message);
                None
            }
        }
    };
    let wildcard = pattern("wildcard");
    // Upstream's spelling, and the right one.
    let network = pattern("cird").or_else(|| pattern("cidr"));
    AddressMatch { wildcard, network, exact: scalar(pairs, "exact", report).map(str::to_owned) }
}

#[cfg(test)]
mod tests {
    use crate::chain::url::Url;
    use crate::error::Status;
    use crate::source::configurator::{Configurators, configure};

    #[test]
    fn a_match_narrows_it() {
        let consumer = Url::parse("consumer://10.1.2.3/com.foo.Bar?application=shop").unwrap();
        let applies = |lines: &str| {
            let text = format!(
                "configVersion: v3.0\nscope: service\nkey: com.foo.Bar\nconfigs:\n- side: consumer\n  \
                 parameters: {{timeout: 9}}\n{lines}"
            );
            let one = Configurators::from_text(&text).unwrap_or_else(|error| panic!("{error:?}"));
            let mut out = String::new();
            configure(&[&one], "tri://10.0.0.1:50051/com.foo.Bar?env=a", &consumer, &mut out).unwrap()
        };
        let table = [
            ("", true),
            ("  enabled: false\n", false),
            ("  match:\n    address: {wildcard: 10.1.2.*}\n", true),
            ("  match:\n    address: {cird: 10.2.0.0/16}\n", false),
            ("  match:\n    providerAddress: {exact: '10.0.0.1:50051'}\n", true),
            ("  match:\n    app: {oneof: [{exact: other}, {prefix: sh}]}\n", true),
            ("  match:\n    app: {oneof: [{exact: other}]}\n", false),
            ("  match:\n    service: {oneof: [{exact: com.foo.Bar}]}\n", true),
            ("  match:\n    param: [{key: env, value: {exact: a}}]\n", true),
            ("  match:\n    param: [{key: env, value: {exact: b}}]\n", false),
            ("  addresses: [10.1.2.3]\n", true),
            ("  addresses: [10.1.2.4]\n", false),
            ("  providerAddresses: ['10.0.0.1:50051']\n", true),
            ("  providerAddresses: ['10.0.0.2:50051']\n", false),
        ];
        for (lines, expect) in table {
            assert_eq!(applies(lines), expect, "{lines}");
        }
    }

    #[test]
    fn bad_texts_name_the_place() {
        let table = [
            ("configs: 5", "must be a list"),
            ("configs:\n- {side: consumer}", "needs 'parameters'"),
            ("configs:\n- {side: nobody, parameters: {a: b}}", "consumer or provider"),
            ("configs:\n- {side: consumer, parameters: {a: [1]}}", "a parameter is text"),
            ("scope: everything\nconfigs: []", "service or application"),
            ("[[[", "not YAML"),
        ];
        for (text, words) in table {
            let error = Configurators::from_text(text).unwrap_err();
            let status = if text == "[[[" { Status::E_SYNTAX } else { Status::E_RULE };
            assert_eq!(error.status(), status, "{text}");
            assert!(error.position().is_some() && error.message().contains(words), "{text}: {error}");
        }
        assert!(Configurators::from_text("").unwrap().is_empty());
    }
}
