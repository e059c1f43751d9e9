// okhttp.jsonl route_selector and route_database: scripts of selections, reports and questions against one engine.
#include "handshakes.hpp"
#include "words.hpp"

namespace conform {
namespace {

template <class Proxy> json shown(const Proxy &proxy)
{
    if (!proxy)
        return json{{"type", "DIRECT"}};
    const bool http = proxy.kind() == BYWAY_PROXY_HTTP || proxy.kind() == BYWAY_PROXY_HTTPS;
    json all = {{"type", http ? "HTTP" : "SOCKS"}, {"host", std::string(proxy.host())}, {"port", proxy.port()}};
    // A host that is a literal is its own address.
    if (proxy.ip() && proxy.ip().text() != proxy.host())
        all["ip"] = proxy.ip().text();
    return all;
}

json error_json(const byway::error &why)
{
    const byway_status code = why.code();
    const char *kind = code == BYWAY_E_UNKNOWN_HOST || code == BYWAY_E_EMPTY_ANSWER ? "unknown_host"
                     : code == BYWAY_E_INVALID_PORT                                 ? "socket"
                     : code == BYWAY_E_ARGUMENT                                     ? "illegal_argument"
                     : code == BYWAY_E_NULL                                         ? "null_pointer"
                     : code == BYWAY_E_HOST                                         ? "runtime"
                     : code == BYWAY_DONE                                           ? "no_such_element"
                                                                                    : why.name();
    return {{"error", kind}, {"message", std::string(why.message())}};
}

const json nothing_left = {{"error", "no_such_element"}, {"message", ""}};

struct world {
    const json &test;
    byway::engine engine;
    byway::dns dns;
    byway::proxy_selector chooser;
    byway::listener listener;
    byway::address address;
    byway::selector selector;
    byway::selection selection;
    json names = json::object(); // host -> answers
    json proxies;                // what the proxy selector says
    json uris, asked, events;
    int select_count = 0;
    std::vector<std::pair<std::string, byway::route>> saved;

    explicit world(const json &one)
        : test(one),
          engine(engine_with(compat_of(one), flag(one, "fast_fallback", true) ? 0 : BYWAY_ROUTING_NO_FAST_FALLBACK)),
          proxies(get(one, "selector"))
    {
        dns = byway::dns::make(engine, [this](byway::dns_request &request, std::string_view host) {
                  return lookup(request, std::string(host));
              }).value();
        chooser = byway::proxy_selector::make(engine, [this](byway::proxy_request &request, std::string_view uri) {
                      return choose(request, uri);
                  }).value();
        listener = engine
                       .listen([this](const byway::event &event) { happened(event); },
                               byway::events({BYWAY_EVENT_PROXY_SELECT_START, BYWAY_EVENT_PROXY_SELECT_END,
                                              BYWAY_EVENT_DNS_START, BYWAY_EVENT_DNS_END}))
                       .value();
        names.update(get(one, "dns").is_object() ? get(one, "dns") : json::object());
    }
    world(const world &) = delete;
    ~world() { (void)engine.shutdown(std::chrono::milliseconds(0)); }

    byway_status lookup(byway::dns_request &request, const std::string &host)
    {
        asked.push_back(host);
        for (const json &item : get(names, host)) {
            const std::string literal = item.is_string() ? item.get<std::string>() : text(item, "ip");
            if (!literal.empty()) {
                request.add(ip_of(literal)).value();
                continue;
            }
            const std::string target = text(item, "target"), ech = unhex(text(item, "ech_hex"));
            const auto hints = ips_of(get(item, "hints"));
            byway::service_record record;
            record.target = target;
            record.port = static_cast<std::uint16_t>(number(item, "port"));
            record.ech = ech;
            record.hints = hints;
            request.add_service(record).value();
        }
        return request.finish().status();
    }

    byway_status choose(byway::proxy_request &request, std::string_view uri)
    {
        uris.push_back(std::string(uri));
        ++select_count;
        if (proxies.is_object())
            return request
                .fail(text(proxies, "message"),
                      text(proxies, "error") == "illegal_argument" ? BYWAY_E_ARGUMENT : BYWAY_E_HOST)
                .status();
        for (const json &item : proxies) {
            const std::string type = text(item, "type");
            auto done = byway::result<void>(BYWAY_OK);
            if (type == "DIRECT")
                done = request.add_direct();
            else if (!type.empty() && (!has(item, "ip") || number(item, "port") < 1))
                // No handle has port 0; an entry may, and is then one failed entry.
                done = request.add(type == "SOCKS" ? BYWAY_PROXY_SOCKS5H : BYWAY_PROXY_HTTP,
                                   text(item, has(item, "ip") ? "ip" : "host"), static_cast<int>(number(item, "port")));
            else
                done = request.add(proxy_of(item));
            if (!done)
                return done.status();
        }
        return request.finish().status();
    }

    void happened(const byway::event &event)
    {
        static const char *const names_of[] = {"proxy_select_start", "proxy_select_end", "dns_start", "dns_end"};
        json one = {{"event", names_of[event.kind()]}};
        one[event.kind() <= BYWAY_EVENT_PROXY_SELECT_END ? "url" : "host"] = std::string(event.subject());
        if (event.kind() == BYWAY_EVENT_PROXY_SELECT_END) {
            one["proxies"] = json::array();
            for (byway::proxy_ref proxy : event.proxies())
                one["proxies"].push_back(shown(proxy));
        }
        if (event.kind() == BYWAY_EVENT_DNS_END)
            one["ips"] = texts_of(event.ips());
        events.push_back(one);
    }

    json route_json(byway::route_ref route) const
    {
        const auto at = route.socket_address();
        json socket = json::object();
        if (at.ip)
            socket["ip"] = at.ip.text();
        else
            socket["unresolved_host"] = std::string(address.host());
        socket["port"] = at.port;
        json all = {{"proxy", shown(route.proxy())}, {"socket", socket}, {"requires_tunnel", route.requires_tunnel()}};
        const auto service = route.service();
        if (service && !service->ech.empty())
            all["ech_hex"] = hex(service->ech);
        return all;
    }

    byway::route route_named(const std::string &name) const
    {
        for (const auto &[saved_as, route] : saved)
            if (saved_as == name)
                return route;
        return {};
    }

    json new_selector(const json &step)
    {
        selection = byway::selection();
        selector = byway::selector();
        if (step.contains("selector"))
            proxies = get(step, "selector");
        if (!address || step.contains("address"))
            address = address_of(engine, get(step.contains("address") ? step : test, "address"),
                                 get(test, "explicit_proxy"), &dns, &chooser);
        auto made = byway::selector::make(engine, address);
        if (!made)
            return error_json(made.error());
        selector = std::move(*made);
        return json::object();
    }

    json next_selection()
    {
        selection = byway::selection();
        auto next = selector.next(std::chrono::milliseconds(0));
        if (!next)
            return error_json(next.error());
        if (!*next)
            return nothing_left;
        selection = std::move(*next);
        json routes = json::array();
        for (byway::route_ref route : selection)
            routes.push_back(route_json(route));
        return {{"routes", routes}};
    }

    json next_route(const json &step)
    {
        auto route = selection.next();
        if (!route)
            return error_json(route.error());
        if (!*route)
            return nothing_left;
        if (has(step, "save_as"))
            saved.emplace_back(text(step, "save_as"), byway::keep(*route));
        return {{"route", route_json(*route)}};
    }

    // The database's records name hops; the saved routes they belong to are recognised by them.
    json failed_routes() const
    {
        const auto records = engine.database().value();
        json routes = json::array();
        for (const auto &record : records)
            for (const auto &[name, route] : saved)
                if (route.hop().ip == byway::ip(record.hop_ip) && route.hop().port == record.hop_port &&
                    route.proxy_kind() == record.proxy_kind) {
                    routes.push_back(name);
                    break;
                }
        return {{"count", records.size()}, {"routes", routes}};
    }

    json perform(const json &step)
    {
        const std::string op = text(step, "op");
        const auto done = [](const byway::result<void> &what) {
            return what ? json::object() : error_json(what.error());
        };
        if (op == "new_selector")
            return new_selector(step);
        if (op == "has_next_selection")
            return {{"value", selector.may_have_next()}};
        if (op == "next_selection")
            return next_selection();
        if (op == "selection_has_next")
            return {{"value", selection.more()}};
        if (op == "next_route")
            return next_route(step);
        if (op == "failed_routes")
            return failed_routes();
        if (op == "connect_failed")
            return done(
                engine.connect_failed(route_named(text(step, "route")), BYWAY_FAILURE_IO, 0, BYWAY_PHASE_EXCHANGE));
        if (op == "connected")
            return done(engine.connected(route_named(text(step, "route"))));
        if (op == "should_postpone")
            return {{"value", engine.should_postpone(route_named(text(step, "route")))}};
        if (op == "set_dns")
            names.update(get(step, "dns"));
        else if (op == "clear_dns")
            names = json::object();
        else if (op == "mutate_selector_list")
            proxies = get(step, "proxies");
        else if (op == "selector_request_count")
            return {{"count", select_count}};
        else
            fail("unknown step " + op);
        return json::object();
    }

    void check(const std::string &what, const json &step, const json &got) const
    {
        const json &expect = get(step, "expect");
        for (const auto &[key, want] : expect.items()) {
            json have = get(got, key);
            if (key == "selector_uris")
                have = uris;
            else if (key == "dns_requests")
                have = asked;
            else if (key == "events")
                have = events;
            else if (key == "proxies") {
                have = nullptr;
                for (const json &event : events)
                    if (have.is_null())
                        have = get(event, "proxies");
            } else if (key == "message_contains") {
                need(contains(text(got, "message"), want.get<std::string>()), what + ": got " + text(got, "message"));
                continue;
            }
            same(have, want, what + ": " + key);
        }
        if (has(got, "error") && !has(expect, "error"))
            fail(what + ": " + text(got, "error") + " " + text(got, "message"));
    }
};

void run(const json &one)
{
    world world(one);
    int number = 0;
    for (const json &step : get(one, "steps")) {
        world.uris = world.asked = world.events = json::array();
        const json got = world.perform(step);
        world.check("step " + std::to_string(number++) + " " + text(step, "op"), step, got);
    }
}

const kinds here = {{"okhttp", "route_selector", run}, {"okhttp", "route_database", run}};

} // namespace
} // namespace conform
