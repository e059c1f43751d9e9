/* How to make each callback of the header run once. */
#ifndef TRIGGERS_H
#define TRIGGERS_H

#include "byway.h"
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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

static byway_status run_lookup(void *user_data, byway_dns_request *request, const char *host, size_t len,
                               const byway_call *call)
{
    (void)user_data;
    (void)host;
    (void)len;
    what(of, call);
    return byway_dns_request_add_text(request, "192.0.2.1", BYWAY_NUL, NULL);
}

static byway_status quiet_lookup(void *user_data, byway_dns_request *request, const char *host, size_t len,
                                 const byway_call *call)
{
    (void)user_data;
    (void)host;
    (void)len;
    (void)call;
    return byway_dns_request_add_text(request, "192.0.2.1", BYWAY_NUL, NULL);
}

static byway_status later_lookup(void *user_data, byway_dns_request *request, const char *host, size_t len,
                                 const byway_call *call)
{
    (void)host;
    (void)len;
    (void)call;
    *(byway_dns_request **)user_data = byway_dns_request_retain(request);
    return BYWAY_PENDING;
}

static byway_status run_select(void *user_data, byway_proxy_request *request, const char *uri, size_t len,
                               const byway_call *call)
{
    (void)user_data;
    (void)uri;
    (void)len;
    what(of, call);
    return byway_proxy_request_add_direct(request);
}

/* A proxy that is an address, so that its failures have somebody to be told to. */
static byway_status quiet_select(void *user_data, byway_proxy_request *request, const char *uri, size_t len,
                                 const byway_call *call)
{
    (void)user_data;
    (void)uri;
    (void)len;
    (void)call;
    return byway_proxy_request_add(request, BYWAY_PROXY_HTTP, "192.0.2.80", BYWAY_NUL, 8080, NULL);
}

static byway_status later_select(void *user_data, byway_proxy_request *request, const char *uri, size_t len,
                                 const byway_call *call)
{
    (void)uri;
    (void)len;
    (void)call;
    *(byway_proxy_request **)user_data = byway_proxy_request_retain(request);
    return BYWAY_PENDING;
}

static void run_failed(void *user_data, const char *uri, size_t len, const byway_route *route, int32_t failure,
                       int32_t os_errno, const byway_call *call)
{
    (void)user_data;
    (void)uri;
    (void)len;
    (void)route;
    (void)failure;
    (void)os_errno;
    what(of, call);
}

static void run_cancel(void *user_data, uint64_t id)
{
    (void)user_data;
    (void)id;
    what(of, NULL);
}

static void run_event(void *user_data, const byway_event *event)
{
    (void)user_data;
    (void)event;
    what(of, NULL);
}

/* One selection with these sets; NULL for the usual. Reports its first route as failed. */
static void select_with(const byway_dns_callbacks *lookups, const byway_proxy_selector_callbacks *chooser_set)
{
    byway_dns_callbacks usual = BYWAY_DNS_CALLBACKS_INIT;
    byway_address_options options = BYWAY_ADDRESS_OPTIONS_INIT;
    byway_dns *dns = NULL;
    byway_proxy_selector *chooser = NULL;
    byway_address *address = NULL;
    byway_selector *selector = NULL;
    byway_selection *selection = NULL;
    const byway_route *route = NULL;
    usual.lookup = quiet_lookup;
    (void)byway_dns_new(of, lookups ? lookups : &usual, &dns, NULL);
    if (chooser_set)
        (void)byway_proxy_selector_new(of, chooser_set, &chooser, NULL);
    options.host.data = "a.example";
    options.host.len = BYWAY_NUL;
    options.port = 443;
    options.flags = BYWAY_ADDRESS_TLS;
    options.dns = dns;
    options.proxy_selector = chooser;
    (void)byway_address_new(of, &options, &address, NULL);
    (void)byway_selector_new(of, address, NULL, &selector, NULL);
    (void)byway_selector_next(selector, 0, &selection, NULL);
    if (selection && byway_selection_next(selection, &route, NULL) == BYWAY_OK)
        (void)byway_engine_connect_failed(of, route, BYWAY_FAILURE_REFUSED, BYWAY_PHASE_TCP, 111, NULL);
    byway_selection_free(selection);
    byway_selector_free(selector);
    byway_address_release(address);
    byway_proxy_selector_release(chooser);
    byway_dns_release(dns);
}

static void dns_lookup(inside body)
{
    byway_dns_callbacks set = BYWAY_DNS_CALLBACKS_INIT;
    (void)fresh_engine(body);
    set.lookup = run_lookup;
    select_with(&set, NULL);
    end_engine();
}

static void dns_cancel(inside body)
{
    byway_dns_callbacks set = BYWAY_DNS_CALLBACKS_INIT;
    byway_dns_request *request = NULL;
    (void)fresh_engine(body);
    set.user_data = &request;
    set.lookup = later_lookup;
    set.on_cancel = run_cancel;
    select_with(&set, NULL);
    byway_dns_request_release(request);
    end_engine();
}

static void dns_destroy(inside body)
{
    byway_dns_callbacks set = BYWAY_DNS_CALLBACKS_INIT;
    byway_dns *dns = NULL;
    (void)fresh_engine(body);
    set.lookup = quiet_lookup;
    set.destroy = run_destroy_alone;
    (void)byway_dns_new(of, &set, &dns, NULL);
    byway_dns_release(dns);
    end_engine();
}

static void proxy_select(inside body)
{
    byway_proxy_selector_callbacks set = BYWAY_PROXY_SELECTOR_CALLBACKS_INIT;
    (void)fresh_engine(body);
    set.select = run_select;
    select_with(NULL, &set);
    end_engine();
}

static void proxy_failed(inside body)
{
    byway_proxy_selector_callbacks set = BYWAY_PROXY_SELECTOR_CALLBACKS_INIT;
    (void)fresh_engine(body);
    set.select = quiet_select;
    set.connect_failed = run_failed;
    select_with(NULL, &set);
    end_engine();
}

static void proxy_cancel(inside body)
{
    byway_proxy_selector_callbacks set = BYWAY_PROXY_SELECTOR_CALLBACKS_INIT;
    byway_proxy_request *request = NULL;
    (void)fresh_engine(body);
    set.user_data = &request;
    set.select = later_select;
    set.on_cancel = run_cancel;
    select_with(NULL, &set);
    byway_proxy_request_release(request);
    end_engine();
}

static void proxy_destroy(inside body)
{
    byway_proxy_selector_callbacks set = BYWAY_PROXY_SELECTOR_CALLBACKS_INIT;
    byway_proxy_selector *chooser = NULL;
    (void)fresh_engine(body);
    set.select = quiet_select;
    set.destroy = run_destroy_alone;
    (void)byway_proxy_selector_new(of, &set, &chooser, NULL);
    byway_proxy_selector_release(chooser);
    end_engine();
}

static void hear(inside body, void (*event)(void *, const byway_event *), void (*destroy)(void *))
{
    byway_listener_callbacks set = BYWAY_LISTENER_CALLBACKS_INIT;
    byway_listener *listener = NULL;
    (void)fresh_engine(body);
    set.on_event = event;
    set.destroy = destroy;
    (void)byway_engine_add_listener(of, &set, &listener, NULL);
    select_with(NULL, NULL);
    byway_listener_remove(listener);
    byway_listener_release(listener);
    end_engine();
}

static void quiet_event(void *user_data, const byway_event *event)
{
    (void)user_data;
    (void)event;
}

static void listener_event(inside body)
{
    hear(body, run_event, NULL);
}

static void listener_destroy(inside body)
{
    hear(body, quiet_event, run_destroy_alone);
}

static byway_status run_open(void *user_data, int32_t family, int32_t protocol, const byway_route *route, int32_t *fd,
                             const byway_call *call)
{
    (void)user_data;
    (void)family;
    (void)protocol;
    (void)route;
    (void)fd;
    what(of, call);
    return BYWAY_PASS;
}

static byway_status run_configure(void *user_data, int32_t fd, const byway_route *route, const byway_call *call)
{
    (void)user_data;
    (void)fd;
    (void)route;
    what(of, call);
    return BYWAY_OK;
}

static byway_status run_close(void *user_data, int32_t fd, const byway_call *call)
{
    (void)user_data;
    (void)fd;
    what(of, call);
    return BYWAY_PASS;
}

static byway_status run_auth(void *user_data, byway_dial *dial, uint32_t attempt, const byway_route *route,
                             const byway_str *challenges, size_t count, const byway_call *call)
{
    (void)user_data;
    (void)dial;
    (void)attempt;
    (void)route;
    (void)challenges;
    (void)count;
    what(of, call);
    return BYWAY_PASS;
}

static byway_status run_fetch(void *user_data, byway_proxy_selector *selector, const char *url, size_t len,
                              const byway_call *call)
{
    (void)user_data;
    (void)url;
    (void)len;
    what(of, call);
    return byway_proxy_selector_set_script(selector, "function FindProxyForURL() { return 'DIRECT'; }", BYWAY_NUL,
                                           NULL, 0, NULL);
}

static byway_proxy_selector *script_with(const byway_pac_callbacks *set)
{
    byway_pac_options options = BYWAY_PAC_OPTIONS_INIT;
    byway_proxy_selector *made = NULL;
    options.url.data = "http://pac.example/";
    options.url.len = BYWAY_NUL;
    (void)byway_proxy_selector_new_pac(of, &options, set, &made, NULL);
    return made;
}

static void pac_fetch(inside body)
{
    byway_pac_callbacks set = BYWAY_PAC_CALLBACKS_INIT;
    byway_address_options options = BYWAY_ADDRESS_OPTIONS_INIT;
    byway_address *address = NULL;
    byway_selector *selector = NULL;
    (void)fresh_engine(body);
    set.fetch = run_fetch;
    options.proxy_selector = script_with(&set);
    options.host.data = "192.0.2.1";
    options.host.len = BYWAY_NUL;
    options.port = 80;
    (void)byway_address_new(of, &options, &address, NULL);
    (void)byway_selector_new(of, address, NULL, &selector, NULL);
    byway_selector_free(selector);
    byway_address_release(address);
    byway_proxy_selector_release(options.proxy_selector);
    end_engine();
}

static void pac_destroy(inside body)
{
    byway_pac_callbacks set = BYWAY_PAC_CALLBACKS_INIT;
    (void)fresh_engine(body);
    set.fetch = run_fetch;
    set.destroy = run_destroy_alone;
    byway_proxy_selector_release(script_with(&set));
    end_engine();
}

/* One dial on loopback: to a port where nobody listens, or through a proxy that takes the connection and says nothing. */
static void dial_with(const byway_dial_callbacks *set, int listening)
{
    byway_address_options where = BYWAY_ADDRESS_OPTIONS_INIT;
    byway_dial_options how = BYWAY_DIAL_OPTIONS_INIT;
    byway_address *address = NULL;
    byway_proxy *proxy = NULL;
    byway_route *route = NULL;
    byway_dial *dial = NULL;
    byway_connected connected;
    byway_ip hop = { { 127, 0, 0, 1 }, 0, 4, { 0 } };
    struct sockaddr_in at;
    socklen_t size = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    memset(&at, 0, sizeof at);
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (struct sockaddr *)&at, size) != 0 || getsockname(listener, (struct sockaddr *)&at, &size) != 0 ||
        (listening && listen(listener, 4) != 0))
        abort();
    where.host.data = "a.example";
    where.host.len = BYWAY_NUL;
    where.port = 443;
    where.flags = BYWAY_ADDRESS_TLS;
    how.flags = BYWAY_DIAL_ASK_FIRST;
    (void)byway_address_new(of, &where, &address, NULL);
    (void)byway_proxy_new(BYWAY_PROXY_HTTP, "127.0.0.1", BYWAY_NUL, ntohs(at.sin_port), &proxy, NULL);
    (void)byway_route_new(address, proxy, &hop, ntohs(at.sin_port), &route, NULL);
    (void)byway_dial_new_routes(of, (const byway_route *const *)&route, 1, &how, set, &dial, NULL);
    (void)byway_dial_run(dial, 0, &connected, NULL);
    byway_dial_free(dial);
    byway_route_release(route);
    byway_proxy_release(proxy);
    byway_address_release(address);
    close(listener);
}

static void dial_open(inside body)
{
    byway_dial_callbacks set = BYWAY_DIAL_CALLBACKS_INIT;
    set.open_socket = run_open;
    (void)fresh_engine(body);
    dial_with(&set, 0);
    end_engine();
}

static void dial_configure(inside body)
{
    byway_dial_callbacks set = BYWAY_DIAL_CALLBACKS_INIT;
    set.configure = run_configure;
    (void)fresh_engine(body);
    dial_with(&set, 0);
    end_engine();
}

static void dial_close(inside body)
{
    byway_dial_callbacks set = BYWAY_DIAL_CALLBACKS_INIT;
    set.close_socket = run_close;
    (void)fresh_engine(body);
    dial_with(&set, 0);
    end_engine();
}

static void dial_auth(inside body)
{
    byway_dial_callbacks set = BYWAY_DIAL_CALLBACKS_INIT;
    set.proxy_auth = run_auth;
    (void)fresh_engine(body);
    dial_with(&set, 1);
    end_engine();
}

static void dial_destroy(inside body)
{
    byway_dial_callbacks set = BYWAY_DIAL_CALLBACKS_INIT;
    set.destroy = run_destroy_alone;
    (void)fresh_engine(body);
    dial_with(&set, 0);
    end_engine();
}

static void run_source_event(void *user_data, const byway_source_event *event)
{
    (void)user_data;
    (void)event;
    what(of, NULL);
}

static void quiet_source_event(void *user_data, const byway_source_event *event)
{
    (void)user_data;
    (void)event;
}

static void bind_with(void (*destroy)(void *), void (*on_event)(void *, const byway_source_event *))
{
    byway_source_callbacks set = BYWAY_SOURCE_CALLBACKS_INIT;
    byway_source *source = NULL;
    byway_chain *chain = NULL;
    byway_queue *queue = byway_engine_queue(of);
    size_t n = 0;
    set.destroy = destroy;
    set.on_event = on_event;
    (void)byway_source_new_memory(of, &source, NULL);
    (void)byway_chain_new(of, "consumer://192.0.2.9/org.example.Greeter?application=caller", BYWAY_NUL, NULL, &chain,
                          NULL);
    (void)byway_chain_bind_source(chain, source, NULL, &set, 0, NULL);
    (void)byway_queue_poll(queue, 0, NULL, sizeof(byway_completion), 0, &n, NULL);
    byway_chain_release(chain);
    byway_source_release(source);
    byway_queue_release(queue);
}

static void source_event(inside body)
{
    (void)fresh_engine(body);
    bind_with(NULL, run_source_event);
    end_engine();
}

static void source_destroy(inside body)
{
    byway_engine *engine = fresh_engine(body);
    bind_with(run_destroy_alone, quiet_source_event);
    of = engine;
    end_engine();
}

static const struct trigger {
    const char *callback;
    void (*run)(inside body);
    const char *why; /* set: it cannot be run here, and why */
} triggers[] = {
    { "byway_notify_callbacks.notify", NULL, "by contract it may not call byway" },
    { "byway_notify_callbacks.destroy", notify_destroy, NULL },
    { "byway_dns_callbacks.lookup", dns_lookup, NULL },
    { "byway_dns_callbacks.on_cancel", dns_cancel, NULL },
    { "byway_dns_callbacks.destroy", dns_destroy, NULL },
    { "byway_proxy_selector_callbacks.select", proxy_select, NULL },
    { "byway_proxy_selector_callbacks.connect_failed", proxy_failed, NULL },
    { "byway_proxy_selector_callbacks.on_cancel", proxy_cancel, NULL },
    { "byway_proxy_selector_callbacks.destroy", proxy_destroy, NULL },
    { "byway_pac_callbacks.fetch", pac_fetch, NULL },
    { "byway_pac_callbacks.destroy", pac_destroy, NULL },
    { "byway_dial_callbacks.open_socket", dial_open, NULL },
    { "byway_dial_callbacks.configure", dial_configure, NULL },
    { "byway_dial_callbacks.close_socket", dial_close, NULL },
    { "byway_dial_callbacks.proxy_auth", dial_auth, NULL },
    { "byway_dial_callbacks.destroy", dial_destroy, NULL },
    { "byway_listener_callbacks.on_event", listener_event, NULL },
    { "byway_listener_callbacks.destroy", listener_destroy, NULL },
    { "byway_router_callbacks.route", router_route, NULL },
    { "byway_router_callbacks.destroy", router_destroy, NULL },
    { "byway_invokers_callbacks.destroy", invokers_destroy, NULL },
    { "byway_source_callbacks.on_event", source_event, NULL },
    { "byway_source_callbacks.destroy", source_destroy, NULL },
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
