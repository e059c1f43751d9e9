use super::*;
use crate::net::address::AddressSpec;
use crate::net::database::Policy;
use crate::net::explain::{explain_json, explain_text};
use crate::net::failure::Failure;
use crate::net::proxy::ProxySpec;
use crate::net::route::{Route, Target};
use crate::net::{EventSink, order::FirstFamily};
use std::cell::RefCell;

struct World {
    address: Arc<Address>,
    database: RouteDatabase,
    settings: Settings,
    early: bool,
    proxies: Vec<Listed>,
    dns: Vec<(&'static str, &'static str)>,
    log: Log,
}

#[derive(Default)]
struct Log(RefCell<Vec<String>>);

impl EventSink for Log {
    fn event(&self, event: &Event<'_>) {
        let what = match (event.route, event.proxy, event.error) {
            (Some(route), ..) => route.hop().0.to_string(),
            (_, Some(proxy), Some(error)) => format!("{proxy} {}", error.status().name()),
            (_, _, Some(error)) => format!("{} {}", event.subject, error.status().name()),
            _ => event.subject.to_owned(),
        };
        self.0.borrow_mut().push(format!("{} {what}", event.kind.name()));
    }
}

fn ips(text: &str) -> Vec<Ip> {
    text.split_ascii_whitespace().map(|text| Ip::parse(text).unwrap()).collect()
}

fn proxy(kind: ProxyKind, host: &str, port: i64) -> Listed {
    let spec = ProxySpec { kind, host, resolved: None, port, user: None, password: None };
    Listed::Proxy(Arc::new(Proxy::listed(spec, Compat::Byway, &|_| None).unwrap()))
}

impl World {
    fn new(host: &str) -> World {
        let spec = AddressSpec { tls: true, host, port: 443, proxy_selector: 1, ..AddressSpec::default() };
        World {
            address: Arc::new(Address::new(spec, Compat::Byway, &|_| None).unwrap()),
            database: RouteDatabase::new(Policy::default()),
            settings: Settings::default(),
            early: false,
            proxies: vec![Listed::Direct],
            dns: Vec::new(),
            log: Log::default(),
        }
    }

    fn with<R>(&self, run: impl FnOnce(&Context<'_>) -> R) -> R {
        run(&Context {
            address: &self.address,
            database: &self.database,
            settings: &self.settings,
            early_selection: self.early,
            now: &|| 60_000,
            listening: Listening::to(&self.log, u64::MAX),
        })
    }

    /// The next thing the selector gives, everything answered in place.
    fn next(&self, selector: &mut Selector) -> Result<Option<Vec<Route>>> {
        self.with(|cx| {
            loop {
                match selector.step(cx) {
                    Step::NeedProxies => selector.answer_proxies(cx, self.proxies.iter().cloned())?,
                    Step::NeedDns(lookup) => {
                        let name = selector.lookup_name(cx.address);
                        match self.dns.iter().find(|(own, _)| *own == name) {
                            Some((_, answer)) => {
                                selector.answer_dns(cx, lookup.request, &ips(answer), &[], true)?
                            }
                            None => {
                                selector.fail_dns(cx, lookup.request, Error::bare(Status::E_UNKNOWN_HOST))?
                            }
                        }
                    }
                    Step::Selection(selection) => {
                        let routes: Vec<Route> =
                            selector.routes(cx.address, &selection).map(|route| route.to_route()).collect();
                        for (i, route) in routes.iter().enumerate() {
                            let at = selector.position(&selection, i).unwrap();
                            assert_eq!(selector.entry_ref(cx.address, at).unwrap().key(), *route.key());
                        }
                        assert_eq!(
                            (routes.len(), selector.position(&selection, routes.len())),
                            (selection.len(), None)
                        );
                        return Ok(Some(routes));
                    }
                    Step::Failed(error) => return Err(error),
                    Step::Done => return Ok(None),
                    Step::Wait => panic!("nothing is awaited"),
                }
            }
        })
    }

    fn all(&self) -> Vec<Vec<String>> {
        let mut selector = Selector::new(1);
        let mut given = Vec::new();
        while let Some(routes) = self.next(&mut selector).unwrap() {
            given.push(routes.iter().map(text).collect());
        }
        given
    }
}

/// `hop>target`, or the hop alone for DIRECT.
fn text(route: &Route) -> String {
    let (hop, _) = route.hop();
    match (route.proxy(), route.target().0) {
        (None, _) => hop.to_string(),
        (_, Target::Name(name)) => format!("{hop}>{name}"),
        (_, Target::Ip(ip)) => format!("{hop}>{ip}"),
    }
}

#[test]
fn who_resolves_follows_the_kind_of_proxy() {
    for (kind, want) in [
        (ProxyKind::Http, &["10.0.0.1>t.example", "10.0.0.2>t.example"][..]),
        (ProxyKind::Https, &["10.0.0.1>t.example", "10.0.0.2>t.example"]),
        (ProxyKind::Socks5h, &["10.0.0.1>t.example", "10.0.0.2>t.example"]),
        (ProxyKind::Socks4a, &["10.0.0.1>t.example", "10.0.0.2>t.example"]),
        (ProxyKind::Socks5, &["10.0.0.1>2001:db8::1", "10.0.0.1>192.0.2.1", "10.0.0.2>2001:db8::1"]),
        (ProxyKind::Socks4, &["10.0.0.1>192.0.2.1", "10.0.0.2>192.0.2.1"]),
    ] {
        let mut world = World::new("t.example");
        world.proxies = vec![proxy(kind, "p.example", 1080)];
        world.dns = vec![("p.example", "10.0.0.1 10.0.0.2"), ("t.example", "192.0.2.1 2001:db8::1")];
        assert_eq!(world.all(), [want], "{kind:?}");
    }
}

#[test]
fn a_socks5_proxy_gives_at_most_sixteen_routes() {
    let mut world = World::new("t.example");
    world.proxies = vec![proxy(ProxyKind::Socks5, "10.0.0.1", 1080)];
    let many: String = (0..40).map(|n| format!("192.0.2.{n} ")).collect();
    world.dns = vec![("t.example", many.leak())];
    assert_eq!(world.all()[0].len(), 16);
}

#[test]
fn selections_beyond_the_inline_block_lose_nothing() {
    let mut world = World::new("t.example");
    world.proxies = (0..40).map(|n| proxy(ProxyKind::Http, &format!("10.0.0.{n}"), 3128)).collect();
    world.proxies.push(Listed::Direct);
    let many: String = (0..40).map(|n| format!("192.0.2.{n} ")).collect();
    world.dns = vec![("t.example", many.leak())];
    for n in (0..40).step_by(3) {
        let hop = (Ip::v4([192, 0, 2, n]), 443);
        let route = Route::new(Arc::clone(&world.address), None, hop, Ip::NONE, None);
        world.database.failed(&route, Failure::Refused, 111, 60_000);
    }
    let given = world.all();
    assert_eq!(given.len(), 42);
    assert_eq!((given[39][0].as_str(), given[40].len(), given[41].len()), ("10.0.0.39>t.example", 26, 14));
    assert_eq!((given[40][0].as_str(), given[41][0].as_str()), ("192.0.2.1", "192.0.2.0"));
}

#[test]
fn an_entry_that_cannot_be_tried_is_reported_and_the_next_one_serves() {
    let mut world = World::new("t.example");
    world.proxies = vec![
        proxy(ProxyKind::Http, "a.example", 0),
        proxy(ProxyKind::Http, "unknown.example", 1),
        proxy(ProxyKind::Http, "10.0.0.1", 3128),
    ];
    assert_eq!(world.all(), [["10.0.0.1>t.example"]]);
    let log = world.log.0.borrow();
    let failed: Vec<_> = log.iter().filter(|line| line.starts_with("connect_failed")).collect();
    assert_eq!(
        failed,
        [
            "connect_failed http://a.example:0 BYWAY_E_INVALID_PORT",
            "connect_failed http://unknown.example:1 BYWAY_E_UNKNOWN_HOST",
        ]
    );
}

#[test]
fn one_error_names_every_cause_and_then_it_is_over() {
    let mut world = World::new("t.example");
    world.proxies = vec![proxy(ProxyKind::Http, "a.example", 70_000), Listed::Direct];
    let mut selector = Selector::new(1);
    assert!(selector.may_have_next());
    let error = world.next(&mut selector).unwrap_err();
    assert_eq!(error.status(), Status::E_NO_ROUTE);
    let causes: Vec<Status> = error.all_causes().iter().map(Error::status).collect();
    assert_eq!(causes, [Status::E_INVALID_PORT, Status::E_UNKNOWN_HOST]);
    assert!(!selector.may_have_next());
    assert_eq!(world.next(&mut selector), Ok(None));
}

#[test]
fn failures_before_a_selection_are_made_up_for_by_it() {
    let mut world = World::new("192.0.2.1");
    world.proxies =
        vec![proxy(ProxyKind::Http, "a.example", 0), Listed::Direct, proxy(ProxyKind::Http, "b.example", 0)];
    let mut selector = Selector::new(1);
    assert!(world.next(&mut selector).unwrap().is_some());
    assert!(selector.may_have_next());
    assert_eq!(world.next(&mut selector).unwrap_err().status(), Status::E_INVALID_PORT);
    assert!(!selector.may_have_next());
}

#[test]
fn a_proxy_selector_that_fails_closes_or_goes_direct_by_policy() {
    for (list, status) in [(vec![], Status::E_EMPTY_ANSWER), (vec![Listed::Null], Status::E_PROXY_SELECTOR)] {
        let mut world = World::new("192.0.2.1");
        world.proxies = list;
        let mut selector = Selector::new(1);
        let error = world.next(&mut selector).unwrap_err();
        assert_eq!((error.status(), selector.may_have_next()), (status, false));
        world.settings.direct_on_selector_error = true;
        assert_eq!(world.all(), [["192.0.2.1"]]);
    }
}

#[test]
fn the_filter_judges_targets_wherever_they_come_from() {
    let public = Some(Arc::new(Filter::public()));
    let mut world = World::new("t.example");
    world.settings.target_filter.clone_from(&public);
    world.dns = vec![("t.example", "1.1.1.1 127.0.0.1 ::ffff:169.254.169.254")];
    assert_eq!(world.all(), [["1.1.1.1"]]);
    assert!(world.log.0.borrow().contains(&"route_filtered 127.0.0.1".to_owned()));
    assert!(world.log.0.borrow().contains(&"route_filtered 169.254.169.254".to_owned()));

    // A literal is judged though a proxy would connect to it; the proxy's own address is not a target.
    let mut literal = World::new("127.0.0.1");
    literal.settings.target_filter.clone_from(&public);
    literal.proxies = vec![Listed::Direct, proxy(ProxyKind::Http, "10.0.0.1", 3128)];
    let error = literal.next(&mut Selector::new(1)).unwrap_err();
    assert_eq!((error.status(), error.all_causes().len()), (Status::E_FILTERED, 2));

    let mut socks = World::new("t.example");
    socks.settings.target_filter = public;
    socks.proxies = vec![proxy(ProxyKind::Socks5, "10.0.0.1", 1080)];
    socks.dns = vec![("t.example", "192.168.0.1 8.8.8.8")];
    assert_eq!(socks.all(), [["10.0.0.1>8.8.8.8"]]);
}

#[test]
fn names_a_proxy_resolves_are_refused_when_the_engine_says_so() {
    let mut world = World::new("t.example");
    world.proxies = vec![proxy(ProxyKind::Http, "10.0.0.1", 3128)];
    world.settings.target_filter = Some(Arc::new(Filter::public()));
    let routes = world.next(&mut Selector::new(1)).unwrap().unwrap();
    assert_eq!(routes[0].flags() & flag::NOT_CHECKED, flag::NOT_CHECKED);
    world.settings.deny_unresolved_targets = true;
    assert_eq!(world.next(&mut Selector::new(1)).unwrap_err().status(), Status::E_FILTERED);
}

#[test]
fn proxy_hops_have_a_filter_of_their_own() {
    let mut world = World::new("t.example");
    world.settings.hop_filter = Some(Arc::new(Filter::parse("deny 10.0.0.2").unwrap()));
    world.proxies = vec![proxy(ProxyKind::Socks5h, "p.example", 1080)];
    world.dns = vec![("p.example", "10.0.0.1 10.0.0.2")];
    assert_eq!(world.all(), [["10.0.0.1>t.example"]]);
}

#[test]
fn answers_may_come_in_parts_and_one_failing_family_does_not_fail_the_call() {
    let mut world = World::new("t.example");
    world.proxies = vec![Listed::Direct];
    for early in [false, true] {
        world.early = early;
        let mut selector = Selector::new(1);
        let given = world.with(|cx| {
            assert!(matches!(selector.step(cx), Step::NeedProxies));
            assert!(matches!(selector.step(cx), Step::Wait));
            selector.answer_proxies(cx, [Listed::Direct]).unwrap();
            let Step::NeedDns(lookup) = selector.step(cx) else { panic!("a lookup") };
            selector.answer_dns(cx, lookup.request, &ips("192.0.2.1 192.0.2.2"), &[], false).unwrap();
            let mut lens = Vec::new();
            if let Step::Selection(selection) = selector.step(cx) {
                lens.push(selection.len());
            }
            assert!(matches!(selector.step(cx), Step::Wait));
            selector.answer_dns(cx, lookup.request, &ips("2001:db8::1"), &[], false).unwrap();
            selector.fail_dns(cx, lookup.request, Error::bare(Status::E_DNS)).unwrap();
            assert_eq!(selector.answer_dns(cx, lookup.request, &[], &[], true), Err(Status::E_STATE));
            while let Step::Selection(selection) = selector.step(cx) {
                lens.push(selection.len());
            }
            lens
        });
        assert_eq!(given, if early { vec![2, 1] } else { vec![3] });
    }
}

#[test]
fn an_answer_has_a_bound() {
    let world = World::new("t.example");
    let mut selector = Selector::new(1);
    world.with(|cx| {
        selector.step(cx);
        selector.answer_proxies(cx, [Listed::Direct]).unwrap();
        let Step::NeedDns(lookup) = selector.step(cx) else { panic!("a lookup") };
        let many = vec![Ip::v4([192, 0, 2, 1]); dns::MAX_ADDRESSES + 1];
        assert_eq!(selector.answer_dns(cx, lookup.request, &many, &[], true), Err(Status::E_LIMIT));
        assert_eq!(selector.answer_dns(cx, lookup.request, &many[1..], &[], true), Ok(()));
    });
}

#[test]
fn a_cancelled_selector_says_so_for_ever() {
    let world = World::new("192.0.2.1");
    let mut selector = Selector::new(1);
    selector.cancel();
    for _ in 0..2 {
        assert_eq!(world.next(&mut selector).unwrap_err().status(), Status::E_CANCELED);
    }
    selector.reset(2);
    assert!(world.next(&mut selector).unwrap().is_some());
}

#[test]
fn order_options_reach_the_routes() {
    let mut world = World::new("t.example");
    world.dns = vec![("t.example", "192.0.2.1 192.0.2.1 2001:db8::1")];
    assert_eq!(world.all()[0], ["2001:db8::1", "192.0.2.1", "192.0.2.1"]);
    world.settings.order = Order { dedup: true, first_family: FirstFamily::V4, ..Order::default() };
    assert_eq!(world.all()[0], ["192.0.2.1", "2001:db8::1"]);
}

#[test]
fn service_metadata_travels_with_the_routes() {
    let world = World::new("t.example");
    let mut selector = Selector::new(1);
    world.with(|cx| {
        selector.step(cx);
        selector.answer_proxies(cx, [Listed::Direct]).unwrap();
        let Step::NeedDns(lookup) = selector.step(cx) else { panic!("a lookup") };
        let service = Arc::new(Service { ech: Box::from(*b"ech"), ..Service::default() });
        selector.answer_dns(cx, lookup.request, &[], std::slice::from_ref(&service), false).unwrap();
        selector.answer_dns(cx, lookup.request, &ips("192.0.2.1"), &[], true).unwrap();
        let Step::Selection(selection) = selector.step(cx) else { panic!("routes") };
        let route = selector.routes(cx.address, &selection).next().unwrap().to_route();
        assert_eq!(route.service(), Some(&service));
        assert_eq!(route.to_string(), "t.example at 192.0.2.1:443 with ECH");
    });
}

#[test]
fn the_explanation_names_everything_that_decided() {
    let mut world = World::new("t.example");
    world.settings.target_filter = Some(Arc::new(Filter::parse("deny 192.0.2.9").unwrap()));
    world.proxies = vec![proxy(ProxyKind::Http, "dead.example", 0), Listed::Direct];
    world.dns = vec![("t.example", "192.0.2.1 192.0.2.2 192.0.2.9")];
    let hop = (Ip::v4([192, 0, 2, 1]), 443);
    let route = Route::new(Arc::clone(&world.address), None, hop, Ip::NONE, None);
    world.database.failed(&route, Failure::Refused, 111, 50_000);
    let mut selector = Selector::new(7);
    world.next(&mut selector).unwrap();
    let (json, text) = world.with(|cx| (explain_json(&selector, cx), explain_text(&selector, cx)));
    assert_eq!(json["proxies_from"], "proxy selector");
    assert_eq!(json["entries"][0]["state"], "failed");
    let routes = &json["entries"][1]["routes"];
    assert_eq!(routes[0]["state"], "postponed, not given yet");
    assert_eq!(routes[0]["postponed"]["failed_ms_ago"], 10_000);
    assert_eq!(routes[0]["postponed"]["failure"], "refused");
    assert_eq!(routes[1]["state"], "given in selection 1");
    assert_eq!(routes[2]["state"], "refused by the address filter");
    assert_eq!(json["order"][0]["route"], "192.0.2.2:443");
    for line in [
        "dead.example:0: failed",
        "192.0.2.1:443",
        "(refused 10000 ms ago, 290000 ms left)",
        "order: 192.0.2.2:443",
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
}

#[test]
fn the_block_is_small_and_a_route_entry_is_an_address_and_three_words() {
    assert_eq!(size_of::<Entry>(), 36);
    assert!(size_of::<Selector>() <= 1024, "{}", size_of::<Selector>());
}

#[test]
fn no_address_of_a_long_first_answer_is_lost() {
    let many: Vec<String> = (1..=100).map(|n| format!("192.0.2.{n}")).collect();
    let mut world = World::new("a.example");
    world.dns = vec![("a.example", many.join(" ").leak())];
    assert_eq!(world.all(), std::slice::from_ref(&many));
    let next = Route::new(Arc::clone(&world.address), None, (ips("192.0.2.1")[0], 443), Ip::NONE, None);
    world.database.failed(&next, Failure::Refused, 0, 0);
    assert_eq!(world.all(), [many[1..].to_vec(), many[..1].to_vec()]);
}
