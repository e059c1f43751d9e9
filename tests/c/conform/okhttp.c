/* okhttp.jsonl: hosts, addresses, route texts, and the decisions after a failure. */
#include "conform.h"
#include "okhttp.h"

static enum outcome canonical_host(const cJSON *test)
{
    const char *input = word(test, "input");
    byway_text *text = NULL;
    byway_status status = byway_host_canonical(BYWAY_COMPAT_OKHTTP_5, input, BYWAY_NUL, &text, NULL);
    cJSON *got = status == BYWAY_OK ? take_text(text) : cJSON_CreateNull();
    return same_json(got, cJSON_GetObjectItem(cJSON_GetObjectItem(test, "expect"), "value"), "host");
}

static enum outcome looks_like_ip(const cJSON *test)
{
    const int32_t got = byway_host_is_literal(BYWAY_COMPAT_OKHTTP_5, word(test, "input"), BYWAY_NUL);
    return same_json(cJSON_CreateBool(got), cJSON_GetObjectItem(cJSON_GetObjectItem(test, "expect"), "value"), "literal");
}

/* The order of addresses is seen in the routes to a host that has them. */
static const cJSON *order_input;

static byway_status order_lookup(void *user_data, byway_dns_request *request, const char *host, size_t len,
                                 const byway_call *call)
{
    (void)user_data;
    (void)host;
    (void)len;
    (void)call;
    return answer_ips(request, order_input);
}

cJSON *planned(const cJSON *ips, uint32_t routing_flags, byway_status *status)
{
    byway_engine *engine = engine_with(BYWAY_COMPAT_BYWAY, routing_flags);
    byway_dns_callbacks set = BYWAY_DNS_CALLBACKS_INIT;
    byway_address_options options = BYWAY_ADDRESS_OPTIONS_INIT;
    byway_dns *dns = NULL;
    byway_address *address = NULL;
    byway_route_record records[64];
    size_t total = 0, i;
    cJSON *got = cJSON_CreateArray();
    order_input = ips;
    set.lookup = order_lookup;
    (void)byway_dns_new(engine, &set, &dns, NULL);
    options.host.data = "order.example";
    options.host.len = BYWAY_NUL;
    options.port = 80;
    options.dns = dns;
    (void)byway_address_new(engine, &options, &address, NULL);
    *status = byway_selector_plan(engine, address, NULL, records, sizeof records[0], 64, &total, NULL);
    for (i = 0; i < total && i < 64; i++)
        cJSON_AddItemToArray(got, cJSON_CreateString(ip_text(&records[i].hop_ip)));
    byway_address_release(address);
    byway_dns_release(dns);
    byway_engine_release(engine);
    return got;
}

static enum outcome inet_order(const cJSON *test)
{
    byway_status status;
    cJSON *got = planned(cJSON_GetObjectItem(test, "input"), 0, &status), *want = cJSON_CreateArray();
    const cJSON *item;
    enum outcome outcome;
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(cJSON_GetObjectItem(test, "expect"), "value"))
    {
        byway_ip ip = ip_of(cJSON_GetStringValue(item));
        cJSON_AddItemToArray(want, cJSON_CreateString(ip_text(&ip)));
    }
    if (status != BYWAY_OK && !(status == BYWAY_E_EMPTY_ANSWER || cJSON_GetArraySize(want) == 0)) {
        cJSON_Delete(got);
        outcome = fails("plan: %s", byway_status_name(status));
    } else
        outcome = same_json(got, want, "order");
    cJSON_Delete(want);
    return outcome;
}

static enum outcome socket_host(const cJSON *test)
{
    const cJSON *socket = cJSON_GetObjectItem(test, "proxy_socket");
    byway_proxy *proxy = NULL;
    byway_ip ip;
    byway_str host = { NULL, 0 };
    cJSON *got;
    byway_status status;
    if (member(socket, "ip")) {
        ip = ip_of(word(socket, "ip"));
        status = byway_proxy_new_resolved(BYWAY_PROXY_HTTP, word(socket, "host"), BYWAY_NUL, &ip,
                                          (int32_t)number_of(socket, "port", 0), &proxy, NULL);
    } else {
        status = byway_proxy_new(BYWAY_PROXY_HTTP, word(socket, "host"), BYWAY_NUL,
                                 (int32_t)number_of(socket, "port", 0), &proxy, NULL);
    }
    if (status != BYWAY_OK)
        return fails("proxy: %s", byway_status_name(status));
    (void)byway_proxy_host(proxy, &host);
    if (byway_proxy_ip(proxy, &ip) == BYWAY_OK && ip.family)
        got = cJSON_CreateString(ip_text(&ip));
    else
        got = cJSON_CreateString(host.data);
    byway_proxy_release(proxy);
    return same_json(got, cJSON_GetObjectItem(cJSON_GetObjectItem(test, "expect"), "value"), "host");
}

static enum outcome route_to_string(const cJSON *test)
{
    byway_engine *engine = engine_with(BYWAY_COMPAT_OKHTTP_5, 0);
    byway_address *address = okhttp_address(engine, cJSON_GetObjectItem(test, "address"), NULL, NULL, NULL);
    const cJSON *route = cJSON_GetObjectItem(test, "route"), *socket = cJSON_GetObjectItem(route, "socket");
    byway_proxy *proxy = okhttp_proxy(cJSON_GetObjectItem(route, "proxy"));
    byway_route *made = NULL;
    byway_text *text = NULL;
    byway_ip hop;
    cJSON *got;
    byway_status status;
    if (member(socket, "ip"))
        hop = ip_of(word(socket, "ip"));
    status = byway_route_new(address, proxy, member(socket, "ip") ? &hop : NULL,
                             (uint16_t)number_of(socket, "port", 0), &made, NULL);
    if (status == BYWAY_OK)
        status = byway_route_text(made, &text, NULL);
    got = status == BYWAY_OK ? take_text(text) : cJSON_CreateString(byway_status_name(status));
    byway_route_release(made);
    byway_proxy_release(proxy);
    byway_address_release(address);
    byway_engine_release(engine);
    return same_json(got, cJSON_GetObjectItem(cJSON_GetObjectItem(test, "expect"), "value"), "text");
}

static byway_status no_proxies(void *user_data, byway_proxy_request *request, const char *uri, size_t len,
                               const byway_call *call)
{
    (void)user_data;
    (void)uri;
    (void)len;
    (void)call;
    return byway_proxy_request_add_direct(request);
}

static byway_status no_names(void *user_data, byway_dns_request *request, const char *host, size_t len,
                             const byway_call *call)
{
    (void)user_data;
    (void)host;
    (void)len;
    (void)call;
    return byway_dns_request_fail(request, BYWAY_E_UNKNOWN_HOST, 0, "", 0);
}

/* OkHttp's objects become handles, numbers and one opaque TLS identity; an "other" one becomes another. */
static byway_address *equality_address(byway_engine *engine, const cJSON *base, const cJSON *change, byway_dns *dns[2],
                                       byway_proxy_selector *choosers[2])
{
    static const char *const parts[] = { "tls", "verifier", "pinner", "connection_specs", "specs" };
    byway_address_options options = BYWAY_ADDRESS_OPTIONS_INIT;
    byway_address *address = NULL;
    byway_str protocols[16];
    const cJSON *from, *item, *explicit_proxy = cJSON_GetObjectItem(change, "proxy");
    byway_proxy *proxy = NULL;
    char identity[512] = "";
    size_t i;
    from = cJSON_HasObjectItem(change, "scheme") ? change : base;
    options.scheme.data = word(from, "scheme");
    options.scheme.len = BYWAY_NUL;
    from = cJSON_HasObjectItem(change, "host") ? change : base;
    options.host.data = word(from, "host");
    options.host.len = BYWAY_NUL;
    from = cJSON_HasObjectItem(change, "port") ? change : base;
    options.port = (int32_t)number_of(from, "port", 0);
    for (i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        char *shown = cJSON_PrintUnformatted(cJSON_GetObjectItem(change, parts[i]));
        size_t at = strlen(identity);
        snprintf(identity + at, sizeof identity - at, "%s=%s;", parts[i], shown ? shown : "null");
        free(shown);
    }
    options.tls_identity_bytes.data = identity;
    options.tls_identity_bytes.len = strlen(identity);
    options.dns = dns[cJSON_HasObjectItem(change, "dns")];
    options.proxy_selector = choosers[cJSON_HasObjectItem(change, "selector")];
    options.authenticator =
        cJSON_HasObjectItem(change, "authenticator") || cJSON_HasObjectItem(change, "proxy_authenticator") ? 2 : 1;
    protocols[0].data = "h2";
    protocols[1].data = "http/1.1";
    protocols[0].len = protocols[1].len = BYWAY_NUL;
    options.protocols = protocols;
    options.protocols_len = 2;
    if (cJSON_IsArray(cJSON_GetObjectItem(change, "protocols"))) {
        options.protocols_len = 0;
        cJSON_ArrayForEach(item, cJSON_GetObjectItem(change, "protocols"))
        {
            protocols[options.protocols_len].data = cJSON_GetStringValue(item);
            protocols[options.protocols_len++].len = BYWAY_NUL;
        }
    }
    if (cJSON_IsObject(explicit_proxy))
        proxy = okhttp_proxy(explicit_proxy);
    else if (cJSON_IsString(explicit_proxy) && !strcmp(explicit_proxy->valuestring, "DIRECT"))
        options.flags |= BYWAY_ADDRESS_DIRECT;
    else if (explicit_proxy && !cJSON_IsNull(explicit_proxy))
        (void)byway_proxy_new(BYWAY_PROXY_HTTP, "other", BYWAY_NUL, 1, &proxy, NULL);
    options.proxy = proxy;
    (void)byway_address_new(engine, &options, &address, NULL);
    byway_proxy_release(proxy);
    return address;
}

static enum outcome address_equality(const cJSON *test)
{
    byway_engine *engine = engine_with(BYWAY_COMPAT_OKHTTP_5, 0);
    byway_dns_callbacks dns_set = BYWAY_DNS_CALLBACKS_INIT;
    byway_proxy_selector_callbacks chooser_set = BYWAY_PROXY_SELECTOR_CALLBACKS_INIT;
    byway_dns *dns[2] = { NULL, NULL };
    byway_proxy_selector *choosers[2] = { NULL, NULL };
    byway_address *a, *b;
    cJSON *nothing = cJSON_CreateObject(), *got = cJSON_CreateObject();
    const cJSON *base = cJSON_GetObjectItem(test, "base"), *expect = cJSON_GetObjectItem(test, "expect");
    int i;
    dns_set.lookup = no_names;
    chooser_set.select = no_proxies;
    for (i = 0; i < 2; i++) {
        (void)byway_dns_new(engine, &dns_set, &dns[i], NULL);
        (void)byway_proxy_selector_new(engine, &chooser_set, &choosers[i], NULL);
    }
    a = equality_address(engine, base, nothing, dns, choosers);
    b = equality_address(engine, base, cJSON_GetObjectItem(test, "change"), dns, choosers);
    cJSON_AddBoolToObject(got, "equal", byway_address_equals(a, b));
    cJSON_AddBoolToObject(got, "equal_non_host", byway_address_equal_non_host(a, b));
    if (member(expect, "same_hash"))
        cJSON_AddBoolToObject(got, "same_hash", byway_address_hash(a) == byway_address_hash(b));
    else
        cJSON_AddNullToObject(got, "same_hash");
    byway_address_release(a);
    byway_address_release(b);
    for (i = 0; i < 2; i++) {
        byway_dns_release(dns[i]);
        byway_proxy_selector_release(choosers[i]);
    }
    byway_engine_release(engine);
    cJSON_Delete(nothing);
    return same_json(got, expect, "equality");
}

static enum outcome address_to_string(const cJSON *test)
{
    byway_engine *engine = engine_with(BYWAY_COMPAT_OKHTTP_5, 0);
    byway_address *address = okhttp_address(engine, cJSON_GetObjectItem(test, "address"),
                                            cJSON_GetObjectItem(test, "explicit_proxy"), NULL, NULL);
    byway_text *text = NULL;
    byway_status status = byway_address_text(address, &text, NULL);
    cJSON *got = status == BYWAY_OK ? take_text(text) : cJSON_CreateString(byway_status_name(status));
    byway_address_release(address);
    byway_engine_release(engine);
    return same_json(got, cJSON_GetObjectItem(cJSON_GetObjectItem(test, "expect"), "value"), "text");
}

static enum outcome recover_decision(const cJSON *test)
{
    byway_engine *engine = engine_with(okhttp_line(test), 0);
    byway_failed_call call = BYWAY_FAILED_CALL_INIT;
    const char *phase = word(test, "phase");
    int32_t out = -1;
    byway_status status;
    call.failure = okhttp_failure(member(test, "failure"));
    call.phase = !strcmp(phase, "connect") ? BYWAY_PHASE_TCP : !strcmp(phase, "tls") ? BYWAY_PHASE_TLS
                                                                                     : BYWAY_PHASE_EXCHANGE;
    call.flags = (truth_of(test, "retry_enabled", 1) ? BYWAY_CALL_RETRY_ENABLED : 0)
                 | (truth_of(test, "one_shot_body", 0) ? BYWAY_CALL_ONE_SHOT : 0)
                 | (call.phase == BYWAY_PHASE_EXCHANGE ? BYWAY_CALL_SENT : 0)
                 | (truth_of(test, "exchange_failed", 1) ? BYWAY_CALL_EXCHANGE_FAILED : 0)
                 | (truth_of(test, "more_routes", 1) ? BYWAY_CALL_MORE_ROUTES : 0);
    status = byway_engine_recover(engine, &call, &out, NULL);
    byway_engine_release(engine);
    if (status != BYWAY_OK)
        return fails("recover: %s", byway_status_name(status));
    return same_json(cJSON_CreateBool(out == BYWAY_RECOVER_RETRY), cJSON_GetObjectItem(cJSON_GetObjectItem(test, "expect"), "retry"), "retry");
}

static enum outcome tls_retry_decision(const cJSON *test)
{
    return same_json(cJSON_CreateBool(byway_failure_retry_tls(okhttp_failure(member(test, "failure")))), cJSON_GetObjectItem(cJSON_GetObjectItem(test, "expect"), "retry"), "retry");
}

static enum outcome track_failure(const cJSON *test)
{
    byway_failed_exchange exchange = BYWAY_FAILED_EXCHANGE_INIT;
    uint32_t out = 0;
    cJSON *got;
    byway_status status;
    exchange.successes = (uint64_t)number_of(test, "success_count", 0);
    exchange.refused_before = (uint32_t)number_of(test, "refused_before", 0);
    exchange.failure = member(test, "failure") ? okhttp_failure(member(test, "failure")) : -1;
    exchange.flags = (truth_of(test, "multiplexed", 0) ? BYWAY_EXCHANGE_MULTIPLEXED : 0)
                     | (truth_of(test, "call_canceled", 0) ? BYWAY_EXCHANGE_CALL_CANCELED : 0)
                     | (strcmp(word(test, "via"), "DIRECT") ? BYWAY_EXCHANGE_PROXIED : 0);
    status = byway_failure_track(&exchange, &out, NULL);
    if (status != BYWAY_OK)
        return fails("track: %s", byway_status_name(status));
    got = cJSON_CreateObject();
    cJSON_AddBoolToObject(got, "no_new_exchanges", !!(out & BYWAY_TELL_NO_NEW_EXCHANGES));
    cJSON_AddNumberToObject(got, "route_failure_count", !!(out & BYWAY_TELL_ROUTE_FAILURE));
    cJSON_AddBoolToObject(got, "db_failed", !!(out & BYWAY_TELL_DATABASE));
    cJSON_AddBoolToObject(got, "selector_notified", !!(out & BYWAY_TELL_PROXY_SELECTOR));
    return same_json(got, cJSON_GetObjectItem(test, "expect"), "track");
}

static enum outcome told(const cJSON *test, int32_t compat, const cJSON *expect)
{
    static const struct {
        const char *name;
        uint32_t bit;
    } bits[] = { { "listener_connect_failed", BYWAY_TELL_FAILED_EVENT },
                 { "selector_notified", BYWAY_TELL_PROXY_SELECTOR },
                 { "db_failed", BYWAY_TELL_DATABASE },
                 { "next_route_tried", BYWAY_TELL_NEXT_ROUTE } };
    const char *phase = word(test, "phase");
    const int32_t at = !strcmp(phase, "dns") || !strcmp(phase, "planning")      ? BYWAY_PHASE_DNS
                       : !strcmp(phase, "tunnel") || !strcmp(phase, "connect") ? BYWAY_PHASE_TUNNEL
                       : !strcmp(phase, "tls")                                 ? BYWAY_PHASE_TLS
                                                                               : BYWAY_PHASE_TCP;
    uint32_t out = 0;
    size_t i;
    byway_status status = byway_failure_report(
        compat, okhttp_failure(member(test, "failure")), at,
        strcmp(word(test, "via"), "DIRECT") ? BYWAY_PROXY_HTTP : BYWAY_PROXY_DIRECT,
        !strcmp(word(test, "proxy_from"), "selector"), truth_of(test, "retry_enabled", 1), &out, NULL);
    if (status != BYWAY_OK)
        return fails("report: %s", byway_status_name(status));
    for (i = 0; i < sizeof bits / sizeof bits[0]; i++) {
        const cJSON *want = member(expect, bits[i].name);
        if (want && cJSON_IsTrue(want) != !!(out & bits[i].bit))
            return fails("%s under compat %d: got %d", bits[i].name, (int)compat, !!(out & bits[i].bit));
    }
    return PASS;
}

static enum outcome connect_failure_report(const cJSON *test)
{
    const cJSON *expect = cJSON_GetObjectItem(test, "expect");
    const enum outcome now = told(test, BYWAY_COMPAT_OKHTTP_5, expect);
    return now == PASS ? told(test, BYWAY_COMPAT_OKHTTP_3, member(expect, "v3131")) : now;
}

const struct kind okhttp_kinds[] = {
    { "okhttp", "canonical_host", canonical_host },
    { "okhttp", "looks_like_ip", looks_like_ip },
    { "okhttp", "inet_order", inet_order },
    { "okhttp", "socket_host", socket_host },
    { "okhttp", "route_to_string", route_to_string },
    { "okhttp", "address_equality", address_equality },
    { "okhttp", "address_to_string", address_to_string },
    { "okhttp", "recover_decision", recover_decision },
    { "okhttp", "tls_retry_decision", tls_retry_decision },
    { "okhttp", "track_failure", track_failure },
    { "okhttp", "connect_failure_report", connect_failure_report },
    { NULL, NULL, NULL },
};
