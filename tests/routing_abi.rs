//! Selectors through the C boundary: answers in place and later, waiting, polling, cancel, shutdown.
#![allow(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    reason = "every call here is a call into the C boundary"
)]
#![allow(clippy::unwrap_used, reason = "a test")]

use byway::ffi::address::*;
use byway::ffi::arguments::*;
use byway::ffi::call::byway_call;
use byway::ffi::dns::*;
use byway::ffi::engine::*;
use byway::ffi::error::*;
use byway::ffi::feedback::*;
use byway::ffi::listener::*;
use byway::ffi::proxy_selector::*;
use byway::ffi::queue::*;
use byway::ffi::route::*;
use byway::ffi::selection::*;
use byway::ffi::selector::*;
use byway::ffi::status::*;
use byway::ffi::text::*;
use core::ffi::{c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What a host's callbacks do, and what they saw.
#[derive(Default)]
struct Host {
    answer: Mutex<Answer>,
    proxies: Mutex<Answer>,
    kept: Mutex<Vec<usize>>,
    kept_proxies: Mutex<Vec<usize>>,
    canceled: AtomicU64,
    /// Callbacks that came after a `destroy`.
    late: AtomicU64,
    held: Barrier,
    destroyed: AtomicU64,
    failed: Mutex<Vec<i32>>,
    events: Mutex<Vec<i32>>,
}

#[derive(Default, Clone, Copy, PartialEq)]
enum Answer {
    #[default]
    InPlace,
    Later,
    Never,
    Forget,
    Fail,
    Undefined,
    /// Kept, and the callback returns when the test lets it.
    Held,
}

/// A callback has come, and may go.
#[derive(Default)]
struct Barrier {
    come: AtomicBool,
    go: AtomicBool,
}

impl Barrier {
    fn hold(&self) {
        self.come.store(true, Ordering::SeqCst);
        spin_until(|| self.go.load(Ordering::SeqCst));
    }
}

fn spin_until(ready: impl Fn() -> bool) {
    while !ready() {
        std::thread::yield_now();
    }
}

unsafe fn host<'a>(user_data: *mut c_void) -> &'a Host {
    unsafe { &*user_data.cast::<Host>() }
}

unsafe extern "C-unwind" fn destroy(user_data: *mut c_void) {
    unsafe { host(user_data) }.destroyed.fetch_add(1, Ordering::SeqCst);
}

const IPS: &[u8] = b"192.0.2.1 192.0.2.2 2001:db8::1 2001:db8::2";

unsafe extern "C-unwind" fn lookup(
    user_data: *mut c_void,
    request: *mut byway_dns_request,
    name: *const c_char,
    len: usize,
    call: *const byway_call,
) -> byway_status {
    unsafe {
        assert_eq!(*name.add(len), 0);
        assert!(byway::ffi::call::byway_call_deadline_ms(call) <= 60_000);
        let host = host(user_data);
        match *host.answer.lock().unwrap() {
            Answer::InPlace => {
                byway_dns_request_add_text(request, IPS.as_ptr().cast(), IPS.len(), null_mut())
            }
            answer @ (Answer::Later | Answer::Never | Answer::Held) => {
                host.kept.lock().unwrap().push(byway_dns_request_retain(request).addr());
                if answer == Answer::Held {
                    host.held.hold();
                }
                BYWAY_PENDING
            }
            Answer::Forget => BYWAY_PENDING,
            Answer::Fail => BYWAY_E_DNS,
            Answer::Undefined => 77,
        }
    }
}

unsafe extern "C-unwind" fn on_cancel(user_data: *mut c_void, _request: u64) {
    let host = unsafe { host(user_data) };
    host.late.fetch_add(host.destroyed.load(Ordering::SeqCst), Ordering::SeqCst);
    host.canceled.fetch_add(1, Ordering::SeqCst);
}

unsafe extern "C-unwind" fn select(
    user_data: *mut c_void,
    request: *mut byway_proxy_request,
    _uri: *const c_char,
    _len: usize,
    _call: *const byway_call,
) -> byway_status {
    unsafe {
        let host = host(user_data);
        let answer = *host.proxies.lock().unwrap();
        if answer != Answer::InPlace {
            host.kept_proxies.lock().unwrap().push(byway_proxy_request_retain(request).addr());
            if answer == Answer::Held {
                host.held.hold();
            }
            return BYWAY_PENDING;
        }
        let name = b"192.0.2.77";
        byway_proxy_request_add(request, 1, b"dead.example".as_ptr().cast(), 12, 0, null_mut());
        byway_proxy_request_add(request, 1, name.as_ptr().cast(), name.len(), 3128, null_mut());
        byway_proxy_request_add_direct(request)
    }
}

unsafe extern "C-unwind" fn connect_failed(
    user_data: *mut c_void,
    _uri: *const c_char,
    _len: usize,
    route: *const byway_route,
    failure: i32,
    _os_errno: i32,
    _call: *const byway_call,
) {
    unsafe {
        assert_eq!(byway_route_proxy_kind(route), 1);
        host(user_data).failed.lock().unwrap().push(failure);
    }
}

unsafe extern "C-unwind" fn on_event(user_data: *mut c_void, event: *const byway_event) {
    unsafe { host(user_data).events.lock().unwrap().push((*event).kind) };
}

/// One engine with a host's resolver and an address.
struct World {
    host: Box<Host>,
    engine: *mut byway_engine,
    dns: *mut byway_dns,
    proxies: *mut byway_proxy_selector,
    address: *mut byway_address,
}

impl World {
    fn new(answer: Answer, with_proxies: bool) -> World {
        let host = Box::new(Host::default());
        *host.answer.lock().unwrap() = answer;
        let user_data = std::ptr::from_ref::<Host>(&host).cast_mut().cast();
        let (mut engine, mut dns, mut proxies, mut address) =
            (null_mut(), null_mut(), null_mut(), null_mut());
        unsafe {
            assert_eq!(byway_engine_new(null(), &raw mut engine, null_mut()), BYWAY_OK);
            let callbacks = byway_dns_callbacks {
                struct_size: size_of::<byway_dns_callbacks>(),
                user_data,
                destroy: Some(destroy),
                lookup: Some(lookup),
                on_cancel: Some(on_cancel),
            };
            assert_eq!(byway_dns_new(engine, &raw const callbacks, &raw mut dns, null_mut()), BYWAY_OK);
            let callbacks = byway_proxy_selector_callbacks {
                struct_size: size_of::<byway_proxy_selector_callbacks>(),
                user_data,
                destroy: Some(destroy),
                select: Some(select),
                connect_failed: Some(connect_failed),
                on_cancel: Some(on_cancel),
            };
            let status = byway_proxy_selector_new(engine, &raw const callbacks, &raw mut proxies, null_mut());
            assert_eq!(status, BYWAY_OK);
            let mut options = std::mem::zeroed::<byway_address_options>();
            byway_address_options_init(&raw mut options);
            options.host = byway_str { data: b"A.example".as_ptr().cast(), len: 9 };
            options.port = 443;
            options.flags = BYWAY_ADDRESS_TLS;
            options.dns = dns;
            options.proxy_selector = if with_proxies { proxies } else { null_mut() };
            let mut error = null_mut();
            let status = byway_address_new(engine, &raw const options, &raw mut address, &raw mut error);
            assert_eq!(status, BYWAY_OK);
        }
        World { host, engine, dns, proxies, address }
    }

    fn selector(&self) -> *mut byway_selector {
        let mut selector = null_mut();
        let status =
            unsafe { byway_selector_new(self.engine, self.address, null(), &raw mut selector, null_mut()) };
        assert_eq!(status, BYWAY_OK);
        selector
    }

    fn answer_later(&self) {
        for request in self.host.kept.lock().unwrap().drain(..) {
            let request = request as *mut byway_dns_request;
            unsafe {
                byway_dns_request_add_text(request, IPS.as_ptr().cast(), IPS.len(), null_mut());
                byway_dns_request_finish(request);
                byway_dns_request_release(request);
            }
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.answer_later();
        for request in self.host.kept_proxies.lock().unwrap().drain(..) {
            unsafe { byway_proxy_request_release(request as *mut byway_proxy_request) };
        }
        unsafe {
            byway_address_release(self.address);
            byway_dns_release(self.dns);
            byway_proxy_selector_release(self.proxies);
            let status = byway_engine_shutdown(self.engine, 60_000, null_mut());
            assert_eq!(status, BYWAY_OK);
            byway_engine_release(self.engine);
        }
        assert_eq!(self.host.destroyed.load(Ordering::SeqCst), 2);
        assert_eq!(self.host.late.load(Ordering::SeqCst), 0);
    }
}

/// Hops of the next Selection, or the status.
fn next(selector: *mut byway_selector, timeout_ms: i64) -> Result<Vec<String>, byway_status> {
    let mut selection = null_mut();
    match unsafe { byway_selector_next(selector, timeout_ms, &raw mut selection, null_mut()) } {
        BYWAY_OK => Ok(hops(selection)),
        status => Err(status),
    }
}

/// Reads a selection in all three ways, which must agree, and frees it.
fn hops(selection: *mut byway_selection) -> Vec<String> {
    unsafe {
        let mut records = [std::mem::zeroed::<byway_route_record>(); 32];
        let mut total = 0;
        let stride = size_of::<byway_route_record>();
        byway_selection_records(selection, records.as_mut_ptr(), stride, 32, &raw mut total);
        assert_eq!(total, byway_selection_len(selection));
        let mut shown = Vec::new();
        for (i, record) in records[..total].iter().enumerate() {
            let at = byway_selection_at(selection, i);
            let mut route = null();
            assert_eq!(byway_selection_next(selection, &raw mut route, null_mut()), BYWAY_OK);
            assert_eq!(route, at);
            let (mut ip, mut port) = (std::mem::zeroed::<byway_ip>(), 0);
            byway_route_hop(route, &raw mut ip, &raw mut port);
            assert_eq!((ip.bytes, port), (record.hop_ip.bytes, record.hop_port));
            let mut text = null_mut();
            byway_route_text(route, &raw mut text, null_mut());
            shown.push(text_of(text));
        }
        let mut route = null();
        assert_eq!(byway_selection_next(selection, &raw mut route, null_mut()), BYWAY_DONE);
        byway_selection_free(selection);
        shown
    }
}

fn text_of(text: *mut byway_text) -> String {
    unsafe {
        let mut lent = byway_str { data: null(), len: 0 };
        byway_text_str(text, &raw mut lent);
        let bytes = std::slice::from_raw_parts(lent.data.cast::<u8>(), lent.len);
        let owned = String::from_utf8(bytes.to_vec()).unwrap();
        byway_text_free(text);
        owned
    }
}

const ROUTES: [&str; 4] = [
    "a.example at [2001:db8::1]:443",
    "a.example at 192.0.2.1:443",
    "a.example at [2001:db8::2]:443",
    "a.example at 192.0.2.2:443",
];

fn routes() -> Result<Vec<String>, byway_status> {
    Ok(ROUTES.map(str::to_owned).to_vec())
}

#[test]
fn a_failed_route_comes_last_and_a_connected_one_comes_back() {
    let world = World::new(Answer::InPlace, false);
    unsafe {
        let selector = world.selector();
        let mut selection = null_mut();
        byway_selector_next(selector, 5000, &raw mut selection, null_mut());
        let route = byway_route_retain(byway_selection_at(selection, 0));
        byway_selection_free(selection);
        byway_selector_free(selector);
        assert_eq!(byway_engine_connect_failed(world.engine, route, 1, 1, 111, null_mut()), BYWAY_OK);
        let mut postponed = 0;
        assert_eq!(byway_engine_should_postpone(world.engine, route, &raw mut postponed), BYWAY_OK);
        assert_eq!(postponed, 1);

        let selector = world.selector();
        assert_eq!(next(selector, 60_000).unwrap(), ROUTES[1..]);
        let mut text = null_mut();
        byway_selector_explain(selector, BYWAY_FORMAT_TEXT, &raw mut text, null_mut());
        let text = text_of(text);
        assert!(text.contains("[2001:db8::1]:443: postponed, not given yet (refused"), "{text}");
        assert_eq!(byway_selector_may_have_next(selector), 1);
        assert_eq!(next(selector, 60_000).unwrap(), ROUTES[..1]);
        assert_eq!(byway_selector_may_have_next(selector), 0);
        assert_eq!(next(selector, 60_000), Err(BYWAY_DONE));
        byway_selector_free(selector);

        byway_engine_connected(world.engine, route);
        let selector = world.selector();
        assert_eq!(next(selector, 60_000), routes());
        byway_selector_free(selector);
        byway_route_release(route);
    }
}

#[test]
fn a_plan_is_the_whole_order_in_one_call() {
    let world = World::new(Answer::InPlace, false);
    unsafe {
        let mut records = [std::mem::zeroed::<byway_route_record>(); 2];
        let mut total = 0;
        let stride = size_of::<byway_route_record>();
        let status = byway_selector_plan(
            world.engine,
            world.address,
            null(),
            records.as_mut_ptr(),
            stride,
            2,
            &raw mut total,
            null_mut(),
        );
        assert_eq!((status, total), (BYWAY_OK, 4));
        assert_eq!((records[0].hop_ip.family, records[1].hop_ip.family), (6, 4));
    }
    *world.host.answer.lock().unwrap() = Answer::Never;
    let mut total = 0;
    let status = unsafe {
        byway_selector_plan(world.engine, world.address, null(), null_mut(), 1, 0, &raw mut total, null_mut())
    };
    assert_eq!((status, world.host.canceled.load(Ordering::SeqCst)), (BYWAY_E_WOULD_DEADLOCK, 1));
}

#[test]
fn proxies_are_asked_and_told_and_what_cannot_be_tried_is_skipped() {
    let world = World::new(Answer::InPlace, true);
    unsafe {
        let callbacks = byway_listener_callbacks {
            struct_size: size_of::<byway_listener_callbacks>(),
            user_data: std::ptr::from_ref::<Host>(&world.host).cast_mut().cast(),
            destroy: None,
            mask: !(1 << BYWAY_EVENT_ROUTE_POSTPONED),
            on_event: Some(on_event),
            queue: null_mut(),
        };
        let mut listener = null_mut();
        byway_engine_add_listener(world.engine, &raw const callbacks, &raw mut listener, null_mut());
        let selector = world.selector();
        let mut selection = null_mut();
        assert_eq!(byway_selector_next(selector, 5000, &raw mut selection, null_mut()), BYWAY_OK);
        let route = byway_selection_at(selection, 0);
        assert_eq!(byway_route_requires_tunnel(route), 1);
        byway_engine_connect_failed(world.engine, route, 1, 1, 111, null_mut());
        byway_engine_connect_failed(world.engine, route, 5, 1, 24, null_mut());
        assert_eq!(hops(selection), ["a.example:443 via proxy 192.0.2.77:3128"]);
        assert_eq!(next(selector, 60_000), routes());
        byway_selector_free(selector);
        assert_eq!(*world.host.failed.lock().unwrap(), [1]);
        let events = world.host.events.lock().unwrap().clone();
        assert_eq!(
            events,
            [
                BYWAY_EVENT_PROXY_SELECT_START,
                BYWAY_EVENT_PROXY_SELECT_END,
                BYWAY_EVENT_CONNECT_FAILED,
                BYWAY_EVENT_CONNECT_FAILED,
                BYWAY_EVENT_CONNECT_FAILED,
                BYWAY_EVENT_DNS_START,
                BYWAY_EVENT_DNS_END,
            ]
        );
        byway_listener_remove(listener);
        byway_listener_release(listener);
    }
}

#[test]
fn a_later_answer_ends_a_blocking_wait() {
    let world = World::new(Answer::Later, false);
    let selector = world.selector();
    assert_eq!(next(selector, 0), Err(BYWAY_E_TIMEOUT));
    let address = selector.addr();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(move || next(address as *mut byway_selector, 60_000));
        world.answer_later();
        assert_eq!(waiting.join().unwrap(), routes());
    });
    unsafe { byway_selector_free(selector) };
}

#[test]
fn a_poll_is_followed_by_exactly_one_record() {
    let world = World::new(Answer::Later, false);
    unsafe {
        let queue = byway_engine_queue(world.engine);
        let selector = world.selector();
        let mut selection = null_mut();
        for _ in 0..2 {
            assert_eq!(byway_selector_poll_next(selector, &raw mut selection, null_mut()), BYWAY_PENDING);
        }
        world.answer_later();
        let mut records = [std::mem::zeroed::<byway_completion>(); 4];
        let mut n = 0;
        let stride = size_of::<byway_completion>();
        byway_queue_poll(queue, 60_000, records.as_mut_ptr(), stride, 4, &raw mut n, null_mut());
        assert_eq!((n, records[0].kind, records[0].status), (1, BYWAY_COMPLETION_SELECTOR, 0));
        assert_eq!(records[0].id, byway_selector_id(selector));
        assert_eq!(byway_selector_poll_next(selector, &raw mut selection, null_mut()), BYWAY_OK);
        assert_eq!(hops(selection), ROUTES);

        let other = world.selector();
        assert_eq!(byway_selector_poll_next(other, &raw mut selection, null_mut()), BYWAY_PENDING);
        byway_selector_cancel(other);
        byway_queue_poll(queue, 60_000, records.as_mut_ptr(), stride, 4, &raw mut n, null_mut());
        assert_eq!((n, records[0].status), (1, BYWAY_E_CANCELED));
        assert_eq!(byway_selector_poll_next(other, &raw mut selection, null_mut()), BYWAY_E_CANCELED);
        assert_eq!(world.host.canceled.load(Ordering::SeqCst), 1);
        byway_selector_free(other);
        byway_selector_free(selector);
        byway_queue_release(queue);
    }
}

#[test]
fn cancel_free_and_shutdown_end_a_blocked_call_at_once() {
    for how in 0..3 {
        let world = World::new(Answer::Never, false);
        let selector = world.selector();
        let address = selector.addr();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(move || next(address as *mut byway_selector, 60_000));
            while world.host.kept.lock().unwrap().is_empty() {
                std::thread::yield_now();
            }
            unsafe {
                match how {
                    0 => {
                        byway_selector_cancel(selector);
                    }
                    1 => byway_selector_free(selector),
                    _ => {
                        byway_engine_shutdown(world.engine, 60_000, null_mut());
                    }
                }
            }
            let want = if how == 2 { BYWAY_E_SHUTDOWN } else { BYWAY_E_CANCELED };
            assert_eq!(waiting.join().unwrap(), Err(want), "{how}");
        });
        if how != 1 {
            unsafe { byway_selector_free(selector) };
        }
        let told = world.host.canceled.load(Ordering::SeqCst);
        assert_eq!(told, 1, "{how}");
    }
}

/// A world in which a lookup, or with `proxies` a proxy selector, leaves its question open.
fn leaving_open(answer: Answer, proxies: bool) -> World {
    let world = World::new(if proxies { Answer::InPlace } else { answer }, proxies);
    *world.host.proxies.lock().unwrap() = if proxies { answer } else { Answer::InPlace };
    world
}

#[test]
fn a_shutdown_calls_off_a_question_nobody_waits_for() {
    for proxies in [false, true] {
        let world = leaving_open(Answer::Never, proxies);
        let selector = world.selector();
        assert_eq!(next(selector, 0), Err(BYWAY_E_TIMEOUT));
        assert_eq!(unsafe { byway_engine_shutdown(world.engine, 60_000, null_mut()) }, BYWAY_OK);
        assert_eq!(world.host.canceled.load(Ordering::SeqCst), 1, "proxies: {proxies}");
        unsafe { byway_selector_free(selector) };
        assert_eq!(world.host.canceled.load(Ordering::SeqCst), 1, "proxies: {proxies}");
    }
}

#[test]
fn a_shutdown_that_begins_during_a_callback_calls_off_what_it_leaves_open() {
    for proxies in [false, true] {
        let world = leaving_open(Answer::Held, proxies);
        let (engine, address) = (world.engine.addr(), world.address.addr());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(move || unsafe {
                let (engine, address) = (engine as *mut byway_engine, address as *mut byway_address);
                let mut selector = null_mut();
                byway_selector_new(engine, address, null(), &raw mut selector, null_mut());
                let ended = next(selector, 60_000);
                byway_selector_free(selector);
                ended
            });
            spin_until(|| world.host.held.come.load(Ordering::SeqCst));
            let shutdown = |timeout| unsafe { byway_engine_shutdown(world.engine, timeout, null_mut()) };
            assert_eq!(shutdown(0), BYWAY_PENDING);
            assert_eq!(world.host.canceled.load(Ordering::SeqCst), 0);
            world.host.held.go.store(true, Ordering::SeqCst);
            assert_eq!(shutdown(60_000), BYWAY_OK);
            assert_eq!(world.host.canceled.load(Ordering::SeqCst), 1, "proxies: {proxies}");
            assert_eq!(waiting.join().unwrap(), Err(BYWAY_E_SHUTDOWN));
        });
        assert_eq!(world.host.canceled.load(Ordering::SeqCst), 1, "proxies: {proxies}");
    }
}

#[test]
fn whoever_calls_a_question_off_the_host_is_told_once() {
    for round in 0..300 {
        let world = leaving_open(Answer::Never, round % 2 == 1);
        let selector = world.selector();
        let (engine, address) = (world.engine.addr(), selector.addr());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(move || next(address as *mut byway_selector, 60_000));
            let down = move || unsafe {
                assert_eq!(byway_engine_shutdown(engine as *mut byway_engine, 60_000, null_mut()), BYWAY_OK);
            };
            spin_until(|| {
                world.host.kept.lock().unwrap().len() + world.host.kept_proxies.lock().unwrap().len() > 0
            });
            let downs = [scope.spawn(down), scope.spawn(down)];
            unsafe { byway_selector_cancel(selector) };
            for down in downs {
                down.join().unwrap();
            }
            let told = world.host.canceled.load(Ordering::SeqCst);
            assert_eq!(told, 1, "round {round}, when a shutdown had ended");
            let ended = waiting.join().unwrap();
            assert!(matches!(ended, Err(BYWAY_E_SHUTDOWN | BYWAY_E_CANCELED)), "{ended:?}");
        });
        unsafe { byway_selector_free(selector) };
        assert_eq!(world.host.canceled.load(Ordering::SeqCst), 1, "round {round}");
    }
}

#[test]
fn bad_answers_are_errors_and_never_a_hang() {
    for (answer, want) in
        [(Answer::Forget, BYWAY_E_ABANDONED), (Answer::Fail, BYWAY_E_DNS), (Answer::Undefined, BYWAY_E_HOST)]
    {
        let world = World::new(answer, false);
        let selector = world.selector();
        assert_eq!(next(selector, 60_000), Err(want));
        assert_eq!(next(selector, 60_000), Err(BYWAY_DONE));
        unsafe { byway_selector_free(selector) };
    }
}

#[test]
fn a_request_released_unanswered_is_abandoned_and_a_second_answer_is_refused() {
    let world = World::new(Answer::Later, false);
    let selector = world.selector();
    assert_eq!(next(selector, 0), Err(BYWAY_E_TIMEOUT));
    let request = world.host.kept.lock().unwrap().pop().unwrap() as *mut byway_dns_request;
    unsafe {
        byway_dns_request_retain(request);
        byway_dns_request_release(request);
        assert_eq!(next(selector, 0), Err(BYWAY_E_TIMEOUT));
        byway_dns_request_release(request);
        assert_eq!(next(selector, 60_000), Err(BYWAY_E_ABANDONED));
        byway_selector_free(selector);

        let other = world.selector();
        assert_eq!(next(other, 0), Err(BYWAY_E_TIMEOUT));
        let request = world.host.kept.lock().unwrap().pop().unwrap() as *mut byway_dns_request;
        assert_eq!(byway_dns_request_finish(request), BYWAY_OK);
        assert_eq!(byway_dns_request_finish(request), BYWAY_E_STATE);
        byway_dns_request_release(request);
        byway_selector_free(other);
        let last = world.selector();
        assert_eq!(next(last, 0), Err(BYWAY_E_TIMEOUT));
        byway_selector_free(last);
        let request = world.host.kept.lock().unwrap().pop().unwrap() as *mut byway_dns_request;
        assert_eq!(byway_dns_request_is_canceled(request), 1);
        assert_eq!(byway_dns_request_add(request, null(), 0), BYWAY_E_CANCELED);
        byway_dns_request_release(request);
    }
}

#[test]
fn the_system_resolver_answers_on_its_own_thread() {
    let world = World::new(Answer::InPlace, false);
    unsafe {
        let mut dns = null_mut();
        byway_dns_new_system(world.engine, &raw mut dns, null_mut());
        let mut options = std::mem::zeroed::<byway_address_options>();
        byway_address_options_init(&raw mut options);
        options.host = byway_str { data: b"localhost".as_ptr().cast(), len: 9 };
        options.port = 80;
        options.dns = dns;
        let mut address = null_mut();
        byway_address_new(world.engine, &raw const options, &raw mut address, null_mut());
        let mut selector = null_mut();
        byway_selector_new(world.engine, address, null(), &raw mut selector, null_mut());
        let mut error = null_mut();
        let mut selection = null_mut();
        let status = byway_selector_next(selector, 20_000, &raw mut selection, &raw mut error);
        if status == BYWAY_OK {
            assert!(byway_selection_len(selection) >= 1);
            byway_selection_free(selection);
        } else {
            // A machine whose hosts file is empty: a clear error, and no hang.
            assert!(matches!(status, BYWAY_E_UNKNOWN_HOST | BYWAY_E_DNS), "{status}");
            byway_error_free(error);
        }
        byway_selector_free(selector);
        byway_address_release(address);
        byway_dns_release(dns);
    }
}

#[test]
fn values_outlive_their_engine() {
    let world = World::new(Answer::InPlace, false);
    let route = unsafe {
        let selector = world.selector();
        let mut selection = null_mut();
        byway_selector_next(selector, 5000, &raw mut selection, null_mut());
        let route = byway_route_retain(byway_selection_at(selection, 1));
        byway_selection_free(selection);
        byway_selector_free(selector);
        route
    };
    drop(world);
    unsafe {
        let mut text = null_mut();
        byway_route_text(route, &raw mut text, null_mut());
        assert_eq!(text_of(text), ROUTES[1]);
        let (mut sockaddr, mut len) = ([0_u8; 128], 0);
        byway_route_sockaddr(route, sockaddr.as_mut_ptr().cast(), 128, &raw mut len);
        assert_eq!((len, &sockaddr[4..8]), (16, &[192, 0, 2, 1][..]));
        byway_route_release(route);
    }
}
