//! Explanations and dry runs of a chain, over rules as the rule languages lower them.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use byway::chain::chain::{Chain, ChainOptions};
use byway::chain::invocation::Invocation;
use byway::chain::program::*;
use byway::chain::recent::{KEPT, RecentCall};
use byway::chain::router::{RouterSlot, SlotBody, SlotKey};
use byway::chain::snapshot::Invokers;
use byway::chain::store::{Language, RuleState, RuleStore};
use byway::chain::url::Url;
use byway::error::{Error, Result, Status};
use byway::runtime::random::RandomSource;

/// A rule language for tests: one line `method address-tail`, or `!` for an error.
struct Lines;

struct LineState(Option<Arc<dyn Rule>>);

struct LineRule(String, String);

struct Ends(String, String);

impl ValueTest for Ends {
    fn test(&self, value: Option<&str>) -> bool {
        value.is_some_and(|value| value.ends_with(&self.0))
    }
    fn cache_key(&self) -> &str {
        &self.1
    }
    fn shape(&self) -> Shape<'_> {
        Shape::Affix("", &self.0)
    }
}

fn ends(text: &str) -> Test {
    Arc::new(Ends(text.into(), format!("= *{text}")))
}

impl Language for Lines {
    fn suffix(&self) -> &str {
        ".condition-router"
    }
    fn open(&self, _: u8) -> Box<dyn RuleState> {
        Box::new(LineState(None))
    }
}

impl RuleState for LineState {
    fn set(&mut self, text: &str) -> Result<()> {
        let (method, tail) = text.split_once(' ').ok_or_else(|| Error::new(Status::E_RULE, "no space"))?;
        self.0 = Some(Arc::new(LineRule(method.into(), tail.into())));
        Ok(())
    }
    fn remove(&mut self) {
        self.0 = None;
    }
    fn active(&self) -> Option<Arc<dyn Rule>> {
        self.0.clone()
    }
}

impl Rule for LineRule {
    fn lower(&self, _: &Lowering<'_>) -> Result<Program> {
        Ok(Program::new(vec![Step::Condition(Condition {
            when: CallTest::Value(CallKey::Method, ends(&self.0)),
            then: Then::Keep(RowTest::Value(Column::Address, ends(&self.1))),
            force: true,
            text: format!("method=*{} => address=*{}", self.0, self.1).into(),
        })]))
    }
}

fn chain() -> Chain {
    let rule = |key: &str| SlotBody::Rule { key: SlotKey::Fixed(key.into()), otherwise: None };
    let consumer = Url::parse("consumer://1.1.1.1/HelloService").unwrap();
    let routers = vec![
        RouterSlot::new("service", 140, rule("HelloService::.condition-router")),
        RouterSlot::new("app", 150, rule("me.condition-router")),
    ];
    let chain = Chain::new(
        ChainOptions::new(consumer, routers),
        RuleStore::new(vec![Arc::new(Lines)], 0),
        Arc::new(RandomSource::seeded(1)),
    );
    let urls = ["dubbo://10.0.0.1:20880/S", "dubbo://10.0.0.2:20882/S", "dubbo://10.0.0.3:20880/S"];
    chain.set_invokers(Invokers::from_urls(urls).unwrap());
    chain
}

#[test]
fn an_explanation_names_rule_counts_and_reasons() {
    let chain = chain();
    chain.rules().put("HelloService::.condition-router", "hello :20880").unwrap();
    let explanation = chain.explain(&Invocation::new(b"hello")).unwrap();
    assert_eq!(
        explanation.to_text(),
        "HelloService.hello: 3 -> 2\n  service [HelloService::.condition-router]: 3 -> 2\n    \
         \"method=*hello => address=*:20880\" applies: 3 -> 2\n    \
         dropped 1: \"method=*hello => address=*:20880\" wants address = *:20880\n      \
         10.0.0.2:20882 (address=10.0.0.2:20882)\n-> 10.0.0.1:20880\n-> 10.0.0.3:20880\n"
    );
    let json: serde_json::Value = serde_json::from_str(&explanation.to_json()).unwrap();
    assert_eq!(json["routers"][0]["dropped"][0]["first"][0]["tag"], 1);
    assert_eq!((json["in"].as_u64(), json["out"].as_u64()), (Some(3), Some(2)));
}

#[test]
fn routers_behind_a_stop_are_not_reached() {
    let chain = chain();
    chain.rules().put("HelloService::.condition-router", "hello :1").unwrap();
    chain.rules().put("me.condition-router", "hello :20880").unwrap();
    let explanation = chain.explain(&Invocation::new(b"hello")).unwrap();
    assert_eq!(explanation.emptied_by.as_deref(), Some("service"));
    let reached: Vec<bool> = explanation.routers.iter().map(|router| router.reached).collect();
    assert_eq!(reached, [true, false]);
    assert_eq!(explanation.routers[0].dropped[0].count, 3);
    assert_eq!(chain.route(&Invocation::new(b"hello")).unwrap().emptied_by(), Some("service"));
}

#[test]
fn a_dry_run_shows_the_change_and_changes_nothing() {
    let chain = chain();
    let calls = [Invocation::new(b"hello"), Invocation::new(b"other")];
    let key = "HelloService::.condition-router";
    let differences = chain.diff(key, Some("hello :20882"), &calls).unwrap();
    assert_eq!((differences[0].removed.as_slice(), differences[0].after), (&[0, 2][..], 1));
    assert!(!differences[1].is_change());
    assert_eq!(chain.route(&calls[0]).unwrap().len(), 3);
    assert_eq!(chain.diff(key, Some("nonsense"), &calls).unwrap_err().status(), Status::E_RULE);
    assert_eq!(chain.diff("x.condition-router", None, &calls).unwrap_err().status(), Status::E_NOT_FOUND);
    chain.rules().put(key, "hello :20882").unwrap();
    let back = chain.diff(key, None, &calls).unwrap();
    assert_eq!(back[0].added, [0, 2]);
}

#[test]
fn a_bad_update_keeps_the_rule_in_force_and_shows_in_the_status() {
    let chain = chain();
    let key = "HelloService::.condition-router";
    chain.rules().put(key, "hello :20882").unwrap();
    let events = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    chain.rules().observe(move |event| seen.lock().unwrap().push((event.revision, event.error.is_some())));
    assert!(chain.rules().put(key, "bad").is_err());
    assert_eq!(chain.route(&Invocation::new(b"hello")).unwrap().to_tags(), [1]);
    let status = chain.status();
    assert_eq!((status[0].revision, status[0].in_force, status[0].error.is_some()), (2, true, true));
    assert!(chain.rules().remove(key));
    assert_eq!(chain.route(&Invocation::new(b"hello")).unwrap().len(), 3);
    assert_eq!(*events.lock().unwrap(), [(2, true), (3, false)]);
    assert_eq!(chain.rules().put("no-such-kind", "x").unwrap_err().status(), Status::E_NOT_FOUND);
}

/// Sum of the providers each kept call came to, and how many are kept.
fn kept(chain: &Chain) -> (usize, Vec<u64>) {
    let calls = chain.recent();
    let out = calls.iter().map(|call| call.explanation.as_ref().unwrap().output).sum();
    (out, calls.iter().map(|call| call.number).collect())
}

#[test]
fn every_way_to_route_is_kept_once_while_the_switch_is_on() {
    let chain = chain();
    let hello = Invocation::new(b"hello");
    let mut session = chain.session();
    type Way<'a> = (&'a str, Box<dyn FnMut() + 'a>);
    let routes: [Way<'_>; 7] = [
        ("choice", Box::new(|| drop(chain.route(&hello).unwrap()))),
        ("tags", Box::new(|| assert_eq!(chain.route_tags(&hello, &mut []).unwrap().0, 3))),
        ("view", Box::new(|| chain.route_with(&hello, |_| ()).unwrap())),
        ("pick", Box::new(|| assert!(chain.pick(&hello, &Default::default()).unwrap().available))),
        ("session", Box::new(|| assert_eq!(chain.session().route(&hello).unwrap().len(), 3))),
        ("session again", Box::new(move || assert_eq!(session.route(&hello).unwrap().len(), 3))),
        ("many", Box::new(|| chain.session().route_many(&[hello], |_, _| ()).unwrap())),
    ];
    for (name, mut route) in routes {
        route();
        assert_eq!(chain.recent().len(), 0, "{name}, off");
        chain.keep_recent(true);
        route();
        route();
        assert_eq!(kept(&chain), (6, vec![1, 2]), "{name}, on");
        chain.explain(&hello).unwrap();
        chain.diff("HelloService::.condition-router", None, &[hello]).unwrap();
        assert_eq!(chain.recent().len(), 2, "{name}: explanations are no calls");
        chain.keep_recent(false);
        route();
        assert_eq!(chain.recent().len(), 0, "{name}, off again");
    }
}

#[test]
fn the_last_calls_are_explained_by_the_world_that_answered_them() {
    let chain = chain();
    chain.keep_recent(true);
    let mut session = chain.session();
    for i in 0..KEPT + 3 {
        if i == KEPT {
            chain.rules().put("HelloService::.condition-router", "hello :20882").unwrap();
        }
        let name = format!("call{i}.hello");
        session.route(&Invocation::new(name.as_bytes())).unwrap();
    }
    let calls = chain.recent();
    let numbers: Vec<u64> = calls.iter().map(|call| call.number).collect();
    assert_eq!(numbers, (4..=KEPT as u64 + 3).collect::<Vec<_>>());
    let explained: Vec<_> = calls.iter().map(|call| call.explanation.as_ref().unwrap()).collect();
    assert_eq!((explained[0].method.as_str(), explained[0].output), ("call3.hello", 3));
    assert_eq!((explained[KEPT - 1].method.as_str(), explained[KEPT - 1].output), ("call34.hello", 1));
    let json: serde_json::Value = serde_json::from_str(&RecentCall::list_to_json(&calls)).unwrap();
    assert_eq!(json[31]["explanation"]["routers"][0]["dropped"][0]["count"], 2);
    assert_eq!(json[0]["number"], 4);
    let text = RecentCall::list_to_text(&calls);
    assert!(text.starts_with("#4 at ") && text.contains("\n\n#5 at "), "{text}");
    assert!(text.contains("ms: HelloService.call34.hello: 3 -> 1\n"), "{text}");
}

#[test]
fn kept_calls_die_with_their_chain() {
    let chain = chain();
    chain.keep_recent(true);
    let list = Arc::downgrade(&chain.invokers());
    chain.route(&Invocation::new(b"hello")).unwrap();
    drop(chain);
    assert!(list.upgrade().is_none());
}
