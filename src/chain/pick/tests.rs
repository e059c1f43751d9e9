//! Picks over small lists, with a seed and a clock that stands still.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::chain::bits::Rows;
use crate::runtime::clock::VirtualClock;
use crate::runtime::random::Stream;

/// Providers `10.0.0.N:20880`, tags `base + row`, with the parameters given.
pub(super) struct List {
    tags: Vec<u64>,
    parameters: Vec<BTreeMap<String, String>>,
}

impl List {
    /// One text a provider: `weight=5&loadbalance=random`.
    pub(super) fn new(texts: &[&str]) -> List {
        let pairs = |text: &str| {
            let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
            pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
        };
        List {
            tags: (1..=texts.len() as u64).collect(),
            parameters: texts.iter().map(|text| pairs(text)).collect(),
        }
    }

    pub(super) fn tagged(mut self, tags: &[u64]) -> List {
        self.tags = tags.to_vec();
        self
    }
}

impl Providers for List {
    fn len(&self) -> u32 {
        self.tags.len() as u32
    }
    fn tag(&self, row: u32) -> u64 {
        self.tags[row as usize]
    }
    fn row_of(&self, tag: u64) -> Option<u32> {
        self.tags.iter().position(|own| *own == tag).map(|row| row as u32)
    }
    fn address(&self, row: u32, out: &mut String) {
        out.push_str(&format!("10.0.0.{}:20880", self.tag(row)));
    }
    fn keys(&self, visitor: &mut dyn FnMut(&str)) {
        let mut keys: Vec<_> = self.parameters.iter().flat_map(BTreeMap::keys).collect();
        keys.sort();
        keys.dedup();
        keys.into_iter().for_each(|key| visitor(key));
    }
    fn values(&self, key: &str, visitor: &mut dyn FnMut(u32, &str)) {
        for (row, parameters) in self.parameters.iter().enumerate() {
            if let Some(value) = parameters.get(key) {
                visitor(row as u32, value);
            }
        }
    }
    fn interfaces(&self, visitor: &mut dyn FnMut(u32, &str)) {
        self.values("interface", visitor);
    }
}

/// A chain's worth of state around a list.
pub(super) struct World {
    list: List,
    plan: Plan,
    stats: Arc<CallStats>,
    service: Arc<ServiceStats>,
    sticky: Sticky,
    time: Arc<VirtualClock>,
    clock: Clock,
    draw: Stream,
}

impl World {
    fn new(texts: &[&str]) -> World {
        World::with(texts, Quirks::default())
    }

    pub(super) fn over(list: List) -> World {
        World::build(list, Quirks::default())
    }

    fn with(texts: &[&str], quirks: Quirks) -> World {
        World::build(List::new(texts), quirks)
    }

    fn build(list: List, quirks: Quirks) -> World {
        let stats = CallStats::new();
        let service = stats.service("S");
        let plan = Plan::build(&list, quirks, Arc::clone(&service)).unwrap();
        let time = VirtualClock::new(1_700_000_000_000);
        let (clock, sticky, draw) = (time.clock(), Sticky::new(), Stream::seeded(42));
        World { list, plan, stats, service, sticky, time, clock, draw }
    }

    pub(super) fn replace(&mut self, list: List) {
        self.plan = Plan::build(&list, Quirks::default(), Arc::clone(&self.service)).unwrap();
        self.list = list;
    }

    pub(super) fn try_pick(&mut self, candidates: &impl Candidates, request: &Request<'_>) -> Result<Picked> {
        Picker {
            providers: &self.list,
            plan: &self.plan,
            sticky: &self.sticky,
            clock: &self.clock,
            draw: &mut self.draw,
        }
        .pick(candidates, request)
    }

    fn pick_with(&mut self, request: &Request<'_>) -> Picked {
        self.try_pick(&Rows::All(self.list.len() as usize), request).unwrap()
    }

    fn pick(&mut self, balance: Balance) -> Picked {
        self.pick_with(&Request { balance: Some(balance), ..Request::new(b"m") })
    }

    /// Tags of so many picks, as digits.
    fn sequence(&mut self, balance: Balance, picks: usize) -> String {
        (0..picks).map(|_| self.pick(balance).tag.to_string()).collect()
    }

    fn end(&self, ticket: Ticket, ok: bool, ms: u64) -> bool {
        let outcome = Outcome { ok, latency_ns: Some(ms * 1_000_000), report: None };
        self.stats.end(ticket, &outcome, &self.clock)
    }
}

#[test]
fn names_and_numbers_of_algorithms_agree() {
    for balance in Balance::ALL {
        assert_eq!(Balance::named(balance.name()), Some(balance));
        assert_eq!(Balance::from_number(balance as i32), Some(balance));
    }
    assert_eq!((Balance::from_number(0), Balance::named("fastest")), (None, None));
}

#[test]
fn the_first_candidates_parameters_name_the_algorithm_per_method() {
    let mut world = World::new(&["loadbalance=roundrobin&b.loadbalance=fastest", "", ""]);
    let tags: Vec<u64> = (0..4).map(|_| world.pick_with(&Request::new(b"a")).tag).collect();
    assert_eq!(tags, [1, 2, 3, 1]);
    let error = world.try_pick(&Rows::All(3), &Request::new(b"b")).unwrap_err();
    assert_eq!((error.status(), error.about()), (Status::E_INVOKERS, "loadbalance"));
    assert!(world.try_pick(&Rows::List(&[1, 2]), &Request::new(b"b")).is_ok(), "another first candidate");
    let error = world.try_pick(&Rows::List(&[]), &Request::new(b"a")).unwrap_err();
    assert_eq!(error.status(), Status::E_NO_INVOKER);
}

#[test]
fn round_robin_is_smooth_and_survives_a_new_list() {
    let mut world = World::new(&["weight=5", "weight=1", "weight=1"]);
    assert_eq!(world.sequence(Balance::RoundRobin, 7), "1121311");
    // In the middle of a round the order of rows changes; credits follow the tags.
    assert_eq!(world.sequence(Balance::RoundRobin, 3), "112");
    world.replace(List::new(&["weight=1", "weight=1", "weight=5"]).tagged(&[3, 2, 1]));
    assert_eq!(world.sequence(Balance::RoundRobin, 4), "1311");
}

#[test]
fn equal_weights_take_turns_within_each_set_of_candidates() {
    let mut world = World::new(&["", "", "", ""]);
    let wish = Request { balance: Some(Balance::RoundRobin), ..Request::new(b"m") };
    // Two routing results in turn: a shared counter would give each set every second provider only.
    let mut seen = [0; 5];
    for _ in 0..8 {
        seen[world.try_pick(&Rows::List(&[0, 1]), &wish).unwrap().tag as usize] += 1;
        seen[world.try_pick(&Rows::List(&[2, 3]), &wish).unwrap().tag as usize] += 1;
    }
    assert_eq!(seen, [0, 4, 4, 4, 4]);
}

#[test]
fn weights_of_zero_share_unless_the_dialect_keeps_the_first() {
    let texts = ["weight=0", "weight=0", "weight=0"];
    assert_eq!(World::new(&texts).sequence(Balance::RoundRobin, 6), "123123");
    let quirks = Quirks { zero_weights_keep_first: true, ..Quirks::default() };
    assert_eq!(World::with(&texts, quirks).sequence(Balance::RoundRobin, 6), "111111");
}

#[test]
fn method_weights_override_and_a_registry_has_neither_method_weight_nor_warm_up() {
    let registry =
        "interface=org.apache.dubbo.registry.RegistryService&weight=0&m.weight=9&timestamp=1699999999000";
    let mut world = World::new(&["m.weight=0", "default.weight=0", registry, "weight=2"]);
    let rows: Vec<u64> = (0..200).map(|_| world.pick(Balance::Random).tag).collect();
    assert!(rows.iter().all(|tag| *tag == 4), "all others weigh 0 for this method");
    let other: Vec<u64> = (0..200).map(|_| world.pick_with(&Request::new(b"other")).tag).collect();
    assert!(other.contains(&1) && !other.contains(&2) && !other.contains(&3));
}

#[test]
fn least_active_counts_tickets_and_each_ends_once() {
    let mut world = World::new(&["", "", ""]);
    let tickets: Vec<Picked> = (0..6).map(|_| world.pick(Balance::LeastActive)).collect();
    let mut per_tag = [0; 4];
    tickets.iter().for_each(|picked| per_tag[picked.tag as usize] += 1);
    assert_eq!(per_tag, [0, 2, 2, 2], "every one has two calls now");
    let one = tickets.iter().find(|picked| picked.tag == 2).unwrap();
    assert!(world.end(one.ticket, true, 1));
    assert!(!world.end(one.ticket, true, 1), "the second end is a stale ticket");
    for junk in [Ticket::NONE, Ticket(1), Ticket(u64::MAX), Ticket(one.ticket.0 + (2 << 32))] {
        assert!(!world.end(junk, true, 1));
    }
    assert_eq!(world.pick(Balance::LeastActive).tag, 2);
}

#[test]
fn calls_in_flight_follow_the_tag_and_leave_with_it() {
    let mut world = World::new(&["", ""]);
    let busy: Vec<Picked> = (0..4).map(|_| world.pick(Balance::LeastActive)).collect();
    // Both have two calls; a new provider has none, in a new order of rows.
    world.replace(List::new(&["", "", ""]).tagged(&[2, 3, 1]));
    let fresh = [(); 2].map(|()| world.pick(Balance::LeastActive).tag);
    assert_eq!(fresh, [3, 3]);
    world.time.advance(Duration::from_secs(1));
    world.replace(List::new(&["", ""]).tagged(&[8, 9]));
    world.pick(Balance::LeastActive);
    world.time.advance(Duration::from_secs(61));
    world.replace(List::new(&["", ""]).tagged(&[8, 9]));
    world.pick(Balance::LeastActive);
    assert_eq!(world.stats.live().0, 2, "providers unseen for a minute are forgotten");
    // Their calls may still end: nothing is counted on whoever has the cell now.
    assert!(busy.iter().all(|picked| world.end(picked.ticket, true, 1)));
    let World { stats, service, plan, .. } = world;
    drop((service, plan));
    assert_eq!(stats.live().0, 0);
}

#[test]
fn shortest_response_prefers_quick_answers_within_its_window() {
    let mut world = World::new(&["weight=1", "weight=9", "weight=15"]);
    let slow = loop {
        let picked = world.pick(Balance::ShortestResponse);
        if picked.tag == 3 {
            break picked;
        }
        world.end(picked.ticket, false, 1);
    };
    world.end(slow.ticket, true, 5000);
    let mut counts = [0_i32; 4];
    for _ in 0..2000 {
        let picked = world.pick(Balance::ShortestResponse);
        world.end(picked.ticket, false, 1);
        counts[picked.tag as usize] += 1;
    }
    assert_eq!(counts[3], 0);
    assert!((counts[1] - 200).abs() < 70, "{counts:?}");
    world.time.advance(Duration::from_secs(30));
    assert!((0..100).any(|_| world.pick(Balance::ShortestResponse).tag == 3), "a new window");
}

#[test]
fn p2c_prefers_the_lower_load_and_asks_the_forgotten() {
    let mut world = World::new(&["", ""]);
    for _ in 0..20 {
        world.time.advance(Duration::from_millis(10));
        let picked = world.pick(Balance::P2c);
        world.end(picked.ticket, true, if picked.tag == 1 { 400 } else { 1 });
    }
    let tags: Vec<u64> = (0..20)
        .map(|_| {
            let picked = world.pick(Balance::P2c);
            world.end(picked.ticket, true, 1);
            picked.tag
        })
        .collect();
    assert!(tags.iter().all(|tag| *tag == 2), "{tags:?}");
    world.time.advance(Duration::from_millis(2_001));
    let keep_alive =
        world.pick_with(&Request { balance: Some(Balance::P2c), exclude: &[1], ..Request::new(b"m") });
    world.end(keep_alive.ticket, true, 1);
    assert_eq!(world.pick(Balance::P2c).tag, 1, "not asked for two timeouts");
}

#[test]
fn consistent_hash_follows_its_arguments_not_the_row_order() {
    let texts = ["loadbalance=consistenthash&hash.arguments=1"; 5];
    let mut world = World::new(&texts);
    let arguments: [&[u8]; 2] = [b"ignored", b"key"];
    let get = |index: usize| arguments.get(index).copied();
    let request = Request { arguments: &get, ..Request::new(b"m") };
    let home = world.pick_with(&request).tag;
    world.replace(List::new(&texts).tagged(&[5, 4, 3, 2, 1]));
    assert_eq!(world.pick_with(&request).tag, home);
    let retry = Request { exclude: &[home], ..request };
    let second = world.pick_with(&retry).tag;
    assert_ne!(second, home);
    assert_eq!(world.pick_with(&retry).tag, second, "the second choice is stable too");
}

#[test]
fn a_retry_gets_what_was_not_tried_then_what_is_available_then_the_next() {
    let mut world = World::new(&["", "", "", "", ""]);
    let bits = [0b01010_u64];
    let wish = |exclude: &'static [u64], check_available| Request {
        available: Some(&bits),
        exclude,
        check_available,
        ..Request::new(b"m")
    };
    for balance in Balance::ALL {
        for (exclude, check, allowed) in [
            (&[][..], true, &[2, 4][..]),
            (&[2], true, &[4]),
            (&[2, 4], true, &[2, 4]),
            (&[1, 2, 4, 5], false, &[3]),
            (&[1, 2, 3, 4, 5], false, &[2, 4]),
        ] {
            for _ in 0..50 {
                let picked = world.pick_with(&Request { balance: Some(balance), ..wish(exclude, check) });
                assert!(allowed.contains(&picked.tag), "{balance:?} {exclude:?} {check} gave {picked:?}");
                world.end(picked.ticket, true, 1);
            }
        }
    }
    // Nobody is available: the one behind the first choice, around the end.
    let none = Request { available: Some(&[]), balance: Some(Balance::RoundRobin), ..Request::new(b"n") };
    let tags: Vec<u64> = (0..5).map(|_| world.pick_with(&none).tag).collect();
    assert_eq!(tags, [2, 3, 4, 5, 1]);
    let only = world.try_pick(&Rows::List(&[0]), &none).unwrap();
    assert_eq!((only.tag, only.available), (1, false), "a single candidate is used all the same");
}

#[test]
fn the_sticky_provider_stays_while_it_can() {
    let mut world = World::new(&["sticky=true&loadbalance=roundrobin", "sticky=true", "sticky=true"]);
    let plain = Request::new(b"m");
    assert_eq!([(); 3].map(|()| world.pick_with(&plain).tag), [1, 1, 1]);
    assert_ne!(world.pick_with(&Request { exclude: &[1], ..plain }).tag, 1);
    let now = world.sticky.tag().unwrap();
    assert_eq!(world.pick_with(&plain).tag, now, "the retry's choice is the sticky one now");
    let away = [!(1_u64 << (now - 1))];
    assert_ne!(world.pick_with(&Request { available: Some(&away), ..plain }).tag, now);
    let free: Vec<u64> =
        (0..6).map(|_| world.pick_with(&Request { sticky: Some(false), ..plain }).tag).collect();
    assert!(free.contains(&1) && free.contains(&2) && free.contains(&3));
    world.replace(List::new(&["", ""]).tagged(&[7, 8]));
    let wanted = Request { sticky: Some(true), ..plain };
    let first = world.pick_with(&wanted).tag;
    assert_eq!([(); 4].map(|()| world.pick_with(&wanted).tag), [first; 4]);
}

#[test]
fn a_dialect_may_ignore_weights_when_the_first_names_none() {
    let texts = ["", "weight=0"];
    let mut byway = World::new(&texts);
    assert!((0..100).all(|_| byway.pick(Balance::Random).tag == 1));
    let quirks = Quirks { first_decides_about_weights: true, ..Quirks::default() };
    let mut upstream = World::with(&texts, quirks);
    assert!((0..100).any(|_| upstream.pick(Balance::Random).tag == 2));
    let mut named = World::with(&["weight=0", ""], quirks);
    assert!((0..100).all(|_| named.pick(Balance::Random).tag == 2));
}

#[test]
fn too_many_method_parameters_are_refused() {
    let text: String = (0..5000).map(|number| format!("m{number}.weight=1&")).collect();
    let error =
        Plan::build(&List::new(&[&text]), Quirks::default(), CallStats::new().service("S")).unwrap_err();
    assert_eq!(error.status(), Status::E_LIMIT);
}

#[test]
fn method_names_from_callers_do_not_grow_the_counters_without_bound() {
    let mut world = World::new(&["", "weight=2"]);
    for number in 0..2000 {
        let name = format!("method{number}");
        let request = Request { balance: Some(Balance::LeastActive), ..Request::new(name.as_bytes()) };
        let picked = world.pick_with(&request);
        assert!(world.end(picked.ticket, true, 1));
    }
    let (cells, begun) = world.stats.live();
    assert!(cells <= 2 * 257, "{cells}");
    assert_eq!(begun, 0);
}

#[test]
fn many_threads_lose_no_count_and_keep_the_shares() {
    let world = World::new(&["weight=1", "weight=9", "weight=6"]);
    let World { list, plan, stats, sticky, clock, .. } = &world;
    let counts: Vec<[u64; 3]> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|seed| {
                scope.spawn(move || {
                    let draw = Stream::seeded(seed);
                    let mut picker = Picker { providers: list, plan, sticky, clock, draw };
                    let mut counts = [0; 3];
                    for number in 0..4000 {
                        let balance =
                            if number % 2 == 0 { Balance::RoundRobin } else { Balance::LeastActive };
                        let request = Request { balance: Some(balance), ..Request::new(b"m") };
                        let picked = picker.pick(&Rows::All(3), &request).unwrap();
                        if number % 2 == 0 {
                            counts[picked.row as usize] += 1;
                        }
                        let ended = stats.end(picked.ticket, &Outcome::default(), clock);
                        assert_eq!(ended, number % 2 == 1);
                    }
                    counts
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (row, share) in [500_u64, 4500, 3000].into_iter().enumerate() {
        let count: u64 = counts.iter().map(|own| own[row]).sum();
        assert!(count.abs_diff(share) <= 8, "row {row}: {count} of {share}");
    }
    assert_eq!(stats.live().1, 0);
    let calls = plan.calls(b"m", list, clock);
    assert!((0..3).all(|row| stats.active(calls.cell(row)) == 0));
}
