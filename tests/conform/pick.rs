//! Load balancing, stickiness, second choices and health lists.

use super::Outcome;
use byway::chain::bits::Rows;
use byway::chain::pick::health::Health;
use byway::chain::pick::weight::warmup_weight;
use byway::chain::pick::{
    Balance, CallStats, Candidates, Outcome as CallOutcome, Picked, Picker, Plan, ProviderReport, Providers,
    Quirks, Request, Sticky,
};
use byway::chain::url::Url;
use byway::runtime::clock::{Clock, VirtualClock};
use byway::runtime::random::Stream;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

const NOW_MS: i64 = 1_800_000_000_000;

const DUBBO_3: Quirks =
    Quirks { first_decides_about_weights: true, zero_weights_keep_first: true, warmup_in_seconds: false };

/// Invokers of a case: tag = row + 1.
struct List {
    ids: Vec<String>,
    urls: Vec<Url>,
    available: Vec<bool>,
}

impl List {
    fn of(case: &Value) -> List {
        let rows = case["invokers"].as_array().cloned().unwrap_or_default();
        List {
            ids: rows.iter().map(|row| row["id"].as_str().unwrap_or("?").to_owned()).collect(),
            urls: rows.iter().map(|row| Url::parse(&url_text(row)).expect("a URL")).collect(),
            available: rows.iter().map(|row| row["available"].as_bool().unwrap_or(true)).collect(),
        }
    }

    fn row(&self, id: &str) -> u32 {
        self.ids.iter().position(|own| own == id).expect("a listed id") as u32
    }

    fn id(&self, row: u32) -> &str {
        &self.ids[row as usize]
    }

    fn bits(&self) -> Vec<u64> {
        let mut bits = vec![0; self.ids.len().div_ceil(64)];
        for (row, _) in self.available.iter().enumerate().filter(|(_, available)| **available) {
            bits[row / 64] |= 1 << (row % 64);
        }
        bits
    }
}

/// The URL of an invoker given by text or by fields.
fn url_text(row: &Value) -> String {
    if let Some(text) = row["url"].as_str() {
        return text.to_owned();
    }
    let mut text = format!("dubbo://10.0.0.1:1/{}?x=1", row["path"].as_str().unwrap_or("DemoService"));
    // A cluster of registries is weighed by the registry's own URL.
    let weight = if row["cluster_invoker"] == true { &row["registry_url_weight"] } else { &row["weight"] };
    if let Some(weight) = weight.as_i64() {
        text += &format!("&weight={weight}");
    }
    let timestamp = &row["timestamp"];
    let relative =
        timestamp.as_str().and_then(|t| t.strip_prefix("now")?.strip_suffix("ms")?.parse::<i64>().ok());
    if let Some(ms) = relative.map(|offset| NOW_MS + offset).or(timestamp.as_i64()) {
        text += &format!("&timestamp={ms}");
    }
    text
}

impl Providers for List {
    fn len(&self) -> u32 {
        self.urls.len() as u32
    }
    fn tag(&self, row: u32) -> u64 {
        u64::from(row) + 1
    }
    fn row_of(&self, tag: u64) -> Option<u32> {
        u32::try_from(tag.checked_sub(1)?).ok().filter(|row| *row < self.len())
    }
    fn address(&self, row: u32, out: &mut String) {
        out.push_str(&self.urls[row as usize].address());
    }
    fn keys(&self, visitor: &mut dyn FnMut(&str)) {
        let keys: BTreeSet<&str> =
            self.urls.iter().flat_map(|url| url.parameters().map(|(key, _)| key)).collect();
        keys.into_iter().for_each(visitor);
    }
    fn values(&self, key: &str, visitor: &mut dyn FnMut(u32, &str)) {
        for (row, url) in self.urls.iter().enumerate() {
            if let Some(value) = url.parameter(key) {
                visitor(row as u32, value);
            }
        }
    }
    fn interfaces(&self, visitor: &mut dyn FnMut(u32, &str)) {
        self.urls.iter().enumerate().for_each(|(row, url)| visitor(row as u32, url.interface()));
    }
}

struct World {
    list: List,
    plan: Plan,
    stats: Arc<CallStats>,
    sticky: Sticky,
    time: Arc<VirtualClock>,
    clock: Clock,
    draw: Stream,
    method: String,
    arguments: Vec<String>,
    balance: Option<Balance>,
    available: Option<Vec<u64>>,
    exclude: Vec<u64>,
    check_available: bool,
}

impl World {
    fn new(case: &Value, quirks: Quirks) -> World {
        let (list, stats) = (List::of(case), CallStats::new());
        let plan = Plan::build(&list, quirks, stats.service("DemoService")).expect("a plan");
        let time = VirtualClock::new(NOW_MS);
        let (method, arguments) = call(&case["invocation"]);
        let balance = case["algorithm"].as_str().map(|name| Balance::named(name).expect("a known algorithm"));
        let (clock, sticky, draw) = (time.clock(), Sticky::new(), Stream::seeded(20_240));
        World {
            list,
            plan,
            stats,
            sticky,
            time,
            clock,
            draw,
            method,
            arguments,
            balance,
            available: None,
            exclude: Vec::new(),
            check_available: true,
        }
    }

    fn pick(&mut self, candidates: &impl Candidates) -> Picked {
        let arguments = &self.arguments;
        let argument = |index: usize| arguments.get(index).map(String::as_bytes);
        let request = Request {
            arguments: &argument,
            balance: self.balance,
            available: self.available.as_deref(),
            exclude: &self.exclude,
            check_available: self.check_available,
            ..Request::new(self.method.as_bytes())
        };
        let mut picker = Picker {
            providers: &self.list,
            plan: &self.plan,
            sticky: &self.sticky,
            clock: &self.clock,
            draw: &mut self.draw,
        };
        picker.pick(candidates, &request).expect("a provider")
    }

    fn pick_any(&mut self) -> Picked {
        self.pick(&Rows::All(self.list.len() as usize))
    }

    fn pick_ids(&mut self, picks: usize) -> Vec<String> {
        let rows: Vec<u32> = (0..picks).map(|_| self.pick_any().row).collect();
        rows.into_iter().map(|row| self.list.id(row).to_owned()).collect()
    }

    fn end(&self, picked: Picked, ok: bool, ms: u64) {
        let outcome = CallOutcome { ok, latency_ns: Some(ms * 1_000_000), report: None };
        self.stats.end(picked.ticket, &outcome, &self.clock);
    }

    /// Counts so many picks by id; calls end at once without a sample.
    fn count(&mut self, runs: usize) -> BTreeMap<String, i64> {
        let mut counts: BTreeMap<String, i64> = self.list.ids.iter().map(|id| (id.clone(), 0)).collect();
        for _ in 0..runs {
            let picked = self.pick_any();
            self.end(picked, false, 0);
            *counts.get_mut(self.list.id(picked.row)).expect("a listed id") += 1;
        }
        counts
    }

    fn begin_on(&mut self, id: &str) -> Picked {
        let row = [self.list.row(id)];
        self.pick(&Rows::List(&row))
    }

    fn weight(&self, row: usize) -> i64 {
        i64::from(self.plan.weight(self.method.as_bytes(), row as u32, NOW_MS))
    }
}

/// Method and arguments of an invocation; a generic call is unwrapped as a host does before it asks.
fn call(invocation: &Value) -> (String, Vec<String>) {
    let method = invocation["method"].as_str().unwrap_or("m");
    let arguments = invocation["arguments"].as_array().cloned().unwrap_or_default();
    if method.starts_with("$invoke") && arguments.len() == 3 {
        let inner = arguments[2].as_array().cloned().unwrap_or_default();
        return (text(&arguments[0]), inner.iter().map(text).collect());
    }
    (method.to_owned(), arguments.iter().map(text).collect())
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// `warmup_weight` itself.
pub(crate) fn warmup(case: &Value) -> Outcome {
    let number = |key: &str| case[key].as_i64().and_then(|n| i32::try_from(n).ok()).expect("a number");
    let got = warmup_weight(number("uptime_ms"), number("warmup_ms"), number("weight"));
    Outcome::equal(Some(i64::from(got)), case["expect"].as_i64())
}

/// Weights of providers with a start time, and of registries.
pub(crate) fn weight(case: &Value) -> Outcome {
    let world = World::new(case, DUBBO_3);
    let weights: Vec<i64> = (0..world.list.ids.len()).map(|row| world.weight(row)).collect();
    let expect = &case["expect"];
    let want = expect["value"].as_i64().or(expect.as_i64()).expect("a weight");
    Outcome::equal(weights.clone(), vec![want; weights.len()])
}

/// One algorithm over a list.
pub(crate) fn balance(case: &Value) -> Outcome {
    let outcome = balance_as(case, &case["expect"], DUBBO_3);
    if let (Outcome::Pass, Some(sane)) = (&outcome, case.get("sane")) {
        let mut world = World::new(case, Quirks::default());
        let want: BTreeMap<String, i64> = serde_json::from_value(sane.clone()).expect("counts");
        let mut got = world.count(want.values().sum::<i64>() as usize);
        got.retain(|_, count| *count > 0);
        return Outcome::equal(got, want);
    }
    outcome
}

fn balance_as(case: &Value, expect: &Value, quirks: Quirks) -> Outcome {
    let mut world = World::new(case, quirks);
    if let Some(ids) = expect.as_array() {
        return Outcome::equal(world.pick_ids(ids.len()), ids.iter().map(text).collect());
    }
    if let Some(sequence) = expect["sequence"].as_str() {
        let got = world.pick_ids(sequence.len()).concat();
        return Outcome::equal(got.as_str(), sequence);
    }
    for (id, active) in case["active"].as_object().into_iter().flatten() {
        (0..active.as_i64().unwrap_or(0)).for_each(|_| {
            world.begin_on(id);
        });
    }
    for (id, words) in case["stats"].as_object().into_iter().flatten() {
        let words = words.as_str().unwrap_or_default();
        let Some((ms, active)) = words
            .strip_prefix("one success of ")
            .and_then(|rest| rest.strip_suffix(" active")?.split_once(" ms and "))
            .and_then(|(ms, active)| Some((ms.parse().ok()?, active.parse().ok()?)))
        else {
            return Outcome::Fail(format!("statistics not understood: {words}"));
        };
        let id = id_by_protocol(&world, id);
        let done = world.begin_on(&id);
        world.end(done, true, ms);
        (0..active).for_each(|_: u64| {
            world.begin_on(&id);
        });
    }
    if let Some(metrics) = case["provider_metrics"].as_object() {
        return adaptive(&mut world, metrics, expect);
    }
    if let Some(assert) = expect["assert"].as_str() {
        return balance_assert(&mut world, case, expect, assert);
    }
    let runs = expect["runs"].as_u64().expect("a number of runs") as usize;
    let counts = world.count(runs);
    if let Some(want) = expect.get("counts") {
        return Outcome::equal(counts, serde_json::from_value(want.clone()).expect("counts"));
    }
    // Shares are held to five deviations of a binomial draw; exact 0 and 1 exactly.
    let mut shares: BTreeMap<String, f64> = BTreeMap::new();
    if let Some(observed) = expect["observed"].as_object() {
        // Observed counts are themselves one draw; they stand for the nearest simple share.
        let listed = observed.len() as f64;
        for (id, count) in observed {
            let share = count.as_f64().unwrap_or(0.0) / runs as f64;
            let even = 1.0 / listed;
            shares.insert(id.clone(), if (share - even).abs() < 0.05 { even } else { share });
        }
    }
    for (id, share) in expect["share"].as_object().into_iter().flatten() {
        shares.insert(id.clone(), share.as_f64().expect("a share"));
    }
    if let Some(ratio) = expect["ratio"].as_str() {
        let Some((ids, parts)) = ratio.split_once(" about ") else {
            return Outcome::Fail(format!("ratio not understood: {ratio}"));
        };
        let parts: Vec<f64> = parts.split(':').filter_map(|part| part.parse().ok()).collect();
        let total: f64 = parts.iter().sum();
        for (id, part) in ids.split(':').zip(&parts) {
            shares.insert(id.to_owned(), part / total);
        }
    }
    for id in expect["never"].as_array().into_iter().flatten() {
        shares.insert(id_by_protocol(&world, &text(id)), 0.0);
    }
    if shares.is_empty() {
        return Outcome::Fail("the expectation was not understood".into());
    }
    for (id, count) in &counts {
        let share = shares.get(id).copied().unwrap_or(0.0);
        let (mean, deviation) = (share * runs as f64, (runs as f64 * share * (1.0 - share)).sqrt());
        if (*count as f64 - mean).abs() > 5.0 * deviation {
            return Outcome::Fail(format!("{id} got {count} of {runs}, share {share}: {counts:?}"));
        }
    }
    Outcome::Pass
}

/// Some cases call the third provider by the letter of its upstream variable (`E` for protocol `test5`).
fn id_by_protocol(world: &World, id: &str) -> String {
    if world.list.ids.iter().any(|own| own == id) {
        return id.to_owned();
    }
    let number = id.bytes().next().map_or(0, |letter| letter.saturating_sub(b'A') + 1);
    let protocol = format!("test{number}");
    let row = world.list.urls.iter().position(|url| url.protocol() == protocol);
    row.map_or_else(|| id.to_owned(), |row| world.list.ids[row].clone())
}

fn balance_assert(world: &mut World, case: &Value, expect: &Value, assert: &str) -> Outcome {
    if assert.starts_with("same invoker as the plain call") {
        let generic = world.pick_any();
        let mut plain = case.clone();
        let arguments = &case["invocation"]["arguments"];
        plain["invocation"] = serde_json::json!({ "method": arguments[0], "arguments": arguments[2] });
        let mut plain = World::new(&plain, DUBBO_3);
        return Outcome::equal(generic.row, plain.pick_any().row);
    }
    if assert == "every invoker is hit" {
        let mut hit = BTreeSet::new();
        for number in 0..1000 {
            world.arguments = vec![format!("arg{number}"), "arg2".into(), "arg3".into()];
            let rows: BTreeSet<u32> = (0..5).map(|_| world.pick_any().row).collect();
            if rows.len() != 1 {
                return Outcome::Fail(format!("arg{number} went to {rows:?}"));
            }
            hit.extend(rows);
        }
        return Outcome::equal(hit.len(), world.list.ids.len());
    }
    let runs = expect["runs"].as_u64().expect("a number of runs") as usize;
    let weights: Vec<i64> = (0..world.list.ids.len()).map(|row| world.weight(row)).collect();
    let total: i64 = weights.iter().sum();
    if assert.contains("window") {
        // One slow answer, then a new window in which it no longer counts.
        let last = world.list.ids.last().cloned().unwrap_or_default();
        let slow = world.begin_on(&last);
        world.end(slow, true, 5000);
        world.time.advance(Duration::from_millis(30_001));
    }
    let counts = match expect["threads"].as_u64() {
        Some(threads) => count_on_threads(world, runs, threads as usize),
        None => world.count(runs),
    };
    let by_row: Vec<i64> = world.list.ids.iter().map(|id| counts[id]).collect();
    let unit = runs as i64 / total.max(1);
    let average = runs as i64 / by_row.len() as i64;
    let fits = |row: usize, count: i64| match assert {
        "sum is 10000" => true,
        a if a.starts_with("within 100% of average") => (count - average).abs() <= average && count > 0,
        a if a.starts_with("each count differs") => (count - average).abs() < 1,
        a if a.starts_with("count per invoker within 10") => (count - unit * weights[row]).abs() <= 10,
        a if a.contains("share by weight") => (count / weights[row] - unit).abs() < 2 * unit && count > 0,
        _ => false,
    };
    let ok = by_row.iter().enumerate().all(|(row, count)| fits(row, *count));
    if ok && by_row.iter().sum::<i64>() == runs as i64 {
        Outcome::Pass
    } else {
        Outcome::Fail(format!("{counts:?} does not meet {assert:?}"))
    }
}

fn count_on_threads(world: &World, runs: usize, threads: usize) -> BTreeMap<String, i64> {
    let World { list, plan, sticky, clock, method, balance, .. } = world;
    let rows: Vec<Vec<u32>> = std::thread::scope(|scope| {
        let work: Vec<_> = (0..threads as u64)
            .map(|seed| {
                scope.spawn(move || {
                    let draw = Stream::seeded(seed);
                    let mut picker = Picker { providers: list, plan, sticky, clock, draw };
                    let request = Request { balance: *balance, ..Request::new(method.as_bytes()) };
                    let mut pick =
                        || picker.pick(&Rows::All(list.len() as usize), &request).expect("a provider").row;
                    (0..runs / threads).map(|_| pick()).collect()
                })
            })
            .collect();
        work.into_iter().map(|thread| thread.join().expect("a thread")).collect()
    });
    let mut counts: BTreeMap<String, i64> = list.ids.iter().map(|id| (id.clone(), 0)).collect();
    for row in rows.into_iter().flatten() {
        *counts.get_mut(list.id(row)).expect("a listed id") += 1;
    }
    counts
}

/// Every call ends at once with the metrics its provider reports.
fn adaptive(world: &mut World, metrics: &serde_json::Map<String, Value>, expect: &Value) -> Outcome {
    let runs = expect["runs"].as_i64().expect("a number of runs");
    let by_id: BTreeMap<String, &Value> =
        metrics.iter().map(|(id, value)| (id_by_protocol(world, id), value)).collect();
    let mut counts = vec![0_i64; world.list.ids.len()];
    for number in 0..runs {
        let picked = world.pick_any();
        counts[picked.row as usize] += 1;
        let metric = by_id[world.list.id(picked.row)];
        let report = ProviderReport {
            time_ms: NOW_MS + number,
            load: metric["load"].as_f64().unwrap_or(0.0),
            latency_ms: metric["rt"].as_f64().unwrap_or(0.0),
        };
        let outcome = CallOutcome { ok: metric["error"] != true, latency_ns: None, report: Some(report) };
        assert!(world.stats.end(picked.ticket, &outcome, &world.clock));
    }
    let total: i64 = (0..counts.len()).map(|row| world.weight(row)).sum();
    let unit = (runs / total) as f64;
    for (row, count) in counts.iter().enumerate() {
        let ewma = 0.5 * 50.0 + 0.5 * by_id[world.list.id(row as u32)]["rt"].as_f64().unwrap_or(0.0);
        let normalised = *count as f64 / (world.weight(row) as f64 * ewma);
        if (normalised - unit).abs() >= 2.0 * unit {
            return Outcome::Fail(format!("{counts:?}: row {row} has {normalised} where the unit is {unit}"));
        }
    }
    // Beyond upstream's wide bounds: the provider that reports the highest load and errors gets the fewest calls.
    let worst = (0..counts.len()).max_by_key(|row| by_id[world.list.id(*row as u32)]["load"].as_i64());
    let fewest = (0..counts.len()).min_by_key(|row| counts[*row]);
    Outcome::equal((counts.iter().sum::<i64>(), fewest), (runs, worst))
}

/// Picks under the sticky parameter of the URLs.
pub(crate) fn sticky(case: &Value) -> Outcome {
    let mut world = World::new(case, DUBBO_3);
    world.balance = Some(Balance::RoundRobin);
    let expect = &case["expect"];
    if let Some(ids) = expect["five_selects"].as_array() {
        return Outcome::equal(world.pick_ids(ids.len()), ids.iter().map(text).collect());
    }
    if expect["next"] == "another than the sticky one" {
        let stuck = world.pick_any();
        let again = world.pick_any();
        world.exclude = vec![stuck.tag];
        let next = world.pick_any();
        return Outcome::equal((again.tag == stuck.tag, next.tag != stuck.tag), (true, true));
    }
    Outcome::Fail(format!("expectation not understood: {expect}"))
}

/// First and second choices.
pub(crate) fn select(case: &Value) -> Outcome {
    let expect = &case["expect"];
    let list = List::of(case);
    let tag_of =
        |id: &Value| list.ids.iter().position(|own| *own == text(id)).map_or(999, |row| row as u64 + 1);
    let mut world = World::new(case, DUBBO_3);
    world.available = Some(list.bits());
    world.exclude = case["selected"].as_array().into_iter().flatten().map(tag_of).collect();
    world.check_available = case["availablecheck"].as_bool().unwrap_or(true);
    // Upstream's tests that name no algorithm drive a round robin or a stub that returns the first.
    world.balance = world.balance.or(Some(Balance::RoundRobin));
    let mut pick = || {
        let picked = world.pick_any();
        world.end(picked, true, 1);
        picked.row as usize
    };
    let first = pick();
    let id = &list.ids[first];
    if let Some(ids) = expect.as_array() {
        return Outcome::equal(vec![id.clone()], ids.iter().map(text).collect());
    }
    if let Some(ids) = expect["any_of"].as_array() {
        let allowed: Vec<String> = ids.iter().map(text).collect();
        let stray = core::iter::once(first)
            .chain((0..99).map(|_| pick()))
            .find(|row| !allowed.contains(&list.ids[*row]));
        return stray.map_or(Outcome::Pass, |row| Outcome::Fail(format!("got {}", list.ids[row])));
    }
    match expect["assert"].as_str() {
        Some("selected invoker is available") => {
            let stray =
                core::iter::once(first).chain((0..99).map(|_| pick())).find(|row| !list.available[*row]);
            stray.map_or(Outcome::Pass, |row| Outcome::Fail(format!("got {}", list.ids[row])))
        }
        Some("i2 and i4 share all 1000, each above 200") => {
            let mut counts = vec![0; list.ids.len()];
            counts[first] += 1;
            (1..1000).for_each(|_| counts[pick()] += 1);
            let (two, four) = (counts[list.row("i2") as usize], counts[list.row("i4") as usize]);
            Outcome::equal((two + four, two > 200, four > 200), (1000, true, true))
        }
        _ => Outcome::Fail(format!("expectation not understood: {expect}")),
    }
}

/// Health lists, step by step.
pub(crate) fn directory(case: &Value) -> Outcome {
    let list = List::of(case);
    let tag = |id: &str| u64::from(list.row(id.trim())) + 1;
    let ids = |tags: Vec<u64>| -> Vec<String> {
        tags.iter().map(|tag| list.ids[*tag as usize - 1].clone()).collect()
    };
    let mut health = Health::new();
    if let Some(expect) = case.get("expect_byway") {
        health.set_invokers(&[]);
        return Outcome::equal(serde_json::json!({ "list": ids(health.serving()) }), expect.clone());
    }
    let mut away: BTreeSet<u64> = BTreeSet::new();
    for step in case["expect"].as_array().into_iter().flatten() {
        let words = step["step"].as_str().unwrap_or_default();
        for action in words.split(", ") {
            // `verb(id)`, `verb id`, `id verb`, `verb [id,id]`
            let inside = |open, close| Some(action.split_once(open)?.1.split_once(close)?.0);
            let (first, last) = action.split_once(' ').unwrap_or((action, ""));
            match (first, last, inside('(', ')'), inside('[', ']')) {
                ("initial" | "notify", _, _, Some(ids)) => {
                    health.set_invokers(&ids.split(',').map(tag).collect::<Vec<_>>());
                }
                ("invalidate", ..) => health.serving().into_iter().for_each(|tag| {
                    health.invalidate(tag);
                }),
                (verb, _, Some(id), _) if verb.starts_with("addInvalidateInvoker(") => {
                    health.invalidate(tag(id));
                }
                (verb, _, Some(id), _) if verb.starts_with("addDisabledInvoker(") => {
                    health.disable(tag(id));
                }
                (verb, _, Some(id), _) if verb.starts_with("recoverDisabledInvoker(") => {
                    health.recover(tag(id));
                }
                ("disable", id, ..) => {
                    health.disable(tag(id));
                }
                (id, "unavailable", ..) => {
                    away.insert(tag(id));
                }
                (id, "available again", ..) => {
                    away.remove(&tag(id));
                }
                ("wait", ..) => {
                    health.check(&mut Stream::seeded(1), |tag| !away.contains(&tag));
                }
                // Here the lists end with their owner: what upstream reports at run time does not compile, and
                // the C boundary answers for handles that are gone.
                ("destroy", ..) => return Outcome::Pass,
                _ => return Outcome::Fail(format!("step not understood: {action}")),
            }
        }
        let got = [
            ("list", health.serving()),
            ("reconnect", health.reconnecting()),
            ("disabled", health.disabled()),
        ];
        for (field, tags) in got {
            let Some(want) = step.get(field) else { continue };
            if let Outcome::Fail(why) = Outcome::equal(serde_json::json!(ids(tags)), want.clone()) {
                return Outcome::Fail(format!("after {words:?}, {field}: {why}"));
            }
        }
    }
    Outcome::Pass
}
