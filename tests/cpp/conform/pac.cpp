// Proxy scripts: helpers, arguments, answers, limits.
#include "proxies.hpp"

#include <ctime>

namespace conform {
namespace {

using byway::proxy_selector;

// Seconds since 1970 of `YYYY-MM-DDTHH:MM:SSZ`.
std::int64_t instant(const std::string &text)
{
    std::tm at = {};
    need(std::sscanf(text.c_str(), "%d-%d-%dT%d:%d:%dZ", &at.tm_year, &at.tm_mon, &at.tm_mday, &at.tm_hour, &at.tm_min,
                     &at.tm_sec) == 6,
         "not a time: " + text);
    at.tm_year -= 1900;
    at.tm_mon -= 1;
    return timegm(&at);
}

// A script with the clock, the names and the addresses of its case.
struct script {
    std::int64_t wall_ms;
    byway::engine engine;
    std::vector<std::pair<std::string, byway::ip>> names;
    std::vector<byway::ip> own;
    json asked = json::array();
    byway::dns dns;
    byway::pac_options options;
    std::string source;

    script(const json &input, const std::string &now, std::string text_of_it)
        : wall_ms(now.empty() ? 0 : instant(now) * 1000),
          source(std::move(text_of_it))
    {
        if (!byway::has_feature("script"))
            skip("built without scripts");
        byway::engine_options by;
        by.source_data = &wall_ms;
        by.wall_ms = [](void *data) { return *static_cast<std::int64_t *>(data); };
        engine = byway::engine::make(by).value();
        // Some cases say in words that every lookup fails.
        const json table = get(input, "dns").is_object() ? get(input, "dns") : json::object();
        for (const auto &[name, ip] : table.items()) {
            const auto address = byway::ip::parse(ip.get<std::string>()).value();
            if (name == "myIpAddress")
                own.push_back(address);
            else
                names.emplace_back(name, address);
        }
        for (const json &ip : get(input, "local_addresses"))
            own.push_back(byway::ip::parse(ip.get<std::string>()).value());
        dns = byway::dns::make(engine, [this](byway::dns_request &request, std::string_view host) {
                  return lookup(request, host);
              }).value();
        options.url = byway::str("case.pac");
        options.dns = dns.get();
        options.set_my_addresses(own);
        options.flags = BYWAY_PAC_FIXED_ZONE;
        // Ample on a busy machine; cases about time say so.
        options.time_limit_ms = 30000;
    }
    script(const script &) = delete;
    ~script() { (void)engine.shutdown(std::chrono::seconds(60)); }

    byway_status lookup(byway::dns_request &request, std::string_view host)
    {
        asked.push_back(std::string(host));
        bool found = false;
        for (const auto &[pattern, ip] : names) {
            const bool any = starts(pattern, "*");
            const std::string_view suffix = std::string_view(pattern).substr(any);
            const bool covers = any ? host.size() >= suffix.size() && host.substr(host.size() - suffix.size()) == suffix
                                    : host == pattern;
            if (covers)
                request.add(ip).value();
            found |= covers;
        }
        return found ? request.finish().status() : request.fail("not in the case").status();
    }

    byway::result<proxy_selector> load()
    {
        options.source = byway::str(source);
        return proxy_selector::pac(engine, options);
    }
    proxies run(const std::string &url) { return ask(engine, load(), url); }
};

// What an expression is worth, carried out of the script in the names of proxies: hexadecimal JSON, or what was thrown.
std::string evaluated(script &by, const std::string &expression)
{
    by.source = "function FindProxyForURL(url, host) { var v; try { v = JSON.stringify((" + expression +
                ")); if (v === undefined) v = 'null'; } catch (e) { v = 'threw ' + e; }\n var r = '';"
                " for (var i = 0; i < v.length; i++) r += 'PROXY h' + v.charCodeAt(i) + ':1;'; return r; }";
    const auto got = by.run(CASE);
    if (got.error)
        fail(expression + ": " + got.error->what());
    std::string text;
    for (const byway::proxy &one : got.list)
        text += static_cast<char>(std::stoi(std::string(one.host().substr(1))));
    return text;
}

void pac_helper(script &by, const json &input, const json &expect)
{
    if (by.own.empty() && contains(text(input, "expr"), "myIpAddress"))
        skip("a machine without addresses");
    const std::string got = evaluated(by, text(input, "expr"));
    if (flag(expect, "throws"))
        need(starts(got, "threw ") && contains(got, text(expect, "kind")), "got " + got);
    else
        same(json::parse(got, nullptr, false), get(expect, "value"), text(input, "expr"));
}

// Scripts that a case only describes.
std::string described(const std::string &source)
{
    const char *nth = source == "(FindProxyForURL is a getter that throws on first access)"  ? "1"
                    : source == "(FindProxyForURL is a getter that throws on second access)" ? "2"
                                                                                             : nullptr;
    if (!nth)
        return source;
    return "var n = 0; Object.defineProperty(globalThis, 'FindProxyForURL', { get() { if (++n >= " + std::string(nth) +
           ") throw new Error('no'); return function () { return 'DIRECT'; }; } });";
}

void pac_find(script &by, const json &input, const json &expect)
{
    const std::string url = text(input, "url", "http://example.com/");
    const auto chooser = by.load();
    if (has(expect, "my_ip_calls"))
        skip("how often addresses are asked for");
    if (has(expect, "sequence")) {
        const auto places = [&](const byway::result<proxy_selector> &of) {
            json all = json::array();
            for (int i = 0; i < number(input, "calls"); ++i)
                all.push_back(ask(by.engine, of, url, &by.dns).spot());
            return all;
        };
        same(places(chooser), get(expect, "sequence"), "sequence");
        same(places(by.load()), get(expect, "after_reload"), "after reload");
        return;
    }
    const auto got = ask(by.engine, chooser, url, &by.dns);
    if (has(expect, "error")) {
        need(got.error.has_value(), "got " + got.first());
        const byway_status code = got.error->code();
        const std::string kind = code == BYWAY_E_TIMEOUT ? "pac_timeout"
                               : code == BYWAY_E_LIMIT   ? "pac_memory"
                                                         : "pac_script_failed";
        need(contains("|" + text(expect, "error") + "|", "|" + kind + "|"), "got " + got.error->what());
        if (has(expect, "stage"))
            same(!chooser, text(expect, "stage") == "load", "refused when it is loaded");
        return;
    }
    need(!got.error, got.error ? got.error->what() : "");
    same(got.as_json(), without_credentials(get(expect, "proxies")), "proxies");
}

// Browsers' rules: these cases are about what scripts in the wild rely on.
void pac(const json &one)
{
    const json &input = get(one, "input"), &expect = get(one, "expect");
    const std::string op = text(input, "op");
    script by(input, text(input, "now"), described(text(input, "script")));
    by.options.flags |= BYWAY_PAC_EMPTY_IS_DIRECT | BYWAY_PAC_BROWSER_CALENDAR;
    if (contains(text(expect, "error"), "pac_timeout"))
        by.options.time_limit_ms = 250;
    if (op == "helper") {
        pac_helper(by, input, expect);
    } else if (op == "helper_resolver_sees") {
        (void)evaluated(by, text(input, "expr"));
        if (get(expect, "resolver_input") == json::array({""}))
            skip("nobody is asked for an empty name");
        same(by.asked, get(expect, "resolver_input"), "resolver input");
    } else if (op == "arguments") {
        by.source = "function FindProxyForURL(url, host) { var v = url + '\\n' + host, r = '';"
                    " for (var i = 0; i < v.length; i++) r += 'PROXY h' + v.charCodeAt(i) + ':1;'; return r; }";
        by.options.flags |= BYWAY_PAC_ASK_LOOPBACK;
        const auto got = by.run(text(input, "url"));
        std::string told;
        for (const byway::proxy &each : got.list)
            told += static_cast<char>(std::stoi(std::string(each.host().substr(1))));
        same(told, text(expect, "url_arg") + "\n" + text(expect, "host_arg"),
             got.error ? got.error->what() : "arguments");
    } else if (op == "find")
        pac_find(by, input, expect);
    else
        skip(op + " is told to nobody");
}

void pac_string(const json &one)
{
    const json &input = get(one, "input"), &expect = get(one, "expect");
    if (has(input, "keep_types"))
        skip("answers of some kinds alone");
    const std::string given = text(input, "pac");
    script by(input, "", "function FindProxyForURL(url, host) { return " + json(given).dump() + "; }");
    by.options.flags |= BYWAY_PAC_EMPTY_IS_DIRECT;
    const auto got = by.run(CASE);
    if (has(expect, "error")) {
        need(got.error.has_value(), "got " + got.first());
        return;
    }
    if (got.error)
        fail(got.error->what());
    same(got.as_json(), without_credentials(get(expect, "proxies")), given);
}

void reported_pac(const json &one)
{
    const json &input = get(one, "input"), &expect = get(one, "expect");
    const std::string url = text(input, "url");
    script by(input, text(input, "clock"), text(input, "script"));
    if (text(expect, "error") == "pac_timeout")
        by.options.time_limit_ms = static_cast<std::uint32_t>(number(input, "budget_ms", 250));
    const auto got = by.run(url);
    if (has(expect, "error")) {
        const std::string want = text(expect, "error");
        need(got.error.has_value(), "got " + got.first());
        same(got.error->code(),
             want == "pac_timeout"  ? BYWAY_E_TIMEOUT
             : want == "pac_memory" ? BYWAY_E_LIMIT
                                    : BYWAY_E_PAC,
             want);
        if (want == "pac_syntax")
            need(got.error->line() > 0 && got.error->column() > 0, "no line and column");
    } else {
        if (got.error)
            fail(got.error->what());
        json want = json::array();
        for (const json &proxy : get(expect, "proxies")) {
            std::string named = proxy.get<std::string>();
            if (starts(named, "socks5://"))
                named.replace(0, 6, "socks5h");
            else if (starts(named, "socks://"))
                named.replace(0, 5, "socks4");
            want.push_back(named);
        }
        same(got.urls(), want, "proxies");
    }
    if (has(expect, "then")) {
        by.source = text(get(expect, "then"), "script");
        same(by.run(url).urls(), get(get(expect, "then"), "proxies"), "then");
    }
}

const kinds here = {
    {"proxy", "pac", pac},
    {"proxy", "pac_string", pac_string},
    {"bugs", "pac", reported_pac},
};

} // namespace
} // namespace conform
