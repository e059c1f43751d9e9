/* Bars of connection routing through the C boundary: one line `bar NAME VALUE LIMIT ok|short` each. Times are processor
 * time of the thread, the median of 11 batches, in units of E: an empty call into the library in the same run.
 *
 *   cc -O2 -Iinclude benches/c/routing.c -Ltarget/release -lbyway -lpthread -o routing && ./routing
 */
#define _GNU_SOURCE
#include "byway.h"
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

static double measure(void (*call)(void *), void *with)
{
    double times[11];
    long batch = 1;
    for (;;) {
        double start = now_ns();
        for (long i = 0; i < batch; i++) call(with);
        if (now_ns() - start > 4e6) break;
        batch *= 2;
    }
    for (int b = 0; b < 11; b++) {
        double start = now_ns();
        for (long i = 0; i < batch; i++) call(with);
        times[b] = (now_ns() - start) / (double)batch;
    }
    qsort(times, 11, sizeof times[0], by_value);
    return times[5];
}

static double E = 1;

static void bar(const char *name, double value, double limit)
{
    printf("bar %s %.2f %.2f %s\n", name, value, limit, value <= limit ? "ok" : "short");
}

struct world {
    byway_engine *engine;
    byway_dns *dns;
    byway_address *address;
    byway_route *route;
    byway_route *other;
};

static void check(byway_status status, const char *what)
{
    if (status < 0) {
        fprintf(stderr, "%s: %s\n", what, byway_status_name(status));
        exit(1);
    }
}

static byway_ip IPS[4];

static byway_status lookup(void *user_data, byway_dns_request *request, const char *host, size_t len,
                           const byway_call *call)
{
    (void)user_data, (void)host, (void)len, (void)call;
    return byway_dns_request_add(request, IPS, 4);
}

static byway_status choose(void *user_data, byway_proxy_request *request, const char *uri, size_t len,
                           const byway_call *call)
{
    (void)user_data, (void)uri, (void)len, (void)call;
    return byway_proxy_request_add_direct(request);
}

static void make(struct world *w, int with_selector)
{
    byway_dns_callbacks callbacks = BYWAY_DNS_CALLBACKS_INIT;
    byway_address_options options = BYWAY_ADDRESS_OPTIONS_INIT;
    byway_proxy_selector *selector = NULL;
    callbacks.lookup = lookup;
    check(byway_engine_new(NULL, &w->engine, NULL), "engine");
    check(byway_dns_new(w->engine, &callbacks, &w->dns, NULL), "dns");
    if (with_selector) {
        byway_proxy_selector_callbacks chooser = BYWAY_PROXY_SELECTOR_CALLBACKS_INIT;
        chooser.select = choose;
        check(byway_proxy_selector_new(w->engine, &chooser, &selector, NULL), "proxy selector");
    }
    options.host.data = "bench.example";
    options.host.len = BYWAY_NUL;
    options.port = 443;
    options.flags = BYWAY_ADDRESS_TLS;
    options.dns = w->dns;
    options.proxy_selector = selector;
    check(byway_address_new(w->engine, &options, &w->address, NULL), "address");
    check(byway_route_new(w->address, NULL, &IPS[0], 443, &w->route, NULL), "route");
    {
        byway_ip other = IPS[1];
        other.bytes[3] = 99;
        check(byway_route_new(w->address, NULL, &other, 443, &w->other, NULL), "route");
    }
}

static int expected_selections = 1;

static void selection(void *with)
{
    struct world *w = with;
    byway_selector *selector;
    byway_selection *given;
    byway_route_record records[16];
    size_t total, sum = 0;
    int selections = 0;
    check(byway_selector_new(w->engine, w->address, NULL, &selector, NULL), "new");
    while (selections < expected_selections) {
        check(byway_selector_next(selector, 5000, &given, NULL), "next");
        byway_selection_records(given, records, sizeof records[0], 16, &total);
        byway_selection_free(given);
        sum += total;
        selections++;
    }
    byway_selector_free(selector);
    if (sum != 4) abort();
}

static void plan(void *with)
{
    struct world *w = with;
    byway_route_record records[16];
    size_t total;
    check(byway_selector_plan(w->engine, w->address, NULL, records, sizeof records[0], 16, &total, NULL), "plan");
    if (total != 4) abort();
}

static void postpone_other(void *with)
{
    struct world *w = with;
    int32_t behind;
    byway_engine_should_postpone(w->engine, w->other, &behind);
    if (behind) abort();
}

static void postpone_hit(void *with)
{
    struct world *w = with;
    int32_t behind;
    byway_engine_should_postpone(w->engine, w->route, &behind);
    if (!behind) abort();
}

static void empty(void *with)
{
    (void)with;
    (void)byway_abi_version();
}

static void guarded(void *with)
{
    (void)with;
    (void)byway_call_tag(NULL);
}

struct reader { struct world *w; double ns; };

static void *read_misses(void *with)
{
    struct reader *r = with;
    r->ns = measure(postpone_other, r->w);
    return NULL;
}

int main(void)
{
    struct world plain, chosen;
    double ns, alone;
    for (int i = 0; i < 4; i++) {
        IPS[i].family = i < 2 ? 4 : 6;
        IPS[i].bytes[0] = i < 2 ? 192 : 0x20;
        IPS[i].bytes[1] = i < 2 ? 0 : 1;
        IPS[i].bytes[2] = 2;
        IPS[i].bytes[3] = (unsigned char)i;
    }
    make(&plain, 0);
    make(&chosen, 1);
    E = measure(empty, NULL);
    printf("E = %.2f ns\n", E);
    bar("guarded_call", measure(guarded, NULL) / E, 1.2);

    bar("should_postpone_empty", measure(postpone_other, &plain) / E, 2);
    ns = measure(selection, &plain);
    printf("selection %.1f ns\n", ns);
    bar("selection", ns / E, 40);
    bar("selection_callback_proxies", measure(selection, &chosen) / ns, 2);
    ns = measure(plan, &plain);
    printf("plan %.1f ns\n", ns);
    bar("plan", ns / E, 15);

    check(byway_engine_connect_failed(plain.engine, plain.route, BYWAY_FAILURE_REFUSED, BYWAY_PHASE_TCP, 111, NULL),
          "failed");
    alone = measure(postpone_other, &plain);
    bar("should_postpone_miss", alone / E, 4);
    bar("should_postpone_hit", measure(postpone_hit, &plain) / E, 12);
    {
        struct reader a = {&plain, 0}, b = {&plain, 0};
        pthread_t ta, tb;
        pthread_create(&ta, NULL, read_misses, &a);
        pthread_create(&tb, NULL, read_misses, &b);
        pthread_join(ta, NULL);
        pthread_join(tb, NULL);
        bar("miss_two_readers", (a.ns + b.ns) / 2 / alone, 1.15);
    }
    expected_selections = 2;
    ns = measure(selection, &plain);
    printf("selection, one postponed %.1f ns\n", ns);
    bar("selection_postponed", ns / E, 60);
    return 0;
}
