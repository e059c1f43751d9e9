#include "okhttp.h"
#include <arpa/inet.h>

const cJSON *member(const cJSON *object, const char *name)
{
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(object, name);
    return found && !cJSON_IsNull(found) ? found : NULL;
}

const char *word(const cJSON *object, const char *name)
{
    const char *text = cJSON_GetStringValue(member(object, name));
    return text ? text : "";
}

int truth_of(const cJSON *object, const char *name, int otherwise)
{
    const cJSON *found = member(object, name);
    return cJSON_IsBool(found) ? cJSON_IsTrue(found) : otherwise;
}

cJSON *take_text(byway_text *text)
{
    byway_str shown;
    cJSON *made;
    byway_text_str(text, &shown);
    made = cJSON_CreateString(shown.data);
    byway_text_free(text);
    return made;
}

byway_ip ip_of(const char *text)
{
    byway_ip ip = { { 0 }, 0, 0, { 0 } };
    if (inet_pton(AF_INET, text, ip.bytes) == 1)
        ip.family = 4;
    else if (inet_pton(AF_INET6, text, ip.bytes) == 1)
        ip.family = 6;
    else {
        fprintf(stderr, "%s is no IP address\n", text);
        exit(2);
    }
    return ip;
}

const char *ip_text(const byway_ip *ip)
{
    static char text[INET6_ADDRSTRLEN];
    unsigned high, low;
    if (ip->family == 0)
        return NULL;
    (void)inet_ntop(ip->family == 4 ? AF_INET : AF_INET6, ip->bytes, text, sizeof text);
    /* The C library shows the last half of addresses with 96 leading zeroes as IPv4; only mapped ones are that. */
    if (ip->family == 6 && strchr(text, '.') && strncmp(text, "::ffff:", 7)) {
        high = (unsigned)ip->bytes[12] << 8 | ip->bytes[13];
        low = (unsigned)ip->bytes[14] << 8 | ip->bytes[15];
        snprintf(text, sizeof text, "::%x:%x", high, low);
    }
    return text;
}

byway_engine *engine_with(int32_t compat, uint32_t routing_flags)
{
    byway_engine *engine = NULL;
    byway_engine_options options = BYWAY_ENGINE_OPTIONS_INIT;
    options.compat = compat;
    options.routing_flags = routing_flags;
    if (byway_engine_new(&options, &engine, NULL) != BYWAY_OK)
        abort();
    return engine;
}

byway_proxy *okhttp_proxy(const cJSON *proxy)
{
    byway_proxy *made = NULL;
    byway_ip ip;
    byway_status status;
    const char *type = word(proxy, "type");
    const int32_t kind = !strcmp(type, "SOCKS") ? BYWAY_PROXY_SOCKS5H : BYWAY_PROXY_HTTP;
    const int32_t port = (int32_t)number_of(proxy, "port", 0);
    if (!*type || !strcmp(type, "DIRECT"))
        return NULL;
    if (member(proxy, "ip")) {
        ip = ip_of(word(proxy, "ip"));
        status = byway_proxy_new_resolved(kind, word(proxy, "host"), BYWAY_NUL, &ip, port, &made, NULL);
    } else {
        status = byway_proxy_new(kind, word(proxy, "host"), BYWAY_NUL, port, &made, NULL);
    }
    if (status != BYWAY_OK)
        fprintf(stderr, "proxy %s: %s\n", word(proxy, "host"), byway_status_name(status));
    return made;
}

byway_address *okhttp_address(byway_engine *engine, const cJSON *address, const cJSON *explicit_proxy, byway_dns *dns,
                              byway_proxy_selector *chooser)
{
    byway_address_options options = BYWAY_ADDRESS_OPTIONS_INIT;
    byway_address *made = NULL;
    byway_proxy *proxy = NULL;
    byway_error *err = NULL;
    byway_str protocols[16];
    const cJSON *item;
    options.scheme.data = member(address, "scheme") ? word(address, "scheme") : "http";
    options.scheme.len = BYWAY_NUL;
    options.host.data = word(address, "host");
    options.host.len = BYWAY_NUL;
    options.port = (int32_t)number_of(address, "port", 0);
    options.protocols = protocols;
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(address, "protocols"))
    {
        protocols[options.protocols_len].data = cJSON_GetStringValue(item);
        protocols[options.protocols_len++].len = BYWAY_NUL;
    }
    if (explicit_proxy && !strcmp(word(explicit_proxy, "type"), "DIRECT"))
        options.flags |= BYWAY_ADDRESS_DIRECT;
    else if (explicit_proxy)
        proxy = okhttp_proxy(explicit_proxy);
    options.proxy = proxy;
    options.dns = dns;
    options.proxy_selector = chooser;
    if (byway_address_new(engine, &options, &made, &err) != BYWAY_OK) {
        byway_str message;
        byway_error_message(err, &message);
        fprintf(stderr, "address %s: %s\n", options.host.data, message.data);
        byway_error_free(err);
    }
    byway_proxy_release(proxy);
    return made;
}

byway_status answer_ips(byway_dns_request *request, const cJSON *list)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        const byway_ip ip = ip_of(cJSON_GetStringValue(item));
        const byway_status status = byway_dns_request_add(request, &ip, 1);
        if (status != BYWAY_OK)
            return status;
    }
    return byway_dns_request_finish(request);
}

int32_t okhttp_failure(const cJSON *name)
{
    static const struct {
        const char *name;
        int32_t failure;
    } whole[] = {
        { "plain_io", BYWAY_FAILURE_IO },
        { "refused", BYWAY_FAILURE_REFUSED },
        { "connection_shutdown", BYWAY_FAILURE_CONNECTION_SHUTDOWN },
        { "file_not_found", BYWAY_FAILURE_REQUEST_BODY },
        { "protocol", BYWAY_FAILURE_PROTOCOL },
        { "interrupted_io", BYWAY_FAILURE_INTERRUPTED },
        { "socket_timeout", BYWAY_FAILURE_TIMEOUT },
        { "timeout", BYWAY_FAILURE_TIMEOUT },
        { "tls_handshake_cert_cause", BYWAY_FAILURE_TLS_CERTIFICATE },
        { "tls_handshake_other", BYWAY_FAILURE_TLS_HANDSHAKE },
        { "tls_peer_unverified", BYWAY_FAILURE_TLS_PEER_UNVERIFIED },
        { "tls_other", BYWAY_FAILURE_TLS },
        { "stream_reset_refused", BYWAY_FAILURE_STREAM_REFUSED },
        { "stream_reset_cancel", BYWAY_FAILURE_STREAM_CANCELED },
        { "stream_reset_other", BYWAY_FAILURE_STREAM_RESET },
        { "unknown_host", BYWAY_FAILURE_UNKNOWN_HOST },
        { "http_code_407_without_http_proxy", BYWAY_FAILURE_AUTH_WITHOUT_PROXY },
        { "unreachable", BYWAY_FAILURE_UNREACHABLE },
    }, parts[] = {
        { "lost the race", BYWAY_FAILURE_CANCELED },
        { "407", BYWAY_FAILURE_PROXY_AUTH },
        { "certificate", BYWAY_FAILURE_TLS_CERTIFICATE },
        { "handshake", BYWAY_FAILURE_TLS_HANDSHAKE },
        { "tls", BYWAY_FAILURE_TLS_HANDSHAKE },
        { "timeout", BYWAY_FAILURE_TIMEOUT },
    };
    const char *text = cJSON_GetStringValue(name);
    size_t i;
    for (i = 0; text && i < sizeof whole / sizeof whole[0]; i++)
        if (!strcmp(text, whole[i].name))
            return whole[i].failure;
    for (i = 0; text && i < sizeof parts / sizeof parts[0]; i++)
        if (strstr(text, parts[i].name))
            return parts[i].failure;
    return BYWAY_FAILURE_IO;
}

int32_t okhttp_line(const cJSON *test)
{
    return *word(test, "line") == '3' ? BYWAY_COMPAT_OKHTTP_3 : BYWAY_COMPAT_OKHTTP_5;
}
