/*
 * byway for C++17 and later: owners for the handles of byway.h, lambdas for its callbacks, results for its statuses.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Shared handles copy (one more reference) and move; exclusive ones only move; `*_ref` are lent and live as long as
 * what lent them. Names are those of byway.h: `byway_selector_next` is `selector::next`, `byway_dns_new_hosts` is
 * `dns::hosts`, `BYWAY_*` constants stay as they are, and what byway.h says of a function holds here too. What is
 * `*_new` there is `make` here; a few are shorter or said otherwise: `engine::database` (`database_snapshot`),
 * `engine::statistics` (`stats`), `engine::listen` (`add_listener`), `filter::allows` (`filter_check`),
 * `queue::clear_notify` (`set_notify` with NULL).
 *
 * Every call that can fail returns `byway::result<T>`. Who prefers exceptions asks for `.value()`, which throws
 * `byway::exception`; without exceptions (`-fno-exceptions`) `.value()` on a failure ends the program, so ask first.
 *
 * A callback that answers with a status may throw: it counts as failed, what it threw is in `error::thrown()` of the
 * call that led to it, and `.value()` throws it on. Callbacks that return nothing are told something and must not
 * throw: an exception that leaves one ends the program, as one that leaves a destructor does.
 *
 * What byway has no call for stays within reach: `.get()` gives the handle, and an owner made from a handle takes one
 * reference over.
 */
#ifndef BYWAY_HPP
#define BYWAY_HPP

#if __cplusplus < 201703L && !(defined(_MSVC_LANG) && _MSVC_LANG >= 201703L)
#error "byway.hpp needs C++17 or later: compile with -std=c++17 (MSVC: /std:c++17)"
#else

#include "byway/address.hpp"
#include "byway/chain.hpp"
#include "byway/dial.hpp"
#include "byway/dns.hpp"
#include "byway/engine.hpp"
#include "byway/error.hpp"
#include "byway/failure.hpp"
#include "byway/handle.hpp"
#include "byway/handshake.hpp"
#include "byway/invocation.hpp"
#include "byway/invokers.hpp"
#include "byway/ip.hpp"
#include "byway/listener.hpp"
#include "byway/proxy.hpp"
#include "byway/proxy_selector.hpp"
#include "byway/queue.hpp"
#include "byway/route.hpp"
#include "byway/rule.hpp"
#include "byway/selector.hpp"
#include "byway/source.hpp"
#include "byway/text.hpp"

#endif
#endif /* BYWAY_HPP */
