/* byway's own rules of bugs.jsonl: proxies that cannot be, and what one selector gives. */
#include "okhttp.h"

enum { MOST = 32 };

static const char *error_name(byway_status status)
{
    switch (status) {
    case BYWAY_E_INVALID_PORT:
        return "port_out_of_range";
    case BYWAY_E_UNKNOWN_HOST:
        return "unknown_host";
    case BYWAY_E_PROXY_SELECTOR:
        return "selector_failed";
    case BYWAY_E_FILTERED:
        return "filtered";
    case BYWAY_E_NULL:
    case BYWAY_E_ARGUMENT:
        return "invalid_argument";
    default:
        return byway_status_name(status);
    }
}

static cJSON *error_object(const char *name)
{
    cJSON *shown = cJSON_CreateObject();
    cJSON_AddStringToObject(shown, "error", name);
    return shown;
}

static enum outcome make_proxy(const cJSON *test)
{
    const cJSON *input = get(test, "input");
    const char *type = word(input, "type");
    const int socks = !strcmp(type, "SOCKS");
    byway_proxy *proxy = NULL;
    byway_text *text = NULL;
    byway_status status;
    cJSON *got;
    if (!socks && strcmp(type, "HTTP"))
        return fails("type %s", type);
    status = byway_proxy_new(socks ? BYWAY_PROXY_SOCKS5H : BYWAY_PROXY_HTTP, word(input, "host"), BYWAY_NUL,
                             (int32_t)number_of(input, "port", 0), &proxy, NULL);
    if (status == BYWAY_OK) {
        got = cJSON_CreateObject();
        if (byway_proxy_text(proxy, &text, NULL) == BYWAY_OK)
            cJSON_AddItemToObject(got, "text", take_text(text));
    } else
        got = error_object(error_name(status));
    byway_proxy_release(proxy);
    return same_json(got, get(test, "expect"), "proxy");
}

/* One answer of a selector: a Selection, or an error. */
struct given {
    byway_selection *selection;
    const char *error;
    char about[128];
};

struct round {
    struct given given[MOST];
    size_t count;
};

static struct script {
    byway_engine *engine;
    byway_dns *dns;
    byway_proxy_selector *chooser;
    byway_listener *listener;
    byway_address *address;
    const cJSON *input;
    int own_name; /* the proxy's own name is answered, whatever the case says */
    uint64_t now_ns;
    cJSON *next;  /* name -> how many answers of its sequence were given */
    cJSON *asked; /* names */
    cJSON *reported;
} script;

static uint64_t now_ns(void *source_data)
{
    (void)source_data;
    return script.now_ns;
}

static byway_status lookup(void *user_data, byway_dns_request *request, const char *host, size_t len,
                           const byway_call *call)
{
    const cJSON *answers = get(get(script.input, "dns"), host), *sequence = get(get(script.input, "dns_sequence"), host);
    cJSON *own = NULL;
    byway_status status;
    (void)user_data;
    (void)len;
    (void)call;
    cJSON_AddItemToArray(script.asked, cJSON_CreateString(host));
    if (script.own_name && !strcmp(host, "p1")) {
        answers = own = cJSON_CreateArray();
        cJSON_AddItemToArray(own, cJSON_CreateString("192.0.2.77"));
    } else if (sequence) {
        /* The last answer stays. */
        const int at = (int)number_of(script.next, host, 0), last = cJSON_GetArraySize(sequence) - 1;
        answers = cJSON_GetArrayItem(sequence, at < last ? at : last);
        cJSON_DeleteItemFromObjectCaseSensitive(script.next, host);
        cJSON_AddNumberToObject(script.next, host, at + 1);
    }
    status = answer_ips(request, answers);
    cJSON_Delete(own);
    return status;
}

/* `HTTP p1:3128`, as these cases write a proxy. */
static byway_status list_one(byway_proxy_request *request, const char *text)
{
    const char *space = strchr(text, ' '), *colon = strrchr(text, ':');
    int32_t kind;
    if (!space)
        return byway_proxy_request_add_direct(request);
    if (!strncmp(text, "SOCKS ", 6))
        kind = BYWAY_PROXY_SOCKS5H;
    else if (!strncmp(text, "HTTP ", 5))
        kind = BYWAY_PROXY_HTTP;
    else
        return BYWAY_E_UNSUPPORTED;
    if (!colon || colon < space)
        return BYWAY_E_SYNTAX;
    return byway_proxy_request_add(request, kind, space + 1, (size_t)(colon - space - 1),
                                   (int32_t)strtol(colon + 1, NULL, 10), NULL);
}

static byway_status choose(void *user_data, byway_proxy_request *request, const char *uri, size_t len,
                           const byway_call *call)
{
    const cJSON *item, *list = member(script.input, "proxies");
    (void)user_data;
    (void)uri;
    (void)len;
    (void)call;
    if (get(script.input, "selector_error"))
        return byway_proxy_request_fail(request, BYWAY_E_ARGUMENT, 0, "scripted", BYWAY_NUL);
    if (!list)
        return list_one(request, "DIRECT");
    cJSON_ArrayForEach(item, list)
    {
        const char *text = cJSON_GetStringValue(item);
        const byway_status status = text ? list_one(request, text) : byway_proxy_request_add_proxy(request, NULL);
        if (status != BYWAY_OK)
            return status;
    }
    return byway_proxy_request_finish(request);
}

static void on_event(void *user_data, const byway_event *event)
{
    (void)user_data;
    if (event->error)
        cJSON_AddItemToArray(script.reported, error_object(error_name(byway_error_code(event->error))));
}

static byway_address *address_of_url(const char *url)
{
    char scheme[16] = "", host[256] = "";
    int port = 0;
    cJSON *parts;
    byway_address *address;
    if (sscanf(url, "%15[a-z]://%255[^:/]:%d", scheme, host, &port) < 2)
        return NULL;
    if (port == 0)
        port = strcmp(scheme, "https") ? 80 : 443;
    parts = cJSON_CreateObject();
    cJSON_AddStringToObject(parts, "scheme", scheme);
    cJSON_AddStringToObject(parts, "host", host);
    cJSON_AddNumberToObject(parts, "port", port);
    address = okhttp_address(script.engine, parts, NULL, script.dns, script.chooser);
    cJSON_Delete(parts);
    return address;
}

/* An engine as the case wants it; `open` has a proxy selector that fails or names nobody mean DIRECT. */
static void begin(const cJSON *test, int open)
{
    byway_engine_options options = BYWAY_ENGINE_OPTIONS_INIT;
    byway_dns_callbacks dns_set = BYWAY_DNS_CALLBACKS_INIT;
    byway_proxy_selector_callbacks chooser_set = BYWAY_PROXY_SELECTOR_CALLBACKS_INIT;
    byway_listener_callbacks listener_set = BYWAY_LISTENER_CALLBACKS_INIT;
    memset(&script, 0, sizeof script);
    script.input = get(test, "input");
    script.own_name = cJSON_IsArray(get(get(test, "expect"), "dns_calls"));
    script.next = cJSON_CreateObject();
    script.asked = cJSON_CreateArray();
    script.reported = cJSON_CreateArray();
    options.monotonic_ns = now_ns;
    options.database_capacity = (uint32_t)number_of(script.input, "cap", 4096);
    options.postpone_for_ms = (int64_t)(number_of(script.input, "ttl_s", 300) * 1000);
    if (!truth_of(script.input, "fast_fallback", 1))
        options.routing_flags |= BYWAY_ROUTING_NO_FAST_FALLBACK;
    if (open) {
        options.routing_flags |= BYWAY_ROUTING_EMPTY_IS_DIRECT;
        options.on_proxy_selector_error = BYWAY_ON_PROXY_SELECTOR_ERROR_DIRECT;
    }
    dns_set.lookup = lookup;
    chooser_set.select = choose;
    listener_set.on_event = on_event;
    listener_set.mask = 1u << BYWAY_EVENT_CONNECT_FAILED;
    if (byway_engine_new(&options, &script.engine, NULL) != BYWAY_OK)
        abort();
    (void)byway_dns_new(script.engine, &dns_set, &script.dns, NULL);
    (void)byway_proxy_selector_new(script.engine, &chooser_set, &script.chooser, NULL);
    (void)byway_engine_add_listener(script.engine, &listener_set, &script.listener, NULL);
    script.address = address_of_url(*word(script.input, "url") ? word(script.input, "url") : "http://h/");
}

static void end(void)
{
    byway_address_release(script.address);
    byway_listener_remove(script.listener);
    byway_listener_release(script.listener);
    byway_proxy_selector_release(script.chooser);
    byway_dns_release(script.dns);
    (void)byway_engine_shutdown(script.engine, 0, NULL);
    byway_engine_release(script.engine);
    cJSON_Delete(script.next);
    cJSON_Delete(script.asked);
    cJSON_Delete(script.reported);
}

/* Everything one selector gives: Selections and errors, up to the end. */
static enum outcome select_all(struct round *round)
{
    byway_selector *selector = NULL;
    byway_status status = byway_selector_new(script.engine, script.address, NULL, &selector, NULL);
    round->count = 0;
    if (status != BYWAY_OK)
        return fails("selector: %s", byway_status_name(status));
    for (;;) {
        struct given *given = &round->given[round->count];
        byway_error *err = NULL;
        byway_str about = { "", 0 };
        memset(given, 0, sizeof *given);
        status = byway_selector_next(selector, 0, &given->selection, &err);
        if (status == BYWAY_DONE)
            break;
        if (status != BYWAY_OK) {
            given->error = error_name(status);
            byway_error_subject(err, &about);
            snprintf(given->about, sizeof given->about, "%s", about.data ? about.data : "");
        }
        byway_error_free(err);
        if (++round->count == MOST) {
            byway_selector_free(selector);
            return fails("a selector without end");
        }
    }
    byway_selector_free(selector);
    return PASS;
}

static void forget(struct round *round)
{
    while (round->count > 0)
        byway_selection_free(round->given[--round->count].selection);
}

static void with_port(char *text, size_t size, const byway_ip *ip, unsigned port)
{
    snprintf(text, size, ip->family == 6 ? "[%s]:%u" : "%s:%u", ip_text(ip), port);
}

/* A route in the notation a case uses: as much as its expectation says. */
static cJSON *written(const byway_route *route, const char *like)
{
    char text[640], proxy_text[320], place[64];
    byway_proxy *proxy = NULL;
    byway_ip hop = { { 0 }, 0, 0, { 0 } }, target = { { 0 }, 0, 0, { 0 } };
    uint16_t hop_port = 0, target_port = 0;
    byway_str name = { "", 0 }, host = { "", 0 };
    (void)byway_route_hop(route, &hop, &hop_port);
    (void)byway_route_target(route, &name, &target, &target_port);
    (void)byway_route_proxy(route, &proxy, NULL);
    if (hop.family == 0) {
        byway_proxy_release(proxy);
        return cJSON_CreateString("unresolved hop");
    }
    if (proxy) {
        const int32_t kind = byway_proxy_kind(proxy);
        (void)byway_proxy_host(proxy, &host);
        snprintf(proxy_text, sizeof proxy_text, "%s %s:%d",
                 kind == BYWAY_PROXY_HTTP || kind == BYWAY_PROXY_HTTPS ? "HTTP" : "SOCKS", host.data,
                 (int)byway_proxy_port(proxy));
        byway_proxy_release(proxy);
        if (!strstr(like, "->")) {
            snprintf(text, sizeof text, "%s@%s", proxy_text, ip_text(&hop));
        } else if (target.family == 0) {
            snprintf(text, sizeof text, "%s -> %s:%u unresolved", proxy_text, name.data, (unsigned)target_port);
        } else {
            with_port(place, sizeof place, &target, target_port);
            snprintf(text, sizeof text, "%s -> %s", proxy_text, place);
        }
    } else if (!strncmp(like, "DIRECT@", 7)) {
        with_port(place, sizeof place, &hop, hop_port);
        snprintf(text, sizeof text, "DIRECT@%s", place);
    } else
        snprintf(text, sizeof text, "%s", ip_text(&hop));
    return cJSON_CreateString(text);
}

static cJSON *written_all(byway_selection *selection, const cJSON *like)
{
    cJSON *all = cJSON_CreateArray();
    size_t i;
    for (i = 0; i < byway_selection_len(selection); i++) {
        const char *notation = cJSON_GetStringValue(cJSON_GetArrayItem(like, (int)i));
        if (!notation)
            notation = cJSON_GetStringValue(cJSON_GetArrayItem(like, 0));
        cJSON_AddItemToArray(all, written(byway_selection_at(selection, i), notation ? notation : ""));
    }
    return all;
}

static cJSON *shown_given(const struct given *given, const cJSON *like)
{
    cJSON *shown;
    if (given->selection)
        return written_all(given->selection, like);
    shown = error_object(given->error);
    if (cJSON_IsObject(like) && get(like, "host"))
        cJSON_AddStringToObject(shown, "host", given->about);
    return shown;
}

/* byway goes on in the same call where an entry cannot serve, and reports it: the events take the place of the errors. */
static cJSON *read_next(const struct round *first, const cJSON *want)
{
    const int by_events = cJSON_GetArraySize(want) > 2 && cJSON_IsObject(cJSON_GetArrayItem(want, 0))
                          && get(cJSON_GetArrayItem(want, 0), "error");
    cJSON *all = by_events ? cJSON_Duplicate(script.reported, 1) : cJSON_CreateArray();
    size_t i;
    for (i = 0; i < first->count; i++) {
        if (by_events && first->given[i].error) {
            cJSON_Delete(all);
            return cJSON_CreateString(first->given[i].error);
        }
        cJSON_AddItemToArray(all, shown_given(&first->given[i], cJSON_GetArrayItem(want, cJSON_GetArraySize(all))));
    }
    cJSON_AddItemToArray(all, cJSON_CreateString("end"));
    return all;
}

static cJSON *read_one(const struct round *rounds, size_t count, const cJSON *want)
{
    const struct round *first = &rounds[0];
    const char *key = want->string;
    cJSON *all;
    size_t i;
    if (!strcmp(key, "next"))
        return read_next(first, want);
    if (!strcmp(key, "order"))
        return first->count > 0 ? shown_given(&first->given[0], want) : cJSON_CreateNull();
    if (!strcmp(key, "error"))
        return first->count > 0 && first->given[0].error ? cJSON_CreateString(first->given[0].error)
                                                         : cJSON_CreateNull();
    all = cJSON_CreateArray();
    if (!strcmp(key, "selections")) {
        for (i = 0; i < first->count; i++)
            cJSON_AddItemToArray(all, first->given[i].error ? error_object(first->given[i].error)
                                                            : shown_given(&first->given[i], cJSON_GetArrayItem(want, (int)i)));
    } else if (!strcmp(key, "first_routes")) {
        for (i = 0; i < count; i++) {
            byway_selection *selection = rounds[i].count > 0 ? rounds[i].given[0].selection : NULL;
            const char *like = cJSON_GetStringValue(cJSON_GetArrayItem(want, (int)i));
            cJSON_AddItemToArray(all, selection && byway_selection_len(selection) > 0
                                          ? written(byway_selection_at(selection, 0), like ? like : "")
                                          : cJSON_CreateNull());
        }
    } else if (!strcmp(key, "dns_calls")) {
        /* The origin's name must not be asked for; the proxy's own is another matter. */
        const cJSON *name;
        byway_str host = { "", 0 };
        (void)byway_address_host(script.address, &host);
        cJSON_ArrayForEach(name, script.asked)
            if (!strcmp(cJSON_GetStringValue(name), host.data))
                cJSON_AddItemToArray(all, cJSON_Duplicate(name, 1));
    } else {
        cJSON_Delete(all);
        return NULL;
    }
    return all;
}

static enum outcome fail_routes(void)
{
    const cJSON *item;
    enum outcome outcome = PASS;
    cJSON_ArrayForEach(item, get(script.input, "failed"))
    {
        const byway_ip hop = ip_of(cJSON_GetStringValue(item));
        byway_route *route = NULL;
        byway_status status = byway_route_new(script.address, NULL, &hop, (uint16_t)byway_address_port(script.address),
                                              &route, NULL);
        if (status == BYWAY_OK)
            status = byway_engine_connect_failed(script.engine, route, BYWAY_FAILURE_REFUSED, BYWAY_PHASE_TCP, 111, NULL);
        byway_route_release(route);
        if (status != BYWAY_OK)
            outcome = fails("failed %s: %s", item->valuestring, byway_status_name(status));
    }
    /* What was reported by the case itself is no word of the selector's. */
    cJSON_Delete(script.reported);
    script.reported = cJSON_CreateArray();
    script.now_ns = 1000000;
    return outcome;
}

/* Runs a case as it stands; where the answer is OkHttp's policy (no proxies or a failing selector mean DIRECT) the
 * default must fail closed, and the policy must give what the case says. */
static enum outcome route_selector(const cJSON *test)
{
    static struct round rounds[4];
    const cJSON *input = get(test, "input"), *proxies = get(input, "proxies"), *want;
    const cJSON *expect = get(test, "expect_byway") ? get(test, "expect_byway") : get(test, "expect");
    const size_t count = (size_t)number_of(input, "selections_count", 1);
    const int fails_closed = get(input, "selector_error") || (cJSON_IsArray(proxies) && !cJSON_GetArraySize(proxies));
    enum outcome outcome = PASS;
    size_t i, done = 0;
    if (count > sizeof rounds / sizeof rounds[0])
        return fails("%d selectors", (int)count);
    if (fails_closed) {
        begin(test, 0);
        outcome = select_all(&rounds[0]);
        if (outcome == PASS && (rounds[0].count != 1 || !rounds[0].given[0].error))
            outcome = fails("the default must fail closed");
        forget(&rounds[0]);
        end();
        if (outcome != PASS)
            return outcome;
    }
    begin(test, fails_closed);
    outcome = script.address ? fail_routes() : fails("no address");
    while (outcome == PASS && done < count)
        outcome = select_all(&rounds[done++]);
    for (want = expect ? expect->child : NULL; want && outcome == PASS; want = want->next) {
        cJSON *got = read_one(rounds, count, want);
        outcome = got ? same_json(got, want, want->string) : fails("no reading for %s", want->string);
    }
    for (i = 0; i < done; i++)
        forget(&rounds[i]);
    end();
    return outcome;
}

const struct kind net_kinds[] = {
    { "bugs", "make_proxy", make_proxy },
    { "bugs", "route_selector", route_selector },
    { NULL, NULL, NULL },
};
