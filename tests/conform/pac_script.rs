//! Proxy scripts that run: helpers, arguments, answers, limits.

use crate::proxy::{as_url, place, shown_list, text};
use byway::error::{Error, Result, Status};
use byway::proxies::pac::{Calendar, Names, NothingUsable, Pac, PacOptions, question};
use byway::proxies::{OwnedTarget, ProxySelector};
use byway::runtime::clock::VirtualClock;
use byway::script::{Limits, Pool, PoolLimits, Zone};
use serde_json::{Value, json};
use std::net::IpAddr;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

static POOL: LazyLock<Pool> = LazyLock::new(|| Pool::new(PoolLimits::default()));

/// Names as a case gives them, and what was asked.
#[derive(Default)]
struct Table {
    names: Vec<(String, IpAddr)>,
    own: Vec<IpAddr>,
    asked: Mutex<Vec<String>>,
    asked_own: Mutex<u64>,
}

impl Table {
    fn new(case: &Value) -> Arc<Table> {
        let mut table = Table::default();
        let ip = |value: &Value| value.as_str().and_then(|text| text.parse().ok()).expect("an address");
        for (name, address) in case["dns"].as_object().into_iter().flatten() {
            if name == "myIpAddress" {
                table.own.push(ip(address));
            } else {
                table.names.push((name.clone(), ip(address)));
            }
        }
        table.own.extend(case["local_addresses"].as_array().into_iter().flatten().map(ip));
        Arc::new(table)
    }
}

impl Names for Table {
    fn resolve(&self, name: &str) -> Result<Vec<IpAddr>> {
        self.asked.lock().unwrap().push(name.to_owned());
        let covers = |pattern: &str| match pattern.strip_prefix('*') {
            Some(suffix) => name.ends_with(suffix),
            None => name == pattern,
        };
        let found: Vec<_> = self.names.iter().filter(|(p, _)| covers(p)).map(|(_, ip)| *ip).collect();
        if found.is_empty() { Err(Error::bare(Status::E_UNKNOWN_HOST)) } else { Ok(found) }
    }

    fn own_addresses(&self) -> Vec<IpAddr> {
        *self.asked_own.lock().unwrap() += 1;
        self.own.clone()
    }
}

/// Seconds since 1970 of `YYYY-MM-DDTHH:MM:SSZ`.
fn instant(text: &str) -> i64 {
    let number = |range: std::ops::Range<usize>| text[range].parse::<i64>().expect("digits");
    let (y, m, d) = (number(0..4), number(5..7), number(8..10));
    // Days from civil: March-based years make leap days last.
    let (y, m) = if m <= 2 { (y - 1, m + 9) } else { (y, m - 3) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + d - 1 - 719_468;
    days * 86_400 + number(11..13) * 3600 + number(14..16) * 60 + number(17..19)
}

fn options(now: Option<&str>, calendar: Calendar) -> PacOptions {
    let clock = VirtualClock::new(now.map_or(0, |now| instant(now) * 1000)).clock();
    // Ample, so that a busy machine changes no answer; cases about time bring their own.
    let limits = Limits { time: Duration::from_secs(60), ..Limits::default() };
    PacOptions { clock, limits, zone: Zone::Fixed(0), calendar, ..PacOptions::default() }
}

fn selector(script: &str, names: &Arc<Table>, options: PacOptions) -> Pac {
    Pac::new("pac", script.to_owned(), POOL.clone(), names.clone(), options).expect("a script")
}

const EMPTY: &str = "function FindProxyForURL(url, host) { return 'DIRECT'; }";

/// A script for the cases that describe one in words.
fn described(script: &str) -> String {
    let nth = match script {
        "(FindProxyForURL is a getter that throws on first access)" => 1,
        "(FindProxyForURL is a getter that throws on second access)" => 2,
        _ => return script.to_owned(),
    };
    format!(
        "var n = 0; Object.defineProperty(globalThis, 'FindProxyForURL', {{ get() {{ \
         if (++n >= {nth}) throw new Error('no'); return function () {{ return 'DIRECT'; }}; }} }});"
    )
}

/// Browsers' rules: these cases are about what scripts in the wild rely on.
pub(crate) fn pac(case: &Value) -> Vec<String> {
    let input = &case["input"];
    let expect = &case["expect"];
    let names = Table::new(input);
    let mut options = PacOptions {
        nothing_usable: NothingUsable::Direct,
        ..options(input["now"].as_str(), Calendar::Browser)
    };
    if expect["error"] == "pac_timeout" {
        options.limits = Limits::default();
    }
    let problem = |what: &str, got: String, want: &Value| vec![format!("{what}: got {got}, want {want}")];
    let same = |what: &str, got: Value, want: &Value| {
        if got == *want { Vec::new() } else { problem(what, got.to_string(), want) }
    };
    match text(input, "op") {
        "helper" => {
            let got = selector(EMPTY, &names, options).evaluate(text(input, "expr"));
            match (got, expect["throws"].as_bool()) {
                (Err(error), Some(true)) if error.status() == Status::E_PAC => {
                    let kind = expect["kind"].as_str().unwrap_or_default();
                    if error.message().contains(kind) {
                        Vec::new()
                    } else {
                        problem("kind", format!("{error:?}"), expect)
                    }
                }
                (Ok((json, _)), None) => {
                    same("value", serde_json::from_str(&json).unwrap_or(json!(json)), &expect["value"])
                }
                (got, _) => problem("helper", format!("{got:?}"), expect),
            }
        }
        "helper_resolver_sees" => {
            let got = selector(EMPTY, &names, options).evaluate(text(input, "expr"));
            let asked = names.asked.lock().unwrap().clone();
            let mut problems = same("resolver_input", json!(asked), &expect["resolver_input"]);
            if let Err(error) = got {
                problems.push(format!("{error:?}"));
            }
            problems
        }
        "alert" => match selector(EMPTY, &names, options).evaluate(text(input, "expr")) {
            Ok((_, alerts)) => same("logged", json!(alerts.trim_end_matches('\n')), &expect["logged"]),
            Err(error) => vec![format!("{error:?}")],
        },
        "arguments" => {
            let target = OwnedTarget::parse(text(input, "url")).expect("a URL");
            let mut problems =
                same("url", json!(question::url_argument(&target.borrow())), &expect["url_arg"]);
            problems.extend(same(
                "host",
                json!(question::host_argument(&target.borrow())),
                &expect["host_arg"],
            ));
            problems
        }
        "find" => find(input, expect, &names, options),
        other => vec![format!("unknown op {other}")],
    }
}

fn find(input: &Value, expect: &Value, names: &Arc<Table>, options: PacOptions) -> Vec<String> {
    let mut problems = Vec::new();
    let script = described(text(input, "script"));
    let pac = selector(&script, names, options.clone());
    let loaded = pac.load();
    let target = OwnedTarget::parse(input["url"].as_str().unwrap_or("http://example.com/")).expect("a URL");
    let ask = |pac: &Pac| pac.select(&target.borrow()).map(|choice| choice.proxies);
    if let Some(error) = expect["error"].as_str() {
        let stage = expect["stage"].as_str();
        let got = match (stage, loaded) {
            (Some("load"), loaded) => loaded,
            (_, Ok(())) => ask(&pac).map(|_| ()),
            (_, Err(error)) => Err(error),
        };
        match got {
            Ok(()) => problems.push(format!("got an answer, want {error}")),
            Err(got) => {
                let kind = match got.status() {
                    Status::E_TIMEOUT => "pac_timeout",
                    Status::E_LIMIT => "pac_memory",
                    Status::E_PAC => "pac_script_failed",
                    _ => "other",
                };
                let loading = got.message().starts_with("while loading");
                if !error.split('|').any(|one| one == kind) || stage.is_some_and(|s| loading != (s == "load"))
                {
                    problems.push(format!("got {got:?}, want {expect}"));
                }
            }
        }
        return problems;
    }
    if let Err(error) = loaded {
        return vec![format!("{error:?}")];
    }
    if let Some(want) = expect.get("sequence") {
        let places = |pac: &Pac| {
            let count = input["calls"].as_u64().expect("calls");
            let place = |_| {
                ask(pac).map_or_else(|e| e.to_string(), |l| format!("{}:{}", place(&l[0]).0, place(&l[0]).1))
            };
            json!((0..count).map(place).collect::<Vec<_>>())
        };
        let got = places(&pac);
        let again = places(&selector(&script, names, options));
        if got != *want || again != expect["after_reload"] {
            problems.push(format!("got {got} and after reload {again}, want {expect}"));
        }
        return problems;
    }
    match ask(&pac) {
        Ok(list) if shown_list(&list) == expect["proxies"] => {}
        got => problems.push(format!("got {got:?}, want {expect}")),
    }
    if let Some(want) = expect["my_ip_calls"].as_u64() {
        let got = *names.asked_own.lock().unwrap();
        // The call that loads puts the question once; the call that asks has the answer in its globals.
        if got != want {
            problems.push(format!("own addresses were asked {got} times, want {want}"));
        }
    }
    problems
}

/// The defaults.
pub(crate) fn bug_pac(case: &Value) -> Vec<String> {
    let input = &case["input"];
    let expect = &case["expect"];
    let names = Table::new(input);
    let mut options = options(input["clock"].as_str(), Calendar::Plain);
    if let Some(budget) = input["budget_ms"].as_u64() {
        options.limits = Limits { time: Duration::from_millis(budget), ..options.limits };
    }
    let target = OwnedTarget::parse(text(input, "url")).expect("a URL");
    let urls = |choice: &byway::proxies::Choice| choice.proxies.iter().map(as_url).collect::<Vec<_>>();
    let mut problems = Vec::new();
    let pac = selector(text(input, "script"), &names, options.clone());
    match (pac.select(&target.borrow()), expect.get("error")) {
        (Ok(choice), None) => {
            let skipped = match &choice.why {
                byway::proxies::Why::Script(said) => Some(said.skipped.len()),
                _ => None,
            };
            if expect.get("skipped").is_some_and(|want| json!(skipped) != *want) {
                problems.push(format!("skipped {skipped:?}, want {}", expect["skipped"]));
            }
            let got = json!(urls(&choice));
            let want = json!(
                expect["proxies"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|v| v
                        .as_str()
                        .unwrap_or_default()
                        .replace("socks5://", "socks5h://")
                        .replace("socks://", "socks4://"))
                    .collect::<Vec<_>>()
            );
            if got != want {
                problems.push(format!("got {got}, want {want}"));
            }
        }
        (Err(error), Some(want)) => {
            let status = match want.as_str().unwrap_or_default() {
                "pac_timeout" => Status::E_TIMEOUT,
                "pac_memory" => Status::E_LIMIT,
                _ => Status::E_PAC,
            };
            if error.status() != status {
                problems.push(format!("got {error:?}, want {want}"));
            }
            if want == "pac_syntax" && error.position().is_none() {
                problems.push(format!("no line and column: {error:?}"));
            }
        }
        (got, want) => problems.push(format!("got {got:?}, want {want:?}")),
    }
    if let Some(then) = expect.get("then") {
        let next = selector(text(then, "script"), &names, options);
        match next.select(&target.borrow()) {
            Ok(choice) if json!(urls(&choice)) == then["proxies"] => {}
            other => problems.push(format!("then: got {other:?}, want {then}")),
        }
    }
    problems
}
