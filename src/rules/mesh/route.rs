//! Which subset a call gets: the plain meaning of the rules of one or more applications over one list.

use super::matchers::{Asked, Fault};
use super::{Destination, MeshRules, RouteDetail};
use crate::chain::program::Column;
use crate::chain::snapshot::Invokers;
use crate::rules::dialect::{Dialect, Draw};
use std::collections::HashMap;
use std::sync::Arc;

/// The rules of every application of one invoker list, with their subsets as rows of it.
#[derive(Debug, Default)]
pub struct Compiled {
    applications: Vec<Application>,
}

#[derive(Debug)]
struct Application {
    name: String,
    rules: Arc<MeshRules>,
    /// Rows in ascending order.
    subsets: HashMap<String, Vec<u32>>,
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routed {
    /// The rows, `None`: the list as it came.
    pub rows: Option<Vec<u32>>,
    /// What happened, in upstream's words.
    pub message: String,
}

impl Compiled {
    /// Puts rules and list together. `rules` answers for an application's name.
    pub fn new(invokers: &Invokers, rules: impl Fn(&str) -> Option<Arc<MeshRules>>) -> Compiled {
        let mut applications: Vec<Application> = Vec::new();
        let mut missing: Vec<String> = Vec::new();
        let mut members: HashMap<usize, Vec<u32>> = HashMap::new();
        for row in 0..invokers.len() {
            let Some(name) = invokers.column(row, &Column::Application) else { continue };
            if name.is_empty() || name == "unknown" || missing.iter().any(|known| *known == *name) {
                continue;
            }
            let known = applications.iter().position(|application| application.name == *name);
            let index = match known {
                Some(index) => index,
                None => match rules(&name) {
                    Some(rules) => {
                        applications.push(Application {
                            name: name.into_owned(),
                            rules,
                            subsets: HashMap::new(),
                        });
                        applications.len() - 1
                    }
                    None => {
                        missing.push(name.into_owned());
                        continue;
                    }
                },
            };
            if let Ok(row) = u32::try_from(row) {
                members.entry(index).or_default().push(row);
            }
        }
        for (index, application) in applications.iter_mut().enumerate() {
            let rows = members.remove(&index).unwrap_or_default();
            for subset in application.rules.destinations.iter().flat_map(|rule| &rule.subsets) {
                let holds = |row: &u32| {
                    subset.labels.iter().all(|(name, value)| {
                        let column = Column::parameter(name.as_str());
                        invokers.column(*row as usize, &column).as_deref() == Some(value)
                    })
                };
                // Two subsets of one name: whoever is in either is in it.
                let list = application.subsets.entry(subset.name.clone()).or_default();
                list.extend(rows.iter().copied().filter(holds));
                list.sort_unstable();
                list.dedup();
            }
        }
        Compiled { applications }
    }

    /// True when no application of the list has rules.
    pub fn is_empty(&self) -> bool {
        self.applications.is_empty()
    }

    /// The number of invokers in a subset; `None` when there is no such subset.
    pub fn subset_len(&self, application: &str, subset: &str) -> Option<usize> {
        let found = self.applications.iter().find(|known| known.name == application)?;
        Some(found.subsets.get(subset)?.len())
    }

    /// True when a row is in a subset.
    pub fn is_in_any(&self, row: usize) -> bool {
        let mut sets = self.applications.iter().flat_map(|application| application.subsets.values());
        sets.any(|set| set.iter().any(|member| *member as usize == row))
    }

    /// Routes one call. `usable` says which rows came in; `draw` gives a number below its argument.
    pub fn route(
        &self,
        service: &str,
        asked: &Asked<'_>,
        usable: &dyn Fn(usize) -> bool,
        draw: &mut dyn FnMut(u64) -> u64,
        dialect: Dialect,
    ) -> Result<Routed, Fault> {
        if self.applications.is_empty() {
            let message = "MeshRuleCache has not been built. Skip route.".to_owned();
            return Ok(Routed { rows: None, message });
        }
        let mut rows: Vec<u32> = Vec::new();
        let mut message = String::new();
        for application in &self.applications {
            let Some(detail) = application.detail(service, asked, dialect)? else { continue };
            if let Some(name) = application.pick(detail, usable, draw, dialect)? {
                message.push_str(&format!("Match App: {} Subset: {name} ", application.name));
                if let Some(set) = application.subsets.get(name) {
                    rows.extend(set.iter().copied().filter(|row| usable(*row as usize)));
                }
            }
        }
        if rows.is_empty() {
            return Ok(Routed { rows: None, message: "Empty protection after routed.".to_owned() });
        }
        rows.sort_unstable();
        rows.dedup();
        Ok(Routed { rows: Some(rows), message })
    }
}

impl Application {
    /// The detail that decides. The first entry whose services fit is final, whether or not one of its details
    /// matches.
    fn detail(
        &self,
        service: &str,
        asked: &Asked<'_>,
        dialect: Dialect,
    ) -> Result<Option<&RouteDetail>, Fault> {
        let table = dialect.table();
        for virtual_service in &self.rules.services {
            if !virtual_service.has_spec {
                if table.mesh_faults {
                    return Err(Fault("NullPointerException"));
                }
                continue;
            }
            let fits = |routes: &&super::ServiceRoutes| {
                routes.services.is_empty() || routes.services.iter().any(|one| one.matches(Some(service)))
            };
            let Some(routes) = virtual_service.dubbo.iter().find(fits) else { continue };
            for detail in &routes.details {
                let mut one = false;
                let mut all = true;
                for block in &detail.matches {
                    let holds = block.matches(asked)?;
                    one |= holds;
                    all &= holds;
                }
                let any = table.mesh_any_match;
                if detail.matches.is_empty() || if any { one } else { all } {
                    return Ok(Some(detail));
                }
            }
            return Ok(None);
        }
        Ok(None)
    }

    /// The name of the subset drawn, if one of the destinations or their fall-backs has somebody.
    fn pick<'a>(
        &'a self,
        detail: &'a RouteDetail,
        usable: &dyn Fn(usize) -> bool,
        draw: &mut dyn FnMut(u64) -> u64,
        dialect: Dialect,
    ) -> Result<Option<&'a str>, Fault> {
        let table = dialect.table();
        if table.mesh_faults {
            if detail.routes.is_empty() {
                return Err(Fault("IllegalArgumentException"));
            }
            if detail.routes.iter().any(|route| route.destination.is_none()) {
                return Err(Fault("NullPointerException"));
            }
        }
        let weight = |route: &super::WeightedRoute| match route.weight {
            Some(0) if table.mesh_zero_weight => 0,
            weight => u64::try_from(weight.unwrap_or(1).max(1)).unwrap_or(1),
        };
        let places = detail.routes.iter().map(|route| {
            let subset = route.destination.as_ref().and_then(|destination| self.resolve(destination, usable));
            (subset, weight(route))
        });
        let places: Vec<(Option<&str>, u64)> = places.collect();
        if table.draw == Draw::Exact {
            // Only places with somebody are drawn among, by their weights; if all of those are 0, alike.
            let mut good: Vec<(&str, u64)> =
                places.iter().filter_map(|(name, w)| Some(((*name)?, *w))).collect();
            if good.iter().all(|(_, weight)| *weight == 0) {
                for (_, weight) in &mut good {
                    *weight = 1;
                }
            }
            let total: u64 = good.iter().map(|(_, weight)| weight).sum();
            if total == 0 {
                return Ok(None);
            }
            let mut left = draw(total);
            for (name, weight) in good {
                match left.checked_sub(weight) {
                    Some(rest) => left = rest,
                    None => return Ok(Some(name)),
                }
            }
            return Ok(None);
        }
        // As upstream: a drawn number of 0 after subtraction counts as inside, and a place without anybody is
        // passed over with its weight spent.
        let total: u64 = places.iter().map(|(_, weight)| weight).sum();
        let mut left = i128::from(draw(total.max(1)));
        for (name, weight) in &places {
            left -= i128::from(*weight);
            if left <= 0 && name.is_some() {
                return Ok(*name);
            }
        }
        Ok(places.iter().find_map(|(name, _)| *name))
    }

    /// The first subset of a chain of fall-backs that has a usable invoker. A name met twice ends the chain.
    fn resolve<'a>(&'a self, first: &'a Destination, usable: &dyn Fn(usize) -> bool) -> Option<&'a str> {
        let mut seen: Vec<&str> = Vec::new();
        let mut next = Some(first);
        while let Some(destination) = next {
            if let Some(name) = destination.subset.as_deref() {
                if seen.contains(&name) {
                    return None;
                }
                seen.push(name);
                let set = self.subsets.get(name);
                if set.is_some_and(|set| set.iter().any(|row| usable(*row as usize))) {
                    return Some(name);
                }
            }
            next = destination.fallback.as_deref();
        }
        None
    }
}
