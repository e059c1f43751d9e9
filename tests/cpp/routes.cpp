// Addresses, proxies, routes, selections; resolvers and proxy selectors, built in and by callback.
#include "parts.hpp"

#include <netinet/in.h>
#include <thread>
#if __cplusplus >= 202002L
#include <span>
#endif

void routes()
{
    byway::engine engine = byway::engine::make().value();
    int alive = 0;
    {
        auto dns =
            byway::dns::make(engine, [mark = counted(alive)](byway::dns_request &request, std::string_view host) {
                return host == "a.example" ? request.add("192.0.2.1 192.0.2.2").status()
                                           : request.fail("not mine").status();
            }).value();
        byway::address address = address_of(engine, dns);
        byway::selection first = byway::selector::make(engine, address).value().next(1s).value();
        OK(first.size() == 2, "two routes");
        byway::route kept = byway::keep(first[0]);
        OK(engine.connect_failed(kept, BYWAY_FAILURE_REFUSED).has_value() && engine.should_postpone(kept),
           "a reported failure is remembered");
        byway::selector again = byway::selector::make(engine, address).value();
        byway::selection second = again.next().value();
        OK(second.size() == 1 && second[0] != kept, "what failed stands behind");
        int count = 0;
        byway::selection third = again.next().value();
        for (byway::route_ref route : third)
            count += route.postponed() && route == kept;
        OK(count == 1, "and comes last");
        OK(!again.next().value(), "an empty owner says that nothing is left");
        OK(again.explain().value().find("postponed") != std::string::npos, "the explanation says why");
        OK(again.explain(BYWAY_FORMAT_JSON).value().front() == '{', "and as JSON");

        OK(third.more() && third.next().value() == kept && !third.next().value() && !third.more(),
           "the cursor gives each route once");
        auto records = first.records();
        OK(records.size() == 2 && records[1].hop_port == 443 && byway::view(records[0].host) == "a.example",
           "routes as records");
        byway::route_record room[1];
        OK(first.records(room).value() == 2, "too little room is no error");
        std::vector<byway::route_record> rows(3);
        OK(first.records(rows).value() == 2 && rows[1].hop_port == 443, "a vector is room");
#if __cplusplus >= 202002L
        OK(first.records(std::span<byway::route_record>(rows).first(1)).value() == 2, "so is a span of the standard's");
#endif
        byway::route_record plan[4];
        OK(byway::selector::plan(engine, address, plan).value() == 2 && byway::ip(plan[1].hop_ip) == kept.hop().ip,
           "every route in one call, what failed last");

        auto refused = byway::selector::make(engine, address_of(engine, dns, "b.example")).value().next();
        OK(!refused && refused.error().subject() == "b.example", "a failure names its host");
        OK(alive == 1, "one callback object while it may be called");

        sockaddr_storage to;
        OK(kept.sockaddr(&to, sizeof to).value() == sizeof(sockaddr_in) &&
               kept.sockaddr(&to, 1).error().code() == BYWAY_E_LIMIT,
           "a route fills a socket address");
        OK(kept.target().name == "a.example" && kept.target().port == 443 && kept.socket_address().port == 443,
           "its target");
        OK(kept.proxy_kind() == BYWAY_PROXY_DIRECT && !kept.proxy() && !kept.requires_tunnel() && !kept.service(),
           "DIRECT");

        auto made = byway::route::make(address, {}, byway::ip::v4(192, 0, 2, 1), 443).value();
        OK(made == kept && made.hash() == kept.hash(), "a route from its parts is the same");
        const byway::route_ref mine[] = {made};
        OK(byway::coalesces(kept, address, mine, byway::peer()).value() == 0, "a connection serves its own address");
        byway::address other = address_of(engine, dns, "c.example");
        OK(byway::coalesces(kept, other, mine, byway::peer()).value() == BYWAY_NO_COALESCING_NOT_MULTIPLEXED,
           "and says why not another");
        OK(address != other && address.equal_non_host(other) && address.host() == "a.example" &&
               address.port() == 443 && address.uri() == "https://a.example/" &&
               address.hash() == address_of(engine, dns).hash(),
           "addresses compare");
        OK(address.text().value().find("a.example:443") != std::string::npos, "and show themselves");

        auto exported = engine.database_export().value();
        auto failed = engine.database().value();
        OK(failed.size() == 1 && failed[0].hop_port == 443 && failed[0].failure == BYWAY_FAILURE_REFUSED,
           "the database in records");
        byway::engine next = byway::engine::make().value();
        OK(next.database_import(exported).value() == 1 && next.should_postpone(kept),
           "and taken over by another engine");
        OK(next.database_import("{").error().line() == 1, "but not when it is no JSON");
        OK(engine.connected(kept) && !engine.should_postpone(kept), "a connection clears it");
        const auto before = engine.network_changed().value();
        OK(engine.network_changed().value() == before + 1, "networks are counted");
    }
    OK(engine.shutdown(5s).status() == BYWAY_OK && alive == 0, "destroyed exactly once");

    auto literal = byway::ip::parse("fe80::1%7").value();
    OK(literal.family() == 6 && literal.scope_id() == 7 && literal.bytes().size() == 16, "a literal with a zone");
    byway::ip row[] = {byway::ip::v4(192, 0, 2, 1), byway::ip::v4(192, 0, 2, 2), literal};
    OK(byway::order(row) && row[0] == literal && byway::order(row, BYWAY_FIRST_FAMILY_V4) && row[0].family() == 4,
       "families alternate");
    OK(byway::canonical_host("EXAMPLE.com").value() == "example.com" && byway::is_literal("192.0.2.1") &&
           !byway::is_literal("example.com"),
       "hosts are canonical");
    auto inside = byway::filter::make("allow 192.0.2.0/24").value();
    OK(inside.allows(row[0]) && !inside.allows(byway::ip::v4(10, 0, 0, 1)) && !inside.allows({}), "a filter judges");
    OK(!byway::filter::public_only().value().allows(byway::ip::v4(127, 0, 0, 1)), "loopback is not public");
}

void resolvers()
{
    byway::engine engine = byway::engine::make().value();
    std::thread helper;
    auto later = byway::dns::make(engine, [&](byway::dns_request &request, std::string_view) {
                     helper = std::thread([asked = request]() mutable {
                         asked.add(byway::ip::v4(192, 0, 2, 7)).value();
                         asked.finish().value();
                     });
                     return BYWAY_PENDING;
                 }).value();
    auto got = byway::selector::make(engine, address_of(engine, later)).value().next(30s);
    helper.join();
    OK(got && got->size() == 1, "an answer from another thread");

    auto only = std::make_unique<std::string>("192.0.2.6");
    auto owning = byway::dns::make(engine, [only = std::move(only)](byway::dns_request &request, std::string_view) {
                      return request.add(*only).status();
                  }).value();
    OK(byway::selector::make(engine, address_of(engine, owning)).value().next(30s).value().size() == 1,
       "a callback may own what cannot be copied");

    auto rich = byway::dns::make(engine, [](byway::dns_request &request, std::string_view, const byway::call &call) {
                    byway::service_record record;
                    record.alpn = {"h3", "h2"};
                    record.ech = "\x01\x02";
                    const byway::ip hints[] = {byway::ip::v4(192, 0, 2, 3)};
                    record.hints = hints;
                    request.add_service(record).value();
                    request.add({byway::ip::v4(192, 0, 2, 3), byway::ip::v4(192, 0, 2, 4)}).value();
                    request.family_done(4).value();
                    const bool knows = call.engine() && call.tag() == 42 && call.id() != 0 && call.deadline();
                    return knows ? request.finish().status() : BYWAY_E_STATE;
                }).value();
    byway::selector_options options;
    options.tag = 42;
    auto routes = byway::selector::make(engine, address_of(engine, rich), options).value().next(30s);
    OK(routes, "a callback knows its call");
    auto service = routes ? (*routes)[0].service() : std::nullopt;
    OK(service && service->ech == "\x01\x02" && service->alpn.size() == 2 && service->alpn[1] == "h2" &&
           service->hints.size() == 1 && service->hints[0] == byway::ip::v4(192, 0, 2, 3),
       "service records arrive at the routes");

    std::uint64_t asked = 0, canceled = 0;
    byway::dns_request open;
    auto slow = byway::dns::make(
                    engine,
                    [&](byway::dns_request &request, std::string_view) {
                        asked = request.id();
                        open = request;
                        return BYWAY_PENDING;
                    },
                    [&](std::uint64_t id) { canceled = id; })
                    .value();
    auto selector = byway::selector::make(engine, address_of(engine, slow)).value();
    OK(selector.next(0ms).error().code() == BYWAY_E_TIMEOUT && !open.canceled(), "nobody has answered yet");
    selector.cancel();
    OK(selector.next(0ms).error().code() == BYWAY_E_CANCELED, "a cancelled selector says so");
    selector = byway::selector();
    OK(open.canceled() && open.add("192.0.2.1").error().code() == BYWAY_E_CANCELED, "a late answer is harmless");
    open = byway::dns_request();
    OK(engine.shutdown(30s).status() == BYWAY_OK && canceled == asked && asked != 0, "who was asked is told");

    byway::engine other = byway::engine::make().value();
    OK(byway::dns::system(other), "the system's resolver");
    OK(byway::dns::hosts(other, "192.0.2.1\n300.1.2.3 x").error().line() > 0, "a bad hosts text says where");
}

namespace {

std::string proxies(const byway::engine &engine, const byway::result<byway::proxy_selector> &chooser, const char *url)
{
    std::string all, why;
    auto list = engine.proxies_for_url(chooser.value(), url, 30s, nullptr, &why);
    if (!list)
        return std::string(list.error().name());
    for (const byway::proxy &one : *list)
        all += (one ? one.text() : "DIRECT") + " ";
    return why.front() == '{' ? all : "no explanation";
}

void built_in(byway::engine &engine)
{
    using byway::proxy_selector;
    const auto fixed =
        proxy_selector::fixed(engine, {byway::proxy::make(BYWAY_PROXY_HTTP, "p", 1).value(), {}}).value();
    OK(proxies(engine, fixed, "http://x/") == "http://p:1 DIRECT ", "a URL is asked about without connecting");
    const byway::bypass_options list("*.corp;10.0.0.0/8");
    const auto outside = proxy_selector::bypass(engine, list, fixed);
    OK(proxies(engine, outside, "http://a.corp/") == "DIRECT " &&
           proxies(engine, outside, "http://x/") == "http://p:1 DIRECT ",
       "exceptions");
    OK(proxies(engine, proxy_selector::per_scheme(engine, {{"https", fixed}}), "http://x/") == "DIRECT " &&
           proxies(engine, proxy_selector::per_scheme(engine, {{"https", fixed}}), "https://x/") ==
               "http://p:1 DIRECT ",
       "by scheme");
    const auto rules = proxy_selector::rules(engine, {{"*.corp", {}}, {"x", fixed}});
    OK(proxies(engine, rules, "http://a.corp/") == "DIRECT " &&
           proxies(engine, rules, "http://y/") == "BYWAY_E_PROXY_SELECTOR",
       "by rules, without a silent DIRECT");
    OK(proxies(engine, proxy_selector::windows(engine, "http=w:2", "<local>"), "http://x.example/") == "http://w:2 ",
       "of Windows");
    byway::system_options system;
    system.set_environment({{"http_proxy", "http://e:3"}});
    auto settings = proxy_selector::system(engine, system).value();
    OK(proxies(engine, settings, "http://x.example/") == "http://e:3 " && !settings.diagnostics().value().empty() &&
           !settings.script_url(),
       "of the system, and where they come from");
    system.set_environment({{"http_proxy", "http://e:4"}});
    OK(settings.set_system(system) && settings.refresh() &&
           proxies(engine, settings, "http://x.example/") == "http://e:4 ",
       "other settings");
    OK(settings.set_script("").error().code() == BYWAY_E_STATE, "which have no script");
    OK(engine.bad_proxies().value() == "[]", "no proxy failed");
    OK(engine.mark_proxy(byway::proxy::make(BYWAY_PROXY_HTTP, "e", 4).value()) &&
           engine.bad_proxies().value().find("\"port\":4") != std::string::npos,
       "one that the program tried itself");
    OK(engine.forget_bad_proxies() && engine.bad_proxies().value() == "[]", "and it is forgotten");
    if (!byway::has_feature("script")) {
        tap::skip("scripts", "built without scripts");
        return;
    }
    byway::pac_options options;
    options.url = byway::str("http://pac.example/proxy.pac");
    const char script[] = "function FindProxyForURL(u, h) { return 'PROXY ' + myIpAddress() + ':5'; }";
    const byway::ip own[] = {byway::ip::v4(192, 0, 2, 5)};
    options.set_my_addresses(own);
    std::string asked;
    auto fetched = proxy_selector::pac(engine, options, [&](proxy_selector &self, std::string_view url) {
        asked = url;
        return self.set_script(script).status();
    });
    OK(proxies(engine, fetched, "http://x.example/") == "http://192.0.2.5:5 " &&
           asked == "http://pac.example/proxy.pac" && fetched->script_url() == asked,
       "a script that is fetched");
    auto failing = proxy_selector::pac(engine, options, [](proxy_selector &self, std::string_view) {
        return self.script_failed("no network").status();
    });
    auto why = engine.proxies_for_url(*failing, "http://x.example/", 30s);
    OK(!why && why.error().what().find("no network") != std::string::npos, "or cannot be");
    options.source = byway::str("function FindProxyForURL(");
    OK(proxy_selector::pac(engine, options).error().code() == BYWAY_E_PAC, "a text that is none");
}

} // namespace

void choosers()
{
    byway::engine engine = byway::engine::make().value();
    auto dns = byway::dns::hosts(engine, "192.0.2.1 a.example\n192.0.2.9 p.example\n").value();
    auto proxy = byway::proxy::make(BYWAY_PROXY_HTTP, "P.example", 3128).value();
    auto secret = proxy.with_credentials("u", "p").value();
    OK(proxy.host() == "p.example" && proxy.port() == 3128 && proxy.kind() == BYWAY_PROXY_HTTP && !proxy.ip(),
       "a proxy");
    OK(proxy != secret && secret.text() == "http://p.example:3128", "credentials count and are not shown");
    OK(byway::proxy().kind() == BYWAY_PROXY_DIRECT && byway::proxy() == byway::proxy(), "no proxy is DIRECT");
    auto resolved = byway::proxy::resolved(BYWAY_PROXY_SOCKS5, "", byway::ip::v4(192, 0, 2, 8), 1080).value();
    OK(resolved.ip() == byway::ip::v4(192, 0, 2, 8), "a resolved one");

    auto first_proxy = [&](const byway::proxy_selector &chooser) {
        auto selection = byway::selector::make(engine, address_of(engine, dns, "a.example", &chooser))
                             .and_then([](byway::selector s) { return s.next(30s); });
        return selection && *selection ? (*selection)[0].proxy().text() : std::string("nothing");
    };
    OK(first_proxy(byway::proxy_selector::fixed(engine, {secret, byway::proxy()}).value()) == "http://p.example:3128",
       "a fixed list");
    OK(first_proxy(byway::proxy_selector::direct(engine).value()).empty() == byway::proxy().text().empty(), "DIRECT");
    OK(first_proxy(byway::proxy_selector::environment(engine, {{"https_proxy", "http://p.example:1"}}).value()) ==
           "http://p.example:1",
       "from given variables");
    OK(byway::proxy_selector::environment(engine, {}, "no such").error().code() == BYWAY_E_ARGUMENT,
       "an unknown dialect");
    OK(byway::proxy_selector::environment(engine), "from the process's own");
    OK(first_proxy(
           byway::proxy_selector::properties(engine, {{"https.proxyHost", "p.example"}, {"https.proxyPort", "2"}})
               .value()) == "http://p.example:2",
       "from Java properties");
    const auto by_properties = [&](bool web_sockets) {
        const std::initializer_list<byway::setting> given = {{"https.proxyHost", "p.example"}};
        const auto chooser = web_sockets ? byway::proxy_selector::properties(engine, given, true)
                                         : byway::proxy_selector::properties(engine, given);
        return engine.proxies_for_url(chooser.value(), "wss://a.example/", 30s).value().front();
    };
    OK(by_properties(true), "which may speak of web sockets");
    OK(!by_properties(false), "but do so only when asked");
    if (byway::has_feature("script"))
        OK(first_proxy(byway::proxy_selector::script(engine, "proxy.pac",
                                                     "function FindProxyForURL(u, h) { return 'PROXY p.example:3'; }")
                           .value()) == "http://p.example:3",
           "from a script");
    else
        tap::skip("from a script", "built without scripts");

    std::string told;
    int failed = -1;
    auto own = byway::proxy_selector::make(
                   engine,
                   [&](byway::proxy_request &request, std::string_view uri) {
                       told = uri;
                       request.add(secret).value();
                       request.add(BYWAY_PROXY_SOCKS5H, "p.example", 1080).value();
                       request.add_direct().value();
                       return request.finish().status();
                   },
                   [&](std::string_view, byway::route_ref, int failure, int) { failed = failure; })
                   .value();
    auto selector = byway::selector::make(engine, address_of(engine, dns, "a.example", &own)).value();
    auto routes = selector.next(30s).value();
    OK(told == "https://a.example/" && routes[0].requires_tunnel() && routes[0].proxy() == secret, "a callback's list");
    engine.connect_failed(routes[0], BYWAY_FAILURE_TIMEOUT, ETIMEDOUT).value();
    OK(failed == BYWAY_FAILURE_TIMEOUT, "which hears of failures");

    built_in(engine);
    auto passing = byway::proxy_selector::make(engine, [](byway::proxy_request &, std::string_view) {
                       return BYWAY_PASS;
                   }).value();
    OK(first_proxy(passing) == byway::proxy().text(), "nobody behind it: DIRECT");
    OK(engine.set_proxy_selector(byway::proxy_selector::fixed(engine, {proxy}).value()) &&
           first_proxy(passing) == "http://p.example:3128",
       "the engine's own answers for one that passes");
    OK(engine.set_proxy_selector({}) && first_proxy(passing) == byway::proxy().text(), "until it is taken back");
}
