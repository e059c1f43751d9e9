//! Proxies from the system's settings: the environment, GNOME, KDE, `/etc/sysconfig/proxy`.
//!
//! One source decides, the first that says anything; results are never mixed. Settings are read into a
//! [`Snapshot`] by plain file reads when the host asks for it ([`Snapshot::read`]); a question only looks at the
//! snapshot in force. No child process, no D-Bus, no settings library is loaded.

mod gnome;
mod gvdb;
mod kde;
mod sysconfig;

use super::environment::{Environment, Table};
use super::fixed::{Direct, Exceptions, PerScheme};
use super::no_proxy::{Dialect, NoProxy};
use super::value::{self, Grammar};
use super::{Choice, ProxyKind, ProxySelector, Target};
use crate::error::{Error, Result, Status};
use crate::runtime::file::{self, Unread};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Manual and automatic settings of a desktop, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Desktop {
    /// The proxies below are in force.
    pub manual: bool,
    /// A proxy script is in force; empty with `discover` means WPAD.
    pub script_url: String,
    /// The script is to be discovered (WPAD).
    pub discover: bool,
    /// `host:port` or a URL; empty when there is none.
    pub http: String,
    /// For https targets; spoken to in HTTP.
    pub https: String,
    /// For ftp targets.
    pub ftp: String,
    /// SOCKS 5 for every scheme without its own entry.
    pub socks: String,
    /// User and password for the HTTP proxy.
    pub credentials: Option<(String, String)>,
    /// Hosts that are not proxied, comma separated.
    pub exceptions: String,
    /// The exceptions are the only hosts that are proxied.
    pub reversed: bool,
}

impl Desktop {
    /// The selector these settings describe. `E_INVALID_PROXY` when one of them cannot be read.
    pub fn selector(&self) -> Result<Plan> {
        if self.discover || !self.script_url.is_empty() {
            return Ok(Plan::Script(self.script_url.clone()));
        }
        if !self.manual {
            return Ok(Plan::Selector(Arc::new(Direct)));
        }
        let mut selector = PerScheme::new();
        for (scheme, written) in [("http", &self.http), ("https", &self.https), ("ftp", &self.ftp)] {
            if !written.is_empty() {
                let mut proxy = value::parse(scheme, written, Grammar::default())?;
                if let (true, Some((user, password)), None) =
                    (scheme == "http", &self.credentials, &proxy.credentials)
                {
                    proxy.credentials = Some((user.clone(), password.clone()));
                }
                selector.set(scheme, Arc::from([proxy.listed(scheme)?]))?;
            }
        }
        if !self.socks.is_empty() {
            let bare = !self.socks.contains("://");
            let written = if bare { format!("socks5h://{}", self.socks) } else { self.socks.clone() };
            let mut proxy = value::parse("socks", &written, Grammar::default())?;
            if proxy.kind == ProxyKind::Socks5 {
                proxy.kind = ProxyKind::Socks5h;
            }
            selector.set_fallback(Arc::from([proxy.listed("socks")?]))?;
        }
        let list = Exceptions::NoProxy(Box::new(NoProxy::new(&self.exceptions, Dialect::Byway)));
        selector.set_exceptions(if self.reversed { Exceptions::Only(Box::new(list)) } else { list });
        Ok(Plan::Selector(Arc::new(selector)))
    }
}

/// What settings want.
#[derive(Clone, Debug)]
pub enum Plan {
    /// This selector.
    Selector(Arc<dyn ProxySelector>),
    /// A proxy script from this URL; empty: discovered by WPAD. Fetching is the host's.
    Script(String),
}

impl ProxySelector for Plan {
    fn select(&self, target: &Target<'_>) -> Result<Choice> {
        match self {
            Plan::Selector(selector) => selector.select(target),
            Plan::Script(url) => {
                let what = if url.is_empty() { "a discovered script (WPAD)" } else { "a script" };
                let why = format!("the system's settings name {what} that was not handed in");
                Err(Error::new(Status::E_PAC, why).subject(url.as_str()))
            }
        }
    }
}

/// Where one kind of settings is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In this file; one that does not exist says nothing.
    File(PathBuf),
    /// Here.
    Content(Vec<u8>),
}

/// Where settings are looked for. Every path may point elsewhere, for tests and for other users' settings.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// `XDG_CURRENT_DESKTOP`: which desktop's settings count; empty: those that exist, GNOME first.
    pub desktop: String,
    /// dconf's database, usually `~/.config/dconf/user`.
    pub dconf: Option<Place>,
    /// GLib's keyfile settings, used in sandboxes: `~/.config/glib-2.0/settings/keyfile`.
    pub keyfile: Option<Place>,
    /// KDE's `~/.config/kioslaverc`.
    pub kioslaverc: Option<Place>,
    /// `/etc/sysconfig/proxy`.
    pub sysconfig: Option<Place>,
}

impl Places {
    /// The usual places below a home directory; `config` is `XDG_CONFIG_HOME` when that is set.
    pub fn usual(home: &Path, config: Option<&Path>, desktop: &str) -> Places {
        let config = config.map_or_else(|| home.join(".config"), Path::to_path_buf);
        Places {
            desktop: desktop.to_owned(),
            dconf: Some(Place::File(config.join("dconf/user"))),
            keyfile: Some(Place::File(config.join("glib-2.0/settings/keyfile"))),
            kioslaverc: Some(Place::File(config.join("kioslaverc"))),
            sysconfig: Some(Place::File("/etc/sysconfig/proxy".into())),
        }
    }
}

/// Settings as they were when read, with the name of the source that decided.
#[derive(Clone, Debug)]
pub struct Snapshot {
    source: &'static str,
    plan: Plan,
}

/// Larger settings files are refused.
const LIMIT: u64 = 4 << 20;

impl Snapshot {
    /// Reads the settings: the environment if it names a proxy, else the desktop's, else `/etc/sysconfig/proxy`,
    /// else DIRECT. A file that does not exist says nothing; one that cannot be read or understood is an error.
    pub fn read(environment: &Table, places: &Places) -> Result<Snapshot> {
        if environment.names_a_proxy() {
            let selector = Environment::new(environment, Dialect::Byway);
            return Ok(Snapshot { source: "environment", plan: Plan::Selector(Arc::new(selector)) });
        }
        let is = |name: &str| places.desktop.split(':').any(|part| part.eq_ignore_ascii_case(name));
        let kde_only = is("KDE");
        let gnome_only = ["GNOME", "Unity", "X-Cinnamon", "Cinnamon", "MATE", "XFCE", "Budgie", "Pantheon"]
            .iter()
            .any(|name| is(name));
        if !kde_only && let Some(desktop) = gnome::read(places)? {
            return Ok(Snapshot { source: "GNOME", plan: desktop.selector()? });
        }
        if !gnome_only && let Some(text) = read_text(places.kioslaverc.as_ref())? {
            match kde::read(&text)? {
                Some(kde::Settings::Desktop(desktop)) => {
                    return Ok(Snapshot { source: "KDE", plan: desktop.selector()? });
                }
                // "Use the system's environment" names variables the environment does not have.
                Some(kde::Settings::Environment) | None => {}
            }
        }
        if let Some(text) = read_text(places.sysconfig.as_ref())?
            && let Some(table) = sysconfig::read(&text)
        {
            let selector = Environment::new(&table, Dialect::Byway);
            return Ok(Snapshot { source: "/etc/sysconfig/proxy", plan: Plan::Selector(Arc::new(selector)) });
        }
        Ok(Snapshot { source: "nothing", plan: Plan::Selector(Arc::new(Direct)) })
    }

    /// Which source decided.
    pub fn source(&self) -> &'static str {
        self.source
    }

    /// What the settings want.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }
}

fn read_bytes(place: Option<&Place>) -> Result<Option<Vec<u8>>> {
    let path = match place {
        None => return Ok(None),
        Some(Place::Content(bytes)) => return Ok(Some(bytes.clone())),
        Some(Place::File(path)) => path,
    };
    match file::content(path, LIMIT) {
        Ok(content) => Ok(Some(content.bytes)),
        // A device there, mostly /dev/null, is how a sandbox says that there is no file.
        Err(Unread::NotRegular(_)) => Ok(None),
        Err(why) if why.is_missing() => Ok(None),
        Err(why) => Err(why.error(path)),
    }
}

/// What an error about a place is about.
fn shown(place: Option<&Place>) -> String {
    match place {
        Some(Place::File(path)) => path.display().to_string(),
        _ => "settings".to_owned(),
    }
}

fn read_text(place: Option<&Place>) -> Result<Option<String>> {
    let Some(bytes) = read_bytes(place)? else { return Ok(None) };
    String::from_utf8(bytes)
        .map(Some)
        .map_err(|_| Error::new(Status::E_UTF8, "not UTF-8").subject(shown(place)))
}

#[cfg(test)]
mod tests;
