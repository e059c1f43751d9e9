//! Answers of pure scripts, kept by what decides them: the rows that came in and what scripts have looked at of calls.
//!
//! The key has everything that any run so far has looked at. A script that depends on nothing else meets the same
//! values in the same order as the run whose answer is kept, so it would give the same answer. When a run looks at
//! something new, what is kept under the old key goes.

use crate::chain::bits::Rows;
use crate::chain::invocation::Invocation;
use parking_lot::RwLock;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// What runs of a script have looked at of calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reads {
    pub(super) method: bool,
    pub(super) types: bool,
    pub(super) arguments: bool,
    /// All of them.
    pub(super) attachments: bool,
    by_name: BTreeSet<String>,
}

/// Attachments noted by name; a script that looks at more looks at all.
const NAMES: usize = 64;

impl Reads {
    /// This attachment is looked at.
    pub(super) fn attachment(&mut self, name: &str) {
        if !self.attachments && !self.by_name.contains(name) {
            self.by_name.insert(name.to_owned());
            if self.by_name.len() > NAMES {
                self.attachments = true;
                self.by_name.clear();
            }
        }
    }

    /// Takes in what another run looked at; true when something is new.
    fn join(&mut self, other: &Reads) -> bool {
        let before = self.clone();
        self.method |= other.method;
        self.types |= other.types;
        self.arguments |= other.arguments;
        self.attachments |= other.attachments;
        other.by_name.iter().for_each(|name| self.attachment(name));
        if self.attachments {
            self.by_name.clear();
        }
        *self != before
    }

    /// Everything that decides an answer, lengths first, so that no two calls write the same.
    fn key(&self, rows: Rows<'_>, call: &Invocation<'_>) -> Vec<u8> {
        let mut key = Vec::with_capacity(rows.len() * 4 + 64);
        key.extend_from_slice(&(rows.len() as u64).to_le_bytes());
        rows.iter().for_each(|row| key.extend_from_slice(&(row as u32).to_le_bytes()));
        let mut put = |value: Option<&[u8]>| match value {
            None => key.push(0),
            Some(value) => {
                key.push(1);
                key.extend_from_slice(&(value.len() as u64).to_le_bytes());
                key.extend_from_slice(value);
            }
        };
        if self.method {
            put(Some(call.effective_method()));
        }
        if self.types {
            put(Some(&(call.types.len() as u64).to_le_bytes()));
            call.types.iter().for_each(|name| put(Some(name)));
        }
        if self.arguments {
            put(Some(&(call.arguments.len() as u64).to_le_bytes()));
            call.arguments.iter().for_each(|value| put(*value));
        }
        if self.attachments {
            put(Some(&(call.attachments.len() as u64).to_le_bytes()));
            for (name, value) in call.attachments {
                put(Some(name));
                put(Some(value));
            }
        }
        self.by_name.iter().for_each(|name| put(call.attachment(name.as_bytes())));
        key
    }
}

/// Bytes that kept answers may take; all of them go when they would take more.
const MOST: usize = 4 << 20;

/// The answers of one script.
#[derive(Debug, Default)]
pub(super) struct KeptAnswers(RwLock<State>);

#[derive(Debug, Default)]
struct State {
    /// The list the rows are of.
    invokers: u64,
    reads: Reads,
    answers: HashMap<Vec<u8>, Arc<[u32]>>,
    bytes: usize,
}

impl KeptAnswers {
    /// The answer to such a call over rows of a list, if one is kept.
    pub(super) fn find(&self, invokers: u64, rows: Rows<'_>, call: &Invocation<'_>) -> Option<Arc<[u32]>> {
        let state = self.0.read();
        if state.invokers != invokers || state.answers.is_empty() {
            return None;
        }
        state.answers.get(&state.reads.key(rows, call)).cloned()
    }

    /// Keeps an answer, and what it took.
    pub(super) fn keep(
        &self,
        invokers: u64,
        rows: Rows<'_>,
        call: &Invocation<'_>,
        reads: &Reads,
        answer: &[u32],
    ) {
        let mut state = self.0.write();
        let wider = state.reads.join(reads);
        if wider || state.invokers != invokers {
            state.forget();
            state.invokers = invokers;
        }
        let key = state.reads.key(rows, call);
        let size = key.len() + answer.len() * 4 + 64;
        if state.bytes + size > MOST {
            state.forget();
        }
        if size <= MOST && state.answers.insert(key, answer.into()).is_none() {
            state.bytes += size;
        }
    }
}

impl State {
    fn forget(&mut self) {
        self.answers.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call<'a>(method: &'a [u8], attachments: &'a [(&'a [u8], &'a [u8])]) -> Invocation<'a> {
        Invocation { attachments, ..Invocation::new(method) }
    }

    #[test]
    fn an_answer_is_given_again_only_to_calls_that_do_not_differ_in_what_was_looked_at() {
        let kept = KeptAnswers::default();
        let mut reads = Reads { method: true, ..Reads::default() };
        let rows = Rows::All(3);
        kept.keep(1, rows, &call(b"a", &[]), &reads, &[1]);
        let found = |list, rows, call: &Invocation<'_>| kept.find(list, rows, call).map(|rows| rows.to_vec());
        assert_eq!(found(1, rows, &call(b"a", &[(b"x", b"1")])), Some(vec![1]), "x is not looked at");
        assert_eq!(found(1, rows, &call(b"b", &[])), None);
        assert_eq!(found(1, Rows::List(&[0, 1]), &call(b"a", &[])), None, "other rows");
        assert_eq!(found(2, rows, &call(b"a", &[])), None, "another list");
        // A run that looks at more makes what was kept worthless: it was filed without that.
        reads.attachment("x");
        kept.keep(1, rows, &call(b"a", &[(b"x", b"1")]), &reads, &[2]);
        assert_eq!(found(1, rows, &call(b"a", &[])), None);
        assert_eq!(found(1, rows, &call(b"a", &[(b"x", b"1"), (b"y", b"2")])), Some(vec![2]));
        assert_eq!(found(1, rows, &call(b"a", &[(b"x", b"2")])), None);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let kept = KeptAnswers::default();
        let reads = Reads { method: true, ..Reads::default() };
        for number in 0..200_000_u32 {
            kept.keep(1, Rows::All(1), &call(&number.to_le_bytes(), &[]), &reads, &[0]);
            let state = kept.0.read();
            assert!(state.bytes <= MOST && state.answers.len() * 64 <= MOST);
        }
        let mut many = Reads::default();
        (0..1000).for_each(|number| many.attachment(&number.to_string()));
        assert!(many.attachments && many.by_name.is_empty());
    }
}
