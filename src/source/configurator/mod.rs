//! Overrides: parameters laid over provider URLs before routing, such as a weight, `disabled`, a mock or a timeout.
//!
//! Two forms, one meaning. The old one is a URL under `<interface>/configurators`
//! (`override://10.0.0.1:20880/S?weight=50`, `absent://…` for "only where missing"). The new one is a YAML text of the
//! config centre under `<application>.configurators` and `<service key>.configurators` (`text.rs`), v2.7 by address and
//! side, v3.0 with a `match`. Upstream: `AbstractConfigurator`, `ConfigParser`. Only what acts on the consumer's side is
//! applied here; providers apply theirs themselves and register the result.

mod text;

pub use text::read;

use super::merge::write_head;
use crate::chain::url::{Parts, Url};
use crate::error::Result;
use crate::rules::ip::IpPattern;
use crate::rules::string_match::StringMatch;
use std::borrow::Cow;

/// Any host.
const ANY_HOST: &str = "0.0.0.0";

/// Names in an override that say when it applies, not what it changes.
const CONDITIONS: [&str; 12] = [
    "category",
    "check",
    "dynamic",
    "enabled",
    "group",
    "version",
    "application",
    "side",
    "configVersion",
    "compatible_config",
    "providerAddresses",
    "anyhost",
];

/// Which side an override is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Consumers.
    Consumer,
    /// Providers.
    Provider,
}

/// One override.
#[derive(Clone, Debug)]
pub struct Configurator {
    host: String,
    port: u16,
    priority: i32,
    enabled: bool,
    /// Given by a text with `configVersion`: the side decides. Otherwise the port does.
    modern: bool,
    side: Option<Side>,
    /// Only where the parameter is missing.
    absent: bool,
    applications: Vec<String>,
    /// `*`, or the interfaces it is for; empty: it stands under its service.
    services: Vec<String>,
    providers: Vec<String>,
    /// `~key=value`: only for URLs with this value.
    wanted: Vec<(String, String)>,
    matching: Option<Match>,
    parameters: Vec<(String, String)>,
}

/// The `match` of a v3.0 override; what is not given matches.
#[derive(Clone, Debug, Default)]
struct Match {
    /// The consumer's own address.
    address: Option<AddressMatch>,
    provider_address: Option<AddressMatch>,
    service: Option<Vec<StringMatch>>,
    application: Option<Vec<StringMatch>>,
    parameters: Vec<(String, StringMatch)>,
}

/// An address by pattern, network or text.
#[derive(Clone, Debug, Default)]
struct AddressMatch {
    wildcard: Option<IpPattern>,
    network: Option<IpPattern>,
    exact: Option<String>,
}

impl AddressMatch {
    fn matches(&self, address: &str) -> bool {
        if let Some(network) = &self.network {
            return network.matches_address(address);
        }
        if let Some(wildcard) = &self.wildcard {
            return wildcard.any_host() || wildcard.matches_address(address);
        }
        self.exact.as_deref() == Some(address)
    }
}

/// Overrides in the order they apply.
#[derive(Clone, Debug, Default)]
pub struct Configurators {
    list: Vec<Configurator>,
}

/// A provider URL whose parameters can be changed.
struct Draft<'a> {
    parts: Parts<'a>,
    parameters: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl Configurators {
    /// From the URLs of a service. An override without parameters clears what stands in front of it, as upstream;
    /// hosts sort in front of priorities, so that one for a host comes after one for all.
    ///
    /// # Errors
    /// Of each URL that does not parse; the others count.
    pub fn from_urls<'a>(
        urls: impl IntoIterator<Item = &'a str>,
    ) -> (Configurators, Vec<crate::error::Error>) {
        let mut list = Vec::new();
        let mut refused = Vec::new();
        for text in urls {
            match Url::parse(text) {
                Ok(url) if url.protocol() == "empty" => list.clear(),
                Ok(url) => {
                    let one = Configurator::from_url(&url);
                    if url.parameters().all(|(key, _)| key == "anyhost" || key == "category") {
                        list.clear();
                    } else {
                        list.push(one);
                    }
                }
                Err(error) => refused.push(super::providers::refusal(text, error)),
            }
        }
        (Configurators::sorted(list), refused)
    }

    /// From the text of a config centre key.
    ///
    /// # Errors
    /// `E_RULE` with line and column; the text is refused as a whole.
    pub fn from_text(text: &str) -> Result<Configurators> {
        Ok(Configurators::sorted(read(text)?))
    }

    fn sorted(mut list: Vec<Configurator>) -> Configurators {
        list.sort_by(|a, b| (&a.host, a.priority).cmp(&(&b.host, b.priority)));
        Configurators { list }
    }

    /// True when there is nothing to apply.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// Lays groups of overrides over a merged provider URL, group by group, and writes the result into `out`. `false`:
/// nothing applied, `out` is empty.
pub fn configure(groups: &[&Configurators], merged: &str, consumer: &Url, out: &mut String) -> Result<bool> {
    out.clear();
    if groups.iter().all(|group| group.is_empty()) {
        return Ok(false);
    }
    let parts = Parts::parse(merged)?;
    let parameters = parts.parameters().map(|(key, value)| (Cow::Borrowed(key), Cow::Borrowed(value)));
    let mut draft = Draft { parts, parameters: parameters.collect() };
    let mut applied = false;
    for one in groups.iter().flat_map(|group| &group.list) {
        applied |= one.apply(&mut draft, consumer);
    }
    if applied {
        write_head(&draft.parts, out);
        let mut sign = '?';
        for (key, value) in &draft.parameters {
            out.push(sign);
            sign = '&';
            out.push_str(key);
            out.push('=');
            out.push_str(value);
        }
    }
    Ok(applied)
}

impl Draft<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.parameters.iter().rev().find(|(own, _)| own == key).map(|(_, value)| &**value)
    }

    fn set(&mut self, key: &str, value: &str) {
        self.parameters.retain(|(own, _)| own != key);
        self.parameters.push((Cow::Owned(key.to_owned()), Cow::Owned(value.to_owned())));
    }

    fn port(&self) -> u16 {
        self.parts.port.parse().unwrap_or(0)
    }

    fn address(&self) -> String {
        match self.parts.port {
            "" => self.parts.host.to_owned(),
            port => format!("{}:{port}", self.parts.host),
        }
    }

    fn interface(&self) -> &str {
        self.get("interface").filter(|name| !name.is_empty()).unwrap_or(self.parts.path)
    }
}

impl Configurator {
    /// From one `override://` or `absent://` URL.
    pub fn from_url(url: &Url) -> Configurator {
        let given = |name: &str| url.given(name);
        let list = |name: &str| -> Vec<String> {
            given(name)
                .map(|text| text.split(',').map(|word| word.trim().to_owned()).collect())
                .unwrap_or_default()
        };
        let mut wanted = Vec::new();
        let mut parameters = Vec::new();
        for (key, value) in url.parameters() {
            if let Some(plain) = key.strip_prefix('~') {
                wanted.push((plain.to_owned(), value.to_owned()));
            } else if !CONDITIONS.contains(&key) && key != "priority" {
                parameters.push((key.to_owned(), value.to_owned()));
            }
        }
        Configurator {
            host: url.host().to_owned(),
            port: url.port(),
            priority: given("priority").and_then(|text| text.parse().ok()).unwrap_or(0),
            enabled: !given("enabled").is_some_and(|text| text.eq_ignore_ascii_case("false")),
            modern: given("configVersion").is_some(),
            side: match given("side") {
                Some("consumer") => Some(Side::Consumer),
                Some("provider") => Some(Side::Provider),
                _ => None,
            },
            absent: url.protocol() == "absent",
            applications: list("application"),
            services: Vec::new(),
            providers: list("providerAddresses"),
            wanted,
            matching: None,
            parameters,
        }
    }

    fn apply(&self, draft: &mut Draft<'_>, consumer: &Url) -> bool {
        let for_host = |host: &str| self.host == ANY_HOST || self.host == host;
        let applies = self.enabled
            && match (self.modern, self.side) {
                (true, Some(Side::Consumer)) => for_host(consumer.host()),
                (true, _) => false,
                // A port says that a provider is meant; without one the host is the consumer's.
                (false, _) if self.port > 0 => self.port == draft.port() && for_host(draft.parts.host),
                (false, Some(Side::Provider)) => false,
                (false, _) => for_host(consumer.host()),
            }
            && self.is_meant(draft, consumer);
        if !applies {
            return false;
        }
        for (key, value) in &self.parameters {
            if !self.absent || draft.get(key).is_none() {
                draft.set(key, value);
            }
        }
        true
    }

    fn is_meant(&self, draft: &Draft<'_>, consumer: &Url) -> bool {
        let application = consumer.given("application").unwrap_or_default();
        let any = |list: &[String], value: &str| {
            list.is_empty() || list.iter().any(|one| one == "*" || one == value)
        };
        if !any(&self.services, draft.interface()) || !any(&self.applications, application) {
            return false;
        }
        if !self.providers.is_empty() {
            let address = draft.address();
            if !self.providers.iter().any(|one| *one == address || one == ANY_HOST || *one == "*") {
                return false;
            }
        }
        if !self.wanted.iter().all(|(key, value)| value == "*" || draft.get(key) == Some(value)) {
            return false;
        }
        let Some(matching) = &self.matching else { return true };
        let one_of = |list: &Option<Vec<StringMatch>>, value: &str| {
            list.as_ref().is_none_or(|list| list.iter().any(|one| one.matches(Some(value))))
        };
        matching.address.as_ref().is_none_or(|address| address.matches(consumer.host()))
            && matching.provider_address.as_ref().is_none_or(|one| one.matches(&draft.address()))
            && one_of(&matching.service, draft.interface())
            && one_of(&matching.application, application)
            && matching.parameters.iter().all(|(key, wanted)| wanted.matches(draft.get(key)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(texts: &[&str], provider: &str) -> String {
        let consumer = Url::parse("consumer://1.1.1.1/com.foo.Bar?application=shop&side=consumer").unwrap();
        let groups: Vec<Configurators> = texts
            .iter()
            .map(|text| match text.contains("://") && !text.contains('\n') {
                true => Configurators::from_urls(text.split(' ')).0,
                false => Configurators::from_text(text).unwrap(),
            })
            .collect();
        let groups: Vec<&Configurators> = groups.iter().collect();
        let mut out = String::new();
        match configure(&groups, provider, &consumer, &mut out).unwrap() {
            true => out,
            false => provider.to_owned(),
        }
    }

    #[test]
    fn urls_apply_by_port_host_side_and_condition() {
        const P: &str = "dubbo://10.0.0.1:20880/com.foo.Bar?weight=100&a=1";
        let weight = |text: &str| {
            let out = after(&[text], P);
            Url::parse(&out).unwrap().parameter("weight").unwrap_or("none").to_owned()
        };
        let table = [
            ("override://0.0.0.0/com.foo.Bar?weight=5", "5"),
            ("override://10.0.0.1:20880/com.foo.Bar?weight=5", "5"),
            ("override://10.0.0.1:20881/com.foo.Bar?weight=5", "100"),
            ("override://10.0.0.2:20880/com.foo.Bar?weight=5", "100"),
            ("override://0.0.0.0:20880/com.foo.Bar?weight=5", "5"),
            ("override://1.1.1.1/com.foo.Bar?weight=5", "5"),
            ("override://1.1.1.2/com.foo.Bar?weight=5", "100"),
            ("override://0.0.0.0/com.foo.Bar?weight=5&enabled=false", "100"),
            ("override://0.0.0.0/com.foo.Bar?weight=5&application=other", "100"),
            ("override://0.0.0.0/com.foo.Bar?weight=5&application=shop", "5"),
            ("override://0.0.0.0/com.foo.Bar?weight=5&~a=1", "5"),
            ("override://0.0.0.0/com.foo.Bar?weight=5&~a=2", "100"),
            ("override://0.0.0.0/com.foo.Bar?weight=5&providerAddresses=10.0.0.1:20880", "5"),
            ("override://0.0.0.0/com.foo.Bar?weight=5&providerAddresses=10.0.0.9:20880", "100"),
            ("override://0.0.0.0/com.foo.Bar?weight=5&side=provider&configVersion=v2.7", "100"),
            ("override://0.0.0.0/com.foo.Bar?weight=5&side=consumer&configVersion=v2.7", "5"),
            ("absent://0.0.0.0/com.foo.Bar?weight=5", "100"),
            // For one host after for all; a later priority after an earlier one.
            ("override://1.1.1.1/S?weight=6 override://0.0.0.0/S?weight=5", "6"),
            ("override://0.0.0.0/S?weight=6&priority=2 override://0.0.0.0/S?weight=5&priority=1", "6"),
            // One without parameters clears the ones in front of it.
            ("override://0.0.0.0/S?weight=6 override://0.0.0.0/S?anyhost=true", "100"),
            ("override://0.0.0.0/S?weight=6 empty://0.0.0.0/S?category=configurators", "100"),
        ];
        for (text, expect) in table {
            assert_eq!(weight(text), expect, "{text}");
        }
    }

    #[test]
    fn later_groups_win() {
        let out = after(
            &[
                "override://0.0.0.0/com.foo.Bar?weight=1&mock=force:return+null",
                "configVersion: v2.7\nscope: application\nkey: shop\nconfigs:\n- side: consumer\n  parameters: {weight: 2}\n",
                "configVersion: v2.7\nscope: service\nkey: com.foo.Bar\nconfigs:\n- side: consumer\n  parameters: {weight: 3}\n",
            ],
            "dubbo://10.0.0.1:1/com.foo.Bar?x=1",
        );
        assert_eq!(out, "dubbo://10.0.0.1:1/com.foo.Bar?x=1&mock=force:return+null&weight=3");
    }
}
