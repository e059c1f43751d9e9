/* okhttp.jsonl route_selector and route_database: scripts of selections, reports and questions against one engine. */
#include "okhttp.h"

enum { MOST = 64 };

static struct world {
    byway_engine *engine;
    byway_dns *dns;
    byway_proxy_selector *chooser;
    byway_listener *listener;
    byway_address *address;
    byway_selector *selector;
    byway_selection *selection;
    cJSON *names;         /* host -> answers */
    const cJSON *proxies; /* what the proxy selector says */
    cJSON *uris, *asked, *events;
    int select_count;
    struct {
        char name[32];
        byway_route *route;
    } saved[MOST];
    size_t saved_count;
} world;

static size_t unhex(const char *text, unsigned char *bytes, size_t room)
{
    size_t n = 0;
    unsigned value;
    while (n < room && sscanf(text + 2 * n, "%2x", &value) == 1)
        bytes[n++] = (unsigned char)value;
    return n;
}

static cJSON *proxy_json(const byway_proxy *proxy)
{
    cJSON *shown = cJSON_CreateObject();
    const int32_t kind = byway_proxy_kind(proxy);
    byway_str host;
    byway_ip ip;
    if (!proxy) {
        cJSON_AddStringToObject(shown, "type", "DIRECT");
        return shown;
    }
    cJSON_AddStringToObject(shown, "type", kind == BYWAY_PROXY_HTTP || kind == BYWAY_PROXY_HTTPS ? "HTTP" : "SOCKS");
    (void)byway_proxy_host(proxy, &host);
    cJSON_AddStringToObject(shown, "host", host.data);
    cJSON_AddNumberToObject(shown, "port", byway_proxy_port(proxy));
    /* A host that is a literal is its own address. */
    if (byway_proxy_ip(proxy, &ip) == BYWAY_OK && ip.family && strcmp(ip_text(&ip), host.data))
        cJSON_AddStringToObject(shown, "ip", ip_text(&ip));
    return shown;
}

static cJSON *route_json(const byway_route *route)
{
    cJSON *shown = cJSON_CreateObject(), *socket = cJSON_CreateObject();
    byway_proxy *proxy = NULL;
    byway_ip ip = { { 0 }, 0, 0, { 0 } };
    uint16_t port = 0;
    byway_str host, ech = { NULL, 0 };
    (void)byway_route_proxy(route, &proxy, NULL);
    cJSON_AddItemToObject(shown, "proxy", proxy_json(proxy));
    byway_proxy_release(proxy);
    (void)byway_route_socket_address(route, &ip, &port);
    if (ip.family) {
        cJSON_AddStringToObject(socket, "ip", ip_text(&ip));
    } else {
        (void)byway_address_host(world.address, &host);
        cJSON_AddStringToObject(socket, "unresolved_host", host.data);
    }
    cJSON_AddNumberToObject(socket, "port", port);
    cJSON_AddItemToObject(shown, "socket", socket);
    cJSON_AddBoolToObject(shown, "requires_tunnel", byway_route_requires_tunnel(route));
    if (byway_route_service(route, &ech, NULL) == BYWAY_OK && ech.len) {
        char *all = calloc(ech.len * 2 + 1, 1);
        size_t i;
        for (i = 0; i < ech.len; i++)
            snprintf(all + 2 * i, 3, "%02x", (unsigned char)ech.data[i]);
        cJSON_AddStringToObject(shown, "ech_hex", all);
        free(all);
    }
    return shown;
}

static byway_status lookup(void *user_data, byway_dns_request *request, const char *host, size_t len,
                           const byway_call *call)
{
    const cJSON *item, *answers = cJSON_GetObjectItemCaseSensitive(world.names, host);
    (void)user_data;
    (void)len;
    (void)call;
    cJSON_AddItemToArray(world.asked, cJSON_CreateString(host));
    if (!answers || cJSON_GetArraySize(answers) == 0)
        return byway_dns_request_finish(request);
    cJSON_ArrayForEach(item, answers)
    {
        const char *text = cJSON_IsString(item) ? item->valuestring : word(item, "ip");
        byway_status status;
        if (*text) {
            byway_ip ip = ip_of(text);
            status = byway_dns_request_add(request, &ip, 1);
        } else {
            byway_service_options service = BYWAY_SERVICE_OPTIONS_INIT;
            unsigned char ech[512];
            byway_ip hints[8];
            const cJSON *hint;
            service.target.data = word(item, "target");
            service.target.len = BYWAY_NUL;
            service.port = (uint16_t)number_of(item, "port", 0);
            service.ech.data = (const char *)ech;
            service.ech.len = unhex(word(item, "ech_hex"), ech, sizeof ech);
            service.hints = hints;
            cJSON_ArrayForEach(hint, cJSON_GetObjectItem(item, "hints"))
                hints[service.hints_len++] = ip_of(cJSON_GetStringValue(hint));
            status = byway_dns_request_add_service(request, &service, NULL);
        }
        if (status != BYWAY_OK)
            return status;
    }
    return byway_dns_request_finish(request);
}

static byway_status choose(void *user_data, byway_proxy_request *request, const char *uri, size_t len,
                           const byway_call *call)
{
    const cJSON *item;
    (void)user_data;
    (void)len;
    (void)call;
    cJSON_AddItemToArray(world.uris, cJSON_CreateString(uri));
    world.select_count++;
    if (cJSON_IsObject(world.proxies)) {
        const int argument = !strcmp(word(world.proxies, "error"), "illegal_argument");
        return byway_proxy_request_fail(request, argument ? BYWAY_E_ARGUMENT : BYWAY_E_HOST, 0,
                                        word(world.proxies, "message"), BYWAY_NUL);
    }
    cJSON_ArrayForEach(item, world.proxies)
    {
        const char *type = word(item, "type");
        byway_status status;
        if (!strcmp(type, "DIRECT")) {
            status = byway_proxy_request_add_direct(request);
        } else if (*type && (!member(item, "ip") || number_of(item, "port", 0) < 1)) {
            /* No handle has port 0; an entry may, and is then one failed entry. */
            status = byway_proxy_request_add(request, strcmp(type, "SOCKS") ? BYWAY_PROXY_HTTP : BYWAY_PROXY_SOCKS5H,
                                             word(item, member(item, "ip") ? "ip" : "host"), BYWAY_NUL,
                                             (int32_t)number_of(item, "port", 0), NULL);
        } else {
            byway_proxy *proxy = okhttp_proxy(item);
            status = byway_proxy_request_add_proxy(request, proxy);
            byway_proxy_release(proxy);
        }
        if (status != BYWAY_OK)
            return status;
    }
    return byway_proxy_request_finish(request);
}

static void on_event(void *user_data, const byway_event *event)
{
    static const char *const names[] = { "proxy_select_start", "proxy_select_end", "dns_start", "dns_end" };
    cJSON *shown = cJSON_CreateObject(), *list;
    size_t i;
    (void)user_data;
    cJSON_AddStringToObject(shown, "event", names[event->kind]);
    cJSON_AddStringToObject(shown, event->kind <= BYWAY_EVENT_PROXY_SELECT_END ? "url" : "host", event->subject.data);
    if (event->kind == BYWAY_EVENT_PROXY_SELECT_END) {
        list = cJSON_AddArrayToObject(shown, "proxies");
        for (i = 0; i < event->proxies_len; i++)
            cJSON_AddItemToArray(list, proxy_json(event->proxies[i]));
    }
    if (event->kind == BYWAY_EVENT_DNS_END) {
        list = cJSON_AddArrayToObject(shown, "ips");
        for (i = 0; i < event->ips_len; i++)
            cJSON_AddItemToArray(list, cJSON_CreateString(ip_text(&event->ips[i])));
    }
    cJSON_AddItemToArray(world.events, shown);
}

/* `{"error": ..., "message": ...}`; frees the error. */
static cJSON *error_json(byway_status status, byway_error *err)
{
    cJSON *shown = cJSON_CreateObject();
    byway_str message = { "", 0 };
    const char *kind = status == BYWAY_E_UNKNOWN_HOST || status == BYWAY_E_EMPTY_ANSWER ? "unknown_host"
                       : status == BYWAY_E_INVALID_PORT                              ? "socket"
                       : status == BYWAY_E_ARGUMENT                                  ? "illegal_argument"
                       : status == BYWAY_E_NULL                                      ? "null_pointer"
                       : status == BYWAY_E_HOST                                      ? "runtime"
                       : status == BYWAY_DONE ? "no_such_element"
                                              : byway_status_name(status);
    byway_error_message(err, &message);
    cJSON_AddStringToObject(shown, "error", kind);
    cJSON_AddStringToObject(shown, "message", message.data);
    byway_error_free(err);
    return shown;
}

static byway_route *saved(const char *name)
{
    size_t i;
    for (i = 0; i < world.saved_count; i++)
        if (!strcmp(world.saved[i].name, name))
            return world.saved[i].route;
    return NULL;
}

static void add_names(const cJSON *table)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, table)
    {
        cJSON_DeleteItemFromObjectCaseSensitive(world.names, item->string);
        cJSON_AddItemToObject(world.names, item->string, cJSON_Duplicate(item, 1));
    }
}

static cJSON *new_selector(const cJSON *test, const cJSON *step)
{
    byway_error *err = NULL;
    byway_status status;
    byway_selection_free(world.selection);
    world.selection = NULL;
    byway_selector_free(world.selector);
    world.selector = NULL;
    if (cJSON_HasObjectItem(step, "selector"))
        world.proxies = cJSON_GetObjectItem(step, "selector");
    if (!world.address || cJSON_HasObjectItem(step, "address")) {
        byway_address_release(world.address);
        world.address = okhttp_address(world.engine,
                                       cJSON_GetObjectItem(cJSON_HasObjectItem(step, "address") ? step : test, "address"),
                                       member(test, "explicit_proxy"), world.dns, world.chooser);
    }
    status = byway_selector_new(world.engine, world.address, NULL, &world.selector, &err);
    return status == BYWAY_OK ? cJSON_CreateObject() : error_json(status, err);
}

static cJSON *next_selection(void)
{
    byway_error *err = NULL;
    byway_status status;
    cJSON *shown, *routes;
    size_t i;
    byway_selection_free(world.selection);
    world.selection = NULL;
    status = byway_selector_next(world.selector, 0, &world.selection, &err);
    if (status != BYWAY_OK)
        return error_json(status, err);
    shown = cJSON_CreateObject();
    routes = cJSON_AddArrayToObject(shown, "routes");
    for (i = 0; i < byway_selection_len(world.selection); i++)
        cJSON_AddItemToArray(routes, route_json(byway_selection_at(world.selection, i)));
    return shown;
}

static cJSON *next_route(const cJSON *step)
{
    const byway_route *route = NULL;
    byway_error *err = NULL;
    const char *name = word(step, "save_as");
    cJSON *shown;
    byway_status status = byway_selection_next(world.selection, &route, &err);
    if (status != BYWAY_OK)
        return error_json(status, err);
    if (*name && world.saved_count < MOST) {
        snprintf(world.saved[world.saved_count].name, sizeof world.saved[0].name, "%s", name);
        world.saved[world.saved_count++].route = byway_route_retain(route);
    }
    shown = cJSON_CreateObject();
    cJSON_AddItemToObject(shown, "route", route_json(route));
    return shown;
}

/* The database's records name hops; the saved routes they belong to are recognised by them. */
static cJSON *failed_routes(const cJSON *step)
{
    byway_failed_route records[256];
    size_t total = 0, i, k;
    cJSON *shown = cJSON_CreateObject(), *routes;
    (void)step;
    (void)byway_engine_database_snapshot(world.engine, records, sizeof records[0], 256, &total);
    cJSON_AddNumberToObject(shown, "count", (double)total);
    routes = cJSON_AddArrayToObject(shown, "routes");
    for (i = 0; i < total && i < 256; i++)
        for (k = 0; k < world.saved_count; k++) {
            byway_ip hop = { { 0 }, 0, 0, { 0 } };
            uint16_t port = 0;
            (void)byway_route_hop(world.saved[k].route, &hop, &port);
            if (!memcmp(&hop, &records[i].hop_ip, sizeof hop) && port == records[i].hop_port
                && byway_route_proxy_kind(world.saved[k].route) == records[i].proxy_kind) {
                cJSON_AddItemToArray(routes, cJSON_CreateString(world.saved[k].name));
                break;
            }
        }
    return shown;
}

static cJSON *value(int truth)
{
    cJSON *shown = cJSON_CreateObject();
    cJSON_AddBoolToObject(shown, "value", truth);
    return shown;
}

static cJSON *perform(const cJSON *test, const cJSON *step)
{
    const char *op = word(step, "op"), *route = word(step, "route");
    byway_status status = BYWAY_OK;
    int32_t out = 0;
    if (!strcmp(op, "new_selector"))
        return new_selector(test, step);
    if (!strcmp(op, "has_next_selection"))
        return value(byway_selector_may_have_next(world.selector));
    if (!strcmp(op, "next_selection"))
        return next_selection();
    if (!strcmp(op, "selection_has_next"))
        return value(byway_selection_more(world.selection));
    if (!strcmp(op, "next_route"))
        return next_route(step);
    if (!strcmp(op, "failed_routes"))
        return failed_routes(step);
    if (!strcmp(op, "connect_failed"))
        status = byway_engine_connect_failed(world.engine, saved(route), BYWAY_FAILURE_IO, BYWAY_PHASE_EXCHANGE, 0, NULL);
    else if (!strcmp(op, "connected"))
        status = byway_engine_connected(world.engine, saved(route));
    else if (!strcmp(op, "should_postpone")) {
        status = byway_engine_should_postpone(world.engine, saved(route), &out);
        if (status == BYWAY_OK)
            return value(out);
    } else if (!strcmp(op, "set_dns"))
        add_names(cJSON_GetObjectItem(step, "dns"));
    else if (!strcmp(op, "clear_dns")) {
        cJSON_Delete(world.names);
        world.names = cJSON_CreateObject();
    } else if (!strcmp(op, "mutate_selector_list"))
        world.proxies = cJSON_GetObjectItem(step, "proxies");
    else if (!strcmp(op, "selector_request_count")) {
        cJSON *shown = cJSON_CreateObject();
        cJSON_AddNumberToObject(shown, "count", world.select_count);
        return shown;
    } else
        status = BYWAY_E_UNSUPPORTED;
    return status == BYWAY_OK ? cJSON_CreateObject() : error_json(status, NULL);
}

static enum outcome check(int number, const cJSON *step, const cJSON *got)
{
    const cJSON *want, *expect = member(step, "expect");
    char what[128];
    cJSON_ArrayForEach(want, expect)
    {
        const char *key = want->string;
        const cJSON *have;
        snprintf(what, sizeof what, "step %d %s: %s", number, word(step, "op"), key);
        if (!strcmp(key, "selector_uris"))
            have = world.uris;
        else if (!strcmp(key, "dns_requests"))
            have = world.asked;
        else if (!strcmp(key, "events"))
            have = world.events;
        else if (!strcmp(key, "proxies")) {
            const cJSON *event;
            have = NULL;
            cJSON_ArrayForEach(event, world.events)
                if (!have)
                    have = cJSON_GetObjectItem(event, "proxies");
        } else if (!strcmp(key, "message_contains")) {
            if (!strstr(word(got, "message"), cJSON_GetStringValue(want)))
                return fails("%s: got %s", what, word(got, "message"));
            continue;
        } else
            have = cJSON_GetObjectItem(got, key);
        if (same_json(have ? cJSON_Duplicate(have, 1) : cJSON_CreateNull(), want, what) == FAIL)
            return FAIL;
    }
    if (cJSON_HasObjectItem(got, "error") && !member(expect, "error"))
        return fails("step %d %s: %s %s", number, word(step, "op"), word(got, "error"), word(got, "message"));
    return PASS;
}

static enum outcome run(const cJSON *test)
{
    byway_dns_callbacks dns_set = BYWAY_DNS_CALLBACKS_INIT;
    byway_proxy_selector_callbacks chooser_set = BYWAY_PROXY_SELECTOR_CALLBACKS_INIT;
    byway_listener_callbacks listener_set = BYWAY_LISTENER_CALLBACKS_INIT;
    const cJSON *step;
    enum outcome outcome = PASS;
    int number = 0;
    size_t i;
    memset(&world, 0, sizeof world);
    world.engine = engine_with(okhttp_line(test), truth_of(test, "fast_fallback", 1) ? 0 : BYWAY_ROUTING_NO_FAST_FALLBACK);
    dns_set.lookup = lookup;
    chooser_set.select = choose;
    listener_set.on_event = on_event;
    listener_set.mask = 1u << BYWAY_EVENT_PROXY_SELECT_START | 1u << BYWAY_EVENT_PROXY_SELECT_END
                        | 1u << BYWAY_EVENT_DNS_START | 1u << BYWAY_EVENT_DNS_END;
    (void)byway_dns_new(world.engine, &dns_set, &world.dns, NULL);
    (void)byway_proxy_selector_new(world.engine, &chooser_set, &world.chooser, NULL);
    (void)byway_engine_add_listener(world.engine, &listener_set, &world.listener, NULL);
    world.names = cJSON_CreateObject();
    world.proxies = cJSON_GetObjectItem(test, "selector");
    add_names(cJSON_GetObjectItem(test, "dns"));
    cJSON_ArrayForEach(step, cJSON_GetObjectItem(test, "steps"))
    {
        cJSON *got;
        world.uris = cJSON_CreateArray();
        world.asked = cJSON_CreateArray();
        world.events = cJSON_CreateArray();
        got = perform(test, step);
        outcome = check(number++, step, got);
        cJSON_Delete(got);
        cJSON_Delete(world.uris);
        cJSON_Delete(world.asked);
        cJSON_Delete(world.events);
        if (outcome == FAIL)
            break;
    }
    world.uris = cJSON_CreateArray();
    world.asked = cJSON_CreateArray();
    world.events = cJSON_CreateArray();
    for (i = 0; i < world.saved_count; i++)
        byway_route_release(world.saved[i].route);
    byway_selection_free(world.selection);
    byway_selector_free(world.selector);
    byway_address_release(world.address);
    byway_listener_remove(world.listener);
    byway_listener_release(world.listener);
    byway_proxy_selector_release(world.chooser);
    byway_dns_release(world.dns);
    (void)byway_engine_shutdown(world.engine, 0, NULL);
    byway_engine_release(world.engine);
    cJSON_Delete(world.names);
    cJSON_Delete(world.uris);
    cJSON_Delete(world.asked);
    cJSON_Delete(world.events);
    return outcome;
}

const struct kind okhttp_selector_kinds[] = {
    { "okhttp", "route_selector", run },
    { "okhttp", "route_database", run },
    { NULL, NULL, NULL },
};
