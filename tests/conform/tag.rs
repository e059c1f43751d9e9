//! Cases of tag rules, their words, and the mock selector: `dubbo_chain.jsonl` and the reports about them.

use crate::Outcome;
use crate::condition::call_of;
use crate::naive::{Call, TagWay, param_matches, url::Url};
use crate::routing::{Router, invokers_of, route_all};
use byway::rules::dialect::{Dialect, application_rule_key};
use byway::rules::ip::IpPattern;
use byway::rules::java_ip::{self, Fault};
use byway::rules::mock::{NEED_MOCK, Wanted};
use byway::rules::report::Report;
use byway::rules::slot::Slot;
use byway::rules::string_match::StringMatch;
use byway::rules::tag::{FORCE_TAG, ParamMatch, TAG};
use byway::rules::{Rule, RuleKind, yaml};
use serde_json::{Map, Value, json};

/// The dialect a case of `dubbo_chain.jsonl` comes from.
pub(crate) fn dialect_of(case: &Value) -> Dialect {
    let source = case["source"].as_str().unwrap_or_default();
    if source.starts_with("dubbo-go") {
        Dialect::DubboGo
    } else if source.contains("2.7") {
        Dialect::Dubbo27
    } else {
        Dialect::Dubbo3
    }
}

/// Runs a case under the dialect it comes from, and under the default where the case says what is right.
pub(crate) fn with_dialects(case: &Value, run: impl Fn(Dialect, &Value) -> Outcome) -> Outcome {
    let mut runs = vec![(dialect_of(case), &case["expect"])];
    let sane = ["expect_byway", "sane_expect", "fixed_expect"].iter().map(|name| &case[name]);
    // Prose in place of an answer decides nothing.
    if let Some(sane) = sane.into_iter().find(|value| !value.is_null() && !value.is_string()) {
        runs.push((Dialect::Byway, sane));
    }
    for (dialect, expect) in runs {
        if let Outcome::Fail(why) = run(dialect, expect) {
            return Outcome::Fail(format!("[{}] {why}", dialect.table().name));
        }
    }
    Outcome::Pass
}

fn ids(case: &Value, rows: &[usize]) -> Value {
    rows.iter().map(|&row| case["invokers"][row]["id"].clone()).collect()
}

/// Kinds about tags and their words.
pub(crate) fn run(kind: &str, case: &Value) -> Outcome {
    match kind {
        "tag" => with_dialects(case, |dialect, expect| tag(case, dialect, expect)),
        "tag-lifecycle" => lifecycle(case),
        "tag-parse" => parse(case),
        "tag-level" => level(
            &case["tag_addresses"],
            &case["selector"],
            &case["force"],
            dialect_of(case),
            &case["expect"],
        ),
        "tag-static-config" => with_dialects(case, |dialect, expect| {
            let rule = byway::rules::parse(RuleKind::Tag, dialect, case["rule"].as_str().unwrap_or_default());
            let stored = rule.is_ok_and(|rule| rule.is_some_and(|rule| rule.declared_key().is_ok()));
            Outcome::equal(json!({"stored": stored}), expect.clone())
        }),
        "string_match" => with_dialects(case, |dialect, expect| string_match(case, dialect, expect)),
        "param_match" => with_dialects(case, |dialect, expect| param_match(case, dialect, expect)),
        "mock" => mock(case),
        "ip" => with_dialects(case, |dialect, expect| ip(case, dialect, expect)),
        other => Outcome::Fail(format!("unknown kind {other}")),
    }
}

fn tag(case: &Value, dialect: Dialect, expect: &Value) -> Outcome {
    let invokers = invokers_of(&case["invokers"]);
    let mut slot = Slot::new(RuleKind::Tag, dialect);
    if let Some(text) = case["rule"].as_str() {
        slot.set(Some(text));
    }
    let rule = slot.active().map(|rule| (**rule).clone());
    let call = call_of(&case["invocation"]).unwrap_or_default();
    // A cache of the list that was current when it was made answers for that list; otherwise for the caller's.
    let current = case["chain_generation"] == case["cache_generation"];
    let picked: Vec<usize> = match case["route_input"].as_array() {
        Some(wanted) if !current => {
            (0..invokers.len()).filter(|&row| wanted.contains(&case["invokers"][row]["id"])).collect()
        }
        _ => (0..invokers.len()).collect(),
    };
    let texts: Vec<String> = picked.iter().filter_map(|&row| invokers.get(row).cloned()).collect();
    let router = Router::Rule(rule.as_ref(), RuleKind::Tag);
    let got =
        route_all(router, dialect, case["consumer_url"].as_str().unwrap_or_default(), &texts, Some(&call));
    if let Some(why) = got.disagree {
        return Outcome::Fail(why);
    }
    if let (Some(message), true) = (case["message"].as_str(), dialect == Dialect::Dubbo3) {
        let way = match message {
            text if text.starts_with("Disable Tag Router") => TagWay::Static,
            text if text.ends_with("but force=true") => TagWay::ByRule,
            text if text.ends_with("true in invocation") => TagWay::ByStaticOrForced,
            text if text.starts_with("FAILOVER") => TagWay::FailedOver,
            text if text.starts_with("all addresses") => TagWay::AllClaimed,
            text if text.starts_with("filter using the static") => TagWay::UntaggedCall,
            text if text.starts_with("Directly Return") => TagWay::Nobody,
            other => return Outcome::Fail(format!("unknown message {other}")),
        };
        if got.way != Some(way) {
            return Outcome::Fail(format!("went {:?}, want {way:?}", got.way));
        }
    }
    let rows: Vec<usize> = got.rows.iter().filter_map(|&row| picked.get(row).copied()).collect();
    match expect["count"].as_u64() {
        Some(count) => Outcome::equal(rows.len() as u64, count),
        None => Outcome::equal(ids(case, &rows), expect.clone()),
    }
}

fn lifecycle(case: &Value) -> Outcome {
    let dialect = dialect_of(case);
    let invokers = invokers_of(&case["invokers"]);
    let call = call_of(&case["invocation"]).unwrap_or_default();
    let consumer = case["consumer_url"].as_str().unwrap_or_default();
    let mut slot = Slot::new(RuleKind::Tag, dialect);
    let Some(steps) = case["expect"].as_array() else {
        // Upstream dies of the rule at the next list. Here a text is refused or does no harm.
        let refused = slot.set(case["rule"].as_str()).error.is_some();
        let rule = slot.active().map(|rule| (**rule).clone());
        let router = Router::Rule(rule.as_ref(), RuleKind::Tag);
        let got = route_all(router, dialect, consumer, &invokers, Some(&call));
        return match (case["expect"]["error"].is_string(), got.disagree) {
            (true, None) if refused || !invokers.is_empty() => Outcome::Pass,
            (_, why) => {
                Outcome::Fail(why.unwrap_or_else(|| format!("unknown expectation {}", case["expect"])))
            }
        };
    };
    for step in steps {
        let event = step["event"].as_str().unwrap_or_default();
        let quoted =
            event.split_once('\'').and_then(|(_, rest)| rest.rsplit_once('\'')).map(|(text, _)| text);
        match event.split(' ').next() {
            Some("DELETED") => slot.remove(),
            Some("ADDED" | "MODIFIED") => slot.set(quoted.or(case["rule"].as_str())),
            _ => return Outcome::Fail(format!("unknown event {event}")),
        };
        let rule = slot.active().map(|rule| (**rule).clone());
        let router = Router::Rule(rule.as_ref(), RuleKind::Tag);
        let got = route_all(router, dialect, consumer, &invokers, Some(&call));
        if ids(case, &got.rows) != step["route"] {
            return Outcome::Fail(format!("after {event}: {:?}, want {}", got.rows, step["route"]));
        }
    }
    Outcome::Pass
}

fn parse(case: &Value) -> Outcome {
    let dialect = dialect_of(case);
    let rule = byway::rules::parse(RuleKind::Tag, dialect, case["rule"].as_str().unwrap_or_default());
    let Ok(Some(Rule::Tag(rule))) = rule else { return Outcome::Fail(format!("{rule:?}")) };
    let header = &rule.header;
    let groups = rule.groups(dialect);
    let without: Vec<&str> =
        rule.tags.iter().filter(|tag| tag.addresses.is_empty()).map(|tag| tag.name.as_str()).collect();
    let mut by_tag = Map::new();
    let mut addresses = Vec::new();
    for group in &groups {
        if let byway::rules::tag::Members::At(list) = group.members {
            let texts: Vec<&str> = list.iter().map(|address| address.text.as_str()).collect();
            addresses.extend(texts.iter().copied());
            by_tag.insert(group.name.to_owned(), json!(texts));
        }
    }
    for (name, want) in case["expect"].as_object().into_iter().flatten() {
        let got = match name.as_str() {
            "key" => json!(header.key),
            "priority" => json!(header.priority),
            "enabled" => json!(header.enabled),
            "force" => json!(header.force),
            "runtime" => json!(header.runtime),
            "valid" => json!(header.valid),
            "tags" => json!(rule.tags.len()),
            "tag_names" => json!(rule.tags.iter().map(|tag| &tag.name).collect::<Vec<_>>()),
            "addresses" => json!(addresses),
            "tag_to_addresses" => json!(by_tag),
            "tags_without_addresses" => json!(without),
            "config_key" => {
                let texts = invokers_of(&case["invokers"]);
                let url = Url::parse(texts.first().map(String::as_str).unwrap_or_default(), dialect);
                let application =
                    ["remote.application", "application"].iter().find_map(|name| url.parameter(name));
                let application = application.unwrap_or_default();
                json!(application_rule_key(RuleKind::Tag, application))
            }
            other => return Outcome::Fail(format!("unknown field {other}")),
        };
        if got != *want {
            return Outcome::Fail(format!("{name}: got {got}, want {want}"));
        }
    }
    Outcome::Pass
}

/// Level search, seen through routing: one provider per address, and the caller insisting or not.
fn level(addresses: &Value, selector: &Value, force: &Value, dialect: Dialect, expect: &Value) -> Outcome {
    let mut text = "tags:\n".to_owned();
    let mut places: Vec<(String, String)> = Vec::new();
    for (name, list) in addresses.as_object().into_iter().flatten() {
        text += &format!("- name: {}\n  addresses: {list}\n", Value::String(name.clone()));
        let list = list.as_array().into_iter().flatten().filter_map(Value::as_str);
        places.extend(list.map(|address| (name.clone(), address.to_owned())));
    }
    let rule = match byway::rules::parse(RuleKind::Tag, dialect, &text) {
        Ok(rule) => rule,
        Err(error) => return Outcome::Fail(error.to_string()),
    };
    let invokers: Vec<String> = places.iter().map(|(_, address)| format!("dubbo://{address}/s")).collect();
    let mut call = Call::default();
    call.attachments.insert(TAG.to_owned(), selector.as_str().unwrap_or_default().to_owned());
    call.attachments.insert(FORCE_TAG.to_owned(), force.as_bool().unwrap_or(false).to_string());
    let router = Router::Rule(rule.as_ref(), RuleKind::Tag);
    let got = route_all(router, dialect, "consumer://10.0.1.1/s", &invokers, Some(&call));
    if let Some(why) = got.disagree {
        return Outcome::Fail(why);
    }
    let found: Vec<&(String, String)> = got.rows.iter().filter_map(|&row| places.get(row)).collect();
    let found_addresses = match found.is_empty() {
        true => Value::Null,
        false => json!(found.iter().map(|(_, address)| address).collect::<Vec<_>>()),
    };
    if expect.get("matched_name").is_some()
        && json!(found.first().map(|(name, _)| name)) != expect["matched_name"]
    {
        return Outcome::Fail(format!("found {found:?}"));
    }
    Outcome::equal(found_addresses, expect["addresses"].clone())
}

fn string_match(case: &Value, dialect: Dialect, expect: &Value) -> Outcome {
    let text = case["matcher"].to_string();
    let mut report = Report::new(&text);
    let read = yaml::read(&text, &mut report).and_then(|node| StringMatch::read(&node, dialect, &mut report));
    let Some(read) = read else {
        let refused = report.failed() && !expect["error"].is_null();
        return if refused { Outcome::Pass } else { Outcome::Fail(format!("{:?}", report.problems())) };
    };
    if let Some(parsed) = expect["parsed"].as_object() {
        let got = json!({
            "exact": read.exact, "prefix": read.prefix, "regex": read.regex,
            "wildcard": read.wildcard, "empty": read.empty, "noempty": read.noempty,
        });
        let wrong = parsed.iter().find(|(name, want)| got[name.as_str()] != **want);
        return wrong
            .map_or(Outcome::Pass, |(name, want)| Outcome::Fail(format!("{name}: want {want}, got {got}")));
    }
    Outcome::equal(json!(read.matches(case["input"].as_str())), expect.clone())
}

fn param_match(case: &Value, dialect: Dialect, expect: &Value) -> Outcome {
    let text = case["matcher"].to_string();
    let mut report = Report::new(&text);
    let read = yaml::read(&text, &mut report).and_then(|node| ParamMatch::read(&node, dialect, &mut report));
    let Some(read) = read else { return Outcome::Fail(format!("{:?}", report.problems())) };
    let texts = invokers_of(&case["invokers"]);
    let url = Url::parse(texts.first().map(String::as_str).unwrap_or_default(), dialect);
    Outcome::equal(json!(param_matches(&read, &url)), expect.clone())
}

fn mock(case: &Value) -> Outcome {
    let invokers = invokers_of(&case["invokers"]);
    let call = call_of(&case["invocation"]).unwrap_or_default();
    let consumer = case["consumer_url"].as_str().unwrap_or("consumer://10.0.1.1/s");
    let got = |dialect| route_all(Router::Mock, dialect, consumer, &invokers, Some(&call));
    if let Some(by_version) = case["expect"].as_object() {
        for (name, want) in by_version {
            let dialect = if name == "java_2_7" { Dialect::Dubbo27 } else { Dialect::Dubbo3 };
            // 2.7's null is a crash in waiting for whoever looks at it; it means nobody.
            let want = if want.is_null() { json!([]) } else { want.clone() };
            let rows = got(dialect);
            if ids(case, &rows.rows) != want || rows.disagree.is_some() {
                return Outcome::Fail(format!("{name}: got {:?} {:?}", rows.rows, rows.disagree));
            }
        }
        return Outcome::Pass;
    }
    if let Some(message) = case["message"].as_str() {
        let asked = Wanted::by(call.attachments.get(NEED_MOCK).map(String::as_str));
        let want = match message {
            text if text.contains("Return normal") => Some(Wanted::Real),
            text if text.contains("Return mocked") => Some(Wanted::Mocks),
            text if text.contains("not match true") => Some(Wanted::Everybody),
            text if text.contains("Empty invokers") && invokers.is_empty() => Some(asked),
            _ => None,
        };
        if want != Some(asked) {
            return Outcome::Fail(format!("the call asks for {asked:?}; upstream says {message}"));
        }
    }
    for dialect in Dialect::ALL {
        let rows = got(dialect);
        if let Some(why) = rows.disagree {
            return Outcome::Fail(why);
        }
        if ids(case, &rows.rows) != case["expect"] {
            return Outcome::Fail(format!("{}: got {:?}", dialect.table().name, rows.rows));
        }
    }
    Outcome::Pass
}

fn ip(case: &Value, dialect: Dialect, expect: &Value) -> Outcome {
    let pattern = case["pattern"].as_str().unwrap_or_default();
    let host = case["host"].as_str();
    let port = case["port"].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or(0);
    if dialect == Dialect::Byway {
        let got = IpPattern::parse(pattern).map(|pattern| pattern.matches(host.unwrap_or_default(), port));
        return Outcome::equal(got.map(|answer| json!(answer)), Ok(expect.clone()));
    }
    let got = match (case["function"].as_str(), host) {
        (Some("range"), host) => java_ip::match_range(pattern, host, port),
        (Some("cidr"), Some(host)) => java_ip::match_network(pattern, host),
        (Some("expression"), Some(host)) => java_ip::match_expression(pattern, host, port),
        (Some("expression2"), host) => java_ip::match_address(pattern, host),
        other => return Outcome::Fail(format!("unknown function {other:?}")),
    };
    let want = match expect["error"].as_str() {
        None => expect.as_bool().ok_or(None),
        Some(text) if text.starts_with("IllegalArgument") => Err(Some(Fault::IllegalArgument)),
        Some(text) if text.starts_with("NumberFormat") => Err(Some(Fault::NumberFormat)),
        Some(text) if text.starts_with("UnknownHost") => Err(Some(Fault::UnknownHost)),
        Some(_) => Err(None),
    };
    Outcome::equal(got.map_err(Some), want)
}

/// Reports about tags, under the default dialect.
pub(crate) fn report(kind: &str, case: &Value) -> Outcome {
    let (input, expect) = (&case["input"], &case["expect"]);
    if kind == "tag_level" {
        let selectors = input["selectors"].as_array().into_iter().flatten();
        for (selector, want) in selectors.zip(expect["addresses"].as_array().into_iter().flatten()) {
            let want = json!({"addresses": want});
            let got = level(&input["tag_addresses"], selector, &input["force"], Dialect::Byway, &want);
            if let Outcome::Fail(why) = got {
                return Outcome::Fail(format!("{selector}: {why}"));
            }
        }
        return Outcome::Pass;
    }
    let invokers = invokers_of(&input["invokers"]);
    let mut call = Call::default();
    for (name, value) in [(TAG, &input["tag"]), (FORCE_TAG, &input["force_tag"])] {
        match value {
            Value::Null => {}
            value => {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                call.attachments.insert(name.to_owned(), text);
            }
        }
    }
    let consumer = match input["consumer_tag"].as_str() {
        Some(tag) => format!("consumer://10.0.1.1/s?{TAG}={tag}"),
        None => "consumer://10.0.1.1/s".to_owned(),
    };
    let answer = |dialect| {
        let mut slot = Slot::new(RuleKind::Tag, dialect);
        if let Some(text) = input["rule"].as_str() {
            slot.set(Some(text));
        }
        let rule = slot.active().map(|rule| (**rule).clone());
        let router = Router::Rule(rule.as_ref(), RuleKind::Tag);
        route_all(router, dialect, &consumer, &invokers, Some(&call))
    };
    // Calls are borrowed and routed as often as asked; the answer does not change.
    for _ in 0..input["calls"].as_u64().unwrap_or(1) {
        let before = format!("{call:?}");
        if let Outcome::Fail(why) = answer(Dialect::Byway).expect(&expect["kept"]) {
            return Outcome::Fail(why);
        }
        if before != format!("{call:?}") {
            return Outcome::Fail("the invocation has changed".into());
        }
    }
    match &expect["compat_dubbo_go"] {
        Value::Null => Outcome::Pass,
        want => answer(Dialect::DubboGo).expect(want),
    }
}
