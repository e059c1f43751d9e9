/* okhttp.jsonl connect_tunnel: upstream's tunnels through a dial of an engine that behaves as upstream's connector. The
 * proxy is here, on the same thread, so that every cut of its answers comes as it was cut. */
#include "dialogues.h"
#include "races.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST_REPLIES = 64 };

struct tunnel {
    const cJSON *one;
    int listener, port;
    struct reply {
        char text[256];
        int closes; /* behind it */
    } replies[MOST_REPLIES];
    int count;
};

/* `407 keep-alive`, `407 close x21`, `200 followed by 5 stray bytes`... */
static int read_reply(struct tunnel *tunnel, const char *phrase)
{
    static const char challenge[] = "Proxy-Authenticate: Basic realm=\"p\"\r\n";
    struct reply reply;
    const char *times = strrchr(phrase, 'x');
    int status = atoi(phrase), repeat = times != NULL && times[-1] == ' ' ? atoi(times + 1) : 1;
    memset(&reply, 0, sizeof reply);
    reply.closes = strstr(phrase, "then closed") != NULL;
    if (strstr(phrase, "keep-alive") != NULL)
        snprintf(reply.text, sizeof reply.text, "HTTP/1.1 %d x\r\n%sContent-Length: 0\r\n\r\n", status, challenge);
    else if (strstr(phrase, " close") != NULL && !reply.closes)
        snprintf(reply.text, sizeof reply.text, "HTTP/1.1 %d x\r\n%sConnection: close\r\nContent-Length: 0\r\n\r\n",
                 status, challenge);
    else if (strstr(phrase, "stray bytes") != NULL)
        snprintf(reply.text, sizeof reply.text, "HTTP/1.1 %d x\r\n\r\nstray", status);
    else if (strstr(phrase, "Content-Length 5") != NULL)
        snprintf(reply.text, sizeof reply.text, "HTTP/1.1 %d x\r\nContent-Length: 5\r\n\r\nabc", status);
    else if (strchr(phrase, ' ') == NULL)
        snprintf(reply.text, sizeof reply.text, "HTTP/1.1 %d x\r\n\r\n", status);
    else
        return 0;
    while (repeat-- > 0) {
        if (tunnel->count == MOST_REPLIES)
            return 0;
        tunnel->replies[tunnel->count++] = reply;
    }
    return 1;
}

/* What upstream's exception says of a fault. */
static const char *upstream_message(const char *fault, char *out, size_t size)
{
    if (strncmp(fault, "CONNECT_STATUS:", 15) == 0) {
        snprintf(out, size, "Unexpected response code for CONNECT: %s", fault + 15);
        return out;
    }
    return strcmp(fault, "CONNECT_AUTH_REQUIRED") == 0 ? "Failed to authenticate with proxy"
           : strcmp(fault, "EARLY_DATA") == 0          ? "TLS tunnel buffered too many bytes!"
           : strcmp(fault, "CONNECT_AUTH_LOOP") == 0   ? "Too many tunnel connections attempted: 21"
           : strcmp(fault, "TRUNCATED") == 0 || strcmp(fault, "PROXY_CLOSED") == 0 ? "unexpected end of stream"
                                                                                   : fault;
}

/* One dial through the proxy. */
struct visit {
    const struct tunnel *tunnel;
    byway_engine *engine;
    byway_dial *dial;
    int client, server; /* the two ends of the connection; -1 = none */
    int requests, connections;
    char head[2048];
    size_t head_len;
    const struct reply *reply; /* being sent */
    size_t sent;
};

static byway_status credentials(void *data, byway_dial *dial, uint32_t attempt, const byway_route *route,
                                const byway_str *challenges, size_t count, const byway_call *call)
{
    struct visit *visit = data;
    (void)route;
    (void)challenges;
    (void)call;
    if (count == 0 || !flag_of(visit->tunnel->one, "credentials"))
        return BYWAY_PASS;
    return byway_dial_authenticate(dial, attempt, "Basic dXNlcjpwYXNz", BYWAY_NUL);
}

static void open_visit(struct visit *visit)
{
    byway_engine_options profile = BYWAY_ENGINE_OPTIONS_INIT;
    byway_address_options where = BYWAY_ADDRESS_OPTIONS_INIT;
    byway_dial_options options = BYWAY_DIAL_OPTIONS_INIT;
    byway_dial_callbacks callbacks = BYWAY_DIAL_CALLBACKS_INIT;
    byway_address *address = NULL;
    byway_proxy *proxy = NULL;
    byway_route *route = NULL;
    byway_ip hop;
    const byway_route *routes[1];
    memset(&hop, 0, sizeof hop);
    hop.family = 4;
    memcpy(hop.bytes, "\177\0\0\1", 4);
    profile.compat = BYWAY_COMPAT_OKHTTP_5;
    options.flags = BYWAY_DIAL_EVENTS;
    options.user_agent.data = "";
    callbacks.user_data = visit;
    callbacks.proxy_auth = credentials;
    where.host.data = "o.example";
    where.host.len = BYWAY_NUL;
    where.port = 443;
    where.flags = BYWAY_ADDRESS_TLS;
    if (byway_engine_new(&profile, &visit->engine, NULL) != BYWAY_OK ||
        byway_address_new(visit->engine, &where, &address, NULL) != BYWAY_OK ||
        byway_proxy_new(BYWAY_PROXY_HTTP, "127.0.0.1", BYWAY_NUL, visit->tunnel->port, &proxy, NULL) != BYWAY_OK ||
        byway_route_new(address, proxy, &hop, visit->tunnel->port, &route, NULL) != BYWAY_OK)
        abort();
    routes[0] = route;
    if (byway_dial_new_routes(visit->engine, routes, 1, &options, &callbacks, &visit->dial, NULL) != BYWAY_OK)
        abort();
    byway_route_release(route);
    byway_proxy_release(proxy);
    byway_address_release(address);
}

static void wait_for(int fd, short events)
{
    struct pollfd set;
    set.fd = fd;
    set.events = events;
    set.revents = 0;
    while (poll(&set, 1, -1) != 1)
        continue;
}

static void hang_up(struct visit *visit)
{
    if (visit->server >= 0)
        close(visit->server);
    visit->server = -1;
}

/* Takes what has come of the request; 1 when it is whole. */
static int hear(struct visit *visit)
{
    ssize_t got = recv(visit->server, visit->head + visit->head_len, sizeof visit->head - visit->head_len - 1, MSG_DONTWAIT);
    if (got > 0)
        visit->head_len += (size_t)got;
    visit->head[visit->head_len] = '\0';
    return strstr(visit->head, "\r\n\r\n") != NULL;
}

/* The proxy's next act; the dial has nothing to do before it. */
static void act(struct visit *visit, size_t first, size_t rest)
{
    const struct tunnel *tunnel = visit->tunnel;
    const int one = 1;
    if (visit->server < 0) {
        wait_for(tunnel->listener, POLLIN);
        visit->server = accept(tunnel->listener, NULL, NULL);
        (void)setsockopt(visit->server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        visit->connections++;
        visit->head_len = 0;
        visit->reply = NULL;
        return;
    }
    if (visit->reply == NULL) {
        if (!hear(visit)) {
            wait_for(visit->client, POLLOUT);
            return;
        }
        visit->head_len = 0;
        visit->reply = visit->requests < tunnel->count ? &tunnel->replies[visit->requests] : NULL;
        visit->requests++;
        visit->sent = 0;
        if (visit->reply == NULL)
            hang_up(visit);
        return;
    }
    if (visit->sent < strlen(visit->reply->text)) {
        size_t len = strlen(visit->reply->text), size = piece(visit->sent, len, first, rest);
        if (write(visit->server, visit->reply->text + visit->sent, size) != (ssize_t)size)
            abort();
        visit->sent += size;
        wait_for(visit->client, POLLIN);
    } else if (visit->reply->closes) {
        hang_up(visit);
        wait_for(visit->client, POLLIN);
    } else {
        visit->reply = NULL;
    }
}

static byway_status follow(struct visit *visit, byway_error **err)
{
    byway_status status = byway_dial_step(visit->dial, NULL, 0, err);
    byway_dial_event event;
    while (byway_dial_next_event(visit->dial, &event) == BYWAY_OK) {
        if (event.kind == BYWAY_DIAL_EVENT_START) {
            visit->client = event.fd;
        } else if (event.kind == BYWAY_DIAL_EVENT_FD_CLOSING) {
            hang_up(visit);
        }
    }
    return status;
}

/* All answers, each in pieces. */
static enum outcome tunnel_once(size_t first, size_t rest, void *data)
{
    const struct tunnel *tunnel = data;
    const cJSON *want;
    struct visit visit;
    byway_error *err = NULL;
    byway_status status;
    byway_connected connected;
    char fault[512] = "", message[600];
    enum outcome outcome = PASS;
    memset(&visit, 0, sizeof visit);
    visit.tunnel = tunnel;
    visit.client = visit.server = -1;
    open_visit(&visit);
    while ((status = follow(&visit, &err)) == BYWAY_PENDING)
        act(&visit, first, rest);
    if (status == BYWAY_OK && byway_dial_take(visit.dial, &connected, NULL) == BYWAY_OK) {
        close(connected.fd);
        byway_route_release(connected.route);
        /* With a piece that ends at the head's end the data behind it comes too late to be refused here. */
        if (visit.reply != NULL && visit.sent < strlen(visit.reply->text))
            snprintf(fault, sizeof fault, "EARLY_DATA");
    } else {
        fault_of(err, fault, sizeof fault);
    }
    hang_up(&visit);
    cJSON_ArrayForEach(want, get(tunnel->one, "expect"))
    {
        const char *name = want->string, *got = NULL;
        int number = -1;
        if (strcmp(name, "result") == 0)
            got = fault[0] != '\0' ? "error" : "tunnel";
        else if (strcmp(name, "error") == 0)
            got = strcmp(fault, "CONNECT_AUTH_LOOP") == 0 ? "protocol" : "io";
        else if (strcmp(name, "message") == 0)
            got = upstream_message(fault, message, sizeof message);
        else if (strcmp(name, "connects") == 0)
            number = visit.requests;
        else if (strcmp(name, "tcp_connections") == 0)
            number = visit.connections;
        if (outcome == PASS && (cJSON_IsString(want) ? got == NULL || strcmp(got, want->valuestring) != 0
                                                     : number != want->valueint))
            outcome = fails("first piece %zu: %s: got %s %d", first, name, got != NULL ? got : "", number);
    }
    byway_dial_free(visit.dial);
    byway_engine_release(visit.engine);
    return outcome;
}

static enum outcome run_connect_tunnel(const cJSON *one)
{
    struct tunnel tunnel;
    const cJSON *phrase;
    size_t longest = 0;
    enum outcome outcome;
    int i;
    memset(&tunnel, 0, sizeof tunnel);
    tunnel.one = one;
    cJSON_ArrayForEach(phrase, get(one, "replies")) if (!read_reply(&tunnel, phrase->valuestring))
        return fails("cannot read %s", phrase->valuestring);
    for (i = 0; i < tunnel.count; i++)
        if (strlen(tunnel.replies[i].text) > longest)
            longest = strlen(tunnel.replies[i].text);
    tunnel.listener = listener_at("127.0.0.1", 0, 1, &tunnel.port);
    outcome = each_cut(longest, tunnel_once, &tunnel);
    close(tunnel.listener);
    return outcome;
}

const struct kind tunnel_kinds[] = {{"okhttp", "connect_tunnel", run_connect_tunnel}, {NULL, NULL, NULL}};
