// byway's own rules of bugs.jsonl: proxies that cannot be, and what one selector gives.
#include "words.hpp"

#include <map>

namespace conform {
namespace {

std::string error_name(byway_status status)
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
        return std::string(byway::status_name(status));
    }
}

json error_object(const std::string &name)
{
    json shown = json::object();
    shown["error"] = name;
    return shown;
}

void make_proxy(const json &one)
{
    const json &input = get(one, "input");
    const int kind = text(input, "type") == "SOCKS" ? BYWAY_PROXY_SOCKS5H : BYWAY_PROXY_HTTP;
    const auto proxy = byway::proxy::make(kind, text(input, "host"), static_cast<int>(number(input, "port")));
    json got = json::object();
    if (proxy)
        got["text"] = proxy->text();
    else
        got = error_object(error_name(proxy.error().code()));
    same(got, get(one, "expect"), "proxy");
}

// One answer of a selector: a Selection, or an error.
struct given {
    byway::selection selection;
    std::string error, about;
};

using round = std::vector<given>;

struct script {
    const json &input;
    bool own_name; // the proxy's own name is answered, whatever the case says
    std::uint64_t now_ns = 0;
    std::map<std::string, std::size_t> next; // how many answers of a name's sequence were given
    json asked = json::array(), reported = json::array();
    byway::engine engine;
    byway::dns dns;
    byway::proxy_selector chooser;
    byway::listener listener;
    byway::address address;

    // An engine as the case wants it; `open` has a proxy selector that fails or names nobody mean DIRECT.
    script(const json &one, bool open)
        : input(get(one, "input")),
          own_name(get(get(one, "expect"), "dns_calls").is_array())
    {
        byway::engine_options options;
        options.source_data = this;
        options.monotonic_ns = [](void *data) { return static_cast<script *>(data)->now_ns; };
        options.database_capacity = static_cast<std::uint32_t>(number(input, "cap", 4096));
        options.postpone_for_ms = static_cast<std::int64_t>(number(input, "ttl_s", 300) * 1000);
        if (!flag(input, "fast_fallback", true))
            options.routing_flags |= BYWAY_ROUTING_NO_FAST_FALLBACK;
        if (open) {
            options.routing_flags |= BYWAY_ROUTING_EMPTY_IS_DIRECT;
            options.on_proxy_selector_error = BYWAY_ON_PROXY_SELECTOR_ERROR_DIRECT;
        }
        engine = byway::engine::make(options).value();
        dns = byway::dns::make(engine, [this](byway::dns_request &request, std::string_view host) {
                  return lookup(request, std::string(host));
              }).value();
        chooser = byway::proxy_selector::make(engine, [this](byway::proxy_request &request, std::string_view) {
                      return choose(request);
                  }).value();
        listener = engine
                       .listen(
                           [this](const byway::event &event) {
                               if (auto error = event.error())
                                   reported.push_back(error_object(error_name(error->code())));
                           },
                           byway::events({BYWAY_EVENT_CONNECT_FAILED}))
                       .value();
        address = address_of_url(text(input, "url", "http://h/"));
    }
    script(const script &) = delete;
    ~script() { (void)engine.shutdown(std::chrono::milliseconds(0)); }

    byway_status lookup(byway::dns_request &request, const std::string &host)
    {
        asked.push_back(host);
        json answers = get(get(input, "dns"), host);
        const json &sequence = get(get(input, "dns_sequence"), host);
        if (own_name && host == "p1")
            answers = {"192.0.2.77"};
        else if (sequence.is_array()) // The last answer stays.
            answers = sequence[std::min(next[host]++, sequence.size() - 1)];
        for (const auto &ip : ips_of(answers))
            request.add(ip).value();
        return request.finish().status();
    }

    // `HTTP p1:3128`, as these cases write a proxy.
    static byway::result<void> list_one(byway::proxy_request &request, const std::string &entry)
    {
        const auto space = entry.find(' '), colon = entry.rfind(':');
        if (space == entry.npos)
            return request.add_direct();
        const int kind = starts(entry, "SOCKS ") ? BYWAY_PROXY_SOCKS5H : BYWAY_PROXY_HTTP;
        return request.add(kind, entry.substr(space + 1, colon - space - 1), std::stoi(entry.substr(colon + 1)));
    }

    byway_status choose(byway::proxy_request &request) const
    {
        if (input.contains("selector_error"))
            return request.fail("scripted", BYWAY_E_ARGUMENT).status();
        if (!has(input, "proxies"))
            return request.add_direct().status();
        for (const json &item : get(input, "proxies")) {
            auto done = item.is_string() ? list_one(request, item.get<std::string>()) : request.add(byway::proxy_ref());
            if (!done)
                return done.status();
        }
        return request.finish().status();
    }

    byway::address address_of_url(const std::string &url) const
    {
        const auto colon = url.find("://");
        std::string scheme = url.substr(0, colon), rest = url.substr(colon + 3);
        rest = rest.substr(0, rest.find('/'));
        const auto port = rest.find(':');
        return address_of(
            engine,
            {{"scheme", scheme},
             {"host", rest.substr(0, port)},
             {"port", port == rest.npos ? (scheme == "https" ? 443 : 80) : std::stoi(rest.substr(port + 1))}},
            nullptr, &dns, &chooser);
    }

    // Everything one selector gives: Selections and errors, up to the end.
    round select_all()
    {
        auto selector = byway::selector::make(engine, address).value();
        round all;
        while (all.size() < 32) {
            auto next_one = selector.next(std::chrono::milliseconds(0));
            if (next_one && !*next_one)
                return all;
            given one;
            if (next_one)
                one.selection = std::move(*next_one);
            else {
                one.error = error_name(next_one.error().code());
                one.about = next_one.error().subject();
            }
            all.push_back(std::move(one));
        }
        fail("a selector without end");
    }

    void fail_routes()
    {
        for (const auto &hop : ips_of(get(input, "failed"))) {
            const auto route = byway::route::make(address, {}, hop, static_cast<std::uint16_t>(address.port())).value();
            engine.connect_failed(route, BYWAY_FAILURE_REFUSED, 111).value();
        }
        // What was reported by the case itself is no word of the selector's.
        reported = json::array();
        now_ns = 1000000;
    }
};

std::string with_port(const byway::endpoint &at)
{
    return (at.ip.family() == 6 ? "[" + at.ip.text() + "]" : at.ip.text()) + ":" + std::to_string(at.port);
}

// A route in the notation a case uses: as much as its expectation says.
std::string written(byway::route_ref route, const json &like)
{
    const std::string notation = like.is_string() ? like.get<std::string>() : "";
    const auto hop = route.hop();
    const auto target = route.target();
    const auto proxy = route.proxy();
    if (!hop.ip)
        return "unresolved hop";
    if (!proxy)
        return starts(notation, "DIRECT@") ? "DIRECT@" + with_port(hop) : hop.ip.text();
    const bool http = proxy.kind() == BYWAY_PROXY_HTTP || proxy.kind() == BYWAY_PROXY_HTTPS;
    const std::string place =
        (http ? "HTTP " : "SOCKS ") + std::string(proxy.host()) + ":" + std::to_string(proxy.port());
    if (!contains(notation, "->"))
        return place + "@" + hop.ip.text();
    if (!target.ip)
        return place + " -> " + std::string(target.name) + ":" + std::to_string(target.port) + " unresolved";
    return place + " -> " + with_port({target.ip, target.port});
}

const json &item(const json &list, std::size_t i)
{
    static const json nothing;
    return list.is_array() && i < list.size() ? list[i] : nothing;
}

json shown(const given &one, const json &like)
{
    if (!one.selection) {
        json error = error_object(one.error);
        if (has(like, "host"))
            error["host"] = one.about;
        return error;
    }
    json all = json::array();
    for (std::size_t i = 0; i < one.selection.size(); ++i)
        all.push_back(written(one.selection[i], item(like, i).is_string() ? item(like, i) : item(like, 0)));
    return all;
}

// byway goes on in the same call where an entry cannot serve, and reports it: the events take the place of the errors.
json read_next(const script &script, const round &first, const json &want)
{
    const bool by_events = want.size() > 2 && has(want[0], "error");
    json all = by_events ? script.reported : json::array();
    for (const given &one : first) {
        if (by_events && !one.error.empty())
            return one.error;
        all.push_back(shown(one, item(want, all.size())));
    }
    all.push_back("end");
    return all;
}

json read_one(const script &script, const std::vector<round> &rounds, const std::string &key, const json &want)
{
    const round &first = rounds[0];
    json all = json::array();
    if (key == "next")
        return read_next(script, first, want);
    if (key == "order")
        return first.empty() ? json() : shown(first[0], want);
    if (key == "error")
        return first.empty() || first[0].error.empty() ? json() : json(first[0].error);
    if (key == "selections") {
        for (std::size_t i = 0; i < first.size(); ++i)
            all.push_back(first[i].error.empty() ? shown(first[i], item(want, i)) : error_object(first[i].error));
    } else if (key == "first_routes") {
        for (std::size_t i = 0; i < rounds.size(); ++i)
            all.push_back(!rounds[i].empty() && rounds[i][0].selection.size() > 0
                              ? json(written(rounds[i][0].selection[0], item(want, i)))
                              : json());
    } else if (key == "dns_calls") {
        // The origin's name must not be asked for; the proxy's own is another matter.
        for (const json &name : script.asked)
            if (name == std::string(script.address.host()))
                all.push_back(name);
    } else
        fail("no reading for " + key);
    return all;
}

// Runs a case as it stands; where the answer is OkHttp's policy (no proxies or a failing selector mean DIRECT) the
// default must fail closed, and the policy must give what the case says.
void route_selector(const json &one)
{
    const json &input = get(one, "input"), &proxies = get(input, "proxies");
    const json &expect = has(one, "expect_byway") ? get(one, "expect_byway") : get(one, "expect");
    const bool fails_closed = input.contains("selector_error") || (proxies.is_array() && proxies.empty());
    if (fails_closed) {
        script closed(one, false);
        const auto all = closed.select_all();
        need(all.size() == 1 && !all[0].error.empty(), "the default must fail closed");
    }
    script script(one, fails_closed);
    script.fail_routes();
    std::vector<round> rounds;
    for (int i = 0; i < number(input, "selections_count", 1); ++i)
        rounds.push_back(script.select_all());
    for (const auto &[key, want] : expect.items())
        same(read_one(script, rounds, key, want), want, key);
}

const kinds here = {{"bugs", "make_proxy", make_proxy}, {"bugs", "route_selector", route_selector}};

} // namespace
} // namespace conform
