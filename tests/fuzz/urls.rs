//! Proxy lists and provider URLs.

use crate::mutate::{Mutator, text};
use crate::{Target, cases, texts};
use byway::chain::snapshot::Invokers;
use byway::chain::url::Url;
use byway::net::proxy::ProxyKind;
use byway::proxies::no_proxy::{Dialect, NoProxy};
use byway::proxies::pac::answer::{Answer, LIMIT};
use byway::proxies::{Listed, OwnedTarget};
use byway::source::instances::{self, Instance};
use byway::source::providers::{self, Notification};
use std::path::Path;

pub(crate) fn targets(folder: &Path) -> Vec<Target> {
    let (proxy, bugs) = (cases(folder, "proxy"), cases(folder, "bugs"));
    let (chain, condition) = (cases(folder, "dubbo_chain"), cases(folder, "dubbo_condition"));
    let mut lists = texts(&proxy, &["no_proxy", "NO_PROXY"]);
    lists.extend(texts(&bugs, &["no_proxy"]));
    let mut answers = texts(&proxy, &["pac", "result", "answer"]);
    answers.extend(
        ["PROXY a:1; SOCKS5 b:2; DIRECT", "HTTPS [::1]:443;SOCKS4 10.0.0.1:1080", ""]
            .map(|t| t.as_bytes().to_vec()),
    );
    let mut urls = texts(&chain, &["url", "consumer_url"]);
    urls.extend(texts(&condition, &["consumer_url", "invokers"]));
    let instance = r#"{"name":"a","id":"10.0.0.1:20880","address":"10.0.0.1","port":20880,"payload":{"metadata":{"dubbo.endpoints":"[{\"port\":20880,\"protocol\":\"dubbo\"}]","dubbo.metadata.revision":"r","dubbo.metadata.storage-type":"remote"}}}"#;
    vec![
        Target {
            name: "no_proxy",
            seeds: lists,
            words: &[
                "*",
                ".",
                "*.",
                "example.com",
                ".example.com:8080",
                "<local>",
                "10.0.0.0/8",
                "[::1]",
                ",",
            ],
            look: no_proxy,
            work: (400, 40),
            every: 1,
        },
        Target {
            name: "pac_result",
            seeds: answers,
            words: &[
                "PROXY ", "DIRECT", "SOCKS ", "SOCKS4 ", "SOCKS5 ", "HTTP ", "HTTPS ", ";", "a:1", "[::1]:1",
            ],
            look: pac_result,
            work: (400, 40),
            every: 1,
        },
        Target {
            name: "provider_url",
            seeds: urls,
            words: &[
                "dubbo://",
                "?",
                "&",
                "application=",
                "weight=",
                "methods=a,b",
                "a.timeout=1",
                "empty://",
                "%26",
                "@",
            ],
            look: provider_url,
            work: (150, 8),
            every: 1,
        },
        Target {
            name: "instance",
            seeds: vec![
                instance.as_bytes().to_vec(),
                b"{\"services\":{\"S\":{\"name\":\"S\",\"params\":{}}}}".to_vec(),
            ],
            words: &["{", "}", "\"name\":", "\"address\":", "\"port\":", "null", "[", "]", ",", "\\u0000"],
            look: instance_json,
            work: (200, 4),
            every: 1,
        },
    ]
}

fn no_proxy(input: &[u8], mutator: &mut Mutator) {
    let list = text(input);
    let urls = [
        "http://example.com/",
        "https://[::1]:8443/",
        "http://10.1.2.3:8080/x",
        "http://localhost/",
        "http://a.b.c.example/",
    ];
    let target = OwnedTarget::parse(urls[mutator.below(urls.len())]).unwrap();
    let target = target.borrow();
    for dialect in
        [Dialect::Byway, Dialect::Curl, Dialect::Go, Dialect::Python, Dialect::Node, Dialect::Chromium]
    {
        let read = NoProxy::new(&list, dialect);
        let bypassed = read.decide(&target).is_some();
        // Reading again gives the same answer, and what was left out was in the text.
        assert_eq!(NoProxy::new(&list, dialect).decide(&target).is_some(), bypassed, "{dialect:?}");
        assert!(read.ignored().len() <= list.len() + 1, "{:?}", read.ignored());
    }
    // One more entry takes nothing away in the default dialect.
    let before = NoProxy::new(&list, Dialect::Byway).decide(&target).is_some();
    let after = NoProxy::new(&format!("{list},203.0.113.9"), Dialect::Byway).decide(&target).is_some();
    assert!(after || !before, "an entry more and no bypass any more");
}

fn pac_result(input: &[u8], _: &mut Mutator) {
    let answer = text(input);
    match Answer::parse(&answer, ProxyKind::Socks4) {
        Err(_) => assert!(answer.len() > LIMIT || !answer.is_ascii()),
        Ok(read) => {
            let mut printed = String::new();
            for entry in &read.proxies {
                let element = match entry {
                    Listed::Proxy(proxy) => {
                        let keyword = match proxy.kind() {
                            ProxyKind::Http => "PROXY",
                            ProxyKind::Https => "HTTPS",
                            ProxyKind::Socks4 => "SOCKS4",
                            ProxyKind::Socks4a => "SOCKS4A",
                            _ => "SOCKS5",
                        };
                        let host = proxy.host().text();
                        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
                        assert!((1..=65535).contains(&proxy.port()), "{proxy:?}");
                        format!("{keyword} {host}:{}", proxy.port())
                    }
                    _ => "DIRECT".to_owned(),
                };
                printed.push_str(&element);
                printed.push(';');
            }
            if printed.len() <= LIMIT {
                let again = Answer::parse(&printed, ProxyKind::Socks4).unwrap();
                assert_eq!(again.skipped, Vec::<String>::new(), "{printed}");
                assert_eq!(format!("{:?}", again.proxies), format!("{:?}", read.proxies), "{printed}");
            }
        }
    }
}

fn provider_url(input: &[u8], _: &mut Mutator) {
    let url = text(input);
    if let Ok(read) = Url::parse(&url) {
        let again = Url::parse(read.text()).unwrap();
        assert_eq!((again.host(), again.port(), again.path()), (read.host(), read.port(), read.path()));
        assert_eq!(again.parameters().collect::<Vec<_>>(), read.parameters().collect::<Vec<_>>());
        let list = Invokers::from_urls([url.as_str()]);
        if let Ok(list) = list {
            assert!(list.len() <= 1);
        }
    } else {
        assert!(Invokers::from_urls([url.as_str()]).is_err());
    }
    let lines: Vec<&str> = url.lines().collect();
    let _ = Notification::read(lines.iter().copied());
    let encoded = providers::encode(&url);
    assert!(!encoded.contains('/'), "{encoded}");
    assert_eq!(providers::decode(&encoded).unwrap(), url);
    let _ = providers::decode(&url);
}

fn instance_json(input: &[u8], _: &mut Mutator) {
    let json = text(input);
    let _ = Instance::read(&json);
    let _ = instances::services(&json);
    let _ = instances::applications(&json);
}
