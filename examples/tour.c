/*
 * A tour of connection routing, on real sockets and without any network but loopback.
 *
 * An engine remembers what failed. The host tells it how to resolve names and which proxies to use, with callbacks.
 * A selector gives Selections of routes; the host connects to one after the other, in the order given, and reports
 * what came of it. What failed stands behind the others the next time.
 *
 *   origin   127.0.0.1:P  listens       proxies  127.0.0.4:Q  nobody there
 *            127.0.0.3:P  nobody there           127.0.0.5:Q  listens
 */
#include "byway.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static byway_error *err;

/* Every fallible function returns a status; the error object has the words. */
static void must(byway_status status, const char *what)
{
    byway_str message = { "", 0 }, subject = { "", 0 };
    if (status >= 0)
        return;
    byway_error_message(err, &message);
    byway_error_subject(err, &subject);
    fprintf(stderr, "%s: %s (%s) %s\n", what, message.data, subject.data, byway_status_name(status));
    byway_error_free(err);
    exit(1);
}

/* Called when a name must be resolved, on the thread that asks for routes. It may answer here, or keep the request with
 * byway_dns_request_retain, return BYWAY_PENDING and answer later from any thread. */
static byway_status lookup(void *user_data, byway_dns_request *request, const char *host, size_t host_len,
                           const byway_call *call)
{
    (void)user_data;
    (void)host_len;
    (void)call;
    printf("  dns: who is %s?\n", host);
    if (strcmp(host, "service.example") != 0)
        return BYWAY_PASS; /* anything else: ask the system */
    return byway_dns_request_add_text(request, "127.0.0.3 127.0.0.1", BYWAY_NUL, NULL);
}

/* Called once per selector: which proxies, in which order? */
static byway_status choose(void *user_data, byway_proxy_request *request, const char *uri, size_t uri_len,
                           const byway_call *call)
{
    const int32_t port = *(const int32_t *)user_data;
    byway_status status;
    (void)uri_len;
    (void)call;
    printf("  proxy selector: how to %s?\n", uri);
    status = byway_proxy_request_add(request, BYWAY_PROXY_HTTP, "127.0.0.4", BYWAY_NUL, port, NULL);
    if (status == BYWAY_OK)
        status = byway_proxy_request_add(request, BYWAY_PROXY_HTTP, "127.0.0.5", BYWAY_NUL, port, NULL);
    if (status == BYWAY_OK)
        status = byway_proxy_request_add_direct(request);
    return status;
}

/* The proxy selector hears of its proxies' failures. */
static void proxy_failed(void *user_data, const char *uri, size_t uri_len, const byway_route *route, int32_t failure,
                         int32_t os_errno, const byway_call *call)
{
    (void)user_data;
    (void)uri;
    (void)uri_len;
    (void)route;
    (void)failure;
    (void)call;
    printf("  proxy selector: told that a proxy failed (%s)\n", strerror(os_errno));
}

static int listen_at(const char *ip, uint16_t *port)
{
    struct sockaddr_in at;
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    memset(&at, 0, sizeof at);
    at.sin_family = AF_INET;
    if (fd < 0 || inet_pton(AF_INET, ip, &at.sin_addr) != 1 || bind(fd, (struct sockaddr *)&at, size) != 0
        || listen(fd, 8) != 0 || getsockname(fd, (struct sockaddr *)&at, &size) != 0) {
        perror(ip);
        exit(1);
    }
    *port = ntohs(at.sin_port);
    return fd;
}

/* One real attempt. Returns the connected socket, or -1 and errno. */
static int attempt(const byway_route *route)
{
    struct sockaddr_storage to;
    size_t len = 0;
    int fd;
    must(byway_route_sockaddr(route, &to, sizeof to, &len), "sockaddr");
    fd = socket(to.ss_family, SOCK_STREAM, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&to, (socklen_t)len) != 0) {
        int why = errno;
        close(fd);
        errno = why;
        return -1;
    }
    return fd;
}

/* The main job of a client: routes, attempts, reports. Returns the connected socket. */
static int reach(byway_engine *engine, const byway_address *address, int explain)
{
    byway_selector *selector = NULL;
    byway_selection *selection = NULL;
    const byway_route *route;
    int fd = -1;
    must(byway_selector_new(engine, address, NULL, &selector, &err), "selector");
    while (fd < 0) {
        /* Waits for DNS and the proxy selector where they answer later, at most 5 seconds. */
        byway_status status = byway_selector_next(selector, 5000, &selection, &err);
        must(status, "next");
        if (status == BYWAY_DONE)
            break;
        while (fd < 0 && byway_selection_next(selection, &route, NULL) == BYWAY_OK) {
            byway_text *text = NULL;
            byway_str shown;
            must(byway_route_text(route, &text, &err), "text");
            byway_text_str(text, &shown);
            printf("  try %s", shown.data);
            byway_text_free(text);
            fd = attempt(route);
            if (fd >= 0) {
                printf(": connected\n");
                must(byway_engine_connected(engine, route), "connected");
            } else {
                int why = errno;
                printf(": %s\n", strerror(why));
                must(byway_engine_connect_failed(engine, route, BYWAY_FAILURE_REFUSED, BYWAY_PHASE_TCP, why, &err),
                     "connect_failed");
            }
        }
        byway_selection_free(selection);
        selection = NULL;
    }
    if (explain) {
        byway_text *text = NULL;
        byway_str shown;
        must(byway_selector_explain(selector, BYWAY_FORMAT_TEXT, &text, &err), "explain");
        byway_text_str(text, &shown);
        printf("\nWhy that order?\n%s\n", shown.data);
        byway_text_free(text);
    }
    byway_selector_free(selector);
    return fd;
}

int main(void)
{
    byway_engine *engine = NULL;
    byway_dns *dns = NULL;
    byway_proxy_selector *chooser = NULL;
    byway_address *direct = NULL, *proxied = NULL;
    byway_dns_callbacks lookups = BYWAY_DNS_CALLBACKS_INIT;
    byway_proxy_selector_callbacks choices = BYWAY_PROXY_SELECTOR_CALLBACKS_INIT;
    byway_address_options where = BYWAY_ADDRESS_OPTIONS_INIT;
    uint16_t origin_port, live_proxy_port;
    int32_t proxy_port;
    const int origin = listen_at("127.0.0.1", &origin_port), proxy = listen_at("127.0.0.5", &live_proxy_port);
    int fd[4], i, reached = 0;

    proxy_port = live_proxy_port;
    must(byway_engine_new(NULL, &engine, &err), "engine");
    lookups.lookup = lookup;
    must(byway_dns_new(engine, &lookups, &dns, &err), "dns");
    choices.user_data = &proxy_port;
    choices.select = choose;
    choices.connect_failed = proxy_failed;
    must(byway_proxy_selector_new(engine, &choices, &chooser, &err), "proxy selector");

    where.host.data = "service.example";
    where.host.len = BYWAY_NUL;
    where.port = origin_port;
    where.dns = dns;
    must(byway_address_new(engine, &where, &direct, &err), "address");
    where.proxy_selector = chooser;
    must(byway_address_new(engine, &where, &proxied, &err), "address");

    printf("1. Without a proxy: the first address refuses, the second works.\n");
    fd[0] = reach(engine, direct, 0);
    printf("\n2. The same again: what refused is postponed, it stands behind.\n");
    fd[1] = reach(engine, direct, 1);
    printf("3. Through proxies: the first is dead, the second lives.\n");
    fd[2] = reach(engine, proxied, 0);
    printf("\n4. The same again: the dead proxy is postponed.\n");
    fd[3] = reach(engine, proxied, 1);

    for (i = 0; i < 4; i++)
        if (fd[i] >= 0) {
            reached++;
            close(fd[i]);
        }
    close(origin);
    close(proxy);
    byway_address_release(direct);
    byway_address_release(proxied);
    byway_proxy_selector_release(chooser);
    byway_dns_release(dns);
    /* After OK no callback of this engine ever runs again. */
    must(byway_engine_shutdown(engine, 5000, &err), "shutdown");
    byway_engine_release(engine);
    printf("%d of 4 reached.\n", reached);
    return reached == 4 ? 0 : 1;
}
