/* Every export on what an ended engine leaves behind. After byway_engine_shutdown answered OK, whatever belonged to
 * that engine answers BYWAY_E_SHUTDOWN; what does not is named below, with the reason. */
#include "byway.h"

static void note(byway_status status);
#define EXPECT_STATUS(name, bad, status) note(status)

#include "calls.c"
#include "calls.h"

static const char *other_type(int index)
{
    return index < (int)(sizeof types / sizeof types[0]) ? types[index] : NULL;
}

static const char value[] = "a value: it owns what it shows", process[] = "belongs to the process, not to an engine",
    queue[] = "a queue may serve several engines and outlives them", past[] = "reports what has already happened",
    loop[] = "leads the host's loop to the step that says so", lets_go[] = "only lets go of something",
    own[] = "the host's own object, made without an engine", gone[] = "nobody waits: a late answer is BYWAY_E_CANCELED";

/* What answers otherwise, and why. A name that ends with a star stands for every export that begins so. */
static const struct exempt {
    const char *name, *why;
} exempt[] = {
    { "byway_address_host", value },
    { "byway_address_text", value },
    { "byway_address_uri", value },
    { "byway_chain_cancel_bind", lets_go },
    { "byway_choice_*", value },
    { "byway_dial_cancel", lets_go },
    { "byway_dial_deadline_ms", loop },
    { "byway_dial_explain", past },
    { "byway_dial_failure_route", past },
    { "byway_dial_failures", past },
    { "byway_dial_fd", loop },
    { "byway_dial_next_event", past },
    { "byway_dial_pollset", loop },
    { "byway_dns_request_*", gone },
    { "byway_engine_new", "makes another engine" },
    { "byway_engine_shutdown", "is idempotent" },
    { "byway_engine_stats", past },
    { "byway_failure_*", process },
    { "byway_filter_*", own },
    { "byway_handshake_*", own },
    { "byway_host_canonical", process },
    { "byway_invocation_*", own },
    { "byway_invokers_row_of", value },
    { "byway_invokers_tag", value },
    { "byway_invokers_url", value },
    { "byway_ip_*", process },
    { "byway_layout", process },
    { "byway_proxy_host", value },
    { "byway_proxy_ip", value },
    { "byway_proxy_new", own },
    { "byway_proxy_new_resolved", own },
    { "byway_proxy_request_*", gone },
    { "byway_proxy_selector_diagnostics", past },
    { "byway_proxy_selector_script_url", past },
    { "byway_proxy_text", value },
    { "byway_proxy_with_credentials", value },
    { "byway_queue_*", queue },
    { "byway_route_*", value },
    { "byway_router_request_*", "lives only while a router is asked" },
    { "byway_rule_*", process },
    { "byway_selection_next", value },
    { "byway_selection_records", value },
    { "byway_selector_cancel", lets_go },
    { "byway_selector_explain", past },
    { "byway_session_idle", lets_go },
    { "byway_wpad_names", process },
};

static const char *why_exempt(const char *name)
{
    size_t i;
    for (i = 0; i < sizeof exempt / sizeof exempt[0]; i++) {
        const char *star = strchr(exempt[i].name, '*');
        if (star ? !strncmp(exempt[i].name, name, (size_t)(star - exempt[i].name)) : !strcmp(exempt[i].name, name))
            return exempt[i].why;
    }
    return NULL;
}

/* One of each type, made while the engine was open. */
static struct {
    const char *type;
    void *handle;
} kept[64];

static void *kept_one(const char *type)
{
    size_t i;
    for (i = 0; i < sizeof types / sizeof types[0]; i++)
        if (!strcmp(kept[i].type, type))
            return kept[i].handle;
    return NULL;
}

static int forget_one(const void *handle)
{
    size_t i;
    for (i = 0; i < sizeof types / sizeof types[0]; i++)
        if (kept[i].handle == handle) {
            kept[i].handle = NULL;
            return 1;
        }
    return 0;
}

static int called;
static byway_status answer;

static void note(byway_status status)
{
    called = 1;
    answer = status;
}

static void one(const struct export *it)
{
    byway_engine *engine = NULL;
    const char *why = why_exempt(it->name);
    size_t i;
    NEED(byway_engine_new(NULL, &engine, NULL));
    zoo_use_engine(engine);
    for (i = 0; i < sizeof types / sizeof types[0]; i++) {
        kept[i].type = types[i];
        kept[i].handle = zoo_make(types[i]);
    }
    NEED(byway_engine_shutdown(engine, -1, NULL));
    if (zoo_destroyed != zoo_sets)
        problem(it->name, -1, "shutdown left a set of callbacks", BYWAY_OK);
    called = 0;
    it->call(-1);
    if (called && !why)
        STATUS(answer, BYWAY_E_SHUTDOWN, it->name);
    else if (called)
        OK(answer != BYWAY_E_SHUTDOWN, "%s: %s", it->name, why);
    end_all();
    for (i = 0; i < sizeof types / sizeof types[0]; i++)
        zoo_end(types[i], kept[i].handle);
    zoo_use_engine(NULL);
    byway_engine_release(engine);
    /* What a refused call was given has ended inside it, what a queue was given with the queue. */
    if (zoo_destroyed != zoo_sets)
        problem(it->name, -1, "a set of callbacks did not end once", BYWAY_OK);
}

int main(void)
{
    size_t i;
    recall = kept_one;
    forget = forget_one;
    for (i = 0; i < sizeof exports / sizeof exports[0]; i++)
        one(&exports[i]);
    zoo_close();
    OK(problems == 0, "every set of callbacks ends exactly once");
    return tap_done();
}
