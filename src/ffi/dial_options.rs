//! What a dial is made with: `byway_dial_options`.

use super::arguments::{self, Versioned, byway_str};
use super::guard::{Fail, call_or};
use super::library::{Layout, layout};
use crate::dial::connect::is_header_value;
use crate::dial::race::{CapPolicy, FirstFamily, OnFailure, RaceUntil};
use crate::dial::{Options, TunnelRefusal};
use crate::error::{Error, Status};
use crate::net::compat::Compat;

/// No limit, or no pause: for the millisecond fields and `max_in_flight` of `byway_dial_options`.
pub const BYWAY_DIAL_NONE: u32 = u32::MAX;

/// Start routes of the next Selection while the present one still has attempts in flight. Off: a slow proxy must not get
/// a DIRECT connection racing beside it.
pub const BYWAY_DIAL_ACROSS_SELECTIONS: u32 = 1;
/// A proxy that refuses the tunnel is walked round by the next route. Off: the refusal ends the dial.
pub const BYWAY_DIAL_NEXT_ON_REFUSAL: u32 = 2;
/// Queue events, see `byway_dial_next_event`.
pub const BYWAY_DIAL_EVENTS: u32 = 4;
/// SOCKS5: refuse a non-zero reserved byte and a password answer of another version than 1.
pub const BYWAY_DIAL_SOCKS_STRICT: u32 = 8;
/// SOCKS5: send everything at once and read the answers afterwards.
pub const BYWAY_DIAL_SOCKS_OPTIMISTIC: u32 = 16;
/// SOCKS5: never offer "no authentication".
pub const BYWAY_DIAL_SOCKS_REQUIRE_AUTH: u32 = 32;
/// CONNECT: only status 200 opens the tunnel, not every 2xx.
pub const BYWAY_DIAL_STRICT_200: u32 = 64;
/// CONNECT: data right behind the answer's head is an error.
pub const BYWAY_DIAL_REJECT_EARLY_DATA: u32 = 128;
/// CONNECT: wait for a challenge before the proxy's own user and password are sent.
pub const BYWAY_DIAL_NO_PREEMPTIVE_AUTH: u32 = 256;
/// CONNECT: ask `proxy_auth` before the first request, with no challenge.
pub const BYWAY_DIAL_ASK_FIRST: u32 = 512;
/// CONNECT: send credentials again that the proxy has refused, up to `max_tunnel_attempts`.
pub const BYWAY_DIAL_REPEAT_CREDENTIALS: u32 = 1024;
/// Hand the socket over in blocking mode.
pub const BYWAY_DIAL_BLOCKING_SOCKET: u32 = 2048;
/// Leave Nagle's algorithm on.
pub const BYWAY_DIAL_NO_NODELAY: u32 = 4096;
/// Multipath TCP where the kernel has it, else plain TCP.
pub const BYWAY_DIAL_MPTCP: u32 = 8192;
/// TCP Fast Open; used only for a single DIRECT route, because with it `connect` succeeds although nobody listens.
pub const BYWAY_DIAL_FAST_OPEN: u32 = 16384;
/// Try a destination that a Selection lists twice twice.
pub const BYWAY_DIAL_KEEP_DUPLICATES: u32 = 32768;

const FLAGS: u32 = 65535;

/// At the limit of attempts in flight the oldest is dropped, without blame.
pub const BYWAY_CAP_DROP_OLDEST: i32 = 0;
/// At the limit of attempts in flight the next one waits.
pub const BYWAY_CAP_WAIT: i32 = 1;

/// A failure changes nothing while others are in flight; alone, the next attempt starts at once.
pub const BYWAY_ON_FAILURE_WHEN_IDLE: i32 = 0;
/// A failure starts the next attempt at once, 10 ms after the last start at the earliest.
pub const BYWAY_ON_FAILURE_IMMEDIATE: i32 = 1;
/// As immediate, but only when the newest attempt failed.
pub const BYWAY_ON_FAILURE_LATEST: i32 = 2;

/// The first TCP connection wins; a proxy handshake follows alone, and when it fails the race goes on.
pub const BYWAY_RACE_UNTIL_TCP: i32 = 0;
/// The first finished proxy handshake wins.
pub const BYWAY_RACE_UNTIL_READY: i32 = 1;
/// The host confirms the winner, usually after TLS; until then the race goes on beside it.
pub const BYWAY_RACE_UNTIL_HOST: i32 = 2;

/// IPv6 first when addresses arrive family by family.
pub const BYWAY_FIRST_FAMILY_V6: i32 = 0;
/// IPv4 first.
pub const BYWAY_FIRST_FAMILY_V4: i32 = 1;
/// The family of the first address that arrives.
pub const BYWAY_FIRST_FAMILY_FIRST_ADDRESS: i32 = 2;

/// A header for the proxy alone.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_header {
    /// A token, for example `Proxy-Trace`.
    pub name: byway_str,
    /// One line.
    pub value: byway_str,
}

/// What a dial is made with. Start from `BYWAY_DIAL_OPTIONS_INIT` or `byway_dial_options_init`. In every number 0 means
/// the default that is named with it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct byway_dial_options {
    /// `sizeof(byway_dial_options)`.
    pub struct_size: usize,
    /// The host's own number, echoed in events and calls.
    pub tag: u64,
    /// `BYWAY_DIAL_*`.
    pub flags: u32,
    /// Pause between starts while something is in flight, milliseconds, 10 to 2000; 250.
    pub attempt_delay_ms: u32,
    /// How long an answer of the other family waits for the preferred one; 50.
    pub resolution_delay_ms: u32,
    /// Limit of one TCP connect; 10 000.
    pub attempt_timeout_ms: u32,
    /// Limit of one proxy handshake; 30 000.
    pub ready_timeout_ms: u32,
    /// Limit of everything, from the first step; none.
    pub overall_timeout_ms: u32,
    /// Pause granted to an attempt whose TCP is up; the attempt delay.
    pub ready_extend_ms: u32,
    /// Attempts in flight at once; 6.
    pub max_in_flight: u32,
    /// `BYWAY_CAP_*`.
    pub cap_policy: i32,
    /// `BYWAY_ON_FAILURE_*`.
    pub on_failure: i32,
    /// `BYWAY_RACE_UNTIL_*`.
    pub race_until: i32,
    /// `BYWAY_FIRST_FAMILY_*`.
    pub first_family: i32,
    /// Addresses of the preferred family before the first of the other; 1.
    pub first_family_count: u32,
    /// Most CONNECT requests for one route, over kept and new connections; 21.
    pub max_tunnel_attempts: u32,
    /// Longest line of a CONNECT answer in bytes; 16 KiB.
    pub max_line: u32,
    /// Longest head of a CONNECT answer in bytes, interim answers included; 256 KiB.
    pub max_header: u32,
    /// Longest body of a 407 that is read to keep the connection, bytes; 64 KiB.
    pub max_drain: u32,
    /// Seconds of silence before keep-alive probes, and between them; off.
    pub keepalive_s: u32,
    /// `TCP_USER_TIMEOUT` in milliseconds; the system's.
    pub user_timeout_ms: u32,
    /// `SO_MARK`; none. Needs CAP_NET_ADMIN.
    pub mark: u32,
    /// Source address of IPv4 attempts, as text; none.
    pub source_v4: byway_str,
    /// Source address of IPv6 attempts, as text; none.
    pub source_v6: byway_str,
    /// Network device (`SO_BINDTODEVICE`); none.
    pub device: byway_str,
    /// `User-Agent` of CONNECT; `(NULL, 0)` is `byway/VERSION`, an empty text none.
    pub user_agent: byway_str,
    /// Further headers of CONNECT; they never reach the target.
    pub headers: *const byway_header,
    /// Their number.
    pub header_count: usize,
}

// SAFETY: repr(C), size first, plain numbers and pointers.
unsafe impl Versioned for byway_dial_options {
    const FIRST_SIZE: usize = size_of::<Self>();
    const INIT: Self = byway_dial_options {
        struct_size: size_of::<Self>(),
        tag: 0,
        flags: 0,
        attempt_delay_ms: 0,
        resolution_delay_ms: 0,
        attempt_timeout_ms: 0,
        ready_timeout_ms: 0,
        overall_timeout_ms: 0,
        ready_extend_ms: 0,
        max_in_flight: 0,
        cap_policy: BYWAY_CAP_DROP_OLDEST,
        on_failure: BYWAY_ON_FAILURE_WHEN_IDLE,
        race_until: BYWAY_RACE_UNTIL_TCP,
        first_family: BYWAY_FIRST_FAMILY_V6,
        first_family_count: 0,
        max_tunnel_attempts: 0,
        max_line: 0,
        max_header: 0,
        max_drain: 0,
        keepalive_s: 0,
        user_timeout_ms: 0,
        mark: 0,
        source_v4: byway_str::NONE,
        source_v6: byway_str::NONE,
        device: byway_str::NONE,
        user_agent: byway_str::NONE,
        headers: core::ptr::null(),
        header_count: 0,
    };
}

pub(super) const LAYOUTS: &[Layout] = &[
    layout!(byway_header { name, value }),
    layout!(byway_dial_options {
        struct_size,
        tag,
        flags,
        attempt_delay_ms,
        resolution_delay_ms,
        attempt_timeout_ms,
        ready_timeout_ms,
        overall_timeout_ms,
        ready_extend_ms,
        max_in_flight,
        cap_policy,
        on_failure,
        race_until,
        first_family,
        first_family_count,
        max_tunnel_attempts,
        max_line,
        max_header,
        max_drain,
        keepalive_s,
        user_timeout_ms,
        mark,
        source_v4,
        source_v6,
        device,
        user_agent,
        headers,
        header_count,
    }),
];

/// Sets every option to its default.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_dial_options_init(options: *mut byway_dial_options) {
    call_or((), || {
        arguments::init(options);
        Ok(())
    });
}

/// A number where 0 means the default that stands there and `BYWAY_DIAL_NONE` none.
fn put(field: &mut u32, given: u32) {
    match given {
        0 => {}
        BYWAY_DIAL_NONE => *field = 0,
        given => *field = given,
    }
}

fn put_size(field: &mut usize, given: u32) {
    if given != 0 {
        *field = usize::try_from(given).unwrap_or(usize::MAX);
    }
}

fn choice<T: Copy>(values: &[T], given: i32, name: &'static str) -> Result<T, Fail> {
    let value = usize::try_from(given).ok().and_then(|at| values.get(at));
    value.copied().ok_or(Fail::Parameter(Status::E_ENUM, name))
}

fn address<T: core::str::FromStr>(given: byway_str, name: &'static str) -> Result<Option<T>, Fail> {
    match arguments::text_of(given, name)? {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| {
            Error::new(Status::E_INVALID_IP, format!("{text:?} is not an address of this family"))
                .subject(name)
                .into()
        }),
    }
}

/// The options as the floor below takes them. The engine's profile gives the defaults.
pub(super) fn options_of(given: *const byway_dial_options, compat: Compat) -> Result<(Options, u64), Fail> {
    let mut options = if compat == Compat::Byway { Options::default() } else { Options::upstream() };
    if given.is_null() {
        return Ok((options, 0));
    }
    let given = arguments::versioned(given, "options")?;
    let has = |flag: u32| given.flags & flag != 0;
    if given.flags & !FLAGS != 0 {
        return Err(Fail::Parameter(Status::E_ENUM, "options.flags"));
    }
    let rules = &mut options.rules;
    put(&mut rules.attempt_delay_ms, given.attempt_delay_ms);
    put(&mut rules.resolution_delay_ms, given.resolution_delay_ms);
    put(&mut rules.attempt_timeout_ms, given.attempt_timeout_ms);
    put(&mut rules.ready_timeout_ms, given.ready_timeout_ms);
    put(&mut rules.overall_timeout_ms, given.overall_timeout_ms);
    rules.ready_extend_ms = match given.ready_extend_ms {
        0 => None,
        BYWAY_DIAL_NONE => Some(0),
        ms => Some(ms),
    };
    put(&mut rules.max_in_flight, given.max_in_flight);
    rules.cap_policy =
        choice(&[CapPolicy::DropOldest, CapPolicy::Wait], given.cap_policy, "options.cap_policy")?;
    let policies = [OnFailure::WhenIdle, OnFailure::Immediate, OnFailure::Latest];
    rules.on_failure = choice(&policies, given.on_failure, "options.on_failure")?;
    let until = [RaceUntil::Tcp, RaceUntil::Ready, RaceUntil::Host];
    rules.race_until = choice(&until, given.race_until, "options.race_until")?;
    let families = [FirstFamily::V6, FirstFamily::V4, FirstFamily::FirstAddress];
    rules.first_family = choice(&families, given.first_family, "options.first_family")?;
    put(&mut rules.first_family_count, given.first_family_count);
    rules.across_selections |= has(BYWAY_DIAL_ACROSS_SELECTIONS);

    let handshake = &mut options.handshake;
    put(&mut handshake.max_tunnel_attempts, given.max_tunnel_attempts);
    put_size(&mut handshake.limits.max_line, given.max_line);
    put_size(&mut handshake.limits.max_header, given.max_header);
    put_size(&mut handshake.limits.max_drain, given.max_drain);
    handshake.limits.strict_200 |= has(BYWAY_DIAL_STRICT_200);
    handshake.socks.strict = has(BYWAY_DIAL_SOCKS_STRICT);
    handshake.socks.optimistic = has(BYWAY_DIAL_SOCKS_OPTIMISTIC);
    handshake.socks.require_auth = has(BYWAY_DIAL_SOCKS_REQUIRE_AUTH);
    handshake.reject_early_data |= has(BYWAY_DIAL_REJECT_EARLY_DATA);
    handshake.preemptive_basic &= !has(BYWAY_DIAL_NO_PREEMPTIVE_AUTH);
    handshake.ask_first |= has(BYWAY_DIAL_ASK_FIRST);
    handshake.repeat_credentials |= has(BYWAY_DIAL_REPEAT_CREDENTIALS);
    if !given.user_agent.data.is_null() {
        handshake.user_agent = arguments::text_of(given.user_agent, "options.user_agent")?.to_owned();
    }
    for header in arguments::array(given.headers, given.header_count, "options.headers")? {
        let name = arguments::text_of(header.name, "options.headers")?;
        let value = arguments::text_of(header.value, "options.headers")?;
        handshake.headers.push((name.to_owned(), value.to_owned()));
    }
    let one_line = handshake.headers.iter().map(|(_, value)| value).chain([&handshake.user_agent]);
    if let Some(bad) = one_line.into_iter().find(|value| !is_header_value(value)) {
        let message = format!("{bad:?} has characters that must not stand in a header");
        return Err(Error::new(Status::E_ARGUMENT, message).subject("options.headers").into());
    }

    let socket = &mut options.socket;
    socket.nodelay = !has(BYWAY_DIAL_NO_NODELAY);
    socket.nonblocking = !has(BYWAY_DIAL_BLOCKING_SOCKET);
    socket.mptcp = has(BYWAY_DIAL_MPTCP);
    socket.fast_open = has(BYWAY_DIAL_FAST_OPEN);
    (socket.keepalive_s, socket.user_timeout_ms, socket.mark) =
        (given.keepalive_s, given.user_timeout_ms, given.mark);
    socket.source_v4 = address(given.source_v4, "options.source_v4")?;
    socket.source_v6 = address(given.source_v6, "options.source_v6")?;
    socket.device = match arguments::text_of(given.device, "options.device")? {
        "" => None,
        device if device.len() < 16 && !device.contains('\0') => Some(device.to_owned()),
        device => {
            let message = format!("{device:?} is not a device name of 1 to 15 bytes");
            return Err(Error::new(Status::E_ARGUMENT, message).subject("options.device").into());
        }
    };
    if has(BYWAY_DIAL_NEXT_ON_REFUSAL) {
        options.tunnel_refusal = TunnelRefusal::Next;
    }
    options.keep_duplicates |= has(BYWAY_DIAL_KEEP_DUPLICATES);
    options.events = has(BYWAY_DIAL_EVENTS);
    Ok((options, given.tag))
}
