// Words of rules seen through what they choose: addresses and matchers of tags, what texts are read as, keys, orders.
#include "chains.hpp"

namespace conform {
namespace {

// Whether a provider belongs to a tag; nothing when the rule is refused.
std::optional<bool> tagged(int dialect, json tag, const std::string &provider)
{
    tag["name"] = "t";
    json rule = {{"configVersion", "v3.0"}};
    rule["tags"] = json::array({tag});
    world w(dialect, "consumer://10.0.1.1/S?router=-default,tag", json::array({provider}),
            {"application=of-the-case", "application=", nullptr, nullptr});
    if (!w.engine.set_rule("of-the-case.tag-router", rule.dump()))
        return std::nullopt;
    w.set_method("m");
    w.set_attachment("dubbo.tag", "t");
    w.set_attachment("dubbo.force.tag", "true");
    return w.rows().size() == 1;
}

std::optional<bool> at_address(int dialect, const std::string &pattern, const std::string &host, int port)
{
    json tag = json::object();
    tag["addresses"] = json::array({pattern});
    return tagged(dialect, tag,
                  "dubbo://" + (contains(host, ":") ? "[" + host + "]" : host) + ":" + std::to_string(port) + "/S");
}

// Dubbo's matcher throws where it does not understand; a tag then has nobody there.
void ip(const json &one)
{
    const std::string function = text(one, "function"), pattern = text(one, "pattern"), host = text(one, "host");
    const int port = static_cast<int>(number(one, "port", 1));
    const json &expect = get(one, "expect"), &sane = sane_of(one);
    if (!has(one, "host"))
        skip("a provider always has a host");
    if (function == "expression2")
        skip("upstream's address without a port is no provider's");
    if (function == "range" && contains(pattern, "/"))
        skip("the range alone, in front of which a network is always looked for");
    if (starts(pattern, "0.0.0.0:"))
        skip("in a tag 0.0.0.0 and a port mean every host");
    const auto got = at_address(BYWAY_DIALECT_DUBBO_3, pattern, host, port);
    if (got || !expect.is_object())
        same(got.value_or(false), expect == true, "dubbo-3");
    if (!sane.is_null())
        same(at_address(BYWAY_DIALECT_BYWAY, pattern, host, port).value_or(false), sane == true, "byway");
}

std::optional<bool> parameter_fits(int dialect, const std::string &key, const json &matcher,
                                   const std::string &provider)
{
    json tag = json::object(), match = {{"key", key}};
    match["value"] = matcher;
    tag["match"] = json::array({match});
    return tagged(dialect, tag, provider);
}

void param_match(const json &one)
{
    const json &matcher = get(one, "matcher");
    same(parameter_fits(dialect_of(one), text(matcher, "key"), get(matcher, "value"), url_of(get(one, "invokers")[0]))
             .value_or(false),
         get(one, "expect") == true, "fits");
}

void string_match(const json &one)
{
    const json &matcher = get(one, "matcher");
    json expect = get(one, "expect"), input = get(one, "input");
    const int dialect = dialect_of(one);
    if (has(expect, "error")) {
        // Upstream learns at the first call what a reader says at once.
        need(!parameter_fits(dialect, "k", matcher, "dubbo://10.0.0.1:1/S?k=b"), "the rule is taken");
        return;
    }
    if (dialect == BYWAY_DIALECT_DUBBO_GO) {
        const std::string url = "dubbo://10.0.0.1:1/S?" + (input.is_string() ? "k=" + input.get<std::string>() : "a=b");
        same(parameter_fits(dialect, "k", matcher, url).value_or(false), expect == true, "fits");
        return;
    }
    // Of attachments, which may be absent.
    if (has(expect, "parsed")) {
        // A number was read as its text, so that text fits.
        input = text(get(expect, "parsed"), "exact");
        expect = true;
    }
    json block = json::object(), call = {{"method", "m"}, {"attachments", json::object()}};
    block["attachments"]["dubboContext"]["k"] = matcher;
    if (input.is_string())
        call["attachments"]["k"] = input;
    block_fits(dialect, block, call, expect);
}

// A rule that counts says who is gray; one that does not leaves nobody gray.
bool holds_for_gray(std::int32_t dialect, const std::string &rule)
{
    world w(dialect, "consumer://10.0.1.1/S", json::array({"dubbo://192.168.0.1:20000/S?application=test-app"}));
    w.engine.set_rule("test-app.tag-router", rule).value();
    w.set_call({{"method", "m"}, {"attachments", {{"dubbo.tag", "gray"}, {"dubbo.force.tag", "true"}}}});
    return !w.rows().empty();
}

void tag_parse(const json &one)
{
    const json &expect = get(one, "expect");
    const json rows =
        get(one, "invokers").empty() ? json::array({"dubbo://10.0.0.1:1/S?application=a"}) : get(one, "invokers");
    world w(dialect_of(one), "consumer://10.0.1.1/S", rows);
    const std::string key = text(status_of(w.chain, "tag"), "key");
    const auto done = w.engine.set_rule(key, text(one, "rule"));
    if (has(expect, "config_key"))
        same(key, get(expect, "config_key"), "key");
    if (has(expect, "valid")) {
        done.value();
        same(holds_for_gray(dialect_of(one), text(one, "rule")), get(expect, "valid"),
             "a call for gray gets the provider that is");
    }
    const json &groups = get(expect, "tag_to_addresses");
    for (const auto &[name, group] : groups.items()) {
        json tag = json::object();
        tag["addresses"] = group;
        same(tagged(dialect_of(one), tag, "dubbo://" + group[0].get<std::string>() + "/S").value_or(false), true, name);
    }
}

void condition_config(const json &one)
{
    const json &input = get(one, "input"), &expect = get(one, "expect");
    world w(BYWAY_DIALECT_BYWAY, "consumer://10.9.9.9/s", get(input, "invokers"));
    w.engine.set_rule("s::.condition-router", text(input, "yaml")).value();
    w.set_method(text(input, "method", "m"));
    same(w.rows(), get(expect, "kept"), "kept");
    same(flag(status_of(w.chain, "service"), "in_force"), flag(expect, "enabled"), "in force");
}

void rule_keys(const json &one)
{
    const json &input = get(one, "input"), &expect = get(one, "expect");
    const std::string provider = text(input, "provider_application"), consumer = text(input, "consumer_application");
    const auto service = [&](int kind) {
        return byway::service_rule_key(kind, text(input, "service"), text(input, "version"), text(input, "group"))
            .value();
    };
    const auto of = [](int kind, const std::string &application) {
        return byway::application_rule_key(kind, application).value();
    };
    for (const auto &[name, want] : expect.items()) {
        json got;
        if (name == "tag")
            got = of(BYWAY_RULE_TAG, provider);
        else if (name == "script")
            got = of(BYWAY_RULE_SCRIPT, provider);
        else if (name == "condition_service")
            got = service(BYWAY_RULE_CONDITION);
        else if (name == "affinity_service")
            got = service(BYWAY_RULE_AFFINITY);
        else if (name == "condition_app")
            got = json::array({of(BYWAY_RULE_CONDITION, consumer), of(BYWAY_RULE_CONDITION, provider)});
        else
            fail("unknown key " + name);
        same(got, want, name);
    }
}

void chain_order(const json &one)
{
    static const std::pair<const char *, const char *> names[] = {
        {"MockInvokersSelector", "mock"},
        {"StandardMeshRuleRouter", "standard-mesh-rule"},
        {"TagStateRouter", "tag"},
        {"ServiceStateRouter", "service"},
        {"ProviderAppStateRouter", "provider-app"},
        {"AppStateRouter", "app"},
        {"AppScriptStateRouter", "script-app"},
    };
    const world w(BYWAY_DIALECT_DUBBO_3, text(one, "consumer_url"), json::array());
    const json status = json::parse(w.chain.status().value());
    json got = json::array();
    // Affinity came after the version the cases were taken from.
    for (const json &router : get(status, "routers"))
        for (const auto &[upstream, ours] : names)
            if (text(router, "name") == ours)
                got.push_back(upstream);
    same(got, get(one, "expect"), "routers");
}

const kinds here = {
    {"dubbo_chain", "ip", ip},
    {"dubbo_chain", "string_match", string_match},
    {"dubbo_chain", "param_match", param_match},
    {"dubbo_chain", "tag-parse", tag_parse},
    {"dubbo_chain", "chain-order", chain_order},
    {"bugs", "condition_config", condition_config},
    {"bugs", "rule_keys", rule_keys},
};

} // namespace
} // namespace conform
