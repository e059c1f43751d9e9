//! Chains that follow a source, and the sources of an engine, which end with it.

use super::Engine;
use super::routing::RoutingChain;
use crate::chain::snapshot::Invokers;
use crate::chain::url::Url;
use crate::error::{Error, Result, Status};
use crate::rules::dialect::Dialect;
use crate::source::Source;
use crate::source::bind::{BindOptions, Binding, Owners, Refusal, Target, World};
use parking_lot::Mutex;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Sources that have threads to end.
#[derive(Default)]
pub(super) struct Sources(Mutex<Vec<Weak<dyn Source>>>);

impl Sources {
    /// Stops all of them, waiting up to `timeout` in all for their threads.
    pub(super) fn stop(&self, timeout: Duration) {
        let end = Instant::now().checked_add(timeout);
        let sources = self.0.lock().clone();
        // All are told before the first is waited for.
        for source in sources.iter().filter_map(Weak::upgrade) {
            source.stop(Duration::ZERO);
        }
        for source in sources.iter().filter_map(Weak::upgrade) {
            let left = end.map_or(timeout, |end| end.saturating_duration_since(Instant::now()));
            source.stop(left);
        }
    }
}

impl Engine {
    /// Has a source stopped when the engine shuts down.
    ///
    /// # Errors
    /// `E_SHUTDOWN` when that has begun; the source is stopped then.
    pub fn adopt_source(&self, source: &Arc<dyn Source>) -> Result<()> {
        {
            let mut sources = self.sources.0.lock();
            sources.retain(|one| one.strong_count() > 0);
            sources.push(Arc::downgrade(source));
        }
        // After the push: a shutdown that began in between has stopped it, or is seen here.
        self.check_open().map_err(|status| {
            source.stop(Duration::ZERO);
            status.into()
        })
    }
}

impl RoutingChain {
    /// Has a chain follow a source, its rules, and unless `rules_only` its providers. The chain lives as long as its
    /// binding.
    pub fn bind(self: &Arc<Self>, source: Arc<dyn Source>, options: BindOptions) -> Binding {
        Binding::new(source, Arc::new(Bound(Arc::clone(self))), options)
    }
}

struct Bound(Arc<RoutingChain>);

impl Target for Bound {
    fn consumer(&self) -> &Url {
        self.0.chain().consumer()
    }

    fn dialect(&self) -> Dialect {
        self.0.dialect()
    }

    fn keys_with(&self, invokers: &Invokers) -> Vec<Arc<str>> {
        self.0.chain().keys_with(invokers)
    }

    fn invokers(&self) -> Arc<Invokers> {
        self.0.chain().invokers()
    }

    fn apply(&self, world: World, binding: u64) -> Vec<Refusal> {
        let chain = self.0.chain();
        chain.together(|| {
            let mut refusals = Vec::new();
            let late = self.0.with_slots(|slots| {
                slots.newest_binding = slots.newest_binding.max(binding);
                slots.newest_binding != binding
            });
            if late {
                return refusals;
            }
            if let Some(urls) = world.routers {
                self.static_routers(&urls, binding, &mut refusals);
            }
            let rules = chain.rules();
            for (key, text) in world.rules {
                let Some(text) = text else {
                    if self.0.owners.release(&key, binding) {
                        rules.remove(&key);
                    }
                    continue;
                };
                self.0.owners.hold(&key, binding);
                // Another chain of this engine, bound to the same source, may have brought it already.
                if rules.text(&key).is_some_and(|old| old == text) {
                    continue;
                }
                if let Err(error) = rules.put(&key, &text) {
                    refusals.push(Refusal { key, error });
                }
            }
            if let Some(list) = world.invokers {
                self.0.with_slots(|slots| slots.given = Some((binding, Arc::downgrade(&list))));
                chain.set_invokers(list);
            }
            refusals
        })
    }

    fn withdraw(&self, binding: u64, keep_list: bool) {
        let chain = self.0.chain();
        chain.together(|| {
            for key in self.0.owners.release_all(binding) {
                chain.rules().remove(&key);
            }
            // A list of the host's own, or another binding's, stays.
            let given = self.0.with_slots(|slots| slots.given.take_if(|(giver, _)| *giver == binding));
            if let Some((_, list)) = given
                && !keep_list
                && core::ptr::eq(list.as_ptr(), Arc::as_ptr(&chain.invokers()))
            {
                chain.set_invokers(Invokers::none());
            }
            if self.0.with_slots(|slots| slots.giver) == binding {
                // An empty set of URLs cannot be refused.
                let _ = self.0.set_rule_urls([]);
            }
        });
    }

    fn owners(&self) -> Option<&Owners> {
        Some(&self.0.owners)
    }
}

impl Bound {
    /// Each URL that is usable becomes a router. Java 3.3 loads none of them.
    fn static_routers(&self, urls: &[Arc<str>], binding: u64, refusals: &mut Vec<Refusal>) {
        let dialect = self.dialect();
        if dialect == Dialect::Dubbo3 {
            return;
        }
        let mut rules = Vec::new();
        let mut seen: Vec<&Arc<str>> = Vec::new();
        for text in urls {
            if seen.contains(&text) {
                continue;
            }
            seen.push(text);
            // What a registry says comes from a network: it names no files of this machine.
            let made = if text.starts_with("file:") {
                let why = "a rule in a file is the host's to set, not a registry's";
                Err(Error::new(Status::E_UNSUPPORTED, why).subject("router"))
            } else {
                self.0.static_rule(text)
            };
            match made {
                Ok(rule) => rules.extend(rule),
                Err(error) => refusals.push(Refusal { key: Arc::clone(text), error }),
            }
        }
        if let Err(error) = self.0.replace_static(rules, binding) {
            refusals.push(Refusal { key: "routers".into(), error });
        }
    }
}
