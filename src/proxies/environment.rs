//! Proxies from environment variables.
//!
//! | dialect | names | both cases set | empty | CGI | `all_proxy` | bad value |
//! |---|---|---|---|---|---|---|
//! | byway | lower, UPPER | lower | unset | `HTTP_PROXY` ignored | yes, last | error for the request |
//! | curl | lower, UPPER but never `HTTP_PROXY` | lower | unset | not needed | yes, last | error |
//! | Go | UPPER, lower | UPPER | unset | error | no | error (Go: direct) |
//! | Python | any case | lower | empty lower removes both | `HTTP_PROXY` ignored | no | error |
//! | Chromium | lower, UPPER | lower | no proxy from it | none | yes, overrides the others | error (Chromium: direct) |
//! | Node | lower, UPPER | lower | empty lower hides UPPER | none | no | error |
//!
//! A bad value is an error in every dialect, naming the variable: going direct would leak around the proxy. The
//! table is handed in, so nothing reads the process's environment behind its host's back.

use super::fixed::direct_list;
use super::no_proxy::{Dialect, NoProxy, Options};
use super::value::{self, Described, Grammar, default_port};
use super::{Choice, ProxyKind, ProxyList, ProxySelector, Target, Why};
use crate::error::{Error, Result, Status};
use arc_swap::ArcSwap;
use std::sync::Arc;

/// Environment variables in their order; the last one of a name counts.
#[derive(Clone, Debug, Default)]
pub struct Table(Vec<(String, String)>);

impl Table {
    /// A snapshot of this process's environment. Only proxy variables and `REQUEST_METHOD` are kept, names and
    /// values that are not UTF-8 are left out. Not safe while another thread of the host calls `setenv`.
    pub fn of_process() -> Table {
        std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect()
    }

    /// The value of a variable, empty or not.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The value of a variable unless it is empty.
    fn full(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }

    /// True if a variable names a proxy.
    pub fn names_a_proxy(&self) -> bool {
        self.0.iter().any(|(name, value)| !value.is_empty() && scheme_of(name).is_some_and(|s| s != "no"))
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Table {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        let pairs = pairs.into_iter().map(|(name, value)| (name.into(), value.into()));
        let wanted = |(name, _): &(String, String)| {
            scheme_of(name).is_some()
                || matches!(name.as_str(), "REQUEST_METHOD" | "SOCKS_SERVER" | "SOCKS_VERSION")
        };
        Table(pairs.filter(wanted).collect())
    }
}

/// `http` for `HTTP_PROXY`, in any case.
fn scheme_of(name: &str) -> Option<String> {
    let (scheme, tail) = name.split_at_checked(name.len().checked_sub(6)?)?;
    (!scheme.is_empty() && tail.eq_ignore_ascii_case("_proxy")).then(|| scheme.to_ascii_lowercase())
}

/// The environment selector: everything is parsed when it is made, a question costs a few compares.
#[derive(Clone, Debug)]
pub struct Environment {
    /// Per scheme what it uses; schemes not listed use `other`.
    settings: Vec<(Box<str>, Option<Setting>)>,
    other: Option<Setting>,
    no_proxy: NoProxy,
    diagnostics: Vec<String>,
}

#[derive(Clone, Debug)]
struct Setting {
    name: Arc<str>,
    proxies: Result<ProxyList>,
}

const KNOWN: [&str; 5] = ["http", "https", "ftp", "ws", "wss"];

impl Environment {
    /// Reads a table in a dialect. Never fails: a bad value is the answer to the requests it is for.
    pub fn new(table: &Table, dialect: Dialect) -> Environment {
        Environment::with_options(table, dialect, Options::default())
    }

    /// As [`Environment::new`]; `options` count in the byway dialect.
    pub fn with_options(table: &Table, dialect: Dialect, options: Options) -> Environment {
        let mut reader = Reader { table, dialect, diagnostics: Vec::new() };
        let mut schemes: Vec<String> = KNOWN.iter().map(|s| (*s).to_owned()).collect();
        for scheme in table.0.iter().filter_map(|(name, _)| scheme_of(name)) {
            if !schemes.contains(&scheme) && scheme != "no" && scheme != "all" {
                schemes.push(scheme);
            }
        }
        let settings =
            schemes.into_iter().map(|scheme| (scheme.as_str().into(), reader.setting(&scheme))).collect();
        let other = reader.setting("");
        let no_proxy = NoProxy::with_options(reader.no_proxy(), dialect, options);
        let mut diagnostics = reader.diagnostics;
        diagnostics.extend_from_slice(no_proxy.ignored());
        Environment { settings, other, no_proxy, diagnostics }
    }

    /// What a person set explicitly beats the environment as a whole: if `explicit` names any proxy, `ambient`
    /// is not consulted, its `NO_PROXY` neither.
    pub fn layered(explicit: &Table, ambient: &Table, dialect: Dialect) -> Environment {
        Environment::new(if explicit.names_a_proxy() { explicit } else { ambient }, dialect)
    }
}

impl ProxySelector for Environment {
    fn select(&self, target: &Target<'_>) -> Result<Choice> {
        let own = self.settings.iter().find(|(scheme, _)| **scheme == *target.scheme);
        let Some(setting) = own.map_or(self.other.as_ref(), |(_, setting)| setting.as_ref()) else {
            return Ok(Choice { proxies: direct_list(), why: Why::NoSetting });
        };
        // Exceptions first: an excepted host does not fail on a bad proxy value.
        if let Some(why) = self.no_proxy.decide(target) {
            return Ok(Choice { proxies: direct_list(), why });
        }
        match &setting.proxies {
            Ok(proxies) => Ok(Choice { proxies: proxies.clone(), why: Why::Variable(setting.name.clone()) }),
            Err(error) => Err(error.clone()),
        }
    }

    fn diagnostics(&self) -> Vec<String> {
        self.diagnostics.clone()
    }
}

/// The process's own environment: read when this is made, and at every refresh.
#[derive(Debug)]
pub struct OwnEnvironment {
    dialect: Dialect,
    current: ArcSwap<Environment>,
}

impl OwnEnvironment {
    /// Reads it now, see [`Table::of_process`].
    pub fn new(dialect: Dialect) -> OwnEnvironment {
        OwnEnvironment { dialect, current: ArcSwap::from_pointee(OwnEnvironment::read(dialect)) }
    }

    fn read(dialect: Dialect) -> Environment {
        Environment::new(&Table::of_process(), dialect)
    }
}

impl ProxySelector for OwnEnvironment {
    fn select(&self, target: &Target<'_>) -> Result<Choice> {
        self.current.load().select(target)
    }

    fn diagnostics(&self) -> Vec<String> {
        self.current.load().diagnostics()
    }

    fn refresh(&self) -> bool {
        self.current.store(Arc::new(OwnEnvironment::read(self.dialect)));
        true
    }
}

/// Finds variables in a table as a dialect does.
struct Reader<'a> {
    table: &'a Table,
    dialect: Dialect,
    diagnostics: Vec<String>,
}

impl<'a> Reader<'a> {
    fn note(&mut self, text: &str) {
        if !self.diagnostics.iter().any(|known| known == text) {
            self.diagnostics.push(text.to_owned());
        }
    }

    /// What `scheme` uses; the empty scheme stands for every scheme without a variable of its own.
    fn setting(&mut self, scheme: &str) -> Option<Setting> {
        let found = match self.dialect {
            Dialect::Byway => self.byway(scheme),
            Dialect::Curl => self.curl(scheme),
            Dialect::Go => self.go(scheme),
            Dialect::Python => self.python(scheme),
            Dialect::Chromium => self.chromium(scheme),
            Dialect::Node => self.node(scheme),
        };
        let (name, value) = found?;
        if self.dialect == Dialect::Go && scheme == "http" && self.table.full("REQUEST_METHOD").is_some() {
            let why = "refused in a CGI environment: a client's Proxy header may have set it";
            let error = Error::new(Status::E_PROXY_SELECTOR, why).subject(&*name);
            return Some(Setting { name: name.into(), proxies: Err(error) });
        }
        let proxies = self.parse(&name, value).and_then(|proxy| Ok(Arc::from([proxy.listed(&name)?])));
        Some(Setting { name: name.into(), proxies })
    }

    fn parse(&self, name: &str, value: &str) -> Result<Described> {
        let usual = Grammar::default();
        let grammar = match self.dialect {
            Dialect::Byway | Dialect::Node => usual,
            Dialect::Curl => {
                Grammar { socks: ProxyKind::Socks4, trim: false, empty_port: true, raw_at: false, ..usual }
            }
            Dialect::Go => Grammar { socks5: ProxyKind::Socks5h, trim: false, empty_port: true, ..usual },
            Dialect::Python => Grammar { empty_port: true, ..usual },
            Dialect::Chromium => Grammar { socks5: ProxyKind::Socks5h, ..usual },
        };
        let mut proxy = value::parse(name, value, grammar)?;
        if self.dialect == Dialect::Chromium {
            proxy.credentials = None;
            if name.eq_ignore_ascii_case("SOCKS_SERVER") && proxy.kind == ProxyKind::Http {
                let four = self.table.get("SOCKS_VERSION").is_some_and(|version| version == "4");
                proxy.kind = if four { ProxyKind::Socks4 } else { ProxyKind::Socks5h };
                if !value.trim_end().ends_with(&format!(":{}", proxy.port)) {
                    proxy.port = default_port(proxy.kind);
                }
            }
        }
        Ok(proxy)
    }

    fn no_proxy(&self) -> &'a str {
        let order = match self.dialect {
            Dialect::Go => ["NO_PROXY", "no_proxy"],
            _ => ["no_proxy", "NO_PROXY"],
        };
        let found = match self.dialect {
            Dialect::Python => return self.python("no").map_or("", |(_, value)| value),
            Dialect::Node => order.iter().find_map(|name| self.table.get(name)),
            _ => order.iter().find_map(|name| self.table.full(name)),
        };
        found.unwrap_or_default()
    }

    fn first(&self, names: &[String]) -> Option<(String, &'a str)> {
        names.iter().find_map(|name| Some((name.clone(), self.table.full(name)?)))
    }

    fn byway(&mut self, scheme: &str) -> Option<(String, &'a str)> {
        let base = match scheme {
            "ws" => Some("http"),
            "wss" => Some("https"),
            _ => None,
        };
        let cgi = self.table.get("REQUEST_METHOD").is_some();
        let mut names = Vec::new();
        for scheme in [Some(scheme), base, Some("all")].into_iter().flatten().filter(|s| !s.is_empty()) {
            names.push(format!("{scheme}_proxy"));
            let upper = format!("{}_PROXY", scheme.to_ascii_uppercase());
            if upper == "HTTP_PROXY" && cgi {
                if self.table.full(&upper).is_some() {
                    self.note(
                        "HTTP_PROXY is ignored in a CGI environment: a client's Proxy header may have set it",
                    );
                }
                continue;
            }
            names.push(upper);
        }
        self.first(&names)
    }

    fn curl(&mut self, scheme: &str) -> Option<(String, &'a str)> {
        let mut names = Vec::new();
        if !scheme.is_empty() {
            names.push(format!("{scheme}_proxy"));
            if scheme != "http" {
                names.push(format!("{}_PROXY", scheme.to_ascii_uppercase()));
            }
        }
        match scheme {
            "ws" => names.push("http_proxy".into()),
            "wss" => names.extend(["https_proxy".into(), "HTTPS_PROXY".into()]),
            _ => {}
        }
        names.extend(["all_proxy".into(), "ALL_PROXY".into()]);
        self.first(&names)
    }

    fn go(&mut self, scheme: &str) -> Option<(String, &'a str)> {
        match scheme {
            "http" => self.first(&["HTTP_PROXY".into(), "http_proxy".into()]),
            "https" => self.first(&["HTTPS_PROXY".into(), "https_proxy".into()]),
            _ => None,
        }
    }

    fn python(&self, scheme: &str) -> Option<(String, &'a str)> {
        let named = || self.table.0.iter().filter(|(name, _)| scheme_of(name).is_some_and(|s| s == scheme));
        let mut found = named().rfind(|(_, value)| !value.is_empty());
        if scheme == "http" && self.table.get("REQUEST_METHOD").is_some() {
            found = None;
        }
        if let Some(lower) = named().rfind(|(name, _)| name.ends_with("_proxy")) {
            found = Some(lower).filter(|(_, value)| !value.is_empty());
        }
        found.map(|(name, value)| (name.clone(), value.as_str()))
    }

    fn chromium(&mut self, scheme: &str) -> Option<(String, &'a str)> {
        if self.table.get("auto_proxy").or_else(|| self.table.get("AUTO_PROXY")).is_some() {
            self.note("auto_proxy names a proxy script; make a PAC selector for it");
        }
        let both = |name: &str| [format!("{name}_proxy"), format!("{}_PROXY", name.to_ascii_uppercase())];
        // The first spelling that exists counts, even empty.
        let set = |names: [String; 2]| {
            let name = names.into_iter().find(|name| self.table.get(name).is_some())?;
            let value = self.table.full(&name)?;
            Some((name, value))
        };
        if let Some(all) = set(both("all")) {
            return Some(all);
        }
        let (http, https, ftp) = (set(both("http")), set(both("https")), set(both("ftp")));
        if http.is_none() && https.is_none() && ftp.is_none() {
            return set(["SOCKS_SERVER".into(), "socks_server".into()]);
        }
        match scheme {
            "http" => http,
            "https" => https,
            "ftp" => ftp,
            "ws" | "wss" => https.or(http),
            _ => None,
        }
    }

    fn node(&mut self, scheme: &str) -> Option<(String, &'a str)> {
        let set = |lower: &str, upper: &str| {
            let name = [lower, upper].into_iter().find(|name| self.table.get(name).is_some())?;
            Some((name.to_owned(), self.table.full(name)?))
        };
        match scheme {
            "http" => set("http_proxy", "HTTP_PROXY"),
            "https" => set("https_proxy", "HTTPS_PROXY").or_else(|| set("http_proxy", "HTTP_PROXY")),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxies::OwnedTarget;

    #[test]
    fn the_cgi_guard_is_reported_and_all_proxy_still_counts() {
        let table: Table =
            [("HTTP_PROXY", "http://evil:1"), ("REQUEST_METHOD", ""), ("ALL_PROXY", "http://p:2")]
                .into_iter()
                .collect();
        let env = Environment::new(&table, Dialect::Byway);
        let target = OwnedTarget::parse("http://example.com/").unwrap();
        let choice = env.select(&target.borrow()).unwrap();
        assert_eq!(choice.why, Why::Variable("ALL_PROXY".into()));
        assert_eq!(crate::proxies::shown(&choice.proxies[0]), "http p:2");
        assert_eq!(env.diagnostics().len(), 1);
    }

    #[test]
    fn chromium_reads_socks_server_when_nothing_else_names_a_proxy() {
        for (pairs, want) in [
            (vec![("all_proxy", ""), ("SOCKS_SERVER", "s:888")], "socks5h s:888"),
            (vec![("SOCKS_SERVER", "s"), ("SOCKS_VERSION", "4")], "socks4 s:1080"),
        ] {
            let env = Environment::new(&pairs.into_iter().collect(), Dialect::Chromium);
            let choice = env.select(&OwnedTarget::parse("http://e/").unwrap().borrow()).unwrap();
            assert_eq!(crate::proxies::shown(&choice.proxies[0]), want);
        }
    }

    #[test]
    fn an_excepted_host_does_not_fail_on_a_bad_value() {
        let table: Table =
            [("http_proxy", "foo://secret"), ("no_proxy", "example.com")].into_iter().collect();
        let env = Environment::new(&table, Dialect::Byway);
        let ask = |uri| env.select(&OwnedTarget::parse(uri).unwrap().borrow());
        assert!(ask("http://www.example.com/").is_ok());
        assert_eq!(ask("http://other.com/").unwrap_err().about(), "http_proxy");
    }
}
