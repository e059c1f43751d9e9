/*
 * A libcurl program whose connections are chosen and opened by byway: libcurl speaks HTTP, byway knows the proxies,
 * resolves names, decides where to connect, races the routes, and hands libcurl a connected socket.
 *
 * Everything runs on this machine: a server, and a proxy in front of it. The server's name has two addresses, of which
 * the first refuses; of the two proxies the first is down, which byway remembers.
 * Build: c++ -std=c++17 curl.cpp -lbyway -lcurl
 */
#include "byway.hpp"

#include <arpa/inet.h>
#include <cstdio>
#include <curl/curl.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace {

/* Answers on a port of 127.0.0.1 until it is destroyed, one connection at a time: what it is, what it was asked. */
class server {
public:
    explicit server(const char *name) : name_(name), fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))
    {
        sockaddr_in at = {};
        socklen_t size = sizeof at;
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (bind(fd_, reinterpret_cast<sockaddr *>(&at), size) != 0 || listen(fd_, 8) != 0 ||
            getsockname(fd_, reinterpret_cast<sockaddr *>(&at), &size) != 0)
            std::perror(name);
        port_ = ntohs(at.sin_port);
        thread_ = std::thread([this] {
            for (int peer; (peer = accept(fd_, nullptr, nullptr)) >= 0; close(peer))
                answer(peer);
        });
    }
    ~server()
    {
        shutdown(fd_, SHUT_RDWR);
        thread_.join();
        close(fd_);
    }
    int port() const { return port_; }

private:
    void answer(int peer) const
    {
        char request[4096] = "";
        if (read(peer, request, sizeof request - 1) <= 0)
            return;
        const std::string line(request, std::string_view(request).find('\r'));
        const std::string body = "hello from the " + std::string(name_) + ", which was asked: " + line + "\n";
        const std::string all = "HTTP/1.1 200 OK\r\nConnection: close\r\n"
                                "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
        if (write(peer, all.data(), all.size()) < 0)
            std::perror(name_);
    }

    const char *name_;
    int fd_, port_ = 0;
    std::thread thread_;
};

/* libcurl asks for a socket: it gets the one that is connected already, once. */
curl_socket_t open_socket(void *user, curlsocktype, struct curl_sockaddr *)
{
    return std::exchange(*static_cast<int *>(user), -1);
}
int is_connected(void *, curl_socket_t, curlsocktype) { return CURL_SOCKOPT_ALREADY_CONNECTED; }

/* Where libcurl must ask the proxy by an absolute URL: byway has spoken to every other kind of proxy itself, and left a
 * tunnel (SOCKS, and CONNECT for https). libcurl needs no name: the socket is connected. */
std::string proxy_for_libcurl(const byway::route &route)
{
    if (route.proxy_kind() != BYWAY_PROXY_HTTP || route.requires_tunnel())
        return "";
    return "http://" + route.hop().ip.text() + ":" + std::to_string(route.hop().port);
}

/* Fetches http://HOST:PORT/ over whatever route byway finds; false when there is none or HTTP fails. */
bool fetch(const byway::engine &engine, const byway::address_options &where)
{
    auto connected = byway::address::make(engine, where).and_then([&](byway::address address) {
        return byway::selector::make(engine, address);
    }).and_then([&](byway::selector selector) -> byway::result<byway::connected> {
        auto dial = byway::dial::make(engine, selector);
        if (!dial)
            return dial.error();
        auto done = dial->run(std::chrono::seconds(10));
        std::printf("%s", dial->explain().value().c_str());
        return done;
    });
    if (!connected) {
        std::fprintf(stderr, "%s\n", connected.error().what().c_str());
        return false;
    }
    const std::string host(where.host), url = "http://" + host + ":" + std::to_string(where.port) + "/";
    const std::string proxy = proxy_for_libcurl(connected->route);
    /* libcurl must not resolve the name itself: any address does, the socket comes connected. */
    const std::string fixed = host + ":" + std::to_string(where.port) + ":127.0.0.1";
    curl_slist *resolve = curl_slist_append(nullptr, fixed.c_str());
    CURL *curl = curl_easy_init();
    curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
    curl_easy_setopt(curl, CURLOPT_RESOLVE, resolve);
    curl_easy_setopt(curl, CURLOPT_PROXY, proxy.c_str());
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, &connected->fd);
    curl_easy_setopt(curl, CURLOPT_SOCKOPTFUNCTION, is_connected);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, 10L);
    std::fflush(stdout);
    const CURLcode done = curl_easy_perform(curl);
    if (done != CURLE_OK)
        std::fprintf(stderr, "%s\n", curl_easy_strerror(done));
    if (connected->fd >= 0)
        close(connected->fd); /* libcurl did not want it */
    curl_easy_cleanup(curl);
    curl_slist_free_all(resolve);
    return done == CURLE_OK;
}

} // namespace

int main()
{
    const server origin("server"), proxy("proxy");
    byway::engine engine = byway::engine::make().value();
    const auto dns = byway::dns::hosts(engine, "127.0.0.2 service.example\n127.0.0.1 service.example proxy.example\n"
                                               "127.0.0.3 down.example\n").value();
    const auto proxies = byway::proxy_selector::fixed(
        engine, {byway::proxy::make(BYWAY_PROXY_HTTP, "down.example", origin.port()).value(),
                 byway::proxy::make(BYWAY_PROXY_HTTP, "proxy.example", proxy.port()).value()}).value();
    byway::address_options where;
    where.host = "service.example";
    where.port = origin.port();
    where.dns = &dns;
    curl_global_init(CURL_GLOBAL_DEFAULT);
    std::printf("-- no proxy\n");
    bool good = fetch(engine, where);
    where.proxy_selector = &proxies;
    std::printf("-- proxies, the first one is down\n");
    good = fetch(engine, where) && good;
    std::printf("-- again: it is not tried any more\n");
    good = fetch(engine, where) && good;
    curl_global_cleanup();
    return good ? 0 : 1;
}
