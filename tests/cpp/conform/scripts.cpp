// Scripts from URLs, from files and by rule. A script that fails leaves the list, and the status of the chain tells the
// error: that is what byway has in place of upstream's exceptions.
#include "chains.hpp"

#include <filesystem>
#include <fstream>
#include <set>
#include <unistd.h>

namespace conform {
namespace {

void need_scripts()
{
    if (!byway::has_feature("script"))
        skip("built without scripts");
}

// A case's providers, as URLs; cases without get one each. At least `least` of them: where nobody is in the list, a
// chain would not ask the script.
json providers_of(const json &one, std::size_t least = 0)
{
    json rows = json::array();
    const auto add = [&](const std::string &id, const std::string &url) { rows.push_back({{"id", id}, {"url", url}}); };
    for (const json &row : get(one, "invokers"))
        add(row.is_string() ? row.get<std::string>() : text(row, "id"),
            text(row, "url", "dubbo://10.0.0." + std::to_string(rows.size()) + ":20880/com.foo.BarService"));
    if (rows.empty())
        while (rows.size() < least)
            add("i" + std::to_string(rows.size() + 1), "dubbo://10.0.0." + std::to_string(rows.size() + 1) + ":1/S");
    return rows;
}

std::string consumer_of(const json &one)
{
    const std::string given = text(one, "consumer_url");
    // Who is available is the script's to say, not the pick's.
    return starts(given, "consumer://") ? given
                                        : "consumer://10.1.1.1/com.foo.BarService?cluster.availablecheck=false";
}

struct script_world : world {
    script_world(const json &one, int dialect, const json &rows)
        : world(dialect, consumer_of(one), rows, {"application=demo-provider", "application=", nullptr, nullptr})
    {
        const json &given = get(one, "invocation"), &attachments = get(given, "attachments");
        if (!set_call(given))
            set_method("m");
        for (const auto &[key, value] : attachments.items()) // Values that are no text, as their JSON.
            if (!value.is_string())
                set_attachment(key, value.dump());
    }
    // The ids of those that may serve the call. Who is available the caller says at a pick: there, of those that picks
    // give.
    json left(const json &one) const
    {
        std::uint64_t able = 0;
        std::set<std::size_t> picked;
        for (std::size_t row = 0; row < list.size(); ++row)
            able |= std::uint64_t{flag(get(one, "invokers").at(row), "available", true)} << row;
        byway::pick_options options;
        options.balance = BYWAY_BALANCE_ROUND_ROBIN;
        options.set_available({&able, 1}, list);
        for (std::size_t i = 0; i < 2 * list.size(); ++i) {
            const auto one_of_them = chain.pick(call, options);
            if (!one_of_them && one_of_them.error().code() == BYWAY_E_NO_INVOKER)
                break;
            picked.insert(one_of_them.value().row);
        }
        json ids = json::array();
        for (const std::size_t row : picked)
            ids.push_back(get(providers.at(row), "id"));
        return ids;
    }
    bool everybody() const { return rows().size() == list.size(); }

    // The error that a script failed with while routing, from the chain's status; null when it did not.
    json failure() const
    {
        const json status = json::parse(chain.status().value());
        json found;
        for (const json &rule : get(status, "static"))
            if (has(rule, "failed"))
                found = get(rule, "failed");
        return found;
    }
};

// Scripts that a case only describes.
std::string described(const std::string &rule)
{
    static const std::pair<const char *, const char *> all[] = {
        {"<Invoker[] holding invokers.get(2)>", "[invokers.get(2)]"},
        {"<script that calls invokers[i].Invoke(context, invocation)>",
         "(function () { for (var i = 0; i < invokers.length; i++) invokers[i].Invoke(context, invocation); return "
         "invokers; })()"},
        {"<script that calls GetURL(' Err Here ')>", "(function () { for (var i = 0; i < invokers.length; i++) "
                                                     "invokers[i].GetURL(' Err Here '); return invokers; })()"},
        {"<calls every exposed accessor of invoker url and invocation>",
         "(function () { var u = invokers[0].GetURL(); u.GetParam('a', 'b'); u.GetParamBool('a', true); "
         "u.GetParamInt('a', 1); u.GetMethodParam('m', 'a', 'b'); u.GetNonDefaultParam('a'); u.Service(); "
         "u.ServiceKey(); u.Group(); u.Version(); u.Address(); u.Key(); u.String(); invokers[0].IsAvailable(); "
         "invocation.MethodName(); invocation.ActualMethodName(); invocation.Arguments(); "
         "invocation.ParameterValues(); invocation.ParameterTypeNames(); invocation.Attachments(); "
         "invocation.GetAttachment('a'); invocation.GetAttachmentWithDefaultValue('a', 'b'); "
         "var v = invokers[0].getUrl(); v.getParameters().size(); v.getServiceKey(); "
         "v.getMethodParameter('m', 'a', 'b'); invocation.getAttachments().size(); context.getAttachment('a'); "
         "context.getUrl().getHost(); return invokers; })()"},
    };
    for (const auto &[words, script] : all)
        if (rule == words)
            return script;
    return rule;
}

bool somebody_unavailable(const json &one)
{
    for (const json &row : get(one, "invokers"))
        if (!flag(row, "available", true))
            return true;
    return false;
}

// What a static script did against what upstream did.
void with_url(const json &one, const std::string &url, const json &rows)
{
    script_world w(one, BYWAY_DIALECT_BYWAY, rows);
    const json &expect = get(one, "expect"), &error = get(expect, "error");
    const auto taken = w.chain.set_rule_urls({url});
    const json kept = w.rows(), failed = w.failure();
    const std::string told = taken ? text(failed, "message") : std::string(taken.error().message());
    if (error.is_string()) {
        // The part in front of the colon is Java's class of the error.
        const std::string want = error.get<std::string>();
        const auto colon = want.find(": ");
        const bool fits = starts(want, "ClassCastException") ? contains(told, "expected a list")
                        : starts(want, "interrupted")        ? text(failed, "status") == "BYWAY_E_TIMEOUT"
                                                      : colon != want.npos && contains(told, want.substr(colon + 2));
        need(fits && kept.size() == w.list.size(), "told " + told + ", want " + want);
    } else if (error.is_boolean())
        need(!told.empty() == error.get<bool>() && kept.size() == w.list.size(), "told " + told);
    else
        same(somebody_unavailable(one) ? w.left(one) : w.ids(), expect, "ids " + told);
}

void script(const json &one)
{
    need_scripts();
    const std::string rule = described(text(one, "rule"));
    const std::string type = has(one, "script_type") ? "type=" + text(one, "script_type") : "a=b";
    with_url(one, "script://0.0.0.0/S?" + type + "&rule=" + encoded(rule), providers_of(one, 1));
}

// A folder of its own, gone with its files.
struct folder {
    folder()
    {
        char name[] = "/tmp/byway-conform-XXXXXX";
        need(mkdtemp(name) != nullptr, "no folder");
        path = name;
    }
    ~folder() { std::filesystem::remove_all(path); }
    std::string path;
};

void file(const json &one)
{
    need_scripts();
    const std::string written = text(one, "consumer_url"), rule = text(one, "rule");
    const json &expect = get(one, "expect");
    const json rows = providers_of(one, 2);
    std::string url = written;
    const folder folder;
    if (has(one, "rule")) {
        const auto query = written.find('?');
        const std::string head = written.substr(0, query), path = folder.path + head.substr(head.rfind('/'));
        std::ofstream(path) << (rule == "<script text>" ? "[invokers.get(0)]" : rule);
        url = "file://" + path + (query == written.npos ? "" : written.substr(query));
    }
    if (expect.is_array())
        return with_url(one, url, rows);
    // What a file is read as shows in what it does.
    script_world w(one, BYWAY_DIALECT_BYWAY, rows);
    const auto taken = w.chain.set_rule_urls({url});
    if (has(expect, "error")) {
        need(!taken && contains(taken.error().message(), "No such file"), "told " + taken.error().what());
        return;
    }
    taken.value();
    same(w.rows().size(), rule == "<script text>" ? 1 : w.list.size(), "how many stay");
}

// --- by rule
// -------------------------------------------------------------------------------------------------------------

const char GOOD[] = "configVersion: v3.0\nkey: demo-provider\ntype: javascript\nenabled: true\n"
                    "script: \"(function () { return [invokers.get(1)]; })()\"\n";
const char KEY[] = "demo-provider.script-router";

void script_app(const json &one)
{
    need_scripts();
    const json &expect = get(one, "expect");
    const json rows = providers_of(one);
    // dubbo-go's own dialect has no such router; its rules are read by the default one.
    const int dialect = dialect_of(one) == BYWAY_DIALECT_DUBBO_GO ? BYWAY_DIALECT_BYWAY : dialect_of(one);
    script_world w(one, dialect, rows);
    const std::string application = rows.empty() ? "" : parameter(url_of(rows[0]), "application");
    (void)w.engine.set_rule(application.empty() ? KEY : application + ".script-router", text(one, "rule"));
    if (get(expect, "count").is_number())
        same(w.rows().size(), get(expect, "count"), "count");
    else
        same(w.ids(), expect, "ids");
}

std::string replaced(const std::string &old, const std::string &by)
{
    std::string text = GOOD;
    return text.replace(text.find(old), old.size(), by);
}

void lifecycle(const json &one)
{
    need_scripts();
    const json &steps = get(one, "expect");
    script_world w(one, BYWAY_DIALECT_DUBBO_3,
                   steps.is_array() ? providers_of(one) : providers_of({{"invokers", json::array()}}, 2));
    if (!steps.is_array()) {
        // A removal has no content.
        w.engine.set_rule(KEY, GOOD).value();
        w.engine.remove_rule(KEY).value();
        need(w.everybody(), "still filtered");
        return;
    }
    for (const json &step : steps) {
        const std::string event = text(step, "event");
        std::string next;
        if (event == "ADDED" || event == "MODIFIED good")
            next = GOOD;
        else if (event == "MODIFIED enabled: false")
            next = replaced("enabled: true", "enabled: false");
        else if (event == "MODIFIED type: nosuch, enabled: true") {
            // Upstream keeps its compiled script for this step.
            w.engine.set_rule(KEY, GOOD).value();
            next = replaced("type: javascript", "type: nosuch");
        } else if (event == "MODIFIED without script")
            next = "configVersion: v3.0\nkey: demo-provider\ntype: javascript\n";
        else if (event == "MODIFIED bad yaml")
            next = "script: [";
        else if (event == "DELETED")
            (void)w.engine.remove_rule(KEY);
        else
            need(event == "no rule", "unknown event " + event);
        if (!next.empty())
            (void)w.engine.set_rule(KEY, next);
        same(w.ids(), get(step, get(step, "sane_route").is_array() ? "sane_route" : "route"), event);
    }
}

void reported(const json &one)
{
    need_scripts();
    const json &input = get(one, "input");
    const auto kept = [&](const std::string &text) {
        script_world w(input, BYWAY_DIALECT_BYWAY, providers_of(input));
        (void)w.chain.set_rule_urls({"script://0.0.0.0/S?rule=" + encoded(text)});
        return w.ids();
    };
    json got;
    if (has(input, "script"))
        got = kept(text(input, "script"));
    else
        for (const json &each : get(input, "scripts"))
            got.push_back(kept(each.get<std::string>()));
    same(got, get(get(one, "expect"), "kept"), "kept");
}

const kinds here = {
    {"dubbo_chain", "script", script},         {"dubbo_chain", "file", file},
    {"dubbo_chain", "script-app", script_app}, {"dubbo_chain", "script-app-lifecycle", lifecycle},
    {"bugs", "script_route", reported},        {"bugs", "script_route_list", reported},
};

} // namespace
} // namespace conform
