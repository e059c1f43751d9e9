//! Ordered rules: the first pattern that covers the target names its proxies.

use super::bypass::{BypassList, Style};
use super::fixed::not_empty;
use super::{Choice, ProxyList, ProxySelector, Target, Why};
use crate::error::{Error, Result, Status};
use std::sync::Arc;

/// Ordered rules. Each pattern is an exception list in browser grammar (`*.corp;10.0.0.0/8;https://x:8443`)
/// without implicit loopback entries: what is written is what matches. `T` is a list here, and a whole selector where
/// an engine puts selectors together.
#[derive(Clone, Debug)]
pub struct Rules<T = ProxyList> {
    rules: Vec<(Arc<str>, BypassList, T)>,
    otherwise: Option<T>,
}

impl<T> Default for Rules<T> {
    fn default() -> Self {
        Rules { rules: Vec::new(), otherwise: None }
    }
}

impl<T> Rules<T> {
    /// No rules: every question is an error until [`Rules::set_otherwise`] says what else to do.
    pub fn new() -> Rules<T> {
        Rules::default()
    }

    /// Adds a rule behind the others. `E_ARGUMENT` when an entry of the pattern means nothing, or there is none.
    pub fn push(&mut self, pattern: &str, choice: T) -> Result<()> {
        let list = BypassList::new(pattern, Style::Browser).with_implicit(false);
        let why = match list.ignored().first() {
            Some(why) => why.clone(),
            None if list.is_empty() => "an empty pattern; * covers every host".to_owned(),
            None => {
                self.rules.push((pattern.into(), list, choice));
                return Ok(());
            }
        };
        Err(Error::new(Status::E_ARGUMENT, why).subject(format!("rule {}", self.rules.len())))
    }

    /// What holds when no rule matches.
    pub fn set_otherwise(&mut self, choice: T) {
        self.otherwise = Some(choice);
    }

    /// Every choice.
    pub fn all(&self) -> impl Iterator<Item = &T> {
        self.rules.iter().map(|(_, _, choice)| choice).chain(&self.otherwise)
    }

    /// The first rule that covers the target. `E_PROXY_SELECTOR` when there is none and nothing else was said.
    pub fn find(&self, target: &Target<'_>) -> Result<(Why, &T)> {
        for (index, (text, pattern, choice)) in self.rules.iter().enumerate() {
            if pattern.decide(target).is_some() {
                let index = u32::try_from(index).unwrap_or(u32::MAX);
                return Ok((Why::Rule(index, text.clone()), choice));
            }
        }
        match &self.otherwise {
            Some(choice) => Ok((Why::Otherwise, choice)),
            None => Err(Error::new(
                Status::E_PROXY_SELECTOR,
                "no rule covers this target and there is no default",
            )
            .subject(target.host)),
        }
    }
}

impl Rules {
    /// [`Rules::push`] of a list, which must not be empty.
    pub fn add(&mut self, pattern: &str, proxies: impl Into<ProxyList>) -> Result<()> {
        self.push(pattern, not_empty(proxies.into(), pattern)?)
    }

    /// [`Rules::set_otherwise`] of a list, which must not be empty.
    pub fn otherwise(&mut self, proxies: impl Into<ProxyList>) -> Result<()> {
        self.set_otherwise(not_empty(proxies.into(), "otherwise")?);
        Ok(())
    }
}

impl ProxySelector for Rules {
    fn select(&self, target: &Target<'_>) -> Result<Choice> {
        let (why, proxies) = self.find(target)?;
        Ok(Choice { proxies: proxies.clone(), why })
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
