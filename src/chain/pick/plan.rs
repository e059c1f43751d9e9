//! What picks need to know about a list of providers, computed when the list changes.

use core::sync::atomic::AtomicBool;
use once_cell::sync::OnceCell;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::ring::{self, Ring};
use super::stats::{CallStats, MethodStats, ServiceStats};
use super::weight::{Column, DEFAULT_WARMUP_MS, DEFAULT_WEIGHT, Warmup, Weights, WeightsNow};
use super::{Balance, invalid};
use crate::chain::hash;
use crate::error::{Error, Result, Status};
use crate::runtime::clock::Clock;

/// A list of providers as picks see it.
pub trait Providers {
    /// How many.
    fn len(&self) -> u32;
    /// True when there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The host's tag; never twice in a list.
    fn tag(&self, row: u32) -> u64;
    /// The row with a tag.
    fn row_of(&self, tag: u64) -> Option<u32>;
    /// Appends `host:port`, or the host alone when there is no port.
    fn address(&self, row: u32, out: &mut String);
    /// Shows every parameter key that occurs, once.
    fn keys(&self, visitor: &mut dyn FnMut(&str));
    /// Shows the value of a parameter of every row that has it, rows ascending.
    fn values(&self, key: &str, visitor: &mut dyn FnMut(u32, &str));
    /// Shows the service interface (parameter `interface`, else the path) of every row that has one, rows ascending.
    fn interfaces(&self, visitor: &mut dyn FnMut(u32, &str));
}

/// The points in which dialects pick differently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quirks {
    /// Random looks at weights only when the first candidate names a weight or a timestamp (Dubbo 3, a short cut
    /// that ignores the weights of the others).
    pub first_decides_about_weights: bool,
    /// Round robin over weights that are all 0 always gives the first (Dubbo Java).
    pub zero_weights_keep_first: bool,
    /// Start time and warm-up are in seconds and under `remote.timestamp` (dubbo-go).
    pub warmup_in_seconds: bool,
}

/// Provider parameters of one list, digested. Immutable but for what is filled in on first use.
pub struct Plan {
    rows: u32,
    quirks: Quirks,
    default: MethodPlan,
    methods: HashMap<Box<[u8]>, MethodPlan>,
    balances: Vec<Result<Balance>>,
    nodes: Vec<Result<u32>>,
    arguments: Vec<Result<Box<[u32]>>>,
    rings: [OnceCell<(u32, Result<Ring>)>; MAX_RINGS],
    service: Arc<ServiceStats>,
    calls: CallsTable,
}

/// What holds for one method.
#[derive(Clone, Debug)]
pub(super) struct MethodPlan {
    weights: Weights,
    /// The row names a weight or a timestamp; only kept when a quirk asks for it.
    names_weight: Arc<Column<bool>>,
    sticky: Arc<Column<bool>>,
    timeout_ms: Arc<Column<u32>>,
    /// Indexes into the plan's tables.
    balance: Arc<Column<u32>>,
    nodes: Arc<Column<u32>>,
    arguments: Arc<Column<u32>>,
}

/// Method parameters (`sayHello.weight`) one list may have; each is a column.
const MAX_METHOD_KEYS: usize = 4096;
const MAX_RINGS: usize = 4;
const DEFAULT_TIMEOUT_MS: u32 = 1000;
const REGISTRY: &str = "org.apache.dubbo.registry.RegistryService";
const METHOD_KEYS: [&str; 6] = ["weight", "loadbalance", "sticky", "timeout", "hash.nodes", "hash.arguments"];

/// True for parameters that say how one provider is picked: a consumer's own come before the provider's.
pub fn is_for_picking(key: &str) -> bool {
    METHOD_KEYS.iter().chain(&["warmup"]).any(|name| {
        // For one method as well: `hello.loadbalance`.
        key.strip_suffix(name).is_some_and(|head| head.is_empty() || head.ends_with('.'))
    })
}

impl Plan {
    /// Digests the parameters of a list.
    ///
    /// # Errors
    ///
    /// `E_LIMIT` when the list has more than 4096 different method parameters.
    pub fn build(providers: &impl Providers, quirks: Quirks, service: Arc<ServiceStats>) -> Result<Plan> {
        let mut builder = Builder::new(providers, quirks);
        let default = builder.default();
        let mut methods: HashMap<Box<[u8]>, MethodPlan> = HashMap::new();
        for (method, key) in builder.method_keys()? {
            let plan = methods.entry(method.as_bytes().into()).or_insert_with(|| default.clone());
            builder.patch(plan, &method, key);
        }
        let Builder { balances, nodes, arguments, .. } = builder;
        let plan = Plan {
            rows: providers.len(),
            quirks,
            default,
            methods,
            balances: balances.values,
            nodes: nodes.values,
            arguments: arguments.values,
            rings: [const { OnceCell::new() }; MAX_RINGS],
            service,
            calls: CallsTable::new(),
        };
        if plan.rows > 0 && plan.balance(&plan.default, 0) == Ok(Balance::ConsistentHash) {
            // Better now than in the first call; an error is kept for the calls.
            let _ = plan.ring(&plan.default, 0, providers);
        }
        Ok(plan)
    }

    pub(super) fn stats(&self) -> &CallStats {
        self.service.stats()
    }

    pub(super) fn quirks(&self) -> Quirks {
        self.quirks
    }

    #[inline]
    pub(super) fn method(&self, name: &[u8]) -> &MethodPlan {
        if self.methods.is_empty() { &self.default } else { self.methods.get(name).unwrap_or(&self.default) }
    }

    /// A provider's weight for a method at a moment of the wall clock, warm-up counted in.
    pub fn weight(&self, method: &[u8], row: u32, wall_ms: i64) -> u32 {
        self.method(method).weights.now(|| wall_ms).of(row)
    }

    pub(super) fn balance(&self, method: &MethodPlan, row: u32) -> Result<Balance> {
        entry(&self.balances, method.balance.get(row, 0))
    }

    /// The counters of a method, one cell per row; made on first use.
    #[inline]
    pub(super) fn calls(&self, method: &[u8], providers: &impl Providers, clock: &Clock) -> &Calls {
        self.calls.get(method, |method| self.service.calls(method, providers, clock))
    }

    /// The ring for a row's parameters, and the arguments that make the key.
    pub(super) fn ring(
        &self,
        method: &MethodPlan,
        row: u32,
        providers: &impl Providers,
    ) -> Result<(&Ring, &[u32])> {
        let nodes = entry(&self.nodes, method.nodes.get(row, 0))?;
        let arguments = match self.arguments.get(method.arguments.get(row, 0) as usize) {
            Some(Ok(indexes)) => indexes,
            Some(Err(error)) => return Err(error.clone()),
            None => &[] as &[u32],
        };
        for slot in &self.rings {
            let build = || (nodes, Ring::build(self.rows, nodes, |row, text| providers.address(row, text)));
            match slot.get_or_init(build) {
                (own, ring) if *own == nodes => {
                    return ring.as_ref().map(|ring| (ring, arguments)).map_err(Error::clone);
                }
                _ => {}
            }
        }
        let message = format!("one list may have {MAX_RINGS} different values");
        Err(Error::new(Status::E_LIMIT, message).subject("hash.nodes"))
    }
}

fn entry<T: Clone>(table: &[Result<T>], index: u32) -> Result<T> {
    table.get(index as usize).cloned().unwrap_or_else(|| Err(Status::E_INVOKERS.into()))
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Plan({} rows, {} methods apart)", self.rows, self.methods.len())
    }
}

impl MethodPlan {
    pub(super) fn sticky(&self, row: u32) -> bool {
        self.sticky.get(row, false)
    }

    pub(super) fn timeout_ms(&self, row: u32) -> u32 {
        self.timeout_ms.get(row, DEFAULT_TIMEOUT_MS)
    }

    pub(super) fn names_weight(&self, row: u32) -> bool {
        self.names_weight.get(row, true)
    }

    #[inline]
    pub(super) fn weights(&self, clock: &Clock) -> WeightsNow<'_> {
        self.weights.now(|| clock.wall_ms())
    }
}

/// Reads a list's parameters into columns.
struct Builder<'a, P> {
    providers: &'a P,
    quirks: Quirks,
    rows: u32,
    registry: Vec<bool>,
    warmup: Option<Arc<Warmup>>,
    balances: Table<Balance>,
    nodes: Table<u32>,
    arguments: Table<Box<[u32]>>,
}

/// Distinct values of a parameter, parsed once each; the first is the default.
struct Table<T> {
    numbers: HashMap<Box<str>, u32>,
    values: Vec<Result<T>>,
    parse: fn(&str) -> Result<T>,
}

impl<T> Table<T> {
    fn new(default: T, parse: fn(&str) -> Result<T>) -> Self {
        Table { numbers: HashMap::new(), values: vec![Ok(default)], parse }
    }

    fn number(&mut self, text: &str) -> u32 {
        if text.is_empty() {
            return 0;
        }
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.values.len() as u32;
        self.values.push((self.parse)(text));
        self.numbers.insert(text.into(), number);
        number
    }
}

impl<'a, P: Providers> Builder<'a, P> {
    fn new(providers: &'a P, quirks: Quirks) -> Self {
        let parse_balance = |name: &str| {
            Balance::named(name).ok_or_else(|| {
                let names = Balance::ALL.map(Balance::name).join(", ");
                invalid("loadbalance", name, &format!("a load balance; known are {names}"))
            })
        };
        let mut builder = Builder {
            providers,
            quirks,
            rows: providers.len(),
            registry: Vec::new(),
            warmup: None,
            balances: Table::new(Balance::Random, parse_balance),
            nodes: Table::new(ring::DEFAULT_NODES, ring::parse_nodes),
            arguments: Table::new(Box::new([0]), ring::parse_arguments),
        };
        providers.interfaces(&mut |row, name| {
            if name == REGISTRY {
                builder.registry.resize(builder.rows as usize, false);
                if let Some(flag) = builder.registry.get_mut(row as usize) {
                    *flag = true;
                }
            }
        });
        builder.warmup = builder.warmup();
        builder
    }

    fn is_registry(&self, row: u32) -> bool {
        self.registry.get(row as usize).copied().unwrap_or(false)
    }

    /// A column of parameter `key`, with `default.key` beneath it.
    fn column<T: Copy + PartialEq>(
        &self,
        key: &str,
        default: T,
        mut parse: impl FnMut(&str) -> T,
    ) -> Column<T> {
        let mut values = Vec::new();
        for key in [&format!("default.{key}"), key] {
            self.providers.values(key, &mut |row, text| {
                if !text.is_empty() {
                    values.resize(self.rows as usize, default);
                    if let Some(value) = values.get_mut(row as usize) {
                        *value = parse(text);
                    }
                }
            });
        }
        Column::from_values(values, default)
    }

    fn default(&mut self) -> MethodPlan {
        let full = self.column("weight", DEFAULT_WEIGHT, parse_weight);
        let names_weight = if self.quirks.first_decides_about_weights {
            let mut named = vec![false; self.rows as usize];
            for key in ["default.weight", "weight", "timestamp"] {
                self.providers.values(key, &mut |row, text| {
                    if let Some(flag) = named.get_mut(row as usize) {
                        *flag |= !text.is_empty();
                    }
                });
            }
            Column::from_values(named, false)
        } else {
            Column::All(true)
        };
        let mut balances =
            core::mem::replace(&mut self.balances, Table::new(Balance::Random, |_| Ok(Balance::Random)));
        let balance = self.column("loadbalance", 0, |text| balances.number(text));
        self.balances = balances;
        let mut nodes = core::mem::replace(&mut self.nodes, Table::new(0, ring::parse_nodes));
        let nodes_column = self.column("hash.nodes", 0, |text| nodes.number(text));
        self.nodes = nodes;
        let mut arguments =
            core::mem::replace(&mut self.arguments, Table::new(Box::default(), ring::parse_arguments));
        let arguments_column = self.column("hash.arguments", 0, |text| arguments.number(text));
        self.arguments = arguments;
        MethodPlan {
            weights: Weights::new(Arc::new(full), self.warmup.clone()),
            names_weight: Arc::new(names_weight),
            sticky: Arc::new(self.column("sticky", false, parse_flag)),
            timeout_ms: Arc::new(self.column("timeout", DEFAULT_TIMEOUT_MS, parse_timeout)),
            balance: Arc::new(balance),
            nodes: Arc::new(nodes_column),
            arguments: Arc::new(arguments_column),
        }
    }

    fn warmup(&self) -> Option<Arc<Warmup>> {
        let (key, unit) =
            if self.quirks.warmup_in_seconds { ("remote.timestamp", 1000) } else { ("timestamp", 1) };
        let start_ms = self.column(key, 0_i64, |text| {
            text.trim()
                .parse()
                .ok()
                .filter(|start: &i64| *start > 0)
                .map_or(0, |start| start.saturating_mul(unit))
        });
        let length_ms = self.column("warmup", DEFAULT_WARMUP_MS, |text| {
            let length: i64 = text.trim().parse().unwrap_or(i64::from(DEFAULT_WARMUP_MS) / unit);
            u32::try_from(length.saturating_mul(unit).clamp(0, i64::from(i32::MAX))).unwrap_or(0)
        });
        if !self.registry.is_empty() {
            // A registry stands for all of its providers and does not warm up.
            let starts =
                (0..self.rows).map(|row| if self.is_registry(row) { 0 } else { start_ms.get(row, 0) });
            return Self::warmup_of(Column::from_values(starts.collect(), 0), length_ms, self.rows);
        }
        Self::warmup_of(start_ms, length_ms, self.rows)
    }

    fn warmup_of(start_ms: Column<i64>, length_ms: Column<u32>, rows: u32) -> Option<Arc<Warmup>> {
        if matches!(start_ms, Column::All(0)) {
            return None;
        }
        let end = |row| match start_ms.get(row, 0) {
            0 => 0,
            start => start.saturating_add(i64::from(length_ms.get(row, DEFAULT_WARMUP_MS))),
        };
        let done_at_ms = (0..rows).map(end).max().unwrap_or(0);
        Some(Arc::new(Warmup { start_ms, length_ms, done_at_ms, over: AtomicBool::new(false) }))
    }

    /// All `method.key` parameters, as method and key.
    fn method_keys(&self) -> Result<Vec<(String, &'static str)>> {
        let mut found = Vec::new();
        self.providers.keys(&mut |name| {
            for key in METHOD_KEYS {
                let method = name.strip_suffix(key).and_then(|rest| rest.strip_suffix('.'));
                let method = method.filter(|method| !method.is_empty() && *method != "default");
                if let Some(method) = method
                    && found.len() <= MAX_METHOD_KEYS
                {
                    found.push((method.to_owned(), key));
                }
            }
        });
        if found.len() > MAX_METHOD_KEYS {
            let message = format!("the list has more than {MAX_METHOD_KEYS} different method parameters");
            return Err(Error::new(Status::E_LIMIT, message));
        }
        Ok(found)
    }

    fn patch(&mut self, plan: &mut MethodPlan, method: &str, key: &str) {
        let mut texts: Vec<(u32, String)> = Vec::new();
        self.providers.values(&format!("{method}.{key}"), &mut |row, text| {
            if !text.is_empty() {
                texts.push((row, text.to_owned()));
            }
        });
        let rows = self.rows;
        match key {
            "weight" => {
                let mut patches = values(&texts, parse_weight);
                patches.retain(|(row, _)| !self.is_registry(*row));
                let full = Column::patched(plan.weights.full(), patches, rows, DEFAULT_WEIGHT);
                plan.weights = Weights::new(full, self.warmup.clone());
                if self.quirks.first_decides_about_weights {
                    plan.names_weight =
                        Column::patched(&plan.names_weight, values(&texts, |_| true), rows, true);
                }
            }
            "loadbalance" => {
                let patches = values(&texts, |text| self.balances.number(text));
                plan.balance = Column::patched(&plan.balance, patches, rows, 0);
            }
            "sticky" => plan.sticky = Column::patched(&plan.sticky, values(&texts, parse_flag), rows, false),
            "timeout" => {
                let patches = values(&texts, parse_timeout);
                plan.timeout_ms = Column::patched(&plan.timeout_ms, patches, rows, DEFAULT_TIMEOUT_MS);
            }
            "hash.nodes" => {
                let patches = values(&texts, |text| self.nodes.number(text));
                plan.nodes = Column::patched(&plan.nodes, patches, rows, 0);
            }
            _ => {
                let patches = values(&texts, |text| self.arguments.number(text));
                plan.arguments = Column::patched(&plan.arguments, patches, rows, 0);
            }
        }
    }
}

fn values<T>(texts: &[(u32, String)], mut parse: impl FnMut(&str) -> T) -> Vec<(u32, T)> {
    texts.iter().map(|(row, text)| (*row, parse(text))).collect()
}

/// A weight that is no number counts as not given, a negative one as 0.
fn parse_weight(text: &str) -> u32 {
    text.trim().parse::<i32>().map_or(DEFAULT_WEIGHT, |weight| weight.max(0) as u32)
}

fn parse_flag(text: &str) -> bool {
    text.eq_ignore_ascii_case("true")
}

fn parse_timeout(text: &str) -> u32 {
    text.trim().parse().ok().filter(|timeout| *timeout > 0).unwrap_or(DEFAULT_TIMEOUT_MS)
}

/// Counters of one method for one list: row to cell.
pub struct Calls {
    pub(super) stats: Arc<CallStats>,
    pub(super) method: Arc<MethodStats>,
    pub(super) cells: Box<[u32]>,
}

impl Calls {
    #[inline]
    pub(super) fn cell(&self, row: u32) -> u32 {
        self.cells.get(row as usize).copied().unwrap_or(u32::MAX)
    }

    pub(super) fn next_turn(&self, count: usize, ends: [u64; 2]) -> u64 {
        self.method.next_turn(count, ends)
    }

    pub(super) fn earn(&self, row: u32, weight: u32, full: u32) -> i64 {
        self.stats.earn(self.cell(row), weight, full)
    }

    pub(super) fn pay(&self, row: u32, total: i64) {
        self.stats.pay(self.cell(row), total);
    }
}

/// Method name to counters. Only grows, reading takes no lock; a full table serves further names with one set, as
/// [`ServiceStats`] does.
struct CallsTable {
    slots: Box<[OnceCell<CallsSlot>]>,
    others: OnceCell<Calls>,
}

struct CallsSlot {
    hash: u64,
    name: Box<[u8]>,
    calls: Calls,
}

const CALLS_SLOTS: usize = 128;

impl CallsTable {
    fn new() -> Self {
        CallsTable { slots: (0..CALLS_SLOTS).map(|_| OnceCell::new()).collect(), others: OnceCell::new() }
    }

    fn get(&self, name: &[u8], make: impl Fn(&[u8]) -> Calls) -> &Calls {
        let hash = hash::bytes(hash::seed(), name);
        for probe in 0..MAX_PROBES {
            let Some(slot) = self.slots.get((hash as usize).wrapping_add(probe) % CALLS_SLOTS) else { break };
            let own = slot.get_or_init(|| CallsSlot { hash, name: name.into(), calls: make(name) });
            if own.hash == hash && *own.name == *name {
                return &own.calls;
            }
        }
        self.others.get_or_init(|| make(b""))
    }
}

/// Names that find no place so near share the last set, so that a full table stays quick.
const MAX_PROBES: usize = 16;
