//! A routing script in the sandbox: compiled once per thread, run once per call.

use super::kept::Reads;
use super::split;
use crate::chain::invocation::Invocation;
use crate::chain::program::Column;
use crate::chain::snapshot::Invokers;
use crate::chain::url::Url;
use crate::error::{Error, Result, Source, Status};
use crate::runtime::clock::Clock;
use crate::script::rquickjs::function::Func;
use crate::script::rquickjs::{
    Ctx, Function, Object, Persistent, Result as JsResult, String as JsString, Value,
};
use crate::script::{Bound, Limits, Pool, Sandbox, Script, Trap, Zone, next_id, position};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Shown as the file name of a script's stack frames.
const NAME: &str = "script";

/// A text that takes longer to be compiled is refused.
const COMPILING: Duration = Duration::from_secs(10);

/// A script with what its contexts are made of.
#[derive(Debug)]
pub struct Program {
    id: u64,
    source: String,
    limits: Limits,
}

/// One call, owned: it crosses to a script thread.
#[derive(Clone, Debug, Default)]
pub struct Call {
    invokers: Option<Arc<Invokers>>,
    consumer: Option<Arc<Url>>,
    rows: Vec<u32>,
    /// Rows that are not available; normally none.
    unavailable: Vec<u32>,
    /// What is looked at is noted, see [`Reads`].
    noted: bool,
    method: String,
    types: Vec<String>,
    arguments: Vec<Option<String>>,
    attachments: Vec<(String, String)>,
}

impl Call {
    /// A call over rows of a list.
    pub fn new(invokers: Arc<Invokers>, rows: Vec<u32>, call: &Invocation<'_>, consumer: Arc<Url>) -> Call {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Call {
            invokers: Some(invokers),
            consumer: Some(consumer),
            rows,
            unavailable: Vec::new(),
            noted: false,
            method: text(call.effective_method()),
            types: call.types.iter().map(|name| text(name)).collect(),
            arguments: call.arguments.iter().map(|value| value.map(text)).collect(),
            attachments: call.attachments.iter().map(|(name, value)| (text(name), text(value))).collect(),
        }
    }

    /// Marks rows that `isAvailable` denies.
    #[must_use]
    pub fn unavailable(mut self, rows: Vec<u32>) -> Call {
        self.unavailable = rows;
        self
    }

    /// Has noted what the script looks at.
    #[must_use]
    pub(super) fn noted(mut self) -> Call {
        self.noted = true;
        self
    }

    fn url(&self, row: i32, column: &Column) -> Option<String> {
        match usize::try_from(row) {
            Ok(row) => Some(self.invokers.as_ref()?.column(row, column)?.into_owned()),
            Err(_) => Some(self.consumer.as_ref()?.column(column)?.into_owned()),
        }
    }

    fn text(&self, row: i32) -> Option<String> {
        match usize::try_from(row) {
            Ok(row) => {
                let invokers = self.invokers.as_ref()?;
                invokers.text(row).map(str::to_owned).or_else(|| Some(invokers.address(row)))
            }
            Err(_) => Some(self.consumer.as_ref()?.text().to_owned()),
        }
    }

    fn parameters(&self, row: i32) -> Vec<Vec<String>> {
        match (usize::try_from(row), &self.invokers, &self.consumer) {
            (Ok(row), Some(invokers), _) => {
                let value = |name: &str| {
                    let value = invokers.column(row, &Column::parameter(name))?;
                    Some(vec![name.to_owned(), value.into_owned()])
                };
                invokers.parameters().filter_map(value).collect()
            }
            (Err(_), _, Some(consumer)) => {
                consumer.parameters().map(|(name, value)| vec![name.to_owned(), value.to_owned()]).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// What a script kept, and what it looked at of the call if that was asked for ([`Call::noted`]).
#[derive(Debug, Default)]
pub struct Answer {
    /// Ascending, without repetitions.
    pub(super) rows: Vec<u32>,
    pub(super) reads: Reads,
}

/// What host functions share with one run.
#[derive(Default)]
struct Run {
    call: RefCell<Call>,
    kept: RefCell<Vec<u32>>,
    reads: RefCell<Reads>,
}

impl Run {
    /// The call, about to be looked at.
    fn read(&self, note: impl FnOnce(&mut Reads)) -> std::cell::Ref<'_, Call> {
        let call = self.call.borrow();
        if call.noted {
            note(&mut self.reads.borrow_mut());
        }
        call
    }
}

/// A compiled script.
pub struct Loaded {
    // Dropped before the context they live in.
    run_function: Option<Persistent<Function<'static>>>,
    host: Persistent<Object<'static>>,
    shared: Rc<Run>,
    sandbox: Sandbox,
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loaded").finish_non_exhaustive()
    }
}

/// A text to be compiled and not run.
struct Check {
    id: u64,
    source: String,
    limits: Limits,
}

impl Script for Check {
    type Instance = ();
    type Input = ();
    type Output = Result<()>;

    fn id(&self) -> u64 {
        self.id
    }

    fn run(&self, _: &mut Option<()>, (): ()) -> Result<()> {
        let sandbox = Sandbox::new(NAME, self.limits, &Clock::system(), Zone::Fixed(0))?;
        sandbox.begin();
        // Inside a function that is never called nothing runs.
        let wrapped = format!("(function (invokers, invocation, context) {{\n{}\n}})", self.source);
        sandbox.load(&wrapped, |_, _| Ok(())).map_err(|(_, error)| match error.position() {
            Some(at) => {
                let line = at.line.saturating_sub(1).max(1);
                error.clone().at(position(&self.source, line, at.column))
            }
            None => error,
        })
    }
}

impl Program {
    /// A script's text. `E_ARGUMENT` when it is empty, `E_LIMIT` when it is too long.
    pub fn new(source: String, limits: Limits) -> Result<Program> {
        if source.trim().is_empty() {
            return Err(Error::new(Status::E_ARGUMENT, "route rule can not be empty.").subject("rule"));
        }
        if source.len() > limits.source {
            let why = format!("the script is longer than {} bytes", limits.source);
            return Err(Error::new(Status::E_LIMIT, why).subject("rule"));
        }
        Ok(Program { id: next_id(), source, limits })
    }

    /// Compiles a text on a pool without running it.
    ///
    /// # Errors
    /// `E_SCRIPT` with line and column of the text; as [`Program::new`] and [`Pool::call`].
    pub fn check(source: &str, limits: Limits, pool: &Pool) -> Result<()> {
        let Program { id, source, mut limits } = Program::new(source.to_owned(), limits)?;
        // Nothing runs, and the text is bounded: a good text must not be refused because the machine is busy.
        limits.time = limits.time.max(COMPILING);
        pool.call(&Arc::new(Check { id, source, limits }), (), Bound::of(limits.time))?
    }

    /// Runs the script on a pool: the rows that stay, ascending and without repetitions.
    ///
    /// `E_SCRIPT` when it throws, does not parse or answers with something else than a list, with line and column
    /// where there is one; `E_TIMEOUT`, `E_LIMIT` when it uses up its time or memory.
    pub fn route(self: &Arc<Self>, pool: &Pool, call: Call) -> Result<Vec<u32>> {
        self.answer(pool, call).map(|answer| answer.rows)
    }

    /// [`Program::route`], with what the script looked at.
    pub(super) fn answer(self: &Arc<Self>, pool: &Pool, call: Call) -> Result<Answer> {
        pool.call(self, call, Bound::of(self.limits.time))?
    }

    fn load(&self) -> Result<Loaded, (Trap, Error)> {
        let other = |error| (Trap::Exception, error);
        let sandbox = Sandbox::new(NAME, self.limits, &Clock::system(), Zone::System).map_err(other)?;
        let shared = Rc::new(Run::default());
        let host = sandbox.enter("", |ctx| {
            let install: Function<'_> = ctx.eval(include_str!("bindings.js"))?;
            let host: Object<'_> = install.call((natives(ctx, &shared)?,))?;
            Ok(Persistent::save(ctx, host))
        })?;
        sandbox.begin();
        let mut run_function = None;
        if let Some((head, tail)) = split::answer(&self.source) {
            // On one line with the script's first, so that lines in errors are the script's own. Both parts must
            // stand on their own, or the cut was in the wrong place.
            let text = format!("(function (invokers, invocation, context) {{{head}; return (\n{tail}\n);}})");
            let alone = format!("(function () {{{head}\n}})");
            let fits = sandbox.load(&alone, |_, _| Ok(())).is_ok();
            if fits {
                let compiled = sandbox.load(&text, |ctx, value| {
                    Ok(value.into_function().map(|function| Persistent::save(ctx, function)))
                });
                run_function = compiled.ok().flatten();
            }
        }
        Ok(Loaded { run_function, host, shared, sandbox })
    }
}

impl Script for Program {
    type Instance = Loaded;
    type Input = Call;
    type Output = Result<Answer>;

    fn id(&self) -> u64 {
        self.id
    }

    fn run(&self, instance: &mut Option<Loaded>, call: Call) -> Result<Answer> {
        let loaded = match instance.take() {
            Some(loaded) => {
                loaded.sandbox.begin();
                loaded
            }
            None => self.load().map_err(|(_, error)| error)?,
        };
        // Rows of one list keep their objects between calls.
        #[allow(clippy::cast_precision_loss)]
        let generation = call.invokers.as_ref().map_or(0, |invokers| invokers.id()) as f64;
        let rows = call.rows.clone();
        *loaded.shared.call.borrow_mut() = call;
        loaded.shared.kept.borrow_mut().clear();
        *loaded.shared.reads.borrow_mut() = Reads::default();
        let answer: Result<String, (Trap, Error)> = match &loaded.run_function {
            Some(function) => loaded.sandbox.enter(&self.source, |ctx| {
                let host = loaded.host.clone().restore(ctx)?;
                let run: Function<'_> = host.get("run")?;
                run.call((function.clone().restore(ctx)?, generation, rows))
            }),
            None => {
                let given = loaded.sandbox.enter(&self.source, |ctx| {
                    let give: Function<'_> = loaded.host.clone().restore(ctx)?.get("give")?;
                    give.call::<_, ()>((generation, rows))
                });
                given.and_then(|()| {
                    loaded.sandbox.load(&self.source, |ctx, value| {
                        let keep: Function<'_> = loaded.host.clone().restore(ctx)?.get("keep")?;
                        keep.call((value,))
                    })
                })
            }
        };
        *loaded.shared.call.borrow_mut() = Call::default();
        let mut kept = loaded.shared.kept.take();
        let reads = loaded.shared.reads.take();
        let answer = match answer {
            Ok(answer) => answer,
            Err((trap, error)) => {
                if trap == Trap::Exception {
                    *instance = Some(loaded);
                }
                return Err(error);
            }
        };
        *instance = Some(loaded);
        if !answer.is_empty() {
            let why = format!("answered {answer}; expected a list of the given invokers");
            return Err(Error::new(Status::E_SCRIPT, why).subject(NAME).source(Source::Script));
        }
        kept.sort_unstable();
        kept.dedup();
        Ok(Answer { rows: kept, reads })
    }
}

/// `null` for what is not there.
fn or_null<'js>(ctx: Ctx<'js>, text: Option<String>) -> JsResult<Value<'js>> {
    match text {
        Some(text) => Ok(JsString::from_str(ctx, &text)?.into_value()),
        None => Ok(Value::new_null(ctx)),
    }
}

fn natives<'js>(ctx: &Ctx<'js>, shared: &Rc<Run>) -> JsResult<Object<'js>> {
    let native = Object::new(ctx.clone())?;
    let run = shared.clone();
    let part = move |ctx: Ctx<'js>, row: i32, name: String| {
        let call = run.call.borrow();
        let text = match name.as_str() {
            "protocol" => call.url(row, &Column::Protocol),
            "username" => call.url(row, &Column::Username),
            "host" => call.url(row, &Column::Host),
            "port" => call.url(row, &Column::Port),
            "address" => call.url(row, &Column::Address),
            "path" => call.url(row, &Column::Path),
            _ => call.text(row),
        };
        or_null(ctx, text)
    };
    native.set("part", Func::from(part))?;
    let run = shared.clone();
    let parameter = move |ctx: Ctx<'js>, row: i32, name: String| {
        or_null(ctx, run.call.borrow().url(row, &Column::parameter(name)))
    };
    native.set("parameter", Func::from(parameter))?;
    let run = shared.clone();
    native.set("parameters", Func::from(move |row: i32| run.call.borrow().parameters(row)))?;
    let run = shared.clone();
    let available = move |row: u32| !run.call.borrow().unavailable.contains(&row);
    native.set("available", Func::from(available))?;
    let run = shared.clone();
    native.set("method", Func::from(move || run.read(|reads| reads.method = true).method.clone()))?;
    let run = shared.clone();
    native.set("types", Func::from(move || run.read(|reads| reads.types = true).types.clone()))?;
    let run = shared.clone();
    let arguments = move |ctx: Ctx<'js>| {
        let list = run.read(|reads| reads.arguments = true).arguments.clone();
        list.into_iter().map(|value| or_null(ctx.clone(), value)).collect::<JsResult<Vec<_>>>()
    };
    native.set("arguments", Func::from(arguments))?;
    let run = shared.clone();
    let attachment = move |ctx: Ctx<'js>, name: String| {
        let call = run.read(|reads| reads.attachment(&name));
        let found = call.attachments.iter().rev().find(|(known, _)| *known == name);
        or_null(ctx, found.map(|(_, value)| value.clone()))
    };
    native.set("attachment", Func::from(attachment))?;
    let run = shared.clone();
    let attachments = move || {
        let call = run.read(|reads| reads.attachments = true);
        call.attachments.iter().map(|(name, value)| vec![name.clone(), value.clone()]).collect::<Vec<_>>()
    };
    native.set("attachments", Func::from(attachments))?;
    let run = shared.clone();
    let keep = move |row: u32| {
        let inside = run.call.borrow().rows.binary_search(&row).is_ok();
        if inside {
            run.kept.borrow_mut().push(row);
        }
    };
    native.set("keep", Func::from(keep))?;
    // What scripts print goes nowhere: the process's output is the host's.
    native.set("log", Func::from(|_text: String| {}))?;
    Ok(native)
}
