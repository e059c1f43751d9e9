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
BYWAY_QUEUE_LOOP = 1
BYWAY_COMPLETION_SELECTOR = 1
BYWAY_COMPLETION_DIAL = 2
BYWAY_COMPLETION_SOURCE = 3
BYWAY_CALLBACKS_ANY_THREAD = 1
BYWAY_COMMIT_ALWAYS = 0
BYWAY_COMMIT_ON_SUCCESS = 1
BYWAY_COMPAT_BYWAY = 0
BYWAY_COMPAT_OKHTTP_5 = 1
BYWAY_COMPAT_OKHTTP_3 = 2
BYWAY_INVOKERS_KEEP_URLS = 1
BYWAY_DIALECT_BYWAY = 0
BYWAY_DIALECT_DUBBO_3 = 1
BYWAY_DIALECT_DUBBO_2_7 = 2
BYWAY_DIALECT_DUBBO_GO = 3
BYWAY_RULE_CONDITION = 0
BYWAY_RULE_TAG = 1
BYWAY_RULE_AFFINITY = 2
BYWAY_ROUTER_EVERY_CHAIN = 1
BYWAY_ROUTER_BY_NAME = 2
BYWAY_CHAIN_RUN_ON = 1
BYWAY_CHAIN_FAIL_FAST = 2
BYWAY_CHAIN_NO_MEMO = 4
BYWAY_BALANCE_RANDOM = 1
BYWAY_BALANCE_ROUND_ROBIN = 2
BYWAY_BALANCE_LEAST_ACTIVE = 3
BYWAY_BALANCE_SHORTEST_RESPONSE = 4
BYWAY_BALANCE_CONSISTENT_HASH = 5
BYWAY_BALANCE_P2C = 6
BYWAY_PICK_STICKY = 1
BYWAY_PICK_NOT_STICKY = 2
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
byway_router_callbacks_route = CFUNCTYPE(c_int32, c_void_p, c_void_p, c_void_p)
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
        ("reserved", c_int32),
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


STRUCTS: List[Any] = [
    byway_str,
    byway_queue_options,
    byway_notify_callbacks,
    byway_completion,
    byway_engine_options,
    byway_invokers_callbacks,
    byway_router_request,
    byway_router_callbacks,
    byway_chain_options,
    byway_pick_options,
    byway_call_result,
    byway_picked,
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
    "byway_invokers_new": (c_int32, [c_void_p, c_void_p, c_void_p, c_size_t, c_uint32, c_void_p, c_void_p, c_void_p]),
    "byway_invokers_retain": (c_void_p, [c_void_p]),
    "byway_invokers_release": (None, [c_void_p]),
    "byway_invokers_len": (c_size_t, [c_void_p]),
    "byway_invokers_tag": (c_int32, [c_void_p, c_size_t, c_void_p]),
    "byway_invokers_url": (c_int32, [c_void_p, c_size_t, c_void_p, c_void_p]),
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
    "byway_router_new": (c_int32, [c_void_p, c_void_p, c_size_t, c_int64, c_uint32, c_void_p, c_void_p, c_void_p]),
    "byway_router_retain": (c_void_p, [c_void_p]),
    "byway_router_release": (None, [c_void_p]),
    "byway_router_request_attachment": (c_int32, [c_void_p, c_void_p, c_size_t, c_void_p]),
    "byway_router_request_argument": (c_int32, [c_void_p, c_size_t, c_void_p]),
    "byway_choice_len": (c_size_t, [c_void_p]),
    "byway_choice_tag_at": (c_int32, [c_void_p, c_size_t, c_void_p]),
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
    "byway_session_new": (c_int32, [c_void_p, c_void_p, c_void_p]),
    "byway_session_route": (c_int32, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "byway_session_pick": (c_int32, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
    "byway_session_adopt": (c_int32, [c_void_p, c_void_p]),
    "byway_session_idle": (c_int32, [c_void_p, c_void_p]),
    "byway_session_free": (None, [c_void_p]),
}
