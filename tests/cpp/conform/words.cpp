#include "words.hpp"

namespace conform {

byway::ip ip_of(const std::string &text) { return byway::ip::parse(text).value(); }

std::vector<byway::ip> ips_of(const json &list)
{
    std::vector<byway::ip> all;
    for (const json &one : list)
        all.push_back(ip_of(one.get<std::string>()));
    return all;
}

json texts_of(byway::span<const byway::ip> ips)
{
    json all = json::array();
    for (const byway::ip &one : ips)
        all.push_back(one.text());
    return all;
}

byway::engine engine_with(int compat, std::uint32_t routing_flags)
{
    byway::engine_options options;
    options.compat = compat;
    options.routing_flags = routing_flags;
    return byway::engine::make(options).value();
}

byway::proxy proxy_of(const json &proxy)
{
    const std::string type = text(proxy, "type"), host = text(proxy, "host");
    const int kind = type == "SOCKS" ? BYWAY_PROXY_SOCKS5H : BYWAY_PROXY_HTTP;
    const int port = static_cast<int>(number(proxy, "port"));
    if (type.empty() || type == "DIRECT")
        return {};
    return has(proxy, "ip") ? byway::proxy::resolved(kind, host, ip_of(text(proxy, "ip")), port).value()
                            : byway::proxy::make(kind, host, port).value();
}

byway::address address_of(const byway::engine &engine, const json &address, const json &explicit_proxy,
                          const byway::dns *dns, const byway::proxy_selector *chooser)
{
    const std::string scheme = text(address, "scheme", "http"), host = text(address, "host");
    std::vector<std::string> protocols;
    if (has(address, "protocols"))
        protocols = get(address, "protocols").get<std::vector<std::string>>();
    byway::proxy proxy;
    byway::address_options options;
    options.scheme = scheme;
    options.host = host;
    options.port = static_cast<int>(number(address, "port"));
    options.protocols = protocols;
    options.direct = text(explicit_proxy, "type") == "DIRECT";
    if (!options.direct && !explicit_proxy.is_null())
        proxy = proxy_of(explicit_proxy);
    options.proxy = proxy ? &proxy : nullptr;
    options.dns = dns;
    options.proxy_selector = chooser;
    return byway::address::make(engine, options).value();
}

byway::result<json> planned(const json &ips, std::uint32_t routing_flags)
{
    const auto engine = engine_with(BYWAY_COMPAT_BYWAY, routing_flags);
    const auto dns = byway::dns::make(engine, [&](byway::dns_request &request, std::string_view) {
                         return request.add(ips_of(ips)).status();
                     }).value();
    byway::address_options where;
    where.host = "order.example";
    where.port = 80;
    where.dns = &dns;
    byway::route_record records[64];
    auto total = byway::selector::plan(engine, byway::address::make(engine, where).value(), records);
    if (!total)
        return total.error();
    json got = json::array();
    for (std::size_t i = 0; i < *total && i < 64; ++i)
        got.push_back(byway::ip(records[i].hop_ip).text());
    return got;
}

int failure_of(const json &name)
{
    static const std::pair<const char *, int> whole[] = {
        {"plain_io", BYWAY_FAILURE_IO},
        {"refused", BYWAY_FAILURE_REFUSED},
        {"connection_shutdown", BYWAY_FAILURE_CONNECTION_SHUTDOWN},
        {"file_not_found", BYWAY_FAILURE_REQUEST_BODY},
        {"protocol", BYWAY_FAILURE_PROTOCOL},
        {"interrupted_io", BYWAY_FAILURE_INTERRUPTED},
        {"socket_timeout", BYWAY_FAILURE_TIMEOUT},
        {"timeout", BYWAY_FAILURE_TIMEOUT},
        {"tls_handshake_cert_cause", BYWAY_FAILURE_TLS_CERTIFICATE},
        {"tls_handshake_other", BYWAY_FAILURE_TLS_HANDSHAKE},
        {"tls_peer_unverified", BYWAY_FAILURE_TLS_PEER_UNVERIFIED},
        {"tls_other", BYWAY_FAILURE_TLS},
        {"stream_reset_refused", BYWAY_FAILURE_STREAM_REFUSED},
        {"stream_reset_cancel", BYWAY_FAILURE_STREAM_CANCELED},
        {"stream_reset_other", BYWAY_FAILURE_STREAM_RESET},
        {"unknown_host", BYWAY_FAILURE_UNKNOWN_HOST},
        {"http_code_407_without_http_proxy", BYWAY_FAILURE_AUTH_WITHOUT_PROXY},
        {"unreachable", BYWAY_FAILURE_UNREACHABLE},
    };
    static const std::pair<const char *, int> parts[] = {
        {"lost the race", BYWAY_FAILURE_CANCELED},      {"407", BYWAY_FAILURE_PROXY_AUTH},
        {"certificate", BYWAY_FAILURE_TLS_CERTIFICATE}, {"handshake", BYWAY_FAILURE_TLS_HANDSHAKE},
        {"tls", BYWAY_FAILURE_TLS_HANDSHAKE},           {"timeout", BYWAY_FAILURE_TIMEOUT},
    };
    const std::string given = name.is_string() ? name.get<std::string>() : "";
    for (const auto &[word, failure] : whole)
        if (given == word)
            return failure;
    for (const auto &[word, failure] : parts)
        if (contains(given, word))
            return failure;
    return BYWAY_FAILURE_IO;
}

int compat_of(const json &one)
{
    return starts(text(one, "line"), "3") ? BYWAY_COMPAT_OKHTTP_3 : BYWAY_COMPAT_OKHTTP_5;
}

} // namespace conform
