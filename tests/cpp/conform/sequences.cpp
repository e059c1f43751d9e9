// bugs.jsonl sequence, the first half: what an engine remembers of routes that failed, and who hears of it.
#include "chains.hpp"

namespace conform {
namespace {

struct remembered {
    json names, proxies, heard = json::array(), got = json::object();
    std::uint64_t now_ns = 0;
    byway::engine engine;
    byway::dns dns;
    byway::proxy_selector chooser;
    byway::address address;
    int selects = 0;

    explicit remembered(const json &input) : names(get(input, "dns")), proxies(get(input, "proxies"))
    {
        if (names.is_null())
            names = {{"h", {"192.0.2.1", "192.0.2.2"}}};
        byway::engine_options options;
        options.source_data = this;
        options.monotonic_ns = [](void *data) { return static_cast<remembered *>(data)->now_ns; };
        options.database_capacity = static_cast<std::uint32_t>(number(input, "cap"));
        if (has(input, "ttl_s"))
            options.postpone_for_ms = static_cast<std::int64_t>(number(input, "ttl_s") * 1000);
        engine = byway::engine::make(options).value();
        dns = byway::dns::make(engine, [this](byway::dns_request &request, std::string_view host) -> byway_status {
                  for (const json &ip : get(names, host))
                      request.add(ip.get<std::string>()).value();
                  return BYWAY_OK;
              }).value();
        if (!proxies.is_null())
            choose();
        address = new_address();
    }
    ~remembered() { (void)engine.shutdown(std::chrono::seconds(30)); }

    void choose()
    {
        for (const json &written : proxies) {
            const std::string place = written.get<std::string>().substr(5);
            names[place.substr(0, place.find(':'))] = {"192.0.2." + std::to_string(names.size())};
        }
        chooser = byway::proxy_selector::make(
                      engine,
                      [this](byway::proxy_request &request, std::string_view) -> byway_status {
                          for (const json &written : proxies) {
                              const std::string place = written.get<std::string>().substr(5);
                              const auto colon = place.find(':');
                              request.add(BYWAY_PROXY_HTTP, place.substr(0, colon), std::stoi(place.substr(colon + 1)))
                                  .value();
                          }
                          return BYWAY_OK;
                      },
                      [this](std::string_view, byway::route_ref route, int failure, int) {
                          const auto proxy = byway::keep(route).proxy();
                          heard.push_back({std::string(proxy.host()) + ":" + std::to_string(proxy.port()),
                                           failure == BYWAY_FAILURE_REFUSED ? "refused" : "another failure"});
                      })
                      .value();
    }

    byway::address new_address() const
    {
        byway::address_options where;
        where.host = "h";
        where.port = 80;
        where.dns = &dns;
        if (!proxies.is_null())
            where.proxy_selector = &chooser;
        return byway::address::make(engine, where).value();
    }

    // `r1` is the first route, another name its address.
    byway::route route_to(const std::string &name) const
    {
        const std::string ip = name[0] == 'r' ? "192.0.2." + name.substr(1) : name;
        return byway::route::make(address, {}, byway::ip::parse(ip).value(), 80).value();
    }

    void failed(const byway::route &route, int failure)
    {
        (void)byway_engine_connect_failed(engine.get(), route.get(), failure, BYWAY_PHASE_TCP, 111, nullptr);
    }

    // Everything one selector of an address gives.
    json selected(const byway::address &of) const
    {
        auto selector = byway::selector::make(engine, of).value();
        json all = json::array();
        for (;;) {
            const auto selection = selector.next(std::chrono::milliseconds(0)).value();
            if (!selection)
                return all;
            json ips = json::array();
            for (std::size_t i = 0; i < selection.size(); ++i)
                ips.push_back(selection[i].hop().ip.text());
            all.push_back(ips);
        }
    }

    void select()
    {
        const json all = selected(address);
        json short_names = json::array();
        for (const json &list : all) {
            json short_list = json::array();
            for (const json &ip : list) {
                const std::string written = ip;
                short_list.push_back(starts(written, "192.0.2.") ? "r" + written.substr(8) : written);
            }
            short_names.push_back(short_list);
        }
        got["select_" + std::to_string(++selects)] = all;
        got["selections"] = short_names;
    }

    void fail_many(std::uint32_t count)
    {
        std::uint64_t most = 0;
        for (std::uint32_t n = 0; n < count; ++n) {
            const std::string ip = "10." + std::to_string(n >> 16 & 255) + "." + std::to_string(n >> 8 & 255) + "." +
                                   std::to_string(n & 255);
            failed(byway::route::make(address, {}, byway::ip::parse(ip).value(), 80).value(), BYWAY_FAILURE_REFUSED);
            if (n % 1000 == 0 || n + 1 == count) {
                byway_engine_statistics statistics = BYWAY_ENGINE_STATISTICS_INIT;
                (void)byway_engine_stats(engine.get(), &statistics);
                most = std::max<std::uint64_t>(most, statistics.database_records);
            }
        }
        got["size_max"] = most;
    }

    void step(const json &words)
    {
        const std::string word = words[0];
        const json argument = words.size() > 1 ? words[1] : json();
        const std::string written = argument.is_string() ? argument.get<std::string>() : "";
        const std::string first = names["h"].is_array() ? names["h"][0].get<std::string>() : "";
        if (word == "fail_distinct_routes")
            fail_many(argument);
        else if (word == "advance_clock_s")
            now_ns += argument.get<std::uint64_t>() * 1000000000;
        else if (word == "notify_network_changed")
            (void)engine.network_changed();
        else if (word == "select") {
            if (argument.is_null()) // else the step says how the address is made
                select();
        } else if (word == "select through copy 2")
            got["first_route_postponed"] = selected(new_address()).at(0).at(0) != first;
        else {
            const auto route = route_to(starts(written, "first route") ? first : written);
            if (word == "report_connected")
                (void)engine.connected(route);
            else if (word == "report_exchange_failed")
                failed(route, BYWAY_FAILURE_IO);
            else if (word == "report_connect_failed" || word == "fail")
                failed(route, BYWAY_FAILURE_REFUSED);
            else if (word == "should_postpone")
                got["result"] = engine.should_postpone(route);
            else
                fail("step " + word);
        }
    }
};

// Which failures a proxy selector hears of.
void told(const json &one)
{
    remembered it(get(one, "input"));
    auto selector = byway::selector::make(it.engine, it.address).value();
    byway::route route;
    for (const json &words : get(get(one, "input"), "steps")) {
        if (words[0] == "next")
            route = byway::keep(selector.next(std::chrono::milliseconds(0)).value()[0]);
        else if (words[0] == "report_connected")
            (void)it.engine.connected(route);
        else if (words[0] == "report_connect_failed")
            it.failed(route, words[1] == "refused" ? BYWAY_FAILURE_REFUSED : BYWAY_FAILURE_IO);
        else
            fail("step " + words.dump());
    }
    same(it.heard, get(get(one, "expect"), "selector_connect_failed_calls"), "heard");
}

} // namespace

void engine_sequence(const json &one)
{
    const std::string area = text(one, "area");
    if (area == "selector")
        return told(one);
    if (area != "db")
        skip("no selector looks for wpad by names; bugs.jsonl wpad_names shows which ones would be asked");
    remembered it(get(one, "input"));
    for (const json &words : get(get(one, "input"), "steps"))
        it.step(words);
    for (const auto &[name, want] : get(one, "expect").items())
        same(get(it.got, name), want, name);
}

} // namespace conform
