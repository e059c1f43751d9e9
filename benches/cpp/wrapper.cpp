/* What byway.hpp costs over byway.h: the same work by both, in one run, batches taking turns; thread CPU time, the
 * median of the differences. One line `bar NAME VALUE LIMIT ok|short` each, in nanoseconds over the calls in C. */
#include "byway.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <vector>

namespace {

constexpr int BATCHES = 41;
bool short_of_a_bar = false;
volatile std::uint64_t sink;

double now_ns()
{
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

void need(bool good, const char *what)
{
    if (good)
        return;
    std::fprintf(stderr, "%s failed\n", what);
    std::exit(2);
}

template <class Body> double batch(Body &body, long rounds)
{
    const double start = now_ns();
    for (long i = 0; i < rounds; ++i)
        body();
    return (now_ns() - start) / static_cast<double>(rounds);
}

double median(std::vector<double> values)
{
    std::nth_element(values.begin(), values.begin() + BATCHES / 2, values.end());
    return values[BATCHES / 2];
}

template <class C, class Cpp> void compare(const char *name, double limit, C in_c, Cpp in_cpp)
{
    long rounds = 1;
    while (batch(in_c, rounds) * static_cast<double>(rounds) < 1e6)
        rounds *= 2;
    batch(in_cpp, rounds);
    std::vector<double> c, difference;
    for (int i = 0; i < BATCHES; ++i) {
        // Each comes first every other time.
        const double first = i % 2 ? batch(in_c, rounds) : batch(in_cpp, rounds);
        const double second = i % 2 ? batch(in_cpp, rounds) : batch(in_c, rounds);
        c.push_back(i % 2 ? first : second);
        difference.push_back(i % 2 ? second - first : first - second);
    }
    const double over = median(difference);
    std::printf("    %-36s %9.2f ns in C\n", name, median(c));
    std::printf("bar cpp_%s_over_c_ns %.2f %.2f %s\n", name, over, limit, over <= limit ? "ok" : "short");
    short_of_a_bar |= over > limit;
}

void session_route()
{
    byway::engine engine = byway::engine::make().value();
    byway::chain chain = byway::chain::make(engine, "consumer://127.0.0.1/S?interface=S&region=r1").value();
    std::vector<std::string> urls;
    for (int i = 0; i < 100; ++i)
        urls.push_back("dubbo://10.0.0." + std::to_string(i + 1) + ":20880/S?region=r" + std::to_string(i % 4));
    chain.set_invokers(byway::invokers::make(engine, urls).value()).value();
    engine.set_rule("S::.condition-router", "conditions: ['method=get* => region=$region']\nforce: true\n").value();
    byway::session session = byway::session::make(chain).value();
    byway::invocation call = byway::invocation::make("getIt").value();
    need(session.route(call).value().size() == 25, "route");
    compare(
        "route", 5,
        [&] {
            const byway_choice *choice = nullptr;
            if (byway_session_route(session.get(), call.get(), &choice, nullptr) != BYWAY_OK)
                std::exit(2);
            sink = sink + byway_choice_len(choice);
        },
        [&] {
            auto choice = session.route(call);
            if (!choice)
                std::exit(2);
            sink = sink + choice->size();
        });
    const byway::pick_options options;
    compare(
        "pick", 5,
        [&] {
            byway_picked picked;
            if (byway_session_pick(session.get(), call.get(), &options, &picked, nullptr) != BYWAY_OK)
                std::exit(2);
            sink = sink + picked.tag;
        },
        [&] {
            auto picked = session.pick(call, options);
            if (!picked)
                std::exit(2);
            sink = sink + picked->tag;
        });
}

void selection()
{
    byway::engine engine = byway::engine::make().value();
    const byway::ip four[] = {byway::ip::v4(192, 0, 2, 1), byway::ip::v4(192, 0, 2, 2), byway::ip::v4(192, 0, 2, 3),
                              byway::ip::v4(192, 0, 2, 4)};
    auto dns = byway::dns::make(engine, [&](byway::dns_request &request, std::string_view) {
                   return request.add(four).status();
               }).value();
    byway::address_options where;
    where.host = "bench.example";
    where.port = 443;
    where.tls = true;
    where.dns = &dns;
    const byway::address address = byway::address::make(engine, where).value();
    const byway::selector_options options;
    compare(
        "selection", 5,
        [&] {
            byway_selector *selector = nullptr;
            byway_selection *routes = nullptr;
            byway_route_record records[16];
            std::size_t total = 0;
            if (byway_selector_new(engine.get(), address.get(), &options, &selector, nullptr) != BYWAY_OK ||
                byway_selector_next(selector, 0, &routes, nullptr) != BYWAY_OK ||
                byway_selection_records(routes, records, sizeof records[0], 16, &total) != BYWAY_OK || total != 4)
                std::exit(2);
            sink = sink + records[3].hop_port;
            byway_selection_free(routes);
            byway_selector_free(selector);
        },
        [&] {
            auto selector = byway::selector::make(engine, address, options);
            if (!selector)
                std::exit(2);
            auto routes = selector->next(std::chrono::milliseconds(0));
            byway::route_record records[16];
            if (!routes || routes->records(records).value() != 4)
                std::exit(2);
            sink = sink + records[3].hop_port;
        });
}

} // namespace

int main()
{
    session_route();
    selection();
    return short_of_a_bar;
}
