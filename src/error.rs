//! Every way anything can fail: [`Status`], the number a caller branches on, and [`Error`], what a person reads.
//!
//! Numbers are fixed for ever (`abi/enums.txt`); areas keep to their hundred so that a number tells where it
//! comes from. A new status is added at the end of its area; a retired one stays listed there.

use core::fmt;

/// Outcome of a call: 0 is success, negative an error, positive success with information.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Status(pub i32);

macro_rules! statuses {
    ($( $(#[$doc:meta])* $name:ident = $value:literal, $message:literal; )*) => {
        impl Status {
            $( $(#[$doc])* pub const $name: Status = Status($value); )*

            /// Every status with its C name (without `BYWAY_`) and its sentence, in header order.
            pub const ALL: &'static [(Status, &'static str, &'static str)] = &[
                $( (Status($value), concat!("BYWAY_", stringify!($name), "\0"), concat!($message, "\0")), )*
            ];
        }
    };
}

statuses! {
    /// The call did what it says.
    OK = 0, "ok";
    /// Nothing is left to deliver; not an error.
    DONE = 1, "nothing left to deliver";
    /// The answer comes later.
    PENDING = 2, "the answer comes later";
    /// From a callback: do what would be done without a callback.
    PASS = 3, "use the built-in behaviour";

    // 1xx: arguments, handles, life cycle
    /// An argument has a value it must not have.
    E_ARGUMENT = -100, "an argument has a value it must not have";
    /// A pointer that must not be NULL is NULL.
    E_NULL = -101, "a pointer that must not be NULL is NULL";
    /// Another call is running on this exclusive handle.
    E_BUSY = -102, "another call is running on this handle";
    /// The handle is NULL, freed, of another type, or of another copy of the library.
    E_BAD_HANDLE = -103, "not a live handle of this type";
    /// Not legal from inside this callback.
    E_REENTRANT = -104, "not legal from inside this callback";
    /// The operation was cancelled.
    E_CANCELED = -105, "canceled";
    /// Time ran out.
    E_TIMEOUT = -106, "time ran out";
    /// Text that must be UTF-8 is not.
    E_UTF8 = -107, "text is not UTF-8";
    /// A number is not one of the constants this parameter takes.
    E_ENUM = -108, "not one of the constants this parameter takes";
    /// `struct_size` is below the first release's, or unknown bytes are not zero.
    E_STRUCT_SIZE = -109, "struct_size is not one this library understands";
    /// The call is not legal in the present state, for example a second answer.
    E_STATE = -110, "not legal in the present state";
    /// The engine or queue is shut down.
    E_SHUTDOWN = -111, "the engine is shut down";
    /// The process was forked after the object was made; only values work in a child.
    E_FORKED = -112, "not usable in a forked child";
    /// A blocking call on the thread that polls the queue would wait for itself.
    E_WOULD_DEADLOCK = -113, "a blocking call would wait for its own thread";
    /// Compiled out or not available on this platform.
    E_UNSUPPORTED = -114, "not supported by this build or platform";
    /// An earlier panic left this object in an unknown state.
    E_POISONED = -115, "an earlier panic left this object in an unknown state";
    /// A bound was reached.
    E_LIMIT = -116, "a limit was reached";
    /// A request was released without an answer.
    E_ABANDONED = -117, "the request was released without an answer";
    /// No object has this name, key or index.
    E_NOT_FOUND = -118, "no such object";
    /// The name, key or tag is taken.
    E_DUPLICATE = -119, "already present";

    // 2xx: hosts, proxies, addresses
    /// Not a host name or IP literal.
    E_INVALID_HOST = -200, "not a host name or IP literal";
    /// Port outside 1..65535.
    E_INVALID_PORT = -201, "port outside 1..65535";
    /// Not a usable proxy description.
    E_INVALID_PROXY = -202, "not a usable proxy";
    /// The proxy selector failed.
    E_PROXY_SELECTOR = -203, "the proxy selector failed";
    /// A callback answered OK and added nothing.
    E_EMPTY_ANSWER = -204, "answered with nothing";
    /// No route is left that may be tried.
    E_NO_ROUTE = -205, "no route to try";
    /// The address filter refuses every target.
    E_FILTERED = -206, "refused by the address filter";
    /// Not an IP address, network or range.
    E_INVALID_IP = -207, "not an IP address, network or range";
    /// Not a usable URL.
    E_INVALID_URL = -208, "not a usable URL";
    /// A proxy auto-configuration script failed.
    E_PAC = -209, "the proxy script failed";

    // 3xx: DNS
    /// The name does not exist.
    E_UNKNOWN_HOST = -300, "unknown host";
    /// The resolver failed; trying again may help.
    E_DNS = -301, "name resolution failed";

    // 4xx: rules, chains
    /// A rule text has an error.
    E_RULE = -400, "the rule has an error";
    /// The text is not JSON, YAML or what else it must be.
    E_SYNTAX = -401, "the text does not parse";
    /// No invoker may serve the call.
    E_NO_INVOKER = -402, "no invoker may serve this call";
    /// An invoker list is not usable.
    E_INVOKERS = -403, "the invoker list is not usable";
    /// A script failed.
    E_SCRIPT = -404, "the script failed";
    /// A source of rules or providers failed.
    E_SOURCE = -405, "the source failed";

    // 5xx: connecting
    /// Connection refused.
    E_REFUSED = -500, "connection refused";
    /// Network or host unreachable.
    E_UNREACHABLE = -501, "unreachable";
    /// Connection reset.
    E_RESET = -502, "connection reset";
    /// This machine cannot make the attempt: descriptors, permission, no local route.
    E_LOCAL = -503, "this machine cannot make the attempt";
    /// Every route failed; the causes are listed.
    E_CONNECT = -504, "every route failed";
    /// The proxy refuses.
    E_PROXY_REFUSED = -505, "the proxy refuses";
    /// The proxy wants other credentials.
    E_PROXY_AUTH = -506, "the proxy wants credentials";
    /// The proxy breaks its protocol.
    E_PROXY_PROTOCOL = -507, "the proxy breaks its protocol";
    /// The peer closed in the middle.
    E_CLOSED = -508, "closed in the middle";
    /// The socket is connected to itself.
    E_SELF_CONNECT = -509, "the socket is connected to itself";
    /// The host must run TLS to the proxy before the dial can go on.
    E_NEEDS_PROXY_TLS = -510, "TLS to the proxy must be run first";
    /// Another socket or system call error; the error has the number.
    E_OS = -511, "a system call failed";

    // 9xx: hosts and the inside
    /// A callback failed; the error has the host's own code.
    E_HOST = -900, "a callback failed";
    /// A defect in this library; the error says where.
    E_PANIC = -901, "defect inside the library";
    /// Memory or threads ran out.
    E_RESOURCES = -902, "the system has no memory or threads left";
}

impl Status {
    /// True for negative numbers.
    pub const fn is_error(self) -> bool {
        self.0 < 0
    }

    /// C name, for example `BYWAY_E_BUSY`; `BYWAY_UNKNOWN` for numbers that are not a status.
    pub fn name(self) -> &'static str {
        Self::lookup(self).map_or("BYWAY_UNKNOWN", |(name, _)| name)
    }

    /// One sentence without a full stop; answers for every number.
    pub fn message(self) -> &'static str {
        Self::lookup(self).map_or("unknown status", |(_, message)| message)
    }

    fn lookup(self) -> Option<(&'static str, &'static str)> {
        let (_, name, message) = Self::ALL.iter().find(|(status, ..)| *status == self)?;
        Some((name.trim_end_matches('\0'), message.trim_end_matches('\0')))
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name(), self.0)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

/// Who found the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(i32)]
pub enum Source {
    /// A parameter of the call.
    #[default]
    Argument = 0,
    /// Host code.
    Callback = 1,
    /// A parser of this library: hosts, rules, URLs, JSON.
    Parser = 2,
    /// The operating system, about a socket or name.
    Socket = 3,
    /// A user's script.
    Script = 4,
    /// A defect in this library.
    Panic = 5,
    /// The library's own state: cancel, timeout, shutdown, limits.
    Engine = 6,
}

/// Place in a text, as editors count: line and column from 1, column in characters; the offset in bytes from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Byte offset from the start of the text.
    pub offset: usize,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl Position {
    /// The place of a byte offset in `text`; an offset past the end means the end.
    pub fn in_text(text: &str, offset: usize) -> Position {
        let mut end = offset.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let head = text.get(..end).unwrap_or_default();
        let line_start = head.rfind('\n').map_or(0, |at| at + 1);
        let line = head.bytes().filter(|&b| b == b'\n').count() + 1;
        let column = head.get(line_start..).unwrap_or_default().chars().count() + 1;
        Position {
            offset: end,
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: u32::try_from(column).unwrap_or(u32::MAX),
        }
    }
}

/// Bytes of a message or subject that are shown. What is quoted may come from the network and be of any length.
const MAX_SHOWN: usize = 2048;

/// A text that stays one line of bounded length wherever it is logged.
fn one_line(text: String) -> String {
    if text.len() <= MAX_SHOWN && !text.chars().any(char::is_control) {
        return text;
    }
    let boundary =
        |from: usize| (from..text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len());
    let head = boundary(MAX_SHOWN / 2);
    let tail = boundary(text.len().saturating_sub(MAX_SHOWN / 4));
    let (head, left_out, tail) = if text.len() <= MAX_SHOWN {
        (text.as_str(), 0, "")
    } else {
        (text.get(..head).unwrap_or_default(), tail - head, text.get(tail..).unwrap_or_default())
    };
    let mut line = String::with_capacity(MAX_SHOWN);
    let mut show = |part: &str| {
        for c in part.chars() {
            if c.is_control() { line.extend(c.escape_default()) } else { line.push(c) }
        }
    };
    show(head);
    if left_out > 0 {
        show(&format!("[... {left_out} bytes ...]"));
    }
    show(tail);
    line
}

/// A failure with everything known about it. One pointer wide; making one allocates, so hot paths use a bare
/// [`Status`].
#[derive(Clone, PartialEq)]
pub struct Error(Box<Inner>);

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = core::result::Result<T, E>;

#[derive(Clone, PartialEq)]
struct Inner {
    status: Status,
    message: String,
    subject: String,
    position: Option<Position>,
    os_errno: i32,
    host_code: i64,
    source: Source,
    causes: Vec<Error>,
}

impl Error {
    /// A failure with a one-line English message that says what was found and what was expected. It may quote what
    /// was found: control characters are escaped, and the middle of a very long text is left out.
    pub fn new(status: Status, message: impl Into<String>) -> Self {
        Error(Box::new(Inner {
            status,
            message: one_line(message.into()),
            subject: String::new(),
            position: None,
            os_errno: 0,
            host_code: 0,
            source: Source::default(),
            causes: Vec::new(),
        }))
    }

    /// The status alone, with its own sentence as message.
    pub fn bare(status: Status) -> Self {
        Error::new(status, status.message())
    }

    /// What it is about: a host, a rule key, a parameter name.
    #[must_use]
    pub fn subject(mut self, subject: impl Into<String>) -> Self {
        self.0.subject = one_line(subject.into());
        self
    }

    /// Where in the text it is.
    #[must_use]
    pub fn at(mut self, position: Position) -> Self {
        self.0.position = Some(position);
        self
    }

    /// The operating system's number.
    #[must_use]
    pub fn os(mut self, errno: i32) -> Self {
        self.0.os_errno = errno;
        self
    }

    /// The host's own number, passed through unchanged.
    #[must_use]
    pub fn host(mut self, code: i64) -> Self {
        self.0.host_code = code;
        self
    }

    /// Who found it.
    #[must_use]
    pub fn source(mut self, source: Source) -> Self {
        self.0.source = source;
        self
    }

    /// Adds one cause behind the ones already there.
    #[must_use]
    pub fn cause(mut self, cause: Error) -> Self {
        self.0.causes.push(cause);
        self
    }

    /// Adds causes in order, for example every attempt that failed.
    #[must_use]
    pub fn causes(mut self, causes: impl IntoIterator<Item = Error>) -> Self {
        self.0.causes.extend(causes);
        self
    }

    /// The number a caller branches on.
    pub fn status(&self) -> Status {
        self.0.status
    }

    /// One line, without the subject.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What it is about; empty when nothing was named.
    pub fn about(&self) -> &str {
        &self.0.subject
    }

    /// Where in the text it is, if it is about a text.
    pub fn position(&self) -> Option<Position> {
        self.0.position
    }

    /// The operating system's number, 0 when there is none.
    pub fn os_errno(&self) -> i32 {
        self.0.os_errno
    }

    /// The host's own number, 0 when there is none.
    pub fn host_code(&self) -> i64 {
        self.0.host_code
    }

    /// Who found it.
    pub fn found_by(&self) -> Source {
        self.0.source
    }

    /// What led to it, in the order it happened.
    pub fn all_causes(&self) -> &[Error] {
        &self.0.causes
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.subject.is_empty() {
            write!(f, "{}: ", self.0.subject)?;
        }
        if let Some(at) = self.0.position {
            write!(f, "line {}, column {}: ", at.line, at.column)?;
        }
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {self}", self.0.status)?;
        if !self.0.causes.is_empty() {
            write!(f, " {:?}", self.0.causes)?;
        }
        Ok(())
    }
}

impl core::error::Error for Error {}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        Error::bare(status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_error_quotes_stays_one_line_of_bounded_length() {
        let shown = |text: String| {
            let error = Error::new(Status::E_SYNTAX, text.clone()).subject(text);
            assert_eq!(error.message(), error.about());
            error.message().to_owned()
        };
        assert_eq!(shown("a\r\nb\u{1b}[0m \u{fc}".into()), "a\\r\\nb\\u{1b}[0m \u{fc}");
        let exact = "\u{fc}".repeat(MAX_SHOWN / 2);
        assert_eq!(shown(exact.clone()), exact);
        let long = shown(format!("begin {} end", "\u{fc}".repeat(5_000_000)));
        assert!(long.len() < MAX_SHOWN && long.starts_with("begin ") && long.ends_with(" end"), "{long}");
    }

    #[test]
    fn numbers_and_names_are_unique_and_total() {
        for (i, (status, name, message)) in Status::ALL.iter().enumerate() {
            assert!(!message.is_empty() && name.starts_with("BYWAY_"));
            for (other, other_name, _) in &Status::ALL[i + 1..] {
                assert_ne!(status, other);
                assert_ne!(name, other_name);
            }
        }
        assert_eq!(Status(i32::MIN).name(), "BYWAY_UNKNOWN");
        assert_eq!(Status::E_BUSY.0, -102);
    }

    #[test]
    fn positions_count_characters_and_lines() {
        let text = "a: é\nbüc: d";
        let at = text.find("c:").unwrap();
        assert_eq!(Position::in_text(text, at), Position { offset: at, line: 2, column: 3 });
        assert_eq!(Position::in_text(text, 999).offset, text.len());
    }

    #[test]
    fn an_error_is_one_pointer_wide() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
        assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
    }
}
