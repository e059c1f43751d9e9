//! Cancelling from elsewhere, thousands of times, and forking in the middle.

use crate::support::*;
use byway::Status;
use byway::dial::race::Rules;
use byway::dial::{Canceler, Options, Step, Via};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};

/// A small generator with a fixed seed (SplitMix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }
}

#[test]
fn ten_thousand_cancels_at_random_moments_leave_nothing_behind() {
    let quiet = quiet();
    let (hole, (listener, good), (_kept, bad)) = (black_hole(), listen(), closed_port());
    let accept = std::thread::spawn(move || {
        // Accepts and drops until told to stop by a connection that says so.
        for stream in listener.incoming() {
            let mut byte = [0];
            if std::io::Read::read(&mut stream.unwrap(), &mut byte).unwrap_or(0) == 1 && byte == *b"q" {
                return;
            }
        }
    });
    let (sender, receiver) = mpsc::channel::<(Canceler, u64)>();
    let canceling = std::thread::spawn(move || {
        for (canceler, spins) in receiver {
            (0..spins).for_each(|_| std::hint::spin_loop());
            canceler.cancel();
            canceler.cancel();
        }
    });
    let rules = Rules { attempt_delay_ms: 10, ..Rules::default() };
    let options = Arc::new(Options { rules, ..Options::default() });
    let mut dice = Dice(1);
    let (mut won, mut canceled) = (0, 0);
    for round in 0..10_000 {
        let mut ways = vec![direct(hole.at), direct(bad), through(good, Via::Http, "o.example", 443)];
        // What comes first decides the phase the cancel meets.
        ways.rotate_left(dice.roll(3) as usize);
        ways.truncate(1 + dice.roll(2) as usize);
        let (mut op, _) = one_selection(ways, (*options).clone());
        if round % 3 == 0 {
            op.pollable_fd().unwrap();
        }
        sender.send((op.canceler(), dice.roll(20_000))).unwrap();
        match op.run(None) {
            Ok(connected) => {
                won += 1;
                drop(connected);
            }
            Err(error) => canceled += usize::from(error.status() == Status::E_CANCELED),
        }
    }
    drop(sender);
    canceling.join().unwrap();
    std::io::Write::write_all(&mut std::net::TcpStream::connect(good).unwrap(), b"q").unwrap();
    accept.join().unwrap();
    assert!(canceled > 100, "{canceled} canceled, {won} won");
    drop((hole, _kept));
    quiet.check();
}

static FROM_SIGNAL: AtomicPtr<Canceler> = AtomicPtr::new(std::ptr::null_mut());

extern "C" fn on_signal(_: i32) {
    // SAFETY: set before the signal is sent, alive until after the wait.
    unsafe { (*FROM_SIGNAL.load(Ordering::SeqCst)).cancel() };
}

#[test]
fn cancel_works_from_a_signal_handler() {
    let quiet = quiet();
    let hole = black_hole();
    let (mut op, _) = one_selection(vec![direct(hole.at)], Options::default());
    let mut canceler = op.canceler();
    FROM_SIGNAL.store(&raw mut canceler, Ordering::SeqCst);
    // SAFETY: a handler that only cancels.
    unsafe { libc::signal(libc::SIGUSR2, on_signal as *const () as libc::sighandler_t) };
    let (ready, thread) = (Arc::new(Barrier::new(2)), Arc::new(AtomicUsize::new(0)));
    let other = {
        let (ready, thread) = (Arc::clone(&ready), Arc::clone(&thread));
        std::thread::spawn(move || {
            ready.wait();
            // SAFETY: the thread waits in `run` or is about to, and outlives this one.
            unsafe { libc::pthread_kill(thread.load(Ordering::SeqCst) as libc::pthread_t, libc::SIGUSR2) };
        })
    };
    // SAFETY: always legal.
    thread.store(unsafe { libc::pthread_self() } as usize, Ordering::SeqCst);
    ready.wait();
    assert_eq!(op.run(None).unwrap_err().status(), Status::E_CANCELED);
    other.join().unwrap();
    // SAFETY: puts the default back.
    unsafe { libc::signal(libc::SIGUSR2, libc::SIG_DFL) };
    drop((op, canceler, hole));
    quiet.check();
}

#[test]
fn a_forked_child_is_told_and_the_parent_goes_on() {
    let quiet = quiet();
    let (listener, good) = listen();
    let hole = black_hole();
    let rules = Rules { attempt_delay_ms: 10, ..Rules::default() };
    let options = Options { rules, ..Options::default() };
    let (mut op, _) = one_selection(vec![direct(hole.at), direct(good)], options);
    op.pollable_fd().unwrap();
    assert!(matches!(op.step_at(0, &[]).unwrap(), Step::Pending));
    // SAFETY: the child uses only what is legal after fork, allocates nothing that another thread holds, leaves.
    let status = unsafe {
        let child = libc::fork();
        if child == 0 {
            let told = op.step().is_err_and(|error| error.status() == Status::E_FORKED)
                && op.take().is_err_and(|error| error.status() == Status::E_FORKED)
                && op.run(None).is_err_and(|error| error.status() == Status::E_FORKED);
            drop(op);
            libc::_exit(if told { 7 } else { 8 });
        }
        let mut status = 0;
        libc::waitpid(child, &raw mut status, 0);
        status
    };
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7, "status {status:#x}");
    assert!(matches!(settle(&mut op, Some(10)).unwrap(), Step::Ready));
    assert_eq!(op.take().unwrap().route.hop, good);
    drop((op, listener, hole));
    quiet.check();
}
