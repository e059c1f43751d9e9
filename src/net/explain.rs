//! The whole decision of a selector, as JSON and as text for people. Nothing is recorded for it: it reads what the
//! selector holds anyway, and asks the database why a route is behind.

use super::address::ExplicitProxy;
use super::compat::Compat;
use super::route::{RouteRef, Target, flag};
use super::selector::{Context, Selector};
use core::fmt::Write as _;
use serde_json::{Map, Value, json};

/// Explains as JSON: proxies offered and by whom; per entry of that list the routes found (hop, target, what became
/// of each and why) or the error; and the order that resulted.
pub fn explain_json(selector: &Selector, cx: &Context<'_>) -> Value {
    let address = cx.address;
    let (offered, turned_to) = selector.offered(address);
    let chosen_by = match address.explicit_proxy() {
        Some(ExplicitProxy::Direct | ExplicitProxy::Proxy(_)) => "address",
        None if selector.was_listed() || selector.awaits_proxies() => "proxy selector",
        None if address.proxy_selector() == 0 => "default (no proxy selector)",
        None if cx.settings.compat == Compat::OkHttp5 && !address.uri_has_host() => {
            "default (the proxy selector is skipped: java.net.URI sees no host)"
        }
        None => "default (the proxy selector gave none)",
    };
    let now = (cx.now)();
    let mut order: Vec<(u16, String)> = Vec::new();
    let mut routes: Vec<Vec<Value>> = vec![Vec::new(); offered.len()];
    for (route, proxy, selection, position) in selector.history(address) {
        if selection != 0 {
            order.push((selection, hop_text(&route)));
        }
        if let Some(list) = routes.get_mut(proxy) {
            list.push(route_json(&route, cx, now, selection, position));
        }
    }
    order.sort_by_key(|(selection, _)| *selection);
    let entries: Vec<Value> = offered
        .iter()
        .zip(routes)
        .enumerate()
        .map(|(at, (proxy, routes))| {
            let mut entry = Map::new();
            entry.insert(
                "proxy".into(),
                proxy.map_or_else(|| "DIRECT".into(), |proxy| proxy.to_string().into()),
            );
            let errors: Vec<String> = selector
                .fault_list()
                .filter(|(proxy, _)| *proxy == at)
                .map(|(_, error)| error.to_string())
                .collect();
            let state = match () {
                () if at >= turned_to => "not turned to",
                () if !errors.is_empty() => "failed",
                () if routes.is_empty() => "waiting",
                () => "done",
            };
            entry.insert("state".into(), state.into());
            if let Some(name) = proxy.map_or_else(
                || asked_name(cx),
                |proxy| match proxy.ip() {
                    Some(_) => None,
                    None => Some(proxy.host().text()),
                },
            ) {
                entry.insert("name".into(), name.into());
            }
            if !errors.is_empty() {
                entry.insert("error".into(), errors.join("; ").into());
            }
            entry.insert("routes".into(), routes.into());
            Value::Object(entry)
        })
        .collect();
    let mut document = Map::new();
    document.insert("selector".into(), selector.id().into());
    document.insert("address".into(), address.to_string().into());
    document.insert("uri".into(), address.uri().into());
    document.insert("proxies_from".into(), chosen_by.into());
    if selector.awaits_proxies() {
        document.insert("awaiting".into(), "proxy selector".into());
    } else if let Some(_lookup) = selector.lookup() {
        document.insert("awaiting".into(), format!("DNS: {}", selector.lookup_name(address)).into());
    }
    if let Some((_, error)) = selector.fault_list().find(|(proxy, _)| *proxy == usize::from(u16::MAX)) {
        document.insert("error".into(), error.to_string().into());
    }
    document.insert("entries".into(), entries.into());
    let shown = order.into_iter().map(|(selection, route)| json!({"selection": selection, "route": route}));
    document.insert("order".into(), shown.collect());
    document.insert("network_generation".into(), cx.database.generation().into());
    Value::Object(document)
}

fn asked_name<'a>(cx: &Context<'a>) -> Option<&'a str> {
    match cx.address.host().ip() {
        Some(_) if !cx.settings.resolve_literals => None,
        _ => Some(cx.address.host().text()),
    }
}

fn hop_text(route: &RouteRef<'_>) -> String {
    let (ip, port) = route.hop();
    let hop = if ip.is_some() { ip.with_port(port) } else { "unresolved".to_owned() };
    match route.proxy() {
        Some(proxy) => format!("{hop} ({proxy})"),
        None => hop,
    }
}

fn route_json(route: &RouteRef<'_>, cx: &Context<'_>, now: u64, selection: u16, position: u16) -> Value {
    let mut shown = Map::new();
    let (hop, port) = route.hop();
    if hop.is_some() {
        shown.insert("hop".into(), hop.with_port(port).into());
    }
    let owned = route.to_route();
    let (target, target_port) = owned.target();
    let target = match target {
        Target::Name(name) => format!("{name}:{target_port}"),
        Target::Ip(ip) => ip.with_port(target_port),
    };
    shown.insert("target".into(), target.into());
    shown.insert("answer".into(), (u32::from(position) + 1).into());
    let flags = route.flags();
    let state = match () {
        () if flags & flag::FILTERED != 0 => "refused by the address filter".to_owned(),
        () if selection == 0 => "postponed, not given yet".to_owned(),
        () if flags & flag::POSTPONED != 0 => format!("postponed, given in selection {selection}"),
        () => format!("given in selection {selection}"),
    };
    shown.insert("state".into(), state.into());
    if flags & flag::POSTPONED != 0 {
        shown.insert(
            "postponed".into(),
            match cx.database.get(&route.key(), now) {
                Some(failed) => json!({
                    "failure": failed.failure.text(),
                    "os_errno": failed.os_errno,
                    "failed_ms_ago": failed.age_ms,
                    "periods": failed.periods,
                    "remaining_ms": failed.remaining_ms,
                }),
                None => json!("the failure is over meanwhile"),
            },
        );
    }
    if flags & flag::NOT_CHECKED != 0 {
        shown.insert("target_checked".into(), "not checked: the proxy resolves the name".into());
    }
    if let Some(service) = route.service() {
        shown.insert(
            "service".into(),
            json!({
                "priority": service.priority,
                "alpn": service.alpn.iter().map(|id| String::from_utf8_lossy(id)).collect::<Vec<_>>(),
                "port": service.port,
                "ech_bytes": service.ech.len(),
            }),
        );
    }
    Value::Object(shown)
}

/// The same as text, a few lines for people.
pub fn explain_text(selector: &Selector, cx: &Context<'_>) -> String {
    let document = explain_json(selector, cx);
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{}: proxies from {}", text(&document["address"]), text(&document["proxies_from"]));
    for key in ["awaiting", "error"] {
        if let Some(value) = document.get(key) {
            let _ = writeln!(out, "  {key}: {}", text(value));
        }
    }
    for (i, entry) in document["entries"].as_array().into_iter().flatten().enumerate() {
        let _ = write!(out, "  {}. {}: {}", i + 1, text(&entry["proxy"]), text(&entry["state"]));
        if let Some(name) = entry.get("name") {
            let _ = write!(out, ", name {}", text(name));
        }
        if let Some(error) = entry.get("error") {
            let _ = write!(out, ", {}", text(error));
        }
        out.push('\n');
        for route in entry["routes"].as_array().into_iter().flatten() {
            let hop = route.get("hop").map_or_else(|| "unresolved".to_owned(), &text);
            let _ = write!(out, "       {hop}");
            if route.get("hop") != route.get("target") {
                let _ = write!(out, " -> {}", text(&route["target"]));
            }
            let _ = write!(out, ": {}", text(&route["state"]));
            match route.get("postponed") {
                Some(Value::Object(why)) => {
                    let _ = write!(out, " ({} {} ms ago", text(&why["failure"]), why["failed_ms_ago"]);
                    match &why["remaining_ms"] {
                        Value::Null => out.push_str(", until connected)"),
                        left => {
                            let _ = write!(out, ", {left} ms left)");
                        }
                    }
                }
                Some(other) => {
                    let _ = write!(out, " ({})", text(other));
                }
                None => {}
            }
            if let Some(unchecked) = route.get("target_checked") {
                let _ = write!(out, ", {}", text(unchecked));
            }
            out.push('\n');
        }
    }
    out.push_str("  order:");
    let order = document["order"].as_array().map(Vec::as_slice).unwrap_or_default();
    if order.is_empty() {
        out.push_str(" nothing yet");
    }
    for (i, step) in order.iter().enumerate() {
        let _ = write!(out, "{} {}", if i == 0 { "" } else { "," }, text(&step["route"]));
    }
    out.push('\n');
    out
}
