// Provider lists, calls, chains, sessions, a host's routers, sources.
#include "parts.hpp"

#include <thread>

namespace {

const char CONSUMER[] = "consumer://127.0.0.1/HelloService?interface=HelloService";
const char KEY[] = "HelloService::.condition-router";
const char TO_FIRST[] = "scope: service\nforce: true\nenabled: true\nkey: HelloService\n"
                        "conditions: ['method=hello => address=*:20880']\n";

using tags = std::vector<std::uint64_t>;

byway::invokers two(const byway::engine &engine, std::uint32_t flags = 0)
{
    return byway::invokers::make(engine,
                                 {"tri://10.0.0.1:20880/HelloService?application=demo",
                                  "tri://10.0.0.2:20882/HelloService?application=demo"},
                                 {7, 9}, flags)
        .value();
}

} // namespace

void chains()
{
    byway::engine engine = byway::engine::make().value();
    byway::chain chain = byway::chain::make(engine, CONSUMER).value();
    const auto list = two(engine, BYWAY_INVOKERS_KEEP_URLS);
    OK(list.size() == 2 && list.tag(1) == 9u && !list.tag(2) && list.row_of(7) == 0u && !list.row_of(8) &&
           list.url(0).value().find("20880") != std::string::npos && list.generation() != 0,
       "a list knows its rows");
    const auto world = chain.set_invokers(list).value();
    OK(chain.generation() >= world && chain.invokers().value().generation() == list.generation(),
       "a chain has its list");
    engine.set_rule(KEY, TO_FIRST).value();
    byway::invocation hello = byway::invocation::make("hello").value();
    OK(chain.route(hello).value().tags() == tags{7}, "a rule routes");
    OK(chain.route(hello).value().invokers().value().row_of(7) == 0u, "a choice knows its list");
    byway::picked picked = chain.pick(hello).value();
    OK(picked.tag == 7 && chain.pick_end(picked, true, 3ms), "one is picked and ended");
    byway::call_result how;
    how.has_report = 1;
    how.report_load = 0.5;
    OK(chain.pick_end(chain.pick(hello).value(), how), "with a report of its own");
    byway::pick_options options;
    const std::uint64_t tried[] = {7}, up[] = {3};
    options.set_exclude(tried);
    options.set_available(up, list);
    OK(chain.pick(byway::invocation::make("other").value(), options).value().tag == 9, "not what was tried before");

    std::uint64_t room[4] = {};
    OK(chain.route_tags(hello, room).value().total == 1 && room[0] == 7, "tags without a choice");
    std::vector<byway::invocation> calls;
    calls.push_back(byway::invocation::make("hello").value());
    calls.push_back(byway::invocation::make("other").value());
    std::size_t totals[2] = {};
    OK(chain.route_many(calls, room, 2, totals) && totals[0] == 1 && totals[1] == 2 && room[2] == 7 && room[3] == 9,
       "many calls over one world");
    OK(chain.route_many(calls, byway::span<std::uint64_t>(room, 1), 2, totals).error().code() == BYWAY_E_ARGUMENT,
       "too little room is refused");
    OK(!chain.diff(KEY, std::nullopt, calls).value().empty() &&
           chain.diff(KEY, std::nullopt, calls, BYWAY_FORMAT_JSON).value().find("\"added\":[9]") != std::string::npos,
       "what a rule's end would change");
    OK(!chain.diff("nobody.condition-router", "conditions: []", calls), "a key the chain does not want");
    OK(chain.explain(hello).value().find("10.0.0.2") != std::string::npos &&
           chain.explain(hello, BYWAY_FORMAT_JSON).value()[0] == '{',
       "the explanation names who was dropped");
    OK(chain.keys().value().find(KEY) != std::string::npos &&
           chain.status().value().find("service") != std::string::npos,
       "keys and status");
    chain.keep_recent(true).value();
    chain.route(hello).value();
    OK(chain.recent().value().find("hello") != std::string::npos, "recent calls");
    chain.keep_recent(false).value();

    const std::uint32_t id = chain.intern_method("hello").value();
    hello.reset().value();
    hello.method_id(id).value();
    OK(hello.types({"java.lang.String"}) && hello.arguments({"x", nullptr}) && hello.attachment("k", "v") &&
           hello.attachments({"a", "1", "b", "2"}) && hello.attachments({"odd"}).error().code() == BYWAY_E_ARGUMENT,
       "a call has types, arguments and attachments");
    byway::session session = byway::session::make(chain).value();
    byway::choice_ref shown = session.route(hello).value();
    OK(shown.size() == 1 && shown.tag(0) == 7u && !shown.tag(1) && shown.generation() == chain.generation(),
       "a session shows its result");
    OK(session.pick(hello).value().tag == 7, "and picks");
    room[0] = 0;
    OK(session.route_tags(hello, room).value().total == 1 && room[0] == 7 &&
           session.route_tags(hello, {}).value().generation == chain.generation(),
       "and copies");
    byway_status elsewhere = BYWAY_OK;
    bool adopted = false;
    std::thread([&] {
        auto other = byway::invocation::make("hello").value();
        elsewhere = session.route(other).error().code();
        adopted = session.adopt() && session.route(other);
    }).join();
    OK(elsewhere == BYWAY_E_BUSY && adopted && session.adopt() && session.idle(), "a session belongs to one thread");

    auto bad = engine.set_rule(KEY, "conditions: [");
    OK(!bad && bad.error().line() == 1, "a bad rule says where");
    OK(chain.route(byway::invocation::make("hello").value()).value().tags() == tags{7}, "and leaves the last good one");
    engine.remove_rule(KEY).value();
    OK(chain.set_rule_urls({"condition://0.0.0.0/HelloService?force=true&rule=%20%3D%3E%20host%3D10.9.9.9"}),
       "static rules by URL");
    auto none = chain.route(byway::invocation::make("hello").value()).value();
    OK(none.empty() && !none.emptied_by().empty(), "who left nobody");
    chain.set_rule_urls({}).value();

    OK(byway::service_rule_key(BYWAY_RULE_CONDITION, "HelloService").value() == KEY &&
           byway::application_rule_key(BYWAY_RULE_TAG, "demo").value() == "demo.tag-router",
       "keys of rules");
    OK(byway::check_rule(BYWAY_RULE_CONDITION, "conditions: ['host=nowhere => ']\nno: 1\n", list).value().find("no") !=
           std::string::npos,
       "what is wrong with a rule");

    int gone = 0;
    {
        auto builder = byway::invokers_builder::make(engine, 0, [&] { ++gone; }).value();
        builder.add("tri://10.0.0.1:1/HelloService", 1).value();
        std::vector<std::string> more = {"tri://10.0.0.2:1/HelloService", "tri://10.0.0.3:1/HelloService"};
        builder.add(more, {2, 3}).value();
        auto whole = builder.finish().value();
        auto update = byway::invokers_builder::update(engine, whole).value();
        OK(update.remove(2) && update.set("tri://10.0.0.3:2/HelloService", 3) &&
               update.remove(9).error().code() == BYWAY_E_NOT_FOUND,
           "a list is updated");
        auto next = update.finish().value();
        OK(next.size() == 2 && whole.size() == 3 && update.finish().error().code() == BYWAY_E_STATE,
           "the old one stays");
        OK(gone == 0, "tags are in use");
    }
    OK(gone == 1, "until nothing names them");
    OK(!byway::invokers::make(engine, {"tri://a:1/S"}, {1, 2}, 0, [&] { ++gone; }) && gone == 2,
       "also when nothing was made");
}

void routers()
{
    byway::engine engine = byway::engine::make().value();
    byway::chain chain = byway::chain::make(engine, CONSUMER).value();
    chain.set_invokers(two(engine)).value();
    int alive = 0, explained = 0;
    {
        auto decide = [&, mark = counted(alive)](byway::router_request &request) -> byway_status {
            explained += request.explaining();
            if (request.method() == "all")
                return BYWAY_PASS;
            if (request.method() == "broken")
                return BYWAY_E_HOST;
            if (request.attachment("to") == "second" && request.argument(0) == "x" && !request.argument(1))
                request.keep(1);
            else
                request.keep_if([](std::uint64_t tag) { return tag == 7; });
            return BYWAY_OK;
        };
        auto canary = byway::router::make(engine, "canary", 500, std::move(decide), BYWAY_ROUTER_BY_NAME).value();
        chain.add_router(canary).value();
        OK(chain.add_router(canary).error().code() == BYWAY_E_DUPLICATE, "a router is in a chain once");
        auto again = byway::router::make(
            engine, "canary", 1, [](byway::router_request &, const byway::call &) { return BYWAY_PASS; },
            BYWAY_ROUTER_EVERY_CHAIN);
        OK(again.error().code() == BYWAY_E_DUPLICATE, "and its name once in an engine");
    }
    byway::invocation call = byway::invocation::make("m").value();
    OK(chain.route(call).value().tags() == tags{7}, "a host's router decides");
    call.attachment("to", "second").value();
    call.arguments({"x"}).value();
    OK(chain.route(call).value().tags() == tags{9}, "by what the call has");
    call.method("all").value();
    OK(chain.route(call).value().size() == 2, "or lets all through");
    OK(chain.explain(call).value().find("canary") != std::string::npos && explained == 1,
       "it knows when it is only explained");
    call.method("broken").value();
    OK(chain.route(call).error().code() == BYWAY_E_HOST, "its failure is the call's");
#if BYWAY_HAS_EXCEPTIONS
    auto throwing = byway::router::make(engine, "throwing", 600, [](byway::router_request &) -> byway_status {
                        throw std::runtime_error("no");
                    }).value();
    byway::chain other = byway::chain::make(engine, CONSUMER).value();
    other.set_invokers(two(engine)).value();
    other.add_router(throwing).value();
    auto failed = other.route(byway::invocation::make("m").value());
    OK(!failed && failed.error().thrown(), "what it threw is the call's too");
    other = byway::chain();
    throwing = byway::router();
#endif
    chain = byway::chain();
    engine.shutdown(30s).value();
    OK(alive == 0, "and it is destroyed");
}

void sources()
{
    byway::engine engine = byway::engine::make().value();
    byway::chain chain = byway::chain::make(engine, CONSUMER).value();
    byway::source memory = byway::source::memory(engine).value();
    memory
        .put("HelloService/providers", "tri://10.0.0.1:20880/HelloService?application=demo\n"
                                       "tri://10.0.0.2:20882/HelloService?application=demo")
        .value();
    int ready = 0, refused = 0, alive = 0;
    OK(chain.bind(
                memory, byway::bind_options(),
                [&, mark = counted(alive)](const byway::source_event &event) {
                    ready += event.kind() == BYWAY_SOURCE_EVENT_READY;
                    refused += event.kind() == BYWAY_SOURCE_EVENT_REFUSED && event.error() && !event.subject().empty();
                },
                30s)
               .status() == BYWAY_OK,
       "a chain follows a source");
    OK(chain.route(byway::invocation::make("hello").value()).value().size() == 2, "its providers");
    OK(memory.apply({{KEY, TO_FIRST}}) && chain.route(byway::invocation::make("hello").value()).value().size() == 1,
       "its rules");
    OK(memory.get_text(KEY).value() == TO_FIRST, "what it holds");
    memory.put(KEY, "conditions: [").value();
    std::vector<byway::completion> records;
    while (refused == 0)
        if (!engine.queue().poll(records, 30s))
            break;
    OK(ready == 1 && refused == 1, "events come through the queue");
    auto state = memory.status().value();
    OK(state.connected == 1 && state.generation > 0 && !state.last_error, "how it stands");
    OK(memory.remove(KEY) && memory.apply({{"a//b", std::nullopt}}).error().code() == BYWAY_E_ARGUMENT,
       "keys go, nonsense is refused");
    OK(chain.bind_status().value().front() == '{', "the binding's status");
    chain.unbind().value();
    OK(chain.route(byway::invocation::make("hello").value()).value().empty(), "unbound, it has nobody");

    OK(byway::source::file(engine, "/nonexistent/byway").and_then([&](byway::source files) {
        return chain.bind(files, byway::timeout(0ms)).has_value() ? byway::result<int>(1)
                                                                  : byway::result<int>(byway::error(BYWAY_E_SOURCE));
    }),
       "files may come later");
    byway::zookeeper_options options;
    options.username = byway::str("u");
    OK(!byway::source::zookeeper(engine, "::bad::", options), "a connection string that is none");
    engine.shutdown(30s).value();
    OK(alive == 0, "listeners are destroyed");
}
