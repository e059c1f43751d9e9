"""Exceptions: one class per kind of trouble, every field of the library's error object."""
from __future__ import annotations

import builtins
import ctypes
from typing import Any, Dict, List, Optional, Tuple, Type

from . import _abi
from ._library import lib, status_message, status_name


class BywayError(Exception):
    """A call failed. ``code`` is what to branch on; ``str()`` is what a person reads."""

    def __init__(
        self,
        code: int,
        message: str = "",
        *,
        subject: str = "",
        offset: int = -1,
        line: int = 0,
        column: int = 0,
        os_errno: int = 0,
        host_code: int = 0,
        source: int = 0,
        causes: Tuple["BywayError", ...] = (),
    ) -> None:
        self.code = code
        self.message = message or status_message(code)
        #: What it is about: a parameter, a host, a rule key.
        self.subject = subject
        #: Byte offset in the text that was parsed, -1 when it is not about a text.
        self.offset = offset
        #: From 1; 0 when it is not about a text.
        self.line = line
        self.column = column
        self.os_errno = os_errno
        #: The number a callback gave with its failure.
        self.host_code = host_code
        #: 0 argument, 1 callback, 2 parser, 3 socket, 4 script, 5 panic, 6 engine.
        self.source = source
        #: Every failed attempt, in the order they happened.
        self.causes = causes
        super().__init__(str(self))

    @property
    def name(self) -> str:
        """C name of the code, for example ``BYWAY_E_BUSY``."""
        return status_name(self.code)

    def _say(self, cause: Exception) -> None:
        """Has the message tell what a callback raised."""
        try:
            text = str(cause)
        except Exception:
            text = ""
        if text and text in self.message:
            return
        kind = type(cause).__name__
        self.message += f": {kind}: {text}" if text else f": {kind}"
        self.args = (str(self),)

    def __str__(self) -> str:
        place = f"line {self.line}, column {self.column}: " if self.line else ""
        about = f"{self.subject}: " if self.subject else ""
        return f"{about}{place}{self.message}"


class ArgumentError(BywayError, ValueError):
    """An argument has a value it must not have."""


class HandleError(BywayError):
    """The object is closed, or in use by another call."""


class CanceledError(BywayError):
    """The operation was cancelled."""


class TimeoutError(BywayError, builtins.TimeoutError):
    """Time ran out."""


class ShutdownError(BywayError):
    """The engine is shut down, or the process was forked."""


class UnsupportedError(BywayError, NotImplementedError):
    """Compiled out or not available on this platform."""


class HostError(BywayError):
    """A callback failed. The exception it raised is ``__cause__``."""


class ProxyError(BywayError):
    """Proxies: selection, description, what they answer."""


class DnsError(BywayError):
    """Name resolution failed."""


class RuleError(BywayError):
    """Rules, invoker lists, scripts, sources."""


class ParseError(RuleError, ArgumentError):
    """A text does not parse: a rule, a filter, a hosts file, JSON. ``line`` and ``column`` say where."""


class ScriptLimitError(RuleError, ProxyError):
    """A script, of a rule or for proxies, reached one of its limits: memory, names."""


class InvokersError(RuleError, ArgumentError):
    """A list of providers is not usable: an URL that is none, a tag twice, an unknown load balance. The subject names the
    row or the parameter."""


class NoInvokerError(RuleError, LookupError):
    """No invoker may serve the call."""


class ConnectError(BywayError, ConnectionError):
    """Connecting failed; ``causes`` has every attempt."""


class FilteredError(BywayError, PermissionError):
    """The address filter refuses every address."""


_CLASSES: Dict[int, Type[BywayError]] = {
    _abi.BYWAY_E_BUSY: HandleError,
    _abi.BYWAY_E_BAD_HANDLE: HandleError,
    _abi.BYWAY_E_REENTRANT: HandleError,
    _abi.BYWAY_E_POISONED: HandleError,
    _abi.BYWAY_E_CANCELED: CanceledError,
    _abi.BYWAY_E_TIMEOUT: TimeoutError,
    _abi.BYWAY_E_SHUTDOWN: ShutdownError,
    _abi.BYWAY_E_FORKED: ShutdownError,
    _abi.BYWAY_E_UNSUPPORTED: UnsupportedError,
    _abi.BYWAY_E_HOST: HostError,
    _abi.BYWAY_E_FILTERED: FilteredError,
    _abi.BYWAY_E_SYNTAX: ParseError,
    _abi.BYWAY_E_INVOKERS: InvokersError,
    _abi.BYWAY_E_NO_INVOKER: NoInvokerError,
    _abi.BYWAY_E_INVALID_HOST: ArgumentError,
    _abi.BYWAY_E_INVALID_PORT: ArgumentError,
    _abi.BYWAY_E_INVALID_IP: ArgumentError,
    _abi.BYWAY_E_INVALID_URL: ArgumentError,
}
_AREAS: List[Tuple[int, Type[BywayError]]] = [
    (-199, ArgumentError),
    (-299, ProxyError),
    (-399, DnsError),
    (-499, RuleError),
    (-599, ConnectError),
]


#: ``source`` of what a script did.
_SCRIPT = 4


def class_of(code: int, source: int = 0) -> Type[BywayError]:
    """The exception class of a status; a limit that a script reached is the script's trouble, not an argument's."""
    if code == _abi.BYWAY_E_LIMIT and source == _SCRIPT:
        return ScriptLimitError
    exact = _CLASSES.get(code)
    if exact is not None:
        return exact
    for lowest, kind in _AREAS:
        if code >= lowest:
            return kind
    return BywayError


def _text(getter: Any, pointer: int) -> str:
    out = _abi.byway_str()
    getter(pointer, ctypes.addressof(out))
    return ctypes.string_at(out.data, out.len).decode("utf-8", "replace") if out.len else ""


def read(pointer: int) -> BywayError:
    """The exception for a live ``byway_error *``, which stays the caller's."""
    count = lib.byway_error_cause_count(pointer)
    code = lib.byway_error_code(pointer)
    source = lib.byway_error_source(pointer)
    return class_of(code, source)(
        code,
        _text(lib.byway_error_message, pointer),
        subject=_text(lib.byway_error_subject, pointer),
        offset=lib.byway_error_offset(pointer),
        line=lib.byway_error_line(pointer),
        column=lib.byway_error_column(pointer),
        os_errno=lib.byway_error_os_errno(pointer),
        host_code=lib.byway_error_host_code(pointer),
        source=source,
        causes=tuple(read(lib.byway_error_cause_at(pointer, i)) for i in range(count)),
    )


def make(code: int, pointer: Optional[int], cause: Optional[BaseException]) -> BaseException:
    """The exception for a failed call; frees the error object.

    What a callback raised becomes ``__cause__``; an exit or interrupt request comes back as itself.
    """
    if pointer:
        error = read(pointer)
        lib.byway_error_free(pointer)
    else:
        error = class_of(code)(code)
    if cause is not None:
        if not isinstance(cause, Exception):
            return cause
        error.__cause__ = cause
        if isinstance(error, HostError):
            error._say(cause)
    return error
