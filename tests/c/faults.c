/* Hosts that misbehave: resolvers that are silent, hasty or late, proxy selectors that fail or flood, hostile hosts. */
#include "tap.h"

static byway_engine *engine;
static byway_dns_request *kept;
static int canceled, destroyed;
static uint64_t canceled_id;

static byway_status silent(void *user_data, byway_dns_request *request, const char *host, size_t len,
                           const byway_call *call)
{
    (void)user_data;
    (void)host;
    (void)len;
    (void)call;
    kept = byway_dns_request_retain(request);
    return BYWAY_PENDING;
}

static byway_status nothing(void *user_data, byway_dns_request *request, const char *host, size_t len,
                            const byway_call *call)
{
    (void)user_data;
    (void)request;
    (void)host;
    (void)len;
    (void)call;
    return BYWAY_OK;
}

static byway_status undefined(void *user_data, byway_dns_request *request, const char *host, size_t len,
                              const byway_call *call)
{
    (void)user_data;
    (void)request;
    (void)host;
    (void)len;
    (void)call;
    return 4711;
}

static byway_status second_answer;

static byway_status twice(void *user_data, byway_dns_request *request, const char *host, size_t len,
                          const byway_call *call)
{
    (void)user_data;
    (void)host;
    (void)len;
    (void)call;
    (void)byway_dns_request_add_text(request, "192.0.2.1", BYWAY_NUL, NULL);
    (void)byway_dns_request_finish(request);
    second_answer = byway_dns_request_add_text(request, "192.0.2.2", BYWAY_NUL, NULL);
    if (second_answer == BYWAY_OK)
        second_answer = byway_dns_request_finish(request);
    return BYWAY_OK;
}

static void on_cancel(void *user_data, uint64_t id)
{
    (void)user_data;
    canceled++;
    canceled_id = id;
}

static void on_destroy(void *user_data)
{
    (void)user_data;
    destroyed++;
}

static byway_dns *dns_with(byway_status (*lookup)(void *, byway_dns_request *, const char *, size_t, const byway_call *))
{
    byway_dns_callbacks set = BYWAY_DNS_CALLBACKS_INIT;
    byway_dns *made = NULL;
    set.lookup = lookup;
    set.on_cancel = on_cancel;
    set.destroy = on_destroy;
    NEED(byway_dns_new(engine, &set, &made, NULL));
    return made;
}

static byway_status address_of(const char *host, size_t len, int32_t port, byway_dns *dns,
                               byway_proxy_selector *chooser, byway_address **out, byway_error **err)
{
    byway_address_options options = BYWAY_ADDRESS_OPTIONS_INIT;
    options.host.data = host;
    options.host.len = len;
    options.port = port;
    options.dns = dns;
    options.proxy_selector = chooser;
    return byway_address_new(engine, &options, out, err);
}

static byway_selector *selector_with(byway_dns *dns, byway_proxy_selector *chooser)
{
    byway_address *address = NULL;
    byway_selector *made = NULL;
    NEED(address_of("a.example", BYWAY_NUL, 443, dns, chooser, &address, NULL));
    NEED(byway_selector_new(engine, address, NULL, &made, NULL));
    byway_address_release(address);
    byway_dns_release(dns);
    byway_proxy_selector_release(chooser);
    return made;
}

/* How many completion records wait in the engine's queue. */
static size_t records_of(int32_t *status)
{
    byway_completion records[16];
    byway_queue *queue = byway_engine_queue(engine);
    size_t n = 0;
    NEED(byway_queue_poll(queue, 0, records, sizeof records[0], 16, &n, NULL));
    if (n && status)
        *status = records[0].status;
    byway_queue_release(queue);
    return n;
}

static void resolvers(void)
{
    byway_selector *selector;
    byway_selection *selection = NULL;
    byway_error *err = NULL;
    byway_status status;
    int32_t record = 7;

    NEED(byway_engine_new(NULL, &engine, NULL));
    selector = selector_with(dns_with(silent), NULL);
    STATUS(byway_selector_next(selector, 1, &selection, &err), BYWAY_E_TIMEOUT, "a resolver that never answers: time runs out");
    byway_error_free(err);
    NEED(byway_dns_request_add_text(kept, "192.0.2.1", BYWAY_NUL, NULL));
    (void)byway_dns_request_finish(kept);
    STATUS(byway_selector_next(selector, 0, &selection, NULL), BYWAY_OK, "the next call goes on with the same question");
    OK(byway_selection_len(selection) == 1, "and has its answer");
    byway_selection_free(selection);
    byway_dns_request_release(kept);
    byway_selector_free(selector);

    selector = selector_with(dns_with(silent), NULL);
    STATUS(byway_selector_poll_next(selector, &selection, NULL), BYWAY_PENDING, "asked without waiting: pending");
    OK(records_of(NULL) == 0, "no record before the answer");
    STATUS(byway_selector_poll_next(selector, &selection, NULL), BYWAY_PENDING, "asked again: still pending");
    NEED(byway_dns_request_add_text(kept, "192.0.2.1", BYWAY_NUL, NULL));
    (void)byway_dns_request_finish(kept);
    OK(records_of(&record) == 1 && record == 0, "one record after it (status %d)", (int)record);
    OK(records_of(NULL) == 0, "and no other");
    STATUS(byway_selector_poll_next(selector, &selection, NULL), BYWAY_OK, "then the routes are there");
    byway_selection_free(selection);
    byway_dns_request_release(kept);
    byway_selector_free(selector);

    canceled = 0;
    selector = selector_with(dns_with(silent), NULL);
    STATUS(byway_selector_poll_next(selector, &selection, NULL), BYWAY_PENDING, "pending, then");
    STATUS(byway_selector_cancel(selector), BYWAY_OK, "canceled");
    OK(records_of(&record) == 1, "one record (%s)", byway_status_name(record));
    STATUS(byway_selector_poll_next(selector, &selection, NULL), BYWAY_E_CANCELED, "cancel is sticky");
    byway_selector_free(selector);
    OK(canceled == 1 && canceled_id == byway_dns_request_id(kept), "the resolver is told once, with the request's number");
    OK(byway_dns_request_is_canceled(kept), "the request says so");
    status = byway_dns_request_add_text(kept, "192.0.2.1", BYWAY_NUL, NULL);
    STATUS(status, BYWAY_E_CANCELED, "a late answer is harmless");
    byway_dns_request_release(kept);

    selector = selector_with(dns_with(silent), NULL);
    STATUS(byway_selector_poll_next(selector, &selection, NULL), BYWAY_PENDING, "pending, then");
    byway_dns_request_release(kept);
    OK(records_of(NULL) == 1, "released without an answer: one record");
    STATUS(byway_selector_poll_next(selector, &selection, NULL), BYWAY_E_ABANDONED, "abandoned, not waited for");
    byway_selector_free(selector);

    selector = selector_with(dns_with(twice), NULL);
    STATUS(byway_selector_next(selector, 0, &selection, NULL), BYWAY_OK, "a resolver that answers twice: the first counts");
    OK(byway_selection_len(selection) == 1, "alone");
    STATUS(second_answer, BYWAY_E_STATE, "the second is refused");
    byway_selection_free(selection);
    byway_selector_free(selector);

    selector = selector_with(dns_with(nothing), NULL);
    STATUS(byway_selector_next(selector, 0, &selection, NULL), BYWAY_E_UNKNOWN_HOST, "OK with no address added");
    byway_selector_free(selector);
    selector = selector_with(dns_with(undefined), NULL);
    STATUS(byway_selector_next(selector, 0, &selection, NULL), BYWAY_E_HOST, "a status that is none");
    byway_selector_free(selector);

    selector = selector_with(dns_with(silent), NULL);
    STATUS(byway_selector_poll_next(selector, &selection, NULL), BYWAY_PENDING, "pending, then");
    canceled = 0;
    STATUS(byway_engine_shutdown(engine, 60000, NULL), BYWAY_OK, "shut down");
    OK(canceled == 1 && canceled_id == byway_dns_request_id(kept), "the resolver is told that nobody waits any more");
    status = byway_dns_request_add_text(kept, "192.0.2.1", BYWAY_NUL, NULL);
    STATUS(status, BYWAY_E_CANCELED, "an answer after it is harmless");
    STATUS(byway_selector_poll_next(selector, &selection, NULL), BYWAY_E_SHUTDOWN, "and changes nothing");
    OK(records_of(&record) == 1, "one record all the same (%s)", byway_status_name(record));
    byway_dns_request_release(kept);
    byway_selector_free(selector);
    byway_engine_release(engine);
    OK(destroyed == 8, "every resolver is destroyed once (%d of 8)", destroyed);
}

static int flood, bad_port, refuse;

static byway_status choose(void *user_data, byway_proxy_request *request, const char *uri, size_t len,
                           const byway_call *call)
{
    int i;
    (void)user_data;
    (void)uri;
    (void)len;
    (void)call;
    if (refuse)
        return byway_proxy_request_fail(request, BYWAY_E_HOST, 815, "no way", BYWAY_NUL);
    for (i = 0; i < flood; i++) {
        char host[32];
        byway_status status;
        snprintf(host, sizeof host, "10.1.%d.%d", i / 256, i % 256);
        status = byway_proxy_request_add(request, BYWAY_PROXY_HTTP, host, BYWAY_NUL, 8080, NULL);
        if (status < 0)
            return status;
    }
    if (bad_port >= 0) {
        byway_status status = byway_proxy_request_add(request, BYWAY_PROXY_HTTP, "10.0.0.1", BYWAY_NUL, bad_port, NULL);
        if (status < 0)
            return status;
        return byway_proxy_request_add_direct(request);
    }
    return BYWAY_OK;
}

static byway_status one_ip(void *user_data, byway_dns_request *request, const char *host, size_t len,
                           const byway_call *call)
{
    (void)user_data;
    (void)host;
    (void)len;
    (void)call;
    return byway_dns_request_add_text(request, "192.0.2.9", BYWAY_NUL, NULL);
}

static byway_proxy_selector *chooser(void)
{
    byway_proxy_selector_callbacks set = BYWAY_PROXY_SELECTOR_CALLBACKS_INIT;
    byway_proxy_selector *made = NULL;
    set.select = choose;
    NEED(byway_proxy_selector_new(engine, &set, &made, NULL));
    return made;
}

static void proxy_selectors(void)
{
    static const int ports[] = { 0, 70000, -1 };
    byway_selector *selector;
    byway_selection *selection = NULL;
    byway_error *err = NULL;
    byway_status status;
    int selections = 0, routes = 0;
    size_t i;
    NEED(byway_engine_new(NULL, &engine, NULL));
    bad_port = -1;
    refuse = 1;
    selector = selector_with(dns_with(one_ip), chooser());
    STATUS(byway_selector_next(selector, 0, &selection, &err), BYWAY_E_PROXY_SELECTOR, "a proxy selector that fails");
    OK(byway_error_host_code(err) == 815, "its number comes through");
    byway_error_free(err);
    err = NULL;
    byway_selector_free(selector);
    refuse = 0;

    flood = 10000;
    selector = selector_with(dns_with(one_ip), chooser());
    while ((status = byway_selector_next(selector, 0, &selection, NULL)) == BYWAY_OK) {
        selections++;
        routes += (int)byway_selection_len(selection);
        byway_selection_free(selection);
        selection = NULL;
    }
    OK((status == BYWAY_DONE && routes == 10000) || status == BYWAY_E_LIMIT,
       "10 000 proxies: %d routes in %d selections, then %s", routes, selections, byway_status_name(status));
    byway_selector_free(selector);
    flood = 0;

    for (i = 0; i < sizeof ports / sizeof ports[0] - 1; i++) {
        bad_port = ports[i];
        selector = selector_with(dns_with(one_ip), chooser());
        status = byway_selector_next(selector, 0, &selection, &err);
        /* One failed entry, and the following one in the same call; or the entry is refused as malformed. */
        OK((status == BYWAY_OK && byway_selection_len(selection) == 1) || status == BYWAY_E_INVALID_PORT
               || status == BYWAY_E_INVALID_PROXY,
           "proxy port %d: %s", bad_port, byway_status_name(status));
        byway_error_free(err);
        err = NULL;
        byway_selection_free(selection);
        selection = NULL;
        byway_selector_free(selector);
    }
    bad_port = -1;
    selector = selector_with(dns_with(one_ip), chooser());
    STATUS(byway_selector_next(selector, 0, &selection, NULL), BYWAY_E_EMPTY_ANSWER, "no proxy named and OK");
    byway_selector_free(selector);
    NEED(byway_engine_shutdown(engine, 0, NULL));
    byway_engine_release(engine);
}

static void hosts(void)
{
    static char long_host[301];
    static const struct {
        const char *host;
        size_t len;
        int32_t port;
        int good;
    } table[] = {
        { long_host, 300, 443, 0 },       { "a\0b", 3, 443, 0 },          { "a\rb", 3, 443, 0 },
        { "a\nb", 3, 443, 0 },            { "a%00b", BYWAY_NUL, 443, 0 }, { "[::1%25lo]", BYWAY_NUL, 443, 0 },
        { "[::1", BYWAY_NUL, 443, 0 },    { "", 0, 443, 0 },              { "\xff\xfe", 2, 443, 0 },
        { "a b", BYWAY_NUL, 443, 0 },     { "a.example", BYWAY_NUL, 0, 0 }, { "a.example", BYWAY_NUL, 70000, 0 },
        { "a.example", BYWAY_NUL, -1, 0 }, { "256.1.1.1", BYWAY_NUL, 443, 0 },
        { "xn--mnchen-3ya.example", BYWAY_NUL, 443, 1 }, { "m\xc3\xbcnchen.example", BYWAY_NUL, 443, 1 },
        { "1.2.3.4", BYWAY_NUL, 65535, 1 }, { "a.example.", BYWAY_NUL, 1, 1 },
        { "fe80::1%lo", BYWAY_NUL, 443, 1 }, { "[fe80::1%25lo]", BYWAY_NUL, 443, 1 },
    };
    size_t i;
    memset(long_host, 'a', 300);
    NEED(byway_engine_new(NULL, &engine, NULL));
    for (i = 0; i < sizeof table / sizeof table[0]; i++) {
        byway_address *address = NULL;
        byway_error *err = NULL;
        byway_str message = { "", 0 };
        const byway_status status = address_of(table[i].host, table[i].len, table[i].port, NULL, NULL, &address, &err);
        byway_error_message(err, &message);
        OK((status == BYWAY_OK) == table[i].good && (status == BYWAY_OK || (!address && message.len)),
           "host %d: %s %s", (int)i, byway_status_name(status), message.data);
        byway_error_free(err);
        byway_address_release(address);
    }
    NEED(byway_engine_shutdown(engine, 0, NULL));
    byway_engine_release(engine);
}

int main(void)
{
    resolvers();
    proxy_selectors();
    hosts();
    return tap_done();
}
