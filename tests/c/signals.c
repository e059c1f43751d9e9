/* A signal handler cancels what the thread it interrupts is doing: waiting, driving a dial, or making and freeing things. */
#include "tap.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>

static byway_engine *engine;
static byway_dns *dns;
static byway_dns_request *kept;
/* What the handler cancels; only the thread it interrupts changes it. */
static byway_selector *volatile current;
static int over;
static volatile sig_atomic_t handled;

static byway_status silent(void *user_data, byway_dns_request *request, const char *host, size_t len,
                           const byway_call *call)
{
    (void)user_data, (void)host, (void)len, (void)call;
    kept = byway_dns_request_retain(request);
    return BYWAY_PENDING;
}

static void on_signal(int number)
{
    (void)number;
    handled++;
    if (current)
        byway_selector_cancel(current);
}

/* Signals the thread again and again, each time at another moment. */
static void *ping(void *thread)
{
    unsigned state = 2026;
    while (!__atomic_load_n(&over, __ATOMIC_SEQ_CST)) {
        unsigned spin;
        state = state * 1103515245u + 12345u;
        for (spin = (state >> 16) % 20000; spin; spin--)
            __asm__ __volatile__("" ::: "memory");
        pthread_kill(*(pthread_t *)thread, SIGUSR1);
        sched_yield();
    }
    return NULL;
}

static byway_selector *selector_new(void)
{
    byway_address_options options = BYWAY_ADDRESS_OPTIONS_INIT;
    byway_address *address = NULL;
    byway_selector *made = NULL;
    options.host.data = "a.example";
    options.host.len = BYWAY_NUL;
    options.port = 443;
    options.dns = dns;
    NEED(byway_address_new(engine, &options, &address, NULL));
    NEED(byway_selector_new(engine, address, NULL, &made, NULL));
    byway_address_release(address);
    return made;
}

static byway_status waits(byway_selector *selector)
{
    byway_selection *selection = NULL;
    return byway_selector_next(selector, 600000, &selection, NULL);
}

/* Polls, and makes and frees as much as it can between. */
static byway_status polls(byway_selector *selector)
{
    byway_selection *selection = NULL;
    byway_status status;
    do {
        byway_completion records[4];
        byway_queue *queue = byway_engine_queue(engine);
        byway_text *text = NULL;
        size_t n = 0;
        status = byway_selector_poll_next(selector, &selection, NULL);
        if (byway_selector_explain(selector, BYWAY_FORMAT_JSON, &text, NULL) == BYWAY_OK)
            byway_text_free(text);
        NEED(byway_queue_poll(queue, 0, records, sizeof records[0], 4, &n, NULL));
        byway_queue_release(queue);
    } while (status == BYWAY_PENDING);
    return status;
}

static byway_status dials(byway_selector *selector)
{
    byway_dial *dial = NULL;
    byway_connected connected;
    byway_status status = byway_dial_new(engine, selector, NULL, NULL, &dial, NULL);
    memset(&connected, 0, sizeof connected);
    if (status == BYWAY_OK)
        status = byway_dial_run(dial, 600000, &connected, NULL);
    byway_dial_free(dial);
    return status;
}

int main(void)
{
    static const struct {
        const char *what;
        byway_status (*run)(byway_selector *);
    } ways[] = { { "a wait", waits }, { "polls, texts and queues", polls }, { "a dial", dials } };
    byway_dns_callbacks callbacks = BYWAY_DNS_CALLBACKS_INIT;
    pthread_t self = pthread_self(), thread;
    struct sigaction action;
    size_t i, round, rounds = getenv("BYWAY_TEST_SLOW") ? 20 : 300;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, NULL);
    NEED(byway_engine_new(NULL, &engine, NULL));
    callbacks.lookup = silent;
    NEED(byway_dns_new(engine, &callbacks, &dns, NULL));
    for (i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        size_t canceled = 0;
        __atomic_store_n(&over, 0, __ATOMIC_SEQ_CST);
        pthread_create(&thread, NULL, ping, &self);
        for (round = 0; round < rounds; round++) {
            byway_selector *selector = selector_new();
            byway_status status;
            current = selector;
            status = ways[i].run(selector);
            current = NULL;
            canceled += status == BYWAY_E_CANCELED;
            byway_selector_free(selector);
            byway_dns_request_release(kept);
            kept = NULL;
        }
        __atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
        pthread_join(thread, NULL);
        OK(canceled == rounds, "%s ends by a handler on its own thread, %d of %d times", ways[i].what, (int)canceled,
           (int)rounds);
    }
    OK(handled > 0, "signals came");
    byway_dns_release(dns);
    NEED(byway_engine_shutdown(engine, 60000, NULL));
    byway_engine_release(engine);
    return tap_done();
}
