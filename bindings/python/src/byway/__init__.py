"""byway: a route engine. Where do I connect next? Which provider serves this call?"""
from ._library import find_library, has_feature, status_message, status_name, version
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

__version__ = version()

__all__ = [
    "Address", "ArgumentError", "BywayError", "CanceledError", "Compat", "Completion", "ConnectError", "Dialect",
    "Dns", "DnsError", "DnsRequest", "Engine", "Event", "Failure", "Filter", "HandleError", "Hop", "HostError",
    "Listener", "NoInvokerError", "Phase", "Proxy", "ProxyError", "ProxyKind", "ProxySelector", "Queue", "Route",
    "RuleError", "Selection", "Selector", "ShutdownError", "TimeoutError", "UnsupportedError", "find_library",
    "has_feature", "plan", "status_message", "status_name", "version",
]
