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
    slots.extend(MeshRouter::slot(store.clone(), dialect));
    #[cfg(feature = "script")]
    slots.extend(byway::rules::script::slot(store.clone(), dialect, byway::script::Pool::default(), None));
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
    for bad in
        ["null", "throw 'x'", "while (true) {}", "java.lang.Runtime", "Java.type('java.io.File')", "5", "("]
    {
        put(bad).unwrap();
        assert_eq!(kept(&chain, "hello"), [0, 1, 2], "{bad}");
    }
    assert!(store.remove("shop.script-router"));
    assert_eq!(kept(&chain, "hello"), [0, 1, 2]);
}
