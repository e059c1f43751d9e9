//! What the system's settings say, as the engine uses it: a snapshot that is read when the host says so.

use super::proxies::{Choosing, ProxySource};
use crate::error::{Error, Result, Status};
use crate::proxies::environment::Table;
use crate::proxies::system::{Places, Plan, Snapshot};
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use std::sync::Arc;

/// What makes the selector of a script that settings name.
pub type MakeScript = Box<dyn Fn(&str) -> Result<Arc<ProxySource>> + Send + Sync>;

/// See the module.
pub struct SystemProxies {
    origin: Mutex<Origin>,
    current: ArcSwap<Current>,
    make_script: MakeScript,
}

/// Where settings come from.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// The environment; `None` = the process's, read at every refresh.
    pub environment: Option<Table>,
    /// Files and texts.
    pub places: Places,
}

struct Current {
    source: &'static str,
    /// The script's URL, empty when it is to be discovered.
    script: Option<String>,
    leaf: Arc<ProxySource>,
}

impl SystemProxies {
    /// Reads the settings. `make_script` makes the selector for the URL of a script, which is empty when the settings
    /// say that one is to be discovered.
    ///
    /// # Errors
    /// As [`Snapshot::read`], and `make_script`'s.
    pub fn new(origin: Origin, make_script: MakeScript) -> Result<SystemProxies> {
        let current = ArcSwap::from_pointee(Current::read(&origin, None, &make_script)?);
        Ok(SystemProxies { origin: Mutex::new(origin), current, make_script })
    }

    /// Reads the settings again from where they came from; on an error the old ones stay in force.
    ///
    /// # Errors
    /// As [`SystemProxies::new`].
    pub fn refresh(&self) -> Result<()> {
        let origin = self.origin.lock();
        self.put_in_force(&origin)
    }

    /// Reads the settings from elsewhere from now on; on an error the old ones stay in force.
    ///
    /// # Errors
    /// As [`SystemProxies::new`].
    pub fn replace(&self, origin: Origin) -> Result<()> {
        let mut known = self.origin.lock();
        self.put_in_force(&origin)?;
        *known = origin;
        Ok(())
    }

    fn put_in_force(&self, origin: &Origin) -> Result<()> {
        let before = self.current.load_full();
        let current = Current::read(origin, Some(&before), &self.make_script)?;
        if Arc::ptr_eq(&current.leaf, &before.leaf) {
            // The same script: its text may be another one by now.
            current.leaf.refresh()?;
        }
        self.current.store(Arc::new(current));
        Ok(())
    }

    /// Which source decided, and the selector it describes.
    pub fn in_force(&self) -> (&'static str, Arc<ProxySource>) {
        let current = self.current.load();
        (current.source, Arc::clone(&current.leaf))
    }

    /// URL of the script in force, empty when it is to be discovered; `None` when there is none.
    pub fn script_url(&self) -> Option<String> {
        self.current.load().script.clone()
    }

    /// What is to be known about the settings.
    pub fn diagnostics(&self) -> Vec<String> {
        let (source, leaf) = self.in_force();
        let mut lines = vec![format!("settings from {source}")];
        lines.extend(leaf.diagnostics());
        lines
    }
}

impl Current {
    fn read(origin: &Origin, before: Option<&Current>, make_script: &MakeScript) -> Result<Current> {
        let process;
        let environment = match &origin.environment {
            Some(table) => table,
            None => {
                process = Table::of_process();
                &process
            }
        };
        let snapshot = Snapshot::read(environment, &origin.places)?;
        let (script, leaf) = match snapshot.plan() {
            Plan::Selector(selector) => (None, ProxySource::new(Choosing::BuiltIn(Arc::clone(selector)))),
            Plan::Script(url) => {
                let known = before.filter(|before| before.script.as_deref() == Some(url));
                let leaf = match known {
                    Some(before) => Arc::clone(&before.leaf),
                    None => make_script(url)?,
                };
                (Some(url.clone()), leaf)
            }
        };
        Ok(Current { source: snapshot.source(), script, leaf })
    }
}

impl ProxySource {
    /// Reads what this selector, and those it chooses among, are made from again: environment, settings, a script's file;
    /// or has a script fetched anew by the next question.
    ///
    /// # Errors
    /// `E_STATE` when it is made from nothing that could have changed; else what is wrong with the new state, and the
    /// old one stays in force.
    pub fn refresh(&self) -> Result<()> {
        // One that fails keeps no other from its new state.
        let answers: Vec<Result<bool>> = self.whole().into_iter().map(ProxySource::read_again).collect();
        if answers.into_iter().try_fold(false, |read, answer| answer.map(|one| read | one))? {
            return Ok(());
        }
        Err(Error::new(Status::E_STATE, "this proxy selector is made from nothing that could be read again"))
    }

    /// True when there was something to read.
    fn read_again(&self) -> Result<bool> {
        match self.kind() {
            Choosing::System(system) => system.refresh().map(|()| true),
            #[cfg(feature = "script")]
            Choosing::Script(script) => script.refresh().map(|()| true),
            Choosing::BuiltIn(own) => Ok(own.refresh()),
            _ => Ok(false),
        }
    }
}
