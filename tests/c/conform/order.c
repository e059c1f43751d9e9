/* connect.jsonl order: in which order the addresses of a host are tried; and postpone: how long a route that failed
 * stays behind the others. */
#include "okhttp.h"

enum { MOST = 64 };

/* The order as `byway_ip_order` makes it. */
static enum outcome by_order(const cJSON *test, int32_t first_family)
{
    byway_ip ips[MOST];
    size_t n = 0, i;
    byway_status status;
    const cJSON *item;
    cJSON *got;
    cJSON_ArrayForEach(item, get(test, "input"))
    {
        if (n == MOST)
            return fails("more than %d addresses", MOST);
        ips[n++] = ip_of(cJSON_GetStringValue(item));
    }
    status = byway_ip_order(ips, n, first_family, (uint32_t)number_of(test, "first_family_count", 1), NULL);
    if (status != BYWAY_OK)
        return fails("order: %s", byway_status_name(status));
    got = cJSON_CreateArray();
    for (i = 0; i < n; i++)
        cJSON_AddItemToArray(got, cJSON_CreateString(ip_text(&ips[i])));
    return same_json(got, get(test, "expect"), "order");
}

/* The order as it is seen in the routes to a host with these addresses. */
static enum outcome by_plan(const cJSON *test)
{
    byway_status status;
    uint32_t flags = 0;
    cJSON *got;
    if (!truth_of(test, "interleave", 1))
        flags |= BYWAY_ROUTING_NO_FAST_FALLBACK;
    if (truth_of(test, "dedup", 0))
        flags |= BYWAY_ROUTING_DEDUPLICATE;
    got = planned(get(test, "input"), flags, &status);
    if (status != BYWAY_OK) {
        cJSON_Delete(got);
        return fails("plan: %s", byway_status_name(status));
    }
    return same_json(got, get(test, "expect"), "plan");
}

/* Whatever of the two can say the case must give it. */
static enum outcome order(const cJSON *test)
{
    const char *family = text_of(test, "first_family", "v6");
    const int32_t first_family = !strcmp(family, "v4")              ? BYWAY_FIRST_FAMILY_V4
                                 : !strcmp(family, "first_address") ? BYWAY_FIRST_FAMILY_FIRST_ADDRESS
                                                                    : BYWAY_FIRST_FAMILY_V6;
    /* byway_ip_order takes addresses as they are; a resolver's answer takes mapped ones for IPv4. */
    const int only_plan =
        !truth_of(test, "interleave", 1) || truth_of(test, "dedup", 0) || truth_of(test, "unmap", 0);
    const int can_plan = first_family == BYWAY_FIRST_FAMILY_V6 && number_of(test, "first_family_count", 1) == 1;
    enum outcome outcome = PASS;
    if (!strcmp(text_of(test, "interleave_stage", ""), "after_postpone"))
        return skips("no interleaving after the split");
    if (get(test, "postponed"))
        return skips("no order of postponed addresses");
    if (get(test, "rtt_min_ms") || get(test, "attempts"))
        return skips("no order by history");
    if (only_plan && !can_plan)
        return skips("no first family of a plan");
    if (!only_plan)
        outcome = by_order(test, first_family);
    if (outcome == PASS && can_plan)
        outcome = by_plan(test);
    return outcome;
}

/* Times of the case under way. */
static uint64_t clock_ms;

static uint64_t clock_ns(void *source_data)
{
    (void)source_data;
    return clock_ms * 1000000;
}

struct moment {
    uint64_t at;
    int question; /* events of one moment come before its questions */
    const cJSON *value;
    const char *what;
};

static size_t add_moments(struct moment *moments, size_t n, const cJSON *list, int question, const char *what)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        const uint64_t at = (uint64_t)cJSON_GetNumberValue(cJSON_GetArrayItem(item, 0));
        size_t place = n;
        if (n == MOST)
            abort();
        while (place > 0
               && (moments[place - 1].at > at
                   || (moments[place - 1].at == at && moments[place - 1].question > question))) {
            moments[place] = moments[place - 1];
            place--;
        }
        moments[place].at = at;
        moments[place].question = question;
        moments[place].value = cJSON_GetArrayItem(item, 1);
        moments[place].what = what;
        n++;
    }
    return n;
}

static enum outcome happen(byway_engine *engine, const byway_route *route, const struct moment *moment)
{
    const char *event = cJSON_GetStringValue(moment->value);
    char what[64];
    byway_status status;
    cJSON *got = NULL;
    snprintf(what, sizeof what, "%s at %.0f", moment->what, (double)moment->at);
    if (!strcmp(moment->what, "event") && event && !strcmp(event, "failed"))
        status = byway_engine_connect_failed(engine, route, BYWAY_FAILURE_REFUSED, BYWAY_PHASE_TCP, 0, NULL);
    else if (!strcmp(moment->what, "event") && event && !strcmp(event, "connected"))
        status = byway_engine_connected(engine, route);
    else if (!strcmp(moment->what, "event") && event && !strcmp(event, "network_changed"))
        status = byway_engine_network_changed(engine, NULL);
    else if (!strcmp(moment->what, "event"))
        return fails("%s: no such event", what);
    else if (!strcmp(moment->what, "size")) {
        byway_engine_statistics statistics = BYWAY_ENGINE_STATISTICS_INIT;
        status = byway_engine_stats(engine, &statistics);
        got = cJSON_CreateNumber((double)statistics.database_records);
    } else {
        int32_t behind = 0;
        status = byway_engine_should_postpone(engine, route, &behind);
        got = cJSON_CreateBool(behind);
    }
    if (status != BYWAY_OK) {
        cJSON_Delete(got);
        return fails("%s: %s", what, byway_status_name(status));
    }
    return got ? same_json(got, moment->value, what) : PASS;
}

static enum outcome postpone(const cJSON *test)
{
    byway_engine_options options = BYWAY_ENGINE_OPTIONS_INIT;
    byway_address_options where = BYWAY_ADDRESS_OPTIONS_INIT;
    byway_engine *engine = NULL;
    byway_address *address = NULL;
    byway_route *route = NULL;
    struct moment moments[MOST];
    const cJSON *policy = get(test, "policy");
    const char *mode = word(policy, "mode");
    const byway_ip hop = ip_of("192.0.2.1");
    enum outcome outcome = PASS;
    size_t n = 0, i;
    if (!strcmp(mode, "forever")) {
        options.postpone_for_ms = 0;
    } else if (!strcmp(mode, "fixed")) {
        options.postpone_for_ms = options.postpone_at_most_ms = (int64_t)number_of(policy, "ttl_ms", 0);
    } else if (!strcmp(mode, "multiple")) {
        options.postpone_for_ms = (int64_t)number_of(policy, "base_ms", 0);
        options.postpone_at_most_ms = (int64_t)number_of(policy, "max_ms", 0);
    } else
        return fails("mode %s", mode);
    clock_ms = 0;
    options.monotonic_ns = clock_ns;
    where.host.data = "postpone.example";
    where.host.len = BYWAY_NUL;
    where.port = 80;
    if (byway_engine_new(&options, &engine, NULL) != BYWAY_OK
        || byway_address_new(engine, &where, &address, NULL) != BYWAY_OK
        || byway_route_new(address, NULL, &hop, 80, &route, NULL) != BYWAY_OK)
        outcome = fails("no route");
    n = add_moments(moments, n, get(test, "events"), 0, "event");
    n = add_moments(moments, n, get(test, "expect"), 1, "postponed");
    n = add_moments(moments, n, get(test, "size_at"), 1, "size");
    for (i = 0; i < n && outcome == PASS; i++) {
        clock_ms = moments[i].at;
        outcome = happen(engine, route, &moments[i]);
    }
    byway_route_release(route);
    byway_address_release(address);
    (void)byway_engine_shutdown(engine, 0, NULL);
    byway_engine_release(engine);
    return outcome;
}

const struct kind order_kinds[] = {
    { "connect", "order", order },
    { "connect", "postpone", postpone },
    { NULL, NULL, NULL },
};
