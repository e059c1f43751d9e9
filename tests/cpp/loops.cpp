// Queues and listeners; what a failure means.
#include "parts.hpp"

#include <cerrno>
#include <poll.h>
#include <thread>

void queues()
{
    byway::queue queue = byway::queue::make().value();
    byway::engine_options options;
    options.queue = queue.get();
    byway::engine engine = byway::engine::make(options).value();
    OK(engine.queue().fd().value() == queue.fd().value(), "an engine has the queue it was given");
    int notified = 0;
    queue.set_notify([&] { ++notified; }).value();

    byway::dns_request open;
    auto dns = byway::dns::make(engine, [&](byway::dns_request &request, std::string_view) {
                   open = request;
                   return BYWAY_PENDING;
               }).value();
    auto selector = byway::selector::make(engine, address_of(engine, dns)).value();
    bool pending = false;
    OK(!selector.poll_next(pending).value() && pending, "the answer comes later");
    open.add("192.0.2.1").value();
    open.finish().value();
    OK(notified > 0, "the host is told that something is queued");
    struct pollfd watch = {queue.fd().value(), POLLIN, 0};
    OK(poll(&watch, 1, 30000) == 1, "and the descriptor is readable");
    std::vector<byway::completion> records;
    queue.poll(records, 30s).value();
    OK(records.size() == 1 && records[0].kind == BYWAY_COMPLETION_SELECTOR && records[0].id == selector.id() &&
           records[0].status == BYWAY_OK,
       "one record");
    auto routes = selector.poll_next(pending).value();
    OK(routes && !pending && routes.size() == 1, "then the routes");
    queue.clear_notify().value();
    queue.wakeup().value();
    OK(queue.poll(records, 30s) && records.size() == 1, "a wake-up ends a wait without a record");
    OK(!queue.deadline() && queue.lost() == 0, "nothing is due and nothing was lost");

    int starts = 0, ends = 0, alive = 0;
    auto listener = engine.listen(
        [&, mark = counted(alive)](const byway::event &event) {
            starts += event.kind() == BYWAY_EVENT_DNS_START && event.subject() == "c.example" && !event.error();
            ends += event.kind() == BYWAY_EVENT_DNS_END && event.ips().size() == 1 &&
                    event.ips()[0] == byway::ip::v4(192, 0, 2, 3);
        },
        byway::events({BYWAY_EVENT_DNS_START, BYWAY_EVENT_DNS_END}));
    auto hosts = byway::dns::hosts(engine, "192.0.2.3 c.example\n").value();
    byway::selector::make(engine, address_of(engine, hosts, "c.example")).value().next(30s).value();
    OK(starts == 1 && ends == 1, "a listener hears of names");
    listener->remove();
    byway::selector::make(engine, address_of(engine, hosts, "c.example")).value().next(30s).value();
    OK(starts == 1, "until it is removed");
    listener = byway::listener();
    int rules = 0;
    byway::queue own = byway::queue::make().value();
    listener = engine.listen([&](const byway::event &event) { rules += event.subject() == "a.tag-router"; },
                             byway::events({BYWAY_EVENT_RULE}), own);
    engine.set_rule("a.tag-router", "tags: []\n").value();
    queue.poll(records, 0ms).value();
    OK(rules == 0, "who named a queue of its own hears nothing in the engine's");
    own.poll(records, 0ms).value();
    OK(rules == 1, "but there");
    listener = byway::listener();
    engine.shutdown(30s).value();
    OK(alive == 0, "and is destroyed");
}

void failures()
{
    OK(byway::failure_text(BYWAY_FAILURE_REFUSED).value() == "refused" &&
           byway::failure_text(9999).error().code() == BYWAY_E_ENUM,
       "failures have texts");
    OK(byway::retry_tls(BYWAY_FAILURE_TLS_HANDSHAKE) && !byway::retry_tls(BYWAY_FAILURE_TLS_CERTIFICATE),
       "a handshake may be tried again, a certificate not");
    OK(byway::failure_from_errno(ECONNRESET) == BYWAY_FAILURE_RESET && byway::failure_from_errno(0) == BYWAY_FAILURE_IO,
       "a system's number has a kind");
    byway::failed_attempt attempt;
    attempt.failure = BYWAY_FAILURE_REFUSED;
    OK((byway::report(attempt).value() & BYWAY_TELL_DATABASE) != 0, "who is told of a failed attempt");
    byway::failed_exchange exchange;
    exchange.failure = BYWAY_FAILURE_STREAM_REFUSED;
    exchange.flags = BYWAY_EXCHANGE_MULTIPLEXED;
    exchange.refused_before = 5;
    OK((byway::track(exchange).value() & BYWAY_TELL_NO_NEW_EXCHANGES) != 0, "what a failed exchange means");
    byway::engine engine = byway::engine::make().value();
    byway::failed_call call;
    call.flags = BYWAY_CALL_RETRY_ENABLED | BYWAY_CALL_MORE_ROUTES;
    OK(engine.recover(call).value() == BYWAY_RECOVER_RETRY, "a call goes to the next route");
    call.flags = 0;
    OK(engine.recover(call).value() == BYWAY_RECOVER_DISABLED, "or not");
    call.failure = 9999;
    OK(engine.recover(call).error().code() == BYWAY_E_ENUM, "a number that is none");
}
