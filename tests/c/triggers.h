/* How to make each callback of the header run once. */
#ifndef TRIGGERS_H
#define TRIGGERS_H

#include "byway.h"
#include <string.h>

/* What a callback does: `engine` is the one it was made with, NULL when it has none. */
typedef void (*inside)(byway_engine *engine, const byway_call *call);

static inside what;
static byway_engine *of;

static void run_destroy(void *user_data)
{
    (void)user_data;
    what(of, NULL);
}

static void quiet_notify(void *user_data)
{
    (void)user_data;
}

static void notify_destroy(inside body)
{
    byway_queue *queue = NULL;
    byway_notify_callbacks set = BYWAY_NOTIFY_CALLBACKS_INIT;
    what = body;
    of = NULL;
    set.destroy = run_destroy;
    set.notify = quiet_notify;
    (void)byway_queue_new(NULL, &queue, NULL);
    (void)byway_queue_set_notify(queue, &set, NULL);
    (void)byway_queue_set_notify(queue, NULL, NULL);
    byway_queue_release(queue);
}

static const struct trigger {
    const char *callback;
    void (*run)(inside body);
    const char *why; /* set: it cannot be run here, and why */
} triggers[] = {
    { "byway_notify_callbacks.notify", NULL, "by contract it may not call byway" },
    { "byway_notify_callbacks.destroy", notify_destroy, NULL },
};

static const struct trigger *find_trigger(const char *callback)
{
    size_t i;
    for (i = 0; i < sizeof triggers / sizeof triggers[0]; i++)
        if (!strcmp(triggers[i].callback, callback))
            return &triggers[i];
    return NULL;
}

#endif
