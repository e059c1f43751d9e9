// Mesh rules and their matchers. A matcher is shown by a rule that uses it: the call gets the first of two providers if
// it fits, both if it does not.
#include "chains.hpp"

namespace conform {
namespace {

const char KEY[] = "app1.MESHAPPRULE";
const char CONSUMER[] = "consumer://10.1.1.1/S";

// Two documents: subsets, and the routes to them.
std::string rule_of(const json &subsets, const json &detail)
{
    const json destination = {
        {"kind", "DestinationRule"}, {"metadata", {{"name", "x"}}}, {"spec", {{"subsets", subsets}}}};
    json dubbo = json::object();
    dubbo["routedetail"] = json::array({detail});
    json service = {{"kind", "VirtualService"}, {"metadata", {{"name", "x"}}}, {"spec", json::object()}};
    service["spec"]["dubbo"] = json::array({dubbo});
    return destination.dump() + "\n---\n" + service.dump() + "\n";
}

json route_to(const std::string &subset)
{
    json route = json::object(), detail = json::object();
    route["destination"]["subset"] = subset;
    detail["route"] = json::array({route});
    return detail;
}

json subset(const std::string &name, const json &labels)
{
    json made = {{"name", name}, {"labels", labels}};
    return json::array({made});
}

// A world of two providers, and a rule that sends calls that fit one of the blocks to the first.
struct matching : world {
    matching(int dialect, const std::string &consumer, const json &blocks)
        : world(
              dialect, consumer,
              {"dubbo://10.0.0.1:1/S?v=1&remote.application=app1", "dubbo://10.0.0.2:1/S?v=2&remote.application=app1"})
    {
        json detail = route_to("one");
        detail["match"] = blocks;
        set_method("m");
        engine.set_rule(KEY, rule_of(subset("one", {{"v", "1"}}), detail)).value();
    }
    bool fits() const { return rows().size() == 1; }
};

void matched(int dialect, const std::string &consumer, const json &block, const json &invocation, const json &types,
             const json &expect)
{
    matching w(dialect, consumer, json::array({block}));
    if (!w.set_call(invocation))
        w.set_method("m");
    if (types.is_array()) {
        std::vector<byway::argument> names;
        for (const json &type : types)
            names.emplace_back(w.keep(type.get<std::string>()));
        w.call.types(names).value();
    }
    if (has(expect, "error")) {
        auto routed = w.chain.route(w.call);
        need(!routed && contains(routed.error().what() + status(routed.error()), text(expect, "error")),
             "want " + text(expect, "error"));
        return;
    }
    same(w.fits(), expect == true, "fits");
}

// dubbo-go has the matchers but no mesh router; byway's own reading of them is the same.
int matcher_dialect(const json &one)
{
    const int dialect = dialect_of(one);
    return dialect == BYWAY_DIALECT_DUBBO_GO ? BYWAY_DIALECT_BYWAY : dialect;
}

// The first argument against a matcher.
void argument_match(const json &one, const char *field, const char *type, const json &matcher)
{
    json test = {{"index", 0}}, call = {{"method", "m"}}, block = json::object();
    test[field] = matcher;
    call["arguments"] = json::array({get(one, "input")});
    block["method"]["args"] = json::array({test});
    matched(matcher_dialect(one), CONSUMER, block, call, json::array({type}), get(one, "expect"));
}

json one_of(const json &matcher)
{
    json list = json::object();
    list["oneof"] = json::array({matcher});
    return list;
}

// Numbers of these matchers are Java's doubles, however a case has them.
void as_doubles(json &value)
{
    if (value.is_number())
        value = value.get<double>();
    else if (value.is_structured())
        for (json &item : value)
            as_doubles(item);
}

// What a text's reader says of a matcher that is written wrongly.
void warned(const std::string &field, const char *words)
{
    const std::string said =
        byway::check_rule(
            BYWAY_RULE_MESH,
            "kind: VirtualService\nmetadata: {name: x}\nspec: {dubbo: [{routedetail: [{match: [{method: {args: "
            "[{index: 0, " +
                field + "}]}}], route: []}]}]}\n",
            {}, BYWAY_FORMAT_TEXT, BYWAY_DIALECT_DUBBO_3)
            .value();
    need(contains(said, words), "said " + said);
}

void double_match(const json &one)
{
    if (has(one, "rule"))
        return warned("num_value: {oneof: [" + text(one, "rule") + "]}", "'exact: 10' is dropped; write 10.0");
    json matcher = one_of(get(one, "matcher"));
    as_doubles(matcher);
    argument_match(one, "num_value", "java.lang.Double", matcher);
}

void list_double_match(const json &one)
{
    json matcher = get(one, "matcher");
    as_doubles(matcher);
    argument_match(one, "num_value", "java.lang.Double", matcher);
}

void bool_match(const json &one)
{
    if (has(one, "rule"))
        return warned("bool_value: " + text(one, "rule"), "'exact' must be true or false");
    argument_match(one, "bool_value", "boolean", get(one, "matcher"));
}

void list_bool_match(const json &one)
{
    argument_match(one, "bool_value", "boolean", get(get(one, "matcher"), "oneof")[0]);
}

void list_string_match(const json &one) { argument_match(one, "str_value", "java.lang.String", get(one, "matcher")); }

void method_match(const json &one)
{
    json block = json::object();
    block["method"] = get(one, "matcher");
    // Whole numbers of `argc` and `index` stay what they are.
    if (has(block["method"], "args"))
        for (json &test : block["method"]["args"])
            if (test.contains("num_value"))
                as_doubles(test["num_value"]);
    matched(BYWAY_DIALECT_DUBBO_3, CONSUMER, block, get(one, "invocation"),
            get(get(one, "invocation"), "parameter_types"), get(one, "expect"));
}

void no_traces(const json &one)
{
    if (!get(one, "tracing_context").empty())
        skip("tracing contexts come from inside the host, of which rules see attachments");
}

void attachment_match(const json &one)
{
    no_traces(one);
    json block = json::object();
    block["attachments"] = get(one, "matcher");
    matched(BYWAY_DIALECT_DUBBO_3, CONSUMER, block, get(one, "invocation"), nullptr, get(one, "expect"));
}

std::string with_labels(std::string url, const json &labels)
{
    for (const auto &[name, value] : labels.items())
        url += "&" + name + "=" + value.get<std::string>();
    return url;
}

void match_request(const json &one)
{
    no_traces(one);
    matched(BYWAY_DIALECT_DUBBO_3, with_labels("consumer://10.1.1.1/S?a=b", get(one, "source_labels")),
            get(one, "matcher"), get(one, "invocation"), nullptr, get(one, "expect"));
}

// --- whole rules
// ---------------------------------------------------------------------------------------------------------

std::string consumer_of(const json &one)
{
    const std::string consumer = text(one, "consumer_url", "consumer://h/S"),
                      service = text(get(one, "invocation"), "service");
    if (service.empty())
        return consumer;
    const auto query = consumer.find('?'), path = consumer.find('/', consumer.find("://") + 3);
    return consumer.substr(0, std::min(query, path)) + "/" + service +
           (query == consumer.npos ? "" : consumer.substr(query));
}

// What an earlier router kept is a list without the others.
json rows_of(const json &one)
{
    const json &came = get(one, "route_input");
    json rows = json::array();
    for (const json &row : get(one, "invokers")) {
        bool in = !came.is_array();
        for (const json &id : came)
            in |= id == get(row, "id");
        if (in)
            rows.push_back(row);
    }
    return rows;
}

// A case's consumer, service, providers and rule. Draws give 0 unless they are counted.
struct mesh_world : world {
    mesh_world(const json &one, int dialect, bool counted)
        : world(dialect, consumer_of(one), rows_of(one),
                {{}, {}, counted ? nullptr : +[](void *) { return std::uint64_t(0); }, nullptr})
    {
        if (!set_call(get(one, "invocation")))
            set_method("m");
        if (has(one, "rule")) // Some texts are refused.
            (void)engine.set_rule(text(one, "app", "app1") + ".MESHAPPRULE", text(one, "rule"));
    }
};

// Upstream's words for people, and ours for the same.
void told(const json &one)
{
    const mesh_world w(one, BYWAY_DIALECT_DUBBO_3, false);
    const std::string message = text(one, "message"), said = w.chain.explain(w.call).value();
    if (starts(message, "Match App: ")) {
        for (auto at = message.find("Match App: "); at != message.npos; at = message.find("Match App: ", at + 1)) {
            char application[64], subset[64];
            need(std::sscanf(message.c_str() + at, "Match App: %63s Subset: %63s", application, subset) == 2,
                 "not understood");
            need(contains(said, "application " + std::string(application) + ": VirtualService") &&
                     contains(said, ", subset " + std::string(subset)),
                 "said " + said);
        }
    } else if (starts(message, "Empty protection"))
        need(contains(said, "so all stay"), "said " + said);
    else
        need(!contains(said, "standard-mesh-rule"), "there is a mesh router: " + said);
}

// Shares of each provider over many calls.
void shares(const json &one, int dialect, const json &share, const json &always)
{
    const int runs = 10000;
    const mesh_world w(one, dialect, true);
    std::vector<int> counts(w.providers.size());
    for (int i = 0; i < runs; ++i)
        for (const json &row : w.rows())
            ++counts[row.get<std::size_t>()];
    for (std::size_t row = 0; row < counts.size(); ++row) {
        const std::string id = text(w.providers[row], "id");
        const double got = counts[row] / static_cast<double>(runs);
        double want = number(share, id);
        if (always.is_array()) {
            want = 0;
            for (const json &known : always)
                if (known == id)
                    want = got > 0 ? got : 2;
        }
        need(std::abs(got - want) <= 0.015,
             "dialect " + std::to_string(dialect) + ": " + id + " gets " + std::to_string(got));
    }
}

void mesh(const json &one)
{
    const json &expect = get(one, "expect");
    if (has(expect, "error")) {
        const std::string error = text(expect, "error");
        const mesh_world upstream(one, BYWAY_DIALECT_DUBBO_3, false);
        auto routed = upstream.chain.route(upstream.call);
        const std::string head = error.substr(0, error.find_first_of(": "));
        need(!routed && contains(status(routed.error()) + ": " + routed.error().what(), head), "want " + head);
        const mesh_world ours(one, BYWAY_DIALECT_BYWAY, false);
        (void)ours.rows();
        return;
    }
    if (expect.is_object()) {
        const json &always = get(expect, "always");
        const json &observed = has(one, "observed_share") ? get(one, "observed_share") : get(expect, "observed_share");
        shares(one, BYWAY_DIALECT_DUBBO_3, observed, always);
        if (always.is_array())
            shares(one, BYWAY_DIALECT_BYWAY, observed, always);
        else if (has(one, "sane_share"))
            shares(one, BYWAY_DIALECT_BYWAY, get(one, "sane_share"), nullptr);
        return;
    }
    same(mesh_world(one, BYWAY_DIALECT_DUBBO_3, false).ids(), expect, "ids");
    if (has(one, "message"))
        told(one);
    if (sane_of(one).is_array())
        same(mesh_world(one, BYWAY_DIALECT_BYWAY, false).ids(), sane_of(one), "[byway] ids");
}

void labels(const json &one)
{
    const std::string first =
        with_labels("dubbo://10.0.0.1:1/S?remote.application=app1", get(get(one, "invokers")[0], "params"));
    world w(BYWAY_DIALECT_DUBBO_3, CONSUMER, {first, "dubbo://10.0.0.2:1/S?remote.application=app1"});
    w.engine.set_rule(KEY, rule_of(subset("s", get(one, "labels")), route_to("s"))).value();
    w.set_method("m");
    same(w.rows().size() == 1, get(one, "expect") == true, "fits");
}

// Members of a subset, by a rule that sends everybody there; all providers means that nobody is in it.
void cache(const json &one)
{
    const json &expect = get(one, "expect"), &wanted = get(expect, "subset");
    for (const auto &[name, want] : wanted.items()) {
        const auto slash = name.find('/');
        world w(BYWAY_DIALECT_DUBBO_3, CONSUMER, get(one, "invokers"));
        const std::string rule = rule_of(get(one, "subsets"), route_to(name.substr(slash + 1)));
        for (const json &application : get(one, "rules_for"))
            w.engine.set_rule(application.get<std::string>() + ".MESHAPPRULE", rule).value();
        w.set_method("m");
        const json rows = w.rows();
        int members = 0;
        const bool nobody = rows.size() == w.providers.size();
        if (!nobody)
            for (const json &row : rows)
                members += contains(url_of(w.providers[row.get<std::size_t>()]),
                                    "remote.application=" + name.substr(0, slash));
        same(nobody ? rows.size() : w.providers.size() - rows.size(), get(expect, "unmatched"), "unmatched");
        same(members, want, name);
    }
}

// In force or not, by the status of a chain that has providers of both applications.
void lifecycle(const json &one)
{
    world w(BYWAY_DIALECT_DUBBO_3, CONSUMER,
            {"dubbo://10.0.0.1:1/S?remote.application=app1", "dubbo://10.0.0.2:1/S?remote.application=app2"});
    const std::string rule = text(one, "rule");
    for (const json &step : get(one, "expect")) {
        json with = json::array();
        for (const char *name : {"app1", "app2"}) {
            const std::string key = name + std::string(".MESHAPPRULE"),
                              receives = text(step, name + std::string(" receives"));
            if (!receives.empty())
                (void)w.engine.set_rule(key,
                                        receives == "DestinationRule only" ? rule.substr(0, rule.find("\n---")) : rule);
            if (text(step, "clear") == name)
                (void)w.engine.remove_rule(key);
            const json status = json::parse(w.chain.status().value());
            for (const json &router : get(status, "routers"))
                if (text(router, "key") == key && flag(router, "in_force"))
                    with.push_back(name);
        }
        same(with, get(step, "apps_with_rules"), "applications with rules");
    }
}

int mentions(const std::string &text, const std::string &words)
{
    int count = 0;
    for (auto at = text.find(words); at != text.npos; at = text.find(words, at + 1))
        ++count;
    return count;
}

// How many documents of a text belong to an extension, by what is said about them; the others are the standard ones,
// unless they are left out.
int documents_of(const std::string &rule, const std::string &group)
{
    const std::string said =
        byway::check_rule(BYWAY_RULE_MESH, rule, {}, BYWAY_FORMAT_TEXT, BYWAY_DIALECT_DUBBO_3).value();
    if (group != "standard")
        return mentions(said, "belongs to the extension '" + group + "'");
    const int all = rule.empty() ? 0 : 1 + mentions(rule, "\n---");
    return all - mentions(said, "belongs to the extension ") - mentions(said, "is left out");
}

void listener(const json &one)
{
    const json &expect = get(one, "expect");
    bool known = false;
    for (const json &step : expect.is_array() ? expect : json::array({expect})) {
        const bool cleared = has(step, "receive") && text(step, "receive").empty();
        const std::string rule = cleared ? "" : text(one, "rule");
        for (const auto &[name, want] : step.items()) {
            const auto dot = name.find('.');
            if (dot == name.npos)
                continue;
            const std::string call = name.substr(dot);
            if (call == ".onRuleChange" && want.is_object())
                same(documents_of(rule, name.substr(0, dot)), get(want, "docs"), name);
            else if (call == ".clearRule")
                same(documents_of(rule, name.substr(0, dot)), 0, name);
            else
                continue;
            known = true;
        }
    }
    if (!known)
        skip("counts upstream's listeners");
}

// --- reports
// -------------------------------------------------------------------------------------------------------------

void match_reported(const json &one)
{
    const json &input = get(one, "input");
    json got = json::array();
    for (const json &labels : get(input, "consumer_labels"))
        got.push_back(
            matching(BYWAY_DIALECT_BYWAY, with_labels("consumer://10.1.1.1/S?a=b", labels), get(input, "match"))
                .fits());
    same(got, get(get(one, "expect"), "matched"), "matched");
}

void subset_reported(const json &one)
{
    const json &input = get(one, "input");
    json rows = json::array();
    for (const json &endpoint : get(input, "endpoints"))
        rows.push_back(with_labels("dubbo://10.0.0." + std::to_string(rows.size() + 1) + ":1/S?remote.application=app1",
                                   endpoint));
    world w(BYWAY_DIALECT_BYWAY, CONSUMER, rows);
    w.engine.set_rule(KEY, rule_of(subset("wanted", get(input, "request")), route_to("wanted"))).value();
    w.set_method("m");
    same(w.rows(), get(get(one, "expect"), "kept"), "kept");
}

void lint_reported(const json &one)
{
    const json &input = get(one, "input");
    json subsets = json::array(), detail = json::object(), got = json::array();
    for (const json &name : get(input, "defined_subsets")) {
        json made = json::object();
        made["name"] = name;
        subsets.push_back(made);
    }
    detail["route"] = json::array();
    for (const json &name : get(input, "route_subsets"))
        detail["route"].push_back(route_to(name.get<std::string>())["route"][0]);
    const json said =
        json::parse(byway::check_rule(BYWAY_RULE_MESH, rule_of(subsets, detail), {}, BYWAY_FORMAT_JSON).value());
    for (const json &problem : get(said, "problems")) {
        const std::string message = text(problem, "message"), words = "unknown subset '";
        if (starts(message, words))
            got.push_back("unknown_subset:" +
                          message.substr(words.size(), message.find('\'', words.size()) - words.size()));
    }
    same(got, get(get(one, "expect"), "warnings"), "warnings");
}

const kinds here = {
    {"dubbo_chain", "double_match", double_match},
    {"dubbo_chain", "bool_match", bool_match},
    {"dubbo_chain", "list_bool_match", list_bool_match},
    {"dubbo_chain", "list_double_match", list_double_match},
    {"dubbo_chain", "list_string_match", list_string_match},
    {"dubbo_chain", "method_match", method_match},
    {"dubbo_chain", "attachment_match", attachment_match},
    {"dubbo_chain", "match_request", match_request},
    {"dubbo_chain", "mesh", mesh},
    {"dubbo_chain", "mesh-labels", labels},
    {"dubbo_chain", "mesh-cache", cache},
    {"dubbo_chain", "mesh-lifecycle", lifecycle},
    {"dubbo_chain", "mesh-listener", listener},
    {"bugs", "mesh_match", match_reported},
    {"bugs", "subset", subset_reported},
    {"bugs", "mesh_lint", lint_reported},
};

} // namespace

void block_fits(int dialect, const json &block, const json &invocation, const json &expect)
{
    matched(dialect, CONSUMER, block, invocation, nullptr, expect);
}

} // namespace conform
