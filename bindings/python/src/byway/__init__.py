"""byway: a route engine. Where do I connect next? Which provider serves this call?"""
from ._library import find_library, has_feature, status_message, status_name, version
from .chain import (
    Balance,
    Chain,
    Choice,
    Invocation,
    Invokers,
    Picked,
    Router,
    RouterRequest,
    RuleKind,
    Session,
    rule_check,
    rule_key,
)
from .dial import Connected, Dial, RaceUntil, connect
from .engine import Compat, Dialect, Engine, Failure, Listener, Phase
from .errors import (
    ArgumentError,
    BywayError,
    CanceledError,
    ConnectError,
    DnsError,
    HandleError,
    HostError,
    NoInvokerError,
    ProxyError,
    RuleError,
    ShutdownError,
    TimeoutError,
    UnsupportedError,
)
from .net import (
    Address,
    Dns,
    DnsRequest,
    Event,
    Filter,
    Hop,
    Proxy,
    ProxyKind,
    ProxySelector,
    Route,
    Selection,
    Selector,
    plan,
)
from .queue import Completion, Queue
from .source import Source

__version__ = version()

__all__ = [
    "Address", "ArgumentError", "Balance", "BywayError", "CanceledError", "Chain", "Choice", "Compat", "Connected", "Dial", "RaceUntil", "connect", "Completion",
    "ConnectError", "Dialect", "Dns", "DnsError", "DnsRequest", "Engine", "Event", "Failure", "Filter",
    "HandleError", "Hop", "HostError", "Invocation", "Invokers", "Listener", "NoInvokerError", "Phase", "Picked",
    "Proxy", "ProxyError", "ProxyKind", "ProxySelector", "Queue", "Route", "Router", "RouterRequest", "RuleError",
    "RuleKind", "Selection", "Selector", "Session", "ShutdownError", "Source", "TimeoutError", "UnsupportedError",
    "find_library", "has_feature", "plan", "rule_check", "rule_key", "status_message", "status_name", "version",
]
