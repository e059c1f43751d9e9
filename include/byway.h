/*
 * byway: a route engine. Where do I connect next? Which provider serves this call?
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 * Generated from src/ffi by cbindgen (`make header`); do not edit.
 *
 * CONVENTIONS, in force for every function unless its own text says otherwise.
 *
 * Handles.  Shared ones have _new, _retain, _release and may be used from every thread at once. Exclusive ones have
 * _new and _free; a second concurrent call on one answers BYWAY_E_BUSY at once, a call from inside its own callback
 * BYWAY_E_REENTRANT. _cancel and _free are legal from any thread at any time: the running call then ends with
 * BYWAY_E_CANCELED and frees the memory. NULL to _release and _free is fine; any order of release is legal. NULL, a
 * handle of another type, a freed one, or one of another copy of the library answers BYWAY_E_BAD_HANDLE; a reused or
 * stray pointer is undefined behaviour.
 *
 * Parameters.  First self, then inputs, then outputs, last `byway_error **err`, which may be NULL: then no error
 * object is made. Outputs are cleared on entry; *err is overwritten, never freed. `T **out`: the caller owns one
 * reference. `const T **out` and *_at: borrowed from self.
 *
 * Strings in.  Pointer and length; the length BYWAY_NUL means "up to the first NUL"; (NULL, 0) is empty. Hosts and rule
 * texts must be UTF-8, invocation strings are bytes. They are copied or used up before the call returns.
 * Strings out.  byway_str, followed by a NUL that len does not count, valid until the handle goes.
 *
 * Status.  0 ok, negative error, positive information. Numbers are fixed for ever.
 *
 * Times.  int64_t milliseconds; timeout_ms 0 = do not wait, negative = the engine's default (30 s), never for ever.
 *
 * Structs.  Options and callback sets start with struct_size; fill it with sizeof, or start from the _INIT macro or the
 * _init function. Fields are only appended. Array fillers take stride (sizeof of the host's record) and cap, write
 * min(cap, total) records, zero what is newer than the library, and always set total; (NULL, 0) counts.
 *
 * Callbacks.  user_data first, last the call's context. They run only on a thread that is itself inside a byway call,
 * with no lock of byway's held (unless BYWAY_CALLBACKS_ANY_THREAD). They must return: no longjmp, no exception, no
 * thread exit. Any status that is not BYWAY_OK, BYWAY_PENDING, BYWAY_PASS or negative counts as BYWAY_E_HOST.
 * From inside a callback: retain, release, free, cancel and getters always; a nested selector to depth 8; shutdown of
 * the same engine and poll of the same queue never (BYWAY_E_REENTRANT).
 * destroy runs exactly once, on a host's thread inside a byway call: when the set is no longer in use and its last
 * call has returned, on replacement, when registering fails, and for all that is left in shutdown.
 *
 * Fork.  In a child, values (error, text, address, route, proxy, filter) keep working; everything else answers
 * BYWAY_E_FORKED, and release and free run no host code.
 *
 * Process.  No signal handlers, no changes to the environment, nothing on stdout or stderr, no atexit. Threads are made
 * on first need, named byway-*, bounded.
 *
 * Threads.  "any" when nothing else is said.
 */


#ifndef BYWAY_H
#define BYWAY_H

#include <stddef.h>
#include <stdint.h>

#if defined(BYWAY_STATIC) || !defined(__GNUC__)
#define BYWAY_API
#else
#define BYWAY_API __attribute__((visibility("default")))
#endif

/** Length that says "measure it": the text ends at the first NUL. */
#define BYWAY_NUL SIZE_MAX

#define BYWAY_VERSION_MAJOR 0
#define BYWAY_VERSION_MINOR 1
#define BYWAY_VERSION_PATCH 0
#define BYWAY_VERSION_NUMBER ((BYWAY_VERSION_MAJOR << 16) | (BYWAY_VERSION_MINOR << 8) | BYWAY_VERSION_PATCH)
#define BYWAY_VERSION_STRING "0.1.0"
#define BYWAY_VERSION_AT_LEAST(major, minor, patch) \
    (BYWAY_VERSION_NUMBER >= (((major) << 16) | ((minor) << 8) | (patch)))




/**
 * Number of this ABI. A library with another number must not be used with this header.
 */
#define BYWAY_ABI_VERSION 0

/**
 * The thread that polls this queue is an event loop: a blocking call on it that would have to wait answers
 * `BYWAY_E_WOULD_DEADLOCK`.
 */
#define BYWAY_QUEUE_LOOP 1

/**
 * A selector's `poll_next` may be called again.
 */
#define BYWAY_COMPLETION_SELECTOR 1

/**
 * A dial may go on.
 */
#define BYWAY_COMPLETION_DIAL 2

/**
 * A source has reached its first state.
 */
#define BYWAY_COMPLETION_SOURCE 3

/**
 * Callbacks may run on byway's own threads.
 */
#define BYWAY_CALLBACKS_ANY_THREAD 1

/**
 * A failure counts at once.
 */
#define BYWAY_COMMIT_ALWAYS 0

/**
 * A failure counts when its selector reports a route connected: a machine that is offline learns nothing wrong.
 */
#define BYWAY_COMMIT_ON_SUCCESS 1

/**
 * byway's own rules.
 */
#define BYWAY_COMPAT_BYWAY 0

/**
 * Exactly as OkHttp 5.
 */
#define BYWAY_COMPAT_OKHTTP_5 1

/**
 * Exactly as OkHttp 3.13.
 */
#define BYWAY_COMPAT_OKHTTP_3 2

/**
 * Keep the URL texts, for `byway_invokers_url`.
 */
#define BYWAY_INVOKERS_KEEP_URLS 1

/**
 * byway's own reading: Dubbo Java 3.3 for well-formed rules, right where it is plainly wrong.
 */
#define BYWAY_DIALECT_BYWAY 0

/**
 * Exactly as Dubbo Java 3.3.
 */
#define BYWAY_DIALECT_DUBBO_3 1

/**
 * Exactly as Dubbo Java 2.7.
 */
#define BYWAY_DIALECT_DUBBO_2_7 2

/**
 * Exactly as dubbo-go 3.3.
 */
#define BYWAY_DIALECT_DUBBO_GO 3

/**
 * Conditions of a service, application or provider application: `.condition-router`.
 */
#define BYWAY_RULE_CONDITION 0

/**
 * Tags of a provider application: `.tag-router`.
 */
#define BYWAY_RULE_TAG 1

/**
 * Affinity of a service or provider application: `.affinity-router`.
 */
#define BYWAY_RULE_AFFINITY 2

/**
 * Every chain made from now on has the router, unless its `router=` takes it away (`-name`, `-default`).
 */
#define BYWAY_ROUTER_EVERY_CHAIN 1

/**
 * Every chain made from now on has the router if its `router=` names it.
 */
#define BYWAY_ROUTER_BY_NAME 2

/**
 * An empty list does not end the chain: later routers still see it.
 */
#define BYWAY_CHAIN_RUN_ON 1

/**
 * An empty list ends the chain, whatever the dialect does.
 */
#define BYWAY_CHAIN_FAIL_FAST 2

/**
 * Results are not memoised.
 */
#define BYWAY_CHAIN_NO_MEMO 4

/**
 * Weighted random.
 */
#define BYWAY_BALANCE_RANDOM 1

/**
 * Smooth weighted round robin.
 */
#define BYWAY_BALANCE_ROUND_ROBIN 2

/**
 * Fewest calls in flight.
 */
#define BYWAY_BALANCE_LEAST_ACTIVE 3

/**
 * Shortest response time.
 */
#define BYWAY_BALANCE_SHORTEST_RESPONSE 4

/**
 * Same arguments, same provider.
 */
#define BYWAY_BALANCE_CONSISTENT_HASH 5

/**
 * Of two at random the one with the lower load.
 */
#define BYWAY_BALANCE_P2C 6

/**
 * Stay with the provider picked last as long as it can serve.
 */
#define BYWAY_PICK_STICKY 1

/**
 * Do not, whatever the providers' `sticky` says.
 */
#define BYWAY_PICK_NOT_STICKY 2

/**
 * The call a callback serves. Only valid until the callback returns.
 */
typedef struct byway_call byway_call;

/**
 * Routers over one provider list for one consumer. Rules and lists change while calls are routed: a call sees one
 * world, and readers never wait for writers.
 */
typedef struct byway_chain byway_chain;

/**
 * A routing result: the providers that may serve a call, by the host's tags and in list order. Immutable.
 *
 * One from `byway_chain_route` is the caller's, pins the list it was chosen from and is ended with
 * `byway_choice_free`. One from `byway_session_route` is lent: it shows that session's last result, on its thread,
 * until the session's next call; freeing it does nothing.
 */
typedef struct byway_choice byway_choice;

/**
 * Holds what must be remembered between calls: failed routes, rules, counters, callbacks. Made once per client.
 */
typedef struct byway_engine byway_engine;

/**
 * Why a call failed. Owns everything it shows; thread-compatible; usable after the engine is gone and in a child.
 * Made only when the caller passed a place for it. Free with `byway_error_free`.
 */
typedef struct byway_error byway_error;

/**
 * One call to be routed: method, parameter types, arguments, attachments. Made once per thread and filled anew for
 * every call; filling it allocates nothing once it has held as much before.
 *
 * Strings are bytes and are BORROWED, not copied: each must stay as it is until it is replaced, the invocation is
 * reset or freed.
 *
 * Threads: belongs to the thread that made or last reset it; elsewhere `BYWAY_E_BUSY`.
 */
typedef struct byway_invocation byway_invocation;

/**
 * An immutable provider list in the host's order. Every row carries the host's tag.
 */
typedef struct byway_invokers byway_invokers;

/**
 * Makes a provider list, whole or as an update of another. Exclusive.
 */
typedef struct byway_invokers_builder byway_invokers_builder;

/**
 * One event loop's inbox: completion records, callbacks that must run on the host's thread, deadlines. Engines may
 * share one; every selector, dial, listener and source may name its own.
 */
typedef struct byway_queue byway_queue;

/**
 * A host's own router. A chain asks it for every call, after the routers of smaller priority.
 */
typedef struct byway_router byway_router;

/**
 * Routes calls of one chain on one thread. Pins the world (list and rules) it used last, so that a result is a
 * borrowed view.
 *
 * Threads: belongs to the thread that made it until another one calls `byway_session_adopt`; elsewhere
 * `BYWAY_E_BUSY`. `byway_session_free` is legal from any thread.
 */
typedef struct byway_session byway_session;

/**
 * A text made for the caller: an explanation, an export. Free with `byway_text_free`.
 */
typedef struct byway_text byway_text;

/**
 * Outcome of a call: 0 is success, negative an error, positive success with information.
 */
typedef int32_t byway_status;

/**
 * Borrowed text with its length. Where byway fills one, a NUL follows the text and `len` does not count it.
 */
typedef struct byway_str {
    /**
     * First byte; NULL only with `len` 0.
     */
    const char *data;
    /**
     * Bytes; `BYWAY_NUL` in inputs means "up to the first NUL".
     */
    size_t len;
} byway_str;

/**
 * What a queue is made with. Start from `BYWAY_QUEUE_OPTIONS_INIT` or `byway_queue_options_init`.
 */
typedef struct byway_queue_options {
    /**
     * `sizeof(byway_queue_options)`.
     */
    size_t struct_size;
    /**
     * `BYWAY_QUEUE_LOOP` or 0.
     */
    uint32_t flags;
    /**
     * Records and callbacks that may wait, each; 0 means 65536. A new operation that would go over it is refused
     * with `BYWAY_E_LIMIT`; events that would are dropped and counted.
     */
    uint32_t capacity;
} byway_queue_options;

/**
 * Ends a set's `user_data`.
 */
typedef void (*byway_destroy)(void *user_data);

/**
 * Tells a host without descriptors that a queue went from empty to non-empty.
 */
typedef struct byway_notify_callbacks {
    /**
     * `sizeof(byway_notify_callbacks)`.
     */
    size_t struct_size;
    /**
     * First argument of both functions.
     */
    void *user_data;
    /**
     * Runs once when the set is no longer in use. May be NULL.
     */
    byway_destroy destroy;
    /**
     * Any thread, also one of byway's own: may only schedule a poll elsewhere, and must not call byway.
     */
    void (*notify)(void *user_data);
} byway_notify_callbacks;

/**
 * Says how one pending operation ended. Each `BYWAY_PENDING` is followed by exactly one, also on timeout, cancel and
 * shutdown.
 */
typedef struct byway_completion {
    /**
     * The host's number for the operation, echoed.
     */
    uint64_t tag;
    /**
     * The operation's number, for example `byway_selector_id`.
     */
    uint64_t id;
    /**
     * `BYWAY_COMPLETION_*`.
     */
    int32_t kind;
    /**
     * 0: call the operation again for its result. Negative: it ended without one.
     */
    byway_status status;
} byway_completion;

/**
 * What an engine is made with. Start from `BYWAY_ENGINE_OPTIONS_INIT` or `byway_engine_options_init`.
 */
typedef struct byway_engine_options {
    /**
     * `sizeof(byway_engine_options)`.
     */
    size_t struct_size;
    /**
     * Inbox of everything that names none of its own; NULL makes one. Retained.
     */
    struct byway_queue *queue;
    /**
     * Seed of every random draw; 0 takes one from the system.
     */
    uint64_t seed;
    /**
     * `BYWAY_CALLBACKS_ANY_THREAD` or 0.
     */
    uint32_t flags;
    /**
     * `BYWAY_COMPAT_*`.
     */
    int32_t compat;
    /**
     * What a negative `timeout_ms` means, in milliseconds; 0 means 30 000.
     */
    int64_t default_timeout_ms;
    /**
     * First postponement of a failed route in milliseconds; -1 means 5 minutes, 0 until it is reported connected.
     */
    int64_t postpone_for_ms;
    /**
     * Longest postponement in milliseconds; -1 means 30 minutes.
     */
    int64_t postpone_at_most_ms;
    /**
     * Failed routes remembered, the oldest goes first; 0 means 4096.
     */
    uint32_t database_capacity;
    /**
     * `BYWAY_COMMIT_*`.
     */
    int32_t commit_failures;
    /**
     * `BYWAY_DIALECT_*`: whose reading of rules is wanted where a chain does not say.
     */
    int32_t dialect;
    /**
     * 0.
     */
    int32_t reserved;
} byway_engine_options;

/**
 * Options of a provider list; all of them are for what the host's tags stand for.
 */
typedef struct byway_invokers_callbacks {
    /**
     * `sizeof(byway_invokers_callbacks)`.
     */
    size_t struct_size;
    /**
     * First argument of `destroy`.
     */
    void *user_data;
    /**
     * Runs once when no list, chain, session or choice can name the tags any more. Lists made by update count as
     * the list they came from unless they bring a set of their own. May be NULL.
     */
    byway_destroy destroy;
} byway_invokers_callbacks;

/**
 * One question to a host's router. Only valid until the callback returns.
 */
typedef struct byway_router_request {
    /**
     * `sizeof(byway_router_request)` of the library.
     */
    size_t struct_size;
    /**
     * Tags of the providers that came in, in list order. NULL when there are none.
     */
    const uint64_t *tags;
    /**
     * How many.
     */
    size_t count;
    /**
     * Where to write which of them stay: `keep[i]` 1 = `tags[i]` stays, 0 = it goes. All 0 on entry.
     */
    uint8_t *keep;
    /**
     * Method that is meant.
     */
    struct byway_str method;
    /**
     * The call, for the `byway_router_request_*` functions. Opaque.
     */
    const void *context;
    /**
     * 1 when an explanation is made: nothing is sent anywhere with the answer, and no counter should move.
     */
    int32_t explaining;
    /**
     * 0.
     */
    int32_t reserved;
} byway_router_request;

/**
 * A host's router.
 */
typedef struct byway_router_callbacks {
    /**
     * `sizeof(byway_router_callbacks)`.
     */
    size_t struct_size;
    /**
     * First argument of the functions.
     */
    void *user_data;
    /**
     * Runs once when the set is no longer in use. May be NULL.
     */
    byway_destroy destroy;
    /**
     * Decides which providers stay. `BYWAY_OK`: those marked in `request->keep`, possibly none. `BYWAY_PASS`: all.
     * Negative: the route call fails with it. Runs on the routing thread and must not block.
     */
    byway_status (*route)(void *user_data,
                          const struct byway_router_request *request,
                          const struct byway_call *call);
} byway_router_callbacks;

/**
 * How a chain differs from what its engine says. Start from `BYWAY_CHAIN_OPTIONS_INIT` or
 * `byway_chain_options_init`.
 */
typedef struct byway_chain_options {
    /**
     * `sizeof(byway_chain_options)`.
     */
    size_t struct_size;
    /**
     * `BYWAY_DIALECT_*`; -1 means the engine's.
     */
    int32_t dialect;
    /**
     * `BYWAY_CHAIN_*` or 0.
     */
    uint32_t flags;
    /**
     * Bytes of memoised results one world may keep; 0 means 32 MiB.
     */
    uint64_t memo_bytes;
} byway_chain_options;

/**
 * What is asked of a pick. Start from `BYWAY_PICK_OPTIONS_INIT` or `byway_pick_options_init`.
 */
typedef struct byway_pick_options {
    /**
     * `sizeof(byway_pick_options)`.
     */
    size_t struct_size;
    /**
     * `BYWAY_BALANCE_*`; 0 means what the providers' `loadbalance` says, random otherwise.
     */
    int32_t balance;
    /**
     * `BYWAY_PICK_*` or 0.
     */
    uint32_t flags;
    /**
     * One bit a row of the list, lowest bit of the first word first: 1 = can be called. NULL: all can.
     */
    const uint64_t *available;
    /**
     * Words in `available`; rows behind them count as unavailable.
     */
    size_t available_words;
    /**
     * `byway_invokers_generation` of the list the rows belong to.
     */
    uint64_t available_list;
    /**
     * Tags tried before, for a retry. NULL: none.
     */
    const uint64_t *exclude;
    /**
     * How many.
     */
    size_t exclude_count;
} byway_pick_options;

/**
 * How a picked call went. Start from `BYWAY_CALL_RESULT_INIT` or `byway_call_result_init`.
 */
typedef struct byway_call_result {
    /**
     * `sizeof(byway_call_result)`.
     */
    size_t struct_size;
    /**
     * 1: answered without a failure.
     */
    int32_t ok;
    /**
     * 1: the provider reported about itself, the fields below are set.
     */
    int32_t has_report;
    /**
     * Length of the call in nanoseconds; -1 = from pick to now.
     */
    int64_t latency_ns;
    /**
     * The provider's wall clock in milliseconds (Dubbo's `curTime`).
     */
    int64_t report_time_ms;
    /**
     * Its CPU load, on any scale all providers share (Dubbo's `load`).
     */
    double report_load;
    /**
     * Its own measure of the response time in milliseconds (Dubbo's `rt`).
     */
    double report_latency_ms;
} byway_call_result;

/**
 * The provider picked.
 */
typedef struct byway_picked {
    /**
     * Its tag.
     */
    uint64_t tag;
    /**
     * For `byway_chain_pick_end`; 0 when nothing needs to be ended.
     */
    uint64_t ticket;
    /**
     * Its row in the list.
     */
    uint64_t row;
    /**
     * 0 when nothing better than an unavailable provider was left, else 1.
     */
    int32_t available;
    /**
     * 0.
     */
    int32_t reserved;
} byway_picked;

/**
 * The call did what it says.
 */
#define BYWAY_OK 0

/**
 * Nothing is left to deliver; not an error.
 */
#define BYWAY_DONE 1

/**
 * The answer comes later.
 */
#define BYWAY_PENDING 2

/**
 * From a callback: do what would be done without a callback.
 */
#define BYWAY_PASS 3

/**
 * An argument has a value it must not have.
 */
#define BYWAY_E_ARGUMENT -100

/**
 * A pointer that must not be NULL is NULL.
 */
#define BYWAY_E_NULL -101

/**
 * Another call is running on this exclusive handle.
 */
#define BYWAY_E_BUSY -102

/**
 * The handle is NULL, freed, of another type, or of another copy of the library.
 */
#define BYWAY_E_BAD_HANDLE -103

/**
 * Not legal from inside this callback.
 */
#define BYWAY_E_REENTRANT -104

/**
 * The operation was cancelled.
 */
#define BYWAY_E_CANCELED -105

/**
 * Time ran out.
 */
#define BYWAY_E_TIMEOUT -106

/**
 * Text that must be UTF-8 is not.
 */
#define BYWAY_E_UTF8 -107

/**
 * A number is not one of the constants this parameter takes.
 */
#define BYWAY_E_ENUM -108

/**
 * `struct_size` is below the first release's, or unknown bytes are not zero.
 */
#define BYWAY_E_STRUCT_SIZE -109

/**
 * The call is not legal in the present state, for example a second answer.
 */
#define BYWAY_E_STATE -110

/**
 * The engine or queue is shut down.
 */
#define BYWAY_E_SHUTDOWN -111

/**
 * The process was forked after the object was made; only values work in a child.
 */
#define BYWAY_E_FORKED -112

/**
 * A blocking call on the thread that polls the queue would wait for itself.
 */
#define BYWAY_E_WOULD_DEADLOCK -113

/**
 * Compiled out or not available on this platform.
 */
#define BYWAY_E_UNSUPPORTED -114

/**
 * An earlier panic left this object in an unknown state.
 */
#define BYWAY_E_POISONED -115

/**
 * A bound was reached.
 */
#define BYWAY_E_LIMIT -116

/**
 * A request was released without an answer.
 */
#define BYWAY_E_ABANDONED -117

/**
 * No object has this name, key or index.
 */
#define BYWAY_E_NOT_FOUND -118

/**
 * The name, key or tag is taken.
 */
#define BYWAY_E_DUPLICATE -119

/**
 * Not a host name or IP literal.
 */
#define BYWAY_E_INVALID_HOST -200

/**
 * Port outside 1..65535.
 */
#define BYWAY_E_INVALID_PORT -201

/**
 * Not a usable proxy description.
 */
#define BYWAY_E_INVALID_PROXY -202

/**
 * The proxy selector failed.
 */
#define BYWAY_E_PROXY_SELECTOR -203

/**
 * A callback answered OK and added nothing.
 */
#define BYWAY_E_EMPTY_ANSWER -204

/**
 * No route is left that may be tried.
 */
#define BYWAY_E_NO_ROUTE -205

/**
 * The address filter refuses every target.
 */
#define BYWAY_E_FILTERED -206

/**
 * Not an IP address, network or range.
 */
#define BYWAY_E_INVALID_IP -207

/**
 * Not a usable URL.
 */
#define BYWAY_E_INVALID_URL -208

/**
 * A proxy auto-configuration script failed.
 */
#define BYWAY_E_PAC -209

/**
 * The name does not exist.
 */
#define BYWAY_E_UNKNOWN_HOST -300

/**
 * The resolver failed; trying again may help.
 */
#define BYWAY_E_DNS -301

/**
 * A rule text has an error.
 */
#define BYWAY_E_RULE -400

/**
 * The text is not JSON, YAML or what else it must be.
 */
#define BYWAY_E_SYNTAX -401

/**
 * No invoker may serve the call.
 */
#define BYWAY_E_NO_INVOKER -402

/**
 * An invoker list is not usable.
 */
#define BYWAY_E_INVOKERS -403

/**
 * A script failed.
 */
#define BYWAY_E_SCRIPT -404

/**
 * A source of rules or providers failed.
 */
#define BYWAY_E_SOURCE -405

/**
 * Connection refused.
 */
#define BYWAY_E_REFUSED -500

/**
 * Network or host unreachable.
 */
#define BYWAY_E_UNREACHABLE -501

/**
 * Connection reset.
 */
#define BYWAY_E_RESET -502

/**
 * This machine cannot make the attempt: descriptors, permission, no local route.
 */
#define BYWAY_E_LOCAL -503

/**
 * Every route failed; the causes are listed.
 */
#define BYWAY_E_CONNECT -504

/**
 * The proxy refuses.
 */
#define BYWAY_E_PROXY_REFUSED -505

/**
 * The proxy wants other credentials.
 */
#define BYWAY_E_PROXY_AUTH -506

/**
 * The proxy breaks its protocol.
 */
#define BYWAY_E_PROXY_PROTOCOL -507

/**
 * The peer closed in the middle.
 */
#define BYWAY_E_CLOSED -508

/**
 * The socket is connected to itself.
 */
#define BYWAY_E_SELF_CONNECT -509

/**
 * The host must run TLS to the proxy before the dial can go on.
 */
#define BYWAY_E_NEEDS_PROXY_TLS -510

/**
 * Another socket or system call error; the error has the number.
 */
#define BYWAY_E_OS -511

/**
 * A callback failed; the error has the host's own code.
 */
#define BYWAY_E_HOST -900

/**
 * A defect in this library; the error says where.
 */
#define BYWAY_E_PANIC -901

/**
 * Memory or threads ran out.
 */
#define BYWAY_E_RESOURCES -902

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Number of the ABI the loaded library speaks; compare with `BYWAY_ABI_VERSION`.
 *
 * Threads: any, also before anything else.
 */
BYWAY_API uint32_t byway_abi_version(void);

/**
 * Version of the loaded library, for example `"0.1.0"`.
 *
 * Ownership: static.
 */
BYWAY_API const char *byway_version(void);

/**
 * Version of the loaded library as `0xMMmmpp`: comparable.
 */
BYWAY_API uint32_t byway_version_number(void);

/**
 * 1 when the library was built with this feature, 0 when not or when there is no such feature. A function whose
 * feature is missing exists and answers `BYWAY_E_UNSUPPORTED`. `len` may be `BYWAY_NUL`.
 */
BYWAY_API
int32_t byway_has_feature(const char *name,
                          size_t len);

/**
 * Name of a status, for example `"BYWAY_E_BUSY"`; `"BYWAY_UNKNOWN"` for every other number.
 *
 * Ownership: static.
 */
BYWAY_API const char *byway_status_name(byway_status status);

/**
 * One sentence about a status; answers for every number.
 *
 * Ownership: static.
 */
BYWAY_API const char *byway_status_message(byway_status status);

/**
 * Layout of the struct with this index: its C name, size in bytes, and the offset of each field in order. A binding
 * compares them with its own at load. `*total` gets the number of fields; `(NULL, 0)` counts.
 *
 * Ownership: `*name` is static.
 * Errors: `BYWAY_DONE` past the last struct.
 */
BYWAY_API
byway_status byway_layout(uint32_t index,
                          struct byway_str *name,
                          uint32_t *size,
                          uint32_t *offsets,
                          size_t cap,
                          size_t *total);

/**
 * The number to branch on, one of `BYWAY_E_*`. 0 for what is not a live error.
 */
BYWAY_API byway_status byway_error_code(const struct byway_error *self);

/**
 * Who found it: 0 argument, 1 callback, 2 parser, 3 socket, 4 script, 5 panic, 6 engine (`BYWAY_SOURCE_*`).
 */
BYWAY_API
int32_t byway_error_source(const struct byway_error *self);

/**
 * One line of English that says what was found and what was expected, without the subject.
 *
 * Ownership: borrowed, valid until `self` is freed.
 */
BYWAY_API void byway_error_message(const struct byway_error *self, struct byway_str *out);

/**
 * What it is about: a parameter, a host, a rule key. Empty when nothing was named.
 *
 * Ownership: borrowed, valid until `self` is freed.
 */
BYWAY_API void byway_error_subject(const struct byway_error *self, struct byway_str *out);

/**
 * Byte offset of the fault in the text that was parsed, from 0; -1 when it is not about a text.
 */
BYWAY_API int64_t byway_error_offset(const struct byway_error *self);

/**
 * Line of the fault, from 1; 0 when it is not about a text.
 */
BYWAY_API uint32_t byway_error_line(const struct byway_error *self);

/**
 * Column of the fault in characters, from 1; 0 when it is not about a text.
 */
BYWAY_API uint32_t byway_error_column(const struct byway_error *self);

/**
 * The operating system's `errno`; 0 when there is none.
 */
BYWAY_API int32_t byway_error_os_errno(const struct byway_error *self);

/**
 * The number a callback gave with its failure, unchanged; 0 when there is none.
 */
BYWAY_API int64_t byway_error_host_code(const struct byway_error *self);

/**
 * How many causes are listed: every failed attempt, in the order they happened.
 */
BYWAY_API size_t byway_error_cause_count(const struct byway_error *self);

/**
 * One cause, NULL past the end.
 *
 * Ownership: borrowed, valid until `self` is freed; must not be freed itself.
 */
BYWAY_API
const struct byway_error *byway_error_cause_at(const struct byway_error *self,
                                               size_t index);

/**
 * Ends an error. NULL is fine.
 */
BYWAY_API void byway_error_free(struct byway_error *self);

/**
 * The text, UTF-8, followed by a NUL that `len` does not count.
 *
 * Ownership: borrowed, valid until `self` is freed.
 */
BYWAY_API void byway_text_str(const struct byway_text *self, struct byway_str *out);

/**
 * Ends a text. NULL is fine.
 */
BYWAY_API void byway_text_free(struct byway_text *self);

/**
 * The engine. NULL when the host has released it.
 *
 * Ownership: borrowed, valid until the callback returns.
 */
BYWAY_API const struct byway_engine *byway_call_engine(const struct byway_call *call);

/**
 * The `tag` the host gave the operation, 0 when it gave none.
 */
BYWAY_API uint64_t byway_call_tag(const struct byway_call *call);

/**
 * The operation's number, for example a selector's; 0 when there is none.
 */
BYWAY_API uint64_t byway_call_id(const struct byway_call *call);

/**
 * Milliseconds until the operation gives up, 0 when that moment has passed, -1 when there is none.
 */
BYWAY_API int64_t byway_call_deadline_ms(const struct byway_call *call);

/**
 * Sets every option to its default.
 */
BYWAY_API void byway_queue_options_init(struct byway_queue_options *options);

/**
 * Makes a queue. `options` may be NULL.
 *
 * Ownership: the caller owns one reference.
 * Threads: any.
 * Errors: `BYWAY_E_STRUCT_SIZE`, `BYWAY_E_ENUM` for unknown flags.
 */
BYWAY_API
byway_status byway_queue_new(const struct byway_queue_options *options,
                             struct byway_queue **out,
                             struct byway_error **err);

/**
 * One more reference; returns its argument, NULL for what is not a live queue.
 */
BYWAY_API struct byway_queue *byway_queue_retain(struct byway_queue *self);

/**
 * One reference less. Never blocks. NULL is fine. The descriptor is closed when neither the host nor an engine holds
 * the queue any more.
 */
BYWAY_API
void byway_queue_release(struct byway_queue *self);

/**
 * A descriptor for the host's own loop: readable, level-triggered, while something is queued or a deadline has
 * passed. Then call `byway_queue_poll`. Made on first use.
 *
 * Ownership: the queue's; must not be read, written or closed.
 * Errors: `BYWAY_E_RESOURCES` when the process has no descriptors left.
 */
BYWAY_API
byway_status byway_queue_fd(struct byway_queue *self,
                            int32_t *out);

/**
 * Sets what is called when the queue goes from empty to non-empty, also at once when it is not empty now. NULL takes
 * it back. The previous set is destroyed.
 *
 * Threads: any; `notify` itself is called on any thread.
 * Errors: `BYWAY_E_NULL` without `notify`, `BYWAY_E_STRUCT_SIZE`.
 */
BYWAY_API
byway_status byway_queue_set_notify(struct byway_queue *self,
                                    const struct byway_notify_callbacks *callbacks,
                                    struct byway_error **err);

/**
 * Milliseconds until the next deadline: 0 when it has passed, -1 when there is none. For hosts that cannot watch a
 * descriptor.
 */
BYWAY_API
byway_status byway_queue_deadline(struct byway_queue *self,
                                  int64_t *out_ms);

/**
 * Waits for something to do, runs the callbacks that were queued at that moment on this thread, and fills completion
 * records that were there, at most `cap` of `stride` bytes each. `*n` gets their number. With `*n == cap` there may
 * be more.
 *
 * `timeout_ms`: 0 = do not wait, negative = 30 s.
 * Threads: one poller at a time.
 * Errors: `BYWAY_E_BUSY` while another thread polls, `BYWAY_E_REENTRANT` from inside a callback of an engine that
 * uses this queue.
 */
BYWAY_API
byway_status byway_queue_poll(struct byway_queue *self,
                              int64_t timeout_ms,
                              struct byway_completion *records,
                              size_t stride,
                              size_t cap,
                              size_t *n,
                              struct byway_error **err);

/**
 * Ends a running poll, or the next one, at once.
 *
 * Threads: any.
 */
BYWAY_API byway_status byway_queue_wakeup(struct byway_queue *self);

/**
 * Events dropped because the queue was full, since it was made.
 */
BYWAY_API uint64_t byway_queue_lost(struct byway_queue *self);

/**
 * Sets every option to its default.
 */
BYWAY_API void byway_engine_options_init(struct byway_engine_options *options);

/**
 * Makes an engine. `options` may be NULL.
 *
 * Ownership: the caller owns one reference.
 * Threads: any.
 * Errors: `BYWAY_E_STRUCT_SIZE`, `BYWAY_E_ENUM`, `BYWAY_E_ARGUMENT`, `BYWAY_E_BAD_HANDLE` for the queue.
 */
BYWAY_API
byway_status byway_engine_new(const struct byway_engine_options *options,
                              struct byway_engine **out,
                              struct byway_error **err);

/**
 * One more reference; returns its argument, NULL for what is not a live engine.
 */
BYWAY_API struct byway_engine *byway_engine_retain(struct byway_engine *self);

/**
 * One reference less. The last one never blocks: it cancels what is running, detaches and returns; callback sets are
 * destroyed as their last owners go. Call `byway_engine_shutdown` before it to know when host code no longer runs.
 * NULL is fine.
 */
BYWAY_API
void byway_engine_release(struct byway_engine *self);

/**
 * Ends the engine: cancels every operation, waits up to `timeout_ms` for running callbacks, runs every outstanding
 * `destroy`. Idempotent. After `BYWAY_OK` no callback and no `destroy` of this engine ever runs, and its handles
 * answer `BYWAY_E_SHUTDOWN`. `BYWAY_PENDING`: a callback still runs; call again.
 *
 * `timeout_ms`: 0 = do not wait, negative = the engine's default.
 * Threads: any, but not from inside a callback of this engine.
 * Errors: `BYWAY_E_REENTRANT`.
 */
BYWAY_API
byway_status byway_engine_shutdown(struct byway_engine *self,
                                   int64_t timeout_ms,
                                   struct byway_error **err);

/**
 * The engine's queue.
 *
 * Ownership: the caller owns one reference; NULL for what is not a live engine.
 */
BYWAY_API struct byway_queue *byway_engine_queue(struct byway_engine *self);

/**
 * Makes a list from `count` provider URLs in the host's order. `tags` may be NULL: then a tag is its URL's index.
 * Otherwise `tags[i]` belongs to `urls[i]`; no tag may be 0 or occur twice. `callbacks` may be NULL.
 *
 * URLs are raw or merged. `disabled=true` and `enabled=false` rows are skipped, `empty://` clears what came before.
 *
 * Ownership: the caller owns one reference. The set is taken over, also when the call fails.
 * Errors: `BYWAY_E_INVOKERS` naming the first bad index; nothing is made then.
 */
BYWAY_API
byway_status byway_invokers_new(struct byway_engine *engine,
                                const struct byway_str *urls,
                                const uint64_t *tags,
                                size_t count,
                                uint32_t flags,
                                const struct byway_invokers_callbacks *callbacks,
                                struct byway_invokers **out,
                                struct byway_error **err);

/**
 * One more reference; returns its argument, NULL for what is not a live list.
 */
BYWAY_API struct byway_invokers *byway_invokers_retain(struct byway_invokers *self);

/**
 * One reference less. Chains and choices that use the list keep it. NULL is fine.
 */
BYWAY_API void byway_invokers_release(struct byway_invokers *self);

/**
 * Number of providers; 0 for what is not a live list.
 */
BYWAY_API size_t byway_invokers_len(const struct byway_invokers *self);

/**
 * The tag of a row.
 *
 * Errors: `BYWAY_E_NOT_FOUND` past the end.
 */
BYWAY_API
byway_status byway_invokers_tag(const struct byway_invokers *self,
                                size_t row,
                                uint64_t *tag);

/**
 * The URL text of a row, if the list was made with `BYWAY_INVOKERS_KEEP_URLS`.
 *
 * Ownership: the caller owns the text.
 * Errors: `BYWAY_E_NOT_FOUND` past the end or when no texts were kept.
 */
BYWAY_API
byway_status byway_invokers_url(const struct byway_invokers *self,
                                size_t row,
                                struct byway_text **out,
                                struct byway_error **err);

/**
 * A number no other list of this process has; 0 for what is not a live list.
 */
BYWAY_API uint64_t byway_invokers_generation(const struct byway_invokers *self);

/**
 * Starts a list. `base` may be NULL: a whole list; otherwise an update of that list, which stays as it is. What the
 * update does not touch is shared with it. `callbacks` may be NULL; an update then goes on with the set of `base`.
 *
 * Ownership: the caller owns it; free with `byway_invokers_builder_free`. The set is taken over, also when the call
 * fails.
 * Errors: `BYWAY_E_ENUM` for unknown flags, `BYWAY_E_STRUCT_SIZE`.
 */
BYWAY_API
byway_status byway_invokers_builder_new(struct byway_engine *engine,
                                        const struct byway_invokers *base,
                                        uint32_t flags,
                                        const struct byway_invokers_callbacks *callbacks,
                                        struct byway_invokers_builder **out,
                                        struct byway_error **err);

/**
 * Adds a provider at the end.
 *
 * Errors: `BYWAY_E_INVOKERS` for an unparsable URL, a tag of 0 or one that is in the list; the whole list is then
 * refused by `finish` with the first of them.
 */
BYWAY_API
byway_status byway_invokers_builder_add(struct byway_invokers_builder *self,
                                        const char *url,
                                        size_t len,
                                        uint64_t tag,
                                        struct byway_error **err);

/**
 * Adds `count` providers at the end. `tags` may be NULL: then a tag is its URL's index among all URLs given.
 *
 * Errors: as `byway_invokers_builder_add`; those before the bad one have been added.
 */
BYWAY_API
byway_status byway_invokers_builder_add_many(struct byway_invokers_builder *self,
                                             const struct byway_str *urls,
                                             const uint64_t *tags,
                                             size_t count,
                                             struct byway_error **err);

/**
 * Replaces the URL of the provider with this tag in its place, or adds it at the end.
 *
 * Errors: as `byway_invokers_builder_add`.
 */
BYWAY_API
byway_status byway_invokers_builder_set(struct byway_invokers_builder *self,
                                        const char *url,
                                        size_t len,
                                        uint64_t tag,
                                        struct byway_error **err);

/**
 * Takes the provider with this tag out.
 *
 * Errors: `BYWAY_E_NOT_FOUND` when there is none; the list stays usable.
 */
BYWAY_API
byway_status byway_invokers_builder_remove(struct byway_invokers_builder *self,
                                           uint64_t tag,
                                           struct byway_error **err);

/**
 * Makes the list. The builder is used up, whatever comes of it, and can only be freed.
 *
 * Ownership: the caller owns one reference.
 * Errors: the first refusal of a URL or tag; `BYWAY_E_STATE` when it has finished before.
 */
BYWAY_API
byway_status byway_invokers_builder_finish(struct byway_invokers_builder *self,
                                           struct byway_invokers **out,
                                           struct byway_error **err);

/**
 * Ends a builder, finished or not. NULL is fine.
 *
 * Threads: any.
 */
BYWAY_API void byway_invokers_builder_free(struct byway_invokers_builder *self);

/**
 * Makes an empty invocation.
 *
 * Ownership: the caller owns it; free with `byway_invocation_free`.
 * Errors: `BYWAY_E_FORKED`.
 */
BYWAY_API
byway_status byway_invocation_new(struct byway_invocation **out,
                                  struct byway_error **err);

/**
 * Forgets everything set, keeps the memory, and makes the calling thread the owner.
 *
 * Errors: `BYWAY_E_BUSY` while its thread is inside a call on it.
 */
BYWAY_API byway_status byway_invocation_reset(struct byway_invocation *self);

/**
 * Sets the method name as called, for example `sayHello` or `$invoke`. Borrowed. `len` may be `BYWAY_NUL`.
 */
BYWAY_API
byway_status byway_invocation_set_method(struct byway_invocation *self,
                                         const char *name,
                                         size_t len);

/**
 * Sets the method by a number from `byway_chain_intern_method`.
 *
 * Errors: `BYWAY_E_NOT_FOUND` for a number nobody was given.
 */
BYWAY_API
byway_status byway_invocation_set_method_id(struct byway_invocation *self,
                                            uint32_t method_id);

/**
 * Sets the names of the parameter types, in order. Borrowed; the array itself is not.
 */
BYWAY_API
byway_status byway_invocation_set_types(struct byway_invocation *self,
                                        const struct byway_str *types,
                                        size_t count);

/**
 * Sets the arguments by their text form, in order. Borrowed; the array itself is not. A null argument is
 * `{NULL, BYWAY_NUL}`. Of a generic call (`$invoke`) the first argument is the method that is meant, the second
 * stands for the types, and those behind it are that method's own arguments.
 */
BYWAY_API
byway_status byway_invocation_set_arguments(struct byway_invocation *self,
                                            const struct byway_str *values,
                                            size_t count);

/**
 * Sets one attachment; one of the same key is replaced. Borrowed. The lengths may be `BYWAY_NUL`.
 */
BYWAY_API
byway_status byway_invocation_set_attachment(struct byway_invocation *self,
                                             const char *key,
                                             size_t key_len,
                                             const char *value,
                                             size_t value_len);

/**
 * Sets many attachments: key, value, key, value, ... `count` texts. As `byway_invocation_set_attachment`.
 *
 * Errors: `BYWAY_E_ARGUMENT` for an odd count.
 */
BYWAY_API
byway_status byway_invocation_set_attachments(struct byway_invocation *self,
                                              const struct byway_str *texts,
                                              size_t count);

/**
 * Ends an invocation. NULL is fine.
 *
 * Threads: any.
 */
BYWAY_API void byway_invocation_free(struct byway_invocation *self);

/**
 * Sets the text of the rule with this key, whether or not a chain wants it yet. When the call returns, every chain
 * that wants the key routes by it; routes running meanwhile see the world before or after, never a mixture.
 *
 * Errors: `BYWAY_E_NOT_FOUND` when no kind of rule has such keys; otherwise why the text was refused, with line and
 * column. A refused text leaves the last good rule in force (unless the dialect drops it).
 */
BYWAY_API
byway_status byway_engine_set_rule(struct byway_engine *self,
                                   const char *key,
                                   size_t key_len,
                                   const char *text,
                                   size_t text_len,
                                   struct byway_error **err);

/**
 * Removes the rule with this key from every chain.
 *
 * Errors: `BYWAY_E_NOT_FOUND` when there is none.
 */
BYWAY_API
byway_status byway_engine_remove_rule(struct byway_engine *self,
                                      const char *key,
                                      size_t key_len,
                                      struct byway_error **err);

/**
 * The key under which a configuration centre holds a rule of this kind (`BYWAY_RULE_*`) for a service:
 * `interface:[version]:[group]` and the kind's suffix. `version` and `group` may be empty. With an `application` and
 * no `interface` it is the application's key.
 *
 * Ownership: the caller owns the text.
 * Errors: `BYWAY_E_ENUM`; `BYWAY_E_ARGUMENT` when neither or both are given, or for tag rules of a service.
 */
BYWAY_API
byway_status byway_rule_key(int32_t dialect,
                            int32_t kind,
                            const char *application,
                            size_t application_len,
                            const char *interface,
                            size_t interface_len,
                            const char *version,
                            size_t version_len,
                            const char *group,
                            size_t group_len,
                            struct byway_text **out,
                            struct byway_error **err);

/**
 * Makes a router. `name` is what `router=` lists, explanations and errors call it; routers run in ascending
 * `priority`, equal ones in the order they were added. `flags`: 0 (only chains it is added to),
 * `BYWAY_ROUTER_EVERY_CHAIN` or `BYWAY_ROUTER_BY_NAME`, for as long as the handle lives.
 *
 * Ownership: the caller owns one reference; chains that use it keep it. The set is taken over, also when the call
 * fails.
 * Errors: `BYWAY_E_ARGUMENT` for an unusable name, `BYWAY_E_DUPLICATE` for a taken one.
 */
BYWAY_API
byway_status byway_router_new(struct byway_engine *engine,
                              const char *name,
                              size_t name_len,
                              int64_t priority,
                              uint32_t flags,
                              const struct byway_router_callbacks *callbacks,
                              struct byway_router **out,
                              struct byway_error **err);

/**
 * One more reference; returns its argument, NULL for what is not a live router.
 */
BYWAY_API struct byway_router *byway_router_retain(struct byway_router *self);

/**
 * One reference less. Chains that use the router keep it. NULL is fine.
 */
BYWAY_API void byway_router_release(struct byway_router *self);

/**
 * An attachment of the call a router is asked about. The text may lack a NUL behind it.
 *
 * Ownership: borrowed, valid until the callback returns.
 * Errors: `BYWAY_E_NOT_FOUND` when the call has no such attachment.
 */
BYWAY_API
byway_status byway_router_request_attachment(const struct byway_router_request *request,
                                             const char *key,
                                             size_t key_len,
                                             struct byway_str *out);

/**
 * An argument of the call a router is asked about, by its text; `{NULL, 0}` for a null argument. The text may lack a
 * NUL behind it.
 *
 * Ownership: borrowed, valid until the callback returns.
 * Errors: `BYWAY_E_NOT_FOUND` behind the last one.
 */
BYWAY_API
byway_status byway_router_request_argument(const struct byway_router_request *request,
                                           size_t index,
                                           struct byway_str *out);

/**
 * How many providers may serve the call; 0 for what is not a live choice.
 */
BYWAY_API size_t byway_choice_len(const struct byway_choice *self);

/**
 * The tag of one of them, in list order, from 0.
 *
 * Errors: `BYWAY_E_NOT_FOUND` past the end.
 */
BYWAY_API
byway_status byway_choice_tag_at(const struct byway_choice *self,
                                 size_t index,
                                 uint64_t *tag);

/**
 * Copies the tags, in list order: as many as fit into `cap`, and how many there are into `*total`. `(NULL, 0)`
 * counts.
 */
BYWAY_API
byway_status byway_choice_tags(const struct byway_choice *self,
                               uint64_t *tags,
                               size_t cap,
                               size_t *total);

/**
 * Number of the world (list and rules) that answered; grows with every change of its chain.
 */
BYWAY_API uint64_t byway_choice_generation(const struct byway_choice *self);

/**
 * Name of the router that left no provider.
 *
 * Ownership: the caller owns the text.
 * Errors: `BYWAY_DONE` and no text when there are providers, or were none to begin with.
 */
BYWAY_API
byway_status byway_choice_emptied_by(const struct byway_choice *self,
                                     struct byway_text **out,
                                     struct byway_error **err);

/**
 * Ends a choice from `byway_chain_route`. NULL is fine.
 */
BYWAY_API void byway_choice_free(struct byway_choice *self);

/**
 * Sets every option to its default.
 */
BYWAY_API void byway_chain_options_init(struct byway_chain_options *options);

/**
 * Sets every option to its default.
 */
BYWAY_API void byway_pick_options_init(struct byway_pick_options *options);

/**
 * Sets every field to its default: a success whose length the engine measures, without a report.
 */
BYWAY_API void byway_call_result_init(struct byway_call_result *result);

/**
 * Makes a chain for a consumer URL (`consumer://host/interface?application=...`), with the built-in routers of its
 * dialect and the engine's routers, without providers. It follows the engine's rules, also those set before.
 * `options` may be NULL.
 *
 * Ownership: the caller owns one reference.
 * Errors: `BYWAY_E_INVALID_URL`; `BYWAY_E_RULE` when the URL carries a static rule that is unusable.
 */
BYWAY_API
byway_status byway_chain_new(struct byway_engine *engine,
                             const char *consumer_url,
                             size_t len,
                             const struct byway_chain_options *options,
                             struct byway_chain **out,
                             struct byway_error **err);

/**
 * One more reference; returns its argument, NULL for what is not a live chain.
 */
BYWAY_API struct byway_chain *byway_chain_retain(struct byway_chain *self);

/**
 * One reference less. Sessions and choices keep what they need. NULL is fine.
 */
BYWAY_API void byway_chain_release(struct byway_chain *self);

/**
 * Gives the chain another provider list. When the call returns, calls route over it, under the rules in force then.
 * `*generation` (may be NULL) gets the number of a world that has the list.
 *
 * Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_chain_set_invokers(struct byway_chain *self,
                                      struct byway_invokers *invokers,
                                      uint64_t *generation,
                                      struct byway_error **err);

/**
 * Adds a host's router. When the call returns, calls ask it.
 *
 * Errors: `BYWAY_E_DUPLICATE` when the chain has a router of its name.
 */
BYWAY_API
byway_status byway_chain_add_router(struct byway_chain *self,
                                    struct byway_router *router,
                                    struct byway_error **err);

/**
 * Replaces the chain's static rules by those in `count` URLs: `condition://...?rule=...` or `route://...` with
 * `router=condition`, as a registry notifies them. An `empty://` URL is skipped, so `count` 0 or an `empty://` alone
 * takes all away.
 *
 * Errors: the first unusable URL, named by its index; nothing changes then.
 */
BYWAY_API
byway_status byway_chain_set_rule_urls(struct byway_chain *self,
                                       const struct byway_str *urls,
                                       size_t count,
                                       struct byway_error **err);

/**
 * Routes a call.
 *
 * Ownership: the caller owns the choice; free with `byway_choice_free`.
 * Errors: what a host's router failed with. An empty result is no error, see `byway_choice_emptied_by`.
 */
BYWAY_API
byway_status byway_chain_route(struct byway_chain *self,
                               const struct byway_invocation *invocation,
                               struct byway_choice **out,
                               struct byway_error **err);

/**
 * Routes a call and copies the tags of the providers that may serve it, in list order: as many as fit into `cap`, and
 * how many there are into `*total`. `(NULL, 0)` counts. `*generation` (may be NULL) gets the number of the world that
 * answered.
 *
 * Errors: what a host's router failed with.
 */
BYWAY_API
byway_status byway_chain_route_tags(struct byway_chain *self,
                                    const struct byway_invocation *invocation,
                                    uint64_t *tags,
                                    size_t cap,
                                    size_t *total,
                                    uint64_t *generation,
                                    struct byway_error **err);

/**
 * Routes `count` calls over one world. `totals[i]` gets how many providers may serve call `i`, and `tags + i * cap`
 * as many of their tags as fit into `cap`. `tags` may be NULL with `cap` 0.
 *
 * Errors: what a host's router failed with, for the first call that failed; those before it have been answered.
 */
BYWAY_API
byway_status byway_chain_route_many(struct byway_chain *self,
                                    const struct byway_invocation *const *invocations,
                                    size_t count,
                                    uint64_t *tags,
                                    size_t cap,
                                    size_t *totals,
                                    uint64_t *generation,
                                    struct byway_error **err);

/**
 * Routes a call and picks one provider: the sticky one, else the load balance's choice, and if that was tried before
 * or cannot be called, another one. `options` may be NULL.
 *
 * Errors: `BYWAY_E_NO_INVOKER`, naming the router that left nothing; `BYWAY_E_STATE` when `available` was noted for
 * another list; `BYWAY_E_INVOKERS` when the providers name an unknown load balance or an unusable hash ring; what a
 * host's router failed with.
 */
BYWAY_API
byway_status byway_chain_pick(struct byway_chain *self,
                              const struct byway_invocation *invocation,
                              const struct byway_pick_options *options,
                              struct byway_picked *out,
                              struct byway_error **err);

/**
 * Ends a call picked through any chain of this engine, so that calls in flight and response times are known. `ok` 1 =
 * answered without a failure; `latency_ns` negative = from pick to now. A ticket of 0, one ended before or one of a
 * provider that is gone does no harm: `BYWAY_DONE`.
 */
BYWAY_API
byway_status byway_chain_pick_end(struct byway_chain *self,
                                  uint64_t ticket,
                                  int32_t ok,
                                  int64_t latency_ns);

/**
 * As `byway_chain_pick_end`, with what the provider reported about itself.
 *
 * Errors: `BYWAY_E_STRUCT_SIZE`, `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_chain_pick_end_with(struct byway_chain *self,
                                       uint64_t ticket,
                                       const struct byway_call_result *result,
                                       struct byway_error **err);

/**
 * Keys of the rules the chain wants at the moment, one a line, in router order. They depend on the first provider's
 * application.
 *
 * Ownership: the caller owns the text.
 * Errors: `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_chain_keys(struct byway_chain *self,
                              struct byway_text **out,
                              struct byway_error **err);

/**
 * How each router stands, as JSON: name, priority, key, revision, version, in force, last error with its place.
 *
 * Ownership: the caller owns the text.
 * Errors: `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_chain_status(struct byway_chain *self,
                                struct byway_text **out,
                                struct byway_error **err);

/**
 * Number of the current world; grows with every change of list, rules or routers. 0 for what is not a live chain.
 */
BYWAY_API
uint64_t byway_chain_generation(const struct byway_chain *self);

/**
 * Gives a method name a number for `byway_invocation_set_method_id`. The same name has the same number in every chain
 * of the process, for ever. Meant for the methods of an interface, not for names from the network.
 *
 * Errors: `BYWAY_E_ARGUMENT` for an empty or over-long name, `BYWAY_E_LIMIT` after 65 536 names.
 */
BYWAY_API
byway_status byway_chain_intern_method(struct byway_chain *self,
                                       const char *name,
                                       size_t len,
                                       uint32_t *method_id,
                                       struct byway_error **err);

/**
 * Makes a session of the calling thread, with a random stream of its own.
 *
 * Ownership: the caller owns it; free with `byway_session_free`.
 * Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_session_new(struct byway_chain *chain,
                               struct byway_session **out,
                               struct byway_error **err);

/**
 * Routes a call. For a class of calls seen before this copies nothing, allocates nothing and takes no lock.
 *
 * Ownership: `*out` is borrowed and shows this result until the session's next call.
 * Errors: `BYWAY_E_BUSY` on another thread; what a host's router failed with. An empty result is no error, see
 * `byway_choice_emptied_by`.
 */
BYWAY_API
byway_status byway_session_route(struct byway_session *self,
                                 const struct byway_invocation *invocation,
                                 const struct byway_choice **out,
                                 struct byway_error **err);

/**
 * Routes a call and picks one provider. `options` may be NULL.
 *
 * Errors: `BYWAY_E_BUSY` on another thread; otherwise as `byway_chain_pick`.
 */
BYWAY_API
byway_status byway_session_pick(struct byway_session *self,
                                const struct byway_invocation *invocation,
                                const struct byway_pick_options *options,
                                struct byway_picked *out,
                                struct byway_error **err);

/**
 * Makes the calling thread the owner.
 *
 * Errors: `BYWAY_E_BUSY` while the owner is inside a call.
 */
BYWAY_API byway_status byway_session_adopt(struct byway_session *self, struct byway_error **err);

/**
 * Lets go of the world the session pins, for a thread that will not route for a while. The lent choice shows nothing
 * from then on; the next call pins the current world.
 *
 * Errors: `BYWAY_E_BUSY` on another thread.
 */
BYWAY_API
byway_status byway_session_idle(struct byway_session *self,
                                struct byway_error **err);

/**
 * Ends a session. NULL is fine.
 *
 * Threads: any; a call that is running ends first.
 */
BYWAY_API void byway_session_free(struct byway_session *self);

/* Every field of each options struct at its default; equal to what the _init functions set. */
#define BYWAY_QUEUE_OPTIONS_INIT \
    { sizeof(byway_queue_options), /* flags */ 0, /* capacity */ 0 }
#define BYWAY_NOTIFY_CALLBACKS_INIT \
    { sizeof(byway_notify_callbacks), /* user_data */ NULL, /* destroy */ NULL, /* notify */ NULL }
#define BYWAY_ENGINE_OPTIONS_INIT \
    { sizeof(byway_engine_options), /* queue */ NULL, /* seed */ 0, /* flags */ 0, \
      /* compat */ BYWAY_COMPAT_BYWAY, /* default_timeout_ms */ 0, /* postpone_for_ms */ -1, \
      /* postpone_at_most_ms */ -1, /* database_capacity */ 0, \
      /* commit_failures */ BYWAY_COMMIT_ALWAYS, /* dialect */ BYWAY_DIALECT_BYWAY, \
      /* reserved */ 0 }
#define BYWAY_INVOKERS_CALLBACKS_INIT \
    { sizeof(byway_invokers_callbacks), /* user_data */ NULL, /* destroy */ NULL }
#define BYWAY_ROUTER_CALLBACKS_INIT \
    { sizeof(byway_router_callbacks), /* user_data */ NULL, /* destroy */ NULL, /* route */ NULL }
#define BYWAY_CHAIN_OPTIONS_INIT \
    { sizeof(byway_chain_options), /* dialect */ -1, /* flags */ 0, /* memo_bytes */ 0 }
#define BYWAY_PICK_OPTIONS_INIT \
    { sizeof(byway_pick_options), /* balance */ 0, /* flags */ 0, /* available */ NULL, \
      /* available_words */ 0, /* available_list */ 0, /* exclude */ NULL, /* exclude_count */ 0 }
#define BYWAY_CALL_RESULT_INIT \
    { sizeof(byway_call_result), /* ok */ 1, /* has_report */ 0, /* latency_ns */ -1, \
      /* report_time_ms */ 0, /* report_load */ 0.0, /* report_latency_ms */ 0.0 }

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* BYWAY_H */
