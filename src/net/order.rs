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

    /// Calls `each` in order, with the position in the input, and stores nothing; `dedup` is left to
    /// [`Order::apply`].
    #[inline]
    pub(crate) fn visit(&self, ips: &[Ip], mut each: impl FnMut(usize, Ip)) {
        let mixed =
            self.interleave && ips.split_first().is_some_and(|(a, b)| b.iter().any(|b| b.family != a.family));
        if !mixed {
            ips.iter().enumerate().for_each(|(i, &ip)| each(i, ip));
            return;
        }
        let first = match self.first_family {
            FirstFamily::V6 => V6,
            FirstFamily::V4 => V4,
            FirstFamily::FirstAddress => ips.first().map_or(V6, |ip| ip.family),
        };
        let mut leading = ips.iter().enumerate().filter(|(_, ip)| ip.family == first);
        let mut other = ips.iter().enumerate().filter(|(_, ip)| ip.family != first);
        for (i, &ip) in leading.by_ref().take(self.first_family_count.max(1)) {
            each(i, ip);
        }
        loop {
            match (other.next(), leading.next()) {
                (Some((i, &a)), Some((j, &b))) => {
                    each(i, a);
                    each(j, b);
                }
                (Some((i, &one)), None) | (None, Some((i, &one))) => each(i, one),
                (None, None) => return,
            }
        }
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
