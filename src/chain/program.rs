//! What rules are lowered to. A [`Program`] is one router's decision as data: no rule text is read and no
//! consumer URL consulted after lowering.
//!
//! # For people who lower a rule language
//!
//! A rule is lowered once per chain, with the chain's consumer URL at hand ([`Rule::lower`]). Everything that only
//! depends on the consumer is decided there: a `when` part on a consumer key becomes [`CallTest::Always`] or
//! [`CallTest::Never`] (a step that can never fire may be left out), and `$name` becomes the pattern it stands
//! for. What stays in the program:
//!
//! - tests on the call ([`CallTest`]): method, arguments, attachments;
//! - tests on an invoker ([`RowTest`]): its columns (URL parameters and the parts of the URL);
//! - what to do ([`Step`]).
//!
//! Both kinds of test end in a [`ValueTest`], a predicate over one text value or its absence. The language's own
//! notions (globs, ranges, CIDR, "empty counts as absent", "absent counts as the sentinel") live in its value
//! tests; the program only knows that a test is a function of `Option<&str>`. It is evaluated once per *distinct*
//! value of a column and the answer kept as a set of rows under ([`Column`], [`ValueTest::cache_key`]), also
//! across rule changes, so two tests with one key must be the same function.
//!
//! | rule language | program |
//! |---|---|
//! | `method=hello => address=*:20880` | one [`Step::Condition`], `when` = value test on [`CallKey::Method`], `then` = [`Then::Keep`] a column test on [`Column::Address`] |
//! | `a=x,y & b!=z` | `All [Any [a~x, a~y], Not b~z]`, plus a presence test of `b` where the dialect wants one |
//! | blank or `false` after `=>` | [`Then::Empty`] |
//! | v3.1 `to:` list | [`Then::Destinations`]; an empty list = [`Then::Empty`] with `last_word` |
//! | one force flag, fall-back for the whole rule (dubbo-go) | [`Fallback::WholeProgram`] |
//! | mock selector | two conditions on [`CallKey::Attachment`] `invocation.need.mock`, both with `force` |
//! | tag router | [`Step::Tag`], [`TagRule`] being the dynamic rule |
//! | affinity | [`Step::Affinity`] |
//! | `router=address` | [`Step::Equal`] |
//!
//! # Meaning
//!
//! The list enters the first step; every step's output enters the next. An empty list skips all further steps. The
//! meaning of each step is written beside its type; [`super::reference`] says the same in plain code, one invoker
//! at a time, and is what the compiled engine is tested against.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::url::Url;
use crate::error::Result;

/// A predicate over one text value, or its absence.
///
/// Must be a pure function: same value, same answer, on every thread. Must not block.
pub trait ValueTest: Send + Sync {
    /// The answer for a value; `None` means the column or key is absent.
    fn test(&self, value: Option<&str>) -> bool;

    /// Names the function: two tests with one key must answer alike for every value. Include the dialect where
    /// it changes the answer. For example `glob:10.20.*`.
    fn cache_key(&self) -> &str;

    /// What the engine may use to find the test through an index instead of calling it.
    fn shape(&self) -> Shape<'_> {
        Shape::Opaque
    }

    /// The test in words for people, put behind the key's name: `= 10.20.*`. Default: the cache key.
    fn words(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.cache_key())
    }
}

/// The exact meaning of a [`ValueTest`], when it is one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape<'a> {
    /// True for exactly this value, false when absent.
    Exact(&'a str),
    /// True for values that start with the first and end with the second text, which may overlap in the value
    /// (`ab*ba` matches `aba`); either may be empty. False when absent.
    Affix(&'a str, &'a str),
    /// True for every value, the empty one included; false when absent.
    Present,
    /// True only when absent.
    Absent,
    /// Anything else: the engine calls [`ValueTest::test`].
    Opaque,
}

impl Shape<'_> {
    /// Evaluates a shape that is not [`Shape::Opaque`] on bytes.
    pub fn test_bytes(self, value: Option<&[u8]>) -> Option<bool> {
        Some(match (self, value) {
            (Shape::Opaque, _) => return None,
            (Shape::Absent, value) => value.is_none(),
            (_, None) => false,
            (Shape::Present, Some(_)) => true,
            (Shape::Exact(text), Some(value)) => text.as_bytes() == value,
            (Shape::Affix(head, tail), Some(value)) => {
                value.starts_with(head.as_bytes()) && value.ends_with(tail.as_bytes())
            }
        })
    }
}

/// A shared [`ValueTest`].
pub type Test = Arc<dyn ValueTest>;

/// One property of an invoker.
#[derive(Clone, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Column {
    /// A parameter of the URL. Absent when the URL has no such key; `?x` and `?x=` are present and empty.
    Parameter(Arc<str>),
    /// Scheme of the URL; absent when empty.
    Protocol,
    /// User name; absent when the URL has none.
    Username,
    /// Password; absent when the URL has none.
    Password,
    /// Host as written, IPv6 literals with their brackets; absent when empty.
    Host,
    /// Port as decimal text; absent when the URL has none or it is 0.
    Port,
    /// `host:port`, or `host` without a port.
    Address,
    /// Path without the leading slash; absent when empty.
    Path,
    /// The provider's application: parameter `remote.application`, else `application`.
    Application,
}

impl Column {
    /// The column of a URL parameter.
    pub fn parameter(name: impl Into<Arc<str>>) -> Column {
        Column::Parameter(name.into())
    }

    /// The name people write in rules.
    pub fn name(&self) -> &str {
        match self {
            Column::Parameter(name) => name,
            Column::Protocol => "protocol",
            Column::Username => "username",
            Column::Password => "password",
            Column::Host => "host",
            Column::Port => "port",
            Column::Address => "address",
            Column::Path => "path",
            Column::Application => "remote.application",
        }
    }
}

/// Selects invokers.
#[derive(Clone)]
pub enum RowTest {
    /// Every invoker.
    Any,
    /// No invoker.
    Never,
    /// Those whose column passes the test.
    Value(Column, Test),
    /// Those that the inner test does not select.
    Not(Box<RowTest>),
    /// Those that all inner tests select; an empty list selects everything.
    AllOf(Vec<RowTest>),
    /// Those that at least one inner test selects; an empty list selects nothing.
    AnyOf(Vec<RowTest>),
}

/// One property of a call.
#[derive(Clone, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum CallKey {
    /// The method name; for a generic call (`$invoke`, `$invokeAsync` with a string as first argument) that
    /// argument.
    Method,
    /// The method name as given, generic calls not unwrapped.
    RawMethod,
    /// The text of an argument; absent behind the last one. A null argument has the text given here (`null` in
    /// Java, `<nil>` in Go).
    Argument {
        /// From 0.
        index: u32,
        /// Text of a null argument.
        null: Arc<str>,
    },
    /// An attachment; absent when not set. The last one of a name counts.
    Attachment(Arc<str>),
}

impl fmt::Display for CallKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallKey::Method | CallKey::RawMethod => f.write_str("method"),
            CallKey::Argument { index, .. } => write!(f, "arguments[{index}]"),
            CallKey::Attachment(name) => write!(f, "attachments[{name}]"),
        }
    }
}

/// Tests a call.
#[derive(Clone)]
pub enum CallTest {
    /// True for every call.
    Always,
    /// True for no call.
    Never,
    /// The value test on one property of the call. Bytes that are not UTF-8 reach the test with replacement
    /// characters; the indexed shapes compare bytes.
    Value(CallKey, Test),
    /// Negation.
    Not(Box<CallTest>),
    /// All; an empty list is true.
    AllOf(Vec<CallTest>),
    /// At least one; an empty list is false.
    AnyOf(Vec<CallTest>),
}

/// What one router does with a list.
#[derive(Clone)]
pub struct Program {
    /// Run in order, each on the output of the one before.
    pub steps: Vec<Step>,
    /// Who decides what happens when nothing is left.
    pub fallback: Fallback,
    /// How many firing steps count.
    pub firing: Firing,
}

impl Program {
    /// A program of steps that decide their own fall-back, all of which run.
    pub fn new(steps: Vec<Step>) -> Program {
        Program { steps, fallback: Fallback::PerStep, firing: Firing::Every }
    }
}

/// Who decides what happens when nothing is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Fallback {
    /// Each step by its own `force`.
    #[default]
    PerStep,
    /// Conditions filter without a fall-back of their own (their `force` is not looked at) and stop at empty. If
    /// the program's result is empty, `force` is false and no [`Then::Empty`] with `last_word` caused it, the
    /// program's input is its output.
    WholeProgram {
        /// An empty result stands.
        force: bool,
    },
}

/// How many firing conditions of a program count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Firing {
    /// All that fire, in order.
    #[default]
    Every,
    /// The first [`Step::Condition`] that fires; those after it are skipped.
    First,
}

/// One step of a program.
#[derive(Clone)]
pub enum Step {
    /// "When the call looks so, keep these invokers."
    Condition(Condition),
    /// Tag routing.
    Tag(Tag),
    /// "Prefer these invokers, unless they are too few."
    Affinity(Affinity),
    /// "Keep the invokers whose column equals this property of the call."
    Equal(Equal),
}

/// If `when` does not hold, the list passes unchanged. Otherwise `then` decides.
#[derive(Clone)]
pub struct Condition {
    /// Tested against the call.
    pub when: CallTest,
    /// What to keep.
    pub then: Then,
    /// If `then` keeps nothing: true = the result is empty, false = the list passes unchanged. Not looked at
    /// under [`Fallback::WholeProgram`], nor by [`Then::Empty`].
    pub force: bool,
    /// The rule's own words, for explanations.
    pub text: Arc<str>,
}

/// The right side of a condition.
#[derive(Clone)]
pub enum Then {
    /// Keeps the invokers the test selects.
    Keep(RowTest),
    /// Keeps nothing, whatever `force` says: a block list or switched-off traffic.
    Empty {
        /// Under [`Fallback::WholeProgram`]: true = stays empty, false = the fall-back may restore the list.
        last_word: bool,
    },
    /// Keeps one of several sets, drawn by weight.
    Destinations(Destinations),
}

/// Several sets of invokers of which each call gets one.
///
/// Sets that select nothing of the list are left out together with their weight. Of the rest only those with the
/// smallest `priority` stay. None: as if nothing was kept. One: it. Several: one is drawn, each with the exact
/// probability weight / sum of weights; if all weights are 0, each alike.
#[derive(Clone)]
pub struct Destinations {
    /// In rule order.
    pub list: Vec<Destination>,
    /// Draw by the hash of this property of the call instead of at random, so that one caller always gets the
    /// same destination; when the property is absent the draw is random.
    pub hash_key: Option<CallKey>,
    /// Draw as Dubbo does: of the sets drawn among, the first has one unit more than its weight and the last one
    /// less (a drawn number above 0 counts as the number below it).
    pub first_gains_one: bool,
}

/// One of several sets.
#[derive(Clone)]
pub struct Destination {
    /// Its invokers.
    pub rows: RowTest,
    /// Its share.
    pub weight: u32,
    /// Smaller ones first; larger ones only serve when no smaller one has an invoker.
    pub priority: i32,
    /// The rule's own words, for explanations.
    pub text: Arc<str>,
}

/// Tag routing. With *T* = the requested tag, *static* = the invokers whose parameter `dubbo.tag` equals *T*:
///
/// - T equal to `everyone`: the list passes.
/// - no `rule`, no T: keep `untagged`.
/// - no `rule`, T: keep static; nothing kept and not `force`: keep `untagged`.
/// - `rule`: see [`TagRule`].
///
/// The result may be empty; there is no further fall-back.
#[derive(Clone)]
pub struct Tag {
    /// The property that carries the tag, `attachments[dubbo.tag]`.
    pub tag: CallKey,
    /// An empty value of `tag` says "no tag", whatever `default_tag` says (dubbo-go), instead of "not given".
    pub empty_is_no_tag: bool,
    /// Calls for this tag get the whole list, tagged or not: broadcasts and health checks.
    pub everyone: Option<Arc<str>>,
    /// The tag when the call gives none: the consumer URL's parameter. Empty = none.
    pub default_tag: Option<Arc<str>>,
    /// The caller insists on the tag: no fall-back to untagged invokers.
    pub force: CallTest,
    /// Column of the static tag, normally parameter `dubbo.tag`.
    pub column: Column,
    /// Invokers for calls without a tag: normally those whose column is absent or empty.
    pub untagged: RowTest,
    /// The dynamic rule in force, if there is one and it is enabled.
    pub rule: Option<TagRule>,
    /// The rule's own words, for explanations.
    pub text: Arc<str>,
}

/// A dynamic tag rule. With S = the set found for the requested tag T:
///
/// - no T: drop `claimed`, then keep `untagged_without_tag`.
/// - S found: keep S. If something is kept, or `force`: that is the result.
/// - S not found: keep static. If something is kept, or `force` and `force_unknown`: that is the result.
/// - nothing kept: if the caller insists ([`Tag::force`]) the result is empty; otherwise the invokers that are
///   `untagged` and not claimed ([`FailoverClaim`]).
#[derive(Clone)]
pub struct TagRule {
    /// An empty set stands.
    pub force: bool,
    /// `force` also holds for tags the rule does not know (dubbo-go).
    pub force_unknown: bool,
    /// `a|b|c` tries the sets `a|b|c`, `a|b`, `a`, in this order, unless the caller insists.
    pub levels: bool,
    /// The sets; names are unique.
    pub sets: Vec<TagSet>,
    /// Invokers that calls without a tag never get: normally those of all sets.
    pub claimed: RowTest,
    /// Invokers that calls without a tag may get, `claimed` ones taken away: normally [`Tag::untagged`]; in
    /// Dubbo 2.7 also those whose static tag the rule does not know.
    pub untagged_without_tag: RowTest,
    /// What a tagged call that found nothing must not fall back to.
    pub failover: FailoverClaim,
}

/// What a tagged call that found nothing must not fall back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailoverClaim {
    /// The invokers of [`TagRule::claimed`].
    Claimed,
    /// Those of the requested set alone (dubbo-go).
    Requested,
}

/// The invokers of one tag.
#[derive(Clone)]
pub struct TagSet {
    /// The tag.
    pub name: Arc<str>,
    /// Its invokers.
    pub rows: RowTest,
    /// The set counts as not there while no invoker of the whole list is in it (`match` sets).
    pub gone_when_empty: bool,
}

/// Keeps `rows` if they are at least `ratio` per cent of the list; otherwise the list passes unchanged.
#[derive(Clone)]
pub struct Affinity {
    /// The preferred ones.
    pub rows: RowTest,
    /// 0 to 100.
    pub ratio: f64,
    /// With ratio 0 an empty choice counts as enough and is the result (upstream); false: the list passes.
    pub keep_empty: bool,
    /// The rule's own words, for explanations.
    pub text: Arc<str>,
}

/// Keeps the invokers whose column equals a property of the call. Absent or empty property: the list passes.
#[derive(Clone)]
pub struct Equal {
    /// The property.
    pub key: CallKey,
    /// The column.
    pub column: Column,
    /// No such invoker: true = empty, false = the list passes.
    pub force: bool,
    /// The rule's own words, for explanations.
    pub text: Arc<str>,
}

/// What is known about the chain when a rule is lowered for it.
#[derive(Clone, Copy)]
pub struct Lowering<'a> {
    /// The chain's consumer URL.
    pub consumer: &'a Url,
    /// The dialect, a number that the rule languages give out.
    pub dialect: u8,
}

/// A parsed rule, whatever its language. Shared by every chain that wants its key.
pub trait Rule: Send + Sync {
    /// The program for one chain. Called when the rule or the chain changes, never per call.
    fn lower(&self, at: &Lowering<'_>) -> Result<Program>;

    /// The program for a chain that has one of an earlier text of this rule, which is taken over where it is the
    /// same. The answer must be that of [`lower`](Self::lower).
    fn lower_after(&self, at: &Lowering<'_>, earlier: &dyn Rule, program: &Program) -> Result<Program> {
        let _ = (earlier, program);
        self.lower(at)
    }

    /// Version text for the status, for example `v3.1`.
    fn version(&self) -> &str {
        ""
    }

    /// False: the rule is there but does nothing (disabled, invalid, without conditions).
    fn in_force(&self) -> bool {
        true
    }

    /// The rule itself, for routers that are no program and know its type.
    fn as_any(&self) -> Option<&dyn std::any::Any> {
        None
    }
}

impl RowTest {
    /// True when both are made of the very same tests. False says nothing.
    pub(crate) fn is_the_same(&self, other: &RowTest) -> bool {
        let all = |one: &[RowTest], other: &[RowTest]| {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.is_the_same(other))
        };
        match (self, other) {
            (RowTest::Any, RowTest::Any) | (RowTest::Never, RowTest::Never) => true,
            (RowTest::Value(column, test), RowTest::Value(other, other_test)) => {
                Arc::ptr_eq(test, other_test) && column == other
            }
            (RowTest::Not(one), RowTest::Not(other)) => one.is_the_same(other),
            (RowTest::AllOf(one), RowTest::AllOf(other)) => all(one, other),
            (RowTest::AnyOf(one), RowTest::AnyOf(other)) => all(one, other),
            _ => false,
        }
    }
}

impl fmt::Debug for RowTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RowTest::Any => f.write_str("any"),
            RowTest::Never => f.write_str("none"),
            RowTest::Value(column, test) => write!(f, "{} {}", column.name(), test.words()),
            RowTest::Not(inner) => write!(f, "not {inner:?}"),
            RowTest::AllOf(list) => f.debug_list().entries(list).finish(),
            RowTest::AnyOf(list) => f.debug_set().entries(list).finish(),
        }
    }
}

impl fmt::Debug for CallTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallTest::Always => f.write_str("always"),
            CallTest::Never => f.write_str("never"),
            CallTest::Value(key, test) => write!(f, "{key} {}", test.words()),
            CallTest::Not(inner) => write!(f, "not {inner:?}"),
            CallTest::AllOf(list) => f.debug_list().entries(list).finish(),
            CallTest::AnyOf(list) => f.debug_set().entries(list).finish(),
        }
    }
}
