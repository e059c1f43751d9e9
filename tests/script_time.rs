//! Time of scripts is the processor's: standing still costs nothing, and what never ends is ended all the same.
#![cfg(feature = "script")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use byway::error::Status;
use byway::runtime::clock::Clock;
use byway::script::rquickjs::function::Func;
use byway::script::{Bound, Limits, Pool, PoolLimits, Sandbox, Script, Trap, Zone, next_id};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

const LIMIT: Duration = Duration::from_millis(500);

/// A context in which `stall` stands still for longer than the limit.
fn stalled(limit: Duration) -> Sandbox {
    let limits = Limits { time: limit, ..Limits::default() };
    let sandbox = Sandbox::new("stalled", limits, &Clock::system(), Zone::System).unwrap();
    let stall = move || std::thread::sleep(limit + Duration::from_millis(100));
    sandbox.enter("", |ctx| ctx.globals().set("stall", Func::from(stall))).unwrap();
    sandbox.begin();
    sandbox
}

#[test]
fn a_script_whose_thread_stood_still_for_longer_than_its_limit_goes_on() {
    let sandbox = stalled(LIMIT);
    // The engine looks at the clock every 10 000 steps: before and after.
    let script = "for (var i = 0; i < 20000; i++); stall(); for (var i = 0; i < 20000; i++); 'done'";
    let said = sandbox.load(script, |_, value| value.as_string().unwrap().to_string());
    assert_eq!(said.unwrap(), "done");
}

#[test]
fn a_script_that_stands_still_now_and_then_still_has_an_end() {
    let sandbox = stalled(Duration::from_millis(20));
    let script = "for (var i = 0; i < 20000; i++); stall(); for (;;);";
    let (trap, error) = sandbox.load(script, |_, _| Ok(())).unwrap_err();
    assert_eq!((trap, error.status()), (Trap::Time, Status::E_TIMEOUT));
    assert_eq!(error.message(), "ran longer than 20 ms");
}

/// What a thread of a pool does, whatever scripts are made of.
struct Work<F>(u64, F);

impl<F: Fn() + Send + Sync + 'static> Script for Work<F> {
    type Instance = ();
    type Input = ();
    type Output = ();

    fn id(&self) -> u64 {
        self.0
    }

    fn run(&self, _: &mut Option<()>, (): ()) {
        (self.1)();
    }
}

fn work(run: impl Fn() + Send + Sync + 'static) -> Arc<Work<impl Fn() + Send + Sync + 'static>> {
    Arc::new(Work(next_id(), run))
}

#[test]
fn whoever_waits_for_a_script_waits_by_its_threads_clock() {
    let pool = Pool::new(PoolLimits { threads: 1, ..PoolLimits::default() });
    let time = Duration::from_millis(20);
    let sleeper = work(move || std::thread::sleep(time * 20));
    assert_eq!(pool.call(&sleeper, (), Bound { time, wall: Duration::from_secs(60) }), Ok(()));
    assert_eq!(pool.stuck(), 0);
}

#[test]
fn work_that_never_asks_for_the_time_is_left_behind_once_its_thread_has_used_it_up() {
    let pool = Pool::new(PoolLimits { threads: 1, ..PoolLimits::default() });
    let stop = Arc::new(AtomicBool::new(false));
    let until = stop.clone();
    let endless = work(move || {
        while !until.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    });
    let bound = Bound { time: Duration::from_millis(20), wall: Duration::MAX };
    assert_eq!(pool.call(&endless, (), bound).unwrap_err().status(), Status::E_TIMEOUT);
    while pool.stuck() == 0 {
        std::thread::yield_now();
    }
    // Another thread takes its place.
    pool.call(&work(|| ()), (), bound).unwrap();
    stop.store(true, Ordering::Relaxed);
    while pool.stuck() > 0 {
        std::thread::yield_now();
    }
}

#[test]
fn work_that_gets_no_processor_is_waited_for_until_the_clock_on_the_wall_ends_it() {
    let pool = Pool::new(PoolLimits { threads: 1, ..PoolLimits::default() });
    let (go_on, wait) = mpsc::channel::<()>();
    let wait = parking_lot::Mutex::new(wait);
    let asleep = work(move || _ = wait.lock().recv());
    let bound = Bound { time: Duration::from_millis(10), wall: Duration::from_millis(50) };
    assert_eq!(pool.call(&asleep, (), bound).unwrap_err().status(), Status::E_TIMEOUT);
    drop(go_on);
}

#[test]
fn the_clock_on_the_wall_is_generous() {
    let seconds = Duration::from_secs;
    assert_eq!(Bound::of(Limits::default().time).wall, seconds(10));
    assert_eq!(Bound::of(seconds(2)).wall, seconds(40));
    assert_eq!(Bound::of(Duration::MAX).wall, Duration::MAX);
}
