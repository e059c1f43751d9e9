//! Mesh and script rules in a chain: they follow their keys, filter while they are in force, and are out of the way
//! while they are not.
#![allow(clippy::unwrap_used, reason = "a test")]

use byway::chain::chain::{Chain, ChainOptions};
use byway::chain::invocation::Invocation;
use byway::chain::snapshot::Invokers;
use byway::chain::store::RuleStore;
use byway::chain::url::Url;
use byway::rules::dialect::Dialect;
use byway::rules::mesh::router::MeshRouter;
use byway::rules::routers;
use byway::runtime::random::RandomSource;
use std::sync::Arc;

const URLS: [&str; 3] = [
    "dubbo://10.0.0.1:20880/com.foo.Bar?application=shop&v=1",
    "dubbo://10.0.0.2:20880/com.foo.Bar?application=shop&v=2",
    "dubbo://10.0.0.3:20880/com.foo.Bar?application=shop&v=2",
];

fn chain() -> (Chain, Arc<RuleStore>) {
    let dialect = Dialect::Byway;
    let store = RuleStore::new(routers::languages(), dialect as u8);
    let consumer = Url::parse("consumer://10.1.1.1/com.foo.Bar?application=web&env=gray").unwrap();
    let mut slots = routers::built_in(dialect, &consumer).unwrap();
    slots.extend(MeshRouter::slot(dialect));
    #[cfg(feature = "script")]
    slots.extend(byway::rules::script::slot(dialect, byway::script::Pool::default(), None));
    let options = ChainOptions::new(consumer, slots);
    let chain = Chain::new(options, store.clone(), Arc::new(RandomSource::seeded(1)));
    chain.set_invokers(Invokers::from_urls(URLS).unwrap());
    (chain, store)
}

fn kept(chain: &Chain, method: &str) -> Vec<usize> {
    let mut session = chain.session();
    session.route(&Invocation::new(method.as_bytes())).unwrap().rows().iter().collect()
}

#[test]
fn a_mesh_rule_takes_effect_when_it_is_set_and_goes_when_it_is_removed() {
    let (chain, store) = chain();
    assert!(chain.keys().iter().any(|key| **key == *"shop.MESHAPPRULE"), "{:?}", chain.keys());
    assert_eq!(kept(&chain, "hello"), [0, 1, 2]);
    let rule = "kind: DestinationRule\nmetadata: {name: shop}\nspec: {subsets: [{name: two, labels: {v: '2'}}]}\n---\n\
        kind: VirtualService\nmetadata: {name: shop}\nspec: {dubbo: [{routedetail: [{match: [{sourceLabels: {env: blue}}, \
        {sourceLabels: {env: gray}, method: {name_match: {prefix: he}}}], route: [{destination: {subset: two}}]}]}]}\n";
    store.put("shop.MESHAPPRULE", rule).unwrap();
    assert_eq!(kept(&chain, "hello"), [1, 2]);
    assert_eq!(kept(&chain, "other"), [0, 1, 2]);
    assert!(store.put("shop.MESHAPPRULE", "kind: [").is_err());
    assert_eq!(kept(&chain, "hello"), [1, 2], "a bad text keeps the last good rule");
    assert!(store.remove("shop.MESHAPPRULE"));
    assert_eq!(kept(&chain, "hello"), [0, 1, 2]);
}

#[cfg(feature = "script")]
#[test]
fn a_script_rule_filters_and_one_that_fails_leaves_the_list() {
    let (chain, store) = chain();
    let put =
        |script: &str| store.put("shop.script-router", &format!("type: javascript\nscript: \"{script}\"\n"));
    put("invokers.filter(function (i) { return i.getUrl().getParameter('v') == '2' && invocation.getMethodName().equals('hello') })").unwrap();
    assert_eq!(kept(&chain, "hello"), [1, 2]);
    assert_eq!(kept(&chain, "other"), [] as [usize; 0]);
    assert!(put("(").is_err());
    assert_eq!(kept(&chain, "hello"), [1, 2], "a text that does not parse keeps the last good rule");
    for bad in ["null", "throw 'x'", "while (true) {}", "java.lang.Runtime", "Java.type('java.io.File')", "5"]
    {
        put(bad).unwrap();
        assert_eq!(kept(&chain, "hello"), [0, 1, 2], "{bad}");
    }
    assert!(store.remove("shop.script-router"));
    assert_eq!(kept(&chain, "hello"), [0, 1, 2]);
}

const MESH: &str = "kind: DestinationRule\nmetadata: {name: shop}\nspec: {subsets: [{name: one, labels: {v: '1'}}, \
    {name: two, labels: {v: '2'}}, {name: none, labels: {v: '9'}}]}\n---\nkind: VirtualService\nmetadata: {name: shop-route}\n\
    spec: {dubbo: [{routedetail: [{name: gray, match: [{sourceLabels: {env: blue}}, {sourceLabels: {env: gray}}], \
    route: [{destination: {subset: none, fallback: {subset: one}}, weight: 50}, {destination: {subset: two}, weight: 50}]}]}]}\n";

#[test]
fn a_session_that_holds_a_world_sees_its_mesh_rule_and_not_a_newer_one() {
    let (chain, store) = chain();
    store.put("shop.MESHAPPRULE", &MESH.replace("weight: 50}, {", "weight: 0}, {")).unwrap();
    let call = Invocation::new(b"hello");
    let choice = chain.route(&call).unwrap();
    assert_eq!(choice.len(), 2);
    store.remove("shop.MESHAPPRULE");
    let explained = choice.explain(&call).unwrap();
    assert_eq!(explained.output, 2, "{}", explained.to_text());
    assert_eq!(kept(&chain, "hello"), [0, 1, 2]);
}

#[test]
fn an_explanation_names_match_draw_and_subset_and_repeats_the_draw_of_the_choice() {
    let (chain, store) = chain();
    store.put("shop.MESHAPPRULE", MESH).unwrap();
    let call = Invocation::new(b"hello");
    let mut seen = [false; 2];
    for _ in 0..64 {
        let choice = chain.route(&call).unwrap();
        let text = choice.explain(&call).unwrap().to_text();
        let wanted = match choice.len() {
            1 => "subset one as fall-back of none, which has nobody",
            _ => "subset two",
        };
        seen[choice.len() - 1] = true;
        assert!(text.contains(wanted), "{wanted}: {text}");
        let which =
            "application shop: VirtualService shop-route, detail 1 \"gray\" by its match 2 applies: drawn ";
        assert!(text.contains(which) && text.contains(" of 100, "), "{text}");
    }
    assert_eq!(seen, [true; 2]);
}

#[test]
fn an_explanation_of_a_port_says_what_was_wanted_and_mock_calls_take_one_line() {
    let (chain, store) = chain();
    store.put("com.foo.Bar::.condition-router", "conditions: ['=> port=1']\nforce: true\n").unwrap();
    let text = chain.explain(&Invocation::new(b"hello")).unwrap().to_text();
    assert!(text.contains("\"=> port=1\" wants port = 1\n") && text.contains("(port=20880)"), "{text}");
    assert!(!text.contains("the call asks for mocks"), "{text}");
}

#[test]
fn a_dry_run_shows_what_a_mesh_rule_would_change_and_sets_nothing() {
    let (chain, store) = chain();
    let calls = [Invocation::new(b"hello")];
    let two = MESH.replace("weight: 50}, {", "weight: 0}, {");
    let diff = chain.diff("shop.MESHAPPRULE", Some(&two), &calls).unwrap();
    assert_eq!((diff[0].before, diff[0].after, diff[0].removed.as_slice()), (3, 2, [0].as_slice()));
    assert!(store.active("shop.MESHAPPRULE", 0).is_none());
    assert_eq!(kept(&chain, "hello"), [0, 1, 2]);
    assert!(chain.diff("shop.MESHAPPRULE", Some("kind: ["), &calls).is_err());
    store.put("shop.MESHAPPRULE", &two).unwrap();
    let diff = chain.diff("shop.MESHAPPRULE", None, &calls).unwrap();
    assert_eq!((diff[0].before, diff[0].after, diff[0].added.as_slice()), (2, 3, [0].as_slice()));
}

#[cfg(feature = "script")]
#[test]
fn a_dry_run_of_a_script_tells_its_error_and_leaves_no_trace() {
    let (chain, store) = chain();
    let calls = [Invocation::new(b"hello"), Invocation::new(b"bye")];
    let script = "type: javascript\nscript: |\n  if (invocation.getMethodName() == 'bye')\n    throw new Error('no');\n  [invokers.get(0)]\n";
    let diff = chain.diff("shop.script-router", Some(script), &calls).unwrap();
    assert_eq!((diff[0].after, diff[0].trouble.as_ref()), (1, None));
    let trouble = diff[1].trouble.as_ref().unwrap();
    assert_eq!((diff[1].after, trouble.position().map(|at| at.line)), (3, Some(2)), "{trouble}");
    assert!(chain.status().iter().all(|router| router.trouble.is_none()));
    assert!(store.active("shop.script-router", 0).is_none());
}

#[cfg(feature = "script")]
#[test]
fn errors_of_a_script_stand_in_the_status_with_their_place_until_the_rule_is_another() {
    let (chain, store) = chain();
    let put = |text: &str| store.put("shop.script-router", text);
    put("type: javascript\nscript: |\n  var a = 1;\n    a.b.c;\n").unwrap();
    for count in 1..=2 {
        assert_eq!(kept(&chain, "hello"), [0, 1, 2]);
        let status = chain.status().into_iter().find(|router| &*router.name == "script-app").unwrap();
        assert_eq!(status.key.as_deref(), Some("shop.script-router"));
        let trouble = status.trouble.unwrap();
        assert_eq!(
            (trouble.count, trouble.error.position().map(|at| at.line)),
            (count, Some(2)),
            "{}",
            trouble.error
        );
        // The list is no part of it.
        chain.set_invokers(Invokers::from_urls(URLS).unwrap());
    }
    let explained = chain.explain(&Invocation::new(b"hello")).unwrap().to_text();
    assert!(explained.contains("the script failed at line 2, column "), "{explained}");
    let refused = put("type: javascript\nscript: |\n  var a = 1;\n  a.b c;\n").unwrap_err();
    let at = refused.position().unwrap();
    assert_eq!((at.line, at.column), (4, 7), "{refused}");
    put("script: invokers\n").unwrap();
    assert!(chain.status().iter().all(|router| router.trouble.is_none() && router.error.is_none()));
}

#[cfg(feature = "script")]
#[test]
fn only_a_script_that_says_it_is_pure_has_its_answers_kept() {
    let (chain, store) = chain();
    // Counts its own runs, which a pure script would not: so it shows whether it ran.
    let script = "runs = (typeof runs == 'undefined' ? 0 : runs) + 1; invocation.getMethodName() == 'all' ? invokers : [invokers.get(runs % 3)]";
    let set = |pure: &str| store.put("shop.script-router", &format!("{pure}script: \"{script}\"\n")).unwrap();
    // Each thread of the pool counts on its own; so many calls have one of them run it again, whichever they are.
    const CALLS: usize = 64;
    let many = |method: &str| (0..CALLS).map(|_| kept(&chain, method)).collect::<Vec<_>>();
    for impure in ["", "pure: false\n"] {
        set(impure);
        let seen = many("one");
        assert!(seen.iter().any(|rows| *rows != seen[0]), "{seen:?}");
    }
    set("pure: true\n");
    let seen = many("one");
    assert!(seen.iter().all(|rows| *rows == seen[0]), "{seen:?}");
    assert_eq!(kept(&chain, "all"), [0, 1, 2], "another method is another question");
    // Attachments are not looked at, so they change nothing; another list does.
    let attachments: [(&[u8], &[u8]); 1] = [(b"trace", b"7")];
    let call = Invocation { attachments: &attachments, ..Invocation::new(b"one") };
    let mut session = chain.session();
    assert_eq!(session.route(&call).unwrap().rows().iter().collect::<Vec<_>>(), seen[0]);
    let ran_once_more = |rows: &[usize]| rows != seen[0];
    drop(session);
    chain.set_invokers(Invokers::from_urls(URLS).unwrap());
    let mut others = (0..CALLS).map(|_| {
        chain.set_invokers(Invokers::from_urls(URLS).unwrap());
        kept(&chain, "one")
    });
    assert!(others.any(|rows| ran_once_more(&rows)));
}

/// A text of which one condition is edited is compiled after the one before; it must come to what a chain makes of it that
/// has never seen another.
#[test]
fn an_edited_text_means_what_it_says() {
    let (chain, store) = chain();
    let mut targets: Vec<usize> = (0..30).map(|i| i % 3).collect();
    for round in 0..60 {
        // One condition changes, now and then two, a force, or the number of conditions.
        let at = round * 7 % targets.len();
        targets[at] = (targets[at] + 1 + round % 2) % 4;
        if round % 5 == 0 {
            let other = (at + 1) % targets.len();
            targets[other] = 3;
        }
        if round % 11 == 10 {
            targets.push(round % 3);
        }
        let mut text = format!("configVersion: v3.0\nforce: {}\nconditions:\n", round % 13 != 12);
        for (i, target) in targets.iter().enumerate() {
            text += &format!("  - method=m{i} => host=10.0.0.{} & v!=9\n", target + 1);
        }
        store.put("com.foo.Bar::.condition-router", &text).unwrap();
        let (fresh, own) = self::chain();
        own.put("com.foo.Bar::.condition-router", &text).unwrap();
        for i in 0..targets.len() {
            let method = format!("m{i}");
            assert_eq!(kept(&chain, &method), kept(&fresh, &method), "round {round}, {method}");
        }
    }
}
