// okhttp.jsonl: hosts, addresses, route texts, and the decisions after a failure.
#include "words.hpp"

namespace conform {
namespace {

const json &expected(const json &one) { return get(get(one, "expect"), "value"); }

void canonical_host(const json &one)
{
    auto host = byway::canonical_host(text(one, "input"), BYWAY_COMPAT_OKHTTP_5);
    same(host ? json(*host) : json(), expected(one), "host");
}

void looks_like_ip(const json &one)
{
    same(byway::is_literal(text(one, "input"), BYWAY_COMPAT_OKHTTP_5), expected(one), "literal");
}

// The order of addresses is seen in the routes to a host that has them.
void inet_order(const json &one)
{
    auto got = planned(get(one, "input"), 0);
    const json want = texts_of(ips_of(expected(one)));
    if (!got && got.error().code() != BYWAY_E_EMPTY_ANSWER && !want.empty())
        fail("plan: " + status(got.error()));
    same(got ? *got : json::array(), want, "order");
}

void socket_host(const json &one)
{
    json socket = get(one, "proxy_socket");
    socket["type"] = "HTTP";
    const auto proxy = proxy_of(socket);
    same(proxy.ip() ? proxy.ip().text() : std::string(proxy.host()), expected(one), "host");
}

void route_to_string(const json &one)
{
    const auto engine = engine_with(BYWAY_COMPAT_OKHTTP_5);
    const json &route = get(one, "route"), &socket = get(route, "socket");
    const auto made = byway::route::make(address_of(engine, get(one, "address")), proxy_of(get(route, "proxy")),
                                         has(socket, "ip") ? ip_of(text(socket, "ip")) : byway::ip(),
                                         static_cast<std::uint16_t>(number(socket, "port")));
    same(made.value().text().value(), expected(one), "text");
}

// OkHttp's objects become handles, numbers and one opaque TLS identity; an "other" one becomes another.
struct pool {
    byway::engine engine = engine_with(BYWAY_COMPAT_OKHTTP_5);
    byway::dns names[2] = {nobody(), nobody()};
    byway::proxy_selector choosers[2] = {direct(), direct()};

    byway::dns nobody() const
    {
        return byway::dns::make(engine,
                                [](byway::dns_request &request, std::string_view) { return request.fail("").status(); })
            .value();
    }
    byway::proxy_selector direct() const
    {
        return byway::proxy_selector::make(engine, [](byway::proxy_request &request,
                                                      std::string_view) { return request.add_direct().status(); })
            .value();
    }
    byway::address address(const json &base, const json &change) const
    {
        const auto from = [&](const char *name) -> const json & { return change.contains(name) ? change : base; };
        const std::string scheme = text(from("scheme"), "scheme"), host = text(from("host"), "host");
        std::string identity;
        for (const char *part : {"tls", "verifier", "pinner", "connection_specs", "specs"})
            identity += std::string(part) + "=" + get(change, part).dump() + ";";
        std::vector<std::string> protocols = {"h2", "http/1.1"};
        if (get(change, "protocols").is_array())
            protocols = get(change, "protocols").get<std::vector<std::string>>();
        byway::proxy proxy;
        byway::address_options options;
        options.scheme = scheme;
        options.host = host;
        options.port = static_cast<int>(number(from("port"), "port"));
        options.tls_identity_bytes = identity;
        options.dns = &names[change.contains("dns")];
        options.proxy_selector = &choosers[change.contains("selector")];
        options.authenticator = change.contains("authenticator") || change.contains("proxy_authenticator") ? 2 : 1;
        options.protocols = protocols;
        const json &explicit_proxy = get(change, "proxy");
        if (explicit_proxy.is_object())
            proxy = proxy_of(explicit_proxy);
        else if (explicit_proxy == "DIRECT")
            options.direct = true;
        else if (!explicit_proxy.is_null())
            proxy = byway::proxy::make(BYWAY_PROXY_HTTP, "other", 1).value();
        options.proxy = proxy ? &proxy : nullptr;
        return byway::address::make(engine, options).value();
    }
};

void address_equality(const json &one)
{
    const pool pool;
    const auto a = pool.address(get(one, "base"), json::object()),
               b = pool.address(get(one, "base"), get(one, "change"));
    json got = {{"equal", a == b}, {"equal_non_host", a.equal_non_host(b)}, {"same_hash", nullptr}};
    if (has(get(one, "expect"), "same_hash"))
        got["same_hash"] = std::hash<byway::address>()(a) == std::hash<byway::address>()(b);
    same(got, get(one, "expect"), "equality");
}

void address_to_string(const json &one)
{
    const auto engine = engine_with(BYWAY_COMPAT_OKHTTP_5);
    same(address_of(engine, get(one, "address"), get(one, "explicit_proxy")).text().value(), expected(one), "text");
}

void recover_decision(const json &one)
{
    const std::string phase = text(one, "phase");
    byway::failed_call call;
    call.failure = failure_of(get(one, "failure"));
    call.phase = phase == "connect" ? BYWAY_PHASE_TCP : phase == "tls" ? BYWAY_PHASE_TLS : BYWAY_PHASE_EXCHANGE;
    const std::pair<bool, std::uint32_t> bits[] = {
        {flag(one, "retry_enabled", true), BYWAY_CALL_RETRY_ENABLED},
        {flag(one, "one_shot_body"), BYWAY_CALL_ONE_SHOT},
        {call.phase == BYWAY_PHASE_EXCHANGE, BYWAY_CALL_SENT},
        {flag(one, "exchange_failed", true), BYWAY_CALL_EXCHANGE_FAILED},
        {flag(one, "more_routes", true), BYWAY_CALL_MORE_ROUTES},
    };
    for (const auto &[set, bit] : bits)
        call.flags |= set ? bit : 0;
    const int answer = engine_with(compat_of(one)).recover(call).value();
    same(answer == BYWAY_RECOVER_RETRY, get(get(one, "expect"), "retry"), "retry");
}

void tls_retry_decision(const json &one)
{
    same(byway::retry_tls(failure_of(get(one, "failure"))), get(get(one, "expect"), "retry"), "retry");
}

void track_failure(const json &one)
{
    byway::failed_exchange exchange;
    exchange.successes = static_cast<std::uint64_t>(number(one, "success_count"));
    exchange.refused_before = static_cast<std::uint32_t>(number(one, "refused_before"));
    exchange.failure = has(one, "failure") ? failure_of(get(one, "failure")) : -1;
    exchange.flags = (flag(one, "multiplexed") ? BYWAY_EXCHANGE_MULTIPLEXED : 0u) |
                     (flag(one, "call_canceled") ? BYWAY_EXCHANGE_CALL_CANCELED : 0u) |
                     (text(one, "via") != "DIRECT" ? BYWAY_EXCHANGE_PROXIED : 0u);
    const std::uint32_t told = byway::track(exchange).value();
    same({{"no_new_exchanges", (told & BYWAY_TELL_NO_NEW_EXCHANGES) != 0},
          {"route_failure_count", (told & BYWAY_TELL_ROUTE_FAILURE) != 0 ? 1 : 0},
          {"db_failed", (told & BYWAY_TELL_DATABASE) != 0},
          {"selector_notified", (told & BYWAY_TELL_PROXY_SELECTOR) != 0}},
         get(one, "expect"), "track");
}

void told(const json &one, int compat, const json &expect)
{
    static const std::pair<const char *, std::uint32_t> bits[] = {{"listener_connect_failed", BYWAY_TELL_FAILED_EVENT},
                                                                  {"selector_notified", BYWAY_TELL_PROXY_SELECTOR},
                                                                  {"db_failed", BYWAY_TELL_DATABASE},
                                                                  {"next_route_tried", BYWAY_TELL_NEXT_ROUTE}};
    const std::string phase = text(one, "phase");
    byway::failed_attempt attempt;
    attempt.compat = compat;
    attempt.failure = failure_of(get(one, "failure"));
    attempt.phase = phase == "dns" || phase == "planning"   ? BYWAY_PHASE_DNS
                  : phase == "tunnel" || phase == "connect" ? BYWAY_PHASE_TUNNEL
                  : phase == "tls"                          ? BYWAY_PHASE_TLS
                                                            : BYWAY_PHASE_TCP;
    attempt.proxy_kind = text(one, "via") == "DIRECT" ? BYWAY_PROXY_DIRECT : BYWAY_PROXY_HTTP;
    attempt.from_selector = text(one, "proxy_from") == "selector";
    attempt.retry_enabled = flag(one, "retry_enabled", true);
    const std::uint32_t got = byway::report(attempt).value();
    for (const auto &[name, bit] : bits)
        if (has(expect, name))
            same((got & bit) != 0, get(expect, name), std::string(name) + " under compat " + std::to_string(compat));
}

void connect_failure_report(const json &one)
{
    told(one, BYWAY_COMPAT_OKHTTP_5, get(one, "expect"));
    told(one, BYWAY_COMPAT_OKHTTP_3, get(get(one, "expect"), "v3131"));
}

const kinds here = {
    {"okhttp", "canonical_host", canonical_host},
    {"okhttp", "looks_like_ip", looks_like_ip},
    {"okhttp", "inet_order", inet_order},
    {"okhttp", "socket_host", socket_host},
    {"okhttp", "route_to_string", route_to_string},
    {"okhttp", "address_equality", address_equality},
    {"okhttp", "address_to_string", address_to_string},
    {"okhttp", "recover_decision", recover_decision},
    {"okhttp", "tls_retry_decision", tls_retry_decision},
    {"okhttp", "track_failure", track_failure},
    {"okhttp", "connect_failure_report", connect_failure_report},
};

} // namespace
} // namespace conform
