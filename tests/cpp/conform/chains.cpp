#include "chains.hpp"

namespace conform {

std::uint64_t world_now_ns = 3600000000000u;

world::world(int dialect, const std::string &consumer, const json &rows, const extra &more) : providers(rows)
{
    byway::engine_options options;
    options.seed = 7;
    options.dialect = dialect;
    options.monotonic_ns = [](void *) { return world_now_ns; };
    options.random = more.random;
    options.wall_ms = more.wall_ms;
    engine = byway::engine::make(options).value();
    chain = byway::chain::make(engine, consumer).value();
    std::vector<std::string> urls;
    std::vector<std::uint64_t> tags;
    for (const json &row : rows) {
        std::string url = url_of(row);
        if (!more.query.empty() && !contains(url, more.unless))
            url += (contains(url, "?") ? "&" : "?") + more.query;
        urls.push_back(url);
        tags.push_back(tags.size() + 1);
    }
    list = byway::invokers::make(engine, urls, tags).value();
    (void)chain.set_invokers(list).value();
    call = byway::invocation::make().value();
}

const std::string &world::keep(std::string text) { return kept_.emplace_back(std::move(text)); }

void world::set_method(std::string_view name) { call.method(keep(std::string(name))).value(); }

void world::set_attachment(const std::string &key, const std::string &value)
{
    call.attachment(keep(key), keep(value)).value();
}

bool world::set_call(const json &invocation)
{
    call.reset().value();
    if (has(invocation, "method"))
        set_method(text(invocation, "method"));
    const json &given = get(invocation, "arguments");
    std::vector<byway::argument> arguments;
    for (const json &one : given) {
        if (one.is_null())
            arguments.emplace_back(nullptr);
        else
            arguments.emplace_back(keep(one.is_string() ? one.get<std::string>() : one.dump()));
    }
    call.arguments(arguments).value();
    // A first argument that is no text names no method of a generic call.
    if (!given.empty() && !given[0].is_string())
        call.types(std::vector<byway::argument>(given.size(), "java.lang.Object")).value();
    const json &attachments = get(invocation, "attachments");
    for (const auto &[key, value] : attachments.items())
        if (value.is_string())
            set_attachment(key, value.get<std::string>());
    return has(invocation, "method");
}

json world::rows() const
{
    json all = json::array();
    for (const std::uint64_t tag : chain.route(call).value().tags())
        all.push_back(tag - 1);
    return all;
}

json world::ids() const
{
    json all = json::array();
    for (const json &row : rows())
        all.push_back(get(providers[row.get<std::size_t>()], "id"));
    return all;
}

std::string consumer_with(const std::string &consumer, const std::string &routers)
{
    const std::string base = contains(consumer, "://") ? consumer : "consumer://127.0.0.1/com.demo.Service";
    if (routers.empty() || contains(base, "router="))
        return base;
    return base + (contains(base, "?") ? "&" : "?") + routers;
}

int dialect_named(const std::string &name)
{
    if (name == "byway")
        return BYWAY_DIALECT_BYWAY;
    if (starts(name, "dubbo-3"))
        return BYWAY_DIALECT_DUBBO_3;
    if (name == "dubbo-2.7")
        return BYWAY_DIALECT_DUBBO_2_7;
    return name == "dubbo-go" ? BYWAY_DIALECT_DUBBO_GO : -1;
}

int dialect_of(const json &one)
{
    const std::string source = text(one, "source");
    if (starts(source, "dubbo-go"))
        return BYWAY_DIALECT_DUBBO_GO;
    return contains(source, "2.7") ? BYWAY_DIALECT_DUBBO_2_7 : BYWAY_DIALECT_DUBBO_3;
}

const json &sane_of(const json &one)
{
    static const json nothing;
    for (const char *name : {"expect_byway", "sane_expect", "fixed_expect"})
        if (has(one, name))
            return get(one, name).is_string() ? nothing : get(one, name);
    return nothing;
}

json status_of(const byway::chain &chain, const std::string &router)
{
    const json status = json::parse(chain.status().value());
    json found;
    for (const json &one : get(status, "routers"))
        if (text(one, "name") == router)
            found = one;
    return found;
}

std::string encoded(const std::string &text)
{
    static const char digits[] = "0123456789ABCDEF";
    std::string all;
    for (unsigned char byte : text)
        all += {'%', digits[byte >> 4], digits[byte & 15]};
    return all;
}

std::string parameter(const std::string &url, const std::string &name)
{
    for (auto at = url.find('?'); at != url.npos; at = url.find('&', at + 1))
        if (url.compare(at + 1, name.size() + 1, name + "=") == 0) {
            const auto begin = at + 2 + name.size();
            return url.substr(begin, url.find('&', begin) - begin);
        }
    return "";
}

std::string url_of(const json &invoker)
{
    return invoker.is_string() ? invoker.get<std::string>() : text(invoker, "url");
}

} // namespace conform
