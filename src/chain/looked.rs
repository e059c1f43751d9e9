//! What rules look at of a call: the key under which a session keeps its answer.

use super::calls::Facts;
use super::hash;
use super::invocation::Invocation;
use super::plan::Plan;

/// Longer keys are not kept at all.
pub(super) const LONGEST: usize = 1024;
/// Attachments rules may look at for a call's to be gone through once.
const FEW_ATTACHMENTS: usize = 8;

/// What rules look at of a call.
pub(super) struct Looked<'c> {
    /// Nothing but the method name.
    pub(super) is_bare: bool,
    /// The attachments, by the rules' numbers, when those are few.
    given: [Option<&'c [u8]>; FEW_ATTACHMENTS],
}

impl<'c> Looked<'c> {
    #[inline(always)]
    pub(super) fn at(plan: &Plan, call: &Invocation<'c>) -> Looked<'c> {
        let reads = plan.calls.reads();
        let mut given = [None; FEW_ATTACHMENTS];
        let mut wanted = false;
        // Once over those of the call: of a repeated key the last counts.
        for (name, value) in call.attachments {
            if let Some(at) = reads.attachment(name) {
                wanted = true;
                if let Some(place) = given.get_mut(at) {
                    *place = Some(*value);
                }
            }
        }
        let is_bare = !wanted
            && (call.arguments.is_empty() || reads.arguments.is_empty())
            && (!reads.raw_method || call.method.first() != Some(&b'$'));
        Looked { is_bare, given }
    }

    /// Writes the key of the call.
    pub(super) fn write_key(&self, plan: &Plan, call: &Invocation<'_>, key: &mut Vec<u8>) {
        key.clear();
        self.pieces(plan, call, |head, value| {
            key.extend_from_slice(&head.to_le_bytes());
            key.extend_from_slice(value);
            true
        });
    }

    /// True when `key` is what [`write_key`](Self::write_key) would write.
    #[inline(always)]
    pub(super) fn is_key(&self, key: &[u8], plan: &Plan, call: &Invocation<'_>) -> bool {
        let mut rest = key;
        let all = self.pieces(plan, call, |head, value| {
            let Some((own, tail)) = rest.split_first_chunk::<8>() else { return false };
            let Some((text, tail)) = tail.split_at_checked(value.len()) else { return false };
            rest = tail;
            u64::from_le_bytes(*own) == head && hash::same(text, value)
        });
        all && rest.is_empty()
    }

    /// Shows it piece by piece, each with a number that tells what it is and how long, so that no two calls show the
    /// same; ends when `put` says false, and says it too.
    #[inline(always)]
    pub(super) fn pieces(
        &self,
        plan: &Plan,
        call: &Invocation<'_>,
        mut put: impl FnMut(u64, &[u8]) -> bool,
    ) -> bool {
        let reads = plan.calls.reads();
        let mut put = |mark: u16, value: &[u8]| put(u64::from(mark) | (value.len() as u64) << 16, value);
        if reads.method && !put(0, call.effective_method()) {
            return false;
        }
        if reads.raw_method && !put(1, call.method) {
            return false;
        }
        if reads.attachments.len() <= FEW_ATTACHMENTS {
            for (at, value) in self.given.iter().enumerate().take(reads.attachments.len()) {
                if let Some(value) = value
                    && !put(2 + at as u16 * 2, value)
                {
                    return false;
                }
            }
        } else {
            for (at, name) in reads.attachments.iter().enumerate() {
                if let Some(value) = call.attachment(name)
                    && !put(2 + at as u16 * 2, value)
                {
                    return false;
                }
            }
        }
        reads.arguments.iter().all(|index| match call.arguments.get(*index as usize) {
            None => true,
            Some(None) => put(3, &index.to_le_bytes()),
            Some(Some(value)) => put(5, &index.to_le_bytes()) && put(7, value),
        })
    }
}

/// What the call before was to the rules, for calls whose results are not memoised: retries under another mask, and most
/// calls of most threads, are the same to them.
#[derive(Default)]
pub(super) struct Kept {
    key: Vec<u8>,
    facts: Facts,
    is_set: bool,
}

impl Kept {
    #[inline]
    pub(super) fn of<'a>(&'a mut self, plan: &'a Plan, call: &Invocation<'_>) -> &'a Facts {
        let looked = Looked::at(plan, call);
        if looked.is_bare
            && let Some(facts) = plan.bare_facts(call)
        {
            return facts;
        }
        if !self.is_set || !looked.is_key(&self.key, plan, call) {
            self.renew(&looked, plan, call);
        }
        &self.facts
    }

    /// The next call is looked at anew.
    pub(super) fn forget(&mut self) {
        self.is_set = false;
    }

    fn renew(&mut self, looked: &Looked<'_>, plan: &Plan, call: &Invocation<'_>) {
        looked.write_key(plan, call, &mut self.key);
        plan.facts(call, &mut self.facts);
        self.is_set = self.key.len() <= LONGEST;
        if !self.is_set {
            self.key = Vec::new();
        }
    }
}
