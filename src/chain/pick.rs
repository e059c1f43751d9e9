//! Picking one provider out of a routing result.
//!
//! [`Picker::pick`] chooses from [`Candidates`], which may be a bit set or a list of rows; it never copies them and, once a
//! method has been seen on a list, never allocates. What it needs to know about the providers (weights, warm-up,
//! algorithm, hash rings) is computed when the list changes and kept in a [`Plan`]. What must survive a change of
//! list (calls in flight, response times, turns) is kept in the engine's [`CallStats`] and follows the host's tag.
//!
//! The order of decisions is Dubbo's (`AbstractClusterInvoker`): the sticky provider, a single candidate, the
//! algorithm's choice, and only if that one was tried before or is unavailable a second choice among the others.

use core::ops::ControlFlow;

use crate::error::{Error, Result, Status};
use crate::runtime::clock::Clock;
use crate::runtime::random::Draw;

pub mod candidates;
pub mod health;
pub mod plan;
pub mod ring;
pub mod stats;
pub mod weight;

mod algorithm;
mod invokers;
mod sticky;

pub use candidates::Candidates;
pub use plan::{Plan, Providers, Quirks};
pub use stats::{CallStats, Outcome, ProviderReport, ServiceStats, Ticket};
pub use sticky::Sticky;

use plan::MethodPlan;

/// How one provider is chosen. Numbers are fixed for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(i32)]
pub enum Balance {
    /// Weighted random: exactly weight / sum of weights.
    #[default]
    Random = 1,
    /// Smooth weighted round robin.
    RoundRobin = 2,
    /// Fewest calls in flight; among equals weighted random.
    LeastActive = 3,
    /// Smallest average response time in the last 30 s times calls in flight plus one; among equals weighted random.
    ShortestResponse = 4,
    /// Same arguments, same provider.
    ConsistentHash = 5,
    /// Of two drawn at random the one with the lower load (upstream's `adaptive`).
    P2c = 6,
}

impl Balance {
    /// Every algorithm.
    pub const ALL: [Balance; 6] = [
        Balance::Random,
        Balance::RoundRobin,
        Balance::LeastActive,
        Balance::ShortestResponse,
        Balance::ConsistentHash,
        Balance::P2c,
    ];

    /// The algorithm a `loadbalance` parameter names, by the names of Dubbo Java and dubbo-go. Empty = random.
    pub fn named(name: &str) -> Option<Balance> {
        Some(match name {
            // The alias method is another way to compute the same distribution.
            "" | "random" | "aliasmethod" => Balance::Random,
            "roundrobin" | "interleavedweightedroundrobin" => Balance::RoundRobin,
            "leastactive" => Balance::LeastActive,
            "shortestresponse" => Balance::ShortestResponse,
            "consistenthash" | "consistenthashing" => Balance::ConsistentHash,
            "adaptive" | "p2c" => Balance::P2c,
            _ => return None,
        })
    }

    /// The name Dubbo Java uses.
    pub fn name(self) -> &'static str {
        match self {
            Balance::Random => "random",
            Balance::RoundRobin => "roundrobin",
            Balance::LeastActive => "leastactive",
            Balance::ShortestResponse => "shortestresponse",
            Balance::ConsistentHash => "consistenthash",
            Balance::P2c => "adaptive",
        }
    }

    /// The algorithm with this number.
    pub fn from_number(number: i32) -> Option<Balance> {
        Balance::ALL.into_iter().find(|balance| *balance as i32 == number)
    }

    /// True when the algorithm looks at calls in flight or response times, so that calls must be begun and ended.
    pub(crate) fn counts_calls(self) -> bool {
        matches!(self, Balance::LeastActive | Balance::ShortestResponse | Balance::P2c)
    }
}

/// One wish.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The method that is meant (generic calls unwrapped).
    pub method: &'a [u8],
    /// Text of the i-th argument, for consistent hashing; `None` behind the last one. A null argument reads `null`.
    pub arguments: &'a dyn Fn(usize) -> Option<&'a [u8]>,
    /// Overrides the `loadbalance` parameter of the first candidate.
    pub balance: Option<Balance>,
    /// One bit a row of the whole list, lowest bit first: 1 = can be called. Rows behind the end count as
    /// unavailable. `None`: all can.
    pub available: Option<&'a [u64]>,
    /// Tags tried before, for a retry.
    pub exclude: &'a [u64],
    /// Overrides the `sticky` parameter of the first candidate.
    pub sticky: Option<bool>,
    /// Whether availability counts (`cluster.availablecheck`, default true).
    pub check_available: bool,
}

impl<'a> Request<'a> {
    /// A first try without wishes.
    pub fn new(method: &'a [u8]) -> Self {
        Request {
            method,
            arguments: &|_| None,
            balance: None,
            available: None,
            exclude: &[],
            sticky: None,
            check_available: true,
        }
    }

    fn is_available(&self, row: u32) -> bool {
        let Some(bits) = self.available else { return true };
        bits.get(row as usize / 64).is_some_and(|word| word >> (row % 64) & 1 == 1)
    }
}

/// The provider chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Picked {
    /// Its row in the list.
    pub row: u32,
    /// The host's tag.
    pub tag: u64,
    /// For [`CallStats::end`]; [`Ticket::NONE`] when the algorithm does not count calls.
    pub ticket: Ticket,
    /// False when nothing better than an unavailable provider was left.
    pub available: bool,
}

/// Everything a pick stands on. All of it is shared between threads but the draw.
pub struct Picker<'a, P, D> {
    /// Tags and rows of the list.
    pub providers: &'a P,
    /// What was computed when the list changed.
    pub plan: &'a Plan,
    /// The chain's memory of the sticky provider.
    pub sticky: &'a Sticky,
    /// The engine's clock.
    pub clock: &'a Clock,
    /// The session's stream of random numbers.
    pub draw: D,
}

impl<P: Providers, D: Draw> Picker<'_, P, D> {
    /// Chooses one of the candidates.
    ///
    /// # Errors
    ///
    /// `E_NO_INVOKER` without candidates; `E_INVOKERS` when the first candidate's parameters name an unknown
    /// algorithm or an unusable hash ring; `E_LIMIT` when its ring would be too large.
    pub fn pick<C: Candidates>(&mut self, candidates: &C, request: &Request<'_>) -> Result<Picked> {
        let count = candidates.len();
        if count == 0 {
            return Err(Status::E_NO_INVOKER.into());
        }
        let first = candidates.nth(0);
        let method = self.plan.method(request.method);
        let balance = match request.balance {
            Some(balance) => balance,
            None => self.plan.balance(method, first)?,
        };
        let exclude = Excluded::new(request.exclude);

        let sticky = request.sticky.unwrap_or_else(|| method.sticky(first));
        if sticky && let Some(row) = self.sticky.row(self.providers, candidates) {
            let usable = !request.check_available || request.is_available(row);
            if usable && !exclude.has(self.providers.tag(row)) {
                return Ok(self.take(row, balance, request));
            }
        }

        let row = if count == 1 {
            first
        } else {
            self.choose_twice(candidates, method, balance, request, &exclude)?
        };
        let picked = self.take(row, balance, request);
        if sticky {
            self.sticky.remember(picked.tag, picked.row);
        }
        Ok(picked)
    }

    fn take(&self, row: u32, balance: Balance, request: &Request<'_>) -> Picked {
        let ticket = if balance.counts_calls() {
            let calls = self.plan.calls(request.method, self.providers, self.clock);
            self.plan.stats().begin(calls.cell(row), balance, self.clock.monotonic_ns())
        } else {
            Ticket::NONE
        };
        Picked { row, tag: self.providers.tag(row), ticket, available: request.is_available(row) }
    }

    fn choose_twice<C: Candidates>(
        &mut self,
        candidates: &C,
        method: &MethodPlan,
        balance: Balance,
        request: &Request<'_>,
        exclude: &Excluded<'_>,
    ) -> Result<u32> {
        let first = self.choose(candidates, method, balance, request)?;
        let available = |row| !request.check_available || request.is_available(row);
        let tags = self.providers;
        let untried = |row| !exclude.has(tags.tag(row));
        if available(first) && untried(first) {
            return Ok(first);
        }
        if balance == Balance::Random {
            // Drawing again until one fits is the same distribution as drawing among those that fit; the bound
            // only decides how long to try before counting them.
            for _ in 0..RANDOM_RETRIES {
                let row = self.choose(candidates, method, balance, request)?;
                if available(row) && untried(row) {
                    return Ok(row);
                }
            }
        }
        if let Some(others) = candidates::Filtered::new(candidates, |row| available(row) && untried(row)) {
            return self.choose(&others, method, balance, request);
        }
        if let Some(tried) = candidates::Filtered::new(candidates, |row| request.is_available(row)) {
            return self.choose(&tried, method, balance, request);
        }
        let position = candidates.position(first).unwrap_or(0);
        Ok(candidates.nth(if position + 1 < candidates.len() { position + 1 } else { 0 }))
    }

    fn choose<C: Candidates>(
        &mut self,
        candidates: &C,
        method: &MethodPlan,
        balance: Balance,
        request: &Request<'_>,
    ) -> Result<u32> {
        if candidates.len() == 1 {
            return Ok(candidates.nth(0));
        }
        let first = candidates.nth(0);
        let weights = method.weights(self.clock);
        let stats = self.plan.stats();
        let calls = || self.plan.calls(request.method, self.providers, self.clock);
        match balance {
            Balance::Random if !method.names_weight(first) => {
                Ok(candidates.nth(self.draw.index(candidates.len())))
            }
            Balance::Random => Ok(weights.draw(candidates, &mut self.draw)),
            Balance::RoundRobin => {
                let zero_first = self.plan.quirks().zero_weights_keep_first;
                Ok(algorithm::round_robin(candidates, &weights, calls(), self.providers, zero_first))
            }
            Balance::LeastActive => {
                let calls = calls();
                let active = |row| u64::from(stats.active(calls.cell(row)));
                Ok(algorithm::smallest(candidates, active, &weights, &mut self.draw))
            }
            Balance::ShortestResponse => {
                let (calls, now) = (calls(), self.clock.monotonic_ns());
                let estimate = |row| stats.estimate(calls.cell(row), now);
                Ok(algorithm::smallest(candidates, estimate, &weights, &mut self.draw))
            }
            Balance::ConsistentHash => {
                let (ring, indexes) = self.plan.ring(method, first, self.providers)?;
                let point =
                    ring::point(indexes.iter().filter_map(|index| (request.arguments)(*index as usize)));
                Ok(ring.at(point, |row| candidates.contains(row)).unwrap_or(first))
            }
            Balance::P2c => {
                let (calls, now) = (calls(), self.clock.monotonic_ns());
                let load =
                    |row: u32, weight: u32| stats.load(calls.cell(row), weight, method.timeout_ms(row), now);
                Ok(algorithm::lower_of_two(candidates, load, &weights, &mut self.draw))
            }
        }
    }
}

const RANDOM_RETRIES: usize = 10;

/// The tags tried before, with a filter in front so that a long list costs the other rows one look.
struct Excluded<'a> {
    tags: &'a [u64],
    filter: u64,
}

impl<'a> Excluded<'a> {
    fn new(tags: &'a [u64]) -> Self {
        let filter = tags.iter().fold(0, |filter, tag| filter | Self::bit(*tag));
        Excluded { tags, filter }
    }

    fn bit(tag: u64) -> u64 {
        1 << (tag.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58)
    }

    fn has(&self, tag: u64) -> bool {
        self.filter & Self::bit(tag) != 0 && self.tags.contains(&tag)
    }
}

/// Runs over candidates until the visitor breaks.
type Visit = ControlFlow<()>;

fn invalid(key: &str, value: &str, expected: &str) -> Error {
    Error::new(Status::E_INVOKERS, format!("{value:?} is not {expected}")).subject(key)
}

#[cfg(test)]
mod naive;
#[cfg(test)]
mod tests;
