// okhttp.jsonl race: upstream's own time lines through a dial of an engine that behaves as upstream's connector. A plan is
// a route; what its lines say is read from the dial's events, on a clock of the test's own.
#include "networks.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <poll.h>
#include <set>
#include <tuple>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace conform {
namespace {

using std::chrono::milliseconds;

struct plan {
    json spec;
    byway::route route; // empty for one that another plan's route is tried again as
    int listener = -1;

    bool from_planner() const { return flag(spec, "from_planner", true); }
    bool connected_already() const { return flag(spec, "already_connected"); }
    bool crashes() const { return starts(text(spec, "tcp_error"), "crash:"); }
    std::string error() const
    {
        const std::string said = text(spec, "tcp_error", text(spec, "planning_error", text(spec, "tls_error", "?")));
        return crashes() ? said.substr(6) : said;
    }
    std::string named(const char *what) const { return "plan " + get(spec, "id").dump() + " " + what; }
};

struct attempt {
    plan *way = nullptr, *as = nullptr; // by whose route, and as which plan
    int fd = -1, sockets = 0;
    bool canceled = false, won = false;
    std::optional<std::int64_t> ends; // when its connect comes to an end
};

struct timelines {
    const json &one;
    std::deque<plan> plans;
    std::map<plan *, plan *> current; // the plan a route is tried as
    std::map<std::uint32_t, attempt> attempts;
    std::deque<plan *> opened;
    std::vector<std::pair<std::int64_t, std::string>> lines;
    rlimit limit = {};
    std::int64_t now = 0;
    std::optional<std::uint32_t> won;
    json results = json::array();
    byway::engine engine;
    byway::dial dial;

    explicit timelines(const json &of) : one(of)
    {
        getrlimit(RLIMIT_NOFILE, &limit);
        byway::engine_options profile;
        profile.compat = BYWAY_COMPAT_OKHTTP_5;
        engine = byway::engine::make(profile).value();
        std::set<json> again;
        for (const json &spec : get(one, "plans")) {
            plans.emplace_back().spec = spec;
            for (const char *name : {"retry", "tcp_next"})
                if (has(spec, name))
                    again.insert(get(spec, name));
        }
        std::vector<byway::route_ref> routes;
        for (plan &made : plans) {
            current[&made] = &made;
            if (!again.count(get(made.spec, "id")))
                make_route(made);
            if (made.from_planner())
                routes.push_back(made.route);
        }
        byway::dial_options options;
        options.flags = BYWAY_DIAL_EVENTS;
        options.attempt_delay_ms = static_cast<std::uint32_t>(number(one, "delay_ms"));
        options.attempt_timeout_ms = BYWAY_DIAL_NONE;
        byway::dial_hooks hooks;
        hooks.open_socket = [this](int, int, byway::route_ref route, int &) { return open(route); };
        hooks.proxy_auth = [](const byway::challenge &answer, byway::route_ref,
                              byway::span<const std::string_view>) -> byway_status {
            return answer.authenticate("Basic dTpw").status();
        };
        dial = byway::dial::make(engine, routes, options, hooks).value();
    }
    timelines(const timelines &) = delete;
    ~timelines()
    {
        lower(false);
        for (const plan &made : plans)
            if (made.listener >= 0)
                close(made.listener);
    }

    plan *plan_at(const json &spec, const char *member)
    {
        for (plan &made : plans)
            if (has(spec, member) && get(made.spec, "id") == get(spec, member))
                return &made;
        return nullptr;
    }

    // A route that connects, at once or when told so, or is refused; for a plan whose connect ends in another plan a
    // proxy that wants credentials on a new connection.
    void make_route(plan &made)
    {
        const std::string ip = made.connected_already() ? "127.0.0.1" : own_text(4, 1);
        int port = 0;
        std::tie(made.listener, port) = listener_at(ip, 0, !has(made.spec, "tcp_error"));
        byway::proxy proxy;
        if (has(made.spec, "tcp_next"))
            proxy = byway::proxy::make(BYWAY_PROXY_HTTP, ip, port).value();
        byway::address_options where;
        where.host = "192.0.2.99";
        where.port = 443;
        where.tls = true;
        made.route = byway::route::make(byway::address::make(engine, where).value(), proxy,
                                        byway::ip::parse(ip).value(), static_cast<std::uint16_t>(port))
                         .value();
    }

    void lower(bool on)
    {
        rlimit low = limit;
        low.rlim_cur = on ? 3 : limit.rlim_cur;
        setrlimit(RLIMIT_NOFILE, &low);
    }

    // Planning fails here. What upstream does not expect, a crash, is here that the system has nothing more to give.
    byway_status open(byway::route_ref route)
    {
        for (plan &made : plans) {
            if (!made.route || !same_hop(made.route, route))
                continue;
            opened.push_back(&made);
            lower(current[&made]->crashes());
            return has(current[&made]->spec, "planning_error") ? BYWAY_E_HOST : BYWAY_PASS;
        }
        fail("a socket for no plan");
    }

    void say(const plan &of, const char *what) { lines.emplace_back(now, of.named(what)); }

    void started(attempt &it, int fd)
    {
        it.way = opened.front();
        opened.pop_front();
        it.as = current[it.way];
        it.fd = fd;
        it.ends.reset();
        if (++it.sockets > 1) // the same attempt over a new connection: what upstream calls the next plan
            it.as = plan_at(it.as->spec, "tcp_next");
        else if (it.as->from_planner())
            lines.emplace_back(now, "take " + it.as->named("").substr(0, it.as->named("").size() - 1));
        if (has(it.as->spec, "planning_error") || it.as->connected_already())
            return;
        say(*it.as, "TCP connecting...");
        if (!it.as->crashes())
            it.ends = now + static_cast<std::int64_t>(number(it.as->spec, "tcp_delay_ms"));
    }

    void failed(attempt &it)
    {
        it.ends.reset();
        if (!it.won) {
            if (!has(it.as->spec, "planning_error"))
                say(*it.as, "TCP connect failed");
        } else if (has(it.as->spec, "tls_error")) { // the host has said so with resume
            say(*it.as, "TLS connect failed");
        } else if (has(it.as->spec, "tls_next")) {
            say(*it.as, "needs follow-up");
        }
    }

    // Others are cancelled because one has connected: upstream says that first.
    void canceled(attempt &it, attempt *&connected)
    {
        for (auto &[id, other] : attempts)
            if (!connected && &other != &it && !other.canceled && other.ends == now && !flag(other.as->spec, "yields")) {
                connected = &other;
                say(*other.as, "TCP connected");
            }
        say(*it.as, "cancel");
        // Upstream's socket ends its connect when it would have ended; here it was closed at once.
        lines.emplace_back(std::max(it.ends.value_or(now), now), it.as->named("TCP connect canceled"));
        it.canceled = true;
        it.ends.reset();
        if (plan *retry = plan_at(it.as->spec, "retry"))
            current[it.way] = retry;
    }

    void follow()
    {
        attempt *connected = nullptr;
        while (auto seen = dial.next_event()) {
            attempt &it = attempts[seen->attempt];
            if (seen->kind == BYWAY_DIAL_EVENT_START)
                started(it, seen->fd);
            else if (seen->kind == BYWAY_DIAL_EVENT_FD_CLOSING && has(it.as->spec, "tcp_next"))
                say(*it.as, "needs follow-up");
            else if (seen->kind == BYWAY_DIAL_EVENT_FAILED)
                failed(it);
            else if (seen->kind == BYWAY_DIAL_EVENT_CANCELED)
                canceled(it, connected);
            else if (seen->kind == BYWAY_DIAL_EVENT_WON) {
                won = seen->attempt;
                it.won = true;
                it.ends.reset();
                if (!it.as->connected_already()) {
                    if (connected != &it)
                        say(*it.as, "TCP connected");
                    say(*it.as, "TLS connecting...");
                }
            }
        }
    }

    byway_status step_dial(const std::vector<byway::pollfd> &ready = {})
    {
        const byway_status status = dial.step_at(milliseconds(now), ready).status();
        lower(false);
        follow();
        return status;
    }

    // The proxy closes the first connection, and opens the tunnel on the second.
    static void answer(const plan &way, bool again)
    {
        const std::string said = again ? "HTTP/1.1 200 OK\r\n\r\n"
                                       : "HTTP/1.1 407 no\r\nProxy-Authenticate: Basic realm=\"p\"\r\n"
                                         "Connection: close\r\nContent-Length: 0\r\n\r\n";
        char head[2048];
        const int fd = accept(way.listener, nullptr, nullptr);
        need(read(fd, head, sizeof head) > 0 && write(fd, said.data(), said.size()) > 0, "no dialogue");
        shutdown(fd, SHUT_WR);
        close(fd);
    }

    // One step in which the connects that are due are told to the dial.
    byway_status step(bool with_yielding, std::size_t &told)
    {
        std::vector<byway::pollfd> ready;
        std::vector<std::uint32_t> due;
        for (auto &[id, it] : attempts)
            if (it.ends && *it.ends <= now && (with_yielding || !flag(it.as->spec, "yields"))) {
                ready.push_back({id, it.fd, POLLOUT, POLLOUT});
                due.push_back(id);
            }
        told = due.size();
        byway_status status = step_dial(ready);
        for (const std::uint32_t id : due) {
            attempt &it = attempts[id];
            if (status != BYWAY_PENDING || !has(it.way->spec, "tcp_next") || it.ends != now)
                continue;
            // Connected, and the request is written: the answer.
            it.ends.reset();
            answer(*it.way, it.sockets > 1);
            status = step_dial({{id, it.fd, POLLIN, POLLIN}});
        }
        return status;
    }

    // Steps until nothing more happens at this moment; a connect that yields is told when all else is done.
    byway_status settle()
    {
        byway_status status = BYWAY_PENDING;
        for (std::size_t told = 1; told > 0 && !won && status == BYWAY_PENDING;) {
            status = step(false, told);
            if (status == BYWAY_PENDING && told == 0)
                status = step(true, told);
        }
        return status;
    }

    // TLS over the connection that won, and what comes of it; true when that was the last find.
    bool use()
    {
        const auto connected = dial.take().value();
        const plan &as = *attempts[connected.attempt].as;
        const bool tls_error = has(as.spec, "tls_error");
        plan *next = plan_at(as.spec, "tls_next");
        close(connected.fd);
        if (!as.connected_already())
            now += static_cast<std::int64_t>(number(as.spec, "tls_delay_ms"));
        (void)dial.step_at(milliseconds(now));
        if (!tls_error && !next) {
            if (!as.connected_already())
                say(as, "TLS connected");
            results.push_back({{"winner", get(as.spec, "id")}});
            if (results.size() == number(one, "find_calls", 1))
                return true;
        }
        won.reset();
        dial.resume(connected.attempt, tls_error ? BYWAY_RESUME_TLS : BYWAY_RESUME_CLOSED,
                    next ? byway::route_ref(next->route) : byway::route_ref())
            .value();
        follow();
        return false;
    }

    // What upstream throws: the first failure, the others suppressed.
    void end_failed()
    {
        json error, suppressed = json::array();
        bool unchecked = false;
        for (const auto &failure : dial.failures()) {
            const std::string said = attempts[failure.attempt].as->error();
            if (error.is_null())
                error = said;
            else
                suppressed.push_back(said);
            unchecked |= std::string_view(failure.name.data, failure.name.len) == "FD_LIMIT";
        }
        results.push_back({{"error", error}, {"suppressed", suppressed}, {"unchecked", unchecked}});
    }

    void run()
    {
        for (int steps = 0; steps < 1000; ++steps) {
            const byway_status status = settle();
            if (won) {
                if (use())
                    break;
                continue;
            }
            if (status != BYWAY_PENDING) {
                end_failed();
                break;
            }
            std::optional<std::int64_t> next;
            if (const auto left = dial.deadline())
                next = now + left->count();
            for (const auto &[id, it] : attempts)
                if (it.ends && (!next || *it.ends < *next))
                    next = it.ends;
            now = std::max(now, next.value());
        }
        std::stable_sort(lines.begin(), lines.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
        json timeline = json::array();
        for (const auto &[at, line] : lines) {
            if (timeline.empty() || timeline.back()["at_ms"] != at)
                timeline.push_back({{"at_ms", at}, {"events", json::array()}});
            timeline.back()["events"].push_back(line);
        }
        same(timeline, get(one, "timeline"), "timeline");
        // A result says what its case asks for.
        const json &wanted = get(get(one, "expect"), "results");
        json got = json::array();
        for (std::size_t i = 0; i < results.size(); ++i) {
            json shown = json::object();
            for (const auto &[name, value] : results[i].items())
                if (i < wanted.size() && wanted[i].contains(name))
                    shown[name] = value;
            got.push_back(shown);
        }
        same(got, wanted, "results");
    }
};

void race(const json &one)
{
    in_own_network([&] { timelines(one).run(); });
}

const kinds here = {{"okhttp", "race", race}};

} // namespace
} // namespace conform
