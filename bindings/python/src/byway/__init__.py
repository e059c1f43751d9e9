"""byway: a route engine. Where do I connect next? Which provider serves this call?"""
from ._library import find_library, has_feature, status_message, status_name, version, version_number
from .chain import Balance, Chain, Choice, Picked, Report, Session
from .connecting import connect
from .dial import (
    LATER,
    NO_LIMIT,
    Connected,
    Dial,
    DialEvent,
    DialEventKind,
    DialFailure,
    DialFlag,
    Hooks,
    PollFd,
    RaceUntil,
    Resume,
)
from .dns import Dns, DnsRequest
from .engine import Call, Dialect, Engine, FailedRoute, Listener
from .errors import (
    ArgumentError,
    BywayError,
    CanceledError,
    ConnectError,
    DnsError,
    FilteredError,
    HandleError,
    HostError,
    InvokersError,
    NoInvokerError,
    ParseError,
    ProxyError,
    RuleError,
    ScriptLimitError,
    ShutdownError,
    TimeoutError,
    UnsupportedError,
)
from .event import Event, EventKind
from .failure import Failure, Phase, Recovery, Tell
from .handshake import Handshake, Want
from .invocation import Invocation
from .invokers import Invokers, InvokersBuilder
from .ip import Compat, Filter, FirstFamily, host_canonical, host_is_literal, ip_order, ip_text
from .proxy import Proxy, ProxyKind, ProxyRequest, ProxySelector
from .proxy_settings import BypassFlag, BypassStyle, PacFlag, PacOptions, ScriptRequest, SystemSettings, wpad_names
from .queue import Completion, Queue
from .route import Address, Hop, NoCoalescing, Peer, Route, Service
from .router import Router, RouterRequest
from .rule import RuleKind, rule_check, rule_key
from .selector import Selection, Selector, plan
from .source import Discovery, EmptyProtection, Source, SourceEvent, SourceEventKind

__version__ = version()

__all__ = [
    "Address", "ArgumentError", "Balance", "BypassFlag", "BypassStyle", "BywayError", "Call", "CanceledError", "Chain", "Choice", "Compat",
    "Completion", "ConnectError", "Connected", "Dial", "DialEvent", "DialEventKind", "DialFailure", "DialFlag",
    "Dialect", "Discovery", "Dns", "DnsError", "DnsRequest", "EmptyProtection", "Engine", "Event", "EventKind",
    "FailedRoute", "Failure", "Filter", "FilteredError", "FirstFamily", "HandleError", "Handshake", "Hooks", "Hop", "HostError",
    "Invocation", "Invokers", "InvokersBuilder", "InvokersError", "LATER", "Listener", "NO_LIMIT", "NoCoalescing", "NoInvokerError", "PacFlag", "PacOptions", "ParseError",
    "Peer",
    "Phase", "Picked", "PollFd", "Proxy", "ProxyError", "ProxyKind", "ProxyRequest", "ProxySelector", "Queue",
    "RaceUntil", "Recovery", "Report", "Resume", "Route", "Router", "RouterRequest", "RuleError", "RuleKind", "ScriptLimitError",
    "ScriptRequest",
    "Selection", "Selector", "Service", "Session", "ShutdownError", "Source", "SourceEvent", "SourceEventKind", "SystemSettings", "Tell",
    "TimeoutError", "UnsupportedError", "Want", "connect", "find_library", "has_feature", "host_canonical",
    "host_is_literal", "ip_order", "ip_text", "plan", "rule_check", "rule_key", "status_message", "status_name",
    "version", "version_number", "wpad_names",
]
