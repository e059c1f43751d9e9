// byway.hpp: owners, results, callbacks. Compiled for every standard it claims, with and without exceptions.
#include "byway.hpp"

#include "../c/tap.h"

#include <cstring>
#include <thread>
#include <type_traits>

using namespace std::chrono_literals;

static_assert(!std::is_copy_constructible<byway::selector>::value, "exclusive handles only move");
static_assert(std::is_nothrow_move_constructible<byway::selector>::value, "moves do not throw");
static_assert(std::is_copy_constructible<byway::engine>::value, "shared handles copy");

namespace {

struct counted {
    explicit counted(int &alive) : alive_(&alive) { ++*alive_; }
    counted(const counted &other) : alive_(other.alive_) { ++*alive_; }
    counted &operator=(const counted &) = delete;
    ~counted() { --*alive_; }
    int *alive_;
};

byway::address address_of(const byway::engine &engine, const byway::dns &dns, const char *host = "a.example")
{
    byway::address_options where;
    where.host = host;
    where.port = 443;
    where.tls = true;
    where.dns = &dns;
    return byway::address::make(engine, where).value();
}

void ownership()
{
    byway::engine engine = byway::engine::make().value();
    byway::engine &same = engine;
    engine = same;
    engine = std::move(same);
    OK(engine && engine.should_postpone(byway::route()) == false, "self-assignment and self-move keep a shared handle");

    byway::dns dns = byway::dns::hosts(engine, "192.0.2.1 a.example\n").value();
    byway::selector selector = byway::selector::make(engine, address_of(engine, dns)).value();
    byway::selector &itself = selector;
    selector = std::move(itself);
    OK(selector && selector.may_have_next(), "self-move keeps an exclusive handle");
    byway::selector other = std::move(selector);
    OK(!selector && other, "a moved-from owner is empty"); // NOLINT: that is what is tested
    OK(selector.next().error().code() == BYWAY_E_BAD_HANDLE, "an empty owner is refused, not followed");
}

void routes()
{
    byway::engine engine = byway::engine::make().value();
    int alive = 0;
    {
        auto dns = byway::dns::make(engine, [mark = counted(alive)](byway::dns_request &request, std::string_view host) {
                       return host == "a.example" ? request.add("192.0.2.1 192.0.2.2").status()
                                                  : request.fail("not mine").status();
                   }).value();
        byway::address address = address_of(engine, dns);
        byway::selection first = byway::selector::make(engine, address).value().next(1s).value();
        OK(first.size() == 2, "two routes");
        byway::route kept = byway::route::keep(first[0]);
        OK(engine.connect_failed(kept, BYWAY_FAILURE_REFUSED).has_value() && engine.should_postpone(kept),
           "a reported failure is remembered");
        byway::selector again = byway::selector::make(engine, address).value();
        byway::selection second = again.next().value();
        OK(second.size() == 1 && byway::route::keep(second[0]) != kept, "what failed stands behind");
        int count = 0;
        byway::selection third = again.next().value();
        for (const byway::route &route : third)
            count += route.postponed() && route == kept;
        OK(count == 1, "and comes last");
        OK(!again.next().value(), "an empty owner says that nothing is left");
        OK(again.explain().value().find("postponed") != std::string::npos, "the explanation says why");

        auto refused = byway::selector::make(engine, address_of(engine, dns, "b.example")).value().next();
        OK(!refused && refused.error().subject() == "b.example", "a failure names its host");
        OK(alive == 1, "one callback object while it may be called");
    }
    OK(engine.shutdown(5s).status() == BYWAY_OK && alive == 0, "destroyed exactly once");
}

void later()
{
    byway::engine engine = byway::engine::make().value();
    std::thread helper;
    auto dns = byway::dns::make(engine, [&](byway::dns_request &request, std::string_view) {
                   helper = std::thread([asked = request]() mutable {
                       asked.add("192.0.2.7").value();
                       asked.finish().value();
                   });
                   return BYWAY_PENDING;
               }).value();
    auto got = byway::selector::make(engine, address_of(engine, dns)).value().next(10s);
    helper.join();
    OK(got && got->size() == 1, "an answer from another thread");
}

void chains()
{
    byway::engine engine = byway::engine::make().value();
    byway::chain chain = byway::chain::make(engine, "consumer://127.0.0.1/HelloService?interface=HelloService").value();
    chain.set_invokers(byway::invokers::make(engine, {"tri://10.0.0.1:20880/HelloService?application=demo",
                                                      "tri://10.0.0.2:20882/HelloService?application=demo"},
                                             {7, 9}).value()).value();
    engine.set_rule("HelloService::.condition-router",
                    "scope: service\nforce: true\nenabled: true\nkey: HelloService\n"
                    "conditions: ['method=hello => address=*:20880']\n").value();
    byway::invocation hello = byway::invocation::make("hello").value();
    OK(chain.route(hello).value().tags() == std::vector<std::uint64_t>{7}, "a rule routes");
    OK(chain.pick(hello).value().tag == 7, "one is picked");
    byway::session session = byway::session::make(chain).value();
    OK(byway_choice_len(session.route(hello).value()) == 1, "a session shows its result");
    auto bad = engine.set_rule("HelloService::.condition-router", "conditions: [");
    OK(!bad && bad.error().line() == 1, "a bad rule says where");
}

#if BYWAY_HAS_EXCEPTIONS
void exceptions()
{
    byway::engine engine = byway::engine::make().value();
    auto dns = byway::dns::make(engine, [](byway::dns_request &, std::string_view) -> byway_status {
                   throw std::string("mine");
               }).value();
    byway::selector selector = byway::selector::make(engine, address_of(engine, dns)).value();
    std::string caught;
    try {
        (void)selector.next().value();
    } catch (const std::string &thrown) {
        caught = thrown;
    }
    OK(caught == "mine", "what a callback threw comes back to the caller");
    int code = 0;
    try {
        byway::address_options where;
        where.host = "a b";
        where.port = 1;
        (void)byway::address::make(engine, where).value();
    } catch (const byway::exception &thrown) {
        code = thrown.error().code();
    }
    OK(code == BYWAY_E_INVALID_HOST, "a failure becomes an exception that has its code");
}
#endif

} // namespace

int main()
{
    ownership();
    routes();
    later();
    chains();
#if BYWAY_HAS_EXCEPTIONS
    exceptions();
#endif
    return tap_done();
}
