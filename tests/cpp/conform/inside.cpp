// What upstream's tests ask of the inside of a chain, as it shows outside: in what a chain routes and picks, in its status,
// in explanations, in what it keeps of its calls, and in what a source's entries become.
#include "chains.hpp"

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace conform {
namespace {

// --- lists of rows: each state is what a chain with a host's routers leaves
// -----------------------------------------------------------------------------------

// Members of a list in its order, and which of them are left.
struct rows {
    std::vector<std::string> members;
    std::set<std::string> kept;

    explicit rows(const json &names = json::array())
    {
        for (const json &name : names)
            add(name);
    }

    void add(const std::string &name)
    {
        if (std::find(members.begin(), members.end(), name) == members.end())
            members.push_back(name);
        kept.insert(name);
    }

    void drop(const json &names)
    {
        for (const json &name : names)
            kept.erase(name.get<std::string>());
    }

    // A chain over the members of this list, and of the other one: each set has its router.
    json asked(const rows *other, bool pick) const
    {
        std::vector<std::string> all = members;
        if (other)
            for (const std::string &name : other->members)
                if (std::find(all.begin(), all.end(), name) == all.end())
                    all.push_back(name);
        json urls = json::array();
        for (const std::string &name : all)
            urls.push_back("dubbo://" + name + ":1/S");
        world w(BYWAY_DIALECT_BYWAY, "consumer://10.0.0.1/S", urls);
        std::int64_t priority = 0;
        for (const rows *set : {this, other}) {
            if (!set)
                continue;
            w.chain
                .add_router(byway::router::make(w.engine, "set" + std::to_string(priority), priority,
                                                [&all, set](byway::router_request &request) -> byway_status {
                                                    request.keep_if([&](std::uint64_t tag) {
                                                        return set->kept.count(all[tag - 1]) > 0;
                                                    });
                                                    return BYWAY_OK;
                                                })
                                .value())
                .value();
            ++priority;
        }
        w.set_method("m");
        if (pick) {
            const auto picked = w.chain.pick(w.call);
            if (!picked)
                need(picked.error().code() == BYWAY_E_NO_INVOKER, status(picked.error()));
            return picked ? json(all[picked->tag - 1]) : json();
        }
        json left = json::array();
        for (const std::uint64_t tag : w.chain.route(w.call).value().tags())
            left.push_back(all[tag - 1]);
        return left;
    }

    json left(const rows *other = nullptr) const { return asked(other, false); }
};

json slice(const json &list, std::size_t first, std::size_t last)
{
    json part = json::array();
    for (; first < std::min(last, list.size()); ++first)
        part.push_back(list[first]);
    return part;
}

// A cursor that removes what it passes, one way and then the other.
void walk(rows &of, std::size_t at, const json &step)
{
    if (!flag(step, "remove"))
        skip("rows have no cursor");
    const json left = of.left();
    std::vector<json> halves = {slice(left, at, left.size()), slice(left, 0, at)};
    if (!starts(text(step, "walk"), "forward"))
        std::swap(halves[0], halves[1]);
    const char *wanted[] = {"after_first_half", "after_second_half"};
    for (int i = 0; i < 2; ++i) {
        of.drop(halves[i]);
        same(of.left(), get(step, wanted[i]), wanted[i]);
    }
}

using lists = std::map<std::string, rows>;

// What a step asks; nothing for what is not there, a place past the end among it.
std::optional<json> ask(lists &all, rows &of, const std::string &op, const json &arguments)
{
    const json left = of.left(), argument = arguments.empty() ? json() : arguments[0];
    const auto place = std::find(left.begin(), left.end(), argument);
    const std::size_t at = argument.is_number() ? argument.get<std::size_t>() : 0;
    if (op == "size")
        return left.size();
    if (op == "is_empty")
        return left.empty();
    if (op == "to_list")
        return left;
    if (op == "sub_list")
        return slice(left, at, arguments[1]);
    if (op == "contains")
        return place != left.end();
    if (op == "index_of")
        return place == left.end() ? -1 : static_cast<int>(place - left.begin());
    if (op == "get" || op == "remove_at") {
        if (at >= left.size())
            return {};
        if (op == "remove_at")
            of.drop({left[at]});
        return left[at];
    }
    if (op == "and")
        return of.left(&all.at(argument));
    if (op == "new_from" || op == "new_from_empty")
        return rows(op == "new_from" ? left : json::array()).left();
    if (op == "random_select_one") {
        const json one = of.asked(nullptr, true);
        return one.is_null() ? std::optional<json>() : one;
    }
    if (op == "remove")
        of.drop({argument});
    else if (op == "remove_all" || op == "remove_if")
        of.drop(argument);
    else if (op == "add")
        of.add(argument);
    else if (op == "add_all" || op == "add_all_bitlist")
        for (const json &name : op == "add_all" ? argument : all.at(argument).left())
            of.add(name);
    else if (op == "add_index")
        of.kept.insert(of.members.at(at));
    else if (op == "clear")
        of = rows();
    else if (op == "clone")
        all[argument.is_string() ? argument.get<std::string>() : "clone"] = rows(of);
    else
        skip(op + ": sets have no such thing");
    return {};
}

void bit_list(const json &one)
{
    // Who came later, and over which list a set was made: nothing a set has.
    static const std::set<std::string> foreign = {"has_tail", "tail_list", "origin_list"};
    lists all;
    int asked = 0;
    for (const json &step : get(one, "steps")) {
        const std::string op = text(step, "op");
        json arguments = get(step, "args");
        if (foreign.count(op))
            continue;
        const bool named = !arguments.empty() && arguments[0].is_string() && (op == "new" || !all.count(""));
        const std::string name = named ? arguments[0].get<std::string>() : "";
        if (named)
            arguments.erase(0);
        if (op == "new") {
            all[name] = rows(arguments[0]);
            continue;
        }
        if (!all.count(name))
            skip(op + ": sets have no such thing");
        rows &of = all[name];
        if (op == "list_iterator") {
            walk(of, arguments[0], step);
            ++asked;
            continue;
        }
        const auto got = ask(all, of, op, arguments);
        const bool throws = has(step, "throws");
        bool wants = false;
        for (const char *member : {"sane_expect", "fixed_expect", "expect"})
            if (!wants && step.contains(member)) {
                same(got.value_or(json()), step[member], op);
                wants = true;
            }
        if (throws && !wants)
            need(!got, op + ": there is something");
        asked += wants || throws;
    }
    if (asked == 0)
        skip("sets have no cursors, tails or origins");
}

// --- chains
// -----------------------------------------------------------------------------------

std::string consumer_of(const json &one)
{
    const std::string given = text(one, "consumer_url");
    return contains(given, "://") && !contains(given, " ") ? given : "consumer://127.0.0.1/com.demo.Service";
}

void routed(const json &one, const json &providers, const json &expect)
{
    world w(dialect_of(one), consumer_of(one), providers);
    if (!w.set_call(get(one, "invocation")))
        w.set_method("m");
    same(w.ids(), expect, "ids");
}

// Static configurations that count: those that are there, enabled and valid, whatever their key.
void delivered(const json &one, const json &keys)
{
    if (!get(one, "configs").is_array())
        skip("described in words");
    json got = json::array();
    for (json config : get(one, "configs")) {
        if (!config.is_object())
            continue;
        const std::string key = text(config, "key");
        const bool of_service = text(config, "scope") == "service";
        world w(BYWAY_DIALECT_BYWAY,
                of_service ? "consumer://10.0.0.1/" + key : "consumer://10.0.0.1/S?application=" + key,
                {"dubbo://10.0.0.2:1/S"});
        config["force"] = true;
        config["conditions"] = {"=> a=b"};
        w.engine.set_rule(key + (of_service ? "::" : "") + ".condition-router", config.dump()).value();
        w.set_method("m");
        if (w.rows().empty())
            got.push_back(key);
    }
    same(got, keys, "in force");
}

// Host routers in ascending order, each on the output of the one before.
void host_routers(const json &one)
{
    const json &routers = get(one, has(one, "routers") ? "routers" : "added_priorities"), &expect = get(one, "expect");
    world w(BYWAY_DIALECT_BYWAY, consumer_of(one), get(one, "invokers"));
    json order = json::array();
    std::map<std::int64_t, std::size_t> inputs;
    for (const json &router : routers) {
        const auto priority =
            static_cast<std::int64_t>(router.is_number() ? router.get<double>() : number(router, "priority"));
        const bool first_only = text(router, "does") == "keeps the first";
        w.chain
            .add_router(byway::router::make(w.engine, "r" + std::to_string(priority), priority,
                                            [&, priority, first_only](byway::router_request &request) -> byway_status {
                                                order.push_back(priority);
                                                std::size_t seen = 0;
                                                request.keep_if([&](std::uint64_t) { return ++seen == 1 || !first_only; });
                                                inputs[priority] = seen;
                                                return BYWAY_OK;
                                            })
                            .value())
            .value();
    }
    w.set_call(get(one, "invocation"));
    const json ids = w.ids();
    for (const json &router : routers)
        if (has(router, "input_size"))
            same(inputs[static_cast<std::int64_t>(number(router, "priority"))], get(router, "input_size"), "rows in");
    if (has(expect, "call_order"))
        same(order, get(expect, "call_order"), "order");
    else
        same(ids, expect, "ids");
}

void chain(const json &one)
{
    const json &expect = get(one, "expect");
    if (has(expect, "call_order") || get(one, "routers").is_array())
        host_routers(one);
    else if (expect.is_array())
        routed(one, get(one, "invokers").is_array() ? get(one, "invokers") : json::array(), expect);
    else if (expect.contains("delivered_keys"))
        delivered(one, get(expect, "delivered_keys"));
    else if (has(expect, "assert"))
        // One writer and four readers; every answer belongs to one list.
        replaced_while_routing({{"a", "b", "c"}, {"b", "c", "d"}, {"e"}}, 4, 1, 2000);
    else if (flag(expect, "ok"))
        routed(one, json::array(), json::array()); // a null list is an empty one
    else
        skip("a chain has one world at a time: no call meets a list that changes under it");
}

// dubbo-go's pools are the memo here: what is remembered belongs to the generation it was made for.
void cache(const json &one)
{
    const json &expect = get(one, "expect");
    world w(BYWAY_DIALECT_BYWAY, consumer_of(one), get(one, "invokers"));
    w.set_method("Say");
    const json first = w.rows();
    const auto before = w.chain.generation();
    same(w.rows(), first, "again");
    same(w.chain.generation(), before, "generation of the same world");
    (void)w.chain.set_invokers(w.list).value();
    // With the pool, the first generation is asked about; switched off, the one after a rebuild.
    same(w.chain.generation() - before, number(expect, "generation") - !flag(expect, "pool_found_by_name"), "generations");
    same(w.rows(), first, "over the list set again");
}

// --- explanations
// -----------------------------------------------------------------------------------

const std::map<std::string, std::string> ROUTERS = {
    {"MockInvokersSelector", "mock"},         {"StandardMeshRuleRouter", "standard-mesh-rule"},
    {"TagStateRouter", "tag"},                {"ServiceStateRouter", "service"},
    {"ProviderAppStateRouter", "provider-app"}, {"AppStateRouter", "app"},
    {"AppScriptStateRouter", "script-app"},
};

json explained(world &w, const json &invocation)
{
    if (!w.set_call(invocation))
        w.set_method("m");
    return json::parse(w.chain.explain(w.call, BYWAY_FORMAT_JSON).value());
}

json router_named(const json &all, const std::string &name)
{
    for (const json &router : get(all, "routers"))
        if (text(router, "name") == name)
            return router;
    return {};
}

int number_behind(const std::string &line, const std::string &name)
{
    const auto at = line.find(name);
    return at == line.npos ? -1 : std::atoi(line.c_str() + at + name.size());
}

// Upstream's text of a decision says what an explanation says: per router how many come in and go out.
void decision(world &w, const json &one, std::istream &lines)
{
    const json got = explained(w, get(one, "invocation"));
    int reached = 0, count = 0;
    for (std::string line; std::getline(lines, line);) {
        const json in = number_behind(line, "(Input: "), out = number_behind(line, "(Current Node Output: ");
        same(get(got, "out"), number_behind(line, "(Chain Node Output: "), "left by the chain");
        const auto begin = line.find_first_not_of(" [");
        const std::string name = line.substr(begin, line.find(' ', begin) - begin);
        if (name == "Parent") {
            same(get(got, "in"), in, "input");
            continue;
        }
        const json router = router_named(got, ROUTERS.at(name));
        if (flag(router, "reached")) {
            ++reached;
            same({get(router, "in"), get(router, "out")}, {in, out}, name);
        } else {
            same(in, out, name); // not in force: passes what it gets
        }
    }
    for (const json &router : get(got, "routers"))
        count += flag(router, "reached");
    same(count, reached, "routers reached");
}

// What the operations command shows: the mock router's two groups, and the routers in order.
void tool(world &w, std::istream &lines)
{
    const auto leaves = [&](const json &call) { return get(router_named(explained(w, call), "mock"), "out"); };
    json names = json::array(), own = json::array();
    for (std::string line; std::getline(lines, line);) {
        const int total = number_behind(line, "Total: ");
        const auto router = ROUTERS.find(line.substr(0, line.find(' ')));
        if (starts(line, "[ Mocked"))
            same(leaves({{"method", "m"}, {"attachments", {{"invocation.need.mock", "true"}}}}), total, "mocks");
        else if (starts(line, "[ Normal"))
            same(leaves({{"method", "m"}}), total, "others");
        else if (router != ROUTERS.end()) {
            names.push_back(router->second);
            if (total >= 0)
                same(w.providers.size(), total, "all");
        }
    }
    // Affinity came later.
    const json status = json::parse(w.chain.status().value());
    for (const json &router : get(status, "routers"))
        if (!starts(text(router, "name"), "affinity"))
            own.push_back(text(router, "name"));
    same(own, names, "routers");
}

void snapshot(const json &one)
{
    const std::string shown = text(get(one, "expect"), "text");
    world w(dialect_of(one), consumer_of(one), get(one, "invokers"));
    std::istringstream lines(shown);
    if (starts(shown, "[ Parent"))
        decision(w, one, lines);
    else
        tool(w, lines);
}

// Chains share no routers: what is built for one service never decides for another.
void sharing(const json &one)
{
    world w(BYWAY_DIALECT_DUBBO_3, "consumer://10.0.1.1/com.foo.A?application=c",
            {"dubbo://10.0.0.1:1/s?x=1", "dubbo://10.0.0.2:1/s?x=2"});
    auto other = byway::chain::make(w.engine, "consumer://10.0.1.1/com.foo.B?application=c").value();
    (void)other.set_invokers(w.list).value();
    w.engine.set_rule("com.foo.A::.condition-router", "force: true\nconditions: ['=> x=1']").value();
    w.engine.set_rule("com.foo.B::.condition-router", "force: true\nconditions: ['=> x=2']").value();
    w.set_method("m");
    json theirs = json::array();
    for (const std::uint64_t tag : other.route(w.call).value().tags())
        theirs.push_back(tag - 1);
    const bool own = w.rows() == json({0}) && theirs == json({1});
    same(std::string("AppScriptStateRouter of ") + (own ? "A" : "B"), get(get(one, "sane"), "walk_of_A_ends_in"), "end");
}

// Upstream marks a thread between switch and response; here a service's chain keeps its calls, and no other's.
void switched(const json &one)
{
    const std::string service = text(get(one, "invocation"), "service_key");
    world w(BYWAY_DIALECT_DUBBO_3, "consumer://127.0.0.1/" + service, json::array());
    auto other = byway::chain::make(w.engine, "consumer://127.0.0.1/Another").value();
    bool over = false;
    for (const json &step : get(one, "steps")) {
        const std::string words = step;
        if (words == "onResponse" || words == "onError")
            over = true;
        else if (words == "enable " + service || words == "disable " + service)
            w.chain.keep_recent(words[0] == 'e').value();
        else
            fail("step " + words);
    }
    w.set_method("call");
    const auto printed = [&](const byway::chain &asked) {
        const auto kept = [&] {
            return json::parse(w.chain.recent(BYWAY_FORMAT_JSON).value()).size() +
                   json::parse(other.recent(BYWAY_FORMAT_JSON).value()).size();
        };
        const auto before = kept();
        (void)asked.route(w.call).value();
        return kept() != before;
    };
    const bool first = printed(w.chain);
    same(over ? printed(other) : first, get(get(one, "expect"), "need_print"), "kept");
}

// An empty list is a state of a service, and no error.
void directory(const json &one)
{
    if (!has(one, "expect_byway"))
        skip("whoever calls knows who cannot be reached, and says so at a pick");
    routed(one, get(one, "invokers"), get(get(one, "expect_byway"), "list"));
}

// --- sources and texts
// -----------------------------------------------------------------------------------

// Whether an override with this match is in force for a consumer at this address: it takes the provider away.
void address_match(const json &one)
{
    const std::string address = text(one, "input");
    if (address.find_first_not_of("0123456789.") != address.npos || address == "0.0.0.0")
        skip("a consumer has one address, and no text in its place");
    const json configs = {{{"side", "consumer"},
                           {"match", {{"address", get(one, "matcher")}}},
                           {"parameters", {{"disabled", "true"}}}}};
    const json rule = {
        {"configVersion", "v3.0"}, {"scope", "service"}, {"key", "S"}, {"enabled", true}, {"configs", configs}};
    world w(BYWAY_DIALECT_DUBBO_3, "consumer://" + address + "/S", json::array());
    auto source = byway::source::memory(w.engine).value();
    source.put("S/providers", "dubbo://10.0.0.1:1/S").value();
    source.put("S::.configurators", rule.dump()).value();
    w.chain.bind(source, std::chrono::seconds(30)).value();
    w.set_method("m");
    same(w.rows().empty(), get(one, "expect"), "in force");
}

const std::vector<std::pair<std::string, std::string>> SUBSETS = {
    {"isolation", "env-sign=xxx&tag1=hello&at=isolation"},
    {"testing-trunk", "env-sign=yyy&at=testing-trunk"},
    {"testing", "env-sign=zzz&at=testing"},
};

// To which subset a consumer with this label is led.
void leads(const std::string &rule, const std::string &label, const std::string &subset)
{
    json providers = json::array(), got = json::array();
    for (const auto &[name, labels] : SUBSETS)
        providers.push_back("dubbo://10.0.0." + std::to_string(providers.size() + 1) +
                            ":1/ccc?remote.application=demo&" + labels);
    world w(BYWAY_DIALECT_DUBBO_3, "consumer://10.0.0.1/ccc?application=c&trafficLabel=" + label, providers);
    w.engine.set_rule("demo.MESHAPPRULE", rule).value();
    w.set_method("m");
    for (const json &row : w.rows())
        got.push_back(SUBSETS[row.get<std::size_t>()].first);
    same(got, {subset}, label);
}

void mesh_parse(const json &one)
{
    const json &expect = get(one, "expect");
    std::string rule = text(one, "rule");
    const json found =
        json::parse(byway::check_rule(BYWAY_RULE_MESH, rule, {}, BYWAY_FORMAT_JSON, BYWAY_DIALECT_DUBBO_3).value());
    need(!flag(found, "refused"), found.dump());
    if (has(expect, "documents")) {
        const std::regex kind("(?:^|\n)kind: (\\w+)");
        json kinds_read = json::array();
        for (std::sregex_iterator at(rule.begin(), rule.end(), kind), end; at != end; ++at)
            kinds_read.push_back((*at)[1].str());
        same(kinds_read, get(expect, "documents"), "documents");
        // The rule of most cases here, whose labels have one way each.
        leads(rule, "xxx", "isolation");
        leads(rule, "testing-trunk", "testing-trunk");
        leads(rule, "of-nobody", "testing");
        return;
    }
    // Without its other half a text has no subsets.
    std::string half = "kind: DestinationRule\nmetadata: {name: demo-route}\nspec:\n  host: demo\n  subsets:\n";
    for (const auto &subset : SUBSETS)
        half += "  - {name: " + subset.first + ", labels: {at: " + subset.first + "}}\n";
    rule = half + "---\n" + rule;
    for (const json &route : get(expect, "routedetail")) {
        const json &match = get(route, "match");
        leads(rule, match.is_array() ? text(get(match[0], "sourceLabels"), "trafficLabel") : "of-nobody",
              text(get(get(route, "route")[0], "destination"), "subset"));
    }
}

const kinds here = {
    {"dubbo_chain", "bitlist", bit_list},
    {"dubbo_chain", "chain", chain},
    {"dubbo_chain", "chain-cache", cache},
    {"dubbo_chain", "chain-snapshot", snapshot},
    {"dubbo_chain", "chain-sharing", sharing},
    {"dubbo_chain", "snapshot-switch", switched},
    {"dubbo_chain", "directory", directory},
    {"dubbo_chain", "address_match", address_match},
    {"dubbo_chain", "mesh-parse", mesh_parse},
};

} // namespace
} // namespace conform
