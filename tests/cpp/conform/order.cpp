// connect.jsonl order: in which order the addresses of a host are tried; and postpone: how long a route that failed
// stays behind the others.
#include "words.hpp"

#include <algorithm>

namespace conform {
namespace {

// The order as `byway::order` makes it, and as it is seen in the routes to a host with these addresses: whatever of the
// two can say the case must give it.
void order(const json &one)
{
    const std::string family = text(one, "first_family", "v6");
    const int first_family = family == "v4"            ? BYWAY_FIRST_FAMILY_V4
                           : family == "first_address" ? BYWAY_FIRST_FAMILY_FIRST_ADDRESS
                                                       : BYWAY_FIRST_FAMILY_V6;
    const bool interleave = flag(one, "interleave", true), dedup = flag(one, "dedup");
    const auto count = static_cast<std::uint32_t>(number(one, "first_family_count", 1));
    // `byway::order` takes addresses as they are; a resolver's answer takes mapped ones for IPv4.
    const bool only_plan = !interleave || dedup || flag(one, "unmap");
    const bool can_plan = first_family == BYWAY_FIRST_FAMILY_V6 && count == 1;
    if (text(one, "interleave_stage") == "after_postpone")
        skip("no interleaving after the split");
    if (has(one, "postponed"))
        skip("no order of postponed addresses");
    if (has(one, "rtt_min_ms") || has(one, "attempts"))
        skip("no order by history");
    if (only_plan && !can_plan)
        skip("no first family of a plan");
    if (!only_plan) {
        auto ips = ips_of(get(one, "input"));
        byway::order(ips, first_family, count).value();
        same(texts_of(ips), get(one, "expect"), "order");
    }
    if (can_plan)
        same(planned(get(one, "input"),
                     (interleave ? 0u : BYWAY_ROUTING_NO_FAST_FALLBACK) | (dedup ? BYWAY_ROUTING_DEDUPLICATE : 0u))
                 .value(),
             get(one, "expect"), "plan");
}

struct moment {
    std::int64_t at;
    bool question; // events of one moment come before its questions
    json value;
    const char *what;
};

void happen(byway::engine &engine, const byway::route &route, const moment &now)
{
    const std::string what = now.what + (" at " + std::to_string(now.at));
    if (now.what == std::string("size"))
        same(engine.statistics().value().database_records, now.value, what);
    else if (now.question)
        same(engine.should_postpone(route), now.value, what);
    else if (now.value == "failed")
        engine.connect_failed(route, BYWAY_FAILURE_REFUSED).value();
    else if (now.value == "connected")
        engine.connected(route).value();
    else if (now.value == "network_changed")
        (void)engine.network_changed().value();
    else
        fail(what + ": no such event");
}

void postpone(const json &one)
{
    const json &policy = get(one, "policy");
    const std::string mode = text(policy, "mode");
    std::int64_t clock_ms = 0;
    byway::engine_options options;
    options.source_data = &clock_ms;
    options.monotonic_ns = [](void *data) {
        return static_cast<std::uint64_t>(*static_cast<std::int64_t *>(data)) * 1000000;
    };
    if (mode == "forever")
        options.postpone_for_ms = 0;
    else if (mode == "fixed")
        options.postpone_for_ms = options.postpone_at_most_ms = static_cast<std::int64_t>(number(policy, "ttl_ms"));
    else if (mode == "multiple") {
        options.postpone_for_ms = static_cast<std::int64_t>(number(policy, "base_ms"));
        options.postpone_at_most_ms = static_cast<std::int64_t>(number(policy, "max_ms"));
    } else
        fail("mode " + mode);
    std::vector<moment> moments;
    const auto add = [&](const char *list, bool question, const char *what) {
        for (const json &item : get(one, list))
            moments.push_back({item[0].get<std::int64_t>(), question, item[1], what});
    };
    add("events", false, "event");
    add("expect", true, "postponed");
    add("size_at", true, "size");
    std::stable_sort(moments.begin(), moments.end(), [](const moment &a, const moment &b) {
        return std::make_pair(a.at, a.question) < std::make_pair(b.at, b.question);
    });
    auto engine = byway::engine::make(options).value();
    const auto route = byway::route::make(address_of(engine, {{"host", "postpone.example"}, {"port", 80}}), {},
                                          byway::ip::v4(192, 0, 2, 1), 80)
                           .value();
    for (const moment &now : moments) {
        clock_ms = now.at;
        happen(engine, route, now);
    }
    engine.shutdown(std::chrono::milliseconds(0)).value();
}

const kinds here = {{"connect", "order", order}, {"connect", "postpone", postpone}};

} // namespace
} // namespace conform
