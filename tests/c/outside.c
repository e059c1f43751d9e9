/* Who hears of rules and sources, and where: the poller of the engine's queue, of the listener's own, or with
 * BYWAY_CALLBACKS_ANY_THREAD a thread of byway's, at once. */
#include "tap.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define TEXT(s) (s), BYWAY_NUL

static const char key[] = "Greeter::.condition-router";
static const char other_key[] = "Other::.condition-router";
static const char rule[] = "conditions: [ 'method=hello => address=*:20880' ]\n";

static byway_engine *engine;

static size_t poll_now(byway_queue *queue)
{
    size_t n = 9;
    NEED(byway_queue_poll(queue, 0, NULL, sizeof(byway_completion), 0, &n, NULL));
    return n;
}

/* ---- queues */

static int heard[2];
static byway_status last_status[2];

static void count(void *which, const byway_event *event)
{
    const int i = *(const int *)which;
    heard[i] += event->kind == BYWAY_EVENT_RULE;
    last_status[i] = event->status;
}

static byway_listener *listen_in(byway_queue *queue, int *which)
{
    byway_listener_callbacks set = BYWAY_LISTENER_CALLBACKS_INIT;
    byway_listener *made = NULL;
    set.user_data = which;
    set.on_event = count;
    set.mask = (uint64_t)1 << BYWAY_EVENT_RULE;
    set.queue = queue;
    NEED(byway_engine_add_listener(engine, &set, &made, NULL));
    return made;
}

static void queues(void)
{
    static int first = 0, second = 1;
    byway_queue_options small = BYWAY_QUEUE_OPTIONS_INIT;
    byway_queue *queue, *own = NULL;
    byway_listener *one, *two;
    byway_listener_callbacks set = BYWAY_LISTENER_CALLBACKS_INIT;
    byway_listener *none = NULL;
    NEED(byway_engine_new(NULL, &engine, NULL));
    queue = byway_engine_queue(engine);
    small.capacity = 1;
    NEED(byway_queue_new(&small, &own, NULL));
    set.on_event = count;
    set.queue = (byway_queue *)(void *)engine;
    STATUS(byway_engine_add_listener(engine, &set, &none, NULL), BYWAY_E_BAD_HANDLE, "an engine is no queue");
    one = listen_in(NULL, &first);
    two = listen_in(own, &second);

    NEED(byway_engine_set_rule(engine, TEXT(key), TEXT(rule), NULL));
    OK(heard[0] == 0 && heard[1] == 0, "nobody hears of a rule before a queue is polled");
    (void)poll_now(queue);
    OK(heard[0] == 1 && heard[1] == 0, "the engine's queue tells who named none");
    (void)poll_now(own);
    OK(heard[0] == 1 && heard[1] == 1, "a listener's own queue tells that one");

    NEED(byway_engine_set_rule(engine, TEXT(key), TEXT(rule), NULL));
    STATUS(byway_engine_set_rule(engine, TEXT(key), TEXT("conditions: [[["), NULL), BYWAY_E_SYNTAX, "a bad text");
    (void)poll_now(own);
    OK(heard[1] == 2 && last_status[1] == BYWAY_E_SYNTAX, "of two events of a key only the newest comes");
    OK(byway_queue_lost(own) == 0, "which is no loss");

    NEED(byway_engine_set_rule(engine, TEXT(key), TEXT(rule), NULL));
    NEED(byway_engine_set_rule(engine, TEXT(other_key), TEXT(rule), NULL));
    OK(byway_queue_lost(own) == 1, "a full queue counts what it loses");
    (void)poll_now(own);
    OK(heard[1] == 3, "and tells the rest");
    heard[0] = 0;
    (void)poll_now(queue);
    OK(heard[0] == 2 && byway_queue_lost(queue) == 0, "another queue loses nothing by it");

    NEED(byway_engine_remove_rule(engine, TEXT(key), NULL));
    byway_listener_release(two);
    (void)poll_now(own);
    OK(heard[1] == 3, "a listener that is gone hears nothing");
    NEED(byway_engine_shutdown(engine, 0, NULL));
    byway_listener_release(one);
    byway_queue_release(own);
    byway_queue_release(queue);
    byway_engine_release(engine);
}

/* ---- any thread */

static atomic_int told, followed, hold, destroyed_by;
static pthread_t teller;
static char name[32];
static byway_status reentrant;

static void on_rule(void *user_data, const byway_event *event)
{
    int held;
    (void)user_data;
    (void)event;
    teller = pthread_self();
    (void)pthread_getname_np(teller, name, sizeof name);
    /* Before it is known that this call has come: what is held from then on is the next one. */
    held = atomic_load(&hold);
    reentrant = byway_engine_shutdown(engine, 0, NULL);
    atomic_fetch_add(&told, 1);
    while (held && atomic_load(&hold))
        sched_yield();
}

static void on_destroy(void *user_data)
{
    (void)user_data;
    atomic_store(&destroyed_by, pthread_equal(pthread_self(), teller) ? 2 : 1);
}

static void on_source(void *user_data, const byway_source_event *event)
{
    (void)user_data;
    if (event->kind != BYWAY_SOURCE_EVENT_CHANGED)
        return;
    atomic_fetch_add(&followed, 1);
    while (atomic_load(&hold))
        sched_yield();
}

static void wait_for(atomic_int *place, int value)
{
    while (atomic_load(place) < value)
        sched_yield();
}

static void any_thread(void)
{
    byway_engine_options options = BYWAY_ENGINE_OPTIONS_INIT;
    byway_listener_callbacks set = BYWAY_LISTENER_CALLBACKS_INIT;
    byway_source_callbacks following = BYWAY_SOURCE_CALLBACKS_INIT;
    byway_listener *listener = NULL;
    byway_source *source = NULL;
    byway_chain *chain = NULL;
    byway_queue *queue;
    options.flags = BYWAY_CALLBACKS_ANY_THREAD;
    NEED(byway_engine_new(&options, &engine, NULL));
    queue = byway_engine_queue(engine);
    set.on_event = on_rule;
    set.mask = (uint64_t)1 << BYWAY_EVENT_RULE;
    NEED(byway_engine_add_listener(engine, &set, &listener, NULL));
    NEED(byway_engine_set_rule(engine, TEXT(key), TEXT(rule), NULL));
    wait_for(&told, 1);
    OK(!pthread_equal(teller, pthread_self()) && !strcmp(name, "byway-callbacks"),
       "an event comes at once, without a poll, on byway's own thread (%s)", name);
    STATUS(reentrant, BYWAY_E_REENTRANT, "from which the engine cannot be shut down");

    atomic_store(&hold, 1);
    NEED(byway_engine_set_rule(engine, TEXT(key), TEXT(rule), NULL));
    wait_for(&told, 2);
    NEED(byway_engine_set_rule(engine, TEXT(key), TEXT(rule), NULL));
    NEED(byway_engine_set_rule(engine, TEXT(key), TEXT(rule), NULL));
    STATUS(byway_engine_shutdown(NULL, 0, NULL), BYWAY_E_BAD_HANDLE, "calls go on while it is told");
    atomic_store(&hold, 0);
    wait_for(&told, 3);
    byway_listener_release(listener);

    atomic_store(&hold, 1);
    following.on_event = on_source;
    following.destroy = on_destroy;
    NEED(byway_source_new_memory(engine, &source, NULL));
    NEED(byway_chain_new(engine, TEXT("consumer://10.1.1.1/Greeter"), NULL, &chain, NULL));
    NEED(byway_chain_bind_source(chain, source, NULL, &following, 0, NULL));
    wait_for(&followed, 1);
    NEED(byway_chain_bind_source(chain, NULL, NULL, NULL, 0, NULL));
    OK(atomic_load(&destroyed_by) == 0, "a set is not destroyed while a call of it runs");
    atomic_store(&hold, 0);
    wait_for(&destroyed_by, 1);
    OK(atomic_load(&destroyed_by) == 2, "and then where that call ran");
    OK(poll_now(queue) == 0, "nothing is left for a queue");

    byway_source_release(source);
    byway_chain_release(chain);
    STATUS(byway_engine_shutdown(engine, -1, NULL), BYWAY_OK, "shutdown");
    byway_queue_release(queue);
    byway_engine_release(engine);
}

int main(void)
{
    queues();
    any_thread();
    return tap_done();
}
