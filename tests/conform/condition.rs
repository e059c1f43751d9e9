//! Cases of condition and affinity rules: `dubbo_condition.jsonl` and the reports about them.

use crate::Outcome;
use crate::engines::Compiled;
use crate::naive::{Call, World, url::Url};
use crate::routing::{Got, Router, dialect_of, invokers_of, route_all};
use byway::chain::store::RuleStore;
use byway::rules::condition::{Document, Items, StaticRule};
use byway::rules::dialect::{Dialect, Role, application_rule_key, service_rule_key};
use byway::rules::expression::{Condition, FaultKind};
use byway::rules::header::Family;
use byway::rules::pattern::{Pattern, Side};
use byway::rules::report::Report;
use byway::rules::slot::Slot;
use byway::rules::{Rule, RuleKind, routers, yaml};
use serde_json::{Map, Value, json};

/// Every case of the file; `form` says what it is about.
pub(crate) fn run(case: &Value) -> Outcome {
    let form = case["form"].as_str().unwrap_or_default();
    if form == "chain-order" {
        return chain_order(case);
    }
    let mut runs: Vec<(String, Value)> = Vec::new();
    if let Some(all) = case["expect_by_impl"]["all"].as_array() {
        runs.extend(
            all.iter().map(|name| (name.as_str().unwrap_or_default().to_owned(), case["expect"].clone())),
        );
    } else if let Some(by) = case["expect_by_impl"].as_object() {
        runs.extend(by.iter().map(|(name, expect)| (name.clone(), expect.clone())));
    } else {
        runs.push(("dubbo-3.3".to_owned(), case["expect"].clone()));
    }
    if !case["expect_byway"].is_null() {
        runs.push(("byway".to_owned(), case["expect_byway"].clone()));
    } else if form == "events" && !case["expect"]["outcomes"].is_null() {
        // Exact draws are one of the default's promises.
        runs.push(("byway".to_owned(), case["expect"].clone()));
    }
    for (name, expect) in runs {
        let (name, bare) = match name.strip_suffix("/StateRouter") {
            Some(name) => (name, true),
            None => (name.as_str(), false),
        };
        let Some(dialect) = dialect_of(name) else { return Outcome::Fail(format!("no dialect for {name}")) };
        let outcome = match form {
            "string" => string(case, dialect, bare, &expect),
            "when" => when(case, dialect, &expect),
            "events" => events(case, RuleKind::Condition, dialect, &expect),
            "affinity" => events(case, RuleKind::Affinity, dialect, &expect),
            "parse" => parse(case, dialect, &expect),
            "glob" => glob(case, dialect, &expect),
            "range" => range(case, dialect, &expect),
            "rulekey" => rule_key(case, dialect, &expect),
            "subscription" => return Outcome::Skip,
            other => Outcome::Fail(format!("unknown form {other}")),
        };
        if let Outcome::Fail(why) = outcome {
            return Outcome::Fail(format!("[{name}{}] {why}", if bare { "/bare" } else { "" }));
        }
    }
    Outcome::Pass
}

/// Upstream crashes here. A crash is nothing to reproduce: what is asked for is an answer, and one that some
/// implementation gives.
fn crash(expect: &Value) -> bool {
    expect["error"]["code"] == "panic"
}

pub(crate) fn call_of(value: &Value) -> Option<Call> {
    if value.is_null() {
        return None;
    }
    let text = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let arguments: Vec<Value> = value["arguments"].as_array().cloned().unwrap_or_default();
    Some(Call {
        method: value["method"].as_str().map(str::to_owned),
        first_is_text: arguments.first().is_some_and(Value::is_string),
        arguments: arguments.iter().map(text).collect(),
        // An attachment that is no text reads as absent everywhere.
        attachments: value["attachments"]
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
            .collect(),
    })
}

fn static_rule(case: &Value, dialect: Dialect) -> byway::Result<StaticRule> {
    let mut parameters: Map<String, Value> = case["params"].as_object().cloned().unwrap_or_default();
    parameters.insert("rule".to_owned(), case["rule"].clone());
    let texts: Vec<(String, String)> = parameters
        .iter()
        .map(|(name, value)| (name.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
        .collect();
    StaticRule::read(|name| texts.iter().find(|(key, _)| key == name).map(|(_, text)| text.as_str()), dialect)
}

fn string(case: &Value, dialect: Dialect, bare: bool, expect: &Value) -> Outcome {
    let invokers = invokers_of(&case["invokers"]);
    let consumer = case["consumer_url"].as_str().unwrap_or_default();
    let call = call_of(&case["invocation"]);
    let read = static_rule(case, dialect);
    if !expect["error"].is_null() && !crash(expect) {
        let Err(error) = read else {
            return Outcome::Fail("the rule was taken, an error was expected".into());
        };
        if error.position().is_none() {
            return Outcome::Fail(format!("the error has no place: {error}"));
        }
        return fault(case, dialect, &expect["error"]);
    }
    let read = match read {
        Ok(read) => read,
        Err(error) => return Outcome::Fail(format!("refused: {error}")),
    };
    if bare {
        // The bare condition: no fall-back, no flags.
        let text = case["rule"].as_str().unwrap_or_default();
        let urls: Vec<Url> = invokers.iter().map(|text| Url::parse(text, dialect)).collect();
        let world = World::new(dialect, consumer, &urls, call.as_ref());
        let Some(condition) = Condition::parse(text, dialect).0 else {
            return Outcome::Fail("refused".into());
        };
        let rows =
            if world.when(&condition.when) { world.then(&condition, &world.all()) } else { world.all() };
        return Outcome::equal(json!(rows), expect.clone());
    }
    let rule = Rule::Condition(read.rule);
    let got = route_all(
        Router::Rule(Some(&rule), RuleKind::Condition),
        dialect,
        consumer,
        &invokers,
        call.as_ref(),
    );
    if let Err(why) = through_a_url(case, dialect, &got.rows) {
        return Outcome::Fail(why);
    }
    if crash(expect) {
        let others = case["expect_by_impl"].as_object().into_iter().flatten();
        let known = others.map(|(_, answer)| answer).any(|answer| answer == &json!(got.rows));
        return if known { Outcome::Pass } else { Outcome::Fail(format!("nobody answers {:?}", got.rows)) };
    }
    got.expect(expect)
}

/// The same rule as a `condition://` URL that a chain takes among its routers.
fn through_a_url(case: &Value, dialect: Dialect, want: &[usize]) -> Result<(), String> {
    let Some(call) = call_of(&case["invocation"]).filter(|call| call.method.is_some()) else { return Ok(()) };
    let consumer = case["consumer_url"].as_str().unwrap_or_default();
    let encode = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let mut url = format!("condition://0.0.0.0/S?rule={}", encode(case["rule"].as_str().unwrap_or_default()));
    for (name, value) in case["params"].as_object().into_iter().flatten() {
        url += &format!("&{name}={}", value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    }
    let parse = |text: &str| byway::chain::url::Url::parse(text).map_err(|error| error.to_string());
    let slot = routers::static_router(&parse(&url)?, &parse(consumer)?, dialect)
        .map_err(|error| error.to_string())?;
    let rules = RuleStore::new(routers::languages(), dialect as u8);
    let invokers = invokers_of(&case["invokers"]);
    let got = Compiled::new(dialect, consumer, &invokers, vec![slot], rules).route(&call, 7);
    if got == want { Ok(()) } else { Err(format!("{url} answers {got:?}, want {want:?}")) }
}

fn fault(case: &Value, dialect: Dialect, expect: &Value) -> Outcome {
    let text = case["rule"].as_str().unwrap_or_default();
    let (_, faults) = Condition::parse(text, dialect);
    let kinds: Vec<FaultKind> = faults.into_iter().map(|fault| fault.kind).collect();
    match expect["code"].as_str() {
        Some("empty_rule") if kinds.contains(&FaultKind::Empty) => Outcome::Pass,
        Some("bad_separator") => {
            let found = kinds.iter().find_map(|kind| match kind {
                FaultKind::Separator { half, separator, before, index } => {
                    let mut found = json!({"code": "bad_separator", "text": half, "separator": separator, "before": before});
                    if !expect["index"].is_null() {
                        found["index"] = json!(index);
                    }
                    Some(found)
                }
                _ => None,
            });
            Outcome::equal(found, Some(expect.clone()))
        }
        _ => Outcome::Fail(format!("faults {kinds:?}, want {expect}")),
    }
}

fn when(case: &Value, dialect: Dialect, expect: &Value) -> Outcome {
    let text = case["rule"].as_str().unwrap_or_default();
    let consumer = case["consumer_url"].as_str().unwrap_or_default();
    let call = call_of(&case["invocation"]);
    match crate::routing::when_all(text, dialect, consumer, call.as_ref()) {
        Ok(answer) => Outcome::equal(json!(answer), expect.clone()),
        Err(why) => Outcome::Fail(why),
    }
}

fn events(case: &Value, kind: RuleKind, dialect: Dialect, expect: &Value) -> Outcome {
    let invokers = invokers_of(&case["invokers"]);
    let consumer = case["consumer_url"].as_str().unwrap_or_default();
    let call = call_of(&case["invocation"]);
    let mut slot = Slot::new(kind, dialect);
    let mut refused = false;
    for event in case["events"].as_array().into_iter().flatten() {
        refused = match event["type"].as_str() {
            Some("DELETED") => slot.remove().error.is_some(),
            _ => slot.set(event["content"].as_str()).error.is_some(),
        };
    }
    let rule = slot.active().map(|rule| (**rule).clone());
    let router = Router::Rule(rule.as_ref(), kind);
    let Some(outcomes) = expect["outcomes"].as_array() else {
        let got = route_all(router, dialect, consumer, &invokers, call.as_ref());
        if crash(expect) {
            let all = json!((0..invokers.len()).collect::<Vec<_>>());
            return if refused && json!(got.rows) == all {
                Outcome::Pass
            } else {
                Outcome::Fail("a text upstream dies of must be refused, and so filter nothing".into())
            };
        }
        if let Err(why) = through_the_store(case, kind, dialect, &got.rows) {
            return Outcome::Fail(why);
        }
        return got.expect(expect);
    };
    let share = if dialect == Dialect::Byway { "p_ideal" } else { "p_dubbo" };
    let repeat = case["repeat"].as_u64().unwrap_or(20_000);
    crate::routing::distribution(router, dialect, consumer, &invokers, call.as_ref(), repeat, outcomes, share)
}

/// The same events through a rule store, to a chain as a host gets it.
fn through_the_store(case: &Value, kind: RuleKind, dialect: Dialect, want: &[usize]) -> Result<(), String> {
    let Some(call) = call_of(&case["invocation"]).filter(|call| call.method.is_some()) else { return Ok(()) };
    // Dubbo 2.7 has no router that follows the provider's application.
    if case["router"] == "provider-app" && routers::place(dialect, Role::ProviderApplication).is_none() {
        return Ok(());
    }
    let consumer = case["consumer_url"].as_str().unwrap_or_default();
    let invokers = invokers_of(&case["invokers"]);
    let store = RuleStore::new(routers::languages(), dialect as u8);
    let mut compiled = Compiled::whole(dialect, consumer, &invokers, &store);
    let url = byway::chain::url::Url::parse(consumer).map_err(|error| error.to_string())?;
    let parameter = |name| url.parameter(name).unwrap_or_default();
    let key = match case["router"].as_str() {
        Some("provider-app") => application_rule_key(kind, "demo-provider"),
        _ => service_rule_key(dialect, kind, url.interface(), parameter("version"), parameter("group")),
    };
    for event in case["events"].as_array().into_iter().flatten() {
        match event["content"].as_str() {
            None if event["type"] == "DELETED" => drop(store.remove(&key)),
            content => drop(store.put(&key, content.unwrap_or_default())),
        }
    }
    let got = compiled.route(&call, 7);
    if got == want { Ok(()) } else { Err(format!("a chain following {key} answers {got:?}, want {want:?}")) }
}

fn parse(case: &Value, dialect: Dialect, expect: &Value) -> Outcome {
    let text = case["rule"].as_str().unwrap_or_default();
    let mut report = Report::new(text);
    let node = yaml::read(text, &mut report);
    let document = node.as_ref().and_then(|node| Document::read(node, dialect, &mut report));
    // The expressions are built in a second step, which these cases leave out, except in dubbo-go, which has one.
    let failed = report.failed() || node.is_none();
    if !expect["error"].is_null() {
        let built_wrong = dialect == Dialect::DubboGo
            && document
                .as_ref()
                .is_some_and(|document| document.build(dialect, false, &mut report).is_none());
        if !failed && !built_wrong {
            return Outcome::Fail(format!("read as {document:?}, an error was expected"));
        }
        let placed =
            report.problems().iter().all(|problem| problem.at.line > 0 && !problem.message.is_empty());
        return if placed { Outcome::Pass } else { Outcome::Fail("an error without a place".into()) };
    }
    let Some(document) = document.filter(|_| !failed) else {
        return Outcome::Fail(format!("refused: {:?}", report.problems()));
    };
    if expect["rule"].is_null() && expect.as_object().is_some_and(|keys| keys.contains_key("rule")) {
        return Outcome::equal(document.family, Family::Unknown);
    }
    let header = &document.header;
    let conditions = match &document.items {
        None => Value::Null,
        Some(Items::V30(items)) => json!(items.iter().map(|(_, text)| text).collect::<Vec<_>>()),
        Some(Items::V31(items)) => items
            .iter()
            .map(|raw| {
                let mut from = Map::new();
                if let Some(node) = raw.from {
                    from.insert("match".into(), json!(node.as_scalar()));
                }
                let to: Vec<Value> = raw
                    .to
                    .iter()
                    .map(|one| {
                        let mut out = Map::new();
                        for (name, node) in [("match", one.rows), ("weight", one.weight)] {
                            if let Some(node) = node {
                                out.insert(name.into(), json!(node.as_scalar()));
                            }
                        }
                        Value::Object(out)
                    })
                    .collect();
                json!({"from": from, "to": to})
            })
            .collect(),
    };
    let mut family = if document.family == Family::V31 { "v3.1" } else { "v3.0" };
    if dialect == Dialect::DubboGo && family == "v3.1" && !header.valid {
        family = "v3.1-nil";
    }
    let got = json!({
        "type": family, "valid": header.valid, "enabled": header.enabled, "force": header.force,
        "runtime": header.runtime, "priority": header.priority, "dynamic": header.dynamic,
        "scope": header.scope, "key": header.key, "version": header.version, "conditions": conditions,
    });
    for (name, want) in expect.as_object().into_iter().flatten() {
        if got[name] != *want {
            return Outcome::Fail(format!("{name}: got {}, want {want}", got[name]));
        }
    }
    Outcome::Pass
}

fn glob(case: &Value, dialect: Dialect, expect: &Value) -> Outcome {
    let pattern = case["pattern"].as_str().unwrap_or_default();
    let value = case["value"].as_str().unwrap_or_default();
    let consumer = case["param_url"].as_str();
    let side = if consumer.is_some() { Side::Then } else { Side::When };
    let url = Url::parse(consumer.unwrap_or_default(), dialect);
    let naive = crate::naive::words::fits(pattern, "x", side, value, &url, dialect);
    let compiled = match Pattern::parse(pattern, "x", side, dialect) {
        Ok(Pattern::Reference(name)) => {
            let url = byway::chain::url::Url::parse(consumer.unwrap_or_default());
            url.ok()
                .and_then(|url| byway::rules::lower::reference(&name, &url, dialect))
                .is_some_and(|text| Pattern::glob(&text, dialect.table().star).matches(value))
        }
        Ok(pattern) => pattern.matches(value),
        Err(why) => return Outcome::Fail(why),
    };
    Outcome::equal((json!(naive), json!(compiled)), (expect.clone(), expect.clone()))
}

fn range(case: &Value, dialect: Dialect, expect: &Value) -> Outcome {
    let pattern = case["pattern"].as_str().unwrap_or_default();
    let value = case["value"].as_str().unwrap_or_default();
    let side = if case["side"] == "when" { Side::When } else { Side::Then };
    let naive = crate::naive::words::fits(pattern, "x", side, value, &Url::parse("", dialect), dialect);
    match Pattern::parse(pattern, "x", side, dialect) {
        Ok(pattern) => {
            Outcome::equal((json!(naive), json!(pattern.matches(value))), (expect.clone(), expect.clone()))
        }
        Err(why) => Outcome::Fail(why),
    }
}

fn rule_key(case: &Value, dialect: Dialect, expect: &Value) -> Outcome {
    match byway::chain::url::Url::parse(case["url"].as_str().unwrap_or_default()) {
        Ok(url) => {
            let parameter = |name| url.parameter(name).unwrap_or_default();
            let kind = RuleKind::Condition;
            let key =
                service_rule_key(dialect, kind, url.interface(), parameter("version"), parameter("group"));
            Outcome::equal(key.strip_suffix(kind.suffix()).map(|key| json!(key)), Some(expect.clone()))
        }
        Err(error) => Outcome::Fail(error.to_string()),
    }
}

fn chain_order(case: &Value) -> Outcome {
    let mut routers: Vec<(&str, i64)> = case["routers"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| (one["name"].as_str().unwrap_or_default(), one["priority"].as_i64().unwrap_or_default()))
        .collect();
    let named = case["impl"].as_str().unwrap_or_default();
    let dialect = match named {
        "dubbo-go" => Some(Dialect::DubboGo),
        name if name.starts_with("dubbo-2.7.8") => Some(Dialect::Dubbo27),
        name if name.starts_with("dubbo-3.2") || name.starts_with("dubbo-3.3") => Some(Dialect::Dubbo3),
        // Older releases are no dialect of ours; that equal places keep their order still holds.
        _ => None,
    };
    if let Some(dialect) = dialect {
        let table = dialect.table();
        for (name, order) in &routers {
            let name: &str = name;
            let place = match name {
                "AddressInvokersSelector" => "address",
                "AppRouter" => "app",
                "ServiceRouter" => "service",
                "TagRouter" => "tag",
                "MockInvokersSelector" => "mock",
                // byway has no such router.
                "polaris" => continue,
                name if name.contains("url, no priority") => {
                    if table.static_order != *order {
                        return Outcome::Fail(format!("static routers have place {}", table.static_order));
                    }
                    continue;
                }
                name if name.contains("url, priority") => continue,
                name => name,
            };
            if !table.routers.iter().any(|one| (one.name, one.order) == (place, *order)) {
                return Outcome::Fail(format!("{place} is not at {order} in {}", table.name));
            }
        }
    }
    routers.sort_by_key(|(_, order)| *order);
    Outcome::equal(json!(routers.iter().map(|(name, _)| name).collect::<Vec<_>>()), case["expect"].clone())
}

/// Reports about conditions, under the default dialect.
pub(crate) fn report(kind: &str, case: &Value) -> Outcome {
    let (input, expect) = (&case["input"], &case["expect"]);
    let dialect = Dialect::Byway;
    let consumer = input["consumer"].as_str().unwrap_or("consumer://10.9.9.9/s");
    let invokers = invokers_of(&input["invokers"]);
    let kept = |got: Got| got.expect(&expect["kept"]);
    // The call stands in `invocation`, or its parts stand beside the rule.
    let asked = if input["invocation"].is_object() { &input["invocation"] } else { input };
    let call = call_of(asked).unwrap_or_default();
    match kind {
        "condition_when" | "condition_when_list" => {
            let texts: Vec<&Value> = match input["rules"].as_array() {
                Some(rules) => rules.iter().collect(),
                None => vec![&input["rule"]],
            };
            let calls: Vec<Value> =
                input["invocations"].as_array().cloned().unwrap_or_else(|| vec![asked.clone()]);
            let mut matched = Vec::new();
            for text in texts {
                for call in &calls {
                    let call = call_of(call);
                    let text = text.as_str().unwrap_or_default();
                    match crate::routing::when_all(text, dialect, consumer, call.as_ref()) {
                        Ok(answer) => matched.push(answer),
                        Err(why) => return Outcome::Fail(format!("{text}: {why}")),
                    }
                }
            }
            Outcome::equal(json!(matched), expect["matched"].clone())
        }
        "condition_route" => {
            let case = json!({"rule": input["rule"], "params": {"force": input["force"].as_bool().unwrap_or(false)}});
            match static_rule(&case, dialect) {
                Ok(read) => {
                    let rule = Rule::Condition(read.rule);
                    let router = Router::Rule(Some(&rule), RuleKind::Condition);
                    kept(route_all(router, dialect, consumer, &invokers, Some(&call)))
                }
                Err(error) => Outcome::Fail(format!("refused: {error}")),
            }
        }
        "condition_config" => {
            let mut slot = Slot::new(RuleKind::Condition, dialect);
            if let Some(error) = slot.set(input["yaml"].as_str()).error {
                return Outcome::Fail(format!("refused: {error}"));
            }
            let Some(rule) = slot.active() else { return Outcome::Fail("no rule".into()) };
            let (enabled, force) = (json!(rule.header().enabled), json!(rule.header().force));
            let differs = |name: &str, got: &Value| !expect[name].is_null() && expect[name] != *got;
            if differs("enabled", &enabled) || differs("force", &force) {
                return Outcome::Fail(format!("enabled {enabled}, force {force}"));
            }
            let call = call_of(&json!({"method": input["method"]}));
            kept(route_all(
                Router::Rule(Some(rule), RuleKind::Condition),
                dialect,
                consumer,
                &invokers,
                call.as_ref(),
            ))
        }
        "rule_parse_list" => {
            let before = "conditions: ['=> region=a']";
            for (text, want) in input["texts"]
                .as_array()
                .into_iter()
                .flatten()
                .zip(expect["result"].as_array().into_iter().flatten())
            {
                let mut slot = Slot::new(RuleKind::Condition, dialect);
                slot.set(Some(before));
                let good = slot.active().cloned();
                let change = slot.set(text.as_str());
                let fine = match want.as_str() {
                    Some("delete") => change.error.is_none() && slot.active().is_none(),
                    // "decide": an error is what was decided.
                    Some("error" | "decide") => {
                        change.error.as_ref().is_some_and(|error| error.position().is_some())
                            && slot.active() == good.as_ref()
                    }
                    _ => change.error.is_none() && slot.active().is_some() && slot.active() != good.as_ref(),
                };
                if !fine {
                    return Outcome::Fail(format!("{text}: want {want}, got {change:?}"));
                }
            }
            Outcome::Pass
        }
        "affinity" => {
            let text = format!(
                "configVersion: v3.1\nenabled: true\naffinityAware: {{key: {}, ratio: {}}}\n",
                input["key"].as_str().unwrap_or_default(),
                input["ratio"]
            );
            let answer = |dialect| {
                let mut slot = Slot::new(RuleKind::Affinity, dialect);
                let refused = slot.set(Some(&text)).error.is_some();
                let rule = slot.active().map(|rule| (**rule).clone());
                let router = Router::Rule(rule.as_ref(), RuleKind::Affinity);
                (refused, route_all(router, dialect, consumer, &invokers, Some(&Call::default())))
            };
            let (refused, got) = answer(dialect);
            let events = if refused { json!(["rule_error"]) } else { Value::Null };
            if events != expect["events"] {
                return Outcome::Fail(format!("events {events}"));
            }
            if !expect["compat_dubbo_go"].is_null()
                && let Outcome::Fail(why) = answer(Dialect::DubboGo).1.expect(&expect["compat_dubbo_go"])
            {
                return Outcome::Fail(format!("[dubbo-go] {why}"));
            }
            kept(got)
        }
        "rule_keys" => {
            let of_app = application_rule_key;
            let text = |name: &str| input[name].as_str().unwrap_or_default();
            let of_service =
                |kind| service_rule_key(dialect, kind, text("service"), text("version"), text("group"));
            let (consumer, provider) = (text("consumer_application"), text("provider_application"));
            for (name, want) in expect.as_object().into_iter().flatten() {
                let got = match name.as_str() {
                    "tag" => json!(of_app(RuleKind::Tag, provider)),
                    "condition_app" => {
                        json!([of_app(RuleKind::Condition, consumer), of_app(RuleKind::Condition, provider)])
                    }
                    "condition_service" => json!(of_service(RuleKind::Condition)),
                    "affinity_service" => json!(of_service(RuleKind::Affinity)),
                    // Script rules are keyed by the provider's application, like tags.
                    "script" => json!(format!("{provider}.script-router")),
                    other => return Outcome::Fail(format!("unknown key {other}")),
                };
                if got != *want {
                    return Outcome::Fail(format!("{name}: got {got}, want {want}"));
                }
            }
            Outcome::Pass
        }
        other => Outcome::Fail(format!("unknown kind {other}")),
    }
}
