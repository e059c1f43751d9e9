//! From the board to worlds: what has to be followed, what is known, what has changed since the last world.

use super::target::{Target, World};
use super::{BindOptions, Discovery, EmptyProtection};
use crate::chain::snapshot::Invokers;
use crate::chain::url::Url;
use crate::error::{Error, Source, Status};
use crate::rules::RuleKind;
use crate::rules::dialect::{Dialect, application_rule_key, service_rule_key};
use crate::source::board::{Board, Watcher};
use crate::source::configurator::Configurators;
use crate::source::instances::{Instance, Service, applications, services, urls};
use crate::source::list::List;
use crate::source::providers::category;
use crate::source::topic::{Topic, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Weak};

/// What comes next.
pub(super) enum Step {
    /// These must be followed first.
    Follow(Vec<Topic>),
    /// Something followed is not known yet.
    Wait,
    /// Nothing has changed.
    Nothing,
    /// This is to be put in force.
    World(World),
}

/// Refusals kept until they are told.
const MOST_REFUSALS: usize = 64;

pub(super) struct Feed {
    pub(super) watcher: Option<Weak<dyn Watcher>>,
    consumer: Arc<Url>,
    discovery: Discovery,
    protection: EmptyProtection,
    rules_only: bool,
    list: List,
    /// What the list was made of last.
    entries: Vec<Value>,
    overrides: [Overrides; 3],
    routers: Option<Value>,
    /// Texts by key as the target has them.
    given: BTreeMap<Arc<str>, Option<Arc<str>>>,
    /// Topics of the world in force, or in the making.
    wanted: BTreeSet<Topic>,
    instances: HashMap<Arc<str>, (Option<Arc<Instance>>, u64)>,
    metadata: HashMap<Arc<str>, Arc<[Service]>>,
    round: u64,
    /// The list as the target has it.
    applied: Option<Arc<Invokers>>,
    kept: bool,
    was_kept: bool,
    refusals: Vec<Error>,
    complaints: HashMap<Topic, Error>,
    first: bool,
}

#[derive(Default)]
struct Overrides {
    value: Option<Value>,
    list: Configurators,
}

impl Feed {
    pub(super) fn new(consumer: Arc<Url>, dialect: Dialect, options: &BindOptions) -> Feed {
        Feed {
            watcher: None,
            list: List::new(Arc::clone(&consumer), dialect),
            consumer,
            discovery: options.discovery,
            protection: options.empty_protection,
            rules_only: options.rules_only,
            entries: Vec::new(),
            overrides: Default::default(),
            routers: None,
            given: BTreeMap::new(),
            wanted: BTreeSet::new(),
            instances: HashMap::new(),
            metadata: HashMap::new(),
            round: 0,
            applied: None,
            kept: false,
            was_kept: false,
            refusals: Vec::new(),
            complaints: HashMap::new(),
            first: true,
        }
    }

    pub(super) fn wanted(&self) -> &BTreeSet<Topic> {
        &self.wanted
    }

    pub(super) fn providers(&self) -> usize {
        self.applied.as_ref().map_or(0, |list| list.len())
    }

    pub(super) fn take_refusals(&mut self) -> Vec<Error> {
        std::mem::take(&mut self.refusals)
    }

    fn refuse(&mut self, error: Error) {
        if self.refusals.len() < MOST_REFUSALS {
            self.refusals.push(error);
        }
    }

    /// Looks at the board and says what comes next. Called again until it says `Wait` or `Nothing`.
    pub(super) fn step(&mut self, board: &Board, followed: &BTreeSet<Topic>, target: &dyn Target) -> Step {
        let mut look = Look { board, followed, missing: Vec::new(), unknown: false, topics: BTreeSet::new() };
        let mut world = World::default();
        let ready = if self.rules_only {
            let invokers = target.invokers();
            self.follow_rules(&mut look, target, &invokers, &mut world)
        } else {
            self.follow_service(&mut look)
                && self.follow_rules(&mut look, target, &Arc::clone(self.list.current()), &mut world)
        };
        // What the world in force needs is followed until another one is.
        self.wanted.extend(look.topics.iter().cloned());
        self.complain(board, &look.topics);
        if !look.missing.is_empty() {
            return Step::Follow(look.missing);
        }
        if look.unknown || !ready {
            return Step::Wait;
        }
        self.wanted = look.topics;
        if !self.rules_only {
            let current = self.list.current();
            if self.applied.as_ref().is_none_or(|applied| !Arc::ptr_eq(applied, current)) {
                world.invokers = Some(Arc::clone(current));
            }
            let routers = self.url_topic(Topic::Routers);
            let value = board.look(&routers).and_then(Result::ok).unwrap_or(Value::Absent);
            if self.routers.as_ref().is_none_or(|old| !old.same(&value)) {
                if self.routers.is_some() || !value.list().is_empty() {
                    world.routers = Some(value.list().to_vec());
                }
                self.routers = Some(value);
            }
        }
        world.kept = self.kept;
        let nothing = world.invokers.is_none()
            && world.routers.is_none()
            && world.rules.is_empty()
            && self.kept == self.was_kept;
        if nothing && !self.first {
            return Step::Nothing;
        }
        self.first = false;
        self.was_kept = self.kept;
        if let Some(list) = &world.invokers {
            self.applied = Some(Arc::clone(list));
        }
        for (key, text) in &world.rules {
            self.given.insert(Arc::clone(key), text.clone());
        }
        Step::World(world)
    }

    fn url_topic(&self, make: impl Fn(Arc<str>) -> Topic) -> Topic {
        make(self.list.interface().into())
    }

    /// Tells each complaint of the board about a topic once.
    fn complain(&mut self, board: &Board, topics: &BTreeSet<Topic>) {
        self.complaints.retain(|topic, _| topics.contains(topic));
        for topic in topics {
            match board.complaint(topic) {
                Some(error) if self.complaints.get(topic) != Some(&error) => {
                    self.complaints.insert(topic.clone(), error.clone());
                    self.refuse(error);
                }
                Some(_) => {}
                None => {
                    self.complaints.remove(topic);
                }
            }
        }
    }

    /// The rules for a list; false when one of them is not known.
    fn follow_rules(
        &mut self,
        look: &mut Look<'_>,
        target: &dyn Target,
        invokers: &Invokers,
        world: &mut World,
    ) -> bool {
        let keys = target.keys_with(invokers);
        for key in &keys {
            let Some(value) = look.at(Topic::rule(Arc::clone(key))) else { continue };
            let text = match value {
                // It cannot be read: what is in force stays.
                None => continue,
                Some(value) => value.text().cloned(),
            };
            match self.given.get(key) {
                Some(old) if *old == text => {}
                None if text.is_none() => {
                    // Nobody has given it; a rule of the host's own under this key stays.
                }
                _ => world.rules.push((Arc::clone(key), text)),
            }
        }
        for (key, text) in &self.given {
            if text.is_some() && !keys.contains(key) {
                world.rules.push((Arc::clone(key), None));
            }
        }
        !look.unknown && look.missing.is_empty()
    }

    /// Providers and overrides; false when something is not known.
    fn follow_service(&mut self, look: &mut Look<'_>) -> bool {
        let providers = match self.discovery {
            Discovery::Application => Some(None),
            _ => look.at(self.url_topic(Topic::Providers)),
        };
        look.at(self.url_topic(Topic::Routers));
        let overrides = [
            look.at(self.url_topic(Topic::Configurators)),
            match self.consumer.given("application") {
                Some(application) => look.at(Topic::rule(format!("{application}.configurators"))),
                None => Some(Some(Value::Absent)),
            },
            look.at(Topic::rule(self.service_configurators())),
        ];
        let of_interface =
            providers.as_ref().and_then(|value| value.as_ref()).map_or(0, |value| value.list().len());
        let by_application = match self.discovery {
            Discovery::Interface => false,
            Discovery::Application => true,
            Discovery::Auto => of_interface == 0 && providers.is_some(),
        };
        let instances = if by_application { self.follow_applications(look) } else { Vec::new() };
        if look.unknown || !look.missing.is_empty() {
            return false;
        }
        let overridden = self.read_overrides(overrides);
        let mut said = vec![providers.flatten().unwrap_or(Value::Absent)];
        let gone = matches!(said.first(), Some(Value::Absent)) && instances.is_empty();
        said.extend(instances.into_iter().map(|list| Value::List(list.into())));
        let same = self.entries.len() == said.len()
            && self.entries.iter().zip(&said).all(|(old, new)| old.same(new));
        if !same || overridden || self.first {
            self.make_list(said, gone, overridden);
        }
        true
    }

    fn service_configurators(&self) -> String {
        let given = |name: &str| self.consumer.given(name).unwrap_or_default();
        let key = service_rule_key(
            Dialect::Byway,
            RuleKind::Condition,
            self.consumer.interface(),
            given("version"),
            given("group"),
        );
        let service = key.strip_suffix(RuleKind::Condition.suffix()).unwrap_or(&key);
        format!("{service}.configurators")
    }

    fn make_list(&mut self, said: Vec<Value>, gone: bool, overridden: bool) {
        let all = joined(&said);
        let had = !self.list.current().is_empty();
        let groups = std::mem::take(&mut self.overrides);
        let lists = [&groups[0].list, &groups[1].list, &groups[2].list];
        // A list of nothing but garbage says nothing about providers.
        let garbage = !all.is_empty() && all.iter().all(|entry| category(entry).is_err());
        let nobody = all.is_empty();
        let protect = match self.protection {
            EmptyProtection::On => nobody || garbage,
            EmptyProtection::Vanished => nobody && gone || garbage,
            EmptyProtection::Off => false,
        };
        if garbage && protect && had && !self.kept {
            let message = format!("none of {} entries can be read; the list before stays", all.len());
            let error = Error::new(Status::E_SOURCE, message).source(Source::Parser);
            self.refuse(error.subject(format!("{}/providers", self.list.interface())));
        }
        let outcome = if protect && had {
            // The entries of the last list that had any, under the overrides of now.
            self.kept = true;
            match overridden {
                true => {
                    let old = joined(&self.entries);
                    self.list.update(&old, &lists, true).map(Some)
                }
                false => Ok(None),
            }
        } else {
            let outcome = self.list.update(&all, &lists, overridden).map(Some);
            if outcome.is_ok() {
                self.kept = false;
                self.entries = said;
            }
            outcome
        };
        self.overrides = groups;
        match outcome {
            Ok(Some(outcome)) => {
                for error in outcome.refused {
                    self.refuse(error);
                }
            }
            Ok(None) => {}
            Err(error) => self.refuse(error),
        }
    }

    /// True when the overrides are others than before. A text that is refused leaves its predecessor.
    fn read_overrides(&mut self, values: [Option<Option<Value>>; 3]) -> bool {
        let mut changed = false;
        let mut errors = Vec::new();
        for (at, value) in values.into_iter().enumerate() {
            let (Some(Some(value)), Some(slot)) = (value, self.overrides.get_mut(at)) else { continue };
            if slot.value.as_ref().is_some_and(|old| old.same(&value)) {
                continue;
            }
            let read = match &value {
                Value::Absent => Ok((Configurators::default(), Vec::new())),
                Value::List(list) => Ok(Configurators::from_urls(list.iter().map(|text| &**text))),
                Value::Text(text) => Configurators::from_text(text).map(|list| (list, Vec::new())),
            };
            match read {
                Ok((list, refused)) => {
                    changed |= !(slot.list.is_empty() && list.is_empty());
                    slot.list = list;
                    errors.extend(refused);
                }
                Err(error) => {
                    let application = self.consumer.given("application").unwrap_or_default();
                    let subject = match at {
                        1 => application_rule_key(RuleKind::Condition, application)
                            .replace(RuleKind::Condition.suffix(), ".configurators"),
                        _ => format!("{}.configurators", self.consumer.interface()),
                    };
                    errors.push(error.subject(subject));
                }
            }
            slot.value = Some(value);
        }
        for error in errors {
            self.refuse(error);
        }
        changed
    }

    /// Provider URLs of every application that serves the interface, one list per application.
    fn follow_applications(&mut self, look: &mut Look<'_>) -> Vec<Vec<Arc<str>>> {
        let interface: Arc<str> = self.list.interface().into();
        // The consumer may name the applications itself (`provided-by`), as Dubbo's.
        let provided = self.consumer.given("provided-by").map(str::to_owned);
        let mapping = match provided {
            Some(text) => text,
            None => match look.at(Topic::Mapping(Arc::clone(&interface))) {
                Some(Some(Value::Text(text))) => text.to_string(),
                _ => return Vec::new(),
            },
        };
        self.round += 1;
        let mut lists = Vec::new();
        for application in applications(&mapping) {
            let Some(Some(value)) = look.at(Topic::Instances(application.into())) else { continue };
            let mut list = Vec::new();
            for text in value.list() {
                let Some(instance) = self.instance(text) else { continue };
                let known = self.metadata(look, application, &instance);
                let made = urls(application, &instance, &interface, known.as_deref());
                list.extend(made.into_iter().map(Arc::from));
            }
            list.sort();
            list.dedup();
            if value != Value::Absent {
                lists.push(list);
            }
        }
        let round = self.round;
        self.instances.retain(|_, (_, seen)| *seen == round);
        lists
    }

    fn instance(&mut self, text: &Arc<str>) -> Option<Arc<Instance>> {
        if let Some((instance, seen)) = self.instances.get_mut(text) {
            *seen = self.round;
            return instance.clone();
        }
        let instance = match Instance::read(text) {
            Ok(instance) => instance.map(Arc::new),
            Err(error) => {
                self.refuse(crate::source::providers::refusal(text, error));
                None
            }
        };
        self.instances.insert(Arc::clone(text), (instance.clone(), self.round));
        instance
    }

    /// What the instance's revision serves; `None`: not published.
    fn metadata(
        &mut self,
        look: &mut Look<'_>,
        application: &str,
        instance: &Instance,
    ) -> Option<Arc<[Service]>> {
        let revision = instance.revision.as_str();
        if revision == "0" {
            return Some(Arc::from([]));
        }
        if revision.is_empty() || revision.contains('/') {
            return None;
        }
        let topic = Topic::Metadata { application: application.into(), revision: revision.into() };
        let Some(Some(Value::Text(text))) = look.at(topic) else { return None };
        if let Some(known) = self.metadata.get(&text) {
            return Some(Arc::clone(known));
        }
        match services(&text) {
            Ok(list) => {
                let list: Arc<[Service]> = list.into();
                // Few revisions live at a time; old ones go all at once.
                if self.metadata.len() >= 256 {
                    self.metadata.clear();
                }
                self.metadata.insert(text, Arc::clone(&list));
                Some(list)
            }
            Err(error) => {
                self.refuse(error.subject(format!("metadata/{application}/{revision}")));
                None
            }
        }
    }
}

/// The entries of several lists; those of a single one without a copy.
fn joined(lists: &[Value]) -> Arc<[Arc<str>]> {
    match lists {
        [Value::List(only)] => Arc::clone(only),
        _ => lists.iter().flat_map(|value| value.list().iter().cloned()).collect(),
    }
}

/// One look at the board.
struct Look<'b> {
    board: &'b Board,
    followed: &'b BTreeSet<Topic>,
    missing: Vec<Topic>,
    unknown: bool,
    topics: BTreeSet<Topic>,
}

impl Look<'_> {
    /// The state of a topic; `None`: not known yet; `Some(None)`: it cannot be read.
    fn at(&mut self, topic: Topic) -> Option<Option<Value>> {
        let state = self.board.look(&topic);
        // Also when another binding's watch has made it known: this one must be told of its changes.
        if !self.followed.contains(&topic) && self.topics.insert(topic.clone()) {
            self.missing.push(topic);
        } else {
            self.topics.insert(topic);
        }
        match state {
            None => {
                self.unknown = true;
                None
            }
            Some(Ok(value)) => Some(Some(value)),
            Some(Err(_)) => Some(None),
        }
    }
}
