//! Proxy scripts: their answers, their helpers, what they are told.

use crate::proxy::{shown, text};
use byway::proxies::ProxyKind;
use byway::proxies::pac::answer::Answer;
use byway::proxies::pac::wpad;
use serde_json::{Value, json};

/// The browsers' rule, which these cases are about: an answer with nothing usable in it means DIRECT.
pub(crate) fn pac_string(case: &Value) -> Vec<String> {
    let input = &case["input"];
    let kinds = input["keep_types"].as_array().map(|kinds| {
        let kind = |name: &Value| match name.as_str().unwrap_or_default() {
            "direct" => ProxyKind::Direct,
            "http" => ProxyKind::Http,
            "https" => ProxyKind::Https,
            "socks4" => ProxyKind::Socks4,
            "socks4a" => ProxyKind::Socks4a,
            "socks5" | "socks5h" => ProxyKind::Socks5h,
            other => panic!("kind {other}"),
        };
        kinds.iter().map(kind).collect::<Vec<_>>()
    });
    let answer = Answer::parse(text(input, "pac"), ProxyKind::Socks4);
    let answer = answer.and_then(|answer| match &kinds {
        Some(kinds) => answer.keep(kinds),
        None => Ok(answer),
    });
    let expect = &case["expect"];
    match (answer, expect.get("error")) {
        (Err(_), Some(_)) => Vec::new(),
        (Ok(answer), None) => {
            let mut got: Vec<_> = answer.proxies.iter().map(shown).collect();
            if got.is_empty() {
                got.push(json!({"type": "direct"}));
            }
            let got = Value::Array(got);
            if got == expect["proxies"] {
                Vec::new()
            } else {
                vec![format!("got {got}, want {}", expect["proxies"])]
            }
        }
        (got, want) => vec![format!("got {got:?}, want {want:?}")],
    }
}

pub(crate) fn wpad_names(case: &Value) -> Vec<String> {
    let got = wpad::names(text(&case["input"], "local_domain"), None, false);
    if json!(got) == case["expect"]["names"] { Vec::new() } else { vec![format!("got {got:?}")] }
}
