//! The consumer's parameters over a provider's, as each dialect's consumers merge them.
//!
//! Rules of Dubbo 3.2 and later look at what the provider itself has registered, so only parameters that say how one
//! provider is picked come from the consumer. In 2.7 the consumer's win, except those that describe the provider
//! (`release`, `dubbo`, `methods`, `timestamp`, `dubbo.tag`; `group`, `version` and `generic` when the provider has
//! them), thread pool settings are dropped and `application` becomes `remote.application`
//! (`DefaultProviderURLMergeProcessor`). In Go the provider's win, except those for picking.

use crate::chain::pick::plan;
use crate::chain::url::{Parts, Url};
use crate::rules::dialect::{ConsumerParameters, Dialect};

/// Prepared for one consumer.
#[derive(Clone, Debug)]
pub struct Merge {
    style: ConsumerParameters,
    /// Consumer parameters that may go over a provider's, sorted by key.
    over: Vec<Over>,
}

#[derive(Clone, Debug)]
struct Over {
    key: String,
    value: String,
    /// Also where the provider has one.
    wins: bool,
}

/// Never taken from the consumer.
const PROVIDERS_OWN: [&str; 5] = ["release", "dubbo", "methods", "timestamp", "dubbo.tag"];
/// Taken from the consumer only where the provider has none.
const PROVIDERS_FIRST: [&str; 3] = ["group", "version", "generic"];
/// Never taken from the provider.
const DROPPED: [&str; 7] =
    ["threadname", "threadpool", "corethreads", "threads", "queues", "alive", "transporter"];
/// What the consumer URL has for itself: it says nothing about a provider.
const CONSUMERS_OWN: [&str; 3] = ["category", "router", "rule"];

/// Parameters laid over a merged URL, such as an override's.
pub type Overrides<'a> = [(&'a str, &'a str)];

impl Merge {
    /// For a consumer URL.
    pub fn new(consumer: &Url, dialect: Dialect) -> Merge {
        let style = dialect.table().consumer_parameters;
        let over = consumer
            .parameters()
            .filter(|(key, _)| !PROVIDERS_OWN.contains(key) && !CONSUMERS_OWN.contains(key))
            .filter(|(key, _)| !key.starts_with("default."))
            .filter(|(key, _)| style != ConsumerParameters::ForPicking || plan::is_for_picking(key))
            .map(|(key, value)| Over {
                key: key.to_owned(),
                value: value.to_owned(),
                wins: match style {
                    ConsumerParameters::All => !PROVIDERS_FIRST.contains(&key),
                    _ => plan::is_for_picking(key),
                },
            })
            .collect();
        Merge { style, over }
    }

    /// Writes the merged URL into `out`, which is cleared first.
    pub fn write(&self, provider: &Parts<'_>, out: &mut String) {
        out.clear();
        write_head(provider, out);
        let mut sign = '?';
        let mut push = |out: &mut String, key: &str, value: &str| {
            out.push(sign);
            sign = '&';
            out.push_str(key);
            out.push('=');
            out.push_str(value);
        };
        let all = self.style == ConsumerParameters::All;
        let mut application = None;
        let mut remote = false;
        for (key, value) in provider.parameters() {
            match key {
                "application" => application = Some(value),
                "remote.application" => remote = true,
                _ => {}
            }
            let plain = key.strip_prefix("default.").unwrap_or(key);
            if (all && DROPPED.contains(&plain)) || self.find(key).is_some_and(|over| over.wins) {
                continue;
            }
            push(out, key, value);
        }
        for over in &self.over {
            if over.wins || !provider.parameters().any(|(key, _)| key == over.key) {
                push(out, &over.key, &over.value);
            }
        }
        if let (Some(application), false, true) = (application, remote, all) {
            push(out, "remote.application", application);
        }
    }

    fn find(&self, key: &str) -> Option<&Over> {
        let at = self.over.binary_search_by(|over| over.key.as_str().cmp(key)).ok()?;
        self.over.get(at)
    }
}

/// Everything in front of the parameters.
pub(super) fn write_head(parts: &Parts<'_>, out: &mut String) {
    if !parts.protocol.is_empty() {
        out.push_str(parts.protocol);
        out.push_str("://");
    }
    if let Some(username) = parts.username {
        out.push_str(username);
        if let Some(password) = parts.password {
            out.push(':');
            out.push_str(password);
        }
        out.push('@');
    }
    out.push_str(parts.host);
    if !parts.port.is_empty() {
        out.push(':');
        out.push_str(parts.port);
    }
    out.push('/');
    out.push_str(parts.path);
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROVIDER: &str = "tri://u:p@10.0.0.1:50051/S?application=stock&timeout=9&dubbo.tag=blue&methods=a,b&\
                            region=hz&version=1&threads=200&side=provider&weight=30&default.threadpool=fixed";
    const CONSUMER: &str = "consumer://1.1.1.1/S?application=shop&timeout=5&dubbo.tag=gray&methods=x&timestamp=1&\
                            version=2&group=g&region=sh&side=consumer&router=tag&a.loadbalance=random&env=gray";

    fn merged(dialect: Dialect, provider: &str) -> String {
        let merge = Merge::new(&Url::parse(CONSUMER).unwrap(), dialect);
        let mut out = String::new();
        merge.write(&Parts::parse(provider).unwrap(), &mut out);
        out.split_once('?').unwrap().1.to_owned()
    }

    #[test]
    fn rules_see_what_the_provider_has_registered() {
        for dialect in [Dialect::Byway, Dialect::Dubbo3] {
            assert_eq!(
                merged(dialect, PROVIDER),
                "application=stock&dubbo.tag=blue&methods=a,b&region=hz&version=1&threads=200&side=provider&weight=30&\
                 default.threadpool=fixed&a.loadbalance=random&timeout=5"
            );
        }
    }

    #[test]
    fn in_2_7_the_consumer_wins_except_where_the_provider_speaks_for_itself() {
        assert_eq!(
            merged(Dialect::Dubbo27, PROVIDER),
            "dubbo.tag=blue&methods=a,b&version=1&weight=30&a.loadbalance=random&application=shop&env=gray&group=g&\
             region=sh&side=consumer&timeout=5&remote.application=stock"
        );
        assert!(merged(Dialect::Dubbo27, "tri://h:1/S?remote.application=own").ends_with("version=2"));
    }

    #[test]
    fn in_go_the_provider_wins_except_for_picking() {
        assert_eq!(
            merged(Dialect::DubboGo, PROVIDER),
            "application=stock&dubbo.tag=blue&methods=a,b&region=hz&version=1&threads=200&side=provider&weight=30&\
             default.threadpool=fixed&a.loadbalance=random&env=gray&group=g&timeout=5"
        );
    }
}
