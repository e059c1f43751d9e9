//! `byway_status` and its constants. The table is `crate::error::Status`; a test holds both together.

/// Outcome of a call: 0 is success, negative an error, positive success with information.
pub type byway_status = i32;

/// The call did what it says.
pub const BYWAY_OK: byway_status = 0;
/// Nothing is left to deliver; not an error.
pub const BYWAY_DONE: byway_status = 1;
/// The answer comes later.
pub const BYWAY_PENDING: byway_status = 2;
/// From a callback: do what would be done without a callback.
pub const BYWAY_PASS: byway_status = 3;
/// An argument has a value it must not have.
pub const BYWAY_E_ARGUMENT: byway_status = -100;
/// A pointer that must not be NULL is NULL.
pub const BYWAY_E_NULL: byway_status = -101;
/// Another call is running on this exclusive handle.
pub const BYWAY_E_BUSY: byway_status = -102;
/// The handle is NULL, freed, of another type, or of another copy of the library.
pub const BYWAY_E_BAD_HANDLE: byway_status = -103;
/// Not legal from inside this callback.
pub const BYWAY_E_REENTRANT: byway_status = -104;
/// The operation was cancelled.
pub const BYWAY_E_CANCELED: byway_status = -105;
/// Time ran out.
pub const BYWAY_E_TIMEOUT: byway_status = -106;
/// Text that must be UTF-8 is not.
pub const BYWAY_E_UTF8: byway_status = -107;
/// A number is not one of the constants this parameter takes.
pub const BYWAY_E_ENUM: byway_status = -108;
/// `struct_size` is below the first release's, or unknown bytes are not zero.
pub const BYWAY_E_STRUCT_SIZE: byway_status = -109;
/// The call is not legal in the present state, for example a second answer.
pub const BYWAY_E_STATE: byway_status = -110;
/// The engine or queue is shut down.
pub const BYWAY_E_SHUTDOWN: byway_status = -111;
/// The process was forked after the object was made; only values work in a child.
pub const BYWAY_E_FORKED: byway_status = -112;
/// A blocking call on the thread that polls the queue would wait for itself.
pub const BYWAY_E_WOULD_DEADLOCK: byway_status = -113;
/// Compiled out or not available on this platform.
pub const BYWAY_E_UNSUPPORTED: byway_status = -114;
/// An earlier panic left this object in an unknown state.
pub const BYWAY_E_POISONED: byway_status = -115;
/// A bound was reached.
pub const BYWAY_E_LIMIT: byway_status = -116;
/// A request was released without an answer.
pub const BYWAY_E_ABANDONED: byway_status = -117;
/// No object has this name, key or index.
pub const BYWAY_E_NOT_FOUND: byway_status = -118;
/// The name, key or tag is taken.
pub const BYWAY_E_DUPLICATE: byway_status = -119;
/// Not a host name or IP literal.
pub const BYWAY_E_INVALID_HOST: byway_status = -200;
/// Port outside 1..65535.
pub const BYWAY_E_INVALID_PORT: byway_status = -201;
/// Not a usable proxy description.
pub const BYWAY_E_INVALID_PROXY: byway_status = -202;
/// The proxy selector failed.
pub const BYWAY_E_PROXY_SELECTOR: byway_status = -203;
/// A callback answered OK and added nothing.
pub const BYWAY_E_EMPTY_ANSWER: byway_status = -204;
/// No route is left that may be tried.
pub const BYWAY_E_NO_ROUTE: byway_status = -205;
/// The address filter refuses every target.
pub const BYWAY_E_FILTERED: byway_status = -206;
/// Not an IP address, network or range.
pub const BYWAY_E_INVALID_IP: byway_status = -207;
/// Not a usable URL.
pub const BYWAY_E_INVALID_URL: byway_status = -208;
/// A proxy auto-configuration script failed.
pub const BYWAY_E_PAC: byway_status = -209;
/// The name does not exist.
pub const BYWAY_E_UNKNOWN_HOST: byway_status = -300;
/// The resolver failed; trying again may help.
pub const BYWAY_E_DNS: byway_status = -301;
/// A rule text has an error.
pub const BYWAY_E_RULE: byway_status = -400;
/// The text is not JSON, YAML or what else it must be.
pub const BYWAY_E_SYNTAX: byway_status = -401;
/// No invoker may serve the call.
pub const BYWAY_E_NO_INVOKER: byway_status = -402;
/// An invoker list is not usable.
pub const BYWAY_E_INVOKERS: byway_status = -403;
/// A script failed.
pub const BYWAY_E_SCRIPT: byway_status = -404;
/// A source of rules or providers failed.
pub const BYWAY_E_SOURCE: byway_status = -405;
/// Connection refused.
pub const BYWAY_E_REFUSED: byway_status = -500;
/// Network or host unreachable.
pub const BYWAY_E_UNREACHABLE: byway_status = -501;
/// Connection reset.
pub const BYWAY_E_RESET: byway_status = -502;
/// This machine cannot make the attempt: descriptors, permission, no local route.
pub const BYWAY_E_LOCAL: byway_status = -503;
/// Every route failed; the causes are listed.
pub const BYWAY_E_CONNECT: byway_status = -504;
/// The proxy refuses.
pub const BYWAY_E_PROXY_REFUSED: byway_status = -505;
/// The proxy wants other credentials.
pub const BYWAY_E_PROXY_AUTH: byway_status = -506;
/// The proxy breaks its protocol.
pub const BYWAY_E_PROXY_PROTOCOL: byway_status = -507;
/// The peer closed in the middle.
pub const BYWAY_E_CLOSED: byway_status = -508;
/// The socket is connected to itself.
pub const BYWAY_E_SELF_CONNECT: byway_status = -509;
/// The host must run TLS to the proxy before the dial can go on.
pub const BYWAY_E_NEEDS_PROXY_TLS: byway_status = -510;
/// Another socket or system call error; the error has the number.
pub const BYWAY_E_OS: byway_status = -511;
/// A callback failed; the error has the host's own code.
pub const BYWAY_E_HOST: byway_status = -900;
/// A defect in this library; the error says where.
pub const BYWAY_E_PANIC: byway_status = -901;
/// Memory or threads ran out.
pub const BYWAY_E_RESOURCES: byway_status = -902;

#[cfg(test)]
mod tests {
    use crate::error::Status;

    #[test]
    fn constants_and_table_are_the_same() {
        let source = include_str!("status.rs");
        for (status, name, _) in Status::ALL {
            let line = format!("pub const {}: byway_status = {};", name.trim_end_matches('\0'), status.0);
            assert!(source.contains(&line), "{line}");
        }
        assert_eq!(source.matches("\npub const BYWAY_").count(), Status::ALL.len());
    }
}
