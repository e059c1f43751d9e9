/*
 * Routes calls to providers: a rule keeps calls in their region, a router of one's own sends some users to a canary,
 * one provider is picked, and a failed call goes to another one.
 *
 * Build: c++ -std=c++17 canary.cpp -lbyway
 */
#include "byway.hpp"

#include <cstdio>

namespace {

/* A tag is the host's own number for a provider: here its place in this table. */
const char *const NAMES[] = {"", "east 1", "east 2", "west 1", "canary"};

std::string names(const std::vector<std::uint64_t> &tags)
{
    std::string all;
    for (const std::uint64_t tag : tags)
        all += (all.empty() ? "" : ", ") + std::string(NAMES[tag]);
    return all;
}

} // namespace

int main()
{
    byway::engine engine = byway::engine::make().value();
    const char consumer[] = "consumer://10.0.0.9/shop.Cart?application=web&region=east";
    byway::chain chain = byway::chain::make(engine, consumer).value();

    /* Lambdas see the call; what they do not keep is not called. */
    const auto canary = byway::router::make(engine, "canary", 500, [](byway::router_request &request) -> byway_status {
                            const bool chosen = request.attachment("user").value_or("") == "alice";
                            request.keep_if([&](std::uint64_t tag) { return (tag == 4) == chosen; });
                            return BYWAY_OK;
                        }).value();
    chain.add_router(canary).value();
    chain.set_invokers(byway::invokers::make(engine, {"tri://10.0.0.1:20880/shop.Cart?region=east",
                                                      "tri://10.0.0.2:20880/shop.Cart?region=east",
                                                      "tri://10.1.0.1:20880/shop.Cart?region=west",
                                                      "tri://10.0.0.7:20880/shop.Cart?region=east"},
                                             {1, 2, 3, 4}).value()).value();
    const char key[] = "shop.Cart::.condition-router";
    engine.set_rule(key, "scope: service\nforce: false\nkey: shop.Cart\nconditions: [ '=> region=$region' ]\n").value();

    /* One session a thread: a class of calls seen before costs no lock and no allocation. */
    byway::session session = byway::session::make(chain).value();
    byway::invocation call = byway::invocation::make("add").value();
    for (const char *user : {"bob", "alice"}) {
        call.attachment("user", user).value();
        std::printf("%s may go to: %s\n", user, names(session.route(call).value().tags()).c_str());
    }

    /* Pick one; the call fails; pick another one. */
    call.attachment("user", "bob").value();
    const byway::picked first = session.pick(call).value();
    chain.pick_end(first, false).value();
    const std::uint64_t tried[] = {first.tag};
    byway::pick_options retry;
    retry.set_exclude(tried);
    const byway::picked second = session.pick(call, retry).value();
    chain.pick_end(second, true, std::chrono::milliseconds(2)).value();
    std::printf("retried on another provider: %s\n", first.tag != second.tag ? "yes" : "no");

    /* A rule is tried before it is set, and says where it is wrong. */
    std::vector<byway::invocation> calls;
    calls.push_back(std::move(call));
    const char west[] = "conditions: [ '=> region=west' ]\nforce: true\n";
    std::printf("%s", chain.diff(key, west, calls).value().c_str());
    if (auto bad = engine.set_rule(key, "conditions: [ '=> region=' "); !bad)
        std::printf("refused: %s\n", bad.error().what().c_str());
    std::printf("%s", chain.explain(calls[0]).value().c_str());
    return first.tag != second.tag ? 0 : 1;
}
