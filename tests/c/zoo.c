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
    zoo_fill("byway_router_callbacks", &set);
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

static void *make_filter(void)
{
    byway_filter *made = NULL;
    (void)byway_filter_new_public(&made, NULL);
    return made;
}

static void *make_proxy(void)
{
    byway_proxy *made = NULL;
    (void)byway_proxy_new(BYWAY_PROXY_HTTP, "192.0.2.80", BYWAY_NUL, 8080, &made, NULL);
    return made;
}

/* A request that a callback of the zoo kept. */
static byway_dns_request *kept_lookup;
static byway_proxy_request *kept_select;

static byway_status keep_lookup(void *user_data, byway_dns_request *request, const char *host, size_t len,
                                const byway_call *call)
{
    (void)user_data;
    (void)host;
    (void)len;
    (void)call;
    kept_lookup = byway_dns_request_retain(request);
    return BYWAY_PENDING;
}

static byway_status keep_select(void *user_data, byway_proxy_request *request, const char *uri, size_t len,
                                const byway_call *call)
{
    (void)user_data;
    (void)uri;
    (void)len;
    (void)call;
    kept_select = byway_proxy_request_retain(request);
    return BYWAY_PENDING;
}

static byway_status answer_lookup(void *user_data, byway_dns_request *request, const char *host, size_t len,
                                  const byway_call *call)
{
    (void)user_data;
    (void)host;
    (void)len;
    (void)call;
    return byway_dns_request_add_text(request, "192.0.2.1 192.0.2.2", BYWAY_NUL, NULL);
}

static byway_status answer_fetch(void *user_data, byway_proxy_selector *selector, const char *url, size_t len,
                                 const byway_call *call)
{
    (void)user_data;
    (void)url;
    (void)len;
    (void)call;
    return byway_proxy_selector_set_script(selector, "function FindProxyForURL() { return 'DIRECT'; }", BYWAY_NUL,
                                           NULL, 0, NULL);
}

static byway_status answer_select(void *user_data, byway_proxy_request *request, const char *uri, size_t len,
                                  const byway_call *call)
{
    (void)user_data;
    (void)uri;
    (void)len;
    (void)call;
    return byway_proxy_request_add_direct(request);
}

static byway_status open_as_usual(void *user_data, int32_t family, int32_t protocol, const byway_route *route, int32_t *fd,
                                  const byway_call *call)
{
    (void)user_data;
    (void)family;
    (void)protocol;
    (void)route;
    (void)fd;
    (void)call;
    return BYWAY_PASS;
}

static void on_event(void *user_data, const byway_event *event)
{
    (void)user_data;
    (void)event;
}

static void *make_dns_with(byway_status (*lookup)(void *, byway_dns_request *, const char *, size_t, const byway_call *))
{
    byway_dns *made = NULL;
    byway_dns_callbacks set = BYWAY_DNS_CALLBACKS_INIT;
    zoo_fill("byway_dns_callbacks", &set);
    set.lookup = lookup;
    (void)byway_dns_new(engine(), &set, &made, NULL);
    return made;
}

static void *make_dns(void)
{
    return make_dns_with(answer_lookup);
}

static void *make_proxy_selector(void)
{
    byway_proxy_selector *made = NULL;
    (void)byway_proxy_selector_new_direct(engine(), &made, NULL);
    return made;
}

static byway_address *address_with(byway_dns *dns, byway_proxy_selector *proxy_selector)
{
    byway_address *made = NULL;
    byway_address_options options = BYWAY_ADDRESS_OPTIONS_INIT;
    zoo_fill("byway_address_options", &options);
    options.dns = dns;
    options.proxy_selector = proxy_selector;
    (void)byway_address_new(engine(), &options, &made, NULL);
    byway_dns_release(dns);
    byway_proxy_selector_release(proxy_selector);
    return made;
}

static void *make_address(void)
{
    return address_with(make_dns(), NULL);
}

static void *make_route(void)
{
    byway_route *made = NULL;
    byway_address *address = make_address();
    byway_ip hop = { { 192, 0, 2, 7 }, 0, 4, { 0 } };
    (void)byway_route_new(address, NULL, &hop, 443, &made, NULL);
    byway_address_release(address);
    return made;
}

static byway_selector *selector_of(byway_address *address)
{
    byway_selector *made = NULL;
    (void)byway_selector_new(engine(), address, NULL, &made, NULL);
    byway_address_release(address);
    return made;
}

static void *make_selector(void)
{
    return selector_of(make_address());
}

static void *make_selection(void)
{
    byway_selection *made = NULL;
    byway_selector *selector = make_selector();
    (void)byway_selector_next(selector, 0, &made, NULL);
    byway_selector_free(selector);
    return made;
}

/* To a port of this machine where nobody listens. */
static void *make_dial(void)
{
    byway_dial *made = NULL;
    byway_route *route = NULL;
    byway_address *address = make_address();
    byway_ip hop = { { 127, 0, 0, 1 }, 0, 4, { 0 } };
    (void)byway_route_new(address, NULL, &hop, 1, &route, NULL);
    (void)byway_dial_new_routes(engine(), (const byway_route *const *)&route, 1, NULL, NULL, &made, NULL);
    byway_route_release(route);
    byway_address_release(address);
    return made;
}

static void *make_handshake(void)
{
    byway_handshake *made = NULL;
    (void)byway_handshake_new_target(BYWAY_PROXY_HTTP, "a.example", BYWAY_NUL, 443, NULL, 0, NULL, 0, NULL, &made, NULL);
    return made;
}

static void *make_dns_request(void)
{
    byway_selection *none = NULL;
    byway_selector *selector = selector_of(address_with(make_dns_with(keep_lookup), NULL));
    kept_lookup = NULL;
    (void)byway_selector_poll_next(selector, &none, NULL);
    byway_selection_free(none);
    byway_selector_free(selector);
    return kept_lookup;
}

static void *make_proxy_request(void)
{
    byway_proxy_selector_callbacks set = BYWAY_PROXY_SELECTOR_CALLBACKS_INIT;
    byway_proxy_selector *chooser = NULL;
    zoo_fill("byway_proxy_selector_callbacks", &set);
    set.select = keep_select;
    kept_select = NULL;
    (void)byway_proxy_selector_new(engine(), &set, &chooser, NULL);
    byway_selector_free(selector_of(address_with(make_dns(), chooser)));
    return kept_select;
}

static void *make_listener(void)
{
    byway_listener *made = NULL;
    byway_listener_callbacks set = BYWAY_LISTENER_CALLBACKS_INIT;
    zoo_fill("byway_listener_callbacks", &set);
    set.on_event = on_event;
    (void)byway_engine_add_listener(engine(), &set, &made, NULL);
    return made;
}

static void on_source_event(void *user_data, const byway_source_event *event)
{
    (void)user_data;
    (void)event;
}

static void *make_source(void)
{
    byway_source *made = NULL;
    if (byway_source_new_memory(engine(), &made, NULL) == BYWAY_OK)
        (void)byway_source_put(made, "org.example.Greeter/providers", BYWAY_NUL, provider, BYWAY_NUL, NULL);
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
    MAKER(filter, make_filter, release),
    MAKER(proxy, make_proxy, release),
    MAKER(dns, make_dns, release),
    MAKER(dns_request, make_dns_request, release),
    MAKER(proxy_selector, make_proxy_selector, release),
    MAKER(proxy_request, make_proxy_request, release),
    MAKER(address, make_address, release),
    MAKER(route, make_route, release),
    MAKER(selector, make_selector, free),
    MAKER(selection, make_selection, free),
    MAKER(dial, make_dial, free),
    MAKER(handshake, make_handshake, free),
    MAKER(listener, make_listener, release),
    MAKER(invokers, make_invokers, release),
    MAKER(invokers_builder, make_invokers_builder, free),
    MAKER(invocation, make_invocation, free),
    MAKER(router, make_router, release),
    MAKER(chain, make_chain, release),
    MAKER(choice, make_choice, free),
    MAKER(session, make_session, free),
    MAKER(source, make_source, release),
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
    if (!strcmp(name, "byway_dns_callbacks"))
        ((byway_dns_callbacks *)structure)->lookup = answer_lookup;
    if (!strcmp(name, "byway_proxy_selector_callbacks"))
        ((byway_proxy_selector_callbacks *)structure)->select = answer_select;
    if (!strcmp(name, "byway_pac_callbacks"))
        ((byway_pac_callbacks *)structure)->fetch = answer_fetch;
    if (!strcmp(name, "byway_pac_options")) {
        ((byway_pac_options *)structure)->source.data = "function FindProxyForURL() { return 'DIRECT'; }";
        ((byway_pac_options *)structure)->source.len = BYWAY_NUL;
    }
    if (!strcmp(name, "byway_dial_callbacks"))
        ((byway_dial_callbacks *)structure)->open_socket = open_as_usual;
    if (!strcmp(name, "byway_listener_callbacks"))
        ((byway_listener_callbacks *)structure)->on_event = on_event;
    if (!strcmp(name, "byway_source_callbacks"))
        ((byway_source_callbacks *)structure)->on_event = on_source_event;
    if (!strcmp(name, "byway_address_options")) {
        ((byway_address_options *)structure)->host.data = "a.example";
        ((byway_address_options *)structure)->host.len = BYWAY_NUL;
        ((byway_address_options *)structure)->port = 443;
        ((byway_address_options *)structure)->flags = BYWAY_ADDRESS_TLS;
    }
    if (!strcmp(name, "byway_ip"))
        ((byway_ip *)structure)->family = 4;
}

void zoo_close(void)
{
    if (own) {
        (void)byway_engine_shutdown(own, 0, NULL);
        byway_engine_release(own);
        own = NULL;
    }
}
