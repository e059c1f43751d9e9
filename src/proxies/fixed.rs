//! Selectors that look at the scheme or at nothing.

use super::bypass::BypassList;
use super::no_proxy::NoProxy;
use super::{Choice, Listed, ProxyList, ProxySelector, Target, Why};
use crate::error::{Error, Result, Status};
use once_cell::sync::Lazy;
use std::sync::Arc;

/// The list `[DIRECT]`, shared.
pub fn direct_list() -> ProxyList {
    static DIRECT: Lazy<ProxyList> = Lazy::new(|| Arc::from([Listed::Direct]));
    DIRECT.clone()
}

/// DIRECT for everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Direct;

impl ProxySelector for Direct {
    fn select(&self, _: &Target<'_>) -> Result<Choice> {
        Ok(Choice { proxies: direct_list(), why: Why::Fixed })
    }
}

/// One list for everything, loopback included: what a person set explicitly is not second-guessed.
#[derive(Clone, Debug)]
pub struct Fixed {
    proxies: ProxyList,
}

impl Fixed {
    /// `E_EMPTY_ANSWER` for an empty list: DIRECT must be said.
    pub fn new(proxies: impl Into<ProxyList>) -> Result<Fixed> {
        Ok(Fixed { proxies: not_empty(proxies.into(), "proxies")? })
    }
}

impl ProxySelector for Fixed {
    fn select(&self, _: &Target<'_>) -> Result<Choice> {
        Ok(Choice { proxies: self.proxies.clone(), why: Why::Fixed })
    }
}

pub(crate) fn not_empty(proxies: ProxyList, subject: &str) -> Result<ProxyList> {
    if proxies.is_empty() {
        return Err(
            Error::new(Status::E_EMPTY_ANSWER, "an empty list; say DIRECT to mean it").subject(subject)
        );
    }
    Ok(proxies)
}

/// Hosts that are not proxied.
#[derive(Clone, Debug, Default)]
pub enum Exceptions {
    /// None, not even loopback.
    #[default]
    None,
    /// A browser's, Windows' or macOS' list.
    Bypass(BypassList),
    /// A `NO_PROXY` list.
    NoProxy(Box<NoProxy>),
    /// Reversed: the only hosts that are proxied.
    Only(Box<Exceptions>),
}

impl Exceptions {
    /// Why `target` is reached directly, or `None` when it is proxied.
    pub fn decide(&self, target: &Target<'_>) -> Option<Why> {
        match self {
            Exceptions::None => None,
            Exceptions::Bypass(list) => list.decide(target),
            Exceptions::NoProxy(list) => list.decide(target),
            Exceptions::Only(list) => match list.decide(target) {
                Some(Why::Exception(_)) => None,
                Some(other) => Some(other),
                None => Some(Why::NotListed),
            },
        }
    }

    /// Entries that were left out, one sentence each.
    pub fn ignored(&self) -> &[String] {
        match self {
            Exceptions::None => &[],
            Exceptions::Bypass(list) => list.ignored(),
            Exceptions::NoProxy(list) => list.ignored(),
            Exceptions::Only(list) => list.ignored(),
        }
    }
}

/// One choice per scheme and one for the rest. `T` is a list here, and a whole selector where an engine puts
/// selectors together.
#[derive(Clone, Debug)]
pub struct Schemes<T> {
    own: Vec<(Arc<str>, T)>,
    fallback: Option<T>,
}

impl<T> Default for Schemes<T> {
    fn default() -> Self {
        Schemes { own: Vec::new(), fallback: None }
    }
}

impl<T> Schemes<T> {
    /// Sets the choice for a scheme; the last one set counts.
    pub fn set(&mut self, scheme: &str, choice: T) {
        let scheme = scheme.to_ascii_lowercase();
        self.own.retain(|(known, _)| **known != *scheme);
        self.own.push((scheme.into(), choice));
    }

    /// Sets the choice for schemes without one of their own.
    pub fn set_fallback(&mut self, choice: T) {
        self.fallback = Some(choice);
    }

    /// Every choice.
    pub fn all(&self) -> impl Iterator<Item = &T> {
        self.own.iter().map(|(_, choice)| choice).chain(&self.fallback)
    }

    /// The choice for a scheme, in the order: own, for ws and wss that of http and https, fallback.
    pub fn find(&self, scheme: &str) -> Option<(Why, &T)> {
        let own = |wanted: &str| {
            let (name, choice) = self.own.iter().find(|(name, _)| **name == *wanted)?;
            Some((Why::Scheme(name.clone()), choice))
        };
        own(scheme)
            .or_else(|| match scheme {
                "ws" => own("http"),
                "wss" => own("https"),
                _ => None,
            })
            .or_else(|| Some((Why::Otherwise, self.fallback.as_ref()?)))
    }
}

/// One list per scheme, a fallback, and exceptions.
#[derive(Clone, Debug, Default)]
pub struct PerScheme {
    lists: Schemes<ProxyList>,
    exceptions: Exceptions,
}

impl PerScheme {
    /// No proxy for any scheme, no exceptions.
    pub fn new() -> PerScheme {
        PerScheme::default()
    }

    /// Sets the list for a scheme; the last one set counts.
    pub fn set(&mut self, scheme: &str, proxies: impl Into<ProxyList>) -> Result<()> {
        self.lists.set(scheme, not_empty(proxies.into(), scheme)?);
        Ok(())
    }

    /// Sets the list for schemes without one of their own.
    pub fn set_fallback(&mut self, proxies: impl Into<ProxyList>) -> Result<()> {
        self.lists.set_fallback(not_empty(proxies.into(), "fallback")?);
        Ok(())
    }

    /// Sets the hosts that are not proxied.
    pub fn set_exceptions(&mut self, exceptions: Exceptions) {
        self.exceptions = exceptions;
    }
}

impl ProxySelector for PerScheme {
    fn select(&self, target: &Target<'_>) -> Result<Choice> {
        let Some((why, list)) = self.lists.find(target.scheme) else {
            return Ok(Choice { proxies: direct_list(), why: Why::NoSetting });
        };
        Ok(match self.exceptions.decide(target) {
            Some(why) => Choice { proxies: direct_list(), why },
            None => Choice { proxies: list.clone(), why },
        })
    }

    fn diagnostics(&self) -> Vec<String> {
        self.exceptions.ignored().to_vec()
    }
}
