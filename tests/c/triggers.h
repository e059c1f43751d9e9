/* How to make each callback of the header run once. */
#ifndef TRIGGERS_H
#define TRIGGERS_H

#include "byway.h"
#include <stdlib.h>
#include <string.h>

/* What a callback does: `engine` is the one it was made with, NULL when it has none. */
typedef void (*inside)(byway_engine *engine, const byway_call *call);

static inside what;
static byway_engine *of;

static void run_destroy_alone(void *user_data)
{
    (void)user_data;
    what(NULL, NULL);
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
    set.destroy = run_destroy_alone;
    set.notify = quiet_notify;
    (void)byway_queue_new(NULL, &queue, NULL);
    (void)byway_queue_set_notify(queue, &set, NULL);
    (void)byway_queue_set_notify(queue, NULL, NULL);
    byway_queue_release(queue);
}

static byway_engine *fresh_engine(inside body)
{
    what = body;
    of = NULL;
    if (byway_engine_new(NULL, &of, NULL) != BYWAY_OK)
        abort();
    return of;
}

static void end_engine(void)
{
    byway_engine *engine = of;
    (void)byway_engine_shutdown(engine, 0, NULL);
    of = NULL;
    byway_engine_release(engine);
}

static byway_status run_route(void *user_data, const byway_router_request *request, const byway_call *call)
{
    (void)user_data;
    memset(request->keep, 1, request->count);
    what(of, call);
    return BYWAY_OK;
}

static void route_with(void (*destroy)(void *), byway_status (*route)(void *, const byway_router_request *,
                                                                      const byway_call *))
{
    static const char url[] = "dubbo://192.0.2.1:20880/org.example.Greeter?side=provider&application=greeter";
    byway_router_callbacks set = BYWAY_ROUTER_CALLBACKS_INIT;
    byway_router *router = NULL;
    byway_chain *chain = NULL;
    byway_invokers *invokers = NULL;
    byway_invocation *invocation = NULL;
    byway_choice *choice = NULL;
    byway_str urls[1];
    urls[0].data = url;
    urls[0].len = BYWAY_NUL;
    set.destroy = destroy;
    set.route = route;
    (void)byway_router_new(of, "inside", BYWAY_NUL, 0, 0, &set, &router, NULL);
    (void)byway_invokers_new(of, urls, NULL, 1, 0, NULL, &invokers, NULL);
    (void)byway_chain_new(of, "consumer://192.0.2.9/org.example.Greeter?application=caller", BYWAY_NUL, NULL, &chain,
                          NULL);
    (void)byway_chain_set_invokers(chain, invokers, NULL, NULL);
    (void)byway_chain_add_router(chain, router, NULL);
    (void)byway_invocation_new(&invocation, NULL);
    (void)byway_chain_route(chain, invocation, &choice, NULL);
    byway_choice_free(choice);
    byway_invocation_free(invocation);
    byway_invokers_release(invokers);
    byway_chain_release(chain);
    byway_router_release(router);
}

static byway_status quiet_route(void *user_data, const byway_router_request *request, const byway_call *call)
{
    (void)user_data;
    (void)call;
    memset(request->keep, 1, request->count);
    return BYWAY_OK;
}

static void router_route(inside body)
{
    (void)fresh_engine(body);
    route_with(NULL, run_route);
    end_engine();
}

/* A destroy runs when no callback of the engine does: there shutdown is legal, so it gets no engine to try it on. */
static void router_destroy(inside body)
{
    byway_engine *engine = fresh_engine(body);
    route_with(run_destroy_alone, quiet_route);
    of = engine;
    end_engine();
}

static void invokers_destroy(inside body)
{
    byway_invokers_callbacks set = BYWAY_INVOKERS_CALLBACKS_INIT;
    byway_invokers *invokers = NULL;
    set.destroy = run_destroy_alone;
    (void)fresh_engine(body);
    (void)byway_invokers_new(of, NULL, NULL, 0, 0, &set, &invokers, NULL);
    byway_invokers_release(invokers);
    end_engine();
}

static const struct trigger {
    const char *callback;
    void (*run)(inside body);
    const char *why; /* set: it cannot be run here, and why */
} triggers[] = {
    { "byway_notify_callbacks.notify", NULL, "by contract it may not call byway" },
    { "byway_notify_callbacks.destroy", notify_destroy, NULL },
    { "byway_router_callbacks.route", router_route, NULL },
    { "byway_router_callbacks.destroy", router_destroy, NULL },
    { "byway_invokers_callbacks.destroy", invokers_destroy, NULL },
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
