//! Value patterns as the engine's value tests: one function of a text or its absence, with a name that says all it
//! depends on.

use super::pattern::Pattern;
use super::string_match::StringMatch;
use super::tag::Address;
use crate::chain::program::{Shape, Test, ValueTest};
use std::borrow::Cow;
use std::sync::Arc;

/// How a dialect sees a value before patterns are tried on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct View {
    /// An empty value counts as absent.
    pub(super) empty_is_absent: bool,
    /// The value has a slash in front that the column leaves out.
    pub(super) slash: bool,
    /// What an absent value reads as.
    pub(super) absent_as: Option<String>,
}

impl View {
    fn see<'v>(&'v self, value: Option<&'v str>) -> Option<Cow<'v, str>> {
        let value =
            value.or(self.absent_as.as_deref()).filter(|text| !(self.empty_is_absent && text.is_empty()))?;
        Some(if self.slash { Cow::Owned(format!("/{value}")) } else { Cow::Borrowed(value) })
    }

    fn is_plain(&self) -> bool {
        *self == View::default()
    }
}

/// What is tested.
enum What {
    Pattern(Pattern),
    Match(StringMatch),
    Addresses(Vec<Address>),
    Flag { absent: bool, read: fn(&str) -> bool },
}

struct Word {
    view: View,
    what: What,
    key: String,
    words: String,
}

impl ValueTest for Word {
    fn test(&self, value: Option<&str>) -> bool {
        let value = self.view.see(value);
        match &self.what {
            What::Pattern(pattern) => value.is_some_and(|value| pattern.matches(&value)),
            What::Match(matcher) => matcher.matches(value.as_deref()),
            What::Addresses(list) => {
                value.is_some_and(|value| list.iter().any(|address| address.matches(&value)))
            }
            What::Flag { absent, read } => match value {
                Some(value) if !value.is_empty() => read(&value),
                _ => *absent,
            },
        }
    }

    fn cache_key(&self) -> &str {
        &self.key
    }

    fn shape(&self) -> Shape<'_> {
        match &self.what {
            What::Pattern(pattern) if self.view.is_plain() => match pattern {
                Pattern::Any => Shape::Present,
                Pattern::Exact(text) => Shape::Exact(text),
                Pattern::HeadTail(head, tail) => Shape::Affix(head, tail),
                _ => Shape::Opaque,
            },
            _ => Shape::Opaque,
        }
    }

    fn words(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.words)
    }
}

/// A value fits a pattern; absent ones do not, unless the view reads them as something. References must be
/// resolved.
pub(super) fn pattern(pattern: Pattern, view: &View, words: &str) -> Test {
    let key = pattern_key(&pattern, view);
    Arc::new(Word { view: view.clone(), what: What::Pattern(pattern), key, words: format!("= {words}") })
}

/// Says everything a pattern test depends on; no two patterns share one.
pub(super) fn pattern_key(pattern: &Pattern, view: &View) -> String {
    let mut key = match pattern {
        Pattern::Any => "*".to_owned(),
        Pattern::Exact(text) => format!("={text}"),
        Pattern::HeadTail(head, tail) => format!("{}*{head}{tail}", head.len()),
        other => format!("?{other:?}"),
    };
    if !view.is_plain() {
        key = format!("{view:?}{key}");
    }
    key
}

/// A value is there.
pub(super) fn present(view: &View) -> Test {
    pattern(Pattern::Any, view, "*")
}

/// A value is absent or empty.
pub(super) fn nothing() -> Test {
    let what = What::Flag { absent: true, read: |_| false };
    Arc::new(Word {
        view: View::default(),
        what,
        key: "nothing".to_owned(),
        words: "absent or empty".to_owned(),
    })
}

/// A parameter fits a string match.
pub(super) fn string_match(matcher: &StringMatch) -> Test {
    let key = format!("match {matcher:?}");
    let words = format!("matches {}", matcher.to_flow());
    Arc::new(Word { view: View::default(), what: What::Match(matcher.clone()), key, words })
}

/// An address is one of a tag's.
pub(super) fn addresses(list: &[Address]) -> Test {
    let key = format!("addresses {list:?}");
    let texts: Vec<&str> = list.iter().map(|address| address.text.as_str()).collect();
    let words = format!("= {}", texts.join(","));
    Arc::new(Word { view: View::default(), what: What::Addresses(list.to_vec()), key, words })
}

/// A switch: what an absent or empty value means, and how others read. `name` tells the reader apart.
pub(super) fn flag(name: &str, absent: bool, read: fn(&str) -> bool) -> Test {
    let key = format!("flag {name} {absent}");
    Arc::new(Word {
        view: View::default(),
        what: What::Flag { absent, read },
        key,
        words: format!("says {name}"),
    })
}
