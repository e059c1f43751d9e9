//! `byway_handshake`: the dialogue with a proxy over a connection the host runs itself.

use super::arguments::{self, byway_str};
use super::dial_options::{byway_dial_options, options_of};
use super::error::byway_error;
use super::guard::{Fail, call, call_or, call_quiet};
use super::handle::{self, handle};
use super::route::byway_route;
use super::status::byway_status;
use crate::dial::handshake::{Handshake, Protocol, Want};
use crate::dial::socks::{Credentials, Host, Version};
use crate::dial::{Fault, Via};
use crate::engine::routes::dialing::leg;
use crate::error::{Error, Source, Status};
use crate::net::ProxyKind;
use crate::net::compat::Compat;
use core::ffi::{c_char, c_void};

/// A SOCKS or CONNECT dialogue, bytes in and bytes out, without a socket: for TLS to the proxy, io_uring, tests.
/// Exclusive.
pub struct byway_handshake {
    _private: [u8; 0],
}

handle!(byway_handshake, HandshakeObject, 16, true);

/// The dialogue, and what it asks credentials for as C texts.
pub(crate) struct HandshakeObject {
    dialogue: Handshake,
    challenges: Vec<Box<str>>,
    route: String,
}

/// Write `byway_handshake_output`, then say so with `byway_handshake_sent`.
pub const BYWAY_HANDSHAKE_WRITE: i32 = 1;
/// Read at most `*limit` bytes and feed them: all of them belong to the dialogue.
pub const BYWAY_HANDSHAKE_READ: i32 = 2;
/// Feed what is there; `*consumed` says how much belongs to the dialogue, the rest is tunnel data. Over a socket, peek.
pub const BYWAY_HANDSHAKE_PEEK: i32 = 3;
/// Credentials are asked for: `byway_handshake_challenge_at`, `byway_handshake_answer`.
pub const BYWAY_HANDSHAKE_CREDENTIALS: i32 = 4;
/// A new connection to the same hop is needed, then `byway_handshake_reconnected`.
pub const BYWAY_HANDSHAKE_RECONNECT: i32 = 5;
/// The tunnel stands.
pub const BYWAY_HANDSHAKE_DONE: i32 = 6;
/// It is over; the call that ended it said why.
pub const BYWAY_HANDSHAKE_FAILED: i32 = 7;

impl HandshakeObject {
    fn refuse(&self, fault: Fault) -> Fail {
        fault.error(0, &self.route).source(Source::Parser).into()
    }

    /// Keeps the challenges of the moment as texts that may be lent.
    fn settle(&mut self, done: Result<(), Fault>) -> Result<Status, Fail> {
        self.challenges.clear();
        if let Want::Credentials(challenges) = self.dialogue.want() {
            let texts =
                challenges.iter().map(|text| format!("{}\0", text.replace('\0', " ")).into_boxed_str());
            self.challenges = texts.collect();
        }
        match done {
            Ok(()) => Ok(Status::OK),
            Err(fault) => Err(self.refuse(fault)),
        }
    }
}

/// Makes the dialogue a route needs. Of `options`, which may be NULL, what concerns CONNECT and SOCKS counts.
///
/// Ownership: the caller owns it; the route is not needed any more.
/// Errors: `BYWAY_E_ARGUMENT` for a route that needs no dialogue; `BYWAY_E_INVALID_HOST`, `BYWAY_E_INVALID_PORT`,
/// `BYWAY_E_INVALID_PROXY` for what cannot be sent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_handshake_new(
    route: *const byway_route,
    options: *const byway_dial_options,
    out: *mut *mut byway_handshake,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let route = &handle::shared(route, "route")?.route;
        let (options, _) = options_of(options, Compat::Byway)?;
        let leg = leg(route);
        let protocol = match leg.via {
            Via::Socks(version) => Protocol::Socks(version),
            Via::Http | Via::Https if leg.tunnel => Protocol::Connect,
            _ => {
                let message = "this route needs no dialogue with a proxy";
                return Err(Error::new(Status::E_ARGUMENT, message).subject("route").into());
            }
        };
        let text = leg.hop.to_string();
        let made = Handshake::new(protocol, leg.host, leg.port, leg.credentials, options.handshake);
        let dialogue = made.map_err(|fault| fault.error(0, &text))?;
        let mut object = HandshakeObject { dialogue, challenges: Vec::new(), route: text };
        object.settle(Ok(()))?;
        *out = handle::hand_out(object);
        Ok(Status::OK)
    })
}

/// As `byway_handshake_new` for a host that keeps proxies of its own: `kind` is `BYWAY_PROXY_*` but not DIRECT, the host
/// a name or an address, also in brackets. `user` NULL = no credentials; they are copied and overwritten at the end.
/// SOCKS5 and SOCKS5H do not differ here: a name is the proxy's to resolve, an address goes as one.
///
/// Ownership: the caller owns it.
/// Errors: as `byway_handshake_new`; `BYWAY_E_ENUM`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_handshake_new_target(
    kind: i32,
    host: *const c_char,
    host_len: usize,
    port: i32,
    user: *const c_char,
    user_len: usize,
    password: *const c_char,
    password_len: usize,
    options: *const byway_dial_options,
    out: *mut *mut byway_handshake,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let out = arguments::out_handle(out, "out")?;
        let protocol = match ProxyKind::from_number(kind) {
            Some(ProxyKind::Http | ProxyKind::Https) => Protocol::Connect,
            Some(ProxyKind::Socks4) => Protocol::Socks(Version::V4),
            Some(ProxyKind::Socks4a) => Protocol::Socks(Version::V4a),
            Some(ProxyKind::Socks5 | ProxyKind::Socks5h) => Protocol::Socks(Version::V5),
            Some(ProxyKind::Direct) | None => return Err(Fail::Parameter(Status::E_ENUM, "kind")),
        };
        let text = arguments::text(host, host_len, "host")?;
        let port = u16::try_from(port).map_err(|_| Fail::Parameter(Status::E_INVALID_PORT, "port"))?;
        let password = arguments::text(password, password_len, "password")?;
        let credentials = match user.is_null() {
            true => None,
            false => Some(Credentials { user: arguments::text(user, user_len, "user")?, password }),
        };
        let (options, _) = options_of(options, Compat::Byway)?;
        let made = Host::parse(text)
            .and_then(|host| Handshake::new(protocol, host, port, credentials, options.handshake));
        let dialogue = made.map_err(|fault| fault.error(0, text))?;
        let mut object = HandshakeObject { dialogue, challenges: Vec::new(), route: text.to_owned() };
        object.settle(Ok(()))?;
        *out = handle::hand_out(object);
        Ok(Status::OK)
    })
}

/// What is needed now, `BYWAY_HANDSHAKE_*`. `*limit`, which may be NULL, gets the number of bytes that may be read for
/// `BYWAY_HANDSHAKE_READ`, else 0. 0 for what is not a live handshake.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_handshake_want(self_: *mut byway_handshake, limit: *mut usize) -> i32 {
    call_or(0, || {
        let limit = arguments::out_optional(limit, 0);
        let object = handle::exclusive(self_, "self")?;
        Ok(match object.dialogue.want() {
            Want::Write(_) => BYWAY_HANDSHAKE_WRITE,
            Want::Read(n) => {
                if let Some(limit) = limit {
                    *limit = n;
                }
                BYWAY_HANDSHAKE_READ
            }
            Want::Peek => BYWAY_HANDSHAKE_PEEK,
            Want::Credentials(_) => BYWAY_HANDSHAKE_CREDENTIALS,
            Want::Reconnect => BYWAY_HANDSHAKE_RECONNECT,
            Want::Done => BYWAY_HANDSHAKE_DONE,
            Want::Failed(_) => BYWAY_HANDSHAKE_FAILED,
        })
    })
}

/// The bytes to write now; empty unless `byway_handshake_want` says so. They may contain credentials: to the proxy only.
///
/// Ownership: borrowed, valid until the next call on `self`. Not text: no NUL follows.
/// Errors: `BYWAY_E_BUSY`, `BYWAY_E_NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_handshake_output(
    self_: *mut byway_handshake,
    out: *mut byway_str,
) -> byway_status {
    call_quiet(|| {
        let out = arguments::out(out, byway_str::EMPTY, "out")?;
        let object = handle::exclusive(self_, "self")?;
        if let Want::Write(bytes) = object.dialogue.want() {
            *out = byway_str { data: bytes.as_ptr().cast::<c_char>(), len: bytes.len() };
        }
        Ok(Status::OK)
    })
}

/// The first `count` bytes of `byway_handshake_output` were written.
///
/// Errors: `BYWAY_E_BUSY`. More than there is counts as all of it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_handshake_sent(self_: *mut byway_handshake, count: usize) -> byway_status {
    call_quiet(|| {
        handle::exclusive(self_, "self")?.dialogue.sent(count);
        Ok(Status::OK)
    })
}

/// Takes bytes that arrived; `*consumed` gets how many belong to the dialogue. The rest is tunnel data and the host's.
///
/// Errors: `BYWAY_E_PROXY_REFUSED`, `BYWAY_E_PROXY_AUTH`, `BYWAY_E_PROXY_PROTOCOL`: the dialogue is over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_handshake_feed(
    self_: *mut byway_handshake,
    data: *const c_void,
    len: usize,
    consumed: *mut usize,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let consumed = arguments::out(consumed, 0, "consumed")?;
        let bytes = arguments::array(data.cast::<u8>(), len, "data")?;
        let mut object = handle::exclusive(self_, "self")?;
        let fed = object.dialogue.feed(bytes);
        *consumed = *fed.as_ref().unwrap_or(&0);
        object.settle(fed.map(|_| ()))
    })
}

/// The proxy closed. Harmless when the tunnel stands; a proxy that closes a kept connection before it answers is
/// connected to once more.
///
/// Errors: `BYWAY_E_CLOSED`, or what was known from the answer so far.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_handshake_eof(
    self_: *mut byway_handshake,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let mut object = handle::exclusive(self_, "self")?;
        let done = object.dialogue.eof();
        object.settle(done)
    })
}

/// One challenge of the proxy (a value of `Proxy-Authenticate`), by position.
///
/// Ownership: borrowed, valid until the next call on `self` that changes it.
/// Errors: `BYWAY_DONE` past the last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_handshake_challenge_at(
    self_: *mut byway_handshake,
    index: usize,
    out: *mut byway_str,
) -> byway_status {
    call_quiet(|| {
        let out = arguments::out(out, byway_str::EMPTY, "out")?;
        let object = handle::exclusive(self_, "self")?;
        let Some(text) = object.challenges.get(index) else { return Ok(Status::DONE) };
        *out = byway_str { data: text.as_ptr().cast::<c_char>(), len: text.len() - 1 };
        Ok(Status::OK)
    })
}

/// Answers `BYWAY_HANDSHAKE_CREDENTIALS` with the whole value of `Proxy-Authorization`; `(NULL, 0)` = there are none.
///
/// Errors: `BYWAY_E_PROXY_AUTH` when there are none or the proxy refused the same before, `BYWAY_E_STATE` when nobody
/// asked.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_handshake_answer(
    self_: *mut byway_handshake,
    value: *const c_char,
    len: usize,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let value = arguments::text(value, len, "value")?;
        let mut object = handle::exclusive(self_, "self")?;
        if !matches!(object.dialogue.want(), Want::Credentials(_)) {
            return Err(Status::E_STATE.into());
        }
        let done = object.dialogue.answer((!value.is_empty()).then_some(value));
        object.settle(done)
    })
}

/// A new connection to the same hop stands (and TLS on it, for a proxy behind TLS).
///
/// Errors: `BYWAY_E_STATE` when none was asked for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_handshake_reconnected(
    self_: *mut byway_handshake,
    err: *mut *mut byway_error,
) -> byway_status {
    call(err, || {
        let mut object = handle::exclusive(self_, "self")?;
        if object.dialogue.want() != Want::Reconnect {
            return Err(Status::E_STATE.into());
        }
        let done = object.dialogue.reconnected();
        object.settle(done)
    })
}

/// Ends a handshake; credentials it held are overwritten. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn byway_handshake_free(self_: *mut byway_handshake) {
    call_or((), || {
        handle::free(self_);
        Ok(())
    });
}
