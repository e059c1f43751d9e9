/* Every export from inside every callback. What must never happen there answers BYWAY_E_REENTRANT, everything else
 * answers as it does outside, nothing waits for itself. The triggers make each callback run once. */
#include "byway.h"

static void compare(const char *name, byway_status status);
#define EXPECT_STATUS(name, bad, status) compare(name, status)

#include "calls.c"
#include "calls.h"
#include "callbacks.h"
#include "triggers.h"

static const char *other_type(int index)
{
    return index < (int)(sizeof types / sizeof types[0]) ? types[index] : NULL;
}

static const char *inside_of;
static int entered;

/* What each export answers outside of callbacks: with objects of an engine of the zoo's own, and of a given one. */
static byway_status outside[2][sizeof exports / sizeof exports[0]];
static int is_outside, is_given;

/* These never run where the callback's own engine and queue are what they are called with. */
static int is_forbidden(const char *name)
{
    return !strcmp(name, "byway_engine_shutdown") || !strcmp(name, "byway_queue_poll");
}

static void compare(const char *name, byway_status status)
{
    size_t i;
    for (i = 0; i < sizeof exports / sizeof exports[0] && strcmp(exports[i].name, name); i++)
        ;
    if (is_outside)
        outside[is_given][i] = status;
    else if (is_given && is_forbidden(name) ? status != BYWAY_E_REENTRANT : status != outside[is_given][i])
        problem(name, -1, "another answer than outside", status);
}

/* Runs in the callback, on behalf of `engine` (NULL when there is none). */
static void every_export(byway_engine *engine, const byway_call *call)
{
    size_t i;
    const int outer = problems;
    if (entered++)
        return;
    zoo_use_engine(engine);
    is_given = engine != NULL;
    inside_call = call;
    for (i = 0; i < sizeof exports / sizeof exports[0]; i++) {
        exports[i].call(-1);
        end_all();
    }
    zoo_use_engine(NULL);
    inside_call = NULL;
    if (engine) {
        byway_error *err = NULL;
        byway_queue *queue = byway_engine_queue(engine);
        size_t n;
        byway_status status = byway_engine_shutdown(engine, 0, &err);
        if (status != BYWAY_E_REENTRANT)
            problem("byway_engine_shutdown", -1, "of the same engine from inside a callback", status);
        byway_error_free(err);
        status = byway_queue_poll(queue, 0, NULL, 16, 0, &n, NULL);
        if (status != BYWAY_E_REENTRANT)
            problem("byway_queue_poll", -1, "of the same queue from inside a callback", status);
        byway_queue_release(queue);
    }
    (void)outer;
}

static void note_outside(byway_engine *engine)
{
    size_t i;
    int round;
    is_outside = 1;
    is_given = engine != NULL;
    zoo_use_engine(engine);
    /* The first round leaves behind what every later one finds. */
    for (round = 0; round < 2; round++)
        for (i = 0; i < sizeof exports / sizeof exports[0]; i++) {
            if (is_given && is_forbidden(exports[i].name))
                continue;
            exports[i].call(-1);
            end_all();
        }
    zoo_use_engine(NULL);
    zoo_close();
    is_outside = 0;
}

int main(void)
{
    byway_engine *engine = NULL;
    size_t i;
    memset(long_text, 'a', sizeof long_text - 1);
    note_outside(NULL);
    NEED(byway_engine_new(NULL, &engine, NULL));
    note_outside(engine);
    byway_engine_release(engine);
    for (i = 0; i < sizeof callbacks / sizeof callbacks[0]; i++) {
        const struct trigger *trigger = find_trigger(callbacks[i]);
        if (!trigger) {
            SKIP(callbacks[i], "triggers.h does not make it run");
            continue;
        }
        if (trigger->why) {
            SKIP(callbacks[i], trigger->why);
            continue;
        }
        problems = 0;
        entered = 0;
        inside_of = callbacks[i];
        trigger->run(every_export);
        zoo_close();
        OK(entered > 0 && problems == 0, "every export from inside %s", inside_of);
    }
    return tap_done();
}
