#include "zoo.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int zoo_sets, zoo_destroyed;

static byway_engine *given;
static byway_engine *own;

void zoo_use_engine(byway_engine *engine)
{
    given = engine;
}

/* The engine objects are made with: the given one, else one that lives until zoo_close. Not the caller's reference. */
static byway_engine *engine(void)
{
    if (given)
        return given;
    if (!own && byway_engine_new(NULL, &own, NULL) != BYWAY_OK)
        abort();
    return own;
}

static void destroyed(void *user_data)
{
    (void)user_data;
    zoo_destroyed++;
}

static void notify(void *user_data)
{
    (void)user_data;
}

static void *make_engine(void)
{
    byway_engine *made = NULL;
    if (given)
        return byway_engine_retain(given);
    (void)byway_engine_new(NULL, &made, NULL);
    return made;
}

static void *make_queue(void)
{
    byway_queue *made = NULL;
    if (given)
        return byway_engine_queue(given);
    (void)byway_queue_new(NULL, &made, NULL);
    return made;
}

/* Any failure gives an error object. */
static void *make_error(void)
{
    byway_error *made = NULL;
    (void)byway_engine_shutdown(NULL, 0, &made);
    return made;
}

static const char provider[] = "dubbo://192.0.2.1:20880/org.example.Greeter?side=provider&application=greeter";
static const char consumer[] = "consumer://192.0.2.9/org.example.Greeter?side=consumer&application=caller";

static void *make_invokers(void)
{
    byway_invokers *made = NULL;
    byway_str urls[2];
    urls[0].data = urls[1].data = provider;
    urls[0].len = urls[1].len = BYWAY_NUL;
    (void)byway_invokers_new(engine(), urls, NULL, 2, BYWAY_INVOKERS_KEEP_URLS, NULL, &made, NULL);
    return made;
}

static void *make_invokers_builder(void)
{
    byway_invokers_builder *made = NULL;
    (void)byway_invokers_builder_new(engine(), NULL, 0, NULL, &made, NULL);
    return made;
}

static void *make_invocation(void)
{
    byway_invocation *made = NULL;
    if (byway_invocation_new(&made, NULL) == BYWAY_OK)
        (void)byway_invocation_set_method(made, "greet", BYWAY_NUL);
    return made;
}

static byway_status keep_all(void *user_data, const byway_router_request *request, const byway_call *call)
{
    (void)user_data;
    (void)call;
    memset(request->keep, 1, request->count);
    return BYWAY_OK;
}

static void *make_router(void)
{
    static int number;
    byway_router *made = NULL;
    byway_router_callbacks set = BYWAY_ROUTER_CALLBACKS_INIT;
    char name[24];
    snprintf(name, sizeof name, "zoo-%d", number++);
    set.route = keep_all;
    (void)byway_router_new(engine(), name, BYWAY_NUL, 0, 0, &set, &made, NULL);
    return made;
}

static void *make_chain(void)
{
    byway_chain *made = NULL;
    byway_invokers *invokers = make_invokers();
    if (byway_chain_new(engine(), consumer, BYWAY_NUL, NULL, &made, NULL) == BYWAY_OK)
        (void)byway_chain_set_invokers(made, invokers, NULL, NULL);
    byway_invokers_release(invokers);
    return made;
}

static void *make_choice(void)
{
    byway_choice *made = NULL;
    byway_chain *chain = make_chain();
    byway_invocation *invocation = make_invocation();
    (void)byway_chain_route(chain, invocation, &made, NULL);
    byway_invocation_free(invocation);
    byway_chain_release(chain);
    return made;
}

static void *make_session(void)
{
    byway_session *made = NULL;
    byway_chain *chain = make_chain();
    (void)byway_session_new(chain, &made, NULL);
    byway_chain_release(chain);
    return made;
}

static void *make_text(void)
{
    byway_text *made = NULL;
    byway_chain *chain = make_chain();
    (void)byway_chain_keys(chain, &made, NULL);
    byway_chain_release(chain);
    return made;
}

static const struct maker {
    const char *type;
    void *(*make)(void);
    void (*end)(void *);
} makers[] = {
#define MAKER(name, how, end) { "byway_" #name, how, (void (*)(void *))byway_##name##_##end }
    MAKER(engine, make_engine, release),
    MAKER(queue, make_queue, release),
    MAKER(error, make_error, free),
    MAKER(text, make_text, free),
    MAKER(invokers, make_invokers, release),
    MAKER(invokers_builder, make_invokers_builder, free),
    MAKER(invocation, make_invocation, free),
    MAKER(router, make_router, release),
    MAKER(chain, make_chain, release),
    MAKER(choice, make_choice, free),
    MAKER(session, make_session, free),
};

static const struct maker *find(const char *type)
{
    size_t i;
    for (i = 0; i < sizeof makers / sizeof makers[0]; i++)
        if (!strcmp(makers[i].type, type))
            return &makers[i];
    return NULL;
}

int zoo_knows(const char *type)
{
    return find(type) != NULL;
}

void *zoo_make(const char *type)
{
    const struct maker *maker = find(type);
    return maker ? maker->make() : NULL;
}

void zoo_end(const char *type, void *handle)
{
    const struct maker *maker = find(type);
    if (maker)
        maker->end(handle);
}

void zoo_fill(const char *name, void *structure)
{
    /* Every callback set begins alike. */
    byway_notify_callbacks *head = structure;
    if (strstr(name, "_callbacks")) {
        head->destroy = destroyed;
        zoo_sets++;
    }
    if (!strcmp(name, "byway_notify_callbacks"))
        head->notify = notify;
    if (!strcmp(name, "byway_router_callbacks"))
        ((byway_router_callbacks *)structure)->route = keep_all;
}

void zoo_close(void)
{
    if (own) {
        (void)byway_engine_shutdown(own, 0, NULL);
        byway_engine_release(own);
        own = NULL;
    }
}
