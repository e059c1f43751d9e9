//! Which providers of a list are worth asking: Dubbo's lists of invokers to reconnect and of disabled invokers.

use std::collections::HashSet;

use crate::runtime::random::Draw;

/// Health of the providers of one chain, by the host's tags. The list it serves is the registry's, in the registry's
/// order, without the providers found unavailable and without those switched off.
#[derive(Debug, Default)]
pub struct Health {
    listed: Vec<u64>,
    known: HashSet<u64>,
    reconnecting: HashSet<u64>,
    disabled: HashSet<u64>,
}

/// Unavailable providers looked at per check (`dubbo.reconnect.reconnectTaskTryCount`).
pub const CHECKS_AT_ONCE: usize = 10;

impl Health {
    /// No provider yet.
    pub fn new() -> Self {
        Health::default()
    }

    /// The registry's list. Providers that are no longer in it are forgotten; the others keep their state.
    pub fn set_invokers(&mut self, tags: &[u64]) {
        self.listed = tags.to_vec();
        self.known = tags.iter().copied().collect();
        self.reconnecting.retain(|tag| self.known.contains(tag));
        self.disabled.retain(|tag| self.known.contains(tag));
    }

    /// Takes a provider out until a check finds it available again. False when it is not being served.
    pub fn invalidate(&mut self, tag: u64) -> bool {
        self.serves(tag) && self.reconnecting.insert(tag)
    }

    /// Switches a provider off until [`Health::recover`]; checks do not bring it back. False when it is unknown.
    pub fn disable(&mut self, tag: u64) -> bool {
        self.known.contains(&tag) && self.disabled.insert(tag)
    }

    /// Switches a provider on again. False when it was not switched off.
    pub fn recover(&mut self, tag: u64) -> bool {
        self.disabled.remove(&tag)
    }

    /// Asks about unavailable providers, at most [`CHECKS_AT_ONCE`] of them, drawn at random when there are more, and
    /// serves those that are available again. Returns how many are left.
    pub fn check(&mut self, draw: &mut impl Draw, mut is_available: impl FnMut(u64) -> bool) -> usize {
        let mut waiting = self.reconnecting();
        let count = waiting.len().min(CHECKS_AT_ONCE);
        if waiting.len() > count {
            for place in 0..count {
                let other = place + draw.index(waiting.len() - place);
                waiting.swap(place, other);
            }
        }
        for tag in waiting.into_iter().take(count) {
            if is_available(tag) {
                self.reconnecting.remove(&tag);
            }
        }
        self.reconnecting.len()
    }

    /// Whether a provider is listed, available as far as known, and not switched off.
    pub fn serves(&self, tag: u64) -> bool {
        self.known.contains(&tag) && !self.reconnecting.contains(&tag) && !self.disabled.contains(&tag)
    }

    /// The providers served, in the registry's order.
    pub fn serving(&self) -> Vec<u64> {
        self.in_order(|tag| self.serves(tag))
    }

    /// The providers waiting for a check, in the registry's order.
    pub fn reconnecting(&self) -> Vec<u64> {
        self.in_order(|tag| self.reconnecting.contains(&tag))
    }

    /// The providers switched off, in the registry's order.
    pub fn disabled(&self) -> Vec<u64> {
        self.in_order(|tag| self.disabled.contains(&tag))
    }

    fn in_order(&self, keep: impl Fn(u64) -> bool) -> Vec<u64> {
        self.listed.iter().copied().filter(|tag| keep(*tag)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::random::Stream;

    #[test]
    fn a_check_looks_at_a_bounded_number_of_different_providers() {
        let mut health = Health::new();
        let tags: Vec<u64> = (1..=25).collect();
        health.set_invokers(&tags);
        assert!(tags.iter().all(|tag| health.invalidate(*tag)));
        let mut asked = Vec::new();
        let left = health.check(&mut Stream::seeded(1), |tag| {
            asked.push(tag);
            tag % 2 == 0
        });
        let back = asked.iter().filter(|tag| **tag % 2 == 0).count();
        assert_eq!((asked.len(), left, health.serving().len()), (CHECKS_AT_ONCE, 25 - back, back));
        asked.sort_unstable();
        asked.dedup();
        assert_eq!(asked.len(), CHECKS_AT_ONCE);
    }

    #[test]
    fn only_known_and_served_providers_change_state() {
        let mut health = Health::new();
        health.set_invokers(&[1, 2]);
        assert!(!health.invalidate(9) && !health.disable(9) && !health.recover(1));
        assert!(health.disable(1) && !health.disable(1) && !health.invalidate(1));
        assert!(health.invalidate(2) && !health.invalidate(2));
        assert!(health.serving().is_empty());
        // Found available again, but switched off all the same.
        assert!(health.disable(2));
        assert_eq!(health.check(&mut Stream::seeded(1), |_| true), 0);
        assert_eq!((health.serving(), health.disabled()), (vec![], vec![1, 2]));
        health.set_invokers(&[2, 3]);
        assert_eq!((health.serving(), health.disabled()), (vec![3], vec![2]));
    }
}
