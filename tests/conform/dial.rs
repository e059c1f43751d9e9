//! Cases about dialling: races on a virtual clock, SOCKS and CONNECT bytes, proxy dialogues.

use crate::Outcome;
use byway::dial::connect::{Answer, Limits, Reply, Request, basic};
use byway::dial::handshake::{Handshake, Protocol, Settings, Want};
use byway::dial::socks::{Bound, Credentials, Host, Options, Socks, Version};
use byway::dial::{Blame, Fault};
use serde_json::{Value, json};

/// Every way to cut `bytes` in two, the whole, and byte by byte.
fn splits(bytes: &[u8]) -> Vec<Vec<&[u8]>> {
    let mut all = vec![vec![bytes], bytes.chunks(1).collect()];
    // Long inputs are cut at a sample of places.
    let step = if bytes.len() > 65_536 { bytes.len() / 24 } else { (bytes.len() / 600).max(1) };
    all.extend((1..bytes.len()).step_by(step).map(|at| vec![&bytes[..at], &bytes[at..]]));
    all
}

/// The lengths of the first piece and of each further one for every way to cut answers of at most `longest` bytes.
fn cuts(longest: usize) -> impl Iterator<Item = (usize, usize)> {
    [(longest, longest), (1, 1)].into_iter().chain((1..longest).map(move |first| (first, longest)))
}

/// One answer cut so.
fn pieces(bytes: &[u8], (first, rest): (usize, usize)) -> impl Iterator<Item = &[u8]> {
    let (head, tail) = bytes.split_at(first.min(bytes.len()));
    std::iter::once(head).chain(tail.chunks(rest))
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex")).collect()
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn flag(value: &Value, names: &[&str]) -> bool {
    names.iter().any(|name| value[*name].as_bool().unwrap_or(false))
}

fn bound_text(bound: Option<&Bound>) -> Value {
    match bound {
        None => Value::Null,
        Some(Bound::Ip(ip, port)) => json!([ip.to_string(), port]),
        Some(Bound::Name(name, port)) => json!([name, port]),
    }
}

// ---- SOCKS

pub(crate) fn socks(case: &Value) -> Outcome {
    let expect = &case["expect"];
    let recv: Vec<Vec<u8>> =
        case["recv"].as_array().expect("recv").iter().map(|m| hex(m.as_str().expect("hex"))).collect();
    let total = recv.concat();
    for cut in splits(&total) {
        // The listed messages one by one is the first way; a split of everything is each other one.
        let got = socks_dialogue(case, &cut);
        if got != *expect {
            return Outcome::Fail(format!("cut {:?}: got {got}, want {expect}", lengths(&cut)));
        }
    }
    let messages: Vec<&[u8]> = recv.iter().map(Vec::as_slice).collect();
    Outcome::equal(socks_dialogue(case, &messages), expect.clone())
}

fn lengths(cut: &[&[u8]]) -> Vec<usize> {
    cut.iter().map(|part| part.len()).take(4).collect()
}

fn socks_dialogue(case: &Value, parts: &[&[u8]]) -> Value {
    let version = match case["version"].as_str() {
        Some("4") => Version::V4,
        Some("4a") => Version::V4a,
        _ => Version::V5,
    };
    let options = &case["options"];
    let options = Options {
        strict: flag(options, &["strict", "socks_strict"]),
        require_auth: flag(options, &["require_auth"]),
        optimistic: flag(options, &["optimistic", "socks_optimistic"]),
    };
    let credentials = case["user"]
        .as_str()
        .map(|user| Credentials { user, password: case["password"].as_str().unwrap_or_default() });
    let port = case["port"].as_u64().expect("port") as u16;
    let mut sent = Vec::new();
    let error =
        |sent: Vec<String>, fault: Fault| json!({"sent": sent, "result": "error", "error": fault.name()});
    let made = Host::parse(case["host"].as_str().expect("host"))
        .and_then(|host| Socks::new(version, host, port, credentials, options));
    let mut socks = match made {
        Ok(socks) => socks,
        Err(fault) => return error(sent, fault),
    };
    let drain = |socks: &mut Socks, sent: &mut Vec<String>| {
        if !socks.output().is_empty() {
            sent.push(to_hex(socks.output()));
            socks.sent(socks.output().len());
        }
    };
    drain(&mut socks, &mut sent);
    let mut leftover = Vec::new();
    for part in parts {
        // Never more than may be taken, so that what is behind stays in the socket.
        let mut rest = *part;
        while !rest.is_empty() {
            let want = socks.want_read();
            if want == 0 {
                leftover.extend_from_slice(rest);
                break;
            }
            let (now, later) = rest.split_at(want.min(rest.len()));
            match socks.feed(now) {
                Ok(used) if used == now.len() => {}
                Ok(used) => panic!("took {used} of {} bytes it may take", now.len()),
                Err(fault) => return error(sent, fault),
            }
            drain(&mut socks, &mut sent);
            rest = later;
        }
    }
    if case["eof"] == true
        && let Err(fault) = socks.eof()
    {
        return error(sent, fault);
    }
    if !socks.is_done() {
        return json!({"sent": sent, "result": "pending"});
    }
    let mut got = json!({"sent": sent, "result": "connected", "leftover": to_hex(&leftover)});
    if version == Version::V5 {
        got["bound"] = bound_text(socks.bound());
    }
    got
}

pub(crate) fn socks5_auth(case: &Value) -> Outcome {
    let input = &case["input"];
    let text = |name: &str| input[name].as_str().unwrap_or_default();
    let credentials = Credentials { user: text("user"), password: text("password") };
    let made = Socks::new(Version::V5, Host::Name("o.example"), 443, Some(credentials), Options::default());
    let got = made.and_then(|mut socks| {
        socks.sent(socks.output().len());
        socks.feed(&[5, 2])?;
        Ok(to_hex(socks.output()))
    });
    match got {
        Ok(bytes) => Outcome::equal(json!({ "bytes_hex": bytes }), case["expect"].clone()),
        Err(fault) => known_error(fault, &case["expect"]),
    }
}

/// Errors of the bug log are named in the reporters' words.
fn known_error(fault: Fault, expect: &Value) -> Outcome {
    let Some(want) = expect["error"].as_str() else {
        return Outcome::Fail(format!("got {fault}, want {expect}"));
    };
    let fits = match want {
        "unexpected_eof" => matches!(fault, Fault::Truncated | Fault::ProxyClosed),
        "protocol" | "protocol_error" | "bad_status" => fault.status() == byway::Status::E_PROXY_PROTOCOL,
        "too_long" | "name_too_long" => {
            matches!(fault, Fault::LongHost | Fault::LongUser | Fault::LongPassword)
        }
        other => other.eq_ignore_ascii_case(fault.name()) || other.eq_ignore_ascii_case(&fault.to_string()),
    };
    if fits { Outcome::Pass } else { Outcome::Fail(format!("got {fault}, want {want}")) }
}

pub(crate) fn socks5_reply(case: &Value) -> Outcome {
    let bytes = hex(case["input"]["hex"].as_str().expect("hex"));
    for cut in splits(&bytes) {
        let mut socks =
            Socks::new(Version::V5, Host::Name("o.example"), 443, None, Options::default()).expect("fine");
        socks.sent(socks.output().len());
        socks.feed(&[5, 0]).expect("no authentication");
        socks.sent(socks.output().len());
        let mut leftover = Vec::new();
        let mut fault = None;
        for part in cut {
            match socks.feed(part) {
                Ok(used) => leftover.extend_from_slice(&part[used..]),
                Err(found) => {
                    fault = Some(found);
                    break;
                }
            }
        }
        let outcome = match fault {
            Some(fault) => known_error(fault, &case["expect"]),
            None => {
                let bound = match socks.bound() {
                    Some(Bound::Ip(ip, port)) => std::net::SocketAddr::new(*ip, *port).to_string(),
                    Some(Bound::Name(name, port)) => format!("{name}:{port}"),
                    None => return Outcome::Fail("not finished".into()),
                };
                let got = json!({"ok": true, "bound": bound, "leftover_hex": to_hex(&leftover)});
                Outcome::equal(got, case["expect"].clone())
            }
        };
        if !matches!(outcome, Outcome::Pass) {
            return outcome;
        }
    }
    Outcome::Pass
}

// ---- CONNECT, one answer

fn latin1(text: &str) -> Vec<u8> {
    text.chars().map(|c| u8::try_from(u32::from(c)).expect("latin-1")).collect()
}

/// Long inputs are given as a rule: literals in quotes, `N x 'text'`, and `CRLF`.
fn by_rule(rule: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = rule.trim();
    let mut times = 1;
    while !rest.is_empty() {
        if let Some(tail) = rest.strip_prefix("CRLF") {
            bytes.extend_from_slice(b"\r\n");
            rest = tail;
        } else if let Some(tail) = rest.strip_prefix('\'') {
            let (text, tail) = tail.split_once('\'').expect("closing quote");
            let text = text.replace(" CRLF", "\r\n");
            (0..times).for_each(|_| bytes.extend_from_slice(text.as_bytes()));
            times = 1;
            rest = tail;
        } else if let Some(tail) = rest.strip_prefix("HTTP/1.1 200 OK") {
            bytes.extend_from_slice(b"HTTP/1.1 200 OK");
            rest = tail;
        } else if let Some((number, tail)) =
            rest.split_once(" x ").filter(|(n, _)| n.chars().all(|c| c.is_ascii_digit()))
        {
            times = number.parse().expect("a number");
            rest = tail;
        } else {
            let tail = rest.split_once(' ').map_or("", |(_, tail)| tail);
            rest = tail;
        }
        rest = rest.trim_start_matches([' ', ',', '+']);
    }
    bytes
}

pub(crate) fn connect(case: &Value) -> Outcome {
    let bytes = match case["recv"].as_str() {
        Some(text) => latin1(text),
        None => {
            let rule = case["recv_rule"].as_str().expect("recv_rule");
            let rule = rule.split(", no line end").next().unwrap_or(rule);
            // A pattern written as 'text' CRLF CRLF after a count repeats as a whole.
            match rule.split_once(" x ") {
                Some((n, what)) if n.trim().chars().all(|c| c.is_ascii_digit()) => {
                    by_rule(what).repeat(n.trim().parse().expect("a number"))
                }
                _ => by_rule(rule),
            }
        }
    };
    let options = &case["options"];
    let mut limits = Limits { strict_200: flag(options, &["strict_200"]), ..Limits::default() };
    for (name, field) in [
        ("max_line", &mut limits.max_line),
        ("max_header", &mut limits.max_header),
        ("max_drain", &mut limits.max_drain),
    ] {
        if let Some(value) = options[name].as_u64() {
            *field = value as usize;
        }
    }
    for cut in splits(&bytes) {
        let got = one_answer(&cut, limits, case["eof"] == true, flag(options, &["reject_early_data"]));
        if got != case["expect"] {
            return Outcome::Fail(format!("cut {:?}: got {got}, want {}", lengths(&cut), case["expect"]));
        }
    }
    Outcome::Pass
}

fn one_answer(cut: &[&[u8]], limits: Limits, eof: bool, reject_early: bool) -> Value {
    let mut reply = Reply::new(limits);
    let mut leftover = Vec::new();
    let error = |fault: Fault| json!({"result": "error", "error": fault.to_string()});
    for part in cut {
        match reply.feed(part) {
            Ok(used) => leftover.extend_from_slice(&part[used..]),
            Err(fault) => return error(fault),
        }
    }
    if eof && let Err(fault) = reply.eof() {
        return error(fault);
    }
    match reply.answer() {
        None => json!({"result": "pending"}),
        Some(Answer::Tunnel { .. }) if reject_early && !leftover.is_empty() => error(Fault::EarlyData),
        Some(Answer::Tunnel { status, interim }) => {
            let leftover: String = leftover.iter().map(|&b| char::from(b)).collect();
            json!({"result": "tunnel", "status": status, "leftover": leftover, "interim": interim})
        }
        Some(Answer::Challenge { challenges, reuse }) => {
            json!({"result": "auth_challenge", "challenges": challenges, "reuse": reuse})
        }
    }
}

pub(crate) fn connect_request(case: &Value) -> Outcome {
    if case["input"].is_object() {
        return connect_request_of_a_report(case);
    }
    let request = Request {
        host: case["host"].as_str().expect("host"),
        port: case["port"].as_u64().expect("port") as u16,
        authorization: case["auth"].as_str(),
        user_agent: case["ua"].as_str().unwrap_or("test/1"),
        headers: &[],
    };
    match request.text() {
        Ok(text) => Outcome::equal(json!(text), case["expect"].clone()),
        Err(fault) => Outcome::equal(json!({"error": fault.name()}), case["expect"].clone()),
    }
}

fn connect_request_of_a_report(case: &Value) -> Outcome {
    let input = &case["input"];
    let headers: Vec<(String, String)> = input["request_headers"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.clone(), value.as_str().expect("text").to_owned()))
        .collect();
    let request = Request {
        host: input["host"].as_str().expect("host"),
        port: input["port"].as_u64().expect("port") as u16,
        headers: &headers,
        ..Request::default()
    };
    let text = match request.text() {
        Ok(text) => text,
        Err(fault) => return known_error(fault, &case["expect"]),
    };
    let expect = &case["expect"];
    let mut got = json!({});
    for (key, _) in expect.as_object().expect("expectations") {
        got[key] = match key.as_str() {
            "request_line" => json!(text.lines().next()),
            "host_header" => json!(text.lines().find_map(|line| line.strip_prefix("Host: "))),
            "in_connect" => json!(headers.iter().all(|(n, v)| text.contains(&format!("{n}: {v}\r\n")))),
            // byway writes nothing into the tunnel: what it sends ends with the request's empty line.
            "in_tunnel" => json!(!text.ends_with("\r\n\r\n")),
            other => json!(format!("unknown expectation {other}")),
        };
    }
    Outcome::equal(got, expect.clone())
}

/// An answer from the bug log, through the whole dialogue with the credentials it names.
pub(crate) fn connect_reply(case: &Value) -> Outcome {
    let input = &case["input"];
    let chunks: Vec<Vec<u8>> = input["chunks"]
        .as_array()
        .expect("chunks")
        .iter()
        .map(|c| latin1(c.as_str().expect("text")))
        .collect();
    let all = chunks.concat();
    let as_given: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
    for cut in splits(&all).into_iter().chain([as_given]) {
        let (host, port) = input["target"].as_str().expect("target").rsplit_once(':').expect("host:port");
        let pair = input["credentials"].as_str().and_then(|c| c.split_once(':'));
        let settings = Settings { preemptive_basic: false, ..Settings::default() };
        let credentials = pair.map(|(user, password)| Credentials { user, password });
        let port = port.parse().expect("a port");
        let mut dialogue = Handshake::new(Protocol::Connect, Host::Name(host), port, credentials, settings)
            .expect("a request");
        let mut leftover = String::new();
        let mut fault = None;
        'parts: for part in &cut {
            let mut rest = *part;
            loop {
                if let Want::Write(bytes) = dialogue.want() {
                    let n = bytes.len();
                    dialogue.sent(n);
                }
                if rest.is_empty() {
                    break;
                }
                match dialogue.feed(rest) {
                    Ok(0) => break,
                    Ok(used) => rest = &rest[used..],
                    Err(found) => {
                        fault = Some(found);
                        break 'parts;
                    }
                }
            }
            leftover.extend(rest.iter().map(|&b| char::from(b)));
        }
        if fault.is_none() && input["eof"] == true {
            fault = dialogue.eof().err();
        }
        let expect = &case["expect"];
        let outcome = match (fault, dialogue.want()) {
            (Some(fault), _) => known_error(fault, expect),
            (None, want) => {
                let mut got = json!({});
                for (key, _) in expect.as_object().expect("expectations") {
                    got[key] = match key.as_str() {
                        "tunnel" => json!(want == Want::Done),
                        "leftover" => json!(leftover),
                        "connections" => json!(dialogue.connections()),
                        "action" if want == Want::Reconnect => json!("reconnect_with_credentials"),
                        other => json!(format!("no {other} in {want:?}")),
                    };
                }
                Outcome::equal(got, expect.clone())
            }
        };
        if !matches!(outcome, Outcome::Pass) {
            return outcome;
        }
    }
    Outcome::Pass
}

// ---- CONNECT, whole dialogues

/// One scripted proxy: connections of alternating requests and answers.
struct Script<'a> {
    connections: &'a [Value],
    connection: usize,
    turn: usize,
}

impl Script<'_> {
    fn request(&mut self, text: &str) {
        let phrase = self.connections[self.connection][self.turn].as_str().expect("a request phrase");
        if phrase == "EOF" {
            return; // Written into a connection that is gone; the answer is its end.
        }
        let line = text.lines().next().expect("a request line").trim_end_matches(" HTTP/1.1").to_owned();
        let authorization =
            text.lines().find(|l| l.starts_with("Proxy-Authorization: ")).unwrap_or("no Proxy-Authorization");
        assert_eq!(format!("{line} ({authorization})"), phrase);
        self.turn += 1;
    }

    fn answer(&mut self) -> Option<&str> {
        let text = self.connections[self.connection].get(self.turn)?.as_str()?;
        self.turn += 1;
        Some(text)
    }
}

pub(crate) fn connect_flow(case: &Value) -> Outcome {
    let texts =
        case["connections"].as_array().expect("connections").iter().flat_map(|turns| turns.as_array());
    let longest = texts.flatten().filter_map(Value::as_str).map(str::len).max().unwrap_or(0);
    for cut in cuts(longest) {
        if let Outcome::Fail(why) = one_flow(case, cut) {
            return Outcome::Fail(format!("cut {cut:?}: {why}"));
        }
    }
    Outcome::Pass
}

fn one_flow(case: &Value, cut: (usize, usize)) -> Outcome {
    let options = &case["options"];
    let auth: Vec<Value> = case["auth"].as_array().expect("auth").clone();
    let expect = &case["expect"];
    let settings = Settings {
        ask_first: auth.first().is_some_and(|a| a != "none_preemptive"),
        repeat_credentials: !flag(options, &["stop_on_same_credentials"]),
        max_tunnel_attempts: options["max_tunnel_attempts"].as_u64().unwrap_or(21) as u32,
        ..Settings::default()
    };
    let connections = case["connections"].as_array().expect("connections");
    let mut script = Script { connections, connection: 0, turn: 0 };
    let mut answers = if settings.ask_first { auth.clone() } else { auth[1..].to_vec() };
    answers.reverse();
    let mut last_answer = Value::Null;
    let mut calls = 0;
    let mut seen_challenges = json!([]);
    let mut dialogue =
        Handshake::new(Protocol::Connect, Host::Name("example.com"), 443, None, settings).expect("a request");
    let mut fault = None;
    let mut canceled = false;
    while fault.is_none() && !canceled {
        match dialogue.want() {
            Want::Write(bytes) => {
                script.request(core::str::from_utf8(bytes).expect("text"));
                let n = bytes.len();
                dialogue.sent(n);
            }
            Want::Peek | Want::Read(_) => match script.answer() {
                Some("EOF") | None => fault = dialogue.eof().err(),
                Some(text) => {
                    let bytes = latin1(text);
                    fault = pieces(&bytes, cut).find_map(|piece| dialogue.feed(piece).err());
                }
            },
            Want::Credentials(challenges) => {
                if !challenges.is_empty() {
                    calls += 1;
                    seen_challenges = json!(challenges);
                }
                let next = answers.pop().unwrap_or(Value::Null);
                if next == "repeat" {
                    answers.push(next.clone());
                } else {
                    last_answer = next.clone();
                }
                if next == "cancel" {
                    canceled = true;
                } else {
                    fault = dialogue.answer(last_answer.as_str()).err();
                }
            }
            Want::Reconnect => {
                script.connection += 1;
                script.turn = 0;
                fault = dialogue.reconnected().err();
            }
            Want::Done => break,
            Want::Failed(found) => fault = Some(found),
        }
    }
    let mut got = json!({});
    for (key, _) in expect.as_object().expect("expectations") {
        got[key] = match key.as_str() {
            "result" if canceled => json!("canceled"),
            "result" => json!(if fault.is_some() { "error" } else { "tunnel" }),
            "error" => json!(fault.map(|f| f.to_string())),
            "tcp_connects" => json!(dialogue.connections()),
            "requests_sent" => json!(dialogue.requests()),
            "auth_calls" => json!(calls),
            "challenges" => seen_challenges.clone(),
            "db_failed" => match fault.map(Fault::blame) {
                Some(Blame::Route | Blame::Target) => json!(["route"]),
                _ => json!([]),
            },
            other => json!(format!("unknown expectation {other}")),
        };
    }
    Outcome::equal(got, expect.clone())
}

/// Upstream's tunnel, under `compat`.
pub(crate) fn connect_tunnel(case: &Value) -> Outcome {
    let mut replies: Vec<(String, bool)> = Vec::new();
    for phrase in case["replies"].as_array().expect("replies") {
        let phrase = phrase.as_str().expect("a phrase");
        let (what, times) =
            phrase.rsplit_once(" x").and_then(|(w, n)| Some((w, n.parse().ok()?))).unwrap_or((phrase, 1));
        let closes = what.contains("closed");
        let status = what.split(' ').next().expect("a status");
        let text = match what {
            _ if what.contains("keep-alive") => format!(
                "HTTP/1.1 {status} x\r\nProxy-Authenticate: Basic realm=\"p\"\r\nContent-Length: 0\r\n\r\n"
            ),
            _ if what.ends_with(" close") => format!(
                "HTTP/1.1 {status} x\r\nProxy-Authenticate: Basic realm=\"p\"\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
            ),
            _ if what.contains("stray bytes") => format!("HTTP/1.1 {status} x\r\n\r\nstray"),
            _ if what.contains("Content-Length 5") => {
                format!("HTTP/1.1 {status} x\r\nContent-Length: 5\r\n\r\nabc")
            }
            _ => format!("HTTP/1.1 {status} x\r\n\r\n"),
        };
        replies.extend((0..times).map(|_| (text.clone(), closes)));
    }
    replies.reverse();
    let longest = replies.iter().map(|(text, _)| text.len()).max().unwrap_or(0);
    for cut in cuts(longest) {
        if let Outcome::Fail(why) = one_tunnel(case, replies.clone(), cut) {
            return Outcome::Fail(format!("cut {cut:?}: {why}"));
        }
    }
    Outcome::Pass
}

/// A dialogue over these answers (each with whether the proxy closes behind it), the last one first.
fn one_tunnel(case: &Value, mut replies: Vec<(String, bool)>, cut: (usize, usize)) -> Outcome {
    let settings = Settings::upstream();
    let mut dialogue =
        Handshake::new(Protocol::Connect, Host::Name("o.example"), 443, None, settings).expect("a request");
    let value = basic("user", "pass").expect("fine");
    let with_credentials = case["credentials"] == true;
    let mut fault = None;
    while fault.is_none() {
        match dialogue.want() {
            Want::Write(bytes) => {
                assert!(bytes.starts_with(b"CONNECT o.example:443 HTTP/1.1\r\n"));
                let n = bytes.len();
                dialogue.sent(n);
            }
            Want::Peek | Want::Read(_) => match replies.pop() {
                Some((text, closes)) => {
                    fault = pieces(text.as_bytes(), cut).find_map(|piece| match dialogue.feed(piece) {
                        // What comes behind an open tunnel is refused when it is seen.
                        Ok(0) if matches!(dialogue.want(), Want::Done) => {
                            dialogue.refuse_early_data(true).err()
                        }
                        other => other.err(),
                    });
                    if closes && fault.is_none() {
                        fault = dialogue.eof().err();
                    }
                }
                None => fault = dialogue.eof().err(),
            },
            Want::Credentials(challenges) => {
                let answer = (with_credentials && !challenges.is_empty()).then_some(value.as_str());
                fault = dialogue.answer(answer).err();
            }
            Want::Reconnect => fault = dialogue.reconnected().err(),
            Want::Done => break,
            Want::Failed(found) => fault = Some(found),
        }
    }
    let expect = &case["expect"];
    let mut got = json!({});
    for (key, _) in expect.as_object().expect("expectations") {
        got[key] = match key.as_str() {
            "result" => json!(if fault.is_some() { "error" } else { "tunnel" }),
            "error" => json!(if fault == Some(Fault::ConnectAuthLoop) { "protocol" } else { "io" }),
            "message" => json!(fault.map(Fault::upstream_message)),
            "connects" => json!(dialogue.requests()),
            "tcp_connections" => json!(dialogue.connections()),
            other => json!(format!("unknown expectation {other}")),
        };
    }
    Outcome::equal(got, expect.clone())
}
