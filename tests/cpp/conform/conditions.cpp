// Condition and affinity cases: rules set by key or by URL, seen through what a chain routes.
#include "chains.hpp"

#include <cmath>

namespace conform {
namespace {

bool crash(const json &expect) { return text(get(expect, "error"), "code") == "panic"; }

// `condition://` with a rule and the parameters of a case.
byway::result<void> set_static(world &w, const std::string &rule, const json &parameters)
{
    std::string url = "condition://0.0.0.0/S?rule=" + encoded(rule);
    for (const auto &[name, value] : parameters.items())
        url += "&" + name + "=" + (value.is_string() ? value.get<std::string>() : value.dump());
    return w.chain.set_rule_urls({url});
}

void about_methods(bool named, bool rule)
{
    if (!named && rule)
        skip("a rule about methods, a call without one");
}

void string_as(const json &one, int dialect, const json &expect)
{
    const json &rows = get(one, "invokers");
    if (!rows.empty() && rows[0] == "")
        skip("a list of empty URLs is refused whole");
    const std::string rule = text(one, "rule");
    world w(dialect, consumer_with(text(one, "consumer_url"), ALONE + std::string("condition")), rows);
    const auto done = set_static(w, rule, get(one, "params"));
    if (has(expect, "error") && !crash(expect)) {
        need(done.status() == BYWAY_E_RULE && !done.error().causes().empty() && done.error().causes()[0].line() > 0,
             status(done.error()) + ", want a refusal with its place");
        return;
    }
    done.value();
    about_methods(w.set_call(get(one, "invocation")), contains(rule, "method"));
    const json got = w.rows();
    if (!crash(expect)) {
        same(got, expect, "rows");
        return;
    }
    bool known = false;
    for (const json &other : get(one, "expect_by_impl"))
        known |= equal(got, other);
    need(known, "an answer that nobody gives");
}

// Whether the left side of a rule holds: with a right side that nobody meets and force, nothing is left.
bool when_holds(const std::string &rule, int dialect, const std::string &consumer, const json &call)
{
    world w(dialect, consumer_with(consumer, ALONE + std::string("condition")), {"dubbo://1.1.1.1:1/S"});
    const auto arrow = rule.find("=>");
    set_static(w, (arrow == rule.npos ? "" : rule.substr(0, arrow)) + " => nowhere=1", {{"force", true}}).value();
    w.set_call(call);
    return w.rows().empty();
}

void when_as(const json &one, int dialect, const json &expect)
{
    const json &call = get(one, "invocation");
    about_methods(has(call, "method"), contains(text(one, "rule"), "method"));
    same(when_holds(text(one, "rule"), dialect, text(one, "consumer_url"), call), expect == true, "holds");
}

std::string interface_of(const std::string &url)
{
    const std::string named = parameter(url, "interface");
    const auto path = url.find("://");
    if (!named.empty() || path == url.npos)
        return named;
    const auto slash = url.find('/', path + 3);
    return slash == url.npos ? "" : url.substr(slash + 1, url.find('?', slash) - slash - 1);
}

std::string service_key(int dialect, int kind, const std::string &url)
{
    return byway::service_rule_key(kind, interface_of(url), parameter(url, "version"), parameter(url, "group"), dialect)
        .value();
}

// Whether a pattern fits a value: as a rule's right side, which sees the consumer's URL, or else as its left side.
bool fits(const json &one, int dialect)
{
    const std::string pattern = text(one, "pattern"), value = text(one, "value"), consumer = text(one, "param_url");
    if (pattern.empty() || !has(one, "value"))
        skip("a rule cannot say an empty pattern");
    if (value.empty())
        skip("an empty parameter is none");
    if (pattern[0] == '$' && consumer.empty())
        skip("a reference always has a consumer");
    if (consumer.empty() && text(one, "side") != "then")
        return when_holds("x=" + pattern + " =>", dialect, "consumer://1.1.1.1/S?x=" + value, {{"method", "m"}});
    world w(dialect, consumer_with(consumer, ALONE + std::string("condition")), {"dubbo://1.1.1.1:1/S?x=" + value});
    set_static(w, "=> x=" + pattern, {{"force", true}}).value();
    w.set_method("m");
    return !w.rows().empty();
}

// Refused with a place; or else in force where upstream's rule is valid and enabled, and strict where it is forced: of
// that shows what a left side that holds leaves when nobody meets the right one.
void parse_as(const json &one, int dialect, const json &expect)
{
    const std::string rule = text(one, "rule"), consumer = "consumer://1.1.1.1/S?a=b&region=beijing&version=v1&tag=tag1";
    const json found =
        json::parse(byway::check_rule(BYWAY_RULE_CONDITION, rule, {}, BYWAY_FORMAT_JSON, dialect).value());
    world w(dialect, consumer, {"dubbo://1.1.1.1:1/S"});
    const std::string key = service_key(dialect, BYWAY_RULE_CONDITION, consumer);
    const auto taken = w.engine.set_rule(key, rule);
    same(!taken, get(found, "refused"), "refused as the check says");
    if (has(expect, "error")) {
        need(!taken, "an error was expected");
        for (const json &problem : get(found, "problems"))
            need(number(problem, "line") > 0 && !text(problem, "message").empty(), problem.dump());
        return;
    }
    taken.value();
    json router;
    const json status = json::parse(w.chain.status().value());
    for (const json &other : get(status, "routers"))
        if (text(other, "key") == key)
            router = other;
    const bool unknown = expect.contains("rule") && expect["rule"].is_null();
    same(get(router, "in_force"), flag(expect, "valid", true) && flag(expect, "enabled", true) && !unknown, "in force");
    w.set_method("m");
    const json &conditions = get(expect, "conditions");
    if (flag(router, "in_force") && conditions.is_array() && conditions.at(0) == "a=b => c=d")
        same(w.rows().size(), flag(expect, "force") ? 0 : 1, "left");
}

// Shares of a weighted draw: within five deviations.
void shares(const world &w, const json &one, const json &outcomes, const char *share)
{
    const int repeat = static_cast<int>(number(one, "repeat", 20000));
    std::vector<int> counts(outcomes.size());
    for (int i = 0; i < repeat; ++i) {
        const json rows = w.rows();
        std::size_t at = 0;
        while (at < outcomes.size() && !equal(rows, get(outcomes[at], "indices")))
            ++at;
        need(at < outcomes.size(), "rows that are none of the outcomes");
        ++counts[at];
    }
    for (std::size_t at = 0; at < outcomes.size(); ++at) {
        const double p = number(outcomes[at], share), slack = 5 * std::sqrt(repeat * p * (1 - p)) + 1e-6 * repeat;
        need(std::fabs(counts[at] - p * repeat) <= slack,
             "outcome " + std::to_string(at) + ": " + std::to_string(counts[at]) + " of " + std::to_string(repeat));
    }
}

void events_as(const json &one, int dialect, int kind, const json &expect)
{
    const std::string consumer = text(one, "consumer_url", "consumer://127.0.0.1/com.foo.BarService");
    const bool of_provider = text(one, "router") == "provider-app";
    if (of_provider && dialect == BYWAY_DIALECT_DUBBO_2_7)
        skip("2.7 has no such router");
    world w(dialect, consumer_with(consumer, ""), get(one, "invokers"));
    const std::string key = of_provider ? byway::application_rule_key(kind, "demo-provider", dialect).value()
                                        : service_key(dialect, kind, consumer);
    bool methods = false;
    byway::result<void> done = BYWAY_OK;
    for (const json &event : get(one, "events")) {
        methods |= contains(text(event, "content"), "method");
        done = text(event, "type") == "DELETED" ? w.engine.remove_rule(key)
                                                : w.engine.set_rule(key, text(event, "content"));
    }
    about_methods(w.set_call(get(one, "invocation")), methods);
    if (has(expect, "outcomes"))
        shares(w, one, get(expect, "outcomes"), dialect == BYWAY_DIALECT_BYWAY ? "p_ideal" : "p_dubbo");
    else if (crash(expect))
        need(!done && w.rows().size() == w.list.size(), "a text upstream dies of is taken");
    else
        same(w.rows(), expect, "rows");
}

void key_as(const json &one, int dialect, const json &expect)
{
    same(service_key(dialect, BYWAY_RULE_CONDITION, text(one, "url")), expect.get<std::string>() + ".condition-router",
         "key");
}

// The built-in routers of the dialect stand in the status in the order the case wants.
void order(const json &one)
{
    static const std::pair<const char *, const char *> names[] = {{"AddressInvokersSelector", "address"},
                                                                  {"AppRouter", "app"},
                                                                  {"ServiceRouter", "service"},
                                                                  {"TagRouter", "tag"},
                                                                  {"MockInvokersSelector", "mock"}};
    const std::string implementation = text(one, "impl");
    const int dialect = starts(implementation, "dubbo-3.2") || starts(implementation, "dubbo-3.3")
                          ? BYWAY_DIALECT_DUBBO_3
                      : starts(implementation, "dubbo-2.7.8") ? BYWAY_DIALECT_DUBBO_2_7
                      : implementation == "dubbo-go"          ? BYWAY_DIALECT_DUBBO_GO
                                                              : -1;
    if (dialect < 0)
        skip("no dialect of byway");
    const world w(dialect, "consumer://127.0.0.1/S?application=a&router=default,address", json::array());
    const json status = json::parse(w.chain.status().value());
    const json &routers = get(status, "routers");
    std::size_t behind = 0;
    for (const json &want : get(one, "expect")) {
        std::string name = want.get<std::string>();
        for (const auto &[upstream, ours] : names)
            if (name == upstream)
                name = ours;
        std::size_t at = behind;
        while (at < routers.size() && text(routers[at], "name") != name)
            ++at;
        if (at < routers.size()) {
            behind = at + 1;
            continue;
        }
        // Not among the built-in ones behind the last: then it must not be one of them at all.
        for (const json &router : routers)
            need(text(router, "name") != name, name + " comes too early");
    }
}

void form_as(const json &one, const std::string &name, const json &expect)
{
    const std::string form = text(one, "form");
    const int dialect = dialect_named(name);
    if (dialect < 0) {
        if (contains(name, "/StateRouter"))
            skip("the bare condition");
        fail("no dialect for " + name);
    }
    if (form == "string")
        string_as(one, dialect, expect);
    else if (form == "when")
        when_as(one, dialect, expect);
    else if (form == "events")
        events_as(one, dialect, BYWAY_RULE_CONDITION, expect);
    else if (form == "affinity")
        events_as(one, dialect, BYWAY_RULE_AFFINITY, expect);
    else if (form == "rulekey")
        key_as(one, dialect, expect);
    else if (form == "glob" || form == "range")
        same(fits(one, dialect), expect, "fits");
    else if (form == "parse")
        parse_as(one, dialect, expect);
    else
        fail("unknown form " + form);
}

// Runs a case under every implementation it names; it counts when one of them can be run.
void condition(const json &one)
{
    if (text(one, "form") == "chain-order")
        return order(one);
    const json &by = get(one, "expect_by_impl"), &all = get(by, "all");
    bool ran = false;
    std::string why;
    const auto run = [&](const std::string &name, const json &expect) {
        try {
            form_as(one, name, expect);
            ran = true;
        } catch (const skipped &left_out) {
            why = left_out.why;
        } catch (const failure &mismatch) {
            fail("[" + name + "] " + mismatch.why);
        }
    };
    if (all.is_array())
        for (const json &name : all)
            run(name.get<std::string>(), get(one, "expect"));
    else if (by.is_object())
        for (const auto &[name, expect] : by.items())
            run(name, expect);
    else
        run("dubbo-3.3", get(one, "expect"));
    if (has(one, "expect_byway"))
        run("byway", get(one, "expect_byway"));
    if (!ran)
        skip(why);
}

// --- reports
// -----------------------------------------------------------------------------------------------------------

// The call of a report: a member, or the input itself.
json call_of(const json &input)
{
    json call = get(input, "invocation").is_object() ? get(input, "invocation") : input;
    if (!has(call, "method"))
        call["method"] = "m";
    return call;
}

void condition_route(const json &one)
{
    const json &input = get(one, "input");
    string_as({{"rule", text(input, "rule")},
               {"consumer_url", text(input, "consumer", "consumer://10.9.9.9/s")},
               {"params", {{"force", flag(input, "force")}}},
               {"invocation", call_of(input)},
               {"invokers", get(input, "invokers")}},
              BYWAY_DIALECT_BYWAY, get(get(one, "expect"), "kept"));
}

void condition_when(const json &one)
{
    const json &input = get(one, "input");
    const json rules = get(input, "rules").is_array() ? get(input, "rules") : json::array({get(input, "rule")});
    const json calls = get(input, "invocations").is_array() ? get(input, "invocations") : json::array({call_of(input)});
    json matched = json::array();
    for (const json &rule : rules)
        for (const json &call : calls)
            matched.push_back(when_holds(rule.get<std::string>(), BYWAY_DIALECT_BYWAY,
                                         text(input, "consumer", "consumer://10.9.9.9/s"), call_of(call)));
    same(matched, get(get(one, "expect"), "matched"), "matched");
}

void rule_texts(const json &one)
{
    static const char key[] = "S::.condition-router";
    const json &texts = get(get(one, "input"), "texts"), &results = get(get(one, "expect"), "result");
    for (std::size_t i = 0; i < texts.size(); ++i) {
        const std::string given = texts[i].get<std::string>(),
                          wanted = results[i].is_string() ? results[i].get<std::string>() : "";
        world w(BYWAY_DIALECT_BYWAY, "consumer://1.1.1.1/S", {"dubbo://1.1.1.1:1/S?region=b"});
        w.engine.set_rule(key, "conditions: ['=> region=a']\nforce: true").value();
        const auto done = w.engine.set_rule(key, given);
        w.set_method("m");
        const std::size_t left = w.rows().size();
        const bool good = wanted == "delete"                      ? done && left == 1
                        : wanted == "error" || wanted == "decide" ? !done && done.error().line() > 0 && left == 0
                                                                  : done.has_value();
        need(good, given + ": " + status(done.error()) + ", " + std::to_string(left) + " left, want " + wanted);
    }
}

void affinity_as(const json &one, int dialect, const json &want)
{
    const json &input = get(one, "input");
    const std::string consumer = text(input, "consumer", "consumer://10.9.9.9/s");
    world w(dialect, consumer, get(input, "invokers"));
    const auto done =
        w.engine.set_rule(service_key(dialect, BYWAY_RULE_AFFINITY, consumer),
                          "configVersion: v3.1\nenabled: true\naffinityAware: {key: " + text(input, "key") +
                              ", ratio: " + get(input, "ratio").dump() + "}\n");
    w.set_method("m");
    if (dialect == BYWAY_DIALECT_BYWAY)
        same(!done, get(get(one, "expect"), "events").is_array(), "the rule is refused");
    same(w.rows(), want, "rows");
}

void affinity(const json &one)
{
    const json &expect = get(one, "expect");
    affinity_as(one, BYWAY_DIALECT_BYWAY, get(expect, "kept"));
    if (has(expect, "compat_dubbo_go"))
        affinity_as(one, BYWAY_DIALECT_DUBBO_GO, get(expect, "compat_dubbo_go"));
}

const kinds here = {
    {"dubbo_condition", "condition", condition}, {"bugs", "condition_route", condition_route},
    {"bugs", "condition_when", condition_when},  {"bugs", "condition_when_list", condition_when},
    {"bugs", "rule_parse_list", rule_texts},     {"bugs", "affinity", affinity},
};

} // namespace
} // namespace conform
