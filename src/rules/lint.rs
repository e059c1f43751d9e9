//! Everything that is wrong with a rule text, or looks wrong: what the reader noticed, and what only shows when the
//! rule is looked at as a whole.
//!
//! | found here | severity |
//! |---|---|
//! | a left side that no call can satisfy | warning |
//! | a right side that no provider can satisfy | warning |
//! | a condition behind one that already blocks its calls | warning |
//! | a condition that says what an earlier one says | hint |
//! | a condition that blocks every call | warning |
//! | a rule that is switched off, or sets a field that nothing looks at | hint |
//! | with a provider list: a destination, tag or address that none of them fits, a key that none has | warning |

use super::condition::{ConditionRule, Conditions, Document, Items};
use super::dialect::{AbsentKey, Dialect};
use super::expression::{Key, KeyTest, Tests, shown};
use super::pattern::Pattern;
use super::report::{Problem, Report, Severity};
use super::tag::{Address, Members, TagRule};
use super::yaml::{self, Node, Value};
use super::{Rule, RuleKind, lower, read_with};
use crate::chain::program::{Column, RowTest};
use crate::chain::snapshot::Invokers;
use serde_json::json;
use std::collections::HashMap;

/// Every problem of a text, in text order. With a provider list also what none of them can ever fit; `$name` then
/// counts as fitting anything, because consumers differ.
pub fn check(kind: RuleKind, dialect: Dialect, text: &str, providers: Option<&Invokers>) -> Vec<Problem> {
    let reading = read_with(kind, dialect, text, true);
    let mut problems = reading.problems;
    let Some(rule) = reading.rule else { return problems };
    let mut report = Report::new(text);
    let Some(root) = yaml::read(text, &mut Report::new(text)) else { return problems };
    let mut lint =
        Lint { dialect, report: &mut report, providers: providers.filter(|list| !list.is_empty()) };
    lint.header(&rule, &root);
    match &rule {
        Rule::Condition(rule) => lint.condition(rule, &root),
        Rule::Tag(rule) => lint.tag(rule, &root),
        Rule::Affinity(rule) => {
            let column = Column::parameter(rule.key.as_str());
            let fixed = ["protocol", "username", "password", "host", "port", "path", "address"];
            if rule.in_force()
                && !fixed.contains(&rule.key.as_str())
                && lint.nobody(&RowTest::Value(column, present()))
            {
                let at = find(&root, &["affinityAware", "key"]).map_or(root.offset, |node| node.offset);
                lint.report.warning(at, format!("no present provider has '{}'", shown(&rule.key)));
            }
        }
    }
    problems.extend(report.into_problems());
    problems.sort_by_key(|problem| (problem.at.offset, std::cmp::Reverse(problem.severity)));
    problems
}

fn present() -> crate::chain::program::Test {
    super::value_test::present(&super::value_test::View::default())
}

/// A node by its path of keys.
fn find<'n>(root: &'n Node, path: &[&str]) -> Option<&'n Node> {
    path.iter().try_fold(root, |node, name| match &node.value {
        Value::Map(entries) => {
            entries.iter().find(|(key, _)| key.as_scalar() == Some(name)).map(|(_, value)| value)
        }
        _ => None,
    })
}

struct Lint<'l, 't> {
    dialect: Dialect,
    report: &'l mut Report<'t>,
    providers: Option<&'l Invokers>,
}

impl Lint<'_, '_> {
    fn header(&mut self, rule: &Rule, root: &Node) {
        let header = rule.header();
        for (name, said, message) in [
            ("priority", header.priority != 0, "routers have fixed places, 'priority' is not looked at"),
            (
                "runtime",
                !header.runtime,
                "rules are applied to every call, 'runtime: false' is not looked at",
            ),
            ("dynamic", header.dynamic, "'dynamic' is not looked at"),
            ("enabled", !header.enabled, "the rule is switched off"),
            ("valid", !header.valid, "the text says itself that it is no rule"),
        ] {
            if let (true, Some(node)) = (said, find(root, &[name])) {
                self.report.hint(node.offset, message);
            }
        }
    }

    /// Whether none of the present providers fits; false when there are none to ask.
    fn nobody(&self, rows: &RowTest) -> bool {
        self.providers.is_some_and(|list| list.select(rows, &mut Vec::new()).set.is_empty())
    }

    // --- conditions ---

    fn condition(&mut self, rule: &ConditionRule, root: &Node) {
        let mut scrap = Report::new(self.report.text());
        let Some(Document { items: Some(items), .. }) = Document::read(root, self.dialect, &mut scrap) else {
            return;
        };
        let places: Vec<usize> = match &items {
            Items::V30(list) => list.iter().map(|(node, _)| node.offset).collect(),
            Items::V31(list) => list.iter().map(|raw| raw.offset()).collect(),
        };
        // dubbo-go leaves conditions out that say nothing; then the places do not line up and are the rule's own.
        let place = |i: usize| places.get(i).copied().unwrap_or(root.offset);
        let mut seen: Vec<Seen<'_>> = Vec::new();
        let mut texts: HashMap<String, usize> = HashMap::new();
        match &rule.conditions {
            Conditions::V30(list) => {
                for (i, one) in list.iter().enumerate() {
                    self.left(&one.when, place(i), one.then.is_none(), &mut seen, i);
                    self.same(&one.to_string(), place(i), &mut texts, i);
                    if let Some(then) = &one.then {
                        self.right(then, place(i), then.keys.is_empty());
                    }
                }
            }
            Conditions::V31(list) => {
                for (i, one) in list.iter().enumerate() {
                    self.left(&one.from, place(i), one.blocks(), &mut seen, i);
                    self.same(&one.to_string(), place(i), &mut texts, i);
                    let raw = match &items {
                        Items::V31(items) => items.get(i),
                        Items::V30(_) => None,
                    };
                    for (n, to) in one.to.iter().enumerate() {
                        let at = raw.and_then(|raw| raw.to.get(n)).map_or(place(i), |raw| raw.offset());
                        match &to.rows {
                            None if one.blocks() => {
                                self.report.hint(at, "nobody; to switch the traffic off, leave 'to' out")
                            }
                            None => self.report.warning(at, "this destination is nobody; leave it out"),
                            Some(tests) => self.right(tests, at, false),
                        }
                    }
                }
            }
        }
    }

    fn left<'r>(&mut self, when: &'r Tests, at: usize, blocks: bool, seen: &mut Vec<Seen<'r>>, index: usize) {
        if let Some(test) = when.keys.iter().find(|test| impossible(test, self.dialect)) {
            let message = format!(
                "never fires: nothing satisfies '{}'",
                shown(&Tests { keys: vec![test.clone()] }.to_string())
            );
            self.report.warning(at, message);
            return;
        }
        for test in &when.keys {
            if test
                .wanted
                .iter()
                .chain(&test.unwanted)
                .any(|value| value.text.starts_with('$') && value.text.len() > 1)
                && !matches!(test.key, Key::Method)
            {
                let name = shown(&test.name);
                self.report.hint(at, format!("a $name stands for a value only on the right side; '{name}' is compared with the text"));
            }
        }
        if let Some(earlier) = seen.iter().find(|earlier| implies(when, earlier.when)) {
            let message = format!(
                "never reached: condition {} already blocks all calls that this one is about",
                earlier.index + 1
            );
            self.report.warning(at, message);
            return;
        }
        if blocks {
            if when.keys.is_empty() {
                self.report.warning(at, "blocks every call");
            }
            // Comparing all pairs is quadratic; nobody reads on behind that many blocks.
            if seen.len() < 64 {
                seen.push(Seen { when, index });
            }
        }
    }

    fn same(&mut self, text: &str, at: usize, texts: &mut HashMap<String, usize>, index: usize) {
        if let Some(first) = texts.get(text) {
            self.report.hint(at, format!("says what condition {} says", first + 1));
        } else {
            texts.insert(text.to_owned(), index);
        }
    }

    fn right(&mut self, then: &Tests, at: usize, lost: bool) {
        if lost {
            self.report.warning(at, "the right side has no key and fits nobody; to block, leave it empty");
            return;
        }
        if let Some(test) = then.keys.iter().find(|test| impossible(test, self.dialect)) {
            let message = format!(
                "fits nobody: nothing satisfies '{}'",
                shown(&Tests { keys: vec![test.clone()] }.to_string())
            );
            self.report.warning(at, message);
            return;
        }
        if then.keys.is_empty() || !self.nobody(&lower::rows_for_anybody(then, self.dialect)) {
            return;
        }
        // Name the key that alone fits nobody, if there is one.
        let single = then.keys.iter().find(|test| {
            let alone = Tests { keys: vec![(*test).clone()] };
            self.nobody(&lower::rows_for_anybody(&alone, self.dialect))
        });
        let text = match single {
            Some(test) => Tests { keys: vec![test.clone()] }.to_string(),
            None => then.to_string(),
        };
        self.report.warning(at, format!("no present provider fits '{}'", shown(&text)));
    }

    // --- tags ---

    fn tag(&mut self, rule: &TagRule, root: &Node) {
        let places = |tag: &str| -> Option<&Node> {
            let Some(Node { value: Value::List(items), .. }) = find(root, &["tags"]) else { return None };
            items.iter().rev().find(|item| find(item, &["name"]).and_then(Node::as_scalar) == Some(tag))
        };
        // Looking tags up by name is quadratic; nobody reads that many.
        for group in rule.groups(self.dialect).iter().take(256) {
            let node = places(group.name);
            let at = node.map_or(root.offset, |node| node.offset);
            match group.members {
                Members::Like(list) => {
                    if self.nobody(&lower::like(list)) {
                        let message =
                            format!("no present provider fits the 'match' of tag '{}'", shown(group.name));
                        self.report.warning(at, message);
                    }
                }
                Members::At(list) => self.addresses(list, node, at),
            }
        }
    }

    fn addresses(&mut self, list: &[Address], node: Option<&Node>, at: usize) {
        let nodes = match node.and_then(|node| find(node, &["addresses"])) {
            Some(Node { value: Value::List(items), .. }) => items.as_slice(),
            _ => &[],
        };
        for (i, address) in list.iter().enumerate().take(256) {
            if self.nobody(&lower::at(std::slice::from_ref(address))) {
                let at = nodes.get(i).map_or(at, |node| node.offset);
                self.report.warning(at, format!("no present provider is at '{}'", shown(&address.text)));
            }
        }
    }
}

/// Longer lists of values are not compared with each other.
const MANY: usize = 64;

/// A block that was read before.
struct Seen<'r> {
    when: &'r Tests,
    index: usize,
}

/// Whether every call that satisfies `narrow` satisfies `wide`: each key of `wide` is in `narrow`, as strict or
/// stricter. May say no too often, never yes too often.
fn implies(narrow: &Tests, wide: &Tests) -> bool {
    wide.keys.iter().all(|wide| {
        narrow.keys.iter().any(|narrow| {
            // Comparing values pairwise is quadratic; a list that long is left alone.
            let few = [&narrow.wanted, &wide.wanted, &narrow.unwanted, &wide.unwanted]
                .iter()
                .all(|list| list.len() <= MANY);
            let within = |small: &[super::expression::Value], big: &[super::expression::Value]| {
                small.iter().all(|one| big.iter().any(|other| one.text == other.text))
            };
            few && narrow.name == wide.name
                && (wide.wanted.is_empty()
                    || (!narrow.wanted.is_empty() && within(&narrow.wanted, &wide.wanted)))
                && within(&wide.unwanted, &narrow.unwanted)
        })
    })
}

/// Whether no value at all satisfies a key.
fn impossible(test: &KeyTest, dialect: Dialect) -> bool {
    let table = dialect.table();
    if test.wanted.is_empty() && test.unwanted.is_empty() {
        return table.absent_key == AbsentKey::NoMatch;
    }
    if test.unwanted.iter().any(|value| value.pattern == Pattern::Any) {
        return !test.wanted.is_empty() || table.absent_key == AbsentKey::NoMatch;
    }
    if test.wanted.len() > MANY || test.unwanted.len() > MANY {
        return false;
    }
    let excluded = |pattern: &Pattern| match pattern {
        Pattern::Exact(text) => test.unwanted.iter().any(|value| value.pattern.matches(text)),
        pattern => test.unwanted.iter().any(|value| value.pattern == *pattern),
    };
    !test.wanted.is_empty() && test.wanted.iter().all(|value| excluded(&value.pattern))
}

/// The problems as JSON: `{"refused": bool, "problems": [{"severity": "error" | "warning" | "hint", "line", "column",
/// "offset", "message"}]}`, lines and columns from 1, the offset in bytes from 0.
pub fn to_json(problems: &[Problem]) -> String {
    let one = |problem: &Problem| {
        json!({
            "severity": problem.severity.name(), "line": problem.at.line, "column": problem.at.column,
            "offset": problem.at.offset, "message": problem.message,
        })
    };
    json!({"refused": is_refused(problems), "problems": problems.iter().map(one).collect::<Vec<_>>()})
        .to_string()
}

/// Whether a text would be refused.
pub fn is_refused(problems: &[Problem]) -> bool {
    problems.iter().any(|problem| problem.severity == Severity::Error)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `line:column severity words` of every problem.
    fn found(kind: RuleKind, text: &str, providers: &[&str]) -> Vec<String> {
        let list = Invokers::from_urls(providers.iter().copied()).unwrap();
        let problems = check(kind, Dialect::Byway, text, Some(&list));
        problems
            .iter()
            .map(|one| format!("{}:{} {:?} {}", one.at.line, one.at.column, one.severity, one.message))
            .collect()
    }

    fn assert_found(kind: RuleKind, text: &str, providers: &[&str], want: &[&str]) {
        let found = found(kind, text, providers);
        assert_eq!(found.len(), want.len(), "{text}\n{found:#?}");
        for (found, want) in found.iter().zip(want) {
            // `place severity | words that are in the sentence`
            let (start, words) = want.split_once('|').unwrap_or((want, ""));
            assert!(
                found.starts_with(start.trim()) && found.contains(words.trim()),
                "{text}\ngot  {found}\nwant {want}"
            );
        }
    }

    #[test]
    fn conditions_are_looked_at_as_a_whole() {
        let providers = ["dubbo://10.0.0.1:20880/s?region=hz", "dubbo://10.0.0.2:20880/s?region=bj"];
        for (text, want) in [
            ("conditions: ['method=a => region=hz']", &[][..]),
            ("Force: true\nconditions: ['=> region=hz']", &["1:1 Warning | 'force' is meant"]),
            ("force: true\nforce: false\nconditions: ['=> region=hz']", &["2:1 Error | twice"]),
            ("conditions:\n- 'method=a & method!=a => region=hz'", &["2:3 Warning | never fires"]),
            ("conditions:\n- 'env => region=hz'", &["2:3 Warning | never fires", "2:4 Warning | no values"]),
            (
                "conditions:\n- '=>'\n- 'method=a => region=hz'",
                &["2:3 Warning | every call", "3:3 Warning | condition 1"],
            ),
            (
                "conditions:\n- 'method=a,b =>'\n- 'method=b & region=x => region=hz'",
                &["3:3 Warning | never reached"],
            ),
            ("conditions:\n- '=> region=hz'\n- '=>region = hz'", &["3:3 Hint | condition 1"]),
            ("conditions:\n- '=> region=sh'", &["2:3 Warning | no present provider fits 'region=sh'"]),
            ("conditions:\n- '=> region=$region'", &[]),
            ("conditions:\n- '=> region=hz & host=10.0.0.2'", &["2:3 Warning | region=hz & host=10.0.0.2"]),
            ("conditions:\n- '=> a==b'\n- '=> c==d'", &["2:8 Error | ==", "3:8 Error | =="]),
            // Not also that the key has no values.
            ("conditions:\n- '=> a=9~1'", &["2:9 Error | 9~1"]),
            ("priority: 3\nruntime: false\nenabled: false\nconditions: ['=> a==b']", &["4:19 Error | =="]),
            ("priority: 3\nconditions: ['=> region=hz']", &["1:11 Hint | fixed places"]),
            (
                "configVersion: v3.1\nconditions:\n- from: {match: 'env=x'}\n  to:\n  - match: region=sh\n  - {match: region=hz, wieght: 3}",
                &["5:5 Warning | no present provider", "6:24 Warning | 'wieght' means nothing"],
            ),
        ] {
            assert_found(RuleKind::Condition, text, &providers, want);
        }
    }

    #[test]
    fn tags_and_affinity_are_compared_with_the_providers() {
        let providers = ["dubbo://10.0.0.1:20880/s?env=gray"];
        let tags = "tags:\n- name: a\n  addresses: ['10.0.0.1', '10.0.0.9']\n- name: b\n  match: [{key: env, value: {exact: no}}]\n";
        assert_found(RuleKind::Tag, tags, &providers, &["3:27 Warning | 10.0.0.9", "4:3 Warning | tag 'b'"]);
        let text = "configVersion: v3.1\naffinityAware: {key: zone, ratio: 5}";
        assert_found(
            RuleKind::Affinity,
            text,
            &providers,
            &["2:22 Warning | no present provider has 'zone'"],
        );
        assert_found(RuleKind::Affinity, text, &[], &[]);
    }
}
