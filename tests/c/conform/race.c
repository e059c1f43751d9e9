/* Race timelines through byway_dial on a clock of the test's own. Sockets are real, in a network of their own; what
 * happened on one is told to the dial at the moment the case says, so a connect "takes" as long as it should. */
#include "races.h"
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST 32

struct way {
    const cJSON *spec;
    byway_route *route;
    byway_ip ip;
    int listener, port, tries;
};

/* One answer of the resolver: the addresses of a family, and when they come. */
struct answer {
    double at;
    int family, first, count, given;
};

struct event {
    double at;
    uint32_t attempt;
    int way, ready;
};

struct world {
    const cJSON *one, *expect;
    struct way ways[MOST];
    int count;
    struct event events[4 * MOST];
    int pending;
    int started[MOST], start_first, start_last; /* ways in the order in which sockets were opened */
    int way_of[4 * MOST];                       /* by attempt */
    int fd_of[4 * MOST];
    struct answer answers[4];
    int answer_count;
    byway_dns_request *request; /* asked, and not answered yet */
    byway_engine *engine;
    byway_dns *dns;
    byway_address *host;
    byway_selector *selector;
    byway_dial *dial;
    cJSON *got;
    void (*judge)(struct world *world);
    struct rlimit limit;
    int limited;
    enum outcome outcome;
};

static const char *outcome_of(const struct way *way)
{
    const char *again = text_of(get(way->spec, "retry"), "outcome", NULL);
    return way->tries > 1 && again != NULL ? again : text_of(way->spec, "outcome", "ok");
}

static double after_of(const struct way *way)
{
    double first = number_of(way->spec, "after_ms", 0);
    return way->tries > 1 ? number_of(get(way->spec, "retry"), "after_ms", first) : first;
}

static int at_once(const struct way *way)
{
    const cJSON *again = get(get(way->spec, "retry"), "sync");
    return way->tries > 1 && again != NULL ? cJSON_IsTrue(again) : flag_of(way->spec, "sync");
}

/* Where the way's connect goes: something that answers as the case says, if not when. */
static void make_way(struct world *world, const cJSON *spec)
{
    struct way *way = &world->ways[world->count++];
    const char *outcome = text_of(spec, "outcome", "ok"), *ip = "192.0.2.1";
    int sync = flag_of(spec, "sync"), works = strcmp(outcome, "ok") == 0 || strcmp(outcome, "pending") == 0;
    const char *until = text_of(get(world->one, "options"), "race_until", "tcp");
    byway_address_options where = BYWAY_ADDRESS_OPTIONS_INIT;
    byway_address *address = NULL;
    byway_selector *selector = NULL;
    byway_selection *selection = NULL;
    byway_proxy *proxy = NULL;
    memset(way, 0, sizeof *way);
    way->spec = spec;
    if (strcmp(text_of(get(spec, "retry"), "outcome", ""), "ok") == 0)
        works = 1, sync = 0;
    way->listener = listener_at(sync && works ? "127.0.0.1" : ip, 0, works, &way->port);
    if (sync)
        ip = works ? "127.0.0.1" : NOWHERE;
    where.flags = BYWAY_ADDRESS_TLS;
    where.host.len = BYWAY_NUL;
    if (get(spec, "ready") != NULL && strcmp(until, "tcp") != 0) {
        where.host.data = "192.0.2.99";
        where.port = 443;
        (void)byway_proxy_new(BYWAY_PROXY_HTTP, ip, BYWAY_NUL, way->port, &proxy, NULL);
        where.proxy = proxy;
    } else {
        where.host.data = ip;
        where.port = way->port;
    }
    if (byway_address_new(world->engine, &where, &address, NULL) != BYWAY_OK ||
        byway_selector_new(world->engine, address, NULL, &selector, NULL) != BYWAY_OK ||
        byway_selector_next(selector, 0, &selection, NULL) != BYWAY_OK)
        abort();
    way->route = byway_route_retain((byway_route *)byway_selection_at(selection, 0));
    byway_selection_free(selection);
    byway_selector_free(selector);
    byway_address_release(address);
    byway_proxy_release(proxy);
}

/* ---- a host whose addresses a resolver gives */

enum { HOST_PORT = 443 };

/* One of the host's addresses. */
static void make_host_way(struct world *world, const cJSON *spec, int family)
{
    struct way *way = &world->ways[world->count++];
    const char *outcome = text_of(spec, "outcome", "ok");
    int works = strcmp(outcome, "ok") == 0 || strcmp(outcome, "pending") == 0;
    memset(way, 0, sizeof *way);
    way->spec = spec;
    way->ip = own_ip(family, world->count);
    way->listener = listener_at(own_text(family, world->count), HOST_PORT, works, &way->port);
    if (byway_route_new(world->host, NULL, &way->ip, HOST_PORT, &way->route, NULL) != BYWAY_OK)
        abort();
}

static void make_answer(struct world *world, double at, const char *family, const cJSON *routes)
{
    struct answer *answer = &world->answers[world->answer_count++];
    const cJSON *spec;
    answer->at = at;
    answer->family = strcmp(family, "v4") == 0 ? 4 : 6;
    answer->first = world->count;
    cJSON_ArrayForEach(spec, routes) make_host_way(world, spec, answer->family);
    answer->count = world->count - answer->first;
}

static byway_status lookup(void *data, byway_dns_request *request, const char *host, size_t len,
                           const byway_call *call)
{
    struct world *world = data;
    (void)host;
    (void)len;
    (void)call;
    world->request = byway_dns_request_retain(request);
    return BYWAY_PENDING;
}

/* Gives the first answer that is due, so that a step sees each of them come; 1 when there was one. */
static int give_answer(struct world *world, double now)
{
    int i, k, given = 0, left = 0;
    for (i = 0; i < world->answer_count && world->request != NULL; i++) {
        struct answer *answer = &world->answers[i];
        if (answer->given || given || answer->at > now) {
            left += !answer->given;
            continue;
        }
        for (k = 0; k < answer->count; k++)
            (void)byway_dns_request_add(world->request, &world->ways[answer->first + k].ip, 1);
        (void)byway_dns_request_family_done(world->request, answer->family);
        answer->given = given = 1;
    }
    if (world->request != NULL && left == 0) {
        (void)byway_dns_request_finish(world->request);
        byway_dns_request_release(world->request);
        world->request = NULL;
    }
    return given;
}

static double next_answer(const struct world *world)
{
    double next = -1;
    int i;
    for (i = 0; i < world->answer_count; i++)
        if (!world->answers[i].given && (next < 0 || world->answers[i].at < next))
            next = world->answers[i].at;
    return next;
}

/* The case names addresses of one host: by its resolver's answers, or because what is remembered of a host's failures
 * hangs on the selector they have in common. */
static int by_host(const cJSON *one)
{
    return get(one, "dns") != NULL || get(get(one, "options"), "commit_failures") != NULL;
}

static void make_host(struct world *world, const byway_dial_options *options, const byway_dial_callbacks *callbacks)
{
    byway_dns_callbacks resolver = BYWAY_DNS_CALLBACKS_INIT;
    byway_address_options where = BYWAY_ADDRESS_OPTIONS_INIT;
    byway_selector_options early = BYWAY_SELECTOR_OPTIONS_INIT;
    const cJSON *answer;
    early.flags = BYWAY_SELECTOR_EARLY;
    resolver.user_data = world;
    resolver.lookup = lookup;
    if (byway_dns_new(world->engine, &resolver, &world->dns, NULL) != BYWAY_OK)
        abort();
    where.host.data = "race.example";
    where.host.len = BYWAY_NUL;
    where.port = HOST_PORT;
    where.flags = BYWAY_ADDRESS_TLS;
    where.dns = world->dns;
    if (byway_address_new(world->engine, &where, &world->host, NULL) != BYWAY_OK)
        abort();
    cJSON_ArrayForEach(answer, get(world->one, "dns"))
        make_answer(world, number_of(answer, "at_ms", 0), text_of(answer, "family", ""), get(answer, "routes"));
    if (world->answer_count == 0)
        make_answer(world, 0, "v4", get(world->one, "routes"));
    if (byway_selector_new(world->engine, world->host, &early, &world->selector, NULL) != BYWAY_OK ||
        byway_dial_new(world->engine, world->selector, options, callbacks, &world->dial, NULL) != BYWAY_OK)
        abort();
}

static void limit(struct world *world, int on)
{
    struct rlimit low = world->limit;
    if (on == world->limited)
        return;
    low.rlim_cur = on ? 3 : world->limit.rlim_cur;
    setrlimit(RLIMIT_NOFILE, &low);
    world->limited = on;
}

static byway_status opening(void *data, int32_t family, int32_t protocol, const byway_route *route, int32_t *fd,
                            const byway_call *call)
{
    struct world *world = data;
    int i;
    (void)family;
    (void)protocol;
    (void)fd;
    (void)call;
    for (i = 0; i < world->count; i++)
        if (same_hop(world->ways[i].route, route))
            break;
    if (i == world->count)
        abort();
    world->ways[i].tries++;
    world->started[world->start_last++ % MOST] = i;
    limit(world, strcmp(outcome_of(&world->ways[i]), "fd_limit") == 0);
    return BYWAY_PASS;
}

static void schedule(struct world *world, double at, uint32_t attempt, int way, int ready)
{
    struct event event;
    event.at = at;
    event.attempt = attempt;
    event.way = way;
    event.ready = ready;
    world->events[world->pending++] = event;
}

/* What the dial did in a step: new attempts get their end, dialogues their answer. */
static void follow(struct world *world, double now)
{
    byway_dial_event event;
    while (byway_dial_next_event(world->dial, &event) == BYWAY_OK) {
        int way = world->way_of[event.attempt];
        if (event.kind == BYWAY_DIAL_EVENT_START) {
            way = world->started[world->start_first++ % MOST];
            world->way_of[event.attempt] = way;
            world->fd_of[event.attempt] = event.fd;
            if (event.fd >= 0 && !at_once(&world->ways[way]) && strcmp(outcome_of(&world->ways[way]), "pending") != 0)
                schedule(world, now + after_of(&world->ways[way]), event.attempt, way, 0);
        } else if (event.kind == BYWAY_DIAL_EVENT_HANDSHAKE) {
            const cJSON *ready = get(world->ways[way].spec, "ready");
            if (strcmp(text_of(ready, "outcome", "ok"), "pending") != 0)
                schedule(world, now + number_of(ready, "after_ms", 0), event.attempt, way, 1);
        } else if (event.kind == BYWAY_DIAL_EVENT_FD_CLOSING) {
            int i, kept = 0;
            for (i = 0; i < world->pending; i++)
                if (world->events[i].attempt != event.attempt)
                    world->events[kept++] = world->events[i];
            world->pending = kept;
        }
    }
}

/* The proxy's answer, which is there when the dial is told so. */
static void reply(const struct way *way)
{
    const char *outcome = text_of(get(way->spec, "ready"), "outcome", "ok");
    int fd = accept(way->listener, NULL, NULL), status;
    char head[2048], text[64] = "HTTP/1.1 200 OK\r\n\r\n";
    if (read(fd, head, sizeof head) <= 0)
        abort();
    if (sscanf(outcome, "tunnel_status:%d", &status) == 1)
        snprintf(text, sizeof text, "HTTP/1.1 %d no\r\n\r\n", status);
    if (strncmp(outcome, "socks", 5) != 0 && write(fd, text, strlen(text)) < 0)
        abort();
    shutdown(fd, SHUT_WR);
    close(fd);
}

static size_t due(struct world *world, double now, byway_pollfd *set)
{
    size_t count = 0;
    int i, kept = 0;
    for (i = 0; i < world->pending; i++) {
        struct event *event = &world->events[i];
        if (event->at > now) {
            world->events[kept++] = *event;
            continue;
        }
        if (event->ready)
            reply(&world->ways[event->way]);
        set[count].id = event->attempt;
        set[count].fd = world->fd_of[event->attempt];
        set[count].events = set[count].revents = event->ready ? POLLIN : POLLOUT;
        count++;
    }
    world->pending = kept;
    return count;
}

static cJSON *pair(const cJSON *id, double at)
{
    cJSON *list = cJSON_CreateArray();
    cJSON_AddItemToArray(list, cJSON_Duplicate(id, 1));
    cJSON_AddItemToArray(list, cJSON_CreateNumber(at));
    return list;
}

static cJSON *triple(const cJSON *id, const char *why, double at)
{
    cJSON *list = cJSON_CreateArray();
    cJSON_AddItemToArray(list, cJSON_Duplicate(id, 1));
    cJSON_AddItemToArray(list, cJSON_CreateString(why));
    cJSON_AddItemToArray(list, cJSON_CreateNumber(at));
    return list;
}

/* Puts an attempt's end where the time of its end belongs, equal times in order of start. */
static void add_by_time(cJSON *list, cJSON *item)
{
    double at = cJSON_GetArrayItem(item, cJSON_GetArraySize(item) - 1)->valuedouble;
    int i, later = 0;
    for (i = cJSON_GetArraySize(list); i > 0; i--, later++) {
        const cJSON *before = cJSON_GetArrayItem(list, i - 1);
        if (cJSON_GetArrayItem(before, cJSON_GetArraySize(before) - 1)->valuedouble <= at)
            break;
    }
    cJSON_AddItemToArray(list, item);
    while (later-- > 0)
        cJSON_AddItemToArray(list, cJSON_DetachItemFromArray(list, i));
}

static const struct {
    const char *fault, *name;
} NAMES[] = {
    {"TIMEOUT_ATTEMPT", "timeout"}, {"TIMEOUT_READY", "handshake_timeout"}, {"TLS_FAILED", "tls_failed"}};

/* What the case expects, read from the dial's own waterfall. */
static void read_waterfall(struct world *world, cJSON *got)
{
    cJSON *starts = cJSON_AddArrayToObject(got, "starts"), *failed = cJSON_AddArrayToObject(got, "failed");
    cJSON *canceled = cJSON_AddArrayToObject(got, "canceled"), *dropped = cJSON_AddArrayToObject(got, "dropped");
    cJSON *local = cJSON_AddArrayToObject(got, "local_errors"), *all, *one;
    byway_text *text = NULL;
    byway_str json;
    (void)byway_dial_explain(world->dial, BYWAY_FORMAT_JSON, &text, NULL);
    byway_text_str(text, &json);
    all = cJSON_Parse(json.data);
    byway_text_free(text);
    cJSON_ArrayForEach(one, get(all, "attempts"))
    {
        const struct way *way = &world->ways[world->way_of[(int)number_of(one, "attempt", 0)]];
        const cJSON *id = get(way->spec, "id");
        const char *outcome = text_of(one, "outcome", ""), *fault = text_of(one, "fault", "");
        double ended = number_of(one, "ended_ms", 0);
        int put_back = strcmp(fault, "FD_LIMIT") == 0 && way->tries > 1;
        if (!put_back)
            cJSON_AddItemToArray(starts, pair(id, number_of(one, "started_ms", 0)));
        if (strcmp(outcome, "canceled") == 0) {
            int oldest = strncmp(text_of(one, "reason", ""), "oldest", 6) == 0;
            add_by_time(oldest ? dropped : canceled, pair(id, ended));
        } else if (strcmp(outcome, "failed") == 0) {
            const char *name = text_of(way->spec, "outcome", "ok");
            size_t i;
            if (strcmp(name, "ok") == 0)
                name = text_of(get(way->spec, "ready"), "outcome", "ok");
            for (i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++)
                if (strcmp(NAMES[i].fault, fault) == 0)
                    name = NAMES[i].name;
            if (strncmp(name, "tunnel_status", 13) == 0 && get(got, "error") == NULL)
                cJSON_AddStringToObject(got, "error", name);
            else
                add_by_time(strcmp(fault, "FD_LIMIT") == 0 || strcmp(fault, "NO_LOCAL_ROUTE") == 0 ? local : failed,
                            triple(id, name, ended));
        }
    }
    cJSON_Delete(all);
}

static int same(const cJSON *got, const cJSON *want)
{
    return want == NULL ? cJSON_GetArraySize(got) == 0 : cJSON_Compare(got, want, 1);
}

static void judge(struct world *world)
{
    static const char *const FIELDS[] = {"result", "at_ms", "starts", "failed", "canceled", "dropped", "local_errors",
                                         "deadlines", "winner", "error"};
    const cJSON *expect = world->expect, *blamed = get(get(expect, "db"), "failed"), *id;
    cJSON *got = world->got;
    const cJSON *first = cJSON_GetArrayItem(get(got, "failed"), 0);
    const char *result = text_of(got, "result", "");
    size_t i;
    int way;
    if (first == NULL)
        first = cJSON_GetArrayItem(get(got, "local_errors"), 0);
    if (strcmp(result, "timeout") == 0)
        cJSON_AddStringToObject(got, "error", "overall_timeout");
    else if (strcmp(result, "failed") == 0 && get(got, "error") == NULL)
        cJSON_AddStringToObject(got, "error", first ? cJSON_GetArrayItem(first, 1)->valuestring : "no_routes");
    for (i = 0; i < sizeof FIELDS / sizeof FIELDS[0] && world->outcome == PASS; i++) {
        const cJSON *have = get(got, FIELDS[i]), *want = get(expect, FIELDS[i]);
        if (!same(have, want) && !(have == NULL && want == NULL)) {
            char *a = cJSON_PrintUnformatted(have), *b = cJSON_PrintUnformatted(want);
            world->outcome = fails("%s: got %s, want %s", FIELDS[i], a ? a : "nothing", b ? b : "nothing");
            free(a);
            free(b);
        }
    }
    for (way = 0; way < world->count && world->outcome == PASS; way++) {
        int32_t behind = 0;
        int wanted = 0;
        (void)byway_engine_should_postpone(world->engine, world->ways[way].route, &behind);
        cJSON_ArrayForEach(id, blamed) wanted |= cJSON_Compare(id, get(world->ways[way].spec, "id"), 1);
        if (behind != wanted)
            world->outcome = fails("way %d: postponed %d, want %d", way, (int)behind, wanted);
    }
}

static void options_of(const cJSON *given, byway_dial_options *options)
{
    const char *failure = text_of(given, "on_failure", ""), *until = text_of(given, "race_until", "");
    options->flags = BYWAY_DIAL_EVENTS;
    options->attempt_delay_ms = (uint32_t)number_of(given, "attempt_delay_ms", 0);
    options->resolution_delay_ms = (uint32_t)number_of(given, "resolution_delay_ms", 0);
    options->first_family_count = (uint32_t)number_of(given, "first_family_count", 0);
    options->attempt_timeout_ms = (uint32_t)number_of(given, "attempt_timeout_ms", 0);
    options->ready_timeout_ms = (uint32_t)number_of(given, "ready_timeout_ms", 0);
    options->overall_timeout_ms = (uint32_t)number_of(given, "overall_timeout_ms", 0);
    options->ready_extend_ms = (uint32_t)number_of(given, "ready_extend_ms", 0);
    options->max_in_flight = (uint32_t)number_of(given, "max_in_flight", 0);
    if (options->max_in_flight == 0)
        options->max_in_flight = BYWAY_DIAL_NONE;
    if (strcmp(text_of(given, "cap_policy", ""), "wait") == 0)
        options->cap_policy = BYWAY_CAP_WAIT;
    if (strcmp(text_of(given, "tunnel_refusal", ""), "next") == 0)
        options->flags |= BYWAY_DIAL_NEXT_ON_REFUSAL;
    options->on_failure = strcmp(failure, "immediate") == 0 ? BYWAY_ON_FAILURE_IMMEDIATE
                          : strcmp(failure, "latest") == 0  ? BYWAY_ON_FAILURE_LATEST
                                                            : BYWAY_ON_FAILURE_WHEN_IDLE;
    options->race_until = strcmp(until, "ready") == 0 ? BYWAY_RACE_UNTIL_READY : BYWAY_RACE_UNTIL_TCP;
}

static void race(struct world *world)
{
    const cJSON *one = world->one, *spec, *resume = cJSON_GetArrayItem(get(one, "resume"), 0);
    double cancel_at = number_of(one, "cancel_at_ms", -1), now = 0;
    byway_dial_options options = BYWAY_DIAL_OPTIONS_INIT;
    byway_dial_callbacks callbacks = BYWAY_DIAL_CALLBACKS_INIT;
    byway_engine_options engine = BYWAY_ENGINE_OPTIONS_INIT;
    const byway_route *routes[MOST];
    byway_pollfd set[4 * MOST];
    byway_connected connected;
    byway_status status = BYWAY_PENDING;
    cJSON *got = world->got = cJSON_CreateObject(), *deadlines = cJSON_AddArrayToObject(got, "deadlines");
    const char *result = "failed";
    int i, steps, routes_count = 0;
    options_of(get(one, "options"), &options);
    callbacks.user_data = world;
    callbacks.open_socket = opening;
    if (strcmp(text_of(get(one, "options"), "commit_failures", ""), "on_success") == 0)
        engine.commit_failures = BYWAY_COMMIT_ON_SUCCESS;
    if (byway_engine_new(&engine, &world->engine, NULL) != BYWAY_OK)
        abort();
    if (by_host(one)) {
        make_host(world, &options, &callbacks);
    } else {
        cJSON_ArrayForEach(spec, get(one, "routes")) make_way(world, spec);
        routes_count = world->count;
    }
    cJSON_ArrayForEach(spec, get(one, "resume")) if (get(spec, "follow_up") != NULL)
        make_way(world, get(spec, "follow_up"));
    for (i = 0; i < routes_count; i++)
        routes[i] = world->ways[i].route;
    if (world->dial == NULL && byway_dial_new_routes(world->engine, routes, (size_t)routes_count, &options, &callbacks, &world->dial, NULL) !=
        BYWAY_OK)
        abort();
    for (steps = 0; steps < 1000 && status == BYWAY_PENDING; steps++) {
        size_t count = due(world, now, set);
        int64_t left = -1;
        double next = -1;
        if (cancel_at >= 0 && cancel_at <= now)
            (void)byway_dial_cancel(world->dial);
        (void)give_answer(world, now);
        status = byway_dial_step_at(world->dial, (uint64_t)now, set, count, NULL);
        limit(world, 0);
        follow(world, now);
        if (status == BYWAY_PENDING && world->request != NULL && next_answer(world) >= 0 && next_answer(world) <= now)
            continue; /* the next answer of this moment */
        if (status == BYWAY_OK && byway_dial_take(world->dial, &connected, NULL) == BYWAY_OK) {
            result = "connected";
            close(connected.fd);
            byway_route_release(connected.route);
            if (resume != NULL) {
                int follow_up = get(resume, "follow_up") != NULL;
                now += number_of(resume, "after_ms", 0);
                (void)byway_dial_step_at(world->dial, (uint64_t)now, NULL, 0, NULL);
                (void)byway_dial_resume(world->dial, connected.attempt, BYWAY_RESUME_TLS,
                                        follow_up ? world->ways[routes_count].route : NULL, NULL);
                follow(world, now);
                resume = resume->next;
                status = BYWAY_PENDING;
                continue;
            }
            cJSON_AddItemToObject(got, "winner",
                                  cJSON_Duplicate(get(world->ways[world->way_of[connected.attempt]].spec, "id"), 1));
        }
        if (status != BYWAY_PENDING)
            break;
        for (i = 0; i < world->pending; i++)
            if (next < 0 || world->events[i].at < next)
                next = world->events[i].at;
        if (next >= 0 && next <= now)
            continue;
        if (next_answer(world) >= 0 && (next < 0 || next_answer(world) < next))
            next = next_answer(world);
        if (cancel_at > now && (next < 0 || cancel_at < next))
            next = cancel_at;
        (void)byway_dial_deadline_ms(world->dial, &left);
        {
            cJSON *asked = cJSON_CreateArray();
            cJSON_AddItemToArray(asked, cJSON_CreateNumber(now));
            cJSON_AddItemToArray(asked, left < 0 ? cJSON_CreateNull() : cJSON_CreateNumber(now + (double)left));
            cJSON_AddItemToArray(deadlines, asked);
        }
        if (next < 0 || (left >= 0 && now + (double)left < next))
            next = now + (double)left;
        now = next;
    }
    if (status == BYWAY_E_CANCELED)
        result = "canceled";
    else if (status == BYWAY_E_TIMEOUT)
        result = "timeout";
    else if (status != BYWAY_OK)
        result = "failed";
    cJSON_AddStringToObject(got, "result", result);
    cJSON_AddNumberToObject(got, "at_ms", now);
    read_waterfall(world, got);
    world->judge(world);
    cJSON_Delete(got);
    byway_dns_request_release(world->request);
    byway_dial_free(world->dial);
    byway_selector_free(world->selector);
    byway_address_release(world->host);
    byway_dns_release(world->dns);
    for (i = 0; i < world->count; i++) {
        byway_route_release(world->ways[i].route);
        close(world->ways[i].listener);
    }
    byway_engine_release(world->engine);
}

static void run_world(void *data)
{
    race(data);
}

static enum outcome run_with(const cJSON *one, void (*judged)(struct world *world), const cJSON *expect)
{
    struct world world;
    memset(&world, 0, sizeof world);
    world.one = one;
    world.expect = expect;
    world.judge = judged;
    world.outcome = PASS;
    getrlimit(RLIMIT_NOFILE, &world.limit);
    if (!in_own_network(run_world, &world))
        return skips("network namespaces are not allowed here");
    return world.outcome;
}

static enum outcome run_race(const cJSON *one)
{
    return run_with(one, judge, get(one, "expect"));
}

/* ---- time lines of the bug log: addresses that connect, fail or drop */

static int within(double value, const cJSON *range)
{
    return value >= cJSON_GetArrayItem(range, 0)->valuedouble && value <= cJSON_GetArrayItem(range, 1)->valuedouble;
}

static void judge_report(struct world *world)
{
    const cJSON *want, *start, *starts = get(world->got, "starts");
    const char *result = text_of(world->got, "result", "");
    size_t failures = 0;
    (void)byway_dial_failures(world->dial, NULL, sizeof(byway_dial_failure), 0, &failures);
    cJSON_ArrayForEach(want, world->expect)
    {
        const char *name = want->string;
        int holds = 0;
        if (strcmp(name, "winner") == 0)
            holds = cJSON_Compare(get(world->got, "winner"), want, 1);
        else if (strcmp(name, "at_ms") == 0)
            holds = within(number_of(world->got, "at_ms", -1), want);
        else if (strcmp(name, "attempts") == 0)
            holds = cJSON_GetArraySize(starts) == want->valueint;
        else if (strcmp(name, "errors") == 0)
            holds = (int)failures == want->valueint;
        else if (strcmp(name, "error") == 0)
            holds = strcmp(want->valuestring, strcmp(result, "timeout") == 0  ? "deadline"
                                              : strcmp(result, "failed") == 0 ? "all_failed"
                                                                              : result) == 0;
        else if (strcmp(name, "start_order") == 0) {
            cJSON *order = cJSON_CreateArray();
            cJSON_ArrayForEach(start, starts)
                cJSON_AddItemToArray(order, cJSON_Duplicate(cJSON_GetArrayItem(start, 0), 1));
            holds = cJSON_Compare(order, want, 1);
            cJSON_Delete(order);
        }
        if (!holds && world->outcome == PASS) {
            char *got = cJSON_PrintUnformatted(world->got);
            world->outcome = fails("%s: got %s", name, got);
            free(got);
        }
    }
}

/* The same world as connect.jsonl has: literals are answers of a resolver, family by family; other names are routes. */
static enum outcome run_report(const cJSON *one)
{
    const cJSON *input = get(one, "input"), *address;
    cJSON *made = cJSON_CreateObject(), *options = cJSON_AddObjectToObject(made, "options");
    cJSON *by_family[2], *routes = cJSON_AddArrayToObject(made, "routes");
    enum outcome outcome;
    int i;
    cJSON_AddNumberToObject(options, "attempt_delay_ms", number_of(input, "delay_ms", 250));
    cJSON_AddNumberToObject(options, "overall_timeout_ms", number_of(input, "deadline_ms", 0));
    if (strchr(text_of(cJSON_GetArrayItem(get(input, "addresses"), 0), "a", ""), ':') != NULL) {
        cJSON *dns = cJSON_AddArrayToObject(made, "dns");
        for (i = 0; i < 2; i++) {
            cJSON *answer = cJSON_CreateObject();
            cJSON_AddNumberToObject(answer, "at_ms", 0);
            cJSON_AddStringToObject(answer, "family", i == 0 ? "v6" : "v4");
            by_family[i] = cJSON_AddArrayToObject(answer, "routes");
            cJSON_AddItemToArray(dns, answer);
        }
    } else {
        by_family[0] = by_family[1] = routes;
    }
    cJSON_ArrayForEach(address, get(input, "addresses"))
    {
        cJSON *route = cJSON_CreateObject();
        const char *name = text_of(address, "a", "");
        const char *outcome_name = get(address, "connect_ms") != NULL ? "ok"
                                   : get(address, "fail_ms") != NULL  ? "refused"
                                                                      : "pending";
        cJSON_AddStringToObject(route, "id", name);
        cJSON_AddStringToObject(route, "outcome", outcome_name);
        cJSON_AddNumberToObject(route, "after_ms",
                                number_of(address, "connect_ms", number_of(address, "fail_ms", 0)));
        cJSON_AddItemToArray(by_family[strchr(name, ':') == NULL], route);
    }
    outcome = run_with(made, judge_report, get(one, "expect"));
    cJSON_Delete(made);
    return outcome;
}

const struct kind race_kinds[] = {
    {"connect", "race", run_race},
    {"bugs", "race", run_report},
    {NULL, NULL, NULL},
};
