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
 * stray pointer is undefined behaviour. A call needs a reference of the caller's that lasts as long as the call:
 * releasing the last reference of a shared handle while another thread is inside a call with it is a fault of the
 * program, like any use after free. (_free of an exclusive handle during a call is legal, as said above.)
 *
 * Parameters.  First self, then inputs, then outputs, last `byway_error **err`, which may be NULL: then no error
 * object is made. Outputs are cleared on entry; *err is overwritten, never freed. `T **out`: the caller owns one
 * reference. `const T **out` and *_at: borrowed from self.
 *
 * Strings in.  Pointer and length; the length BYWAY_NUL means "up to the first NUL"; (NULL, 0) is empty. Hosts and rule
 * texts must be UTF-8, invocation strings are bytes. They are copied or used up before the call returns;
 * only byway_invocation_set_* borrow theirs, until they are replaced, reset or freed.
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
 * Callbacks.  user_data first, last the call's context; texts they are given are followed by a NUL too. They run only on
 * a thread that is itself inside a byway call (with BYWAY_CALLBACKS_ANY_THREAD events and destroys also on one of
 * byway's), with no lock of byway's held. They must return: no longjmp, no exception, no thread exit. Any status that is not BYWAY_OK, BYWAY_PENDING, BYWAY_PASS or negative counts as BYWAY_E_HOST.
 * From inside a callback: retain, release, free, cancel and getters always; a nested selector to depth 8; shutdown of
 * the same engine and poll of the same queue never (BYWAY_E_REENTRANT).
 * destroy runs exactly once, on a host's thread inside a byway call: when the set is no longer in use and its last
 * call has returned, on replacement, when registering fails, and for all that is left in shutdown.
 *
 * Fork.  In a child, values (error, text, address, route, proxy, filter, choice) keep working, and so does what is made
 * of bytes alone (invocation, handshake); every other handle answers BYWAY_E_FORKED, no engine or queue can be made, and
 * release and free run no host code.
 *
 * Process.  No signal handlers, no changes to the environment, nothing on stdout or stderr, no atexit. Threads are made
 * on first need, named byway-*, bounded.
 *
 * Threads.  "any" when nothing else is said.
 *
 * CONTENTS.  Constants, handles, structs, statuses; then functions, by the first one of each part; last every struct at
 * its defaults (_INIT).
 *
 * byway_abi_version                   Questions about the library itself: version, features, layout, the meaning of a status.
 * byway_error_code                    `byway_error`: what a person reads, as an object of its own.
 * byway_text_str                      `byway_text`: a text the caller owns.
 * byway_call_engine                   `byway_call`: what a callback learns about the call it serves.
 * byway_queue_options_init            `byway_queue`: one event loop's inbox.
 * byway_engine_options_init           `byway_engine`: the one thing a host holds.
 * byway_host_canonical                Host texts and IP addresses, on their own.
 * byway_filter_new                    `byway_filter`: CIDR allow and deny rules.
 * byway_proxy_new                     `byway_proxy`: one intermediary and the credentials it alone may see.
 * byway_dns_new                       `byway_dns`: who resolves names, and `byway_dns_request`: one question and its answer.
 * byway_proxy_selector_new            `byway_proxy_selector`: who chooses proxies, and `byway_proxy_request`: one question and its answer.
 * byway_proxy_selector_new_environment  Proxy selectors of this library that answer at once: environment, Java system properties, Windows' settings.
 * byway_bypass_options_init           Proxy selectors made of others: exceptions around one, one per scheme, one per pattern.
 * byway_pac_options_init              Proxy selectors that ask a proxy auto-configuration script.
 * byway_system_options_init           The proxy selector of the system's settings.
 * byway_engine_proxies_for_url        Questions to proxy selectors outside a connection, and what an engine knows about proxies that fail.
 * byway_address_options_init          `byway_address`: where a host wants to go, and `byway_ip`.
 * byway_route_new                     `byway_route`: one way to an address.
 * byway_selection_len                 `byway_selection`: some routes of a selector, and a cursor over them.
 * byway_selector_options_init         `byway_selector`: which routes to try, Selection by Selection.
 * byway_dial_options_init             What a dial is made with: `byway_dial_options`.
 * byway_dial_new                      `byway_dial`: from routes to a connected socket.
 * byway_handshake_new                 `byway_handshake`: the dialogue with a proxy over a connection the host runs itself.
 * byway_engine_add_listener           `byway_listener`: who hears of events.
 * byway_engine_connected              `byway_engine`, first half: what became of routes, the route database, and decisions after a failure.
 * byway_invokers_new                  `byway_invokers` and `byway_invokers_builder`: an immutable provider list, and what makes one.
 * byway_invocation_new                `byway_invocation`: one call to be routed.
 * byway_engine_set_rule               Rules by key, and what can be said of a rule text without a chain.
 * byway_router_new                    `byway_router`: a host's own router.
 * byway_choice_len                    `byway_choice`: a routing result.
 * byway_chain_options_init            `byway_chain`: routers over one provider list for one consumer.
 * byway_chain_explain                 What a chain says about its calls: explanations, the last ones kept, what a proposed rule would change.
 * byway_session_new                   `byway_session`: routing on one thread, for next to nothing per call.
 * byway_zookeeper_options_init        `byway_source`: where rules and provider lists come from.
 * byway_bind_options_init             Chains that follow a source.
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
 * A parameter of the call.
 */
#define BYWAY_ERROR_SOURCE_ARGUMENT 0

/**
 * Host code.
 */
#define BYWAY_ERROR_SOURCE_CALLBACK 1

/**
 * A parser of this library: hosts, rules, URLs, JSON.
 */
#define BYWAY_ERROR_SOURCE_PARSER 2

/**
 * The operating system, about a socket or a name.
 */
#define BYWAY_ERROR_SOURCE_SOCKET 3

/**
 * A user's script.
 */
#define BYWAY_ERROR_SOURCE_SCRIPT 4

/**
 * A defect in this library.
 */
#define BYWAY_ERROR_SOURCE_PANIC 5

/**
 * The library's own state: cancel, timeout, shutdown, limits.
 */
#define BYWAY_ERROR_SOURCE_ENGINE 6

/**
 * An explanation or report as one JSON object or list.
 */
#define BYWAY_FORMAT_JSON 0

/**
 * As text for people.
 */
#define BYWAY_FORMAT_TEXT 1

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
 * The first state of a source is in force in a chain. (2 is retired: dials post no records.)
 */
#define BYWAY_COMPLETION_SOURCE 3

/**
 * Events of rules, chains and sources are told at once, on byway's own thread `byway-callbacks`, one at a time and without
 * anybody polling; a set whose last owner was a thread of byway's is destroyed there. Without it all of this waits for a
 * thread of the host's to poll the queue. Every other callback runs on the thread of the call it serves.
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
 * Keep the resolver's order of addresses; without it families alternate, IPv6 first.
 */
#define BYWAY_ROUTING_NO_FAST_FALLBACK 1

/**
 * Ask the resolver for IP literals too.
 */
#define BYWAY_ROUTING_RESOLVE_LITERALS 2

/**
 * An empty proxy list means DIRECT, not an error.
 */
#define BYWAY_ROUTING_EMPTY_IS_DIRECT 4

/**
 * Refuse targets whose address byway never sees, because a proxy resolves the name.
 */
#define BYWAY_ROUTING_DENY_UNRESOLVED_TARGETS 8

/**
 * Try an address that a resolver names twice only once.
 */
#define BYWAY_ROUTING_DEDUPLICATE 16

/**
 * A proxy selector that fails is an error.
 */
#define BYWAY_ON_PROXY_SELECTOR_ERROR_FAIL 0

/**
 * A proxy selector that fails means DIRECT.
 */
#define BYWAY_ON_PROXY_SELECTOR_ERROR_DIRECT 1

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
 * IPv6 first, as OkHttp and RFC 8305.
 */
#define BYWAY_FIRST_FAMILY_V6 0

/**
 * IPv4 first.
 */
#define BYWAY_FIRST_FAMILY_V4 1

/**
 * The family of the first address first.
 */
#define BYWAY_FIRST_FAMILY_FIRST_ADDRESS 2

/**
 * No proxy.
 */
#define BYWAY_PROXY_DIRECT 0

/**
 * HTTP proxy; `CONNECT` where a tunnel is needed.
 */
#define BYWAY_PROXY_HTTP 1

/**
 * HTTP proxy reached over TLS.
 */
#define BYWAY_PROXY_HTTPS 2

/**
 * SOCKS4: the target is resolved here, IPv4 only.
 */
#define BYWAY_PROXY_SOCKS4 3

/**
 * SOCKS4a: the proxy resolves.
 */
#define BYWAY_PROXY_SOCKS4A 4

/**
 * SOCKS5: the target is resolved here.
 */
#define BYWAY_PROXY_SOCKS5 5

/**
 * SOCKS5: the proxy resolves.
 */
#define BYWAY_PROXY_SOCKS5H 6

/**
 * Chromium's rules: `*.corp`, `.corp`, `https://x:8443`, `10.0.0.0/8`, `<local>`, `<-loopback>`, separated by `,` or `;`;
 * later entries override earlier ones. A plain name is that name only.
 */
#define BYWAY_BYPASS_BROWSER 0

/**
 * The same where plain names also cover everything they are a suffix of.
 */
#define BYWAY_BYPASS_BROWSER_SUFFIX 1

/**
 * The `ProxyOverride` value of Windows: the same, also separated by blanks.
 */
#define BYWAY_BYPASS_WINDOWS 2

/**
 * The exceptions of macOS: names, `*` patterns, addresses, networks whose trailing octets may be missing (`169.254/16`),
 * separated by `,` or line breaks. Loopback is no exception by itself.
 */
#define BYWAY_BYPASS_MACOS 3

/**
 * `NO_PROXY` in the reading of `dialect`.
 */
#define BYWAY_BYPASS_NO_PROXY 4

/**
 * The listed hosts are the only ones that are proxied.
 */
#define BYWAY_BYPASS_REVERSED 1

/**
 * Loopback (and in the browser styles link-local) hosts are no exceptions by themselves. In the `NO_PROXY` style it counts
 * in the dialect `byway`; the others have rules of their own.
 */
#define BYWAY_BYPASS_PROXY_LOOPBACK 2

/**
 * `NO_PROXY`, dialect `byway`: `.x.com` covers what is below `x.com` only.
 */
#define BYWAY_BYPASS_STRICT_DOT 4

/**
 * `NO_PROXY`, dialect `byway`: blanks separate entries too.
 */
#define BYWAY_BYPASS_BLANK_SEPARATES 8

/**
 * macOS: names without a dot are exceptions.
 */
#define BYWAY_BYPASS_EXCLUDE_SIMPLE 16

/**
 * `FindProxyForURLEx` is called when the script defines it, as on Windows.
 */
#define BYWAY_PAC_EX 1

/**
 * The keyword `SOCKS` means SOCKS 5; without it SOCKS 4, as in browsers.
 */
#define BYWAY_PAC_SOCKS_IS_5 2

/**
 * An answer that names no usable proxy means DIRECT, as in browsers; without it that is an error.
 */
#define BYWAY_PAC_EMPTY_IS_DIRECT 4

/**
 * The script is asked about loopback hosts too; without it they are DIRECT.
 */
#define BYWAY_PAC_ASK_LOOPBACK 8

/**
 * `dateRange` and `timeRange` do what they do in browsers; without it what they say: `timeRange(22, 6)` passes midnight.
 */
#define BYWAY_PAC_BROWSER_CALENDAR 16

/**
 * Local time is `utc_offset_minutes` east of UTC; without it the system's.
 */
#define BYWAY_PAC_FIXED_ZONE 32

/**
 * TLS to the origin.
 */
#define BYWAY_ADDRESS_TLS 1

/**
 * No proxy, and nobody is asked; differs from saying nothing.
 */
#define BYWAY_ADDRESS_DIRECT 2

/**
 * It failed before and was put behind the others.
 */
#define BYWAY_ROUTE_POSTPONED 1

/**
 * An HTTP proxy must first be asked for a tunnel.
 */
#define BYWAY_ROUTE_REQUIRES_TUNNEL 2

/**
 * The proxy resolves the target's name; else the target is an address.
 */
#define BYWAY_ROUTE_TARGET_IS_NAME 4

/**
 * The proxy selector chose the proxy.
 */
#define BYWAY_ROUTE_FROM_SELECTOR 8

/**
 * The address filter has not seen the target, because the proxy resolves its name.
 */
#define BYWAY_ROUTE_TARGET_NOT_CHECKED 16

/**
 * HTTPS/SVCB metadata came with the addresses; see `byway_route_service`.
 */
#define BYWAY_ROUTE_HAS_SERVICE 32

/**
 * HTTP/2 or newer: many exchanges at once.
 */
#define BYWAY_PEER_MULTIPLEXED 1

/**
 * Host names are verified by the default rules, not by the host's own.
 */
#define BYWAY_PEER_DEFAULT_VERIFICATION 2

/**
 * The certificate covers the wanted host.
 */
#define BYWAY_PEER_CERTIFICATE_COVERS_HOST 4

/**
 * Pins for the wanted host hold, or there are none.
 */
#define BYWAY_PEER_PINS_HOLD 8

/**
 * The peer answered 421 to a coalesced request before.
 */
#define BYWAY_PEER_REFUSED_BEFORE 16

/**
 * Port, TLS, proxy, resolver or protocols differ.
 */
#define BYWAY_NO_COALESCING_OTHER_ADDRESS 1

/**
 * The connection carries one exchange at a time.
 */
#define BYWAY_NO_COALESCING_NOT_MULTIPLEXED 2

/**
 * 421 before.
 */
#define BYWAY_NO_COALESCING_REFUSED_BEFORE 3

/**
 * No DIRECT route of the wanted address has this address and port.
 */
#define BYWAY_NO_COALESCING_NO_SHARED_IP 4

/**
 * The certificate or its pins do not cover the host.
 */
#define BYWAY_NO_COALESCING_NOT_VERIFIED 5

/**
 * Give the routes of the first family that is answered while the other is still awaited, as a Selection of its own.
 */
#define BYWAY_SELECTOR_EARLY 1

/**
 * No limit, or no pause: for the millisecond fields and `max_in_flight` of `byway_dial_options`.
 */
#define BYWAY_DIAL_NONE UINT32_MAX

/**
 * Start routes of the next Selection while the present one still has attempts in flight. Off: a slow proxy must not get
 * a DIRECT connection racing beside it.
 */
#define BYWAY_DIAL_ACROSS_SELECTIONS 1

/**
 * A proxy that refuses the tunnel is walked round by the next route. Off: the refusal ends the dial.
 */
#define BYWAY_DIAL_NEXT_ON_REFUSAL 2

/**
 * Queue events, see `byway_dial_next_event`.
 */
#define BYWAY_DIAL_EVENTS 4

/**
 * SOCKS5: refuse a non-zero reserved byte and a password answer of another version than 1.
 */
#define BYWAY_DIAL_SOCKS_STRICT 8

/**
 * SOCKS5: send everything at once and read the answers afterwards.
 */
#define BYWAY_DIAL_SOCKS_OPTIMISTIC 16

/**
 * SOCKS5: never offer "no authentication".
 */
#define BYWAY_DIAL_SOCKS_REQUIRE_AUTH 32

/**
 * CONNECT: only status 200 opens the tunnel, not every 2xx.
 */
#define BYWAY_DIAL_STRICT_200 64

/**
 * CONNECT: data right behind the answer's head is an error.
 */
#define BYWAY_DIAL_REJECT_EARLY_DATA 128

/**
 * CONNECT: wait for a challenge before the proxy's own user and password are sent.
 */
#define BYWAY_DIAL_NO_PREEMPTIVE_AUTH 256

/**
 * CONNECT: ask `proxy_auth` before the first request, with no challenge.
 */
#define BYWAY_DIAL_ASK_FIRST 512

/**
 * CONNECT: send credentials again that the proxy has refused, up to `max_tunnel_attempts`.
 */
#define BYWAY_DIAL_REPEAT_CREDENTIALS 1024

/**
 * Hand the socket over in blocking mode.
 */
#define BYWAY_DIAL_BLOCKING_SOCKET 2048

/**
 * Leave Nagle's algorithm on.
 */
#define BYWAY_DIAL_NO_NODELAY 4096

/**
 * Multipath TCP where the kernel has it, else plain TCP.
 */
#define BYWAY_DIAL_MPTCP 8192

/**
 * TCP Fast Open; used only for a single DIRECT route, because with it `connect` succeeds although nobody listens.
 */
#define BYWAY_DIAL_FAST_OPEN 16384

/**
 * Try a destination that a Selection lists twice twice.
 */
#define BYWAY_DIAL_KEEP_DUPLICATES 32768

/**
 * At the limit of attempts in flight the oldest is dropped, without blame.
 */
#define BYWAY_CAP_DROP_OLDEST 0

/**
 * At the limit of attempts in flight the next one waits.
 */
#define BYWAY_CAP_WAIT 1

/**
 * A failure changes nothing while others are in flight; alone, the next attempt starts at once.
 */
#define BYWAY_ON_FAILURE_WHEN_IDLE 0

/**
 * A failure starts the next attempt at once, 10 ms after the last start at the earliest.
 */
#define BYWAY_ON_FAILURE_IMMEDIATE 1

/**
 * As immediate, but only when the newest attempt failed.
 */
#define BYWAY_ON_FAILURE_LATEST 2

/**
 * The first TCP connection wins; a proxy handshake follows alone, and when it fails the race goes on.
 */
#define BYWAY_RACE_UNTIL_TCP 0

/**
 * The first finished proxy handshake wins.
 */
#define BYWAY_RACE_UNTIL_READY 1

/**
 * The host confirms the winner, usually after TLS; until then the race goes on beside it.
 */
#define BYWAY_RACE_UNTIL_HOST 2

/**
 * TLS to the proxy must be run first, then a `byway_handshake`, then `byway_dial_confirm`.
 */
#define BYWAY_CONNECTED_NEEDS_PROXY_TLS 1

/**
 * The race goes on until `byway_dial_confirm`.
 */
#define BYWAY_CONNECTED_PROVISIONAL 2

/**
 * A connect was started.
 */
#define BYWAY_DIAL_EVENT_START 1

/**
 * TCP stands, the proxy dialogue begins.
 */
#define BYWAY_DIAL_EVENT_HANDSHAKE 2

/**
 * The descriptor is about to be closed: forget it now.
 */
#define BYWAY_DIAL_EVENT_FD_CLOSING 3

/**
 * It failed.
 */
#define BYWAY_DIAL_EVENT_FAILED 4

/**
 * It ended without blame: another one won, the host cancelled, time ran out.
 */
#define BYWAY_DIAL_EVENT_CANCELED 5

/**
 * `proxy_auth` said that credentials come later.
 */
#define BYWAY_DIAL_EVENT_CREDENTIALS 6

/**
 * A socket may be taken while the race goes on.
 */
#define BYWAY_DIAL_EVENT_OFFER 7

/**
 * It won.
 */
#define BYWAY_DIAL_EVENT_WON 8

/**
 * The host's TLS failed for another reason than a certificate: the route is put behind the others.
 */
#define BYWAY_RESUME_TLS 0

/**
 * The certificate was not accepted: nobody is to blame for it.
 */
#define BYWAY_RESUME_CERTIFICATE 1

/**
 * The connection was closed or broke.
 */
#define BYWAY_RESUME_CLOSED 2

/**
 * Write `byway_handshake_output`, then say so with `byway_handshake_sent`.
 */
#define BYWAY_HANDSHAKE_WRITE 1

/**
 * Read at most `*limit` bytes and feed them: all of them belong to the dialogue.
 */
#define BYWAY_HANDSHAKE_READ 2

/**
 * Feed what is there; `*consumed` says how much belongs to the dialogue, the rest is tunnel data. Over a socket, peek.
 */
#define BYWAY_HANDSHAKE_PEEK 3

/**
 * Credentials are asked for: `byway_handshake_challenge_at`, `byway_handshake_answer`.
 */
#define BYWAY_HANDSHAKE_CREDENTIALS 4

/**
 * A new connection to the same hop is needed, then `byway_handshake_reconnected`.
 */
#define BYWAY_HANDSHAKE_RECONNECT 5

/**
 * The tunnel stands.
 */
#define BYWAY_HANDSHAKE_DONE 6

/**
 * It is over; the call that ended it said why.
 */
#define BYWAY_HANDSHAKE_FAILED 7

/**
 * The proxies for an address are being looked for; `subject` is the URI.
 */
#define BYWAY_EVENT_PROXY_SELECT_START 0

/**
 * They are known (`proxies`), or the proxy selector failed (`error`).
 */
#define BYWAY_EVENT_PROXY_SELECT_END 1

/**
 * A name is asked for; `subject` is the name. Also one that a proxy script wants to know: then between the start and the
 * end of the selection of proxies.
 */
#define BYWAY_EVENT_DNS_START 2

/**
 * It is answered (`ips`, in the resolver's order), or the lookup failed (`error`).
 */
#define BYWAY_EVENT_DNS_END 3

/**
 * An attempt begins; `route`.
 */
#define BYWAY_EVENT_CONNECT_START 4

/**
 * A connection is up; `route`.
 */
#define BYWAY_EVENT_CONNECT_END 5

/**
 * An attempt failed (`route`, `error`), or a whole entry of the proxy list cannot be tried (`proxies` has it, `error`).
 */
#define BYWAY_EVENT_CONNECT_FAILED 6

/**
 * An attempt was called off, by a lost race or by the host; `route`.
 */
#define BYWAY_EVENT_CONNECT_CANCELED 7

/**
 * A route goes behind the others because it failed before; `route`.
 */
#define BYWAY_EVENT_ROUTE_POSTPONED 8

/**
 * The address filter refuses a route; `route`.
 */
#define BYWAY_EVENT_ROUTE_FILTERED 9

/**
 * A proxy failed and a later entry of its list worked: it is tried last for a while; `proxies` has it.
 */
#define BYWAY_EVENT_PROXY_MARKED_BAD 10

/**
 * That time is over, the proxy is back in its place; `proxies` has it. Told when a list with it is asked for.
 */
#define BYWAY_EVENT_PROXY_REINSTATED 11

/**
 * A rule was set or removed, or its text refused (`error`); `subject` is its key, for one in a file its URL. Comes
 * through the listener's queue, only the newest of a key.
 */
#define BYWAY_EVENT_RULE 32

/**
 * A chain wants other rules than before, see `byway_chain_keys`; `subject` is its consumer URL. Comes through the
 * listener's queue.
 */
#define BYWAY_EVENT_CHAIN_KEYS 33

/**
 * A script rule in force failed while it routed a call, whose list stayed as it was: `error` with line and column of the
 * script, `subject` is the rule's key or URL. Comes through the listener's queue, only the newest of a rule.
 */
#define BYWAY_EVENT_RULE_FAILED 34

/**
 * An input or output error of no special kind.
 */
#define BYWAY_FAILURE_IO 0

/**
 * Connection refused.
 */
#define BYWAY_FAILURE_REFUSED 1

/**
 * Network or host unreachable, as reported from the path.
 */
#define BYWAY_FAILURE_UNREACHABLE 2

/**
 * Connecting, or reading, took too long.
 */
#define BYWAY_FAILURE_TIMEOUT 3

/**
 * The peer reset the connection.
 */
#define BYWAY_FAILURE_RESET 4

/**
 * This machine could not make the attempt: descriptors, permission, no local route. Blames no route.
 */
#define BYWAY_FAILURE_LOCAL 5

/**
 * Called off: it lost the race, or the call was cancelled. Blames no route.
 */
#define BYWAY_FAILURE_CANCELED 6

/**
 * Interrupted, not by a timeout.
 */
#define BYWAY_FAILURE_INTERRUPTED 7

/**
 * A name did not resolve.
 */
#define BYWAY_FAILURE_UNKNOWN_HOST 8

/**
 * The peer broke the protocol.
 */
#define BYWAY_FAILURE_PROTOCOL 9

/**
 * A TLS handshake failed for a reason other than a certificate.
 */
#define BYWAY_FAILURE_TLS_HANDSHAKE 10

/**
 * A TLS handshake failed because of a certificate.
 */
#define BYWAY_FAILURE_TLS_CERTIFICATE 11

/**
 * The peer is not who it should be: host name or pin.
 */
#define BYWAY_FAILURE_TLS_PEER_UNVERIFIED 12

/**
 * Another TLS failure.
 */
#define BYWAY_FAILURE_TLS 13

/**
 * The connection announced its shutdown before the request was sent.
 */
#define BYWAY_FAILURE_CONNECTION_SHUTDOWN 14

/**
 * A multiplexed stream was refused before it was processed.
 */
#define BYWAY_FAILURE_STREAM_REFUSED 15

/**
 * A multiplexed stream was cancelled.
 */
#define BYWAY_FAILURE_STREAM_CANCELED 16

/**
 * A multiplexed stream was reset for another reason.
 */
#define BYWAY_FAILURE_STREAM_RESET 17

/**
 * The request's own body could not be read.
 */
#define BYWAY_FAILURE_REQUEST_BODY 18

/**
 * The proxy refuses to make the connection.
 */
#define BYWAY_FAILURE_PROXY_REFUSED 19

/**
 * The proxy wants other credentials.
 */
#define BYWAY_FAILURE_PROXY_AUTH 20

/**
 * The proxy breaks its protocol.
 */
#define BYWAY_FAILURE_PROXY_PROTOCOL 21

/**
 * 407 from something that is no HTTP proxy.
 */
#define BYWAY_FAILURE_AUTH_WITHOUT_PROXY 22

/**
 * The socket is connected to itself.
 */
#define BYWAY_FAILURE_SELF_CONNECT 23

/**
 * The proxy's port cannot be connected to.
 */
#define BYWAY_FAILURE_INVALID_PORT 24

/**
 * Every address was refused by the address filter.
 */
#define BYWAY_FAILURE_FILTERED 25

/**
 * Names, proxies, planning: no attempt was made.
 */
#define BYWAY_PHASE_DNS 0

/**
 * TCP connect.
 */
#define BYWAY_PHASE_TCP 1

/**
 * `CONNECT` or SOCKS.
 */
#define BYWAY_PHASE_TUNNEL 2

/**
 * TLS handshake.
 */
#define BYWAY_PHASE_TLS 3

/**
 * The request may have been sent.
 */
#define BYWAY_PHASE_EXCHANGE 4

/**
 * The host lets failed connections be retried.
 */
#define BYWAY_CALL_RETRY_ENABLED 1

/**
 * The request's body can be sent only once.
 */
#define BYWAY_CALL_ONE_SHOT 2

/**
 * Bytes of the request may have left this machine.
 */
#define BYWAY_CALL_SENT 4

/**
 * The exchange itself failed, not the search for a connection.
 */
#define BYWAY_CALL_EXCHANGE_FAILED 8

/**
 * A further route exists.
 */
#define BYWAY_CALL_MORE_ROUTES 16

/**
 * Take the next route.
 */
#define BYWAY_RECOVER_RETRY 0

/**
 * Retrying is switched off.
 */
#define BYWAY_RECOVER_DISABLED 1

/**
 * The request cannot be sent a second time.
 */
#define BYWAY_RECOVER_NOT_REPEATABLE 2

/**
 * Another route would fail in the same way, or the call was called off.
 */
#define BYWAY_RECOVER_FATAL 3

/**
 * Everything was tried.
 */
#define BYWAY_RECOVER_NO_MORE_ROUTES 4

/**
 * HTTP/2 or newer.
 */
#define BYWAY_EXCHANGE_MULTIPLEXED 1

/**
 * The failing call was cancelled by its own host.
 */
#define BYWAY_EXCHANGE_CALL_CANCELED 2

/**
 * The connection goes through a proxy.
 */
#define BYWAY_EXCHANGE_PROXIED 4

/**
 * A connect-failed event is sent.
 */
#define BYWAY_TELL_FAILED_EVENT 1

/**
 * A connect-canceled event is sent.
 */
#define BYWAY_TELL_CANCELED_EVENT 2

/**
 * The proxy selector hears of it.
 */
#define BYWAY_TELL_PROXY_SELECTOR 4

/**
 * The route goes into the route database.
 */
#define BYWAY_TELL_DATABASE 8

/**
 * The next route is tried.
 */
#define BYWAY_TELL_NEXT_ROUTE 16

/**
 * The connection takes no new exchanges.
 */
#define BYWAY_TELL_NO_NEW_EXCHANGES 32

/**
 * One more failure of the connection's route.
 */
#define BYWAY_TELL_ROUTE_FAILURE 64

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
 * VirtualService and DestinationRule of a provider application: `.MESHAPPRULE`.
 */
#define BYWAY_RULE_MESH 3

/**
 * A script of a provider application: `.script-router`.
 */
#define BYWAY_RULE_SCRIPT 4

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
 * The last 32 calls are kept for `byway_chain_recent` from the start.
 */
#define BYWAY_CHAIN_KEEP_RECENT 8

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
 * A list whose place in the centre is gone is kept (a replaced or wiped server deletes places, nobody else does); a
 * place that is there and empty empties the list.
 */
#define BYWAY_EMPTY_PROTECTION_VANISHED 0

/**
 * Both are kept, as Dubbo's `enable-empty-protection=true`; only `empty://` empties.
 */
#define BYWAY_EMPTY_PROTECTION_ON 1

/**
 * Both empty the list, as Dubbo without protection.
 */
#define BYWAY_EMPTY_PROTECTION_OFF 2

/**
 * Providers are looked for under the interface, and while nobody is there, by application.
 */
#define BYWAY_DISCOVERY_AUTO 0

/**
 * Under the interface only.
 */
#define BYWAY_DISCOVERY_INTERFACE 1

/**
 * By application only.
 */
#define BYWAY_DISCOVERY_APPLICATION 2

/**
 * Follow the rules only: the host gives the provider list itself.
 */
#define BYWAY_BIND_RULES_ONLY 1

/**
 * When another source takes the place of one, or none does: the providers stay in the chain.
 */
#define BYWAY_BIND_KEEP_LIST 2

/**
 * The first world is in force.
 */
#define BYWAY_SOURCE_EVENT_READY 0

/**
 * The source is kept up to date, again.
 */
#define BYWAY_SOURCE_EVENT_CONNECTED 1

/**
 * The source is away (`error`, which may be NULL), also when it was not reached at the first try; the last world stays.
 */
#define BYWAY_SOURCE_EVENT_DISCONNECTED 2

/**
 * Another world is in force; `worlds` counts them.
 */
#define BYWAY_SOURCE_EVENT_CHANGED 3

/**
 * A rule, override or entry was refused (`error`; `subject` names it); what was in force stays.
 */
#define BYWAY_SOURCE_EVENT_REFUSED 4

/**
 * The list has become empty in the centre and is kept.
 */
#define BYWAY_SOURCE_EVENT_KEPT 5

/**
 * Where a host wants to go, by whatever proxy and resolver. Immutable; a value.
 */
typedef struct byway_address byway_address;

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
 * One operation: races the routes of a Selection, speaks to proxies, reports what happens to the engine, and hands one
 * connected socket to the host. Exclusive. Driven by the host's event loop (`byway_dial_fd`, or `byway_dial_pollset` and
 * `byway_dial_deadline_ms`, and `byway_dial_step`), or by `byway_dial_run`.
 *
 * All host code (resolver, proxy selector, hooks, listeners) runs on the thread that steps; a resolver that answers in
 * place delays the race by its own length.
 */
typedef struct byway_dial byway_dial;

/**
 * Who resolves names. Shared.
 */
typedef struct byway_dns byway_dns;

/**
 * One question to a resolver, and where its answer goes. Shared; the callback borrows it, and retains it to answer
 * later.
 */
typedef struct byway_dns_request byway_dns_request;

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
 * An immutable list of rules that says which addresses may be connected to: a guard against server-side request
 * forgery. A value.
 */
typedef struct byway_filter byway_filter;

/**
 * A SOCKS or CONNECT dialogue, bytes in and bytes out, without a socket: for TLS to the proxy, io_uring, tests.
 * Exclusive.
 */
typedef struct byway_handshake byway_handshake;

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
 * Somebody who hears of events until it is removed or released. Shared.
 */
typedef struct byway_listener byway_listener;

/**
 * A proxy: kind, place, credentials. Immutable; a value. NULL stands for DIRECT wherever a proxy is taken.
 */
typedef struct byway_proxy byway_proxy;

/**
 * One question to a proxy selector, and where its answer goes. Shared; the callback borrows it, and retains it to
 * answer later.
 */
typedef struct byway_proxy_request byway_proxy_request;

/**
 * Who chooses proxies for an address. Shared.
 */
typedef struct byway_proxy_selector byway_proxy_selector;

/**
 * One event loop's inbox: completion records, callbacks that must run on the host's thread, deadlines. Engines may
 * share one; every selector, listener and binding to a source may name its own. A dial needs none: it has a descriptor.
 */
typedef struct byway_queue byway_queue;

/**
 * One way to an address: one TCP destination (the hop) and what the proxy or TLS is told (the target). Immutable; a
 * value that owns what it shows and pins no engine, resolver or callback.
 */
typedef struct byway_route byway_route;

/**
 * A host's own router. A chain asks it for every call, after the routers of smaller priority.
 */
typedef struct byway_router byway_router;

/**
 * Routes to try, in order; the next Selection's only when all of these have failed. Immutable but for its cursor.
 * Exclusive; outlives its selector.
 */
typedef struct byway_selection byway_selection;

/**
 * Gives the routes of an address in the order to try them: first those of the first proxy that did not fail before,
 * what failed before last. Exclusive.
 */
typedef struct byway_selector byway_selector;

/**
 * Routes calls of one chain on one thread. Pins the world (list and rules) it used last, so that a result is a
 * borrowed view.
 *
 * Threads: belongs to the thread that made it until another one calls `byway_session_adopt`; elsewhere
 * `BYWAY_E_BUSY`. `byway_session_free` is legal from any thread.
 */
typedef struct byway_session byway_session;

/**
 * Where rules and provider lists come from. Shared; ends with its engine. Its thread, if it has one, is named
 * `byway-files` or `byway-zookeeper` and ends with the last reference.
 */
typedef struct byway_source byway_source;

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
     * `BYWAY_ROUTING_*`.
     */
    uint32_t routing_flags;
    /**
     * What a proxy selector that fails means: `BYWAY_ON_PROXY_SELECTOR_ERROR_*`.
     */
    int32_t on_proxy_selector_error;
    /**
     * Milliseconds for which addresses of a name are kept; 0 keeps none.
     */
    uint32_t dns_cache_ms;
    /**
     * Judges targets: resolved addresses and literals, also literals sent to a proxy. NULL lets all through. Retained.
     */
    const struct byway_filter *target_filter;
    /**
     * Judges the addresses of proxies. NULL lets all through. Retained.
     */
    const struct byway_filter *proxy_filter;
    /**
     * First argument of the three functions below. They are called on any thread at any time until a shutdown has
     * ended with `BYWAY_OK`, must be quick and must not call byway.
     */
    void *source_data;
    /**
     * Nanoseconds since a fixed moment, never going back. NULL: the system's monotonic clock.
     */
    uint64_t (*monotonic_ns)(void *source_data);
    /**
     * Milliseconds since 1970-01-01 UTC. NULL: the system's clock.
     */
    int64_t (*wall_ms)(void *source_data);
    /**
     * 64 uniformly distributed bits, for every random draw; `seed` is not used then. NULL: byway's own generator.
     */
    uint64_t (*random)(void *source_data);
    /**
     * Milliseconds for which a proxy that failed is tried last; -1 means 5 minutes, 0 keeps every list as it is.
     */
    int64_t bad_proxy_ms;
} byway_engine_options;

/**
 * One IP address.
 */
typedef struct byway_ip {
    /**
     * Network byte order; IPv4 in the first four bytes, the rest zero.
     */
    uint8_t bytes[16];
    /**
     * Interface index of a link-local IPv6 address, else 0.
     */
    uint32_t scope_id;
    /**
     * 4 or 6; 0 for "none".
     */
    uint8_t family;
    /**
     * Zero.
     */
    uint8_t reserved[3];
} byway_ip;

/**
 * A host's resolver.
 */
typedef struct byway_dns_callbacks {
    /**
     * `sizeof(byway_dns_callbacks)`.
     */
    size_t struct_size;
    /**
     * First argument of every function.
     */
    void *user_data;
    /**
     * Runs once when the set is no longer in use. May be NULL.
     */
    byway_destroy destroy;
    /**
     * Asks for the addresses of a canonical name. Put the answer into `request`, in the order in which routes are to
     * be tried, and return `BYWAY_OK`; or retain `request`, return `BYWAY_PENDING` and answer from any thread later
     * (finishing before returning is legal); or `BYWAY_PASS` to have the system asked; or an error. `BYWAY_OK` with
     * nothing added means that the name has no address.
     */
    byway_status (*lookup)(void *user_data,
                           struct byway_dns_request *request,
                           const char *host,
                           size_t host_len,
                           const struct byway_call *call);
    /**
     * Nobody waits for this request any more; a late answer is harmless. May be NULL.
     */
    void (*on_cancel)(void *user_data, uint64_t request_id);
} byway_dns_callbacks;

/**
 * One HTTPS or SVCB record (RFC 9460). Routes carry it on to the host; byway connects by the address records.
 */
typedef struct byway_service_options {
    /**
     * `sizeof(byway_service_options)`.
     */
    size_t struct_size;
    /**
     * Target name; empty means the name that was asked.
     */
    struct byway_str target;
    /**
     * SvcPriority, lower is preferred.
     */
    uint16_t priority;
    /**
     * Port, 0 when the record has none.
     */
    uint16_t port;
    /**
     * Zero.
     */
    uint32_t reserved;
    /**
     * ALPN ids in order.
     */
    const struct byway_str *alpn;
    /**
     * Number of ALPN ids.
     */
    size_t alpn_len;
    /**
     * Encrypted ClientHello configuration list.
     */
    struct byway_str ech;
    /**
     * Address hints.
     */
    const struct byway_ip *hints;
    /**
     * Number of hints.
     */
    size_t hints_len;
} byway_service_options;

/**
 * A host's proxy selector.
 */
typedef struct byway_proxy_selector_callbacks {
    /**
     * `sizeof(byway_proxy_selector_callbacks)`.
     */
    size_t struct_size;
    /**
     * First argument of every function.
     */
    void *user_data;
    /**
     * Runs once when the set is no longer in use. May be NULL.
     */
    byway_destroy destroy;
    /**
     * Asks for the proxies of an address, for every host. Put them into `request` in order and return `BYWAY_OK`; or
     * retain `request`, return `BYWAY_PENDING` and answer from any thread later; or `BYWAY_PASS` for the engine's
     * default proxy selector, else DIRECT; or an error. DIRECT is said, not implied: `BYWAY_OK` with nothing added is
     * `BYWAY_E_EMPTY_ANSWER` unless the engine says `BYWAY_ROUTING_EMPTY_IS_DIRECT`.
     */
    byway_status (*select)(void *user_data,
                           struct byway_proxy_request *request,
                           const char *uri,
                           size_t uri_len,
                           const struct byway_call *call);
    /**
     * A proxy that this selector chose failed; `failure` is a `BYWAY_FAILURE_*`. May be NULL.
     */
    void (*connect_failed)(void *user_data,
                           const char *uri,
                           size_t uri_len,
                           const struct byway_route *route,
                           int32_t failure,
                           int32_t os_errno,
                           const struct byway_call *call);
    /**
     * Nobody waits for this request any more; a late answer is harmless. May be NULL.
     */
    void (*on_cancel)(void *user_data, uint64_t request_id);
} byway_proxy_selector_callbacks;

/**
 * A list of hosts that are not proxied.
 */
typedef struct byway_bypass_options {
    /**
     * `sizeof(byway_bypass_options)`.
     */
    size_t struct_size;
    /**
     * The list.
     */
    struct byway_str list;
    /**
     * `BYWAY_BYPASS_BROWSER` and the like: how it is written.
     */
    int32_t style;
    /**
     * `BYWAY_BYPASS_REVERSED` and the like.
     */
    uint32_t flags;
    /**
     * Whose `NO_PROXY`: `byway` (also empty), `curl`, `go`, `python`, `chromium`, `node`.
     */
    struct byway_str dialect;
} byway_bypass_options;

/**
 * A proxy auto-configuration script. Start from `BYWAY_PAC_OPTIONS_INIT`.
 */
typedef struct byway_pac_options {
    /**
     * `sizeof(byway_pac_options)`.
     */
    size_t struct_size;
    /**
     * Its URL or absolute path; appears in errors. A path or `file:` URL is read by byway when there is no `source`.
     */
    struct byway_str url;
    /**
     * Its text, when that is at hand; `data` NULL: it is read or fetched.
     */
    struct byway_str source;
    /**
     * Who resolves the names it asks for; NULL: the resolver of the address in question. Retained.
     */
    struct byway_dns *dns;
    /**
     * This machine's addresses, for `myIpAddress`; NULL: those that the routing table prefers towards the internet. Not NULL
     * with a length of 0: it has none.
     */
    const struct byway_ip *my_addresses;
    /**
     * Their number.
     */
    size_t my_addresses_len;
    /**
     * A fetched script that is older in milliseconds is fetched anew by the next question, while it still serves; 0: only
     * after `byway_proxy_selector_refresh` and after the network changed.
     */
    uint64_t refresh_ms;
    /**
     * Bytes of memory, at least 32 MiB; 0 means that.
     */
    uint64_t memory_limit;
    /**
     * Milliseconds of script time per run, counted on its thread's processor clock, so that a busy machine ends no good
     * script; 0 means 250. A run that does not get them ends after 20 times as many on the wall, at least 10 000.
     */
    uint32_t time_limit_ms;
    /**
     * Different names one question may ask for; 0 means 20.
     */
    uint32_t names_limit;
    /**
     * See `BYWAY_PAC_FIXED_ZONE`; -1440 to 1440.
     */
    int32_t utc_offset_minutes;
    /**
     * `BYWAY_PAC_EX` and the like.
     */
    uint32_t flags;
} byway_pac_options;

/**
 * A host that fetches scripts.
 */
typedef struct byway_pac_callbacks {
    /**
     * `sizeof(byway_pac_callbacks)`.
     */
    size_t struct_size;
    /**
     * First argument of every function.
     */
    void *user_data;
    /**
     * Runs once when the set is no longer in use. May be NULL.
     */
    byway_destroy destroy;
    /**
     * Wants the script at `url`, which is empty when it is to be discovered (WPAD). Hand it to `selector` with
     * `byway_proxy_selector_set_script` and return `BYWAY_OK`; or retain `selector`, return `BYWAY_PENDING`, and call
     * `byway_proxy_selector_set_script` or `byway_proxy_selector_script_failed` later, from any thread; or return an error.
     * Called by a question that needs the script, by one at a time, never through the proxies it is about. A failed fetch is
     * repeated by the first question after 8 seconds, 32 seconds, 2 minutes, then every 4 hours; one that has not been
     * answered after 30 seconds by the next question.
     */
    byway_status (*fetch)(void *user_data,
                          struct byway_proxy_selector *selector,
                          const char *url,
                          size_t url_len,
                          const struct byway_call *call);
} byway_pac_callbacks;

/**
 * Where the system's proxy settings are found. Nothing else is read. Start from `BYWAY_SYSTEM_OPTIONS_INIT`.
 *
 * The first source that says anything decides, alone: the environment when it names a proxy, then GNOME, then KDE, then
 * `/etc/sysconfig/proxy`; else DIRECT. A file that does not exist says nothing; one that cannot be read or understood is an
 * error.
 */
typedef struct byway_system_options {
    /**
     * `sizeof(byway_system_options)`.
     */
    size_t struct_size;
    /**
     * Names of environment variables. NULL with `n` 0: the process's own, read at creation and at every refresh.
     */
    const struct byway_str *names;
    /**
     * Their values.
     */
    const struct byway_str *values;
    /**
     * Their number.
     */
    size_t n;
    /**
     * `XDG_CURRENT_DESKTOP`, for example `KDE`: whose settings count; empty: those that exist, GNOME first.
     */
    struct byway_str desktop;
    /**
     * Home directory whose `.config` holds the desktops' settings; empty: none is looked at.
     */
    struct byway_str home;
    /**
     * `XDG_CONFIG_HOME`, instead of `.config` below `home`.
     */
    struct byway_str config_home;
    /**
     * Directory in place of `/` for `etc/sysconfig/proxy`; `/` for the system's own, empty: not looked at.
     */
    struct byway_str root;
    /**
     * GNOME's settings in place of a file: the content of a dconf database. `data` NULL: the file counts.
     */
    struct byway_str dconf;
    /**
     * GNOME's settings in place of a file: GLib's keyfile. `data` NULL: the file counts.
     */
    struct byway_str keyfile;
    /**
     * KDE's settings in place of `kioslaverc`. `data` NULL: the file counts.
     */
    struct byway_str kioslaverc;
    /**
     * The content of `/etc/sysconfig/proxy`. `data` NULL: the file counts.
     */
    struct byway_str sysconfig;
    /**
     * How a script that the settings name is run; its `url` and `source` are not used. NULL: every default.
     */
    const struct byway_pac_options *pac;
} byway_system_options;

/**
 * What an address is made from. Start from `BYWAY_ADDRESS_OPTIONS_INIT` or `byway_address_options_init`; `host` and
 * `port` must be set.
 */
typedef struct byway_address_options {
    /**
     * `sizeof(byway_address_options)`.
     */
    size_t struct_size;
    /**
     * URL scheme; empty means `https` with `BYWAY_ADDRESS_TLS`, else `http`. `https` and `wss` imply TLS.
     */
    struct byway_str scheme;
    /**
     * Host name or IP literal, canonicalised by the WHATWG URL rules; IPv6 with or without brackets and with a zone.
     */
    struct byway_str host;
    /**
     * 1..65535.
     */
    int32_t port;
    /**
     * `BYWAY_ADDRESS_*`.
     */
    uint32_t flags;
    /**
     * Explicit proxy, NULL for none. The proxy selector is then not asked.
     */
    const struct byway_proxy *proxy;
    /**
     * Who chooses proxies, NULL for nobody: DIRECT. Retained.
     */
    struct byway_proxy_selector *proxy_selector;
    /**
     * Who resolves names, NULL for the system. Retained.
     */
    struct byway_dns *dns;
    /**
     * Application protocols in order of preference, as ALPN names. `h2_prior_knowledge` needs a tunnel through an
     * HTTP proxy.
     */
    const struct byway_str *protocols;
    /**
     * Number of protocols.
     */
    size_t protocols_len;
    /**
     * Opaque identity of the host's own TLS configuration; ignored without TLS.
     */
    uint64_t tls_identity;
    /**
     * More of it, as bytes.
     */
    struct byway_str tls_identity_bytes;
    /**
     * Opaque identity of whatever answers a proxy's challenges; counts in equality.
     */
    uint64_t authenticator;
} byway_address_options;

/**
 * What the host knows of the peer of a live connection.
 */
typedef struct byway_peer {
    /**
     * `sizeof(byway_peer)`.
     */
    size_t struct_size;
    /**
     * `BYWAY_PEER_*`.
     */
    uint32_t flags;
    /**
     * Zero.
     */
    uint32_t reserved;
} byway_peer;

/**
 * A route as a record.
 */
typedef struct byway_route_record {
    /**
     * What `connect(2)` gets.
     */
    struct byway_ip hop_ip;
    /**
     * Resolved target behind a SOCKS4 or SOCKS5 proxy; family 0 when the target is the hop or a name.
     */
    struct byway_ip target_ip;
    /**
     * Port for `connect(2)`.
     */
    uint16_t hop_port;
    /**
     * The target's port.
     */
    uint16_t target_port;
    /**
     * `BYWAY_PROXY_*`.
     */
    int32_t proxy_kind;
    /**
     * `BYWAY_ROUTE_*`.
     */
    uint32_t flags;
    /**
     * Zero.
     */
    uint32_t reserved;
    /**
     * The address's canonical host. Borrowed from where the record came from.
     */
    struct byway_str host;
    /**
     * The proxy's host, `(NULL, 0)` for DIRECT. Borrowed as `host`.
     */
    struct byway_str proxy_host;
} byway_route_record;

/**
 * What a selector is made with. Start from `BYWAY_SELECTOR_OPTIONS_INIT` or `byway_selector_options_init`.
 */
typedef struct byway_selector_options {
    /**
     * `sizeof(byway_selector_options)`.
     */
    size_t struct_size;
    /**
     * The host's own number, echoed in completion records, events and calls.
     */
    uint64_t tag;
    /**
     * Where its completion records go, NULL for the engine's queue. Retained.
     */
    struct byway_queue *queue;
    /**
     * `BYWAY_SELECTOR_EARLY` or 0.
     */
    uint32_t flags;
    /**
     * Zero.
     */
    uint32_t reserved;
} byway_selector_options;

/**
 * A header for the proxy alone.
 */
typedef struct byway_header {
    /**
     * A token, for example `Proxy-Trace`.
     */
    struct byway_str name;
    /**
     * One line.
     */
    struct byway_str value;
} byway_header;

/**
 * What a dial is made with. Start from `BYWAY_DIAL_OPTIONS_INIT` or `byway_dial_options_init`. In every number 0 means
 * the default that is named with it.
 */
typedef struct byway_dial_options {
    /**
     * `sizeof(byway_dial_options)`.
     */
    size_t struct_size;
    /**
     * The host's own number, echoed in events and calls.
     */
    uint64_t tag;
    /**
     * `BYWAY_DIAL_*`.
     */
    uint32_t flags;
    /**
     * Pause between starts while something is in flight, milliseconds, 10 to 2000; 250.
     */
    uint32_t attempt_delay_ms;
    /**
     * How long an answer of the other family waits for the preferred one; 50.
     */
    uint32_t resolution_delay_ms;
    /**
     * Limit of one TCP connect; 10 000.
     */
    uint32_t attempt_timeout_ms;
    /**
     * Limit of one proxy handshake; 30 000.
     */
    uint32_t ready_timeout_ms;
    /**
     * Limit of everything, from the first step; none.
     */
    uint32_t overall_timeout_ms;
    /**
     * Pause granted to an attempt whose TCP is up; the attempt delay.
     */
    uint32_t ready_extend_ms;
    /**
     * Attempts in flight at once; 6.
     */
    uint32_t max_in_flight;
    /**
     * `BYWAY_CAP_*`.
     */
    int32_t cap_policy;
    /**
     * `BYWAY_ON_FAILURE_*`.
     */
    int32_t on_failure;
    /**
     * `BYWAY_RACE_UNTIL_*`.
     */
    int32_t race_until;
    /**
     * `BYWAY_FIRST_FAMILY_*`.
     */
    int32_t first_family;
    /**
     * Addresses of the preferred family before the first of the other; 1.
     */
    uint32_t first_family_count;
    /**
     * Most CONNECT requests for one route, over kept and new connections; 21.
     */
    uint32_t max_tunnel_attempts;
    /**
     * Longest line of a CONNECT answer in bytes; 16 KiB.
     */
    uint32_t max_line;
    /**
     * Longest head of a CONNECT answer in bytes, interim answers included; 256 KiB.
     */
    uint32_t max_header;
    /**
     * Longest body of a 407 that is read to keep the connection, bytes; 64 KiB.
     */
    uint32_t max_drain;
    /**
     * Seconds of silence before keep-alive probes, and between them; off.
     */
    uint32_t keepalive_s;
    /**
     * `TCP_USER_TIMEOUT` in milliseconds; the system's.
     */
    uint32_t user_timeout_ms;
    /**
     * `SO_MARK`; none. Needs CAP_NET_ADMIN.
     */
    uint32_t mark;
    /**
     * Source address of IPv4 attempts, as text; none.
     */
    struct byway_str source_v4;
    /**
     * Source address of IPv6 attempts, as text; none.
     */
    struct byway_str source_v6;
    /**
     * Network device (`SO_BINDTODEVICE`); none.
     */
    struct byway_str device;
    /**
     * `User-Agent` of CONNECT; `(NULL, 0)` is `byway/VERSION`, an empty text none.
     */
    struct byway_str user_agent;
    /**
     * Further headers of CONNECT; they never reach the target.
     */
    const struct byway_header *headers;
    /**
     * Their number.
     */
    size_t header_count;
} byway_dial_options;

/**
 * Host code a dial calls on the thread that steps it. Every function may be NULL: built in.
 */
typedef struct byway_dial_callbacks {
    /**
     * `sizeof(byway_dial_callbacks)`.
     */
    size_t struct_size;
    /**
     * First argument of every function.
     */
    void *user_data;
    /**
     * Runs once when the set is no longer in use. May be NULL.
     */
    byway_destroy destroy;
    /**
     * Opens a stream socket of this family and protocol, for example one that a VPN service protects. `BYWAY_PASS`:
     * open it as usual. An error skips the route. byway makes the socket non-blocking.
     */
    byway_status (*open_socket)(void *user_data,
                                int32_t family,
                                int32_t protocol,
                                const struct byway_route *route,
                                int32_t *fd,
                                const struct byway_call *call);
    /**
     * Sets further options before `connect(2)`. An error skips the route.
     */
    byway_status (*configure)(void *user_data,
                              int32_t fd,
                              const struct byway_route *route,
                              const struct byway_call *call);
    /**
     * Closes a socket. `BYWAY_PASS`: close it as usual.
     */
    byway_status (*close_socket)(void *user_data, int32_t fd, const struct byway_call *call);
    /**
     * Credentials for the challenges of an HTTP proxy (values of `Proxy-Authenticate`; none before the first request).
     * `BYWAY_OK`: `byway_dial_authenticate` was called with them. `BYWAY_PENDING`: it will be, from any thread; the
     * attempt waits, the race goes on. `BYWAY_PASS` or an error: there are none, the attempt ends.
     */
    byway_status (*proxy_auth)(void *user_data,
                               struct byway_dial *dial,
                               uint32_t attempt,
                               const struct byway_route *route,
                               const struct byway_str *challenges,
                               size_t count,
                               const struct byway_call *call);
} byway_dial_callbacks;

/**
 * A connected socket.
 */
typedef struct byway_connected {
    /**
     * The socket; the host's own from now on. -1 when there is none.
     */
    int32_t fd;
    /**
     * Number of the attempt, for `byway_dial_confirm` and `byway_dial_resume`.
     */
    uint32_t attempt;
    /**
     * The route it leads over. The caller owns one reference.
     */
    struct byway_route *route;
    /**
     * `BYWAY_CONNECTED_*`.
     */
    uint32_t flags;
    /**
     * Zero.
     */
    uint32_t reserved;
} byway_connected;

/**
 * One descriptor to watch.
 */
typedef struct byway_pollfd {
    /**
     * Number of the attempt, 0 for wake-ups. A descriptor's number may come back for another attempt within one step:
     * compare these.
     */
    uint32_t id;
    /**
     * The descriptor.
     */
    int32_t fd;
    /**
     * `POLLIN`, `POLLOUT`.
     */
    int16_t events;
    /**
     * What `poll` said.
     */
    int16_t revents;
} byway_pollfd;

/**
 * Something that happened, for hosts that keep state per descriptor.
 */
typedef struct byway_dial_event {
    /**
     * `BYWAY_DIAL_EVENT_*`.
     */
    int32_t kind;
    /**
     * Number of the attempt.
     */
    uint32_t attempt;
    /**
     * Its descriptor, -1 when it has none.
     */
    int32_t fd;
    /**
     * Why, for failures.
     */
    byway_status status;
    /**
     * Milliseconds since the first step.
     */
    int64_t at_ms;
} byway_dial_event;

/**
 * One failed attempt.
 */
typedef struct byway_dial_failure {
    /**
     * Number of the attempt; 0 when no Selection could be made.
     */
    uint32_t attempt;
    /**
     * What to branch on.
     */
    byway_status status;
    /**
     * The system's number, 0 for none.
     */
    int32_t os_errno;
    /**
     * The number the proxy sent: a SOCKS code, an HTTP status; 0 for none. A 407 is told by `BYWAY_E_PROXY_AUTH`.
     */
    int32_t number;
    /**
     * Begin, milliseconds since the first step.
     */
    int64_t start_ms;
    /**
     * End.
     */
    int64_t end_ms;
    /**
     * Fixed name, for example `REFUSED` or `CONNECT_STATUS`. Static.
     */
    struct byway_str name;
} byway_dial_failure;

/**
 * One event. What does not belong to its kind is empty. Everything is borrowed until the callback returns;
 * `byway_route_retain` keeps the route.
 */
typedef struct byway_event {
    /**
     * `sizeof(byway_event)` of the library; grows at the end.
     */
    size_t struct_size;
    /**
     * The host's number of the operation.
     */
    uint64_t tag;
    /**
     * The selector's number; 0 for what a proxy script asks on behalf of `byway_engine_proxies_for_url`.
     */
    uint64_t selector_id;
    /**
     * Monotonic time in nanoseconds.
     */
    uint64_t time_ns;
    /**
     * `BYWAY_EVENT_*`.
     */
    int32_t kind;
    /**
     * `BYWAY_OK`, or why it failed.
     */
    byway_status status;
    /**
     * URI or name.
     */
    struct byway_str subject;
    /**
     * The route, or NULL.
     */
    const struct byway_route *route;
    /**
     * Proxies; a NULL entry is DIRECT.
     */
    const struct byway_proxy *const *proxies;
    /**
     * Number of proxies.
     */
    size_t proxies_len;
    /**
     * Addresses.
     */
    const struct byway_ip *ips;
    /**
     * Number of addresses.
     */
    size_t ips_len;
    /**
     * The whole error, or NULL.
     */
    const struct byway_error *error;
} byway_event;

/**
 * A listener's callbacks.
 */
typedef struct byway_listener_callbacks {
    /**
     * `sizeof(byway_listener_callbacks)`.
     */
    size_t struct_size;
    /**
     * First argument of every function.
     */
    void *user_data;
    /**
     * Runs once when the listener is gone. May be NULL.
     */
    byway_destroy destroy;
    /**
     * Bits `1 << BYWAY_EVENT_*` of the kinds to be told of. Nothing is built for others.
     */
    uint64_t mask;
    /**
     * One event, on the thread that drives the operation (rules and chains: on the one that polls `queue`, or with
     * `BYWAY_CALLBACKS_ANY_THREAD` on byway's own), with no lock held.
     */
    void (*on_event)(void *user_data, const struct byway_event *event);
    /**
     * Whose poll tells of rules and chains; NULL: that of the engine's queue. Retained. Events of an operation always
     * come on the thread that drives it.
     */
    struct byway_queue *queue;
} byway_listener_callbacks;

/**
 * One failed route of a snapshot.
 */
typedef struct byway_failed_route {
    /**
     * Its hop.
     */
    struct byway_ip hop_ip;
    /**
     * Its hop's port.
     */
    uint16_t hop_port;
    /**
     * The origin's port.
     */
    uint16_t target_port;
    /**
     * `BYWAY_PROXY_*`.
     */
    int32_t proxy_kind;
    /**
     * `BYWAY_FAILURE_*`.
     */
    int32_t failure;
    /**
     * The system's number, 0 for none.
     */
    int32_t os_errno;
    /**
     * Failed periods in a row.
     */
    uint32_t periods;
    /**
     * Zero.
     */
    uint32_t reserved;
    /**
     * Milliseconds since the failure that began this postponement.
     */
    uint64_t age_ms;
    /**
     * Milliseconds until it counts as good again; -1 = until it is reported connected.
     */
    int64_t remaining_ms;
} byway_failed_route;

/**
 * Figures of an engine.
 */
typedef struct byway_engine_statistics {
    /**
     * `sizeof(byway_engine_statistics)`.
     */
    size_t struct_size;
    /**
     * Routes postponed now.
     */
    uint64_t postponed;
    /**
     * Records of the route database, including those whose postponement is over but not yet forgotten.
     */
    uint64_t database_records;
    /**
     * Failures that wait for their selector's success.
     */
    uint64_t database_pending;
    /**
     * Times the network changed.
     */
    uint64_t network_generation;
    /**
     * Operations that wait for something now.
     */
    uint64_t waiting;
} byway_engine_statistics;

/**
 * A failed call, for `byway_engine_recover`.
 */
typedef struct byway_failed_call {
    /**
     * `sizeof(byway_failed_call)`.
     */
    size_t struct_size;
    /**
     * `BYWAY_FAILURE_*`.
     */
    int32_t failure;
    /**
     * `BYWAY_PHASE_*`.
     */
    int32_t phase;
    /**
     * `BYWAY_CALL_*`.
     */
    uint32_t flags;
    /**
     * Zero.
     */
    uint32_t reserved;
} byway_failed_call;

/**
 * A connection whose exchange failed, for `byway_failure_track`.
 */
typedef struct byway_failed_exchange {
    /**
     * `sizeof(byway_failed_exchange)`.
     */
    size_t struct_size;
    /**
     * Exchanges completed on the connection so far.
     */
    uint64_t successes;
    /**
     * `BYWAY_FAILURE_*`, -1 for a failure without an error.
     */
    int32_t failure;
    /**
     * Streams refused on it before.
     */
    uint32_t refused_before;
    /**
     * `BYWAY_EXCHANGE_*`.
     */
    uint32_t flags;
    /**
     * Zero.
     */
    uint32_t reserved;
} byway_failed_exchange;

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
     * Scripts see it too, as `isAvailable`.
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
 * How a ZooKeeper ensemble is reached, beside its connection string. Start from `BYWAY_ZOOKEEPER_OPTIONS_INIT` or
 * `byway_zookeeper_options_init`.
 */
typedef struct byway_zookeeper_options {
    /**
     * `sizeof(byway_zookeeper_options)`.
     */
    size_t struct_size;
    /**
     * User of the digest scheme; empty: what the connection string has.
     */
    struct byway_str username;
    /**
     * Its password. Shown nowhere.
     */
    struct byway_str password;
    /**
     * Dubbo's root; empty: what the connection string says, else `/dubbo`.
     */
    struct byway_str root;
    /**
     * Session timeout to ask for, in milliseconds; 0 means what the connection string says, else 15 s.
     */
    int64_t session_timeout_ms;
    /**
     * Longest wait for one server, in milliseconds; 0 means what the connection string says, else 5 s.
     */
    int64_t connect_timeout_ms;
    /**
     * Longest wait between two tries when no server answers, in milliseconds; 0 means 10 s. Tries never end.
     */
    int64_t retry_longest_ms;
} byway_zookeeper_options;

/**
 * How a source stands.
 */
typedef struct byway_source_state {
    /**
     * `sizeof(byway_source_state)`, set by the caller.
     */
    size_t struct_size;
    /**
     * Wall clock in milliseconds when it was connected, or was lost; -1 before the first connection.
     */
    int64_t since_ms;
    /**
     * Milliseconds since what is served was last known to be what the centre holds; -1 before the first contact.
     */
    int64_t age_ms;
    /**
     * Counts what changed.
     */
    uint64_t generation;
    /**
     * Keys, lists and other things followed.
     */
    uint64_t keys;
    /**
     * Complaints so far.
     */
    uint64_t errors;
    /**
     * 1: what is served is kept up to date at the moment.
     */
    int32_t connected;
    /**
     * 0.
     */
    int32_t reserved;
} byway_source_state;

/**
 * One change of a memory source.
 */
typedef struct byway_source_change {
    /**
     * Key, as `byway_source_put` takes it.
     */
    struct byway_str key;
    /**
     * Text; not looked at when the key is removed.
     */
    struct byway_str text;
    /**
     * 1: the key is removed.
     */
    int32_t remove;
    /**
     * 0.
     */
    int32_t reserved;
} byway_source_change;

/**
 * How a chain is bound. Start from `BYWAY_BIND_OPTIONS_INIT` or `byway_bind_options_init`.
 */
typedef struct byway_bind_options {
    /**
     * `sizeof(byway_bind_options)`.
     */
    size_t struct_size;
    /**
     * `BYWAY_BIND_*` or 0.
     */
    uint32_t flags;
    /**
     * `BYWAY_EMPTY_PROTECTION_*`.
     */
    int32_t empty_protection;
    /**
     * `BYWAY_DISCOVERY_*`.
     */
    int32_t discovery;
    /**
     * 0.
     */
    int32_t reserved;
    /**
     * Where events and the completion record go; NULL: the engine's. Retained.
     */
    struct byway_queue *queue;
    /**
     * The host's own number, echoed in the completion record.
     */
    uint64_t tag;
} byway_bind_options;

/**
 * One event of a bound chain. Everything is borrowed until the callback returns.
 */
typedef struct byway_source_event {
    /**
     * `sizeof(byway_source_event)` of the library; grows at the end.
     */
    size_t struct_size;
    /**
     * Worlds put in force so far; 0 where it does not belong.
     */
    uint64_t worlds;
    /**
     * What was refused, or empty.
     */
    struct byway_str subject;
    /**
     * Why, or NULL.
     */
    const struct byway_error *error;
    /**
     * `BYWAY_SOURCE_EVENT_*`.
     */
    int32_t kind;
    /**
     * Status of `error`, or 0.
     */
    byway_status status;
} byway_source_event;

/**
 * Who hears of a bound chain's events.
 */
typedef struct byway_source_callbacks {
    /**
     * `sizeof(byway_source_callbacks)`.
     */
    size_t struct_size;
    /**
     * First argument of the function.
     */
    void *user_data;
    /**
     * Runs once when the set is no longer in use. May be NULL.
     */
    byway_destroy destroy;
    /**
     * One event, on the thread that polls the queue. Of events of one kind about one subject that wait for the poll
     * only the newest arrives.
     */
    void (*on_event)(void *user_data, const struct byway_source_event *event);
} byway_source_callbacks;

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
 * Who found it, `BYWAY_ERROR_SOURCE_*`. 0 also for what is not a live error.
 */
BYWAY_API int32_t byway_error_source(const struct byway_error *self);

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
 * Sets what is called when the queue goes from empty to non-empty, also at once when it is not empty now. That a deadline
 * passes is not told: ask `byway_queue_deadline` after each poll, and after calls that answered `BYWAY_PENDING`. NULL takes
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
 *
 * Errors: `BYWAY_E_NULL` without a place for it.
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
 * Errors: `BYWAY_E_BAD_HANDLE`.
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
 * The canonical form of a host name or IP literal, without brackets and zone, as an address of that `BYWAY_COMPAT_*`
 * has it.
 *
 * Ownership: the caller owns the text.
 * Errors: `BYWAY_E_INVALID_HOST` with the place, `BYWAY_E_UTF8`, `BYWAY_E_ENUM`.
 */
BYWAY_API
byway_status byway_host_canonical(int32_t compat,
                                  const char *host,
                                  size_t len,
                                  struct byway_text **out,
                                  struct byway_error **err);

/**
 * 1 when a host is taken for an IP literal, which nobody resolves: OkHttp's loose test under `BYWAY_COMPAT_OKHTTP_5`
 * and `_3`, else whether it is one.
 */
BYWAY_API
int32_t byway_host_is_literal(int32_t compat,
                              const char *host,
                              size_t len);

/**
 * Parses an IP literal, without brackets; a numeric `%zone` becomes the scope id.
 *
 * Errors: `BYWAY_E_INVALID_IP`.
 */
BYWAY_API
byway_status byway_ip_parse(const char *text,
                            size_t len,
                            struct byway_ip *out,
                            struct byway_error **err);

/**
 * RFC 5952 text of an address.
 *
 * Ownership: the caller owns the text.
 * Errors: `BYWAY_E_INVALID_IP`.
 */
BYWAY_API
byway_status byway_ip_text(const struct byway_ip *ip,
                           struct byway_text **out,
                           struct byway_error **err);

/**
 * Puts addresses in the order in which they are to be tried, in place: families alternate, `first_family_count` of the
 * first one first. Inside a family the order stays. `first_family` is `BYWAY_FIRST_FAMILY_*`.
 *
 * Errors: `BYWAY_E_INVALID_IP`, `BYWAY_E_ENUM`, `BYWAY_E_ARGUMENT` for a count of 0.
 */
BYWAY_API
byway_status byway_ip_order(struct byway_ip *ips,
                            size_t n,
                            int32_t first_family,
                            uint32_t first_family_count,
                            struct byway_error **err);

/**
 * Makes a filter from text, one rule a line: `allow NETWORK`, `deny NETWORK`, `allow all` or `deny all` for
 * everything else, `public` for the list of `byway_filter_new_public`; `#` begins a comment. The first rule that holds
 * an address decides. Without an `all` line everything else is denied when the text allows something by name and does
 * not say `public`, else allowed.
 *
 * Ownership: the caller owns one reference.
 * Errors: `BYWAY_E_SYNTAX` with line and column, `BYWAY_E_UTF8`.
 */
BYWAY_API
byway_status byway_filter_new(const char *rules,
                              size_t len,
                              struct byway_filter **out,
                              struct byway_error **err);

/**
 * Makes the filter that lets only globally reachable addresses through: no loopback, private, link-local, shared,
 * documentation, multicast or reserved ones, also not inside IPv4-mapped, NAT64 or 6to4 forms.
 *
 * Ownership: the caller owns one reference.
 * Errors: `BYWAY_E_FORKED`.
 */
BYWAY_API
byway_status byway_filter_new_public(struct byway_filter **out,
                                     struct byway_error **err);

/**
 * Judges one address: `*denied` gets 1 when it must not be connected to, else 0.
 *
 * Errors: `BYWAY_E_INVALID_IP` when the record is of no family; `*denied` is 1 then.
 */
BYWAY_API
byway_status byway_filter_check(const struct byway_filter *self,
                                const struct byway_ip *ip,
                                int32_t *denied);

/**
 * One more reference; returns its argument, NULL for what is not a live filter.
 */
BYWAY_API struct byway_filter *byway_filter_retain(struct byway_filter *self);

/**
 * One reference less. NULL is fine.
 */
BYWAY_API void byway_filter_release(struct byway_filter *self);

/**
 * Makes a proxy of a `BYWAY_PROXY_*` kind other than DIRECT.
 *
 * Ownership: the caller owns one reference.
 * Errors: `BYWAY_E_ENUM`, `BYWAY_E_INVALID_HOST`, `BYWAY_E_INVALID_PORT`, `BYWAY_E_INVALID_PROXY`, `BYWAY_E_UTF8`.
 */
BYWAY_API
byway_status byway_proxy_new(int32_t kind,
                             const char *host,
                             size_t len,
                             int32_t port,
                             struct byway_proxy **out,
                             struct byway_error **err);

/**
 * As `byway_proxy_new`, already resolved: this address is used and no other; `host` may be empty and is only text.
 *
 * Ownership: the caller owns one reference.
 * Errors: as `byway_proxy_new`; `BYWAY_E_INVALID_IP`.
 */
BYWAY_API
byway_status byway_proxy_new_resolved(int32_t kind,
                                      const char *host,
                                      size_t len,
                                      const struct byway_ip *ip,
                                      int32_t port,
                                      struct byway_proxy **out,
                                      struct byway_error **err);

/**
 * The same proxy with credentials. They go to this proxy only, and are shown nowhere: not in texts, errors, events or
 * explanations. NULL says that there is none; an empty text is an empty one.
 *
 * Ownership: the caller owns one reference; `self` stays as it is.
 * Errors: `BYWAY_E_INVALID_PROXY` for what the protocol cannot carry.
 */
BYWAY_API
byway_status byway_proxy_with_credentials(const struct byway_proxy *self,
                                          const char *user,
                                          size_t user_len,
                                          const char *password,
                                          size_t password_len,
                                          struct byway_proxy **out,
                                          struct byway_error **err);

/**
 * `BYWAY_PROXY_*`; DIRECT for NULL, -1 for what is not a live proxy.
 */
BYWAY_API int32_t byway_proxy_kind(const struct byway_proxy *self);

/**
 * Canonical host, without brackets.
 *
 * Ownership: borrowed, valid until the proxy goes.
 * Errors: `BYWAY_E_BAD_HANDLE`, also for NULL, which is DIRECT and has none.
 */
BYWAY_API byway_status byway_proxy_host(const struct byway_proxy *self, struct byway_str *out);

/**
 * The one address used, when the proxy was made resolved or its host is a literal.
 *
 * Errors: `BYWAY_DONE` when its name has to be resolved.
 */
BYWAY_API byway_status byway_proxy_ip(const struct byway_proxy *self, struct byway_ip *out);

/**
 * Port, 0 for what is not a live proxy.
 */
BYWAY_API uint16_t byway_proxy_port(const struct byway_proxy *self);

/**
 * 1 when both are the same proxy: kind, place and user name; the password does not count. NULL is DIRECT.
 */
BYWAY_API
int32_t byway_proxy_equals(const struct byway_proxy *self,
                           const struct byway_proxy *other);

/**
 * `kind://host:port`, without credentials.
 *
 * Ownership: the caller owns the text.
 * Errors: `BYWAY_E_BAD_HANDLE`.
 */
BYWAY_API
byway_status byway_proxy_text(const struct byway_proxy *self,
                              struct byway_text **out,
                              struct byway_error **err);

/**
 * One more reference; returns its argument, NULL for what is not a live proxy.
 */
BYWAY_API struct byway_proxy *byway_proxy_retain(struct byway_proxy *self);

/**
 * One reference less. NULL is fine.
 */
BYWAY_API void byway_proxy_release(struct byway_proxy *self);

/**
 * Makes a resolver from callbacks.
 *
 * Ownership: the caller owns one reference. `callbacks->destroy` runs when the last user is gone, also when this fails.
 * Errors: `BYWAY_E_STRUCT_SIZE`, `BYWAY_E_NULL` without `lookup`, `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_dns_new(struct byway_engine *engine,
                           const struct byway_dns_callbacks *callbacks,
                           struct byway_dns **out,
                           struct byway_error **err);

/**
 * Makes a resolver that asks the system (`getaddrinfo`) on a small pool of byway's own threads. Giving up abandons the
 * thread's answer, never waits for it.
 *
 * Ownership: the caller owns one reference.
 * Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_dns_new_system(struct byway_engine *engine,
                                  struct byway_dns **out,
                                  struct byway_error **err);

/**
 * Makes a resolver from hosts-file text: lines of an address and its names, `#` comments. Names that are not listed do
 * not exist.
 *
 * Ownership: the caller owns one reference.
 * Errors: `BYWAY_E_SYNTAX` with line and column, `BYWAY_E_UTF8`.
 */
BYWAY_API
byway_status byway_dns_new_hosts(struct byway_engine *engine,
                                 const char *text,
                                 size_t len,
                                 struct byway_dns **out,
                                 struct byway_error **err);

/**
 * One more reference; returns its argument, NULL for what is not a live resolver.
 */
BYWAY_API struct byway_dns *byway_dns_retain(struct byway_dns *self);

/**
 * One reference less. NULL is fine. Addresses that use the resolver keep it.
 */
BYWAY_API void byway_dns_release(struct byway_dns *self);

/**
 * Number of the request, as `on_cancel` names it; 0 for what is not a live one.
 */
BYWAY_API uint64_t byway_dns_request_id(const struct byway_dns_request *self);

/**
 * 1 when nobody waits for the answer any more.
 */
BYWAY_API int32_t byway_dns_request_is_canceled(const struct byway_dns_request *self);

/**
 * Adds addresses to the answer, behind those already there. All or none.
 *
 * Threads: any; runs no host code.
 * Errors: `BYWAY_E_INVALID_IP`, `BYWAY_E_LIMIT`, `BYWAY_E_STATE` after the answer, `BYWAY_E_CANCELED` (harmless) when
 * nobody waits any more.
 */
BYWAY_API
byway_status byway_dns_request_add(struct byway_dns_request *self,
                                   const struct byway_ip *ips,
                                   size_t n);

/**
 * As `byway_dns_request_add`, from text: literals separated by white space or commas.
 *
 * Errors: as there, naming the word that is no address.
 */
BYWAY_API
byway_status byway_dns_request_add_text(struct byway_dns_request *self,
                                        const char *ips,
                                        size_t len,
                                        struct byway_error **err);

/**
 * Adds one HTTPS or SVCB record.
 *
 * Errors: as `byway_dns_request_add`; `BYWAY_E_STRUCT_SIZE`.
 */
BYWAY_API
byway_status byway_dns_request_add_service(struct byway_dns_request *self,
                                           const struct byway_service_options *service,
                                           struct byway_error **err);

/**
 * Says that every address of one family (4 or 6) has been added. With `BYWAY_SELECTOR_EARLY` the routes so far may then
 * be used while the other family is awaited.
 *
 * Errors: `BYWAY_E_ENUM`; else as `byway_dns_request_add`.
 */
BYWAY_API
byway_status byway_dns_request_family_done(struct byway_dns_request *self,
                                           int32_t family);

/**
 * The answer is complete. The first end wins; a callback that returns `BYWAY_OK` has finished.
 *
 * Errors: `BYWAY_E_STATE`, `BYWAY_E_CANCELED`.
 */
BYWAY_API byway_status byway_dns_request_finish(struct byway_dns_request *self);

/**
 * The lookup failed. What was added before still counts: one family that fails does not fail the call. `status` is a
 * `BYWAY_E_*`, for example `BYWAY_E_UNKNOWN_HOST` or `BYWAY_E_DNS`; `host_code` and the message go into the error.
 *
 * Errors: `BYWAY_E_STATE`, `BYWAY_E_CANCELED`.
 */
BYWAY_API
byway_status byway_dns_request_fail(struct byway_dns_request *self,
                                    byway_status status,
                                    int64_t host_code,
                                    const char *message,
                                    size_t len);

/**
 * One more reference, to answer after the callback has returned; returns its argument, NULL for what is not a live request.
 */
BYWAY_API
struct byway_dns_request *byway_dns_request_retain(struct byway_dns_request *self);

/**
 * One reference less. When the last one goes and the question is unanswered, it fails with `BYWAY_E_ABANDONED`: nobody
 * waits for ever. NULL is fine.
 */
BYWAY_API
void byway_dns_request_release(struct byway_dns_request *self);

/**
 * Makes a proxy selector from callbacks.
 *
 * Ownership: the caller owns one reference. `callbacks->destroy` runs when the last user is gone, also when this fails.
 * Errors: `BYWAY_E_STRUCT_SIZE`, `BYWAY_E_NULL` without `select`, `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_proxy_selector_new(struct byway_engine *engine,
                                      const struct byway_proxy_selector_callbacks *callbacks,
                                      struct byway_proxy_selector **out,
                                      struct byway_error **err);

/**
 * Makes the proxy selector that always says DIRECT. All of them are equal.
 *
 * Ownership: the caller owns one reference.
 * Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_proxy_selector_new_direct(struct byway_engine *engine,
                                             struct byway_proxy_selector **out,
                                             struct byway_error **err);

/**
 * Makes a proxy selector that always gives this list, in its order. A NULL entry is DIRECT.
 *
 * Ownership: the caller owns one reference; the proxies are retained.
 * Errors: `BYWAY_E_EMPTY_ANSWER` for an empty list, `BYWAY_E_LIMIT`, `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_proxy_selector_new_fixed(struct byway_engine *engine,
                                            const struct byway_proxy *const *proxies,
                                            size_t n,
                                            struct byway_proxy_selector **out,
                                            struct byway_error **err);

/**
 * One more reference; returns its argument, NULL for what is not a live proxy selector.
 */
BYWAY_API
struct byway_proxy_selector *byway_proxy_selector_retain(struct byway_proxy_selector *self);

/**
 * One reference less. NULL is fine. Addresses that use the proxy selector keep it.
 */
BYWAY_API void byway_proxy_selector_release(struct byway_proxy_selector *self);

/**
 * Number of the request, as `on_cancel` names it; 0 for what is not a live one.
 */
BYWAY_API uint64_t byway_proxy_request_id(const struct byway_proxy_request *self);

/**
 * 1 when nobody waits for the answer any more.
 */
BYWAY_API int32_t byway_proxy_request_is_canceled(const struct byway_proxy_request *self);

/**
 * Adds a proxy to the list. A port outside 1..65535 is taken: that entry fails when its turn comes, with an event, and
 * the next one serves. Everything else that is wrong is an error here, naming the entry's index.
 *
 * Threads: any; runs no host code.
 * Errors: `BYWAY_E_ENUM`, `BYWAY_E_INVALID_HOST`, `BYWAY_E_UTF8`, `BYWAY_E_LIMIT`, `BYWAY_E_STATE` after the answer,
 * `BYWAY_E_CANCELED` (harmless) when nobody waits any more.
 */
BYWAY_API
byway_status byway_proxy_request_add(struct byway_proxy_request *self,
                                     int32_t kind,
                                     const char *host,
                                     size_t len,
                                     int32_t port,
                                     struct byway_error **err);

/**
 * Adds a proxy made before, with its credentials. NULL is an error: DIRECT is `byway_proxy_request_add_direct`.
 *
 * Errors: `BYWAY_E_NULL`, `BYWAY_E_BAD_HANDLE`; else as `byway_proxy_request_add`.
 */
BYWAY_API
byway_status byway_proxy_request_add_proxy(struct byway_proxy_request *self,
                                           const struct byway_proxy *proxy);

/**
 * Adds DIRECT.
 *
 * Errors: as `byway_proxy_request_add`.
 */
BYWAY_API byway_status byway_proxy_request_add_direct(struct byway_proxy_request *self);

/**
 * The list is complete. The first end wins; a callback that returns `BYWAY_OK` has finished.
 *
 * Errors: `BYWAY_E_STATE`, `BYWAY_E_CANCELED`.
 */
BYWAY_API byway_status byway_proxy_request_finish(struct byway_proxy_request *self);

/**
 * No proxies can be named: `status` is a `BYWAY_E_*`; `host_code` and the message go into the error. What it means is
 * the engine's `on_proxy_selector_error`.
 *
 * Errors: `BYWAY_E_STATE`, `BYWAY_E_CANCELED`.
 */
BYWAY_API
byway_status byway_proxy_request_fail(struct byway_proxy_request *self,
                                      byway_status status,
                                      int64_t host_code,
                                      const char *message,
                                      size_t len);

/**
 * One more reference, to answer after the callback has returned; returns its argument, NULL for what is not a live request.
 */
BYWAY_API
struct byway_proxy_request *byway_proxy_request_retain(struct byway_proxy_request *self);

/**
 * One reference less. When the last one goes and the question is unanswered, it fails with `BYWAY_E_ABANDONED`. NULL is
 * fine.
 */
BYWAY_API
void byway_proxy_request_release(struct byway_proxy_request *self);

/**
 * Makes a proxy selector from environment variables: `http_proxy`, `https_proxy`, `all_proxy`, `no_proxy` and the like.
 * `names` and `values` are `n` variables; with `n` 0 and `names` NULL the process's own environment is read, here and by
 * `byway_proxy_selector_refresh`, and at no other time. `dialect` says whose reading is meant: `byway` (also NULL), `curl`, `go`, `python`, `chromium`,
 * `node`. A value that is no proxy is the error of the requests it is for, never DIRECT.
 *
 * Ownership: the caller owns one reference; the texts are copied.
 * Threads: reading the process's environment must not run while another thread changes it.
 * Errors: `BYWAY_E_ARGUMENT` for an unknown dialect, `BYWAY_E_UTF8`, `BYWAY_E_LIMIT` for a text above 1 MiB or more than
 * 65 536 variables, `BYWAY_E_BAD_HANDLE`.
 */
BYWAY_API
byway_status byway_proxy_selector_new_environment(struct byway_engine *engine,
                                                  const struct byway_str *names,
                                                  const struct byway_str *values,
                                                  size_t n,
                                                  const char *dialect,
                                                  size_t dialect_len,
                                                  struct byway_proxy_selector **out,
                                                  struct byway_error **err);

/**
 * Makes a proxy selector from Java system properties (`http.proxyHost`, `http.nonProxyHosts`, `socksProxyHost` and the
 * like), with the answers of the JDK's own default selector. `web_sockets` 1: ws and wss use the http and https
 * properties, as the JDK does from 2026 on; 0: they are DIRECT, as before.
 *
 * Ownership: the caller owns one reference; the texts are copied.
 * Errors: `BYWAY_E_ENUM` for `web_sockets`, `BYWAY_E_UTF8`, `BYWAY_E_LIMIT` for a text above 1 MiB or more than 65 536
 * properties, `BYWAY_E_BAD_HANDLE`.
 */
BYWAY_API
byway_status byway_proxy_selector_new_properties(struct byway_engine *engine,
                                                 const struct byway_str *names,
                                                 const struct byway_str *values,
                                                 size_t n,
                                                 int32_t web_sockets,
                                                 struct byway_proxy_selector **out,
                                                 struct byway_error **err);

/**
 * Makes a proxy selector from the settings of Windows: `server` is the value of `ProxyServer` (`http=h:p;https=h:p;socks=h:p`,
 * or one `h:p` for everything), `bypass` that of `ProxyOverride` (`<local>`, `*.corp`, `10.*`, separated by `;`).
 *
 * Ownership: the caller owns one reference; the texts are copied.
 * Errors: `BYWAY_E_INVALID_PROXY`, `BYWAY_E_UTF8`, `BYWAY_E_LIMIT` for a text above 1 MiB, `BYWAY_E_BAD_HANDLE`.
 */
BYWAY_API
byway_status byway_proxy_selector_new_windows(struct byway_engine *engine,
                                              const char *server,
                                              size_t server_len,
                                              const char *bypass,
                                              size_t bypass_len,
                                              struct byway_proxy_selector **out,
                                              struct byway_error **err);

/**
 * Sets every option to its default.
 */
BYWAY_API void byway_bypass_options_init(struct byway_bypass_options *options);

/**
 * Makes a proxy selector that says DIRECT for the hosts of a list and asks `inner` about all others. Entries that mean
 * nothing are not in use and named by `byway_proxy_selector_diagnostics`.
 *
 * Ownership: the caller owns one reference; `inner` is retained, the texts are copied.
 * Errors: `BYWAY_E_STRUCT_SIZE`, `BYWAY_E_ENUM`, `BYWAY_E_ARGUMENT` for an unknown dialect, `BYWAY_E_UTF8`,
 * `BYWAY_E_BAD_HANDLE`; `BYWAY_E_LIMIT` when more than 16 proxy selectors lie one inside the other, or for a list above
 * 1 MiB.
 */
BYWAY_API
byway_status byway_proxy_selector_new_bypass(struct byway_engine *engine,
                                             const struct byway_bypass_options *options,
                                             const struct byway_proxy_selector *inner,
                                             struct byway_proxy_selector **out,
                                             struct byway_error **err);

/**
 * Makes a proxy selector that asks one of `n` others by the URL's scheme. A NULL among them is DIRECT. `ws` and `wss` use
 * those of `http` and `https` when they have none of their own; every other scheme uses `otherwise`, NULL for DIRECT.
 * For a list of proxies see `byway_proxy_selector_new_fixed`.
 *
 * Ownership: the caller owns one reference; the selectors are retained, the texts are copied.
 * Errors: `BYWAY_E_ARGUMENT` for a scheme named twice or an empty one, `BYWAY_E_UTF8`, `BYWAY_E_LIMIT` as in
 * `byway_proxy_selector_new_bypass`, `BYWAY_E_BAD_HANDLE`.
 */
BYWAY_API
byway_status byway_proxy_selector_new_per_scheme(struct byway_engine *engine,
                                                 const struct byway_str *schemes,
                                                 const struct byway_proxy_selector *const *selectors,
                                                 size_t n,
                                                 const struct byway_proxy_selector *otherwise,
                                                 struct byway_proxy_selector **out,
                                                 struct byway_error **err);

/**
 * Makes a proxy selector that asks one of `n` others, that of the first pattern that covers the target. A NULL among them
 * is DIRECT. A pattern is a list in the style `BYWAY_BYPASS_BROWSER` (`*.corp;10.0.0.0/8;https://x:8443`) without exceptions
 * of its own; `*` covers every host. Without a match `otherwise` is asked; when that is NULL the request fails with
 * `BYWAY_E_PROXY_SELECTOR`: DIRECT is said, with a last rule, never implied.
 *
 * Ownership: the caller owns one reference; the selectors are retained, the texts are copied.
 * Errors: `BYWAY_E_ARGUMENT` naming the rule whose pattern means nothing, `BYWAY_E_UTF8`, `BYWAY_E_LIMIT` as in
 * `byway_proxy_selector_new_bypass`, `BYWAY_E_BAD_HANDLE`.
 */
BYWAY_API
byway_status byway_proxy_selector_new_rules(struct byway_engine *engine,
                                            const struct byway_str *patterns,
                                            const struct byway_proxy_selector *const *selectors,
                                            size_t n,
                                            const struct byway_proxy_selector *otherwise,
                                            struct byway_proxy_selector **out,
                                            struct byway_error **err);

/**
 * What is to be known about a proxy selector's configuration, one sentence a line: entries that are not in use, variables
 * that were ignored, where the system's settings came from, why a script was not fetched. Empty when there is nothing.
 * Also after a shutdown.
 *
 * Ownership: the caller owns the text.
 * Errors: `BYWAY_E_BAD_HANDLE`.
 */
BYWAY_API
byway_status byway_proxy_selector_diagnostics(const struct byway_proxy_selector *self,
                                              struct byway_text **out,
                                              struct byway_error **err);

/**
 * Sets every option to its default.
 */
BYWAY_API void byway_pac_options_init(struct byway_pac_options *options);

/**
 * Makes a proxy selector from the text of a proxy auto-configuration script; short for `byway_proxy_selector_new_pac` with
 * `url` and `source`.
 *
 * Ownership: the caller owns one reference; the texts are copied.
 * Errors: as `byway_proxy_selector_new_pac`.
 */
BYWAY_API
byway_status byway_proxy_selector_new_script(struct byway_engine *engine,
                                             const char *name,
                                             size_t name_len,
                                             const char *source,
                                             size_t source_len,
                                             struct byway_proxy_selector **out,
                                             struct byway_error **err);

/**
 * Makes a proxy selector that asks a proxy auto-configuration script: its text, a file that is read here, or what
 * `callbacks` fetches when the first question comes. A text that is at hand is loaded here, so one that does not parse,
 * throws, or defines no `FindProxyForURL` is an error now.
 *
 * The script runs on threads of the library, without input and output, and with the engine's wall clock. Names it asks for
 * are resolved by `options->dns` or the address's own resolver, on the thread that drives the request, and are awaited as
 * any lookup: nobody else waits for a slow name or a slow script. A script that fails, or names nothing usable, is an
 * error of the request, never DIRECT, unless the engine says so.
 *
 * Ownership: the caller owns one reference; the texts are copied. `callbacks->destroy` runs when the last user is gone, also
 * when this fails.
 * Errors: `BYWAY_E_PAC` with line and column, `BYWAY_E_TIMEOUT`, `BYWAY_E_LIMIT`, `BYWAY_E_OS` for the file,
 * `BYWAY_E_ARGUMENT` for a URL that nobody can fetch, a path that is no regular file, or an option out of range,
 * `BYWAY_E_ENUM`, `BYWAY_E_STRUCT_SIZE`, `BYWAY_E_UTF8`, `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`; `BYWAY_E_UNSUPPORTED` in a
 * library built without the feature `script`.
 */
BYWAY_API
byway_status byway_proxy_selector_new_pac(struct byway_engine *engine,
                                          const struct byway_pac_options *options,
                                          const struct byway_pac_callbacks *callbacks,
                                          struct byway_proxy_selector **out,
                                          struct byway_error **err);

/**
 * Hands a script in: the answer to `fetch`, or a newer text at any time. It is loaded here and in force from the next run on;
 * questions that waited for it go on. `charset` is what was said where it was fetched; without one a byte order mark
 * counts, else Latin-1. For a proxy selector of system settings it is the script they name.
 *
 * Threads: any; waits for the script to load, at most twice its time limit by its thread's clock. Runs no host code.
 * Errors: `BYWAY_E_PAC` with line and column, `BYWAY_E_TIMEOUT`, `BYWAY_E_LIMIT`, `BYWAY_E_UTF8`, `BYWAY_E_UNSUPPORTED` for a
 * charset or a library without the feature `script`: the old text stays in force, questions that waited for a first one
 * get the error. `BYWAY_E_STATE` for a proxy selector without a script, `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_proxy_selector_set_script(struct byway_proxy_selector *self,
                                             const char *source,
                                             size_t source_len,
                                             const char *charset,
                                             size_t charset_len,
                                             struct byway_error **err);

/**
 * The script could not be fetched: the answer to `fetch` that is none. Questions that wait get the error. `status` is a
 * `BYWAY_E_*`; `host_code` and the message go into the error.
 *
 * Threads: any; runs no host code.
 * Errors: `BYWAY_E_STATE` for a proxy selector without a script, `BYWAY_E_UTF8`, `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_proxy_selector_script_failed(struct byway_proxy_selector *self,
                                                byway_status status,
                                                int64_t host_code,
                                                const char *message,
                                                size_t len);

/**
 * URL of the script behind a proxy selector, empty when it is to be discovered (WPAD). Also after a shutdown.
 *
 * Ownership: the caller owns the text.
 * Errors: `BYWAY_DONE` and no text when there is none.
 */
BYWAY_API
byway_status byway_proxy_selector_script_url(const struct byway_proxy_selector *self,
                                             struct byway_text **out,
                                             struct byway_error **err);

/**
 * Reads what a proxy selector is made from again: the process's environment, the system's settings, a script's file; of one
 * that is made of others, all of them. A script that the host fetches is fetched anew by the next question, while the old
 * text still serves. On an error the old state stays in force.
 *
 * Threads: any; reads files. Reading the process's environment must not run while another thread changes it.
 * Errors: those of the constructor; `BYWAY_E_STATE` for a proxy selector that is made from nothing that could be read again,
 * `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_proxy_selector_refresh(struct byway_proxy_selector *self,
                                          struct byway_error **err);

/**
 * Sets every option to its default.
 */
BYWAY_API void byway_system_options_init(struct byway_system_options *options);

/**
 * Makes a proxy selector from the system's settings: a snapshot, read here from where `options` says, and again by
 * `byway_proxy_selector_refresh`; a question never reads anything. Settings that name a script have it run as in
 * `byway_proxy_selector_new_pac`: a `file:` URL is read together with the settings, everything else is fetched by
 * `callbacks`, with an empty URL when the settings say that it is to be discovered (WPAD). `callbacks` may be NULL; such
 * settings are then an error of the request, until `byway_proxy_selector_refresh` finds other ones.
 *
 * Ownership: the caller owns one reference; the texts are copied. `callbacks->destroy` runs when the last user is gone, also
 * when this fails.
 * Threads: reading the process's environment must not run while another thread changes it.
 * Errors: `BYWAY_E_STRUCT_SIZE`, `BYWAY_E_OS` and `BYWAY_E_SYNTAX` naming the file, `BYWAY_E_INVALID_PROXY` naming the key,
 * `BYWAY_E_UTF8`, `BYWAY_E_LIMIT`, `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`; those of a script's file.
 */
BYWAY_API
byway_status byway_proxy_selector_new_system(struct byway_engine *engine,
                                             const struct byway_system_options *options,
                                             const struct byway_pac_callbacks *callbacks,
                                             struct byway_proxy_selector **out,
                                             struct byway_error **err);

/**
 * Reads the system's settings from elsewhere from now on: other texts, another environment. `options->pac` is not used. On
 * an error the old settings stay in force.
 *
 * Errors: as `byway_proxy_selector_new_system`; `BYWAY_E_STATE` for a proxy selector of another kind.
 */
BYWAY_API
byway_status byway_proxy_selector_set_system(struct byway_proxy_selector *self,
                                             const struct byway_system_options *options,
                                             struct byway_error **err);

/**
 * Asks a proxy selector which proxies a URL has, outside any connection: for hosts that connect by themselves, and for
 * looking into a configuration. Waits at most `timeout_ms` for callbacks, scripts and the names they want to know.
 *
 * Writes `min(cap, total)` proxies in order, NULL for DIRECT. `explanation`, unless it is NULL, gets the list with the
 * reasons as JSON: `proxies`, `because` from the outermost proxy selector inwards, `script` with its `answer`,
 * `took_us`, `skipped` elements and `alerts` when one ran, `moved_back` with the proxies that failed lately.
 * `dns` resolves what a script wants to know; NULL: the system. Listeners hear of these
 * names with a `selector_id` of 0, and of nothing else.
 *
 * `timeout_ms`: 0 = do not wait, negative = the engine's default.
 * Ownership: the caller owns one reference of each proxy written, and the text.
 * Threads: any; on the thread of an event loop only with a `timeout_ms` of 0.
 * Errors: `BYWAY_E_INVALID_URL`, those of the proxy selector, `BYWAY_E_TIMEOUT`, `BYWAY_E_WOULD_DEADLOCK`, `BYWAY_E_UTF8`,
 * `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_engine_proxies_for_url(struct byway_engine *self,
                                          const struct byway_proxy_selector *selector,
                                          const char *url,
                                          size_t url_len,
                                          const struct byway_dns *dns,
                                          int64_t timeout_ms,
                                          struct byway_proxy **proxies,
                                          size_t cap,
                                          size_t *total,
                                          struct byway_text **explanation,
                                          struct byway_error **err);

/**
 * The names at which a proxy script is looked for below a machine's domain (WPAD by DNS), one a line, most specific first:
 * `a.dept.example.com` gives `wpad.dept.example.com` and `wpad.example.com`; the script is `http://NAME/wpad.dat`. Nothing
 * above `stop_at` is named, nor below a single label; a host whose registrable domain has more labels (`example.co.uk`) says
 * so there. For hosts whose `fetch` is asked to discover: whoever answers for one of these names decides where traffic goes.
 *
 * Ownership: the caller owns the text.
 * Errors: `BYWAY_E_UTF8`.
 */
BYWAY_API
byway_status byway_wpad_names(const char *domain,
                              size_t domain_len,
                              const char *stop_at,
                              size_t stop_at_len,
                              struct byway_text **out,
                              struct byway_error **err);

/**
 * The proxies that failed lately and are tried last for a while, as a JSON array: `kind`, `host`, `port`,
 * `remaining_ms`; and how it failed last: `failure` (the text of a `BYWAY_FAILURE_*`), `os_errno` (0 for none), `age_ms`
 * (milliseconds since). A proxy gets there when nothing behind it could be reached (its name, TCP or TLS to it, its SOCKS
 * greeting) and a later entry of the same list worked; it leaves after `bad_proxy_ms`, when the network changes, and when
 * it is forgotten. DIRECT never gets there.
 *
 * Ownership: the caller owns the text.
 * Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_engine_bad_proxies(const struct byway_engine *self,
                                      struct byway_text **out,
                                      struct byway_error **err);

/**
 * Says that a proxy failed although it was tried outside this library: it goes behind the others for `bad_proxy_ms`. For
 * hosts that ask with `byway_engine_proxies_for_url` and connect by themselves; those that report routes need not. Call
 * it when a later entry of the list worked, or being offline would mark them all. DIRECT is never marked, and nothing is
 * with a `bad_proxy_ms` of 0 or under a `compat`. `failure` is `BYWAY_FAILURE_*`, `os_errno` the system's number or 0.
 *
 * Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_ENUM`, `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_engine_mark_proxy(struct byway_engine *self,
                                     const struct byway_proxy *proxy,
                                     int32_t failure,
                                     int32_t os_errno,
                                     struct byway_error **err);

/**
 * Forgets which proxies failed: all are tried in their configured order again.
 *
 * Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_engine_forget_bad_proxies(struct byway_engine *self,
                                             struct byway_error **err);

/**
 * Sets every option to its default.
 */
BYWAY_API void byway_address_options_init(struct byway_address_options *options);

/**
 * Makes an address. Host, literals and the URI for the proxy selector are worked out here, once: keep it and use it
 * again.
 *
 * Ownership: the caller owns one reference.
 * Errors: `BYWAY_E_INVALID_HOST` with the place, `BYWAY_E_INVALID_PORT`, `BYWAY_E_ARGUMENT` for a scheme that is none
 * or for an explicit proxy together with `BYWAY_ADDRESS_DIRECT`, `BYWAY_E_UTF8`.
 */
BYWAY_API
byway_status byway_address_new(struct byway_engine *engine,
                               const struct byway_address_options *options,
                               struct byway_address **out,
                               struct byway_error **err);

/**
 * Canonical host, without brackets and zone.
 *
 * Ownership: borrowed, valid until the address goes.
 * Errors: `BYWAY_E_BAD_HANDLE`.
 */
BYWAY_API byway_status byway_address_host(const struct byway_address *self, struct byway_str *out);

/**
 * URI as the proxy selector sees it.
 *
 * Ownership: borrowed, valid until the address goes.
 * Errors: `BYWAY_E_BAD_HANDLE`.
 */
BYWAY_API byway_status byway_address_uri(const struct byway_address *self, struct byway_str *out);

/**
 * Port, 0 for what is not a live address.
 */
BYWAY_API uint16_t byway_address_port(const struct byway_address *self);

/**
 * 1 when both lead to the same place by the same means: everything an address is made from counts.
 */
BYWAY_API
int32_t byway_address_equals(const struct byway_address *self,
                             const struct byway_address *other);

/**
 * 1 when both are equal in everything but host and scheme: what must hold before a connection made for one may be
 * considered for the other (see `byway_route_coalesces`).
 */
BYWAY_API
int32_t byway_address_equal_non_host(const struct byway_address *self,
                                     const struct byway_address *other);

/**
 * The same for equal addresses, within this process; 0 for what is not a live address.
 */
BYWAY_API uint64_t byway_address_hash(const struct byway_address *self);

/**
 * Text for people: `scheme://host:port`, with the explicit proxy. Under `BYWAY_COMPAT_OKHTTP_5` and `_3` OkHttp's.
 *
 * Ownership: the caller owns the text.
 * Errors: `BYWAY_E_BAD_HANDLE`.
 */
BYWAY_API
byway_status byway_address_text(const struct byway_address *self,
                                struct byway_text **out,
                                struct byway_error **err);

/**
 * One more reference; returns its argument, NULL for what is not a live address.
 */
BYWAY_API struct byway_address *byway_address_retain(struct byway_address *self);

/**
 * One reference less. NULL is fine.
 */
BYWAY_API void byway_address_release(struct byway_address *self);

/**
 * Makes a route from its parts, for hosts that keep routes of their own. `proxy` NULL is DIRECT; `hop` NULL is an
 * unresolved hop, as OkHttp's SOCKS routes have. The usual source of routes is `byway_selection_next`.
 *
 * Ownership: the caller owns one reference.
 * Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_INVALID_IP`.
 */
BYWAY_API
byway_status byway_route_new(const struct byway_address *address,
                             const struct byway_proxy *proxy,
                             const struct byway_ip *hop,
                             uint16_t hop_port,
                             struct byway_route **out,
                             struct byway_error **err);

/**
 * Fills a `struct sockaddr_in` or `sockaddr_in6` for `connect(2)`, at most `cap` bytes; `*len` gets the size.
 *
 * Errors: `BYWAY_E_LIMIT` when `cap` is too small (`*len` says what is needed; `sizeof(struct sockaddr_storage)` is
 * always enough), `BYWAY_E_NO_ROUTE` for an unresolved hop.
 */
BYWAY_API
byway_status byway_route_sockaddr(const struct byway_route *self,
                                  void *out,
                                  size_t cap,
                                  size_t *len);

/**
 * What `connect(2)` gets. Family 0 for an unresolved hop. `port` may be NULL.
 *
 * Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_NULL` without `ip`.
 */
BYWAY_API
byway_status byway_route_hop(const struct byway_route *self,
                             struct byway_ip *ip,
                             uint16_t *port);

/**
 * What the proxy or TLS is told. `name` gets the address's canonical host; `ip` the address of the target where it is
 * one, else family 0 (the proxy resolves the name). `ip` and `port` may be NULL.
 *
 * Ownership: `*name` is borrowed, valid until the route goes.
 * Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_NULL` without `name`.
 */
BYWAY_API
byway_status byway_route_target(const struct byway_route *self,
                                struct byway_str *name,
                                struct byway_ip *ip,
                                uint16_t *port);

/**
 * OkHttp's `socketAddress`: the hop; behind SOCKS the unresolved origin (family 0) and its port.
 *
 * Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_NULL` without `ip`.
 */
BYWAY_API
byway_status byway_route_socket_address(const struct byway_route *self,
                                        struct byway_ip *ip,
                                        uint16_t *port);

/**
 * The proxy it goes through; NULL for DIRECT.
 *
 * Ownership: the caller owns one reference of `*out`.
 * Errors: `BYWAY_E_BAD_HANDLE`.
 */
BYWAY_API
byway_status byway_route_proxy(const struct byway_route *self,
                               struct byway_proxy **out,
                               struct byway_error **err);

/**
 * `BYWAY_PROXY_*`; -1 for what is not a live route.
 */
BYWAY_API int32_t byway_route_proxy_kind(const struct byway_route *self);

/**
 * 1 when an HTTP proxy must first be asked for a tunnel (`CONNECT`).
 */
BYWAY_API int32_t byway_route_requires_tunnel(const struct byway_route *self);

/**
 * `BYWAY_ROUTE_*`; 0 for what is not a live route.
 */
BYWAY_API uint32_t byway_route_flags(const struct byway_route *self);

/**
 * HTTPS/SVCB metadata of the name that was resolved: ECH configuration list and port (0 when the record has none).
 * Both outputs may be NULL.
 *
 * Ownership: `*ech` is borrowed bytes, without a NUL, valid until the route goes.
 * Errors: `BYWAY_DONE` when the route carries none.
 */
BYWAY_API
byway_status byway_route_service(const struct byway_route *self,
                                 struct byway_str *ech,
                                 uint16_t *port);

/**
 * One ALPN id of the metadata, in order.
 *
 * Ownership: `*out` is borrowed bytes, without a NUL, valid until the route goes.
 * Errors: `BYWAY_DONE` past the last one.
 */
BYWAY_API
byway_status byway_route_service_alpn_at(const struct byway_route *self,
                                         size_t index,
                                         struct byway_str *out);

/**
 * The address hints of the metadata, in order: writes up to `cap` addresses of `stride` bytes, `*total` gets their
 * number. byway itself connects by the address records.
 *
 * Errors: `BYWAY_DONE` and a total of 0 when the route carries no metadata; `BYWAY_E_NULL` for a `cap` without a place,
 * `BYWAY_E_ARGUMENT` for a stride of 0.
 */
BYWAY_API
byway_status byway_route_service_hints(const struct byway_route *self,
                                       struct byway_ip *out,
                                       size_t stride,
                                       size_t cap,
                                       size_t *total);

/**
 * 1 when both are the same route by value: origin, proxy, hop, and the target where byway resolved it.
 */
BYWAY_API
int32_t byway_route_equals(const struct byway_route *self,
                           const struct byway_route *other);

/**
 * The same for equal routes, within this process; 0 for what is not a live route.
 */
BYWAY_API uint64_t byway_route_hash(const struct byway_route *self);

/**
 * Text for people: `HOST[:PORT]`, then ` at IP:PORT` or ` via proxy IP:PORT`.
 *
 * Ownership: the caller owns the text.
 * Errors: `BYWAY_E_BAD_HANDLE`.
 */
BYWAY_API
byway_status byway_route_text(const struct byway_route *self,
                              struct byway_text **out,
                              struct byway_error **err);

/**
 * May a live connection made over `self` serve `wanted`, whose own routes are `wanted_routes`? The same address; or a
 * multiplexed connection whose certificate covers the host under the default verification, both DIRECT, and the very
 * same address and port. `*why_not` gets 0 when it may, else `BYWAY_NO_COALESCING_*`.
 *
 * Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_STRUCT_SIZE`.
 */
BYWAY_API
byway_status byway_route_coalesces(const struct byway_route *self,
                                   const struct byway_address *wanted,
                                   const struct byway_route *const *wanted_routes,
                                   size_t n,
                                   const struct byway_peer *peer,
                                   int32_t *why_not,
                                   struct byway_error **err);

/**
 * One more reference; returns its argument, NULL for what is not a live route. Keeps a route that a selection lent.
 */
BYWAY_API
struct byway_route *byway_route_retain(const struct byway_route *self);

/**
 * One reference less. NULL is fine.
 */
BYWAY_API void byway_route_release(struct byway_route *self);

/**
 * Number of routes, at least 1; 0 for what is not a live selection, or one on which a call is running.
 */
BYWAY_API
size_t byway_selection_len(const struct byway_selection *self);

/**
 * One route; NULL past the end.
 *
 * Ownership: borrowed, valid until the selection is freed; `byway_route_retain` keeps it.
 */
BYWAY_API const struct byway_route *byway_selection_at(struct byway_selection *self, size_t index);

/**
 * The route under the cursor, which moves on.
 *
 * Ownership: `*out` is borrowed, valid until the selection is freed; `byway_route_retain` keeps it.
 * Errors: `BYWAY_DONE` when all were given.
 */
BYWAY_API
byway_status byway_selection_next(struct byway_selection *self,
                                  const struct byway_route **out,
                                  struct byway_error **err);

/**
 * 1 when `byway_selection_next` has a route, else 0.
 */
BYWAY_API int32_t byway_selection_more(const struct byway_selection *self);

/**
 * All routes at once: writes up to `cap` records of `stride` bytes, `*total` gets their number. The cursor stays.
 *
 * Ownership: texts in the records are borrowed, valid until the selection is freed.
 * Errors: `BYWAY_E_ARGUMENT` for a stride of 0.
 */
BYWAY_API
byway_status byway_selection_records(const struct byway_selection *self,
                                     struct byway_route_record *out,
                                     size_t stride,
                                     size_t cap,
                                     size_t *total);

/**
 * Ends a selection. NULL is fine.
 */
BYWAY_API void byway_selection_free(struct byway_selection *self);

/**
 * Sets every option to its default.
 */
BYWAY_API void byway_selector_options_init(struct byway_selector_options *options);

/**
 * Makes a selector. The proxy selector is asked here, once; a later answer, or its failure, shows in the first `next`.
 * `options` may be NULL.
 *
 * Ownership: the caller owns it; the address is retained.
 * Errors: `BYWAY_E_ARGUMENT` for an address of another engine, `BYWAY_E_SHUTDOWN`. Under `BYWAY_COMPAT_OKHTTP_5` and
 * `_3` also what the proxy selector fails with.
 */
BYWAY_API
byway_status byway_selector_new(struct byway_engine *engine,
                                const struct byway_address *address,
                                const struct byway_selector_options *options,
                                struct byway_selector **out,
                                struct byway_error **err);

/**
 * The next routes to try. Waits for answers up to `timeout_ms` (0 = do not wait, negative = the engine's default);
 * after `BYWAY_E_TIMEOUT` a further call goes on waiting for the same answers.
 *
 * Ownership: the caller owns the selection.
 * Errors: `BYWAY_DONE` when nothing is left. An error names every cause since the last Selection: unknown hosts,
 * unusable proxies, filtered addresses. `BYWAY_E_TIMEOUT`, `BYWAY_E_CANCELED`, `BYWAY_E_SHUTDOWN`, `BYWAY_E_BUSY`,
 * `BYWAY_E_REENTRANT`, `BYWAY_E_WOULD_DEADLOCK` on an event loop's thread when it would have to wait.
 */
BYWAY_API
byway_status byway_selector_next(struct byway_selector *self,
                                 int64_t timeout_ms,
                                 struct byway_selection **out,
                                 struct byway_error **err);

/**
 * As `byway_selector_next` without waiting: `BYWAY_PENDING` is followed by exactly one `BYWAY_COMPLETION_SELECTOR`
 * record on the selector's queue, also on cancel, free and shutdown; then call again. Nothing is awaited for ever: when the
 * engine's default timeout has passed the record says `BYWAY_E_TIMEOUT`, and a further call goes on waiting for the same
 * answers. A further poll before that record shares it.
 *
 * Ownership: the caller owns the selection.
 * Errors: as `byway_selector_next`; `BYWAY_E_LIMIT` when the queue has no room for the record.
 */
BYWAY_API
byway_status byway_selector_poll_next(struct byway_selector *self,
                                      struct byway_selection **out,
                                      struct byway_error **err);

/**
 * Every route of an address in one call, in the order to try them, what failed before at the end: writes up to `cap`
 * records of `stride` bytes into the caller's memory, `*total` gets their number. Proxy selector and resolver must
 * answer in place. `options` may be NULL.
 *
 * Ownership: `host` in the records is borrowed from the address, `proxy_host` too for its explicit proxy, and is
 * `(NULL, 0)` for others: take a selector where their texts or credentials are needed.
 * Errors: as `byway_selector_next`; `BYWAY_E_WOULD_DEADLOCK` when an answer did not come in place.
 */
BYWAY_API
byway_status byway_selector_plan(struct byway_engine *engine,
                                 const struct byway_address *address,
                                 const struct byway_selector_options *options,
                                 struct byway_route_record *out,
                                 size_t stride,
                                 size_t cap,
                                 size_t *total,
                                 struct byway_error **err);

/**
 * 1 when `next` may still give routes or an error, 0 when it says `BYWAY_DONE`. Asks nobody. 0 for what is not a live
 * selector, or one on which a call is running.
 */
BYWAY_API
int32_t byway_selector_may_have_next(const struct byway_selector *self);

/**
 * Cancels for good: a running or later call ends with `BYWAY_E_CANCELED`, a pending one gets its record.
 *
 * Threads: any, at any time, also from a signal handler.
 * Errors: `BYWAY_E_BAD_HANDLE`.
 */
BYWAY_API
byway_status byway_selector_cancel(struct byway_selector *self);

/**
 * The whole decision so far: proxies offered, names, answers, what was postponed since when and why, what was filtered,
 * the resulting order. `format` is `BYWAY_FORMAT_*`. Also after a shutdown.
 *
 * Ownership: the caller owns the text.
 * Errors: `BYWAY_E_ENUM`, `BYWAY_E_BUSY`.
 */
BYWAY_API
byway_status byway_selector_explain(const struct byway_selector *self,
                                    int32_t format,
                                    struct byway_text **out,
                                    struct byway_error **err);

/**
 * The selector's number, as completion records and events carry it; 0 for what is not a live selector, or one on which
 * a call is running.
 */
BYWAY_API
uint64_t byway_selector_id(const struct byway_selector *self);

/**
 * Ends a selector, at any time: a running call ends with `BYWAY_E_CANCELED` and frees it. Selections and routes it gave
 * stay. NULL is fine.
 */
BYWAY_API
void byway_selector_free(struct byway_selector *self);

/**
 * Sets every option to its default.
 */
BYWAY_API void byway_dial_options_init(struct byway_dial_options *options);

/**
 * Makes a dial over the routes of a selector, Selection after Selection. Nothing happens before the first step.
 * `options` and `callbacks` may be NULL.
 *
 * Ownership: the caller owns the dial. The selector stays the caller's and belongs to the dial until that is freed:
 * other calls on it answer `BYWAY_E_BUSY`; cancelling or freeing it ends the dial.
 * Errors: `BYWAY_E_BUSY` for a selector in use, `BYWAY_E_ENUM`, `BYWAY_E_ARGUMENT`, `BYWAY_E_INVALID_IP`,
 * `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_dial_new(struct byway_engine *engine,
                            struct byway_selector *selector,
                            const struct byway_dial_options *options,
                            const struct byway_dial_callbacks *callbacks,
                            struct byway_dial **out,
                            struct byway_error **err);

/**
 * Makes a dial over the routes of one Selection that are still before its cursor. Otherwise as `byway_dial_new`.
 *
 * Ownership: the caller owns the dial; the selection is not needed any more.
 * Errors: as `byway_dial_new`.
 */
BYWAY_API
byway_status byway_dial_new_selection(struct byway_engine *engine,
                                      struct byway_selection *selection,
                                      const struct byway_dial_options *options,
                                      const struct byway_dial_callbacks *callbacks,
                                      struct byway_dial **out,
                                      struct byway_error **err);

/**
 * Makes a dial over routes the host has kept, in this order. Otherwise as `byway_dial_new`.
 *
 * Ownership: the caller owns the dial; the routes are retained.
 * Errors: as `byway_dial_new`.
 */
BYWAY_API
byway_status byway_dial_new_routes(struct byway_engine *engine,
                                   const struct byway_route *const *routes,
                                   size_t count,
                                   const struct byway_dial_options *options,
                                   const struct byway_dial_callbacks *callbacks,
                                   struct byway_dial **out,
                                   struct byway_error **err);

/**
 * Drives the dial on this thread until a socket is ready, and takes it, or until nothing is left. When `timeout_ms` has
 * passed the dial ends with `BYWAY_E_TIMEOUT`; 0 does what can be done without waiting and may answer `BYWAY_PENDING`;
 * negative is the engine's default. Only this dial's host code runs meanwhile.
 *
 * Ownership: socket and route in `*out` are the caller's.
 * Errors: `BYWAY_E_CONNECT` with every failed attempt as a cause; `BYWAY_E_PROXY_REFUSED` and `BYWAY_E_PROXY_AUTH` when
 * a proxy's answer ended the dial; `BYWAY_E_LOCAL` when this machine could make no attempt; `BYWAY_E_NO_ROUTE`,
 * `BYWAY_E_TIMEOUT`, `BYWAY_E_CANCELED`, `BYWAY_E_SHUTDOWN`; `BYWAY_E_WOULD_DEADLOCK` on an event loop's thread when it
 * would have to wait.
 */
BYWAY_API
byway_status byway_dial_run(struct byway_dial *self,
                            int64_t timeout_ms,
                            struct byway_connected *out,
                            struct byway_error **err);

/**
 * Does what is due and never waits. `ready` is what `poll` said about the set of `byway_dial_pollset`; `(NULL, 0)` looks
 * for itself. `BYWAY_OK`: a socket can be taken. `BYWAY_PENDING`: go on watching; no record comes to a queue, the
 * descriptors say when.
 *
 * Errors: as `byway_dial_run` when it is over without a socket.
 */
BYWAY_API
byway_status byway_dial_step(struct byway_dial *self,
                             const struct byway_pollfd *ready,
                             size_t count,
                             struct byway_error **err);

/**
 * As `byway_dial_step` on a clock of the host's own, milliseconds since the first step, that never goes back; nothing is
 * looked for. For tests and simulations: from here on the dial asks no other clock.
 *
 * Errors: as `byway_dial_step`.
 */
BYWAY_API
byway_status byway_dial_step_at(struct byway_dial *self,
                                uint64_t now_ms,
                                const struct byway_pollfd *ready,
                                size_t count,
                                struct byway_error **err);

/**
 * One descriptor for everything: readable when a step is due or a socket can be taken. The same for the dial's whole
 * life, also after a shutdown: then it is readable, and the step says `BYWAY_E_SHUTDOWN`. Linux.
 *
 * Ownership: the dial closes it.
 * Errors: `BYWAY_E_LOCAL` when it cannot be made.
 */
BYWAY_API
byway_status byway_dial_fd(struct byway_dial *self,
                           int32_t *out,
                           struct byway_error **err);

/**
 * Milliseconds until a step is due, rounded up: 0 = now, -1 = not before a descriptor says so. Also after a
 * shutdown.
 *
 * Errors: `BYWAY_E_NULL`, `BYWAY_E_BUSY`.
 */
BYWAY_API
byway_status byway_dial_deadline_ms(struct byway_dial *self,
                                    int64_t *out);

/**
 * Every descriptor to watch now, the one for wake-ups among them: writes up to `cap` entries of `stride` bytes, `*total`
 * gets their number. `*generation`, which may be NULL, changes with the set. Also after a shutdown, as `byway_dial_fd`.
 *
 * Errors: `BYWAY_E_LOCAL` when the descriptor for wake-ups cannot be made.
 */
BYWAY_API
byway_status byway_dial_pollset(struct byway_dial *self,
                                struct byway_pollfd *out,
                                size_t stride,
                                size_t cap,
                                size_t *total,
                                uint64_t *generation,
                                struct byway_error **err);

/**
 * The oldest event not fetched yet. None are kept without `BYWAY_DIAL_EVENTS`. Also after a shutdown.
 *
 * Errors: `BYWAY_DONE` when there is none.
 */
BYWAY_API
byway_status byway_dial_next_event(struct byway_dial *self,
                                   struct byway_dial_event *out);

/**
 * Moves the connected socket out, once. Of a provisional one the race goes on.
 *
 * Ownership: socket and route in `*out` are the caller's.
 * Errors: `BYWAY_E_STATE` when there is none or it was taken; as `byway_dial_run` when the dial has failed;
 * `BYWAY_E_SHUTDOWN`, the socket is closed with the dial.
 */
BYWAY_API
byway_status byway_dial_take(struct byway_dial *self,
                             struct byway_connected *out,
                             struct byway_error **err);

/**
 * The host is content with this attempt's socket, usually after TLS: ends a race that waits for it
 * (`BYWAY_RACE_UNTIL_HOST`), and reports a route through a proxy behind TLS as connected.
 *
 * Errors: `BYWAY_E_STATE` when this attempt is not on offer and has not won, `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_dial_confirm(struct byway_dial *self,
                                uint32_t attempt,
                                struct byway_error **err);

/**
 * The host could not use this attempt's socket, for the reason `BYWAY_RESUME_*`: go on. First `follow_up` if it is not
 * NULL, then the routes that lost, each with a fresh attempt, then those never tried. A socket that was taken stays the
 * host's, one that was not is closed.
 *
 * Errors: `BYWAY_E_STATE` when this attempt is not on offer and has not won, `BYWAY_E_ENUM`, `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_dial_resume(struct byway_dial *self,
                               uint32_t attempt,
                               int32_t reason,
                               const struct byway_route *follow_up,
                               struct byway_error **err);

/**
 * Credentials that `proxy_auth` promised: the whole value of `Proxy-Authorization`, for example `Basic dTpw`.
 * `(NULL, 0)` = there are none, the attempt ends. Sent to this proxy alone.
 *
 * Threads: any, at any time, also from inside `proxy_auth`.
 * Errors: `BYWAY_E_ARGUMENT` for a value that must not stand in a header, `BYWAY_E_SHUTDOWN`. An attempt that is over ignores it.
 */
BYWAY_API
byway_status byway_dial_authenticate(struct byway_dial *self,
                                     uint32_t attempt,
                                     const char *value,
                                     size_t len);

/**
 * Cancels for good: a running or later call ends with `BYWAY_E_CANCELED`, and the descriptor becomes readable. A socket
 * that was taken stays the host's.
 *
 * Threads: any, at any time, also from a signal handler.
 * Errors: `BYWAY_E_BAD_HANDLE`.
 */
BYWAY_API
byway_status byway_dial_cancel(struct byway_dial *self);

/**
 * The failed attempts so far, in the order in which they failed: writes up to `cap` records of `stride` bytes, `*total`
 * gets their number. Also after a shutdown.
 *
 * Ownership: `name` is static.
 * Errors: `BYWAY_E_BUSY`, `BYWAY_E_ARGUMENT` for a stride of 0.
 */
BYWAY_API
byway_status byway_dial_failures(struct byway_dial *self,
                                 struct byway_dial_failure *out,
                                 size_t stride,
                                 size_t cap,
                                 size_t *total);

/**
 * The route of the failed attempt at this position of `byway_dial_failures`. Also after a shutdown.
 *
 * Ownership: the caller owns one reference.
 * Errors: `BYWAY_DONE` past the end, and when no Selection could be made.
 */
BYWAY_API
byway_status byway_dial_failure_route(struct byway_dial *self,
                                      size_t index,
                                      struct byway_route **out);

/**
 * The waterfall: which attempt started when, which one won, why the others ended. `format` is `BYWAY_FORMAT_*`. Shows
 * no credentials. Also after a shutdown.
 *
 * As text: the outcome and how many milliseconds everything took, then a line for each attempt: its number, hop, kind of
 * proxy (`direct` for none), a bar, when it started, how and when it ended, and why. All bars share one axis of time, from
 * the first step to the last end: `-` TCP is being connected, `=` the proxy is spoken to, `|` the end.
 *
 * Ownership: the caller owns the text.
 * Errors: `BYWAY_E_ENUM`, `BYWAY_E_BUSY`.
 */
BYWAY_API
byway_status byway_dial_explain(struct byway_dial *self,
                                int32_t format,
                                struct byway_text **out,
                                struct byway_error **err);

/**
 * Ends a dial, at any time: a running call ends with `BYWAY_E_CANCELED` and frees it. Every socket that was not taken is
 * closed; the selector is the caller's again. NULL is fine.
 */
BYWAY_API
void byway_dial_free(struct byway_dial *self);

/**
 * Makes the dialogue a route needs. Of `options`, which may be NULL, what concerns CONNECT and SOCKS counts.
 *
 * Ownership: the caller owns it; the route is not needed any more.
 * Errors: `BYWAY_E_ARGUMENT` for a route that needs no dialogue; `BYWAY_E_INVALID_HOST`, `BYWAY_E_INVALID_PORT`,
 * `BYWAY_E_INVALID_PROXY` for what cannot be sent.
 */
BYWAY_API
byway_status byway_handshake_new(const struct byway_route *route,
                                 const struct byway_dial_options *options,
                                 struct byway_handshake **out,
                                 struct byway_error **err);

/**
 * As `byway_handshake_new` for a host that keeps proxies of its own: `kind` is `BYWAY_PROXY_*` but not DIRECT, the host
 * a name or an address, also in brackets. `user` NULL = no credentials; they are copied and overwritten at the end.
 * SOCKS5 and SOCKS5H do not differ here: a name is the proxy's to resolve, an address goes as one.
 *
 * Ownership: the caller owns it.
 * Errors: as `byway_handshake_new`; `BYWAY_E_ENUM`.
 */
BYWAY_API
byway_status byway_handshake_new_target(int32_t kind,
                                        const char *host,
                                        size_t host_len,
                                        int32_t port,
                                        const char *user,
                                        size_t user_len,
                                        const char *password,
                                        size_t password_len,
                                        const struct byway_dial_options *options,
                                        struct byway_handshake **out,
                                        struct byway_error **err);

/**
 * What is needed now, `BYWAY_HANDSHAKE_*`. `*limit`, which may be NULL, gets the number of bytes that may be read for
 * `BYWAY_HANDSHAKE_READ`, else 0. 0 for what is not a live handshake.
 */
BYWAY_API
int32_t byway_handshake_want(struct byway_handshake *self,
                             size_t *limit);

/**
 * The bytes to write now; empty unless `byway_handshake_want` says so. They may contain credentials: to the proxy only.
 *
 * Ownership: borrowed, valid until the next call on `self`. Not text: no NUL follows.
 * Errors: `BYWAY_E_BUSY`, `BYWAY_E_NULL`.
 */
BYWAY_API
byway_status byway_handshake_output(struct byway_handshake *self,
                                    struct byway_str *out);

/**
 * The first `count` bytes of `byway_handshake_output` were written.
 *
 * Errors: `BYWAY_E_BUSY`. More than there is counts as all of it.
 */
BYWAY_API byway_status byway_handshake_sent(struct byway_handshake *self, size_t count);

/**
 * Takes bytes that arrived; `*consumed` gets how many belong to the dialogue. The rest is tunnel data and the host's.
 *
 * Errors: `BYWAY_E_PROXY_REFUSED`, `BYWAY_E_PROXY_AUTH`, `BYWAY_E_PROXY_PROTOCOL`: the dialogue is over.
 */
BYWAY_API
byway_status byway_handshake_feed(struct byway_handshake *self,
                                  const void *data,
                                  size_t len,
                                  size_t *consumed,
                                  struct byway_error **err);

/**
 * The proxy closed. Harmless when the tunnel stands; a proxy that closes a kept connection before it answers is
 * connected to once more.
 *
 * Errors: `BYWAY_E_CLOSED`, or what was known from the answer so far.
 */
BYWAY_API
byway_status byway_handshake_eof(struct byway_handshake *self,
                                 struct byway_error **err);

/**
 * One challenge of the proxy (a value of `Proxy-Authenticate`), by position.
 *
 * Ownership: borrowed, valid until the next call on `self` that changes it.
 * Errors: `BYWAY_DONE` past the last.
 */
BYWAY_API
byway_status byway_handshake_challenge_at(struct byway_handshake *self,
                                          size_t index,
                                          struct byway_str *out);

/**
 * Answers `BYWAY_HANDSHAKE_CREDENTIALS` with the whole value of `Proxy-Authorization`; `(NULL, 0)` = there are none.
 *
 * Errors: `BYWAY_E_PROXY_AUTH` when there are none or the proxy refused the same before, `BYWAY_E_STATE` when nobody
 * asked.
 */
BYWAY_API
byway_status byway_handshake_answer(struct byway_handshake *self,
                                    const char *value,
                                    size_t len,
                                    struct byway_error **err);

/**
 * A new connection to the same hop stands (and TLS on it, for a proxy behind TLS).
 *
 * Errors: `BYWAY_E_STATE` when none was asked for.
 */
BYWAY_API
byway_status byway_handshake_reconnected(struct byway_handshake *self,
                                         struct byway_error **err);

/**
 * Ends a handshake; credentials it held are overwritten. NULL is fine.
 */
BYWAY_API void byway_handshake_free(struct byway_handshake *self);

/**
 * Adds a listener to an engine. It hears of operations that begin after this call, at the latest.
 *
 * Ownership: the caller owns one reference; the last release removes the listener. `callbacks->destroy` runs when it is
 * gone, also when this fails.
 * Errors: `BYWAY_E_STRUCT_SIZE`, `BYWAY_E_NULL` without `on_event`, `BYWAY_E_BAD_HANDLE` also for `callbacks.queue`,
 * `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_engine_add_listener(struct byway_engine *self,
                                       const struct byway_listener_callbacks *callbacks,
                                       struct byway_listener **out,
                                       struct byway_error **err);

/**
 * Ends a listener before its last release. An event that is being delivered on another thread still arrives.
 */
BYWAY_API
void byway_listener_remove(struct byway_listener *self);

/**
 * One more reference; returns its argument, NULL for what is not a live listener.
 */
BYWAY_API struct byway_listener *byway_listener_retain(struct byway_listener *self);

/**
 * One reference less; the last one removes the listener. NULL is fine.
 */
BYWAY_API void byway_listener_release(struct byway_listener *self);

/**
 * A connection over this route stands: it is not postponed any more, and with `BYWAY_COMMIT_ON_SUCCESS` the other
 * failures of its selector now count.
 *
 * Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_engine_connected(struct byway_engine *self,
                                    const struct byway_route *route);

/**
 * An attempt over this route failed. The route database is told, unless the failure blames no route; then the proxy
 * selector that chose the route, if the host still has it; then the listeners. `failure` is `BYWAY_FAILURE_*`, `phase`
 * `BYWAY_PHASE_*`, `os_errno` the system's number or 0.
 *
 * Errors: `BYWAY_E_ENUM`, `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_engine_connect_failed(struct byway_engine *self,
                                         const struct byway_route *route,
                                         int32_t failure,
                                         int32_t phase,
                                         int32_t os_errno,
                                         struct byway_error **err);

/**
 * `*out` gets 1 when this route goes behind the others, because it failed before, else 0.
 *
 * Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_engine_should_postpone(struct byway_engine *self,
                                          const struct byway_route *route,
                                          int32_t *out);

/**
 * The network is another one (interface, VPN): failed routes and cached names are forgotten, the generation rises.
 * `*generation` gets the new one and may be NULL.
 *
 * Errors: `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_engine_network_changed(struct byway_engine *self,
                                          uint64_t *generation);

/**
 * Sets who answers when a proxy selector passes (`BYWAY_PASS`); NULL takes it back: DIRECT. Retained.
 *
 * Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_engine_set_proxy_selector(struct byway_engine *self,
                                             struct byway_proxy_selector *proxy_selector,
                                             struct byway_error **err);

/**
 * Failed routes, oldest first: writes up to `cap` records of `stride` bytes; `*total` gets their number. Texts are in
 * `byway_engine_database_export`.
 *
 * Errors: `BYWAY_E_ARGUMENT` for a stride of 0, `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_engine_database_snapshot(struct byway_engine *self,
                                            struct byway_failed_route *out,
                                            size_t stride,
                                            size_t cap,
                                            size_t *total);

/**
 * The route database as JSON, to be kept over a restart; to be asked for before a shutdown. Entries whose proxy has a
 * user name are left out and counted.
 *
 * Ownership: the caller owns the text.
 * Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_engine_database_export(struct byway_engine *self,
                                          struct byway_text **out,
                                          struct byway_error **err);

/**
 * Adds what an export holds, with the time that was left then. What is known already stays. Nothing is added when
 * anything in the text is wrong. `*n` gets the number of entries in the text and may be NULL.
 *
 * Errors: `BYWAY_E_SYNTAX` with line and column, `BYWAY_E_UTF8`, `BYWAY_E_LIMIT`, `BYWAY_E_UNSUPPORTED` for another
 * version; for a bad entry its own error, naming the index; `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_engine_database_import(struct byway_engine *self,
                                          const char *json,
                                          size_t len,
                                          size_t *n,
                                          struct byway_error **err);

/**
 * Figures of an engine: fills as many bytes as `out->struct_size` says. Also after a shutdown.
 *
 * Errors: `BYWAY_E_STRUCT_SIZE`.
 */
BYWAY_API
byway_status byway_engine_stats(struct byway_engine *self,
                                struct byway_engine_statistics *out);

/**
 * May a failed call be retried on another route? `*out` gets `BYWAY_RECOVER_*`, the first reason against it.
 *
 * Errors: `BYWAY_E_ENUM`, `BYWAY_E_STRUCT_SIZE`, `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_engine_recover(struct byway_engine *self,
                                  const struct byway_failed_call *failed,
                                  int32_t *out,
                                  struct byway_error **err);

/**
 * 1 when a TLS handshake that failed so may be tried again on the same route with other parameters, else 0.
 */
BYWAY_API
int32_t byway_failure_retry_tls(int32_t failure);

/**
 * The `BYWAY_FAILURE_*` of a system's error number that connecting, reading or writing gave, as byway's own dials tell
 * them:
 *
 * | number | kind |
 * |---|---|
 * | ECONNREFUSED | `REFUSED` |
 * | ENETUNREACH, EHOSTUNREACH, ENETDOWN, EHOSTDOWN | `UNREACHABLE` |
 * | ETIMEDOUT; EAGAIN, EINPROGRESS (a blocking socket with SO_RCVTIMEO or SO_SNDTIMEO) | `TIMEOUT` |
 * | ECONNRESET, EPIPE, ECONNABORTED | `RESET` |
 * | EMFILE, ENFILE, ENOBUFS, ENOMEM, EACCES, EPERM, EADDRNOTAVAIL, EADDRINUSE, EAFNOSUPPORT, EPFNOSUPPORT, EPROTONOSUPPORT, EINVAL, ENODEV, ENXIO | `LOCAL` |
 * | EPROTO | `PROTOCOL` |
 * | ECANCELED | `CANCELED` |
 * | EINTR | `INTERRUPTED` |
 * | any other number, also 0 | `IO` |
 *
 * A `connect(2)` that answers ENETUNREACH or EHOSTUNREACH at once found no local route, and nothing was sent: that is
 * `BYWAY_FAILURE_LOCAL`, which the number alone cannot tell. Never fails.
 */
BYWAY_API
int32_t byway_failure_from_errno(int32_t os_errno);

/**
 * Short text of a `BYWAY_FAILURE_*`, for example `"refused"`.
 *
 * Ownership: the caller owns the text.
 * Errors: `BYWAY_E_ENUM`.
 */
BYWAY_API
byway_status byway_failure_text(int32_t failure,
                                struct byway_text **out,
                                struct byway_error **err);

/**
 * What a failed exchange means for its connection and route: `*out` gets `BYWAY_TELL_*` bits. Tells nobody.
 *
 * Errors: `BYWAY_E_ENUM`, `BYWAY_E_STRUCT_SIZE`.
 */
BYWAY_API
byway_status byway_failure_track(const struct byway_failed_exchange *exchange,
                                 uint32_t *out,
                                 struct byway_error **err);

/**
 * Who `byway_engine_connect_failed` would tell: `*out` gets `BYWAY_TELL_*` bits. `from_selector` and `retry_enabled`
 * are 0 or 1, `proxy_kind` is `BYWAY_PROXY_*`. Tells nobody.
 *
 * Errors: `BYWAY_E_ENUM`.
 */
BYWAY_API
byway_status byway_failure_report(int32_t compat,
                                  int32_t failure,
                                  int32_t phase,
                                  int32_t proxy_kind,
                                  int32_t from_selector,
                                  int32_t retry_enabled,
                                  uint32_t *out,
                                  struct byway_error **err);

/**
 * Makes a list from `count` provider URLs in the host's order. `tags` may be NULL: then a tag is its URL's index.
 * Otherwise `tags[i]` belongs to `urls[i]`; no tag may be 0 or occur twice. `callbacks` may be NULL.
 *
 * URLs are raw or merged; a text without `protocol://` begins with its host, as Dubbo reads it. `disabled=true` and
 * `enabled=false` rows are skipped, `empty://` clears what came before.
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
 * The row of the provider with this tag.
 *
 * Errors: `BYWAY_E_NOT_FOUND` when the list has none.
 */
BYWAY_API
byway_status byway_invokers_row_of(const struct byway_invokers *self,
                                   uint64_t tag,
                                   size_t *row);

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
 * Errors: the first refusal of a URL or tag; `BYWAY_E_STATE` when it has finished before; `BYWAY_E_SHUTDOWN`, which uses
 * nothing up.
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
 *
 * Errors: `BYWAY_E_BUSY` on another thread.
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
 *
 * Errors: `BYWAY_E_BUSY` on another thread, `BYWAY_E_LIMIT` for more than 65 536.
 */
BYWAY_API
byway_status byway_invocation_set_types(struct byway_invocation *self,
                                        const struct byway_str *types,
                                        size_t count);

/**
 * Sets the arguments by their text form, in order. Borrowed; the array itself is not. A null argument is
 * `{NULL, BYWAY_NUL}`. Of a generic call (`$invoke`) the first argument is the method that is meant, the second
 * stands for the types, and those behind it are that method's own arguments.
 *
 * Errors: `BYWAY_E_BUSY` on another thread, `BYWAY_E_LIMIT` for more than 65 536.
 */
BYWAY_API
byway_status byway_invocation_set_arguments(struct byway_invocation *self,
                                            const struct byway_str *values,
                                            size_t count);

/**
 * Sets one attachment; one of the same key is replaced. Borrowed. The lengths may be `BYWAY_NUL`.
 *
 * Errors: `BYWAY_E_BUSY` on another thread, `BYWAY_E_LIMIT` for more than 65 536.
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
 * Errors: `BYWAY_E_ENUM`; `BYWAY_E_ARGUMENT` when neither or both are given, or for tag, mesh and script rules of a
 * service.
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
 * Everything that is wrong with a rule text of a kind (`BYWAY_RULE_*`) under a dialect (`BYWAY_DIALECT_*`), or looks
 * wrong, in text order. `format`: `BYWAY_FORMAT_TEXT` gives a line each, as compilers write them; `BYWAY_FORMAT_JSON`:
 * `{"refused": bool, "problems": [{"severity": "error" | "warning" | "hint", "line", "column", "offset", "message"}]}`.
 * Lines and columns count from 1, the offset bytes from 0. `refused` is what `byway_engine_set_rule` would do.
 *
 * `providers` may be NULL; with a list, conditions, tags, addresses and subsets that none of them fits are named too.
 * A script is compiled, not run; its syntax errors have their place in the rule's text. A library without the feature
 * `script` reads the text around it.
 *
 * Ownership: the caller owns the text. Any thread.
 * Errors: `BYWAY_E_ENUM`; a rule with errors is no error here.
 */
BYWAY_API
byway_status byway_rule_check(int32_t dialect,
                              int32_t kind,
                              const char *text,
                              size_t text_len,
                              const struct byway_invokers *providers,
                              int32_t format,
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
 * The list the providers were chosen from: with `byway_invokers_row_of` and `byway_invokers_url` it says what a tag
 * stands for, also when the chain has another list by now.
 *
 * Ownership: the caller owns one reference.
 * Errors: `BYWAY_E_STATE` for a session's choice that shows nothing.
 */
BYWAY_API
byway_status byway_choice_invokers(const struct byway_choice *self,
                                   struct byway_invokers **out,
                                   struct byway_error **err);

/**
 * Copies the tags, in list order: as many as fit into `cap`, and how many there are into `*total`. `(NULL, 0)`
 * counts.
 *
 * Errors: `BYWAY_E_NULL` for a `cap` without a place, `BYWAY_E_BUSY` for a session's choice on another thread.
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
 * `options` may be NULL. The URL's host, and even its protocol, may be missing, as in Dubbo.
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
 * The provider list calls route over now: the one given last, or a bound source's.
 *
 * Ownership: the caller owns one reference.
 * Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_chain_invokers(struct byway_chain *self,
                                  struct byway_invokers **out,
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
 * Replaces the chain's static rules by those in `count` URLs, as a registry notifies them: `condition://...?rule=...`,
 * `script://...?type=javascript&rule=...`, `route://...` with `router=condition` or `script`, `file:///path/name.js`
 * (or with `router=condition`), whose file is read here, watched, and read again whenever it changes. `rule` is
 * percent-encoded; `priority` says where the router stands, `pure=true` that a script's answers may be kept. An
 * `empty://` URL is skipped, so `count` 0 or an `empty://` alone takes all away.
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
 *
 * Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`.
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
 * Routes a call and explains the result: per router what came in and went out, the rule's key, and for each dropped
 * provider the sentence that dropped it (counts, and the first 100 per reason). `format`: `BYWAY_FORMAT_*`. Host
 * routers are asked with `explaining` set.
 *
 * Ownership: the caller owns the text.
 * Errors: what a host's router failed with.
 */
BYWAY_API
byway_status byway_chain_explain(struct byway_chain *self,
                                 const struct byway_invocation *invocation,
                                 int32_t format,
                                 struct byway_text **out,
                                 struct byway_error **err);

/**
 * What a rule text would change for `count` calls, if it were set for `key`. `format`: `BYWAY_FORMAT_JSON` gives a list
 * of `{"call", "before", "after", "added", "removed", "emptied_before", "emptied_after", "failed"}`, per call how many
 * providers before and after, the tags that come and go, the router that leaves nobody, and how a script fails, which
 * then changes nothing; `BYWAY_FORMAT_TEXT` a line for each call that would change. `text` NULL with `text_len` 0
 * means: without the rule. Nothing is set, and no event or counter tells of it.
 *
 * Ownership: the caller owns the text.
 * Errors: `BYWAY_E_NOT_FOUND` when the chain does not want the key; why the text is refused, with line and column;
 * what a host's router failed with.
 */
BYWAY_API
byway_status byway_chain_diff(struct byway_chain *self,
                              const char *key,
                              size_t key_len,
                              const char *text,
                              size_t text_len,
                              const struct byway_invocation *const *invocations,
                              size_t count,
                              int32_t format,
                              struct byway_text **out,
                              struct byway_error **err);

/**
 * Keeps the last 32 calls of this chain from now on (`on` 1), or no longer (0), to be read by `byway_chain_recent`;
 * those kept so far go either way. Off at first, unless `BYWAY_CHAIN_KEEP_RECENT`. Costs nothing while it is off.
 * While it is on, results are not memoised and the worlds of the kept calls stay alive.
 *
 * Threads: any; calls already running are not kept.
 * Errors: `BYWAY_E_BAD_HANDLE`, `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_chain_keep_recent(struct byway_chain *self,
                                     int32_t on,
                                     struct byway_error **err);

/**
 * The last 32 calls, oldest first, each explained as `byway_chain_explain` does, by the world that answered it and
 * the destinations it drew. `format`: `BYWAY_FORMAT_JSON` gives a list of
 * `{"number", "wall_ms", "explanation" | "error"}`, where `number` counts the calls since they are kept and `wall_ms`
 * is the engine's wall clock; `BYWAY_FORMAT_TEXT` the same for people. Nothing is kept, so the list is empty, until
 * `byway_chain_keep_recent`. Explanations are made here, not when the call was routed: host routers are asked now,
 * on this thread, with `explaining` set.
 *
 * Ownership: the caller owns the text.
 * Errors: `BYWAY_E_ENUM`, `BYWAY_E_SHUTDOWN`. A host's router that fails now is told in its call's `error`.
 */
BYWAY_API
byway_status byway_chain_recent(struct byway_chain *self,
                                int32_t format,
                                struct byway_text **out,
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
 * Routes a call and copies the tags of the providers that may serve it, as `byway_chain_route_tags` does, for a thread
 * that has a session: what the session remembers is copied without a locked instruction, and nothing is pinned beyond
 * the session. As many tags as fit go into `cap`, and how many there are into `*total`; `(NULL, 0)` counts. `*total` and
 * `*generation` (the number of the world that answered) may be NULL. The choice the session lent before shows nothing
 * from then on.
 *
 * Errors: `BYWAY_E_BUSY` on another thread; what a host's router failed with.
 */
BYWAY_API
byway_status byway_session_route_tags(struct byway_session *self,
                                      const struct byway_invocation *invocation,
                                      uint64_t *tags,
                                      size_t cap,
                                      size_t *total,
                                      uint64_t *generation,
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
 * Errors: `BYWAY_E_BUSY` while the owner is inside a call, `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API byway_status byway_session_adopt(struct byway_session *self, struct byway_error **err);

/**
 * Lets go of the world the session pins, for a thread that will not route for a while. The lent choice shows nothing
 * from then on; the next call pins the current world. Also after a shutdown.
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

/**
 * Sets every option to its default.
 */
BYWAY_API void byway_zookeeper_options_init(struct byway_zookeeper_options *options);

/**
 * Sets every field to what nothing is known of.
 */
BYWAY_API void byway_source_state_init(struct byway_source_state *state);

/**
 * Makes a source the host fills itself, with `byway_source_put`.
 *
 * Ownership: the caller owns one reference; bound chains keep it.
 * Errors: `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_source_new_memory(struct byway_engine *engine,
                                     struct byway_source **out,
                                     struct byway_error **err);

/**
 * Makes a source of files: a directory in Dubbo's layout, or one file. In a directory `D` the rule `K` is
 * `D/dubbo/config/dubbo/K`, `D/config/dubbo/K` or `D/K`, each also with `.yaml` or `.yml`; a file directly in `D` whose
 * name ends in `condition-router`, `tag-router` or `affinity-router` (and perhaps `.yaml` or `.yml`) also counts for
 * the `key` its text names, with `scope: service` for a service's. Providers are the lines of
 * `D/dubbo/<interface>/providers`, `D/<interface>/providers` or `D/<interface>.providers`. `key` (may be empty) says
 * what a single file holds, as `byway_source_put` takes it.
 *
 * Atomic renames, symlink swaps, writes in place and deletions are followed; half a text is never taken. A path that is
 * not there is no error, it may come.
 *
 * Ownership: the caller owns one reference; bound chains keep it.
 * Errors: `BYWAY_E_ARGUMENT`, `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_source_new_file(struct byway_engine *engine,
                                   const char *path,
                                   size_t path_len,
                                   const char *key,
                                   size_t key_len,
                                   struct byway_source **out,
                                   struct byway_error **err);

/**
 * Makes a source of a ZooKeeper ensemble in Dubbo's layout. `servers` is `host:port,host:port/chroot`, with
 * `user:password@` in front if need be, or Dubbo's
 * `zookeeper://user:password@host:port/chroot?backup=host:port,host:port&group=dubbo`. `options` may be NULL.
 * Nobody connects before a chain is bound; nobody answering is no error, it is tried again for ever.
 *
 * Ownership: the caller owns one reference; bound chains keep it.
 * Errors: `BYWAY_E_ARGUMENT` with the place in the connection string, `BYWAY_E_UNSUPPORTED` when the library was built
 * without it, `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_source_new_zookeeper(struct byway_engine *engine,
                                        const char *servers,
                                        size_t servers_len,
                                        const struct byway_zookeeper_options *options,
                                        struct byway_source **out,
                                        struct byway_error **err);

/**
 * One more reference; returns its argument, NULL for what is not a live source.
 */
BYWAY_API struct byway_source *byway_source_retain(struct byway_source *self);

/**
 * One reference less. Bound chains keep what they follow; the last reference ends its thread without waiting for it.
 * NULL is fine.
 */
BYWAY_API
void byway_source_release(struct byway_source *self);

/**
 * Sets one key of a memory source. When the call returns, bound chains route by it. A key is a rule's
 * (`com.foo.Bar::.condition-router`), or a path in Dubbo's tree: `<interface>/providers`, `/routers` or
 * `/configurators`, `mapping/<interface>`, `metadata/<application>/<revision>`, `config/<group>/<key>`,
 * `/services/<application>`. The text of a list is one entry a line.
 *
 * Errors: `BYWAY_E_ARGUMENT` for a key that means nothing; `BYWAY_E_UNSUPPORTED` for a source that is not memory. A rule
 * that is refused is no error here: it is told by an event and the status.
 */
BYWAY_API
byway_status byway_source_put(struct byway_source *self,
                              const char *key,
                              size_t key_len,
                              const char *text,
                              size_t text_len,
                              struct byway_error **err);

/**
 * Removes one key of a memory source; removing what is not there is fine.
 *
 * Errors: as `byway_source_put`.
 */
BYWAY_API
byway_status byway_source_remove(struct byway_source *self,
                                 const char *key,
                                 size_t key_len,
                                 struct byway_error **err);

/**
 * Several changes of a memory source as one moment: bound chains see all of them or none, and make one world.
 *
 * Errors: as `byway_source_put`; nothing has changed then.
 */
BYWAY_API
byway_status byway_source_apply(struct byway_source *self,
                                const struct byway_source_change *changes,
                                size_t count,
                                struct byway_error **err);

/**
 * What a source holds under a key (as `byway_source_put` takes it), read now if nobody follows it; a list has one entry
 * a line.
 *
 * `timeout_ms`: 0 = what is known already, negative = the engine's default.
 * Ownership: the caller owns the text.
 * Errors: `BYWAY_E_NOT_FOUND` when the centre does not have it, `BYWAY_E_ARGUMENT` for a key that means nothing,
 * `BYWAY_E_TIMEOUT`, `BYWAY_E_WOULD_DEADLOCK` on the thread of the engine's event loop when it would have to wait,
 * `BYWAY_E_SHUTDOWN`, or why it cannot be read.
 */
BYWAY_API
byway_status byway_source_get(struct byway_source *self,
                              const char *key,
                              size_t key_len,
                              int64_t timeout_ms,
                              struct byway_text **out,
                              struct byway_error **err);

/**
 * How a source stands. `state->struct_size` must be set. `*last_error` (may be NULL) gets the last complaint, or NULL; it
 * stays when things are right again.
 *
 * Ownership: the caller owns the error.
 * Errors: `BYWAY_E_STRUCT_SIZE`, `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_source_status(struct byway_source *self,
                                 struct byway_source_state *state,
                                 struct byway_error **last_error,
                                 struct byway_error **err);

/**
 * Sets every option to its default.
 */
BYWAY_API void byway_bind_options_init(struct byway_bind_options *options);

/**
 * Has a chain follow a source: its rules, and unless `BYWAY_BIND_RULES_ONLY` its providers, overrides and static routers.
 * All of it takes effect as one world. The last one stays while the source is away. NULL unbinds: what the source gave
 * is taken back, the providers only without `BYWAY_BIND_KEEP_LIST`; a list the host has set itself stays. A chain that was bound before leaves its old
 * source, without a gap, when the new one has given its first state. `options` and `callbacks` (who hears of events)
 * may be NULL.
 *
 * Tags of providers from a source are byway's: a provider keeps its tag as long as it is there;
 * `byway_invokers_url` of a choice's list names it.
 *
 * `timeout_ms` is how long to wait for the first state: 0 = not at all, negative = the engine's default. `BYWAY_PENDING`
 * says that it has not come by then; it comes later, and is followed by exactly one `BYWAY_COMPLETION_SOURCE` record on
 * the binding's queue: status 0 when the first world is in force, `BYWAY_E_CANCELED` when the chain is unbound or bound
 * anew before, `BYWAY_E_SHUTDOWN`. Until then the source the chain was bound to before goes on serving.
 * Ownership: the callbacks are taken over, also when the call fails.
 * Threads: any; on the thread that polls a queue marked as a loop it must not have to wait.
 * Errors: `BYWAY_E_CANCELED` when `byway_chain_cancel_bind` or unbinding ended the wait, `BYWAY_E_WOULD_DEADLOCK`,
 * `BYWAY_E_LIMIT` when the queue has no room for a record, `BYWAY_E_ENUM`,
 * `BYWAY_E_NULL` without `on_event`, `BYWAY_E_SHUTDOWN`; nothing is bound then, and what was bound stays.
 */
BYWAY_API
byway_status byway_chain_bind_source(struct byway_chain *self,
                                     struct byway_source *source,
                                     const struct byway_bind_options *options,
                                     const struct byway_source_callbacks *callbacks,
                                     int64_t timeout_ms,
                                     struct byway_error **err);

/**
 * Ends every `byway_chain_bind_source` that is waiting on this chain now, within some 50 ms: `BYWAY_E_CANCELED`, and the
 * chain follows what it followed before. Sticky for calls that have begun, nothing to later ones, nor to those that have
 * answered `BYWAY_PENDING`, which unbinding ends. A call whose first state has just come ends with success.
 *
 * Threads: any, at any time, also from a signal handler.
 * Errors: `BYWAY_E_BAD_HANDLE`.
 */
BYWAY_API
byway_status byway_chain_cancel_bind(struct byway_chain *self);

/**
 * How a bound chain stands, as JSON: whether it is ready, the topics it follows, worlds so far, providers, whether the
 * list is kept, what was refused last, and how its source stands.
 *
 * Ownership: the caller owns the text.
 * Errors: `BYWAY_E_STATE` when it is not bound, `BYWAY_E_SHUTDOWN`.
 */
BYWAY_API
byway_status byway_chain_bind_status(struct byway_chain *self,
                                     struct byway_text **out,
                                     struct byway_error **err);

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
      /* routing_flags */ 0, \
      /* on_proxy_selector_error */ BYWAY_ON_PROXY_SELECTOR_ERROR_FAIL, /* dns_cache_ms */ 0, \
      /* target_filter */ NULL, /* proxy_filter */ NULL, \
      /* source_data */ NULL, /* monotonic_ns */ NULL, /* wall_ms */ NULL, /* random */ NULL, \
      /* bad_proxy_ms */ -1 }
#define BYWAY_ADDRESS_OPTIONS_INIT \
    { sizeof(byway_address_options), /* scheme */ { NULL, 0 }, /* host */ { NULL, 0 }, /* port */ 0, \
      /* flags */ 0, /* proxy */ NULL, /* proxy_selector */ NULL, /* dns */ NULL, /* protocols */ NULL, \
      /* protocols_len */ 0, /* tls_identity */ 0, /* tls_identity_bytes */ { NULL, 0 }, \
      /* authenticator */ 0 }
#define BYWAY_SELECTOR_OPTIONS_INIT \
    { sizeof(byway_selector_options), /* tag */ 0, /* queue */ NULL, /* flags */ 0, /* reserved */ 0 }
#define BYWAY_DNS_CALLBACKS_INIT \
    { sizeof(byway_dns_callbacks), /* user_data */ NULL, /* destroy */ NULL, /* lookup */ NULL, \
      /* on_cancel */ NULL }
#define BYWAY_PROXY_SELECTOR_CALLBACKS_INIT \
    { sizeof(byway_proxy_selector_callbacks), /* user_data */ NULL, /* destroy */ NULL, /* select */ NULL, \
      /* connect_failed */ NULL, /* on_cancel */ NULL }
#define BYWAY_BYPASS_OPTIONS_INIT \
    { sizeof(byway_bypass_options), /* list */ { NULL, 0 }, /* style */ BYWAY_BYPASS_BROWSER, /* flags */ 0, \
      /* dialect */ { NULL, 0 } }
#define BYWAY_PAC_OPTIONS_INIT \
    { sizeof(byway_pac_options), /* url */ { NULL, 0 }, /* source */ { NULL, 0 }, /* dns */ NULL, \
      /* my_addresses */ NULL, /* my_addresses_len */ 0, /* refresh_ms */ 0, /* memory_limit */ 0, \
      /* time_limit_ms */ 0, /* names_limit */ 0, /* utc_offset_minutes */ 0, /* flags */ 0 }
#define BYWAY_PAC_CALLBACKS_INIT \
    { sizeof(byway_pac_callbacks), /* user_data */ NULL, /* destroy */ NULL, /* fetch */ NULL }
#define BYWAY_SYSTEM_OPTIONS_INIT \
    { sizeof(byway_system_options), /* names */ NULL, /* values */ NULL, /* n */ 0, /* desktop */ { NULL, 0 }, \
      /* home */ { NULL, 0 }, /* config_home */ { NULL, 0 }, /* root */ { NULL, 0 }, /* dconf */ { NULL, 0 }, \
      /* keyfile */ { NULL, 0 }, /* kioslaverc */ { NULL, 0 }, /* sysconfig */ { NULL, 0 }, /* pac */ NULL }
#define BYWAY_LISTENER_CALLBACKS_INIT \
    { sizeof(byway_listener_callbacks), /* user_data */ NULL, /* destroy */ NULL, /* mask */ UINT64_MAX, \
      /* on_event */ NULL, /* queue */ NULL }
#define BYWAY_SERVICE_OPTIONS_INIT \
    { sizeof(byway_service_options), /* target */ { NULL, 0 }, /* priority */ 0, /* port */ 0, \
      /* reserved */ 0, /* alpn */ NULL, /* alpn_len */ 0, /* ech */ { NULL, 0 }, /* hints */ NULL, \
      /* hints_len */ 0 }
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
#define BYWAY_ZOOKEEPER_OPTIONS_INIT \
    { sizeof(byway_zookeeper_options), /* username */ { NULL, 0 }, /* password */ { NULL, 0 }, \
      /* root */ { NULL, 0 }, /* session_timeout_ms */ 0, /* connect_timeout_ms */ 0, \
      /* retry_longest_ms */ 0 }
#define BYWAY_SOURCE_STATE_INIT \
    { sizeof(byway_source_state), /* since_ms */ -1, /* age_ms */ -1, /* generation */ 0, /* keys */ 0, \
      /* errors */ 0, /* connected */ 0, /* reserved */ 0 }
#define BYWAY_BIND_OPTIONS_INIT \
    { sizeof(byway_bind_options), /* flags */ 0, /* empty_protection */ BYWAY_EMPTY_PROTECTION_VANISHED, \
      /* discovery */ BYWAY_DISCOVERY_AUTO, /* reserved */ 0, /* queue */ NULL, /* tag */ 0 }
#define BYWAY_SOURCE_CALLBACKS_INIT \
    { sizeof(byway_source_callbacks), /* user_data */ NULL, /* destroy */ NULL, /* on_event */ NULL }
#define BYWAY_DIAL_OPTIONS_INIT \
    { sizeof(byway_dial_options), /* tag */ 0, /* flags */ 0, /* attempt_delay_ms */ 0, \
      /* resolution_delay_ms */ 0, /* attempt_timeout_ms */ 0, /* ready_timeout_ms */ 0, \
      /* overall_timeout_ms */ 0, /* ready_extend_ms */ 0, /* max_in_flight */ 0, \
      /* cap_policy */ BYWAY_CAP_DROP_OLDEST, /* on_failure */ BYWAY_ON_FAILURE_WHEN_IDLE, \
      /* race_until */ BYWAY_RACE_UNTIL_TCP, /* first_family */ BYWAY_FIRST_FAMILY_V6, \
      /* first_family_count */ 0, /* max_tunnel_attempts */ 0, /* max_line */ 0, /* max_header */ 0, \
      /* max_drain */ 0, /* keepalive_s */ 0, /* user_timeout_ms */ 0, /* mark */ 0, \
      /* source_v4 */ { NULL, 0 }, /* source_v6 */ { NULL, 0 }, /* device */ { NULL, 0 }, \
      /* user_agent */ { NULL, 0 }, /* headers */ NULL, /* header_count */ 0 }
#define BYWAY_DIAL_CALLBACKS_INIT \
    { sizeof(byway_dial_callbacks), /* user_data */ NULL, /* destroy */ NULL, /* open_socket */ NULL, \
      /* configure */ NULL, /* close_socket */ NULL, /* proxy_auth */ NULL }
#define BYWAY_PEER_INIT { sizeof(byway_peer), /* flags */ 0, /* reserved */ 0 }
#define BYWAY_FAILED_CALL_INIT \
    { sizeof(byway_failed_call), /* failure */ BYWAY_FAILURE_IO, /* phase */ BYWAY_PHASE_TCP, /* flags */ 0, \
      /* reserved */ 0 }
#define BYWAY_FAILED_EXCHANGE_INIT \
    { sizeof(byway_failed_exchange), /* successes */ 0, /* failure */ BYWAY_FAILURE_IO, /* refused_before */ 0, \
      /* flags */ 0, /* reserved */ 0 }
#define BYWAY_ENGINE_STATISTICS_INIT { sizeof(byway_engine_statistics), 0, 0, 0, 0, 0 }

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* BYWAY_H */
