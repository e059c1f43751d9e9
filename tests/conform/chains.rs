//! Cases of router chains and their lists: `dubbo_chain.jsonl` and the reports about them.

use crate::Outcome;
use crate::condition::call_of;
use crate::engines::{Compiled, InForce, naive_chain, with_invocation};
use crate::naive::{Call, World, url::Url};
use crate::routing::invokers_of;
use crate::tag::dialect_of;
use byway::chain;
use byway::chain::bits::RowSet;
use byway::chain::chain::{Chain, ChainOptions};
use byway::chain::invocation::Invocation;
use byway::chain::program::Program;
use byway::chain::router::{RouterSlot, SlotBody, select};
use byway::chain::snapshot::Invokers;
use byway::chain::store::RuleStore;
use byway::rules::dialect::{Dialect, Role, service_rule_key};
use byway::rules::{RuleKind, routers};
use byway::runtime::random::RandomSource;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Kinds about chains.
pub(crate) fn run(kind: &str, case: &Value) -> Outcome {
    match kind {
        "chain" | "chain-cache" => chain_case(case),
        "chain-order" => order(case),
        "chain-snapshot" => snapshot(case),
        "chain-sharing" => sharing(case),
        "snapshot-switch" => switch(case),
        "bitlist" => bit_list(case),
        other => Outcome::Fail(format!("unknown kind {other}")),
    }
}

/// Java's class names of the built-in routers.
fn role_of(class: &str) -> Option<Role> {
    Some(match class {
        "MockInvokersSelector" => Role::Mock,
        "StandardMeshRuleRouter" => Role::Mesh,
        "TagStateRouter" => Role::Tag,
        "ServiceStateRouter" => Role::Service,
        "ProviderAppStateRouter" => Role::ProviderApplication,
        "AppStateRouter" => Role::Application,
        "AppScriptStateRouter" => Role::Script,
        _ => return None,
    })
}

const CONSUMER: &str = "consumer://127.0.0.1/com.demo.Service";

fn consumer_of(case: &Value) -> &str {
    case["consumer_url"].as_str().filter(|text| text.contains("://")).unwrap_or(CONSUMER)
}

/// A chain without rules, routed by the naive reference and the compiled engine.
fn route(case: &Value, dialect: Dialect) -> Result<Vec<usize>, String> {
    let invokers = invokers_of(&case["invokers"]);
    let call = call_of(&case["invocation"]).unwrap_or_default();
    let urls: Vec<Url> = invokers.iter().map(|text| Url::parse(text, dialect)).collect();
    let world = World::new(dialect, consumer_of(case), &urls, Some(&call));
    let naive = naive_chain(&world, &InForce::default(), &mut |_| 0);
    let store = RuleStore::new(routers::languages(), dialect as u8);
    let compiled = Compiled::whole(dialect, consumer_of(case), &invokers, &store).route(&call, 0);
    if naive == compiled { Ok(naive) } else { Err(format!("naive {naive:?}, compiled {compiled:?}")) }
}

fn ids(case: &Value, rows: &[usize]) -> Value {
    rows.iter().map(|&row| case["invokers"][row]["id"].clone()).collect()
}

fn chain_case(case: &Value) -> Outcome {
    let dialect = dialect_of(case);
    let expect = &case["expect"];
    if let Some(keys) = expect["delivered_keys"].as_array() {
        return delivered(case, keys);
    }
    if expect["assert"].is_string() {
        // One writer and four readers; every answer belongs to one list.
        return race(4, 1, 2000, &[&["a", "b", "c"], &["b", "c", "d"], &["e"]]);
    }
    if !expect["call_order"].is_null() {
        let body = || SlotBody::Program(Arc::new(Program::new(Vec::new())));
        let priorities = case["added_priorities"].as_array().into_iter().flatten().filter_map(Value::as_i64);
        let slots: Vec<RouterSlot> =
            priorities.map(|one| RouterSlot::new(one.to_string(), one, body())).collect();
        let order: Vec<i64> = select(&slots, None).iter().map(|slot| slot.priority).collect();
        return Outcome::equal(json!(order), expect["call_order"].clone());
    }
    if case["routers"].is_array() {
        return sequence(case);
    }
    if expect["pool_calls"].is_u64() {
        return cache(case);
    }
    if expect["ok"] == true {
        // A null list is an empty one.
        return Outcome::equal(route(case, dialect), Ok(Vec::new()));
    }
    if let Some(error) = expect["error"].as_str() {
        // A chain here has one world at a time: a call never meets a list that changes under it, so there is
        // nothing to refuse, and no second chain whose absence would be an error. What is asked for instead is
        // the answer over the list the call belongs to.
        if !error.starts_with("IllegalStateException: reject to route") && !error.contains("chains' size") {
            return Outcome::Fail(format!("unknown error {error}"));
        }
        return route(case, Dialect::Byway).map_or_else(Outcome::Fail, |_| Outcome::Pass);
    }
    match route(case, dialect) {
        Ok(rows) => {
            if let Some(size) = case["router_input_size"].as_u64()
                && size != rows.len() as u64
            {
                return Outcome::Fail(format!("{} rows reach the routers, want {size}", rows.len()));
            }
            Outcome::equal(ids(case, &rows), expect.clone())
        }
        Err(why) => Outcome::Fail(why),
    }
}

/// Static configurations that count: those that are there, enabled and valid, whatever their key.
fn delivered(case: &Value, keys: &[Value]) -> Outcome {
    let Some(configs) = case["configs"].as_array() else {
        // Not a list, or only described in words: a URL carries its routers as parameters, and this one has none.
        return match keys {
            [] => Outcome::Pass,
            _ => Outcome::Skip,
        };
    };
    let mut delivered = Vec::new();
    for config in configs.iter().filter(|config| config.is_object()) {
        let mut config = config.clone();
        config["conditions"] = json!(["=> a=b"]);
        let text = config.to_string();
        match byway::rules::parse(RuleKind::Condition, Dialect::Byway, &text) {
            Ok(Some(rule)) if rule.in_force() => match rule.declared_key() {
                Ok(key) => delivered.push(key.trim_end_matches(RuleKind::Condition.suffix()).to_owned()),
                Err(error) => return Outcome::Fail(error.to_string()),
            },
            Ok(_) => {}
            Err(error) => return Outcome::Fail(error.to_string()),
        }
    }
    Outcome::equal(json!(delivered), json!(keys))
}

/// Host routers in ascending order, each on the output of the one before.
fn sequence(case: &Value) -> Outcome {
    struct Seen {
        first_only: bool,
        input: AtomicUsize,
    }
    impl chain::router::Router for Seen {
        fn route(&self, request: &mut chain::router::Request<'_>) -> byway::Result<chain::router::Verdict> {
            let rows: Vec<usize> = request.rows.iter().collect();
            self.input.store(rows.len(), Ordering::Relaxed);
            if !self.first_only {
                return Ok(chain::router::Verdict::Pass);
            }
            rows.first().iter().for_each(|&&row| request.keep(row));
            Ok(chain::router::Verdict::Kept)
        }
    }
    let mut slots = Vec::new();
    let mut seen = Vec::new();
    for router in case["routers"].as_array().into_iter().flatten() {
        let body =
            Arc::new(Seen { first_only: router["does"] != "identity", input: AtomicUsize::new(usize::MAX) });
        seen.push((Arc::clone(&body), router["input_size"].as_u64()));
        let priority = router["priority"].as_i64().unwrap_or_default();
        slots.push(RouterSlot::new(format!("{priority}"), priority, SlotBody::Foreign(body)));
    }
    let invokers = invokers_of(&case["invokers"]);
    let rules = RuleStore::new(routers::languages(), 0);
    let call = call_of(&case["invocation"]).unwrap_or_default();
    let rows = Compiled::new(Dialect::Byway, consumer_of(case), &invokers, slots, rules).route(&call, 0);
    for (router, size) in seen {
        let input = router.input.load(Ordering::Relaxed) as u64;
        if size.is_some_and(|size| size != input) {
            return Outcome::Fail(format!("a router saw {input} rows, want {size:?}"));
        }
    }
    Outcome::equal(ids(case, &rows), case["expect"].clone())
}

/// dubbo-go's pool per router name is the memo here. What can be seen of it: a remembered answer belongs to the
/// generation it was made for, and without a memo the answers are the same.
fn cache(case: &Value) -> Outcome {
    let invokers = invokers_of(&case["invokers"]);
    let store = RuleStore::new(routers::languages(), 0);
    let mut compiled = Compiled::whole(Dialect::Byway, consumer_of(case), &invokers, &store);
    let call = call_of(&json!({"method": "Say"})).unwrap_or_default();
    let (first, generation) = (compiled.route(&call, 0), compiled.chain().generation());
    let again = compiled.route(&call, 0);
    compiled.set_invokers(&invokers);
    let newer = compiled.chain().generation() > generation;
    Outcome::equal((first == again, newer, compiled.route(&call, 0) == first), (true, true, true))
}

fn order(case: &Value) -> Outcome {
    let dialect = dialect_of(case);
    let body = || SlotBody::Program(Arc::new(Program::new(Vec::new())));
    let slot = |place: &byway::rules::dialect::Place| RouterSlot::new(place.name, place.order, body());
    let places = dialect.table().routers;
    // Affinity came with 3.3.6, after the classes these cases were made with; `address` runs on request only.
    let late = [Role::AffinityService, Role::AffinityProviderApplication, Role::Address];
    let slots: Vec<RouterSlot> =
        places.iter().filter(|place| !late.contains(&place.role)).map(slot).collect();
    let consumer = match chain::url::Url::parse(consumer_of(case)) {
        Ok(url) => url,
        Err(error) => return Outcome::Fail(error.to_string()),
    };
    let chosen = select(&slots, consumer.parameter("router"));
    let got: Vec<Option<Role>> = chosen
        .iter()
        .map(|slot| places.iter().find(|place| place.name == &*slot.name).map(|place| place.role))
        .collect();
    let want: Vec<Option<Role>> =
        case["expect"].as_array().into_iter().flatten().map(|name| name.as_str().and_then(role_of)).collect();
    Outcome::equal(got, want)
}

/// A snapshot text of Dubbo, as far as it says something about routing: which routers were reached, and their counts.
fn snapshot(case: &Value) -> Outcome {
    let text = case["expect"]["text"].as_str().unwrap_or_default();
    let invokers = invokers_of(&case["invokers"]);
    let call = call_of(&case["invocation"]).unwrap_or_default();
    let dialect = dialect_of(case);
    let store = RuleStore::new(routers::languages(), dialect as u8);
    let mut compiled = Compiled::whole(dialect, consumer_of(case), &invokers, &store);
    if !text.starts_with("[ Parent") {
        return tool_snapshot(text, &mut compiled, &invokers);
    }
    let explained = with_invocation(&call, |call| compiled.chain().explain(call));
    let Ok(explained) = explained else { return Outcome::Fail(format!("{explained:?}")) };
    let number = |line: &str, name: &str| -> Option<usize> {
        let rest = line.split_once(&format!("({name}: "))?.1;
        rest.split_once(')')?.0.parse().ok()
    };
    let mut reached = Vec::new();
    for line in text.lines() {
        let name = line.trim_start().trim_start_matches("[ ").split(' ').next().unwrap_or_default();
        let counts =
            (number(line, "Input"), number(line, "Current Node Output"), number(line, "Chain Node Output"));
        let (Some(input), Some(output), Some(chain_output)) = counts else {
            return Outcome::Fail(format!("cannot read {line}"));
        };
        if chain_output != explained.output {
            return Outcome::Fail(format!("the chain leaves {}, want {chain_output}", explained.output));
        }
        match role_of(name) {
            None if name == "Parent" && input == explained.input => {}
            None => return Outcome::Fail(format!("unknown router in {line}")),
            // Not here yet: passes what it gets.
            Some(Role::Mesh | Role::Script) if input == output => {}
            Some(role) => {
                let Some((own, _)) = routers::place(dialect, role) else {
                    return Outcome::Fail(format!("no {role:?}"));
                };
                let router = explained.routers.iter().find(|router| router.name == own);
                let Some(router) = router.filter(|router| router.reached) else {
                    return Outcome::Fail(format!("{own} is not reached"));
                };
                if (router.input, router.output) != (input, output) {
                    return Outcome::Fail(format!(
                        "{own}: {} to {}, want {line}",
                        router.input, router.output
                    ));
                }
                reached.push(own);
            }
        }
    }
    let too_many =
        explained.routers.iter().find(|router| router.reached && !reached.contains(&router.name.as_str()));
    too_many.map_or(Outcome::Pass, |router| Outcome::Fail(format!("{} is reached", router.name)))
}

/// What the operations command shows: the mock router's two groups, and the routers in order.
fn tool_snapshot(text: &str, compiled: &mut Compiled, invokers: &[String]) -> Outcome {
    let mut wanted_mock = Call { method: Some("m".into()), ..Call::default() };
    wanted_mock.attachments.insert("invocation.need.mock".into(), "true".into());
    let explain = |call: &Call, compiled: &Compiled| {
        with_invocation(call, |call| compiled.chain().explain(call)).map_err(|error| error.to_string())
    };
    let plain = Call { method: Some("m".into()), ..Call::default() };
    let both = explain(&wanted_mock, compiled).and_then(|mocks| Ok((mocks, explain(&plain, compiled)?)));
    let (mocks, normal) = match both {
        Ok(both) => both,
        Err(why) => return Outcome::Fail(why),
    };
    let of_mock = |explained: &chain::explain::Explanation| {
        explained.routers.iter().find(|router| router.name == "mock").map_or(0, |router| router.output)
    };
    let mut classes = Vec::new();
    for line in text.lines() {
        let total = line
            .rsplit_once("Total: ")
            .and_then(|(_, rest)| rest.trim_end_matches([' ', ']', ')']).parse::<usize>().ok());
        let fine = match line.trim() {
            "v" => true,
            line if line.starts_with("[ Mocked") => total == Some(of_mock(&mocks)),
            line if line.starts_with("[ Normal") => total == Some(of_mock(&normal)),
            line if line.starts_with("MockInvokersSelector") => {
                classes.push(Role::Mock);
                total == Some(invokers.len())
            }
            line if line.starts_with("TailStateRouter") => true,
            line => match line.split(' ').next().and_then(role_of) {
                Some(role) => {
                    classes.push(role);
                    true
                }
                None => false,
            },
        };
        if !fine {
            return Outcome::Fail(format!("{line}: {} mocks, {} others", of_mock(&mocks), of_mock(&normal)));
        }
    }
    let own: Vec<Role> =
        classes.iter().copied().filter(|role| !matches!(role, Role::Mesh | Role::Script)).collect();
    let names: Vec<&str> =
        own.iter().filter_map(|&role| routers::place(Dialect::Dubbo3, role)).map(|(name, _)| name).collect();
    let late = ["affinity_service", "affinity-provider-app"];
    let status = compiled.chain().status();
    let got: Vec<&str> =
        status.iter().map(|router| &*router.name).filter(|name| !late.contains(name)).collect();
    Outcome::equal(got, names)
}

/// Chains share no routers: what is built for one service never decides for another.
fn sharing(case: &Value) -> Outcome {
    let consumers =
        ["consumer://10.0.1.1/com.foo.A?application=c", "consumer://10.0.1.1/com.foo.B?application=c"];
    let invokers = ["dubbo://10.0.0.1:1/s?x=1".to_owned(), "dubbo://10.0.0.2:1/s?x=2".to_owned()];
    let store = RuleStore::new(routers::languages(), 1);
    let mut chains: Vec<Compiled> = consumers
        .iter()
        .map(|consumer| Compiled::whole(Dialect::Dubbo3, consumer, &invokers, &store))
        .collect();
    for (service, value) in [("com.foo.A", 1), ("com.foo.B", 2)] {
        let key = service_rule_key(Dialect::Dubbo3, RuleKind::Condition, service, "", "");
        if let Err(error) = store.put(&key, &format!("force: true\nconditions: ['=> x={value}']")) {
            return Outcome::Fail(error.to_string());
        }
    }
    let call = Call { method: Some("m".into()), ..Call::default() };
    let own: Vec<Vec<usize>> = chains.iter_mut().map(|chain| chain.route(&call, 0)).collect();
    let ends_in = if own == [[0], [1]] { "A" } else { "B" };
    Outcome::equal(
        json!(format!("AppScriptStateRouter of {ends_in}")),
        case["sane"]["walk_of_A_ends_in"].clone(),
    )
}

/// Upstream marks the calling thread between switch and response. Here whoever wants to know asks for an
/// explanation of the choice at hand; there is no mark that could be left behind.
/// Dubbo marks the thread while it makes a call of a service whose calls are kept, and must unmark it afterwards.
/// Here the switch is the service's chain itself: a call of it is kept, the thread's next call of another service is
/// not.
fn switch(case: &Value) -> Outcome {
    let chain_of = |service: &str| {
        let consumer = chain::url::Url::parse(&format!("consumer://127.0.0.1/{service}")).ok()?;
        let options = ChainOptions::new(consumer, Vec::new());
        let store = RuleStore::new(Vec::new(), 0);
        Some(Chain::new(options, store, Arc::new(RandomSource::seeded(1))))
    };
    let service = case["invocation"]["service_key"].as_str().unwrap_or_default();
    let (Some(own), Some(other)) = (chain_of(service), chain_of("Another")) else {
        return Outcome::Fail(format!("{service} is no interface"));
    };
    let mut over = false;
    for step in case["steps"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        match step.split_once(' ') {
            Some((what @ ("enable" | "disable"), key)) if key == service => own.keep_recent(what == "enable"),
            None if matches!(step, "onResponse" | "onError") => over = true,
            _ => return Outcome::Fail(format!("unknown step {step}")),
        }
    }
    let call = Invocation::new(b"call");
    let kept = || own.recent().len() + other.recent().len();
    let route = |chain: &Chain| {
        let before = kept();
        chain.route(&call).map(|_| kept() > before)
    };
    let printed = route(&own).and_then(|first| if over { route(&other) } else { Ok(first) });
    match printed {
        Ok(printed) => Outcome::equal(json!({ "need_print": printed }), case["expect"].clone()),
        Err(error) => Outcome::Fail(error.to_string()),
    }
}

/// Dubbo's bit lists as what they stand for: sets of invokers in list order. Which of them came later (the tail),
/// and over which list object a set was made, are nothing a set has.
fn bit_list(case: &Value) -> Outcome {
    let steps = case["steps"].as_array().cloned().unwrap_or_default();
    // Every name in the case, in the order it appears: the list the sets are over.
    let mut names: Vec<String> = Vec::new();
    fn collect(value: &Value, names: &mut Vec<String>) {
        match value {
            Value::Array(list) => list.iter().for_each(|one| collect(one, names)),
            Value::String(text) if !names.contains(text) => names.push(text.clone()),
            _ => {}
        }
    }
    for step in &steps {
        let list: &[Value] = step["args"].as_array().map_or(&[], Vec::as_slice);
        let named = matches!(list, [Value::String(_), Value::Array(_) | Value::String(_), ..]);
        list.iter().skip(usize::from(named)).for_each(|value| collect(value, &mut names));
    }
    let count = names.len();
    let set_of = |value: &Value| -> RowSet {
        let one = std::slice::from_ref(value);
        let list = value.as_array().map_or(one, Vec::as_slice);
        let row = |name: &Value| names.iter().position(|own| Some(own.as_str()) == name.as_str());
        let mut rows: Vec<u32> =
            list.iter().filter_map(row).filter_map(|row| u32::try_from(row).ok()).collect();
        rows.sort_unstable();
        RowSet::from_list(count, rows)
    };
    let members = |set: &RowSet| -> Vec<String> {
        (0..count).filter(|&row| set.contains(row)).map(|row| names[row].clone()).collect()
    };
    let mut sets: HashMap<String, RowSet> = HashMap::new();
    for step in &steps {
        let op = step["op"].as_str().unwrap_or_default();
        let args: Vec<Value> = step["args"].as_array().cloned().unwrap_or_default();
        // Cases with several sets name them in front.
        let known = |value: &Value| value.as_str().is_some_and(|name| sets.contains_key(name));
        let makes = matches!(op, "new") && args.len() == 2;
        let named = makes || args.first().is_some_and(known);
        let name = if named { args[0].as_str().unwrap_or_default().to_owned() } else { String::new() };
        let args = &args[usize::from(named)..];
        let set = sets.get(&name).cloned().unwrap_or_else(|| RowSet::none(count));
        let other = || args.first().and_then(Value::as_str).and_then(|name| sets.get(name)).cloned();
        let given = |at: usize| args.get(at).cloned().unwrap_or_default();
        let place = |at: usize| given(at).as_u64().map_or(usize::MAX, |index| index as usize);
        let list = members(&set);
        let without = |gone: &RowSet| set.and(&gone.complement());
        let mut answer = Value::Null;
        let mut next = None;
        match op {
            "new" => next = Some(set_of(&given(0))),
            "size" => answer = json!(set.count()),
            "is_empty" => answer = json!(set.is_empty()),
            "to_list" => answer = json!(list),
            "get" => answer = json!(list.get(place(0))),
            "contains" => answer = json!(!set.and(&set_of(&given(0))).is_empty()),
            "index_of" => {
                answer = json!(list.iter().position(|name| Some(name.as_str()) == given(0).as_str()))
            }
            "add" | "add_all" => next = Some(set.or(&set_of(&given(0)))),
            "add_index" => {
                next = Some(set.or(&RowSet::from_list(count, vec![u32::try_from(place(0)).unwrap_or(0)])));
            }
            "add_all_bitlist" => next = other().map(|other| set.or(&other)),
            "remove" | "remove_all" | "remove_if" => next = Some(without(&set_of(&given(0)))),
            "remove_at" => {
                answer = json!(list.get(place(0)));
                next = Some(without(&set_of(&answer)));
            }
            "clear" => next = Some(RowSet::none(count)),
            "and" | "or" => {
                let Some(other) = other() else { return Outcome::Fail(format!("no second set in {step}")) };
                let result = if op == "and" { set.and(&other) } else { set.or(&other) };
                answer = json!(members(&result));
                match step["store"].as_str() {
                    Some(store) => drop(sets.insert(store.to_owned(), result)),
                    None if op == "and" => next = Some(result),
                    None => {}
                }
            }
            "new_from" => answer = json!(list),
            "new_from_empty" => answer = json!(members(&RowSet::none(count))),
            "clone" => {
                if let Some(to) = args.first().and_then(Value::as_str) {
                    sets.insert(to.to_owned(), set.clone());
                }
            }
            "equals" => answer = json!(members(&set.clone()) == list),
            "not_same" => answer = json!(true),
            "hash_equal_to_plain_list" => answer = json!(members(&set_of(&given(0))) == list),
            "sub_list" => {
                let end = place(1).min(list.len());
                answer = json!(list.get(place(0).min(end)..end));
            }
            "random_select_one" => answer = json!(list.first()),
            "empty_list_add" => {}
            "empty_list_to_list" => answer = json!(members(&RowSet::none(count))),
            "list_iterator" => {
                // A walk with removal takes one side first, then the other.
                let at = place(0).min(list.len());
                let (head, tail) = list.split_at(at);
                let left = if step["walk"] == "forward then backward" { head } else { tail };
                let gone = set_of(&json!(if left == head { tail } else { head }));
                let remains = members(&without(&gone));
                if step["remove"] == true && json!(remains) != step["after_first_half"] {
                    return Outcome::Fail(format!("{step}: {remains:?}"));
                }
                continue;
            }
            "parallel" => {
                // Sets do not change; a changed one is another set. Clones are whole wherever they are made.
                let whole = RowSet::all(count);
                let fine = std::thread::scope(|scope| {
                    let reader = scope.spawn(|| (0..1000).all(|_| members(&whole.clone()) == names));
                    let writer = scope.spawn(|| (0..1000).all(|_| set.or(&whole).count() == count));
                    reader.join().unwrap_or(false) && writer.join().unwrap_or(false)
                });
                if !fine {
                    return Outcome::Fail("a torn set".into());
                }
                continue;
            }
            // Which part of a list object an element is in.
            "origin_list" | "tail_list" | "has_tail" => continue,
            other => return Outcome::Fail(format!("unknown operation {other}")),
        }
        if let Some(next) = next {
            sets.insert(name, next);
        }
        let sane = ["sane_expect", "fixed_expect", "expect"].iter().find_map(|name| step.get(*name));
        if let Some(want) = sane
            && *want != answer
        {
            return Outcome::Fail(format!("{step}: got {answer}"));
        }
        if step.get("throws").is_some() && step.get("sane_expect").is_none() && !answer.is_null() {
            return Outcome::Fail(format!("{step}: got {answer}, there is nothing to get"));
        }
    }
    Outcome::Pass
}

/// Routes in `readers` threads while `writers` threads swap lists; every answer is one whole list.
fn race(readers: usize, writers: usize, rounds: usize, lists: &[&[&str]]) -> Outcome {
    let tag = |name: &str| name.bytes().fold(0u64, |tag, byte| tag << 8 | u64::from(byte));
    let snapshots: Vec<Arc<Invokers>> = lists
        .iter()
        .map(|list| {
            let mut builder = chain::snapshot::InvokersBuilder::new();
            list.iter().try_for_each(|name| builder.add(&format!("dubbo://{name}:1/s"), Some(tag(name))))?;
            builder.finish()
        })
        .collect::<byway::Result<_>>()
        .expect("lists");
    let wholes: Vec<Vec<u64>> =
        lists.iter().map(|list| list.iter().map(|name| tag(name)).collect()).collect();
    let rules = RuleStore::new(routers::languages(), 0);
    let compiled = Compiled::whole(Dialect::Byway, CONSUMER, &[], &rules);
    let chain = compiled.chain();
    if let Some(first) = snapshots.first() {
        chain.set_invokers(Arc::clone(first));
    }
    let faults: Vec<String> = std::thread::scope(|scope| {
        let writing: Vec<_> = (0..writers)
            .map(|from| {
                let snapshots = &snapshots;
                scope.spawn(move || {
                    for round in 0..rounds / 4 {
                        chain.set_invokers(Arc::clone(&snapshots[(round + from) % snapshots.len()]));
                    }
                })
            })
            .collect();
        let reading: Vec<_> = (0..readers)
            .map(|_| {
                let wholes = &wholes;
                scope.spawn(move || {
                    let mut session = chain.session();
                    let call = Call { method: Some("m".into()), ..Call::default() };
                    let mut faults = Vec::new();
                    for _ in 0..rounds {
                        let tags = with_invocation(&call, |call| {
                            session.route(call).map(|view| {
                                (0..view.len()).filter_map(|n| view.tag_at(n)).collect::<Vec<_>>()
                            })
                        });
                        match tags {
                            Ok(tags) if wholes.contains(&tags) => {}
                            other => faults.push(format!("{other:?}")),
                        }
                    }
                    faults
                })
            })
            .collect();
        writing.into_iter().for_each(|thread| thread.join().expect("a writer"));
        reading.into_iter().flat_map(|thread| thread.join().expect("a reader")).collect()
    });
    match faults.first() {
        None => Outcome::Pass,
        Some(first) => Outcome::Fail(format!("{} answers are no whole list, first {first}", faults.len())),
    }
}

/// Reports about chains and lists, under the default dialect.
pub(crate) fn report(kind: &str, case: &Value) -> Outcome {
    let (input, expect) = (&case["input"], &case["expect"]);
    if kind == "concurrency" {
        let lists: Vec<Vec<&str>> = input["lists"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|list| list.as_array().into_iter().flatten().filter_map(Value::as_str).collect())
            .collect();
        let lists: Vec<&[&str]> = lists.iter().map(Vec::as_slice).collect();
        let threads = |name: &str| input[name].as_u64().unwrap_or(1) as usize;
        // Rounds in place of seconds: the same number of races on every machine.
        let rounds = 1000 * input["seconds"].as_u64().unwrap_or(1) as usize;
        return race(threads("threads_route"), threads("threads_set_invokers"), rounds, &lists);
    }
    // Lists: what a router drops stays dropped, whatever is intersected with it afterwards.
    let names: Vec<&str> = ["base", "tail"]
        .iter()
        .flat_map(|part| input[*part].as_array().into_iter().flatten().filter_map(Value::as_str))
        .collect();
    let mut set = RowSet::all(names.len());
    for op in input["ops"].as_array().into_iter().flatten() {
        match op[0].as_str() {
            Some("drop_by_router") => {
                let row = names.iter().position(|name| Some(*name) == op[1].as_str()).unwrap_or(0);
                set = set.and(&RowSet::from_list(names.len(), vec![row as u32]).complement());
            }
            Some("and_with_unfiltered") => set = set.and(&RowSet::all(names.len())),
            _ => return Outcome::Fail(format!("unknown operation {op}")),
        }
    }
    let members: Vec<&str> =
        (0..names.len()).filter(|&row| set.contains(row)).map(|row| names[row]).collect();
    Outcome::equal(json!(members), expect["members"].clone())
}
