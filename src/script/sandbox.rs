//! One QuickJS context: hardened, bounded, with errors that tell line and column.

use super::{Bound, Limits, Zone, hardening};
use crate::error::{Error, Position, Result, Source, Status};
use crate::runtime::clock::Clock;
use crate::sys::script_heap::{Gauge, ScriptHeap};
use crate::sys::thread::cpu_time_ns;
use rquickjs::context::{EvalOptions, intrinsic};
use rquickjs::function::Func;
use rquickjs::{CaughtError, Context, Ctx, Function, Runtime, Value};
use std::cell::Cell;
use std::fmt;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// What a script's context has. Promises are there because async functions need them; nothing ever runs their
/// jobs, and the global is removed.
type Intrinsics = (
    intrinsic::Date,
    intrinsic::Eval,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::MapSet,
    intrinsic::Promise,
);

/// How a call ended that did not return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trap {
    /// Out of script time.
    Time,
    /// Out of memory.
    Memory,
    /// A host function asked to stop, see [`Sandbox::stopper`].
    Stopped,
    /// The script threw, or does not parse.
    Exception,
}

/// A context. Lives and dies on one thread.
pub struct Sandbox {
    context: Context,
    heap: Rc<Gauge>,
    budget: Rc<Budget>,
    limits: Limits,
    /// Shown in errors and used as the file name of stack frames.
    name: String,
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sandbox").field("name", &self.name).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Budget {
    /// When the call began.
    began: Cell<Option<Instant>>,
    /// Where the thread's own clock stood when the engine first asked. Reading it is a system call, which the many
    /// short calls shall not pay for.
    used: Cell<Option<u64>>,
    expired: Cell<Option<Overrun>>,
    stopped: Cell<bool>,
}

/// Which clock ran out.
#[derive(Clone, Copy, Debug)]
enum Overrun {
    Processor,
    Wall,
}

impl Budget {
    /// The engine asks every 10 000 steps.
    fn is_late(&self, limit: Duration) -> bool {
        let Some(start) = self.began.get() else { return false };
        let Some(used) = self.used.get() else {
            self.used.set(Some(cpu_time_ns()));
            return false;
        };
        let passed = start.elapsed();
        // No thread uses more than passes, and the clock on the wall is the cheaper one.
        if passed < limit {
            return false;
        }
        let late = if u128::from(cpu_time_ns().saturating_sub(used)) >= limit.as_nanos() {
            Some(Overrun::Processor)
        } else if passed >= Bound::of(limit).wall {
            Some(Overrun::Wall)
        } else {
            None
        };
        self.expired.set(self.expired.get().or(late));
        late.is_some()
    }
}

/// Lets a host function end the script at its next step; the script cannot catch it.
#[derive(Clone, Debug)]
pub struct Stopper(Rc<Budget>);

impl Stopper {
    /// Ends the running call with [`Trap::Stopped`].
    pub fn stop(&self) {
        self.0.stopped.set(true);
    }
}

impl Sandbox {
    /// A hardened context with nothing in it but the language. `name` appears in errors.
    pub fn new(name: &str, limits: Limits, clock: &Clock, zone: Zone) -> Result<Sandbox> {
        let no_engine = |what: &str| {
            Error::new(Status::E_RESOURCES, format!("no memory for the script engine: {what}")).subject(name)
        };
        let (memory, heap) = ScriptHeap::new(limits.memory.max(Limits::LEAST_MEMORY));
        let runtime = Runtime::new_with_alloc(memory).map_err(|_| no_engine("runtime"))?;
        runtime.set_max_stack_size(limits.stack);
        let budget = Rc::new(Budget::default());
        let poll = budget.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || {
            if poll.stopped.get() {
                return true;
            }
            poll.is_late(limits.time)
        })));
        let context = Context::custom::<Intrinsics>(&runtime).map_err(|_| no_engine("context"))?;
        let sandbox = Sandbox { context, heap, budget, limits, name: name.to_owned() };
        let clock = clock.clone();
        // Milliseconds fit a double for longer than dates do.
        #[allow(clippy::cast_precision_loss)]
        let now = move || clock.wall_ms() as f64;
        sandbox
            .enter("", |ctx| {
                let options = options("byway:hardening", true);
                let harden: Function<'_> = ctx.eval_with_options(hardening::SOURCE, options)?;
                let offset = match zone {
                    Zone::System => Value::new_undefined(ctx.clone()),
                    Zone::Fixed(minutes) => Value::new_int(ctx.clone(), minutes),
                };
                harden.call::<_, ()>((Func::from(now), offset))
            })
            .map_err(|(_, error)| error)?;
        Ok(sandbox)
    }

    /// For host functions that must end the call they are in.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.budget.clone())
    }

    /// The name given to it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Evaluates trusted text, a part of this library, for example helper functions; strict mode.
    pub fn prelude(&self, name: &str, source: &str) -> Result<()> {
        self.enter("", |ctx| ctx.eval_with_options(source, options(name, true))).map_err(|(_, error)| error)
    }

    /// Evaluates a user's script in sloppy mode and hands its completion value to `read`. The time for it is
    /// what [`Sandbox::begin`] left.
    pub fn load<T>(
        &self,
        source: &str,
        read: impl for<'js> FnOnce(&Ctx<'js>, Value<'js>) -> rquickjs::Result<T>,
    ) -> Result<T, (Trap, Error)> {
        if source.len() > self.limits.source {
            let why = format!("longer than {} bytes", self.limits.source);
            return Err((Trap::Exception, Error::new(Status::E_LIMIT, why).subject(&self.name)));
        }
        self.enter(source, |ctx| {
            let value: Value<'_> = ctx.eval_with_options(source, options(&self.name, false))?;
            read(ctx, value)
        })
    }

    /// Starts the clock for one call: everything until the next `begin` shares the limit.
    pub fn begin(&self) {
        self.budget.began.set(Some(Instant::now()));
        self.budget.used.set(None);
        self.budget.expired.set(None);
        self.budget.stopped.set(false);
        self.heap.reset();
    }

    /// Runs `work` inside the context. `source` is the script's text, for positions in errors. After a trap other
    /// than [`Trap::Exception`] the context is in an unknown state and must be dropped.
    pub fn enter<T>(
        &self,
        source: &str,
        work: impl for<'js> FnOnce(&Ctx<'js>) -> rquickjs::Result<T>,
    ) -> Result<T, (Trap, Error)> {
        self.context.with(|ctx| {
            let result = work(&ctx);
            if self.budget.stopped.get() {
                let _ = ctx.catch();
                return Err((Trap::Stopped, self.error(Status::E_CANCELED, "stopped")));
            }
            if let Some(overrun) = self.budget.expired.get() {
                let _ = ctx.catch();
                let why = match overrun {
                    Overrun::Processor => format!("ran longer than {} ms", self.limits.time.as_millis()),
                    Overrun::Wall => format!(
                        "did not get {} ms of processor time within {} ms",
                        self.limits.time.as_millis(),
                        Bound::of(self.limits.time).wall.as_millis()
                    ),
                };
                return Err((Trap::Time, self.error(Status::E_TIMEOUT, &why)));
            }
            result.map_err(|error| self.explain(&ctx, error, source))
        })
    }

    fn error(&self, status: Status, why: &str) -> Error {
        Error::new(status, why).subject(&self.name).source(Source::Script)
    }

    fn out_of_memory(&self) -> Error {
        let why =
            format!("needs more than {} MiB of memory", self.limits.memory.max(Limits::LEAST_MEMORY) >> 20);
        self.error(Status::E_LIMIT, &why)
    }

    /// Memory in use, in bytes.
    pub fn memory(&self) -> usize {
        self.heap.used()
    }

    fn explain<'js>(&self, ctx: &Ctx<'js>, error: rquickjs::Error, source: &str) -> (Trap, Error) {
        let (message, stack) = match CaughtError::from_error(ctx, error) {
            CaughtError::Error(rquickjs::Error::Allocation) => return (Trap::Memory, self.out_of_memory()),
            CaughtError::Error(other) => (other.to_string(), String::new()),
            CaughtError::Exception(exception) => {
                let kind: Option<String> = exception.as_object().get("name").ok();
                let message = exception.message().unwrap_or_default();
                if kind.as_deref() == Some("InternalError") && message.contains("out of memory") {
                    let error = self.out_of_memory();
                    let place = place(&exception.stack().unwrap_or_default(), &self.name);
                    return match place {
                        Some((line, column)) => (Trap::Memory, error.at(position(source, line, column))),
                        None => (Trap::Memory, error),
                    };
                }
                let message = match kind {
                    Some(kind) if !kind.is_empty() => format!("{kind}: {message}"),
                    _ => message,
                };
                (message, exception.stack().unwrap_or_default())
            }
            CaughtError::Value(value) => {
                // What is left of an error that there was no memory for.
                if value.is_null() && self.heap.refused() {
                    return (Trap::Memory, self.out_of_memory());
                }
                if value.is_null() {
                    return (Trap::Exception, self.error(Status::E_SCRIPT, "threw null"));
                }
                let text = value.as_string().and_then(|text| text.to_string().ok());
                (
                    text.map_or_else(|| "threw a value that is no Error".into(), |t| format!("threw {t}")),
                    String::new(),
                )
            }
        };
        // One line, bounded: it ends up in events and logs.
        let message: String =
            message.chars().map(|c| if c.is_control() { ' ' } else { c }).take(300).collect();
        let error = self.error(Status::E_SCRIPT, &message);
        match place(&stack, &self.name) {
            Some((line, column)) => (Trap::Exception, error.at(position(source, line, column))),
            None => (Trap::Exception, error),
        }
    }
}

/// Strict or sloppy global code under a file name.
fn options(name: &str, strict: bool) -> EvalOptions {
    let mut options = EvalOptions::default();
    options.strict = strict;
    options.filename = Some(name.to_owned());
    options
}

/// Line and column of the topmost frame in the script's own text.
fn place(stack: &str, name: &str) -> Option<(u32, u32)> {
    let marker = format!("{name}:");
    stack.lines().find_map(|frame| {
        let (_, place) = frame.rsplit_once(marker.as_str())?;
        let mut numbers = place.trim_end_matches(')').split(':');
        let line = numbers.next()?.parse().ok()?;
        Some((line, numbers.next().and_then(|column| column.parse().ok()).unwrap_or(1)))
    })
}

/// A line and column, as the engine counts them, in a script's text.
pub fn position(source: &str, line: u32, column: u32) -> Position {
    let skip = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
    let start: usize = source.split_inclusive('\n').take(skip).map(str::len).sum();
    let before = usize::try_from(column.saturating_sub(1)).unwrap_or(usize::MAX);
    let text = source.get(start..).unwrap_or_default();
    let text = text.split('\n').next().unwrap_or_default();
    let offset = text.char_indices().nth(before).map_or(text.len(), |(at, _)| at);
    Position { offset: start + offset, line, column }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::clock::VirtualClock;

    /// 2026-03-01 20:30:15 UTC.
    const NOW: i64 = 1_772_397_015_000;

    fn evaluate(zone: Zone, text: &str) -> String {
        let clock = VirtualClock::new(NOW);
        let sandbox = Sandbox::new("dates", Limits::default(), &clock.clock(), zone).unwrap();
        let source = format!("String({text})");
        sandbox
            .enter(&source, |ctx| ctx.eval::<String, _>(source.as_str()))
            .map_err(|(_, error)| error)
            .unwrap()
    }

    /// Whatever zone this process is in.
    #[test]
    fn dates_are_local_to_the_zone_that_was_given() {
        let east = Zone::Fixed(330);
        for (text, want) in [
            ("new Date()", "Mon Mar 02 2026 02:00:15 GMT+0530"),
            ("Date()", "Mon Mar 02 2026 02:00:15 GMT+0530"),
            ("new Date().toDateString()", "Mon Mar 02 2026"),
            ("new Date().toTimeString()", "02:00:15 GMT+0530"),
            ("new Date().toISOString()", "2026-03-01T20:30:15.000Z"),
            ("new Date().getDate() + ' ' + new Date().getUTCDate()", "2 1"),
            ("new Date().getTimezoneOffset()", "-330"),
            ("new Date().getYear()", "126"),
            ("new Date(2026, 2, 2, 2, 0, 15).getTime()", "1772397015000"),
            ("new Date(2026, 2).toISOString()", "2026-02-28T18:30:00.000Z"),
            ("new Date('2026-03-02T02:00:15').getTime()", "1772397015000"),
            ("new Date('Mar 2 2026 02:00:15').getTime()", "1772397015000"),
            ("Date.parse('2026-03-02T02:00:15+05:30')", "1772397015000"),
            ("Date.parse('Sun, 01 Mar 2026 20:30:15 GMT')", "1772397015000"),
            ("Date.parse('2026-03-01')", "1772323200000"),
            ("new Date('2026-03-01T00:00:00Z').getTime()", "1772323200000"),
            ("new Date(new Date()).getTime()", "1772397015000"),
            ("new Date(String(new Date())).getTime()", "1772397015000"),
            ("new Date(0).setHours(5, 0)", "-1800000"),
            ("new Date(2026, 11, 31).setFullYear(2024) === new Date(2024, 11, 31).getTime()", "true"),
            ("new Date(NaN)", "Invalid Date"),
            ("new Date('nonsense').getTime()", "NaN"),
            ("Date.UTC(1970, 0, 1)", "0"),
        ] {
            assert_eq!(evaluate(east, text), want, "{text}");
        }
        assert_eq!(evaluate(Zone::Fixed(-90), "new Date()"), "Sun Mar 01 2026 19:00:15 GMT-0130");
    }
}
