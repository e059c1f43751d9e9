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
    Only(Box<NoProxy>),
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
            Exceptions::NoProxy(list) | Exceptions::Only(list) => list.ignored(),
        }
    }
}

/// One list per scheme, a fallback, and exceptions.
#[derive(Clone, Debug, Default)]
pub struct PerScheme {
    lists: Vec<(Arc<str>, ProxyList)>,
    fallback: Option<ProxyList>,
    exceptions: Exceptions,
}

impl PerScheme {
    /// No proxy for any scheme, no exceptions.
    pub fn new() -> PerScheme {
        PerScheme::default()
    }

    /// Sets the list for a scheme; the last one set counts.
    pub fn set(&mut self, scheme: &str, proxies: impl Into<ProxyList>) -> Result<()> {
        let proxies = not_empty(proxies.into(), scheme)?;
        let scheme = scheme.to_ascii_lowercase();
        self.lists.retain(|(known, _)| **known != *scheme);
        self.lists.push((scheme.into(), proxies));
        Ok(())
    }

    /// Sets the list for schemes without one of their own.
    pub fn set_fallback(&mut self, proxies: impl Into<ProxyList>) -> Result<()> {
        self.fallback = Some(not_empty(proxies.into(), "fallback")?);
        Ok(())
    }

    /// Sets the hosts that are not proxied.
    pub fn set_exceptions(&mut self, exceptions: Exceptions) {
        self.exceptions = exceptions;
    }

    /// The list for a scheme, in the order: own, for ws and wss that of http and https, fallback.
    fn list(&self, scheme: &str) -> Option<(Why, &ProxyList)> {
        let own = |wanted: &str| {
            let (name, list) = self.lists.iter().find(|(name, _)| **name == *wanted)?;
            Some((Why::Scheme(name.clone()), list))
        };
        own(scheme)
            .or_else(|| match scheme {
                "ws" => own("http"),
                "wss" => own("https"),
                _ => None,
            })
            .or_else(|| Some((Why::Fixed, self.fallback.as_ref()?)))
    }
}

impl ProxySelector for PerScheme {
    fn select(&self, target: &Target<'_>) -> Result<Choice> {
        let Some((why, list)) = self.list(target.scheme) else {
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
