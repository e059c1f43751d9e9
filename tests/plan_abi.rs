//! A plan, through the C boundary, is what a selector gives, one Selection after the other, whatever is answered: the short
//! way that most plans and first Selections take has no word of its own.
#![allow(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    reason = "every call here is a call into the C boundary"
)]

use byway::ffi::address::*;
use byway::ffi::arguments::*;
use byway::ffi::call::byway_call;
use byway::ffi::dns::*;
use byway::ffi::engine::*;
use byway::ffi::feedback::*;
use byway::ffi::proxy_selector::*;
use byway::ffi::route::*;
use byway::ffi::selection::*;
use byway::ffi::selector::*;
use byway::ffi::status::*;
use core::ffi::{c_char, c_void};
use std::ptr::{null, null_mut};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Names {
    Mixed,
    Mapped,
    Nothing,
    Many,
    Service,
    Fails,
    PartThenFails,
    KeptAndFinished,
    Finished,
    Forgotten,
    /// A hosts file's.
    Table,
    /// A hosts file without the name.
    EmptyTable,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Proxies {
    Nobody,
    Direct,
    DirectFinished,
    DirectAndProxy,
    DirectTwice,
    Proxy,
    Pass,
    Nothing,
    Fails,
    KeptAndFinished,
    Forgotten,
}

const NAMES: [Names; 12] = [
    Names::Mixed,
    Names::Mapped,
    Names::Nothing,
    Names::Many,
    Names::Service,
    Names::Fails,
    Names::PartThenFails,
    Names::KeptAndFinished,
    Names::Finished,
    Names::Forgotten,
    Names::Table,
    Names::EmptyTable,
];
const PROXIES: [Proxies; 11] = [
    Proxies::Nobody,
    Proxies::Direct,
    Proxies::DirectFinished,
    Proxies::DirectAndProxy,
    Proxies::DirectTwice,
    Proxies::Proxy,
    Proxies::Pass,
    Proxies::Nothing,
    Proxies::Fails,
    Proxies::KeptAndFinished,
    Proxies::Forgotten,
];

struct Host {
    names: Names,
    proxies: Proxies,
}

const TEXT: &str = "192.0.2.1 192.0.2.2 2001:db8::1 192.0.2.3 2001:db8::2";

unsafe fn add(request: *mut byway_dns_request, text: &str) -> byway_status {
    unsafe { byway_dns_request_add_text(request, text.as_ptr().cast(), text.len(), null_mut()) }
}

unsafe extern "C-unwind" fn lookup(
    user_data: *mut c_void,
    request: *mut byway_dns_request,
    _: *const c_char,
    _: usize,
    _: *const byway_call,
) -> byway_status {
    unsafe {
        match (*user_data.cast::<Host>()).names {
            Names::Mixed => add(request, TEXT),
            Names::Mapped => add(request, "192.0.2.1 ::ffff:192.0.2.9 2001:db8::1"),
            Names::Many => {
                (1..40).map(|i| add(request, &format!("10.0.0.{i} 2001:db8::{i}"))).max().unwrap_or(0)
            }
            Names::Service => {
                let mut service = std::mem::zeroed::<byway_service_options>();
                service.struct_size = size_of::<byway_service_options>();
                (service.priority, service.port) = (1, 8443);
                assert_eq!(byway_dns_request_add_service(request, &raw const service, null_mut()), BYWAY_OK);
                add(request, TEXT)
            }
            Names::Fails => BYWAY_E_DNS,
            Names::PartThenFails => {
                add(request, "192.0.2.1 192.0.2.2");
                assert_eq!(byway_dns_request_fail(request, BYWAY_E_DNS, 7, null(), 0), BYWAY_OK);
                BYWAY_OK
            }
            Names::KeptAndFinished => {
                byway_dns_request_retain(request);
                add(request, TEXT);
                byway_dns_request_finish(request);
                byway_dns_request_release(request);
                BYWAY_PENDING
            }
            Names::Finished => {
                add(request, TEXT);
                byway_dns_request_finish(request)
            }
            Names::Forgotten => BYWAY_PENDING,
            Names::Nothing | Names::Table | Names::EmptyTable => BYWAY_OK,
        }
    }
}

unsafe extern "C-unwind" fn select(
    user_data: *mut c_void,
    request: *mut byway_proxy_request,
    _: *const c_char,
    _: usize,
    _: *const byway_call,
) -> byway_status {
    let proxy = || {
        let host = "192.0.2.77";
        unsafe { byway_proxy_request_add(request, 1, host.as_ptr().cast(), host.len(), 3128, null_mut()) }
    };
    unsafe {
        match (*user_data.cast::<Host>()).proxies {
            Proxies::Direct => byway_proxy_request_add_direct(request),
            Proxies::DirectFinished => {
                byway_proxy_request_add_direct(request);
                byway_proxy_request_finish(request)
            }
            Proxies::DirectAndProxy => {
                byway_proxy_request_add_direct(request);
                proxy()
            }
            Proxies::DirectTwice => {
                byway_proxy_request_add_direct(request);
                byway_proxy_request_add_direct(request)
            }
            Proxies::Proxy => proxy(),
            Proxies::Pass => BYWAY_PASS,
            Proxies::Fails => BYWAY_E_HOST,
            Proxies::KeptAndFinished => {
                byway_proxy_request_retain(request);
                byway_proxy_request_add_direct(request);
                byway_proxy_request_finish(request);
                byway_proxy_request_release(request);
                BYWAY_PENDING
            }
            Proxies::Forgotten => BYWAY_PENDING,
            Proxies::Nobody | Proxies::Nothing => BYWAY_OK,
        }
    }
}

type Shown = ([u8; 16], u8, u16, i32, u32);

fn shown(record: &byway_route_record) -> Shown {
    let ip = &record.hop_ip;
    (ip.bytes, ip.family, record.hop_port, record.proxy_kind, record.flags)
}

/// For the longest list twice.
const ROOM: usize = 200;

struct World {
    engine: *mut byway_engine,
    address: *mut byway_address,
}

impl World {
    fn new(host: &Host) -> World {
        let user_data = std::ptr::from_ref(host).cast_mut().cast();
        let (mut engine, mut dns, mut proxies, mut address) =
            (null_mut(), null_mut(), null_mut(), null_mut());
        unsafe {
            assert_eq!(byway_engine_new(null(), &raw mut engine, null_mut()), BYWAY_OK);
            let text =
                if host.names == Names::Table { "192.0.2.1 a.example\n2001:db8::1 a.example\n" } else { "" };
            let made = if matches!(host.names, Names::Table | Names::EmptyTable) {
                byway_dns_new_hosts(engine, text.as_ptr().cast(), text.len(), &raw mut dns, null_mut())
            } else {
                let callbacks = byway_dns_callbacks {
                    struct_size: size_of::<byway_dns_callbacks>(),
                    user_data,
                    destroy: None,
                    lookup: Some(lookup),
                    on_cancel: None,
                };
                byway_dns_new(engine, &raw const callbacks, &raw mut dns, null_mut())
            };
            assert_eq!(made, BYWAY_OK);
            let callbacks = byway_proxy_selector_callbacks {
                struct_size: size_of::<byway_proxy_selector_callbacks>(),
                user_data,
                destroy: None,
                select: Some(select),
                connect_failed: None,
                on_cancel: None,
            };
            let made = byway_proxy_selector_new(engine, &raw const callbacks, &raw mut proxies, null_mut());
            assert_eq!(made, BYWAY_OK);
            let mut options = std::mem::zeroed::<byway_address_options>();
            byway_address_options_init(&raw mut options);
            options.host = byway_str { data: b"a.example".as_ptr().cast(), len: 9 };
            options.port = 443;
            options.dns = dns;
            options.proxy_selector = if host.proxies == Proxies::Nobody { null_mut() } else { proxies };
            assert_eq!(byway_address_new(engine, &raw const options, &raw mut address, null_mut()), BYWAY_OK);
            byway_dns_release(dns);
            byway_proxy_selector_release(proxies);
        }
        World { engine, address }
    }

    fn fails(&self, ip: [u8; 4]) {
        unsafe {
            let mut hop = std::mem::zeroed::<byway_ip>();
            hop.bytes[..4].copy_from_slice(&ip);
            hop.family = 4;
            let mut route = null_mut();
            let made = byway_route_new(self.address, null(), &raw const hop, 443, &raw mut route, null_mut());
            assert_eq!(made, BYWAY_OK);
            assert_eq!(byway_engine_connect_failed(self.engine, route, 1, 1, 111, null_mut()), BYWAY_OK);
            byway_route_release(route);
        }
    }

    fn plan(&self) -> Result<Vec<Shown>, byway_status> {
        let mut total = 0;
        unsafe {
            let mut records = [std::mem::zeroed::<byway_route_record>(); ROOM];
            let (place, stride) = (records.as_mut_ptr(), size_of::<byway_route_record>());
            let (engine, address) = (self.engine, self.address);
            match byway_selector_plan(
                engine,
                address,
                null(),
                place,
                stride,
                ROOM,
                &raw mut total,
                null_mut(),
            ) {
                BYWAY_OK => Ok(records[..total].iter().map(shown).collect()),
                status => Err(status),
            }
        }
    }

    /// Every Selection of a selector, and how it ended.
    fn select(&self) -> (Vec<Shown>, byway_status) {
        let (mut all, mut selector) = (Vec::new(), null_mut());
        unsafe {
            let made = byway_selector_new(self.engine, self.address, null(), &raw mut selector, null_mut());
            assert_eq!(made, BYWAY_OK);
            let end = loop {
                let mut selection = null_mut();
                match byway_selector_next(selector, 0, &raw mut selection, null_mut()) {
                    BYWAY_OK => {}
                    status => break status,
                }
                let mut records = [std::mem::zeroed::<byway_route_record>(); ROOM];
                let (mut total, stride) = (0, size_of::<byway_route_record>());
                byway_selection_records(selection, records.as_mut_ptr(), stride, ROOM, &raw mut total);
                all.extend(records[..total].iter().map(shown));
                byway_selection_free(selection);
            };
            byway_selector_free(selector);
            (all, end)
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        unsafe {
            byway_address_release(self.address);
            assert_eq!(byway_engine_shutdown(self.engine, 60_000, null_mut()), BYWAY_OK);
            byway_engine_release(self.engine);
        }
    }
}

#[test]
fn a_plan_is_every_selection_of_a_selector() {
    let mut plans = 0;
    for names in NAMES {
        for proxies in PROXIES {
            for failed in 0..4_u8 {
                let host = Host { names, proxies };
                let world = World::new(&host);
                (1..3).filter(|i| failed >> (i - 1) & 1 == 1).for_each(|i| world.fails([192, 0, 2, i]));
                let (all, end) = world.select();
                let planned = world.plan();
                let case = format!("{names:?} {proxies:?} {failed}");
                match planned {
                    Ok(routes) => {
                        assert_eq!(routes, all, "{case}");
                        plans += 1;
                    }
                    Err(status) => assert_eq!((status, all.len()), (end, 0), "{case}"),
                }
            }
        }
    }
    assert!(plans > 200, "{plans} plans");
}

/// What a short way must give, spelled out once.
#[test]
fn families_alternate_and_what_failed_comes_last() {
    let host = Host { names: Names::Mapped, proxies: Proxies::Direct };
    let world = World::new(&host);
    world.fails([192, 0, 2, 1]);
    let got: Vec<(u8, u32)> =
        world.plan().unwrap_or_default().iter().map(|route| (route.1, route.4)).collect();
    let postponed = BYWAY_ROUTE_POSTPONED | BYWAY_ROUTE_FROM_SELECTOR;
    assert_eq!(got, [(6, BYWAY_ROUTE_FROM_SELECTOR), (4, BYWAY_ROUTE_FROM_SELECTOR), (4, postponed)]);
}
