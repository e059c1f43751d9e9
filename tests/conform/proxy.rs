//! `proxy.jsonl` under each dialect a case names, and the proxy area of `bugs.jsonl` under the defaults.

use crate::Outcome;
use byway::error::{Error, Status};
use byway::net::Failure;
use byway::proxies::bad::{BadProxies, Fault, Trial};
use byway::proxies::bypass::{BypassList, Style};
use byway::proxies::environment::{Environment, Table};
use byway::proxies::jdk::{JdkProperties, Properties, WebSockets};
use byway::proxies::no_proxy::{Dialect, NoProxy, Options};
use byway::proxies::value::{self, Grammar};
use byway::proxies::{Listed, OwnedTarget, ProxyKind, ProxyList, ProxySelector, kind_of};
use serde_json::{Map, Value, json};

/// Implementations that are a dialect of byway, by the names the cases use.
const DIALECTS: [(&str, Dialect); 5] = [
    ("curl", Dialect::Curl),
    ("go", Dialect::Go),
    ("urllib", Dialect::Python),
    ("undici", Dialect::Node),
    ("chromium", Dialect::Chromium),
];

pub(crate) fn run(kind: &str, case: &Value) -> Outcome {
    let problems = match kind {
        "noproxy" => no_proxy(case),
        "env" => environment(case),
        "nonproxyhosts" => jdk(case),
        "bypass" => bypass(case),
        "retry" => retry(case),
        #[cfg(feature = "script")]
        "pac" => crate::pac_script::pac(case),
        "pac_string" => crate::pac::pac_string(case),
        _ => return Outcome::Skip,
    };
    verdict(problems)
}

pub(crate) fn run_bug(kind: &str, case: &Value) -> Outcome {
    let problems = match kind {
        "no_proxy" | "no_proxy_list" | "libproxy_ignore" => bug_no_proxy(case),
        "proxy_for_url" | "proxy_for_url_list" => bug_proxy_for_url(case),
        "win_proxy_server" => bug_win_proxy_server(case),
        "win_bypass" | "mac_exceptions" | "jvm_non_proxy_hosts" => bug_exceptions(kind, case),
        "desktop_config" => bug_desktop(case),
        #[cfg(feature = "script")]
        "pac" => crate::pac_script::bug_pac(case),
        "wpad_names" => crate::pac::wpad_names(case),
        _ => return Outcome::Skip,
    };
    verdict(problems)
}

fn verdict(problems: Vec<String>) -> Outcome {
    if problems.is_empty() { Outcome::Pass } else { Outcome::Fail(problems.join("; ")) }
}

pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("no text field {key} in {value}"))
}

fn check<T: PartialEq + std::fmt::Debug>(problems: &mut Vec<String>, what: &str, got: T, want: T) {
    if got != want {
        problems.push(format!("{what}: got {got:?}, want {want:?}"));
    }
}

fn pairs(map: &Value) -> Vec<(String, String)> {
    let empty = Map::new();
    let map = map.as_object().unwrap_or(&empty);
    map.iter().map(|(k, v)| (k.clone(), v.as_str().unwrap_or_default().to_owned())).collect()
}

/// A list's entry as the cases write it.
pub(crate) fn shown(entry: &Listed) -> Value {
    let Listed::Proxy(proxy) = entry else { return json!({"type": "direct"}) };
    let mut map = json!({"type": proxy.kind().scheme(), "host": proxy.host().text(), "port": proxy.port()});
    if let Some(user) = proxy.user() {
        map["user"] = json!(user);
        map["password"] = json!(proxy.password());
    }
    map
}

pub(crate) fn shown_list(list: &ProxyList) -> Value {
    Value::Array(list.iter().map(shown).collect())
}

/// A list's entry as a URL, `direct://` for DIRECT.
pub(crate) fn as_url(entry: &Listed) -> String {
    match entry {
        Listed::Proxy(proxy) => proxy.to_string(),
        _ => "direct://".into(),
    }
}

pub(crate) fn place(entry: &Listed) -> (String, i64) {
    match entry {
        Listed::Proxy(proxy) => (proxy.host().text().to_owned(), proxy.port()),
        _ => (String::new(), 0),
    }
}

fn category(error: &Error) -> &'static str {
    match error.status() {
        Status::E_INVALID_PROXY => "invalid_proxy",
        Status::E_INVALID_URL => "invalid_url",
        Status::E_INVALID_PORT => "invalid_port",
        Status::E_PROXY_SELECTOR => "refused_in_cgi",
        _ => error.status().name(),
    }
}

/// The answer against `{"proxies": [...]}` or `{"error": category}`.
fn check_expect(problems: &mut Vec<String>, what: &str, got: Result<ProxyList, Error>, expect: &Value) {
    match (got, expect.get("error")) {
        (Ok(list), None) => check(problems, what, shown_list(&list), expect["proxies"].clone()),
        (Err(error), Some(want)) => {
            let want = want.as_str().unwrap_or_default();
            // java.lang.IllegalArgumentException is the JDK's word for a port it cannot use.
            let got = category(&error);
            if got != want && !want.contains("IllegalArgumentException") && want != "configuration" {
                problems.push(format!("{what}: got {error:?}, want {want}"));
            }
        }
        (got, want) => problems.push(format!("{what}: got {got:?}, want {want:?}")),
    }
}

fn no_proxy(case: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let list = text(&case["input"], "no_proxy");
    let target = OwnedTarget::parse(text(&case["input"], "url")).expect("a URL");
    let plain = Options { loopback: false, ..Options::default() };
    for (options, key) in [(plain, "bypass"), (Options::default(), "bypass_with_implicit_loopback")] {
        let got = NoProxy::with_options(list, Dialect::Byway, options).decide(&target.borrow()).is_some();
        check(&mut problems, key, Some(got), case["expect"][key].as_bool());
    }
    for (name, dialect) in DIALECTS {
        if let Some(want) = case["answers"][name].as_bool() {
            let got = NoProxy::new(list, dialect).decide(&target.borrow()).is_some();
            check(&mut problems, name, got, want);
        }
    }
    problems
}

fn environment(case: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let table: Table = pairs(&case["input"]["env"]).into_iter().collect();
    let target = OwnedTarget::parse(text(&case["input"], "url")).expect("a URL");
    let ask = |dialect| {
        let selector = Environment::new(&table, dialect);
        selector.select(&target.borrow()).map(|choice| choice.proxies)
    };
    check_expect(&mut problems, "byway", ask(Dialect::Byway), &case["expect"]);
    for (name, dialect) in DIALECTS {
        let answer = &case["answers"][name];
        if !answer.is_object() {
            continue;
        }
        let got = ask(dialect);
        let errs = answer.get("error").is_some();
        match answer["proxy"].as_str().filter(|_| !errs) {
            // Where a program hands a bad value on or drops it, byway has one rule: an error of the request.
            _ if got.is_err() && (errs || case["expect"].get("error").is_some()) => {}
            Some(url) => match value::parse(name, url, Grammar { empty_port: true, ..Grammar::default() }) {
                Ok(want) => {
                    let want = place(&want.listed(name).expect("a proxy"));
                    check(&mut problems, name, got.map(|l| place(&l[0])).ok(), Some(want));
                }
                Err(_) => check(&mut problems, name, got.is_err(), true),
            },
            None if errs => problems.push(format!("{name}: got {got:?}, want an error")),
            None => check(
                &mut problems,
                name,
                got.map(|l| shown_list(&l)).ok(),
                Some(json!([{"type": "direct"}])),
            ),
        }
        if let Some(port) = answer["connect_port"].as_i64().filter(|_| answer["proxy"].is_string()) {
            check(&mut problems, name, ask(dialect).map(|l| place(&l[0]).1).ok(), Some(port));
        }
    }
    problems
}

fn jdk(case: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let properties: Properties = pairs(&case["input"]["properties"]).into_iter().collect();
    let ask = |web_sockets| -> Result<ProxyList, Error> {
        let target = OwnedTarget::parse(text(&case["input"], "url"))?;
        Ok(JdkProperties::new(&properties, web_sockets).select(&target.borrow())?.proxies)
    };
    check_expect(&mut problems, "byway", ask(WebSockets::AsHttp), &case["expect"]);
    if let Some(released) = case["answers"]["jdk17"].as_str() {
        let got = ask(WebSockets::Direct).map(|list| {
            let (host, port) = place(&list[0]);
            let kind = match kind_of(&list[0]) {
                ProxyKind::Direct => return "DIRECT".to_owned(),
                ProxyKind::Http => "HTTP",
                ProxyKind::Socks4 => "SOCKSv4",
                _ => "SOCKSv5",
            };
            format!("{kind} {host}:{port}")
        });
        match got {
            Ok(got) => check(&mut problems, "jdk17", got, released.to_owned()),
            Err(error) => {
                check(&mut problems, &format!("jdk17 {error:?}"), released.contains("Exception"), true)
            }
        }
    }
    problems
}

fn bypass(case: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let list = BypassList::new(text(&case["input"], "rules"), Style::Browser);
    // A URL that is none (its host ends in a number and is no address) is an error before any list is asked.
    let target = OwnedTarget::parse(text(&case["input"], "url"));
    let got = target.is_ok_and(|target| list.decide(&target.borrow()).is_some());
    check(&mut problems, "bypass", Some(got), case["expect"]["bypass"].as_bool());
    problems
}

/// `http host:port`, `socks5 host:port` or `direct`, as the retry cases write proxies.
fn retry_proxy(text: &str) -> Listed {
    let (kind, place) = text.split_once(' ').unwrap_or((text, ""));
    if kind == "direct" {
        return Listed::Direct;
    }
    value::parse("case", &format!("{kind}://{place}"), Grammar::default())
        .and_then(|proxy| proxy.listed("case"))
        .expect("a proxy")
}

fn retry_list(value: &Value) -> Vec<Listed> {
    let empty = Vec::new();
    value.as_array().unwrap_or(&empty).iter().map(|v| retry_proxy(v.as_str().unwrap_or_default())).collect()
}

fn fault(at_ms: u64) -> Fault {
    Fault { failure: Failure::Refused, os_errno: 0, at_ms }
}

fn retry(case: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let input = &case["input"];
    let mut list = retry_list(&input["list"]);
    let never = retry_list(&input["bad_never_while_bad"]);
    // byway has no "never while bad" flag: a list without such an entry is what the flag asks for.
    list.retain(|proxy| !never.contains(proxy));
    let list: ProxyList = list.into();
    let mut table = BadProxies::default();
    let seconds = |value: &Value| value.as_u64().unwrap_or(0) * 1000;
    let at = seconds(&input["at_s"]);
    for bad in retry_list(&input["bad"]) {
        if let Listed::Proxy(bad) = bad {
            table.mark(&bad, fault(at), at);
        }
    }
    let single = input.get("fallback").map(|f| vec![f.clone()]);
    for fallback in single.or_else(|| input["fallbacks"].as_array().cloned()).unwrap_or_default() {
        // Chromium's step "the first entry failed, go on behind it": the first proxy of the list and those named
        // beside it, unless the first is DIRECT.
        if list[0] != Listed::Direct {
            let delay = seconds(&fallback["delay_s"]);
            let also = retry_list(&fallback["also_bad"]);
            for proxy in std::iter::once(&list[0]).chain(&also) {
                if let Listed::Proxy(proxy) = proxy {
                    table.mark_for(proxy, fault(at), at, delay);
                }
            }
        }
    }
    let mut trial = Some(Trial::new(list.clone()));
    for event in input["events"].as_array().unwrap_or(&Vec::new()) {
        let event = event.as_str().unwrap_or_default();
        match event.split_once(' ') {
            Some(("fail", proxy)) => {
                if let Some(trial) = &mut trial {
                    trial.failed(&retry_proxy(proxy), fault(0));
                }
            }
            Some(("ok", proxy)) => {
                if let Some(trial) = trial.take() {
                    trial.worked(&retry_proxy(proxy), &mut table, at);
                }
            }
            _ if event == "network_changed" || event == "config_changed" => table.clear(),
            _ => problems.push(format!("unknown event {event}")),
        }
    }
    let ask = if input["ask_at_s"].is_null() { at } else { seconds(&input["ask_at_s"]) };
    let name = |kind: ProxyKind, host: &str, port: i64| match kind {
        ProxyKind::Direct => "direct".to_owned(),
        kind => format!("{} {host}:{port}", kind.scheme()),
    };
    let entry = |entry: &Listed| name(kind_of(entry), &place(entry).0, place(entry).1);
    let expect = &case["expect"];
    if let Some(order) = expect.get("order") {
        let got: Vec<_> = table.reorder(&list, ask).iter().map(entry).collect();
        check(&mut problems, "order", json!(got), order.clone());
    }
    let marked = table.snapshot(ask);
    if let Some(want) = expect.get("marked") {
        let mut got: Vec<_> = marked.iter().map(|m| name(m.kind, &m.host, m.port)).collect();
        let mut want: Vec<_> = want
            .as_array()
            .into_iter()
            .flatten()
            .map(|v| v.as_str().unwrap_or_default().to_owned())
            .collect();
        got.sort();
        want.sort();
        check(&mut problems, "marked", got, want);
    }
    if let Some(delay) = expect.get("delay_s") {
        check(&mut problems, "delay_s", marked.first().map(|m| m.remaining_ms / 1000), delay.as_u64());
    }
    problems
}

/// `byway` for "ours"; libproxy's list has no implied loopback.
fn bug_dialect(case: &Value) -> (Dialect, Options) {
    let off = Options { loopback: false, ..Options::default() };
    match case["dialect"].as_str() {
        None | Some("ours" | "byway" | "libproxy") => (Dialect::Byway, off),
        Some(name) => (Dialect::named(name).unwrap_or_else(|| panic!("dialect {name}")), off),
    }
}

fn bug_target(host: &str, port: Option<u64>) -> OwnedTarget {
    if host.contains("://") {
        return OwnedTarget::parse(host).expect("a URL");
    }
    let host =
        if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host.to_owned() };
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    OwnedTarget::parse(&format!("http://{host}{port}/")).expect("a URL")
}

fn strings(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().map(|v| v.as_str().unwrap_or_default()).collect()
}

fn bug_no_proxy(case: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let (dialect, options) = bug_dialect(case);
    let input = &case["input"];
    let bypassed = |list: &str, host: &str| {
        let target = bug_target(host, input["scheme_port"].as_u64());
        NoProxy::with_options(list, dialect, options).decide(&target.borrow()).is_some()
    };
    let got = if let Some(checks) = input["checks"].as_array() {
        Value::from(checks.iter().map(strings_pair).map(|(l, h)| bypassed(l, h)).collect::<Vec<_>>())
    } else if let Some(hosts) = input["hosts"].as_array() {
        let list = text(input, "no_proxy");
        Value::from(hosts.iter().map(|h| bypassed(list, h.as_str().unwrap_or_default())).collect::<Vec<_>>())
    } else {
        let host = input["host"].as_str().or(input["url"].as_str()).expect("host");
        Value::from(bypassed(text(input, "no_proxy"), host))
    };
    check(&mut problems, "bypass", got, case["expect"]["bypass"].clone());
    problems
}

fn strings_pair(pair: &Value) -> (&str, &str) {
    (pair[0].as_str().unwrap_or_default(), pair[1].as_str().unwrap_or_default())
}

fn bug_proxy_for_url(case: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let (dialect, _) = bug_dialect(case);
    let input = &case["input"];
    let mut env = pairs(&input["env"]);
    if let Some(list) = input["no_proxy"].as_str() {
        env.push(("no_proxy".into(), list.into()));
    }
    let explicit = pairs(&input["explicit"])
        .into_iter()
        .map(|(key, value)| (if key == "no_proxy" { key } else { format!("{key}_proxy") }, value));
    let selector = Environment::layered(&explicit.collect(), &env.into_iter().collect(), dialect);
    let urls = input["urls"].as_array().cloned().unwrap_or_else(|| vec![input["url"].clone()]);
    let expect = &case["expect"];
    for (index, url) in urls.iter().enumerate() {
        let of = |value: &Value| if value.is_array() { value[index].clone() } else { value.clone() };
        let got = OwnedTarget::parse(url.as_str().unwrap_or_default())
            .and_then(|target| selector.select(&target.borrow()));
        let what = url.to_string();
        match (got, expect.get("error")) {
            (Err(error), Some(want)) => check(&mut problems, &what, json!(category(&error)), of(want)),
            (Ok(choice), None) => {
                let want = match of(&expect["proxy"]) {
                    Value::String(url) => as_url(
                        &value::parse(
                            "case",
                            &url,
                            match dialect {
                                Dialect::Go => Grammar { socks5: ProxyKind::Socks5h, ..Grammar::default() },
                                _ => Grammar::default(),
                            },
                        )
                        .and_then(|proxy| proxy.listed("case"))
                        .expect("a proxy"),
                    ),
                    _ => "direct://".into(),
                };
                check(&mut problems, &what, as_url(&choice.proxies[0]), want);
                if let Some(user) = expect.get("user") {
                    let got = shown(&choice.proxies[0]);
                    check(&mut problems, "user", got["user"].clone(), user.clone());
                    check(&mut problems, "password", got["password"].clone(), expect["password"].clone());
                }
            }
            (got, want) => problems.push(format!("{what}: got {got:?}, want {want:?}")),
        }
    }
    problems
}

fn bug_win_proxy_server(case: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let selector = byway::proxies::windows::proxy_server(text(&case["input"], "ProxyServer"), "<-loopback>");
    let selector = match selector {
        Ok(selector) => selector,
        Err(error) => return vec![format!("{error:?}")],
    };
    for (scheme, want) in case["expect"].as_object().expect("an object") {
        if scheme == "socks" {
            let got = selector.select(&OwnedTarget::parse("gopher://h/").unwrap().borrow()).unwrap();
            let want = want.as_str().map_or(ProxyKind::Direct, |_| ProxyKind::Socks4);
            check(&mut problems, scheme, kind_of(&got.proxies[0]), want);
            continue;
        }
        let got = selector.select(&OwnedTarget::parse(&format!("{scheme}://h.example/")).unwrap().borrow());
        let got = got.map(|choice| as_url(&choice.proxies[0])).ok();
        let want = want.as_str().unwrap_or("direct://").replace("socks://", "socks4://");
        check(&mut problems, scheme, got, Some(want));
    }
    problems
}

fn bug_exceptions(kind: &str, case: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let input = &case["input"];
    let hosts = strings(&input["hosts"]);
    let got: Vec<bool> = match kind {
        "win_bypass" => {
            let list = BypassList::new(text(input, "ProxyOverride"), Style::Windows);
            hosts.iter().map(|h| list.decide(&bug_target(h, None).borrow()).is_some()).collect()
        }
        "mac_exceptions" => {
            let simple = input["exclude_simple"].as_bool().unwrap_or(false);
            let list = BypassList::macos(strings(&input["exceptions"]), simple);
            hosts.iter().map(|h| list.decide(&bug_target(h, None).borrow()).is_some()).collect()
        }
        _ => {
            let pairs = [("http.proxyHost", "p"), ("http.nonProxyHosts", text(input, "nonProxyHosts"))];
            let selector = JdkProperties::new(&pairs.into_iter().collect(), WebSockets::AsHttp);
            let direct = |h: &&str| {
                let choice = selector.select(&bug_target(h, None).borrow()).expect("an answer");
                choice.proxies[0] == Listed::Direct
            };
            hosts.iter().map(direct).collect()
        }
    };
    check(&mut problems, "bypass", json!(got), case["expect"]["bypass"].clone());
    problems
}

fn bug_desktop(case: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let input = &case["input"];
    let settings = byway::proxies::system::Desktop {
        manual: input["mode"].as_str() == Some("manual"),
        http: input["http"].as_str().unwrap_or_default().into(),
        https: input["https"].as_str().unwrap_or_default().into(),
        ftp: input["ftp"].as_str().unwrap_or_default().into(),
        socks: input["socks"].as_str().unwrap_or_default().into(),
        ..Default::default()
    };
    let selector = match settings.selector() {
        Ok(selector) => selector,
        Err(error) => return vec![format!("{error:?}")],
    };
    let target = OwnedTarget::parse(text(input, "url")).expect("a URL");
    let got = selector.select(&target.borrow()).map(|c| c.proxies.iter().map(as_url).collect::<Vec<_>>());
    check(&mut problems, "proxies", json!(got.ok()), case["expect"]["proxies"].clone());
    problems
}
