// proxy.jsonl retry: where proxies that failed stand in later lists. Failures and successes are reported for the routes of
// a selector.
#include "proxies.hpp"

#include <algorithm>
#include <set>

namespace conform {
namespace {

const char *const WORDS[] = {"direct", "http", "https", "socks4", "socks4a", "socks5", "socks5h"};
const char WORKS[] = "http works.test:1";

using entries = std::vector<std::string>;

// `http host:port`, or none for `direct`.
byway::proxy proxy_of(const std::string &entry)
{
    const auto space = entry.find(' '), colon = entry.rfind(':');
    if (space == entry.npos)
        return {};
    const auto word = std::find(std::begin(WORDS), std::end(WORDS), entry.substr(0, space));
    need(word != std::end(WORDS), "no proxy is called " + entry);
    return byway::proxy::make(static_cast<std::int32_t>(word - WORDS), entry.substr(space + 1, colon - space - 1),
                              std::stoi(entry.substr(colon + 1)))
        .value();
}

// As these cases write an entry.
std::string entry_of(const byway::proxy &one)
{
    return one ? std::string(WORDS[one.kind()]) + " " + std::string(one.host()) + ":" + std::to_string(one.port())
               : "direct";
}

bool is_in(const json &texts, const std::string &text)
{
    return std::find(texts.begin(), texts.end(), json(text)) != texts.end();
}

struct memory {
    std::uint64_t now_ns = 0;
    byway::engine engine;

    memory(double at, const json &fallback)
    {
        set_clock(at);
        byway::engine_options options;
        options.source_data = this;
        options.monotonic_ns = [](void *data) { return static_cast<memory *>(data)->now_ns; };
        if (!fallback.is_null())
            options.bad_proxy_ms = static_cast<std::int64_t>(number(fallback, "delay_s") * 1000);
        engine = byway::engine::make(options).value();
    }
    memory(const memory &) = delete;
    ~memory() { (void)engine.shutdown(std::chrono::seconds(30)); }

    void set_clock(double seconds) { now_ns = static_cast<std::uint64_t>(seconds * 1e9); }

    byway::proxy_selector fixed(const entries &list) const
    {
        std::vector<byway::proxy> proxies;
        for (const std::string &entry : list)
            proxies.push_back(proxy_of(entry));
        return byway::proxy_selector::fixed(engine, proxies).value();
    }

    // One connection over a list: these entries fail when their turn comes, this one stands.
    void connection(const entries &list, const std::set<std::string> &failing, const std::string &standing)
    {
        const auto chooser = fixed(list);
        const auto dns = byway::dns::make(engine, [](byway::dns_request &request, std::string_view) -> byway_status {
                             request.add("192.0.2.1").value();
                             return BYWAY_OK;
                         }).value();
        byway::address_options where;
        where.host = "target.test";
        where.port = 80;
        where.dns = &dns;
        where.proxy_selector = &chooser;
        auto selector = byway::selector::make(engine, byway::address::make(engine, where).value()).value();
        while (selector.may_have_next()) {
            const auto selection = selector.next(std::chrono::seconds(1)).value();
            for (std::size_t i = 0; i < selection.size(); ++i) {
                const std::string entry = entry_of(byway::keep(selection[i]).proxy());
                if (failing.count(entry)) {
                    engine.connect_failed(selection[i], BYWAY_FAILURE_REFUSED, 111).value();
                } else if (entry == standing) {
                    engine.connected(selection[i]).value();
                    return;
                }
            }
        }
    }
};

void retry(const json &one)
{
    const json &given = get(one, "input"), &expect = get(one, "expect"), &fallback = get(given, "fallback");
    const json &events = get(given, "events"), &also = get(fallback, "also_bad");
    if (has(given, "fallbacks"))
        skip("marks of different length in one engine");
    // byway has no "never while bad" flag: a list without such an entry is what the flag asks for.
    entries list;
    for (const json &entry : get(given, "list"))
        if (!is_in(get(given, "bad_never_while_bad"), entry))
            list.push_back(entry);
    // Nobody tries what stands behind the entry that works.
    if (!fallback.is_null() && list.size() > 2 && is_in(also, list.back()) && list[0] != "direct")
        skip("an entry behind the one that works fails");
    const double at = number(given, "at_s");
    memory remembered(at, fallback);
    for (const json &bad : get(given, "bad"))
        remembered.connection({bad, WORKS}, {bad}, WORKS);
    if (!fallback.is_null()) {
        // Chromium's step "the first entry failed, go on behind it": it and those named beside it, then the first left.
        std::set<std::string> failing(also.begin(), also.end());
        failing.insert(list.at(0));
        const auto left = std::find_if(list.begin(), list.end(), [&](const auto &entry) { return !failing.count(entry); });
        remembered.connection(list, failing, left == list.end() ? "" : *left);
    }
    if (!events.empty()) {
        std::set<std::string> failing;
        std::string standing;
        for (const json &event : events) {
            const std::string word = event;
            if (starts(word, "fail "))
                failing.insert(word.substr(5));
            else if (starts(word, "ok "))
                standing = word.substr(3);
        }
        remembered.connection(list, failing, standing);
    }
    if (is_in(events, "network_changed"))
        remembered.engine.network_changed().value();
    remembered.set_clock(number(given, "ask_at_s", at));
    const auto asked = ask(remembered.engine, remembered.fixed(list), "http://target.test/");
    need(!asked.error, asked.first());
    const json bad = json::parse(remembered.engine.bad_proxies().value());
    if (has(expect, "order")) {
        json order = json::array();
        for (const byway::proxy &proxy : asked.list)
            order.push_back(entry_of(proxy));
        same(order, get(expect, "order"), "order");
    }
    if (has(expect, "marked")) {
        std::multiset<std::string> marked;
        for (const json &mark : bad)
            marked.insert(text(mark, "kind") + " " + text(mark, "host") + ":" + get(mark, "port").dump());
        const json &want = get(expect, "marked");
        same(json(marked), json(std::multiset<std::string>(want.begin(), want.end())), "marked");
    }
    if (has(expect, "delay_s"))
        same(bad.empty() ? json(0) : get(bad[0], "remaining_ms"), number(expect, "delay_s") * 1000, "delay");
}

const kinds here = {{"proxy", "retry", retry}};

} // namespace
} // namespace conform
