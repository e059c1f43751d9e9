/* byway for C++: what a failure means. Entry: byway.hpp.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef BYWAY_FAILURE_HPP
#define BYWAY_FAILURE_HPP

#include "handle.hpp"

namespace byway {

/** A failed call, for `engine::recover`; the fields are `byway_failed_call`'s. */
struct failed_call : byway_failed_call {
    failed_call() noexcept : byway_failed_call BYWAY_FAILED_CALL_INIT {}
};

/** A connection whose exchange failed, for `track`; the fields are `byway_failed_exchange`'s. */
struct failed_exchange : byway_failed_exchange {
    failed_exchange() noexcept : byway_failed_exchange BYWAY_FAILED_EXCHANGE_INIT {}
};

/** A failed attempt, for `report`. */
struct failed_attempt {
    int failure = BYWAY_FAILURE_IO;
    int phase = BYWAY_PHASE_TCP;
    int proxy_kind = BYWAY_PROXY_DIRECT;
    bool from_selector = false;
    bool retry_enabled = true;
    int compat = BYWAY_COMPAT_BYWAY;
};

/** Whether a TLS handshake that failed so (`BYWAY_FAILURE_*`) may be tried again on the same route. */
inline bool retry_tls(int failure) noexcept { return byway_failure_retry_tls(failure) == 1; }

/** The `BYWAY_FAILURE_*` of a system's error number that connecting, reading or writing gave. */
inline int failure_from_errno(int os_errno) noexcept { return byway_failure_from_errno(os_errno); }

/** Short text of a `BYWAY_FAILURE_*`. */
inline result<std::string> failure_text(int failure)
{
    return detail::text([&](auto out, auto err) { return byway_failure_text(failure, out, err); });
}
/** What a failed exchange means for its connection and route, as `BYWAY_TELL_*` bits. Tells nobody. */
inline result<std::uint32_t> track(const failed_exchange &exchange)
{
    return detail::value<std::uint32_t>([&](auto out, auto err) { return byway_failure_track(&exchange, out, err); });
}
/** Who `engine::connect_failed` would tell, as `BYWAY_TELL_*` bits. Tells nobody. */
inline result<std::uint32_t> report(const failed_attempt &attempt)
{
    return detail::value<std::uint32_t>([&](auto out, auto err) {
        return byway_failure_report(attempt.compat, attempt.failure, attempt.phase, attempt.proxy_kind,
                                    attempt.from_selector, attempt.retry_enabled, out, err);
    });
}

} // namespace byway

#endif /* BYWAY_FAILURE_HPP */
