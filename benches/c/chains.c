/* Bars of router chains through the C boundary: one line `bar NAME VALUE LIMIT ok|short` each. Times are processor
 * time of the thread, the median of 11 batches, in units of E: an empty call into the library in the same run.
 *
 *   cc -O2 -Iinclude benches/c/chains.c -Ltarget/release -lbyway -lpthread -o chains && ./chains
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "byway.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Every allocation of the process is seen here. */
void *__libc_malloc(size_t size);
static __thread long allocations;

void *malloc(size_t size)
{
    allocations++;
    return __libc_malloc(size);
}

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double E = 1;

/* Nanoseconds per round of `body`, into `result`. */
#define MEASURE(result, body) \
    do { \
        double times_[11]; \
        long batch_ = 1, i_; \
        for (;;) { \
            double start_ = now_ns(); \
            for (i_ = 0; i_ < batch_; i_++) { \
                body; \
            } \
            if (now_ns() - start_ > 4e6) \
                break; \
            batch_ *= 2; \
        } \
        for (int b_ = 0; b_ < 11; b_++) { \
            double start_ = now_ns(); \
            for (i_ = 0; i_ < batch_; i_++) { \
                body; \
            } \
            times_[b_] = (now_ns() - start_) / (double)batch_; \
        } \
        qsort(times_, 11, sizeof times_[0], by_value); \
        (result) = times_[5]; \
    } while (0)

static void bar(const char *name, double value, double limit)
{
    printf("bar %s %.2f %.2f %s\n", name, value, limit, value <= limit ? "ok" : "short");
}

/* A figure without a limit of its own. */
static void figure(const char *name, double nanoseconds)
{
    printf("    %-44s %9.2f ns %8.2f E\n", name, nanoseconds, nanoseconds / E);
}

#define NEED(call) \
    do { \
        byway_status status_ = (call); \
        if (status_ != BYWAY_OK) { \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, byway_status_name(status_)); \
            exit(1); \
        } \
    } while (0)

#define TEXT(s) (s), BYWAY_NUL

static byway_engine *engine;
static const char key[] = "HelloService::.condition-router";

static byway_invokers *providers(size_t count)
{
    byway_str *urls = calloc(count, sizeof *urls);
    uint64_t *tags = calloc(count, sizeof *tags);
    byway_invokers *list = NULL;
    size_t i;
    for (i = 0; i < count; i++) {
        char *url = malloc(160);
        snprintf(url, 160, "dubbo://10.%zu.%zu.%zu:%d/HelloService?remote.application=shop&region=%s&zone=z%zu", i >> 16,
                 i >> 8 & 255, i & 255, i % 2 ? 20881 : 20880, i % 3 ? "hangzhou" : "beijing", i % 8);
        urls[i].data = url;
        urls[i].len = BYWAY_NUL;
        tags[i] = i + 1;
    }
    NEED(byway_invokers_new(engine, urls, tags, count, 0, NULL, &list, NULL));
    for (i = 0; i < count; i++)
        free((char *)urls[i].data);
    free(urls);
    free(tags);
    return list;
}

/* `hello` goes to half of the providers; the other conditions are about other methods. */
static char *rule_of(size_t conditions)
{
    size_t room = 128 + conditions * 64, at, i;
    char *text = malloc(room);
    at = (size_t)snprintf(text, room, "configVersion: v3.0\nforce: true\nconditions:\n  - method=hello => address=*:20880\n");
    for (i = 1; i < conditions; i++)
        at += (size_t)snprintf(text + at, room - at, "  - method=other%zu => address=*:20881\n", i);
    return text;
}

struct bench {
    byway_chain *chain;
    byway_invokers *list;
    byway_session *session;
    byway_invocation *call;
};

static struct bench open_bench(size_t count, size_t conditions)
{
    struct bench b;
    char *rule = rule_of(conditions);
    b.list = providers(count);
    NEED(byway_chain_new(engine, TEXT("consumer://10.9.8.7/HelloService?application=web"), NULL, &b.chain, NULL));
    NEED(byway_chain_set_invokers(b.chain, b.list, NULL, NULL));
    NEED(byway_engine_set_rule(engine, TEXT(key), TEXT(rule), NULL));
    NEED(byway_session_new(b.chain, &b.session, NULL));
    NEED(byway_invocation_new(&b.call, NULL));
    NEED(byway_invocation_set_method(b.call, TEXT("hello")));
    free(rule);
    return b;
}

static void close_bench(struct bench *b)
{
    byway_invocation_free(b->call);
    byway_session_free(b->session);
    byway_chain_release(b->chain);
    byway_invokers_release(b->list);
}

static const byway_str attachments[] = {
    { "trace", 5 }, { "value", 5 }, { "user", 4 }, { "value", 5 }, { "region", 6 }, { "value", 5 }, { "dubbo.tag", 9 },
    { "", 0 },
};

static void one_size(size_t count, size_t conditions)
{
    static const char *const keys[] = { "trace", "user", "region", "dubbo.tag" };
    struct bench b = open_bench(count, conditions);
    uint64_t *tags = calloc(count, sizeof *tags);
    const byway_choice *view = NULL;
    byway_choice *choice = NULL;
    byway_picked picked;
    char name[96];
    size_t total = 0, i;
    double t, own;
    long before;
    printf("-- %zu providers, %zu conditions\n", count, conditions);

    MEASURE(t, byway_session_route(b.session, b.call, &view, NULL));
    if (byway_choice_len(view) != (count + 1) / 2)
        exit(1);
    snprintf(name, sizeof name, "chain_view_%zu_providers_%zu_rules_E", count, conditions);
    bar(name, t / E, 4);
    before = allocations;
    for (i = 0; i < 1000; i++) {
        byway_invocation_set_method(b.call, "hello", 5);
        byway_session_route(b.session, b.call, &view, NULL);
    }
    snprintf(name, sizeof name, "chain_view_%zu_providers_allocations", count);
    bar(name, (double)(allocations - before), 0);
    MEASURE(t, (byway_invocation_set_method(b.call, "hello", 5), byway_session_route(b.session, b.call, &view, NULL)));
    figure("set_method and route", t);

    MEASURE(t, byway_chain_route_tags(b.chain, b.call, NULL, 0, &total, NULL, NULL));
    snprintf(name, sizeof name, "chain_without_session_%zu_providers_E", count);
    bar(name, t / E, 12);
    /* Both count only: copying costs the same. */
    MEASURE(own, byway_session_route_tags(b.session, b.call, NULL, 0, &total, NULL, NULL));
    snprintf(name, sizeof name, "chain_session_tags_%zu_providers_against_no_session", count);
    bar(name, own / t, 1);
    MEASURE(t, byway_chain_route_tags(b.chain, b.call, tags, count, &total, NULL, NULL));
    snprintf(name, sizeof name, "chain_route_tags_%zu_tags_ns", total);
    bar(name, t, 15 * E + 0.5 * (double)total);
    MEASURE(t, (byway_chain_route(b.chain, b.call, &choice, NULL), byway_choice_free(choice)));
    snprintf(name, sizeof name, "chain_choice_%zu_providers_E", count);
    bar(name, t / E, 12);
    MEASURE(t, byway_session_pick(b.session, b.call, NULL, &picked, NULL));
    figure("route and pick, session", t);
    MEASURE(t, byway_chain_pick(b.chain, b.call, NULL, &picked, NULL));
    figure("route and pick, no session", t);

    for (i = 0; i < 4; i++)
        NEED(byway_invocation_set_attachment(b.call, TEXT(keys[i]), TEXT(i == 3 ? "" : "value")));
    MEASURE(t, byway_session_route(b.session, b.call, &view, NULL));
    snprintf(name, sizeof name, "chain_view_%zu_providers_4_attachments_E", count);
    bar(name, t / E, 15);
    MEASURE(t, {
        byway_invocation_reset(b.call);
        byway_invocation_set_method(b.call, "hello", 5);
        byway_invocation_set_attachment(b.call, "trace", 5, "value", 5);
        byway_invocation_set_attachment(b.call, "user", 4, "value", 5);
        byway_invocation_set_attachment(b.call, "region", 6, "value", 5);
        byway_invocation_set_attachment(b.call, "dubbo.tag", 9, "", 0);
        byway_session_route(b.session, b.call, &view, NULL);
    });
    figure("reset, method, 4 attachments one by one and route", t);
    MEASURE(t, {
        byway_invocation_reset(b.call);
        byway_invocation_set_method(b.call, "hello", 5);
        byway_invocation_set_attachments(b.call, attachments, 8);
        byway_session_route(b.session, b.call, &view, NULL);
    });
    snprintf(name, sizeof name, "chain_view_%zu_providers_4_attachments_set_anew_E", count);
    bar(name, t / E, 15);
    free(tags);
    close_bench(&b);
}

static byway_chain *shared;
static atomic_int stop, ready;

/* Nanoseconds of the thread's own processor time per call. */
static void *caller(void *result)
{
    byway_session *session = NULL;
    byway_invocation *call = NULL;
    const byway_choice *view = NULL;
    NEED(byway_session_new(shared, &session, NULL));
    NEED(byway_invocation_new(&call, NULL));
    NEED(byway_invocation_set_method(call, TEXT("hello")));
    ready++;
    while (ready < 2)
        ;
    MEASURE(*(double *)result, byway_session_route(session, call, &view, NULL));
    byway_session_free(session);
    byway_invocation_free(call);
    return NULL;
}

static void *writer(void *lists)
{
    int turn = 0;
    while (!stop) {
        NEED(byway_chain_set_invokers(shared, ((byway_invokers **)lists)[turn++ & 1], NULL, NULL));
        usleep(1000);
    }
    return NULL;
}

static double with_threads(int callers, void *(*beside)(void *), void *argument)
{
    pthread_t threads[2], other;
    double times[2] = { 0, 0 };
    int i;
    ready = 2 - callers;
    stop = 0;
    if (beside != NULL && pthread_create(&other, NULL, beside, argument))
        exit(1);
    for (i = 0; i < callers; i++)
        if (pthread_create(&threads[i], NULL, caller, &times[i]))
            exit(1);
    for (i = 0; i < callers; i++)
        pthread_join(threads[i], NULL);
    stop = 1;
    if (beside != NULL)
        pthread_join(other, NULL);
    return callers == 2 ? (times[0] + times[1]) / 2 : times[0];
}

static void threads(void)
{
    struct bench b = open_bench(1000, 10);
    byway_invokers *lists[2];
    double one, two, written;
    lists[0] = b.list;
    lists[1] = providers(1000);
    shared = b.chain;
    one = with_threads(1, NULL, NULL);
    two = with_threads(2, NULL, NULL);
    written = with_threads(1, writer, lists);
    printf("-- threads\n");
    figure("one thread", one);
    figure("two threads, each", two);
    figure("one thread and a writer, 1 000 lists a second", written);
    bar("chain_two_threads_ratio", two / one, 1.15);
    bar("chain_with_writer_ratio", written / one, 1.4);
    byway_invokers_release(lists[1]);
    close_bench(&b);
}

static const byway_choice *view;
static byway_choice *choice;
static byway_picked picked;

static void view_once(struct bench *b)
{
    byway_session_route(b->session, b->call, &view, NULL);
}

static void tags_once(struct bench *b)
{
    size_t total;
    byway_chain_route_tags(b->chain, b->call, NULL, 0, &total, NULL, NULL);
}

static void session_tags_once(struct bench *b)
{
    size_t total;
    byway_session_route_tags(b->session, b->call, NULL, 0, &total, NULL, NULL);
}

static void choice_once(struct bench *b)
{
    byway_chain_route(b->chain, b->call, &choice, NULL);
    byway_choice_free(choice);
}

static void method_once(struct bench *b)
{
    byway_invocation_set_method(b->call, "hello", 5);
    byway_session_route(b->session, b->call, &view, NULL);
}

static void attachments_once(struct bench *b)
{
    byway_invocation_reset(b->call);
    byway_invocation_set_method(b->call, "hello", 5);
    byway_invocation_set_attachment(b->call, "trace", 5, "value", 5);
    byway_invocation_set_attachment(b->call, "user", 4, "value", 5);
    byway_invocation_set_attachment(b->call, "region", 6, "value", 5);
    byway_invocation_set_attachment(b->call, "dubbo.tag", 9, "", 0);
    byway_session_route(b->session, b->call, &view, NULL);
}

static void attachments_at_once(struct bench *b)
{
    byway_invocation_reset(b->call);
    byway_invocation_set_method(b->call, "hello", 5);
    byway_invocation_set_attachments(b->call, attachments, 8);
    byway_session_route(b->session, b->call, &view, NULL);
}

static void pick_once(struct bench *b)
{
    byway_session_pick(b->session, b->call, NULL, &picked, NULL);
}

static const struct {
    const char *name;
    void (*once)(struct bench *);
} counted[] = {
    { "chain_view", view_once },
    { "chain_view_method_set", method_once },
    { "chain_view_4_attachments_set", attachments_once },
    { "chain_view_4_attachments_at_once", attachments_at_once },
    { "chain_session_tags", session_tags_once },
    { "chain_without_session", tags_once },
    { "chain_choice", choice_once },
    { "chain_session_pick", pick_once },
};

/* Rounds of one path and nothing else, to be counted: `--instructions NAME ROUNDS`. */
static int rounds(const char *name, long count)
{
    struct bench b = open_bench(1000, 1);
    size_t i;
    for (i = 0; i < sizeof counted / sizeof counted[0]; i++)
        if (!strcmp(counted[i].name, name))
            for (; count > 0; count--)
                counted[i].once(&b);
    close_bench(&b);
    return 0;
}

int main(int argc, char **argv)
{
    NEED(byway_engine_new(NULL, &engine, NULL));
    if (argc == 4 && !strcmp(argv[1], "--instructions"))
        return rounds(argv[2], atol(argv[3]));
    MEASURE(E, byway_abi_version());
    printf("E = %.2f ns, an empty call into the library\n", E);
    one_size(10, 1);
    one_size(10000, 1);
    one_size(1000, 1000);
    threads();
    byway_engine_shutdown(engine, 1000, NULL);
    byway_engine_release(engine);
    return 0;
}
