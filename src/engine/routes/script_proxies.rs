//! Proxy scripts as the engine uses them: where the text comes from, and one question on its way through script
//! threads and resolvers. Nobody waits here: what is not there yet is a [`Request`] the driver can watch.

use super::asking::ask_host;
use super::dns::{self, Resolver, Resolving, Serving};
use super::open::{self, Open};
use super::proxies::{Choosing, ProxySource};
use super::request::{DnsRequest, Request};
use crate::engine::Engine;
use crate::error::{Error, Result, Source, Status};
use crate::net::compat::Compat;
use crate::net::events::Listening;
use crate::net::{Address, Event, EventKind, Host, Ip};
use crate::proxies::pac::{self, Evaluation, Pac, PacOptions, Question, Step};
use crate::proxies::{Choice, Target};
use crate::runtime::notice::Notice;
use crate::script::{Pool, brief_wait};
use crate::sys::slab::Shared;
use parking_lot::Mutex;
use std::net::IpAddr;
use std::sync::{Arc, Weak};

/// A host that fetches scripts. Called without a lock, inside [`Engine::host_call`].
pub trait HostScripts: Send + Sync {
    /// Wants the script at a URL; it is handed to `source`, in place or later.
    fn fetch(&self, source: &Arc<ProxySource>, url: &str, serving: &Serving) -> Status;
}

/// What scripts of one proxy selector are run with.
#[derive(Clone)]
pub struct ScriptSettings {
    /// Limits, clock, zone, readings.
    pub options: PacOptions,
    /// Who resolves names; `None` = the resolver of the address that is asked about.
    pub resolver: Option<Arc<Resolver>>,
    /// This machine's addresses; `None` = those the routing table prefers.
    pub own_addresses: Option<Vec<IpAddr>>,
    /// Who fetches.
    pub host: Option<Arc<dyn HostScripts>>,
    /// A script that is older is fetched anew by the next question; 0 = never by age.
    pub refresh_ms: u64,
    /// Whose clock counts.
    pub engine: Weak<Engine>,
}

/// See the module.
pub struct ScriptProxies {
    url: String,
    settings: ScriptSettings,
    pool: Pool,
    state: Mutex<State>,
}

/// A question that waits for the script's text.
type Fetched = Request<()>;
/// A run that script threads have not finished.
type Running = Request<Option<(Evaluation, Result<Step>)>>;

#[derive(Default)]
struct State {
    pac: Option<Arc<Pac>>,
    /// When the text in force came, in the engine's milliseconds, and the network's generation at that time.
    since: u64,
    generation: u64,
    /// The host said that it may be another one.
    stale: bool,
    /// Since when the host is fetching.
    fetching: Option<u64>,
    failed: Option<Failed>,
    waiting: Vec<Arc<Fetched>>,
}

struct Failed {
    error: Error,
    times: usize,
    /// No further attempt before.
    until: u64,
}

/// Time to the next attempt after one, two, three, more failures, in milliseconds.
const RETRY_MS: [u64; 4] = [8_000, 32_000, 120_000, 4 * 3_600_000];
/// A host that has not answered for so long has forgotten.
const FETCH_MS: u64 = 30_000;
/// Questions that may wait for one text.
const MAX_WAITING: usize = 4096;

impl ScriptProxies {
    /// A selector for the script at `url`, which may be a path. A file is read now; what the host fetches is fetched
    /// by the first question.
    ///
    /// # Errors
    /// Of a file: `E_OS`, and what is wrong with its text. `E_ARGUMENT` for a URL nobody can fetch.
    pub fn new(url: &str, settings: ScriptSettings) -> Result<ScriptProxies> {
        let own =
            ScriptProxies { url: url.to_owned(), settings, pool: Pool::default(), state: Mutex::default() };
        if own.is_file() {
            own.set(pac::text::read_file(url)?)?;
        } else if own.settings.host.is_none() {
            let why = "nobody can fetch this script; expected a text, a file, or a callback that fetches";
            return Err(Error::new(Status::E_ARGUMENT, why).subject(url));
        }
        Ok(own)
    }

    /// A selector for a text.
    ///
    /// # Errors
    /// As [`ScriptProxies::set`].
    pub fn with_text(url: &str, text: String, settings: ScriptSettings) -> Result<ScriptProxies> {
        let own =
            ScriptProxies { url: url.to_owned(), settings, pool: Pool::default(), state: Mutex::default() };
        own.set(text)?;
        Ok(own)
    }

    /// Its URL or path.
    pub fn url(&self) -> &str {
        &self.url
    }

    fn is_file(&self) -> bool {
        self.url.starts_with('/')
            || self.url.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"))
    }

    /// Puts a text in force, which has been loaded by then. Waits for a script thread, at most twice the time limit
    /// by its clock.
    ///
    /// # Errors
    /// `E_PAC` with line and column, `E_TIMEOUT`, `E_LIMIT`; then the old text stays in force, and questions that wait
    /// for a first one get the error. `E_SHUTDOWN`.
    pub fn set(&self, text: String) -> Result<()> {
        let engine = self.settings.engine.upgrade().ok_or(Status::E_SHUTDOWN)?;
        engine.check_open()?;
        let name = if self.url.is_empty() { "pac" } else { &self.url };
        let names = Arc::new(pac::NoNames);
        let pac = Pac::new(name, text, self.pool.clone(), names, self.settings.options.clone());
        match pac.and_then(|pac| pac.load().map(|()| pac)) {
            Ok(pac) => {
                let waiting = {
                    let mut state = self.state.lock();
                    state.pac = Some(Arc::new(pac));
                    state.since = engine.database_now();
                    state.generation = engine.database().generation();
                    (state.stale, state.fetching, state.failed) = (false, None, None);
                    core::mem::take(&mut state.waiting)
                };
                wake(&waiting, &Ok(()));
                Ok(())
            }
            Err(error) => {
                self.fail(error.clone())?;
                Err(error)
            }
        }
    }

    /// Fetching failed: questions that wait get the error, further ones until the next attempt too, unless an older
    /// text is in force.
    ///
    /// # Errors
    /// `E_SHUTDOWN`.
    pub fn fail(&self, error: Error) -> Result<()> {
        let engine = self.settings.engine.upgrade().ok_or(Status::E_SHUTDOWN)?;
        engine.check_open()?;
        let waiting = {
            let mut state = self.state.lock();
            let times = state.failed.as_ref().map_or(0, |failed| failed.times + 1);
            let pause = RETRY_MS.get(times).or(RETRY_MS.last()).copied().unwrap_or(0);
            let until = engine.database_now().saturating_add(pause);
            state.failed = Some(Failed { error: error.clone(), times, until });
            state.fetching = None;
            core::mem::take(&mut state.waiting)
        };
        wake(&waiting, &Err(error));
        Ok(())
    }

    /// Reads the file again, or has the next question fetch anew while the old text serves.
    ///
    /// # Errors
    /// As [`ScriptProxies::new`]; `E_STATE` when there is only a text.
    pub fn refresh(&self) -> Result<()> {
        if self.is_file() {
            return self.set(pac::text::read_file(&self.url)?);
        }
        if self.settings.host.is_none() {
            return Err(Error::new(Status::E_STATE, "this script came as a text; set another one"));
        }
        let mut state = self.state.lock();
        (state.stale, state.failed) = (true, None);
        Ok(())
    }

    /// What is to be known: a failed fetch while an older text serves.
    pub fn diagnostics(&self) -> Vec<String> {
        let state = self.state.lock();
        let failed =
            state.failed.as_ref().map(|failed| format!("the script was not fetched: {}", failed.error));
        failed.into_iter().collect()
    }

    /// True when this question is the one that has the text fetched.
    fn is_due(&self, engine: &Engine) -> bool {
        if self.settings.host.is_none() || self.is_file() {
            return false;
        }
        let now = engine.database_now();
        let mut state = self.state.lock();
        let wanted = state.pac.is_none()
            || state.stale
            || state.generation != engine.database().generation()
            || self.settings.refresh_ms > 0 && now.saturating_sub(state.since) >= self.settings.refresh_ms;
        let running = state.fetching.is_some_and(|since| now.saturating_sub(since) < FETCH_MS);
        let pausing = state.failed.as_ref().is_some_and(|failed| now < failed.until);
        if !wanted || running || pausing {
            return false;
        }
        state.fetching = Some(now);
        true
    }
}

fn wake(waiting: &[Arc<Fetched>], result: &Result<()>) {
    for request in waiting {
        let _ = request.finish(result.clone());
    }
}

/// Who asks, and what it may use.
pub(super) struct Asker<'a> {
    pub(super) engine: &'a Engine,
    /// The resolver of the address.
    pub(super) resolver: Option<&'a Arc<Resolver>>,
    pub(super) serving: &'a Serving,
    pub(super) object: usize,
    /// Script runs are waited for here, at most twice their limit by their thread's clock; for callers who take nothing later.
    pub(super) in_place: bool,
    pub(super) hearing: Hearing<'a>,
}

/// Who hears of the names a script asks for, and on whose behalf it asks.
#[derive(Clone, Copy)]
pub(super) struct Hearing<'a> {
    pub(super) listening: Listening<'a>,
    /// 0 outside a connection.
    pub(super) selector: u64,
    /// `None` when nobody listens.
    pub(super) address: Option<&'a Arc<Address>>,
    pub(super) compat: Compat,
}

impl Hearing<'_> {
    fn started(&self, name: &str) {
        let Some(address) = self.address else { return };
        self.listening.emit(EventKind::DnsStart, || Event {
            subject: name,
            ..Event::new(EventKind::DnsStart, self.selector, address)
        });
    }

    /// As of other lookups: addresses, or why there are none, which OkHttp's events leave out.
    fn ended(&self, name: &str, answer: &Result<Vec<IpAddr>>) {
        let Some(address) = self.address.filter(|_| self.listening.wants(EventKind::DnsEnd)) else { return };
        let none;
        let (ips, error): (Vec<Ip>, Option<&Error>) = match answer {
            Ok(ips) if !ips.is_empty() => (ips.iter().map(|ip| Ip::from(*ip)).collect(), None),
            Ok(_) => {
                let message = format!("DNS returned no addresses for {name}");
                none = Error::new(Status::E_UNKNOWN_HOST, message).subject(name).source(Source::Callback);
                (Vec::new(), Some(&none))
            }
            Err(error) => (Vec::new(), Some(error)),
        };
        if error.is_some() && self.compat != Compat::Byway {
            return;
        }
        self.listening.emit(EventKind::DnsEnd, || Event {
            subject: name,
            ips: &ips,
            error,
            ..Event::new(EventKind::DnsEnd, self.selector, address)
        });
    }
}

/// One question to a script, on its way.
pub(super) struct ScriptQuestion {
    source: Arc<ProxySource>,
    target: crate::proxies::OwnedTarget,
    at: At,
}

enum At {
    Start,
    Fetch(Arc<Fetched>),
    Run(Arc<Running>),
    Names { request: Shared<DnsRequest>, open: Option<Open>, name: String, rest: Box<(Evaluation, Question)> },
    Over,
}

impl ScriptQuestion {
    pub(super) fn new(source: Arc<ProxySource>, target: &Target<'_>) -> ScriptQuestion {
        ScriptQuestion { source, target: crate::proxies::OwnedTarget::of(target), at: At::Start }
    }

    fn script(&self) -> Option<&ScriptProxies> {
        match self.source.kind() {
            Choosing::Script(script) => Some(script),
            _ => None,
        }
    }

    /// Goes as far as it can; `None` when an answer is awaited.
    ///
    /// # Errors
    /// `E_SHUTDOWN`, `E_REENTRANT`; everything else is part of the answer.
    pub(super) fn drive(&mut self, asker: &Asker<'_>) -> Result<Option<Result<Choice>>> {
        loop {
            let at = core::mem::replace(&mut self.at, At::Over);
            let next = match at {
                At::Start => self.begin(asker)?,
                At::Fetch(request) => match request.read(|(), done| done.cloned()) {
                    None => At::Fetch(request),
                    // With the text, or without: an older one may serve.
                    Some(_) => self.begin(asker)?,
                },
                At::Run(request) => match ended(&request) {
                    None => At::Run(request),
                    Some(Ok((_, Step::Done(choice)))) => return Ok(Some(Ok(choice))),
                    Some(Ok((evaluation, Step::Ask(question)))) => {
                        match self.ask(asker, evaluation, question)? {
                            Ok(at) => at,
                            Err(error) => return Ok(Some(Err(error))),
                        }
                    }
                    Some(Err(error)) => return Ok(Some(Err(error))),
                },
                At::Names { request, open, name, rest } => {
                    let Some(answer) = answered(&request) else {
                        self.at = At::Names { request, open, name, rest };
                        return Ok(None);
                    };
                    let cache = self.resolver_of(asker);
                    asker.engine.remember_name(
                        cache.as_deref(),
                        &name,
                        answer.as_deref().unwrap_or_default(),
                    );
                    let (evaluation, question) = *rest;
                    match self.named(asker, evaluation, question, &name, answer) {
                        Ok(at) => at,
                        Err(error) => return Ok(Some(Err(error))),
                    }
                }
                At::Over => return Ok(Some(Err(Error::bare(Status::E_STATE)))),
            };
            match next {
                At::Over => return Ok(Some(Err(self.failure()))),
                waiting => {
                    let blocked = waiting.is_open();
                    self.at = waiting;
                    if blocked {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// The error of a script that could not be had.
    fn failure(&self) -> Error {
        let failed =
            self.script().and_then(|script| script.state.lock().failed.as_ref().map(|f| f.error.clone()));
        failed.unwrap_or_else(|| Error::bare(Status::E_STATE))
    }

    /// Has the text fetched when it is due, and begins a run if there is one.
    fn begin(&self, asker: &Asker<'_>) -> Result<At> {
        let Some(script) = self.script() else { return Ok(At::Over) };
        if script.is_due(asker.engine)
            && let Some(host) = &script.settings.host
        {
            let call = || host.fetch(&self.source, &script.url, asker.serving);
            match asker.engine.host_call(asker.object, call)? {
                Status::PENDING => {}
                Status::OK => {
                    let mut state = script.state.lock();
                    if state.fetching.is_some() {
                        state.fetching = None;
                        drop(state);
                        let why = "the callback said OK and handed in no script";
                        script.fail(Error::new(Status::E_EMPTY_ANSWER, why).source(Source::Callback))?;
                    }
                }
                failed => script.fail(super::asking::refusal(failed).subject(script.url.as_str()))?,
            }
        }
        let mut state = script.state.lock();
        if let Some(pac) = state.pac.clone() {
            drop(state);
            return Ok(run(asker, pac.begin(&self.target.borrow())));
        }
        if state.fetching.is_none() {
            return Ok(At::Over);
        }
        state.waiting.retain(|request| !request.is_canceled());
        if state.waiting.len() >= MAX_WAITING {
            return Err(Error::new(Status::E_LIMIT, "too many questions wait for one proxy script"));
        }
        let request = Arc::new(Fetched::new(0));
        state.waiting.push(Arc::clone(&request));
        Ok(At::Fetch(request))
    }

    fn resolver_of(&self, asker: &Asker<'_>) -> Option<Arc<Resolver>> {
        self.script().and_then(|script| script.settings.resolver.clone()).or_else(|| asker.resolver.cloned())
    }

    /// Finds out what the script wants to know, or has somebody find it out.
    fn ask(&self, asker: &Asker<'_>, evaluation: Evaluation, question: Question) -> Result<Result<At>> {
        let name = match &question {
            Question::OwnAddresses => {
                let given = self.script().and_then(|script| script.settings.own_addresses.clone());
                let own = given.unwrap_or_else(crate::sys::resolve::own_addresses);
                return Ok(self.go_on(asker, evaluation, question, &own));
            }
            Question::Addresses(name) => name,
        };
        // What is no host name has no address, and nobody is bothered with it.
        let Ok(host) = Host::parse(name, &|_| None) else {
            return Ok(self.go_on(asker, evaluation, question, &[]));
        };
        if let Some(ip) = host.ip().and_then(|ip| ip.to_std()) {
            return Ok(self.go_on(asker, evaluation, question, &[ip]));
        }
        let (name, resolver) = (host.text().to_owned(), self.resolver_of(asker));
        asker.hearing.started(&name);
        if let Some(ips) = asker.engine.cached_name(resolver.as_deref(), &name) {
            return Ok(self.named(asker, evaluation, question, &name, Ok(ips)));
        }
        let request = Shared::new(DnsRequest::new(asker.engine.next_id()));
        let mut open = None;
        let by_host = match resolver.as_deref().map(Resolver::kind) {
            Some(Resolving::Hosts(table)) => {
                let ips = table.lookup(&name).iter().filter_map(|ip| ip.to_std()).collect();
                return Ok(self.named(asker, evaluation, question, &name, Ok(ips)));
            }
            Some(Resolving::Host(own)) => {
                let (status, left) =
                    ask_host(own, asker.engine, asker.object, &request, host.c_text(), asker.serving)?;
                open = left;
                match status {
                    Status::OK => {
                        let _ = request.finish(Ok(()));
                        true
                    }
                    Status::PENDING => true,
                    Status::PASS => false,
                    failed => {
                        request.cancel();
                        let error = super::asking::refusal(failed).subject(name.as_str());
                        return Ok(self.named(asker, evaluation, question, &name, Err(error)));
                    }
                }
            }
            Some(Resolving::System) | None => false,
        };
        let request = if by_host {
            request
        } else {
            request.cancel();
            let request = Shared::new(DnsRequest::new(asker.engine.next_id()));
            if let Err(status) = dns::ask_system(&name, &request) {
                let error = Error::bare(status).subject(name.as_str());
                return Ok(self.named(asker, evaluation, question, &name, Err(error)));
            }
            request
        };
        Ok(Ok(At::Names { request, open, name, rest: Box::new((evaluation, question)) }))
    }

    /// A name is answered: the listeners hear of it, then the script, to whom a failed one has no address.
    fn named(
        &self,
        asker: &Asker<'_>,
        evaluation: Evaluation,
        question: Question,
        name: &str,
        answer: Result<Vec<IpAddr>>,
    ) -> Result<At> {
        asker.hearing.ended(name, &answer);
        self.go_on(asker, evaluation, question, answer.as_deref().unwrap_or_default())
    }

    fn go_on(
        &self,
        asker: &Asker<'_>,
        mut evaluation: Evaluation,
        question: Question,
        ips: &[IpAddr],
    ) -> Result<At> {
        evaluation.answer(question, ips.to_vec())?;
        Ok(run(asker, evaluation))
    }

    /// False when the awaited answer is there already.
    pub(super) fn watch(&self, notice: &Arc<Notice>) -> bool {
        match &self.at {
            At::Fetch(request) => request.watch(notice, false),
            At::Run(request) => request.watch(notice, false),
            At::Names { request, .. } => request.watch(notice, false),
            At::Start | At::Over => false,
        }
    }

    /// Nobody waits any more; a host that still may answer is told.
    pub(super) fn give_up(self) {
        match self.at {
            At::Fetch(request) => {
                request.cancel();
            }
            At::Run(request) => {
                request.cancel();
            }
            At::Names { request, open, .. } => open::give_up(&request, open),
            At::Start | At::Over => {}
        }
    }
}

impl At {
    /// True when it can only be waited for.
    fn is_open(&self) -> bool {
        match self {
            At::Fetch(request) => !request.is_answered(),
            At::Run(request) => !request.is_answered(),
            At::Names { request, .. } => !request.is_answered(),
            At::Start | At::Over => false,
        }
    }
}

/// Starts a run and looks for its answer for a moment: most scripts are done before a thread would be asleep.
fn run(asker: &Asker<'_>, mut evaluation: Evaluation) -> At {
    let request = Arc::new(Running::new(0));
    let give = |request: &Running, evaluation, step| {
        let added = request.add(|ran| {
            *ran = Some((evaluation, step));
            Ok::<_, Status>(())
        });
        let _ = added.and_then(|()| request.finish(Ok(())));
    };
    if asker.in_place {
        let step = evaluation.step();
        give(&request, evaluation, step);
        return At::Run(request);
    }
    let answer = Arc::clone(&request);
    // A run that its thread drops shows as one without an answer.
    let guard = Unanswered(Arc::clone(&request));
    let started = evaluation.start(move |evaluation, step| {
        give(&answer, evaluation, step);
        drop(guard);
    });
    if let Err(error) = started {
        let _ = request.finish(Err(error));
    }
    brief_wait(|| request.is_answered());
    At::Run(request)
}

/// Ends a request whose answerer went away.
struct Unanswered(Arc<Running>);

impl Drop for Unanswered {
    fn drop(&mut self) {
        let why = "the script's thread gave no answer";
        let _ = self.0.finish(Err(Error::new(Status::E_ABANDONED, why).source(Source::Script)));
    }
}

/// How a run ended; `None` while it runs.
fn ended(request: &Running) -> Option<Result<(Evaluation, Step)>> {
    request.read(|ran, done| {
        let done = done?;
        Some(match (ran.take(), done) {
            (Some((evaluation, step)), _) => step.map(|step| (evaluation, step)),
            (None, Err(error)) => Err(error.clone()),
            (None, Ok(())) => Err(Error::bare(Status::E_STATE)),
        })
    })
}

/// The addresses of a finished request; a failed lookup has none.
fn answered(request: &Shared<DnsRequest>) -> Option<Result<Vec<IpAddr>>> {
    request.read(|answer, done| {
        let ips: Vec<IpAddr> = answer.ips().iter().filter_map(|ip| ip.to_std()).collect();
        Some(match done? {
            Err(error) if ips.is_empty() => Err(error.clone()),
            _ => Ok(ips),
        })
    })
}

#[cfg(test)]
mod tests;
