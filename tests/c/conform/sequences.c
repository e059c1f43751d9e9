/* bugs.jsonl sequence, the first half: what an engine remembers of routes that failed, and who hears of it. */
#include "chains.h"
#include "okhttp.h"

static struct remembered {
    byway_engine *engine;
    byway_dns *dns;
    byway_proxy_selector *chooser;
    byway_address *address;
    const cJSON *proxies; /* `HTTP p1:3128` */
    cJSON *names, *heard, *got;
    uint64_t now_ns;
    int selects;
} it;

static uint64_t now_ns(void *source_data)
{
    (void)source_data;
    return it.now_ns;
}

static byway_status lookup(void *data, byway_dns_request *request, const char *host, size_t len, const byway_call *call)
{
    (void)data;
    (void)len;
    (void)call;
    return answer_ips(request, get(it.names, host));
}

static byway_status choose(void *data, byway_proxy_request *request, const char *uri, size_t len, const byway_call *call)
{
    const cJSON *text;
    char host[64];
    int port;
    (void)data;
    (void)uri;
    (void)len;
    (void)call;
    cJSON_ArrayForEach(text, it.proxies)
    {
        if (sscanf(text->valuestring, "HTTP %60[^:]:%d", host, &port) != 2 ||
            byway_proxy_request_add(request, BYWAY_PROXY_HTTP, host, BYWAY_NUL, port, NULL) != BYWAY_OK)
            return BYWAY_E_HOST;
    }
    return byway_proxy_request_finish(request);
}

static void hear(void *data, const char *uri, size_t len, const byway_route *route, int32_t failure, int32_t os_errno,
                 const byway_call *call)
{
    cJSON *entry = cJSON_CreateArray();
    byway_proxy *proxy = NULL;
    byway_str host = {"", 0};
    char place[128];
    (void)data;
    (void)uri;
    (void)len;
    (void)os_errno;
    (void)call;
    (void)byway_route_proxy(route, &proxy, NULL);
    (void)byway_proxy_host(proxy, &host);
    snprintf(place, sizeof place, "%s:%d", host.data, (int)byway_proxy_port(proxy));
    cJSON_AddItemToArray(entry, cJSON_CreateString(place));
    cJSON_AddItemToArray(entry, cJSON_CreateString(failure == BYWAY_FAILURE_REFUSED ? "refused" : "another failure"));
    cJSON_AddItemToArray(it.heard, entry);
    byway_proxy_release(proxy);
}

static byway_address *new_address(void)
{
    byway_address_options where = BYWAY_ADDRESS_OPTIONS_INIT;
    byway_address *address = NULL;
    where.host.data = "h";
    where.host.len = BYWAY_NUL;
    where.port = 80;
    where.dns = it.dns;
    where.proxy_selector = it.chooser;
    if (byway_address_new(it.engine, &where, &address, NULL) != BYWAY_OK)
        abort();
    return address;
}

static void begin(const cJSON *input)
{
    byway_engine_options options = BYWAY_ENGINE_OPTIONS_INIT;
    byway_dns_callbacks resolver = BYWAY_DNS_CALLBACKS_INIT;
    byway_proxy_selector_callbacks chooser = BYWAY_PROXY_SELECTOR_CALLBACKS_INIT;
    const cJSON *text;
    int count = 0;
    memset(&it, 0, sizeof it);
    it.proxies = get(input, "proxies");
    it.names = get(input, "dns") != NULL ? cJSON_Duplicate(get(input, "dns"), 1)
                                         : cJSON_Parse("{\"h\":[\"192.0.2.1\",\"192.0.2.2\"]}");
    cJSON_ArrayForEach(text, it.proxies)
    {
        char host[64], ip[32];
        cJSON *ips = cJSON_CreateArray();
        snprintf(ip, sizeof ip, "192.0.2.%d", ++count);
        sscanf(text->valuestring, "HTTP %60[^:]", host);
        cJSON_AddItemToArray(ips, cJSON_CreateString(ip));
        cJSON_AddItemToObject(it.names, host, ips);
    }
    it.heard = cJSON_CreateArray();
    it.got = cJSON_CreateObject();
    options.monotonic_ns = now_ns;
    options.database_capacity = (uint32_t)number_of(input, "cap", 0);
    if (get(input, "ttl_s") != NULL)
        options.postpone_for_ms = (int64_t)number_of(input, "ttl_s", 0) * 1000;
    resolver.lookup = lookup;
    chooser.select = choose;
    chooser.connect_failed = hear;
    if (byway_engine_new(&options, &it.engine, NULL) != BYWAY_OK ||
        byway_dns_new(it.engine, &resolver, &it.dns, NULL) != BYWAY_OK ||
        (it.proxies != NULL && byway_proxy_selector_new(it.engine, &chooser, &it.chooser, NULL) != BYWAY_OK))
        abort();
    it.address = new_address();
}

static void end(void)
{
    byway_address_release(it.address);
    byway_dns_release(it.dns);
    byway_proxy_selector_release(it.chooser);
    (void)byway_engine_shutdown(it.engine, 30000, NULL);
    byway_engine_release(it.engine);
    cJSON_Delete(it.names);
    cJSON_Delete(it.heard);
    cJSON_Delete(it.got);
}

/* `r1` is the first route, another name its address. */
static byway_route *route_to(const char *name)
{
    char text[64];
    byway_ip ip;
    byway_route *route = NULL;
    snprintf(text, sizeof text, name[0] == 'r' ? "192.0.2.%s" : "%s", name[0] == 'r' ? name + 1 : name);
    ip = ip_of(text);
    if (byway_route_new(it.address, NULL, &ip, 80, &route, NULL) != BYWAY_OK)
        abort();
    return route;
}

static void failed(const byway_route *route, int32_t failure)
{
    (void)byway_engine_connect_failed(it.engine, route, failure, BYWAY_PHASE_TCP, 111, NULL);
}

/* Everything one selector of an address gives. */
static cJSON *selected(byway_address *address)
{
    cJSON *all = cJSON_CreateArray();
    byway_selector *selector = NULL;
    byway_selection *selection;
    if (byway_selector_new(it.engine, address, NULL, &selector, NULL) != BYWAY_OK)
        abort();
    while (byway_selector_next(selector, 0, &selection, NULL) == BYWAY_OK) {
        cJSON *ips = cJSON_CreateArray();
        size_t i;
        for (i = 0; i < byway_selection_len(selection); i++) {
            byway_ip ip;
            (void)byway_route_hop(byway_selection_at(selection, i), &ip, NULL);
            cJSON_AddItemToArray(ips, cJSON_CreateString(ip_text(&ip)));
        }
        cJSON_AddItemToArray(all, ips);
        byway_selection_free(selection);
    }
    byway_selector_free(selector);
    return all;
}

static void select_again(void)
{
    cJSON *all = selected(it.address), *names = cJSON_CreateArray();
    const cJSON *list, *text;
    char key[32], name[64];
    cJSON_ArrayForEach(list, all)
    {
        cJSON *short_names = cJSON_CreateArray();
        cJSON_ArrayForEach(text, list)
        {
            snprintf(name, sizeof name, "r%s",
                     strncmp(text->valuestring, "192.0.2.", 8) == 0 ? text->valuestring + 8 : text->valuestring);
            cJSON_AddItemToArray(short_names, cJSON_CreateString(name));
        }
        cJSON_AddItemToArray(names, short_names);
    }
    snprintf(key, sizeof key, "select_%d", ++it.selects);
    cJSON_AddItemToObject(it.got, key, all);
    cJSON_DeleteItemFromObject(it.got, "selections");
    cJSON_AddItemToObject(it.got, "selections", names);
}

static void fail_many(int count)
{
    double most = 0;
    int n;
    for (n = 0; n < count; n++) {
        byway_ip ip;
        byway_route *route = NULL;
        memset(&ip, 0, sizeof ip);
        ip.family = 4;
        ip.bytes[0] = 10;
        ip.bytes[1] = (uint8_t)(n >> 16);
        ip.bytes[2] = (uint8_t)(n >> 8);
        ip.bytes[3] = (uint8_t)n;
        if (byway_route_new(it.address, NULL, &ip, 80, &route, NULL) != BYWAY_OK)
            abort();
        failed(route, BYWAY_FAILURE_REFUSED);
        byway_route_release(route);
        if (n % 1000 == 0 || n + 1 == count) {
            byway_engine_statistics statistics = BYWAY_ENGINE_STATISTICS_INIT;
            (void)byway_engine_stats(it.engine, &statistics);
            if ((double)statistics.database_records > most)
                most = (double)statistics.database_records;
        }
    }
    cJSON_AddNumberToObject(it.got, "size_max", most);
}

/* A step about an engine's memory. */
static enum outcome remember(const char *word_, const cJSON *argument)
{
    const char *text = cJSON_IsString(argument) ? argument->valuestring : "";
    const char *first = cJSON_GetStringValue(cJSON_GetArrayItem(get(it.names, "h"), 0));
    byway_route *route = NULL;
    int32_t behind = 0;
    if (strcmp(word_, "fail_distinct_routes") == 0)
        fail_many(argument->valueint);
    else if (strcmp(word_, "advance_clock_s") == 0)
        it.now_ns += (uint64_t)argument->valuedouble * 1000000000;
    else if (strcmp(word_, "notify_network_changed") == 0)
        (void)byway_engine_network_changed(it.engine, NULL);
    else if (strcmp(word_, "select") == 0) {
        if (argument == NULL) /* else the step says how the address is made */
            select_again();
    } else if (strcmp(word_, "select through copy 2") == 0) {
        byway_address *copy = new_address();
        cJSON *all = selected(copy);
        const char *got = cJSON_GetStringValue(cJSON_GetArrayItem(cJSON_GetArrayItem(all, 0), 0));
        cJSON_AddBoolToObject(it.got, "first_route_postponed", strcmp(got, first) != 0);
        cJSON_Delete(all);
        byway_address_release(copy);
    } else {
        route = route_to(strncmp(text, "first route", 11) == 0 ? first : text);
        if (strcmp(word_, "report_connected") == 0)
            (void)byway_engine_connected(it.engine, route);
        else if (strcmp(word_, "report_exchange_failed") == 0)
            failed(route, BYWAY_FAILURE_IO);
        else if (strcmp(word_, "report_connect_failed") == 0 || strcmp(word_, "fail") == 0)
            failed(route, BYWAY_FAILURE_REFUSED);
        else if (strcmp(word_, "should_postpone") == 0) {
            (void)byway_engine_should_postpone(it.engine, route, &behind);
            cJSON_AddBoolToObject(it.got, "result", behind);
        } else {
            byway_route_release(route);
            return fails("step %s", word_);
        }
        byway_route_release(route);
    }
    return PASS;
}

/* Which failures a proxy selector hears of. */
static enum outcome told(const cJSON *one)
{
    byway_selector *selector = NULL;
    byway_selection *selection;
    byway_route *route = NULL;
    const cJSON *step;
    enum outcome outcome = PASS;
    begin(get(one, "input"));
    if (byway_selector_new(it.engine, it.address, NULL, &selector, NULL) != BYWAY_OK)
        abort();
    cJSON_ArrayForEach(step, get(get(one, "input"), "steps"))
    {
        const char *name = step->child->valuestring;
        if (strcmp(name, "next") == 0) {
            byway_route_release(route);
            route = NULL;
            if (byway_selector_next(selector, 0, &selection, NULL) != BYWAY_OK)
                abort();
            route = byway_route_retain((byway_route *)byway_selection_at(selection, 0));
            byway_selection_free(selection);
        } else if (strcmp(name, "report_connected") == 0)
            (void)byway_engine_connected(it.engine, route);
        else if (strcmp(name, "report_connect_failed") == 0)
            failed(route, strcmp(step->child->next->valuestring, "refused") == 0 ? BYWAY_FAILURE_REFUSED : BYWAY_FAILURE_IO);
        else
            outcome = fails("step %s", name);
    }
    if (outcome == PASS)
        outcome = same_json(cJSON_Duplicate(it.heard, 1), get(get(one, "expect"), "selector_connect_failed_calls"), "heard");
    byway_route_release(route);
    byway_selector_free(selector);
    end();
    return outcome;
}

enum outcome engine_sequence(const cJSON *one)
{
    const char *area = text_of(one, "area", "");
    const cJSON *step, *want;
    enum outcome outcome = PASS;
    if (strcmp(area, "selector") == 0)
        return told(one);
    if (strcmp(area, "db") != 0)
        return skips("no selector looks for wpad by names; wpad_names shows which would be asked");
    begin(get(one, "input"));
    cJSON_ArrayForEach(step, get(get(one, "input"), "steps")) if (outcome == PASS)
        outcome = remember(step->child->valuestring, step->child->next);
    cJSON_ArrayForEach(want, get(one, "expect")) if (outcome == PASS)
        outcome = same_json(cJSON_Duplicate(get(it.got, want->string), 1), want, want->string);
    end();
    return outcome;
}
