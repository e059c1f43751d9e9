/* Proxies that failed: where they stand in later lists. Failures and successes are reported for the routes of a selector. */
#include "proxies.h"

enum { LONGEST = 8 };

static byway_status any_name(void *user_data, byway_dns_request *request, const char *host, size_t len,
                             const byway_call *call)
{
    (void)user_data;
    (void)host;
    (void)len;
    (void)call;
    return byway_dns_request_add_text(request, "192.0.2.1", BYWAY_NUL, NULL);
}

/* `http host:port`, or NULL for `direct`. */
static byway_proxy *proxy_of(const char *text)
{
    static const char *const words[] = { "direct", "http", "https", "socks4", "socks4a", "socks5", "socks5h" };
    char kind[16], host[100];
    int port;
    int32_t i;
    byway_proxy *made = NULL;
    if (sscanf(text, "%15s %99[^:]:%d", kind, host, &port) != 3)
        return NULL;
    for (i = 1; i < 7; i++)
        if (!strcmp(kind, words[i]))
            (void)byway_proxy_new(i, host, BYWAY_NUL, port, &made, NULL);
    return made;
}

/* As these cases write an entry. */
static const char *entry_of(const char *type, const char *host, double port)
{
    static char shown[200];
    if (!strcmp(type, "direct"))
        return type;
    snprintf(shown, sizeof shown, "%s %s:%.0f", type, host, port);
    return shown;
}

static byway_proxy_selector *selector_of(byway_engine *engine, const char *const *list, size_t n)
{
    byway_proxy *proxies[LONGEST] = { NULL };
    byway_proxy_selector *made = NULL;
    size_t i;
    for (i = 0; i < n; i++)
        proxies[i] = proxy_of(list[i]);
    (void)byway_proxy_selector_new_fixed(engine, (const byway_proxy *const *)proxies, n, &made, NULL);
    for (i = 0; i < n; i++)
        byway_proxy_release(proxies[i]);
    return made;
}

static int is_in(const cJSON *texts, const char *text)
{
    const cJSON *one;
    cJSON_ArrayForEach(one, texts) {
        if (!strcmp(one->valuestring, text))
            return 1;
    }
    return 0;
}

/* One connection over a list: these entries fail when their turn comes, this one stands. */
static void connection(byway_engine *engine, const char *const *list, size_t n, const cJSON *failing, const char *standing)
{
    byway_proxy_selector *chooser = selector_of(engine, list, n);
    byway_dns_callbacks set = BYWAY_DNS_CALLBACKS_INIT;
    byway_address_options options = BYWAY_ADDRESS_OPTIONS_INIT;
    byway_address *address = NULL;
    byway_selector *selector = NULL;
    byway_selection *selection = NULL;
    const byway_route *route;
    int stands = 0;
    set.lookup = any_name;
    (void)byway_dns_new(engine, &set, &options.dns, NULL);
    options.host = str_of("target.test");
    options.port = 80;
    options.proxy_selector = chooser;
    (void)byway_address_new(engine, &options, &address, NULL);
    (void)byway_selector_new(engine, address, NULL, &selector, NULL);
    while (!stands && byway_selector_next(selector, 1000, &selection, NULL) == BYWAY_OK) {
        while (!stands && byway_selection_next(selection, &route, NULL) == BYWAY_OK) {
            static const char *const words[] = { "direct", "http", "https", "socks4", "socks4a", "socks5", "socks5h" };
            byway_proxy *proxy = NULL;
            byway_str host = { "", 0 };
            const char *shown;
            int32_t kind;
            (void)byway_route_proxy(route, &proxy, NULL);
            kind = byway_proxy_kind(proxy);
            if (proxy)
                (void)byway_proxy_host(proxy, &host);
            shown = entry_of(kind < 0 || kind > 6 ? "?" : words[kind], host.data, proxy ? byway_proxy_port(proxy) : 0);
            if (is_in(failing, shown))
                (void)byway_engine_connect_failed(engine, route, BYWAY_FAILURE_REFUSED, BYWAY_PHASE_TCP, 111, NULL);
            else if (standing && !strcmp(shown, standing)) {
                (void)byway_engine_connected(engine, route);
                stands = 1;
            }
            byway_proxy_release(proxy);
        }
        byway_selection_free(selection);
    }
    byway_selector_free(selector);
    byway_address_release(address);
    byway_dns_release(options.dns);
    byway_proxy_selector_release(chooser);
}

/* Chromium's step "the first entry failed, go on behind it": it and those named beside it, then the first one left. */
static void fall_back(byway_engine *engine, const char *const *list, size_t n, const cJSON *also)
{
    cJSON *failing = also ? cJSON_Duplicate(also, 1) : cJSON_CreateArray();
    const char *standing = NULL;
    size_t i;
    cJSON_AddItemToArray(failing, cJSON_CreateString(list[0]));
    for (i = n; i-- > 0;)
        if (!is_in(failing, list[i]))
            standing = list[i];
    connection(engine, list, n, failing, standing);
    cJSON_Delete(failing);
}

static cJSON *sorted(const cJSON *texts)
{
    cJSON *out = cJSON_CreateArray();
    const cJSON *one;
    cJSON_ArrayForEach(one, texts) {
        int at = 0;
        while (at < cJSON_GetArraySize(out) && strcmp(cJSON_GetArrayItem(out, at)->valuestring, one->valuestring) < 0)
            at++;
        cJSON_InsertItemInArray(out, at, cJSON_CreateString(one->valuestring));
    }
    return out;
}

static enum outcome checked(byway_engine *engine, const char *const *list, size_t n, const cJSON *expect)
{
    byway_proxy_selector *chooser = selector_of(engine, list, n);
    byway_status status;
    byway_text *text = NULL;
    byway_str json;
    cJSON *got = cJSON_CreateArray(), *marked = cJSON_CreateArray(), *bad, *entries;
    const cJSON *one;
    enum outcome outcome = PASS;
    entries = proxies_of(engine, chooser, "http://target.test/", NULL, &status, NULL, NULL);
    cJSON_ArrayForEach(one, entries) {
        cJSON_AddItemToArray(got, cJSON_CreateString(entry_of(text_of(one, "type", ""), text_of(one, "host", ""),
                                                              number_of(one, "port", 0))));
    }
    cJSON_Delete(entries);
    byway_proxy_selector_release(chooser);
    (void)byway_engine_bad_proxies(engine, &text, NULL);
    byway_text_str(text, &json);
    bad = cJSON_Parse(json.data);
    byway_text_free(text);
    cJSON_ArrayForEach(one, bad) {
        cJSON_AddItemToArray(marked, cJSON_CreateString(entry_of(text_of(one, "kind", ""), text_of(one, "host", ""),
                                                                 number_of(one, "port", 0))));
    }
    if (get(expect, "order"))
        outcome = same_json(got, get(expect, "order"), "order");
    else
        cJSON_Delete(got);
    if (outcome == PASS && get(expect, "marked")) {
        cJSON *want = sorted(get(expect, "marked"));
        outcome = same_json(sorted(marked), want, "marked");
        cJSON_Delete(want);
    }
    if (outcome == PASS && get(expect, "delay_s")
        && number_of(cJSON_GetArrayItem(bad, 0), "remaining_ms", 0) != number_of(expect, "delay_s", 0) * 1000)
        outcome = fails("delay");
    cJSON_Delete(marked);
    cJSON_Delete(bad);
    return outcome;
}

static enum outcome retry(const cJSON *test)
{
    const cJSON *input = get(test, "input"), *one, *never = get(input, "bad_never_while_bad"), *fallback = get(input, "fallback");
    const char *list[LONGEST], *standing = NULL, *pair[2];
    const double at = number_of(input, "at_s", 0);
    byway_engine *engine;
    cJSON *failing;
    enum outcome outcome;
    size_t n = 0;
    if (get(input, "fallbacks"))
        return skips("marks of different length in one engine");
    cJSON_ArrayForEach(one, get(input, "list")) {
        /* byway has no "never while bad" flag: a list without such an entry is what the flag asks for. */
        if (n < LONGEST && !is_in(never, one->valuestring))
            list[n++] = one->valuestring;
    }
    /* Nobody tries what stands behind the entry that works. */
    if (fallback && n > 2 && is_in(get(fallback, "also_bad"), list[n - 1]) && strcmp(list[0], "direct"))
        return skips("an entry behind the one that works fails");
    engine = engine_marking(at, fallback ? (int64_t)(number_of(fallback, "delay_s", 0) * 1000) : -1);
    cJSON_ArrayForEach(one, get(input, "bad")) {
        failing = cJSON_CreateArray();
        cJSON_AddItemToArray(failing, cJSON_CreateString(one->valuestring));
        pair[0] = one->valuestring;
        pair[1] = "http works.test:1";
        connection(engine, pair, 2, failing, pair[1]);
        cJSON_Delete(failing);
    }
    if (fallback)
        fall_back(engine, list, n, get(fallback, "also_bad"));
    failing = cJSON_CreateArray();
    cJSON_ArrayForEach(one, get(input, "events")) {
        if (!strncmp(one->valuestring, "fail ", 5))
            cJSON_AddItemToArray(failing, cJSON_CreateString(one->valuestring + 5));
        if (!strncmp(one->valuestring, "ok ", 3))
            standing = one->valuestring + 3;
    }
    if (get(input, "events"))
        connection(engine, list, n, failing, standing);
    cJSON_Delete(failing);
    if (is_in(get(input, "events"), "network_changed"))
        (void)byway_engine_network_changed(engine, NULL);
    set_clock(number_of(input, "ask_at_s", at));
    outcome = checked(engine, list, n, get(test, "expect"));
    end_engine();
    return outcome;
}

const struct kind retry_kinds[] = {
    { "proxy", "retry", retry },
    { NULL, NULL, NULL },
};
