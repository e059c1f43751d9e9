//! What a registry says about a service: entries sorted into categories, and which providers a consumer may use.
//!
//! Follows Dubbo's `RegistryDirectory.notify` and `UrlUtils.isMatch`. Entries come from a network: what does not
//! parse is left out and told, it never spoils the rest.

use crate::chain::url::{Parts, Url};
use crate::error::{Error, Source, Status};
use std::borrow::Cow;

/// What an entry is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// A provider; the default.
    Providers,
    /// A static router.
    Routers,
    /// An override.
    Configurators,
}

impl Category {
    /// Dubbo's word.
    pub fn name(self) -> &'static str {
        match self {
            Category::Providers => "providers",
            Category::Routers => "routers",
            Category::Configurators => "configurators",
        }
    }
}

/// Where an entry belongs; `None`: nowhere, by its own word (another category, or `compatible_config`).
///
/// # Errors
/// `E_INVALID_URL`: it does not parse.
pub fn category(text: &str) -> Result<Option<Category>, Error> {
    let parts = Parts::parse(text)?;
    if last(&parts, "compatible_config").is_some_and(|value| !value.is_empty()) {
        return Ok(None);
    }
    let named = last(&parts, "category").filter(|value| !value.is_empty());
    Ok(match (parts.protocol, named) {
        ("override", _) => Some(Category::Configurators),
        ("route", _) => Some(Category::Routers),
        (_, None | Some("providers")) => Some(Category::Providers),
        (_, Some("routers")) => Some(Category::Routers),
        (_, Some("configurators" | "dynamicconfigurators" | "appdynamicconfigurators")) => {
            Some(Category::Configurators)
        }
        (_, Some(_)) => None,
    })
}

/// What a list of entries of one category says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said<T> {
    /// Nothing: no entry at all. What was known stays.
    Nothing,
    /// That there is none: `empty://` and nothing else.
    None,
    /// These.
    These(T),
}

/// A notification as a registry sends it: entries of several categories, each sorted into its own.
#[derive(Clone, Debug)]
pub struct Notification<'a> {
    /// Providers. [`Said::None`] forbids the service.
    pub providers: Said<Vec<&'a str>>,
    /// Static routers.
    pub routers: Said<Vec<&'a str>>,
    /// Overrides.
    pub configurators: Said<Vec<&'a str>>,
    /// Entries left out, with the reason.
    pub refused: Vec<Error>,
}

impl<'a> Notification<'a> {
    /// Sorts entries. Repeated ones count once, in the place of the first.
    pub fn read(entries: impl IntoIterator<Item = &'a str>) -> Notification<'a> {
        let mut lists: [(Vec<&str>, bool); 3] = Default::default();
        let mut seen = std::collections::HashSet::new();
        let mut refused = Vec::new();
        for entry in entries {
            if !seen.insert(entry) {
                continue;
            }
            let at = match category(entry) {
                Ok(Some(Category::Providers)) => 0,
                Ok(Some(Category::Routers)) => 1,
                Ok(Some(Category::Configurators)) => 2,
                Ok(None) => continue,
                Err(error) => {
                    refused.push(refusal(entry, error));
                    continue;
                }
            };
            let Some((list, empty)) = lists.get_mut(at) else { continue };
            if entry.starts_with("empty:") {
                *empty = true;
            } else {
                list.push(entry);
            }
        }
        let [providers, routers, configurators] = lists.map(|(list, empty)| match (list.is_empty(), empty) {
            (false, _) => Said::These(list),
            (true, true) => Said::None,
            (true, false) => Said::Nothing,
        });
        Notification { providers, routers, configurators, refused }
    }
}

/// An entry that cannot be used, named by its beginning; credentials in it are not shown.
pub(super) fn refusal(entry: &str, cause: Error) -> Error {
    let shown: String = entry.chars().take(80).collect();
    let shown = match shown.split_once('@') {
        Some((_, tail)) => format!("…@{tail}"),
        None => shown,
    };
    Error::new(Status::E_SOURCE, format!("an entry is left out: {}", cause.message()))
        .subject(shown.escape_debug().to_string())
        .source(Source::Parser)
        .cause(cause)
}

fn last<'a>(parts: &Parts<'a>, wanted: &str) -> Option<&'a str> {
    if !parts.query.contains(wanted) {
        return None;
    }
    parts.parameters().filter(|(key, _)| *key == wanted).map(|(_, value)| value).last()
}

/// Decides which providers a consumer may use: interface, group, version, classifier, protocol, `enabled`.
#[derive(Clone, Debug)]
pub struct Matcher {
    interface: String,
    groups: Wanted,
    version: Wanted,
    classifier: Wanted,
    protocols: Vec<String>,
}

#[derive(Clone, Debug)]
enum Wanted {
    Any,
    /// One of these; the empty text is "none given".
    Of(Vec<String>),
}

impl Wanted {
    fn takes(&self, value: &str) -> bool {
        match self {
            Wanted::Any => true,
            Wanted::Of(list) => list.iter().any(|one| one == value),
        }
    }
}

impl Matcher {
    /// For a consumer URL: parameters `interface` (else the path), `group` (`*`, or several with commas), `version`
    /// (`*`), `classifier`, `protocol` (several with commas).
    pub fn new(consumer: &Url) -> Matcher {
        let given = |name: &str| consumer.given(name);
        let words = |text: &str| -> Vec<String> {
            text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
        };
        Matcher {
            interface: consumer.interface().to_owned(),
            groups: match given("group") {
                Some("*") => Wanted::Any,
                Some(text) => Wanted::Of(words(text)),
                None => Wanted::Of(vec![String::new()]),
            },
            version: match given("version") {
                Some("*") => Wanted::Any,
                // Dubbo's two words for "no version".
                None | Some("0.0.0") => Wanted::Of(vec![String::new(), "0.0.0".to_owned()]),
                Some(text) => Wanted::Of(vec![text.to_owned()]),
            },
            classifier: match given("classifier") {
                None | Some("*") => Wanted::Any,
                Some(text) => Wanted::Of(vec![text.to_owned()]),
            },
            protocols: given("protocol").map(words).unwrap_or_default(),
        }
    }

    /// The interface.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Whether the consumer may use this provider.
    pub fn takes(&self, provider: &Parts<'_>) -> bool {
        let (mut interface, mut group, mut version, mut classifier, mut enabled) = ("", "", "", "", "");
        for (key, value) in provider.parameters() {
            match key {
                "interface" => interface = value,
                "group" => group = value,
                "version" => version = value,
                "classifier" => classifier = value,
                "enabled" => enabled = value,
                _ => {}
            }
        }
        let interface = if interface.is_empty() { provider.path } else { interface };
        // Paths may carry a context in front of the interface.
        let same = interface == self.interface || self.interface == "*";
        same && !enabled.eq_ignore_ascii_case("false")
            && self.groups.takes(group)
            && self.version.takes(version)
            && self.classifier.takes(classifier)
            && (self.protocols.is_empty() || self.protocols.iter().any(|one| one == provider.protocol))
    }
}

/// Decodes the name of a node under `providers` and its siblings: Dubbo encodes whole URLs as form values. Names that
/// are not encoded are taken as they are.
///
/// # Errors
/// `E_SYNTAX` with the place: a `%` without two digits; `E_UTF8`: not UTF-8 when decoded.
pub fn decode(name: &str) -> Result<Cow<'_, str>, Error> {
    // An encoded URL has no slash; one that was written plainly keeps its own signs.
    if name.contains("://") || !name.contains(['%', '+']) {
        return Ok(Cow::Borrowed(name));
    }
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digit = |at: usize| tail.get(at).and_then(|byte| char::from(*byte).to_digit(16));
                let (Some(high), Some(low)) = (digit(0), digit(1)) else {
                    let offset = name.len() - tail.len() - 1;
                    return Err(Error::new(Status::E_SYNTAX, "a % without two hexadecimal digits behind it")
                        .at(crate::error::Position::in_text(name, offset))
                        .source(Source::Parser));
                };
                bytes.push((high * 16 + low) as u8);
                rest = tail.get(2..).unwrap_or_default();
            }
            byte => bytes.push(byte),
        }
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Cow::Owned(text)),
        Err(_) => Err(Error::new(Status::E_UTF8, "the decoded text is not UTF-8").source(Source::Parser)),
    }
}

/// Encodes a text as Dubbo names nodes (`java.net.URLEncoder`).
pub fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len() + text.len() / 4);
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'*' => encoded.push(byte as char),
            b' ' => encoded.push('+'),
            _ => {
                const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
                encoded.push('%');
                for nibble in [byte >> 4, byte & 15] {
                    encoded.push(DIGITS.get(usize::from(nibble)).copied().map_or('0', char::from));
                }
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_decode_as_dubbo_encodes_them() {
        let url = "dubbo://10.0.0.1:20880/com.foo.Bar?a=b c&methods=x,y&ümlaut=ö&plus=1+1";
        assert_eq!(decode(&encode(url)).unwrap(), url);
        assert_eq!(decode("dubbo://h:1/S?a=%20").unwrap(), "dubbo://h:1/S?a=%20", "not encoded");
        assert_eq!(decode("a%2").unwrap_err().position().unwrap().offset, 1);
        assert_eq!(decode("a%zz").unwrap_err().status(), Status::E_SYNTAX);
        assert_eq!(decode("%ff").unwrap_err().status(), Status::E_UTF8);
    }

    #[test]
    fn a_consumer_takes_its_own_service_only() {
        let takes = |consumer: &str, provider: &str| {
            let consumer = Url::parse(&format!("consumer://1.1.1.1/com.foo.Bar?{consumer}")).unwrap();
            Matcher::new(&consumer).takes(&Parts::parse(provider).unwrap())
        };
        let table = [
            ("", "dubbo://h:1/com.foo.Bar", true),
            ("", "dubbo://h:1/com.foo.Other", false),
            ("", "dubbo://h:1/x?interface=com.foo.Bar", true),
            ("", "dubbo://h:1/com.foo.Bar?group=g", false),
            ("", "dubbo://h:1/com.foo.Bar?version=0.0.0", true),
            ("", "dubbo://h:1/com.foo.Bar?version=1.0.0", false),
            ("version=1.0.0", "dubbo://h:1/com.foo.Bar?version=1.0.0", true),
            ("version=*", "dubbo://h:1/com.foo.Bar?version=1.0.0", true),
            ("group=a,b", "dubbo://h:1/com.foo.Bar?group=b", true),
            ("group=a,b", "dubbo://h:1/com.foo.Bar", false),
            ("group=*", "dubbo://h:1/com.foo.Bar?group=z", true),
            ("protocol=tri,rest", "dubbo://h:1/com.foo.Bar", false),
            ("protocol=tri,rest", "tri://h:1/com.foo.Bar", true),
            ("", "dubbo://h:1/com.foo.Bar?enabled=false", false),
            ("classifier=c", "dubbo://h:1/com.foo.Bar?classifier=d", false),
            ("interface=com.foo.Other", "dubbo://h:1/com.foo.Other", true),
        ];
        for (consumer, provider, expect) in table {
            assert_eq!(takes(consumer, provider), expect, "{consumer} {provider}");
        }
    }

    #[test]
    fn garbage_and_repetitions_spoil_nothing() {
        let entries = [
            "dubbo://h:1/S",
            "dubbo://h:1/S",
            "dubbo://u:secret@h:port/S",
            "\u{1}\u{2}",
            "://",
            "",
            "dubbo://h:2/S?category=consumers",
            "override://0.0.0.0/S?weight=1",
            "empty://0.0.0.0/S?category=routers",
        ];
        let notification = Notification::read(entries);
        assert_eq!(notification.providers, Said::These(vec!["dubbo://h:1/S", "\u{1}\u{2}"]));
        assert_eq!(notification.routers, Said::None);
        assert_eq!(notification.configurators, Said::These(vec!["override://0.0.0.0/S?weight=1"]));
        assert_eq!(notification.refused.len(), 3);
        assert!(notification.refused.iter().all(|error| !error.to_string().contains("secret")));
    }
}
