//! Order of addresses: interleaving of families (RFC 8305 section 4), and what history adds.

use super::ip::{Ip, V4, V6};

/// Which family comes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(i32)]
pub enum FirstFamily {
    /// IPv6, as OkHttp and RFC 8305.
    #[default]
    V6 = 0,
    /// IPv4.
    V4 = 1,
    /// The family of the first address.
    FirstAddress = 2,
}

/// How to order one answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Order {
    /// Alternate between families; off keeps the resolver's order.
    pub interleave: bool,
    /// Who begins.
    pub first_family: FirstFamily,
    /// How many of the first family before the first of the other ("First Address Family Count"), at least 1.
    pub first_family_count: usize,
    /// Drop repeated addresses. OkHttp keeps them.
    pub dedup: bool,
}

impl Default for Order {
    fn default() -> Order {
        Order { interleave: true, first_family: FirstFamily::V6, first_family_count: 1, dedup: false }
    }
}

/// What is known of one address from earlier connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Smallest round trip seen, in milliseconds.
    pub rtt_min_ms: Option<u32>,
    /// Attempts made.
    pub attempts: u32,
    /// Attempts that connected.
    pub successes: u32,
}

/// When history speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryRule {
    /// An address slower than the fastest by more than this goes behind. Compared with the fastest only: a pairwise
    /// threshold is not transitive and would be no order at all.
    pub slow_ms: u32,
    /// An address with more attempts than this and no success goes last.
    pub dead_after: u32,
}

impl Default for HistoryRule {
    fn default() -> HistoryRule {
        HistoryRule { slow_ms: 100, dead_after: 10 }
    }
}

impl Order {
    /// Puts addresses in order. Inside a family the resolver's order never changes.
    pub fn apply(&self, ips: &mut Vec<Ip>) {
        if self.dedup {
            let mut seen = std::collections::HashSet::with_capacity(ips.len());
            ips.retain(|ip| seen.insert(*ip));
        }
        if !self.interleave || ips.len() < 2 {
            return;
        }
        let source = std::mem::take(ips);
        ips.reserve(source.len());
        self.visit(&source, |_, ip| ips.push(ip));
    }

    /// True when a list is not yet what routes are made of; see [`Order::tidy`].
    #[inline]
    pub(crate) fn wants_tidying(&self, ips: &[Ip]) -> bool {
        self.dedup && ips.len() > 1 || !ips.iter().all(Ip::is_canonical)
    }

    /// IPv4-mapped addresses as what they stand for, each address once where that is wanted, in the order given.
    #[cold]
    pub(crate) fn tidy(&self, ips: &[Ip]) -> Vec<Ip> {
        let mut tidy: Vec<Ip> = ips.iter().map(|ip| ip.unmapped()).collect();
        Order { interleave: false, ..*self }.apply(&mut tidy);
        tidy
    }

    /// Calls `each` in order, with the position in the input, and stores nothing; `dedup` is left to
    /// [`Order::apply`].
    ///
    /// `each` stands in one place here, so that it becomes part of the loop.
    #[inline(always)]
    pub(crate) fn visit(&self, ips: &[Ip], mut each: impl FnMut(usize, Ip)) {
        let mut lanes = self.lanes(ips);
        for at in 0..ips.len() {
            let from = if lanes.mixed { lanes.next(ips) } else { at };
            let Some(&ip) = ips.get(from) else { return };
            each(from, ip);
        }
    }

    /// True when [`Order::visit`] does not go straight through.
    #[inline]
    pub(crate) fn moves(&self, ips: &[Ip]) -> bool {
        self.lanes(ips).mixed
    }

    #[inline]
    fn lanes(&self, ips: &[Ip]) -> Lanes {
        let mut lanes = Lanes { mixed: false, first: V6, run: 0, leads: true, leading: 0, other: 0 };
        let Some((one, rest)) = ips.split_first().filter(|_| self.interleave) else { return lanes };
        lanes.mixed = rest.iter().any(|ip| ip.family != one.family);
        if lanes.mixed {
            lanes.first = match self.first_family {
                FirstFamily::V6 => V6,
                FirstFamily::V4 => V4,
                FirstFamily::FirstAddress => one.family,
            };
            lanes.run = self.first_family_count.max(1);
        }
        lanes
    }

    /// Orders what did not fail first, then what did, each interleaved on its own (`postponed` says which).
    pub fn apply_after_postponing(&self, ips: &mut Vec<Ip>, postponed: impl Fn(&Ip) -> bool) {
        let (mut behind, mut front): (Vec<Ip>, Vec<Ip>) = ips.drain(..).partition(|ip| postponed(ip));
        self.apply(&mut front);
        self.apply(&mut behind);
        ips.append(&mut front);
        ips.append(&mut behind);
    }
}

/// Two families on their way into one list.
struct Lanes {
    /// There are two.
    mixed: bool,
    /// Who begins.
    first: u8,
    /// How many of it are still to come in a row.
    run: usize,
    /// Whose turn it was last.
    leads: bool,
    /// Where the next one of each family is looked for.
    leading: usize,
    other: usize,
}

impl Lanes {
    /// Position of the next address; whose turn it is, as long as there are any, else the other family.
    #[inline]
    fn next(&mut self, ips: &[Ip]) -> usize {
        if self.run > 0 {
            self.run -= 1;
            self.leads = true;
        } else {
            self.leads = !self.leads;
        }
        self.leading = Self::seek(ips, self.leading, |ip| ip.family == self.first);
        self.other = Self::seek(ips, self.other, |ip| ip.family != self.first);
        let leads = if self.leads { self.leading < ips.len() } else { self.other >= ips.len() };
        let at = if leads { &mut self.leading } else { &mut self.other };
        *at += 1;
        *at - 1
    }

    #[inline]
    fn seek(ips: &[Ip], from: usize, wanted: impl Fn(&Ip) -> bool) -> usize {
        let mut at = from;
        while ips.get(at).is_some_and(|ip| !wanted(ip)) {
            at += 1;
        }
        at
    }
}

/// Moves slow addresses behind fast ones and dead ones to the end; otherwise the order stays.
pub fn by_history(ips: &mut [Ip], rule: HistoryRule, history: impl Fn(&Ip) -> History) {
    let best = ips.iter().filter_map(|ip| history(ip).rtt_min_ms).min();
    ips.sort_by_key(|ip| {
        let known = history(ip);
        let slow = match (known.rtt_min_ms, best) {
            (Some(own), Some(best)) => own - best > rule.slow_ms,
            _ => false,
        };
        let dead = known.attempts > rule.dead_after && known.successes == 0;
        if dead { 2 } else { u8::from(slow) }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every rule keeps each family's own order and loses nothing.
    #[test]
    fn interleaving_is_a_permutation_that_keeps_each_family_in_order() {
        for bits in 0..256_u32 {
            for first_family in [FirstFamily::V6, FirstFamily::V4, FirstFamily::FirstAddress] {
                for first_family_count in 0..4 {
                    let input: Vec<Ip> =
                        (0..8)
                            .map(|i| {
                                if bits >> i & 1 == 1 {
                                    Ip::v6([i as u8; 16], 0)
                                } else {
                                    Ip::v4([i as u8; 4])
                                }
                            })
                            .collect();
                    let mut got = input.clone();
                    Order { first_family, first_family_count, ..Order::default() }.apply(&mut got);
                    for family in [V4, V6] {
                        let of = |ips: &[Ip]| {
                            ips.iter().filter(|ip| ip.family == family).copied().collect::<Vec<_>>()
                        };
                        assert_eq!(of(&got), of(&input));
                    }
                    assert_eq!(got.len(), 8);
                }
            }
        }
    }
}
