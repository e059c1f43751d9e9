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
pub struct Routed<'c> {
    /// The rows, `None`: the list as it came.
    pub rows: Option<Vec<u32>>,
    /// Per application with rules, what decided.
    pub decisions: Vec<Decision<'c>>,
}

/// What decided for one application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision<'c> {
    /// The application.
    pub application: &'c str,
    /// The VirtualService and, counted from 1, its detail and the block of `match` that fitted (0: it has none);
    /// `None`: none applies to the call.
    pub matched: Option<Matched<'c>>,
    /// The subset drawn; `None`: no destination has anybody.
    pub drawn: Option<Drawn<'c>>,
}

/// Which part of a VirtualService applies to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matched<'c> {
    /// Name of the VirtualService.
    pub service: &'c str,
    /// Name of the detail.
    pub name: Option<&'c str>,
    /// Which detail, from 1.
    pub detail: usize,
    /// Which block of its `match`, from 1; 0: all of them, or it has none.
    pub block: usize,
}

/// What was drawn among a detail's destinations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn<'c> {
    /// The subset.
    pub subset: &'c str,
    /// The subset that the rule names there, where a fall-back serves in its place.
    pub instead_of: Option<&'c str>,
    /// The number drawn.
    pub number: u64,
    /// It is below this, the sum of the weights.
    pub total: u64,
}

impl Routed<'_> {
    /// What happened, in upstream's words.
    pub fn message(&self) -> String {
        if self.decisions.is_empty() {
            return "MeshRuleCache has not been built. Skip route.".to_owned();
        }
        if self.rows.is_none() {
            return "Empty protection after routed.".to_owned();
        }
        let of = |one: &Decision<'_>| {
            Some(format!("Match App: {} Subset: {} ", one.application, one.drawn?.subset))
        };
        self.decisions.iter().filter_map(of).collect()
    }

    /// What happened, for people: a sentence per application.
    pub fn sentences(&self) -> Vec<String> {
        self.decisions.iter().map(Decision::sentence).collect()
    }
}

impl Decision<'_> {
    fn sentence(&self) -> String {
        let application = self.application;
        let Some(Matched { service, name, detail, block }) = self.matched else {
            return format!("application {application}: no VirtualService applies to this call");
        };
        let name = name.map_or_else(String::new, |name| format!(" \"{name}\""));
        let block = if block > 0 { format!(" by its match {block}") } else { String::new() };
        let which =
            format!("application {application}: VirtualService {service}, detail {detail}{name}{block}");
        match self.drawn {
            None => format!("{which} applies, but no destination has an invoker"),
            Some(Drawn { subset, instead_of, number, total }) => {
                let instead = instead_of
                    .map_or_else(String::new, |first| format!(" as fall-back of {first}, which has nobody"));
                format!("{which} applies: drawn {number} of {total}, subset {subset}{instead}")
            }
        }
    }
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
                let holds = |row: &u32| subset.holds(invokers, *row as usize);
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
    ) -> Result<Routed<'_>, Fault> {
        let mut rows: Vec<u32> = Vec::new();
        let mut decisions = Vec::with_capacity(self.applications.len());
        for application in &self.applications {
            let found = application.detail(service, asked, dialect)?;
            let drawn = match found {
                Some((_, detail)) => application.pick(detail, usable, draw, dialect)?,
                None => None,
            };
            if let Some(set) = drawn.and_then(|drawn| application.subsets.get(drawn.subset)) {
                rows.extend(set.iter().copied().filter(|row| usable(*row as usize)));
            }
            let matched = found.map(|(matched, _)| matched);
            decisions.push(Decision { application: &application.name, matched, drawn });
        }
        rows.sort_unstable();
        rows.dedup();
        Ok(Routed { rows: Some(rows).filter(|rows| !rows.is_empty()), decisions })
    }
}

/// A subset with somebody in it, and whose fall-back it is.
#[derive(Clone, Copy)]
struct Place<'a> {
    subset: &'a str,
    instead_of: Option<&'a str>,
}

impl Application {
    /// The detail that decides. The first entry whose services fit is final, whether or not one of its details
    /// matches.
    fn detail(
        &self,
        service: &str,
        asked: &Asked<'_>,
        dialect: Dialect,
    ) -> Result<Option<(Matched<'_>, &RouteDetail)>, Fault> {
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
            for (at, detail) in routes.details.iter().enumerate() {
                let mut one = None;
                let mut all = true;
                for (at, block) in detail.matches.iter().enumerate() {
                    let holds = block.matches(asked)?;
                    one = one.or(holds.then_some(at + 1));
                    all &= holds;
                }
                let any = table.mesh_any_match;
                if detail.matches.is_empty() || if any { one.is_some() } else { all } {
                    let block = one.filter(|_| any).unwrap_or(0);
                    let (service, name) = (virtual_service.name.as_str(), detail.name.as_deref());
                    return Ok(Some((Matched { service, name, detail: at + 1, block }, detail)));
                }
            }
            return Ok(None);
        }
        Ok(None)
    }

    /// The subset drawn, if one of the destinations or their fall-backs has somebody.
    fn pick<'a>(
        &'a self,
        detail: &'a RouteDetail,
        usable: &dyn Fn(usize) -> bool,
        draw: &mut dyn FnMut(u64) -> u64,
        dialect: Dialect,
    ) -> Result<Option<Drawn<'a>>, Fault> {
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
        let places: Vec<(Option<Place<'_>>, u64)> = places.collect();
        let drawn = |place: Place<'a>, number, total| {
            let instead_of = place.instead_of;
            Some(Drawn { subset: place.subset, instead_of, number, total })
        };
        if table.draw == Draw::Exact {
            // Only places with somebody are drawn among, by their weights; if all of those are 0, alike.
            let mut good: Vec<(Place<'_>, u64)> =
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
            let number = draw(total);
            let mut left = number;
            for (place, weight) in good {
                match left.checked_sub(weight) {
                    Some(rest) => left = rest,
                    None => return Ok(drawn(place, number, total)),
                }
            }
            return Ok(None);
        }
        // As upstream: a drawn number of 0 after subtraction counts as inside, and a place without anybody is
        // passed over with its weight spent.
        let total: u64 = places.iter().map(|(_, weight)| weight).sum();
        let number = draw(total.max(1));
        let mut left = i128::from(number);
        for (place, weight) in &places {
            left -= i128::from(*weight);
            if let (true, Some(place)) = (left <= 0, place) {
                return Ok(drawn(*place, number, total));
            }
        }
        Ok(places.iter().find_map(|(place, _)| *place).and_then(|place| drawn(place, number, total)))
    }

    /// The first subset of a chain of fall-backs that has a usable invoker. A name met twice ends the chain.
    fn resolve<'a>(&'a self, first: &'a Destination, usable: &dyn Fn(usize) -> bool) -> Option<Place<'a>> {
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
                    let instead_of = seen.first().copied().filter(|first| *first != name);
                    return Some(Place { subset: name, instead_of });
                }
            }
            next = destination.fallback.as_deref();
        }
        None
    }
}
