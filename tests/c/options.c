/* What each option of an engine and of a chain does, seen through the boundary. */
#include "tap.h"

#define TEXT(s) (s), BYWAY_NUL

static byway_engine *engine;
static byway_engine_options with;
static byway_dns *dns;
static int lookups, silent;
static int64_t now_ms = 1700000000000;

static uint64_t monotonic(void *data)
{
    (void)data;
    return (uint64_t)now_ms * 1000000u;
}

static int64_t wall(void *data)
{
    (void)data;
    return now_ms;
}

static byway_status lookup(void *user_data, byway_dns_request *request, const char *host, size_t len,
                           const byway_call *call)
{
    (void)host;
    (void)len;
    (void)call;
    lookups++;
    if (silent) {
        /* Kept for the callback's own time only: an answer that never comes. */
        *(byway_dns_request **)user_data = byway_dns_request_retain(request);
        return BYWAY_PENDING;
    }
    return byway_dns_request_add_text(request, TEXT("192.0.2.1 192.0.2.2 2001:db8::1 2001:db8::2"), NULL);
}

static byway_dns_request *open_request;

static byway_status failing_select(void *user_data, byway_proxy_request *request, const char *uri, size_t len,
                                   const byway_call *call)
{
    (void)user_data;
    (void)request;
    (void)uri;
    (void)len;
    (void)call;
    return BYWAY_E_HOST;
}

static void open_engine(void)
{
    byway_dns_callbacks set = BYWAY_DNS_CALLBACKS_INIT;
    lookups = 0;
    NEED(byway_engine_new(&with, &engine, NULL));
    set.user_data = &open_request;
    set.lookup = lookup;
    NEED(byway_dns_new(engine, &set, &dns, NULL));
}

static void close_engine(void)
{
    byway_engine_options defaults = BYWAY_ENGINE_OPTIONS_INIT;
    NEED(byway_engine_shutdown(engine, -1, NULL));
    byway_dns_release(dns);
    byway_engine_release(engine);
    with = defaults;
}

static byway_selector *select_from(const char *host, const byway_proxy *proxy, byway_proxy_selector *chooser)
{
    byway_address_options options = BYWAY_ADDRESS_OPTIONS_INIT;
    byway_address *address = NULL;
    byway_selector *selector = NULL;
    options.host.data = host;
    options.host.len = BYWAY_NUL;
    options.port = 443;
    options.flags = BYWAY_ADDRESS_TLS;
    options.proxy = proxy;
    options.proxy_selector = chooser;
    options.dns = dns;
    NEED(byway_address_new(engine, &options, &address, NULL));
    NEED(byway_selector_new(engine, address, NULL, &selector, NULL));
    byway_address_release(address);
    return selector;
}

/* The routes of one Selection, separated by blanks, or the status; with the flags of the first. */
static uint32_t first_flags;

static const char *next_of(byway_selector *selector)
{
    static char shown[1024];
    byway_selection *selection = NULL;
    const byway_route *route = NULL;
    byway_ip ip;
    byway_text *text = NULL;
    byway_str one;
    byway_status status = byway_selector_next(selector, -1, &selection, NULL);
    if (status != BYWAY_OK)
        return byway_status_name(status);
    shown[0] = '\0';
    first_flags = byway_route_flags(byway_selection_at(selection, 0));
    while (byway_selection_next(selection, &route, NULL) == BYWAY_OK) {
        NEED(byway_route_hop(route, &ip, NULL));
        NEED(byway_ip_text(&ip, &text, NULL));
        byway_text_str(text, &one);
        snprintf(shown + strlen(shown), sizeof shown - strlen(shown), "%s%s", shown[0] ? " " : "", one.data);
        byway_text_free(text);
    }
    byway_selection_free(selection);
    return shown;
}

static const char *routes_of(const char *host, const byway_proxy *proxy)
{
    byway_selector *selector = select_from(host, proxy, NULL);
    const char *shown = next_of(selector);
    byway_selector_free(selector);
    return shown;
}

#define IS(got, want, what) \
    do { \
        const char *got_ = (got); \
        if (!OK(!strcmp(got_, want), "%s", what)) \
            printf("# got %s\n", got_); \
    } while (0)

static void orders_and_lookups(void)
{
    open_engine();
    IS(routes_of("a.example", NULL), "2001:db8::1 192.0.2.1 2001:db8::2 192.0.2.2", "families alternate");
    IS(routes_of("192.0.2.9", NULL), "192.0.2.9", "a literal");
    OK(lookups == 1, "is not asked for");
    (void)routes_of("a.example", NULL);
    OK(lookups == 2, "names are asked for each time");
    close_engine();

    with.routing_flags = BYWAY_ROUTING_NO_FAST_FALLBACK;
    open_engine();
    IS(routes_of("a.example", NULL), "192.0.2.1 192.0.2.2 2001:db8::1 2001:db8::2", "the resolver's order, where wanted");
    close_engine();

    with.routing_flags = BYWAY_ROUTING_RESOLVE_LITERALS;
    open_engine();
    IS(routes_of("192.0.2.9", NULL), "2001:db8::1 192.0.2.1 2001:db8::2 192.0.2.2", "a literal is asked for, where wanted");
    close_engine();

    with.dns_cache_ms = 1000;
    with.monotonic_ns = monotonic;
    with.wall_ms = wall;
    open_engine();
    (void)routes_of("a.example", NULL);
    now_ms += 999;
    IS(routes_of("a.example", NULL), "2001:db8::1 192.0.2.1 2001:db8::2 192.0.2.2", "a name that is kept");
    OK(lookups == 1, "is asked for once");
    now_ms += 1;
    (void)routes_of("a.example", NULL);
    OK(lookups == 2, "and anew when its time is over");
    NEED(byway_engine_network_changed(engine, NULL));
    (void)routes_of("a.example", NULL);
    OK(lookups == 3, "or the network is another");
    close_engine();

    with.default_timeout_ms = 1;
    open_engine();
    silent = 1;
    IS(routes_of("a.example", NULL), "BYWAY_E_TIMEOUT", "a negative timeout is the engine's default");
    silent = 0;
    byway_dns_request_release(open_request);
    close_engine();

    with.on_proxy_selector_error = BYWAY_ON_PROXY_SELECTOR_ERROR_DIRECT;
    open_engine();
    {
        byway_proxy_selector_callbacks set = BYWAY_PROXY_SELECTOR_CALLBACKS_INIT;
        byway_proxy_selector *chooser = NULL;
        byway_selector *selector;
        set.select = failing_select;
        NEED(byway_proxy_selector_new(engine, &set, &chooser, NULL));
        selector = select_from("192.0.2.9", NULL, chooser);
        IS(next_of(selector), "192.0.2.9", "a proxy selector that fails means DIRECT, where wanted");
        OK(!(first_flags & BYWAY_ROUTE_FROM_SELECTOR), "which it has not chosen");
        byway_selector_free(selector);
        byway_proxy_selector_release(chooser);
    }
    close_engine();
}

static void filters(void)
{
    byway_filter *filter = NULL;
    byway_proxy *socks = NULL, *http = NULL;
    NEED(byway_proxy_new(BYWAY_PROXY_SOCKS5H, TEXT("198.51.100.1"), 1080, &socks, NULL));
    NEED(byway_proxy_new(BYWAY_PROXY_HTTP, TEXT("198.51.100.2"), 8080, &http, NULL));
    NEED(byway_filter_new(TEXT("deny 192.0.2.0/24\ndeny 2001:db8::1/128\n"), &filter, NULL));

    with.target_filter = filter;
    open_engine();
    IS(routes_of("a.example", NULL), "2001:db8::2", "resolved targets are judged");
    IS(routes_of("192.0.2.9", NULL), "BYWAY_E_FILTERED", "literals too");
    IS(routes_of("::ffff:192.0.2.9", NULL), "BYWAY_E_FILTERED", "also in their mapped form");
    IS(routes_of("192.0.2.9", http), "BYWAY_E_FILTERED", "and those that a proxy would be sent");
    IS(routes_of("192.0.2.9", socks), "BYWAY_E_FILTERED", "of every kind");
    IS(routes_of("a.example", socks), "198.51.100.1", "a name that the proxy resolves goes through");
    OK((first_flags & BYWAY_ROUTE_TARGET_NOT_CHECKED) && (first_flags & BYWAY_ROUTE_TARGET_IS_NAME),
       "marked as not checked (%x)", (unsigned)first_flags);
    close_engine();

    with.target_filter = filter;
    with.routing_flags = BYWAY_ROUTING_DENY_UNRESOLVED_TARGETS;
    open_engine();
    IS(routes_of("a.example", socks), "BYWAY_E_FILTERED", "or does not, where that is wanted");
    IS(routes_of("a.example", NULL), "2001:db8::2", "what is resolved here is judged as before");
    close_engine();
    byway_filter_release(filter);

    NEED(byway_filter_new(TEXT("deny 198.51.100.1/32\n"), &filter, NULL));
    with.proxy_filter = filter;
    open_engine();
    IS(routes_of("a.example", socks), "BYWAY_E_FILTERED", "proxies have a filter of their own");
    IS(routes_of("a.example", http), "198.51.100.2", "which lets others through");
    IS(routes_of("198.51.100.1", NULL), "198.51.100.1", "and judges no targets");
    close_engine();
    byway_filter_release(filter);
    byway_proxy_release(socks);
    byway_proxy_release(http);
}

static byway_route *route_number(byway_selector *selector, size_t index)
{
    byway_selection *selection = NULL;
    byway_route *route;
    NEED(byway_selector_next(selector, -1, &selection, NULL));
    route = byway_route_retain(byway_selection_at(selection, index));
    byway_selection_free(selection);
    return route;
}

static int postponed(const byway_route *route)
{
    int32_t out = -1;
    NEED(byway_engine_should_postpone(engine, route, &out));
    return out;
}

static void fail(const byway_route *route)
{
    NEED(byway_engine_connect_failed(engine, route, BYWAY_FAILURE_REFUSED, BYWAY_PHASE_TCP, 111, NULL));
}

static void postponement(void)
{
    byway_selector *selector;
    byway_route *route, *other;
    byway_failed_route records[4];
    byway_engine_statistics stats = BYWAY_ENGINE_STATISTICS_INIT;
    size_t total = 0, i;
    with.monotonic_ns = monotonic;
    with.wall_ms = wall;
    with.postpone_for_ms = 1000;
    with.postpone_at_most_ms = 2500;
    open_engine();
    selector = select_from("a.example", NULL, NULL);
    route = route_number(selector, 0);
    for (i = 1; i <= 4; i++) {
        static const int64_t lasting[] = { 0, 1000, 2000, 2500, 2500 };
        fail(route);
        now_ms += lasting[i] - 1;
        OK(postponed(route) == 1, "period %d lasts", (int)i);
        now_ms += 1;
        OK(postponed(route) == 0, "and ends after %d ms", (int)lasting[i]);
    }
    byway_route_release(route);
    byway_selector_free(selector);
    close_engine();

    with.monotonic_ns = monotonic;
    with.wall_ms = wall;
    with.postpone_for_ms = 0;
    open_engine();
    selector = select_from("a.example", NULL, NULL);
    route = route_number(selector, 0);
    fail(route);
    now_ms += 1000000000;
    OK(postponed(route) == 1, "without a time: until it is connected");
    NEED(byway_engine_connected(engine, route));
    OK(postponed(route) == 0, "and no longer");
    byway_route_release(route);
    byway_selector_free(selector);
    close_engine();

    with.database_capacity = 2;
    open_engine();
    selector = select_from("a.example", NULL, NULL);
    {
        byway_selection *selection = NULL;
        NEED(byway_selector_next(selector, -1, &selection, NULL));
        for (i = 0; i < 3; i++)
            fail(byway_selection_at(selection, i));
        NEED(byway_engine_database_snapshot(engine, records, sizeof records[0], 4, &total));
        OK(total == 2 && postponed(byway_selection_at(selection, 0)) == 0 && postponed(byway_selection_at(selection, 2)) == 1,
           "a database of two forgets the oldest (%d)", (int)total);
        NEED(byway_engine_database_snapshot(engine, NULL, sizeof records[0], 0, &total));
        OK(total == 2, "(NULL, 0) counts");
        byway_selection_free(selection);
    }
    byway_selector_free(selector);
    close_engine();

    with.commit_failures = BYWAY_COMMIT_ON_SUCCESS;
    open_engine();
    selector = select_from("a.example", NULL, NULL);
    {
        byway_selection *selection = NULL;
        NEED(byway_selector_next(selector, -1, &selection, NULL));
        route = byway_route_retain(byway_selection_at(selection, 0));
        other = byway_route_retain(byway_selection_at(selection, 1));
        byway_selection_free(selection);
    }
    fail(route);
    NEED(byway_engine_stats(engine, &stats));
    OK(postponed(route) == 0 && stats.database_pending == 1, "a failure waits for its selector's success");
    NEED(byway_engine_connected(engine, other));
    OK(postponed(route) == 1, "and counts then");
    NEED(byway_engine_connected(engine, route));
    byway_selector_free(selector);
    byway_route_release(route);
    byway_route_release(other);
    selector = select_from("a.example", NULL, NULL);
    route = route_number(selector, 0);
    fail(route);
    byway_selector_free(selector);
    NEED(byway_engine_stats(engine, &stats));
    OK(postponed(route) == 0 && stats.database_pending == 0, "or is dropped with it");
    byway_route_release(route);
    close_engine();
}

/* ---- chains */

static byway_status drop_all(void *user_data, const byway_router_request *request, const byway_call *call)
{
    (void)user_data;
    (void)request;
    (void)call;
    return BYWAY_OK;
}

static int asked_with;

static byway_status note(void *user_data, const byway_router_request *request, const byway_call *call)
{
    (void)user_data;
    (void)call;
    asked_with = (int)request->count;
    return BYWAY_PASS;
}

static byway_chain *chain_with(int32_t dialect, uint32_t flags)
{
    static const char *const urls_text[] = { "tri://10.0.0.1:20880/Greeter?weight=100", "tri://10.0.0.2:20880/Greeter",
                                             "tri://10.0.0.3:20880/Greeter" };
    byway_chain_options options = BYWAY_CHAIN_OPTIONS_INIT;
    byway_chain *chain = NULL;
    byway_invokers *list = NULL;
    byway_str urls[3];
    size_t i;
    for (i = 0; i < 3; i++) {
        urls[i].data = urls_text[i];
        urls[i].len = BYWAY_NUL;
    }
    options.dialect = dialect;
    options.flags = flags;
    NEED(byway_invokers_new(engine, urls, NULL, 3, 0, NULL, &list, NULL));
    NEED(byway_chain_new(engine, TEXT("consumer://10.1.1.1/Greeter"), &options, &chain, NULL));
    NEED(byway_chain_set_invokers(chain, list, NULL, NULL));
    byway_invokers_release(list);
    return chain;
}

static void add(byway_chain *chain, const char *name, int64_t priority,
                byway_status (*route)(void *, const byway_router_request *, const byway_call *))
{
    byway_router_callbacks set = BYWAY_ROUTER_CALLBACKS_INIT;
    byway_router *router = NULL;
    set.route = route;
    NEED(byway_router_new(engine, TEXT(name), priority, 0, &set, &router, NULL));
    NEED(byway_chain_add_router(chain, router, NULL));
    byway_router_release(router);
}

static void empty_lists(void)
{
    static const struct {
        uint32_t flags;
        int asked;
        const char *what;
    } cases[] = { { BYWAY_CHAIN_FAIL_FAST, -1, "an empty list ends a chain that fails fast" },
                  { BYWAY_CHAIN_RUN_ON, 0, "one that runs on shows it to the next router" },
                  { 0, -1, "by default it is the dialect's: fail fast" } };
    size_t i, total;
    byway_invocation *call = NULL;
    byway_chain *none = NULL;
    byway_chain_options both = BYWAY_CHAIN_OPTIONS_INIT;
    open_engine();
    NEED(byway_invocation_new(&call, NULL));
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        byway_chain *chain = chain_with(BYWAY_DIALECT_BYWAY, cases[i].flags);
        char first[16], second[16];
        snprintf(first, sizeof first, "drop-%d", (int)i);
        snprintf(second, sizeof second, "note-%d", (int)i);
        add(chain, first, 1000, drop_all);
        add(chain, second, 1001, note);
        asked_with = -1;
        NEED(byway_chain_route_tags(chain, call, NULL, 0, &total, NULL, NULL));
        OK(total == 0 && asked_with == cases[i].asked, "%s (%d)", cases[i].what, asked_with);
        byway_chain_release(chain);
    }
    both.flags = BYWAY_CHAIN_FAIL_FAST | BYWAY_CHAIN_RUN_ON;
    STATUS(byway_chain_new(engine, TEXT("consumer://10.1.1.1/Greeter"), &both, &none, NULL), BYWAY_E_ARGUMENT,
           "both at once are none");
    byway_invocation_free(call);
    close_engine();
}

/* 64 picks of one engine with this seed. */
static uint64_t picks(uint64_t seed, uint32_t flags)
{
    uint64_t all = 0;
    int i;
    byway_chain *chain;
    byway_session *session = NULL;
    byway_invocation *call = NULL;
    byway_picked picked;
    with.seed = seed;
    open_engine();
    chain = chain_with(BYWAY_DIALECT_BYWAY, flags);
    NEED(byway_session_new(chain, &session, NULL));
    NEED(byway_invocation_new(&call, NULL));
    NEED(byway_invocation_set_method(call, TEXT("hello")));
    for (i = 0; i < 64; i++) {
        NEED(byway_session_pick(session, call, NULL, &picked, NULL));
        all = all * 3 + picked.row;
    }
    byway_invocation_free(call);
    byway_session_free(session);
    byway_chain_release(chain);
    close_engine();
    return all;
}

static int drawn;

static uint64_t always_the_same(void *data)
{
    (void)data;
    drawn++;
    return 0;
}

static void draws(void)
{
    byway_chain *chain;
    byway_invocation *call = NULL;
    byway_picked picked;
    uint64_t rows = 0;
    int i;
    OK(picks(7, 0) == picks(7, 0), "a seed repeats the draws");
    OK(picks(7, 0) != picks(8, 0), "another one does not");
    OK(picks(7, BYWAY_CHAIN_NO_MEMO) == picks(7, 0), "with or without memoised results");
    with.random = always_the_same;
    open_engine();
    chain = chain_with(BYWAY_DIALECT_BYWAY, 0);
    NEED(byway_invocation_new(&call, NULL));
    for (i = 0; i < 8; i++) {
        NEED(byway_chain_pick(chain, call, NULL, &picked, NULL));
        rows |= picked.row;
    }
    OK(drawn > 0 && rows == 0, "a host's generator is asked, and decides (%d draws)", drawn);
    byway_invocation_free(call);
    byway_chain_release(chain);
    close_engine();
}

int main(void)
{
    byway_engine_options defaults = BYWAY_ENGINE_OPTIONS_INIT;
    with = defaults;
    orders_and_lookups();
    filters();
    postponement();
    empty_lists();
    draws();
    return tap_done();
}
