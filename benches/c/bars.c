/* Bars of the first half through the boundary: thread CPU time, median of 11 batches, as multiples of E, an empty call
 * into the library, measured in the same run.
 *
 * usage: bars [--instructions NAME COUNT]   the second form runs one subject COUNT times, for callgrind */
#include "byway.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCHES = 11 };

static byway_engine *engine, *empty_engine;
static byway_address *plain, *one_failed, *chosen;
static byway_route *missed, *hit;
static volatile uint64_t sink;

/* --- allocations: counted when linked with --wrap ------------------------------------------------------------------ */

#ifdef COUNT_ALLOCATIONS
static size_t allocations;
void *__real_malloc(size_t);
void *__real_calloc(size_t, size_t);
void *__real_realloc(void *, size_t);
int __real_posix_memalign(void **, size_t, size_t);
void *__wrap_malloc(size_t n) { allocations++; return __real_malloc(n); }
void *__wrap_calloc(size_t n, size_t m) { allocations++; return __real_calloc(n, m); }
void *__wrap_realloc(void *p, size_t n) { allocations++; return __real_realloc(p, n); }
int __wrap_posix_memalign(void **p, size_t a, size_t n) { allocations++; return __real_posix_memalign(p, a, n); }
#endif

/* --- the host's side ----------------------------------------------------------------------------------------------- */

static byway_ip four[4], sixteen[16];

static byway_status lookup(void *user_data, byway_dns_request *request, const char *host, size_t len,
                           const byway_call *call)
{
    (void)host;
    (void)len;
    (void)call;
    return byway_dns_request_add(request, user_data, user_data == (void *)four ? 4 : 16);
}

static byway_status choose(void *user_data, byway_proxy_request *request, const char *uri, size_t len,
                           const byway_call *call)
{
    (void)user_data;
    (void)uri;
    (void)len;
    (void)call;
    return byway_proxy_request_add_direct(request);
}

static void need(byway_status status, const char *what)
{
    if (status < 0) {
        fprintf(stderr, "%s: %s\n", what, byway_status_name(status));
        exit(2);
    }
}

static byway_address *address(byway_engine *of, const char *host, byway_ip *ips, int with_chooser)
{
    byway_dns_callbacks set = BYWAY_DNS_CALLBACKS_INIT;
    byway_proxy_selector_callbacks chooser_set = BYWAY_PROXY_SELECTOR_CALLBACKS_INIT;
    byway_address_options options = BYWAY_ADDRESS_OPTIONS_INIT;
    byway_dns *dns = NULL;
    byway_proxy_selector *chooser = NULL;
    byway_address *made = NULL;
    set.user_data = ips;
    set.lookup = lookup;
    chooser_set.select = choose;
    need(byway_dns_new(of, &set, &dns, NULL), "dns");
    if (with_chooser)
        need(byway_proxy_selector_new(of, &chooser_set, &chooser, NULL), "proxy selector");
    options.host.data = host;
    options.host.len = BYWAY_NUL;
    options.port = 443;
    options.flags = BYWAY_ADDRESS_TLS;
    options.dns = dns;
    options.proxy_selector = chooser;
    need(byway_address_new(of, &options, &made, NULL), "address");
    byway_dns_release(dns);
    byway_proxy_selector_release(chooser);
    return made;
}

static byway_route *route_to(byway_address *to, unsigned number)
{
    byway_route *made = NULL;
    byway_ip ip = { { 10, (unsigned char)(number >> 16), (unsigned char)(number >> 8), (unsigned char)number }, 0, 4,
                    { 0 } };
    need(byway_route_new(to, NULL, &ip, 443, &made, NULL), "route");
    return made;
}

static void set_up(void)
{
    int i;
    for (i = 0; i < 16; i++) {
        byway_ip ip = { { 192, 0, 2, (unsigned char)(i + 1) }, 0, 4, { 0 } };
        sixteen[i] = ip;
        if (i < 4)
            four[i] = ip;
    }
    need(byway_engine_new(NULL, &engine, NULL), "engine");
    need(byway_engine_new(NULL, &empty_engine, NULL), "engine");
    plain = address(empty_engine, "plain.example", four, 0);
    chosen = address(empty_engine, "chosen.example", four, 1);
    one_failed = address(engine, "failed.example", four, 0);
    {
        byway_route *failed = NULL;
        need(byway_route_new(one_failed, NULL, &four[0], 443, &failed, NULL), "route");
        need(byway_engine_connect_failed(engine, failed, BYWAY_FAILURE_REFUSED, BYWAY_PHASE_TCP, 111, NULL), "report");
        hit = failed;
        need(byway_route_new(one_failed, NULL, &four[1], 443, &missed, NULL), "route");
    }
}

/* --- subjects ------------------------------------------------------------------------------------------------------ */

static void empty_call(void)
{
    sink += byway_abi_version();
}

static void guarded_call(void)
{
    byway_queue_release(NULL);
}

static void selection(byway_engine *of, byway_address *to, size_t expected)
{
    byway_selector *selector = NULL;
    byway_selection *routes = NULL;
    byway_route_record records[16];
    size_t total = 0;
    need(byway_selector_new(of, to, NULL, &selector, NULL), "selector");
    need(byway_selector_next(selector, 0, &routes, NULL), "next");
    need(byway_selection_records(routes, records, sizeof records[0], 16, &total), "records");
    if (total != expected)
        need(BYWAY_E_STATE, "routes");
    byway_selection_free(routes);
    byway_selector_free(selector);
}

static void selection_of_four(void)
{
    selection(empty_engine, plain, 4);
}

/* The postponed one comes in a Selection of its own, at the end. */
static void selection_one_postponed(void)
{
    selection(engine, one_failed, 3);
}

static void plan_to(byway_engine *of, byway_address *to)
{
    byway_route_record records[16];
    size_t total = 0;
    need(byway_selector_plan(of, to, NULL, records, sizeof records[0], 16, &total, NULL), "plan");
    if (total != 4)
        need(BYWAY_E_STATE, "plan");
}

static void plan(void)
{
    plan_to(empty_engine, plain);
}

static void plan_chosen(void)
{
    plan_to(empty_engine, chosen);
}

static void selection_chosen(void)
{
    selection(empty_engine, chosen, 4);
}

static void postpone(byway_engine *of, byway_route *route, int expected)
{
    int32_t out = 7;
    (void)byway_engine_should_postpone(of, route, &out);
    if (out != expected)
        need(BYWAY_E_STATE, "should_postpone");
}

static void postpone_empty(void)
{
    postpone(empty_engine, missed, 0);
}

static void postpone_miss(void)
{
    postpone(engine, missed, 0);
}

static void postpone_hit(void)
{
    postpone(engine, hit, 1);
}

static const struct subject {
    const char *name;
    void (*run)(void);
    int rounds;
    double limit; /* in E; 0 = shown only */
} subjects[] = {
    { "empty_call", empty_call, 200000, 0 },
    { "guarded_empty_call", guarded_call, 200000, 1.2 },
    { "selection_4_routes", selection_of_four, 20000, 40 },
    { "selection_1_postponed", selection_one_postponed, 20000, 60 },
    { "selection_callback_proxy_selector", selection_chosen, 20000, 0 },
    { "plan_4_routes", plan, 20000, 15 },
    { "plan_callback_proxy_selector", plan_chosen, 20000, 0 },
    { "should_postpone_empty", postpone_empty, 200000, 2 },
    { "should_postpone_miss", postpone_miss, 200000, 4 },
    { "should_postpone_hit", postpone_hit, 200000, 12 },
};
enum { SUBJECTS = sizeof subjects / sizeof subjects[0] };

static double cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double batch(const struct subject *subject)
{
    int i;
    double began = cpu_ns();
    for (i = 0; i < subject->rounds; i++)
        subject->run();
    return (cpu_ns() - began) / subject->rounds;
}

static int by_value(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static double median(double *values)
{
    qsort(values, BATCHES, sizeof *values, by_value);
    return values[BATCHES / 2];
}

static void bar(const char *name, double value, double limit)
{
    printf("bar %s %.2f %.2f %s\n", name, value, limit, value <= limit ? "ok" : "short");
}

static void *misses(void *out)
{
    double values[BATCHES];
    struct subject miss = { "", postpone_miss, 2000000, 0 };
    int i;
    for (i = 0; i < BATCHES; i++)
        values[i] = batch(&miss);
    *(double *)out = median(values);
    return NULL;
}

/* CPU per miss with two reader threads, as a multiple of one. */
static double two_readers(void)
{
    double one, both[2];
    pthread_t threads[2];
    int i;
    (void)misses(&one);
    for (i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, misses, &both[i]);
    for (i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return (both[0] + both[1]) / 2 / one;
}

static void bounded_database(void)
{
    enum { REPORTS = 1000000 };
    byway_engine_statistics stats = BYWAY_ENGINE_STATISTICS_INIT;
    byway_engine *own = NULL;
    byway_address *to;
    unsigned i;
    double began = cpu_ns(), spent;
    need(byway_engine_new(NULL, &own, NULL), "engine");
    to = address(own, "many.example", four, 0);
    for (i = 0; i < REPORTS; i++) {
        byway_route *route = route_to(to, i);
        need(byway_engine_connect_failed(own, route, BYWAY_FAILURE_REFUSED, BYWAY_PHASE_TCP, 111, NULL), "report");
        byway_route_release(route);
    }
    spent = (cpu_ns() - began) / REPORTS;
    need(byway_engine_stats(own, &stats), "stats");
    printf("# %d failures reported, %.0f ns each, %lu remembered\n", REPORTS, spent,
           (unsigned long)stats.database_records);
    bar("database_at_1000000_failures", (double)stats.database_records, 4096);
    byway_address_release(to);
    need(byway_engine_shutdown(own, 0, NULL), "shutdown");
    byway_engine_release(own);
}

#ifdef COUNT_ALLOCATIONS
static void count_allocations(void)
{
    byway_address *wide = address(empty_engine, "wide.example", sixteen, 0);
    size_t before;
    int i;
    for (i = 0; i < 200; i++)
        selection(empty_engine, wide, 16);
    before = allocations;
    for (i = 0; i < 1000; i++)
        selection(empty_engine, wide, 16);
    bar("allocations_per_selector_16_routes", (double)(allocations - before) / 1000, 1);
    before = allocations;
    for (i = 0; i < 1000; i++)
        plan();
    bar("allocations_per_plan", (double)(allocations - before) / 1000, 0);
    before = allocations;
    for (i = 0; i < 1000; i++) {
        postpone_miss();
        postpone_hit();
    }
    bar("allocations_per_should_postpone", (double)(allocations - before) / 1000, 0);
    byway_address_release(wide);
}
#endif

int main(int argc, char **argv)
{
    double values[SUBJECTS][BATCHES], medians[SUBJECTS];
    int i, b;
    set_up();
    if (argc == 4 && !strcmp(argv[1], "--instructions")) {
        const int count = atoi(argv[3]);
        for (i = 0; i < SUBJECTS; i++)
            if (!strcmp(subjects[i].name, argv[2]))
                for (b = 0; b < count; b++)
                    subjects[i].run();
        return 0;
    }
#ifdef COUNT_ALLOCATIONS
    count_allocations();
    return 0;
#endif
    for (i = 0; i < SUBJECTS; i++)
        (void)batch(&subjects[i]);
    /* All subjects in turn, so that a change of the machine's pace meets all of them. */
    for (b = 0; b < BATCHES; b++)
        for (i = 0; i < SUBJECTS; i++)
            values[i][b] = batch(&subjects[i]);
    printf("%-36s %10s %10s %10s\n", "", "median ns", "min ns", "E");
    for (i = 0; i < SUBJECTS; i++) {
        medians[i] = median(values[i]);
        printf("%-36s %10.2f %10.2f %10.2f\n", subjects[i].name, medians[i], values[i][0], medians[i] / medians[0]);
    }
    for (i = 0; i < SUBJECTS; i++)
        if (subjects[i].limit > 0)
            bar(subjects[i].name, medians[i] / medians[0], subjects[i].limit);
    bar("selection_with_proxy_selector_to_without", medians[4] / medians[2], 2);
    bar("plan_with_proxy_selector_to_without", medians[6] / medians[5], 2);
    bar("should_postpone_miss_two_readers", two_readers(), 1.15);
    bounded_database();
    return 0;
}
