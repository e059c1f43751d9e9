//! Mesh rules and their matchers.

use crate::Outcome;
use byway::chain::invocation::Invocation;
use byway::chain::snapshot::Invokers;
use byway::chain::store::RuleStore;
use byway::chain::url::Url;
use byway::rules::dialect::Dialect;
use byway::rules::mesh::matchers::{
    AddressMatch, Asked, AttachmentMatch, BoolMatch, DoubleMatch, MethodMatch, RequestMatch, one_of,
};
use byway::rules::mesh::route::Compiled;
use byway::rules::mesh::{MeshLanguage, MeshRules, SUFFIX};
use byway::rules::report::Report;
use byway::rules::string_match::StringMatch;
use byway::rules::yaml::{self, Node};
use byway::runtime::random::{Draw, Stream};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A matcher as the cases write it, through the reader of rule texts.
fn read<T>(
    value: &Value,
    dialect: Dialect,
    read: impl Fn(&Node, Dialect, &mut Report<'_>) -> Option<T>,
) -> T {
    let text = value.to_string();
    let mut report = Report::new(&text);
    let node = yaml::read(&text, &mut report).expect("YAML");
    read(&node, dialect, &mut report).unwrap_or_else(|| panic!("{text}: {:?}", report.problems()))
}

fn equal(got: bool, case: &Value) -> Outcome {
    Outcome::equal(json!(got), case["expect"].clone())
}

/// A matcher that a rule text holds: `rule` is the text, `parsed` what is left of it.
fn parsed(case: &Value, got: Value) -> Outcome {
    let want = &case["expect"]["parsed"];
    let pick: BTreeMap<_, _> =
        want.as_object().expect("fields").keys().map(|key| (key.clone(), got[key].clone())).collect();
    Outcome::equal(json!(pick), want.clone())
}

pub(crate) fn matcher(kind: &str, case: &Value) -> Outcome {
    let go = case["source"].as_str().unwrap_or_default().contains("dubbo-go");
    let dialect = if go { Dialect::DubboGo } else { Dialect::Dubbo3 };
    let (matcher, input) = (&case["matcher"], &case["input"]);
    if let Some(rule) = case["rule"].as_str() {
        let mut report = Report::new(rule);
        let node = yaml::read(rule, &mut report).expect("YAML");
        return match kind {
            "double_match" => {
                let read = DoubleMatch::read(&node, dialect, &mut report).expect("a matcher");
                parsed(case, json!({"exact": read.exact, "mod": read.modulus}))
            }
            "bool_match" => {
                let read = BoolMatch::read(&node, dialect, &mut report).expect("a matcher");
                parsed(case, json!({"exact": read.exact}))
            }
            _ => Outcome::Skip,
        };
    }
    let text = |name: &str| matcher[name].as_str().map(str::to_owned);
    let list = |name: &str| matcher[name].as_array().cloned().unwrap_or_default();
    match kind {
        "address_match" => {
            let matcher =
                AddressMatch { cird: text("cird"), wildcard: text("wildcard"), exact: text("exact"), go };
            equal(matcher.matches(input.as_str()), case)
        }
        "double_match" => match read(matcher, dialect, DoubleMatch::read).matches(input.as_f64()) {
            Ok(got) => equal(got, case),
            Err(fault) => Outcome::equal(json!({"error": fault.0}), case["expect"].clone()),
        },
        "bool_match" => {
            equal(read(matcher, dialect, BoolMatch::read).matches(input.as_bool().expect("a boolean")), case)
        }
        "list_bool_match" => {
            let list: Vec<_> = list("oneof").iter().map(|m| read(m, dialect, BoolMatch::read)).collect();
            equal(one_of(&list, input.as_bool().expect("a boolean"), |m, v| m.matches(v)), case)
        }
        "list_double_match" => {
            let list: Vec<_> = list("oneof").iter().map(|m| read(m, dialect, DoubleMatch::read)).collect();
            equal(one_of(&list, input.as_f64(), |m, v| m.matches(v) == Ok(true)), case)
        }
        "list_string_match" => {
            let list: Vec<_> = list("oneof").iter().map(|m| read(m, dialect, StringMatch::read)).collect();
            equal(one_of(&list, input.as_str(), |m, v| m.matches(v)), case)
        }
        "method_match" | "attachment_match" | "match_request" => request(kind, case),
        _ => Outcome::Skip,
    }
}

/// A call with everything it borrows.
struct Call {
    method: Vec<u8>,
    types: Vec<Vec<u8>>,
    arguments: Vec<Option<Vec<u8>>>,
    attachments: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Call {
    fn new(value: &Value) -> Call {
        let text = |value: &Value| match value {
            Value::String(text) => text.clone().into_bytes(),
            other => other.to_string().into_bytes(),
        };
        let arguments = value["arguments"].as_array().cloned().unwrap_or_default();
        let declared = value["parameter_types"].as_array().cloned().unwrap_or_default();
        // The cases' arguments have types, whether or not the types are written down.
        let of = |value: &Value| match value {
            Value::String(_) => "java.lang.String",
            Value::Bool(_) => "boolean",
            _ => "java.lang.Number",
        };
        let types = if value["parameter_types"].is_array() {
            declared.iter().map(text).collect()
        } else {
            arguments.iter().map(|argument| of(argument).as_bytes().to_vec()).collect()
        };
        let attachments = value["attachments"].as_object().into_iter().flatten();
        Call {
            method: value["method"].as_str().unwrap_or_default().as_bytes().to_vec(),
            types,
            arguments: arguments.iter().map(|a| (!a.is_null()).then(|| text(a))).collect(),
            attachments: attachments.map(|(k, v)| (k.clone().into_bytes(), text(v))).collect(),
        }
    }

    fn with<T>(&self, work: impl FnOnce(&Invocation<'_>) -> T) -> T {
        let types: Vec<&[u8]> = self.types.iter().map(Vec::as_slice).collect();
        let arguments: Vec<Option<&[u8]>> = self.arguments.iter().map(Option::as_deref).collect();
        let attachments: Vec<(&[u8], &[u8])> =
            self.attachments.iter().map(|(k, v)| (k.as_slice(), v.as_slice())).collect();
        work(&Invocation {
            method: &self.method,
            types: &types,
            arguments: &arguments,
            attachments: &attachments,
            ..Invocation::default()
        })
    }
}

fn request(kind: &str, case: &Value) -> Outcome {
    let dialect = Dialect::Dubbo3;
    let matcher = &case["matcher"];
    let labels = |name: &str| case["source_labels"][name].as_str().map(str::to_owned);
    let contexts = case["tracing_context"].as_array().cloned().unwrap_or_default();
    let tracing = |key: &str| {
        contexts.iter().map(|context| context[key].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    let call = Call::new(&case["invocation"]);
    call.with(|call| {
        let asked = Asked { call, label: &labels, tracing: &tracing };
        let got = match kind {
            "method_match" => read(matcher, dialect, MethodMatch::read).matches(call),
            "attachment_match" => Ok(read(matcher, dialect, AttachmentMatch::read).matches(&asked)),
            _ => read(matcher, dialect, RequestMatch::read).matches(&asked),
        };
        match got {
            Ok(got) => equal(got, case),
            Err(fault) => Outcome::equal(json!({"error": fault.0}), case["expect"].clone()),
        }
    })
}

fn urls(case: &Value) -> (Vec<String>, Arc<Invokers>) {
    let list = case["invokers"].as_array().cloned().unwrap_or_default();
    let ids = list.iter().map(|row| row["id"].as_str().expect("id").to_owned()).collect();
    let urls: Vec<_> = list.iter().map(|row| row["url"].as_str().expect("url").to_owned()).collect();
    (ids, Invokers::from_urls(urls.iter().map(String::as_str)).expect("invokers"))
}

/// The rules of a case over its list.
struct Prepared {
    ids: Vec<String>,
    compiled: Compiled,
    consumer: Url,
    came: Option<Vec<String>>,
    service: String,
    call: Call,
    dialect: Dialect,
}

impl Prepared {
    fn new(case: &Value, dialect: Dialect) -> Prepared {
        let (ids, invokers) = urls(case);
        let application = case["app"].as_str().unwrap_or("app1");
        let key = format!("{application}{SUFFIX}");
        let store = RuleStore::new(vec![Arc::new(MeshLanguage)], dialect as u8);
        if let Some(text) = case["rule"].as_str() {
            // A refused text leaves no rule, as upstream.
            let _ = store.put(&key, text);
        }
        let active = store
            .active(&key, dialect as u8)
            .and_then(|(rule, _)| rule.as_any()?.downcast_ref::<MeshRules>().cloned());
        let rules = active.filter(MeshRules::is_complete).map(Arc::new);
        let compiled = Compiled::new(&invokers, |name| rules.clone().filter(|_| name == application));
        let consumer = Url::parse(case["consumer_url"].as_str().unwrap_or("consumer://h/S")).expect("a URL");
        let came = case["route_input"]
            .as_array()
            .map(|list| list.iter().filter_map(Value::as_str).map(str::to_owned).collect());
        let service = case["invocation"]["service"].as_str().unwrap_or(consumer.interface()).to_owned();
        Prepared { ids, compiled, consumer, came, service, call: Call::new(&case["invocation"]), dialect }
    }

    /// One call.
    fn route(&self, draw: &mut dyn FnMut(u64) -> u64) -> Result<(Vec<String>, String), String> {
        let label = |name: &str| self.consumer.parameter(name).map(str::to_owned);
        let none = |_: &str| Vec::new();
        let usable = |row: usize| self.came.as_ref().is_none_or(|came| came.contains(&self.ids[row]));
        self.call.with(|call| {
            let asked = Asked { call, label: &label, tracing: &none };
            let routed = self.compiled.route(&self.service, &asked, &usable, draw, self.dialect);
            let routed = routed.map_err(|fault| fault.0.to_owned())?;
            let message = routed.message();
            let rows = match routed.rows {
                Some(rows) => rows.into_iter().map(|row| row as usize).collect(),
                None => (0..self.ids.len()).filter(|row| usable(*row)).collect::<Vec<_>>(),
            };
            Ok((rows.into_iter().map(|row| self.ids[row].clone()).collect(), message))
        })
    }
}

fn route_once(
    case: &Value,
    dialect: Dialect,
    draw: &mut dyn FnMut(u64) -> u64,
) -> Result<(Vec<String>, String), String> {
    Prepared::new(case, dialect).route(draw)
}

/// Shares over many calls, in units of one.
fn shares(case: &Value, dialect: Dialect) -> BTreeMap<String, f64> {
    const RUNS: u32 = 10_000;
    let prepared = Prepared::new(case, dialect);
    let mut stream = Stream::seeded(7);
    let mut counts: BTreeMap<String, f64> = BTreeMap::new();
    for _ in 0..RUNS {
        let (kept, _) = prepared.route(&mut |below| stream.below(below)).expect("an answer");
        for id in kept {
            *counts.entry(id).or_default() += 1.0 / f64::from(RUNS);
        }
    }
    counts
}

fn close(got: &BTreeMap<String, f64>, want: &Value) -> bool {
    let want = want.as_object().expect("shares");
    let near = |id: &str, share: f64| (got.get(id).copied().unwrap_or(0.0) - share).abs() < 0.015;
    want.iter().all(|(id, share)| near(id, share.as_f64().expect("a share")))
        && got.iter().all(|(id, share)| want.contains_key(id) || *share < 0.015)
}

pub(crate) fn mesh(case: &Value) -> Outcome {
    let expect = &case["expect"];
    let mut zero = |_: u64| 0;
    if let Some(want) = expect["error"].as_str() {
        return match route_once(case, Dialect::Dubbo3, &mut zero) {
            Err(fault) if want.starts_with(fault.as_str()) || fault.starts_with(want) => {
                // The default turns all of these into "does not match" or "nobody here".
                match route_once(case, Dialect::Byway, &mut zero) {
                    Ok(_) => Outcome::Pass,
                    Err(fault) => Outcome::Fail(format!("byway: {fault}")),
                }
            }
            got => Outcome::Fail(format!("got {got:?}, want {want}")),
        };
    }
    if expect.is_object() {
        if let Some(always) = expect["always"].as_array() {
            for dialect in [Dialect::Dubbo3, Dialect::Byway] {
                let got = shares(case, dialect);
                let ids: Vec<_> = got.keys().map(|id| json!(id)).collect();
                if ids != *always {
                    return Outcome::Fail(format!("{dialect:?}: got {got:?}"));
                }
            }
            return Outcome::Pass;
        }
        let observed = if case["observed_share"].is_object() {
            &case["observed_share"]
        } else {
            &expect["observed_share"]
        };
        for (dialect, want) in [(Dialect::Dubbo3, observed), (Dialect::Byway, &case["sane_share"])] {
            let got = shares(case, dialect);
            if want.is_object() && !close(&got, want) {
                return Outcome::Fail(format!("{dialect:?}: got {got:?}, want {want}"));
            }
        }
        return Outcome::Pass;
    }
    let got = match route_once(case, Dialect::Dubbo3, &mut zero) {
        Ok(got) => got,
        Err(fault) => return Outcome::Fail(fault),
    };
    if json!(got.0) != *expect {
        return Outcome::Fail(format!("got {got:?}, want {expect}"));
    }
    if let Some(message) = case["message"].as_str()
        && got.1 != message
    {
        return Outcome::Fail(format!("message {:?}, want {message:?}", got.1));
    }
    if case["fixed_expect"].is_array() || case["sane_expect"].is_array() {
        let want = if case["fixed_expect"].is_array() { &case["fixed_expect"] } else { &case["sane_expect"] };
        let got = route_once(case, Dialect::Byway, &mut zero).map(|got| json!(got.0));
        if got.as_ref() != Ok(want) {
            return Outcome::Fail(format!("byway: got {got:?}, want {want}"));
        }
    }
    Outcome::Pass
}

pub(crate) fn labels(case: &Value) -> Outcome {
    let row = &case["invokers"][0];
    let empty = serde_json::Map::new();
    let query: Vec<_> = row["params"]
        .as_object()
        .unwrap_or(&empty)
        .iter()
        .map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default()))
        .collect();
    let url = format!("dubbo://h:1/S?remote.application=a&{}", query.join("&"));
    let rules = subset_rules(&json!([{"name": "s", "labels": case["labels"]}]));
    let invokers = Invokers::from_urls([url.as_str()]).expect("invokers");
    let compiled = Compiled::new(&invokers, |_| Some(rules.clone()));
    equal(compiled.subset_len("a", "s") == Some(1), case)
}

fn subset_rules(subsets: &Value) -> Arc<MeshRules> {
    let text = json!({"kind": "DestinationRule", "metadata": {"name": "x"}, "spec": {"subsets": subsets}})
        .to_string();
    Arc::new(MeshRules::parse(&text, Dialect::Dubbo3).expect("rules"))
}

pub(crate) fn cache(case: &Value) -> Outcome {
    let (ids, invokers) = urls(case);
    let rules = subset_rules(&case["subsets"]);
    let with: Vec<&str> =
        case["rules_for"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let compiled = Compiled::new(&invokers, |name| with.contains(&name).then(|| rules.clone()));
    let unmatched = (0..ids.len()).filter(|row| !compiled.is_in_any(*row)).count();
    let mut got = json!({"unmatched": unmatched, "subset": {}});
    for key in case["expect"]["subset"].as_object().into_iter().flatten().map(|(key, _)| key) {
        let (application, subset) = key.split_once('/').expect("app/subset");
        got["subset"][key] = json!(compiled.subset_len(application, subset).unwrap_or(0));
    }
    Outcome::equal(got, case["expect"].clone())
}

/// Groups of documents per extension. Steps that count upstream's listeners have no counterpart.
pub(crate) fn listener(case: &Value) -> Outcome {
    let text = case["rule"].as_str().expect("a rule");
    let groups =
        |text: &str| MeshRules::parse(text, Dialect::Dubbo3).map(|rules| rules.groups).unwrap_or_default();
    let check = |groups: &BTreeMap<String, usize>, step: &Value| -> Result<bool, String> {
        let mut known = false;
        for (key, want) in step.as_object().into_iter().flatten() {
            let Some((group, what)) = key.split_once('.') else { continue };
            let got = groups.get(group).copied();
            let fits = match what {
                "onRuleChange" if want.is_object() => {
                    got == want["docs"].as_u64().and_then(|n| usize::try_from(n).ok())
                }
                "clearRule" => got.is_none(),
                _ => continue,
            };
            known = true;
            if !fits {
                return Err(format!("{key}: got {got:?}, want {want}"));
            }
        }
        Ok(known)
    };
    let expect = &case["expect"];
    let steps = expect.as_array().cloned().unwrap_or_else(|| vec![expect.clone()]);
    let mut known = false;
    for step in &steps {
        let text = if step["receive"] == json!("") { "" } else { text };
        match check(&groups(text), step) {
            Ok(one) => known |= one,
            Err(why) => return Outcome::Fail(why),
        }
    }
    if known { Outcome::Pass } else { Outcome::Skip }
}

pub(crate) fn lifecycle(case: &Value) -> Outcome {
    let text = case["rule"].as_str().expect("a rule");
    let first = text.split("\n---").next().expect("a document");
    let store = RuleStore::new(vec![Arc::new(MeshLanguage)], Dialect::Dubbo3 as u8);
    let mut problems = Vec::new();
    for step in case["expect"].as_array().expect("steps") {
        for application in ["app1", "app2"] {
            let key = format!("{application}{SUFFIX}");
            match step[format!("{application} receives")].as_str() {
                Some("DestinationRule only") => store.put(&key, first).expect("a rule"),
                Some(_) => store.put(&key, text).expect("a rule"),
                None => {}
            }
            if step["clear"] == json!(application) {
                store.remove(&key);
            }
        }
        let with: Vec<_> = ["app1", "app2"]
            .into_iter()
            .filter(|a| {
                store
                    .active(&format!("{a}{SUFFIX}"), Dialect::Dubbo3 as u8)
                    .is_some_and(|(rule, _)| rule.in_force())
            })
            .collect();
        if json!(with) != step["apps_with_rules"] {
            problems.push(format!("got {with:?} after {step}"));
        }
    }
    if problems.is_empty() { Outcome::Pass } else { Outcome::Fail(problems.join("; ")) }
}

pub(crate) fn parse(case: &Value) -> Outcome {
    let text = case["rule"].as_str().expect("a rule");
    let rules = MeshRules::parse(text, Dialect::Dubbo3).expect("rules");
    let expect = &case["expect"];
    if expect["documents"].is_array() {
        let mut kinds = vec!["DestinationRule"; rules.destinations.len()];
        kinds.extend(vec!["VirtualService"; rules.services.len()]);
        return Outcome::equal(json!(kinds), expect["documents"].clone());
    }
    if expect["kind"] == json!("DestinationRule") {
        let rule = &rules.destinations[0];
        if json!(rule.name) != expect["metadata.name"] {
            return Outcome::Fail(format!("got {rule:?}"));
        }
        return Outcome::Pass;
    }
    let service = &rules.services[0];
    let routes = &service.dubbo[0];
    let details: Vec<_> = routes.details.iter().map(|detail| {
        let matches: Vec<_> = detail.matches.iter().map(|block| {
            json!({"sourceLabels": block.source_labels.iter().cloned().collect::<BTreeMap<_, _>>()})
        }).collect();
        let route: Vec<_> = detail.routes.iter().map(|route| {
            let place = route.destination.as_ref().expect("a destination");
            json!({"destination": {"host": place.host, "subset": place.subset}})
        }).collect();
        json!({"name": detail.name, "match": if matches.is_empty() { Value::Null } else { json!(matches) }, "route": route})
    }).collect();
    let services: Vec<_> = routes.services.iter().map(|one| json!({"regex": one.regex})).collect();
    let got = json!({
        "apiVersion": service.api_version, "kind": "VirtualService", "metadata.name": service.name,
        "spec.hosts": service.hosts, "spec.dubbo.len": service.dubbo.len(), "spec.dubbo[0].name": routes.name,
        "services": services, "routedetail": details,
    });
    Outcome::equal(got, expect.clone())
}

// ---- public bug reports, under the defaults

pub(crate) fn bug_match(case: &Value) -> Outcome {
    let blocks = case["input"]["match"].as_array().expect("blocks");
    let rule = json!({"routedetail": [{"match": blocks, "route": [{"destination": {"subset": "s"}}]}]});
    let text = format!(
        "{}\n---\n{}\n",
        json!({"kind": "DestinationRule", "metadata": {"name": "x"}, "spec": {"subsets": [{"name": "s", "labels": {"v": "1"}}]}}),
        json!({"kind": "VirtualService", "metadata": {"name": "x"}, "spec": {"dubbo": [rule]}}),
    );
    let rules = Arc::new(MeshRules::parse(&text, Dialect::Byway).expect("rules"));
    let invokers =
        Invokers::from_urls(["dubbo://a:1/S?application=p&v=1", "dubbo://b:1/S?application=p&v=2"])
            .expect("invokers");
    let compiled = Compiled::new(&invokers, |_| Some(rules.clone()));
    let matched: Vec<bool> = case["input"]["consumer_labels"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|labels| {
            let label = |name: &str| labels[name].as_str().map(str::to_owned);
            let call = Invocation::new(b"m");
            let asked = Asked { call: &call, label: &label, tracing: &|_| Vec::new() };
            compiled
                .route("S", &asked, &|_| true, &mut |_| 0, Dialect::Byway)
                .expect("an answer")
                .rows
                .is_some()
        })
        .collect();
    Outcome::equal(json!(matched), case["expect"]["matched"].clone())
}

/// Subsets by the values of labels: the request's own labels choose the subset, and with nobody in it the list
/// passes.
pub(crate) fn bug_subset(case: &Value) -> Outcome {
    let input = &case["input"];
    let endpoints = input["endpoints"].as_array().expect("endpoints");
    let request = input["request"].as_object().expect("a request");
    let urls: Vec<String> = endpoints
        .iter()
        .enumerate()
        .map(|(index, endpoint)| {
            let query: Vec<_> = endpoint
                .as_object()
                .into_iter()
                .flatten()
                .map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default()))
                .collect();
            format!("dubbo://h{index}:1/S?application=p&{}", query.join("&"))
        })
        .collect();
    let wanted = json!({"name": "wanted", "labels": request});
    let text = format!(
        "{}\n---\n{}\n",
        json!({"kind": "DestinationRule", "metadata": {"name": "x"}, "spec": {"subsets": [wanted]}}),
        json!({"kind": "VirtualService", "metadata": {"name": "x"}, "spec": {"dubbo": [
            {"routedetail": [{"route": [{"destination": {"subset": "wanted"}}]}]}]}}),
    );
    let rules = Arc::new(MeshRules::parse(&text, Dialect::Byway).expect("rules"));
    let invokers = Invokers::from_urls(urls.iter().map(String::as_str)).expect("invokers");
    let compiled = Compiled::new(&invokers, |_| Some(rules.clone()));
    let call = Invocation::new(b"m");
    let asked = Asked { call: &call, label: &|_| None, tracing: &|_| Vec::new() };
    let routed = compiled.route("S", &asked, &|_| true, &mut |_| 0, Dialect::Byway).expect("an answer");
    let all = || (0..urls.len()).filter_map(|row| u32::try_from(row).ok()).collect();
    let kept = match (routed.rows, input["fallback"].as_str()) {
        (Some(rows), _) => rows,
        (None, Some("ANY_ENDPOINT") | None) => all(),
        (None, Some(_)) => return Outcome::Skip,
    };
    Outcome::equal(json!(kept), case["expect"]["kept"].clone())
}

pub(crate) fn bug_lint(case: &Value) -> Outcome {
    let names = |key: &str| case["input"][key].as_array().cloned().unwrap_or_default();
    let subsets: Vec<_> = names("defined_subsets").iter().map(|name| json!({"name": name})).collect();
    let routes: Vec<_> =
        names("route_subsets").iter().map(|name| json!({"destination": {"subset": name}})).collect();
    let text = format!(
        "{}\n---\n{}\n",
        json!({"kind": "DestinationRule", "metadata": {"name": "x"}, "spec": {"subsets": subsets}}),
        json!({"kind": "VirtualService", "metadata": {"name": "x"}, "spec": {"dubbo": [{"routedetail": [{"route": routes}]}]}}),
    );
    let problems = byway::rules::mesh::lint(&text, Dialect::Byway, None);
    let got: Vec<_> = problems
        .iter()
        .filter_map(|problem| {
            let name = problem.message.strip_prefix("unknown subset '")?.strip_suffix('\'')?;
            Some(format!("unknown_subset:{name}"))
        })
        .collect();
    Outcome::equal(json!(got), case["expect"]["warnings"].clone())
}
