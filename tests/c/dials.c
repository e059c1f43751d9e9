/* Dials from C: blocking and stepped, hooks, credentials in place and later, cancel and free from other threads, routes
 * the host has kept, what belongs to whom. */
#include "tap.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

static byway_engine *engine;

/* ---- sockets of the test */

static int listen_at(const char *ip, int backlog, int *port)
{
    struct sockaddr_in at;
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    memset(&at, 0, sizeof at);
    at.sin_family = AF_INET;
    at.sin_port = htons((uint16_t)*port);
    if (inet_pton(AF_INET, ip, &at.sin_addr) != 1 || bind(fd, (struct sockaddr *)&at, size) != 0 ||
        listen(fd, backlog) != 0 || getsockname(fd, (struct sockaddr *)&at, &size) != 0)
        abort();
    *port = ntohs(at.sin_port);
    return fd;
}

/* A listener whose queue is full: connects to it stay without an answer. */
static int silent_at(const char *ip, int *port, int *filler)
{
    struct sockaddr_in at;
    struct pollfd waiting = {-1, POLLIN, 0};
    int fd = listen_at(ip, 0, port);
    memset(&at, 0, sizeof at);
    at.sin_family = AF_INET;
    at.sin_port = htons((uint16_t)*port);
    (void)inet_pton(AF_INET, ip, &at.sin_addr);
    *filler = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(*filler, (struct sockaddr *)&at, sizeof at) != 0)
        abort();
    /* Connected at its own end; the queue has it once it could be accepted. */
    waiting.fd = fd;
    if (poll(&waiting, 1, -1) != 1)
        abort();
    return fd;
}

/* Two addresses with one port: silent at the first, listening at the second. */
static int silent_and_listening(const char *silent_ip, const char *ip, int *port, int *silent, int *filler)
{
    struct sockaddr_in at;
    for (;;) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        *port = 0;
        *silent = silent_at(silent_ip, port, filler);
        memset(&at, 0, sizeof at);
        at.sin_family = AF_INET;
        at.sin_port = htons((uint16_t)*port);
        (void)inet_pton(AF_INET, ip, &at.sin_addr);
        if (bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 8) == 0)
            return fd;
        /* Somebody has this port at the other address. */
        close(fd);
        close(*silent);
        close(*filler);
    }
}

/* A port where nobody listens and nobody can: bound, and kept until it is closed. */
static int refusing_at(const char *ip, int *port)
{
    struct sockaddr_in at;
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    memset(&at, 0, sizeof at);
    at.sin_family = AF_INET;
    if (inet_pton(AF_INET, ip, &at.sin_addr) != 1 || bind(fd, (struct sockaddr *)&at, size) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &size) != 0)
        abort();
    *port = ntohs(at.sin_port);
    return fd;
}

/* Steps until something has come of it: a connect to this machine may need a moment, too. With `at`, at that time. */
static byway_status settled(byway_dial *dial, const uint64_t *at)
{
    byway_pollfd set[8];
    size_t total = 0, i;
    for (;;) {
        struct pollfd polled[8];
        uint64_t generation = 0;
        byway_status status = at ? byway_dial_step_at(dial, *at, set, total, NULL) : byway_dial_step(dial, set, total, NULL);
        if (status != BYWAY_PENDING)
            return status;
        NEED(byway_dial_pollset(dial, set, sizeof set[0], 8, &total, &generation, NULL));
        for (i = 0; i < total; i++) {
            polled[i].fd = set[i].fd;
            polled[i].events = set[i].events;
            polled[i].revents = 0;
        }
        poll(polled, (nfds_t)total, -1);
        for (i = 0; i < total; i++)
            set[i].revents = polled[i].revents;
    }
}

static int descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

/* ---- routes of the test */

/* A selector for `name` at `port`, whose addresses a hosts text lists; through a proxy if there is one. */
static byway_selector *selector_for(const char *hosts, int port, byway_proxy *proxy)
{
    byway_dns *dns = NULL;
    byway_address *address = NULL;
    byway_selector *selector = NULL;
    byway_address_options where = BYWAY_ADDRESS_OPTIONS_INIT;
    NEED(byway_dns_new_hosts(engine, hosts, BYWAY_NUL, &dns, NULL));
    where.host.data = "service.example";
    where.host.len = BYWAY_NUL;
    where.port = port;
    where.flags = BYWAY_ADDRESS_TLS;
    where.dns = dns;
    where.proxy = proxy;
    NEED(byway_address_new(engine, &where, &address, NULL));
    NEED(byway_selector_new(engine, address, NULL, &selector, NULL));
    byway_address_release(address);
    byway_dns_release(dns);
    return selector;
}

static int postponed(const byway_route *route)
{
    int32_t out = -1;
    NEED(byway_engine_should_postpone(engine, route, &out));
    return out;
}

static const char ONE[] = "127.0.0.1 service.example\n";
static const char TWO[] = "127.0.0.2 service.example\n127.0.0.1 service.example\n";

static void finish(byway_connected *connected)
{
    close(connected->fd);
    byway_route_release(connected->route);
}

/* ---- tests */

static void blocking(void)
{
    int port = 0, listener = listen_at("127.0.0.1", 8, &port), before = descriptors();
    byway_selector *selector = selector_for(TWO, port, NULL), *other = NULL;
    byway_dial *dial = NULL, *second = NULL;
    byway_connected connected;
    byway_dial_failure failures[4];
    byway_error *err = NULL;
    byway_route *failed = NULL;
    byway_text *text = NULL;
    byway_str shown;
    size_t total = 0;
    NEED(byway_dial_new(engine, selector, NULL, NULL, &dial, NULL));
    STATUS(byway_dial_new(engine, selector, NULL, NULL, &second, NULL), BYWAY_E_BUSY, "a selector serves one dial");
    STATUS(byway_selector_next(selector, 0, (byway_selection **)&other, NULL), BYWAY_E_BUSY, "and nobody beside it");
    STATUS(byway_dial_take(dial, &connected, &err), BYWAY_E_STATE, "nothing to take yet");
    byway_error_free(err);
    STATUS(byway_dial_run(dial, -1, &connected, NULL), BYWAY_OK, "one refused, one connected");
    OK(connected.fd >= 0 && connected.route != NULL && connected.flags == 0 && connected.attempt == 2, "a socket");
    OK(fcntl(connected.fd, F_GETFD) & FD_CLOEXEC && fcntl(connected.fd, F_GETFL) & O_NONBLOCK, "its modes");
    STATUS(byway_dial_failures(dial, failures, sizeof failures[0], 4, &total), BYWAY_OK, "failures");
    OK(total == 1 && failures[0].status == BYWAY_E_REFUSED && failures[0].os_errno == ECONNREFUSED &&
           strcmp(failures[0].name.data, "REFUSED") == 0,
       "what failed");
    STATUS(byway_dial_failure_route(dial, 0, &failed), BYWAY_OK, "which route failed");
    OK(postponed(failed) == 1, "the database knows it");
    OK(postponed(connected.route) == 0, "and the other one is fine");
    byway_route_release(failed);
    STATUS(byway_dial_failure_route(dial, 1, &failed), BYWAY_DONE, "no further failure");
    STATUS(byway_dial_explain(dial, BYWAY_FORMAT_TEXT, &text, NULL), BYWAY_OK, "waterfall");
    byway_text_str(text, &shown);
    OK(strstr(shown.data, "connection refused") != NULL, "it names the reason");
    byway_text_free(text);
    STATUS(byway_dial_explain(dial, 7, &text, NULL), BYWAY_E_ENUM, "no such format");
    STATUS(byway_dial_take(dial, &connected, NULL), BYWAY_E_STATE, "taken once");
    OK(connected.fd == -1 && connected.route == NULL, "outputs are cleared");
    byway_dial_free(dial);
    STATUS(byway_dial_new(engine, selector, NULL, NULL, &second, NULL), BYWAY_OK, "the selector is free again");
    STATUS(byway_dial_run(second, -1, &connected, &err), BYWAY_E_NO_ROUTE, "and used up");
    byway_error_free(err);
    byway_dial_free(second);
    byway_selector_free(selector);
    /* One socket was taken; its number was overwritten above, so it is counted. */
    OK(descriptors() == before + 1, "every other descriptor is closed");
    close(listener);
}

static void stepped(void)
{
    int port, filler, silent, listener = silent_and_listening("127.0.0.2", "127.0.0.1", &port, &silent, &filler);
    byway_selector *selector = selector_for(TWO, port, NULL);
    byway_dial_options options = BYWAY_DIAL_OPTIONS_INIT;
    byway_dial *dial = NULL;
    byway_dial_event event;
    byway_connected connected;
    byway_status status = BYWAY_PENDING;
    int64_t deadline = 0;
    int rounds = 0, kinds = 0, fd = -1;
    options.flags = BYWAY_DIAL_EVENTS;
    options.attempt_delay_ms = 10;
    NEED(byway_dial_new(engine, selector, &options, NULL, &dial, NULL));
    STATUS(byway_dial_deadline_ms(dial, &deadline), BYWAY_OK, "deadline");
    OK(deadline == 0, "the first step is due");
    while (status == BYWAY_PENDING && rounds++ < 1000) {
        byway_pollfd set[8];
        struct pollfd polled[8];
        size_t total = 0, i;
        uint64_t generation = 0;
        NEED(byway_dial_pollset(dial, set, sizeof set[0], 8, &total, &generation, NULL));
        NEED(byway_dial_deadline_ms(dial, &deadline));
        for (i = 0; i < total; i++) {
            polled[i].fd = set[i].fd;
            polled[i].events = set[i].events;
            polled[i].revents = 0;
        }
        poll(polled, (nfds_t)total, (int)deadline);
        for (i = 0; i < total; i++)
            set[i].revents = polled[i].revents;
        status = byway_dial_step(dial, set, total, NULL);
        while (byway_dial_next_event(dial, &event) == BYWAY_OK)
            kinds |= 1 << event.kind;
    }
    STATUS(status, BYWAY_OK, "connected by the host's own poll");
    OK(kinds == (1 << BYWAY_DIAL_EVENT_START | 1 << BYWAY_DIAL_EVENT_FD_CLOSING | 1 << BYWAY_DIAL_EVENT_CANCELED |
                 1 << BYWAY_DIAL_EVENT_WON),
       "events 0x%x", kinds);
    STATUS(byway_dial_fd(dial, &fd, NULL), BYWAY_OK, "one descriptor");
    STATUS(byway_dial_take(dial, &connected, NULL), BYWAY_OK, "the socket");
    finish(&connected);
    byway_dial_free(dial);
    byway_selector_free(selector);
    close(silent);
    close(filler);
    close(listener);
}

/* ---- hooks */

struct host {
    int opened, closed, asked, destroyed, later;
    byway_dial *dial;
    uint32_t attempt;
    byway_status inside;
};

static byway_status open_socket(void *data, int32_t family, int32_t protocol, const byway_route *route, int32_t *fd,
                                const byway_call *call)
{
    struct host *host = data;
    (void)route;
    host->opened += byway_call_tag(call) == 7;
    *fd = socket(family, SOCK_STREAM, protocol);
    return *fd >= 0 ? BYWAY_OK : BYWAY_E_OS;
}

static byway_status close_socket(void *data, int32_t fd, const byway_call *call)
{
    struct host *host = data;
    (void)call;
    host->closed++;
    close(fd);
    return BYWAY_OK;
}

static byway_status proxy_auth(void *data, byway_dial *dial, uint32_t attempt, const byway_route *route,
                               const byway_str *challenges, size_t count, const byway_call *call)
{
    struct host *host = data;
    int64_t deadline;
    (void)route;
    (void)call;
    host->asked += count == 1 && strcmp(challenges[0].data, "Digest realm=\"p\"") == 0;
    host->dial = dial;
    host->attempt = attempt;
    host->inside = byway_dial_deadline_ms(dial, &deadline);
    if (host->later)
        return BYWAY_PENDING;
    return byway_dial_authenticate(dial, attempt, "Digest x", BYWAY_NUL);
}

static void destroy(void *data)
{
    ((struct host *)data)->destroyed++;
}

static void read_head(int fd, char *out, size_t size)
{
    size_t len = 0;
    while (len + 1 < size && (len < 4 || memcmp(out + len - 4, "\r\n\r\n", 4) != 0) && read(fd, out + len, 1) == 1)
        len++;
    out[len] = '\0';
}

static int right_answers;

static void *proxy(void *listener)
{
    static const char challenge[] =
        "HTTP/1.1 407 no\r\nProxy-Authenticate: Digest realm=\"p\"\r\nContent-Length: 0\r\n\r\n";
    static const char granted[] = "HTTP/1.1 200 OK\r\n\r\nhello";
    int fd = accept(*(int *)listener, NULL, NULL);
    char head[1024];
    read_head(fd, head, sizeof head);
    if (write(fd, challenge, sizeof challenge - 1) < 0)
        return NULL;
    read_head(fd, head, sizeof head);
    right_answers += strstr(head, "Proxy-Authorization: Digest x\r\n") != NULL;
    if (write(fd, granted, sizeof granted - 1) < 0)
        return NULL;
    read_head(fd, head, sizeof head);
    close(fd);
    return NULL;
}

static void *answer(void *data)
{
    struct host *host = data;
    while (host->asked == 0)
        ;
    (void)byway_dial_authenticate(host->dial, host->attempt, "Digest x", BYWAY_NUL);
    return NULL;
}

static void hooks(int later)
{
    int port = 0, listener = listen_at("127.0.0.1", 8, &port), fd;
    byway_proxy *through = NULL;
    byway_selector *selector;
    byway_dial_options options = BYWAY_DIAL_OPTIONS_INIT;
    byway_dial_callbacks callbacks = BYWAY_DIAL_CALLBACKS_INIT;
    byway_dial *dial = NULL;
    byway_connected connected;
    struct host host;
    struct pollfd set;
    pthread_t thread, other;
    byway_status status;
    char hello[6] = "";
    memset(&host, 0, sizeof host);
    host.later = later;
    NEED(byway_proxy_new(BYWAY_PROXY_HTTP, "127.0.0.1", BYWAY_NUL, port, &through, NULL));
    selector = selector_for(ONE, 443, through);
    callbacks.user_data = &host;
    callbacks.destroy = destroy;
    callbacks.open_socket = open_socket;
    callbacks.close_socket = close_socket;
    callbacks.proxy_auth = proxy_auth;
    options.tag = 7;
    NEED(byway_dial_new(engine, selector, &options, &callbacks, &dial, NULL));
    pthread_create(&thread, NULL, proxy, &listener);
    NEED(byway_dial_fd(dial, &fd, NULL));
    while ((status = byway_dial_step(dial, NULL, 0, NULL)) == BYWAY_PENDING) {
        if (later && host.asked == 1) {
            pthread_create(&other, NULL, answer, &host);
            pthread_join(other, NULL);
            host.asked++;
        }
        set.fd = fd;
        set.events = POLLIN;
        poll(&set, 1, -1);
    }
    STATUS(status, BYWAY_OK, later ? "credentials later" : "credentials in place");
    STATUS(byway_dial_take(dial, &connected, NULL), BYWAY_OK, "a tunnel");
    OK(host.opened == 1 && host.closed == 0 && host.asked == 1 + later, "hooks ran");
    STATUS(host.inside, BYWAY_E_REENTRANT, "a dial is not called from its own callback");
    OK(fcntl(connected.fd, F_SETFL, 0) == 0 && recv(connected.fd, hello, 5, MSG_WAITALL) == 5 &&
           strcmp(hello, "hello") == 0,
       "data behind the answer stays in the socket");
    finish(&connected);
    pthread_join(thread, NULL);
    OK(right_answers == 1 + later, "the proxy saw them");
    byway_dial_free(dial);
    OK(host.destroyed == 1, "destroyed once");
    byway_selector_free(selector);
    byway_proxy_release(through);
    close(listener);
}

static byway_status no_socket(void *data, int32_t family, int32_t protocol, const byway_route *route, int32_t *fd,
                              const byway_call *call)
{
    (void)family;
    (void)protocol;
    (void)route;
    (void)call;
    *fd = *(int *)data;
    return BYWAY_OK;
}

/* A number that is no open descriptor is a rejected attempt, not the end of the process. */
static void hook_without_a_socket(void)
{
    static const int numbers[] = {-1, 99999};
    size_t i;
    for (i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        byway_selector *selector = selector_for(ONE, 443, NULL);
        byway_dial_options options = BYWAY_DIAL_OPTIONS_INIT;
        byway_dial_callbacks callbacks = BYWAY_DIAL_CALLBACKS_INIT;
        byway_dial *dial = NULL;
        byway_connected connected;
        byway_error *err = NULL;
        int number = numbers[i];
        callbacks.user_data = &number;
        callbacks.open_socket = no_socket;
        NEED(byway_dial_new(engine, selector, &options, &callbacks, &dial, NULL));
        STATUS(byway_dial_run(dial, -1, &connected, &err), BYWAY_E_HOST, "a hook's number that is no descriptor");
        OK(byway_error_os_errno(err) == EBADF, "the error says so");
        byway_error_free(err);
        byway_dial_free(dial);
        byway_selector_free(selector);
    }
}

/* ---- other threads */

static void *cancel(void *dial)
{
    (void)byway_dial_cancel(dial);
    return NULL;
}

static void *end(void *dial)
{
    byway_dial_free(dial);
    return NULL;
}

static void *end_selector(void *selector)
{
    byway_selector_free(selector);
    return NULL;
}

static void others(void)
{
    static const struct {
        void *(*body)(void *);
        const char *what;
    } ways[] = {{cancel, "canceled"}, {end, "freed during a call"}, {end_selector, "its selector freed"}};
    int port = 0, filler, silent = silent_at("127.0.0.1", &port, &filler), before = descriptors();
    size_t i;
    for (i = 0; i < 3; i++) {
        byway_selector *selector = selector_for(ONE, port, NULL);
        byway_dial *dial = NULL;
        byway_connected connected;
        pthread_t thread;
        byway_status status;
        NEED(byway_dial_new(engine, selector, NULL, NULL, &dial, NULL));
        STATUS(byway_dial_run(dial, 0, &connected, NULL), BYWAY_PENDING, "no answer yet");
        if (i == 2) {
            /* The dial learns of it when it asks for the next Selection. */
            pthread_create(&thread, NULL, ways[i].body, selector);
            pthread_join(thread, NULL);
            status = byway_dial_run(dial, 20, &connected, NULL);
            OK(status == BYWAY_E_CANCELED || status == BYWAY_E_TIMEOUT, "%s: %s", ways[i].what,
               byway_status_name(status));
            byway_dial_free(dial);
            continue;
        }
        pthread_create(&thread, NULL, ways[i].body, dial);
        status = byway_dial_run(dial, 30000, &connected, NULL);
        pthread_join(thread, NULL);
        OK(status == BYWAY_E_CANCELED || (i == 1 && status == BYWAY_E_BAD_HANDLE), "%s: %s", ways[i].what,
           byway_status_name(status));
        if (i == 0)
            byway_dial_free(dial);
        byway_selector_free(selector);
    }
    OK(descriptors() == before, "nothing is left open");
    close(silent);
    close(filler);
}

static void kept_routes(void)
{
    int port = 0, listener = listen_at("127.0.0.1", 8, &port);
    byway_selector *selector = selector_for(TWO, port, NULL);
    byway_selection *selection = NULL;
    const byway_route *routes[2];
    byway_dial *dial = NULL;
    byway_connected connected;
    NEED(byway_selector_next(selector, 0, &selection, NULL));
    routes[0] = byway_selection_at(selection, 1);
    STATUS(byway_dial_new_routes(engine, routes, 1, NULL, NULL, &dial, NULL), BYWAY_OK, "routes of the host");
    byway_selection_free(selection);
    byway_selector_free(selector);
    STATUS(byway_dial_run(dial, -1, &connected, NULL), BYWAY_OK, "they outlive where they came from");
    STATUS(byway_dial_resume(dial, connected.attempt, 9, NULL, NULL), BYWAY_E_ENUM, "no such reason");
    STATUS(byway_dial_resume(dial, connected.attempt, BYWAY_RESUME_TLS, connected.route, NULL), BYWAY_OK, "resume");
    finish(&connected);
    STATUS(byway_dial_run(dial, -1, &connected, NULL), BYWAY_OK, "the follow-up");
    STATUS(byway_dial_confirm(dial, connected.attempt, NULL), BYWAY_OK, "confirmed");
    finish(&connected);
    byway_dial_free(dial);
    close(listener);
}

/* ---- with an engine that asks, and listeners */

struct asked {
    byway_dns_request *request;
    int told, events[16], number;
    int32_t failure;
};

static byway_status lookup(void *data, byway_dns_request *request, const char *host, size_t len, const byway_call *call)
{
    struct asked *asked = data;
    (void)host;
    (void)len;
    (void)call;
    asked->request = byway_dns_request_retain(request);
    return BYWAY_PENDING;
}

static void *late(void *data)
{
    struct asked *asked = data;
    (void)byway_dns_request_add_text(asked->request, "127.0.0.1", BYWAY_NUL, NULL);
    (void)byway_dns_request_finish(asked->request);
    return NULL;
}

static byway_selector *asking(struct asked *asked, int port, uint32_t flags)
{
    byway_dns_callbacks set = BYWAY_DNS_CALLBACKS_INIT;
    byway_address_options where = BYWAY_ADDRESS_OPTIONS_INIT;
    byway_selector_options how = BYWAY_SELECTOR_OPTIONS_INIT;
    byway_dns *dns = NULL;
    byway_address *address = NULL;
    byway_selector *selector = NULL;
    memset(asked, 0, sizeof *asked);
    set.user_data = asked;
    set.lookup = lookup;
    NEED(byway_dns_new(engine, &set, &dns, NULL));
    where.host.data = "late.example";
    where.host.len = BYWAY_NUL;
    where.port = port;
    where.dns = dns;
    NEED(byway_address_new(engine, &where, &address, NULL));
    how.flags = flags;
    NEED(byway_selector_new(engine, address, &how, &selector, NULL));
    byway_address_release(address);
    byway_dns_release(dns);
    return selector;
}

static void answers_later(void)
{
    int port = 0, listener = listen_at("127.0.0.1", 8, &port), fd = -1;
    struct asked asked;
    byway_selector *selector = asking(&asked, port, 0);
    byway_dial *dial = NULL;
    byway_connected connected;
    struct pollfd set;
    pthread_t thread;
    int64_t left = 0;
    const uint64_t now = 20;
    NEED(byway_dial_new(engine, selector, NULL, NULL, &dial, NULL));
    NEED(byway_dial_fd(dial, &fd, NULL));
    STATUS(byway_dial_step(dial, NULL, 0, NULL), BYWAY_PENDING, "asked for addresses");
    set.fd = fd;
    set.events = POLLIN;
    OK(poll(&set, 1, 0) == 0, "nothing to do meanwhile");
    pthread_create(&thread, NULL, late, &asked);
    OK(poll(&set, 1, -1) == 1, "an answer from another thread wakes the loop");
    pthread_join(thread, NULL);
    STATUS(settled(dial, NULL), BYWAY_OK, "and the dial goes on");
    STATUS(byway_dial_take(dial, &connected, NULL), BYWAY_OK, "to a socket");
    finish(&connected);
    byway_dial_free(dial);
    byway_dns_request_release(asked.request);
    byway_selector_free(selector);

    selector = asking(&asked, port, BYWAY_SELECTOR_EARLY);
    NEED(byway_dial_new(engine, selector, NULL, NULL, &dial, NULL));
    STATUS(byway_dial_step_at(dial, 0, NULL, 0, NULL), BYWAY_PENDING, "asked");
    (void)byway_dns_request_add_text(asked.request, "127.0.0.1", BYWAY_NUL, NULL);
    (void)byway_dns_request_family_done(asked.request, 4);
    STATUS(byway_dial_step_at(dial, 10, NULL, 0, NULL), BYWAY_PENDING, "IPv4 is there and waits for IPv6");
    (void)byway_dial_deadline_ms(dial, &left);
    OK(left == 50, "for 50 ms: %d", (int)left);
    (void)byway_dns_request_finish(asked.request);
    STATUS(settled(dial, &now), BYWAY_OK, "which has none: no further wait");
    byway_dial_free(dial);
    byway_dns_request_release(asked.request);
    byway_selector_free(selector);

    selector = asking(&asked, port, 0);
    NEED(byway_dial_new(engine, selector, NULL, NULL, &dial, NULL));
    STATUS(byway_dial_step(dial, NULL, 0, NULL), BYWAY_PENDING, "asked");
    NEED(byway_dial_fd(dial, &fd, NULL));
    set.fd = fd;
    pthread_create(&thread, NULL, end_selector, selector);
    OK(poll(&set, 1, -1) == 1, "freeing its selector wakes the dial");
    pthread_join(thread, NULL);
    STATUS(byway_dial_step(dial, NULL, 0, NULL), BYWAY_E_CANCELED, "and ends it");
    byway_dial_free(dial);
    byway_dns_request_release(asked.request);
    close(listener);
}

static byway_status choose(void *data, byway_proxy_request *request, const char *uri, size_t len, const byway_call *call)
{
    struct asked *asked = data;
    (void)uri;
    (void)len;
    (void)call;
    NEED(byway_proxy_request_add(request, BYWAY_PROXY_HTTP, "127.0.0.1", BYWAY_NUL, asked->number, NULL));
    NEED(byway_proxy_request_add_direct(request));
    return BYWAY_OK;
}

static void failed(void *data, const char *uri, size_t len, const byway_route *route, int32_t failure, int32_t number,
                   const byway_call *call)
{
    struct asked *asked = data;
    (void)uri;
    (void)len;
    (void)route;
    (void)call;
    asked->told += number == ECONNREFUSED;
    asked->failure = failure;
}

static void note(void *data, const byway_event *event)
{
    struct asked *asked = data;
    if (asked->number < 16)
        asked->events[asked->number++] = event->kind;
}

static void reports(void)
{
    static const int wanted[] = {BYWAY_EVENT_CONNECT_START, BYWAY_EVENT_CONNECT_FAILED, BYWAY_EVENT_CONNECT_START,
                                 BYWAY_EVENT_CONNECT_END};
    int port = 0, listener = listen_at("127.0.0.1", 8, &port), dead = 0, refusing = refusing_at("127.0.0.1", &dead);
    struct asked asked, heard;
    byway_proxy_selector_callbacks set = BYWAY_PROXY_SELECTOR_CALLBACKS_INIT;
    byway_listener_callbacks ears = BYWAY_LISTENER_CALLBACKS_INIT;
    byway_address_options where = BYWAY_ADDRESS_OPTIONS_INIT;
    byway_proxy_selector *proxies = NULL;
    byway_listener *ear = NULL;
    byway_address *address = NULL;
    byway_selector *selector = NULL;
    byway_dial *dial = NULL;
    byway_connected connected;
    memset(&asked, 0, sizeof asked);
    memset(&heard, 0, sizeof heard);
    asked.number = dead;
    set.user_data = &asked;
    set.select = choose;
    set.connect_failed = failed;
    ears.user_data = &heard;
    ears.mask = 1u << BYWAY_EVENT_CONNECT_START | 1u << BYWAY_EVENT_CONNECT_END | 1u << BYWAY_EVENT_CONNECT_FAILED |
                1u << BYWAY_EVENT_CONNECT_CANCELED;
    ears.on_event = note;
    NEED(byway_engine_add_listener(engine, &ears, &ear, NULL));
    NEED(byway_proxy_selector_new(engine, &set, &proxies, NULL));
    where.host.data = "127.0.0.1";
    where.host.len = BYWAY_NUL;
    where.port = port;
    where.proxy_selector = proxies;
    NEED(byway_address_new(engine, &where, &address, NULL));
    NEED(byway_selector_new(engine, address, NULL, &selector, NULL));
    NEED(byway_dial_new(engine, selector, NULL, NULL, &dial, NULL));
    STATUS(byway_dial_run(dial, -1, &connected, NULL), BYWAY_OK, "the second of two proxies");
    OK(asked.told == 1 && asked.failure == BYWAY_FAILURE_REFUSED, "the proxy selector hears of the first");
    OK(heard.number == 4 && memcmp(heard.events, wanted, sizeof wanted) == 0, "and listeners of everything, in order");
    finish(&connected);
    byway_dial_free(dial);
    byway_selector_free(selector);
    byway_address_release(address);
    byway_proxy_selector_release(proxies);
    (void)byway_listener_remove(ear);
    byway_listener_release(ear);
    close(refusing);
    close(listener);
}

static void options(void)
{
    static const struct {
        size_t offset;
        int32_t value;
        byway_status want;
    } bad[] = {
        {offsetof(byway_dial_options, cap_policy), 2, BYWAY_E_ENUM},
        {offsetof(byway_dial_options, on_failure), -1, BYWAY_E_ENUM},
        {offsetof(byway_dial_options, race_until), 3, BYWAY_E_ENUM},
        {offsetof(byway_dial_options, first_family), 3, BYWAY_E_ENUM},
        {offsetof(byway_dial_options, flags), (int32_t)0x80000000, BYWAY_E_ENUM},
    };
    byway_selector *selector = selector_for(ONE, 1, NULL);
    byway_dial_options given;
    byway_header header;
    byway_dial *dial = NULL;
    size_t i;
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        byway_dial_options_init(&given);
        memcpy((char *)&given + bad[i].offset, &bad[i].value, sizeof bad[i].value);
        STATUS(byway_dial_new(engine, selector, &given, NULL, &dial, NULL), bad[i].want, "a bad option");
    }
    byway_dial_options_init(&given);
    given.source_v4.data = "2001:db8::1";
    given.source_v4.len = BYWAY_NUL;
    STATUS(byway_dial_new(engine, selector, &given, NULL, &dial, NULL), BYWAY_E_INVALID_IP, "a source of the other family");
    byway_dial_options_init(&given);
    header.name.data = "X";
    header.value.data = "1\r\nEvil: 2";
    header.name.len = header.value.len = BYWAY_NUL;
    given.headers = &header;
    given.header_count = 1;
    STATUS(byway_dial_new(engine, selector, &given, NULL, &dial, NULL), BYWAY_E_ARGUMENT, "a header of two lines");
    OK(dial == NULL, "nothing was made");
    byway_selector_free(selector);
}

static void after_shutdown(void)
{
    int port = 0, filler, silent = silent_at("127.0.0.1", &port, &filler);
    byway_selector *selector = selector_for(ONE, port, NULL);
    byway_dial *dial = NULL;
    byway_connected connected;
    NEED(byway_dial_new(engine, selector, NULL, NULL, &dial, NULL));
    STATUS(byway_dial_run(dial, 0, &connected, NULL), BYWAY_PENDING, "under way");
    STATUS(byway_engine_shutdown(engine, -1, NULL), BYWAY_OK, "shutdown");
    STATUS(byway_dial_step(dial, NULL, 0, NULL), BYWAY_E_SHUTDOWN, "the dial ends with it");
    byway_dial_free(dial);
    byway_selector_free(selector);
    close(silent);
    close(filler);
}

int main(void)
{
    NEED(byway_engine_new(NULL, &engine, NULL));
    blocking();
    stepped();
    hooks(0);
    hooks(1);
    hook_without_a_socket();
    others();
    kept_routes();
    answers_later();
    reports();
    options();
    after_shutdown();
    byway_engine_release(engine);
    return tap_done();
}
