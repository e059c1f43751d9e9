//! Race timelines on a virtual clock.

use crate::Outcome;
use byway::dial::race::{
    Action, Candidate, CapPolicy, Ending, Family, FirstFamily, OnFailure, Race, RaceUntil, Report, Rules, Why,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

fn number(value: &Value) -> Option<u32> {
    value.as_u64().map(|n| n as u32)
}

fn rules(options: &Value) -> Rules {
    let mut rules = Rules { max_in_flight: 0, ..Rules::default() };
    for (name, value) in options.as_object().expect("options") {
        let word = value.as_str().unwrap_or_default();
        match name.as_str() {
            "attempt_delay_ms" => rules.attempt_delay_ms = number(value).expect("ms"),
            "resolution_delay_ms" => rules.resolution_delay_ms = number(value).expect("ms"),
            "attempt_timeout_ms" => rules.attempt_timeout_ms = number(value).expect("ms"),
            "ready_timeout_ms" => rules.ready_timeout_ms = number(value).expect("ms"),
            "overall_timeout_ms" => rules.overall_timeout_ms = number(value).expect("ms"),
            "ready_extend_ms" => rules.ready_extend_ms = number(value),
            "max_in_flight" => rules.max_in_flight = number(value).expect("a number"),
            "first_family_count" => rules.first_family_count = number(value).expect("a number"),
            "race_across_selections" | "across_selections" => {
                rules.across_selections = value.as_bool().expect("a flag");
            }
            "cap_policy" => {
                rules.cap_policy = if word == "wait" { CapPolicy::Wait } else { CapPolicy::DropOldest };
            }
            "on_failure" => {
                rules.on_failure = match word {
                    "immediate" => OnFailure::Immediate,
                    "latest" => OnFailure::Latest,
                    _ => OnFailure::WhenIdle,
                };
            }
            "race_until" => {
                rules.race_until = match word {
                    "ready" => RaceUntil::Ready,
                    "host" => RaceUntil::Host,
                    _ => RaceUntil::Tcp,
                };
            }
            "first_family" => {
                rules.first_family = match word {
                    "v4" => FirstFamily::V4,
                    "first_address" => FirstFamily::FirstAddress,
                    _ => FirstFamily::V6,
                };
            }
            // What is told to whom, judged by the runner below.
            "commit_failures" | "tunnel_refusal" | "selection_barrier" => {}
            other => panic!("option {other}"),
        }
    }
    if options["selection_barrier"] == false {
        rules.across_selections = true;
    }
    rules
}

/// Outcomes in which nothing was sent or this machine is at fault.
fn is_local(outcome: &str) -> bool {
    const LOCAL: [&str; 12] = [
        "no_local_route",
        "addr_not_available",
        "bind_failed",
        "no_device",
        "access_denied",
        "af_unsupported",
        "fd_limit",
        "no_buffers",
        "self_connect",
        "hook_rejected",
        "option_failed",
        "bad_address",
    ];
    LOCAL.contains(&outcome)
}

struct World<'a> {
    specs: Vec<&'a Value>,
    /// How often each route was started.
    tries: Vec<usize>,
    /// attempt -> (route, what it reported last)
    attempts: HashMap<u32, (u32, String)>,
    /// (time, attempt, what happens)
    events: Vec<(u64, u32, Event)>,
}

#[derive(Clone)]
enum Event {
    Tcp(String),
    Ready(String),
}

impl World<'_> {
    fn name(&self, attempt: u32) -> Value {
        self.specs[self.attempts[&attempt].0 as usize]["id"].clone()
    }

    /// The route as it behaves this time: `retry` overrides on the second try.
    fn field(&self, route: u32, name: &str) -> Value {
        let spec = self.specs[route as usize];
        match &spec["retry"][name] {
            Value::Null => spec[name].clone(),
            again if self.tries[route as usize] > 1 => again.clone(),
            _ => spec[name].clone(),
        }
    }
}

fn failure(outcome: &str, at_once: bool, stops: bool) -> Report {
    match outcome {
        "fd_limit" | "no_buffers" => Report::Exhausted,
        _ if stops && outcome.starts_with("tunnel_status") => Report::Stop,
        _ => Report::Failed { at_once },
    }
}

pub(crate) fn connect(case: &Value) -> Outcome {
    let mut race = Race::new(rules(&case["options"]));
    let until_ready = !matches!(case["options"]["race_until"].as_str(), None | Some("tcp"));
    let stops = case["options"]["tunnel_refusal"].as_str().unwrap_or("stop").eq_ignore_ascii_case("stop");
    let mut world =
        World { specs: Vec::new(), tries: Vec::new(), attempts: HashMap::new(), events: Vec::new() };
    let add = |world: &mut World<'_>, list: &'static Value| -> Vec<Candidate> {
        let mut added = Vec::new();
        for spec in list.as_array().into_iter().flatten() {
            let family = if spec["family"] == "v4" { Family::V4 } else { Family::V6 };
            let selection = number(&spec["selection"]).unwrap_or(0);
            added.push(Candidate { route: world.specs.len() as u32, family, selection });
            world.specs.push(spec);
            world.tries.push(0);
        }
        added
    };
    // Cases live as long as the process; leaking one keeps the borrows simple.
    let case: &'static Value = Box::leak(Box::new(case.clone()));
    race.add_selection(add(&mut world, &case["routes"]));
    let mut dns: Vec<&'static Value> = case["dns"].as_array().into_iter().flatten().collect();
    if dns.is_empty() {
        race.no_more_routes();
    } else {
        race.expect_families();
        race.no_more_routes();
    }
    let mut resumes = case["resume"].as_array().into_iter().flatten();
    let cancel_at = case["cancel_at_ms"].as_u64();

    let mut now = 0;
    let (mut starts, mut failed, mut canceled, mut dropped) = (vec![], vec![], vec![], vec![]);
    let (mut local, mut handoffs, mut deadlines) = (vec![], vec![], vec![]);
    let (mut connected, mut blamed): (Vec<Value>, Vec<Value>) = (vec![], vec![]);
    let mut error: Option<String> = None;
    let mut result = "";
    let mut winner = Value::Null;
    for _ in 0..10_000 {
        if cancel_at.is_some_and(|at| at <= now) {
            race.cancel();
        }
        dns.retain(|answer| {
            let due = answer["at_ms"].as_u64().expect("ms") <= now;
            if due {
                let family = if answer["family"] == "v4" { Family::V4 } else { Family::V6 };
                let routes = add(&mut world, &answer["routes"]);
                race.add_family(now, family, routes, true);
            }
            !due
        });
        let mut due = Vec::new();
        world.events.retain(|event| {
            if event.0 <= now {
                due.push(event.clone());
            }
            event.0 > now
        });
        for (_, attempt, event) in due {
            let route = world.attempts[&attempt].0;
            let (outcome, tcp) = match &event {
                Event::Tcp(outcome) => (outcome.clone(), true),
                Event::Ready(outcome) => (outcome.clone(), false),
            };
            let report = match outcome.as_str() {
                "ok" if tcp => {
                    Report::Tcp { handshake: until_ready && world.field(route, "ready").is_object() }
                }
                "ok" => Report::Ready,
                other => failure(other, false, stops),
            };
            world.attempts.insert(attempt, (route, outcome));
            race.report(attempt, report);
        }
        match race.next(now) {
            Action::Start { attempt, route } => {
                world.tries[route as usize] += 1;
                world.attempts.insert(attempt, (route, String::new()));
                starts.push(json!([world.name(attempt), now]));
                let outcome = world.field(route, "outcome").as_str().unwrap_or("ok").to_owned();
                if world.field(route, "sync") == true {
                    let report = match outcome.as_str() {
                        "ok" => Report::Tcp { handshake: false },
                        other => failure(other, true, stops),
                    };
                    world.attempts.insert(attempt, (route, outcome));
                    race.report(attempt, report);
                } else if outcome != "pending" {
                    let after = world.field(route, "after_ms").as_u64().expect("ms");
                    world.events.push((now + after, attempt, Event::Tcp(outcome)));
                }
            }
            Action::Handshake(attempt) => {
                let ready = world.field(world.attempts[&attempt].0, "ready");
                let outcome = ready["outcome"].as_str().unwrap_or("ok");
                if outcome != "pending" {
                    let at = now + ready["after_ms"].as_u64().unwrap_or(0);
                    world.events.push((at, attempt, Event::Ready(outcome.into())));
                }
            }
            Action::PutBack(attempt) => {
                starts.pop();
                local.push(json!([world.name(attempt), world.attempts[&attempt].1, now]));
            }
            Action::Cancel(attempt, why) => {
                world.events.retain(|event| event.1 != attempt);
                let list = if why == Why::Dropped { &mut dropped } else { &mut canceled };
                list.push(json!([world.name(attempt), now]));
            }
            Action::Failed(attempt) => {
                let outcome = world.attempts[&attempt].1.clone();
                if is_local(&outcome) {
                    local.push(json!([world.name(attempt), outcome, now]));
                } else if stops && outcome.starts_with("tunnel_status") {
                    error = Some(outcome);
                } else {
                    failed.push(json!([world.name(attempt), outcome, now]));
                    blamed.push(world.name(attempt));
                }
            }
            Action::TimedOut { attempt, handshake } => {
                world.events.retain(|event| event.1 != attempt);
                let outcome = if handshake { "handshake_timeout" } else { "timeout" };
                failed.push(json!([world.name(attempt), outcome, now]));
                blamed.push(world.name(attempt));
            }
            Action::Offer(attempt) => {
                handoffs.push(json!([world.name(attempt), now]));
                match resumes.next() {
                    Some(resume) => {
                        now += resume["after_ms"].as_u64().unwrap_or(0);
                        world.attempts.get_mut(&attempt).expect("known").1 = "tls_failed".into();
                        race.reject(attempt);
                    }
                    None => {
                        race.confirm(attempt);
                    }
                }
            }
            Action::NeedRoutes => panic!("asked for routes after no_more_routes"),
            Action::Wait(deadline) => {
                let next = world.events.iter().map(|e| e.0);
                let next = next.chain(dns.iter().map(|d| d["at_ms"].as_u64().expect("ms"))).chain(cancel_at);
                let next = next.filter(|at| *at > now || world.events.iter().any(|e| e.0 <= now)).min();
                if next.is_none_or(|at| at > now) {
                    deadlines.push(json!([now, deadline]));
                    now = match (next, deadline) {
                        (Some(at), Some(limit)) => at.min(limit),
                        (Some(at), None) | (None, Some(at)) => at,
                        (None, None) => return Outcome::Fail("waits for ever".into()),
                    };
                }
            }
            Action::Ended(Ending::Won(attempt)) => {
                let name = world.name(attempt);
                handoffs.push(json!([name, now]));
                if let Some(resume) = resumes.next() {
                    now += resume["after_ms"].as_u64().unwrap_or(0);
                    failed.push(json!([name, "tls_failed", now]));
                    blamed.push(name);
                    let follow_up = &resume["follow_up"];
                    let follow_up = follow_up.is_object().then(|| {
                        world.specs.push(follow_up);
                        world.tries.push(0);
                        let route = world.specs.len() as u32 - 1;
                        Candidate { route, family: Family::V6, selection: 0 }
                    });
                    race.resume(now, follow_up);
                    continue;
                }
                connected.push(name.clone());
                winner = name;
                result = "connected";
                break;
            }
            Action::Ended(ending) => {
                result = match ending {
                    Ending::Canceled => "canceled",
                    Ending::Deadline => {
                        error = Some("overall_timeout".into());
                        "timeout"
                    }
                    _ => {
                        let first = failed.first().or(local.first());
                        let why = first.and_then(|f| f[1].as_str()).unwrap_or("no_routes");
                        error = error.or(Some(why.to_owned()));
                        "failed"
                    }
                };
                break;
            }
        }
    }
    if case["options"]["commit_failures"] == "on_success" && result != "connected" {
        blamed.clear();
    }
    let expect = &case["expect"];
    let mut got = json!({
        "result": result, "at_ms": now, "starts": starts, "failed": failed, "canceled": canceled,
        "db": {"connected": connected, "failed": blamed}, "deadlines": deadlines,
    });
    for (name, value, empty) in [
        ("winner", winner, Value::Null),
        ("error", json!(error), Value::Null),
        ("dropped", json!(dropped), json!([])),
        ("local_errors", json!(local), json!([])),
    ] {
        if expect.get(name).is_some() || value != empty {
            got[name] = value;
        }
    }
    if expect.get("handoffs").is_some() {
        got["handoffs"] = json!(handoffs);
    }
    Outcome::equal(got, expect.clone())
}

/// Timelines of the bug log: addresses that connect, fail or drop.
pub(crate) fn report(case: &Value) -> Outcome {
    let input = &case["input"];
    let addresses: Vec<&Value> = input["addresses"].as_array().expect("addresses").iter().collect();
    let rules = Rules {
        attempt_delay_ms: number(&input["delay_ms"]).unwrap_or(250),
        overall_timeout_ms: number(&input["deadline_ms"]).unwrap_or(0),
        ..Rules::default()
    };
    let mut race = Race::new(rules);
    race.no_more_routes();
    let name = |route: u32| addresses[route as usize]["a"].as_str().expect("an address");
    let family = |route: u32| match name(route).parse() {
        Ok(std::net::IpAddr::V4(_)) => Some(Family::V4),
        Ok(std::net::IpAddr::V6(_)) => Some(Family::V6),
        Err(_) => None,
    };
    let all: Vec<u32> = (0..addresses.len() as u32).collect();
    let candidate =
        |route: u32| Candidate { route, family: family(route).unwrap_or(Family::V6), selection: 0 };
    if all.iter().all(|route| family(*route).is_some()) {
        for wanted in [Family::V6, Family::V4] {
            let some: Vec<_> = all.iter().map(|r| candidate(*r)).filter(|c| c.family == wanted).collect();
            race.add_family(0, wanted, some, true);
        }
    } else {
        race.add_selection(all.iter().map(|r| candidate(*r)));
    }
    let (mut now, mut starts, mut errors) = (0, Vec::new(), 0);
    let mut events: Vec<(u64, u32, Report)> = Vec::new();
    let mut routes = HashMap::new();
    let ended = loop {
        events.retain(|(at, attempt, report)| {
            if *at <= now {
                race.report(*attempt, *report);
            }
            *at > now
        });
        match race.next(now) {
            Action::Start { attempt, route } => {
                starts.push(name(route));
                routes.insert(attempt, route);
                let spec = addresses[route as usize];
                if let Some(after) = spec["connect_ms"].as_u64() {
                    events.push((now + after, attempt, Report::Tcp { handshake: false }));
                } else if let Some(after) = spec["fail_ms"].as_u64() {
                    events.push((now + after, attempt, Report::Failed { at_once: false }));
                }
            }
            Action::Failed(_) | Action::TimedOut { .. } => errors += 1,
            Action::Wait(deadline) => {
                let next = events.iter().map(|e| e.0).chain(deadline).min();
                now = next.expect("something to wait for");
            }
            Action::Ended(ending) => break ending,
            _ => {}
        }
    };
    let mut got = json!({});
    let expect = &case["expect"];
    for (key, want) in expect.as_object().expect("expectations") {
        got[key] = match (key.as_str(), ended) {
            ("winner", Ending::Won(attempt)) => json!(name(routes[&attempt])),
            ("error", Ending::Failed) => json!("all_failed"),
            ("error", Ending::Deadline) => json!("deadline"),
            ("at_ms", _) if want[0].as_u64() <= Some(now) && Some(now) <= want[1].as_u64() => want.clone(),
            ("at_ms", _) => json!(now),
            ("attempts", _) => json!(starts.len()),
            ("errors", _) => json!(errors),
            ("start_order", _) => json!(starts),
            (other, _) => json!(format!("no {other} after {ended:?}")),
        };
    }
    Outcome::equal(got, expect.clone())
}

/// Upstream's own time lines, under `compat`.
pub(crate) fn upstream(case: &Value) -> Outcome {
    let plans = case["plans"].as_array().expect("plans");
    let plan = |id: u64| plans.iter().find(|p| p["id"].as_u64() == Some(id)).expect("a plan");
    let mut race = Race::new(Rules {
        attempt_delay_ms: number(&case["delay_ms"]).expect("ms"),
        attempt_timeout_ms: 0,
        max_in_flight: 0,
        across_selections: true,
        upstream_timing: true,
        ..Rules::default()
    });
    race.no_more_routes();
    let candidate = |route: u64| Candidate { route: route as u32, family: Family::V6, selection: 0 };
    race.add_selection(
        plans.iter().filter(|p| p["from_planner"] != false).map(|p| candidate(p["id"].as_u64().expect("id"))),
    );
    // A loser comes back as the plan its `retry` names, under the route number it had.
    let mut current: HashMap<u32, u64> =
        plans.iter().map(|p| p["id"].as_u64().expect("id")).map(|id| (id as u32, id)).collect();
    let mut log: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    let mut events: Vec<(u64, u32, u64)> = Vec::new(); // time, attempt, plan
    let mut attempts: HashMap<u32, (u32, u64)> = HashMap::new(); // attempt -> route, plan
    let mut canceled = Vec::new();
    let mut failures: Vec<String> = Vec::new();
    let mut results = Vec::new();
    let mut finds = case["find_calls"].as_u64().unwrap_or(1);
    let mut tls: Option<(u64, u32, u64)> = None;
    let mut unchecked = false;
    let mut now = 0;
    let mut yielded = false;
    for _ in 0..10_000 {
        let mut due = Vec::new();
        events.retain(|event| {
            let held = plan(event.2)["yields"] == true && !yielded;
            let take = event.0 <= now && !held;
            if take {
                due.push(*event);
            }
            !take
        });
        for (_, attempt, id) in due {
            let spec = plan(id);
            let line = |what: &str| format!("plan {id} {what}");
            let entry = log.entry(now).or_default();
            if canceled.contains(&attempt) {
                entry.push(line("TCP connect canceled"));
            } else if let Some(error) = spec["tcp_error"].as_str() {
                entry.push(line("TCP connect failed"));
                match error.strip_prefix("crash:") {
                    Some(error) => {
                        unchecked = true;
                        failures.insert(0, error.to_owned());
                        race.report(attempt, Report::Stop);
                    }
                    None => {
                        failures.push(error.to_owned());
                        match spec["tcp_next"].as_u64() {
                            Some(next) => race.report(attempt, Report::FollowUp(candidate(next))),
                            None => race.report(attempt, Report::Failed { at_once: false }),
                        }
                    }
                }
            } else if let Some(next) = spec["tcp_next"].as_u64() {
                entry.push(line("needs follow-up"));
                race.report(attempt, Report::FollowUp(candidate(next)));
            } else {
                entry.push(line("TCP connected"));
                race.report(attempt, Report::Tcp { handshake: false });
            }
        }
        yielded = false;
        if let Some((at, _, id)) = tls {
            if at > now {
                let next = events.iter().map(|e| e.0).min().map_or(at, |e| e.min(at));
                now = next;
                continue;
            }
            tls = None;
            let spec = plan(id);
            let entry = log.entry(now).or_default();
            let next = spec["tls_next"].as_u64();
            if let Some(error) = spec["tls_error"].as_str() {
                entry.push(format!("plan {id} TLS connect failed"));
                failures.push(error.to_owned());
                race.resume(now, next.map(candidate));
            } else if next.is_some() {
                entry.push(format!("plan {id} needs follow-up"));
                race.resume(now, next.map(candidate));
            } else {
                entry.push(format!("plan {id} TLS connected"));
                results.push(json!({"winner": id}));
                finds -= 1;
                if finds == 0 {
                    break;
                }
                race.resume(now, None);
            }
            continue;
        }
        match race.next(now) {
            Action::Start { attempt, route } => {
                let id = current[&route];
                attempts.insert(attempt, (route, id));
                let spec = plan(id);
                let entry = log.entry(now).or_default();
                if spec["from_planner"] != false {
                    entry.push(format!("take plan {id}"));
                }
                if let Some(error) = spec["planning_error"].as_str() {
                    failures.push(error.to_owned());
                    race.report(attempt, Report::Failed { at_once: true });
                } else if spec["already_connected"] == true {
                    race.report(attempt, Report::Tcp { handshake: false });
                } else {
                    entry.push(format!("plan {id} TCP connecting..."));
                    events.push((now + spec["tcp_delay_ms"].as_u64().unwrap_or(0), attempt, id));
                }
            }
            Action::Cancel(attempt, _) => {
                let (route, id) = attempts[&attempt];
                log.entry(now).or_default().push(format!("plan {id} cancel"));
                canceled.push(attempt);
                if let Some(retry) = plan(id)["retry"].as_u64() {
                    current.insert(route, retry);
                }
            }
            Action::Wait(deadline) => {
                if events.iter().any(|e| e.0 <= now) {
                    yielded = true;
                    continue;
                }
                let next = events.iter().map(|e| e.0).chain(deadline).min();
                now = next.expect("something to wait for");
            }
            Action::Ended(Ending::Won(attempt)) => {
                let id = attempts[&attempt].1;
                if plan(id)["already_connected"] == true {
                    results.push(json!({"winner": id}));
                    finds -= 1;
                    if finds == 0 {
                        break;
                    }
                    race.resume(now, None);
                } else {
                    log.entry(now).or_default().push(format!("plan {id} TLS connecting..."));
                    tls = Some((now + plan(id)["tls_delay_ms"].as_u64().unwrap_or(0), attempt, id));
                }
            }
            Action::Ended(_) => {
                let first = failures.first().cloned();
                let rest = failures.get(1..).unwrap_or_default();
                results.push(json!({"error": first, "suppressed": rest, "unchecked": unchecked}));
                break;
            }
            _ => {}
        }
    }
    // Cancelled connects end when they would have ended.
    events.sort_unstable();
    for (at, attempt, id) in events {
        if canceled.contains(&attempt) {
            log.entry(at.max(now)).or_default().push(format!("plan {id} TCP connect canceled"));
        }
    }
    let timeline: Vec<Value> = log
        .into_iter()
        .filter(|(_, events)| !events.is_empty())
        .map(|(at, events)| json!({"at_ms": at, "events": events}))
        .collect();
    let want = &case["expect"]["results"];
    for (got, want) in results.iter_mut().zip(want.as_array().expect("results")) {
        if let Value::Object(got) = got {
            got.retain(|key, _| want.get(key).is_some());
        }
    }
    let got = json!({"timeline": timeline, "results": results});
    Outcome::equal(got, json!({"timeline": case["timeline"], "results": want}))
}
