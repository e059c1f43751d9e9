// Tag cases, the mock selector, plain chains.
#include "chains.hpp"

namespace conform {
namespace {

const extra APPLICATION = {"remote.application=of-the-case", "application=", nullptr, nullptr};

std::string alone(const char *router) { return ALONE + std::string(router); }

std::string tag_key(const json &invokers)
{
    const std::string url = invokers.empty() ? "" : url_of(invokers[0]);
    std::string application = parameter(url, "remote.application");
    if (application.empty())
        application = parameter(url, "application");
    return (application.empty() ? "of-the-case" : application) + ".tag-router";
}

void tag_as(const json &one, int dialect, const json &expect)
{
    const json &input = get(one, "route_input");
    const bool current = equal(get(one, "chain_generation"), get(one, "cache_generation"));
    json picked = json::array();
    for (const json &row : get(one, "invokers")) {
        bool taken = !input.is_array() || current;
        if (!current)
            for (const json &wanted : input)
                taken |= equal(wanted, get(row, "id"));
        if (taken)
            picked.push_back(row);
    }
    world w(dialect, consumer_with(text(one, "consumer_url"), alone("tag")), picked, APPLICATION);
    if (has(one, "rule")) // Some texts are refused: then the last good one stays.
        (void)w.engine.set_rule(tag_key(picked), text(one, "rule"));
    if (!w.set_call(get(one, "invocation")))
        w.set_method("m");
    if (get(expect, "count").is_number())
        same(w.rows().size(), get(expect, "count"), "count");
    else
        same(w.ids(), expect, "ids");
}

void tag(const json &one)
{
    tag_as(one, dialect_of(one), get(one, "expect"));
    if (!sane_of(one).is_null())
        tag_as(one, BYWAY_DIALECT_BYWAY, sane_of(one));
}

void lifecycle(const json &one)
{
    world w(dialect_of(one), consumer_with(text(one, "consumer_url"), alone("tag")), get(one, "invokers"), APPLICATION);
    w.set_call(get(one, "invocation"));
    for (const json &step : get(one, "expect")) {
        const std::string event = text(step, "event"), key = tag_key(get(one, "invokers"));
        const auto open = event.find('\''), close = event.rfind('\'');
        const std::string rule =
            open != event.npos && close > open ? event.substr(open + 1, close - open - 1) : text(one, "rule");
        (void)(starts(event, "DELETED") ? w.engine.remove_rule(key) : w.engine.set_rule(key, rule));
        same(w.ids(), get(step, "route"), event);
    }
}

// Level search, seen through routing: one provider per address, and the caller insisting or not.
void level(const json &addresses, const std::string &selector, bool force, int dialect, const json &expect,
           const json *want_name)
{
    json providers = json::array(), names = json::array(), places = json::array(), tags = json::array();
    for (const auto &[name, group] : addresses.items()) {
        tags.push_back({{"name", name}, {"addresses", group}});
        for (const json &address : group) {
            providers.push_back("dubbo://" + address.get<std::string>() + "/s");
            names.push_back(name);
            places.push_back(address);
        }
    }
    world w(dialect, consumer_with("consumer://10.0.1.1/s", alone("tag")), providers, APPLICATION);
    const json rule = {{"tags", tags}};
    w.engine.set_rule("of-the-case.tag-router", rule.dump()).value();
    w.set_method("m");
    w.set_attachment("dubbo.tag", selector);
    w.set_attachment("dubbo.force.tag", force ? "true" : "false");
    json found = json::array(), name;
    for (const json &row : w.rows()) {
        found.push_back(places[row.get<std::size_t>()]);
        if (name.is_null())
            name = names[row.get<std::size_t>()];
    }
    if (!found.empty() || !expect.is_null())
        same(found, expect, selector);
    if (want_name)
        same(name, *want_name, "name");
}

void tag_level(const json &one)
{
    const json &expect = get(one, "expect");
    const json &name = get(expect, "matched_name");
    level(get(one, "tag_addresses"), text(one, "selector"), flag(one, "force"), dialect_of(one),
          get(expect, "addresses"), expect.is_object() && expect.contains("matched_name") ? &name : nullptr);
}

void levels_reported(const json &one)
{
    const json &input = get(one, "input"), &selectors = get(input, "selectors");
    const json &want = get(get(one, "expect"), "addresses");
    for (std::size_t i = 0; i < selectors.size(); ++i)
        level(get(input, "tag_addresses"), selectors[i].get<std::string>(), flag(input, "force"), BYWAY_DIALECT_BYWAY,
              want[i], nullptr);
}

std::string as_text(const json &value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

void reported_as(const json &input, int dialect, const json &want)
{
    const std::string consumer = has(input, "consumer_tag")
                                   ? "consumer://10.0.1.1/s?dubbo.tag=" + text(input, "consumer_tag")
                                   : "consumer://10.0.1.1/s";
    world w(dialect, consumer_with(consumer, alone("tag")), get(input, "invokers"), APPLICATION);
    if (has(input, "rule"))
        (void)w.engine.set_rule(tag_key(get(input, "invokers")), text(input, "rule"));
    w.set_method("m");
    if (has(input, "tag"))
        w.set_attachment("dubbo.tag", as_text(get(input, "tag")));
    if (has(input, "force_tag"))
        w.set_attachment("dubbo.force.tag", as_text(get(input, "force_tag")));
    for (int i = 0; i < number(input, "calls", 1); ++i)
        same(w.rows(), want, "rows");
}

void reported(const json &one)
{
    const json &expect = get(one, "expect");
    reported_as(get(one, "input"), BYWAY_DIALECT_BYWAY, get(expect, "kept"));
    if (has(expect, "compat_dubbo_go"))
        reported_as(get(one, "input"), BYWAY_DIALECT_DUBBO_GO, get(expect, "compat_dubbo_go"));
}

void routed_as(const json &one, int dialect, const std::string &routers, const json &expect)
{
    world w(dialect, consumer_with(text(one, "consumer_url"), routers), get(one, "invokers"));
    if (!w.set_call(get(one, "invocation")))
        w.set_method("m");
    same(w.ids(), expect, "ids");
}

void mock(const json &one)
{
    const json &expect = get(one, "expect");
    if (expect.is_object()) {
        for (const auto &[name, want] : expect.items())
            routed_as(one, name == "java_2_7" ? BYWAY_DIALECT_DUBBO_2_7 : BYWAY_DIALECT_DUBBO_3, alone("mock"),
                      want.is_null() ? json::array() : want);
        return;
    }
    // dubbo-go has no mock selector.
    for (const int dialect : {BYWAY_DIALECT_BYWAY, BYWAY_DIALECT_DUBBO_3, BYWAY_DIALECT_DUBBO_2_7})
        routed_as(one, dialect, alone("mock"), expect);
}

const kinds here = {
    {"dubbo_chain", "tag", tag},
    {"dubbo_chain", "tag-lifecycle", lifecycle},
    {"dubbo_chain", "tag-level", tag_level},
    {"dubbo_chain", "mock", mock},
    {"bugs", "tag_route", reported},
    {"bugs", "tag_level", levels_reported},
};

} // namespace
} // namespace conform
