/* Eight threads that select, report, change selectors, say that the network changed, listen, poll and in the end shut
 * the engine down while the others are in the middle. Only pthread create and join between them, so that a race
 * detector sees what byway itself synchronises. */
#include "tap.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

/* Longer than the suite lets a program run: a wait that nobody ends fails there, with the place where it stood. */
enum { THREADS = 8, FOR_EVER_MS = 3600000 };
static int rounds = 2000;

static byway_engine *engine;
static byway_address *shared_address;
static atomic_int lookups, selects, told, events, destroyed, wrong, shut;

static void on_destroy(void *user_data)
{
    (void)user_data;
    atomic_fetch_add(&destroyed, 1);
}

static byway_status lookup(void *user_data, byway_dns_request *request, const char *host, size_t len,
                           const byway_call *call)
{
    (void)user_data;
    (void)host;
    (void)len;
    (void)call;
    atomic_fetch_add(&lookups, 1);
    return byway_dns_request_add_text(request, "192.0.2.1 192.0.2.2 2001:db8::1", BYWAY_NUL, NULL);
}

static byway_status choose(void *user_data, byway_proxy_request *request, const char *uri, size_t len,
                           const byway_call *call)
{
    (void)user_data;
    (void)uri;
    (void)len;
    (void)call;
    atomic_fetch_add(&selects, 1);
    if (byway_proxy_request_add(request, BYWAY_PROXY_HTTP, "192.0.2.80", BYWAY_NUL, 8080, NULL) != BYWAY_OK)
        return BYWAY_E_HOST;
    return byway_proxy_request_add_direct(request);
}

static void failed(void *user_data, const char *uri, size_t len, const byway_route *route, int32_t failure,
                   int32_t os_errno, const byway_call *call)
{
    (void)user_data;
    (void)uri;
    (void)len;
    (void)route;
    (void)failure;
    (void)os_errno;
    (void)call;
    atomic_fetch_add(&told, 1);
}

static void event(void *user_data, const byway_event *what)
{
    (void)user_data;
    (void)what;
    atomic_fetch_add(&events, 1);
}

static byway_address *address(int number)
{
    byway_dns_callbacks dns_set = BYWAY_DNS_CALLBACKS_INIT;
    byway_proxy_selector_callbacks chooser_set = BYWAY_PROXY_SELECTOR_CALLBACKS_INIT;
    byway_address_options options = BYWAY_ADDRESS_OPTIONS_INIT;
    byway_dns *dns = NULL;
    byway_proxy_selector *chooser = NULL;
    byway_address *made = NULL;
    char host[32];
    snprintf(host, sizeof host, "host%d.example", number);
    dns_set.destroy = chooser_set.destroy = on_destroy;
    dns_set.lookup = lookup;
    chooser_set.select = choose;
    chooser_set.connect_failed = failed;
    (void)byway_dns_new(engine, &dns_set, &dns, NULL);
    (void)byway_proxy_selector_new(engine, &chooser_set, &chooser, NULL);
    options.host.data = host;
    options.host.len = BYWAY_NUL;
    options.port = 443;
    options.flags = BYWAY_ADDRESS_TLS;
    options.dns = dns;
    options.proxy_selector = chooser;
    (void)byway_address_new(engine, &options, &made, NULL);
    byway_dns_release(dns);
    byway_proxy_selector_release(chooser);
    return made;
}

/* What may come when somebody shuts the engine down meanwhile. */
static int fine(byway_status status)
{
    if (status == BYWAY_E_SHUTDOWN)
        atomic_store(&shut, 1);
    return status == BYWAY_OK || status == BYWAY_DONE || status == BYWAY_E_SHUTDOWN || status == BYWAY_E_CANCELED;
}

static void select_routes(byway_address *from, int report)
{
    byway_selector *selector = NULL;
    byway_selection *selection = NULL;
    const byway_route *route;
    byway_status status = byway_selector_new(engine, from, NULL, &selector, NULL);
    if (!fine(status))
        atomic_fetch_add(&wrong, 1);
    while (status == BYWAY_OK && (status = byway_selector_next(selector, 0, &selection, NULL)) == BYWAY_OK) {
        while (byway_selection_next(selection, &route, NULL) == BYWAY_OK) {
            byway_route *kept = byway_route_retain(route);
            byway_status said = report ? byway_engine_connect_failed(engine, kept, BYWAY_FAILURE_REFUSED,
                                                                     BYWAY_PHASE_TCP, 111, NULL)
                                       : byway_engine_connected(engine, kept);
            if (!fine(said))
                atomic_fetch_add(&wrong, 1);
            byway_route_release(kept);
        }
        byway_selection_free(selection);
        selection = NULL;
    }
    if (!fine(status))
        atomic_fetch_add(&wrong, 1);
    byway_selector_free(selector);
}

static void *work(void *number_as_pointer)
{
    const int number = (int)(intptr_t)number_as_pointer;
    int i;
    for (i = 0; i < rounds && !atomic_load(&shut); i++) {
        switch (number) {
        case 0:
        case 1:
            select_routes(shared_address, 0);
            break;
        case 2:
        case 3:
            select_routes(shared_address, 1);
            break;
        case 4: {
            byway_address *own = address(i % 7);
            if (own)
                select_routes(own, i % 2);
            byway_address_release(own);
            break;
        }
        case 5: {
            byway_listener_callbacks set = BYWAY_LISTENER_CALLBACKS_INIT;
            byway_listener *listener = NULL;
            set.destroy = on_destroy;
            set.on_event = event;
            (void)byway_engine_add_listener(engine, &set, &listener, NULL);
            byway_listener_remove(listener);
            byway_listener_release(listener);
            if (i % 16 == 0 && !fine(byway_engine_network_changed(engine, NULL)))
                atomic_fetch_add(&wrong, 1);
            break;
        }
        case 6: {
            byway_queue *queue = byway_engine_queue(engine);
            byway_completion records[8];
            size_t n;
            byway_status status = byway_queue_poll(queue, 0, records, sizeof records[0], 8, &n, NULL);
            if (!fine(status) && status != BYWAY_E_BUSY)
                atomic_fetch_add(&wrong, 1);
            (void)byway_queue_wakeup(queue);
            byway_queue_release(queue);
            break;
        }
        default: {
            byway_failed_route routes[4];
            size_t total;
            byway_text *text = NULL;
            (void)byway_engine_database_snapshot(engine, routes, sizeof routes[0], 4, &total);
            (void)byway_engine_database_export(engine, &text, NULL);
            byway_text_free(text);
            /* The end comes in the middle of the others' work, so not before it has begun. */
            while (i == rounds - 1 && !(atomic_load(&lookups) && atomic_load(&selects)))
                sched_yield();
            if (i == rounds - 1 && !fine(byway_engine_shutdown(engine, FOR_EVER_MS, NULL)))
                atomic_fetch_add(&wrong, 1);
            break;
        }
        }
    }
    return NULL;
}

static byway_selector *victim;
static atomic_int entered;

static byway_status slow_lookup(void *user_data, byway_dns_request *request, const char *host, size_t len,
                                const byway_call *call)
{
    (void)host;
    (void)len;
    (void)call;
    *(byway_dns_request **)user_data = byway_dns_request_retain(request);
    atomic_store(&entered, 1);
    return BYWAY_PENDING;
}

static void *next_in_thread(void *nothing)
{
    byway_selection *selection = NULL;
    byway_status status = byway_selector_next(victim, FOR_EVER_MS, &selection, NULL);
    (void)nothing;
    byway_selection_free(selection);
    return (void *)(intptr_t)status;
}

/* A call that waits is ended by `how` from another thread; a second call meanwhile is turned away. */
static void end_a_wait(const char *what, int how, byway_status expected)
{
    byway_dns_callbacks set = BYWAY_DNS_CALLBACKS_INIT;
    byway_address_options options = BYWAY_ADDRESS_OPTIONS_INIT;
    byway_dns *dns = NULL;
    byway_address *to = NULL;
    byway_dns_request *request = NULL;
    byway_selection *selection = NULL;
    pthread_t thread;
    void *result;
    NEED(byway_engine_new(NULL, &engine, NULL));
    atomic_store(&entered, 0);
    set.user_data = &request;
    set.lookup = slow_lookup;
    NEED(byway_dns_new(engine, &set, &dns, NULL));
    options.host.data = "slow.example";
    options.host.len = BYWAY_NUL;
    options.port = 443;
    options.dns = dns;
    NEED(byway_address_new(engine, &options, &to, NULL));
    NEED(byway_selector_new(engine, to, NULL, &victim, NULL));
    pthread_create(&thread, NULL, next_in_thread, NULL);
    while (!atomic_load(&entered))
        sched_yield();
    STATUS(byway_selector_next(victim, FOR_EVER_MS, &selection, NULL), BYWAY_E_BUSY, "a second call is turned away at once");
    if (how == 0)
        byway_selector_free(victim);
    else if (how == 1)
        (void)byway_selector_cancel(victim);
    else if (how == 2)
        (void)byway_engine_shutdown(engine, FOR_EVER_MS, NULL);
    else
        (void)byway_dns_request_add_text(request, "192.0.2.1", BYWAY_NUL, NULL), (void)byway_dns_request_finish(request);
    pthread_join(thread, &result);
    STATUS((byway_status)(intptr_t)result, expected, what);
    if (how != 0)
        byway_selector_free(victim);
    byway_dns_request_release(request);
    byway_address_release(to);
    byway_dns_release(dns);
    (void)byway_engine_shutdown(engine, FOR_EVER_MS, NULL);
    byway_engine_release(engine);
}

static atomic_int go_on;

static byway_status busy_lookup(void *user_data, byway_dns_request *request, const char *host, size_t len,
                                const byway_call *call)
{
    (void)user_data;
    (void)host;
    (void)len;
    (void)call;
    atomic_store(&entered, 1);
    while (!atomic_load(&go_on))
        sched_yield();
    return byway_dns_request_add_text(request, "192.0.2.1", BYWAY_NUL, NULL);
}

/* A shutdown while a callback runs says so, waits no longer than it may, and is whole once the callback is back. */
static void shut_down_beside_a_callback(void)
{
    byway_dns_callbacks set = BYWAY_DNS_CALLBACKS_INIT;
    byway_address_options options = BYWAY_ADDRESS_OPTIONS_INIT;
    byway_dns *dns = NULL;
    byway_address *to = NULL;
    pthread_t thread;
    void *result;
    const int before = atomic_load(&destroyed);
    NEED(byway_engine_new(NULL, &engine, NULL));
    atomic_store(&entered, 0);
    set.lookup = busy_lookup;
    set.destroy = on_destroy;
    NEED(byway_dns_new(engine, &set, &dns, NULL));
    options.host.data = "busy.example";
    options.host.len = BYWAY_NUL;
    options.port = 443;
    options.dns = dns;
    NEED(byway_address_new(engine, &options, &to, NULL));
    NEED(byway_selector_new(engine, to, NULL, &victim, NULL));
    pthread_create(&thread, NULL, next_in_thread, NULL);
    while (!atomic_load(&entered))
        sched_yield();
    STATUS(byway_engine_shutdown(engine, 0, NULL), BYWAY_PENDING, "a shutdown beside a running callback is pending");
    OK(atomic_load(&destroyed) == before, "and destroys nothing yet");
    atomic_store(&go_on, 1);
    STATUS(byway_engine_shutdown(engine, FOR_EVER_MS, NULL), BYWAY_OK, "called again it waits for the callback");
    OK(atomic_load(&destroyed) == before + 1, "and then destroys its set");
    pthread_join(thread, &result);
    byway_selector_free(victim);
    byway_address_release(to);
    byway_dns_release(dns);
    byway_engine_release(engine);
    OK(atomic_load(&destroyed) == before + 1, "once");
}

int main(void)
{
    pthread_t threads[THREADS];
    intptr_t i;
    int sets;
    if (getenv("BYWAY_TEST_SLOW"))
        rounds = 150;
    NEED(byway_engine_new(NULL, &engine, NULL));
    shared_address = address(1000);
    for (i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    OK(atomic_load(&wrong) == 0, "eight threads, no status that must not come (%d)", atomic_load(&wrong));
    OK(atomic_load(&lookups) > 0 && atomic_load(&selects) > 0, "they really selected");
    STATUS(byway_engine_shutdown(engine, FOR_EVER_MS, NULL), BYWAY_OK, "after the shutdown");
    sets = atomic_load(&destroyed);
    byway_address_release(shared_address);
    byway_engine_release(engine);
    OK(atomic_load(&destroyed) == sets, "no destroy runs after shutdown (%d did)", sets);
    end_a_wait("freed during a call: canceled", 0, BYWAY_E_CANCELED);
    end_a_wait("canceled during a call", 1, BYWAY_E_CANCELED);
    end_a_wait("shut down during a call", 2, BYWAY_E_SHUTDOWN);
    end_a_wait("answered during a call", 3, BYWAY_OK);
    shut_down_beside_a_callback();
    return tap_done();
}
