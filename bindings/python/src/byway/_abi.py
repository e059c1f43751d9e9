"""What include/byway.h says, for ctypes. Made by abi.py; do not edit."""
from ctypes import (
    c_bool,
    c_double,
    c_int16,
    c_int32,
    c_int64,
    c_int8,
    c_size_t,
    c_uint16,
    c_uint32,
    c_uint64,
    c_uint8,
    c_void_p,
    CFUNCTYPE,
    Structure,
)
from typing import Any, Dict, List, Tuple

# Constants
BYWAY_VERSION_MAJOR = 0
BYWAY_VERSION_MINOR = 1
BYWAY_VERSION_PATCH = 0
BYWAY_ABI_VERSION = 0
BYWAY_ERROR_SOURCE_ARGUMENT = 0
BYWAY_ERROR_SOURCE_CALLBACK = 1
BYWAY_ERROR_SOURCE_PARSER = 2
BYWAY_ERROR_SOURCE_SOCKET = 3
BYWAY_ERROR_SOURCE_SCRIPT = 4
BYWAY_ERROR_SOURCE_PANIC = 5
BYWAY_ERROR_SOURCE_ENGINE = 6
BYWAY_FORMAT_JSON = 0
BYWAY_FORMAT_TEXT = 1
BYWAY_QUEUE_LOOP = 1
BYWAY_COMPLETION_SELECTOR = 1
BYWAY_COMPLETION_SOURCE = 3
BYWAY_CALLBACKS_ANY_THREAD = 1
BYWAY_COMMIT_ALWAYS = 0
BYWAY_COMMIT_ON_SUCCESS = 1
BYWAY_ROUTING_NO_FAST_FALLBACK = 1
BYWAY_ROUTING_RESOLVE_LITERALS = 2
BYWAY_ROUTING_EMPTY_IS_DIRECT = 4
BYWAY_ROUTING_DENY_UNRESOLVED_TARGETS = 8
BYWAY_ROUTING_DEDUPLICATE = 16
BYWAY_ON_PROXY_SELECTOR_ERROR_FAIL = 0
BYWAY_ON_PROXY_SELECTOR_ERROR_DIRECT = 1
BYWAY_COMPAT_BYWAY = 0
BYWAY_COMPAT_OKHTTP_5 = 1
BYWAY_COMPAT_OKHTTP_3 = 2
BYWAY_FIRST_FAMILY_V6 = 0
BYWAY_FIRST_FAMILY_V4 = 1
BYWAY_FIRST_FAMILY_FIRST_ADDRESS = 2
BYWAY_PROXY_DIRECT = 0
BYWAY_PROXY_HTTP = 1
BYWAY_PROXY_HTTPS = 2
BYWAY_PROXY_SOCKS4 = 3
BYWAY_PROXY_SOCKS4A = 4
BYWAY_PROXY_SOCKS5 = 5
BYWAY_PROXY_SOCKS5H = 6
BYWAY_BYPASS_BROWSER = 0
BYWAY_BYPASS_BROWSER_SUFFIX = 1
BYWAY_BYPASS_WINDOWS = 2
BYWAY_BYPASS_MACOS = 3
BYWAY_BYPASS_NO_PROXY = 4
BYWAY_BYPASS_REVERSED = 1
BYWAY_BYPASS_PROXY_LOOPBACK = 2
BYWAY_BYPASS_STRICT_DOT = 4
BYWAY_BYPASS_BLANK_SEPARATES = 8
BYWAY_BYPASS_EXCLUDE_SIMPLE = 16
BYWAY_PAC_EX = 1
BYWAY_PAC_SOCKS_IS_5 = 2
BYWAY_PAC_EMPTY_IS_DIRECT = 4
BYWAY_PAC_ASK_LOOPBACK = 8
BYWAY_PAC_BROWSER_CALENDAR = 16
BYWAY_PAC_FIXED_ZONE = 32
BYWAY_ADDRESS_TLS = 1
BYWAY_ADDRESS_DIRECT = 2
BYWAY_ROUTE_POSTPONED = 1
BYWAY_ROUTE_REQUIRES_TUNNEL = 2
BYWAY_ROUTE_TARGET_IS_NAME = 4
BYWAY_ROUTE_FROM_SELECTOR = 8
BYWAY_ROUTE_TARGET_NOT_CHECKED = 16
BYWAY_ROUTE_HAS_SERVICE = 32
BYWAY_PEER_MULTIPLEXED = 1
BYWAY_PEER_DEFAULT_VERIFICATION = 2
BYWAY_PEER_CERTIFICATE_COVERS_HOST = 4
BYWAY_PEER_PINS_HOLD = 8
BYWAY_PEER_REFUSED_BEFORE = 16
BYWAY_NO_COALESCING_OTHER_ADDRESS = 1
BYWAY_NO_COALESCING_NOT_MULTIPLEXED = 2
BYWAY_NO_COALESCING_REFUSED_BEFORE = 3
BYWAY_NO_COALESCING_NO_SHARED_IP = 4
BYWAY_NO_COALESCING_NOT_VERIFIED = 5
BYWAY_SELECTOR_EARLY = 1
BYWAY_DIAL_NONE = 4294967295
BYWAY_DIAL_ACROSS_SELECTIONS = 1
BYWAY_DIAL_NEXT_ON_REFUSAL = 2
BYWAY_DIAL_EVENTS = 4
BYWAY_DIAL_SOCKS_STRICT = 8
BYWAY_DIAL_SOCKS_OPTIMISTIC = 16
BYWAY_DIAL_SOCKS_REQUIRE_AUTH = 32
BYWAY_DIAL_STRICT_200 = 64
BYWAY_DIAL_REJECT_EARLY_DATA = 128
BYWAY_DIAL_NO_PREEMPTIVE_AUTH = 256
BYWAY_DIAL_ASK_FIRST = 512
BYWAY_DIAL_REPEAT_CREDENTIALS = 1024
BYWAY_DIAL_BLOCKING_SOCKET = 2048
BYWAY_DIAL_NO_NODELAY = 4096
BYWAY_DIAL_MPTCP = 8192
BYWAY_DIAL_FAST_OPEN = 16384
BYWAY_DIAL_KEEP_DUPLICATES = 32768
BYWAY_CAP_DROP_OLDEST = 0
BYWAY_CAP_WAIT = 1
BYWAY_ON_FAILURE_WHEN_IDLE = 0
BYWAY_ON_FAILURE_IMMEDIATE = 1
BYWAY_ON_FAILURE_LATEST = 2
BYWAY_RACE_UNTIL_TCP = 0
BYWAY_RACE_UNTIL_READY = 1
BYWAY_RACE_UNTIL_HOST = 2
BYWAY_CONNECTED_NEEDS_PROXY_TLS = 1
BYWAY_CONNECTED_PROVISIONAL = 2
BYWAY_DIAL_EVENT_START = 1
BYWAY_DIAL_EVENT_HANDSHAKE = 2
BYWAY_DIAL_EVENT_FD_CLOSING = 3
BYWAY_DIAL_EVENT_FAILED = 4
BYWAY_DIAL_EVENT_CANCELED = 5
BYWAY_DIAL_EVENT_CREDENTIALS = 6
BYWAY_DIAL_EVENT_OFFER = 7
BYWAY_DIAL_EVENT_WON = 8
BYWAY_RESUME_TLS = 0
BYWAY_RESUME_CERTIFICATE = 1
BYWAY_RESUME_CLOSED = 2
BYWAY_HANDSHAKE_WRITE = 1
BYWAY_HANDSHAKE_READ = 2
BYWAY_HANDSHAKE_PEEK = 3
BYWAY_HANDSHAKE_CREDENTIALS = 4
BYWAY_HANDSHAKE_RECONNECT = 5
BYWAY_HANDSHAKE_DONE = 6
BYWAY_HANDSHAKE_FAILED = 7
BYWAY_EVENT_PROXY_SELECT_START = 0
BYWAY_EVENT_PROXY_SELECT_END = 1
BYWAY_EVENT_DNS_START = 2
BYWAY_EVENT_DNS_END = 3
BYWAY_EVENT_CONNECT_START = 4
BYWAY_EVENT_CONNECT_END = 5
BYWAY_EVENT_CONNECT_FAILED = 6
BYWAY_EVENT_CONNECT_CANCELED = 7
BYWAY_EVENT_ROUTE_POSTPONED = 8
BYWAY_EVENT_ROUTE_FILTERED = 9
BYWAY_EVENT_PROXY_MARKED_BAD = 10
BYWAY_EVENT_PROXY_REINSTATED = 11
BYWAY_EVENT_RULE = 32
BYWAY_EVENT_CHAIN_KEYS = 33
BYWAY_EVENT_RULE_FAILED = 34
BYWAY_FAILURE_IO = 0
BYWAY_FAILURE_REFUSED = 1
BYWAY_FAILURE_UNREACHABLE = 2
BYWAY_FAILURE_TIMEOUT = 3
BYWAY_FAILURE_RESET = 4
BYWAY_FAILURE_LOCAL = 5
BYWAY_FAILURE_CANCELED = 6
BYWAY_FAILURE_INTERRUPTED = 7
BYWAY_FAILURE_UNKNOWN_HOST = 8
BYWAY_FAILURE_PROTOCOL = 9
BYWAY_FAILURE_TLS_HANDSHAKE = 10
BYWAY_FAILURE_TLS_CERTIFICATE = 11
BYWAY_FAILURE_TLS_PEER_UNVERIFIED = 12
BYWAY_FAILURE_TLS = 13
BYWAY_FAILURE_CONNECTION_SHUTDOWN = 14
BYWAY_FAILURE_STREAM_REFUSED = 15
BYWAY_FAILURE_STREAM_CANCELED = 16
BYWAY_FAILURE_STREAM_RESET = 17
BYWAY_FAILURE_REQUEST_BODY = 18
BYWAY_FAILURE_PROXY_REFUSED = 19
BYWAY_FAILURE_PROXY_AUTH = 20
BYWAY_FAILURE_PROXY_PROTOCOL = 21
BYWAY_FAILURE_AUTH_WITHOUT_PROXY = 22
BYWAY_FAILURE_SELF_CONNECT = 23
BYWAY_FAILURE_INVALID_PORT = 24
BYWAY_FAILURE_FILTERED = 25
BYWAY_PHASE_DNS = 0
BYWAY_PHASE_TCP = 1
BYWAY_PHASE_TUNNEL = 2
BYWAY_PHASE_TLS = 3
BYWAY_PHASE_EXCHANGE = 4
BYWAY_CALL_RETRY_ENABLED = 1
BYWAY_CALL_ONE_SHOT = 2
BYWAY_CALL_SENT = 4
BYWAY_CALL_EXCHANGE_FAILED = 8
BYWAY_CALL_MORE_ROUTES = 16
BYWAY_RECOVER_RETRY = 0
BYWAY_RECOVER_DISABLED = 1
BYWAY_RECOVER_NOT_REPEATABLE = 2
BYWAY_RECOVER_FATAL = 3
BYWAY_RECOVER_NO_MORE_ROUTES = 4
BYWAY_EXCHANGE_MULTIPLEXED = 1
BYWAY_EXCHANGE_CALL_CANCELED = 2
BYWAY_EXCHANGE_PROXIED = 4
BYWAY_TELL_FAILED_EVENT = 1
BYWAY_TELL_CANCELED_EVENT = 2
BYWAY_TELL_PROXY_SELECTOR = 4
BYWAY_TELL_DATABASE = 8
BYWAY_TELL_NEXT_ROUTE = 16
BYWAY_TELL_NO_NEW_EXCHANGES = 32
BYWAY_TELL_ROUTE_FAILURE = 64
BYWAY_INVOKERS_KEEP_URLS = 1
BYWAY_DIALECT_BYWAY = 0
BYWAY_DIALECT_DUBBO_3 = 1
BYWAY_DIALECT_DUBBO_2_7 = 2
BYWAY_DIALECT_DUBBO_GO = 3
BYWAY_RULE_CONDITION = 0
BYWAY_RULE_TAG = 1
BYWAY_RULE_AFFINITY = 2
BYWAY_RULE_MESH = 3
BYWAY_RULE_SCRIPT = 4
BYWAY_ROUTER_EVERY_CHAIN = 1
BYWAY_ROUTER_BY_NAME = 2
BYWAY_CHAIN_RUN_ON = 1
BYWAY_CHAIN_FAIL_FAST = 2
BYWAY_CHAIN_NO_MEMO = 4
BYWAY_CHAIN_KEEP_RECENT = 8
BYWAY_BALANCE_RANDOM = 1
BYWAY_BALANCE_ROUND_ROBIN = 2
BYWAY_BALANCE_LEAST_ACTIVE = 3
BYWAY_BALANCE_SHORTEST_RESPONSE = 4
BYWAY_BALANCE_CONSISTENT_HASH = 5
BYWAY_BALANCE_P2C = 6
BYWAY_PICK_STICKY = 1
BYWAY_PICK_NOT_STICKY = 2
BYWAY_EMPTY_PROTECTION_VANISHED = 0
BYWAY_EMPTY_PROTECTION_ON = 1
BYWAY_EMPTY_PROTECTION_OFF = 2
BYWAY_DISCOVERY_AUTO = 0
BYWAY_DISCOVERY_INTERFACE = 1
BYWAY_DISCOVERY_APPLICATION = 2
BYWAY_BIND_RULES_ONLY = 1
BYWAY_BIND_KEEP_LIST = 2
BYWAY_SOURCE_EVENT_READY = 0
BYWAY_SOURCE_EVENT_CONNECTED = 1
BYWAY_SOURCE_EVENT_DISCONNECTED = 2
BYWAY_SOURCE_EVENT_CHANGED = 3
BYWAY_SOURCE_EVENT_REFUSED = 4
BYWAY_SOURCE_EVENT_KEPT = 5
BYWAY_OK = 0
BYWAY_DONE = 1
BYWAY_PENDING = 2
BYWAY_PASS = 3
BYWAY_E_ARGUMENT = -100
BYWAY_E_NULL = -101
BYWAY_E_BUSY = -102
BYWAY_E_BAD_HANDLE = -103
BYWAY_E_REENTRANT = -104
BYWAY_E_CANCELED = -105
BYWAY_E_TIMEOUT = -106
BYWAY_E_UTF8 = -107
BYWAY_E_ENUM = -108
BYWAY_E_STRUCT_SIZE = -109
BYWAY_E_STATE = -110
BYWAY_E_SHUTDOWN = -111
BYWAY_E_FORKED = -112
BYWAY_E_WOULD_DEADLOCK = -113
BYWAY_E_UNSUPPORTED = -114
BYWAY_E_POISONED = -115
BYWAY_E_LIMIT = -116
BYWAY_E_ABANDONED = -117
BYWAY_E_NOT_FOUND = -118
BYWAY_E_DUPLICATE = -119
BYWAY_E_INVALID_HOST = -200
BYWAY_E_INVALID_PORT = -201
BYWAY_E_INVALID_PROXY = -202
BYWAY_E_PROXY_SELECTOR = -203
BYWAY_E_EMPTY_ANSWER = -204
BYWAY_E_NO_ROUTE = -205
BYWAY_E_FILTERED = -206
BYWAY_E_INVALID_IP = -207
BYWAY_E_INVALID_URL = -208
BYWAY_E_PAC = -209
BYWAY_E_UNKNOWN_HOST = -300
BYWAY_E_DNS = -301
BYWAY_E_RULE = -400
BYWAY_E_SYNTAX = -401
BYWAY_E_NO_INVOKER = -402
BYWAY_E_INVOKERS = -403
BYWAY_E_SCRIPT = -404
BYWAY_E_SOURCE = -405
BYWAY_E_REFUSED = -500
BYWAY_E_UNREACHABLE = -501
BYWAY_E_RESET = -502
BYWAY_E_LOCAL = -503
BYWAY_E_CONNECT = -504
BYWAY_E_PROXY_REFUSED = -505
BYWAY_E_PROXY_AUTH = -506
BYWAY_E_PROXY_PROTOCOL = -507
BYWAY_E_CLOSED = -508
BYWAY_E_SELF_CONNECT = -509
BYWAY_E_NEEDS_PROXY_TLS = -510
BYWAY_E_OS = -511
BYWAY_E_HOST = -900
BYWAY_E_PANIC = -901
BYWAY_E_RESOURCES = -902
BYWAY_NUL = c_size_t(-1).value

# Callback types
byway_notify_callbacks_notify = CFUNCTYPE(None, c_void_p)
byway_engine_options_monotonic_ns = CFUNCTYPE(c_uint64, c_void_p)
byway_engine_options_wall_ms = CFUNCTYPE(c_int64, c_void_p)
byway_engine_options_random = CFUNCTYPE(c_uint64, c_void_p)
byway_dns_callbacks_lookup = CFUNCTYPE(c_int32, c_void_p, c_void_p, c_void_p, c_size_t, c_void_p)
byway_dns_callbacks_on_cancel = CFUNCTYPE(None, c_void_p, c_uint64)
byway_proxy_selector_callbacks_select = CFUNCTYPE(c_int32, c_void_p, c_void_p, c_void_p, c_size_t, c_void_p)
byway_proxy_selector_callbacks_connect_failed = CFUNCTYPE(None, c_void_p, c_void_p, c_size_t, c_void_p, c_int32, c_int32, c_void_p)
byway_proxy_selector_callbacks_on_cancel = CFUNCTYPE(None, c_void_p, c_uint64)
byway_pac_callbacks_fetch = CFUNCTYPE(c_int32, c_void_p, c_void_p, c_void_p, c_size_t, c_void_p)
byway_dial_callbacks_open_socket = CFUNCTYPE(c_int32, c_void_p, c_int32, c_int32, c_void_p, c_void_p, c_void_p)
byway_dial_callbacks_configure = CFUNCTYPE(c_int32, c_void_p, c_int32, c_void_p, c_void_p)
byway_dial_callbacks_close_socket = CFUNCTYPE(c_int32, c_void_p, c_int32, c_void_p)
byway_dial_callbacks_proxy_auth = CFUNCTYPE(c_int32, c_void_p, c_void_p, c_uint32, c_void_p, c_void_p, c_size_t, c_void_p)
byway_listener_callbacks_on_event = CFUNCTYPE(None, c_void_p, c_void_p)
byway_router_callbacks_route = CFUNCTYPE(c_int32, c_void_p, c_void_p, c_void_p)
byway_source_callbacks_on_event = CFUNCTYPE(None, c_void_p, c_void_p)
byway_destroy = CFUNCTYPE(None, c_void_p)

# Structs

class byway_str(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("len", c_size_t),
    ]

class byway_queue_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("flags", c_uint32),
        ("capacity", c_uint32),
    ]

class byway_notify_callbacks(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("user_data", c_void_p),
        ("destroy", byway_destroy),
        ("notify", byway_notify_callbacks_notify),
    ]

class byway_completion(Structure):
    _fields_ = [
        ("tag", c_uint64),
        ("id", c_uint64),
        ("kind", c_int32),
        ("status", c_int32),
    ]

class byway_engine_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("queue", c_void_p),
        ("seed", c_uint64),
        ("flags", c_uint32),
        ("compat", c_int32),
        ("default_timeout_ms", c_int64),
        ("postpone_for_ms", c_int64),
        ("postpone_at_most_ms", c_int64),
        ("database_capacity", c_uint32),
        ("commit_failures", c_int32),
        ("dialect", c_int32),
        ("routing_flags", c_uint32),
        ("on_proxy_selector_error", c_int32),
        ("dns_cache_ms", c_uint32),
        ("target_filter", c_void_p),
        ("proxy_filter", c_void_p),
        ("source_data", c_void_p),
        ("monotonic_ns", byway_engine_options_monotonic_ns),
        ("wall_ms", byway_engine_options_wall_ms),
        ("random", byway_engine_options_random),
        ("bad_proxy_ms", c_int64),
    ]

class byway_ip(Structure):
    _fields_ = [
        ("bytes", c_uint8 * 16),
        ("scope_id", c_uint32),
        ("family", c_uint8),
        ("reserved", c_uint8 * 3),
    ]

class byway_dns_callbacks(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("user_data", c_void_p),
        ("destroy", byway_destroy),
        ("lookup", byway_dns_callbacks_lookup),
        ("on_cancel", byway_dns_callbacks_on_cancel),
    ]

class byway_service_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("target", byway_str),
        ("priority", c_uint16),
        ("port", c_uint16),
        ("reserved", c_uint32),
        ("alpn", c_void_p),
        ("alpn_len", c_size_t),
        ("ech", byway_str),
        ("hints", c_void_p),
        ("hints_len", c_size_t),
    ]

class byway_proxy_selector_callbacks(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("user_data", c_void_p),
        ("destroy", byway_destroy),
        ("select", byway_proxy_selector_callbacks_select),
        ("connect_failed", byway_proxy_selector_callbacks_connect_failed),
        ("on_cancel", byway_proxy_selector_callbacks_on_cancel),
    ]

class byway_bypass_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("list", byway_str),
        ("style", c_int32),
        ("flags", c_uint32),
        ("dialect", byway_str),
    ]

class byway_pac_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("url", byway_str),
        ("source", byway_str),
        ("dns", c_void_p),
        ("my_addresses", c_void_p),
        ("my_addresses_len", c_size_t),
        ("refresh_ms", c_uint64),
        ("memory_limit", c_uint64),
        ("time_limit_ms", c_uint32),
        ("names_limit", c_uint32),
        ("utc_offset_minutes", c_int32),
        ("flags", c_uint32),
    ]

class byway_pac_callbacks(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("user_data", c_void_p),
        ("destroy", byway_destroy),
        ("fetch", byway_pac_callbacks_fetch),
    ]

class byway_system_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("names", c_void_p),
        ("values", c_void_p),
        ("n", c_size_t),
        ("desktop", byway_str),
        ("home", byway_str),
        ("config_home", byway_str),
        ("root", byway_str),
        ("dconf", byway_str),
        ("keyfile", byway_str),
        ("kioslaverc", byway_str),
        ("sysconfig", byway_str),
        ("pac", c_void_p),
    ]

class byway_address_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("scheme", byway_str),
        ("host", byway_str),
        ("port", c_int32),
        ("flags", c_uint32),
        ("proxy", c_void_p),
        ("proxy_selector", c_void_p),
        ("dns", c_void_p),
        ("protocols", c_void_p),
        ("protocols_len", c_size_t),
        ("tls_identity", c_uint64),
        ("tls_identity_bytes", byway_str),
        ("authenticator", c_uint64),
    ]

class byway_peer(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("flags", c_uint32),
        ("reserved", c_uint32),
    ]

class byway_route_record(Structure):
    _fields_ = [
        ("hop_ip", byway_ip),
        ("target_ip", byway_ip),
        ("hop_port", c_uint16),
        ("target_port", c_uint16),
        ("proxy_kind", c_int32),
        ("flags", c_uint32),
        ("reserved", c_uint32),
        ("host", byway_str),
        ("proxy_host", byway_str),
    ]

class byway_selector_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("tag", c_uint64),
        ("queue", c_void_p),
        ("flags", c_uint32),
        ("reserved", c_uint32),
    ]

class byway_header(Structure):
    _fields_ = [
        ("name", byway_str),
        ("value", byway_str),
    ]

class byway_dial_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("tag", c_uint64),
        ("flags", c_uint32),
        ("attempt_delay_ms", c_uint32),
        ("resolution_delay_ms", c_uint32),
        ("attempt_timeout_ms", c_uint32),
        ("ready_timeout_ms", c_uint32),
        ("overall_timeout_ms", c_uint32),
        ("ready_extend_ms", c_uint32),
        ("max_in_flight", c_uint32),
        ("cap_policy", c_int32),
        ("on_failure", c_int32),
        ("race_until", c_int32),
        ("first_family", c_int32),
        ("first_family_count", c_uint32),
        ("max_tunnel_attempts", c_uint32),
        ("max_line", c_uint32),
        ("max_header", c_uint32),
        ("max_drain", c_uint32),
        ("keepalive_s", c_uint32),
        ("user_timeout_ms", c_uint32),
        ("mark", c_uint32),
        ("source_v4", byway_str),
        ("source_v6", byway_str),
        ("device", byway_str),
        ("user_agent", byway_str),
        ("headers", c_void_p),
        ("header_count", c_size_t),
    ]

class byway_dial_callbacks(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("user_data", c_void_p),
        ("destroy", byway_destroy),
        ("open_socket", byway_dial_callbacks_open_socket),
        ("configure", byway_dial_callbacks_configure),
        ("close_socket", byway_dial_callbacks_close_socket),
        ("proxy_auth", byway_dial_callbacks_proxy_auth),
    ]

class byway_connected(Structure):
    _fields_ = [
        ("fd", c_int32),
        ("attempt", c_uint32),
        ("route", c_void_p),
        ("flags", c_uint32),
        ("reserved", c_uint32),
    ]

class byway_pollfd(Structure):
    _fields_ = [
        ("id", c_uint32),
        ("fd", c_int32),
        ("events", c_int16),
        ("revents", c_int16),
    ]

class byway_dial_event(Structure):
    _fields_ = [
        ("kind", c_int32),
        ("attempt", c_uint32),
        ("fd", c_int32),
        ("status", c_int32),
        ("at_ms", c_int64),
    ]

class byway_dial_failure(Structure):
    _fields_ = [
        ("attempt", c_uint32),
        ("status", c_int32),
        ("os_errno", c_int32),
        ("number", c_int32),
        ("start_ms", c_int64),
        ("end_ms", c_int64),
        ("name", byway_str),
    ]

class byway_event(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("tag", c_uint64),
        ("selector_id", c_uint64),
        ("time_ns", c_uint64),
        ("kind", c_int32),
        ("status", c_int32),
        ("subject", byway_str),
        ("route", c_void_p),
        ("proxies", c_void_p),
        ("proxies_len", c_size_t),
        ("ips", c_void_p),
        ("ips_len", c_size_t),
        ("error", c_void_p),
    ]

class byway_listener_callbacks(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("user_data", c_void_p),
        ("destroy", byway_destroy),
        ("mask", c_uint64),
        ("on_event", byway_listener_callbacks_on_event),
        ("queue", c_void_p),
    ]

class byway_failed_route(Structure):
    _fields_ = [
        ("hop_ip", byway_ip),
        ("hop_port", c_uint16),
        ("target_port", c_uint16),
        ("proxy_kind", c_int32),
        ("failure", c_int32),
        ("os_errno", c_int32),
        ("periods", c_uint32),
        ("reserved", c_uint32),
        ("age_ms", c_uint64),
        ("remaining_ms", c_int64),
    ]

class byway_engine_statistics(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("postponed", c_uint64),
        ("database_records", c_uint64),
        ("database_pending", c_uint64),
        ("network_generation", c_uint64),
        ("waiting", c_uint64),
    ]

class byway_failed_call(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("failure", c_int32),
        ("phase", c_int32),
        ("flags", c_uint32),
        ("reserved", c_uint32),
    ]

class byway_failed_exchange(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("successes", c_uint64),
        ("failure", c_int32),
        ("refused_before", c_uint32),
        ("flags", c_uint32),
        ("reserved", c_uint32),
    ]

class byway_invokers_callbacks(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("user_data", c_void_p),
        ("destroy", byway_destroy),
    ]

class byway_router_request(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("tags", c_void_p),
        ("count", c_size_t),
        ("keep", c_void_p),
        ("method", byway_str),
        ("context", c_void_p),
        ("explaining", c_int32),
        ("reserved", c_int32),
    ]

class byway_router_callbacks(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("user_data", c_void_p),
        ("destroy", byway_destroy),
        ("route", byway_router_callbacks_route),
    ]

class byway_chain_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("dialect", c_int32),
        ("flags", c_uint32),
        ("memo_bytes", c_uint64),
    ]

class byway_pick_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("balance", c_int32),
        ("flags", c_uint32),
        ("available", c_void_p),
        ("available_words", c_size_t),
        ("available_list", c_uint64),
        ("exclude", c_void_p),
        ("exclude_count", c_size_t),
    ]

class byway_call_result(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("ok", c_int32),
        ("has_report", c_int32),
        ("latency_ns", c_int64),
        ("report_time_ms", c_int64),
        ("report_load", c_double),
        ("report_latency_ms", c_double),
    ]

class byway_picked(Structure):
    _fields_ = [
        ("tag", c_uint64),
        ("ticket", c_uint64),
        ("row", c_uint64),
        ("available", c_int32),
        ("reserved", c_int32),
    ]

class byway_zookeeper_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("username", byway_str),
        ("password", byway_str),
        ("root", byway_str),
        ("session_timeout_ms", c_int64),
        ("connect_timeout_ms", c_int64),
        ("retry_longest_ms", c_int64),
    ]

class byway_source_state(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("since_ms", c_int64),
        ("age_ms", c_int64),
        ("generation", c_uint64),
        ("keys", c_uint64),
        ("errors", c_uint64),
        ("connected", c_int32),
        ("reserved", c_int32),
    ]

class byway_source_change(Structure):
    _fields_ = [
        ("key", byway_str),
        ("text", byway_str),
        ("remove", c_int32),
        ("reserved", c_int32),
    ]

class byway_bind_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("flags", c_uint32),
        ("empty_protection", c_int32),
        ("discovery", c_int32),
        ("reserved", c_int32),
        ("queue", c_void_p),
        ("tag", c_uint64),
    ]

class byway_source_event(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("worlds", c_uint64),
        ("subject", byway_str),
        ("error", c_void_p),
        ("kind", c_int32),
        ("status", c_int32),
    ]

class byway_source_callbacks(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("user_data", c_void_p),
        ("destroy", byway_destroy),
        ("on_event", byway_source_callbacks_on_event),
    ]


STRUCTS: List[Any] = [
    byway_str,
    byway_queue_options,
    byway_notify_callbacks,
    byway_completion,
    byway_engine_options,
    byway_ip,
    byway_dns_callbacks,
    byway_service_options,
    byway_proxy_selector_callbacks,
    byway_bypass_options,
    byway_pac_options,
    byway_pac_callbacks,
    byway_system_options,
    byway_address_options,
    byway_peer,
    byway_route_record,
    byway_selector_options,
    byway_header,
    byway_dial_options,
    byway_dial_callbacks,
    byway_connected,
    byway_pollfd,
    byway_dial_event,
    byway_dial_failure,
    byway_event,
    byway_listener_callbacks,
    byway_failed_route,
    byway_engine_statistics,
    byway_failed_call,
    byway_failed_exchange,
    byway_invokers_callbacks,
    byway_router_request,
    byway_router_callbacks,
    byway_chain_options,
    byway_pick_options,
    byway_call_result,
    byway_picked,
    byway_zookeeper_options,
    byway_source_state,
    byway_source_change,
    byway_bind_options,
    byway_source_event,
    byway_source_callbacks,
]

# Functions: result, arguments
FUNCTIONS: Dict[str, Tuple[Any, List[Any]]] = {
    "byway_abi_version": (c_uint32, []),
    "byway_version": (c_void_p, []),
    "byway_version_number": (c_uint32, []),
    "byway_has_feature": (c_int32, [c_void_p, c_size_t]),
    "byway_status_name": (c_void_p, [c_int32]),
    "byway_status_message": (c_void_p, [c_int32]),
    "byway_layout": (c_int32, [c_uint32, c_void_p, c_void_p, c_void_p, c_size_t, c_void_p]),
    "byway_error_code": (c_int32, [c_void_p]),
    "byway_error_source": (c_int32, [c_void_p]),
    "byway_error_message": (None, [c_void_p, c_void_p]),
    "byway_error_subject": (None, [c_void_p, c_void_p]),
    "byway_error_offset": (c_int64, [c_void_p]),
    "byway_error_line": (c_uint32, [c_void_p]),
    "byway_error_column": (c_uint32, [c_void_p]),
    "byway_error_os_errno": (c_int32, [c_void_p]),
    "byway_error_host_code": (c_int64, [c_void_p]),
    "byway_error_cause_count": (c_size_t, [c_void_p]),
    "byway_error_cause_at": (c_void_p, [c_void_p, c_size_t]),
    "byway_error_free": (None, [c_void_p]),
    "byway_text_str": (None, [c_void_p, c_void_p]),
    "byway_text_free": (None, [c_void_p]),
    "byway_call_engine": (c_void_p, [c_void_p]),
    "byway_call_tag": (c_uint64, [c_void_p]),
    "byway_call_id": (c_uint64, [c_void_p]),
    "byway_call_deadline_ms": (c_int64, [c_void_p]),
    "byway_queue_options_init": (None, [c_void_p]),
    "byway_queue_new": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_queue_retain": (c_void_p, [c_void_p]),
    "byway_queue_release": (None, [c_void_p]),
    "byway_queue_fd": (c_int32, [c_void_p, c_void_p]),
    "byway_queue_set_notify": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_queue_deadline": (c_int32, [c_void_p, c_void_p]),
    "byway_queue_poll": (c_int32, [c_void_p, c_int64, c_void_p, c_size_t, c_size_t, c_void_p, c_void_p]),
    "byway_queue_wakeup": (c_int32, [c_void_p]),
    "byway_queue_lost": (c_uint64, [c_void_p]),
    "byway_engine_options_init": (None, [c_void_p]),
    "byway_engine_new": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_engine_retain": (c_void_p, [c_void_p]),
    "byway_engine_release": (None, [c_void_p]),
    "byway_engine_shutdown": (c_int32, [c_void_p, c_int64, c_void_p]),
    "byway_engine_queue": (c_void_p, [c_void_p]),
    "byway_host_canonical": (c_int32, [c_int32, c_void_p, c_size_t, c_void_p, c_void_p]),
    "byway_host_is_literal": (c_int32, [c_int32, c_void_p, c_size_t]),
    "byway_ip_parse": (c_int32, [c_void_p, c_size_t, c_void_p, c_void_p]),
    "byway_ip_text": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_ip_order": (c_int32, [c_void_p, c_size_t, c_int32, c_uint32, c_void_p]),
    "byway_filter_new": (c_int32, [c_void_p, c_size_t, c_void_p, c_void_p]),
    "byway_filter_new_public": (c_int32, [c_void_p, c_void_p]),
    "byway_filter_check": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_filter_retain": (c_void_p, [c_void_p]),
    "byway_filter_release": (None, [c_void_p]),
    "byway_proxy_new": (c_int32, [c_int32, c_void_p, c_size_t, c_int32, c_void_p, c_void_p]),
    "byway_proxy_new_resolved": (c_int32, [c_int32, c_void_p, c_size_t, c_void_p, c_int32, c_void_p, c_void_p]),
    "byway_proxy_with_credentials": (c_int32, [c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p]),
    "byway_proxy_kind": (c_int32, [c_void_p]),
    "byway_proxy_host": (c_int32, [c_void_p, c_void_p]),
    "byway_proxy_ip": (c_int32, [c_void_p, c_void_p]),
    "byway_proxy_port": (c_uint16, [c_void_p]),
    "byway_proxy_equals": (c_int32, [c_void_p, c_void_p]),
    "byway_proxy_text": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_proxy_retain": (c_void_p, [c_void_p]),
    "byway_proxy_release": (None, [c_void_p]),
    "byway_dns_new": (c_int32, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "byway_dns_new_system": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_dns_new_hosts": (c_int32, [c_void_p, c_void_p, c_size_t, c_void_p, c_void_p]),
    "byway_dns_retain": (c_void_p, [c_void_p]),
    "byway_dns_release": (None, [c_void_p]),
    "byway_dns_request_id": (c_uint64, [c_void_p]),
    "byway_dns_request_is_canceled": (c_int32, [c_void_p]),
    "byway_dns_request_add": (c_int32, [c_void_p, c_void_p, c_size_t]),
    "byway_dns_request_add_text": (c_int32, [c_void_p, c_void_p, c_size_t, c_void_p]),
    "byway_dns_request_add_service": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_dns_request_family_done": (c_int32, [c_void_p, c_int32]),
    "byway_dns_request_finish": (c_int32, [c_void_p]),
    "byway_dns_request_fail": (c_int32, [c_void_p, c_int32, c_int64, c_void_p, c_size_t]),
    "byway_dns_request_retain": (c_void_p, [c_void_p]),
    "byway_dns_request_release": (None, [c_void_p]),
    "byway_proxy_selector_new": (c_int32, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "byway_proxy_selector_new_direct": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_proxy_selector_new_fixed": (c_int32, [c_void_p, c_void_p, c_size_t, c_void_p, c_void_p]),
    "byway_proxy_selector_retain": (c_void_p, [c_void_p]),
    "byway_proxy_selector_release": (None, [c_void_p]),
    "byway_proxy_request_id": (c_uint64, [c_void_p]),
    "byway_proxy_request_is_canceled": (c_int32, [c_void_p]),
    "byway_proxy_request_add": (c_int32, [c_void_p, c_int32, c_void_p, c_size_t, c_int32, c_void_p]),
    "byway_proxy_request_add_proxy": (c_int32, [c_void_p, c_void_p]),
    "byway_proxy_request_add_direct": (c_int32, [c_void_p]),
    "byway_proxy_request_finish": (c_int32, [c_void_p]),
    "byway_proxy_request_fail": (c_int32, [c_void_p, c_int32, c_int64, c_void_p, c_size_t]),
    "byway_proxy_request_retain": (c_void_p, [c_void_p]),
    "byway_proxy_request_release": (None, [c_void_p]),
    "byway_proxy_selector_new_environment": (c_int32, [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p]),
    "byway_proxy_selector_new_properties": (c_int32, [c_void_p, c_void_p, c_void_p, c_size_t, c_int32, c_void_p, c_void_p]),
    "byway_proxy_selector_new_windows": (c_int32, [c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p]),
    "byway_bypass_options_init": (None, [c_void_p]),
    "byway_proxy_selector_new_bypass": (c_int32, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
    "byway_proxy_selector_new_per_scheme": (c_int32, [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_void_p]),
    "byway_proxy_selector_new_rules": (c_int32, [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_void_p]),
    "byway_proxy_selector_diagnostics": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_pac_options_init": (None, [c_void_p]),
    "byway_proxy_selector_new_script": (c_int32, [c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p]),
    "byway_proxy_selector_new_pac": (c_int32, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
    "byway_proxy_selector_set_script": (c_int32, [c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p]),
    "byway_proxy_selector_script_failed": (c_int32, [c_void_p, c_int32, c_int64, c_void_p, c_size_t]),
    "byway_proxy_selector_script_url": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_proxy_selector_refresh": (c_int32, [c_void_p, c_void_p]),
    "byway_system_options_init": (None, [c_void_p]),
    "byway_proxy_selector_new_system": (c_int32, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
    "byway_proxy_selector_set_system": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_engine_proxies_for_url": (c_int32, [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_int64, c_void_p, c_size_t, c_void_p, c_void_p, c_void_p]),
    "byway_wpad_names": (c_int32, [c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p]),
    "byway_engine_bad_proxies": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_engine_mark_proxy": (c_int32, [c_void_p, c_void_p, c_int32, c_int32, c_void_p]),
    "byway_engine_forget_bad_proxies": (c_int32, [c_void_p, c_void_p]),
    "byway_address_options_init": (None, [c_void_p]),
    "byway_address_new": (c_int32, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "byway_address_host": (c_int32, [c_void_p, c_void_p]),
    "byway_address_uri": (c_int32, [c_void_p, c_void_p]),
    "byway_address_port": (c_uint16, [c_void_p]),
    "byway_address_equals": (c_int32, [c_void_p, c_void_p]),
    "byway_address_equal_non_host": (c_int32, [c_void_p, c_void_p]),
    "byway_address_hash": (c_uint64, [c_void_p]),
    "byway_address_text": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_address_retain": (c_void_p, [c_void_p]),
    "byway_address_release": (None, [c_void_p]),
    "byway_route_new": (c_int32, [c_void_p, c_void_p, c_void_p, c_uint16, c_void_p, c_void_p]),
    "byway_route_sockaddr": (c_int32, [c_void_p, c_void_p, c_size_t, c_void_p]),
    "byway_route_hop": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_route_target": (c_int32, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "byway_route_socket_address": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_route_proxy": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_route_proxy_kind": (c_int32, [c_void_p]),
    "byway_route_requires_tunnel": (c_int32, [c_void_p]),
    "byway_route_flags": (c_uint32, [c_void_p]),
    "byway_route_service": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_route_service_alpn_at": (c_int32, [c_void_p, c_size_t, c_void_p]),
    "byway_route_service_hints": (c_int32, [c_void_p, c_void_p, c_size_t, c_size_t, c_void_p]),
    "byway_route_equals": (c_int32, [c_void_p, c_void_p]),
    "byway_route_hash": (c_uint64, [c_void_p]),
    "byway_route_text": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_route_coalesces": (c_int32, [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_void_p]),
    "byway_route_retain": (c_void_p, [c_void_p]),
    "byway_route_release": (None, [c_void_p]),
    "byway_selection_len": (c_size_t, [c_void_p]),
    "byway_selection_at": (c_void_p, [c_void_p, c_size_t]),
    "byway_selection_next": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_selection_more": (c_int32, [c_void_p]),
    "byway_selection_records": (c_int32, [c_void_p, c_void_p, c_size_t, c_size_t, c_void_p]),
    "byway_selection_free": (None, [c_void_p]),
    "byway_selector_options_init": (None, [c_void_p]),
    "byway_selector_new": (c_int32, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
    "byway_selector_next": (c_int32, [c_void_p, c_int64, c_void_p, c_void_p]),
    "byway_selector_poll_next": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_selector_plan": (c_int32, [c_void_p, c_void_p, c_void_p, c_void_p, c_size_t, c_size_t, c_void_p, c_void_p]),
    "byway_selector_may_have_next": (c_int32, [c_void_p]),
    "byway_selector_cancel": (c_int32, [c_void_p]),
    "byway_selector_explain": (c_int32, [c_void_p, c_int32, c_void_p, c_void_p]),
    "byway_selector_id": (c_uint64, [c_void_p]),
    "byway_selector_free": (None, [c_void_p]),
    "byway_dial_options_init": (None, [c_void_p]),
    "byway_dial_new": (c_int32, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
    "byway_dial_new_selection": (c_int32, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
    "byway_dial_new_routes": (c_int32, [c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_void_p, c_void_p]),
    "byway_dial_run": (c_int32, [c_void_p, c_int64, c_void_p, c_void_p]),
    "byway_dial_step": (c_int32, [c_void_p, c_void_p, c_size_t, c_void_p]),
    "byway_dial_step_at": (c_int32, [c_void_p, c_uint64, c_void_p, c_size_t, c_void_p]),
    "byway_dial_fd": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_dial_deadline_ms": (c_int32, [c_void_p, c_void_p]),
    "byway_dial_pollset": (c_int32, [c_void_p, c_void_p, c_size_t, c_size_t, c_void_p, c_void_p, c_void_p]),
    "byway_dial_next_event": (c_int32, [c_void_p, c_void_p]),
    "byway_dial_take": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_dial_confirm": (c_int32, [c_void_p, c_uint32, c_void_p]),
    "byway_dial_resume": (c_int32, [c_void_p, c_uint32, c_int32, c_void_p, c_void_p]),
    "byway_dial_authenticate": (c_int32, [c_void_p, c_uint32, c_void_p, c_size_t]),
    "byway_dial_cancel": (c_int32, [c_void_p]),
    "byway_dial_failures": (c_int32, [c_void_p, c_void_p, c_size_t, c_size_t, c_void_p]),
    "byway_dial_failure_route": (c_int32, [c_void_p, c_size_t, c_void_p]),
    "byway_dial_explain": (c_int32, [c_void_p, c_int32, c_void_p, c_void_p]),
    "byway_dial_free": (None, [c_void_p]),
    "byway_handshake_new": (c_int32, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "byway_handshake_new_target": (c_int32, [c_int32, c_void_p, c_size_t, c_int32, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p, c_void_p]),
    "byway_handshake_want": (c_int32, [c_void_p, c_void_p]),
    "byway_handshake_output": (c_int32, [c_void_p, c_void_p]),
    "byway_handshake_sent": (c_int32, [c_void_p, c_size_t]),
    "byway_handshake_feed": (c_int32, [c_void_p, c_void_p, c_size_t, c_void_p, c_void_p]),
    "byway_handshake_eof": (c_int32, [c_void_p, c_void_p]),
    "byway_handshake_challenge_at": (c_int32, [c_void_p, c_size_t, c_void_p]),
    "byway_handshake_answer": (c_int32, [c_void_p, c_void_p, c_size_t, c_void_p]),
    "byway_handshake_reconnected": (c_int32, [c_void_p, c_void_p]),
    "byway_handshake_free": (None, [c_void_p]),
    "byway_engine_add_listener": (c_int32, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "byway_listener_remove": (None, [c_void_p]),
    "byway_listener_retain": (c_void_p, [c_void_p]),
    "byway_listener_release": (None, [c_void_p]),
    "byway_engine_connected": (c_int32, [c_void_p, c_void_p]),
    "byway_engine_connect_failed": (c_int32, [c_void_p, c_void_p, c_int32, c_int32, c_int32, c_void_p]),
    "byway_engine_should_postpone": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_engine_network_changed": (c_int32, [c_void_p, c_void_p]),
    "byway_engine_set_proxy_selector": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_engine_database_snapshot": (c_int32, [c_void_p, c_void_p, c_size_t, c_size_t, c_void_p]),
    "byway_engine_database_export": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_engine_database_import": (c_int32, [c_void_p, c_void_p, c_size_t, c_void_p, c_void_p]),
    "byway_engine_stats": (c_int32, [c_void_p, c_void_p]),
    "byway_engine_recover": (c_int32, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "byway_failure_retry_tls": (c_int32, [c_int32]),
    "byway_failure_from_errno": (c_int32, [c_int32]),
    "byway_failure_text": (c_int32, [c_int32, c_void_p, c_void_p]),
    "byway_failure_track": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_failure_report": (c_int32, [c_int32, c_int32, c_int32, c_int32, c_int32, c_int32, c_void_p, c_void_p]),
    "byway_invokers_new": (c_int32, [c_void_p, c_void_p, c_void_p, c_size_t, c_uint32, c_void_p, c_void_p, c_void_p]),
    "byway_invokers_retain": (c_void_p, [c_void_p]),
    "byway_invokers_release": (None, [c_void_p]),
    "byway_invokers_len": (c_size_t, [c_void_p]),
    "byway_invokers_tag": (c_int32, [c_void_p, c_size_t, c_void_p]),
    "byway_invokers_url": (c_int32, [c_void_p, c_size_t, c_void_p, c_void_p]),
    "byway_invokers_row_of": (c_int32, [c_void_p, c_uint64, c_void_p]),
    "byway_invokers_generation": (c_uint64, [c_void_p]),
    "byway_invokers_builder_new": (c_int32, [c_void_p, c_void_p, c_uint32, c_void_p, c_void_p, c_void_p]),
    "byway_invokers_builder_add": (c_int32, [c_void_p, c_void_p, c_size_t, c_uint64, c_void_p]),
    "byway_invokers_builder_add_many": (c_int32, [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p]),
    "byway_invokers_builder_set": (c_int32, [c_void_p, c_void_p, c_size_t, c_uint64, c_void_p]),
    "byway_invokers_builder_remove": (c_int32, [c_void_p, c_uint64, c_void_p]),
    "byway_invokers_builder_finish": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_invokers_builder_free": (None, [c_void_p]),
    "byway_invocation_new": (c_int32, [c_void_p, c_void_p]),
    "byway_invocation_reset": (c_int32, [c_void_p]),
    "byway_invocation_set_method": (c_int32, [c_void_p, c_void_p, c_size_t]),
    "byway_invocation_set_method_id": (c_int32, [c_void_p, c_uint32]),
    "byway_invocation_set_types": (c_int32, [c_void_p, c_void_p, c_size_t]),
    "byway_invocation_set_arguments": (c_int32, [c_void_p, c_void_p, c_size_t]),
    "byway_invocation_set_attachment": (c_int32, [c_void_p, c_void_p, c_size_t, c_void_p, c_size_t]),
    "byway_invocation_set_attachments": (c_int32, [c_void_p, c_void_p, c_size_t]),
    "byway_invocation_free": (None, [c_void_p]),
    "byway_engine_set_rule": (c_int32, [c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p]),
    "byway_engine_remove_rule": (c_int32, [c_void_p, c_void_p, c_size_t, c_void_p]),
    "byway_rule_key": (c_int32, [c_int32, c_int32, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p]),
    "byway_rule_check": (c_int32, [c_int32, c_int32, c_void_p, c_size_t, c_void_p, c_int32, c_void_p, c_void_p]),
    "byway_router_new": (c_int32, [c_void_p, c_void_p, c_size_t, c_int64, c_uint32, c_void_p, c_void_p, c_void_p]),
    "byway_router_retain": (c_void_p, [c_void_p]),
    "byway_router_release": (None, [c_void_p]),
    "byway_router_request_attachment": (c_int32, [c_void_p, c_void_p, c_size_t, c_void_p]),
    "byway_router_request_argument": (c_int32, [c_void_p, c_size_t, c_void_p]),
    "byway_choice_len": (c_size_t, [c_void_p]),
    "byway_choice_tag_at": (c_int32, [c_void_p, c_size_t, c_void_p]),
    "byway_choice_invokers": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_choice_tags": (c_int32, [c_void_p, c_void_p, c_size_t, c_void_p]),
    "byway_choice_generation": (c_uint64, [c_void_p]),
    "byway_choice_emptied_by": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_choice_free": (None, [c_void_p]),
    "byway_chain_options_init": (None, [c_void_p]),
    "byway_pick_options_init": (None, [c_void_p]),
    "byway_call_result_init": (None, [c_void_p]),
    "byway_chain_new": (c_int32, [c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_void_p]),
    "byway_chain_retain": (c_void_p, [c_void_p]),
    "byway_chain_release": (None, [c_void_p]),
    "byway_chain_set_invokers": (c_int32, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "byway_chain_invokers": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_chain_add_router": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_chain_set_rule_urls": (c_int32, [c_void_p, c_void_p, c_size_t, c_void_p]),
    "byway_chain_route": (c_int32, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "byway_chain_route_tags": (c_int32, [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_void_p]),
    "byway_chain_route_many": (c_int32, [c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p, c_void_p]),
    "byway_chain_pick": (c_int32, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
    "byway_chain_pick_end": (c_int32, [c_void_p, c_uint64, c_int32, c_int64]),
    "byway_chain_pick_end_with": (c_int32, [c_void_p, c_uint64, c_void_p, c_void_p]),
    "byway_chain_keys": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_chain_status": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_chain_generation": (c_uint64, [c_void_p]),
    "byway_chain_intern_method": (c_int32, [c_void_p, c_void_p, c_size_t, c_void_p, c_void_p]),
    "byway_chain_explain": (c_int32, [c_void_p, c_void_p, c_int32, c_void_p, c_void_p]),
    "byway_chain_diff": (c_int32, [c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, c_int32, c_void_p, c_void_p]),
    "byway_chain_keep_recent": (c_int32, [c_void_p, c_int32, c_void_p]),
    "byway_chain_recent": (c_int32, [c_void_p, c_int32, c_void_p, c_void_p]),
    "byway_session_new": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_session_route": (c_int32, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "byway_session_route_tags": (c_int32, [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_void_p]),
    "byway_session_pick": (c_int32, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
    "byway_session_adopt": (c_int32, [c_void_p, c_void_p]),
    "byway_session_idle": (c_int32, [c_void_p, c_void_p]),
    "byway_session_free": (None, [c_void_p]),
    "byway_zookeeper_options_init": (None, [c_void_p]),
    "byway_source_state_init": (None, [c_void_p]),
    "byway_source_new_memory": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_source_new_file": (c_int32, [c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p]),
    "byway_source_new_zookeeper": (c_int32, [c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_void_p]),
    "byway_source_retain": (c_void_p, [c_void_p]),
    "byway_source_release": (None, [c_void_p]),
    "byway_source_put": (c_int32, [c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p]),
    "byway_source_remove": (c_int32, [c_void_p, c_void_p, c_size_t, c_void_p]),
    "byway_source_apply": (c_int32, [c_void_p, c_void_p, c_size_t, c_void_p]),
    "byway_source_get": (c_int32, [c_void_p, c_void_p, c_size_t, c_int64, c_void_p, c_void_p]),
    "byway_source_status": (c_int32, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "byway_bind_options_init": (None, [c_void_p]),
    "byway_chain_bind_source": (c_int32, [c_void_p, c_void_p, c_void_p, c_void_p, c_int64, c_void_p]),
    "byway_chain_cancel_bind": (c_int32, [c_void_p]),
    "byway_chain_bind_status": (c_int32, [c_void_p, c_void_p, c_void_p]),
}
