//! `okhttp.jsonl` under the OkHttp profiles, and the vocabulary that other files' cases share.

use crate::Outcome;
use byway::net::address::{AddressSpec, ExplicitProxy};
use byway::net::events::Listening;
use byway::net::proxy::{ProxyKind, ProxySpec};
use byway::net::recover::{
    Attempt, Connection, Failed, Phase, Recovery, recover, report, retry_tls, track_failure,
};
use byway::net::route::RouteRef;
use byway::net::*;
use byway::{Error, Status};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

pub(crate) fn run(kind: &str, case: &Value) -> Outcome {
    match kind {
        "route_selector" | "route_database" => World::new(case).run(case),
        "inet_order" => {
            let mut ips: Vec<Ip> = texts(&case["input"]).map(ip).collect();
            order::Order::default().apply(&mut ips);
            Outcome::equal(json!(shown(&ips)), case["expect"]["value"].clone())
        }
        "socket_host" => {
            let socket = &case["proxy_socket"];
            let proxy =
                json!({"type": "HTTP", "host": socket["host"], "port": socket["port"], "ip": socket["ip"]});
            let Listed::Proxy(proxy) = listed(&proxy) else { return Outcome::Fail("no proxy".into()) };
            let host = proxy.resolved().map_or_else(|| proxy.host().text().to_owned(), |ip| ip.to_string());
            Outcome::equal(json!(host), case["expect"]["value"].clone())
        }
        "route_to_string" => route_to_string(case),
        "address_equality" => address_equality(case),
        "address_to_string" => {
            let address = address(&case["address"], &case["explicit_proxy"], Compat::OkHttp5);
            let text = address.okhttp_text(case["selector_name"].as_str().unwrap_or_default());
            Outcome::equal(json!(text), case["expect"]["value"].clone())
        }
        "canonical_host" => {
            let host = compat::canonical_host(case["input"].as_str().unwrap_or_default());
            Outcome::equal(json!(host), case["expect"]["value"].clone())
        }
        "looks_like_ip" => {
            let looks = compat::looks_like_ip(case["input"].as_str().unwrap_or_default());
            Outcome::equal(json!(looks), case["expect"]["value"].clone())
        }
        "recover_decision" => recover_decision(case),
        "tls_retry_decision" => Outcome::equal(
            json!(failure(&case["failure"]).is_some_and(retry_tls)),
            case["expect"]["retry"].clone(),
        ),
        "track_failure" => track(case),
        "connect_failure_report" => connect_failure_report(case),
        _ => Outcome::Skip,
    }
}

pub(crate) fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

pub(crate) fn ip(text: &str) -> Ip {
    Ip::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn shown(ips: &[Ip]) -> Vec<String> {
    ips.iter().map(ToString::to_string).collect()
}

fn listed(proxy: &Value) -> Listed {
    let kind = match proxy["type"].as_str() {
        None if proxy.is_null() => return Listed::Null,
        Some("DIRECT") => return Listed::Direct,
        Some("HTTP") => ProxyKind::Http,
        Some("SOCKS") => ProxyKind::Socks5h,
        other => panic!("proxy type {other:?}"),
    };
    let spec = ProxySpec {
        kind,
        host: proxy["host"].as_str().unwrap_or_default(),
        resolved: proxy["ip"].as_str().map(ip),
        port: proxy["port"].as_i64().unwrap_or(0),
        user: None,
        password: None,
    };
    Listed::Proxy(Arc::new(
        Proxy::listed(spec, Compat::OkHttp5, &|_| None).unwrap_or_else(|error| panic!("{error}")),
    ))
}

fn proxy_json(proxy: Option<&Arc<Proxy>>) -> Value {
    let Some(proxy) = proxy else { return json!({"type": "DIRECT"}) };
    let kind = if proxy.kind().is_http() { "HTTP" } else { "SOCKS" };
    let mut shown = json!({"type": kind, "host": proxy.host().text(), "port": proxy.port()});
    if let Some(ip) = proxy.resolved() {
        shown["ip"] = json!(ip.to_string());
    }
    shown
}

fn address(value: &Value, explicit: &Value, profile: Compat) -> Address {
    let protocols: Vec<&[u8]> = texts(&value["protocols"]).map(str::as_bytes).collect();
    let explicit = if explicit.is_null() { None } else { Some(listed(explicit)) };
    let spec = AddressSpec {
        scheme: value["scheme"].as_str().unwrap_or("http"),
        host: value["host"].as_str().unwrap_or_default(),
        port: value["port"].as_i64().unwrap_or(0),
        proxy: match &explicit {
            None | Some(Listed::Null) => None,
            Some(Listed::Direct) => Some(ExplicitProxy::Direct),
            Some(Listed::Proxy(proxy)) => Some(ExplicitProxy::Proxy(proxy)),
        },
        proxy_selector: 1,
        dns: 1,
        protocols: &protocols,
        ..AddressSpec::default()
    };
    Address::new(spec, profile, &|_| None).unwrap_or_else(|error| panic!("{error:?}"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn unhex(text: &str) -> Box<[u8]> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
}

fn route_json(route: &Route) -> Value {
    let (ip, port) = route.socket_address();
    let socket = match ip {
        Some(ip) => json!({"ip": ip.to_string(), "port": port}),
        None => json!({"unresolved_host": route.address().host().text(), "port": port}),
    };
    let mut shown = json!({
        "proxy": proxy_json(route.proxy()),
        "socket": socket,
        "requires_tunnel": route.requires_tunnel(),
    });
    if let Some(service) = route.service().filter(|service| !service.ech.is_empty()) {
        shown["ech_hex"] = json!(hex(&service.ech));
    }
    shown
}

fn route_to_string(case: &Value) -> Outcome {
    let address = Arc::new(address(&case["address"], &Value::Null, Compat::OkHttp5));
    let proxy = match listed(&case["route"]["proxy"]) {
        Listed::Proxy(proxy) => Some(proxy),
        _ => None,
    };
    let socket = &case["route"]["socket"];
    let hop = socket["ip"].as_str().map_or(Ip::NONE, ip);
    let port = socket["port"].as_u64().unwrap_or(0) as u16;
    let service = case["route"]["ech_hex"]
        .as_str()
        .map(|text| Arc::new(Service { ech: unhex(text), ..Service::default() }));
    let route = Route::new(address, proxy, (hop, port), Ip::NONE, service);
    Outcome::equal(json!(route.to_string()), case["expect"]["value"].clone())
}

/// OkHttp's objects become numbers and one opaque TLS identity; objects that are "other" get another number.
fn address_equality(case: &Value) -> Outcome {
    let make = |change: &Value| {
        let of = |key: &str| {
            if change.get(key).is_some() { change[key].clone() } else { case["base"][key].clone() }
        };
        let number = |key: &str| if change.get(key).is_some() { 2 } else { 1 };
        let identity: String = ["tls", "verifier", "pinner", "connection_specs", "specs"]
            .iter()
            .map(|key| format!("{key}={};", change[*key]))
            .collect();
        let protocols = change["protocols"].clone();
        let names: Vec<&[u8]> = match protocols.is_array() {
            true => texts(&protocols).map(str::as_bytes).collect(),
            false => vec![b"h2", b"http/1.1"],
        };
        let proxy = match &change["proxy"] {
            Value::Null => Value::Null,
            Value::String(text) if text == "DIRECT" => json!({"type": "DIRECT"}),
            other if other.is_object() => other.clone(),
            _ => json!({"type": "HTTP", "host": "other", "port": 1}),
        };
        let explicit = if proxy.is_null() { None } else { Some(listed(&proxy)) };
        let (scheme, host) = (of("scheme"), of("host"));
        let spec = AddressSpec {
            scheme: scheme.as_str().unwrap_or("https"),
            host: host.as_str().unwrap_or_default(),
            port: of("port").as_i64().unwrap_or(0),
            proxy: explicit.as_ref().map(|listed| match listed {
                Listed::Proxy(proxy) => ExplicitProxy::Proxy(proxy),
                _ => ExplicitProxy::Direct,
            }),
            proxy_selector: number("selector"),
            dns: number("dns"),
            authenticator: if ["authenticator", "proxy_authenticator"]
                .iter()
                .any(|key| change.get(*key).is_some())
            {
                2
            } else {
                1
            },
            protocols: &names,
            tls_identity_bytes: identity.as_bytes(),
            ..AddressSpec::default()
        };
        Address::new(spec, Compat::OkHttp5, &|_| None).unwrap_or_else(|error| panic!("{error:?}"))
    };
    let (a, b) = (make(&json!({})), make(&case["change"]));
    let expect = &case["expect"];
    let hash =
        if expect["same_hash"].is_null() { Value::Null } else { json!(a.hash_value() == b.hash_value()) };
    let got = json!({"equal": a == b, "equal_non_host": a.equal_non_host(&b), "same_hash": hash});
    Outcome::equal(got, expect.clone())
}

fn failure(value: &Value) -> Option<Failure> {
    Some(match value.as_str()? {
        "plain_io" => Failure::Io,
        "refused" => Failure::Refused,
        "connection_shutdown" => Failure::ConnectionShutdown,
        "file_not_found" => Failure::RequestBody,
        "protocol" => Failure::Protocol,
        "interrupted_io" => Failure::Interrupted,
        "socket_timeout" | "timeout" => Failure::Timeout,
        "tls_handshake_cert_cause" => Failure::TlsCertificate,
        "tls_handshake_other" => Failure::TlsHandshake,
        "tls_peer_unverified" => Failure::TlsPeerUnverified,
        "tls_other" => Failure::Tls,
        "stream_reset_refused" => Failure::StreamRefused,
        "stream_reset_cancel" => Failure::StreamCanceled,
        "stream_reset_other" => Failure::StreamReset,
        "unknown_host" => Failure::UnknownHost,
        "http_code_407_without_http_proxy" => Failure::AuthWithoutProxy,
        "unreachable" => Failure::Unreachable,
        text if text.contains("lost the race") => Failure::Canceled,
        text if text.contains("407") => Failure::ProxyAuth,
        text if text.contains("certificate") => Failure::TlsCertificate,
        text if text.contains("handshake") || text.contains("tls") => Failure::TlsHandshake,
        text if text.contains("timeout") => Failure::Timeout,
        _ => Failure::Io,
    })
}

fn line(case: &Value) -> Compat {
    if case["line"].as_str().is_some_and(|line| line.starts_with('3')) {
        Compat::OkHttp3
    } else {
        Compat::OkHttp5
    }
}

fn flag(value: &Value, default: bool) -> bool {
    value.as_bool().unwrap_or(default)
}

fn recover_decision(case: &Value) -> Outcome {
    let phase = match case["phase"].as_str() {
        Some("connect") => Phase::Tcp,
        Some("tls") => Phase::Tls,
        _ => Phase::Exchange,
    };
    let failed = Failed {
        failure: failure(&case["failure"]).unwrap_or(Failure::Io),
        phase,
        retry_enabled: flag(&case["retry_enabled"], true),
        one_shot: flag(&case["one_shot_body"], false),
        sent: phase == Phase::Exchange,
        exchange_failed: flag(&case["exchange_failed"], true),
        more_routes: flag(&case["more_routes"], true),
    };
    Outcome::equal(json!(recover(line(case), &failed) == Recovery::Retry), case["expect"]["retry"].clone())
}

fn track(case: &Value) -> Outcome {
    let connection = Connection {
        multiplexed: flag(&case["multiplexed"], false),
        successes: case["success_count"].as_u64().unwrap_or(0),
        refused_before: case["refused_before"].as_u64().unwrap_or(0) as u32,
        call_canceled: flag(&case["call_canceled"], false),
        proxied: case["via"] != "DIRECT",
    };
    let tracked = track_failure(&connection, failure(&case["failure"]));
    let got = json!({
        "no_new_exchanges": tracked.no_new_exchanges,
        "route_failure_count": tracked.route_failures,
        "db_failed": tracked.database,
        "selector_notified": tracked.proxy_selector,
    });
    Outcome::equal(got, case["expect"].clone())
}

fn connect_failure_report(case: &Value) -> Outcome {
    let attempt = Attempt {
        failure: failure(&case["failure"]).unwrap_or(Failure::Io),
        phase: match case["phase"].as_str() {
            Some("dns" | "planning") => Phase::Dns,
            Some("tunnel" | "connect") => Phase::Tunnel,
            Some("tls") => Phase::Tls,
            _ => Phase::Tcp,
        },
        from_selector: case["proxy_from"] == "selector",
        proxied: case["via"] != "DIRECT",
        retry_enabled: flag(&case["retry_enabled"], true),
    };
    let compare = |profile, expect: &Value| {
        let told = report(profile, &attempt);
        let all = json!({
            "listener_connect_failed": told.failed_event,
            "selector_notified": told.proxy_selector,
            "db_failed": told.database,
            "next_route_tried": told.next_route,
        });
        let wrong = expect
            .as_object()
            .into_iter()
            .flatten()
            .find(|(key, want)| *key != "v3131" && all[*key] != **want);
        wrong.map(|(key, want)| format!("{profile:?} {key}: got {}, want {want}", all[key.as_str()]))
    };
    let expect = &case["expect"];
    match compare(Compat::OkHttp5, expect).or_else(|| compare(Compat::OkHttp3, &expect["v3131"])) {
        None => Outcome::Pass,
        Some(why) => Outcome::Fail(why),
    }
}

/// One scripted engine: its database outlives the selectors.
struct World {
    profile: Compat,
    settings: Settings,
    database: RouteDatabase,
    address: Arc<Address>,
    proxies: Value,
    dns: HashMap<String, Value>,
    selector: Selector,
    selection: Vec<Route>,
    cursor: usize,
    saved: HashMap<String, Route>,
    uris: Vec<String>,
    asked: Vec<String>,
    events: Events,
    select_count: usize,
}

#[derive(Default)]
struct Events(RefCell<Vec<Value>>);

impl EventSink for Events {
    fn event(&self, event: &Event<'_>) {
        let mut shown = json!({"event": event.kind.name()});
        match event.kind {
            EventKind::ProxySelectStart => shown["url"] = json!(event.subject),
            EventKind::ProxySelectEnd => {
                shown["url"] = json!(event.subject);
                shown["proxies"] = event.proxies.iter().map(listed_json).collect();
            }
            EventKind::DnsStart => shown["host"] = json!(event.subject),
            EventKind::DnsEnd => {
                shown["host"] = json!(event.subject);
                shown["ips"] = json!(self::shown(event.ips));
            }
            _ => {}
        }
        self.0.borrow_mut().push(shown);
    }
}

fn listed_json(listed: &Listed) -> Value {
    match listed {
        Listed::Null => Value::Null,
        Listed::Direct => proxy_json(None),
        Listed::Proxy(proxy) => proxy_json(Some(proxy)),
    }
}

/// The events OkHttp has.
const UPSTREAM: u64 = EventKind::ProxySelectStart.bit()
    | EventKind::ProxySelectEnd.bit()
    | EventKind::DnsStart.bit()
    | EventKind::DnsEnd.bit();

impl World {
    fn new(case: &Value) -> World {
        let profile = line(case);
        let mut settings = Settings { compat: profile, ..Settings::default() };
        settings.order.interleave = flag(&case["fast_fallback"], true);
        let mut world = World {
            profile,
            settings,
            database: RouteDatabase::new(Policy::OKHTTP),
            address: Arc::new(address(&case["address"], &case["explicit_proxy"], profile)),
            proxies: case["selector"].clone(),
            dns: HashMap::new(),
            selector: Selector::new(1),
            selection: Vec::new(),
            cursor: 0,
            saved: HashMap::new(),
            uris: Vec::new(),
            asked: Vec::new(),
            events: Events::default(),
            select_count: 0,
        };
        world.set_dns(&case["dns"]);
        world
    }

    fn set_dns(&mut self, table: &Value) {
        for (name, answer) in table.as_object().into_iter().flatten() {
            self.dns.insert(name.clone(), answer.clone());
        }
    }

    fn run(mut self, case: &Value) -> Outcome {
        for (i, step) in case["steps"].as_array().into_iter().flatten().enumerate() {
            self.uris.clear();
            self.asked.clear();
            self.events.0.borrow_mut().clear();
            let got = self.step(case, step);
            let expect = &step["expect"];
            for (key, want) in expect.as_object().into_iter().flatten() {
                let have = match key.as_str() {
                    "selector_uris" => json!(self.uris),
                    "dns_requests" => json!(self.asked),
                    "events" => json!(*self.events.0.borrow()),
                    "proxies" => {
                        let events = self.events.0.borrow();
                        let end = events.iter().find(|event| event["event"] == "proxy_select_end");
                        end.map_or(Value::Null, |end| end["proxies"].clone())
                    }
                    "message_contains" => {
                        let message = got["message"].as_str().unwrap_or_default();
                        if want.as_str().is_some_and(|want| message.contains(want)) {
                            continue;
                        }
                        json!(message)
                    }
                    "message" => got["message"].clone(),
                    "routes" if step["op"] == "failed_routes" => {
                        let names = want.as_array().into_iter().flatten();
                        let keys: Vec<Value> = names
                            .map(|name| json!(format!("{:?}", self.saved[name.as_str().unwrap()].key())))
                            .collect();
                        if got["keys"] == json!(keys) {
                            continue;
                        }
                        got["keys"].clone()
                    }
                    key => got[key].clone(),
                };
                if have != *want {
                    return Outcome::Fail(format!("step {i} {}: {key}: got {have}, want {want}", step["op"]));
                }
            }
            if got.get("error").is_some() && expect.get("error").is_none() {
                return Outcome::Fail(format!("step {i} {}: {got}", step["op"]));
            }
        }
        Outcome::Pass
    }

    fn step(&mut self, case: &Value, step: &Value) -> Value {
        match step["op"].as_str().unwrap_or_default() {
            "new_selector" => {
                if step.get("address").is_some() {
                    self.address = Arc::new(address(&step["address"], &case["explicit_proxy"], self.profile));
                }
                if step.get("selector").is_some() {
                    self.proxies = step["selector"].clone();
                }
                self.selector.reset(self.selector.id() + 1);
                self.drive(true)
            }
            "has_next_selection" => json!({"value": self.selector.may_have_next()}),
            "next_selection" => self.drive(false),
            "selection_has_next" => json!({"value": self.cursor < self.selection.len()}),
            "next_route" => {
                let Some(route) = self.selection.get(self.cursor) else {
                    return json!({"error": "no_such_element"});
                };
                self.cursor += 1;
                if let Some(name) = step["save_as"].as_str() {
                    self.saved.insert(name.to_owned(), route.clone());
                }
                json!({"route": route_json(route)})
            }
            "connect_failed" => {
                self.database.put(&self.saved[step["route"].as_str().unwrap()], Failure::Io, 0, 0);
                json!({})
            }
            "connected" => {
                self.database.connected(&self.saved[step["route"].as_str().unwrap()]);
                json!({})
            }
            "should_postpone" => {
                let route = &self.saved[step["route"].as_str().unwrap()];
                json!({"value": self.database.should_postpone(route.key(), || u64::MAX - 1)})
            }
            "failed_routes" => {
                let all = self.database.snapshot(1_000_000_000);
                let keys: Vec<String> = all.iter().map(|failed| format!("{:?}", failed.key)).collect();
                json!({"count": all.len(), "keys": keys})
            }
            "set_dns" => {
                self.set_dns(&step["dns"]);
                json!({})
            }
            "clear_dns" => {
                self.dns.clear();
                json!({})
            }
            // The list was copied when it was answered: what becomes of the host's own does not matter.
            "mutate_selector_list" => {
                self.proxies = step["proxies"].clone();
                json!({})
            }
            "selector_request_count" => json!({"count": self.select_count}),
            op => panic!("op {op}"),
        }
    }

    /// Runs the selector to the end of its construction, or to the next Selection.
    fn drive(&mut self, construct: bool) -> Value {
        let (address, settings) = (Arc::clone(&self.address), self.settings.clone());
        let events = std::mem::take(&mut self.events);
        let database = std::mem::replace(&mut self.database, RouteDatabase::new(Policy::OKHTTP));
        let cx = Context {
            address: &address,
            database: &database,
            settings: &settings,
            early_selection: false,
            now: &|| 0,
            listening: Listening::to(&events, UPSTREAM),
        };
        let mut step = if construct { self.selector.start(&cx) } else { self.selector.step(&cx) };
        let got = loop {
            match step {
                Step::NeedProxies => {
                    self.uris.push(address.uri().to_owned());
                    self.select_count += 1;
                    if let Err(error) = self.answer_proxies(&cx) {
                        break error_json(&error);
                    }
                    if construct {
                        break json!({});
                    }
                }
                Step::NeedDns(lookup) => {
                    let name = self.selector.lookup_name(&address).to_owned();
                    self.asked.push(name.clone());
                    self.answer_dns(&cx, lookup, &name);
                }
                Step::Selection(selection) => {
                    let routes = self.selector.routes(&address, &selection);
                    self.selection = routes.map(|route: RouteRef<'_>| route.to_route()).collect();
                    assert_eq!(self.selection.len(), selection.len());
                    self.cursor = 0;
                    break json!({"routes": self.selection.iter().map(route_json).collect::<Vec<_>>()});
                }
                Step::Failed(error) => break error_json(&error),
                Step::Done if construct => break json!({}),
                Step::Done => break json!({"error": "no_such_element"}),
                Step::Wait => panic!("nothing is awaited"),
            }
            step = self.selector.step(&cx);
        };
        self.database = database;
        self.events = events;
        got
    }

    fn answer_proxies(&mut self, cx: &Context<'_>) -> Result<(), Error> {
        match self.proxies["error"].as_str() {
            None => {
                let list = self.proxies.as_array().cloned().unwrap_or_default();
                self.selector.answer_proxies(cx, list.iter().map(listed))
            }
            Some(kind) => {
                let status = if kind == "illegal_argument" { Status::E_ARGUMENT } else { Status::E_HOST };
                let message = self.proxies["message"].as_str().unwrap_or_default();
                self.selector.fail_proxies(cx, Error::new(status, message))
            }
        }
    }

    fn answer_dns(&mut self, cx: &Context<'_>, lookup: Lookup, name: &str) {
        let answer = self.dns.get(name).cloned().unwrap_or_default();
        let (mut ips, mut services) = (Vec::new(), Vec::new());
        for item in answer.as_array().into_iter().flatten() {
            if let Some(text) = item.as_str().or_else(|| item["ip"].as_str()) {
                ips.push(ip(text));
            } else {
                services.push(Arc::new(Service {
                    target: item["target"].as_str().unwrap_or_default().into(),
                    port: item["port"].as_u64().unwrap_or(0) as u16,
                    ech: item["ech_hex"].as_str().map(unhex).unwrap_or_default(),
                    hints: texts(&item["hints"]).map(ip).collect(),
                    ..Service::default()
                }));
            }
        }
        self.selector.answer_dns(cx, lookup.request, &ips, &services, true).unwrap();
    }
}

fn error_json(error: &Error) -> Value {
    let kind = match error.status() {
        Status::E_UNKNOWN_HOST => "unknown_host",
        Status::E_INVALID_PORT => "socket",
        Status::E_ARGUMENT => "illegal_argument",
        Status::E_NULL => "null_pointer",
        Status::E_HOST => "runtime",
        _ => error.status().name(),
    };
    json!({"error": kind, "message": error.message()})
}
