// Dials over real sockets on this machine, and proxy dialogues without any.
#include "parts.hpp"

#include <arpa/inet.h>
#include <atomic>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace {

// A listener on this machine, and nobody on the other port.
struct server {
    server() : fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))
    {
        sockaddr_in at = {};
        socklen_t size = sizeof at;
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (bind(fd, reinterpret_cast<sockaddr *>(&at), size) != 0 || listen(fd, 8) != 0 ||
            getsockname(fd, reinterpret_cast<sockaddr *>(&at), &size) != 0)
            std::abort();
        port = ntohs(at.sin_port);
    }
    ~server() { close(fd); }
    int fd, port = 0;
};

byway::address place(const byway::engine &engine, const byway::dns &dns, int port, const byway::proxy *proxy = nullptr)
{
    byway::address_options where;
    where.host = "a.example";
    where.port = port;
    where.tls = proxy != nullptr;
    where.dns = &dns;
    where.proxy = proxy;
    return byway::address::make(engine, where).value();
}

// Reads up to the end of a request's head.
std::string request_from(int fd)
{
    std::string all;
    char byte;
    while (all.find("\r\n\r\n") == std::string::npos && read(fd, &byte, 1) == 1)
        all += byte;
    return all;
}

void answer(int fd, std::string_view text)
{
    if (write(fd, text.data(), text.size()) < 0)
        std::perror("answer");
}

} // namespace

void dials()
{
    server server;
    byway::engine engine = byway::engine::make().value();
    auto dns = byway::dns::hosts(engine, "127.0.0.2 a.example\n127.0.0.1 a.example\n").value();
    auto address = place(engine, dns, server.port);
    auto selector = byway::selector::make(engine, address).value();
    {
        auto dial = byway::dial::make(engine, selector).value();
        OK(selector.next().error().code() == BYWAY_E_BUSY, "a selector belongs to its dial");
        auto connected = dial.run(30s);
        OK(connected && connected->fd >= 0 && connected->route.hop().ip == byway::ip::v4(127, 0, 0, 1),
           "the second address is connected to");
        OK(engine.should_postpone(dial.failure_route(0)) && dial.failures().size() == 1 &&
               byway::view(dial.failures()[0].name) == "REFUSED" && !dial.failure_route(1),
           "the first one failed");
        OK(dial.explain().value().find("127.0.0.2") != std::string::npos, "the waterfall shows both");
        if (connected)
            close(connected->fd);
    }

    // The same in an event loop, with hooks.
    std::atomic<int> opened{0}, configured{0};
    byway::dial_hooks hooks;
    hooks.open_socket = [&](int family, int, byway::route_ref, int &fd) -> byway_status {
        ++opened;
        fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        return fd < 0 ? BYWAY_E_OS : BYWAY_OK;
    };
    hooks.configure = [&](int fd, byway::route_ref route) -> byway_status {
        configured += fd >= 0 && route.hop().port != 0;
        return BYWAY_OK;
    };
    hooks.close_socket = [](int) -> byway_status { return BYWAY_PASS; };
    byway::dial_options options;
    options.flags = BYWAY_DIAL_EVENTS;
    auto kept =
        byway::route::make(address, {}, byway::ip::v4(127, 0, 0, 1), static_cast<std::uint16_t>(server.port)).value();
    const byway::route_ref row[] = {kept};
    auto dial = byway::dial::make(engine, row, options, hooks).value();
    byway_status status = BYWAY_PENDING;
    while (status == BYWAY_PENDING) {
        status = dial.step().status();
        struct pollfd watch = {dial.fd().value(), POLLIN, 0};
        if (status == BYWAY_PENDING && poll(&watch, 1, 30000) != 1)
            status = BYWAY_E_TIMEOUT;
    }
    std::uint64_t generation = 0;
    auto taken = dial.take();
    OK(dial.pollset(&generation) && taken && taken->route == kept, "a loop takes the socket");
    if (taken)
        close(taken->fd);
    int starts = 0, wins = 0;
    while (auto event = dial.next_event()) {
        starts += event->kind == BYWAY_DIAL_EVENT_START;
        wins += event->kind == BYWAY_DIAL_EVENT_WON;
    }
    OK(opened == 1 && configured == 1 && starts == 1 && wins == 1, "hooks and events");
    OK(dial.take().error().code() == BYWAY_E_STATE, "a socket is taken once");
    dial.cancel();

    auto late = byway::selector::make(engine, address).value().next(30s).value();
    auto over = byway::dial::make(engine, late).value();
    over.cancel();
    OK(over.run(30s).error().code() == BYWAY_E_CANCELED, "a cancelled dial says so");

    // A proxy that wants credentials before it opens a tunnel.
    auto proxy = byway::proxy::make(BYWAY_PROXY_HTTP, "127.0.0.1", server.port).value();
    std::string first, second;
    std::thread peer([&] {
        // Connections of the dials above wait in the backlog: theirs end before they ask for a tunnel.
        while (first.empty()) {
            const int fd = accept(server.fd, nullptr, nullptr);
            first = request_from(fd);
            if (!first.empty()) {
                answer(fd, "HTTP/1.1 407 no\r\nProxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n");
                second = request_from(fd);
                answer(fd, "HTTP/1.1 200 OK\r\n\r\n");
            }
            close(fd);
        }
    });
    std::string challenge;
    byway::dial_hooks credentials;
    credentials.proxy_auth = [&](const byway::challenge &answer, byway::route_ref,
                                 byway::span<const std::string_view> challenges) -> byway_status {
        challenge = challenges.empty() ? "" : std::string(challenges[0]);
        return answer.authenticate("Basic dTpw").status();
    };
    auto tunnelled = byway::selector::make(engine, place(engine, dns, 443, &proxy)).value();
    auto through = byway::dial::make(engine, tunnelled, byway::dial_options(), credentials).value();
    auto tunnel = through.run(30s);
    OK(tunnel, "a tunnel stands");
    if (tunnel)
        close(tunnel->fd);
    else
        std::printf("# %s\n", tunnel.error().what().c_str());
    peer.join();
    OK(challenge == "Basic realm=\"x\"" && second.find("Proxy-Authorization: Basic dTpw\r\n") != std::string::npos,
       "after the hook gave credentials");
}

void handshakes()
{
    byway::handshake_target to;
    to.host = "o.example";
    to.port = 443;
    byway::dial_options options;
    const byway_header headers[] = {{byway::str("Proxy-Trace"), byway::str("7")}};
    options.set_headers(headers);
    options.user_agent = byway::str("test/1");
    auto dialogue = byway::handshake::make(to, options).value();
    OK(dialogue.want() == BYWAY_HANDSHAKE_WRITE &&
           dialogue.output() ==
               "CONNECT o.example:443 HTTP/1.1\r\nHost: o.example:443\r\nProxy-Connection: Keep-Alive\r\n"
               "User-Agent: test/1\r\nProxy-Trace: 7\r\n\r\n",
       "a request for a tunnel");
    dialogue.sent(dialogue.output().size()).value();
    OK(dialogue.want() == BYWAY_HANDSHAKE_PEEK, "then the answer");
    dialogue.feed("HTTP/1.1 407 no\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n").value();
    OK(dialogue.want() == BYWAY_HANDSHAKE_CREDENTIALS && dialogue.challenge_at(0) == "Basic" &&
           !dialogue.challenge_at(1),
       "a challenge");
    dialogue.answer("Basic dTpw").value();
    dialogue.sent(dialogue.output().size()).value();
    OK(dialogue.feed("HTTP/1.1 200 OK\r\n\r\nrest").value() == 19 && dialogue.want() == BYWAY_HANDSHAKE_DONE,
       "the rest belongs to the tunnel");

    to.kind = BYWAY_PROXY_SOCKS5;
    to.user = "u";
    to.password = "";
    auto socks = byway::handshake::make(to).value();
    socks.sent(socks.output().size()).value();
    std::size_t limit = 0;
    OK(socks.want(limit) == BYWAY_HANDSHAKE_READ && limit == 2, "SOCKS says how much to read");
    OK(socks.feed(std::string_view("\5\2", 2)).value() == 2 && socks.output() == std::string_view("\1\1u\0", 4),
       "an empty password is one");
    socks.sent(socks.output().size()).value();
    OK(socks.eof().error().code() == BYWAY_E_CLOSED, "a proxy that closes");
    OK(dialogue.reconnected().error().code() == BYWAY_E_STATE, "nobody asked for a new connection");

    byway::engine engine = byway::engine::make().value();
    auto proxy = byway::proxy::make(BYWAY_PROXY_SOCKS5H, "192.0.2.1", 1080).value();
    byway::address_options where;
    where.host = "o.example";
    where.port = 443;
    where.proxy = &proxy;
    auto selection =
        byway::selector::make(engine, byway::address::make(engine, where).value()).value().next(30s).value();
    OK(byway::handshake::make(selection[0]).value().want() == BYWAY_HANDSHAKE_WRITE, "the dialogue of a route");
}
