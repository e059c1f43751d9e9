//! `connect.jsonl` kinds order and postpone, and the cases of `bugs.jsonl` about selectors, the route database and
//! DNS: byway's own rules.

use crate::Outcome;
use crate::okhttp::{ip, shown, texts};
use byway::net::address::AddressSpec;
use byway::net::events::Listening;
use byway::net::order::{FirstFamily, History, HistoryRule, Order, by_history};
use byway::net::proxy::{ProxyKind, ProxySpec};
use byway::net::recover::{Attempt, Phase, report};
use byway::net::*;
use byway::{Error, Status};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

pub(crate) fn order(case: &Value) -> Outcome {
    let rule = Order {
        interleave: case["interleave"].as_bool().unwrap_or(true),
        first_family: match case["first_family"].as_str() {
            Some("v4") => FirstFamily::V4,
            Some("first_address") => FirstFamily::FirstAddress,
            _ => FirstFamily::V6,
        },
        first_family_count: case["first_family_count"].as_u64().unwrap_or(1) as usize,
        dedup: case["dedup"].as_bool().unwrap_or(false),
    };
    let mut ips: Vec<Ip> = texts(&case["input"]).map(ip).collect();
    if case["unmap"].as_bool().unwrap_or(false) {
        ips.iter_mut().for_each(|ip| *ip = ip.unmapped());
    }
    let postponed: Vec<Ip> = texts(&case["postponed"]).map(ip).collect();
    if case["interleave_stage"] == "after_postpone" {
        rule.apply_after_postponing(&mut ips, |ip| postponed.contains(ip));
    } else {
        rule.apply(&mut ips);
        let (front, behind): (Vec<Ip>, Vec<Ip>) = ips.iter().partition(|ip| !postponed.contains(ip));
        ips = [front, behind].concat();
    }
    let history_rule = HistoryRule {
        slow_ms: case["rtt_slow_ms"].as_u64().unwrap_or(100) as u32,
        dead_after: case["dead_after"].as_u64().unwrap_or(10) as u32,
    };
    by_history(&mut ips, history_rule, |ip| {
        let key = ip.to_string();
        let attempts = &case["attempts"][&key];
        History {
            rtt_min_ms: case["rtt_min_ms"][&key].as_u64().map(|ms| ms as u32),
            attempts: attempts[0].as_u64().unwrap_or(0) as u32,
            successes: attempts[1].as_u64().unwrap_or(0) as u32,
        }
    });
    Outcome::equal(json!(shown(&ips)), case["expect"].clone())
}

pub(crate) fn postpone(case: &Value) -> Outcome {
    let policy = &case["policy"];
    let ms = |key: &str| policy[key].as_u64().unwrap_or(0);
    let policy = match policy["mode"].as_str() {
        Some("forever") => Policy { postpone_ms: 0, ..Policy::default() },
        Some("fixed") => Policy { postpone_ms: ms("ttl_ms"), longest_ms: ms("ttl_ms"), ..Policy::default() },
        Some("multiple") => {
            Policy { postpone_ms: ms("base_ms"), longest_ms: ms("max_ms"), ..Policy::default() }
        }
        mode => return Outcome::Fail(format!("mode {mode:?}")),
    };
    let database = RouteDatabase::new(policy);
    let address = Arc::new(address("http", "postpone.example", 80));
    let route = Route::new(address, None, (ip("192.0.2.1"), 80), Ip::NONE, None);
    // Events of one moment come before the questions of that moment.
    let mut script: Vec<(u64, u8, &Value, &str)> = Vec::new();
    for event in case["events"].as_array().into_iter().flatten() {
        script.push((event[0].as_u64().unwrap_or(0), 0, &event[1], "event"));
    }
    for (key, what) in [("expect", "postponed"), ("size_at", "size")] {
        for question in case[key].as_array().into_iter().flatten() {
            script.push((question[0].as_u64().unwrap_or(0), 1, &question[1], what));
        }
    }
    script.sort_by_key(|(at, rank, ..)| (*at, *rank));
    for (at, _, value, what) in script {
        let got = match (what, value.as_str()) {
            ("event", Some("failed")) => {
                database.failed(&route, Failure::Refused, 0, at);
                continue;
            }
            ("event", Some("connected")) => {
                database.connected(&route);
                continue;
            }
            ("event", Some("network_changed")) => {
                database.network_changed();
                continue;
            }
            ("size", _) => json!(database.stats(at).records),
            _ => json!(database.should_postpone(route.key(), || at)),
        };
        if got != *value {
            return Outcome::Fail(format!("{what} at {at}: got {got}, want {value}"));
        }
    }
    Outcome::Pass
}

fn address(scheme: &str, host: &str, port: i64) -> Address {
    let spec = AddressSpec { scheme, host, port, proxy_selector: 1, dns: 1, ..AddressSpec::default() };
    Address::new(spec, Compat::Byway, &|_| None).unwrap_or_else(|error| panic!("{error:?}"))
}

pub(crate) fn make_proxy(case: &Value) -> Outcome {
    let input = &case["input"];
    let kind = ProxyKind::from_scheme(input["type"].as_str().unwrap_or_default());
    let kind = kind.unwrap_or(ProxyKind::Socks5h);
    let made =
        Proxy::new(kind, input["host"].as_str().unwrap_or_default(), input["port"].as_i64().unwrap_or(0));
    let got = match made {
        Ok(proxy) => json!({"text": proxy.to_string()}),
        Err(error) => json!({"error": error_name(&error)}),
    };
    Outcome::equal(got, case["expect"].clone())
}

fn error_name(error: &Error) -> &'static str {
    match error.status() {
        Status::E_INVALID_PORT => "port_out_of_range",
        Status::E_UNKNOWN_HOST => "unknown_host",
        Status::E_PROXY_SELECTOR => "selector_failed",
        Status::E_FILTERED => "filtered",
        Status::E_NULL | Status::E_ARGUMENT => "invalid_argument",
        status => status.name(),
    }
}

/// `HTTP p1:3128`, as these cases write a proxy.
fn listed(text: &str) -> Listed {
    let Some((kind, place)) = text.split_once(' ') else { return Listed::Direct };
    let kind = match kind {
        "SOCKS" => ProxyKind::Socks5h,
        kind => ProxyKind::from_scheme(kind).unwrap_or_else(|| panic!("{text}")),
    };
    let (host, port) = place.rsplit_once(':').unwrap_or_else(|| panic!("{text}"));
    let port = port.parse().unwrap_or(-1);
    let spec = ProxySpec { kind, host, resolved: None, port, user: None, password: None };
    Listed::Proxy(Arc::new(
        Proxy::listed(spec, Compat::Byway, &|_| None).unwrap_or_else(|error| panic!("{error}")),
    ))
}

struct Script<'a> {
    address: Arc<Address>,
    database: RouteDatabase,
    settings: Settings,
    proxies: &'a Value,
    selector_error: bool,
    dns: HashMap<String, Vec<Value>>,
    asked: Vec<String>,
    reported: Reported,
}

/// Entries of the proxy list that were reported as failed.
#[derive(Default)]
struct Reported(RefCell<Vec<Value>>);

impl EventSink for Reported {
    fn event(&self, event: &Event<'_>) {
        self.0.borrow_mut().extend(event.error.map(|error| json!({"error": error_name(error)})));
    }
}

impl Script<'_> {
    fn new(case: &Value) -> Script<'_> {
        let input = &case["input"];
        let url = input["url"].as_str().unwrap_or("http://h/");
        let parsed = url::Url::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"));
        let host = parsed.host_str().unwrap_or_default();
        let port = parsed.port_or_known_default().unwrap_or(80);
        let mut settings = Settings::default();
        settings.order.interleave = input["fast_fallback"].as_bool().unwrap_or(true);
        let mut dns: HashMap<String, Vec<Value>> = HashMap::new();
        for (name, answer) in input["dns"].as_object().into_iter().flatten() {
            dns.insert(name.clone(), vec![answer.clone()]);
        }
        for (name, answers) in input["dns_sequence"].as_object().into_iter().flatten() {
            let mut answers = answers.as_array().cloned().unwrap_or_default();
            answers.reverse();
            dns.insert(name.clone(), answers);
        }
        let policy = Policy {
            capacity: input["cap"].as_u64().unwrap_or(4096) as usize,
            postpone_ms: input["ttl_s"].as_u64().map_or(300_000, |s| s * 1000),
            ..Policy::default()
        };
        Script {
            address: Arc::new(address(parsed.scheme(), host, i64::from(port))),
            database: RouteDatabase::new(policy),
            settings,
            proxies: &input["proxies"],
            selector_error: input.get("selector_error").is_some(),
            dns,
            asked: Vec::new(),
            reported: Reported::default(),
        }
    }

    /// Everything one selector gives: Selections, errors, then the end.
    fn select(&mut self) -> Vec<Result<Vec<Route>, Error>> {
        let mut selector = Selector::new(7);
        let mut given = Vec::new();
        loop {
            let cx = Context {
                address: &self.address,
                database: &self.database,
                settings: &self.settings,
                early_selection: false,
                now: &|| 1,
                listening: Listening::to(&self.reported, EventKind::ConnectFailed.bit()),
            };
            match selector.step(&cx) {
                Step::NeedProxies if self.selector_error => {
                    selector.fail_proxies(&cx, Error::new(Status::E_ARGUMENT, "scripted")).ok();
                }
                Step::NeedProxies => {
                    let list: Vec<Listed> = match self.proxies {
                        Value::Null => vec![Listed::Direct],
                        list => list
                            .as_array()
                            .into_iter()
                            .flatten()
                            .map(|text| text.as_str().map_or(Listed::Null, listed))
                            .collect(),
                    };
                    selector.answer_proxies(&cx, list).ok();
                }
                Step::NeedDns(lookup) => {
                    let name = selector.lookup_name(&self.address).to_owned();
                    let answers = self.dns.get_mut(&name);
                    let answer =
                        answers.and_then(|all| if all.len() > 1 { all.pop() } else { all.first().cloned() });
                    let ips: Vec<Ip> = texts(&answer.unwrap_or_default()).map(ip).collect();
                    selector.answer_dns(&cx, lookup.request, &ips, &[], true).unwrap();
                    self.asked.push(name);
                }
                Step::Selection(selection) => {
                    let routes = selector.routes(&self.address, &selection);
                    given.push(Ok(routes.map(|route| route.to_route()).collect()));
                }
                Step::Failed(error) => given.push(Err(error)),
                Step::Done => return given,
                Step::Wait => panic!("nothing is awaited"),
            }
        }
    }

    fn direct(&self, text: &str) -> Route {
        Route::new(Arc::clone(&self.address), None, (ip(text), self.address.port()), Ip::NONE, None)
    }
}

/// A route in the notation a case uses: as much as its expectation says.
fn written(route: &Route, like: &str) -> String {
    let (hop, port) = route.hop();
    let proxy = route.proxy().map(|proxy| {
        let kind = if proxy.kind().is_http() { "HTTP" } else { "SOCKS" };
        format!("{kind} {}:{}", proxy.host(), proxy.port())
    });
    match proxy {
        Some(proxy) if like.contains("->") => {
            let (target, port) = route.target();
            match target {
                route::Target::Name(name) => format!("{proxy} -> {name}:{port} unresolved"),
                route::Target::Ip(ip) => format!("{proxy} -> {}", ip.with_port(port)),
            }
        }
        Some(proxy) => format!("{proxy}@{hop}"),
        None if like.starts_with("DIRECT@") => format!("DIRECT@{}", hop.with_port(port)),
        None => hop.to_string(),
    }
}

fn written_all(routes: &[Route], like: &Value) -> Value {
    let texts: Vec<&str> = texts(like).collect();
    let of = |i: usize| texts.get(i).or(texts.first()).copied().unwrap_or_default();
    json!(routes.iter().enumerate().map(|(i, route)| written(route, of(i))).collect::<Vec<_>>())
}

/// Runs a case as it stands; where the answer is OkHttp's policy (no proxies or a failing selector mean DIRECT) the
/// default must fail closed, and the policy must give what the case says.
pub(crate) fn route_selector(case: &Value) -> Outcome {
    let mut script = Script::new(case);
    // The SOCKS server's own name has to be known before anybody can connect to it.
    if case["expect"]["dns_calls"].is_array() {
        script.dns.insert("p1".into(), vec![json!(["192.0.2.77"])]);
    }
    let fails_closed = script.selector_error || script.proxies.as_array().is_some_and(Vec::is_empty);
    if fails_closed {
        let closed = script.select();
        if !matches!(&closed[..], [Err(_)]) {
            return Outcome::Fail(format!("the default must fail closed, got {closed:?}"));
        }
        script.settings.direct_on_selector_error = true;
        script.settings.empty_is_direct = true;
    }
    for text in texts(&case["input"]["failed"]) {
        script.database.failed(&script.direct(text), Failure::Refused, 111, 0);
    }
    let rounds = case["input"]["selections_count"].as_u64().unwrap_or(1);
    let given: Vec<_> = (0..rounds).map(|_| script.select()).collect();
    let expect = case.get("expect_byway").unwrap_or(&case["expect"]);
    for (key, want) in expect.as_object().into_iter().flatten() {
        let first = given.first().map(Vec::as_slice).unwrap_or_default();
        let likes = |i: usize| want[i].clone();
        let got = match key.as_str() {
            "selections" => json!(
                first
                    .iter()
                    .enumerate()
                    .map(|(i, given)| match given {
                        Ok(routes) => written_all(routes, &likes(i)),
                        Err(error) => json!({"error": error_name(error)}),
                    })
                    .collect::<Vec<_>>()
            ),
            // byway goes on in the same call, and reports the entry: the events take the place of the errors.
            "next"
                if want.as_array().is_some_and(|want| want.len() > 2 && want[0].get("error").is_some()) =>
            {
                let mut all = script.reported.0.borrow().clone();
                for given in first {
                    match given {
                        Ok(routes) => all.push(written_all(routes, &likes(all.len()))),
                        Err(error) => return Outcome::Fail(format!("stopped at {error}")),
                    }
                }
                all.push(json!("end"));
                json!(all)
            }
            "next" => {
                let mut all: Vec<Value> = first
                    .iter()
                    .enumerate()
                    .map(|(i, given)| match given {
                        Ok(routes) => written_all(routes, &likes(i)),
                        Err(error) if likes(i).get("host").is_some() => {
                            json!({"error": error_name(error), "host": error.about()})
                        }
                        Err(error) => json!({"error": error_name(error)}),
                    })
                    .collect();
                all.push(json!("end"));
                json!(all)
            }
            "order" => match first.first() {
                Some(Ok(routes)) => written_all(routes, want),
                other => json!(format!("{other:?}")),
            },
            "first_routes" => json!(
                given
                    .iter()
                    .enumerate()
                    .map(|(i, round)| match round.first() {
                        Some(Ok(routes)) => {
                            routes.first().map(|route| written(route, want[i].as_str().unwrap_or_default()))
                        }
                        _ => None,
                    })
                    .collect::<Vec<_>>()
            ),
            // The origin's name must not be asked for; the proxy's own is another matter.
            "dns_calls" => json!(
                script.asked.iter().filter(|name| *name == script.address.host().text()).collect::<Vec<_>>()
            ),
            "error" => match first.first() {
                Some(Err(error)) => json!(error_name(error)),
                other => json!(format!("{other:?}")),
            },
            other => return Outcome::Fail(format!("no reading for {other}")),
        };
        if got != *want {
            return Outcome::Fail(format!("{key}: got {got}, want {want}"));
        }
    }
    Outcome::Pass
}

/// `sequence` cases of the areas db, selector and dns; others are not ours.
pub(crate) fn sequence(case: &Value) -> Outcome {
    match case["area"].as_str() {
        Some("db") => database_sequence(case),
        Some("selector") => selector_sequence(case),
        _ => Outcome::Skip,
    }
}

fn database_sequence(case: &Value) -> Outcome {
    let mut script = Script::new(case);
    let named = |script: &Script<'_>, name: &str| {
        let n: u8 = name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(1);
        let text = if name.starts_with('r') { format!("192.0.2.{n}") } else { name.to_owned() };
        script.direct(&text)
    };
    let (mut now, mut selects, mut got) = (0_u64, 0, serde_json::Map::new());
    if script.dns.is_empty() {
        script.dns.insert("h".into(), vec![json!(["192.0.2.1", "192.0.2.2"])]);
    }
    for step in case["input"]["steps"].as_array().into_iter().flatten() {
        let argument = step[1].as_str().unwrap_or_default();
        match step[0].as_str().unwrap_or_default() {
            "report_connected" => script.database.connected(&named(&script, argument)),
            "report_exchange_failed" => {
                script.database.failed(&named(&script, argument), Failure::Io, 0, now)
            }
            "report_connect_failed" | "fail" if argument.starts_with("first route") => {
                let given = script.select();
                let Some(Ok(routes)) = given.first() else { return Outcome::Fail(format!("{given:?}")) };
                script.database.failed(&routes[0], Failure::Refused, 111, now);
            }
            "report_connect_failed" | "fail" => {
                script.database.failed(&named(&script, argument), Failure::Refused, 111, now);
            }
            "fail_distinct_routes" => {
                let count = step[1].as_u64().unwrap_or(0) as u32;
                let mut most = 0;
                for n in 0..count {
                    let hop = Ip::v4((0x0a00_0000 + n).to_be_bytes());
                    let route = Route::new(Arc::clone(&script.address), None, (hop, 80), Ip::NONE, None);
                    script.database.failed(&route, Failure::Refused, 0, now);
                    if n % 1000 == 0 || n + 1 == count {
                        most = most.max(script.database.stats(now).records);
                    }
                }
                let bound = case["expect"]["size_max"].as_u64().unwrap_or(0) as usize;
                got.insert("size_max".into(), json!(if most <= bound { bound } else { most }));
            }
            "advance_clock_s" => now += step[1].as_u64().unwrap_or(0) * 1000,
            "should_postpone" => {
                let route = named(&script, argument);
                let behind = script.database.should_postpone(route.key(), || now);
                got.insert("result".into(), json!(behind));
            }
            "notify_network_changed" => {
                script.database.network_changed();
            }
            "select through copy 2" => {
                let copy = address("http", script.address.host().text(), 80);
                script.address = Arc::new(copy);
                let given = script.select();
                let Some(Ok(routes)) = given.first() else { return Outcome::Fail(format!("{given:?}")) };
                got.insert("first_route_postponed".into(), json!(routes[0].hop().0 != ip("192.0.2.1")));
            }
            "select" => {
                selects += 1;
                let given = script.select();
                let shown: Vec<Vec<String>> = given
                    .iter()
                    .map(|given| match given {
                        Ok(routes) => routes.iter().map(|route| route.hop().0.to_string()).collect(),
                        Err(error) => vec![error_name(error).to_owned()],
                    })
                    .collect();
                let as_names: Vec<Vec<String>> = shown
                    .iter()
                    .map(|list| list.iter().map(|text| text.replace("192.0.2.", "r")).collect())
                    .collect();
                got.insert(format!("select_{selects}"), json!(shown));
                got.insert("selections".into(), json!(as_names));
            }
            other => return Outcome::Fail(format!("step {other}")),
        }
    }
    for (key, want) in case["expect"].as_object().into_iter().flatten() {
        if got.get(key) != Some(want) {
            return Outcome::Fail(format!("{key}: got {:?}, want {want}", got.get(key)));
        }
    }
    Outcome::Pass
}

fn selector_sequence(case: &Value) -> Outcome {
    let mut script = Script::new(case);
    for text in texts(&case["input"]["proxies"]) {
        if let Listed::Proxy(proxy) = listed(text) {
            let n = script.dns.len() + 1;
            script.dns.insert(proxy.host().text().into(), vec![json!([format!("192.0.2.{n}")])]);
        }
    }
    let given: Vec<Route> = script.select().into_iter().flatten().flatten().collect();
    let (mut current, mut told) = (None, Vec::new());
    let mut routes = given.iter();
    for step in case["input"]["steps"].as_array().into_iter().flatten() {
        match (step[0].as_str().unwrap_or_default(), current) {
            ("next", _) => current = routes.next(),
            ("report_connected", Some(route)) => script.database.connected(route),
            ("report_connect_failed", Some(route)) => {
                let failure = Failure::from_text(step[1].as_str().unwrap_or_default()).unwrap_or(Failure::Io);
                let attempt = Attempt {
                    failure,
                    phase: Phase::Tcp,
                    from_selector: route.flags() & route::flag::FROM_SELECTOR != 0,
                    proxied: route.proxy().is_some(),
                    retry_enabled: true,
                };
                let report = report(Compat::Byway, &attempt);
                if report.database {
                    script.database.failed(route, failure, 111, 0);
                }
                if let (true, Some(proxy)) = (report.proxy_selector, route.proxy()) {
                    told.push(json!([format!("{}:{}", proxy.host(), proxy.port()), failure.text()]));
                }
            }
            (other, _) => return Outcome::Fail(format!("step {other}")),
        }
    }
    Outcome::equal(json!({"selector_connect_failed_calls": told}), case["expect"].clone())
}
