//! The naive reference: what rules mean, one invoker at a time, with a hash map per invoker, nothing compiled and
//! nothing cached. It reads the typed rules and the rule words in them, and shares no matching code with the
//! library. Oracle of the conformance and property tests, and yardstick (`V`) of the benches.
#![allow(dead_code, clippy::panic, clippy::unwrap_used, clippy::expect_used)]

pub(crate) mod url;
pub(crate) mod words;

use byway::rules::affinity::AffinityRule;
use byway::rules::condition::{ConditionRule, Conditions};
use byway::rules::dialect::{
    AbsentKey, AffinityValue, Block, Dialect, Draw, Fallback, MissingValue, SENTINEL, TagFailover,
    UntaggedCall,
};
use byway::rules::expression::{Condition, Key, KeyTest, Tests};
use byway::rules::mock::{NEED_MOCK, PROTOCOL};
use byway::rules::pattern::Side;
use byway::rules::tag::{FORCE_TAG, ParamMatch, TAG, Tag, TagRule};
use std::collections::HashMap;
use url::Url;

/// One call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Call {
    pub method: Option<String>,
    /// Text of each argument; `None` is a null one.
    pub arguments: Vec<Option<String>>,
    /// Whether the first argument is text, as generic calls need it.
    pub first_is_text: bool,
    pub attachments: HashMap<String, String>,
}

/// Everything a router sees.
pub(crate) struct World<'a> {
    pub dialect: Dialect,
    pub consumer: Url,
    /// The whole list; lists of rows are indices into it.
    pub invokers: &'a [Url],
    /// `None`: no invocation at all.
    pub call: Option<&'a Call>,
}

/// Source of draws: called with the sum of weights, answers a number below it.
pub(crate) type Draws<'d> = &'d mut dyn FnMut(u64) -> u64;

pub(crate) type Rows = Vec<usize>;

impl<'a> World<'a> {
    pub(crate) fn new(
        dialect: Dialect,
        consumer: &str,
        invokers: &'a [Url],
        call: Option<&'a Call>,
    ) -> World<'a> {
        World { dialect, consumer: Url::parse(consumer, dialect), invokers, call }
    }

    pub(crate) fn all(&self) -> Rows {
        (0..self.invokers.len()).collect()
    }

    // --- condition rules ---

    /// A condition rule on a list.
    pub(crate) fn condition_rule(&self, rule: &ConditionRule, list: Rows, draws: Draws<'_>) -> Rows {
        if list.is_empty() || !rule.in_force() {
            return list;
        }
        let table = self.dialect.table();
        let force = rule.header.force;
        if table.fallback == Fallback::Condition {
            let mut list = list;
            let steps = match &rule.conditions {
                Conditions::V30(list) => list.len(),
                Conditions::V31(list) => list.len(),
            };
            for step in 0..steps {
                if list.is_empty() {
                    return list;
                }
                let (kept, blocked) = self.one(rule, step, &list, draws);
                list = match kept {
                    None => list,
                    Some(kept) if kept.is_empty() && !blocked && !force => list,
                    Some(kept) => kept,
                };
            }
            return list;
        }
        // dubbo-go: conditions that switch traffic off first, then the others; one fall-back at the end.
        let order: Vec<usize> = match &rule.conditions {
            Conditions::V30(list) => (0..list.len()).collect(),
            Conditions::V31(list) => {
                let off = |i: &usize| list[*i].to.iter().all(|one| one.rows.is_none());
                (0..list.len()).filter(off).chain((0..list.len()).filter(|i| !off(i))).collect()
            }
        };
        let mut now = list.clone();
        for step in order {
            if let (Some(kept), blocked) = self.one(rule, step, &now, draws) {
                let stays = matches!(rule.conditions, Conditions::V31(_)) || table.block == Block::Always;
                if kept.is_empty() {
                    return if force || (blocked && stays) { kept } else { list };
                }
                now = kept;
            }
        }
        now
    }

    /// One condition without its fall-back: `None` when it does not fire; whether it blocks.
    fn one(&self, rule: &ConditionRule, step: usize, list: &Rows, draws: Draws<'_>) -> (Option<Rows>, bool) {
        match &rule.conditions {
            Conditions::V30(conditions) => {
                let condition = &conditions[step];
                if !self.when(&condition.when) {
                    return (None, false);
                }
                (Some(self.then(condition, list)), condition.then.is_none())
            }
            Conditions::V31(conditions) => {
                let condition = &conditions[step];
                if !self.when(&condition.from) {
                    return (None, false);
                }
                if condition.to.iter().all(|one| one.rows.is_none()) {
                    return (Some(Vec::new()), true);
                }
                let mut live: Vec<(i32, u64, Rows)> = Vec::new();
                for one in &condition.to {
                    let rows = match &one.rows {
                        None => Vec::new(),
                        Some(tests) if tests.keys.is_empty() => list.clone(),
                        Some(tests) => self.keep(list, |url| self.side(tests, url)),
                    };
                    if !rows.is_empty() {
                        live.push((one.priority, u64::from(one.weight), rows));
                    }
                }
                let first = live.iter().map(|one| one.0).min();
                live.retain(|one| Some(one.0) == first);
                (Some(self.draw(&live, condition.hash_key.as_deref(), draws)), false)
            }
        }
    }

    fn draw(&self, live: &[(i32, u64, Rows)], hash_key: Option<&str>, draws: Draws<'_>) -> Rows {
        if live.len() < 2 {
            return live.first().map(|one| one.2.clone()).unwrap_or_default();
        }
        let total: u64 = live.iter().map(|one| one.1).sum();
        let hashed = hash_key.and_then(|key| self.hash_value(key));
        let number = match hashed {
            Some(value) => byway::chain::reference::stable_hash(value.as_bytes()) % total,
            None => draws(total),
        };
        let mut left = i64::try_from(number).unwrap();
        for one in live {
            left -= i64::try_from(one.1).unwrap();
            let hit = match self.dialect.table().draw {
                Draw::Exact => left < 0,
                Draw::FirstGainsOne => left <= 0,
            };
            if hit {
                return one.2.clone();
            }
        }
        unreachable!("a number below the sum of weights")
    }

    fn hash_value(&self, key: &str) -> Option<String> {
        let call = self.call?;
        if key == "method" {
            return self.method(call).map(str::to_owned);
        }
        let inside = key.split_once('[')?.1.strip_suffix(']')?;
        if key.starts_with("attachments") {
            return call.attachments.get(inside).cloned();
        }
        let argument = call.arguments.get(inside.parse::<usize>().ok()?)?;
        Some(argument.as_deref().unwrap_or("null").to_owned())
    }

    /// Does the left side hold for this call?
    pub(crate) fn when(&self, tests: &Tests) -> bool {
        tests.keys.iter().all(|test| self.key(test, &self.consumer, Side::When))
    }

    /// The providers of a condition's right side, without any fall-back.
    pub(crate) fn then(&self, condition: &Condition, list: &Rows) -> Rows {
        match &condition.then {
            None => Vec::new(),
            // A right side without keys is no block; it simply fits nobody.
            Some(tests) if tests.keys.is_empty() => Vec::new(),
            Some(tests) => self.keep(list, |url| self.side(tests, url)),
        }
    }

    fn side(&self, tests: &Tests, url: &Url) -> bool {
        tests.keys.iter().all(|test| self.key(test, url, Side::Then))
    }

    fn keep(&self, list: &Rows, passes: impl Fn(&Url) -> bool) -> Rows {
        list.iter().copied().filter(|&row| passes(&self.invokers[row])).collect()
    }

    fn method<'c>(&self, call: &'c Call) -> Option<&'c str> {
        let method = call.method.as_deref()?;
        let generic = self.dialect.table().unwrap_generic && matches!(method, "$invoke" | "$invokeAsync");
        match call.arguments.first() {
            Some(Some(name)) if generic && call.first_is_text => Some(name),
            _ => Some(method),
        }
    }

    fn argument<'c>(&self, call: &'c Call, index: u32) -> Option<&'c str> {
        let null = if self.dialect == Dialect::DubboGo { "<nil>" } else { "null" };
        call.arguments.get(index as usize).map(|argument| argument.as_deref().unwrap_or(null))
    }

    fn key(&self, test: &KeyTest, url: &Url, side: Side) -> bool {
        let table = self.dialect.table();
        let call = if side == Side::When { self.call } else { None };
        let value = match (&test.key, call) {
            (Key::Method, Some(call)) => self.method(call),
            (Key::Parameter | Key::Method, _) => url.get(&test.name),
            (Key::Attachment(name), Some(call)) => call.attachments.get(name).map(String::as_str),
            (Key::Argument(index), Some(call)) if (*index as usize) < call.arguments.len() => {
                self.argument(call, *index)
            }
            (Key::Attachment(_) | Key::Argument(_) | Key::Malformed, _) => match table.missing_value {
                MissingValue::NoMatch => return false,
                MissingValue::Absent => None,
                MissingValue::Sentinel => Some(SENTINEL),
            },
        };
        let value = value.filter(|text| !(table.empty_is_absent && text.is_empty()));
        let Some(value) = value else {
            return table.absent_key == AbsentKey::MatchesUnlessWanted && test.wanted.is_empty();
        };
        let fits = |text: &str| words::fits(text, &test.name, side, value, &self.consumer, self.dialect);
        let wanted = test.wanted.iter().any(|one| fits(&one.text));
        let unwanted = test.unwanted.iter().any(|one| fits(&one.text));
        match (test.wanted.is_empty(), test.unwanted.is_empty()) {
            (true, true) => false,
            (true, false) => !unwanted,
            (false, _) => wanted && !unwanted,
        }
    }

    // --- affinity ---

    /// An affinity rule on a list.
    pub(crate) fn affinity_rule(&self, rule: &AffinityRule, list: Rows) -> Rows {
        if list.is_empty() || !rule.in_force() {
            return list;
        }
        let table = self.dialect.table();
        let own = match table.affinity_value {
            AffinityValue::Reference => self.consumer.reference(&rule.key),
            AffinityValue::JavaParameter => self.consumer.parameter(&rule.key),
        };
        if own.is_none() && table.affinity_value == AffinityValue::JavaParameter {
            return list;
        }
        let counts = |text: &&str| !(table.empty_is_absent && text.is_empty());
        let own = own.filter(counts);
        let kept = self.keep(&list, |url| match (&own, url.get(&rule.key).filter(counts)) {
            (Some(own), Some(value)) => match table.affinity_value {
                AffinityValue::Reference => words::glob(own, value, self.dialect),
                AffinityValue::JavaParameter => {
                    words::fits(own, &rule.key, Side::When, value, &self.consumer, self.dialect)
                }
            },
            _ => false,
        });
        let enough = kept.len() as f64 * 100.0 >= rule.ratio * list.len() as f64;
        if !enough || (kept.is_empty() && table.affinity_keeps_when_empty) { list } else { kept }
    }

    /// dubbo-go's first step: providers of the consumer's own service key, unless there are none.
    pub(crate) fn service_key(&self, list: Rows) -> Rows {
        fn key(url: &Url) -> (&str, Option<&str>, Option<&str>) {
            let given = |name: &str| url.parameter(name).filter(|text| !text.is_empty());
            let path = url.reference("path").unwrap_or_default();
            let interface = given("interface").unwrap_or_else(|| path.trim_start_matches('/'));
            (interface, given("version").filter(|version| *version != "0.0.0"), given("group"))
        }
        let own = key(&self.consumer);
        let kept = self.keep(&list, |url| key(url) == own);
        if kept.is_empty() { list } else { kept }
    }

    // --- mock ---

    pub(crate) fn mock(&self, list: Rows) -> Rows {
        match self.call.and_then(|call| call.attachments.get(NEED_MOCK)) {
            None => self.keep(&list, |url| url.get("protocol") != Some(PROTOCOL)),
            Some(text) if text.to_lowercase() == "true" => {
                self.keep(&list, |url| url.get("protocol") == Some(PROTOCOL))
            }
            Some(_) => list,
        }
    }

    // --- tag ---

    /// The tag the call asks for.
    pub(crate) fn requested_tag(&self) -> Option<String> {
        let attachment = self.call.and_then(|call| call.attachments.get(TAG)).cloned();
        let counts = |text: &String| self.dialect.table().empty_tag_counts || !text.is_empty();
        let tag = attachment.filter(counts).or_else(|| self.consumer.parameter(TAG).map(str::to_owned));
        tag.filter(|tag| !tag.is_empty())
    }

    pub(crate) fn insists(&self) -> bool {
        let attachment = self.call.and_then(|call| call.attachments.get(FORCE_TAG)).cloned();
        let text = attachment
            .filter(|text| !text.is_empty())
            .or_else(|| self.consumer.parameter(FORCE_TAG).map(str::to_owned));
        let text = text.unwrap_or_default();
        match self.dialect {
            Dialect::DubboGo => ["1", "t", "T", "TRUE", "true", "True"].contains(&text.as_str()),
            _ => text.to_lowercase() == "true",
        }
    }

    /// Tag routing, with or without a rule, and which way it went.
    pub(crate) fn tag(&self, rule: Option<&TagRule>, list: Rows) -> (Rows, TagWay) {
        let table = self.dialect.table();
        if list.is_empty() {
            return (list, TagWay::Nobody);
        }
        fn static_tag(url: &Url) -> Option<&str> {
            url.parameter(TAG).filter(|tag| !tag.is_empty())
        }
        let untagged = |list: &Rows| self.keep(list, |url| static_tag(url).is_none());
        let same_static = |list: &Rows, tag: &str| self.keep(list, |url| static_tag(url) == Some(tag));
        let tag = self.requested_tag();
        if table.star_tag_is_all && tag.as_deref() == Some("*") {
            return (list, TagWay::Everybody);
        }
        let Some(rule) = rule.filter(|rule| rule.in_force()) else {
            let Some(tag) = tag else { return (untagged(&list), TagWay::Static) };
            let kept = same_static(&list, &tag);
            let fall_back = kept.is_empty() && !self.insists();
            return (if fall_back { untagged(&list) } else { kept }, TagWay::Static);
        };
        let groups = self.groups(rule);
        let in_any = |url: &Url| groups.iter().any(|group| group.has(url, self.dialect));
        let Some(tag) = tag else {
            let claimed = |url: &Url| {
                groups.iter().any(|group| {
                    !(table.untagged_ignores_match && group.by_match) && group.has(url, self.dialect)
                })
            };
            let free = self.keep(&list, |url| !claimed(url));
            if free.is_empty() {
                return (free, TagWay::AllClaimed);
            }
            let names: Vec<&str> = rule.tags.iter().map(|tag| tag.name.as_str()).collect();
            let kept = self.keep(&free, |url| match static_tag(url) {
                None => true,
                Some(tag) => table.untagged_call == UntaggedCall::NoTagOfTheRule && !names.contains(&tag),
            });
            return (kept, TagWay::UntaggedCall);
        };
        let insists = self.insists();
        let group = self.find_group(&groups, &tag, insists);
        let (kept, stands) = match group {
            Some(group) => (self.keep(&list, |url| group.has(url, self.dialect)), rule.header.force),
            None => (same_static(&list, &tag), rule.header.force && table.tag_force_unknown),
        };
        if group.is_some() && (!kept.is_empty() || stands) {
            return (kept, TagWay::ByRule);
        }
        if !kept.is_empty() || insists || stands {
            return (kept, TagWay::ByStaticOrForced);
        }
        let free = match table.tag_failover {
            TagFailover::OutsideEveryGroup => self.keep(&list, |url| !in_any(url)),
            TagFailover::OutsideAskedGroup => {
                self.keep(&list, |url| !group.is_some_and(|group| group.has(url, self.dialect)))
            }
        };
        (untagged(&free), TagWay::FailedOver)
    }

    fn groups<'r>(&self, rule: &'r TagRule) -> Vec<Group<'r>> {
        let table = self.dialect.table();
        let mut groups: HashMap<&str, Group<'r>> = HashMap::new();
        let by_match = |tag: &Tag| {
            let given = tag.matches.is_some() && rule.reads_match;
            if table.tag_match_wins {
                given && tag.matches.as_ref().is_some_and(|list| !list.is_empty())
            } else {
                given && tag.addresses.is_empty()
            }
        };
        for tag in rule.tags.iter().filter(|tag| !by_match(tag) && !tag.addresses.is_empty()) {
            groups.insert(&tag.name, Group { tag, by_match: false });
        }
        for tag in rule.tags.iter().filter(|tag| by_match(tag)) {
            let group = Group { tag, by_match: true };
            if table.tag_match_wins || self.invokers.iter().any(|url| group.has(url, self.dialect)) {
                groups.insert(&tag.name, group);
            }
        }
        groups.into_values().collect()
    }

    fn find_group<'g, 'r>(&self, groups: &'g [Group<'r>], tag: &str, insists: bool) -> Option<&'g Group<'r>> {
        let find = |name: &str| groups.iter().find(|group| group.tag.name == name);
        if insists || !self.dialect.table().tag_levels {
            return find(tag);
        }
        let pieces: Vec<&str> = tag.split('|').collect();
        (1..=pieces.len()).rev().find_map(|count| find(&pieces[..count].join("|")))
    }
}

/// The way a tag decision went, which upstream tells in its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TagWay {
    Nobody,
    Everybody,
    Static,
    ByRule,
    ByStaticOrForced,
    FailedOver,
    AllClaimed,
    UntaggedCall,
}

struct Group<'r> {
    tag: &'r Tag,
    by_match: bool,
}

impl Group<'_> {
    fn has(&self, url: &Url, dialect: Dialect) -> bool {
        if self.by_match {
            let entries = self.tag.matches.as_deref().unwrap_or_default();
            return entries.iter().all(|entry| param_matches(entry, url));
        }
        self.tag.addresses.iter().any(|address| words::address(&address.text, url, dialect))
    }
}

/// One `match` entry against a provider.
pub(crate) fn param_matches(entry: &ParamMatch, url: &Url) -> bool {
    entry.value.matches(url.parameter(&entry.key))
}
