/* okhttp.jsonl race: upstream's own time lines through a dial of an engine that behaves as upstream's connector. A plan is
 * a route; what its lines say is read from the dial's events, on a clock of the test's own. */
#include "races.h"
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST = 16, LINES = 128 };

struct plan {
    const cJSON *spec;
    byway_route *route; /* NULL for one that another plan's route is tried again as */
    int listener;
};

struct attempt {
    int way, plan; /* by whose route, and as which plan */
    int fd, sockets, canceled, won;
    double ends; /* when its connect comes to an end; -1 = not under way */
};

struct line {
    double at;
    int order;
    char text[48];
};

struct world {
    const cJSON *one;
    struct plan plans[MOST];
    int count;
    int current[MOST]; /* by route: the plan it is tried as */
    struct attempt attempts[4 * MOST];
    int attempt_count;
    int opened[4 * MOST], opened_first, opened_last; /* routes in the order in which sockets were opened */
    struct line lines[LINES];
    int line_count;
    byway_engine *engine;
    byway_dial *dial;
    struct rlimit limit;
    double now;
    int won; /* attempt, 0 = none */
    enum outcome outcome;
};

static double delay_of(const struct plan *plan)
{
    return number_of(plan->spec, "tcp_delay_ms", 0);
}

static int from_planner(const struct plan *plan)
{
    const cJSON *given = get(plan->spec, "from_planner");
    return given == NULL || cJSON_IsTrue(given);
}

static int plan_named(const struct world *world, const cJSON *id)
{
    int i;
    for (i = 0; i < world->count; i++)
        if (cJSON_Compare(get(world->plans[i].spec, "id"), id, 1))
            return i;
    return -1;
}

/* The plan's error of a connect, of TLS or of planning. */
static const char *error_of(const struct plan *plan)
{
    const char *error = text_of(plan->spec, "tcp_error", NULL);
    if (error == NULL)
        error = text_of(plan->spec, "planning_error", text_of(plan->spec, "tls_error", "?"));
    return strncmp(error, "crash:", 6) == 0 ? error + 6 : error;
}

static int crashes(const struct plan *plan)
{
    return strncmp(text_of(plan->spec, "tcp_error", ""), "crash:", 6) == 0;
}

static void say_at(struct world *world, double at, int plan, const char *what)
{
    struct line *line = &world->lines[world->line_count];
    if (world->line_count == LINES)
        abort();
    line->at = at;
    line->order = world->line_count++;
    snprintf(line->text, sizeof line->text, what, (int)number_of(world->plans[plan].spec, "id", -1));
}

static void say(struct world *world, int plan, const char *what)
{
    say_at(world, world->now, plan, what);
}

/* A route that connects, at once or when told so, or is refused; for a plan whose connect ends in another plan a proxy
 * that wants credentials on a new connection. */
static void make_route(struct world *world, struct plan *plan)
{
    byway_address_options where = BYWAY_ADDRESS_OPTIONS_INIT;
    byway_address *address = NULL;
    byway_proxy *proxy = NULL;
    byway_ip hop;
    int at_once = flag_of(plan->spec, "already_connected"), port;
    const char *ip = at_once ? "127.0.0.1" : own_text(4, 1);
    plan->listener = listener_at(ip, 0, get(plan->spec, "tcp_error") == NULL, &port);
    where.host.data = "192.0.2.99";
    where.host.len = BYWAY_NUL;
    where.port = 443;
    where.flags = BYWAY_ADDRESS_TLS;
    memset(&hop, 0, sizeof hop);
    hop = own_ip(4, 1);
    if (at_once)
        memcpy(hop.bytes, "\177\0\0\1", 4);
    if (get(plan->spec, "tcp_next") != NULL &&
        byway_proxy_new(BYWAY_PROXY_HTTP, ip, BYWAY_NUL, port, &proxy, NULL) != BYWAY_OK)
        abort();
    if (byway_address_new(world->engine, &where, &address, NULL) != BYWAY_OK ||
        byway_route_new(address, proxy, &hop, port, &plan->route, NULL) != BYWAY_OK)
        abort();
    byway_proxy_release(proxy);
    byway_address_release(address);
}

static void limit(struct world *world, int on)
{
    struct rlimit low = world->limit;
    low.rlim_cur = on ? 3 : world->limit.rlim_cur;
    setrlimit(RLIMIT_NOFILE, &low);
}

/* Planning fails here. What upstream does not expect, a crash, is here that the system has nothing more to give. */
static byway_status opening(void *data, int32_t family, int32_t protocol, const byway_route *route, int32_t *fd,
                            const byway_call *call)
{
    struct world *world = data;
    const struct plan *plan;
    int way = 0;
    (void)family;
    (void)protocol;
    (void)fd;
    (void)call;
    while (world->plans[way].route == NULL || !same_hop(world->plans[way].route, route))
        if (++way == world->count)
            abort();
    world->opened[world->opened_last++ % (4 * MOST)] = way;
    plan = &world->plans[world->current[way]];
    limit(world, crashes(plan));
    return get(plan->spec, "planning_error") != NULL ? BYWAY_E_HOST : BYWAY_PASS;
}

static byway_status credentials(void *data, byway_dial *dial, uint32_t attempt, const byway_route *route,
                                const byway_str *challenges, size_t count, const byway_call *call)
{
    (void)data;
    (void)route;
    (void)challenges;
    (void)count;
    (void)call;
    return byway_dial_authenticate(dial, attempt, "Basic dTpw", BYWAY_NUL);
}

static void started(struct world *world, struct attempt *attempt, int fd)
{
    const struct plan *plan;
    attempt->way = world->opened[world->opened_first++ % (4 * MOST)];
    attempt->plan = world->current[attempt->way];
    attempt->fd = fd;
    attempt->ends = -1;
    plan = &world->plans[attempt->plan];
    if (attempt->sockets++ > 0) { /* the same attempt over a new connection: what upstream calls the next plan */
        attempt->plan = plan_named(world, get(plan->spec, "tcp_next"));
        plan = &world->plans[attempt->plan];
    } else if (from_planner(plan)) {
        say(world, attempt->plan, "take plan %d");
    }
    if (get(plan->spec, "planning_error") != NULL || flag_of(plan->spec, "already_connected"))
        return;
    say(world, attempt->plan, "plan %d TCP connecting...");
    if (!crashes(plan))
        attempt->ends = world->now + delay_of(plan);
}

static void failed(struct world *world, struct attempt *attempt)
{
    const cJSON *spec = world->plans[attempt->plan].spec;
    attempt->ends = -1;
    if (!attempt->won) {
        if (get(spec, "planning_error") == NULL)
            say(world, attempt->plan, "plan %d TCP connect failed");
    } else if (get(spec, "tls_error") != NULL) { /* the host has said so with byway_dial_resume */
        say(world, attempt->plan, "plan %d TLS connect failed");
    } else if (get(spec, "tls_next") != NULL) {
        say(world, attempt->plan, "plan %d needs follow-up");
    }
}

/* Reads what happened in a step. */
static void follow(struct world *world)
{
    byway_dial_event event;
    int connected = 0;
    for (; byway_dial_next_event(world->dial, &event) == BYWAY_OK;) {
        struct attempt *attempt = &world->attempts[event.attempt];
        if ((int)event.attempt >= world->attempt_count)
            world->attempt_count = (int)event.attempt + 1;
        if ((double)event.at_ms != world->now && world->outcome == PASS)
            world->outcome = fails("an event of %lld at %g", (long long)event.at_ms, world->now);
        switch (event.kind) {
        case BYWAY_DIAL_EVENT_START:
            started(world, attempt, event.fd);
            break;
        case BYWAY_DIAL_EVENT_FD_CLOSING:
            if (get(world->plans[attempt->plan].spec, "tcp_next") != NULL)
                say(world, attempt->plan, "plan %d needs follow-up");
            break;
        case BYWAY_DIAL_EVENT_FAILED:
            failed(world, attempt);
            break;
        case BYWAY_DIAL_EVENT_CANCELED: {
            const struct plan *plan = &world->plans[attempt->plan];
            const cJSON *retry = get(plan->spec, "retry");
            int k;
            /* Others are cancelled because one has connected: upstream says that first. */
            for (k = 1; k < world->attempt_count && !connected; k++) {
                const struct attempt *other = &world->attempts[k];
                if (k != (int)event.attempt && !other->canceled && other->ends == world->now &&
                    !flag_of(world->plans[other->plan].spec, "yields")) {
                    say(world, other->plan, "plan %d TCP connected");
                    connected = k;
                }
            }
            say(world, attempt->plan, "plan %d cancel");
            attempt->canceled = 1;
            /* Upstream's socket ends its connect when it would have ended; here it was closed at once. */
            say_at(world, attempt->ends > world->now ? attempt->ends : world->now, attempt->plan,
                   "plan %d TCP connect canceled");
            attempt->ends = -1;
            if (retry != NULL)
                world->current[attempt->way] = plan_named(world, retry);
            break;
        }
        case BYWAY_DIAL_EVENT_WON:
            world->won = (int)event.attempt;
            attempt->won = 1;
            if (!flag_of(world->plans[attempt->plan].spec, "already_connected")) {
                if (connected != (int)event.attempt)
                    say(world, attempt->plan, "plan %d TCP connected");
                say(world, attempt->plan, "plan %d TLS connecting...");
            }
            attempt->ends = -1;
            break;
        default:
            break;
        }
    }
}

/* The proxy's side of one connection: it closes the first, and opens the tunnel on the second. */
static void proxy_answers(const struct plan *plan, int again)
{
    static const char *const answers[] = {
        "HTTP/1.1 407 no\r\nProxy-Authenticate: Basic realm=\"p\"\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\n"};
    char head[2048];
    int fd = accept(plan->listener, NULL, NULL);
    if (read(fd, head, sizeof head) <= 0 || write(fd, answers[again], strlen(answers[again])) < 0)
        abort();
    shutdown(fd, SHUT_WR);
    close(fd);
}

/* One step in which the connects that are due are told to the dial. */
static byway_status step(struct world *world, int with_yielding, size_t *told)
{
    byway_pollfd set[4 * MOST];
    byway_status status;
    int k;
    *told = 0;
    for (k = 1; k < world->attempt_count; k++) {
        const struct attempt *attempt = &world->attempts[k];
        if (attempt->ends < 0 || attempt->ends > world->now ||
            (!with_yielding && flag_of(world->plans[attempt->plan].spec, "yields")))
            continue;
        set[*told].id = (uint32_t)k;
        set[*told].fd = attempt->fd;
        set[*told].events = set[*told].revents = POLLOUT;
        ++*told;
    }
    status = byway_dial_step_at(world->dial, (uint64_t)world->now, set, *told, NULL);
    limit(world, 0);
    follow(world);
    for (k = 1; k < world->attempt_count && status == BYWAY_PENDING; k++) {
        struct attempt *attempt = &world->attempts[k];
        const struct plan *by = &world->plans[attempt->way];
        if (*told == 0 || get(by->spec, "tcp_next") == NULL || attempt->ends != world->now)
            continue;
        /* Connected, and the request is written: the answer. */
        attempt->ends = -1;
        proxy_answers(by, attempt->sockets > 1);
        set[0].id = (uint32_t)k;
        set[0].fd = attempt->fd;
        set[0].events = set[0].revents = POLLIN;
        status = byway_dial_step_at(world->dial, (uint64_t)world->now, set, 1, NULL);
        follow(world);
    }
    return status;
}

/* Steps until nothing more happens at this moment; a connect that yields is told when all else is done. */
static byway_status settle(struct world *world)
{
    byway_status status = BYWAY_PENDING;
    size_t told = 1;
    int steps;
    for (steps = 0; steps < 100 && world->won == 0 && status == BYWAY_PENDING && told > 0; steps++) {
        status = step(world, 0, &told);
        if (status == BYWAY_PENDING && told == 0)
            status = step(world, 1, &told);
    }
    return status;
}

static void end_find(cJSON *results, const char *name, cJSON *value)
{
    cJSON *result = cJSON_CreateObject();
    cJSON_AddItemToObject(result, name, value);
    cJSON_AddItemToArray(results, result);
}

/* What upstream throws: the first failure, the others suppressed. */
static void end_failed(struct world *world, cJSON *results)
{
    byway_dial_failure failures[MOST];
    cJSON *result = cJSON_CreateObject(), *suppressed = cJSON_CreateArray();
    size_t total = 0, i;
    int unchecked = 0;
    (void)byway_dial_failures(world->dial, failures, sizeof failures[0], MOST, &total);
    for (i = 0; i < total; i++) {
        const struct plan *plan = &world->plans[world->attempts[failures[i].attempt].plan];
        if (i == 0)
            cJSON_AddStringToObject(result, "error", error_of(plan));
        else
            cJSON_AddItemToArray(suppressed, cJSON_CreateString(error_of(plan)));
        unchecked |= strcmp(failures[i].name.data, "FD_LIMIT") == 0;
    }
    cJSON_AddItemToObject(result, "suppressed", suppressed);
    cJSON_AddBoolToObject(result, "unchecked", unchecked);
    cJSON_AddItemToArray(results, result);
}

static int by_time(const void *a, const void *b)
{
    const struct line *left = a, *right = b;
    if (left->at != right->at)
        return left->at < right->at ? -1 : 1;
    return left->order - right->order;
}

static cJSON *timeline(struct world *world)
{
    cJSON *all = cJSON_CreateArray(), *moment = NULL;
    double last = -1;
    int i;
    qsort(world->lines, (size_t)world->line_count, sizeof world->lines[0], by_time);
    for (i = 0; i < world->line_count; i++) {
        const struct line *line = &world->lines[i];
        if (line->at != last) {
            moment = cJSON_CreateObject();
            cJSON_AddNumberToObject(moment, "at_ms", line->at);
            cJSON_AddArrayToObject(moment, "events");
            cJSON_AddItemToArray(all, moment);
            last = line->at;
        }
        cJSON_AddItemToArray(cJSON_GetObjectItem(moment, "events"), cJSON_CreateString(line->text));
    }
    return all;
}

/* The next moment at which something happens; -1 when nothing will. */
static double next_moment(struct world *world)
{
    int64_t left = -1;
    double next = -1;
    int k;
    (void)byway_dial_deadline_ms(world->dial, &left);
    if (left >= 0)
        next = world->now + (double)left;
    for (k = 1; k < world->attempt_count; k++)
        if (world->attempts[k].ends >= 0 && (next < 0 || world->attempts[k].ends < next))
            next = world->attempts[k].ends;
    return next;
}

/* TLS over the connection that won, and what comes of it; 1 when that was the last find. */
static int use(struct world *world, cJSON *results, int *finds)
{
    const struct attempt *attempt = &world->attempts[world->won];
    const struct plan *plan = &world->plans[attempt->plan];
    const cJSON *id = get(plan->spec, "id");
    int next = plan_named(world, get(plan->spec, "tls_next")), tls = !flag_of(plan->spec, "already_connected");
    const char *error = text_of(plan->spec, "tls_error", NULL);
    byway_connected connected;
    if (byway_dial_take(world->dial, &connected, NULL) != BYWAY_OK || (int)connected.attempt != world->won) {
        world->outcome = fails("what won cannot be taken");
        return 1;
    }
    close(connected.fd);
    byway_route_release(connected.route);
    world->now += tls ? number_of(plan->spec, "tls_delay_ms", 0) : 0;
    (void)byway_dial_step_at(world->dial, (uint64_t)world->now, NULL, 0, NULL);
    if (error == NULL && next < 0) {
        if (tls)
            say(world, attempt->plan, "plan %d TLS connected");
        end_find(results, "winner", cJSON_Duplicate(id, 1));
        if (--*finds == 0)
            return 1;
    }
    world->won = 0;
    if (byway_dial_resume(world->dial, connected.attempt, error != NULL ? BYWAY_RESUME_TLS : BYWAY_RESUME_CLOSED,
                          next >= 0 ? world->plans[next].route : NULL, NULL) != BYWAY_OK) {
        world->outcome = fails("no resume");
        return 1;
    }
    follow(world);
    return 0;
}

static void judge(struct world *world, cJSON *results)
{
    const cJSON *wanted = get(get(world->one, "expect"), "results"), *want;
    cJSON *got = results->child;
    enum outcome outcome;
    /* A result says what its case asks for. */
    cJSON_ArrayForEach(want, wanted)
    {
        cJSON *member = got != NULL ? got->child : NULL;
        while (member != NULL) {
            cJSON *next = member->next;
            if (get(want, member->string) == NULL)
                cJSON_Delete(cJSON_DetachItemViaPointer(got, member));
            member = next;
        }
        got = got != NULL ? got->next : NULL;
    }
    outcome = same_json(timeline(world), get(world->one, "timeline"), "timeline");
    if (outcome == PASS)
        outcome = same_json(results, wanted, "results");
    else
        cJSON_Delete(results);
    if (world->outcome == PASS)
        world->outcome = outcome;
}

static void race(void *data)
{
    struct world *world = data;
    byway_engine_options profile = BYWAY_ENGINE_OPTIONS_INIT;
    byway_dial_options options = BYWAY_DIAL_OPTIONS_INIT;
    byway_dial_callbacks callbacks = BYWAY_DIAL_CALLBACKS_INIT;
    const byway_route *routes[MOST];
    cJSON *results = cJSON_CreateArray();
    const cJSON *spec, *other;
    int finds = (int)number_of(world->one, "find_calls", 1), count = 0, i, steps;
    profile.compat = BYWAY_COMPAT_OKHTTP_5;
    options.flags = BYWAY_DIAL_EVENTS;
    options.attempt_delay_ms = (uint32_t)number_of(world->one, "delay_ms", 0);
    options.attempt_timeout_ms = BYWAY_DIAL_NONE;
    callbacks.user_data = world;
    callbacks.open_socket = opening;
    callbacks.proxy_auth = credentials;
    if (byway_engine_new(&profile, &world->engine, NULL) != BYWAY_OK)
        abort();
    cJSON_ArrayForEach(spec, get(world->one, "plans")) world->plans[world->count++].spec = spec;
    for (i = 0; i < world->count; i++) {
        int again = 0;
        cJSON_ArrayForEach(other, get(world->one, "plans")) again |=
            cJSON_Compare(get(other, "retry"), get(world->plans[i].spec, "id"), 1) ||
            cJSON_Compare(get(other, "tcp_next"), get(world->plans[i].spec, "id"), 1);
        world->current[i] = i;
        if (!again)
            make_route(world, &world->plans[i]);
        if (from_planner(&world->plans[i]))
            routes[count++] = world->plans[i].route;
    }
    if (byway_dial_new_routes(world->engine, routes, (size_t)count, &options, &callbacks, &world->dial, NULL) !=
        BYWAY_OK)
        abort();
    for (steps = 0; steps < 1000 && world->outcome == PASS; steps++) {
        byway_status status = settle(world);
        if (world->won != 0) {
            if (use(world, results, &finds))
                break;
            continue;
        }
        if (status != BYWAY_PENDING) {
            end_failed(world, results);
            break;
        }
        if (next_moment(world) > world->now)
            world->now = next_moment(world);
    }
    judge(world, results);
    byway_dial_free(world->dial);
    for (i = 0; i < world->count; i++) {
        byway_route_release(world->plans[i].route);
        if (world->plans[i].route != NULL)
            close(world->plans[i].listener);
    }
    byway_engine_release(world->engine);
}

static enum outcome run_upstream(const cJSON *one)
{
    struct world world;
    memset(&world, 0, sizeof world);
    world.one = one;
    world.outcome = PASS;
    getrlimit(RLIMIT_NOFILE, &world.limit);
    if (!in_own_network(race, &world))
        return skips("network namespaces are not allowed here");
    return world.outcome;
}

const struct kind race_upstream_kinds[] = {{"okhttp", "race", run_upstream}, {NULL, NULL, NULL}};
