// Race timelines through a dial on a clock of the test's own. Sockets are real, in a network of their own; what
// happened on one is told to the dial at the moment the case says, so a connect "takes" as long as it should.
#include "networks.hpp"

#include <deque>
#include <map>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <tuple>
#include <unistd.h>

namespace conform {
namespace {

using std::chrono::milliseconds;

constexpr int HOST_PORT = 443;

struct way {
    json spec;
    byway::route route;
    int listener = -1, port = 0, tries = 0;

    const json &again() const { return get(spec, "retry"); }
    std::string outcome() const
    {
        const std::string first = text(spec, "outcome", "ok");
        return tries > 1 ? text(again(), "outcome", first) : first;
    }
    std::int64_t after() const
    {
        const double first = number(spec, "after_ms");
        return static_cast<std::int64_t>(tries > 1 ? number(again(), "after_ms", first) : first);
    }
    bool at_once() const { return tries > 1 && has(again(), "sync") ? flag(again(), "sync") : flag(spec, "sync"); }
};

byway::dial_options options_of(const json &given)
{
    const std::string failure = text(given, "on_failure"), until = text(given, "race_until");
    const auto ms = [&](const char *name) { return static_cast<std::uint32_t>(number(given, name)); };
    byway::dial_options options;
    options.flags = BYWAY_DIAL_EVENTS;
    options.attempt_delay_ms = ms("attempt_delay_ms");
    options.resolution_delay_ms = ms("resolution_delay_ms");
    options.first_family_count = ms("first_family_count");
    options.attempt_timeout_ms = ms("attempt_timeout_ms");
    options.ready_timeout_ms = ms("ready_timeout_ms");
    options.overall_timeout_ms = ms("overall_timeout_ms");
    options.ready_extend_ms = ms("ready_extend_ms");
    options.max_in_flight = ms("max_in_flight") ? ms("max_in_flight") : BYWAY_DIAL_NONE;
    if (text(given, "cap_policy") == "wait")
        options.cap_policy = BYWAY_CAP_WAIT;
    if (text(given, "tunnel_refusal") == "next")
        options.flags |= BYWAY_DIAL_NEXT_ON_REFUSAL;
    options.on_failure = failure == "immediate" ? BYWAY_ON_FAILURE_IMMEDIATE
                       : failure == "latest"    ? BYWAY_ON_FAILURE_LATEST
                                                : BYWAY_ON_FAILURE_WHEN_IDLE;
    options.race_until = until == "ready" ? BYWAY_RACE_UNTIL_READY : BYWAY_RACE_UNTIL_TCP;
    return options;
}

// Something that happens on an attempt's socket.
struct event {
    std::int64_t at;
    std::uint32_t attempt;
    std::size_t way;
    bool ready;
};

// One answer of the resolver: the addresses of a family, and when they come.
struct answer {
    std::int64_t at;
    int family;
    std::vector<byway::ip> ips;
};

struct world {
    const json &one;
    std::vector<way> ways;
    std::vector<event> events;
    std::deque<std::size_t> started; // ways in the order in which sockets were opened
    std::map<std::uint32_t, std::size_t> way_of;
    std::map<std::uint32_t, int> fd_of;
    rlimit limit = {};
    bool limited = false;
    std::vector<answer> answers; // not given yet
    std::optional<byway::dns_request> request; // asked, and not answered yet
    byway::engine engine;
    byway::address host;
    byway::selector selector;
    byway::dial dial;

    explicit world(const json &of) : one(of)
    {
        getrlimit(RLIMIT_NOFILE, &limit);
        byway::engine_options options;
        if (text(get(one, "options"), "commit_failures") == "on_success")
            options.commit_failures = BYWAY_COMMIT_ON_SUCCESS;
        engine = byway::engine::make(options).value();
    }
    world(const world &) = delete;
    ~world()
    {
        set_limit(false);
        for (const way &way : ways)
            close(way.listener);
    }

    void set_limit(bool on)
    {
        if (on == limited)
            return;
        rlimit low = limit;
        low.rlim_cur = on ? 3 : limit.rlim_cur;
        setrlimit(RLIMIT_NOFILE, &low);
        limited = on;
    }

    // Where the way's connect goes: something that answers as the case says, if not when.
    void make_way(const json &spec)
    {
        const std::string outcome = text(spec, "outcome", "ok");
        const std::string until = text(get(one, "options"), "race_until", "tcp");
        bool works = outcome == "ok" || outcome == "pending", sync = flag(spec, "sync");
        if (text(get(spec, "retry"), "outcome") == "ok") {
            works = true;
            sync = false;
        }
        way way;
        way.spec = spec;
        std::tie(way.listener, way.port) = listener_at(sync && works ? "127.0.0.1" : own_text(4, 1), 0, works);
        const std::string ip = !sync ? own_text(4, 1) : works ? "127.0.0.1" : NOWHERE;
        byway::proxy proxy;
        byway::address_options where;
        where.tls = true;
        if (has(spec, "ready") && until != "tcp") {
            proxy = byway::proxy::make(BYWAY_PROXY_HTTP, ip, way.port).value();
            where.proxy = &proxy;
            where.host = "192.0.2.99";
            where.port = 443;
        } else {
            where.host = ip;
            where.port = way.port;
        }
        auto selector = byway::selector::make(engine, byway::address::make(engine, where).value()).value();
        way.route = byway::keep(selector.next(milliseconds(0)).value()[0]);
        ways.push_back(std::move(way));
    }

    // One of the host's addresses.
    void make_host_way(const json &spec, int family)
    {
        const std::string outcome = text(spec, "outcome", "ok"), ip = own_text(family, static_cast<int>(ways.size()) + 1);
        way way;
        way.spec = spec;
        std::tie(way.listener, way.port) = listener_at(ip, HOST_PORT, outcome == "ok" || outcome == "pending");
        answers.back().ips.push_back(byway::ip::parse(ip).value());
        way.route = byway::route::make(host, {}, answers.back().ips.back(), HOST_PORT).value();
        ways.push_back(std::move(way));
    }

    // By its resolver's answers; or because what is remembered of failures hangs on the selector that routes have in
    // common.
    bool by_host() const { return has(one, "dns") || has(get(one, "options"), "commit_failures"); }

    void make_host()
    {
        const auto dns = byway::dns::make(engine, [this](byway::dns_request &asked, std::string_view) -> byway_status {
                             request = asked;
                             return BYWAY_PENDING;
                         }).value();
        byway::address_options where;
        where.host = "race.example";
        where.port = HOST_PORT;
        where.tls = true;
        where.dns = &dns;
        host = byway::address::make(engine, where).value();
        const json alone = {{{"at_ms", 0}, {"family", "v4"}, {"routes", get(one, "routes")}}};
        for (const json &given : has(one, "dns") ? get(one, "dns") : alone) {
            const int family = text(given, "family") == "v4" ? 4 : 6;
            answers.push_back({static_cast<std::int64_t>(number(given, "at_ms")), family, {}});
            for (const json &spec : get(given, "routes"))
                make_host_way(spec, family);
        }
        byway::selector_options early;
        early.flags = BYWAY_SELECTOR_EARLY;
        selector = byway::selector::make(engine, host, early).value();
    }

    // Gives the first answer that is due, so that a step sees each of them come.
    void give_answer(std::int64_t now)
    {
        for (std::size_t i = 0; i < answers.size() && request; ++i) {
            if (answers[i].at > now)
                continue;
            if (!answers[i].ips.empty())
                request->add(byway::span<const byway::ip>(answers[i].ips.data(), answers[i].ips.size())).value();
            request->family_done(answers[i].family).value();
            answers.erase(answers.begin() + static_cast<std::ptrdiff_t>(i));
            if (answers.empty()) {
                request->finish().value();
                request.reset();
            }
            return;
        }
    }

    std::optional<std::int64_t> next_answer() const
    {
        std::optional<std::int64_t> next;
        for (const answer &given : answers)
            if (!next || given.at < *next)
                next = given.at;
        return next;
    }

    byway_status open(byway::route_ref route)
    {
        std::size_t i = 0;
        while (!same_hop(ways.at(i).route, route))
            ++i;
        ++ways[i].tries;
        started.push_back(i);
        set_limit(ways[i].outcome() == "fd_limit");
        return BYWAY_PASS;
    }

    // What the dial did in a step: new attempts get their end, dialogues their answer.
    void follow(std::int64_t now)
    {
        while (auto seen = dial.next_event()) {
            if (seen->kind == BYWAY_DIAL_EVENT_START) {
                const std::size_t which = started.front();
                started.pop_front();
                way_of[seen->attempt] = which;
                fd_of[seen->attempt] = seen->fd;
                const way &way = ways[which];
                if (seen->fd >= 0 && !way.at_once() && way.outcome() != "pending")
                    events.push_back({now + way.after(), seen->attempt, which, false});
            } else if (seen->kind == BYWAY_DIAL_EVENT_HANDSHAKE) {
                const std::size_t which = way_of[seen->attempt];
                const json &ready = get(ways[which].spec, "ready");
                if (text(ready, "outcome", "ok") != "pending")
                    events.push_back(
                        {now + static_cast<std::int64_t>(number(ready, "after_ms")), seen->attempt, which, true});
            } else if (seen->kind == BYWAY_DIAL_EVENT_FD_CLOSING) {
                std::vector<event> kept;
                for (const event &one_event : events)
                    if (one_event.attempt != seen->attempt)
                        kept.push_back(one_event);
                events = std::move(kept);
            }
        }
    }

    // The proxy's answer, which is there when the dial is told so.
    static void reply(const way &way)
    {
        const std::string outcome = text(get(way.spec, "ready"), "outcome", "ok");
        const int fd = accept(way.listener, nullptr, nullptr);
        char head[2048];
        if (read(fd, head, sizeof head) <= 0)
            fail("no request");
        std::string answer = "HTTP/1.1 200 OK\r\n\r\n";
        if (starts(outcome, "tunnel_status:"))
            answer = "HTTP/1.1 " + outcome.substr(14) + " no\r\n\r\n";
        if (!starts(outcome, "socks") && write(fd, answer.data(), answer.size()) < 0)
            fail("no answer");
        shutdown(fd, SHUT_WR);
        close(fd);
    }

    std::vector<byway::pollfd> due(std::int64_t now)
    {
        std::vector<byway::pollfd> set;
        std::vector<event> later;
        for (const event &one_event : events) {
            if (one_event.at > now) {
                later.push_back(one_event);
                continue;
            }
            if (one_event.ready)
                reply(ways[one_event.way]);
            const short what = one_event.ready ? POLLIN : POLLOUT;
            set.push_back({one_event.attempt, fd_of[one_event.attempt], what, what});
        }
        events = std::move(later);
        return set;
    }

    std::optional<std::int64_t> next_event() const
    {
        std::optional<std::int64_t> next;
        for (const event &one_event : events)
            if (!next || one_event.at < *next)
                next = one_event.at;
        return next;
    }

    json race();
    void read_waterfall(json &got) const;
    void judge(json &got) const;
};

json world::race()
{
    const double cancel = number(one, "cancel_at_ms", -1);
    const auto cancel_at = static_cast<std::int64_t>(cancel);
    const json &resumes = get(one, "resume");
    if (by_host())
        make_host();
    else
        for (const json &spec : get(one, "routes"))
            make_way(spec);
    const std::size_t count = ways.size();
    for (const json &resume : resumes)
        if (has(resume, "follow_up"))
            make_way(get(resume, "follow_up"));
    std::vector<byway::route_ref> routes;
    for (std::size_t i = 0; i < count; ++i)
        routes.push_back(ways[i].route);
    byway::dial_hooks hooks;
    hooks.open_socket = [this](int, int, byway::route_ref route, int &) { return open(route); };
    dial = (by_host() ? byway::dial::make(engine, selector, options_of(get(one, "options")), hooks)
                      : byway::dial::make(engine, routes, options_of(get(one, "options")), hooks))
               .value();
    json got = {{"deadlines", json::array()}};
    std::size_t resumed = 0;
    std::int64_t now = 0;
    byway_status status = BYWAY_PENDING;
    std::string result = "failed";
    for (int steps = 0; steps < 1000 && status == BYWAY_PENDING; ++steps) {
        const auto set = due(now);
        if (cancel >= 0 && cancel_at <= now)
            dial.cancel();
        give_answer(now);
        status = dial.step_at(milliseconds(now), set).status();
        set_limit(false);
        follow(now);
        if (status == BYWAY_PENDING && request && next_answer() && *next_answer() <= now)
            continue; // the next answer of this moment
        if (status == BYWAY_OK) {
            const auto connected = dial.take().value();
            result = "connected";
            close(connected.fd);
            if (resumed < resumes.size()) {
                const json &resume = resumes[resumed++];
                now += static_cast<std::int64_t>(number(resume, "after_ms"));
                (void)dial.step_at(milliseconds(now));
                dial.resume(connected.attempt, BYWAY_RESUME_TLS,
                            has(resume, "follow_up") ? byway::route_ref(ways[count].route) : byway::route_ref())
                    .value();
                follow(now);
                status = BYWAY_PENDING;
                continue;
            }
            got["winner"] = get(ways[way_of[connected.attempt]].spec, "id");
        }
        if (status != BYWAY_PENDING)
            break;
        auto next = next_event();
        if (next && *next <= now)
            continue;
        if (next_answer() && *next_answer() > now && (!next || *next_answer() < *next))
            next = next_answer();
        if (cancel_at > now && (!next || cancel_at < *next))
            next = cancel_at;
        const auto left = dial.deadline();
        got["deadlines"].push_back({now, left ? json(now + left->count()) : json()});
        if (!next || (left && now + left->count() < *next))
            next = now + (left ? left->count() : 0);
        now = *next;
    }
    if (status != BYWAY_OK)
        result = status == BYWAY_E_CANCELED ? "canceled" : status == BYWAY_E_TIMEOUT ? "timeout" : "failed";
    got["result"] = result;
    got["at_ms"] = now;
    return got;
}

// Puts an attempt's end where the time of its end belongs, equal times in order of start.
void add_by_time(json &list, json item)
{
    std::size_t at = list.size();
    while (at > 0 && list[at - 1].back() > item.back())
        --at;
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(at), std::move(item));
}

// What the case expects, read from the dial's own waterfall.
void world::read_waterfall(json &got) const
{
    static const std::map<std::string, std::string> names = {
        {"TIMEOUT_ATTEMPT", "timeout"}, {"TIMEOUT_READY", "handshake_timeout"}, {"TLS_FAILED", "tls_failed"}};
    for (const char *list : {"starts", "failed", "canceled", "dropped", "local_errors"})
        got[list] = json::array();
    const json waterfall = json::parse(dial.explain(BYWAY_FORMAT_JSON).value());
    for (const json &attempt : get(waterfall, "attempts")) {
        const way &way = ways[way_of.at(static_cast<std::uint32_t>(number(attempt, "attempt")))];
        const json &id = get(way.spec, "id"), &ended = get(attempt, "ended_ms");
        const std::string outcome = text(attempt, "outcome"), fault = text(attempt, "fault");
        if (fault != "FD_LIMIT" || way.tries <= 1)
            got["starts"].push_back({id, get(attempt, "started_ms")});
        if (outcome == "canceled")
            add_by_time(got[starts(text(attempt, "reason"), "oldest") ? "dropped" : "canceled"], {id, ended});
        if (outcome != "failed")
            continue;
        std::string name = text(way.spec, "outcome", "ok");
        if (name == "ok")
            name = text(get(way.spec, "ready"), "outcome", "ok");
        if (const auto known = names.find(fault); known != names.end())
            name = known->second;
        if (starts(name, "tunnel_status") && !has(got, "error"))
            got["error"] = name;
        else
            add_by_time(got[fault == "FD_LIMIT" || fault == "NO_LOCAL_ROUTE" ? "local_errors" : "failed"],
                        {id, name, ended});
    }
}

void world::judge(json &got) const
{
    const json &expect = get(one, "expect");
    const std::string result = text(got, "result");
    if (result == "timeout")
        got["error"] = "overall_timeout";
    else if (result == "failed" && !has(got, "error")) {
        const json &first = got["failed"].empty() ? got["local_errors"] : got["failed"];
        got["error"] = first.empty() ? json("no_routes") : first[0][1];
    }
    for (const char *field :
         {"result", "at_ms", "starts", "failed", "canceled", "dropped", "local_errors", "deadlines", "winner", "error"})
        if (has(expect, field) || !get(got, field).empty())
            same(get(got, field), get(expect, field), field);
    const json &blamed = get(get(expect, "db"), "failed");
    for (const way &way : ways) {
        bool wanted = false;
        for (const json &id : blamed)
            wanted |= id == get(way.spec, "id");
        same(engine.should_postpone(way.route), wanted, "postponed " + get(way.spec, "id").dump());
    }
}

template <class F> void run_with(const json &one, F judge)
{
    in_own_network([&] {
        world world(one);
        json got = world.race();
        world.read_waterfall(got);
        judge(world, got);
    });
}

void race(const json &one)
{
    run_with(one, [](const world &world, json &got) { world.judge(got); });
}

// --- time lines of the bug log: addresses that connect, fail or drop
// -----------------------------------------------------------------------------------

// The same world as connect.jsonl has: literals are answers of a resolver, family by family; other names are routes.
void report(const json &one)
{
    const json &input = get(one, "input"), &expect = get(one, "expect");
    json made = {{"options", {{"attempt_delay_ms", number(input, "delay_ms", 250)},
                              {"overall_timeout_ms", number(input, "deadline_ms")}}},
                 {"routes", json::array()}};
    const json &addresses = get(input, "addresses");
    const bool literals = contains(text(addresses.at(0), "a"), ":");
    if (literals)
        made["dns"] = {{{"at_ms", 0}, {"family", "v6"}, {"routes", json::array()}},
                       {{"at_ms", 0}, {"family", "v4"}, {"routes", json::array()}}};
    for (const json &address : addresses) {
        const std::string name = text(address, "a");
        const char *outcome = has(address, "connect_ms") ? "ok" : has(address, "fail_ms") ? "refused" : "pending";
        json &list = literals ? made["dns"][contains(name, ":") ? 0 : 1]["routes"] : made["routes"];
        list.push_back({{"id", name},
                        {"outcome", outcome},
                        {"after_ms", number(address, "connect_ms", number(address, "fail_ms"))}});
    }
    run_with(made, [&](const world &world, json &got) {
        const std::string result = text(got, "result");
        json order = json::array();
        for (const json &start : got["starts"])
            order.push_back(start[0]);
        const json shown = {{"winner", get(got, "winner")},
                            {"error", result == "timeout" ? "deadline" : result == "failed" ? "all_failed" : result},
                            {"attempts", order.size()},
                            {"errors", world.dial.failures().size()},
                            {"start_order", order}};
        for (const auto &[name, want] : expect.items()) {
            if (name == "at_ms")
                need(got["at_ms"] >= want[0] && got["at_ms"] <= want[1], "at " + got["at_ms"].dump());
            else
                same(shown.at(name), want, name);
        }
    });
}

const kinds here = {{"connect", "race", race}, {"bugs", "race", report}};

} // namespace
} // namespace conform
