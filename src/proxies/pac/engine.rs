//! A proxy script in the sandbox: one call is one run. A name the script asks for and nobody has answered yet ends
//! the run; the caller resolves it and runs the script again with the answer, so no script thread waits for DNS.

use super::helpers;
use crate::error::{Error, Result, Source, Status};
use crate::runtime::clock::{Clock, VirtualClock};
use crate::script::rquickjs::prelude::{Coerced, Func};
use crate::script::rquickjs::{
    Ctx, Error as JsError, Exception, Function, IntoJs, Object, Result as JsResult, String as JsString, Value,
};
use crate::script::{Limits, Sandbox, Script, Trap, Zone, next_id};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a script wants to know.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Question {
    /// The addresses of a name, in ASCII form.
    Addresses(String),
    /// This machine's own addresses, the preferred ones first.
    OwnAddresses,
}

/// What is known so far; an empty list means "does not resolve".
pub(super) type Answers = HashMap<Question, Vec<IpAddr>>;

/// Which calendar rules `dateRange` and `timeRange` follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Calendar {
    /// `timeRange(22, 6)` passes midnight, `dateRange(1, 'JAN')` is one day.
    #[default]
    Plain,
    /// As browsers do, including what nobody meant.
    Browser,
}

/// A script's text with what its contexts are made of.
#[derive(Debug)]
pub(super) struct PacScript {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) source: String,
    pub(super) limits: Limits,
    pub(super) zone: Zone,
    pub(super) calendar: Calendar,
    /// Prefer `FindProxyForURLEx` when the script defines it.
    pub(super) ex: bool,
}

impl PacScript {
    pub(super) fn new(name: &str, source: String) -> PacScript {
        PacScript {
            id: next_id(),
            name: name.to_owned(),
            source,
            limits: Limits::default(),
            zone: Zone::System,
            calendar: Calendar::default(),
            ex: false,
        }
    }
}

/// What one run is given.
pub(super) struct Input {
    pub(super) call: Call,
    /// What the script's clock shows all through the run, in milliseconds since 1970; `None` = the system's.
    pub(super) now: Option<i64>,
    pub(super) answers: Arc<Answers>,
}

/// What is evaluated.
pub(super) enum Call {
    /// `FindProxyForURL`.
    Find { url: String, host: String },
    /// Nothing: only loading.
    Load,
    /// An expression over the helper functions; the result comes back as JSON.
    Expression(String),
}

/// How one run ended.
pub(super) enum Outcome {
    /// The answer's text.
    Answer(Ran),
    /// This must be known first.
    Ask(Question),
    /// No answer.
    Failed(Error),
}

/// A run that answered.
#[derive(Clone, Debug, Default)]
pub(super) struct Ran {
    pub(super) text: String,
    pub(super) alerts: String,
    pub(super) took: Duration,
}

/// What host functions of one context share.
#[derive(Default)]
struct Run {
    answers: RefCell<Arc<Answers>>,
    question: RefCell<Option<Question>>,
    alerts: RefCell<String>,
    alerts_left: Cell<usize>,
}

/// A loaded script.
pub(super) struct Loaded {
    sandbox: Sandbox,
    run: Rc<Run>,
    /// A clock that stands still during a run: a host's own may be read on the thread that asks only.
    clock: Arc<VirtualClock>,
}

impl Script for PacScript {
    type Instance = Loaded;
    type Input = Input;
    type Output = Outcome;

    fn id(&self) -> u64 {
        self.id
    }

    fn run(&self, instance: &mut Option<Loaded>, input: Input) -> Outcome {
        let start = Instant::now();
        let loaded = match instance.take() {
            Some(loaded) => {
                loaded.sandbox.begin();
                loaded.run.begin(&input.answers, self.limits.alerts);
                loaded.clock.set_wall_ms(input.now.unwrap_or_default());
                loaded
            }
            None => match self.load(&input) {
                Ok(loaded) => loaded,
                Err(outcome) => return outcome,
            },
        };
        let result = loaded.sandbox.enter(&self.source, |ctx| self.evaluate(ctx, &input.call));
        match result {
            Ok(text) => {
                let alerts = loaded.run.alerts.borrow().clone();
                *instance = Some(loaded);
                Outcome::Answer(Ran { text, alerts, took: start.elapsed() })
            }
            Err((trap, error)) => {
                let question = loaded.run.question.borrow_mut().take();
                if matches!(trap, Trap::Exception | Trap::Stopped) {
                    *instance = Some(loaded);
                }
                match question {
                    Some(question) => Outcome::Ask(question),
                    None => Outcome::Failed(as_pac(trap, error)),
                }
            }
        }
    }
}

/// The status a caller of a proxy selector sees; limits keep their own.
fn as_pac(trap: Trap, error: Error) -> Error {
    if trap != Trap::Exception || error.status() == Status::E_LIMIT {
        return error;
    }
    let out = Error::new(Status::E_PAC, error.message()).subject(error.about()).source(Source::Script);
    match error.position() {
        Some(at) => out.at(at),
        None => out,
    }
}

impl PacScript {
    fn load(&self, input: &Input) -> Result<Loaded, Outcome> {
        let clock = VirtualClock::new(input.now.unwrap_or_default());
        let shown = if input.now.is_some() { clock.clock() } else { Clock::system() };
        let sandbox = Sandbox::new(&self.name, self.limits, &shown, self.zone).map_err(Outcome::Failed)?;
        let run = Rc::new(Run::default());
        run.begin(&input.answers, self.limits.alerts);
        let plain = self.calendar == Calendar::Plain;
        let stopper = sandbox.stopper();
        let installed = sandbox.enter("", |ctx| {
            let native = natives(ctx, &run, move || stopper.stop())?;
            let install: Function<'_> = ctx.eval(helpers::SOURCE)?;
            install.call::<_, ()>((native, plain))
        });
        installed.map_err(|(_, error)| Outcome::Failed(error))?;
        sandbox.begin();
        let loaded = sandbox.load(&self.source, |ctx, _| {
            let entry: Value<'_> = ctx.globals().get("FindProxyForURL")?;
            let ex: Value<'_> = ctx.globals().get("FindProxyForURLEx")?;
            Ok(entry.is_function() || self.ex && ex.is_function())
        });
        match loaded {
            Ok(true) => Ok(Loaded { sandbox, run, clock }),
            Ok(false) => {
                let why = "while loading: the script defines no function FindProxyForURL";
                Err(Outcome::Failed(
                    Error::new(Status::E_PAC, why).subject(&self.name).source(Source::Script),
                ))
            }
            Err((trap, error)) => {
                if let Some(question) = run.question.borrow_mut().take() {
                    return Err(Outcome::Ask(question));
                }
                let error = as_pac(trap, error);
                let loading = Error::new(error.status(), format!("while loading: {}", error.message()))
                    .subject(&self.name)
                    .source(Source::Script);
                Err(Outcome::Failed(match error.position() {
                    Some(at) => loading.at(at),
                    None => loading,
                }))
            }
        }
    }

    fn evaluate(&self, ctx: &Ctx<'_>, call: &Call) -> JsResult<String> {
        let (url, host) = match call {
            Call::Find { url, host } => (url, host),
            Call::Load => return Ok(String::new()),
            Call::Expression(text) => {
                let value: Value<'_> = ctx.eval(text.as_str())?;
                let text = ctx.json_stringify(value)?;
                return text.map_or_else(|| Ok("undefined".to_owned()), |text| text.to_string());
            }
        };
        let globals = ctx.globals();
        let ex: Option<Function<'_>> = if self.ex {
            let value: Value<'_> = globals.get("FindProxyForURLEx")?;
            value.into_function()
        } else {
            None
        };
        let find: Function<'_> = match ex {
            Some(ex) => ex,
            None => globals.get("FindProxyForURL")?,
        };
        let value: Value<'_> = find.call((url.as_str(), host.as_str()))?;
        match value.as_string() {
            Some(text) => text.to_string(),
            None => {
                let why = format!("FindProxyForURL answered {}, expected a string", value.type_name());
                Err(Exception::throw_type(ctx, &why))
            }
        }
    }
}

impl Run {
    fn begin(&self, answers: &Arc<Answers>, alerts: usize) {
        *self.answers.borrow_mut() = answers.clone();
        *self.question.borrow_mut() = None;
        self.alerts.borrow_mut().clear();
        self.alerts_left.set(alerts);
    }

    /// The addresses, or `None` after the question was put and the run is to end.
    fn addresses(&self, question: Question) -> Option<Vec<IpAddr>> {
        if let Some(known) = self.answers.borrow().get(&question) {
            return Some(known.clone());
        }
        self.question.borrow_mut().get_or_insert(question);
        None
    }
}

/// A name as it is asked for: ASCII; an address needs no asking.
fn named(host: &str) -> std::result::Result<Question, IpAddr> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Err(address);
    }
    let ascii = if host.is_ascii() {
        host.to_owned()
    } else {
        idna::domain_to_ascii(host).unwrap_or_else(|_| host.to_owned())
    };
    Ok(Question::Addresses(ascii))
}

fn first_v4(addresses: &[IpAddr]) -> Option<String> {
    addresses.iter().find(|address| address.is_ipv4()).map(IpAddr::to_string)
}

fn joined(addresses: &[IpAddr]) -> String {
    addresses.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(";")
}

/// The native part of the helpers.
fn natives<'js>(ctx: &Ctx<'js>, run: &Rc<Run>, stop: impl Fn() + Clone + 'static) -> JsResult<Object<'js>> {
    let native = Object::new(ctx.clone())?;
    let lookup = {
        let run = run.clone();
        move |ctx: &Ctx<'_>, question: std::result::Result<Question, IpAddr>| {
            let question = match question {
                Ok(question) => question,
                Err(address) => return Ok(vec![address]),
            };
            run.addresses(question).ok_or_else(|| {
                stop();
                Exception::throw_message(ctx, "a name is being resolved")
            })
        }
    };
    native.set("isPlain", Func::from(|host: String| helpers::is_plain(&host)))?;
    native.set("glob", Func::from(|text: String, pattern: String| helpers::glob(&text, &pattern)))?;
    native.set(
        "inNetEx",
        Func::from(|address: String, prefix: String| helpers::in_net_ex(&address, &prefix)),
    )?;
    let sort = |ctx: Ctx<'js>, list: String| match helpers::sort(&list) {
        Some(sorted) => Ok(JsString::from_str(ctx, &sorted)?.into_value()),
        None => Ok::<_, JsError>(Value::new_bool(ctx, false)),
    };
    native.set("sort", Func::from(sort))?;
    let find = lookup.clone();
    let resolve4 =
        move |ctx: Ctx<'js>, host: String| Ok::<_, JsError>(NullOr(first_v4(&find(&ctx, named(&host))?)));
    native.set("resolve4", Func::from(resolve4))?;
    let find = lookup.clone();
    let resolve_ex = move |ctx: Ctx<'js>, host: String| Ok::<_, JsError>(joined(&find(&ctx, named(&host))?));
    native.set("resolveEx", Func::from(resolve_ex))?;
    let find = lookup.clone();
    let my4 = move |ctx: Ctx<'js>| {
        let own = find(&ctx, Ok(Question::OwnAddresses))?;
        Ok::<_, JsError>(first_v4(&own).unwrap_or_else(|| "127.0.0.1".to_owned()))
    };
    native.set("my4", Func::from(my4))?;
    let find = lookup.clone();
    let my_ex = move |ctx: Ctx<'js>| Ok::<_, JsError>(joined(&find(&ctx, Ok(Question::OwnAddresses))?));
    native.set("myEx", Func::from(my_ex))?;
    let in_net = move |ctx: Ctx<'js>, host: String, pattern: String, mask: String| {
        // Text in the shape of an address is one or nothing; it is never a name.
        let shape = host.split('.').count() == 4 && host.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let address = if shape {
            helpers::quad(&host)
        } else {
            let addresses = lookup(&ctx, named(&host))?;
            addresses.iter().find_map(|address| match address {
                IpAddr::V4(v4) => Some(*v4),
                IpAddr::V6(_) => None,
            })
        };
        Ok::<_, JsError>(address.is_some_and(|a| helpers::in_net(a, &pattern, &mask)))
    };
    native.set("inNet", Func::from(in_net))?;
    let run = run.clone();
    let alert = move |text: Coerced<String>| {
        let left = run.alerts_left.get();
        let mut end = text.0.len().min(left);
        while !text.0.is_char_boundary(end) {
            end -= 1;
        }
        let mut alerts = run.alerts.borrow_mut();
        alerts.push_str(text.0.get(..end).unwrap_or_default());
        alerts.push('\n');
        run.alerts_left.set(left.saturating_sub(end + 1));
    };
    native.set("alert", Func::from(alert))?;
    Ok(native)
}

/// `null` for nothing, where `Option` would give `undefined`.
struct NullOr(Option<String>);

impl<'js> IntoJs<'js> for NullOr {
    fn into_js(self, ctx: &Ctx<'js>) -> JsResult<Value<'js>> {
        match self.0 {
            Some(text) => Ok(JsString::from_str(ctx.clone(), &text)?.into_value()),
            None => Ok(Value::new_null(ctx.clone())),
        }
    }
}
