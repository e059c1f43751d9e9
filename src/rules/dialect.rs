//! The four dialects of Dubbo's rule languages, as one table.
//!
//! A rule text means slightly different things to a Java 3.3 consumer, a Java 2.7 consumer and a Go consumer.
//! [`Dialect`] names whose answer is wanted; [`Dialect::table`] is everything in which the answers differ, one
//! field per point, one reason per field. No other file asks which dialect it is: it asks for a field.

use super::RuleKind;
use crate::chain::pick::Quirks;

/// Whose reading of a rule is wanted. Numbers are fixed for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(i32)]
pub enum Dialect {
    /// Dubbo Java 3.3 for well-formed rules, right where it is plainly wrong. The default.
    #[default]
    Byway = 0,
    /// Dubbo Java 3.3 (affinity as of 3.3.6).
    Dubbo3 = 1,
    /// Dubbo Java 2.7.
    Dubbo27 = 2,
    /// dubbo-go 3.3.
    DubboGo = 3,
}

/// What a key that the other side does not carry does to a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbsentKey {
    /// Never matches, not even with `!=`.
    NoMatch,
    /// Matches when the key has only `!=` values or none at all.
    MatchesUnlessWanted,
}

/// What `arguments[9]` of a two-argument call, or a malformed `arguments`/`attachments` key, reads as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingValue {
    /// An absent key.
    Absent,
    /// The text [`SENTINEL`], which the patterns are then tried on.
    Sentinel,
    /// A failed condition, whatever its patterns.
    NoMatch,
}

/// The text that Dubbo Java 3.2 and later reads in place of a missing argument or a malformed key.
pub const SENTINEL: &str = "dubbo_internal_not_found_argument_condition_value";

/// How `attachments[...]` keys are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachmentKey {
    /// Anything up to the last bracket.
    Whole,
    /// Cut at the first `.`, then up to the last bracket.
    CutAtDot,
    /// ASCII letters, digits and `_` only.
    Word,
    /// No such thing: a URL parameter of that very name.
    Parameter,
}

/// How `a~b` is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeStyle {
    /// 64-bit, either end may be open, a bad bound is a parse error, a value that is no number is outside.
    Strict,
    /// 32-bit, text that is not all digits counts as 0, `a~` and overflow answer false on the left and true
    /// on the right.
    Java,
    /// 64-bit, `a~` works, a bad number answers false on the left and true on the right.
    Go,
    /// Plain text.
    Literal,
}

/// Which `*` of a pattern stands for anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StarStyle {
    /// Every one.
    Every,
    /// Only the last one; text before and after it may overlap in the value.
    Last,
}

/// Where the words `consumer.` and `provider.` are taken out of a rule string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefixes {
    /// In front of a key.
    BeforeKeys,
    /// Anywhere, values included.
    Anywhere,
}

/// What falls back when a rule without `force` matches nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// The one condition: the next one goes on with its input.
    Condition,
    /// The whole rule: the answer is the list that entered it.
    Rule,
}

/// What a condition that blocks (`when =>`) does without `force`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// Empties the list.
    Always,
    /// Empties it only with `force`; otherwise the fallback undoes it.
    NeedsForce,
}

/// How destinations are drawn by weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// Each destination gets exactly its share.
    Exact,
    /// The first gets one unit more, the last one unit less (`<= 0` where `< 0` was meant).
    FirstGainsOne,
}

/// What a v3.1 `to.match: "false"` selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FalseDestination {
    /// Nobody.
    Nobody,
    /// Everybody.
    Everybody,
    /// Providers with a key named `false`, that is nobody; `true` in `from.match` is a key likewise.
    Key,
}

/// How `configVersion` chooses the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionChoice {
    /// By number; unknown ones are an error, none is v3.0.
    Strict,
    /// By text order: before `v3.1` is v3.0, beginning with it is v3.1, after it no rule at all.
    Java,
    /// By number and required; everything from 3.1 on is v3.1.
    Go,
    /// Not looked at: always v3.0.
    Ignored,
}

/// How YAML values become booleans, texts and numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coercion {
    /// Wrong types are errors; booleans also as text.
    Strict,
    /// Booleans by text (`true` in any case, all else false), texts must be texts, numbers by text.
    Java3,
    /// Booleans and numbers must be such, scalars become texts.
    Java27,
    /// As typed structures decode: scalars become texts, booleans and numbers must be such.
    Go,
}

/// What an update that cannot be used does to the rule in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// Errors keep the last good rule; empty text, no conditions and `valid: false` remove it.
    KeepOnError,
    /// Errors, empty text, no conditions and `valid: false` all keep the conditions in force, though the
    /// schema version of the new text takes effect first (so another version's conditions may come back).
    Java,
    /// Everything but a good rule removes it.
    Drop,
}

/// How tag addresses are compared with a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressStyle {
    /// IP expressions, networks and ranges, every family and loopback alike.
    Ip,
    /// As Dubbo's `NetUtils`: 127.0.0.1 and 0.0.0.0 never match a dotted pattern, networks cross families.
    JavaIp,
    /// Text equality with `host:port` or `0.0.0.0:port`.
    Literal,
}

/// Which `match` entries of a tag are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagMatch {
    /// All.
    Always,
    /// Those of rules whose `configVersion` begins with `v3.0`.
    V30Only,
    /// None.
    Never,
}

/// Which providers an untagged call gets under a tag rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UntaggedCall {
    /// Those in no group of the rule and without a static tag.
    NoTagAtAll,
    /// Those in no group of the rule and without a static tag that the rule names.
    NoTagOfTheRule,
}

/// Which providers are left when a call's tag has nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagFailover {
    /// Untagged ones outside every group of the rule.
    OutsideEveryGroup,
    /// Untagged ones outside the addresses of the asked tag.
    OutsideAskedGroup,
}

/// How an affinity consumer's own value is found and used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AffinityValue {
    /// As `$key` in a condition: URL parts and parameters; absent matches nobody.
    Reference,
    /// A parameter, used as a full pattern (ranges too); absent gives up if any provider has the key.
    JavaParameter,
}

/// Which of the consumer's parameters lie over a provider's, where a list comes from a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsumerParameters {
    /// Those that say how one provider is picked.
    ForPicking,
    /// All but those that describe the provider.
    All,
    /// Those that say how one provider is picked; others where the provider has none.
    WhereMissing,
}

/// One router of a chain and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name in `router=` lists, explanations and status.
    pub name: &'static str,
    /// Routers run in ascending order.
    pub order: i64,
    /// What it does.
    pub role: Role,
}

/// What a router of a chain does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Mock selector.
    Mock,
    /// Mesh rules.
    Mesh,
    /// Tags.
    Tag,
    /// Affinity rule of the service.
    AffinityService,
    /// Affinity rule of the provider's application.
    AffinityProviderApplication,
    /// Condition rule of the service.
    Service,
    /// Condition rule of the provider's application.
    ProviderApplication,
    /// Condition rule of the consumer's application.
    Application,
    /// Script rule of the provider's application.
    Script,
    /// The provider at the address that a call names.
    Address,
}

const fn at(name: &'static str, order: i64, role: Role) -> Place {
    Place { name, order, role }
}

/// Everything in which the dialects differ.
#[derive(Debug)]
pub struct Table {
    /// Name in options and explanations.
    pub name: &'static str,
    /// Java before 3.2 lets `!=` match a missing key; 3.2 stopped that (a provider without `region` is not
    /// known to be outside it), and Go never did it.
    pub absent_key: AbsentKey,
    /// Java 3.2+ compares a marker text, so `arguments[9]!=a` is true of a call with one argument: nobody
    /// writes that on purpose, so the default reads it as absent.
    pub missing_value: MissingValue,
    /// Java cuts attachment keys at a dot, which makes `attachments[dubbo.tag]` unusable; the default does not.
    pub attachment_key: AttachmentKey,
    /// Java's `a~` never works and its broken ranges are true on the right: the default does what is meant or
    /// says why not.
    pub range: RangeStyle,
    /// `10.*.3.*` is what people write; upstream reads its first star as text.
    pub star: StarStyle,
    /// Networks (`10.0.0.0/8`) and ranges (`10.0.0.1~10.0.0.9`) in `host` and `address`: asked for since 2.7,
    /// plain text (or, for Java ranges, always true) upstream.
    pub ip_patterns: bool,
    /// Upstream deletes the words everywhere, so `application=my-consumer.app` asks for `my-app`.
    pub prefixes: Prefixes,
    /// Java falls back condition by condition, Go rule by rule.
    pub fallback: Fallback,
    /// In Go a block list without `force` is undone by the fallback.
    pub block: Block,
    /// Upstream's draw is off by one: weights 1 and 1 never reach the second destination.
    pub draw: Draw,
    /// A destination that says "false" reading as everybody is the opposite of v3.0's meaning.
    pub false_destination: FalseDestination,
    /// Go's URL map has no `address`, so `address=*:20880` never matches there.
    pub address_key: bool,
    /// Go keeps the leading slash of a path.
    pub path_slash: bool,
    /// Go gives port `0` to a URL without one; Java none.
    pub zero_port: bool,
    /// Go cannot tell an empty value from none.
    pub empty_is_absent: bool,
    /// Java's URL parser adds `s=f` for `default.s=f`; Go's does not.
    pub default_keys: bool,
    /// Java from 3.2.4 on sees through `$invoke`; a method rule that generic calls escape is no rule.
    pub unwrap_generic: bool,
    /// Java 2.7 has no v3.1 at all.
    pub version: VersionChoice,
    /// Each converter has its own idea of types.
    pub coercion: Coercion,
    /// A key written twice is a mistake that should be told; Java's YAML takes the last one.
    pub duplicate_keys_fail: bool,
    /// Go's v3.0 decoder dies of rules without `force` and `enabled`: there they are refused.
    pub flags_required: bool,
    /// What `enabled` is when a v3.1 or affinity rule does not say: Go decodes to off.
    pub enabled_default_v31: bool,
    /// Last good, or nothing.
    pub update: Update,
    /// A text without content means removal (config centres deliver it so); Java trips over it.
    pub empty_text_is_no_rule: bool,
    /// Go drops version `0.0.0` from rule keys.
    pub zero_version_is_none: bool,
    /// See [`AddressStyle`].
    pub tag_addresses: AddressStyle,
    /// A `match` that a missing or newer `configVersion` silently switches off helps nobody.
    pub tag_match: TagMatch,
    /// Go lets `match` win over `addresses`.
    pub tag_match_wins: bool,
    /// `a|b|c` falls back to `a|b`, then `a`: Java 3.3 on.
    pub tag_levels: bool,
    /// Java 2.7 lets untagged calls reach static tags that the rule does not name.
    pub untagged_call: UntaggedCall,
    /// Go excludes only the asked tag's addresses.
    pub tag_failover: TagFailover,
    /// Go returns an empty list under `force` also for tags that the rule does not know.
    pub tag_force_unknown: bool,
    /// Mesh: one block of `match` that fits is enough, as in Istio and in Java from July 2026 on; before, all had to.
    pub mesh_any_match: bool,
    /// Mesh: whole numbers count for number matchers, and `fallback: {subset: x}` as documented counts; Java drops
    /// both without a word.
    pub mesh_lenient: bool,
    /// Mesh: what Java throws out of the call (an index past the arguments, a route without destination) fails the
    /// call; else it matches nothing.
    pub mesh_faults: bool,
    /// Mesh: a weight of 0 is never drawn beside a positive one; Java makes 1 of everything below.
    pub mesh_zero_weight: bool,
    /// Go's `match` groups do not keep untagged calls out.
    pub untagged_ignores_match: bool,
    /// Go takes an empty `dubbo.tag` attachment for an answer; Java then asks the URL.
    pub empty_tag_counts: bool,
    /// Go's ParseBool also knows `1` and `t`; Java knows `true` in any case.
    pub force_tag_parse_bool: bool,
    /// Tag `*` reaches every provider: broadcasts and health checks need it.
    pub star_tag_is_all: bool,
    /// Affinity with ratio 0 and nobody matching leaves nothing upstream, though it is a preference.
    pub affinity_keeps_when_empty: bool,
    /// See [`AffinityValue`].
    pub affinity_value: AffinityValue,
    /// Java wants `v3.1` in exactly that case.
    pub affinity_wants_v31: bool,
    /// Go's ratio is a whole number, fractions are cut off.
    pub affinity_whole_ratio: bool,
    /// Unanchored in Go (`gra` matches `gray`), whole-value in Java.
    pub regex_unanchored: bool,
    /// Go cannot tell an empty operator from none, nor an empty value from a missing one.
    pub string_match_empty_is_unset: bool,
    /// The routers of a chain, ascending.
    pub routers: &'static [Place],
    /// `order` of a static router from a URL that names none.
    pub static_order: i64,
    /// Go routes only invokers of the consumer's own service key, unless there are none.
    pub service_key_filter: bool,
    /// Java 3.2 and later asks what the provider itself has registered, or `region=$region` would be true of everybody;
    /// 2.7 asks the merged URL, in which the consumer's parameters win, Go one in which the provider's do.
    pub consumer_parameters: ConsumerParameters,
    /// Java 3 stops a chain at an empty list; Go and 2.7 run on.
    pub fail_fast: bool,
    /// How one provider is picked. Java 3 draws without weights unless the first provider names one, a short cut
    /// that lets providers of weight 0 be called; with weights of 0 alone Java's round robin stays with the first;
    /// Go counts warm-up in seconds.
    pub pick: Quirks,
}

const BYWAY: Table = Table {
    name: "byway",
    mesh_any_match: true,
    mesh_lenient: true,
    mesh_faults: false,
    mesh_zero_weight: true,
    absent_key: AbsentKey::NoMatch,
    missing_value: MissingValue::Absent,
    attachment_key: AttachmentKey::Whole,
    range: RangeStyle::Strict,
    star: StarStyle::Every,
    ip_patterns: true,
    prefixes: Prefixes::BeforeKeys,
    fallback: Fallback::Condition,
    block: Block::Always,
    draw: Draw::Exact,
    false_destination: FalseDestination::Nobody,
    address_key: true,
    path_slash: false,
    zero_port: false,
    empty_is_absent: false,
    default_keys: true,
    unwrap_generic: true,
    version: VersionChoice::Strict,
    coercion: Coercion::Strict,
    duplicate_keys_fail: true,
    flags_required: false,
    enabled_default_v31: true,
    update: Update::KeepOnError,
    empty_text_is_no_rule: true,
    zero_version_is_none: false,
    tag_addresses: AddressStyle::Ip,
    tag_match: TagMatch::Always,
    tag_match_wins: false,
    tag_levels: true,
    untagged_call: UntaggedCall::NoTagAtAll,
    tag_failover: TagFailover::OutsideEveryGroup,
    tag_force_unknown: false,
    untagged_ignores_match: false,
    empty_tag_counts: false,
    force_tag_parse_bool: false,
    star_tag_is_all: true,
    affinity_keeps_when_empty: true,
    affinity_value: AffinityValue::Reference,
    affinity_wants_v31: true,
    affinity_whole_ratio: false,
    regex_unanchored: false,
    string_match_empty_is_unset: false,
    routers: &[
        at("mock", -100, Role::Mock),
        at("standard-mesh-rule", -50, Role::Mesh),
        at("tag", 100, Role::Tag),
        at("affinity_service", 130, Role::AffinityService),
        at("affinity-provider-app", 135, Role::AffinityProviderApplication),
        at("service", 140, Role::Service),
        at("provider-app", 145, Role::ProviderApplication),
        at("app", 150, Role::Application),
        at("address", 180, Role::Address),
        at("script-app", 200, Role::Script),
    ],
    static_order: 0,
    service_key_filter: false,
    consumer_parameters: ConsumerParameters::ForPicking,
    fail_fast: true,
    pick: Quirks {
        first_decides_about_weights: false,
        zero_weights_keep_first: false,
        warmup_in_seconds: false,
    },
};

const DUBBO_3: Table = Table {
    name: "dubbo-3",
    mesh_any_match: false,
    mesh_lenient: false,
    mesh_faults: true,
    mesh_zero_weight: false,
    missing_value: MissingValue::Sentinel,
    attachment_key: AttachmentKey::CutAtDot,
    range: RangeStyle::Java,
    star: StarStyle::Last,
    ip_patterns: false,
    prefixes: Prefixes::Anywhere,
    draw: Draw::FirstGainsOne,
    false_destination: FalseDestination::Everybody,
    version: VersionChoice::Java,
    coercion: Coercion::Java3,
    duplicate_keys_fail: false,
    update: Update::Java,
    empty_text_is_no_rule: false,
    tag_addresses: AddressStyle::JavaIp,
    tag_match: TagMatch::V30Only,
    star_tag_is_all: false,
    affinity_keeps_when_empty: false,
    affinity_value: AffinityValue::JavaParameter,
    pick: Quirks {
        first_decides_about_weights: true,
        zero_weights_keep_first: true,
        warmup_in_seconds: false,
    },
    ..BYWAY
};

static DUBBO_27: Table = Table {
    name: "dubbo-2.7",
    absent_key: AbsentKey::MatchesUnlessWanted,
    missing_value: MissingValue::NoMatch,
    attachment_key: AttachmentKey::Parameter,
    range: RangeStyle::Literal,
    unwrap_generic: false,
    version: VersionChoice::Ignored,
    coercion: Coercion::Java27,
    tag_match: TagMatch::Never,
    tag_levels: false,
    untagged_call: UntaggedCall::NoTagOfTheRule,
    routers: &[
        at("mock", -100, Role::Mock),
        at("tag", 100, Role::Tag),
        at("service", 140, Role::Service),
        at("app", 150, Role::Application),
        at("address", 180, Role::Address),
    ],
    consumer_parameters: ConsumerParameters::All,
    fail_fast: false,
    pick: Quirks {
        first_decides_about_weights: false,
        zero_weights_keep_first: true,
        warmup_in_seconds: false,
    },
    ..DUBBO_3
};

static DUBBO_GO: Table = Table {
    name: "dubbo-go",
    missing_value: MissingValue::Absent,
    attachment_key: AttachmentKey::Word,
    range: RangeStyle::Go,
    fallback: Fallback::Rule,
    block: Block::NeedsForce,
    false_destination: FalseDestination::Key,
    address_key: false,
    path_slash: true,
    zero_port: true,
    empty_is_absent: true,
    default_keys: false,
    unwrap_generic: false,
    version: VersionChoice::Go,
    coercion: Coercion::Go,
    duplicate_keys_fail: true,
    flags_required: true,
    enabled_default_v31: false,
    update: Update::Drop,
    zero_version_is_none: true,
    tag_addresses: AddressStyle::Literal,
    tag_match: TagMatch::Always,
    tag_match_wins: true,
    tag_levels: false,
    tag_failover: TagFailover::OutsideAskedGroup,
    tag_force_unknown: true,
    untagged_ignores_match: true,
    empty_tag_counts: true,
    force_tag_parse_bool: true,
    affinity_value: AffinityValue::Reference,
    affinity_wants_v31: false,
    affinity_whole_ratio: true,
    regex_unanchored: true,
    string_match_empty_is_unset: true,
    routers: &[
        at("service.affinity", i64::MIN, Role::AffinityService),
        at("application.affinity", i64::MIN, Role::AffinityProviderApplication),
        at("tag", 0, Role::Tag),
        at("consumer.script", 0, Role::Script),
        at("service.condition", 140, Role::Service),
        at("provider.condition", 145, Role::ProviderApplication),
        at("consumer.condition", 145, Role::Application),
    ],
    service_key_filter: true,
    consumer_parameters: ConsumerParameters::WhereMissing,
    fail_fast: false,
    pick: Quirks {
        first_decides_about_weights: false,
        zero_weights_keep_first: false,
        warmup_in_seconds: true,
    },
    ..DUBBO_3
};

impl Dialect {
    /// Every dialect, the default first.
    pub const ALL: [Dialect; 4] = [Dialect::Byway, Dialect::Dubbo3, Dialect::Dubbo27, Dialect::DubboGo];

    /// What this dialect does at each point where they differ.
    pub fn table(self) -> &'static Table {
        match self {
            Dialect::Byway => &BYWAY,
            Dialect::Dubbo3 => &DUBBO_3,
            Dialect::Dubbo27 => &DUBBO_27,
            Dialect::DubboGo => &DUBBO_GO,
        }
    }

    /// The dialect of a name: `byway`, `dubbo-3`, `dubbo-2.7`, `dubbo-go`.
    pub fn named(name: &str) -> Option<Dialect> {
        Dialect::ALL.into_iter().find(|dialect| dialect.table().name == name)
    }

    /// The dialect of a number from a host.
    pub fn from_number(number: i32) -> Option<Dialect> {
        Dialect::ALL.into_iter().find(|&dialect| dialect as i32 == number)
    }

    /// Whether this dialect has rules of a kind: affinity came with Java 3.3.6 and dubbo-go 3.3, mesh and
    /// scripts by rule with Java 3.
    pub fn has(self, kind: RuleKind) -> bool {
        match kind {
            RuleKind::Condition | RuleKind::Tag => true,
            RuleKind::Affinity => self != Dialect::Dubbo27,
        }
    }
}

/// The key under which a config centre holds a service's rules of a kind, for example
/// `com.foo.Bar:1.0.0:g.condition-router`: both colons always, whatever is empty. `interface` is the consumer's
/// `interface` parameter, else its path.
pub fn service_rule_key(
    dialect: Dialect,
    kind: RuleKind,
    interface: &str,
    version: &str,
    group: &str,
) -> String {
    let version = if dialect.table().zero_version_is_none && version == "0.0.0" { "" } else { version };
    format!("{interface}:{version}:{group}{}", kind.suffix())
}

/// The key under which a config centre holds an application's rules of a kind.
pub fn application_rule_key(kind: RuleKind, application: &str) -> String {
    format!("{application}{}", kind.suffix())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_lead_back() {
        for dialect in Dialect::ALL {
            assert_eq!(Dialect::named(dialect.table().name), Some(dialect));
            assert_eq!(Dialect::from_number(dialect as i32), Some(dialect));
        }
        assert_eq!(Dialect::from_number(99), None);
    }

    #[test]
    fn router_orders_ascend() {
        for dialect in Dialect::ALL {
            assert!(dialect.table().routers.is_sorted_by_key(|place| place.order));
        }
    }
}
