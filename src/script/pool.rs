//! The threads scripts run on.
//!
//! A call hands its script and input to a thread and waits with its own limit, which is counted on that thread's
//! processor clock. The thread used last is used first,
//! so calls in sequence meet the same context; it looks for more work for a moment before it sleeps, so such calls
//! do not pay for waking it. A thread whose script does not stop in time is written off: it counts as stuck, ends
//! when it comes back, and another one takes its place as long as there are not too many of them.

use crate::error::{Error, Result, Status};
use crate::sys::thread::CpuClock;
use once_cell::sync::OnceCell;
use parking_lot::Mutex;
use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// Something a pool can run: text, compiled into an instance on each thread that needs it.
pub trait Script: Send + Sync + 'static {
    /// A compiled context; stays on its thread.
    type Instance: 'static;
    /// What one call is given.
    type Input: Send + 'static;
    /// What one call gives.
    type Output: Send + 'static;

    /// From [`next_id`], the same for the whole life of the script.
    fn id(&self) -> u64;

    /// One call. `instance` is what this thread kept from the last one; leave `None` to have it made anew.
    fn run(&self, instance: &mut Option<Self::Instance>, input: Self::Input) -> Self::Output;
}

/// A number no other script has.
pub fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// How long one call may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Processor time of the thread it runs on.
    pub time: Duration,
    /// Time on the wall, waiting for a thread included: what ends a wait that gets no processor.
    pub wall: Duration,
}

impl Bound {
    /// With a wall clock of twenty times as much, at least ten seconds.
    pub fn of(time: Duration) -> Bound {
        Bound { time, wall: time.saturating_mul(20).max(Duration::from_secs(10)) }
    }
}

/// A call against its bound.
#[derive(Debug)]
struct Meter {
    bound: Bound,
    start: Instant,
    /// Where its thread's clock stood when this was first looked at late. Reading such a clock is a system call, which
    /// the many short calls shall not pay for.
    before: Option<u64>,
}

impl Meter {
    /// Starts to count.
    fn new(bound: Bound) -> Meter {
        Meter { bound, start: Instant::now(), before: None }
    }

    /// The least time it certainly may still take, by the clock of the thread it runs on; `None` when it is late. A
    /// call has the bound on the wall first, which no thread's own time outruns, and then the bound of the thread's.
    fn left(&mut self, thread: Option<CpuClock>) -> Option<Duration> {
        let passed = self.start.elapsed();
        let left = |all: Duration, used: Duration| all.checked_sub(used).filter(|left| !left.is_zero());
        let wall = left(self.bound.wall, passed)?;
        if let Some(early) = left(self.bound.time, passed) {
            return Some(early.min(wall));
        }
        let Some(now) = thread.and_then(CpuClock::now_ns) else {
            return Some(self.bound.time.min(wall));
        };
        let before = *self.before.get_or_insert(now);
        left(self.bound.time, Duration::from_nanos(now.saturating_sub(before))).map(|time| time.min(wall))
    }
}

/// Bounds of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// Threads in use at once.
    pub threads: usize,
    /// Written-off threads that are tolerated.
    pub stuck: usize,
    /// Calls that may wait for a thread.
    pub waiting: usize,
}

impl Default for PoolLimits {
    /// A thread for each processor, 4 to 16; 4 stuck ones, 1024 waiting calls.
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        PoolLimits { threads: processors.clamp(4, 16), stuck: 4, waiting: 1024 }
    }
}

/// A pool. Cheap to clone; its threads end when the last clone is dropped.
#[derive(Clone)]
pub struct Pool {
    shared: Arc<Shared>,
    /// Dropped with the last handle; the threads hold `shared` only.
    _closer: Arc<Closer>,
}

struct Closer(Arc<Shared>);

struct Shared {
    limits: PoolLimits,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Task>,
    idle: Vec<Arc<Desk>>,
    busy: Vec<Busy>,
    threads: usize,
    stuck: usize,
    closing: bool,
}

struct Busy {
    desk: Arc<Desk>,
    meter: Meter,
}

/// Hands an answer out.
type Finish = Box<dyn FnOnce()>;

type Job = Box<dyn FnOnce(&mut Instances, Option<CpuClock>) -> Finish + Send>;

struct Task {
    /// Runs the script and gives what is left to do: handing out the answer. The thread is free again before
    /// that, so whoever gets the answer and comes back at once meets the same context.
    job: Job,
    /// How long the job may run before its thread is written off.
    bound: Bound,
}

/// Where one thread gets its work.
#[derive(Default)]
struct Desk {
    task: Mutex<Option<Task>>,
    ready: AtomicBool,
    /// Its script did not stop: the thread ends when it does.
    written_off: AtomicBool,
    thread: OnceCell<Thread>,
    /// The thread's, set by itself.
    clock: OnceCell<Option<CpuClock>>,
}

/// Contexts one thread keeps, by script.
type Instances = HashMap<u64, (Weak<dyn Any + Send + Sync>, Box<dyn Any>)>;

/// Contexts per thread; the pool empties the shelf when it is full.
const KEPT: usize = 64;
/// How long a thread looks for more work, and a caller for its answer, before going to sleep.
const SPIN: Duration = Duration::from_micros(40);
/// A thread that waits for a clock of another one looks no more often.
const LEAST_SLEEP: Duration = Duration::from_millis(1);

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.state.lock();
        f.debug_struct("Pool")
            .field("threads", &state.threads)
            .field("stuck", &state.stuck)
            .field("waiting", &state.queue.len())
            .finish()
    }
}

impl Default for Pool {
    fn default() -> Self {
        Pool::new(PoolLimits::default())
    }
}

impl Drop for Closer {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.closing = true;
        state.queue.clear();
        for desk in std::mem::take(&mut state.idle) {
            if let Some(thread) = desk.thread.get() {
                thread.unpark();
            }
        }
    }
}

impl Pool {
    /// A pool without threads; they are started by the first calls.
    pub fn new(limits: PoolLimits) -> Pool {
        let limits = PoolLimits { threads: limits.threads.max(1), ..limits };
        let shared = Arc::new(Shared { limits, state: Mutex::default() });
        Pool { _closer: Arc::new(Closer(shared.clone())), shared }
    }

    /// Runs a script and waits for its output, at most twice `bound.time` of its thread's processor time, and at most
    /// `bound.wall` with all waiting.
    ///
    /// `E_TIMEOUT` when time is up, `E_RESOURCES` when no thread can be had, `E_LIMIT` when too many calls wait,
    /// `E_PANIC` for a defect while it ran.
    pub fn call<S: Script>(&self, script: &Arc<S>, input: S::Input, bound: Bound) -> Result<S::Output> {
        let reply = Arc::new(Reply::default());
        let (answer, runner) = (Answer(reply.clone()), reply.clone());
        let begun = move |clock| _ = runner.runner.set(clock);
        self.run(script, input, bound, begun, move |output| answer.give(output))?;
        reply.wait(bound)
    }

    /// Runs a script and hands its output to `done` on the pool's thread; `done` only stores and wakes. It is
    /// dropped uncalled when the pool closes first or the script fails inside the library. `bound` is how long
    /// the call may run before its thread is written off, twice the time as for [`Pool::call`].
    pub fn submit<S: Script>(
        &self,
        script: &Arc<S>,
        input: S::Input,
        bound: Bound,
        done: impl FnOnce(S::Output) + Send + 'static,
    ) -> Result<()> {
        self.run(script, input, bound, |_| (), done)
    }

    fn run<S: Script>(
        &self,
        script: &Arc<S>,
        input: S::Input,
        bound: Bound,
        begun: impl FnOnce(Option<CpuClock>) + Send + 'static,
        done: impl FnOnce(S::Output) + Send + 'static,
    ) -> Result<()> {
        let script = script.clone();
        let job = move |instances: &mut Instances, clock| {
            begun(clock);
            let id = script.id();
            let mut kept =
                instances.remove(&id).and_then(|(_, kept)| kept.downcast::<S::Instance>().ok()).map(|b| *b);
            let output = script.run(&mut kept, input);
            if let Some(kept) = kept {
                if instances.len() >= KEPT {
                    instances.clear();
                }
                let alive: Arc<dyn Any + Send + Sync> = script.clone();
                instances.insert(id, (Arc::downgrade(&alive), Box::new(kept)));
            }
            Box::new(move || done(output)) as Finish
        };
        self.shared.place(Task { job: Box::new(job), bound })
    }

    /// Threads written off and not back yet.
    pub fn stuck(&self) -> usize {
        let mut state = self.shared.state.lock();
        Shared::write_off(&mut state);
        state.stuck
    }
}

impl Shared {
    /// Gives a task to the thread used last, to a new one, or to the queue.
    fn place(self: &Arc<Self>, task: Task) -> Result<()> {
        let mut state = self.state.lock();
        Shared::write_off(&mut state);
        if let Some(desk) = state.idle.pop() {
            state.busy.push(Busy { desk: desk.clone(), meter: Meter::new(task.bound) });
            *desk.task.lock() = Some(task);
            desk.ready.store(true, Ordering::Release);
            drop(state);
            if let Some(thread) = desk.thread.get() {
                thread.unpark();
            }
            return Ok(());
        }
        if state.threads < self.limits.threads {
            if state.stuck > self.limits.stuck {
                let why =
                    format!("{} scripts do not stop; no more threads are given to scripts", state.stuck);
                return Err(Error::new(Status::E_RESOURCES, why));
            }
            let desk = Arc::new(Desk::default());
            let meter = Meter::new(task.bound);
            *desk.task.lock() = Some(task);
            desk.ready.store(true, Ordering::Release);
            let (shared, own) = (self.clone(), desk.clone());
            let thread = std::thread::Builder::new()
                .name("byway-script".into())
                .stack_size(2 << 20)
                .spawn(move || shared.work(&own))
                .map_err(|error| {
                    Error::new(Status::E_RESOURCES, format!("no thread for a script: {error}"))
                })?;
            let _ = desk.thread.set(thread.thread().clone());
            state.threads += 1;
            state.busy.push(Busy { desk, meter });
            return Ok(());
        }
        if state.queue.len() >= self.limits.waiting {
            return Err(Error::new(Status::E_LIMIT, "too many calls wait for a script thread"));
        }
        state.queue.push_back(task);
        Ok(())
    }

    /// Writes off threads that are past their limit.
    fn write_off(state: &mut State) {
        if state.busy.is_empty() {
            return;
        }
        let before = state.busy.len();
        state.busy.retain_mut(|busy| {
            let late = busy.meter.left(busy.desk.clock.get().copied().flatten()).is_none();
            if late {
                busy.desk.written_off.store(true, Ordering::Release);
            }
            !late
        });
        let lost = before - state.busy.len();
        state.threads -= lost.min(state.threads);
        state.stuck += lost;
    }

    /// A thread's life.
    fn work(self: Arc<Self>, desk: &Arc<Desk>) {
        let mut instances = Instances::new();
        let clock = *desk.clock.get_or_init(CpuClock::own);
        loop {
            let Some(task) = self.next(desk, &mut instances) else { return };
            // A defect in a job must not take the thread's accounting along; its reply tells the caller.
            let finish = std::panic::catch_unwind(AssertUnwindSafe(|| (task.job)(&mut instances, clock)));
            if finish.is_err() {
                instances.clear();
            }
            let goes_on = self.release(desk);
            if let Ok(finish) = finish {
                finish();
            }
            if !goes_on {
                return;
            }
        }
    }

    /// Makes a thread free for the next task; false when it is to end.
    fn release(&self, desk: &Arc<Desk>) -> bool {
        let mut state = self.state.lock();
        if desk.written_off.load(Ordering::Acquire) {
            state.stuck -= 1.min(state.stuck);
            return false;
        }
        state.busy.retain(|busy| !Arc::ptr_eq(&busy.desk, desk));
        if state.closing {
            return false;
        }
        match state.queue.pop_front() {
            Some(task) => {
                state.busy.push(Busy { desk: desk.clone(), meter: Meter::new(task.bound) });
                *desk.task.lock() = Some(task);
                desk.ready.store(true, Ordering::Release);
            }
            None => state.idle.push(desk.clone()),
        }
        true
    }

    /// The next task for a desk; `None` when the pool closes.
    fn next(&self, desk: &Desk, instances: &mut Instances) -> Option<Task> {
        brief_wait(|| desk.ready.load(Ordering::Acquire));
        while !desk.ready.load(Ordering::Acquire) {
            if self.state.lock().closing {
                return None;
            }
            std::thread::park_timeout(Duration::from_secs(30));
            // Contexts of scripts that are gone do not stay because their thread sleeps.
            instances.retain(|_, (alive, _)| alive.strong_count() > 0);
        }
        desk.ready.store(false, Ordering::Release);
        desk.task.lock().take()
    }
}

/// Waits a moment (40 µs) without sleeping; on a single processor that would only keep the other side from running.
pub fn brief_wait(ready: impl Fn() -> bool) {
    static PROCESSORS: OnceCell<usize> = OnceCell::new();
    let processors = *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from));
    if processors < 2 {
        return;
    }
    let start = Instant::now();
    while !ready() {
        for _ in 0..32 {
            std::hint::spin_loop();
        }
        if start.elapsed() > SPIN {
            return;
        }
    }
}

const WAITING: u8 = 0;
const GIVEN: u8 = 1;
const CLOSED: u8 = 2;
const PANICKED: u8 = 3;

/// One answer between two threads.
struct Reply<T> {
    state: AtomicU8,
    value: Mutex<Option<T>>,
    waiter: Mutex<Option<Thread>>,
    /// The clock of the thread that took it up.
    runner: OnceCell<Option<CpuClock>>,
}

impl<T> Default for Reply<T> {
    fn default() -> Self {
        Reply {
            state: AtomicU8::new(WAITING),
            value: Mutex::new(None),
            waiter: Mutex::new(Some(std::thread::current())),
            runner: OnceCell::new(),
        }
    }
}

/// The giving side: dropped without an answer it says so.
struct Answer<T>(Arc<Reply<T>>);

impl<T> Answer<T> {
    fn give(self, value: T) {
        *self.0.value.lock() = Some(value);
        self.0.state.store(GIVEN, Ordering::Release);
    }
}

impl<T> Drop for Answer<T> {
    fn drop(&mut self) {
        let lost = if std::thread::panicking() { PANICKED } else { CLOSED };
        let _ = self.0.state.compare_exchange(WAITING, lost, Ordering::AcqRel, Ordering::Acquire);
        if let Some(thread) = self.0.waiter.lock().take() {
            thread.unpark();
        }
    }
}

impl<T> Reply<T> {
    fn wait(&self, bound: Bound) -> Result<T> {
        let mut meter = Meter::new(bound);
        brief_wait(|| self.state.load(Ordering::Acquire) != WAITING);
        loop {
            match self.state.load(Ordering::Acquire) {
                WAITING => {}
                GIVEN => {
                    let value = self.value.lock().take();
                    return value
                        .ok_or_else(|| Error::new(Status::E_STATE, "a script's answer was taken twice"));
                }
                CLOSED => return Err(Error::new(Status::E_SHUTDOWN, "the script threads are closed")),
                _ => return Err(Error::new(Status::E_PANIC, "defect while a script ran")),
            }
            match meter.left(self.runner.get().copied().flatten()) {
                Some(left) => std::thread::park_timeout(left.max(LEAST_SLEEP)),
                None => {
                    let passed = meter.start.elapsed().as_millis();
                    let why = format!("the script engine did not answer within {passed} ms");
                    return Err(Error::new(Status::E_TIMEOUT, why));
                }
            }
        }
    }
}
