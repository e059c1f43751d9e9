//! Built-in proxy selectors.
//!
//! A selector here is a pure function: scheme, host, port and URI text go in, an ordered list of proxies or one
//! clear error comes out ([`ProxySelector`]). None of them opens a socket, starts a process or reads the
//! environment behind its host's back; what they need is handed in ([`environment::Table`], [`jdk::Properties`],
//! [`system::Snapshot`], a script's text). An empty list does not exist: DIRECT is said, never implied.
//!
//! | selector | decides by |
//! |---|---|
//! | [`fixed::Direct`], [`fixed::Fixed`], [`fixed::PerScheme`] | nothing, one list, one list per scheme |
//! | [`environment::Environment`] | `http_proxy`, `all_proxy`, `no_proxy` ... with named dialects |
//! | [`jdk::JdkProperties`] | `http.proxyHost`, `nonProxyHosts` ... exactly as the JDK's default selector |
//! | [`rules::Rules`] | ordered patterns, each with its list |
//! | [`system::Snapshot`] | desktop settings and files, as a snapshot the host refreshes |
//! | `pac::Pac` (feature `script`) | a proxy auto-configuration script |

pub mod bad;
pub mod bypass;
pub mod environment;
pub mod fixed;
pub mod glob;
pub mod jdk;
pub mod network;
pub mod no_proxy;
pub mod pac;
pub mod rules;
pub mod system;
pub mod target;
pub mod value;
pub mod windows;

use crate::error::Result;
use std::fmt;
use std::sync::Arc;

pub use crate::net::{Listed, Proxy, ProxyKind};
pub use target::{OwnedTarget, Target};

/// Proxies in the order they are to be tried; never empty. Cheap to clone.
pub type ProxyList = Arc<[Listed]>;

/// The kind of a list's entry.
pub fn kind_of(entry: &Listed) -> ProxyKind {
    match entry {
        Listed::Proxy(proxy) => proxy.kind(),
        Listed::Direct | Listed::Null => ProxyKind::Direct,
    }
}

/// What a selector answered and what made it answer so.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Never empty.
    pub proxies: ProxyList,
    /// The reason, for explanations.
    pub why: Why,
}

/// Why a selector answered what it did. Building one does not allocate, so the hot path carries it always.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The selector has one answer only.
    Fixed,
    /// The list configured for this scheme.
    Scheme(Arc<str>),
    /// No setting names a proxy for this scheme.
    NoSetting,
    /// The environment variable or property with this name.
    Variable(Arc<str>),
    /// An entry of an exception list, as written.
    Exception(Arc<str>),
    /// Loopback hosts are never proxied unless the host asks for it.
    Loopback,
    /// The list names the only hosts that are proxied, and this is none of them.
    NotListed,
    /// The rule with this number, counted from 0, and its pattern.
    Rule(u32, Arc<str>),
    /// Nothing more special was said.
    Otherwise,
    /// The source of the system's settings that decided.
    Settings(&'static str),
    /// The answer of a script.
    Script(Arc<Scripted>),
}

/// What a script said, and what was made of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scripted {
    /// Its result text.
    pub answer: String,
    /// Elements of the result that name no proxy, as written.
    pub skipped: Vec<String>,
    /// What it said through `alert`, one line each.
    pub alerts: String,
    /// Nanoseconds of script time, of the last run when a name had to be looked up.
    pub took_ns: u64,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Fixed => f.write_str("fixed list"),
            Why::Scheme(scheme) => write!(f, "list for scheme {scheme}"),
            Why::NoSetting => f.write_str("no setting names a proxy for this scheme"),
            Why::Variable(name) => write!(f, "{name} is set"),
            Why::Exception(entry) => write!(f, "exception entry \"{entry}\""),
            Why::Loopback => f.write_str("loopback hosts are not proxied"),
            Why::NotListed => f.write_str("only listed hosts are proxied"),
            Why::Rule(index, pattern) => write!(f, "rule {index}, \"{pattern}\""),
            Why::Otherwise => f.write_str("no more special entry"),
            Why::Settings(source) => write!(f, "settings from {source}"),
            Why::Script(said) => {
                write!(f, "script answered \"{}\" after {} us", said.answer, said.took_ns / 1000)
            }
        }
    }
}

/// A built-in proxy selector. Any number of threads may ask one at the same time.
pub trait ProxySelector: Send + Sync + fmt::Debug {
    /// The proxies for `target`, or why there is no answer. Never an empty list, and never DIRECT in place of
    /// an error.
    fn select(&self, target: &Target<'_>) -> Result<Choice>;

    /// Entries of the configuration that were ignored, one sentence each; empty when all of it is in use.
    fn diagnostics(&self) -> Vec<String> {
        Vec::new()
    }

    /// Reads again what it was made from; false when that is nothing that could have changed.
    fn refresh(&self) -> bool {
        false
    }
}

/// Kind, host and port of a list's entry as one text, for tests.
#[cfg(test)]
pub(crate) fn shown(entry: &Listed) -> String {
    match entry {
        Listed::Proxy(proxy) => format!("{} {}:{}", proxy.kind().scheme(), proxy.host().text(), proxy.port()),
        Listed::Direct | Listed::Null => "direct".into(),
    }
}
