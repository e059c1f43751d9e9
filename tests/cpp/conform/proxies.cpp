// proxy.jsonl and the proxy area of bugs.jsonl: environments, properties, lists of exceptions, settings of systems.
#include "proxies.hpp"

namespace conform {
namespace {

std::string shown(const byway::proxy &one) { return one ? one.text() : "direct://"; }

} // namespace

std::string proxies::first() const { return error ? status(*error) : list.empty() ? "nothing" : shown(list[0]); }

std::string proxies::spot() const
{
    if (error || list.empty())
        return first();
    return std::string(list[0].host()) + ":" + std::to_string(list[0].port());
}

json proxies::as_json() const
{
    static const char *const kinds[] = {"direct", "http", "https", "socks4", "socks4a", "socks5", "socks5h"};
    json all = json::array();
    for (const byway::proxy &one : list) {
        json entry = {{"type", kinds[one.kind()]}};
        if (one) {
            entry["host"] = std::string(one.host());
            entry["port"] = one.port();
        }
        all.push_back(entry);
    }
    return all;
}

json proxies::urls() const
{
    json all = json::array();
    for (const byway::proxy &one : list)
        all.push_back(shown(one));
    return all;
}

proxies ask(const byway::engine &by, const byway::result<byway::proxy_selector> &chooser, const std::string &url,
            const byway::dns *names)
{
    if (!chooser)
        return {{}, chooser.error()};
    auto list = by.proxies_for_url(*chooser, url, std::chrono::seconds(60), names);
    if (!list)
        return {{}, list.error()};
    return {std::move(*list), {}};
}

json without_credentials(json list)
{
    for (json &entry : list) {
        entry.erase("user");
        entry.erase("password");
    }
    return list;
}

namespace {

using byway::proxy_selector;
using table = std::vector<std::pair<std::string, std::string>>;

// Implementations that are a dialect of byway, by the names the cases use.
const std::pair<const char *, const char *> DIALECTS[] = {
    {"curl", "curl"}, {"go", "go"}, {"urllib", "python"}, {"undici", "node"}, {"chromium", "chromium"}};

byway::engine &engine()
{
    static byway::engine one = byway::engine::make().value();
    return one;
}

proxies ask(const byway::result<proxy_selector> &chooser, const std::string &url)
{
    return conform::ask(engine(), chooser, url);
}

table table_of(const json &object)
{
    table all;
    for (const auto &[name, value] : object.items())
        all.emplace_back(name, value.is_string() ? value.get<std::string>() : "");
    return all;
}

std::vector<byway::setting> settings_of(const table &given) { return {given.begin(), given.end()}; }

byway::result<proxy_selector> environment(const table &given, std::string_view dialect)
{
    return proxy_selector::environment(engine(), settings_of(given), dialect);
}

std::string category(const byway::error &why)
{
    switch (why.code()) {
    case BYWAY_E_PROXY_SELECTOR: {
        // The request fails, for a reason that is its cause.
        return why.causes().empty() ? "refused_in_cgi" : category(why.causes()[0]);
    }
    case BYWAY_E_INVALID_PROXY:
        return "invalid_proxy";
    case BYWAY_E_INVALID_URL:
    case BYWAY_E_INVALID_HOST:
        return "invalid_url";
    case BYWAY_E_INVALID_PORT:
        return "invalid_port";
    default:
        return status(why);
    }
}

void check_expect(const std::string &what, const proxies &got, const json &expect)
{
    if (!has(expect, "error")) {
        need(!got.error, what + ": " + (got.error ? got.error->what() : ""));
        same(got.as_json(), without_credentials(get(expect, "proxies")), what);
        return;
    }
    const std::string want = text(expect, "error");
    need(got.error.has_value(), what + ": got " + got.as_json().dump() + ", want " + want);
    // java.lang.IllegalArgumentException is the JDK's word for a port it cannot use.
    need(category(*got.error) == want || contains(want, "IllegalArgumentException") || want == "configuration",
         what + ": got " + got.error->what() + ", want " + want);
}

// --- NO_PROXY
// ------------------------------------------------------------------------------------------------------------

// Whether a list takes a URL out: what is DIRECT is not the proxy behind it.
bool excepted(const byway::bypass_options &list, const std::string &url)
{
    static const auto behind =
        proxy_selector::fixed(engine(), {byway::proxy::make(BYWAY_PROXY_HTTP, "p.example", 3128).value()}).value();
    const proxies got = ask(proxy_selector::bypass(engine(), list, behind), url);
    if (got.error)
        fail(url + ": " + got.error->what());
    return got.first() == "direct://";
}

bool bypassed(const std::string &list, std::string_view dialect, bool loopback, const std::string &url)
{
    byway::bypass_options options(list, BYWAY_BYPASS_NO_PROXY);
    options.dialect = byway::str(dialect);
    options.flags = loopback ? 0 : BYWAY_BYPASS_PROXY_LOOPBACK;
    return excepted(options, url);
}

void no_proxy(const json &one)
{
    const json &answers = get(one, "answers"), &expect = get(one, "expect");
    const std::string list = text(get(one, "input"), "no_proxy"), url = text(get(one, "input"), "url");
    same(bypassed(list, "byway", false, url), get(expect, "bypass"), "byway");
    same(bypassed(list, "byway", true, url), get(expect, "bypass_with_implicit_loopback"), "byway with loopback");
    for (const auto &[name, dialect] : DIALECTS)
        if (get(answers, name).is_boolean())
            same(bypassed(list, dialect, true, url), get(answers, name), name);
}

// `byway` for "ours"; libproxy's list has no implied loopback.
std::string dialect_in_log(const json &one)
{
    const std::string name = text(one, "dialect", "byway");
    return name == "ours" || name == "libproxy" ? "byway" : name;
}

std::string url_for(const std::string &host, const json &port = json())
{
    if (contains(host, "://"))
        return host;
    const bool bare = contains(host, ":") && host[0] != '[';
    return "http://" + (bare ? "[" + host + "]" : host) + (port.is_number() ? ":" + port.dump() : "") + "/";
}

void reported_no_proxy(const json &one)
{
    const json &input = get(one, "input"), &port = get(input, "scheme_port"), &want = get(get(one, "expect"), "bypass");
    const std::string dialect = dialect_in_log(one);
    json got = json::array();
    const auto decide = [&](const std::string &list, const std::string &host) {
        got.push_back(bypassed(list, dialect, dialect != "byway", url_for(host, port)));
    };
    if (get(input, "checks").is_array())
        for (const json &check : get(input, "checks"))
            decide(check[0].get<std::string>(), check[1].get<std::string>());
    else if (get(input, "hosts").is_array())
        for (const json &host : get(input, "hosts"))
            decide(text(input, "no_proxy"), host.get<std::string>());
    else
        decide(text(input, "no_proxy"), text(input, "host", text(input, "url")));
    same(want.is_array() ? got : got[0], want, "bypass");
}

// --- lists of browsers and systems
// ------------------------------------------------------------------------------------------

void bypass(const json &one)
{
    const std::string rules = text(get(one, "input"), "rules"), url = text(get(one, "input"), "url");
    const byway::bypass_options list(rules);
    // A URL that is none (its host ends in a number and is no address) is an error before any list is asked.
    const auto direct = engine().proxies_for_url(proxy_selector::direct(engine()).value(), url);
    same(direct && excepted(list, url), get(get(one, "expect"), "bypass"), "bypass");
}

void exceptions(const json &one, const byway::bypass_options &list)
{
    json got = json::array();
    for (const json &host : get(get(one, "input"), "hosts"))
        got.push_back(excepted(list, url_for(host.get<std::string>())));
    same(got, get(get(one, "expect"), "bypass"), "bypass");
}

void windows_exceptions(const json &one)
{
    const std::string list = text(get(one, "input"), "ProxyOverride");
    exceptions(one, byway::bypass_options(list, BYWAY_BYPASS_WINDOWS));
}

void macos_exceptions(const json &one)
{
    const json &input = get(one, "input");
    std::string list;
    for (const json &entry : get(input, "exceptions"))
        list += entry.get<std::string>() + ",";
    byway::bypass_options options(list, BYWAY_BYPASS_MACOS);
    options.flags = flag(input, "exclude_simple") ? BYWAY_BYPASS_EXCLUDE_SIMPLE : 0;
    exceptions(one, options);
}

void windows_server(const json &one)
{
    const auto chooser = proxy_selector::windows(engine(), text(get(one, "input"), "ProxyServer"), "<-loopback>");
    const json &expect = get(one, "expect");
    for (const auto &[scheme, want] : expect.items()) {
        std::string wanted = want.is_string() ? want.get<std::string>() : "direct://";
        if (starts(wanted, "socks://"))
            wanted.replace(0, 5, "socks4");
        same(ask(chooser, scheme == "socks" ? "gopher://h/" : scheme + "://h.example/").first(), wanted, scheme);
    }
}

void desktop(const json &one)
{
    const json &input = get(one, "input");
    std::string keyfile = "[org/gnome/system/proxy]\nmode='" + text(input, "mode") + "'\n";
    for (const char *scheme : {"http", "https", "ftp", "socks"}) {
        const std::string given = text(input, scheme);
        const auto slashes = given.find("://"), host = slashes == given.npos ? 0 : slashes + 3,
                   colon = given.rfind(':');
        if (!given.empty())
            keyfile += "\n[org/gnome/system/proxy/" + std::string(scheme) + "]\nhost='" +
                       given.substr(host, colon - host) +
                       "'\nport=" + given.substr(colon + 1, given.find('/', colon) - colon - 1) + "\n";
    }
    byway::system_options options;
    options.set_environment({});
    options.keyfile = byway::str(keyfile);
    const auto got = ask(proxy_selector::system(engine(), options), text(input, "url"));
    if (got.error)
        fail(got.error->what());
    same(got.urls(), get(get(one, "expect"), "proxies"), "proxies");
}

// --- environment, properties
// ----------------------------------------------------------------------------------------------

// The proxy a URL names, as the environment itself reads it.
proxies named(const std::string &url, const std::string &dialect = "byway")
{
    return ask(environment({{"http_proxy", url}}, dialect), CASE);
}

void environment_case(const json &one)
{
    const table given = table_of(get(get(one, "input"), "env"));
    const std::string url = text(get(one, "input"), "url");
    const json &expect = get(one, "expect"), &answers = get(one, "answers");
    check_expect("byway", ask(environment(given, "byway"), url), expect);
    for (const auto &[name, dialect] : DIALECTS) {
        const json &answer = get(answers, name);
        if (!answer.is_object())
            continue;
        const auto got = ask(environment(given, dialect), url);
        const bool errs = answer.contains("error");
        // Where a program hands a bad value on or drops it, byway has one rule: an error of the request.
        if (got.error && (errs || has(expect, "error")))
            continue;
        if (has(answer, "proxy") && !errs) {
            // A value that byway's dialect refuses may be good in the program's.
            auto want = named(text(answer, "proxy"));
            if (want.error)
                want = named(text(answer, "proxy"), dialect);
            if (want.error)
                need(got.error.has_value(), std::string(name) + ": got " + got.first());
            else
                same(got.spot(), want.spot(), name);
            if (get(answer, "connect_port").is_number())
                same(got.list.at(0).port(), get(answer, "connect_port"), std::string(name) + ": port");
        } else {
            need(!errs, std::string(name) + ": got " + got.first() + ", want an error");
            same(got.as_json(), {{{"type", "direct"}}}, name);
        }
    }
}

void proxy_for_url(const json &one)
{
    const json &input = get(one, "input"), &expect = get(one, "expect");
    if (has(input, "explicit"))
        skip("no second layer over the environment");
    const std::string dialect = dialect_in_log(one);
    table given = table_of(get(input, "env"));
    if (has(input, "no_proxy"))
        given.emplace_back("no_proxy", text(input, "no_proxy"));
    const json urls = get(input, "urls").is_array() ? get(input, "urls") : json::array({get(input, "url")});
    for (std::size_t i = 0; i < urls.size(); ++i) {
        const auto of = [&](const char *name) {
            return get(expect, name).is_array() ? get(expect, name)[i] : get(expect, name);
        };
        const std::string url = urls[i].is_string() ? urls[i].get<std::string>() : "";
        const auto got = ask(environment(given, dialect), url);
        if (has(expect, "error")) {
            need(got.error.has_value(), url + ": got " + got.first());
            same(category(*got.error), of("error"), url);
            continue;
        }
        need(!got.error, url + ": " + (got.error ? got.error->what() : ""));
        const json want = of("proxy");
        const auto wanted = want.is_string() ? named(want.get<std::string>(), dialect) : proxies{{byway::proxy()}, {}};
        same(got.first(), wanted.first(), url);
        if (has(expect, "user")) {
            const auto &proxy = got.list[0];
            const auto bare = byway::proxy::make(proxy.kind(), proxy.host(), proxy.port()).value();
            need(proxy == bare.with_credentials(text(expect, "user"), text(expect, "password")).value(),
                 url + ": user");
        }
    }
}

void properties(const json &one)
{
    const table given = table_of(get(get(one, "input"), "properties"));
    const std::string url = text(get(one, "input"), "url"), released = text(get(one, "answers"), "jdk17");
    check_expect("byway", ask(proxy_selector::properties(engine(), settings_of(given), true), url), get(one, "expect"));
    if (released.empty())
        return;
    const auto got = ask(proxy_selector::properties(engine(), settings_of(given), false), url);
    if (got.error) {
        need(contains(released, "Exception"), "jdk17: " + got.error->what());
        return;
    }
    const byway::proxy &first = got.list.at(0);
    const char *kind = first.kind() == BYWAY_PROXY_HTTP   ? "HTTP "
                     : first.kind() == BYWAY_PROXY_SOCKS4 ? "SOCKSv4 "
                                                          : "SOCKSv5 ";
    same(first ? kind + got.spot() : "DIRECT", released, "jdk17");
}

void non_proxy_hosts(const json &one)
{
    const json &input = get(one, "input");
    const table given = {{"http.proxyHost", "p"}, {"http.nonProxyHosts", text(input, "nonProxyHosts")}};
    const auto chooser = proxy_selector::properties(engine(), settings_of(given), true);
    json got = json::array();
    for (const json &host : get(input, "hosts"))
        got.push_back(ask(chooser, url_for(host.get<std::string>())).first() == "direct://");
    same(got, get(get(one, "expect"), "bypass"), "bypass");
}

const kinds here = {
    {"proxy", "noproxy", no_proxy},
    {"proxy", "bypass", bypass},
    {"proxy", "env", environment_case},
    {"proxy", "nonproxyhosts", properties},
    {"bugs", "no_proxy", reported_no_proxy},
    {"bugs", "no_proxy_list", reported_no_proxy},
    {"bugs", "libproxy_ignore", reported_no_proxy},
    {"bugs", "proxy_for_url", proxy_for_url},
    {"bugs", "proxy_for_url_list", proxy_for_url},
    {"bugs", "jvm_non_proxy_hosts", non_proxy_hosts},
    {"bugs", "win_bypass", windows_exceptions},
    {"bugs", "mac_exceptions", macos_exceptions},
    {"bugs", "win_proxy_server", windows_server},
    {"bugs", "desktop_config", desktop},
};

} // namespace
} // namespace conform
