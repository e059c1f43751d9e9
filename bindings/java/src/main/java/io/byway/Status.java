package io.byway;

/** Names of the outcomes of a call, as {@link BywayException#code()} has them. The numbers are fixed for ever. */
public final class Status {
    /** {@code BYWAY_OK}. */
    public static final int OK = Abi.OK;
    /** {@code BYWAY_DONE}. */
    public static final int DONE = Abi.DONE;
    /** {@code BYWAY_PENDING}. */
    public static final int PENDING = Abi.PENDING;
    /** {@code BYWAY_PASS}. */
    public static final int PASS = Abi.PASS;
    /** {@code BYWAY_E_ARGUMENT}. */
    public static final int E_ARGUMENT = Abi.E_ARGUMENT;
    /** {@code BYWAY_E_NULL}. */
    public static final int E_NULL = Abi.E_NULL;
    /** {@code BYWAY_E_BUSY}. */
    public static final int E_BUSY = Abi.E_BUSY;
    /** {@code BYWAY_E_BAD_HANDLE}. */
    public static final int E_BAD_HANDLE = Abi.E_BAD_HANDLE;
    /** {@code BYWAY_E_REENTRANT}. */
    public static final int E_REENTRANT = Abi.E_REENTRANT;
    /** {@code BYWAY_E_CANCELED}. */
    public static final int E_CANCELED = Abi.E_CANCELED;
    /** {@code BYWAY_E_TIMEOUT}. */
    public static final int E_TIMEOUT = Abi.E_TIMEOUT;
    /** {@code BYWAY_E_UTF8}. */
    public static final int E_UTF8 = Abi.E_UTF8;
    /** {@code BYWAY_E_ENUM}. */
    public static final int E_ENUM = Abi.E_ENUM;
    /** {@code BYWAY_E_STRUCT_SIZE}. */
    public static final int E_STRUCT_SIZE = Abi.E_STRUCT_SIZE;
    /** {@code BYWAY_E_STATE}. */
    public static final int E_STATE = Abi.E_STATE;
    /** {@code BYWAY_E_SHUTDOWN}. */
    public static final int E_SHUTDOWN = Abi.E_SHUTDOWN;
    /** {@code BYWAY_E_FORKED}. */
    public static final int E_FORKED = Abi.E_FORKED;
    /** {@code BYWAY_E_WOULD_DEADLOCK}. */
    public static final int E_WOULD_DEADLOCK = Abi.E_WOULD_DEADLOCK;
    /** {@code BYWAY_E_UNSUPPORTED}. */
    public static final int E_UNSUPPORTED = Abi.E_UNSUPPORTED;
    /** {@code BYWAY_E_POISONED}. */
    public static final int E_POISONED = Abi.E_POISONED;
    /** {@code BYWAY_E_LIMIT}. */
    public static final int E_LIMIT = Abi.E_LIMIT;
    /** {@code BYWAY_E_ABANDONED}. */
    public static final int E_ABANDONED = Abi.E_ABANDONED;
    /** {@code BYWAY_E_NOT_FOUND}. */
    public static final int E_NOT_FOUND = Abi.E_NOT_FOUND;
    /** {@code BYWAY_E_DUPLICATE}. */
    public static final int E_DUPLICATE = Abi.E_DUPLICATE;
    /** {@code BYWAY_E_INVALID_HOST}. */
    public static final int E_INVALID_HOST = Abi.E_INVALID_HOST;
    /** {@code BYWAY_E_INVALID_PORT}. */
    public static final int E_INVALID_PORT = Abi.E_INVALID_PORT;
    /** {@code BYWAY_E_INVALID_PROXY}. */
    public static final int E_INVALID_PROXY = Abi.E_INVALID_PROXY;
    /** {@code BYWAY_E_PROXY_SELECTOR}. */
    public static final int E_PROXY_SELECTOR = Abi.E_PROXY_SELECTOR;
    /** {@code BYWAY_E_EMPTY_ANSWER}. */
    public static final int E_EMPTY_ANSWER = Abi.E_EMPTY_ANSWER;
    /** {@code BYWAY_E_NO_ROUTE}. */
    public static final int E_NO_ROUTE = Abi.E_NO_ROUTE;
    /** {@code BYWAY_E_FILTERED}. */
    public static final int E_FILTERED = Abi.E_FILTERED;
    /** {@code BYWAY_E_INVALID_IP}. */
    public static final int E_INVALID_IP = Abi.E_INVALID_IP;
    /** {@code BYWAY_E_INVALID_URL}. */
    public static final int E_INVALID_URL = Abi.E_INVALID_URL;
    /** {@code BYWAY_E_PAC}. */
    public static final int E_PAC = Abi.E_PAC;
    /** {@code BYWAY_E_UNKNOWN_HOST}. */
    public static final int E_UNKNOWN_HOST = Abi.E_UNKNOWN_HOST;
    /** {@code BYWAY_E_DNS}. */
    public static final int E_DNS = Abi.E_DNS;
    /** {@code BYWAY_E_RULE}. */
    public static final int E_RULE = Abi.E_RULE;
    /** {@code BYWAY_E_SYNTAX}. */
    public static final int E_SYNTAX = Abi.E_SYNTAX;
    /** {@code BYWAY_E_NO_INVOKER}. */
    public static final int E_NO_INVOKER = Abi.E_NO_INVOKER;
    /** {@code BYWAY_E_INVOKERS}. */
    public static final int E_INVOKERS = Abi.E_INVOKERS;
    /** {@code BYWAY_E_SCRIPT}. */
    public static final int E_SCRIPT = Abi.E_SCRIPT;
    /** {@code BYWAY_E_SOURCE}. */
    public static final int E_SOURCE = Abi.E_SOURCE;
    /** {@code BYWAY_E_REFUSED}. */
    public static final int E_REFUSED = Abi.E_REFUSED;
    /** {@code BYWAY_E_UNREACHABLE}. */
    public static final int E_UNREACHABLE = Abi.E_UNREACHABLE;
    /** {@code BYWAY_E_RESET}. */
    public static final int E_RESET = Abi.E_RESET;
    /** {@code BYWAY_E_LOCAL}. */
    public static final int E_LOCAL = Abi.E_LOCAL;
    /** {@code BYWAY_E_CONNECT}. */
    public static final int E_CONNECT = Abi.E_CONNECT;
    /** {@code BYWAY_E_PROXY_REFUSED}. */
    public static final int E_PROXY_REFUSED = Abi.E_PROXY_REFUSED;
    /** {@code BYWAY_E_PROXY_AUTH}. */
    public static final int E_PROXY_AUTH = Abi.E_PROXY_AUTH;
    /** {@code BYWAY_E_PROXY_PROTOCOL}. */
    public static final int E_PROXY_PROTOCOL = Abi.E_PROXY_PROTOCOL;
    /** {@code BYWAY_E_CLOSED}. */
    public static final int E_CLOSED = Abi.E_CLOSED;
    /** {@code BYWAY_E_SELF_CONNECT}. */
    public static final int E_SELF_CONNECT = Abi.E_SELF_CONNECT;
    /** {@code BYWAY_E_NEEDS_PROXY_TLS}. */
    public static final int E_NEEDS_PROXY_TLS = Abi.E_NEEDS_PROXY_TLS;
    /** {@code BYWAY_E_OS}. */
    public static final int E_OS = Abi.E_OS;
    /** {@code BYWAY_E_HOST}. */
    public static final int E_HOST = Abi.E_HOST;
    /** {@code BYWAY_E_PANIC}. */
    public static final int E_PANIC = Abi.E_PANIC;
    /** {@code BYWAY_E_RESOURCES}. */
    public static final int E_RESOURCES = Abi.E_RESOURCES;

    private Status() {}

    /** C name of a status, for example {@code BYWAY_E_BUSY}; answers for every number. */
    public static String name(int status) {
        return Library.statusName(status);
    }

    /** One sentence about a status; answers for every number. */
    public static String message(int status) {
        return Library.statusMessage(status);
    }
}
