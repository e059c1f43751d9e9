// okhttp.jsonl connect_tunnel: upstream's tunnels through a dial of an engine that behaves as upstream's connector, and a
// proxy on the same thread. Rust and C cut its answers at every place; here at some.
#include "networks.hpp"

#include <cstring>
#include <map>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <regex>
#include <sys/socket.h>
#include <unistd.h>

namespace conform {
namespace {

struct reply {
    std::string text;
    bool closes; // behind it
};

// `407 keep-alive`, `407 close x21`, `200 followed by 5 stray bytes`...
std::vector<reply> replies_of(const json &one)
{
    const std::string challenge = "Proxy-Authenticate: Basic realm=\"p\"\r\n";
    static const std::regex phrase("(.*?)(?: x([0-9]+))?");
    std::vector<reply> all;
    for (const json &written : get(one, "replies")) {
        const std::string whole = written;
        std::smatch parts;
        need(std::regex_match(whole, parts, phrase), whole);
        const std::string what = parts[1], head = "HTTP/1.1 " + what.substr(0, what.find(' ')) + " x\r\n";
        std::string text;
        if (contains(what, "keep-alive"))
            text = head + challenge + "Content-Length: 0\r\n\r\n";
        else if (contains(what, " close") && !contains(what, "closed"))
            text = head + challenge + "Connection: close\r\nContent-Length: 0\r\n\r\n";
        else if (contains(what, "stray bytes"))
            text = head + "\r\nstray";
        else if (contains(what, "Content-Length 5"))
            text = head + "Content-Length: 5\r\n\r\nabc";
        else {
            need(!contains(what, " "), "cannot read " + what);
            text = head + "\r\n";
        }
        for (int times = parts[2].matched ? std::stoi(parts[2]) : 1; times > 0; --times)
            all.push_back({text, contains(what, "then closed")});
    }
    return all;
}

void wait_for(int fd, short events)
{
    pollfd set = {fd, events, 0};
    while (poll(&set, 1, -1) != 1)
        continue;
}

// One dial through the proxy.
struct visit {
    const json &one;
    int listener, client = -1, server = -1, requests = 0, connections = 0;
    std::size_t cut, sent = 0;
    std::vector<reply> left;
    std::optional<reply> under_way = {};
    std::string head = {};

    void hang_up()
    {
        if (server >= 0)
            close(server);
        server = -1;
    }

    // The proxy's next act; the dial has nothing to do before it.
    void act()
    {
        const int on = 1;
        if (server < 0) {
            wait_for(listener, POLLIN);
            server = accept(listener, nullptr, nullptr);
            setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            ++connections;
            head.clear();
            under_way.reset();
        } else if (!under_way) {
            char piece[2048];
            const auto got = recv(server, piece, sizeof piece, MSG_DONTWAIT);
            head.append(piece, got > 0 ? static_cast<std::size_t>(got) : 0);
            if (!contains(head, "\r\n\r\n"))
                return wait_for(client, POLLOUT);
            need(starts(head, "CONNECT o.example:443 HTTP/1.1\r\n"), "asked " + head);
            head.clear();
            ++requests;
            sent = 0;
            if (left.empty())
                return hang_up();
            under_way = left.front();
            left.erase(left.begin());
        } else if (sent < under_way->text.size()) {
            const std::string piece = sent == 0 ? under_way->text.substr(0, cut) : under_way->text.substr(sent);
            need(write(server, piece.data(), piece.size()) == static_cast<ssize_t>(piece.size()), "no answer");
            sent += piece.size();
            wait_for(client, POLLIN);
        } else if (under_way->closes) {
            hang_up();
            wait_for(client, POLLIN);
        } else {
            under_way.reset();
        }
    }
};

// What upstream's exception says of a failure, and of which kind it is.
json upstream_error(const byway_dial_failure &failure)
{
    static const std::map<std::string, std::string> messages = {
        {"CONNECT_AUTH_REQUIRED", "Failed to authenticate with proxy"},
        {"EARLY_DATA", "TLS tunnel buffered too many bytes!"},
        {"CONNECT_AUTH_LOOP", "Too many tunnel connections attempted: 21"},
        {"PROXY_CLOSED", "unexpected end of stream"},
        {"TRUNCATED", "unexpected end of stream"},
        {"UNEXPECTED_END", "unexpected end of stream"},
    };
    const std::string name(failure.name.data, failure.name.len);
    const auto known = messages.find(name);
    return {{"result", "error"},
            {"error", name == "CONNECT_AUTH_LOOP" ? "protocol" : "io"},
            {"message", name == "CONNECT_STATUS"
                            ? "Unexpected response code for CONNECT: " + std::to_string(failure.number)
                        : known != messages.end() ? known->second
                                                  : name}};
}

json visited(visit &it, int port)
{
    byway::engine_options profile;
    profile.compat = BYWAY_COMPAT_OKHTTP_5;
    const auto engine = byway::engine::make(profile).value();
    byway::address_options where;
    where.host = "o.example";
    where.port = 443;
    where.tls = true;
    const auto address = byway::address::make(engine, where).value();
    const auto proxy = byway::proxy::make(BYWAY_PROXY_HTTP, "127.0.0.1", port).value();
    const auto route = byway::route::make(address, proxy, byway::ip::parse("127.0.0.1").value(),
                                          static_cast<std::uint16_t>(port))
                           .value();
    byway::dial_hooks hooks;
    hooks.proxy_auth = [&](const byway::challenge &answer, byway::route_ref,
                           byway::span<const std::string_view> challenges) -> byway_status {
        if (challenges.size() == 0 || !flag(it.one, "credentials"))
            return BYWAY_PASS;
        return answer.authenticate("Basic dXNlcjpwYXNz").status();
    };
    byway::dial_options options;
    options.flags = BYWAY_DIAL_EVENTS;
    const std::vector<byway::route_ref> routes = {route};
    auto dial = byway::dial::make(engine, routes, options, hooks).value();
    byway_status status = BYWAY_PENDING;
    for (;;) {
        status = dial.step().status();
        while (auto seen = dial.next_event()) {
            if (seen->kind == BYWAY_DIAL_EVENT_START)
                it.client = seen->fd;
            else if (seen->kind == BYWAY_DIAL_EVENT_FD_CLOSING)
                it.hang_up();
        }
        if (status != BYWAY_PENDING)
            break;
        it.act();
    }
    json got = {{"result", "tunnel"}};
    if (status == BYWAY_OK) {
        close(dial.take().value().fd);
        // With a piece that ends at the head's end the data behind it comes too late to be refused here.
        if (it.under_way && it.sent < it.under_way->text.size())
            got = {{"result", "error"}, {"error", "io"}, {"message", "TLS tunnel buffered too many bytes!"}};
    } else {
        got = upstream_error(dial.failures().at(0));
    }
    it.hang_up();
    got["connects"] = it.requests;
    got["tcp_connections"] = it.connections;
    return got;
}

void tunnel(const json &one)
{
    const auto replies = replies_of(one);
    const auto [listener, port] = listener_at("127.0.0.1", 0, true);
    std::size_t longest = 0;
    for (const reply &said : replies)
        longest = std::max(longest, said.text.size());
    for (const std::size_t cut : {longest, std::size_t(1), std::size_t(9), longest / 2, longest - 5, longest - 1}) {
        visit it{one, listener, -1, -1, 0, 0, cut, 0, replies};
        const json got = visited(it, port);
        for (const auto &[name, want] : get(one, "expect").items())
            same(get(got, name), want, name + ", cut at " + std::to_string(cut));
    }
    close(listener);
}

const kinds here = {{"okhttp", "connect_tunnel", tunnel}};

} // namespace
} // namespace conform
