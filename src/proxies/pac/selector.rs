//! The proxy selector that asks a script.

use super::answer::Answer;
use super::engine::{Answers, Calendar, Call, Input, Outcome, PacScript, Question, Ran};
use super::question::{host_argument, url_argument};
use crate::error::{Error, Result, Source, Status};
use crate::proxies::fixed::direct_list;
use crate::proxies::{Choice, ProxyKind, ProxySelector, Scripted, Target, Why, network};
use crate::runtime::clock::Clock;
use crate::script::{Bound, Limits, Pool, Zone};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// Who answers a script's questions about names. Asked on the thread that wants the proxies, never on a script
/// thread. The engine gives its own DNS.
pub trait Names: Send + Sync {
    /// Addresses of a name in ASCII form, in order. An error counts as "does not resolve", as scripts expect.
    fn resolve(&self, name: &str) -> Result<Vec<IpAddr>>;
    /// This machine's addresses, preferred ones first; empty when unknown.
    fn own_addresses(&self) -> Vec<IpAddr>;
}

/// Nobody: no name resolves.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoNames;

impl Names for NoNames {
    fn resolve(&self, name: &str) -> Result<Vec<IpAddr>> {
        Err(Error::new(Status::E_UNKNOWN_HOST, "no resolver for scripts").subject(name))
    }

    fn own_addresses(&self) -> Vec<IpAddr> {
        Vec::new()
    }
}

/// What an answer without any usable element means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum NothingUsable {
    /// An error of the request.
    #[default]
    Error,
    /// DIRECT, as browsers do.
    Direct,
}

/// How a script is run and read.
#[derive(Clone, Debug)]
pub struct PacOptions {
    /// Time, memory, stack, text.
    pub limits: Limits,
    /// The clock `Date` and the calendar helpers read. One that is not the system's is read once per question, on the
    /// thread that asks.
    pub clock: Clock,
    /// The zone of local time.
    pub zone: Zone,
    /// Calendar rules.
    pub calendar: Calendar,
    /// `FindProxyForURLEx` is called when the script defines it.
    pub ex: bool,
    /// What the keyword `SOCKS` means.
    pub socks: ProxyKind,
    /// What an answer without any usable element means.
    pub nothing_usable: NothingUsable,
    /// Loopback hosts are DIRECT without asking: a script that proxies them would let outsiders speak for this
    /// machine.
    pub loopback_direct: bool,
    /// Different names one run may ask for.
    pub names: usize,
}

impl Default for PacOptions {
    fn default() -> Self {
        PacOptions {
            limits: Limits::default(),
            clock: Clock::system(),
            zone: Zone::System,
            calendar: Calendar::Plain,
            ex: false,
            socks: ProxyKind::Socks4,
            nothing_usable: NothingUsable::Error,
            loopback_direct: true,
            names: 20,
        }
    }
}

/// A script as a proxy selector. Any number of threads ask at once; each of the pool's threads has a context of
/// its own, whose globals persist between calls.
pub struct Pac {
    script: Arc<PacScript>,
    pool: Pool,
    names: Arc<dyn Names>,
    options: PacOptions,
}

impl fmt::Debug for Pac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pac").field("name", &self.script.name).finish_non_exhaustive()
    }
}

/// Where an evaluation stands.
#[derive(Debug)]
pub enum Step {
    /// The answer.
    Done(Choice),
    /// Resolve this, hand it in with [`Evaluation::answer`], and run again.
    Ask(Question),
}

impl Pac {
    /// A selector over a script's text. `name` (its URL or path) appears in errors. The text is compiled by the
    /// first question, or by [`Pac::load`].
    ///
    /// `E_LIMIT` when the text is longer than the limit.
    pub fn new(
        name: &str,
        source: String,
        pool: Pool,
        names: Arc<dyn Names>,
        options: PacOptions,
    ) -> Result<Pac> {
        if source.len() > options.limits.source {
            let why = format!("the script is longer than {} bytes", options.limits.source);
            return Err(Error::new(Status::E_LIMIT, why).subject(name));
        }
        let script = PacScript {
            limits: options.limits,
            zone: options.zone,
            calendar: options.calendar,
            ex: options.ex,
            ..PacScript::new(name, source)
        };
        Ok(Pac { script: Arc::new(script), pool, names, options })
    }

    /// Compiles and loads the script now; one that asks for a name while it loads is left for the first question, which
    /// finds the name out. `E_PAC` with line and column when it does not parse, throws, or defines
    /// no entry; `E_TIMEOUT` and `E_LIMIT` when it uses up its time or memory.
    pub fn load(&self) -> Result<()> {
        self.evaluation(Call::Load, None).run().map(|_| ())
    }

    /// Starts a question without running anything: for hosts with their own event loop and DNS.
    pub fn begin(&self, target: &Target<'_>) -> Evaluation {
        let call = Call::Find { url: url_argument(target), host: host_argument(target).to_owned() };
        let direct = self.options.loopback_direct
            && target.ip().map_or_else(|| network::is_localhost_name(target.host), network::is_loopback);
        let done = direct.then(|| Choice { proxies: direct_list(), why: Why::Loopback });
        self.evaluation(call, done)
    }

    /// Evaluates an expression over the helper functions and gives its value as JSON, with what it said through
    /// `alert`: for looking into what a script sees.
    pub fn evaluate(&self, expression: &str) -> Result<(String, String)> {
        let ran = self.drive(self.evaluation(Call::Expression(expression.to_owned()), None))?;
        Ok((ran.text, ran.alerts))
    }

    fn evaluation(&self, call: Call, done: Option<Choice>) -> Evaluation {
        Evaluation {
            script: self.script.clone(),
            pool: self.pool.clone(),
            options: self.options.clone(),
            call,
            now: (!self.options.clock.is_system()).then(|| self.options.clock.wall_ms()),
            answers: Arc::default(),
            done,
        }
    }

    fn drive(&self, mut evaluation: Evaluation) -> Result<Ran> {
        loop {
            match evaluation.run()? {
                Ok(ran) => return Ok(ran),
                Err(question) => {
                    let addresses = match &question {
                        Question::Addresses(name) => self.names.resolve(name).unwrap_or_default(),
                        Question::OwnAddresses => self.names.own_addresses(),
                    };
                    evaluation.answer(question, addresses)?;
                }
            }
        }
    }
}

impl ProxySelector for Pac {
    fn select(&self, target: &Target<'_>) -> Result<Choice> {
        let mut evaluation = self.begin(target);
        if let Some(choice) = evaluation.done.take() {
            return Ok(choice);
        }
        let ran = self.drive(evaluation)?;
        read(&self.options, &self.script.name, ran)
    }
}

/// One question on its way: run, answer, run again, until it is done.
pub struct Evaluation {
    script: Arc<PacScript>,
    pool: Pool,
    options: PacOptions,
    call: Call,
    /// The same for every run of one question, so that a repeated run goes the same way.
    now: Option<i64>,
    answers: Arc<Answers>,
    done: Option<Choice>,
}

impl fmt::Debug for Evaluation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Evaluation")
            .field("script", &self.script.name)
            .field("answers", &self.answers)
            .finish()
    }
}

impl Evaluation {
    /// Runs the script on a script thread and waits for it, at most twice its time limit by that thread's
    /// processor clock ([`Bound`]).
    pub fn step(&mut self) -> Result<Step> {
        if let Some(choice) = self.done.take() {
            return Ok(Step::Done(choice));
        }
        match self.run()? {
            Ok(ran) => read(&self.options, &self.script.name, ran).map(Step::Done),
            Err(question) => Ok(Step::Ask(question)),
        }
    }

    /// Runs the script on a script thread and returns at once; `done` gets this evaluation back with where it
    /// stands, on the script thread, and should only store and wake.
    pub fn start(mut self, done: impl FnOnce(Evaluation, Result<Step>) + Send + 'static) -> Result<()> {
        if let Some(choice) = self.done.take() {
            done(self, Ok(Step::Done(choice)));
            return Ok(());
        }
        let (script, pool, bound) = (self.script.clone(), self.pool.clone(), self.bound());
        let input = self.input();
        pool.submit(&script, input, bound, move |outcome| {
            let step = match outcome {
                Outcome::Answer(ran) => read(&self.options, &self.script.name, ran).map(Step::Done),
                Outcome::Ask(question) => Ok(Step::Ask(question)),
                Outcome::Failed(error) => Err(error),
            };
            done(self, step);
        })
    }

    /// Hands in what a name resolves to; an empty list means "does not resolve". `E_LIMIT` after too many names.
    pub fn answer(&mut self, question: Question, addresses: Vec<IpAddr>) -> Result<()> {
        if self.answers.len() >= self.options.names {
            let why = format!("the script asks for more than {} names", self.options.names);
            return Err(Error::new(Status::E_LIMIT, why).subject(&self.script.name).source(Source::Script));
        }
        Arc::make_mut(&mut self.answers).insert(question, addresses);
        Ok(())
    }

    fn bound(&self) -> Bound {
        Bound::of(self.options.limits.time)
    }

    fn input(&mut self) -> Input {
        let call = match &self.call {
            Call::Find { url, host } => Call::Find { url: url.clone(), host: host.clone() },
            Call::Load => Call::Load,
            Call::Expression(text) => Call::Expression(text.clone()),
        };
        Input { call, now: self.now, answers: self.answers.clone() }
    }

    fn run(&mut self) -> Result<Result<Ran, Question>> {
        let bound = self.bound();
        let input = self.input();
        match self.pool.call(&self.script, input, bound)? {
            Outcome::Answer(ran) => Ok(Ok(ran)),
            Outcome::Ask(question) => Ok(Err(question)),
            Outcome::Failed(error) => Err(error),
        }
    }
}

/// From a script's text to a list.
fn read(options: &PacOptions, name: &str, ran: Ran) -> Result<Choice> {
    let named =
        |error: Error| Error::new(error.status(), error.message()).subject(name).source(Source::Script);
    let answer = Answer::parse(&ran.text, options.socks).map_err(named)?;
    if answer.proxies.is_empty() && options.nothing_usable == NothingUsable::Error {
        let why = match answer.skipped.first() {
            Some(first) => {
                format!("the script's answer names no usable proxy; the first element is \"{first}\"")
            }
            None => "the script's answer is empty; DIRECT must be said".to_owned(),
        };
        return Err(named(Error::new(Status::E_PAC, why)));
    }
    let proxies = if answer.proxies.is_empty() { direct_list() } else { answer.proxies.into() };
    let said = Scripted {
        answer: ran.text,
        skipped: answer.skipped,
        alerts: ran.alerts,
        took_ns: u64::try_from(ran.took.as_nanos()).unwrap_or(u64::MAX),
    };
    Ok(Choice { proxies, why: Why::Script(Arc::new(said)) })
}
