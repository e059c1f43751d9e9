/* What each option of a dial does to its sockets and its race, seen through the boundary. */
#include "tap.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

static byway_engine *engine;

static int bound(const char *ip, int *port, int backlog)
{
    struct sockaddr_in at;
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    memset(&at, 0, sizeof at);
    at.sin_family = AF_INET;
    at.sin_port = htons((uint16_t)*port);
    if (inet_pton(AF_INET, ip, &at.sin_addr) != 1 || bind(fd, (struct sockaddr *)&at, size) != 0 ||
        (backlog >= 0 && listen(fd, backlog) != 0) || getsockname(fd, (struct sockaddr *)&at, &size) != 0) {
        close(fd);
        return -1;
    }
    *port = ntohs(at.sin_port);
    return fd;
}

static byway_status answer(void *user_data, byway_dns_request *request, const char *host, size_t len,
                           const byway_call *call)
{
    (void)host;
    (void)len;
    (void)call;
    return byway_dns_request_add_text(request, user_data, BYWAY_NUL, NULL);
}

/* Routes to these addresses of this machine, in this order. */
static byway_selector *to(const char *ips, int port)
{
    byway_address_options options = BYWAY_ADDRESS_OPTIONS_INIT;
    byway_dns_callbacks set = BYWAY_DNS_CALLBACKS_INIT;
    byway_dns *dns = NULL;
    byway_address *address = NULL;
    byway_selector *selector = NULL;
    set.user_data = (void *)(uintptr_t)ips;
    set.lookup = answer;
    NEED(byway_dns_new(engine, &set, &dns, NULL));
    options.host.data = "a.example";
    options.host.len = BYWAY_NUL;
    options.port = port;
    options.dns = dns;
    NEED(byway_address_new(engine, &options, &address, NULL));
    NEED(byway_selector_new(engine, address, NULL, &selector, NULL));
    byway_address_release(address);
    byway_dns_release(dns);
    return selector;
}

/* One connection with these options; -1 and the status when there is none. */
static int connected_with(const byway_dial_options *options, int port, byway_status *status)
{
    byway_selector *selector = to("127.0.0.1", port);
    byway_dial *dial = NULL;
    byway_connected made;
    NEED(byway_dial_new(engine, selector, options, NULL, &dial, NULL));
    *status = byway_dial_run(dial, 3600000, &made, NULL);
    byway_dial_free(dial);
    byway_selector_free(selector);
    if (*status != BYWAY_OK)
        return -1;
    byway_route_release(made.route);
    return made.fd;
}

static int option(int fd, int level, int name)
{
    int value = -1;
    socklen_t size = sizeof value;
    return getsockopt(fd, level, name, &value, &size) == 0 ? value : -errno;
}

static int is_blocking(int fd)
{
    return (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0;
}

static void socket_options(void)
{
    byway_dial_options options = BYWAY_DIAL_OPTIONS_INIT;
    const byway_dial_options usual = BYWAY_DIAL_OPTIONS_INIT;
    struct sockaddr_in own;
    socklen_t size = sizeof own;
    char name[32];
    byway_status status;
    int port = 0, fd, listener = bound("127.0.0.1", &port, 64);

    fd = connected_with(NULL, port, &status);
    OK(fd >= 0 && !is_blocking(fd) && (fcntl(fd, F_GETFD) & FD_CLOEXEC), "a socket is non-blocking and closed by exec");
    OK(option(fd, IPPROTO_TCP, TCP_NODELAY) == 1 && option(fd, SOL_SOCKET, SO_KEEPALIVE) == 0 &&
           option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT) == 0,
       "without delay, and the rest as the system has it");
    close(fd);

    options.flags = BYWAY_DIAL_BLOCKING_SOCKET | BYWAY_DIAL_NO_NODELAY;
    options.keepalive_s = 7;
    options.user_timeout_ms = 12345;
    options.source_v4.data = "127.0.0.5";
    options.source_v4.len = BYWAY_NUL;
    fd = connected_with(&options, port, &status);
    OK(fd >= 0 && is_blocking(fd), "blocking, where wanted");
    OK(option(fd, IPPROTO_TCP, TCP_NODELAY) == 0, "with Nagle's delay");
    OK(option(fd, SOL_SOCKET, SO_KEEPALIVE) == 1 && option(fd, IPPROTO_TCP, TCP_KEEPIDLE) == 7 &&
           option(fd, IPPROTO_TCP, TCP_KEEPINTVL) == 7,
       "probes after so many seconds, and between them");
    OK(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT) == 12345, "user timeout");
    OK(getsockname(fd, (struct sockaddr *)&own, &size) == 0 && own.sin_addr.s_addr == inet_addr("127.0.0.5"),
       "source address");
    close(fd);

    options = usual;
    options.source_v4.data = "192.0.2.200";
    options.source_v4.len = BYWAY_NUL;
    fd = connected_with(&options, port, &status);
    OK(fd < 0 && status == BYWAY_E_LOCAL, "a source that this machine does not have (%s)", byway_status_name(status));

    options = usual;
    options.mark = 5;
    fd = connected_with(&options, port, &status);
    OK(fd >= 0 ? option(fd, SOL_SOCKET, SO_MARK) == 5 : status == BYWAY_E_LOCAL, "a mark, or no permission for it (%s)",
       byway_status_name(status));
    if (fd >= 0)
        close(fd);

    options = usual;
    options.device.data = "lo";
    options.device.len = BYWAY_NUL;
    fd = connected_with(&options, port, &status);
    size = sizeof name;
    OK(fd >= 0 ? getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, &size) == 0 && !strcmp(name, "lo")
               : status == BYWAY_E_LOCAL,
       "a device, or no permission for it (%s)", byway_status_name(status));
    if (fd >= 0)
        close(fd);
    options.device.data = "no-such-device";
    fd = connected_with(&options, port, &status);
    OK(fd < 0 && status == BYWAY_E_LOCAL, "a device there is not (%s)", byway_status_name(status));

    options = usual;
    options.flags = BYWAY_DIAL_MPTCP;
    fd = connected_with(&options, port, &status);
    OK(fd >= 0, "multipath TCP falls back to TCP");
    close(fd);
    options.flags = BYWAY_DIAL_FAST_OPEN;
    fd = connected_with(&options, port, &status);
    OK(fd >= 0 && write(fd, "x", 1) == 1, "fast open carries data");
    close(fd);
    close(listener);
}

/* Attempts in flight. */
static int in_flight(byway_dial *dial)
{
    byway_pollfd set[8];
    size_t total = 0, i;
    int count = 0;
    NEED(byway_dial_pollset(dial, set, sizeof set[0], 8, &total, NULL, NULL));
    for (i = 0; i < total; i++)
        count += set[i].id != 0;
    return count;
}

static void races(void)
{
    static const struct {
        uint32_t flags;
        int second;
        const char *what;
    } cases[] = { { 0, 1, "a failed route waits behind the Selection before" },
                  { BYWAY_DIAL_ACROSS_SELECTIONS, 2, "or joins the race, where wanted" } };
    byway_dial_options options = BYWAY_DIAL_OPTIONS_INIT;
    byway_selector *selector;
    byway_selection *selection = NULL;
    byway_dial *dial = NULL;
    byway_connected made;
    size_t i, total = 0;
    struct sockaddr_in at;
    struct pollfd full = {-1, POLLIN, 0};
    /* Nobody takes what comes to the listener, whose queue is full: connects to it stay without an answer. */
    int port = 0, listener = bound("127.0.0.1", &port, 0), filler = socket(AF_INET, SOCK_STREAM, 0), refusing;
    memset(&at, 0, sizeof at);
    at.sin_family = AF_INET;
    at.sin_port = htons((uint16_t)port);
    at.sin_addr.s_addr = inet_addr("127.0.0.1");
    /* Connected at its own end; the queue has it once it could be accepted. */
    full.fd = listener;
    if (connect(filler, (struct sockaddr *)&at, sizeof at) != 0 || poll(&full, 1, -1) != 1)
        abort();

    selector = to("127.0.0.1 127.0.0.2", port);
    NEED(byway_selector_next(selector, 0, &selection, NULL));
    NEED(byway_engine_connect_failed(engine, byway_selection_at(selection, 1), BYWAY_FAILURE_REFUSED, BYWAY_PHASE_TCP,
                                     ECONNREFUSED, NULL));
    byway_selection_free(selection);
    byway_selector_free(selector);
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        byway_status first, later;
        options.flags = cases[i].flags;
        selector = to("127.0.0.1 127.0.0.2", port);
        NEED(byway_dial_new(engine, selector, &options, NULL, &dial, NULL));
        first = byway_dial_step_at(dial, 0, NULL, 0, NULL);
        OK(first == BYWAY_PENDING && in_flight(dial) == 1, "one attempt at first");
        later = byway_dial_step_at(dial, 300, NULL, 0, NULL);
        /* The second address refuses at once: then it has failed instead of being in flight. */
        NEED(byway_dial_failures(dial, NULL, 1, 0, &total));
        OK(later == BYWAY_PENDING && in_flight(dial) + (int)total == cases[i].second, "%s (%d)", cases[i].what,
           in_flight(dial) + (int)total);
        byway_dial_free(dial);
        byway_selector_free(selector);
    }
    close(filler);
    close(listener);

    port = 0;
    refusing = bound("127.0.0.1", &port, -1);
    for (i = 0; i < 2; i++) {
        options.flags = i ? BYWAY_DIAL_KEEP_DUPLICATES : 0;
        selector = to("127.0.0.1 127.0.0.1", port);
        NEED(byway_dial_new(engine, selector, &options, NULL, &dial, NULL));
        STATUS(byway_dial_run(dial, 3600000, &made, NULL), BYWAY_E_CONNECT, "nobody listens");
        NEED(byway_dial_failures(dial, NULL, 1, 0, &total));
        OK(total == i + 1, "a destination listed twice is tried %s", i ? "twice, where wanted" : "once");
        byway_dial_free(dial);
        byway_selector_free(selector);
        NEED(byway_engine_network_changed(engine, NULL));
    }
    close(refusing);
}

int main(void)
{
    NEED(byway_engine_new(NULL, &engine, NULL));
    socket_options();
    races();
    NEED(byway_engine_shutdown(engine, -1, NULL));
    byway_engine_release(engine);
    return tap_done();
}
