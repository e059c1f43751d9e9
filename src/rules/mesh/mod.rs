//! Mesh rules: `VirtualService` and `DestinationRule` as Dubbo 3.3 reads them, under `<application>.MESHAPPRULE`.
//!
//! A text is a stream of YAML documents. A `DestinationRule` names subsets of the application's providers by
//! labels; a `VirtualService` says which calls go to which subsets, with weights and fall-backs. Documents whose
//! `metadata.name` has a dot belong to extensions and are left alone.
//!
//! | file | subject |
//! |---|---|
//! | this one | the typed rules and how they are read |
//! | [`matchers`] | numbers, booleans, addresses, methods, attachments |
//! | [`route`] | which subset a call gets |
//! | [`router`] | the router of a chain, over the rules of all its providers' applications |

pub mod matchers;
pub mod route;
pub mod router;

use super::dialect::Dialect;
use super::header::Fields;
use super::report::Report;
use super::string_match::StringMatch;
use super::yaml::{self, Meaning, Node, Value};
use crate::chain::program;
use crate::chain::snapshot::Invokers;
use crate::error::{Error, Result};
use matchers::RequestMatch;
use std::any::Any;
use std::collections::BTreeMap;

/// What keys of mesh rules end with.
pub const SUFFIX: &str = ".MESHAPPRULE";

/// The rules of one application.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeshRules {
    /// In text order.
    pub destinations: Vec<DestinationRule>,
    /// In text order; the first that fits a service decides.
    pub services: Vec<VirtualService>,
    /// Documents per group: `standard`, or what stands behind the first dot of the name.
    pub groups: BTreeMap<String, usize>,
}

/// Names subsets of providers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DestinationRule {
    /// `metadata.name`.
    pub name: String,
    /// Parsed and not used, as upstream.
    pub host: Option<String>,
    /// In text order.
    pub subsets: Vec<Subset>,
}

/// Providers with all these labels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Subset {
    /// What routes call it.
    pub name: String,
    /// Parameters of the provider's URL; none: every provider of the application.
    pub labels: Vec<(String, String)>,
    pub(crate) offset: usize,
}

/// Says which calls go where.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VirtualService {
    /// `metadata.name`.
    pub name: String,
    /// `apiVersion`.
    pub api_version: Option<String>,
    /// Parsed and not used, as upstream.
    pub hosts: Vec<String>,
    /// `spec` is there; without it Java fails every call.
    pub has_spec: bool,
    /// In text order.
    pub dubbo: Vec<ServiceRoutes>,
}

/// The routes of some services.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServiceRoutes {
    /// Name of the entry.
    pub name: Option<String>,
    /// One of these fits the service's interface; none: every service.
    pub services: Vec<StringMatch>,
    /// The first that matches decides.
    pub details: Vec<RouteDetail>,
}

/// Calls, and where they go.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RouteDetail {
    /// Name of the entry.
    pub name: Option<String>,
    /// Empty: every call.
    pub matches: Vec<RequestMatch>,
    /// Drawn among.
    pub routes: Vec<WeightedRoute>,
}

/// One of several places.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WeightedRoute {
    /// Missing only where Java would fail the call.
    pub destination: Option<Destination>,
    /// `None`: not given, which counts as 1.
    pub weight: Option<i32>,
}

/// A subset, and what serves in its place while it has nobody.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Destination {
    /// Parsed and not used, as upstream.
    pub host: Option<String>,
    /// Name of a subset.
    pub subset: Option<String>,
    /// Parsed and not used, as upstream.
    pub port: Option<i32>,
    /// Used while the subset has no invoker of the list.
    pub fallback: Option<Box<Destination>>,
    pub(crate) offset: usize,
}

impl MeshRules {
    /// Reads a text. `None`: nothing usable; problems are in `report`, and after an error the answer is not to be
    /// used. Unknown fields and subsets are warnings.
    pub fn read(text: &str, dialect: Dialect, report: &mut Report<'_>) -> Option<MeshRules> {
        let mut rules = MeshRules::default();
        for document in yaml::read_all(text, report) {
            rules.document(&document, dialect, report);
        }
        if report.failed() {
            return None;
        }
        rules.warn_about_subsets(report);
        Some(rules)
    }

    /// Reads a text for use: the rules, or the first error with its place and the others as causes.
    pub fn parse(text: &str, dialect: Dialect) -> Result<MeshRules> {
        let mut report = Report::new(text);
        let rules = MeshRules::read(text, dialect, &mut report);
        match (rules, report.to_error()) {
            (Some(rules), None) => Ok(rules),
            (_, Some(error)) => Err(error),
            (None, None) => Ok(MeshRules::default()),
        }
    }

    /// Both kinds are there: the application is routed by mesh rules.
    pub fn is_complete(&self) -> bool {
        !self.destinations.is_empty() && !self.services.is_empty()
    }

    fn document(&mut self, node: &Node, dialect: Dialect, report: &mut Report<'_>) {
        let Value::Map(pairs) = &node.value else {
            report.warning(node.offset, format!("a document that is {} is left out", node.kind()));
            return;
        };
        let known: &[&[&str]] = &[&["apiVersion", "kind", "metadata", "spec"]];
        if !pairs.iter().any(|(key, _)| key.as_scalar() == Some("metadata")) {
            report.warning(node.offset, "a document without metadata is left out");
            return;
        }
        let Some(fields) = Fields::of(node, "a mesh rule", known, dialect, report) else { return };
        let Some(metadata) = fields.get("metadata") else { return };
        let Some(name) = entry(metadata, "name").and_then(Node::as_scalar) else {
            report.error(metadata.offset, "metadata needs a name");
            return;
        };
        let group = name.split_once('.').map_or("standard", |(_, group)| group);
        *self.groups.entry(group.to_owned()).or_default() += 1;
        if group != "standard" {
            report.hint(
                metadata.offset,
                format!("'{name}' belongs to the extension '{group}' and is not used here"),
            );
            return;
        }
        let api_version = fields.get("apiVersion").and_then(Node::as_scalar).map(str::to_owned);
        match fields.get("kind").and_then(Node::as_scalar) {
            Some("DestinationRule") => {
                let rule = destination_rule(name, fields.get("spec"), dialect, report);
                self.destinations.extend(rule);
            }
            Some("VirtualService") => {
                let service = virtual_service(name, api_version, fields.get("spec"), dialect, report);
                self.services.extend(service);
            }
            other => {
                let kind = other.unwrap_or("nothing");
                let place = fields.place("kind");
                report.warning(
                    place,
                    format!("kind '{kind}' is not used; VirtualService and DestinationRule are"),
                );
            }
        }
    }

    /// Subsets that routes name and no rule defines: such a route serves nobody.
    fn warn_about_subsets(&self, report: &mut Report<'_>) {
        let defined =
            |name: &str| self.destinations.iter().flat_map(|rule| &rule.subsets).any(|s| s.name == name);
        let details =
            self.services.iter().flat_map(|service| &service.dubbo).flat_map(|routes| &routes.details);
        for route in details.flat_map(|detail| &detail.routes) {
            let mut next = route.destination.as_ref();
            let mut seen: Vec<&str> = Vec::new();
            while let Some(destination) = next {
                match destination.subset.as_deref() {
                    Some(name) if !defined(name) && !self.destinations.is_empty() => {
                        report.warning(destination.offset, format!("unknown subset '{name}'"));
                    }
                    Some(name) if seen.contains(&name) => {
                        report
                            .warning(destination.offset, format!("the fall-back returns to subset '{name}'"));
                    }
                    Some(name) => seen.push(name),
                    None => report.warning(destination.offset, "a destination without subset serves nobody"),
                }
                next = destination.fallback.as_deref();
            }
        }
    }
}

impl program::Rule for MeshRules {
    /// Mesh rules are no program: their router reads them.
    fn lower(&self, _: &program::Lowering<'_>) -> Result<program::Program> {
        Ok(program::Program::new(Vec::new()))
    }

    fn in_force(&self) -> bool {
        self.is_complete()
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

/// An entry of a mapping.
fn entry<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    match &node.value {
        Value::Map(pairs) => {
            pairs.iter().find(|(key, _)| key.as_scalar() == Some(name)).map(|(_, value)| value)
        }
        _ => None,
    }
}

/// The items of a list; anything else is an error.
fn items<'n>(node: Option<&'n Node>, what: &str, report: &mut Report<'_>) -> &'n [Node] {
    match node.map(|node| (&node.value, node)) {
        None | Some((Value::Null, _)) => &[],
        Some((Value::List(items), _)) => items,
        Some((_, node)) => {
            report.error(node.offset, format!("'{what}' must be a list; found {}", node.kind()));
            &[]
        }
    }
}

/// A mapping of words to words.
fn labels(node: Option<&Node>, what: &str, report: &mut Report<'_>) -> Vec<(String, String)> {
    let Some(node) = node else { return Vec::new() };
    let Value::Map(pairs) = &node.value else {
        report.error(node.offset, format!("'{what}' must be a mapping; found {}", node.kind()));
        return Vec::new();
    };
    let mut list = Vec::new();
    for (key, value) in pairs {
        match (key.as_scalar(), value.as_scalar()) {
            (Some(key), Some(value)) => list.push((key.to_owned(), value.to_owned())),
            _ => report.error(value.offset, format!("a label must be text; found {}", value.kind())),
        }
    }
    list
}

fn destination_rule(
    name: &str,
    spec: Option<&Node>,
    dialect: Dialect,
    report: &mut Report<'_>,
) -> Option<DestinationRule> {
    let mut rule = DestinationRule { name: name.to_owned(), ..DestinationRule::default() };
    let Some(spec) = spec else { return Some(rule) };
    let known: &[&[&str]] = &[&["host", "subsets", "trafficPolicy"]];
    let fields = Fields::of(spec, "the spec of a DestinationRule", known, dialect, report)?;
    rule.host = fields.get("host").and_then(Node::as_scalar).map(str::to_owned);
    for node in items(fields.get("subsets"), "subsets", report) {
        let known: &[&[&str]] = &[&["name", "labels"]];
        let Some(fields) = Fields::of(node, "a subset", known, dialect, report) else { continue };
        let Some(name) = fields.get("name").and_then(Node::as_scalar) else {
            report.error(node.offset, "a subset needs a name");
            continue;
        };
        if rule.subsets.iter().any(|subset| subset.name == name) {
            report.warning(node.offset, format!("subset '{name}' is there twice; both are in it"));
        }
        let labels = labels(fields.get("labels"), "labels", report);
        rule.subsets.push(Subset { name: name.to_owned(), labels, offset: node.offset });
    }
    Some(rule)
}

fn virtual_service(
    name: &str,
    api_version: Option<String>,
    spec: Option<&Node>,
    dialect: Dialect,
    report: &mut Report<'_>,
) -> Option<VirtualService> {
    let mut service = VirtualService { name: name.to_owned(), api_version, ..VirtualService::default() };
    let Some(spec) = spec else {
        report.warning(0, format!("VirtualService '{name}' has no spec"));
        return Some(service);
    };
    service.has_spec = true;
    let known: &[&[&str]] = &[&["hosts", "dubbo"]];
    let fields = Fields::of(spec, "the spec of a VirtualService", known, dialect, report)?;
    let hosts = items(fields.get("hosts"), "hosts", report);
    service.hosts = hosts.iter().filter_map(Node::as_scalar).map(str::to_owned).collect();
    for node in items(fields.get("dubbo"), "dubbo", report) {
        service.dubbo.extend(service_routes(node, dialect, report));
    }
    Some(service)
}

fn service_routes(node: &Node, dialect: Dialect, report: &mut Report<'_>) -> Option<ServiceRoutes> {
    let known: &[&[&str]] = &[&["name", "services", "routedetail"]];
    let fields = Fields::of(node, "an entry of 'dubbo'", known, dialect, report)?;
    let name = fields.get("name").and_then(Node::as_scalar).map(str::to_owned);
    let services = items(fields.get("services"), "services", report);
    let services = services.iter().filter_map(|node| StringMatch::read(node, dialect, report)).collect();
    let mut details = Vec::new();
    for node in items(fields.get("routedetail"), "routedetail", report) {
        details.extend(route_detail(node, dialect, report));
    }
    Some(ServiceRoutes { name, services, details })
}

fn route_detail(node: &Node, dialect: Dialect, report: &mut Report<'_>) -> Option<RouteDetail> {
    let known: &[&[&str]] = &[&["name", "match", "route"]];
    let fields = Fields::of(node, "an entry of 'routedetail'", known, dialect, report)?;
    let name = fields.get("name").and_then(Node::as_scalar).map(str::to_owned);
    let matches = items(fields.get("match"), "match", report);
    let matches = matches.iter().filter_map(|node| RequestMatch::read(node, dialect, report)).collect();
    let mut routes = Vec::new();
    for node in items(fields.get("route"), "route", report) {
        let known: &[&[&str]] = &[&["destination", "weight"]];
        let Some(fields) = Fields::of(node, "an entry of 'route'", known, dialect, report) else { continue };
        let weight = weight(&fields, report);
        let destination = fields.get("destination").and_then(|node| destination(node, dialect, report));
        if destination.is_none() {
            report.warning(node.offset, "a route without destination serves nobody");
        }
        routes.push(WeightedRoute { destination, weight });
    }
    if routes.is_empty() {
        report.warning(node.offset, "a route detail without 'route' serves nobody");
    }
    Some(RouteDetail { name, matches, routes })
}

fn weight(fields: &Fields<'_>, report: &mut Report<'_>) -> Option<i32> {
    let node = fields.get("weight")?;
    match node.value {
        Value::Scalar(_, Meaning::Integer(weight)) => {
            if weight < 0 {
                report.warning(node.offset, "a negative weight counts as 1");
            }
            i32::try_from(weight).ok().or_else(|| {
                report.error(node.offset, "'weight' is out of range");
                None
            })
        }
        _ => {
            report.error(node.offset, format!("'weight' must be a whole number; found {}", node.kind()));
            None
        }
    }
}

/// Fall-backs nest; the depth of the YAML text bounds them.
fn destination(node: &Node, dialect: Dialect, report: &mut Report<'_>) -> Option<Destination> {
    let known: &[&[&str]] = &[&["host", "subset", "port", "fallback"]];
    let fields = Fields::of(node, "a destination", known, dialect, report)?;
    let fallback = fields.get("fallback").and_then(|node| {
        if let Some(inner) = entry(node, "destination") {
            return destination(inner, dialect, report).map(Box::new);
        }
        // The form the documentation shows; Java reads nothing out of it.
        if dialect.table().mesh_lenient {
            return destination(node, dialect, report).map(Box::new);
        }
        report.warning(node.offset, "a fallback without 'destination' in it is ignored");
        None
    });
    Some(Destination {
        host: fields.get("host").and_then(Node::as_scalar).map(str::to_owned),
        subset: fields.get("subset").and_then(Node::as_scalar).map(str::to_owned),
        port: fields.number("port", report),
        fallback,
        offset: node.offset,
    })
}

/// Every problem of a text, in text order. With a provider list also subsets that none of them is in; providers of
/// other applications in the list count too.
pub fn lint(text: &str, dialect: Dialect, providers: Option<&Invokers>) -> Vec<super::report::Problem> {
    let mut report = Report::new(text);
    let rules = MeshRules::read(text, dialect, &mut report);
    let Some(rules) = rules else { return report.into_problems() };
    if !rules.is_complete() && !rules.groups.is_empty() {
        report.warning(0, "an application is routed only by a VirtualService and a DestinationRule together");
    }
    if let Some(providers) = providers.filter(|list| !list.is_empty()) {
        for subset in rules.destinations.iter().flat_map(|rule| &rule.subsets) {
            if !(0..providers.len()).any(|row| subset.holds(providers, row)) {
                let message = format!("no present provider is in subset '{}'", subset.name);
                report.warning(subset.offset, message);
            }
        }
    }
    report.into_problems()
}

impl Subset {
    /// Whether a provider has all the labels.
    pub(crate) fn holds(&self, invokers: &Invokers, row: usize) -> bool {
        self.labels.iter().all(|(name, value)| {
            let column = program::Column::parameter(name.as_str());
            invokers.column(row, &column).as_deref() == Some(value)
        })
    }
}

/// The language of mesh rules for a store of rules.
#[derive(Clone, Copy, Debug, Default)]
pub struct MeshLanguage;

impl crate::chain::store::Language for MeshLanguage {
    fn suffix(&self) -> &str {
        SUFFIX
    }

    fn open(&self, dialect: u8) -> Box<dyn crate::chain::store::RuleState> {
        let dialect = Dialect::from_number(i32::from(dialect)).unwrap_or_default();
        Box::new(MeshState { dialect, active: None })
    }
}

/// One application's rules through their updates: the last good ones stay.
struct MeshState {
    dialect: Dialect,
    active: Option<std::sync::Arc<MeshRules>>,
}

impl crate::chain::store::RuleState for MeshState {
    fn set(&mut self, text: &str) -> Result<(), Error> {
        let rules = MeshRules::parse(text, self.dialect)?;
        if rules.groups.is_empty() {
            self.active = None;
        } else if rules.is_complete() {
            self.active = Some(std::sync::Arc::new(rules));
        } else if self.active.is_none() {
            // One kind alone does nothing, and as an update it leaves the old pair in force.
            self.active = None;
        }
        Ok(())
    }

    fn remove(&mut self) {
        self.active = None;
    }

    fn active(&self) -> Option<std::sync::Arc<dyn program::Rule>> {
        self.active.clone().map(|rules| rules as std::sync::Arc<dyn program::Rule>)
    }
}
