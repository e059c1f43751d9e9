// Weights, and what a chain does with lists, threads, notifications and sequences of changes.
#include "chains.hpp"

#include <atomic>
#include <map>
#include <thread>

namespace conform {
namespace {

// --- weights
// -------------------------------------------------------------------------------------------------------------

constexpr std::int64_t WALL = 5000000000000;

// Smooth weighted round robin gives each provider exactly its share, so counts tell the weight.
void weighs(const std::string &first, int weight)
{
    const int other = 50, rounds = 20 * (weight + other);
    world w(BYWAY_DIALECT_DUBBO_3, "consumer://127.0.0.1/S?router=-default", {first, "dubbo://10.0.0.2:1/S?weight=50"},
            {{}, {}, nullptr, [](void *) { return WALL; }});
    byway::pick_options options;
    options.balance = BYWAY_BALANCE_ROUND_ROBIN;
    w.set_method("m");
    int got = 0;
    for (int i = 0; i < rounds; ++i)
        got += w.chain.pick(w.call, options).value().tag == 1;
    same(got, 20 * weight, "picks of " + std::to_string(rounds));
}

std::string whole(double value) { return std::to_string(static_cast<std::int64_t>(value)); }

void warmup(const json &one)
{
    const double uptime = number(one, "uptime_ms");
    if (uptime == 0)
        skip("an uptime of 0 does not come to the formula");
    weighs("dubbo://10.0.0.1:1/S?weight=" + whole(number(one, "weight")) +
               "&warmup=" + whole(number(one, "warmup_ms")) + "&timestamp=" + whole(static_cast<double>(WALL) - uptime),
           get(one, "expect").get<int>());
}

void weight(const json &one)
{
    const json &expect = get(one, "expect");
    if (!expect.is_object())
        skip("weights of whole registries are a cluster's of clusters");
    for (const json &row : get(one, "invokers")) {
        long long ago = 0;
        need(std::sscanf(text(row, "timestamp").c_str(), "now-%lldms", &ago) == 1, "no timestamp");
        weighs("dubbo://10.0.0.1:1/S?timestamp=" + std::to_string(WALL - ago),
               static_cast<int>(number(expect, "value")));
    }
}

// --- lists
// ---------------------------------------------------------------------------------------------------------------

std::string url_named(const std::string &name) { return contains(name, "://") ? name : "dubbo://" + name + ":1/S"; }

void list_ops(const json &one)
{
    const json &input = get(one, "input");
    json rows = json::array(), got = json::array();
    for (const char *part : {"base", "tail"})
        for (const json &name : get(input, part))
            rows.push_back(url_named(name.get<std::string>()));
    world w(BYWAY_DIALECT_BYWAY, "consumer://10.0.0.1/S", rows);
    std::int64_t priority = 0;
    for (const json &op : get(input, "ops")) {
        const std::string drop = op[0] == "drop_by_router" ? "//" + op[1].get<std::string>() + ":" : "";
        const auto router = byway::router::make(w.engine, "op" + std::to_string(priority), priority,
                                                [&rows, drop](byway::router_request &request) -> byway_status {
                                                    request.keep_if([&](std::uint64_t tag) {
                                                        const std::string url = rows[tag - 1].get<std::string>();
                                                        return drop.empty() || !contains(url, drop);
                                                    });
                                                    return BYWAY_OK;
                                                })
                                .value();
        w.chain.add_router(router).value();
        ++priority;
    }
    w.set_method("m");
    for (const json &row : w.rows()) {
        const std::string url = rows[row.get<std::size_t>()].get<std::string>();
        got.push_back(url.substr(8, url.find(':', 8) - 8));
    }
    same(got, get(get(one, "expect"), "members"), "members");
}

} // namespace

void replaced_while_routing(const json &members, int readers, int writers, int rounds)
{
    world w(BYWAY_DIALECT_BYWAY, "consumer://10.0.0.1/S", {"dubbo://a:1/S"});
    std::vector<byway::invokers> lists;
    for (const json &names : members) {
        std::vector<std::string> urls;
        std::vector<std::uint64_t> tags; // The hundreds of a tag say which list it is of.
        for (const json &name : names) {
            tags.push_back((lists.size() + 1) * 100 + tags.size());
            urls.push_back(url_named(name.get<std::string>()));
        }
        lists.push_back(byway::invokers::make(w.engine, urls, tags).value());
    }
    (void)w.chain.set_invokers(lists.at(0)).value();
    std::atomic<int> errors{0}, empty{0}, mixed{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < readers; ++i)
        threads.emplace_back([&] {
            const auto call = byway::invocation::make("m").value();
            std::uint64_t tags[16];
            for (int round = 0; round < rounds; ++round) {
                const auto routed = w.chain.route_tags(call, tags);
                errors += !routed;
                empty += routed && routed->total == 0;
                for (std::size_t k = 1; routed && k < routed->total && k < 16; ++k)
                    mixed += tags[k] / 100 != tags[0] / 100;
            }
        });
    for (int i = 0; i < writers; ++i)
        threads.emplace_back([&] {
            for (int round = 0; round < rounds; ++round)
                errors += !w.chain.set_invokers(lists[static_cast<std::size_t>(round) % lists.size()]);
        });
    for (std::thread &thread : threads)
        thread.join();
    need(errors == 0 && empty == 0 && mixed == 0,
         std::to_string(errors) + " errors, " + std::to_string(empty) + " empty, " + std::to_string(mixed) + " mixed");
}

namespace {

void concurrency(const json &one)
{
    const json &input = get(one, "input");
    // Rounds in place of seconds: the same number of races on every machine.
    replaced_while_routing(get(input, "lists"), static_cast<int>(number(input, "threads_route", 1)),
                           static_cast<int>(number(input, "threads_set_invokers", 1)),
                           1000 * static_cast<int>(number(input, "seconds", 1)));
}

// --- a registry's notifications
// --------------------------------------------------------------------------------------------

// An entry is what its key says; among providers only URLs of providers count.
void category(const json &one)
{
    world w(BYWAY_DIALECT_DUBBO_3, "consumer://10.0.0.9/S", json::array());
    auto source = byway::source::memory(w.engine).value();
    source.put("S/providers", text(get(one, "invokers")[0], "url")).value();
    w.chain.bind(source, std::chrono::seconds(30)).value();
    w.set_method("m");
    same(w.rows().size(), text(get(one, "expect"), "category") == "providers" ? 1 : 0, "providers");
}

void notify(const json &one)
{
    const json &expect = get(one, "expect"), &invokers = get(expect, "invokers"), &entries = get(one, "invokers");
    const bool routers = get(expect, "url_routers").is_array();
    if (has(expect, "category") || has(expect, "dropped"))
        return category(one);
    world w(routers ? BYWAY_DIALECT_DUBBO_2_7 : BYWAY_DIALECT_DUBBO_3, "consumer://10.0.0.9/S", json::array());
    auto source = byway::source::memory(w.engine).value();
    source.put("S/providers", "dubbo://10.0.0.1:20880/S\ndubbo://10.0.0.2:20880/S").value();
    source
        .put("S/routers", routers ? "route://0.0.0.0/S?router=condition&force=true&rule=%3D%3E%20host%3D10.0.0.1" : "")
        .value();
    w.chain.bind(source, std::chrono::seconds(30)).value();
    w.set_method("m");
    same(w.rows().size(), routers ? 1 : 2, "before");
    if (entries.empty() || !has(entries[0], "url"))
        source.remove("S/providers").value();
    else
        source.put(routers ? "S/routers" : "S/providers", text(entries[0], "url")).value();
    same(w.rows().size(), !routers && invokers.is_number() ? invokers : json(2), "after");
}

// --- sequences
// -------------------------------------------------------------------------------------------------------------

struct ear {
    std::string name;
    byway::listener listener;
    int heard = 0, errors = 0;
};

struct play {
    static constexpr const char *KEY = "com.foo.BarService::.condition-router";

    world w{BYWAY_DIALECT_BYWAY, "consumer://10.20.3.1/com.foo.BarService", {"dubbo://10.0.0.1:1/S"}};
    byway::queue queue = w.engine.queue();
    std::deque<ear> ears;
    json got = json::object();

    play() { listen(""); }

    void listen(const std::string &name)
    {
        ear &made = ears.emplace_back();
        made.name = name;
        made.listener = w.engine
                            .listen(
                                [&made](const byway::event &event) {
                                    ++made.heard;
                                    made.errors += event.status() < 0;
                                },
                                byway::events({BYWAY_EVENT_RULE}))
                            .value();
    }

    void set_invokers(const json &names)
    {
        std::vector<std::string> urls;
        std::vector<std::uint64_t> tags;
        for (const json &name : names) {
            urls.push_back(url_named(name.get<std::string>()));
            tags.push_back(tags.size() + 1);
        }
        if (urls.empty())
            return;
        if (auto list = byway::invokers::make(w.engine, urls, tags))
            (void)w.chain.set_invokers(*list);
    }

    void route(const json &names)
    {
        w.set_method("m");
        const auto routed = w.chain.route(w.call);
        if (!routed) {
            if (routed.error().code() == BYWAY_E_SHUTDOWN)
                got["error"] = "closed";
            return;
        }
        json kept = json::array();
        for (const std::uint64_t tag : routed->tags()) {
            const json &name = names[tag - 1];
            kept.push_back(contains(name.get<std::string>(), "://") ? json(tag - 1) : name);
        }
        got["kept"] = kept;
    }

    void step(const json &words)
    {
        const std::string word = words[0].get<std::string>();
        const json names = words.size() > 1 ? words[1] : json::array();
        if (word == "push_rule")
            (void)w.engine.set_rule(KEY, words[1].get<std::string>());
        else if (word == "push_event")
            (void)(text(words[1], "type") == "delete" ? w.engine.remove_rule(KEY)
                                                      : w.engine.set_rule(KEY, get(words[1], "value").dump()));
        else if (word == "set_invokers")
            set_invokers(names);
        else if (word == "route") {
            set_invokers(names);
            route(names);
        } else if (word == "destroy")
            w.engine.shutdown(std::chrono::seconds(30)).value();
        else if (word == "add_listener")
            listen(words[2].get<std::string>());
        else if (word == "remove_listener") {
            for (ear &one : ears)
                if (one.name == words[2].get<std::string>())
                    one.listener.remove();
        } else if (word == "publish")
            w.engine.set_rule(KEY, "conditions: ['=> host=10.0.0.1']").value();
        else
            need(word == "create", "unknown step " + word);
        // Events are told by whoever polls.
        std::vector<byway::completion> records;
        (void)queue.poll(records);
    }
};

void sequence(const json &one)
{
    const std::string area = text(one, "area");
    const json &steps = get(get(one, "input"), "steps"), &expect = get(one, "expect");
    if (area != "chain" && area != "condition")
        return engine_sequence(one);
    for (const json &step : steps)
        if (step[0] == "source_down")
            skip("a centre that can be lost needs a server");
    play play;
    for (const json &step : steps)
        play.step(step);
    json got = play.got;
    const int errors = play.ears[0].errors;
    if (expect.contains("called")) {
        got["called"] = json::array();
        for (const ear &ear : play.ears)
            if (!ear.name.empty() && ear.heard > 0)
                got["called"].push_back(ear.name);
    }
    if (expect.contains("errors"))
        got["errors"] = errors;
    if (expect.contains("events"))
        got["events"] = json(static_cast<std::size_t>(errors), "rule_error");
    if (expect.contains("panic"))
        got["panic"] = false;
    same(got, expect, "outcome");
}

const kinds here = {
    {"dubbo_chain", "lb-warmup", warmup}, {"dubbo_chain", "lb-weight", weight}, {"dubbo_chain", "notify", notify},
    {"bugs", "list_ops", list_ops},       {"bugs", "concurrency", concurrency}, {"bugs", "sequence", sequence},
};

} // namespace
} // namespace conform
