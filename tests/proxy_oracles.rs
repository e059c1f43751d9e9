//! The same inputs through the programs whose dialects are spoken here, as far as they are on this machine: curl,
//! the JDK, Python. Every difference must be one of those listed with its reason.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use byway::proxies::environment::Environment;
use byway::proxies::jdk::{JdkProperties, Properties, WebSockets};
use byway::proxies::no_proxy::{Dialect, NoProxy};
use byway::proxies::{Choice, Listed, OwnedTarget, ProxyKind, ProxySelector, Why};
use serde_json::{Value, json};
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

/// The variable that decides, by Python's own reading of an environment.
#[test]
fn python_urllib_environment() {
    let program = "import json, os, sys, urllib.request as r\n\
        for line in sys.stdin.buffer.read().decode().split('\\n')[:-1]:\n\
        \x20   table, url = json.loads(line)\n\
        \x20   os.environ.clear(); os.environ.update(table)\n\
        \x20   asked = r.Request(url)\n\
        \x20   found = r.getproxies_environment().get(asked.type)\n\
        \x20   print('DIRECT' if not found or r.proxy_bypass_environment(asked.host) else found)\n";
    let cases = cases("env");
    let lines: Vec<_> =
        cases.iter().map(|case| json!([case["input"]["env"], case["input"]["url"]]).to_string()).collect();
    let Some(answers) = ask("python3", &["-c", program], &lines) else {
        println!("skipped: python3 is not on this machine");
        return;
    };
    assert_eq!(answers.len(), cases.len());
    let ours = |case: &Value| {
        let table: Vec<(String, String)> = case["input"]["env"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()))
            .collect();
        let target = OwnedTarget::parse(case["input"]["url"].as_str().unwrap()).unwrap();
        let environment = Environment::new(&table.iter().cloned().collect(), Dialect::Python);
        let name = match environment.select(&target.borrow()) {
            Ok(Choice { why: Why::Variable(name), .. }) => name.to_string(),
            Ok(_) => return "DIRECT".to_owned(),
            Err(error) => error.about().to_owned(),
        };
        table.into_iter().find(|(known, _)| *known == name).unwrap().1
    };
    let differs = cases.iter().zip(&answers).filter(|(case, answer)| ours(case) != **answer);
    let differing: Vec<_> = differs.map(|(case, _)| id(case)).collect();
    compare("python environment", &differing, &[]);
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
        println!("skipped: python3 is not on this machine");
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

/// Properties and a URL.
type Setting = (Vec<(String, String)>, String);

/// Settings nobody wrote down: the same for the same seed.
fn settings(count: usize) -> Vec<Setting> {
    let mut state = 0x2026_1130_u64;
    let mut draw = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    let hosts = ["p", "", "proxy.example", "10.1.1.1", "a_b", " p"];
    let ports = [
        "3128",
        "0",
        "abc",
        "",
        " 80",
        "010",
        "08",
        "0x50",
        "#50",
        "+81",
        "-1",
        "-0",
        "65535",
        "65536",
        "99999999999",
        "8080x",
        "0X1f90",
        "+",
        "--1",
    ];
    let lists = [
        "",
        "|",
        "*.example",
        "example.com|*.org",
        "*",
        "**",
        "*a*",
        "EXAMPLE.COM",
        " example.com",
        "10.*",
        "w*.com",
        "[::1]",
        "host_a",
        "||*.com|",
    ];
    let targets = [
        "example.com",
        "www.example.com",
        "localhost",
        "127.0.0.1",
        "[::1]",
        "10.1.2.3",
        "host_a",
        "Example.COM",
        "a.org",
        "127.evil.com",
        "x.example:8080",
    ];
    let one = |_| {
        let mut properties = Vec::new();
        for prefix in ["http.proxy", "https.proxy", "ftp.proxy", "ftpProxy", "proxy", "socksProxy"] {
            if draw(3) == 0 {
                properties.push((format!("{prefix}Host"), hosts[draw(hosts.len())].to_owned()));
            }
            if draw(3) == 0 {
                properties.push((format!("{prefix}Port"), ports[draw(ports.len())].to_owned()));
            }
        }
        for name in ["http.nonProxyHosts", "https.nonProxyHosts", "ftp.nonProxyHosts", "socksNonProxyHosts"] {
            if draw(3) == 0 {
                properties.push((name.to_owned(), lists[draw(lists.len())].to_owned()));
            }
        }
        if draw(3) == 0 {
            let version = ["4", "5", " 4", "04", "0x4", "four", ""][draw(7)];
            properties.push(("socksProxyVersion".to_owned(), version.to_owned()));
        }
        let scheme = ["http", "https", "ftp", "socket", "ws", "gopher"][draw(6)];
        (properties, format!("{scheme}://{}/", targets[draw(targets.len())]))
    };
    (0..count).map(one).collect()
}

#[test]
fn jdk_default_proxy_selector() {
    let mut all: Vec<(String, Setting)> = Vec::new();
    for case in cases("nonproxyhosts") {
        let map = case["input"]["properties"].as_object().unwrap();
        let properties =
            map.iter().map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned())).collect();
        all.push((id(&case), (properties, case["input"]["url"].as_str().unwrap().to_owned())));
    }
    all.extend(settings(2000).into_iter().map(|setting| (format!("{setting:?}"), setting)));
    let line = |(properties, url): &Setting| {
        let mut parts: Vec<_> = properties.iter().map(|(name, value)| format!("{name}={value}")).collect();
        parts.push(url.clone());
        parts.join("\t")
    };
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracles/ProxyOracle.java");
    let lines: Vec<_> = all.iter().map(|(_, setting)| line(setting)).collect();
    let Some(answers) = ask("java", &["--add-exports", "java.base/sun.net=ALL-UNNAMED", source], &lines)
    else {
        println!("skipped: java is not on this machine");
        return;
    };
    assert_eq!(answers.len(), all.len());
    let ours = |(properties, url): &Setting| {
        let properties: Properties = properties.iter().cloned().collect();
        let target = OwnedTarget::parse(url);
        let selector = JdkProperties::new(&properties, WebSockets::Direct);
        match target.and_then(|target| selector.select(&target.borrow())) {
            Err(_) => "IllegalArgumentException".to_owned(),
            Ok(choice) => match &choice.proxies[0] {
                Listed::Proxy(proxy) => {
                    let kind = match proxy.kind() {
                        ProxyKind::Http => "HTTP",
                        ProxyKind::Socks4 => "SOCKS4",
                        _ => "SOCKS",
                    };
                    format!("{kind} {}:{}", proxy.host().text(), proxy.port())
                }
                _ => "DIRECT".into(),
            },
        }
    };
    let ours: Vec<_> = all.iter().map(|(_, setting)| ours(setting)).collect();
    let mut asked = 0;
    for java in jvms() {
        let options = ["--add-exports", "java.base/sun.net=ALL-UNNAMED", source];
        let Some(answers) = ask(&java, &options, &lines) else { continue };
        asked += 1;
        assert_eq!(answers.len(), all.len());
        let differs = all.iter().zip(ours.iter().zip(&answers)).filter(|(_, (ours, answer))| ours != answer);
        let differing: Vec<_> =
            differs.map(|((id, _), (ours, answer))| format!("{id}: {ours}, not {answer}")).collect();
        compare(&java, &differing, &[]);
    }
    if asked == 0 {
        println!("skipped: no Java that compiles on this machine");
    }
}

/// Every Java there is, once.
fn jvms() -> Vec<String> {
    let mut found: Vec<std::path::PathBuf> = Vec::new();
    let path = std::env::var("PATH").unwrap_or_default();
    let by_path = path.split(':').map(|folder| std::path::Path::new(folder).join("java"));
    let installed = std::fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten();
    for program in by_path.chain(installed.map(|entry| entry.path().join("bin/java"))) {
        if let Ok(program) = program.canonicalize()
            && !found.contains(&program)
        {
            found.push(program);
        }
    }
    found.into_iter().filter_map(|program| program.into_os_string().into_string().ok()).collect()
}

#[test]
fn curl() {
    if Command::new("curl").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("skipped: curl is not on this machine");
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
