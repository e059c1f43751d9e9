//! The routers that a chain has by its dialect, and the ones a URL adds.

use super::condition::StaticRule;
use super::dialect::{Dialect, Role, application_rule_key, service_rule_key};
use super::slot::Slot;
use super::{RuleKind, lower};
use crate::chain::program;
use crate::chain::router::{RouterSlot, SlotBody, SlotKey};
use crate::chain::store::{Language, RuleState};
use crate::chain::url::Url;
use crate::error::{Error, Result, Source, Status};
use std::sync::Arc;

/// The rule languages of this room, for a rule store. Scripts are compiled on threads of their own.
pub fn languages() -> Vec<Arc<dyn Language>> {
    #[cfg(feature = "script")]
    return languages_with(super::script::ScriptLanguage::default());
    #[cfg(not(feature = "script"))]
    without_scripts()
}

/// The same, with the bounds and threads scripts are to have.
#[cfg(feature = "script")]
pub fn languages_with(scripts: super::script::ScriptLanguage) -> Vec<Arc<dyn Language>> {
    let mut languages = without_scripts();
    languages.push(Arc::new(scripts));
    languages
}

fn without_scripts() -> Vec<Arc<dyn Language>> {
    let mut languages: Vec<Arc<dyn Language>> =
        RuleKind::ALL.into_iter().map(|kind| Arc::new(kind) as Arc<dyn Language>).collect();
    languages.push(Arc::new(super::mesh::MeshLanguage));
    languages
}

impl Language for RuleKind {
    fn suffix(&self) -> &str {
        RuleKind::suffix(*self)
    }

    fn open(&self, dialect: u8) -> Box<dyn RuleState> {
        Box::new(Slot::new(*self, Dialect::from_number(i32::from(dialect)).unwrap_or_default()))
    }
}

impl RuleState for Slot {
    fn set(&mut self, text: &str) -> Result<()> {
        Slot::set(self, Some(text)).error.map_or(Ok(()), Err)
    }

    fn remove(&mut self) {
        Slot::remove(self);
    }

    fn active(&self) -> Option<Arc<dyn program::Rule>> {
        Slot::active(self).map(|rule| Arc::clone(rule) as Arc<dyn program::Rule>)
    }
}

/// The built-in routers of a chain, in the dialect's order, with the keys of the rules they follow. Routers whose
/// rule language is not here (mesh, scripts) are not in the list; whoever has them adds them at their
/// [`place`].
///
/// # Errors
/// The consumer URL asks for a static condition (`router=condition`) and its `rule` is unusable.
pub fn built_in(dialect: Dialect, consumer: &Url) -> Result<Vec<RouterSlot>> {
    let parameter = |name: &str| consumer.given(name).unwrap_or_default();
    let (version, group) = (parameter("version"), parameter("group"));
    let application = consumer.given("application");
    let of_service = |kind| {
        let key = service_rule_key(dialect, kind, consumer.interface(), version, group);
        SlotKey::Fixed(key.into())
    };
    let of_provider = |kind: RuleKind, except: Option<&str>| SlotKey::ProviderApplication {
        suffix: kind.suffix().into(),
        except: except.map(Into::into),
    };
    let mut routers = Vec::new();
    if dialect.table().service_key_filter {
        let program = lower::service_key(consumer);
        routers.push(RouterSlot::new("service-key", i64::MIN, SlotBody::Program(Arc::new(program))));
    }
    for place in dialect.table().routers {
        let by_key = |key| SlotBody::Rule { key, otherwise: None };
        let body = match place.role {
            Role::Mock => SlotBody::Program(Arc::new(lower::mock())),
            Role::Address => SlotBody::Program(Arc::new(lower::address())),
            Role::Tag => SlotBody::Rule {
                key: of_provider(RuleKind::Tag, None),
                otherwise: Some(Arc::new(lower::tag(None, consumer, dialect))),
            },
            Role::Service => by_key(of_service(RuleKind::Condition)),
            // The consumer's own application has a router of its own; its rule would be applied twice.
            Role::ProviderApplication => by_key(of_provider(RuleKind::Condition, application)),
            Role::Application => match application {
                Some(application) => {
                    by_key(SlotKey::Fixed(application_rule_key(RuleKind::Condition, application).into()))
                }
                None => continue,
            },
            Role::AffinityService => by_key(of_service(RuleKind::Affinity)),
            Role::AffinityProviderApplication => by_key(of_provider(RuleKind::Affinity, None)),
            Role::Mesh | Role::Script => continue,
        };
        let slot = RouterSlot::new(place.name, place.order, body);
        routers.push(if place.role == Role::Address { slot.on_request() } else { slot });
    }
    let named = parameter("router").split(',').any(|word| word.trim() == "condition");
    if named && consumer.parameter("rule").is_some() {
        routers.push(static_router(consumer, consumer, dialect)?);
    }
    Ok(routers)
}

/// Where a dialect has a router: its name and order.
pub fn place(dialect: Dialect, role: Role) -> Option<(&'static str, i64)> {
    let place = dialect.table().routers.iter().find(|place| place.role == role)?;
    Some((place.name, place.order))
}

/// What a URL's router is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaticKind {
    /// A condition, in the URL's `rule`.
    Condition,
    /// A script, in the URL's `rule`.
    Script,
    /// What the URL's `router` names (default: a script), in a file.
    File,
}

/// What kind of router a URL means: by its protocol (`condition://`, `script://`, `file://`), or by `router=` where
/// that is another (`route://...?router=script`).
///
/// # Errors
/// `E_UNSUPPORTED` for routers of another kind, `E_ARGUMENT` for a URL that names none.
pub fn static_kind(url: &Url) -> Result<StaticKind> {
    match url.protocol() {
        "condition" => return Ok(StaticKind::Condition),
        "script" => return Ok(StaticKind::Script),
        "file" => return Ok(StaticKind::File),
        _ => {}
    }
    match named(url) {
        Some("condition") => Ok(StaticKind::Condition),
        Some("script") => Ok(StaticKind::Script),
        Some(other) => Err(unknown(other)),
        None => {
            let message =
                format!("a '{}' URL needs router=condition or router=script to be a router", url.protocol());
            Err(Error::new(Status::E_ARGUMENT, message).subject("router"))
        }
    }
}

/// The first router that `router=` names.
fn named(url: &Url) -> Option<&str> {
    let words = url.given("router").unwrap_or_default().split(',').map(str::trim);
    words.filter(|word| !word.is_empty()).find(|word| !word.starts_with('-') && *word != "default")
}

fn unknown(router: &str) -> Error {
    let message = format!("no static router '{router}'; condition, script and file are known");
    Error::new(Status::E_UNSUPPORTED, message).subject("router")
}

/// A condition from a URL: `condition://0.0.0.0/com.foo.Bar?rule=...`, or `route://...` with `router=condition`; also
/// the consumer URL itself. `rule` is percent-decoded here. `empty://` clears and is no router. Scripts and files,
/// which need threads, are the engine's.
///
/// # Errors
/// `E_RULE` with the place in the decoded rule; as [`static_kind`].
pub fn static_router(url: &Url, consumer: &Url, dialect: Dialect) -> Result<RouterSlot> {
    match static_kind(url)? {
        StaticKind::Condition => {}
        StaticKind::Script => return Err(unknown("script")),
        StaticKind::File => return Err(unknown("file")),
    }
    static_condition(url, &rule_of(url)?, consumer, dialect)
}

/// A condition whose text is `rule`; everything else of it is the URL's.
///
/// # Errors
/// `E_RULE` naming the parameter, for `rule` with the place in it.
pub fn static_condition(url: &Url, rule: &str, consumer: &Url, dialect: Dialect) -> Result<RouterSlot> {
    let read =
        StaticRule::read(|name| if name == "rule" { Some(rule) } else { url.parameter(name) }, dialect)?;
    let program = lower::condition_rule(&read.rule, consumer, dialect);
    Ok(RouterSlot::new("condition", read.order, SlotBody::Program(Arc::new(program))))
}

/// The decoded `rule` of a URL; empty when it has none.
///
/// # Errors
/// `E_RULE` when it is not percent-encoded.
pub fn rule_of(url: &Url) -> Result<String> {
    url.parameter("rule").map_or_else(|| Ok(String::new()), decode)
}

/// A static router's place by its URL's `priority`.
///
/// # Errors
/// `E_RULE` when it is no whole number.
pub fn priority_of(url: &Url, dialect: Dialect) -> Result<i64> {
    match url.parameter("priority").filter(|text| !text.is_empty()) {
        None => Ok(dialect.table().static_order),
        Some(text) => text.parse::<i32>().map(i64::from).map_err(|_| {
            let message = format!("'{text}' is not a whole number");
            Error::new(Status::E_RULE, message).subject("priority").source(Source::Parser)
        }),
    }
}

/// A URL's switch; false when it is not there.
///
/// # Errors
/// `E_RULE` when it is neither true nor false.
pub fn flag_of(url: &Url, name: &str) -> Result<bool> {
    match url.parameter(name).filter(|text| !text.is_empty()) {
        None => Ok(false),
        Some(text) => super::header::parse_flag(text).ok_or_else(|| {
            let message = format!("'{text}' is neither true nor false");
            Error::new(Status::E_RULE, message).subject(name).source(Source::Parser)
        }),
    }
}

/// Percent-decoding as forms do it: `+` is a space.
fn decode(text: &str) -> Result<String> {
    let refused =
        |message: String| Error::new(Status::E_RULE, message).subject("rule").source(Source::Parser);
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
                match (digit(rest.next()), digit(rest.next())) {
                    (Some(high), Some(low)) => bytes.push(u8::try_from(high * 16 + low).unwrap_or(b'?')),
                    _ => return Err(refused("a % without two hexadecimal digits behind it".to_owned())),
                }
            }
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).map_err(|_| refused("the decoded text is not UTF-8".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dialect: Dialect, consumer: &str) -> Vec<String> {
        let consumer = Url::parse(consumer).unwrap();
        built_in(dialect, &consumer).unwrap().iter().map(|slot| format!("{slot:?}")).collect()
    }

    #[test]
    fn routers_follow_the_dialect_and_the_consumer() {
        let with_application = "consumer://10.0.1.1/com.foo.Bar?application=c";
        assert_eq!(
            names(Dialect::Byway, with_application),
            [
                "mock@-100",
                "tag@100",
                "affinity_service@130",
                "affinity-provider-app@135",
                "service@140",
                "provider-app@145",
                "app@150",
                "address@180"
            ]
        );
        assert_eq!(
            names(Dialect::Dubbo27, "consumer://10.0.1.1/com.foo.Bar"),
            ["mock@-100", "tag@100", "service@140", "address@180"]
        );
    }

    #[test]
    fn a_url_becomes_a_static_router_or_an_error_that_says_why() {
        let consumer = Url::parse("consumer://10.0.1.1/com.foo.Bar").unwrap();
        let read = |text: &str| static_router(&Url::parse(text).unwrap(), &consumer, Dialect::Byway);
        let router =
            read("condition://0.0.0.0/com.foo.Bar?rule=host%3D10.0.1.1+%3D%3E+region%3Dhz&priority=7");
        assert_eq!(router.unwrap().priority, 7);
        for (text, status, words) in [
            ("route://0.0.0.0/S?rule=a", Status::E_ARGUMENT, "needs router=condition"),
            ("route://0.0.0.0/S?router=script&rule=a", Status::E_UNSUPPORTED, "no static router 'script'"),
            ("route://0.0.0.0/S?router=tag&rule=a", Status::E_UNSUPPORTED, "no static router 'tag'"),
            ("condition://0.0.0.0/S", Status::E_RULE, "empty"),
            ("condition://0.0.0.0/S?rule=%zz", Status::E_RULE, "hexadecimal"),
            ("condition://0.0.0.0/S?rule=a%3D%3Db", Status::E_RULE, "may not stand"),
            ("condition://0.0.0.0/S?rule=a&force=maybe", Status::E_RULE, "neither true nor false"),
            ("condition://0.0.0.0/S?rule=a&priority=x", Status::E_RULE, "whole number"),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!(error.status(), status, "{text}: {error}");
            assert!(error.message().contains(words), "{text}: {error}");
        }
    }
}
