/* Proxies that fail: when they are marked, where that puts them, when they come back, who is told. */
#include "ask.h"

static int64_t wall = 1700000000000;

static uint64_t monotonic(void *data)
{
    (void)data;
    return (uint64_t)wall * 1000000u;
}

static int64_t wall_ms(void *data)
{
    (void)data;
    return wall;
}

static int marked, reinstated;
static char event_proxy[64];

static void on_event(void *user_data, const byway_event *event)
{
    byway_str host;
    (void)user_data;
    if (event->kind != BYWAY_EVENT_PROXY_MARKED_BAD && event->kind != BYWAY_EVENT_PROXY_REINSTATED)
        return;
    if (event->kind == BYWAY_EVENT_PROXY_MARKED_BAD)
        marked++;
    else
        reinstated++;
    if (event->proxies_len == 1 && event->proxies[0] && byway_proxy_host(event->proxies[0], &host) == BYWAY_OK)
        snprintf(event_proxy, sizeof event_proxy, "%s", host.data);
}

static byway_proxy_selector *list_of(const char *const *hosts, size_t n)
{
    byway_proxy *proxies[8] = { NULL };
    byway_proxy_selector *made = NULL;
    size_t i;
    for (i = 0; i < n; i++)
        if (hosts[i])
            NEED(byway_proxy_new(BYWAY_PROXY_HTTP, hosts[i], BYWAY_NUL, 8080, &proxies[i], NULL));
    NEED(byway_proxy_selector_new_fixed(engine, (const byway_proxy *const *)proxies, n, &made, NULL));
    for (i = 0; i < n; i++)
        byway_proxy_release(proxies[i]);
    return made;
}

static byway_dns *hosts_table(void)
{
    byway_dns *dns = NULL;
    NEED(byway_dns_new_hosts(engine, "192.0.2.99 target.example\n192.0.2.10 two.example\n192.0.2.11 two.example\n", BYWAY_NUL,
                             &dns, NULL));
    return dns;
}

static byway_selector *selector_of(byway_proxy_selector *chooser)
{
    byway_address_options options = BYWAY_ADDRESS_OPTIONS_INIT;
    byway_address *address = NULL;
    byway_selector *made = NULL;
    options.host = str("target.example");
    options.port = 80;
    options.proxy_selector = chooser;
    options.dns = hosts_table();
    NEED(byway_address_new(engine, &options, &address, NULL));
    NEED(byway_selector_new(engine, address, NULL, &made, NULL));
    byway_address_release(address);
    byway_dns_release(options.dns);
    return made;
}

/* Fails routes until one leads to the hop `good`, which stands; NULL: all fail. Returns how many failed. */
static int go_until(byway_selector *selector, const char *good, int32_t failure, int32_t phase)
{
    byway_selection *selection;
    const byway_route *route;
    byway_ip ip;
    byway_text *text;
    byway_str shown;
    uint16_t port;
    int failed = 0, stands = 0;
    while (!stands && byway_selector_next(selector, 0, &selection, NULL) == BYWAY_OK) {
        while (!stands && byway_selection_next(selection, &route, NULL) == BYWAY_OK) {
            NEED(byway_route_hop(route, &ip, &port));
            NEED(byway_ip_text(&ip, &text, NULL));
            byway_text_str(text, &shown);
            stands = good && !strcmp(shown.data, good);
            byway_text_free(text);
            if (stands) {
                NEED(byway_engine_connected(engine, route));
            } else {
                failed++;
                NEED(byway_engine_connect_failed(engine, route, failure, phase, 111, NULL));
            }
        }
        byway_selection_free(selection);
    }
    return failed;
}

/* On a network of which nothing is known yet. */
static int once(byway_proxy_selector *chooser, const char *good, int32_t failure, int32_t phase)
{
    byway_selector *selector;
    int failed;
    NEED(byway_engine_network_changed(engine, NULL));
    selector = selector_of(chooser);
    failed = go_until(selector, good, failure, phase);
    byway_selector_free(selector);
    return failed;
}

static const char *bad(void)
{
    static char shown[512];
    byway_text *text = NULL;
    byway_str json;
    NEED(byway_engine_bad_proxies(engine, &text, NULL));
    byway_text_str(text, &json);
    snprintf(shown, sizeof shown, "%s", json.data);
    byway_text_free(text);
    return shown;
}

static void forget(void)
{
    NEED(byway_engine_forget_bad_proxies(engine, NULL));
    OK(!strcmp(bad(), "[]"), "forgotten");
}

#define A "192.0.2.1"
#define B "192.0.2.2"
#define C "192.0.2.3"
#define ABC "http://" A ":8080 http://" B ":8080 http://" C ":8080"
#define BCA "http://" B ":8080 http://" C ":8080 http://" A ":8080"

static void marks(void)
{
    static const char *const hosts[] = { A, B, C };
    byway_proxy_selector *chooser = list_of(hosts, 3);
    byway_selector *selector;
    byway_text *text = NULL;
    byway_str shown;

    OK(once(chooser, B, BYWAY_FAILURE_REFUSED, BYWAY_PHASE_TCP) == 1, "the first proxy is refused, the second one works");
    OK(!strcmp(bad(), "[{\"kind\":\"http\",\"host\":\"" A "\",\"port\":8080,\"remaining_ms\":300000,"
                     "\"failure\":\"refused\",\"os_errno\":111,\"age_ms\":0}]"), "marked: %s", bad());
    OK(marked == 1 && !strcmp(event_proxy, A), "a listener is told (%d, %s)", marked, event_proxy);
    GIVES(chooser, "http://a/", BCA);
    wall += 299999;
    GIVES(chooser, "http://a/", BCA);
    selector = selector_of(chooser);
    NEED(byway_selector_explain(selector, BYWAY_FORMAT_TEXT, &text, NULL));
    byway_text_str(text, &shown);
    OK(strstr(shown.data, "moved back: http://" A ":8080 failed lately, 1 s left") != NULL, "the explanation says so");
    byway_text_free(text);
    byway_selector_free(selector);
    wall += 1;
    OK(reinstated == 0, "nobody asked yet");
    selector = selector_of(chooser);
    byway_selector_free(selector);
    OK(reinstated == 1 && !strcmp(event_proxy, A), "a listener is told that it is back (%d)", reinstated);
    GIVES(chooser, "http://a/", ABC);
    OK(!strcmp(bad(), "[]"), "and it is not marked any more");

    (void)once(chooser, C, BYWAY_FAILURE_TIMEOUT, BYWAY_PHASE_TCP);
    GIVES(chooser, "http://a/", "http://" C ":8080 http://" A ":8080 http://" B ":8080");
    NEED(byway_engine_network_changed(engine, NULL));
    GIVES(chooser, "http://a/", ABC);
    byway_proxy_selector_release(chooser);
}

static void no_marks(void)
{
    static const char *const hosts[] = { A, B, C };
    static const char *const direct_first[] = { NULL, A, B };
    static const char *const named[] = { "two.example", B };
    static const char *const unknown[] = { "unknown.example", B };
    byway_proxy_selector *chooser = list_of(hosts, 3);
    byway_selector *selector;

    (void)once(chooser, NULL, BYWAY_FAILURE_REFUSED, BYWAY_PHASE_TCP);
    OK(!strcmp(bad(), "[]"), "nothing works: this machine is offline, no proxy is to blame");
    (void)once(chooser, B, BYWAY_FAILURE_PROXY_REFUSED, BYWAY_PHASE_TUNNEL);
    OK(!strcmp(bad(), "[]"), "a refusal of the target is none of the proxy");
    (void)once(chooser, B, BYWAY_FAILURE_PROXY_AUTH, BYWAY_PHASE_TUNNEL);
    OK(!strcmp(bad(), "[]"), "nor is a wrong password");
    (void)once(chooser, B, BYWAY_FAILURE_TLS_HANDSHAKE, BYWAY_PHASE_TLS);
    OK(!strcmp(bad(), "[]"), "nor TLS to the target");
    (void)once(chooser, B, BYWAY_FAILURE_CANCELED, BYWAY_PHASE_TCP);
    OK(!strcmp(bad(), "[]"), "nor a lost race");
    (void)once(chooser, B, BYWAY_FAILURE_LOCAL, BYWAY_PHASE_TCP);
    OK(!strcmp(bad(), "[]"), "nor trouble of this machine");
    (void)once(chooser, B, BYWAY_FAILURE_PROXY_PROTOCOL, BYWAY_PHASE_TUNNEL);
    OK(strstr(bad(), A) != NULL, "but one that does not speak its protocol is: %s", bad());
    forget();
    selector = selector_of(chooser);
    {
        byway_selection *selection = NULL;
        const byway_route *route = NULL;
        NEED(byway_selector_next(selector, 0, &selection, NULL));
        NEED(byway_selection_next(selection, &route, NULL));
        NEED(byway_engine_connect_failed(engine, route, BYWAY_FAILURE_REFUSED, BYWAY_PHASE_TCP, 111, NULL));
        byway_selection_free(selection);
    }
    byway_selector_free(selector);
    OK(!strcmp(bad(), "[]"), "a selector that ends without success marks nothing");
    byway_proxy_selector_release(chooser);

    chooser = list_of(direct_first, 3);
    (void)once(chooser, B, BYWAY_FAILURE_REFUSED, BYWAY_PHASE_TCP);
    OK(!strcmp(bad(), "[]"), "a list that begins with DIRECT marks nothing");
    byway_proxy_selector_release(chooser);

    chooser = list_of(named, 2);
    (void)once(chooser, "192.0.2.11", BYWAY_FAILURE_REFUSED, BYWAY_PHASE_TCP);
    OK(!strcmp(bad(), "[]"), "another address of the same proxy works: only a route is postponed");
    (void)once(chooser, B, BYWAY_FAILURE_REFUSED, BYWAY_PHASE_TCP);
    OK(strstr(bad(), "two.example") != NULL, "all of its addresses failed: %s", bad());
    byway_proxy_selector_release(chooser);
    forget();

    chooser = list_of(unknown, 2);
    (void)once(chooser, B, BYWAY_FAILURE_REFUSED, BYWAY_PHASE_TCP);
    OK(strstr(bad(), "unknown.example") != NULL, "its name does not resolve: %s", bad());
    byway_proxy_selector_release(chooser);
}

static void engines(void)
{
    static const char *const hosts[] = { A, B };
    static const struct {
        int64_t ms;
        int32_t compat;
        const char *what;
    } cases[] = { { 0, BYWAY_COMPAT_BYWAY, "switched off" }, { -1, BYWAY_COMPAT_OKHTTP_5, "as OkHttp" } };
    byway_engine *usual = engine;
    size_t i;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        byway_engine_options with = BYWAY_ENGINE_OPTIONS_INIT;
        byway_proxy_selector *chooser;
        with.bad_proxy_ms = cases[i].ms;
        with.compat = cases[i].compat;
        NEED(byway_engine_new(&with, &engine, NULL));
        chooser = list_of(hosts, 2);
        (void)once(chooser, B, BYWAY_FAILURE_REFUSED, BYWAY_PHASE_TCP);
        OK(!strcmp(bad(), "[]"), "%s: nothing is marked", cases[i].what);
        byway_proxy_selector_release(chooser);
        NEED(byway_engine_shutdown(engine, 60000, NULL));
        byway_engine_release(engine);
    }
    engine = usual;
    {
        byway_engine_options with = BYWAY_ENGINE_OPTIONS_INIT;
        byway_engine *made = NULL;
        with.bad_proxy_ms = -2;
        STATUS(byway_engine_new(&with, &made, NULL), BYWAY_E_ARGUMENT, "a negative time");
    }
}

int main(void)
{
    byway_engine_options with = BYWAY_ENGINE_OPTIONS_INIT;
    byway_listener_callbacks listening = BYWAY_LISTENER_CALLBACKS_INIT;
    byway_listener *listener = NULL;
    with.monotonic_ns = monotonic;
    with.wall_ms = wall_ms;
    listening.on_event = on_event;
    NEED(byway_engine_new(&with, &engine, NULL));
    NEED(byway_engine_add_listener(engine, &listening, &listener, NULL));
    marks();
    no_marks();
    engines();
    byway_listener_release(listener);
    NEED(byway_engine_shutdown(engine, 60000, NULL));
    byway_engine_release(engine);
    return tap_done();
}
