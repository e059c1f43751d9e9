//! Ordered rules: the first pattern that covers the target names its proxies.

use super::bypass::{BypassList, Style};
use super::fixed::not_empty;
use super::{Choice, ProxyList, ProxySelector, Target, Why};
use crate::error::{Error, Result, Status};

/// Ordered rules. Each pattern is an exception list in browser grammar (`*.corp;10.0.0.0/8;https://x:8443`)
/// without implicit loopback entries: what is written is what matches.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    rules: Vec<(BypassList, ProxyList)>,
    otherwise: Option<ProxyList>,
}

impl Rules {
    /// No rules: every question is an error until [`Rules::otherwise`] says what else to do.
    pub fn new() -> Rules {
        Rules::default()
    }

    /// Adds a rule behind the others. `E_ARGUMENT` when an entry of the pattern means nothing.
    pub fn add(&mut self, pattern: &str, proxies: impl Into<ProxyList>) -> Result<()> {
        let list = BypassList::new(pattern, Style::Browser).with_implicit(false);
        if let Some(why) = list.ignored().first() {
            return Err(
                Error::new(Status::E_ARGUMENT, why.clone()).subject(format!("rule {}", self.rules.len()))
            );
        }
        self.rules.push((list, not_empty(proxies.into(), pattern)?));
        Ok(())
    }

    /// What holds when no rule matches.
    pub fn otherwise(&mut self, proxies: impl Into<ProxyList>) -> Result<()> {
        self.otherwise = Some(not_empty(proxies.into(), "otherwise")?);
        Ok(())
    }
}

impl ProxySelector for Rules {
    fn select(&self, target: &Target<'_>) -> Result<Choice> {
        for (index, (pattern, proxies)) in self.rules.iter().enumerate() {
            if pattern.decide(target).is_some() {
                let why = Why::Rule(u32::try_from(index).unwrap_or(u32::MAX));
                return Ok(Choice { proxies: proxies.clone(), why });
            }
        }
        match &self.otherwise {
            Some(proxies) => Ok(Choice { proxies: proxies.clone(), why: Why::Fixed }),
            None => Err(Error::new(
                Status::E_PROXY_SELECTOR,
                "no rule covers this target and there is no default",
            )
            .subject(target.host)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxies::{Listed, OwnedTarget, Proxy, ProxyKind};
    use std::sync::Arc;

    #[test]
    fn the_first_rule_that_matches_decides_and_silence_is_an_error() {
        let mut rules = Rules::new();
        let proxy = |host| vec![Listed::Proxy(Arc::new(Proxy::new(ProxyKind::Http, host, 1).unwrap()))];
        rules.add("*.corp;10.0.0.0/8", proxy("a")).unwrap();
        rules.add("www.corp;localhost", proxy("b")).unwrap();
        assert_eq!(rules.add("http://", proxy("c")).unwrap_err().status(), Status::E_ARGUMENT);
        for (uri, want) in [
            ("http://www.corp/", "a"),
            ("http://10.1.1.1/", "a"),
            ("http://localhost/", "b"),
            ("http://x/", ""),
        ] {
            let got = rules.select(&OwnedTarget::parse(uri).unwrap().borrow());
            match got {
                Ok(choice) => assert_eq!(crate::proxies::shown(&choice.proxies[0]), format!("http {want}:1")),
                Err(error) => assert_eq!((error.status(), want), (Status::E_PROXY_SELECTOR, "")),
            }
        }
    }
}
