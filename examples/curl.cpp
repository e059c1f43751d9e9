/*
 * A libcurl program whose connections are chosen and opened by byway: libcurl speaks HTTP, byway decides where to
 * connect, races the routes and hands libcurl a connected socket.
 *
 * The name has two addresses, of which the first refuses; a local server answers on the second.
 * Build: c++ -std=c++17 curl.cpp -lbyway -lcurl
 */
#include "byway.hpp"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <cstdio>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace {

/* What one transfer needs to open its socket. */
struct dialler {
    byway::engine engine;
    byway::address address;
};

curl_socket_t open_socket(void *user, curlsocktype, struct curl_sockaddr *)
{
    auto &self = *static_cast<dialler *>(user);
    auto selector = byway::selector::make(self.engine, self.address);
    if (!selector)
        return CURL_SOCKET_BAD;
    auto dial = byway::dial::make(self.engine, *selector);
    if (!dial)
        return CURL_SOCKET_BAD;
    auto connected = dial->run(std::chrono::seconds(10));
    std::printf("%s", dial->explain().value().c_str());
    return connected ? connected->fd : CURL_SOCKET_BAD;
}

int is_connected(void *, curl_socket_t, curlsocktype) { return CURL_SOCKOPT_ALREADY_CONNECTED; }

/* Answers one request on 127.0.0.1. */
void serve(int listener)
{
    int peer = accept(listener, nullptr, nullptr);
    char request[4096];
    if (peer < 0 || read(peer, request, sizeof request) <= 0)
        return;
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 18\r\nConnection: close\r\n\r\nhello over byway!\n";
    if (write(peer, answer, sizeof answer - 1) < 0)
        std::perror("server");
    close(peer);
}

} // namespace

int main()
{
    sockaddr_in at = {};
    socklen_t size = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, reinterpret_cast<sockaddr *>(&at), size) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, reinterpret_cast<sockaddr *>(&at), &size) != 0) {
        std::perror("listener");
        return 1;
    }
    int port = ntohs(at.sin_port);
    std::thread server(serve, listener);

    byway::engine engine = byway::engine::make().value();
    byway::dns dns = byway::dns::hosts(engine, "127.0.0.2 service.example\n127.0.0.1 service.example\n").value();
    byway::address_options where;
    where.host = "service.example";
    where.port = port;
    where.dns = &dns;
    dialler self{engine, byway::address::make(engine, where).value()};

    CURL *curl = curl_easy_init();
    std::string url = "http://service.example:" + std::to_string(port) + "/";
    /* libcurl must not resolve the name itself: any address does, the socket comes connected. */
    std::string fixed = "service.example:" + std::to_string(port) + ":127.0.0.1";
    curl_slist *resolve = curl_slist_append(nullptr, fixed.c_str());
    curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
    curl_easy_setopt(curl, CURLOPT_RESOLVE, resolve);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, &self);
    curl_easy_setopt(curl, CURLOPT_SOCKOPTFUNCTION, is_connected);
    CURLcode done = curl_easy_perform(curl);
    if (done != CURLE_OK)
        std::fprintf(stderr, "%s\n", curl_easy_strerror(done));
    curl_easy_cleanup(curl);
    curl_slist_free_all(resolve);
    server.join();
    close(listener);
    return done == CURLE_OK ? 0 : 1;
}
