//! The consumer's parameters over a provider's, as Dubbo merges them before routers see the URL.
//!
//! Consumer parameters win, except those that describe the provider (`release`, `dubbo`, `methods`, `timestamp`,
//! `dubbo.tag`; `group`, `version` and `generic` when the provider has them). The provider's thread pool settings are
//! dropped, and its `application` becomes `remote.application`. Upstream: `DefaultProviderURLMergeProcessor`.

use crate::chain::url::{Parts, Url};

/// Prepared for one consumer.
#[derive(Clone, Debug)]
pub struct Merge {
    /// Consumer parameters that may go over a provider's, sorted by key.
    over: Vec<(String, String)>,
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
    pub fn new(consumer: &Url) -> Merge {
        let over = consumer
            .parameters()
            .filter(|(key, _)| !PROVIDERS_OWN.contains(key) && !CONSUMERS_OWN.contains(key))
            .filter(|(key, _)| !key.starts_with("default."))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        Merge { over }
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
        let mut given = [false; 3];
        let mut application = None;
        let mut remote = false;
        for (key, value) in provider.parameters() {
            if let Some(at) = PROVIDERS_FIRST.iter().position(|one| *one == key) {
                if let Some(given) = given.get_mut(at) {
                    *given = true;
                }
                push(out, key, value);
                continue;
            }
            match key {
                "application" => application = Some(value),
                "remote.application" => remote = true,
                _ => {}
            }
            let plain = key.strip_prefix("default.").unwrap_or(key);
            if DROPPED.contains(&plain) || self.find(key).is_some() {
                continue;
            }
            push(out, key, value);
        }
        for (key, value) in &self.over {
            let first = PROVIDERS_FIRST.iter().position(|one| one == key);
            if first.is_some_and(|at| given.get(at) == Some(&true)) {
                continue;
            }
            push(out, key, value);
        }
        if let (Some(application), false) = (application, remote) {
            push(out, "remote.application", application);
        }
    }

    fn find(&self, key: &str) -> Option<&str> {
        let at = self.over.binary_search_by(|(own, _)| own.as_str().cmp(key)).ok()?;
        self.over.get(at).map(|(_, value)| value.as_str())
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

    #[test]
    fn the_consumer_wins_except_where_the_provider_speaks_for_itself() {
        let consumer = Url::parse(
            "consumer://1.1.1.1/S?application=shop&timeout=5&dubbo.tag=gray&methods=x&timestamp=1&version=2&\
             group=g&release=9&side=consumer&router=tag",
        )
        .unwrap();
        let merge = Merge::new(&consumer);
        let mut out = String::new();
        let mut merged = |provider: &str| {
            merge.write(&Parts::parse(provider).unwrap(), &mut out);
            out.clone()
        };
        assert_eq!(
            merged(
                "tri://u:p@10.0.0.1:50051/S?application=stock&timeout=9&dubbo.tag=blue&methods=a,b&timestamp=7&\
                 version=1&threads=200&side=provider&weight=30&default.threadpool=fixed"
            ),
            "tri://u:p@10.0.0.1:50051/S?dubbo.tag=blue&methods=a,b&timestamp=7&version=1&weight=30&\
             application=shop&group=g&side=consumer&timeout=5&remote.application=stock"
        );
        assert_eq!(
            merged("tri://h:1/S?remote.application=own"),
            "tri://h:1/S?remote.application=own&application=shop&group=g&side=consumer&timeout=5&version=2"
        );
    }
}
