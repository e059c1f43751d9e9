//! The same inputs through the programs whose dialects are spoken here, as far as they are on this machine: curl,
//! the JDK, Python. Every difference must be one of those listed with its reason.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use byway::proxies::jdk::{JdkProperties, Properties, WebSockets};
use byway::proxies::no_proxy::{Dialect, NoProxy};
use byway::proxies::{Listed, OwnedTarget, ProxyKind, ProxySelector};
use serde_json::Value;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

fn cases(kind: &str) -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/proxy.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let all = text.lines().filter(|l| !l.is_empty()).map(|l| serde_json::from_str::<Value>(l).unwrap());
    all.filter(|case| case["kind"] == kind).collect()
}

/// Feeds lines to a program and gives its lines; `None` when the program is not here.
fn ask(program: &str, arguments: &[&str], lines: &[String]) -> Option<Vec<String>> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut input = child.stdin.take().unwrap();
    let text = lines.join("\n") + "\n";
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let mut output = String::new();
    child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    let _ = writer.join();
    child.wait().unwrap().success().then(|| output.lines().map(str::to_owned).collect())
}

/// Prints what differs and compares the ids with the list of known ones.
fn compare(oracle: &str, differing: &[String], known: &[(&str, &str)]) {
    println!("{oracle}: {} differences", differing.len());
    for id in differing {
        let reason = known.iter().find(|(known, _)| known == id).map(|(_, reason)| *reason);
        println!("{oracle}: {id}: {}", reason.unwrap_or("unexplained"));
        assert!(reason.is_some(), "{oracle}: {id} differs without a known reason");
    }
}

fn id(case: &Value) -> String {
    case["id"].as_str().unwrap().to_owned()
}

/// Lists and URLs that fit into a line of text.
fn no_proxy_cases() -> Vec<(String, String, String)> {
    let all = cases("noproxy").into_iter().map(|case| {
        let text = |key: &str| case["input"][key].as_str().unwrap().to_owned();
        (id(&case), text("no_proxy"), text("url"))
    });
    all.collect()
}

#[test]
fn python_urllib() {
    let program = "import sys, urllib.request as r, urllib.parse as p\n\
        for line in sys.stdin.buffer.read().decode().split('\\n')[:-1]:\n\
        \x20   no, url = line.split('\\x01')\n\
        \x20   print(r.proxy_bypass_environment(r.Request(url).host, {'no': no}) if no else False)\n";
    let cases = no_proxy_cases();
    let lines: Vec<_> = cases.iter().map(|(_, list, url)| format!("{list}\x01{url}")).collect();
    let Some(answers) = ask("python3", &["-c", program], &lines) else {
        println!("python3 is not on this machine");
        return;
    };
    assert_eq!(answers.len(), cases.len());
    let ours = |list: &str, url: &str| {
        NoProxy::new(list, Dialect::Python).decide(&OwnedTarget::parse(url).unwrap().borrow()).is_some()
    };
    let differs =
        cases.iter().zip(&answers).filter(|((_, list, url), answer)| ours(list, url) != (*answer == "True"));
    let differing: Vec<_> = differs.map(|((id, ..), _)| id.clone()).collect();
    compare("python", &differing, &[]);
}

#[test]
fn jdk_default_proxy_selector() {
    let cases = cases("nonproxyhosts");
    let properties = |case: &Value| -> Vec<(String, String)> {
        let map = case["input"]["properties"].as_object().unwrap();
        map.iter().map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned())).collect()
    };
    let line = |case: &Value| {
        let mut parts: Vec<_> =
            properties(case).iter().map(|(name, value)| format!("{name}={value}")).collect();
        parts.push(case["input"]["url"].as_str().unwrap().to_owned());
        parts.join("\t")
    };
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracles/ProxyOracle.java");
    let lines: Vec<_> = cases.iter().map(line).collect();
    let Some(answers) = ask("java", &[source], &lines) else {
        println!("java is not on this machine");
        return;
    };
    assert_eq!(answers.len(), cases.len());
    let ours = |case: &Value| {
        let properties: Properties = properties(case).into_iter().collect();
        let target = OwnedTarget::parse(case["input"]["url"].as_str().unwrap());
        let selector = JdkProperties::new(&properties, WebSockets::Direct);
        match target.and_then(|target| selector.select(&target.borrow())) {
            Err(_) => "IllegalArgumentException".to_owned(),
            Ok(choice) => match &choice.proxies[0] {
                Listed::Proxy(proxy) => {
                    let kind = if proxy.kind() == ProxyKind::Http { "HTTP" } else { "SOCKS" };
                    format!("{kind} {}:{}", proxy.host().text(), proxy.port())
                }
                _ => "DIRECT".into(),
            },
        }
    };
    let differs = cases.iter().zip(&answers).filter(|(case, answer)| ours(case) != **answer);
    let differing: Vec<_> = differs.map(|(case, _)| id(case)).collect();
    compare("jdk", &differing, &[]);
}

#[test]
fn curl() {
    if Command::new("curl").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("curl is not on this machine");
        return;
    }
    // Two ports nobody listens on: which of them curl tries tells whether it went through the proxy.
    let (proxy, direct) = (1, 2);
    let proxied = |list: &str, url: &str| {
        let output = Command::new("curl")
            .args([
                "-sv",
                "--max-time",
                "5",
                "--noproxy",
                list,
                "--connect-to",
                &format!("::127.0.0.1:{direct}"),
            ])
            .args(["--proxy", &format!("http://127.0.0.1:{proxy}"), "--globoff", url])
            .env_clear()
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        match (
            said.contains(&format!("127.0.0.1:{proxy}...")),
            said.contains(&format!("127.0.0.1:{direct}...")),
        ) {
            (true, false) => Some(true),
            (false, true) => Some(false),
            _ => None,
        }
    };
    let mut differing = Vec::new();
    for (id, list, url) in no_proxy_cases() {
        // Schemes this curl does not speak, and hosts it refuses, have no answer.
        let Some(proxied) = proxied(&list, &url) else { continue };
        let ours =
            NoProxy::new(&list, Dialect::Curl).decide(&OwnedTarget::parse(&url).unwrap().borrow()).is_some();
        if ours == proxied {
            differing.push(id);
        }
    }
    const V6: &str =
        "curl 7 takes an IPv6 host's brackets along and then misses unbracketed entries; mended in curl 8";
    const BLANK: &str = "curl 7 lets a blank separate entries; curl 8 ends the list there";
    let known = ["np-039", "np-040", "np-043", "np-044", "np-052", "np-073", "np-150", "np-194", "np-198"]
        .map(|id| (id, V6))
        .into_iter()
        .chain(["np-214", "np-215"].map(|id| (id, BLANK)))
        .collect::<Vec<_>>();
    compare("curl", &differing, &known);
}
