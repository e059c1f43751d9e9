//! Script routers in chains: by rule of the providers' application, from a URL or file, and over a text of one's own.

use super::kept::KeptAnswers;
use super::program::{Call, Program};
use super::{SUFFIX, ScriptRule};
use crate::chain::program;
use crate::chain::router::{
    ActiveRule, Request, Router, RouterSlot, RuleRouter, SlotBody, SlotKey, Trouble, Verdict,
};
use crate::chain::snapshot::Invokers;
use crate::chain::store::{Language, RuleState};
use crate::error::{Error, Result};
use crate::rules::dialect::{Dialect, Role};
use crate::rules::report::Report;
use crate::rules::routers;
use crate::script::{Limits, Pool};
use parking_lot::Mutex;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// A rule with its program.
#[derive(Debug)]
pub(super) struct Compiled {
    rule: ScriptRule,
    program: Option<Arc<Program>>,
}

impl program::Rule for Compiled {
    /// Scripts are no program: their router runs them.
    fn lower(&self, _: &program::Lowering<'_>) -> Result<program::Program> {
        Ok(program::Program::new(Vec::new()))
    }

    fn version(&self) -> &str {
        self.rule.header.version.as_deref().unwrap_or_default()
    }

    fn in_force(&self) -> bool {
        self.rule.in_force() && self.program.is_some()
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

/// The language of script rules for a store of rules.
#[derive(Clone, Debug, Default)]
pub struct ScriptLanguage {
    /// What each script may use.
    pub limits: Limits,
    /// Where texts are compiled to see whether they can be.
    pub pool: Pool,
}

impl Language for ScriptLanguage {
    fn suffix(&self) -> &str {
        SUFFIX
    }

    fn open(&self, dialect: u8) -> Box<dyn RuleState> {
        let dialect = Dialect::from_number(i32::from(dialect)).unwrap_or_default();
        Box::new(State { dialect, language: self.clone(), active: None })
    }
}

/// One key's script through its updates: the last good one stays.
struct State {
    dialect: Dialect,
    language: ScriptLanguage,
    active: Option<Arc<Compiled>>,
}

impl RuleState for State {
    fn set(&mut self, text: &str) -> Result<()> {
        let mut report = Report::new(text);
        let rule = ScriptRule::read(text, self.dialect, &mut report);
        let ScriptLanguage { limits, pool } = &self.language;
        let mut program = None;
        if let Some(rule) = &rule
            && let Some(script) = rule.script.as_deref().filter(|_| !report.failed())
        {
            // A rule that is switched off is only read.
            match Program::new(script.to_owned(), *limits) {
                Err(error) => rule.report_unusable(&error, &mut report),
                Ok(made) => {
                    if rule.in_force()
                        && let Err(error) = Program::check(script, *limits, pool)
                    {
                        use crate::error::Status;
                        match error.status() {
                            Status::E_SCRIPT | Status::E_LIMIT => rule.report_unusable(&error, &mut report),
                            // No thread to compile it on says nothing about the text.
                            _ => return Err(error),
                        }
                    }
                    program = Some(Arc::new(made));
                }
            }
        }
        if let Some(error) = report.to_error() {
            return Err(error);
        }
        self.active = rule.map(|rule| Arc::new(Compiled { rule, program }));
        Ok(())
    }

    fn remove(&mut self) {
        self.active = None;
    }

    fn active(&self) -> Option<Arc<dyn program::Rule>> {
        self.active.clone().map(|compiled| compiled as Arc<dyn program::Rule>)
    }
}

/// Told about every script error with the rule's key or URL, on the routing thread.
pub type Observer = Arc<dyn Fn(&Arc<str>, &Error) + Send + Sync>;

/// A script's errors.
#[derive(Debug, Default)]
struct Health(Mutex<Option<Trouble>>);

/// A router that asks a script. Errors leave the list as it is, are told to the observer, and show in
/// [`Router::trouble`].
pub struct ScriptRouter {
    subject: Arc<str>,
    program: Arc<Program>,
    pool: Pool,
    health: Arc<Health>,
    observer: Option<Observer>,
    /// Only for scripts that say they are pure.
    kept: Option<KeptAnswers>,
}

impl fmt::Debug for ScriptRouter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptRouter").field("subject", &self.subject).finish_non_exhaustive()
    }
}

impl ScriptRouter {
    /// A router over one program. `subject` names it in errors. `pure`: its answers may be kept.
    pub fn new(
        subject: impl Into<Arc<str>>,
        program: Arc<Program>,
        pure: bool,
        pool: Pool,
        observer: Option<Observer>,
    ) -> ScriptRouter {
        let (subject, kept) = (subject.into(), pure.then(KeptAnswers::default));
        ScriptRouter { subject, program, pool, health: Arc::default(), observer, kept }
    }

    fn failed(&self, error: Error) {
        if let Some(observer) = &self.observer {
            observer(&self.subject, &error);
        }
        let mut trouble = self.health.0.lock();
        let count = trouble.as_ref().map_or(0, |trouble| trouble.count) + 1;
        *trouble = Some(Trouble { error, count });
    }
}

impl Router for ScriptRouter {
    fn route(&self, request: &mut Request<'_>) -> Result<Verdict> {
        let list = request.invokers.id();
        let available = request.call.available.filter(|(_, of)| *of == list).map(|(bits, _)| bits);
        // Answers are kept for calls about whom nothing else is known.
        let kept = self.kept.as_ref().filter(|_| available.is_none());
        let known = kept.and_then(|kept| kept.find(list, request.rows, request.call));
        if let Some(rows) = known {
            rows.iter().for_each(|row| request.keep(*row as usize));
            if request.explaining {
                request.message = Some("the script's answer to an earlier call like this one".to_owned());
            }
            return Ok(Verdict::Kept);
        }
        let rows: Vec<u32> = request.rows.iter().filter_map(|row| u32::try_from(row).ok()).collect();
        let mut call = Call::new(request.invokers.clone(), rows, request.call, request.consumer.clone());
        if kept.is_some() {
            call = call.noted();
        }
        if let Some(bits) = available {
            let can = |row: usize| bits.get(row / 64).is_some_and(|word| word >> (row % 64) & 1 == 1);
            let rows = request.rows.iter().filter(|row| !can(*row));
            call = call.unavailable(rows.filter_map(|row| u32::try_from(row).ok()).collect());
        }
        match self.program.answer(&self.pool, call) {
            Ok(answer) => {
                if let Some(kept) = kept {
                    kept.keep(list, request.rows, request.call, &answer.reads, &answer.rows);
                }
                answer.rows.iter().for_each(|row| request.keep(*row as usize));
                if request.explaining {
                    request.message = Some("the script's answer".to_owned());
                }
                Ok(Verdict::Kept)
            }
            Err(error) => {
                if request.explaining {
                    let place = error.position().map_or_else(String::new, |at| {
                        format!(" at line {}, column {} of the script", at.line, at.column)
                    });
                    let why = error.message();
                    request.message =
                        Some(format!("the script failed{place}, so the list is unchanged: {why}"));
                } else {
                    self.failed(error);
                }
                Ok(Verdict::Pass)
            }
        }
    }

    fn trouble(&self) -> Option<Trouble> {
        self.health.0.lock().clone()
    }
}

/// Makes the script routers of a chain's worlds.
struct ScriptRules {
    key: SlotKey,
    pool: Pool,
    observer: Option<Observer>,
    /// The rule in force and its errors, which outlive the list they happened on.
    health: Mutex<Option<RuleHealth>>,
}

type RuleHealth = (Arc<dyn program::Rule>, Arc<Health>);

impl RuleRouter for ScriptRules {
    fn keys(&self, invokers: &Invokers) -> Vec<Arc<str>> {
        self.key.resolve(invokers).into_iter().collect()
    }

    fn bind(&self, _: &Arc<Invokers>, rules: &[ActiveRule], trial: bool) -> Option<Arc<dyn Router>> {
        let one = rules.first()?;
        let compiled = one.rule.as_any()?.downcast_ref::<Compiled>()?;
        let program = compiled.program.clone()?;
        let observer = self.observer.clone().filter(|_| !trial);
        let mut router =
            ScriptRouter::new(Arc::clone(&one.key), program, compiled.rule.pure, self.pool.clone(), observer);
        if !trial {
            let mut health = self.health.lock();
            match &*health {
                Some((rule, known)) if std::ptr::addr_eq(Arc::as_ptr(rule), Arc::as_ptr(&one.rule)) => {
                    router.health = Arc::clone(known);
                }
                _ => *health = Some((Arc::clone(&one.rule), Arc::clone(&router.health))),
            }
        }
        Some(Arc::new(router))
    }
}

/// The script router's place in a chain; `None` in dialects without script rules.
pub fn slot(dialect: Dialect, pool: Pool, observer: Option<Observer>) -> Option<RouterSlot> {
    let (name, order) = routers::place(dialect, Role::Script)?;
    let key = SlotKey::ProviderApplication { suffix: SUFFIX.into(), except: None };
    let rules = ScriptRules { key, pool, observer, health: Mutex::default() };
    Some(RouterSlot::new(name, order, SlotBody::Rules(Arc::new(rules))))
}
