/* connect.jsonl order: in which order the addresses of a host are tried. */
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
    const int only_plan = !truth_of(test, "interleave", 1) || truth_of(test, "dedup", 0);
    const int can_plan = first_family == BYWAY_FIRST_FAMILY_V6 && number_of(test, "first_family_count", 1) == 1;
    enum outcome outcome = PASS;
    if (!strcmp(text_of(test, "interleave_stage", ""), "after_postpone"))
        return skips("no interleaving after the split");
    if (get(test, "postponed"))
        return skips("no order of postponed addresses");
    if (get(test, "rtt_min_ms") || get(test, "attempts"))
        return skips("no order by history");
    /* byway_ip_order takes addresses as they are; a plan puts them in order before it takes mapped ones for IPv4. */
    if (truth_of(test, "unmap", 0))
        return skips("mapped addresses are ordered as IPv6");
    if (only_plan && !can_plan)
        return skips("no first family of a plan");
    if (!only_plan)
        outcome = by_order(test, first_family);
    if (outcome == PASS && can_plan)
        outcome = by_plan(test);
    return outcome;
}

const struct kind order_kinds[] = {
    { "connect", "order", order },
    { NULL, NULL, NULL },
};
