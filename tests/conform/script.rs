//! Script and file routers.

use crate::Outcome;
use byway::chain::invocation::Invocation;
use byway::chain::snapshot::Invokers;
use byway::chain::store::RuleStore;
use byway::chain::url::Url;
use byway::error::{Error, Status};
use byway::rules::dialect::Dialect;
use byway::rules::file::FileRule;
use byway::rules::report::Report;
use byway::rules::script::{Call, Program, SUFFIX, ScriptLanguage, ScriptRule, check_language};
use byway::script::{Limits, Pool};
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

static POOL: LazyLock<Pool> = LazyLock::new(Pool::default);

/// Ids and the list; cases without URLs get one each.
fn list(case: &Value) -> (Vec<String>, Vec<u32>, Arc<Invokers>) {
    let rows = case["invokers"].as_array().cloned().unwrap_or_default();
    let id = |row: &Value| row["id"].as_str().or(row.as_str()).expect("an id").to_owned();
    let ids: Vec<_> = rows.iter().map(id).collect();
    let url = |(index, row): (usize, &Value)| match row["url"].as_str() {
        Some(url) => url.to_owned(),
        None => format!("dubbo://10.0.0.{index}:20880/com.foo.BarService"),
    };
    let urls: Vec<_> = rows.iter().enumerate().map(url).collect();
    let unavailable =
        (0u32..).zip(&rows).filter(|(_, row)| row["available"] == json!(false)).map(|(n, _)| n).collect();
    (ids, unavailable, Invokers::from_urls(urls.iter().map(String::as_str)).expect("invokers"))
}

/// The ids a script keeps.
fn run(source: &str, case: &Value) -> Result<Vec<String>, Error> {
    let (ids, unavailable, invokers) = list(case);
    // Ample, so that a busy machine changes no answer, except for the case that is about time.
    let endless = case["expect"]["error"].as_str().is_some_and(|error| error.contains("interrupted"));
    let time = if endless { Limits::default().time } else { Duration::from_secs(60) };
    let program = Arc::new(Program::new(source.to_owned(), Limits { time, ..Limits::default() })?);
    let consumer = case["consumer_url"].as_str().filter(|url| url.starts_with("consumer"));
    let consumer =
        Arc::new(Url::parse(consumer.unwrap_or("consumer://10.1.1.1/com.foo.BarService")).expect("a URL"));
    let invocation = &case["invocation"];
    let method = invocation["method"].as_str().unwrap_or_default();
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let attachments: Vec<(String, String)> = invocation["attachments"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(k, v)| (k.clone(), text(v)))
        .collect();
    let attachments: Vec<(&[u8], &[u8])> =
        attachments.iter().map(|(k, v)| (k.as_bytes(), v.as_bytes())).collect();
    let call = Invocation { attachments: &attachments, ..Invocation::new(method.as_bytes()) };
    let rows = (0..ids.len()).filter_map(|row| u32::try_from(row).ok()).collect();
    let call = Call::new(invokers, rows, &call, consumer).unavailable(unavailable);
    Ok(program.route(&POOL, call)?.into_iter().map(|row| ids[row as usize].clone()).collect())
}

/// Scripts that a case only describes.
fn described(rule: &str) -> String {
    match rule {
        "<Invoker[] holding invokers.get(2)>" => "[invokers.get(2)]",
        "<script that calls invokers[i].Invoke(context, invocation)>" => {
            "(function () { for (var i = 0; i < invokers.length; i++) invokers[i].Invoke(context, invocation); return invokers; })()"
        }
        "<script that calls GetURL(' Err Here ')>" => {
            "(function () { for (var i = 0; i < invokers.length; i++) invokers[i].GetURL(' Err Here '); return invokers; })()"
        }
        "<calls every exposed accessor of invoker url and invocation>" => {
            "(function () { var u = invokers[0].GetURL(); u.GetParam('a', 'b'); u.GetParamBool('a', true); u.GetParamInt('a', 1); \
             u.GetMethodParam('m', 'a', 'b'); u.GetNonDefaultParam('a'); u.Service(); u.ServiceKey(); u.Group(); u.Version(); \
             u.Address(); u.Key(); u.String(); invokers[0].IsAvailable(); invocation.MethodName(); invocation.ActualMethodName(); \
             invocation.Arguments(); invocation.ParameterValues(); invocation.ParameterTypeNames(); invocation.Attachments(); \
             invocation.GetAttachment('a'); invocation.GetAttachmentWithDefaultValue('a', 'b'); \
             var v = invokers[0].getUrl(); v.getParameters().size(); v.getServiceKey(); v.getMethodParameter('m', 'a', 'b'); \
             invocation.getAttachments().size(); context.getAttachment('a'); context.getUrl().getHost(); return invokers; })()"
        }
        _ => return rule.to_owned(),
    }
    .to_owned()
}

/// byway has one rule for every failure: the list is unchanged and the error is told. Where upstream throws, the
/// error is what must be there.
fn compare(case: &Value, got: Result<Vec<String>, Error>) -> Outcome {
    let expect = &case["expect"];
    let (ids, ..) = list(case);
    match (got, &expect["error"]) {
        (Ok(kept), Value::Null) => Outcome::equal(json!(kept), expect.clone()),
        (Ok(kept), Value::Bool(false)) => Outcome::equal(kept, ids),
        // A script that fails passes everybody on.
        (Err(error), Value::Null) if json!(ids) == *expect => {
            if error.status() == Status::E_SCRIPT {
                Outcome::Pass
            } else {
                Outcome::Fail(format!("{error:?}"))
            }
        }
        (Err(error), Value::Bool(true)) => {
            if error.status() == Status::E_SCRIPT {
                Outcome::Pass
            } else {
                Outcome::Fail(format!("{error:?}"))
            }
        }
        (Err(error), Value::String(want)) => {
            let fits = match want.split(':').next().unwrap_or_default() {
                "ClassCastException" => error.message().contains("expected a list"),
                "IllegalStateException" => want.ends_with(error.message()),
                _ => want.starts_with("interrupted") && error.status() == Status::E_TIMEOUT,
            };
            if fits { Outcome::Pass } else { Outcome::Fail(format!("got {error:?}, want {want}")) }
        }
        (got, _) => Outcome::Fail(format!("got {got:?}, want {expect}")),
    }
}

pub(crate) fn script(case: &Value) -> Outcome {
    let language = case["script_type"].as_str().unwrap_or("javascript");
    let got =
        check_language(language).and_then(|()| run(&described(case["rule"].as_str().expect("a rule")), case));
    compare(case, got)
}

pub(crate) fn file(case: &Value) -> Outcome {
    let folder = std::env::temp_dir().join(format!("byway-file-rule-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let written = case["consumer_url"].as_str().expect("a URL");
    let missing = case["rule"].is_null();
    let url = if missing {
        written.to_owned()
    } else {
        let name = written.split('?').next().and_then(|url| url.rsplit('/').next()).expect("a name");
        let query = written.split_once('?').map(|(_, query)| format!("?{query}")).unwrap_or_default();
        std::fs::write(folder.join(name), case["rule"].as_str().expect("a rule")).expect("a file");
        format!("file://{}{query}", folder.join(name).display())
    };
    let rule = FileRule::read(&Url::parse(&url).expect("a URL"));
    let expect = &case["expect"];
    let outcome = match (rule, expect.get("error")) {
        (Err(error), Some(Value::String(want))) if error.status() == Status::E_OS => {
            let fits = want.contains(error.about()) && want.contains("No such file");
            if fits { Outcome::Pass } else { Outcome::Fail(format!("got {error:?}, want {want}")) }
        }
        (Ok(rule), None) if expect.is_array() => {
            let got = check_language(rule.language.as_deref().unwrap_or("javascript"))
                .and_then(|()| run(rule.text(), case));
            compare(case, got)
        }
        (Ok(rule), None) => {
            let mut problems = Vec::new();
            if expect["protocol"] != json!(rule.router) || expect["type"] != json!(rule.language) {
                problems.push(format!("{rule:?}"));
            }
            if expect["runtime"].is_boolean() && expect["runtime"] != json!(rule.runtime) {
                problems.push(format!("runtime {}", rule.runtime));
            }
            if expect["rule"].is_string() && rule.text() != case["rule"].as_str().unwrap_or_default() {
                problems.push(format!("text {:?}", rule.text()));
            }
            if problems.is_empty() { Outcome::Pass } else { Outcome::Fail(problems.join("; ")) }
        }
        (got, want) => Outcome::Fail(format!("got {got:?}, want {want:?}")),
    };
    let _ = std::fs::remove_dir_all(folder);
    outcome
}

/// The ids that the rule of a text keeps; no rule in force keeps all.
fn by_rule(text: &str, dialect: Dialect, case: &Value) -> Result<Vec<String>, Error> {
    let (ids, ..) = list(case);
    let mut report = Report::new(text);
    let rule = ScriptRule::read(text, dialect, &mut report);
    if let Some(error) = report.to_error() {
        return Err(error);
    }
    match rule.filter(ScriptRule::in_force).and_then(|rule| rule.script) {
        Some(script) => run(&script, case),
        None => Ok(ids),
    }
}

pub(crate) fn rule(case: &Value) -> Outcome {
    let text = case["rule"].as_str().expect("a rule");
    let expect = &case["expect"];
    let got = by_rule(text, Dialect::DubboGo, case);
    if expect["count"].is_number() {
        // The changed ports are those of the script's own copies: what routing sees stays as it is.
        return Outcome::equal(got.map(|kept| json!(kept.len())).ok(), Some(expect["count"].clone()));
    }
    match got {
        Ok(kept) => Outcome::equal(json!(kept), expect.clone()),
        // A rule that is refused leaves everybody.
        Err(_) => Outcome::equal(json!(list(case).0), expect.clone()),
    }
}

pub(crate) fn lifecycle(case: &Value) -> Outcome {
    let good = "configVersion: v3.0\nkey: demo-provider\ntype: javascript\nenabled: true\nscript: \"(function () { return [invokers.get(1)]; })()\"\n";
    let store = RuleStore::new(vec![Arc::new(ScriptLanguage::default())], Dialect::Dubbo3 as u8);
    let key = format!("demo-provider{SUFFIX}");
    let Some(steps) = case["expect"].as_array() else {
        // A removal without content is a removal.
        store.put(&key, good).expect("a rule");
        return Outcome::equal(
            store.remove(&key) && store.active(&key, Dialect::DubboGo as u8).is_none(),
            true,
        );
    };
    let mut text = String::new();
    let mut problems = Vec::new();
    for step in steps {
        let next = match step["event"].as_str().unwrap_or_default() {
            "no rule" => None,
            "ADDED" | "MODIFIED good" => Some(good.to_owned()),
            "MODIFIED enabled: false" => Some(good.replace("enabled: true", "enabled: false")),
            "MODIFIED type: nosuch, enabled: true" => {
                // The last good text is back in force first: upstream keeps its compiled script for this step.
                store.put(&key, good).expect("a rule");
                text = good.to_owned();
                Some(good.replace("javascript", "nosuch"))
            }
            "MODIFIED without script" => {
                Some("configVersion: v3.0\nkey: demo-provider\ntype: javascript\n".to_owned())
            }
            "MODIFIED bad yaml" => Some("script: [".to_owned()),
            "DELETED" => {
                store.remove(&key);
                text.clear();
                None
            }
            other => return Outcome::Fail(format!("unknown event {other}")),
        };
        if let Some(next) = next
            && store.put(&key, &next).is_ok()
        {
            text = next;
        }
        let got = if text.is_empty() { Ok(list(case).0) } else { by_rule(&text, Dialect::Dubbo3, case) };
        let want = if step["sane_route"].is_array() { &step["sane_route"] } else { &step["route"] };
        if got.as_ref().ok().map(|kept| json!(kept)).as_ref() != Some(want) {
            problems.push(format!("{}: got {got:?}, want {want}", step["event"]));
        }
        let active = store.active(&key, Dialect::Dubbo3 as u8).is_some_and(|(rule, _)| rule.in_force());
        let filters = want.as_array().is_some_and(|list| list.len() == 1);
        if active != filters {
            problems.push(format!("{}: in force {active}", step["event"]));
        }
    }
    if problems.is_empty() { Outcome::Pass } else { Outcome::Fail(problems.join("; ")) }
}

pub(crate) fn bug(case: &Value) -> Outcome {
    let input = &case["input"];
    let (ids, ..) = list(input);
    let kept = |script: &str| match run(script, input) {
        Ok(kept) => kept,
        Err(_) => ids.clone(),
    };
    let got = match (input["scripts"].as_array(), input["script"].as_str()) {
        (Some(scripts), _) => {
            json!(scripts.iter().map(|s| kept(s.as_str().unwrap_or_default())).collect::<Vec<_>>())
        }
        (None, Some(script)) => json!(kept(script)),
        (None, None) => return Outcome::Skip,
    };
    if case["expect"].get("kept").is_none() {
        return Outcome::Skip;
    }
    Outcome::equal(got, case["expect"]["kept"].clone())
}
