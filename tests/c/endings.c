/* After a shutdown that answered BYWAY_OK no destroy runs, whoever was in the middle of one: another shutdown, or a
 * thread that gave back the last reference to a set. One thread sits in a destroy until the others have asked. */
#include "tap.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static byway_engine *engine;
static atomic_int inside, go_on, destroyed;
static byway_status nested;

static byway_status quiet(void *user_data, byway_dns_request *request, const char *host, size_t len,
                          const byway_call *call)
{
    (void)user_data;
    (void)request;
    (void)host;
    (void)len;
    (void)call;
    return BYWAY_OK;
}

static void waits(void *user_data)
{
    (void)user_data;
    nested = byway_engine_shutdown(engine, 0, NULL);
    atomic_store(&inside, 1);
    while (!atomic_load(&go_on))
        sched_yield();
    atomic_fetch_add(&destroyed, 1);
}

static byway_dns *make(void)
{
    byway_dns_callbacks set = BYWAY_DNS_CALLBACKS_INIT;
    byway_dns *dns = NULL;
    set.lookup = quiet;
    set.destroy = waits;
    NEED(byway_dns_new(engine, &set, &dns, NULL));
    return dns;
}

static void *shut_down(void *result)
{
    *(byway_status *)result = byway_engine_shutdown(engine, 3600000, NULL);
    return NULL;
}

static void *give_back(void *dns)
{
    byway_dns_release(dns);
    return NULL;
}

static void begin(pthread_t *thread, void *(*body)(void *), void *argument)
{
    if (pthread_create(thread, NULL, body, argument))
        abort();
    while (!atomic_load(&inside))
        sched_yield();
}

static void round_of(const char *what, int by_release)
{
    byway_status elsewhere = BYWAY_OK, late = BYWAY_OK;
    pthread_t first, second;
    byway_dns *dns;
    atomic_store(&inside, 0);
    atomic_store(&go_on, 0);
    atomic_store(&destroyed, 0);
    NEED(byway_engine_new(NULL, &engine, NULL));
    dns = make();
    if (by_release)
        begin(&first, give_back, dns);
    else
        begin(&first, shut_down, &elsewhere);
    STATUS(byway_engine_shutdown(engine, 0, NULL), BYWAY_PENDING, what);
    if (pthread_create(&second, NULL, shut_down, &late))
        abort();
    atomic_store(&go_on, 1);
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    STATUS(nested, BYWAY_OK, "from inside the destroy itself shutdown has nothing to wait for");
    STATUS(late, BYWAY_OK, "a shutdown that waits ends when the destroy does");
    STATUS(elsewhere, BYWAY_OK, "the shutdown that ran it is done too");
    OK(atomic_load(&destroyed) == 1, "it ran once");
    if (!by_release)
        byway_dns_release(dns);
    byway_engine_release(engine);
    OK(atomic_load(&destroyed) == 1, "and not again");
}

int main(void)
{
    round_of("a destroy runs in another thread's shutdown", 0);
    round_of("a destroy runs in another thread's release", 1);
    return tap_done();
}
